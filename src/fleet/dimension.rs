//! Columns by which rows are told apart and selected.

use std::fmt;
use std::str::FromStr;

use eprof::identity::Labels;

/// A column of `samples` that a user may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dimension {
    /// A column of the table.
    Column(&'static str),
    /// A key of the column `labels`.
    Label(String),
}

const COLUMNS: [&str; 11] =
    ["node", "boot", "job", "step", "rank", "pod", "cgroup", "process", "comm", "event", "method"];
/// Those that the table `balance` has, too.
const OF_BALANCE: [&str; 3] = ["node", "boot", "method"];
/// Those that tell windows apart, as those of the balance do: what a recording as a whole is of. All others tell its samples apart.
const OF_WINDOWS: [&str; 4] = ["job", "step", "rank", "labels"];

impl Dimension {
    /// The column that it stands in.
    pub fn column(&self) -> &'static str {
        match self {
            Self::Column(name) => name,
            Self::Label(_) => "labels",
        }
    }

    /// All joules can be told apart by it, not only those of functions.
    pub fn is_of_balance(&self) -> bool {
        OF_BALANCE.contains(&self.column())
    }

    /// It chooses windows, not only samples in them.
    pub fn is_of_windows(&self) -> bool {
        self.is_of_balance() || OF_WINDOWS.contains(&self.column())
    }

    /// The value holds a number.
    pub fn is_number(&self) -> bool {
        self.column() == "rank"
    }

    /// What a value of the column says, in words that stand for themselves.
    pub fn title(&self, value: &str) -> String {
        let found = match self {
            Self::Column("rank") => (value != "-1").then(|| value.to_owned()),
            Self::Column(_) => (!value.is_empty()).then(|| value.to_owned()),
            Self::Label(key) => {
                let of_key =
                    |line: &str| Some(line.strip_prefix(key.as_str())?.strip_prefix('=')?.to_owned());
                value.lines().find_map(of_key)
            }
        };
        found.unwrap_or_else(|| format!("[no {self}]"))
    }
}

/// Each of them once.
pub fn once(by: &[Dimension]) -> Vec<Dimension> {
    let mut once: Vec<Dimension> = Vec::with_capacity(by.len());
    by.iter().for_each(|dimension| {
        if !once.contains(dimension) {
            once.push(dimension.clone());
        }
    });
    once
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(name) => f.write_str(name),
            Self::Label(key) => write!(f, "label:{key}"),
        }
    }
}

impl FromStr for Dimension {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if let Some(key) = name.strip_prefix("label:").filter(|key| Labels::is_key(key)) {
            return Ok(Self::Label(key.to_owned()));
        }
        let known = COLUMNS.into_iter().find(|column| *column == name).map(Self::Column);
        known.ok_or_else(|| format!("no column {name:?}; there are {} and label:KEY", COLUMNS.join(", ")))
    }
}
