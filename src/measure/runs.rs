//! Runs of one or two programs, in turns, with the energy of each: what `eprof stat` shows.
//!
//! The program has eprof's own terminal, standard streams and signals, as if it had been started without
//! it; meters are read before it is let go and after it has ended. Without a program, they are read until the processes
//! that are watched have ended, or until a signal.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::hardware::{DomainInfo, Method};
use crate::machine::Roots;
use crate::machine::topology::TopologyError;
use crate::measure::run_observations::Observations;
use crate::measure::subject::{CpuSeconds, Subject};
use crate::measure::{RunMeter, RunMeterError};
use crate::meter::{MeterOptions, discover};
use crate::process::clocks::children_cpu_seconds;
use crate::process::{LaunchError, Outcome, ReceivedSignal, Signals, Streams, SystemError, Waiting, reap};
use crate::stat::{EnergyOf, MeasuredDomain, Measurements, Run, Series, Slice};
use crate::units::{Joules, Nanoseconds, Watts};

/// What to run, and how often.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Whose energy is measured.
    pub subject: Subject,
    /// The programs with their arguments; two are run in turns. With none, there is one run without a program.
    pub commands: Vec<Vec<OsString>>,
    /// Runs of each that count.
    pub repeats: usize,
    /// Runs of each before those.
    pub warmups: usize,
    /// Which meters to read, and what to assume without any.
    pub meters: MeterOptions,
    /// Domains of the total by name; empty for all that are in no other.
    pub domains: Vec<String>,
    /// Measure the idle machine for this long first, and take its power out of every run.
    pub idle: Option<Duration>,
    /// Go on when a program fails.
    pub ignore_failure: bool,
    /// Show what each such stretch of time took.
    pub interval: Option<Duration>,
}

/// Why no runs were measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A program could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// There is nobody to attach to.
    #[error("no process {0} to measure")]
    NoSuchProcess(u32),
    /// The energy is not known.
    #[error(transparent)]
    Meter(#[from] RunMeterError),
    /// The machine cannot be described.
    #[error(transparent)]
    Machine(#[from] TopologyError),
    /// Signals could not be taken over.
    #[error(transparent)]
    Signals(#[from] SystemError),
}

/// The runs, and how the last one that matters ended.
#[derive(Debug)]
pub struct Finished {
    /// What was measured.
    pub measurements: Measurements,
    /// The first failure's exit status as a shell tells it, or that of the signal that ended the runs;
    /// 0 if all went well.
    pub exit_status: u8,
}

/// How long it may take until the end of a process is noticed that is not eprof's child.
const WATCH: Duration = Duration::from_millis(50);

/// A run that is about to begin, of all that are to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeginningRun {
    /// Its number, from 1.
    pub number: usize,
    /// All runs of all programs, those to warm up too.
    pub of: usize,
}

/// Makes the runs. What stretches of time took is given to `show`, if that is wanted, and each run is announced to
/// `begins`.
///
/// Signals of the calling thread are taken over meanwhile, and programs are started with `fork`: to be
/// called before other threads are made.
///
/// # Errors
/// A program that cannot be started, an unknown domain, a meter that cannot be read.
pub fn measure(
    options: &RunOptions,
    show: &mut dyn FnMut(&[MeasuredDomain], &Slice),
    begins: &mut dyn FnMut(BeginningRun),
) -> Result<Finished, RunError> {
    let roots = Roots::default();
    let signals = Signals::take_over()?;
    let cpu_seconds = CpuSeconds::new(&roots);
    if let Subject::Processes(pids) = &options.subject
        && let Some(&missing) = pids.iter().find(|&&pid| !cpu_seconds.is_alive(pid))
    {
        return Err(RunError::NoSuchProcess(missing));
    }
    let meter = RunMeter::new(discover(&roots, &options.meters)?, &options.domains)?;
    let observations = Observations::new(&roots, &[]);
    let mut bench = Bench {
        meter,
        signals,
        observations,
        interrupted: None,
        subject: &options.subject,
        interval: options.interval,
        cpu_seconds,
        show,
    };
    let idle = options.idle.map(|time| bench.idle_power(time)).transpose()?;
    let domains = domains(&bench.meter, idle.as_deref());
    let nothing = [Vec::new()];
    let commands = if options.commands.is_empty() { &nothing[..] } else { &options.commands };
    let name = |argv| options.subject.name().unwrap_or_else(|| line(argv));
    let mut series: Vec<Series> =
        commands.iter().map(|argv| Series { command: name(argv), runs: Vec::new() }).collect();
    let mut exit_status = 0;
    let rounds = options.warmups + options.repeats;
    'rounds: for round in 0..rounds {
        for (program, (argv, series)) in commands.iter().zip(&mut series).enumerate() {
            if bench.interrupted.is_some() {
                break 'rounds;
            }
            begins(BeginningRun {
                number: round * commands.len() + program + 1,
                of: rounds * commands.len(),
            });
            let (run, outcome) = bench.run(argv, &domains)?;
            // A run that was cut short says nothing of a whole one, unless it is all there is.
            let is_whole = bench.interrupted.is_none() || outcome == Outcome::Exited(0);
            if round >= options.warmups && (is_whole || series.runs.is_empty()) {
                series.runs.push(run);
            }
            if exit_status == 0 {
                exit_status = outcome.exit_status();
            }
            if outcome.exit_status() != 0 && !options.ignore_failure {
                break 'rounds;
            }
        }
    }
    // To be interrupted is how a measurement ends that no program ends.
    if options.commands.is_empty() {
        bench.interrupted = None;
    }
    if let Some(signal) = bench.interrupted.filter(|_| exit_status == 0) {
        exit_status = Outcome::Killed(signal).exit_status();
    }
    let mut warnings = bench.meter.warnings().to_vec();
    // An estimate is made of the program's own CPU time, which is exact however short it is.
    let short_run = bench.observations.short_run(&bench.meter).filter(|_| !bench.meter.is_estimated());
    warnings.extend(short_run);
    if options.subject == Subject::Programs {
        warnings.extend(bench.observations.disturbance(&bench.meter));
    }
    let short = series.iter().any(|series| series.runs.len() < options.repeats);
    if short && bench.interrupted.is_none() && exit_status != 0 && options.repeats > 1 {
        warnings.push(format!(
            "the program failed with status {exit_status}, so no more runs were made; --ignore-failure goes on"
        ));
    }
    let measurements = Measurements {
        domains,
        series,
        warmups: options.warmups,
        energy_of: match &options.subject {
            Subject::Programs | Subject::Processes(_) if bench.meter.is_estimated() => match options.idle {
                None => EnergyOf::ProgramAndIdle,
                Some(_) => EnergyOf::Program,
            },
            _ => EnergyOf::Machine,
        },
        interrupted: bench.interrupted.map(|signal| signal.to_string()),
        warnings,
    };
    Ok(Finished { measurements, exit_status })
}

/// What all runs have in common.
struct Bench<'a> {
    meter: RunMeter,
    signals: Signals,
    observations: Observations,
    /// The signal that asked eprof, or the whole terminal, to end.
    interrupted: Option<Signal>,
    subject: &'a Subject,
    interval: Option<Duration>,
    cpu_seconds: CpuSeconds,
    show: &'a mut dyn FnMut(&[MeasuredDomain], &Slice),
}

/// What clock and meters said at some time of a run.
struct Moment {
    seconds: f64,
    cpu_seconds: f64,
    energies: Vec<Joules>,
}

impl Bench<'_> {
    /// The power of each domain while nothing is run.
    fn idle_power(&mut self, time: Duration) -> Result<Vec<Watts>, RunError> {
        let before = self.meter.read_all()?;
        let start = Instant::now();
        let end = start + time;
        while self.interrupted.is_none() && Instant::now() < end {
            self.wait(end.min(Instant::now() + self.meter.longest_pause()), None);
            self.meter.read_all()?;
        }
        let after = self.meter.read_all()?;
        let span = Nanoseconds::from_secs_f64(start.elapsed().as_secs_f64());
        let assumed = self.meter.all_domains().map(|(domain, _)| domain.static_power);
        // An estimate knows what it takes for idle.
        let watts = assumed.zip(before.iter().zip(&after));
        Ok(watts.map(|(assumed, (before, after))| assumed.unwrap_or((*after - *before) / span)).collect())
    }

    /// One run, to the program's end whatever is signalled meanwhile: signals are handed on to it. Without a program,
    /// to a signal or to the end of the processes that are watched.
    fn run(&mut self, argv: &[OsString], domains: &[MeasuredDomain]) -> Result<(Run, Outcome), RunError> {
        let program = match argv {
            [] => None,
            argv => Some(Waiting::spawn(argv, self.signals.original_mask(), None, &[], &Streams::default())?),
        };
        let children_before = children_cpu_seconds();
        self.observations.begin();
        let first_cpu = self.cpu_seconds_of(None, 0.0);
        let energies = self.meter.read_all()?;
        let start = Instant::now();
        let begin = Moment { seconds: 0.0, cpu_seconds: first_cpu, energies };
        let pid = program.map(Waiting::release).transpose()?;
        let mut unreadable = None;
        // The latest known CPU time: that of a process that has ended can no longer be asked for.
        let mut cpu_seconds = first_cpu;
        let mut shown = Moment { energies: begin.energies.clone(), ..begin };
        let mut next = self.interval.map(|interval| start + interval);
        let outcome = loop {
            let now = Instant::now();
            let watches = matches!(self.subject, Subject::Processes(_)).then(|| now + WATCH);
            let until =
                [next, watches].into_iter().flatten().fold(now + self.meter.longest_pause(), Instant::min);
            if let Some(outcome) = self.wait(until, pid) {
                break outcome;
            }
            cpu_seconds = self.cpu_seconds_of(pid, cpu_seconds);
            if let Some(outcome) = self.end_without_program(pid) {
                break outcome;
            }
            // Wraps must not go unseen; what a reading says matters to intervals only.
            match self.meter.read_all() {
                Err(error) => unreadable = unreadable.or(Some(error)),
                Ok(energies) if next.is_some_and(|next| Instant::now() >= next) => {
                    let moment = Moment { seconds: start.elapsed().as_secs_f64(), cpu_seconds, energies };
                    self.show_slice(&shown, &moment, domains);
                    shown = moment;
                    next =
                        next.zip(self.interval).map(|(next, interval)| (next + interval).max(Instant::now()));
                }
                Ok(_) => {}
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        let energies = self.meter.read_all()?;
        if let Some(error) = unreadable {
            return Err(error.into());
        }
        let cpu_seconds = match self.subject {
            // Exact, and known only now.
            Subject::Programs => children_cpu_seconds() - children_before,
            Subject::Processes(_) | Subject::Machine => self.cpu_seconds_of(None, cpu_seconds),
        };
        let end = Moment { seconds, cpu_seconds, energies };
        if self.interval.is_some() {
            self.show_slice(&shown, &end, domains);
        }
        let begin = Moment { seconds: 0.0, cpu_seconds: first_cpu, energies: begin.energies };
        let run = self.between(&begin, &end, domains);
        self.observations.end(seconds, run.cpu_seconds);
        Ok((run, outcome))
    }

    /// CPU time of the subject until now; for a program, of the one that runs. It never goes back: what a process took
    /// that has ended is known to its parent alone.
    fn cpu_seconds_of(&self, program: Option<Pid>, before: f64) -> f64 {
        let now = match self.subject {
            Subject::Machine => self.cpu_seconds.of_machine(),
            Subject::Processes(pids) => {
                Some(pids.iter().filter_map(|&pid| self.cpu_seconds.of_process(pid)).sum())
            }
            // Only intervals ask for it before the program's end.
            Subject::Programs if self.interval.is_none() => None,
            Subject::Programs => program.and_then(|pid| self.cpu_seconds.of_process(pid.as_raw() as u32)),
        };
        now.map_or(before, |now: f64| now.max(before))
    }

    /// How a run without a program ended, if it has.
    fn end_without_program(&self, program: Option<Pid>) -> Option<Outcome> {
        if program.is_some() {
            return None;
        }
        if let Some(signal) = self.interrupted {
            return Some(Outcome::Stopped(signal));
        }
        match self.subject {
            Subject::Processes(pids) if !pids.iter().any(|&pid| self.cpu_seconds.is_alive(pid)) => {
                Some(Outcome::TargetsEnded)
            }
            _ => None,
        }
    }

    fn show_slice(&mut self, begin: &Moment, end: &Moment, domains: &[MeasuredDomain]) {
        let slice = Slice { end: end.seconds, run: self.between(begin, end, domains) };
        (self.show)(domains, &slice);
    }

    /// What the subject took between two moments, above idle if that is known.
    fn between(&self, begin: &Moment, end: &Moment, domains: &[MeasuredDomain]) -> Run {
        let seconds = end.seconds - begin.seconds;
        let cpu_seconds = (end.cpu_seconds - begin.cpu_seconds).max(0.0);
        let used: Vec<Joules> =
            begin.energies.iter().zip(&end.energies).map(|(before, after)| *after - *before).collect();
        let mut joules = match self.subject {
            Subject::Machine => used,
            Subject::Programs | Subject::Processes(_) => {
                let infos: Vec<&DomainInfo> = domains.iter().map(|domain| &domain.info).collect();
                estimates_of_the_program(&infos, &used, seconds, cpu_seconds)
            }
        };
        let span = Nanoseconds::from_secs_f64(seconds);
        for (joules, domain) in joules.iter_mut().zip(domains) {
            *joules -= domain.idle.unwrap_or(Watts::ZERO) * span;
        }
        Run { seconds, cpu_seconds, joules }
    }

    /// Waits until `until`, a signal that ends eprof, or the end of `program`, whose outcome it returns.
    fn wait(&mut self, until: Instant, program: Option<Pid>) -> Option<Outcome> {
        loop {
            while let Some(signal) = self.signals.next() {
                match signal {
                    ReceivedSignal::ChildChanged => {}
                    ReceivedSignal::FromTerminal(signal) => self.interrupted = Some(signal),
                    ReceivedSignal::Stop(signal) => {
                        self.interrupted = Some(signal);
                        if let Some(pid) = program {
                            let _ = kill(pid, signal);
                        }
                    }
                }
            }
            match program {
                Some(pid) => {
                    if let Some(outcome) = reap(pid) {
                        return Some(outcome);
                    }
                }
                None if self.interrupted.is_some() => return None,
                None => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let mut news = [PollFd::new(self.signals.descriptor().as_fd(), PollFlags::POLLIN)];
            // An interrupted wait is as good as one that ended.
            let _ = poll(&mut news, PollTimeout::try_from(left).unwrap_or(PollTimeout::from(u16::MAX)));
        }
    }
}

fn domains(meter: &RunMeter, idle: Option<&[Watts]>) -> Vec<MeasuredDomain> {
    let idle = |index: usize| idle.and_then(|idle| idle.get(index).copied());
    let all = meter.all_domains().enumerate();
    all.map(|(index, (info, in_total))| MeasuredDomain { info: info.clone(), in_total, idle: idle(index) })
        .collect()
}

/// The program's joules: what was measured as it is, for nobody can tell whose it was; an estimate from
/// the program's own CPU time.
///
/// The meter's estimate of a run counts whatever was busy, in ticks of 10 ms. What the program took of
/// the CPUs is known exactly, so its estimate is made of that: idle power for all of the time and, for
/// each second of CPU time, the power that a busy CPU adds (which is a tick's resolution by its length).
/// Several packages share the CPU time as their own ticks say.
fn estimates_of_the_program(
    domains: &[&DomainInfo],
    used: &[Joules],
    seconds: f64,
    cpu_seconds: f64,
) -> Vec<Joules> {
    let span = Nanoseconds::from_secs_f64(seconds);
    let idle = |domain: &DomainInfo| domain.static_power.unwrap_or(Watts::ZERO) * span;
    let per_busy_cpu = |domain: &DomainInfo| Some(domain.resolution? / domain.refresh?);
    let is_estimate =
        |domain: &DomainInfo| domain.method == Method::Estimated && per_busy_cpu(domain).is_some();
    let busy = |domain: &DomainInfo, used: Joules| (used - idle(domain)).max(Joules::ZERO);
    let estimated = || domains.iter().zip(used).filter(|(domain, _)| is_estimate(domain));
    let all_busy: Joules = estimated().map(|(domain, used)| busy(domain, *used)).sum();
    let count = estimated().count() as f64;
    let of_domain = |(domain, used): (&&DomainInfo, &Joules)| match per_busy_cpu(domain) {
        Some(watts) if is_estimate(domain) => {
            let share = if all_busy > Joules::ZERO { busy(domain, *used) / all_busy } else { 1.0 / count };
            idle(domain) + watts * Nanoseconds::from_secs_f64(cpu_seconds * share)
        }
        _ => *used,
    };
    domains.iter().zip(used).map(of_domain).collect()
}

fn line(argv: &[OsString]) -> String {
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::DomainKind;

    fn domain(method: Method, idle: f64, busy_cpu: f64) -> DomainInfo {
        let tick = Nanoseconds::from_millis(10);
        DomainInfo {
            package: Some(0),
            resolution: Some(Watts::from_watts(busy_cpu) * tick),
            refresh: Some(tick),
            static_power: Some(Watts::from_watts(idle)),
            ..DomainInfo::new("package", DomainKind::Package, "", method)
        }
    }

    fn joules(values: &[f64]) -> Vec<Joules> {
        values.iter().copied().map(Joules::from_joules).collect()
    }

    #[test]
    fn an_estimate_is_of_the_programs_own_time() {
        let domain = domain(Method::Estimated, 2.0, 5.0);
        // In 3 s all CPUs were busy for 4 s, 1.5 s of which the program had.
        let used = joules(&[3.0 * 2.0 + 4.0 * 5.0]);
        let own = estimates_of_the_program(&[&domain], &used, 3.0, 1.5);
        assert!((own[0].as_joules() - (6.0 + 7.5)).abs() < 1e-9);
        // A run shorter than a tick has its CPU time all the same.
        let own = estimates_of_the_program(&[&domain], &joules(&[0.006]), 0.003, 0.002);
        assert!((own[0].as_joules() - (0.006 + 0.010)).abs() < 1e-9);
    }

    #[test]
    fn packages_share_the_time_by_their_ticks() {
        let (one, other) = (domain(Method::Estimated, 2.0, 5.0), domain(Method::Estimated, 2.0, 5.0));
        let own = estimates_of_the_program(&[&one, &other], &joules(&[2.0 + 15.0, 2.0 + 5.0]), 1.0, 2.0);
        assert!((own[0].as_joules() - (2.0 + 7.5)).abs() < 1e-9);
        assert!((own[1].as_joules() - (2.0 + 2.5)).abs() < 1e-9);
    }

    #[test]
    fn what_was_measured_stays_as_it_is() {
        let domain = domain(Method::Measured, 2.0, 5.0);
        assert_eq!(estimates_of_the_program(&[&domain], &joules(&[12.5]), 1.0, 0.1), joules(&[12.5]));
    }
}
