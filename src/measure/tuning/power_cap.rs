//! Power caps of CPU packages through powercap: `/sys/class/powercap/intel-rapl:N`.
//!
//! A package has one or more constraints, each a mean power over a time window. All are set to the
//! cap: with the long one alone, a program could exceed it for as long as that window, and short runs
//! would not be capped at all.

use std::fs::OpenOptions;
use std::path::PathBuf;

use super::changes::Changes;
use super::error::TuningError;
use super::undo::read_content;
use crate::machine::Roots;
use crate::machine::roots::{read_trimmed, sorted_names};

/// The kernel rounds caps to the hardware's unit, an eighth of a watt.
const UNIT_MICROWATTS: u64 = 125_000;

/// The packages whose power can be capped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerCap {
    zones: Vec<Zone>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Zone {
    enabled: PathBuf,
    limits: Vec<PathBuf>,
}

impl PowerCap {
    /// Finds the packages and checks that they can be capped.
    ///
    /// # Errors
    /// A sentence that says why caps cannot be set here, and what would help.
    pub fn find(roots: &Roots) -> Result<Self, String> {
        let folder = roots.sysfs.join("class/powercap");
        // Sub-zones have a second colon; intel-rapl-mmio is a second view of the same package.
        let top = |name: &String| name.strip_prefix("intel-rapl:").is_some_and(|rest| !rest.contains(':'));
        let mut zones = Vec::new();
        for name in sorted_names(&folder).into_iter().filter(top) {
            let zone = folder.join(&name);
            if !read_trimmed(&zone.join("name")).is_ok_and(|name| name.starts_with("package")) {
                continue;
            }
            let limits: Vec<PathBuf> = sorted_names(&zone)
                .into_iter()
                .filter(|file| file.starts_with("constraint_") && file.ends_with("_power_limit_uw"))
                .map(|file| zone.join(file))
                // The peak-power constraint guards the supply, not the mean power.
                .filter(|path| !is_peak(path))
                .collect();
            if !limits.is_empty() {
                zones.push(Zone { enabled: zone.join("enabled"), limits });
            }
        }
        if zones.is_empty() {
            return Err(format!(
                "no package in {} has a power limit (AMD's has none; in a virtual machine there is no powercap)",
                folder.display()
            ));
        }
        for path in zones.iter().flat_map(|zone| &zone.limits) {
            if let Err(error) = OpenOptions::new().write(true).open(path) {
                return Err(format!(
                    "{} cannot be written ({error}): run eprof tune as root",
                    path.display()
                ));
            }
        }
        Ok(Self { zones })
    }

    /// Caps every package, and reads the cap back.
    ///
    /// # Errors
    /// If a file cannot be written, or the hardware keeps another value (its limits may be locked).
    pub fn set(&self, changes: &mut Changes, watts: f64) -> Result<(), TuningError> {
        let wanted = (watts * 1e6).round() as u64;
        for zone in &self.zones {
            for path in &zone.limits {
                changes.write(path, &wanted.to_string())?;
                let found = read_content(path).map_err(TuningError::setting("read", path))?;
                if !found.parse::<u64>().is_ok_and(|found| found.abs_diff(wanted) <= UNIT_MICROWATTS) {
                    return Err(TuningError::NotTaken {
                        path: path.clone(),
                        wanted: wanted.to_string(),
                        found,
                    });
                }
            }
            if read_content(&zone.enabled).is_ok_and(|enabled| enabled == "0") {
                changes.write(&zone.enabled, "1")?;
            }
        }
        Ok(())
    }
}

fn is_peak(limit: &std::path::Path) -> bool {
    let name = limit.to_string_lossy().replace("_power_limit_uw", "_name");
    read_trimmed(std::path::Path::new(&name)).is_ok_and(|name| name == "peak_power")
}

#[cfg(test)]
mod tests {
    use super::super::guard::Guard;
    use super::*;
    use crate::machine::fixture::FixtureMachine;

    const TWO_PACKAGES: &str = "\
sys/class/powercap/intel-rapl:{0,1}/name: package-{0,1}
sys/class/powercap/intel-rapl:{0,1}/enabled: {0,1}
sys/class/powercap/intel-rapl:{0,1}/constraint_0_name: long_term
sys/class/powercap/intel-rapl:{0,1}/constraint_0_power_limit_uw: 65000000
sys/class/powercap/intel-rapl:{0,1}/constraint_1_name: short_term
sys/class/powercap/intel-rapl:{0,1}/constraint_1_power_limit_uw: 81250000
sys/class/powercap/intel-rapl:{0,1}/constraint_2_name: peak_power
sys/class/powercap/intel-rapl:{0,1}/constraint_2_power_limit_uw: 140000000
sys/class/powercap/intel-rapl:0:0/name: core
sys/class/powercap/intel-rapl:0:0/constraint_0_power_limit_uw: 0
sys/class/powercap/intel-rapl:2/name: psys
sys/class/powercap/intel-rapl:2/constraint_0_power_limit_uw: 200000000
";

    fn content(machine: &FixtureMachine, file: &str) -> String {
        read_content(&machine.path().join("sys/class/powercap").join(file)).expect("readable")
    }

    #[test]
    fn caps_packages_and_nothing_else_and_restores_them() {
        let machine = FixtureMachine::new(TWO_PACKAGES);
        let cap = PowerCap::find(&Roots::under(machine.path())).expect("found");
        let mut changes = Changes::guarded_by(Guard::none());
        cap.set(&mut changes, 40.0).expect("taken");
        for package in ["intel-rapl:0", "intel-rapl:1"] {
            assert_eq!(content(&machine, &format!("{package}/constraint_0_power_limit_uw")), "40000000");
            assert_eq!(content(&machine, &format!("{package}/constraint_1_power_limit_uw")), "40000000");
            assert_eq!(content(&machine, &format!("{package}/constraint_2_power_limit_uw")), "140000000");
            assert_eq!(content(&machine, &format!("{package}/enabled")), "1");
        }
        assert_eq!(content(&machine, "intel-rapl:0:0/constraint_0_power_limit_uw"), "0");
        assert_eq!(content(&machine, "intel-rapl:2/constraint_0_power_limit_uw"), "200000000");
        assert_eq!(changes.restore(), []);
        assert_eq!(content(&machine, "intel-rapl:0/constraint_1_power_limit_uw"), "81250000");
        assert_eq!(content(&machine, "intel-rapl:0/enabled"), "0");
    }

    #[test]
    fn a_machine_without_caps_says_so() {
        let machine = FixtureMachine::new("sys/class/powercap/intel-rapl:0/name: package-0");
        let error = PowerCap::find(&Roots::under(machine.path())).expect_err("no constraint");
        assert!(error.contains("power limit"), "{error}");
    }
}
