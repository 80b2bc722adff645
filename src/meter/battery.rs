//! The battery's own account of its discharge: the whole machine, slowly and coarsely, but everywhere.

use std::io;
use std::path::{Path, PathBuf};

use super::Pace;
use super::domain::{self, Place};
use super::finding::{Candidate, Finding, Needs, Search, Site};
use super::integrate::{Meaning, PowerMeter, PowerReader};
use super::rejected::Rejected;
use super::source::Source;
use crate::hardware::{DomainInfo, DomainKind};
use crate::machine::roots::{read_number, read_trimmed, sorted_names};
use crate::units::{Nanoseconds, Watts};

struct Batteries {
    supplies: Vec<PathBuf>,
    domains: Vec<DomainInfo>,
}

/// Looks for batteries that feed the machine.
pub(super) fn find(site: &Site<'_>) -> Search {
    let Site { roots, machine, .. } = *site;
    let class = roots.sysfs.join("class/power_supply");
    let supplies: Vec<PathBuf> = sorted_names(&class)
        .iter()
        .map(|name| class.join(name))
        .filter(|supply| feeds_the_machine(supply))
        .collect();
    if supplies.is_empty() {
        return Search::default();
    }
    if let Err(status) = discharge(&supplies) {
        let why = format!("it tells what the machine takes only while it discharges, but it is: {status}");
        return Search::rejecting(Rejected::new(Source::Battery, why).with_repair("unplug the charger"));
    }
    if power(&supplies).is_none() {
        let why = "it tells neither power_now nor current_now with voltage_now";
        return Search::rejecting(Rejected::new(Source::Battery, why));
    }
    let domain = domain::describe(machine, DomainKind::Battery, Place::MACHINE, &Source::Battery.to_string());
    Search::of(Batteries { supplies, domains: vec![domain] }, Vec::new())
}

/// Batteries of mice and headsets have the scope `Device`.
fn feeds_the_machine(supply: &Path) -> bool {
    let read = |name: &str| read_trimmed(&supply.join(name)).unwrap_or_default();
    read("type") == "Battery"
        && read("scope") != "Device"
        && read_number::<u8>(&supply.join("present")).unwrap_or(1) == 1
}

/// An error with the first status that is no discharge. Of several batteries some may rest.
fn discharge(supplies: &[PathBuf]) -> Result<(), String> {
    let statuses: Vec<String> =
        supplies.iter().map(|supply| read_trimmed(&supply.join("status")).unwrap_or_default()).collect();
    let charging = statuses.iter().find(|status| *status == "Charging" || *status == "Full");
    match charging {
        None if statuses.iter().any(|status| status == "Discharging") => Ok(()),
        Some(status) => Err(status.to_lowercase()),
        None => Err(statuses.first().map(|status| status.to_lowercase()).unwrap_or_default()),
    }
}

/// What all batteries give together. Some drivers count discharge as negative.
fn power(supplies: &[PathBuf]) -> Option<Watts> {
    let of_one = |supply: &PathBuf| {
        let read = |name: &str| read_number::<i64>(&supply.join(name)).ok().map(|value| value.unsigned_abs());
        if let Some(microwatts) = read("power_now") {
            return Some(Watts::from_microwatts(microwatts));
        }
        let (microamps, microvolts) = (read("current_now")?, read("voltage_now")?);
        Some(Watts::from_watts(microamps as f64 * 1e-6 * microvolts as f64 * 1e-6))
    };
    supplies.iter().map(of_one).sum::<Option<Watts>>()
}

impl Finding for Batteries {
    fn source(&self) -> Source {
        Source::Battery
    }

    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn needs(&self) -> Needs {
        Needs::Nothing
    }

    fn open(self: Box<Self>, _rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>> {
        let domains = self.domains.into_iter().map(|domain| (domain, Meaning::Instant)).collect();
        // Firmware measures anew every few seconds, and reading asks it each time.
        let pace = Pace { shortest: Nanoseconds::from_millis(250), longest: Nanoseconds::from_millis(5_000) };
        let reader = Box::new(Discharge { supplies: self.supplies });
        Some(Box::new(PowerMeter::new(Source::Battery, reader, domains, pace)))
    }
}

struct Discharge {
    supplies: Vec<PathBuf>,
}

impl PowerReader for Discharge {
    fn read(&mut self, watts: &mut Vec<Option<Watts>>) -> io::Result<()> {
        watts.clear();
        // The charger may have been plugged in meanwhile.
        watts.push(discharge(&self.supplies).ok().and_then(|()| power(&self.supplies)));
        Ok(())
    }

    fn remove(&mut self, _index: usize) {
        self.supplies.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::find_under;
    use super::*;
    use crate::hardware::MachineInfo;
    use crate::machine::fixture::FixtureMachine;
    use crate::machine::roots::Roots;

    const LAPTOP: &str = "
sys/class/power_supply/AC/type: Mains
sys/class/power_supply/BAT0/type: Battery
sys/class/power_supply/BAT0/present: 1
sys/class/power_supply/BAT0/status: Discharging
sys/class/power_supply/BAT0/current_now: -1500000
sys/class/power_supply/BAT0/voltage_now: 12000000
sys/class/power_supply/BAT1/type: Battery
sys/class/power_supply/BAT1/status: Not charging
sys/class/power_supply/BAT1/power_now: 2000000
sys/class/power_supply/hid-mouse/type: Battery
sys/class/power_supply/hid-mouse/scope: Device
sys/class/power_supply/hid-mouse/status: Discharging
sys/class/power_supply/hid-mouse/power_now: 999
";

    #[test]
    fn a_found_battery_is_opened_and_read() {
        let files = FixtureMachine::new(LAPTOP);
        let mut search = find_under(find, &Roots::under(files.path()), &MachineInfo::default());
        let found = search.found.remove(0);
        assert_eq!(found.source(), Source::Battery);
        assert!(matches!(found.needs(), Needs::Nothing));
        let mut meter = found.open(&mut Vec::new()).expect("files alone");
        let pace = meter.pace();
        assert_eq!(
            (pace.shortest, pace.longest),
            (Nanoseconds::from_millis(250), Nanoseconds::from_millis(5000))
        );
        let mut readings = Vec::new();
        meter.read(&mut readings).expect("readable");
        assert_eq!(readings.len(), 1);
        assert!(readings[0].is_some());
        // What is not kept is not read any more.
        meter.retain(&mut |_| false);
        assert!(meter.domains().is_empty());
        meter.read(&mut readings).expect("nothing to be read");
        assert!(readings.is_empty());
    }

    #[test]
    fn a_battery_that_rests_gives_nothing_and_one_without_current_tells_nothing() {
        for (from, to, why) in [
            ("Discharging", "Not charging", "it is: not charging"),
            ("Discharging", "Full", "it is: full"),
            ("power_now: 2000000", "charge_now: 5", "neither power_now"),
        ] {
            let files = FixtureMachine::new(&LAPTOP.replace(from, to));
            let search = find_under(find, &Roots::under(files.path()), &MachineInfo::default());
            assert!(search.found.is_empty(), "{to}");
            assert!(search.rejected[0].why.contains(why), "{}", search.rejected[0].why);
        }
        // One that is not in its bay counts for nothing.
        let files = FixtureMachine::new(&LAPTOP.replace("present: 1", "present: 0"));
        let search = find_under(find, &Roots::under(files.path()), &MachineInfo::default());
        assert!(search.found.is_empty() && search.rejected[0].why.contains("not charging"));
    }

    #[test]
    fn batteries_add_up_and_mice_do_not_count() {
        let files = FixtureMachine::new(LAPTOP);
        let mut search = find_under(find, &Roots::under(files.path()), &MachineInfo::default());
        let mut reader = Discharge {
            supplies: ["BAT0", "BAT1"]
                .map(|name| files.path().join("sys/class/power_supply").join(name))
                .into(),
        };
        let mut watts = Vec::new();
        reader.read(&mut watts).expect("readable");
        assert_eq!(watts, [Some(Watts::from_watts(20.0))]);
        assert_eq!(search.found.remove(0).domains()[0].name, "battery");

        files.write("sys/class/power_supply/BAT1/status", "Charging\n");
        reader.read(&mut watts).expect("readable");
        assert_eq!(watts, [None], "the charger was plugged in");
    }

    #[test]
    fn a_charging_battery_is_refused() {
        let files = FixtureMachine::new(&LAPTOP.replace("Discharging", "Charging"));
        let search = find_under(find, &Roots::under(files.path()), &MachineInfo::default());
        assert!(search.found.is_empty());
        assert_eq!(search.rejected[0].repair.as_deref(), Some("unplug the charger"));
        let nothing = FixtureMachine::new("sys/class/power_supply/");
        let search = find_under(find, &Roots::under(nothing.path()), &MachineInfo::default());
        assert!(search.found.is_empty() && search.rejected.is_empty());
    }
}
