//! The state of one energy domain during attribution.

use super::busy::OtherTime;
use super::curve::EnergyCurve;
use crate::recording::metadata::{DomainInfo, DomainKind};

#[derive(Debug)]
pub(super) struct Domain {
    pub curve: EnergyCurve,
    /// CPUs that this domain feeds; empty: all.
    cpus: Vec<bool>,
    /// Index of the domain that contains it, if that one is read too.
    pub parent: Option<usize>,
    /// Parts of this domain that are measured core by core.
    pub measured_cores: Vec<usize>,
    pub other_time: OtherTime,
    /// Model joules and CPU nanoseconds of all quanta so far.
    own_so_far: (f64, f64),
    pub is_core: bool,
}

impl Domain {
    /// The states of all domains of a recording.
    pub fn all(domains: &[DomainInfo], cpus_of: impl Fn(&DomainInfo) -> Vec<u32>) -> Vec<Self> {
        let index_of = |name: &str| domains.iter().position(|domain| domain.name == name);
        let mut states: Vec<Self> = domains
            .iter()
            .map(|info| Self {
                curve: EnergyCurve::default(),
                cpus: as_set(&cpus_of(info)),
                parent: info.parent.as_deref().and_then(index_of),
                measured_cores: Vec::new(),
                other_time: OtherTime::default(),
                own_so_far: (0.0, 0.0),
                is_core: info.kind == DomainKind::Core,
            })
            .collect();
        for core in 0..states.len() {
            let mut ancestor = states[core].parent.filter(|_| states[core].is_core);
            // A tree of domains is at most platform, package, cores, core: the bound stops a loop.
            for _ in 0..4 {
                let Some(index) = ancestor else { break };
                states[index].measured_cores.push(core);
                ancestor = states[index].parent;
            }
        }
        states
    }

    /// Whether the domain's energy goes to this CPU, or may.
    pub fn feeds(&self, cpu: Option<u32>) -> bool {
        match cpu {
            Some(cpu) if !self.cpus.is_empty() => self.cpus.get(cpu as usize).copied().unwrap_or(false),
            _ => true,
        }
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
}

fn as_set(cpus: &[u32]) -> Vec<bool> {
    // Kernels end at 8192 CPUs; a number beyond is damage in the file.
    const MOST: u32 = 1 << 16;
    let mut set = Vec::new();
    for cpu in cpus.iter().copied().filter(|cpu| *cpu < MOST) {
        if set.len() <= cpu as usize {
            set.resize(cpu as usize + 1, false);
        }
        set[cpu as usize] = true;
    }
    set
}
