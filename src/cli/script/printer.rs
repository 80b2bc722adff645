//! The second pass: each sample as lines of text.

use std::io::{self, Write};
use std::ops::Range;

use eprof::analyze::Frame;
use eprof::hardware::Method;
use eprof::label::Label;
use eprof::profile::{AddressId, Module, ModuleKind};
use eprof::recording::Recording;
use eprof::recording::energy::{EnergyReading, domain_of_event};
use eprof::recording::metadata::{CPU_TIMES_EVENT, METADATA_EVENT};
use eprof::symbolize::{SourceFrame, Symbols};
use eprof::timeline::{TaskId, Tasks};
use perf_data::EventDesc;
use perf_data::format::sample_type;
use perf_data::record::{Record, RecordContext, Sample};

use super::fields::Fields;
use super::places::{Follower, Known, Places, SampleSpaces};

/// What is printed of samples, and how.
#[derive(Clone, Copy)]
pub struct Look {
    pub fields: Fields,
    /// Times have nanoseconds.
    pub nanoseconds: bool,
    /// Readings of energy meters are printed, too.
    pub energy: bool,
}

/// Prints the samples of a recording.
pub struct Printer<W> {
    out: W,
    look: Look,
    follower: Follower,
    events: Vec<Event>,
    /// So many samples are not printed any more, only followed.
    passed_over: u64,
    /// Names of threads, safe to print, by their number in [`Tasks::threads`].
    names: Vec<String>,
    places: Places,
    symbols: Symbols,
    /// The lines of frames of call stacks that were printed before, as nearly all of them were.
    lines: Lines,
    /// The same of samples without a call stack, which are on the line of the sample.
    ends_of_lines: Lines,
    /// Those of the sample at hand.
    frames: Vec<Frame>,
}

/// The lines of frames that were printed before, by the numbers of the frames.
#[derive(Default)]
struct Lines {
    of_frame: Vec<Option<Range<usize>>>,
    texts: Vec<u8>,
}

impl Lines {
    /// More is forgotten: programs that live for a moment each have their own.
    const MOST_BYTES: usize = 32 << 20;

    fn get(&self, frame: Known) -> Option<&[u8]> {
        let range = self.of_frame.get(frame.number as usize)?.clone()?;
        Some(&self.texts[range])
    }

    /// Keeps the lines that `write` writes.
    fn keep(
        &mut self,
        frame: Known,
        write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<&[u8]> {
        if self.texts.len() > Self::MOST_BYTES {
            *self = Self::default();
        }
        let start = self.texts.len();
        write(&mut self.texts)?;
        let number = frame.number as usize;
        if self.of_frame.len() <= number {
            self.of_frame.resize(number + 1, None);
        }
        self.of_frame[number] = Some(start..self.texts.len());
        Ok(&self.texts[start..])
    }
}

/// What is printed of a place.
struct Names {
    /// Functions that are inlined there, the innermost first.
    inlined: Vec<Label>,
    /// Symbol, offset and file, each with a blank before it.
    own: String,
}

impl Names {
    /// `back`: bytes from the place to the address that is printed.
    fn of(symbols: &Symbols, place: AddressId, back: u64, module: &Module, fields: Fields) -> Self {
        let mut own = String::new();
        let frames = symbols.frames(place);
        if fields.sym() {
            match frames.first().map(|own| symbols.function(own.function)).filter(|own| own.known) {
                Some(function) => {
                    own += &format!(" {}", Label::new(&function.name).as_str());
                    if let Some(offset) = symbols.offset(place).filter(|_| fields.symoff()) {
                        own += &format!("+{:#x}", offset.wrapping_add(back));
                    }
                }
                None => own += " [unknown]",
            }
        }
        if fields.dso() {
            own += &format!(" ({})", dso(module).as_str());
        }
        let inlined = frames.iter().skip(1).rev().filter(|_| fields.sym());
        let name = |frame: &SourceFrame| Label::new(&symbols.function(frame.function).name);
        Self { inlined: inlined.map(name).collect(), own }
    }
}

/// How an event's samples are printed.
struct Event {
    /// Its name, as wide as the widest, and a colon.
    label: String,
    kind: EventKind,
    /// Of joules: they were not measured.
    is_estimated: bool,
}

#[derive(Clone, Copy)]
pub enum EventKind {
    /// With only the address of the sample.
    Flat,
    /// With callchains: a paragraph for each sample.
    Chained,
    Energy,
    /// eprof's notes to itself.
    Hidden,
}

impl EventKind {
    pub fn of(event: &EventDesc) -> Self {
        match event.name.as_str() {
            METADATA_EVENT | CPU_TIMES_EVENT => Self::Hidden,
            name if domain_of_event(name).is_some() => Self::Energy,
            _ if event.attr.samples(sample_type::CALLCHAIN) => Self::Chained,
            _ => Self::Flat,
        }
    }
}

/// The task of a sample.
pub fn task_of(tasks: &mut Tasks, context: &RecordContext) -> TaskId {
    tasks.task(context.pid.unwrap_or(0), context.tid.or(context.pid).unwrap_or(0))
}

impl<W: Write> Printer<W> {
    pub fn new(
        recording: &Recording,
        out: W,
        look: Look,
        follower: Follower,
        places: Places,
        symbols: Symbols,
        passed_over: u64,
    ) -> Self {
        let names: Vec<Label> = recording.events().iter().map(|event| Label::new(&event.name)).collect();
        let width = names.iter().map(|name| name.as_str().len()).max().unwrap_or(0);
        let domains = recording.metadata().map_or(&[][..], |metadata| &metadata.domains);
        let is_estimated = |event: &EventDesc| {
            let name = domain_of_event(&event.name);
            domains.iter().any(|domain| Some(&*domain.name) == name && domain.method == Method::Estimated)
        };
        let event = |(name, event): (&Label, &EventDesc)| Event {
            label: format!("{:>width$}: ", name.as_str()),
            kind: EventKind::of(event),
            is_estimated: is_estimated(event),
        };
        let events = names.iter().zip(recording.events()).map(event);
        Self {
            out,
            look,
            follower,
            events: events.collect(),
            passed_over,
            names: Vec::new(),
            places,
            symbols,
            lines: Lines::default(),
            ends_of_lines: Lines::default(),
            frames: Vec::new(),
        }
    }

    pub fn record(&mut self, context: &RecordContext, record: &Record<'_>) -> io::Result<()> {
        self.follower.follow(record);
        match record {
            Record::Sample(sample) => self.sample(context, sample),
            _ => Ok(()),
        }
    }

    /// Hands the rest on.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn sample(&mut self, context: &RecordContext, sample: &Sample<'_>) -> io::Result<()> {
        let event = context.event.and_then(|event| self.events.get(event.0 as usize));
        let kind = event.map_or(EventKind::Flat, |event| event.kind);
        if let Some(left) = self.passed_over.checked_sub(1) {
            self.passed_over = left;
            if matches!(kind, EventKind::Flat | EventKind::Chained) {
                self.pass_over(context, sample);
            }
            return Ok(());
        }
        match kind {
            EventKind::Flat => self.program_sample(context, sample, false),
            EventKind::Chained => self.program_sample(context, sample, true),
            EventKind::Energy if self.look.energy => self.reading(context, sample),
            EventKind::Energy | EventKind::Hidden => Ok(()),
        }
    }

    /// Looks up what the pass that found the places looked up, so that the states of memory have its numbers.
    fn pass_over(&mut self, context: &RecordContext, sample: &Sample<'_>) {
        let task = task_of(&mut self.follower.tasks, context);
        if self.look.fields.ip() {
            self.follower.frames(task, sample, &mut self.frames);
            let spaces = SampleSpaces::of(&self.follower.tasks, task);
            for &frame in &self.frames {
                self.places.of(&mut self.follower.tasks, task, spaces, frame);
            }
        }
    }

    fn program_sample(
        &mut self,
        context: &RecordContext,
        sample: &Sample<'_>,
        has_chain: bool,
    ) -> io::Result<()> {
        let fields = self.look.fields;
        let with_chain = has_chain && fields.ip();
        let task = task_of(&mut self.follower.tasks, context);
        if fields.comm() {
            self.name_threads();
            let thread = self.follower.tasks.thread(task).0 as usize;
            let name = self.names.get(thread).map_or("?", String::as_str);
            match with_chain {
                true => write!(self.out, "{name} ")?,
                false => write!(self.out, "{name:>16} ")?,
            }
        }
        let (pid, tid) = (context.pid.unwrap_or(0), context.tid.or(context.pid).unwrap_or(0));
        match (fields.pid(), fields.tid()) {
            (true, true) => write!(self.out, "{pid:>5}/{tid:<5} ")?,
            (true, false) => write!(self.out, "{pid:>5} ")?,
            (false, true) => write!(self.out, "{tid:>5} ")?,
            (false, false) => {}
        }
        self.place(context)?;
        if let Some(period) = sample.period.filter(|_| fields.period()) {
            write!(self.out, "{period:>10} ")?;
        }
        self.event_label(context)?;
        if !fields.ip() {
            return writeln!(self.out);
        }
        if !with_chain {
            return match sample.ip {
                Some(address) => self.address(task, Frame { mode: sample.mode, address, is_return: false }),
                None => writeln!(self.out),
            };
        }
        writeln!(self.out)?;
        let mut frames = std::mem::take(&mut self.frames);
        self.follower.frames(task, sample, &mut frames);
        let spaces = SampleSpaces::of(&self.follower.tasks, task);
        frames.iter().try_for_each(|frame| self.frame(task, spaces, *frame))?;
        self.frames = frames;
        writeln!(self.out)
    }

    /// A reading is of no task: its domain, and joules since the start.
    fn reading(&mut self, context: &RecordContext, sample: &Sample<'_>) -> io::Result<()> {
        let Some(reading) = EnergyReading::from_bytes(sample.raw) else { return Ok(()) };
        self.place(context)?;
        self.event_label(context)?;
        let how = if self.event(context).is_some_and(|event| event.is_estimated) { " estimated" } else { "" };
        writeln!(self.out, "{:.6} J{how}", reading.energy.as_joules())
    }

    /// CPU and time.
    fn place(&mut self, context: &RecordContext) -> io::Result<()> {
        if let Some(cpu) = context.cpu.filter(|_| self.look.fields.cpu()) {
            write!(self.out, "[{cpu:03}] ")?;
        }
        if let Some(time) = context.time.filter(|_| self.look.fields.time()) {
            let (seconds, nanos) = (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
            match self.look.nanoseconds {
                true => write!(self.out, "{seconds:>5}.{nanos:09}: ")?,
                false => write!(self.out, "{seconds:>5}.{:06}: ", nanos / 1_000)?,
            }
        }
        Ok(())
    }

    fn event_label(&mut self, context: &RecordContext) -> io::Result<()> {
        if !self.look.fields.event() {
            return Ok(());
        }
        let event = context.event.and_then(|event| self.events.get(event.0 as usize));
        let label = event.map_or("unknown event: ", |event| &event.label);
        self.out.write_all(label.as_bytes())
    }

    fn event(&self, context: &RecordContext) -> Option<&Event> {
        self.events.get(context.event?.0 as usize)
    }

    /// The lines of one frame of a call stack: those of functions inlined there, the innermost first, and its own.
    /// As perf: where in its file code of a program lies, and where in memory all other code does.
    #[inline]
    fn frame(&mut self, task: TaskId, spaces: SampleSpaces, frame: Frame) -> io::Result<()> {
        let known = self.places.of(&mut self.follower.tasks, task, spaces, frame);
        if let Some(lines) = self.lines.get(known) {
            return self.out.write_all(lines);
        }
        let (code, module) = self.places.place(known.place);
        let shown = match module.kind {
            ModuleKind::File | ModuleKind::Vdso => code.address.wrapping_add(u64::from(frame.is_return)),
            _ => frame.address,
        };
        let Names { inlined, own } = self.names_of(known, frame.is_return);
        let lines = self.lines.keep(known, |lines| {
            for name in &inlined {
                writeln!(lines, "\t{shown:16x} {name} (inlined)")?;
            }
            writeln!(lines, "\t{shown:16x}{own}")
        })?;
        self.out.write_all(lines)
    }

    /// The line of a sample without call stack.
    fn address(&mut self, task: TaskId, frame: Frame) -> io::Result<()> {
        let spaces = SampleSpaces::of(&self.follower.tasks, task);
        let known = self.places.of(&mut self.follower.tasks, task, spaces, frame);
        if let Some(end) = self.ends_of_lines.get(known) {
            return self.out.write_all(end);
        }
        let own = self.names_of(known, frame.is_return).own;
        let end = self.ends_of_lines.keep(known, |end| writeln!(end, " {:16x}{own}", frame.address))?;
        self.out.write_all(end)
    }

    fn names_of(&self, known: Known, is_return: bool) -> Names {
        let (_, module) = self.places.place(known.place);
        Names::of(&self.symbols, known.place, u64::from(is_return), module, self.look.fields)
    }

    fn name_threads(&mut self) {
        let known = self.names.len();
        let new = self.follower.tasks.threads().iter().skip(known);
        self.names.extend(new.map(|thread| Label::new(&thread.name).as_str().to_owned()));
    }
}

/// What perf calls the place that code came from.
fn dso(module: &Module) -> Label {
    match module.kind {
        ModuleKind::Unknown => Label::new("[unknown]"),
        // Where a just-in-time compiler would name its functions.
        ModuleKind::Anonymous => match module.pid {
            Some(pid) => Label::new(&format!("/tmp/perf-{pid}.map")),
            None => Label::new(&module.path),
        },
        _ => Label::new(&module.path),
    }
}
