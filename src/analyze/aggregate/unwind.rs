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
        let named = recording.features().arch.as_deref();
        let own = recording.metadata().map(|metadata| metadata.machine.arch.as_str());
        let architecture = Architecture::from_name(named.or(own)?)?;
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

    /// What the reader must know of stacks that could not be followed to their ends.
    pub fn warnings(&self) -> Vec<String> {
        self.unwinder.warnings()
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
