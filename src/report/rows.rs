//! The rows of a report, and the sums by function, line and module. See [`super::cells`] for the others.

use regex::Regex;

use super::frames::{Detail, FrameTable, UNKNOWN};
use super::groups;
use super::parallel::in_parallel_if_large;
use super::select::{Selected, Totals, Weight};
use super::totals_by_frame::sums_by_frame;
use crate::label::Label;
use crate::profile::{Profile, VarianceSums};
use crate::symbolize::Symbols;
use crate::units::{Joules, Watts};

/// What one row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// A function.
    Function,
    /// A line of source code.
    Line,
    /// A program, library or the kernel.
    Module,
    /// A thread.
    Thread,
    /// A process.
    Process,
    /// All processes of one name.
    Command,
    /// A core with its SMT siblings; a CPU where the topology is not known.
    Core,
    /// A sampled event.
    Event,
    /// A kernel of a GPU.
    Kernel,
    /// An energy domain. Its own joules are those that are in no domain inside it.
    Domain,
    /// Recordings by what [`Options::dimensions`](super::Options::dimensions) tell apart, and nothing finer.
    Recording,
}

impl Grouping {
    /// The name of the grouping in options and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Line => "line",
            Self::Module => "module",
            Self::Thread => "thread",
            Self::Process => "process",
            Self::Command => "command",
            Self::Core => "core",
            Self::Event => "event",
            Self::Kernel => "kernel",
            Self::Domain => "domain",
            Self::Recording => "recording",
        }
    }

    /// Rows of this grouping lie above each other on a stack: their totals are more than their own.
    pub fn is_by_frame(self) -> bool {
        matches!(self, Self::Function | Self::Line | Self::Module | Self::Kernel)
    }
}

/// What a row accounts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// Samples of the recorded program.
    Samples,
    /// Joules that no sample was charged with: a line of the balance.
    Balance,
}

/// One row of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What the row accounts for.
    pub kind: RowKind,
    /// What it stands for, by its grouping.
    pub name: Label,
    /// The module of a function or line.
    pub module: Option<Label>,
    /// The place in the source, of rows by line.
    pub place: Option<Place>,
    /// What the recordings of the row are, by each of [`Options::dimensions`](super::Options::dimensions).
    pub values: Vec<Label>,
    /// Process and thread ids, of rows by thread; a process has only the first.
    pub ids: (Option<u32>, Option<u32>),
    /// Of samples right here.
    pub own: Totals,
    /// Of samples here and in whatever was called from here; recursion counts once.
    pub total: Totals,
    /// It is told though it has nothing: a rank or node that was recorded and took no joules.
    pub is_told: bool,
}

/// A place in the source code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The function that the line belongs to.
    pub function: Label,
    /// The file.
    pub file: Label,
    /// The line, from 1; 0 where the compiler gave none.
    pub line: u32,
}

impl Row {
    pub(super) fn new(name: Label, own: Totals, total: Totals) -> Self {
        let values = Vec::new();
        Self {
            kind: RowKind::Samples,
            name,
            module: None,
            place: None,
            values,
            ids: (None, None),
            own,
            total,
            is_told: false,
        }
    }

    /// A row for recordings that were asked for and of which nothing was sampled.
    pub(super) fn without_samples(values: &[Label]) -> Self {
        let row = Self::new(Label::new("[no samples]"), Totals::default(), Totals::default());
        Self { values: values.to_vec(), is_told: true, ..row }
    }

    /// A row for joules that no sample was charged with.
    pub(super) fn of_balance(name: &str, joules: Joules) -> Self {
        let totals = Totals::of_joules(joules);
        Self { kind: RowKind::Balance, ..Self::new(Label::new(name), totals, totals) }
    }
}

/// So many of those that did nothing are named.
const IDLE_NAMED: usize = 5;

/// Which ranks, nodes, jobs or labels among the rows took nothing; `None` if each took something.
pub(super) fn idle(rows: &[Row]) -> Option<String> {
    let idle: Vec<&Row> = rows.iter().filter(|row| row.is_told && row.total.is_empty()).collect();
    let name = |row: &&Row| groups::title(&row.values).as_str().to_owned();
    let named: Vec<String> = idle.iter().take(IDLE_NAMED).map(name).collect();
    let rest = idle.len().saturating_sub(IDLE_NAMED);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    (!named.is_empty()).then(|| named.join("; ") + &rest)
}

/// What rows are sorted by; the largest comes first, and names in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortKey {
    /// The row's own weight.
    Own,
    /// The row's weight with all that it called.
    Total,
    /// Joules of the row itself.
    Joules,
    /// Samples of the row itself.
    Samples,
    /// Time of the row itself.
    Time,
    /// Power while running.
    Watts,
    /// Name.
    Name,
}

/// Own and total sums by function, line or module: by key of a [`FrameTable`].
pub(super) struct FrameSums<'a> {
    symbols: &'a Symbols,
    selected: &'a Selected,
    sums: Vec<(Totals, Totals)>,
    variances: Option<VarianceSums<'a>>,
}

impl<'a> FrameSums<'a> {
    /// Nothing yet, of so many keys.
    pub fn new(profile: &'a Profile, symbols: &'a Symbols, selected: &'a Selected, keys: usize) -> Self {
        let variances = VarianceSums::new(profile, &selected.domains);
        Self { symbols, selected, sums: vec![(Totals::default(), Totals::default()); keys], variances }
    }

    /// Adds a part of the profile, of which `stacks` are the sums by stack.
    pub fn add(&mut self, part: &Profile, frames: &FrameTable, stacks: &[Totals]) {
        let own_row = |cell: usize| {
            let stack = part.cells[cell].stack;
            let counts = !stacks[stack.0 as usize].is_empty();
            counts.then(|| frames.of_stack(part, stack).next().unwrap_or(UNKNOWN) as usize)
        };
        let (symbols, selected, variances) = (self.symbols, self.selected, &mut self.variances);
        let (found, ()) = in_parallel_if_large(
            part.cells.len(),
            || sums_by_frame(part, frames, stacks),
            || {
                if let Some(variances) = variances {
                    selected.add_variances(part, symbols, &selected.domains, own_row, variances);
                }
            },
        );
        for ((own, total), (more_own, more_total)) in self.sums.iter_mut().zip(found) {
            *own += more_own;
            *total += more_total;
        }
    }

    /// The sums.
    pub fn finish(self) -> Vec<(Totals, Totals)> {
        let Self { mut sums, variances, .. } = self;
        for (own, total) in &mut sums {
            // The same joules added up in another order differ in the last digit, and no row has more itself than in total.
            if total.joules < own.joules && total.samples == own.samples {
                total.joules = own.joules;
            }
        }
        if let Some(variances) = variances.map(|variances| variances.finish(sums.len())) {
            for ((own, _), variance) in sums.iter_mut().zip(variances) {
                own.add_variance(variance);
            }
        }
        sums
    }
}

/// The row of one key.
pub(super) fn frame_row(
    symbols: &Symbols,
    frames: &FrameTable,
    detail: Detail,
    key: u32,
    own: Totals,
    total: Totals,
) -> Row {
    let function = frames.function(key);
    let module = Some(function.module.clone());
    match detail {
        Detail::Function | Detail::ClassedFunction => {
            Row { module, ..Row::new(function.name.clone(), own, total) }
        }
        Detail::Module => Row::new(function.module.clone(), own, total),
        Detail::Line => {
            let frame = frames.keys[key as usize];
            let file = frame.file.and_then(|file| symbols.files().get(file.0 as usize));
            let Some(file) = file else {
                let name = Label::new(&format!("{} [no line]", function.name));
                return Row { module, ..Row::new(name, own, total) };
            };
            let line = frame.line.unwrap_or(0);
            let place = Place { function: function.name.clone(), file: Label::new(file), line };
            let name = Label::new(&format!("{file}:{line}"));
            Row { module, place: Some(place), ..Row::new(name, own, total) }
        }
    }
}

/// A number to twelve digits. The same joules added up in another order differ in the last ones, which must not
/// decide what comes first.
fn without_last_digits(number: f64) -> f64 {
    const LAST: u64 = 1 << 12;
    f64::from_bits(number.to_bits().saturating_add(LAST / 2) & !(LAST - 1))
}

/// Sorts rows, largest first; equal ones by total, name, module and ids, so that the order is always the same.
pub(super) fn sort(rows: &mut [Row], key: SortKey, weight: Weight) {
    let watts = |row: &Row| row.own.watts().map_or(-1.0, Watts::as_watts);
    let sizes = |row: &Row| {
        let total = row.total.weight(weight);
        let (first, second) = match key {
            SortKey::Own => (row.own.weight(weight), total),
            SortKey::Total => (total, row.own.weight(weight)),
            SortKey::Joules => (row.own.joules.as_joules(), total),
            SortKey::Samples => (row.own.samples as f64, total),
            SortKey::Time => (row.own.time.as_nanos() as f64, total),
            SortKey::Watts => (watts(row), total),
            SortKey::Name => (0.0, 0.0),
        };
        (without_last_digits(first), without_last_digits(second))
    };
    let line = |row: &Row| row.place.as_ref().map(|place| place.line);
    rows.sort_by(|a, b| {
        let (size_a, size_b) = (sizes(a), sizes(b));
        size_b.0.total_cmp(&size_a.0).then_with(|| size_b.1.total_cmp(&size_a.1)).then_with(|| {
            let order = |row: &'_ Row| (row.module.clone(), line(row), row.ids);
            a.name.cmp(&b.name).then_with(|| (order(a), &a.values).cmp(&(order(b), &b.values)))
        })
    });
}

/// A row is kept by its name, its function or its module.
pub(super) fn matches(row: &Row, pattern: &Regex) -> bool {
    pattern.is_match(row.name.as_str())
        || row.values.iter().any(|value| pattern.is_match(value.as_str()))
        || row.module.as_ref().is_some_and(|module| pattern.is_match(module.as_str()))
        || row.place.as_ref().is_some_and(|place| pattern.is_match(place.function.as_str()))
}
