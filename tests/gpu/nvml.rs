//! The NVML meter against a fake library of the real interface.

use std::time::Duration;

use eprof::meter::EnergyMeter;
use eprof::meter::nvml::{NvmlSearch, search};
use eprof_testbed::fakes::fake_gpu;

fn look(settings: &str, flags: &[&str], watch_ms: u64) -> NvmlSearch {
    let folder = tempfile::tempdir().expect("a folder");
    let library = fake_gpu(folder.path(), settings, flags);
    search(Some(&library), Duration::from_millis(watch_ms))
}

fn joules_per_second(mut meter: impl EnergyMeter, seconds: f64) -> Vec<f64> {
    let mut readings = Vec::new();
    let mut first: Vec<f64> = Vec::new();
    let start = std::time::Instant::now();
    loop {
        meter.read(&mut readings).expect("a reading");
        let energy: Vec<f64> =
            readings.iter().map(|reading| reading.expect("each GPU answers").energy.as_joules()).collect();
        let elapsed = start.elapsed().as_secs_f64();
        if first.is_empty() {
            first.clone_from(&energy);
        }
        if elapsed >= seconds {
            return energy.iter().zip(&first).map(|(now, first)| (now - first) / elapsed).collect();
        }
        std::thread::sleep(Duration::from_millis(4));
    }
}

#[test]
fn the_energy_counter_is_preferred_and_counts_every_gpu() {
    let found = look("gpus 2\nidle 120\nrefresh_ms 10\n", &[], 0);
    assert!(found.rejected.is_empty(), "{:?}", found.rejected);
    let meter = found.meter.expect("two GPUs");
    let names: Vec<_> = meter.domains().iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!(names, ["gpu-0", "gpu-1"]);
    assert!(meter.domains()[0].source.contains("energy counter"), "{}", meter.domains()[0].source);
    // A late poll on a busy machine changes nothing: the counter is read beside the clock.
    for watts in joules_per_second(meter, 0.8) {
        assert!((watts / 120.0 - 1.0).abs() < 0.1, "{watts} W");
    }
}

#[test]
fn other_processes_on_the_gpu_are_named() {
    let own = std::process::id();
    let found = look(&format!("idle 80\nprocess {own}\nprocess 4000000000\n"), &[], 0);
    let [said] = &found.warnings[..] else { panic!("{:?}", found.warnings) };
    assert!(said.contains("2 other processes") && said.contains(&format!(" {own}, 4000000000")), "{said}");
    for quiet in ["idle 80\n", "idle 80\nprocess 1\nfail processes 3\n"] {
        let found = look(quiet, &[], 0);
        assert!(found.meter.is_some() && found.warnings.is_empty(), "{:?}", found.warnings);
    }
}

#[test]
fn without_a_counter_power_is_integrated() {
    for (settings, flags, source) in [
        ("idle 80\nfail energy 3\n", &[][..], "instant power"),
        ("idle 80\n", &["no_energy"][..], "instant power"),
        ("idle 80\nfail energy 3\nfail instant 3\n", &[][..], "NVML power ("),
        ("idle 80\nfail energy 3\ntype instant 9\n", &[][..], "NVML power ("),
        ("idle 80\nfail energy 3\nfail power 3\nfail instant 3\n", &[][..], "average power"),
        ("idle 80\nfail energy 3\n", &["no_fields"][..], "NVML power ("),
    ] {
        let meter = look(settings, flags, 0).meter.expect("power");
        assert!(meter.domains()[0].source.contains(source), "{settings}: {}", meter.domains()[0].source);
        let watts = joules_per_second(meter, 0.2)[0];
        assert!((watts / 80.0 - 1.0).abs() < 0.02, "{settings}: {watts} W");
    }
}

#[test]
fn not_supported_is_no_source_and_never_zero_joules() {
    let found = look("fail energy 3\nfail power 3\nfail instant 3\nfail average 3\n", &[], 0);
    assert!(found.meter.is_none());
    let why = found.rejected[0].to_string();
    assert!(
        why.contains("neither energy nor power") && why.contains("not available on the target device"),
        "{why}"
    );
}

#[test]
fn shared_and_virtual_gpus_are_said_to_be_that() {
    let divided = look("mig 1\n", &[], 0);
    assert!(divided.meter.is_some() && divided.warnings[0].contains("MIG"), "{:?}", divided.warnings);
    let guest = look("virtual 1\n", &[], 0);
    assert!(guest.meter.is_none() && guest.rejected[0].to_string().contains("virtual GPU"));
}

#[test]
fn a_driver_that_does_not_start_is_named() {
    let found = look("fail init 9\n", &[], 0);
    assert!(found.meter.is_none());
    assert!(found.rejected[0].to_string().contains("modprobe nvidia"), "{}", found.rejected[0]);
}

#[test]
fn the_refresh_period_is_seen_and_sets_the_pace() {
    // Power that changes at every refresh: a ramp.
    let folder = tempfile::tempdir().expect("a folder");
    let ramp: String = (0..2000).map(|i| format!("{},{}\n", f64::from(i) * 0.01, 50 + i)).collect();
    std::fs::write(folder.path().join("ramp.csv"), ramp).expect("a trace");
    let trace = folder.path().join("ramp.csv");
    let settings = format!("trace {}\nrefresh_ms 60\nwindow_ms 30\nfail energy 3\n", trace.display());
    let meter = look(&settings, &[], 700).meter.expect("power");
    let refresh = meter.domains()[0].refresh.expect("a refresh period").as_secs_f64();
    assert!((refresh / 0.06 - 1.0).abs() < 0.25, "{refresh} s");
    assert!((meter.pace().shortest.as_secs_f64() / (refresh / 2.0) - 1.0).abs() < 1e-6);
}
