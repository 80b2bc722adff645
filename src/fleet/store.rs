//! The tables of a place, selected and checked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use eprof::profile::Balance;
use eprof::units::Joules;

use crate::args::{Reached, Selected};
use crate::balance::{self, Row, Sum};
use crate::does_not_add_up::{DoesNotAddUp, WindowsRemoved};
use crate::engine::Engine;
use crate::filter::Filter;
use crate::place::Place;
use crate::rows::Columns;
use crate::sources::Sources;
use crate::when::When;

/// The tables of a place, and what of them is selected.
pub struct Store {
    engine: Engine,
    /// What questions are asked of.
    pub sources: Sources,
    /// The balance of all windows that are asked of, each domain.
    pub balance: Vec<Row>,
    /// What is to be said beside the answer.
    pub warnings: Vec<String>,
}

impl Store {
    /// Opens a place. `condition` is asked beside the selection's own.
    ///
    /// # Errors
    /// If the place has no such tables, or if their sums differ.
    pub async fn open(
        place: &Place,
        selected: &Selected,
        reached: &Reached,
        condition: Option<&Filter>,
    ) -> anyhow::Result<Self> {
        let engine = Engine::open(place, reached).await?;
        let sources = selected.sources(place, condition);
        let mut store = Self { engine, sources, balance: Vec::new(), warnings: Vec::new() };
        if let Place::ClickHouse(_) = place {
            let sql = store.sources.pushes("MAX(push)", "");
            store.sources.last_push = store.ask(&sql).await?.ints()?.first().copied();
        }
        store.sources.has_errors = store.has_errors().await.map_err(|error| of(place, error))?;
        // Where nothing was asked of, all adds up.
        store.check().await.map_err(|error| match error.is::<DoesNotAddUp>() {
            true => error.context(format!("{place} does not add up")),
            false => of(place, error),
        })?;
        store.check_domain()?;
        Ok(store)
    }

    /// Whether samples tell of their errors, which those of older tables do not. Engines have no word in common for a column that
    /// is missing: where the question fails, one of a column that all tables have tells whether the place answers at all.
    async fn has_errors(&self) -> anyhow::Result<bool> {
        let probe = self.sources.probe_of_samples("chance");
        match self.ask(&probe).await {
            Ok(_) => return Ok(true),
            Err(error) if error.is::<WindowsRemoved>() => return Err(error),
            Err(_) => {}
        }
        self.ask(&self.sources.probe_of_samples("joules")).await?;
        Ok(self.ask(&probe).await.is_ok())
    }

    /// Asks a question of [`Store::sources`].
    pub async fn ask(&self, sql: &str) -> anyhow::Result<Columns> {
        self.engine.ask(sql).await
    }

    /// Holds all samples of the windows in question against their balance.
    async fn check(&mut self) -> anyhow::Result<()> {
        const COLUMNS: &str = "recording, is_top, window_start, window_end, node, boot, domain, method, measured, functions, \
                               static, others, recorder, lost";
        let sql = format!("SELECT {COLUMNS} FROM {}", self.sources.balance(COLUMNS));
        self.balance = balance_rows(self.ask(&sql).await?)?;
        self.check_pushes().await?;
        ensure!(!self.balance.is_empty(), "{}", self.sources.nothing());
        let sums = format!(
            "SELECT recording, domain, SUM(joules) AS j, MAX(time) AS t FROM {} GROUP BY recording, domain",
            self.sources.timed_samples("recording, domain, joules, time")
        );
        let mut columns = self.ask(&sums).await?;
        let keys = columns.ints()?.into_iter().zip(columns.texts()?);
        let sums = columns.doubles()?.into_iter().zip(columns.ints()?);
        let sums: BTreeMap<(i64, String), Sum> =
            keys.zip(sums.map(|(joules, time)| Sum { joules, time })).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        self.sources.unfinished = balance::check(&self.balance, &sums, now).map_err(DoesNotAddUp)?;
        self.warnings.extend(unfinished(&self.sources.unfinished));
        self.warnings.extend(balance::overlaps(&self.balance));
        self.warnings.extend(cut_windows(&self.balance, self.sources.until));
        Ok(())
    }

    /// In ClickHouse, a recording counts by its row of pushes: what that counts must be there.
    async fn check_pushes(&self) -> anyhow::Result<()> {
        if self.sources.last_push.is_none() {
            return Ok(());
        }
        let mut columns = self.ask(&self.sources.pushes("recording, push, balance", "")).await?;
        let pushes = columns.ints()?.into_iter().zip(columns.ints()?).zip(columns.ints()?);
        let mut last: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for ((recording, push), rows) in pushes {
            let known = last.entry(recording).or_insert((push, rows));
            *known = (*known).max((push, rows));
        }
        let mut there: BTreeMap<i64, i64> = BTreeMap::new();
        self.balance.iter().for_each(|row| *there.entry(row.recording).or_default() += 1);
        for (recording, (_, pushed)) in last {
            let found = there.get(&recording).copied().unwrap_or(0);
            if found < pushed {
                return Err(DoesNotAddUp(format!(
                    "{pushed} rows of balance were pushed of the recording {:016x}, and {found} are there: its samples and balance \
                     were removed, and its row of pushes was not. Remove that, too, or push the recording again (without the list \
                     .eprof-pushed-* of its folder)",
                    recording as u64
                ))
                .into());
            }
        }
        Ok(())
    }

    fn check_domain(&self) -> anyhow::Result<()> {
        let Some(domain) = &self.sources.domain else { return Ok(()) };
        let domains: BTreeSet<&str> = self.balance.iter().map(|row| row.domain.as_str()).collect();
        let known = domains.iter().copied().collect::<Vec<_>>().join(", ");
        ensure!(
            domains.contains(domain.as_str()),
            "there is no energy domain {domain:?}; there are: {known}"
        );
        Ok(())
    }

    /// The joules of all selected samples.
    pub async fn joules(&self) -> anyhow::Result<f64> {
        let sql = format!("SELECT SUM(joules) AS j FROM {}", self.sources.samples("joules"));
        Ok(self.ask(&sql).await?.doubles()?.iter().sum())
    }

    /// The rows of the balance that the selection is a part of: those of windows of which the condition holds as far as it is of
    /// windows as a whole, or if it asks what no balance tells, those of windows with such samples. What samples are selected
    /// within windows changes nothing of what these measured.
    pub async fn balance_of_selected(&self) -> anyhow::Result<Vec<Row>> {
        let is_of_domain = |row: &Row| match &self.sources.domain {
            Some(domain) => row.domain == *domain,
            None => row.is_top,
        };
        // A machine's other domains are there, too, though a function may have spent nothing of them.
        let of_windows = self.sources.filter.as_ref().and_then(Filter::of_windows);
        let recordings: Option<BTreeSet<i64>> = match &of_windows {
            None => None,
            Some(filter) => {
                let rows = if filter.is_of_balance() {
                    self.sources.filtered_balance("recording", filter)
                } else {
                    self.sources.samples_of("recording", of_windows.as_ref())
                };
                let mut columns = self.ask(&format!("SELECT DISTINCT recording FROM {rows}")).await?;
                Some(columns.ints()?.into_iter().collect())
            }
        };
        let is_asked = |row: &Row| recordings.as_ref().is_none_or(|known| known.contains(&row.recording));
        Ok(self.balance.iter().filter(|row| is_of_domain(row) && is_asked(row)).cloned().collect())
    }
}

/// An error with the place that it is of, where it does not name that itself.
fn of(place: &Place, error: anyhow::Error) -> anyhow::Error {
    if error.is::<WindowsRemoved>() { error } else { error.context(place.to_string()) }
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

fn unfinished(recordings: &[i64]) -> Option<String> {
    let count = recordings.len();
    (count > 0).then(|| {
        format!(
            "{count} recording(s) of the last hour are being written or removed: without a balance they are not counted"
        )
    })
}

fn balance_rows(mut columns: Columns) -> anyhow::Result<Vec<Row>> {
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
