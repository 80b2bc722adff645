//! How sure the joules of rows are, in a profile of one recording or of several.

use super::standard_errors::{RecordingVariances, RowVariance, Summed};
use super::{MergedPart, Profile};
use crate::units::Joules;

/// Standard errors of the joules of `rows` groups of cells, in the domains that add up to the whole;
/// `group_of` tells for each cell its own, and these groups are what code is told apart by. `None` if nothing was measured.
pub fn standard_errors(
    profile: &Profile,
    rows: usize,
    group_of: impl Fn(usize) -> Option<usize>,
) -> Option<Vec<Joules>> {
    let domains: Vec<usize> = profile.top_domains().map(|(index, _)| index).collect();
    let mut variances =
        variances(&Summed { profile, domains: &domains, takes: &|_, _| true }, rows, &group_of)?;
    for cell in 0..profile.cells.len() {
        if let Some(variance) = group_of(cell).and_then(|row| variances.get_mut(row)) {
            let of_domain = |&domain: &usize| {
                profile.cell_variances.get(cell * profile.domains.len() + domain).copied().unwrap_or(0.0)
            };
            *variance += domains.iter().map(of_domain).sum::<f64>();
        }
    }
    Some(variances.into_iter().map(|variance| Joules::from_joules(variance.sqrt())).collect())
}

/// The variance, in square joules, of each of `rows` rows, of which `row_of` tells for each cell its
/// own, and which are what code is told apart by. `None` if the profile does not tell.
pub fn variances(summed: &Summed, rows: usize, row_of: impl Fn(usize) -> Option<usize>) -> Option<Vec<f64>> {
    let mut sums = VarianceSums::new(summed.profile, summed.domains)?;
    sums.add(summed, &row_of, &row_of);
    Some(sums.finish(rows).iter().map(|variance| variance.all).collect())
}

/// The variance of a row's joules, in square joules.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Variance {
    /// All of it.
    pub all: f64,
    /// The part of it that comes of chance from sample to sample, and of what was lost: it grows as the joules do. The rest
    /// is wrong by a share, and its square root grows as they do, but for the ends of meters.
    pub by_chance: f64,
    /// The part of it of causes that all recordings share: watts that were assumed. They make all that recordings say larger
    /// or smaller, and with it each change from one to the other, but no change comes of them.
    pub common: f64,
}

/// What the variances of rows follow from, added up part by part.
///
/// Errors of several recordings are independent of each other, but for those of assumed watts, which are the same in
/// all: the former add up as variances, the latter as joules.
pub struct VarianceSums<'p> {
    of: Vec<OfRecording<'p>>,
}

struct OfRecording<'p> {
    sums: RecordingVariances<'p>,
    /// Of a merged profile: which part, and which of its domains are summed.
    part: Option<(&'p MergedPart, Vec<usize>)>,
}

impl<'p> VarianceSums<'p> {
    /// Of some domains of a profile, which may come in parts. `None` if the profile does not tell.
    pub fn new(profile: &'p Profile, domains: &[usize]) -> Option<Self> {
        if profile.merged.is_empty() {
            let sums = RecordingVariances::new(profile, domains)?;
            return Some(Self { of: vec![OfRecording { sums, part: None }] });
        }
        let of_part = |part: &'p MergedPart| {
            let own = (0..part.columns.len()).filter(|&domain| domains.contains(&part.columns[domain]));
            let own: Vec<usize> = own.collect();
            let sums = RecordingVariances::new(&part.profile, &own)?;
            Some(OfRecording { sums, part: Some((part, own)) })
        };
        let of: Vec<OfRecording<'p>> = profile.merged.iter().filter_map(of_part).collect();
        (!of.is_empty()).then_some(Self { of })
    }

    /// Adds a part of the profile, or all of it; `row_of` tells for each cell its row. `code_of` tells a number of the function
    /// that the cell is of: how sure any row is depends on what the whole recording ran, which must not depend on the rows.
    pub fn add(
        &mut self,
        summed: &Summed<'_>,
        row_of: impl Fn(usize) -> Option<usize>,
        code_of: impl Fn(usize) -> Option<usize>,
    ) {
        for OfRecording { sums, part } in &mut self.of {
            let Some((part, domains)) = part else {
                sums.add(summed, &row_of, &code_of);
                continue;
            };
            let first = part.first_cell;
            let takes = |index: usize, _: &super::Cell| {
                (summed.takes)(first + index, &summed.profile.cells[first + index])
            };
            let own = Summed { profile: &part.profile, domains, takes: &takes };
            sums.add(&own, |cell| row_of(first + cell), |cell| code_of(first + cell));
        }
    }

    /// The variance of each of `rows` rows.
    pub fn finish(self, rows: usize) -> Vec<Variance> {
        let mut all = vec![RowVariance::default(); rows];
        for OfRecording { sums, .. } in self.of {
            for (sum, found) in all.iter_mut().zip(sums.finish(rows)) {
                sum.own += found.own;
                sum.by_chance += found.by_chance;
                sum.common.iter_mut().zip(found.common).for_each(|(sum, joules)| *sum += joules);
            }
        }
        let variance = |row: &RowVariance| {
            let common: f64 = row.common.iter().map(|joules| joules.powi(2)).sum();
            Variance { all: row.own + common, by_chance: row.by_chance, common }
        };
        all.iter().map(variance).collect()
    }
}
