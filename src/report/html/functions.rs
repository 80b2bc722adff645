//! The functions of a page, with what the whole recording says of each.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::report::Weight;
use crate::report::frames::FrameClass;
use crate::report::nodes::Nodes;
use crate::report::select::Totals;
use crate::report::tree::CallTree;
use crate::report::walk::TreeFrame;

/// Functions, a column for each thing that is known of them. The first is everything.
#[derive(Default, Serialize)]
pub struct Functions<'a> {
    name: Vec<&'a str>,
    /// Index in `modules`, from 1; 0 for none.
    module: Vec<u32>,
    /// As in flamegraphs: k kernel, i inlined, l inlined in the kernel, j compiled at run time, n native, c C++ and Rust, g of a
    /// GPU, a no code.
    class: String,
    /// Weights of the whole recording, and one standard error of the first.
    own: Vec<u64>,
    error: Vec<u64>,
    /// The part of the error of causes that no other recording shares.
    alone: Vec<u64>,
    /// The part of the error that comes of chance: of a part of the weight it is the root of that part as large, and the
    /// rest is that part as large.
    chance: Vec<u64>,
    total: Vec<u64>,
    /// While its own code ran; 0 where nobody knows.
    watts: Vec<f64>,
    /// What is other if inlined functions are part of those that they were put into; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_inlined: Option<WithoutInlined>,
    #[serde(skip)]
    pub modules: Vec<&'a str>,
}

/// What functions took themselves with all that was put into them: a column for each thing, as in [`Functions`], of those
/// functions of which it is other. Inlined functions have nothing then.
#[derive(Default, Serialize)]
struct WithoutInlined {
    function: Vec<u32>,
    own: Vec<u64>,
    error: Vec<u64>,
    alone: Vec<u64>,
    chance: Vec<u64>,
    watts: Vec<f64>,
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
            let own = Own::new(tree, own, unit);
            table.own.push(own.weight);
            table.total.push((total.weight(tree.weight) * unit).round().max(0.0) as u64);
            table.error.push(own.error);
            table.alone.push(own.alone);
            table.chance.push(own.chance);
            table.watts.push(own.watts);
        }
        table.without_inlined = tree.sums_without_inlined().map(|sums| {
            let mut other = WithoutInlined::default();
            for (number, frame) in (1..).zip(&nodes.frames) {
                let Some((own, _)) = sums.get(frame) else { continue };
                let own = Own::new(tree, own, unit);
                if !tree.class(*frame).is_some_and(FrameClass::is_inlined)
                    && own.weight != table.own[number as usize]
                {
                    other.push(number, own);
                }
            }
            other
        });
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
        self.alone.push(0);
        self.chance.push(0);
        self.total.push(total.round() as u64);
        self.watts.push(0.0);
    }
}

impl WithoutInlined {
    fn push(&mut self, function: u32, own: Own) {
        self.function.push(function);
        self.own.push(own.weight);
        self.error.push(own.error);
        self.alone.push(own.alone);
        self.chance.push(own.chance);
        self.watts.push(own.watts);
    }
}

/// What a function took itself, as a page has it.
struct Own {
    weight: u64,
    error: u64,
    alone: u64,
    chance: u64,
    watts: f64,
}

impl Own {
    fn new(tree: &CallTree<'_>, own: &Totals, unit: f64) -> Self {
        let whole = |number: f64| (number * unit).round().max(0.0) as u64;
        let has_joules = tree.weight == Weight::Joules;
        let watts = own.watts().filter(|_| has_joules && !tree.summary.is_by_time);
        Self {
            weight: whole(own.weight(tree.weight)),
            error: if has_joules { whole(own.standard_error().as_joules()) } else { 0 },
            alone: whole(own.variance_alone(tree.weight).unwrap_or(0.0).sqrt()),
            chance: if has_joules { whole(own.by_chance.max(0.0).sqrt()) } else { 0 },
            watts: watts.map_or(0.0, |watts| four_digits(watts.as_watts())),
        }
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
        Some(FrameClass::InlinedKernel) => 'l',
        Some(FrameClass::CppOrRust) => 'c',
        Some(FrameClass::Native) => {
            let is_gpu = tree.label(frame).1.is_some_and(|module| module.as_str() == "[gpu]");
            if is_gpu { 'g' } else { 'n' }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::report::laws::any_profile;
    use crate::report::tree::{Root, TreeOptions};

    /// By name and module: own weight, error, its part by chance, with all that it called, and watts.
    fn by_name(functions: &Functions<'_>, without_inlined: bool) -> BTreeMap<(String, u32), Value> {
        let json = serde_json::to_value(functions).expect("a table");
        let mut rows = json.clone();
        let other = &json["without_inlined"];
        if without_inlined && !other.is_null() {
            for (number, _) in functions.class.chars().enumerate().filter(|(_, class)| "il".contains(*class))
            {
                for column in ["own", "error", "chance", "total", "watts"] {
                    rows[column][number] = 0.into();
                }
            }
            for (at, number) in other["function"].as_array().expect("a list").iter().enumerate() {
                let number = number.as_u64().expect("a number") as usize;
                for column in ["own", "error", "chance", "watts"] {
                    rows[column][number] = other[column][at].clone();
                }
            }
        }
        let columns = ["own", "error", "chance", "total", "watts"];
        let row = |number: usize| columns.map(|column| rows[column][number].clone()).to_vec();
        let all = (1..functions.name.len()).map(|number| {
            let module = functions.module[number];
            let module = module.checked_sub(1).map_or("", |module| functions.modules[module as usize]);
            let key = (
                format!("{} of {module}", functions.name[number]),
                functions.class.as_bytes()[number].into(),
            );
            (key, Value::from(row(number)))
        });
        all.filter(|(_, row)| row[0] != 0 || row[3] != 0).collect()
    }

    proptest! {
        /// What a page says of functions with what was put into them is what it says where that was never told apart.
        #[test]
        fn without_inlined_functions_as_if_there_were_none((profile, symbols) in any_profile()) {
            let apart = TreeOptions { root: Root::None, ..TreeOptions::default() };
            let plain = TreeOptions { no_inline: true, ..apart.clone() };
            let [apart, plain] = [apart, plain].map(|options| CallTree::new(&profile, &symbols, &options));
            // Nothing may weigh anything.
            let (Ok(apart), Ok(plain)) = (apart, plain) else { return Ok(()) };
            let nodes = [&apart, &plain].map(|tree| Nodes::new(tree, 0.0));
            let told = Functions::new(&apart, &nodes[0], 1e6);
            let never = Functions::new(&plain, &nodes[1], 1e6);
            prop_assert!(never.without_inlined.is_none());
            prop_assert_eq!(told.without_inlined.is_some(), apart.has_inlined());
            prop_assert_eq!(by_name(&told, true), by_name(&never, false));
        }
    }
}
