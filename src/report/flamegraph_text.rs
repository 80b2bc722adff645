//! A flamegraph for a terminal: its widest frames as a tree, each with a bar.

use std::io::Write;

use super::error::ReportError;
use super::frames::FrameClass;
use super::heading::{heading, provenance};
use super::scale::Scale;
use super::select::Weight;
use super::style::Style;
use super::tree::CallTree;
use super::walk::TreeFrame;
use crate::label::{Label, ShortNames};
use crate::units::{Joules, grouped};

/// Frames narrower than this share of the whole are left out: they would be lost in the tree.
pub(super) const NARROWEST: f64 = 0.01;
/// A frame that takes more than this share of its caller is all that the caller does: an arrow says so, and it stands no
/// deeper, so that chains of callers leave room for names.
const ALL_OF_CALLER: f64 = 0.995;
/// A chain of more frames is shown by so many at each of its ends.
const LONGEST_CHAIN: usize = 32;
const SHOWN_OF_CHAIN: usize = 8;
/// Columns of the numbers before a bar.
const NUMBERS: usize = 21;
/// Columns of a bar: of all, and of narrow terminals.
const BAR: usize = 20;
const SHORT_BAR: usize = 10;
/// Columns of a terminal on which bars are short.
const NARROW: usize = 100;

/// A frame of the tree.
struct Node {
    frame: TreeFrame,
    weight: f64,
    children: Vec<usize>,
}

/// Writes the widest frames of a call tree.
///
/// # Errors
/// If writing fails.
pub fn write(tree: &CallTree<'_>, style: &Style, mut out: impl Write) -> Result<(), ReportError> {
    let total = tree.total();
    let mut nodes = Nodes { list: Vec::new(), roots: Vec::new() };
    tree.for_each_own(total * NARROWEST, |path, weight| {
        nodes.add(path, weight);
        Ok::<(), ReportError>(())
    })?;
    nodes.sort();
    writeln!(out, "{}", Label::new(&heading(tree)).shortened(style.width))?;
    writeln!(out, "{}\n", Label::new(&provenance(&tree.summary, tree.weight)).shortened(style.width))?;
    let largest = nodes.list.iter().map(|node| node.weight).fold(0.0, f64::max);
    let scale = Scale::for_largest(Joules::from_joules(largest));
    let mut page =
        Page { tree, total, scale, bar: bar_columns(style), style: *style, names: ShortNames::default() };
    let mut left_out = 0.0;
    // Depth and frame; the next one last.
    let mut open: Vec<(usize, usize)> = nodes.roots.iter().rev().map(|&root| (0, root)).collect();
    while let Some((depth, top)) = open.pop() {
        if nodes.list[top].weight < total * NARROWEST {
            left_out += nodes.list[top].weight;
            continue;
        }
        let chain = nodes.chain(top);
        page.chain(depth, &chain, &nodes.list, &mut out)?;
        for (at, &caller) in chain.iter().enumerate() {
            let next = chain.get(at + 1);
            let beside = nodes.list[caller].children.iter().filter(|child| next != Some(child));
            // Below a chain, one step deeper than the chain.
            open.extend(beside.rev().map(|&child| (depth + 1, child)));
        }
    }
    if left_out > 0.0 {
        let share = left_out / total * 100.0;
        writeln!(out, "… narrower than {:.0}% each: {share:.1}%", NARROWEST * 100.0)?;
    }
    Ok(())
}

/// The frames, each with the numbers of those that it called.
struct Nodes {
    list: Vec<Node>,
    roots: Vec<usize>,
}

impl Nodes {
    fn add(&mut self, path: &[TreeFrame], weight: f64) {
        let mut caller: Option<usize> = None;
        for &frame in path {
            let siblings = match caller {
                Some(caller) => &self.list[caller].children,
                None => &self.roots,
            };
            // The walk comes in the order of the tree: the last is the one, if it is there.
            let known = siblings.iter().rev().copied().find(|&index| self.list[index].frame == frame);
            let index = known.unwrap_or_else(|| {
                let index = self.list.len();
                self.list.push(Node { frame, weight: 0.0, children: Vec::new() });
                match caller {
                    Some(caller) => self.list[caller].children.push(index),
                    None => self.roots.push(index),
                }
                index
            });
            self.list[index].weight += weight;
            caller = Some(index);
        }
    }

    /// A frame and those below it of which each is all that its caller does.
    fn chain(&self, top: usize) -> Vec<usize> {
        let mut chain = vec![top];
        let mut node = &self.list[top];
        while let Some(&widest) = node.children.first()
            && self.list[widest].weight > node.weight * ALL_OF_CALLER
        {
            chain.push(widest);
            node = &self.list[widest];
        }
        chain
    }

    /// The widest first.
    fn sort(&mut self) {
        let weights: Vec<f64> = self.list.iter().map(|node| node.weight).collect();
        let widest_first = |indices: &mut Vec<usize>| {
            indices.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
        };
        self.list.iter_mut().for_each(|node| widest_first(&mut node.children));
        widest_first(&mut self.roots);
    }
}

struct Page<'a> {
    tree: &'a CallTree<'a>,
    total: f64,
    scale: Scale,
    /// Columns of a bar.
    bar: usize,
    style: Style,
    names: ShortNames,
}

impl Page<'_> {
    /// A chain of frames; of a long one, as a damaged stack makes it, its two ends.
    fn chain(
        &mut self,
        depth: usize,
        chain: &[usize],
        nodes: &[Node],
        out: &mut impl Write,
    ) -> Result<(), ReportError> {
        let hidden =
            if chain.len() > LONGEST_CHAIN { SHOWN_OF_CHAIN..chain.len() - SHOWN_OF_CHAIN } else { 0..0 };
        for (at, &index) in chain.iter().enumerate() {
            if !hidden.contains(&at) {
                self.row(depth, at > 0, &nodes[index], out)?;
            } else if at == hidden.start {
                let indent = " ".repeat(NUMBERS + self.bar + 2 + (2 * depth).min(self.room() / 2));
                writeln!(out, "{indent}⋮ {} more frames", hidden.len())?;
            }
        }
        Ok(())
    }

    /// Columns for names. However deep: a name of a few letters is seen.
    fn room(&self) -> usize {
        self.style.width.saturating_sub(NUMBERS + self.bar + 2).max(12)
    }

    fn row(
        &mut self,
        depth: usize,
        continues: bool,
        node: &Node,
        out: &mut impl Write,
    ) -> Result<(), ReportError> {
        let share = node.weight / self.total;
        let amount = match self.tree.weight {
            Weight::Joules => {
                format!("{} {}", self.scale.show(Joules::from_joules(node.weight)), self.scale.unit)
            }
            Weight::Samples | Weight::Count => grouped(node.weight as u64),
        };
        let (on, off) = match self.tree.class(node.frame) {
            _ if !self.style.color => ("", ""),
            class => (color(class), "\x1b[0m"),
        };
        let bar = bar(share, self.bar);
        let numbers = format!("{:>5.1}%  {amount:>11}  ", share * 100.0);
        let (name, _) = self.tree.label(node.frame);
        let room = self.room().saturating_sub(numbers.chars().count() - NUMBERS).max(12);
        let indent = (2 * depth).min(room / 2);
        let arrow = if continues { "↳ " } else { "" };
        let columns = (room - indent - arrow.chars().count()).min(self.style.names);
        let name = self.names.name(name, columns, Label::short_name);
        writeln!(out, "{numbers}{on}{bar}{off}  {}{arrow}{name}", " ".repeat(indent))?;
        Ok(())
    }
}

/// The colors of pictures, as far as terminals have them.
fn color(class: Option<FrameClass>) -> &'static str {
    match class {
        None => "\x1b[2m",
        Some(FrameClass::Native) => "\x1b[31m",
        Some(FrameClass::CppOrRust) => "\x1b[93m",
        Some(FrameClass::Inlined) => "\x1b[36m",
        Some(FrameClass::Jit) => "\x1b[32m",
        Some(FrameClass::Kernel | FrameClass::InlinedKernel) => "\x1b[33m",
    }
}

/// Columns of a bar.
pub(super) fn bar_columns(style: &Style) -> usize {
    if style.width < NARROW { SHORT_BAR } else { BAR }
}

/// A share of so many columns, to an eighth of one; never nothing.
pub(super) fn bar(share: f64, columns: usize) -> String {
    const PARTS: [char; 8] = ['▏', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = ((share.clamp(0.0, 1.0) * (columns * 8) as f64).round() as usize).max(1);
    let (full, part) = (eighths / 8, eighths % 8);
    let mut bar = "█".repeat(full);
    if part > 0 {
        bar.push(PARTS[part]);
    }
    let used = full + usize::from(part > 0);
    bar + &" ".repeat(columns - used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::sample_profile;
    use crate::report::tree::TreeOptions;

    #[test]
    fn bars_are_as_wide_as_their_share() {
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(0.53125, 4), "██▏ ");
        assert_eq!(bar(0.0, 4), "▏   ");
        assert!((0..=1000).all(|share| bar(f64::from(share) / 1000.0, 7).chars().count() == 7));
    }

    #[test]
    fn callers_stand_above_what_they_called_and_no_row_is_wider_than_the_terminal() {
        let (profile, symbols) = sample_profile();
        let options = TreeOptions { whole: true, ..TreeOptions::default() };
        let tree = CallTree::new(&profile, &symbols, &options).expect("a tree");
        for width in [60, 80, 200] {
            let mut out = Vec::new();
            write(&tree, &Style { width, ..Style::default() }, &mut out).expect("a vector takes all");
            let text = String::from_utf8(out).expect("text");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            if width == 200 {
                let mut settings = insta::Settings::clone_current();
                settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/report"));
                settings.set_prepend_module_to_snapshot(false);
                settings.set_omit_expression(true);
                settings.bind(|| insta::assert_snapshot!("flamegraph_text", text));
            }
        }
    }
}
