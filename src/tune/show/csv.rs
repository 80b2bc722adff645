//! All predictions as CSV, and the conventions of the tables of runs that eprof writes.

use std::fmt::Write;

use crate::tune::analysis::Analysis;
use crate::tune::model::Estimate;
use crate::tune::runs::AXES;
use crate::tune::space::Variable;

/// All settings with their predictions, and what was measured, as CSV.
pub fn predictions_csv(analysis: &Analysis) -> String {
    let responses = analysis.measured().responses;
    let [speed, energy] = AXES.map(|axis| responses.name(axis));
    let mut text = String::new();
    for variable in analysis.space().variables() {
        let _ = write!(text, "{},", cell(&heading(variable)));
    }
    let _ = writeln!(
        text,
        "{speed},{speed}_low,{speed}_high,{energy},{energy}_low,{energy}_high,\
         time_ratio,time_ratio_low,time_ratio_high,energy_ratio,energy_ratio_low,energy_ratio_high,measured_{speed},measured_{energy},front,zone,default,recommended"
    );
    let mut on_front = vec![false; analysis.space().size()];
    for &position in analysis.front() {
        on_front[position] = true;
    }
    for (position, &on_front) in on_front.iter().enumerate() {
        let setting = analysis.space().setting(position);
        for level in &setting.0 {
            let _ = write!(text, "{},", cell(&level.to_string()));
        }
        let values = AXES.map(|axis| analysis.predict(axis, position));
        let ratios = AXES.map(|axis| analysis.against_default(axis, position));
        for Estimate { value, interval } in values.into_iter().chain(ratios) {
            let (low, high) =
                interval.map_or_else(Default::default, |(low, high)| (low.to_string(), high.to_string()));
            let _ = write!(text, "{value},{low},{high},");
        }
        for axis in AXES {
            let measured =
                analysis.measured().find(&setting).map(|measured| measured.value(axis).to_string());
            let _ = write!(text, "{},", measured.unwrap_or_default());
        }
        let flags = [
            on_front,
            analysis.zone().contains(analysis.costs()[position]),
            position == analysis.default_position(),
            position == analysis.chosen(),
        ];
        let _ = writeln!(text, "{}", flags.map(|flag| if flag { "1" } else { "0" }).join(","));
    }
    text
}

/// A variable's name with its unit, as tables of runs name their columns.
pub fn heading(variable: &Variable) -> String {
    match variable.role.unit() {
        "" => variable.name.clone(),
        unit => format!("{}_{unit}", variable.name),
    }
}

/// A CSV cell, quoted where it must be.
pub fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n', ';']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}
