//! Recordings that follow one mode alone, whose other mode has no row.

use perf_data::EventDesc;
use perf_data::attr::flag;

use crate::analyze::aggregate::not_sampled::NotSampled;
use crate::analyze::events::EventRoles;
use crate::recording::Recording;

/// What the reader of joules must know of a recording whose sampled events count in one mode alone, if what the program
/// took in the other mode is not booked to it as time without samples ([`NotSampled`]).
///
/// How much of the CPU time that was is known, but not what it would have counted: of cycles in user mode nobody can
/// tell how many others there were.
pub(crate) fn warning(recording: &Recording, roles: &EventRoles) -> Option<String> {
    let (mode, other) = match sampled_mode(recording, roles)? {
        flag::EXCLUDE_KERNEL => ("user", "the kernel"),
        _ => ("kernel", "user code"),
    };
    let metadata = recording.metadata().filter(|metadata| !metadata.domains.is_empty())?;
    if NotSampled::new(recording, roles).is_some() {
        return None;
    }
    let among = match metadata.system_wide_samples {
        true => "all functions",
        false => "functions and other processes",
    };
    Some(format!(
        "only {mode} mode was sampled: what {other} did has no row, and its joules are shared out among {among} as these \
         were sampled"
    ))
}

/// The flag that all sampled events have and that leaves out a mode, if there is one.
fn sampled_mode(recording: &Recording, roles: &EventRoles) -> Option<u64> {
    let is_sampled = |event: &&EventDesc| roles.sampled().iter().any(|sampled| sampled.name == event.name);
    mode_of_all(recording.events().iter().filter(is_sampled).map(|event| event.attr.flags))
}

fn mode_of_all(flags: impl Iterator<Item = u64>) -> Option<u64> {
    let modes = flag::EXCLUDE_KERNEL | flag::EXCLUDE_USER;
    let mut flags = flags.map(|flags| flags & modes);
    let first = flags.next().filter(|first| [flag::EXCLUDE_KERNEL, flag::EXCLUDE_USER].contains(first))?;
    flags.all(|others| others == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mode_was_sampled_where_all_events_leave_out_the_same_other() {
        const USER: u64 = flag::EXCLUDE_KERNEL;
        const KERNEL: u64 = flag::EXCLUDE_USER;
        let of = |flags: &[u64]| mode_of_all(flags.iter().copied());
        assert_eq!((of(&[USER]), of(&[USER, USER, USER | flag::DISABLED])), (Some(USER), Some(USER)));
        assert_eq!(of(&[KERNEL, KERNEL]), Some(KERNEL));
        for both in [[USER, KERNEL], [USER, 0], [0, USER], [0, 0], [USER | KERNEL; 2]] {
            assert_eq!(of(&both), None, "{both:?}");
        }
        assert_eq!(of(&[]), None);
    }
}
