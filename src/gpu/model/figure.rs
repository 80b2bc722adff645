//! Coefficients in order of size as a bar chart (figure 5 of Nagasaka et al. 2009), in SVG.

use std::fmt::Write;

use crate::markup::escape;

/// Draws named coefficients, largest first, positive to the right of a common zero.
pub fn coefficients(ranked: &[(String, f64)], unit: &str) -> String {
    const ROW: f64 = 18.0;
    const LABELS: f64 = 260.0;
    const BARS: f64 = 360.0;
    let height = ROW * ranked.len() as f64 + 50.0;
    let width = LABELS + BARS + 90.0;
    let low = ranked.iter().map(|(_, value)| *value).fold(0.0, f64::min);
    let high = ranked.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let span = (high - low).max(1e-12);
    let x = |value: f64| LABELS + (value - low) / span * BARS;

    let mut svg = String::new();
    let mut line = |text: String| {
        svg.push_str(&text);
        svg.push('\n');
    };
    line(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">"
    ));
    line(format!("<rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"white\"/>"));
    line(format!(
        "<text x=\"8\" y=\"20\" font-weight=\"bold\">{} per standard deviation</text>",
        escape(unit)
    ));
    for (index, (name, value)) in ranked.iter().enumerate() {
        let top = 34.0 + ROW * index as f64;
        let (from, to) = (x(value.min(0.0)), x(value.max(0.0)));
        let colour = if *value >= 0.0 { "#c0392b" } else { "#2471a3" };
        let middle = top + ROW * 0.7;
        let mut row = String::new();
        let _ = write!(
            row,
            "<text x=\"{:.0}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
            LABELS - 8.0,
            escape(name)
        );
        let _ = write!(
            row,
            "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            top + 2.0,
            (to - from).max(0.5),
            ROW - 4.0
        );
        let _ = write!(row, "<text x=\"{:.1}\" y=\"{middle:.1}\">{value:+.3}</text>", LABELS + BARS + 8.0);
        line(row);
    }
    let zero = x(0.0);
    line(format!(
        "<line x1=\"{zero:.1}\" y1=\"30\" x2=\"{zero:.1}\" y2=\"{:.1}\" stroke=\"black\"/>",
        height - 12.0
    ));
    line("</svg>".to_owned());
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_start_at_a_common_zero() {
        let svg = coefficients(&[("a<b".into(), 3.0), ("branch".into(), -1.0)], "watts");
        assert!(svg.contains("a&lt;b") && svg.ends_with("</svg>\n"));
        // Zero lies at a quarter of the bars: 260 + 90.
        assert!(svg.contains("x=\"350.0\"") && svg.contains("x1=\"350.0\""), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 3);
    }
}
