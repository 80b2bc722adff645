//! The state of one energy domain during attribution.

use std::collections::BTreeSet;

use super::busy::OtherTime;
use super::curve::EnergyCurve;
use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::units::{Joules, Nanoseconds};

#[derive(Debug)]
pub(super) struct Domain {
    pub curve: EnergyCurve,
    /// Index of the domain that contains it, if that one is read too.
    pub parent: Option<usize>,
    /// Parts of this domain that are measured core by core.
    pub measured_cores: BTreeSet<usize>,
    pub other_time: OtherTime,
    /// Of a core with a meter of its own: what it counted before the whole around it had, to be given later.
    pub withheld: Joules,
    /// Model joules and CPU nanoseconds of all quanta so far.
    own_so_far: (f64, f64),
    /// Model joules of everything that ran so far, and seconds.
    usual: (f64, f64),
    pub is_core: bool,
    /// Its joules follow from CPU time and assumed watts.
    pub is_estimated: bool,
}

impl Domain {
    /// The states of all domains of a recording.
    pub fn all(domains: &[DomainInfo]) -> Vec<Self> {
        let index_of = |name: &str| domains.iter().position(|domain| domain.name == name);
        let mut states: Vec<Self> = domains
            .iter()
            .map(|info| Self {
                curve: EnergyCurve::default(),
                parent: info.parent.as_deref().and_then(index_of),
                measured_cores: BTreeSet::new(),
                other_time: OtherTime::default(),
                withheld: Joules::ZERO,
                own_so_far: (0.0, 0.0),
                usual: (0.0, 0.0),
                is_core: info.kind == DomainKind::Core,
                is_estimated: info.method == Method::Estimated,
            })
            .collect();
        for core in 0..states.len() {
            let mut ancestor = states[core].parent.filter(|_| states[core].is_core);
            // A tree of domains is at most platform, package, cores, core: the bound stops a loop.
            for _ in 0..4 {
                let Some(index) = ancestor else { break };
                states[index].measured_cores.insert(core);
                ancestor = states[index].parent;
            }
        }
        states
    }

    /// Model joules of a nanosecond of the program in this bucket; where its quanta do not tell time
    /// there, on average so far.
    pub fn cost_of_time(&mut self, own: f64, running: f64) -> f64 {
        self.own_so_far.0 += own;
        self.own_so_far.1 += running;
        let (own_so_far, running_so_far) = self.own_so_far;
        if running > 0.0 {
            own / running
        } else if running_so_far > 0.0 {
            own_so_far / running_so_far
        } else {
            // Alone, others have all the joules, whatever the unit. Beside quanta whose time nobody
            // knows, they cannot be weighed.
            if own > 0.0 { 0.0 } else { 1.0 }
        }
    }

    /// Whether so little ran in a bucket that its joules are the machine's own: the last nanoseconds of a
    /// sample in an idle second would else be given all of that second.
    pub fn is_next_to_nothing(&mut self, model: f64, span: Nanoseconds) -> bool {
        /// Model joules per second, as a share of those so far.
        const OF_THE_USUAL: f64 = 1e-3;
        let (model_so_far, seconds_so_far) = self.usual;
        let seconds = span.as_secs_f64();
        // What is called idle counts as well: else a wild beginning would make all the rest so.
        self.usual = (model_so_far + model, seconds_so_far + seconds);
        model * seconds_so_far < OF_THE_USUAL * model_so_far * seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Method;

    fn domain() -> Domain {
        let info = DomainInfo::new("package-0", DomainKind::Package, "test", Method::Measured);
        Domain::all(&[info]).remove(0)
    }

    #[test]
    fn a_nanosecond_costs_what_those_of_the_bucket_cost_or_all_so_far() {
        let mut package = domain();
        assert_eq!(package.cost_of_time(0.0, 0.0), 1.0, "others alone have all");
        assert_eq!(package.cost_of_time(5.0, 0.0), 0.0, "nothing tells time");
        assert_eq!(package.cost_of_time(7.0, 2.0), 3.5);
        // 12 of 2 nanoseconds so far, and 6 more without any.
        assert_eq!(package.cost_of_time(6.0, 0.0), 9.0);
        assert_eq!(package.cost_of_time(8.0, 4.0), 2.0);
    }

    #[test]
    fn a_thousandth_of_the_usual_is_next_to_nothing() {
        let second = Nanoseconds::from_millis(1000);
        let mut package = domain();
        assert!(!package.is_next_to_nothing(0.0, second), "nothing is usual yet");
        let mut package = domain();
        assert!(!package.is_next_to_nothing(1000.0, second));
        assert!(!package.would_be_nothing(1.0, second) && package.would_be_nothing(0.999, second));
        // Over half the time, half of it.
        let half = Nanoseconds::from_millis(500);
        assert!(!package.would_be_nothing(0.5, half) && package.would_be_nothing(0.499, half));
    }

    impl Domain {
        /// Asks without remembering.
        fn would_be_nothing(&self, model: f64, span: Nanoseconds) -> bool {
            let mut other = domain();
            (other.usual, other.own_so_far) = (self.usual, self.own_so_far);
            other.is_next_to_nothing(model, span)
        }
    }

    #[test]
    fn cores_are_measured_within_all_that_contains_them() {
        let info = |name: &str, kind, parent: Option<&str>| DomainInfo {
            parent: parent.map(str::to_owned),
            ..DomainInfo::new(name, kind, "test", Method::Measured)
        };
        let domains = Domain::all(&[
            info("core-0", DomainKind::Core, Some("cores")),
            info("cores", DomainKind::Cores, Some("package-0")),
            info("package-0", DomainKind::Package, None),
            info("dram-0", DomainKind::Dram, Some("nothing")),
        ]);
        let cores: Vec<Vec<usize>> =
            domains.iter().map(|domain| domain.measured_cores.iter().copied().collect()).collect();
        assert_eq!(cores, [vec![], vec![0], vec![0], vec![]]);
        assert_eq!(
            domains.iter().map(|domain| domain.parent).collect::<Vec<_>>(),
            [Some(1), Some(2), None, None]
        );
        assert!(domains[0].is_core && !domains[1].is_core);
    }
}
