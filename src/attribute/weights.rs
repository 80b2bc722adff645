//! What one event is worth in each domain.

use std::collections::BTreeMap;

use crate::hardware::DomainKind;

/// Model joules per event, by event and domain; only their proportions matter inside a bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct EventWeights {
    domains: usize,
    /// One row of `domains` numbers per event.
    rows: Vec<f64>,
}

impl EventWeights {
    /// From a function of event and domain. Negative and not-a-number become 0.
    pub fn new(events: usize, domains: usize, weight: impl Fn(usize, usize) -> f64) -> Self {
        let rows = (0..events)
            .flat_map(|event| (0..domains).map(move |domain| (event, domain)))
            .map(|(event, domain)| weight(event, domain).max(0.0))
            .collect();
        Self { domains, rows }
    }

    /// Weights by time alone: some events tell time, the others count for nothing.
    pub fn from_time(events: usize, domains: usize, tells_time: impl Fn(usize) -> bool) -> Self {
        Self::new(events, domains, |event, _| if tells_time(event) { 1.0 } else { 0.0 })
    }

    /// Number of events.
    pub fn events(&self) -> usize {
        self.rows.len() / self.domains.max(1)
    }

    /// The joules of one event of this kind, in each domain.
    pub fn of_event(&self, event: usize) -> &[f64] {
        self.rows.get(event * self.domains..(event + 1) * self.domains).unwrap_or(&[])
    }

    /// Does this event count for anything?
    pub fn counts(&self, event: usize) -> bool {
        self.of_event(event).iter().any(|weight| *weight > 0.0)
    }
}

/// The coefficient for a kind of domain, by [`DomainKind::modelled_by`]; 0 where there is none.
pub fn coefficient(by_kind: &BTreeMap<DomainKind, f64>, kind: DomainKind) -> f64 {
    kind.modelled_by().iter().find_map(|kind| by_kind.get(kind)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_follows_its_cores_and_memory_follows_nobody() {
        let mut by_kind = BTreeMap::from([(DomainKind::Cores, 2.0), (DomainKind::Dram, 7.0)]);
        assert_eq!(coefficient(&by_kind, DomainKind::Dram), 7.0);
        assert_eq!(coefficient(&by_kind, DomainKind::Package), 2.0);
        assert_eq!(coefficient(&by_kind, DomainKind::Gpu), 0.0);
        by_kind.remove(&DomainKind::Dram);
        assert_eq!(coefficient(&by_kind, DomainKind::Dram), 0.0);
    }

    #[test]
    fn a_negative_coefficient_never_takes_joules_away() {
        let weights = EventWeights::new(1, 2, |_, domain| if domain == 0 { -1.0 } else { f64::NAN });
        assert_eq!(weights.of_event(0), [0.0, 0.0]);
        assert!(!weights.counts(0));
        assert!(weights.of_event(5).is_empty());
    }

    #[test]
    fn an_event_counts_if_it_is_worth_something_anywhere() {
        let rows = [[0.0, 0.0], [0.0, 2.0], [-1.0, f64::NAN], [3.0, 0.0]];
        let weights = EventWeights::new(4, 2, |event, domain| rows[event][domain]);
        assert_eq!([0, 1, 2, 3, 4].map(|event| weights.counts(event)), [false, true, false, true, false]);
        assert_eq!((weights.events(), weights.of_event(2)), (4, &[0.0, 0.0][..]));
    }
}
