//! Launches of GPU kernels, seen by probes of the running kernel on a fake driver (`gpu.rs` of the testbed's fakes)
//! and on a runtime that is linked into the program (`launcher.c` of its programs).

use eprof_testbed::gpu::launcher::{Stage, assert_succeeded, joules_of};
use eprof_testbed::{Started, eprof};
use serde_json::Value;

/// What the stage's GPU spends on three rounds of its two kernels.
const HEAT_JOULES: f64 = 3.0 * 500_000.0 * 40.1e-6;
const COOL_JOULES: f64 = 3.0 * 500_000.0 * 4.1e-6;

/// Kernels get what the fake GPU spent on them. The wide margin is for machines that hold up the thread
/// that reads the meter: its readings are the only thing here that hangs on time.
#[track_caller]
fn assert_shared_out(report: &Value, heat: &str, cool: &str) {
    let (heat, cool, idle) = (joules_of(report, heat), joules_of(report, cool), joules_of(report, "[idle]"));
    println!("heat {heat:.2} J of {HEAT_JOULES:.2}, cool {cool:.2} J of {COOL_JOULES:.2}, idle {idle:.2} J");
    assert!((heat + cool - HEAT_JOULES - COOL_JOULES).abs() < 0.1 * HEAT_JOULES, "{heat} + {cool}");
    assert!(heat > 4.0 * cool, "{heat} J, {cool} J");
    assert!(idle > 30.0, "half a second and more of 50 W: {idle}");
}

#[test]
fn launches_through_the_driver_are_named_and_charged() {
    let Some(stage) = Stage::set("", &[]) else { return };
    // The measured GPU alone turns probes on.
    assert_succeeded(&stage.record("driver", &[&stage.cuda_lib()]));
    let report = stage.json(&["--by", "kernel"]);
    assert_shared_out(&report, "heat", "cool");
    let stacks = stage.report(&["--format", "collapsed", "--event", "gpu-launch"]);
    assert!(stacks.lines().any(|line| line.contains("main;train;start;cuLaunchKernel;heat ")), "{stacks}");
    assert!(stacks.lines().any(|line| line.contains("main;infer;start;cuLaunchKernel;cool ")), "{stacks}");
    let table = stage.report(&["--by", "kernel", "--width", "100"]);
    assert!(table.contains("joules of GPU kernels are modelled"), "{table}");
    // The host's functions are known by what they launched, and their time is still the CPU's.
    let functions = stage.json(&["--children"]);
    let rows = functions["rows"].as_array().expect("rows");
    let train = rows.iter().find(|row| row["name"] == "train").expect("a launching function");
    assert!(train["total_joules"].as_f64().expect("joules") > 0.8 * HEAT_JOULES);
}

#[test]
fn launches_through_a_runtime_in_the_program_count_once() {
    let Some(stage) = Stage::set("", &[]) else { return };
    assert_succeeded(&stage.record("runtime", &["--gpu", &stage.cuda_lib()]));
    // Kernels go by the functions that stand for them in the program.
    let report = stage.json(&["--by", "kernel"]);
    assert_shared_out(&report, "device_heat", "device_cool");
    let rows = report["rows"].as_array().expect("rows");
    let launches: u64 = rows.iter().filter_map(|row| row["self_samples"].as_u64()).sum();
    assert_eq!(launches, 6, "{rows:#?}");
}

/// As a program built by nvcc 13 did beside a real card: its runtime gets the driver's handle of a kernel, and waits by
/// a function of the driver that earlier ones do not have.
#[test]
fn launches_by_the_drivers_handles_are_named_and_waited_for() {
    let Some(stage) = Stage::set("", &[]) else { return };
    assert_succeeded(&stage.record("handles", &["--gpu", &stage.cuda_lib()]));
    let report = stage.json(&["--by", "kernel"]);
    assert_shared_out(&report, "heat", "cool");
    let rows = report["rows"].as_array().expect("rows");
    let launches: u64 = rows.iter().filter_map(|row| row["self_samples"].as_u64()).sum();
    assert_eq!(launches, 6, "{rows:#?}");
}

#[test]
fn a_program_under_probes_makes_threads_and_their_launches_count() {
    let Some(stage) = Stage::set("", &[]) else { return };
    assert_succeeded(&stage.record("thread", &[&stage.cuda_lib()]));
    let report = stage.json(&["--by", "kernel"]);
    let heat = joules_of(&report, "heat");
    assert!((heat - HEAT_JOULES).abs() < 0.15 * HEAT_JOULES, "{heat} J of {HEAT_JOULES}");
}

/// Another program on the same GPU, which is not recorded, has its own kernels' joules.
#[test]
fn the_joules_of_other_processes_are_theirs() {
    let Some(stage) = Stage::set("", &[]) else { return };
    let mut program = std::process::Command::new(&stage.program);
    let mut other = Started::new(program.arg(&stage.library).args(["forever", "300"]));
    let output = stage.record("driver", &[&stage.cuda_lib()]);
    other.kill().expect("it runs still");
    other.wait().expect("it ends");
    assert_succeeded(&output);
    let report = stage.json(&["--by", "kernel"]);
    let own = joules_of(&report, "heat") + joules_of(&report, "cool");
    let truth = HEAT_JOULES + COOL_JOULES;
    let gpu = &report["domains"].as_array().expect("domains")[1]["balance"];
    let others = gpu["other"].as_f64().expect("joules");
    println!("own {own:.1} J of {truth:.1}, others' {others:.1} J");
    // Where kernels of both run at once they share alike, though one may draw more.
    assert!((own - truth).abs() < 0.35 * truth, "{own} J of {truth}, and {others} J of another program's");
    assert!(others > 0.3 * HEAT_JOULES, "{gpu:#}");
    assert!(report["warnings"].to_string().contains("other processes launched"), "{report:#}");
}

/// Two GPUs work at once: each one's joules go to what ran on it.
#[test]
fn the_joules_of_each_gpu_go_to_its_own_launches() {
    let Some(stage) = Stage::set("gpus 2\n", &[]) else { return };
    assert_succeeded(&stage.record("two", &[&stage.cuda_lib()]));
    let report = stage.json(&["--by", "kernel"]);
    let (heat, cool) = (joules_of(&report, "heat"), joules_of(&report, "cool"));
    println!("heat {heat:.2} J of {HEAT_JOULES:.2}, cool {cool:.2} J of {COOL_JOULES:.2}");
    assert!((heat - HEAT_JOULES).abs() < 0.1 * HEAT_JOULES, "{heat} J of {HEAT_JOULES}");
    assert!((cool - COOL_JOULES).abs() < 0.05 * HEAT_JOULES, "{cool} J of {COOL_JOULES}");
    assert!(!report["warnings"].to_string().contains("not known which"), "{report:#}");
}

/// A wait for one stream does not end what runs in the other.
#[test]
fn streams_are_waited_for_one_by_one() {
    let Some(stage) = Stage::set("", &[]) else { return };
    assert_succeeded(&stage.record("streams", &[&stage.cuda_lib()]));
    let report = stage.json(&["--by", "kernel"]);
    let (heat, cool) = (joules_of(&report, "heat"), joules_of(&report, "cool"));
    // `cool` runs half as long here, for 55 ms, meanwhile both share alike.
    let (heat_watts, cool_watts) = (HEAT_JOULES / 0.6, COOL_JOULES / 0.33);
    let shared = 3.0 * 0.055 * (heat_watts + cool_watts) / 2.0;
    let truth = HEAT_JOULES + COOL_JOULES / 2.0;
    println!("heat {heat:.2} J of {:.2}, cool {cool:.2} J of {shared:.2}", truth - shared);
    assert!((heat + cool - truth).abs() < 0.1 * truth, "{heat} J and {cool} J of {truth} J");
    assert!((cool - shared).abs() < 0.4 * shared, "{cool} J of {shared} J");
}

/// Who does not tell which GPU is meant, as here, where one of them is hidden by a name, is told so.
#[test]
fn launches_on_a_gpu_that_is_not_known_are_said() {
    let Some(stage) = Stage::set("gpus 2\n", &[]) else { return };
    let output = stage
        .recorder("two", &[&stage.cuda_lib()])
        .env("CUDA_VISIBLE_DEVICES", "GPU-5c0c,GPU-11ab")
        .output()
        .expect("the program runs");
    assert_succeeded(&output);
    let said = stage.json(&["--by", "kernel"])["warnings"].to_string();
    assert!(said.contains("of 6 launches it is not known which of 2 GPUs"), "{said}");
}

#[test]
fn a_flamegraphs_host_stacks_end_in_kernels() {
    let Some(stage) = Stage::set("", &[]) else { return };
    assert_succeeded(&stage.record("driver", &[&stage.cuda_lib(), "-z"]));
    let picture = stage.folder.path().join("energy.svg");
    let output = eprof()
        .args(["flamegraph", "-i"])
        .arg(stage.recording())
        .arg("-o")
        .arg(&picture)
        .output()
        .expect("runs");
    assert_succeeded(&output);
    let picture = std::fs::read_to_string(picture).expect("a picture");
    for frame in ["train", "cuLaunchKernel", "heat", "cool"] {
        assert!(picture.contains(&format!("<title>{frame} (")), "{frame}");
    }
}

#[test]
fn the_joules_of_cpu_and_gpu_stand_in_one_balance() {
    let Some(stage) = Stage::set("", &[]) else { return };
    assert_succeeded(&stage.record("driver", &[&stage.cuda_lib()]));
    let report = stage.json(&["--whole"]);
    let domains = report["domains"].as_array().expect("domains");
    let names: Vec<&str> = domains.iter().filter_map(|domain| domain["name"].as_str()).collect();
    assert_eq!(names, ["package-0", "gpu-0"]);
    let joules =
        |balance: &Value, part: &str| balance[part].as_f64().unwrap_or_else(|| panic!("{part}: {balance}"));
    // `other` has the recorder in it.
    const PARTS: [&str; 5] = ["attributed", "static", "other", "recorder", "lost"];
    let mut sum = 0.0;
    for domain in domains {
        let balance = &domain["balance"];
        let measured = joules(domain, "joules");
        let parts: f64 = PARTS.iter().map(|part| joules(balance, part)).sum();
        assert!(measured > 0.0 && (parts - measured).abs() <= 1e-9 * measured, "{domain:#}");
        sum += measured;
    }
    let whole = &report["balance"];
    let parts: f64 = PARTS.iter().map(|part| joules(whole, part)).sum();
    assert!((joules(&report, "total_joules") - sum).abs() < 1e-9 * sum && (parts - sum).abs() < 1e-9 * sum);
    // Functions, kernels and what was nobody's: the rows are the same joules once more.
    let rows: f64 =
        report["rows"].as_array().expect("rows").iter().map(|row| joules(row, "self_joules")).sum();
    assert!((rows - sum).abs() < 1e-9 * sum, "{rows} of {sum}");
    let warnings = report["warnings"].to_string();
    assert!(!warnings.contains("the balance"), "{warnings}");
    // And so is what the page shows over time, kind by kind.
    let page = stage.folder.path().join("page.html");
    let output =
        eprof().args(["view", "--no-open", "-i"]).arg(stage.recording()).arg("-o").arg(&page).output();
    assert_succeeded(&output.expect("runs"));
    let page = std::fs::read_to_string(page).expect("a page");
    let data = page.split_once("id=\"data\">").and_then(|(_, rest)| rest.split_once("</script>"));
    let data: Value = serde_json::from_str(data.expect("data").0).expect("JSON");
    let shown = |part: &str| -> f64 {
        let over_time = data["slices"][part].as_array().expect("over time");
        over_time.iter().map(|joules| joules.as_f64().expect("joules")).sum()
    };
    assert!(data["slices"]["static"].as_array().is_some_and(|slices| slices.len() > 3));
    for (part, of_whole) in [
        ("static", joules(whole, "static")),
        ("lost", joules(whole, "lost")),
        ("eprof", joules(whole, "recorder")),
        ("others", joules(whole, "other")),
    ] {
        let over_time = shown(part);
        assert!(
            (over_time - of_whole).abs() < 1e-3 * sum,
            "{part}: {over_time} J over time, {of_whole} J in all"
        );
    }
}

#[test]
fn what_cannot_be_seen_is_said() {
    let Some(stage) = Stage::set("", &[]) else { return };
    assert_succeeded(&stage.record("driver", &["--gpu=never", &stage.cuda_lib()]));
    let report =
        eprof().args(["report", "--by", "kernel", "-i"]).arg(stage.recording()).output().expect("runs");
    let said = String::from_utf8_lossy(&report.stderr).into_owned();
    assert!(!report.status.success() && said.contains("eprof record --gpu"), "{said}");
    // The program itself has functions of the runtime; a shell has none.
    let output = eprof()
        .args(["record", "--gpu", "--cuda-lib=/nonexistent/libcuda.so.1", "-o"])
        .arg(stage.recording())
        .args(["sh", "-c", "exit 0"])
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("libcuda.so.1 is not found"), "{said}");
}
