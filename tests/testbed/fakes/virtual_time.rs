//! Time that only passes when everybody waits: a library to be preloaded (LD_PRELOAD) into a program,
//! built by the tests with rustc as a cdylib.
//!
//! It stands in for the C library's clocks, sleeps and the making and joining of threads. While any
//! thread runs, time stands still but for a moment at each look at a clock; when all threads sleep or
//! wait for another thread's end, time jumps to the earliest end of a sleep. So a program that polls a
//! sensor for a minute does so in milliseconds, and as exactly on a busy machine as on a quiet one.

#![allow(non_camel_case_types, clippy::missing_safety_doc)]

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::mem::transmute;
use std::sync::{Condvar, Mutex, MutexGuard};

const NANOS: u64 = 1_000_000_000;
/// When the program starts: some day in 2020, so that no clock reads zero.
const START: u64 = 1_600_000_000 * NANOS;
/// A look at the clock takes this long.
const LOOK: u64 = 100;
const TIMER_ABSTIME: c_int = 1;
const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;

type pthread_t = c_ulong;
type Routine = extern "C" fn(*mut c_void) -> *mut c_void;

#[repr(C)]
pub struct timespec {
    seconds: i64,
    nanos: i64,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn pthread_self() -> pthread_t;
}

struct Time {
    now: u64,
    /// Threads that neither sleep nor wait for another's end.
    running: usize,
    /// Ends of sleeps, with a number that tells equal ones apart.
    sleeps: BTreeSet<(u64, u64)>,
    next_sleep: u64,
    /// Threads whose end is waited for.
    awaited: BTreeSet<pthread_t>,
    /// Threads that ended and were not joined yet.
    ended: BTreeSet<pthread_t>,
}

static TIME: Mutex<Time> = Mutex::new(Time {
    now: START,
    running: 1,
    sleeps: BTreeSet::new(),
    next_sleep: 0,
    awaited: BTreeSet::new(),
    ended: BTreeSet::new(),
});
static PASSED: Condvar = Condvar::new();

fn time() -> MutexGuard<'static, Time> {
    TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Time {
    /// One thread less runs. If it was the last, time goes on to the first end of a sleep.
    fn one_less(&mut self) {
        self.running -= 1;
        if self.running == 0
            && let Some((end, _)) = self.sleeps.first().copied()
        {
            self.now = self.now.max(end);
            // The sleepers run from now on, though the kernel may take a while to notice.
            while let Some(sleep) = self.sleeps.first().copied().filter(|(end, _)| *end <= self.now) {
                self.sleeps.remove(&sleep);
                self.running += 1;
            }
            PASSED.notify_all();
        }
    }
}

fn sleep_until(end: u64) {
    let mut time = time();
    if end <= time.now {
        return;
    }
    let sleep = (end, time.next_sleep);
    time.next_sleep += 1;
    time.sleeps.insert(sleep);
    time.one_less();
    while time.sleeps.contains(&sleep) {
        time = PASSED.wait(time).unwrap_or_else(|poisoned| poisoned.into_inner());
    }
}

unsafe fn nanos(span: *const timespec) -> u64 {
    let span = unsafe { &*span };
    span.seconds as u64 * NANOS + span.nanos as u64
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(_clock: c_int, to: *mut timespec) -> c_int {
    let mut time = time();
    time.now += LOOK;
    unsafe { *to = timespec { seconds: (time.now / NANOS) as i64, nanos: (time.now % NANOS) as i64 } };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nanosleep(span: *const timespec, _left: *mut timespec) -> c_int {
    let end = time().now + unsafe { nanos(span) };
    sleep_until(end);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    _clock: c_int,
    flags: c_int,
    span: *const timespec,
    _left: *mut timespec,
) -> c_int {
    let start = if flags & TIMER_ABSTIME == 0 { time().now } else { 0 };
    sleep_until(start + unsafe { nanos(span) });
    0
}

/// The C library's own function of this name.
unsafe fn original(name: &CStr) -> *mut c_void {
    let found = unsafe { dlsym(RTLD_NEXT, name.as_ptr()) };
    assert!(!found.is_null(), "the C library has {name:?}");
    found
}

struct Start {
    routine: Routine,
    argument: *mut c_void,
}

extern "C" fn run(start: *mut c_void) -> *mut c_void {
    let Start { routine, argument } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    let result = routine(argument);
    let own = unsafe { pthread_self() };
    let mut time = time();
    time.ended.insert(own);
    // Who waits for this thread runs in its place.
    if !time.awaited.remove(&own) {
        time.one_less();
    }
    result
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const c_void,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(*mut pthread_t, *const c_void, Routine, *mut c_void) -> c_int;
    let create = unsafe { transmute::<*mut c_void, Create>(original(c"pthread_create")) };
    time().running += 1;
    let start = Box::into_raw(Box::new(Start { routine, argument }));
    unsafe { create(thread, attributes, run, start.cast()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    type Join = unsafe extern "C" fn(pthread_t, *mut *mut c_void) -> c_int;
    let join = unsafe { transmute::<*mut c_void, Join>(original(c"pthread_join")) };
    {
        let mut time = time();
        if !time.ended.contains(&thread) {
            time.awaited.insert(thread);
            time.one_less();
        }
    }
    let status = unsafe { join(thread, result) };
    time().ended.remove(&thread);
    status
}
