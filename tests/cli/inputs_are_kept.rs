//! What is read is never written, by any verb and under any name.

use std::fs;
use std::os::unix::fs::symlink;

use eprof_testbed::eprof;

/// Command lines that read `in` and write `OUT`.
const WRITERS: [&str; 15] = [
    "gpu correct in --output OUT",
    "gpu correct other --meter in --output OUT",
    "gpu correct other --steps in --output OUT",
    "gpu correct other --sensor sensor.json --output sensor.json",
    "gpu calibrate in --save OUT",
    "gpu calibrate other --meter in --save OUT",
    "gpu model fit in --save OUT",
    "gpu model fit in --figure OUT",
    "gpu model validate in --output OUT",
    "gpu model validate other --model in --output OUT",
    "model fit --target watts other in -o OUT",
    "model fit --target watts other --prior in -o OUT",
    "tune --runs-csv in --svg OUT",
    "tune --runs-csv in --save-runs OUT",
    "tune --threads 1..2 --journal in --save-runs OUT -- true",
];

#[test]
fn what_is_read_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let sensor = r#"{"kind":"counter","refresh":null,"gain":1.0,"offset":0.0,"active_idle":null}"#;
    for (name, text) in [("in", "kept"), ("other", "kept, too"), ("sensor.json", sensor)] {
        fs::write(at(name), text).expect("written");
    }
    fs::hard_link(at("in"), at("hard")).expect("a hard link");
    symlink("in", at("soft")).expect("a symbolic link");
    for writer in WRITERS {
        for name in ["in", "./in", "hard", "soft"] {
            let line = writer.replace("OUT", name);
            let output =
                eprof().args(line.split(' ')).current_dir(folder.path()).output().expect("eprof runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{line}: {said}");
            assert!(said.contains("name another file with -"), "{line}: {said}");
            assert_eq!(fs::read(at("in")).expect("still there"), b"kept", "{line}");
        }
    }
    assert_eq!(fs::read_to_string(at("sensor.json")).expect("still there"), sensor);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 5, "nothing else was left");
}

#[test]
fn a_recording_does_not_replace_its_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("model.json");
    fs::write(&model, "kept").expect("written");
    let mut record = eprof();
    record.args(["record", "--model", "model.json", "-o", "./model.json", "true"]);
    let output = record.current_dir(folder.path()).output().expect("eprof runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("name another file with -o"), "{said}");
    assert_eq!(fs::read(&model).expect("still there"), b"kept");
}
