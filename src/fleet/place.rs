//! Where tables are.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

use anyhow::{bail, ensure};
use eprof::push::clickhouse::Target;

use crate::dialect::Dialect;

/// What a user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A database of ClickHouse.
    ClickHouse(Target),
    /// A folder or bucket that a server of Sail reads.
    Sail(Lake),
}

/// A server of Sail, and where it finds the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lake {
    /// HOST:PORT.
    pub server: String,
    /// A folder of the server's machines, or the address of a bucket.
    pub path: String,
}

const EXAMPLE: &str = "it should be like sail://host:32010/folder or sail://host:32010/s3://bucket/folder";

impl Place {
    /// Reads a path or an address.
    ///
    /// # Errors
    /// What is wrong with it, without an address itself: people write passwords into it.
    pub fn parse(text: &OsStr) -> anyhow::Result<Self> {
        let Some((text, (scheme, rest))) =
            text.to_str().and_then(|text| Some((text, text.split_once("://")?)))
        else {
            return Ok(Self::Folder(text.into()));
        };
        match scheme {
            "clickhouse" | "clickhouses" => Ok(Self::ClickHouse(Target::parse(text)?)),
            "sail" | "flightsql" => Ok(Self::Sail(Lake::parse(rest)?)),
            _ => bail!("tables are in a folder, at clickhouse://HOST/DATABASE, or at sail://HOST/FOLDER"),
        }
    }

    /// What its engine speaks.
    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Folder(_) => Dialect::DataFusion,
            Self::ClickHouse(_) => Dialect::ClickHouse,
            Self::Sail(_) => Dialect::Spark,
        }
    }
}

/// Port of Sail's server of Flight SQL.
const PORT: &str = "32010";

impl Lake {
    fn parse(rest: &str) -> anyhow::Result<Self> {
        let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_of_server = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
        ensure!(!server.contains('@'), "Sail's server knows no users: {EXAMPLE}");
        ensure!(!server.is_empty() && server.chars().all(is_of_server), "the address has no host: {EXAMPLE}");
        let has_port = server.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let server = if has_port { server.to_owned() } else { format!("{server}:{PORT}") };
        let path = match path.strip_prefix('/') {
            Some(bucket) if bucket.contains("://") => bucket,
            _ => path,
        };
        ensure!(!path.trim_matches('/').is_empty(), "the address names no folder: {EXAMPLE}");
        // It stands between backticks in SQL, and the engine takes some of the rest for patterns.
        ensure!(
            !path.chars().any(|c| c.is_control() || "`*?{}[]\\".contains(c)),
            "the folder's name has characters that Sail takes for something else: ` * ? {{ }} [ ] \\"
        );
        Ok(Self { server, path: path.trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::ClickHouse(target) => f.write_str(&target.name()),
            Self::Sail(Lake { server, path }) => {
                write!(f, "sail://{server}/{}", path.trim_start_matches('/'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> anyhow::Result<Place> {
        Place::parse(OsStr::new(text))
    }

    #[test]
    fn folders_and_addresses() {
        assert_eq!(place("all").expect("a folder"), Place::Folder("all".into()));
        assert_eq!(place("/a b/c:d").expect("a folder"), Place::Folder("/a b/c:d".into()));
        for (text, name) in [
            ("clickhouse://db/energy", "clickhouse://db:8123/energy"),
            ("sail://host/lake/", "sail://host:32010/lake"),
            ("sail://[::1]:81/lake/of us", "sail://[::1]:81/lake/of us"),
            ("flightsql://host:1/s3://bucket/x", "sail://host:1/s3://bucket/x"),
        ] {
            assert_eq!(place(text).expect(text).to_string(), name);
        }
    }

    #[test]
    fn what_could_leave_its_place_in_sql_is_refused() {
        for wrong in [
            "sail://host",
            "sail://host/",
            "sail:///lake",
            "sail://ann@host/lake",
            "sail://host/a`; DROP TABLE x; --`",
            "sail://host/a*",
            "sail://ho st/lake",
            "sail://host/a\nb",
            "clickhouse://db/a`b",
            "http://host/x",
            "s3://bucket/x",
        ] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }
}
