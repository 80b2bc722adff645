//! Reads energy meters at a steady pace, each in a thread of its own.
//!
//! A reading is taken and put down under a lock that the recorder takes too when it collects readings.
//! So whatever the recorder collects after a certain instant was taken after it: the file's rounds
//! stay in time order even if a meter takes long to answer.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::record::meter::{CounterReading, EnergyMeter};
use crate::recording::energy::EnergyReading;
use crate::units::Timestamp;

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
#[derive(Debug)]
pub struct MeterThread {
    collected: Arc<Mutex<Vec<DomainReading>>>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl MeterThread {
    /// Takes a first reading and starts to read `meter` every `interval`. Its domains are numbered from
    /// `first_domain`.
    pub fn start(
        mut meter: Box<dyn EnergyMeter>,
        first_domain: usize,
        interval: Duration,
    ) -> std::io::Result<Self> {
        let collected = Arc::new(Mutex::new(Vec::new()));
        let mut scratch = Vec::new();
        read_into(meter.as_mut(), first_domain, &mut scratch, &collected)?;
        let (stop, stopped) = channel();
        let readings = Arc::clone(&collected);
        let thread = thread::Builder::new().name("eprof-meter".into()).spawn(move || {
            poll(meter.as_mut(), first_domain, interval, &readings, &stopped);
        })?;
        Ok(Self { collected, stop, thread })
    }

    /// Moves the readings taken since the last call into `readings`.
    pub fn collect(&self, readings: &mut Vec<DomainReading>) {
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        readings.append(&mut collected);
    }

    /// Takes a last reading and stops.
    pub fn stop(self, readings: &mut Vec<DomainReading>) {
        drop(self.stop);
        let _ = self.thread.join();
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        readings.append(&mut collected);
    }
}

fn poll(
    meter: &mut dyn EnergyMeter,
    first_domain: usize,
    interval: Duration,
    collected: &Mutex<Vec<DomainReading>>,
    stopped: &Receiver<()>,
) {
    let mut scratch = Vec::new();
    let mut next = Instant::now() + interval;
    loop {
        let stop = stopped.recv_timeout(next.saturating_duration_since(Instant::now()));
        if read_into(meter, first_domain, &mut scratch, collected).is_err() {
            return;
        }
        if stop != Err(RecvTimeoutError::Timeout) {
            return;
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
    let before = monotonic_now();
    meter.read(scratch)?;
    let half = crate::units::Nanoseconds::from_nanos(monotonic_now().since(before).as_nanos() / 2);
    let time = before + half;
    collected.extend(scratch.iter().enumerate().filter_map(|(index, reading)| {
        let CounterReading { energy, raw } = (*reading)?;
        Some(DomainReading {
            domain: first_domain + index,
            time,
            reading: EnergyReading { energy, raw, uncertainty: half },
        })
    }));
    Ok(())
}

/// Now, on the recording's clock.
pub fn monotonic_now() -> Timestamp {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or_else(
        |_| Timestamp::default(),
        |time| Timestamp::from_nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64),
    )
}
