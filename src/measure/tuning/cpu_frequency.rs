//! CPU frequencies through cpufreq: one policy per group of CPUs, in `/sys/devices/system/cpu/cpufreq`.
//!
//! A frequency is set as both the lower and the upper limit of every policy. That works with every
//! driver and governor: `acpi-cpufreq`, `intel_pstate` (which offers no list and no `userspace`
//! governor), `amd-pstate`, `cppc_cpufreq`. Where the governor is `userspace`, `scaling_setspeed` is
//! written as well. Firmware may still ignore it (hardware-managed P-states, thermal limits), so the
//! frequency that the CPUs really had is read while the program runs.

use std::fs::OpenOptions;
use std::path::PathBuf;

use super::changes::Changes;
use super::error::TuningError;
use super::undo::read_content;
use crate::machine::Roots;
use crate::machine::roots::{read_number, read_trimmed, sorted_names};

/// Settings and readings closer than this are the same: drivers round to steps of their own.
const TOLERANCE: f64 = 0.01;

/// The cpufreq policies of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuFrequency {
    policies: Vec<Policy>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Policy {
    path: PathBuf,
    lowest: u64,
    highest: u64,
    /// Empty where the driver has no list.
    offered: Vec<u64>,
    userspace: bool,
}

impl CpuFrequency {
    /// Finds the policies and checks that they can be set.
    ///
    /// # Errors
    /// A sentence that says why frequencies cannot be set here, and what would help.
    pub fn find(roots: &Roots) -> Result<Self, String> {
        let folder = roots.sysfs.join("devices/system/cpu/cpufreq");
        let names = sorted_names(&folder).into_iter().filter(|name| name.starts_with("policy"));
        let policies: Vec<Policy> = names.filter_map(|name| Policy::read(folder.join(name))).collect();
        if policies.is_empty() {
            return Err(format!(
                "there is no cpufreq policy in {} (a virtual machine, or no driver for this CPU)",
                folder.display()
            ));
        }
        for policy in &policies {
            for name in ["scaling_min_freq", "scaling_max_freq"] {
                let path = policy.path.join(name);
                if let Err(error) = OpenOptions::new().write(true).open(&path) {
                    return Err(format!("{} cannot be written ({error}): run eprof as root", path.display()));
                }
            }
        }
        Ok(Self { policies })
    }

    /// The frequency in GHz that the driver offers nearest to `ghz`.
    ///
    /// # Errors
    /// A sentence, if no CPU can run near it.
    pub fn nearest(&self, ghz: f64) -> Result<f64, String> {
        let khz = ghz * 1e6;
        let (lowest, highest) = self.range();
        if ghz < lowest * (1.0 - TOLERANCE) || ghz > highest * (1.0 + TOLERANCE) {
            return Err(format!("{ghz} GHz is out of the CPUs' range, {lowest} to {highest} GHz"));
        }
        let offered = self.policies.iter().flat_map(|policy| &policy.offered);
        let nearest = offered.min_by_key(|&&offered| offered.abs_diff(khz as u64));
        Ok(nearest.map_or(ghz, |&nearest| nearest as f64 / 1e6))
    }

    /// The lowest and the highest frequency of any CPU, in GHz.
    pub fn range(&self) -> (f64, f64) {
        let lowest = self.policies.iter().map(|policy| policy.lowest).min().unwrap_or(0);
        let highest = self.policies.iter().map(|policy| policy.highest).max().unwrap_or(0);
        (lowest as f64 / 1e6, highest as f64 / 1e6)
    }

    /// Sets all policies to one frequency, as near as each can, and reads it back.
    ///
    /// # Errors
    /// If a file cannot be written, or the driver keeps another value.
    pub fn set(&self, changes: &mut Changes, ghz: f64) -> Result<(), TuningError> {
        let wanted = (ghz * 1e6).round() as u64;
        self.policies
            .iter()
            .try_for_each(|policy| policy.set(changes, wanted.clamp(policy.lowest, policy.highest)))
    }

    /// The mean of the CPUs' present frequencies in GHz, where the driver tells.
    pub fn current(&self) -> Option<f64> {
        let now: Vec<u64> = self
            .policies
            .iter()
            .filter_map(|policy| read_number(&policy.path.join("scaling_cur_freq")).ok())
            .collect();
        (!now.is_empty()).then(|| now.iter().sum::<u64>() as f64 / now.len() as f64 / 1e6)
    }
}

impl Policy {
    fn read(path: PathBuf) -> Option<Self> {
        let lowest = read_number(&path.join("cpuinfo_min_freq")).ok()?;
        let highest = read_number(&path.join("cpuinfo_max_freq")).ok()?;
        let list = read_trimmed(&path.join("scaling_available_frequencies")).unwrap_or_default();
        let governor = read_trimmed(&path.join("scaling_governor")).unwrap_or_default();
        Some(Self {
            lowest,
            highest,
            offered: list.split_whitespace().filter_map(|khz| khz.parse().ok()).collect(),
            userspace: governor == "userspace",
            path,
        })
    }

    fn set(&self, changes: &mut Changes, khz: u64) -> Result<(), TuningError> {
        let (low, high) = (self.path.join("scaling_min_freq"), self.path.join("scaling_max_freq"));
        let now: u64 = read_number(&high).map_err(TuningError::setting("read", &high))?;
        // Some kernels refuse a lower limit above the upper one: move that one first which makes room.
        let order = if khz > now { [&high, &low] } else { [&low, &high] };
        for path in order {
            changes.write(path, &khz.to_string())?;
        }
        if self.userspace {
            changes.write(&self.path.join("scaling_setspeed"), &khz.to_string())?;
        }
        for path in order {
            let found = read_content(path).map_err(TuningError::setting("read", path))?;
            let near =
                found.parse::<u64>().is_ok_and(|found| found.abs_diff(khz) as f64 <= khz as f64 * TOLERANCE);
            if !near {
                return Err(TuningError::NotTaken { path: path.clone(), wanted: khz.to_string(), found });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::guard::Guard;
    use super::*;
    use crate::machine::fixture::FixtureMachine;

    /// Two sockets under acpi-cpufreq, with a list of frequencies and the userspace governor.
    const ACPI: &str = "\
sys/devices/system/cpu/cpufreq/policy{0,8}/cpuinfo_min_freq: 1200000
sys/devices/system/cpu/cpufreq/policy{0,8}/cpuinfo_max_freq: 2300000
sys/devices/system/cpu/cpufreq/policy{0,8}/scaling_min_freq: 1200000
sys/devices/system/cpu/cpufreq/policy{0,8}/scaling_max_freq: 2300000
sys/devices/system/cpu/cpufreq/policy{0,8}/scaling_cur_freq: {1500000,1700000}
sys/devices/system/cpu/cpufreq/policy{0,8}/scaling_available_frequencies: 2300000 2200000 1800000 1200000
sys/devices/system/cpu/cpufreq/policy{0,8}/scaling_governor: userspace
sys/devices/system/cpu/cpufreq/policy{0,8}/scaling_setspeed: 2300000
";

    /// intel_pstate: no list, no setspeed; the efficiency cores reach 3.9 GHz only.
    const PSTATE: &str = "\
sys/devices/system/cpu/cpufreq/policy{0,1}/cpuinfo_min_freq: 800000
sys/devices/system/cpu/cpufreq/policy{0,1}/cpuinfo_max_freq: {5000000,3900000}
sys/devices/system/cpu/cpufreq/policy{0,1}/scaling_min_freq: 800000
sys/devices/system/cpu/cpufreq/policy{0,1}/scaling_max_freq: {5000000,3900000}
sys/devices/system/cpu/cpufreq/policy{0,1}/scaling_governor: powersave
sys/devices/system/cpu/cpufreq/policy{0,1}/scaling_setspeed: <unsupported>
";

    fn found(machine: &FixtureMachine) -> CpuFrequency {
        CpuFrequency::find(&Roots::under(machine.path())).expect("found")
    }

    fn content(machine: &FixtureMachine, file: &str) -> String {
        let path = machine.path().join("sys/devices/system/cpu/cpufreq").join(file);
        read_content(&path).expect("readable")
    }

    #[test]
    fn sets_limits_and_speed_of_every_policy_and_restores_them() {
        let machine = FixtureMachine::new(ACPI);
        let frequency = found(&machine);
        let mut changes = Changes::guarded_by(Guard::none());
        for ghz in [1.8, 2.2, 1.2] {
            frequency.set(&mut changes, ghz).expect("taken");
            for policy in ["policy0", "policy8"] {
                for file in ["scaling_min_freq", "scaling_max_freq", "scaling_setspeed"] {
                    assert_eq!(content(&machine, &format!("{policy}/{file}")), format!("{}", ghz * 1e6));
                }
            }
        }
        assert_eq!(changes.restore(), []);
        assert_eq!(content(&machine, "policy8/scaling_min_freq"), "1200000");
        assert_eq!(content(&machine, "policy8/scaling_max_freq"), "2300000");
        assert_eq!(content(&machine, "policy0/scaling_setspeed"), "2300000");
    }

    #[test]
    fn without_userspace_the_limits_alone_are_set() {
        let machine = FixtureMachine::new(PSTATE);
        let mut changes = Changes::guarded_by(Guard::none());
        found(&machine).set(&mut changes, 4.5).expect("taken");
        assert_eq!(content(&machine, "policy0/scaling_min_freq"), "4500000");
        assert_eq!(content(&machine, "policy1/scaling_max_freq"), "3900000", "as near as it can");
        assert_eq!(content(&machine, "policy0/scaling_setspeed"), "<unsupported>");
    }

    #[test]
    fn frequencies_are_those_the_driver_offers() {
        let acpi = found(&FixtureMachine::new(ACPI));
        assert_eq!(acpi.nearest(1.9), Ok(1.8));
        assert_eq!(acpi.nearest(2.3), Ok(2.3));
        assert!(acpi.nearest(3.0).expect_err("too fast").contains("1.2 to 2.3 GHz"));
        assert_eq!(found(&FixtureMachine::new(PSTATE)).nearest(1.9), Ok(1.9));
    }

    #[test]
    fn the_present_frequency_is_the_mean() {
        assert_eq!(found(&FixtureMachine::new(ACPI)).current(), Some(1.6));
        assert_eq!(found(&FixtureMachine::new(PSTATE)).current(), None);
    }

    #[test]
    fn a_driver_that_keeps_another_value_is_found_out() {
        let machine = FixtureMachine::new(PSTATE);
        let ignoring = machine.path().join("sys/devices/system/cpu/cpufreq/policy1/scaling_min_freq");
        let frequency = found(&machine);
        fs::remove_file(&ignoring).expect("removable");
        std::os::unix::fs::symlink("/dev/null", &ignoring).expect("a link");
        let mut changes = Changes::guarded_by(Guard::none());
        let error = frequency.set(&mut changes, 2.0).expect_err("ignored");
        assert!(matches!(error, TuningError::NotTaken { .. }), "{error}");
        // What went before is restored all the same; the file that ignores writes is said.
        assert_eq!(changes.restore().len(), 0, "it read empty before, and does again");
        assert_eq!(content(&machine, "policy0/scaling_max_freq"), "5000000");
    }

    #[test]
    fn a_machine_without_cpufreq_says_so() {
        let error = CpuFrequency::find(&Roots::under(FixtureMachine::new("").path())).expect_err("none");
        assert!(error.contains("no cpufreq policy"), "{error}");
    }
}
