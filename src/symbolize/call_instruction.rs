//! Whether an instruction of an x86 program is one that a function can return to, by the bytes around it.

/// `call` with the distance to the function.
const CALL_RELATIVE: u8 = 0xe8;
/// The first byte of many instructions: `call` through a register or memory is the one with the next field 2.
const GROUP_5: u8 = 0xff;
const CALL_INDIRECT: u8 = 2;
const NOP: u8 = 0x90;

/// Can a function return to between these two pieces of code? It can behind a call; and as Go's `goexit` does it, to the
/// second instruction of a function that is entered by returning alone, whose first is a `nop`.
pub(super) fn may_return_between(before: &[u8], behind: &[u8]) -> bool {
    let from_end = |distance: usize| Some(*before.get(before.len().checked_sub(distance)?..)?.first()?);
    let is_relative = from_end(5) == Some(CALL_RELATIVE);
    let is_indirect = (2..=7).any(|length| {
        before.len() >= length && length_of_indirect_call(&before[before.len() - length..]) == Some(length)
    });
    let is_entered = from_end(1) == Some(NOP) && behind.first() == Some(&CALL_RELATIVE);
    is_relative || is_indirect || is_entered
}

/// The length of the indirect call that these bytes begin with, but for prefixes (Intel's manual, volume 2, tables 2-2
/// and 2-3).
fn length_of_indirect_call(bytes: &[u8]) -> Option<usize> {
    let [GROUP_5, operand, rest @ ..] = bytes else { return None };
    let (mode, field, register) = (operand >> 6, operand >> 3 & 7, operand & 7);
    if field != CALL_INDIRECT {
        return None;
    }
    let has_scale = mode != 3 && register == 4;
    let base = if has_scale { rest.first()? & 7 } else { register };
    let displacement = match mode {
        0 if base == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    Some(2 + usize::from(has_scale) + displacement)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As GNU's assembler encodes them.
    #[test]
    fn behind_calls() {
        let calls: [(&str, &[u8]); 13] = [
            ("call near", &[0xe8, 0x12, 0x34, 0x56, 0x78]),
            ("call *%rax", &[0xff, 0xd0]),
            ("call *%r12", &[0x41, 0xff, 0xd4]),
            ("call *(%rax)", &[0xff, 0x10]),
            ("call *(%r12)", &[0x41, 0xff, 0x14, 0x24]),
            ("call *8(%rbx)", &[0xff, 0x53, 0x08]),
            ("call *8(%rsp)", &[0xff, 0x54, 0x24, 0x08]),
            ("call *0x1234(%rip)", &[0xff, 0x15, 0x34, 0x12, 0, 0]),
            ("call *0x1234(%rbx)", &[0xff, 0x93, 0x34, 0x12, 0, 0]),
            ("call *0x1234(%rsp)", &[0xff, 0x94, 0x24, 0x34, 0x12, 0, 0]),
            ("call *(%rbx,%rax,8)", &[0xff, 0x14, 0xc3]),
            ("call *0x1234(,%rax,8)", &[0xff, 0x14, 0xc5, 0x34, 0x12, 0, 0]),
            ("notrack call *%rdx", &[0x3e, 0xff, 0xd2]),
        ];
        for (name, call) in calls {
            let before = [&[0x0f, 0x1f, 0x00], call].concat();
            assert!(may_return_between(&before, &[0xc3]), "{name}");
            assert!(may_return_between(call, &[0xc3]), "{name}, at the start of the section");
        }
        assert!(may_return_between(&[0xc3, NOP], &[CALL_RELATIVE, 0, 0, 0, 0, NOP]), "Go's goexit");
    }

    #[test]
    fn behind_other_instructions() {
        let others: [(&str, &[u8]); 7] = [
            ("nothing", &[]),
            ("ret", &[0xc3]),
            ("nopw 0(%rax,%rax)", &[0x66, 0x0f, 0x1f, 0x44, 0, 0]),
            ("nopl 0(%rax)", &[0xc3, 0x0f, 0x1f, 0x80, 0, 0, 0, 0]),
            ("xchg %ax,%ax", &[0xc3, 0x66, 0x90]),
            ("jmp *%rax", &[0xff, 0xe0]),
            ("push 8(%rbx)", &[0xff, 0x73, 0x08]),
        ];
        for (name, bytes) in others {
            assert!(!may_return_between(bytes, &[0xf3, 0x0f, 0x1e, 0xfa]), "{name}");
        }
    }
}
