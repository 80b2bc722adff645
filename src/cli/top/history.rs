//! What of the windows is kept to be shown: the latest ones, and sums since the start.

use std::collections::VecDeque;
use std::sync::Arc;

use clap::ValueEnum;
use eprof::identity::Dimension;
use eprof::label::Label;
use eprof::live::{Engine, RowKey, RowTotals, RunningTotals, Window, join};
use eprof::profile::{Balance, ProfileMethod};
use eprof::recording::Recording;
use eprof::report::{Grouping, Neighbours, Options, Report, ReportError, Selection, Side, SortKey};
use eprof::units::{Joules, Nanoseconds};
use regex::Regex;

use super::zoom::Zoom;

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    Function,
    Module,
    Process,
    Thread,
    Cgroup,
    Core,
    Line,
}

impl By {
    pub const ALL: [Self; 7] =
        [Self::Function, Self::Module, Self::Process, Self::Thread, Self::Cgroup, Self::Core, Self::Line];

    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Line => "line",
            Self::Module => "module",
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Cgroup => "cgroup",
            Self::Core => "core",
        }
    }

    /// Several of them.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Function => "functions",
            Self::Line => "lines",
            Self::Module => "modules",
            Self::Process => "processes",
            Self::Thread => "threads",
            Self::Cgroup => "control groups",
            Self::Core => "cores",
        }
    }

    /// Whether source lines are to be looked up.
    pub fn tells_lines(self) -> bool {
        self == Self::Line
    }

    fn grouping(self) -> (Grouping, Vec<Dimension>) {
        match self {
            Self::Function => (Grouping::Function, Vec::new()),
            Self::Line => (Grouping::Line, Vec::new()),
            Self::Module => (Grouping::Module, Vec::new()),
            Self::Process => (Grouping::Process, Vec::new()),
            Self::Thread => (Grouping::Thread, Vec::new()),
            Self::Cgroup => (Grouping::Recording, vec![Dimension::Cgroup]),
            Self::Core => (Grouping::Core, Vec::new()),
        }
    }
}

/// Over which time watts are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// The last window.
    Last,
    /// The windows of the last ten seconds.
    Recent,
    /// All.
    Start,
}

impl Span {
    pub fn next(self) -> Self {
        match self {
            Self::Last => Self::Recent,
            Self::Recent => Self::Start,
            Self::Start => Self::Last,
        }
    }
}

/// Windows of so long a time are kept.
const RECENT: Nanoseconds = Nanoseconds::from_millis(10_000);
/// Windows that sparklines show.
const MOST_POINTS: usize = 120;
/// More windows than this are never kept, however short.
const MOST_WINDOWS: usize = 100;

/// One row of a picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub key: RowKey,
    /// Watts of the span.
    pub watts: f64,
    /// One standard error of them.
    pub error: f64,
    /// With what it called.
    pub total_watts: f64,
    /// Of all functions' watts.
    pub share: f64,
    /// Of all windows that the sums are of.
    pub joules: f64,
    /// The same of what it took with all that it called.
    pub total_share: f64,
    pub total_joules: f64,
}

impl Shown {
    /// The row's name, with what tells it from others of the name.
    pub fn name(&self) -> Label {
        let RowKey { name, values, ids, .. } = &self.key;
        match (ids, &values[..]) {
            (_, [value, ..]) => value.clone(),
            ((Some(pid), Some(tid)), []) => Label::new(&format!("{name} ({pid}/{tid})")),
            ((Some(pid), None), []) => Label::new(&format!("{name} ({pid})")),
            _ => name.clone(),
        }
    }

    pub fn module(&self) -> &str {
        self.key.module.as_ref().map_or("", Label::as_str)
    }

    /// The module as reports call it.
    pub fn module_name(&self) -> &str {
        self.key.module.as_ref().map_or("", Label::module_name)
    }
}

/// A domain's watts, window by window.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainWatts {
    pub name: Label,
    pub is_estimated: bool,
    /// Contained in another one.
    pub depth: usize,
    /// Of the last windows.
    pub watts: VecDeque<f64>,
    /// Of all windows that the sums are of.
    joules: Joules,
}

/// What is shown at one time: all of it is of one span, but for the joules of rows, which are those so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub span: Span,
    /// What the sums are since.
    pub since: Since,
    pub method: ProfileMethod,
    pub balance: Balance,
    pub seconds: f64,
    /// Watts of each of [`History::domains`].
    pub domains: Vec<f64>,
    pub rows: Vec<Shown>,
}

/// Where the sums of all windows begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    Start,
    /// With the windows that were kept when rows became something else.
    OtherRows,
}

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Watts,
    Total,
    Joules,
    Name,
}

/// The windows so far.
pub struct History {
    pub by: By,
    pub filter: Option<Regex>,
    /// Only this process or thread.
    pub zoom: Option<Zoom>,
    recent: VecDeque<Kept>,
    totals: RunningTotals,
    since: Since,
    domains: Vec<DomainWatts>,
    windows: u64,
    warnings: Vec<Label>,
}

struct Kept {
    window: Window,
    report: Report,
}

impl History {
    pub fn new(by: By, filter: Option<Regex>) -> Self {
        Self {
            by,
            filter,
            zoom: None,
            recent: VecDeque::new(),
            totals: RunningTotals::default(),
            since: Since::Start,
            domains: Vec::new(),
            windows: 0,
            warnings: Vec::new(),
        }
    }

    /// Windows that were seen.
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// The domains, with their latest watts.
    pub fn domains(&self) -> &[DomainWatts] {
        &self.domains
    }

    /// What the last window's reader must know.
    pub fn warnings(&self) -> &[Label] {
        &self.warnings
    }

    /// A window has come.
    pub fn push(&mut self, window: Window) -> Result<(), ReportError> {
        let report = Report::new(&window.profile, &window.symbols, &self.options())?;
        self.windows += 1;
        let seconds = window.profile.duration.as_secs_f64();
        for (index, domain) in report.summary.domains.iter().enumerate() {
            if self.domains.len() <= index {
                self.domains.push(DomainWatts {
                    name: domain.name.clone(),
                    is_estimated: domain.method == eprof::hardware::Method::Estimated,
                    depth: domain.depth,
                    watts: VecDeque::new(),
                    joules: Joules::ZERO,
                });
            }
            self.domains[index].joules += domain.balance.measured;
            let watts = &mut self.domains[index].watts;
            watts.push_back(domain.balance.measured.as_joules() / seconds.max(1e-9));
            if watts.len() > MOST_POINTS {
                watts.pop_front();
            }
        }
        self.warnings.clone_from(&report.warnings);
        self.totals.add(&report);
        self.recent.push_back(Kept { window, report });
        let time = |kept: &Kept| kept.window.profile.duration;
        while self.recent.len() > 1
            && (self.recent.iter().skip(1).map(time).sum::<Nanoseconds>() >= RECENT
                || self.recent.len() > MOST_WINDOWS)
        {
            self.recent.pop_front();
        }
        Ok(())
    }

    /// Rows stand for something else now, of which the engine may have to find names. Sums begin with the windows that are
    /// kept.
    pub fn change(&mut self, by: By, zoom: Option<Zoom>, engine: &mut Engine) -> Result<(), ReportError> {
        if by.tells_lines() != self.by.tells_lines() {
            engine.set_lines(by.tells_lines());
            self.recent.iter_mut().for_each(|kept| engine.name_again(&mut kept.window));
        }
        (self.by, self.zoom) = (by, zoom);
        let options = self.options();
        let keeps_all = self.windows == self.recent.len() as u64;
        self.since = if keeps_all { self.since } else { Since::OtherRows };
        self.totals = RunningTotals::default();
        for kept in &mut self.recent {
            kept.report = Report::new(&kept.window.profile, &kept.window.symbols, &options)?;
            self.totals.add(&kept.report);
        }
        for (index, joules) in self.of_domains(&self.recent).into_iter().enumerate() {
            self.domains[index].joules = joules;
        }
        Ok(())
    }

    /// What windows' domains measured.
    fn of_domains<'k>(&self, windows: impl IntoIterator<Item = &'k Kept>) -> Vec<Joules> {
        let mut sums = vec![Joules::ZERO; self.domains.len()];
        for kept in windows {
            let domains = &kept.report.summary.domains;
            sums.iter_mut().zip(domains).for_each(|(sum, domain)| *sum += domain.balance.measured);
        }
        sums
    }

    /// What is to be shown; `None` before the first window.
    pub fn picture(&self, span: Span, order: Order) -> Option<Picture> {
        let last = self.recent.back()?;
        let mut sums = RunningTotals::default();
        let sums = match span {
            Span::Start => &self.totals,
            Span::Last => {
                sums.add(&last.report);
                &sums
            }
            Span::Recent => {
                self.recent.iter().for_each(|kept| sums.add(&kept.report));
                &sums
            }
        };
        let seconds = sums.duration().as_secs_f64();
        let watts = |joules: Joules| joules.as_joules() / seconds.max(1e-9);
        let attributed = sums.balance().attributed.as_joules();
        let shown = |(key, of): (&RowKey, &RowTotals)| Shown {
            key: key.clone(),
            watts: watts(of.own),
            error: watts(of.error),
            total_watts: watts(of.total),
            share: if attributed > 0.0 { of.own.as_joules() / attributed } else { 0.0 },
            joules: self.totals.of(key).own.as_joules(),
            total_share: if attributed > 0.0 { of.total.as_joules() / attributed } else { 0.0 },
            total_joules: self.totals.of(key).total.as_joules(),
        };
        let mut rows: Vec<Shown> = sums.rows().map(shown).filter(|row| self.is_wanted(row, order)).collect();
        sort(&mut rows, order);
        let of_domains = match span {
            Span::Last => self.of_domains(self.recent.back()),
            Span::Recent => self.of_domains(&self.recent),
            Span::Start => self.domains.iter().map(|domain| domain.joules).collect(),
        };
        Some(Picture {
            span,
            since: self.since,
            method: last.report.summary.method,
            balance: sums.balance(),
            seconds,
            domains: of_domains.into_iter().map(watts).collect(),
            rows,
        })
    }

    /// Who called a function in the span, or what it called: names and watts, the largest first.
    pub fn neighbours(&self, side: Side, function: &Label, span: Span) -> Vec<(Label, f64)> {
        let options = Options {
            neighbours: Some(Neighbours { side, function: function.as_str().to_owned() }),
            ..self.options_by(By::Function)
        };
        let mut sums = RunningTotals::default();
        let first = match span {
            Span::Last => self.recent.len().saturating_sub(1),
            Span::Recent | Span::Start => 0,
        };
        let mut seconds = 0.0;
        for kept in self.recent.range(first..) {
            seconds += kept.window.profile.duration.as_secs_f64();
            // It did not run in each window.
            if let Ok(report) = Report::new(&kept.window.profile, &kept.window.symbols, &options) {
                sums.add(&report);
            }
        }
        let watts = |of: &RowTotals| of.own.as_joules() / f64::max(seconds, 1e-9);
        let mut rows: Vec<(Label, f64)> =
            sums.rows().map(|(key, of)| (key.name.clone(), watts(of))).collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        rows
    }

    /// The share of samples of the kept windows in which frame pointers alone do not tell the direct caller of a function.
    pub fn missing_callers(&self) -> f64 {
        let callers = self.recent.iter().map(|kept| kept.window.profile.hidden_callers);
        let (missing, all) = callers
            .fold((0, 0), |(missing, all), callers| (missing + callers.out_of_reach, all + callers.samples));
        missing as f64 / f64::max(all as f64, 1.0)
    }

    /// The kept windows as one recording's file, for the span: since the start is no more than what is kept.
    pub fn recording(&self, span: Span) -> anyhow::Result<Vec<u8>> {
        let first = match span {
            Span::Last => self.recent.len().saturating_sub(1),
            Span::Recent | Span::Start => 0,
        };
        let windows: Vec<Arc<Recording>> =
            self.recent.range(first..).map(|kept| Arc::clone(&kept.window.recording)).collect();
        Ok(join(&windows.iter().map(Arc::as_ref).collect::<Vec<_>>())?)
    }

    /// Functions that only called others have nothing of their own to show.
    fn is_wanted(&self, row: &Shown, order: Order) -> bool {
        let has_own = row.watts != 0.0 || row.joules != 0.0;
        (has_own || (order == Order::Total && row.total_watts != 0.0))
            && self
                .filter
                .as_ref()
                .is_none_or(|filter| filter.is_match(row.name().as_str()) || filter.is_match(row.module()))
    }

    fn options(&self) -> Options {
        self.options_by(self.by)
    }

    fn options_by(&self, by: By) -> Options {
        let (by, dimensions) = by.grouping();
        let selection = self.zoom.as_ref().map_or_else(Selection::default, Zoom::selection);
        Options { by, dimensions, selection, inline: false, sort: SortKey::Own, ..Options::default() }
    }
}

/// Sorts rows. Equal ones keep an order that does not change from picture to picture.
pub fn sort(rows: &mut [Shown], order: Order) {
    rows.sort_by(|a, b| {
        let by_size = match order {
            Order::Watts => b.watts.total_cmp(&a.watts),
            Order::Total => b.total_watts.total_cmp(&a.total_watts),
            Order::Joules => b.joules.total_cmp(&a.joules),
            Order::Name => std::cmp::Ordering::Equal,
        };
        by_size.then_with(|| a.key.cmp(&b.key))
    });
}

/// Which time a picture is of.
pub fn time_of(picture: &Picture) -> String {
    let seconds = picture.seconds;
    match (picture.span, picture.since) {
        (Span::Last, _) => "last picture".to_owned(),
        (Span::Recent, _) if seconds < 9.5 => format!("last {seconds:.1} s"),
        (Span::Recent, _) => "last 10 s".to_owned(),
        (Span::Start, Since::Start) => format!("since start ({seconds:.1} s)"),
        (Span::Start, Since::OtherRows) => format!("since other rows ({seconds:.1} s)"),
    }
}

/// How joules were found, as it stands in the balance.
pub fn how(method: ProfileMethod) -> &'static str {
    match method {
        ProfileMethod::Measured => "measured",
        ProfileMethod::Estimated => "ESTIMATED, not measured",
        ProfileMethod::Mixed => "partly measured, partly ESTIMATED",
        ProfileMethod::None => "no joules: no meter, and nothing to estimate by",
    }
}

/// The parts of a balance, with their names here.
pub fn parts(balance: &Balance) -> [(&'static str, Joules); 5] {
    [
        ("functions", balance.attributed),
        ("static", balance.static_energy),
        ("others", balance.other_processes),
        ("eprof", balance.recorder),
        ("lost", balance.lost),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use eprof::analyze::{Dimensions, Options as AnalyzeOptions, analyze};
    use eprof::live::{CutOptions, EngineOptions, Follower};
    use eprof::profile::{Thread, ThreadIndex};
    use eprof::symbolize::Symbols;

    use super::*;

    /// A window, all of whose processes have one name.
    fn window() -> Window {
        let name = "fixtures/recordings/guest-program-only.data";
        let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("it is there");
        let recording = Recording::from_bytes(bytes).expect("a recording");
        let options = AnalyzeOptions { dimensions: Dimensions::ALL, ..AnalyzeOptions::default() };
        let mut profile = analyze(&recording, &options);
        let mut thread = profile.threads[0].clone();
        (thread.name, thread.process_name) = ("sh".to_owned(), "sh".to_owned());
        let of = |pid| Thread { pid, tid: pid + 10, ..thread.clone() };
        profile.threads = vec![of(10), of(11)];
        for (number, cell) in (0..).zip(&mut profile.cells) {
            cell.thread = ThreadIndex(number % 2);
        }
        Window { number: 0, profile, symbols: Symbols::default(), recording: Arc::new(recording) }
    }

    fn engine() -> Engine {
        let options = EngineOptions {
            cut: CutOptions::default(),
            dimensions: Dimensions::ALL,
            model: eprof::analyze::ModelChoice::Auto,
            stored_model: None,
            kernel_cache: None,
            lines: false,
        };
        Engine::new(Follower::create().expect("a file in memory").1, options)
    }

    fn rows(history: &History) -> Vec<Shown> {
        history.picture(Span::Last, Order::Watts).expect("a window").rows
    }

    #[test]
    fn a_process_is_told_from_others_of_its_name() {
        let mut history = History::new(By::Process, None);
        history.push(window()).expect("a report");
        let processes = rows(&history);
        let names: Vec<String> = processes.iter().map(|row| row.name().to_string()).collect();
        assert!(names.len() == 2 && names.contains(&"sh (10)".to_owned()), "{names:?}");
        let all: f64 = processes.iter().map(|row| row.joules).sum();
        for process in processes {
            let zoom = Zoom::of(&process.key);
            assert!(zoom.is_some());
            history.change(By::Function, zoom, &mut engine()).expect("reports");
            let of_functions: f64 = rows(&history).iter().map(|row| row.joules).sum();
            assert!(
                (of_functions - process.joules).abs() < 1e-9 * all,
                "{of_functions} of {}",
                process.joules
            );
            assert!(process.joules < 0.999 * all);
        }
    }
}
