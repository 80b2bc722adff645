//! Why there is no report.

use super::missing_joules::MissingJoules;
use crate::pattern::PatternError;

/// Why a report cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The recording has no such energy domain.
    #[error("there is no energy domain {name:?} in this recording; there are: {known}")]
    NoSuchDomain {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The recording has no such event.
    #[error("there is no event {name:?} in this recording; there are: {known}")]
    NoSuchEvent {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// No sample has such a function on its stack.
    #[error("no function is named {0:?} and none matches it as a regular expression")]
    NoSuchFunction(String),
    /// There is nothing to annotate by that name.
    #[error(
        "no function that took anything itself is named {name:?}{similar}; if it called others, `eprof report --callees \
         {name:?}` shows what they took, and `eprof report --limit 0` lists all that took anything, with `--inline` inlined \
         ones too"
    )]
    NothingToAnnotate {
        /// What was asked for.
        name: String,
        /// Functions of similar names, as the end of a clause; empty if there are none.
        similar: String,
    },
    /// There is nothing to annotate by that name, and more code without names than what may have been meant took.
    #[error(
        "no function is called {name:?}, and {share:.1} % lies in code without names: {causes}{instead}",
        share = share * 100.0
    )]
    NamesMissing {
        /// What was asked for.
        name: String,
        /// How much of everything lies in code without names, from 0 to 1.
        share: f64,
        /// Why there are none.
        causes: String,
        /// Which functions have what was asked for in their names, as the end of a sentence; empty if none.
        instead: String,
    },
    /// What was to be annotated is no function's name, and no pattern either.
    #[error("no function of this recording is named {name:?}, and it is {why}")]
    NoNameNorPattern {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        why: PatternError,
    },
    /// A function took nothing itself.
    #[error(
        "{name:?} took nothing itself{}, only what it called: `eprof report --callees {name:?}` shows that",
        if *of_selected { " of what is selected" } else { "" }
    )]
    NothingItself {
        /// Its name.
        name: String,
        /// A part of the recording alone was looked at.
        of_selected: bool,
    },
    /// Joules were asked for where there are none.
    #[error("there are no joules in this recording: {0}; {repair}; or take `--weight samples`", repair = .0.repair())]
    NoJoules(MissingJoules),
    /// The same, of what shows nothing but joules.
    #[error("there are no joules in this recording, and {what} of nothing else: {why}; {repair}", repair = .why.repair())]
    NothingWithoutJoules {
        /// What was asked for, with its verb.
        what: &'static str,
        /// Why there are none.
        why: MissingJoules,
    },
    /// Domains were to be weighed by samples or counts.
    #[error(
        "domains have joules and no samples: take `--weight joules`, or `--by event` for samples and counts"
    )]
    DomainsHaveNoSamples,
    /// No sample is left.
    #[error("nothing to show: {0}")]
    NothingSelected(String),
    /// Two profiles are weighed differently.
    #[error(
        "cannot compare a profile weighed by {older} with one weighed by {newer}: choose one for both with `--weight`"
    )]
    NotComparable {
        /// Weight of the older profile.
        older: &'static str,
        /// Weight of the newer profile.
        newer: &'static str,
    },
    /// Writing failed.
    #[error("writing failed")]
    Write(#[from] std::io::Error),
}
