//! The functions of CUDA's driver that eprof calls, from `libcuda.so.1`.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

use libloading::Library;
use thiserror::Error;

/// Why a GPU cannot be used through CUDA's driver.
#[derive(Debug, Error)]
pub enum CudaError {
    /// No driver.
    #[error("cannot load {path} ({source}); it comes with NVIDIA's driver")]
    Library {
        /// File that was tried.
        path: String,
        /// The loader's message.
        source: libloading::Error,
    },
    /// The driver refused.
    #[error("{function} failed with CUDA status {status}{hint}")]
    Status {
        /// Which function.
        function: &'static str,
        /// Its answer.
        status: c_int,
        /// What that means, for those that occur.
        hint: &'static str,
    },
    /// The assembler refused the program.
    #[error("the driver does not assemble the program (CUDA status {status}): {log}")]
    Program {
        /// Its answer.
        status: c_int,
        /// The assembler's words.
        log: String,
    },
}

fn hint(status: c_int) -> &'static str {
    match status {
        2 => " (out of memory)",
        3 => " (the driver is shutting down)",
        100 => " (no GPU)",
        101 => " (no GPU of that number)",
        218 => " (invalid PTX)",
        221 => " (libnvidia-ptxjitcompiler.so is missing)",
        222 => " (the program is newer than the driver)",
        700 => " (illegal address)",
        719 => " (the kernel failed)",
        803 => " (driver and library do not match)",
        _ => "",
    }
}

macro_rules! driver_table {
    ($($name:ident: fn($($argument:ty),*);)*) => {
        #[allow(non_snake_case)]
        struct Table {
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
            _library: Library,
        }

        impl Table {
            fn load(path: &Path) -> Result<Self, libloading::Error> {
                // SAFETY: NVIDIA's driver library, or one that the user named; loading runs its initialisers.
                let library = unsafe { Library::new(path)? };
                // SAFETY: the signatures are those of the CUDA driver API, whose versioned names never
                // change theirs; the pointers are used only while the library, which is kept, is loaded.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

type Handle = *mut c_void;

driver_table! {
    cuInit: fn(c_uint);
    cuDriverGetVersion: fn(*mut c_int);
    cuDeviceGet: fn(*mut c_int, c_int);
    cuDeviceGetName: fn(*mut c_char, c_int, c_int);
    cuDeviceGetPCIBusId: fn(*mut c_char, c_int, c_int);
    cuDeviceGetAttribute: fn(*mut c_int, c_int, c_int);
    cuDevicePrimaryCtxRetain: fn(*mut Handle, c_int);
    cuDevicePrimaryCtxRelease_v2: fn(c_int);
    cuCtxSetCurrent: fn(Handle);
    cuCtxSynchronize: fn();
    cuModuleLoadDataEx: fn(*mut Handle, *const c_char, c_uint, *mut c_int, *mut Handle);
    cuModuleUnload: fn(Handle);
    cuModuleGetFunction: fn(*mut Handle, Handle, *const c_char);
    cuMemAlloc_v2: fn(*mut u64, usize);
    cuMemFree_v2: fn(u64);
    cuMemcpyDtoH_v2: fn(*mut c_void, u64, usize);
    cuLaunchKernel: fn(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut Handle, *mut Handle);
}

/// A GPU with a context, current on the thread that made it.
pub struct Cuda {
    table: Table,
    device: c_int,
    results: u64,
    /// The GPU's name.
    pub name: String,
    /// Its address on the bus, by which NVML knows it.
    pub bus_id: String,
    /// Compute capability: 10 times major plus minor.
    pub capability: u32,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Version of CUDA that the driver supports: 1000 times major plus 10 times minor.
    pub driver: u32,
    /// The context belongs to one thread.
    _not_send: std::marker::PhantomData<*mut ()>,
}

/// A kernel, ready to be launched.
pub struct Kernel<'a> {
    cuda: &'a Cuda,
    module: Handle,
    function: Handle,
}

const RESULT_BYTES: usize = 16;

impl Cuda {
    /// Opens a GPU by its number. `library`: another file than the driver's `libcuda.so.1`.
    ///
    /// # Errors
    /// [`CudaError`] when there is no driver or no such GPU.
    pub fn open(library: Option<&Path>, ordinal: u32) -> Result<Self, CudaError> {
        let path = library.unwrap_or(Path::new("libcuda.so.1"));
        let table = Table::load(path)
            .map_err(|source| CudaError::Library { path: path.display().to_string(), source })?;
        let mut device = 0;
        let mut driver = 0;
        let mut context = ptr::null_mut();
        let mut results = 0;
        // SAFETY: each call gets valid pointers to what it writes; the device is the one just got.
        unsafe {
            check("cuInit", (table.cuInit)(0))?;
            check("cuDriverGetVersion", (table.cuDriverGetVersion)(&raw mut driver))?;
            check("cuDeviceGet", (table.cuDeviceGet)(&raw mut device, ordinal as c_int))?;
            check("cuDevicePrimaryCtxRetain", (table.cuDevicePrimaryCtxRetain)(&raw mut context, device))?;
            check("cuCtxSetCurrent", (table.cuCtxSetCurrent)(context))?;
            check("cuMemAlloc", (table.cuMemAlloc_v2)(&raw mut results, RESULT_BYTES))?;
        }
        const MULTIPROCESSORS: c_int = 16;
        const MAJOR: c_int = 75;
        const MINOR: c_int = 76;
        let attribute = |which: c_int| {
            let mut value = 0;
            // SAFETY: writes one integer.
            check("cuDeviceGetAttribute", unsafe {
                (table.cuDeviceGetAttribute)(&raw mut value, which, device)
            })?;
            Ok::<u32, CudaError>(value.max(0) as u32)
        };
        let capability = 10 * attribute(MAJOR)? + attribute(MINOR)?;
        let multiprocessors = attribute(MULTIPROCESSORS)?.max(1);
        let name = text("cuDeviceGetName", |to, length| {
            // SAFETY: writes at most `length` bytes.
            unsafe { (table.cuDeviceGetName)(to, length, device) }
        })?;
        let bus_id = text("cuDeviceGetPCIBusId", |to, length| {
            // SAFETY: as above.
            unsafe { (table.cuDeviceGetPCIBusId)(to, length, device) }
        })?;
        Ok(Self {
            table,
            device,
            results,
            name,
            bus_id,
            capability,
            multiprocessors,
            driver: driver.max(0) as u32,
            _not_send: std::marker::PhantomData,
        })
    }

    /// Has the driver assemble a PTX program at an optimisation level from 0 to 4.
    ///
    /// # Errors
    /// [`CudaError::Program`] with the assembler's words.
    pub fn kernel(&self, program: &str, entry: &str, level: u32) -> Result<Kernel<'_>, CudaError> {
        const ERROR_LOG: c_int = 5;
        const ERROR_LOG_BYTES: c_int = 6;
        const OPTIMIZATION_LEVEL: c_int = 7;
        let program = CString::new(program)
            .map_err(|_| CudaError::Program { status: 218, log: "a zero byte".into() })?;
        let entry =
            CString::new(entry).map_err(|_| CudaError::Program { status: 218, log: "a zero byte".into() })?;
        let mut log = vec![0u8; 4096];
        let mut options = [ERROR_LOG, ERROR_LOG_BYTES, OPTIMIZATION_LEVEL];
        // The interface takes numbers in the place of pointers.
        let number = |value: usize| ptr::without_provenance_mut::<c_void>(value);
        let mut values = [log.as_mut_ptr().cast::<c_void>(), number(log.len()), number(level as usize)];
        let mut module = ptr::null_mut();
        let mut function = ptr::null_mut();
        // SAFETY: the program ends with a zero, options and values are three each, and the log is as long
        // as its option says.
        unsafe {
            let status = (self.table.cuModuleLoadDataEx)(
                &raw mut module,
                program.as_ptr(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            );
            if status != 0 {
                let said = CStr::from_bytes_until_nul(&log).map(|log| log.to_string_lossy().into_owned());
                let said = said.unwrap_or_default() + hint(status);
                return Err(CudaError::Program { status, log: said });
            }
            check(
                "cuModuleGetFunction",
                (self.table.cuModuleGetFunction)(&raw mut function, module, entry.as_ptr()),
            )?;
        }
        Ok(Kernel { cuda: self, module, function })
    }
}

impl Kernel<'_> {
    /// Launches `blocks` times `threads` threads and returns at once.
    ///
    /// # Errors
    /// [`CudaError::Status`].
    pub fn launch(&self, blocks: u32, threads: u32, turns: u32, seed: u32) -> Result<(), CudaError> {
        let (mut results, mut turns, mut seed) = (self.cuda.results, turns, seed);
        let mut parameters: [Handle; 3] =
            [(&raw mut results).cast(), (&raw mut turns).cast(), (&raw mut seed).cast()];
        // SAFETY: the kernel takes these three parameters, which are copied before the call returns.
        check("cuLaunchKernel", unsafe {
            (self.cuda.table.cuLaunchKernel)(
                self.function,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                ptr::null_mut(),
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        })
    }

    /// Waits until all launched work is done.
    ///
    /// # Errors
    /// [`CudaError::Status`], also for a kernel that failed.
    pub fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: no arguments; the context is current on this thread.
        check("cuCtxSynchronize", unsafe { (self.cuda.table.cuCtxSynchronize)() })
    }

    /// The two numbers that the kernel left.
    ///
    /// # Errors
    /// [`CudaError::Status`].
    pub fn results(&self) -> Result<[u64; 2], CudaError> {
        let mut results = [0u64; 2];
        // SAFETY: both sides are 16 bytes.
        check("cuMemcpyDtoH", unsafe {
            (self.cuda.table.cuMemcpyDtoH_v2)(results.as_mut_ptr().cast(), self.cuda.results, RESULT_BYTES)
        })?;
        Ok(results)
    }
}

impl Drop for Kernel<'_> {
    fn drop(&mut self) {
        // SAFETY: the module is this kernel's own and nothing of it runs: every run is waited for.
        unsafe { (self.cuda.table.cuModuleUnload)(self.module) };
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // SAFETY: the memory and the context were got by this value and are given back once.
        unsafe {
            (self.table.cuMemFree_v2)(self.results);
            (self.table.cuDevicePrimaryCtxRelease_v2)(self.device);
        }
    }
}

fn check(function: &'static str, status: c_int) -> Result<(), CudaError> {
    if status == 0 { Ok(()) } else { Err(CudaError::Status { function, status, hint: hint(status) }) }
}

fn text(function: &'static str, fill: impl FnOnce(*mut c_char, c_int) -> c_int) -> Result<String, CudaError> {
    let mut bytes = vec![0u8; 128];
    check(function, fill(bytes.as_mut_ptr().cast(), bytes.len() as c_int - 1))?;
    Ok(CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default())
}
