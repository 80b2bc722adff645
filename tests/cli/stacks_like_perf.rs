//! Call stacks of recordings that this machine cannot make (last branches, an event that interrupts too late), built by
//! hand around a real program: `eprof script` and `eprof report` tell what perf tells of the same file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use eprof_testbed::recording_builder::{Event, File};
use eprof_testbed::run_or_skip;
use object::{Object, ObjectSegment, ObjectSymbol, SegmentFlags, elf};
use perf_data::attr::{EventAttr, flag};
use perf_data::format::{branch_sample_type, feature, misc, record_type, sample_type};
use tempfile::TempDir;

const SOURCE: &str = r#"
    __attribute__((noinline)) int leaf(int x) { __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop"); return x; }
    __attribute__((noinline)) int middle(int x) { return leaf(x + 1) * 3; }
    __attribute__((noinline)) int outer(int x) { return middle(x + 2) * 5; }
    int main(int count, char **arguments) { return outer(count) * 7; }
"#;

const KERNEL: u64 = -128i64 as u64;
const USER: u64 = -512i64 as u64;
const IN_KERNEL: u64 = 0xffff_ffff_8100_0100;
const PID: u32 = 4242;

/// A sample to be built: mode, address, callchain, and branches from one address to another.
type Built = (u16, u64, Vec<u64>, Vec<(u64, u64)>);

/// A program that lies somewhere in memory.
struct Program {
    folder: TempDir,
    functions: Vec<(String, u64)>,
    /// Address, length and file offset of its code.
    code: (u64, u64, u64),
}

impl Program {
    fn compile() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("program.c"), SOURCE).expect("written");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-no-pie", "-fno-optimize-sibling-calls", "-o", "program", "program.c"]);
        if !run_or_skip([gcc.current_dir(folder.path()), Command::new("perf").arg("--version")]) {
            return None;
        }
        let bytes = fs::read(folder.path().join("program")).expect("compiled");
        let file = object::File::parse(&*bytes).expect("an ELF file");
        let name = |symbol: object::Symbol<'_, '_>| Some((symbol.name().ok()?.to_owned(), symbol.address()));
        let functions = file.symbols().filter_map(name).collect();
        let is_code = |segment: &object::Segment<'_, '_>| matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0);
        let code = file.segments().find(is_code).expect("code");
        let code = (code.address(), code.size().next_multiple_of(0x1000), code.file_range().0);
        Some(Self { folder, functions, code })
    }

    /// An address in a function, some bytes behind its start.
    fn within(&self, name: &str, bytes: u64) -> u64 {
        let (_, address) = self.functions.iter().find(|(known, _)| known == name).expect("a symbol");
        address + bytes
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    /// A recording of one event with these samples.
    fn recording(&self, attr: EventAttr, samples: &[Built]) -> PathBuf {
        let fields = sample_type::IDENTIFIER | sample_type::IP | sample_type::TID | sample_type::TIME;
        let fields = fields | sample_type::PERIOD | sample_type::CALLCHAIN;
        let attr = EventAttr {
            sample_type: fields | attr.sample_type,
            sample_period: 1000,
            flags: attr.flags | flag::SAMPLE_ID_ALL | flag::MMAP2 | flag::COMM,
            ..attr
        };
        let has_branches = attr.samples(sample_type::BRANCH_STACK);
        let mut file = File::new(vec![Event { attr, ids: vec![77], name: "cycles" }]);
        if has_branches {
            file.features.push((feature::BRANCH_STACK, Vec::new()));
        }
        let trailer = |bytes: eprof_testbed::recording_builder::Bytes| bytes.u32(PID).u32(PID).u64s(&[0, 77]);
        let comm = trailer(file.bytes().u32(PID).u32(PID).text("program")).bytes;
        file.record(record_type::COMM, 0, &comm);
        let (address, length, offset) = self.code;
        let path = self.path().display().to_string();
        let mapped = file.bytes().u32(PID).u32(PID).u64s(&[address, length, offset, 0, 0, 0]);
        file.record(record_type::MMAP2, misc::USER, &trailer(mapped.u32(5).u32(2).text(&path)).bytes);
        for (time, (mode, address, chain, branches)) in (1..).zip(samples) {
            let mut body =
                file.bytes().u64s(&[77, *address]).u32(PID).u32(PID).u64s(&[time * 1_000_000, 1000]);
            body = body.u64(chain.len() as u64).u64s(chain);
            if has_branches {
                body = body.u64(branches.len() as u64);
                body = branches.iter().fold(body, |body, (from, to)| body.u64s(&[*from, *to, 0]));
            }
            file.record(record_type::SAMPLE, *mode, &body.bytes);
        }
        let path = self.folder.path().join("perf.data");
        fs::write(&path, file.build()).expect("written");
        path
    }
}

fn text(tool: &str, arguments: &[&str], recording: &Path) -> String {
    let output = Command::new(tool).args(arguments).arg("-i").arg(recording).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The stacks that `script` prints: address and symbol of each frame, the symbol only of the program.
fn stacks(tool: &str, recording: &Path) -> Vec<Vec<(u64, String)>> {
    let text = text(tool, &["script", "--no-inline", "-F", "ip,sym"], recording);
    let frame = |line: &str| {
        let (address, symbol) = line.trim().split_once(' ').expect("two fields");
        let address = u64::from_str_radix(address, 16).expect("an address");
        (address, if address > u64::MAX / 2 { String::new() } else { symbol.to_owned() })
    };
    let stacks = text.split("\n\n").map(str::trim).filter(|stack| !stack.is_empty());
    stacks.map(|stack| stack.lines().map(frame).collect()).collect()
}

fn symbols(stack: &[(u64, String)]) -> Vec<&str> {
    stack.iter().map(|(_, symbol)| symbol.as_str()).collect()
}

#[test]
fn the_calls_that_the_cpu_kept_are_the_stack() {
    let Some(program) = Program::compile() else { return };
    let at = |name, bytes| program.within(name, bytes);
    let calls = vec![
        (at("middle", 5), at("leaf", 0)),
        (at("outer", 5), at("middle", 0)),
        (at("main", 5), at("outer", 0)),
    ];
    // A chain of frame pointers, which this program does not keep.
    let wrong = [at("leaf", 3), at("main", 2)];
    let samples = [
        (misc::USER, wrong[0], vec![USER, wrong[0], wrong[1]], calls.clone()),
        (misc::KERNEL, IN_KERNEL, vec![KERNEL, IN_KERNEL, USER, wrong[0], wrong[1]], calls.clone()),
        (misc::KERNEL, IN_KERNEL, vec![KERNEL, IN_KERNEL], calls),
    ];
    let attr = EventAttr {
        sample_type: sample_type::BRANCH_STACK,
        branch_sample_type: branch_sample_type::CALL_STACK | 1,
        ..EventAttr::default()
    };
    let recording = program.recording(attr, &samples);
    let (ours, theirs) = (stacks(env!("CARGO_BIN_EXE_eprof"), &recording), stacks("perf", &recording));
    assert_eq!(ours.len(), samples.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(symbols(ours), symbols(theirs), "{ours:x?} {theirs:x?}");
    }
    assert_eq!(symbols(&ours[0]), ["leaf", "middle", "outer", "main"]);
    // perf begins with the start of the function; eprof with the sampled instruction in it.
    assert_eq!(ours[0][1..], theirs[0][1..]);
    let table = text(env!("CARGO_BIN_EXE_eprof"), &["report", "--format", "collapsed"], &recording);
    assert!(table.lines().any(|line| line == "main;outer;middle;leaf 1"), "{table}");
}

#[test]
fn branches_of_any_kind_are_no_callers() {
    let Some(program) = Program::compile() else { return };
    let at = |name, bytes| program.within(name, bytes);
    let chain = vec![USER, at("leaf", 3), at("middle", 10), at("outer", 10)];
    let samples = [(misc::USER, at("leaf", 3), chain, vec![(at("main", 5), at("leaf", 0))])];
    let attr = EventAttr {
        sample_type: sample_type::BRANCH_STACK,
        branch_sample_type: 8 | 1,
        ..EventAttr::default()
    };
    let recording = program.recording(attr, &samples);
    let ours = stacks(env!("CARGO_BIN_EXE_eprof"), &recording);
    assert_eq!(symbols(&ours[0]), ["leaf", "middle", "outer"]);
    assert_eq!(ours, stacks("perf", &recording));
}

#[test]
fn an_event_of_the_program_that_comes_late_keeps_all_of_its_frames() {
    let Some(program) = Program::compile() else { return };
    let at = |name, bytes| program.within(name, bytes);
    let chain = vec![USER, at("leaf", 3), at("middle", 10), at("outer", 10)];
    let samples = [(misc::KERNEL, IN_KERNEL, chain.clone(), vec![]), (misc::USER, chain[1], chain, vec![])];
    let recording =
        program.recording(EventAttr { flags: flag::EXCLUDE_KERNEL, ..EventAttr::default() }, &samples);
    let (ours, theirs) = (stacks(env!("CARGO_BIN_EXE_eprof"), &recording), stacks("perf", &recording));
    // perf leaves out where the sample was; that is what `report` charges.
    assert_eq!(ours[0][0].0, IN_KERNEL);
    assert_eq!(ours[0][1..], theirs[0]);
    assert_eq!(ours[1], theirs[1]);
    assert_eq!(symbols(&theirs[0]), ["leaf", "middle", "outer"]);
}
