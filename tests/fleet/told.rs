//! What answers and errors say of themselves: of which windows they are, how joules were found, whose tables they are.

use super::*;

#[test]
fn conditions_on_samples_leave_what_was_measured() {
    let folder = exported_apart(&[recorded(1, 0), Recorded { comm: "other", ..recorded(2, 0) }]);
    let tables = folder.path().join("tables");
    let tables = tables.to_str().expect("UTF-8");
    let all = by(&json(&["top", tables]), "node");
    for (condition, measured, nodes, selected) in [
        ("comm = other", 20.0, 2.0, all["n2"]),
        ("comm = other and node = n2", 10.0, 1.0, all["n2"]),
        ("comm = other and rank = 6", 10.0, 1.0, all["n2"]),
        // Not only windows of the one, nor of the other.
        ("comm = other or node = n1", 20.0, 2.0, all["n1"] + all["n2"]),
        ("rank = 6", 10.0, 1.0, all["n2"]),
    ] {
        let balance = &json(&["report", tables, "--where", condition])["balance"];
        assert_balanced(balance);
        assert_near(number(&balance["measured"]), measured);
        assert_eq!(number(&balance["nodes"]), nodes, "{condition}");
        assert_near(number(&balance["selected"]), selected);
    }
    for condition in ["comm = other and node = n1", "comm = neither", "node = n3"] {
        let said = error(&["report", tables, "--where", condition]);
        assert!(said.contains("nothing is selected"), "{condition}: {said}");
    }
    let by_node = json(&["top", tables, "--where", "comm = other"]);
    let measured: Vec<f64> = rows(&by_node).iter().map(|row| number(&row["measured"])).collect();
    assert_eq!(measured.len(), 2);
    measured.iter().for_each(|joules| assert_near(*joules, JOULES));
    let diff = ["diff", tables, "--old", "comm = other", "--new", "comm = neither"];
    let said = String::from_utf8_lossy(&run(&diff).stderr).into_owned();
    assert!(said.contains("nothing is on the newer side") && !said.contains("older side"), "{said}");
}

#[test]
fn estimates_are_called_so() {
    let estimated = || Recorded { watts_error: Some(0.25), ..recorded(2, 0) };
    let folder = exported_apart(&[estimated()]);
    let tables = folder.path().join("tables");
    let tables = tables.to_str().expect("UTF-8");
    for question in ["report", "top"] {
        let table = output(&[question, tables]);
        assert!(table.contains("+ lost = estimated, to ") && !table.contains("measured"), "{table}");
        assert!(table.contains("\nNo watts by row: joules follow time here\n"), "{table}");
        let csv = output(&[question, tables, "--format", "csv"]);
        assert!(csv.lines().next().is_some_and(|titles| titles.ends_with(",method")), "{csv}");
        assert!(csv.lines().skip(1).all(|line| line.ends_with(",estimated")), "{csv}");
        let answer = json(&[question, tables]);
        assert_eq!(answer["balance"]["method"], "estimated");
        for row in rows(&answer) {
            assert_eq!(row["method"], "estimated");
            assert!(row["watts"].is_null() && row["cpu_watts"].is_null(), "{row}");
        }
    }
    let folder = exported_apart(&[recorded(1, 0), estimated()]);
    let tables = folder.path().join("tables");
    let tables = tables.to_str().expect("UTF-8");
    let table = output(&["top", tables]);
    assert!(table.contains("+ lost = all, to ") && table.contains("partly estimated"), "{table}");
    assert!(table.contains("No watts in rows that are estimated"), "{table}");
    let answer = json(&["top", tables]);
    assert_eq!(answer["balance"]["method"], "mixed");
    let told: BTreeMap<&str, (&str, bool)> = rows(&answer)
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().expect("a text");
            (text("node"), (text("method"), row["cpu_watts"].is_number()))
        })
        .collect();
    assert_eq!(told, BTreeMap::from([("n1", ("measured", true)), ("n2", ("estimated", false))]));
    let of_estimates = &json(&["report", tables, "--where", "method = estimated"])["balance"];
    assert_eq!((number(&of_estimates["measured"]), &of_estimates["method"]), (JOULES, &"estimated".into()));
    let by_method = output(&["top", tables, "--by", "method,method", "--format", "csv"]);
    let titles = by_method.lines().next().expect("titles");
    assert_eq!(titles.matches("method").count(), 1, "{titles}");
    let diff = json(&["diff", tables, "--old", "node = n1", "--new", "node = n2"]);
    assert!(rows(&diff).iter().all(|row| row["method"] == "mixed"), "{diff}");
}

#[test]
fn a_column_that_is_named_twice_is_there_once() {
    let twice = output(&["top", "tables", "--by", "rank,rank", "--format", "csv"]);
    assert_eq!(twice, output(&["top", "tables", "--by", "rank", "--format", "csv"]));
}

#[test]
fn errors_are_one_line_and_say_whose_tables_they_are() {
    let folder = copy();
    let tables = folder.path().join("tables");
    // Samples without any of their columns: the engine refuses the question.
    let samples = tables.join("samples");
    fs::rename(&samples, folder.path().join("kept")).expect("moved");
    fs::create_dir(&samples).expect("made");
    fs::copy(first_of(folder.path(), "functions"), samples.join("wrong.parquet")).expect("copied");
    let said = error(&["report", tables.to_str().expect("UTF-8")]);
    assert!(said.contains("give no answer") && !said.contains("SELECT"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    fs::remove_dir_all(&samples).expect("removed");
    fs::rename(folder.path().join("kept"), &samples).expect("moved");
    let root = nix::unistd::geteuid().is_root();
    if !root {
        skip_quietly("only root can become another user");
        return;
    }
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("a mode");
    };
    let as_nobody = |denies: &Path| {
        let mut fleet = Command::new(env!("CARGO_BIN_EXE_eprof-fleet"));
        std::os::unix::process::CommandExt::uid(&mut fleet, 65_534);
        let Ok(output) = fleet.args(["report", "tables"]).current_dir(folder.path()).output() else {
            skip_quietly("the program lies where others may not run it");
            return;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        let whose = format!("{} belongs to root (mode 0", denies.display());
        assert!(
            !output.status.success() && said.contains("Permission denied") && said.contains(&whose),
            "{said}"
        );
        assert!(said.contains("as root it goes well: sudo ") && said.lines().count() == 1, "{said}");
    };
    let tables_of = ["balance", "samples", "functions", "stack_frames"];
    for open in
        [folder.path().to_owned(), tables.clone()].into_iter().chain(tables_of.map(|name| tables.join(name)))
    {
        mode(&open, 0o755);
    }
    for file in tables_of.iter().flat_map(|name| fs::read_dir(tables.join(name)).expect("a table")).flatten()
    {
        mode(&file.path(), 0o644);
    }
    for folder in [tables.clone(), tables.join("balance")] {
        mode(&folder, 0o700);
        as_nobody(&folder);
        mode(&folder, 0o755);
    }
    for table in tables_of {
        let file = first_of(folder.path(), table);
        mode(&file, 0o600);
        as_nobody(&file);
        mode(&file, 0o644);
    }
}
