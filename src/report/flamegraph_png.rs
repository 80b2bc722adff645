//! Flamegraphs as pictures of pixels, for places that show no SVG.
//!
//! It is the SVG once more: its rectangles and texts are read back and drawn, so that both have the same frames, places and
//! colors. General renderers of SVG bring some fifty crates with them, mostly for text that is shaped by fonts of the
//! system; names of functions need one font of equally wide letters, which comes as bitmaps.

use std::io::Write;

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::ReportError;
use super::flamegraph::{self, FlamegraphOptions};
use super::tree::CallTree;
use crate::label::Label;

/// Pixels from left to right.
pub const WIDTH: usize = 1600;
/// Height of letters, and of the rows of inferno's frames.
const HEIGHT: RasterHeight = RasterHeight::Size16;
const WEIGHT: FontWeight = FontWeight::Regular;
/// Between a frame's edge and its name.
const MARGIN: usize = 3;
/// A frame has a name from so many letters on.
const FEWEST_LETTERS: usize = 3;
/// Letters that no bitmap is there for.
const UNKNOWN: char = '?';
/// Stands for letters that have no room.
const LEFT_OUT: char = '…';
const BACKGROUND: [u8; 3] = [255, 255, 255];

/// Draws a call tree, or what it has more and less than an older one.
///
/// # Errors
/// As [`flamegraph::write`] and [`flamegraph::write_difference`].
pub fn write(
    tree: &CallTree<'_>,
    older: Option<&CallTree<'_>>,
    options: &FlamegraphOptions,
    out: impl Write,
) -> Result<(), ReportError> {
    let look = FlamegraphOptions { plain: true, width: Some(WIDTH), ..options.clone() };
    let mut svg = Vec::new();
    match older {
        None => flamegraph::write(tree, &look, &mut svg)?,
        Some(older) => flamegraph::write_difference(older, tree, &look, &mut svg)?,
    }
    let picture = draw(&String::from_utf8_lossy(&svg)).map_err(std::io::Error::other)?;
    let mut encoder = png::Encoder::new(out, picture.width as u32, picture.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(std::io::Error::from)?;
    writer.write_image_data(&picture.pixels).map_err(std::io::Error::from)?;
    writer.finish().map_err(std::io::Error::from)?;
    Ok(())
}

/// Draws the rectangles and texts of a flamegraph of ours.
fn draw(svg: &str) -> Result<Picture, quick_xml::Error> {
    let mut reader = Reader::from_str(svg);
    let mut picture = Picture { width: WIDTH, height: 0, pixels: Vec::new() };
    // What was said last of what is to come: the frame's name, and the place of a text above all frames.
    let (mut is_title, mut name, mut heading) = (false, None, None);
    let mut within = Within::default();
    loop {
        match reader.read_event()? {
            Event::Eof => return Ok(picture),
            Event::Start(element) | Event::Empty(element) => match element.name().as_ref() {
                b"svg" if picture.height == 0 => {
                    picture.height = number(&element, "height")? as usize;
                    picture.pixels = BACKGROUND.repeat(picture.width * picture.height);
                }
                // Frames lie in a picture of their own within it.
                b"svg" => within = Within::of(&element)?,
                b"title" => (is_title, name) = (true, Some(String::new())),
                b"rect" => {
                    // The background is no frame: its color is a gradient.
                    if let Some(frame) = Frame::of(&element, within)? {
                        picture.frame(&frame, name.take().as_deref().unwrap_or_default());
                    }
                }
                b"text" => {
                    let id = attribute(&element, "id")?;
                    let is_heading = matches!(id.as_deref(), Some("title" | "subtitle"));
                    heading = if is_heading { Some((number(&element, "y")?, String::new())) } else { None };
                }
                _ => {}
            },
            Event::End(element) => match element.name().as_ref() {
                b"title" => is_title = false,
                b"text" => {
                    if let Some((y, text)) = heading.take() {
                        picture.heading(y as usize, &text);
                    }
                }
                _ => {}
            },
            Event::Text(text) => add(&text.decode()?, is_title, &mut name, &mut heading),
            Event::GeneralRef(reference) => {
                let entity = reference.decode()?;
                let number = reference.resolve_char_ref()?.map(String::from);
                let known = number
                    .or_else(|| quick_xml::escape::resolve_predefined_entity(&entity).map(str::to_owned));
                add(&known.unwrap_or_default(), is_title, &mut name, &mut heading);
            }
            _ => {}
        }
    }
}

/// Text comes in pieces, apart at what XML has other signs for.
fn add(text: &str, is_title: bool, name: &mut Option<String>, heading: &mut Option<(f64, String)>) {
    match (name, heading) {
        (Some(name), _) if is_title => *name += text,
        (_, Some((_, heading))) => *heading += text,
        _ => {}
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Result<Option<String>, quick_xml::Error> {
    let Some(found) = element.try_get_attribute(name)? else { return Ok(None) };
    Ok(Some(found.normalized_value(XmlVersion::Implicit1_0)?.into_owned()))
}

/// A number; 0 if there is none.
fn number(element: &BytesStart<'_>, name: &str) -> Result<f64, quick_xml::Error> {
    Ok(attribute(element, name)?.and_then(|text| text.parse().ok()).unwrap_or(0.0))
}

/// The pixels that shares are shares of.
#[derive(Clone, Copy, Default)]
struct Within {
    left: f64,
    width: f64,
}

impl Within {
    fn of(element: &BytesStart<'_>) -> Result<Self, quick_xml::Error> {
        Ok(Self { left: number(element, "x")?, width: number(element, "width")? })
    }

    /// A share in pixels.
    fn share(self, element: &BytesStart<'_>, name: &str) -> Result<f64, quick_xml::Error> {
        let text = attribute(element, name)?.unwrap_or_default();
        let percent: f64 = text.strip_suffix('%').and_then(|text| text.parse().ok()).unwrap_or(0.0);
        Ok(percent / 100.0 * self.width)
    }
}

/// A frame in pixels.
struct Frame {
    left: f64,
    top: usize,
    width: f64,
    height: usize,
    color: [u8; 3],
}

impl Frame {
    fn of(element: &BytesStart<'_>, within: Within) -> Result<Option<Self>, quick_xml::Error> {
        let fill = attribute(element, "fill")?.unwrap_or_default();
        let parts = fill.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
        let parts: Vec<u8> = parts
            .into_iter()
            .flat_map(|rgb| rgb.split(','))
            .filter_map(|part| part.trim().parse().ok())
            .collect();
        let Ok(color) = <[u8; 3]>::try_from(parts) else { return Ok(None) };
        Ok(Some(Self {
            left: within.left + within.share(element, "x")?,
            top: number(element, "y")? as usize,
            width: within.share(element, "width")?,
            height: number(element, "height")? as usize,
            color,
        }))
    }
}

struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Picture {
    /// A frame with as much of its name as it has room for. Frames of less than half a pixel are not seen.
    fn frame(&mut self, frame: &Frame, title: &str) {
        let left = frame.left.round().max(0.0) as usize;
        let right = ((frame.left + frame.width).round() as usize).min(self.width);
        // Neighbours of one color are told apart.
        let edge = if right > left + 2 { right - 1 } else { right };
        for y in frame.top..(frame.top + frame.height).min(self.height) {
            for x in left..edge {
                self.put(x, y, frame.color);
            }
        }
        let letters = edge.saturating_sub(left + 2 * MARGIN) / get_raster_width(WEIGHT, HEIGHT);
        // Behind the name stands what it took.
        let name = title.rsplit_once(" (").map_or(title, |(name, _)| name);
        if letters >= FEWEST_LETTERS {
            let name = Label::new(name);
            self.text(left + MARGIN, frame.top, &cut(&name.without_types(letters), letters), [0, 0, 0]);
        }
    }

    /// A line in the middle, whose letters stand on `y`.
    fn heading(&mut self, y: usize, text: &str) {
        let letter = get_raster_width(WEIGHT, HEIGHT);
        let text = cut(text, self.width / letter - 2);
        let left = (self.width - text.chars().count() * letter) / 2;
        self.text(left, y.saturating_sub(HEIGHT.val() - 3), &text, [0, 0, 0]);
    }

    fn text(&mut self, left: usize, top: usize, text: &str, color: [u8; 3]) {
        let letter = get_raster_width(WEIGHT, HEIGHT);
        for (at, character) in text.chars().enumerate() {
            // There is no bitmap of what is left out, but one of its three points.
            if character == LEFT_OUT {
                for third in 0..3 {
                    self.letter(
                        '.',
                        (left + at * letter + third * letter / 3).saturating_sub(letter / 3),
                        top,
                        color,
                    );
                }
                continue;
            }
            self.letter(character, left + at * letter, top, color);
        }
    }

    fn letter(&mut self, character: char, left: usize, top: usize, color: [u8; 3]) {
        let raster = get_raster(character, WEIGHT, HEIGHT).or_else(|| get_raster(UNKNOWN, WEIGHT, HEIGHT));
        for (y, row) in raster.iter().flat_map(|raster| raster.rows().enumerate()) {
            for (x, ink) in row.iter().enumerate() {
                self.blend(left + x, top + y, color, *ink);
            }
        }
    }

    fn put(&mut self, x: usize, y: usize, color: [u8; 3]) {
        self.blend(x, y, color, 255);
    }

    fn blend(&mut self, x: usize, y: usize, color: [u8; 3], ink: u8) {
        if x >= self.width || y >= self.height {
            return;
        }
        let ink = u16::from(ink);
        let at = (y * self.width + x) * 3;
        for (below, above) in self.pixels[at..at + 3].iter_mut().zip(color) {
            *below = ((u16::from(*below) * (255 - ink) + u16::from(above) * ink) / 255) as u8;
        }
    }
}

/// The first letters of a name, with two points if there are more.
fn cut(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    name.chars().take(letters.saturating_sub(2)).chain("..".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::sample_profile;
    use crate::report::tree::TreeOptions;

    /// Width, height and pixels.
    fn decoded(png: &[u8]) -> (usize, usize, Vec<u8>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a header");
        let mut pixels = vec![0; reader.output_buffer_size().expect("it fits")];
        let info = reader.next_frame(&mut pixels).expect("a picture");
        assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
        (info.width as usize, info.height as usize, pixels)
    }

    #[test]
    fn frames_are_where_the_svg_has_them_in_its_colors() {
        let (profile, symbols) = sample_profile();
        let tree = CallTree::new(&profile, &symbols, &TreeOptions::default()).expect("a tree");
        let (mut png, mut svg) = (Vec::new(), Vec::new());
        write(&tree, None, &FlamegraphOptions::default(), &mut png).expect("a vector takes all");
        let look = FlamegraphOptions { plain: true, width: Some(WIDTH), ..FlamegraphOptions::default() };
        flamegraph::write(&tree, &look, &mut svg).expect("a vector takes all");
        let (width, height, pixels) = decoded(&png);
        assert_eq!(width, WIDTH);
        let svg = String::from_utf8(svg).expect("text");
        assert!(svg.contains(&format!("width=\"{WIDTH}\" height=\"{height}\"")), "{svg}");
        let mut frames = 0;
        let mut reader = Reader::from_str(&svg);
        let mut within = Within::default();
        loop {
            let element = match reader.read_event().expect("XML") {
                Event::Eof => break,
                Event::Empty(element) | Event::Start(element) => element,
                _ => continue,
            };
            if element.name().as_ref() == b"svg" {
                within = Within::of(&element).expect("numbers");
            }
            let Some(frame) = Frame::of(&element, within).expect("numbers") else { continue };
            if frame.width < 12.0 {
                continue;
            }
            frames += 1;
            let pixel = |x: f64, y: usize| {
                let at = (y * width + x as usize) * 3;
                [pixels[at], pixels[at + 1], pixels[at + 2]]
            };
            // Above and beside the name.
            assert_eq!(pixel(frame.left.round() + 1.0, frame.top), frame.color, "the corner of a frame");
            assert_eq!(pixel((frame.left + frame.width).round() - 1.0, frame.top), BACKGROUND, "behind it");
        }
        assert!(frames > 5, "{frames} frames");
        // Names are drawn, in black.
        assert!(pixels.chunks(3).filter(|pixel| *pixel == [0, 0, 0]).count() > 100);
    }

    #[test]
    fn names_are_cut_on_the_right_and_letters_without_a_bitmap_are_marked() {
        assert_eq!(cut("function", 8), "function");
        assert_eq!(cut("function", 7), "funct..");
        let mut picture = Picture { width: 40, height: 16, pixels: BACKGROUND.repeat(40 * 16) };
        picture.text(0, 0, "\u{4e2d}", [0, 0, 0]);
        let mut marked = Picture { width: 40, height: 16, pixels: BACKGROUND.repeat(40 * 16) };
        marked.text(0, 0, "?", [0, 0, 0]);
        assert!(picture.pixels == marked.pixels && picture.pixels != BACKGROUND.repeat(40 * 16));
        // What is left out of a name has no bitmap either, and is three points close together.
        let drawn = |text| {
            let mut picture = Picture { width: 40, height: 16, pixels: BACKGROUND.repeat(40 * 16) };
            picture.text(8, 0, text, [0, 0, 0]);
            picture.pixels
        };
        assert!(drawn("\u{2026}") != drawn("?") && drawn("\u{2026}") != drawn("..."));
        let dark = |pixels: &[u8]| -> Vec<usize> {
            let places = pixels.chunks(3).enumerate().filter(|(_, pixel)| pixel[0] < 128);
            let columns: std::collections::BTreeSet<usize> = places.map(|(at, _)| at % 40).collect();
            let begins = |column: &usize| !columns.contains(&column.wrapping_sub(1));
            columns.iter().copied().filter(begins).collect()
        };
        assert_eq!(dark(&drawn("\u{2026}")).len(), 3, "{:?}", dark(&drawn("\u{2026}")));
        let long = Label::new("app::module::a_rather_long_name_of_a_function");
        assert!(cut(&long.without_types(20), 20).chars().count() <= 20);
        // What is outside is not drawn, and is no error.
        picture.text(36, 10, "mm", [0, 0, 0]);
    }

    #[test]
    fn signs_of_markup_are_text() {
        let svg = "<svg width=\"1600\" height=\"32\"><svg x=\"10\" width=\"1580\"><g><title>f&lt;T&gt; (1 J, 2%)</title><rect x=\"0%\" y=\"16\" \
                   width=\"50%\" height=\"15\" fill=\"rgb(200,100,50)\"/><text x=\"0\" y=\"9\">f</text></g></svg></svg>";
        let drawn = draw(svg).expect("XML");
        let mut expected = Picture { width: WIDTH, height: 32, pixels: BACKGROUND.repeat(WIDTH * 32) };
        let frame = Frame { left: 10.0, top: 16, width: 790.0, height: 15, color: [200, 100, 50] };
        expected.frame(&frame, "f<T> (1 J, 2%)");
        assert!(drawn.pixels == expected.pixels);
    }
}
