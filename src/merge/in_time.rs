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
        // A moment at the very end lies in the last piece.
        let first = first.min(self.all.len().saturating_sub(1));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Timestamp;

    fn joules(joules: f64) -> Joules {
        Joules::from_joules(joules)
    }

    fn slice() -> TimeSlice {
        TimeSlice {
            start: Timestamp::default(),
            end: Timestamp::default(),
            measured: vec![joules(99.0)],
            modelled: joules(16.0),
            balance: Balance {
                measured: joules(99.0),
                attributed: joules(8.0),
                static_energy: joules(77.0),
                other_processes: joules(55.0),
                recorder: joules(4.0),
                lost: joules(2.0),
            },
            by_cell: vec![
                InSlice { cell: 0, joules: 6.0, seconds: 0.5 },
                InSlice { cell: 3, joules: 2.0, seconds: 0.25 },
            ],
        }
    }

    /// What functions, recorders, losses and the model have in each piece.
    fn found(pieces: &Pieces<'_>) -> Vec<[f64; 4]> {
        let of = |piece: &Piece| {
            let Balance { measured, attributed, static_energy, other_processes, recorder, lost } =
                piece.balance;
            // What several recordings say of it is not added up.
            assert_eq!([measured, static_energy, other_processes], [Joules::ZERO; 3]);
            [attributed, recorder, lost, piece.modelled].map(|joules| joules.as_joules())
        };
        pieces.all.iter().map(of).collect()
    }

    #[test]
    fn a_slice_is_shared_out_by_time_and_cells_are_counted_on() {
        let edges = [0, 100, 200, 300, 400];
        let mut pieces = Pieces::new(&edges, 2);
        assert_eq!(pieces.all.iter().map(|piece| piece.measured.len()).collect::<Vec<_>>(), [2; 4]);
        // A quarter, a half and a quarter.
        pieces.add((150, 350), &slice(), 10);
        let (quarter, half) = ([2.0, 1.0, 0.5, 4.0], [4.0, 2.0, 1.0, 8.0]);
        assert_eq!(found(&pieces), [[0.0; 4], quarter, half, quarter]);
        let cells = |piece: &Piece| {
            let mut cells: Vec<InSlice> = piece.cells.values().copied().collect();
            cells.sort_by_key(|cell| cell.cell);
            cells
        };
        let halves = [
            InSlice { cell: 10, joules: 3.0, seconds: 0.25 },
            InSlice { cell: 13, joules: 1.0, seconds: 0.125 },
        ];
        assert_eq!((cells(&pieces.all[0]), cells(&pieces.all[2])), (Vec::new(), halves.to_vec()));
        // Another recording's cells are others; the same one's add up.
        pieces.add((200, 300), &slice(), 20);
        pieces.add((200, 300), &slice(), 10);
        assert_eq!(found(&pieces)[2], [20.0, 10.0, 5.0, 40.0]);
        let of = |cell, joules, seconds| InSlice { cell, joules, seconds };
        let expected = [of(10, 9.0, 0.75), of(13, 3.0, 0.375), of(20, 6.0, 0.5), of(23, 2.0, 0.25)];
        assert_eq!(cells(&pieces.all[2]), expected);
        assert_eq!(found(&pieces)[1], quarter);
    }

    #[test]
    fn a_slice_at_an_edge_lies_in_one_piece_and_one_without_length_is_not_lost() {
        let edges = [0, 100, 200, 300];
        let whole = [8.0, 4.0, 2.0, 16.0];
        // From edge to edge; a moment within a piece, at an edge, at both ends.
        for (place, expected) in
            [((100, 200), 1), ((0, 100), 0), ((250, 250), 2), ((100, 100), 1), ((0, 0), 0), ((300, 300), 2)]
        {
            let mut pieces = Pieces::new(&edges, 1);
            pieces.add(place, &slice(), 0);
            let mut all = vec![[0.0; 4]; 3];
            all[expected] = whole;
            assert_eq!(found(&pieces), all, "{place:?}");
        }
    }

    fn pieces<'e>(edges: &'e [u64], balances: &[[f64; 6]]) -> Pieces<'e> {
        let mut pieces = Pieces::new(edges, 1);
        for (piece, of) in pieces.all.iter_mut().zip(balances) {
            let [measured, attributed, static_energy, other_processes, recorder, lost] = of.map(joules);
            piece.balance = Balance { measured, attributed, static_energy, other_processes, recorder, lost };
        }
        pieces
    }

    #[test]
    fn static_energy_is_shared_out_as_it_lies_in_time() {
        let edges = [0, 1, 2, 3];
        let mut pieces = pieces(&edges, &[[0.0; 6]; 3]);
        pieces.share_out_static(&[0.0, 1.0, 3.0].map(joules), joules(8.0));
        pieces.share_out_static(&[1.0, 1.0, 2.0].map(joules), joules(4.0));
        // Of nothing there is nothing to share out.
        pieces.share_out_static(&[0.0; 3].map(joules), joules(8.0));
        let found: Vec<f64> =
            pieces.all.iter().map(|piece| piece.balance.static_energy.as_joules()).collect();
        assert_eq!(found, [1.0, 3.0, 8.0]);
    }

    #[test]
    fn pieces_add_up_to_the_balance_of_all_machines() {
        let edges = [0, 1, 2, 3];
        // In the first piece functions have more than was measured, so that nothing is left for others there.
        let mut pieces = pieces(
            &edges,
            &[
                [10.0, 10.0, 1.0, 0.0, 1.0, 0.0],
                [20.0, 6.0, 1.0, 0.0, 1.0, 1.0],
                [20.0, 4.0, 1.0, 0.0, 0.0, 0.0],
            ],
        );
        let of = |attributed: f64, others: f64, recorder: f64, lost: f64| {
            Some(Balance {
                attributed: joules(attributed),
                other_processes: joules(others),
                recorder: joules(recorder),
                lost: joules(lost),
                ..Balance::default()
            })
        };
        let energy = |top, inner| MachineEnergy { balances: vec![top, inner], ..MachineEnergy::default() };
        // Of two machines; the second column lies within the first, and one of them does not have it.
        let energies = [
            energy(of(8.0, 1.0, 2.0, 1.5), of(99.0, 99.0, 99.0, 99.0)),
            energy(of(2.0, 5.0, 2.0, 0.5), None),
        ];
        pieces.settle(&energies, &[0]);
        let found: Vec<[f64; 4]> = pieces
            .all
            .iter()
            .map(|piece| {
                let Balance { attributed, other_processes, recorder, lost, .. } = piece.balance;
                [attributed, other_processes, recorder, lost].map(|joules| joules.as_joules())
            })
            .collect();
        // Functions are halved, recorders and losses doubled. Left are 10 - 5 - 1 - 2, 20 - 3 - 1 - 2 - 2 and
        // 20 - 2 - 1, which are 2, 12 and 17 of 31, for the 6 J of others.
        let expected = [
            [5.0, 6.0 * 2.0 / 31.0, 2.0, 0.0],
            [3.0, 6.0 * 12.0 / 31.0, 2.0, 2.0],
            [2.0, 6.0 * 17.0 / 31.0, 0.0, 0.0],
        ];
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
        }
    }

    #[test]
    fn others_are_never_less_than_nothing() {
        let edges = [0, 1, 2];
        let mut pieces = pieces(&edges, &[[10.0, 12.0, 1.0, 0.0, 0.0, 0.0], [10.0, 2.0, 1.0, 0.0, 0.0, 0.0]]);
        let whole = Balance { attributed: joules(14.0), other_processes: joules(3.0), ..Balance::default() };
        let energies = [MachineEnergy { balances: vec![Some(whole)], ..MachineEnergy::default() }];
        pieces.settle(&energies, &[0]);
        let others = pieces.all.iter().map(|piece| piece.balance.other_processes.as_joules());
        assert_eq!(others.collect::<Vec<_>>(), [0.0, 3.0]);
    }
}
