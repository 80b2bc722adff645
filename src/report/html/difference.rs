//! What an older recording had where a page's one has something else.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::label::Label;
use crate::report::frames::FrameClass;
use crate::report::heading::provenance;
use crate::report::nodes::{Nodes, Reached};
use crate::report::select::Totals;
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
    /// By the page's functions: number, own weight and its standard error, if inlined functions are part of those that
    /// they were put into.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_inlined: Option<Vec<(u32, u64, u64)>>,
    /// Functions that the page's recording does not have.
    gone: Vec<Gone>,
    /// Pairs of node and own weight there, of paths that are drawn whole.
    own: Vec<(u32, u64)>,
    /// Pairs of node and weight below it, of paths that go on where none is drawn.
    below: Vec<(u32, u64)>,
}

#[derive(Serialize)]
struct Gone {
    name: Label,
    module: Option<Label>,
    own: u64,
    error: u64,
    total: u64,
    /// Own weight and its error, if inlined functions are part of those that they were put into; `None` of such a one.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_inlined: Option<(u64, u64)>,
}

/// Weights of a function, in joules or samples, and the variance of the first as far as it is of causes that this recording
/// has alone.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    own: f64,
    variance: f64,
    total: f64,
}

impl Sum {
    fn add(&mut self, weight: Weight, own: &Totals, total: &Totals) {
        self.own += own.weight(weight);
        self.variance += own.variance_alone(weight).unwrap_or(0.0);
        self.total += total.weight(weight);
    }

    fn error(&self) -> f64 {
        self.variance.max(0.0).sqrt()
    }
}

/// A function as both recordings know it.
type Key = (Label, Option<Label>, Option<FrameClass>);

/// Modules of the older recording that lay elsewhere: a program that was built into another folder is still that program. Only
/// those of which the newer recording has just one of that name, which the older one has not.
fn moved_modules(older: &CallTree<'_>, newer: &CallTree<'_>) -> FxHashMap<Label, Label> {
    let modules = |tree: &CallTree<'_>| -> FxHashSet<Label> {
        tree.sums().into_keys().filter_map(|frame| tree.label(frame).1.cloned()).collect()
    };
    let (before, now) = (modules(older), modules(newer));
    let mut by_name: FxHashMap<&str, Vec<&Label>> = FxHashMap::default();
    for module in now.difference(&before) {
        by_name.entry(module.file_name()).or_default().push(module);
    }
    let gone = before.difference(&now);
    gone.filter_map(|module| match by_name.get(module.file_name())?[..] {
        [moved] => Some((module.clone(), moved.clone())),
        _ => None,
    })
    .collect()
}

impl Older {
    /// # Errors
    /// If one is weighed by joules and the other is not.
    pub fn new(
        older: &CallTree<'_>,
        newer: &CallTree<'_>,
        nodes: &Nodes,
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
            (name.clone(), module.cloned(), tree.class(frame).map(FrameClass::without_language))
        };
        let moved = moved_modules(older, newer);
        let older_key = |frame: TreeFrame| -> Key {
            let (name, module, class) = key(older, frame);
            let module = module.map(|module| moved.get(&module).cloned().unwrap_or(module));
            (name, module, class)
        };
        let mut newer_frame: FxHashMap<Key, TreeFrame> = FxHashMap::default();
        let mut function_of: FxHashMap<Key, u32> = FxHashMap::default();
        for frame in newer.sums().into_keys().chain(newer.frames_above()) {
            newer_frame.insert(key(newer, frame), frame);
        }
        for (number, &frame) in (1..).zip(&nodes.frames) {
            function_of.entry(key(newer, frame)).or_insert(number);
        }
        let [mut own, mut below]: [FxHashMap<u32, f64>; 2] = Default::default();
        let mut translated: FxHashMap<TreeFrame, Option<TreeFrame>> = FxHashMap::default();
        older.for_each_own(0.0, |path, weight| {
            let known: Vec<TreeFrame> = path
                .iter()
                .map_while(|&frame| {
                    *translated.entry(frame).or_insert_with(|| newer_frame.get(&older_key(frame)).copied())
                })
                .collect();
            let is_whole = known.len() == path.len();
            let reached = nodes.follow(known, Reached::ALL);
            let sums = if is_whole && reached.end().is_some() { &mut own } else { &mut below };
            *sums.entry(reached.node()).or_default() += weight;
            Ok::<(), ReportError>(())
        })?;
        let whole = |weight: f64| (weight * unit).round().max(0.0) as u64;
        let by_key = |found: FxHashMap<TreeFrame, (Totals, Totals)>| {
            let mut sums: FxHashMap<Key, Sum> = FxHashMap::default();
            for (frame, (own, total)) in found {
                sums.entry(older_key(frame)).or_default().add(older.weight, &own, &total);
            }
            sums
        };
        let sums = by_key(older.sums());
        let has_inlined = older.has_inlined() || newer.has_inlined();
        // A recording without such functions has the same sums.
        let plain = older.sums_without_inlined().map(by_key);
        let of_plain = |key: &Key, sum: Sum| {
            let sum = plain.as_ref().map_or(sum, |plain| plain.get(key).copied().unwrap_or_default());
            (whole(sum.own), whole(sum.error()))
        };
        let mut functions = Vec::new();
        let mut without_inlined = has_inlined.then(Vec::new);
        let mut gone = Vec::new();
        for (key, sum) in sums {
            let (own, error, total) = (whole(sum.own), whole(sum.error()), whole(sum.total));
            if total == 0 {
                continue;
            }
            let plain = of_plain(&key, sum);
            match function_of.get(&key) {
                Some(&number) => {
                    functions.push((number, own, error, total));
                    if let Some(all) = &mut without_inlined {
                        all.push((number, plain.0, plain.1));
                    }
                }
                None => gone.push(Gone {
                    own,
                    error,
                    total,
                    without_inlined: (has_inlined && !key.2.is_some_and(FrameClass::is_inlined))
                        .then_some(plain),
                    name: key.0,
                    module: key.1,
                }),
            }
        }
        functions.sort_unstable();
        if let Some(all) = &mut without_inlined {
            all.sort_unstable();
        }
        gone.sort_by(|a, b| b.own.cmp(&a.own).then(a.name.cmp(&b.name)).then(a.module.cmp(&b.module)));
        let by_node = |sums: FxHashMap<u32, f64>| {
            let mut sums: Vec<(u32, u64)> =
                sums.into_iter().map(|(node, weight)| (node, whole(weight))).collect();
            sums.sort_unstable();
            sums
        };
        Ok(Self {
            subject: older.summary.subject.clone(),
            how: provenance(&older.summary, older.weight),
            seconds: older.summary.duration.as_secs_f64(),
            measured: older.summary.balance.measured,
            total: whole(older.total()),
            functions,
            without_inlined,
            gone,
            own: by_node(own),
            below: by_node(below),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Method;
    use crate::profile::Profile;
    use crate::report::fixture::{Fixture, Spent};
    use crate::report::tree::TreeOptions;
    use crate::symbolize::Symbols;

    fn recorded(cells: &[(&str, f64)]) -> (Profile, Symbols) {
        let mut fixture = Fixture::default();
        fixture.domain("package-0", None, Method::Measured, "power PMU", [0.0; 4]);
        fixture.event("cpu-clock", 0);
        fixture.thread(1, 1, "app", "app");
        for &(stack, joules) in cells {
            fixture.cell(0, 0, 0, stack, Spent { samples: 10, millis: 10, joules: &[joules] });
        }
        fixture.finish()
    }

    /// What the older recording has of the page's functions: own joules by name; and the names of what is gone.
    fn compared(older: &[(&str, f64)], newer: &[(&str, f64)]) -> (Vec<(String, u64)>, Vec<String>) {
        let ((older, old_symbols), (newer, symbols)) = (recorded(older), recorded(newer));
        let options = TreeOptions::default();
        let [older, newer] = [(&older, &old_symbols), (&newer, &symbols)]
            .map(|(profile, symbols)| CallTree::new(profile, symbols, &options).expect("a tree"));
        let nodes = Nodes::new(&newer, 0.0);
        let found = Older::new(&older, &newer, &nodes, 1.0).expect("both are of joules");
        let name = |number: u32| newer.label(nodes.frames[number as usize - 1]).0.to_string();
        let mut own: Vec<(String, u64)> =
            found.functions.iter().map(|&(number, own, ..)| (name(number), own)).collect();
        own.sort();
        (own, found.gone.iter().map(|gone| gone.name.to_string()).collect())
    }

    #[test]
    fn a_program_that_moved_to_another_folder_is_still_that_program() {
        let before = [("/old/build/app`main", 1.0), ("/old/build/app`main  /old/build/app`work", 4.0)];
        let now = [("/new/app`main", 1.0), ("/new/app`main  /new/app`work", 2.0)];
        let own = |main: u64, work: u64| vec![("main".to_owned(), main), ("work".to_owned(), work)];
        assert_eq!(compared(&before, &now), (own(1, 4), Vec::new()));
        // Where two programs of the name are new, nothing tells which of them it was.
        let two = [now[0], now[1], ("/other/app`main", 1.0)];
        let (found, gone) = compared(&before, &two);
        assert_eq!((found, gone), (Vec::new(), vec!["work".to_owned(), "main".to_owned()]));
        // One that the older recording has as well has not moved.
        let both = [before[0], before[1], ("/new/app`main", 7.0)];
        let (found, gone) = compared(&both, &now);
        assert_eq!((found, gone), (vec![("main".to_owned(), 7)], vec!["work".to_owned(), "main".to_owned()]));
    }
}
