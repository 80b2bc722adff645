//! Machine code as text.
//!
//! 64-bit x86 by iced-x86, which is complete, kept up, and nothing but Rust; 64-bit Arm by yaxpeax-arm for the same
//! reasons: capstone would bring a compiler for C and all its architectures along.

use iced_x86::{
    Decoder as X86Decoder, DecoderOptions, Formatter, GasFormatter, Instruction as X86, IntelFormatter,
    OpKind,
};
use yaxpeax_arch::{Arch, Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{ARMv8, Operand};

use crate::symbolize::{Architecture, MachineCode};

/// How x86 is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Syntax {
    /// As perf and objdump write it: `mov %rax,%rbx`.
    #[default]
    Att,
    /// As the makers write it: `mov rbx,rax`.
    Intel,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes from the function's start.
    pub at: u64,
    /// Its length in bytes.
    pub length: u64,
    /// What it says; `(bad)` where the bytes are no instruction.
    pub text: String,
    /// Where it jumps to or what it calls, in the module's own virtual addresses, if it says so itself.
    pub target: Option<u64>,
}

/// All instructions of a function, one behind the other.
pub fn disassemble(code: &MachineCode, syntax: Syntax) -> Vec<Instruction> {
    match code.architecture {
        Architecture::X86_64 => x86(code, syntax),
        Architecture::Aarch64 => aarch64(code),
    }
}

fn x86(code: &MachineCode, syntax: Syntax) -> Vec<Instruction> {
    let mut formatter: Box<dyn Formatter> = match syntax {
        Syntax::Att => Box::new(GasFormatter::new()),
        Syntax::Intel => Box::new(IntelFormatter::new()),
    };
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_space_after_operand_separator(false);
    options.set_rip_relative_addresses(true);
    let mut decoder = X86Decoder::with_ip(64, &code.bytes, code.address, DecoderOptions::NONE);
    let (mut found, mut instruction) = (Vec::new(), X86::default());
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        // The address itself stands behind, as objdump has it.
        if instruction.is_ip_rel_memory_operand() {
            text += &format!("  # 0x{:x}", instruction.ip_rel_memory_address());
        }
        let is_branch = matches!(
            instruction.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        );
        found.push(Instruction {
            at: instruction.ip().wrapping_sub(code.address),
            length: instruction.len() as u64,
            text: if instruction.is_invalid() { "(bad)".to_owned() } else { text },
            target: is_branch.then(|| instruction.near_branch_target()),
        });
    }
    found
}

/// All instructions of 64-bit Arm have this length.
const WORD: usize = 4;

fn aarch64(code: &MachineCode) -> Vec<Instruction> {
    let decoder = <ARMv8 as Arch>::Decoder::default();
    let words = code.bytes.chunks_exact(WORD).zip((0..).step_by(WORD));
    let instruction = |(word, at): (&[u8], u64)| {
        let decoded = decoder.decode(&mut U8Reader::new(word));
        let (text, target) = match decoded {
            Ok(instruction) => {
                let offset = instruction.operands.iter().find_map(|operand| match operand {
                    Operand::PCOffset(offset) => Some(*offset),
                    _ => None,
                });
                let is_address = instruction.to_string().starts_with("adr");
                let target = offset.filter(|_| !is_address);
                let target = target.map(|offset| (code.address + at).wrapping_add_signed(offset));
                (instruction.to_string(), target)
            }
            Err(_) => ("(bad)".to_owned(), None),
        };
        Instruction { at, length: WORD as u64, text, target }
    };
    words.map(instruction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(architecture: Architecture, bytes: &[u8], syntax: Syntax) -> Vec<(u64, String, Option<u64>)> {
        let code = MachineCode { architecture, address: 0x1000, offset: 0, bytes: bytes.to_vec() };
        let found = disassemble(&code, syntax);
        found.into_iter().map(|found| (found.at, found.text, found.target)).collect()
    }

    #[test]
    fn x86_in_both_syntaxes() {
        // add %rax,%rbx; jne -5; call +0x10; ret; an invalid byte.
        let bytes = [0x48, 0x01, 0xc3, 0x75, 0xfb, 0xe8, 0x10, 0, 0, 0, 0xc3, 0x06];
        let att = texts(Architecture::X86_64, &bytes, Syntax::Att);
        assert_eq!(att[0], (0, "add %rax,%rbx".to_owned(), None));
        assert_eq!(att[1], (3, "jne 0x1000".to_owned(), Some(0x1000)));
        assert_eq!((att[2].0, att[2].2), (5, Some(0x101a)));
        assert_eq!((att[3].1.as_str(), att[4].1.as_str()), ("ret", "(bad)"));
        assert_eq!(texts(Architecture::X86_64, &bytes, Syntax::Intel)[0].1, "add rbx,rax");
    }

    #[test]
    fn addresses_beside_the_instruction_pointer_are_as_in_objdump() {
        // movsd 0xd5b(%rip),%xmm2 of 8 bytes at 0x1000; lea -0x10(%rip),%rax of 7 behind it.
        let bytes = [0xf2, 0x0f, 0x10, 0x15, 0x5b, 0x0d, 0, 0, 0x48, 0x8d, 0x05, 0xf0, 0xff, 0xff, 0xff];
        let att = texts(Architecture::X86_64, &bytes, Syntax::Att);
        assert_eq!(att[0].1, "movsd 0xd5b(%rip),%xmm2  # 0x1d63");
        assert_eq!(att[1].1, "lea -0x10(%rip),%rax  # 0xfff");
        let intel = texts(Architecture::X86_64, &bytes, Syntax::Intel);
        assert_eq!(intel[1].1, "lea rax,[rip-0x10]  # 0xfff");
    }

    #[test]
    fn arm_words() {
        // add x0, x1, x2; bl +16; b.ne -8; a word that is no instruction; bytes that are no word.
        let words = [0x8b02_0020_u32, 0x9400_0004, 0x54ff_ffc1, 0x0000_0000];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend([1, 2]);
        let found = texts(Architecture::Aarch64, &bytes, Syntax::Att);
        assert_eq!(found.len(), 4);
        assert_eq!(found[0], (0, "add x0, x1, x2".to_owned(), None));
        assert_eq!((found[1].0, found[1].2), (4, Some(0x1014)));
        assert_eq!((found[2].0, found[2].2), (8, Some(0x1000)));
    }
}
