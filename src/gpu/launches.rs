//! Joules of a GPU to the launches that were outstanding: a model, not a measurement.
//!
//! From the host one sees when a kernel was launched and when a wait for it returned. In between it is
//! *outstanding*: it runs or stands in a queue. The GPU's energy above active idle goes to what was
//! outstanding meanwhile, in equal parts where there are several. So kernels that are launched one
//! after the other and waited for once share by number and not by their lengths; kernels with a wait of
//! their own are told apart as well as the sensor's refreshes allow.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// One launch: outstanding from its call until a wait for it returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    /// When it was launched.
    pub start: Timestamp,
    /// When it was known to be done.
    pub end: Timestamp,
    /// Whom its joules go to.
    pub owner: u32,
    /// The GPU it runs on, where that is known.
    pub gpu: Option<u32>,
}

/// Follows launches and waits, in time order.
#[derive(Debug, Clone, Default)]
pub struct LaunchTracker {
    /// By process, what no wait has covered yet.
    open: FxHashMap<u32, Vec<Open>>,
    /// By thread, when it began to wait, and for which GPU.
    waiting: FxHashMap<u32, (Timestamp, Option<u32>)>,
    done: Vec<Outstanding>,
}

/// A launch that nobody waited for yet.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: Timestamp,
    owner: u32,
    gpu: Option<u32>,
}

impl Open {
    fn until(self, end: Timestamp) -> Outstanding {
        let Self { start, owner, gpu } = self;
        Outstanding { start, end, owner, gpu }
    }
}

impl LaunchTracker {
    /// A process launched something, on this GPU if it is known.
    pub fn launch(&mut self, pid: u32, time: Timestamp, owner: u32, gpu: Option<u32>) {
        self.open.entry(pid).or_default().push(Open { start: time, owner, gpu });
    }

    /// A thread begins to wait for what runs on this GPU, if it is known.
    pub fn wait(&mut self, tid: u32, time: Timestamp, gpu: Option<u32>) {
        self.waiting.insert(tid, (time, gpu));
    }

    /// A thread's wait is over: what its process had launched before that wait on that GPU is done. That
    /// another stream's launches need not be is not seen from here.
    pub fn waited(&mut self, pid: u32, tid: u32, time: Timestamp) {
        let Some((since, gpu)) = self.waiting.remove(&tid) else { return };
        let Some(open) = self.open.get_mut(&pid) else { return };
        let elsewhere = |launch: &Open| gpu.is_some() && launch.gpu.is_some() && launch.gpu != gpu;
        let covered = |launch: &mut Open| launch.start <= since && !elsewhere(launch);
        self.done.extend(open.extract_if(.., covered).map(|launch| launch.until(time)));
    }

    /// A process ended, and all that it launched with it.
    pub fn ended(&mut self, pid: u32, time: Timestamp) {
        let open = self.open.remove(&pid).unwrap_or_default();
        self.done.extend(open.into_iter().map(|launch| launch.until(time)));
    }

    /// All launches; what is still open then ends at `end`.
    pub fn finish(mut self, end: Timestamp) -> Vec<Outstanding> {
        let pids: Vec<u32> = self.open.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.ended(pid, end));
        self.done.sort_unstable_by_key(|launch| (launch.start, launch.end, launch.owner));
        self.done
    }
}

/// What one owner's launches got.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share {
    /// Energy.
    pub joules: Joules,
    /// Its variance in square joules, as if between two refreshes of the sensor all of the energy could
    /// as well have been one owner's.
    pub variance: f64,
    /// Time, divided among what was outstanding at once.
    pub busy: Nanoseconds,
}

/// The energy of one GPU, shared out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shares {
    /// By owner.
    pub by_owner: BTreeMap<u32, Share>,
    /// What remains: idling, with or without a context.
    pub idle: Joules,
    /// The level that counts as active idle; `None` if the GPU never rested long enough to tell, and all
    /// energy went to the launches.
    pub idle_power: Option<Watts>,
}

/// Time between two changes of the meter, and the energy it then showed.
#[derive(Debug, Clone, Copy)]
struct Step {
    start: Timestamp,
    end: Timestamp,
    energy: Joules,
}

impl Step {
    fn span(&self) -> Nanoseconds {
        self.end.since(self.start)
    }
}

/// Shares out what a meter counted. `readings`: time and cumulative energy, in time order; `launches`
/// by their starts; `refresh`: how often the meter moves, where that is known.
///
/// The parts and the idle energy add up to the last reading less the first.
pub fn share(
    readings: &[(Timestamp, Joules)],
    launches: &[Outstanding],
    refresh: Option<Nanoseconds>,
) -> Shares {
    let steps = steps(readings);
    let refresh = refresh.unwrap_or_else(|| typical_span(&steps));
    let idle_power = active_idle(&steps, launches, refresh);
    let idle_watts = idle_power.unwrap_or(Watts::ZERO);
    let mut shares = Shares { idle_power, ..Shares::default() };
    let mut queue = Queue::new(launches);
    // Of the last step with something outstanding: its weights, and when the last of it was done.
    let mut latest: Option<(Weights, Timestamp)> = None;
    let mut block = Block::default();
    for step in &steps {
        let (weights, busy_until) = queue.advance(step.start, step.end);
        for (owner, nanos) in &weights {
            shares.by_owner.entry(*owner).or_default().busy += Nanoseconds::from_nanos(*nanos as u64);
        }
        if let Some(until) = busy_until {
            latest = Some((weights, until));
        }
        // A meter shows energy up to a refresh late.
        match latest.as_ref().filter(|(_, until)| step.start.since(*until) <= refresh) {
            Some((weights, _)) => block.add(step, weights.clone(), idle_watts),
            None => {
                std::mem::take(&mut block).settle(&mut shares);
                shares.idle += step.energy;
            }
        }
    }
    block.settle(&mut shares);
    shares
}

/// Nanoseconds by owner.
type Weights = BTreeMap<u32, f64>;

/// Steps in a row in which something was outstanding, or just had been. Idling is taken out of all of
/// them together: step by step, those that were read late would seem to have more than they had, and
/// their neighbours could not give it back.
#[derive(Debug, Default)]
struct Block {
    energy: Joules,
    dynamic: Joules,
    /// Energy above idling and weights of each step.
    steps: Vec<(Joules, Weights)>,
}

impl Block {
    fn add(&mut self, step: &Step, weights: Weights, idle: Watts) {
        let dynamic = step.energy - idle * step.span();
        self.energy += step.energy;
        self.dynamic += dynamic;
        self.steps.push((dynamic.max(Joules::ZERO), weights));
    }

    /// Gives the block's energy above idling to the owners, and the rest to idling.
    fn settle(self, shares: &mut Shares) {
        let positive: Joules = self.steps.iter().map(|(dynamic, _)| *dynamic).sum();
        let dynamic = self.dynamic.max(Joules::ZERO);
        let scale = if positive > Joules::ZERO { dynamic / positive } else { 0.0 };
        let mut given = Joules::ZERO;
        for (step, weights) in &self.steps {
            let joules = *step * scale;
            let total: f64 = weights.values().sum();
            for (owner, weight) in weights.iter().filter(|_| total > 0.0) {
                let part = weight / total;
                let share = shares.by_owner.entry(*owner).or_default();
                share.joules += joules * part;
                share.variance += joules.as_joules().powi(2) * part * (1.0 - part);
                given += joules * part;
            }
        }
        shares.idle += self.energy - given;
    }
}

fn steps(readings: &[(Timestamp, Joules)]) -> Vec<Step> {
    let mut steps = Vec::new();
    let Some((mut start, mut energy)) = readings.first().copied() else { return steps };
    for (time, now) in &readings[1..] {
        if *now > energy && *time > start {
            steps.push(Step { start, end: *time, energy: *now - energy });
            (start, energy) = (*time, *now);
        }
    }
    steps
}

/// The median time between two changes.
fn typical_span(steps: &[Step]) -> Nanoseconds {
    let mut spans: Vec<Nanoseconds> = steps.iter().map(Step::span).collect();
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied().unwrap_or(Nanoseconds::ZERO)
}

/// The median power, by time, of stretches far from any launch: after the first one if they are long
/// enough, since a GPU draws less before it has a context. Of whole stretches, as single steps seem
/// shorter or longer than they are by when they were read.
fn active_idle(steps: &[Step], launches: &[Outstanding], refresh: Nanoseconds) -> Option<Watts> {
    /// Less rest than this many refreshes tells no level.
    const FEWEST_REFRESHES: u64 = 3;
    let busy = merged(launches);
    let is_far = |step: &Step| {
        let next = busy.partition_point(|(_, end)| *end + refresh + refresh < step.start);
        busy.get(next).is_none_or(|(start, _)| *start >= step.end)
    };
    let mut stretches: Vec<Step> = Vec::new();
    for step in steps.iter().filter(|step| is_far(step)) {
        match stretches.last_mut() {
            Some(last) if last.end == step.start => {
                last.end = step.end;
                last.energy += step.energy;
            }
            _ => stretches.push(*step),
        }
    }
    let first = launches.first().map_or(Timestamp::default(), |launch| launch.start);
    let after: Vec<Step> = stretches.iter().copied().filter(|stretch| stretch.start > first).collect();
    let enough = |stretches: &Vec<Step>| {
        let rest: u64 = stretches.iter().map(|stretch| stretch.span().as_nanos()).sum();
        rest >= FEWEST_REFRESHES * refresh.as_nanos() && rest > 0
    };
    let mut chosen = [after, stretches].into_iter().find(enough)?;
    let power = |stretch: &Step| stretch.energy / stretch.span();
    chosen.sort_by(|a, b| power(a).as_watts().total_cmp(&power(b).as_watts()));
    let half = chosen.iter().map(|stretch| stretch.span().as_nanos()).sum::<u64>() / 2;
    let mut passed = 0;
    chosen.iter().find_map(|stretch| {
        passed += stretch.span().as_nanos();
        (passed >= half).then(|| power(stretch))
    })
}

/// Times with anything outstanding, in order and apart.
fn merged(launches: &[Outstanding]) -> Vec<(Timestamp, Timestamp)> {
    let mut busy: Vec<(Timestamp, Timestamp)> = Vec::new();
    for launch in launches {
        match busy.last_mut() {
            Some((_, end)) if launch.start <= *end => *end = (*end).max(launch.end),
            _ => busy.push((launch.start, launch.end)),
        }
    }
    busy
}

/// What is outstanding, walked through time.
struct Queue {
    /// Beginnings and ends in time order: time, owner, one more or less.
    changes: Vec<(Timestamp, u32, bool)>,
    next: usize,
    now: BTreeMap<u32, u32>,
    count: u32,
}

impl Queue {
    fn new(launches: &[Outstanding]) -> Self {
        let both = |launch: &Outstanding| {
            [(launch.start, launch.owner, true), (launch.end.max(launch.start), launch.owner, false)]
        };
        let mut changes: Vec<_> = launches.iter().flat_map(both).collect();
        // A beginning before an end of the same time, so that no count falls below zero.
        changes.sort_by_key(|(time, owner, begins)| (*time, !begins, *owner));
        Self { changes, next: 0, now: BTreeMap::new(), count: 0 }
    }

    /// Nanoseconds by owner between two times, and the last time at which anything was outstanding.
    fn advance(&mut self, start: Timestamp, end: Timestamp) -> (Weights, Option<Timestamp>) {
        let mut weights = Weights::new();
        let mut busy_until = None;
        let mut time = start;
        loop {
            let change = self.changes.get(self.next).copied().filter(|(at, ..)| *at < end);
            let until = change.map_or(end, |(at, ..)| at.max(time));
            if self.count > 0 && until > time {
                let each = until.since(time).as_nanos() as f64 / f64::from(self.count);
                for (owner, count) in &self.now {
                    *weights.entry(*owner).or_insert(0.0) += each * f64::from(*count);
                }
                busy_until = Some(until);
            }
            time = until;
            let Some((_, owner, begins)) = change else { break };
            self.next += 1;
            if begins {
                *self.now.entry(owner).or_insert(0) += 1;
                self.count += 1;
            } else if let Some(count) = self.now.get_mut(&owner) {
                *count -= 1;
                self.count -= 1;
                if *count == 0 {
                    self.now.remove(&owner);
                }
            }
        }
        (weights, busy_until)
    }
}

#[cfg(test)]
#[path = "launches_tests.rs"]
mod tests;
