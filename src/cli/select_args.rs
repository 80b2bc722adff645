//! Options that choose which samples count, and what weighs.

use clap::{Args, ValueEnum};
use eprof::pattern::pattern;
use eprof::report::{Selection, Weight};
use regex::Regex;

/// Which samples count, and what weighs.
#[derive(Args)]
pub struct SelectArgs {
    /// What rows and frames are measured in [default: joules if the recording has any, else samples].
    #[arg(long, value_enum)]
    weight: Option<WeightArg>,

    /// Only joules of this energy domain [default: those of all domains that are not part of another].
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,

    /// Only samples of this event.
    #[arg(long, value_name = "NAME")]
    event: Option<String>,

    /// Only samples of threads whose name matches.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    thread: Option<Regex>,

    /// Only samples of processes whose name matches.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    process: Option<Regex>,

    /// Only samples with a function whose name matches anywhere on their stack.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    through: Option<Regex>,
}

#[derive(Clone, Copy, ValueEnum)]
enum WeightArg {
    Joules,
    Samples,
    Count,
}

impl SelectArgs {
    /// As the library takes it.
    pub fn selection(&self) -> Selection {
        Selection {
            weight: self.weight.map(|weight| match weight {
                WeightArg::Joules => Weight::Joules,
                WeightArg::Samples => Weight::Samples,
                WeightArg::Count => Weight::Count,
            }),
            domain: self.domain.clone(),
            event: self.event.clone(),
            thread: self.thread.clone(),
            process: self.process.clone(),
            task: None,
            through: self.through.clone(),
        }
    }

    /// Whether anything is left out or weighed otherwise than usual.
    pub fn selects(&self) -> bool {
        let Self { weight, domain, event, thread, process, through } = self;
        let of_names = domain.is_some() || event.is_some();
        of_names || weight.is_some() || thread.is_some() || process.is_some() || through.is_some()
    }

    /// Whether threads must be told apart.
    pub fn needs_threads(&self) -> bool {
        self.thread.is_some() || self.process.is_some()
    }

    /// Whether whole stacks are needed.
    pub fn needs_stacks(&self) -> bool {
        self.through.is_some()
    }
}
