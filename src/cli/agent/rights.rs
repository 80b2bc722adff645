//! Which rights the agent needs, and which it gives up.
//!
//! To begin with: to sample all processes (`CAP_PERFMON`, or `CAP_SYS_ADMIN` before Linux 5.8), to read where the kernel's
//! functions are (`CAP_SYSLOG`), which code the processes of others have mapped that run already (`CAP_SYS_PTRACE`), and
//! meters and programs that only their owners may read (`CAP_DAC_READ_SEARCH`); the MSR meter wants `CAP_SYS_RAWIO`. All
//! others go before anything is opened, root's too.
//!
//! Afterwards it keeps what it needs for as long as it runs: events and meters are opened again when settings change or a
//! meter falls silent, and there are always new programs, whose names are in files. None of that lets it
//! write what is not its own, run programs as others, or change the machine. Who speaks with scrapers has none.

use std::io;

use anyhow::Context;
use eprof::process::{Credentials, privileges};
use nix::unistd::Uid;

const CAP_DAC_READ_SEARCH: u64 = 1 << 2;
const CAP_SETGID: u64 = 1 << 6;
const CAP_SETUID: u64 = 1 << 7;
const CAP_SYS_RAWIO: u64 = 1 << 17;
const CAP_SYS_PTRACE: u64 = 1 << 19;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;

/// What the agent keeps.
pub const KEPT: u64 = CAP_PERFMON | privileges::SYSLOG | CAP_DAC_READ_SEARCH | CAP_SYS_PTRACE;
/// What it needs until all is open.
const TO_OPEN: u64 = KEPT | CAP_SYS_ADMIN | CAP_SYS_RAWIO | CAP_SETUID | CAP_SETGID;

/// Gives up what is not even needed to open events and meters. Before any thread is made.
///
/// # Errors
/// What the kernel says.
pub fn before_opening() -> io::Result<()> {
    privileges::keep_capabilities(TO_OPEN)
}

/// Gives up what is not needed any more, for all threads that are made from now on, and becomes another user, if one is
/// named.
///
/// # Errors
/// A user that does not exist, or the lack of the right to become one.
pub fn when_open(user: Option<&str>) -> anyhow::Result<()> {
    if let Some(user) = user.filter(|_| Uid::effective().is_root()) {
        let credentials = Credentials::of_user(user)?;
        return credentials.become_keeping(KEPT).with_context(|| format!("cannot become the user {user}"));
    }
    privileges::keep_capabilities(KEPT).context("cannot give up rights")
}
