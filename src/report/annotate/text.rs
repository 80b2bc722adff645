//! An annotated function as text: what each line or instruction took stands in the margin.

use std::collections::BTreeMap;
use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::annotation::{AnnotatedFunction, AnnotatedInstruction, Annotation};
use super::source::Sources;
use crate::label::Label;
use crate::report::error::ReportError;
use crate::report::scale::{Scale, grouped};
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

/// So many are named above all others.
const HOTTEST: usize = 5;
/// Shares from which on a number is red, or green: as in perf annotate.
const HOT: f64 = 0.05;
const WARM: f64 = 0.005;

/// Writes functions and what took what. `context` is the number of lines shown around each that took something.
///
/// # Errors
/// If writing fails.
pub fn write(
    annotation: &Annotation,
    view: View,
    context: usize,
    style: &Style,
    sources: &mut Sources,
    mut out: impl Write,
) -> Result<(), ReportError> {
    if annotation.functions.len() > 1 {
        let count = annotation.functions.len();
        let modules: Vec<&str> = annotation.functions.iter().map(|found| found.module.file_name()).collect();
        writeln!(
            out,
            "{count} functions have this name, in {}: the heaviest comes first; --module chooses\n",
            modules.join(", ")
        )?;
    }
    for (index, function) in annotation.functions.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let page = Page::new(annotation, function, *style);
        page.write(view, context, sources, &mut out)?;
    }
    Ok(())
}

/// The instructions of each line, by file and line; those of none under nothing.
type ByLine<'a> = BTreeMap<Option<(&'a Label, u32)>, Vec<&'a AnnotatedInstruction>>;

/// A function on its way to the reader.
struct Page<'a> {
    function: &'a AnnotatedFunction,
    weight: Weight,
    /// Of all that was selected.
    share: f64,
    scale: Option<Scale>,
    has_watts: bool,
    estimate_mark: Option<&'static str>,
    style: Style,
}

impl<'a> Page<'a> {
    fn new(annotation: &'a Annotation, function: &'a AnnotatedFunction, style: Style) -> Self {
        let weight = annotation.weight;
        let whole = annotation.whole.weight(weight);
        let share = if whole > 0.0 { function.own.weight(weight) / whole } else { 0.0 };
        let has_joules = weight == Weight::Joules;
        let has_watts = has_joules && !annotation.is_by_time && function.own.watts().is_some();
        let estimate_mark = annotation.estimate_mark.filter(|_| has_joules);
        let scale = has_joules.then(|| Scale::for_largest(function.own.joules));
        Self { function, weight, share, scale, has_watts, estimate_mark, style }
    }

    fn write(
        &self,
        view: View,
        context: usize,
        sources: &mut Sources,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (bold, plain) = self.escapes("\x1b[1m");
        let function = self.function;
        let took = match self.weight {
            Weight::Joules => function.own.joules.to_string(),
            Weight::Samples => format!("{} samples", grouped(function.own.samples)),
            Weight::Count => format!("{} events", grouped(function.own.count)),
        };
        let watts = function.own.watts().filter(|_| self.has_watts);
        let watts = watts.map(|watts| format!(", {watts} while it ran")).unwrap_or_default();
        writeln!(out, "{bold}{}{plain}  {}", function.name, function.module)?;
        let mark = self.estimate_mark.map(|mark| format!(" ({mark})")).unwrap_or_default();
        writeln!(out, "{took}{mark} itself, {:.1}% of all{watts}", self.share * 100.0)?;
        if let Some(why) = &function.no_code {
            writeln!(out, "note: without instructions: {why}")?;
        }
        let lines = self.by_line();
        self.hottest(view, &lines, out)?;
        writeln!(out, "\n{bold}{}{plain}", self.titles())?;
        let has_lines = lines.keys().any(|place| place.is_some());
        match view {
            View::Source | View::Line if has_lines => {
                self.source(&lines, view == View::Source, context, sources, out)?;
            }
            _ => self.instructions(function.instructions.iter().collect(), "", out)?,
        }
        let sum: Totals = function.instructions.iter().map(|instruction| instruction.own).sum();
        let (dim, plain) = self.escapes("\x1b[2m");
        writeln!(out, "{dim}{}{plain}", "─".repeat(self.titles().width()))?;
        writeln!(out, "{}  sum of {}", self.margin(&sum), function.name)
    }

    fn by_line(&self) -> ByLine<'a> {
        let mut lines: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for instruction in &self.function.instructions {
            let place = instruction.place.as_ref().map(|(file, line)| (file, *line));
            lines.entry(place).or_default().push(instruction);
        }
        lines
    }

    /// Names what took most.
    fn hottest(&self, view: View, lines: &ByLine<'a>, out: &mut impl Write) -> io::Result<()> {
        let weigh = |totals: &Totals| totals.weight(self.weight);
        let mut found: Vec<(f64, String)> = match view {
            View::Source | View::Line if lines.keys().any(|place| place.is_some()) => lines
                .iter()
                .map(|(place, instructions)| {
                    let name = match place {
                        Some((file, line)) => format!("{}:{line}", file.file_name()),
                        None => "[no line]".to_owned(),
                    };
                    (weigh(&sum(instructions)), name)
                })
                .collect(),
            _ => {
                let of = |one: &AnnotatedInstruction| (weigh(&one.own), format!("+{:#x}", one.at));
                self.function.instructions.iter().map(of).collect()
            }
        };
        found.retain(|(weight, _)| *weight > 0.0);
        found.sort_by(|(a, a_name), (b, b_name)| b.total_cmp(a).then_with(|| a_name.cmp(b_name)));
        let whole = weigh(&self.function.own).max(f64::MIN_POSITIVE);
        let shown: Vec<String> = found
            .iter()
            .take(HOTTEST)
            .map(|(weight, name)| format!("{:.1}% {name}", weight / whole * 100.0))
            .collect();
        writeln!(out, "hottest: {}", shown.join(", "))
    }

    /// Lines of each file, the heaviest file first.
    fn source(
        &self,
        lines: &ByLine<'a>,
        with_instructions: bool,
        context: usize,
        sources: &mut Sources,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut files: BTreeMap<&Label, BTreeMap<u32, &Vec<&AnnotatedInstruction>>> = BTreeMap::new();
        for (place, instructions) in lines {
            if let Some((file, line)) = place {
                files.entry(file).or_default().insert(*line, instructions);
            }
        }
        let weigh = |lines: &BTreeMap<u32, &Vec<&AnnotatedInstruction>>| -> f64 {
            lines.values().map(|instructions| sum(instructions).weight(self.weight)).sum()
        };
        let mut files: Vec<_> = files.into_iter().filter(|(_, lines)| weigh(lines) > 0.0).collect();
        files.sort_by(|(_, a), (_, b)| weigh(b).total_cmp(&weigh(a)));
        for (file, lines) in files {
            let text = sources.lines(file.as_str());
            let missing = if text.is_none() { "  (not here: --source FOLDER)" } else { "" };
            self.row(&Totals::default(), &format!("{}{missing}", file.end_of(self.room())), out)?;
            self.lines_of_file(&lines, text, with_instructions, context, out)?;
        }
        if let Some(instructions) = lines.get(&None)
            && !sum(instructions).is_empty()
        {
            self.row(&sum(instructions), "[no line]", out)?;
            if with_instructions {
                self.instructions(instructions.clone(), "       ", out)?;
            }
        }
        Ok(())
    }

    fn lines_of_file(
        &self,
        lines: &BTreeMap<u32, &Vec<&AnnotatedInstruction>>,
        text: Option<&[String]>,
        with_instructions: bool,
        context: usize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let hot: Vec<u32> =
            lines.iter().filter(|(_, all)| !sum(all).is_empty()).map(|(line, _)| *line).collect();
        let mut shown = 0;
        for &line in &hot {
            let around = u32::try_from(context).unwrap_or(u32::MAX);
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
                let own = lines.get(&number).map(|all| sum(all)).unwrap_or_default();
                self.row(&own, &format!("{number:>5}  {code}"), out)?;
                if number == line && with_instructions {
                    let all = lines.get(&number).map(|all| all.to_vec()).unwrap_or_default();
                    self.instructions(all, "       ", out)?;
                }
                shown = number;
            }
        }
        Ok(())
    }

    fn instructions(
        &self,
        instructions: Vec<&AnnotatedInstruction>,
        indent: &str,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut inlined: Option<&Label> = None;
        for instruction in instructions {
            if instruction.inlined.as_ref() != inlined {
                inlined = instruction.inlined.as_ref();
                if let Some(callee) = inlined {
                    self.row(&Totals::default(), &format!("{indent}↳ inlined {callee}"), out)?;
                }
            }
            let text = instruction.text.as_ref().map_or("", Label::as_str);
            let deeper = if inlined.is_some() { "  " } else { "" };
            self.row(&instruction.own, &format!("{indent}{deeper}{:>6x}: {text}", instruction.at), out)?;
        }
        Ok(())
    }

    fn row(&self, own: &Totals, text: &str, out: &mut impl Write) -> io::Result<()> {
        let text = text.trim_end();
        let cut = Label::new(text);
        let shown = cut.shortened(self.room());
        let share = own.weight(self.weight) / self.function.own.weight(self.weight).max(f64::MIN_POSITIVE);
        let color = match share {
            share if share >= HOT => "\x1b[31m",
            share if share >= WARM => "\x1b[32m",
            _ => "",
        };
        let (on, off) = if color.is_empty() { ("", "") } else { self.escapes(color) };
        // Leading blanks are part of the text, which labels keep.
        writeln!(out, "{}", format!("{on}{}{off} │ {shown}", self.margin(own)).trim_end())
    }

    /// Columns for the text.
    fn room(&self) -> usize {
        self.style.width.saturating_sub(self.titles().width() + 3).max(20)
    }

    fn titles(&self) -> String {
        let mut titles = " share".to_owned();
        if let Some(scale) = &self.scale {
            titles += &format!("  {:>9}", if scale.unit == "J" { "joules" } else { scale.unit });
        }
        if self.has_watts {
            titles += &format!("  {:>7}", "watts");
        }
        titles + &format!("  {:>8}", if self.weight == Weight::Count { "count" } else { "samples" })
    }

    /// What something took, or as many blanks if nothing.
    fn margin(&self, own: &Totals) -> String {
        if own.is_empty() {
            return " ".repeat(self.titles().width());
        }
        let whole = self.function.own.weight(self.weight).max(f64::MIN_POSITIVE);
        let mut margin = format!("{:>5.1}%", own.weight(self.weight) / whole * 100.0);
        if let Some(scale) = &self.scale {
            margin += &format!("  {:>9}", scale.show(own.joules));
        }
        if self.has_watts {
            let watts = own.watts().map(|watts| format!("{:.2}", watts.as_watts())).unwrap_or_default();
            margin += &format!("  {watts:>7}");
        }
        let count = if self.weight == Weight::Count { own.count } else { own.samples };
        margin + &format!("  {:>8}", grouped(count))
    }

    /// Switches a color on and off, where there is color.
    fn escapes(&self, on: &'static str) -> (&'static str, &'static str) {
        if self.style.color { (on, "\x1b[0m") } else { ("", "") }
    }
}

fn sum(instructions: &[&AnnotatedInstruction]) -> Totals {
    instructions.iter().map(|instruction| instruction.own).sum()
}
