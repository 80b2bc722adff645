//! Jobs of Slurm, by Open MPI and MPICH, over four nodes. The nodes are one kernel, so that the machine's joules are to be there
//! once whatever the number of nodes.

mod cluster;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use eprof::recording::Recording;
use eprof::recording::metadata::{Metadata, MetersRead, Target};
use eprof_testbed::{Started, eprof, run_or_skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::harness::{can_record, stderr, wait_until};
use cluster::{Cluster, NODES};

/// Watts of the machine when busy; idle it takes none.
const WATTS: f64 = 40.0;

/// An MPI: what it calls its compiler and launcher, and how srun starts its programs.
struct Mpi {
    name: &'static str,
    srun: &'static str,
}

const MPIS: [Mpi; 2] =
    [Mpi { name: "openmpi", srun: "--mpi=pmix" }, Mpi { name: "mpich", srun: "--mpi=pmi2" }];

#[test]
#[ignore = "starts a Slurm and takes a minute: .ci/slurm"]
fn jobs_of_slurm() {
    if !can_record() {
        return;
    }
    let Some(cluster) = Cluster::start() else { return };
    for mpi in &MPIS {
        let Some(program) = compiled(&cluster, mpi) else { continue };
        let program = program.to_str().expect("text");
        let jobs = Jobs { cluster: &cluster, name: mpi.name, program };
        jobs.ranks_of_a_step(mpi);
        jobs.ranks_of_mpirun(mpi);
        jobs.a_rank_that_fails(mpi);
        jobs.a_step_that_is_cancelled(mpi);
        jobs.a_rank_that_is_killed(mpi);
        jobs.a_companion(mpi);
    }
}

/// The program, by the compiler of this MPI.
fn compiled(cluster: &Cluster, mpi: &Mpi) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/record/slurm/stencil.c");
    let program = cluster.path(&format!("stencil-{}", mpi.name));
    let mut compile = std::process::Command::new(format!("mpicc.{}", mpi.name));
    compile.args(["-O2", "-fno-omit-frame-pointer", "-o"]).arg(&program).arg(source);
    run_or_skip([&mut compile]).then_some(program)
}

struct Jobs<'a> {
    cluster: &'a Cluster,
    name: &'a str,
    program: &'a str,
}

impl Jobs<'_> {
    fn folder(&self, what: &str) -> PathBuf {
        self.cluster.empty_folder(&format!("{what}-{}", self.name))
    }

    /// The command line behind Slurm's own, or a launcher's.
    fn record<'s>(&self, options: &[&'s str], arguments: &[&'s str]) -> Vec<String> {
        let eprof = PathBuf::from(env!("CARGO_BIN_EXE_eprof")).display().to_string();
        let words =
            ["record", "--meter", "estimate", "--watts", "0:40"].into_iter().chain(options.iter().copied());
        let words = words.chain(["--"]).map(str::to_owned).chain([self.program.to_owned()]);
        [eprof].into_iter().chain(words).chain(arguments.iter().map(|word| (*word).to_owned())).collect()
    }

    fn run(&self, folder: &Path, launcher: &[&str], line: &[String]) -> Output {
        let arguments: Vec<&str> =
            launcher[1..].iter().copied().chain(line.iter().map(String::as_str)).collect();
        let output = self.cluster.run(folder, launcher[0], &arguments);
        println!("{launcher:?}: {:?}", output.status);
        output
    }

    fn assert_success(&self, output: &Output) {
        assert!(output.status.success(), "{}\n{}", stderr(output), self.cluster.logs());
    }

    fn ranks_of_a_step(&self, mpi: &Mpi) {
        let folder = self.folder("step");
        let srun = ["srun", "-N4", "-n4", mpi.srun];
        let output = self.run(&folder, &srun, &self.record(&[], &["0.5"]));
        self.assert_success(&output);
        let files = recordings(&folder);
        assert_eq!(files.len(), NODES, "ranks of one folder have files of their own: {}", stderr(&output));
        let names: Vec<String> =
            files.iter().map(|file| file.file_name().expect("a name").display().to_string()).collect();
        assert!((0..NODES).all(|rank| names[rank].ends_with(&format!(".0-{rank}.data"))), "{names:?}");
        assert!(stderr(&output).contains("eprof-%j.%s-%r.data"), "{}", stderr(&output));
        assert_one_machine(&folder);
        assert_one_reader(&files);
        let nodes = report(&folder, &["--by", "node"]);
        assert_eq!(nodes["rows"].as_array().map(Vec::len), Some(NODES), "{nodes}");
    }

    fn ranks_of_mpirun(&self, mpi: &Mpi) {
        let folder = self.folder("mpirun");
        let launcher = format!("mpirun.{}", mpi.name);
        let line = self.record(&["-q"], &["0.3"]);
        let output = self.run(&folder, &["salloc", "-N4", "-n4", &launcher], &line);
        self.assert_success(&output);
        assert_eq!(recordings(&folder).len(), NODES, "{}", stderr(&output));
        assert_one_machine(&folder);
    }

    fn a_rank_that_fails(&self, mpi: &Mpi) {
        let folder = self.folder("failed");
        let output =
            self.run(&folder, &["srun", "-N4", "-n4", mpi.srun], &self.record(&["-q"], &["0.1", "2"]));
        assert_eq!(output.status.code(), Some(7), "the program's own status: {}", stderr(&output));
        assert_eq!(recordings(&folder).len(), NODES);
    }

    /// All ranks get SIGTERM, and SIGKILL if they do not end.
    fn a_step_that_is_cancelled(&self, mpi: &Mpi) {
        let folder = self.folder("cancelled");
        let mut srun = self.started(mpi, &folder);
        let cancelled = self.cluster.run(&folder, "scancel", &["--name=long"]);
        self.assert_success(&cancelled);
        let status = srun.wait().expect("a child");
        assert!(!status.success(), "{status}");
        for file in recordings(&folder) {
            assert!(Recording::open(&file).expect("readable").is_complete(), "{}", file.display());
        }
        assert_one_machine(&folder);
        wait_until("the job's end", || self.cluster.jobs() == 0);
    }

    /// The one that reads the meters is killed; the launcher then ends the step, or the user does.
    fn a_rank_that_is_killed(&self, mpi: &Mpi) {
        let folder = self.folder("killed");
        let mut srun = self.started(mpi, &folder);
        let files = recordings(&folder);
        let reader =
            files.iter().find(|file| metadata(file).meters == MetersRead::ForAll).expect("one has the turn");
        let Metadata { recorder_pid, target: Target::Command { pid, .. }, .. } = metadata(reader) else {
            panic!("a command")
        };
        // Its program would be nobody's.
        for pid in [recorder_pid, pid] {
            kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("it runs");
        }
        std::thread::sleep(Duration::from_millis(500));
        self.cluster.run(&folder, "scancel", &["--name=long"]);
        assert!(!srun.wait().expect("a child").success());
        wait_until("the job's end", || self.cluster.jobs() == 0);
        for file in &files {
            assert_eq!(
                Recording::open(file).expect("readable").is_complete(),
                file != reader,
                "{}",
                file.display()
            );
        }
        assert_one_machine(&folder);
    }

    /// A step that would take long, and has recorded for a second.
    fn started(&self, mpi: &Mpi, folder: &Path) -> Started {
        let line = self.record(&["-q", "-o", "%r.data"], &["60"]);
        let arguments = ["-N4", "-n4", mpi.srun, "--job-name=long"];
        let arguments: Vec<&str> = arguments.into_iter().chain(line.iter().map(String::as_str)).collect();
        let mut srun = self.cluster.slurm("srun", &arguments);
        let srun = Started::new(srun.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()));
        wait_until("the step's recordings", || recordings(folder).len() == NODES);
        std::thread::sleep(Duration::from_millis(1000));
        srun
    }

    /// One recorder of each whole node beside the ranks, which ends with the job.
    fn a_companion(&self, mpi: &Mpi) {
        let folder = self.folder("companion");
        let eprof = PathBuf::from(env!("CARGO_BIN_EXE_eprof"));
        let ranks = self.record(&["-q", "-o", "%j.%s-%r.data"], &["0.5"]).join(" ");
        let script = format!(
            "#!/bin/bash\n\
             srun --overlap -N4 --ntasks-per-node=1 {} record --node -q --meter estimate --watts 0:40 &\n\
             for i in $(seq 100); do [ $(ls | grep -c node) -ge 1 ] && break; sleep 0.1; done\n\
             srun --overlap -N4 -n4 {} {ranks}\n",
            eprof.display(),
            mpi.srun
        );
        fs::write(folder.join("job.sh"), script).expect("writable");
        let output = self.cluster.run(&folder, "sbatch", &["--wait", "-N4", "-n4", "-o", "said", "job.sh"]);
        let said = fs::read_to_string(folder.join("said")).unwrap_or_default();
        assert!(output.status.success(), "{said}{}", self.cluster.logs());
        let files = recordings(&folder);
        let (nodes, ranks): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| file.display().to_string().contains("-node-"));
        assert_eq!((nodes.len(), ranks.len()), (NODES, NODES), "{said}");
        wait_until("the companions' files", || {
            nodes.iter().all(|file| Recording::open(file).is_ok_and(|recording| recording.is_complete()))
        });
        for rank in &ranks {
            assert_eq!(metadata(rank).meters, MetersRead::ByAnother, "{}", rank.display());
        }
        let together = assert_one_machine(&folder);
        let alone = report_of(&nodes.iter().map(PathBuf::as_path).collect::<Vec<_>>(), &[]);
        let [together, alone] =
            [together, alone].map(|report| report["total_joules"].as_f64().expect("joules"));
        assert!(
            (together - alone).abs() <= 0.05 * alone + 1.0,
            "{together} J, {alone} J by those of the nodes"
        );
    }
}

/// Its recordings, by name.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("readable").filter_map(Result::ok).map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "data")).collect();
    files.sort();
    files
}

fn report(folder: &Path, arguments: &[&str]) -> Value {
    report_of(&[folder], arguments)
}

fn report_of(what: &[&Path], arguments: &[&str]) -> Value {
    let output =
        eprof().args(["report", "--format", "json"]).args(what).args(arguments).output().expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The meter of the one kernel that all nodes are is counted once, and all its joules are somebody's.
fn assert_one_machine(folder: &Path) -> Value {
    let report = report(folder, &[]);
    assert_eq!(report["machines"].as_array().map(Vec::len), Some(1), "{report}");
    let number = |value: &Value| value.as_f64().expect("a number");
    let (measured, seconds) = (number(&report["total_joules"]), number(&report["duration_s"]));
    assert!(
        measured > 0.0 && measured <= WATTS * seconds * 1.05 + 1.0,
        "{measured} J in {seconds} s: {report}"
    );
    let parts =
        ["attributed", "static", "other", "recorder", "lost"].map(|part| number(&report["balance"][part]));
    assert!((parts.iter().sum::<f64>() - measured).abs() <= 1e-9 * measured, "{parts:?} J of {measured} J");
    assert!(parts[0] > 0.05 * measured, "{parts:?} J of {measured} J");
    let rows = report["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["name"] == "sweep"), "what the program does is found: {report}");
    report
}

fn metadata(file: &Path) -> Metadata {
    Recording::open(file).expect("readable").metadata().expect("eprof's").clone()
}

/// Of the ranks of one machine one had the turn to read the meters.
fn assert_one_reader(files: &[PathBuf]) {
    let roles: Vec<MetersRead> = files.iter().map(|file| metadata(file).meters).collect();
    let readers = roles.iter().filter(|role| **role == MetersRead::ForAll).count();
    let waiting = roles.iter().filter(|role| **role == MetersRead::ByAnother).count();
    assert_eq!((readers, waiting), (1, NODES - 1), "{roles:?}");
}
