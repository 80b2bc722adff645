//! A call tree as a speedscope profile (<https://www.speedscope.app/file-format-schema.json>).

use std::io::Write;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::exporter::{Exported, Exporter};
use super::folded::WholeNumbers;
use super::tree::CallTree;
use super::walk::TreeFrame;
use super::{ReportError, Weight};

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

    fn write(&self, exported: &Exported<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
        write(&exported.tree()?, out)
    }
}

/// The frames of each sample by their numbers. All of them together take many times the memory of the tree, so that
/// it is walked once more when they are written.
struct Samples<'a> {
    tree: &'a CallTree<'a>,
    index_of: &'a FxHashMap<TreeFrame, u32>,
    factor: f64,
}

impl Serialize for Samples<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(None)?;
        let mut whole = WholeNumbers::new(self.factor);
        let mut sample: Vec<u32> = Vec::new();
        self.tree.for_each_own(0.0, |path, weight| {
            if whole.next(weight) == 0 {
                return Ok(());
            }
            sample.clear();
            sample.extend(path.iter().filter_map(|frame| self.index_of.get(frame)));
            sequence.serialize_element(&sample)
        })?;
        sequence.end()
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
    let mut whole = WholeNumbers::new(factor);
    let (mut frames, mut index_of) = (Vec::new(), FxHashMap::<TreeFrame, u32>::default());
    let mut weights = Vec::new();
    tree.for_each_own(0.0, |path, weight| {
        let number = whole.next(weight);
        if number > 0 {
            for &frame in path {
                index_of.entry(frame).or_insert_with(|| {
                    let (name, module) = tree.label(frame);
                    frames.push(Frame { name: name.as_str(), file: module.map(|module| module.as_str()) });
                    frames.len() as u32 - 1
                });
            }
            weights.push(number);
        }
        Ok::<(), ReportError>(())
    })?;
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
            samples: Samples { tree, index_of: &index_of, factor },
            weights,
        }],
    };
    serde_json::to_writer(&mut out, &file).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}
