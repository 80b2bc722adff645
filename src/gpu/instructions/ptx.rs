//! PTX programs that run one instruction many times.

use std::fmt::Write;

use super::catalogue::{Instruction, Registers};

/// Copies of the instruction in each turn of the loop.
pub const COPIES: u32 = 10;
/// Name of the kernel.
pub const KERNEL: &str = "measure";
/// Newest target that PTX 6.4 knows; newer devices run it too, as PTX is forward compatible.
const NEWEST_TARGET: u32 = 75;
/// Targets of PTX 6.4 from the first that half precision and all instructions here allow.
const TARGETS: [u32; 10] = [75, 72, 70, 62, 61, 60, 53, 52, 50, 35];

/// The target for a device of a compute capability (10 times major plus minor).
pub fn target(capability: u32) -> u32 {
    let known = TARGETS.into_iter().find(|target| *target <= capability.min(NEWEST_TARGET));
    known.unwrap_or(NEWEST_TARGET)
}

/// The program for an instruction; without the instruction, the loop that is subtracted.
///
/// The kernel `measure(u64 results, u32 turns, u32 seed)` writes clock cycles of the first thread to
/// `results[0]` and a value that depends on every copy to `results[1]`. Each turn starts from values
/// that depend on turn and seed; the copies form one chain, as each takes the result of the one
/// before. PTX 6.4 is CUDA 10.1's; later drivers accept it.
pub fn program(instruction: &Instruction, with_instruction: bool, capability: u32) -> String {
    let mut text = format!(
        ".version 6.4\n.target sm_{}\n.address_size 64\n\n\
         .visible .entry {KERNEL}(\n\t.param .u64 results,\n\t.param .u32 turns,\n\t.param .u32 seed\n)\n{{\n",
        target(capability)
    );
    let mut line = |code: &str| {
        let _ = writeln!(text, "\t{code}");
    };
    for declaration in [
        ".reg .pred %more, %first, %never;",
        ".reg .b16 %hx, %hy, %hz;",
        ".reg .b32 %x, %y, %z, %s, %low, %high, %sum, %turn, %turns, %seed, %thread, %block;",
        ".reg .b64 %rdx, %rdy, %rdz, %results, %begin, %end, %out;",
        ".reg .f32 %fx, %fy, %fz;",
        ".reg .f64 %dx, %dy, %dz;",
        "",
        "ld.param.u64 %results, [results];",
        "ld.param.u32 %turns, [turns];",
        "ld.param.u32 %seed, [seed];",
        "cvta.to.global.u64 %results, %results;",
        "mov.u32 %thread, %tid.x;",
        "mov.u32 %block, %ctaid.x;",
        "mov.u32 %sum, 0;",
        "mov.u32 %turn, 0;",
        "and.b32 %s, %seed, 7;",
        "mov.u64 %begin, %clock64;",
    ] {
        line(declaration);
    }
    text.push_str("LOOP:\n");
    let mut line = |code: &str| {
        let _ = writeln!(text, "\t{code}");
    };
    // Values in 1..2 for floating point, odd for integers: no division by zero, no early end.
    line("add.u32 %x, %seed, %turn;");
    line("xor.b32 %y, %x, 1431655765;");
    line("or.b32 %x, %x, 1;");
    line("or.b32 %y, %y, 1;");
    line("add.u32 %z, %x, %y;");
    let (x, y, z) = match instruction.registers {
        Registers::B32 => ("%x", "%y", "%z"),
        Registers::B64 => {
            line("mov.b64 %rdx, {%x, %y};");
            line("mov.b64 %rdy, {%y, %z};");
            line("mov.b64 %rdz, {%z, %x};");
            ("%rdx", "%rdy", "%rdz")
        }
        Registers::F32 => {
            for (float, integer) in [("%fx", "%x"), ("%fy", "%y"), ("%fz", "%z")] {
                line(&format!("and.b32 {integer}, {integer}, 8388607;"));
                line(&format!("or.b32 {integer}, {integer}, 1065353216;"));
                line(&format!("mov.b32 {float}, {integer};"));
            }
            ("%fx", "%fy", "%fz")
        }
        Registers::F64 => {
            for (float, integer) in [("%dx", "%x"), ("%dy", "%y"), ("%dz", "%z")] {
                line(&format!("and.b32 %high, {integer}, 1048575;"));
                line("or.b32 %high, %high, 1072693248;");
                line(&format!("mov.b64 {float}, {{{integer}, %high}};"));
            }
            ("%dx", "%dy", "%dz")
        }
        Registers::F16 => {
            for (float, integer) in [("%hx", "%x"), ("%hy", "%y"), ("%hz", "%z")] {
                line(&format!("and.b32 {integer}, {integer}, 1023;"));
                line(&format!("or.b32 {integer}, {integer}, 15360;"));
                line(&format!("cvt.u16.u32 {float}, {integer};"));
            }
            ("%hx", "%hy", "%hz")
        }
    };
    if with_instruction {
        for copy in 0..COPIES {
            // The two ends of the chain change places, so that no two copies do the same twice.
            let (own, other) = if copy % 2 == 0 { (x, y) } else { (y, x) };
            let mut code = format!("{} {own}", instruction.name);
            for operand in instruction.operands.chars() {
                let source = match operand {
                    'x' if instruction.operands.len() == 1 => other,
                    'x' => own,
                    'y' => other,
                    'z' => z,
                    _ => "%s",
                };
                let _ = write!(code, ", {source}");
            }
            line(&(code + ";"));
        }
    }
    for value in [x, y] {
        match instruction.registers {
            Registers::B32 => line(&format!("xor.b32 %sum, %sum, {value};")),
            Registers::F32 => {
                line(&format!("mov.b32 %low, {value};"));
                line("xor.b32 %sum, %sum, %low;");
            }
            Registers::B64 | Registers::F64 => {
                line(&format!("mov.b64 {{%low, %high}}, {value};"));
                line("xor.b32 %sum, %sum, %low;");
                line("xor.b32 %sum, %sum, %high;");
            }
            Registers::F16 => {
                line(&format!("cvt.u32.u16 %low, {value};"));
                line("xor.b32 %sum, %sum, %low;");
            }
        }
    }
    for code in [
        "add.u32 %turn, %turn, 1;",
        "setp.lt.u32 %more, %turn, %turns;",
        "@%more bra LOOP;",
        "",
        "mov.u64 %end, %clock64;",
        "sub.u64 %end, %end, %begin;",
        // Every thread might store, so none of their work can be left out.
        "setp.eq.u32 %never, %sum, 305419896;",
        "or.b32 %thread, %thread, %block;",
        "setp.eq.u32 %first, %thread, 0;",
        "or.pred %first, %first, %never;",
        "cvt.u64.u32 %out, %sum;",
        "@%first st.global.u64 [%results], %end;",
        "@%first st.global.u64 [%results+8], %out;",
        "ret;",
    ] {
        line(code);
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::INSTRUCTIONS;
    use super::*;

    #[test]
    fn every_program_has_its_copies_and_the_empty_one_has_none() {
        assert!(INSTRUCTIONS.len() >= 40);
        for instruction in INSTRUCTIONS {
            let count = |text: &str| text.matches(&format!("\t{} ", instruction.name)).count();
            let own = count(&program(instruction, false, 70));
            assert_eq!(count(&program(instruction, true, 70)) - own, COPIES as usize, "{}", instruction.name);
        }
    }

    #[test]
    fn the_target_is_the_devices_or_the_newest_that_the_version_knows() {
        assert_eq!([52, 60, 75, 80, 90, 120].map(target), [52, 60, 75, 75, 75, 75]);
    }

    #[test]
    fn one_program_as_a_whole() {
        let div = INSTRUCTIONS.iter().find(|instruction| instruction.name == "div.u32").expect("in the list");
        insta::assert_snapshot!(program(div, true, 70));
    }
    /// Each kind of register, with as many operands as an instruction of it may have.
    #[test]
    fn a_program_of_each_kind_of_register() {
        let kinds = [Registers::B32, Registers::B64, Registers::F32, Registers::F64, Registers::F16];
        let programs = kinds.map(|kind| {
            let of_kind = INSTRUCTIONS.iter().filter(|instruction| instruction.registers == kind);
            let longest = of_kind.max_by_key(|instruction| instruction.operands.len()).expect("one of each");
            let text = program(longest, true, 75);
            // What lies between the loop's mark and its end is each kind's own.
            let (_, own) = text.split_once("LOOP:").expect("a loop");
            format!(
                "{} {}{}",
                longest.name,
                longest.operands,
                own.split("add.u32 %turn").next().unwrap_or_default()
            )
        });
        insta::assert_snapshot!(programs.join("\n"));
        let one =
            INSTRUCTIONS.iter().find(|instruction| instruction.operands.len() == 1).expect("one operand");
        let copies = program(one, true, 75);
        let own: Vec<&str> = copies.lines().filter(|line| line.trim().starts_with(one.name)).collect();
        // A chain: each takes what the one before has left.
        for pair in own.windows(2) {
            let target =
                |line: &str| line.trim().split([' ', ',', ';']).nth(1).unwrap_or_default().to_owned();
            assert!(pair[1].trim_end_matches(';').ends_with(&target(pair[0])), "{pair:?}");
        }
    }
}
