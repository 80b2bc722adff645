//! CUPTI's functions, loaded at run time, and the beginnings of its structures, by hand.
//!
//! NVIDIA only ever appends to the structures of kernels (`CUpti_ActivityKernel4` of CUDA 9 and later), so
//! that their beginning is all that is needed, and CUPTI itself walks from one record to the next.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::PathBuf;

/// `CUPTI_SUCCESS`.
pub const SUCCESS: i32 = 0;
/// `CUPTI_CB_DOMAIN_DRIVER_API`.
pub const DRIVER_API: u32 = 1;
/// `CUPTI_API_ENTER`.
pub const ENTER: u32 = 0;
/// `CUPTI_ACTIVITY_KIND_KERNEL`: kernels one at a time.
pub const KERNEL: u32 = 3;
/// `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`: kernels as they run, several at once.
pub const CONCURRENT_KERNEL: u32 = 10;
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`.
pub const FLUSH_FORCED: u32 = 1;

/// `CUPTI_DRIVER_TRACE_CBID_*` of the functions that launch: cuLaunchKernel, cuLaunchCooperativeKernel,
/// cuGraphLaunch and cuLaunchKernelEx, each with its variant for a default stream per thread.
pub const LAUNCHES: [u32; 8] = [307, 442, 477, 478, 514, 515, 652, 653];

/// The beginning of `CUpti_CallbackData`.
#[repr(C)]
pub struct CallbackData {
    /// Entering or leaving the function.
    pub site: u32,
    function_name: *const c_char,
    parameters: *const c_void,
    return_value: *const c_void,
    symbol_name: *const c_char,
    context: *const c_void,
    context_uid: u32,
    correlation_data: *mut u64,
    /// What the launch's kernels are known by.
    pub correlation: u32,
}

/// The beginning of `CUpti_ActivityKernel4` and later, as it lies in memory: eight bytes are the most
/// that anything in it is aligned to.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct KernelActivity {
    /// The kind of the record.
    pub kind: u32,
    cache_and_registers: u32,
    partitioned_cache: [u32; 2],
    /// Nanoseconds; 0 if it could not be told.
    pub start: u64,
    /// Nanoseconds; 0 if it could not be told.
    pub end: u64,
    completed: u64,
    /// CUDA's number of the GPU.
    pub device: u32,
    context: u32,
    /// CUPTI's number of the stream.
    pub stream: u32,
    grid_and_block: [i32; 6],
    shared_memory: [i32; 2],
    local_memory: [u32; 2],
    /// The launch's.
    pub correlation: u32,
    grid_id: i64,
    /// As the compiler mangled it.
    pub name: *const c_char,
}

const _: () = assert!(std::mem::offset_of!(KernelActivity, start) == 16);
const _: () = assert!(std::mem::offset_of!(KernelActivity, device) == 40);
const _: () = assert!(std::mem::offset_of!(KernelActivity, correlation) == 92);
const _: () = assert!(std::mem::offset_of!(KernelActivity, name) == 104);

/// Called before and after a function of CUDA.
pub type Callback = extern "C" fn(user: *mut c_void, domain: u32, function: u32, data: *const CallbackData);
/// Asks for room for records.
pub type BufferRequested = extern "C" fn(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize);
/// Hands records over.
pub type BufferCompleted =
    extern "C" fn(context: *mut c_void, stream: u32, buffer: *mut u8, size: usize, valid: usize);

macro_rules! functions {
    ($($(#[$about:meta])* $field:ident = $symbol:literal: fn($($argument:ty),*) -> i32;)*) => {
        /// The functions that are used.
        #[derive(Debug, Clone, Copy)]
        pub struct Functions {
            $($(#[$about])* pub $field: unsafe extern "C" fn($($argument),*) -> i32,)*
            /// `cuptiActivityRegisterTimestampCallback`, of CUDA 11.6 and later.
            pub register_clock: Option<unsafe extern "C" fn(extern "C" fn() -> u64) -> i32>,
        }

        impl Functions {
            /// # Safety
            /// `library` is a handle of `dlopen`, of a CUPTI that is never closed.
            unsafe fn of(library: *mut c_void) -> Result<Self, String> {
                $(let $field = symbol(library, $symbol);)*
                let register_clock = symbol(library, c"cuptiActivityRegisterTimestampCallback");
                $(if $field.is_null() {
                    return Err(format!("it has no {}", $symbol.to_string_lossy()));
                })*
                // SAFETY: these are the types of CUPTI's documentation, and none of them is null; an
                // absent pointer is `None` of an optional function.
                unsafe {
                    Ok(Self {
                        $($field: std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> i32>($field),)*
                        register_clock: std::mem::transmute::<
                            *mut c_void,
                            Option<unsafe extern "C" fn(extern "C" fn() -> u64) -> i32>,
                        >(register_clock),
                    })
                }
            }
        }
    };
}

functions! {
    /// `cuptiSubscribe`
    subscribe = c"cuptiSubscribe": fn(*mut *mut c_void, Callback, *mut c_void) -> i32;
    /// `cuptiUnsubscribe`
    unsubscribe = c"cuptiUnsubscribe": fn(*mut c_void) -> i32;
    /// `cuptiEnableCallback`
    enable_callback = c"cuptiEnableCallback": fn(u32, *mut c_void, u32, u32) -> i32;
    /// `cuptiActivityEnable`
    enable = c"cuptiActivityEnable": fn(u32) -> i32;
    /// `cuptiActivityDisable`
    disable = c"cuptiActivityDisable": fn(u32) -> i32;
    /// `cuptiActivityRegisterCallbacks`
    register_buffers = c"cuptiActivityRegisterCallbacks": fn(BufferRequested, BufferCompleted) -> i32;
    /// `cuptiActivityGetNextRecord`
    next_record = c"cuptiActivityGetNextRecord": fn(*mut u8, usize, *mut *mut u8) -> i32;
    /// `cuptiActivityGetNumDroppedRecords`
    dropped = c"cuptiActivityGetNumDroppedRecords": fn(*mut c_void, u32, *mut usize) -> i32;
    /// `cuptiActivityFlushAll`
    flush = c"cuptiActivityFlushAll": fn(u32) -> i32;
    /// `cuptiGetTimestamp`
    timestamp = c"cuptiGetTimestamp": fn(*mut u64) -> i32;
    /// `cuptiGetVersion`
    version = c"cuptiGetVersion": fn(*mut u32) -> i32;
}

fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a name with its zero byte; a symbol that is not there is null.
    unsafe { libc::dlsym(library, name.as_ptr()) }
}

/// Loads CUPTI: the file that is named, or the first of those that are usual. The program's own comes
/// first, since `dlopen` gives what is loaded already under a name.
///
/// # Errors
/// Why each could not be loaded.
pub fn load(named: Option<PathBuf>) -> Result<Functions, String> {
    let usual = || {
        let newest_first = (10..=14).rev().map(|major| PathBuf::from(format!("libcupti.so.{major}")));
        let folders =
            ["/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64", "/opt/cuda/extras/CUPTI/lib64"];
        newest_first
            .chain([PathBuf::from("libcupti.so")])
            .chain(folders.map(|folder| PathBuf::from(folder).join("libcupti.so")))
            .collect()
    };
    let candidates = named.map_or_else(usual, |path| vec![path]);
    let mut why = String::new();
    for path in &candidates {
        let Ok(name) = CString::new(path.as_os_str().as_encoded_bytes()) else { continue };
        // SAFETY: a name with its zero byte; CUPTI's own initialisers run.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            // SAFETY: after a failure `dlerror` is a text, which is copied at once.
            why = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned();
            continue;
        }
        // SAFETY: just opened, and never closed.
        match unsafe { Functions::of(library) } {
            Ok(functions) => return Ok(functions),
            Err(error) => why = format!("{}: {error}", path.display()),
        }
    }
    Err(format!(
        "CUPTI cannot be loaded ({why}); it comes with the CUDA toolkit, not with the driver: install \
         cuda-cupti (or pip's nvidia-cuda-cupti-cu12) and name its libcupti.so with --cupti-lib"
    ))
}
