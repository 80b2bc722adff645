//! Callers of x86-64 functions without a frame, out of the copied top of the stack and into chains of frame pointers.

use std::fs;

use eprof::analyze::{SampleUnwinder, frames_of};
use eprof::profile::HiddenCallers;
use eprof::recording::Recording;
use eprof::symbolize::SymbolizeOptions;
use eprof::timeline::{TaskId, Tasks};
use eprof_testbed::recording_builder::{Event, File};
use perf_data::attr::EventAttr;
use perf_data::format::{feature, record_type, sample_type};
use perf_data::record::{Callchain, CpuMode, FileIdentity, Mmap, Sample, UserRegisters};
use tempfile::TempDir;

use super::support::*;

const LOADED_AT: u64 = 0x40_0000;
const PAGE: u64 = 4096;
const KERNEL: u64 = -128i64 as u64;
const USER: u64 = -512i64 as u64;
/// Somewhere in the chain, behind what is looked for.
const OUTER: [u64; 2] = [0x70_1111, 0x70_2222];

/// A process that runs the functions of `frames.s`.
struct Process {
    unwinder: SampleUnwinder,
    tasks: Tasks,
    task: TaskId,
    program: TempDir,
}

impl Process {
    /// `None`, with the reason, where there is no assembler for them.
    fn start() -> Option<Self> {
        if !cfg!(target_arch = "x86_64") || !available("cc") {
            return None;
        }
        let program = tempfile::tempdir().unwrap();
        fs::write(program.path().join("program.s"), include_str!("frames.s")).unwrap();
        run("cc", &["-nostdlib", "-shared", "program.s", "-o", "program.so"], program.path());
        let path = program.path().join("program.so");
        let fields = sample_type::IP | sample_type::CALLCHAIN | sample_type::STACK_USER;
        let attr = EventAttr { kind: 1, sample_type: fields, sample_stack_user: 64, ..EventAttr::default() };
        let mut file = File::new(vec![Event { attr, ids: vec![1], name: "cpu-clock" }]);
        file.features = vec![(feature::ARCH, file.bytes().counted_text("x86_64").bytes)];
        // Without records it would be one whose recorder was killed, and have no features.
        file.record(record_type::FINISHED_ROUND, 0, &[]);
        let recording = Recording::from_bytes(file.build()).unwrap();
        let options = SymbolizeOptions { build_id_caches: vec![], ..SymbolizeOptions::default() };
        let unwinder = SampleUnwinder::for_recording(&recording, &options).expect("stacks were copied");
        let mut tasks = Tasks::default();
        let page = offsets_of(&path, "leaf")[0] / PAGE * PAGE;
        tasks.map(&Mmap {
            pid: 7,
            tid: 7,
            address: LOADED_AT + page,
            length: PAGE,
            file_offset: page,
            path: path.to_str().unwrap().as_bytes(),
            mode: CpuMode::User,
            is_data: false,
            protection: None,
            identity: FileIdentity::Unknown,
        });
        let task = tasks.task(7, 7);
        Some(Self { unwinder, tasks, task, program })
    }

    /// The address of an instruction of a function, or of that behind its last.
    fn address(&self, function: &str, instruction: usize) -> u64 {
        LOADED_AT + offsets_of(&self.program.path().join("program.so"), function)[0] + instruction as u64
    }

    /// The user part of a sample's stack.
    fn frames(&mut self, chain: &[u64], stack: &[u64], registers: Option<UserRegisters<'_>>) -> Vec<u64> {
        let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let (chain, stack) = (bytes(chain), bytes(stack));
        let callchain = Callchain(&chain);
        let in_kernel = callchain.entries().next() == Some(KERNEL);
        let sample = Sample {
            ip: Some(callchain.entries().nth(1).unwrap_or(0)),
            mode: if in_kernel { CpuMode::Kernel } else { CpuMode::User },
            callchain,
            user_registers: registers,
            user_stack: &stack,
            ..Sample::default()
        };
        let unwound = self.unwinder.unwind(&self.tasks, self.task, &sample);
        let frames = frames_of(&sample, unwound);
        let user = frames.iter().filter(|frame| frame.mode == CpuMode::User);
        user.map(|frame| frame.address).collect()
    }
}

#[test]
fn what_a_chain_lacks_is_found_in_the_stack() {
    let Some(mut process) = Process::start() else { return };
    let [leaf, large, framed, prologue] = [("leaf", 0), ("leaf", 1), ("framed", 2), ("framed", 1)]
        .map(|(function, instruction)| process.address(function, instruction));
    // A return address is that behind the call.
    let in_framed = framed + 1;
    let mut sample = |instruction: u64, stack: &[u64]| {
        process.frames(&[USER, instruction, OUTER[0], OUTER[1]], stack, None)
    };
    assert_eq!(sample(leaf, &[in_framed, 1, 2]), [leaf, in_framed, OUTER[0], OUTER[1]]);
    assert_eq!(sample(prologue, &[9, in_framed, 2]), [prologue, in_framed, OUTER[0], OUTER[1]]);
    // A frame is set up: all is in the chain, whatever the stack has.
    assert_eq!(sample(framed, &[in_framed; 4]), [framed, OUTER[0], OUTER[1]]);
    // Two functions without a frame, one called by the other.
    let in_prologue = prologue + 1;
    assert_eq!(
        sample(leaf, &[in_prologue, 9, in_framed]),
        [leaf, in_prologue, in_framed, OUTER[0], OUTER[1]]
    );
    // The second one's caller was not copied: what is known is told.
    assert_eq!(sample(leaf, &[in_prologue, 9]), [leaf, in_prologue, OUTER[0], OUTER[1]]);
    // The largest copy that is too small, and one that is large enough.
    assert_eq!(sample(large, &[in_framed; 16]), [large, OUTER[0], OUTER[1]]);
    assert_eq!(sample(large, &[in_framed; 17]), [large, in_framed, OUTER[0], OUTER[1]]);
    // What lies there is no code: the tables are wrong.
    assert_eq!(sample(leaf, &[0x1234, in_framed]), [leaf, OUTER[0], OUTER[1]]);
    assert_eq!(sample(leaf, &[0, in_framed]), [leaf, OUTER[0], OUTER[1]]);
    assert_eq!(sample(leaf, &[]), [leaf, OUTER[0], OUTER[1]], "a thread of the kernel has no stack");
    let expected = HiddenCallers { samples: 9, found: 5, out_of_reach: 3, unknown: 0 };
    assert_eq!(process.unwinder.hidden_callers(), expected);
}

#[test]
fn behind_the_outermost_function_there_is_nothing() {
    let Some(mut process) = Process::start() else { return };
    let (leaf, outermost) = (process.address("leaf", 0), process.address("outermost", 1));
    assert_eq!(process.frames(&[USER, leaf, OUTER[0]], &[outermost], None), [leaf, outermost]);
    let first = process.address("outermost", 0);
    assert_eq!(process.frames(&[USER, first, OUTER[0]], &[outermost], None), [first, OUTER[0]]);
}

#[test]
fn a_program_that_entered_the_kernel_is_repaired_too() {
    let Some(mut process) = Process::start() else { return };
    let (leaf, in_framed) = (process.address("leaf", 0), process.address("framed", 3));
    let chain = [KERNEL, 0xffff_8000_0000_1000, USER, leaf, OUTER[0]];
    assert_eq!(process.frames(&chain, &[in_framed], None), [leaf, in_framed, OUTER[0]]);
    let kernel_alone = [KERNEL, 0xffff_8000_0000_1000];
    assert!(process.frames(&kernel_alone, &[in_framed], None).is_empty());
}

/// Recorders that copy whole stacks leave out the chain's user part; should one not do so, the longer tells more.
#[test]
fn of_a_chain_and_a_whole_stack_the_longer_is_taken() {
    const TOP: u64 = 0x7fff_0000;
    let Some(mut process) = Process::start() else { return };
    let leaf = process.address("leaf", 0);
    let (in_framed, in_outermost) = (process.address("framed", 3), process.address("outermost", 1));
    // Of leaf; then what the frame pointer points to: the caller's frame pointer and the return address.
    let stack = [in_framed, 0, 0, 0, in_outermost, 0, 0, 0, 0];
    let values: Vec<u8> = [TOP + 24, TOP, leaf].iter().flat_map(|value: &u64| value.to_le_bytes()).collect();
    let registers = Some(UserRegisters { is_64bit: true, mask: 0b111 << 6, values: &values });
    let short = [USER, leaf, OUTER[0]];
    assert_eq!(process.frames(&short, &stack, registers), [leaf, in_framed, in_outermost]);
    let long = [USER, leaf, OUTER[0], OUTER[1]];
    assert_eq!(process.frames(&long, &stack, registers), [leaf, in_framed, OUTER[0], OUTER[1]]);
    // As perf does it: the chain has nothing, and the first of the frames is the sampled instruction.
    assert_eq!(process.frames(&[USER], &stack, registers), [0, in_framed, in_outermost]);
}

#[test]
fn registers_are_those_of_a_probe_whose_chain_may_have_the_caller() {
    let Some(mut process) = Process::start() else { return };
    let (leaf, in_framed) = (process.address("leaf", 0), process.address("framed", 3));
    let registers = |is_64bit| Some(UserRegisters { is_64bit, mask: 1, values: &[0; 8] });
    let chain = [USER, leaf, in_framed, OUTER[0]];
    assert_eq!(process.frames(&chain, &[in_framed], registers(true)), [leaf, in_framed, OUTER[0]]);
    // Without a probe it is a recursion.
    assert_eq!(process.frames(&chain, &[in_framed], None), [leaf, in_framed, in_framed, OUTER[0]]);
    assert_eq!(process.frames(&[USER, leaf, OUTER[0]], &[in_framed], registers(false)), [leaf, OUTER[0]]);
}
