//! How sure the joules of a row are.
//!
//! Six things make them unsure, and their variances add up:
//!
//! - **Sampling.** A sample stands for all events since the one before it, whoever they were of. Where
//!   code runs long, only the samples at its two ends are wrong, by a uniform part of a quantum each:
//!   a twelfth of its square. Where code changes within a sampling period, samples fall by chance, as in
//!   an urn. In between, take the row's being sampled for a process that switches on and off at random:
//!   its autocorrelation from one sample to the next, `x`, follows from how often two samples in a row
//!   and two samples apart differ, `x = d2 / d1 - 1`, and the variance of the count against the truth is
//!   `d1 / (2 (1 - x)) * ((1 + x) / (1 - x) + 2 / ln x)`, which goes from `d1 / 12` to `d1 / 2`. (The
//!   variance of the sum of a sampled exponentially correlated process less its integral.)
//!   Samples that came late, one right after another, are all taken to be of what ran then: they are wrong together
//!   ([`ErrorTerms::late`]).
//!   Code that comes back at nearly equal times may fall into step with the samples: then samples some
//!   way apart agree more often than chance would have it, and each that does brings as much more.
//! - **Lost records.** What they would have told is a row of its own. The other rows are as if a part of the time had not been
//!   looked at: their joules hold for the whole, scaled down, as far as what ran then is what ran else
//!   ([`LostStretches`](super::LostStretches)).
//! - **The model.** Its coefficients have a covariance; how a row's joules depend on each of them was
//!   added up bucket by bucket.
//! - **What the model leaves unexplained.** Power that no sampled event tells of is off by code, whatever the coefficients
//!   are, by as much as intervals' joules are off ([`DomainDivision::unexplained`]), and more where several pieces of code take
//!   turns within an interval; where that cannot be seen, by as much as models are elsewhere.
//!   Buckets have measured joules: of code that fills them alone nothing is off. Where others run in the same bucket, it
//!   takes from them or gives to them.
//! - **Assumed watts**, where no meter counted. They may be off, of all rows alike
//!   ([`DomainInfo::error_of_watts`](crate::hardware::DomainInfo::error_of_watts)); and since an estimate gives all CPU
//!   time the same watts, a row is off by as much as its code differs from the average ([`EQUAL_WATTS_ERROR`]).
//! - **The meter.** The first and the last reading are as old as the meter's refresh. Between readings energy
//!   is taken to flow evenly, which no number of samples makes true.
//!
//! A row's error is that of its samples, whatever other rows a table has: what depends on how samples are grouped (how much code
//! differs in power, how long it keeps at one thing, how alone it is in its buckets) is found once for the whole recording, from
//! its functions. So a program has one error in tables of functions, processes and threads, and with all others left out. Errors of
//! rows do not add up as variances, though: what samples of neighbours took from each other cancels out in their sum, and what
//! the model is off by does not.

use super::transitions::{FARTHEST, Pairs, Transitions, TransitionsOfRow};
use super::unexplained_code::{Buckets, RowOfCode, difference};
use super::{Cell, DomainDivision, ErrorTerms, Profile, SampleSequence};
use crate::hardware::Method;
use crate::units::{Joules, Nanoseconds};

/// The joules that errors are asked of: some domains' columns, of some cells.
pub struct Summed<'p> {
    /// The profile, or a part of it.
    pub profile: &'p Profile,
    /// Columns of the profile's joules that are summed.
    pub domains: &'p [usize],
    /// Whether a cell, of this place in the table, is summed at all.
    pub takes: &'p dyn Fn(usize, &Cell) -> bool,
}

impl Summed<'_> {
    /// Joules of a cell in the summed domains.
    fn joules(&self, cell: usize) -> Joules {
        self.domains.iter().map(|&domain| self.profile.joules(cell)[domain]).sum()
    }
}

/// The correlation of all events counts as much as so many transitions of one.
const OF_ALL_EVENTS: f64 = 2.0;
/// Of meters whose refresh is not known.
pub const USUAL_REFRESH: Nanoseconds = Nanoseconds::from_millis(1);
/// What a row is off by however many samples there are, as a share of its joules: in simulated recordings of
/// 40 s, where sampling would leave 0.03 % of error, 0.1 to 0.2 % are found.
const BETWEEN_READINGS: f64 = 0.0015;

/// One standard error of joules that follow CPU time alone, as a share of them: in simulated recordings of functions
/// that take 8 to 13 W on a core, joules by time are 19 to 20 % off on average.
pub const EQUAL_WATTS_ERROR: f64 = 0.2;

/// Sums of one row, by event.
#[derive(Debug, Clone, Default)]
struct RowSums {
    joules: Vec<f64>,
    samples: Vec<f64>,
    /// Neighbours in the sequence that differ in being of the row.
    transitions: Vec<f64>,
    /// The same for samples two apart.
    second_transitions: Vec<f64>,
    /// The same for samples 2, 3 .. [`FARTHEST`] apart, of all events together.
    farther_transitions: [f64; FARTHEST - 1],
    /// Samples in the sequence.
    in_sequence: f64,
    /// By domain, then parameter.
    gradient: Vec<f64>,
    /// Joules that no meter counted.
    estimated: f64,
    /// What they are off by if the assumed watts are off by a standard error.
    by_watts: f64,
    /// CPU time.
    seconds: f64,
    /// Joules, by domain.
    by_domain: Vec<f64>,
}

/// What the variances of rows of one recording follow from, added up part by part.
pub(super) struct RecordingVariances<'p> {
    /// What is known of the whole.
    profile: &'p Profile,
    terms: &'p ErrorTerms,
    domains: Vec<usize>,
    rows: Grouped,
    /// What the whole recording ran, function by function, whatever the rows are.
    code: Grouped,
}

/// Sums of groups of cells.
#[derive(Default)]
struct Grouped {
    sums: Vec<Option<RowSums>>,
    /// The group of each cell of the sequence, or of each number where parts tell their cells.
    of_sequence: Vec<u32>,
}

/// The group of what is in none.
const NO_ROW: u32 = u32::MAX;

impl Grouped {
    /// The sums of a group, made by `empty`.
    fn sum(&mut self, group: u32, empty: impl Fn() -> RowSums) -> &mut RowSums {
        let group = group as usize;
        if group >= self.sums.len() {
            self.sums.resize(group + 1, None);
        }
        self.sums[group].get_or_insert_with(empty)
    }

    /// A part of the profile has these samples of the sequence, and its cells these groups.
    fn add_sequence(&mut self, sequence: &SampleSequence, of_cell: Vec<u32>) {
        let Some(entries) = sequence.entries() else {
            self.of_sequence = of_cell;
            return;
        };
        for &(number, cell) in entries {
            let number = number as usize;
            if number >= self.of_sequence.len() {
                self.of_sequence.resize(number + 1, NO_ROW);
            }
            self.of_sequence[number] = of_cell.get(cell as usize).copied().unwrap_or(NO_ROW);
        }
    }

    /// Counts what follows what in the sequence.
    fn count_transitions(&mut self, terms: &ErrorTerms) -> Transitions {
        let Self { sums, of_sequence } = self;
        let is_summed = |group: &usize| sums.get(*group).is_some_and(Option::is_some);
        let group_of = |cell| of_sequence.get(cell as usize).map(|group| *group as usize).filter(is_summed);
        let events = terms.parameters.saturating_sub(1);
        let transitions = Transitions::count(&terms.sequence, events, sums.len(), group_of);
        for (group, sum) in sums.iter_mut().enumerate() {
            if let Some(sum) = sum {
                sum.add_transitions(&transitions.of_row(group));
            }
        }
        transitions
    }
}

impl<'p> RecordingVariances<'p> {
    /// Of some domains of a profile, which may come in parts. `None` if the profile does not tell.
    pub fn new(profile: &'p Profile, domains: &[usize]) -> Option<Self> {
        let (terms, domains) = (profile.errors.as_ref()?, domains.to_vec());
        Some(Self { profile, terms, domains, rows: Grouped::default(), code: Grouped::default() })
    }

    /// Adds a part of the profile, or all of it; `row_of` tells for each cell its row, and `code_of` a number of the function
    /// that it is of.
    pub fn add(
        &mut self,
        part: &Summed<'_>,
        row_of: impl Fn(usize) -> Option<usize>,
        code_of: impl Fn(usize) -> Option<usize>,
    ) {
        let (profile, parameters) = (part.profile, self.terms.parameters);
        let Some(terms) = &profile.errors else { return };
        let columns = profile.domains.len();
        let number = |group: Option<usize>| group.map_or(NO_ROW, |group| group as u32);
        let cells = || profile.cells.iter().enumerate();
        let code_of_cell: Vec<u32> = cells().map(|(index, _)| number(code_of(index))).collect();
        // A cell that is not looked at is in no row of the sequence either.
        let row_of_taken = |index, cell: &Cell| (part.takes)(index, cell).then(|| row_of(index)).flatten();
        let row_of_cell: Vec<u32> = cells().map(|(index, cell)| number(row_of_taken(index, cell))).collect();
        let events = profile.events.len();
        for (index, cell) in cells() {
            let code = code_of_cell[index];
            if code != NO_ROW {
                let sum = self.code.sum(code, || RowSums::new(events, 0, 0));
                sum.add_cell(cell, part.joules(index));
            }
        }
        for (index, cell) in cells() {
            let row = row_of_cell[index];
            if row == NO_ROW {
                continue;
            }
            let joules = part.joules(index);
            let sum = self.rows.sum(row, || RowSums::new(events, self.domains.len(), parameters));
            sum.add_cell(cell, joules);
            let event = cell.event as usize;
            for (position, &domain) in self.domains.iter().enumerate() {
                let start = (index * columns + domain) * parameters;
                let joules = profile.cell_joules[index * columns + domain].as_joules();
                let info = &self.profile.domains[domain].info;
                if info.method == Method::Estimated {
                    sum.estimated += joules;
                    sum.by_watts += joules * info.error_of_watts();
                }
                sum.by_domain[position] += joules;
                let Some(changes) = terms.sensitivities.get(start..start + parameters) else { continue };
                let gradient = &mut sum.gradient[position * parameters..][..parameters];
                gradient.iter_mut().zip(changes).for_each(|(sum, change)| *sum += f64::from(*change));
                let cost = coefficient(profile, domain, event);
                if cost > 0.0 {
                    gradient[event] += joules / cost;
                }
            }
        }
        self.rows.add_sequence(&terms.sequence, row_of_cell);
        self.code.add_sequence(&terms.sequence, code_of_cell);
    }

    /// The variance of each of `rows` rows.
    pub fn finish(self, rows: usize) -> Vec<RowVariance> {
        let Self { profile, terms, domains, rows: mut of_rows, mut code } = self;
        of_rows.sums.resize(rows, None);
        if of_rows.sums.iter().all(Option::is_none) {
            return vec![RowVariance::default(); rows];
        }
        let transitions = of_rows.count_transitions(terms);
        let across = code.count_transitions(terms).across();
        let edges = meter_error(profile, &domains);
        let by_sampling =
            |sum: &RowSums| sum.by_sampling(terms.sequence.share(), &terms.late, transitions.pairs);
        let all_code = || code.sums.iter().flatten();
        let whole: f64 = all_code().map(RowSums::all_joules).sum();
        let functions: Vec<RowOfCode<'_>> = all_code().map(|sum| sum.of_code(by_sampling(sum))).collect();
        let (difference, buckets) = (difference(&functions), Buckets::of(profile, &functions));
        let agreements: f64 = all_code().map(|sum| sum.all_joules() * sum.agreement(transitions.pairs)).sum();
        let agreement = if whole > 0.0 { agreements / whole } else { 0.0 };
        let unexplained: Vec<f64> = domains
            .iter()
            .map(|&domain| match of_domain(profile, domain) {
                Some(DomainDivision { unexplained: Some(seen), believed_unexplained, .. }) => {
                    // Where each CPU runs what another has just left, intervals differ by less than chance would have it.
                    let as_functions_differ = difference * seen.of_difference;
                    let by_intervals = buckets.unmixed(seen.of_joules, seen.seconds, agreement);
                    let is_mixed = buckets.are_mixed(seen.seconds, agreement);
                    let believed = if is_mixed { *believed_unexplained } else { 0.0 };
                    by_intervals.max(as_functions_differ).max(believed)
                }
                Some(model) => model.believed_unexplained,
                None => 0.0,
            })
            .collect();
        let lost = lost(profile, &domains);
        let by_losses = |row: usize, sum: &RowSums| {
            let part = sum.in_sequence / transitions.pairs.samples.max(1.0);
            let agreement = sum.agreement(transitions.pairs);
            lost.powi(2) * terms.lost.variance(&transitions.ends, row, part, agreement, across)
        };
        let variance = |(row, sum): (usize, &Option<RowSums>)| {
            let Some(sum) = sum else { return RowVariance::default() };
            let joules = sum.all_joules();
            let share = if whole > 0.0 { joules / whole } else { 0.0 };
            let of_others = (1.0 - share) * (1.0 - buckets.purity(sum.agreement(transitions.pairs)));
            let by_code: f64 =
                sum.by_domain.iter().zip(&unexplained).map(|(joules, share)| joules * share).sum();
            let by_meter = (edges * share).powi(2) + (BETWEEN_READINGS * joules).powi(2);
            let of_chance = by_sampling(sum) + by_losses(row, sum);
            let own = of_chance + by_model(sum, terms, &domains) + by_meter + (by_code * of_others).powi(2);
            RowVariance {
                own,
                by_chance: of_chance,
                common: [EQUAL_WATTS_ERROR * sum.estimated, sum.by_watts],
            }
        };
        of_rows.sums.iter().enumerate().map(variance).collect()
    }
}

fn of_domain(profile: &Profile, domain: usize) -> Option<&DomainDivision> {
    profile.division.as_ref().and_then(|division| division.domains.get(domain)?.as_ref())
}

/// The joules that were lost in some domains, scaled down as all others are that stand for the whole.
fn lost(profile: &Profile, domains: &[usize]) -> f64 {
    let balances = domains.iter().map(|&domain| &profile.domains[domain].balance);
    let (seen, lost) = balances.fold((Joules::ZERO, Joules::ZERO), |(seen, lost), balance| {
        (seen + balance.attributed + balance.other_processes + balance.recorder, lost + balance.lost)
    });
    let all = seen + lost;
    if all > Joules::ZERO { lost.as_joules() * (seen / all) } else { 0.0 }
}

/// The variance of a row of one recording.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowVariance {
    /// Of what goes wrong in each recording by itself, in square joules.
    pub own: f64,
    /// The part of `own` that comes of chance from sample to sample, and of lost records.
    pub by_chance: f64,
    /// Joules that a row is off by, one standard error, of causes that all recordings share: code that differs from the
    /// average in power does so in all of them, and what was assumed of one machine was assumed of the others.
    pub common: [f64; 2],
}

fn coefficient(profile: &Profile, domain: usize, event: usize) -> f64 {
    of_domain(profile, domain).and_then(|model| model.joules_per_event.get(event)).copied().unwrap_or(0.0)
}

impl RowSums {
    fn of_code(&self, sampling_variance: f64) -> RowOfCode<'_> {
        let (seconds, joules) = (self.seconds, self.all_joules());
        RowOfCode { seconds, joules, sampling_variance, samples: &self.samples }
    }

    fn all_joules(&self) -> f64 {
        self.joules.iter().sum()
    }

    /// From one sample to the next, of being of the row.
    fn autocorrelation(&self) -> f64 {
        let all: f64 = self.transitions.iter().sum();
        if all > 0.0 { self.farther_transitions[0] / all - 1.0 } else { 1.0 }
    }

    /// The correlation of neighbouring samples in being of the row. Code that takes turns in time has less of it than
    /// [`RowSums::autocorrelation`] has, which takes it for a process without memory.
    fn agreement(&self, pairs: Pairs) -> f64 {
        let part = self.in_sequence / pairs.samples.max(1.0);
        let by_chance = 2.0 * part * (1.0 - part);
        let [neighbours, ..] = pairs.apart;
        if by_chance <= 0.0 || neighbours <= 0.0 {
            return 1.0;
        }
        let differ: f64 = self.transitions.iter().sum();
        (1.0 - differ / neighbours / by_chance).clamp(0.0, 1.0)
    }

    fn new(events: usize, domains: usize, parameters: usize) -> Self {
        Self {
            joules: vec![0.0; events],
            samples: vec![0.0; events],
            transitions: vec![0.0; events],
            second_transitions: vec![0.0; events],
            farther_transitions: [0.0; FARTHEST - 1],
            in_sequence: 0.0,
            gradient: vec![0.0; domains * parameters],
            estimated: 0.0,
            by_watts: 0.0,
            seconds: 0.0,
            by_domain: vec![0.0; domains],
        }
    }

    fn add_cell(&mut self, cell: &Cell, joules: Joules) {
        let event = cell.event as usize;
        self.joules[event] += joules.as_joules();
        self.samples[event] += cell.samples as f64;
        self.seconds += cell.time.as_secs_f64();
    }

    fn add_transitions(&mut self, transitions: &TransitionsOfRow) {
        let of_events =
            transitions.of_events.iter().zip(&mut self.transitions).zip(&mut self.second_transitions);
        for (([first, second], transitions), second_transitions) in of_events {
            *transitions += first;
            *second_transitions += second;
            self.farther_transitions[0] += second;
        }
        self.farther_transitions[1..]
            .iter_mut()
            .zip(transitions.farther)
            .for_each(|(sum, transitions)| *sum += transitions);
        self.in_sequence += transitions.samples;
    }

    fn by_sampling(&self, share_of_sequence: f64, late: &[f64], pairs: Pairs) -> f64 {
        let all: f64 = self.transitions.iter().sum();
        let autocorrelation = self.autocorrelation();
        let in_step = self.in_step(&pairs, all, autocorrelation);
        let events =
            self.joules.iter().zip(&self.samples).zip(self.transitions.iter().zip(&self.second_transitions));
        let late = late.iter().copied().chain(std::iter::repeat(1.0));
        events
            .zip(late)
            .filter(|(((_, samples), _), _)| **samples > 0.0)
            .map(|(((joules, samples), (transitions, second)), late)| {
                // A rare event falls by chance into the runs that a frequent one follows; of few samples
                // nothing is known but what holds for the others.
                let correlation =
                    (second + OF_ALL_EVENTS * (1.0 + autocorrelation)) / (transitions + OF_ALL_EVENTS) - 1.0;
                let share = weight_of_a_jump(correlation) + in_step;
                // A row that no jump was seen of has at least begun and ended.
                let transitions = (transitions / share_of_sequence.max(f64::MIN_POSITIVE)).max(1.0);
                (joules / samples).powi(2) * share * transitions * late
            })
            .sum()
    }

    /// What is to be added to the variance of a jump because samples farther apart agree more than a process
    /// without memory would have it.
    fn in_step(&self, pairs: &Pairs, transitions: f64, autocorrelation: f64) -> f64 {
        // Share of pairs that would differ if samples were independent.
        let part = self.in_sequence / pairs.samples.max(1.0);
        let by_chance = 2.0 * part * (1.0 - part);
        let [neighbours, farther @ ..] = pairs.apart;
        if by_chance <= 0.0 || transitions <= 0.0 || farther.iter().any(|count| *count <= 0.0) {
            return 0.0;
        }
        let correlation = |differ: f64, pairs: f64| 1.0 - differ / pairs / by_chance;
        // Three standard errors of a correlation, and what other streams' rates may feign.
        let accident = 3.0 / pairs.samples.sqrt() + 0.2;
        let found: [f64; FARTHEST - 1] =
            std::array::from_fn(|at| correlation(self.farther_transitions[at], farther[at]));
        // The slower code changes, the more do samples agree that are near to each other, and in phases of a
        // program at all distances: only what comes back is in step.
        let (mut lowest, mut of_process) = (correlation(transitions, neighbours), autocorrelation.max(0.0));
        let mut excess = 0.0;
        for found in found {
            of_process *= autocorrelation.max(0.0);
            let expected = lowest.max(of_process).max(0.0);
            if found > expected + accident {
                excess += found - expected;
            }
            lowest = lowest.min(found);
        }
        // The variance of a sum is that of its terms times one and twice their correlations.
        excess * by_chance * neighbours / transitions
    }
}

/// The variance that one jump brings, in squares of a quantum, for an autocorrelation from one sample to
/// the next.
fn weight_of_a_jump(autocorrelation: f64) -> f64 {
    const URN: f64 = 0.5;
    const LONG_RUNS: f64 = 1.0 / 12.0;
    match autocorrelation {
        x if x < 1e-4 => URN,
        // The difference below loses its digits.
        x if x > 0.98 => LONG_RUNS,
        x => ((1.0 + x) / (1.0 - x) + 2.0 / x.ln()) / (2.0 * (1.0 - x)),
    }
}

fn by_model(sum: &RowSums, terms: &ErrorTerms, domains: &[usize]) -> f64 {
    let size = terms.parameters;
    let of_domain = |(position, &domain): (usize, &usize)| {
        let gradient = &sum.gradient[position * size..][..size];
        let covariance =
            terms.covariances.get(domain).filter(|covariance| covariance.len() == size * size)?;
        let product: f64 = (0..size)
            .map(|row| {
                let of_row = &covariance[row * size..][..size];
                gradient[row] * of_row.iter().zip(gradient).map(|(a, b)| a * b).sum::<f64>()
            })
            .sum();
        Some(product.max(0.0))
    };
    domains.iter().enumerate().filter_map(of_domain).sum()
}

/// Standard error of all measured joules, in joules: each end is wrong by a uniform part of what flows in a refresh.
pub fn meter_error(profile: &Profile, domains: &[usize]) -> f64 {
    if profile.duration == Nanoseconds::ZERO {
        return 0.0;
    }
    let variance: f64 = domains
        .iter()
        .map(|&domain| {
            let domain = &profile.domains[domain];
            let refresh = domain.info.refresh.unwrap_or(USUAL_REFRESH);
            let step = (domain.balance.measured / profile.duration * refresh)
                .max(domain.info.resolution.unwrap_or(Joules::ZERO))
                .as_joules();
            step * step / 6.0
        })
        .sum();
    variance.sqrt()
}

#[cfg(test)]
#[path = "standard_errors_tests.rs"]
mod tests;
