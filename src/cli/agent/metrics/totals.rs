//! What windows add up to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eprof::hardware::Method;
use eprof::identity::Dimension;
use eprof::live::Window;
use eprof::profile::{Balance, DomainEnergy, Profile};
use eprof::report::{Grouping, Options, Report, ReportError, Row, RowKind, Selection};
use eprof::symbolize::Symbols;

use super::series::{BoundedSeries, OTHER, Part, above_zero};

/// Texts of labels are no longer, in columns.
const LONGEST_LABEL: usize = 200;

/// A domain by its name, and how its joules were found: that may change when a meter goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DomainKey {
    pub name: String,
    pub method: &'static str,
}

/// A function by name and module.
pub(super) type FunctionKey = (Arc<str>, Arc<str>);

/// All windows of a domain.
#[derive(Debug)]
pub(super) struct DomainTotals {
    pub balance: Balance,
    /// Of windows that could not be written.
    pub dropped: f64,
    pub parent: Option<String>,
    pub source: String,
    /// Of domains that no other contains.
    pub rows: Option<Rows>,
}

#[derive(Debug)]
pub(super) struct Rows {
    pub functions: BoundedSeries<FunctionKey>,
    pub cgroups: BoundedSeries<Arc<str>>,
}

/// How many functions and control groups have counters of their own, in each domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub functions: usize,
    pub cgroups: usize,
}

/// Everything that is counted.
#[derive(Debug)]
pub struct Metrics {
    bounds: Bounds,
    pub(super) domains: BTreeMap<DomainKey, DomainTotals>,
    /// Time of all windows.
    pub window_time: Duration,
    pub windows_written: u64,
    pub windows_dropped: u64,
    pub windows_removed: u64,
    /// When the last window ended.
    pub last_window: Option<SystemTime>,
    /// What the windows take on disk.
    pub disk_bytes: u64,
    /// Records that the kernel had no room for.
    pub lost_records: u64,
    pub slept: Duration,
    /// Between the end of a recording and the first window of the next one.
    pub unrecorded: Duration,
    pub clock_steps: u64,
    pub reloads: u64,
    pub failed_reloads: u64,
    /// Recordings that were begun anew.
    pub restarts: u64,
    /// What was sent elsewhere, by kind of receiver.
    pub(super) sent: BTreeMap<&'static str, Sent>,
}

/// What became of windows that are sent to a receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Windows that it has.
    pub windows: u64,
    /// Times that it was away or did not take them.
    pub failures: u64,
    /// Windows that it will not get.
    pub given_up: u64,
    /// Windows that wait, as counted for the page; nothing where they cannot be counted.
    pub waiting: Option<u64>,
}

impl Metrics {
    /// None yet.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            domains: BTreeMap::new(),
            window_time: Duration::ZERO,
            windows_written: 0,
            windows_dropped: 0,
            windows_removed: 0,
            last_window: None,
            disk_bytes: 0,
            lost_records: 0,
            slept: Duration::ZERO,
            unrecorded: Duration::ZERO,
            clock_steps: 0,
            reloads: 0,
            failed_reloads: 0,
            restarts: 0,
            sent: BTreeMap::new(),
        }
    }

    /// What is sent to this kind of receiver.
    pub fn sent(&mut self, kind: &'static str) -> &mut Sent {
        self.sent.entry(kind).or_default()
    }

    /// Other bounds. Counters that there are stay.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
        for rows in self.domains.values_mut().filter_map(|domain| domain.rows.as_mut()) {
            rows.functions.set_bound(bounds.functions);
            rows.cgroups.set_bound(bounds.cgroups);
        }
    }

    /// Adds what a window's joules were made of.
    pub fn add(&mut self, joules: WindowJoules, was_written: bool) {
        self.window_time += joules.time;
        match was_written {
            true => self.windows_written += 1,
            false => self.windows_dropped += 1,
        }
        let Bounds { functions, cgroups } = self.bounds;
        for domain in joules.domains {
            let new = || DomainTotals {
                balance: Balance::default(),
                dropped: 0.0,
                parent: None,
                source: String::new(),
                rows: None,
            };
            let totals = self.domains.entry(domain.key).or_insert_with(new);
            totals.balance = totals.balance + domain.balance;
            (totals.parent, totals.source) = (domain.parent, domain.source);
            if !was_written {
                totals.dropped += domain.balance.measured.as_joules();
            }
            if let Some((of_functions, of_cgroups)) = domain.rows {
                let whole = domain.balance.attributed.as_joules();
                let rows = totals.rows.get_or_insert_with(|| Rows {
                    functions: BoundedSeries::new(functions),
                    cgroups: BoundedSeries::new(cgroups),
                });
                rows.functions.add(of_functions, whole);
                rows.cgroups.add(of_cgroups, whole);
            }
        }
    }
}

/// What a window adds.
pub struct WindowJoules {
    pub(super) time: Duration,
    pub(super) domains: Vec<OfDomain>,
}

pub(super) struct OfDomain {
    pub key: DomainKey,
    pub balance: Balance,
    pub parent: Option<String>,
    pub source: String,
    pub rows: Option<FunctionsAndGroups>,
}

impl WindowJoules {
    /// Of a window.
    ///
    /// # Errors
    /// None: all that is asked for is in the profile.
    pub fn of(window: &Window) -> Result<Self, ReportError> {
        let Window { profile, symbols, .. } = window;
        let tops: Vec<usize> = profile.top_domains().map(|(index, _)| index).collect();
        let mut domains = Vec::new();
        for (index, domain) in profile.domains.iter().enumerate() {
            let rows = if tops.contains(&index) { Some(rows(profile, symbols, domain)?) } else { None };
            domains.push(OfDomain {
                key: DomainKey { name: domain.info.name.clone(), method: method(domain) },
                balance: counted(domain.balance),
                parent: domain.info.parent.clone(),
                source: domain.info.source.clone(),
                rows,
            });
        }
        Ok(Self { time: Duration::from_nanos(profile.duration.as_nanos()), domains })
    }
}

fn method(domain: &DomainEnergy) -> &'static str {
    match domain.info.method {
        Method::Measured => "measured",
        Method::Estimated => "estimated",
    }
}

/// Without what rounding left below zero.
fn counted(balance: Balance) -> Balance {
    let above =
        |joules: eprof::units::Joules| eprof::units::Joules::from_joules(above_zero(joules.as_joules()));
    Balance {
        measured: above(balance.measured),
        attributed: above(balance.attributed),
        static_energy: above(balance.static_energy),
        other_processes: above(balance.other_processes),
        recorder: above(balance.recorder),
        lost: above(balance.lost),
    }
}

pub(super) type FunctionsAndGroups = (Vec<Part<FunctionKey>>, Vec<Part<Arc<str>>>);

/// A domain's joules by function and by control group.
fn rows(
    profile: &Profile,
    symbols: &Symbols,
    domain: &DomainEnergy,
) -> Result<FunctionsAndGroups, ReportError> {
    let selection = Selection { domain: Some(domain.info.name.clone()), ..Selection::default() };
    let report = |by, dimensions| {
        let options = Options { by, dimensions, selection: selection.clone(), ..Options::default() };
        let mut report = Report::new(profile, symbols, &options)?;
        report.rows.retain(|row| row.kind == RowKind::Samples);
        Ok::<_, ReportError>(report.rows)
    };
    fn part<K>(key: K, row: &Row) -> Part<K> {
        Part { key, joules: row.own.joules.as_joules(), samples: row.own.samples }
    }
    let short = |text: &str| Arc::<str>::from(text.chars().take(LONGEST_LABEL).collect::<String>());
    let functions = report(Grouping::Function, Vec::new())?;
    let functions = functions.iter().map(|row| {
        // Without a module is what stands for all others.
        let module = row.module.as_ref().map(|module| module.as_str()).filter(|module| !module.is_empty());
        part((short(row.name.as_str()), short(module.unwrap_or("[none]"))), row)
    });
    let cgroups = report(Grouping::Recording, vec![Dimension::Cgroup])?;
    let cgroups = cgroups.iter().map(|row| {
        let group = row.values.first().unwrap_or(&row.name).as_str();
        part(short(if group == OTHER { "/other" } else { group }), row)
    });
    Ok((functions.collect(), cgroups.collect()))
}
