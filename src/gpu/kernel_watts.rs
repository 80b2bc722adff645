//! What kernels draw that take turns within a meter's refreshes: a model, fitted to the refreshes themselves.
//!
//! Between two moves of its meter a GPU worked on several kernels, in other parts each time. One number for each kernel, its
//! watts beyond idling, is to explain the joules of all moves. Where the parts hardly differ, moves tell nothing, and
//! kernels keep the watts of all together: a kernel is taken to differ from these by a half, which is what the
//! fit has to outweigh (ridge regression).
//!
//! What a meter shows is late, and smeared: it takes time until a kernel's power is seen in full, and the rest of it is seen
//! while the next one runs. How late and how much is not known, and turns of kernels look like other turns of
//! other kernels that are seen later or smeared more. So all delays and smears that may be are fitted, and each counts as it
//! explains the moves (a mean over models). What they do not agree upon is in the errors.
//!
//! What no fit explains is not like chance: where it comes and goes at a pace, kernels that take turns at that pace are told by as much
//! less. The errors are those of noise that is as loud everywhere as this is at its loudest.

use nalgebra::{DMatrix, DVector};

use super::meter_clock::{Clock, Sighting};
use super::meter_response::{Busy, Columns, KINDS, SMEARS, Shown};
use super::queue::Outstanding;
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// Two moves of the meter as they were seen, and what it counted from one to the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenStep {
    pub start: Timestamp,
    pub end: Timestamp,
    /// The last reading that did not show the end.
    pub unchanged: Timestamp,
    pub energy: Joules,
}

/// The fit.
#[derive(Debug, Clone)]
pub(super) struct KernelWatts {
    columns: Columns,
    /// Watts of each column, as multiples of the mean.
    relative: Vec<f64>,
    covariance: DMatrix<f64>,
    /// By which part of its joules a move is off what all of them have in common, one standard deviation.
    from_turn_to_turn: f64,
    clock: Clock,
    /// Seconds from when something was drawn to the move that begins to show it.
    delay: f64,
    /// Time constant in seconds with which it is shown then.
    smear: f64,
    origin: Timestamp,
}

/// Delays that are tried, in refreshes: the clock's own moves are known to a part of a refresh only, so that one before
/// its move may be what is seen.
const DELAYS: (f64, f64) = (-0.3, 1.0);
/// How far apart.
const DELAY_STEP: f64 = 0.02;
/// Moves that the fit looks at: these many tell more than enough.
const MOST_MOVES: usize = 1000;
/// The same, times the columns twice: what a fit costs.
const MOST_WORK: usize = 1_200_000;
/// With fewer nothing is fitted.
const FEWEST_MOVES: usize = 10;
/// A move comes early or late by this part of a refresh, or the fit says how much more.
const UNSTEADY: f64 = 0.005;
/// As much is believed before the fit has said anything.
const FIRST_UNSTEADY: f64 = 0.02;
/// What explains the moves worse than the best by this logarithm, though noise is white, counts for nothing where it is not.
const HOPELESS: f64 = 100.0;

impl KernelWatts {
    /// By which part of the mean kernels' watts differ, before anything is known of them.
    pub const DIFFER: f64 = 0.5;
    /// No kernel draws less than this part of the mean.
    const LEAST: f64 = 0.05;

    /// `None` if the meter does not move regularly, or nothing took turns.
    pub fn fit(
        steps: &[SeenStep],
        launches: &[Outstanding],
        idle: Watts,
        refresh: Nanoseconds,
    ) -> Option<Self> {
        let steps = &steps[..steps.len().min(MOST_MOVES)];
        let origin = steps.first()?.start;
        let sightings: Vec<Sighting> = steps
            .iter()
            .map(|step| Sighting { since: step.start, unchanged: step.unchanged, seen: step.end })
            .collect();
        let clocks = Clock::all_of(&sightings, refresh);
        let clock = *clocks.first()?;
        let (busy, columns) = Busy::of(clock, clock.seconds(steps.last()?.end), launches);
        if columns.count < 2 {
            return None;
        }
        let steps = &steps[..steps.len().min(MOST_WORK / (KINDS * columns.count).pow(2))];
        let mut tries = Vec::new();
        for smear in SMEARS {
            let shown = busy.shown(smear);
            for clock in &clocks {
                tries.extend(Try::all_of(&busy, &shown, *clock, smear, steps, idle));
            }
        }
        let period = clocks[0].period;
        let least = UNSTEADY * period;
        let mut unsteady = FIRST_UNSTEADY * period;
        for _ in 0..3 {
            unsteady = Fitted::best(&tries, unsteady)?.left(&tries).max(least);
            let likely = Fitted::best(&tries, unsteady)?.likely;
            let is_hopeless =
                |of: &Try| Fitted::of(0, of, unsteady).is_none_or(|fit| fit.likely < likely - HOPELESS);
            tries.retain(|of| !is_hopeless(of));
        }
        let best = Fitted::best(&tries, unsteady)?;
        let loudest = loudest(&tries[best.number].unexplained(&best.more));
        let loud = unsteady * loudest.sqrt();
        let together = Together::of(&tries, loud)?;
        let relative = together.more.iter().map(|more| (1.0 + more).max(Self::LEAST)).collect();
        let best = &tries[together.best];
        let (clock, smear) = (best.clock, best.smear * best.clock.period);
        let (covariance, delay) = (together.covariance, best.delay - smear);
        let from_turn_to_turn = loud / period;
        Some(Self { columns, relative, covariance, from_turn_to_turn, clock, delay, smear, origin })
    }

    /// The time constant with which the meter follows what is drawn.
    pub fn smear(&self) -> Nanoseconds {
        Nanoseconds::from_nanos((self.smear * 1e9) as u64)
    }

    /// The watts of an owner beyond idling, as a multiple of the mean.
    pub fn relative(&self, owner: u32) -> f64 {
        self.relative.get(self.column(owner)).copied().unwrap_or(1.0)
    }

    /// The column of an owner.
    pub fn column(&self, owner: u32) -> usize {
        self.columns.of(owner)
    }

    /// Does the owner have watts together with others?
    pub fn shares_column(&self, owner: u32) -> bool {
        self.columns.is_shared(owner)
    }

    /// The variance of something that changes by so much with the relative watts of these columns.
    pub fn variance(&self, slopes: &[(usize, f64)]) -> f64 {
        let with = |(column, slope): &(usize, f64)| {
            slopes
                .iter()
                .map(|(other, of_other)| slope * of_other * self.covariance[(*column, *other)])
                .sum::<f64>()
        };
        slopes.iter().map(with).sum::<f64>().max(0.0)
    }

    /// The variance of an owner's part of a step's joules since no turn draws what another one does: what each drew more or
    /// less this time is divided as all of it is.
    pub fn variance_of_turn(&self, joules: f64, part: f64, parts: impl Iterator<Item = f64>) -> f64 {
        let all: f64 = parts.map(|part| part * part).sum();
        let of_others = all - part * part;
        (joules * part * self.from_turn_to_turn).powi(2) * ((1.0 - part).powi(2) + of_others)
    }

    /// Until when what the meter showed had been drawn, by the time at which it was seen to move and the last one at
    /// which it had not.
    pub fn moved_at(&self, unchanged: Timestamp, seen: Timestamp) -> Timestamp {
        // The first reading is no move.
        if seen <= self.origin {
            return seen;
        }
        let number = self.clock.number(unchanged, seen);
        self.clock.after(self.clock.time(number) - self.delay)
    }
}

/// One way in which the meter may be late, and what it makes of the moves.
struct Try {
    clock: Clock,
    smear: f64,
    /// Seconds on average.
    delay: f64,
    /// Seconds of each column in each move with work.
    design: DMatrix<f64>,
    /// In seconds of work at the mean: what each move is more or less than its busy time.
    more: DVector<f64>,
    gram: DMatrix<f64>,
    /// What columns and moves have in common.
    common: DVector<f64>,
}

impl Try {
    fn all_of(
        busy: &Busy,
        shown: &Shown,
        clock: Clock,
        smear: f64,
        steps: &[SeenStep],
        idle: Watts,
    ) -> Vec<Self> {
        let numbers: Vec<f64> = steps.iter().map(|step| clock.number(step.unchanged, step.end)).collect();
        let times = |row: usize| (clock.time(numbers[row - 1]), clock.time(numbers[row]));
        // A GPU without a context draws less than one that waits: only moves that work may be seen in tell something.
        let [first, last] = [DELAYS.0, DELAYS.1].map(|delay| delay * clock.period);
        let rows: Vec<usize> = (1..steps.len())
            .filter(|row| numbers[*row] > numbers[row - 1])
            .filter(|row| busy.is_busy(times(*row).0 - last, times(*row).1 - first))
            .collect();
        if rows.len() < FEWEST_MOVES {
            return Vec::new();
        }
        let joules: Vec<f64> = rows
            .iter()
            .map(|row| {
                let (start, end) = times(*row);
                (steps[*row].energy.as_joules() - idle.as_watts() * (end - start)).max(0.0)
            })
            .collect();
        let tries = ((DELAYS.1 - DELAYS.0) / DELAY_STEP).round() as usize;
        let one = |part: usize| {
            let delay = (DELAYS.0 + part as f64 * DELAY_STEP) * clock.period;
            let columns = KINDS * busy.columns;
            let mut by_row = vec![0.0; rows.len() * columns];
            for (row, to) in rows.iter().zip(by_row.chunks_exact_mut(columns)) {
                // A move that no reading showed is in the next one.
                let moves = (numbers[*row] - numbers[row - 1]) as usize;
                for missed in 0..moves.min(FEWEST_MOVES) {
                    shown.add(times(*row).1 - clock.period * missed as f64 - delay, to);
                }
            }
            Self::of(clock, smear, delay, DMatrix::from_row_slice(rows.len(), columns, &by_row), &joules)
        };
        (0..=tries).filter_map(one).collect()
    }

    fn of(clock: Clock, smear: f64, delay: f64, design: DMatrix<f64>, joules: &[f64]) -> Option<Self> {
        // All work, slow and fast.
        let busy = design.columns(0, design.ncols() / KINDS * 2).column_sum();
        let mean = joules.iter().sum::<f64>() / busy.sum();
        if !(mean > 0.0 && mean.is_finite()) {
            return None;
        }
        let more = joules.iter().zip(busy.iter()).map(|(joules, busy)| joules / mean - busy);
        let more = DVector::from_iterator(joules.len(), more);
        let (gram, common) = (design.tr_mul(&design), design.tr_mul(&more));
        Some(Self { clock, smear, delay, design, more, gram, common })
    }

    fn unexplained(&self, more: &DVector<f64>) -> DVector<f64> {
        &self.more - &self.design * more
    }
}

/// What a try says, if moves are off by so much.
struct Fitted {
    /// Of the try.
    number: usize,
    /// How much more than the mean each column draws, as a part of it.
    more: DVector<f64>,
    covariance: DMatrix<f64>,
    /// The logarithm of how likely the moves are, less what is the same for all tries.
    likely: f64,
    /// Columns that the moves told something of.
    told: f64,
}

impl Fitted {
    fn of(number: usize, of: &Try, unsteady: f64) -> Option<Self> {
        let columns = of.common.len();
        let price = (unsteady / KernelWatts::DIFFER).powi(2);
        let factors = (&of.gram + DMatrix::identity(columns, columns) * price).cholesky()?;
        let more = factors.solve(&of.common);
        let left = of.more.norm_squared() - of.common.dot(&more);
        // Of normal noise, and columns that differ from the mean as they are believed to.
        let volume = factors.ln_determinant() - columns as f64 * price.ln();
        let likely = -0.5 * (left / unsteady.powi(2) + volume);
        let inverse = factors.inverse();
        let told = columns as f64 - price * inverse.trace();
        Some(Self { number, more, covariance: inverse * unsteady.powi(2), likely, told })
    }

    fn best(tries: &[Try], unsteady: f64) -> Option<Self> {
        let fits = tries.iter().enumerate().filter_map(|(number, of)| Self::of(number, of, unsteady));
        fits.reduce(|best, next| if next.likely > best.likely { next } else { best })
    }

    /// By how many seconds of work moves are off.
    fn left(&self, tries: &[Try]) -> f64 {
        let off = tries[self.number].unexplained(&self.more);
        (off.norm_squared() / (off.len() as f64 - self.told).max(1.0)).sqrt()
    }
}

/// The mean of what all tries say, each counting as it explains the moves, and how far apart they are.
struct Together {
    more: DVector<f64>,
    covariance: DMatrix<f64>,
    /// The try that explains most.
    best: usize,
}

impl Together {
    fn of(tries: &[Try], unsteady: f64) -> Option<Self> {
        let fits: Vec<Fitted> =
            tries.iter().enumerate().filter_map(|(number, of)| Fitted::of(number, of, unsteady)).collect();
        let best = fits.iter().max_by(|a, b| a.likely.total_cmp(&b.likely))?;
        let weights: Vec<f64> = fits.iter().map(|fit| (fit.likely - best.likely).exp()).collect();
        let all: f64 = weights.iter().sum();
        // What fast changes are shown as tells nothing of the kernels.
        let columns = best.more.len() / KINDS;
        let mut more = DVector::zeros(columns);
        for (fit, weight) in fits.iter().zip(&weights) {
            more += fit.more.rows(0, columns) * (weight / all);
        }
        let mut covariance = DMatrix::zeros(columns, columns);
        for (fit, weight) in fits.iter().zip(&weights) {
            let apart = fit.more.rows(0, columns) - &more;
            let own = fit.covariance.view((0, 0), (columns, columns));
            covariance += (own + &apart * apart.transpose()) * (weight / all);
        }
        // All together are as they are: what the mean is off by was spread over the columns as they were busy.
        let design = &tries[best.number].design;
        let busy = design.columns(0, columns).row_sum() + design.columns(columns, columns).row_sum();
        let busy = busy.transpose().normalize();
        let apart = DMatrix::identity(columns, columns) - &busy * busy.transpose();
        Some(Self { more: &apart * more, covariance: &apart * covariance * &apart, best: best.number })
    }
}

/// How much louder than on average noise is at its loudest pace, at least 1. Each pace with its neighbours, since one
/// alone is chance.
fn loudest(noise: &DVector<f64>) -> f64 {
    let count = noise.len();
    let mean = noise.mean();
    let loud: Vec<f64> = (1..=count / 2)
        .map(|pace| {
            let turn = std::f64::consts::TAU * pace as f64 / count as f64;
            let (mut sine, mut cosine) = (0.0, 0.0);
            for (number, value) in noise.iter().enumerate() {
                let angle = turn * number as f64;
                (sine, cosine) = (sine + (value - mean) * angle.sin(), cosine + (value - mean) * angle.cos());
            }
            sine.powi(2) + cosine.powi(2)
        })
        .collect();
    let average = loud.iter().sum::<f64>() / loud.len().max(1) as f64;
    if average <= 0.0 {
        return 1.0;
    }
    let with_neighbours = |pace: usize| {
        let at = |pace: usize| loud[pace.min(loud.len() - 1)];
        0.25 * at(pace.saturating_sub(1)) + 0.5 * at(pace) + 0.25 * at(pace + 1)
    };
    (0..loud.len()).map(with_neighbours).fold(average, f64::max) / average
}

#[cfg(test)]
impl KernelWatts {
    /// Owners that worked for so many seconds and draw the same, seen by a meter that moves ten times a second.
    pub fn alike(owners: &[(u32, f64)]) -> Self {
        let at = |tenth: u64| Timestamp::from_nanos(tenth * 100_000_000);
        let moved = |tenth: u64| Sighting { since: at(tenth), unchanged: at(tenth), seen: at(tenth + 1) };
        let sightings: Vec<Sighting> = (0..30).map(moved).collect();
        let clock = Clock::all_of(&sightings, Nanoseconds::from_millis(100))[0];
        let columns = Columns::by_time(&[owners.to_vec()]);
        Self {
            relative: vec![1.0; columns.count],
            covariance: DMatrix::identity(columns.count, columns.count),
            columns,
            from_turn_to_turn: 0.0,
            clock,
            delay: 0.0,
            smear: 0.0,
            origin: at(0),
        }
    }
}

#[cfg(test)]
#[path = "kernel_watts_tests.rs"]
mod tests;
