//! Sums by thread, process, core and domain: of whole cells, whatever their stacks.

use rustc_hash::FxHashMap;

use super::rows::{Grouping, Row};
use super::select::{Selected, Totals};
use crate::hardware::CpuInfo;
use crate::label::Label;
use crate::profile::{DomainEnergy, Profile};
use crate::units::Joules;

/// Rows by thread, process, name of process, core or event. `stacks` says which stacks count.
pub(super) fn by_cell(
    profile: &Profile,
    selected: &Selected,
    stacks: &[bool],
    grouping: Grouping,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let cells = selected.cells(profile).filter(|(_, cell, _)| stacks[cell.stack.0 as usize]);
    let mut row_of_cell = vec![None; profile.cells.len()];
    let mut add = |rows: &mut Vec<Row>, cell: usize, row: usize, totals: Totals| {
        rows[row].own += totals;
        rows[row].total += totals;
        row_of_cell[cell] = Some(row);
    };
    match grouping {
        Grouping::Core => {
            let row_of_cpu = cpu_rows(profile, &mut rows);
            cells.for_each(|(index, cell, totals)| add(&mut rows, index, row_of_cpu[&cell.cpu], totals));
        }
        Grouping::Event => {
            let empty = Totals::default();
            rows.extend(profile.events.iter().map(|event| Row::new(Label::new(&event.name), empty, empty)));
            cells.for_each(|(index, cell, totals)| add(&mut rows, index, cell.event as usize, totals));
        }
        _ => {
            let row_of_thread = thread_rows(profile, grouping, &mut rows);
            cells.for_each(|(index, cell, totals)| {
                add(&mut rows, index, row_of_thread[cell.thread.0 as usize], totals);
            });
        }
    }
    if let Some(variances) =
        selected.variances(profile, &selected.domains, rows.len(), |cell| row_of_cell[cell])
    {
        for (row, variance) in rows.iter_mut().zip(variances) {
            row.own.variance += variance;
            row.total.variance += variance;
        }
    }
    rows.retain(|row| !row.total.is_empty());
    rows
}

/// Makes the rows of all threads and tells for each thread which one is its.
fn thread_rows(profile: &Profile, grouping: Grouping, rows: &mut Vec<Row>) -> Vec<usize> {
    let mut known: FxHashMap<(u32, u32, &str), usize> = FxHashMap::default();
    let threads = profile.threads.iter();
    threads
        .map(|thread| {
            let (key, name, ids) = match grouping {
                Grouping::Thread => {
                    ((thread.pid, thread.tid, ""), &thread.name, (Some(thread.pid), Some(thread.tid)))
                }
                Grouping::Process => ((thread.pid, 0, ""), &thread.process_name, (Some(thread.pid), None)),
                _ => ((0, 0, thread.process_name.as_str()), &thread.process_name, (None, None)),
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

/// Makes the rows of all cores and tells for each CPU which one is its.
fn cpu_rows(profile: &Profile, rows: &mut Vec<Row>) -> FxHashMap<Option<u32>, usize> {
    let infos: FxHashMap<u32, &CpuInfo> = profile.cpus.iter().map(|info| (info.cpu, info)).collect();
    let mut cpus: Vec<Option<u32>> = profile.cells.iter().map(|cell| cell.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let mut row_of_core: FxHashMap<(u32, u32, u32), usize> = FxHashMap::default();
    let mut add = |label: String| {
        rows.push(Row::new(Label::new(&label), Totals::default(), Totals::default()));
        rows.len() - 1
    };
    let find = |cpu: Option<u32>| {
        let row = match cpu.map(|cpu| (cpu, infos.get(&cpu))) {
            None => add("[unknown CPU]".to_owned()),
            Some((cpu, None)) => add(format!("CPU {cpu}")),
            Some((_, Some(here))) => *row_of_core
                .entry((here.package, here.die, here.core))
                .or_insert_with(|| add(core_name(profile, here))),
        };
        (cpu, row)
    };
    cpus.into_iter().map(find).collect()
}

fn core_name(profile: &Profile, here: &CpuInfo) -> String {
    let place = |info: &CpuInfo| (info.package, info.die, info.core);
    let siblings = profile.cpus.iter().filter(|info| place(info) == place(here));
    let cpus: Vec<String> = siblings.map(|info| info.cpu.to_string()).collect();
    format!("package {} core {} (CPU {})", here.package, here.core, cpus.join(","))
}

/// One row per domain. Total: all that was charged to samples; own: without what the domains inside
/// have, so that own amounts add up. Nested meters are not read at the same instant, so that an own
/// amount can be a little less than nothing. Samples belong to no domain: there are none here.
pub(super) fn by_domain(profile: &Profile, selected: &Selected, stacks: &[bool]) -> Vec<Row> {
    let columns = profile.domains.len();
    let mut totals_of = vec![Totals::default(); columns];
    for (index, _, totals) in selected.cells(profile).filter(|(_, cell, _)| stacks[cell.stack.0 as usize]) {
        for (domain, sum) in totals_of.iter_mut().enumerate() {
            sum.joules += profile.cell_joules[index * columns + domain];
            sum.variance += profile.cell_variances.get(index * columns + domain).copied().unwrap_or(0.0);
            sum.time += totals.time;
        }
    }
    for (domain, sum) in totals_of.iter_mut().enumerate() {
        let all = |cell: usize| stacks[profile.cells[cell].stack.0 as usize].then_some(0);
        sum.variance += selected.variances(profile, &[domain], 1, all).map_or(0.0, |variances| variances[0]);
    }
    let shown: Vec<usize> =
        (0..columns).filter(|&domain| is_within(profile, domain, &selected.domains)).collect();
    let row = |&domain: &usize| {
        let info = &profile.domains[domain].info;
        let inside = |other: &DomainEnergy| other.info.parent.as_deref() == Some(info.name.as_str());
        let total = totals_of[domain];
        let within: Joules = profile
            .domains
            .iter()
            .zip(&totals_of)
            .filter(|(other, _)| inside(other))
            .map(|(_, sum)| sum.joules)
            .sum();
        let own = Totals { joules: total.joules - within, ..total };
        Row::new(Label::new(&info.name), own, total)
    };
    shown.iter().map(row).collect()
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
