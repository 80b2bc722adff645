//! Call stacks of programs without frame pointers, from the copied top of their stacks; and the callers that
//! frame pointers do not tell.

use perf_data::format::sample_type;
use perf_data::record::{Callchain, Sample, UserRegisters};

use crate::analyze::aggregate::frames::entries_of;
use crate::analyze::options::Options;
use crate::profile::HiddenCallers;
use crate::recording::Recording;
use crate::recording::gpu_events::ARGUMENTS_STACK_BYTES;
use crate::symbolize::{
    Architecture, CodeMapping, ReturnAddress, ReturnAddressFinder, StackRegisters, StackUnwinder,
    SymbolizeOptions, UnwindFiles,
};
use crate::timeline::{Mapping, TaskId, Tasks};

/// Where a callchain comes to the program's own code (`PERF_CONTEXT_USER`).
pub(super) const CONTEXT_USER: u64 = -512i64 as u64;
/// Arm's register `x30` in the kernel's numbering.
const LINK_REGISTER: u32 = 30;
/// Most frames that are put before those that frame pointers tell.
const MOST_WITHOUT_FRAME: usize = 64;

/// Unwinds the samples of one recording.
#[derive(Debug)]
pub struct SampleUnwinder {
    unwinder: StackUnwinder,
    return_addresses: ReturnAddressFinder,
    architecture: Architecture,
    frames: Vec<u64>,
    hidden_callers: HiddenCallers,
}

impl SampleUnwinder {
    /// `None` if the stacks of no event need it, or the processor is not known.
    pub fn for_recording(recording: &Recording, options: &SymbolizeOptions) -> Option<Self> {
        let architecture = architecture(recording)?;
        let beside_chain = match architecture {
            Architecture::X86_64 => [sample_type::REGS_USER, sample_type::STACK_USER].as_slice(),
            Architecture::Aarch64 => &[sample_type::REGS_USER],
        };
        let has_more_than_chains = recording
            .events()
            .iter()
            .any(|event| beside_chain.iter().any(|field| event.attr.samples(sample_type::CALLCHAIN | field)));
        if !copies_stacks(recording) && !has_more_than_chains {
            return None;
        }
        let unwinder = StackUnwinder::new(options.clone(), architecture);
        let return_addresses = ReturnAddressFinder::new(options.clone());
        let hidden_callers = HiddenCallers::default();
        Some(Self { unwinder, return_addresses, architecture, frames: Vec::new(), hidden_callers })
    }

    /// The same by what is asked for, which is nothing where call stacks are not.
    pub(crate) fn of_options(recording: &Recording, options: &Options) -> Option<Self> {
        let unwinder =
            Self::for_recording(recording, &options.symbolize).filter(|_| options.dimensions.stacks);
        unwinder.map(|unwinder| unwinder.with_files(options.unwind_files.clone()))
    }

    /// With the files that others opened, all of them by the same options.
    pub fn with_files(self, opened: UnwindFiles) -> Self {
        Self {
            unwinder: self.unwinder.with_files(opened.clone()),
            return_addresses: self.return_addresses.with_files(opened),
            ..self
        }
    }

    /// How often a chain of frame pointers lacked callers that a copy of the stack may have, so far.
    pub fn hidden_callers(&self) -> HiddenCallers {
        self.hidden_callers
    }

    /// Why the stacks that a recording has copies of are not unwound.
    pub fn obstacle(recording: &Recording) -> Option<String> {
        if !copies_stacks(recording) || architecture(recording).is_some() {
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

    /// What the reader must know of stacks that could not be followed to their ends.
    pub fn warnings(&self) -> Vec<String> {
        self.unwinder.warnings()
    }

    /// The user part of a sample's stack, innermost frame first; empty if it cannot be unwound, or if the
    /// callchain has all that there is to know.
    pub fn unwind(&mut self, tasks: &Tasks, task: TaskId, sample: &Sample<'_>) -> &[u64] {
        self.frames.clear();
        let chain = user_part(sample.callchain);
        // So little of it is copied for a call's arguments, not to be unwound.
        let is_whole = sample.user_stack.len() > ARGUMENTS_STACK_BYTES as usize;
        match (self.architecture, sample.user_registers) {
            (Architecture::X86_64, registers) if !chain.is_empty() => {
                if registers.is_none_or(|registers| registers.is_64bit) && !sample.user_stack.is_empty() {
                    // Registers may be those of a call that a probe sits on. Since Linux 6.12 its chain has the caller.
                    let may_have_caller = registers.is_some();
                    self.with_callers_on_stack(tasks, task, chain, may_have_caller, sample.user_stack);
                }
                if let Some(registers) = registers.filter(|_| is_whole) {
                    // Of the two the longer: frame pointers end where there are none, and a copied stack is only so long.
                    let by_frame_pointers = std::mem::take(&mut self.frames);
                    self.unwind_whole(tasks, task, registers, sample.user_stack);
                    if self.frames.len() < by_frame_pointers.len().max(chain.len()) {
                        self.frames = by_frame_pointers;
                    }
                }
            }
            (_, Some(registers)) if is_whole => {
                self.unwind_whole(tasks, task, registers, sample.user_stack);
            }
            (_, Some(registers)) => self.with_caller_of_leaf(tasks, task, chain, registers),
            (_, None) => {}
        }
        &self.frames
    }

    fn unwind_whole(&mut self, tasks: &Tasks, task: TaskId, registers: UserRegisters<'_>, stack: &[u8]) {
        if let Some(start) = StackRegisters::select(self.architecture, |number| registers.get(number)) {
            self.unwind_from(tasks, task, start, stack);
        }
    }

    /// On Arm a function that calls none, and any function in its first and last instructions, has its
    /// return address in the link register alone, so that a chain of frame pointers lacks its caller. The
    /// unwind tables tell where that is so.
    fn with_caller_of_leaf(
        &mut self,
        tasks: &Tasks,
        task: TaskId,
        chain: Callchain<'_>,
        registers: UserRegisters<'_>,
    ) {
        let mut chain = chain.entries();
        let (Some(instruction), Some(link)) = (chain.next(), registers.get(LINK_REGISTER)) else { return };
        let start = StackRegisters::without_stack(instruction, link);
        self.unwind_from(tasks, task, start, &[]);
        self.frames.truncate(2);
        self.hidden_callers.samples += 1;
        match self.frames[..] {
            [_, _] => {
                self.hidden_callers.found += 1;
                self.frames.extend(chain);
            }
            _ => self.frames.clear(),
        }
    }

    /// On x86-64 the return address of a function that has set up no frame lies in the stack, where the unwind tables
    /// say. The chain of frame pointers goes on from the first function that has one; functions between the
    /// two are found in the same way, as far as the copied stack goes.
    ///
    /// No register is needed: the copy begins at the stack pointer, and what hangs on the frame pointer is
    /// in the chain.
    fn with_callers_on_stack(
        &mut self,
        tasks: &Tasks,
        task: TaskId,
        chain: Callchain<'_>,
        may_have_caller: bool,
        stack: &[u8],
    ) {
        let mut chain = chain.entries().peekable();
        let Some(instruction) = chain.next() else { return };
        let space = tasks.layout_id(task).0;
        let mut where_returns = |address: u64| {
            let mapping =
                || tasks.space(task).mapping_at(address).map(|mapping| code_mapping(tasks, mapping));
            self.return_addresses.find(space, address, mapping)
        };
        self.hidden_callers.samples += 1;
        self.frames.push(instruction);
        let (mut rule, mut top) = (where_returns(instruction), 0);
        while let Some(ReturnAddress::AboveStackPointer(distance)) = rule {
            let place = top + distance as usize;
            let bytes = stack.get(place..).and_then(|rest| rest.first_chunk());
            let caller = bytes.map(|bytes| u64::from_le_bytes(*bytes));
            // What is no code is no caller: tables are wrong at times, and the copy may end before the stack does.
            let found = caller.and_then(|caller| Some((caller, where_returns(caller.checked_sub(1)?)?)));
            let Some((caller, next)) = found.filter(|_| self.frames.len() <= MOST_WITHOUT_FRAME) else {
                break;
            };
            self.frames.push(caller);
            (rule, top) = (Some(next), place + size_of::<u64>());
        }
        if self.frames.len() > 1 {
            self.hidden_callers.found += 1;
            // Behind the outermost function a frame pointer means nothing.
            if rule != Some(ReturnAddress::Outermost) {
                chain.next_if(|first| may_have_caller && self.frames.last() == Some(first));
                self.frames.extend(chain);
            }
        } else {
            let is_hidden = matches!(rule, Some(ReturnAddress::AboveStackPointer(_)));
            self.hidden_callers.out_of_reach += u64::from(is_hidden);
            self.frames.clear();
        }
    }

    fn unwind_from(&mut self, tasks: &Tasks, task: TaskId, start: StackRegisters, stack: &[u8]) {
        let mappings = || tasks.space(task).mappings().map(|mapping| code_mapping(tasks, mapping));
        self.unwinder.unwind(tasks.layout_id(task).0, mappings, start, stack, &mut self.frames);
    }
}

/// The user part of a sample's stack as [`SampleUnwinder::unwind`] finds it, if there is something to find.
#[inline]
pub(crate) fn unwound<'u>(
    unwinder: &'u mut Option<SampleUnwinder>,
    tasks: &Tasks,
    task: TaskId,
    sample: &Sample<'_>,
) -> &'u [u64] {
    match unwinder {
        Some(unwinder) => unwinder.unwind(tasks, task, sample),
        None => &[],
    }
}

/// Whether samples have what a whole stack is unwound from.
pub(crate) fn copies_stacks(recording: &Recording) -> bool {
    let copied = sample_type::REGS_USER | sample_type::STACK_USER;
    recording.events().iter().any(|event| event.attr.samples(copied))
}

fn has_chains(recording: &Recording) -> bool {
    recording.events().iter().any(|event| event.attr.samples(sample_type::CALLCHAIN))
}

/// Whether samples tell who called.
pub(crate) fn follows_calls(recording: &Recording) -> bool {
    has_chains(recording) || copies_stacks(recording)
}

/// Whether samples have at least the top of the stack, where callers of leaf functions are.
pub(crate) fn copies_tops_of_stacks(recording: &Recording) -> bool {
    recording.events().iter().any(|event| event.attr.samples(sample_type::STACK_USER))
}

/// Whether chains of frame pointers are all there is: callers that they lack can be counted, and not found.
pub(crate) fn hides_callers(recording: &Recording) -> bool {
    has_chains(recording)
        && !copies_tops_of_stacks(recording)
        && architecture(recording) == Some(Architecture::X86_64)
}

/// Finds return addresses of a recording's chains of frame pointers; `None` where there are no such chains, or the
/// processor is not 64-bit x86.
pub(crate) fn finder_of_chains(recording: &Recording, options: &Options) -> Option<ReturnAddressFinder> {
    let is_of_chains = has_chains(recording) && !copies_stacks(recording);
    let is_x86 = architecture(recording) == Some(Architecture::X86_64);
    (is_of_chains && is_x86)
        .then(|| ReturnAddressFinder::new(options.symbolize.clone()).with_files(options.unwind_files.clone()))
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

pub(crate) fn code_mapping<'a>(tasks: &'a Tasks, mapping: &Mapping) -> CodeMapping<'a> {
    let Mapping { start, end, module_address, module } = *mapping;
    CodeMapping { start, end, module_address, module: &tasks.modules()[module.0 as usize] }
}

/// What a callchain says of the program's own code; nothing if that was not recorded.
pub(super) fn user_part(chain: Callchain<'_>) -> Callchain<'_> {
    let part = last_of(entries_of(chain), CONTEXT_USER)
        .and_then(|last| chain.0.get(size_of::<u64>() * (last + 1)..));
    Callchain(part.unwrap_or_default())
}

/// The place of the last entry that is this marker. Most often that is one of the first of many. Markers have their highest bit
/// set, as addresses of programs have not: one look at what eight of them have together tells that none of these is a marker.
fn last_of(entries: &[[u8; 8]], wanted: u64) -> Option<usize> {
    let is_wanted = |entry: &[u8; 8]| u64::from_le_bytes(*entry) == wanted;
    let (first, eights) = entries.as_rchunks::<8>();
    for (number, eight) in eights.iter().enumerate().rev() {
        let together = eight.iter().fold(0, |together, entry| together | u64::from_le_bytes(*entry));
        if together & wanted == wanted
            && let Some(at) = eight.iter().rposition(is_wanted)
        {
            return Some(first.len() + 8 * number + at);
        }
    }
    first.iter().rposition(is_wanted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_last_entry_is_found(entries in prop::collection::vec(0u64..5, 0..40)) {
            // Of several of them together that are not the marker some have all of its bits.
            const KINDS: [u64; 5] = [CONTEXT_USER, -128i64 as u64, 0x7fff_1234, 0xffff_ffff_8100_0000, 1];
            let entries: Vec<u64> = entries.into_iter().map(|kind| KINDS[kind as usize]).collect();
            let bytes: Vec<[u8; 8]> = entries.iter().map(|entry| entry.to_le_bytes()).collect();
            for wanted in KINDS {
                let expected = entries.iter().rposition(|entry| *entry == wanted);
                prop_assert_eq!(last_of(&bytes, wanted), expected);
            }
        }
    }

    #[test]
    fn a_recording_without_copies_of_stacks_has_no_obstacle() {
        let recording = crate::analyze::fixture::recording_of_stacks(&[vec![1, 2]]);
        assert_eq!(SampleUnwinder::obstacle(&recording), None);
        assert!(!copies_stacks(&recording) && !copies_tops_of_stacks(&recording));
    }

    /// On Arm, where of a stack that is too short the link register tells the caller.
    #[test]
    fn what_is_copied_for_the_arguments_of_a_call_is_no_stack() {
        let options = SymbolizeOptions::default();
        let mut tasks = Tasks::default();
        let task = tasks.task(1, 1);
        let callchain: Vec<u8> =
            [CONTEXT_USER, 0x1000].iter().flat_map(|entry: &u64| entry.to_le_bytes()).collect();
        let values = 0x2000u64.to_le_bytes();
        let registers = UserRegisters { is_64bit: true, mask: 1 << LINK_REGISTER, values: &values };
        let mut asks_for_the_caller = |bytes: usize| {
            let mut unwinder = SampleUnwinder {
                unwinder: StackUnwinder::new(options.clone(), Architecture::Aarch64),
                return_addresses: ReturnAddressFinder::new(options.clone()),
                architecture: Architecture::Aarch64,
                frames: Vec::new(),
                hidden_callers: HiddenCallers::default(),
            };
            let stack = vec![0; bytes];
            let sample = Sample {
                callchain: Callchain(&callchain),
                user_registers: Some(registers),
                user_stack: &stack,
                ..Sample::default()
            };
            unwinder.unwind(&tasks, task, &sample);
            unwinder.hidden_callers.samples == 1
        };
        let most = ARGUMENTS_STACK_BYTES as usize;
        assert_eq!([0, most, most + 1].map(&mut asks_for_the_caller), [true, true, false]);
    }

    /// A stack in code of which nothing is known has its instruction, at least.
    #[test]
    fn a_copied_stack_is_unwound_where_there_is_what_unwinds_it() {
        let options = SymbolizeOptions::default();
        let mut tasks = Tasks::default();
        let task = tasks.task(1, 1);
        let values: Vec<u8> = [0u64, 0, 0x7000, 0x1234].into_iter().flat_map(u64::to_le_bytes).collect();
        // `x29`, `x30`, `sp` and `pc`.
        let registers = UserRegisters { is_64bit: true, mask: 0b1111 << 29, values: &values };
        let stack = [0; 4096];
        let sample = Sample { user_registers: Some(registers), user_stack: &stack, ..Sample::default() };
        let mut unwinder = Some(SampleUnwinder {
            unwinder: StackUnwinder::new(options.clone(), Architecture::Aarch64),
            return_addresses: ReturnAddressFinder::new(options),
            architecture: Architecture::Aarch64,
            frames: Vec::new(),
            hidden_callers: HiddenCallers::default(),
        });
        assert_eq!(unwound(&mut unwinder, &tasks, task, &sample).first(), Some(&0x1234));
        assert!(unwound(&mut None, &tasks, task, &sample).is_empty());
    }
}
