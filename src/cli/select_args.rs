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

    /// The options that were given by which anything is left out or weighed otherwise than by joules.
    pub fn given(&self) -> Vec<&'static str> {
        let Self { weight, domain, event, thread, process, through } = self;
        let is_other_weight = weight.is_some_and(|weight| !matches!(weight, WeightArg::Joules));
        given(&[
            ("--weight", is_other_weight),
            ("--domain", domain.is_some()),
            ("--event", event.is_some()),
            ("--thread", thread.is_some()),
            ("--process", process.is_some()),
            ("--through", through.is_some()),
        ])
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

/// The names of those options that were given.
pub fn given(options: &[(&'static str, bool)]) -> Vec<&'static str> {
    options.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect()
}
