//! Energy meters: everything that can tell how many joules a domain has used.

use std::io;

use crate::recording::metadata::DomainInfo;
use crate::units::Joules;

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
}

/// One reading of one domain's counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterReading {
    /// Energy since the meter was built, wraps taken out.
    pub energy: Joules,
    /// The counter as the interface gave it, for those who want to check.
    pub raw: u64,
}
