//! Tests of the test, on crates of a few lines of which everything is known.

use std::collections::BTreeSet;
use std::path::Path;

use crate::checks::{differences, touching};
use crate::graph::{Circle, circles, rooms, uses};
use crate::modules::{Modules, path};
use crate::table;

/// Crates of these files. `eprof` is there if there is a `lib.rs`, and so on.
fn house(files: &[(&str, &str)]) -> Modules {
    let read = |path: &Path| {
        let file = files.iter().find(|(name, _)| Path::new(name) == path);
        file.map(|(_, text)| (*text).to_owned())
    };
    let mut modules = Modules::default();
    for (name, root) in [("eprof", "lib.rs"), ("main", "main.rs"), ("beside", "beside/lib.rs")] {
        if files.iter().any(|(file, _)| *file == root) {
            modules.add_crate(name, Path::new(root), &read);
        }
    }
    modules
}

/// `a -> b: what it takes`, for each file and each that it uses.
fn arrows(files: &[(&str, &str)]) -> Vec<String> {
    let names = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    let uses = uses(&house(files));
    uses.iter()
        .map(|((from, to), taken)| format!("{} -> {}: {}", path(from), path(to), names(taken)))
        .collect()
}

/// `place: part part`, for each circle.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let house = house(files);
    let circles = circles(&house, &uses(&house));
    circles.iter().map(Circle::name).collect()
}

/// A library of a module `a` with this text, and modules `b` to `e` without code.
fn arrows_of(text: &str) -> Vec<String> {
    let empty = ["b.rs", "c.rs", "d.rs", "e.rs"].map(|file| (file, ""));
    let root = ("lib.rs", "mod a; mod b; mod c; mod d; mod e;");
    arrows(&[&[root, ("a.rs", text)], &empty[..]].concat())
}

#[test]
fn code_below_tests_in_the_middle_of_a_file_counts() {
    let text = "
        use crate::b::Early;
        #[cfg(test)]
        mod tests { use crate::e::Hidden; fn f() { crate::e::hidden(); } }
        fn late() { crate::c::late() }
        #[cfg(all(unix, test))]
        use crate::e::Other;
        impl T {
            #[cfg(test)]
            fn for_tests(&self) { crate::e::g() }
            fn real(&self) { #[cfg(test)] let x = crate::e::h(); crate::d::real(); }
        }
        #[cfg(not(test))]
        fn without_tests() { crate::d::only_outside_of_tests() }
        #[test]
        fn a_test() { crate::e::tested() }";
    assert_eq!(arrows_of(text), ["a -> b: Early", "a -> c: late", "a -> d: only_outside_of_tests real"]);
}

#[test]
fn files_that_only_tests_see_do_not_count() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "#[cfg(test)] mod tests; #[cfg(test)] #[path = \"other_tests.rs\"] mod more;"),
        ("a/tests.rs", "mod deeper; use crate::b::X;"),
        ("a/tests/deeper.rs", "use crate::b::X;"),
        ("other_tests.rs", "use crate::b::X;"),
        ("b.rs", ""),
    ];
    assert!(arrows(&files).is_empty());
    assert_eq!(house(&files).test_files.len(), 3);
}

#[test]
fn every_form_of_a_use_line() {
    let text = "
        use crate::{b::{self, One, deep::Two as Second}, c::*};
        fn f() { use super::d::Inner; }
        use self::own::Mine;
        mod own { pub struct Mine; use super::super::e::FromWithin; }
        use ::regex::Regex;";
    assert_eq!(arrows_of(text), ["a -> b: One b deep", "a -> c: c", "a -> d: Inner", "a -> e: FromWithin"]);
}

#[test]
fn paths_of_types_patterns_macros_and_attributes() {
    let text = r#"
        #[arg(value_parser = crate::b::parse, help = "crate::e::not_code")]
        struct S<T: crate::b::Bound>(Vec<crate::b::Element>);
        /// [`crate::e::NotCode`]
        fn f() -> impl Fn(crate::c::Argument) {
            match x { crate::c::Pattern { .. } => {} }
            println!("{} crate::e::NotCode", crate::c::printed());
            vec![1, (crate::d::in_group)(2)];
            assert!(matches!(x, crate::d::Kind::A | crate::d::Kind::B if a.crate_b::<T>()));
            for i in 0..crate::d::LIMIT {}
            vec![0..crate::d::AFTER_DOTS];
        }
        macro_rules! m { ($x:ident) => { $crate::d::of_macro($x::e) } }"#;
    assert_eq!(
        arrows_of(text),
        [
            "a -> b: Bound Element parse",
            "a -> c: Argument Pattern printed",
            "a -> d: AFTER_DOTS Kind LIMIT in_group of_macro"
        ]
    );
}

#[test]
fn a_name_that_is_handed_on_is_used_where_it_is_defined() {
    let files = [
        ("lib.rs", "mod room; mod other;"),
        (
            "room/mod.rs",
            "mod first; mod second; mod third; pub use first::Thing; pub use third::*; pub use Thing as Named;",
        ),
        ("room/first.rs", "pub struct Thing;"),
        ("room/second.rs", "use super::Thing; use crate::room::made_by_third;"),
        ("room/third.rs", "pub fn made_by_third() {}"),
        ("other.rs", "use crate::room; fn f(t: room::Named, u: crate::room::Unseen) {}"),
    ];
    assert_eq!(
        arrows(&files),
        [
            "other -> room: Unseen room",
            "other -> room/first: Thing",
            "room/second -> room/first: Thing",
            "room/second -> room/third: made_by_third"
        ]
    );
    assert!(circles_of(&files).is_empty());
}

#[test]
fn a_parent_that_needs_a_child_that_needs_it_is_a_circle() {
    let child = ("room/child.rs", "use super::Ground; pub struct Child(Ground);");
    let with = |parent: &'static str| circles_of(&[("lib.rs", "mod room;"), ("room.rs", parent), child]);
    let none: [&str; 0] = [];
    assert_eq!(with("mod child; pub use child::Child; pub struct Ground;"), none);
    assert_eq!(with("mod child; use child::Child; pub struct Ground;"), ["room: child room.rs"]);
    assert_eq!(with("mod child; pub struct Ground; fn f() { child::g() }"), ["room: child room.rs"]);
    let uses_what_it_hands_on = "mod child; pub use child::Child; pub struct Ground; fn f(c: Child) {}";
    assert_eq!(with(uses_what_it_hands_on), ["room: child room.rs"]);
}

#[test]
fn circles_of_files_of_folders_and_of_rooms() {
    let of_files = [
        ("lib.rs", "mod room;"),
        ("room.rs", "mod a; mod b; mod c; mod d;"),
        ("room/a.rs", "use super::b::B;"),
        ("room/b.rs", "use crate::room::c::C;"),
        ("room/c.rs", "fn f() -> super::a::A {}"),
        ("room/d.rs", "use super::a::A;"),
    ];
    assert_eq!(circles_of(&of_files), ["room: a b c"]);
    // No file needs itself round about, but the folder does.
    let of_folders = [
        ("lib.rs", "mod room;"),
        ("room.rs", "mod folder; mod b;"),
        ("room/folder.rs", "mod x; mod y;"),
        ("room/folder/x.rs", "use super::super::b::X;"),
        ("room/folder/y.rs", ""),
        ("room/b.rs", "use super::folder::y::Y;"),
    ];
    assert_eq!(circles_of(&of_folders), ["room: b folder"]);
    let of_rooms = [
        ("lib.rs", "mod low; mod high;"),
        ("low.rs", "mod x; mod y;"),
        ("low/x.rs", "use crate::high::High;"),
        ("low/y.rs", ""),
        ("high.rs", "use crate::low::y::Y;"),
    ];
    assert_eq!(circles_of(&of_rooms), ["the house: high low"]);
}

#[test]
fn rooms_of_the_library_the_binary_and_crates_beside() {
    let files = [
        ("lib.rs", "pub mod low; pub mod high; pub use low::Low as Lowest;"),
        ("low.rs", "use beside::wire::Message; pub struct Low;"),
        ("high.rs", "pub use crate::low::Low;"),
        ("main.rs", "mod cli; fn main() { cli::main() }"),
        ("cli.rs", "use eprof::{high::Low, Lowest}; pub fn main() {}"),
        ("beside/lib.rs", "mod wire; use std::fs;"),
        ("beside/wire.rs", ""),
    ];
    let house = house(&files);
    let rooms = rooms(&house, &uses(&house));
    let rows = table::rows(&rooms, &[]);
    let lines = table::print(&rows);
    assert_eq!(
        lines,
        [
            "//!   beside   ->",
            "//!   low      -> beside",
            "//!   high     -> low",
            "//!   cli      -> low high",
            "//!   main     -> cli"
        ]
    );
}

const PAGE: &str = "\
//! A crate.
//!
//! ```text
//!   picture ──► without arrows of the table
//! ```
//!
//! ```text
//!   units *  ->
//!   middle   -> units
//!   top *    -> units
//!               middle
//! ```

mod units;
";

#[test]
fn the_table_is_read_and_written_as_it_stands() {
    let rows = table::parse(PAGE);
    let short: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.is_pure, row.uses.join(" "))).collect();
    assert_eq!(
        short,
        [
            ("units", true, String::new()),
            ("middle", false, "units".into()),
            ("top", true, "units middle".into())
        ]
    );
    let written = table::replace(PAGE, &rows);
    assert_eq!(written, PAGE.replace("units\n//!               middle", "units middle"));
    assert_eq!(table::parse(&written), rows);
    let rooms = rows.iter().map(|row| (row.name.clone(), row.uses.iter().cloned().collect())).collect();
    assert_eq!(table::rows(&rooms, &rows), rows);
}

#[test]
fn long_rows_go_on_in_the_next_line() {
    let names: Vec<String> = (0..30).map(|number| format!("module_{number}")).collect();
    let ground = names.iter().map(|name| table::Row { name: name.clone(), is_pure: false, uses: Vec::new() });
    let top = table::Row { name: "top".to_owned(), is_pure: true, uses: names.clone() };
    let rows: Vec<_> = ground.chain([top]).collect();
    let page = table::replace(PAGE, &rows);
    assert!(page.lines().all(|line| line.len() <= 120) && page.lines().count() > 42, "{page}");
    assert_eq!(table::parse(&page), rows);
}

#[test]
fn whatever_is_wrong_with_a_table_is_said() {
    let row = |name: &str, uses: &[&str]| table::Row {
        name: name.to_owned(),
        is_pure: false,
        uses: uses.iter().map(|used| (*used).to_owned()).collect(),
    };
    let actual = [row("units", &[]), row("middle", &["units"]), row("top", &["units", "middle"])];
    assert!(differences(&actual, &actual).is_empty());
    let written = [
        row("middle", &["units"]),
        row("units", &[]),
        row("top", &["units"]),
        row("units", &["middle"]),
        row("gone", &[]),
    ];
    assert_eq!(
        differences(&written, &actual),
        [
            "middle names units, which does not stand above it",
            "top uses middle, which the table does not allow",
            "units has two rows",
            "units may use middle, but does not",
            "gone has a row, but there is no such module"
        ]
    );
    assert_eq!(differences(&written[..2], &actual)[1..], ["top has no row"]);
}

#[test]
fn who_touches_the_world_by_whatever_name() {
    let touches = |text: &str| {
        let house =
            house(&[("lib.rs", "mod a; mod b;"), ("a.rs", text), ("b.rs", "pub use std::thread as t;")]);
        let found = touching(&house, &["std::fs", "std::thread", "libc"], |id| {
            id.last().is_some_and(|name| name == "a")
        });
        found.into_values().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(touches("use std::{io, fs::File};"), "std::fs::File");
    assert_eq!(touches("fn f() { std::thread::spawn(g); }"), "std::thread::spawn");
    assert_eq!(touches("use std as s; fn f() { s::fs::read(p) }"), "std::fs::read");
    assert_eq!(touches("fn f() { println!(\"{}\", ::libc::getpid()) }"), "libc::getpid");
    assert_eq!(touches("fn f() { crate::b::t::spawn(g) }"), "std::thread::spawn");
    assert_eq!(touches("mod fs { pub fn read() {} } fn f() { fs::read(); std::fsx::g(); } use std::io;"), "");
    assert_eq!(touches("#[cfg(test)] mod tests { use std::fs; }"), "");
}
