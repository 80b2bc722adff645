use std::collections::HashSet;

use perf_data::record::{BranchStack, Callchain};
use proptest::prelude::*;

use super::*;
use crate::analyze::aggregate::frames::{FIRST_MARKER, frames_of, mode_of_marker};
use crate::profile::DEEPEST_CHAIN;

const KERNEL: u64 = -128i64 as u64;
const USER: u64 = -512i64 as u64;

fn chain(entries: &[u64]) -> Vec<u8> {
    entries.iter().flat_map(|entry| entry.to_le_bytes()).collect()
}

/// What is told of a sample's frames.
fn told(sample: &Sample<'_>) -> Vec<(u64, CpuMode, bool)> {
    frames_of(sample, &[]).iter().map(|frame| (frame.address, frame.mode, frame.is_return)).collect()
}

/// `enum perf_callchain_context` of the kernel's perf_event.h.
#[test]
fn every_marker_is_known() {
    let modes = [
        (-32, CpuMode::Hypervisor),
        (-128, CpuMode::Kernel),
        (-512, CpuMode::User),
        (-2048, CpuMode::GuestKernel),
        (-2176, CpuMode::GuestKernel),
        (-2560, CpuMode::GuestUser),
    ];
    for (marker, mode) in modes {
        assert_eq!(mode_of_marker(i64::cast_unsigned(marker)), Some(mode), "{marker}");
    }
    assert_eq!([0, 32, 4095, u64::MAX].map(mode_of_marker), [None; 4]);
}

#[test]
fn markers_change_the_mode_and_only_callers_are_return_addresses() {
    let bytes = chain(&[KERNEL, 0xf001, 0xf002, USER, 0x11, 0x12]);
    let callchain = Callchain(&bytes);
    let sample = Sample { ip: Some(0xf001), mode: CpuMode::Kernel, callchain, ..Sample::default() };
    assert_eq!(
        told(&sample),
        [
            (0xf001, CpuMode::Kernel, false),
            (0xf002, CpuMode::Kernel, true),
            (0x11, CpuMode::User, false),
            (0x12, CpuMode::User, true),
        ]
    );
}

/// Addresses from -4095 on are markers, also those that nobody has given a meaning yet; what lies below is code.
#[test]
fn the_last_page_holds_markers_alone() {
    let first = -4095i64 as u64;
    let bytes = chain(&[first, KERNEL, 0xf001, first - 1, first, 0xf002, u64::MAX, 0xf003]);
    let callchain = Callchain(&bytes);
    let sample = Sample { ip: Some(0xf001), mode: CpuMode::Kernel, callchain, ..Sample::default() };
    let kernel = CpuMode::Kernel;
    // What stands behind a marker is no return address.
    assert_eq!(
        told(&sample),
        [
            (0xf001, kernel, false),
            (first - 1, kernel, true),
            (0xf002, kernel, false),
            (0xf003, kernel, false)
        ]
    );
}

#[test]
fn what_stands_around_the_instruction_itself() {
    let bytes = chain(&[KERNEL, 0xf001, 0xf002, USER]);
    let callchain = Callchain(&bytes);
    let sample = Sample { ip: Some(0xf001), mode: CpuMode::Kernel, callchain, ..Sample::default() };
    assert_eq!(around_own(&sample), (&chain(&[KERNEL])[..], &chain(&[0xf002, USER])[..]));
    // Of a sample without an instruction all of it are callers.
    let sample = Sample { ip: None, ..sample };
    assert_eq!(around_own(&sample), (&bytes[..], &[][..]));
}

#[test]
fn an_unwound_stack_stands_for_the_user_part_of_the_callchain() {
    let bytes = chain(&[KERNEL, 0xf001, USER, 0x11, 0x99]);
    let callchain = Callchain(&bytes);
    let in_kernel = Sample { ip: Some(0xf001), mode: CpuMode::Kernel, callchain, ..Sample::default() };
    let frames = |sample: &Sample<'_>| -> Vec<_> {
        frames_of(sample, &[0x11, 0x12]).iter().map(|frame| (frame.address, frame.is_return)).collect()
    };
    assert_eq!(frames(&in_kernel), [(0xf001, false), (0x11, false), (0x12, true)]);
    let in_user = Sample { ip: Some(0x11), mode: CpuMode::User, ..Sample::default() };
    assert_eq!(frames(&in_user), [(0x11, false), (0x12, true)]);
}

#[test]
fn a_users_event_that_is_late_keeps_the_programs_frames() {
    let bytes = chain(&[USER, 0x11, 0x12]);
    let callchain = Callchain(&bytes);
    let sample = Sample { ip: Some(0xf001), mode: CpuMode::Kernel, callchain, ..Sample::default() };
    assert_eq!(
        told(&sample),
        [(0xf001, CpuMode::Kernel, false), (0x11, CpuMode::User, false), (0x12, CpuMode::User, true),]
    );
}

fn branches(entries: &[(u64, u64)]) -> Vec<u8> {
    entries.iter().flat_map(|&(from, to)| [from, to, 0]).flat_map(u64::to_le_bytes).collect()
}

#[test]
fn calls_that_the_cpu_kept_are_the_callers_in_the_program() {
    let calls = branches(&[(0x21, 0x10), (0x31, 0x20)]);
    let frames = |are_calls, mode, entries: &[u64]| -> Vec<_> {
        let bytes = chain(entries);
        let branch_stack = BranchStack { bytes: &calls, are_calls };
        let ip = entries.iter().copied().find(|entry| *entry < FIRST_MARKER);
        let callchain = Callchain(&bytes);
        let sample = Sample { ip, mode, callchain, branch_stack, ..Sample::default() };
        told(&sample).into_iter().map(|(address, _, is_return)| (address, is_return)).collect()
    };
    let (user, kernel) = (CpuMode::User, CpuMode::Kernel);
    assert_eq!(frames(true, user, &[USER, 0x15, 0x99]), [(0x15, false), (0x21, false), (0x31, false)]);
    let in_kernel = [(0xf001, false), (0xf002, true), (0x15, false), (0x21, false), (0x31, false)];
    assert_eq!(frames(true, kernel, &[KERNEL, 0xf001, 0xf002, USER, 0x15, 0x99]), in_kernel);
    // Without the place in the program: where the last call led to.
    let entered = [(0xf001, false), (0x10, false), (0x21, false), (0x31, false)];
    assert_eq!(frames(true, kernel, &[KERNEL, 0xf001, USER]), entered);
    // Of a kernel thread the CPU's branches are another task's.
    assert_eq!(frames(true, kernel, &[KERNEL, 0xf001, 0xf002]), [(0xf001, false), (0xf002, true)]);
    assert_eq!(frames(false, user, &[USER, 0x15, 0x99]), [(0x15, false), (0x99, true)], "any branches");
}

#[test]
fn what_is_not_told_apart_is_alike() {
    let mut tasks = Tasks::default();
    let (one, two) = (tasks.task(1, 1), tasks.task(2, 2));
    for pid in [1, 2] {
        tasks.map_jit_function(pid, 0x10, 0x30, "code");
    }
    let (a, b) = (chain(&[USER, 0x10, 0x20]), chain(&[USER, 0x10, 0x30]));
    let of = |bytes| Sample {
        ip: Some(0x10),
        mode: CpuMode::User,
        callchain: Callchain(bytes),
        ..Sample::default()
    };
    let parts = |key: SampleKey| (key.callers, key.own, key.thread);
    for (dimensions, alike) in
        [(Dimensions::ALL, false), (Dimensions { stacks: false, threads: false, cpus: false }, true)]
    {
        let mut collector = Collector::new(dimensions, usize::MAX);
        let first = collector.key(&mut tasks, one, &of(&a), &[]);
        let again = collector.key(&mut tasks, one, &of(&a), &[]);
        assert_eq!(parts(first), parts(again));
        let other = collector.key(&mut tasks, two, &of(&b), &[]);
        assert_eq!(first.callers == other.callers, alike);
        assert_eq!(first.thread == other.thread, alike);
    }
}

/// The same addresses are other code in another process.
#[test]
fn callers_of_two_processes_are_never_the_same() {
    let mut tasks = Tasks::default();
    let (one, two) = (tasks.task(1, 1), tasks.task(2, 2));
    for pid in [1, 2] {
        tasks.map_jit_function(pid, 0x1000, 0x500, "code");
    }
    let bytes = chain(&[USER, 0x1010, 0x1120, 0x1230]);
    let callchain = Callchain(&bytes);
    let sample = Sample { ip: Some(0x1010), mode: CpuMode::User, callchain, ..Sample::default() };
    for asked in [None, Some(FunctionsOfStacks::Paths), Some(FunctionsOfStacks::Sets)] {
        let mut collector = Collector::new(Dimensions::ALL, usize::MAX);
        let first = collector.key(&mut tasks, one, &sample, &[]);
        if let Some(asked) = asked {
            let module = collector.addresses()[0].module;
            let start = collector.addresses()[0].address & !0xff;
            let extents =
                [0, 1, 2].map(|at| (start + 0x100 * at, start + 0x100 * (at + 1), AddressId(at as u32)));
            collector.merge_functions(Functions::of_extents(module, &extents), asked);
        }
        let keys = [one, two, one, two].map(|task| collector.key(&mut tasks, task, &sample, &[]));
        assert_eq!((keys[0].callers, keys[1].callers), (keys[2].callers, keys[3].callers));
        assert_ne!(keys[0].callers, keys[1].callers, "{asked:?}");
        assert_ne!(keys[0].own.get(), keys[1].own.get(), "{asked:?}");
        assert_eq!(keys[0].thread, first.thread);
    }
}

/// Innermost first: `A` and `C` are code that something returns to, `B` is code that nothing returns to, `N` lies nowhere.
#[test]
fn paths_end_before_what_nothing_returns_to() {
    let mut tasks = Tasks::default();
    let task = tasks.task(1, 1);
    tasks.map_jit_function(1, 0x1000, 0x500, "code");
    let mut collector = Collector::new(Dimensions::ALL, usize::MAX);
    let spaces = collector.located.number_of((tasks.space_id(task), tasks.kernel_space_id()));
    let mut located = |address| {
        let frame = Frame { mode: CpuMode::User, address, is_return: true };
        collector.located(&mut tasks, task, spaces, frame).0
    };
    let [a, b, c, n] = [0x1010, 0x1120, 0x1230, 0xdead_0000].map(&mut located);
    collector.no_return_addresses.insert(b);
    assert!(!collector.may_stand(b) && collector.may_stand(a));
    for (path, expected) in [
        (vec![a, c, b], vec![a, c]),
        (vec![a, b, c], vec![a, b, c]),
        (vec![a, b, n], vec![a]),
        (vec![a, n, b], vec![a, n]),
        (vec![a, b, b, n, b], vec![a]),
        (vec![a, n, n], vec![a, n, n]),
        (vec![b], vec![]),
        (vec![], vec![]),
    ] {
        let mut ended = path.clone();
        collector.end_where_nothing_returns(&tasks, &mut ended);
        assert_eq!(ended, expected, "{path:?}");
    }
}

#[test]
fn frames_in_a_row_that_lie_nowhere_are_one() {
    let mut tasks = Tasks::default();
    let task = tasks.task(1, 1);
    tasks.map_jit_function(1, 0x1000, 0x1000, "code");
    let garbage: Vec<u64> = (0..127).map(|at| 0xdead_0000 + 8 * at).collect();
    let mut depth = |ip: u64, callers: &[u64]| {
        let mut collector = Collector::new(Dimensions::ALL, usize::MAX);
        let bytes = chain(&[&[USER, ip], callers].concat());
        let sample =
            Sample { ip: Some(ip), mode: CpuMode::User, callchain: Callchain(&bytes), ..Sample::default() };
        let key = collector.key(&mut tasks, task, &sample, &[]);
        // The same callers again, and below code that is known.
        assert_eq!(collector.key(&mut tasks, task, &sample, &[]).callers, key.callers);
        let known = Sample { ip: Some(0x1800), ..sample };
        let below = collector.key(&mut tasks, task, &known, &[]).callers;
        let table = collector.finish().callers;
        [key.callers, below].map(|callers| table.frames_of_callers(callers).count())
    };
    assert_eq!(depth(0x1010, &garbage), [1, 1]);
    assert_eq!(depth(0xdead_9000, &garbage), [0, 1], "a frame that lies nowhere is one with its callers");
    let around = [&garbage[..50], &[0x1020], &garbage[50..], &[0x1030]].concat();
    assert_eq!(depth(0x1010, &around), [4, 4]);
    assert_eq!(depth(0xdead_9000, &around), [3, 4]);
}

proptest! {
    /// As a set of functions a stack has the functions that it has as a path, each once but for those of the sampled
    /// instruction, and all frames that are of no known function; where some lie nowhere, it is the path itself.
    #[test]
    fn sets_have_the_functions_of_paths(
        stacks in prop::collection::vec(prop::collection::vec(0u64..0x600, 1..12), 1..40),
        deep in 0usize..3,
    ) {
        let mut tasks = Tasks::default();
        let task = tasks.task(1, 1);
        tasks.map_jit_function(1, 0x1000, 0x500, "code");
        let paths = |asked: FunctionsOfStacks, tasks: &mut Tasks| {
            let mut collector = Collector::new(Dimensions::ALL, usize::MAX);
            let mut key = |collector: &mut Collector, stack: &[u64]| {
                let entries: Vec<u64> =
                    [USER].into_iter().chain(stack.iter().map(|at| 0x1000 + at)).collect();
                let bytes = chain(&entries);
                let ip = Some(entries[1]);
                let callchain = Callchain(&bytes);
                let sample = Sample { ip, mode: CpuMode::User, callchain, ..Sample::default() };
                collector.key(tasks, task, &sample, &[])
            };
            // One that stands for each of four functions; what lies behind them is no function's.
            for function in 0..4 {
                key(&mut collector, &[0x100 * function]);
            }
            let [first, ..] = collector.addresses() else { panic!("there are addresses") };
            let (module, start) = (first.module, first.address);
            let extent = |function: u32| {
                let start = start + 0x100 * u64::from(function);
                (start, start + 0x100, AddressId(function))
            };
            let functions = Functions::of_extents(module, &[0, 1, 2, 3].map(extent));
            collector.merge_functions(functions, asked);
            let keys: Vec<SampleKey> = stacks
                .iter()
                .map(|stack| key(&mut collector, &stack.repeat(if deep == 0 { 20 } else { 1 })))
                .collect();
            let table = collector.finish().callers;
            let path = |key: &SampleKey| -> Vec<u32> {
                table.frames_of_callers(key.callers).map(|frame| frame.0).collect()
            };
            keys.iter().map(|key| (key.own.get(), path(key))).collect::<Vec<_>>()
        };
        let whole = paths(FunctionsOfStacks::Paths, &mut tasks);
        let sets = paths(FunctionsOfStacks::Sets, &mut tasks);
        let different = |found: &[(_, Vec<u32>)]| found.iter().cloned().collect::<HashSet<_>>().len();
        prop_assert!(different(&sets) <= different(&whole), "what is one path is one set");
        for ((stack, (own, whole)), (own_of_set, set)) in stacks.iter().zip(&whole).zip(&sets) {
            prop_assert_eq!(own, own_of_set);
            let depth = stack.len() * if deep == 0 { 20 } else { 1 };
            let is_clear = stack.iter().all(|at| (1..0x500).contains(at));
            if depth >= usize::from(DEEPEST_CHAIN) || !is_clear && set == whole {
                prop_assert_eq!(set, whole);
                continue;
            }
            let are = |is_function: bool, path: &[u32]| -> Vec<u32> {
                path.iter().copied().filter(|at| (*at < 4) == is_function).collect()
            };
            let (mut functions, mut of_set) = (are(true, whole), are(true, set));
            functions.sort_unstable();
            functions.dedup();
            of_set.sort_unstable();
            prop_assert_eq!(functions, of_set);
            prop_assert_eq!(are(false, whole), are(false, set));
        }
    }
}

#[test]
fn addresses_of_callers_are_told_apart_until_there_is_no_room() {
    let mut tasks = Tasks::default();
    let task = tasks.task(1, 1);
    tasks.map_jit_function(1, 0x1000, 0x1000, "code");
    let mut addresses = |room: usize| {
        let mut collector =
            Collector::new(Dimensions::ALL, usize::MAX).with_room_for_addresses(room * BYTES_PER_ADDRESS);
        let bytes = chain(&[USER, 0x1010, 0x1120, 0x1230, 0x1340]);
        let callchain = Callchain(&bytes);
        let sample = Sample { ip: Some(0x1010), mode: CpuMode::User, callchain, ..Sample::default() };
        collector.key(&mut tasks, task, &sample, &[]);
        (collector.addresses().len(), collector.warning().is_some())
    };
    // The sample's own, and its callers or what stands for all that were too many.
    assert_eq!([4, 3, 2].map(&mut addresses), [(4, false), (4, true), (3, true)]);
}

/// A recorder that took anything for return addresses: 200 stacks of 8,100 addresses, none of them twice.
#[test]
fn callers_beyond_the_room_for_addresses_are_one_function() {
    const STACKS: u64 = 200;
    const DEPTH: u64 = 8_100;
    const ROOM: usize = 1_000;
    let mut tasks = Tasks::default();
    let task = tasks.task(1, 1);
    tasks.map_jit_function(1, 0x1000, 1 << 31, "code");
    let collect = |room: usize, tasks: &mut Tasks| {
        let mut collector =
            Collector::new(Dimensions::ALL, usize::MAX).with_room_for_addresses(room * BYTES_PER_ADDRESS);
        let mut depth = Vec::new();
        for stack in 0..STACKS {
            let addresses = (0..DEPTH).map(|at| 0x1_0000 + 8 * (stack * DEPTH + at));
            let entries: Vec<u64> = [USER].into_iter().chain(addresses).collect();
            let bytes = chain(&entries);
            let callchain = Callchain(&bytes);
            let ip = Some(entries[1]);
            let sample = Sample { ip, mode: CpuMode::User, callchain, ..Sample::default() };
            depth.push(collector.key(tasks, task, &sample, &[]).callers);
        }
        let warning = collector.warning();
        let Collected { callers, addresses, .. } = collector.finish();
        let depth: Vec<usize> = depth.iter().map(|path| callers.frames_of_callers(*path).count()).collect();
        (addresses.len(), depth, warning)
    };
    let (addresses, depth, warning) = collect(ROOM, &mut tasks);
    assert_eq!(addresses, ROOM + STACKS as usize, "each sample's own is kept, and one stands for the others");
    assert_eq!((depth[0], &depth[1..]), (ROOM, &vec![1; STACKS as usize - 1][..]));
    assert!(warning.is_some_and(|text| text.contains("more than 1000 addresses")));
    let (addresses, _, warning) = collect((STACKS * DEPTH) as usize, &mut tasks);
    assert_eq!((addresses as u64, warning), (STACKS * DEPTH, None));
}
