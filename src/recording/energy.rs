//! The payloads that carry energy readings and CPU times.
//!
//! All numbers are little-endian. The kernel's and perf's rule is that the size of raw data plus its
//! own 4-byte length is a multiple of 8, so every payload here is 4 bytes more than a multiple of 8.

use crate::units::{Joules, Nanoseconds};

/// Events of energy domains are named `energy/<domain>/`.
pub const ENERGY_EVENT_PREFIX: &str = "energy/";

/// The event name of a domain.
pub fn event_name(domain: &str) -> String {
    format!("{ENERGY_EVENT_PREFIX}{domain}/")
}

/// The domain of an event name, if it is an energy event.
pub fn domain_of_event(name: &str) -> Option<&str> {
    name.strip_prefix(ENERGY_EVENT_PREFIX)?.strip_suffix('/')
}

/// One energy reading as it lies in the file: 28 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnergyReading {
    /// Energy of the domain since the recording's meter was started, wraps taken out.
    pub energy: Joules,
    /// The counter as the interface gave it.
    pub raw: u64,
    /// The reading took from this long before its time stamp to this long after it.
    pub uncertainty: Nanoseconds,
}

impl EnergyReading {
    /// Bytes of the payload.
    pub const SIZE: usize = 28;
    const VERSION: u32 = 1;

    /// The payload: version, joules, raw counter, uncertainty.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[0..4].copy_from_slice(&Self::VERSION.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.energy.as_joules().to_le_bytes());
        bytes[12..20].copy_from_slice(&self.raw.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.uncertainty.as_nanos().to_le_bytes());
        bytes
    }

    /// Reads a payload; `None` if it is too short, of another version or no finite energy.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if read_u32(bytes, 0)? != Self::VERSION {
            return None;
        }
        let joules = f64::from_bits(read_u64(bytes, 4)?);
        joules.is_finite().then_some(Self {
            energy: Joules::from_joules(joules),
            raw: read_u64(bytes, 12)?,
            uncertainty: Nanoseconds::from_nanos(read_u64(bytes, 20)?),
        })
    }
}

/// How busy every CPU has been since boot, read from `/proc/stat`, beside the recorder's own use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// CPU time of the recorder itself since its start.
    pub recorder: Nanoseconds,
    /// CPU number and the time it was not idle since boot.
    pub busy: Vec<(u32, Nanoseconds)>,
}

impl CpuTimes {
    const VERSION: u32 = 1;
    /// The same with the target's own times behind the CPUs' pairs, whose number is told first.
    const VERSION_WITH_TARGET: u32 = 2;

    /// The payload: version, recorder's nanoseconds, then pairs of CPU number and busy nanoseconds.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12 + 16 * self.busy.len());
        bytes.extend(Self::VERSION.to_le_bytes());
        bytes.extend(self.recorder.as_nanos().to_le_bytes());
        for (cpu, busy) in &self.busy {
            bytes.extend(u64::from(*cpu).to_le_bytes());
            bytes.extend(busy.as_nanos().to_le_bytes());
        }
        bytes
    }

    /// The payload where the CPU time of the recorded program is known exactly: version, recorder's
    /// nanoseconds, number of busy CPUs, their pairs, then pairs of CPU number and the program's nanoseconds
    /// there.
    pub fn to_bytes_with_target(&self, target: &[(u32, Nanoseconds)]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(20 + 16 * (self.busy.len() + target.len()));
        bytes.extend(Self::VERSION_WITH_TARGET.to_le_bytes());
        bytes.extend(self.recorder.as_nanos().to_le_bytes());
        bytes.extend((self.busy.len() as u64).to_le_bytes());
        for (cpu, time) in self.busy.iter().chain(target) {
            bytes.extend(u64::from(*cpu).to_le_bytes());
            bytes.extend(time.as_nanos().to_le_bytes());
        }
        bytes
    }

    /// Reads a payload; `None` if it is too short or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self::with_target_from_bytes(bytes)?.0)
    }

    /// Reads a payload with the CPU time of the recorded program on each CPU; none of the latter where it
    /// was not known exactly. `None` if the payload is too short or of another version.
    pub fn with_target_from_bytes(bytes: &[u8]) -> Option<(Self, Vec<(u32, Nanoseconds)>)> {
        let (pairs_at, busy_pairs) = match read_u32(bytes, 0)? {
            Self::VERSION => (12, usize::MAX),
            Self::VERSION_WITH_TARGET => (20, usize::try_from(read_u64(bytes, 12)?).ok()?),
            _ => return None,
        };
        let recorder = Nanoseconds::from_nanos(read_u64(bytes, 4)?);
        let pairs = bytes.get(pairs_at..)?.chunks_exact(16);
        let mut busy: Vec<(u32, Nanoseconds)> = pairs
            .map(|pair| Some((read_u64(pair, 0)? as u32, Nanoseconds::from_nanos(read_u64(pair, 8)?))))
            .collect::<Option<_>>()?;
        let target = busy.split_off(busy_pairs.min(busy.len()));
        Some((Self { recorder, busy }, target))
    }
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_survives_the_file() {
        let reading = EnergyReading {
            energy: Joules::from_joules(12.5),
            raw: 0xdead_beef,
            uncertainty: Nanoseconds::from_nanos(900),
        };
        assert_eq!(EnergyReading::from_bytes(&reading.to_bytes()), Some(reading));
        assert_eq!(EnergyReading::from_bytes(&reading.to_bytes()[..27]), None);
        assert_eq!((EnergyReading::SIZE + 4) % 8, 0);
    }

    #[test]
    fn an_infinite_energy_is_refused() {
        let reading = EnergyReading {
            energy: Joules::from_joules(f64::INFINITY),
            raw: 0,
            uncertainty: Nanoseconds::ZERO,
        };
        assert_eq!(EnergyReading::from_bytes(&reading.to_bytes()), None);
    }

    #[test]
    fn cpu_times_survive_the_file() {
        let times = CpuTimes {
            recorder: Nanoseconds::from_millis(3),
            busy: vec![(0, Nanoseconds::from_millis(10)), (7, Nanoseconds::from_millis(20))],
        };
        let bytes = times.to_bytes();
        assert_eq!((bytes.len() + 4) % 8, 0);
        assert_eq!(CpuTimes::from_bytes(&bytes), Some(times.clone()));
        let target = vec![(7, Nanoseconds::from_millis(15))];
        let bytes = times.to_bytes_with_target(&target);
        assert_eq!((bytes.len() + 4) % 8, 0);
        assert_eq!(CpuTimes::with_target_from_bytes(&bytes), Some((times.clone(), target)));
        assert_eq!(CpuTimes::from_bytes(&bytes), Some(times));
    }
}
