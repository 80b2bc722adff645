//! Measured runs as a table for people, at most 80 columns wide but for long commands.

use std::fmt::Write;

use super::interval::Estimate;
use super::measurements::{EnergyOf, Measurements, Part, Quantity, Series};
use super::ratio::Ratio;
use crate::hardware::Method;
use crate::label::Label;
use crate::units::Joules;

/// The measurements as a table.
pub fn text(measured: &Measurements) -> String {
    let mut out = String::new();
    let names = ["A", "B"];
    for (series, name) in measured.series.iter().zip(names) {
        let name = if measured.series.len() > 1 { format!("{name}: ") } else { String::new() };
        out.push('\n');
        one_program(&mut out, measured, series, &name);
    }
    if measured.series.len() > 1 {
        out.push('\n');
        comparison(&mut out, measured);
    }
    out.push('\n');
    notes(&mut out, measured);
    out
}

fn one_program(out: &mut String, measured: &Measurements, series: &Series, name: &str) {
    let count = match (series.runs.len(), measured.warmups) {
        (1, 0) => "1 run".to_owned(),
        (runs, 0) => format!("{runs} runs"),
        (runs, warmups) => format!("{runs} runs after {warmups} to warm up"),
    };
    line(out, &format!(" {name}{} ({count})", Label::new(&series.command)));
    if series.runs.is_empty() {
        return;
    }
    line(
        out,
        &format!(" {:<26}{:>12}{:>18}{:>11}{:>12}", "", "energy", "95 % interval", "power", "E x time"),
    );
    for part in measured.parts() {
        let of = |quantity| measured.estimate(series, part, quantity);
        let [Some(energy), Some(power), Some(delay)] = Quantity::OF_DOMAINS.map(of) else { continue };
        let mark = match measured.method(part) {
            Method::Estimated => "~",
            Method::Measured => "",
        };
        let joules = format!("{mark}{}", Joules::from_joules(energy.mean));
        line(
            out,
            &format!(
                " {:<26}{joules:>12}{:>18}{:>9} W{:>9} Js",
                indented(measured, part),
                interval(energy),
                digits(power.mean),
                digits(delay.mean)
            ),
        );
    }
    for (quantity, name) in Quantity::OF_RUNS.into_iter().zip(["seconds", "CPU seconds"]) {
        if let Some(time) = measured.estimate(series, measured.whole(), quantity) {
            line(out, &format!(" {name:<26}{:>10} s{:>18}", digits(time.mean), interval(time)));
        }
    }
}

/// A domain within another stands below it.
fn indented(measured: &Measurements, part: Part) -> String {
    let is_inside = match part {
        Part::Domain(index) => measured.domains.get(index).is_some_and(|domain| domain.info.parent.is_some()),
        Part::Total => false,
    };
    format!("{}{}", if is_inside { "  " } else { "" }, measured.name(part))
}

fn comparison(out: &mut String, measured: &Measurements) {
    line(out, &format!(" {:<26}{:>12}{:>24}", "B / A, run by run", "ratio", "95 % interval"));
    let mut row = |name: &str, ratio: Option<Ratio>| {
        let Some(ratio) = ratio else { return };
        let bounds = ratio
            .bounds
            .map_or("one pair only".to_owned(), |(low, high)| format!("{} to {}", digits(low), digits(high)));
        line(out, &format!(" {name:<26}{:>12}{bounds:>24}", digits(ratio.mean)));
    };
    let whole = measured.whole();
    for part in measured.parts() {
        row(&format!("energy, {}", measured.name(part)), measured.ratio(part, Quantity::Energy));
    }
    row("power", measured.ratio(whole, Quantity::Power));
    row("energy x time", measured.ratio(whole, Quantity::EnergyDelay));
    row("seconds", measured.ratio(whole, Quantity::Time));
    row("CPU seconds", measured.ratio(whole, Quantity::CpuTime));
    line(out, &verdict(measured));
}

fn verdict(measured: &Measurements) -> String {
    let Some(ratio) = measured.ratio(measured.whole(), Quantity::Energy) else {
        return " no run of both with any energy: nothing can be compared".to_owned();
    };
    let percent = (ratio.mean - 1.0).abs() * 100.0;
    match ratio.bounds {
        None => " repeat the runs (-r 10) to know whether that is more than chance".to_owned(),
        Some(_) if !ratio.differs() => {
            " the energies do not differ by more than chance; more runs (-r) may tell them apart".to_owned()
        }
        Some(_) => {
            let more = if ratio.mean > 1.0 { "more" } else { "less" };
            format!(" B takes {percent:.1} % {more} energy than A")
        }
    }
}

fn notes(out: &mut String, measured: &Measurements) {
    let sources: Vec<String> = measured
        .domains
        .iter()
        .filter(|domain| domain.in_total)
        .map(|domain| format!("{} ({})", domain.info.name, domain.info.source))
        .collect();
    let how = match measured.method(measured.whole()) {
        Method::Estimated => "~ ESTIMATED, not measured",
        Method::Measured => "measured",
    };
    line(out, &format!(" {how}: {}", sources.join(" + ")));
    if let Some(error) = measured.watts_error(measured.whole()) {
        let percent = digits(100.0 * error);
        line(
            out,
            &format!(" its watts are assumed: energies and powers may be {percent} % off (one standard"),
        );
        line(out, " error), in all runs alike; --watts sets them. The intervals contain it");
        for (series, name) in measured.series.iter().zip(["A: ", "B: "]) {
            let whole = measured.estimate(series, measured.whole(), Quantity::Energy);
            if let Some(Estimate { mean, half_width: Some(half), .. }) = whole
                && mean.abs() > 0.0
            {
                let name = if measured.series.len() > 1 { name } else { "" };
                let percent = digits(half / mean.abs() * 100.0);
                line(out, &format!(" {name}by repeats alone, energies are known to +- {percent} % (95 %)"));
            }
        }
    }
    let energy_of = match measured.energy_of {
        EnergyOf::Machine => "the whole machine, whatever else ran on it",
        EnergyOf::ProgramAndIdle => "the program and the idle machine; what other programs took is left out",
        EnergyOf::Program => "the program alone; what other programs took is left out",
    };
    line(out, &format!(" energy of {energy_of}"));
    let idle = measured
        .domains
        .iter()
        .filter_map(|domain| domain.idle.map(|idle| format!("{} {idle}", domain.info.name)));
    let idle: Vec<String> = idle.collect();
    if !idle.is_empty() {
        line(out, &format!(" energies are above idle, which took: {}", idle.join(", ")));
    }
    if let Some(signal) = &measured.interrupted {
        line(out, &format!(" interrupted by {signal}: these are the figures until then"));
    }
}

/// `± 1.2 %`, `-40 to +67 %` of an estimate, or the interval itself where the mean is zero.
fn interval(estimate: Estimate) -> String {
    if estimate.common_error > 0.0
        && let Some((low, high)) = estimate.bounds()
    {
        let percent = |bound: f64| (bound - estimate.mean) / estimate.mean.abs() * 100.0;
        return format!("{:+.0} to {:+.0} %", percent(low), percent(high));
    }
    match estimate.half_width {
        None => String::new(),
        Some(half) if estimate.mean.abs() > 0.0 => {
            format!("+- {} %", digits(half / estimate.mean.abs() * 100.0))
        }
        Some(half) => format!("+- {}", digits(half)),
    }
}

/// Four significant digits for numbers of everyday size.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        v if !(9.9995e-5..9999.5).contains(&v) => return format!("{value:.3e}"),
        v if v >= 999.95 => 0,
        v if v >= 99.995 => 1,
        v if v >= 9.9995 => 2,
        v if v >= 0.09995 => 3,
        _ => 5,
    };
    format!("{value:.decimals$}")
}

fn line(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::super::measurements::fixture::two_programs;
    use super::*;
    use crate::units::{Joules, Watts};

    #[test]
    fn four_digits_of_numbers_of_everyday_size() {
        for (value, expected) in [
            (0.0, "0"),
            // Where one more digit begins.
            (999.95, "1000"),
            (99.995, "100.0"),
            (9.9995, "10.00"),
            (0.09995, "0.100"),
            (9999.4, "9999"),
            (9999.6, "1.000e4"),
            (999.96, "1000"),
            (999.94, "999.9"),
            (99.996, "100.0"),
            (99.994, "99.99"),
            (9.9996, "10.00"),
            (9.9994, "9.999"),
            (0.09996, "0.100"),
            (0.09994, "0.09994"),
            (1e-4, "0.00010"),
            (9.99e-5, "9.990e-5"),
            (-12.345, "-12.35"),
        ] {
            assert_eq!(digits(value), expected, "{value}");
        }
        // t(0.975, 1) is 12.706: half the width of two values that differ by 2 is as much.
        let of = |values: &[f64]| Estimate::of(values).expect("values");
        let shown = [of(&[-99.0, -101.0]), of(&[-1.0, 1.0]), of(&[3.0])].map(interval);
        assert_eq!(shown, ["+- 12.71 %", "+- 12.71", ""]);
        let assumed = |values: &[f64]| interval(of(values).with_common_error(0.6));
        assert_eq!(
            [assumed(&[3.0]), assumed(&[-3.0]), assumed(&[0.0])],
            ["-60 to +151 %", "-151 to +60 %", ""]
        );
    }

    #[test]
    fn a_comparison_by_eye() {
        insta::assert_snapshot!(text(&two_programs()));
    }

    #[test]
    fn one_run_of_an_estimate_by_eye() {
        let mut measured = two_programs();
        measured.series.truncate(1);
        measured.series[0].runs.truncate(1);
        measured.domains.truncate(1);
        measured.domains[0].info.method = Method::Estimated;
        measured.domains[0].info.source = "estimate".to_owned();
        measured.domains[0].idle = Some(Watts::from_watts(3.5));
        measured.energy_of = EnergyOf::Program;
        measured.warmups = 0;
        measured.interrupted = Some("SIGINT".to_owned());
        insta::assert_snapshot!(text(&measured));
    }

    /// What is estimated has the interval of its watts in the table; what repeats alone say of it stands below.
    #[test]
    fn repeats_are_not_all_that_an_estimate_is_unsure_of() {
        let mut measured = two_programs();
        assert!(!text(&measured).contains("by repeats alone"));
        for domain in &mut measured.domains {
            domain.info.method = Method::Estimated;
            domain.info.watts_error = Some(0.6);
        }
        // 9, 10 and 11 J: 4.3027 times 1 / sqrt(3) is 24.84 %, of the total 24.84 % as well.
        let shown = text(&measured);
        assert!(
            shown.contains("\n A: by repeats alone, energies are known to +- 24.84 % (95 %)\n"),
            "{shown}"
        );
        let row = shown.lines().find(|line| line.starts_with(" package-0 ")).expect("a row");
        assert!(row.contains("-61 to +160 %") && !row.contains("24.8"), "exp(hypot(0.9212, 0.2484)): {row}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }

    /// A part of nothing is no percentage.
    #[test]
    fn of_no_energy_repeats_tell_nothing() {
        let mut measured = two_programs();
        for domain in &mut measured.domains {
            (domain.info.method, domain.info.watts_error) = (Method::Estimated, Some(0.6));
        }
        measured.series[1].runs.iter_mut().for_each(|run| run.joules.fill(Joules::ZERO));
        let shown = text(&measured);
        assert!(shown.contains(" A: by repeats alone") && !shown.contains(" B: by repeats alone"), "{shown}");
    }

    #[test]
    fn whose_energy_it_is_is_said() {
        let mut measured = two_programs();
        assert!(text(&measured).contains("\n energy of the whole machine, whatever else ran on it\n"));
        measured.energy_of = EnergyOf::ProgramAndIdle;
        assert!(text(&measured).contains("\n energy of the program and the idle machine; what other"));
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let shown = text(&two_programs());
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }
}
