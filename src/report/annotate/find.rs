//! The functions that a name means.

use crate::pattern::pattern;
use crate::report::error::ReportError;
use crate::report::frames::FrameTable;

/// So many names are offered where none fits.
const MOST_OFFERED: usize = 5;

/// By what functions were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// Their whole name.
    Name,
    /// The end of their path: `sort` for `std::sort`.
    PathEnd,
    /// A regular expression, which any part of a name may match.
    Pattern,
}

/// The functions that are meant, by their index in the table, the heaviest first, and by what they were found: those named
/// so, or else those whose path ends so, or else those that match it as a regular expression. `weights` are their own, by
/// index; those without any are not meant, but where all that are named so have none, nothing else is meant instead.
/// `is_module` tells whether a function's module is wanted; `of_selected` that weights are of a part of the recording.
pub fn functions_named(
    frames: &FrameTable,
    weights: &[f64],
    name: &str,
    is_module: impl Fn(&str) -> bool,
    of_selected: bool,
) -> Result<(Vec<usize>, FoundBy), ReportError> {
    let label = |index: usize| frames.functions[index].name.as_str();
    let mut all: Vec<usize> = (0..frames.functions.len())
        .filter(|&index| is_module(frames.functions[index].module.as_str()))
        .collect();
    all.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
    let heavy = |index: &usize| weights[*index] > 0.0;
    let those = |fits: &dyn Fn(&str) -> bool| -> Result<Option<Vec<usize>>, ReportError> {
        let named: Vec<usize> = all.iter().copied().filter(|&index| fits(label(index))).collect();
        let Some(first) = named.first() else { return Ok(None) };
        let found: Vec<usize> = named.iter().copied().filter(heavy).collect();
        if found.is_empty() {
            return Err(ReportError::NothingItself { name: label(*first).to_owned(), of_selected });
        }
        Ok(Some(found))
    };
    if let Some(found) = those(&|known| known == name)? {
        return Ok((found, FoundBy::Name));
    }
    if let Some(found) = those(&|known| ends_path(known, name))? {
        return Ok((found, FoundBy::PathEnd));
    }
    let pattern =
        pattern(name).map_err(|why| ReportError::NoNameNorPattern { name: name.to_owned(), why })?;
    if let Some(found) = those(&|known| pattern.is_match(known))? {
        return Ok((found, FoundBy::Pattern));
    }
    let similar = similar(all.into_iter().filter(heavy).map(label), name);
    let similar =
        if similar.is_empty() { String::new() } else { format!("; similar: {}", similar.join(", ")) };
    Err(ReportError::NothingToAnnotate { name: name.to_owned(), similar })
}

/// `sort` for `core::slice::sort` and for `std::sort(int*)`.
fn ends_path(known: &str, name: &str) -> bool {
    let path = path(known);
    path == name || path.strip_suffix(name).is_some_and(|before| before.ends_with("::"))
}

/// A name without its parameters, and without the types that a template was made for.
fn path(known: &str) -> &str {
    const UNNAMED: &str = "(anonymous namespace)";
    let is_of_parameters = |at: &usize| !known[*at..].starts_with(UNNAMED);
    let end = known.match_indices('(').map(|(at, _)| at).find(is_of_parameters).unwrap_or(known.len());
    let path = &known[..end];
    let mut depth = 0;
    let types = path.char_indices().rev().find_map(|(at, letter)| {
        depth += i32::from(letter == '>') - i32::from(letter == '<');
        (depth == 0).then_some(at)
    });
    match types {
        Some(at) if path.ends_with('>') && path[at..].starts_with('<') => &path[..at],
        _ => path,
    }
}

/// Names that have it in them, or few letters different; the heaviest first.
fn similar<'a>(names: impl Iterator<Item = &'a str>, wanted: &str) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let last = |name: &str| {
        name.split('(').next().unwrap_or(name).rsplit("::").next().unwrap_or(name).to_lowercase()
    };
    let is_similar = |name: &&str| {
        let lower = name.to_lowercase();
        lower.contains(&wanted) || distance(&last(name), &last(&wanted)) <= 1 + wanted.len().min(30) / 4
    };
    let mut found: Vec<&str> = Vec::new();
    for name in names.filter(is_similar) {
        if !found.contains(&name) && found.len() < MOST_OFFERED {
            found.push(name);
        }
    }
    found
}

/// How many letters must be changed, left out or put in (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (index, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for column in 0..b.len() {
            let changed = diagonal + usize::from(letter != b[column]);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_textbook() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!((distance("", "abc"), distance("abc", ""), distance("same", "same")), (3, 3, 0));
    }

    #[test]
    fn ends_of_paths_are_whole_names() {
        assert!(ends_path("a::b::sort", "sort") && ends_path("a::b::sort", "b::sort"));
        assert!(ends_path("std::sort(int*)", "sort") && !ends_path("a::resort", "sort"));
        assert!(ends_path("(anonymous namespace)::sort(int*)", "sort") && ends_path("sort(int)", "sort"));
        assert!(ends_path("void std::sort<std::pair<int, int>*>(int*)", "sort"));
        assert!(ends_path("a::operator->", "operator->") && ends_path("a::operator<", "operator<"));
    }

    #[test]
    fn similar_names_are_few_letters_away() {
        let names = ["alpha::sort_all", "beta::sort_al", "gamma::merge"];
        assert_eq!(similar(names.into_iter(), "sotr_all"), ["alpha::sort_all", "beta::sort_al"]);
        assert_eq!(similar(names.into_iter(), "MERGE"), ["gamma::merge"]);
        assert!(similar(names.into_iter(), "entirely_else").is_empty());
    }
}
