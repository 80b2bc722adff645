//! What `eprof doctor` advises is pasted into a shell, and then it works.

use crate::bench::run;

/// `sudo`, `sysctl` and the others as the shell's functions: the guest has no such programs, and the shell
/// is root's. `paste FILE PATTERN` runs the first commands below the line with the pattern.
const SCRIPT: &str = r#"
user() { ./setpriv --reuid 1000 --regid 1000 --clear-groups "$@"; }
sudo() { "$@"; }
sysctl() { echo "${1#*=}" > "/proc/sys/$(echo "${1%%=*}" | tr . /)"; }
setcap() { ./setcap "$@"; }
chgrp() { busybox chgrp "$@"; }
id() { echo tester; }
paste() {
    awk -v start="$2" '!below { below = $0 ~ start; next } /^        / { print; found = 1; next } found { exit }' "$1" > commands
    cat commands
    . ./commands
}
mkdir -p user; chown 1000:1000 user
for setting in 3 2 1; do
    echo $setting > /proc/sys/kernel/perf_event_paranoid
    cp eprof /tmp/eprof$setting
    echo "== before $setting"
    user /tmp/eprof$setting record -o user/before.data -a --meter power --duration 0.2; echo status $?
    user /tmp/eprof$setting doctor > told; echo doctor $?
    echo "== pasted $setting"
    paste told "What is missing"
    echo "== after $setting"
    user /tmp/eprof$setting record -o user/after.data -a --meter power --meter-watch 500 --duration 0.2; echo status $?
    user /tmp/eprof$setting doctor > told; echo doctor $?
done
echo 2 > /proc/sys/kernel/perf_event_paranoid
echo "== pasted powercap"
user ./eprof doctor > told; echo doctor $?
paste told "energy_uj may be read"
echo "== after powercap"
user ./eprof record --meter powercap,estimate --meter-watch 500 -o user/p.data ./phases -o asm -t 100 -q; echo status $?
user ./eprof doctor > told; echo doctor $?
echo "== end"
"#;

#[test]
fn the_first_repair_that_doctor_prints_works_as_it_stands() {
    let programs = ["-f", "/usr/bin/setpriv", "-f", "/usr/sbin/setcap"];
    let Some(run) = run(&programs, SCRIPT, &[]) else { return };
    println!("{}", run.said);
    // Before and after, the exit status of doctor: 0 measured, 1 estimated, 2 nothing at all.
    for (setting, before) in [(3, 2), (2, 1), (1, 1)] {
        let section = |name: &str| run.section(&format!("{name} {setting}"));
        let refused = section("before");
        assert!(refused.contains("status 1") && refused.contains(&format!("doctor {before}")), "{refused}");
        let pasted = section("pasted");
        assert!(pasted.contains(&format!("sudo setcap cap_perfmon=ep /tmp/eprof{setting}")), "{pasted}");
        assert_eq!(pasted.contains("perf_event_paranoid=2"), setting == 3, "{pasted}");
        let works = section("after");
        assert!(works.contains("status 0") && works.contains("doctor 0"), "{works}");
        assert!(works.contains("measured by power PMU"), "{works}");
    }
    assert!(run.section("pasted powercap").contains("doctor 1"), "{}", run.section("pasted powercap"));
    let works = run.section("after powercap");
    assert!(works.contains("measured by powercap") && works.contains("doctor 0"), "{works}");
}
