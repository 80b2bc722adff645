//! The second pass: each sample as lines of text.

use std::io::{self, Write};
use std::rc::Rc;

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
use rustc_hash::FxHashMap;

use super::fields::Fields;
use super::places::{Follower, Places};

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
    /// Names of threads, safe to print, by their number in [`Tasks::threads`].
    names: Vec<String>,
    places: Places,
    symbols: Symbols,
    /// What stands behind the address of a frame, by its place and whether it is a caller's.
    frames: FxHashMap<(AddressId, bool), Names>,
}

/// What is printed of a place.
struct Names {
    /// Functions that are inlined there, the innermost first.
    inlined: Rc<[Label]>,
    /// Symbol, offset and file, each with a blank before it.
    own: Rc<str>,
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
        Self { inlined: inlined.map(name).collect(), own: own.into() }
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
            names: Vec::new(),
            places,
            symbols,
            frames: FxHashMap::default(),
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
        match event.map_or(EventKind::Flat, |event| event.kind) {
            EventKind::Flat => self.program_sample(context, sample, false),
            EventKind::Chained => self.program_sample(context, sample, true),
            EventKind::Energy if self.look.energy => self.reading(context, sample),
            EventKind::Energy | EventKind::Hidden => Ok(()),
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
        for frame in self.follower.frames(task, sample) {
            self.frame(task, frame)?;
        }
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
    fn frame(&mut self, task: TaskId, frame: Frame) -> io::Result<()> {
        let place = self.places.of(&mut self.follower.tasks, task, frame);
        let (code, module) = self.places.place(place);
        let shown = match module.kind {
            ModuleKind::File | ModuleKind::Vdso => code.address.wrapping_add(u64::from(frame.is_return)),
            _ => frame.address,
        };
        let Names { inlined, own } = self.names_of(place, frame.is_return);
        let (inlined, own) = (inlined.clone(), own.clone());
        for name in inlined.iter() {
            writeln!(self.out, "\t{shown:16x} {name} (inlined)")?;
        }
        writeln!(self.out, "\t{shown:16x}{own}")
    }

    /// The line of a sample without call stack.
    fn address(&mut self, task: TaskId, frame: Frame) -> io::Result<()> {
        let place = self.places.of(&mut self.follower.tasks, task, frame);
        let own = self.names_of(place, frame.is_return).own.clone();
        writeln!(self.out, " {:16x}{own}", frame.address)
    }

    fn names_of(&mut self, place: AddressId, is_return: bool) -> &Names {
        let Self { frames, look, places, symbols, .. } = self;
        frames.entry((place, is_return)).or_insert_with(|| {
            let (_, module) = places.place(place);
            Names::of(symbols, place, u64::from(is_return), module, look.fields)
        })
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
