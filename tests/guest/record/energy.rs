//! Joules: against the simulated machine's own, over wraps, for two packages and single cores.

use eprof::hardware::{DomainInfo, DomainKind};
use eprof_testbed::eprof;

use super::summary::Summary;
use crate::bench::{Run, STEADY, run};

/// Energy of each package in joules: package, cores, DRAM.
type Energies = Vec<[f64; 3]>;

/// Constant watts of a package's cores.
const STATIC_OF_CORES: f64 = 12.41;

/// The truth at two moments of the recording, and the simulated machine's seconds between them. Each lies between two times on the samples' clock, in
/// nanoseconds: a busy host may stop the guest while it takes them.
struct Truths {
    moments: Vec<(u64, Energies, u64)>,
    seconds: f64,
}

/// Takes the truth between two times of CLOCK_MONOTONIC, to memory.
const MOMENT: &str = "cat /proc/timer_list /proc/simhw /proc/timer_list >> truth";
/// Prints what was taken, without the timers themselves.
const SHOW: &str = "grep -E \"^package|^now at\" truth";

impl Truths {
    fn of(run: &Run) -> Self {
        let mut moments: Vec<(u64, Energies, u64)> = Vec::new();
        let (mut before, mut times) = (None, Vec::new());
        let mut packages = Vec::new();
        for line in run.said.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["package", _, time, package, cores, dram] => {
                    times.push(time.parse::<f64>().expect("nanoseconds") * 1e-9);
                    let joules = |text: &str| text.parse::<f64>().expect("microjoules") * 1e-6;
                    packages.push([joules(package), joules(cores), joules(dram)]);
                }
                ["now", "at", time, ..] => {
                    let time = time.parse().expect("a time");
                    match before.take() {
                        None => before = Some(time),
                        Some(before) => moments.push((before, std::mem::take(&mut packages), time)),
                    }
                }
                _ => {}
            }
        }
        assert_eq!(moments.len(), 2, "{}", run.said);
        Self { moments, seconds: times[times.len() - 1] - times[0] }
    }

    /// Joules of all cores beyond their constant power.
    fn dynamic(&self) -> f64 {
        let packages = self.moments[0].1.len();
        let cores: f64 = (0..packages).map(|package| self.joules(package, 1)).sum();
        cores - STATIC_OF_CORES * packages as f64 * self.seconds
    }

    /// Joules of a part of a package between the two moments.
    fn joules(&self, package: usize, part: usize) -> f64 {
        self.moments[1].1[package][part] - self.moments[0].1[package][part]
    }

    /// The same by a recording's readings, interpolated: at least and at most.
    fn recorded(&self, summary: &Summary, domain: &str) -> [f64; 2] {
        let name = format!("energy/{domain}/");
        let readings = summary.readings.get(&name);
        let readings = readings.unwrap_or_else(|| panic!("no {name} in {:?}", summary.readings.keys()));
        let at = |time: u64| {
            let after = readings.partition_point(|(read, _)| *read < time).clamp(1, readings.len() - 1);
            let [(t0, r0), (t1, r1)] = [readings[after - 1], readings[after]];
            let (e0, e1) = (r0.energy.as_joules(), r1.energy.as_joules());
            e0 + (e1 - e0) * (time as f64 - t0 as f64) / (t1 as f64 - t0 as f64)
        };
        let [(first, _, first_end), (last, _, last_end)] = [&self.moments[0], &self.moments[1]];
        [at(*last) - at(*first_end), at(*last_end) - at(*first)]
    }

    #[track_caller]
    fn compare(&self, summary: &Summary, package: usize, part: usize, domain: &str) {
        let truth = self.joules(package, part);
        let [least, most] = self.recorded(summary, domain);
        let is_near = truth > 0.99 * least && truth < 1.01 * most;
        assert!(is_near, "{domain}: {least} to {most} J recorded, truly {truth} J");
    }
}

/// Records a program by a meter, which takes the truth before and after its work.
fn record(meter: &str, work: &str) -> String {
    // On a busy host the guest's counters stand still for longer than a real one's ever do.
    let eprof = format!("./eprof record -q --meter {meter} --meter-watch 500 -o energy.data");
    format!("{eprof} sh -c '{MOMENT}; {work}; {MOMENT}'; {SHOW}")
}

#[test]
fn measured_joules_are_the_machines() {
    let script = record("power", "./phases -t 500 -q; ./phases -m threads -t 500 -q");
    let Some(run) = run(&[], &script, &["energy.data"]) else { return };
    let (truth, recorded) = (Truths::of(&run), run.recording("energy.data"));
    truth.compare(&recorded, 0, 0, "package-0");
    truth.compare(&recorded, 0, 1, "package-0-cores");
    truth.compare(&recorded, 0, 2, "dram-0");
    let metadata = recorded.metadata.expect("metadata");
    let parent = |name: &str| {
        metadata.domains.iter().find(|domain| domain.name == name).expect("there").parent.clone()
    };
    assert_eq!(parent("package-0-cores").as_deref(), Some("package-0"));
    assert_eq!(parent("dram-0"), None);
}

#[test]
fn a_powercap_counter_may_wrap_again_and_again() {
    // 2^18 units of 2^-16 J: it wraps every 4 J, several times a second.
    let script = record("powercap", "./phases -t 700 -q");
    let Some(run) = run(&[STEADY[0], STEADY[1], "--sim", "wrap_bits=18"], &script, &["energy.data"]) else {
        return;
    };
    let (truth, recorded) = (Truths::of(&run), run.recording("energy.data"));
    assert!(truth.joules(0, 0) > 3.0 * 4.0);
    let domains = &recorded.metadata.as_ref().expect("metadata").domains;
    for (part, name) in [(0, "package-0"), (2, "dram-0")] {
        let range = domains.iter().find(|domain| domain.name == name).expect("there").range;
        assert!((range.expect("a counter that wraps").as_joules() - 4.0).abs() < 1e-3, "{range:?}");
        // A host that stops the guest for a fifth of a second hides a wrap, which nobody but the report can tell then.
        if is_told_to_be_late(&run, name) {
            let [least, _] = truth.recorded(&recorded, name);
            println!(
                "{name} was read too late, as the report says: {least} J of {} J",
                truth.joules(0, part)
            );
            assert!(least < 1.01 * truth.joules(0, part));
        } else {
            truth.compare(&recorded, 0, part, name);
        }
    }
}

/// Whether the report says that a domain's counter may have wrapped unseen.
fn is_told_to_be_late(run: &Run, domain: &str) -> bool {
    let output = eprof().arg("report").arg("-i").arg(run.file("energy.data")).output().expect("eprof runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    said.lines().any(|line| line.contains(domain) && line.contains("begins anew"))
}

#[test]
fn two_packages_and_every_core_have_domains_of_their_own() {
    let script = record("power,power-core", "./phases -m threads -t 500 -r 8 -q");
    let options = ["--smp", "4,sockets=2", "--sim", "power_core=1"];
    let Some(run) = run(&options, &script, &["energy.data"]) else { return };
    let (truth, recorded) = (Truths::of(&run), run.recording("energy.data"));
    for package in [0, 1] {
        truth.compare(&recorded, package, 0, &format!("package-{package}"));
    }
    let metadata = recorded.metadata.as_ref().expect("metadata");
    let of_cores = |domain: &&DomainInfo| domain.kind == DomainKind::Core;
    let cores: Vec<&str> =
        metadata.domains.iter().filter(of_cores).map(|domain| domain.name.as_str()).collect();
    assert_eq!(cores.len(), 4, "{:?}", metadata.domains);
    let of_cores = cores.iter().map(|name| truth.recorded(&recorded, name));
    let [least, most] = of_cores.fold([0.0, 0.0], |sum, core| [sum[0] + core[0], sum[1] + core[1]]);
    let dynamic = truth.dynamic();
    println!("cores: {least:.4} to {most:.4} J recorded, truly {dynamic:.4} J");
    assert!(dynamic > 0.99 * least && dynamic < 1.01 * most, "{least} to {most} J, truly {dynamic} J");
}
