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
use eprof::process::privileges;
use eprof::push::clickhouse::{self, Server};
use eprof::push::otlp::{self, Collector};
use eprof::push::{Backoff, Failure, PushError, SecretSource, Spool};
use eprof::report::export::{Exported, Exporter, Otlp};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::log::Log;
use super::receivers::Receivers;
use super::shared::Shared;

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
        let mut pushing = Self::default();
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

    /// Sends what there is, for some seconds at most.
    pub fn finish(self) {
        let deadline = Instant::now() + LAST_TRIES;
        for worker in &self.workers {
            worker.tell(Told::End);
        }
        for worker in self.workers {
            let left = deadline.saturating_duration_since(Instant::now());
            // A thread that waits for an answer for longer ends with the process: what it sends is on disk.
            let _ = worker.ended.recv_timeout(left);
        }
    }
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

    /// How many windows wait.
    fn waiting(&mut self) -> Result<usize, PushError>;
}

/// What came of a step.
#[derive(Debug, Default)]
struct Step {
    sent: usize,
    /// Windows that nobody will get, and why.
    given_up: Vec<String>,
    waiting: usize,
}

impl Sends for clickhouse::Sender {
    fn step(&mut self) -> Result<Step, Failure> {
        let step = Self::step(self)?;
        let mut given_up: Vec<String> = step.left_out.iter().map(ToString::to_string).collect();
        given_up
            .extend((0..step.gone).map(|_| "it was removed for age or room before it was sent".to_owned()));
        Ok(Step { sent: step.pushed.windows, given_up, waiting: step.waiting })
    }

    fn waiting(&mut self) -> Result<usize, PushError> {
        Ok(Self::waiting(self)?.len())
    }
}

impl Sends for otlp::Sender {
    fn step(&mut self) -> Result<Step, Failure> {
        let otlp::Step { sent, given_up, waiting } = Self::step(self)?;
        Ok(Step { sent, given_up, waiting })
    }

    fn waiting(&mut self) -> Result<usize, PushError> {
        Self::waiting(self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    New,
    End,
}

/// A thread that sends to one receiver.
struct Worker {
    tell: Teller<Told>,
    ended: Receiver<()>,
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
        let (shared, log) = (Arc::clone(shared), Arc::clone(log));
        let run = move || {
            // Files that are sent and secrets are read by the user's own rights, and strangers are spoken to without any.
            let made =
                privileges::keep_capabilities(0).context("cannot give up rights").and_then(|()| make());
            match made {
                Ok(sends) => {
                    let backoff = Backoff::new(LONGEST_PAUSE);
                    let mut sending = Loop { kind, name, sends, told, shared, log, backoff };
                    // Who scrapes the agent at once learns what waits since its last run.
                    sending.count_waiting();
                    let _ = ready.send(Ok(()));
                    sending.run();
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
            let _ = end.send(());
        };
        thread::Builder::new().name(format!("eprof-{kind}").chars().take(15).collect()).spawn(run)?;
        is_ready.recv().context("a thread that sends windows broke off; this is a bug of eprof")??;
        Ok(Self { tell, ended })
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
    fn wait(&mut self, pause: Option<Duration>) -> bool {
        let Some(pause) = pause else {
            return self.told.recv() != Ok(Told::New);
        };
        let until = Instant::now() + pause;
        loop {
            match self.told.recv_timeout(until.saturating_duration_since(Instant::now())) {
                // What is new waits with the rest.
                Ok(Told::New) => self.count_waiting(),
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
                    self.count_waiting();
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

    /// Counts what waits where nothing is sent. A folder that cannot be read is told by the next attempt to send.
    fn count_waiting(&mut self) {
        let Ok(waiting) = self.sends.waiting() else { return };
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.metrics.sent(self.kind).waiting = waiting as u64;
    }

    fn count(&self, step: &Step) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = shared.metrics.sent(self.kind);
        sent.windows += step.sent as u64;
        sent.given_up += step.given_up.len() as u64;
        sent.waiting = step.waiting as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::metrics::Bounds;
    use super::*;

    /// A receiver that is away, for which so many windows wait.
    struct Away(usize);

    impl Sends for Away {
        fn step(&mut self) -> Result<Step, Failure> {
            Err(PushError::Unreadable("nobody answers".to_owned()).into())
        }

        fn waiting(&mut self) -> Result<usize, PushError> {
            self.0 += 1;
            Ok(self.0)
        }
    }

    #[test]
    fn what_waits_is_counted_from_the_start_and_while_the_receiver_is_away() {
        let shared = Arc::new(Mutex::new(Shared::new(Bounds { functions: 1, cgroups: 1 })));
        let waiting = || shared.lock().expect("no panic").metrics.sent("otlp").waiting;
        let (log, make) = (Arc::new(Log::default()), || Ok(Box::new(Away(4)) as Box<dyn Sends>));
        let worker = Worker::start("otlp", "a collector".to_owned(), make, &shared, &log).expect("started");
        assert!(waiting() >= 5, "{}", waiting());
        let until = |windows: u64| {
            let deadline = Instant::now() + Duration::from_secs(20);
            while waiting() < windows {
                assert!(Instant::now() < deadline, "{} of {windows}", waiting());
                thread::sleep(Duration::from_millis(5));
            }
        };
        until(6);
        worker.tell(Told::New);
        until(7);
        worker.tell(Told::End);
        worker.ended.recv_timeout(Duration::from_secs(20)).expect("it ends");
    }
}
