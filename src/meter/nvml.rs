//! NVIDIA GPUs through NVML, loaded at run time: the energy counter where the card has one (Volta and
//! later), integrated power otherwise. See `kernel-notes/nvml.md`.

mod driver;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::GpuVirtualizationMode;

use self::driver::{GpuSource, read_raw};
use super::finding::{Candidate, Finding, Needs, Search, Site};
use super::rejected::Rejected;
use super::source::Source;
use super::watch::Observation;
use super::{CounterReading, EnergyMeter, Pace};
use crate::gpu::live::PowerIntegrator;
use crate::gpu::refresh::infer_period;
use crate::gpu::trace::{PowerReading, PowerTrace};
use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

pub(crate) use driver::{open, read_counter, read_power};

const NO_GPU: &str = "the driver knows no GPU; `nvidia-smi -L` lists those that it knows, and a container must be \
     given them (docker run --gpus all)";
/// GPU sensors refresh every 15 to 100 ms: a few refreshes must be seen.
const WATCH: Duration = Duration::from_millis(600);

/// One GPU that is read.
struct Gpu {
    index: u32,
    source: GpuSource,
    first_millijoules: u64,
    last_millijoules: u64,
    /// Energy before the counter last started anew.
    before: Joules,
    power: PowerIntegrator,
    refresh: Option<Nanoseconds>,
}

/// All GPUs of the machine that tell power or energy.
pub struct NvmlMeter {
    nvml: Nvml,
    gpus: Vec<Gpu>,
    domains: Vec<DomainInfo>,
    started: Instant,
}

/// What was found.
#[derive(Default)]
pub struct NvmlSearch {
    /// The meter, if any GPU tells power or energy.
    pub meter: Option<NvmlMeter>,
    /// GPUs and interfaces that cannot be used, and why.
    pub rejected: Vec<Rejected>,
    /// What a reader must know of the GPUs that are read.
    pub warnings: Vec<String>,
}

/// NVIDIA's GPUs: no kernel interface tells their energy, so nothing else is replaced. On a copied machine there is
/// no driver to ask.
pub(super) fn find(site: &Site<'_>) -> Search {
    let library = site.options.nvml_library.as_deref();
    if library.is_none() && !site.roots.are_live() {
        return Search::default();
    }
    let NvmlSearch { meter, rejected, warnings } = search(library, WATCH);
    let found = meter.into_iter().map(|meter| Box::new(meter) as Box<dyn Finding>).collect();
    Search { found, rejected, warnings }
}

impl Finding for NvmlMeter {
    fn source(&self) -> Source {
        Source::Nvml
    }

    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn needs(&self) -> Needs {
        Needs::IsOpen
    }

    fn open(self: Box<Self>, _rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>> {
        Some(self)
    }
}

impl Candidate for NvmlMeter {
    fn source(&self) -> Source {
        Source::Nvml
    }

    fn retain(&mut self, keep: &mut dyn FnMut(&DomainInfo) -> bool) {
        let kept: Vec<bool> = self.domains.iter().map(&mut *keep).collect();
        let mut of_domains = kept.iter();
        self.domains.retain(|_| of_domains.next().copied().unwrap_or(true));
        let mut of_gpus = kept.iter();
        self.gpus.retain(|_| of_gpus.next().copied().unwrap_or(true));
    }

    fn domains_mut(&mut self) -> &mut [DomainInfo] {
        &mut self.domains
    }

    /// Each GPU was watched when it was looked at, for as long as its slow sensor needs.
    fn is_proven(&self) -> bool {
        true
    }

    fn learn(&mut self, _domain: usize, _seen: &Observation) {}

    fn counts_since_boot(&self) -> bool {
        false
    }
}

/// Loads NVML and looks at every GPU, for `watch` each to see how often its sensor refreshes.
///
/// `library`: another file than the driver's `libnvidia-ml.so.1`. A machine without the library gives
/// one rejected entry and no error.
pub fn search(library: Option<&Path>, watch: Duration) -> NvmlSearch {
    let mut found = NvmlSearch::default();
    let nvml = match open(library) {
        Ok(nvml) => nvml,
        Err(why) => {
            found.rejected.push(Rejected::new(Source::Nvml, why));
            return found;
        }
    };
    let count = match nvml.device_count() {
        Ok(count) => count,
        Err(error) => {
            found.rejected.push(Rejected::new(Source::Nvml, format!("cannot count the GPUs: {error}")));
            return found;
        }
    };
    let started = Instant::now();
    let mut gpus = Vec::new();
    let mut domains = Vec::new();
    for index in 0..count {
        match look_at(&nvml, index, watch, &mut found) {
            Ok((gpu, domain)) => {
                gpus.push(gpu);
                domains.push(domain);
            }
            Err(why) => found.rejected.push(Rejected::new(Source::Nvml, why).of(format!("gpu-{index}"))),
        }
    }
    if count == 0 {
        found.rejected.push(Rejected::new(Source::Nvml, NO_GPU));
    }
    if !gpus.is_empty() {
        found.meter = Some(NvmlMeter { nvml, gpus, domains, started });
    }
    found
}

fn look_at(
    nvml: &Nvml,
    index: u32,
    watch: Duration,
    found: &mut NvmlSearch,
) -> Result<(Gpu, DomainInfo), String> {
    let device = nvml.device_by_index(index).map_err(|error| format!("cannot be opened: {error}"))?;
    let name = device.name().unwrap_or_else(|_| "GPU".to_owned());
    let domain_name = format!("gpu-{index}");
    if device.mig_mode().is_ok_and(|mode| mode.current == 1) {
        found.warnings.push(format!(
            "{domain_name} ({name}) is divided by MIG: its energy is that of the whole card, shared by all instances"
        ));
    }
    match device.virtualization_mode() {
        Ok(GpuVirtualizationMode::Vgpu) => {
            return Err(format!(
                "{name} is a virtual GPU; the host does not tell a guest the energy of its share"
            ));
        }
        Ok(GpuVirtualizationMode::HostVgpu | GpuVirtualizationMode::HostVsga) => {
            found.warnings.push(format!(
                "{domain_name} ({name}) is shared with virtual machines: its energy is that of the whole card"
            ))
        }
        _ => {}
    }
    found.warnings.extend(others_at_work(&device, &format!("{domain_name} ({name})")));
    let mut reasons = Vec::new();
    let source = GpuSource::BEST_FIRST.into_iter().find(|source| match read_raw(nvml, index, *source) {
        Ok(_) => true,
        Err(why) => {
            reasons.push(format!("{}: {why}", source.name()));
            false
        }
    });
    let Some(source) = source else {
        return Err(format!("{name} tells neither energy nor power ({})", reasons.join("; ")));
    };
    let refresh = watch_refresh(nvml, index, source, watch);
    let first = if source == GpuSource::EnergyCounter { read_raw(nvml, index, source)? } else { 0 };
    if source == GpuSource::AveragePower {
        found.warnings.push(format!("{domain_name} ({name}) only tells power averaged over a second"));
    }
    let gpu = Gpu {
        index,
        source,
        first_millijoules: first,
        last_millijoules: first,
        before: Joules::ZERO,
        power: PowerIntegrator::default(),
        refresh,
    };
    let domain = DomainInfo {
        resolution: (source == GpuSource::EnergyCounter).then(|| Joules::from_millijoules(1)),
        refresh,
        bus_id: device.pci_info().ok().map(|place| place.bus_id),
        ..DomainInfo::new(
            domain_name,
            DomainKind::Gpu,
            format!("{} ({name})", source.name()),
            Method::Measured,
        )
    };
    Ok((gpu, domain))
}

/// Which processes have a context on a GPU before the recording begins. Asked once: drivers take
/// milliseconds for it and hold up everybody's launches meanwhile.
fn others_at_work(device: &nvml_wrapper::Device<'_>, gpu: &str) -> Option<String> {
    const SHOWN: usize = 4;
    // A driver that does not tell leaves it open, as does a container that hides the numbers.
    let processes = device.running_compute_processes().ok().filter(|all| !all.is_empty())?;
    let name = |pid: u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("{} {pid}", name.trim()).trim_start().to_owned()
    };
    let mut names: Vec<String> = processes.iter().take(SHOWN).map(|process| name(process.pid)).collect();
    if processes.len() > SHOWN {
        names.push("...".to_owned());
    }
    Some(format!(
        "{gpu} is used by {} other process{} already ({}): what they draw is told apart only where their launches are \
         seen (as root), and idling includes what they keep the card awake for",
        processes.len(),
        if processes.len() == 1 { "" } else { "es" },
        names.join(", ")
    ))
}

/// Polls for a moment and sees how often the value changes. Both power and counter move with the
/// sensor's refreshes.
fn watch_refresh(nvml: &Nvml, index: u32, source: GpuSource, watch: Duration) -> Option<Nanoseconds> {
    let start = Instant::now();
    let mut readings = Vec::new();
    while start.elapsed() < watch {
        if let Ok(raw) = read_raw(nvml, index, source) {
            let time = Timestamp::from_nanos(start.elapsed().as_nanos() as u64);
            readings.push(PowerReading { time, power: Watts::from_watts(raw as f64) });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    infer_period(&PowerTrace::new(readings)).filter(|period| period.resolved).map(|period| period.period)
}

impl EnergyMeter for NvmlMeter {
    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn read(&mut self, readings: &mut Vec<Option<CounterReading>>) -> io::Result<()> {
        readings.clear();
        for gpu in &mut self.gpus {
            let before = self.started.elapsed();
            let raw = read_raw(&self.nvml, gpu.index, gpu.source);
            let middle = (before + self.started.elapsed()) / 2;
            readings.push(raw.ok().map(|raw| gpu.take(Timestamp::from_nanos(middle.as_nanos() as u64), raw)));
        }
        Ok(())
    }

    /// Half a refresh, so that none is missed; the driver serialises queries, so not faster.
    fn pace(&self) -> Pace {
        const UNKNOWN: Nanoseconds = Nanoseconds::from_millis(20);
        let fastest = self.gpus.iter().map(|gpu| gpu.refresh.unwrap_or(UNKNOWN).as_nanos() / 2).min();
        let shortest = fastest.unwrap_or(UNKNOWN.as_nanos()).clamp(5_000_000, 100_000_000);
        let integrates = self.gpus.iter().any(|gpu| gpu.source != GpuSource::EnergyCounter);
        let longest = if integrates { 2 * shortest } else { 10_000_000_000 };
        Pace { shortest: Nanoseconds::from_nanos(shortest), longest: Nanoseconds::from_nanos(longest) }
    }
}

impl Gpu {
    fn take(&mut self, time: Timestamp, raw: u64) -> CounterReading {
        let energy = match self.source {
            GpuSource::EnergyCounter => {
                // It counts from the driver's start; below its last value, the driver was loaded anew.
                if raw < self.last_millijoules {
                    self.before += Joules::from_millijoules(self.last_millijoules - self.first_millijoules);
                    self.first_millijoules = 0;
                }
                self.last_millijoules = raw;
                self.before + Joules::from_millijoules(raw - self.first_millijoules)
            }
            _ => self.power.add(time, Watts::from_milliwatts(raw)),
        };
        CounterReading { energy, raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(source: GpuSource) -> Gpu {
        Gpu {
            index: 0,
            source,
            first_millijoules: 1000,
            last_millijoules: 1000,
            before: Joules::ZERO,
            power: PowerIntegrator::default(),
            refresh: None,
        }
    }

    #[test]
    fn a_driver_that_is_loaded_anew_loses_no_energy() {
        let mut gpu = gpu(GpuSource::EnergyCounter);
        let mut energy = |raw| gpu.take(Timestamp::default(), raw).energy;
        assert_eq!(energy(5000), Joules::from_joules(4.0));
        assert_eq!(energy(2000), Joules::from_joules(6.0));
        assert_eq!(energy(2500), Joules::from_joules(6.5));
    }

    #[test]
    fn power_is_integrated_by_its_time_stamps() {
        let mut gpu = gpu(GpuSource::InstantPower);
        gpu.take(Timestamp::from_nanos(0), 100_000);
        let reading = gpu.take(Timestamp::from_nanos(500_000_000), 200_000);
        assert_eq!(reading, CounterReading { energy: Joules::from_joules(75.0), raw: 200_000 });
    }

    #[test]
    fn a_machine_without_nvml_is_told_why() {
        let found = search(Some(Path::new("/nonexistent/libnvidia-ml.so.1")), Duration::ZERO);
        assert!(found.meter.is_none());
        assert!(found.rejected[0].to_string().contains("driver"), "{}", found.rejected[0]);
    }
}
