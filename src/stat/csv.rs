//! Measured runs as CSV: one line for each mean and each ratio.

use super::measurements::{Measurements, Part, Quantity, Series};
use crate::hardware::Method;

/// The measurements as a table with the columns `command,part,method,quantity,unit,runs,mean,low,high`;
/// lines of ratios have the command `B/A`. `low` and `high` are empty where a single run was made.
///
/// # Errors
/// None in practice: the table is written to memory.
pub fn csv(measured: &Measurements) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["command", "part", "method", "quantity", "unit", "runs", "mean", "low", "high"])?;
    let whole = measured.whole();
    let parts = measured.parts();
    let of_parts = parts.iter().flat_map(|&part| Quantity::OF_DOMAINS.map(|quantity| (part, quantity)));
    let quantities: Vec<(Part, Quantity)> =
        of_parts.chain(Quantity::OF_RUNS.map(|quantity| (whole, quantity))).collect();
    for series in &measured.series {
        for &(part, quantity) in &quantities {
            if let Some(estimate) = measured.estimate(series, part, quantity) {
                let line = Line { command: &series.command, part, quantity, unit: quantity.unit() };
                line.write(&mut writer, measured, series.runs.len(), estimate.mean, estimate.bounds())?;
            }
        }
    }
    for &(part, quantity) in &quantities {
        if let Some(ratio) = measured.ratio(part, quantity) {
            let line = Line { command: "B/A", part, quantity, unit: "" };
            line.write(&mut writer, measured, pairs(&measured.series), ratio.mean, ratio.bounds)?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn pairs(series: &[Series]) -> usize {
    series.iter().map(|series| series.runs.len()).min().unwrap_or(0)
}

struct Line<'a> {
    command: &'a str,
    part: Part,
    quantity: Quantity,
    unit: &'static str,
}

impl Line<'_> {
    fn write(
        &self,
        writer: &mut csv::Writer<Vec<u8>>,
        measured: &Measurements,
        runs: usize,
        mean: f64,
        bounds: Option<(f64, f64)>,
    ) -> Result<(), csv::Error> {
        let is_energy = Quantity::OF_DOMAINS.contains(&self.quantity);
        let method = match measured.method(self.part) {
            Method::Estimated if is_energy => "estimated",
            _ => "measured",
        };
        let part = if is_energy { measured.name(self.part) } else { "run" };
        let [low, high] = match bounds {
            Some((low, high)) => [low, high].map(|bound| bound.to_string()),
            None => [String::new(), String::new()],
        };
        writer.write_record([
            self.command,
            part,
            method,
            self.quantity.name(),
            self.unit,
            &runs.to_string(),
            &mean.to_string(),
            &low,
            &high,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::super::measurements::fixture::two_programs;
    use super::*;

    #[test]
    fn one_line_for_each_figure() {
        let text = csv(&two_programs()).expect("a table");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "command,part,method,quantity,unit,runs,mean,low,high");
        // Two programs and their ratio, each with three figures of four parts and two of the run.
        assert_eq!(lines.len(), 1 + 3 * (4 * 3 + 2));
        assert!(lines[1].starts_with("./fast 1,package-0,measured,energy,J,3,10,"), "{}", lines[1]);
        assert!(lines.iter().any(|line| line.starts_with("B/A,run,measured,time,,3,2")), "{text}");
    }

    #[test]
    fn an_estimated_domain_leaves_the_time_measured() {
        let mut measured = two_programs();
        measured.domains[2].info.method = Method::Estimated;
        let text = csv(&measured).expect("a table");
        let methods = |start: &str| -> Vec<&str> {
            let rows = text.lines().filter_map(|line| line.strip_prefix(start));
            rows.filter_map(|rest| rest.split(',').next()).collect()
        };
        assert_eq!(methods("./fast 1,package-0,"), ["measured"; 3]);
        assert_eq!(methods("./fast 1,dram-0,"), ["estimated"; 3]);
        assert_eq!(methods("./fast 1,total,"), ["estimated"; 3]);
        assert_eq!(methods("./fast 1,run,"), ["measured"; 2]);
    }
}
