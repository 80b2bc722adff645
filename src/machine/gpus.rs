//! Graphics cards, by what the kernel's drivers show of them.

use serde::Serialize;

use super::roots::{Roots, read_trimmed, sorted_names};

/// A graphics card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// Its model, or vendor and device numbers where no driver names it.
    pub model: String,
    /// The driver bound to it.
    pub driver: String,
    /// Where it sits on the PCI bus, or the name of its platform device.
    pub address: String,
    /// How its energy can be read.
    pub energy: String,
}

/// All cards: those of NVIDIA's own driver, then those of the kernel's display drivers.
pub fn list(roots: &Roots) -> Vec<Gpu> {
    let mut gpus = nvidia(roots);
    for gpu in display_cards(roots) {
        if !gpus.iter().any(|have| have.address.eq_ignore_ascii_case(&gpu.address)) {
            gpus.push(gpu);
        }
    }
    gpus
}

/// NVIDIA's driver tells in `/proc/driver/nvidia`.
fn nvidia(roots: &Roots) -> Vec<Gpu> {
    let folder = roots.procfs.join("driver/nvidia");
    let version = read_trimmed(&folder.join("version")).unwrap_or_default();
    // NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 ...
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    let release =
        version.lines().next().and_then(|line| line.split_whitespace().find(is_number)).unwrap_or("");
    let cards = folder.join("gpus");
    let of_one = |address: String| {
        let text = read_trimmed(&cards.join(&address).join("information")).unwrap_or_default();
        let model =
            text.lines().find_map(|line| line.strip_prefix("Model:")).unwrap_or("NVIDIA graphics card");
        let has_node = roots.dev.join("nvidiactl").exists();
        let energy =
            if has_node { "NVML" } else { "none: /dev/nvidiactl is missing (in a container: --gpus all)" };
        Gpu {
            model: model.trim().to_owned(),
            driver: format!("nvidia {release}").trim_end().to_owned(),
            address,
            energy: energy.to_owned(),
        }
    };
    sorted_names(&cards).into_iter().map(of_one).collect()
}

/// `/sys/class/drm/cardN`, without the connectors `cardN-HDMI-A-1`.
fn display_cards(roots: &Roots) -> Vec<Gpu> {
    let class = roots.sysfs.join("class/drm");
    let cards = sorted_names(&class);
    let is_card =
        |name: &&String| name.strip_prefix("card").is_some_and(|number| number.parse::<u32>().is_ok());
    cards.iter().filter(is_card).filter_map(|card| display_card(&class.join(card).join("device"))).collect()
}

fn display_card(device: &std::path::Path) -> Option<Gpu> {
    let uevent = read_trimmed(&device.join("uevent")).ok()?;
    let field = |name: &str| uevent.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let driver = field("DRIVER").unwrap_or("no driver");
    let hwmon = device.join("hwmon");
    let tells_power = sorted_names(&hwmon).iter().any(|sensor| {
        let files = sorted_names(&hwmon.join(sensor));
        files
            .iter()
            .any(|file| file.starts_with("energy") || file == "power1_average" || file == "power1_input")
    });
    let energy = match driver {
        _ if tells_power => "hwmon",
        "nvidia" => "NVML",
        "i915" | "xe" => "none of its own: an integrated part is within the package (domain uncore)",
        _ => "none",
    };
    let address = field("PCI_SLOT_NAME").or(field("OF_NAME")).unwrap_or("platform");
    Some(Gpu {
        model: field("PCI_ID").map_or_else(|| driver.to_owned(), |id| format!("PCI {id}")),
        driver: driver.to_owned(),
        address: address.to_owned(),
        energy: energy.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;

    #[test]
    fn one_card_seen_by_two_drivers_is_one_card() {
        let machine = FixtureMachine::new(
            "proc/driver/nvidia/version: NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22\n\
             proc/driver/nvidia/gpus/0000:01:00.0/information: Model: \t\t NVIDIA A100-SXM4-40GB\n\
             dev/nvidiactl:\n\
             sys/class/drm/card{0-1}/device/uevent <<end\n\
             end\n",
        );
        machine.write("sys/class/drm/card0/device/uevent", "DRIVER=nvidia\nPCI_SLOT_NAME=0000:01:00.0\n");
        machine.write(
            "sys/class/drm/card1/device/uevent",
            "DRIVER=amdgpu\nPCI_ID=1002:73BF\nPCI_SLOT_NAME=0000:0a:00.0\n",
        );
        machine.write("sys/class/drm/card1/device/hwmon/hwmon4/power1_average", "5\n");
        machine.write("sys/class/drm/card1-DP-1/status", "connected\n");
        let gpus = list(&Roots::under(machine.path()));
        let told: Vec<(&str, &str, &str)> =
            gpus.iter().map(|gpu| (gpu.model.as_str(), gpu.driver.as_str(), gpu.energy.as_str())).collect();
        assert_eq!(
            told,
            [("NVIDIA A100-SXM4-40GB", "nvidia 550.54.14", "NVML"), ("PCI 1002:73BF", "amdgpu", "hwmon")]
        );
    }
}
