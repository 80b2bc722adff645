//! The order of a tuning: run the design, add the runs that tell most, recommend, verify.
//!
//! Running is left to a [`Bench`], so that the same search works on a real program, on a journal of an
//! interrupted tuning and on a simulated surface.

use super::TuneError;
use super::analysis::{Analysis, Question};
use super::choice::Goal;
use super::design::next_best;
use super::model::Estimate;
use super::runs::{AXES, Axis, Measurements, Responses, Run};
use super::space::{Setting, Space};
use crate::numerics::random::Random;
use crate::numerics::student::t_quantile;

/// How often the recommendation is revised after a verification that failed.
const MOST_REVISIONS: usize = 2;

/// Why a run is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// To learn the model from.
    Learn,
    /// To check the recommendation.
    Verify,
}

/// Something that can run the program at a setting.
pub trait Bench {
    /// Why it could not.
    type Error;

    /// Runs the program once and returns time and energy, or performance and efficiency.
    ///
    /// # Errors
    /// If the run failed or was interrupted; the search ends with this error.
    fn run(&mut self, setting: &Setting, purpose: Purpose) -> Result<[f64; 2], Self::Error>;

    /// Told whenever the number of runs still to come changes.
    fn expect(&mut self, _runs: usize) {}
}

/// What to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Positions of the settings to begin with; the default setting should be among them.
    pub settings: Vec<usize>,
    /// Runs of each setting.
    pub repeats: usize,
    /// Repeat a setting until the interval of its mean is at most this share of it...
    pub wanted_error: Option<f64>,
    /// ...but never more often than this.
    pub most_repeats: usize,
    /// Different settings to run in all; those beyond the first are chosen by prediction variance.
    pub budget: usize,
    /// Run all repeats of a setting at once, instead of in rounds. Rounds keep a slow drift of the
    /// machine (its temperature) from looking like an effect of the settings.
    pub grouped: bool,
    /// Whether to verify the recommendation.
    pub verify: bool,
}

/// A recommendation put to the test.
#[derive(Debug, Clone, PartialEq)]
pub struct Verification {
    /// What was recommended.
    pub setting: Setting,
    /// What the model said of each response.
    pub predicted: [Estimate; 2],
    /// Geometric means of the runs.
    pub measured: [f64; 2],
    /// Whether the measured value lies in the predicted interval; `None` where there is none.
    pub agrees: [Option<bool>; 2],
    /// Measured costs as shares of the default setting's, run in turns with the recommended one.
    pub against_default: [f64; 2],
    /// Whether the limit on the slow-down was kept; `None` if there is none.
    pub limit_kept: Option<bool>,
}

impl Verification {
    /// Whether the model was right and the limit kept, as far as that can be told.
    pub fn holds(&self) -> bool {
        !self.agrees.contains(&Some(false)) && self.limit_kept != Some(false)
    }
}

/// What a search found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The last analysis.
    pub analysis: Analysis,
    /// Each recommendation in turn; empty if the default is the best or nothing was to be verified.
    pub verifications: Vec<Verification>,
}

/// Why a search ended early.
#[derive(Debug, thiserror::Error)]
pub enum SearchError<E> {
    /// The model could not be made.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// A run failed.
    #[error(transparent)]
    Bench(E),
}

/// Runs the schedule on the bench and answers the question.
///
/// # Errors
/// A run that failed, or runs that do not determine the model.
pub fn search<B: Bench>(
    space: &Space,
    responses: Responses,
    question: &Question,
    schedule: &Schedule,
    bench: &mut B,
) -> Result<Found, SearchError<B::Error>> {
    let mut search = Search { space, responses, question, schedule, bench, runs: Vec::new() };
    search.learn_the_design()?;
    search.repeat_until_certain()?;
    search.spend_the_budget()?;
    let mut analysis = search.analyse()?;
    let mut verifications: Vec<Verification> = Vec::new();
    while schedule.verify && analysis.chosen() != analysis.default_position() {
        let (verification, runs) = search.verify(&analysis)?;
        let (holds, setting) = (verification.holds(), verification.setting.clone());
        verifications.push(verification);
        if holds || verifications.len() > MOST_REVISIONS {
            break;
        }
        search.runs.extend(runs);
        let revised = search.analyse()?;
        let same = revised.space().setting(revised.chosen()).same(&setting);
        analysis = revised;
        if same {
            break;
        }
    }
    Ok(Found { analysis, verifications })
}

struct Search<'a, B: Bench> {
    space: &'a Space,
    responses: Responses,
    question: &'a Question,
    schedule: &'a Schedule,
    bench: &'a mut B,
    runs: Vec<Run>,
}

impl<B: Bench> Search<'_, B> {
    fn learn_the_design(&mut self) -> Result<(), SearchError<B::Error>> {
        let Schedule { settings, repeats, grouped, .. } = self.schedule;
        let mut random = Random::seeded(self.question.seed);
        let mut order = Vec::with_capacity(settings.len() * repeats);
        let mut round = settings.clone();
        if *grouped {
            random.shuffle(&mut round);
            order.extend(round.iter().flat_map(|&position| std::iter::repeat_n(position, *repeats)));
        } else {
            for _ in 0..*repeats {
                random.shuffle(&mut round);
                order.extend(&round);
            }
        }
        let verifying = if self.schedule.verify { 2 * repeats } else { 0 };
        let beyond = self.schedule.budget.saturating_sub(settings.len()) * repeats + verifying;
        for (done, &position) in order.iter().enumerate() {
            self.bench.expect(order.len() - done + beyond);
            self.learn(position)?;
        }
        Ok(())
    }

    /// Repeats the settings whose mean is still too uncertain, in turns.
    fn repeat_until_certain(&mut self) -> Result<(), SearchError<B::Error>> {
        let Some(wanted) = self.schedule.wanted_error else { return Ok(()) };
        for _ in self.schedule.repeats..self.schedule.most_repeats {
            let measured = Measurements::gather(self.responses, &self.runs)?;
            let uncertain = |position: &usize| {
                let Some(measured) = measured.find(&self.space.setting(*position)) else { return false };
                AXES.iter().any(|&axis| match measured.interval(axis, self.question.level) {
                    Some((low, high)) => (high / low).sqrt() - 1.0 > wanted,
                    None => true,
                })
            };
            let again: Vec<usize> = self.schedule.settings.iter().copied().filter(uncertain).collect();
            if again.is_empty() {
                break;
            }
            for (done, &position) in again.iter().enumerate() {
                self.bench.expect(again.len() - done);
                self.learn(position)?;
            }
        }
        Ok(())
    }

    /// Runs what would tell most: of the settings that may be optimal, the least certain one.
    fn spend_the_budget(&mut self) -> Result<(), SearchError<B::Error>> {
        let mut known: Vec<bool> = vec![false; self.space.size()];
        for &position in &self.schedule.settings {
            known[position] = true;
        }
        for done in self.schedule.settings.len()..self.schedule.budget {
            let analysis = self.analyse()?;
            let model = analysis.model(Axis::Speed);
            let open = |position: &usize| !known[*position];
            let next = next_best(self.space, model, analysis.in_zone().filter(open))
                .or_else(|| next_best(self.space, model, (0..self.space.size()).filter(open)));
            let Some(next) = next else { break };
            known[next] = true;
            for repeat in 0..self.schedule.repeats {
                self.bench.expect((self.schedule.budget - done) * self.schedule.repeats - repeat);
                self.learn(next)?;
            }
        }
        Ok(())
    }

    fn learn(&mut self, position: usize) -> Result<(), SearchError<B::Error>> {
        let setting = self.space.setting(position);
        let values = self.bench.run(&setting, Purpose::Learn).map_err(SearchError::Bench)?;
        self.runs.push(Run { setting, values });
        Ok(())
    }

    fn analyse(&self) -> Result<Analysis, TuneError> {
        Analysis::new(self.space.clone(), self.responses, &self.runs, self.question.clone())
    }

    /// Runs the recommended and the default setting in turns; returns the runs as well.
    fn verify(&mut self, analysis: &Analysis) -> Result<(Verification, Vec<Run>), SearchError<B::Error>> {
        let chosen = self.space.setting(analysis.chosen());
        let default = self.space.setting(analysis.default_position());
        let mut runs = Vec::new();
        for repeat in 0..self.schedule.repeats {
            for (turn, setting) in [&default, &chosen].into_iter().enumerate() {
                self.bench.expect(2 * (self.schedule.repeats - repeat) - turn);
                let values = self.bench.run(setting, Purpose::Verify).map_err(SearchError::Bench)?;
                runs.push(Run { setting: setting.clone(), values });
            }
        }
        let again = Measurements::gather(self.responses, &runs)?;
        let mean = |setting: &Setting, axis: Axis| {
            again.find(setting).map_or(f64::NAN, |measured| measured.value(axis))
        };
        let measured = AXES.map(|axis| mean(&chosen, axis));
        let predicted = AXES.map(|axis| self.predict_again(analysis, axis));
        let agrees = [0, 1].map(|axis| {
            let interval = predicted[axis].interval;
            interval.map(|(low, high)| (low..=high).contains(&measured[axis]))
        });
        let against_default = AXES.map(|axis| {
            self.responses.cost(measured[axis as usize]) / self.responses.cost(mean(&default, axis))
        });
        let limit_kept = match self.question.goal {
            Goal::MaxSlowdown(limit) => Some(against_default[0] <= 1.0 + limit),
            Goal::LeastEnergy | Goal::EnergyDelay => None,
        };
        let verification =
            Verification { setting: chosen, predicted, measured, agrees, against_default, limit_kept };
        Ok((verification, runs))
    }

    /// The prediction for the recommended setting, with an interval that also allows for the spread
    /// of the verifying runs' mean, which a model without repeats may know too little of.
    fn predict_again(&self, analysis: &Analysis, axis: Axis) -> Estimate {
        let estimate = analysis.predict(axis, analysis.chosen());
        let spread = analysis.measured().pure_error(axis).and_then(|(variance, freedom)| {
            let quantile = t_quantile(self.question.level, freedom)?;
            Some(quantile * (variance / self.schedule.repeats as f64).sqrt())
        });
        let interval = estimate.interval.map(|(low, high)| {
            let half = ((high / low).ln() / 2.0).hypot(spread.unwrap_or(0.0));
            (estimate.value * (-half).exp(), estimate.value * half.exp())
        });
        Estimate { value: estimate.value, interval }
    }
}

#[cfg(test)]
mod tests {
    use super::super::analysis::ErrorLimits;
    use super::super::design::{uniform, usual_counts};
    use super::super::formula::Formula;
    use super::super::levels::parse_named_variable;
    use super::*;

    /// Threads that scale up to 6 and then only cost power, with a little reproducible noise.
    struct Simulated {
        random: Random,
        runs: Vec<(Setting, Purpose)>,
        expected: Vec<usize>,
        /// Factor on the time of verifying runs at anything but 16 threads: a model proven wrong.
        surprise: f64,
        fail_at: Option<usize>,
    }

    impl Simulated {
        fn new() -> Self {
            Self { random: Random::seeded(5), runs: vec![], expected: vec![], surprise: 1.0, fail_at: None }
        }
    }

    impl Bench for Simulated {
        type Error = String;
        fn run(&mut self, setting: &Setting, purpose: Purpose) -> Result<[f64; 2], String> {
            if self.fail_at == Some(self.runs.len()) {
                return Err("the program crashed".into());
            }
            self.runs.push((setting.clone(), purpose));
            let threads = setting.0[0].number().expect("a number");
            let noise = 1.0 + 0.01 * (self.random.uniform() - 0.5);
            let surprise = if purpose == Purpose::Verify && threads < 16.0 { self.surprise } else { 1.0 };
            let time = (1.0 / threads.powi(4) + 1.0 / 6f64.powi(4)).powf(0.25) * noise * surprise;
            Ok([time, time * (20.0 + 5.0 * threads)])
        }
        fn expect(&mut self, runs: usize) {
            self.expected.push(runs);
        }
    }

    fn setup(goal: Goal) -> (Space, Question, Schedule) {
        let space = Space::new(vec![parse_named_variable("threads=1..16").expect("valid")]).expect("valid");
        let counts = usual_counts(&space, &Formula::usual(&space));
        let schedule = Schedule {
            settings: uniform(&space, &counts),
            repeats: 2,
            wanted_error: None,
            most_repeats: 5,
            budget: 0,
            grouped: false,
            verify: true,
        };
        let question = Question {
            formula: None,
            default: space.usual_setting(),
            goal,
            level: 0.95,
            limits: ErrorLimits::default(),
            seed: 3,
        };
        (space, question, schedule)
    }

    #[test]
    fn finds_and_verifies_where_the_scaling_ends() {
        let (space, question, schedule) = setup(Goal::MaxSlowdown(0.1));
        let mut bench = Simulated::new();
        let found = search(&space, Responses::Totals, &question, &schedule, &mut bench).expect("works");
        let chosen = space.setting(found.analysis.chosen()).0[0].number().expect("a number");
        assert!((4.0..=8.0).contains(&chosen), "{chosen}");
        let last = found.verifications.last().expect("verified");
        assert!(last.holds(), "{last:?}");
        assert!(last.against_default[1] < 0.7, "{last:?}");
        assert_eq!(bench.expected[0], 6 * 2 + 2 * 2);
    }

    #[test]
    fn the_budget_goes_to_settings_not_seen_yet() {
        let (space, question, mut schedule) = setup(Goal::LeastEnergy);
        schedule.budget = 9;
        schedule.verify = false;
        let mut bench = Simulated::new();
        let found = search(&space, Responses::Totals, &question, &schedule, &mut bench).expect("works");
        assert_eq!(found.analysis.measured().settings().len(), 9);
        assert_eq!(bench.runs.len(), 18);
        assert!(found.verifications.is_empty());
    }

    #[test]
    fn repeats_until_the_mean_is_certain() {
        let (space, question, mut schedule) = setup(Goal::LeastEnergy);
        schedule.verify = false;
        schedule.wanted_error = Some(1e-9);
        let mut bench = Simulated::new();
        search(&space, Responses::Totals, &question, &schedule, &mut bench).expect("works");
        assert_eq!(bench.runs.len(), 6 * 5);
        schedule.wanted_error = Some(10.0);
        let mut bench = Simulated::new();
        search(&space, Responses::Totals, &question, &schedule, &mut bench).expect("works");
        assert_eq!(bench.runs.len(), 6 * 2);
    }

    #[test]
    fn a_wrong_prediction_is_noticed_and_learned_from() {
        let (space, question, schedule) = setup(Goal::MaxSlowdown(0.1));
        let mut bench = Simulated { surprise: 1.5, ..Simulated::new() };
        let found = search(&space, Responses::Totals, &question, &schedule, &mut bench).expect("works");
        let first = &found.verifications[0];
        assert_eq!(first.agrees[0], Some(false));
        assert_eq!(first.limit_kept, Some(false));
        assert!(found.analysis.measured().runs() > 12, "the verifying runs are learned from");
    }

    #[test]
    fn a_failing_run_ends_the_search() {
        let (space, question, schedule) = setup(Goal::LeastEnergy);
        let mut bench = Simulated { fail_at: Some(3), ..Simulated::new() };
        let error = search(&space, Responses::Totals, &question, &schedule, &mut bench).expect_err("fails");
        assert!(matches!(error, SearchError::Bench(text) if text == "the program crashed"));
    }

    #[test]
    fn rounds_and_groups_run_the_same() {
        let (space, question, mut schedule) = setup(Goal::LeastEnergy);
        schedule.verify = false;
        let mut order = |grouped: bool| {
            schedule.grouped = grouped;
            let mut bench = Simulated::new();
            search(&space, Responses::Totals, &question, &schedule, &mut bench).expect("works");
            bench.runs.into_iter().map(|(setting, _)| setting.key()).collect::<Vec<_>>()
        };
        let (rounds, groups) = (order(false), order(true));
        assert!(groups.chunks(2).all(|pair| pair[0] == pair[1]));
        assert!(rounds.chunks(2).any(|pair| pair[0] != pair[1]));
        let sorted = |mut keys: Vec<String>| {
            keys.sort();
            keys
        };
        assert_eq!(sorted(rounds), sorted(groups));
    }
    fn down_from(runs: usize) -> Vec<usize> {
        (1..=runs).rev().collect()
    }

    /// After each run one less is to come; the default and the recommended setting take turns.
    #[test]
    fn runs_to_come_are_told_to_the_last() {
        let (space, question, mut schedule) = setup(Goal::MaxSlowdown(0.1));
        let mut bench = Simulated::new();
        let found = search(&space, Responses::Totals, &question, &schedule, &mut bench).expect("works");
        assert_eq!(found.verifications.len(), 1);
        assert_eq!(bench.expected, down_from(12 + 4));
        let settings = [found.analysis.default_position(), found.analysis.chosen()];
        let turns = [0, 1, 0, 1].map(|turn: usize| (space.setting(settings[turn]), Purpose::Verify));
        assert_eq!(bench.runs[12..], turns);
        schedule.verify = false;
        schedule.budget = 9;
        let mut bench = Simulated::new();
        search(&space, Responses::Totals, &question, &schedule, &mut bench).expect("works");
        assert_eq!(bench.expected, down_from(18));
        // A budget that the settings have used up already asks for nothing more.
        schedule.budget = 6;
        let mut bench = Simulated::new();
        search(&space, Responses::Totals, &question, &schedule, &mut bench).expect("works");
        assert_eq!(bench.expected, down_from(12));
        schedule.wanted_error = Some(1e-9);
        let mut bench = Simulated::new();
        search(&space, Responses::Totals, &question, &schedule, &mut bench).expect("works");
        let rounds = [down_from(12), down_from(6), down_from(6), down_from(6)].concat();
        assert_eq!(bench.expected, rounds, "twelve, then each setting once more, three times");
    }

    /// Verifying runs of 100 s and 100 J by default, and this share of both as recommended.
    fn verified(goal: Goal, share: f64) -> Verification {
        struct Exact(f64, Setting);
        impl Bench for Exact {
            type Error = String;
            fn run(&mut self, setting: &Setting, purpose: Purpose) -> Result<[f64; 2], String> {
                let threads = setting.0[0].number().expect("a number");
                Ok(match purpose {
                    Purpose::Learn => [100.0 + threads, 100.0 + (threads - 5.0).powi(2)],
                    Purpose::Verify if *setting == self.1 => [100.0; 2],
                    Purpose::Verify => [100.0 * self.0; 2],
                })
            }
        }
        let (space, question, schedule) = setup(goal);
        let mut bench = Exact(share, question.default.clone());
        let found = search(&space, Responses::Totals, &question, &schedule, &mut bench).expect("works");
        found.verifications[0].clone()
    }

    #[test]
    fn a_limit_is_kept_up_to_itself() {
        let cases = [
            (0.25, 1.2499, true),
            (0.25, 1.2501, false),
            (0.25, 0.5, true),
            (0.0, 1.0, true),
            (0.0, 1.0001, false),
        ];
        for (limit, share, is_kept) in cases {
            let found = verified(Goal::MaxSlowdown(limit), share);
            assert_eq!(found.limit_kept, Some(is_kept), "{limit} {share}");
            let is_near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-12;
            assert!(found.against_default.into_iter().all(|found| is_near(found, share)), "{found:?}");
            assert!(found.measured.into_iter().all(|found| is_near(found, 100.0 * share)), "{found:?}");
        }
        assert_eq!(verified(Goal::LeastEnergy, 1.5).limit_kept, None);
        assert_eq!(verified(Goal::EnergyDelay, 1.5).limit_kept, None);
    }

    #[test]
    fn a_verification_holds_unless_something_is_known_to_be_wrong() {
        let found = verified(Goal::MaxSlowdown(0.25), 1.0);
        let holds = |agrees, limit_kept| Verification { agrees, limit_kept, ..found.clone() }.holds();
        let (yes, no) = (Some(true), Some(false));
        for (agrees, limit_kept, expected) in [
            ([yes, yes], yes, true),
            ([None, None], None, true),
            ([yes, None], None, true),
            ([yes, no], yes, false),
            ([no, None], None, false),
            ([yes, yes], no, false),
            ([no, no], no, false),
        ] {
            assert_eq!(holds(agrees, limit_kept), expected, "{agrees:?} {limit_kept:?}");
        }
    }
}
