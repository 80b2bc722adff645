//! GPUs that are not there: a library with the functions of NVIDIA's management library (libnvidia-ml),
//! of its driver (libcuda) and of its profiling tools (libcupti) that eprof calls, built by the tests with rustc as a
//! cdylib. What it is and does is read from the file beside the library with `.conf` after its name,
//! lines of `name value`:
//!
//! ```text
//! gpus 2                  how many GPUs
//! trace FILE              power over time: lines of `seconds,watts`; repeated
//! idle 50                 watts without a trace or a kernel
//! speed 10                the trace runs this much faster than real time
//! refresh_ms 20           the sensor's refresh period
//! window_ms 10            the window that it averages over
//! noise 0.3               each refresh is off by up to this many watts
//! fail NAME STATUS        a function or field answers this status: energy, power, instant, average, name, processes
//! type NAME TYPE          a field answers with this value type
//! mig 1                   MIG is on
//! process PID             a process has a context on each GPU; repeated
//! virtual 1               it is a virtual GPU
//! energy NAME MICROJOULES kernels spend this on each PTX instruction NAME
//! base MICROJOULES        and this on each turn of the loop
//! nanoseconds 20          time of an instruction
//! eliminated NAME         the assembler throws this instruction away
//! shared 1                kernels of all processes that load this file draw power, by the system's clock
//! cupti_busy 1            another tool has CUPTI
//! ```
//!
//! With `--cfg no_energy` the library lacks nvmlDeviceGetTotalEnergyConsumption, with `--cfg no_fields`
//! nvmlDeviceGetFieldValues, with `--cfg no_clock` cuptiActivityRegisterTimestampCallback.

#![allow(non_snake_case, clippy::missing_safety_doc)]

mod cupti;
mod driver;

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

struct Gpu {
    settings: HashMap<String, Vec<Vec<String>>>,
    trace: Vec<(f64, f64)>,
    started: Instant,
    kernels: Mutex<Vec<Kernel>>,
    modules: Mutex<Vec<String>>,
    /// Names that kernels were asked for by, by the handle that was given.
    names: Mutex<HashMap<usize, CString>>,
}

/// A kernel that ran or runs: seconds from start to end, watts above idle, number of the GPU, handle of
/// the stream (as far as this process launched it).
#[derive(Clone, Copy)]
struct Kernel {
    start: f64,
    end: f64,
    watts: f64,
    device: usize,
    stream: usize,
}

fn gpu() -> &'static Gpu {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    GPU.get_or_init(|| {
        let text = std::fs::read_to_string(own_path() + ".conf").ok();
        let mut settings: HashMap<String, Vec<Vec<String>>> = HashMap::new();
        for line in text.unwrap_or_default().lines() {
            let mut words = line.split_whitespace().map(str::to_owned);
            if let Some(name) = words.next() {
                settings.entry(name).or_default().push(words.collect());
            }
        }
        let trace = settings.get("trace").and_then(|all| std::fs::read_to_string(&all[0][0]).ok());
        let pair = |line: &str| {
            let (time, watts) = line.split_once(',')?;
            Some((time.trim().parse().ok()?, watts.trim().parse().ok()?))
        };
        let trace = trace.unwrap_or_default().lines().filter_map(pair).collect();
        Gpu { settings, trace, started: Instant::now(), kernels: Mutex::default(), modules: Mutex::default(), names: Mutex::default() }
    })
}

#[repr(C)]
struct SymbolInfo {
    file: *const c_char,
    base: *mut c_void,
    name: *const c_char,
    address: *mut c_void,
}

#[repr(C)]
struct TimeSpec {
    seconds: i64,
    nanos: i64,
}

/// The clock that samples are stamped by.
fn system_seconds() -> f64 {
    const CLOCK_MONOTONIC: c_int = 1;
    let mut time = TimeSpec { seconds: 0, nanos: 0 };
    // SAFETY: writes one time.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut time) };
    time.seconds as f64 + time.nanos as f64 * 1e-9
}

unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int;
    fn dladdr(address: *const c_void, info: *mut SymbolInfo) -> c_int;
}

/// The file that this library was loaded from.
fn own_path() -> String {
    let nothing: *mut c_void = std::ptr::null_mut();
    let mut info = SymbolInfo { file: nothing.cast(), base: nothing, name: nothing.cast(), address: nothing };
    // SAFETY: the address of a function of this library; the answer points to the loader's own text.
    let found = unsafe { dladdr(nvmlShutdown as *const c_void, &raw mut info) };
    assert!(found != 0, "a library knows its own file");
    unsafe { CStr::from_ptr(info.file) }.to_string_lossy().into_owned()
}

impl Gpu {
    fn number(&self, name: &str, otherwise: f64) -> f64 {
        self.settings.get(name).and_then(|all| all[0].first()?.parse().ok()).unwrap_or(otherwise)
    }

    /// The number in the line `name key number`.
    fn keyed(&self, name: &str, key: &str) -> Option<f64> {
        let line = self.settings.get(name)?.iter().find(|words| words[0] == key)?;
        line.get(1).map_or(Some(1.0), |word| word.parse().ok())
    }

    fn status(&self, what: &str) -> c_int {
        self.keyed("fail", what).unwrap_or(0.0) as c_int
    }

    fn now(&self) -> f64 {
        if self.is_shared() {
            return system_seconds();
        }
        self.started.elapsed().as_secs_f64() * self.number("speed", 1.0)
    }

    fn is_shared(&self) -> bool {
        self.number("shared", 0.0) > 0.0
    }

    /// Where processes tell each other of their kernels.
    fn shared_kernels() -> String {
        own_path() + ".kernels"
    }

    fn run(&self, kernel: Kernel) {
        self.kernels.lock().unwrap().push(kernel);
        if self.is_shared() {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(Self::shared_kernels());
            let Kernel { start, end, watts, device, .. } = kernel;
            file.unwrap().write_all(format!("{start} {end} {watts} {device}\n").as_bytes()).unwrap();
        }
    }

    /// The kernels of this process, or of all, on one GPU.
    fn kernels(&self, device: usize) -> Vec<Kernel> {
        let mut kernels = self.all_kernels();
        kernels.retain(|kernel| kernel.device == device);
        kernels
    }

    fn all_kernels(&self) -> Vec<Kernel> {
        if !self.is_shared() {
            return self.kernels.lock().unwrap().clone();
        }
        let text = std::fs::read_to_string(Self::shared_kernels()).unwrap_or_default();
        let kernel = |line: &str| {
            let numbers: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            let [start, end, watts, device] = numbers[..] else { return None };
            Some(Kernel { start, end, watts, device: device as usize, stream: 0 })
        };
        text.lines().filter_map(kernel).collect()
    }

    fn watts(&self, device: usize, time: f64) -> f64 {
        let idle = match (self.trace.first(), self.trace.last()) {
            (Some(first), Some(last)) if last.0 > first.0 => {
                let time = first.0 + time.max(0.0).rem_euclid(last.0 - first.0);
                self.trace[self.trace.partition_point(|knot| knot.0 <= time).max(1) - 1].1
            }
            _ => self.number("idle", 50.0),
        };
        idle + self.kernels(device).iter().filter(|k| (k.start..k.end).contains(&time)).map(|k| k.watts).sum::<f64>()
    }

    /// Joules from the start to a time.
    fn joules(&self, device: usize, time: f64) -> f64 {
        let kernels: f64 =
            self.kernels(device).iter().map(|k| k.watts * (time.min(k.end) - k.start).max(0.0)).sum();
        if self.trace.is_empty() {
            return kernels + self.number("idle", 50.0) * time;
        }
        const STEP: f64 = 0.002;
        (0..(time / STEP) as u64).map(|i| self.watts(device, i as f64 * STEP) * STEP).sum()
    }

    /// What the sensor shows: the mean over its window before its last refresh.
    fn shown(&self, device: usize) -> f64 {
        let refresh = self.number("refresh_ms", 20.0) * 1e-3;
        let window = self.number("window_ms", 10.0) * 1e-3;
        let last = (self.now() / refresh).floor() * refresh;
        const PARTS: u32 = 16;
        let at = |i: u32| self.watts(device, last - window * (f64::from(i) + 0.5) / f64::from(PARTS));
        // Spread evenly by the refresh's number, the same each time.
        let noise = ((last / refresh).round() * 0.618_033_988_75).fract() * 2.0 - 1.0;
        (0..PARTS).map(at).sum::<f64>() / f64::from(PARTS) + noise * self.number("noise", 0.0)
    }

    fn shown_millijoules(&self, device: usize) -> u64 {
        let refresh = self.number("refresh_ms", 20.0) * 1e-3;
        (self.joules(device, (self.now() / refresh).floor() * refresh) * 1e3) as u64
    }
}

unsafe fn put(text: &str, to: *mut c_char, length: c_uint) {
    let bytes = text.as_bytes();
    let count = bytes.len().min(length as usize - 1);
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), to, count);
        *to.add(count) = 0;
    }
}

// libnvidia-ml

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_int {
    gpu().status("init")
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> c_int {
    gpu().status("init")
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_int {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_int {
    unsafe { *count = gpu().number("gpus", 1.0) as c_uint };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut *mut c_void) -> c_int {
    unsafe { *device = (index as usize + 1) as *mut c_void };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(id: *const c_char, device: *mut *mut c_void) -> c_int {
    let id = unsafe { CStr::from_ptr(id) }.to_string_lossy().into_owned();
    let Some(bus) = id.split(':').nth(1).and_then(|bus| usize::from_str_radix(bus, 16).ok()) else { return 2 };
    unsafe { *device = std::ptr::without_provenance_mut(bus) };
    0
}

/// GPUs sit on bus 1, 2, ...
fn bus_id(device: usize) -> String {
    format!("0000:{:02X}:00.0", device + 1)
}

#[repr(C)]
pub struct PciInfo {
    bus_id_legacy: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem_id: c_uint,
    bus_id: [c_char; 32],
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(device: *mut c_void, info: *mut PciInfo) -> c_int {
    unsafe {
        info.write(std::mem::zeroed());
        (*info).bus = device.addr() as c_uint;
        // NVML writes the domain with eight digits, CUDA with four.
        put(&format!("0000{}", bus_id(gpu_of(device))), (*info).bus_id.as_mut_ptr(), 32);
    }
    0
}

/// Which GPU a handle of NVML stands for.
fn gpu_of(device: *mut c_void) -> usize {
    device.addr() - 1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(_device: *mut c_void, name: *mut c_char, length: c_uint) -> c_int {
    unsafe { put("Fake GPU", name, length) };
    gpu().status("name")
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(_device: *mut c_void, now: *mut c_uint, next: *mut c_uint) -> c_int {
    let mode = gpu().number("mig", 0.0) as c_uint;
    unsafe {
        *now = mode;
        *next = mode;
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetVirtualizationMode(_device: *mut c_void, mode: *mut c_uint) -> c_int {
    // 2 is a vGPU in a guest.
    unsafe { *mode = if gpu().number("virtual", 0.0) > 0.0 { 2 } else { 0 } };
    0
}

#[repr(C)]
pub struct ProcessInfo {
    pid: c_uint,
    bytes: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// Fills as many as there is room for; too little room is status 7, and the count says how much is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    _device: *mut c_void,
    count: *mut c_uint,
    infos: *mut ProcessInfo,
) -> c_int {
    let pids: Vec<c_uint> = gpu().settings.get("process").into_iter().flatten().filter_map(|words| words[0].parse().ok()).collect();
    let room = unsafe { *count } as usize;
    unsafe { *count = pids.len() as c_uint };
    if pids.len() > room {
        return 7;
    }
    for (index, pid) in pids.into_iter().enumerate() {
        unsafe { infos.add(index).write(ProcessInfo { pid, bytes: 1 << 30, gpu_instance: !0, compute_instance: !0 }) };
    }
    gpu().status("processes")
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(device: *mut c_void, milliwatts: *mut c_uint) -> c_int {
    unsafe { *milliwatts = (gpu().shown(gpu_of(device)) * 1e3) as c_uint };
    gpu().status("power")
}

#[cfg(not(no_energy))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEnergyConsumption(device: *mut c_void, millijoules: *mut u64) -> c_int {
    unsafe { *millijoules = 7_000_000 + gpu().shown_millijoules(gpu_of(device)) };
    gpu().status("energy")
}

#[repr(C)]
pub struct FieldValue {
    field: c_uint,
    scope: c_uint,
    timestamp: i64,
    latency: i64,
    value_type: c_uint,
    status: c_int,
    value: u64,
}

#[cfg(not(no_fields))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(device: *mut c_void, count: c_int, values: *mut FieldValue) -> c_int {
    for index in 0..count as usize {
        let value = unsafe { &mut *values.add(index) };
        let name = match value.field {
            185 => "average",
            186 => "instant",
            _ => "other",
        };
        value.status = if name == "other" { 3 } else { gpu().status(name) };
        value.value_type = gpu().keyed("type", name).unwrap_or(1.0) as c_uint;
        // A failed field keeps rubbish, as real drivers do.
        value.value = if value.status == 0 { (gpu().shown(gpu_of(device)) * 1e3) as u64 } else { 4_991_201_436_214_789_335 };
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(_status: c_int) -> *const c_char {
    c"a status of the fake GPU".as_ptr()
}
