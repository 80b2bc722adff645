//! Launches of GPU kernels in a recording: which functions are probed, how their events are named, and
//! the payload that tells a kernel's name.
//!
//! An event of a probe is named `<what it means>:<function>`, such as `gpu-launch:cuLaunchKernel`. Its
//! samples have the call stack of the launch and the registers of the call's first three arguments.

/// Name of the event whose samples carry [`KernelName`]s.
pub const KERNEL_NAMES_EVENT: &str = "eprof/gpu-kernels/";
/// Name of the event whose samples carry [`ContextDevice`]s.
pub const CONTEXTS_EVENT: &str = "eprof/gpu-contexts/";

/// What it means that a function was called, or returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GpuCall {
    /// The driver is given a kernel.
    Launch,
    /// CUDA's runtime is given a kernel, which it hands to the driver within the call.
    RuntimeLaunch,
    /// A graph of kernels is launched.
    GraphLaunch,
    /// A thread begins to wait for what was launched so far.
    Wait,
    /// What was launched before that wait has been done.
    Waited,
    /// An event is put into a stream, behind what was launched into it so far.
    RecordEvent,
    /// What will be launched into a stream is to wait for an event.
    AwaitEvent,
    /// The handle of a kernel is asked for by its name.
    Name,
    /// The handle was given.
    Named,
    /// A context on a GPU is asked for.
    Context,
    /// The context was given.
    Contexted,
    /// A thread goes over to a context.
    UseContext,
    /// A thread goes over to a context, and will come back.
    PushContext,
    /// It comes back.
    PopContext,
    /// A thread goes over to a GPU, by its number.
    UseDevice,
}

impl GpuCall {
    const ALL: [Self; 15] = [
        Self::Launch,
        Self::RuntimeLaunch,
        Self::GraphLaunch,
        Self::Wait,
        Self::Waited,
        Self::RecordEvent,
        Self::AwaitEvent,
        Self::Name,
        Self::Named,
        Self::Context,
        Self::Contexted,
        Self::UseContext,
        Self::PushContext,
        Self::PopContext,
        Self::UseDevice,
    ];

    fn prefix(self) -> &'static str {
        match self {
            Self::Launch => "gpu-launch",
            Self::RuntimeLaunch => "gpu-runtime",
            Self::GraphLaunch => "gpu-graph",
            Self::Wait => "gpu-wait",
            Self::Waited => "gpu-waited",
            Self::RecordEvent => "gpu-record-event",
            Self::AwaitEvent => "gpu-await-event",
            Self::Name => "gpu-name",
            Self::Named => "gpu-named",
            Self::Context => "gpu-context",
            Self::Contexted => "gpu-contexted",
            Self::UseContext => "gpu-use-context",
            Self::PushContext => "gpu-push-context",
            Self::PopContext => "gpu-pop-context",
            Self::UseDevice => "gpu-use-device",
        }
    }

    /// The call has this meaning when the function returns.
    pub fn on_return(self) -> Option<Self> {
        match self {
            Self::Wait => Some(Self::Waited),
            Self::Name => Some(Self::Named),
            Self::Context => Some(Self::Contexted),
            _ => None,
        }
    }

    /// The event's name for a function.
    pub fn event_name(self, function: &str) -> String {
        format!("{}:{function}", self.prefix())
    }

    /// What an event's name means, and the function.
    pub fn of_event(name: &str) -> Option<(Self, &str)> {
        let (prefix, function) = name.split_once(':')?;
        Some((Self::ALL.into_iter().find(|call| call.prefix() == prefix)?, function))
    }
}

/// A function that is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuFunction {
    /// Its symbol.
    pub name: &'static str,
    /// What its call means.
    pub call: GpuCall,
    /// Which of its arguments matters: the kernel or graph, the event, the context, the GPU's number.
    pub argument: usize,
    /// Which of its arguments is the stream.
    pub stream: Option<usize>,
}

const fn function(name: &'static str, call: GpuCall, argument: usize) -> GpuFunction {
    GpuFunction { name, call, argument, stream: None }
}

const fn in_stream(name: &'static str, call: GpuCall, argument: usize, stream: usize) -> GpuFunction {
    GpuFunction { name, call, argument, stream: Some(stream) }
}

/// Functions of the driver, `libcuda.so.1`. Those that end in `_ptsz` and `_ptds` are the same with a
/// default stream for each thread.
pub const DRIVER_FUNCTIONS: [GpuFunction; 28] = [
    in_stream("cuLaunchKernel", GpuCall::Launch, 0, 8),
    in_stream("cuLaunchKernel_ptsz", GpuCall::Launch, 0, 8),
    // The stream lies in a structure of the program.
    function("cuLaunchKernelEx", GpuCall::Launch, 1),
    function("cuLaunchKernelEx_ptsz", GpuCall::Launch, 1),
    in_stream("cuLaunchCooperativeKernel", GpuCall::Launch, 0, 8),
    in_stream("cuLaunchCooperativeKernel_ptsz", GpuCall::Launch, 0, 8),
    in_stream("cuGraphLaunch", GpuCall::GraphLaunch, 0, 1),
    in_stream("cuGraphLaunch_ptsz", GpuCall::GraphLaunch, 0, 1),
    function("cuCtxSynchronize", GpuCall::Wait, 0),
    // What CUDA 13's runtime calls to wait for the whole device.
    function("cuCtxSynchronize_v2", GpuCall::Wait, 0),
    in_stream("cuStreamSynchronize", GpuCall::Wait, 0, 0),
    in_stream("cuStreamSynchronize_ptsz", GpuCall::Wait, 0, 0),
    function(EVENT_SYNCHRONIZE[0], GpuCall::Wait, 0),
    in_stream("cuEventRecord", GpuCall::RecordEvent, 0, 1),
    in_stream("cuEventRecord_ptsz", GpuCall::RecordEvent, 0, 1),
    in_stream("cuEventRecordWithFlags", GpuCall::RecordEvent, 0, 1),
    in_stream("cuEventRecordWithFlags_ptsz", GpuCall::RecordEvent, 0, 1),
    in_stream("cuStreamWaitEvent", GpuCall::AwaitEvent, 1, 0),
    in_stream("cuStreamWaitEvent_ptsz", GpuCall::AwaitEvent, 1, 0),
    // Copies to ordinary memory of the host end when all before them has.
    function("cuMemcpyDtoH_v2", GpuCall::Wait, 0),
    function("cuMemcpyDtoH_v2_ptds", GpuCall::Wait, 0),
    function("cuModuleGetFunction", GpuCall::Name, 0),
    function("cuLibraryGetKernel", GpuCall::Name, 0),
    function("cuDevicePrimaryCtxRetain", GpuCall::Context, 1),
    function("cuCtxCreate_v2", GpuCall::Context, 2),
    function("cuCtxSetCurrent", GpuCall::UseContext, 0),
    function("cuCtxPushCurrent_v2", GpuCall::PushContext, 0),
    function("cuCtxPopCurrent_v2", GpuCall::PopContext, 0),
];

/// Functions of CUDA's runtime, which most programs have linked into themselves. It calls the driver,
/// which is told the stream and the event.
pub const RUNTIME_FUNCTIONS: [GpuFunction; 9] = [
    function("cudaLaunchKernel", GpuCall::RuntimeLaunch, 0),
    function("cudaLaunchKernel_ptsz", GpuCall::RuntimeLaunch, 0),
    function("cudaLaunchKernelExC", GpuCall::RuntimeLaunch, 1),
    function("cudaLaunchKernelExC_ptsz", GpuCall::RuntimeLaunch, 1),
    function("cudaDeviceSynchronize", GpuCall::Wait, 0),
    in_stream("cudaStreamSynchronize", GpuCall::Wait, 0, 0),
    function(EVENT_SYNCHRONIZE[1], GpuCall::Wait, 0),
    function("cudaMemcpy", GpuCall::Wait, 0),
    function("cudaSetDevice", GpuCall::UseDevice, 0),
];

/// The waits for an event, which is their first argument.
const EVENT_SYNCHRONIZE: [&str; 2] = ["cuEventSynchronize", "cudaEventSynchronize"];

fn known(function: &str) -> Option<&'static GpuFunction> {
    DRIVER_FUNCTIONS.iter().chain(&RUNTIME_FUNCTIONS).find(|known| known.name == function)
}

/// Which argument of a function matters.
pub fn argument_of(function: &str) -> usize {
    known(function).map_or(0, |known| known.argument)
}

/// Which argument of a function is the stream; `None` if it has none, or not as an argument.
pub fn stream_argument_of(function: &str) -> Option<usize> {
    known(function)?.stream
}

/// Does this function wait for an event?
pub fn waits_for_event(function: &str) -> bool {
    EVENT_SYNCHRONIZE.contains(&function)
}

/// So much of the stack has the arguments of a launch that are in no register.
pub const ARGUMENTS_STACK_BYTES: u32 = 64;

/// Where a call's arguments are, by the kernel's numbers of registers (`PERF_REG_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRegisters {
    /// The first three arguments.
    pub arguments: [u32; 3],
    /// The stack pointer.
    pub stack: u32,
    /// How many arguments are in registers.
    pub register_arguments: usize,
    /// What lies on top of the stack before the other arguments, in bytes.
    pub above_arguments: usize,
}

impl CallRegisters {
    /// Those of an architecture; `None` if its calling convention is not known here.
    pub fn of(architecture: &str) -> Option<Self> {
        match architecture {
            "x86_64" => Some(Self {
                arguments: [5, 4, 3],
                stack: 7,
                register_arguments: 6,
                // The address to return to.
                above_arguments: 8,
            }),
            "aarch64" => {
                Some(Self { arguments: [0, 1, 2], stack: 31, register_arguments: 8, above_arguments: 0 })
            }
            _ => None,
        }
    }

    /// A call's argument, from the registers of its first three or from a copy of the top of its stack.
    pub fn argument(self, number: usize, register: impl Fn(u32) -> Option<u64>, stack: &[u8]) -> Option<u64> {
        if let Some(place) = self.arguments.get(number) {
            return register(*place);
        }
        let at = self.above_arguments + 8 * number.checked_sub(self.register_arguments)?;
        Some(u64::from_le_bytes(stack.get(at..at + 8)?.try_into().ok()?))
    }

    /// All of them, as bits.
    pub fn mask(self) -> u64 {
        self.arguments.iter().map(|register| 1u64 << register).sum::<u64>() | 1 << self.stack
    }

    /// How many of them come before this one in a sample, where they lie in the order of their numbers.
    pub fn place(self, register: u32) -> usize {
        self.arguments.iter().chain([&self.stack]).filter(|other| **other < register).count()
    }
}

/// Which GPU a context of a process is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextDevice {
    /// The process.
    pub pid: u32,
    /// The context's handle (`CUcontext`).
    pub context: u64,
    /// CUDA's number of the GPU in this process.
    pub ordinal: u32,
}

impl ContextDevice {
    const VERSION: u32 = 1;

    /// The payload: version, process, context, number.
    pub fn to_bytes(self) -> Vec<u8> {
        let words = [Self::VERSION, self.pid, self.context as u32, (self.context >> 32) as u32, self.ordinal];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Reads a payload; `None` if it is too short or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let context = u64::from(word(8)?) | u64::from(word(12)?) << 32;
        (word(0)? == Self::VERSION).then_some(Self { pid: word(4)?, context, ordinal: word(16)? })
    }
}

/// The name of a kernel by the handle that a process launches it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelName {
    /// The process.
    pub pid: u32,
    /// The handle (`CUfunction` or `CUkernel`).
    pub handle: u64,
    /// The name as the compiler mangled it.
    pub name: String,
}

impl KernelName {
    const VERSION: u32 = 1;
    /// Names are cut here; C++ templates have long ones.
    pub const LONGEST: usize = 4096;

    /// The payload: version, process, handle, length, text; zeros up to 4 more than a multiple of 8.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut end = self.name.len().min(Self::LONGEST);
        while !self.name.is_char_boundary(end) {
            end -= 1;
        }
        let text = &self.name.as_bytes()[..end];
        let mut bytes = Vec::with_capacity(28 + text.len());
        bytes.extend(Self::VERSION.to_le_bytes());
        bytes.extend(self.pid.to_le_bytes());
        bytes.extend(self.handle.to_le_bytes());
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text);
        while bytes.len() % 8 != 4 {
            bytes.push(0);
        }
        bytes
    }

    /// Reads a payload; `None` if it is too short, of another version or no text.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if word(0)? != Self::VERSION {
            return None;
        }
        let length = word(16)? as usize;
        let text = bytes.get(20..20usize.checked_add(length)?)?;
        Some(Self {
            pid: word(4)?,
            handle: u64::from(word(8)?) | u64::from(word(12)?) << 32,
            name: std::str::from_utf8(text).ok()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_named_by_meaning_and_function() {
        for function in DRIVER_FUNCTIONS.iter().chain(&RUNTIME_FUNCTIONS) {
            let name = function.call.event_name(function.name);
            assert_eq!(GpuCall::of_event(&name), Some((function.call, function.name)));
            if let Some(returned) = function.call.on_return() {
                assert_eq!(GpuCall::of_event(&returned.event_name("f")), Some((returned, "f")));
            }
        }
        assert_eq!(GpuCall::of_event("cycles:u"), None);
        assert_eq!(argument_of("cuLaunchKernelEx"), 1);
        assert_eq!(stream_argument_of("cuStreamWaitEvent"), Some(0));
        assert!(waits_for_event("cudaEventSynchronize") && !waits_for_event("cuCtxSynchronize"));
    }

    #[test]
    fn the_ninth_argument_is_on_the_stack() {
        let stack: Vec<u8> = (0..8u64).flat_map(|word| (word * 11).to_le_bytes()).collect();
        let found = |architecture: &str, number| {
            let registers = CallRegisters::of(architecture).expect("known");
            registers.argument(number, |register| Some(u64::from(register)), &stack)
        };
        assert_eq!((found("x86_64", 0), found("aarch64", 1)), (Some(5), Some(1)));
        // Behind the address to return to, the seventh and the eighth.
        assert_eq!((found("x86_64", 8), found("aarch64", 8)), (Some(33), Some(0)));
        assert_eq!((found("x86_64", 4), found("x86_64", 40)), (None, None));
    }

    #[test]
    fn a_kernels_name_survives_the_file() {
        let name = KernelName { pid: 7, handle: 0x7f00_1234_5678, name: "_Z3addPfS_".to_owned() };
        let bytes = name.to_bytes();
        assert_eq!(bytes.len() % 8, 4);
        assert_eq!(KernelName::from_bytes(&bytes), Some(name));
        assert!((0..30).all(|length| KernelName::from_bytes(&bytes[..length]).is_none()));
    }

    #[test]
    fn a_contexts_gpu_survives_the_file() {
        let context = ContextDevice { pid: 7, context: 0x7f00_1234_5678, ordinal: 3 };
        let bytes = context.to_bytes();
        assert_eq!(bytes.len() % 8, 4);
        assert_eq!(ContextDevice::from_bytes(&bytes), Some(context));
        assert!((0..20).all(|length| ContextDevice::from_bytes(&bytes[..length]).is_none()));
    }

    #[test]
    fn a_name_without_end_is_cut_between_characters() {
        let name = KernelName { pid: 1, handle: 2, name: format!("x{}", "ü".repeat(4000)) };
        let read = KernelName::from_bytes(&name.to_bytes()).expect("valid");
        assert_eq!(read.name.len(), KernelName::LONGEST - 1);
    }
}
