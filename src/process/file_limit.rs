//! Counters are open files, and many CPUs need many of them.

use nix::sys::resource::{self, Resource};

/// Raises the limit of open files to so many, if it is lower.
///
/// # Errors
/// The limit that cannot be passed, which takes CAP_SYS_RESOURCE.
pub fn raise_to(needed: u64) -> Result<(), u64> {
    let Ok((soft, hard)) = resource::getrlimit(Resource::RLIMIT_NOFILE) else { return Ok(()) };
    if soft >= needed || hard >= needed && resource::setrlimit(Resource::RLIMIT_NOFILE, needed, hard).is_ok()
    {
        return Ok(());
    }
    resource::setrlimit(Resource::RLIMIT_NOFILE, needed, needed).map_err(|_| hard)
}
