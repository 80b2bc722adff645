//! From an event and the wishes of a recording to `perf_event_attr`.

use perf_event::events::Raw;
use perf_event::{Builder, Clock};

use crate::record::events::{SampleInterval, SampledEvent};
use crate::record::options::CallGraph;
use crate::record::support::KernelSupport;
use crate::recording::encode::sample_type;

const SAMPLE_BRANCH_STACK: u64 = 1 << 11;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;

const FORMAT_TOTAL_TIME_ENABLED: u64 = 1 << 0;
const FORMAT_TOTAL_TIME_RUNNING: u64 = 1 << 1;
const FORMAT_ID: u64 = 1 << 2;
const FORMAT_LOST: u64 = 1 << 4;

const BRANCH_USER: u64 = 1 << 0;
const BRANCH_CALL_STACK: u64 = 1 << 11;
const BRANCH_NO_FLAGS: u64 = 1 << 14;
const BRANCH_NO_CYCLES: u64 = 1 << 15;

/// The registers an unwinder needs: all general ones, the instruction pointer and the flags.
#[cfg(target_arch = "x86_64")]
const UNWIND_REGISTERS: u64 = 0xff_0fff;
#[cfg(target_arch = "aarch64")]
const UNWIND_REGISTERS: u64 = (1 << 33) - 1;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const UNWIND_REGISTERS: u64 = (1 << 32) - 1;

/// What all events of a recording have in common.
#[derive(Debug, Clone, Copy)]
pub struct AttrSettings {
    /// What to know of the call path.
    pub call_graph: CallGraph,
    /// Samples of the kernel are not wanted or not permitted.
    pub exclude_kernel: bool,
    /// Counters start when the task they are on calls `exec`.
    pub enable_on_exec: bool,
    /// What the kernel can do.
    pub support: KernelSupport,
    /// Bytes in a ring that are worth waking up for.
    pub watermark: u32,
}

/// The attribute of one event. The `tracking` one also tells of tasks and mappings.
pub fn builder(event: &SampledEvent, settings: &AttrSettings, tracking: bool) -> Builder<'static> {
    let spec = &event.spec;
    let mut builder = Builder::new(Raw::new(spec.config[0]).config1(spec.config[1]).config2(spec.config[2]));
    let attr = builder.attrs_mut();
    attr.type_ = spec.pmu_type;
    attr.sample_type = samples(settings.call_graph);
    attr.read_format = FORMAT_ID | FORMAT_TOTAL_TIME_ENABLED | FORMAT_TOTAL_TIME_RUNNING;
    if settings.support.lost_counts {
        attr.read_format |= FORMAT_LOST;
    }
    attr.set_precise_ip(u64::from(spec.precise));

    let exclude_kernel = spec.exclude_kernel || settings.exclude_kernel;
    builder.exclude_user(spec.exclude_user).exclude_kernel(exclude_kernel).exclude_hv(exclude_kernel);
    match event.interval {
        SampleInterval::Period(period) => builder.sample_period(period),
        SampleInterval::Frequency(frequency) => builder.sample_frequency(frequency),
    };
    builder
        .enabled(false)
        .enable_on_exec(settings.enable_on_exec)
        .inherit(true)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC)
        .wakeup_watermark(settings.watermark as usize);
    match settings.call_graph {
        CallGraph::None => {}
        CallGraph::FramePointers => {
            builder.exclude_callchain_kernel(exclude_kernel);
        }
        CallGraph::Dwarf { stack_bytes } => {
            builder
                .exclude_callchain_kernel(exclude_kernel)
                .exclude_callchain_user(true)
                .sample_regs_user(UNWIND_REGISTERS)
                .sample_stack_user(stack_bytes);
        }
        CallGraph::LastBranches => {
            builder.attrs_mut().branch_sample_type =
                BRANCH_USER | BRANCH_CALL_STACK | BRANCH_NO_FLAGS | BRANCH_NO_CYCLES;
        }
    }
    if tracking {
        track_tasks(&mut builder, settings, exclude_kernel);
    }
    builder
}

fn track_tasks(builder: &mut Builder<'_>, settings: &AttrSettings, exclude_kernel: bool) {
    builder.mmap(true).mmap2(true).comm(true).comm_exec(true).task(true);
    builder.build_id(settings.support.build_ids);
    if settings.support.kernel_symbols && !exclude_kernel {
        builder.ksymbol(true).bpf_event(true);
    }
}

fn samples(call_graph: CallGraph) -> u64 {
    let common = sample_type::IDENTIFIER
        | sample_type::IP
        | sample_type::TID
        | sample_type::TIME
        | sample_type::CPU
        | sample_type::PERIOD;
    common
        | match call_graph {
            CallGraph::None => 0,
            CallGraph::FramePointers => sample_type::CALLCHAIN,
            CallGraph::Dwarf { .. } => sample_type::CALLCHAIN | SAMPLE_REGS_USER | SAMPLE_STACK_USER,
            CallGraph::LastBranches => sample_type::CALLCHAIN | SAMPLE_BRANCH_STACK,
        }
}

/// The attribute as bytes, for the file.
pub fn bytes(builder: &Builder<'_>) -> Vec<u8> {
    let attr = builder.attrs();
    let start = std::ptr::from_ref(attr).cast::<u8>();
    // SAFETY: `perf_event_attr` is plain data in the kernel's layout, without padding, and borrowed.
    unsafe { std::slice::from_raw_parts(start, size_of_val(attr)) }.to_vec()
}
