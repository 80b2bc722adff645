//! The meter of every source that has counters: raw readings become joules since the start.

use std::io;

use super::finding::Candidate;
use super::source::Source;
use super::watch::Observation;
use super::wrap::WrappingCounter;
use super::{CounterReading, EnergyMeter, Pace, StampedReading};
use crate::hardware::DomainInfo;
use crate::process::clocks::monotonic_now;
use crate::units::{Joules, Nanoseconds, Timestamp};

/// Reads the raw counters of one source.
pub(super) trait CounterReader: Send {
    /// Fills `raw` with one value per counter, `None` for those that cannot be read this time.
    fn read(&mut self, raw: &mut Vec<Option<u64>>) -> io::Result<()>;
    /// No longer reads the counter at this index; later ones move up by one.
    fn remove(&mut self, index: usize);
    /// Lets the kernel read the counters itself every `period`. `false`: it cannot, and nothing has
    /// changed. Otherwise they start again from zero.
    fn start_stamping(&mut self, _period: Nanoseconds) -> bool {
        false
    }
    /// Hands out what the kernel has read since the last call: when, which counter, and its count.
    fn take_stamped(&mut self, _each: &mut dyn FnMut(Timestamp, usize, u64)) {}
}

/// How one counter is to be understood.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    pub domain: DomainInfo,
    pub counter: WrappingCounter,
    pub joules_per_count: f64,
    /// The counter's own step, where it is coarser than one count.
    pub resolution: Option<Joules>,
}

pub(super) struct CounterMeter {
    source: Source,
    reader: Box<dyn CounterReader>,
    domains: Vec<DomainInfo>,
    channels: Vec<Channel>,
    counts_since_boot: bool,
    pace: Pace,
    raw: Vec<Option<u64>>,
    /// When the counters were last read by hand. What the kernel read before that is old news.
    read_at: Timestamp,
}

impl CounterMeter {
    pub fn new(
        source: Source,
        reader: Box<dyn CounterReader>,
        channels: Vec<Channel>,
        counts_since_boot: bool,
    ) -> Self {
        let domain = |channel: &Channel| {
            let range = channel
                .counter
                .range()
                .map(|counts| Joules::from_joules(counts as f64 * channel.joules_per_count));
            DomainInfo { range, ..channel.domain.clone() }
        };
        let domains = channels.iter().map(domain).collect();
        Self {
            source,
            reader,
            domains,
            channels,
            counts_since_boot,
            pace: Pace::default(),
            read_at: Timestamp::default(),
            raw: Vec::new(),
        }
    }

    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }
}

impl EnergyMeter for CounterMeter {
    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn read(&mut self, readings: &mut Vec<Option<CounterReading>>) -> io::Result<()> {
        readings.clear();
        self.reader.read(&mut self.raw)?;
        self.read_at = monotonic_now();
        let raw = self.raw.iter().copied().chain(std::iter::repeat(None));
        readings.extend(self.channels.iter_mut().zip(raw).map(|(channel, raw)| {
            let raw = raw?;
            // A step backwards loses what was counted since the last reading; better than 262 kJ too many.
            let counts = channel.counter.advance(raw).ok()?;
            Some(CounterReading {
                energy: Joules::from_joules(counts as f64 * channel.joules_per_count),
                raw,
            })
        }));
        Ok(())
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn start_stamping(&mut self, period: Nanoseconds) -> bool {
        let started = self.reader.start_stamping(period);
        if started {
            self.channels.iter_mut().for_each(|channel| channel.counter.start_again(0));
        }
        started
    }

    fn take_stamped(&mut self, readings: &mut Vec<StampedReading>) {
        let (channels, read_at) = (&mut self.channels, self.read_at);
        self.reader.take_stamped(&mut |time, index, raw| {
            let Some(channel) = channels.get_mut(index).filter(|_| time > read_at) else { return };
            if let Ok(counts) = channel.counter.advance(raw) {
                let energy = Joules::from_joules(counts as f64 * channel.joules_per_count);
                readings.push(StampedReading {
                    domain: index,
                    time,
                    reading: CounterReading { energy, raw },
                });
            }
        });
    }
}

impl Candidate for CounterMeter {
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
                self.channels.remove(index);
                self.reader.remove(index);
            }
        }
    }

    fn domains_mut(&mut self) -> &mut [DomainInfo] {
        &mut self.domains
    }

    fn learn(&mut self, domain: usize, seen: &Observation) {
        if let (Some(info), Some(channel)) = (self.domains.get_mut(domain), self.channels.get(domain)) {
            let step = seen.step.map(|step| Joules::from_joules(step as f64 * channel.joules_per_count));
            info.resolution = channel.resolution.or(step);
            info.refresh = seen.refresh;
        }
    }

    fn counts_since_boot(&self) -> bool {
        self.counts_since_boot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{DomainKind, MachineInfo};

    /// A counter that tells the next of these values, and what the kernel has read of it.
    struct Scripted {
        values: Vec<u64>,
        stamped: Vec<(Timestamp, u64)>,
    }

    impl CounterReader for Scripted {
        fn read(&mut self, raw: &mut Vec<Option<u64>>) -> io::Result<()> {
            *raw = vec![Some(self.values.remove(0))];
            Ok(())
        }
        fn remove(&mut self, _index: usize) {}
        fn start_stamping(&mut self, _period: Nanoseconds) -> bool {
            true
        }
        fn take_stamped(&mut self, each: &mut dyn FnMut(Timestamp, usize, u64)) {
            self.stamped.drain(..).for_each(|(time, raw)| each(time, 0, raw));
        }
    }

    /// Three counters, of which a reader knows the numbers.
    struct Three(Vec<u64>);

    impl CounterReader for Three {
        fn read(&mut self, raw: &mut Vec<Option<u64>>) -> io::Result<()> {
            *raw = self.0.iter().map(|value| (*value != 0).then_some(*value)).collect();
            Ok(())
        }
        fn remove(&mut self, index: usize) {
            self.0.remove(index);
        }
    }

    #[test]
    fn what_is_kept_and_learnt_is_of_the_right_domain() {
        use crate::meter::domain::{Place, describe};
        let channel = |package: u32| Channel {
            domain: describe(&MachineInfo::default(), DomainKind::Package, Place::package(package), "test"),
            counter: WrappingCounter::below(1000),
            joules_per_count: 0.5,
            resolution: (package == 2).then(|| Joules::from_joules(7.0)),
        };
        let pace = Pace { shortest: Nanoseconds::from_millis(3), longest: Nanoseconds::from_millis(4) };
        let channels = (0..3).map(channel).collect();
        let mut meter = CounterMeter::new(Source::Powercap, Box::new(Three(vec![5, 6, 7])), channels, true)
            .with_pace(pace);
        assert!(meter.counts_since_boot() && !meter.start_stamping(Nanoseconds::ZERO));
        assert_eq!((meter.pace().shortest, meter.pace().longest), (pace.shortest, pace.longest));
        assert_eq!(meter.domains()[1].range, Some(Joules::from_joules(500.0)));
        let seen = Observation {
            step: Some(4),
            refresh: Some(Nanoseconds::from_millis(9)),
            ..Observation::default()
        };
        (0..4).for_each(|domain| meter.learn(domain, &seen));
        // What the interface itself says is believed more than the steps that were seen.
        let resolutions: Vec<_> = meter.domains().iter().map(|domain| domain.resolution).collect();
        assert_eq!(resolutions, [2.0, 2.0, 7.0].map(|joules| Some(Joules::from_joules(joules))));
        assert_eq!(meter.domains()[0].refresh, seen.refresh);
        meter.retain(&mut |domain| domain.package != Some(1));
        let packages: Vec<_> = meter.domains().iter().map(|domain| domain.package).collect();
        assert_eq!(packages, [Some(0), Some(2)]);
        let mut readings = Vec::new();
        meter.read(&mut readings).expect("readable");
        assert_eq!(
            readings.iter().map(|reading| reading.map(|reading| reading.raw)).collect::<Vec<_>>(),
            [Some(5), Some(7)]
        );
        let mut stamped = Vec::new();
        meter.take_stamped(&mut stamped);
        assert!(stamped.is_empty());
        meter.domains_mut()[0].package = Some(9);
        assert_eq!(meter.domains()[0].package, Some(9));
    }

    #[test]
    fn what_the_kernel_read_before_a_reading_by_hand_is_not_counted_again() {
        use crate::meter::domain::{Place, describe};
        let after = monotonic_now() + Nanoseconds::from_millis(3_600_000);
        let reader = Scripted {
            values: vec![1000, 1010, 100],
            stamped: vec![(Timestamp::from_nanos(1), 90), (Timestamp::from_nanos(2), 95), (after, 107)],
        };
        let channel = Channel {
            domain: describe(&MachineInfo::default(), DomainKind::Package, Place::package(0), "test"),
            counter: WrappingCounter::of_bits(64),
            joules_per_count: 0.5,
            resolution: None,
        };
        let mut meter = CounterMeter::new(Source::PowerPmu, Box::new(reader), vec![channel], false);
        let mut readings = Vec::new();
        let mut joules = |meter: &mut CounterMeter| {
            meter.read(&mut readings).expect("readable");
            readings[0].expect("a reading").energy.as_joules()
        };
        assert_eq!(joules(&mut meter), 0.0);
        assert_eq!(joules(&mut meter), 5.0);
        assert!(meter.start_stamping(Nanoseconds::from_millis(1)), "the counter starts at zero again");
        assert_eq!(joules(&mut meter), 55.0);
        let mut stamped = Vec::new();
        meter.take_stamped(&mut stamped);
        let told: Vec<f64> = stamped.iter().map(|stamped| stamped.reading.energy.as_joules()).collect();
        assert_eq!(told, [58.5]);
    }
}
