//! Which power model is believed before a recording is seen.

use crate::analyze::options::ModelChoice;
use crate::hardware::{DomainKind, RestPower};
use crate::power_model::model::{PowerModel, Scale};
use crate::power_model::presets::Preset;
use crate::power_model::prior::Prior;
use crate::power_model::stored::StoredModel;
use crate::recording::metadata::{EventInfo, Metadata};
use crate::units::Watts;

/// A model, and how it is to be used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BaseModel {
    pub model: PowerModel,
    /// Standard error of its coefficients as a share of them.
    pub relative_error: f64,
    /// See [`Prior::least_share`].
    pub least_share: f64,
    /// The recording may change it.
    pub is_correctable: bool,
}

/// A stored model was fitted on this kind of CPU, but on another day, at other clocks and temperatures.
const STORED_ERROR: f64 = 0.2;
/// A preset was measured on another specimen.
const PRESET_ERROR: f64 = 0.3;
/// What a machine draws whatever runs was measured on that machine, but grows with its temperature.
const STATIC_ERROR: f64 = 0.02;
/// The same where a calibration's own standard error is known and smaller: what a package draws at rest moves by some
/// tenths of a per cent from minute to minute.
const CALIBRATED_STATIC_ERROR: f64 = 0.004;
/// A calibration that left workloads out is off by as much for programs that it never saw, and by no less than this.
const LEAST_UNEXPLAINED: f64 = 0.02;
/// What models of some events are off by for programs that they were not fitted to, where nothing shows it: joules beyond rest of
/// programs that were measured alone on nine machines are 3 to 30 % off on average by the very best costs that their own rows
/// could give, 12 % on the middle one.
const UNEXPLAINED: f64 = 0.12;
/// The same of proportions from elsewhere: joules of programs that were measured alone on seven machines, and take turns
/// within a millisecond, are 15 to 64 % off on average by the generic preset; half of the machines 23 % at most.
const UNEXPLAINED_BY_PROPORTIONS: f64 = 0.25;
/// A calibration that explains a smaller share of the power than this is taken for little more than a guess.
const LEAST_EXPLAINED: f64 = 0.9;
/// Proportions from elsewhere are right within a factor of about two.
const PROPORTIONS_ERROR: f64 = 1.0;
/// What an event of which nothing is believed may cost, as a share of all joules.
const LEAST_SHARE: f64 = 0.01;
/// The same beside a calibration whose errors are known: what it found to cost nothing costs next to nothing.
const LEAST_SHARE_OF_FITTED: f64 = 0.001;
/// The same where nothing is believed.
const LEAST_SHARE_OF_SELF: f64 = 0.5;

impl BaseModel {
    /// The model for a choice; `stored` is what is kept for the recorded CPU. What was expected and not
    /// used is told in `notes`. `None`: by time.
    pub fn choose(
        choice: &ModelChoice,
        stored: Option<&StoredModel>,
        metadata: &Metadata,
        notes: &mut Vec<String>,
    ) -> Option<Self> {
        let base = |model, relative_error, least_share, is_correctable| {
            Some(Self { model, relative_error, least_share, is_correctable })
        };
        match choice {
            ModelChoice::Time => None,
            ModelChoice::Exactly(model) => base(model.clone(), 0.0, 0.0, false),
            ModelChoice::SelfCalibrated => {
                base(Preset::Generic.model(), 3.0 * PROPORTIONS_ERROR, LEAST_SHARE_OF_SELF, true)
            }
            ModelChoice::Auto => {
                let machine = &metadata.machine;
                let events =
                    metadata.events.iter().filter_map(|event| Some((event.role?, event.encoding.as_str())));
                match stored.map(|stored| stored.check(&machine.cpu_identity, events).map(|()| stored)) {
                    Some(Ok(stored)) => return base(stored.model.clone(), STORED_ERROR, LEAST_SHARE, true),
                    Some(Err(error)) => notes.push(format!("the stored power model was not used: {error}")),
                    None => {}
                }
                let preset = Preset::for_microarchitecture(machine.microarchitecture.as_deref());
                let error = match preset {
                    Preset::SandyBridge => PRESET_ERROR,
                    Preset::Generic => PROPORTIONS_ERROR,
                };
                base(preset.model(), error, LEAST_SHARE, true)
            }
        }
    }

    /// What it says of a kind of domain, for the events of a recording.
    /// `static_power` is what the recording says of these domains, and `rest` what was seen of them just before it:
    /// watts of one of them.
    pub fn prior(
        &self,
        kind: DomainKind,
        events: &[Option<&EventInfo>],
        static_power: Option<Watts>,
        rest: Option<RestPower>,
    ) -> Prior {
        let rest = rest.map(|rest| (rest.power.as_watts(), rest.std_error.as_watts()));
        let clocks =
            |event: &EventInfo| event.encoding.contains("-clock") || event.encoding.starts_with("software");
        // Time stands for cycles where there is no PMU; the coefficient of cycles is not that of time.
        let by_clock = events.iter().flatten().any(|event| clocks(event));
        let in_recording = |event: &EventInfo| coefficient_of(event, kind);
        if self.is_correctable && events.iter().flatten().any(|event| in_recording(event) > 0.0) {
            // The recorder knew a model of this machine.
            let costs: Vec<f64> = events.iter().map(|event| event.map_or(0.0, in_recording)).collect();
            let fitted = Fitted::of(&self.model, kind, events, &costs);
            let least_static_error = fitted.as_ref().map_or(STATIC_ERROR, |_| CALIBRATED_STATIC_ERROR);
            let fitted_static_error = fitted.as_ref().map_or(0.0, |fitted| fitted.static_error);
            let relative_error = STORED_ERROR.max(self.relative_error.min(PRESET_ERROR));
            return Prior {
                unexplained: fitted.as_ref().map_or(UNEXPLAINED, |fitted| fitted.unexplained),
                misfit: fitted.as_ref().map_or(0.0, |fitted| fitted.unexplained),
                joules_per_event: costs,
                relative_error,
                least_share: if fitted.is_some() { LEAST_SHARE_OF_FITTED } else { self.least_share },
                std_errors: fitted.map(|fitted| fitted.std_errors).unwrap_or_default(),
                scale: Scale::Joules,
                static_watts: Some(match static_power.map(Watts::as_watts) {
                    Some(watts) => (watts, fitted_static_error.max(watts * least_static_error)),
                    None => rest.unwrap_or((0.0, f64::INFINITY)),
                }),
            };
        }
        let generic = Preset::Generic.model();
        let domain = self.model.domain(kind).map(|domain| (&self.model, domain));
        let own_domain = domain.is_some();
        let exact_domain = self.model.domains.contains_key(&kind);
        let found = domain.or_else(|| {
            let kind = if kind == DomainKind::Dram { kind } else { DomainKind::Package };
            generic.domain(kind).map(|domain| (&generic, domain))
        });
        let Some((model, domain)) = found else {
            return Prior {
                unexplained: UNEXPLAINED,
                misfit: 0.0,
                joules_per_event: vec![0.0; events.len()],
                relative_error: 0.0,
                std_errors: Vec::new(),
                least_share: 0.0,
                scale: Scale::Relative,
                static_watts: None,
            };
        };
        let cost = |event: &Option<&EventInfo>| {
            let role = event.as_ref()?.role?;
            let index = model
                .event(role, event.as_ref()?.core_kind)
                .or_else(|| model.events.iter().position(|of_model| of_model.role == Some(role)))?;
            domain.joules_per_event.get(index).copied()
        };
        let is_memory = kind == DomainKind::Dram;
        // A line of memory costs nearly the same joules everywhere; what a processor's events cost differs.
        let scale = match model.scale {
            _ if by_clock => Scale::Relative,
            _ if is_memory => Scale::Joules,
            _ if !own_domain => Scale::Relative,
            scale => scale,
        };
        let static_watts = (scale == Scale::Joules).then(|| {
            let watts = domain.static_power.as_watts();
            let fitted = domain.static_std_error.map_or(0.0, |error| error.as_watts());
            // Of the cores' static power nothing follows for that of the package around them.
            let is_known = exact_domain && model.scale == Scale::Joules;
            let error = if is_known { fitted.max(watts * self.relative_error) } else { f64::INFINITY };
            (watts, if self.is_correctable || !own_domain { error } else { fitted })
        });
        let is_correctable = self.is_correctable || !own_domain;
        let static_watts = if is_correctable { rest.or(static_watts) } else { static_watts };
        Prior {
            unexplained: match model.scale {
                _ if !is_correctable => 0.0,
                Scale::Joules => UNEXPLAINED,
                Scale::Relative => UNEXPLAINED_BY_PROPORTIONS,
            },
            misfit: 0.0,
            joules_per_event: events.iter().map(|event| cost(event).unwrap_or(0.0)).collect(),
            relative_error: if own_domain { self.relative_error } else { PROPORTIONS_ERROR },
            std_errors: Vec::new(),
            least_share: if is_correctable { self.least_share } else { 0.0 },
            scale,
            static_watts,
        }
    }
}

/// What a calibration said of its own errors.
struct Fitted {
    /// By event of the recording: of kernels like its own, each of which was left out in turn.
    std_errors: Vec<f64>,
    /// Of kernels that were left out.
    unexplained: f64,
    /// Watts.
    static_error: f64,
}

impl Fitted {
    /// Of the model of a kind of domain, if these coefficients of a recording are that model's.
    fn of(
        model: &PowerModel,
        kind: DomainKind,
        events: &[Option<&EventInfo>],
        costs: &[f64],
    ) -> Option<Self> {
        let domain = model.domain(kind)?;
        let quality = domain.quality?;
        let left_out = quality.left_out_error.filter(|_| quality.r_squared > LEAST_EXPLAINED)?;
        let unexplained = left_out.clamp(LEAST_UNEXPLAINED, STORED_ERROR);
        let std_errors = events.iter().zip(costs).map(|(event, cost)| {
            let event = event.filter(|_| *cost > 0.0);
            let Some(event) = event else { return Some(0.0) };
            let index = model.event(event.role?, event.core_kind)?;
            let in_model = domain.joules_per_event.get(index)?;
            let is_same = (in_model - cost).abs() <= 1e-6 * cost;
            is_same.then(|| domain.std_errors.get(index).map_or(0.0, |error| *error))
        });
        let std_errors = std_errors.collect::<Option<Vec<f64>>>()?;
        Some(Self { std_errors, unexplained, static_error: domain.static_std_error?.as_watts() })
    }
}

/// The coefficient that the recording itself carries for an event; 0 if it carries none.
fn coefficient_of(event: &EventInfo, kind: DomainKind) -> f64 {
    crate::attribute::coefficient(&event.joules_per_event, kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::fixture::{event, metadata};
    use crate::hardware::Role;
    use crate::power_model::stored::STORED_FORMAT;

    fn stored(identity: &str) -> StoredModel {
        StoredModel {
            format: STORED_FORMAT,
            eprof_version: "0.1.0".to_owned(),
            cpu_identity: identity.to_owned(),
            cpu_model: "Xeon".to_owned(),
            created_unix: 1,
            model: PowerModel { events: Vec::new(), ..Preset::SandyBridge.model() },
        }
    }

    #[test]
    fn a_stored_model_of_another_cpu_is_not_used_and_that_is_said() {
        let mut notes = Vec::new();
        let choose = |stored: &StoredModel, notes: &mut Vec<String>| {
            BaseModel::choose(&ModelChoice::Auto, Some(stored), &metadata(), notes)
                .expect("a model")
                .model
                .name
        };
        assert_eq!(choose(&stored("GenuineIntel-6-2D-7"), &mut notes), "sandybridge");
        assert!(notes.is_empty());
        assert_eq!(choose(&stored("AuthenticAMD-25-1-1"), &mut notes), "generic");
        assert!(notes[0].contains("was made on AuthenticAMD-25-1-1"), "{notes:?}");
    }

    #[test]
    fn a_domain_of_which_a_preset_says_nothing_has_proportions() {
        let miss = event("cache-misses", Role::LlcMiss, "hardware/config=0x3/");
        let clk = event("cycles", Role::Clk, "hardware/config=0x0/");
        let base = BaseModel::choose(
            &ModelChoice::Exactly(Preset::SandyBridge.model()),
            None,
            &metadata(),
            &mut Vec::new(),
        )
        .expect("a model");
        let dram = base.prior(DomainKind::Dram, &[Some(&clk), Some(&miss)], None, None);
        assert_eq!((dram.scale, dram.joules_per_event[0]), (Scale::Joules, 0.0));
        assert_eq!(dram.static_watts, Some((0.0, f64::INFINITY)));
        assert!(dram.joules_per_event[1] > 0.0);
        let package = base.prior(DomainKind::Package, &[Some(&clk), Some(&miss)], None, None);
        assert_eq!((package.scale, package.static_watts), (Scale::Joules, Some((12.41, 0.0))));
    }

    #[test]
    fn time_instead_of_cycles_has_no_joules_of_its_own() {
        let clock = event("cpu-clock", Role::Clk, "software/config=0x0/");
        let base = BaseModel {
            is_correctable: true,
            ..BaseModel::choose(&ModelChoice::Auto, None, &metadata(), &mut Vec::new()).expect("a model")
        };
        assert_eq!(base.prior(DomainKind::Package, &[Some(&clock)], None, None).scale, Scale::Relative);
    }

    #[test]
    fn a_clock_is_known_by_its_encoding() {
        let base =
            BaseModel::choose(&ModelChoice::Auto, None, &metadata(), &mut Vec::new()).expect("a model");
        let exact = ModelChoice::Exactly(Preset::SandyBridge.model());
        let exact = BaseModel::choose(&exact, None, &metadata(), &mut Vec::new()).expect("a model");
        let scale = |base: &BaseModel, encoding: &str| {
            base.prior(DomainKind::Package, &[Some(&event("clock", Role::Clk, encoding))], None, None).scale
        };
        for encoding in ["software/config=0x0/", "cpu-clock", "task-clock:u"] {
            assert_eq!(
                (scale(&base, encoding), scale(&exact, encoding)),
                (Scale::Relative, Scale::Relative),
                "{encoding}"
            );
        }
        assert_eq!(scale(&exact, "hardware/config=0x0/"), Scale::Joules);
    }

    /// Of a domain that a model says nothing of, what is taken from elsewhere may be corrected even where the model itself may
    /// not.
    #[test]
    fn only_what_a_model_says_itself_is_exact() {
        let clk = event("cycles", Role::Clk, "hardware/config=0x0/");
        let miss = event("cache-misses", Role::LlcMiss, "hardware/config=0x3/");
        let prior = |is_correctable, kind| {
            let model = Preset::SandyBridge.model();
            let base = BaseModel { model, relative_error: 0.2, least_share: 0.3, is_correctable };
            let rest = RestPower { power: Watts::from_watts(7.0), std_error: Watts::from_watts(0.5) };
            let prior = base.prior(kind, &[Some(&clk), Some(&miss)], None, Some(rest));
            (prior.unexplained > 0.0, prior.least_share, prior.static_watts, prior.relative_error)
        };
        let rest = Some((7.0, 0.5));
        assert_eq!(prior(false, DomainKind::Package), (false, 0.0, Some((12.41, 0.0)), 0.2));
        assert_eq!(prior(true, DomainKind::Package), (true, 0.3, rest, 0.2));
        // The preset has no memory.
        assert_eq!(prior(false, DomainKind::Dram), (true, 0.3, rest, PROPORTIONS_ERROR));
        assert_eq!(prior(true, DomainKind::Dram), (true, 0.3, rest, PROPORTIONS_ERROR));
    }

    /// A calibration of a package: 12 W, 2 nJ a cycle (known to 0.1 nJ) and 3 nJ an instruction (0.4 nJ).
    fn calibrated(r_squared: f64, left_out_error: Option<f64>) -> BaseModel {
        let mut model = Preset::SandyBridge.model();
        let mut package = model.domain(DomainKind::Package).expect("of a package").clone();
        let [clk, inst] = [Role::Clk, Role::Inst]
            .map(|role| model.events.iter().position(|event| event.role == Some(role)).expect("an event"));
        (package.joules_per_event[clk], package.joules_per_event[inst]) = (2e-9, 3e-9);
        package.std_errors = vec![0.0; package.joules_per_event.len()];
        (package.std_errors[clk], package.std_errors[inst]) = (1e-10, 4e-10);
        package.static_std_error = Some(Watts::from_watts(0.3));
        package.quality = Some(crate::power_model::model::FitQuality {
            r_squared,
            left_out_error,
            left_out_worst: None,
            workloads: None,
            condition: 1.0,
            rows: 100,
        });
        model.domains.insert(DomainKind::Package, package);
        BaseModel { model, relative_error: STORED_ERROR, least_share: LEAST_SHARE, is_correctable: true }
    }

    /// What a recording of a calibrated machine is taken to know: events of these joules, and 12 W at rest.
    fn of_calibrated(base: &BaseModel, costs: [f64; 2]) -> Prior {
        let mut events = [
            event("cycles", Role::Clk, "hardware/config=0x0/"),
            event("instructions", Role::Inst, "hardware/config=0x1/"),
        ];
        for (event, cost) in events.iter_mut().zip(costs) {
            event.joules_per_event = [(DomainKind::Package, cost)].into_iter().collect();
        }
        let unknown = event("other", Role::Clk, "hardware/config=0x9/");
        let events = [Some(&events[0]), None, Some(&events[1]), Some(&unknown)];
        base.prior(DomainKind::Package, &events, Some(Watts::from_watts(12.0)), None)
    }

    #[test]
    fn a_calibration_is_believed_as_far_as_it_says() {
        let prior = of_calibrated(&calibrated(0.95, Some(0.05)), [2e-9, 3e-9]);
        assert_eq!(prior.joules_per_event, [2e-9, 0.0, 3e-9, 0.0]);
        // Its own error; what workloads that it never saw are off by comes to it where a recording shows it.
        let expected = [1e-10, 0.0, 4e-10, 0.0];
        for (found, expected) in prior.std_errors.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-9 * expected, "{found} for {expected}");
        }
        assert_eq!(prior.std_errors.len(), 4);
        assert_eq!((prior.unexplained, prior.misfit, prior.least_share), (0.05, 0.05, LEAST_SHARE_OF_FITTED));
        assert_eq!((prior.scale, prior.static_watts), (Scale::Joules, Some((12.0, 0.3))));
        // No model is off by less than 2 %, and none that is believed by more than a fifth.
        let unexplained =
            |left_out| of_calibrated(&calibrated(0.95, Some(left_out)), [2e-9, 3e-9]).unexplained;
        assert_eq!([0.001, 0.3].map(unexplained), [LEAST_UNEXPLAINED, STORED_ERROR]);
    }

    #[test]
    fn what_is_no_calibration_of_these_events_is_believed_by_its_kind() {
        let by_kind = |base: &BaseModel, costs| {
            let prior = of_calibrated(base, costs);
            assert_eq!(
                (prior.relative_error, prior.misfit, prior.least_share),
                (STORED_ERROR, 0.0, LEAST_SHARE)
            );
            assert_eq!(
                (prior.unexplained, prior.static_watts),
                (UNEXPLAINED, Some((12.0, 12.0 * STATIC_ERROR)))
            );
            prior.std_errors.is_empty()
        };
        let same = [2e-9, 3e-9];
        assert!(by_kind(&calibrated(0.9, Some(0.05)), same), "it explains too little");
        assert!(by_kind(&calibrated(0.95, None), same), "no workload was left out");
        // A millionth is how files round coefficients.
        assert!(by_kind(&calibrated(0.95, Some(0.05)), [2e-9, 3.00001e-9]));
        assert!(by_kind(&calibrated(0.95, Some(0.05)), [2e-9, 2.99999e-9]));
        assert!(!of_calibrated(&calibrated(0.95, Some(0.05)), [2e-9, 3.000001e-9]).std_errors.is_empty());
        assert!(!of_calibrated(&calibrated(0.901, Some(0.05)), same).std_errors.is_empty());
    }

    /// What is believed of proportions grows with how little is known.
    #[test]
    fn kinds_of_models_are_believed_differently() {
        let chosen = |choice: &ModelChoice| {
            let base = BaseModel::choose(choice, None, &metadata(), &mut Vec::new()).expect("a model");
            (base.relative_error, base.least_share, base.is_correctable)
        };
        assert_eq!(chosen(&ModelChoice::SelfCalibrated), (3.0, 0.5, true));
        assert_eq!(chosen(&ModelChoice::Exactly(Preset::Generic.model())), (0.0, 0.0, false));
        assert_eq!(chosen(&ModelChoice::Auto), (1.0, 0.01, true));
        assert!(BaseModel::choose(&ModelChoice::Time, None, &metadata(), &mut Vec::new()).is_none());
    }
}
