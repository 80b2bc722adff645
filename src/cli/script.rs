//! `eprof script`: every sample as text, as `perf script` prints them.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use eprof::analyze::{Replay, frames_of};
use eprof::profile::ModuleKind;
use eprof::recording::Recording;
use eprof::recording::energy::{EnergyReading, domain_of_event};
use eprof::recording::metadata::{CPU_TIMES_EVENT, METADATA_EVENT};
use eprof::report::text::Label;
use eprof::timeline::{SpaceId, TaskId, Tasks};
use perf_data::EventDesc;
use perf_data::format::sample_type;
use perf_data::record::{CpuMode, Record, RecordContext, Sample};
use rustc_hash::FxHashMap;

use super::{Outcome, input, output};

const EXAMPLES: &str = "\
Examples:
  eprof script | less                      every sample of eprof.data in the order of time
  eprof script -i perf.data --ns           with nanoseconds
  eprof script | inferno-collapse-perf     for tools that read `perf script`";

/// Print every sample, as perf script does.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ScriptArgs {
    /// Recording to read, of eprof or perf; `-` is standard input.
    #[arg(short, long, value_name = "FILE", default_value = input::DEFAULT_RECORDING)]
    input: PathBuf,

    /// Times in nanoseconds instead of microseconds.
    #[arg(long)]
    ns: bool,
}

pub fn run(args: ScriptArgs) -> Outcome {
    let recording = input::open(&args.input)?;
    let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut script = Script::new(&recording, out, args.ns);
    let mut written = Ok(());
    let end = Replay::new(&recording).try_for_each(|_, context, record| {
        written = script.record(context, record);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    written?;
    script.out.flush()?;
    output::warn(&end.warnings());
    Ok(ExitCode::SUCCESS)
}

/// Lines of frames that are kept for the next time their address comes by.
const KEPT_FRAMES: usize = 1 << 18;

/// Prints the samples of a recording.
struct Script<W> {
    out: W,
    nanoseconds: bool,
    tasks: Tasks,
    events: Vec<Event>,
    /// Names of threads, safe to print, by their number in [`Tasks::threads`].
    names: Vec<String>,
    /// What was printed for an address of a state of memory.
    frames: FxHashMap<(SpaceId, CpuMode, u64), Box<str>>,
}

/// How an event's samples are printed.
struct Event {
    /// Its name, as wide as the widest, and a colon.
    label: String,
    kind: EventKind,
}

#[derive(Clone, Copy)]
enum EventKind {
    /// With only the address of the sample.
    Flat,
    /// With callchains: a paragraph for each sample.
    Chained,
    Energy,
    /// eprof's notes to itself.
    Hidden,
}

impl EventKind {
    fn of(event: &EventDesc) -> Self {
        match event.name.as_str() {
            METADATA_EVENT | CPU_TIMES_EVENT => Self::Hidden,
            name if domain_of_event(name).is_some() => Self::Energy,
            _ if event.attr.samples(sample_type::CALLCHAIN) => Self::Chained,
            _ => Self::Flat,
        }
    }
}

impl<W: Write> Script<W> {
    fn new(recording: &Recording, out: W, nanoseconds: bool) -> Self {
        let names: Vec<Label> = recording.events().iter().map(|event| Label::new(&event.name)).collect();
        let width = names.iter().map(|name| name.as_str().len()).max().unwrap_or(0);
        let event = |(name, event): (&Label, &EventDesc)| Event {
            label: format!("{:>width$}: ", name.as_str()),
            kind: EventKind::of(event),
        };
        let events = names.iter().zip(recording.events()).map(event);
        Self {
            out,
            nanoseconds,
            tasks: Tasks::default(),
            events: events.collect(),
            names: Vec::new(),
            frames: FxHashMap::default(),
        }
    }

    fn record(&mut self, context: &RecordContext, record: &Record<'_>) -> io::Result<()> {
        match record {
            Record::Sample(sample) => return self.sample(context, sample),
            Record::Mmap(map) => self.tasks.map(map),
            Record::Comm { pid, tid, name, exec } => self.tasks.rename(*pid, *tid, name, *exec),
            Record::Fork(change) => self.tasks.fork(change),
            Record::Ksymbol { address, length, unregistered: false, name } => {
                self.tasks.kernel_symbol(*address, *length, name);
            }
            _ => {}
        }
        Ok(())
    }

    fn sample(&mut self, context: &RecordContext, sample: &Sample<'_>) -> io::Result<()> {
        let event = context.event.and_then(|event| self.events.get(event.0 as usize));
        match event.map_or(EventKind::Flat, |event| event.kind) {
            EventKind::Flat => self.program_sample(context, sample, false),
            EventKind::Chained => self.program_sample(context, sample, true),
            EventKind::Energy => self.reading(context, sample),
            EventKind::Hidden => Ok(()),
        }
    }

    fn program_sample(
        &mut self,
        context: &RecordContext,
        sample: &Sample<'_>,
        with_chain: bool,
    ) -> io::Result<()> {
        let (pid, tid) = (context.pid.unwrap_or(0), context.tid.or(context.pid).unwrap_or(0));
        let task = self.tasks.task(pid, tid);
        self.name_threads();
        let name = self.names.get(self.tasks.thread(task).0 as usize).map_or("?", String::as_str);
        write!(self.out, "{name} {pid:>5}/{tid:<5} ")?;
        self.place(context)?;
        if let Some(period) = sample.period {
            write!(self.out, "{period:>10} ")?;
        }
        self.event_label(context)?;
        if !with_chain {
            return match sample.ip {
                Some(address) => self.frame(task, sample.mode, address),
                None => writeln!(self.out),
            };
        }
        writeln!(self.out)?;
        for frame in frames_of(sample, &[]) {
            self.out.write_all(b"\t")?;
            self.frame(task, frame.mode, frame.address)?;
        }
        writeln!(self.out)
    }

    /// A reading is of no task: its domain, and joules since the start.
    fn reading(&mut self, context: &RecordContext, sample: &Sample<'_>) -> io::Result<()> {
        let Some(reading) = EnergyReading::from_bytes(sample.raw) else { return Ok(()) };
        self.place(context)?;
        self.event_label(context)?;
        writeln!(self.out, "{:.6} J", reading.energy.as_joules())
    }

    /// CPU and time.
    fn place(&mut self, context: &RecordContext) -> io::Result<()> {
        if let Some(cpu) = context.cpu {
            write!(self.out, "[{cpu:03}] ")?;
        }
        if let Some(time) = context.time {
            let (seconds, nanos) = (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
            match self.nanoseconds {
                true => write!(self.out, "{seconds:>5}.{nanos:09}: ")?,
                false => write!(self.out, "{seconds:>5}.{:06}: ", nanos / 1_000)?,
            }
        }
        Ok(())
    }

    fn event_label(&mut self, context: &RecordContext) -> io::Result<()> {
        let event = context.event.and_then(|event| self.events.get(event.0 as usize));
        let label = event.map_or("unknown event: ", |event| &event.label);
        self.out.write_all(label.as_bytes())
    }

    /// One line: address and where it lies.
    fn frame(&mut self, task: TaskId, mode: CpuMode, address: u64) -> io::Result<()> {
        let space = match mode {
            CpuMode::Kernel => self.tasks.kernel_space_id(),
            _ => self.tasks.space_id(task),
        };
        if let Some(line) = self.frames.get(&(space, mode, address)) {
            return self.out.write_all(line.as_bytes());
        }
        let code = self.tasks.locate(task, mode, address);
        let module = &self.tasks.modules()[code.module.0 as usize];
        let path = Label::new(&module.path);
        let line = match module.kind {
            ModuleKind::Unknown => format!("{address:16x} [unknown] ([unknown])\n"),
            // The address says all there is to say of its place.
            ModuleKind::Kernel | ModuleKind::KernelModule | ModuleKind::Anonymous => {
                format!("{address:16x} [unknown] ({})\n", path.as_str())
            }
            ModuleKind::File | ModuleKind::Vdso | ModuleKind::Jit | ModuleKind::GpuKernel => {
                format!("{address:16x} {}+0x{:x} ({})\n", path.file_name(), code.address, path.as_str())
            }
        };
        self.out.write_all(line.as_bytes())?;
        if self.frames.len() == KEPT_FRAMES {
            self.frames.clear();
        }
        self.frames.insert((space, mode, address), line.into());
        Ok(())
    }

    fn name_threads(&mut self) {
        let known = self.names.len();
        let new = self.tasks.threads().iter().skip(known);
        self.names.extend(new.map(|thread| Label::new(&thread.name).as_str().to_owned()));
    }
}
