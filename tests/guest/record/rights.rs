//! What an ordinary user may do at each setting of the kernel, and with capabilities.

use crate::bench::run;

/// Records as the ordinary user at each setting, with and without CAP_PERFMON.
const SCRIPT: &str = r#"
as_user() { ./setpriv --reuid 1000 --regid 1000 --clear-groups "$@"; }
perfmon() { as_user --inh-caps +perfmon --ambient-caps +perfmon "$@"; }
mkdir -p user; chown 1000:1000 user
for setting in -1 0 1 2 3; do
    echo $setting > /proc/sys/kernel/perf_event_paranoid
    echo "== own $setting"
    as_user ./eprof record -o user/own$setting.data ./phases -o asm -t 100 -q; echo status $?
    echo "== all $setting"
    as_user ./eprof record -o user/all$setting.data -a --duration 0.2; echo status $?
    echo "== perfmon $setting"
    perfmon ./eprof record -o user/perfmon$setting.data -a --duration 0.2; echo status $?
done
echo 1 > /proc/sys/kernel/perf_event_paranoid
echo "== powercap 0400"
as_user ./eprof record --meter powercap,estimate --meter-watch 500 -o user/closed.data ./phases -o asm -t 100 -q; echo status $?
chmod 0444 /sys/class/powercap/intel-rapl:0/energy_uj /sys/class/powercap/intel-rapl:0/*/energy_uj
echo "== powercap 0444"
as_user ./eprof record --meter powercap,estimate --meter-watch 500 -o user/open.data ./phases -o asm -t 100 -q; echo status $?
echo "== end"
"#;

#[test]
fn every_setting_gives_what_it_permits_and_says_the_rest() {
    let bring = ["user/own2.data", "user/own1.data"];
    let Some(run) = run(&["-f", "/usr/bin/setpriv"], SCRIPT, &bring) else { return };
    let ended_well = |section: &str| run.section(section).contains("status 0");
    for setting in [-1, 0, 1, 2] {
        assert!(ended_well(&format!("own {setting}")), "{}", run.section(&format!("own {setting}")));
    }
    assert!(run.section("own 2").contains("only the programs' own code"), "{}", run.section("own 2"));
    assert!(!run.section("own 1").contains("only the programs' own code"));
    // Debian's kernels refuse everything at 3.
    let said = run.section("own 3");
    assert!(!ended_well("own 3") && said.contains("sysctl kernel.perf_event_paranoid=2"), "{said}");
    for setting in [-1, 0] {
        assert!(ended_well(&format!("all {setting}")), "{}", run.section(&format!("all {setting}")));
    }
    for setting in [1, 2, 3] {
        let said = run.section(&format!("all {setting}"));
        assert!(said.contains("status 1") && said.contains("sysctl kernel.perf_event_paranoid=0"), "{said}");
        assert!(said.contains("setcap cap_perfmon=ep /guest/eprof"), "{said}");
    }
    for setting in [-1, 0, 1, 2] {
        assert!(ended_well(&format!("perfmon {setting}")), "{}", run.section(&format!("perfmon {setting}")));
    }
    // At 3 these kernels listen to root only, so there is no use in advising to give the capability.
    let said = run.section("perfmon 3");
    assert!(said.contains("status 1") && !said.contains("setcap") && said.contains("sudo sysctl"), "{said}");
    assert_eq!(run.recording("own2.data").kernel_samples, 0);

    let closed = run.section("powercap 0400");
    assert!(
        closed.contains("estimated") && closed.contains("energy is not measured by powercap"),
        "{closed}"
    );
    assert!(
        run.section("powercap 0444").contains("measured by powercap"),
        "{}",
        run.section("powercap 0444")
    );
}
