//! The copy of the sources, and which files of it get faults.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Standard output of a command that must succeed.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Copies what git tracks, and what it does not ignore, from `project` to `copy`. Files that are the same already keep
/// their times, so that nothing is built again for them; files that are no longer there are removed.
///
/// # Errors
///
/// Git lists no files, or a file cannot be read or written.
pub fn copy(project: &Path, copy: &Path) -> Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(project);
    let listed = output(&mut git)?;
    let files: BTreeSet<PathBuf> =
        listed.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
    for file in &files {
        // A file that is listed and removed is not committed yet.
        if !project.join(file).is_file() {
            continue;
        }
        let bytes =
            fs::read(project.join(file)).with_context(|| format!("cannot read {}", file.display()))?;
        if file.extension().is_some_and(|extension| extension == "rs") && file.starts_with("src") {
            // Written with its faults.
            continue;
        }
        write_if_new(&copy.join(file), &bytes)?;
        let permissions = fs::metadata(project.join(file))?.permissions();
        fs::set_permissions(copy.join(file), permissions)?;
    }
    let present: Vec<PathBuf> = files.into_iter().filter(|file| project.join(file).is_file()).collect();
    let wanted: BTreeSet<&Path> = present.iter().map(PathBuf::as_path).collect();
    for old in files_below(copy)? {
        let relative = old.strip_prefix(copy).unwrap_or(&old);
        if !wanted.contains(relative) && !relative.ends_with(crate::edits::SWITCH_FILE) {
            fs::remove_file(&old)?;
        }
    }
    Ok(present)
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return Ok(found) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

/// Writes a file, and its folders, unless it has these bytes.
///
/// # Errors
///
/// The file cannot be written.
pub fn write_if_new(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Does this file hold tests alone, by its name or by how its module is declared?
pub fn is_test_file(file: &Path, modules_of_tests: &BTreeSet<PathBuf>) -> bool {
    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    name.ends_with("tests") || modules_of_tests.iter().any(|of_tests| file.starts_with(of_tests))
}

/// Files and folders whose module is declared under `#[cfg(test)]` in this file.
pub fn test_modules(file: &Path, parsed: &syn::File) -> Vec<PathBuf> {
    let folder = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") => file.parent().unwrap_or(Path::new("")).to_path_buf(),
        _ => file.with_extension(""),
    };
    let declared = parsed.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() && crate::faults::is_for_tests(&module.attrs) => {
            Some(module.ident.to_string())
        }
        _ => None,
    });
    declared.flat_map(|name| [folder.join(format!("{name}.rs")), folder.join(name)]).collect()
}

/// The lines of each file that differ from a commit, by `git diff`.
///
/// # Errors
///
/// Git does not know the commit.
pub fn changed_lines(project: &Path, commit: &str) -> Result<Vec<(PathBuf, std::ops::Range<usize>)>> {
    let mut git = Command::new("git");
    git.args(["diff", "--unified=0", "--no-color", "--no-ext-diff", commit, "--", "src"])
        .current_dir(project);
    let diff = output(&mut git)?;
    let mut changed = Vec::new();
    let mut file = PathBuf::new();
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            file = PathBuf::from(name);
        } else if let Some(added) = line.strip_prefix("@@ ").and_then(|rest| rest.split(' ').nth(1)) {
            let (first, count) = added.trim_start_matches('+').split_once(',').unwrap_or((&added[1..], "1"));
            if let (Ok(first), Ok(count)) = (first.parse::<usize>(), count.parse::<usize>()) {
                changed.push((file.clone(), first..first + count));
            }
        }
    }
    Ok(changed)
}
