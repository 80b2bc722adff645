//! A simulated GPU power sensor and the polling of it, with everything known.

use eprof::gpu::trace::{PowerReading, PowerTrace};
use eprof::units::{Timestamp, Watts};

/// How the simulated sensor follows the power.
#[derive(Clone, Copy)]
pub enum Follows {
    /// Charges like a capacitor with this time constant in seconds.
    Rc(f64),
    /// Mean over this many seconds before the refresh.
    Window(f64),
}

/// A sensor and how it is polled. Times in seconds, powers in watts.
#[derive(Clone)]
pub struct Sensor {
    /// How it follows the power.
    pub follows: Follows,
    /// Time from one refresh of the value to the next.
    pub refresh: f64,
    /// Step of the reported value.
    pub resolution: f64,
    /// Standard deviation of the reported value.
    pub noise: f64,
    /// Time from one poll to the next; one that meets a refresh takes `poll_at_refresh`.
    pub poll: f64,
    /// How long a poll takes that meets a refresh.
    pub poll_at_refresh: f64,
    /// Times at which the driver is busy, and for how long a poll then takes.
    pub stalls: Vec<(f64, f64)>,
    /// Noise and phases follow from it.
    pub seed: u64,
}

impl Sensor {
    /// The K20 of Burtscher et al.: 15 ms, 10 mW, polls of 0.283 and 4.7 ms.
    pub fn k20(seed: u64) -> Self {
        Self {
            follows: Follows::Rc(0.8333),
            refresh: 0.015,
            resolution: 0.01,
            noise: 0.005,
            poll: 0.000283,
            poll_at_refresh: 0.0047,
            stalls: Vec::new(),
            seed,
        }
    }

    /// Polls the sensor while the GPU draws `power`, a list of (from, watts), until `end`.
    ///
    /// `settled_after`: from then on the reading is the power itself, without lag. The K20's readings
    /// fall in sharp steps once its driver lowers the clocks.
    pub fn poll(&self, power: &[(f64, f64)], end: f64, settled_after: Option<f64>) -> PowerTrace {
        let mut random = Random(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let phase = random.uniform() * self.refresh;
        let mut values: Vec<f64> = Vec::new();
        let mut charge = power[0].1;
        let mut last = 0.0;
        let mut readings = Vec::new();
        let mut time = random.uniform() * self.poll;
        while time < end {
            let due = ((time - phase) / self.refresh).floor().max(0.0) as usize + 1;
            let before = values.len();
            while values.len() < due {
                let at = phase + values.len() as f64 * self.refresh;
                let value = match self.follows {
                    _ if settled_after.is_some_and(|settled| at >= settled) => level(power, at),
                    Follows::Rc(constant) => {
                        charge = charged(power, charge, last, at, constant);
                        charge
                    }
                    Follows::Window(window) => mean(power, at - window, at),
                };
                last = at;
                let noisy = value + self.noise * random.normal();
                values.push((noisy / self.resolution).round() * self.resolution);
            }
            let value = values[values.len() - 1];
            // Dates before 1970 do not exist; the traces start in 2001.
            let nanos = 1_000_000_000_000_000_000 + (time * 1e9) as u64;
            readings
                .push(PowerReading { time: Timestamp::from_nanos(nanos), power: Watts::from_watts(value) });
            let stall = self
                .stalls
                .iter()
                .find(|(from, _)| (time..time + 0.02).contains(from))
                .map(|(_, long)| *long);
            let usual = if values.len() > before { self.poll_at_refresh } else { self.poll };
            time += stall.unwrap_or(usual * (0.97 + 0.06 * random.uniform()));
        }
        PowerTrace::new(readings)
    }
}

/// The time `seconds` after the simulation's zero.
pub fn at(seconds: f64) -> Timestamp {
    Timestamp::from_nanos(1_000_000_000_000_000_000 + (seconds * 1e9) as u64)
}

/// A file as `nvidia-smi --query-gpu=timestamp,power.draw --format=csv` writes it.
pub fn as_nvidia_smi(trace: &PowerTrace) -> String {
    let mut text = String::from("timestamp, power.draw [W]\n");
    for reading in trace.readings() {
        let nanos = reading.time.as_nanos() - 1_000_000_000_000_000_000;
        let (seconds, millis) = (nanos / 1_000_000_000, nanos / 1_000_000 % 1000);
        let (minute, second) = (seconds / 60 % 60, seconds % 60);
        text += &format!(
            "2001/09/09 01:{minute:02}:{second:02}.{millis:03}, {:.2} W\n",
            reading.power.as_watts()
        );
    }
    text
}

fn level(power: &[(f64, f64)], at: f64) -> f64 {
    power.iter().rev().find(|(from, _)| *from <= at).unwrap_or(&power[0]).1
}

/// The pieces of constant power between two times.
fn pieces(power: &[(f64, f64)], from: f64, to: f64) -> Vec<(f64, f64)> {
    let mut cuts = vec![from];
    cuts.extend(power.iter().map(|(start, _)| *start).filter(|start| *start > from && *start < to));
    cuts.push(to);
    cuts.windows(2).map(|cut| (cut[1] - cut[0], level(power, cut[0]))).collect()
}

fn charged(power: &[(f64, f64)], charge: f64, from: f64, to: f64, constant: f64) -> f64 {
    pieces(power, from, to)
        .into_iter()
        .fold(charge, |s, (time, watts)| watts + (s - watts) * (-time / constant).exp())
}

fn mean(power: &[(f64, f64)], from: f64, to: f64) -> f64 {
    pieces(power, from, to).into_iter().map(|(time, watts)| time * watts).sum::<f64>() / (to - from)
}

/// Energy of the true power between two times.
pub fn energy(power: &[(f64, f64)], from: f64, to: f64) -> f64 {
    mean(power, from, to) * (to - from)
}

struct Random(u64);

impl Random {
    /// Marsaglia's xorshift, 0 up to 1.
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
