//! Warnings that say the same of many files, threads or events: said once, with their number.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

/// So many that differ only in what they are of stand side by side.
const SIDE_BY_SIDE: usize = 2;
/// Of so many others the files are named.
const MOST_NAMED: usize = 3;

/// The warnings, each kind once: where more than two differ in nothing but files and numbers, the first stands for all,
/// and tells how many there are. What is said twice in the same words is said once.
pub fn said_once(warnings: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    let mut kinds: Vec<Vec<String>> = Vec::new();
    let mut by_kind: FxHashMap<String, usize> = FxHashMap::default();
    for warning in warnings {
        let warning = warning.as_ref();
        let kind = *by_kind.entry(kind_of(warning)).or_insert_with(|| {
            kinds.push(Vec::new());
            kinds.len() - 1
        });
        if !kinds[kind].iter().any(|known| known == warning) {
            kinds[kind].push(warning.to_owned());
        }
    }
    kinds
        .into_iter()
        .flat_map(|kind| if kind.len() > SIDE_BY_SIDE { vec![together(&kind)] } else { kind })
        .collect()
}

/// The words but for files and numbers.
fn kind_of(warning: &str) -> String {
    let word = |word| if is_particular(word) { Cow::Borrowed("\0") } else { Cow::Borrowed(word) };
    warning.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn is_particular(word: &str) -> bool {
    word.contains('/') || word.contains(|character: char| character.is_ascii_digit())
}

fn together(kind: &[String]) -> String {
    let (first, others) = (&kind[0], &kind[1..]);
    let own = files(first);
    let mut names: Vec<&str> = Vec::new();
    for name in others.iter().flat_map(|warning| files(warning)) {
        if !own.contains(&name) && !names.contains(&name) {
            names.push(name);
        }
    }
    let rest = if names.len() > MOST_NAMED { ", …" } else { "" };
    names.truncate(MOST_NAMED);
    let of = if names.is_empty() { String::new() } else { format!(", of {}{rest}", names.join(", ")) };
    format!("{first} (and {} more like this{of})", others.len())
}

/// The names of the files that a warning speaks of.
fn files(warning: &str) -> Vec<&str> {
    let words = warning.split(' ').filter(|word| word.starts_with('/'));
    words.filter_map(|word| word.trim_end_matches([',', ':', ';', '.', ')']).rsplit('/').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_many_files_is_said_once() {
        let of = |number: usize| {
            format!("{number} call stacks end in /usr/lib/lib{number}.so, whose tables were not read")
        };
        let said = said_once((1..=12).map(of).chain(["the rings were full".to_owned()]));
        assert_eq!(
            said,
            [
                "1 call stacks end in /usr/lib/lib1.so, whose tables were not read (and 11 more like this, of lib2.so, \
                 lib3.so, lib4.so, …)",
                "the rings were full"
            ]
        );
    }

    #[test]
    fn two_stand_side_by_side_and_equal_ones_are_one() {
        let two = ["no lines of /a/x: damaged", "no lines of /a/y: damaged"];
        assert_eq!(said_once(two), two);
        assert_eq!(said_once(["it is full", "it is full", "it is full"]), ["it is full"]);
        let other =
            ["no lines of /a/x: damaged", "no lines of /a/y: too large", "no symbols of /a/x: damaged"];
        assert_eq!(said_once(other), other, "what is wrong differs");
        assert_eq!(said_once(["1 lost", "2 lost", "3 lost"]), ["1 lost (and 2 more like this)"]);
    }
}
