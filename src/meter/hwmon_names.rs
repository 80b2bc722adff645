//! What part of a machine a sensor counts, by its driver's name and its label.
//!
//! Names come from the kernel's `Documentation/hwmon/` and drivers, NVIDIA's Grace and Jetson manuals,
//! and the labels of boards' device trees.

use std::path::Path;

use super::domain::Place;
use crate::hardware::DomainKind;
use crate::machine::roots::{read_number, read_trimmed, sorted_names};

/// What a sensor counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Meant {
    /// A name of its own, where kind and place do not give one.
    pub name: Option<String>,
    pub kind: DomainKind,
    pub place: Place,
}

impl Meant {
    fn new(kind: DomainKind, place: Place) -> Option<Self> {
        Some(Self { name: None, kind, place })
    }

    fn called(name: impl Into<String>, kind: DomainKind, place: Place) -> Option<Self> {
        Some(Self { name: Some(name.into()), kind, place })
    }
}

/// What the sensor with this label of this driver counts; `None` if that is not known.
pub(super) fn understand(driver: &str, label: &str, folder: &Path) -> Option<Meant> {
    match driver {
        // An APU's sensor tells the whole package, cores included.
        "amdgpu" if has_north_bridge(folder) => Meant::new(DomainKind::Package, Place::package(0)),
        "amdgpu" | "nouveau" => graphics_card(folder),
        "i915" | "xe" if label.is_empty() || label == "card" => graphics_card(folder),
        // The card's chip, within the card.
        "i915" | "xe" if label == "pkg" => graphics_card(folder),
        "ina3221" => jetson_rail(label),
        "power_meter" => acpi_meter(folder),
        "scmi_sensors" => firmware_sensor(label),
        "macsmc_hwmon" if label == "Total System Power" => platform("platform"),
        "amd_energy" => {
            socket_number(label, "Esocket").and_then(|n| Meant::new(DomainKind::Package, Place::package(n)))
        }
        "fam15h_power" => Meant::new(DomainKind::Package, Place::package(0)),
        "xgene_hwmon" | "apm_xgene" if label == "CPU power" => {
            Meant::new(DomainKind::Package, Place::package(0))
        }
        "corsairpsu" if label == "power total" => platform("power-supply"),
        "ibmpowernv" if label == "System" => platform("platform"),
        _ => None,
    }
}

fn platform(name: &str) -> Option<Meant> {
    Meant::called(name, DomainKind::Platform, Place::MACHINE)
}

fn graphics_card(folder: &Path) -> Option<Meant> {
    let name = card_number(folder).map_or("gpu".to_owned(), |card| format!("gpu-card{card}"));
    Meant::called(name, DomainKind::Gpu, Place::MACHINE)
}

/// NVIDIA Jetson: the rails that the board's INA3221 monitors watch ("Jetson Linux Developer Guide",
/// power monitors), and the names of older boards.
fn jetson_rail(label: &str) -> Option<Meant> {
    let kind = match label {
        "VDD_IN" | "POM_5V_IN" => DomainKind::Platform,
        // The rail of the CPUs feeds other engines, too; the smallest that has the CPUs in it.
        "VDD_CPU_GPU_CV" | "VDD_CPU_CV" | "VDD_CPU" | "CPU" | "POM_5V_CPU" | "VDD_SYS_CPU" => {
            DomainKind::Cores
        }
        "VDD_GPU_SOC" | "VDD_GPU" | "GPU" | "POM_5V_GPU" | "VDD_SYS_GPU" => DomainKind::Uncore,
        "VDD_SOC" | "SOC" | "VDD_SYS_SOC" | "CV" => DomainKind::Uncore,
        "VDDRQ" | "VDDQ_VDD2_1V8AO" | "VDD_DDR" | "VDD_SYS_DDR" => DomainKind::Dram,
        _ => return None,
    };
    let place = if kind == DomainKind::Platform { Place::MACHINE } else { Place::package(0) };
    Meant::called(label.to_lowercase().replace('_', "-"), kind, place)
}

/// ACPI power meters tell in `power1_oem_info` what they meter. On NVIDIA Grace there are four per
/// socket ("Grace Performance Tuning Guide", power and thermals); elsewhere it is the machine's supply.
fn acpi_meter(folder: &Path) -> Option<Meant> {
    let meter = ["device/power1_oem_info", "power1_oem_info"];
    let told = meter.iter().find_map(|file| read_trimmed(&folder.join(file)).ok()).unwrap_or_default();
    let Some((what, socket)) = told.rsplit_once(" Socket ") else {
        return told.is_empty().then(|| platform("platform")).flatten();
    };
    let socket: u32 = socket.trim().parse().ok()?;
    match what {
        "Module Power" => {
            Meant::called(format!("module-{socket}"), DomainKind::Platform, Place::package(socket))
        }
        "Grace Power" => Meant::new(DomainKind::Package, Place::package(socket)),
        "CPU Power" => Meant::new(DomainKind::Cores, Place::package(socket)),
        "SysIO Power" => Meant::new(DomainKind::Uncore, Place::package(socket)),
        _ => None,
    }
}

/// SCMI: firmware names its sensors freely; these words are clear.
fn firmware_sensor(label: &str) -> Option<Meant> {
    let label = label.to_lowercase();
    let words: Vec<&str> = label.split(|c: char| !c.is_alphanumeric()).collect();
    let has = |word: &str| words.contains(&word);
    let package =
        words.iter().find_map(|word| word.strip_prefix("socket").or(word.strip_prefix("pkg"))?.parse().ok());
    let place = Place::package(package.unwrap_or(0));
    if has("dram") || has("ddr") || has("dimm") {
        Meant::new(DomainKind::Dram, place)
    } else if has("cores") || has("cpus") || has("cpu") {
        Meant::new(DomainKind::Cores, place)
    } else if has("soc") || has("pkg") || has("package") || has("socket") || package.is_some() {
        Meant::new(DomainKind::Package, place)
    } else if has("board") || has("platform") || has("system") {
        platform("platform")
    } else {
        None
    }
}

/// The number of a graphics card whose device this is: `device/drm/card1`.
fn card_number(folder: &Path) -> Option<u32> {
    let cards = sorted_names(&folder.join("device/drm"));
    cards.iter().find_map(|card| card.strip_prefix("card")?.parse().ok())
}

/// Whether an amdgpu device is an APU's: only those have a voltage of the north bridge.
fn has_north_bridge(folder: &Path) -> bool {
    read_trimmed(&folder.join("in1_label")).is_ok_and(|label| label == "vddnb")
        || read_number::<u64>(&folder.join("in1_input")).is_ok()
}

fn socket_number(label: &str, prefix: &str) -> Option<u32> {
    label.strip_prefix(prefix)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;

    fn meant(driver: &str, label: &str) -> Option<(DomainKind, Option<u32>)> {
        understand(driver, label, Path::new("/nowhere")).map(|meant| (meant.kind, meant.place.package))
    }

    /// Every driver with a label that it has and one that it has not.
    #[test]
    fn what_is_known_of_drivers() {
        let package = Some((DomainKind::Package, Some(0)));
        for (driver, label, expected) in [
            ("i915", "", Some((DomainKind::Gpu, None))),
            ("xe", "card", Some((DomainKind::Gpu, None))),
            ("xe", "pkg", Some((DomainKind::Gpu, None))),
            ("i915", "gt0", None),
            ("nouveau", "anything", Some((DomainKind::Gpu, None))),
            ("amdgpu", "PPT", Some((DomainKind::Gpu, None))),
            ("fam15h_power", "", package),
            ("xgene_hwmon", "CPU power", package),
            ("apm_xgene", "CPU power", package),
            ("apm_xgene", "IO power", None),
            ("corsairpsu", "power total", Some((DomainKind::Platform, None))),
            ("corsairpsu", "power +12v", None),
            ("ibmpowernv", "System", Some((DomainKind::Platform, None))),
            ("ibmpowernv", "Chip 0 Vdd", None),
            ("scmi_sensors", "DDR power", Some((DomainKind::Dram, Some(0)))),
            ("scmi_sensors", "pkg2 dimm", Some((DomainKind::Dram, Some(2)))),
            ("scmi_sensors", "dram", Some((DomainKind::Dram, Some(0)))),
            ("scmi_sensors", "cores", Some((DomainKind::Cores, Some(0)))),
            ("scmi_sensors", "all cpus", Some((DomainKind::Cores, Some(0)))),
            ("scmi_sensors", "package", package),
            ("scmi_sensors", "pkg", package),
            ("scmi_sensors", "socket", package),
            ("scmi_sensors", "board", Some((DomainKind::Platform, None))),
            ("scmi_sensors", "the system", Some((DomainKind::Platform, None))),
            ("scmi_sensors", "platform", Some((DomainKind::Platform, None))),
        ] {
            assert_eq!(meant(driver, label), expected, "{driver} {label}");
        }
    }

    #[test]
    fn rails_of_jetsons() {
        for (rail, kind, package) in [
            ("VDD_IN", DomainKind::Platform, None),
            ("POM_5V_IN", DomainKind::Platform, None),
            ("VDD_CPU_GPU_CV", DomainKind::Cores, Some(0)),
            ("POM_5V_CPU", DomainKind::Cores, Some(0)),
            ("VDD_GPU_SOC", DomainKind::Uncore, Some(0)),
            ("CV", DomainKind::Uncore, Some(0)),
            ("VDDRQ", DomainKind::Dram, Some(0)),
        ] {
            assert_eq!(meant("ina3221", rail), Some((kind, package)), "{rail}");
            let name = understand("ina3221", rail, Path::new("/nowhere")).expect("known").name;
            assert_eq!(name, Some(rail.to_lowercase().replace('_', "-")));
        }
    }

    #[test]
    fn cards_are_named_by_their_number_and_processors_with_graphics_are_packages() {
        let machine = FixtureMachine::new(
            "hwmon/device/drm/card3/dev: 226:3\nhwmon/device/drm/renderD128/dev: 226:128",
        );
        let of = |machine: &FixtureMachine| {
            understand("amdgpu", "", &machine.path().join("hwmon")).expect("known")
        };
        assert_eq!(of(&machine).name.as_deref(), Some("gpu-card3"));
        for file in ["hwmon/in1_label: vddnb", "hwmon/in1_input: 900"] {
            let meant = of(&FixtureMachine::new(file));
            assert_eq!((meant.kind, meant.name), (DomainKind::Package, None), "{file}");
        }
        let meant = of(&FixtureMachine::new("hwmon/in1_label: vddgfx"));
        assert_eq!((meant.kind, meant.name.as_deref()), (DomainKind::Gpu, Some("gpu")));
    }

    #[test]
    fn every_meter_of_a_grace() {
        for (told, kind, name) in [
            ("Module Power Socket 2", DomainKind::Platform, Some("module-2")),
            ("Grace Power Socket 2", DomainKind::Package, None),
            ("CPU Power Socket 2", DomainKind::Cores, None),
            ("SysIO Power Socket 2", DomainKind::Uncore, None),
        ] {
            let machine = FixtureMachine::new(&format!("hwmon/power1_oem_info: {{{told}}}"));
            let meant = understand("power_meter", "", &machine.path().join("hwmon")).expect("known");
            assert_eq!(
                (meant.kind, meant.place, meant.name.as_deref()),
                (kind, Place::package(2), name),
                "{told}"
            );
        }
        for told in ["Fan Power Socket 2", "Grace Power Socket x", "something"] {
            let machine = FixtureMachine::new(&format!("hwmon/power1_oem_info: {{{told}}}"));
            assert_eq!(understand("power_meter", "", &machine.path().join("hwmon")), None, "{told}");
        }
    }

    #[test]
    fn known_sensors() {
        assert_eq!(meant("amd_energy", "Esocket1"), Some((DomainKind::Package, Some(1))));
        assert_eq!(meant("amd_energy", "Ecore012"), None);
        assert_eq!(meant("macsmc_hwmon", "Total System Power"), Some((DomainKind::Platform, None)));
        assert_eq!(meant("macsmc_hwmon", "Heatpipe Power"), None);
        assert_eq!(meant("scmi_sensors", "SOC energy"), Some((DomainKind::Package, Some(0))));
        assert_eq!(meant("scmi_sensors", "socket1_cpu_power"), Some((DomainKind::Cores, Some(1))));
        assert_eq!(meant("scmi_sensors", "socket1"), Some((DomainKind::Package, Some(1))));
        assert_eq!(meant("scmi_sensors", "fan"), None);
        assert_eq!(meant("ina3221", "VDD_CPU_CV"), Some((DomainKind::Cores, Some(0))));
        assert_eq!(meant("ina3221", "sum of shunt voltages"), None);
        assert_eq!(meant("coretemp", ""), None);
    }

    #[test]
    fn graces_four_meters() {
        let machine = FixtureMachine::new("hwmon/device/power1_oem_info: {Grace Power Socket 1}");
        let meant = understand("power_meter", "", &machine.path().join("hwmon")).expect("known");
        assert_eq!((meant.kind, meant.place), (DomainKind::Package, Place::package(1)));
        let machine = FixtureMachine::new("hwmon/power1_average: 1");
        let meant = understand("power_meter", "", &machine.path().join("hwmon")).expect("known");
        assert_eq!(meant.name.as_deref(), Some("platform"));
    }
}
