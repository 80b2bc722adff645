//! A table of any numbers, written in any style: all readers must find in it what they find in the same
//! table between commas, and fits to it must end.
#![no_main]

#[path = "../../testbed/src/table_styles.rs"]
mod styles;

use eprof::gpu::model::blend::Blend;
use eprof::gpu::model::candidates::Allowed;
use eprof::gpu::model::choose::Ranking;
use eprof::gpu::model::table::{Roles, Table as CounterTable};
use eprof::gpu::trace_csv;
use eprof::power_model::fit::{Fit, FitOptions};
use eprof::power_model::observations::observed::observe;
use eprof::power_model::observations::table::{self as rates, TableColumns};
use eprof::power_model::select::best_events;
use eprof::tables::{Table, decode};
use eprof::tune::analysis::{Analysis, ErrorLimits, Question};
use eprof::tune::choice::Goal;
use eprof::tune::table::{TableOptions, read_runs};
use libfuzzer_sys::fuzz_target;
use styles::{Cell, Column, PLAIN, Style, Units, Written};

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Bytes(bytes);
    let style = style(&mut bytes);
    let written = table(&mut bytes);
    let text = decode(written.bytes(&style)).expect("text");
    assert_read_back(&written, &style, &text);
    let (found, plain) = (as_read_by_all(&text), as_read_by_all(&written.text(&PLAIN)));
    assert_eq!(found, plain, "{style:?}\n{text}");
});

/// Choices, one for each byte; zero where there are no more.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.next()) % choices.len()]
    }

    fn flag(&mut self) -> bool {
        self.next() % 2 == 1
    }

    /// Small and large, round and not, positive and, where `signed`, negative.
    fn number(&mut self, signed: bool) -> f64 {
        let digits = f64::from(u16::from_le_bytes([self.next(), self.next()]));
        let sign = if signed && self.flag() { -1.0 } else { 1.0 };
        sign * digits * self.of(&[1.0, 0.001, 0.1, 64.0, 1000.0, 0.0])
    }
}

/// A style in which a table can be read at all.
fn style(bytes: &mut Bytes<'_>) -> Style {
    let separator = bytes.of(&[",", ";", "\t", " | ", ", ", "   ", " "]);
    let are_blanks = separator.trim_matches(' ').is_empty();
    let decimal = bytes.of(&['.', ',']);
    let thousands = match bytes.next() % 3 {
        0 => None,
        1 if !are_blanks => Some(' '),
        _ => Some(if decimal == '.' { ',' } else { '.' }),
    };
    let missing = bytes.of(&["", "N/A", "[N/A]", "-", "nan", "[Not Supported]", "<not counted>", "null"]);
    let title = bytes.of(&["", "# Written by hand\n", "\n\n", "Runs\n"]);
    Style {
        name: "any",
        separator,
        decimal,
        thousands,
        quoted: bytes.flag(),
        units: bytes.of(&[
            Units::Nowhere,
            Units::InCells,
            Units::InSquareBrackets,
            Units::InBrackets,
            Units::BehindName,
        ]),
        missing: if are_blanks && missing.is_empty() { "[N/A]" } else { missing },
        // A line of one word has one cell only where blanks separate nothing.
        title: if are_blanks && title.starts_with('R') { "" } else { title },
        before_names: bytes.of(&["", "#", "# "]),
        comments: bytes.flag(),
        trailing: bytes.flag() && !are_blanks,
        line_end: bytes.of(&["\n", "\r\n"]),
        byte_order_mark: bytes.flag(),
        utf16: bytes.next() % 8 == 1,
    }
}

/// Runs of applications with counters, power, time and energy.
fn table(bytes: &mut Bytes<'_>) -> Written {
    let mut columns = vec![
        Column::new("time", "s", 1),
        Column::new("app", "", 0),
        Column::new("threads", "", 0),
        Column::new("power", "W", 2),
        Column::new("elapsed", "s", 2),
        Column::new("energy", "J", 1),
    ];
    let counters = usize::from(bytes.next() % 4) + 1;
    for counter in 0..counters {
        let (unit, decimals) = (bytes.of(&["", "MHz", "%", "GB/s"]), bytes.of(&[0, 1, 2, 4]));
        columns.push(Column::new(&format!("counter {counter}"), unit, decimals));
    }
    let rows = 2 + usize::from(bytes.next() % 24);
    let row = |row: usize| {
        let label = format!("app {}{}", bytes.next() % 4, bytes.of(&["", ", big", "; b", " \"x\""]));
        let mut cells = vec![
            Cell::Number(row as f64 / 2.0),
            Cell::Text(label),
            Cell::Number(f64::from(1 + bytes.next() % 8)),
            // From four kilowatts on a column without a unit is taken for milliwatts.
            Cell::Number(bytes.number(false) % 3000.0 + 0.5),
            Cell::Number(bytes.number(false) + 0.25),
            Cell::Number(bytes.number(false) + 0.5),
        ];
        for _ in 0..counters {
            let is_missing = bytes.next() % 16 == 1;
            cells.push(if is_missing { Cell::Missing } else { Cell::Number(bytes.number(true)) });
        }
        cells
    };
    Written { columns, rows: (0..rows).map(row).collect() }
}

fn assert_read_back(written: &Written, style: &Style, text: &str) {
    let table = Table::read(text).expect("a table");
    assert_eq!(
        (table.headings().len(), table.len()),
        (written.columns.len(), written.rows.len()),
        "{style:?}\n{text}"
    );
    for (row, cells) in written.rows.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            let expected = match cell {
                Cell::Number(value) => Some(written.rounded(column, *value)),
                Cell::Missing => None,
                Cell::Text(label) => {
                    assert_eq!(table.cell(row, column), label, "{style:?}\n{text}");
                    continue;
                }
            };
            assert_eq!(table.number(row, column), expected, "row {row}, column {column}, {style:?}\n{text}");
        }
    }
}

/// What each reader finds, and what fits to it give; `None` where it finds nothing that can be fitted.
fn as_read_by_all(text: &str) -> [Option<Vec<f64>>; 4] {
    [observed(text), counters(text), trace(text), runs(text)]
}

fn observed(text: &str) -> Option<Vec<f64>> {
    let columns = TableColumns {
        power: "power".into(),
        events: Some(vec!["counter 0".into()]),
        workload: vec!["app".into()],
        duration: Some("elapsed".into()),
        ..TableColumns::default()
    };
    let data = observe(&[rates::Table::parse("file", "work", text).ok()?], &columns).ok()?.data;
    let mut found: Vec<f64> = (0..data.len()).flat_map(|row| [data.rates(row)[0], data.watts(row)]).collect();
    let options = FitOptions::default();
    let chosen = best_events(&data, 1, &options).unwrap_or_default();
    if let Ok(fit) = Fit::new(&data.select(&chosen), &options) {
        found.push(fit.r_squared);
        found.push(fit.constant.value);
    }
    Some(comparable(found))
}

fn counters(text: &str) -> Option<Vec<f64>> {
    let roles = Roles {
        target: Some("power".into()),
        group: vec!["app".into()],
        time: Some("elapsed".into()),
        ..Roles::default()
    };
    let table = CounterTable::parse(text, &roles).ok()?;
    // Units in names tell which columns are clocks, so that fits are not the same in every style.
    for allowed in [Allowed::All, Allowed::Published] {
        let best = Ranking::of(&table, allowed);
        if let Some(model) = best.and_then(|best| Blend::fit(&best.chosen, &table)) {
            assert!(table.rows.iter().all(|row| model.predict(row).is_finite()));
        }
    }
    Some(table.rows.iter().flatten().chain(&table.power).copied().collect())
}

fn trace(text: &str) -> Option<Vec<f64>> {
    let trace = trace_csv::parse_column(text, "power").ok()?.swap_remove(0).trace;
    let readings = trace.readings().iter();
    Some(readings.flat_map(|reading| [reading.time.as_nanos() as f64, reading.power.as_watts()]).collect())
}

fn runs(text: &str) -> Option<Vec<f64>> {
    let options = TableOptions {
        time: Some("elapsed".into()),
        energy: Some("energy".into()),
        variables: vec!["threads".into()],
        conditions: vec![("app".into(), "app 0".into())],
        ..TableOptions::default()
    };
    let table = read_runs(text, &options).ok()?;
    let mut found: Vec<f64> = table.runs.iter().flat_map(|run| run.values).collect();
    let question = Question {
        formula: None,
        default: table.space.usual_setting(),
        goal: Goal::LeastEnergy,
        level: 0.95,
        limits: ErrorLimits { measured: None, predicted: None },
        seed: 1,
    };
    if let Ok(analysis) = Analysis::new(table.space, table.responses, &table.runs, question) {
        found.push(analysis.space().size() as f64);
    }
    Some(comparable(found))
}

/// What is not a number equals itself.
fn comparable(values: Vec<f64>) -> Vec<f64> {
    values.into_iter().map(|value| if value.is_nan() { f64::MAX } else { value }).collect()
}
