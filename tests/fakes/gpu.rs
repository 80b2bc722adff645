//! A GPU that is not there: a library with the functions of NVIDIA's management library
//! (libnvidia-ml) and of its driver (libcuda) that eprof calls, built by the tests with rustc as a
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
//! fail NAME STATUS        a function or field answers this status: energy, power, instant, average, name
//! type NAME TYPE          a field answers with this value type
//! mig 1                   MIG is on
//! virtual 1               it is a virtual GPU
//! energy NAME MICROJOULES kernels spend this on each PTX instruction NAME
//! base MICROJOULES        and this on each turn of the loop
//! nanoseconds 20          time of an instruction
//! eliminated NAME         the assembler throws this instruction away
//! shared 1                kernels of all processes that load this file draw power, by the system's clock
//! ```
//!
//! With `--cfg no_energy` the library lacks nvmlDeviceGetTotalEnergyConsumption, with `--cfg no_fields`
//! nvmlDeviceGetFieldValues.

#![allow(non_snake_case, clippy::missing_safety_doc)]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

struct Gpu {
    settings: HashMap<String, Vec<Vec<String>>>,
    trace: Vec<(f64, f64)>,
    started: Instant,
    kernels: Mutex<Vec<Kernel>>,
    modules: Mutex<Vec<String>>,
}

/// A kernel that ran or runs: seconds from start to end, watts above idle.
#[derive(Clone, Copy)]
struct Kernel {
    start: f64,
    end: f64,
    watts: f64,
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
        Gpu { settings, trace, started: Instant::now(), kernels: Mutex::default(), modules: Mutex::default() }
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
            let Kernel { start, end, watts } = kernel;
            file.unwrap().write_all(format!("{start} {end} {watts}\n").as_bytes()).unwrap();
        }
    }

    /// The kernels of this process, or of all.
    fn kernels(&self) -> Vec<Kernel> {
        if !self.is_shared() {
            return self.kernels.lock().unwrap().clone();
        }
        let text = std::fs::read_to_string(Self::shared_kernels()).unwrap_or_default();
        let kernel = |line: &str| {
            let numbers: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            let [start, end, watts] = numbers[..] else { return None };
            Some(Kernel { start, end, watts })
        };
        text.lines().filter_map(kernel).collect()
    }

    fn watts(&self, time: f64) -> f64 {
        let idle = match (self.trace.first(), self.trace.last()) {
            (Some(first), Some(last)) if last.0 > first.0 => {
                let time = first.0 + time.max(0.0).rem_euclid(last.0 - first.0);
                self.trace[self.trace.partition_point(|knot| knot.0 <= time).max(1) - 1].1
            }
            _ => self.number("idle", 50.0),
        };
        idle + self.kernels().iter().filter(|k| (k.start..k.end).contains(&time)).map(|k| k.watts).sum::<f64>()
    }

    /// Joules from the start to a time.
    fn joules(&self, time: f64) -> f64 {
        let kernels: f64 =
            self.kernels().iter().map(|k| k.watts * (time.min(k.end) - k.start).max(0.0)).sum();
        if self.trace.is_empty() {
            return kernels + self.number("idle", 50.0) * time;
        }
        const STEP: f64 = 0.002;
        (0..(time / STEP) as u64).map(|i| self.watts(i as f64 * STEP) * STEP).sum()
    }

    /// What the sensor shows: the mean over its window before its last refresh.
    fn shown(&self) -> f64 {
        let refresh = self.number("refresh_ms", 20.0) * 1e-3;
        let window = self.number("window_ms", 10.0) * 1e-3;
        let last = (self.now() / refresh).floor() * refresh;
        const PARTS: u32 = 16;
        let at = |i: u32| self.watts(last - window * (f64::from(i) + 0.5) / f64::from(PARTS));
        // Spread evenly by the refresh's number, the same each time.
        let noise = ((last / refresh).round() * 0.618_033_988_75).fract() * 2.0 - 1.0;
        (0..PARTS).map(at).sum::<f64>() / f64::from(PARTS) + noise * self.number("noise", 0.0)
    }

    fn shown_millijoules(&self) -> u64 {
        let refresh = self.number("refresh_ms", 20.0) * 1e-3;
        (self.joules((self.now() / refresh).floor() * refresh) * 1e3) as u64
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
pub unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(_id: *const c_char, device: *mut *mut c_void) -> c_int {
    unsafe { *device = std::ptr::without_provenance_mut(1) };
    0
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

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(_device: *mut c_void, milliwatts: *mut c_uint) -> c_int {
    unsafe { *milliwatts = (gpu().shown() * 1e3) as c_uint };
    gpu().status("power")
}

#[cfg(not(no_energy))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEnergyConsumption(_device: *mut c_void, millijoules: *mut u64) -> c_int {
    unsafe { *millijoules = 7_000_000 + gpu().shown_millijoules() };
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
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(_device: *mut c_void, count: c_int, values: *mut FieldValue) -> c_int {
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
        value.value = if value.status == 0 { (gpu().shown() * 1e3) as u64 } else { 4_991_201_436_214_789_335 };
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(_status: c_int) -> *const c_char {
    c"a status of the fake GPU".as_ptr()
}

// libcuda

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> c_int {
    gpu().status("cuInit")
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    unsafe { *version = 12040 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    unsafe { *count = gpu().number("gpus", 1.0) as c_int };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    unsafe { *device = ordinal };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, _device: c_int) -> c_int {
    unsafe { put("Fake GPU", name, length as c_uint) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, _device: c_int) -> c_int {
    unsafe { put("0000:01:00.0", id, length as c_uint) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) -> c_int {
    // Compute capability 7.0 with 80 multiprocessors.
    unsafe {
        *value = match attribute {
            75 => 7,
            76 => 0,
            16 => 80,
            _ => 0,
        }
    };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, _device: c_int) -> c_int {
    unsafe { *context = std::ptr::without_provenance_mut(64) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(_context: *mut c_void) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> c_int {
    let end = gpu().kernels.lock().unwrap().iter().map(|k| k.end).fold(0.0, f64::max);
    let left = end - gpu().now();
    if left > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(left));
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut *mut c_void,
    image: *const c_char,
    _count: c_uint,
    _options: *mut c_int,
    _values: *mut *mut c_void,
) -> c_int {
    let text = unsafe { CStr::from_ptr(image) }.to_string_lossy().into_owned();
    if !text.contains(".version") || !text.contains(".entry") {
        return 218;
    }
    let mut modules = gpu().modules.lock().unwrap();
    modules.push(text);
    unsafe { *module = std::ptr::without_provenance_mut(modules.len()) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(_module: *mut c_void) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, _name: *const c_char) -> c_int {
    unsafe { *function = module };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    unsafe { *address = Vec::<u64>::leak(vec![0; bytes / 8 + 1]).as_ptr() as u64 };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(_address: u64) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> c_int {
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.cast::<u8>(), bytes) };
    0
}

/// "Runs" a kernel: counts the instructions of the loop between `LOOP:` and its branch.
#[unsafe(no_mangle)]
#[expect(clippy::too_many_arguments, reason = "the driver's own interface")]
pub unsafe extern "C" fn cuLaunchKernel(
    function: *mut c_void,
    grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared: c_uint,
    _stream: *mut c_void,
    parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    let text = gpu().modules.lock().unwrap()[function.addr() - 1].clone();
    // Parameters: address of the results, number of turns, seed.
    let (results, turns) = unsafe { (*(*parameters).cast::<*mut u64>(), *(*parameters.add(1)).cast::<u32>()) };
    let body = text.split("LOOP:").nth(1).and_then(|rest| rest.split("@%more").next()).unwrap_or("");
    let (mut joules, mut instructions) = (gpu().number("base", 0.1) * 1e-6, 0.0);
    for line in body.lines() {
        let name = line.trim().split([' ', '\t']).next().unwrap_or("");
        if gpu().keyed("eliminated", name).is_some() {
            continue;
        }
        if let Some(microjoules) = gpu().keyed("energy", name) {
            joules += microjoules * 1e-6;
            instructions += 1.0;
        }
    }
    let turn = (instructions + 10.0) * gpu().number("nanoseconds", 20.0) * 1e-9;
    // Kernels of one process run one after the other.
    let busy_until = gpu().kernels.lock().unwrap().iter().map(|kernel| kernel.end).fold(0.0, f64::max);
    let start = gpu().now().max(busy_until);
    let end = start + turn * f64::from(turns);
    let lanes = f64::from(grid_x) * f64::from(block_x);
    gpu().run(Kernel { start, end, watts: joules * lanes / turn });
    unsafe {
        // Clock cycles at 1 GHz, then the result.
        *results = ((end - start) * 1e9) as u64;
        *results.add(1) = 0x5eed ^ u64::from(turns) ^ instructions as u64;
    }
    0
}
