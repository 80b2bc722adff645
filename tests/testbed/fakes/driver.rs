//! libcuda: kernels that spend what their instructions are set to.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, Once};
use std::time::Duration;

use super::{Kernel, bus_id, cupti, gpu, put};

thread_local! {
    static DEVICE: Cell<usize> = const { Cell::new(0) };
}

/// A context's handle stands for its GPU.
const FIRST_CONTEXT: usize = 64;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Loads, as the driver does before anything else, what the environment names.
fn inject() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(path) = std::env::var_os("CUDA_INJECTION64_PATH") else { return };
        let path = std::ffi::CString::new(path.into_encoded_bytes()).unwrap();
        const RTLD_NOW: c_int = 2;
        unsafe {
            let library = dlopen(path.as_ptr(), RTLD_NOW);
            assert!(!library.is_null(), "the library to inject is there");
            let initialize = dlsym(library, c"InitializeInjection".as_ptr());
            assert!(!initialize.is_null(), "it has InitializeInjection");
            let initialize = std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(initialize);
            assert!(initialize() == 1);
        }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> c_int {
    inject();
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
pub unsafe extern "C" fn cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: c_int) -> c_int {
    unsafe { put(&bus_id(device as usize), id, length as c_uint) };
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
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int {
    inject();
    unsafe { *context = std::ptr::without_provenance_mut(FIRST_CONTEXT + device as usize) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> c_int {
    DEVICE.set(context.addr().saturating_sub(FIRST_CONTEXT));
    0
}

/// Events and what they come after: seconds at which it has been done.
static EVENTS: Mutex<BTreeMap<usize, f64>> = Mutex::new(BTreeMap::new());

/// When all of this has been done that this process launched on the thread's GPU.
fn done_at(of_stream: Option<usize>) -> f64 {
    let device = DEVICE.get();
    let own = |kernel: &&Kernel| kernel.device == device && of_stream.is_none_or(|stream| stream == kernel.stream);
    gpu().kernels.lock().unwrap().iter().filter(own).map(|k| k.end).fold(0.0, f64::max)
}

fn wait_until(end: f64) -> c_int {
    let left = end - gpu().now();
    if left > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(left));
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> c_int {
    wait_until(done_at(None))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize_v2(_context: *mut c_void) -> c_int {
    wait_until(done_at(None))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: *mut c_void) -> c_int {
    wait_until(done_at(Some(stream.addr())))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> c_int {
    EVENTS.lock().unwrap().insert(event.addr(), done_at(Some(stream.addr())));
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: *mut c_void) -> c_int {
    let end = EVENTS.lock().unwrap().get(&event.addr()).copied();
    wait_until(end.unwrap_or(0.0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut *mut c_void,
    image: *const c_char,
    _count: c_uint,
    _options: *mut c_int,
    _values: *mut *mut c_void,
) -> c_int {
    inject();
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
pub unsafe extern "C" fn cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char) -> c_int {
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    gpu().names.lock().unwrap().insert(module.addr(), name);
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
    stream: *mut c_void,
    parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    let correlation = cupti::entering();
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
    // Kernels of one process run one after the other in a stream.
    let (device, stream) = (DEVICE.get(), stream.addr());
    let start = gpu().now().max(done_at(Some(stream)));
    let end = start + turn * f64::from(turns);
    let lanes = f64::from(grid_x) * f64::from(block_x);
    gpu().run(Kernel { start, end, watts: joules * lanes / turn, device, stream });
    cupti::launched(correlation, function.addr(), start, end, device);
    unsafe {
        // Clock cycles at 1 GHz, then the result.
        *results = ((end - start) * 1e9) as u64;
        *results.add(1) = 0x5eed ^ u64::from(turns) ^ instructions as u64;
    }
    0
}
