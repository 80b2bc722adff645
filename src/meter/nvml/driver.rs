//! NVIDIA's management library itself: how it is loaded, and how one value is read.

use std::ffi::OsStr;
use std::path::Path;

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::InitFlags;
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id;

use crate::process::privileges;

const LIBRARY: &str = "libnvidia-ml.so.1";
/// No card draws this much; a larger figure is a value that nobody set.
const IMPLAUSIBLE_MILLIWATTS: u64 = 100_000_000;

/// How one GPU tells its energy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuSource {
    /// Millijoules since the driver was loaded.
    EnergyCounter,
    /// Power over the sensor's own short window.
    InstantPower,
    /// Power averaged over a second.
    AveragePower,
    /// Power, of a window that depends on card and driver.
    Power,
}

impl GpuSource {
    pub const BEST_FIRST: [Self; 4] =
        [Self::EnergyCounter, Self::InstantPower, Self::Power, Self::AveragePower];

    /// As recordings name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::EnergyCounter => "NVML energy counter",
            Self::InstantPower => "NVML instant power",
            Self::AveragePower => "NVML average power",
            Self::Power => "NVML power",
        }
    }
}

/// Loads and starts NVML; the error says why not and what helps.
pub(crate) fn open(library: Option<&Path>) -> Result<Nvml, String> {
    if let Some(named) = library {
        privileges::check_named_library(named).map_err(|error| error.to_string())?;
    }
    let path = library.map_or(OsStr::new(LIBRARY), Path::as_os_str);
    // Without GPUs attached the driver may still be there; that is no error.
    let with_flags = Nvml::builder().lib_path(path).flags(InitFlags::NO_GPUS).init();
    let nvml = match with_flags {
        Err(NvmlError::FailedToLoadSymbol(_)) => Nvml::builder().lib_path(path).init(),
        other => other,
    };
    nvml.map_err(|error| match error {
        NvmlError::LibloadingError(error) => {
            format!("{} cannot be loaded ({error}); it comes with NVIDIA's driver (--nvml-lib names another file)", path.display())
        }
        NvmlError::DriverNotLoaded => {
            "the NVIDIA kernel module is not loaded; load it with `modprobe nvidia`".to_owned()
        }
        NvmlError::NoPermission => {
            "no permission to talk to the driver; allow this user to open /dev/nvidiactl and /dev/nvidia*"
                .to_owned()
        }
        other => format!("NVML does not start: {other}"),
    })
}

/// The best power reading of a device, in milliwatts.
pub(crate) fn read_power(device: &nvml_wrapper::Device<'_>) -> Result<u64, String> {
    field(device, field_id::NVML_FI_DEV_POWER_INSTANT)
        .or_else(|_| device.power_usage().map(u64::from).map_err(|error| error.to_string()))
        .or_else(|_| field(device, field_id::NVML_FI_DEV_POWER_AVERAGE))
}

/// The energy counter of a device, in millijoules.
pub(crate) fn read_counter(device: &nvml_wrapper::Device<'_>) -> Result<u64, String> {
    device.total_energy_consumption().map_err(|error| error.to_string())
}

/// One value in millijoules or milliwatts, with its status and type checked.
pub(super) fn read_raw(nvml: &Nvml, index: u32, source: GpuSource) -> Result<u64, String> {
    let device = nvml.device_by_index(index).map_err(|error| error.to_string())?;
    let milliwatts = match source {
        GpuSource::EnergyCounter => {
            return device.total_energy_consumption().map_err(|error| error.to_string());
        }
        GpuSource::Power => u64::from(device.power_usage().map_err(|error| error.to_string())?),
        GpuSource::InstantPower => field(&device, field_id::NVML_FI_DEV_POWER_INSTANT)?,
        GpuSource::AveragePower => field(&device, field_id::NVML_FI_DEV_POWER_AVERAGE)?,
    };
    if milliwatts > IMPLAUSIBLE_MILLIWATTS {
        return Err(format!("{milliwatts} mW is no power of a GPU"));
    }
    Ok(milliwatts)
}

/// A field of the GPU itself (scope 0; a Grace-Hopper module's scope would count the CPU too).
///
/// The call can succeed while the field in it failed or is of another type: all three are checked.
fn field(device: &nvml_wrapper::Device<'_>, id: u32) -> Result<u64, String> {
    let answers = device.field_values_for(&[FieldId(id)]).map_err(|error| error.to_string())?;
    let answer = answers.into_iter().next().ok_or("no answer")?;
    let value = answer.and_then(|sample| sample.value).map_err(|error| error.to_string())?;
    match value {
        SampleValue::F64(value) => Ok(value.max(0.0) as u64),
        SampleValue::U32(value) => Ok(u64::from(value)),
        SampleValue::U64(value) => Ok(value),
        SampleValue::I64(value) => u64::try_from(value).map_err(|_| format!("{value} mW is below zero")),
    }
}
