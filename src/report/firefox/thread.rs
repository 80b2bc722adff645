//! A thread as the format has it.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Number;

use super::markers::Markers;
use super::thread_samples::ThreadSamples;
use super::timeline::millis;

/// A thread: who it is, and what is known of it.
pub struct Thread {
    pub name: String,
    pub process: String,
    pub pid: String,
    /// Its machine, by its number among the profile's.
    pub machine: u32,
    /// No two threads have the same.
    pub tid: String,
    /// The first of its process.
    pub is_main: bool,
    pub spent: ThreadSamples,
    /// Units of the samples' weights per number that is written.
    pub units: u64,
    pub markers: Markers,
    /// Nanoseconds from the recording's start to its end.
    pub end: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampleTable {
    length: usize,
    stack: Vec<Option<u32>>,
    time: Vec<f64>,
    weight: Vec<Number>,
    weight_type: &'static str,
    #[serde(rename = "threadCPUDelta")]
    cpu_time: Vec<u64>,
}

impl SampleTable {
    /// With so many units of weight per number that is written.
    fn new(spent: &ThreadSamples, units: u64) -> Self {
        let samples = &spent.samples;
        let number = |weight: u64| match weight % units {
            0 => Number::from(weight / units),
            _ => {
                Number::from_f64(weight as f64 / units as f64).unwrap_or_else(|| Number::from(weight / units))
            }
        };
        Self {
            cpu_time: spent.cpu_times(),
            length: samples.len(),
            stack: samples.iter().map(|sample| sample.stack).collect(),
            time: samples.iter().map(|sample| millis(sample.time)).collect(),
            weight: samples.iter().map(|sample| number(sample.weight)).collect(),
            // The format has units of time and of memory beside; joules are no such unit.
            weight_type: "samples",
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NoNativeSymbols {
    length: usize,
    address: [u32; 0],
    function_size: [u32; 0],
    lib_index: [u32; 0],
    name: [u32; 0],
}

impl Serialize for Thread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tables = &self.spent.tables;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("processType", "default")?;
        map.serialize_entry("processName", &self.process)?;
        map.serialize_entry("processStartupTime", &0)?;
        map.serialize_entry("processShutdownTime", &millis(self.end))?;
        map.serialize_entry("registerTime", &0)?;
        map.serialize_entry("unregisterTime", &millis(self.end))?;
        map.serialize_entry("pausedRanges", &[(); 0])?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("isMainThread", &self.is_main)?;
        map.serialize_entry("pid", &self.pid)?;
        map.serialize_entry("tid", &self.tid)?;
        map.serialize_entry("samples", &SampleTable::new(&self.spent, self.units))?;
        map.serialize_entry("markers", &self.markers)?;
        map.serialize_entry("stackTable", &tables.stack_table())?;
        map.serialize_entry("frameTable", &tables.frame_table())?;
        map.serialize_entry("funcTable", &tables.func_table())?;
        map.serialize_entry("resourceTable", &tables.resource_table())?;
        let none = NoNativeSymbols { length: 0, address: [], function_size: [], lib_index: [], name: [] };
        map.serialize_entry("nativeSymbols", &none)?;
        map.serialize_entry("stringArray", tables.strings())?;
        map.end()
    }
}
