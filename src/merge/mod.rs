//! Several profiles become one: of ranks, of nodes, of stretches of time.
//!
//! Functions add up: what one recorder saw of its program no other saw of it. Meters do not: each recorder of a machine
//! reads the same ones. So recordings are put together boot by boot, since the clock and the meters of one boot are the
//! same for all its recordings. Of each domain of a boot
//!
//! - *measured* is the energy of the union of the recordings' windows of time, each stretch of it counted once: the mean of what
//!   the recordings that cover it say, which read one meter at slightly different times;
//! - *functions* are the sum of all recordings' functions, and *eprof* that of all recorders;
//! - *static* is that of the union, too: each stretch has the mean static power of the recordings that cover it;
//! - *others* is what is left. It is what one recorder took for others' and no other recorder knows as functions.
//!
//! A recorder that left the meters to another one of its machine has the readings of that one by now
//! ([`crate::recording::node_meters`]): here its recording is like any other.
//!
//! Windows that meet no other keep their balance as it is. Different boots add up. Estimates are estimates of the
//! machine, by its CPUs' time: several of one machine and one time are of the same joules, and count once as meters do.
//!
//! Where functions are more than there is room for beside static energy, since recorders divided the same
//! joules by models of their own, static energy gives way; where they are more than was measured, they are scaled.
//! Both is said where it is more than chance, with the other things that cannot be known: recordings without a boot id, which may
//! or may not be of one machine; threads that more than one recording has, which are taken from one of them where it recorded and from
//! the others where it did not. A companion, which records everything, is expected to have its ranks' threads, too: they are the ranks', also where the companion has more of
//! them, as after a rank's recorder was killed.
//!
//! Where recordings tell their joules in time, and when they began, the merged profile tells its own.
//!
//! The order of the profiles makes no difference. A merged profile keeps the profiles it was made of ([`Profile::merged`]),
//! whose error bars add up to its own.

mod axis;
mod chance;
mod columns;
mod covered;
mod division;
mod duplicates;
mod duration;
mod holders;
mod in_time;
mod machines;
mod node_names;
mod notes;
mod slices;
mod tables;
mod taking;
mod union;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::profile::{Balance, DomainEnergy, HiddenCallers, MachineEnergy, MergedPart, Profile};
use columns::Columns;
use machines::Machines;

/// A merged profile.
#[derive(Debug, Clone)]
pub struct Merged {
    /// The profile.
    pub profile: Profile,
    /// Which of the given profiles its parts are, in its order. One that was given twice is in it once.
    pub order: Vec<usize>,
}

/// Whether a merged profile is to tell its joules in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InTime {
    /// It is, by slices.
    Told,
    /// Nobody looks at them.
    LeftOut,
}

/// Which of some profiles of one recording each lack slices that [`merge`] needs, by their places: those that have threads which
/// another recording of the same time has, too, and have some of their own time to add to them.
pub fn lacking_slices(profiles: &[Profile]) -> Vec<usize> {
    duplicates::lacking_slices(profiles, &Machines::of(profiles))
}

/// Puts profiles of one recording each together. One alone stays as it is.
///
/// The merged profile tells its joules in time if that is asked for and they do.
pub fn merge(profiles: Vec<Profile>, in_time: InTime) -> Merged {
    if profiles.len() < 2 {
        return Merged {
            order: (0..profiles.len()).collect(),
            profile: profiles.into_iter().next().unwrap_or_default(),
        };
    }
    let mut numbered: Vec<(usize, Profile)> = profiles.into_iter().enumerate().collect();
    numbered.sort_by_cached_key(|(_, profile)| machines::place(profile));
    let mut warnings = duplicates::drop_repeated(&mut numbered);
    let (order, mut parts): (Vec<usize>, Vec<Profile>) = numbered.into_iter().unzip();
    let machines = Machines::of(&parts);
    warnings.extend(machines.warnings(&parts));
    machines.name_nodes(&mut parts);
    let taken = duplicates::take_once(&mut parts, &machines);
    warnings.extend(taken.warnings);
    let columns = Columns::of(&parts);
    warnings.extend(columns.warnings(&parts, &machines));
    let energies = machine_energies(&mut parts, &machines, &columns, &taken.variances, &mut warnings);
    let mut profile = tables::concatenate(&parts, &columns, &taken.chosen);
    for (origin, machine) in profile.recordings.iter_mut().zip(&machines.of_part) {
        origin.machine = *machine as u32;
    }
    let balance = |column: usize| {
        let of_machines = energies.iter().filter_map(|machine| machine.balances[column]);
        of_machines.fold(Balance::default(), |sum, balance| sum + balance)
    };
    profile.domains = columns
        .infos
        .iter()
        .enumerate()
        .map(|(column, info)| DomainEnergy { info: info.clone(), balance: balance(column) })
        .collect();
    columns.weigh_watts_errors(&parts, &mut profile.domains);
    profile.machines = energies;
    profile.start = parts.first().map(|part| part.start).unwrap_or_default();
    profile.duration = duration::of(&parts, &machines);
    profile.division = division::of(&parts, columns.infos.len(), &profile.events);
    profile.has_call_paths = parts.iter().any(|part| part.has_call_paths);
    profile.copies_stacks = parts.iter().any(|part| part.copies_stacks);
    profile.is_partial = parts.iter().any(|part| part.is_partial);
    let top: Vec<usize> = profile.top_domains().map(|(column, _)| column).collect();
    if in_time == InTime::Told {
        match in_time::of(&parts, &machines, &columns, &profile.machines, &top) {
            Ok(in_time) => {
                (profile.slices, profile.gaps) = (in_time.slices, in_time.gaps);
                let machines = profile.machines.iter_mut().zip(in_time.of_machines);
                machines.for_each(|(machine, in_slices)| machine.in_slices = in_slices);
            }
            Err(sentence) => warnings.push(sentence),
        }
    }
    for part in &mut parts {
        (part.slices, part.sample_times) = (Vec::new(), Vec::new());
    }
    profile.hidden_callers =
        parts.iter().map(|part| part.hidden_callers).fold(HiddenCallers::default(), both);
    warnings.extend(notes::without_joules(&parts));
    profile.warnings = [warnings, notes::of(&parts)].concat();
    let mut first_cell = 0;
    for (part, columns) in parts.into_iter().zip(columns.of_part) {
        let cells = part.cells.len();
        profile.merged.push(MergedPart { profile: Arc::new(part), first_cell, columns });
        first_cell += cells;
    }
    Merged { profile, order }
}

/// The balance of each machine, domain by domain; functions that are more than what was measured are scaled.
fn machine_energies(
    parts: &mut [Profile],
    machines: &Machines,
    columns: &Columns,
    variances: &[Vec<f64>],
    warnings: &mut Vec<String>,
) -> Vec<MachineEnergy> {
    let mut energies = machines.energies(columns.infos.len());
    for (machine, energy) in energies.iter_mut().enumerate() {
        for (column, info) in columns.infos.iter().enumerate() {
            let of_column: Vec<(usize, usize)> =
                columns.domains_of(column, machines.parts(machine)).collect();
            if of_column.is_empty() {
                continue;
            }
            let windows: Vec<union::Window<'_>> = of_column
                .iter()
                .map(|&(part, domain)| union::Window {
                    variance: variances[part][domain],
                    ..union::Window::of(&parts[part], part, domain)
                })
                .collect();
            let found = union::balance(&windows);
            energy.balances[column] = Some(found.balance);
            for conflict in found.conflicts {
                if !conflict.is_by_chance {
                    warnings.push(conflict.sentence(&energy.name, &info.name, parts));
                }
                if let Some(factor) = conflict.factor {
                    let scaled = of_column.iter().filter(|(part, _)| conflict.parts.contains(part));
                    scaled.for_each(|&(part, domain)| tables::scale(&mut parts[part], domain, factor));
                }
            }
        }
    }
    energies
}

fn both(a: HiddenCallers, b: HiddenCallers) -> HiddenCallers {
    HiddenCallers {
        samples: a.samples + b.samples,
        found: a.found + b.found,
        out_of_reach: a.out_of_reach + b.out_of_reach,
        unknown: a.unknown + b.unknown,
    }
}
