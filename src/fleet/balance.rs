//! Where all joules of the machines in question went.

use std::collections::{BTreeMap, BTreeSet};

use eprof::profile::{BALANCE_TOLERANCE, Balance};
use eprof::units::Joules;

use crate::method::Methods;

/// One row of the table.
#[derive(Debug, Clone, Default)]
pub struct Row {
    pub recording: i64,
    pub node: String,
    pub boot: String,
    pub domain: String,
    pub is_top: bool,
    pub method: String,
    /// The window, in microseconds.
    pub start: i64,
    pub end: i64,
    pub balance: Balance,
}

/// The balance that is printed with an answer.
#[derive(Debug, Clone, Default)]
pub struct Whole {
    pub balance: Balance,
    /// What of the functions was asked for.
    pub selected: Joules,
    pub nodes: usize,
    pub recordings: usize,
    /// From the start of the first window to the end of the last, in microseconds.
    pub span: Option<(i64, i64)>,
    /// How joules were found.
    pub methods: Methods,
}

/// The samples of one recording and domain.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    pub joules: f64,
    /// When its window began, in microseconds.
    pub time: i64,
}

/// For so long a window may have samples and no balance yet, in microseconds.
const WRITTEN_WITHIN: i64 = 3_600_000_000;

/// Holds the joules of samples, by recording and domain, against the balance. Recordings of the last hour that have none are
/// given back: they are being written.
///
/// # Errors
/// What differs, or what is missing.
pub fn check(rows: &[Row], samples: &BTreeMap<(i64, String), Sum>, now: i64) -> Result<Vec<i64>, String> {
    let mut known = BTreeSet::new();
    for row in rows {
        let name = name(row);
        // What is no number does not hold.
        if !row.balance.holds() {
            return Err(format!(
                "{name}: its parts are {} and {} were measured: the table balance is damaged, or not eprof's; \
                 export the recording again with --force, and if it was pushed, push its folder by `eprof push --again`",
                row.balance.accounted(),
                row.balance.measured
            ));
        }
        let key = (row.recording, row.domain.clone());
        let found = samples.get(&key).map_or(0.0, |sum| sum.joules);
        let functions = row.balance.attributed.as_joules();
        let whole = row.balance.measured.as_joules().abs().max(functions.abs());
        let is_equal = (found - functions).abs() <= BALANCE_TOLERANCE * whole;
        if !is_equal {
            return Err(format!(
                "{name}: its samples have {found} J, the balance has {functions} J of functions: rows of samples are \
                 missing, damaged or there twice; export the recording again with --force, and if it was pushed, push its folder by `eprof push --again`; \
                 or do without it (in a folder: rm */*{:016x}.parquet)",
                row.recording as u64
            ));
        }
        if !known.insert(key) {
            return Err(format!("{name}: the balance has it twice: a file is there under two names"));
        }
    }
    let mut unfinished = BTreeSet::new();
    for (key, sum) in samples.iter().filter(|(key, _)| !known.contains(key)) {
        let (recording, domain) = key;
        if now.saturating_sub(sum.time).unsigned_abs() > WRITTEN_WITHIN.unsigned_abs() {
            return Err(format!(
                "samples of the recording {0:016x} have joules of {domain} of which there is no balance: they were not written to \
                 their end. Export the recording again, or remove what there is of it (in a folder: rm */*{0:016x}.parquet)",
                *recording as u64
            ));
        }
        unfinished.insert(*recording);
    }
    Ok(unfinished.into_iter().collect())
}

fn name(row: &Row) -> String {
    format!("{} of {} in the recording {:016x}", row.domain, row.node, row.recording as u64)
}

/// Says which recordings tell of the same joules, of one boot and one time, but exported apart; and how many joules are in the sums
/// more than once, if each window's were spent evenly over its time.
pub fn overlaps(rows: &[Row]) -> Option<String> {
    let mut windows: Vec<&Row> = rows.iter().filter(|row| row.is_top && !row.boot.is_empty()).collect();
    windows.sort_by(|a, b| (&a.boot, &a.domain, a.start, a.end).cmp(&(&b.boot, &b.domain, b.start, b.end)));
    let mut found = BTreeSet::new();
    let mut twice = Joules::ZERO;
    let mut last: Option<&Row> = None;
    for row in windows {
        match last {
            Some(before) if (&before.boot, &before.domain) == (&row.boot, &row.domain) => {
                if row.start < before.end {
                    found.insert((before.recording, row.recording));
                    let common = before.end.min(row.end) - row.start;
                    twice += row.balance.measured * (common as f64 / (row.end - row.start).max(1) as f64);
                }
                last = Some(if row.end > before.end { row } else { before });
            }
            _ => last = Some(row),
        }
    }
    let (a, b) = found.first()?;
    let pairs = match found.len() {
        1 => "a pair of recordings is".to_owned(),
        count => format!("{count} pairs of recordings are"),
    };
    Some(format!(
        "{pairs} of one boot and one time, but were exported apart (such as {:016x} and {:016x}), or two \
         agents recorded them: what their machine's meters counted is in the sums twice, {twice} about. Export them by one command",
        *a as u64, *b as u64
    ))
}

/// Says which names of nodes are of several machines: of two boots that ran at one time.
pub fn shared_names<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<String> {
    let mut windows: Vec<&Row> = rows.filter(|row| row.is_top && !row.boot.is_empty()).collect();
    windows.sort_by_key(|row| (&row.node, row.start, row.end));
    let mut shared: BTreeSet<&str> = BTreeSet::new();
    // Of each node, what ended last so far, and the last of another boot than that.
    let mut last: Option<(&Row, Option<&Row>)> = None;
    for row in windows {
        last = Some(match last {
            Some((latest, other)) if latest.node == row.node => {
                let is_beside = |before: &Row| before.boot != row.boot && row.start < before.end;
                if is_beside(latest) || other.is_some_and(is_beside) {
                    shared.insert(&row.node);
                }
                match (row.end > latest.end, row.boot == latest.boot) {
                    (true, true) => (row, other),
                    (true, false) => (row, Some(latest)),
                    (false, true) => (latest, other),
                    (false, false) if other.is_none_or(|other| row.end > other.end) => (latest, Some(row)),
                    (false, false) => (latest, other),
                }
            }
            _ => (row, None),
        });
    }
    let first = shared.first()?;
    let names = match shared.len() {
        1 => format!("the node {first} has"),
        count => format!("{count} nodes, such as {first}, have"),
    };
    Some(format!(
        "{names} windows of two boots at one time: several machines have that name, or a clock was set back. \
         --by node,boot tells them apart"
    ))
}

impl Whole {
    /// The sum of these rows, of which so many joules were asked for.
    pub fn of<'r>(rows: impl Iterator<Item = &'r Row> + Clone, selected: Joules) -> Self {
        let balance = rows.clone().fold(Balance::default(), |sum, row| sum + row.balance);
        let nodes: BTreeSet<(&str, &str)> =
            rows.clone().map(|row| (row.node.as_str(), row.boot.as_str())).collect();
        let recordings: BTreeSet<i64> = rows.clone().map(|row| row.recording).collect();
        let start = rows.clone().map(|row| row.start).min();
        let end = rows.clone().map(|row| row.end).max();
        let methods = rows.fold(Methods::default(), |all, row| all.and(Methods::of(&row.method)));
        let (nodes, recordings) = (nodes.len(), recordings.len());
        Self { balance, selected, nodes, recordings, span: start.zip(end), methods }
    }

    /// The joules of functions that were not asked for.
    pub fn not_selected(&self) -> Joules {
        self.balance.attributed - self.selected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(recording: i64, boot: &str, start: i64, end: i64) -> Row {
        let joules = Joules::from_joules;
        let balance = Balance {
            measured: joules(10.0),
            attributed: joules(4.0),
            static_energy: joules(3.0),
            other_processes: joules(2.0),
            recorder: joules(0.5),
            lost: joules(0.5),
        };
        let (domain, is_top, boot) = ("package-0".to_owned(), true, boot.to_owned());
        Row { recording, boot, domain, is_top, start, end, balance, ..Row::default() }
    }

    /// A day later than the windows.
    const NOW: i64 = 86_400_000_000;

    fn samples(of: &[(i64, f64)]) -> BTreeMap<(i64, String), Sum> {
        let sum = |joules: &f64| Sum { joules: *joules, time: 0 };
        of.iter().map(|(recording, joules)| ((*recording, "package-0".to_owned()), sum(joules))).collect()
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
        let rows = [row(1, "a", 0, 10), row(2, "b", 0, 10)];
        check(&rows, &samples(&[(1, 4.0), (2, 4.0)]), NOW).expect("as it should be");
        check(&rows, &samples(&[(1, 4.0), (2, 4.0 + 9e-9)]), NOW).expect("within rounding");
        for (wrong, why) in [
            (samples(&[(1, 4.0), (2, 4.0 + 2e-8)]), "samples have"),
            (samples(&[(1, 4.0), (2, 8.0)]), "there twice"),
            (samples(&[(1, 4.0)]), "missing"),
            (samples(&[(1, 4.0), (2, f64::NAN)]), "samples have"),
            (samples(&[(1, 4.0), (2, 4.0), (3, 0.0)]), "no balance"),
        ] {
            let error = check(&rows, &wrong, NOW).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
        let mut off = rows.clone();
        off[1].balance.lost += Joules::from_joules(1e-6);
        assert!(check(&off, &samples(&[(1, 4.0), (2, 4.0)]), NOW).is_err());
        let twice = [rows[0].clone(), rows[0].clone()];
        assert!(check(&twice, &samples(&[(1, 4.0)]), NOW).is_err());
    }

    #[test]
    fn windows_that_are_being_written_are_known() {
        let rows = [row(1, "a", 0, 10)];
        let sums = samples(&[(1, 4.0), (2, 3.0), (3, 1.0)]);
        assert_eq!(check(&rows, &sums, WRITTEN_WITHIN), Ok(vec![2, 3]));
        assert_eq!(check(&rows, &sums, -WRITTEN_WITHIN), Ok(vec![2, 3]), "a clock that goes behind");
        assert!(check(&rows, &sums, WRITTEN_WITHIN + 1).expect_err("late").contains("no balance"));
    }

    #[test]
    fn machines_of_one_name_are_said() {
        let of = |node: &str, boot: &str, start, end| Row { node: node.into(), ..row(1, boot, start, end) };
        let told = |rows: &[Row]| shared_names(rows.iter());
        let restarted =
            [of("vm", "a", 0, 10), of("vm", "b", 10, 20), of("other", "c", 5, 15), of("vm", "", 0, 20)];
        assert_eq!(told(&restarted), None);
        assert_eq!(
            told(&[of("vm", "a", 0, 100), of("vm", "a", 50, 60)]),
            None,
            "two recorders of one machine"
        );
        let said = told(&[of("vm", "b", 90, 95), of("vm", "a", 0, 100)]).expect("two machines");
        assert!(said.starts_with("the node vm has windows of two boots"), "{said}");
        // A long window of one boot hides behind a longer one of another.
        let hidden = [
            of("vm", "a", 0, 100),
            of("vm", "b", 100, 200),
            of("vm", "b", 110, 120),
            of("vm", "a", 150, 160),
        ];
        assert!(told(&hidden).is_some());
        let other_ends_later =
            [of("vm", "a", 0, 50), of("vm", "b", 50, 60), of("vm", "b", 60, 61), of("vm", "a", 60, 70)];
        assert!(told(&other_ends_later).is_some());
        let both = [of("vm", "a", 0, 9), of("vm", "b", 1, 2), of("vn", "a", 0, 9), of("vn", "b", 1, 2)];
        assert!(told(&both).expect("both").starts_with("2 nodes, such as vm, have"));
    }

    #[test]
    fn windows_of_one_boot_that_overlap_are_said() {
        assert_eq!(overlaps(&[row(1, "a", 0, 10), row(2, "a", 10, 20), row(3, "b", 5, 15)]), None);
        assert_eq!(overlaps(&[row(1, "", 0, 10), row(2, "", 5, 20)]), None, "who knows");
        let said =
            overlaps(&[row(1, "a", 0, 100), row(2, "a", 10, 20), row(3, "a", 50, 60)]).expect("two pairs");
        assert!(said.starts_with("2 pairs of recordings are of one boot"), "{said}");
        // 10 J each: all of the second and third lie in the first.
        assert!(said.contains("20.00 J about"), "{said}");
        let half = overlaps(&[row(1, "a", 0, 100), row(2, "a", 50, 150)]).expect("a pair");
        assert!(half.contains("5.000 J about"), "{half}");
    }
}
