//! Large machines.

use eprof::units::{Joules, Nanoseconds};
use eprof_testbed::simulate::alternating::{Alternation, scenario};

use super::support::{Errors, QUICK, calibrated, functions, play, true_joules};

fn machine(packages: u32, cores_per_package: u32, seconds: f64) -> Alternation {
    Alternation {
        packages,
        cores_per_package,
        busy: packages * cores_per_package,
        duration: Nanoseconds::from_secs_f64(seconds),
        joules_per_sample: Joules::from_joules(0.01),
        ..Alternation::default()
    }
}

#[test]
fn machines_of_1_to_256_cores() {
    println!("\nmachines: errors of joules per function");
    for (packages, cores) in [(1, 1), (1, 4), (2, 8), (1, 64), (2, 128)] {
        let cpus = packages * cores;
        // About as many samples of each machine.
        let seconds = (if QUICK { 100.0 } else { 1000.0 } / f64::from(cpus)).clamp(0.3, 40.0);
        let scenario = scenario(&machine(packages, cores, seconds));
        let (profile, truth) = play(&scenario, &calibrated());
        let samples: u64 = profile.events.iter().map(|event| event.samples).sum();
        let found = functions(&profile, scenario.functions.len());
        let truth = true_joules(&profile, &truth);
        let errors = Errors::of(found.iter().zip(&truth).map(|(found, truth)| (found.joules, *truth)));
        println!(
            "{packages} x {cores:3} cores, {seconds:5.1} s, {samples:8} samples: mean {:5.2} %, worst {:5.2} %",
            errors.mean, errors.worst
        );
        assert_eq!(profile.domains.len(), 3 * packages as usize);
        let limit = 600.0 / (samples as f64 / 6.0).sqrt();
        assert!(errors.worst < limit, "{cpus} CPUs: {errors:?}, at most {limit}");
    }
}
