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
    #[test]
    fn a_figure_by_hand() {
        let ranked = [("a", 3.0), ("b", 0.0), ("c", -1.0)].map(|(name, value)| (name.to_owned(), value));
        let svg = coefficients(&ranked, "watts");
        let row = |middle: f64, name: &str, [x, y, width]: [&str; 3], colour: &str, value: &str| {
            format!(
                "<text x=\"252\" y=\"{middle:.1}\" text-anchor=\"end\">{name}</text><rect x=\"{x}\" y=\"{y}\" \
                 width=\"{width}\" height=\"14.0\" fill=\"{colour}\"/><text x=\"628.0\" y=\"{middle:.1}\">{value}</text>"
            )
        };
        let expected = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"710\" height=\"104\" viewBox=\"0 0 710 104\" \
             font-family=\"sans-serif\" font-size=\"12\">"
                .to_owned(),
            "<rect width=\"710\" height=\"104\" fill=\"white\"/>".to_owned(),
            "<text x=\"8\" y=\"20\" font-weight=\"bold\">watts per standard deviation</text>".to_owned(),
            // Four units are 360 wide, and zero lies a unit from the left.
            row(46.6, "a", ["350.0", "36.0", "270.0"], "#c0392b", "+3.000"),
            row(64.6, "b", ["350.0", "54.0", "0.5"], "#c0392b", "+0.000"),
            row(82.6, "c", ["260.0", "72.0", "90.0"], "#2471a3", "-1.000"),
            "<line x1=\"350.0\" y1=\"30\" x2=\"350.0\" y2=\"92.0\" stroke=\"black\"/>".to_owned(),
            "</svg>".to_owned(),
        ];
        assert_eq!(svg.lines().collect::<Vec<_>>(), expected);
    }
}
