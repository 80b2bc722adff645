//! Annotated functions as text: what took most first, then all of it in its order, with the numbers in the margin.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::annotation::{AnnotatedFunction, AnnotatedInstruction, AnnotatedLine, Annotation};
use super::find::FoundBy;
use super::margin::Margin;
use super::source::Sources;
use crate::label::Label;
use crate::report::error::ReportError;
use crate::report::select::{Totals, Weight};
use crate::report::style::Style;

/// What is shown of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Lines of the source, and below each that took something its instructions.
    Source,
    /// Lines of the source.
    Line,
    /// Instructions by address.
    Instruction,
}

/// How functions are shown.
#[derive(Debug, Clone, Copy)]
pub struct TextOptions {
    /// What is shown of each.
    pub view: View,
    /// Lines around each that took something.
    pub context: usize,
    /// So many lines or instructions stand above all others, those that took most.
    pub hottest: usize,
    /// How it looks.
    pub style: Style,
}

/// Shares from which on a number is red, or green: as in perf annotate.
const HOT: f64 = 0.05;
const WARM: f64 = 0.005;
/// Columns of a callee's name beside an instruction.
const BESIDE: usize = 60;
/// Before instructions below a line.
const INDENT: &str = "      ";

/// Writes functions and what took what.
///
/// # Errors
/// If writing fails.
pub fn write(
    annotation: &Annotation,
    options: TextOptions,
    sources: &mut Sources,
    mut out: impl Write,
) -> Result<(), ReportError> {
    for said in [inlined(annotation).map(str::to_owned), others(annotation)].into_iter().flatten() {
        writeln!(out, "{said}\n")?;
    }
    for (index, function) in annotation.functions.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        Page::new(annotation, function, options).write(sources, &mut out)?;
    }
    Ok(())
}

/// So many functions are named that are meant by one pattern.
const MOST_NAMED: usize = 8;

/// What is said where inlined functions are told apart without being asked for.
fn inlined(annotation: &Annotation) -> Option<&'static str> {
    annotation
        .only_inlined
        .then_some("inlined into its callers: its lines are those of all copies, as with --inline")
}

/// What is said of several functions, and of one that is called otherwise.
fn others(annotation: &Annotation) -> Option<String> {
    let Annotation { functions, left_out: (more, took), .. } = annotation;
    let (asked, by) = annotation.asked.as_ref()?;
    let [first, others @ ..] = &functions[..] else { return None };
    let count = functions.len() + more.len();
    let asked_label = Label::new(asked);
    let is_plain = *asked == regex::escape(asked);
    let names = named(functions.iter().map(|function| &function.name).chain(more));
    let have_one_name = more.is_empty() && others.iter().all(|other| other.name == first.name);
    let mut said = match (by, count) {
        (FoundBy::Name | FoundBy::PathEnd, 1) => return None,
        (FoundBy::Pattern, 1) if is_plain => {
            format!("no function is called {asked_label}: {names} has it in its name")
        }
        (FoundBy::Pattern, 1) => return None,
        _ if have_one_name => {
            let modules: Vec<&str> = functions.iter().map(|found| found.module.file_name()).collect();
            let modules = modules.join(", ");
            format!(
                "{count} functions have this name, in {modules}: the heaviest comes first; --module chooses"
            )
        }
        (FoundBy::Name | FoundBy::PathEnd, _) => {
            format!("{count} functions are called so, the heaviest first: {names}")
        }
        (FoundBy::Pattern, _) if is_plain => {
            format!(
                "no function is called {asked_label}: {count} have it in their names, the heaviest first: {names}"
            )
        }
        (FoundBy::Pattern, _) => {
            format!("{count} functions match {asked_label}, the heaviest first: {names}")
        }
    };
    if !more.is_empty() {
        let whole = annotation.whole.weight(annotation.weight).max(f64::MIN_POSITIVE);
        let share = took.weight(annotation.weight) / whole * 100.0;
        said += &format!("; not shown: {}, {share:.1}% of all (--limit 0 shows them)", more.len());
    }
    Some(said)
}

/// The first of the names.
fn named<'n>(names: impl Iterator<Item = &'n Label>) -> String {
    let mut names: Vec<String> = names.map(|name| name.short_name(BESIDE).into_owned()).collect();
    if names.len() > MOST_NAMED {
        names.truncate(MOST_NAMED);
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// A function on its way to the reader.
struct Page<'a> {
    function: &'a AnnotatedFunction,
    margin: Margin,
    weight: Weight,
    /// Of all that was selected.
    share: f64,
    estimate_mark: Option<&'static str>,
    /// Digits of the largest offset of an instruction.
    digits: usize,
    options: TextOptions,
}

impl<'a> Page<'a> {
    fn new(annotation: &'a Annotation, function: &'a AnnotatedFunction, options: TextOptions) -> Self {
        let weight = annotation.weight;
        let whole = annotation.whole.weight(weight).max(f64::MIN_POSITIVE);
        let largest = function.instructions.iter().map(|instruction| instruction.at).max().unwrap_or(0);
        Self {
            function,
            margin: Margin::new(annotation, function),
            weight,
            share: function.own.weight(weight) / whole,
            estimate_mark: annotation.estimate_mark.filter(|_| weight == Weight::Joules),
            digits: format!("{largest:x}").len(),
            options,
        }
    }

    fn write(&self, sources: &mut Sources, out: &mut impl Write) -> io::Result<()> {
        let (bold, plain) = self.escapes("\x1b[1m");
        let function = self.function;
        let watts = function.own.watts().filter(|_| self.margin.has_watts());
        let error = function.own.watts_error().map(|error| format!(" ± {error}")).unwrap_or_default();
        let watts = watts.map(|watts| format!(", {watts}{error} while it ran")).unwrap_or_default();
        writeln!(out, "{bold}{}{plain}  {}", function.name, function.module)?;
        let mark = self.estimate_mark.map(|mark| format!(" ({mark})")).unwrap_or_default();
        let took = self.margin.amount(&function.own);
        writeln!(out, "{took}{mark} itself, {:.1}% of all{watts}", self.share * 100.0)?;
        if !function.elsewhere.is_empty() {
            let more = self.margin.amount_alone(&function.elsewhere);
            writeln!(out, "inlined into others it took {more} more: --inline shows that")?;
        }
        if self.margin.has_errors() && self.margin.has_watts() {
            writeln!(out, "±: one standard error; watts: while running, ± in per cent as of their joules")?;
        }
        if let Some(why) = &function.no_code {
            writeln!(out, "note: without instructions: {why}")?;
        }
        let by_line =
            self.options.view != View::Instruction && function.lines.iter().any(|line| line.place.is_some());
        self.hottest(by_line, sources, out)?;
        writeln!(out, "\n{bold}{}{plain}", self.margin.titles())?;
        if by_line {
            self.source(sources, out)?;
        } else {
            self.instructions(&mut function.instructions.iter(), "", out)?;
        }
        let sum: Totals = function.instructions.iter().map(|instruction| instruction.own).sum();
        let sum = Totals { variance: function.own.variance, ..sum };
        let (dim, plain) = self.escapes("\x1b[2m");
        writeln!(out, "{dim}{}{plain}", "─".repeat(self.margin.width()))?;
        let room = self.options.style.width.saturating_sub(self.margin.width() + 9).max(20);
        writeln!(out, "{}  sum of {}", self.margin.of(&sum), function.name.short_name(room))
    }

    /// What took most, the heaviest first.
    fn hottest(&self, by_line: bool, sources: &mut Sources, out: &mut impl Write) -> io::Result<()> {
        let mut found: Vec<(&Totals, String)> = if by_line {
            let line = |line: &'a AnnotatedLine| {
                let name = match &line.place {
                    Some((file, number)) => {
                        let text =
                            sources.lines(file.as_str()).and_then(|text| text.get(*number as usize - 1));
                        let text = text.map(|text| format!("  {}", text.trim())).unwrap_or_default();
                        format!("{}:{number}{text}", file.file_name())
                    }
                    None => "[no line]".to_owned(),
                };
                (&line.own, name)
            };
            self.function.lines.iter().map(line).collect()
        } else {
            let instruction = |one: &'a AnnotatedInstruction| {
                let inlined = one.inlined.as_ref().map(|callee| format!("  ↳ {}", callee.short_name(BESIDE)));
                let inlined = inlined.unwrap_or_default();
                let within = one.within.as_ref().map(|outer| format!("  in {}", outer.short_name(BESIDE)));
                let within = within.unwrap_or_default();
                (&one.own, self.instruction(one) + &inlined + &within)
            };
            self.function.instructions.iter().map(instruction).collect()
        };
        found.retain(|(own, _)| !own.is_empty());
        // One alone is all that follows.
        if found.len() < 2 || self.options.hottest == 0 {
            return Ok(());
        }
        // Stable: what is equally hot stays in its order.
        found.sort_by(|(a, _), (b, _)| b.weight(self.weight).total_cmp(&a.weight(self.weight)));
        let (bold, plain) = self.escapes("\x1b[1m");
        let what = if by_line { "lines" } else { "instructions" };
        writeln!(out, "\n{bold}{}   hottest {what}{plain}", self.margin.titles())?;
        for (own, name) in found.iter().take(self.options.hottest) {
            self.row(own, name, out)?;
        }
        if let Some(rest) = found.get(self.options.hottest..).filter(|rest| !rest.is_empty()) {
            let share: f64 = rest.iter().map(|(own, _)| self.margin.share(own)).sum();
            let blank = " ".repeat(self.margin.width());
            let what = match rest.len() {
                1 => what.trim_end_matches('s'),
                _ => what,
            };
            writeln!(out, "{blank}   {} more {what}: {:.1}%", rest.len(), share * 100.0)?;
        }
        Ok(())
    }

    /// Lines of each file, the heaviest file first.
    fn source(&self, sources: &mut Sources, out: &mut impl Write) -> io::Result<()> {
        let mut files: BTreeMap<&Label, BTreeMap<u32, &'a AnnotatedLine>> = BTreeMap::new();
        for line in &self.function.lines {
            if let Some((file, number)) = &line.place {
                files.entry(file).or_default().insert(*number, line);
            }
        }
        let weigh = |lines: &BTreeMap<u32, &AnnotatedLine>| -> f64 {
            lines.values().map(|line| line.own.weight(self.weight)).sum()
        };
        let mut files: Vec<_> = files.into_iter().filter(|(_, lines)| weigh(lines) > 0.0).collect();
        files.sort_by(|(_, a), (_, b)| weigh(b).total_cmp(&weigh(a)));
        for (file, lines) in files {
            let text = sources.lines(file.as_str());
            self.row(&Totals::default(), &file.end_of(self.room()), out)?;
            if text.is_none() {
                self.row(&Totals::default(), "(not here: --source FOLDER)", out)?;
            }
            self.lines_of_file(&lines, text, out)?;
        }
        let nowhere = self.function.lines.iter().find(|line| line.place.is_none());
        if let Some(line) = nowhere.filter(|line| !line.own.is_empty()) {
            self.row(&line.own, "[no line]", out)?;
            self.instructions_of(line, out)?;
        }
        Ok(())
    }

    fn lines_of_file(
        &self,
        lines: &BTreeMap<u32, &AnnotatedLine>,
        text: Option<&[String]>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let hot = lines.iter().filter(|(_, line)| !line.own.is_empty());
        let hot: Vec<u32> = hot.map(|(number, _)| *number).collect();
        let mut shown = 0;
        for &line in &hot {
            let around = u32::try_from(self.options.context).unwrap_or(u32::MAX);
            let first = line.saturating_sub(around).max(shown + 1).max(1);
            let is_apart = shown > 0 && first > shown + 1;
            if is_apart {
                self.row(&Totals::default(), "    ⋮", out)?;
            }
            let next = hot.iter().copied().find(|&other| other > line).unwrap_or(u32::MAX);
            let last = line.saturating_add(around).min(next - 1);
            for number in first..=last {
                let of_line = text.map(|text| text.get(number as usize - 1));
                if number != line && !matches!(of_line, Some(Some(_))) {
                    continue;
                }
                let code = of_line.flatten().map_or("", String::as_str);
                let own = lines.get(&number).map(|line| line.own).unwrap_or_default();
                self.row(&own, &format!("{number:>5}  {code}"), out)?;
                if let Some(its) = lines.get(&number).filter(|_| number == line) {
                    self.instructions_of(its, out)?;
                }
                shown = number;
            }
        }
        Ok(())
    }

    /// The instructions of a line, where they are wanted.
    fn instructions_of(&self, line: &AnnotatedLine, out: &mut impl Write) -> io::Result<()> {
        if self.options.view != View::Source {
            return Ok(());
        }
        let mut its = line.instructions.iter().map(|&index| &self.function.instructions[index]);
        self.instructions(&mut its, INDENT, out)
    }

    fn instructions(
        &self,
        instructions: &mut dyn Iterator<Item = &AnnotatedInstruction>,
        indent: &str,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut inlined: Option<&Label> = None;
        let mut within: Option<&Label> = None;
        for instruction in instructions {
            // Each copy counts its instructions from the start of the function that it was put into.
            if instruction.within.as_ref() != within {
                within = instruction.within.as_ref();
                if let Some(outer) = within {
                    let outer = outer.short_name(self.room_for_names(indent));
                    self.row(&Totals::default(), &format!("{indent}in {outer}"), out)?;
                }
            }
            if instruction.inlined.as_ref() != inlined {
                inlined = instruction.inlined.as_ref();
                if let Some(callee) = inlined {
                    let callee = callee.short_name(self.room_for_names(indent));
                    self.row(&Totals::default(), &format!("{indent}↳ inlined {callee}"), out)?;
                }
            }
            let deeper = if inlined.is_some() { "  " } else { "" };
            let text = format!("{indent}{deeper}{}", self.instruction(instruction));
            self.row(&instruction.own, &text, out)?;
        }
        Ok(())
    }

    fn instruction(&self, instruction: &AnnotatedInstruction) -> String {
        let text = instruction.text.as_ref().map_or("", Label::as_str);
        format!("{:>digits$x}: {text}", instruction.at, digits = self.digits)
    }

    fn row(&self, own: &Totals, text: &str, out: &mut impl Write) -> io::Result<()> {
        let text = text.trim_end();
        let cut = Label::new(text);
        let shown = cut.shortened(self.room());
        let color = match self.margin.share(own) {
            share if share >= HOT => "\x1b[31m",
            share if share >= WARM => "\x1b[32m",
            _ => "",
        };
        let (on, off) = if color.is_empty() { ("", "") } else { self.escapes(color) };
        // Leading blanks are part of the text, which labels keep.
        writeln!(out, "{}", format!("{on}{}{off} │ {shown}", self.margin.of(own)).trim_end())
    }

    /// Columns for the text.
    fn room(&self) -> usize {
        self.options.style.width.saturating_sub(self.margin.width() + 3).max(20)
    }

    /// Columns for a callee's name above its instructions.
    fn room_for_names(&self, indent: &str) -> usize {
        self.room()
            .min(self.options.style.names)
            .saturating_sub(indent.len() + "↳ inlined ".chars().count())
            .max(20)
    }

    /// Switches a color on and off, where there is color.
    fn escapes(&self, on: &'static str) -> (&'static str, &'static str) {
        if self.options.style.color { (on, "\x1b[0m") } else { ("", "") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Joules;

    /// An inlined function's two copies, in two functions.
    fn two_copies() -> Annotation {
        let place = Some((Label::new("/src/app.c"), 7));
        let one = |within: &str, joules| AnnotatedInstruction {
            at: 0x10,
            text: Some(Label::new("imul")),
            place: place.clone(),
            inlined: None,
            within: Some(Label::new(within)),
            own: Totals { samples: 1, ..Totals::of_joules(Joules::from_joules(joules)) },
        };
        let instructions = vec![one("first", 1.0), one("second", 3.0)];
        let own = Totals { samples: 2, ..Totals::of_joules(Joules::from_joules(4.0)) };
        let lines = vec![AnnotatedLine { place, own, instructions: vec![0, 1] }];
        let elsewhere = Totals::default();
        let (name, module) = (Label::new("turn"), Label::new("/bin/app"));
        let function = AnnotatedFunction { name, module, own, elsewhere, instructions, lines, no_code: None };
        Annotation {
            functions: vec![function],
            asked: None,
            only_inlined: false,
            left_out: (Vec::new(), Totals::default()),
            weight: Weight::Joules,
            whole: own,
            is_by_time: false,
            estimate_mark: None,
        }
    }

    #[test]
    fn what_does_not_stand_among_the_hottest_is_counted() {
        let options =
            TextOptions { view: View::Instruction, context: 2, hottest: 1, style: Style::default() };
        let mut out = Vec::new();
        write(&two_copies(), options, &mut Sources::new(Vec::new(), None), &mut out)
            .expect("a vector takes all");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("   1 more instruction: 25.0%"), "{text}");
    }

    #[test]
    fn each_copy_of_an_inlined_function_says_where_it_was_put() {
        for view in [View::Source, View::Instruction] {
            let options = TextOptions { view, context: 2, hottest: 5, style: Style::default() };
            let mut out = Vec::new();
            write(&two_copies(), options, &mut Sources::new(Vec::new(), None), &mut out)
                .expect("a vector takes all");
            let text = String::from_utf8(out).expect("text");
            let rows: Vec<&str> = text
                .split("│ ")
                .map(|row| row.lines().next().unwrap_or_default().trim())
                .filter(|row| row.starts_with("in ") || row.starts_with("10: imul"))
                .collect();
            let copies = ["in first", "10: imul", "in second", "10: imul"];
            match view {
                View::Instruction => {
                    // The hottest come first, by name.
                    let hottest = ["10: imul  in second", "10: imul  in first"];
                    assert_eq!(rows, [&hottest[..], &copies].concat(), "{text}");
                }
                _ => assert_eq!(rows, copies, "{text}"),
            }
        }
    }
}
