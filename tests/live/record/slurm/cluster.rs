//! A Slurm of four nodes that are all this machine, with a munge of its own. It ends with its owner.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use eprof_testbed::{Started, has_program, skip};
use tempfile::TempDir;

/// How many nodes there are.
pub const NODES: usize = 4;

/// No step of a test may take longer.
const LONGEST_STEP: &str = "90";
/// How long daemons are given to begin, and jobs to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// The running cluster. Its daemons end in their order here: those that others need, last.
pub struct Cluster {
    nodes: Vec<Started>,
    controller: Option<Started>,
    munge: Option<Started>,
    folder: TempDir,
}

impl Cluster {
    /// Starts it; `None`, with the reason said, where that cannot be.
    pub fn start() -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            skip("Slurm's daemons run as root here");
            return None;
        }
        let programs = ["slurmctld", "slurmd", "srun", "salloc", "sbatch", "scancel", "munged"];
        let missing =
            programs.iter().find(|program| !has_program("sh", &["-c", &format!("command -v {program}")]));
        if let Some(program) = missing {
            skip(&format!(
                "no `{program}`: apt-get install slurm-wlm munge openmpi-bin libopenmpi-dev mpich libmpich-dev"
            ));
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        // munged wants its socket to be reached by everybody.
        mode(folder.path(), 0o755);
        let mut cluster = Self { nodes: Vec::new(), controller: None, munge: None, folder };
        cluster.write_files();
        let socket = cluster.path("munge/socket");
        let munge = |name: &str| cluster.path(&format!("munge/{name}"));
        let munge = [
            ("socket", "socket"),
            ("key-file", "key"),
            ("pid-file", "pid"),
            ("log-file", "log"),
            ("seed-file", "seed"),
        ]
        .map(|(option, name)| format!("--{option}={}", munge(name).display()));
        cluster.munge = Some(cluster.daemon("munged", "--foreground", &munge));
        assert!(comes_true(|| socket.exists()), "munged does not begin");
        let configuration = cluster.path("slurm.conf").display().to_string();
        cluster.controller =
            Some(cluster.daemon("slurmctld", "-D", &["-f".to_owned(), configuration.clone()]));
        for node in 1..=NODES {
            let options = ["-N".to_owned(), format!("n{node}"), "-f".to_owned(), configuration.clone()];
            let node = cluster.daemon("slurmd", "-D", &options);
            cluster.nodes.push(node);
        }
        let are_there = comes_true(|| {
            let output = cluster.slurm("sinfo", &["-h", "-o", "%D %T"]).output().expect("timeout runs");
            String::from_utf8_lossy(&output.stdout).lines().any(|line| line == "4 idle")
        });
        assert!(are_there, "four nodes do not come: {}", cluster.logs());
        Some(cluster)
    }

    /// A path in the cluster's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A folder for recordings, empty.
    pub fn empty_folder(&self, name: &str) -> PathBuf {
        let folder = self.path(name);
        fs::create_dir(&folder).expect("writable");
        folder
    }

    /// One of Slurm's commands, which ends after a while.
    pub fn slurm(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.arg("--kill-after=5").arg(LONGEST_STEP).arg(program).args(arguments);
        command.env("SLURM_CONF", self.path("slurm.conf")).env("XDG_RUNTIME_DIR", self.path("runtime"));
        // Open MPI asks for it, and MPICH for what works without devices.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        // On a busy machine ranks of Open MPI 4.1.4 jumped to address 0 as they began, in 14 of 108 steps that eprof had no part in,
        // and in 1 of 72 where all ranks connect in MPI_Init.
        command.env("OMPI_MCA_mpi_preconnect_mpi", "1");
        command.stdin(Stdio::null());
        command
    }

    /// Runs one in a folder.
    pub fn run(&self, folder: &Path, program: &str, arguments: &[&str]) -> Output {
        self.slurm(program, arguments).current_dir(folder).output().expect("timeout runs")
    }

    /// The number of jobs that there are.
    pub fn jobs(&self) -> usize {
        let output = self.slurm("squeue", &["-h", "-o", "%i"]).output().expect("timeout runs");
        String::from_utf8_lossy(&output.stdout).lines().count()
    }

    fn write_files(&self) {
        for folder in ["munge", "run", "log", "state", "runtime"] {
            fs::create_dir(self.path(folder)).expect("writable");
        }
        mode(&self.path("munge"), 0o755);
        mode(&self.path("runtime"), 0o700);
        for node in 1..=NODES {
            for folder in ["spool", "tmp"] {
                fs::create_dir_all(self.path(&format!("{folder}/n{node}"))).expect("writable");
            }
        }
        let key: Vec<u8> = (0..4).flat_map(|_| eight_bytes()).collect();
        fs::write(self.path("munge/key"), key).expect("writable");
        mode(&self.path("munge/key"), 0o600);
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("readable");
        let root = self.folder.path().display();
        // A moment later they may be another's; then the daemon does not begin, which the test tells.
        let listeners: Vec<TcpListener> =
            (0..=NODES).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let ports: Vec<u16> = listeners.iter().map(|port| port.local_addr().expect("bound").port()).collect();
        let host = host.trim();
        let mut text = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={root}/munge/socket\nMpiDefault=none\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nReturnToService=2\n\
             SlurmctldPidFile={root}/run/controller\nSlurmdPidFile={root}/run/%n\nSlurmdSpoolDir={root}/spool/%n\n\
             StateSaveLocation={root}/state\nSlurmctldLogFile={root}/log/controller\nSlurmdLogFile={root}/log/%n\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSchedulerType=sched/builtin\n\
             AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\n\
             SlurmdParameters=config_overrides\nTmpFS={root}/tmp/%n\nKillWait=10\n",
            ports[0]
        );
        for (node, port) in ports.iter().enumerate().skip(1) {
            text += &format!(
                "NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 State=UNKNOWN\n"
            );
        }
        text += "PartitionName=all Nodes=ALL Default=YES MaxTime=5 State=UP\n";
        fs::write(self.path("slurm.conf"), text).expect("writable");
    }

    fn daemon(&self, program: &str, foreground: &str, options: &[String]) -> Started {
        let mut command = Command::new(program);
        command.arg(foreground).args(options).env("SLURM_CONF", self.path("slurm.conf"));
        Started::new(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// What the daemons wrote, for messages of failed tests.
    pub fn logs(&self) -> String {
        let files = fs::read_dir(self.path("log")).into_iter().flatten().filter_map(Result::ok);
        let tail =
            |text: String| text.lines().rev().take(10).map(|line| format!("{line}\n")).collect::<String>();
        files.filter_map(|file| fs::read_to_string(file.path()).ok()).map(tail).collect()
    }
}

impl Drop for Cluster {
    /// What still runs is told to end by those who started it: the steps' own daemons are nobody's children.
    fn drop(&mut self) {
        let start = Instant::now();
        let cancelled = self.slurm("scancel", &["--user=root"]).status();
        while cancelled.is_ok() && self.jobs() > 0 && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(200));
        }
        self.nodes.clear();
        self.controller = None;
        self.munge = None;
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode");
}

/// Eight bytes that nobody foresees.
fn eight_bytes() -> [u8; 8] {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u8).to_le_bytes()
}

fn comes_true(mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}
