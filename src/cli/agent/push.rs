//! What the agent sends elsewhere: windows to ClickHouse, profiles to a collector.
//!
//! Each receiver has a thread of its own, without rights. It is told that there is a window and sends what lies on disk; nobody
//! waits for it. For ClickHouse that is the folder of tables itself, for a collector a folder of profiles inside it.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender as Teller};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use eprof::label::shell_word;
use eprof::process::privileges;
use eprof::push::clickhouse::{self, Server};
use eprof::push::otlp::{self, Collector};
use eprof::push::{Backoff, Failure, PushError, SecretSource, Spool, Trust};
use eprof::report::export::{Exported, Exporter, Otlp};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::log::Log;
use super::receivers::Receivers;
use super::shared::Shared;
use super::waiting::{Count, in_spool, in_tables};

/// Profiles that wait, inside the folder of tables.
const SPOOL: &str = ".otlp";
/// Between two tries, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// What is not sent so long after the agent's end waits for its next start.
const LAST_TRIES: Duration = Duration::from_secs(10);

/// The threads that send.
#[derive(Default)]
pub struct Pushing {
    workers: Vec<Worker>,
    spool: Option<Spool>,
    log: Arc<Log>,
}

impl Pushing {
    /// Begins to send what is in a folder of tables, and what comes.
    ///
    /// # Errors
    /// Secrets or certificates that cannot be read, a folder that cannot be written.
    pub fn start(
        receivers: &Receivers,
        folder: &Path,
        shared: &Arc<Mutex<Shared>>,
        log: &Arc<Log>,
    ) -> anyhow::Result<Self> {
        let mut pushing = Self { log: Arc::clone(log), ..Self::default() };
        let all = receivers.clone();
        if let Some(target) = receivers.clickhouse.clone() {
            let (all, folder, name) = (all.clone(), folder.to_owned(), target.name());
            let make = move || {
                let server = Server::new(target, checked(all.password)?, &all.trust, all.allow_plain_http)?;
                Ok(Box::new(clickhouse::Sender::new(&folder, server)?) as Box<dyn Sends>)
            };
            pushing.workers.push(Worker::start("clickhouse", name, make, shared, log)?);
        }
        if let Some(target) = receivers.otlp.clone() {
            let spool = Spool::open(folder.join(SPOOL), all.spool_bytes)?;
            pushing.spool = Some(spool.clone());
            let name = target.name();
            let make = move || {
                let collector =
                    Collector::new(target, checked(all.token)?, &all.trust, all.allow_plain_http)?;
                Ok(Box::new(otlp::Sender::new(collector, spool)) as Box<dyn Sends>)
            };
            pushing.workers.push(Worker::start("otlp", name, make, shared, log)?);
        }
        Ok(pushing)
    }

    /// Puts a window where the collector's thread finds it. Gives how many windows had to go for it.
    ///
    /// # Errors
    /// A window that cannot be written.
    pub fn add(&self, id: &str, exported: &Exported<'_>) -> anyhow::Result<usize> {
        let Some(spool) = &self.spool else { return Ok(0) };
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        Otlp.write(exported, &mut packed)?;
        Ok(spool.add(id, &packed.finish()?)?)
    }

    /// There may be something new to send.
    pub fn tell(&self) {
        for worker in &self.workers {
            worker.tell(Told::New);
        }
    }

    /// Sends what there is, for some seconds at most. Gives what still waits then.
    pub fn finish(self) -> Vec<Left> {
        let deadline = Instant::now() + LAST_TRIES;
        for worker in &self.workers {
            worker.tell(Told::End);
        }
        let mut all_left = Vec::new();
        for worker in self.workers {
            let left = deadline.saturating_duration_since(Instant::now());
            // A thread that waits for an answer for longer ends with the process: what it sends is on disk.
            let _ = worker.ended.recv_timeout(left);
            match (worker.count)() {
                Ok(0) => {}
                Ok(windows) => all_left.push(Left { kind: worker.kind, name: worker.name, windows }),
                Err(error) => self.log.say(worker.kind, format_args!("error: {error}")),
            }
        }
        all_left
    }
}

/// What waits for a receiver at the agent's end.
#[derive(Debug, PartialEq, Eq)]
pub struct Left {
    /// Which kind of receiver.
    pub kind: &'static str,
    /// Its address.
    pub name: String,
    /// Windows.
    pub windows: usize,
}

impl Left {
    /// What is said of it, with what sends it from this folder.
    pub fn told(&self, folder: &Path, receivers: &Receivers) -> String {
        let Self { kind, name, windows } = self;
        let wait = if *windows == 1 { "window waits" } else { "windows wait" };
        let again = match (*kind, &receivers.clickhouse) {
            ("clickhouse", Some(target)) => format!(
                "sent when the agent starts again, or by: {}",
                push_command(folder, &target.url(), receivers)
            ),
            _ => format!("sent when the agent starts again (-o {} --otlp {name})", folder.display()),
        };
        format!("{windows} {wait} for {name}: {again}")
    }
}

/// The command that sends a folder to a database as the agent does.
fn push_command(folder: &Path, url: &str, receivers: &Receivers) -> String {
    let folder = folder.to_string_lossy();
    let mut words = vec!["eprof", "push", &folder, url];
    let (password, authorities);
    if let Some(SecretSource::File(path)) = &receivers.password {
        password = path.to_string_lossy();
        words.extend(["--password-file", &password]);
    }
    if let Trust::File(path) = &receivers.trust {
        authorities = path.to_string_lossy();
        words.extend(["--ca", &authorities]);
    }
    if receivers.allow_plain_http {
        words.push("--allow-plain-http");
    }
    words.into_iter().map(shell_word).collect::<Vec<_>>().join(" ")
}

/// A secret that can be read now.
fn checked(source: Option<SecretSource>) -> Result<Option<SecretSource>, PushError> {
    if let Some(source) = &source {
        source.read()?;
    }
    Ok(source)
}

/// What sends, step by step.
trait Sends {
    fn step(&mut self) -> Result<Step, Failure>;

    /// Counts what waits, for others and at any time.
    fn count(&self) -> Count;
}

/// What came of a step.
#[derive(Debug, Default)]
struct Step {
    sent: usize,
    /// Windows that nobody will get, and why.
    given_up: Vec<String>,
    /// What is said of windows that the receiver had and has no more.
    again: Option<String>,
    waiting: usize,
}

impl Sends for clickhouse::Sender {
    fn step(&mut self) -> Result<Step, Failure> {
        let step = Self::step(self)?;
        let mut given_up: Vec<String> = step.left_out.iter().map(ToString::to_string).collect();
        given_up
            .extend((0..step.gone).map(|_| "it was removed for age or room before it was sent".to_owned()));
        let again = step.lost_told(&self.server().target().name());
        Ok(Step { sent: step.pushed.windows, given_up, again, waiting: step.waiting })
    }

    fn count(&self) -> Count {
        in_tables(self.look())
    }
}

impl Sends for otlp::Sender {
    fn step(&mut self) -> Result<Step, Failure> {
        let otlp::Step { sent, given_up, waiting } = Self::step(self)?;
        Ok(Step { sent, given_up, again: None, waiting })
    }

    fn count(&self) -> Count {
        in_spool(self.spool().clone())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    New,
    End,
}

/// A thread that sends to one receiver.
struct Worker {
    kind: &'static str,
    name: String,
    tell: Teller<Told>,
    ended: Receiver<()>,
    count: Count,
}

impl Worker {
    fn start(
        kind: &'static str,
        name: String,
        make: impl FnOnce() -> anyhow::Result<Box<dyn Sends>> + Send + 'static,
        shared: &Arc<Mutex<Shared>>,
        log: &Arc<Log>,
    ) -> anyhow::Result<Self> {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let (to_count, log, of_loop) = (Arc::clone(shared), Arc::clone(log), name.clone());
        let shared = Arc::clone(shared);
        let run = move || {
            // Files that are sent and secrets are read by the user's own rights, and strangers are spoken to without any.
            let made =
                privileges::keep_capabilities(0).context("cannot give up rights").and_then(|()| make());
            match made {
                Ok(sends) => {
                    let backoff = Backoff::new(LONGEST_PAUSE);
                    let _ = ready.send(Ok(sends.count()));
                    Loop { kind, name: of_loop, sends, told, shared, log, backoff }.run();
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
            let _ = end.send(());
        };
        thread::Builder::new().name(format!("eprof-{kind}").chars().take(15).collect()).spawn(run)?;
        let count: Count =
            is_ready.recv().context("a thread that sends windows broke off; this is a bug of eprof")??;
        // Who scrapes the agent at once learns what waits since its last run.
        let mut shared = to_count.lock().unwrap_or_else(PoisonError::into_inner);
        shared.waiting.add(kind, Arc::clone(&count));
        drop(shared);
        Ok(Self { kind, name, tell, ended, count })
    }

    fn tell(&self, what: Told) {
        // A thread that has ended has said why.
        let _ = self.tell.send(what);
    }
}

struct Loop {
    kind: &'static str,
    name: String,
    sends: Box<dyn Sends>,
    told: Receiver<Told>,
    shared: Arc<Mutex<Shared>>,
    log: Arc<Log>,
    backoff: Backoff,
}

impl Loop {
    fn run(mut self) {
        let mut is_last = false;
        loop {
            let pause = self.send_all();
            if is_last {
                return;
            }
            is_last = self.wait(pause);
        }
    }

    /// Waits until there is something new, or for the pause after a failure. `true`: this is the end.
    fn wait(&self, pause: Option<Duration>) -> bool {
        let Some(pause) = pause else {
            return self.told.recv() != Ok(Told::New);
        };
        let until = Instant::now() + pause;
        loop {
            match self.told.recv_timeout(until.saturating_duration_since(Instant::now())) {
                // What is new waits with the rest.
                Ok(Told::New) => {}
                Ok(Told::End) | Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// Sends until nothing waits. After a failure it gives how long to wait.
    fn send_all(&mut self) -> Option<Duration> {
        loop {
            match self.sends.step() {
                Ok(step) => {
                    if self.backoff.failures() > 0 {
                        self.log.is_over(self.kind);
                        self.log.say(self.kind, format_args!("windows are sent to {} again", self.name));
                        self.log.is_over(self.kind);
                    }
                    self.backoff.succeeded();
                    self.count(&step);
                    if let Some(again) = &step.again {
                        self.log.say(self.kind, format_args!("warning: {again}"));
                    }
                    for why in &step.given_up {
                        self.log.say(
                            "given up",
                            format_args!("error: a window is not sent to {}: {why}", self.name),
                        );
                    }
                    if step.waiting == 0 {
                        return None;
                    }
                }
                Err(failure) => {
                    let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
                    shared.metrics.sent(self.kind).failures += 1;
                    drop(shared);
                    self.log.say(
                        self.kind,
                        format_args!(
                            "warning: windows wait for {}, they are sent later: {failure}",
                            self.name
                        ),
                    );
                    return Some(self.backoff.failed(failure.after));
                }
            }
        }
    }

    fn count(&self, step: &Step) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = shared.metrics.sent(self.kind);
        sent.windows += step.sent as u64;
        sent.given_up += step.given_up.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::metrics::{Bounds, Format};
    use super::super::pipeline::page;
    use super::*;

    /// A receiver that is asked and says nothing until it is told to; so many windows wait for it.
    struct Silent {
        waiting: Arc<AtomicUsize>,
        asked: Teller<()>,
        answers: Receiver<()>,
    }

    impl Sends for Silent {
        fn step(&mut self) -> Result<Step, Failure> {
            self.asked.send(()).expect("somebody looks");
            let _ = self.answers.recv();
            Err(PushError::Unreadable("nobody answers".to_owned()).into())
        }

        fn count(&self) -> Count {
            let waiting = Arc::clone(&self.waiting);
            Arc::new(move || Ok(waiting.load(Ordering::SeqCst)))
        }
    }

    #[test]
    fn what_waits_is_true_at_each_scrape_and_told_at_the_end_though_the_receiver_is_silent() {
        let shared = Arc::new(Mutex::new(Shared::new(Bounds { functions: 1, cgroups: 1 })));
        let log = Arc::new(Log::default());
        let waiting = Arc::new(AtomicUsize::new(4));
        let (asked, is_asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let silent = Silent { waiting: Arc::clone(&waiting), asked, answers };
        let make = move || Ok(Box::new(silent) as Box<dyn Sends>);
        let worker = Worker::start("otlp", "a collector".to_owned(), make, &shared, &log).expect("started");
        let page = page(&shared);
        let scraped = || {
            let page = page(Format::Prometheus).expect("it records");
            let line = page.lines().find_map(|line| {
                line.strip_prefix("eprof_agent_waiting_windows{receiver=\"otlp\"} ").map(str::to_owned)
            });
            line.expect("it is counted")
        };
        is_asked.recv_timeout(Duration::from_secs(20)).expect("it is asked");
        assert_eq!(scraped(), "4");
        // The receiver says nothing, and more comes.
        waiting.store(5, Ordering::SeqCst);
        worker.tell(Told::New);
        assert_eq!(scraped(), "5");
        answer.send(()).expect("it waits");
        let pushing = Pushing { workers: vec![worker], spool: None, log };
        drop(answer);
        let left = pushing.finish();
        assert_eq!(left, [Left { kind: "otlp", name: "a collector".to_owned(), windows: 5 }]);
    }

    #[test]
    fn what_is_left_is_told_with_the_command_that_sends_it() {
        let target = clickhouse::Target::parse("clickhouses://writer@db/energy").expect("right");
        let receivers = Receivers {
            clickhouse: Some(target.clone()),
            password: Some(SecretSource::File("/etc/my word".into())),
            trust: Trust::File("/etc/ca.pem".into()),
            ..Receivers::default()
        };
        let left = Left { kind: "clickhouse", name: target.name(), windows: 2 };
        let told = left.told(Path::new("/var/lib/eprof"), &receivers);
        assert!(told.starts_with("2 windows wait for clickhouses://db:8443/energy: "), "{told}");
        let command = "eprof push /var/lib/eprof clickhouses://writer@db:8443/energy --password-file '/etc/my word' --ca \
                       /etc/ca.pem";
        assert!(told.ends_with(command), "{told}");
        let left = Left { kind: "otlp", name: "http://c:4318/v1development/profiles".to_owned(), windows: 1 };
        let told = left.told(Path::new("/var/lib/eprof"), &receivers);
        assert!(told.starts_with("1 window waits") && told.contains("--otlp http://c:4318/"), "{told}");
    }
}
