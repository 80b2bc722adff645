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
    for verb in
        ["eprof", "eprof-record", "eprof-report", "eprof-annotate", "eprof-flamegraph", "eprof-export"]
    {
        let page = std::fs::read_to_string(folder.path().join(format!("{verb}.1"))).expect("a page");
        assert!(page.contains(".SH NAME") && page.contains(".TH"), "{verb}");
    }
}

#[test]
fn pages_refer_to_pages_that_are_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = eprof().args(["man", "-o"]).arg(folder.path()).output().expect("eprof runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut references = 0;
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        let path = entry.expect("an entry").path();
        let page = std::fs::read_to_string(&path).expect("a page").replace("\\-", "-");
        for before in page.split("(1)").filter(|before| before.len() < page.len()) {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
            let name = before.rsplit(|c| !is_name(c)).next().expect("a word");
            let is_ours = name == "eprof" || name.starts_with("eprof-");
            assert!(
                !is_ours || folder.path().join(format!("{name}.1")).exists(),
                "{}: {name}(1)",
                path.display()
            );
            references += usize::from(is_ours);
        }
    }
    assert!(references > 20, "{references} references");
}

#[test]
fn the_package_says_where_it_comes_from() {
    assert_eq!(env!("CARGO_PKG_REPOSITORY"), "https://github.com/eprof/eprof");
}
