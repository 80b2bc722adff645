//! What inlined functions are called that have no name for the linker, and what tells them apart.
//!
//! Such are lambdas, static functions and those of anonymous namespaces: debug information calls them `operator()` and
//! `helper`, several of one program alike. Where they are declared tells which it is, and what they are declared in how
//! people call it: `outer::{lambda at a.cpp:18:16}::operator()`, `(anonymous namespace)::helper`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use gimli::{AttributeValue, DwTag, DwarfFileType, UnitOffset, UnitRef};

use super::debug_sections::Reader;
use super::demangle::Demangler;
use super::scopes::Scopes;
use super::units::UnitIndex;

/// So many entries may refer one to the next, and scopes lie in each other.
const DEEPEST: usize = 64;
/// Longer names are left as they are.
const LONGEST: usize = 4096;

type Unit<'u, 'a> = UnitRef<'u, Reader<'a>>;

/// A function without a name for the linker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Declaration {
    /// The name with those of what it is declared in.
    pub(crate) name: Box<str>,
    /// File and line of the declaration, `/src/a.c:12`, where functions of other files may have the same name.
    pub(crate) place: Option<Box<str>>,
}

/// What an entry says, and those that it refers to.
#[derive(Default)]
struct Entry<'u, 'a> {
    tag: Option<DwTag>,
    name: Option<Reader<'a>>,
    linkage_name: Option<Reader<'a>>,
    is_external: bool,
    /// In which unit, and file, line and column there.
    declared: Option<(Unit<'u, 'a>, u64, u64, u64)>,
}

/// Finds declarations.
pub(crate) struct Declarations<'f, 'u, 'a> {
    /// Where entries of other units are.
    pub(crate) units: &'u UnitIndex<'a>,
    pub(crate) dwarf: &'u gimli::Dwarf<Reader<'a>>,
    /// What tells the files of a unit that has none itself, as it lies in a file of its own.
    pub(crate) skeleton: Option<Unit<'u, 'a>>,
    pub(crate) scopes: &'f mut Scopes,
}

impl<'u, 'a> Declarations<'_, 'u, 'a> {
    /// The entry of the function that an inlined copy is of.
    pub(crate) fn origin(
        &self,
        mut unit: Unit<'u, 'a>,
        mut at: UnitOffset,
    ) -> gimli::Result<(Unit<'u, 'a>, UnitOffset)> {
        for _ in 0..DEEPEST {
            let mut next = None;
            read(unit, at, |attribute| {
                if attribute.name() == gimli::DW_AT_abstract_origin {
                    next = self.follow(unit, &attribute.value());
                }
            })?;
            let Some(origin) = next else { break };
            (unit, at) = origin;
        }
        Ok((unit, at))
    }

    /// What tells a function from others; `None` where its name does, and where nothing does.
    pub(crate) fn find(&mut self, unit: Unit<'u, 'a>, at: UnitOffset) -> Option<Declaration> {
        let language = language_of(unit);
        if language == Language::WithLinkerNames {
            return None;
        }
        let (entry, unit, at) = self.entry(unit, at).ok()?;
        if entry.linkage_name.is_some() {
            return None;
        }
        let own = text(entry.name?);
        let place = entry.declared.filter(|_| !entry.is_external);
        let place = place.and_then(|(unit, file, line, _)| Some((self.path(unit, file)?, line)));
        let name = match language {
            Language::WithScopes => self.qualified(unit, at, &own).unwrap_or_else(|| own.clone()),
            _ => own.clone(),
        };
        if place.is_none() && name == own {
            return None;
        }
        let place = place.map(|(path, line)| format!("{}:{line}", path.display()).into());
        Some(Declaration { name: name.into(), place })
    }

    /// The name with those of namespaces, classes and functions around it.
    fn qualified(&mut self, unit: Unit<'u, 'a>, at: UnitOffset, own: &str) -> Option<String> {
        let mut parts = vec![own.to_owned()];
        let mut at = at;
        for _ in 0..DEEPEST {
            let Some(parent) = self.scopes.parent(unit, at) else {
                parts.reverse();
                return Some(parts.join("::")).filter(|name| name.len() <= LONGEST);
            };
            let (entry, of_unit, declared_at) = self.entry(unit, parent).ok()?;
            let name = entry.name.map(text).filter(|name| !name.starts_with('<'));
            at = parent;
            parts.push(match (entry.tag?, name) {
                (gimli::DW_TAG_subprogram, name) => {
                    let demangler = Demangler { enabled: true, cpp_parameters: false };
                    if let Some(whole) = entry.linkage_name.and_then(|name| demangler.demangle(&text(name))) {
                        parts.push(whole);
                        parts.reverse();
                        return Some(parts.join("::")).filter(|name| name.len() <= LONGEST);
                    }
                    if of_unit.header.offset() != unit.header.offset() {
                        return None;
                    }
                    at = declared_at;
                    name?
                }
                (gimli::DW_TAG_namespace, name) => name.unwrap_or_else(|| "(anonymous namespace)".to_owned()),
                (_, Some(name)) => name,
                (_, None) => {
                    let kind = if own == "operator()" { "lambda" } else { "unnamed" };
                    let (unit, file, line, column) = entry.declared?;
                    let path = self.path(unit, file)?;
                    let file = path.file_name()?.to_string_lossy();
                    match column {
                        0 => format!("{{{kind} at {file}:{line}}}"),
                        column => format!("{{{kind} at {file}:{line}:{column}}}"),
                    }
                }
            });
        }
        None
    }

    /// What an entry and those that it refers to say; the first to say it counts. With the last of them, which lies in the
    /// scope that it is declared in.
    fn entry(
        &self,
        mut unit: Unit<'u, 'a>,
        mut at: UnitOffset,
    ) -> gimli::Result<(Entry<'u, 'a>, Unit<'u, 'a>, UnitOffset)> {
        let mut found = Entry::default();
        for _ in 0..DEEPEST {
            let (mut next, mut place) = (None, [0; 3]);
            let string = |value| unit.attr_string(value).ok();
            let tag = read(unit, at, |attribute| match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_name, value) if found.name.is_none() => found.name = string(value),
                (gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name, value)
                    if found.linkage_name.is_none() =>
                {
                    found.linkage_name = string(value);
                }
                (gimli::DW_AT_external, AttributeValue::Flag(flag)) => found.is_external |= flag,
                (gimli::DW_AT_decl_file, AttributeValue::FileIndex(file)) => place[0] = file,
                (gimli::DW_AT_decl_line, value) => place[1] = value.udata_value().unwrap_or(0),
                (gimli::DW_AT_decl_column, value) => place[2] = value.udata_value().unwrap_or(0),
                (gimli::DW_AT_abstract_origin | gimli::DW_AT_specification, value) => {
                    next = self.follow(unit, &value)
                }
                _ => {}
            })?;
            found.tag = found.tag.or(tag);
            let [file, line, column] = place;
            if line > 0 && found.declared.is_none() {
                found.declared = Some((unit, file, line, column));
            }
            match next {
                Some(origin) => (unit, at) = origin,
                None => break,
            }
        }
        Ok((found, unit, at))
    }

    fn follow(
        &self,
        unit: Unit<'u, 'a>,
        reference: &AttributeValue<Reader<'a>>,
    ) -> Option<(Unit<'u, 'a>, UnitOffset)> {
        match *reference {
            AttributeValue::UnitRef(offset) => Some((unit, offset)),
            AttributeValue::DebugInfoRef(offset) if unit.dwarf.file_type == DwarfFileType::Main => {
                let (unit, at) = self.units.unit_with(offset)?;
                Some((UnitRef::new(self.dwarf, unit), at))
            }
            _ => None,
        }
    }

    /// A file of a unit's list, without what leads nowhere: `a/../b` is `b`.
    fn path(&self, unit: Unit<'u, 'a>, file: u64) -> Option<PathBuf> {
        let unit = if unit.line_program.is_some() { unit } else { self.skeleton? };
        let header = unit.line_program.as_ref()?.header();
        let file = header.file(file)?;
        let mut path = PathBuf::new();
        let folder = file.directory(header).and_then(|folder| unit.attr_string(folder).ok());
        for part in [unit.comp_dir, folder, unit.attr_string(file.path_name()).ok()].into_iter().flatten() {
            path.push(OsStr::from_bytes(part.slice()));
        }
        Some(without_detours(&path))
    }
}

/// Calls `each` for the attributes of an entry, and tells its tag.
fn read<'a>(
    unit: Unit<'_, 'a>,
    at: UnitOffset,
    mut each: impl FnMut(gimli::Attribute<Reader<'a>>),
) -> gimli::Result<Option<DwTag>> {
    let mut entries = unit.entries_raw(Some(at))?;
    let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(None) };
    for &attribute in abbreviation.attributes() {
        each(entries.read_attribute(attribute)?);
    }
    Ok(Some(abbreviation.tag()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    /// All functions are on one level, as in C.
    Flat,
    /// Functions lie in namespaces, classes and functions.
    WithScopes,
    /// Every function has a name for the linker, which says all.
    WithLinkerNames,
}

fn language_of(unit: Unit<'_, '_>) -> Language {
    let mut language = None;
    // Damaged entries were refused before.
    let _ = read(unit, unit.header.root_offset(), |attribute| {
        if let AttributeValue::Language(of) = attribute.value() {
            language = Some(of);
        }
    });
    match language {
        Some(
            gimli::DW_LANG_C89
            | gimli::DW_LANG_C
            | gimli::DW_LANG_C99
            | gimli::DW_LANG_C11
            | gimli::DW_LANG_C17
            | gimli::DW_LANG_Mips_Assembler,
        ) => Language::Flat,
        Some(gimli::DW_LANG_Rust) => Language::WithLinkerNames,
        _ => Language::WithScopes,
    }
}

fn text(name: Reader<'_>) -> String {
    String::from_utf8_lossy(name.slice()).into_owned()
}

fn without_detours(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if straight.file_name().is_some() => {
                straight.pop();
            }
            _ => straight.push(part),
        }
    }
    straight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_path() {
        let straight = |path: &str| without_detours(Path::new(path)).display().to_string();
        assert_eq!(straight("/src/lib/../include/./a.h"), "/src/include/a.h");
        assert_eq!(straight("../a/b/../c.h"), "../a/c.h");
        assert_eq!(straight("a/../../c.h"), "../c.h");
        assert_eq!(straight("/../c.h"), "/../c.h");
    }
}
