//! Sums by thread, process, core and domain: of whole cells, whatever their stacks.

use rustc_hash::FxHashMap;

use super::groups::{self, Groups};
use super::rows::{Grouping, Row};
use super::select::{Selected, Totals};
use crate::hardware::CpuInfo;
use crate::identity::Dimension;
use crate::label::Label;
use crate::profile::{BALANCE_TOLERANCE, DomainEnergy, EventTotals, Profile, RecordingId, VarianceSums};
use crate::symbolize::Symbols;
use crate::units::Joules;

/// Sums by thread, process, name of process, core or event.
pub(super) struct CellSums<'a> {
    profile: &'a Profile,
    symbols: &'a Symbols,
    selected: &'a Selected,
    rows: Vec<Row>,
    row_of: RowOf,
    variances: Option<VarianceSums<'a>>,
}

/// What decides the row of a cell.
enum RowOf {
    Event,
    Thread(Vec<usize>),
    Core(CoreRows),
}

impl<'a> CellSums<'a> {
    /// Nothing yet.
    pub fn new(
        profile: &'a Profile,
        symbols: &'a Symbols,
        selected: &'a Selected,
        grouping: Grouping,
        dimensions: &[Dimension],
    ) -> Self {
        let mut rows = Vec::new();
        let row_of = match grouping {
            Grouping::Core => RowOf::Core(CoreRows::default()),
            Grouping::Event => {
                let empty = Totals::default();
                let row = |event: &EventTotals| Row::new(Label::new(&event.name), empty, empty);
                rows.extend(profile.events.iter().map(row));
                RowOf::Event
            }
            Grouping::Recording => {
                let groups = Groups::of(profile, dimensions);
                rows.extend(groups.values.iter().zip(&groups.of_recording).map(|(values, &is_told)| {
                    let row = Row::new(groups::title(values), Totals::default(), Totals::default());
                    Row { values: values.clone(), is_told, ..row }
                }));
                RowOf::Thread(groups.of_thread)
            }
            _ => RowOf::Thread(thread_rows(profile, grouping, &mut rows)),
        };
        let variances = VarianceSums::new(profile, &selected.domains);
        Self { profile, symbols, selected, rows, row_of, variances }
    }

    /// Adds a part of the profile. `stacks` says which of its stacks count.
    pub fn add(&mut self, part: &Profile, stacks: &[bool]) {
        let mut row_of_cell = vec![None; part.cells.len()];
        for (index, cell, totals) in
            self.selected.cells(part).filter(|(_, cell, _)| stacks[cell.stack.0 as usize])
        {
            let row = match &mut self.row_of {
                RowOf::Event => cell.event as usize,
                RowOf::Thread(rows) => rows[cell.thread.0 as usize],
                RowOf::Core(cores) => {
                    let thread = &self.profile.threads[cell.thread.0 as usize];
                    cores.row(self.profile, thread.recording, cell.cpu, &mut self.rows)
                }
            };
            self.rows[row].own += totals;
            self.rows[row].total += totals;
            row_of_cell[index] = Some(row);
        }
        if let Some(variances) = &mut self.variances {
            let domains = &self.selected.domains;
            let row_of = |cell: usize| row_of_cell[cell];
            self.selected.add_variances(part, self.symbols, domains, row_of, variances);
        }
    }

    /// The rows that have something, and those that are told though they have nothing.
    pub fn finish(self) -> Vec<Row> {
        let Self { mut rows, variances, .. } = self;
        if let Some(variances) = variances.map(|variances| variances.finish(rows.len())) {
            for (row, variance) in rows.iter_mut().zip(variances) {
                for sum in [&mut row.own, &mut row.total] {
                    sum.add_variance(variance);
                }
            }
        }
        rows.retain(|row| row.is_told || !row.total.is_empty());
        rows
    }
}

/// Makes the rows of all threads and tells for each thread which one is its.
fn thread_rows(profile: &Profile, grouping: Grouping, rows: &mut Vec<Row>) -> Vec<usize> {
    let mut known: FxHashMap<(u32, u32, u32, &str), usize> = FxHashMap::default();
    let threads = profile.threads.iter();
    threads
        .map(|thread| {
            // Processes of different machines may have one number.
            let machine =
                profile.recordings.get(thread.recording.0 as usize).map_or(0, |origin| origin.machine);
            let (pid, tid) = thread.ids().unzip();
            let (key, name, ids) = match grouping {
                Grouping::Thread => ((machine, thread.pid, thread.tid, ""), &thread.name, (pid, tid)),
                Grouping::Process => ((machine, thread.pid, 0, ""), &thread.process_name, (pid, None)),
                _ => ((0, 0, 0, thread.process_name.as_str()), &thread.process_name, (None, None)),
            };
            let name = Label::new(name);
            let row = *known.entry(key).or_insert_with(|| {
                rows.push(Row { ids, ..Row::new(name.clone(), Totals::default(), Totals::default()) });
                rows.len() - 1
            });
            // A shell that became a program is known by the program: the last name counts.
            rows[row].name = name;
            row
        })
        .collect()
}

/// The rows of cores, made as their CPUs are met.
#[derive(Default)]
struct CoreRows {
    of_cpu: FxHashMap<(u32, Option<u32>), usize>,
    of_core: FxHashMap<(u32, u32, u32, u32), usize>,
}

impl CoreRows {
    fn row(
        &mut self,
        profile: &Profile,
        recording: RecordingId,
        cpu: Option<u32>,
        rows: &mut Vec<Row>,
    ) -> usize {
        let origin = profile.recordings.get(recording.0 as usize);
        let machine = origin.map_or(0, |origin| origin.machine);
        if let Some(&row) = self.of_cpu.get(&(machine, cpu)) {
            return row;
        }
        let cpus = match origin {
            Some(origin) if profile.machines.len() > 1 => &origin.cpus,
            _ => &profile.cpus,
        };
        let node = profile.machines.get(machine as usize).filter(|_| profile.machines.len() > 1);
        let mut add = |label: String| {
            let label = node.map_or_else(|| label.clone(), |node| format!("{}: {label}", node.name));
            rows.push(Row::new(Label::new(&label), Totals::default(), Totals::default()));
            rows.len() - 1
        };
        let row = match cpu.map(|cpu| (cpu, cpus.iter().rfind(|info| info.cpu == cpu))) {
            None => add("[unknown CPU]".to_owned()),
            Some((cpu, None)) => add(format!("CPU {cpu}")),
            Some((_, Some(here))) => *self
                .of_core
                .entry((machine, here.package, here.die, here.core))
                .or_insert_with(|| add(core_name(cpus, here))),
        };
        self.of_cpu.insert((machine, cpu), row);
        row
    }
}

fn core_name(cpus: &[CpuInfo], here: &CpuInfo) -> String {
    let place = |info: &CpuInfo| (info.package, info.die, info.core);
    let siblings = cpus.iter().filter(|info| place(info) == place(here));
    let cpus: Vec<String> = siblings.map(|info| info.cpu.to_string()).collect();
    format!("package {} core {} (CPU {})", here.package, here.core, cpus.join(","))
}

/// Sums by domain.
pub(super) struct DomainSums<'a> {
    profile: &'a Profile,
    symbols: &'a Symbols,
    selected: &'a Selected,
    totals: Vec<Totals>,
    variances: Vec<Option<VarianceSums<'a>>>,
}

impl<'a> DomainSums<'a> {
    /// Nothing yet.
    pub fn new(profile: &'a Profile, symbols: &'a Symbols, selected: &'a Selected) -> Self {
        let columns = profile.domains.len();
        let variances = (0..columns).map(|domain| VarianceSums::new(profile, &[domain])).collect();
        Self { profile, symbols, selected, totals: vec![Totals::default(); columns], variances }
    }

    /// Adds a part of the profile. `stacks` says which of its stacks count.
    pub fn add(&mut self, part: &Profile, stacks: &[bool]) {
        let (symbols, selected, columns) = (self.symbols, self.selected, self.totals.len());
        for (index, _, totals) in selected.cells(part).filter(|(_, cell, _)| stacks[cell.stack.0 as usize]) {
            for (domain, sum) in self.totals.iter_mut().enumerate() {
                sum.joules += part.cell_joules[index * columns + domain];
                sum.variance += part.cell_variances.get(index * columns + domain).copied().unwrap_or(0.0);
                sum.time += totals.time;
            }
        }
        for (domain, variances) in self.variances.iter_mut().enumerate() {
            let all = |cell: usize| stacks[part.cells[cell].stack.0 as usize].then_some(0);
            if let Some(variances) = variances {
                selected.add_variances(part, symbols, &[domain], all, variances);
            }
        }
    }

    /// One row per domain. Total: all that was charged to samples; own: without what the domains inside
    /// have, so that own amounts add up. Nested meters are not read at the same instant, so that an own
    /// amount can be a little less than nothing. Samples belong to no domain: there are none here.
    pub fn finish(self) -> Vec<Row> {
        let Self { profile, selected, mut totals, variances, .. } = self;
        for (sum, variances) in totals.iter_mut().zip(variances) {
            sum.variance += variances.map_or(0.0, |variances| variances.finish(1)[0].all);
        }
        let row = |domain: usize| {
            let info = &profile.domains[domain].info;
            let inside = |other: &DomainEnergy| other.info.parent.as_deref() == Some(info.name.as_str());
            let total = totals[domain];
            let others = profile.domains.iter().zip(&totals);
            let within: Joules = others.filter(|(other, _)| inside(other)).map(|(_, sum)| sum.joules).sum();
            let own = total.joules - within;
            // What adding up leaves is nothing.
            let is_nothing = own.as_joules().abs() <= total.joules.as_joules() * BALANCE_TOLERANCE;
            let own = Totals { joules: if is_nothing { Joules::ZERO } else { own }, ..total };
            Row::new(Label::new(&info.name), own, total)
        };
        let shown =
            (0..profile.domains.len()).filter(|&domain| is_within(profile, domain, &selected.domains));
        shown.map(row).collect()
    }
}

/// A domain is one of `outer` or inside one of them.
fn is_within(profile: &Profile, domain: usize, outer: &[usize]) -> bool {
    let mut here = domain;
    // As many steps as there are domains are enough, even if parents form a ring.
    for _ in 0..profile.domains.len() {
        if outer.contains(&here) {
            return true;
        }
        let Some(parent) = profile.domains[here].info.parent.as_deref() else { return false };
        let Some(next) = profile.domains.iter().position(|other| other.info.name == parent) else {
            return false;
        };
        here = next;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, Spent};
    use super::super::tree::{CallTree, Root, TreeOptions};
    use super::super::{Options, Report};
    use super::*;
    use crate::hardware::Method;
    use crate::profile::{SHORT_PROCESSES_ID, SHORT_PROCESSES_NAME};

    #[test]
    fn short_processes_have_a_row_without_numbers() {
        let mut fixture = Fixture::default();
        fixture.domain("package-0", None, Method::Measured, "power PMU", [3.0, 0.0, 0.0, 0.0]);
        fixture.event("cpu-clock", 0);
        fixture.thread(100, 101, "worker", "app");
        fixture.thread(SHORT_PROCESSES_ID, SHORT_PROCESSES_ID, SHORT_PROCESSES_NAME, SHORT_PROCESSES_NAME);
        for (thread, joules) in [(0, 1.0), (1, 2.0)] {
            fixture.cell(thread, 0, 0, "app`main", Spent { samples: 3, millis: 3, joules: &[joules] });
        }
        let (profile, symbols) = fixture.finish();
        let rows = |by| {
            let report = Report::new(&profile, &symbols, &Options { by, ..Options::default() });
            let rows = report.expect("joules").rows.into_iter();
            let row = |row: Row| (row.name.as_str().to_owned(), row.ids, row.own.joules.as_joules());
            rows.map(row).collect::<Vec<_>>()
        };
        let short = (SHORT_PROCESSES_NAME.to_owned(), (None, None), 2.0);
        let of_program = |name: &str, ids| (name.to_owned(), ids, 1.0);
        let of_thread = of_program("worker", (Some(100), Some(101)));
        assert_eq!(rows(Grouping::Thread), [short.clone(), of_thread]);
        assert_eq!(rows(Grouping::Process), [short.clone(), of_program("app", (Some(100), None))]);
        assert_eq!(rows(Grouping::Command), [short, of_program("app", (None, None))]);
        for (root, program) in
            [(Root::Automatic, "app"), (Root::Process, "app (100)"), (Root::Thread, "worker (100/101)")]
        {
            let options = TreeOptions { root, ..TreeOptions::default() };
            let tree = CallTree::new(&profile, &symbols, &options).expect("joules");
            let mut folded = Vec::new();
            super::super::folded::write(&tree, &mut folded).expect("written");
            let folded = String::from_utf8(folded).expect("text");
            let stacks = format!("{program};main 1000000\n{SHORT_PROCESSES_NAME};main 2000000\n");
            let sorted =
                |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
            assert_eq!(sorted(&folded), sorted(&stacks));
        }
    }
}
