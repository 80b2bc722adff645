//! The functions of a page, with what the whole recording says of each.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::report::Weight;
use crate::report::frames::FrameClass;
use crate::report::nodes::Nodes;
use crate::report::tree::CallTree;
use crate::report::walk::TreeFrame;

/// Functions, a column for each thing that is known of them. The first is everything.
#[derive(Default, Serialize)]
pub struct Functions<'a> {
    name: Vec<&'a str>,
    /// Index in `modules`, from 1; 0 for none.
    module: Vec<u32>,
    /// As in flamegraphs: k kernel, i inlined, j compiled at run time, n native, g of a GPU, a no code.
    class: String,
    /// Weights of the whole recording, and one standard error of the first.
    own: Vec<u64>,
    error: Vec<u64>,
    /// The part of the error that comes of chance: of a part of the weight it is the root of that part as large, and the
    /// rest is that part as large.
    chance: Vec<u64>,
    total: Vec<u64>,
    /// While its own code ran; 0 where nobody knows.
    watts: Vec<f64>,
    #[serde(skip)]
    pub modules: Vec<&'a str>,
}

impl<'a> Functions<'a> {
    pub fn new(tree: &'a CallTree<'_>, nodes: &Nodes, unit: f64) -> Self {
        let sums = tree.sums();
        let mut table = Self::default();
        let mut module_ids: FxHashMap<&str, u32> = FxHashMap::default();
        table.push("all", 0, 'a');
        table.of_whole(tree.total() * unit);
        for &frame in &nodes.frames {
            let (name, module) = tree.label(frame);
            let module = module.map_or(0, |module| {
                *module_ids.entry(module.as_str()).or_insert_with(|| {
                    table.modules.push(module.as_str());
                    table.modules.len() as u32
                })
            });
            table.push(name.as_str(), module, class(tree, frame));
            let Some((own, total)) = sums.get(&frame) else {
                table.of_whole(0.0);
                continue;
            };
            let whole = |number: f64| (number * unit).round().max(0.0) as u64;
            table.own.push(whole(own.weight(tree.weight)));
            table.total.push(whole(total.weight(tree.weight)));
            let has_joules = tree.weight == Weight::Joules;
            table.error.push(if has_joules { whole(own.standard_error().as_joules()) } else { 0 });
            table.chance.push(if has_joules { whole(own.by_chance.max(0.0).sqrt()) } else { 0 });
            let watts = own.watts().filter(|_| has_joules && !tree.summary.is_by_time);
            table.watts.push(watts.map_or(0.0, |watts| four_digits(watts.as_watts())));
        }
        table
    }

    fn push(&mut self, name: &'a str, module: u32, class: char) {
        self.name.push(name);
        self.module.push(module);
        self.class.push(class);
    }

    /// What is no function of the recording.
    fn of_whole(&mut self, total: f64) {
        self.own.push(0);
        self.error.push(0);
        self.chance.push(0);
        self.total.push(total.round() as u64);
        self.watts.push(0.0);
    }
}

/// More would only make pages larger.
fn four_digits(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap_or(number)
}

fn class(tree: &CallTree<'_>, frame: TreeFrame) -> char {
    match tree.class(frame) {
        None => 'a',
        Some(FrameClass::Inlined) => 'i',
        Some(FrameClass::Jit) => 'j',
        Some(FrameClass::Kernel) => 'k',
        Some(FrameClass::Native) => {
            let is_gpu = tree.label(frame).1.is_some_and(|module| module.as_str() == "[gpu]");
            if is_gpu { 'g' } else { 'n' }
        }
    }
}
