//! Sensors in `/sys/class/hwmon`: graphics cards, boards, firmware. What a sensor counts follows from
//! its driver's name and its label; a sensor of which that is not known is not used.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::Pace;
use super::counters::{Channel, CounterMeter, CounterReader};
use super::domain;
use super::finding::{Candidate, Finding, Needs, Search, Site};
use super::hwmon_names::{self, Meant};
use super::integrate::{Meaning, PowerMeter, PowerReader};
use super::number_file::NumberFile;
use super::rejected::Rejected;
use super::source::Source;
use super::wrap::WrappingCounter;
use crate::hardware::DomainInfo;
use crate::machine::roots::{read_trimmed, sorted_names};
use crate::units::{Nanoseconds, Watts};

/// Files that tell a power.
#[derive(Debug, Clone, PartialEq)]
enum PowerFiles {
    /// `powerN_input` or `powerN_average`: microwatts.
    Power(PathBuf, Meaning),
    /// `inN_input` in millivolts times `currN_input` in milliamperes: microwatts.
    Product(PathBuf, PathBuf),
}

/// What a sensor's files tell.
#[derive(Debug, Clone, PartialEq)]
enum Quantity {
    /// `energyN_input`: microjoules, counting up.
    Energy(PathBuf),
    Power(PowerFiles),
}

/// A sensor that tells energy or power.
#[derive(Debug, Clone, PartialEq)]
struct Sensor {
    label: String,
    quantity: Quantity,
}

/// Sensors that count energy.
#[derive(Default)]
struct EnergySensors {
    paths: Vec<PathBuf>,
    domains: Vec<DomainInfo>,
}

/// Sensors that tell power.
#[derive(Default)]
struct PowerSensors {
    files: Vec<PowerFiles>,
    domains: Vec<DomainInfo>,
}

/// Looks for sensors of energy and power. Each domain is taken from the first sensor that tells it.
pub(super) fn find(site: &Site<'_>) -> Search {
    let Site { roots, machine, .. } = *site;
    let class = roots.sysfs.join("class/hwmon");
    let mut rejected = Vec::new();
    let (mut counting, mut metering) = (EnergySensors::default(), PowerSensors::default());
    for hwmon in sorted_names(&class) {
        let folder = class.join(&hwmon);
        let driver = read_trimmed(&folder.join("name")).unwrap_or_default();
        for Sensor { label, quantity } in sensors(&folder, &driver) {
            let Some(Meant { name, kind, place }) = hwmon_names::understand(&driver, &label, &folder) else {
                let what = if label.is_empty() { "a sensor without label" } else { &label };
                let why = format!("{what}: it is not known what part of the machine it counts");
                rejected.push(Rejected::new(Source::Hwmon, why).of(&driver));
                continue;
            };
            let mut domain = domain::describe(machine, kind, place, &format!("{} {driver}", Source::Hwmon));
            domain.name = name.unwrap_or(domain.name);
            let is_told = |domains: &[DomainInfo]| domains.iter().any(|have| have.name == domain.name);
            // A device's energies come before its powers: a counter loses nothing between two readings.
            if is_told(&counting.domains) || is_told(&metering.domains) {
                continue;
            }
            match quantity {
                Quantity::Energy(path) => {
                    counting.paths.push(path);
                    counting.domains.push(domain);
                }
                Quantity::Power(files) => {
                    metering.files.push(files);
                    metering.domains.push(domain);
                }
            }
        }
    }
    let mut found: Vec<Box<dyn Finding>> = Vec::new();
    if !counting.domains.is_empty() {
        found.push(Box::new(counting));
    }
    if !metering.domains.is_empty() {
        found.push(Box::new(metering));
    }
    Search { found, rejected, ..Search::default() }
}

/// The sensors of one device.
fn sensors(folder: &Path, driver: &str) -> Vec<Sensor> {
    let names = sorted_names(folder);
    let file = |name: String| names.contains(&name).then(|| folder.join(name));
    let label = |channel: &str| read_trimmed(&folder.join(format!("{channel}_label"))).unwrap_or_default();
    let channels = |kind: &str| -> Vec<String> {
        let numbers =
            names.iter().filter_map(|name| name.strip_prefix(kind)?.split('_').next()?.parse::<u32>().ok());
        numbers.collect::<BTreeSet<u32>>().into_iter().map(|number| format!("{kind}{number}")).collect()
    };
    let energies = channels("energy").into_iter().filter_map(|channel| {
        let quantity = Quantity::Energy(file(format!("{channel}_input"))?);
        Some(Sensor { label: label(&channel), quantity })
    });
    let powers = channels("power").into_iter().filter_map(|channel| {
        let average =
            file(format!("{channel}_average")).map(|path| PowerFiles::Power(path, Meaning::Average));
        let instant =
            || file(format!("{channel}_input")).map(|path| PowerFiles::Power(path, Meaning::Instant));
        let quantity = Quantity::Power(average.or_else(instant)?);
        Some(Sensor { label: label(&channel), quantity })
    });
    // Texas Instruments' three-channel monitor tells volts and amperes; the label is at the volts.
    let products = channels("curr").into_iter().filter(|_| driver == "ina3221").filter_map(|amps| {
        let volts = amps.replace("curr", "in");
        let files = PowerFiles::Product(file(format!("{volts}_input"))?, file(format!("{amps}_input"))?);
        Some(Sensor { label: label(&volts), quantity: Quantity::Power(files) })
            .filter(|s| !s.label.is_empty())
    });
    energies.chain(powers).chain(products).collect()
}

fn refused(domain: &DomainInfo, error: &io::Error) -> Rejected {
    Rejected::new(&domain.source, format!("cannot be read: {error}")).of(&domain.name)
}

impl Finding for EnergySensors {
    fn source(&self) -> Source {
        Source::Hwmon
    }

    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn needs(&self) -> Needs {
        Needs::Files(self.paths.clone())
    }

    fn open(self: Box<Self>, rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>> {
        let (mut files, mut channels) = (Vec::new(), Vec::new());
        for (path, domain) in self.paths.iter().zip(self.domains) {
            match open_counter(path) {
                Ok(file) => {
                    let counter = WrappingCounter::of_bits(64);
                    files.push(file);
                    channels.push(Channel { domain, counter, joules_per_count: 1e-6, resolution: None });
                }
                Err(error) => rejected.push(refused(&domain, &error)),
            }
        }
        (!channels.is_empty()).then(|| {
            let meter = CounterMeter::new(Source::Hwmon, Box::new(Counters(files)), channels, true);
            Box::new(meter) as Box<dyn Candidate>
        })
    }
}

impl PowerFiles {
    fn meaning(&self) -> Meaning {
        match self {
            Self::Power(_, meaning) => *meaning,
            Self::Product(..) => Meaning::Instant,
        }
    }

    fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Power(path, _) => vec![path.clone()],
            Self::Product(volts, amps) => vec![volts.clone(), amps.clone()],
        }
    }

    fn open(&self) -> io::Result<Gauge> {
        Ok(match self {
            Self::Power(path, _) => Gauge::Microwatts(NumberFile::open(path)?),
            Self::Product(volts, amps) => Gauge::Product(NumberFile::open(volts)?, NumberFile::open(amps)?),
        })
    }
}

impl Finding for PowerSensors {
    fn source(&self) -> Source {
        Source::Hwmon
    }

    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn needs(&self) -> Needs {
        Needs::Files(self.files.iter().flat_map(PowerFiles::paths).collect())
    }

    fn open(self: Box<Self>, rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>> {
        let (mut gauges, mut domains) = (Vec::new(), Vec::new());
        for (files, domain) in self.files.iter().zip(self.domains) {
            match files.open() {
                Ok(gauge) => {
                    gauges.push(gauge);
                    domains.push((domain, files.meaning()));
                }
                Err(error) => rejected.push(refused(&domain, &error)),
            }
        }
        // Most sensors measure anew every few milliseconds and are read over a slow bus.
        let pace = Pace { shortest: Nanoseconds::from_millis(20), longest: Nanoseconds::from_millis(1_000) };
        (!domains.is_empty()).then(|| {
            let meter = PowerMeter::new(Source::Hwmon, Box::new(Gauges(gauges)), domains, pace);
            Box::new(meter) as Box<dyn Candidate>
        })
    }
}

/// A counter's file that can be opened may still have nothing to tell.
fn open_counter(path: &Path) -> io::Result<NumberFile> {
    let file = NumberFile::open(path)?;
    file.read::<u64>()?;
    Ok(file)
}

struct Counters(Vec<NumberFile>);

impl CounterReader for Counters {
    fn read(&mut self, raw: &mut Vec<Option<u64>>) -> io::Result<()> {
        raw.clear();
        raw.extend(self.0.iter().map(|file| file.read().ok()));
        Ok(())
    }

    fn remove(&mut self, index: usize) {
        if index < self.0.len() {
            self.0.remove(index);
        }
    }
}

enum Gauge {
    Microwatts(NumberFile),
    Product(NumberFile, NumberFile),
}

struct Gauges(Vec<Gauge>);

impl PowerReader for Gauges {
    fn read(&mut self, watts: &mut Vec<Option<Watts>>) -> io::Result<()> {
        watts.clear();
        watts.extend(self.0.iter().map(|gauge| {
            let microwatts = match gauge {
                Gauge::Microwatts(file) => file.read().ok()?,
                Gauge::Product(volts, amps) => volts.read::<i64>().ok()?.checked_mul(amps.read().ok()?)?,
            };
            u64::try_from(microwatts).ok().map(Watts::from_microwatts)
        }));
        Ok(())
    }

    fn remove(&mut self, index: usize) {
        if index < self.0.len() {
            self.0.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::find_under;
    use super::*;
    use crate::hardware::DomainKind;
    use crate::hardware::MachineInfo;
    use crate::machine::fixture::FixtureMachine;
    use crate::machine::roots::Roots;
    use crate::units::Joules;

    fn found(manifest: &str) -> (Vec<(String, DomainKind)>, Vec<String>) {
        let files = FixtureMachine::new(manifest);
        let search = find_under(find, &Roots::under(files.path()), &MachineInfo::default());
        let domains = search.found.iter().flat_map(|found| found.domains().to_vec());
        let domains = domains.map(|domain| (domain.name, domain.kind)).collect();
        (domains, search.rejected.iter().map(Rejected::to_string).collect())
    }

    #[test]
    fn a_card_that_counts_energy_and_one_that_tells_power() {
        let (domains, rejected) = found(
            "sys/class/hwmon/hwmon0/name: xe\nsys/class/hwmon/hwmon0/energy{1-2}_input: 55\n\
             sys/class/hwmon/hwmon0/energy{1-2}_label: {card,pkg}\nsys/class/hwmon/hwmon0/power1_input: 9\n\
             sys/class/hwmon/hwmon0/power1_label: card\nsys/class/hwmon/hwmon0/device/drm/card1/dev: 1\n\
             sys/class/hwmon/hwmon1/name: amdgpu\nsys/class/hwmon/hwmon1/power1_average: 20000000\n\
             sys/class/hwmon/hwmon1/device/drm/card0/dev: 1\nsys/class/hwmon/hwmon2/name: nvme",
        );
        assert_eq!(
            domains,
            [("gpu-card1".to_owned(), DomainKind::Gpu), ("gpu-card0".to_owned(), DomainKind::Gpu)]
        );
        assert!(rejected.is_empty(), "{rejected:?}");
    }

    #[test]
    fn a_board_by_its_rails() {
        let manifest = "sys/class/hwmon/hwmon4/name: ina3221\n\
             sys/class/hwmon/hwmon4/in{1-3}_label: {VDD_IN,VDD_CPU_GPU_CV,VDD_SOC}\n\
             sys/class/hwmon/hwmon4/in{1-3}_input: 5000\nsys/class/hwmon/hwmon4/curr{1-3}_input: {1000,400,300}\n";
        let (domains, _) = found(manifest);
        let kinds: Vec<DomainKind> = domains.iter().map(|(_, kind)| *kind).collect();
        assert_eq!(kinds, [DomainKind::Platform, DomainKind::Cores, DomainKind::Uncore]);

        let files = FixtureMachine::new(manifest);
        let mut search = find_under(find, &Roots::under(files.path()), &MachineInfo::default());
        let mut meter = search.found.remove(0).open(&mut Vec::new()).expect("open");
        let mut readings = Vec::new();
        meter.read(&mut readings).expect("readable");
        std::thread::sleep(std::time::Duration::from_millis(1));
        meter.read(&mut readings).expect("readable");
        let joules: Vec<f64> =
            readings.iter().map(|reading| reading.expect("read").energy.as_joules()).collect();
        assert!((joules[0] / joules[1] - 2.5).abs() < 1e-6, "5 W and 2 W: {joules:?}");
    }

    #[test]
    fn gauges_tell_microwatts() {
        let files = FixtureMachine::new("power: 12500000\nvolts: 5000\namps: 400");
        let file = |name: &str| NumberFile::open(&files.path().join(name)).expect("open");
        let mut gauges =
            Gauges(vec![Gauge::Microwatts(file("power")), Gauge::Product(file("volts"), file("amps"))]);
        let mut watts = Vec::new();
        gauges.read(&mut watts).expect("readable");
        assert_eq!(watts, [Some(Watts::from_watts(12.5)), Some(Watts::from_watts(2.0))]);
    }

    #[test]
    fn what_nobody_knows_is_said_and_not_used() {
        let (domains, rejected) =
            found("sys/class/hwmon/hwmon0/name: ina226\nsys/class/hwmon/hwmon0/power1_input: 1000000");
        assert!(domains.is_empty());
        assert_eq!(rejected.len(), 1);
        assert!(rejected[0].contains("ina226") && rejected[0].contains("not known"), "{rejected:?}");
    }

    #[test]
    fn an_energy_counter_counts_microjoules() {
        let files = FixtureMachine::new(
            "sys/class/hwmon/hwmon0/name: scmi_sensors\nsys/class/hwmon/hwmon0/energy1_input: 1000000\n\
             sys/class/hwmon/hwmon0/energy1_label: soc_energy",
        );
        let mut search = find_under(find, &Roots::under(files.path()), &MachineInfo::default());
        let mut meter = search.found.remove(0).open(&mut Vec::new()).expect("open");
        let mut readings = Vec::new();
        meter.read(&mut readings).expect("readable");
        files.write("sys/class/hwmon/hwmon0/energy1_input", "3500000\n");
        meter.read(&mut readings).expect("readable");
        assert_eq!(readings[0].expect("read").energy, Joules::from_joules(2.5));
    }
    fn opened(manifest: &str) -> (FixtureMachine, Vec<Box<dyn Candidate>>, Vec<String>) {
        let files = FixtureMachine::new(manifest);
        let search = find_under(find, &Roots::under(files.path()), &MachineInfo::default());
        let mut rejected = Vec::new();
        let found: Vec<_> = search.found.into_iter().filter_map(|found| found.open(&mut rejected)).collect();
        (files, found, rejected.iter().map(Rejected::to_string).collect())
    }

    const THREE: &str = "sys/class/hwmon/hwmon0/name: scmi_sensors\n\
         sys/class/hwmon/hwmon0/energy{1-3}_input: {1000000,2000000,3000000}\n\
         sys/class/hwmon/hwmon0/energy{1-3}_label: {soc,dram,board}\n";

    #[test]
    fn a_counter_that_is_not_kept_is_not_read() {
        let (files, mut found, rejected) = opened(THREE);
        assert!(found.len() == 1 && rejected.is_empty());
        assert!(found[0].counts_since_boot() && found[0].source() == Source::Hwmon);
        let mut readings = Vec::new();
        let mut raw = |found: &mut Box<dyn Candidate>| {
            found.read(&mut readings).expect("readable");
            readings.iter().map(|reading| reading.map(|reading| reading.raw)).collect::<Vec<_>>()
        };
        assert_eq!(raw(&mut found[0]), [Some(1_000_000), Some(2_000_000), Some(3_000_000)]);
        found[0].retain(&mut |domain| domain.kind != DomainKind::Dram);
        assert_eq!(raw(&mut found[0]), [Some(1_000_000), Some(3_000_000)]);
        found[0].retain(&mut |domain| domain.kind == DomainKind::Platform);
        assert_eq!(raw(&mut found[0]), [Some(3_000_000)]);
        files.write("sys/class/hwmon/hwmon0/energy3_input", "what\n");
        assert_eq!(raw(&mut found[0]), [None]);
        let mut counters = Counters(Vec::new());
        counters.remove(0);
        let mut gauges = Gauges(Vec::new());
        PowerReader::remove(&mut gauges, 0);
    }

    #[test]
    fn a_counter_without_a_number_is_refused_by_name() {
        let (_, found, rejected) = opened(&THREE.replace("2000000", "none"));
        assert_eq!(
            found[0].domains().iter().map(|domain| domain.kind).collect::<Vec<_>>(),
            [DomainKind::Package, DomainKind::Platform]
        );
        assert!(rejected.len() == 1 && rejected[0].contains("dram-0: cannot be read"), "{rejected:?}");
        let (_, found, rejected) = opened(&THREE.replace("{1000000,2000000,3000000}", "none"));
        assert_eq!((found.len(), rejected.len()), (0, 3));
    }

    #[test]
    fn gauges_are_read_no_more_often_than_they_measure() {
        let (files, mut found, _) = opened(
            "sys/class/hwmon/hwmon4/name: ina3221\n\
             sys/class/hwmon/hwmon4/in{1-3}_label: {VDD_IN,VDD_CPU_GPU_CV,VDD_SOC}\n\
             sys/class/hwmon/hwmon4/in{1-3}_input: 5000\nsys/class/hwmon/hwmon4/curr{1-3}_input: {1000,400,300}\n",
        );
        files.write("sys/class/hwmon/hwmon4/curr2_input", "-400\n");
        let pace = found[0].pace();
        assert_eq!(
            (pace.shortest, pace.longest),
            (Nanoseconds::from_millis(20), Nanoseconds::from_millis(1000))
        );
        let mut readings = Vec::new();
        found[0].read(&mut readings).expect("readable");
        assert_eq!(
            readings.iter().map(Option::is_some).collect::<Vec<_>>(),
            [true, false, true],
            "none takes less than nothing"
        );
        found[0].retain(&mut |domain| domain.kind != DomainKind::Platform);
        found[0].read(&mut readings).expect("readable");
        assert_eq!(readings.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
        // What is no product of two numbers of 64 bits is no power.
        files.write("sys/class/hwmon/hwmon4/curr3_input", &format!("{}\n", i64::MAX));
        found[0].read(&mut readings).expect("readable");
        assert_eq!(readings, [None, None]);
        assert!(!found[0].counts_since_boot());
    }

    #[test]
    fn means_are_taken_before_instants() {
        let meanings = |manifest: &str| {
            let files = FixtureMachine::new(manifest);
            let of = |sensor: Sensor| match sensor.quantity {
                Quantity::Power(files) => Some(files.meaning()),
                Quantity::Energy(_) => None,
            };
            sensors(files.path(), "ina3221").into_iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(
            meanings("power1_average: 1\npower1_input: 1\npower2_input: 1"),
            [Some(Meaning::Average), Some(Meaning::Instant)]
        );
        // Only a rail that has a label is known, and needs both files.
        assert_eq!(meanings("in1_input: 1\ncurr1_input: 1"), []);
        assert_eq!(meanings("in1_label: x\ncurr1_input: 1"), []);
        assert_eq!(
            meanings("in1_label: x\nin1_input: 1\ncurr1_input: 1\nenergy2_input: 1"),
            [None, Some(Meaning::Instant)]
        );
    }
}
