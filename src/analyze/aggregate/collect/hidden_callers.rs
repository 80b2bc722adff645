//! How often chains of frame pointers lack the caller of the function that a sample was in, where nothing of the stack was
//! copied to find it in.

use perf_data::record::{CpuMode, Sample};

use super::Collector;
use crate::analyze::aggregate::frames::{Frame, entries_of};
use crate::analyze::aggregate::key_table::{AddressTable, OwnCaller};
use crate::analyze::aggregate::unwind::{CONTEXT_USER, code_mapping, user_part};
use crate::profile::{HiddenCallers, ModuleKind};
use crate::symbolize::ReturnAddress;
use crate::timeline::{TaskId, Tasks};

impl Collector {
    /// Counts, if need be, callers that chains of frame pointers lack.
    pub fn counting_hidden_callers(self, counts: bool) -> Self {
        Self { hidden_callers: counts.then(HiddenCallers::default), ..self }
    }

    /// How often callers were hidden so far.
    pub fn hidden_callers(&self) -> HiddenCallers {
        self.hidden_callers.unwrap_or_default()
    }

    /// What frame pointers tell of the caller of a function that a sample was in.
    pub(super) fn caller_of(&mut self, tasks: &Tasks, task: TaskId, frame: Frame) -> OwnCaller {
        let is_asked = self.hidden_callers.is_some() && !frame.is_return && frame.mode == CpuMode::User;
        let Some(finder) = self.return_addresses.as_mut().filter(|_| is_asked) else {
            return OwnCaller::Told;
        };
        let mapping = tasks.space(task).mapping_at(frame.address);
        let code = || mapping.map(|mapping| code_mapping(tasks, mapping));
        let is_file = || code().is_some_and(|code| code.module.kind == ModuleKind::File);
        match finder.find(tasks.layout_id(task).0, frame.address, code) {
            Some(ReturnAddress::AboveStackPointer(_)) => OwnCaller::Hidden,
            // Just-in-time code never has tables.
            Some(ReturnAddress::Unknown) if is_file() => OwnCaller::Unknown,
            _ => OwnCaller::Told,
        }
    }

    /// Counts whether a chain lacks a caller where nothing of the stack was copied to find it in. `own` is what is known of the
    /// sample's own address.
    #[inline]
    pub(super) fn count_hidden_caller(
        &mut self,
        tasks: &Tasks,
        task: TaskId,
        spaces: u32,
        sample: &Sample<'_>,
        own: Option<OwnCaller>,
    ) {
        // Branches that the CPU kept have the caller, whatever frame pointers say.
        if sample.user_registers.is_some() || sample.branch_stack.calls().len() != 0 {
            return;
        }
        let caller = match (entries_of(sample.callchain), own) {
            // Most often the program's part of the chain is all of it, and begins with the sampled instruction.
            ([marker, first, ..], Some(own))
                if sample.mode == CpuMode::User
                    && u64::from_le_bytes(*marker) == CONTEXT_USER
                    && Some(u64::from_le_bytes(*first)) == sample.ip =>
            {
                own
            }
            _ => {
                let Some(address) = user_part(sample.callchain).entries().next() else { return };
                let frame = Frame { mode: CpuMode::User, address, is_return: false };
                let known =
                    self.located.find(AddressTable::key(spaces, frame.mode, frame.is_return, address));
                known.map_or_else(|| self.caller_of(tasks, task, frame), |(_, caller)| caller)
            }
        };
        let Some(hidden) = &mut self.hidden_callers else { return };
        hidden.samples += 1;
        hidden.out_of_reach += u64::from(caller == OwnCaller::Hidden);
        hidden.unknown += u64::from(caller == OwnCaller::Unknown);
    }
}

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSection};
    use perf_data::record::{BranchStack, Callchain, FileIdentity, Mmap};

    use super::*;
    use crate::analyze::aggregate::functions::Functions;
    use crate::analyze::options::{Dimensions, FunctionsOfStacks};
    use crate::profile::AddressId;
    use crate::symbolize::{ReturnAddressFinder, SymbolizeOptions};

    const KERNEL: u64 = -128i64 as u64;

    /// This test's own code, and a file that is not there: where samples are counted as unknown.
    struct Process {
        tasks: Tasks,
        task: TaskId,
        addresses: Vec<u64>,
    }

    const GONE: u64 = 0x10;

    fn process() -> Process {
        let path = std::env::current_exe().expect("a path").display().to_string();
        let bytes = std::fs::read(&path).expect("a file");
        let file = object::File::parse(bytes.as_slice()).expect("a program");
        let text = file.section_by_name(".text").expect("code");
        let (start, size) = text.file_range().expect("in the file");
        let mut tasks = Tasks::default();
        let map = |tasks: &mut Tasks, address, length, file_offset, path: &str| {
            tasks.map(&Mmap {
                pid: 1,
                tid: 1,
                address,
                length,
                file_offset,
                path: path.as_bytes(),
                mode: CpuMode::User,
                is_data: false,
                protection: None,
                identity: FileIdentity::Unknown,
            });
        };
        let base = 0x7f00_0000_0000;
        map(&mut tasks, base, bytes.len() as u64, 0, &path);
        map(&mut tasks, GONE, 0x100, 0, "/gone/for/good");
        let task = tasks.task(1, 1);
        let of_text = (0..400).map(|step| base + start + step * (size / 400));
        Process { task, addresses: of_text.chain([GONE, GONE + 5, 0x6000_0000]).collect(), tasks }
    }

    fn chain(entries: &[u64]) -> Vec<u8> {
        entries.iter().flat_map(|entry| entry.to_le_bytes()).collect()
    }

    /// Samples of all addresses, as the sampled instruction and as what called the kernel, are counted as the tables say of each,
    /// also where an address stands for others.
    #[test]
    fn callers_are_hidden_where_tables_say_so() {
        let Process { mut tasks, task, addresses } = process();
        let finder = || ReturnAddressFinder::new(SymbolizeOptions::default());
        let mut asked = finder();
        let mut expected = HiddenCallers::default();
        for &address in &addresses {
            let mapping = tasks.space(task).mapping_at(address);
            let code = || mapping.map(|mapping| code_mapping(&tasks, mapping));
            let found = asked.find(0, address, code);
            let is_hidden = matches!(found, Some(ReturnAddress::AboveStackPointer(_)));
            expected.samples += 1;
            expected.out_of_reach += u64::from(is_hidden);
            expected.unknown += u64::from(found == Some(ReturnAddress::Unknown));
        }
        let HiddenCallers { samples, out_of_reach, unknown, .. } = expected;
        // There are some of each kind: the last address lies nowhere.
        assert!(unknown >= 2 && out_of_reach > 20 && samples > out_of_reach + unknown, "{expected:?}");
        for merges in [false, true] {
            let collector = Collector::new(Dimensions::ALL, usize::MAX).with_return_addresses(Some(finder()));
            let mut collector = collector.counting_hidden_callers(true);
            let mut times = 0;
            let mut sample_all = |collector: &mut Collector| {
                for &address in &addresses {
                    let own = chain(&[CONTEXT_USER, address, addresses[1]]);
                    let in_kernel = chain(&[KERNEL, 0xf001, CONTEXT_USER, address, addresses[1]]);
                    let of_program = Sample {
                        ip: Some(address),
                        mode: CpuMode::User,
                        callchain: Callchain(&own),
                        ..Sample::default()
                    };
                    let of_kernel = Sample {
                        ip: Some(0xf001),
                        mode: CpuMode::Kernel,
                        callchain: Callchain(&in_kernel),
                        ..Sample::default()
                    };
                    collector.key(&mut tasks, task, &of_program, &[]);
                    collector.key(&mut tasks, task, &of_kernel, &[]);
                    // Nothing of the program.
                    let no_program = Sample { callchain: Callchain(&in_kernel[..16]), ..of_kernel };
                    collector.key(&mut tasks, task, &no_program, &[]);
                    // The CPU kept who called.
                    let bytes = chain(&[addresses[1], addresses[2], 0]);
                    let branches =
                        Sample { branch_stack: BranchStack { bytes: &bytes, are_calls: true }, ..of_program };
                    collector.key(&mut tasks, task, &branches, &[]);
                }
                times += 2;
                let so_far = HiddenCallers {
                    samples: times * samples,
                    found: 0,
                    out_of_reach: times * out_of_reach,
                    unknown: times * unknown,
                };
                assert_eq!(collector.hidden_callers(), so_far);
            };
            sample_all(&mut collector);
            if merges {
                // One function that all of the code is in.
                let first = collector.addresses()[0];
                let functions = Functions::of_extents(first.module, &[(0, u64::MAX, AddressId(0))]);
                collector.merge_functions(functions, FunctionsOfStacks::Paths);
            }
            sample_all(&mut collector);
            assert_eq!(collector.of_worker(1, Some(finder())).hidden_callers(), HiddenCallers::default());
        }
        let mut silent = Collector::new(Dimensions::ALL, usize::MAX).with_return_addresses(Some(finder()));
        let own = chain(&[CONTEXT_USER, GONE]);
        let sample =
            Sample { ip: Some(GONE), mode: CpuMode::User, callchain: Callchain(&own), ..Sample::default() };
        silent.key(&mut tasks, task, &sample, &[]);
        assert_eq!(silent.hidden_callers(), HiddenCallers::default());
    }
}
