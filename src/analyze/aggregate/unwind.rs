//! Call stacks of programs without frame pointers, from the copied top of their stacks; and on Arm the
//! callers that frame pointers do not tell.

use perf_data::attr::EventAttr;
use perf_data::format::sample_type;
use perf_data::record::{Sample, UserRegisters};

use crate::recording::Recording;
use crate::recording::gpu_events::ARGUMENTS_STACK_BYTES;
use crate::symbolize::{Architecture, CodeMapping, StackRegisters, StackUnwinder, SymbolizeOptions};
use crate::timeline::{TaskId, Tasks};

/// Where a callchain comes to the program's own code (`PERF_CONTEXT_USER`).
const CONTEXT_USER: u64 = -512i64 as u64;
/// Arm's register `x30` in the kernel's numbering.
const LINK_REGISTER: u32 = 30;

/// Unwinds the samples of one recording.
#[derive(Debug)]
pub struct SampleUnwinder {
    unwinder: StackUnwinder,
    architecture: Architecture,
    frames: Vec<u64>,
}

impl SampleUnwinder {
    /// `None` if the stacks of no event need it, or the processor is not known.
    pub fn for_recording(recording: &Recording, options: &SymbolizeOptions) -> Option<Self> {
        let architecture = architecture(recording)?;
        let needs_it = |attr: &EventAttr| {
            attr.samples(sample_type::REGS_USER | sample_type::STACK_USER)
                || architecture == Architecture::Aarch64
                    && attr.samples(sample_type::REGS_USER | sample_type::CALLCHAIN)
        };
        if !recording.events().iter().any(|event| needs_it(&event.attr)) {
            return None;
        }
        let unwinder = StackUnwinder::new(options.clone(), architecture);
        Some(Self { unwinder, architecture, frames: Vec::new() })
    }

    /// Why the stacks that a recording has copies of are not unwound.
    pub fn obstacle(recording: &Recording) -> Option<String> {
        let copies = |attr: &EventAttr| attr.samples(sample_type::REGS_USER | sample_type::STACK_USER);
        if !recording.events().iter().any(|event| copies(&event.attr)) || architecture(recording).is_some() {
            return None;
        }
        let named = architecture_name(recording);
        let which = named.map_or_else(
            || "the recording does not tell its own".to_owned(),
            |name| format!("this is {name}"),
        );
        Some(format!(
            "only the last frames of call paths are known: copied stacks are unwound of 64-bit x86 and Arm alone, and {which}"
        ))
    }

    /// The user part of a sample's stack, innermost frame first; empty if it cannot be unwound, or if the
    /// callchain has all that there is to know.
    pub fn unwind(&mut self, tasks: &Tasks, task: TaskId, sample: &Sample<'_>) -> &[u64] {
        self.frames.clear();
        let Some(registers) = sample.user_registers else { return &self.frames };
        // So little of it is copied for a call's arguments, not to be unwound.
        if sample.user_stack.len() <= ARGUMENTS_STACK_BYTES as usize {
            self.with_caller_of_leaf(tasks, task, sample, registers);
        } else if let Some(start) =
            StackRegisters::select(self.architecture, |register| registers.get(register))
        {
            self.unwind_from(tasks, task, start, sample.user_stack);
        }
        &self.frames
    }

    /// On Arm a function that calls none, and any function in its first and last instructions, has its
    /// return address in the link register alone, so that a chain of frame pointers lacks its caller. The
    /// unwind tables tell where that is so.
    fn with_caller_of_leaf(
        &mut self,
        tasks: &Tasks,
        task: TaskId,
        sample: &Sample<'_>,
        registers: UserRegisters<'_>,
    ) {
        let Some(before) = sample.callchain.entries().rposition(|entry| entry == CONTEXT_USER) else {
            return;
        };
        let mut chain = sample.callchain.entries().skip(before + 1);
        let (Some(instruction), Some(link)) = (chain.next(), registers.get(LINK_REGISTER)) else { return };
        let start = StackRegisters::without_stack(instruction, link);
        self.unwind_from(tasks, task, start, &[]);
        self.frames.truncate(2);
        match self.frames[..] {
            [_, _] => self.frames.extend(chain),
            _ => self.frames.clear(),
        }
    }

    fn unwind_from(&mut self, tasks: &Tasks, task: TaskId, start: StackRegisters, stack: &[u8]) {
        let mappings = || {
            tasks.space(task).mappings().map(|mapping| CodeMapping {
                start: mapping.start,
                end: mapping.end,
                module_address: mapping.module_address,
                module: &tasks.modules()[mapping.module.0 as usize],
            })
        };
        self.unwinder.unwind(tasks.layout_id(task).0, mappings, start, stack, &mut self.frames);
    }
}

/// The name of the recorded processor's architecture; a recorder that was killed did not write it.
fn architecture_name(recording: &Recording) -> Option<&str> {
    let own = || recording.metadata().map(|metadata| metadata.machine.arch.as_str());
    recording.features().arch.as_deref().or_else(own)
}

/// The recorded processor's architecture, by its name or else by the registers that were copied.
fn architecture(recording: &Recording) -> Option<Architecture> {
    /// All that the kernel gives of 64-bit programs: no data segments, which x86-64 has no use for.
    const X86_64: u64 = 0xff_0fff;
    /// `x0` to `x30`, `sp` and `pc`.
    const AARCH64: u64 = (1 << 33) - 1;
    match architecture_name(recording) {
        Some(name) => Architecture::from_name(name),
        None => recording.events().iter().find_map(|event| match event.attr.sample_regs_user {
            X86_64 => Some(Architecture::X86_64),
            AARCH64 => Some(Architecture::Aarch64),
            _ => None,
        }),
    }
}
