//! What stands above a picture: how much energy, of what, and how it was found.

use super::Weight;
use super::summary::{Summary, how};
use super::tree::CallTree;
use crate::profile::BALANCE_TOLERANCE;
use crate::units::{Joules, grouped};

/// How much of what, and what was recorded.
pub(super) fn heading(tree: &CallTree<'_>) -> String {
    let amount = match tree.weight {
        Weight::Joules => {
            let (drawn, measured) = (Joules::from_joules(tree.total()), tree.summary.balance.measured);
            let counted = tree.summary.domains.iter().filter(|domain| domain.counted);
            let domains: Vec<&str> = counted.map(|domain| domain.name.as_str()).collect();
            let is_all = drawn.as_joules() >= measured.as_joules() * (1.0 - BALANCE_TOLERANCE);
            let of = if is_all { String::new() } else { format!(" of {measured}") };
            format!("{drawn}{of} ({})", domains.join(" + "))
        }
        Weight::Samples => format!("{} samples", grouped(tree.total() as u64)),
        Weight::Count => format!("{} events", grouped(tree.total() as u64)),
    };
    match &tree.summary.subject {
        Some(subject) => format!("{amount}: {}", subject.shortened(80)),
        None => amount,
    }
}

/// Whether the joules were measured, and by what: a picture travels without its report.
pub(super) fn provenance(summary: &Summary, weight: Weight) -> String {
    if weight != Weight::Joules {
        return format!("not joules but {}", if weight == Weight::Samples { "samples" } else { "events" });
    }
    let mut sources: Vec<&str> =
        summary.domains.iter().filter(|domain| domain.counted).map(|domain| domain.source.as_str()).collect();
    sources.dedup();
    format!("{} ({})", how(summary.method), sources.join(", "))
}
