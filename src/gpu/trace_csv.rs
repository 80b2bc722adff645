//! Power traces as text: what `nvidia-smi --query-gpu=timestamp,power.draw --format=csv -lms 10`
//! prints, and tables like it (a meter's log, another tool's samples).

use super::named_trace::{NamedTrace, TraceError};
use super::trace::{PowerReading, PowerTrace};
use super::trace_order::past_midnight;
use super::trace_table::TraceTable;
use super::trace_times::{TimeFormat, is_clock, parse_time};
use crate::tables::unit::Quantity;
use crate::tables::{Grid, TableError};
use crate::units::{Timestamp, Watts};

/// Reads every power column of a table.
///
/// The first line names the columns; without such a line
/// (`--format=csv,noheader`) the first column is the time and power is every column whose cells end in
/// a unit of it, or the only other column. Times are dates (taken as UTC), times of day or numbers since any zero; their unit is told
/// by the cell, by the column's name, by their size (times since 1970) or by their steps.
///
/// # Errors
/// [`TraceError`] when no column fits or none of its rows can be read.
pub fn parse(text: &str) -> Result<Vec<NamedTrace>, TraceError> {
    let table = TraceTable::read(text)?;
    let mut traces = Vec::new();
    for column in table.power_columns()? {
        traces.extend(table.traces(column, None)?);
    }
    Ok(traces)
}

/// Reads one column by name; any column may be named, without regard to case and unit, and with its unit
/// behind a colon if the table does not tell.
///
/// # Errors
/// As [`parse`].
pub fn parse_column(text: &str, wanted: &str) -> Result<Vec<NamedTrace>, TraceError> {
    let table = TraceTable::read(text)?;
    let found = table.table.find_with_unit(wanted, Quantity::Power, "W, mW, uW or kW");
    let (column, unit) = found.map_err(|error| match error {
        TableError::NoSuchColumn { wanted, .. } => {
            let columns = table.power_columns().unwrap_or_default();
            let names: Vec<&str> =
                columns.iter().map(|column| table.heading(*column).before_bracket()).collect();
            TraceError::NoSuchColumn { wanted, found: names.join(", ") }
        }
        error => TraceError::Table(error),
    })?;
    table.traces(column, unit)
}

/// Reads a meter's log: all its columns of power added up row by row.
///
/// # Errors
/// As [`parse`].
pub fn parse_sum(text: &str) -> Result<PowerTrace, TraceError> {
    let table = TraceTable::read(text)?;
    let columns = table.power_columns()?;
    let units: Vec<(usize, f64)> =
        columns.into_iter().map(|column| (column, table.power_unit(column).0)).collect();
    units.iter().try_for_each(|(column, unit)| table.refuse_below_zero(*column, *unit))?;
    let reading = |row: usize| {
        let time = table.time(row)?;
        let power =
            units.iter().map(|(column, unit)| table.power(row, *column, *unit)).sum::<Option<f64>>()?;
        Some((row, PowerReading { time, power: Watts::from_watts(power) }))
    };
    let (readings, _) = table.in_order((0..table.table.len()).filter_map(reading).collect())?;
    Ok(PowerTrace::new(readings))
}

/// Reads a list of times, one a line below an optional heading, such as the times at which a load was
/// switched; equal neighbours count once.
pub fn parse_times(text: &str) -> Vec<Timestamp> {
    let grid = Grid::read(text);
    let format = TimeFormat::new(grid.default_marks());
    let cells: Vec<&str> =
        grid.rows().map(|row| row.cell(0)).filter(|cell| parse_time(cell, format).is_some()).collect();
    let mut times: Vec<Timestamp> = cells.iter().filter_map(|cell| parse_time(cell, format)).collect();
    if cells.iter().all(|cell| is_clock(cell)) {
        past_midnight(&mut times);
    }
    times.sort();
    times.dedup();
    times
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reasons_of_slow_clocks_are_no_power() {
        let text = "timestamp, clocks_event_reasons.hw_power_brake_slowdown, clocks_throttle_reasons.sw_power_cap, \
                    power.draw [W]\n2023/08/24 22:18:34.203, Not Active, Not Active, 36.50 W\n\
                    2023/08/24 22:18:34.303, Not Active, Active, 37.50 W\n";
        let traces = parse(text).expect("one column of power");
        assert_eq!(traces.len(), 1);
        assert_eq!(traces[0].column, "power.draw");
    }

    #[test]
    fn nvidia_smi_with_units_in_the_cells() {
        let text = "timestamp, power.draw [W], power.draw.instant [W], enforced.power.limit [W]\n\
                    2023/08/24 22:18:34.203, 34.63 W, 35.00 W, 250.00 W\n\
                    2023/08/24 22:18:34.227, [N/A], 36.50 W, 250.00 W\n";
        let traces = parse(text).expect("a trace");
        assert_eq!(traces.len(), 2);
        assert_eq!((traces[0].column.as_str(), traces[0].skipped), ("power.draw", 1));
        assert_eq!(traces[1].trace.readings()[1].power, Watts::from_watts(36.5));
        // date -u -d '2023-08-24 22:18:34.203' +%s%N
        assert_eq!(traces[1].trace.readings()[0].time, Timestamp::from_nanos(1_692_915_514_203_000_000));
    }

    #[test]
    fn several_gpus_become_several_traces() {
        let text = "timestamp, index, power.draw [W]\n\
                    2024/02/29 00:00:00.000, 0, 50\n2024/02/29 00:00:00.001, 1, 60\n2024/02/29 00:00:00.100, 0, 51\n";
        let traces = parse(text).expect("traces");
        let gpus: Vec<_> = traces.iter().map(|t| (t.gpu.clone(), t.trace.readings().len())).collect();
        assert_eq!(gpus, [(Some("0".into()), 2), (Some("1".into()), 1)]);
    }

    #[test]
    fn a_meter_in_microseconds_is_summed() {
        let trace =
            parse_sum("time_us,pcie_w,eps_w\n1689325966944676.8,58.5,7.5\n1689325966944881.5,56.0,6.0\n");
        let readings = trace.expect("a meter").readings().to_vec();
        assert_eq!(readings[0].power, Watts::from_watts(66.0));
        assert_eq!(readings[0].time.as_nanos() / 1000, 1_689_325_966_944_676);
    }

    #[test]
    fn tables_without_heading_or_commas() {
        let bare =
            parse("2023/08/24 22:18:34.203, 41.00 W\n2023/08/24 22:18:34.227, 42.00 W\n").expect("bare");
        assert_eq!(bare[0].trace.readings().len(), 2);
        let blanks = "timestamp gpu_instant gpu_average\n1733935225.009 28.873 23.595\n";
        assert!(matches!(parse(blanks), Err(TraceError::NoPower(_))));
        assert_eq!(parse_column(blanks, "gpu_instant").expect("named")[0].trace.readings().len(), 1);
    }

    #[test]
    fn switching_times() {
        let times = parse_times("timestamp\n1689325967982958\n1689325967982958\n1689325968035292\n");
        assert_eq!(times.len(), 2);
        assert_eq!(times[0].as_nanos(), 1_689_325_967_982_958_000);
    }

    /// A second at 10 ms from `from` on, each reading of another power.
    fn second_from(from: f64) -> String {
        (0..100).map(|n| format!("{:.3},{}\n", from + f64::from(n) * 0.01, 50 + n)).collect()
    }

    #[test]
    fn a_clock_that_was_set_back_is_refused_or_told() {
        let table = |parts: [f64; 2]| {
            format!("time [s],power [W]\n{}{}", second_from(parts[0]), second_from(parts[1]))
        };
        let mixed = table([10.0, 10.5]);
        for error in [parse(&mixed).unwrap_err(), parse_sum(&mixed).unwrap_err()] {
            let text = error.to_string();
            assert!(text.starts_with("line 102: `time [s]` goes back from 10.990 to 10.500, and"), "{text}");
        }
        let traces = parse(&table([10.0, 5.0])).expect("a log in two parts");
        assert!(
            traces[0].notes[0].starts_with("line 102: `time [s]` goes back from 10.990 to 5.000: rows"),
            "{:?}",
            traces[0].notes
        );
        // Rows in reverse order are one log.
        let reversed: String = second_from(0.0).lines().rev().map(|line| format!("{line}\n")).collect();
        assert_eq!(parse(&format!("time [s],power [W]\n{reversed}")).expect("a log")[0].notes, [""; 0]);
    }

    #[test]
    fn a_log_with_clock_times_goes_on_past_midnight() {
        let text = "time,power [W]\n23:59:59.990,50\n23:59:59.995,51\n00:00:00.000,52\n00:00:00.005,53\n";
        let trace = &parse(text).expect("a log")[0];
        let (first, last) = trace.trace.span().expect("readings");
        assert_eq!(last.since(first).as_nanos(), 15_000_000);
        assert_eq!(
            trace.notes,
            ["line 4: `time` goes from 23:59:59.995 to 00:00:00.000: it is taken to go past midnight there"]
        );
        assert_eq!(parse_sum(text).expect("a meter"), trace.trace);
        let times = parse_times("23:59:59\n00:00:01\n");
        assert_eq!(times[1].since(times[0]).as_nanos(), 2_000_000_000);
        // A date tells the day.
        let dated = text.replace("23:", "2024/01/02 23:").replace("00:00:00", "2024/01/01 00:00:00");
        let (first, last) = parse(&dated).expect("a log")[0].trace.span().expect("readings");
        assert!(last.since(first).as_secs_f64() > 172_000.0);
    }

    #[test]
    fn of_two_columns_of_times_no_count_of_rows_is_read() {
        let text = "time,timestamp,power [W]\n0,2023/08/25 05:19:23.461,51\n1,2023/08/25 05:19:23.468,52\n";
        let trace = &parse(text).expect("a log")[0];
        let (first, last) = trace.trace.span().expect("readings");
        assert_eq!(last.since(first).as_nanos(), 7_000_000);
        assert_eq!(
            trace.notes,
            [
                "times are read from `timestamp`, and the table has `time` besides: take the column out that is not to be read"
            ]
        );
        let unit = text.replace("time,", "time_s,");
        let trace = &parse(&unit).expect("a log")[0];
        let (first, last) = trace.trace.span().expect("readings");
        assert_eq!(last.since(first).as_nanos(), 1_000_000_000);
        assert!(trace.notes[0].starts_with("times are read from `time_s`"), "{:?}", trace.notes);
        let alone = parse("time,power [W]\n0,51\n1,52\n").expect("a log");
        assert_eq!((alone[0].trace.readings().len(), alone[0].notes.len()), (2, 0));
    }

    #[test]
    fn no_power_is_below_zero_but_for_where_a_meter_has_its_zero() {
        let text = |low: &str| format!("time [s],draw [W],board [W]\n0,50,60\n0.1,{low},60\n0.2,50,60\n");
        let refused = "line 3: `draw [W]` is `-40`, which is below 0: no card gives power back. Put the sign right or take the row \
                       out, or choose another column with --target";
        for error in [parse(&text("-40")).unwrap_err(), parse_sum(&text("-40")).unwrap_err()] {
            assert_eq!(error.to_string(), refused);
        }
        assert!(matches!(parse_column(&text("-1.1"), "draw"), Err(TraceError::BelowZero(_))));
        let kept = &parse(&text("-0.9")).expect("a meter of an idle line")[0].trace;
        assert_eq!(kept.readings()[1].power, Watts::from_watts(-0.9));
        // Another column's readings do not matter.
        assert!(parse_column(&text("-40"), "board").is_ok());
    }

    #[test]
    fn errors_name_what_is_there() {
        assert_eq!(parse("").unwrap_err(), TableError::Empty.into());
        assert!(parse("a,b\n1,2\n").unwrap_err().to_string().contains("a, b"));
        let none = parse("timestamp, power.draw [W]\n2023/08/24 22:18:34.203, [N/A]\n").unwrap_err();
        assert!(none.to_string().contains("line 2: `power.draw [W]` is missing (`[N/A]`)"), "{none}");
        let unit = parse_column("time,draw\n1,2\n", "draw:J").unwrap_err();
        assert!(unit.to_string().contains("expected W, mW"), "{unit}");
    }

    /// Readings every 15 ms of 30 and 31.5 W, as different tools write them.
    #[test]
    fn tables_of_many_kinds() {
        for (name, text) in [
            ("no names, no units", "0.100,30\n0.115,31.5\n0.130,30\n"),
            ("semicolons", "time;power\n0.100;30\n0.115;31.5\n0.130;30\n"),
            ("decimal commas", "Time (s);Power (W)\n0,100;30,0\n0,115;31,5\n0,130;30,0\n"),
            (
                "tabs",
                "timestamp\tpower.draw [W]\n2023/07/30 17:29:56.100\t30 W\n2023/07/30 17:29:56.115\t31.50 W\n2023/07/30 17:29:56.130\t30 W\n",
            ),
            (
                "blanks",
                "2023-07-30 17:29:56.100 30 W\n2023-07-30 17:29:56.115 31.50 W\n2023-07-30 17:29:56.130 30 W\n",
            ),
            ("blanks and names", "time [s]  power [mW]\n0.100  30000\n0.115  31500\n0.130 30000\n"),
            ("units in the cells", "time,power\n100 ms,30W\n115 ms,31500 mW\n130 ms,30 W\n"),
            ("elapsed", "elapsed_ms,gpu_power\n100,30\n115,31.5\n130,30\n"),
            ("letters", "t,P\n0.1,30\n0.115,31.5\n0.13,30\n"),
            ("other names", "when,board\n0.1,30\n0.115,31.5\n0.13,30\n"),
            ("milliseconds by their steps", "time,power\n100,30\n115,31.5\n130,30\n"),
            ("microseconds by their steps", "time,power\n100000,30\n115000,31.5\n130000,30\n"),
            (
                "milliwatts by their size",
                "timestamp,power\n1690738196.100,30000\n1690738196.115,31500\n1690738196.130,30000\n",
            ),
            ("times below zero", "time_s,power\n-0.015,30\n0.0,31.5\n0.015,30\n"),
            ("time of day", "time,power\n17:29:56.100,30\n17:29:56.115,31.5\n17:29:56.130,30\n"),
        ] {
            let traces = parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let readings = traces[0].trace.readings();
            let watts: Vec<f64> = readings.iter().map(|reading| reading.power.as_watts()).collect();
            assert_eq!((traces.len(), watts.as_slice()), (1, [30.0, 31.5, 30.0].as_slice()), "{name}");
            let step = readings[1].time.since(readings[0].time).as_secs_f64();
            assert!((step - 0.015).abs() < 1e-6, "{name}: {step} s");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_trace_or_an_error(text in "(timestamp, power.draw \\[W\\]\n)?[0-9/: .,WN\\[\\]e-]{0,200}") {
            let _ = (parse(&text), parse_sum(&text), parse_column(&text, "power.draw"), parse_times(&text));
        }
    }
}
