//! Flamegraphs in joules, drawn by inferno.
//!
//! inferno counts in whole numbers, so that the weights are written in nano-, micro- or millijoules,
//! whichever keeps at least five digits of the total.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::LazyLock;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{self, Direction as Growth, TextTruncateDirection};
use regex::{Captures, Regex};
use rustc_hash::{FxHashMap, FxHashSet};

use super::deepest::{DEEPER, Depths, cut};
use super::folded::WholeNumbers;
use super::heading::{heading, provenance};
use super::scale::grouped;
use super::tree::{CallTree, Direction};
use super::walk::TreeFrame;
use super::{ReportError, Weight};
use crate::label::Label;
use crate::profile::ProfileMethod;
use crate::units::{Joules, Watts};

/// Frames narrower than this share of the picture are not drawn: a tenth of a pixel.
const THINNEST: f64 = 1e-4;
/// In a differential flamegraph both sides are cut finer, so that both cut the same places.
const THINNEST_OF_DIFFERENCE: f64 = 1e-5;

/// What colors tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colors {
    /// Watts, where they are measured and code differs in them; else the kind of code.
    #[default]
    Telling,
    /// The kind of code.
    Kind,
    /// What a frame's own code draws while it runs, where that is known.
    Watts,
}

/// How a flamegraph looks.
#[derive(Debug, Clone, Default)]
pub struct FlamegraphOptions {
    /// What stands above it; by default what was measured.
    pub title: Option<String>,
    /// In a differential flamegraph: scale the older profile to the newer one's total, to compare
    /// shares instead of amounts.
    pub normalize: bool,
    /// What frames' colors tell.
    pub colors: Colors,
    /// Pixels from left to right; by default inferno's.
    pub width: Option<usize>,
    /// Readable XML without script, for tests and for what reads it back.
    pub plain: bool,
}

/// Draws a call tree as an SVG picture.
///
/// # Errors
/// If writing fails.
pub fn write(tree: &CallTree<'_>, options: &FlamegraphOptions, out: impl Write) -> Result<(), ReportError> {
    let unit = Unit::of(tree);
    let mut whole = WholeNumbers::new(unit.per_weight);
    let (mut stacks, mut depths) = (Vec::new(), Depths::default());
    let mut palette = PaletteMap::default();
    // inferno's frame below all others.
    palette.insert("", Color { r: 225, g: 225, b: 200 });
    let names = tree.names();
    let mut colored = FxHashSet::default();
    let heat = match options.colors {
        Colors::Kind => None,
        Colors::Watts => Heat::of(tree),
        Colors::Telling if tree.summary.method == ProfileMethod::Measured => {
            Heat::of(tree).filter(Heat::tells)
        }
        Colors::Telling => None,
    };
    tree.for_each_own(tree.total() * THINNEST, |path, weight| {
        for &frame in path {
            if colored.insert(frame) {
                match &heat {
                    Some(heat) => heat.color(&mut palette, frame, names.of(frame)),
                    None => color(&mut palette, frame, names.of(frame)),
                }
            }
        }
        // What is too little for a unit makes no frame wider; those around it are known by what they call.
        depths.add(path.len(), weight);
        match whole.next(weight) {
            0 => {}
            number => stacks.push((names.join(path), number)),
        }
        Ok::<(), ReportError>(())
    })?;
    let most = depths.most();
    palette.insert(DEEPER, NOTHING);
    let lines: Vec<String> =
        stacks.iter().map(|(stack, number)| format!("{} {number}", cut(stack, most))).collect();
    let folded = tree.folded_share().map(|share| format!("; {:.1} % folded", share * 100.0));
    let deeper = most.map(|most| format!("; {DEEPER}: beyond {most} frames"));
    let subtitle = format!(
        "{}{}{}; {}",
        provenance(&tree.summary, tree.weight),
        folded.unwrap_or_default(),
        deeper.unwrap_or_default(),
        legend(&heat)
    );
    draw(tree, &unit, options, subtitle, Some(palette), &lines, out)
}

/// Draws what `newer` spends more (red) or less (blue) than `older`. Widths are the newer one's.
///
/// # Errors
/// If one is weighed by joules and the other is not, or writing fails.
pub fn write_difference(
    older: &CallTree<'_>,
    newer: &CallTree<'_>,
    options: &FlamegraphOptions,
    out: impl Write,
) -> Result<(), ReportError> {
    if older.weight != newer.weight {
        return Err(ReportError::NotComparable { older: older.weight.name(), newer: newer.weight.name() });
    }
    let unit = Unit::of(newer);
    let scale = if options.normalize { newer.total() / older.total() } else { 1.0 };
    // Sorted by path, so that the picture is always the same.
    let mut paths: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let mut depths = [Depths::default(), Depths::default()];
    for (side, (tree, scale)) in [(older, scale), (newer, 1.0)].into_iter().enumerate() {
        let mut whole = WholeNumbers::new(unit.per_weight * scale);
        let names = tree.names();
        tree.for_each_own(tree.total() * THINNEST_OF_DIFFERENCE, |path, weight| {
            depths[side].add(path.len(), weight);
            paths.entry(names.join(path)).or_default()[side] += whole.next(weight);
            Ok::<(), ReportError>(())
        })?;
    }
    // As deep as either of them.
    let [older_most, newer_most] = depths.map(|depths| depths.most().unwrap_or(depths.deepest()));
    let most = Some(older_most.max(newer_most));
    let mut drawn: BTreeMap<Cow<'_, str>, [u64; 2]> = BTreeMap::new();
    for (path, numbers) in &paths {
        let sums = drawn.entry(cut(path, most)).or_default();
        sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }
    let lines: Vec<String> =
        drawn.into_iter().map(|(path, [older, newer])| format!("{path} {older} {newer}")).collect();
    let (unit_name, is) =
        (unit.name, if options.normalize { " after scaling to the same total" } else { "" });
    let how = [older, newer].map(|tree| provenance(&tree.summary, tree.weight));
    let how = match how {
        [before, now] if before == now => now,
        [before, now] => format!("before {before}, now {now}"),
    };
    let subtitle = format!(
        "red: more {unit_name} in the frame itself than before{is}, blue: less; before {} {unit_name}, now {} {unit_name}; {how}",
        grouped((older.total() * unit.per_weight).round() as u64),
        grouped((newer.total() * unit.per_weight).round() as u64),
    );
    draw(newer, &unit, options, subtitle, None, &lines, out)
}

fn draw(
    tree: &CallTree<'_>,
    unit: &Unit,
    options: &FlamegraphOptions,
    subtitle: String,
    mut palette: Option<PaletteMap>,
    lines: &[String],
    mut out: impl Write,
) -> Result<(), ReportError> {
    let mut look = flamegraph::Options::default();
    look.title = match &options.title {
        Some(title) => Label::new(title).to_string(),
        None => heading(tree),
    };
    look.subtitle = Some(subtitle);
    look.count_name = unit.name.to_owned();
    // Yellow is the color of the lowest power, and of some code.
    look.bgcolors = Some(BackgroundColor::Flat(Color { r: 255, g: 255, b: 255 }));
    look.deterministic = true;
    look.palette_map = palette.as_mut();
    look.min_width = THINNEST * 100.0;
    look.no_javascript = options.plain;
    look.pretty_xml = options.plain;
    look.image_width = options.width;
    if tree.direction() == Direction::FromInnermost {
        look.direction = Growth::Inverted;
    }
    // As other tools do: names begin with what tells them apart for a reader.
    look.text_truncate_direction = TextTruncateDirection::Right;
    let mut drawn = Vec::new();
    flamegraph::from_lines(&mut look, lines.iter().map(String::as_str), &mut drawn)?;
    out.write_all(with_readable_joules(&String::from_utf8_lossy(&drawn)).as_bytes())?;
    Ok(())
}

/// The titles of frames with joules as people read them: inferno counts in one unit for all, without a point.
fn with_readable_joules(svg: &str) -> Cow<'_, str> {
    static COUNT: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?<before><title>[^<]* \()(?<count>[0-9,]+) (?<unit>[nµm]J)(?<behind>, [^()<]*\)</title>)",
        )
        .ok()
    });
    let readable = |found: &Captures<'_>| {
        let per_joule = match &found["unit"] {
            "mJ" => 1e3,
            "µJ" => 1e6,
            _ => 1e9,
        };
        let count: f64 = found["count"].replace(',', "").parse().unwrap_or_default();
        format!("{}{}{}", &found["before"], Joules::from_joules(count / per_joule), &found["behind"])
    };
    match COUNT.as_ref() {
        Some(count) => count.replace_all(svg, readable),
        None => Cow::Borrowed(svg),
    }
}

/// What inferno counts in.
struct Unit {
    name: &'static str,
    per_weight: f64,
}

impl Unit {
    fn of(tree: &CallTree<'_>) -> Self {
        let (name, per_weight) = match (tree.weight, tree.total()) {
            (Weight::Samples, _) => ("samples", 1.0),
            (Weight::Count, _) => ("events", 1.0),
            (Weight::Joules, joules) if joules >= 10.0 => ("mJ", 1e3),
            (Weight::Joules, joules) if joules >= 0.01 => ("µJ", 1e6),
            (Weight::Joules, _) => ("nJ", 1e9),
        };
        Self { name, per_weight }
    }
}

/// What the colors mean.
fn legend(heat: &Option<Heat>) -> String {
    match heat {
        Some(heat) => {
            let (low, high) = (heat.lowest, heat.highest);
            format!("power of a frame's own code: yellow {low}, red {high}; grey: nothing of its own")
        }
        None => COLORS.to_owned(),
    }
}

/// The color of frames that have no power of their own.
const NOTHING: Color = Color { r: 200, g: 200, b: 200 };

/// Frames by the power of their own code.
struct Heat {
    /// Joules and watts of frames' own code.
    watts: FxHashMap<TreeFrame, (Joules, Watts)>,
    lowest: Watts,
    highest: Watts,
}

/// From so many times the lowest power on, the highest is another.
const LEAST_TELLING: f64 = 1.1;
/// This share of all joules at each end of the scale is of code that ran too shortly to tell its power.
const BEYOND_THE_SCALE: f64 = 0.005;

/// The power at which more joules than those have been passed.
fn edge<'w>(mut order: impl Iterator<Item = &'w (Joules, Watts)>, all: Joules) -> Option<Watts> {
    let mut sum = Joules::ZERO;
    let found = order.find(|(joules, _)| {
        sum += *joules;
        sum > all * BEYOND_THE_SCALE
    });
    found.map(|(_, watts)| *watts)
}

impl Heat {
    /// `None` where no power is known of any code.
    fn of(tree: &CallTree<'_>) -> Option<Self> {
        let watts = tree.own_watts();
        let mut sorted: Vec<(Joules, Watts)> = watts.values().copied().collect();
        sorted.sort_by(|(_, a), (_, b)| a.as_watts().total_cmp(&b.as_watts()));
        let all: Joules = sorted.iter().map(|(joules, _)| *joules).sum();
        let lowest = edge(sorted.iter(), all)?;
        let highest = edge(sorted.iter().rev(), all)?;
        Some(Self { watts, lowest, highest })
    }

    /// Code differs so much in power that it is to be seen at first sight.
    fn tells(&self) -> bool {
        self.highest > self.lowest * LEAST_TELLING
    }

    fn color(&self, palette: &mut PaletteMap, frame: TreeFrame, name: &str) {
        let known = self.watts.get(&frame).map(|(_, watts)| self.shade(*watts));
        // Of several frames of one name the first that has power of its own.
        if known.is_some() || palette.get(name).is_none() {
            palette.insert(name, known.unwrap_or(NOTHING));
        }
    }

    /// From pale yellow to red, through orange.
    fn shade(&self, watts: Watts) -> Color {
        let range = (self.highest - self.lowest).as_watts();
        // What adding up in another order leaves is no difference.
        let differs = range > 1e-6 * self.highest.as_watts();
        let heat = if differs { ((watts - self.lowest).as_watts() / range).clamp(0.0, 1.0) } else { 0.5 };
        let between = |cold: f64, hot: f64| (cold + (hot - cold) * heat).round() as u8;
        Color { r: between(250.0, 215.0), g: between(230.0, 40.0), b: between(140.0, 30.0) }
    }
}

const COLORS: &str =
    "red: native, yellow: C++ and Rust, aqua: inlined, green: compiled at run time, orange: kernel";

/// Gives a name its color: the kind of code decides the hue, the name the shade, so that a function
/// looks the same in every picture.
fn color(palette: &mut PaletteMap, frame: TreeFrame, name: &str) {
    if palette.get(name).is_some() {
        return;
    }
    // FNV-1a: https://datatracker.ietf.org/doc/html/draft-eastlake-fnv
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let shade = |from: u8, range: u8| from + ((hash >> 32) % (u64::from(range) + 1)) as u8;
    let (r, g, b) = match name {
        // No code: processes, threads, parts of the balance.
        _ if matches!(frame, TreeFrame::Above(_)) => (shade(185, 20), shade(185, 20), shade(185, 20)),
        name if name.ends_with("_[k]") => (shade(205, 40), shade(120, 40), 0),
        name if name.ends_with("_[i]") => (shade(70, 40), shade(180, 40), shade(180, 40)),
        name if name.ends_with("_[j]") => (shade(70, 50), shade(190, 50), shade(70, 50)),
        name if name.contains("::") => (shade(195, 40), shade(195, 40), shade(50, 20)),
        _ => (shade(215, 40), shade(80, 60), shade(80, 60)),
    };
    palette.insert(name, Color { r, g, b });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::sample_profile;
    use crate::report::tree::TreeOptions;

    #[test]
    fn code_of_more_power_is_redder() {
        let (profile, symbols) = sample_profile();
        let tree = CallTree::new(&profile, &symbols, &TreeOptions::default()).expect("a tree");
        let look = FlamegraphOptions { colors: Colors::Watts, plain: true, ..FlamegraphOptions::default() };
        let mut out = Vec::new();
        write(&tree, &look, &mut out).expect("a vector takes all");
        let svg = String::from_utf8(out).expect("text");
        let green = |function: &str| -> u32 {
            let frame = &svg[svg.find(&format!("<title>{function} (")).expect("it is drawn")..];
            let fill = frame.split_once("fill=\"rgb(").expect("it has a color").1;
            fill.split(',').nth(1).expect("three numbers").parse().expect("a number")
        };
        // mix drew 22.5 W, its own and of the other event; the kernel 50 W in 10 ms; code of app.js 6.6 W.
        assert_eq!((green("ksys_write"), green("LazyCompile:~sum app.js:3")), (40, 230));
        assert!((41..230).contains(&green("mix")), "{}", green("mix"));
        assert_eq!(green("main"), 200, "nothing of its own");
        assert!(svg.contains("yellow 6.579 W, red 50.00 W"), "{svg}");
    }

    #[test]
    fn titles_have_joules_as_people_read_them() {
        let title = |text: &str| with_readable_joules(&format!("<title>{text}</title>")).into_owned();
        assert_eq!(title("f(int) (12,345 mJ, 1.50%)"), "<title>f(int) (12.35 J, 1.50%)</title>");
        assert_eq!(title("g (7 µJ, 0.01%; +1.00%)"), "<title>g (7.000 µJ, 0.01%; +1.00%)</title>");
        for as_it_is in ["f (3 mJ, x) (12 samples, 1.50%)", "(12,345 mJ)"] {
            assert_eq!(title(as_it_is), format!("<title>{as_it_is}</title>"));
        }
    }
}
