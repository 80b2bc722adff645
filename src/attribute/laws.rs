//! What holds whatever is attributed.

use proptest::prelude::*;

use super::attribution::{Attribution, Options, Sharing, TakenCells};
use super::attributor::Attributor;
use super::quantum::{Charge, Quantum};
use super::weights::EventWeights;
use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::profile::InSlice;
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// Four CPUs in two packages.
const CPUS: u32 = 4;
const CELLS: u32 = 6;
const EVENTS: usize = 3;
/// Longer than any recording here, so that nothing comes too late.
const HORIZON: Nanoseconds = Nanoseconds::from_millis(100_000);

/// Quanta and readings of a time.
#[derive(Debug, Clone)]
struct Recorded {
    quanta: Vec<Quantum>,
    /// Time and cumulative joules of each package.
    readings: Vec<(u64, [f64; 2])>,
}

impl Recorded {
    fn end(&self) -> u64 {
        self.readings.last().map_or(0, |(time, _)| *time)
    }

    /// The quanta up to each reading; they are in the order of their ends, which readings go beyond.
    fn steps(&self) -> impl Iterator<Item = &[Quantum]> {
        let until = |time: u64| self.quanta.partition_point(|quantum| quantum.end.as_nanos() <= time);
        let mut from = 0;
        self.readings.iter().map(move |(time, _)| {
            let quanta = &self.quanta[from..until(*time)];
            from += quanta.len();
            quanta
        })
    }

    /// The same so much later, with the meters at so much more.
    fn moved(&self, nanos: u64, joules: [f64; 2]) -> Self {
        let later = |time: Timestamp| Timestamp::from_nanos(time.as_nanos() + nanos);
        let move_quantum =
            |quantum: &Quantum| Quantum { start: later(quantum.start), end: later(quantum.end), ..*quantum };
        let more = |[a, b]: [f64; 2]| [a + joules[0], b + joules[1]];
        Self {
            quanta: self.quanta.iter().map(move_quantum).collect(),
            readings: self.readings.iter().map(|(time, joules)| (time + nanos, more(*joules))).collect(),
        }
    }
}

fn domains() -> [DomainInfo; 2] {
    [0u32, 1].map(|package| DomainInfo {
        package: Some(package),
        cpus: vec![2 * package, 2 * package + 1],
        ..DomainInfo::new(format!("package-{package}"), DomainKind::Package, "test", Method::Measured)
    })
}

fn options(bucket: f64, static_watts: f64) -> Options {
    Options {
        bucket: Joules::from_joules(bucket),
        static_power: vec![Watts::from_watts(static_watts); 2],
        rises: Vec::new(),
        divided_later: Vec::new(),
        horizon: HORIZON,
        keep_buckets: false,
        sharing: Sharing::ByBucket,
        sensitivities: false,
    }
}

fn attribute(recorded: &Recorded, weights: &EventWeights, options: &Options) -> Attribution {
    let cpus_of = |info: &DomainInfo| info.cpus.clone();
    let mut attributor = Attributor::new(&domains(), cpus_of, weights.clone(), options.clone(), true);
    let mut quanta = recorded.quanta.clone();
    quanta.sort_by_key(|quantum| quantum.end);
    let mut quanta = quanta.into_iter().peekable();
    for (time, joules) in &recorded.readings {
        let time = Timestamp::from_nanos(*time);
        while let Some(quantum) = quanta.next_if(|quantum| quantum.end <= time) {
            attributor.quantum(quantum);
        }
        for (domain, joules) in joules.iter().enumerate() {
            attributor.reading(domain, time, Joules::from_joules(*joules));
        }
    }
    quanta.for_each(|quantum| attributor.quantum(quantum));
    attributor.finish()
}

fn joules(attribution: &Attribution) -> Vec<f64> {
    let mut joules: Vec<f64> = attribution.cell_joules.iter().map(|joules| joules.as_joules()).collect();
    joules.resize(2 * CELLS as usize, 0.0);
    joules
}

fn assert_same(found: &[f64], expected: &[f64], tolerance: f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), expected.len());
    for (index, (a, b)) in found.iter().zip(expected).enumerate() {
        prop_assert!((a - b).abs() < tolerance, "cell {}: {a} and not {b}", index / 2);
    }
    Ok(())
}

/// Quanta of all CPUs and events that end where the readings do. At no time does next to nothing run, which
/// would be the machine's.
fn recorded() -> impl Strategy<Value = Recorded> {
    const MILLISECOND: u64 = 1_000_000;
    // None is without length: on which side of a bucket's end such a one lies, rounding decides.
    let quantum = (1u64..200, 1u64..60, 0..CPUS, 0..EVENTS as u32, 1u64..20, 0..CELLS);
    let steps = prop::collection::vec((5u64..20, 0.5f64..3.0, 0.5f64..3.0), 2..20);
    (prop::collection::vec(quantum, 1..60), steps).prop_map(|(quanta, steps)| {
        let mut readings = vec![(0, [0.0, 0.0])];
        for (span, a, b) in steps {
            let (time, [so_far_a, so_far_b]) = *readings.last().expect("the first");
            readings.push((time + span * MILLISECOND, [so_far_a + a, so_far_b + b]));
        }
        let last = readings.last().map_or(1, |(time, _)| time / MILLISECOND);
        let quanta = quanta.into_iter().map(|(end, span, cpu, event, count, cell)| {
            let end = 1 + end % last;
            Quantum {
                start: Timestamp::from_nanos(end.saturating_sub(span) * MILLISECOND),
                end: Timestamp::from_nanos(end * MILLISECOND),
                cpu: Some(cpu),
                event,
                count,
                running: Nanoseconds::ZERO,
                charge: Charge::Cell(cell),
            }
        });
        let steady =
            (1..=last).flat_map(|end| (0..CPUS).map(move |cpu| (end, cpu))).map(|(end, cpu)| Quantum {
                start: Timestamp::from_nanos((end - 1) * MILLISECOND),
                end: Timestamp::from_nanos(end * MILLISECOND),
                cpu: Some(cpu),
                event: cpu % EVENTS as u32,
                count: 10,
                running: Nanoseconds::ZERO,
                charge: Charge::Cell(CELLS - 1),
            });
        Recorded { quanta: quanta.chain(steady).collect(), readings }
    })
}

fn weights() -> impl Strategy<Value = EventWeights> {
    prop::collection::vec(0.3f64..3.0, EVENTS * 2)
        .prop_map(|costs| EventWeights::new(EVENTS, 2, |event, domain| costs[event * 2 + domain]))
}

proptest! {
    /// Buffers of CPUs are read in any order: of samples of one time, any can come first.
    #[test]
    fn the_order_of_samples_of_one_time_changes_nothing(
        (recorded, shuffled) in recorded().prop_flat_map(|recorded| {
            let shuffled = Just(recorded.quanta.clone()).prop_shuffle();
            (Just(recorded), shuffled)
        }),
        weights in weights(),
        bucket in 0.05f64..5.0,
    ) {
        let options = options(bucket, 5.0);
        let found = attribute(&Recorded { quanta: shuffled, ..recorded.clone() }, &weights, &options);
        assert_same(&joules(&found), &joules(&attribute(&recorded, &weights, &options)), 1e-9)?;
    }

    /// Recordings one after the other, where the first ends with a bucket: nobody's joules change.
    #[test]
    fn recordings_in_succession_add_up(
        first in recorded(),
        second in recorded(),
        weights in weights(),
        buckets in 1u32..20,
        static_watts in 0.0f64..100.0,
    ) {
        let (end, total) = *first.readings.last().expect("readings");
        // Buckets end at whole nanoseconds: what they hold differs by some microjoules. A little more, so that
        // rounding does not leave an empty bucket at the end.
        let options = options(total.iter().sum::<f64>() / f64::from(buckets) * (1.0 + 1e-12), static_watts);
        let after = second.moved(end, total);
        let both = Recorded {
            quanta: first.quanta.iter().chain(&after.quanta).copied().collect(),
            readings: first.readings.iter().chain(&after.readings[1..]).copied().collect(),
        };
        let of_first = attribute(&first, &weights, &options);
        let of_second = attribute(&second, &weights, &options);
        let of_both = attribute(&both, &weights, &options);
        let sum: Vec<f64> = joules(&of_first).iter().zip(joules(&of_second)).map(|(a, b)| a + b).collect();
        assert_same(&joules(&of_both), &sum, 1e-4 * (1.0 + total.iter().sum::<f64>()))?;
        for (domain, balance) in of_both.balances.iter().enumerate() {
            let parts = of_first.balances[domain].static_energy + of_second.balances[domain].static_energy;
            prop_assert!((balance.static_energy - parts).abs().as_joules() < 1e-4 * (1.0 + parts.as_joules()));
        }
    }

    /// Cells can be taken out as soon as nothing more comes to them, and be made one for each event at any time.
    #[test]
    fn cells_need_not_stay(
        recorded in recorded(),
        weights in weights(),
        bucket in 0.05f64..5.0,
        whole in any::<bool>(),
        merged_after in 0usize..200,
    ) {
        let sharing = if whole { Sharing::Whole } else { Sharing::ByBucket };
        let horizon = Nanoseconds::from_millis(60);
        let options =
            Options { horizon, sharing, keep_buckets: true, sensitivities: true, ..options(bucket, 5.0) };
        let mut quanta = recorded.quanta.clone();
        quanta.sort_by_key(|quantum| quantum.end);
        // A cell for every three of them.
        quanta.iter_mut().zip(0..).for_each(|(quantum, at)| quantum.charge = Charge::Cell(at / 3));
        let recorded = Recorded { quanta, ..recorded };
        let kept = attribute(&recorded, &weights, &options);

        let cpus_of = |info: &DomainInfo| info.cpus.clone();
        let new = || Attributor::new(&domains(), cpus_of, weights.clone(), options.clone(), true);
        let mut attributor = new().with_pool_factors(kept.pool_factors.clone());
        let (mut found, mut taken) = (TakenCells::default(), 0);
        let mut keep = |cells: TakenCells, first: u32| {
            found.joules.extend(cells.joules);
            found.sensitivities.extend(cells.sensitivities);
            for (bucket, by_cell) in cells.by_bucket {
                let by_cell = by_cell.into_iter().map(|of| InSlice { cell: of.cell + first, ..of });
                found.by_bucket.push((bucket, by_cell.collect()));
            }
        };
        let mut merging = new();
        for (step, quanta) in recorded.steps().enumerate() {
            for quantum in quanta {
                attributor.quantum(*quantum);
                let by_event = Quantum { charge: Charge::Cell(quantum.event), ..*quantum };
                merging.quantum(if step > merged_after { by_event } else { *quantum });
            }
            let (time, joules) = recorded.readings[step];
            for (domain, joules) in joules.into_iter().enumerate() {
                let (time, joules) = (Timestamp::from_nanos(time), Joules::from_joules(joules));
                attributor.reading(domain, time, joules);
                merging.reading(domain, time, joules);
            }
            if step == merged_after {
                merging.merge_cells_by_event(EVENTS as u32, |cell| recorded.quanta[cell as usize * 3].event);
            }
            while let Some(last) = recorded.quanta.get(taken as usize * 3 + 2)
                && attributor.is_settled(last.end)
            {
                keep(attributor.take_cells(1), taken);
                taken += 1;
            }
        }
        let mut rest = attributor.finish();
        prop_assert_eq!(rest.first_cell, taken);
        prop_assert_eq!(&rest.balances, &kept.balances);
        let left = rest.cell_joules.len() / 2;
        keep(rest.take_cells(left), taken);
        prop_assert_eq!(found.joules.len(), kept.cell_joules.len());
        for (a, b) in found.joules.iter().zip(&kept.cell_joules) {
            prop_assert!((*a - *b).abs().as_joules() <= 1e-12, "{} and {}", a, b);
        }
        prop_assert_eq!(&found.sensitivities, &kept.sensitivities);
        let mut by_bucket: Vec<Vec<InSlice>> = vec![Vec::new(); kept.buckets.len()];
        found.by_bucket.into_iter().for_each(|(bucket, by_cell)| by_bucket[bucket].extend(by_cell));
        for (mut found, bucket) in by_bucket.into_iter().zip(&kept.buckets) {
            let mut expected = bucket.by_cell.clone();
            found.sort_by_key(|of| of.cell);
            expected.sort_by_key(|of| of.cell);
            prop_assert_eq!(found, expected);
        }

        let merged = merging.finish();
        if merged_after < recorded.readings.len() {
            let sum = |joules: &[Joules], domain: usize| -> Joules { joules.iter().skip(domain).step_by(2).sum() };
            for domain in 0..2 {
                let (a, b) = (sum(&merged.cell_joules, domain), sum(&kept.cell_joules, domain));
                prop_assert!((a - b).abs().as_joules() < 1e-9 * (1.0 + b.as_joules()), "{} and {}", a, b);
            }
            prop_assert!(merged.cell_joules.len() <= 2 * EVENTS);
        }
    }

    /// Where the whole is shared, what was measured when changes nothing: cells have the domain's joules by their model joules.
    #[test]
    fn the_whole_is_shared_by_model_joules(
        recorded in recorded(),
        weights in prop::collection::vec(0.3f64..3.0, EVENTS * 2),
        bucket in 0.05f64..5.0,
        static_watts in 0.0f64..20.0,
    ) {
        let cost = |event: usize, domain: usize| weights[event * 2 + domain];
        let of_events = EventWeights::new(EVENTS, 2, cost);
        let options = Options { sharing: Sharing::Whole, ..options(bucket, static_watts) };
        let found = attribute(&recorded, &of_events, &options);
        let found_joules = joules(&found);
        for (domain, balance) in found.balances.iter().enumerate() {
            prop_assert!(balance.holds(), "{balance:?}");
            let mut model = [0.0; CELLS as usize];
            let of_package = recorded.quanta.iter().filter(|quantum| quantum.cpu.map(|cpu| cpu as usize / 2) == Some(domain));
            for quantum in of_package {
                let Charge::Cell(cell) = quantum.charge else { continue };
                model[cell as usize] += cost(quantum.event as usize, domain) * quantum.count as f64;
            }
            let (all, attributed) = (model.iter().sum::<f64>(), balance.attributed.as_joules());
            for (cell, model) in model.iter().enumerate() {
                let (found, expected) = (found_joules[cell * 2 + domain], attributed * model / all);
                prop_assert!((found - expected).abs() < 1e-6 * (1.0 + attributed), "{cell}: {found} and not {expected}");
            }
        }
    }

    /// Recordings of two machines at the same time: to have them in one takes nothing from either.
    #[test]
    fn packages_do_not_mix(both in recorded(), weights in weights()) {
        // In a bucket each: where buckets end depends on both.
        let options = options(1e9, 0.0);
        let of = |package: u32| {
            let quanta = both.quanta.iter().filter(|quantum| quantum.cpu.map(|cpu| cpu / 2) == Some(package));
            joules(&attribute(&Recorded { quanta: quanta.copied().collect(), ..both.clone() }, &weights, &options))
        };
        let sum: Vec<f64> = of(0).iter().zip(of(1)).map(|(a, b)| a + b).collect();
        assert_same(&joules(&attribute(&both, &weights, &options)), &sum, 1e-9)?;
    }

    /// Hybrid processors: each kind of core has events, and so weights, of its own.
    #[test]
    fn cores_of_two_kinds_share_by_their_own_weights(
        big in 0.001f64..10.0,
        small in 0.001f64..10.0,
        counts in prop::array::uniform4(1u64..1_000_000),
        total in 0.1f64..100.0,
    ) {
        // Event 0 counts on the even CPUs, event 1 on the odd ones.
        let weights = EventWeights::new(2, 2, |event, _| [big, small][event]);
        let quantum = |cpu: u32| Quantum {
            start: Timestamp::from_nanos(0),
            end: Timestamp::from_nanos(1000),
            cpu: Some(cpu),
            event: cpu % 2,
            count: counts[cpu as usize],
            running: Nanoseconds::ZERO,
            charge: Charge::Cell(cpu),
        };
        let recorded = Recorded {
            quanta: (0..CPUS).map(quantum).collect(),
            readings: vec![(0, [0.0; 2]), (1000, [total, 2.0 * total])],
        };
        let found = joules(&attribute(&recorded, &weights, &options(1e9, 0.0)));
        let indices: Vec<f64> =
            counts.iter().enumerate().map(|(cpu, count)| [big, small][cpu % 2] * *count as f64).collect();
        for cpu in 0..CPUS as usize {
            let package = cpu / 2;
            let share = indices[cpu] / (indices[2 * package] + indices[2 * package + 1]);
            let expected = total * (package + 1) as f64 * share;
            prop_assert!((found[cpu * 2 + package] - expected).abs() < 1e-9 * total);
            prop_assert_eq!(found[cpu * 2 + 1 - package], 0.0, "joules of the other package");
        }
    }

    /// With time for a weight, and power that does not change, joules are CPU time.
    #[test]
    fn time_only_weights_reproduce_a_time_profile(
        turns in prop::collection::vec((1u64..50, 0..CELLS, 0..CELLS), 1..60),
        watts in 0.1f64..200.0,
        bucket in 0.05f64..5.0,
        other_counts in prop::collection::vec(1u64..1000, 60),
    ) {
        let mut recorded = Recorded { quanta: Vec::new(), readings: vec![(0, [0.0; 2])] };
        let mut seconds = [0.0; CELLS as usize];
        for ((millis, a, b), other) in turns.into_iter().zip(other_counts) {
            let (start, end) = (recorded.end(), recorded.end() + millis * 1_000_000);
            for (cpu, cell) in [(0, a), (1, b)] {
                let running = Nanoseconds::from_nanos(end - start);
                let quantum = Quantum {
                    start: Timestamp::from_nanos(start),
                    end: Timestamp::from_nanos(end),
                    cpu: Some(cpu),
                    event: 1,
                    count: end - start,
                    running,
                    charge: Charge::Cell(cell),
                };
                recorded.quanta.push(quantum);
                // What another event counts is not time.
                recorded.quanta.push(Quantum { event: 0, count: other, running: Nanoseconds::ZERO, ..quantum });
                seconds[cell as usize] += running.as_secs_f64();
            }
            recorded.readings.push((end, [watts * end as f64 * 1e-9, 0.0]));
        }
        let weights = EventWeights::from_time(EVENTS, 2, |event| event == 1);
        let found = joules(&attribute(&recorded, &weights, &options(bucket, 0.0)));
        for (cell, seconds) in seconds.iter().enumerate() {
            let expected = watts * seconds / 2.0;
            prop_assert!((found[cell * 2] - expected).abs() < 1e-6 * expected.max(1.0), "{cell}");
        }
    }
}
