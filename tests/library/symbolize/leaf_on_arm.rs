//! Which functions of Arm programs have their return address in the link register, by unwind tables that are
//! written by hand, so that any assembler takes them.

use std::fs;
use std::path::Path;

use eprof::symbolize::{Architecture, CodeMapping, StackRegisters, StackUnwinder};

use super::support::*;

/// Two functions of 16 bytes. In the first the return address stays in x30 (register 30) and the frame is that
/// of the stack pointer (31); the second has stored x29 and x30 before it begins.
const SOURCE: &str = r#"
    .text
    .globl leaf
    .hidden leaf
    .type leaf, %function
    .size leaf, 16
leaf:
    .zero 16
    .globl framed
    .hidden framed
    .type framed, %function
    .size framed, 16
framed:
    .zero 16
    .section .eh_frame, "a", %progbits
common:
    .long common_end - common_start
common_start:
    .long 0
    .byte 1
    .asciz "zR"
    .uleb128 1
    .sleb128 -8
    .byte 30
    .uleb128 1
    .byte 0x1b
    .byte 0x0c
    .uleb128 31
    .uleb128 0
    .balign 4
common_end:
    .long leaf_end - leaf_start
leaf_start:
    .long leaf_start - common
    .long leaf - .
    .long 16
    .uleb128 0
    .balign 4
leaf_end:
    .long framed_end - framed_start
framed_start:
    .long framed_start - common
    .long framed - .
    .long 16
    .uleb128 0
    .byte 0x0e
    .uleb128 16
    .byte 0x80 + 29
    .uleb128 2
    .byte 0x80 + 30
    .uleb128 1
    .balign 4
framed_end:
    .long 0
    .section .note.GNU-stack, "", %progbits
"#;

const LOADED_AT: u64 = 0x40_0000;
const PAGE: u64 = 4096;
/// Where the caller goes on.
const LINK: u64 = 0x50_1234;

/// The frames that the instruction in the middle of a function and the link register lead to.
fn frames_in(program: &Path, function: &str) -> (u64, Vec<u64>) {
    let offset = offsets_of(program, function)[8];
    let module = module(program);
    let page = offset / PAGE * PAGE;
    let mapping = CodeMapping {
        start: LOADED_AT + page,
        end: LOADED_AT + page + PAGE,
        module_address: page,
        module: &module,
    };
    let mut unwinder = StackUnwinder::new(options(program), Architecture::Aarch64);
    let start = StackRegisters::without_stack(LOADED_AT + offset, LINK);
    let mut frames = Vec::new();
    unwinder.unwind(1, || [mapping], start, &[], &mut frames);
    (LOADED_AT + offset, frames)
}

#[test]
fn the_link_register_counts_where_the_tables_say_so() {
    if !available("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("program.s"), SOURCE).unwrap();
    run("cc", &["-nostdlib", "-shared", "program.s", "-o", "program.so"], folder.path());
    let program = folder.path().join("program.so");
    let (instruction, frames) = frames_in(&program, "leaf");
    assert_eq!(frames, [instruction, LINK], "{frames:x?}");
    let (instruction, frames) = frames_in(&program, "framed");
    assert_eq!(frames, [instruction], "{frames:x?}");
}
