//! What must be tried on the machine itself, and what stands for it where there is only a tree of files.

use std::io;
use std::time::{Duration, Instant};

use super::finding::{Candidate, Finding, Needs};
use super::rejected::{self, Rejected};
use super::source::Source;
use super::watch::Observation;
use super::{CounterReading, EnergyMeter};
use crate::hardware::DomainInfo;
use crate::machine::permissions::Permissions;
use crate::units::Nanoseconds;

/// How long counters that rest are watched, in multiples of the shortest watch.
const LONGEST_WATCH: u32 = 2;
/// Counters that are read less often than this are not known to rest, however long it took: the
/// reader may have been kept waiting between two of few readings.
const FEWEST_ROUNDS: usize = 8;
/// After so many moves a counter's refresh period is known well enough.
const ENOUGH_MOVES: usize = 5;
/// Pause between two readings while watching.
const WATCH_PAUSE: Duration = Duration::from_micros(50);

/// Opens sources and watches them.
pub(super) trait Probe {
    /// Opens what was found.
    fn open(&self, found: Box<dyn Finding>, rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>>;

    /// Watches all candidates side by side: for each of them, what its domains did. Those that are known to work are
    /// not watched.
    fn watch(&self, candidates: &mut [Box<dyn Candidate>], shortest: Duration) -> Vec<Vec<Observation>>;
}

/// The machine that eprof runs on.
pub(super) struct Kernel;

impl Probe for Kernel {
    fn open(&self, found: Box<dyn Finding>, rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>> {
        found.open(rejected)
    }

    /// Reads all candidates in turn for a while; longer if a counter rests.
    fn watch(&self, candidates: &mut [Box<dyn Candidate>], shortest: Duration) -> Vec<Vec<Observation>> {
        let mut readings: Vec<Vec<Readings>> =
            candidates.iter().map(|candidate| vec![Readings::new(); candidate.domains().len()]).collect();
        let mut scratch = Vec::new();
        let start = Instant::now();
        let now = || Nanoseconds::from_nanos(start.elapsed().as_nanos() as u64);
        let mut first_round_ended = None;
        for round in 1.. {
            let watched = candidates.iter_mut().zip(&mut readings);
            for (candidate, readings) in watched.filter(|(candidate, _)| !candidate.is_proven()) {
                let before = now();
                if candidate.read(&mut scratch).is_err() {
                    continue;
                }
                let middle = Nanoseconds::from_nanos((before.as_nanos() + now().as_nanos()) / 2);
                for (readings, reading) in readings.iter_mut().zip(&scratch) {
                    readings.extend(reading.map(|reading| (middle, reading)));
                }
            }
            let watched = first_round_ended.get_or_insert_with(Instant::now).elapsed();
            let unproven =
                || candidates.iter().zip(&readings).filter(|(candidate, _)| !candidate.is_proven());
            let all_known = || {
                let mut watched = unproven().flat_map(|(_, readings)| readings);
                watched.all(|readings| Observation::of(readings).moves >= ENOUGH_MOVES)
            };
            let is_long = watched >= shortest * LONGEST_WATCH || watched >= shortest && all_known();
            if candidates.iter().all(|candidate| candidate.is_proven()) || round >= FEWEST_ROUNDS && is_long {
                break;
            }
            std::thread::sleep(WATCH_PAUSE);
        }
        let observed =
            |domains: &Vec<Readings>| domains.iter().map(|readings| Observation::of(readings)).collect();
        readings.iter().map(observed).collect()
    }
}

/// What was read of one domain, and when.
type Readings = Vec<(Nanoseconds, CounterReading)>;

/// A machine of which there are only files: rights are judged by what they say, and counters are
/// taken to move.
pub(super) struct Files {
    pub rights: Permissions,
}

impl Probe for Files {
    fn open(&self, found: Box<dyn Finding>, rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>> {
        let source = found.source();
        match found.needs() {
            Needs::CpuWideEvents if !self.rights.cpu_wide_events() => {
                rejected.push(rejected::cpu_wide_events_refused(source, &self.rights));
                return None;
            }
            Needs::Files(paths) => {
                if let Some(path) = paths.iter().find(|path| !self.rights.may_read(path)) {
                    rejected.push(rejected::closed_file(source, path));
                    return None;
                }
            }
            Needs::IsOpen => return found.open(rejected),
            Needs::CpuWideEvents | Needs::Nothing => {}
        }
        Some(Box::new(OnPaper { source, domains: found.domains().to_vec() }))
    }

    fn watch(&self, candidates: &mut [Box<dyn Candidate>], _shortest: Duration) -> Vec<Vec<Observation>> {
        let moved = Observation { moves: 1, last_raw: Some(1), ..Observation::default() };
        candidates.iter().map(|candidate| vec![moved; candidate.domains().len()]).collect()
    }
}

/// A meter that was found but is not on this machine.
struct OnPaper {
    source: Source,
    domains: Vec<DomainInfo>,
}

impl EnergyMeter for OnPaper {
    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn read(&mut self, _readings: &mut Vec<Option<CounterReading>>) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this meter is on another machine"))
    }
}

impl Candidate for OnPaper {
    fn source(&self) -> Source {
        self.source
    }

    fn retain(&mut self, keep: &mut dyn FnMut(&DomainInfo) -> bool) {
        self.domains.retain(|domain| keep(domain));
    }

    fn domains_mut(&mut self) -> &mut [DomainInfo] {
        &mut self.domains
    }

    fn learn(&mut self, _domain: usize, _seen: &Observation) {}

    fn counts_since_boot(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::hardware::{DomainKind, Method};
    use crate::units::Joules;

    /// A counter that goes on by `step` at each reading, and says how often it was read.
    struct Scripted {
        domains: Vec<DomainInfo>,
        step: u64,
        is_proven: bool,
        reads: Arc<AtomicUsize>,
    }

    impl EnergyMeter for Scripted {
        fn domains(&self) -> &[DomainInfo] {
            &self.domains
        }

        fn read(&mut self, readings: &mut Vec<Option<CounterReading>>) -> io::Result<()> {
            let raw = self.step * self.reads.fetch_add(1, Ordering::Relaxed) as u64;
            *readings = vec![Some(CounterReading { energy: Joules::from_joules(raw as f64), raw })];
            Ok(())
        }
    }

    impl Candidate for Scripted {
        fn source(&self) -> Source {
            Source::Powercap
        }
        fn retain(&mut self, _keep: &mut dyn FnMut(&DomainInfo) -> bool) {}
        fn domains_mut(&mut self) -> &mut [DomainInfo] {
            &mut self.domains
        }
        fn learn(&mut self, _domain: usize, _seen: &Observation) {}
        fn is_proven(&self) -> bool {
            self.is_proven
        }
        fn counts_since_boot(&self) -> bool {
            false
        }
    }

    /// What was seen of counters of these steps (`None`: it is known to work), how often each was read, and how long it took.
    fn watch(steps: &[Option<u64>], shortest: Duration) -> (Vec<Observation>, Vec<usize>, Duration) {
        let domain = DomainInfo::new("package-0", DomainKind::Package, "test", Method::Measured);
        let reads: Vec<Arc<AtomicUsize>> = steps.iter().map(|_| Arc::default()).collect();
        let scripted = |(step, reads): (&Option<u64>, &Arc<AtomicUsize>)| {
            let (step, is_proven) = (step.unwrap_or(1), step.is_none());
            let domains = vec![domain.clone()];
            Box::new(Scripted { domains, step, is_proven, reads: Arc::clone(reads) }) as Box<dyn Candidate>
        };
        let mut candidates: Vec<_> = steps.iter().zip(&reads).map(scripted).collect();
        let started = Instant::now();
        let seen = Kernel.watch(&mut candidates, shortest);
        let took = started.elapsed();
        let reads = reads.iter().map(|reads| reads.load(Ordering::Relaxed)).collect();
        (seen.into_iter().flatten().collect(), reads, took)
    }

    #[test]
    fn counters_are_read_side_by_side_often_enough() {
        let (seen, reads, _) = watch(&[Some(3), Some(0), None], Duration::ZERO);
        assert_eq!(reads, [8, 8, 0], "what is known to work is not watched");
        let told: Vec<_> = seen.iter().map(|seen| (seen.moves, seen.step, seen.last_raw)).collect();
        assert_eq!(told, [(7, Some(3), Some(21)), (0, None, Some(0)), (0, None, None)]);
        // The middles of readings, one after the other.
        assert!(
            seen[0].span > Nanoseconds::ZERO && seen[0].refresh.is_some_and(|refresh| refresh < seen[0].span)
        );
        assert_eq!(watch(&[None], Duration::from_secs(60)).1, [0]);
    }

    #[test]
    fn a_counter_that_rests_is_watched_for_longer() {
        let shortest = Duration::from_millis(6);
        let (_, reads, took) = watch(&[Some(1), Some(0)], shortest);
        // On a busy machine the fewest readings may take as long.
        assert!(took >= 2 * shortest && reads[0] >= FEWEST_ROUNDS, "{took:?}");
        let (seen, _, took) = watch(&[Some(1)], shortest);
        assert!(took >= shortest, "{took:?}");
        let span = Duration::from_nanos(seen[0].span.as_nanos());
        assert!(span <= took && seen[0].moves >= 7, "{span:?} {took:?}");
    }

    #[test]
    fn a_machine_of_files_is_taken_to_count() {
        let domain = DomainInfo::new("package-0", DomainKind::Package, "test", Method::Measured);
        let scripted =
            Scripted { domains: vec![domain; 2], step: 1, is_proven: false, reads: Arc::default() };
        let files = Files { rights: Permissions::default() };
        let seen = files.watch(&mut [Box::new(scripted) as Box<dyn Candidate>], Duration::ZERO);
        assert_eq!((seen.len(), seen[0].len(), seen[0][1].moves), (1, 2, 1));
    }
}
