//! Who uses whom: between the rooms of the house (modules at the top, and crates beside the library), and
//! between the parts of every folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::modules::{Id, Modules, is_library_or_binary, path, room};
use crate::resolve::Found;

/// That one file uses another, and the names that it takes.
pub type Uses = BTreeMap<(Id, Id), BTreeSet<String>>;

/// What every file uses of the others.
///
/// A module that hands on (`pub use`) what a module below it defines does not use it by that: the line is an entry of
/// the folder's list of contents, and who imports the name through it uses the child. So a child may use what its
/// parent defines, where the parent's own code needs nothing of the child.
pub fn uses(modules: &Modules) -> Uses {
    let mut uses = Uses::new();
    for (id, module) in &modules.by_id {
        let imports = module.names.imports.iter().map(|import| (&import.path, import.is_public));
        for (path, is_handed_on) in imports.chain(module.names.paths.iter().map(|path| (path, false))) {
            for found in modules.resolve(id, path) {
                let Found::Ours { module: target, item } = found else { continue };
                let Some(used) = modules.by_id.get(&target) else { continue };
                // A module above is named on the way to what is meant.
                let is_way = item.is_none() && id.starts_with(&target);
                let is_contents = is_handed_on && target.starts_with(id);
                if used.of_file != module.of_file && !is_way && !is_contents {
                    let name = item.or_else(|| target.last().cloned()).expect("a name");
                    uses.entry((module.of_file.clone(), used.of_file.clone())).or_default().insert(name);
                }
            }
        }
    }
    uses
}

/// Every room, and the rooms that it uses.
pub fn rooms(modules: &Modules, uses: &Uses) -> BTreeMap<String, BTreeSet<String>> {
    // The library's root, if it only lists modules.
    let is_empty = |id: &Id| room(id) == "lib" && modules.by_id[id].names.items.is_empty();
    let mut rooms: BTreeMap<String, BTreeSet<String>> = modules
        .by_id
        .keys()
        .filter(|id| !is_empty(id))
        .map(|id| (room(id).to_owned(), BTreeSet::new()))
        .collect();
    for (from, to) in uses.keys() {
        if room(from) != room(to) {
            rooms.entry(room(from).to_owned()).or_default().insert(room(to).to_owned());
        }
    }
    rooms
}

/// Parts that use each other round about, and by which names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circle {
    /// The module whose parts they are, as `report/html`; `the house` for the rooms.
    pub place: String,
    /// The parts: modules below it, or its own file.
    pub parts: BTreeSet<String>,
    /// File to file, with names.
    pub by: Vec<String>,
}

impl Circle {
    /// `place: part part`.
    pub fn name(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        format!("{}: {}", self.place, parts.join(" "))
    }
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a circle in {}", self.name())?;
        self.by.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// All circles: between rooms, and in every folder between its parts, each with all that is in it, and its own file.
pub fn circles(modules: &Modules, uses: &Uses) -> Vec<Circle> {
    let mut found = circles_among("the house".to_owned(), uses, |id| Some(room(id).to_owned()));
    let folders = modules
        .by_id
        .iter()
        .filter(|(id, module)| !module.children.is_empty() && (id.len() > 1 || !is_library_or_binary(id)));
    for (folder, module) in folders {
        let own = module.file.file_name().expect("a name").to_string_lossy().into_owned();
        let part = |id: &Id| {
            let below = id.strip_prefix(&folder[..])?;
            Some(below.first().unwrap_or(&own).clone())
        };
        found.extend(circles_among(path(folder), uses, part));
    }
    found
}

fn circles_among(place: String, uses: &Uses, part: impl Fn(&Id) -> Option<String>) -> Vec<Circle> {
    let arrows: Vec<(String, String, String)> = uses
        .iter()
        .filter_map(|((from, to), names)| {
            let (a, b) = (part(from)?, part(to)?);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            (a != b).then(|| (a, b, format!("{} -> {}: {}", path(from), path(to), names.join(", "))))
        })
        .collect();
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to, _) in &arrows {
        next.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|&part| (part, reach(part, &next))).collect();
    let mut circles: Vec<Circle> = Vec::new();
    for (&part, from_it) in &reached {
        let is_known = circles.iter().any(|circle| circle.parts.contains(part));
        if !from_it.contains(part) || is_known {
            continue;
        }
        let comes_back = |other: &&&str| reached.get(**other).is_some_and(|there| there.contains(part));
        let parts: BTreeSet<String> =
            from_it.iter().filter(comes_back).map(|&part| part.to_owned()).collect();
        let inside = |(from, to, line): &(String, String, String)| {
            (parts.contains(from) && parts.contains(to)).then(|| line.clone())
        };
        circles.push(Circle { place: place.clone(), by: arrows.iter().filter_map(inside).collect(), parts });
    }
    circles
}

/// All that can be reached from a part by one arrow or more.
fn reach<'a>(part: &'a str, next: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![part];
    while let Some(part) = open.pop() {
        for &to in next.get(part).into_iter().flatten() {
            if reached.insert(to) {
                open.push(to);
            }
        }
    }
    reached
}
