//! One table in many styles means the same to every reader.

use eprof::gpu::model::table::{Roles, Table as CounterTable};
use eprof::gpu::trace_csv;
use eprof::power_model::observations::observed::observe;
use eprof::power_model::observations::table::{self as rates, TableColumns};
use eprof::tables::{Table, decode};
use eprof::tune::table::{TableOptions, read_runs};
use eprof_testbed::table_styles::{Cell, Column, STYLES, Style, Written};
use proptest::prelude::*;

fn read_back(written: &Written, style: &Style) -> String {
    decode(written.bytes(style)).unwrap_or_else(|error| panic!("{}: {error}", style.name))
}

/// Columns of numbers with any unit and precision beside a column of names.
fn any_table() -> impl Strategy<Value = Written> {
    let column = (prop::sample::select(vec!["", "W", "MHz", "ms", "J", "%", "GB/s"]), 0usize..5);
    let columns = prop::collection::vec(column, 1..6);
    let value = prop_oneof![
        6 => (0.0f64..2000.0).prop_map(Cell::Number),
        2 => (-5e7f64..5e7).prop_map(Cell::Number),
        1 => Just(Cell::Number(0.0)),
        1 => Just(Cell::Missing),
    ];
    let label = "kernel_[a-z]{0,3}( [a-z]{2,5}(, ?[a-z]{2,3};)?)?( \"[a-z]{0,2}\")?";
    columns.prop_flat_map(move |columns| {
        let row = (label, prop::collection::vec(value.clone(), columns.len()));
        (Just(columns), prop::collection::vec(row, 2..40), 0usize..6).prop_map(|(columns, rows, place)| {
            let place = place.min(columns.len());
            let mut named: Vec<Column> = columns
                .iter()
                .enumerate()
                .map(|(i, (unit, decimals))| Column::new(&format!("counter {i}"), unit, *decimals))
                .collect();
            named.insert(place, Column::new("f(x, y)", "", 0));
            // Without any such number nothing would tell `1,234` from 1.234.
            named.push(Column::new("telling", "", 1));
            let rows = rows.into_iter().map(|(label, mut cells)| {
                cells.insert(place, Cell::Text(label));
                cells.push(Cell::Number(0.5));
                cells
            });
            Written { columns: named, rows: rows.collect() }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_table_in_any_style_reads_back(written in any_table()) {
        for style in &STYLES {
            let text = read_back(&written, style);
            let table = Table::read(&text).unwrap_or_else(|error| panic!("{}: {error}\n{text}", style.name));
            prop_assert_eq!(table.headings().len(), written.columns.len(), "{}\n{}", style.name, text);
            prop_assert_eq!(table.len(), written.rows.len(), "{}\n{}", style.name, text);
            for (number, row) in written.rows.iter().enumerate() {
                for (column, cell) in row.iter().enumerate() {
                    let what = format!("{}, row {number}, column {column}\n{text}", style.name);
                    match cell {
                        Cell::Number(value) => {
                            prop_assert_eq!(table.number(number, column), Some(written.rounded(column, *value)), "{}", what);
                        }
                        Cell::Text(label) => prop_assert_eq!(table.cell(number, column), label.trim(), "{}", what),
                        Cell::Missing => prop_assert_eq!(table.number(number, column), None, "{}", what),
                    }
                }
            }
        }
    }
}

/// Runs of applications with counters, time and energy: something for every reader.
fn runs() -> Written {
    let columns = vec![
        Column::new("time", "s", 3),
        Column::new("app", "", 0),
        Column::new("threads", "", 0),
        Column::new("clock", "MHz", 0),
        Column::new("instructions", "", 0),
        Column::new("loads", "", 2),
        Column::new("power", "W", 2),
        Column::new("elapsed", "s", 3),
        Column::new("energy", "J", 1),
    ];
    let row = |i: u32| {
        let (threads, clock) = (f64::from(1 << (i % 4)), f64::from(1200 + 400 * (i / 4 % 3)));
        let (alu, memory) = (f64::from(i * 7 % 11), f64::from(i * 5 % 13));
        let power = 1040.0 + 30.0 * alu + 20.5 * memory;
        let elapsed = 40.0 / threads / clock * 1000.0;
        let energy = power * elapsed;
        let missing = |value: f64| if i == 17 { Cell::Missing } else { Cell::Number(value) };
        vec![
            Cell::Number(0.5 * f64::from(i)),
            Cell::Text(format!("app {}", i / 6)),
            Cell::Number(threads),
            Cell::Number(clock),
            Cell::Number(alu * 1.5e6),
            missing(memory * 1234.5),
            Cell::Number(power),
            Cell::Number(elapsed),
            missing(energy),
        ]
    };
    Written { columns, rows: (0..24).map(row).collect() }
}

/// What each of the four readers makes of a text, as values that can be compared.
fn as_read_by_all(style: &Style, text: &str) -> [Vec<f64>; 4] {
    let name = style.name;
    let columns = TableColumns {
        power: "power".into(),
        events: Some(vec!["instructions,loads".into()]),
        workload: vec!["app".into()],
        duration: Some("elapsed".into()),
        ..TableColumns::default()
    };
    let table = rates::Table::parse("runs", "runs", text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let observed = observe(&[table], &columns).unwrap_or_else(|error| panic!("{name}: {error}"));
    let data = observed.data;
    assert_eq!(data.workloads(), ["app 0", "app 1", "app 2", "app 3"], "{name}");
    let of_row = |row: usize| data.rates(row).iter().copied().chain([data.watts(row)]).collect::<Vec<_>>();
    let data = (0..data.len()).flat_map(of_row).collect();

    let roles = Roles {
        target: Some("power".into()),
        group: vec!["app".into()],
        time: Some("elapsed".into()),
        exclude: vec!["time".into(), "energy".into()],
        ..Roles::default()
    };
    let counters = CounterTable::parse(text, &roles).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(
        (counters.by_group().len(), counters.time.is_some(), counters.skipped),
        (4, true, 1),
        "{name}"
    );
    let counters = counters.rows.iter().flatten().chain(&counters.power).copied().collect();

    let trace = trace_csv::parse_column(text, "Power").unwrap_or_else(|error| panic!("{name}: {error}"));
    let readings = trace[0].trace.readings().iter();
    let trace =
        readings.flat_map(|reading| [reading.time.as_nanos() as f64, reading.power.as_watts()]).collect();

    let options = TableOptions {
        time: Some("elapsed".into()),
        energy: Some("energy".into()),
        variables: vec!["threads".into(), "clock".into()],
        conditions: vec![("app".into(), "app 1".into())],
        ..TableOptions::default()
    };
    let runs = read_runs(text, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
    let levels = |run: &eprof::tune::runs::Run| {
        run.setting.0.iter().filter_map(|level| level.number()).collect::<Vec<_>>()
    };
    let runs = runs.runs.iter().flat_map(|run| levels(run).into_iter().chain(run.values)).collect();
    [data, counters, trace, runs]
}

#[test]
fn all_readers_agree_on_one_table_in_every_style() {
    let written = runs();
    let plain = as_read_by_all(&STYLES[0], &written.text(&STYLES[0]));
    // Rows of rates and power; of counters; times and powers; of settings, time and energy.
    assert_eq!(plain.each_ref().map(Vec::len), [23 * 3, 23 * 5 + 23, 24 * 2, 6 * 4]);
    // The power is the same to those who read it.
    let powers =
        |of: &[f64], step: usize| of.iter().skip(step - 1).step_by(step).copied().collect::<Vec<_>>();
    assert_eq!(powers(&plain[0], 3), plain[1][23 * 5..]);
    for style in &STYLES[1..] {
        let read = as_read_by_all(style, &read_back(&written, style));
        for (reader, (read, plain)) in read.iter().zip(&plain).enumerate() {
            assert_eq!(read, plain, "{}: reader {reader}\n{}", style.name, written.text(style));
        }
    }
}

/// A unit other than the usual one in cells, in headings and with the option.
#[test]
fn units_are_taken_into_account_by_all_readers() {
    let lines = |heading: &str, unit: &str, scale: f64| {
        let mut text = format!("time,threads,reads,{heading},elapsed,energy\n");
        for i in 0..8 {
            let power = 30.0 + f64::from(i * i % 7);
            text += &format!(
                "{},{},{},{}{unit},2,{}\n",
                0.5 * f64::from(i),
                1 + i % 3,
                i * i,
                power * scale,
                2.0 * power
            );
        }
        text
    };
    let watts = |text: &str, option: &str| {
        let columns = TableColumns {
            power: option.into(),
            events: Some(vec!["reads".into()]),
            ..TableColumns::default()
        };
        let table = rates::Table::parse("t", "t", text).expect("a table");
        let data = observe(&[table], &columns).expect("rows").data;
        let roles = Roles { target: Some(option.into()), ..Roles::default() };
        let counters = CounterTable::parse(text, &roles).expect("a table");
        let trace = trace_csv::parse_column(text, option).expect("a trace").remove(0).trace;
        let options = TableOptions {
            time: Some("elapsed".into()),
            energy: Some("energy:J".into()),
            ..TableOptions::default()
        };
        assert_eq!(read_runs(text, &options).expect("runs").runs[0].values, [2.0, 60.0]);
        let of_trace = trace.readings().iter().map(|reading| reading.power.as_watts()).collect::<Vec<_>>();
        let of_data = (0..data.len()).map(|row| data.watts(row)).collect::<Vec<_>>();
        [of_data, counters.power, of_trace]
    };
    let expected: Vec<f64> = (0..8).map(|i| 30.0 + f64::from(i * i % 7)).collect();
    for (heading, unit, scale, option) in [
        ("draw", "", 1.0, "draw"),
        ("draw [mW]", "", 1e3, "draw"),
        ("draw", " mW", 1e3, "draw"),
        ("draw", "", 1e3, "draw:mW"),
        ("draw_kW", "", 1e-3, "Draw"),
        ("draw (W)", "mW", 1e3, "draw"),
    ] {
        for (reader, found) in watts(&lines(heading, unit, scale), option).into_iter().enumerate() {
            let far =
                found.iter().zip(&expected).any(|(found, expected)| (found / expected - 1.0).abs() > 1e-12);
            assert!(found.len() == 8 && !far, "{heading} {unit}, reader {reader}: {found:?}");
        }
    }
}

/// Errors of reading say where.
#[test]
fn errors_name_line_column_and_what_was_expected() {
    let text = "time,threads,reads,power\n1,1,5,12\n2,2,5,low\n3,4,x,13\n";
    let columns =
        TableColumns { power: "power".into(), events: Some(vec!["reads".into()]), ..TableColumns::default() };
    let table = rates::Table::parse("runs.csv", "w", text).expect("a table");
    let notes = observe(&[table], &columns).expect("a row").notes;
    assert!(
        notes[0].ends_with("the first: runs.csv, line 3: `power` is `low`, which is no number"),
        "{notes:?}"
    );
    let error = CounterTable::parse(text, &Roles::default()).expect_err("too few").to_string();
    assert!(error.contains("line 3: `power` is `low`, which is no number"), "{error}");
    let traces = trace_csv::parse(text).expect("a trace");
    assert!(
        traces[0].notes[0].contains("line 3: `power` is `low`, which is no number of watts"),
        "{:?}",
        traces[0].notes
    );
    let notes =
        read_runs("threads,time,energy\n1,2,3\n2,x,3\n", &TableOptions::default()).expect("a run").notes;
    assert!(notes[0].contains("line 3: `time` is `x`, which is no number"), "{notes:?}");
}
