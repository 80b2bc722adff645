//! Stacks as a picture or as lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, ensure};
use eprof::label::Label;
use inferno::flamegraph::color::{BackgroundColor, Color};
use inferno::flamegraph::{self, Options, TextTruncateDirection};

use crate::args::Picture;
use crate::ask::Stack;
use crate::balance::Whole;

/// inferno counts in whole numbers: microjoules.
const MICROJOULES: f64 = 1e6;

/// Writes call paths; a file is replaced when all of it is written.
pub fn write(stacks: &[Stack], whole: &Whole, format: Picture, path: &Path) -> anyhow::Result<()> {
    let lines = lines(stacks);
    ensure!(!lines.is_empty(), "nothing to draw: no samples with joules are selected");
    let mut picture = Vec::new();
    match format {
        Picture::Collapsed => lines.iter().try_for_each(|line| writeln!(picture, "{line}"))?,
        Picture::Svg => {
            let mut options = Options::default();
            options.title = format!("{} of functions, of {}", whole.selected, whole.balance.measured);
            let (nodes, recordings) = (whole.nodes, whole.recordings);
            options.subtitle = Some(format!(
                "{nodes} nodes, {recordings} windows or recordings, {}; static energy and others are not drawn",
                whole.methods.in_words()
            ));
            // Counts are whole numbers there, too, and percentages are made of them.
            let (unit, microjoules) = match whole.selected.as_joules() {
                joules if joules < 1e4 => ("µJ", 1.0),
                joules if joules < 1e7 => ("mJ", 1e3),
                _ => ("J", MICROJOULES),
            };
            options.count_name = unit.to_owned();
            options.factor = 1.0 / microjoules;
            // As eprof draws one machine's: a name begins with what tells it apart, and yellow is a color of frames.
            options.text_truncate_direction = TextTruncateDirection::Right;
            options.bgcolors = Some(BackgroundColor::Flat(Color { r: 255, g: 255, b: 255 }));
            flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut picture)
                .context("cannot draw")?;
        }
    }
    let cannot = || format!("cannot write {}", path.display());
    if path == Path::new("-") {
        let mut out = io::stdout().lock();
        return out.write_all(&picture).and_then(|()| out.flush()).context("cannot write to standard output");
    }
    let name = path.file_name().with_context(cannot)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", std::process::id()));
    let temporary = path.with_file_name(hidden);
    let written = File::create_new(&temporary).and_then(|file| {
        let mut out = BufWriter::new(file);
        out.write_all(&picture)?;
        out.into_inner()?.sync_all()
    });
    let kept = written.and_then(|()| std::fs::rename(&temporary, path));
    if kept.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    kept.with_context(cannot)
}

/// Collapsed stacks, each once. What each line's rounding leaves is carried to the next, so that the sum holds.
fn lines(stacks: &[Stack]) -> Vec<String> {
    let mut by_path: BTreeMap<String, f64> = BTreeMap::new();
    for stack in stacks {
        let names = stack.frames.iter().map(|name| Label::new(name).folded().into_owned());
        *by_path.entry(names.collect::<Vec<_>>().join(";")).or_default() += stack.joules;
    }
    let (mut given, mut exact) = (0.0, 0.0);
    let mut lines = Vec::new();
    for (path, joules) in by_path {
        exact += joules * MICROJOULES;
        let number = (exact - given).round().max(0.0);
        given += number;
        if number > 0.0 {
            lines.push(format!("{path} {number:.0}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_loses_nothing_and_names_cannot_make_frames() {
        let stack = |frames: &[&str], joules| Stack {
            frames: frames.iter().map(|name| (*name).to_owned()).collect(),
            joules,
        };
        let many: Vec<Stack> = (0..1000).map(|at| stack(&["main", &format!("f{at}")], 0.4e-6)).collect();
        let sum: u64 = lines(&many)
            .iter()
            .map(|line| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).expect("a number"))
            .sum();
        assert_eq!(sum, 400);
        let hostile = lines(&[stack(&["a;b\n\u{1b}[31m 7", "c"], 1e-6), stack(&["d"], 0.0)]);
        assert_eq!(hostile.len(), 1, "{hostile:?}");
        assert_eq!(hostile[0].matches(';').count(), 1, "{hostile:?}");
        assert!(hostile[0].ends_with(" 1") && !hostile[0].contains('\u{1b}'), "{hostile:?}");
    }
}
