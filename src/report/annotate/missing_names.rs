//! Code without names: what is asked for by a name may lie there, and what else has that name in its own is not it.

use std::collections::BTreeMap;

use super::find::FoundBy;
use super::own_code::OwnCode;
use crate::label::Label;
use crate::report::error::ReportError;
use crate::symbolize::SymbolWarning;

/// So many causes are told, and so many functions that have the name in theirs.
const MOST_TOLD: usize = 2;

/// A smaller share of everything is not where a function that somebody asks for lies.
const WORTH_TELLING: f64 = 0.05;

/// The error in place of functions that only have a name in theirs, or of none, where more lies in files whose names are
/// missing, as those of a program that was built anew since: the function that is meant is there, and it is that which is to be
/// mended. `weights` are of the functions themselves.
pub(super) fn instead_of(
    found: &Result<(Vec<usize>, FoundBy), ReportError>,
    own: &OwnCode<'_>,
    weights: &[f64],
    name: &str,
) -> Option<ReportError> {
    let found = match found {
        Ok((found, FoundBy::Pattern)) if is_plain(name) => &found[..],
        Err(ReportError::NothingToAnnotate { .. }) => &[],
        _ => return None,
    };
    let unnamed = without_names(own);
    let weight: f64 = unnamed.iter().map(|(weight, _)| weight).sum();
    let of_found: f64 = found.iter().map(|&index| weights[index]).sum();
    let whole = own.whole.weight(own.selected.weight).max(f64::MIN_POSITIVE);
    if weight <= of_found || weight < whole * WORTH_TELLING {
        return None;
    }
    let causes: Vec<String> = unnamed
        .iter()
        .take(MOST_TOLD)
        .map(|(_, warning)| Label::new(&warning.to_string()).to_string())
        .collect();
    let names: Vec<&str> =
        found.iter().take(MOST_TOLD).map(|&index| own.frames.functions[index].name.as_str()).collect();
    let instead = match (&names[..], found.len()) {
        ([], _) => String::new(),
        ([one], _) => format!("; {one:?} has it in its name: `eprof annotate {one:?}` shows that"),
        ([first, ..], more) => {
            format!("; {more} have it in their names, as {first:?}: `eprof annotate {first:?}` shows that")
        }
    };
    Some(ReportError::NamesMissing {
        name: name.to_owned(),
        share: weight / whole,
        causes: causes.join("; "),
        instead,
    })
}

/// Whether it looks like a function's name rather than a pattern.
fn is_plain(name: &str) -> bool {
    let is_of_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | ':' | '.' | '~');
    name.chars().all(is_of_name) && name.contains(char::is_alphanumeric)
}

/// What lies in files that have no names for it, for reasons that can be mended: how much, and why; the most first.
fn without_names<'a>(own: &OwnCode<'a>) -> Vec<(f64, &'a SymbolWarning)> {
    let mut by_module: BTreeMap<u32, f64> = BTreeMap::new();
    for (address, totals) in own.addresses.iter().flatten() {
        let outermost = own.symbols.frames(*address).first();
        if outermost.is_none_or(|frame| !own.symbols.function(frame.function).known) {
            let module = own.parts.profile().addresses[address.0 as usize].module;
            *by_module.entry(module.0).or_default() += totals.weight(own.selected.weight);
        }
    }
    let mendable = own.symbols.warnings.iter().filter(|warning| warning.why.repair_of_names().is_some());
    let weigh = |warning: &'a SymbolWarning| {
        let weight: f64 = warning.modules.iter().filter_map(|module| by_module.remove(&module.0)).sum();
        (weight > 0.0).then_some((weight, warning))
    };
    let mut found: Vec<_> = mendable.filter_map(weigh).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_told_from_names() {
        for name in ["sort_all", "std::sort", "work.constprop.0", "~Pool"] {
            assert!(is_plain(name), "{name}");
        }
        for pattern in [".", "^sort", "a|b", "lz_.*", "..."] {
            assert!(!is_plain(pattern), "{pattern}");
        }
    }
}
