//! `--by`: what rows stand for, and what tells recordings apart.

use std::collections::BTreeSet;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error, ValueEnum};
use eprof::identity::Dimension;
use eprof::profile::Profile;

use super::output::warn;

/// Where nothing tells recordings apart as they are to be, all are one: says so.
pub fn tell_what_is_missing(dimensions: &[Dimension], profile: &Profile) {
    let identities = || profile.recordings.iter().filter_map(|origin| origin.identity.as_ref());
    for dimension in dimensions {
        match dimension {
            Dimension::Cgroup => {
                let of_threads: BTreeSet<&str> =
                    profile.threads.iter().filter_map(|thread| thread.cgroup.as_deref()).collect();
                if of_threads.is_empty() && !identities().any(|identity| identity.cgroup.is_some()) {
                    warn(["these samples do not tell their control groups: record with -a or --all-cgroups"]);
                }
                // As on machines whose services and containers are in other hierarchies of version 1.
                let is_one_process = profile.threads.windows(2).all(|two| two[0].pid == two[1].pid);
                if of_threads.iter().eq(&["/"]) && !is_one_process {
                    warn([
                        "all samples are of the control group /: the kernel tells the groups of one hierarchy alone, that of \
                           perf_event or version 2, and nothing is divided there (/proc/self/cgroup names all of them)",
                    ]);
                }
            }
            Dimension::Label(key) if !identities().any(|identity| identity.labels.get(key).is_some()) => {
                let keys: BTreeSet<&str> =
                    identities().flat_map(|identity| identity.labels.iter()).map(|(key, _)| key).collect();
                let known = match keys.is_empty() {
                    true => format!("record with --label {key}=VALUE"),
                    false => format!("there are {}", Vec::from_iter(keys).join(", ")),
                };
                warn([format!("no recording has a label {key}: {known}")]);
            }
            _ => {}
        }
    }
}

/// One word of `--by`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ByWord<Rows> {
    /// What a row stands for.
    Rows(Rows),
    /// What tells recordings apart.
    Recordings(Dimension),
}

/// Parses a word of `--by`.
#[derive(Debug, Clone)]
pub struct ByParser<Rows>(std::marker::PhantomData<Rows>);

impl<Rows> ByParser<Rows> {
    /// For these kinds of rows.
    pub fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

const LABEL: &str = "label:KEY";

/// What tells recordings apart, for help.
fn dimensions() -> impl Iterator<Item = PossibleValue> {
    let help = |dimension: &Dimension| match dimension {
        Dimension::Node => "Machines, of several recordings",
        Dimension::Rank => "Ranks of MPI or of a Slurm step",
        Dimension::Job => "Jobs and their steps",
        Dimension::Pod => "Kubernetes pods",
        Dimension::Cgroup => "Control groups: containers, services (`eprof record -a`, or --all-cgroups)",
        Dimension::Label(_) => "",
    };
    let named = Dimension::NAMED.into_iter().map(move |by| PossibleValue::new(by.kind()).help(help(&by)));
    named
        .chain([PossibleValue::new(LABEL).help("Values of a label that was given to `eprof record --label`")])
}

impl<Rows: ValueEnum + Send + Sync + 'static> TypedValueParser for ByParser<Rows> {
    type Value = ByWord<Rows>;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Self::Value, Error> {
        let text = value.to_string_lossy();
        let rows = Rows::from_str(&text, false).ok().map(ByWord::Rows);
        rows.or_else(|| text.parse().ok().map(ByWord::Recordings)).ok_or_else(|| {
            let mut error = Error::new(ErrorKind::InvalidValue).with_cmd(command);
            let names = self.possible_values().into_iter().flatten().map(|value| value.get_name().to_owned());
            error.insert(ContextKind::ValidValue, ContextValue::Strings(names.collect()));
            error.insert(ContextKind::InvalidValue, ContextValue::String(text.into_owned()));
            if let Some(arg) = arg {
                error.insert(ContextKind::InvalidArg, ContextValue::String(arg.to_string()));
            }
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let rows = Rows::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        Some(Box::new(rows.chain(dimensions())))
    }
}

/// A dimension alone, where nothing else tells rows apart.
pub fn dimension() -> impl TypedValueParser<Value = Dimension> {
    DimensionParser
}

#[derive(Debug, Clone)]
struct DimensionParser;

impl TypedValueParser for DimensionParser {
    type Value = Dimension;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Dimension, Error> {
        ByParser::<Nothing>::new().parse_ref(command, arg, value).map(|word| match word {
            ByWord::Recordings(dimension) => dimension,
            ByWord::Rows(nothing) => match nothing {},
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(dimensions()))
    }
}

/// No kind of rows.
#[derive(Debug, Clone, Copy)]
enum Nothing {}

impl ValueEnum for Nothing {
    fn value_variants<'a>() -> &'a [Self] {
        &[]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        None
    }
}
