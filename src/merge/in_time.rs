//! Where the joules of several recordings lie in time.
//!
//! The axis is the time in which somebody recorded, cut into equal pieces. A meter of a machine counted in a piece what the
//! recordings that cover it say on average, as in the machine's balance ([`super::union`]); functions have theirs where each
//! recording has them. So the pieces add up to the balance.

use rustc_hash::FxHashMap;

use super::axis::Axis;
use super::columns::Columns;
use super::machines::Machines;
use super::notes::title;
use super::union::{Window, measured_between, static_between};
use crate::profile::{Balance, Gap, InSlice, MachineEnergy, Profile, TimeSlice};
use crate::units::{Joules, Nanoseconds};

/// At most so many pieces, as many as a picture of power has; and as many more as there are gaps.
const MOST_PIECES: u64 = 400;

/// The joules of several recordings in time.
pub(super) struct InTime {
    /// Pieces of time from the merged profile's start on, of whose top-level domains `balance` is. Its cells are those of the
    /// parts, one part's after the other's.
    pub slices: Vec<TimeSlice>,
    /// Gaps in which nobody recorded, and which are left out.
    pub gaps: Vec<Gap>,
    /// What each machine measured in each piece, by domain.
    pub of_machines: Vec<Vec<Vec<Joules>>>,
}

/// Of parts that tell their joules in time; nothing of others.
///
/// # Errors
/// A sentence that says whose clock is not known.
pub(super) fn of(
    parts: &[Profile],
    machines: &Machines,
    columns: &Columns,
    energies: &[MachineEnergy],
    top: &[usize],
) -> Result<InTime, String> {
    let nothing = InTime {
        slices: Vec::new(),
        gaps: Vec::new(),
        of_machines: energies.iter().map(|energy| energy.in_slices.clone()).collect(),
    };
    let found: usize = parts.iter().map(|part| part.slices.len()).sum();
    if found == 0 {
        return Ok(nothing);
    }
    let unplaced = |part: usize| {
        let title = title(&parts[part]);
        format!(
            "{title} does not tell when it was recorded: power over time is not drawn of it and the other recordings. Look at \
             it alone"
        )
    };
    let axis = Axis::of(parts, machines).map_err(unplaced)?;
    let length = axis.length();
    let count = (found as u64).clamp(1, MOST_PIECES).min(length.max(1));
    let evenly = (0..=count).map(|at| (u128::from(length) * u128::from(at) / u128::from(count)) as u64);
    let gaps = axis.gaps();
    // What is left out lies between two pieces, and in none.
    let mut edges: Vec<u64> = evenly.chain(gaps.iter().map(|gap| gap.after.as_nanos())).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut pieces = Pieces::new(&edges, columns.infos.len());
    let mut of_machines = nothing.of_machines;
    for (machine, energy) in energies.iter().enumerate() {
        for (column, balance) in energy.balances.iter().enumerate() {
            let Some(balance) = balance else { continue };
            let windows: Vec<Window<'_>> = columns
                .domains_of(column, machines.parts(machine))
                .map(|(part, domain)| Window::of(&parts[part], part, domain))
                .collect();
            let Some(first) = windows.first().map(|window| window.part) else { continue };
            let is_top = top.contains(&column);
            let mut of_static = vec![Joules::ZERO; pieces.all.len()];
            for (at, of_static) in of_static.iter_mut().enumerate() {
                let (from, to) = (axis.time(first, edges[at]), axis.time(first, edges[at + 1]));
                let measured = measured_between(&windows, from, to);
                let piece = &mut pieces.all[at];
                piece.measured[column] += measured;
                of_machines[machine][column].push(measured);
                if is_top {
                    piece.balance.measured += measured;
                    *of_static = static_between(&windows, from, to);
                }
            }
            if is_top {
                pieces.share_out_static(&of_static, balance.static_energy);
            }
        }
    }
    let mut first_cell = 0;
    for (number, part) in parts.iter().enumerate() {
        for slice in &part.slices {
            let place = (axis.place(number, slice.start), axis.place(number, slice.end));
            pieces.add(place, slice, first_cell);
        }
        first_cell += part.cells.len() as u32;
    }
    pieces.settle(energies, top);
    let start = parts.first().map(|part| part.start).unwrap_or_default();
    let slices = pieces.all.into_iter().zip(edges.windows(2)).map(|(piece, edge)| TimeSlice {
        start: start + Nanoseconds::from_nanos(edge[0]),
        end: start + Nanoseconds::from_nanos(edge[1]),
        measured: piece.measured,
        modelled: piece.modelled,
        balance: piece.balance,
        by_cell: piece.cells.into_values().collect(),
    });
    Ok(InTime { slices: slices.collect(), gaps, of_machines })
}

/// Pieces of the axis while they are filled.
struct Pieces<'e> {
    edges: &'e [u64],
    all: Vec<Piece>,
}

#[derive(Default)]
struct Piece {
    measured: Vec<Joules>,
    modelled: Joules,
    balance: Balance,
    cells: FxHashMap<u32, InSlice>,
}

impl<'e> Pieces<'e> {
    fn new(edges: &'e [u64], columns: usize) -> Self {
        let piece = || Piece { measured: vec![Joules::ZERO; columns], ..Piece::default() };
        Self { edges, all: (1..edges.len()).map(|_| piece()).collect() }
    }

    /// What went to somebody in a slice of a part, evenly over the pieces that it lies in.
    fn add(&mut self, (start, end): (u64, u64), slice: &TimeSlice, first_cell: u32) {
        let first = self.edges.partition_point(|edge| *edge <= start).saturating_sub(1);
        let length = (end - start) as f64;
        for (piece, edge) in self.all.iter_mut().zip(self.edges.windows(2)).skip(first) {
            let shared = end.min(edge[1]).saturating_sub(start.max(edge[0])) as f64;
            let share = if length > 0.0 { shared / length } else { 1.0 };
            piece.modelled += slice.modelled * share;
            piece.balance.attributed += slice.balance.attributed * share;
            piece.balance.recorder += slice.balance.recorder * share;
            piece.balance.lost += slice.balance.lost * share;
            for of_cell in slice.by_cell.iter().filter(|_| share > 0.0) {
                let cell = of_cell.cell + first_cell;
                let sum = piece.cells.entry(cell).or_insert(InSlice { cell, joules: 0.0, seconds: 0.0 });
                sum.joules += of_cell.joules * share as f32;
                sum.seconds += of_cell.seconds * share as f32;
            }
            if end <= edge[1] {
                break;
            }
        }
    }

    /// Gives each piece its part of a machine's static energy, as `shares` are.
    fn share_out_static(&mut self, shares: &[Joules], static_energy: Joules) {
        let sum: Joules = shares.iter().sum();
        if sum > Joules::ZERO {
            let factor = static_energy / sum;
            let pieces = self.all.iter_mut().zip(shares);
            pieces.for_each(|(piece, share)| piece.balance.static_energy += *share * factor);
        }
    }

    /// Makes the pieces add up to the balance of all machines: the parts of it that recordings saw as they lie in time,
    /// and others as what is left there.
    fn settle(&mut self, energies: &[MachineEnergy], top: &[usize]) {
        let balances =
            energies.iter().flat_map(|energy| top.iter().filter_map(|&column| energy.balances[column]));
        let whole = balances.fold(Balance::default(), |sum, balance| sum + balance);
        let scale = |pieces: &mut [Piece], of: fn(&mut Balance) -> &mut Joules, joules: Joules| {
            let sum: Joules = pieces.iter_mut().map(|piece| *of(&mut piece.balance)).sum();
            if sum > Joules::ZERO {
                let factor = joules / sum;
                pieces
                    .iter_mut()
                    .for_each(|piece| *of(&mut piece.balance) = *of(&mut piece.balance) * factor);
            }
        };
        scale(&mut self.all, |balance| &mut balance.attributed, whole.attributed);
        scale(&mut self.all, |balance| &mut balance.recorder, whole.recorder);
        scale(&mut self.all, |balance| &mut balance.lost, whole.lost);
        for piece in &mut self.all {
            let Balance { measured, attributed, static_energy, recorder, lost, .. } = piece.balance;
            piece.balance.other_processes =
                (measured - attributed - static_energy - recorder - lost).max(Joules::ZERO);
        }
        scale(&mut self.all, |balance| &mut balance.other_processes, whole.other_processes);
    }
}
