//! Energy meters: everything that can tell how many joules a domain has used.
//!
//! [`discover()`] finds the sources that the machine offers, opens them, watches their counters for a
//! moment and keeps for each domain the best one.
//!
//! ```text
//!   Source ──► Kind ──► find ──► Finding ──► open ──► Candidate ──► watch, choose ──► EnergyMeter
//!   (name)     (turn)   (sysfs, driver)               (an EnergyMeter)
//! ```
//!
//! # A new kind of meter
//!
//! 1. A file in this folder. Its `find` looks for the meter and gives a `Search`: a `Finding` for what is there, and
//!    a [`Rejected`] that says why something cannot be used and what would help. `Finding::open` gives a `Candidate`,
//!    which is an [`EnergyMeter`] whose domains can be dropped. Interfaces that count energy are a `CounterMeter`,
//!    those that tell power a `PowerMeter`: they need a reader only.
//! 2. A name in [`Source`], in the order of quality. The compiler then asks for its words, its place in
//!    [`Source::ALL`], and its line in `kinds.rs`: in whose turn it is looked for, and by which `find`.
//!
//! Options, help, `doctor`, the choice among meters and the recording follow from these.

use std::io;

use crate::hardware::DomainInfo;
use crate::units::{Joules, Nanoseconds, Timestamp};

mod assumed_watts;
mod battery;
mod clocked_groups;
mod counters;
mod discover;
mod domain;
mod energy_event;
mod energy_groups;
mod estimate;
mod finding;
mod hwmon;
mod hwmon_names;
mod integrate;
mod kinds;
mod msr;
mod number_file;
pub mod nvml;
mod options;
mod power_core;
mod powercap;
mod probe;
mod rapl_perf;
mod rejected;
mod source;
mod watch;
mod wrap;

pub use assumed_watts::AssumedWatts;
pub use discover::{Discovery, Unmet, discover};
pub use options::MeterOptions;
pub use rejected::Rejected;
pub use source::Source;
pub use wrap::{WentBackwards, WrappingCounter};

/// A meter reads one or more energy domains.
///
/// A meter is built only after its counters were seen to move: a counter that never moves is no
/// meter. Implementations hide units and wraps; the thread that polls them takes the time.
pub trait EnergyMeter: Send {
    /// The domains this meter reads, in the order of [`EnergyMeter::read`]'s values.
    fn domains(&self) -> &[DomainInfo];

    /// Reads all domains at once, as near to one instant as the interface allows.
    ///
    /// `readings` is cleared and filled with one value per domain; `None` where this domain could not
    /// be read this time. Energies are cumulative since the meter was built and never decrease.
    ///
    /// # Errors
    /// An error of the interface as a whole, after which no reading can be expected any more.
    fn read(&mut self, readings: &mut Vec<Option<CounterReading>>) -> io::Result<()>;

    /// How often it should be read.
    fn pace(&self) -> Pace {
        Pace::default()
    }

    /// Lets the kernel itself read the meter every `period`, with time stamps of CLOCK_MONOTONIC taken
    /// at the reading. `false`: it cannot, and the meter must be polled. To be called before the first
    /// reading that matters, since what is used meanwhile is not counted.
    fn start_stamping(&mut self, _period: Nanoseconds) -> bool {
        false
    }

    /// Adds what the kernel has read since the last call, for each domain in the order of time. To be
    /// called at least every half second, or the kernel's buffers overflow (which loses moments, not
    /// energy).
    fn take_stamped(&mut self, _readings: &mut Vec<StampedReading>) {}
}

/// A reading that the kernel took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StampedReading {
    /// Index of the domain in [`EnergyMeter::domains`].
    pub domain: usize,
    /// When, on CLOCK_MONOTONIC.
    pub time: Timestamp,
    /// What was read.
    pub reading: CounterReading,
}

/// The limits of how often a meter is read with profit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Reading more often costs more than it tells.
    pub shortest: Nanoseconds,
    /// Reading less often risks that a counter wraps unseen, in eprof or in the kernel.
    pub longest: Nanoseconds,
}

impl Default for Pace {
    /// RAPL's: its counters move once a millisecond, and a 32-bit counter of 2⁻¹⁶ J passes half its
    /// range in 82 s at 400 W.
    fn default() -> Self {
        Self { shortest: Nanoseconds::from_millis(1), longest: Nanoseconds::from_millis(30_000) }
    }
}

/// One reading of one domain's counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterReading {
    /// Energy since the meter was built, wraps taken out.
    pub energy: Joules,
    /// The counter as the interface gave it, for those who want to check.
    pub raw: u64,
}
