//! Each part of a row's error by hand, and what holds whatever rows a table has.

use super::*;

/// Two rows of three cells, of which everything is known: each part of the variance by hand.
#[test]
fn the_variance_of_a_row_by_hand() {
    use crate::hardware::{DomainInfo, DomainKind};
    use crate::profile::{Balance, BucketReason, Division, DomainEnergy, EventTotals, StackId, ThreadIndex};
    let info = DomainInfo {
        refresh: Some(Nanoseconds::from_millis(100)),
        ..DomainInfo::new("package-0", DomainKind::Package, "test", Method::Measured)
    };
    let joules = |joules: f64| Joules::from_joules(joules);
    let balance = Balance { measured: joules(100.0), attributed: joules(100.0), ..Balance::default() };
    let event = |name: &str| EventTotals { name: name.to_owned(), ..EventTotals::default() };
    let cell = |event: u32, samples: u64, seconds: f64| Cell {
        stack: StackId(0),
        thread: ThreadIndex(0),
        cpu: None,
        event,
        samples,
        count: samples,
        time: Nanoseconds::from_secs_f64(seconds),
    };
    let model = DomainDivision {
        joules_per_event: vec![2.0, 5.0],
        std_errors: vec![0.2, 0.3],
        static_power: None,
        static_std_error: crate::units::Watts::ZERO,
        static_rise: None,
        is_calibrated: true,
        explained: None,
        mean_error: 0.0,
        unexplained: None,
        believed_unexplained: 0.2,
        intervals: 10,
    };
    let profile = Profile {
        duration: Nanoseconds::from_millis(1000),
        domains: vec![DomainEnergy { info, balance }],
        events: vec![event("cycles"), event("instructions")],
        cells: vec![cell(0, 10, 3.0), cell(1, 5, 0.5), cell(0, 20, 0.5)],
        cell_joules: vec![joules(30.0), joules(10.0), joules(60.0)],
        division: Some(Division {
            model: "test".to_owned(),
            source: String::new(),
            is_exact: false,
            left_out: vec![None, None],
            domains: vec![Some(model)],
            bucket: joules(1.0),
            bucket_reason: BucketReason::Usual,
            is_by_time: false,
            static_is_spread: false,
            in_place_of_time: None,
        }),
        errors: Some(ErrorTerms {
            parameters: 3,
            sensitivities: vec![0.25, 0.5, -0.25, 0.25, -0.25, 0.5, 0.0, 0.0, 0.0],
            covariances: vec![vec![0.04, 0.01, 0.0, 0.01, 0.09, 0.0, 0.0, 0.0, 1.0]],
            late: vec![3.0],
            ..ErrorTerms::default()
        }),
        ..Profile::default()
    };
    let mut variances = RecordingVariances::new(&profile, &[0]).expect("error terms");
    let summed = Summed { profile: &profile, domains: &[0], takes: &|_, _| true };
    let row_of = |cell| Some(usize::from(cell == 2));
    variances.add(&summed, row_of, row_of);
    let found = variances.finish(3);
    // No sequence of samples is there: a twelfth of each event's quantum, thrice as much where samples came late.
    let chance = (3.0 * 9.0 + 4.0) / 12.0;
    assert!((found[0].by_chance - chance).abs() < 1e-9, "{:?}", found[0]);
    // 30 J at 2 J and 10 J at 5 J each, and what the sums of buckets add.
    let [of_first, of_second, of_static]: [f64; 3] = [15.0 + 0.5, 2.0 + 0.25, 0.25];
    let model =
        0.04 * of_first.powi(2) + 0.02 * of_first * of_second + 0.09 * of_second.powi(2) + of_static.powi(2);
    // Two ends of 10 J, of which this row has two fifths.
    let meter = 100.0 / 6.0 * 0.16 + (0.0015f64 * 40.0).powi(2);
    // 40 J are off by a fifth; three fifths are others', and four CPUs share a bucket.
    let code = (0.2f64 * 40.0 * 0.6 * 0.75).powi(2);
    let own = chance + model + meter + code;
    assert!((found[0].own / own - 1.0).abs() < 1e-9, "{} for {own}", found[0].own);
    assert_eq!((found[0].common, found[2].own), ([0.0; 2], 0.0));
    // 60 J of 20 samples; nothing but its own event.
    let other = 3.0 * 9.0 / 12.0 + 0.04 * 900.0 + 100.0 / 6.0 * 0.36 + 0.09f64.powi(2);
    let other = other + (0.2f64 * 60.0 * 0.4 * 0.75).powi(2);
    assert!((found[1].own / other - 1.0).abs() < 1e-9, "{} for {other}", found[1].own);
}

#[test]
fn a_jump_weighs_as_the_formula_says() {
    // ((1 + x) / (1 - x) + 2 / ln x) / (2 (1 - x)) at a half: 3 - 2 / 0.693147.
    assert!((weight_of_a_jump(0.5) - (3.0 - 2.0 / 2f64.ln())).abs() < 1e-12);
    assert_eq!([weight_of_a_jump(0.99e-4), weight_of_a_jump(0.981)], [0.5, 1.0 / 12.0]);
    assert!(weight_of_a_jump(1e-4) < 0.5 && weight_of_a_jump(0.98) > 1.0 / 12.0);
}

#[test]
fn a_jump_counts_from_a_twelfth_to_a_half() {
    assert_eq!(weight_of_a_jump(-0.3), 0.5);
    assert_eq!(weight_of_a_jump(1.0), 1.0 / 12.0);
    let mut last = 0.5;
    for step in 1..98 {
        let weight = weight_of_a_jump(f64::from(step) / 100.0);
        assert!(weight < last && weight > 1.0 / 12.0, "{step}: {weight}");
        last = weight;
    }
    assert!((last - 1.0 / 12.0).abs() < 0.01);
}

/// A thousand joules in two seconds, all of them one cell's, whose meter moves so often.
fn bar_of_all(refresh: Nanoseconds) -> f64 {
    use crate::hardware::{DomainInfo, DomainKind};
    use crate::profile::{Balance, DomainEnergy, EventTotals, StackId, ThreadIndex};
    let info = DomainInfo {
        refresh: Some(refresh),
        ..DomainInfo::new("package-0", DomainKind::Package, "test", Method::Measured)
    };
    let measured = Joules::from_joules(1000.0);
    let samples = 100_000_000;
    let profile = Profile {
        duration: Nanoseconds::from_secs_f64(2.0),
        domains: vec![DomainEnergy { info, balance: Balance { measured, ..Balance::default() } }],
        events: vec![EventTotals {
            name: "cycles".to_owned(),
            samples,
            count: samples,
            ..EventTotals::default()
        }],
        cells: vec![Cell {
            stack: StackId(0),
            thread: ThreadIndex(0),
            cpu: None,
            event: 0,
            samples,
            count: samples,
            time: Nanoseconds::ZERO,
        }],
        cell_joules: vec![measured],
        errors: Some(ErrorTerms::default()),
        ..Profile::default()
    };
    crate::profile::standard_errors(&profile, 1, |_| Some(0)).expect("measured")[0].as_joules()
}

#[test]
fn a_bar_has_what_the_meter_cannot_tell() {
    // Each end is off by a uniform part of the 50 J of a refresh: 50 J / sqrt(12), twice; and 0.15 % between readings.
    let expected = (50f64.powi(2) / 6.0 + 1.5f64.powi(2)).sqrt();
    let bar = bar_of_all(Nanoseconds::from_millis(100));
    assert!((bar / expected - 1.0).abs() < 1e-3, "{bar} for {expected}");
    let bar = bar_of_all(Nanoseconds::from_nanos(1));
    assert!((bar / 1.5 - 1.0).abs() < 1e-3, "{bar}");
}

/// The sums of a row that is there in these samples of one stream.
fn sums(is_of_row: impl Iterator<Item = bool>) -> (RowSums, Pairs) {
    let samples: Vec<bool> = is_of_row.collect();
    let differ =
        |apart: usize| samples.windows(apart + 1).filter(|window| window[0] != window[apart]).count();
    let sums = RowSums {
        joules: vec![samples.iter().filter(|is| **is).count() as f64],
        samples: vec![samples.iter().filter(|is| **is).count() as f64],
        transitions: vec![differ(1) as f64],
        second_transitions: vec![differ(2) as f64],
        farther_transitions: std::array::from_fn(|at| differ(at + 2) as f64),
        in_sequence: samples.iter().filter(|is| **is).count() as f64,
        ..RowSums::default()
    };
    let apart = std::array::from_fn(|at| (samples.len() - at - 1) as f64);
    (sums, Pairs { samples: samples.len() as f64, apart, ..Pairs::default() })
}

#[test]
fn samples_in_step_are_less_sure() {
    // Every third sample for a while, then the ones beside them.
    let in_step = (0..30_000usize).map(|at| (at + at / 100 % 3) % 3 == 0);
    let (sums, pairs) = sums(in_step);
    let variance = sums.by_sampling(1.0, &[], pairs);
    let count = pairs.samples;
    // By chance it would be n p (1 - p); agreements at distances 3 and 6 make it five times as much.
    let by_chance = count / 3.0 * 2.0 / 3.0;
    assert!((4.0..=6.5).contains(&(variance / by_chance)), "{}", variance / by_chance);
}

#[test]
fn phases_of_the_program_are_not_taken_for_step() {
    // Every second sample by chance in the first half, never in the second.
    let mut state = 7u64;
    let phases = (0..30_000).map(|at| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        at < 15_000 && state >> 63 == 1
    });
    let (sums, pairs) = sums(phases);
    let variance = sums.by_sampling(1.0, &[], pairs);
    let count = pairs.samples;
    // n p (1 - p) of the half in which it happens.
    assert!((0.8..=1.4).contains(&(variance / (count / 8.0))), "{}", variance / (count / 8.0));
}

mod laws {
    use proptest::prelude::*;

    use super::*;
    use crate::hardware::{DomainInfo, DomainKind};
    use crate::profile::{
        Balance, BucketReason, Division, DomainEnergy, EventTotals, LostStretch, LostStretches, StackId,
        ThreadIndex, UnexplainedPower,
    };
    use crate::units::{Timestamp, Watts};

    /// Functions that take turns in each of these threads on a CPU of its own; a cell for each function of each thread.
    const FUNCTIONS: usize = 4;
    const THREADS: usize = 3;
    const CELLS: usize = FUNCTIONS * THREADS;

    /// A recording of these samples, by cell, or of lost records in their place. Functions differ in watts, and their model says
    /// less of it than the meter does.
    fn profile(samples: &[Option<usize>], method: Method) -> Profile {
        let mut terms = ErrorTerms {
            parameters: 2,
            sensitivities: (0..2 * CELLS).map(|place| (place % 5) as f32 / 7.0 - 0.2).collect(),
            covariances: vec![vec![0.04, 0.01, 0.01, 0.09]],
            late: vec![1.5],
            ..ErrorTerms::default()
        };
        let mut counts = [0u64; CELLS];
        let mut lost = Vec::new();
        for (at, sample) in (0..).zip(samples) {
            match sample {
                Some(cell) => {
                    terms.sequence.push((cell / FUNCTIONS) as u32, *cell as u32);
                    counts[*cell] += 1;
                }
                None => {
                    terms.sequence.push_lost(at % THREADS as u32, 3);
                    let millis = |millis: u32| Timestamp::from_nanos(u64::from(millis) * 1_000_000);
                    lost.push(LostStretch { start: millis(10 * at), end: millis(10 * at + 2), records: 3 });
                }
            }
        }
        terms.lost = LostStretches::of(&lost);
        let cell = |(cell, &samples): (usize, &u64)| Cell {
            stack: StackId(cell as u32),
            thread: ThreadIndex((cell / FUNCTIONS) as u32),
            cpu: Some((cell / FUNCTIONS) as u32),
            event: 0,
            samples,
            count: samples,
            time: Nanoseconds::from_millis(samples),
        };
        let cells: Vec<Cell> = counts.iter().enumerate().map(cell).collect();
        let joules = |cell: &Cell| {
            let watts = 2.0 + (cell.stack.0 as usize % FUNCTIONS) as f64;
            Joules::from_joules(watts * cell.time.as_secs_f64() * 100.0)
        };
        let cell_joules: Vec<Joules> = cells.iter().map(joules).collect();
        let all: Joules = cell_joules.iter().copied().sum();
        let balance =
            Balance { measured: all, attributed: all, lost: Joules::from_joules(0.7), ..Balance::default() };
        let model = DomainDivision {
            joules_per_event: vec![0.3],
            std_errors: vec![0.02],
            static_power: None,
            static_std_error: Watts::ZERO,
            static_rise: None,
            is_calibrated: true,
            explained: None,
            mean_error: 0.0,
            unexplained: Some(UnexplainedPower { of_difference: 0.4, of_joules: 0.02, seconds: 0.02 }),
            believed_unexplained: 0.1,
            intervals: 10,
        };
        Profile {
            duration: Nanoseconds::from_millis(samples.len() as u64),
            domains: vec![DomainEnergy {
                info: DomainInfo::new("package-0", DomainKind::Package, "test", method),
                balance,
            }],
            events: vec![EventTotals {
                name: "cycles".to_owned(),
                samples: counts.iter().sum(),
                count: counts.iter().sum(),
                ..EventTotals::default()
            }],
            cells,
            cell_joules,
            division: Some(Division {
                model: "test".to_owned(),
                source: String::new(),
                is_exact: false,
                left_out: vec![None],
                domains: vec![Some(model)],
                bucket: Joules::from_joules(1.0),
                bucket_reason: BucketReason::Usual,
                is_by_time: false,
                static_is_spread: false,
                in_place_of_time: None,
            }),
            errors: Some(terms),
            ..Profile::default()
        }
    }

    /// The variance of the first row, where `row_of` tells each cell's and `takes` which of them are looked at.
    fn of_first_row(
        profile: &Profile,
        row_of: impl Fn(usize) -> Option<usize>,
        takes: impl Fn(usize) -> bool,
    ) -> [f64; 4] {
        let mut variances = RecordingVariances::new(profile, &[0]).expect("error terms");
        let takes = |cell: usize, _: &Cell| takes(cell);
        let summed = Summed { profile, domains: &[0], takes: &takes };
        variances.add(&summed, row_of, |cell| Some(cell % FUNCTIONS));
        let RowVariance { own, by_chance, common } = variances.finish(CELLS + 1)[0];
        [own, by_chance, common[0], common[1]]
    }

    fn near(a: [f64; 4], b: [f64; 4]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()))
    }

    fn any_samples() -> impl Strategy<Value = Vec<Option<usize>>> {
        let sample = prop_oneof![30 => (0..CELLS).prop_map(Some), 1 => Just(None)];
        // Code goes on for a while.
        let runs = prop::collection::vec((sample, 1usize..12), 4..80);
        runs.prop_map(|runs| runs.into_iter().flat_map(|(sample, times)| vec![sample; times]).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

        /// A set of samples has one error: as a row beside one other, beside rows of all other cells, of their functions, and alone.
        #[test]
        fn a_row_has_one_error_whatever_rows_are_beside_it(
            samples in any_samples(),
            of_row in prop::collection::vec(any::<bool>(), CELLS),
            is_measured in any::<bool>(),
        ) {
            let profile = profile(&samples, if is_measured { Method::Measured } else { Method::Estimated });
            let beside = |other: &dyn Fn(usize) -> Option<usize>| {
                of_first_row(&profile, |cell| if of_row[cell] { Some(0) } else { other(cell) }, |_| true)
            };
            let beside_one = beside(&|_| Some(1));
            let of_cells = beside(&|cell| Some(1 + cell));
            let of_functions = beside(&|cell| Some(1 + cell % FUNCTIONS));
            let alone = beside(&|_| None);
            let filtered = of_first_row(&profile, |_| Some(0), |cell| of_row[cell]);
            prop_assert!(near(beside_one, of_cells), "{beside_one:?} {of_cells:?}");
            prop_assert!(near(beside_one, of_functions), "{beside_one:?} {of_functions:?}");
            prop_assert!(near(beside_one, alone), "{beside_one:?} {alone:?}");
            prop_assert!(near(beside_one, filtered), "{beside_one:?} {filtered:?}");
        }
    }
}

/// 6 J of the program, 3 J of others and 1 J of the recorder were seen, and 10 J lost: half of all.
#[test]
fn lost_joules_count_as_what_was_seen_counts_for_the_whole() {
    use crate::hardware::{DomainInfo, DomainKind};
    use crate::profile::{Balance, DomainEnergy};
    let joules = Joules::from_joules;
    let domain = |lost: f64| DomainEnergy {
        info: DomainInfo::new("package-0", DomainKind::Package, "test", Method::Measured),
        balance: Balance {
            measured: joules(50.0),
            attributed: joules(6.0),
            static_energy: joules(30.0),
            other_processes: joules(3.0),
            recorder: joules(1.0),
            lost: joules(lost),
        },
    };
    let profile = Profile { domains: vec![domain(10.0), domain(30.0)], ..Profile::default() };
    assert!((lost(&profile, &[0]) - 5.0).abs() < 1e-12);
    // 20 J beside 40 J that were lost of both.
    assert!((lost(&profile, &[0, 1]) - 40.0 / 3.0).abs() < 1e-12);
    assert_eq!(lost(&profile, &[]), 0.0);
}
