//! A picture of how the energies of buckets lie around their target.

use std::fmt::Write;

use super::buckets::BucketReport;
use crate::markup::begin_diagram;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 60.0;
const STYLE: &str =
    ".measured { fill: #2b6cb0 } .modelled { fill: #dd6b20; fill-opacity: 0.7 } .axis { stroke: #888 }";
/// From 0.75 to 1.25 times the target in steps of a hundredth; what lies beyond is in the outermost bars.
const LOWEST: f64 = 0.75;
const STEP: f64 = 0.01;
const BARS: usize = 50;

/// Draws the share of buckets by their energy: as measured, and by the power model alone.
pub fn draw(report: &BucketReport) -> String {
    let target = report.target_joules;
    let full = report.full();
    let measured = counts(full.iter().map(|bucket| bucket.joules / target));
    let modelled: Option<Vec<f64>> =
        full.iter().map(|bucket| bucket.modelled_joules.map(|joules| joules / target)).collect();
    let modelled = modelled.map(|values| counts(values.into_iter()));
    let total = full.len().max(1) as f64;
    let series = [Some(&measured), modelled.as_ref()];
    let highest = series.iter().flatten().flat_map(|counts| counts.iter()).max().copied().unwrap_or(0);
    let top = (highest as f64 / total).max(0.05);

    let (plot_width, plot_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let x = |bar: f64| LEFT + bar / BARS as f64 * plot_width;
    let y = |share: f64| HEIGHT - BOTTOM - share / top * plot_height;
    let title = format!("Energy of {} buckets, target {target}", full.len());
    let mut svg = begin_diagram(WIDTH, HEIGHT, STYLE, LEFT, &title);
    let beside = LEFT + if report.method == "mixed" { 290.0 } else { 130.0 };
    let legend = [("measured", report.found_as(), LEFT), ("modelled", "by the power model alone", beside)];
    for (class, name, at) in legend.into_iter().take(if modelled.is_some() { 2 } else { 1 }) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            r#"<rect class="{class}" x="{at}" y="34" width="10" height="10"/><text x="{}" y="43">{name}</text>"#,
            at + 14.0
        );
    }
    let bar_width = plot_width / BARS as f64;
    for (class, counts, offset) in [("measured", Some(&measured), 0.05), ("modelled", modelled.as_ref(), 0.5)]
    {
        for (bar, count) in counts.into_iter().flatten().enumerate().filter(|(_, count)| **count > 0) {
            let share = *count as f64 / total;
            let _ = writeln!(
                svg,
                r#"<rect class="{class}" x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}"><title>{:.2} of the target: {:.1}%</title></rect>"#,
                x(bar as f64 + offset),
                y(share),
                bar_width * 0.45,
                HEIGHT - BOTTOM - y(share),
                LOWEST + STEP * (bar as f64 + 0.5),
                share * 100.0
            );
        }
    }
    axes(&mut svg, top, &x, &y);
    svg.push_str("</svg>\n");
    svg
}

fn axes(svg: &mut String, top: f64, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) {
    let bottom = HEIGHT - BOTTOM;
    let _ = writeln!(svg, r#"<path class="axis" fill="none" d="M{LEFT},{TOP}V{bottom}H{}"/>"#, WIDTH - RIGHT);
    for bar in (0..=BARS).step_by(5) {
        let value = LOWEST + STEP * bar as f64;
        let _ = writeln!(
            svg,
            r#"<text x="{:.1}" y="{}" text-anchor="middle">{value:.2}</text>"#,
            x(bar as f64),
            bottom + 16.0
        );
    }
    for part in 0..=4 {
        let share = top * f64::from(part) / 4.0;
        let _ = writeln!(
            svg,
            r#"<text x="{}" y="{:.1}" text-anchor="end">{:.0}%</text>"#,
            LEFT - 6.0,
            y(share) + 4.0,
            share * 100.0
        );
    }
    let _ = writeln!(
        svg,
        r#"<text x="{}" y="{}" text-anchor="middle">energy of a bucket as a share of the target; the outermost bars hold all beyond</text>"#,
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 16.0
    );
}

/// How many values fall into each bar.
fn counts(values: impl Iterator<Item = f64>) -> [usize; BARS] {
    let mut counts = [0; BARS];
    for value in values.filter(|value| value.is_finite()) {
        // A hair is added, so that a value on the edge of two bars does not fall by rounding.
        let bar = ((value - LOWEST) / STEP + 1e-6).floor().clamp(0.0, BARS as f64 - 1.0);
        counts[bar as usize] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::buckets::Spread;
    use crate::units::Joules;

    #[test]
    fn values_fall_into_bars_of_a_hundredth() {
        let found = counts([0.1, 0.75, 0.999, 1.0, 1.004, 3.0, f64::NAN].into_iter());
        let bars: Vec<(usize, usize)> =
            found.into_iter().enumerate().filter(|(_, count)| *count > 0).collect();
        assert_eq!(bars, [(0, 2), (24, 1), (25, 2), (49, 1)]);
    }

    #[test]
    fn a_picture_without_buckets_is_still_one() {
        let report = BucketReport {
            target_joules: Joules::from_joules(1.0),
            mean_joules: None,
            method: "measured",
            measured: Spread { within_5_percent: 0.0, within_10_percent: 0.0 },
            modelled: None,
            buckets: Vec::new(),
        };
        let svg = draw(&report);
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && !svg.contains("NaN"));
    }
}
