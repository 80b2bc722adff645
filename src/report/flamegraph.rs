//! Flamegraphs in joules, drawn by inferno.
//!
//! inferno counts in whole numbers, so that the weights are written in nano-, micro- or millijoules,
//! whichever keeps at least five digits of the total.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{self, Direction as Growth, TextTruncateDirection};
use rustc_hash::FxHashSet;

use super::deepest::{DEEPER, Depths, cut};
use super::flamegraph_change::{Changes, PlaceErrors, Sides};
use super::flamegraph_frames::{self, NOTHING, Painted};
use super::folded::WholeNumbers;
use super::frames::FrameClass;
use super::heading::{heading, provenance};
use super::heat::Heat;
use super::tree::{CallTree, Direction};
use super::walk::TreeFrame;
use super::{ReportError, Weight};
use crate::label::Label;
use crate::profile::ProfileMethod;
use crate::units::{Joules, grouped};

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
    let names = tree.names();
    let heat = match options.colors {
        Colors::Kind => None,
        Colors::Watts => Heat::of(tree, &names, THINNEST),
        Colors::Telling if tree.summary.method == ProfileMethod::Measured => {
            Heat::of(tree, &names, THINNEST).filter(Heat::tells)
        }
        Colors::Telling => None,
    };
    let mut palette = PaletteMap::default();
    palette.insert("", EVERYTHING);
    palette.insert(DEEPER, NOTHING);
    let mut colored = FxHashSet::default();
    let digest = |some: &mut SomePaths, path: &[TreeFrame], weight: f64| {
        some.frames.extend(path.iter().filter(|frame| some.known.insert(**frame)));
        some.paths.push((names.join(path), path.len(), weight));
    };
    tree.for_each_own_at_once(tree.total() * THINNEST, digest, |SomePaths { frames, paths, .. }| {
        for frame in frames {
            if colored.insert(frame) {
                color(&mut palette, tree.class(frame), names.of(frame));
            }
        }
        for (path, depth, weight) in paths {
            // What is too little for a unit makes no frame wider; those around it are known by what they call.
            depths.add(depth, weight);
            match whole.next(weight) {
                0 => {}
                number => stacks.push((path, number)),
            }
        }
        Ok::<(), ReportError>(())
    })?;
    let most = depths.most();
    for (stack, _) in &mut stacks {
        if let Cow::Owned(shorter) = cut(stack, most) {
            *stack = shorter;
        }
    }
    flamegraph_frames::sort(&mut stacks);
    let painted = heat.as_ref().map(|heat| Painted::by_watts(heat, &stacks));
    let lines: Vec<String> = stacks.iter().map(|(stack, number)| format!("{stack} {number}")).collect();
    let folded = tree.folded_share().map(|share| format!("; {:.1} % folded", share * 100.0));
    let deeper = most.map(|most| format!("; {DEEPER}: beyond {most} frames"));
    let subtitle = format!(
        "{}{}{}; {}",
        provenance(&tree.summary, tree.weight),
        folded.unwrap_or_default(),
        deeper.unwrap_or_default(),
        legend(&heat)
    );
    let look = Look { unit: &unit, options, subtitle, palette: Some(palette), painted: painted.as_ref() };
    draw(tree, look, &lines, out)
}

/// Some paths in a row.
#[derive(Default)]
struct SomePaths {
    /// Their frames, each where it comes first.
    frames: Vec<TreeFrame>,
    known: FxHashSet<TreeFrame>,
    /// Their names, how many frames they have, and what they weigh.
    paths: Vec<(String, usize, f64)>,
}

/// Draws what `newer` spends more (red) or less (blue) than `older`, each place by its own code; what it spends more or less
/// with all that it called is said beside that. Widths are the newer one's.
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
    let mut paths: BTreeMap<String, Sides> = BTreeMap::new();
    let mut depths = [Depths::default(), Depths::default()];
    for (side, (tree, scale)) in [(older, scale), (newer, 1.0)].into_iter().enumerate() {
        let per_weight = unit.per_weight * scale;
        let mut whole = WholeNumbers::new(per_weight);
        let (names, errors) = (tree.names(), PlaceErrors::of(tree));
        tree.for_each_own(tree.total() * THINNEST_OF_DIFFERENCE, |path, weight| {
            depths[side].add(path.len(), weight);
            let mut here = errors.side(side, path, weight, per_weight);
            here.numbers[side] = whole.next(weight);
            paths.entry(names.join(path)).or_default().add(&here);
            Ok::<(), ReportError>(())
        })?;
    }
    // As deep as either of them.
    let [older_most, newer_most] = depths.map(|depths| depths.most().unwrap_or(depths.deepest()));
    let most = Some(older_most.max(newer_most));
    let mut drawn: BTreeMap<Cow<'_, str>, Sides> = BTreeMap::new();
    for (path, sides) in &paths {
        drawn.entry(cut(path, most)).or_default().add(sides);
    }
    let mut drawn: Vec<(Cow<'_, str>, Sides)> = drawn.into_iter().collect();
    drawn.sort_by(|(a, _), (b, _)| flamegraph_frames::by_names(a, b));
    let total = (older.total() * scale).max(newer.total()) * unit.per_weight;
    let per_joule = (newer.weight == Weight::Joules).then_some(unit.per_weight);
    let changes = Changes::of(&drawn, total, per_joule);
    let stacks = drawn.iter().map(|(path, sides)| (&**path, sides.numbers[1]));
    let painted =
        Painted::by_path(stacks, |path| changes.paint(path)).with_everything(changes.said_of_everything());
    let lines: Vec<String> = drawn
        .iter()
        .map(|(path, Sides { numbers: [older, newer], .. })| format!("{path} {older} {newer}"))
        .collect();
    let (what, is) =
        (newer.weight.name(), if options.normalize { " after scaling to the same total" } else { "" });
    let how = [older, newer].map(|tree| provenance(&tree.summary, tree.weight));
    let how = match how {
        [before, now] if before == now => now,
        [before, now] => format!("before {before}, now {now}"),
    };
    let subtitle = format!(
        "red: more {what} in the frame itself than before{is}, blue: less, grey: the same, or within two standard errors; before {}, now {}; {how}",
        said(older.total(), newer.weight),
        said(newer.total(), newer.weight),
    );
    let look = Look { unit: &unit, options, subtitle, palette: None, painted: Some(&painted) };
    draw(newer, look, &lines, out)
}

/// How one picture looks.
struct Look<'p> {
    unit: &'p Unit,
    options: &'p FlamegraphOptions,
    subtitle: String,
    /// The colors of names, where places have none of their own.
    palette: Option<PaletteMap>,
    /// What colors places, whatever their names are.
    painted: Option<&'p Painted>,
}

/// Draws sorted lines of folded stacks.
fn draw(
    tree: &CallTree<'_>,
    look: Look<'_>,
    lines: &[String],
    mut out: impl Write,
) -> Result<(), ReportError> {
    let Look { unit, options, subtitle, mut palette, painted } = look;
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
    // Lines are taken as they come, but from the last to the first.
    look.flame_chart = true;
    let row_height = look.frame_height;
    flamegraph::from_lines(&mut look, lines.iter().rev().map(String::as_str), &mut drawn)?;
    let drawn = String::from_utf8_lossy(&drawn);
    out.write_all(flamegraph_frames::finish(&drawn, row_height, painted).as_bytes())?;
    Ok(())
}

/// A weight as it is said everywhere else.
fn said(weight: f64, of: Weight) -> String {
    match of {
        Weight::Joules => Joules::from_joules(weight).to_string(),
        Weight::Samples => format!("{} samples", grouped(weight.round() as u64)),
        Weight::Count => format!("{} events", grouped(weight.round() as u64)),
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
fn legend(heat: &Option<Heat<'_>>) -> String {
    match heat {
        Some(heat) => {
            let ((low, high), of) = (heat.scale(), heat.of);
            format!(
                "power of {of}: yellow {low}, red {high}; grey: nothing of its own, or too little to tell"
            )
        }
        None => COLORS.to_owned(),
    }
}

/// The color of inferno's frame below all others.
const EVERYTHING: Color = Color { r: 225, g: 225, b: 200 };

const COLORS: &str =
    "red: native, yellow: C++ and Rust, aqua: inlined, green: compiled at run time, orange: kernel";

/// Gives a name its color: the kind of code decides the hue, the name the shade, so that a function
/// looks the same in every picture.
fn color(palette: &mut PaletteMap, class: Option<FrameClass>, name: &str) {
    if palette.get(name).is_some() {
        return;
    }
    // FNV-1a: https://datatracker.ietf.org/doc/html/draft-eastlake-fnv
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let shade = |from: u8, range: u8| from + ((hash >> 32) % (u64::from(range) + 1)) as u8;
    let (r, g, b) = match class {
        // No code: processes, threads, parts of the balance.
        None => (shade(185, 20), shade(185, 20), shade(185, 20)),
        Some(FrameClass::Kernel | FrameClass::InlinedKernel) => (shade(205, 40), shade(120, 40), 0),
        Some(FrameClass::Inlined) => (shade(70, 40), shade(180, 40), shade(180, 40)),
        Some(FrameClass::Jit) => (shade(70, 50), shade(190, 50), shade(70, 50)),
        Some(FrameClass::CppOrRust) => (shade(195, 40), shade(195, 40), shade(50, 20)),
        Some(FrameClass::Native) => (shade(215, 40), shade(80, 60), shade(80, 60)),
    };
    palette.insert(name, Color { r, g, b });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;
    use crate::hardware::Method;
    use crate::report::fixture::{Fixture, Spent, sample_profile};
    use crate::report::laws::{any_profile, any_root};
    use crate::report::tree::TreeOptions;
    use crate::units::Nanoseconds;

    #[test]
    fn what_both_sides_took_is_said_in_units_that_are_read() {
        assert_eq!(said(7.590_37, Weight::Joules), "7.590 J");
        assert_eq!(said(0.012, Weight::Joules), "12.00 mJ");
        assert_eq!(said(7590.0, Weight::Samples), "7,590 samples");
    }

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

    /// The frames of a plain picture: the names on the way to each, what its title says of it, and its color.
    fn frames(svg: &str) -> Vec<(String, String, String)> {
        let frame = Regex::new(
            r#"<title>([^<]*) \(([^()]*)\)</title>\s*<rect x="[^"]*" y="([0-9]+)" [^>]*fill="([^"]*)" fg:x="([0-9]+)" fg:w="([0-9]+)""#,
        )
        .expect("a pattern");
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let found: Vec<_> = frame.captures_iter(svg).map(|found| found.extract::<6>().1).collect();
        let bottom =
            found.iter().find(|found| found[0] == "all").map(|found| number(found[2])).expect("it is there");
        let row = |frame: &[&str; 6]| number(frame[2]).abs_diff(bottom);
        let holds = |outer: &[&str; 6], inner: &[&str; 6]| {
            let edges = |frame: &[&str; 6]| (number(frame[4]), number(frame[4]) + number(frame[5]));
            let ((from, to), (inner_from, inner_to)) = (edges(outer), edges(inner));
            row(outer) <= row(inner) && from <= inner_from && inner_to <= to
        };
        let path = |of: &[&str; 6]| {
            let mut outer: Vec<_> = found.iter().filter(|outer| row(outer) > 0 && holds(outer, of)).collect();
            outer.sort_by_key(|frame| row(frame));
            outer.iter().map(|frame| frame[0]).collect::<Vec<_>>().join(";")
        };
        found.iter().map(|frame| (path(frame), frame[1].to_owned(), frame[3].to_owned())).collect()
    }

    fn drawn(tree: &CallTree<'_>) -> String {
        let look = FlamegraphOptions { colors: Colors::Watts, plain: true, ..FlamegraphOptions::default() };
        let mut out = Vec::new();
        write(tree, &look, &mut out).expect("a vector takes all");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn one_function_under_two_callers_has_the_color_of_each_place() {
        let mut fixture = Fixture::default();
        fixture.domain("package-0", None, Method::Measured, "power PMU", [1.0, 0.0, 0.0, 0.0]);
        fixture.event("cpu-clock", 0);
        fixture.thread(1, 1, "app", "app");
        fixture.cpu(0, 0);
        let mut cell = |stack: &str, millis, joules| {
            fixture.cell(0, 0, 0, stack, Spent { samples: millis, millis, joules: &[joules] });
        };
        cell("/bin/app`main  /bin/app`lean  /bin/app`turn", 1000, 4.7);
        cell("/bin/app`main  /bin/app`hungry  /bin/app`turn", 500, 5.4);
        // Of two addresses of one name, which are one frame.
        cell("/bin/app`main  /bin/app`hungry  /lib/other`turn", 500, 5.4);
        cell("/bin/app`main  /bin/app`lean", 1000, 6.0);
        let (profile, symbols) = fixture.finish();
        let of = |direction| {
            let tree =
                CallTree::new(&profile, &symbols, &TreeOptions { direction, ..TreeOptions::default() });
            frames(&drawn(&tree.expect("a tree")))
        };
        let told = |frames: &[(String, String, String)], path: &str| {
            let found = frames.iter().find(|(of, ..)| of == path);
            let (_, title, color) = found.unwrap_or_else(|| panic!("{path} in {frames:?}"));
            (title.clone(), color.clone())
        };
        let frames = of(Direction::FromOutermost);
        let yellow = "rgb(250,230,140)".to_owned();
        let red = "rgb(215,40,30)".to_owned();
        assert_eq!(told(&frames, "main;lean;turn"), ("4.700 J, 21.86%, 4.700 W".to_owned(), yellow.clone()));
        assert_eq!(told(&frames, "main;hungry;turn"), ("10.80 J, 50.23%, 10.80 W".to_owned(), red.clone()));
        // 1.3 of the 6.1 W between them.
        assert_eq!(
            told(&frames, "main;lean"),
            ("10.70 J, 49.77%, 6.000 W".to_owned(), "rgb(243,190,117)".to_owned())
        );
        assert_eq!(told(&frames, "main").1, "rgb(200,200,200)", "nothing of its own");
        assert_eq!(told(&frames, "").1, "rgb(225,225,200)", "everything");
        // From the innermost on, the frame of a caller says what the function drew when that called it.
        let frames = of(Direction::FromInnermost);
        assert_eq!(told(&frames, "turn;lean"), ("4.700 J, 21.86%, 4.700 W".to_owned(), yellow));
        assert_eq!(told(&frames, "turn;hungry;main"), ("10.80 J, 50.23%, 10.80 W".to_owned(), red));
        assert_eq!(told(&frames, "turn").0, "15.50 J, 72.09%, 7.750 W");
    }

    proptest! {
        /// Every frame of every picture says the power of the stacks that end with exactly its names.
        #[test]
        fn frames_say_the_power_of_their_places((profile, symbols) in any_profile(), root in any_root()) {
            let tree = CallTree::new(&profile, &symbols, &TreeOptions { root, ..TreeOptions::default() });
            let tree = tree.expect("there are samples");
            let names = tree.names();
            // With what tells kernel and inlined code apart, which titles do not say.
            let mut known: BTreeMap<String, BTreeMap<String, (Joules, Nanoseconds)>> = BTreeMap::new();
            let bare = |path: &str| path.replace("_[k]", "").replace("_[i]", "");
            for (_, totals, path) in tree.cells(&profile) {
                let frames = tree.frames_of(&profile, path);
                for depth in 1..=frames.len() {
                    let path = names.join(&frames[..depth]);
                    let spent = known.entry(bare(&path)).or_default().entry(path).or_default();
                    if depth == frames.len() {
                        spent.0 += totals.joules;
                        spent.1 += totals.time;
                    }
                }
            }
            let frames = frames(&drawn(&tree));
            prop_assert!(frames.len() > 1);
            for (path, title, _) in frames.iter().filter(|(path, ..)| !path.is_empty()) {
                let said = title.split(", ").nth(2).map(str::to_owned);
                let mut possible = known[path].values().map(|(joules, time)| {
                    (*time > Nanoseconds::ZERO).then(|| (*joules / *time).to_string())
                });
                prop_assert!(possible.any(|watts| watts == said), "{} {}", path, title);
            }
        }
    }
}
