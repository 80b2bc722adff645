//! The rows that candidates are judged by, in turn.

use crate::numerics::folds::{Part, dealt, spans};
use crate::power_model::dataset::Dataset;

/// Rows of the folds that candidates are judged by, and the number of workloads in them: workloads dealt
/// into at most `limit` groups, or equal spans of the data where there are too few workloads.
pub(in crate::power_model) fn inner_folds(data: &Dataset, limit: usize) -> (Vec<Part>, usize) {
    const LEAST: usize = 3;
    const SPANS: usize = 6;
    let by_workload = data.by_workload();
    let workloads = by_workload.len();
    if workloads < LEAST {
        let count = SPANS.min(data.len());
        return (spans(data.len(), count), count);
    }
    (dealt(by_workload, limit.max(LEAST)), workloads)
}
