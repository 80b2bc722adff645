//! Call stacks of programs without frame pointers, from the copied top of their stacks.

use crate::recording::Recording;
use crate::recording::attr::EventAttr;
use crate::recording::format::sample_type;
use crate::recording::record::Sample;
use crate::symbolize::{Architecture, CodeMapping, StackRegisters, StackUnwinder, SymbolizeOptions};
use crate::timeline::{TaskId, Tasks};

/// Unwinds the samples of one recording.
#[derive(Debug)]
pub struct SampleUnwinder {
    unwinder: StackUnwinder,
    architecture: Architecture,
    frames: Vec<u64>,
}

impl SampleUnwinder {
    /// `None` if no event of the recording has copies of stacks, or of a processor that is not known.
    pub fn for_recording(recording: &Recording, options: &SymbolizeOptions) -> Option<Self> {
        const NEEDED: u64 = sample_type::REGS_USER | sample_type::STACK_USER;
        let has_stacks = |attr: &EventAttr| attr.sample_type & NEEDED == NEEDED;
        if !recording.events().iter().any(|event| has_stacks(&event.attr)) {
            return None;
        }
        let named = recording.features().arch.as_deref();
        let own = recording.metadata().map(|metadata| metadata.machine.arch.as_str());
        let architecture = Architecture::from_name(named.or(own)?)?;
        let unwinder = StackUnwinder::new(options.clone(), architecture);
        Some(Self { unwinder, architecture, frames: Vec::new() })
    }

    /// The user part of a sample's stack, innermost frame first; empty if it cannot be unwound.
    pub fn unwind(&mut self, tasks: &Tasks, task: TaskId, sample: &Sample<'_>) -> &[u64] {
        self.frames.clear();
        let Some(registers) = sample.user_registers.filter(|_| !sample.user_stack.is_empty()) else {
            return &self.frames;
        };
        let Some(start) = StackRegisters::select(self.architecture, |register| registers.get(register))
        else {
            return &self.frames;
        };
        let mappings = || {
            tasks.space(task).mappings().map(|mapping| CodeMapping {
                start: mapping.start,
                end: mapping.end,
                module_address: mapping.module_address,
                module: &tasks.modules()[mapping.module.0 as usize],
            })
        };
        let layout = tasks.layout_id(task).0;
        self.unwinder.unwind(layout, mappings, start, sample.user_stack, &mut self.frames);
        &self.frames
    }
}
