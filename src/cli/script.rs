//! `eprof script`: every sample as text, as `perf script` prints them.

use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use eprof::analyze::Replay;
use eprof::recording::Recording;
use eprof::symbolize::{Symbolizer, Symbols};

use super::pager::Paging;
use super::symbol_args::SymbolArgs;
use super::{Outcome, input, output};

mod fields;
mod header;
mod places;
mod printer;

use fields::Fields;
use places::{Follower, Places};
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
    #[arg(short, long, value_name = "FILE", default_value = input::DEFAULT_RECORDING)]
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
    let recording = input::open(&args.input)?;
    if args.header_only {
        paging.write_to(None, |out| header::write(&recording, out))?;
        return Ok(ExitCode::SUCCESS);
    }
    let fields = args.fields.unwrap_or_default();
    let (places, symbols) = named(&recording, &args, fields);
    output::warn(&symbols.warnings);
    let look = Look { fields, nanoseconds: args.ns, energy: args.energy };
    let follower = Follower::new(&recording, &args.symbols.options(&recording, &args.input));
    let mut warnings = Vec::new();
    paging.write_to(None, |out| {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        if args.header {
            header::write(&recording, &mut out)?;
        }
        let mut printer = Printer::new(&recording, out, look, follower, places, symbols);
        let mut written = Ok(());
        let end = Replay::new(&recording).try_for_each(|_, context, record| {
            written = printer.record(context, record);
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        written?;
        warnings = end.warnings();
        printer.finish()
    })?;
    output::warn(&warnings);
    Ok(ExitCode::SUCCESS)
}

/// The first pass: all places that are printed, and their names.
fn named(recording: &Recording, args: &ScriptArgs, fields: Fields) -> (Places, Symbols) {
    let mut places = Places::default();
    if !fields.ip() {
        return (places, Symbols::default());
    }
    let options = args.symbols.options(recording, &args.input);
    let mut follower = Follower::new(recording, &options);
    let kinds: Vec<EventKind> = recording.events().iter().map(EventKind::of).collect();
    let _ = Replay::new(recording).try_for_each(|_, context, record| {
        follower.follow(record);
        if let perf_data::record::Record::Sample(sample) = record {
            let kind = context.event.and_then(|event| kinds.get(event.0 as usize)).copied();
            if !matches!(kind, Some(EventKind::Energy | EventKind::Hidden)) {
                let task = printer::task_of(&mut follower.tasks, context);
                for frame in follower.frames(task, sample) {
                    places.of(&mut follower.tasks, task, frame);
                }
            }
        }
        ControlFlow::Continue(())
    });
    output::warn(follower.warnings());
    places.finish(follower.tasks, recording);
    let symbols = match fields.sym() {
        true => Symbolizer::new(options).symbolize(places.modules(), places.addresses()),
        false => Symbols::default(),
    };
    (places, symbols)
}
