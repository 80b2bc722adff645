//! The library that `eprof record --cupti` lets CUDA load into a program (`CUDA_INJECTION64_PATH`), to
//! tell when its GPU kernels really began and ended.
//!
//! ```text
//!   the program's launches ──► callback: thread, time, correlation ─┐
//!   CUPTI's kernel records ──► buffers: start, end, correlation ────┴─► file of this process ──► eprof
//! ```
//!
//! Records go to a file in a folder of eprof's, every tenth of a second: what a program had done before it
//! died is there. CUPTI is loaded at run time; without it the program runs on and the file says why.
//! Watching costs time with every launch; above a rate of launches the library stops by itself and says
//! so too.

mod cupti;
mod output;
mod rate;
pub mod wire;

use std::alloc::{self, Layout};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use cupti::{CONCURRENT_KERNEL, CallbackData, Functions, KernelActivity, SUCCESS};
use output::Output;
use rate::LaunchRate;
use wire::Record;

/// The variable that names the folder for the files. Without it the library does nothing.
pub const FOLDER_VARIABLE: &str = "EPROF_CUPTI_FOLDER";
/// The variable that names CUPTI's library, if it is not one of the usual.
pub const LIBRARY_VARIABLE: &str = "EPROF_CUPTI_LIBRARY";
/// The variable that tells how many launches a second are too many; 0 for none.
pub const RATE_VARIABLE: &str = "EPROF_CUPTI_MAX_RATE";
/// How many are, without it.
pub const DEFAULT_MAX_RATE: u32 = 20_000;

/// How often what was seen is written.
const PERIOD: Duration = Duration::from_millis(100);
/// Room for about 500 kernels.
const BUFFER: Layout = match Layout::from_size_align(128 * 1024, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

struct Watcher {
    cupti: Functions,
    subscriber: AtomicPtr<c_void>,
    state: Mutex<State>,
    /// The rate that was too much; 0 as long as none was.
    too_fast: AtomicU32,
    /// The process that is watched.
    process: u32,
}

struct State {
    output: Output,
    rate: LaunchRate,
    /// GPUs whose place on the bus is not told yet, and those where it is.
    new_devices: Vec<u32>,
    known_devices: Vec<u32>,
    /// From CUPTI's clock to ours, where CUPTI cannot be given ours.
    clock_offset: i64,
}

static WATCHER: OnceLock<Watcher> = OnceLock::new();

/// What CUDA calls when it has loaded the library. 1: all is well, which it always is for the program.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE)
        && let Ok(mut output) = Output::create(&PathBuf::from(folder))
    {
        match cupti::load(std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from)) {
            Ok(functions) => watch(functions, output),
            Err(why) => {
                output.record(&Record::Problem { text: why.as_bytes() });
                output.flush();
            }
        }
    }
    1
}

fn watch(cupti: Functions, output: Output) {
    let limit = std::env::var(RATE_VARIABLE).ok().and_then(|text| text.parse().ok());
    let state = State {
        output,
        rate: LaunchRate::new(limit.unwrap_or(DEFAULT_MAX_RATE)),
        new_devices: Vec::new(),
        known_devices: Vec::new(),
        clock_offset: 0,
    };
    let watcher = Watcher {
        cupti,
        subscriber: AtomicPtr::default(),
        state: Mutex::new(state),
        too_fast: AtomicU32::new(0),
        process: std::process::id(),
    };
    if WATCHER.set(watcher).is_err() {
        return;
    }
    let Some(watcher) = WATCHER.get() else { return };
    match watcher.start() {
        Ok(cupti_version) => watcher.state().output.record(&Record::Watching { cupti_version }),
        Err(why) => watcher.state().output.record(&Record::Problem { text: why.as_bytes() }),
    }
    watcher.state().output.flush();
}

impl Watcher {
    /// Subscribes and begins; gives CUPTI's version.
    fn start(&'static self) -> Result<u32, String> {
        let done = |status: i32, what: &str| match status {
            SUCCESS => Ok(()),
            _ => Err(format!("{what} failed with status {status}")),
        };
        let mut version = 0;
        let mut subscriber = std::ptr::null_mut();
        // SAFETY: CUPTI's functions with what its documentation asks of their arguments; the callbacks
        // live as long as the process, since the library is never unloaded.
        unsafe {
            (self.cupti.version)(&raw mut version);
            done(
                (self.cupti.subscribe)(&raw mut subscriber, on_launch, std::ptr::null_mut()),
                "cuptiSubscribe",
            )
            .map_err(|why| format!("{why}: another tool may be using CUPTI in this program"))?;
            self.subscriber.store(subscriber, Ordering::Release);
            if self.cupti.register_clock.is_none_or(|register| register(monotonic) != SUCCESS) {
                self.state().clock_offset = self.clock_offset();
            }
            done((self.cupti.register_buffers)(on_request, on_complete), "cuptiActivityRegisterCallbacks")?;
            done((self.cupti.enable)(CONCURRENT_KERNEL), "cuptiActivityEnable")?;
            // A function that this CUPTI does not know yet is not launched by.
            for function in cupti::LAUNCHES {
                (self.cupti.enable_callback)(1, subscriber, cupti::DRIVER_API, function);
            }
            libc::atexit(at_exit);
        }
        std::thread::Builder::new()
            .name("eprof-cupti".to_owned())
            .spawn(|| self.write_regularly())
            .map_err(|error| format!("no thread can be made: {error}"))?;
        Ok(version)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write_regularly(&self) {
        loop {
            std::thread::sleep(PERIOD);
            // SAFETY: no lock is held that the completed buffers would want.
            unsafe { (self.cupti.flush)(0) };
            self.tell_devices();
            let abandoned = self.state().output.is_abandoned();
            let too_fast = self.too_fast.load(Ordering::Acquire);
            if too_fast > 0 || abandoned {
                self.stop();
                if too_fast > 0 {
                    self.state().output.record(&Record::Stopped { time: monotonic(), per_second: too_fast });
                }
                self.state().output.flush();
                return;
            }
            self.state().output.flush();
        }
    }

    /// Ends the watching for good, from a thread that is in no callback.
    fn stop(&self) {
        // SAFETY: the subscriber is CUPTI's own; what is told of kernels that ran is fetched last.
        unsafe {
            (self.cupti.unsubscribe)(self.subscriber.load(Ordering::Acquire));
            (self.cupti.disable)(CONCURRENT_KERNEL);
            (self.cupti.flush)(cupti::FLUSH_FORCED);
        }
    }

    /// What is to be added to CUPTI's time to make it ours.
    fn clock_offset(&self) -> i64 {
        let mut theirs = 0;
        let before = monotonic();
        // SAFETY: writes one number.
        unsafe { (self.cupti.timestamp)(&raw mut theirs) };
        let ours = before + (monotonic() - before) / 2;
        ours.wrapping_sub(theirs) as i64
    }

    fn tell_devices(&self) {
        let devices = std::mem::take(&mut self.state().new_devices);
        for ordinal in devices {
            if let Some(bus_id) = bus_id(ordinal) {
                self.state().output.record(&Record::Device { ordinal, bus_id: bus_id.as_bytes() });
            }
        }
    }

    fn kernel(state: &mut State, activity: &KernelActivity) {
        // SAFETY: CUPTI keeps the names of kernels, with their zero bytes, while their records are read.
        let name = if activity.name.is_null() { c"?" } else { unsafe { CStr::from_ptr(activity.name) } };
        let KernelActivity { device, correlation, stream, .. } = *activity;
        let ours = |time: u64| time.wrapping_add_signed(state.clock_offset);
        let (start, end) = (ours(activity.start), ours(activity.end));
        if activity.start == 0 || activity.end < activity.start {
            state.output.record(&Record::Dropped { count: 1 });
            return;
        }
        let name = state.output.name(name.to_bytes());
        state.output.record(&Record::Kernel { start, end, correlation, device, stream, name });
        if !state.known_devices.contains(&device) {
            state.known_devices.push(device);
            state.new_devices.push(device);
        }
    }
}

/// A GPU's address on the PCI bus, asked of the driver that the program has loaded.
fn bus_id(ordinal: u32) -> Option<CString> {
    const LENGTH: usize = 32;
    // SAFETY: the driver stays loaded; the function's type is that of its documentation, and it writes no
    // more than the room that it is told of.
    unsafe {
        let driver = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        let driver = if driver.is_null() { libc::RTLD_DEFAULT } else { driver };
        let get = libc::dlsym(driver, c"cuDeviceGetPCIBusId".as_ptr());
        if get.is_null() {
            return None;
        }
        let get =
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int>(get);
        let mut text = [0; LENGTH];
        let status = get(text.as_mut_ptr(), LENGTH as c_int - 1, ordinal.cast_signed());
        (status == 0).then(|| CStr::from_ptr(text.as_ptr()).to_owned())
    }
}

/// The clock of eprof's samples.
extern "C" fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

extern "C" fn on_launch(_user: *mut c_void, _domain: u32, _function: u32, data: *const CallbackData) {
    let Some(watcher) = WATCHER.get() else { return };
    // SAFETY: CUPTI hands over its data for the time of the call.
    let (site, correlation) = unsafe { ((*data).site, (*data).correlation) };
    if site != cupti::ENTER || watcher.too_fast.load(Ordering::Relaxed) > 0 {
        return;
    }
    let time = monotonic();
    // SAFETY: has no arguments.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    let mut state = watcher.state();
    state.output.record(&Record::Launch { time, tid, correlation });
    if let Some(rate) = state.rate.launch(time) {
        watcher.too_fast.store(rate, Ordering::Release);
    }
}

extern "C" fn on_request(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    // SAFETY: three places that CUPTI wants filled; a layout that is not empty. A null buffer is allowed
    // and makes CUPTI drop records.
    unsafe {
        *buffer = alloc::alloc(BUFFER);
        *size = if (*buffer).is_null() { 0 } else { BUFFER.size() };
        *most_records = 0;
    }
}

extern "C" fn on_complete(context: *mut c_void, stream: u32, buffer: *mut u8, _size: usize, valid: usize) {
    let Some(watcher) = WATCHER.get() else { return };
    if buffer.is_null() {
        return;
    }
    {
        let mut state = watcher.state();
        let mut record = std::ptr::null_mut();
        // SAFETY: a buffer of ours as CUPTI filled it; the kind is the first number of every record, and
        // a kernel's is at least as long as its beginning.
        unsafe {
            while valid > 0 && (watcher.cupti.next_record)(buffer, valid, &raw mut record) == SUCCESS {
                let kind = record.cast::<u32>().read_unaligned();
                if matches!(kind, cupti::KERNEL | CONCURRENT_KERNEL) {
                    let activity = record.cast::<KernelActivity>().read_unaligned();
                    Watcher::kernel(&mut state, &activity);
                }
            }
            let mut dropped = 0;
            if (watcher.cupti.dropped)(context, stream, &raw mut dropped) == SUCCESS && dropped > 0 {
                state.output.record(&Record::Dropped { count: dropped as u64 });
            }
        }
    }
    // SAFETY: from `on_request`, with the same layout.
    unsafe { alloc::dealloc(buffer, BUFFER) };
}

/// The program ends in an orderly way: what is still with CUPTI is fetched.
extern "C" fn at_exit() {
    let Some(watcher) = WATCHER.get() else { return };
    // A child that was forked has a copy of the records that wait, and of a lock that another thread may have held:
    // nobody would ever open it.
    if watcher.process != std::process::id() {
        return;
    }
    // SAFETY: this thread holds no lock that the completed buffers would want.
    unsafe { (watcher.cupti.flush)(cupti::FLUSH_FORCED) };
    watcher.tell_devices();
    watcher.state().output.flush();
}
