//! libcupti: tells of the driver's launches and kernels, in buffers, as the real one does.

use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{gpu, system_seconds};

type Callback = extern "C" fn(*mut c_void, u32, u32, *const CallbackData);
type Request = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

const MULTIPLE_SUBSCRIBERS: i32 = 39;
const MAX_LIMIT_REACHED: i32 = 12;
const CONCURRENT_KERNEL: u32 = 10;
const LAUNCH_KERNEL: u32 = 307;
/// Longer than eprof knows them to be, as those of later versions.
const RECORD: usize = 160;
/// The clock of CUPTI is another than the system's unless it is given one.
const OWN_CLOCK: u64 = 1_000_000_000_000_000;

#[repr(C)]
pub struct CallbackData {
    site: u32,
    function_name: *const c_char,
    parameters: *const c_void,
    return_value: *const c_void,
    symbol_name: *const c_char,
    context: *const c_void,
    context_uid: u32,
    correlation_data: *mut u64,
    correlation: u32,
}

struct Finished {
    start: f64,
    end: f64,
    correlation: u32,
    device: usize,
    name: usize,
}

#[derive(Default)]
struct Cupti {
    callback: Option<Callback>,
    functions: HashSet<u32>,
    buffers: Option<(Request, Complete)>,
    kernels_wanted: bool,
    clock: Option<extern "C" fn() -> u64>,
    pending: Vec<Finished>,
}

static CUPTI: Mutex<Option<Cupti>> = Mutex::new(None);

fn with<T>(act: impl FnOnce(&mut Cupti) -> T) -> T {
    act(CUPTI.lock().unwrap().get_or_insert_with(Cupti::default))
}

/// A launch begins; what its kernel is known by.
pub fn entering() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let correlation = NEXT.fetch_add(1, Ordering::Relaxed);
    let callback = with(|cupti| cupti.callback.filter(|_| cupti.functions.contains(&LAUNCH_KERNEL)));
    if let Some(callback) = callback {
        let nothing = std::ptr::null();
        let mut data = CallbackData {
            site: 0,
            function_name: c"cuLaunchKernel".as_ptr(),
            parameters: nothing,
            return_value: nothing,
            symbol_name: c"kernel".as_ptr(),
            context: nothing,
            context_uid: 1,
            correlation_data: std::ptr::null_mut(),
            correlation,
        };
        let nobody = std::ptr::null_mut();
        callback(nobody, 1, LAUNCH_KERNEL, &raw const data);
        data.site = 1;
        callback(nobody, 1, LAUNCH_KERNEL, &raw const data);
    }
    correlation
}

/// A kernel will have run from start to end.
pub fn launched(correlation: u32, name: usize, start: f64, end: f64, device: usize) {
    with(|cupti| {
        if cupti.kernels_wanted {
            cupti.pending.push(Finished { start, end, correlation, device, name });
        }
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(version: *mut u32) -> i32 {
    unsafe { *version = 24 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(handle: *mut *mut c_void, callback: Callback, _user: *mut c_void) -> i32 {
    if gpu().number("cupti_busy", 0.0) > 0.0 {
        return MULTIPLE_SUBSCRIBERS;
    }
    with(|cupti| cupti.callback = Some(callback));
    unsafe { *handle = std::ptr::without_provenance_mut(1) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiUnsubscribe(_handle: *mut c_void) -> i32 {
    with(|cupti| cupti.callback = None);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableCallback(enable: u32, _handle: *mut c_void, _domain: u32, function: u32) -> i32 {
    with(|cupti| if enable == 1 { cupti.functions.insert(function) } else { cupti.functions.remove(&function) });
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: u32) -> i32 {
    with(|cupti| cupti.kernels_wanted |= kind == CONCURRENT_KERNEL);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable(kind: u32) -> i32 {
    with(|cupti| cupti.kernels_wanted &= kind != CONCURRENT_KERNEL);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(request: Request, complete: Complete) -> i32 {
    with(|cupti| cupti.buffers = Some((request, complete)));
    0
}

#[cfg(not(no_clock))]
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterTimestampCallback(clock: extern "C" fn() -> u64) -> i32 {
    with(|cupti| cupti.clock = Some(clock));
    0
}

fn cupti_time(seconds: f64, has_clock: bool) -> u64 {
    (seconds * 1e9) as u64 + if has_clock { 0 } else { OWN_CLOCK }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetTimestamp(time: *mut u64) -> i32 {
    let has_clock = with(|cupti| cupti.clock.is_some());
    unsafe { *time = cupti_time(system_seconds(), has_clock) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(_: *mut c_void, _: u32, dropped: *mut usize) -> i32 {
    unsafe { *dropped = 0 };
    0
}

/// Hands over what has run; forced, also what is only begun, without its end.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(flag: u32) -> i32 {
    let now = system_seconds();
    let (finished, buffers, has_clock) = with(|cupti| {
        let all = std::mem::take(&mut cupti.pending);
        let (done, left) = all.into_iter().partition(|kernel| kernel.end <= now || flag == 1);
        cupti.pending = left;
        (done, cupti.buffers, cupti.clock.is_some())
    });
    let finished: Vec<Finished> = finished;
    let Some((request, complete)) = buffers else { return 0 };
    for some in finished.chunks(100) {
        let (mut buffer, mut size, mut most) = (std::ptr::null_mut(), 0, 0);
        request(&raw mut buffer, &raw mut size, &raw mut most);
        assert!(!buffer.is_null() && size >= (some.len() + 1) * RECORD && buffer.addr() % 8 == 0 && most == 0);
        // One of a kind that nobody asked for comes first.
        let mut bytes = vec![0u8; RECORD];
        bytes[0] = 1;
        for kernel in some {
            bytes.extend(record(kernel, has_clock, kernel.end <= now));
        }
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
        complete(std::ptr::null_mut(), 0, buffer, size, bytes.len());
    }
    0
}

fn record(kernel: &Finished, has_clock: bool, has_ended: bool) -> [u8; RECORD] {
    // CUPTI keeps names as long as records are read.
    let name = gpu().names.lock().unwrap().get(&kernel.name).cloned().unwrap_or_else(|| c"?".to_owned());
    let name: &'static CStr = Box::leak(name.into_boxed_c_str());
    let mut bytes = [0xa5; RECORD];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &CONCURRENT_KERNEL.to_ne_bytes());
    put(16, &cupti_time(kernel.start, has_clock).to_ne_bytes());
    put(24, &if has_ended { cupti_time(kernel.end, has_clock) } else { 0 }.to_ne_bytes());
    put(40, &(kernel.device as u32).to_ne_bytes());
    put(48, &7u32.to_ne_bytes());
    put(92, &kernel.correlation.to_ne_bytes());
    put(104, &(name.as_ptr() as u64).to_ne_bytes());
    bytes
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> i32 {
    unsafe {
        let next = if (*record).is_null() { buffer } else { (*record).add(RECORD) };
        if next.addr() + RECORD > buffer.addr() + valid {
            return MAX_LIMIT_REACHED;
        }
        *record = next;
    }
    0
}
