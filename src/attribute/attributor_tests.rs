//! The laws of attribution, and its arithmetic worked by hand.

use super::*;
use crate::attribute::rise::Rise;
use crate::hardware::{DomainKind, Method};
use crate::recording::energy::CpuTimes;
use crate::units::Watts;
use proptest::prelude::*;

fn domain(name: &str, kind: DomainKind, parent: Option<&str>, cpus: &[u32]) -> DomainInfo {
    DomainInfo {
        parent: parent.map(Into::into),
        cpus: cpus.to_vec(),
        ..DomainInfo::new(name, kind, "test", Method::Measured)
    }
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

pub(super) fn options(bucket: f64) -> Options {
    Options {
        bucket: Joules::from_joules(bucket),
        static_power: Vec::new(),
        rises: Vec::new(),
        divided_later: Vec::new(),
        horizon: Nanoseconds::from_millis(100),
        keep_buckets: false,
        sharing: Sharing::ByBucket,
        sensitivities: false,
    }
}

fn quantum(from: u64, to: u64, cpu: u32, count: u64, cell: u32) -> Quantum {
    Quantum {
        start: at(from),
        end: at(to),
        cpu: Some(cpu),
        event: 0,
        count,
        running: at(to).since(at(from)),
        charge: Charge::Cell(cell),
    }
}

fn attributor(domains: &[DomainInfo], options: Options) -> Attributor {
    let weights = EventWeights::new(1, domains.len(), |_, _| 1.0);
    Attributor::new(domains, |info| info.cpus.clone(), weights, options, true)
}

fn joules(values: &[Joules]) -> Vec<f64> {
    values.iter().map(|value| (value.as_joules() * 1e9).round() / 1e9).collect()
}

#[test]
fn a_function_that_draws_twice_the_power_gets_twice_the_joules() {
    // 10 W for 100 ms, then 20 W for 100 ms; samples tell only time.
    let mut attributor = attributor(&[domain("p", DomainKind::Package, None, &[])], options(0.1));
    for step in 0..=20 {
        let energy = if step <= 10 { 0.1 * f64::from(step) } else { 1.0 + 0.2 * f64::from(step - 10) };
        attributor.reading(0, at(u64::from(step as u32) * 10), Joules::from_joules(energy));
        if step > 0 {
            let to = u64::from(step as u32) * 10;
            attributor.quantum(quantum(to - 10, to, 0, 10, u32::from(step > 10)));
        }
    }
    let result = attributor.finish();
    assert_eq!(joules(&result.cell_joules), [1.0, 2.0]);
    assert_eq!(result.balances[0].measured, Joules::from_joules(3.0));
}

#[test]
fn cells_that_are_merged_before_there_are_any_have_sensitivities_too() {
    let domains = [domain("p", DomainKind::Package, None, &[])];
    let mut attributor = attributor(&domains, Options { sensitivities: true, ..options(0.1) });
    attributor.merge_cells_by_event(1, |_| 0);
    attributor.reading(0, at(0), Joules::ZERO);
    attributor.quantum(quantum(0, 10, 0, 10, 0));
    attributor.reading(0, at(10), Joules::from_joules(1.0));
    let result = attributor.finish();
    assert_eq!(joules(&result.cell_joules), [1.0]);
    assert_eq!(result.sensitivities.len(), 2, "of the event, and of the static power");
}

#[test]
fn the_papers_example_divides_each_domain_by_its_own_index() {
    // Core domain 20 J with indices 70:30, memory domain 10 J with indices 20:80.
    let domains =
        [domain("cores", DomainKind::Cores, None, &[]), domain("memory", DomainKind::Dram, None, &[])];
    let weights = EventWeights::new(2, 2, |event, domain| [[1.0, 0.0], [0.0, 1.0]][event][domain]);
    let mut attributor = Attributor::new(&domains, |_| Vec::new(), weights, options(1000.0), true);
    let reading = |attributor: &mut Attributor, time, cores, memory| {
        attributor.reading(0, at(time), Joules::from_joules(cores));
        attributor.reading(1, at(time), Joules::from_joules(memory));
    };
    reading(&mut attributor, 0, 0.0, 0.0);
    for (event, cpu, count) in [(0, 0, 70), (0, 1, 30), (1, 0, 20), (1, 1, 80)] {
        attributor.quantum(Quantum { event, ..quantum(0, 10, cpu, count, cpu) });
    }
    reading(&mut attributor, 10, 20.0, 10.0);
    let result = attributor.finish();
    assert_eq!(joules(&result.cell_joules), [14.0, 2.0, 6.0, 8.0]);
}

#[test]
fn a_quantum_over_two_buckets_is_divided_by_time() {
    let mut attributor = attributor(&[domain("p", DomainKind::Package, None, &[])], options(1.0));
    attributor.reading(0, at(0), Joules::ZERO);
    attributor.quantum(quantum(0, 4, 0, 4, 0));
    attributor.quantum(quantum(4, 20, 0, 16, 1));
    attributor.reading(0, at(10), Joules::from_joules(1.0));
    attributor.reading(0, at(20), Joules::from_joules(2.0));
    let result = attributor.finish();
    // First bucket: 4 of 10 ms are cell 0's; second bucket: all is cell 1's.
    assert_eq!(joules(&result.cell_joules), [0.4, 1.6]);
}

#[test]
fn energy_while_nothing_runs_is_static() {
    let mut attributor = attributor(&[domain("p", DomainKind::Package, None, &[])], options(1.0));
    attributor.reading(0, at(0), Joules::ZERO);
    attributor.reading(0, at(1000), Joules::from_joules(5.0));
    let balance = attributor.finish().balances[0];
    assert_eq!(balance.static_energy, Joules::from_joules(5.0));
    assert_eq!(balance.accounted(), balance.measured);
}

#[test]
fn the_end_of_a_sample_in_an_idle_second_does_not_get_its_joules() {
    let mut attributor = attributor(&[domain("p", DomainKind::Package, None, &[])], options(1.0));
    attributor.reading(0, at(0), Joules::ZERO);
    attributor.quantum(quantum(0, 1000, 0, 1_000_000, 0));
    // Ten nanoseconds too long.
    let end = Timestamp::from_nanos(at(2000).as_nanos() + 10);
    attributor.quantum(Quantum { end, ..quantum(1000, 2000, 0, 1_000_000, 0) });
    for second in 1..=4 {
        attributor.reading(0, at(second * 1000), Joules::from_joules(second as f64));
    }
    let result = attributor.finish();
    assert!((result.cell_joules[0].as_joules() - 2.0).abs() < 1e-6, "{:?}", result.cell_joules);
    assert!((result.balances[0].static_energy.as_joules() - 2.0).abs() < 1e-6, "{:?}", result.balances);
}

#[test]
fn a_beginning_that_was_nearly_all_static_decides_nothing() {
    let mut options = options(1.0);
    options.static_power = vec![Watts::from_watts(10.0)];
    let mut attributor = attributor(&[domain("p", DomainKind::Package, None, &[])], options);
    attributor.reading(0, at(0), Joules::ZERO);
    for second in 1..=10 {
        attributor.quantum(quantum(1000 * (second - 1), 1000 * second, 0, 1000, 0));
        // A microwatt above the static power at first, 20 W above later.
        let later = 30.0 * (second - 1) as f64 + 10.000_001;
        attributor.reading(0, at(1000 * second), Joules::from_joules(later));
    }
    let attributed = attributor.finish().balances[0].attributed.as_joules();
    assert!((attributed - 180.0).abs() < 0.01, "{attributed}");
}

#[test]
fn known_static_power_is_taken_out_first() {
    let mut options = options(1.0);
    options.static_power = vec![Watts::from_watts(10.0)];
    let mut attributor = attributor(&[domain("p", DomainKind::Package, None, &[])], options);
    attributor.reading(0, at(0), Joules::ZERO);
    attributor.quantum(quantum(0, 1000, 0, 1, 0));
    attributor.reading(0, at(1000), Joules::from_joules(30.0));
    let result = attributor.finish();
    assert_eq!(joules(&result.cell_joules), [20.0]);
    assert_eq!(joules(&[result.balances[0].static_energy]), [10.0]);
}

/// Static power of 10 W rises by 4 W within a second, beside a program of 20 W: all that is more is static, early and late.
#[test]
fn static_power_that_rises_is_static_in_each_bucket() {
    let rise = Rise::new(vec![(at(0), Watts::ZERO), (at(1000), Watts::from_watts(4.0))]);
    let static_power = vec![Watts::from_watts(10.0)];
    let options = Options { static_power, rises: vec![Some(rise)], keep_buckets: true, ..options(16.0) };
    let mut attributor = attributor(&[domain("p", DomainKind::Package, None, &[])], options);
    attributor.reading(0, at(0), Joules::ZERO);
    attributor.quantum(quantum(0, 1000, 0, 1, 0));
    for step in 1..=100u64 {
        let seconds = step as f64 / 100.0;
        attributor.reading(0, at(10 * step), Joules::from_joules(30.0 * seconds + 2.0 * seconds * seconds));
    }
    let result = attributor.finish();
    let close =
        |found: Joules, expected: f64| assert!((found.as_joules() - expected).abs() < 1e-3, "{found:?}");
    close(result.cell_joules[0], 20.0);
    close(result.balances[0].static_energy, 12.0);
    // Buckets of 16 J of 32: to where 30 t + 2 t² is 16, t = 0.515608 s; 10 t + 2 t² of it are static.
    let [early, late] = &result.buckets[..] else { panic!("two buckets: {}", result.buckets.len()) };
    close(early.balance.static_energy, 5.68778);
    close(late.balance.static_energy, 6.31222);
    close(late.balance.attributed, 9.68778);
    // What is less than nothing is nothing.
    let falls = Rise::new(vec![(at(0), Watts::from_watts(-11.0))]);
    let options = Options {
        rises: vec![Some(falls)],
        static_power: vec![Watts::from_watts(10.0)],
        ..self::options(1.0)
    };
    assert_eq!(options.static_joules(0, at(0), at(1000)), Joules::ZERO);
}

/// A program of a millisecond: nothing of it was sampled, and CPU times were read but once. CPUs were busy all the same.
#[test]
fn an_estimates_busy_time_of_which_nothing_was_sampled_is_others() {
    let of = |method| {
        let domain = DomainInfo { method, ..domain("p", DomainKind::Package, None, &[]) };
        let options = Options { static_power: vec![Watts::from_watts(1.5)], ..options(1.0) };
        let weights = EventWeights::new(1, 1, |_, _| 1.0);
        let mut attributor = Attributor::new(&[domain], |info| info.cpus.clone(), weights, options, false);
        attributor.reading(0, at(0), Joules::ZERO);
        attributor.reading(0, at(10), Joules::from_joules(0.070));
        let balance = attributor.finish().balances[0];
        joules(&[balance.static_energy, balance.other_processes])
    };
    assert_eq!(of(Method::Estimated), [0.015, 0.055]);
    // What a meter counts while nothing runs is what the machine takes to be there.
    assert_eq!(of(Method::Measured), [0.070, 0.0]);
}

#[test]
fn measured_cores_override_the_model() {
    // The model sees both cores alike; their meters say 3 J and 1 J of the package's 6 J.
    let domains = [
        domain("package-0", DomainKind::Package, None, &[0, 1]),
        domain("core-0", DomainKind::Core, Some("package-0"), &[0]),
        domain("core-1", DomainKind::Core, Some("package-0"), &[1]),
    ];
    let mut attributor = attributor(&domains, options(100.0));
    for (time, values) in [(0, [0.0, 0.0, 0.0]), (100, [6.0, 3.0, 1.0])] {
        for (index, value) in values.into_iter().enumerate() {
            attributor.reading(index, at(time), Joules::from_joules(value));
        }
        if time == 0 {
            attributor.quantum(quantum(0, 100, 0, 50, 0));
            attributor.quantum(quantum(0, 100, 1, 50, 1));
        }
    }
    let result = attributor.finish();
    assert_eq!(joules(&result.cell_joules), [4.0, 3.0, 0.0, 2.0, 0.0, 1.0]);
    assert_eq!(joules(&[result.balances[0].attributed]), [6.0]);
}

#[test]
fn others_pay_for_their_time() {
    let domains = [domain("p", DomainKind::Package, None, &[])];
    let weights = EventWeights::new(1, 1, |_, _| 1.0);
    let mut attributor = Attributor::new(&domains, |_| Vec::new(), weights, options(100.0), false);
    let busy = |millis| CpuTimes {
        recorder: Nanoseconds::ZERO,
        busy: vec![(0, Nanoseconds::from_millis(millis)), (1, Nanoseconds::from_millis(millis))],
    };
    attributor.reading(0, at(0), Joules::ZERO);
    attributor.cpu_times(at(0), &busy(0), &[]);
    attributor.quantum(quantum(0, 100, 0, 100_000_000, 0));
    attributor.cpu_times(at(100), &busy(100), &[]);
    attributor.reading(0, at(100), Joules::from_joules(8.0));
    let result = attributor.finish();
    // Two CPUs were busy for 100 ms, the program on one of them.
    assert_eq!(joules(&result.cell_joules), [4.0]);
    assert_eq!(joules(&[result.balances[0].other_processes]), [4.0]);
}

#[test]
fn each_owner_has_a_row_of_its_own() {
    let mut attributor = attributor(&[domain("p", DomainKind::Package, None, &[])], options(100.0));
    let times = |millis| CpuTimes {
        recorder: Nanoseconds::from_millis(millis),
        busy: (0..8).map(|cpu| (cpu, Nanoseconds::from_millis(millis))).collect(),
    };
    attributor.reading(0, at(0), Joules::ZERO);
    attributor.cpu_times(at(0), &times(0), &[]);
    let owners = [Charge::Cell(0), Charge::OtherProcess, Charge::Recorder, Charge::Lost];
    for (cpu, charge) in (0u32..).zip(owners) {
        attributor.quantum(Quantum { charge, ..quantum(0, 100, cpu, 1 << cpu, 0) });
    }
    // Eight CPUs were busy: whoever was not the program's is among the quanta already.
    attributor.cpu_times(at(100), &times(100), &[]);
    attributor.reading(0, at(100), Joules::from_joules(15.0));
    let balance = attributor.finish().balances[0];
    let rows = [balance.attributed, balance.other_processes, balance.recorder, balance.lost];
    assert_eq!(joules(&rows), [1.0, 2.0, 4.0, 8.0]);
}

/// As in a duty cycle, where most of what ran is not sampled: two CPUs were busy, of one nothing is known, and 30 ms of it were
/// the recorder's.
#[test]
fn of_what_is_lost_the_recorders_cpu_time_tells_its_part() {
    let mut attributor = attributor(&[domain("p", DomainKind::Package, None, &[])], options(100.0));
    let times = |recorder, busy| CpuTimes {
        recorder: Nanoseconds::from_millis(recorder),
        busy: (0..2).map(|cpu| (cpu, Nanoseconds::from_millis(busy))).collect(),
    };
    attributor.reading(0, at(0), Joules::ZERO);
    attributor.cpu_times(at(0), &times(0, 0), &[]);
    attributor.quantum(quantum(0, 100, 0, 100_000_000, 0));
    // What is lost is told as samples, without the time that they would have stood for.
    let lost =
        Quantum { charge: Charge::Lost, running: Nanoseconds::ZERO, ..quantum(0, 100, 1, 100_000_000, 0) };
    attributor.quantum(lost);
    attributor.cpu_times(at(100), &times(30, 100), &[]);
    attributor.reading(0, at(100), Joules::from_joules(20.0));
    let balance = attributor.finish().balances[0];
    assert_eq!(joules(&[balance.attributed, balance.recorder, balance.lost]), [10.0, 3.0, 7.0]);
}

/// One program runs for 50 ms and another for 40 ms more. The cores' meter is read every 45 ms: when the first bucket could
/// be closed, its end lies behind the last of these readings, and all joules since would seem to be the second's.
#[test]
fn a_bucket_waits_for_the_slowest_meter() {
    let domains = [
        domain("package-0", DomainKind::Package, None, &[]),
        domain("package-0-cores", DomainKind::Cores, Some("package-0"), &[]),
    ];
    let options = Options { horizon: Nanoseconds::from_millis(30), ..options(0.5) };
    let mut attributor = attributor(&domains, options);
    for step in 0..=90 {
        if step > 0 {
            attributor.quantum(quantum(step - 1, step, 0, 1, u32::from(step > 50)));
        }
        // 10 W each: a bucket of 50 ms.
        let energy = Joules::from_joules(0.01 * step as f64);
        attributor.reading(0, at(step), energy);
        if step % 45 == 0 {
            attributor.reading(1, at(step), energy);
        }
    }
    let result = attributor.finish();
    assert_eq!(joules(&result.cell_joules), [0.5, 0.5, 0.4, 0.4]);
}

#[test]
fn a_bucket_is_of_the_whole_and_not_of_its_parts_as_well() {
    let domains = [
        domain("package-0", DomainKind::Package, None, &[]),
        domain("package-0-cores", DomainKind::Cores, Some("package-0"), &[]),
    ];
    let mut attributor = attributor(&domains, Options { keep_buckets: true, ..options(1.0) });
    for step in 0..=100 {
        // 10 W, 8 W of them in the cores.
        attributor.reading(0, at(step * 10), Joules::from_joules(0.1 * step as f64));
        attributor.reading(1, at(step * 10), Joules::from_joules(0.08 * step as f64));
        attributor.quantum(quantum(step * 10, step * 10 + 10, 0, 1, 0));
    }
    let buckets = attributor.finish().buckets;
    assert_eq!(buckets.len(), 10);
    assert!(buckets.iter().all(|bucket| joules(&bucket.measured) == [1.0, 0.8]), "{buckets:?}");
}

#[test]
fn balances_of_buckets_add_up_to_that_of_the_whole() {
    let domains = [
        domain("package-0", DomainKind::Package, None, &[]),
        domain("package-0-cores", DomainKind::Cores, Some("package-0"), &[]),
        domain("dram-0", DomainKind::Dram, None, &[]),
    ];
    let static_power = [4.0, 2.0, 0.5].map(Watts::from_watts).to_vec();
    let options = Options { keep_buckets: true, static_power, ..options(1.0) };
    let mut attributor = attributor(&domains, options);
    for step in 0..=100 {
        for (domain, watts) in [10.0, 8.0, 1.0].into_iter().enumerate() {
            attributor.reading(domain, at(step * 10), Joules::from_joules(watts * step as f64 / 100.0));
        }
        attributor.quantum(quantum(step * 10, step * 10 + 10, 0, 1, 0));
    }
    let result = attributor.finish();
    // The cores lie in the package.
    let whole = result.balances[0] + result.balances[2];
    let sum = result.buckets.iter().fold(Balance::default(), |sum, bucket| sum + bucket.balance);
    assert!(result.buckets.len() > 5 && whole.static_energy > Joules::ZERO);
    let parts = |balance: Balance| {
        let Balance { attributed, static_energy, other_processes, recorder, lost, .. } = balance;
        [attributed, static_energy, other_processes, recorder, lost]
    };
    for (sum, whole) in parts(sum).into_iter().zip(parts(whole)) {
        assert!((sum - whole).abs() < Joules::from_joules(1e-9), "{sum} and {whole}");
    }
    // A hundred samples of 10 ms, whichever buckets they lie in.
    let seconds = result.buckets.iter().flat_map(|bucket| &bucket.by_cell).map(|of| f64::from(of.seconds));
    assert!((seconds.sum::<f64>() - 1.0).abs() < 1e-6);
    for bucket in &result.buckets {
        let by_cell: f64 = bucket.by_cell.iter().map(|of| f64::from(of.joules)).sum();
        assert!((by_cell - bucket.balance.attributed.as_joules()).abs() < 1e-6, "{bucket:?}");
        assert!((bucket.balance.measured - bucket.balance.accounted()).abs() < Joules::from_joules(1e-9));
    }
}

/// It tells its CPU time as one number. A package where nobody else was busy must not pay for it.
#[test]
fn the_recorder_is_charged_where_it_ran() {
    let domains = [
        domain("package-0", DomainKind::Package, None, &[0]),
        domain("package-1", DomainKind::Package, None, &[1]),
    ];
    let weights = EventWeights::new(1, 2, |_, _| 1.0);
    let cpus_of = |domain: &DomainInfo| domain.cpus.clone();
    let mut attributor = Attributor::new(&domains, cpus_of, weights, options(100.0), false);
    let times = |recorder: u64, busy: [u64; 2]| {
        let [recorder, first, second] = [recorder, busy[0], busy[1]].map(Nanoseconds::from_millis);
        CpuTimes { recorder, busy: vec![(0, first), (1, second)] }
    };
    let own = |millis| [(0, Nanoseconds::from_millis(millis)), (1, Nanoseconds::ZERO)];
    (0..2).for_each(|package| attributor.reading(package, at(0), Joules::ZERO));
    attributor.cpu_times(at(0), &times(0, [0, 0]), &own(0));
    attributor.quantum(quantum(0, 100, 0, 100_000_000, 0));
    attributor.cpu_times(at(100), &times(20, [100, 50]), &own(100));
    (0..2).for_each(|package| attributor.reading(package, at(100), Joules::from_joules(10.0)));
    let result = attributor.finish();
    let [first, second] = [0, 1].map(|package| result.balances[package]);
    assert_eq!(joules(&[first.attributed, first.recorder, first.other_processes]), [10.0, 0.0, 0.0]);
    assert_eq!(joules(&[second.attributed, second.recorder, second.other_processes]), [0.0, 4.0, 6.0]);
}

/// A recorder that was stopped reads everything of the meantime at once: meters first, CPU times right behind them.
#[test]
fn others_pay_for_their_time_while_the_recorder_was_held_up() {
    let domains = [domain("p", DomainKind::Package, None, &[])];
    let weights = EventWeights::new(1, 1, |_, _| 1.0);
    let mut attributor = Attributor::new(&domains, |_| Vec::new(), weights, options(0.5), false);
    let busy = |millis| CpuTimes {
        recorder: Nanoseconds::ZERO,
        busy: vec![(0, Nanoseconds::from_millis(millis)), (1, Nanoseconds::from_millis(millis))],
    };
    attributor.reading(0, at(0), Joules::ZERO);
    attributor.cpu_times(at(0), &busy(0), &[]);
    for step in 0..80 {
        attributor.quantum(quantum(step * 50, step * 50 + 50, 0, 50_000_000, 0));
    }
    attributor.reading(0, at(4000), Joules::from_joules(80.0));
    attributor.cpu_times(at(4001), &busy(4000), &[]);
    for step in 80..160 {
        attributor.quantum(quantum(step * 50, step * 50 + 50, 0, 50_000_000, 0));
    }
    attributor.cpu_times(at(8000), &busy(8000), &[]);
    attributor.reading(0, at(8000), Joules::from_joules(160.0));
    let result = attributor.finish();
    let others = result.balances[0].other_processes.as_joules();
    assert!((others - 80.0).abs() < 0.5, "{others} J of two alike that spent 160 J");
}

/// Hard work for 100 ms on one core of two, then easy work: cores are read every 40 ms, the package every one.
#[test]
fn cores_that_are_read_rarely_get_no_more_than_their_package_counted() {
    let domains = [
        domain("package-0", DomainKind::Package, None, &[0, 1]),
        domain("core-0", DomainKind::Core, Some("package-0"), &[0]),
        domain("core-1", DomainKind::Core, Some("package-0"), &[1]),
    ];
    let mut attributor = attributor(&domains, options(0.05));
    let mut energy = [0.0, 0.0, 0.0];
    for millis in 0..=4000 {
        let is_hard = millis / 100 % 2 == 0;
        if millis > 0 {
            attributor.quantum(quantum(millis - 1, millis, 0, 1_000_000, 0));
        }
        if millis > 0 && millis % 50 == 0 {
            attributor.quantum(quantum(millis - 1, millis, 1, 1_000_000, 1));
        }
        for (index, joules) in energy.into_iter().enumerate() {
            if index == 0 || millis % 40 == 0 {
                attributor.reading(index, at(millis), Joules::from_joules(joules));
            }
        }
        // 20 W or 1 W of a busy core, 0.5 W of the other one, 5 W around them.
        let core = if is_hard { 0.02 } else { 0.001 };
        energy = [energy[0] + core + 0.0055, energy[1] + core, energy[2] + 0.0005];
    }
    let result = attributor.finish();
    let package = &result.balances[0];
    let difference = (package.accounted() - package.measured).as_joules();
    assert!(difference.abs() < 1e-9, "{difference} J too much of {} J", package.measured.as_joules());
}

proptest! {
    /// Every joule is accounted for, none is negative, and moving the clock changes nothing.
    #[test]
    fn conservation(
        steps in prop::collection::vec((1u64..40, 0.0f64..3.0), 2..40),
        quanta in prop::collection::vec((0u64..1500, 0u64..60, 0u32..4, 1u64..1000, 0u32..8), 0..200),
        bucket in 0.05f64..5.0,
        static_watts in 0.0f64..50.0,
        shift in 0u64..1_000_000,
    ) {
        let run = |shift: u64| {
            let domains = [
                domain("package-0", DomainKind::Package, None, &[0, 1]),
                domain("package-1", DomainKind::Package, None, &[2, 3]),
                domain("cores-0", DomainKind::Cores, Some("package-0"), &[0, 1]),
            ];
            let mut options = options(bucket);
            options.static_power = vec![Watts::from_watts(static_watts)];
            let mut attributor = attributor(&domains, options);
            let mut quanta = quanta.clone();
            quanta.sort_by_key(|(end, ..)| *end);
            let mut quanta = quanta.into_iter().peekable();
            let (mut time, mut energy) = (0, 0.0);
            for (span, more) in &steps {
                while let Some((end, span, cpu, count, cell)) = quanta.next_if(|(end, ..)| *end <= time) {
                    let from = end.saturating_sub(span) + shift;
                    attributor.quantum(quantum(from, end + shift, cpu, count, cell));
                }
                for (index, share) in [1.0, 0.5, 0.3].into_iter().enumerate() {
                    attributor.reading(index, at(time + shift), Joules::from_joules(energy * share));
                }
                time += span;
                energy += more;
            }
            attributor.finish()
        };
        let result = run(0);
        for (index, balance) in result.balances.iter().enumerate() {
            let difference = (balance.accounted() - balance.measured).abs().as_joules();
            prop_assert!(difference <= 1e-9 * balance.measured.as_joules().max(1.0), "{balance:?}");
            let cells: Joules = result.cell_joules.iter().skip(index).step_by(3).sum();
            prop_assert!((cells - balance.attributed).abs().as_joules() < 1e-9);
        }
        prop_assert!(result.cell_joules.iter().all(|joules| *joules >= Joules::ZERO));
        let shifted = run(shift);
        for (a, b) in result.cell_joules.iter().zip(&shifted.cell_joules) {
            prop_assert!((*a - *b).abs().as_joules() < 1e-6, "{a:?} {b:?}");
        }
    }
}

/// Two packages of which one rests in the middle: together they reach each joule where it is shown.
#[test]
fn ends_of_buckets_are_where_all_domains_together_reach_a_joule() {
    let domains = [
        domain("package-0", DomainKind::Package, None, &[]),
        domain("package-1", DomainKind::Package, None, &[]),
    ];
    let mut attributor = attributor(&domains, Options { keep_buckets: true, ..options(1.0) });
    // Package 0 takes 50 W for 10 ms, nothing for 10 ms, 25 W for 40 ms; package 1 takes 50, 0 and 75 W.
    for (time, first, second) in [(0, 0.0, 0.0), (10, 0.5, 0.5), (20, 0.5, 0.5), (60, 1.5, 3.5)] {
        attributor.reading(0, at(time), Joules::from_joules(first));
        attributor.reading(1, at(time), Joules::from_joules(second));
        if time > 0 {
            attributor.quantum(quantum(time - 10, time, 0, 10, 0));
        }
    }
    let result = attributor.finish();
    let ends: Vec<u64> = result.buckets.iter().map(|bucket| bucket.end.as_nanos()).collect();
    assert_eq!(ends, [10_000_000, 30_000_000, 40_000_000, 50_000_000, 60_000_000]);
    assert_eq!(joules(&result.buckets[1].measured), [0.25, 0.75]);
    // A quantum ends in the bucket whose end is its own.
    let quanta: Vec<u32> = result.buckets.iter().map(|bucket| bucket.quanta).collect();
    assert_eq!(quanta, [1, 1, 0, 0, 1]);
}

/// One package stops to give readings, and the other is not held up by it for longer than the horizon.
#[test]
fn a_meter_that_stops_holds_up_nobody() {
    let domains = [
        domain("package-0", DomainKind::Package, None, &[]),
        domain("package-1", DomainKind::Package, None, &[]),
    ];
    let mut attributor = attributor(&domains, Options { keep_buckets: true, ..options(0.2) });
    for step in 0..=100u64 {
        attributor.reading(0, at(step * 10), Joules::from_joules(0.1 * step as f64));
        if step <= 10 {
            attributor.reading(1, at(step * 10), Joules::from_joules(0.1 * step as f64));
        }
        if step > 0 {
            attributor.quantum(quantum(step * 10 - 10, step * 10, 0, 1, u32::from(step > 50)));
        }
    }
    let result = attributor.finish();
    assert!(result.buckets.len() > 2, "{} buckets", result.buckets.len());
    let sum: Joules = result.cell_joules.iter().copied().sum();
    assert!((sum.as_joules() - 11.0).abs() < 1e-9, "{sum}");
}

/// What was given away and what comes later is what there would have been in one table.
#[test]
fn cells_that_are_taken_out_early_have_what_they_would_have_had() {
    let run = |takes: bool| {
        let domains = [domain("p", DomainKind::Package, None, &[])];
        let options = Options { keep_buckets: true, sensitivities: true, ..options(0.1) };
        let mut attributor = attributor(&domains, options);
        let (mut taken, mut counts) = (Vec::new(), Vec::new());
        for step in 0..=40u64 {
            attributor.reading(0, at(step * 10), Joules::from_joules(0.1 * step as f64));
            if step > 0 {
                attributor.quantum(quantum(step * 10 - 10, step * 10, 0, 1 + step % 3, (step / 4) as u32));
            }
            if takes && step == 30 {
                // Cells 0 to 3 ended at 150 ms, long before the horizon.
                assert!(attributor.is_settled(at(150)) && !attributor.is_settled(at(290)));
                counts.push(attributor.bytes_in_buckets());
                taken.push(attributor.take_cells(4));
                counts.push(attributor.bytes_in_buckets());
            }
        }
        let mut result = attributor.finish();
        let cells = result.cell_joules.len();
        taken.push(result.take_cells(cells));
        let joules: Vec<f64> =
            taken.iter().flat_map(|taken| &taken.joules).map(|joules| joules.as_joules()).collect();
        let changes: Vec<f32> = taken.iter().flat_map(|taken| &taken.sensitivities).copied().collect();
        let entries: usize =
            taken.iter().flat_map(|taken| &taken.by_bucket).map(|(_, entries)| entries.len()).sum();
        (joules, changes, entries, counts)
    };
    let (whole, in_parts) = (run(false), run(true));
    assert_eq!(whole.0, in_parts.0);
    assert_eq!(whole.1, in_parts.1);
    assert_eq!(whole.2, in_parts.2);
    assert_eq!(whole.0.len(), 11);
    assert!(in_parts.3[0] > in_parts.3[1] && in_parts.3[1] > 0, "{:?}", in_parts.3);
}

/// Counts of cells that become one for each event add up, domain by domain and parameter by parameter.
#[test]
fn cells_are_merged_by_their_events() {
    let domains =
        [domain("cores", DomainKind::Cores, None, &[]), domain("memory", DomainKind::Dram, None, &[])];
    let weights = EventWeights::new(2, 2, |event, domain| [[1.0, 0.5], [0.25, 1.0]][event][domain]);
    let options = Options { sensitivities: true, ..options(1000.0) };
    let run = |is_merged: bool| {
        let mut attributor =
            Attributor::new(&domains, |_| Vec::new(), weights.clone(), options.clone(), true);
        let reading = |attributor: &mut Attributor, time, joules: f64| {
            (0..2).for_each(|domain| {
                attributor.reading(domain, at(time), Joules::from_joules(joules * (1.0 + domain as f64)))
            });
        };
        let event_of = |cell: u32| cell % 2;
        reading(&mut attributor, 0, 0.0);
        for cell in 0..6u32 {
            attributor
                .quantum(Quantum { event: event_of(cell), ..quantum(0, 10, 0, 10 + u64::from(cell), cell) });
        }
        reading(&mut attributor, 10, 20.0);
        if is_merged {
            attributor.merge_cells_by_event(2, event_of);
        }
        for cell in 0..6u32 {
            let into = if is_merged { event_of(cell) } else { cell };
            attributor.quantum(Quantum { event: event_of(cell), ..quantum(10, 20, 0, 5, into) });
        }
        reading(&mut attributor, 20, 50.0);
        attributor.finish()
    };
    let (whole, merged) = (run(false), run(true));
    assert_eq!((whole.cell_joules.len(), merged.cell_joules.len()), (12, 4));
    for at in 0..4 {
        let sum: f64 = (0..3).map(|cell| whole.cell_joules[4 * cell + at].as_joules()).sum();
        assert!((sum - merged.cell_joules[at].as_joules()).abs() < 1e-9, "{at}");
    }
    for at in 0..12 {
        let sum: f32 = (0..3).map(|cell| whole.sensitivities[12 * cell + at]).sum();
        assert!(
            (sum - merged.sensitivities[at]).abs() < 1e-4 * (1.0 + sum.abs()),
            "{at}: {sum} {:?}",
            merged.sensitivities
        );
    }
}
