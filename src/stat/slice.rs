//! What a stretch of time took, of figures that are shown while a program runs.

use std::fmt::Write;

use serde::Serialize;

use super::measurements::{EnergyOf, MeasuredDomain, Measurements, Part, Quantity, Run, Series};
use crate::hardware::Method;

/// A stretch of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// Seconds from the run's start to the end of the stretch.
    pub end: f64,
    /// What it took.
    pub run: Run,
}

/// One figure of a slice, for programs.
#[derive(Serialize)]
struct Figure<'a> {
    seconds: f64,
    part: &'a str,
    method: Method,
    joules: f64,
    watts: f64,
    cpu_seconds: f64,
}

impl Slice {
    /// Whether nothing of the run came before it.
    pub fn begins_the_run(&self) -> bool {
        self.end <= self.run.seconds
    }

    /// The names of the columns that [`Slice::text`] writes.
    pub fn text_heading() -> String {
        format!("{:>12} {:>14} {:>12} {:>12}  part\n", "seconds", "joules", "watts", "CPU seconds")
    }

    /// A line for each domain and the total.
    pub fn text(&self, domains: &[MeasuredDomain]) -> String {
        let mut out = String::new();
        self.figures(domains, |figure| {
            let mark = if figure.method == Method::Estimated { "~" } else { "" };
            let joules = format!("{mark}{:.3}", figure.joules);
            let _ = writeln!(
                out,
                "{:>12.3} {joules:>14} {:>12.3} {:>12.3}  {}",
                figure.seconds, figure.watts, figure.cpu_seconds, figure.part
            );
        });
        out
    }

    /// The names of the columns that [`Slice::csv`] writes.
    pub fn csv_heading() -> String {
        "seconds,part,method,joules,watts,cpu-seconds\n".to_owned()
    }

    /// A line of values for each domain and the total.
    pub fn csv(&self, domains: &[MeasuredDomain]) -> String {
        let mut out = String::new();
        self.figures(domains, |Figure { seconds, part, method, joules, watts, cpu_seconds }| {
            let method = if method == Method::Estimated { "estimated" } else { "measured" };
            let _ = writeln!(out, "{seconds},{part},{method},{joules},{watts},{cpu_seconds}");
        });
        out
    }

    /// An object in a line of its own for each domain and the total.
    pub fn json(&self, domains: &[MeasuredDomain]) -> String {
        let mut out = String::new();
        self.figures(domains, |figure| {
            // Finite numbers and a text have a JSON.
            let _ = writeln!(out, "{}", serde_json::to_string(&figure).unwrap_or_default());
        });
        out
    }

    fn figures(&self, domains: &[MeasuredDomain], mut show: impl FnMut(Figure<'_>)) {
        let measured = Measurements {
            domains: domains.to_vec(),
            series: vec![Series { command: String::new(), runs: vec![self.run.clone()] }],
            warmups: 0,
            energy_of: EnergyOf::Machine,
            interrupted: None,
            warnings: Vec::new(),
        };
        let value = |part: Part, quantity| measured.values(&measured.series[0], part, quantity)[0];
        for part in measured.parts() {
            show(Figure {
                seconds: self.end,
                part: measured.name(part),
                method: measured.method(part),
                joules: value(part, Quantity::Energy),
                watts: value(part, Quantity::Power),
                cpu_seconds: self.run.cpu_seconds,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::measurements::fixture::two_programs;
    use super::*;

    #[test]
    fn the_first_slice_begins_the_run() {
        let run = two_programs().series[0].runs.remove(0);
        let begins = |end: f64| Slice { end, run: Run { seconds: 0.5, ..run.clone() } }.begins_the_run();
        assert!(begins(0.5) && begins(0.4999) && !begins(0.6));
        // A heading over each column.
        assert_eq!(Slice::text_heading().split_whitespace().count(), 6, "CPU seconds are two words");
        assert_eq!(Slice::csv_heading().trim().split(',').count(), 6);
    }

    #[test]
    fn each_domain_and_the_total_have_a_line() {
        let mut measured = two_programs();
        let slice = Slice { end: 2.0, run: measured.series[1].runs.remove(0) };
        let text = slice.text(&measured.domains);
        let last = text.lines().last().expect("the total");
        let words: Vec<&str> = last.split_whitespace().collect();
        assert_eq!(
            (text.lines().count(), &words[..]),
            (4, &["2.000", "14.000", "7.000", "4.000", "total"][..])
        );
        assert!(slice.csv(&measured.domains).starts_with("2,package-0,measured,12,6,4\n"));
        let json = slice.json(&measured.domains);
        let total: serde_json::Value =
            serde_json::from_str(json.lines().last().expect("total")).expect("JSON");
        assert_eq!((&total["part"], &total["joules"]), (&"total".into(), &14.0.into()));
    }
}
