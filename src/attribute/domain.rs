//! The state of one energy domain during attribution.

use std::collections::BTreeSet;

use super::busy::OtherTime;
use super::curve::EnergyCurve;
use crate::hardware::{DomainInfo, DomainKind};
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
