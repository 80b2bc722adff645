//! The tables of a folder, opened, selected and checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use datafusion::arrow::array::RecordBatch;
use datafusion::logical_expr::{Expr, col, lit};
use datafusion::prelude::{DataFrame, ParquetReadOptions, SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use eprof::profile::Balance;
use eprof::report::store::schema::{TABLES, VERSION, VERSION_KEY};
use eprof::units::Joules;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::args::Selected;
use crate::balance::{self, Row};
use crate::filter::Filter;
use crate::rows::Columns;
use crate::when::When;

/// The tables, of which `samples` has what is selected and nothing else; the rows of `stack_frames` and `functions` are
/// there once.
pub struct Store {
    context: SessionContext,
    /// The balance of all windows that are asked of, each domain.
    pub balance: Vec<Row>,
    /// What is to be said beside the answer.
    pub warnings: Vec<String>,
    domain: Option<String>,
    filter: Option<Filter>,
}

impl Store {
    /// Opens a folder. `condition` is asked beside the selection's own.
    ///
    /// # Errors
    /// If the folder has no such tables, or if their sums differ.
    pub async fn open(
        folder: &Path,
        selected: &Selected,
        condition: Option<&Filter>,
    ) -> anyhow::Result<Self> {
        for table in TABLES {
            check_folder(folder, table.name)?;
        }
        check_version(&folder.join("balance"))?;
        let config = SessionConfig::new()
            .set_bool("datafusion.execution.parquet.schema_force_view_types", false)
            .set_bool("datafusion.execution.parquet.pushdown_filters", true);
        let context = SessionContext::new_with_config(config);
        let filter = Filter::and(selected.condition.clone(), condition.cloned());
        let mut store = Self {
            context,
            balance: Vec::new(),
            warnings: Vec::new(),
            domain: selected.domain.clone(),
            filter,
        };
        for table in TABLES {
            let path = folder.join(table.name);
            let path = path.to_str().with_context(|| format!("{} is no UTF-8", path.display()))?;
            store
                .context
                .register_parquet(
                    format!("all_{}", table.name),
                    format!("{path}/"),
                    ParquetReadOptions::default(),
                )
                .await?;
        }
        store.check(selected).await.with_context(|| format!("{} does not add up", folder.display()))?;
        store.select().await?;
        Ok(store)
    }

    async fn table(&self, name: &str) -> anyhow::Result<DataFrame> {
        Ok(self.context.table(name).await?)
    }

    /// Holds all samples of the windows in question against their balance.
    async fn check(&mut self, selected: &Selected) -> anyhow::Result<()> {
        let balance = within(self.table("all_balance").await?, "window_start", selected)?;
        let text = ["node", "boot", "domain", "method"].map(col);
        let rest = ["measured", "functions", "static", "others", "recorder", "lost"].map(col);
        let mut columns = vec![col("recording"), col("is_top"), col("window_start"), col("window_end")];
        columns.extend(text);
        columns.extend(rest);
        self.balance = balance_rows(&balance.select(columns)?.collect().await?)?;
        let samples = within(self.table("all_samples").await?, "time", selected)?;
        self.context.register_table("timed_samples", samples.into_view())?;
        let sums = self
            .ask("SELECT recording, domain, SUM(joules) FROM timed_samples GROUP BY recording, domain")
            .await?;
        let mut columns = Columns::of(&sums)?;
        let keys = columns.ints()?.into_iter().zip(columns.texts()?);
        let sums: BTreeMap<(i64, String), f64> = keys.zip(columns.doubles()?).collect();
        balance::check(&self.balance, &sums)?;
        self.warnings.extend(balance::overlaps(&self.balance));
        self.warnings.extend(cut_windows(&self.balance, selected.until));
        Ok(())
    }

    /// The views that questions are asked of.
    async fn select(&mut self) -> anyhow::Result<()> {
        let domains: BTreeSet<&str> = self.balance.iter().map(|row| row.domain.as_str()).collect();
        if let Some(domain) = &self.domain {
            let known = domains.iter().copied().collect::<Vec<_>>().join(", ");
            ensure!(
                domains.contains(domain.as_str()),
                "there is no energy domain {domain:?}; there are: {known}"
            );
        }
        let of_domain = match &self.domain {
            Some(domain) => col("domain").eq(lit(domain.as_str())),
            None => col("is_top").eq(lit(1i32)),
        };
        let mut samples = self.table("timed_samples").await?.filter(of_domain)?;
        if let Some(filter) = &self.filter {
            samples = samples.filter(filter.expression())?;
        }
        self.context.register_table("samples", samples.into_view())?;
        for name in ["stack_frames", "functions"] {
            let once = self.table(&format!("all_{name}")).await?.distinct()?;
            self.context.register_table(name, once.into_view())?;
        }
        Ok(())
    }

    /// Asks a question whose text is eprof's own: what users say is in the views.
    pub async fn ask(&self, sql: &str) -> anyhow::Result<Vec<RecordBatch>> {
        let answer = async { self.context.sql(sql).await?.collect().await };
        answer.await.with_context(|| format!("cannot ask: {sql}"))
    }

    /// The joules of all selected samples.
    pub async fn joules(&self) -> anyhow::Result<f64> {
        let batches = self.ask("SELECT SUM(joules) FROM samples").await?;
        Ok(Columns::of(&batches)?.doubles()?.iter().sum())
    }

    /// The rows of the balance that the selection is a part of: those of which the condition holds, or if it asks what no
    /// balance tells, those of recordings with such samples.
    pub async fn balance_of_selected(&self) -> anyhow::Result<Vec<Row>> {
        let is_of_domain = |row: &Row| match &self.domain {
            Some(domain) => row.domain == *domain,
            None => row.is_top,
        };
        let keys: Option<BTreeSet<(i64, String)>> = match &self.filter {
            None => None,
            Some(filter) => {
                let rows = if filter.is_of_balance() {
                    self.table("all_balance").await?.filter(filter.expression())?
                } else {
                    self.table("samples").await?
                };
                let rows = rows.select(vec![col("recording"), col("domain")])?.distinct()?.collect().await?;
                let mut columns = Columns::of(&rows)?;
                Some(columns.ints()?.into_iter().zip(columns.texts()?).collect())
            }
        };
        // A machine's other domains are there, too, though a function may have spent nothing of them.
        let recordings =
            keys.map(|keys| keys.into_iter().map(|(recording, _)| recording).collect::<BTreeSet<_>>());
        let is_asked = |row: &Row| recordings.as_ref().is_none_or(|known| known.contains(&row.recording));
        Ok(self.balance.iter().filter(|row| is_of_domain(row) && is_asked(row)).cloned().collect())
    }
}

fn check_folder(folder: &Path, table: &str) -> anyhow::Result<()> {
    let path = folder.join(table);
    let how = || {
        format!(
            "{} has no table {table}: make the tables there with `eprof export RECORDINGS --format parquet -o {}`",
            folder.display(),
            folder.display()
        )
    };
    ensure!(files(&path).with_context(how)?.next().is_some(), how());
    Ok(())
}

fn files(folder: &Path) -> anyhow::Result<impl Iterator<Item = PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")))
}

/// Every export says of which version its tables are.
fn check_version(folder: &Path) -> anyhow::Result<()> {
    for path in files(folder)? {
        let cannot = || format!("cannot read {}", path.display());
        let reader =
            SerializedFileReader::new(File::open(&path).with_context(cannot)?).with_context(cannot)?;
        let metadata = reader.metadata().file_metadata().key_value_metadata();
        let found =
            metadata.and_then(|pairs| pairs.iter().find(|pair| pair.key == VERSION_KEY)?.value.as_deref());
        match found {
            Some(VERSION) => {}
            Some(other) => bail!(
                "{} has tables of version {other}, and this eprof reads version {VERSION}: take the eprof that wrote them, \
                 or export the recordings again",
                path.display()
            ),
            None => bail!("{} is not of eprof: no version of its tables is in it", path.display()),
        }
    }
    Ok(())
}

/// Only rows whose window starts in the time that is asked of.
fn within(mut frame: DataFrame, column: &str, selected: &Selected) -> anyhow::Result<DataFrame> {
    let at = |When(micros)| lit(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())));
    let conditions: [Option<Expr>; 2] = [
        selected.since.map(|since| col(column).gt_eq(at(since))),
        selected.until.map(|until| col(column).lt(at(until))),
    ];
    for condition in conditions.into_iter().flatten() {
        frame = frame.filter(condition)?;
    }
    Ok(frame)
}

/// Windows are taken whole.
fn cut_windows(rows: &[Row], until: Option<When>) -> Option<String> {
    let When(until) = until?;
    let cut: BTreeSet<i64> = rows.iter().filter(|row| row.end > until).map(|row| row.recording).collect();
    let count = cut.len();
    (count > 0).then(|| {
        format!(
            "{count} recording(s) go on after --until: they are counted whole, since they start before it"
        )
    })
}

fn balance_rows(batches: &[RecordBatch]) -> anyhow::Result<Vec<Row>> {
    let mut columns = Columns::of(batches)?;
    let [recordings, tops, starts, ends] =
        [columns.ints()?, columns.ints()?, columns.ints()?, columns.ints()?];
    let [nodes, boots, domains, methods] =
        [columns.texts()?, columns.texts()?, columns.texts()?, columns.texts()?];
    let mut joules = Vec::new();
    for _ in 0..6 {
        joules.push(columns.doubles()?);
    }
    let row = |at: usize| {
        let part = |column: usize| Joules::from_joules(joules[column][at]);
        Row {
            recording: recordings[at],
            node: nodes[at].clone(),
            boot: boots[at].clone(),
            domain: domains[at].clone(),
            is_top: tops[at] == 1,
            method: methods[at].clone(),
            start: starts[at],
            end: ends[at],
            balance: Balance {
                measured: part(0),
                attributed: part(1),
                static_energy: part(2),
                other_processes: part(3),
                recorder: part(4),
                lost: part(5),
            },
        }
    };
    Ok((0..recordings.len()).map(row).collect())
}
