//! Which kinds of meter there are: in whose turn each is looked for, and by what function.

use super::finding::Find;
use super::source::Source;
use super::{battery, estimate, hwmon, msr, nvml, power_core, powercap, rapl_perf};

/// The order in which meters are looked for. Those of one turn are watched side by side.
///
/// Once something measures the CPUs, later turns are only for meters that may count graphics cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// The kernel's ways to RAPL's counters.
    Rapl,
    /// The same counters, without the kernel.
    Registers,
    /// Sensors of the board and its cards.
    Sensors,
    /// The machine's supply.
    Supply,
    /// No meter.
    Estimate,
    /// Cards of which only their drivers tell.
    Drivers,
}

/// How meters of one kind are found.
pub(super) struct Kind {
    pub turn: Turn,
    /// It may count graphics cards, which no meter of the CPUs does.
    pub may_count_cards: bool,
    pub find: Find,
}

impl Source {
    /// How it is found.
    pub(super) fn kind(self) -> Kind {
        let kind = |turn, find: Find| Kind { turn, may_count_cards: false, find };
        let with_cards = |turn, find: Find| Kind { turn, may_count_cards: true, find };
        match self {
            Self::PowerPmu => kind(Turn::Rapl, rapl_perf::find),
            Self::PowerCorePmu => kind(Turn::Rapl, power_core::find),
            Self::Powercap => kind(Turn::Rapl, powercap::find),
            Self::Msr => kind(Turn::Registers, msr::find),
            Self::Hwmon => with_cards(Turn::Sensors, hwmon::find),
            Self::Battery => kind(Turn::Supply, battery::find),
            Self::Nvml => with_cards(Turn::Drivers, nvml::find),
            Self::Estimate => kind(Turn::Estimate, estimate::find),
        }
    }
}
