//! `eprof script`: every sample as text, as `perf script` prints them.

use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use eprof::analyze::Replay;
use eprof::recording::Recording;
use eprof::symbolize::{Symbolizer, Symbols};
use perf_data::record::Record;

use super::pager::Paging;
use super::symbol_args::SymbolArgs;
use super::{Outcome, opening, output};

mod fields;
mod header;
mod places;
mod printer;

use fields::Fields;
use places::{Follower, Places, SampleSpaces};
use printer::{EventKind, Look, Printer};

const EXAMPLES: &str = "\
Examples:
  eprof script                             every sample of eprof.data in the order of time
  eprof script perf.data --ns              with nanoseconds
  eprof script -F comm,tid,time,ip,sym     only these fields
  eprof script --header-only               what the recording says of itself
  eprof script | inferno-collapse-perf     for tools that read `perf script`";

/// Print every sample, as perf script does.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ScriptArgs {
    /// Recording to read, of eprof or perf; `-` is standard input.
    #[arg(short, long, value_name = "FILE", default_value = opening::DEFAULT_RECORDING)]
    input: PathBuf,

    /// The recording, as with -i.
    #[arg(value_name = "FILE", conflicts_with = "input")]
    recording: Option<PathBuf>,

    /// Fields to print, separated by commas: comm, pid, tid, cpu, time, period, event, ip, sym, symoff, dso. With + or -
    /// before each, changes to the default, which is all but pid.
    #[arg(short = 'F', long, value_name = "FIELD,...", allow_hyphen_values = true)]
    fields: Option<Fields>,

    /// Times in nanoseconds instead of microseconds.
    #[arg(long)]
    ns: bool,

    /// Also print the readings of energy meters: the domain, and joules since the start.
    #[arg(long)]
    energy: bool,

    /// First print what the file says of itself: the machine, the moment, and where the recording comes from.
    #[arg(long)]
    header: bool,

    /// Print only that.
    #[arg(long)]
    header_only: bool,

    #[command(flatten)]
    symbols: SymbolArgs,
}

pub fn run(mut args: ScriptArgs, paging: Paging) -> Outcome {
    if let Some(recording) = args.recording.take() {
        args.input = recording;
    }
    let recording = opening::open(&args.input)?;
    if args.header_only {
        paging.write_text_to(None, |out| header::write(&recording, out))?;
        return Ok(ExitCode::SUCCESS);
    }
    let fields = args.fields.unwrap_or_default();
    let look = Look { fields, nanoseconds: args.ns, energy: args.energy };
    let (mut warnings, mut of_names) = (Vec::new(), Vec::new());
    paging.write_to(None, |out| {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        if args.header {
            header::write(&recording, &mut out)?;
        }
        let mut passed_over = 0;
        for until in [FIRST_SAMPLES, u64::MAX] {
            let Named { places, symbols, warnings: about_names, is_all } =
                Named::until(&recording, &args, fields, until);
            if is_all {
                of_names = about_names;
            }
            let follower = Follower::new(&recording, &args.symbols.options(&recording, &args.input));
            let mut printer =
                Printer::new(&recording, &mut out, look, follower, places, symbols, passed_over);
            let mut written = Ok(());
            let mut samples = Counted::until(if is_all { u64::MAX } else { until });
            let end = Replay::new(&recording).try_for_each(|_, context, record| {
                samples.take(record)?;
                written = printer.record(context, record);
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            written?;
            printer.finish()?;
            if is_all {
                warnings = end.warnings();
                break;
            }
            passed_over = until;
        }
        io::Result::Ok(())
    })?;
    output::warn(of_names.iter().chain(&warnings));
    Ok(ExitCode::SUCCESS)
}

/// So many samples are printed before the names of all others are looked up: who wants the first lines of a large
/// recording, such as `head`, does not wait.
const FIRST_SAMPLES: u64 = 2048;

/// Counts samples up to a limit.
struct Counted {
    left: u64,
}

impl Counted {
    fn until(count: u64) -> Self {
        Self { left: count }
    }

    /// Breaks at the first sample beyond the limit.
    fn take(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        if matches!(record, Record::Sample(_)) {
            match self.left.checked_sub(1) {
                Some(left) => self.left = left,
                None => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }
}

/// What a first pass finds: all places that are printed, and their names.
#[derive(Default)]
struct Named {
    places: Places,
    symbols: Symbols,
    warnings: Vec<String>,
    /// There are no more samples than were looked at.
    is_all: bool,
}

impl Named {
    /// Of so many samples.
    fn until(recording: &Recording, args: &ScriptArgs, fields: Fields, until: u64) -> Self {
        if !fields.ip() {
            return Self { is_all: true, ..Self::default() };
        }
        let mut places = Places::default();
        let options = args.symbols.options(recording, &args.input);
        let mut follower = Follower::new(recording, &options);
        let kinds: Vec<EventKind> = recording.events().iter().map(EventKind::of).collect();
        let mut samples = Counted::until(until);
        let mut frames = Vec::new();
        let mut is_all = true;
        let _ = Replay::new(recording).try_for_each(|_, context, record| {
            if let ControlFlow::Break(()) = samples.take(record) {
                is_all = false;
                return ControlFlow::Break(());
            }
            follower.follow(record);
            if let Record::Sample(sample) = record {
                let kind = context.event.and_then(|event| kinds.get(event.0 as usize)).copied();
                if !matches!(kind, Some(EventKind::Energy | EventKind::Hidden)) {
                    let task = printer::task_of(&mut follower.tasks, context);
                    follower.frames(task, sample, &mut frames);
                    let spaces = SampleSpaces::of(&follower.tasks, task);
                    for &frame in &frames {
                        places.of(&mut follower.tasks, task, spaces, frame);
                    }
                }
            }
            ControlFlow::Continue(())
        });
        let mut warnings = follower.warnings();
        places.finish(follower.tasks, recording);
        let symbols = match fields.sym() {
            true => Symbolizer::new(options).symbolize(places.modules(), places.addresses()),
            false => Symbols::default(),
        };
        warnings.extend(symbols.warnings.iter().map(ToString::to_string));
        Self { places, symbols, warnings, is_all }
    }
}
