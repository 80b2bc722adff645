//! What the page's script works on.

use serde::Serialize;

use super::code::Code;
use super::difference;
use super::extras::Extras;
use super::functions::Functions;
use super::leaves::{LeafTable, MOST_LEAVES, Places};
use super::lines::Lines;
use super::timeline::{Slices, Units};
use crate::label::Label;
use crate::profile::{BucketReason, Profile, ProfileMethod, USUAL_REFRESH};
use crate::report::heading::{heading, provenance};
use crate::report::nodes::Nodes;
use crate::report::summary::{method_name, whole_title};
use crate::report::tree::CallTree;
use crate::report::{DomainSummary, Report, ReportError, Weight};
use crate::units::Joules;

/// So few pieces of time are seen one by one.
const FEW_PIECES: usize = 100;
/// A bucket so many times smaller still has some moves of the meters.
const FINER: f64 = 8.0;

/// The page's data. All weights are whole numbers of `unit`s, or samples.
#[derive(Serialize)]
pub struct Page<'a> {
    heading: String,
    subject: Option<Label>,
    how: String,
    /// What the joules of all domains are: measured, estimated, or some of each.
    whole: &'static str,
    /// How the joules were found, where a reader could take them for measured.
    estimate: Option<&'static str>,
    /// Units per joule; 1 where samples weigh.
    unit: f64,
    weight: &'static str,
    seconds: f64,
    /// Units of the slices' CPU time per second; 0 if times tell of no power.
    time_unit: f64,
    /// Branches lighter than this share are part of their callers.
    lightest: f64,
    warnings: Vec<Label>,
    balance: Vec<(&'static str, Joules)>,
    domains: Vec<Domain<'a>>,
    modules: Vec<&'a str>,
    functions: Functions<'a>,
    /// Of each node of the call tree, parents first: how far before it its parent stands, and its function. Node 0 is
    /// all.
    up: Vec<u32>,
    node_functions: Vec<u32>,
    threads: Vec<Label>,
    cpus: Vec<Label>,
    leaves: LeafTable,
    slices: Slices,
    /// Seconds from the start to each gap between recordings, which is left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Lines>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
    #[serde(skip_serializing_if = "Option::is_none")]
    older: Option<difference::Older>,
}

#[derive(Serialize)]
struct Domain<'a> {
    name: &'a Label,
    /// The domain that it lies in.
    parent: Option<usize>,
    /// How many domains it lies in.
    depth: usize,
    /// It is part of the sums.
    counted: bool,
    /// Seconds from one reading of the meter to the next, and joules that it tells apart.
    refresh: f64,
    resolution: Joules,
    method: &'static str,
}

impl<'a> Page<'a> {
    /// Makes the data of a call tree. The nodes are given for what they are borrowed from.
    pub fn new(
        tree: &'a CallTree<'_>,
        report: &'a Report,
        extras: &mut Extras<'_>,
    ) -> Result<Self, ReportError> {
        let has_joules = tree.weight == Weight::Joules;
        let unit = if has_joules { unit(tree.total()) } else { 1.0 };
        let units = Units { weight: unit, seconds: time_unit(tree) };
        let places = Places::new(tree);
        let mut nodes = Nodes::new(tree, 0.0);
        let (mut slices, mut leaves) = Slices::new(tree, &mut nodes, &places, false, units);
        while leaves.all.len() > MOST_LEAVES || slices.are_too_many {
            if leaves.are_apart {
                let Some(fewer) = nodes.with_fewer(tree) else { break };
                nodes = fewer;
            }
            (slices, leaves) = Slices::new(tree, &mut nodes, &places, true, units);
        }
        let older =
            extras.older.map(|older| difference::Older::new(older, tree, &nodes, unit)).transpose()?;
        let lines = extras.symbols.map(|symbols| Lines::new(tree, symbols, &mut nodes, unit));
        let lines = lines.map(|mut lines| {
            if let Some(sources) = extras.sources.as_deref_mut() {
                lines.add_texts(sources);
            }
            lines
        });
        let balance = &report.summary.balance;
        let mut parts = vec![("program", balance.attributed)];
        parts.extend(balance.unattributed().map(|(name, joules)| (name.trim_matches(['[', ']']), joules)));
        let functions = Functions::new(tree, &nodes, unit);
        let up = (0..).zip(&nodes.parents).map(|(node, parent): (u32, _)| node - parent).collect();
        Ok(Self {
            heading: heading(tree),
            subject: tree.summary.subject.clone(),
            how: provenance(&tree.summary, tree.weight),
            whole: whole_title(tree.summary.method),
            estimate: tree.summary.estimate_mark().filter(|_| has_joules),
            unit,
            weight: tree.weight.name(),
            seconds: tree.summary.duration.as_secs_f64(),
            time_unit: units.seconds,
            lightest: nodes.lightest,
            warnings: report
                .warnings
                .iter()
                .cloned()
                .chain(tree.warning().map(|it| Label::new(&it)))
                .chain(coarse_time(tree.parts().profile(), slices.pieces()))
                .collect(),
            balance: if has_joules { parts } else { Vec::new() },
            domains: tree
                .summary
                .domains
                .iter()
                .zip(&tree.parts().profile().domains)
                .map(|(domain, energy)| Domain {
                    name: &domain.name,
                    parent: place_of(&tree.summary.domains, domain.parent.as_ref()),
                    depth: domain.depth,
                    counted: domain.counted,
                    refresh: energy.info.refresh.unwrap_or(USUAL_REFRESH).as_secs_f64(),
                    resolution: energy.info.resolution.unwrap_or(Joules::ZERO),
                    method: method_name(crate::profile::ProfileMethod::of([domain.method].into_iter())),
                })
                .collect(),
            modules: functions.modules.clone(),
            functions,
            up,
            leaves: leaves.table(&nodes),
            node_functions: nodes.node_frames,
            threads: places.threads.names,
            cpus: places.cpus.names,
            slices,
            gaps: tree.parts().profile().gaps.iter().map(|gap| gap.after.as_secs_f64()).collect(),
            lines,
            code: extras.code.map(|code| Code::new(code, unit)),
            older,
        })
    }
}

/// What a reader must know of pieces of time that are longer than what runs in them.
fn coarse_time(profile: &Profile, pieces: usize) -> Option<Label> {
    let division = profile.division.as_ref()?;
    let is_coarse =
        division.bucket_reason == BucketReason::MeterResolution && (2..FEW_PIECES).contains(&pieces);
    let smaller = match division.bucket.as_joules() / FINER {
        joules @ 1.0.. => format!("{joules:.0}J"),
        joules => format!("{:.0}mJ", (joules * 1e3).max(1.0)),
    };
    let seldom = match profile.method() {
        ProfileMethod::Estimated => "CPU times that are counted in ticks",
        _ => "meters that move so seldom",
    };
    let said = format!(
        "time is in few pieces, of {}: what {seldom} tell to 5 %. A smaller bucket shows more of time, and more noise: \
         --bucket {smaller}",
        division.bucket
    );
    is_coarse.then(|| Label::new(&said))
}

fn place_of(domains: &[DomainSummary], name: Option<&Label>) -> Option<usize> {
    domains.iter().position(|domain| Some(&domain.name) == name)
}

/// Units per second of CPU time, which has five digits or more; 0 where all code draws the same.
fn time_unit(tree: &CallTree<'_>) -> f64 {
    match tree.summary.duration.as_secs_f64() {
        _ if tree.weight != Weight::Joules || tree.summary.is_by_time => 0.0,
        ..0.5 => 1e6,
        ..50.0 => 1e5,
        ..5e3 => 1e4,
        _ => 1e3,
    }
}

/// Units per joule: of so much energy they are whole numbers of six digits or more, and no more than need be.
fn unit(joules: f64) -> f64 {
    match joules {
        ..1.0 => 1e9,
        ..1e4 => 1e6,
        _ => 1e3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Method;
    use crate::profile::TimeSlice;
    use crate::report::Options;
    use crate::report::fixture::{Fixture, Spent, in_slice};
    use crate::report::tree::TreeOptions;
    use crate::units::{Nanoseconds, Timestamp};

    /// 200 functions below each of 60 callers, which all ran in each of 32 pieces of time: 384,000 weights, of which ten pieces have 120,000.
    #[test]
    fn a_page_has_less_of_its_tree_where_few_pieces_of_time_have_too_many_weights() {
        let mut fixture = Fixture::default();
        fixture.domain("package-0", None, Method::Measured, "power PMU", [0.0; 4]);
        fixture.event("cpu-clock", 0);
        fixture.thread(1, 1, "app", "app");
        fixture.cpu(0, 0);
        for number in 0..12_000_u32 {
            let (caller, called) = (format!("caller_{}", number / 200), format!("called_{}", number % 200));
            let spent = Spent { samples: 1, millis: 1, joules: &[0.01] };
            fixture.cell_of(0, 0, 0, &[("/app", "main"), ("/app", &caller), ("/app", &called)], spent);
        }
        fixture.profile.start = Timestamp::from_nanos(0);
        fixture.profile.duration = Nanoseconds::from_millis(32_000);
        let piece: Vec<(u32, f32)> = (0..12_000).map(|cell| (cell, 0.01 / 32.0)).collect();
        fixture.profile.slices = (0..32)
            .map(|at| TimeSlice {
                start: Timestamp::from_nanos(at * 1_000_000_000),
                end: Timestamp::from_nanos((at + 1) * 1_000_000_000),
                measured: vec![Joules::from_joules(3.75)],
                modelled: Joules::ZERO,
                balance: Default::default(),
                by_cell: in_slice(&piece),
            })
            .collect();
        let (profile, symbols) = fixture.finish();
        let tree = CallTree::new(&profile, &symbols, &TreeOptions::default()).expect("a tree");
        let report = Report::new(&profile, &symbols, &Options::default()).expect("a report");
        let page = Page::new(&tree, &report, &mut Extras::default()).expect("a page");
        assert!(!page.slices.are_too_many);
        let page = serde_json::to_value(&page).expect("JSON");
        let own = page["slices"]["own"].as_array().expect("pieces");
        let pairs: Vec<&[serde_json::Value]> =
            own.iter().flat_map(|piece| piece.as_array().expect("pairs").chunks(2)).collect();
        assert!(own.len() >= 16 && (1_000..=65_000).contains(&pairs.len()), "{}: {}", own.len(), pairs.len());
        // All 120 J; where leaves of callers and of the functions below them are apart, both have them.
        let sum: u64 = pairs.iter().filter_map(|pair| pair[1].as_u64()).sum();
        let joules = sum as f64 / page["unit"].as_f64().expect("a number");
        assert!((joules - 240.0).abs() < 0.01, "{joules} J");
    }
}
