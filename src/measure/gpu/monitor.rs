//! A thread that reads one GPU's power and energy counter while something runs on it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use thiserror::Error;

use crate::gpu::curve::PowerCurve;
use crate::gpu::trace::{PowerReading, PowerTrace};
use crate::meter::nvml::{open, read_counter, read_power};
use crate::units::{Joules, Timestamp, Watts};

/// Why a GPU cannot be monitored.
#[derive(Debug, Error)]
pub enum MonitorError {
    /// NVML does not start.
    #[error("NVML: {0}")]
    Nvml(String),
    /// The GPU tells no power.
    #[error("the GPU at {bus_id} tells no power: {why}")]
    NoPower {
        /// Its address.
        bus_id: String,
        /// NVML's answer.
        why: String,
    },
    /// The thread ended by itself.
    #[error("the monitor's thread failed")]
    Thread,
}

/// A running monitor.
pub struct Monitor {
    started: Instant,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Recorded>,
}

/// What a monitor read; times since it was started.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// Power.
    pub power: Vec<PowerReading>,
    /// The energy counter, empty where there is none.
    pub energy: Vec<(Timestamp, Joules)>,
}

impl Monitor {
    /// Starts reading every `interval`.
    ///
    /// # Errors
    /// [`MonitorError`] when the GPU tells no power.
    pub fn start(library: Option<&Path>, bus_id: &str, interval: Duration) -> Result<Self, MonitorError> {
        let nvml = open(library).map_err(MonitorError::Nvml)?;
        let no_power = |why: String| MonitorError::NoPower { bus_id: bus_id.to_owned(), why };
        {
            let device = nvml.device_by_pci_bus_id(bus_id).map_err(|error| no_power(error.to_string()))?;
            read_power(&device).map_err(no_power)?;
        }
        let started = Instant::now();
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let (stop, bus_id) = (Arc::clone(&stop), bus_id.to_owned());
            thread::spawn(move || poll(&nvml, &bus_id, started, interval, &stop))
        };
        Ok(Self { started, stop, thread })
    }

    /// Time on the monitor's clock.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.started.elapsed().as_nanos() as u64)
    }

    /// Ends the thread and gives what it read.
    ///
    /// # Errors
    /// [`MonitorError::Thread`].
    pub fn stop(self) -> Result<Recorded, MonitorError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| MonitorError::Thread)
    }
}

fn poll(nvml: &Nvml, bus_id: &str, started: Instant, interval: Duration, stop: &AtomicBool) -> Recorded {
    let mut recorded = Recorded::default();
    let Ok(device) = nvml.device_by_pci_bus_id(bus_id) else { return recorded };
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let (before, power) = (started.elapsed(), read_power(&device));
        let (between, energy) = (started.elapsed(), read_counter(&device));
        let middle = |a: Duration, b: Duration| Timestamp::from_nanos(((a + b) / 2).as_nanos() as u64);
        if let Ok(milliwatts) = power {
            let time = middle(before, between);
            recorded.power.push(PowerReading { time, power: Watts::from_milliwatts(milliwatts) });
        }
        if let Ok(millijoules) = energy {
            recorded.energy.push((middle(between, started.elapsed()), Joules::from_millijoules(millijoules)));
        }
        next += interval;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    recorded
}

impl Recorded {
    /// The power as read, straight lines between the readings.
    pub fn power_curve(&self) -> PowerCurve {
        PowerTrace::new(self.power.clone()).as_polled()
    }
}
