//! The modules of a crate, as the compiler finds them: files, modules written inside of files, and those that only
//! tests see, which are left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta};

use crate::names::{Names, is_for_tests};

/// A module: the crate's name, then one name per level.
pub type Id = Vec<String>;

/// The library's crate: its modules are rooms. Of the binary, too; any other crate is one room.
const LIBRARY: &str = "eprof";
const BINARY: &str = "main";

/// The room that a module stands in.
pub fn room(id: &Id) -> &str {
    match (id[0].as_str(), id.get(1)) {
        (LIBRARY | BINARY, Some(module)) => module,
        (LIBRARY, None) => "lib",
        (name, _) => name,
    }
}

/// A module as people write it: `report/html`.
pub fn path(id: &Id) -> String {
    let skipped = usize::from(id.len() > 1 && matches!(id[0].as_str(), LIBRARY | BINARY));
    id[skipped..].join("/")
}

/// Is it a module of the crates whose modules are rooms?
pub fn is_library_or_binary(id: &Id) -> bool {
    matches!(id[0].as_str(), LIBRARY | BINARY)
}

/// A module and what is named in its code.
pub struct Module {
    /// The file that it stands in.
    pub file: PathBuf,
    /// The module that the file is: another one for modules written inside of files.
    pub of_file: Id,
    /// Modules declared here, and not only for tests.
    pub children: Vec<String>,
    /// What its code names.
    pub names: Names,
}

/// All modules of all crates.
#[derive(Default)]
pub struct Modules {
    /// By their paths.
    pub by_id: BTreeMap<Id, Module>,
    /// Files of modules that only tests see.
    pub test_files: Vec<PathBuf>,
}

/// How the text of a file is had; `None` if there is no such file.
pub type Read<'a> = dyn Fn(&Path) -> Option<String> + 'a;

/// Where a module's own modules are looked for.
struct Place<'a> {
    id: Id,
    of_file: Id,
    file: &'a Path,
    folder: PathBuf,
    for_tests: bool,
}

impl Modules {
    /// Adds a crate, from the file of its root module.
    ///
    /// # Panics
    /// If a file is missing or cannot be parsed.
    pub fn add_crate(&mut self, name: &str, root: &Path, read: &Read<'_>) {
        let folder = root.parent().expect("a folder").to_owned();
        self.add_file(vec![name.to_owned()], root, folder, false, read);
    }

    fn add_file(&mut self, id: Id, file: &Path, folder: PathBuf, for_tests: bool, read: &Read<'_>) {
        let text = read(file).unwrap_or_else(|| panic!("{}: no such file", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let for_tests = for_tests || is_for_tests(&parsed.attrs);
        if for_tests {
            self.test_files.push(file.to_owned());
        }
        let place = Place { of_file: id.clone(), id, file, folder, for_tests };
        self.add_items(place, &parsed.items, read);
    }

    fn add_items(&mut self, place: Place<'_>, items: &[Item], read: &Read<'_>) {
        let (names, declared) = Names::of(items);
        let mut children = Vec::new();
        for module in declared {
            let name = module.ident.to_string();
            let for_tests = place.for_tests || is_for_tests(&module.attrs);
            if !for_tests {
                children.push(name.clone());
            }
            self.add_declared(&place, &name, &module, for_tests, read);
        }
        if !place.for_tests {
            let module = Module { file: place.file.to_owned(), of_file: place.of_file, children, names };
            self.by_id.insert(place.id, module);
        }
    }

    fn add_declared(
        &mut self,
        place: &Place<'_>,
        name: &str,
        module: &ItemMod,
        for_tests: bool,
        read: &Read<'_>,
    ) {
        let id = [&place.id[..], &[name.to_owned()]].concat();
        let folder = place.folder.join(name);
        if let Some((_, items)) = &module.content {
            let of_file = place.of_file.clone();
            self.add_items(Place { id, of_file, file: place.file, folder, for_tests }, items, read);
            return;
        }
        let (file, folder) = match path_of(&module.attrs) {
            // Such a file's own modules stand beside it.
            Some(path) => {
                let file = place.file.with_file_name(path);
                let folder = file.parent().expect("a folder").to_owned();
                (file, folder)
            }
            None => {
                let flat = folder.with_extension("rs");
                let file = if read(&flat).is_some() { flat } else { folder.join("mod.rs") };
                (file, folder)
            }
        };
        self.add_file(id, &file, folder, for_tests, read);
    }
}

/// What `#[path = "..."]` says.
fn path_of(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}
