//! Joules of a GPU to the launches that were outstanding: a model, not a measurement.
//!
//! From the host one sees when a kernel was launched and when a wait for it returned. In between it is
//! *outstanding*: it runs or stands in a queue. The GPU's energy above active idle goes to what was
//! outstanding meanwhile, in equal parts where there are several. So kernels that are launched one
//! after the other and waited for once share by number and not by their lengths; kernels with a wait of
//! their own are told apart as well as the sensor's refreshes allow. Where several take turns within its
//! refreshes, what each draws is fitted to these, see `kernel_watts.rs`.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::kernel_watts::{KernelWatts, SeenStep};
pub use super::queue::Outstanding;
use super::queue::{Queue, SmearedQueue, Weights};
use crate::numerics::quantiles::{quantile, weighted};
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// A stream of a process, by its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// The default stream of old, which all threads share.
    Default,
    /// The default stream of this thread.
    OfThread(u32),
    /// One that the program made.
    Handle(u64),
}

/// What a wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor {
    /// All that was launched, or what is not known.
    All,
    /// One stream.
    Stream(Stream),
    /// An event that was put into a stream, by its handle.
    Event(u64),
}

/// Follows launches and waits, in time order.
#[derive(Debug, Clone, Default)]
pub struct LaunchTracker {
    /// By process, what no wait has covered yet.
    open: FxHashMap<u32, Vec<Open>>,
    /// By thread, when it began to wait, for which GPU, and what for.
    waiting: FxHashMap<u32, (Timestamp, Option<u32>, WaitFor)>,
    /// By process and event: the stream that it was put into last, and when.
    events: FxHashMap<(u32, u64), (Stream, Timestamp)>,
    /// By process and stream that waits for another: since when, and for what.
    joins: FxHashMap<(u32, Stream), Vec<(Timestamp, Reach)>>,
    done: Vec<Outstanding>,
}

/// All that was launched into a stream until then.
type Reach = (Stream, Timestamp);

/// A launch that nobody waited for yet.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: Timestamp,
    owner: u32,
    gpu: Option<u32>,
    stream: Option<Stream>,
}

impl Open {
    fn until(self, end: Timestamp) -> Outstanding {
        let Self { start, owner, gpu, .. } = self;
        Outstanding { start, end, owner, gpu }
    }
}

impl LaunchTracker {
    /// A process launched something, on this GPU and into this stream if they are known.
    pub fn launch(
        &mut self,
        pid: u32,
        time: Timestamp,
        owner: u32,
        gpu: Option<u32>,
        stream: Option<Stream>,
    ) {
        self.open.entry(pid).or_default().push(Open { start: time, owner, gpu, stream });
    }

    /// The stream of a launch becomes known, as CUDA's runtime hands it to the driver.
    pub fn stream_of(&mut self, pid: u32, owner: u32, stream: Stream) {
        let launches = self.open.get_mut(&pid).into_iter().flatten();
        launches.filter(|launch| launch.owner == owner).for_each(|launch| launch.stream = Some(stream));
    }

    /// An event is put into a stream: it comes when all before it has been done.
    pub fn record_event(&mut self, pid: u32, event: u64, stream: Stream, time: Timestamp) {
        self.events.insert((pid, event), (stream, time));
    }

    /// What will be launched into a stream waits for an event, and whoever waits for the stream does, too.
    pub fn join(&mut self, pid: u32, stream: Stream, event: u64, time: Timestamp) {
        /// Streams that join others for ever are waited for now and then.
        const MOST: usize = 1024;
        if let Some(reach) = self.events.get(&(pid, event)) {
            let joins = self.joins.entry((pid, stream)).or_default();
            joins.push((time, *reach));
            if joins.len() > MOST {
                joins.drain(..MOST / 2);
            }
        }
    }

    /// A thread begins to wait, for what runs on this GPU if it is known. A call that waits for
    /// everything may wait for a stream within.
    pub fn wait(&mut self, tid: u32, time: Timestamp, gpu: Option<u32>, what: WaitFor) {
        let all = self.waiting.get(&tid).is_some_and(|(.., outer)| *outer == WaitFor::All);
        self.waiting.insert(tid, (time, gpu, if all { WaitFor::All } else { what }));
    }

    /// A thread's wait is over: what its process had launched before into what it waited for is done.
    /// Launches of which the stream is not known count as waited for.
    pub fn waited(&mut self, pid: u32, tid: u32, time: Timestamp) {
        let Some((since, gpu, what)) = self.waiting.remove(&tid) else { return };
        let reached = match what {
            WaitFor::All => None,
            WaitFor::Stream(stream) => Some(self.reached(pid, (stream, since))),
            WaitFor::Event(event) => self.events.get(&(pid, event)).map(|reach| self.reached(pid, *reach)),
        };
        let Some(open) = self.open.get_mut(&pid) else { return };
        let elsewhere = |launch: &Open| gpu.is_some() && launch.gpu.is_some() && launch.gpu != gpu;
        let is_reached = |launch: &Open| match (&reached, launch.stream) {
            (Some(reached), Some(stream)) => {
                reached.iter().any(|(other, until)| *other == stream && launch.start <= *until)
            }
            _ => true,
        };
        let covered = |launch: &mut Open| launch.start <= since && !elsewhere(launch) && is_reached(launch);
        self.done.extend(open.extract_if(.., covered).map(|launch| launch.until(time)));
    }

    /// A stream until a time, and what it waited for until then.
    fn reached(&self, pid: u32, reach: Reach) -> Vec<Reach> {
        let mut all = vec![reach];
        let mut next = 0;
        while let Some((stream, until)) = all.get(next).copied() {
            next += 1;
            for (since, joined) in self.joins.get(&(pid, stream)).into_iter().flatten() {
                let known = all.iter().any(|(stream, until)| *stream == joined.0 && *until >= joined.1);
                if *since <= until && !known {
                    all.push(*joined);
                }
            }
        }
        all
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
    /// Its variance in square joules: of what owners were fitted to draw, or, where nothing could be fitted, as if
    /// between two refreshes of the sensor all of the energy could as well have been one owner's.
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
    /// The meter moved up to this long before `start` was read, and before `end`.
    doubts: [Nanoseconds; 2],
    /// The last readings that did not show what `start` showed, and `end`.
    unchanged: [Timestamp; 2],
}

impl Step {
    fn span(&self) -> Nanoseconds {
        self.end.since(self.start)
    }

    fn seen(&self) -> SeenStep {
        SeenStep { start: self.start, end: self.end, unchanged: self.unchanged[1], energy: self.energy }
    }

    /// From when it was seen to when the meter moved.
    fn put_in_time(&mut self, watts: &KernelWatts) {
        let [start, end] = self.unchanged;
        [self.start, self.end] =
            [(start, self.start), (end, self.end)].map(|(unchanged, seen)| watts.moved_at(unchanged, seen));
        self.doubts = [Nanoseconds::ZERO; 2];
    }

    /// The time between the meter's own moves, as well as it is known.
    fn true_span(&self) -> Nanoseconds {
        let [start, end] = self.doubts.map(|doubt| doubt.as_nanos() / 2);
        Nanoseconds::from_nanos((self.span().as_nanos() + start).saturating_sub(end))
    }

    /// How far the true span may be from [`Self::true_span`], as a share of it.
    fn doubt(&self) -> f64 {
        let half = self.doubts.iter().map(|doubt| doubt.as_nanos()).sum::<u64>() as f64 / 2.0;
        half / (self.true_span().as_nanos() as f64).max(1.0)
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
    let mut steps = steps(readings, refresh);
    let refresh = refresh.unwrap_or_else(|| typical_span(&steps));
    let mut idle = active_idle(&steps, launches, refresh);
    let seen: Vec<SeenStep> = steps.iter().map(Step::seen).collect();
    let watts = KernelWatts::fit(&seen, launches, idle.unwrap_or_default().power, refresh);
    if let Some(watts) = &watts {
        steps.iter_mut().for_each(|step| step.put_in_time(watts));
        // Rest is as long as between the meter's own moves.
        idle = active_idle(&steps, launches, refresh).or(idle);
    }
    let idle_watts = idle.unwrap_or_default().power;
    let mut shares = Shares { idle_power: idle.map(|idle| idle.power), ..Shares::default() };
    let mut queue = Queue::new(launches);
    // Of the last step with something outstanding: its weights, and when the last of it was done.
    let mut latest: Option<(Weights, Timestamp)> = None;
    let mut block = Block::default();
    let mut doubt = Doubt::default();
    let smear = watts.as_ref().map_or(Nanoseconds::ZERO, KernelWatts::smear);
    let mut seen_queue = SmearedQueue::new(launches, smear);
    for step in &steps {
        let (weights, busy_until) = queue.advance(step.start, step.end);
        for (owner, nanos) in &weights {
            shares.by_owner.entry(*owner).or_default().busy += Nanoseconds::from_nanos(*nanos as u64);
        }
        let seen = seen_queue.advance(step.start, step.end);
        if let Some(until) = busy_until {
            latest = Some((if seen.is_empty() { weights } else { seen }, until));
        } else if let (Some((weights, _)), false) = (&mut latest, seen.is_empty()) {
            *weights = seen;
        }
        // A meter shows energy up to a refresh late.
        match latest.as_ref().filter(|(_, until)| step.start.since(*until) <= refresh) {
            Some((weights, _)) => block.add(step, weights.clone(), idle_watts),
            None => {
                std::mem::take(&mut block).settle(&mut shares, watts.as_ref(), &mut doubt);
                shares.idle += step.energy;
            }
        }
    }
    block.settle(&mut shares, watts.as_ref(), &mut doubt);
    if let Some(watts) = &watts {
        doubt.tell(&mut shares, watts);
    }
    // Of all owners alike: what idling is taken for is taken out of each of their seconds.
    let varies = idle.unwrap_or_default().varies.as_watts();
    for share in shares.by_owner.values_mut() {
        share.variance += (varies * share.busy.as_secs_f64()).powi(2);
    }
    shares
}

/// How the joules of owners hang on what each of them is taken to draw.
#[derive(Debug, Default)]
struct Doubt {
    /// Joules of an owner for each whole by which the watts of a column are more.
    by_column: FxHashMap<(u32, usize), f64>,
    /// Of owners that share a column: the same of their own watts.
    own: FxHashMap<u32, f64>,
    /// Of each owner, the variance since no turn draws what another one does.
    of_turns: FxHashMap<u32, f64>,
}

impl Doubt {
    /// A step's joules above idling, and each owner's part of them.
    fn add(&mut self, joules: f64, parts: &[(u32, f64)], watts: &KernelWatts) {
        if parts.len() < 2 {
            return;
        }
        for (owner, part) in parts {
            for (other, of_other) in parts {
                let same = if owner == other { *part } else { 0.0 };
                let slope = joules * (same - part * of_other) / watts.relative(*other);
                *self.by_column.entry((*owner, watts.column(*other))).or_default() += slope;
            }
            let of_turn = watts.variance_of_turn(joules, *part, parts.iter().map(|(_, part)| *part));
            *self.of_turns.entry(*owner).or_default() += of_turn;
            if watts.shares_column(*owner) {
                *self.own.entry(*owner).or_default() += joules * part * (1.0 - part);
            }
        }
    }

    fn tell(self, shares: &mut Shares, watts: &KernelWatts) {
        let mut slopes: BTreeMap<u32, Vec<(usize, f64)>> = BTreeMap::new();
        for ((owner, column), slope) in self.by_column {
            slopes.entry(owner).or_default().push((column, slope));
        }
        for (owner, slopes) in slopes {
            let own = self.own.get(&owner).map_or(0.0, |slope| (slope * KernelWatts::DIFFER).powi(2));
            let of_turns = self.of_turns.get(&owner).copied().unwrap_or_default();
            shares.by_owner.entry(owner).or_default().variance = watts.variance(&slopes) + own + of_turns;
        }
    }
}

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
        let dynamic = step.energy - idle * step.true_span();
        self.energy += step.energy;
        self.dynamic += dynamic;
        self.steps.push((dynamic.max(Joules::ZERO), weights));
    }

    /// Gives the block's energy above idling to the owners, and the rest to idling.
    fn settle(self, shares: &mut Shares, watts: Option<&KernelWatts>, doubt: &mut Doubt) {
        let positive: Joules = self.steps.iter().map(|(dynamic, _)| *dynamic).sum();
        let dynamic = self.dynamic.max(Joules::ZERO);
        let scale = if positive > Joules::ZERO { dynamic / positive } else { 0.0 };
        let mut given = Joules::ZERO;
        for (step, weights) in &self.steps {
            let joules = *step * scale;
            let drawn = |owner: u32, nanos: f64| nanos * watts.map_or(1.0, |watts| watts.relative(owner));
            let total: f64 = weights.iter().map(|(owner, nanos)| drawn(*owner, *nanos)).sum();
            if total <= 0.0 {
                continue;
            }
            let parts: Vec<(u32, f64)> =
                weights.iter().map(|(owner, nanos)| (*owner, drawn(*owner, *nanos) / total)).collect();
            for (owner, part) in &parts {
                let share = shares.by_owner.entry(*owner).or_default();
                share.joules += joules * *part;
                given += joules * *part;
                if watts.is_none() {
                    share.variance += joules.as_joules().powi(2) * part * (1.0 - part);
                }
            }
            if let Some(watts) = watts {
                doubt.add(joules.as_joules(), &parts, watts);
            }
        }
        shares.idle += self.energy - given;
    }
}

/// Changes of the meter. One that often shows what it showed before moves by itself, some time before a
/// reading shows it: after the reading before that, and within a refresh.
fn steps(readings: &[(Timestamp, Joules)], refresh: Option<Nanoseconds>) -> Vec<Step> {
    let mut steps = Vec::new();
    let Some((mut start, mut energy)) = readings.first().copied() else { return steps };
    let repeats = readings.windows(2).filter(|pair| pair[0].1 == pair[1].1).count();
    let moves_by_itself = repeats * 5 > readings.len();
    let longest = refresh.unwrap_or(Nanoseconds::from_nanos(u64::MAX));
    let (mut doubt, mut unchanged) = (Nanoseconds::ZERO, start);
    for pair in readings.windows(2) {
        let (time, now) = pair[1];
        if now > energy && time > start {
            let since = if moves_by_itself { time.since(pair[0].0).min(longest) } else { Nanoseconds::ZERO };
            let (doubts, unchanged_at) = ([doubt, since], [unchanged, pair[0].0]);
            steps.push(Step { start, end: time, energy: now - energy, doubts, unchanged: unchanged_at });
            (start, energy, doubt, unchanged) = (time, now, since, pair[0].0);
        }
    }
    steps
}

/// The median time between two changes.
fn typical_span(steps: &[Step]) -> Nanoseconds {
    let mut spans: Vec<Nanoseconds> = steps.iter().map(Step::span).collect();
    spans.sort_unstable();
    quantile(&spans, 0.5).unwrap_or(Nanoseconds::ZERO)
}

/// What a GPU draws that waits for work.
#[derive(Debug, Clone, Copy, Default)]
struct Idle {
    power: Watts,
    /// By how much it differs from one rest to the next, one standard deviation: it may have been as much more or less
    /// meanwhile.
    varies: Watts,
}

/// The mean power of stretches far from any launch: after the first one if they are long enough, since a
/// GPU draws less before it has a context. Of whole stretches, as single steps seem shorter or longer than
/// they are by when they were read; and only of those that draw what the middle one by time does, as
/// something else may have run meanwhile.
fn active_idle(steps: &[Step], launches: &[Outstanding], refresh: Nanoseconds) -> Option<Idle> {
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
                last.doubts[1] = step.doubts[1];
                last.unchanged[1] = step.unchanged[1];
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
    let power = |stretch: &Step| stretch.energy / stretch.true_span();
    chosen.sort_by(|a, b| power(a).as_watts().total_cmp(&power(b).as_watts()));
    let middle = weighted(&chosen, |stretch| stretch.span().as_nanos() as f64, 0.5)?;
    /// Idling itself varies by this share, with temperature and clocks.
    const VARIES: f64 = 0.05;
    let is_like = |stretch: &&Step| {
        let reach = VARIES + stretch.doubt() + middle.doubt();
        (power(stretch) / power(middle) - 1.0).abs() <= reach
    };
    let like: Vec<&Step> = chosen.iter().filter(is_like).collect();
    let energy: Joules = like.iter().map(|stretch| stretch.energy).sum();
    let time: Nanoseconds = like.iter().map(|stretch| stretch.true_span()).sum();
    if time == Nanoseconds::ZERO {
        return None;
    }
    let mean = energy / time;
    // Of what stretches differ by, not what their ends leave open: anything within a doubt is as likely.
    let square = |stretch: &&Step| {
        let by_ends = (stretch.doubt() * power(stretch).as_watts()).powi(2) / 3.0;
        let part = stretch.true_span().as_secs_f64() / time.as_secs_f64();
        part * ((power(stretch) - mean).as_watts().powi(2) - by_ends)
    };
    let varies = Watts::from_watts(like.iter().map(square).sum::<f64>().max(0.0).sqrt());
    Some(Idle { power: mean, varies })
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

#[cfg(test)]
#[path = "launches_tests.rs"]
mod tests;
