//! What the machine draws while nothing runs, learnt in the moment before a program starts.
//!
//! A program that never waits says nothing of it: where one CPU runs all the time, its cycles rise as evenly as the
//! time does, and joules per cycle and static watts cannot be told apart. A fifth of a second without the program
//! tells them apart, if the machine is otherwise idle.

use std::time::Duration;

use crate::hardware::{DomainInfo, DomainKind, Method, RestPower};
use crate::machine::Roots;
use crate::meter::{CounterReading, EnergyMeter};
use crate::process::clocks::monotonic_now;
use crate::record::cpu_times::CpuTimesReader;
use crate::record::opened::Opened;
use crate::record::options::TargetTasks;
use crate::recording::energy::CpuTimes;
use crate::units::{Nanoseconds, Timestamp, Watts};

/// With more of its CPUs' time taken than this, a machine is not at rest;
const BUSY: f64 = 0.02;
/// unless it is no more than the step of the kernel's statistics.
const TICK: Nanoseconds = Nanoseconds::from_millis(10);
/// One CPU that runs may draw as much as this share of what the machine draws at rest.
const OF_A_BUSY_CPU: f64 = 0.5;
/// What a machine draws at rest moves by about a per cent with its temperature in the minutes after.
const STEADINESS: f64 = 0.01;
/// Watched so many times at most, until nothing at all ran meanwhile;
const MOST_TRIES: usize = 3;
/// and not again where it was no rest so many times: there something runs all the time.
const MOST_BUSY: usize = 2;
/// A meter that moves less often than this in the time says nothing.
const FEWEST_REFRESHES: f64 = 10.0;

/// Watches the meters of what was opened for `time`, and puts down what their domains draw. Where anything ran meanwhile, it
/// watches again, and the quietest time counts. Does nothing where a calibration or an estimate says it, or where the target
/// runs already.
pub fn watch(opened: &mut Opened, tasks: &TargetTasks, time: Duration, roots: &Roots) {
    let wants = |domain: &DomainInfo| can_rest(domain) && domain.static_power.is_none();
    if time.is_zero() || tasks.command().is_none() || !opened.domains.iter().any(wants) {
        return;
    }
    let Ok(mut cpu_times) = CpuTimesReader::open(roots) else { return };
    // Of all that is read the meters are read last and first: what else it takes is not in what they counted.
    let once = || {
        let cpus = cpu_times.read().ok()?;
        let (begin, readings) = read(&mut opened.meters);
        let before = Moment { time: begin, cpus, readings };
        std::thread::sleep(time);
        let (end, readings) = read(&mut opened.meters);
        Some((before, Moment { time: end, cpus: cpu_times.read().ok()?, readings }))
    };
    match quietest(once) {
        Some((before, after, busy)) => {
            for (index, domain) in opened.domains.iter_mut().enumerate().filter(|(_, domain)| wants(domain)) {
                domain.rest = before.power_until(&after, index, domain, busy);
            }
        }
        None => opened.notes.push(
            "the machine was not at rest before the program started, so its static power is taken from the recording \
             alone; `eprof calibrate`, once, on a quiet machine, tells it better"
                .to_owned(),
        ),
    }
}

/// Of some times, that in which the least ran, from its beginning to its end, and how many CPUs were busy in it; `None` if none
/// was a rest.
fn quietest(mut once: impl FnMut() -> Option<(Moment, Moment)>) -> Option<(Moment, Moment, f64)> {
    let (mut best, mut times_busy) = (None::<(Moment, Moment, f64)>, 0);
    for _ in 0..MOST_TRIES {
        let (before, after) = once()?;
        let Some(busy) = before.busy_until(&after) else {
            times_busy += 1;
            if times_busy == MOST_BUSY {
                break;
            }
            continue;
        };
        if best.as_ref().is_none_or(|(_, _, least)| busy < *least) {
            best = Some((before, after, busy));
        }
        if busy == 0.0 {
            break;
        }
    }
    best
}

/// Whether no program's work is left in what the domain draws when CPUs are idle.
fn can_rest(domain: &DomainInfo) -> bool {
    domain.method == Method::Measured && domain.kind != DomainKind::Gpu
}

/// Meters and CPU times at one time.
struct Moment {
    time: Timestamp,
    cpus: CpuTimes,
    readings: Vec<Option<CounterReading>>,
}

/// Reads all meters, and tells when.
fn read(meters: &mut [Box<dyn EnergyMeter>]) -> (Timestamp, Vec<Option<CounterReading>>) {
    let (mut readings, mut scratch) = (Vec::new(), Vec::new());
    let before = monotonic_now();
    for meter in meters {
        let domains = meter.domains().len();
        if meter.read(&mut scratch).is_err() {
            scratch.clear();
        }
        scratch.resize(domains, None);
        readings.append(&mut scratch);
    }
    let half = Nanoseconds::from_nanos(monotonic_now().since(before).as_nanos() / 2);
    (before + half, readings)
}

impl Moment {
    /// How many CPUs were busy on average, the recorder apart; `None` if that was no rest.
    fn busy_until(&self, after: &Self) -> Option<f64> {
        let total = |times: &CpuTimes| times.busy.iter().map(|(_, time)| time.as_nanos()).sum::<u64>();
        let own = after.cpus.recorder.as_nanos().saturating_sub(self.cpus.recorder.as_nanos());
        let busy = total(&after.cpus).saturating_sub(total(&self.cpus)).saturating_sub(own) as f64;
        let time = after.time.since(self.time).as_nanos() as f64;
        let allowed = (BUSY * time * after.cpus.busy.len() as f64).max(TICK.as_nanos() as f64);
        (time > 0.0 && busy <= allowed).then(|| busy / time)
    }

    fn power_until(&self, after: &Self, index: usize, domain: &DomainInfo, busy: f64) -> Option<RestPower> {
        let joules = after.readings.get(index).copied()??.energy - self.readings.get(index).copied()??.energy;
        let seconds = after.time.since(self.time).as_nanos() as f64 * 1e-9;
        let watts = joules.as_joules() / seconds;
        let refresh = domain.refresh.map_or(0.0, |refresh| refresh.as_nanos() as f64 * 1e-9);
        if watts <= 0.0 || !watts.is_finite() || refresh * FEWEST_REFRESHES > seconds {
            return None;
        }
        let of_meter = refresh / seconds;
        let share = STEADINESS.hypot(of_meter).hypot(busy * OF_A_BUSY_CPU);
        Some(RestPower { power: Watts::from_watts(watts), std_error: Watts::from_watts(watts * share) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Joules;

    fn moment(millis: u64, busy_millis: [u64; 2], joules: f64) -> Moment {
        let busy = busy_millis.into_iter().enumerate();
        let busy = busy.map(|(cpu, millis)| (cpu as u32, Nanoseconds::from_millis(millis))).collect();
        Moment {
            time: Timestamp::from_nanos(millis * 1_000_000),
            cpus: CpuTimes { recorder: Nanoseconds::ZERO, busy },
            readings: vec![Some(CounterReading { energy: Joules::from_joules(joules), raw: 0 }), None],
        }
    }

    fn domain(refresh_millis: u64) -> DomainInfo {
        let domain = DomainInfo::new("package-0", DomainKind::Package, "power PMU", Method::Measured);
        DomainInfo { refresh: Some(Nanoseconds::from_millis(refresh_millis)), ..domain }
    }

    #[test]
    fn a_quiet_moment_tells_watts_and_how_sure_they_are() {
        let (before, after) = (moment(1000, [500, 700], 40.0), moment(1200, [500, 700], 43.0));
        let busy = before.busy_until(&after).expect("at rest");
        let rest = before.power_until(&after, 0, &domain(1), busy).expect("a meter that moves");
        assert!((rest.power.as_watts() - 15.0).abs() < 1e-9);
        // One per cent, and a millisecond of 200.
        assert!((rest.std_error.as_watts() / 15.0 - 0.01_f64.hypot(0.005)).abs() < 1e-9);
        assert_eq!(before.power_until(&after, 1, &domain(1), busy), None, "not read");
        assert_eq!(before.power_until(&after, 0, &domain(50), busy), None, "it moved four times");
    }

    #[test]
    fn the_quietest_of_three_times_counts() {
        // Busy milliseconds and joules of each time of 200 ms.
        let watched = |times: &[(u64, f64)]| {
            let mut times = times.iter();
            let mut asked = 0;
            let once = || {
                let (busy, joules) = times.next()?;
                asked += 1;
                Some((moment(1000, [500, 700], 40.0), moment(1200, [500 + busy, 700], 40.0 + joules)))
            };
            let found = quietest(once);
            let watts = found.map(|(before, after, busy)| {
                let rest = before.power_until(&after, 0, &domain(1), busy).expect("a meter that moves");
                (rest.power.as_watts().round(), busy)
            });
            (watts, asked)
        };
        assert_eq!(watched(&[(0, 3.0)]), (Some((15.0, 0.0)), 1), "no longer than it must");
        assert_eq!(watched(&[(10, 3.4), (0, 3.0), (0, 9.0)]), (Some((15.0, 0.0)), 2));
        assert_eq!(watched(&[(10, 3.4), (50, 4.0), (10, 9.0)]), (Some((17.0, 0.05)), 3));
        assert_eq!(watched(&[(50, 3.4), (10, 3.4), (0, 3.0)]), (Some((15.0, 0.0)), 3));
        assert_eq!(watched(&[(50, 3.4), (50, 4.0), (0, 3.0)]), (None, 2));
    }

    #[test]
    fn one_tick_widens_the_error_and_more_is_no_rest() {
        let before = moment(1000, [500, 700], 40.0);
        let after = moment(1200, [500, 710], 43.0);
        let busy = before.busy_until(&after).expect("one tick");
        let rest = before.power_until(&after, 0, &domain(1), busy).expect("a meter that moves");
        assert!(rest.std_error.as_watts() > 15.0 * 0.025, "{rest:?}");
        assert_eq!(before.busy_until(&moment(1200, [520, 700], 43.0)), None);
    }
}
