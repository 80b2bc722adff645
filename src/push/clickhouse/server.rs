//! A server, its tables, and how rows get into them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::io::{Cursor, Read};
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzEncoder;
use ureq::http::HeaderValue;

use super::answer;
use super::statements::{self, Column, PUSHES};
use super::target::Target;
use crate::push::client::{Answers, Client, Failure, Kind, Trust};
use crate::push::{PushError, SecretSource};

/// A server that rows are sent to.
pub struct Server {
    client: Client,
    target: Target,
    password: Option<SecretSource>,
    /// What is said with each INSERT; known once the server was asked and its tables are right.
    settings: OnceCell<String>,
}

/// Where servers listen.
const USUAL_PORTS: &str = "8123 for HTTP, 8443 for HTTP by TLS";
/// The user whose password is given with no user.
const DEFAULT_USER: &str = "default";
/// Each of these settings, where the server knows it, lets an INSERT be acknowledged when the rows are where they are to stay:
/// on the shards, and not in a queue before them. The first of each line that is known.
const WAIT_FOR_ROWS: [&[&str]; 2] =
    [&["distributed_foreground_insert", "insert_distributed_sync"], &["wait_for_async_insert"]];
/// Recordings that one question is of: servers read questions of 256 KB.
const MOST_ASKED: usize = 5_000;
/// Codes of errors that go by: too many queries, parts or bytes at once, a shard or a keeper that is away, no room.
const PASSING: [u32; 17] =
    [159, 164, 202, 203, 209, 210, 225, 236, 241, 242, 243, 252, 279, 285, 286, 319, 999];

impl Server {
    /// Of this address; nothing is sent yet.
    ///
    /// # Errors
    /// Certificates that cannot be read; a password that would go over the network for everybody to read.
    pub fn new(
        target: Target,
        password: Option<SecretSource>,
        trust: &Trust,
        may_be_plain: bool,
    ) -> Result<Self, PushError> {
        Self::with_answers(target, password, trust, may_be_plain, Answers::SHORT)
    }

    /// Of this address, to be asked for many rows by [`Server::read`]; nothing is sent yet.
    ///
    /// # Errors
    /// As [`Server::new`].
    pub fn for_reading(
        target: Target,
        password: Option<SecretSource>,
        trust: &Trust,
        may_be_plain: bool,
    ) -> Result<Self, PushError> {
        Self::with_answers(target, password, trust, may_be_plain, Answers::LONG)
    }

    fn with_answers(
        target: Target,
        password: Option<SecretSource>,
        trust: &Trust,
        may_be_plain: bool,
        answers: Answers,
    ) -> Result<Self, PushError> {
        if password.is_some() {
            target.endpoint.check_secret("password", "clickhouses://", may_be_plain)?;
        }
        let client = Client::with_answers(target.endpoint.clone(), USUAL_PORTS, trust, answers)?;
        Ok(Self { client, target, password, settings: OnceCell::new() })
    }

    /// Where it is.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// No answer is waited for when none was good for so long, beginning now. Without any time requests have the time that they
    /// have otherwise.
    pub fn give_up_after(&mut self, patience: Duration) {
        self.client.give_up_after(patience);
    }

    /// Looks whether all tables are there as they should be, and makes those that are missing; once.
    ///
    /// # Errors
    /// A server that is away, lacks the database, or has other tables of these names.
    pub fn prepare(&self) -> Result<(), Failure> {
        self.settings().map(|_| ())
    }

    /// The tables are looked at again before anything else is sent.
    pub(super) fn forget(&mut self) {
        self.settings = OnceCell::new();
    }

    fn settings(&self) -> Result<&str, Failure> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        self.check_tables()?;
        let names = WAIT_FOR_ROWS.concat().join("', '");
        let known = self.ask(&format!("SELECT name FROM system.settings WHERE name IN ('{names}')"))?;
        let chosen = WAIT_FOR_ROWS.iter().filter_map(|names| {
            names.iter().find(|name| known.iter().any(|row| row.first().is_some_and(|known| known == *name)))
        });
        let settings = chosen.map(|name| format!("&{name}=1")).collect();
        Ok(self.settings.get_or_init(|| settings))
    }

    fn check_tables(&self) -> Result<(), Failure> {
        let database = &self.target.database;
        let wrong =
            |why: String| Failure::new(Kind::Wrong, format!("{}: {why}", self.target.endpoint.name()));
        if self.ask(&format!("SELECT name FROM system.databases WHERE name = '{database}'"))?.is_empty() {
            return Err(wrong(format!(
                "there is no database `{database}`, or this user may not use it: CREATE DATABASE `{database}` makes it"
            )));
        }
        let tables = statements::tables();
        let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
        let rows = self.ask(&format!(
            "SELECT table, name, type FROM system.columns WHERE database = '{database}' AND table IN ('{}')",
            names.join("', '")
        ))?;
        let mut found: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
        for row in &rows {
            if let [table, name, kind] = &row[..] {
                found.entry(table).or_default().insert(name, kind);
            }
        }
        for table in &tables {
            let Some(theirs) = found.get(table.name) else {
                self.ask(&statements::create_table(database, table))?;
                continue;
            };
            for column in &table.columns {
                let (place, name, kind) =
                    (format!("`{database}`.`{}`", table.name), column.name, column.kind);
                match theirs.get(name) {
                    Some(theirs) if statements::takes(theirs, column) => {}
                    Some(theirs) => {
                        return Err(wrong(format!(
                            "the column `{name}` of {place} is {}, where {kind} is sent: name a database of eprof's own, which gets \
                             its tables by itself",
                            crate::label::Label::new(theirs)
                        )));
                    }
                    None => {
                        return Err(wrong(format!(
                            "the table {place} lacks a column: ALTER TABLE {place} ADD COLUMN `{name}` {kind}"
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// Asks a question of this database, and gives what is answered. `settings` stand in the address, such as
    /// `readonly=2&default_format=TabSeparated`.
    ///
    /// # Errors
    /// A server that is away, or what it says against the question.
    pub fn read(&self, statement: &str, settings: &str) -> Result<Vec<u8>, Failure> {
        let path = format!("/?database={}&{settings}", encoded(&self.target.database));
        self.post(&path, &[], &mut Cursor::new(statement))
    }

    /// Asks for rows of a few texts.
    fn ask(&self, statement: &str) -> Result<Vec<Vec<String>>, Failure> {
        let answer = self.post("/?default_format=TabSeparated", &[], &mut Cursor::new(statement))?;
        let text = String::from_utf8_lossy(&answer);
        Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    }

    /// Of these recordings, those of which a push counts.
    ///
    /// # Errors
    /// A server that is away, or does not let this user read.
    pub(super) fn pushed(&self, recordings: &[i64]) -> Result<HashSet<i64>, Failure> {
        let mut found = HashSet::new();
        for some in recordings.chunks(MOST_ASKED) {
            let some: Vec<String> = some.iter().map(i64::to_string).collect();
            let rows = self.ask(&format!(
                "SELECT DISTINCT recording FROM `{}`.`{PUSHES}` WHERE recording IN ({})",
                self.target.database,
                some.join(", ")
            ))?;
            found.extend(rows.iter().filter_map(|row| row.first()?.parse::<i64>().ok()));
        }
        Ok(found)
    }

    /// Sends rows into a table and waits until they are there.
    ///
    /// # Errors
    /// Why it is not known that they are there; they may be, all or some.
    pub(super) fn insert(&self, table: &str, columns: &[Column], rows: &mut dyn Read) -> Result<(), Failure> {
        let statement = statements::insert(&self.target.database, table, columns);
        let path = format!("/?query={}{}", encoded(&statement), self.settings()?);
        let mut packed = GzEncoder::new(rows, Compression::fast());
        let headers = [
            ("content-encoding", HeaderValue::from_static("gzip")),
            ("content-type", HeaderValue::from_static("application/octet-stream")),
        ];
        let said = self.post(&path, &headers, &mut packed)?;
        answer::check_silent(self.target.endpoint.name(), &said)
    }

    fn post(
        &self,
        path: &str,
        headers: &[(&'static str, HeaderValue)],
        body: &mut dyn Read,
    ) -> Result<Vec<u8>, Failure> {
        let mut headers = headers.to_vec();
        let secret = self.password.as_ref().map(SecretSource::read).transpose()?;
        let user = self.target.user.as_deref().or(secret.as_ref().map(|_| DEFAULT_USER));
        let value = |text: &str| {
            let value = HeaderValue::from_bytes(text.as_bytes());
            value
                .map_err(|_| Failure::new(Kind::Wrong, "a user or password has characters that HTTP has not"))
        };
        if let Some(user) = user {
            headers.push(("x-clickhouse-user", value(user)?));
        }
        if let Some(secret) = &secret {
            let mut key = value(secret.reveal())?;
            key.set_sensitive(true);
            headers.push(("x-clickhouse-key", key));
        }
        let name = || self.target.endpoint.name();
        let answered =
            self.client.post(path, &headers, body).map_err(|failure| answer::told(failure, USUAL_PORTS));
        let answered = answered.and_then(|answered| answer::checked(name(), USUAL_PORTS, answered));
        answered.map_err(passing)
    }
}

/// A refusal whose code tells that it goes by.
fn passing(failure: Failure) -> Failure {
    let code = failure.text().split_once("Code: ").and_then(|(_, rest)| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
        rest[..end].parse::<u32>().ok()
    });
    match (failure.kind, code) {
        (Kind::Refused(_), Some(code)) if PASSING.contains(&code) => Failure { kind: Kind::Busy, ..failure },
        _ => failure,
    }
}

/// A text as a value behind `?`.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_encoded() {
        assert_eq!(encoded("INSERT INTO `a`.b (x, y)"), "INSERT+INTO+%60a%60.b+%28x%2C+y%29");
        assert_eq!(encoded("&=+#ü"), "%26%3D%2B%23%C3%BC");
    }

    #[test]
    fn errors_that_go_by_are_known_by_their_codes() {
        let kind = |text: &str| passing(Failure::new(Kind::Refused(500), text)).kind;
        assert_eq!(kind("db:8123 answers 500: Code: 252, e.displayText() = Too many parts"), Kind::Busy);
        assert_eq!(kind("db:8123 answers 500: Code: 210. DB::NetException"), Kind::Busy);
        assert_eq!(kind("db:8123 answers 500: Code: 60, no table"), Kind::Refused(500));
        assert_eq!(kind("db:8123 answers 500"), Kind::Refused(500));
    }

    #[test]
    fn a_password_does_not_go_over_the_network_for_all_to_read() {
        let of = |url: &str, may_be_plain| {
            let target = Target::parse(url).expect("right");
            let password = Some(SecretSource::Variable("X"));
            Server::new(target, password, &Trust::System, may_be_plain).map(|_| ())
        };
        let said = of("clickhouse://10.0.0.1/e", false).expect_err("refused").to_string();
        assert!(said.contains("clickhouses://") && said.contains("--allow-plain-http"), "{said}");
        assert!(of("clickhouse://10.0.0.1/e", true).is_ok());
        assert!(of("clickhouse://localhost/e", false).is_ok());
    }
}
