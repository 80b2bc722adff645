//! What a program printed, by whether it succeeded.

use std::process::Output;

/// Standard output of a run that must succeed.
///
/// # Panics
/// With what it said, if it failed.
#[track_caller]
pub fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// Why a run that must fail did.
///
/// # Panics
/// With what it printed, if it succeeded.
#[track_caller]
pub fn refused(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}
