//! How sure each row's joules are.

use std::ops::Range;

use crate::profile::{Profile, Summed, Variance, VarianceSums};
use crate::report::select::code_of;
use crate::symbolize::Symbols;

/// Cells whose variances are found at once: each takes some hundred bytes meanwhile.
pub(super) const CELLS_AT_ONCE: usize = 1 << 15;

/// The variance, in square joules, of each of these cells of a part in one domain; `None` where the profile does not tell.
pub(super) fn variances(
    head: &Profile,
    part: &Profile,
    symbols: &Symbols,
    cells: Range<usize>,
    domain: usize,
) -> Option<Vec<Variance>> {
    let domains = [domain];
    let mut sums = VarianceSums::new(head, &domains)?;
    let summed = Summed { profile: part, domains: &domains, takes: &|_, _| true };
    let row_of = |cell: usize| cells.contains(&cell).then(|| cell - cells.start);
    sums.add(&summed, row_of, |cell| Some(code_of(part, symbols, cell)));
    let mut variances = sums.finish(cells.len());
    let columns = part.domains.len();
    for (variance, cell) in variances.iter_mut().zip(cells) {
        variance.all += part.cell_variances.get(cell * columns + domain).copied().unwrap_or(0.0);
    }
    Some(variances)
}
