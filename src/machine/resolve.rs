//! From an event as perf's users write it to what the kernel must be told.

use super::event_names::{self, perf_type};
use super::event_spec::{EventError, EventSpec, Modifiers, nearest};
use super::event_syntax::{self, Body, Term, Written};
use super::pmu::{Pmu, PmuEvent};
use super::pmu_format::ConfigWord;
use super::roots::Roots;
use super::tracepoint;

/// Hybrid x86: the type of the core PMU goes above the generic event's number (PERF_PMU_TYPE_SHIFT).
const PMU_TYPE_SHIFT: u32 = 32;

/// Resolves a list as `-e` takes it: events separated by commas.
///
/// # Errors
/// The first event that cannot be resolved.
pub fn resolve_events(roots: &Roots, list: &str) -> Result<Vec<EventSpec>, EventError> {
    let events = event_syntax::split_list(list);
    if events.is_empty() {
        return Err(EventError::Malformed { event: list.to_owned(), why: "no event is named" });
    }
    let mut specs = Vec::new();
    for event in events {
        specs.extend(resolve_event(roots, event)?);
    }
    Ok(specs)
}

/// Resolves one event in perf's syntax. On hybrid CPUs a name without a PMU gives one event per kind
/// of core; a PMU that exists several times (`uncore_imc`) one per instance.
///
/// # Errors
/// If it is malformed, not known here, or a tracepoint that may not be looked up. Whether the kernel
/// will open it is another question: a generic event resolves on machines without PMU, too.
pub fn resolve_event(roots: &Roots, event: &str) -> Result<Vec<EventSpec>, EventError> {
    let resolver = Resolver { event: event.trim(), pmus: Pmu::all(roots) };
    let written = event_syntax::parse(event)
        .map_err(|why| EventError::Malformed { event: event.trim().to_owned(), why })?;
    let modifiers = Modifiers::parse(written.modifiers)
        .map_err(|letter| EventError::BadModifier { event: event.trim().to_owned(), letter })?;
    let mut specs = match written.body {
        Body::Tracepoint(system, name) => {
            let id = tracepoint::id(roots, system, name)?;
            vec![EventSpec::plain(resolver.event, "tracepoint", perf_type::TRACEPOINT, id)]
        }
        Body::Name(name) => resolver.named(name, &written)?,
    };
    for spec in &mut specs {
        spec.modifiers = modifiers;
    }
    Ok(specs)
}

struct Resolver<'a> {
    event: &'a str,
    pmus: Vec<Pmu>,
}

impl Resolver<'_> {
    fn named(&self, name: &str, written: &Written<'_>) -> Result<Vec<EventSpec>, EventError> {
        if let Some(mut specs) = self.generic(name) {
            for spec in &mut specs {
                self.common_terms_only(spec, &written.terms)?;
            }
            return Ok(specs);
        }
        if self.event.contains('/') {
            let pmus = self.pmus_named(name)?;
            return pmus.iter().map(|pmu| self.on_pmu(pmu, &written.terms, pmus.len() > 1)).collect();
        }
        self.named_by_pmus(name)
    }

    /// Generic and raw events, one per core PMU where there are several.
    fn generic(&self, name: &str) -> Option<Vec<EventSpec>> {
        if let Some(config) = event_names::software(name) {
            return Some(vec![EventSpec::plain(self.event, "software", perf_type::SOFTWARE, config)]);
        }
        if let Some(config) = event_names::hardware(name) {
            return Some(self.per_core_pmu("hardware", perf_type::HARDWARE, config));
        }
        if let Some(config) = event_names::cache(name) {
            return Some(self.per_core_pmu("hw-cache", perf_type::HW_CACHE, config));
        }
        let config = event_syntax::raw_code(name)?;
        Some(self.per_core_pmu("raw", perf_type::RAW, config))
    }

    fn per_core_pmu(&self, kind: &str, perf_type: u32, config: u64) -> Vec<EventSpec> {
        let cores: Vec<&Pmu> = self.pmus.iter().filter(|pmu| pmu.is_core).collect();
        if cores.is_empty() {
            return vec![EventSpec::plain(self.event, kind, perf_type, config)];
        }
        let several = cores.len() > 1;
        cores
            .into_iter()
            .map(|pmu| {
                let name =
                    if several { format!("{}/{}/", pmu.name, self.event) } else { self.event.to_owned() };
                let mut spec = match perf_type {
                    perf_type::RAW => EventSpec::plain(&name, &pmu.name, pmu.perf_type, config),
                    _ => EventSpec::plain(&name, kind, perf_type, config | extended_type(pmu)),
                };
                spec.cpus.clone_from(&pmu.cpus);
                spec.core_kind = pmu.core_kind();
                spec
            })
            .collect()
    }

    /// A name alone that some PMU lists among its events; the cores' PMUs go first.
    fn named_by_pmus(&self, name: &str) -> Result<Vec<EventSpec>, EventError> {
        let term = [Term { key: name, value: None }];
        for of_cores in [true, false] {
            let pmus: Vec<&Pmu> =
                self.pmus.iter().filter(|pmu| pmu.is_core == of_cores && pmu.event(name).is_some()).collect();
            if !pmus.is_empty() {
                return pmus.iter().map(|pmu| self.on_pmu(pmu, &term, pmus.len() > 1)).collect();
            }
        }
        let known = event_names::all().chain(self.pmus.iter().flat_map(Pmu::event_names));
        Err(EventError::UnknownEvent { event: self.event.to_owned(), nearest: nearest(name, known) })
    }

    /// The PMU of this name, or all its instances `name_0`, `name_1`, ...
    fn pmus_named(&self, name: &str) -> Result<Vec<&Pmu>, EventError> {
        if let Some(pmu) = self.pmus.iter().find(|pmu| pmu.name == name) {
            return Ok(vec![pmu]);
        }
        let is_instance = |pmu: &&Pmu| {
            let number = pmu.name.strip_prefix(name).and_then(|rest| rest.strip_prefix('_'));
            number.is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
            })
        };
        let instances: Vec<&Pmu> = self.pmus.iter().filter(is_instance).collect();
        if !instances.is_empty() {
            return Ok(instances);
        }
        // Whoever writes `cpu` where cores have other PMUs is told their names.
        let names = self.pmus.iter().filter(|pmu| name != "cpu" || pmu.is_core).map(|pmu| pmu.name.clone());
        let nearest = if name == "cpu" { names.collect() } else { nearest(name, names) };
        Err(EventError::UnknownPmu { event: self.event.to_owned(), pmu: name.to_owned(), nearest })
    }

    fn on_pmu(&self, pmu: &Pmu, terms: &[Term<'_>], several: bool) -> Result<EventSpec, EventError> {
        let name = match (several, self.event.split_once('/')) {
            (false, _) => self.event.to_owned(),
            (true, Some((_, rest))) => format!("{}/{rest}", pmu.name),
            (true, None) => format!("{}/{}/", pmu.name, self.event),
        };
        let mut spec = EventSpec::plain(&name, &pmu.name, pmu.perf_type, 0);
        spec.cpus.clone_from(&pmu.cpus);
        spec.core_kind = pmu.core_kind();
        for term in terms {
            if self.common_term(&mut spec, *term)? || self.config_term(pmu, &mut spec, *term)? {
                continue;
            }
            match pmu.event(term.key).filter(|_| term.value.is_none()) {
                Some(event) => self.pmus_own_event(pmu, &mut spec, &event)?,
                None => self.generic_on_pmu(pmu, &mut spec, *term)?,
            }
        }
        Ok(spec)
    }

    /// The terms of an event from the PMU's `events/`.
    fn pmus_own_event(&self, pmu: &Pmu, spec: &mut EventSpec, event: &PmuEvent) -> Result<(), EventError> {
        for term in event_syntax::parse_terms(&event.terms) {
            if term.value == Some("?") {
                return Err(self.bad_value(term.key, "?"));
            }
            if !self.config_term(pmu, spec, term)? {
                return Err(self.unknown_term(pmu, term.key));
            }
        }
        spec.scale = event.scale;
        spec.unit.clone_from(&event.unit);
        Ok(())
    }

    /// `cpu_core/cycles/`: a generic event, asked of one PMU.
    fn generic_on_pmu(&self, pmu: &Pmu, spec: &mut EventSpec, term: Term<'_>) -> Result<(), EventError> {
        let generic = event_names::hardware(term.key)
            .map(|config| (perf_type::HARDWARE, "hardware", config))
            .or_else(|| event_names::cache(term.key).map(|config| (perf_type::HW_CACHE, "hw-cache", config)))
            .filter(|_| pmu.is_core && term.value.is_none());
        if let Some((perf_type, kind, config)) = generic {
            spec.perf_type = perf_type;
            spec.pmu = kind.to_owned();
            let several = self.pmus.iter().filter(|other| other.is_core).count() > 1;
            spec.config = config | if several { extended_type(pmu) } else { 0 };
            return Ok(());
        }
        match event_syntax::raw_code(term.key).filter(|_| term.value.is_none()) {
            Some(code) => spec.config = code,
            None => return Err(self.unknown_term(pmu, term.key)),
        }
        Ok(())
    }

    /// Terms that every event takes; `false` if this is another one.
    fn common_term(&self, spec: &mut EventSpec, term: Term<'_>) -> Result<bool, EventError> {
        match term.key {
            "name" => spec.name = self.value(term)?.to_owned(),
            "period" => spec.period = Some(self.positive(term)?),
            "freq" => spec.frequency = Some(self.positive(term)?),
            "call-graph" | "stack-size" | "max-stack" | "branch_type" => {
                return Err(self.unsupported(term.key, "use --call-graph, which holds for all events"));
            }
            "inherit" | "no-inherit" | "overwrite" | "no-overwrite" | "percore" | "aux-output"
            | "aux-sample-size" | "time" | "driver-config" | "metric-id" => {
                return Err(self.unsupported(term.key, "leave it out"));
            }
            _ => return Ok(false),
        }
        if spec.period.is_some() && spec.frequency.is_some() {
            return Err(self.unsupported(term.key, "give either a period or a frequency"));
        }
        Ok(true)
    }

    fn common_terms_only(&self, spec: &mut EventSpec, terms: &[Term<'_>]) -> Result<(), EventError> {
        for term in terms {
            if !self.common_term(spec, *term)? {
                return Err(EventError::UnknownTerm {
                    event: self.event.to_owned(),
                    pmu: spec.pmu.clone(),
                    term: term.key.to_owned(),
                    known: "name, period, freq".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// `config=` and the terms of the PMU's `format/`; `false` if this is none of them.
    fn config_term(&self, pmu: &Pmu, spec: &mut EventSpec, term: Term<'_>) -> Result<bool, EventError> {
        let whole_word = match term.key {
            "config" => Some(&mut spec.config),
            "config1" => Some(&mut spec.config1),
            "config2" => Some(&mut spec.config2),
            _ => None,
        };
        if let Some(word) = whole_word {
            *word = self.number(term)?;
            return Ok(true);
        }
        let Some(field) = pmu.format().remove(term.key) else { return Ok(false) };
        // A bare term such as `edge` sets its bit; but an event of the same name goes first.
        if term.value.is_none() && pmu.event(term.key).is_some() {
            return Ok(false);
        }
        let value = if term.value.is_some() { self.number(term)? } else { 1 };
        let word = match field.word {
            ConfigWord::Config => &mut spec.config,
            ConfigWord::Config1 => &mut spec.config1,
            ConfigWord::Config2 => &mut spec.config2,
        };
        *word = field.insert(*word, value).ok_or_else(|| EventError::ValueTooLarge {
            event: self.event.to_owned(),
            pmu: pmu.name.clone(),
            term: term.key.to_owned(),
            value,
            largest: field.largest(),
        })?;
        Ok(true)
    }

    fn value<'t>(&self, term: Term<'t>) -> Result<&'t str, EventError> {
        term.value.filter(|value| !value.is_empty()).ok_or_else(|| self.bad_value(term.key, ""))
    }

    fn number(&self, term: Term<'_>) -> Result<u64, EventError> {
        let value = self.value(term)?;
        event_syntax::parse_number(value).ok_or_else(|| self.bad_value(term.key, value))
    }

    fn positive(&self, term: Term<'_>) -> Result<u64, EventError> {
        match self.number(term)? {
            0 => Err(self.bad_value(term.key, "0")),
            number => Ok(number),
        }
    }

    fn bad_value(&self, term: &str, value: &str) -> EventError {
        EventError::BadValue { event: self.event.to_owned(), term: term.to_owned(), value: value.to_owned() }
    }

    fn unsupported(&self, term: &str, instead: &'static str) -> EventError {
        EventError::UnsupportedTerm { event: self.event.to_owned(), term: term.to_owned(), instead }
    }

    fn unknown_term(&self, pmu: &Pmu, term: &str) -> EventError {
        let mut known: Vec<String> = pmu.format().into_keys().collect();
        known.extend(["config", "config1", "config2", "name", "period", "freq"].map(str::to_owned));
        if !pmu.event_names().is_empty() {
            known.push(format!("and its events {}", pmu.event_names().join(", ")));
        }
        EventError::UnknownTerm {
            event: self.event.to_owned(),
            pmu: pmu.name.clone(),
            term: term.to_owned(),
            known: known.join(", "),
        }
    }
}

/// What goes above a generic event's number: nothing where Arm's PMUs are told apart by their CPUs
/// (the kernel takes the extended form from them only since Linux 6.6).
fn extended_type(pmu: &Pmu) -> u64 {
    if pmu.name.starts_with("cpu_") { u64::from(pmu.perf_type) << PMU_TYPE_SHIFT } else { 0 }
}

#[cfg(test)]
mod tests;
