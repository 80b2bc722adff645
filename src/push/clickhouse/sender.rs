//! A folder of tables on its way to a server, batch by batch.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::batch::{Batch, Pushed};
use super::server::Server;
use super::waiting::Waiting;
use crate::push::client::{Failure, Kind};
use crate::push::folder::{Window, windows};
use crate::push::window_set::WindowSet;
use crate::push::{Acknowledged, PushError};
use crate::report::store::schema::SAMPLES;

/// Windows of a batch at most. Each may be of another day, and servers take a hundred days at once.
const MOST_WINDOWS: usize = 64;
/// Bytes of samples, as Parquet has them, with which a batch is full: some 300,000 rows, 60 MB before they are packed.
const ENOUGH_BYTES: u64 = 4 << 20;

/// Sends what a server has not yet.
pub struct Sender {
    folder: PathBuf,
    server: Server,
    list: Acknowledged,
    /// Windows of a batch now: fewer after a refusal, so that one window does not hold up others.
    together: usize,
    /// What was refused alone and waits behind all others.
    behind: HashSet<String>,
    look: Waiting,
    /// What waited when the folder was last looked at.
    waited: HashSet<String>,
    /// Windows that waited and were removed by somebody.
    gone: usize,
}

/// What came of a step.
#[derive(Debug)]
pub struct Step {
    /// What was pushed; nothing where nothing waits.
    pub pushed: Pushed,
    /// Windows that are not what they should be, and why: they are left out from now on.
    pub left_out: Vec<PushError>,
    /// Windows that waited before and are not in the folder any more.
    pub gone: usize,
    /// Windows that wait.
    pub waiting: usize,
}

impl Sender {
    /// Of a folder. Nothing is sent yet.
    ///
    /// # Errors
    /// As for [`Acknowledged::open`].
    pub fn new(folder: &Path, server: Server) -> Result<Self, PushError> {
        let list = Acknowledged::open(folder, &server.target().name())?;
        Ok(Self {
            folder: folder.to_owned(),
            server,
            look: Waiting {
                folder: folder.to_owned(),
                acknowledged: list.known(),
                unreadable: WindowSet::default(),
            },
            list,
            together: MOST_WINDOWS,
            behind: HashSet::new(),
            waited: HashSet::new(),
            gone: 0,
        })
    }

    /// Where it sends.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// What tells others which windows wait, at any time.
    pub fn look(&self) -> Waiting {
        self.look.clone()
    }

    /// The windows that wait, in the order in which they are sent.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn waiting(&mut self) -> Result<Vec<Window>, PushError> {
        let all = windows(&self.folder)?;
        self.list.forget_all_but(&all)?;
        let mut waiting = self.look.of(all);
        let now: HashSet<String> = waiting.iter().map(Window::key).collect();
        self.gone += self
            .waited
            .iter()
            .filter(|key| !now.contains(*key) && !self.look.acknowledged.has_key(key))
            .count();
        self.waited = now;
        waiting.sort_by_key(|window| self.behind.contains(&window.key()));
        Ok(waiting)
    }

    /// Sends the next batch.
    ///
    /// # Errors
    /// Why it is not sent; the same windows wait still.
    pub fn step(&mut self) -> Result<Step, Failure> {
        let waiting = self.waiting()?;
        if waiting.is_empty() {
            return Ok(self.told(Pushed::default(), Vec::new(), 0));
        }
        self.server.prepare()?;
        let next = &waiting[..self.size_of_next(&waiting)];
        let folder = self.folder.clone();
        let (batch, wrong) = Batch::open(&folder, next);
        let mut left_out = Vec::new();
        for (window, why) in wrong {
            // What an agent has removed meanwhile is not missed.
            if window.path(&folder, &SAMPLES).exists() {
                self.leave_out(window);
                left_out.push(why);
            }
        }
        let mut pushed = Pushed::default();
        if !batch.is_empty() {
            match batch.push(&self.server) {
                Ok(sent) => pushed = sent,
                Err(failure) => {
                    if let Kind::Refused(_) = failure.kind {
                        // Somebody may have dropped a table.
                        self.server.forget();
                    }
                    let is_of_one = matches!(failure.kind, Kind::Refused(_) | Kind::Unreadable);
                    if is_of_one && batch.windows().len() > 1 {
                        // One of them may be the cause: then the others are not held up.
                        self.together = 1;
                        let mut step = self.step()?;
                        step.left_out.splice(0..0, left_out);
                        return Ok(step);
                    }
                    left_out.push(self.failed(failure, &batch.windows())?);
                    let left = self.waiting()?.len();
                    return Ok(self.told(pushed, left_out, left));
                }
            }
            self.list.insert(&batch.windows())?;
            self.together = (2 * self.together).min(MOST_WINDOWS);
        }
        let left = waiting.len() - next.len();
        Ok(self.told(pushed, left_out, left))
    }

    fn told(&mut self, pushed: Pushed, left_out: Vec<PushError>, waiting: usize) -> Step {
        Step { pushed, left_out, gone: std::mem::take(&mut self.gone), waiting }
    }

    /// A window that cannot be read is left out, and one that is refused comes last from now on.
    fn failed(&mut self, failure: Failure, windows: &[Window]) -> Result<PushError, Failure> {
        match (failure.kind, windows) {
            (Kind::Unreadable, [window]) => {
                self.leave_out(window);
                Ok(PushError::Unreadable(failure.to_string()))
            }
            (Kind::Refused(_), [window]) => {
                self.behind.insert(window.key());
                Err(failure)
            }
            _ => Err(failure),
        }
    }

    fn leave_out(&mut self, window: &Window) {
        self.waited.remove(&window.key());
        self.look.unreadable.add([window.key()]);
    }

    fn size_of_next(&self, waiting: &[Window]) -> usize {
        let mut bytes = 0;
        let mut count = 0;
        for window in waiting.iter().take(self.together) {
            count += 1;
            bytes += window.path(&self.folder, &SAMPLES).metadata().map_or(0, |metadata| metadata.len());
            if bytes >= ENOUGH_BYTES {
                break;
            }
        }
        count
    }
}
