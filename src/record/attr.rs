//! From an event and the wishes of a recording to `perf_event_attr`.

use perf_data::ByteOrder;
use perf_data::attr::{EventAttr, flag};
use perf_data::format::{event_type, read_format, sample_type};
use perf_event::events::Raw;
use perf_event::{Builder, Clock};

use crate::machine::EventSpec;
use crate::record::options::CallGraph;
use crate::record::sampled_event::{SampleInterval, SampledEvent};
use crate::record::support::KernelSupport;

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

/// Where a chain of frame pointers does not tell the caller of a function without a frame: on Arm it is in the link
/// register (`x30`), on x86-64 near the top of the stack.
///
/// The copied stack comes without registers. It begins at the stack pointer, which is all that is needed; and
/// where both are there, perf takes it for a whole stack, and puts what it finds there behind the chain.
#[cfg(target_arch = "aarch64")]
const HIDDEN_CALLER: HiddenCaller = HiddenCaller::Registers(1 << 30);
#[cfg(target_arch = "x86_64")]
const HIDDEN_CALLER: HiddenCaller = HiddenCaller::Stack;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const HIDDEN_CALLER: HiddenCaller = HiddenCaller::Nowhere;

/// Where a processor has the caller that a chain of frame pointers lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "each processor has one of them")]
enum HiddenCaller {
    Registers(u64),
    Stack,
    Nowhere,
}

/// What all events of a recording have in common.
#[derive(Debug, Clone, Copy)]
pub struct AttrSettings {
    /// What to know of the call path.
    pub call_graph: CallGraph,
    /// Samples of the kernel are not wanted or not permitted.
    pub exclude_kernel: bool,
    /// Counters start when the task they are on calls `exec`.
    pub enable_on_exec: bool,
    /// Samples tell the control group of their task.
    pub cgroups: bool,
    /// What the kernel can do.
    pub support: KernelSupport,
}

/// The attribute of one event. The `tracking` one also tells of tasks and mappings.
pub fn builder(event: &SampledEvent, settings: &AttrSettings, tracking: bool) -> Builder<'static> {
    let EventSpec { perf_type, config, mut config1, mut config2, modifiers, .. } = event.spec;
    let mut call_graph = settings.call_graph;
    if let Some(probe) = &event.probe {
        if !probe.by_program {
            // The path is text of this process, which the kernel reads when the event is opened.
            (config1, config2) = (probe.path.as_ptr().expose_provenance() as u64, probe.offset);
        }
        call_graph = if probe.with_call_path { call_graph } else { CallGraph::None };
    }
    let exclude_kernel = modifiers.exclude_kernel || settings.exclude_kernel;
    let mut builder = Builder::new(Raw::new(config).config1(config1).config2(config2));
    builder
        .exclude_user(modifiers.exclude_user)
        .exclude_kernel(exclude_kernel)
        .exclude_hv(modifiers.exclude_hv || settings.exclude_kernel)
        .exclude_host(modifiers.exclude_host)
        .exclude_guest(modifiers.exclude_guest)
        .exclude_idle(modifiers.exclude_idle)
        .pinned(modifiers.pinned)
        .enabled(false)
        .enable_on_exec(settings.enable_on_exec && event.probe.is_none())
        // To inherit a probe the kernel reads its path anew, in the memory of the task that makes a thread,
        // and fails that with EFAULT.
        .inherit(event.probe.is_none())
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC);
    let attr = builder.attrs_mut();
    attr.type_ = perf_type;
    attr.sample_type = sample_fields(call_graph);
    if perf_type == event_type::TRACEPOINT {
        attr.sample_type |= sample_type::RAW;
    }
    if settings.cgroups {
        attr.sample_type |= sample_type::CGROUP;
    }
    attr.read_format = read_format::ID | read_format::TOTAL_TIME_ENABLED | read_format::TOTAL_TIME_RUNNING;
    if settings.support.lost_counts {
        attr.read_format |= read_format::LOST;
    }
    attr.set_precise_ip(u64::from(modifiers.precise));
    match event.interval {
        SampleInterval::Period(period) => builder.sample_period(period),
        SampleInterval::Frequency(frequency) => {
            // Each sample has a period of its own.
            attr.sample_type |= sample_type::PERIOD;
            builder.sample_frequency(frequency)
        }
    };
    // A watermark of zero bytes wakes the recorder when the ring is half full, whatever its size.
    builder.attrs_mut().set_watermark(1);
    follow_calls(&mut builder, call_graph, exclude_kernel);
    if let Some(probe) = &event.probe {
        let attr = builder.attrs_mut();
        attr.sample_type |= sample_type::REGS_USER;
        attr.sample_regs_user |= probe.registers;
        if probe.stack_bytes > 0 {
            attr.sample_type |= sample_type::STACK_USER;
            attr.sample_stack_user = attr.sample_stack_user.max(probe.stack_bytes);
        }
    }
    if tracking {
        track_tasks(&mut builder, settings, exclude_kernel);
    }
    builder
}

fn follow_calls(builder: &mut Builder<'_>, call_graph: CallGraph, exclude_kernel: bool) {
    match call_graph {
        CallGraph::None => {}
        CallGraph::FramePointers { stack_bytes } => {
            builder.exclude_callchain_kernel(exclude_kernel);
            let attr = builder.attrs_mut();
            match HIDDEN_CALLER {
                HiddenCaller::Registers(registers) => attr.sample_regs_user |= registers,
                HiddenCaller::Stack => attr.sample_stack_user = stack_bytes,
                HiddenCaller::Nowhere => {}
            }
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
}

fn track_tasks(builder: &mut Builder<'_>, settings: &AttrSettings, exclude_kernel: bool) {
    builder.mmap(true).mmap2(true).comm(true).comm_exec(true).task(true);
    builder.attrs_mut().set_cgroup(u64::from(settings.cgroups));
    if settings.support.kernel_symbols && !exclude_kernel {
        builder.ksymbol(true).bpf_event(true);
    }
}

fn sample_fields(call_graph: CallGraph) -> u64 {
    let call_path = match call_graph {
        CallGraph::None => 0,
        CallGraph::FramePointers { stack_bytes } => match HIDDEN_CALLER {
            HiddenCaller::Registers(_) => sample_type::CALLCHAIN | sample_type::REGS_USER,
            HiddenCaller::Stack if stack_bytes > 0 => sample_type::CALLCHAIN | sample_type::STACK_USER,
            HiddenCaller::Stack | HiddenCaller::Nowhere => sample_type::CALLCHAIN,
        },
        CallGraph::Dwarf { .. } => sample_type::CALLCHAIN | sample_type::REGS_USER | sample_type::STACK_USER,
        CallGraph::LastBranches => sample_type::CALLCHAIN | sample_type::BRANCH_STACK,
    };
    sample_type::IDENTIFIER
        | sample_type::IP
        | sample_type::TID
        | sample_type::TIME
        | sample_type::CPU
        | call_path
}

/// The attribute as the file has it: without the address of a probe's path, which means nothing there; and with the
/// build-ids that the recorder itself writes into mappings.
pub fn of(builder: &Builder<'_>, event: &SampledEvent) -> EventAttr {
    let attr = builder.attrs();
    let start = std::ptr::from_ref(attr).cast::<u8>();
    // SAFETY: `perf_event_attr` is plain data in the kernel's layout, without padding, and borrowed.
    let bytes = unsafe { std::slice::from_raw_parts(start, size_of_val(attr)) };
    // It is longer than the shortest attribute, so it is always read.
    let attr = EventAttr::from_bytes(bytes, ByteOrder::Little).unwrap_or_default();
    let build_ids = if attr.has(flag::MMAP2) { flag::BUILD_ID } else { 0 };
    let config1 = if event.probe.is_some() { 0 } else { attr.config1 };
    EventAttr { config1, flags: attr.flags | build_ids, ..attr }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Roots, resolve_event};
    use crate::record::options::SamplingRate;

    fn attr_of(event: &str, call_graph: CallGraph, tracking: bool) -> EventAttr {
        let folder = tempfile::tempdir().expect("folder");
        let spec = resolve_event(&Roots::under(folder.path()), event).expect("known").remove(0);
        let support = KernelSupport { lost_counts: true, kernel_symbols: true, cgroups: true };
        let settings = AttrSettings {
            call_graph,
            exclude_kernel: false,
            enable_on_exec: true,
            cgroups: tracking,
            support,
        };
        let event = SampledEvent::new(spec, None, SamplingRate::Period(5));
        of(&builder(&event, &settings, tracking), &event)
    }

    #[test]
    fn an_event_says_what_was_asked_of_it() {
        let attr = attr_of("cycles:uP", CallGraph::FramePointers { stack_bytes: 0 }, true);
        assert_eq!((attr.kind, attr.config, attr.sample_period), (0, 0, 5));
        assert!(attr.has(flag::DISABLED | flag::INHERIT | flag::ENABLE_ON_EXEC | flag::SAMPLE_ID_ALL));
        assert!(
            attr.has(flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV | flag::MMAP2 | flag::COMM_EXEC | flag::TASK)
        );
        assert!(attr.has(flag::BUILD_ID), "written by the recorder");
        assert!(!attr.has(flag::EXCLUDE_USER) && !attr.has(flag::KSYMBOL));
        assert!(attr.has(flag::CGROUP) && attr.samples(sample_type::CGROUP));
        assert_eq!(attr.clock(), Some(libc::CLOCK_MONOTONIC));
        assert!(attr.samples(sample_type::IDENTIFIER | sample_type::CALLCHAIN));
        assert!(!attr.samples(sample_type::PERIOD), "each sample's period is the attribute's");
        assert_eq!(attr.read_format, 0b10111);
        assert!(!attr.samples(sample_type::STACK_USER));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn hidden_callers_come_with_a_little_of_the_stack_and_no_registers() {
        let attr = attr_of("cpu-clock", CallGraph::FramePointers { stack_bytes: 96 }, false);
        assert!(attr.samples(sample_type::CALLCHAIN | sample_type::STACK_USER));
        assert!(!attr.samples(sample_type::REGS_USER) && !attr.has(flag::EXCLUDE_CALLCHAIN_USER));
        assert_eq!((attr.sample_stack_user, attr.sample_regs_user), (96, 0));
    }

    #[test]
    fn only_the_tracking_event_tells_of_tasks() {
        let attr = attr_of("instructions", CallGraph::None, false);
        assert!(!attr.has(flag::BUILD_ID));
        assert!(!attr.has(flag::MMAP) && !attr.has(flag::COMM) && !attr.has(flag::TASK));
        assert!(!attr.has(flag::CGROUP) && !attr.samples(sample_type::CGROUP), "not asked for");
        assert!(!attr.samples(sample_type::CALLCHAIN));
    }

    #[test]
    fn a_copied_stack_comes_with_registers_and_without_the_users_callchain() {
        let attr = attr_of("cpu-clock", CallGraph::Dwarf { stack_bytes: 1024 }, false);
        assert_eq!(attr.sample_stack_user, 1024);
        assert_ne!(attr.sample_regs_user, 0);
        assert!(attr.has(flag::EXCLUDE_CALLCHAIN_USER));
    }
}
