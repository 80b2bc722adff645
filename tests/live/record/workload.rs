//! Programs to record: the test binary starts itself again with their name in the environment.

use std::ffi::OsString;
use std::hint::black_box;
use std::process::Command;
use std::thread;
use std::time::Duration;

const VARIABLE: &str = "EPROF_TEST_WORKLOAD";

/// The command line that runs a workload, for use behind `eprof record --`.
pub fn command(name: &str) -> Vec<OsString> {
    let me = std::env::current_exe().expect("the test's own path");
    let mut line = vec!["env".into(), format!("{VARIABLE}={name}").into(), me.into_os_string()];
    // libtest's own report goes away with --quiet but for a few lines; no test looks at stdout here.
    line.extend(["--exact", "record::workload::run", "--test-threads=1", "--quiet"].map(OsString::from));
    line
}

/// Not a test but the entry of the workloads: it does nothing unless the environment names one.
#[test]
fn run() {
    let Ok(name) = std::env::var(VARIABLE) else { return };
    let (kind, number) = name.split_once(':').unwrap_or((&name, "0"));
    let number: u64 = number.parse().expect("a number");
    match kind {
        "spin" => spin_for(Duration::from_millis(number)),
        "threads" => many_threads(number),
        "forks" => many_processes(number),
        "segfault" => {
            spin_for(Duration::from_millis(20));
            // SAFETY: there is none; the process is meant to die of it.
            unsafe { std::ptr::null_mut::<u8>().write_volatile(1) };
        }
        other => panic!("no workload {other}"),
    }
}

/// Uses CPU time, whatever the machine's load, until so much of it has gone on this thread.
#[inline(never)]
pub fn spin_for(cpu_time: Duration) {
    let used = || {
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).expect("clock");
        Duration::from(now)
    };
    let start = used();
    let mut sum = 0u64;
    while used() - start < cpu_time {
        for number in 0..10_000u64 {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(number));
        }
    }
}

/// Threads that are born and die while they are recorded, at most 16 at once.
fn many_threads(count: u64) {
    for batch in 0..count.div_ceil(16) {
        let size = 16.min(count - batch * 16);
        let threads: Vec<_> = (0..size)
            .map(|index| {
                let name = format!("worker-{}", batch * 16 + index);
                let work = || spin_for(Duration::from_millis(3));
                thread::Builder::new().name(name).spawn(work).expect("a thread")
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}

/// Short processes, one after the other.
fn many_processes(count: u64) {
    for _ in 0..count {
        assert!(Command::new("true").status().expect("started").success());
    }
}

/// In the program's first thread, if the environment asks for it: so many times it runs for 0.4 ms and then a thread that it
/// starts does, all on one CPU.
pub fn run_turns() -> bool {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    let Some(count) = name.strip_prefix("turns:") else { return false };
    let count: u64 = count.parse().expect("a number");
    let cpu = nix::sched::sched_getcpu().expect("a CPU");
    let mut one = nix::sched::CpuSet::new();
    one.set(cpu).expect("a CPU's number");
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &one).expect("a CPU that may be used");
    let spin = || spin_for(Duration::from_micros(400));
    for _ in 0..count {
        spin();
        thread::spawn(spin).join().expect("no panic");
    }
    true
}
