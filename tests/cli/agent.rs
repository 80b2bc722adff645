//! `eprof agent`: what it refuses, and what it prints.

use std::process::{Command, Output, Stdio};

use eprof_testbed::{eprof, has_program, skip_quietly};

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let Output { status, stdout, stderr } = eprof()
        .arg("agent")
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("eprof runs");
    assert!(std::fs::read_dir(folder.path()).expect("a folder").next().is_none(), "nothing is written");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn wrong_options_are_refused_with_what_is_right() {
    for (arguments, status, right) in [
        (&[][..], 1, "-o DIR"),
        (&["-o", "x", "--frequency", "0"], 1, "1 to 999"),
        (&["-o", "x", "--frequency", "often"], 2, "--frequency"),
        (&["-o", "x", "--duty", "150%"], 2, "1% or 0.01"),
        (&["-o", "x", "--window", "10ms"], 1, "1s to 1h"),
        (&["-o", "x", "--keep", "for ever"], 2, "7d"),
        (&["-o", "x", "--max-disk", "much"], 2, "10G"),
        (&["-o", "x", "--listen", "9753"], 2, "127.0.0.1:9753"),
        (&["-o", "x", "--meter", "crystal"], 1, "powercap"),
        (&["-o", "x", "--label", "rack"], 1, "KEY=VALUE"),
        (&["-o", "x", "--config", "missing.json"], 1, "missing.json"),
        (&["--print-unit", "initd"], 2, "systemd"),
        (&["-o", "x", "program"], 2, "unexpected argument"),
    ] {
        let (code, _, said) = run(arguments);
        assert_eq!(code, Some(status), "{arguments:?}: {said}");
        assert!(said.contains(right), "{arguments:?}: {said}");
    }
}

#[test]
fn a_wrong_configuration_names_its_file_and_the_word() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agent.json");
    for (text, wrong) in [
        ("{\"output\": \"x\", \"frequenzy\": 9}", "frequenzy"),
        ("{\"output\": \"x\", \"keep\": \"soon\"}", "soon"),
        ("output = 'x'", "agent.json"),
    ] {
        std::fs::write(&file, text).expect("written");
        let (code, _, said) = run(&["--config", file.to_str().expect("UTF-8")]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("agent.json") && said.contains(wrong), "{said}");
    }
}

#[test]
fn the_service_has_the_least_rights() {
    let (code, unit, said) = run(&["--print-unit", "systemd"]);
    assert_eq!((code, &*said), (Some(0), ""));
    let value = |key: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("no {key}")).to_owned()
    };
    let rights = "CAP_PERFMON CAP_SYSLOG CAP_DAC_READ_SEARCH CAP_SYS_PTRACE";
    assert_eq!([value("AmbientCapabilities"), value("CapabilityBoundingSet")], [rights, rights]);
    assert_eq!([value("NoNewPrivileges"), value("ProtectSystem")], ["yes", "strict"]);
    assert!(unit.contains("LoadCredential=password:") && unit.contains("--push-password-file %d/password"));
    if !has_program("systemd-analyze", &["--version"]) {
        skip_quietly("there is no systemd-analyze to read the unit");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("eprof-agent.service");
    let own = eprof().get_program().to_string_lossy().into_owned();
    std::fs::write(&file, unit.replace("/usr/local/bin/eprof", &own)).expect("written");
    let output =
        Command::new("systemd-analyze").args(["--man=no", "verify"]).arg(&file).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("eprof-agent.service:"), "{said}");
}

#[test]
fn the_manifest_is_what_kubernetes_takes() {
    let (code, manifest, _) = run(&["--print-unit", "kubernetes"]);
    assert_eq!(code, Some(0));
    for line in ["drop: [\"ALL\"]", "readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false"] {
        assert!(manifest.contains(line), "{line}");
    }
    assert!(!manifest.contains("privileged: true") && !manifest.contains("SYS_ADMIN"));
    if !has_program("python3", &["-c", "import yaml"]) {
        skip_quietly("python3 has no yaml to read the manifest");
        return;
    }
    let read = "import sys, yaml, json; print(json.dumps(list(yaml.safe_load_all(sys.stdin.read()))))";
    let mut child = Command::new("python3")
        .args(["-c", read])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), manifest.as_bytes())
        .expect("written");
    let output = child.wait_with_output().expect("it ends");
    let documents: serde_json::Value = serde_json::from_slice(&output.stdout).expect("YAML");
    let kinds: Vec<&str> = documents
        .as_array()
        .expect("documents")
        .iter()
        .map(|of| of["kind"].as_str().expect("a kind"))
        .collect();
    assert_eq!(kinds, ["Namespace", "ConfigMap", "DaemonSet"]);
    let config = documents[1]["data"]["agent.json"].as_str().expect("a text");
    let config: serde_json::Value = serde_json::from_str(config).expect("JSON");
    assert_eq!(config["output"], "/var/lib/eprof");
    let volumes = documents[2]["spec"]["template"]["spec"]["volumes"].as_array().expect("volumes");
    let secrets = volumes.iter().find(|volume| volume["name"] == "secrets").expect("secrets");
    assert_eq!(secrets["secret"]["optional"], true);
    assert_eq!(secrets["secret"]["defaultMode"], 0o400);
}
