//! What machines are assumed to take where no meter tells it.

use crate::hardware::{CoreKind, CpuInfo, MachineInfo};
use crate::machine::topology::{CpuGroups, is_x86};
use crate::units::Watts;

/// What all CPUs together are assumed to take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AssumedWatts {
    /// With every CPU idle.
    pub idle: Watts,
    /// With every CPU busy.
    pub busy: Watts,
}

impl AssumedWatts {
    /// Reads the user's `IDLE:BUSY`, in watts for the whole machine.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = || {
            format!("'{text}' is not IDLE:BUSY, the machine's watts when idle and when busy, such as 20:95")
        };
        let (idle, busy) = text.split_once(':').ok_or_else(form)?;
        let watts = |text: &str| {
            let watts: f64 = text.trim().parse().map_err(|_| form())?;
            if watts.is_finite() && watts >= 0.0 { Ok(watts) } else { Err(form()) }
        };
        let (idle, busy) = (watts(idle)?, watts(busy)?);
        if busy < idle || busy == 0.0 {
            return Err(format!("'{text}': a busy machine cannot take less than an idle one, nor nothing"));
        }
        Ok(Self { idle: Watts::from_watts(idle), busy: Watts::from_watts(busy) })
    }

    /// Watts typical of such a machine, and where they come from.
    pub fn typical(machine: &MachineInfo) -> (Self, &'static str) {
        let mut total = Self { idle: Watts::ZERO, busy: Watts::ZERO };
        let mut reason = "";
        for core in machine.first_of_each_core() {
            let class = Class::of(machine, core);
            let threads =
                machine.cpus.iter().filter(|cpu| (cpu.package, cpu.core) == (core.package, core.core));
            let (idle, busy) = class.watts(threads.count());
            total.idle += Watts::from_watts(idle);
            total.busy += Watts::from_watts(busy);
            if reason.is_empty() {
                reason = class.reason();
            }
        }
        (total, reason)
    }
}

/// Kinds of core that differ in what they take by more than the guess is good for anyway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    X86,
    X86Small,
    ArmServer,
    ArmBoard,
}

impl Class {
    fn of(machine: &MachineInfo, core: CpuInfo) -> Self {
        let name = machine.microarchitecture.as_deref().unwrap_or_default();
        let is_server = name.starts_with("neoverse") || name.starts_with("ampere") || name == "thunderx2";
        if is_x86(machine) {
            if core.kind == CoreKind::Efficiency { Self::X86Small } else { Self::X86 }
        } else if is_server {
            Self::ArmServer
        } else {
            Self::ArmBoard
        }
    }

    /// Idle and busy watts of a core with its share of the package.
    fn watts(self, threads: usize) -> (f64, f64) {
        match self {
            // Per hardware thread 0.74 W idle and 3.5 W busy.
            Self::X86 => (0.74 * threads as f64, 3.5 * threads as f64),
            Self::X86Small => (0.5, 2.5),
            Self::ArmServer => (0.7, 2.6),
            Self::ArmBoard => (0.68, 1.6),
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::X86 => {
                "0.74 W idle and 3.5 W busy per hardware thread, the averages that the Cloud Carbon Footprint \
                 methodology takes from the SPECpower results of servers of 2012 to 2020"
            }
            Self::X86Small => "0.5 W idle and 2.5 W busy per small core, a quarter of a 10 W module of four",
            Self::ArmServer => "0.7 W idle and 2.6 W busy per core, from an 80-core Ampere Altra's 210 W",
            Self::ArmBoard => {
                "0.68 W idle and 1.6 W busy per core, from a Raspberry Pi 4's 2.7 W idle and 6.4 W with four busy cores"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{BUSY_WATTS_OF_SERVERS, TYPICAL_WATTS_ERROR};

    fn machine(arch: &str, cpus: u32) -> MachineInfo {
        let cpu = |n| CpuInfo { cpu: n, core: n / 2, die: 0, package: 0, kind: CoreKind::Performance };
        MachineInfo { arch: arch.to_owned(), cpus: (0..cpus).map(cpu).collect(), ..MachineInfo::default() }
    }

    #[test]
    fn cores_of_all_classes_by_hand() {
        let core = |n: u32, kind| CpuInfo { cpu: n, core: n, die: 0, package: 0, kind };
        let machine = |arch: &str, name: &str, cpus: Vec<CpuInfo>| MachineInfo {
            arch: arch.to_owned(),
            microarchitecture: Some(name.to_owned()),
            cpus,
            ..MachineInfo::default()
        };
        let watts = |machine: &MachineInfo| {
            let (AssumedWatts { idle, busy }, reason) = AssumedWatts::typical(machine);
            ((idle.as_watts() * 1e6).round() / 1e6, (busy.as_watts() * 1e6).round() / 1e6, reason)
        };
        // One large core with two threads, and two small ones: the reason is the first core's.
        let mut mixed = vec![core(0, CoreKind::Performance), core(1, CoreKind::Performance)];
        mixed[1].core = 0;
        mixed.extend([core(2, CoreKind::Efficiency), core(3, CoreKind::Efficiency)]);
        let (idle, busy, reason) = watts(&machine("x86_64", "alderlake", mixed));
        assert_eq!((idle, busy), (2.0 * 0.74 + 2.0 * 0.5, 2.0 * 3.5 + 2.0 * 2.5));
        assert!(reason.contains("Cloud Carbon"));
        for name in ["neoverse-n1", "ampere-1", "thunderx2"] {
            let (idle, busy, reason) = watts(&machine("aarch64", name, vec![core(0, CoreKind::Performance)]));
            assert_eq!((idle, busy), (0.7, 2.6), "{name}");
            assert!(reason.contains("Altra"));
        }
        let small = machine("x86_64", "gracemont", vec![core(0, CoreKind::Efficiency)]);
        assert!(watts(&small).2.contains("small core"));
        assert_eq!(watts(&machine("x86_64", "", Vec::new())), (0.0, 0.0, ""));
        assert_eq!(AssumedWatts::parse("5:5").map(|watts| watts.busy), Ok(Watts::from_watts(5.0)));
    }

    #[test]
    fn watts_from_the_user() {
        let watts = AssumedWatts::parse("10:95.5").expect("valid");
        assert_eq!((watts.idle, watts.busy), (Watts::from_watts(10.0), Watts::from_watts(95.5)));
        for text in ["10", "a:b", "20:10", "-1:5", "0:0", "nan:5", "5:inf"] {
            assert!(AssumedWatts::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn seven_of_ten_servers_are_within_the_error() {
        let (one, _) = AssumedWatts::typical(&machine("x86_64", 1));
        let near = |watts: f64| (watts / one.busy.as_watts() - 1.0).abs() <= TYPICAL_WATTS_ERROR;
        let within = BUSY_WATTS_OF_SERVERS.iter().filter(|(_, watts)| near(*watts)).count();
        assert_eq!(within, 7, "one standard error holds two thirds");
    }

    #[test]
    fn typical_watts_grow_with_the_machine() {
        let (four, reason) = AssumedWatts::typical(&machine("x86_64", 4));
        assert!((four.idle.as_watts() - 2.96).abs() < 1e-9 && (four.busy.as_watts() - 14.0).abs() < 1e-9);
        assert!(reason.contains("SPECpower"));
        let (board, _) = AssumedWatts::typical(&MachineInfo {
            microarchitecture: Some("cortex-a72".to_owned()),
            cpus: (0..4)
                .map(|n| CpuInfo { cpu: n, core: n, die: 0, package: 0, kind: CoreKind::Performance })
                .collect(),
            ..machine("aarch64", 0)
        });
        assert!((board.idle.as_watts() - 2.72).abs() < 1e-9 && (board.busy.as_watts() - 6.4).abs() < 1e-9);
    }
}
