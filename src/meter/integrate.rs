//! Meters of sources that tell power, not energy: watts become joules by integration.

use std::io;
use std::time::Instant;

use super::finding::Candidate;
use super::source::Source;
use super::watch::Observation;
use super::{CounterReading, EnergyMeter, Pace};
use crate::hardware::DomainInfo;
use crate::units::{Joules, Nanoseconds, Watts};

/// What a reading of power means for the time since the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The power at this instant: between two readings it is taken to change evenly.
    Instant,
    /// The mean since about the last reading.
    Average,
}

/// Watts over time.
#[derive(Debug, Clone)]
pub(super) struct Integrator {
    meaning: Meaning,
    last: Option<(Nanoseconds, Watts)>,
    total: Joules,
}

impl Integrator {
    pub fn new(meaning: Meaning) -> Self {
        Self { meaning, last: None, total: Joules::ZERO }
    }

    /// Energy up to `now`. A missing reading leaves a gap of which nothing is known and nothing is counted.
    pub fn advance(&mut self, now: Nanoseconds, power: Option<Watts>) -> Option<Joules> {
        let Some(power) = power else {
            self.last = None;
            return None;
        };
        if let Some((then, before)) = self.last.replace((now, power)) {
            let span = Nanoseconds::from_nanos(now.as_nanos().saturating_sub(then.as_nanos()));
            let mean = match self.meaning {
                Meaning::Instant => (before + power) / 2.0,
                Meaning::Average => power,
            };
            self.total += mean * span;
        }
        Some(self.total)
    }
}

/// Reads the power of all domains of a source.
pub(super) trait PowerReader: Send {
    /// Fills `watts` with one value per domain, `None` for those that cannot be read this time.
    fn read(&mut self, watts: &mut Vec<Option<Watts>>) -> io::Result<()>;
    /// No longer reads the domain at this index; later ones move up by one.
    fn remove(&mut self, index: usize);
}

pub(super) struct PowerMeter {
    source: Source,
    reader: Box<dyn PowerReader>,
    domains: Vec<DomainInfo>,
    integrators: Vec<Integrator>,
    pace: Pace,
    started: Instant,
    watts: Vec<Option<Watts>>,
}

impl PowerMeter {
    pub fn new(
        source: Source,
        reader: Box<dyn PowerReader>,
        domains: Vec<(DomainInfo, Meaning)>,
        pace: Pace,
    ) -> Self {
        let (domains, meanings): (Vec<_>, Vec<_>) = domains.into_iter().unzip();
        let integrators = meanings.into_iter().map(Integrator::new).collect();
        Self { source, reader, domains, integrators, pace, started: Instant::now(), watts: Vec::new() }
    }
}

impl EnergyMeter for PowerMeter {
    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn read(&mut self, readings: &mut Vec<Option<CounterReading>>) -> io::Result<()> {
        self.reader.read(&mut self.watts)?;
        let now = Nanoseconds::from_nanos(self.started.elapsed().as_nanos() as u64);
        let watts = self.watts.iter().copied().chain(std::iter::repeat(None));
        readings.clear();
        readings.extend(self.integrators.iter_mut().zip(watts).map(|(integrator, watts)| {
            let energy = integrator.advance(now, watts)?;
            Some(CounterReading { energy, raw: (energy.as_joules() * 1e6) as u64 })
        }));
        Ok(())
    }

    fn pace(&self) -> Pace {
        self.pace
    }
}

impl Candidate for PowerMeter {
    fn source(&self) -> Source {
        self.source
    }

    fn retain(&mut self, keep: &mut dyn FnMut(&DomainInfo) -> bool) {
        let mut index = 0;
        while let Some(domain) = self.domains.get(index) {
            if keep(domain) {
                index += 1;
            } else {
                self.domains.remove(index);
                self.integrators.remove(index);
                self.reader.remove(index);
            }
        }
    }

    fn domains_mut(&mut self) -> &mut [DomainInfo] {
        &mut self.domains
    }

    /// The integral grows at every reading, whether the sensor has measured anew or not.
    fn learn(&mut self, _domain: usize, _seen: &Observation) {}

    fn counts_since_boot(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watts(watts: f64) -> Option<Watts> {
        Some(Watts::from_watts(watts))
    }

    fn joules(integrator: &mut Integrator, milliseconds: u64, power: Option<Watts>) -> Option<f64> {
        integrator.advance(Nanoseconds::from_millis(milliseconds), power).map(Joules::as_joules)
    }

    /// Reads one number per domain; a test says which.
    struct Listed(Vec<Option<Watts>>);

    impl PowerReader for Listed {
        fn read(&mut self, watts: &mut Vec<Option<Watts>>) -> io::Result<()> {
            watts.clone_from(&self.0);
            Ok(())
        }

        fn remove(&mut self, index: usize) {
            self.0.remove(index);
        }
    }

    #[test]
    fn domains_that_are_not_kept_are_not_read() {
        use crate::hardware::{DomainKind, Method};

        let named = |name: &str| DomainInfo::new(name, DomainKind::Gpu, "hwmon", Method::Measured);
        let domains = ["a", "b", "c", "d"].map(|name| (named(name), Meaning::Average)).to_vec();
        let reader = Box::new(Listed(vec![watts(1.0), None, watts(3.0), watts(4.0)]));
        let mut meter = PowerMeter::new(Source::Hwmon, reader, domains, Pace::default());
        meter.started -= std::time::Duration::from_secs(10);
        let mut readings = Vec::new();
        meter.read(&mut readings).expect("readable");
        assert_eq!(readings.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true, true]);
        meter.retain(&mut |domain| domain.name == "b" || domain.name == "d");
        assert_eq!(meter.domains().iter().map(|domain| domain.name.as_str()).collect::<Vec<_>>(), ["b", "d"]);
        assert_eq!(meter.source(), Source::Hwmon);
        meter.domains_mut()[1].name = "e".to_owned();
        meter.started -= std::time::Duration::from_secs(10);
        meter.read(&mut readings).expect("readable");
        let [None, Some(last)] = readings[..] else { panic!("{readings:?}") };
        // Ten seconds of 4 W, and what the test took.
        assert!((40.0..44.0).contains(&last.energy.as_joules()), "{last:?}");
        assert_eq!(last.raw, (last.energy.as_joules() * 1e6) as u64);
        assert!(!meter.counts_since_boot());
    }

    #[test]
    fn instants_by_the_trapezoid_rule() {
        let mut integrator = Integrator::new(Meaning::Instant);
        assert_eq!(joules(&mut integrator, 0, watts(10.0)), Some(0.0));
        assert_eq!(joules(&mut integrator, 1000, watts(20.0)), Some(15.0));
        assert_eq!(joules(&mut integrator, 1500, watts(20.0)), Some(25.0));
    }

    #[test]
    fn averages_hold_for_the_time_before_them() {
        let mut integrator = Integrator::new(Meaning::Average);
        assert_eq!(joules(&mut integrator, 0, watts(10.0)), Some(0.0));
        assert_eq!(joules(&mut integrator, 1000, watts(20.0)), Some(20.0));
    }

    #[test]
    fn a_gap_counts_nothing() {
        let mut integrator = Integrator::new(Meaning::Instant);
        assert_eq!(joules(&mut integrator, 0, watts(10.0)), Some(0.0));
        assert_eq!(joules(&mut integrator, 1000, None), None);
        assert_eq!(joules(&mut integrator, 2000, watts(10.0)), Some(0.0));
        assert_eq!(joules(&mut integrator, 3000, watts(10.0)), Some(10.0));
    }
}
