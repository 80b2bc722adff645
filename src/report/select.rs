//! Which part of a profile a report is made from, and what weighs.

use regex::Regex;

use super::error::ReportError;
use super::missing_joules::MissingJoules;
use crate::profile::{
    Cell, GPU_LAUNCH_EVENT, Profile, ProfileMethod, Summed, Thread, Variance, VarianceSums,
};
use crate::symbolize::Symbols;
use crate::units::{Joules, Nanoseconds, Watts};

/// What rows and frames are weighed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Energy.
    Joules,
    /// Number of samples.
    Samples,
    /// Sum of the samples' periods: how often the event happened.
    Count,
}

impl Weight {
    /// The name of the weight in options and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Joules => "joules",
            Self::Samples => "samples",
            Self::Count => "count",
        }
    }
}

/// The samples and joules that a report is made from. The default is all of them, weighed by joules
/// where there are any.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// What weighs; by default joules where the profile has them, else samples.
    pub weight: Option<Weight>,
    /// Only the joules of the domain of this name; by default all domains that no other contains.
    pub domain: Option<String>,
    /// Only samples of the event of this name.
    pub event: Option<String>,
    /// Only samples of threads whose name matches.
    pub thread: Option<Regex>,
    /// Only samples of processes whose name matches.
    pub process: Option<Regex>,
    /// Only samples of this process or thread. Names tell no process from another of the same program.
    pub task: Option<TaskIds>,
    /// Only samples with a function whose name matches anywhere in their stack.
    pub through: Option<Regex>,
}

impl Selection {
    /// Whether all samples are meant, by what weighs as a rule.
    pub(super) fn is_default(&self) -> bool {
        self.weight.is_none() && self.domain.is_none() && !self.is_of_a_part()
    }

    /// Whether samples are left out.
    pub(super) fn is_of_a_part(&self) -> bool {
        let Self { weight: _, domain: _, event, thread, process, task, through } = self;
        event.is_some() || thread.is_some() || process.is_some() || task.is_some() || through.is_some()
    }
}

/// A process, or one of its threads, by the numbers that the kernel gave it. Processes of several machines may have one
/// number: all of them are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskIds {
    /// Process id.
    pub pid: u32,
    /// Thread id; `None` for all threads of the process.
    pub tid: Option<u32>,
}

impl TaskIds {
    /// Whether a thread is meant.
    pub(super) fn includes(self, thread: &Thread) -> bool {
        thread.pid == self.pid && self.tid.is_none_or(|tid| thread.tid == tid)
    }
}

/// Sums over samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Energy of the selected domains.
    pub joules: Joules,
    /// Variance of `joules` in square joules.
    pub variance: f64,
    /// The part of `variance` that comes of chance, from sample to sample: it grows as the joules do, and not as their
    /// square.
    pub by_chance: f64,
    /// The part of `variance` of causes that all recordings share, see [`Variance::common`].
    pub common: f64,
    /// Number of samples.
    pub samples: u64,
    /// Sum of the samples' periods.
    pub count: u64,
    /// Time that the samples stand for.
    pub time: Nanoseconds,
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.joules += other.joules;
        self.variance += other.variance;
        self.by_chance += other.by_chance;
        self.common += other.common;
        self.samples += other.samples;
        self.count = self.count.saturating_add(other.count);
        self.time += other.time;
    }
}

impl std::iter::Sum for Totals {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::default(), |mut sum, value| {
            sum += value;
            sum
        })
    }
}

impl Totals {
    /// Energy alone, of what was not sampled.
    pub fn of_joules(joules: Joules) -> Self {
        Self { joules, ..Self::default() }
    }

    /// One standard error of the energy.
    pub fn standard_error(&self) -> Joules {
        Joules::from_joules(self.variance.max(0.0).sqrt())
    }

    /// One standard error of the energy of causes that this recording has alone: what is held against another recording is
    /// as uncertain as that, in both, for watts that were assumed are the same in both.
    pub fn error_alone(&self) -> Joules {
        Joules::from_joules((self.variance - self.common).max(0.0).sqrt())
    }

    /// The variance of what `weight` asks for, of causes that this recording has alone. How often code is met by samples is a
    /// matter of chance: a number of them has itself as its variance, or less, where they come at a steady pace. `None` where
    /// it is not known.
    pub fn variance_alone(&self, weight: Weight) -> Option<f64> {
        let (samples, count) = (self.samples as f64, self.count as f64);
        match weight {
            Weight::Joules => (self.joules > Joules::ZERO).then(|| self.error_alone().as_joules().powi(2)),
            Weight::Samples => Some(samples),
            Weight::Count => (self.samples > 0).then(|| count * count / samples),
        }
    }

    /// Adds the variance of the energy, and what it comes of.
    pub(super) fn add_variance(&mut self, variance: Variance) {
        let Variance { all, by_chance, common } = variance;
        self.variance += all;
        self.by_chance += by_chance;
        self.common += common;
    }

    /// Power while these samples' code ran; `None` where no event told the time.
    pub fn watts(&self) -> Option<Watts> {
        (self.time > Nanoseconds::ZERO).then(|| self.joules / self.time)
    }

    /// One standard error of the power: that of the joules, over the time. `None` where none is known.
    pub fn watts_error(&self) -> Option<Watts> {
        let is_known = self.time > Nanoseconds::ZERO && self.variance > 0.0;
        is_known.then(|| self.standard_error() / self.time)
    }

    /// The sum that `weight` asks for, in joules or as a number.
    pub fn weight(&self, weight: Weight) -> f64 {
        match weight {
            Weight::Joules => self.joules.as_joules(),
            Weight::Samples => self.samples as f64,
            Weight::Count => self.count as f64,
        }
    }

    /// Nothing was summed.
    pub fn is_empty(&self) -> bool {
        self.samples == 0 && self.joules == Joules::ZERO
    }
}

/// A [`Selection`] resolved against a profile: indices and flags instead of names.
#[derive(Clone)]
pub(super) struct Selected {
    pub weight: Weight,
    /// The domains that are summed have joules.
    pub has_joules: bool,
    /// Columns of the profile's joules that are summed.
    pub domains: Vec<usize>,
    /// Joules are those of a domain that was asked for.
    pub is_of_one_domain: bool,
    /// Cells of one event, some threads or some stacks were left out.
    pub partial: bool,
    event: Option<u32>,
    /// The event of launches of GPU kernels, unless it was asked for: its time is not the CPUs'.
    without_time: Option<u32>,
    threads: Vec<bool>,
}

impl Selected {
    /// Finds what a selection names. Stacks (`through`) are left to the caller, who knows names of functions.
    pub fn resolve(selection: &Selection, profile: &Profile) -> Result<Self, ReportError> {
        let domains = match &selection.domain {
            None => profile.top_domains().map(|(index, _)| index).collect(),
            Some(name) => vec![
                find(name, profile.domains.iter().map(|domain| &domain.info.name))
                    .map_err(|known| ReportError::NoSuchDomain { name: name.clone(), known })?,
            ],
        };
        let event = match &selection.event {
            None => None,
            Some(name) => {
                let index = find(name, profile.events.iter().map(|event| &event.name))
                    .map_err(|known| ReportError::NoSuchEvent { name: name.clone(), known })?;
                Some(index as u32)
            }
        };
        let energy: Joules = domains.iter().map(|&domain| profile.domains[domain].balance.measured).sum();
        let has_joules = profile.method() != ProfileMethod::None && energy > Joules::ZERO;
        let weight = match selection.weight {
            Some(Weight::Joules) if !has_joules => {
                return Err(ReportError::NoJoules(MissingJoules::in_profile(profile)));
            }
            Some(weight) => weight,
            None if tells_nothing(profile, event) => Weight::Count,
            None if has_joules => Weight::Joules,
            None => Weight::Samples,
        };
        let matches =
            |pattern: &Option<Regex>, name: &str| pattern.as_ref().is_none_or(|regex| regex.is_match(name));
        let threads = profile
            .threads
            .iter()
            .map(|thread| {
                matches(&selection.thread, &thread.name)
                    && matches(&selection.process, &thread.process_name)
                    && selection.task.is_none_or(|task| task.includes(thread))
            })
            .collect();
        let partial = selection.is_of_a_part();
        let launches = profile.events.iter().position(|event| event.name == GPU_LAUNCH_EVENT);
        let without_time = launches.map(|index| index as u32).filter(|_| event.is_none());
        let is_of_one_domain = selection.domain.is_some();
        Ok(Self { weight, has_joules, domains, is_of_one_domain, partial, event, without_time, threads })
    }

    /// The same selection, of the samples of some threads alone.
    pub fn of_threads(&self, takes: impl Fn(usize) -> bool) -> Self {
        let threads = (0..self.threads.len()).map(|thread| self.threads[thread] && takes(thread)).collect();
        Self { threads, partial: true, ..self.clone() }
    }

    /// Adds to what the variances of joules follow from, in the columns `domains`, the selected cells of a part of the
    /// profile; `row_of` tells for each cell its row, `symbols` the function that it is of.
    pub fn add_variances(
        &self,
        part: &Profile,
        symbols: &Symbols,
        domains: &[usize],
        row_of: impl Fn(usize) -> Option<usize>,
        sums: &mut VarianceSums<'_>,
    ) {
        let summed = Summed { profile: part, domains, takes: &|_, cell| self.takes(cell) };
        sums.add(&summed, row_of, |cell| Some(code_of(part, symbols, cell)));
    }

    /// The selected cells: index, cell and sums.
    pub fn cells<'p>(&'p self, profile: &'p Profile) -> impl Iterator<Item = (usize, &'p Cell, Totals)> + 'p {
        profile
            .cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| self.takes(cell))
            .map(|(index, cell)| (index, cell, self.totals(profile, index, cell)))
    }

    /// The sums of the selected cells by stack: one entry per stack of the profile.
    pub fn totals_by_stack(&self, profile: &Profile) -> Vec<Totals> {
        let mut sums = vec![Totals::default(); profile.stacks.len()];
        for (_, cell, totals) in self.cells(profile) {
            sums[cell.stack.0 as usize] += totals;
        }
        sums
    }

    /// For each stack of the profile whether a selected cell has it that is not empty.
    pub fn stacks(&self, profile: &Profile) -> Vec<bool> {
        let mut taken = vec![false; profile.stacks.len()];
        for (_, cell, totals) in self.cells(profile) {
            taken[cell.stack.0 as usize] |= !totals.is_empty();
        }
        taken
    }

    /// The sums of all cells, selected or not.
    pub fn all(&self, profile: &Profile) -> Totals {
        let cells = profile.cells.iter().enumerate();
        cells.map(|(index, cell)| self.totals(profile, index, cell)).sum()
    }

    fn takes(&self, cell: &Cell) -> bool {
        self.event.is_none_or(|event| event == cell.event) && self.threads[cell.thread.0 as usize]
    }

    fn totals(&self, profile: &Profile, index: usize, cell: &Cell) -> Totals {
        let row = index * profile.domains.len();
        let time = if self.without_time == Some(cell.event) { Nanoseconds::ZERO } else { cell.time };
        let mut totals = Totals { samples: cell.samples, count: cell.count, time, ..Totals::default() };
        for &domain in &self.domains {
            totals.joules += profile.cell_joules[row + domain];
            totals.variance += profile.cell_variances.get(row + domain).copied().unwrap_or(0.0);
        }
        totals
    }
}

/// A number of the function that the code of a cell lies in, whatever was put into it; 0 of code without a name.
pub(super) fn code_of(part: &Profile, symbols: &Symbols, cell: usize) -> usize {
    let innermost = part.stacks.innermost(part.cells[cell].stack);
    let function = innermost.and_then(|address| symbols.frames(address).first());
    function.map_or(0, |frame| frame.function.0 as usize + 1)
}

/// Whether the samples of an event, or of all, tell nothing of where joules went: how often it happened is what they tell.
fn tells_nothing(profile: &Profile, event: Option<u32>) -> bool {
    let Some(division) = &profile.division else { return false };
    let of_event = event.and_then(|event| Some((event as usize, profile.events.get(event as usize)?)));
    match of_event {
        Some((index, event)) => division.tells_nothing(index, &event.name),
        None => division.in_place_of_time.is_some(),
    }
}

/// The index of a name, or the list of all names.
fn find<'a>(name: &str, names: impl Iterator<Item = &'a String> + Clone) -> Result<usize, String> {
    names.clone().position(|known| known == name).ok_or_else(|| {
        let known: Vec<&str> = names.map(String::as_str).collect();
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Watts that were assumed of two recordings are no reason for a change from one to the other.
    #[test]
    fn what_a_recording_has_alone_is_without_what_all_share() {
        let mut totals = Totals::of_joules(Joules::from_joules(10.0));
        totals.add_variance(Variance { all: 36.25, by_chance: 0.09, common: 36.0 });
        totals.add_variance(Variance { all: 64.0, by_chance: 0.0, common: 64.0 });
        assert_eq!((totals.variance, totals.by_chance, totals.common), (100.25, 0.09, 100.0));
        assert_eq!(totals.error_alone(), Joules::from_joules(0.5));
        // Sums may differ in their last bits.
        totals.common = 100.26;
        assert_eq!(totals.error_alone(), Joules::ZERO);
    }
}
