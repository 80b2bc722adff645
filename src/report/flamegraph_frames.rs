//! The frames of a picture by inferno, after it has drawn them: it counts in whole numbers of one unit, and colors frames by
//! their names alone. Here they get joules as people read them, the watts and colors of their places, and names that lose the
//! types in brackets before their ends.

use std::borrow::Cow;
use std::cmp::Ordering;

use inferno::flamegraph::color::Color;
use quick_xml::escape::{escape, unescape};
use rustc_hash::FxHashMap;

use super::drawn_frame::{DrawnFrame, frames, pieces};
use super::heat::Heat;
use crate::label::Label;
use crate::threads::Threads;
use crate::units::{Joules, Watts};

/// The color of frames that have no power of their own.
pub(super) const NOTHING: Color = Color { r: 200, g: 200, b: 200 };

/// Folded stacks, each with its number.
pub(super) type Stacks = Vec<(String, u64)>;

/// In the order in which they are drawn from left to right: by names, one after the other, so that each place is one frame.
pub(super) fn sort(stacks: &mut Stacks) {
    stacks.sort_by(|(a, _), (b, _)| by_names(a, b));
}

/// The order of two folded stacks. As texts, `a(int)` would stand between `a` and `a;b`, and `a` be drawn twice.
pub(super) fn by_names(a: &str, b: &str) -> Ordering {
    /// Neighbours have most of their paths in common.
    const AT_ONCE: usize = 32;
    let same = a.as_bytes().chunks_exact(AT_ONCE).zip(b.as_bytes().chunks_exact(AT_ONCE));
    let same = AT_ONCE * same.take_while(|(a, b)| a == b).count();
    // A path's end is before what follows it, and a name's end before what a longer name goes on with.
    let [a, b] = [a, b].map(|path| path.as_bytes()[same..].iter().map(|byte| (*byte != b';', *byte)));
    a.cmp(b)
}

/// What a frame looks like, and what is said of it behind what inferno says.
#[derive(Debug, Clone)]
pub(super) struct Paint {
    /// Without one it is that of [`NOTHING`].
    pub color: Option<Color>,
    pub said: String,
}

/// The places of frames, and what is known of each.
#[derive(Default)]
pub(super) struct Painted {
    /// By row (0 is of the frame of everything) and the numbers to the left.
    frames: FxHashMap<(usize, u64), Paint>,
    /// What is said of everything.
    everything: Option<String>,
}

impl Painted {
    /// Of sorted stacks, each place by the watts of its own code.
    pub fn by_watts(heat: &Heat<'_>, stacks: &Stacks) -> Self {
        let stacks = stacks.iter().map(|(stack, number)| (stack.as_str(), *number));
        Self::new(stacks, heat.all(), |within, _, name| {
            let place = heat.place(within, name);
            let paint = |watts: Watts| Paint { color: Some(heat.shade(watts)), said: watts.to_string() };
            (place, heat.watts(place).map(paint))
        })
    }

    /// Of sorted stacks, each place as it is told of its path.
    pub fn by_path<'s>(
        stacks: impl IntoIterator<Item = (&'s str, u64)>,
        paint: impl Fn(&str) -> Option<Paint>,
    ) -> Self {
        Self::new(stacks, (), |(), path, _| ((), paint(path)))
    }

    /// With what is said of the frame of everything.
    pub fn with_everything(self, said: Option<String>) -> Self {
        Self { everything: said, ..self }
    }

    /// `enter` is told what it said of the place around a place, and the place's path and name.
    fn new<'s, Place: Copy>(
        stacks: impl IntoIterator<Item = (&'s str, u64)>,
        all: Place,
        enter: impl Fn(Place, &str, &str) -> (Place, Option<Paint>),
    ) -> Self {
        let mut painted = Self::default();
        // The names on the way to the stack before, and their places.
        let mut open: Vec<(&str, Place)> = Vec::new();
        let mut left = 0;
        for (stack, number) in stacks {
            let same = open.iter().zip(stack.split(';')).take_while(|((open, _), name)| open == name).count();
            open.truncate(same);
            let mut end = open.iter().map(|(name, _)| name.len() + 1).sum::<usize>();
            for name in stack.split(';').skip(same) {
                end += name.len();
                let within = open.last().map_or(all, |(_, place)| *place);
                let (place, paint) = enter(within, &stack[..end], name);
                end += 1;
                open.push((name, place));
                match paint {
                    Some(paint) => painted.frames.insert((open.len(), left), paint),
                    // What is as wide as nothing, and begins here too, is not drawn.
                    None => painted.frames.remove(&(open.len(), left)),
                };
            }
            left += number;
        }
        painted
    }
}

/// So many bytes of a picture are worth handing to another thread. Those of tests are small.
const PIECE: usize = if cfg!(test) { 100 } else { 1 << 16 };

/// The picture with joules as people read them, and with what is known of its places. `row_height` is in pixels.
pub(super) fn finish(svg: &str, row_height: usize, painted: Option<&Painted>) -> String {
    let pixel_row = |found: &DrawnFrame<'_>| found.y.parse().unwrap_or(0usize);
    // That of everything has its share as a whole number.
    let is_everything = |found: &DrawnFrame<'_>| found.behind.starts_with(EVERYTHING);
    let mut drawn = frames(svg).filter_map(|(_, found)| found);
    let first_row = drawn.find(is_everything).map_or(0, |found| pixel_row(&found));
    let pieces = pieces(svg, PIECE);
    let finish = |at: usize| {
        let mut finished = String::with_capacity(pieces[at].len() + pieces[at].len() / 8);
        for (before, found) in frames(pieces[at]) {
            finished.push_str(before);
            if let Some(found) = found {
                let row = pixel_row(&found).abs_diff(first_row) / row_height;
                push_frame(&mut finished, &found, row, painted);
            }
        }
        finished
    };
    let svg = Threads::new(None).map(pieces.len(), finish).concat();
    // When it is resized or zoomed, the picture's own script writes names anew.
    match svg.contains(NAME_IN_SCRIPT) {
        true => {
            svg.replace(NAME_IN_SCRIPT, "short_name(e, w)").replacen(BEFORE_SCRIPT, SHORT_NAME_IN_SCRIPT, 1)
        }
        false => svg,
    }
}

/// Writes a frame of a row.
fn push_frame(svg: &mut String, found: &DrawnFrame<'_>, row: usize, painted: Option<&Painted>) {
    let left = found.left.parse().unwrap_or(u64::MAX);
    let (fill, said) = match painted {
        Some(painted) if row > 0 => painted.at(row, left),
        Some(painted) => (found.fill.to_owned(), painted.everything.as_deref()),
        None => (found.fill.to_owned(), None),
    };
    // Behind the share inferno says how much more or less a frame has itself, as if it were of all in it.
    let share = match painted {
        Some(_) => found.behind.split(';').next().unwrap_or_default(),
        None => found.behind,
    };
    let DrawnFrame { name, space, place, text, .. } = found;
    let count = readable(found.count, found.unit);
    let said = said.map(|said| format!(", {said}")).unwrap_or_default();
    let label = label(name, found.label);
    for part in [
        "<title>",
        name,
        " (",
        &count,
        ", ",
        share,
        &said,
        ")</title>",
        space,
        "<rect ",
        place,
        " fill=\"",
        &fill,
        "\" fg:x=\"",
        found.left,
        "\"",
        text,
        &label,
        "</text>",
    ] {
        svg.push_str(part);
    }
}

/// How inferno's script takes a frame's name, to cut it to a width `w` in pixels.
const NAME_IN_SCRIPT: &str = r#"find_child(e, "title").textContent.replace(/\([^(]*\)$/,"")"#;
/// A place between its functions. The script stands before all names.
const BEFORE_SCRIPT: &str = "function update_text(e) {";
/// As [`Label::without_types`] does it, as far as patterns can: the innermost brackets first, and never `<T as Trait>` at the
/// beginning. Arrows are no brackets.
const SHORT_NAME_IN_SCRIPT: &str = r#"function short_name(e, w) {
    var letter = known_font_width || fontsize * fontwidth;
    var txt = find_child(e, "title").textContent.replace(/ \([^(]*\)$/, "").replace(/->/g, "\u0002");
    var shown = function(name) { return name.replace(/\u0001/g, "<\u2026>").replace(/\u0002/g, "->"); };
    while (shown(txt).length * letter > w) {
        var shorter = txt.replace(/(?!^)<[^<>]*>/g, "\u0001");
        if (shorter === txt) break;
        txt = shorter;
    }
    return shown(txt);
}
function update_text(e) {"#;

/// What stands in a frame whose name inferno has cut, escaped as that is.
fn label<'l>(name: &str, label: &'l str) -> Cow<'l, str> {
    let Ok(cut) = unescape(label.trim()) else { return Cow::Borrowed(label) };
    let Ok(name) = unescape(name) else { return Cow::Borrowed(label) };
    if !cut.ends_with(CUT) || *cut == *name {
        return Cow::Borrowed(label);
    }
    let letters = cut.chars().count();
    let name = Label::new(&name);
    // inferno leaves a letter's room behind whole names.
    let shorter = name.without_types(letters - 1);
    if shorter.chars().count() < letters {
        return Cow::Owned(escape(shorter.as_ref()).into_owned());
    }
    let kept: String = shorter.chars().take(letters - CUT.len()).chain(CUT.chars()).collect();
    Cow::Owned(escape(kept.as_str()).into_owned())
}

/// What inferno puts for the rest of a name.
const CUT: &str = "..";

/// The share of the frame of everything, and of no other.
const EVERYTHING: &str = "100%";

impl Painted {
    /// The color of a frame, and what is said of it.
    fn at(&self, row: usize, left: u64) -> (String, Option<&str>) {
        let paint = self.frames.get(&(row, left));
        let Color { r, g, b } = paint.and_then(|paint| paint.color).unwrap_or(NOTHING);
        (format!("rgb({r},{g},{b})"), paint.map(|paint| paint.said.as_str()))
    }
}

/// What inferno counted, in joules if that is what it is.
fn readable(count: &str, unit: &str) -> String {
    let per_joule = match unit {
        "mJ" => 1e3,
        "µJ" => 1e6,
        "nJ" => 1e9,
        _ => return format!("{count} {unit}"),
    };
    let number: f64 = count.replace(',', "").parse().unwrap_or_default();
    Joules::from_joules(number / per_joule).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame of a picture.
    fn frame(title: &str) -> String {
        format!(
            "<title>{title}</title>\n  <rect x=\"0.0000%\" y=\"16\" width=\"50.0000%\" height=\"15\" fill=\"rgb(1,2,3)\" fg:x=\"0\" fg:w=\"7\"/>\n  <text x=\"0.1%\" y=\"9\">{LABEL}</text>"
        )
    }

    const LABEL: &str = "f";

    #[test]
    fn names_lose_types_before_their_ends() {
        let name = "std::vec&lt;a, b&lt;c&gt;&gt;::push";
        assert_eq!(label(name, name), name);
        assert_eq!(label(name, "std::vec&lt;a, b&lt;c&gt;&gt;.."), "std::vec&lt;…&gt;::push");
        assert_eq!(label(name, "std::vec&lt;.."), "std::vec&lt;..");
        assert_eq!(label("plain_function", "plain_f.."), "plain_f..");
    }

    #[test]
    fn titles_have_joules_as_people_read_them() {
        let title = |text: &str| finish(&frame(text), 16, None);
        assert_eq!(title("f(int) (12,345 mJ, 1.50%)"), frame("f(int) (12.35 J, 1.50%)"));
        assert_eq!(title("g (7 µJ, 0.01%; +1.00%)"), frame("g (7.000 µJ, 0.01%; +1.00%)"));
        for as_it_is in ["f (3 mJ, x) (12 samples, 1.50%)", "(12,345 mJ)"] {
            assert_eq!(title(as_it_is), frame(as_it_is));
        }
    }

    #[test]
    fn names_are_sorted_one_after_the_other() {
        let mut stacks: Stacks = ["a;b", "a(int)", "a", "a::b;c"].map(|stack| (stack.to_owned(), 1)).into();
        sort(&mut stacks);
        let order: Vec<&str> = stacks.iter().map(|(stack, _)| stack.as_str()).collect();
        assert_eq!(order, ["a", "a;b", "a(int)", "a::b;c"]);
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_names(shared in "[ab;é\\u{1}]{0,70}", a in "[ab;é\\u{1}]{0,5}", b in "[ab;é\\u{1}]{0,5}") {
            let [a, b] = [a, b].map(|end| format!("{shared}{end}"));
            prop_assert_eq!(by_names(&a, &b), a.split(';').cmp(b.split(';')));
        }
    }
}
