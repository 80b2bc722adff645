//! Joules and event counts of intervals of time, as a fit takes them in.

/// Of an interval whose counts are taken to be known, at most this share of CPUs' time had its records lost. Code differs in
/// power by some tenths: counts of other code are off by some thousandths then.
const MOST_GUESSED: f64 = 0.01;

/// What happened in one interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Which static power applies: the package's number, where several are fitted together.
    pub static_term: usize,
    /// It begins where the interval before it in the list ends: what is not known of that moment is
    /// missing in one and too much in the other.
    pub follows: bool,
    /// Its length in seconds.
    pub seconds: f64,
    /// Measured joules.
    pub joules: f64,
    /// Event counts.
    pub counts: Vec<f64>,
    /// Cycles, by whatever event tells them: how busy the CPUs were. 0 where nothing tells.
    pub busy: f64,
    /// The share of its CPUs' time in which records were lost, so that counts are as they were just before.
    pub guessed: f64,
}

/// The intervals of one recording and one kind of domain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Intervals {
    /// The intervals, in the order of time, one static term after the other.
    pub rows: Vec<Interval>,
    /// For each event, the variance of one interval's count that comes from sampling.
    pub count_noise: Vec<f64>,
    /// The same of samples that came late: few intervals have all of it.
    pub late_noise: Vec<f64>,
    /// The variance of one interval's joules that comes from both of its edges, as far as the meter's pace tells, in square
    /// joules.
    pub edge_noise: f64,
    /// Of so many pieces of code of equal weight the intervals consist, whose power a model may miss; `None` where nothing
    /// tells.
    pub pieces_of_code: Option<f64>,
    /// Number of static terms.
    pub static_terms: usize,
    /// So many successive intervals are long enough that what is unknown of their ends is small beside
    /// what lies between. A model is judged by such sums.
    pub judged_together: usize,
}

impl Intervals {
    /// Joules of all intervals.
    pub fn joules(&self) -> f64 {
        self.rows.iter().map(|row| row.joules).sum()
    }

    /// Length of all intervals in seconds.
    pub fn seconds(&self) -> f64 {
        self.rows.iter().map(|row| row.seconds).sum()
    }

    /// Variance by sampling of an interval's joules at these costs of events.
    pub fn noise_of(&self, joules_per_event: &[f64]) -> f64 {
        let of = |variances: &[f64]| -> f64 {
            joules_per_event.iter().zip(variances).map(|(cost, variance)| cost * cost * variance).sum()
        };
        of(&self.count_noise) + of(&self.late_noise)
    }

    /// The same with only these events.
    pub fn select(&self, events: &[usize]) -> Self {
        let of =
            |values: &[f64]| events.iter().map(|&event| values.get(event).copied().unwrap_or(0.0)).collect();
        Self {
            rows: self.rows.iter().map(|row| Interval { counts: of(&row.counts), ..row.clone() }).collect(),
            count_noise: of(&self.count_noise),
            late_noise: of(&self.late_noise),
            ..*self
        }
    }

    /// So many successive intervals as one. Where a stretch without gaps ends earlier, fewer.
    pub fn merged(&self, together: usize) -> Self {
        let mut rows: Vec<Interval> = Vec::with_capacity(self.rows.len() / together.max(1) + 1);
        let mut of_last = 0;
        for row in &self.rows {
            match rows.last_mut() {
                Some(last) if row.follows && of_last < together => {
                    last.take_in(row);
                    of_last += 1;
                }
                _ => {
                    rows.push(row.clone());
                    of_last = 1;
                }
            }
        }
        Self {
            rows,
            count_noise: self.count_noise.clone(),
            late_noise: self.late_noise.clone(),
            edge_noise: self.edge_noise,
            pieces_of_code: self.pieces_of_code,
            static_terms: self.static_terms,
            judged_together: self.judged_together.div_ceil(together.max(1)),
        }
    }

    /// As many as can be judged, each long enough for it.
    pub fn for_judging(&self) -> Self {
        self.merged(self.judged_together.max(1))
    }

    /// All intervals of a static term as one.
    pub fn pooled(&self) -> Self {
        let mut rows: Vec<Interval> = Vec::new();
        for row in &self.rows {
            match rows.iter_mut().find(|sum| sum.static_term == row.static_term) {
                Some(sum) => sum.take_in(row),
                None => rows.push(Interval { follows: false, ..row.clone() }),
            }
        }
        Self { rows, judged_together: 1, ..self.clone() }
    }

    /// The intervals whose counts are known: a model may be judged by these alone.
    pub fn known(&self) -> Self {
        self.part(|at| self.rows[at].is_known())
    }

    /// The intervals of which `is_chosen` holds by their position; what is left out is a gap.
    pub fn part(&self, is_chosen: impl Fn(usize) -> bool) -> Self {
        let mut rows = Vec::new();
        let mut last_is_chosen = false;
        for (at, row) in self.rows.iter().enumerate() {
            let chosen = is_chosen(at);
            if chosen {
                rows.push(Interval { follows: row.follows && last_is_chosen, ..row.clone() });
            }
            last_is_chosen = chosen;
        }
        Self {
            rows,
            count_noise: self.count_noise.clone(),
            late_noise: self.late_noise.clone(),
            edge_noise: self.edge_noise,
            pieces_of_code: self.pieces_of_code,
            static_terms: self.static_terms,
            judged_together: self.judged_together,
        }
    }
}

impl Interval {
    /// Its counts are known.
    pub(super) fn is_known(&self) -> bool {
        self.guessed <= MOST_GUESSED
    }

    fn take_in(&mut self, other: &Self) {
        let seconds = self.seconds + other.seconds;
        self.guessed =
            (self.guessed * self.seconds + other.guessed * other.seconds) / seconds.max(f64::MIN_POSITIVE);
        self.seconds += other.seconds;
        self.joules += other.joules;
        self.busy += other.busy;
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(follows: &[bool]) -> Intervals {
        let row = |(at, follows): (usize, &bool)| Interval {
            static_term: 0,
            follows: *follows,
            seconds: 1.0,
            joules: at as f64,
            counts: vec![1.0, 2.0],
            busy: 1.0,
            guessed: 0.0,
        };
        Intervals {
            rows: follows.iter().enumerate().map(row).collect(),
            judged_together: 2,
            static_terms: 1,
            ..Intervals::default()
        }
    }

    #[test]
    fn sums_and_noise_by_hand() {
        let mut intervals = rows(&[false, true, true]);
        intervals.rows[1].static_term = 1;
        intervals.rows[2].seconds = 3.0;
        (intervals.rows[0].guessed, intervals.rows[2].guessed) = (0.5, 0.1);
        (intervals.count_noise, intervals.late_noise) = (vec![4.0, 0.0], vec![1.0, 2.0]);
        assert_eq!((intervals.seconds(), intervals.joules()), (5.0, 3.0));
        assert_eq!(intervals.noise_of(&[3.0, 10.0]), 9.0 * 5.0 + 100.0 * 2.0);
        assert_eq!(intervals.select(&[1, 0, 5]).late_noise, [2.0, 1.0, 0.0]);
        let pooled = intervals.pooled();
        assert_eq!((pooled.rows.len(), pooled.judged_together), (2, 1));
        let Interval { seconds, joules, busy, guessed, .. } = pooled.rows[0];
        assert_eq!((seconds, joules, busy), (4.0, 2.0, 2.0));
        assert!((guessed - (0.5 + 0.3) / 4.0).abs() < 1e-12);
        assert!(!pooled.rows[1].follows);
        // Of three together the fourth begins anew.
        let merged = rows(&[true; 7]).merged(3);
        assert_eq!(merged.rows.iter().map(|row| row.seconds).collect::<Vec<_>>(), [3.0, 3.0, 1.0]);
        assert_eq!((merged.judged_together, rows(&[true; 2]).merged(0).rows.len()), (1, 2));
    }

    #[test]
    fn a_hundredth_may_be_guessed() {
        let mut intervals = rows(&[false, true, true]);
        (intervals.rows[0].guessed, intervals.rows[1].guessed) = (0.01, 0.011);
        let known = intervals.known();
        assert_eq!(known.rows.iter().map(|row| row.joules).collect::<Vec<_>>(), [0.0, 2.0]);
        assert!(!known.rows[1].follows);
    }

    #[test]
    fn what_is_merged_has_no_gap_in_it() {
        let merged = rows(&[false, true, true, false, true]).for_judging();
        let joules: Vec<f64> = merged.rows.iter().map(|row| row.joules).collect();
        assert_eq!(joules, [1.0, 2.0, 7.0]);
        assert_eq!(merged.rows[0].counts, [2.0, 4.0]);
        assert!(merged.rows[1].follows && !merged.rows[2].follows);
        assert_eq!(merged.joules(), rows(&[false; 5]).joules());
    }

    #[test]
    fn a_part_does_not_follow_what_was_left_out() {
        let part = rows(&[false, true, true, true]).part(|at| at != 1);
        let follows: Vec<bool> = part.rows.iter().map(|row| row.follows).collect();
        assert_eq!(follows, [false, false, true]);
    }

    #[test]
    fn events_are_selected_by_their_positions() {
        assert_eq!(rows(&[false]).select(&[1]).rows[0].counts, [2.0]);
    }
}
