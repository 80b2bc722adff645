//! Files of a folder that the user named (`--symfs`): what can be said of whether they are the recorded ones.
//!
//! A recording that has a build-id for a module tells it from any other, and another file is refused. Where it has none,
//! only its inode and its time could tell, and a copy has neither of the recorded file. So the user's word is taken; what
//! is left to be compared is whether the sampled addresses lie in the file's code.

use std::path::{Path, PathBuf};

use super::elf::Segments;
use super::error::SymbolizeError;
use super::options::SymbolizeOptions;
use super::symbols::Item;
use crate::profile::{Module, ModuleKind};

/// Paths that a warning names; there may be hundreds.
const NAMED: usize = 3;

/// Where the file of a module lies.
pub(crate) fn path_of(options: &SymbolizeOptions, module: &Module) -> PathBuf {
    match &options.sysroot {
        Some(sysroot) => sysroot.join(module.path.trim_start_matches('/')),
        None => PathBuf::from(&module.path),
    }
}

/// What the user must know of the files that stand for modules: each with its segments and what was sampled of it.
pub(crate) fn warnings<'a>(
    options: &SymbolizeOptions,
    opened: impl Iterator<Item = (&'a Module, Option<&'a Segments>, &'a [Item])>,
) -> Vec<SymbolizeError> {
    let Some(folder) = &options.sysroot else { return Vec::new() };
    let mut warnings = Vec::new();
    let mut taken = Vec::new();
    for (module, segments, items) in opened {
        if module.kind != ModuleKind::File || module.build_id.is_some() {
            continue;
        }
        taken.push(module.path.as_str());
        let Some(segments) = segments else { continue };
        let mut offsets: Vec<u64> = items.iter().map(|item| item.address).collect();
        offsets.dedup();
        let outside = offsets.iter().filter(|offset| !segments.is_code(**offset)).count();
        if outside > 0 {
            let path = path_of(options, module);
            warnings.push(SymbolizeError::OtherCode { path, outside, sampled: offsets.len() });
        }
    }
    if !taken.is_empty() {
        warnings.push(taken_as_named(&taken, folder));
    }
    warnings
}

fn taken_as_named(paths: &[&str], folder: &Path) -> SymbolizeError {
    let mut files = paths.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if paths.len() > NAMED {
        files += &format!(" and {} others", paths.len() - NAMED);
    }
    files += if paths.len() == 1 { " is" } else { " are" };
    SymbolizeError::TakenAsNamed { files, folder: folder.to_owned() }
}
