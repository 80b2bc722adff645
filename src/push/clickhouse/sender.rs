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
    /// The list was compared with what the server has.
    is_compared: bool,
    /// Windows that the list had and the server has not.
    lost: usize,
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
    /// Windows that the server had acknowledged and has not any more, as of a database that was made anew: they wait again.
    pub lost: usize,
    /// Windows that wait.
    pub waiting: usize,
}

impl Step {
    /// What is said of windows that the server of this name had and has no more.
    pub fn lost_told(&self, name: &str) -> Option<String> {
        let windows = match self.lost {
            0 => return None,
            1 => "1 window that is".to_owned(),
            count => format!("{count} windows that are"),
        };
        Some(format!("{name} acknowledged {windows} not there any more: sent again"))
    }
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
            is_compared: false,
            lost: 0,
            together: MOST_WINDOWS,
            behind: HashSet::new(),
            waited: HashSet::new(),
            gone: 0,
        })
    }

    /// Sends everything again, whatever was acknowledged: what a server has twice counts once.
    ///
    /// # Errors
    /// A list that cannot be written.
    pub fn send_all_again(&mut self) -> Result<(), PushError> {
        self.list.forget_all()
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
        if !self.is_compared {
            self.compare()?;
        }
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
                        self.is_compared = false;
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

    /// Windows that the server acknowledged once and has no more wait again.
    fn compare(&mut self) -> Result<(), Failure> {
        let all = windows(&self.folder)?;
        let had: Vec<(i64, Window)> = all
            .into_iter()
            .filter(|window| self.list.has(window))
            .filter_map(|window| Some((window.recording()?, window)))
            .collect();
        if had.is_empty() {
            self.is_compared = true;
            return Ok(());
        }
        self.server.prepare()?;
        let recordings: Vec<i64> = had.iter().map(|(recording, _)| *recording).collect();
        let there = match self.server.pushed(&recordings) {
            // Who may write and not read goes by the list.
            Err(failure) if matches!(failure.kind, Kind::Refused(_)) => None,
            answer => Some(answer?),
        };
        if let Some(there) = there {
            let lost = had.into_iter().filter(|(recording, _)| !there.contains(recording));
            let lost: Vec<Window> = lost.map(|(_, window)| window).collect();
            self.list.forget(&lost)?;
            self.lost += lost.len();
        }
        self.is_compared = true;
        Ok(())
    }

    fn told(&mut self, pushed: Pushed, left_out: Vec<PushError>, waiting: usize) -> Step {
        let (gone, lost) = (std::mem::take(&mut self.gone), std::mem::take(&mut self.lost));
        Step { pushed, left_out, gone, lost, waiting }
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
