//! The numbers beside the code: share, joules with their error, watts, samples. Columns are as wide as what stands in them,
//! so that 80 leave room for the code.

use unicode_width::UnicodeWidthStr;

use super::annotation::{AnnotatedFunction, Annotation};
use crate::report::scale::Scale;
use crate::report::select::{Totals, Weight};
use crate::units::{Joules, grouped};

const GAP: &str = "  ";

/// How the numbers of one function are written.
pub struct Margin {
    weight: Weight,
    /// What is 100 %.
    whole: f64,
    /// The unit of joules, where these weigh.
    scale: Option<Scale>,
    has_errors: bool,
    has_watts: bool,
    widths: Vec<usize>,
}

impl Margin {
    /// Of a function, its lines and its instructions.
    pub fn new(annotation: &Annotation, function: &AnnotatedFunction) -> Self {
        let weight = annotation.weight;
        let has_joules = weight == Weight::Joules;
        let mut margin = Self {
            weight,
            whole: function.own.weight(weight).max(f64::MIN_POSITIVE),
            scale: has_joules.then(|| Scale::for_largest(function.own.joules)),
            has_errors: has_joules && function.own.standard_error() > Joules::ZERO,
            has_watts: has_joules && !annotation.is_by_time && function.own.watts().is_some(),
            widths: Vec::new(),
        };
        let lines = function.lines.iter().map(|line| &line.own);
        let instructions = function.instructions.iter().map(|instruction| &instruction.own);
        let all = [&function.own].into_iter().chain(lines).chain(instructions);
        let mut widths: Vec<usize> = margin.titles_of_columns().iter().map(|title| title.width()).collect();
        for own in all.filter(|own| !own.is_empty()) {
            for (width, cell) in widths.iter_mut().zip(margin.cells(own)) {
                *width = (*width).max(cell.width());
            }
        }
        margin.widths = widths;
        margin
    }

    /// Whether watts are told.
    pub fn has_watts(&self) -> bool {
        self.has_watts
    }

    /// Whether errors of joules are told.
    pub fn has_errors(&self) -> bool {
        self.has_errors
    }

    /// The share of the function.
    pub fn share(&self, own: &Totals) -> f64 {
        own.weight(self.weight) / self.whole
    }

    /// The columns' titles.
    pub fn titles(&self) -> String {
        self.row(self.titles_of_columns().into_iter().map(str::to_owned))
    }

    /// What something took, or as many blanks if nothing.
    pub fn of(&self, own: &Totals) -> String {
        if own.is_empty() { " ".repeat(self.width()) } else { self.row(self.cells(own).into_iter()) }
    }

    /// Columns that it takes.
    pub fn width(&self) -> usize {
        self.widths.iter().map(|width| width + GAP.len()).sum::<usize>().saturating_sub(GAP.len())
    }

    /// What something took, with its unit and error.
    pub fn amount(&self, own: &Totals) -> String {
        match (self.weight, &self.scale) {
            (Weight::Joules, Some(scale)) if self.has_errors => {
                format!("{} ± {} {}", scale.show(own.joules), scale.show(own.standard_error()), scale.unit)
            }
            _ => self.amount_alone(own),
        }
    }

    /// The same of what no error is known of.
    pub fn amount_alone(&self, own: &Totals) -> String {
        match self.weight {
            Weight::Joules => own.joules.to_string(),
            Weight::Samples => format!("{} samples", grouped(own.samples)),
            Weight::Count => format!("{} events", grouped(own.count)),
        }
    }

    fn row(&self, cells: impl Iterator<Item = String>) -> String {
        let padded = cells.zip(&self.widths).map(|(cell, width)| {
            let blanks = " ".repeat(width.saturating_sub(cell.width()));
            blanks + &cell
        });
        padded.collect::<Vec<String>>().join(GAP)
    }

    fn titles_of_columns(&self) -> Vec<&'static str> {
        let mut titles = vec!["share"];
        if let Some(scale) = &self.scale {
            titles.push(if scale.unit == "J" { "joules" } else { scale.unit });
        }
        titles.extend(self.has_errors.then_some("±"));
        titles.extend(self.has_watts.then_some("watts"));
        titles.push(if self.weight == Weight::Count { "count" } else { "samples" });
        titles
    }

    fn cells(&self, own: &Totals) -> Vec<String> {
        let mut cells = vec![format!("{:.1}%", self.share(own) * 100.0)];
        if let Some(scale) = &self.scale {
            cells.push(scale.show(own.joules));
            cells.extend(self.has_errors.then(|| scale.show(own.standard_error())));
        }
        if self.has_watts {
            cells.push(own.watts().map(|watts| format!("{:.2}", watts.as_watts())).unwrap_or_default());
        }
        cells.push(grouped(if self.weight == Weight::Count { own.count } else { own.samples }));
        cells
    }
}
