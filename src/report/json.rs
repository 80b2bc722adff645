//! A report as JSON. Fields are only ever added.
//!
//! Joules are `null`, not 0, where there are none (`method` is then `"none"`). In `balance`,
//! `attributed + static + other + lost + recorder` is `total_joules`: `other` is other processes, and `recorder` eprof itself. `rows` are what was attributed; rows of the balance itself (named in
//! square brackets, `kind` is `"balance"`) are among them only if asked for, and what `not_selected` has then, too. What is not known, as
//! an error (`stderr_joules`) of callers, is `null`. `hidden_callers` tells of how many samples
//! the chain of frame pointers lacked callers that were found elsewhere, and of how many it still lacks them, or it is not known whether it does.

use std::io::Write;

use serde::Serialize;

use super::json_balance::JsonBalance;
use super::json_origin::{JsonMachine, JsonRecording, json_recordings};
use super::select::{Totals, Weight};
use super::summary::method_name;
use super::{DivisionSummary, DomainSummary, Grouping, Report, ReportError, Row, RowKind, Side, Verified};
use crate::hardware::Method;
use crate::label::Label;
use crate::units::{Joules, Watts};

/// Writes a report as one JSON object.
///
/// # Errors
/// If writing fails.
pub fn write(report: &Report, mut out: impl Write) -> Result<(), ReportError> {
    serde_json::to_writer_pretty(&mut out, &JsonReport::new(report)).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

#[derive(Serialize)]
struct JsonReport<'a> {
    eprof_version: &'static str,
    subject: Option<&'a Label>,
    total_joules: Option<Joules>,
    method: &'static str,
    /// What assumed watts may be off by, one standard error as a share of them, where joules are estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed_watts_error: Option<f64>,
    /// The recording's end is missing.
    partial: bool,
    duration_s: f64,
    mean_watts: Option<Watts>,
    samples: u64,
    lost_samples: u64,
    domains: Vec<JsonDomain<'a>>,
    balance: Option<JsonBalance>,
    events: Vec<JsonEvent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    division: Option<&'a DivisionSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden_callers: Option<JsonHiddenCallers>,
    /// What `eprof verify` found on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<&'a Verified>,
    /// Where the recordings come from, in the order of `recording` in `machines`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recordings: Vec<JsonRecording<'a>>,
    /// The balance of each machine, where there are several recordings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    machines: Vec<JsonMachine<'a>>,
    warnings: &'a [Label],
    weight: &'static str,
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    callers_of: Option<&'a Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callees_of: Option<&'a Label>,
    rows: Vec<JsonRow<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_cut: Option<JsonRest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_filtered: Option<JsonRest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_selected: Option<JsonRest>,
}

#[derive(Serialize)]
struct JsonDomain<'a> {
    name: &'a Label,
    joules: Joules,
    source: &'a Label,
    method: Method,
    parent: Option<&'a Label>,
    counted: bool,
    balance: JsonBalance,
}

#[derive(Serialize)]
struct JsonEvent<'a> {
    name: &'a Label,
    samples: u64,
    count: u64,
    lost: u64,
    of_others: u64,
    throttled: u64,
}

/// Samples whose chain of frame pointers lacked a caller, of those that were looked at.
#[derive(Serialize)]
struct JsonHiddenCallers {
    samples: u64,
    found: u64,
    out_of_reach: u64,
    unknown: u64,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    kind: &'static str,
    name: &'a Label,
    module: Option<&'a Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// What its recordings are by each dimension of `by`.
    #[serde(skip_serializing_if = "<[Label]>::is_empty")]
    values: &'a [Label],
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    self_joules: Option<Joules>,
    total_joules: Option<Joules>,
    stderr_joules: Option<Joules>,
    /// Joules of a domain have none.
    self_samples: Option<u64>,
    total_samples: Option<u64>,
    self_count: Option<u64>,
    total_count: Option<u64>,
    self_share: Option<f64>,
    total_share: Option<f64>,
    self_time_s: f64,
    self_time_share: Option<f64>,
    self_watts: Option<Watts>,
}

#[derive(Serialize)]
struct JsonRest {
    rows: usize,
    joules: Option<Joules>,
    samples: u64,
}

/// What rows stand for: `function`, or `rank,function`.
fn by(report: &Report) -> String {
    let dimensions = report.dimensions.iter().map(ToString::to_string);
    let rows = (report.by != Grouping::Recording).then(|| report.by.name().to_owned());
    dimensions.chain(rows).collect::<Vec<_>>().join(",")
}

impl<'a> JsonReport<'a> {
    fn new(report: &'a Report) -> Self {
        let summary = &report.summary;
        let has_joules = summary.has_joules();
        let hidden = summary.hidden_callers;
        let rest = |(rows, totals): (usize, Totals)| {
            (rows > 0 || !totals.is_empty()).then(|| JsonRest {
                rows,
                joules: has_joules.then_some(totals.joules),
                samples: totals.samples,
            })
        };
        let neighbours_of =
            |wanted| report.neighbours_of.as_ref().filter(|(side, _)| *side == wanted).map(|(_, name)| name);
        Self {
            eprof_version: env!("CARGO_PKG_VERSION"),
            subject: summary.subject.as_ref(),
            total_joules: has_joules.then_some(summary.balance.measured),
            method: method_name(summary.method),
            assumed_watts_error: summary.watts_error,
            partial: summary.is_partial,
            duration_s: summary.duration.as_secs_f64(),
            mean_watts: summary.mean_power(),
            samples: summary.samples(),
            lost_samples: summary.lost(),
            domains: summary.domains.iter().map(JsonDomain::new).collect(),
            balance: has_joules.then(|| JsonBalance::new(&summary.balance)),
            events: summary
                .events
                .iter()
                .map(|event| JsonEvent {
                    name: &event.name,
                    samples: event.samples,
                    count: event.count,
                    lost: event.lost,
                    of_others: event.of_others,
                    throttled: event.throttled,
                })
                .collect(),
            division: summary.division.as_ref(),
            hidden_callers: (hidden.samples > 0).then_some(JsonHiddenCallers {
                samples: hidden.samples,
                found: hidden.found,
                out_of_reach: hidden.out_of_reach,
                unknown: hidden.unknown,
            }),
            verified: summary.verified.as_ref(),
            recordings: json_recordings(summary),
            machines: summary.machines.iter().map(JsonMachine::new).collect(),
            warnings: &report.warnings,
            weight: report.weight.name(),
            by: by(report),
            callers_of: neighbours_of(Side::Callers),
            callees_of: neighbours_of(Side::Callees),
            rows: report.rows.iter().map(|row| JsonRow::new(report, row)).collect(),
            rows_cut: rest(report.cut),
            rows_filtered: rest(report.filtered),
            not_selected: rest((0, report.not_selected)),
        }
    }
}

impl<'a> JsonDomain<'a> {
    fn new(domain: &'a DomainSummary) -> Self {
        Self {
            name: &domain.name,
            joules: domain.balance.measured,
            source: &domain.source,
            method: domain.method,
            parent: domain.parent.as_ref(),
            counted: domain.counted,
            balance: JsonBalance::new(&domain.balance),
        }
    }
}

impl<'a> JsonRow<'a> {
    fn new(report: &'a Report, row: &'a Row) -> Self {
        let sampled = row.kind == RowKind::Samples;
        let of_samples = report.by != Grouping::Domain;
        Self {
            kind: if sampled { "samples" } else { "balance" },
            name: &row.name,
            module: row.module.as_ref(),
            function: row.place.as_ref().map(|place| &place.function),
            file: row.place.as_ref().map(|place| &place.file),
            line: row.place.as_ref().map(|place| place.line),
            values: &row.values,
            pid: row.ids.0,
            tid: row.ids.1,
            self_joules: report.joules(row, &row.own),
            total_joules: report.joules(row, &row.total),
            stderr_joules: report.error(row),
            self_samples: of_samples.then_some(row.own.samples),
            total_samples: of_samples.then_some(row.total.samples),
            self_count: of_samples.then_some(row.own.count),
            total_count: of_samples.then_some(row.total.count),
            self_share: report.share(&row.own),
            total_share: report.share(&row.total),
            self_time_s: row.own.time.as_secs_f64(),
            self_time_share: report.time_share(&row.own).filter(|_| sampled),
            self_watts: report.watts(row).filter(|_| report.weight == Weight::Joules),
        }
    }
}
