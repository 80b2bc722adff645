//! How sure each row's joules are.

use std::ops::Range;

use crate::profile::{Profile, Summed, Variance, VarianceSums};

/// Cells whose variances are found at once: each takes some hundred bytes meanwhile.
pub(super) const CELLS_AT_ONCE: usize = 1 << 15;

/// The variance, in square joules, of each of these cells of a part in one domain; `None` where the profile does not tell.
pub(super) fn variances(
    head: &Profile,
    part: &Profile,
    cells: Range<usize>,
    domain: usize,
) -> Option<Vec<Variance>> {
    let domains = [domain];
    let mut sums = VarianceSums::new(head, &domains)?;
    // What a row's error is depends on all that is beside it: that is one more row.
    let rest = cells.len();
    let summed = Summed { profile: part, domains: &domains, takes: &|_, _| true };
    sums.add(&summed, |cell| Some(if cells.contains(&cell) { cell - cells.start } else { rest }));
    let mut variances = sums.finish(rest + 1);
    variances.truncate(rest);
    let columns = part.domains.len();
    for (variance, cell) in variances.iter_mut().zip(cells) {
        variance.all += part.cell_variances.get(cell * columns + domain).copied().unwrap_or(0.0);
    }
    Some(variances)
}
