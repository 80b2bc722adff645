//! The tables of several profiles one after the other.

use super::columns::Columns;
use crate::profile::{
    AddressId, CallersId, Cell, CodeAddress, EventTotals, ModuleId, Profile, RecordingId, StackId, Thread,
    ThreadIndex,
};
use crate::units::Joules;

/// Everything that stands in a row of its own: cells with their joules, stacks, addresses, modules, threads, events, recordings.
///
/// Code of two recordings is never taken for the same here, however equal its place looks: kernels of two boots lie at
/// different addresses, and two nodes may have two builds of one file. Names tell, which come later.
pub(super) fn concatenate(parts: &[Profile], columns: &Columns) -> Profile {
    let mut whole = Profile::default();
    let width = columns.infos.len();
    let has_variances = parts.iter().any(|part| !part.cell_variances.is_empty());
    for (number, (part, columns)) in parts.iter().zip(&columns.of_part).enumerate() {
        let modules = whole.modules.len() as u32;
        let addresses = whole.addresses.len() as u32;
        let threads = whole.threads.len() as u32;
        let recording = RecordingId(number as u32);
        let events = add_events(&mut whole.events, &part.events);
        let stacks = add_stacks(&mut whole, part, addresses);
        whole.modules.extend(part.modules.iter().cloned());
        let moved =
            |address: &CodeAddress| CodeAddress { module: ModuleId(address.module.0 + modules), ..*address };
        whole.addresses.extend(part.addresses.iter().map(moved));
        whole.threads.extend(part.threads.iter().map(|thread| Thread { recording, ..thread.clone() }));
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
    let columns = profile.domains.len();
    profile
        .cell_joules
        .iter_mut()
        .skip(domain)
        .step_by(columns)
        .for_each(|joules| *joules = *joules * factor);
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
            all.push(EventTotals { samples: 0, count: 0, lost: 0, throttled: 0, ..event.clone() });
            all.len() - 1
        });
        let sum = &mut all[at];
        sum.samples += event.samples;
        sum.count = sum.count.saturating_add(event.count);
        sum.lost += event.lost;
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
