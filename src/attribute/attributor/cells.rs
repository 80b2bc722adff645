//! Cells that are given away before the recording ends: what is attributed does not depend on them, so that not all
//! need be there at once.

use super::Attributor;
use crate::attribute::attribution::TakenCells;
use crate::profile::{Balance, InSlice};
use crate::units::{Joules, Timestamp};

impl Attributor {
    /// Turns the cells' model joules into joules: the same number of them for each, domain by domain.
    pub(super) fn pool(&mut self) {
        let columns = self.domains.len();
        let factors = self.pool_factors.take().unwrap_or_else(|| {
            let balances = self.result.balances.iter().enumerate();
            let factor = |(index, balance): (usize, &Balance)| {
                let model: Joules = self.result.cell_joules.iter().skip(index).step_by(columns).sum();
                if model > Joules::ZERO { balance.attributed / model } else { 0.0 }
            };
            balances.map(factor).collect()
        });
        multiply(&mut self.result.cell_joules, &factors);
        self.result.pool_factors = factors;
    }

    /// For cells that are to be taken out before the end: what another walk through the same recording
    /// found in [`Attribution::pool_factors`](super::super::Attribution::pool_factors).
    pub fn with_pool_factors(self, factors: Vec<f64>) -> Self {
        Self { pool_factors: Some(factors).filter(|factors| !factors.is_empty()), ..self }
    }

    /// Bytes that cells take in buckets, if these are kept.
    pub fn bytes_in_buckets(&self) -> usize {
        self.result.kept_entries * size_of::<InSlice>()
    }

    /// Nothing can come any more to what ended by then.
    pub fn is_settled(&self, time: Timestamp) -> bool {
        self.frontier.is_none_or(|frontier| frontier >= time)
    }

    /// Takes the first `cells` cells out, whose quanta all have ended and are settled. Cells that come
    /// after them keep their numbers.
    pub fn take_cells(&mut self, cells: usize) -> TakenCells {
        let mut taken = self.result.take_cells(cells);
        let rows = self.result.cell_joules.len().checked_div(self.domains.len()).unwrap_or(0) as u32;
        let first = self.result.first_cell;
        self.by_cell.make_room(first, first + rows.max(1) - 1);
        if let Some(factors) = &self.pool_factors {
            multiply(&mut taken.joules, factors);
        }
        taken
    }

    /// From now on there is one cell for each of `events`, which has what the event's cells had: `event_of` tells
    /// the event of a cell.
    pub fn merge_cells_by_event(&mut self, events: u32, event_of: impl Fn(u32) -> u32) {
        self.result.merge_cells(events as usize, self.parameters, event_of);
        self.pending.recharge(|quantum| quantum.event);
        self.by_cell.make_room(0, events.max(1) - 1);
    }
}

/// Multiplies each column of rows by its factor.
fn multiply(rows: &mut [Joules], factors: &[f64]) {
    for row in rows.chunks_mut(factors.len().max(1)) {
        row.iter_mut().zip(factors).for_each(|(joules, factor)| *joules = *joules * *factor);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;
    use crate::attribute::{Charge, EventWeights, Quantum};
    use crate::hardware::{DomainInfo, DomainKind, Method};
    use crate::units::Nanoseconds;

    /// 10 W; four functions run for 10 ms each, and the last one once more when the first has been given away.
    #[test]
    fn cells_that_are_left_go_on_when_others_are_taken() {
        let domains = [DomainInfo::new("p", DomainKind::Package, "test", Method::Measured)];
        let weights = EventWeights::new(1, 1, |_, _| 1.0);
        let mut attributor = Attributor::new(&domains, |_| Vec::new(), weights, options(0.1), true);
        let at = |step: u64| Timestamp::from_nanos(step * 10_000_000);
        let mut taken = Vec::new();
        for step in 0..=40 {
            attributor.reading(0, at(step), Joules::from_joules(0.1 * step as f64));
            let cell = match step {
                1..=4 => step as u32 - 1,
                30 => 3,
                _ => continue,
            };
            if step == 30 {
                taken = attributor.take_cells(1).joules;
            }
            attributor.quantum(Quantum {
                start: at(step - 1),
                end: at(step),
                cpu: Some(0),
                event: 0,
                count: 10,
                running: Nanoseconds::from_millis(10),
                charge: Charge::Cell(cell),
            });
        }
        taken.extend(attributor.finish().cell_joules);
        let joules: Vec<f64> = taken.iter().map(|of| (of.as_joules() * 1e9).round() / 1e9).collect();
        assert_eq!(joules, [0.1, 0.1, 0.1, 0.2]);
    }
}
