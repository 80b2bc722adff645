//! Makes the visits of a plan and reads meters and counters meanwhile.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::error::CalibrateError;
use super::kernels::Kernel;
use super::outcome::Observed;
use super::plan::{FEWEST_ROUNDS, Plan, Step};
use super::workers::Workers;
use crate::hardware::{DomainInfo, DomainKind, MachineInfo, Method};
use crate::machine::permissions::Permissions;
use crate::machine::{ModelEvent, Roots, choose_model_events, topology};
use crate::measure::cpu_counters::{CpuCount, CpuCounters};
use crate::measure::{RunMeter, RunMeterError};
use crate::meter::{Discovery, MeterOptions, discover};
use crate::numerics::mean::SampleMean;
use crate::numerics::quantiles::median;
use crate::numerics::robust::MEDIAN_SIZE;
use crate::process::affinity::allowed_cpus;
use crate::units::{Joules, Nanoseconds};

/// How to calibrate.
#[derive(Debug, Clone)]
pub struct CalibrateOptions {
    /// Which meters to read.
    pub meters: MeterOptions,
    /// File in which each worker names its kernel before it runs it.
    pub announce: Option<PathBuf>,
    /// How long one visit is measured.
    pub visit: Duration,
    /// Relative standard error of each step's mean power at which to stop.
    pub precision: f64,
    /// No round is begun that would end later than this.
    pub limit: Duration,
}

/// Told of every visit.
pub trait Progress {
    /// A visit begins; `done` of about `expected` are made.
    fn begins(&mut self, step: &Step, done: usize, expected: usize);
}

/// What can be measured on this machine, before anything is.
pub struct Bench {
    /// The machine.
    pub machine: MachineInfo,
    /// What is to be done.
    pub plan: Plan,
    /// Events to count.
    pub events: Vec<ModelEvent>,
    /// What was replaced or left out among the events, and why.
    pub notes: Vec<String>,
    /// What keeps this machine from being calibrated, each with what would help.
    pub obstacles: Vec<String>,
    meter: RunMeter,
    options: CalibrateOptions,
}

/// All visits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Visits {
    /// What each showed, domain by domain.
    pub observed: Vec<Observed>,
    /// Rounds made.
    pub rounds: usize,
    /// The largest relative standard error of a step's mean power.
    pub precision: f64,
    /// Visits left out because something else drew power meanwhile: their power is far from that of the
    /// other visits of their step.
    pub disturbed: usize,
}

/// One visit: the power of the total in watts, and what was observed domain by domain.
#[derive(Debug, Clone, Default, PartialEq)]
struct Visit {
    watts: f64,
    observed: Vec<Observed>,
}

/// One visit: energies and counts, and between which instants.
struct Reading {
    time: Instant,
    joules: Vec<Joules>,
    counts: Vec<CpuCount>,
}

impl Bench {
    /// Looks at the machine. That it cannot be calibrated is no error here: see [`Bench::obstacles`].
    ///
    /// # Errors
    /// If the machine's CPUs cannot be listed.
    pub fn new(options: CalibrateOptions) -> Result<Self, CalibrateError> {
        let roots = Roots::default();
        let machine = topology::detect(&roots)?;
        let plan = Plan::new(&roots, &machine, &allowed_cpus(&machine), options.visit);
        let chosen = choose_model_events(&roots, &machine);
        let discovery = discover(&roots, &options.meters)?;
        let obstacles = obstacles(&roots, &discovery, &chosen.events);
        let meter = RunMeter::new(discovery, &[]).map_err(meter_error)?;
        let (events, notes) = (chosen.events, chosen.notes);
        Ok(Self { machine, plan, events, notes, obstacles, meter, options })
    }

    /// The domains that a model is fitted to.
    pub fn domains(&self) -> impl Iterator<Item = &DomainInfo> {
        self.meter.all_domains().map(|(domain, _)| domain).filter(|domain| kind(domain).is_some())
    }

    /// Makes rounds of visits until the mean powers are known well enough, or the time is up.
    ///
    /// # Errors
    /// [`CalibrateError::NotMeasurable`] if there are obstacles or the kernel refuses an event; else what
    /// goes wrong meanwhile.
    pub fn run(&mut self, progress: &mut dyn Progress) -> Result<Visits, CalibrateError> {
        if !self.obstacles.is_empty() {
            return Err(CalibrateError::NotMeasurable(self.obstacles.clone()));
        }
        let specs: Vec<_> = self.events.iter().map(|event| event.spec.clone()).collect();
        let cpus: Vec<u32> = self.machine.cpus.iter().map(|cpu| cpu.cpu).collect();
        let mut counters = CpuCounters::open(&specs, &cpus).map_err(|refused| {
            let help = match refused.is_permission() {
                true => Permissions::read(&Roots::default()).cpu_wide_repairs().one_line(),
                false => "the PMU is there and does not count; another program may hold it".to_owned(),
            };
            CalibrateError::NotMeasurable(vec![format!("{refused}; {help}")])
        })?;
        let start = Instant::now();
        let (mut rounds, mut precision) = (0, f64::INFINITY);
        let steps = self.plan.steps.clone();
        let mut made: Vec<Vec<Visit>> = vec![Vec::new(); steps.len()];
        while rounds < FEWEST_ROUNDS
            || precision > self.options.precision && start.elapsed() + self.plan.round() <= self.options.limit
        {
            let mut order: Vec<usize> = (0..steps.len()).collect();
            if rounds % 2 == 1 {
                // There and back: what drifts evenly adds the same to all steps.
                order.reverse();
            }
            for (at, &index) in order.iter().enumerate() {
                let done = rounds * steps.len() + at;
                let expected = FEWEST_ROUNDS.max(rounds + 1) * steps.len();
                progress.begins(&steps[index], done, expected);
                made[index].push(self.visit(&steps[index], &mut counters)?);
            }
            rounds += 1;
            precision = made.iter().map(|of_step| relative_error(&undisturbed(of_step))).fold(0.0, f64::max);
        }
        let total = made.iter().map(Vec::len).sum::<usize>();
        let kept: Vec<&Visit> = made.iter().flat_map(|of_step| undisturbed(of_step)).collect();
        let disturbed = total - kept.len();
        let observed = kept.into_iter().flat_map(|visit| visit.observed.clone()).collect();
        Ok(Visits { observed, rounds, precision, disturbed })
    }

    /// Runs a kernel.
    fn visit(&mut self, step: &Step, counters: &mut CpuCounters) -> Result<Visit, CalibrateError> {
        let mut observed = Vec::new();
        let announce = self.options.announce.as_deref().filter(|_| step.kernel != Kernel::Idle);
        let workers = Workers::start(step, announce)?;
        thread::sleep(self.plan.warm_up);
        let before = self.read(counters)?;
        thread::sleep(self.plan.visit);
        let after = self.read(counters)?;
        drop(workers);
        let rates = rates(&before.counts, &after.counts);
        let span = Nanoseconds::from_secs_f64((after.time - before.time).as_secs_f64());
        let mut total = 0.0;
        let energies = before.joules.iter().zip(&after.joules).map(|(before, after)| *after - *before);
        for ((domain, in_total), joules) in self.meter.all_domains().zip(energies) {
            let watts = (joules / span).as_watts();
            let Some(kind) = kind(domain) else { continue };
            if in_total {
                total += watts;
            }
            let feeds = |cpu: u32| feeds(&self.machine, domain, cpu);
            let of_event = |event: usize| {
                let of_cpus = rates.iter().filter(|((counted, cpu), _)| *counted == event && feeds(*cpu));
                of_cpus.map(|(_, rate)| rate).sum()
            };
            observed.push(Observed {
                workload: step.kernel.name(),
                domain: kind,
                rates: (0..self.events.len()).map(of_event).collect(),
                watts,
            });
        }
        Ok(Visit { watts: total, observed })
    }

    fn read(&mut self, counters: &mut CpuCounters) -> Result<Reading, CalibrateError> {
        let counts = counters.read().map_err(CalibrateError::Counters)?;
        let start = Instant::now();
        let joules = self.meter.read_all().map_err(meter_error)?;
        Ok(Reading { time: start + start.elapsed() / 2, joules, counts })
    }
}

fn meter_error(error: RunMeterError) -> CalibrateError {
    CalibrateError::Meter(match error {
        RunMeterError::Meter(cause) => cause,
        other => std::io::Error::other(other.to_string()),
    })
}

/// What stands in the way, each with what would help.
fn obstacles(roots: &Roots, discovery: &Discovery, events: &[ModelEvent]) -> Vec<String> {
    let mut obstacles = Vec::new();
    if !discovery.measures_cpus() {
        let tried = discovery.rejected.iter().map(|rejected| format!("\n    {rejected}"));
        obstacles.push(format!(
            "no meter measures the CPUs, and an estimate cannot be calibrated by; virtual machines have none: \
             calibrate on the machine itself{}",
            tried.collect::<String>()
        ));
    }
    if events.iter().all(|event| event.spec.is_software()) {
        obstacles.push(
            "no PMU counts events of the cores here; a virtual machine must be given one (QEMU and libvirt: -cpu \
             host,pmu=on), or calibrate on the machine itself"
                .to_owned(),
        );
    } else {
        let rights = Permissions::read(roots);
        if !rights.cpu_wide_events() {
            let repair = rights.cpu_wide_repairs().one_line();
            obstacles.push(format!("this user may not count events of whole CPUs; {repair}"));
        }
    }
    obstacles
}

/// The kind that models have for a measured domain; `None` for those that no event of a core explains.
fn kind(domain: &DomainInfo) -> Option<DomainKind> {
    if domain.method == Method::Estimated {
        return None;
    }
    match domain.kind {
        kind @ (DomainKind::Package | DomainKind::Cores | DomainKind::Dram) => Some(kind),
        // A machine with a sensor for the whole board only: that is what its events cost.
        DomainKind::Platform if domain.source.contains("hwmon") => Some(DomainKind::Package),
        _ => None,
    }
}

fn feeds(machine: &MachineInfo, domain: &DomainInfo, cpu: u32) -> bool {
    if !domain.cpus.is_empty() {
        return domain.cpus.contains(&cpu);
    }
    let in_package = |package| machine.cpus.iter().any(|info| info.cpu == cpu && info.package == package);
    domain.package.is_none_or(in_package)
}

/// Events per second of the time that they were counted, by event and CPU.
fn rates(before: &[CpuCount], after: &[CpuCount]) -> BTreeMap<(usize, u32), f64> {
    let rate = |(before, after): (&CpuCount, &CpuCount)| {
        let seconds = after.running.saturating_sub(before.running) as f64 * 1e-9;
        let events = after.value.saturating_sub(before.value) as f64;
        ((after.event, after.cpu), if seconds > 0.0 { events / seconds } else { f64::NAN })
    };
    before.iter().zip(after).map(rate).collect()
}

/// The standard error of a mean, relative to it.
/// Visits of a step whose power is near to the median of all of them.
fn undisturbed(of_step: &[Visit]) -> Vec<&Visit> {
    /// Visits of a quiet machine differ by less.
    const FAR: f64 = 0.05;
    /// Times the median distance, where they do differ: five standard deviations.
    const OUTLIER: f64 = 5.0 / MEDIAN_SIZE;
    let median_of = |value: &dyn Fn(&Visit) -> f64| {
        median(&mut of_step.iter().map(value).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let usual = median_of(&|visit| visit.watts);
    let distance = |visit: &Visit| (visit.watts - usual).abs();
    let limit = (OUTLIER * median_of(&distance)).max(FAR * usual);
    of_step.iter().filter(|visit| distance(visit) <= limit).collect()
}

fn relative_error(visits: &[&Visit]) -> f64 {
    let mean = SampleMean::of(visits.iter().map(|visit| visit.watts)).filter(|mean| mean.value > 0.0);
    mean.and_then(|mean| Some(mean.standard_error()? / mean.value)).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_time_counted() {
        let count = |value, running| CpuCount { event: 1, cpu: 3, value, running };
        // Counted for a quarter of a second only, as events that take turns are.
        let rates = rates(&[count(100, 1_000_000_000)], &[count(600, 1_250_000_000)]);
        assert_eq!(rates, BTreeMap::from([((1, 3), 2000.0)]));
    }

    #[test]
    fn the_error_of_a_mean_by_hand() {
        // Mean 10, s = 1, three values.
        let of_step = [9.0, 10.0, 11.0].map(|watts| Visit { watts, ..Visit::default() });
        let visits: Vec<_> = of_step.iter().collect();
        assert!((relative_error(&visits) - 1.0 / 3f64.sqrt() / 10.0).abs() < 1e-12);
        assert_eq!(relative_error(&visits[..1]), f64::INFINITY);
    }

    #[test]
    fn a_visit_during_which_something_else_drew_power_is_left_out() {
        let kept = |powers: &[f64]| {
            let visit = |watts: &f64| Visit { watts: *watts, ..Visit::default() };
            let of_step: Vec<Visit> = powers.iter().map(visit).collect();
            undisturbed(&of_step).iter().map(|visit| visit.watts).collect::<Vec<f64>>()
        };
        assert_eq!(kept(&[20.0, 31.0, 20.1]), [20.0, 20.1]);
        assert_eq!(kept(&[20.0, 20.9, 20.1]), [20.0, 20.9, 20.1], "within 5 %");
        // Where all differ, none is wrong.
        assert_eq!(kept(&[16.0, 20.0, 24.0, 29.0]), [16.0, 20.0, 24.0, 29.0]);
    }
}
