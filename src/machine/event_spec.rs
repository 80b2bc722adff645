//! What to open for an event: everything that `perf_event_attr` must be told, and where.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::event_names::perf_type;
use crate::hardware::CoreKind;

/// One event on one PMU, ready to be opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventSpec {
    /// Name for reports: as written, or what `name=` says.
    pub name: String,
    /// The PMU: `cpu`, `cpu_atom`, `power`, or the kernel's kind of event (`hardware`, `software`,
    /// `hw-cache`, `tracepoint`, `raw`).
    pub pmu: String,
    /// `attr.type`
    pub perf_type: u32,
    /// `attr.config`
    pub config: u64,
    /// `attr.config1`
    pub config1: u64,
    /// `attr.config2`
    pub config2: u64,
    /// What the modifiers say.
    pub modifiers: Modifiers,
    /// CPUs to open it on; `None`: any.
    pub cpus: Option<Vec<u32>>,
    /// Kind of core it counts on.
    pub core_kind: CoreKind,
    /// Factor from counts to `unit`; 1 for plain counts.
    pub scale: f64,
    /// What the scaled count is in, if the PMU says so: `Joules`.
    pub unit: Option<String>,
    /// `period=`: events per sample.
    pub period: Option<u64>,
    /// `freq=`: samples per second.
    pub frequency: Option<u64>,
}

/// The letters after an event, in `perf_event_attr`'s terms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modifiers {
    /// Leave out user mode.
    pub exclude_user: bool,
    /// Leave out kernel mode.
    pub exclude_kernel: bool,
    /// Leave out the hypervisor.
    pub exclude_hv: bool,
    /// Leave out the host (count guests only).
    pub exclude_host: bool,
    /// Leave out guests.
    pub exclude_guest: bool,
    /// Do not count in the idle task.
    pub exclude_idle: bool,
    /// Always on the PMU, or in error.
    pub pinned: bool,
    /// Skid: 0 arbitrary, 1 constant, 2 none requested, 3 none guaranteed.
    pub precise: u8,
    /// As precise as the PMU can (`P`): the opener tries 3, then less.
    pub most_precise: bool,
}

impl Modifiers {
    /// Reads the letters as perf does: naming some of `u`, `k`, `h` leaves out the others. The error
    /// is the first letter that makes no sense.
    pub fn parse(letters: &str) -> Result<Self, char> {
        let mut modifiers = Self::default();
        let has = |letter| letters.contains(letter);
        if has('u') || has('k') || has('h') {
            modifiers.exclude_user = !has('u');
            modifiers.exclude_kernel = !has('k');
            modifiers.exclude_hv = !has('h');
        }
        if has('G') || has('H') {
            modifiers.exclude_guest = !has('G');
            modifiers.exclude_host = !has('H');
        }
        for letter in letters.chars() {
            match letter {
                'u' | 'k' | 'h' | 'G' | 'H' => {}
                'p' if modifiers.precise < 3 => modifiers.precise += 1,
                'P' => modifiers.most_precise = true,
                'I' => modifiers.exclude_idle = true,
                'D' => modifiers.pinned = true,
                _ => return Err(letter),
            }
        }
        Ok(modifiers)
    }
}

impl EventSpec {
    /// A plain event without modifiers on any CPU.
    pub(crate) fn plain(name: &str, pmu: &str, perf_type: u32, config: u64) -> Self {
        Self {
            name: name.to_owned(),
            pmu: pmu.to_owned(),
            perf_type,
            config,
            config1: 0,
            config2: 0,
            modifiers: Modifiers::default(),
            cpus: None,
            core_kind: CoreKind::Performance,
            scale: 1.0,
            unit: None,
            period: None,
            frequency: None,
        }
    }

    /// Whether the event is counted on this CPU.
    pub fn counts_on(&self, cpu: u32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// Whether the kernel itself makes the event, so that no PMU is needed to count it.
    pub fn is_software(&self) -> bool {
        self.perf_type == perf_type::SOFTWARE
    }

    /// The encoding without names, to compare models by: `cpu/config=0x4a2/`.
    pub fn encoding(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for EventSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/config={:#x}", self.pmu, self.config)?;
        if self.config1 != 0 {
            write!(f, ",config1={:#x}", self.config1)?;
        }
        if self.config2 != 0 {
            write!(f, ",config2={:#x}", self.config2)?;
        }
        f.write_str("/")
    }
}

/// Why a written event cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The form is wrong.
    #[error("event '{event}': {why}")]
    Malformed {
        /// As written.
        event: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Neither a generic event nor one that a PMU names.
    #[error("event '{event}' is not known{}; perf list shows all names, rNNNN takes a raw code", suggest(.nearest))]
    UnknownEvent {
        /// As written.
        event: String,
        /// Names that look like it.
        nearest: Vec<String>,
    },
    /// No such PMU.
    #[error("event '{event}': there is no PMU '{pmu}' here{}", suggest(.nearest))]
    UnknownPmu {
        /// As written.
        event: String,
        /// The PMU's name.
        pmu: String,
        /// PMUs that look like it.
        nearest: Vec<String>,
    },
    /// The PMU does not know the term.
    #[error("event '{event}': PMU {pmu} has no term '{term}'; it knows {known}")]
    UnknownTerm {
        /// As written.
        event: String,
        /// The PMU.
        pmu: String,
        /// The term.
        term: String,
        /// What it knows, comma-separated.
        known: String,
    },
    /// The value does not fit into the term's bits.
    #[error("event '{event}': {term}={value:#x} is too large, PMU {pmu} takes at most {largest:#x}")]
    ValueTooLarge {
        /// As written.
        event: String,
        /// The PMU.
        pmu: String,
        /// The term.
        term: String,
        /// Its value.
        value: u64,
        /// The largest value that fits.
        largest: u64,
    },
    /// A value that is no number, or no sensible one.
    #[error("event '{event}': '{value}' is no value for '{term}', which takes a number such as 10 or 0x1f")]
    BadValue {
        /// As written.
        event: String,
        /// The term.
        term: String,
        /// What was given.
        value: String,
    },
    /// A letter after the event that is no modifier.
    #[error(
        "event '{event}': '{letter}' is no modifier here; u k h (user, kernel, hypervisor), G H (guest, host), p pp ppp P (precise), I (not in idle), D (pinned) are"
    )]
    BadModifier {
        /// As written.
        event: String,
        /// The letter.
        letter: char,
    },
    /// perf knows the term, eprof takes it as an option for all events.
    #[error("event '{event}': '{term}' cannot be set for single events; {instead}")]
    UnsupportedTerm {
        /// As written.
        event: String,
        /// The term.
        term: String,
        /// What to do.
        instead: &'static str,
    },
    /// Tracepoints cannot be looked up because tracefs is not there.
    #[error(
        "event '{event}': tracefs is not mounted, so tracepoints have no numbers; sudo mount -t tracefs tracefs {at}"
    )]
    NoTracefs {
        /// As written.
        event: String,
        /// Where it should be.
        at: PathBuf,
    },
    /// Tracepoints cannot be looked up because tracefs is closed to this user.
    #[error(
        "event '{event}': {path} may not be read ({source}); run as root, or open tracefs to all users: sudo mount -o remount,mode=755 {tracefs}"
    )]
    TracefsClosed {
        /// As written.
        event: String,
        /// What could not be read.
        path: PathBuf,
        /// Where tracefs is mounted.
        tracefs: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

fn suggest(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        [only] => format!("; did you mean '{only}'?"),
        several => format!("; did you mean one of '{}'?", several.join("', '")),
    }
}

/// The names most like `wanted`, best first, at most four: those within a few edits, or that contain it.
pub(super) fn nearest(wanted: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let wanted_lower = wanted.to_ascii_lowercase();
    let limit = (wanted.len() / 3).clamp(1, 4);
    let mut scored: Vec<(usize, String)> = names
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_ascii_lowercase();
            let distance = edit_distance(&wanted_lower, &lower);
            let contains = wanted.len() >= 3 && lower.contains(&wanted_lower);
            (distance <= limit || contains).then_some((distance, name))
        })
        .collect();
    scored.sort();
    scored.dedup();
    scored.into_iter().take(4).map(|(_, name)| name).collect()
}

/// Levenshtein's distance; names longer than any event's are simply far away.
fn edit_distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 128;
    if a.len() > LONGEST || b.len() > LONGEST {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for ((to, above), pair) in b.iter().zip(row.iter().skip(1)).zip(row.windows(2)) {
            let diagonal = pair.first().copied().unwrap_or(0) + usize::from(from != *to);
            let left = next.last().copied().unwrap_or(0);
            next.push(diagonal.min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naming_a_mode_leaves_out_the_others() {
        let user = Modifiers::parse("u").expect("valid");
        assert!(!user.exclude_user && user.exclude_kernel && user.exclude_hv);
        let both = Modifiers::parse("uk").expect("valid");
        assert!(!both.exclude_user && !both.exclude_kernel && both.exclude_hv);
        assert_eq!(Modifiers::parse("").expect("valid"), Modifiers::default());
        let host = Modifiers::parse("H").expect("valid");
        assert!(host.exclude_guest && !host.exclude_host);
    }

    #[test]
    fn precision_is_counted() {
        assert_eq!(Modifiers::parse("upp").expect("valid").precise, 2);
        assert_eq!(Modifiers::parse("pppp"), Err('p'));
        assert_eq!(Modifiers::parse("S"), Err('S'));
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edit_distance("cycles", "cycles"), 0);
        assert_eq!(edit_distance("cylces", "cycles"), 2);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }

    #[test]
    fn suggestions_come_best_first() {
        let names = || ["cycles", "ref-cycles", "bus-cycles", "instructions"].map(str::to_owned);
        assert_eq!(nearest("cylces", names()), ["cycles"]);
        assert_eq!(nearest("cycle", names()), ["cycles", "bus-cycles", "ref-cycles"]);
        assert!(nearest("zzz", names()).is_empty());
    }
}
