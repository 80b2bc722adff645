//! Names of functions in few columns.
//!
//! Names of C++ and Rust hold the types that a function was made for, which may be thousands of letters, and of which a
//! reader needs the least: `std::vector<…>::push_back` says more than `std::vector<std::pair…ack`. So these go first, the
//! innermost before those around them, and the middle of what is left only if that is still too long.

use std::borrow::Cow;
use std::collections::BTreeMap;

use unicode_width::UnicodeWidthStr;

use super::{ELLIPSIS, Label, take_columns};

/// What stands between a name and the number that tells it from others that look the same.
const MARK: char = '~';

impl Label {
    /// The name of a function in at most `columns` columns of a terminal.
    pub fn short_name(&self, columns: usize) -> Cow<'_, str> {
        match self.without_types(columns) {
            name if name.width() <= columns => name,
            name => Cow::Owned(cut_before_end(&name, columns)),
        }
    }

    /// The name of a function without so many of its types as it takes to have at most `columns` columns, or without all of
    /// them where that is not enough.
    pub fn without_types(&self, columns: usize) -> Cow<'_, str> {
        let name = self.as_str();
        if name.width() <= columns {
            return Cow::Borrowed(name);
        }
        let groups = groups(name);
        let deepest = groups.iter().map(|group| group.depth).max().unwrap_or(0);
        let mut shortest = Cow::Borrowed(name);
        for depth in (1..=deepest).rev() {
            shortest = Cow::Owned(without(name, &groups, depth));
            if shortest.width() <= columns {
                break;
            }
        }
        shortest
    }
}

/// Names that were cut, so that different ones never look the same: `map_fn<…>` and `map_fn<…>~2`.
#[derive(Debug, Default)]
pub struct ShortNames {
    /// Whose each is.
    taken: BTreeMap<String, Label>,
}

impl ShortNames {
    /// A name in at most `columns` columns, as `short` cuts it. It is the same each time that one asks.
    pub fn name(
        &mut self,
        name: &Label,
        columns: usize,
        short: impl Fn(&Label, usize) -> Cow<'_, str>,
    ) -> String {
        let mut said = short(name, columns).into_owned();
        let mut number = 1;
        while self.taken.get(&said).is_some_and(|other| other != name) {
            number += 1;
            let mark = format!("{MARK}{number}");
            said = short(name, columns.saturating_sub(mark.len())).into_owned() + &mark;
        }
        self.taken.entry(said.clone()).or_insert_with(|| name.clone());
        said
    }

    /// Several names, in whatever order these are: which of them have numbers depends on the names alone.
    pub fn all(
        names: &[&Label],
        columns: usize,
        short: impl Fn(&Label, usize) -> Cow<'_, str> + Copy,
    ) -> Vec<String> {
        let mut known = Self::default();
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        for name in sorted {
            known.name(name, columns, short);
        }
        names.iter().map(|name| known.name(name, columns, short)).collect()
    }
}

/// What stands in brackets: types that a template was made for, or parameters.
#[derive(Debug)]
struct Group {
    /// Of what is between the brackets.
    start: usize,
    end: usize,
    /// 1 for those that stand in no others.
    depth: usize,
    /// `<T as Trait>` at the beginning of a name says whose function it is.
    is_owner: bool,
}

/// The groups of a name, by their beginnings.
fn groups(name: &str) -> Vec<Group> {
    let bytes = name.as_bytes();
    let mut open: Vec<(u8, usize)> = Vec::new();
    let mut groups = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"operator") {
            at += "operator".len();
            at += operator_signs(&bytes[at..]);
            continue;
        }
        match bytes[at] {
            bracket @ (b'<' | b'(' | b'{') => open.push((bracket, at)),
            // An arrow points to a type.
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            bracket @ (b'>' | b')' | b'}') => {
                let opening = match bracket {
                    b'>' => b'<',
                    b')' => b'(',
                    _ => b'{',
                };
                if let Some(place) = open.iter().rposition(|(bracket, _)| *bracket == opening) {
                    let start = open[place].1 + 1;
                    open.truncate(place);
                    let depth = 1 + open.iter().filter(|(bracket, _)| *bracket != b'{').count();
                    // `{lambda(int)#1}` is a name.
                    if opening != b'{' && at > start {
                        groups.push(Group { start, end: at, depth, is_owner: start == 1 && opening == b'<' });
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    groups.sort_by_key(|group| group.start);
    groups
}

/// Signs of these that belong to an operator's name.
fn operator_signs(behind: &[u8]) -> usize {
    const OPERATORS: [&[u8]; 12] =
        [b"<=>", b"<<=", b">>=", b"->*", b"<<", b">>", b"<=", b">=", b"->", b"()", b"<", b">"];
    OPERATORS.iter().find(|operator| behind.starts_with(operator)).map_or(0, |operator| operator.len())
}

/// A name without what stands in groups of this depth and deeper ones.
fn without(name: &str, groups: &[Group], depth: usize) -> String {
    let mut short = String::with_capacity(name.len());
    let mut end = 0;
    for group in groups.iter().filter(|group| group.depth >= depth && !group.is_owner) {
        if group.start >= end {
            short.push_str(&name[end..group.start]);
            short.push_str(ELLIPSIS);
            end = group.end;
        }
    }
    short.push_str(&name[end..]);
    short
}

/// A name without its middle, and if there is room, with all of its last part.
fn cut_before_end(name: &str, columns: usize) -> String {
    let room = columns.saturating_sub(1);
    let tail = match last_part(name) {
        part if part.width() <= room * 3 / 4 => part.to_owned(),
        _ => take_columns(name.chars().rev(), room / 2).chars().rev().collect(),
    };
    let head = take_columns(name.chars(), room.saturating_sub(tail.width()));
    if columns == 0 { String::new() } else { format!("{head}{ELLIPSIS}{tail}") }
}

/// The function's own name. That of a lambda or closure is no more than what it is called in.
fn last_part(name: &str) -> &str {
    let groups = groups(name);
    let is_outside = |at: usize| !groups.iter().any(|group| (group.start..group.end).contains(&at));
    let mut parts = name.rmatch_indices("::").map(|(at, _)| at).filter(|&at| is_outside(at));
    let mut start = parts.next().map_or(0, |at| at + 2);
    while matches!(&name[start..], "operator()" | "{{closure}}") || name[start..].starts_with("{closure") {
        match parts.next() {
            Some(at) => start = at + 2,
            None => return name,
        }
        if !name[start..].starts_with('{') {
            break;
        }
    }
    &name[start..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn short(name: &str, columns: usize) -> String {
        Label::new(name).short_name(columns).into_owned()
    }

    #[test]
    fn types_go_before_names_do() {
        let push = "std::vector<std::pair<int, std::string>, std::allocator<char> >::push_back";
        assert_eq!(short(push, 100), push);
        assert_eq!(short(push, 70), "std::vector<std::pair<…>, std::allocator<…> >::push_back");
        assert_eq!(short(push, 30), "std::vector<…>::push_back");
        assert_eq!(short(push, 20), "std::vecto…push_back");
    }

    #[test]
    fn what_a_lambda_is_called_in_stays_with_it() {
        let lambda = "main::{lambda(std::vector<int>, int)#2}::operator()";
        assert_eq!(short(lambda, 40), "main::{lambda(…)#2}::operator()");
        let deep = "app::handlers::request::{lambda()#12}::operator()";
        assert_eq!(short(deep, 36), "app::handl…{lambda()#12}::operator()");
        assert_eq!(short("a_crate::module::function::{{closure}}", 30), "a_crate:…function::{{closure}}");
    }

    #[test]
    fn operators_and_arrows_are_no_brackets() {
        let shift = "std::operator<< <std::char_traits<char> >";
        assert_eq!(short(shift, 30), "std::operator<< <…>");
        assert_eq!(short("ns::operator-><int, long, char>", 22), "ns::operator-><…>");
        assert_eq!(short("call<fn(u8) -> alloc::vec::Vec<u8>>::run", 20), "call<…>::run");
    }

    #[test]
    fn the_owner_of_a_method_is_kept() {
        let method = "<alloc::vec::Vec<T, A> as core::iter::traits::Extend<&T>>::extend";
        assert_eq!(short(method, 62), "<alloc::vec::Vec<…> as core::iter::traits::Extend<…>>::extend");
        assert_eq!(short(method, 30), "<alloc::vec::Vec<…> as …extend");
    }

    #[test]
    fn different_names_never_look_the_same() {
        let names = ["map_fn<std::vector<int> >", "map_fn<std::vector<long> >", "other"].map(Label::new);
        let [int, long, other] = &names;
        let told = ShortNames::all(&[long, int, other, long], 13, Label::short_name);
        assert_eq!(told, ["map_fn<…>~2", "map_fn<…>", "other", "map_fn<…>~2"]);
        assert_eq!(ShortNames::all(&[int, other], 13, Label::short_name), ["map_fn<…>", "other"]);
        assert_eq!(ShortNames::all(&[int, long], 80, Label::short_name), [int.as_str(), long.as_str()]);
    }

    proptest! {
        #[test]
        fn names_keep_to_the_width(text in "[a-c<>(){}: -]{0,40}(operator)?[<>()=:a]{0,8}|\\PC{0,40}", columns in 0usize..50) {
            prop_assert!(Label::new(&text).short_name(columns).width() <= columns);
        }

        #[test]
        fn names_are_told_apart(texts in prop::collection::vec("[ab]{1,3}<[ab]{8,10}>", 1..20), columns in 8usize..14) {
            let names: Vec<Label> = texts.iter().map(|text| Label::new(text)).collect();
            let told = ShortNames::all(&names.iter().collect::<Vec<_>>(), columns, Label::short_name);
            for (at, (name, said)) in names.iter().zip(&told).enumerate() {
                prop_assert!(said.width() <= columns, "{}", said);
                for (other, also) in names[..at].iter().zip(&told) {
                    prop_assert_eq!(name == other, said == also, "{} {}", name, other);
                }
            }
        }
    }
}
