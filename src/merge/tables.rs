//! The tables of several profiles one after the other.

use std::collections::BTreeMap;

use super::columns::Columns;
use super::slices;
use crate::profile::{
    AddressId, CallersId, Cell, CodeAddress, EventTotals, ModuleId, Profile, RecordingId, StackId, Thread,
    ThreadIndex,
};
use crate::units::Joules;

/// Everything that stands in a row of its own: cells with their joules, stacks, addresses, modules, threads, events, recordings.
///
/// Code of two recordings is never taken for the same here, however equal its place looks: kernels of two boots lie at
/// different addresses, and two nodes may have two builds of one file. Names tell, which come later.
///
/// Threads of processes that are in `chosen`, by part, are those of another part.
pub(super) fn concatenate(parts: &[Profile], columns: &Columns, chosen: &[BTreeMap<u32, usize>]) -> Profile {
    let mut whole = Profile::default();
    let width = columns.infos.len();
    let has_variances = parts.iter().any(|part| !part.cell_variances.is_empty());
    for (number, (part, columns)) in parts.iter().zip(&columns.of_part).enumerate() {
        let modules = whole.modules.len() as u32;
        let addresses = whole.addresses.len() as u32;
        let threads = whole.threads.len() as u32;
        let recording = |thread: &Thread| {
            let chosen = chosen.get(number).and_then(|chosen| chosen.get(&thread.pid));
            RecordingId(chosen.copied().unwrap_or(number) as u32)
        };
        let events = add_events(&mut whole.events, &part.events);
        let stacks = add_stacks(&mut whole, part, addresses);
        whole.modules.extend(part.modules.iter().cloned());
        let moved =
            |address: &CodeAddress| CodeAddress { module: ModuleId(address.module.0 + modules), ..*address };
        whole.addresses.extend(part.addresses.iter().map(moved));
        let threads_of_part = part.threads.iter();
        whole
            .threads
            .extend(threads_of_part.map(|thread| Thread { recording: recording(thread), ..thread.clone() }));
        whole.recordings.push(part.recordings.first().cloned().unwrap_or_default());
        for (index, cell) in part.cells.iter().enumerate() {
            whole.cells.push(Cell {
                stack: StackId(cell.stack.0 + stacks),
                thread: ThreadIndex(cell.thread.0 + threads),
                event: events[cell.event as usize],
                ..*cell
            });
            let row = whole.cell_joules.len();
            whole.cell_joules.resize(row + width, Joules::ZERO);
            for (joules, &column) in part.joules(index).iter().zip(columns) {
                whole.cell_joules[row + column] += *joules;
            }
            if has_variances {
                whole.cell_variances.resize(row + width, 0.0);
                let of_cell = part.cell_variances.get(index * columns.len()..(index + 1) * columns.len());
                for (variance, &column) in of_cell.unwrap_or_default().iter().zip(columns) {
                    whole.cell_variances[row + column] += variance;
                }
            }
        }
        // Those of recordings of machines without one are the first's; see `Origin::cpus`.
        if whole.cpus.is_empty() {
            whole.cpus.clone_from(&part.cpus);
        }
    }
    whole
}

/// Multiplies the joules of a domain of a profile.
pub(super) fn scale(profile: &mut Profile, domain: usize, factor: f64) {
    let before = slices::joules_of_cells(profile);
    let columns = profile.domains.len();
    profile
        .cell_joules
        .iter_mut()
        .skip(domain)
        .step_by(columns)
        .for_each(|joules| *joules = *joules * factor);
    slices::follow_cells(profile, &before);
    let variances = profile.cell_variances.iter_mut().skip(domain).step_by(columns);
    variances.for_each(|variance| *variance *= factor * factor);
    let width = profile.errors.as_ref().map_or(0, |errors| errors.parameters);
    if let Some(errors) = profile.errors.as_mut().filter(|_| width > 0) {
        for row in errors.sensitivities.chunks_exact_mut(columns * width) {
            row[domain * width..(domain + 1) * width].iter_mut().for_each(|change| *change *= factor as f32);
        }
    }
}

/// Adds events to those of the same names; tells the place of each.
fn add_events(all: &mut Vec<EventTotals>, more: &[EventTotals]) -> Vec<u32> {
    let add = |event: &EventTotals| {
        let known = all.iter().position(|known| known.name == event.name);
        let at = known.unwrap_or_else(|| {
            all.push(EventTotals { name: event.name.clone(), ..EventTotals::default() });
            all.len() - 1
        });
        let sum = &mut all[at];
        sum.samples += event.samples;
        sum.count = sum.count.saturating_add(event.count);
        sum.lost += event.lost;
        sum.of_others += event.of_others;
        sum.throttled += event.throttled;
        at as u32
    };
    more.iter().map(add).collect()
}

/// Adds the stacks of a part; tells how far they moved.
fn add_stacks(whole: &mut Profile, part: &Profile, addresses: u32) -> u32 {
    let first = whole.stacks.len() as u32;
    let moved = |address: AddressId| AddressId(address.0 + addresses);
    let mut places = vec![CallersId::NONE; part.stacks.callers_len()];
    // Callers stand before those that they call.
    for callers in part.stacks.all_callers() {
        if let Some((address, outer)) = part.stacks.caller(callers) {
            places[callers.0 as usize] = whole.stacks.push_caller(places[outer.0 as usize], moved(address));
        }
    }
    for stack in (0..part.stacks.len() as u32).map(StackId) {
        let callers = places[part.stacks.callers(stack).0 as usize];
        whole.stacks.push(callers, part.stacks.innermost(stack).map(moved));
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{DomainInfo, DomainKind, Method};
    use crate::profile::{Balance, DomainEnergy, ErrorTerms, Module, ModuleKind};
    use crate::units::Nanoseconds;

    /// Two modules of two addresses each, two threads, two domains, and three cells: what belongs to which is told by numbers.
    fn profile(name: &str, events: &[&str]) -> Profile {
        let module = |number: u32| Module {
            kind: ModuleKind::File,
            path: format!("{name}{number}"),
            build_id: None,
            inode: None,
            pid: None,
        };
        let address =
            |number: u32| CodeAddress { module: ModuleId(number / 2), address: number.into(), kernel: false };
        let thread = |tid: u32| Thread {
            pid: 1,
            tid,
            name: String::new(),
            process_name: String::new(),
            recording: RecordingId(7),
            cgroup: None,
        };
        let domain = |name: &str| DomainEnergy {
            info: DomainInfo::new(name, DomainKind::Package, "test", Method::Measured),
            balance: Balance::default(),
        };
        let event = |name: &&str| EventTotals {
            name: (*name).to_owned(),
            samples: 10,
            count: 100,
            lost: 1,
            of_others: 3,
            throttled: 2,
        };
        let mut profile = Profile {
            modules: (0..2).map(module).collect(),
            addresses: (0..4).map(address).collect(),
            threads: (0..2).map(thread).collect(),
            domains: ["a", "b"].map(domain).to_vec(),
            events: events.iter().map(event).collect(),
            ..Profile::default()
        };
        let main = profile.stacks.push_caller(CallersId::NONE, AddressId(1));
        for cell in 0..3u32 {
            let stack = profile.stacks.push(main, Some(AddressId(cell + 1)));
            profile.cells.push(Cell {
                stack,
                thread: ThreadIndex(cell % 2),
                cpu: Some(cell),
                event: cell % events.len() as u32,
                samples: 1,
                count: 1,
                time: Nanoseconds::ZERO,
            });
            profile
                .cell_joules
                .extend([1.0, 10.0].map(|joules| Joules::from_joules(joules * f64::from(cell + 1))));
        }
        profile
    }

    #[test]
    fn what_belongs_together_still_does() {
        let (first, mut second) = (profile("x", &["cycles", "misses"]), profile("y", &["misses", "cycles"]));
        second.cell_variances = (1..=6).map(f64::from).collect();
        // The second's domains are the other way round, and a third column is nobody's.
        let columns = Columns {
            infos: ["a", "b", "c"]
                .map(|name| DomainInfo::new(name, DomainKind::Package, "test", Method::Measured))
                .to_vec(),
            of_part: vec![vec![0, 1], vec![2, 0]],
        };
        assert!(
            concatenate(std::slice::from_ref(&first), &columns, &[]).cell_variances.is_empty(),
            "nobody has any"
        );
        let whole = concatenate(&[first, second], &columns, &[]);
        for (index, cell) in whole.cells.iter().enumerate() {
            let (part, own) = (index / 3, index as u32 % 3);
            let frames: Vec<CodeAddress> =
                whole.stacks.frames(cell.stack).map(|address| whole.addresses[address.0 as usize]).collect();
            assert_eq!(frames.iter().map(|frame| frame.address).collect::<Vec<_>>(), [u64::from(own) + 1, 1]);
            for frame in &frames {
                let path = &whole.modules[frame.module.0 as usize].path;
                assert_eq!(*path, format!("{}{}", ["x", "y"][part], frame.address / 2));
            }
            let thread = &whole.threads[cell.thread.0 as usize];
            assert_eq!((thread.tid, thread.recording), (own % 2, RecordingId(part as u32)));
            assert_eq!(cell.thread.0 as usize / 2, part);
            let name = [["cycles", "misses"], ["misses", "cycles"]][part][own as usize % 2];
            assert_eq!(whole.events[cell.event as usize].name, name);
            let joules: Vec<f64> =
                whole.cell_joules[index * 3..][..3].iter().map(|joules| joules.as_joules()).collect();
            let own = f64::from(own + 1);
            assert_eq!(joules, if part == 0 { [own, 10.0 * own, 0.0] } else { [10.0 * own, 0.0, own] });
            let variances = &whole.cell_variances[index * 3..][..3];
            assert_eq!(variances, if part == 0 { [0.0; 3] } else { [2.0 * own, 0.0, 2.0 * own - 1.0] });
        }
        assert_eq!((whole.cell_joules.len(), whole.cell_variances.len()), (18, 18));
        let totals =
            |event: &EventTotals| (event.samples, event.count, event.lost, event.of_others, event.throttled);
        assert_eq!(whole.events.iter().map(totals).collect::<Vec<_>>(), [(20, 200, 2, 6, 4); 2]);
    }

    #[test]
    fn a_domain_is_scaled_with_its_errors() {
        let mut profile = profile("x", &["cycles"]);
        profile.cell_variances = vec![1.0; 6];
        profile.errors =
            Some(ErrorTerms { parameters: 2, sensitivities: vec![1.0; 12], ..ErrorTerms::default() });
        scale(&mut profile, 1, 0.5);
        let joules: Vec<f64> = profile.cell_joules.iter().map(|joules| joules.as_joules()).collect();
        assert_eq!(joules, [1.0, 5.0, 2.0, 10.0, 3.0, 15.0]);
        assert_eq!(profile.cell_variances, [1.0, 0.25, 1.0, 0.25, 1.0, 0.25]);
        let changes = profile.errors.expect("errors").sensitivities;
        assert_eq!(changes, [1.0, 1.0, 0.5, 0.5].repeat(3));
    }
}
