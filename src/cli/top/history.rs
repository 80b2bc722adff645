//! What of the windows is kept to be shown: the latest ones, and sums since the start.

use std::collections::VecDeque;
use std::sync::Arc;

use eprof::label::Label;
use eprof::live::{Engine, RowKey, RowTotals, RunningTotals, Window, join};
use eprof::profile::{Balance, ProfileMethod};
use eprof::recording::Recording;
use eprof::report::{FunctionChoice, Neighbours, Options, Report, ReportError, Side};
use eprof::units::{Joules, Nanoseconds};
use regex::Regex;

use super::rows::{By, Rows};
use super::so_far::{Since, SoFar, Sums};

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
    /// Of all windows that the picture's sums are of.
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
}

/// What is shown at one time: all of it is of one span, but for the joules of rows, which are those so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub span: Span,
    /// What joules are sums of.
    pub since: Since,
    pub method: ProfileMethod,
    pub balance: Balance,
    pub seconds: f64,
    /// Watts of each of [`History::domains`].
    pub domains: Vec<f64>,
    pub rows: Vec<Shown>,
}

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Watts,
    Total,
    Joules,
    Name,
}

/// The windows so far. A copy shares what is large of them.
#[derive(Clone)]
pub struct History {
    pub shown: Rows,
    pub filter: Option<Regex>,
    /// No window comes to it any more: it is looked at while others go on.
    pub is_held: bool,
    recent: VecDeque<Kept>,
    so_far: SoFar,
    domains: Vec<DomainWatts>,
    windows: u64,
    warnings: Vec<Label>,
}

#[derive(Clone)]
struct Kept {
    window: Arc<Window>,
    report: Report,
}

impl History {
    /// Shows these rows. `also` are kinds of rows that may be shown later, with sums since the start.
    pub fn new(by: By, also: &[By], filter: Option<Regex>) -> Self {
        let shown = Rows { by, zoom: None };
        Self {
            filter,
            is_held: false,
            recent: VecDeque::new(),
            so_far: SoFar::new(&shown, also),
            shown,
            domains: Vec::new(),
            windows: 0,
            warnings: Vec::new(),
        }
    }

    /// What there is now, to be looked at while it goes on.
    pub fn held(&self) -> Self {
        Self { is_held: true, ..self.clone() }
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
    pub fn push(&mut self, window: Window) -> anyhow::Result<()> {
        let in_place_of_time = window.profile.division.as_ref().and_then(|of| of.in_place_of_time.as_ref());
        if let Some(event) = in_place_of_time {
            anyhow::bail!(
                "no event that is sampled tells time, and nobody knows the watts of anything by {event} alone; time as well: \
                 eprof top -e cpu-clock,{event}; how often it happens, and where: eprof record -e {event}"
            );
        }
        let report = self.so_far.add(&window, &self.shown)?;
        self.windows += 1;
        let seconds = window.profile.duration.as_secs_f64();
        for (index, domain) in report.summary.domains.iter().enumerate() {
            if self.domains.len() <= index {
                self.domains.push(DomainWatts {
                    name: domain.name.clone(),
                    is_estimated: domain.method == eprof::hardware::Method::Estimated,
                    depth: domain.depth,
                    watts: VecDeque::new(),
                });
            }
            let watts = &mut self.domains[index].watts;
            watts.push_back(domain.balance.measured.as_joules() / seconds.max(1e-9));
            if watts.len() > MOST_POINTS {
                watts.pop_front();
            }
        }
        self.warnings.clone_from(&report.warnings);
        self.recent.push_back(Kept { window: Arc::new(window), report });
        let time = |kept: &Kept| kept.window.profile.duration;
        while self.recent.len() > 1
            && (self.recent.iter().skip(1).map(time).sum::<Nanoseconds>() >= RECENT
                || self.recent.len() > MOST_WINDOWS)
        {
            self.recent.pop_front();
        }
        Ok(())
    }

    /// Other rows are shown now, of which the engine may have to find names. Sums that were not kept since the start begin
    /// with the windows that are kept.
    pub fn change(&mut self, shown: Rows, engine: &mut Engine) -> Result<(), ReportError> {
        if shown.by.tells_lines() != self.shown.by.tells_lines() {
            engine.set_lines(shown.by.tells_lines());
            self.recent.iter_mut().for_each(|kept| engine.name_again(Arc::make_mut(&mut kept.window)));
        }
        self.shown = shown;
        let options = self.shown.options();
        for kept in &mut self.recent {
            kept.report = Report::new(&kept.window.profile, &kept.window.symbols, &options)?;
        }
        self.so_far.show(&self.shown, self.recent.iter().map(|kept| &kept.report));
        Ok(())
    }

    /// What is to be shown; `None` before the first window.
    pub fn picture(&self, span: Span, order: Order) -> Option<Picture> {
        let last = self.recent.back()?;
        let so_far = self.so_far.of(&self.shown)?;
        let mut sums = Sums::default();
        let Sums { rows: sums, domains } = match span {
            Span::Start => so_far,
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
        let share = |joules: Joules| if attributed > 0.0 { joules.as_joules() / attributed } else { 0.0 };
        let shown = |(key, of): (&RowKey, &RowTotals)| {
            let so_far = so_far.rows.of(key);
            Shown {
                key: key.clone(),
                watts: watts(of.own),
                error: watts(of.error),
                total_watts: watts(of.total),
                share: share(of.own),
                joules: so_far.own.as_joules(),
                total_share: share(of.total),
                total_joules: so_far.total.as_joules(),
            }
        };
        let mut rows: Vec<Shown> = sums.rows().map(shown).filter(|row| self.is_wanted(row, order)).collect();
        sort(&mut rows, order);
        Some(Picture {
            span,
            since: so_far.since(self.windows),
            method: last.report.summary.method,
            balance: sums.balance(),
            seconds,
            domains: domains.iter().copied().map(watts).collect(),
            rows,
        })
    }

    /// Who called a function in the span, or what it called: names and watts, the largest first.
    pub fn neighbours(&self, side: Side, function: &RowKey, span: Span) -> Vec<(Label, f64)> {
        let RowKey { name, module, .. } = function.clone();
        let options = Options {
            neighbours: Some(Neighbours { side, function: FunctionChoice::One { name, module } }),
            ..Rows { by: By::Function, zoom: self.shown.zoom.clone() }.options()
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
        (Span::Last, _) => format!("last {seconds:.1} s"),
        (Span::Recent, _) if seconds < 9.5 => format!("last {seconds:.1} s"),
        (Span::Recent, _) => "last 10 s".to_owned(),
        (Span::Start, Since::Start) => format!("since start ({seconds:.1} s)"),
        (Span::Start, Since::Last(_)) => format!("last {seconds:.1} s"),
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

    use super::super::zoom::Zoom;
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
        profile.duration = Nanoseconds::from_millis(3000);
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
            keeps_files: true,
        };
        Engine::new(Follower::create().expect("a file in memory").1, options)
    }

    fn rows(history: &History) -> Vec<Shown> {
        history.picture(Span::Last, Order::Watts).expect("a window").rows
    }

    #[test]
    fn a_process_is_told_from_others_of_its_name() {
        let mut history = History::new(By::Process, &[], None);
        history.push(window()).expect("a report");
        let processes = rows(&history);
        let names: Vec<String> = processes.iter().map(|row| row.name().to_string()).collect();
        assert!(names.len() == 2 && names.contains(&"sh (10)".to_owned()), "{names:?}");
        let all: f64 = processes.iter().map(|row| row.joules).sum();
        for process in processes {
            let zoom = Zoom::of(&process.key);
            assert!(zoom.is_some());
            history.change(Rows { by: By::Function, zoom }, &mut engine()).expect("reports");
            let of_functions: f64 = rows(&history).iter().map(|row| row.joules).sum();
            assert!(
                (of_functions - process.joules).abs() < 1e-9 * all,
                "{of_functions} of {}",
                process.joules
            );
            assert!(process.joules < 0.999 * all);
        }
    }

    /// The sum of the rows' joules, and what they are of.
    fn so_far(history: &History) -> (f64, Since) {
        let picture = history.picture(Span::Last, Order::Watts).expect("a window");
        (picture.rows.iter().map(|row| row.joules).sum(), picture.since)
    }

    #[test]
    fn all_kinds_of_rows_have_sums_since_the_start_or_say_of_what_they_are() {
        let mut history = History::new(By::Process, &By::ALL, None);
        (0..7).for_each(|_| history.push(window()).expect("a report"));
        let whole = window().profile.domains[0].balance.attributed.as_joules();
        let of_one = {
            let mut one = History::new(By::Process, &[], None);
            one.push(window()).expect("a report");
            so_far(&one).0
        };
        assert!(of_one >= whole * 0.999, "{of_one} of {whole}");
        let near = |(sum, since): (f64, Since), windows: f64, expected| {
            assert!((sum - windows * of_one).abs() < 1e-6 * of_one, "{sum}, not {windows} of {of_one}");
            // Seconds are not whole in binary.
            let of = |since| format!("{since:.3?}");
            assert_eq!(of(since), of(expected));
        };
        near(so_far(&history), 7.0, Since::Start);
        let mut engine = engine();
        let mut change = |history: &mut History, by, zoom: Option<Zoom>| {
            history.change(Rows { by, zoom }, &mut engine).expect("reports");
        };
        for by in [By::Thread, By::Function, By::Module, By::Cgroup, By::Core] {
            change(&mut history, by, None);
            near(so_far(&history), 7.0, Since::Start);
        }
        // Lines are not looked up until they are shown: of the kept windows, and of those that come.
        change(&mut history, By::Line, None);
        near(so_far(&history), 4.0, Since::Last(12.0));
        history.push(window()).expect("a report");
        near(so_far(&history), 5.0, Since::Last(15.0));
        let picture = history.picture(Span::Start, Order::Watts).expect("a window");
        assert_eq!(time_of(&picture), "last 15.0 s");
        // The others went on meanwhile.
        change(&mut history, By::Process, None);
        near(so_far(&history), 8.0, Since::Start);
        let process = Zoom::of(&rows(&history)[0].key);
        change(&mut history, By::Function, process);
        assert_eq!(so_far(&history).1, Since::Last(12.0));
        change(&mut history, By::Function, None);
        near(so_far(&history), 8.0, Since::Start);
    }
}
