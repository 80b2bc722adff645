//! What holds for every report of every profile.

use std::collections::BTreeMap;

use proptest::prelude::*;
use regex::Regex;

use super::fixture::{Divided, Fixture, Spent};
use super::folded::WholeNumbers;
use super::tree::{CallTree, Direction, Root, TreeOptions};
use super::walk::TreeFrame;
use super::*;
use crate::hardware::Method;
use crate::profile::{Profile, ProfileParts};
use crate::symbolize::Symbols;

const FUNCTIONS: [&str; 6] = ["main", "work", "work>mix", "mix", "walk>work", "leaf"];
const MODULES: [&str; 3] = ["/bin/app", "/lib/libz.so", "[kernel]"];

#[derive(Debug, Clone)]
struct AnyCell {
    thread: u32,
    cpu: u32,
    event: u32,
    frames: Vec<(usize, usize)>,
    samples: u64,
    joules: [f64; 3],
}

fn any_cell() -> impl Strategy<Value = AnyCell> {
    let frames = prop::collection::vec((0..MODULES.len(), 0..FUNCTIONS.len()), 0..8);
    let joules = prop::array::uniform3(0.0f64..10.0);
    (0u32..3, 0u32..4, 0u32..2, frames, 1u64..50, joules).prop_map(
        |(thread, cpu, event, frames, samples, joules)| AnyCell {
            thread,
            cpu,
            event,
            frames,
            samples,
            joules,
        },
    )
}

pub(super) fn any_profile() -> impl Strategy<Value = (Profile, Symbols)> {
    // Never nothing: without joules there is no balance.
    let rest = prop::array::uniform4(0.1f64..5.0);
    (prop::collection::vec(any_cell(), 1..40), rest).prop_map(|(cells, rest)| {
        let mut fixture = Fixture::default();
        fixture.domain("package-0", None, Method::Measured, "power PMU", rest);
        fixture.domain("package-0-cores", Some("package-0"), Method::Measured, "power PMU", rest);
        fixture.domain("dram-0", None, Method::Estimated, "estimate", rest);
        fixture.event("cpu-clock", 0);
        fixture.event("cycles", 0);
        for (tid, process) in [(1, "a"), (2, "a"), (3, "b")] {
            fixture.thread(tid / 3 + 1, tid, &format!("thread {tid}"), process);
        }
        fixture.cpu(0, 0);
        fixture.cpu(1, 0);
        for cell in &cells {
            let frames: Vec<(&str, &str)> = cell
                .frames
                .iter()
                .map(|&(module, function)| (MODULES[module], FUNCTIONS[function]))
                .collect();
            let spent = Spent { samples: cell.samples, millis: cell.samples, joules: &cell.joules };
            fixture.cell_of(cell.thread, cell.cpu, cell.event, &frames, spent);
        }
        fixture.finish()
    })
}

pub(super) fn any_root() -> impl Strategy<Value = Root> {
    prop::sample::select(vec![Root::Automatic, Root::None, Root::Command, Root::Process, Root::Thread])
}

fn any_grouping() -> impl Strategy<Value = Grouping> {
    prop::sample::select(vec![
        Grouping::Function,
        Grouping::Line,
        Grouping::Module,
        Grouping::Thread,
        Grouping::Process,
        Grouping::Command,
        Grouping::Core,
        Grouping::Event,
        Grouping::Domain,
    ])
}

fn any_selection() -> impl Strategy<Value = Selection> {
    let pattern = |text: &'static str| prop::option::of(Just(Regex::new(text).expect("valid")));
    let domain = prop::option::of(prop::sample::select(vec!["package-0", "package-0-cores", "dram-0"]));
    let event = prop::option::of(prop::sample::select(vec!["cpu-clock", "cycles"]));
    (domain, event, pattern("2|3"), pattern("a"), pattern("w"), pattern("mix")).prop_map(
        |(domain, event, thread, process, through, _)| Selection {
            weight: None,
            domain: domain.map(str::to_owned),
            event: event.map(str::to_owned),
            thread,
            process,
            task: None,
            through,
        },
    )
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

fn own_sum(report: &Report) -> f64 {
    report.rows.iter().map(|row| row.own.joules.as_joules()).sum()
}

/// The paths with weight of their own, by what paths have behind a prefix.
fn divide(
    prefix: &mut Vec<TreeFrame>,
    paths: &[(&[TreeFrame], f64)],
    threshold: f64,
    found: &mut Vec<(Vec<TreeFrame>, f64)>,
) {
    let mut own = 0.0;
    let mut branches: BTreeMap<TreeFrame, Vec<(&[TreeFrame], f64)>> = BTreeMap::new();
    for (path, weight) in paths {
        match path.split_first() {
            Some((frame, rest)) => branches.entry(*frame).or_default().push((rest, *weight)),
            None => own += weight,
        }
    }
    for (frame, branch) in branches {
        let weight: f64 = branch.iter().map(|(_, weight)| weight).sum();
        if weight < threshold {
            own += weight;
        } else {
            prefix.push(frame);
            divide(prefix, &branch, threshold, found);
            prefix.pop();
        }
    }
    if own > 0.0 {
        found.push((prefix.clone(), own));
    }
}

/// A frame of a report, with its sums.
fn rows(report: &Report) -> BTreeMap<String, Row> {
    let key = |row: &Row| format!("{} {:?} {:?} {:?}", row.name, row.module, row.place, row.ids);
    report.rows.iter().map(|row| (key(row), row.clone())).collect()
}

fn is_same(a: &Totals, b: &Totals) -> bool {
    near(a.joules.as_joules(), b.joules.as_joules())
        && near(a.variance, b.variance)
        && (a.samples, a.count, a.time) == (b.samples, b.count, b.time)
}

proptest! {
    /// A profile that comes in parts has the sums of the whole.
    #[test]
    fn reports_of_parts_are_reports_of_the_whole(
        (profile, symbols) in any_profile(),
        parts in 1usize..5,
        seed in any::<usize>(),
        by in any_grouping(),
        selection in any_selection(),
        whole in any::<bool>(),
        inline in any::<bool>(),
        of in prop::option::of((any::<bool>(), prop::sample::select(vec!["main", "work", "mix", "leaf"]))),
    ) {
        let divided = Divided::new(&profile, parts, |cell| (cell * 7 + seed % 1000) / 5 % parts);
        let neighbours = of.map(|(callers, function)| Neighbours {
            side: if callers { Side::Callers } else { Side::Callees },
            function: FunctionChoice::Named(function.to_owned()),
        });
        let options = Options { by, selection, whole, inline, neighbours, ..Options::default() };
        let (a, b) = match (Report::new(&profile, &symbols, &options), Report::new(&divided, &symbols, &options)) {
            (Ok(a), Ok(b)) => (a, b),
            (a, b) => {
                prop_assert_eq!(a.err().map(|it| it.to_string()), b.err().map(|it| it.to_string()));
                return Ok(());
            }
        };
        prop_assert_eq!((&a.summary, &a.warnings, &a.neighbours_of), (&b.summary, &b.warnings, &b.neighbours_of));
        prop_assert!(is_same(&a.whole, &b.whole) && is_same(&a.not_selected, &b.not_selected));
        let (a, b) = (rows(&a), rows(&b));
        prop_assert_eq!(a.len(), b.len());
        for ((key, a), (other, b)) in a.iter().zip(&b) {
            prop_assert_eq!(key, other);
            prop_assert!(is_same(&a.own, &b.own) && is_same(&a.total, &b.total), "{:?} and {:?}", a, b);
        }
    }

    /// A call tree of parts is the tree of the whole as long as there is memory for it.
    #[test]
    fn call_trees_of_parts_are_call_trees_of_the_whole(
        (profile, symbols) in any_profile(),
        parts in 1usize..5,
        innermost in any::<bool>(),
        selection in any_selection(),
        root in prop::sample::select(vec![Root::None, Root::Command, Root::Thread]),
        threshold in prop::sample::select(vec![0.0, 0.01, 0.05, 0.2]),
        whole in any::<bool>(),
    ) {
        let divided = Divided::new(&profile, parts, |cell| cell % parts);
        let direction = if innermost { Direction::FromInnermost } else { Direction::FromOutermost };
        let options = TreeOptions { direction, root, selection, whole, ..TreeOptions::default() };
        let (a, b) = match (CallTree::new(&profile, &symbols, &options), CallTree::new(&divided, &symbols, &options)) {
            (Ok(a), Ok(b)) => (a, b),
            (a, b) => {
                prop_assert!(a.is_err() && b.is_err());
                return Ok(());
            }
        };
        prop_assert!(near(a.total(), b.total()));
        prop_assert_eq!(b.folded_share(), None);
        let frames = |tree: &CallTree<'_>| {
            let mut frames = Vec::new();
            tree.for_each_own(threshold * tree.total() * (1.0 + 1e-9), |path, weight| {
                frames.push((path.to_vec(), weight));
                Ok::<(), ReportError>(())
            }).expect("nothing fails");
            frames
        };
        let (a, b) = (frames(&a), frames(&b));
        prop_assert_eq!(a.len(), b.len());
        for ((path, a), (other, b)) in a.iter().zip(&b) {
            prop_assert_eq!(path, other);
            prop_assert!(near(*a, *b));
        }
    }

    /// Several threads see the nodes that one sees, in its order.
    #[test]
    fn threads_walk_a_call_tree_as_one_does(
        (profile, symbols) in any_profile(),
        innermost in any::<bool>(),
        root in prop::sample::select(vec![Root::None, Root::Command, Root::Thread]),
        threshold in prop::sample::select(vec![0.0, 0.01, 0.05, 0.2]),
        whole in any::<bool>(),
        parts in prop::option::of(1usize..4),
    ) {
        let direction = if innermost { Direction::FromInnermost } else { Direction::FromOutermost };
        let options = TreeOptions { direction, root, whole, ..TreeOptions::default() };
        let divided = Divided::new(&profile, parts.unwrap_or(1), |cell| cell % parts.unwrap_or(1));
        let of: &dyn ProfileParts = if parts.is_some() { &divided } else { &profile };
        let tree = CallTree::new(of, &symbols, &options).expect("there are samples");
        let threshold = threshold * tree.total();
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        tree.for_each_own(threshold, |path, weight| {
            expected.push((path.to_vec(), weight));
            Ok::<(), ReportError>(())
        }).expect("nothing fails");
        type Nodes = Vec<(Vec<TreeFrame>, f64)>;
        tree.for_each_own_at_once(
            threshold,
            |nodes: &mut Nodes, path, weight| nodes.push((path.to_vec(), weight)),
            |nodes| {
                found.extend(nodes);
                Ok::<(), ReportError>(())
            },
        ).expect("nothing fails");
        prop_assert_eq!(expected, found);
    }

    /// Shown + cut + filtered + not selected = attributed; with the balance's rows, of which what is not selected is one: = measured.
    #[test]
    fn rows_add_up_to_the_balance(
        (profile, symbols) in any_profile(),
        by in any_grouping(),
        selection in any_selection(),
        limit in prop::option::of(0usize..6),
        filtered in any::<bool>(),
        whole in any::<bool>(),
        inline in any::<bool>(),
    ) {
        let rows = filtered.then(|| Regex::new("a|w").expect("valid"));
        let options = Options { by, selection, limit, rows, whole, inline, ..Options::default() };
        let report = Report::new(&profile, &symbols, &options).expect("the options name what there is");
        let beside = if whole { 0.0 } else { report.not_selected.joules.as_joules() };
        let sum = own_sum(&report) + (report.cut.1.joules + report.filtered.1.joules).as_joules() + beside;
        let balance = &report.summary.balance;
        let all = if whole { balance.measured } else { balance.attributed };
        prop_assert!(near(sum, all.as_joules()), "{sum} J in rows, {all} in the balance");
        prop_assert!(balance.holds());
        let of_paths = |text: &str| {
            text.contains("call paths") || text.contains("without symbols") || text.contains(" matches --filter ")
        };
        let others = report.warnings.iter().filter(|warning| !of_paths(warning.as_str())).count();
        prop_assert_eq!(others, 0, "{:?}", report.warnings);
    }

    /// A row's own part is at most its total, and no total is more than the whole.
    #[test]
    fn own_is_at_most_total((profile, symbols) in any_profile(), by in any_grouping()) {
        let report = Report::new(&profile, &symbols, &Options { by, ..Options::default() }).expect("valid");
        for row in &report.rows {
            let rounding = 1e-9 * report.whole.joules.as_joules().max(1.0);
            prop_assert!(row.own.joules.as_joules() <= row.total.joules.as_joules() + rounding);
            prop_assert!(row.own.samples <= row.total.samples);
            // What a meter inside another one measures is not bounded by the outer one.
            if by != Grouping::Domain {
                prop_assert!(row.total.joules.as_joules() <= report.whole.joules.as_joules() + rounding);
            }
            prop_assert!(row.total.samples <= report.whole.samples);
        }
    }

    /// What its callers brought, and what it spent itself and in what it called, is a function's total.
    #[test]
    fn callers_and_callees_add_up_to_the_total((profile, symbols) in any_profile(), inline in any::<bool>()) {
        let plain = Options { by: Grouping::Module, inline, ..Options::default() };
        let report = Report::new(&profile, &symbols, &plain).expect("valid");
        let functions = Report::new(&profile, &symbols, &Options { by: Grouping::Function, ..plain }).expect("valid");
        prop_assert!(near(own_sum(&report), own_sum(&functions)));
        for name in ["main", "work", "mix", "leaf"] {
            // Exactly one module, so that the name means one row.
            let mut of_name = functions.rows.iter().filter(|row| row.name.as_str() == name);
            let (Some(row), None) = (of_name.next(), of_name.next()) else { continue };
            for side in [Side::Callers, Side::Callees] {
                let neighbours = Some(Neighbours { side, function: FunctionChoice::Named(name.to_owned()) });
                let options = Options { neighbours, inline, ..Options::default() };
                let report = Report::new(&profile, &symbols, &options).expect("it has samples");
                prop_assert!(near(own_sum(&report), row.total.joules.as_joules()));
                prop_assert!(report.rows.iter().all(|row| row.name.as_str() != name));
            }
        }
    }

    /// However a call tree is read and wherever it is cut, its weight stays.
    #[test]
    fn call_trees_keep_their_weight(
        (profile, symbols) in any_profile(),
        innermost in any::<bool>(),
        root in any_root(),
        threshold in 0.0f64..0.5,
        whole in any::<bool>(),
    ) {
        let direction = if innermost { Direction::FromInnermost } else { Direction::FromOutermost };
        let options = TreeOptions { direction, root, whole, ..TreeOptions::default() };
        let tree = CallTree::new(&profile, &symbols, &options).expect("there are samples");
        let balance = &tree.summary.balance;
        let all = if whole { balance.measured } else { balance.attributed };
        prop_assert!(near(tree.total(), all.as_joules()));
        let (mut sum, mut numbers) = (0.0, 0);
        let mut whole_numbers = WholeNumbers::new(1e6);
        tree.for_each_own(threshold * tree.total(), |_, weight| {
            sum += weight;
            numbers += whole_numbers.next(weight);
            Ok::<(), ReportError>(())
        }).expect("nothing fails");
        prop_assert!(near(sum, tree.total()));
        prop_assert!((numbers as f64 - tree.total() * 1e6).abs() <= 1.0);
    }

    /// A call tree is what dividing its paths frame by frame makes of them.
    #[test]
    fn call_trees_are_made_of_their_paths(
        (profile, symbols) in any_profile(),
        innermost in any::<bool>(),
        no_inline in any::<bool>(),
        threshold in prop::sample::select(vec![0.0, 0.01, 0.05, 0.2]),
    ) {
        let direction = if innermost { Direction::FromInnermost } else { Direction::FromOutermost };
        let options = TreeOptions { direction, root: Root::None, no_inline, ..TreeOptions::default() };
        let tree = CallTree::new(&profile, &symbols, &options).expect("there are samples");
        let threshold = threshold * tree.total();
        let paths: Vec<(Vec<TreeFrame>, f64)> =
            tree.cells(&profile).map(|(_, totals, path)| (tree.frames_of(&profile, path), totals.weight(tree.weight))).collect();
        let all: Vec<(&[TreeFrame], f64)> = paths.iter().map(|(path, weight)| (&path[..], *weight)).collect();
        let mut expected = Vec::new();
        divide(&mut Vec::new(), &all, threshold, &mut expected);
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        let mut seen = Vec::new();
        tree.for_each_own(threshold, |path, weight| {
            // What is too light at the lowest level has a frame of its own.
            let is_code = path.iter().all(|frame| matches!(frame, TreeFrame::Key(_)));
            seen.push((if is_code { path.to_vec() } else { Vec::new() }, weight));
            Ok::<(), ReportError>(())
        }).expect("nothing fails");
        seen.sort_by(|a, b| a.0.cmp(&b.0));
        prop_assert_eq!(seen.len(), expected.len());
        for ((path, weight), (expected_path, expected)) in seen.iter().zip(&expected) {
            prop_assert_eq!(path, expected_path);
            prop_assert!(near(*weight, *expected));
        }
    }

    /// The order in which cells and stacks come changes nothing but the last bits of sums.
    #[test]
    fn order_changes_nothing(
        cells in prop::collection::vec(any_cell(), 1..20),
        by in any_grouping(),
    ) {
        let build = |cells: &mut dyn Iterator<Item = &AnyCell>| {
            let mut fixture = Fixture::default();
            fixture.domain("package-0", None, Method::Measured, "power PMU", [0.0; 4]);
            fixture.event("cpu-clock", 0);
            fixture.event("cycles", 0);
            for tid in 1..4 {
                fixture.thread(tid, tid, "thread", "app");
            }
            for cell in cells {
                let frames: Vec<(&str, &str)> =
                    cell.frames.iter().map(|&(module, function)| (MODULES[module], FUNCTIONS[function])).collect();
                // Whole numbers of joules add up exactly in any order.
                let joules = [cell.joules[0].round()];
                let spent = Spent { samples: cell.samples, millis: 1, joules: &joules };
                fixture.cell_of(cell.thread, cell.cpu, cell.event, &frames, spent);
            }
            let (profile, symbols) = fixture.finish();
            let report = Report::new(&profile, &symbols, &Options { by, ..Options::default() }).ok()?;
            let rows: Vec<String> = report.rows.iter().map(|row| {
                format!("{} {:?} {:?} {} {}", row.name, row.module, row.ids, row.own.joules, row.total.joules)
            }).collect();
            Some(rows)
        };
        prop_assert_eq!(build(&mut cells.iter()), build(&mut cells.iter().rev()));
    }
}
