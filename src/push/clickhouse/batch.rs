//! Some windows on their way: an attempt.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::row_binary::{TableFile, add_text};
use super::server::Server;
use super::statements::{self, PUSHES, PUSHES_COLUMNS};
use crate::push::PushError;
use crate::push::client::{Failure, Unreadable};
use crate::push::folder::Window;
use crate::report::store::schema::{BALANCE, FUNCTIONS, SAMPLES, STACK_FRAMES, TABLES, Table, VERSION};

/// Windows that are sent together.
pub(super) struct Batch<'a> {
    folder: &'a Path,
    windows: Vec<Head<'a>>,
}

/// What the row of a window in `pushes` says.
struct Head<'a> {
    window: &'a Window,
    recording: i64,
    node: Vec<u8>,
    time: i64,
    samples: i64,
    balance: i64,
}

/// What was pushed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Windows or recordings.
    pub windows: usize,
    /// Rows of all tables.
    pub rows: u64,
}

impl<'a> Batch<'a> {
    /// Opens windows. Those that are not what they should be, or are gone, are given back with the reason.
    pub fn open(folder: &'a Path, windows: &'a [Window]) -> (Self, Vec<(&'a Window, PushError)>) {
        let mut batch = Self { folder, windows: Vec::new() };
        let mut wrong = Vec::new();
        for window in windows {
            match Head::read(folder, window) {
                Ok(head) => batch.windows.push(head),
                Err(error) => wrong.push((window, error)),
            }
        }
        (batch, wrong)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Its windows.
    pub fn windows(&self) -> Vec<Window> {
        self.windows.iter().map(|head| head.window.clone()).collect()
    }

    /// Sends all rows, and when they are acknowledged, what makes them count.
    ///
    /// # Errors
    /// Why it is not known that they count. The next attempt is another one.
    pub fn push(&self, server: &Server) -> Result<Pushed, Failure> {
        let push = attempt();
        let mut rows = 0;
        for table in TABLES {
            let push = statements::has_push(table).then_some(push);
            let mut body =
                Rows { batch: self, table, push, next: 0, file: None, bytes: Vec::new(), sent: 0, rows: 0 };
            server.insert(table.name, &statements::columns(table), &mut body)?;
            rows += body.rows;
        }
        let mut counted = Vec::new();
        for head in &self.windows {
            head.add_to(push, &mut counted);
        }
        server.insert(PUSHES, &PUSHES_COLUMNS, &mut Cursor::new(counted))?;
        Ok(Pushed { windows: self.windows.len(), rows })
    }
}

impl<'a> Head<'a> {
    fn read(folder: &Path, window: &'a Window) -> Result<Self, PushError> {
        let open = |table: &'static Table| {
            TableFile::new(window.open(folder, table)?, table, &window.path(folder, table))
        };
        // What cannot be opened is found here, before anything is sent.
        for table in [&FUNCTIONS, &STACK_FRAMES] {
            open(table)?;
        }
        let (samples, balance) = (open(&SAMPLES)?, open(&BALANCE)?);
        let (recording, time) = (balance.first_number("recording")?, balance.first_number("window_start")?);
        let (Some(recording), Some(time), Some(node)) = (recording, time, balance.first_text("node")?) else {
            let path = window.path(folder, &BALANCE);
            return Err(PushError::Table { path, why: "it has no rows".to_owned() });
        };
        Ok(Self { window, recording, node, time, samples: samples.rows(), balance: balance.rows() })
    }

    fn add_to(&self, push: i64, out: &mut Vec<u8>) {
        // In the order of PUSHES_COLUMNS.
        out.extend(self.recording.to_le_bytes());
        out.extend(push.to_le_bytes());
        out.extend(VERSION_NUMBER.to_le_bytes());
        add_text(&self.node, out);
        for number in [self.time, self.samples, self.balance] {
            out.extend(number.to_le_bytes());
        }
    }
}

/// [`VERSION`] as a number.
const VERSION_NUMBER: i32 = {
    let digits = VERSION.as_bytes();
    assert!(digits.len() == 1 && digits[0].is_ascii_digit());
    (digits[0] - b'0') as i32
};

/// The rows of all windows of a batch in one table, as a body that is made while it is sent.
struct Rows<'b> {
    batch: &'b Batch<'b>,
    table: &'static Table,
    push: Option<i64>,
    next: usize,
    file: Option<TableFile>,
    bytes: Vec<u8>,
    sent: usize,
    rows: u64,
}

impl Rows<'_> {
    /// Makes more bytes. `false`: there are no more rows.
    fn fill(&mut self) -> Result<bool, PushError> {
        loop {
            if let Some(file) = &mut self.file {
                self.bytes.clear();
                self.sent = 0;
                let added = file.add_rows(self.push, &mut self.bytes)?;
                if added {
                    return Ok(true);
                }
                self.rows += file.rows().unsigned_abs();
                self.file = None;
            }
            let Some(head) = self.batch.windows.get(self.next) else { return Ok(false) };
            self.next += 1;
            let (window, folder) = (head.window, self.batch.folder);
            let file = TableFile::new(
                window.open(folder, self.table)?,
                self.table,
                &window.path(folder, self.table),
            )?;
            self.file = Some(file);
        }
    }
}

impl Read for Rows<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.sent == self.bytes.len()
            && !self.fill().map_err(|error| io::Error::other(Unreadable(error)))?
        {
            return Ok(0);
        }
        let count = into.len().min(self.bytes.len() - self.sent);
        into[..count].copy_from_slice(&self.bytes[self.sent..self.sent + count]);
        self.sent += count;
        Ok(count)
    }
}

/// The id of an attempt: nanoseconds since 1970, the lowest ten bits by chance. Later ones are greater, and two senders of one
/// window do not meet.
fn attempt() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let chance = (RandomState::new().build_hasher().finish() & 0x3ff) as i64;
    (now & !0x3ff) | chance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_attempts_are_greater() {
        let first = attempt();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let second = attempt();
        assert!(first > 1_700_000_000_000_000_000 && second > first, "{first}, {second}");
    }
}
