//! The clocks of this process: the recording's, its own CPU time, and that of children that have ended.

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::units::{Nanoseconds, Timestamp};

/// Now, on the recording's clock.
pub fn monotonic_now() -> Timestamp {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or_else(
        |_| Timestamp::default(),
        |time| Timestamp::from_nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64),
    )
}

/// What the kernel says that the wall clock is off by at most; `None` if nothing keeps it in time.
pub fn utc_error() -> Option<Nanoseconds> {
    // SAFETY: all bytes zero is a valid value of this structure of numbers; its mode 0 asks, and sets nothing.
    let mut times: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes into the structure that is ours.
    let state = unsafe { libc::adjtimex(&raw mut times) };
    let is_kept = state >= 0 && state != libc::TIME_ERROR && times.status & libc::STA_UNSYNC == 0;
    let micros = u64::try_from(times.maxerror).ok().filter(|_| is_kept)?;
    Some(Nanoseconds::from_nanos(micros.saturating_mul(1000)))
}

/// CPU time of this process, all threads.
pub fn own_cpu_time() -> Nanoseconds {
    cpu_time(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread.
pub fn thread_cpu_time() -> Nanoseconds {
    cpu_time(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of a process, all threads, those that have ended as well: of this process up to now, of others up to the last tick of
/// the CPUs that they run on. procfs has the same in hundredths of a second, user and system time each rounded down. `None`
/// where there is no such process.
pub fn cpu_time_of(pid: u32) -> Option<Nanoseconds> {
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    let clock = clock_getcpuclockid(Pid::from_raw(pid)).ok()?;
    clock_gettime(clock).is_ok().then(|| cpu_time(clock))
}

fn cpu_time(clock: ClockId) -> Nanoseconds {
    clock_gettime(clock).map_or(Nanoseconds::ZERO, |time| {
        Nanoseconds::from_nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
    })
}

/// Ticks in which the kernel tells CPU times, in a second.
pub fn ticks_per_second() -> f64 {
    // SAFETY: sysconf only reads a constant of the system.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

/// CPU time in seconds of all children that have ended and were waited for, with their own such children.
pub fn children_cpu_seconds() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return 0.0 };
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}
