//! What is wrong with a table, and who touches the world.

use std::collections::BTreeMap;

use crate::modules::{Id, Modules, path};
use crate::resolve::Found;
use crate::table::Row;

/// What the table says and the code does not, and the other way round.
pub fn differences(written: &[Row], actual: &[Row]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, row) in written.iter().enumerate() {
        let name = &row.name;
        if written[..at].iter().any(|other| other.name == *name) {
            wrong.push(format!("{name} has two rows"));
        }
        for below in row.uses.iter().filter(|used| !written[..at].iter().any(|other| other.name == **used)) {
            wrong.push(format!("{name} names {below}, which does not stand above it"));
        }
        let Some(real) = actual.iter().find(|other| other.name == *name) else {
            wrong.push(format!("{name} has a row, but there is no such module"));
            continue;
        };
        let taken = real.uses.iter().filter(|used| !row.uses.contains(used));
        wrong.extend(taken.map(|used| format!("{name} uses {used}, which the table does not allow")));
        let idle = row.uses.iter().filter(|used| !real.uses.contains(used));
        wrong.extend(idle.map(|used| format!("{name} may use {used}, but does not")));
    }
    let without = actual.iter().filter(|row| !written.iter().any(|other| other.name == row.name));
    wrong.extend(without.map(|row| format!("{} has no row", row.name)));
    wrong
}

/// Modules that use something of `world`, and what.
pub fn touching(modules: &Modules, world: &[&str], of: impl Fn(&Id) -> bool) -> BTreeMap<String, String> {
    let is_of_world = |found: &[String]| {
        world.iter().any(|part| {
            part.split("::")
                .zip(found.iter().map(Some).chain(std::iter::repeat(None)))
                .all(|(part, found)| found.is_some_and(|found| found == part))
        })
    };
    let mut touching = BTreeMap::new();
    for (id, module) in modules.by_id.iter().filter(|(id, _)| of(id)) {
        let imports = module.names.imports.iter().map(|import| &import.path);
        for named in imports.chain(&module.names.paths) {
            for found in modules.resolve(id, named) {
                if let Found::Foreign(found) = found
                    && is_of_world(&found)
                {
                    touching.insert(path(&module.of_file), found.join("::"));
                }
            }
        }
    }
    touching
}
