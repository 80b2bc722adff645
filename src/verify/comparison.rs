//! What eprof says beside what is true: arithmetic alone.

use serde::{Deserialize, Serialize};

use super::arrangement::Arrangement;
use super::kernels::Kernel;

/// One kernel in one arrangement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The kernel.
    pub kernel: Kernel,
    /// Joules that it took.
    pub truth_joules: f64,
    /// Their standard error.
    pub truth_std_error: f64,
    /// Joules that a report gives its function.
    pub eprof_joules: f64,
    /// Their standard error, as the report says.
    pub eprof_std_error: f64,
    /// What it would be given if all code drew the same power.
    pub by_time_joules: f64,
}

/// One arrangement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// How the kernels were arranged.
    pub arrangement: Arrangement,
    /// How long they were recorded.
    pub seconds: f64,
    /// The recorded process.
    pub pid: u32,
    /// What the meters counted above the idle machine, without what the report gives to other functions, other
    /// processes and eprof.
    pub measured_joules: f64,
    /// What the kernels alone take in the CPU time that they had.
    pub alone_joules: f64,
    /// What the kernels alone take for the work that they did: less, by what it cost to be recorded and to have company.
    pub work_joules: f64,
    /// The kernels.
    pub rows: Vec<Row>,
}

/// What is known of a kernel's part in an arrangement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// The kernel.
    pub kernel: Kernel,
    /// Joules that it takes alone in the CPU time that it had.
    pub alone_joules: f64,
    /// Joules that it takes alone for the work that it did.
    pub work_joules: f64,
    /// Their standard error, as a share of them: of what it takes alone, and of chance in that time.
    pub alone_error: f64,
    /// Joules that a report gives its function.
    pub eprof_joules: f64,
    /// Their standard error.
    pub eprof_std_error: f64,
    /// Its share of the time of all functions.
    pub time_share: f64,
    /// Joules of all functions.
    pub attributed: f64,
}

/// All in a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Mean of the errors' sizes, as a share of the truth, without what the truth's own uncertainty adds to them.
    pub mean_error: f64,
    /// The largest, as it was found.
    pub worst_error: f64,
    /// What the truth is uncertain by, as a share of it: root mean square.
    #[serde(default)]
    pub truth_error: f64,
    /// Of how many rows the bars of 95 % hold the truth.
    pub held: usize,
    /// Rows.
    pub rows: usize,
    /// Mean error of a profile by time.
    pub by_time_mean_error: f64,
    /// Its largest.
    pub by_time_worst_error: f64,
}

impl Row {
    /// How far eprof is off, as a share of the truth.
    pub fn error(&self) -> f64 {
        self.eprof_joules / self.truth_joules - 1.0
    }

    /// How far a profile by time is off, as a share of the truth.
    pub fn error_by_time(&self) -> f64 {
        self.by_time_joules / self.truth_joules - 1.0
    }

    /// Whether the two agree within the bars of 95 % of both together.
    pub fn holds(&self) -> bool {
        let std_error = self.truth_std_error.hypot(self.eprof_std_error);
        (self.eprof_joules - self.truth_joules).abs() <= 1.96 * std_error
    }
}

impl Comparison {
    /// Holds the parts of an arrangement against what the meter counted in it, `measured` joules above the idle machine.
    ///
    /// Where kernels run one at a time, each takes what it takes alone. Where they run at once, the meter's total is
    /// divided in proportion to that. In either case the meter's total and the sum of the kernels alone differ by
    /// some share `d`, and nobody knows which kernel that falls to: the truth of each has `d / √3` as another
    /// standard error, that of a value anywhere within ± `d`.
    pub fn new(arrangement: Arrangement, seconds: f64, pid: u32, measured: f64, parts: &[Part]) -> Self {
        let alone: f64 = parts.iter().map(|part| part.alone_joules).sum();
        let scale = if arrangement.is_shared() && alone > 0.0 { measured / alone } else { 1.0 };
        let differs = if alone > 0.0 { (measured / alone - 1.0).abs() / 3f64.sqrt() } else { 0.0 };
        let row = |part: &Part| {
            let truth = scale * part.alone_joules;
            Row {
                kernel: part.kernel,
                truth_joules: truth,
                truth_std_error: truth * part.alone_error.hypot(differs),
                eprof_joules: part.eprof_joules,
                eprof_std_error: part.eprof_std_error,
                by_time_joules: part.time_share * part.attributed,
            }
        };
        let rows = parts.iter().map(row).collect();
        let work_joules = parts.iter().map(|part| part.work_joules).sum();
        Self { arrangement, seconds, pid, measured_joules: measured, alone_joules: alone, work_joules, rows }
    }
}

impl Verdict {
    /// Of all rows; `None` without any.
    pub fn of(comparisons: &[Comparison]) -> Option<Self> {
        let rows = || comparisons.iter().flat_map(|comparison| &comparison.rows);
        let count = rows().count();
        let uncertain: f64 = rows().map(|row| (row.truth_std_error / row.truth_joules).powi(2)).sum();
        // Errors and those of the truth are independent: their squares add up. A sum of so many squares is itself known
        // to √(2 / rows) of it: as much is left to eprof, lest it be taken for better than was seen.
        let mean = |error: fn(&Row) -> f64| {
            let (sum, squares) = rows()
                .map(error)
                .fold((0.0, 0.0), |(sum, squares), error| (sum + error.abs(), squares + error * error));
            let of_eprof = (squares - uncertain).max((2.0 / count as f64).sqrt() * uncertain).min(squares);
            let part = if squares > 0.0 { (of_eprof / squares).sqrt() } else { 1.0 };
            sum * part / count as f64
        };
        let worst = |error: fn(&Row) -> f64| rows().map(|row| error(row).abs()).fold(0.0, f64::max);
        (count > 0).then(|| Self {
            mean_error: mean(Row::error),
            worst_error: worst(Row::error),
            truth_error: (uncertain / count as f64).sqrt(),
            held: rows().filter(|row| row.holds()).count(),
            rows: count,
            by_time_mean_error: mean(Row::error_by_time),
            by_time_worst_error: worst(Row::error_by_time),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURNS: Arrangement = Arrangement::Turns { seconds: 0.005 };

    fn part(kernel: Kernel, alone_joules: f64, eprof_joules: f64) -> Part {
        Part {
            kernel,
            alone_joules,
            work_joules: 0.9 * alone_joules,
            alone_error: 0.003,
            eprof_joules,
            eprof_std_error: 0.1,
            time_share: 0.5,
            attributed: 30.0,
        }
    }

    #[test]
    fn kernels_in_turns_take_what_they_take_alone() {
        let parts = [part(Kernel::Quotients, 10.0, 10.3), part(Kernel::Products, 20.0, 19.0)];
        // The meter says a per cent more than the two alone.
        let all = Comparison::new(TURNS, 3.0, 7, 30.3, &parts);
        let [quotients, products] = all.rows[..] else { panic!("two rows") };
        assert_eq!((quotients.truth_joules, products.truth_joules, all.alone_joules), (10.0, 20.0, 30.0));
        assert!((all.work_joules - 27.0).abs() < 1e-12);
        assert!((quotients.error() - 0.03).abs() < 1e-12 && (products.error() + 0.05).abs() < 1e-12);
        let expected = 20.0 * 0.003f64.hypot(0.01 / 3f64.sqrt());
        assert!((products.truth_std_error - expected).abs() < 1e-12);
        // 1.96 x hypot(0.065, 0.1) = 0.234; the other 1.96 x hypot(0.13, 0.1) = 0.32.
        assert!(!quotients.holds() && !products.holds());
        assert!((quotients.error_by_time() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn at_once_they_share_what_the_meter_counted() {
        let parts = [part(Kernel::Quotients, 10.0, 8.0), part(Kernel::Products, 20.0, 16.0)];
        let all = Comparison::new(Arrangement::Siblings, 3.0, 7, 24.0, &parts);
        let truths: Vec<f64> = all.rows.iter().map(|row| row.truth_joules).collect();
        assert!((truths[0] - 8.0).abs() < 1e-12 && (truths[1] - 16.0).abs() < 1e-12);
        assert!(all.rows.iter().all(|row| row.holds() && row.error().abs() < 1e-12));
        // They took a fifth less than alone, and either may have taken all of it.
        assert!((all.rows[1].truth_std_error / 16.0 - 0.003f64.hypot(0.2 / 3f64.sqrt())).abs() < 1e-12);
    }

    #[test]
    fn the_verdict_is_of_all_rows() {
        let exact = Comparison::new(TURNS, 1.0, 7, 10.0, &[part(Kernel::Table, 10.0, 10.0)]);
        let off = Comparison::new(TURNS, 1.0, 7, 20.0, &[part(Kernel::Memory, 20.0, 18.0)]);
        let verdict = Verdict::of(&[exact, off]).expect("two rows");
        // Errors of 0 and 10 %, the truth is known to 0.3 %: 0.01 - 2 x 0.003^2 of 0.01.
        let part = (1.0 - 2.0 * 0.003f64.powi(2) / 0.01).sqrt();
        assert!(
            (verdict.mean_error - 0.05 * part).abs() < 1e-12 && (verdict.worst_error - 0.1).abs() < 1e-12
        );
        assert_eq!((verdict.held, verdict.rows), (1, 2));
        assert!((verdict.truth_error - 0.003).abs() < 1e-12);
        // By time 15 J of 10 and of 20: 50 and -25 %.
        let part = (1.0 - 2.0 * 0.003f64.powi(2) / 0.3125).sqrt();
        assert!((verdict.by_time_mean_error - 0.375 * part).abs() < 1e-12);
        assert_eq!(Verdict::of(&[]), None);
    }

    /// Where a kernel's watts are known to 4 % alone, errors of 3 and 5 % are what there would be without any of eprof's.
    #[test]
    fn what_the_truth_is_uncertain_by_is_no_error_of_eprofs() {
        let row = |alone_joules: f64, eprof_joules: f64| {
            let part = Part { alone_error: 0.04, ..part(Kernel::Table, alone_joules, eprof_joules) };
            Comparison::new(TURNS, 1.0, 7, alone_joules, &[part])
        };
        let found = |errors: &[f64]| {
            let comparisons: Vec<_> = errors.iter().map(|error| row(10.0, 10.0 * (1.0 + error))).collect();
            Verdict::of(&comparisons).expect("rows").mean_error
        };
        // No less than the root of √(2 / 2) of the uncertainty's squares: then hardly anything is taken out.
        assert!((found(&[0.03, -0.05]) - 0.04 * (0.0032 / 0.0034f64).sqrt()).abs() < 1e-12);
        // Of eight rows half stays: 0.04 x √0.5.
        let many = [0.03, -0.05].repeat(4);
        assert!((found(&many) - 0.04 * (0.5 * 0.0016 / 0.0017f64).sqrt()).abs() < 1e-12);
        // Errors of 10 % are eprof's for the most part.
        assert!((found(&[0.1; 8]) - 0.1 * (1.0 - 0.16f64).sqrt()).abs() < 1e-12);
        assert_eq!(found(&[0.0; 8]), 0.0);
    }
}
