//! An agent that runs, its counters, and the tables that it writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use eprof_testbed::{Started, eprof};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::record::harness::wait_until;

/// An agent, which ends with the value.
pub struct Agent {
    child: Started,
    said: Arc<Mutex<Vec<String>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Agent {
    /// Starts an agent that writes into `folder` and estimates, and waits until it says so.
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = eprof();
        command.args(["agent", "-o"]).arg(folder).args(["--listen", "127.0.0.1:0"]);
        if !arguments.contains(&"--window") {
            command.args(["--window", "1s"]);
        }
        command.args(["--meter", "estimate", "--watts", "4:20"]).args(arguments);
        let mut child = Started::new(command.stdin(Stdio::null()).stderr(Stdio::piped()));
        let stderr = child.stderr.take().expect("a pipe");
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let lines = Arc::clone(&said);
        let reader = thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                lines.lock().expect("no panic").push(line);
            }
        });
        let agent = Self { child, said, reader: Some(reader) };
        agent.wait_for("counters: ");
        agent
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn said(&self) -> String {
        self.said.lock().expect("no panic").join("\n")
    }

    pub fn wait_for(&self, text: &str) {
        wait_until(text, || {
            let said = self.said();
            assert!(!said.starts_with("error:"), "{said}");
            said.contains(text)
        });
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it runs");
    }

    /// Ends it and gives its exit status and all that it said.
    pub fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        self.signal(signal);
        let status = self.child.wait().expect("waited for");
        self.reader.take().expect("once").join().expect("no panic");
        (status.code(), self.said())
    }

    /// What a scraper gets, head and text.
    pub fn get(&self, path: &str, headers: &str) -> String {
        let said = self.said();
        let address = said.split("counters: http://").nth(1).and_then(|rest| rest.split('/').next());
        let mut connection = TcpStream::connect(address.expect("an address")).expect("it listens");
        connection.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        write!(connection, "GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").expect("sent");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("text");
        answer
    }

    /// The counters: series and their values.
    pub fn counters(&self) -> BTreeMap<String, f64> {
        let page = self.get("/metrics", "");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        let lines = page.split("\r\n\r\n").nth(1).expect("a text").lines();
        let samples = lines.filter(|line| !line.starts_with('#'));
        let sample = |line: &str| {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            (series.to_owned(), value.parse().expect("a number"))
        };
        samples.map(sample).collect()
    }

    pub fn counter(&self, series: &str) -> f64 {
        self.counters().get(series).copied().unwrap_or(0.0)
    }

    /// Waits until so many windows were written.
    pub fn wait_for_windows(&self, count: f64) {
        wait_until("windows", || self.counter("eprof_agent_windows_written_total") >= count);
    }
}

type Fields = BTreeMap<String, Field>;

/// The rows of one table, of all its files.
pub fn rows(folder: &Path, table: &str) -> Vec<Fields> {
    let mut rows = Vec::new();
    for entry in fs::read_dir(folder.join(table)).expect("a folder") {
        let path = entry.expect("readable").path();
        let reader = SerializedFileReader::new(File::open(&path).expect("there")).expect("Parquet");
        for row in reader.get_row_iter(None).expect("rows") {
            let row = row.expect("a row");
            rows.push(row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect());
        }
    }
    rows
}

pub fn joules(row: &Fields, name: &str) -> f64 {
    match row[name] {
        Field::Double(joules) => joules,
        ref other => panic!("{name} is {other:?}"),
    }
}

pub fn whole(row: &Fields, name: &str) -> i64 {
    match row[name] {
        Field::Long(number) | Field::TimestampMicros(number) => number,
        ref other => panic!("{name} is {other:?}"),
    }
}

pub fn text<'r>(row: &'r Fields, name: &str) -> &'r str {
    match &row[name] {
        Field::Str(text) => text,
        other => panic!("{name} is {other:?}"),
    }
}

/// Names of a table's files.
pub fn files(folder: &Path, table: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder.join(table)).expect("a folder");
    entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect()
}

/// CPUs of this machine.
fn cpus() -> usize {
    let online = fs::read_to_string("/proc/stat").expect("readable");
    online.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count()
}

/// The parts of all windows together, by their names; of each window they are its whole, and its functions are its samples.
/// All tables have the same windows, every stack its frames and every frame its function.
#[track_caller]
pub fn sums(folder: &Path) -> BTreeMap<&'static str, f64> {
    let windows = files(folder, "balance");
    for table in ["functions", "stack_frames", "samples"] {
        assert_eq!(files(folder, table), windows, "{table} has windows of its own");
    }
    let samples = rows(folder, "samples");
    let mut sums = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for balance in rows(folder, "balance") {
        assert!(ids.insert(whole(&balance, "recording")), "each window has an id of its own");
        assert!(whole(&balance, "window_start") < whole(&balance, "window_end"));
        let measured = joules(&balance, "measured");
        let parts = ["functions", "static", "others", "recorder", "lost"];
        let all: f64 = parts.map(|part| joules(&balance, part)).iter().sum();
        assert!((all - measured).abs() <= 1e-9 * measured, "{balance:?}");
        let of_window = |row: &&Fields| row["recording"] == balance["recording"];
        let in_samples: f64 = samples.iter().filter(of_window).map(|row| joules(row, "joules")).sum();
        assert!((in_samples - joules(&balance, "functions")).abs() <= 1e-9 * measured, "{balance:?}");
        assert!(samples.iter().filter(of_window).all(|row| row["time"] == balance["window_start"]));
        // No window has more CPU time than its CPUs, but for how late a sample at its edge may have come.
        let ran: i64 = samples.iter().filter(of_window).map(|row| whole(row, "cpu_ns")).sum();
        let micros = whole(&balance, "window_end") - whole(&balance, "window_start");
        let most = cpus() as i64 * (micros * 1_000 + 10_000_000);
        assert!(ran <= most, "{ran} ns of {most} in {balance:?}");
        for part in parts.into_iter().chain(["measured"]) {
            *sums.entry(part).or_default() += joules(&balance, part);
        }
    }
    let ids =
        |table, name| -> BTreeSet<i64> { rows(folder, table).iter().map(|row| whole(row, name)).collect() };
    assert!(ids("samples", "stack_id").is_subset(&ids("stack_frames", "stack_id")));
    assert!(ids("stack_frames", "function_id").is_subset(&ids("functions", "function_id")));
    sums
}
