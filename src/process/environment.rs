//! The environment that eprof's user gave it.
//!
//! For a file with capabilities the C library takes variables out of it before eprof begins: `LD_LIBRARY_PATH`,
//! `LD_PRELOAD`, `TMPDIR` and others by which a user could have eprof do things with rights that only eprof has. The
//! program that eprof starts has none of these rights, and gets the environment as it was.

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use crate::process::privileges;

/// The environment before anything was taken out of it, each variable as `NAME=VALUE`; `None` where nothing was taken
/// out, or where it cannot be told.
pub fn before_it_was_cleaned() -> Option<Vec<CString>> {
    if !privileges::is_secure_mode() {
        return None;
    }
    // The file `environ` is closed to a process with capabilities of its file, though it is its own; where the
    // variables lie is not.
    let (start, end) = block(&fs::read_to_string("/proc/self/stat").ok()?)?;
    // SAFETY: the kernel put the variables there before the process began, and the memory stays mapped and is never
    // written to: to take a variable out moves pointers, and to set one makes it anew.
    let bytes =
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(start), end - start) };
    Some(variables(bytes))
}

/// Sets variables, in the place of those of the same name.
pub fn set(environment: &mut Vec<CString>, variables: &[(CString, CString)]) {
    for (name, value) in variables {
        let start = [name.as_bytes(), b"="].concat();
        environment.retain(|variable| !variable.as_bytes().starts_with(&start));
        // Neither part has a zero byte within.
        environment.extend(CString::new([&start, value.as_bytes()].concat()).ok());
    }
}

/// Gives a command the environment as it was before anything was taken out of it.
pub fn restore(command: &mut Command) {
    let Some(environment) = before_it_was_cleaned() else { return };
    let pair = |variable: &CString| {
        let bytes = variable.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=')?;
        let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        Some((text(&bytes[..at]), text(&bytes[at + 1..])))
    };
    command.env_clear().envs(environment.iter().filter_map(pair));
}

/// Where the variables lie: words 50 and 51 of `/proc/self/stat`.
fn block(stat: &str) -> Option<(usize, usize)> {
    // The name in parentheses is the second word, and may hold anything.
    let mut words = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().skip(47);
    let mut address = || words.next()?.parse::<usize>().ok();
    let (start, end) = (address()?, address()?);
    (start != 0 && start <= end).then_some((start, end))
}

fn variables(bytes: &[u8]) -> Vec<CString> {
    let texts = bytes.split(|byte| *byte == 0).filter(|text| !text.is_empty());
    texts.filter_map(|text| CString::new(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_are_where_the_kernel_says() {
        let (start, end) =
            block(&fs::read_to_string("/proc/self/stat").expect("readable")).expect("addresses");
        let file = fs::read("/proc/self/environ").expect("readable without capabilities");
        assert_eq!(end - start, file.len());
        assert_eq!(block("1 (a) b) S 0 0"), None);
        let expected: Vec<CString> = [c"A=1", c"B="].map(CString::from).into();
        assert_eq!(variables(b"A=1\0B=\0\0"), expected);
        let mut changed = expected;
        set(&mut changed, &[(c"A".into(), c"2".into()), (c"C".into(), c"3".into())]);
        assert_eq!(changed, [c"B=", c"A=2", c"C=3"].map(CString::from));
    }
}
