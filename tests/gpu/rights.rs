//! What launches of GPU kernels are seen by where the kernel refuses something: programs for probes, as kernels before Linux
//! 6.6 do, or probes to an ordinary user.

use std::ffi::c_ulong;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use eprof::machine::Roots;
use eprof::machine::permissions::kernel_version;
use eprof_testbed::gpu::launcher::{Stage, assert_succeeded, joules_of};
use eprof_testbed::{eprof, has_program, skip};

/// No user's of this machine.
const NOBODY: u32 = 65_534;

/// Answers `bpf(2)` in a program that is started now as kernels do that do not know what is asked for.
fn without_programs(command: &mut Command) {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let jump_if_equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, yes, no, number| libc::sock_filter { code, jt: yes, jf: no, k: number };
    let mut filter = [
        step(load, 0, 0, 0),
        step(jump_if_equal, 0, 1, libc::SYS_bpf as u32),
        step(answer, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32),
        step(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let install = move || {
        let filter = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        let mode = c_ulong::from(libc::SECCOMP_MODE_FILTER);
        // SAFETY: the filter lives until the kernel has copied it.
        let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: one system call, of memory that was made before.
    unsafe { command.pre_exec(install) };
}

fn has(recording: &Path, text: &str) -> bool {
    let bytes = fs::read(recording).expect("a recording");
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Each probe is an event of the kernel's uprobes then, on each CPU, and the report is the same.
#[test]
fn a_kernel_that_takes_no_program_is_probed_by_events() {
    let Some(stage) = Stage::set("", &[]) else { return };
    let mut recorder = stage.recorder("driver", &[&stage.cuda_lib()]);
    without_programs(&mut recorder);
    assert_succeeded(&recorder.output().expect("the program runs"));
    let probes = fs::read_to_string("/sys/bus/event_source/devices/uprobe/type").expect("uprobes");
    println!("uprobes are events of type {}", probes.trim());
    assert!(has(&stage.recording(), "\"encoding\":\"uprobe/"), "no event of the kernel's uprobes");
    let report = stage.json(&["--by", "kernel"]);
    let (heat, cool) = (joules_of(&report, "heat"), joules_of(&report, "cool"));
    // Three rounds of half a million turns of 40.1 and 4.1 uJ.
    println!("heat {heat:.2} J of 60.15, cool {cool:.2} J of 6.15");
    assert!((heat + cool - 66.3).abs() < 6.0 && heat > 4.0 * cool, "{heat} J, {cool} J");
    let rows = report["rows"].as_array().expect("rows");
    let launches: u64 = rows.iter().filter_map(|row| row["self_samples"].as_u64()).sum();
    assert_eq!(launches, 6, "{rows:#?}");
}

/// The command that eprof prints gives what is missing, and no more than that.
#[test]
fn an_ordinary_user_sees_launches_after_the_command_that_eprof_prints() {
    let Some(stage) = Stage::set("", &[]) else { return };
    if kernel_version(&Roots::default()) < (6, 6) {
        return skip("kernels before Linux 6.6 have probes for root alone");
    }
    if !has_program("setpriv", &["--version"]) || !has_program("setcap", &["-h"]) {
        return skip("setpriv or setcap is not installed");
    }
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").expect("perf events");
    if level.trim().parse::<i32>().is_ok_and(|level| level > 2) {
        return skip("perf_event_paranoid is above 2: nothing is open to users");
    }
    let folder = stage.folder.path();
    let own = folder.join("eprof");
    fs::copy(eprof().get_program(), &own).expect("a copy");
    for path in [folder, &own, &stage.library, &stage.program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its owner");
    }
    chown(folder, Some(NOBODY), Some(NOBODY)).expect("root");
    let record = || -> Output {
        let mut recorder = Command::new("setpriv");
        let user = NOBODY.to_string();
        recorder.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(&own);
        recorder
            .args(["record", "--gpu", "--watts", "10:50", &stage.cuda_lib(), "-o"])
            .arg(stage.recording());
        recorder.arg(&stage.program).arg(&stage.library).args(["driver", "20"]);
        recorder.env("HOME", folder).current_dir(folder).output().expect("it runs")
    };
    let refused = record();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{said}");
    let command = said.split_once("sudo ").expect("a command").1.lines().next().expect("a line");
    assert_eq!(command, format!("setcap cap_perfmon,cap_bpf=ep {}", own.display()), "{said}");
    let given = Command::new("sh").args(["-c", command]).output().expect("a shell");
    if !given.status.success() {
        return skip("file capabilities cannot be set here");
    }
    let recorded = record();
    assert_succeeded(&recorded);
    let script = eprof().args(["script", "-i"]).arg(stage.recording()).output().expect("it runs");
    let script = String::from_utf8_lossy(&script.stdout).into_owned();
    assert_eq!(script.matches("gpu-launch:cuLaunchKernel").count(), 6, "{script}");
    assert!(has(&stage.recording(), "_Z4heatPf"), "the names of kernels are read from the program's memory");
}
