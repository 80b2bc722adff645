//! Reads energy meters at a steady pace: the kernel does it itself where it can, else each meter has a
//! thread of its own.
//!
//! A thread's reading is taken and put down under a lock that the recorder takes too when it collects
//! readings. So whatever the recorder collects after a certain instant was taken after it: the file's
//! rounds stay in time order even if a meter takes long to answer. What the kernel has read lies in its
//! rings, which the recorder empties when it collects.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::meter::{CounterReading, EnergyMeter, StampedReading};
use crate::process::clocks::monotonic_now;
use crate::process::privileges;
use crate::recording::energy::EnergyReading;
use crate::units::{Nanoseconds, Timestamp};

/// A reading of one domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DomainReading {
    /// Index of the domain among those of all meters.
    pub domain: usize,
    /// The middle of the time that reading took.
    pub time: Timestamp,
    /// What was read.
    pub reading: EnergyReading,
}

/// A meter that is being read.
pub enum MeterReader {
    /// By a thread.
    Thread(MeterThread),
    /// By the kernel.
    Kernel(KernelMeter),
}

impl MeterReader {
    /// Takes a first reading and starts to read `meter` every `interval`. Its domains are numbered from
    /// `first_domain`.
    pub fn start(
        mut meter: Box<dyn EnergyMeter>,
        first_domain: usize,
        interval: Duration,
    ) -> std::io::Result<Self> {
        if meter.start_stamping(Nanoseconds::from_nanos(interval.as_nanos() as u64)) {
            return KernelMeter::start(meter, first_domain, interval).map(Self::Kernel);
        }
        MeterThread::start(meter, first_domain, interval).map(Self::Thread)
    }

    /// The same, by a thread of eprof's whatever the kernel could do: of a meter that is read seldom, until
    /// [`MeterReader::hasten`].
    pub fn start_seldom(
        meter: Box<dyn EnergyMeter>,
        first_domain: usize,
        interval: Duration,
    ) -> std::io::Result<Self> {
        MeterThread::start(meter, first_domain, interval).map(Self::Thread)
    }

    /// Reads a meter of [`MeterReader::start_seldom`] now, and every `interval` from now on.
    pub fn hasten(&self, interval: Duration) {
        if let Self::Thread(thread) = self {
            // A thread that has ended could not read the meter any more.
            let _ = thread.pace.send(interval);
        }
    }

    /// Moves the readings taken since the last call into `readings`.
    pub fn collect(&mut self, readings: &mut Vec<DomainReading>) {
        match self {
            Self::Thread(thread) => thread.collect(readings),
            Self::Kernel(meter) => meter.collect(readings),
        }
    }

    /// Takes a last reading and stops.
    pub fn stop(self, readings: &mut Vec<DomainReading>) {
        match self {
            Self::Thread(thread) => thread.stop(readings),
            Self::Kernel(meter) => meter.stop(readings),
        }
    }
}

/// A meter that the kernel reads.
pub struct KernelMeter {
    meter: Box<dyn EnergyMeter>,
    first_domain: usize,
    /// Without a reading for so long, the meter is read by hand: its CPU may have been taken offline.
    patience: Duration,
    last_seen: Instant,
    waiting: Vec<DomainReading>,
    stamped: Vec<StampedReading>,
}

/// The kernel stamps a reading and takes it within one interrupt.
const WITHIN_AN_INTERRUPT: Nanoseconds = Nanoseconds::from_nanos(2_000);

impl KernelMeter {
    fn start(
        mut meter: Box<dyn EnergyMeter>,
        first_domain: usize,
        interval: Duration,
    ) -> std::io::Result<Self> {
        let waiting = read(meter.as_mut(), first_domain, &mut Vec::new())?;
        let patience = (interval * 4).max(Duration::from_millis(200));
        let (last_seen, stamped) = (Instant::now(), Vec::new());
        Ok(Self { meter, first_domain, patience, last_seen, waiting, stamped })
    }

    fn collect(&mut self, readings: &mut Vec<DomainReading>) {
        self.meter.take_stamped(&mut self.stamped);
        // Packages have rings of their own.
        self.stamped.sort_by_key(|stamped| stamped.time);
        readings.append(&mut self.waiting);
        if !self.stamped.is_empty() {
            self.last_seen = Instant::now();
        } else if self.last_seen.elapsed() > self.patience {
            readings
                .extend(read(self.meter.as_mut(), self.first_domain, &mut Vec::new()).unwrap_or_default());
        }
        readings.extend(self.stamped.drain(..).map(|StampedReading { domain, time, reading }| {
            DomainReading {
                domain: self.first_domain + domain,
                time,
                reading: EnergyReading {
                    energy: reading.energy,
                    raw: reading.raw,
                    uncertainty: WITHIN_AN_INTERRUPT,
                },
            }
        }));
    }

    fn stop(mut self, readings: &mut Vec<DomainReading>) {
        self.collect(readings);
        readings.extend(read(self.meter.as_mut(), self.first_domain, &mut Vec::new()).unwrap_or_default());
    }
}

/// A meter that a thread reads.
#[derive(Debug)]
pub struct MeterThread {
    collected: Arc<Mutex<Vec<DomainReading>>>,
    /// Takes new intervals; dropped, it ends the thread.
    pace: Sender<Duration>,
    thread: JoinHandle<()>,
}

impl MeterThread {
    fn start(
        mut meter: Box<dyn EnergyMeter>,
        first_domain: usize,
        interval: Duration,
    ) -> std::io::Result<Self> {
        let collected = Arc::new(Mutex::new(Vec::new()));
        let mut scratch = Vec::new();
        read_into(meter.as_mut(), first_domain, &mut scratch, &collected)?;
        let (pace, paces) = channel();
        let readings = Arc::clone(&collected);
        let thread = thread::Builder::new().name("eprof-meter".into()).spawn(move || {
            // What is read is open. Without rights to give up, there is nothing to say.
            let _ = privileges::drop_unless_root();
            poll(meter.as_mut(), first_domain, interval, &readings, &paces);
        })?;
        Ok(Self { collected, pace, thread })
    }

    fn collect(&self, readings: &mut Vec<DomainReading>) {
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        readings.append(&mut collected);
    }

    fn stop(self, readings: &mut Vec<DomainReading>) {
        drop(self.pace);
        let _ = self.thread.join();
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        readings.append(&mut collected);
    }
}

fn poll(
    meter: &mut dyn EnergyMeter,
    first_domain: usize,
    mut interval: Duration,
    collected: &Mutex<Vec<DomainReading>>,
    paces: &Receiver<Duration>,
) {
    let mut scratch = Vec::new();
    let mut next = Instant::now() + interval;
    loop {
        let told = paces.recv_timeout(next.saturating_duration_since(Instant::now()));
        if read_into(meter, first_domain, &mut scratch, collected).is_err() {
            return;
        }
        match told {
            Ok(new) => {
                interval = new;
                next = Instant::now();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        // A reading that was late does not make the next ones crowd together.
        next = (next + interval).max(Instant::now() + interval / 2);
    }
}

fn read_into(
    meter: &mut dyn EnergyMeter,
    first_domain: usize,
    scratch: &mut Vec<Option<CounterReading>>,
    collected: &Mutex<Vec<DomainReading>>,
) -> std::io::Result<()> {
    let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
    collected.extend(read(meter, first_domain, scratch)?);
    Ok(())
}

/// A thread that is held up between its two looks at the clock does not know when it read the meter:
/// joules would go to the wrong time. With stamps further apart than this it reads again,
const LONGEST_READING: Nanoseconds = Nanoseconds::from_nanos(1_000_000);
/// unless that has not helped so often: some drivers take long each time.
const MOST_ATTEMPTS: u32 = 3;

/// Reads a meter now.
fn read(
    meter: &mut dyn EnergyMeter,
    first_domain: usize,
    scratch: &mut Vec<Option<CounterReading>>,
) -> std::io::Result<Vec<DomainReading>> {
    let mut best: Option<Vec<DomainReading>> = None;
    let mut least = Nanoseconds::from_nanos(u64::MAX);
    for _ in 0..MOST_ATTEMPTS {
        let before = monotonic_now();
        meter.read(scratch)?;
        let took = monotonic_now().since(before);
        if took < least {
            least = took;
            let half = Nanoseconds::from_nanos(took.as_nanos() / 2);
            let of_domain = |(index, reading): (usize, &Option<CounterReading>)| {
                let CounterReading { energy, raw } = (*reading)?;
                let reading = EnergyReading { energy, raw, uncertainty: half };
                Some(DomainReading { domain: first_domain + index, time: before + half, reading })
            };
            best = Some(scratch.iter().enumerate().filter_map(of_domain).collect());
        }
        if took <= LONGEST_READING {
            break;
        }
    }
    Ok(best.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::DomainInfo;
    use crate::meter::Pace;
    use crate::units::Joules;

    /// A counter whose first readings take so many milliseconds.
    struct HeldUp {
        delays: Vec<u64>,
        reads: u64,
    }

    impl EnergyMeter for HeldUp {
        fn domains(&self) -> &[DomainInfo] {
            &[]
        }

        fn read(&mut self, readings: &mut Vec<Option<CounterReading>>) -> std::io::Result<()> {
            let delay = self.delays.get(self.reads as usize).copied().unwrap_or(0);
            thread::sleep(Duration::from_millis(delay));
            self.reads += 1;
            *readings = vec![Some(CounterReading { energy: Joules::ZERO, raw: self.reads })];
            Ok(())
        }

        fn pace(&self) -> Pace {
            Pace::default()
        }
    }

    #[test]
    fn a_reading_that_was_held_up_is_made_again() {
        let raw = |delays: &[u64]| {
            let mut meter = HeldUp { delays: delays.to_vec(), reads: 0 };
            let found = read(&mut meter, 0, &mut Vec::new()).expect("readable");
            (found[0].reading.raw, meter.reads)
        };
        assert_eq!(raw(&[300]).0.min(2), 2, "not the first one");
        // A driver that always takes long is not asked for ever, and the best of its answers counts.
        assert_eq!(raw(&[600, 60, 600]), (2, 3));
    }
}
