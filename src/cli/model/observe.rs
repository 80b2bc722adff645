//! The options that say what a file of measurements means, and the data that follow.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use eprof::power_model::dataset::{CpuSums, Dataset};
use eprof::power_model::observations::ObservationError;
use eprof::power_model::observations::observed::{self, Observed};
use eprof::power_model::observations::perf_stat::{self, PerfStatLog, looks_like_perf_stat};
use eprof::power_model::observations::rates::{self, Rates};
use eprof::power_model::observations::table::{Table, TableColumns};

use super::super::table_file;
use super::super::table_options::ColumnArgs;

/// Files of measurements, and what their columns mean.
#[derive(Args)]
pub struct ObserveArgs {
    /// Tables with a line of names (`-` is standard input), or logs of `perf stat -a -I N -x,` or of its
    /// totals. Without --group each file is one workload, by its name up to the first dot.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    columns: ColumnArgs,

    /// Column of the measured energy of each row in joules, or NAME:UNIT, in the place of --target; needs
    /// --duration.
    #[arg(long, value_name = "COLUMN", requires = "duration", conflicts_with = "target")]
    energy: Option<String>,

    /// Take every numeric column for an event, but for what meters measure (power, energy, voltage, ...)
    /// [default].
    #[arg(long, conflicts_with = "columns")]
    all_numeric: bool,

    /// Column of the length of a row in seconds, or NAME:UNIT: the events are counts, to be divided by it.
    /// Without it, events are rates, or rows are of equal length.
    #[arg(long, value_name = "COLUMN")]
    duration: Option<String>,

    /// Column of time stamps, to put the rows in order.
    #[arg(long, value_name = "COLUMN", alias = "time")]
    timestamp: Option<String>,

    /// Column of the clock frequency: one model for each.
    #[arg(long, value_name = "COLUMN")]
    frequency: Option<String>,
}

impl ObserveArgs {
    /// The files that are read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    /// Reads the files.
    pub fn observe(&self) -> anyhow::Result<Observed> {
        let mut observed = self.observe_columns()?;
        if self.sums_cpus() {
            let (summed, notes) = observed.data.with_cpus_summed();
            observed.data = summed;
            observed.notes.extend(notes);
        }
        Ok(observed)
    }

    /// Reads the files, and others whose power is to be estimated by a model of them: with the same columns.
    pub fn observe_with_rates(&self, others: &[PathBuf]) -> anyhow::Result<(Observed, Rates)> {
        let mut observed = self.observe_columns()?;
        let texts = read_all(others)?;
        let columns = observed.data.columns().to_vec();
        let logs = texts.iter().filter(|(_, text)| looks_like_perf_stat(text)).count();
        let mut rates = if logs == texts.len() {
            perf_stat::rates(&parse_logs(&texts)?, &columns)?
        } else {
            ensure!(logs == 0, "some of the files of --rates are logs of perf stat and some are tables");
            rates::rates(&parse_tables(&texts)?, &columns, &self.table_columns(String::new()))?
        };
        if self.sums_cpus() {
            let sums = CpuSums::of(&columns);
            rates.rows.iter_mut().for_each(|row| row.rates = sums.apply(&row.rates));
            let (summed, notes) = observed.data.with_cpus_summed();
            observed.data = summed;
            observed.notes.extend(notes);
        }
        Ok((observed, rates))
    }

    /// Reads files of rates for a model that was made before. `columns` finds the model's events among the names of a
    /// file's columns, in the model's order.
    pub fn rates_for(
        &self,
        files: &[PathBuf],
        columns: impl Fn(&[String]) -> anyhow::Result<Vec<String>>,
    ) -> anyhow::Result<Rates> {
        let texts = read_all(files)?;
        let mut all = Rates::default();
        for text in texts.chunks(1) {
            let found = if text.iter().all(|(_, text)| looks_like_perf_stat(text)) {
                let logs = parse_logs(text)?;
                let names: Vec<String> = logs.iter().flat_map(PerfStatLog::event_names).collect();
                perf_stat::rates(&logs, &columns(&names)?)?
            } else {
                let tables = parse_tables(text)?;
                let names: Vec<String> = tables.iter().flat_map(Table::names).collect();
                rates::rates(&tables, &columns(&names)?, &self.table_columns(String::new()))?
            };
            all.rows.extend(found.rows);
            all.notes.extend(found.notes);
        }
        Ok(all)
    }

    /// Columns that were not named one by one may be those of single CPUs.
    fn sums_cpus(&self) -> bool {
        self.columns.columns.is_empty()
    }

    /// Reads the files, their columns as they are.
    fn observe_columns(&self) -> anyhow::Result<Observed> {
        ensure!(
            !self.files.is_empty(),
            "name the measurements to learn from: a table with a column of power, or logs of `perf stat -a -I 100 -x,`"
        );
        let texts = read_all(&self.files)?;
        let logs = texts.iter().filter(|(_, text)| looks_like_perf_stat(text)).count();
        if logs == texts.len() {
            let ColumnArgs { target, exclude, .. } = &self.columns;
            let logs = parse_logs(&texts)?;
            return Ok(perf_stat::observe(&logs, target.as_deref(), self.events().as_deref(), exclude)?);
        }
        ensure!(logs == 0, "some of the files are logs of perf stat and some are tables; give one kind");
        let power = self.energy.as_ref().or(self.columns.target.as_ref());
        let power =
            power.context("name the column of measured power with --target, or of energy with --energy")?;
        Ok(observed::observe(&parse_tables(&texts)?, &self.table_columns(power.clone()))?)
    }

    fn table_columns(&self, power: String) -> TableColumns {
        TableColumns {
            power,
            power_is_energy: self.energy.is_some(),
            events: self.events(),
            except: self.columns.exclude.clone(),
            workload: self.columns.group.clone(),
            duration: self.duration.clone(),
            time: self.timestamp.clone(),
            frequency: self.frequency.clone(),
            only: self.columns.only.clone(),
        }
    }

    /// A column says what workload each row is of.
    pub fn tells_workloads(&self) -> bool {
        !self.columns.group.is_empty()
    }

    /// Rows of different clock frequencies are to be modelled apart.
    pub fn is_by_frequency(&self) -> bool {
        self.frequency.is_some()
    }

    /// One data set per frequency, each with a heading; a single one without if there is no such column.
    pub fn parts(&self, data: Dataset) -> Vec<(Option<f64>, Dataset)> {
        if self.frequency.is_none() {
            return vec![(None, data)];
        }
        data.by_frequency().into_iter().map(|(frequency, data)| (Some(frequency), data)).collect()
    }

    /// The column or event of the power, as far as it was named.
    pub fn power_column(&self) -> &str {
        self.energy.as_deref().or(self.columns.target.as_deref()).unwrap_or("power/energy-pkg/")
    }

    fn events(&self) -> Option<Vec<String>> {
        (!self.columns.columns.is_empty()).then(|| self.columns.columns.clone())
    }
}

type Text = (PathBuf, String);

fn read_all(files: &[PathBuf]) -> anyhow::Result<Vec<Text>> {
    files.iter().map(|path| Ok((path.clone(), table_file::read(path)?))).collect()
}

fn parse_logs(texts: &[Text]) -> Result<Vec<PerfStatLog>, ObservationError> {
    let parse =
        |(path, text): &Text| PerfStatLog::parse(&path.display().to_string(), &workload_of(path), text);
    texts.iter().map(parse).collect()
}

fn parse_tables(texts: &[Text]) -> Result<Vec<Table>, ObservationError> {
    let parse = |(path, text): &Text| Table::parse(&path.display().to_string(), &workload_of(path), text);
    texts.iter().map(parse).collect()
}

/// `hpl_mkl.perf.3` is the third run of `hpl_mkl`.
fn workload_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').find(|part| !part.is_empty()).unwrap_or(&name).to_owned()
}

/// What a reader of any result must know about the data behind it.
pub fn describe(data: &Dataset) -> String {
    let shown = 8;
    let columns = data.columns();
    let mut names = columns.iter().take(shown).cloned().collect::<Vec<_>>().join(", ");
    if columns.len() > shown {
        names += &format!(" and {} more", columns.len() - shown);
    }
    format!("{} rows of {} workloads; {} events: {names}", data.len(), data.workloads().len(), columns.len())
}
