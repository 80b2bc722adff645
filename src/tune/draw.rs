//! The front, the zone, the runs and the choice as one SVG.

use std::fmt::Write;

use super::analysis::Analysis;
use super::front::Cost;
use super::runs::{AXES, Axis, Responses};
use super::show;
use super::zone::steps;
use crate::label::visible;
use crate::markup::{begin_diagram, escape};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 540.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 60.0;

const STYLE: &str = "
  .frame { fill: none; stroke: #888 } .grid { stroke: #ddd }
  .zone { fill: #9ecae1; fill-opacity: 0.45; stroke: none }
  .front { fill: none; stroke: #08519c; stroke-width: 1.5 } .optimal { fill: #08519c }
  .predicted { fill: #999; fill-opacity: 0.6 }
  .run { fill: none; stroke: #d94801; stroke-width: 1.5 }
  .default { fill: #000 } .chosen { fill: #238b45; stroke: #fff }
";

/// Most predicted points drawn; beyond it they would only be a blot.
const MOST_POINTS: usize = 4000;

/// Draws time against energy (or performance against efficiency): all predicted settings, the
/// predicted front and its zone, the measured runs, the default and the recommended setting.
pub fn draw(analysis: &Analysis, title: &str) -> String {
    let responses = analysis.measured().responses;
    let runs: Vec<(Cost, String)> = analysis
        .measured()
        .settings()
        .iter()
        .map(|measured| {
            let cost = AXES.map(|axis| responses.cost(measured.value(axis)));
            (cost, analysis.space().show(&measured.setting))
        })
        .collect();
    let all = || analysis.costs().iter().chain(runs.iter().map(|(cost, _)| cost));
    let scales = [0, 1].map(|axis| {
        let values = all().map(|cost| responses.cost(cost[axis]));
        Scale::covering(values, if axis == 0 { [LEFT, WIDTH - RIGHT] } else { [HEIGHT - BOTTOM, TOP] })
    });
    let place = |cost: Cost| [0, 1].map(|axis| scales[axis].place(responses.cost(cost[axis])));

    let mut svg = begin_diagram(WIDTH, HEIGHT, STYLE, LEFT, &visible(title));
    axes(&mut svg, &scales, responses);

    let _ = writeln!(
        svg,
        r#"<clipPath id="inside"><rect x="{LEFT}" y="{TOP}" width="{}" height="{}"/></clipPath><g clip-path="url(#inside)">"#,
        WIDTH - LEFT - RIGHT,
        HEIGHT - TOP - BOTTOM
    );
    // Far enough out that the clipping cuts it off.
    let outer = [0, 1].map(|axis| all().map(|cost| cost[axis]).fold(0.0, f64::max) * 4.0);
    let path = |points: &[Cost]| -> String {
        points.iter().map(|&cost| place(cost)).map(|[x, y]| format!("{x:.1},{y:.1} ")).collect()
    };
    let _ = writeln!(
        svg,
        r#"<polygon class="zone" points="{}"/>"#,
        path(&analysis.zone().polygon(outer)).trim_end()
    );
    let _ = writeln!(
        svg,
        r#"<polyline class="front" points="{}"/>"#,
        path(&steps(analysis.zone().front(), outer)).trim_end()
    );
    let stride = analysis.costs().len().div_ceil(MOST_POINTS).max(1);
    for position in (0..analysis.costs().len()).step_by(stride) {
        let [x, y] = place(analysis.costs()[position]);
        let _ = writeln!(
            svg,
            r#"<circle class="predicted" cx="{x:.1}" cy="{y:.1}" r="2">{}</circle>"#,
            hint(analysis, position)
        );
    }
    for &position in analysis.front() {
        let [x, y] = place(analysis.costs()[position]);
        let _ = writeln!(
            svg,
            r#"<circle class="optimal" cx="{x:.1}" cy="{y:.1}" r="3.5">{}</circle>"#,
            hint(analysis, position)
        );
    }
    for (cost, setting) in &runs {
        let [x, y] = place(*cost);
        let _ = writeln!(
            svg,
            r#"<circle class="run" cx="{x:.1}" cy="{y:.1}" r="5"><title>measured: {}</title></circle>"#,
            escape(&visible(setting))
        );
    }
    let [x, y] = place(analysis.costs()[analysis.default_position()]);
    let _ = writeln!(
        svg,
        r#"<path class="default" d="M{x:.1} {:.1}l7 7l-7 7l-7 -7z">{}</path>"#,
        y - 7.0,
        hint(analysis, analysis.default_position())
    );
    let [x, y] = place(analysis.costs()[analysis.chosen()]);
    let _ = writeln!(
        svg,
        r#"<polygon class="chosen" points="{}">{}</polygon>"#,
        star(x, y),
        hint(analysis, analysis.chosen())
    );
    svg.push_str("</g>\n");
    legend(&mut svg);
    svg.push_str("</svg>\n");
    svg
}

/// From a value to a place on the drawing, linear or, for wide ranges, logarithmic.
struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    ends: [f64; 2],
}

impl Scale {
    fn covering(values: impl Iterator<Item = f64>, ends: [f64; 2]) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        if !low.is_finite() {
            return Self { low: 0.5, high: 1.5, logarithmic: false, ends };
        }
        if high / low > 4.0 {
            return Self { low: low / 1.15, high: high * 1.15, logarithmic: true, ends };
        }
        let margin = ((high - low) * 0.06).max(high * 0.01);
        Self { low: (low - margin).max(0.0), high: high + margin, logarithmic: false, ends }
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.logarithmic {
            // A cost far outside may come near 0 on this axis.
            true => (value.max(self.low / 1e3) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.ends[0] + share * (self.ends[1] - self.ends[0])
    }

    fn ticks(&self) -> Vec<f64> {
        let mut ticks = Vec::new();
        if self.logarithmic {
            let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
            for decade in decades {
                ticks.extend([1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(decade)));
            }
        } else {
            let rough = (self.high - self.low) / 6.0;
            let decade = 10f64.powf(rough.log10().floor());
            let step =
                [1.0, 2.0, 5.0, 10.0].map(|digit| digit * decade).into_iter().find(|&step| step >= rough);
            let step = step.unwrap_or(decade);
            let first = (self.low / step).ceil() as i64;
            ticks.extend((first..first + 12).map(|n| n as f64 * step));
        }
        ticks.retain(|tick| (self.low..=self.high).contains(tick));
        ticks
    }
}

fn axes(svg: &mut String, scales: &[Scale; 2], responses: Responses) {
    for tick in scales[0].ticks() {
        let x = scales[0].place(tick);
        let _ = writeln!(
            svg,
            r#"<path class="grid" d="M{x:.1} {TOP}V{}"/><text x="{x:.1}" y="{}" text-anchor="middle">{}</text>"#,
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 18.0,
            tick_text(tick)
        );
    }
    for tick in scales[1].ticks() {
        let y = scales[1].place(tick);
        let _ = writeln!(
            svg,
            r#"<path class="grid" d="M{LEFT} {y:.1}H{}"/><text x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
            WIDTH - RIGHT,
            LEFT - 8.0,
            y + 4.0,
            tick_text(tick)
        );
    }
    let unit = |axis: Axis| match (responses, axis) {
        (Responses::Totals, Axis::Speed) => "time, s",
        (Responses::Totals, Axis::Energy) => "energy, J",
        (Responses::Rates, Axis::Speed) => "performance, work per second",
        (Responses::Rates, Axis::Energy) => "efficiency, work per joule",
    };
    let (middle_x, middle_y) = ((LEFT + WIDTH - RIGHT) / 2.0, (TOP + HEIGHT - BOTTOM) / 2.0);
    let _ = writeln!(
        svg,
        r#"<rect class="frame" x="{LEFT}" y="{TOP}" width="{}" height="{}"/>
<text x="{middle_x}" y="{}" text-anchor="middle">{}</text>
<text transform="translate(20 {middle_y}) rotate(-90)" text-anchor="middle">{}</text>"#,
        WIDTH - LEFT - RIGHT,
        HEIGHT - TOP - BOTTOM,
        HEIGHT - 18.0,
        unit(Axis::Speed),
        unit(Axis::Energy),
    );
}

fn legend(svg: &mut String) {
    let y = 48.0;
    let entries: [(&str, f64, String); 6] = [
        (
            "trade-off zone",
            112.0,
            format!(r#"<rect class="zone" x="0" y="{}" width="14" height="12"/>"#, y - 10.0),
        ),
        ("front", 62.0, format!(r#"<circle class="optimal" cx="7" cy="{}" r="3.5"/>"#, y - 4.0)),
        ("predicted", 84.0, format!(r#"<circle class="predicted" cx="7" cy="{}" r="2.5"/>"#, y - 4.0)),
        ("measured", 84.0, format!(r#"<circle class="run" cx="7" cy="{}" r="5"/>"#, y - 4.0)),
        ("default", 74.0, format!(r#"<path class="default" d="M7 {}l6 6l-6 6l-6 -6z"/>"#, y - 10.0)),
        ("recommended", 110.0, format!(r#"<polygon class="chosen" points="{}"/>"#, star(7.0, y - 4.0))),
    ];
    let mut x = LEFT;
    for (text, width, sample) in entries {
        let _ = writeln!(
            svg,
            r#"<g transform="translate({x} 0)">{sample}<text x="20" y="{y}">{text}</text></g>"#
        );
        x += width;
    }
}

/// What a viewer shows when the pointer rests on a point.
fn hint(analysis: &Analysis, position: usize) -> String {
    let responses = analysis.measured().responses;
    let values = AXES
        .map(|axis| show::value(responses, axis, responses.cost(analysis.costs()[position][axis as usize])));
    format!(
        "<title>{}: {}, {}</title>",
        escape(&visible(&analysis.space().show(&analysis.space().setting(position)))),
        values[0],
        values[1]
    )
}

fn star(x: f64, y: f64) -> String {
    let points = (0..10).map(|n| {
        let (radius, angle) =
            (if n % 2 == 0 { 9.0 } else { 4.0 }, std::f64::consts::PI * (f64::from(n) / 5.0 - 0.5));
        format!("{:.1},{:.1}", x + radius * angle.cos(), y + radius * angle.sin())
    });
    points.collect::<Vec<_>>().join(" ")
}

fn tick_text(tick: f64) -> String {
    match tick.abs() {
        size if size >= 1e6 || (size > 0.0 && size < 1e-3) => format!("{tick:e}"),
        // Without the digits that multiples of 0.1 leave behind.
        _ => ((tick * 1e9).round() / 1e9).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::analysis::{ErrorLimits, Question};
    use super::super::choice::Goal;
    use super::super::levels::parse_named_variable;
    use super::super::runs::Run;
    use super::super::space::Space;
    use super::*;

    fn drawing(responses: Responses, title: &str) -> String {
        let space = Space::new(vec![parse_named_variable("threads=1..6").expect("valid")]).expect("valid");
        let runs: Vec<Run> = space
            .settings()
            .map(|setting| {
                let threads = setting.0[0].number().expect("a number");
                let time = 6.0 / threads.min(4.0);
                Run { setting, values: [time, time * (5.0 + threads)] }
            })
            .collect();
        let question = Question {
            formula: None,
            default: space.usual_setting(),
            goal: Goal::EnergyDelay,
            level: 0.95,
            limits: ErrorLimits::default(),
            seed: 1,
        };
        draw(&Analysis::new(space, responses, &runs, question).expect("determined"), title)
    }

    #[test]
    fn has_every_part_once() {
        let svg = drawing(Responses::Totals, "app <&> \"x\"");
        for (part, times) in [
            ("class=\"run\"", 6 + 1),
            ("class=\"predicted\"", 6 + 1),
            ("class=\"zone\"", 1 + 1),
            ("class=\"front\"", 1),
            ("class=\"default\"", 1 + 1),
            ("class=\"chosen\"", 1 + 1),
        ] {
            assert_eq!(svg.matches(part).count(), times, "{part}");
        }
        assert!(svg.contains("app &lt;&amp;&gt; &quot;x&quot;"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    /// Every tag that is opened is closed, in order.
    #[test]
    fn is_well_formed() {
        for responses in [Responses::Totals, Responses::Rates] {
            let svg = drawing(responses, "app");
            let mut open: Vec<&str> = Vec::new();
            for tag in svg.split('<').skip(1) {
                let tag = tag.split('>').next().expect("a tag ends");
                let name = tag.trim_start_matches('/').split([' ', '/']).next().expect("a tag has a name");
                match (tag.starts_with('/'), tag.ends_with('/')) {
                    (true, _) => assert_eq!(open.pop(), Some(name)),
                    (false, false) => open.push(name),
                    (false, true) => {}
                }
            }
            assert!(open.is_empty(), "{open:?}");
        }
    }

    #[test]
    fn scales_have_readable_ticks() {
        let scale = Scale::covering([3.0, 9.0].into_iter(), [0.0, 100.0]);
        assert_eq!(scale.ticks(), [4.0, 6.0, 8.0]);
        let wide = Scale::covering([1.0, 150.0].into_iter(), [0.0, 100.0]);
        assert!(wide.ticks().contains(&50.0));
        let one = Scale::covering([3.0].into_iter(), [0.0, 100.0]);
        assert!(!one.ticks().is_empty() && (one.place(3.0) - 50.0).abs() < 1e-9);
        assert!(!Scale::covering([].into_iter(), [0.0, 1.0]).ticks().is_empty());
    }
    /// From a value of the first end to the last one, in equal steps, or in equal ratios where the range is wide.
    #[test]
    fn scales_by_hand() {
        // 4 to 14, a margin of 0.6 on both sides.
        let scale = Scale::covering([14.0, 4.0, 9.0].into_iter(), [10.0, 234.0]);
        assert_eq!((scale.low, scale.high, scale.logarithmic), (3.4, 14.6, false));
        for (value, place) in [(3.4, 10.0), (14.6, 234.0), (9.0, 122.0), (4.4, 30.0)] {
            assert!((scale.place(value) - place).abs() < 1e-9, "{value}");
        }
        // A hundredth of the highest where the values are nearly one.
        let scale = Scale::covering([99.0, 100.0].into_iter(), [0.0, 1.0]);
        assert_eq!((scale.low, scale.high), (98.0, 101.0));
        let scale = Scale::covering([1e-9, 3e-9].into_iter(), [0.0, 1.0]);
        assert!((scale.low / 0.88e-9 - 1.0).abs() < 1e-9, "{}", scale.low);
        // Four times is no wide range yet.
        assert!(!Scale::covering([2.0, 8.0].into_iter(), [0.0, 1.0]).logarithmic);
        let wide = Scale::covering([2.0, 8.01, f64::NAN, -5.0, 0.0].into_iter(), [100.0, 0.0]);
        assert!(wide.logarithmic);
        assert!((wide.low * 1.15 - 2.0).abs() < 1e-12 && (wide.high / 1.15 - 8.01).abs() < 1e-12);
        let middle = (wide.low * wide.high).sqrt();
        for (value, place) in [(wide.low, 100.0), (wide.high, 0.0), (middle, 50.0)] {
            assert!((wide.place(value) - place).abs() < 1e-9, "{value}");
        }
        // What is far below all that is drawn ends at a thousandth.
        assert_eq!(wide.place(0.0), wide.place(wide.low / 1000.0));
        assert!(wide.place(wide.low / 999.0) < wide.place(0.0));
    }

    #[test]
    fn ticks_by_hand() {
        let ticks = |low, high, logarithmic| Scale { low, high, logarithmic, ends: [0.0, 1.0] }.ticks();
        // At most six steps, of 1, 2, 5 or 10; the ends of the scale are ticks, too.
        assert_eq!(ticks(10.0, 16.0, false), [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]);
        assert_eq!(ticks(9.0, 21.0, false), [10.0, 12.0, 14.0, 16.0, 18.0, 20.0]);
        assert_eq!(ticks(0.0, 13.0, false), [0.0, 5.0, 10.0]);
        assert_eq!(ticks(1.0, 45.0, false), [10.0, 20.0, 30.0, 40.0]);
        assert_eq!(ticks(300.0, 1100.0, false), [400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(ticks(0.15, 22.0, true), [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(ticks(2.0, 20.0, true), [2.0, 5.0, 10.0, 20.0]);
    }

    #[test]
    fn numbers_of_ticks_are_short() {
        let texts = [0.0, 0.30000000000000004, 1234.5, 999_999.0, 1e6, 2e7, 0.001, 0.0005, -0.0005, -3.0]
            .map(tick_text);
        assert_eq!(texts, ["0", "0.3", "1234.5", "999999", "1e6", "2e7", "0.001", "5e-4", "-5e-4", "-3"]);
    }

    /// Five points upwards first, nine from the middle, and five between them at four.
    #[test]
    fn a_star_has_five_points() {
        let star = star(100.0, 50.0);
        let points: Vec<[f64; 2]> = star
            .split(' ')
            .map(|point| {
                let (x, y) = point.split_once(',').expect("two numbers");
                [x, y].map(|number| number.parse().expect("a number"))
            })
            .collect();
        assert_eq!((points.len(), points[0]), (10, [100.0, 41.0]));
        for (at, [x, y]) in points.iter().enumerate() {
            let radius = if at % 2 == 0 { 9.0 } else { 4.0 };
            assert!(((x - 100.0).hypot(y - 50.0) - radius).abs() < 0.1, "{x} {y}");
            // Clockwise from the top in steps of 36 degrees.
            let angle = (x - 100.0).atan2(50.0 - y).to_degrees().rem_euclid(360.0);
            assert!((angle - 36.0 * at as f64).abs() < 1.5, "{angle}");
        }
    }
}
