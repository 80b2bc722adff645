//! An Arm core with a PMU whose counters overflow: QEMU's emulation of PMUv3, which counts nanoseconds as
//! cycles, and, where its clock counts instructions, those of all CPUs together.

use crate::aarch64;
use crate::bench::{assert_near, run_arm64};

/// One CPU, so that all instructions are its own; each takes two nanoseconds.
const ONE_CPU: [&str; 4] = ["--smp", "1", "--icount", "shift=1,sleep=off"];
const NANOSECONDS_PER_INSTRUCTION: f64 = 2.0;

const SCRIPT: &str = "
work='i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'
echo == doctor; ./eprof doctor
echo == record; ./eprof record -o a.data sh -c \"$work & $work & wait\"
echo == user; echo 2 > /proc/sys/kernel/perf_event_paranoid
mkdir user; chown 1000:1000 user
su tester -s /bin/sh -c \"./eprof record -o user/u.data sh -c '$work'\"
echo == leaf; ./eprof record -q -o l.data ./leaf; ./eprof --no-pager report l.data --children --width 80
echo == end";

#[test]
fn cycles_and_instructions_of_an_arm_core_overflow() {
    let Some(eprof) = aarch64::eprof() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let leaf = folder.path().join("leaf");
    let Some(()) = aarch64::compile("leaf.c", &leaf) else { return };
    let options = [&ONE_CPU[..], &["-f", leaf.to_str().expect("text")]].concat();
    let Some(run) = run_arm64(&eprof, &options, SCRIPT, &["a.data", "user/u.data"]) else { return };
    println!("{}", run.said);
    // Of a leaf's frame pointer nobody knows; its caller is in the link register.
    let leaf = run.section("leaf");
    for function in ["leaf", "middle", "outer", "main"] {
        let row = leaf.lines().find(|line| line.contains(&format!(" {function} ")));
        let total = row.and_then(|row| row.split_whitespace().next()?.parse::<f64>().ok());
        let all = leaf.lines().find(|line| line.contains("all functions")).expect("a sum");
        let all: f64 = all.split_whitespace().next().and_then(|sum| sum.parse().ok()).expect("joules");
        assert!(total.is_some_and(|total| total > 0.9 * all), "{function}: {leaf}");
    }
    let doctor = run.section("doctor");
    assert!(doctor.contains("cortex-a57") && doctor.contains("armv8_pmuv3"), "{doctor}");
    for (name, with_kernel) in [("a.data", true), ("u.data", false)] {
        let recorded = run.recording(name);
        let metadata = recorded.metadata.as_ref().expect("metadata");
        assert_eq!(metadata.machine.arch, "aarch64");
        assert_eq!(metadata.machine.microarchitecture.as_deref(), Some("cortex-a57"));
        let events = &metadata.events;
        let of_role = |role: &str| {
            events
                .iter()
                .find(|event| event.role.map(eprof::hardware::Role::name) == Some(role))
                .map(|e| e.name.clone())
        };
        let (cycles, instructions) =
            (of_role("clk").expect("cycles"), of_role("inst").expect("instructions"));
        let (cycles, instructions) = (recorded.event(&cycles), recorded.event(&instructions));
        println!("{name}: {cycles:?}, {instructions:?}");
        if with_kernel {
            assert_near("cycles", cycles.counted as f64, cycles.running as f64, 0.02);
            let expected = instructions.running as f64 / NANOSECONDS_PER_INSTRUCTION;
            assert_near("instructions", instructions.counted as f64, expected, 0.02);
        } else {
            assert!(cycles.counted < cycles.running && recorded.kernel_samples == 0, "{recorded:?}");
        }
        // A period may be under way in each of the program's processes when it ends.
        assert_near("samples of cycles", cycles.period as f64, cycles.counted as f64, 0.05);
        assert!(cycles.samples > 20 && recorded.lost == 0, "{recorded:?}");
    }
}
