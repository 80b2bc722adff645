//! All probes of a recording by one program in the kernel (BPF), which hands each call over to the events of the CPU that it
//! happens on. See kernel-notes/uprobes.md.
//!
//! ```text
//!   call of a probed function ──► link (all places of a file) ──► program: which of the places? ──► map of that
//!   probe: an event (bpf-output) for each CPU ──► ring
//! ```
//!
//! Without it each probe needs an event of the kernel's uprobes for each CPU. To close one of those the kernel waits until
//! nobody can be in it any more, one after the other: half a minute of a machine with sixteen CPUs.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_long};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::record::counters::Counters;
use crate::record::sampled_event::SampledEvent;
use crate::record::uprobe::Uprobe;

/// A program that calls the helper which writes into rings has to be under a licence that the GPL goes with.
const LICENCE: &CStr = c"Dual MIT/GPL";
const UPROBE_MULTI: u32 = 48;
const PROGRAM_OF_PROBES: u32 = 2;
const MAP_OF_EVENTS: u32 = 4;

/// Numbers of `bpf(2)`'s commands.
mod command {
    pub const CREATE_MAP: i32 = 0;
    pub const UPDATE_ELEMENT: i32 = 2;
    pub const LOAD_PROGRAM: i32 = 5;
    pub const CREATE_LINK: i32 = 28;
}

/// Numbers of the functions that programs may call.
mod helper {
    pub const OUTPUT: i32 = 25;
    pub const COOKIE: i32 = 174;
}

/// The beginnings of `union bpf_attr`, as far as each command needs it; the kernel takes the rest as zeros.
#[derive(Default)]
#[repr(C)]
struct CreateMap {
    kind: u32,
    key_size: u32,
    value_size: u32,
    most: u32,
}

#[derive(Default)]
#[repr(C)]
struct UpdateElement {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[derive(Default)]
#[repr(C)]
struct LoadProgram {
    kind: u32,
    length: u32,
    instructions: u64,
    licence: u64,
    log: [u64; 2],
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

#[derive(Default)]
#[repr(C)]
struct CreateLink {
    program: u32,
    target: u32,
    attach: u32,
    flags: u32,
    path: u64,
    offsets: u64,
    reference_counts: u64,
    cookies: u64,
    count: u32,
    on_return: u32,
    process: u32,
    padding: u32,
}

const _: () = assert!(size_of::<LoadProgram>() == 72 && std::mem::offset_of!(LoadProgram, attach) == 68);
const _: () = assert!(std::mem::offset_of!(CreateLink, cookies) == 40 && size_of::<CreateLink>() == 64);

fn bpf<T>(command: i32, attributes: &T) -> io::Result<c_long> {
    let start: *const T = attributes;
    // SAFETY: a structure of the command's, with its size; what it points to is borrowed by the callers.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, start, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn bpf_descriptor<T>(command: i32, attributes: &T) -> io::Result<OwnedFd> {
    let descriptor = bpf(command, attributes)?;
    // SAFETY: the kernel has just made it for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

fn address<T>(of: *const T) -> u64 {
    of.expose_provenance() as u64
}

/// The program and what it is attached to: probes fire as long as it lives.
#[derive(Debug)]
pub struct ProbeProgram {
    // In the order in which they are closed: no call comes past when the rest goes.
    _links: Vec<OwnedFd>,
    _program: OwnedFd,
    _maps: Vec<OwnedFd>,
}

impl ProbeProgram {
    /// Leads the calls of all probes among `events` to their counters. `None` if none of them is a program's.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn attach(events: &[SampledEvent], counters: &Counters) -> io::Result<Option<Self>> {
        let by_program = |event: &&SampledEvent| event.probe.as_ref().is_some_and(|probe| probe.by_program);
        if !events.iter().any(|event| by_program(&event)) {
            return Ok(None);
        }
        let cpus = counters.counters.iter().map(|open| open.cpu + 1).max().unwrap_or(1);
        let (mut maps, mut probes) = (Vec::new(), Vec::new());
        for (index, event) in events.iter().enumerate() {
            let Some(probe) = event.probe.as_ref().filter(|probe| probe.by_program) else { continue };
            let map = map_of_events(cpus)?;
            for open in counters.counters.iter().filter(|open| open.event == index) {
                let (cpu, descriptor) = (open.cpu, open.descriptor().as_raw_fd());
                let update = UpdateElement {
                    map: map.as_raw_fd() as u32,
                    key: address(&raw const cpu),
                    value: address(&raw const descriptor),
                    ..UpdateElement::default()
                };
                bpf(command::UPDATE_ELEMENT, &update)?;
            }
            maps.push(map);
            probes.push(probe);
        }
        let program = load(&instructions(&maps))?;
        Ok(Some(Self { _links: link(&program, &probes)?, _program: program, _maps: maps }))
    }

    /// Whether this kernel lets this user attach a program to such a probe (Linux 6.6 and later).
    ///
    /// # Errors
    /// What the kernel says.
    pub fn try_out(probe: &Uprobe) -> io::Result<()> {
        let program = load(&instructions(&[map_of_events(1)?]))?;
        link(&program, &[probe]).map(drop)
    }
}

fn map_of_events(cpus: u32) -> io::Result<OwnedFd> {
    let attributes = CreateMap { kind: MAP_OF_EVENTS, key_size: 4, value_size: 4, most: cpus };
    bpf_descriptor(command::CREATE_MAP, &attributes)
}

fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let attributes = LoadProgram {
        kind: PROGRAM_OF_PROBES,
        length: instructions.len() as u32,
        instructions: address(instructions.as_ptr()),
        licence: address(LICENCE.as_ptr()),
        attach: UPROBE_MULTI,
        ..LoadProgram::default()
    };
    bpf_descriptor(command::LOAD_PROGRAM, &attributes)
}

/// Offsets in a file, and the cookie of each.
type Places = (Vec<u64>, Vec<u64>);

/// One link for all probes of a file on calls, and one for those on returns. A probe's cookie is its number.
fn link(program: &OwnedFd, probes: &[&Uprobe]) -> io::Result<Vec<OwnedFd>> {
    let mut groups: BTreeMap<(&CString, bool), Places> = BTreeMap::new();
    for (number, probe) in probes.iter().enumerate() {
        let (offsets, cookies) = groups.entry((&probe.path, probe.on_return)).or_default();
        offsets.push(probe.offset);
        cookies.push(number as u64);
    }
    let link = |((path, on_return), (offsets, cookies)): ((&CString, bool), Places)| {
        let attributes = CreateLink {
            program: program.as_raw_fd() as u32,
            attach: UPROBE_MULTI,
            path: address(path.as_ptr()),
            offsets: address(offsets.as_ptr()),
            cookies: address(cookies.as_ptr()),
            count: offsets.len() as u32,
            on_return: u32::from(on_return),
            ..CreateLink::default()
        };
        bpf_descriptor(command::CREATE_LINK, &attributes)
    };
    groups.into_iter().map(link).collect()
}

/// As the kernel has it: code, registers to and from, distance of a jump or place in memory, number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

const fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> Instruction {
    Instruction { code, registers: to | from << 4, offset, number }
}

/// Compares the cookie of the place with the number of each map, and writes a sample into that one.
fn instructions(maps: &[OwnedFd]) -> Vec<Instruction> {
    const MOVE: u8 = 0xbf;
    const MOVE_NUMBER: u8 = 0xb7;
    const MOVE_HALF_NUMBER: u8 = 0xb4;
    const ADD_NUMBER: u8 = 0x07;
    const STORE_NUMBER: u8 = 0x7a;
    const LOAD_LONG: u8 = 0x18;
    const MAP: u8 = 1;
    const JUMP_IF_OTHER: u8 = 0x55;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    const THIS_CPU: i32 = -1;
    let mut program = vec![
        instruction(MOVE, 6, 1, 0, 0),
        // Eight bytes of nothing: what a call tells is in registers and stack.
        instruction(STORE_NUMBER, 10, 0, -8, 0),
        instruction(CALL, 0, 0, 0, helper::COOKIE),
        instruction(MOVE, 7, 0, 0, 0),
    ];
    for (number, map) in maps.iter().enumerate() {
        let write = [
            instruction(MOVE, 1, 6, 0, 0),
            instruction(LOAD_LONG, 2, MAP, 0, map.as_raw_fd()),
            instruction(0, 0, 0, 0, 0),
            instruction(MOVE_HALF_NUMBER, 3, 0, 0, THIS_CPU),
            instruction(MOVE, 4, 10, 0, 0),
            instruction(ADD_NUMBER, 4, 0, 0, -8),
            instruction(MOVE_NUMBER, 5, 0, 0, 8),
            instruction(CALL, 0, 0, 0, helper::OUTPUT),
            instruction(MOVE_NUMBER, 0, 0, 0, 0),
            instruction(EXIT, 0, 0, 0, 0),
        ];
        program.push(instruction(JUMP_IF_OTHER, 7, 0, write.len() as i16, number as i32));
        program.extend(write);
    }
    program.extend([instruction(MOVE_NUMBER, 0, 0, 0, 0), instruction(EXIT, 0, 0, 0, 0)]);
    program
}
