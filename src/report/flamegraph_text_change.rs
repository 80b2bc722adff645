//! The difference of two flamegraphs for a terminal: the widest frames of either as a tree, each with what it took more or less.

use std::collections::BTreeMap;
use std::io::Write;

use super::error::ReportError;
use super::flamegraph_change::{PlaceErrors, ROUNDING, Sides};
use super::flamegraph_text::{NARROWEST, bar, bar_columns};
use super::heading::{heading, provenance};
use super::scale::Scale;
use super::select::Weight;
use super::style::Style;
use super::tree::CallTree;
use crate::label::{Label, ShortNames, padded};
use crate::units::{Joules, grouped};

/// Columns of the numbers before a bar.
const NUMBERS: usize = 7 + 13 + 13;
/// The colors of what is more and of what is less.
const MORE: &str = "\x1b[31m";
const LESS: &str = "\x1b[34m";

/// A place in either tree.
#[derive(Default)]
struct Node {
    /// What ends here.
    own: Sides,
    /// With all that it called; the older first.
    totals: [f64; 2],
    children: BTreeMap<String, Node>,
}

impl Node {
    fn add(&mut self, path: &str, sides: &Sides) {
        let mut at = self;
        at.add_total(sides);
        for name in path.split(';').filter(|name| !name.is_empty()) {
            at = at.children.entry(name.to_owned()).or_default();
            at.add_total(sides);
        }
        at.own.add(sides);
    }

    fn add_total(&mut self, sides: &Sides) {
        for (total, weight) in self.totals.iter_mut().zip(sides.weights) {
            *total += weight;
        }
    }

    /// As wide as in the tree where it is wider.
    fn width(&self) -> f64 {
        self.totals[0].max(self.totals[1])
    }

    fn change(&self) -> f64 {
        self.totals[1] - self.totals[0]
    }
}

/// Writes the widest frames of two call trees, the older one's multiplied to the same total where they are to be normalized.
///
/// # Errors
/// If the two are weighed differently, or writing fails.
pub fn write(
    older: &CallTree<'_>,
    newer: &CallTree<'_>,
    normalize: bool,
    style: &Style,
    mut out: impl Write,
) -> Result<(), ReportError> {
    if older.weight != newer.weight {
        return Err(ReportError::NotComparable { older: older.weight.name(), newer: newer.weight.name() });
    }
    let scale = if normalize { newer.total() / older.total() } else { 1.0 };
    let mut all = Node::default();
    for (side, (tree, scale)) in [(older, scale), (newer, 1.0)].into_iter().enumerate() {
        let (names, errors) = (tree.names(), PlaceErrors::of(tree));
        // What is far narrower is part of its caller.
        tree.for_each_own(tree.total() * NARROWEST / 100.0, |path, weight| {
            all.add(&names.join(path), &errors.side(side, path, weight, scale));
            Ok::<(), ReportError>(())
        })?;
    }
    writeln!(out, "{}", Label::new(&heading(newer)).shortened(style.width))?;
    for (when, tree) in [("before", older), ("now", newer)] {
        let total = match tree.weight {
            Weight::Joules => Joules::from_joules(tree.total()).to_string(),
            weight => format!("{} {}", grouped(tree.total().round() as u64), weight.name()),
        };
        let line = format!("{when}: {total}, {}", provenance(&tree.summary, tree.weight));
        writeln!(out, "{}", Label::new(&line).shortened(style.width))?;
    }
    let scaled = if normalize { ", after scaling to the same total" } else { "" };
    writeln!(
        out,
        "change: with all that it called{scaled}; itself: of its own code, where chance does not explain it\n"
    )?;
    let of = format!("{:>6} {:>12} {:>12}", "share", "now", "change");
    writeln!(out, "{} {}name", padded(&of, NUMBERS), " ".repeat(bar_columns(style) + 2))?;
    let scale = Scale::for_largest(Joules::from_joules(all.width()));
    let page = Page { weight: newer.weight, whole: all.width(), now: all.totals[1], scale, style };
    let mut names = ShortNames::default();
    page.row("all", 0, &all, &mut names, &mut out)?;
    let mut left_out = 0.0;
    // Depth, name and place; the next one last.
    let mut open: Vec<(usize, &str, &Node)> = Vec::new();
    page.open(1, &all, &mut open);
    while let Some((depth, name, node)) = open.pop() {
        if node.width() < page.whole * NARROWEST {
            left_out += node.change();
            continue;
        }
        page.row(name, depth, node, &mut names, &mut out)?;
        page.open(depth + 1, node, &mut open);
    }
    if left_out != 0.0 {
        let change = page.signed(left_out);
        writeln!(out, "{:>6} {:>12} {change:>12} … narrower than {:.0}% each", "", "", NARROWEST * 100.0)?;
    }
    Ok(())
}

struct Page<'a> {
    weight: Weight,
    whole: f64,
    now: f64,
    scale: Scale,
    style: &'a Style,
}

impl Page<'_> {
    /// What a place called, the widest on top.
    fn open<'n>(&self, depth: usize, node: &'n Node, open: &mut Vec<(usize, &'n str, &'n Node)>) {
        let mut children: Vec<(&str, &Node)> =
            node.children.iter().map(|(name, child)| (name.as_str(), child)).collect();
        children.sort_by(|(_, a), (_, b)| a.width().total_cmp(&b.width()));
        open.extend(children.into_iter().map(|(name, child)| (depth, name, child)));
    }

    fn row(
        &self,
        name: &str,
        depth: usize,
        node: &Node,
        names: &mut ShortNames,
        out: &mut impl Write,
    ) -> Result<(), ReportError> {
        let share = if self.now > 0.0 { node.totals[1] / self.now * 100.0 } else { 0.0 };
        let numbers =
            format!("{share:>5.1}% {:>12} {:>12}", self.amount(node.totals[1]), self.signed(node.change()));
        let columns = bar_columns(self.style);
        let bar = bar(node.width() / self.whole, columns);
        let certain = node.own.certain();
        let (on, off) = match self.style.color && certain > 0.0 {
            true if node.own.change() > 0.0 => (MORE, "\x1b[0m"),
            true => (LESS, "\x1b[0m"),
            false => ("", ""),
        };
        let error = self.amount(node.own.error());
        let error = if node.own.error() > 0.0 { format!(" ± {error}") } else { String::new() };
        let itself = format!("  itself {}{error}", self.signed(node.own.change()));
        let itself = if certain > 0.0 { itself } else { String::new() };
        let room = self.style.width.saturating_sub(NUMBERS + columns + 3 + itself.chars().count()).max(12);
        let indent = (2 * depth).min(room / 2);
        // Folded stacks tell kinds of code so.
        let plain = ["_[i]", "_[k]", "_[j]"].iter().find_map(|mark| name.strip_suffix(mark));
        let label = Label::new(plain.unwrap_or(name));
        let name = names.name(&label, (room - indent).min(self.style.names), Label::short_name);
        writeln!(
            out,
            "{} {on}{bar}{off}  {}{name}{on}{itself}{off}",
            padded(&numbers, NUMBERS),
            " ".repeat(indent)
        )?;
        Ok(())
    }

    fn amount(&self, weight: f64) -> String {
        match self.weight {
            Weight::Joules => format!("{} {}", self.scale.show(Joules::from_joules(weight)), self.scale.unit),
            Weight::Samples | Weight::Count => grouped(weight.round() as u64),
        }
    }

    fn signed(&self, change: f64) -> String {
        // What rounding leaves is no change.
        let change = if change.abs() <= self.whole * ROUNDING { 0.0 } else { change };
        let sign = if change < 0.0 { '-' } else { '+' };
        format!("{sign}{}", self.amount(change.abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{Fixture, Spent};
    use crate::report::tree::TreeOptions;

    fn profile(joules: [f64; 3]) -> (crate::profile::Profile, crate::symbolize::Symbols) {
        let mut fixture = Fixture::default();
        fixture.domain("package-0", None, crate::hardware::Method::Measured, "meter", [0.0; 4]);
        fixture.event("cpu-clock", 0);
        fixture.thread(1, 1, "app", "app");
        for (stack, joules) in
            ["/bin/app`main  /bin/app`work", "/bin/app`main  /bin/app`idle", "/bin/app`main"]
                .into_iter()
                .zip(joules)
                .filter(|(_, joules)| *joules > 0.0)
        {
            fixture.cell(0, 0, 0, stack, Spent { samples: 1000, millis: 1000, joules: &[joules] });
        }
        fixture.finish()
    }

    /// A recording without joules, of so many samples of one function and another.
    fn sampled(samples: [u64; 2]) -> (crate::profile::Profile, crate::symbolize::Symbols) {
        let mut fixture = Fixture::default();
        fixture.event("cpu-clock", 0);
        fixture.thread(1, 1, "app", "app");
        for (stack, samples) in ["/bin/app`work", "/bin/app`idle"].into_iter().zip(samples) {
            fixture.cell(0, 0, 0, stack, Spent { samples, millis: samples, joules: &[] });
        }
        fixture.finish()
    }

    fn text(before: [f64; 3], now: [f64; 3], normalize: bool) -> String {
        text_of(profile(before), profile(now), normalize)
    }

    fn text_of(
        (older, older_symbols): (crate::profile::Profile, crate::symbolize::Symbols),
        (newer, newer_symbols): (crate::profile::Profile, crate::symbolize::Symbols),
        normalize: bool,
    ) -> String {
        let options = TreeOptions::default();
        let older = CallTree::new(&older, &older_symbols, &options).expect("it has joules");
        let newer = CallTree::new(&newer, &newer_symbols, &options).expect("it has joules");
        let mut out = Vec::new();
        write(&older, &newer, normalize, &Style { width: 120, ..Style::default() }, &mut out)
            .expect("a vector");
        String::from_utf8(out).expect("text")
    }

    /// The numbers of a function's row.
    fn row(text: &str, name: &str) -> Vec<String> {
        let mut rows = text.lines().filter(|line| line.contains("%  "));
        let row = rows.find(|line| line.split_whitespace().any(|word| word == name)).expect(name);
        row.split_whitespace().take_while(|word| !word.starts_with(['█', '▏'])).map(str::to_owned).collect()
    }

    #[test]
    fn functions_stand_with_what_they_took_more_or_less() {
        let said = text([4.0, 2.0, 0.0], [7.0, 0.0, 1.0], false);
        assert_eq!(row(&said, "all"), ["100.0%", "8.000", "J", "+2.000", "J"], "{said}");
        assert_eq!(row(&said, "main"), ["100.0%", "8.000", "J", "+2.000", "J"], "{said}");
        assert_eq!(row(&said, "work"), ["87.5%", "7.000", "J", "+3.000", "J"], "{said}");
        // Gone, and there all the same.
        assert_eq!(row(&said, "idle"), ["0.0%", "0.000", "J", "-2.000", "J"], "{said}");
        assert!(said.lines().any(|line| line.contains("main") && line.contains("itself +1.000 J")), "{said}");
        // 6 J are 8 J then: work took 5.333 J of them.
        let said = text([4.0, 2.0, 0.0], [7.0, 0.0, 1.0], true);
        assert_eq!(row(&said, "work"), ["87.5%", "7.000", "J", "+1.667", "J"], "{said}");
        assert_eq!(row(&said, "all"), ["100.0%", "8.000", "J", "+0.000", "J"], "{said}");
    }

    #[test]
    fn samples_that_chance_may_have_brought_are_no_change() {
        let said = text_of(sampled([1_993, 1_000]), sampled([2_006, 1_200]), false);
        assert_eq!(row(&said, "work"), ["62.6%", "2,006", "+13"], "{said}");
        let line = |name: &str| said.lines().find(|line| line.contains(name)).expect("a row");
        assert!(!line("work").contains("itself"), "{said}");
        assert!(line("idle").ends_with("itself +200 ± 47"), "{said}");
        // 2,993 are 3,206 then, of which idle had 1,071; their error grows by as much.
        let said = text_of(sampled([1_993, 1_000]), sampled([2_006, 1_200]), true);
        assert_eq!(row(&said, "idle"), ["37.4%", "1,200", "+129"], "{said}");
        assert!(said.contains("itself +129 ± 48"), "{said}");
    }
}
