//! Runs from a table of a batch system, a spreadsheet or another tool.

mod meanings;
mod options;
mod response_columns;
mod setting_columns;
mod sheet;

use rustc_hash::FxHashSet;

pub use self::options::TableOptions;
use self::response_columns::ResponseColumns;
use self::setting_columns::{check_hidden_factors, find_settings, make_space};
use self::sheet::Sheet;
use super::TuneError;
use super::runs::{AXES, Measurements, Responses, Run};
use super::space::{Level, Setting, Space};

/// What a table says.
#[derive(Debug, Clone)]
pub struct RunsTable {
    /// The search space: as given, or every combination of the values in the table.
    pub space: Space,
    /// The runs.
    pub runs: Vec<Run>,
    /// The line of the table that each of them stands in, from 1.
    pub lines: Vec<usize>,
    /// Totals or rates.
    pub responses: Responses,
    /// What the reader left out, assumed or found odd, as sentences for the user.
    pub notes: Vec<String>,
}

/// Reads runs from the text of a table whose first line names the columns.
///
/// # Errors
/// No columns for time and energy (or performance and efficiency), no column that is a setting, no
/// row that can be used, or rows that differ by something that is no setting. Each says which columns
/// there are and which option names the right one.
pub fn read_runs(text: &str, options: &TableOptions) -> Result<RunsTable, TuneError> {
    let mut table = Sheet::read(text)?;
    let of_space = options.space.iter().map(|variable| variable.name.as_str());
    table.take_for_settings(options.variables.iter().map(String::as_str).chain(of_space));
    let table = table;
    let rows = table.table.matching(&options.conditions)?;
    let mut notes = table.table.notes();
    let rows = without_copies(&table, rows, &mut notes);
    let columns = ResponseColumns::find(&table, options, &mut notes)?;
    let settings = find_settings(&table, &rows, options, &columns)?;
    let unused = check_hidden_factors(&table, &rows, &settings, &columns, &mut notes)?;

    let unordered: Vec<bool> = settings.iter().map(|setting| setting.is_unordered(&table, &rows)).collect();
    let mut runs: Vec<(usize, Run)> = Vec::with_capacity(rows.len());
    let mut skipped: Vec<(usize, String)> = Vec::new();
    for &row in &rows {
        let levels: Result<Vec<Level>, String> = settings
            .iter()
            .zip(&unordered)
            .map(|(setting, &unordered)| setting.level(&table, row, unordered))
            .collect();
        let values = || columns.values(&table, row).map_err(|error| error.problem());
        match levels.and_then(|levels| Ok((levels, values()?))) {
            Ok((levels, values)) => {
                runs.push((table.table.line(row), Run { setting: Setting(levels), values }));
            }
            Err(reason) => skipped.push((table.table.line(row), reason)),
        }
    }
    if let Some((line, reason)) = skipped.first() {
        if runs.is_empty() {
            return Err(TuneError::TableLine { line: *line, reason: reason.clone() });
        }
        notes.push(format!(
            "{} of {} rows left out, the first in line {line}: {reason}",
            skipped.len(),
            rows.len()
        ));
    }
    let (mut lines, mut runs): (Vec<usize>, Vec<Run>) = runs.into_iter().unzip();
    let space = make_space(&settings, &options.space, &runs)?;
    let all = runs.len();
    let mut spanned = runs.iter().map(|run| space.spans(&run.setting));
    lines.retain(|_| spanned.next() == Some(true));
    runs.retain(|run| space.spans(&run.setting));
    if runs.is_empty() {
        return Err(TuneError::Table { reason: "no row lies within the given search space".into() });
    }
    if runs.len() < all {
        notes.push(format!(
            "{} of {all} runs left out: they lie outside of the given search space",
            all - runs.len()
        ));
    }
    note_odd_power(&runs, columns.responses, &mut notes);
    note_wide_spread(&runs, columns.responses, &unused, &mut notes)?;
    Ok(RunsTable { space, runs, lines, responses: columns.responses, notes })
}

/// Rows that say the same as others in every column are copies, as of a table that was appended to itself: taken for runs, they
/// would tell that nothing differs from one to the next.
fn without_copies(table: &Sheet, mut rows: Vec<usize>, notes: &mut Vec<String>) -> Vec<usize> {
    let mut seen = FxHashSet::default();
    let (all, mut first) = (rows.len(), None);
    rows.retain(|&row| {
        let is_new = seen.insert(table.table.cells(row).collect::<Vec<&str>>());
        if !is_new {
            first.get_or_insert(table.table.line(row));
        }
        is_new
    });
    if let Some(line) = first {
        let copies = all - rows.len();
        notes.push(format!(
            "{copies} of {all} rows say in every column what another row says, the first of them in line {line}: copies count \
             once, for no two runs take exactly the same"
        ));
    }
    rows
}

/// Milliseconds taken for seconds do not change the choice, but the figures; say so.
fn note_odd_power(runs: &[Run], responses: Responses, notes: &mut Vec<String>) {
    let mut watts: Vec<f64> = runs.iter().map(|run| run.values[1] / run.values[0]).collect();
    watts.sort_by(f64::total_cmp);
    let median = watts.get(watts.len() / 2).copied().unwrap_or(1.0);
    if responses == Responses::Totals && !(0.1..1e5).contains(&median) {
        notes.push(format!(
            "the mean power is {median:.3} W: if the units are not seconds and joules, name them, as in --duration Time:ms"
        ));
    }
}

/// Repeats that differ by more than noise does are probably no repeats.
fn note_wide_spread(
    runs: &[Run],
    responses: Responses,
    unused: &[String],
    notes: &mut Vec<String>,
) -> Result<(), TuneError> {
    const MORE_THAN_NOISE: f64 = 0.2;
    let measured = Measurements::gather(responses, runs)?;
    let widest =
        AXES.iter().filter_map(|&axis| measured.pure_error(axis)).map(|(variance, _)| variance.sqrt());
    let widest = widest.fold(0.0, f64::max);
    if widest > MORE_THAN_NOISE && !unused.is_empty() {
        notes.push(format!(
            "runs of one setting differ by {:.0} % (one standard deviation): is one of {} a setting, too?",
            widest.exp_m1() * 100.0,
            unused.join(", ")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::levels::parse_named_variable;
    use super::super::space::Role;
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<RunsTable, TuneError> {
        read_runs(text, &TableOptions::default())
    }

    fn refusal(text: &str, options: &TableOptions) -> String {
        read_runs(text, options).expect_err("refused").to_string()
    }

    #[test]
    fn json_is_no_table_and_says_so() {
        for text in ["[{\"threads\":1,\"seconds\":10,\"joules\":100}]", " {\"runs\": [1, 2]}"] {
            let reason = refusal(text, &TableOptions::default());
            assert!(reason.contains("this is JSON"), "{reason}");
        }
    }

    #[test]
    fn a_plain_table() {
        let table =
            read("threads,freq,seconds,joules\n1,1.2,10,100\n2,1.2,5,80\n1,1200MHz,11,101\n").expect("valid");
        assert_eq!(table.responses, Responses::Totals);
        assert_eq!(table.space.size(), 2);
        assert_eq!(table.runs[2].setting, table.runs[0].setting);
        assert_eq!(table.runs[1].values, [5.0, 80.0]);
        assert!(table.notes.is_empty(), "{:?}", table.notes);
    }

    /// The form of a published table: a comment sign before the names, semicolons at the ends of lines.
    #[test]
    fn a_table_with_semicolons_and_units() {
        let text = "#Procs;Cores;Freq;Time[s];Energy[Wh];Energy[J];AvgPower[W];\r\n\
                    1;1;2.10GHz;1921.57;212.0;763200.0;394.9;\r\n1;2;2.10GHz;996.93;111.8;402480.0;402.1;\r\n";
        let table = read(text).expect("valid");
        let names: Vec<&str> =
            table.space.variables().iter().map(|variable| variable.name.as_str()).collect();
        assert_eq!(names, ["Procs", "Cores", "Freq"]);
        assert_eq!(table.runs[1].values, [996.93, 402480.0]);
        assert_eq!(table.space.size(), 2);
    }

    #[test]
    fn units_of_columns_cells_and_options() {
        let table = read("threads time_ms energy_Wh\n1 500 2\n2 400 1\n").expect("valid");
        assert_eq!(table.runs[0].values, [0.5, 7200.0]);
        let table = read("cores\tTime\tEnergy\n1\t500 ms\t2 kJ\n2\t1 s\t5 J\n").expect("valid");
        assert_eq!(table.runs[0].values, [0.5, 2000.0]);
        let options = TableOptions {
            time: Some("took:ms".into()),
            energy: Some("a+b:mJ".into()),
            variables: vec!["tile".into()],
            ..TableOptions::default()
        };
        let table = read_runs("tile,took,a,b\n16,500,1,500\n32,400,2,500\n", &options).expect("valid");
        assert_eq!(table.runs[0].values, [0.5, 1.5]);
    }

    #[test]
    fn power_stands_in_for_energy() {
        let table = read("power_limit,time_per_epoch,average_power\n100,10,90\n150,8,140\n").expect("valid");
        assert_eq!(table.runs[0].values, [10.0, 900.0]);
        assert_eq!(table.space.variables()[0].role, Role::PowerCap);
    }

    #[test]
    fn rates_are_recognized() {
        let table = read("nodes,threads,MFlops/s,MFlops/J\n1,4,100,2\n1,8,180,2.5\n").expect("valid");
        assert_eq!(table.responses, Responses::Rates);
        assert_eq!(table.runs[1].values, [180.0, 2.5]);
    }

    #[test]
    fn no_cap_is_a_name_and_the_first_one() {
        let text = "PowerLimit,Package,DRAM,Time\n-1,100,10,5\n25,80,9,6\n10,70,9,9\n-1,101,11,5\n";
        let table = read(text).expect("valid");
        let cap = &table.space.variables()[0];
        assert!(cap.is_categorical());
        assert_eq!(cap.levels()[0], Level::Label("none".into()));
        assert_eq!(table.runs[0].values, [5.0, 110.0]);
        assert!(table.notes.iter().any(|note| note.contains("Package + DRAM")), "{:?}", table.notes);
    }

    #[test]
    fn different_programs_are_not_mixed() {
        let text = "Language,threads,time,energy\nC,1,2,20\nAda,1,3,30\nC,2,1,15\nAda,2,2,25\n";
        let error = refusal(text, &TableOptions::default());
        assert!(error.contains("--where Language=C") && error.contains("--var Language"), "{error}");
        let options =
            TableOptions { conditions: vec![("language".into(), "Ada".into())], ..TableOptions::default() };
        assert_eq!(read_runs(text, &options).expect("one program").runs.len(), 2);
        let options =
            TableOptions { variables: vec!["threads".into(), "Language".into()], ..TableOptions::default() };
        assert_eq!(read_runs(text, &options).expect("a variable").space.size(), 4);
    }

    /// Two names in four rows are programs; three in five are nearly one for each run.
    #[test]
    fn names_that_hardly_repeat_tell_runs_apart_and_no_programs() {
        let text = "Tag,threads,time,energy\nC,1,2,20\nAda,1,2.1,21\nC,2,1,15\nAda,2,1.1,16\n";
        assert!(refusal(text, &TableOptions::default()).contains("runs of one setting differ in `Tag`"));
        let table = read(&format!("{text}Rust,2,1.2,17\n")).expect("valid");
        assert_eq!(table.runs.len(), 5);
        assert!(table.notes.iter().any(|note| note.contains("not used: Tag")), "{:?}", table.notes);
    }

    #[test]
    fn energy_of_cores_is_no_core_count() {
        let text = "PowerLimit,Package,Core,Time\n25,80,60.5,6\n10,70,50.25,9\n";
        let table = read(text).expect("valid");
        assert_eq!(table.space.variables().len(), 1);
        assert!(table.notes.iter().any(|note| note.contains("energy is Package")), "{:?}", table.notes);
    }

    #[test]
    fn repeats_that_are_none_are_noticed() {
        let table = read("threads,batch,time,energy\n1,16,1,10\n1,64,4,40\n2,16,0.5,8\n").expect("valid");
        let note = table.notes.iter().find(|note| note.contains("differ by")).expect("a note");
        assert!(note.contains("is one of batch a setting"), "{note}");
    }

    #[test]
    fn copies_are_no_repeated_runs() {
        let (names, rows) = ("threads,time,energy\n", "1,2,20\n1,2,21\n2,1,15\n");
        let once = read(&format!("{names}{rows}")).expect("valid");
        let twice = read(&format!("{names}{rows}{rows}")).expect("valid");
        assert_eq!(twice.runs, once.runs);
        assert!(twice.notes[0].starts_with("3 of 6 rows say in every column"), "{:?}", twice.notes);
        assert!(twice.notes[0].contains("line 5") && once.notes.is_empty(), "{:?}", twice.notes);
    }

    #[test]
    fn unusable_rows_are_left_out_and_counted() {
        let text = "threads,time,energy\n1,2,20\n2,failed,30\n4,1,0\n8,,5\n16,1,10\n";
        let table = read(text).expect("two rows are good");
        assert_eq!((table.runs.len(), table.lines), (2, vec![2, 6]));
        assert_eq!(
            table.notes,
            ["3 of 5 rows left out, the first in line 3: `time` is `failed`, which is no number"]
        );
        assert!(refusal("threads,time,energy\n1,x,2\n", &TableOptions::default()).contains("line 2"));
        // Nothing is no name, either.
        let options = TableOptions { variables: vec!["mode".into()], ..TableOptions::default() };
        let unset = read_runs("mode,time,energy\nfast,2,20\n,2,30\nslow,1,10\n", &options);
        let unset = unset.expect("two rows are good");
        assert_eq!(unset.notes, ["1 of 3 rows left out, the first in line 3: `mode` is empty"]);
    }

    #[test]
    fn what_is_missing_is_said() {
        let none = TableOptions::default();
        assert!(refusal("", &none).contains("empty"));
        assert!(refusal("threads,time,energy\n", &none).contains("no rows"));
        assert!(refusal("1,2,3\n4,5,6\n", &none).contains("must name the columns"));
        assert!(refusal("threads,foo\n1,2\n", &none).contains("no column is the time"));
        assert!(refusal("threads,time\n1,2\n", &none).contains("no column is the energy"));
        assert!(refusal("tile,time,energy\n1,2,3\n", &none).contains("--var COLUMN"));
        assert!(
            refusal("threads,time,gpu0_energy,gpu1_energy\n1,2,3,4\n", &none).contains("several columns")
        );
    }

    #[test]
    fn a_given_space_decides_the_levels() {
        let space = vec![parse_named_variable("threads=1..8").expect("valid")];
        let options = TableOptions { space, ..TableOptions::default() };
        let table = read_runs("Cores,time,energy\n1,8,8\n4,2,4\n16,1,4\n", &options).expect("valid");
        assert_eq!(table.space.size(), 8);
        assert_eq!((table.runs.len(), table.lines), (2, vec![2, 3]));
        assert_eq!(table.notes, ["1 of 3 runs left out: they lie outside of the given search space"]);
    }

    #[test]
    fn milliseconds_taken_for_seconds_are_noticed() {
        let table = read("threads,time,energy\n1,2930,111\n2,2000,90\n").expect("valid");
        assert!(table.notes[0].contains("--duration Time:ms"), "{:?}", table.notes);
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,120}", rows in "([0-9.,;a-z\"-]{0,12}\n){0,6}") {
            let _ = read(&text);
            let _ = read(&format!("threads,time,energy\n{rows}"));
        }
    }
}
