//! What an older recording had where a page's one has something else.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::label::Label;
use crate::report::frames::FrameClass;
use crate::report::heading::provenance;
use crate::report::nodes::Nodes;
use crate::report::tree::CallTree;
use crate::report::walk::TreeFrame;
use crate::report::{ReportError, Weight};
use crate::units::Joules;

/// An older recording, in the terms of the newer one's page.
#[derive(Serialize)]
pub struct Older {
    subject: Option<Label>,
    how: String,
    seconds: f64,
    measured: Joules,
    total: u64,
    /// By the page's functions: number, own weight, its standard error, and with all that it called.
    functions: Vec<(u32, u64, u64, u64)>,
    /// Functions that the page's recording does not have.
    gone: Vec<Gone>,
    /// Pairs of node and own weight. What the newer one does not have lies in the nearest caller that it has.
    own: Vec<(u32, u64)>,
}

#[derive(Serialize)]
struct Gone {
    name: Label,
    module: Option<Label>,
    own: u64,
    error: u64,
    total: u64,
}

/// A function as both recordings know it.
type Key = (Label, Option<Label>, Option<FrameClass>);

impl Older {
    /// # Errors
    /// If one is weighed by joules and the other is not.
    pub fn new(
        older: &CallTree<'_>,
        newer: &CallTree<'_>,
        nodes: &mut Nodes,
        unit: f64,
    ) -> Result<Self, ReportError> {
        if older.weight != newer.weight {
            return Err(ReportError::NotComparable {
                older: older.weight.name(),
                newer: newer.weight.name(),
            });
        }
        let key = |tree: &CallTree<'_>, frame: TreeFrame| -> Key {
            let (name, module) = tree.label(frame);
            (name.clone(), module.cloned(), tree.class(frame))
        };
        let mut newer_frame: FxHashMap<Key, TreeFrame> = FxHashMap::default();
        let mut function_of: FxHashMap<Key, u32> = FxHashMap::default();
        for frame in newer.sums().into_keys().chain(newer.frames_above()) {
            newer_frame.insert(key(newer, frame), frame);
        }
        for (number, &frame) in (1..).zip(&nodes.frames) {
            function_of.entry(key(newer, frame)).or_insert(number);
        }
        let mut own: FxHashMap<u32, f64> = FxHashMap::default();
        let mut translated: FxHashMap<TreeFrame, Option<TreeFrame>> = FxHashMap::default();
        older.for_each_own(0.0, |path, weight| {
            let known = path.iter().map_while(|&frame| {
                *translated.entry(frame).or_insert_with(|| newer_frame.get(&key(older, frame)).copied())
            });
            let known: Vec<TreeFrame> = known.collect();
            *own.entry(nodes.of(&known)).or_default() += weight;
            Ok::<(), ReportError>(())
        })?;
        let whole = |weight: f64| (weight * unit).round().max(0.0) as u64;
        let mut sums: FxHashMap<Key, (f64, f64, f64)> = FxHashMap::default();
        for (frame, (own, total)) in older.sums() {
            let sum = sums.entry(key(older, frame)).or_default();
            let variance = if older.weight == Weight::Joules { own.variance } else { 0.0 };
            sum.0 += own.weight(older.weight);
            sum.1 += variance;
            sum.2 += total.weight(older.weight);
        }
        let (mut functions, mut gone) = (Vec::new(), Vec::new());
        for (key, (own, variance, total)) in sums {
            let (own, error, total) = (whole(own), whole(variance.max(0.0).sqrt()), whole(total));
            if total == 0 {
                continue;
            }
            match function_of.get(&key) {
                Some(&number) => functions.push((number, own, error, total)),
                None => gone.push(Gone { name: key.0, module: key.1, own, error, total }),
            }
        }
        functions.sort_unstable();
        gone.sort_by(|a, b| b.own.cmp(&a.own).then(a.name.cmp(&b.name)).then(a.module.cmp(&b.module)));
        let mut own: Vec<(u32, u64)> = own.into_iter().map(|(node, weight)| (node, whole(weight))).collect();
        own.sort_unstable();
        Ok(Self {
            subject: older.summary.subject.clone(),
            how: provenance(&older.summary, older.weight),
            seconds: older.summary.duration.as_secs_f64(),
            measured: older.summary.balance.measured,
            total: whole(older.total()),
            functions,
            gone,
            own,
        })
    }
}
