//! By which model the joules of a report were divided, and how good it is.

use serde::Serialize;

use crate::label::Label;
use crate::profile::{BucketReason, Division, DomainDivision, Profile};
use crate::units::{Joules, Watts};

/// How joules were divided among samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DivisionSummary {
    /// The power model's name; `time` if there was none.
    pub model: Label,
    /// Where its numbers come from.
    pub source: Label,
    /// The recording was not asked to correct it.
    pub exact: bool,
    /// Events that joules were divided by.
    pub events: Vec<Label>,
    /// Events whose samples got no joules, and why.
    pub left_out: Vec<LeftOutEvent>,
    /// The model of each domain that has one.
    pub domains: Vec<DomainModelSummary>,
    /// Energy of a bucket.
    pub bucket_joules: Joules,
    /// Why so much: `usual`, `asked`, `short-recording` or `meter-resolution`.
    pub bucket_reason: &'static str,
    /// Static energy was shared out to what ran meanwhile.
    pub static_is_spread: bool,
}

/// An event whose samples got no joules.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOutEvent {
    /// The event.
    pub event: Label,
    /// Why.
    pub reason: Label,
}

/// The model of one domain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DomainModelSummary {
    /// The domain.
    pub name: Label,
    /// The recording itself told the coefficients.
    pub calibrated: bool,
    /// Share of the variance of measured power that the model explains; `null` where it hardly varied.
    pub explained: Option<f64>,
    /// Mean difference of estimated and measured joules of an interval, as a share of the mean.
    pub mean_error: f64,
    /// How much of what code differs by in power the model leaves unexplained, as a standard deviation: from 0, where it
    /// explains all that is not noise, to 1, where time alone says as much; `null` where that is lost in noise.
    pub unexplained: Option<f64>,
    /// Intervals that these were computed over.
    pub intervals: usize,
    /// Constant power; `null` where it is not known.
    pub static_watts: Option<Watts>,
    /// Its standard error.
    pub static_std_error: Watts,
    /// What an event costs, of events that cost anything.
    pub coefficients: Vec<EventCost>,
}

/// The cost of one event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventCost {
    /// The event.
    pub event: Label,
    /// Joules of one.
    pub joules: f64,
    /// Standard error.
    pub std_error: f64,
}

impl DivisionSummary {
    pub(super) fn new(division: &Division, profile: &Profile) -> Self {
        let name = |event: usize| profile.events.get(event).map(|event| Label::new(&event.name));
        let mut events = Vec::new();
        let mut left_out = Vec::new();
        let is_sampled = |event: usize| profile.events.get(event).is_some_and(|event| event.samples > 0);
        for (index, reason) in division.left_out.iter().enumerate() {
            match (name(index), reason) {
                (Some(event), Some(reason)) => {
                    left_out.push(LeftOutEvent { event, reason: Label::new(reason) });
                }
                (Some(event), None) if is_sampled(index) => events.push(event),
                _ => {}
            }
        }
        let domains = profile.domains.iter().zip(&division.domains);
        Self {
            model: Label::new(&division.model),
            source: Label::new(&division.source),
            exact: division.is_exact,
            events,
            left_out,
            domains: domains
                .filter_map(|(domain, model)| {
                    Some(DomainModelSummary::new(&domain.info.name, model.as_ref()?, profile))
                })
                .collect(),
            bucket_joules: division.bucket,
            bucket_reason: match division.bucket_reason {
                BucketReason::Usual => "usual",
                BucketReason::Asked => "asked",
                BucketReason::ShortRecording => "short-recording",
                BucketReason::MeterResolution => "meter-resolution",
            },
            static_is_spread: division.static_is_spread,
        }
    }

    /// The whole in words.
    pub(super) fn sentence(&self) -> String {
        let mut text = match self.model.as_str() {
            "time" => format!("by time: {}", self.source.as_str()),
            "self" => "by a model fitted to this recording alone".to_owned(),
            name => format!("by the model `{name}`"),
        };
        if !self.domains.is_empty() {
            let calibrated = self.domains.iter().any(|domain| domain.calibrated);
            if self.model.as_str() != "self" {
                text += match (self.exact, calibrated) {
                    (true, _) => ", as it is",
                    (false, true) => ", corrected by this recording",
                    (false, false) => ", whose power varied too little to correct it",
                };
            }
            let names: Vec<&str> = self.events.iter().map(Label::as_str).collect();
            text += &format!("; events: {}", names.join(", "));
            for LeftOutEvent { event, reason } in &self.left_out {
                text += &format!("; without {} ({})", event.as_str(), reason.as_str());
            }
            for domain in &self.domains {
                text += &format!("; {}: {}", domain.name.as_str(), domain.quality());
            }
        }
        let why = match self.bucket_reason {
            "short-recording" => ", as the recording is short",
            "meter-resolution" => ", the least that the meters tell apart",
            _ => "",
        };
        let spread = if self.static_is_spread { "; static energy shared out" } else { "" };
        format!("{text}; buckets of {}{why}{spread}", self.bucket_joules)
    }
}

impl DomainModelSummary {
    fn new(name: &str, model: &DomainDivision, profile: &Profile) -> Self {
        let costs = model.joules_per_event.iter().zip(&model.std_errors).zip(&profile.events);
        let costs = costs.filter(|((joules, _), _)| **joules > 0.0);
        Self {
            name: Label::new(name),
            calibrated: model.is_calibrated,
            explained: model.explained,
            mean_error: model.mean_error,
            unexplained: model.unexplained.map(|unexplained| unexplained.of_difference),
            intervals: model.intervals,
            static_watts: model.static_power,
            static_std_error: model.static_std_error,
            coefficients: costs
                .map(|((joules, error), event)| EventCost {
                    event: Label::new(&event.name),
                    joules: *joules,
                    std_error: *error,
                })
                .collect(),
        }
    }

    fn quality(&self) -> String {
        let explained = match self.explained {
            Some(share) => format!("explains {:.1}% of the varying power", share.max(0.0) * 100.0),
            None => "its power hardly varied".to_owned(),
        };
        let constant = match self.static_watts {
            Some(watts) => format!("static {watts}"),
            None => "static part not known".to_owned(),
        };
        format!("{explained}, mean error {:.1}%, {constant}", self.mean_error * 100.0)
    }
}
