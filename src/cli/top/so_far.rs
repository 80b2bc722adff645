//! Sums since the start, of all kinds of rows that may be shown.

use eprof::live::{RunningTotals, Window};
use eprof::report::{Options, Report, ReportError, Row, Summary, with_rows_beside};
use eprof::units::Joules;

use super::rows::{By, Rows};

/// What the windows of one time have together.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    pub rows: RunningTotals,
    /// What each domain measured.
    pub domains: Vec<Joules>,
}

impl Sums {
    /// Adds a window.
    pub fn add(&mut self, report: &Report) {
        self.add_rows(&report.rows, &report.summary);
    }

    /// Adds a window's rows of some kind.
    fn add_rows(&mut self, rows: &[Row], summary: &Summary) {
        self.rows.add_rows(rows, summary);
        let domains = &summary.domains;
        self.domains.resize(self.domains.len().max(domains.len()), Joules::ZERO);
        self.domains.iter_mut().zip(domains).for_each(|(sum, domain)| *sum += domain.balance.measured);
    }

    /// What they are of, where there were so many windows.
    pub fn since(&self, windows: u64) -> Since {
        match self.rows.windows() == windows {
            true => Since::Start,
            false => Since::Last(self.rows.duration().as_secs_f64()),
        }
    }
}

/// Which windows sums are of: always of the last ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Since {
    /// All.
    Start,
    /// Those of so many seconds.
    Last(f64),
}

/// Sums of several kinds of rows. Some are kept from the start on. Others cost too much for that, as lines, whose names are not
/// looked up until they are shown, or cannot be foreseen, as a process's own functions: these begin with the windows that are kept
/// when they are first shown.
#[derive(Debug, Clone)]
pub struct SoFar {
    always: Vec<Rows>,
    kept: Vec<(Rows, Sums)>,
}

impl SoFar {
    /// Of these rows, and of `also`.
    pub fn new(shown: &Rows, also: &[By]) -> Self {
        let mut always = vec![shown.clone()];
        for &by in also.iter().filter(|by| !by.tells_lines()) {
            let rows = Rows { by, zoom: None };
            if !always.contains(&rows) {
                always.push(rows);
            }
        }
        Self { kept: always.iter().map(|rows| (rows.clone(), Sums::default())).collect(), always }
    }

    /// Adds a window, and gives the report of what is shown of it.
    pub fn add(&mut self, window: &Window, shown: &Rows) -> Result<Report, ReportError> {
        let others = self.kept.iter().filter(|(rows, _)| rows != shown);
        let others: Vec<Options> = others.map(|(rows, _)| rows.options()).collect();
        let (report, rows) = with_rows_beside(&window.profile, &window.symbols, &shown.options(), &others)?;
        let mut of_others = rows.iter();
        for (rows, sums) in &mut self.kept {
            match rows == shown {
                true => sums.add(&report),
                false => {
                    let rows = of_others.next().map_or(&[][..], Vec::as_slice);
                    sums.add_rows(rows, &report.summary);
                }
            }
        }
        Ok(report)
    }

    /// Other rows are shown now, which those that are kept of the windows have.
    pub fn show<'r>(&mut self, shown: &Rows, recent: impl Iterator<Item = &'r Report>) {
        let always = &self.always;
        // Lines are known as long as they are shown, and a zoom is over when another begins.
        let is_kept = |rows: &Rows| {
            always.contains(rows) && !rows.by.tells_lines()
                || rows == shown
                || (rows.zoom.is_some() && rows.zoom == shown.zoom && !rows.by.tells_lines())
        };
        self.kept.retain(|(rows, _)| is_kept(rows));
        if self.of(shown).is_none() {
            let mut sums = Sums::default();
            recent.for_each(|report| sums.add(report));
            self.kept.push((shown.clone(), sums));
        }
    }

    /// The sums of these rows, if they are kept.
    pub fn of(&self, rows: &Rows) -> Option<&Sums> {
        self.kept.iter().find(|(kept, _)| kept == rows).map(|(_, sums)| sums)
    }
}
