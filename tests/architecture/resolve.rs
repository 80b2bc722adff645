//! Which module defines what a path names, through `use` lines and through modules that hand on what others define.

use std::slice;

use crate::modules::{Id, Module, Modules, room};
use crate::names::Import;

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A module of ours, or an item that it defines.
    Ours { module: Id, item: Option<String> },
    /// Something of another crate, by its whole path.
    Foreign(Vec<String>),
}

/// No chain of `use` lines is longer; longer ones run in a circle.
const MOST_STEPS: usize = 16;

impl Modules {
    /// What a path means in a module. A name may stand for a module and for a function at once.
    ///
    /// What another room hands on as its own, though a third one defines it, is that other room's.
    pub fn resolve(&self, from: &Id, path: &[String]) -> Vec<Found> {
        Search { modules: self, asked_by: room(from) }.resolve(from, path, MOST_STEPS)
    }
}

struct Search<'a> {
    modules: &'a Modules,
    /// The room of the code that names the path.
    asked_by: &'a str,
}

impl Search<'_> {
    fn resolve(&self, from: &Id, path: &[String], steps: usize) -> Vec<Found> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        match first.as_str() {
            _ if steps == 0 => Vec::new(),
            "Self" => Vec::new(),
            "crate" => self.below(&from[..1], rest, steps),
            "self" => self.below(from, rest, steps),
            "super" => {
                let parents = 1 + rest.iter().take_while(|part| *part == "super").count();
                let parent = from.len().checked_sub(parents).filter(|&levels| levels > 0);
                parent
                    .map_or_else(Vec::new, |levels| self.below(&from[..levels], &rest[parents - 1..], steps))
            }
            "" => self.of_crate(from, rest, steps),
            _ => {
                let found = self.looked_up(from, path, steps);
                if found.is_empty() && path.len() > 1 { self.of_crate(from, path, steps) } else { found }
            }
        }
    }

    /// A path that begins with the name of a crate.
    fn of_crate(&self, from: &Id, path: &[String], steps: usize) -> Vec<Found> {
        let Some((name, rest)) = path.split_first() else { return Vec::new() };
        let root = vec![name.replace('_', "-")];
        if root[0] != from[0] && self.modules.by_id.contains_key(&root) {
            return self.below(&root, rest, steps);
        }
        vec![Found::Foreign(path.to_vec())]
    }

    /// What lies below a module. What is not seen there, since a macro makes it, is its own.
    fn below(&self, module: &[String], path: &[String], steps: usize) -> Vec<Found> {
        let module = module.to_vec();
        let Some(name) = path.first() else { return vec![Found::Ours { module, item: None }] };
        if !self.modules.by_id.contains_key(&module) {
            return Vec::new();
        }
        let found = self.looked_up(&module, path, steps);
        if found.is_empty() { vec![Found::Ours { module, item: Some(name.clone()) }] } else { found }
    }

    /// What a path's first name means in a module, if that is seen there, and the rest below it.
    fn looked_up(&self, id: &Id, path: &[String], steps: usize) -> Vec<Found> {
        let (Some(module), Some((name, rest))) = (self.modules.by_id.get(id), path.split_first()) else {
            return Vec::new();
        };
        let is_child = module.children.contains(name);
        if is_child && !rest.is_empty() {
            return self.below(&[&id[..], slice::from_ref(name)].concat(), rest, steps);
        }
        let imports = module.names.imports.iter().filter(|import| import.name.as_ref() == Some(name));
        let mut found: Vec<Found> =
            imports.flat_map(|import| self.imported(id, module, import, rest, steps)).collect();
        let is_item = module.names.items.contains(name);
        if found.is_empty() && !is_child && !is_item {
            found = self.by_globs(id, module, path, steps);
        }
        found = found.into_iter().map(|found| self.handed_on(id, name, found)).collect();
        if is_child {
            found.push(Found::Ours { module: [&id[..], slice::from_ref(name)].concat(), item: None });
        }
        if is_item {
            found.push(Found::Ours { module: id.clone(), item: Some(name.clone()) });
        }
        found
    }

    /// What a `use` line means. Its own name does not count where its path begins: `use regex::regex`.
    fn imported(
        &self,
        id: &Id,
        module: &Module,
        import: &Import,
        rest: &[String],
        steps: usize,
    ) -> Vec<Found> {
        let whole = [&import.path[..], rest].concat();
        let first = import.path.first();
        let begins_with_itself = first == import.name.as_ref();
        let is_child = first.is_some_and(|first| module.children.contains(first));
        match begins_with_itself && !is_child {
            true => self.of_crate(id, &whole, steps - 1),
            false => self.resolve(id, &whole, steps - 1),
        }
    }

    fn by_globs(&self, id: &Id, module: &Module, path: &[String], steps: usize) -> Vec<Found> {
        if steps == 0 {
            return Vec::new();
        }
        let globs = module.names.imports.iter().filter(|import| import.name.is_none());
        let modules = globs.flat_map(|glob| self.resolve(id, &glob.path, steps - 1));
        let found = modules.map(|target| match target {
            Found::Ours { module, item: None } if module != *id => self.looked_up(&module, path, steps - 1),
            _ => Vec::new(),
        });
        found.flatten().collect()
    }

    /// What a module has by its `use` lines, as the code that asks should see it. The root of a crate is no room.
    fn handed_on(&self, id: &Id, name: &str, found: Found) -> Found {
        let is_of_other_room = id.len() > 1 && room(id) != self.asked_by;
        match found {
            Found::Ours { module, .. } if is_of_other_room && room(&module) != room(id) => {
                Found::Ours { module: id.clone(), item: Some(name.to_owned()) }
            }
            found => found,
        }
    }
}
