//! The records of a log: how `perf stat` writes them for programs and for people.

use crate::tables::{Grid, Marks, Number, Row, Separator};

/// One record of a log.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry<'a> {
    /// Seconds since the start; `None` for totals.
    pub(super) stamp: Option<f64>,
    /// `S0`, `CPU3`: what part of the machine is counted; empty for the whole.
    pub(super) part: &'a str,
    /// `None` for `<not counted>` and `<not supported>`.
    pub(super) value: Option<f64>,
    pub(super) unit: &'a str,
    pub(super) event: &'a str,
    /// Nanoseconds the event was enabled, summed over its CPUs.
    pub(super) enabled: Option<f64>,
}

/// Whether the text looks like a log of `perf stat` rather than a table.
pub fn looks_like_perf_stat(text: &str) -> bool {
    if text.contains("Performance counter stats for") {
        return true;
    }
    let grid = Grid::read(&first_lines(text));
    if !matches!(grid.separator(), Separator::Character(_)) {
        return false;
    }
    let mut seen = 0;
    for record in grid.rows() {
        // The rest of a record with a line break in its unit; no log begins with it.
        if record.cell(0).is_empty() && seen > 0 {
            continue;
        }
        let number = Number::read_plain(record.cell(0), Marks::UNTOLD).is_some();
        let named = record.len() > 2 && record.cells().skip(1).any(is_event_name);
        let broken = record.len() == 3 && record.cell(2) == "Joules";
        if !(number && (named || broken)) {
            return false;
        }
        seen += 1;
    }
    seen > 0
}

/// As much of a text as tells what it is.
fn first_lines(text: &str) -> String {
    const ENOUGH: usize = 24;
    text.lines().filter(|line| !line.trim().is_empty()).take(ENOUGH).collect::<Vec<_>>().join("\n")
}

fn is_event_name(field: &str) -> bool {
    field.starts_with(|c: char| c.is_ascii_alphabetic()) && field != "Joules" && field != "MiB"
}

/// Undoes the line break inside a unit: the rest of such a record starts with its separator.
pub(super) fn rejoin_broken_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines() {
        let in_unit = joined.ends_with("Joules");
        let goes_on = line.starts_with([';', '|', '\t']) || line.starts_with(" power/");
        let continues = line.starts_with(',') || (in_unit && goes_on);
        if !continues && !joined.is_empty() {
            joined.push('\n');
        }
        joined.push_str(line.trim_end_matches('\r'));
    }
    joined
}

/// A record of `perf stat -x`, with or without a stamp, whole or by parts of the machine.
pub(super) fn machine_readable(record: Row<'_>) -> Option<Entry<'_>> {
    // A comma that perf writes within a number separates its fraction.
    let number = |cell: &str| Number::read_plain(cell, Marks::UNTOLD);
    // The value is the first field that is a number or says why there is none, and has an event's name
    // two fields on; what lies before it is the stamp, the part of the machine and its number of CPUs.
    let value = (0..record.len().saturating_sub(2).min(4)).find(|&i| {
        let counted = number(record.cell(i)).is_some() || record.cell(i).starts_with("<not");
        counted && is_unit(record.cell(i + 1)) && is_event_name(record.cell(i + 2))
    })?;
    let stamp = (value > 0).then(|| number(record.cell(0))).flatten();
    let enabled = match (number(record.cell(value + 3)), number(record.cell(value + 4))) {
        (Some(running), Some(percent)) if percent > 0.0 => Some(running * 100.0 / percent),
        _ => None,
    };
    let part = record.cells().take(value).find(|field| is_event_name(field)).unwrap_or("");
    let (unit, event) = (record.cell(value + 1), record.cell(value + 2));
    Some(Entry { stamp, part, value: number(record.cell(value)), unit, event, enabled })
}

fn is_unit(field: &str) -> bool {
    Number::read_plain(field, Marks::UNTOLD).is_none() && !field.contains('/') && field.len() < 16
}

/// The totals that `perf stat` prints for people, and the seconds they cover.
pub(super) fn totals(text: &str) -> (Vec<Entry<'_>>, Option<f64>) {
    let mut entries = Vec::new();
    let mut elapsed = None;
    let body = text.split("Performance counter stats for").nth(1).unwrap_or("");
    let marks = marks_of_totals(body);
    for line in body.lines().skip(1) {
        let mut words = line.split_whitespace();
        let Some(value) = words.next().and_then(|word| Number::read_plain(word, marks)) else { continue };
        let Some(second) = words.next() else { continue };
        if second == "seconds" && line.contains("time elapsed") {
            elapsed = Some(value);
            continue;
        }
        let (unit, event) = match second {
            "Joules" | "MiB" | "Watts" | "msec" => (second, words.next()),
            event => ("", Some(event)),
        };
        if let Some(event) = event.filter(|event| is_event_name(event)) {
            entries.push(Entry { stamp: None, part: "", value: Some(value), unit, event, enabled: None });
        }
    }
    (entries, elapsed)
}

/// How totals are written: the time at their end has nine decimals in every language.
fn marks_of_totals(body: &str) -> Marks {
    let elapsed = body.lines().find(|line| line.contains("seconds time elapsed"));
    let decimal_comma =
        elapsed.and_then(|line| line.split_whitespace().next()).is_some_and(|word| word.contains(','));
    if decimal_comma {
        Marks { comma_sets_thousands_apart: false, point_sets_thousands_apart: true }
    } else {
        Marks::ENGLISH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = (Option<f64>, String, Option<f64>, String, String, Option<f64>);

    fn read(line: &str) -> Option<Fields> {
        let grid = Grid::read(line);
        let entry = machine_readable(grid.row(0)?)?;
        let Entry { stamp, part, value, unit, event, enabled } = entry;
        Some((stamp, part.to_owned(), value, unit.to_owned(), event.to_owned(), enabled))
    }

    fn fields(
        stamp: Option<f64>,
        part: &str,
        value: Option<f64>,
        unit: &str,
        event: &str,
        enabled: Option<f64>,
    ) -> Option<Fields> {
        Some((stamp, part.to_owned(), value, unit.to_owned(), event.to_owned(), enabled))
    }

    /// Half of the time an event was counted: it was enabled twice as long as it ran.
    #[test]
    fn fields_stand_where_perf_puts_them() {
        let whole = read("123,,cycles,500,50.00,,");
        assert_eq!(whole, fields(None, "", Some(123.0), "", "cycles", Some(1000.0)));
        let of_socket = read("1.002,S0,4,123,,cycles,500,100.00,,");
        assert_eq!(of_socket, fields(Some(1.002), "S0", Some(123.0), "", "cycles", Some(500.0)));
        let joules = read("2.5,7.25,Joules,power/energy-pkg/,800,100.00,,");
        assert_eq!(joules, fields(Some(2.5), "", Some(7.25), "Joules", "power/energy-pkg/", Some(800.0)));
        // Nothing was counted, so nothing tells how long it was enabled.
        let none = read("2.5,<not counted>,,cycles,0,0.00,,");
        assert_eq!(none, fields(Some(2.5), "", None, "", "cycles", None));
        assert_eq!(read("9,msec,task-clock"), fields(None, "", Some(9.0), "msec", "task-clock", None));
        assert_eq!(read("9,cycles"), None, "two fields are too few");
        assert_eq!(read("when,what,how,why"), None);
        // The value is at most the fourth field.
        assert_eq!(read("1.0,S0,2,x,5,,cycles"), None);
    }

    #[test]
    fn a_log_is_known_by_its_records() {
        for log in [
            "123,,cycles,500,50.00,,\n7,,instructions,500,50.00,,",
            "1.0;123;;cycles;500;50.00;;",
            "# started\n Performance counter stats for 'sleep 1':",
            "1.0,5,Joules\n,power/energy-pkg/,800,100.00,,",
        ] {
            assert!(looks_like_perf_stat(log), "{log}");
        }
        for other in ["", "a,b,c\n1,2,3", "1,2,3\n4,5,6", "123 cycles", "5,cycles\n6,cycles", ",x,cycles"] {
            assert!(!looks_like_perf_stat(other), "{other}");
        }
        // Only the beginning is looked at.
        let long = "1.0,123,,cycles,500,50.00,,\n".repeat(30) + "and words at last\n";
        assert!(looks_like_perf_stat(&long));
    }

    #[test]
    fn records_that_are_broken_in_their_unit_are_one_again() {
        assert_eq!(
            rejoin_broken_lines("1,5,Joules\n,power/x/\n2,6,Joules"),
            "1,5,Joules,power/x/\n2,6,Joules"
        );
        assert_eq!(rejoin_broken_lines("1;5;Joules\n;power/x/\r\n2"), "1;5;Joules;power/x/\n2");
        // Only within a unit does another separator begin no record.
        assert_eq!(rejoin_broken_lines("1;5;msec\n;x"), "1;5;msec\n;x");
        assert_eq!(rejoin_broken_lines("5.0 Joules\n power/energy-pkg/"), "5.0 Joules power/energy-pkg/");
        assert_eq!(rejoin_broken_lines("5.0 Joules\n 6 cycles"), "5.0 Joules\n 6 cycles");
    }

    #[test]
    fn totals_are_read_in_any_language() {
        let of = |body: &str| {
            let text = format!("\n Performance counter stats for 'x':\n\n{body}");
            let (entries, elapsed) = totals(&text);
            let entry = |entry: &Entry<'_>| (entry.value, entry.unit.to_owned(), entry.event.to_owned());
            (entries.iter().map(entry).collect::<Vec<_>>(), elapsed)
        };
        let english = "  1,234,567      cycles        # 3 GHz\n  12.5 Joules power/energy-pkg/\n  <not counted> x\n  9.25 msec task-clock\n\n  1.500000000 seconds time elapsed\n  0.1 seconds user\n";
        let expected = |value, unit: &str, event: &str| (Some(value), unit.to_owned(), event.to_owned());
        let (entries, elapsed) = of(english);
        assert_eq!(elapsed, Some(1.5));
        assert_eq!(
            entries[..3],
            [
                expected(1_234_567.0, "", "cycles"),
                expected(12.5, "Joules", "power/energy-pkg/"),
                expected(9.25, "msec", "task-clock")
            ]
        );
        let (entries, elapsed) =
            of("  1.234.567 cycles\n  12,5 Joules power/energy-pkg/\n  1,500000000 seconds time elapsed\n");
        assert_eq!(elapsed, Some(1.5));
        assert_eq!(
            entries,
            [expected(1_234_567.0, "", "cycles"), expected(12.5, "Joules", "power/energy-pkg/")]
        );
    }
}
