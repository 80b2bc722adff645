//! By which model the joules of a report were divided, and how good it is.

use serde::Serialize;

use crate::label::Label;
use crate::profile::{BucketReason, Division, DomainDivision, Profile, ProfileMethod};
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
    /// The event that joules follow in place of time, where none tells time: nobody knows the joules of any function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_of_time: Option<Label>,
    /// No meter counted: CPU times tell buckets apart.
    #[serde(skip)]
    pub is_estimated: bool,
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
    /// How constant power changed while the program ran, if it did and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub static_change: Option<StaticChange>,
    /// What an event costs, of events that cost anything.
    pub coefficients: Vec<EventCost>,
}

/// Constant power that was not the same all the time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StaticChange {
    /// Watts at the beginning.
    pub from_watts: Watts,
    /// Watts at the end.
    pub to_watts: Watts,
    /// Standard error of the change, on average over the recording.
    pub std_error: Watts,
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
            in_place_of_time: division.in_place_of_time.as_deref().map(Label::new),
            is_estimated: profile.method() == ProfileMethod::Estimated,
        }
    }

    /// The whole in words.
    pub(super) fn sentence(&self) -> String {
        let mut text = match (self.model.as_str(), &self.in_place_of_time) {
            ("time", Some(event)) => {
                format!("by how often {} happened: no event tells time", event.as_str())
            }
            ("time", None) => format!("by time: {}", self.source.as_str()),
            ("self", _) => "by a model fitted to this recording alone".to_owned(),
            (name, _) => format!("by the model `{name}`"),
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
            "meter-resolution" if self.is_estimated => ", the least that CPU times tell apart",
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
            static_change: model.static_rise.map(|rise| StaticChange {
                from_watts: rise.from,
                to_watts: rise.to,
                std_error: rise.std_error,
            }),
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
        let constant = match (self.static_change, self.static_watts) {
            (Some(change), _) => format!("static {} to {}", change.from_watts, change.to_watts),
            (None, Some(watts)) => format!("static {watts}"),
            (None, None) => "static part not known".to_owned(),
        };
        format!("{explained}, mean error {:.1}%, {constant}", self.mean_error * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{DomainInfo, DomainKind, Method};
    use crate::profile::{Balance, DomainEnergy, EventTotals, StaticRise};

    fn profile() -> Profile {
        let event = |(name, samples): (&str, u64)| EventTotals {
            name: name.to_owned(),
            samples,
            ..EventTotals::default()
        };
        let domain = |name: &str| DomainEnergy {
            info: DomainInfo::new(name, DomainKind::Package, "test", Method::Measured),
            balance: Balance::default(),
        };
        Profile {
            events: [("cycles", 9), ("misses", 5), ("rare", 2), ("never", 0)].map(event).to_vec(),
            domains: ["package-0", "dram-0"].map(domain).to_vec(),
            ..Profile::default()
        }
    }

    fn of_domain(explained: Option<f64>, static_power: Option<Watts>, is_calibrated: bool) -> DomainDivision {
        DomainDivision {
            joules_per_event: vec![2e-9, 0.0, 1e-9, 4e-9],
            std_errors: vec![1e-10, 2e-10, 3e-10, 4e-10],
            static_power,
            static_std_error: Watts::from_watts(0.5),
            static_rise: None,
            is_calibrated,
            explained,
            mean_error: 0.0123,
            unexplained: None,
            believed_unexplained: 0.0,
            intervals: 40,
        }
    }

    fn division(model: &str, domains: Vec<Option<DomainDivision>>, reason: BucketReason) -> Division {
        Division {
            model: model.to_owned(),
            source: "typical watts".to_owned(),
            is_exact: false,
            left_out: vec![None, None, Some("too few samples".to_owned()), None],
            domains,
            bucket: Joules::from_joules(0.25),
            bucket_reason: reason,
            is_by_time: false,
            static_is_spread: false,
            in_place_of_time: None,
        }
    }

    fn sentence(division: &Division) -> String {
        DivisionSummary::new(division, &profile()).sentence()
    }

    #[test]
    fn why_buckets_are_as_large_is_told() {
        for (reason, name, why) in [
            (BucketReason::Usual, "usual", ""),
            (BucketReason::Asked, "asked", ""),
            (BucketReason::ShortRecording, "short-recording", ", as the recording is short"),
            (BucketReason::MeterResolution, "meter-resolution", ", the least that the meters tell apart"),
        ] {
            let of = division("time", vec![None, None], reason);
            assert_eq!(DivisionSummary::new(&of, &profile()).bucket_reason, name);
            assert_eq!(sentence(&of), format!("by time: typical watts; buckets of 250.0 mJ{why}"));
        }
        let spread =
            Division { static_is_spread: true, ..division("time", vec![None, None], BucketReason::Usual) };
        assert!(sentence(&spread).ends_with("250.0 mJ; static energy shared out"));
    }

    #[test]
    fn models_are_told_with_what_they_explain() {
        let watts = Some(Watts::from_watts(12.0));
        let of = |model: &str, is_exact: bool, calibrated: bool| {
            let domains = vec![None, Some(of_domain(Some(0.987), watts, calibrated))];
            sentence(&Division { is_exact, ..division(model, domains, BucketReason::Usual) })
        };
        let rest = "; events: cycles, misses; without rare (too few samples); dram-0: explains 98.7% of the varying power, \
                    mean error 1.2%, static 12.00 W; buckets of 250.0 mJ";
        let corrected = ", corrected by this recording";
        for (is_exact, calibrated, how) in [
            (true, false, ", as it is"),
            (true, true, ", as it is"),
            (false, true, corrected),
            (false, false, ", whose power varied too little to correct it"),
        ] {
            assert_eq!(
                of("sandybridge", is_exact, calibrated),
                format!("by the model `sandybridge`{how}{rest}")
            );
            assert_eq!(
                of("self", is_exact, calibrated),
                format!("by a model fitted to this recording alone{rest}")
            );
        }
        let unknown = vec![Some(of_domain(None, None, false)), None];
        let told = sentence(&division("generic", unknown, BucketReason::Usual));
        assert!(
            told.contains("package-0: its power hardly varied, mean error 1.2%, static part not known"),
            "{told}"
        );
        let mut warming = of_domain(None, Some(Watts::from_watts(10.0)), true);
        warming.static_rise = Some(StaticRise {
            from: Watts::from_watts(10.0),
            to: Watts::from_watts(12.5),
            std_error: Watts::from_watts(0.25),
        });
        let warming = division("generic", vec![Some(warming), None], BucketReason::Usual);
        assert!(
            sentence(&warming).contains("mean error 1.2%, static 10.00 W to 12.50 W"),
            "{}",
            sentence(&warming)
        );
        let json = serde_json::to_value(DivisionSummary::new(&warming, &profile())).expect("JSON");
        let expected = serde_json::json!({"from_watts": 10.0, "to_watts": 12.5, "std_error": 0.25});
        assert_eq!(json["domains"][0]["static_change"], expected);
        let worse = vec![Some(of_domain(Some(-0.5), None, false)), None];
        assert!(sentence(&division("generic", worse, BucketReason::Usual)).contains("explains 0.0% of"));
    }

    #[test]
    fn costs_are_those_of_events_that_cost_anything() {
        let of = division("generic", vec![Some(of_domain(None, None, true)), None], BucketReason::Usual);
        let [domain] = &DivisionSummary::new(&of, &profile()).domains[..] else {
            panic!("one domain has a model")
        };
        let costs: Vec<(&str, f64, f64)> = domain
            .coefficients
            .iter()
            .map(|cost| (cost.event.as_str(), cost.joules, cost.std_error))
            .collect();
        assert_eq!(costs, [("cycles", 2e-9, 1e-10), ("rare", 1e-9, 3e-10), ("never", 4e-9, 4e-10)]);
        assert_eq!((domain.name.as_str(), domain.calibrated, domain.intervals), ("package-0", true, 40));
        assert_eq!((domain.mean_error, domain.static_std_error), (0.0123, Watts::from_watts(0.5)));
    }
}
