//! What a package installs beside the binary.

use eprof_testbed::eprof;

#[test]
fn completions_know_the_verbs() {
    for shell in ["bash", "zsh", "fish"] {
        let output = eprof().args(["completions", shell]).output().expect("eprof runs");
        let script = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success() && script.contains("flamegraph"), "{shell}");
    }
}

#[test]
fn every_verb_has_a_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = eprof().args(["man", "-o"]).arg(folder.path()).output().expect("eprof runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for verb in ["eprof", "eprof-record", "eprof-report", "eprof-flamegraph", "eprof-export"] {
        let page = std::fs::read_to_string(folder.path().join(format!("{verb}.1"))).expect("a page");
        assert!(page.contains(".SH NAME") && page.contains(".TH"), "{verb}");
    }
}
