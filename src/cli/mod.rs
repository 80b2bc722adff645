//! The command line: one file per verb, each translating options into calls of the library.

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use eprof::process::privileges;

mod agent;
mod annotate;
mod bus_error;
mod by;
mod calibrate;
mod demo;
mod denied;
mod doctor;
mod ending;
mod export;
mod fixed;
mod flamegraph;
mod fleet;
mod folder;
mod gpu;
mod input;
mod letters;
mod loading;
mod manual;
mod memory;
mod meters;
mod model;
mod needed;
mod new_file;
mod opening;
mod outcome;
mod output;
mod pager;
mod progress_line;
mod push;
mod record;
mod recorded_kernel;
mod recordings;
mod report;
mod script;
mod select_args;
mod several;
mod stage_bar;
mod stat;
mod symbol_args;
mod table_file;
mod table_options;
mod tables_folder;
mod top;
mod tune;
mod verbs_of_others;
mod verify;
mod view;
mod work_progress;

use outcome::Outcome;
use pager::Paging;

const EXAMPLES: &str = "\
Examples:
  eprof record ./app                 measure and sample ./app, into eprof.data
  eprof report                       its joules by function
  eprof annotate FUNCTION            of one function by line and instruction
  eprof view                         all of it in a browser, energy.html
  eprof flamegraph                   and as a picture, energy.svg
  eprof stat ./app                   only the joules, without samples
  eprof top                          who takes the watts now
  eprof agent -o DIR                 all of a machine, day and night
  eprof doctor                       what this machine can measure, and how to get what is missing

`eprof VERB --help` has more of each.";

/// Where the joules of a program go, by function, line and call path.
#[derive(Parser)]
#[command(name = "eprof", version, max_term_width = 100, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    /// Write to the terminal without a pager; EPROF_PAGER or PAGER choose one.
    #[arg(long, global = true)]
    no_pager: bool,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    // In the order in which they are used; the help lists them so.
    Record(record::RecordArgs),
    Report(report::ReportArgs),
    View(view::ViewArgs),
    Flamegraph(flamegraph::FlamegraphArgs),
    Annotate(annotate::AnnotateArgs),
    Stat(stat::StatArgs),
    Top(top::TopArgs),
    Agent(Box<agent::AgentArgs>),
    Doctor(doctor::DoctorArgs),
    Demo(demo::DemoArgs),
    Script(script::ScriptArgs),
    Export(export::ExportArgs),
    Push(push::PushArgs),
    Fleet(fleet::FleetArgs),
    Calibrate(calibrate::CalibrateArgs),
    Verify(verify::VerifyArgs),
    Tune(Box<tune::TuneArgs>),
    Model(model::ModelArgs),
    Gpu(gpu::GpuArgs),
    /// Restore the machine's settings when the tuning that changed them is gone.
    #[command(name = tune::GUARD_VERB, hide = true)]
    TuneGuard,
    Completions(manual::CompletionsArgs),
    Man(manual::ManArgs),
}

/// Parses the arguments, runs the verb and reports an error once, on stderr.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| verbs_of_others::explained(error).exit());
    let paging = if cli.no_pager { Paging::Never } else { Paging::Auto };
    bus_error::explain();
    match limit_rights(&cli.verb).and_then(|()| run(cli.verb, paging)) {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::say(format_args!("error: {}", told(&error)));
            ExitCode::FAILURE
        }
    }
}

/// Gives up what rights a verb does not need, if eprof has more of them than its user.
fn limit_rights(verb: &Verb) -> anyhow::Result<()> {
    anyhow::ensure!(
        !privileges::is_set_user_id(),
        "eprof has the set-user-ID bit, by which everybody could write files and run programs as its owner: \
         take it away (chmod u-s), and give it the right to sample (setcap cap_perfmon=ep)"
    );
    match verb {
        // They open counters and meters, and give the rights up when they are open.
        Verb::Record(_)
        | Verb::Top(_)
        | Verb::Agent(_)
        | Verb::Stat(_)
        | Verb::Doctor(_)
        | Verb::Calibrate(_) => Ok(()),
        Verb::Verify(args) if args.is_worker() => Ok(privileges::drop_unless_root()?),
        Verb::Verify(_) => Ok(()),
        Verb::Demo(_) | Verb::Tune(_) | Verb::TuneGuard => Ok(()),
        // They read files that anybody may have made.
        Verb::Report(_)
        | Verb::Annotate(_)
        | Verb::View(_)
        | Verb::Flamegraph(_)
        | Verb::Export(_)
        | Verb::Script(_) => Ok(privileges::keep_unless_root(privileges::SYSLOG)?),
        Verb::Push(_)
        | Verb::Fleet(_)
        | Verb::Gpu(_)
        | Verb::Model(_)
        | Verb::Completions(_)
        | Verb::Man(_) => Ok(privileges::drop_unless_root()?),
    }
}

fn run(verb: Verb, paging: Paging) -> Outcome {
    match verb {
        Verb::Demo(args) => demo::run(args),
        Verb::Gpu(args) => gpu::run(args),
        Verb::Model(args) => model::run(args),
        Verb::Record(args) => record::run(args),
        Verb::Report(args) => report::run(args, paging),
        Verb::Annotate(args) => annotate::run(args, paging),
        Verb::Stat(args) => stat::run(args),
        Verb::Top(args) => top::run(args),
        Verb::Agent(args) => agent::run(*args),
        Verb::View(args) => view::run(args),
        Verb::Flamegraph(args) => flamegraph::run(args, paging),
        Verb::Export(args) => export::run(args),
        Verb::Push(args) => push::run(args),
        Verb::Fleet(args) => fleet::run(args),
        Verb::Calibrate(args) => calibrate::run(args),
        Verb::Verify(args) => verify::run(args),
        Verb::Doctor(args) => doctor::run(args),
        Verb::Tune(args) => tune::run(*args),
        Verb::TuneGuard => tune::run_guard(),
        Verb::Script(args) => script::run(args, paging),
        Verb::Completions(args) => manual::completions(&args, Cli::command()),
        Verb::Man(args) => manual::man(&args, Cli::command()),
    }
}

/// An error with its causes. Some say theirs themselves: each is said once.
fn told(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// A reader that went away (`eprof report | head`) is no error of ours.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind_of = |cause: &(dyn std::error::Error + 'static)| {
        let io_error = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        // JSON's errors keep the kind, but not the cause.
        io_error.or_else(|| cause.downcast_ref::<serde_json::Error>()?.io_error_kind())
    };
    error.chain().filter_map(kind_of).any(|kind| kind == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot run `app`: {source}")]
        struct Twice {
            source: io::Error,
        }
        let twice = Twice { source: io::Error::other("it is not there") };
        let error = Err::<(), _>(twice).context("nothing is tuned").expect_err("an error");
        assert_eq!(
            format!("{error:#}"),
            "nothing is tuned: cannot run `app`: it is not there: it is not there"
        );
        assert_eq!(told(&error), "nothing is tuned: cannot run `app`: it is not there");
    }
}
