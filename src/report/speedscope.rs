//! A call tree as a speedscope profile (<https://www.speedscope.app/file-format-schema.json>). Its samples are in the
//! order of time where that is known, for speedscope's view of it.

use std::collections::BTreeMap;
use std::io::Write;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::exporter::{Exported, Exporter};
use super::folded::WholeNumbers;
use super::tree::{CallTree, CellPath};
use super::walk::TreeFrame;
use super::{ReportError, Weight};
use crate::profile::{self, InSlice};

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: String,
    #[serde(rename = "activeProfileIndex")]
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: [Profile<'a>; 1],
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

/// speedscope shows a frame's file beside its name; here that is its module.
#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    /// The format knows units of time and of memory; joules are no such unit.
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Samples<'a>,
    weights: Vec<u64>,
}

/// JSON for speedscope, as an export.
pub struct Speedscope;

impl Exporter for Speedscope {
    fn name(&self) -> &'static str {
        "speedscope"
    }

    fn about(&self) -> &'static str {
        "JSON for speedscope.app"
    }

    fn needs_slices(&self) -> bool {
        true
    }

    fn write(&self, exported: &Exported<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
        write(&exported.tree()?, out)
    }
}

/// The frames of each sample by their numbers. All of them together take many times the memory of the tree, so that
/// they are found once more when they are written.
enum Samples<'a> {
    /// In the order of the tree: it is walked again.
    OfTree { tree: &'a CallTree<'a>, numbers: &'a Numbers, factor: f64 },
    /// In the order of time.
    ByTime { samples: &'a ByTime<'a>, numbers: &'a Numbers },
}

impl Serialize for Samples<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(None)?;
        let mut sample: Vec<u32> = Vec::new();
        match *self {
            Self::OfTree { tree, numbers, factor } => {
                let mut whole = WholeNumbers::new(factor);
                tree.for_each_own(0.0, |path, weight| {
                    if whole.next(weight) == 0 {
                        return Ok(());
                    }
                    sample.clear();
                    sample.extend(path.iter().filter_map(|frame| numbers.of(*frame)));
                    sequence.serialize_element(&sample)
                })?;
            }
            Self::ByTime { samples, numbers } => {
                let mut path = Vec::new();
                for &place in &samples.places {
                    samples.frames(place, &mut path);
                    sample.clear();
                    sample.extend(path.iter().filter_map(|frame| numbers.of(*frame)));
                    sequence.serialize_element(&sample)?;
                }
            }
        }
        sequence.end()
    }
}

/// Stretches of time at most: within one, each call path is one sample.
const MOST_STRETCHES: u64 = 2_000;

/// Where a sample is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// A frame beside all stacks.
    Beside(TreeFrame),
    Path(CellPath),
}

/// Samples in the order of time.
struct ByTime<'a> {
    tree: &'a CallTree<'a>,
    profile: &'a profile::Profile,
    places: Vec<Place>,
    weights: Vec<u64>,
}

impl<'a> ByTime<'a> {
    /// `None` where it is not known when joules were spent, or the profile is too large to be put in order.
    fn new(tree: &'a CallTree<'a>, factor: f64) -> Option<Self> {
        let profile = tree.parts().whole().filter(|profile| !profile.slices.is_empty())?;
        if !tree.is_of_all_domains() {
            return None;
        }
        let mut samples = Self { tree, profile, places: Vec::new(), weights: Vec::new() };
        let mut whole = WholeNumbers::new(factor);
        for (frame, weight) in tree.beside() {
            samples.push(Place::Beside(frame), whole.next(weight));
        }
        // Paths by their numbers, and what of each is in no slice.
        let mut number_of: FxHashMap<CellPath, u32> = FxHashMap::default();
        let mut paths: Vec<(CellPath, f64)> = Vec::new();
        let mut path_of_cell = vec![None; profile.cells.len()];
        for (cell, totals, path) in tree.cells(profile) {
            let weight = totals.weight(tree.weight);
            let number = *number_of.entry(path).or_insert_with(|| {
                paths.push((path, 0.0));
                paths.len() as u32 - 1
            });
            paths[number as usize].1 += weight;
            path_of_cell[cell] = Some(number);
        }
        let shortest = profile.duration.as_nanos() / MOST_STRETCHES;
        let mut begin = profile.slices[0].start;
        let mut stretch: BTreeMap<u32, f64> = BTreeMap::new();
        for (index, slice) in profile.slices.iter().enumerate() {
            for &InSlice { cell, joules, .. } in &slice.by_cell {
                if let Some(Some(path)) = path_of_cell.get(cell as usize) {
                    *stretch.entry(*path).or_default() += f64::from(joules);
                }
            }
            let is_last = index + 1 == profile.slices.len();
            if is_last || slice.end.since(begin).as_nanos() >= shortest {
                begin = slice.end;
                for (number, joules) in std::mem::take(&mut stretch) {
                    let (path, rest) = &mut paths[number as usize];
                    *rest -= joules;
                    samples.push(Place::Path(*path), whole.next(joules));
                }
            }
        }
        // Joules of launches are known only in the end; and slices are rounded.
        for (path, rest) in paths {
            samples.push(Place::Path(path), whole.next(rest));
        }
        Some(samples)
    }

    fn push(&mut self, place: Place, weight: u64) {
        match (self.places.last(), self.weights.last_mut()) {
            _ if weight == 0 => {}
            (Some(last), Some(sum)) if *last == place => *sum += weight,
            _ => {
                self.places.push(place);
                self.weights.push(weight);
            }
        }
    }

    /// Finds the frames of a sample, the one nearest to the root first.
    fn frames(&self, place: Place, frames: &mut Vec<TreeFrame>) {
        match place {
            Place::Beside(frame) => {
                frames.clear();
                frames.push(frame);
            }
            Place::Path(path) => self.tree.find_frames_of(self.profile, path, frames),
        }
    }
}

/// The number that each frame of a tree has in the file, if it is there.
#[derive(Default)]
struct Numbers {
    above: Vec<Option<u32>>,
    keys: Vec<Option<u32>>,
}

impl Numbers {
    fn of(&self, frame: TreeFrame) -> Option<u32> {
        match frame {
            TreeFrame::Above(root) => self.above.get(root as usize).copied().flatten(),
            TreeFrame::Key(key) => self.keys.get(key as usize).copied().flatten(),
        }
    }

    fn set(&mut self, frame: TreeFrame, number: u32) {
        let (list, at) = match frame {
            TreeFrame::Above(root) => (&mut self.above, root as usize),
            TreeFrame::Key(key) => (&mut self.keys, key as usize),
        };
        if at >= list.len() {
            list.resize(at + 1, None);
        }
        list[at] = Some(number);
    }
}

/// The frames of a file, each once.
#[derive(Default)]
struct Frames<'a> {
    frames: Vec<Frame<'a>>,
    numbers: Numbers,
}

impl<'a> Frames<'a> {
    fn add(&mut self, tree: &'a CallTree<'_>, path: &[TreeFrame]) {
        for &frame in path {
            if self.numbers.of(frame).is_none() {
                let (name, module) = tree.label(frame);
                self.numbers.set(frame, self.frames.len() as u32);
                self.frames.push(Frame { name: name.as_str(), file: module.map(|module| module.as_str()) });
            }
        }
    }
}

/// Writes a call tree for speedscope. Weights are microjoules, or samples, or events: the profile's
/// name tells which.
///
/// # Errors
/// If writing fails.
pub fn write(tree: &CallTree<'_>, mut out: impl Write) -> Result<(), ReportError> {
    let (unit, factor) = match tree.weight {
        Weight::Joules => ("microjoules", 1e6),
        Weight::Samples => ("samples", 1.0),
        Weight::Count => ("events", 1.0),
    };
    let mut found = Frames::default();
    let by_time = ByTime::new(tree, factor);
    let weights = match &by_time {
        Some(samples) => {
            let (mut known, mut path) = (FxHashSet::default(), Vec::new());
            for &place in &samples.places {
                if !matches!(place, Place::Path(path) if !known.insert(path)) {
                    samples.frames(place, &mut path);
                    found.add(tree, &path);
                }
            }
            samples.weights.clone()
        }
        None => {
            let (mut whole, mut weights) = (WholeNumbers::new(factor), Vec::new());
            tree.for_each_own(0.0, |path, weight| {
                let number = whole.next(weight);
                if number > 0 {
                    found.add(tree, path);
                    weights.push(number);
                }
                Ok::<(), ReportError>(())
            })?;
            weights
        }
    };
    let Frames { frames, numbers } = found;
    let samples = match &by_time {
        Some(samples) => Samples::ByTime { samples, numbers: &numbers },
        None => Samples::OfTree { tree, numbers: &numbers, factor },
    };
    let subject = tree.summary.subject.as_ref().map_or("eprof", |subject| subject.as_str());
    let mark = tree.summary.estimate_mark().filter(|_| tree.weight == Weight::Joules);
    let mark = mark.map(|mark| format!(", {mark}")).unwrap_or_default();
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: format!("eprof {}", env!("CARGO_PKG_VERSION")),
        name: subject.to_owned(),
        active_profile_index: 0,
        shared: Shared { frames },
        profiles: [Profile {
            kind: "sampled",
            name: format!("{subject} ({unit}{mark})"),
            unit: "none",
            start_value: 0,
            end_value: weights.iter().sum(),
            samples,
            weights,
        }],
    };
    serde_json::to_writer(&mut out, &file).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Balance, TimeSlice};
    use crate::report::fixture::sample_profile;
    use crate::report::tree::TreeOptions;
    use crate::units::{Joules, Nanoseconds};

    #[test]
    fn samples_are_in_the_order_of_time_and_hold_all_joules() {
        let (mut profile, symbols) = sample_profile();
        let start = profile.start;
        // Cell 3 first, then cell 0, then cell 3 again; the rest is in no slice.
        profile.slices = [(3, 0.25), (0, 1.0), (3, 0.125)]
            .into_iter()
            .zip(0..)
            .map(|((cell, joules), at)| TimeSlice {
                start: start + Nanoseconds::from_millis(600 * at),
                end: start + Nanoseconds::from_millis(600 * (at + 1)),
                measured: Vec::new(),
                modelled: Joules::ZERO,
                balance: Balance::default(),
                by_cell: vec![InSlice { cell, joules, seconds: 0.0 }],
            })
            .collect();
        let options = TreeOptions { whole: true, ..TreeOptions::default() };
        let tree = CallTree::new(&profile, &symbols, &options).expect("a tree");
        let mut out = Vec::new();
        write(&tree, &mut out).expect("a vector takes all");
        let file: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        let profile = &file["profiles"][0];
        let weights: Vec<u64> =
            profile["weights"].as_array().expect("weights").iter().filter_map(|it| it.as_u64()).collect();
        assert_eq!(weights.iter().sum::<u64>(), 34_000_000, "all that was measured");
        assert_eq!(profile["endValue"], 34_000_000);
        let samples = profile["samples"].as_array().expect("samples");
        assert_eq!(samples.len(), weights.len());
        // Four frames of the balance come before.
        assert_eq!(weights[4..7], [250_000, 1_000_000, 125_000]);
        assert_eq!(samples[4], samples[6]);
        assert_ne!(samples[4], samples[5]);
    }
}
