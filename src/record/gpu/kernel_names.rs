//! What handles of the driver stand for: names of kernels, and the GPUs of contexts.
//!
//! A program asks the driver for a kernel's handle by its name, for a context's by the GPU's number. The probe on that call tells
//! where in the program's memory the name is and where the handle will be. What lies on the stack is
//! copied with the sample; what lies elsewhere is read when the sample arrives, some milliseconds later.
//! Names are constants of the program nearly always; one that is gone by then, with its program, is not
//! known.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fs::File;
use std::os::unix::fs::FileExt;

use rustc_hash::FxHashMap;

use crate::record::sampling::Sampling;
use crate::recording::gpu_events::{CallRegisters, ContextDevice, GpuCall, KernelName, argument_of};

/// Follows calls that ask for kernels by name.
#[derive(Debug)]
pub struct KernelNames {
    /// Calls that ask, with the argument that tells for what.
    asked: BTreeMap<u64, Asking>,
    given: BTreeSet<u64>,
    registers: CallRegisters,
    /// By thread: what was asked for, and where its handle is put.
    pending: FxHashMap<u32, (Asked, u64)>,
}

/// How a call says what it wants a handle for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// By a name, whose address is the third argument.
    Kernel,
    /// By the GPU's number, which is this argument.
    Context(usize),
}

/// What a handle was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    Kernel(String),
    Context(u32),
}

/// A handle, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenHandle {
    /// A kernel.
    Kernel(KernelName),
    /// A context.
    Context(ContextDevice),
}

/// A sample of these probes: header, id, address, process and thread, time, CPU, then the registers'
/// layout and four registers, the size of the copied stack, and its bytes.
const ID_AT: usize = 8;
const PID_AT: usize = 24;
const TID_AT: usize = 28;
const TIME_AT: usize = 32;
const LAYOUT_AT: usize = 48;
const REGISTERS_AT: usize = 56;
const STACK_SIZE_AT: usize = REGISTERS_AT + 4 * 8;
const STACK_AT: usize = STACK_SIZE_AT + 8;

/// A handle that was given.
struct Given {
    pid: u32,
    handle: GivenHandle,
    /// Where it was read later than it was given, and may have been another's by then.
    read_late: Option<u64>,
}

impl KernelNames {
    /// `None` if no such call is probed.
    pub fn new(sampling: &Sampling, architecture: &str) -> Option<Self> {
        let (mut asked, mut given) = (BTreeMap::new(), BTreeSet::new());
        for (index, event) in sampling.events.iter().enumerate().filter(|(_, event)| event.probe.is_some()) {
            let ids = sampling.counters.ids(index);
            match GpuCall::of_event(&event.spec.name) {
                Some((GpuCall::Name, _)) => asked.extend(ids.into_iter().map(|id| (id, Asking::Kernel))),
                Some((GpuCall::Context, function)) => {
                    let asking = Asking::Context(argument_of(function));
                    asked.extend(ids.into_iter().map(|id| (id, asking)));
                }
                Some((GpuCall::Named | GpuCall::Contexted, _)) => given.extend(ids),
                _ => {}
            }
        }
        let registers = CallRegisters::of(architecture)?;
        let pending = FxHashMap::default();
        (!asked.is_empty()).then_some(Self { asked, given, registers, pending })
    }

    /// Ids of the events whose samples [`KernelNames::take`] wants.
    pub fn events(&self) -> BTreeSet<u64> {
        self.asked.keys().chain(&self.given).copied().collect()
    }

    /// Takes the samples of one round and gives the handles that they complete.
    pub fn take(&mut self, samples: &[Vec<u8>]) -> Vec<GivenHandle> {
        let mut in_order: Vec<&Vec<u8>> = samples.iter().collect();
        // A thread may change its CPU, and so its ring, within the call.
        in_order.sort_by_key(|sample| word(sample, TIME_AT));
        let mut all: Vec<Given> = Vec::new();
        for given in in_order.into_iter().filter_map(|sample| self.take_one(sample)) {
            // No name is better than that of another kernel.
            if let Some(address) = given.read_late {
                all.retain(|earlier| (earlier.pid, earlier.read_late) != (given.pid, Some(address)));
            }
            all.push(given);
        }
        all.into_iter().map(|given| given.handle).collect()
    }

    fn take_one(&mut self, sample: &[u8]) -> Option<Given> {
        let half = |at: usize| Some(u32::from_ne_bytes(sample.get(at..at + 4)?.try_into().ok()?));
        let (pid, tid) = (half(PID_AT)?, half(TID_AT)?);
        const NO_REGISTERS: u64 = 0;
        if word(sample, LAYOUT_AT)? == NO_REGISTERS {
            return None;
        }
        let register = |number: u32| word(sample, REGISTERS_AT + 8 * self.registers.place(number));
        let stack = CopiedStack::of(sample, register(self.registers.stack)?);
        if let Some(asking) = self.asked.get(&word(sample, ID_AT)?) {
            let arguments = self.registers.arguments.map(register);
            let asked = match *asking {
                Asking::Context(number) => Asked::Context((*arguments.get(number)?)? as u32),
                Asking::Kernel => {
                    let name_at = arguments[2]?;
                    let copied = stack.from(name_at).and_then(|bytes| CStr::from_bytes_until_nul(bytes).ok());
                    Asked::Kernel(match copied {
                        Some(name) => name.to_str().ok()?.to_owned(),
                        None => text_at(&memory(pid)?, name_at)?,
                    })
                }
            };
            self.pending.insert(tid, (asked, arguments[0]?));
            return None;
        }
        let (asked, handle_at) = self.pending.remove(&tid)?;
        let copied = stack.from(handle_at).and_then(|bytes| word(bytes, 0));
        let handle = match copied {
            Some(handle) => handle,
            None => {
                let mut bytes = [0; 8];
                memory(pid)?.read_exact_at(&mut bytes, handle_at).ok()?;
                u64::from_ne_bytes(bytes)
            }
        };
        let read_late = copied.is_none().then_some(handle_at);
        let handle = match asked {
            Asked::Kernel(name) => GivenHandle::Kernel(KernelName { pid, handle, name }),
            Asked::Context(ordinal) => GivenHandle::Context(ContextDevice { pid, context: handle, ordinal }),
        };
        Some(Given { pid, handle, read_late })
    }
}

/// The top of the stack as it was when the sample was taken.
struct CopiedStack<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl<'a> CopiedStack<'a> {
    fn of(sample: &'a [u8], start: u64) -> Self {
        let size = word(sample, STACK_SIZE_AT).unwrap_or(0) as usize;
        let end = STACK_AT.saturating_add(size);
        // Behind the bytes is how many of them are there.
        let filled = word(sample, end).map_or(0, |filled| filled as usize).min(size);
        Self { start, bytes: sample.get(STACK_AT..STACK_AT + filled).unwrap_or_default() }
    }

    /// The bytes from an address on, if it lies in the copy.
    fn from(&self, address: u64) -> Option<&'a [u8]> {
        let inside = usize::try_from(address.checked_sub(self.start)?).ok()?;
        self.bytes.get(inside..).filter(|bytes| !bytes.is_empty())
    }
}

fn memory(pid: u32) -> Option<File> {
    File::open(format!("/proc/{pid}/mem")).ok()
}

/// The text at an address, up to its zero byte.
fn text_at(memory: &File, address: u64) -> Option<String> {
    const PIECE: u64 = 256;
    let mut text = Vec::new();
    while text.len() < KernelName::LONGEST {
        let at = address.checked_add(text.len() as u64)?;
        // Up to the next multiple: a piece never goes over into a page that is not there.
        let mut piece = vec![0; (PIECE - at % PIECE) as usize];
        memory.read_exact_at(&mut piece, at).ok()?;
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            text.extend(&piece[..end]);
            return String::from_utf8(text).ok().filter(|text| !text.is_empty());
        }
        text.extend(piece);
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86_64: CallRegisters =
        CallRegisters { arguments: [5, 4, 3], stack: 7, register_arguments: 6, above_arguments: 8 };

    fn names() -> KernelNames {
        let asked = BTreeMap::from([(1, Asking::Kernel), (3, Asking::Context(1))]);
        let given = BTreeSet::from([2]);
        KernelNames { asked, given, registers: X86_64, pending: FxHashMap::default() }
    }

    /// Registers: third, second and first argument, stack pointer.
    fn sample(id: u64, time: u64, registers: [u64; 4], stack: &[u64]) -> Vec<u8> {
        let task = u64::from(std::process::id()) | 77 << 32;
        let head = [9, id, 0x1000, task, time, 0, 2];
        let stack_size = 8 * stack.len() as u64;
        let words = head.iter().chain(&registers).chain([&stack_size]).chain(stack).chain([&stack_size]);
        words.flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn address<T>(value: &T) -> u64 {
        std::ptr::from_ref(value).expose_provenance() as u64
    }

    fn found(handle: u64, name: &str) -> GivenHandle {
        GivenHandle::Kernel(KernelName { pid: std::process::id(), handle, name: name.to_owned() })
    }

    #[test]
    fn a_context_is_known_by_its_gpus_number() {
        // `context_at` and the number are the first two arguments, in the order of the registers' numbers.
        let asked = sample(3, 1, [0, 4, 0x7008, 0x7000], &[]);
        let given = sample(2, 2, [0, 0, 0, 0x7000], &[0, 0xc0ffee]);
        let context = ContextDevice { pid: std::process::id(), context: 0xc0ffee, ordinal: 4 };
        assert_eq!(names().take(&[asked, given]), [GivenHandle::Context(context)]);
    }

    static NAMES: [[u8; 16]; 2] = [*b"_Z4heatPf\0\0\0\0\0\0\0", *b"_Z4coolPf\0\0\0\0\0\0\0"];

    #[test]
    fn name_and_handle_are_read_from_the_programs_memory() {
        let handle = 0xabcd_u64;
        let asked = sample(1, 10, [address(&NAMES[0]), 0, address(&handle), 0], &[]);
        let given = sample(2, 20, [0; 4], &[]);
        let mut names = names();
        assert_eq!(names.take(&[given.clone(), asked.clone()]), [found(handle, "_Z4heatPf")]);
        assert_eq!(names.take(&[given]), [], "a return without a call");
        assert_eq!(names.take(&[asked[..60].to_vec(), sample(1, 30, [8, 0, 16, 0], &[])]), []);
    }

    #[test]
    fn a_variable_that_is_used_again_gives_each_kernel_its_own_handle() {
        let at = |name: &[u8; 16]| [address(name), 0, 0x7008, 0x7000];
        let returned = |time, handle| sample(2, time, [0, 0, 0, 0x7000], &[0, handle]);
        let samples = [
            sample(1, 1, at(&NAMES[0]), &[]),
            returned(2, 11),
            sample(1, 3, at(&NAMES[1]), &[]),
            returned(4, 12),
        ];
        assert_eq!(names().take(&samples), [found(11, "_Z4heatPf"), found(12, "_Z4coolPf")]);
    }

    #[test]
    fn a_variable_elsewhere_that_is_used_again_names_its_last_kernel_only() {
        let handle = 12u64;
        let at = |name: &[u8; 16]| [address(name), 0, address(&handle), 0];
        let samples = [
            sample(1, 1, at(&NAMES[0]), &[]),
            sample(2, 2, [0; 4], &[]),
            sample(1, 3, at(&NAMES[1]), &[]),
            sample(2, 4, [0; 4], &[]),
        ];
        assert_eq!(names().take(&samples), [found(12, "_Z4coolPf")]);
    }
}
