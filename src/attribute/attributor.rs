//! The walk in time order: quanta and readings in, joules of cells and the balance out.

use super::attribution::{Attribution, Options, Sharing};
use super::bucket::{BucketSums, CellSums, Rates};
use super::cpu_groups::CpuGroups;
use super::curve::EnergyCurve;
use super::domain::Domain;
use super::energy_bucket::Bucket;
use super::quantum::{Charge, Pending, Quantum, Window};
use super::recorder_time::RecorderTime;
use super::weights::EventWeights;
use crate::hardware::DomainInfo;
use crate::profile::{Balance, InSlice};
use crate::recording::energy::CpuTimes;
use crate::units::{Joules, Nanoseconds, Timestamp};

mod cells;

/// Distributes the joules of a recording. See the module's description.
#[derive(Debug)]
pub struct Attributor {
    domains: Vec<Domain>,
    cpu_groups: CpuGroups,
    weights: EventWeights,
    options: Options,
    pending: Window,
    /// Everything before this time is distributed; `None` until the first reading.
    frontier: Option<Timestamp>,
    /// Where the bucket that begins there ends, once that is known.
    bucket_end: Option<Timestamp>,
    /// When that became known. After a recorder that was held up for seconds, ends lie far back when they are found,
    /// and the CPU times of that stretch come right behind the readings.
    end_known: Timestamp,
    /// Readings came since the end was last looked for.
    is_end_open: bool,
    /// Energy at the time from which buckets are counted, and full buckets since then.
    counted_from: Option<(Joules, u64)>,
    now: Timestamp,
    /// Before this time, and before the next reading, no bucket can be closed.
    asleep_until: Timestamp,
    others_are_sampled: bool,
    recorder_time: RecorderTime,
    /// What the model's joules are to be multiplied by, if that is known. See [`Sharing::Whole`].
    pool_factors: Option<Vec<f64>>,
    /// Events and the static power; 0 if sensitivities are not wanted.
    parameters: usize,
    /// Indices of the domains, single cores before what contains them.
    cores_first: Vec<usize>,
    result: Attribution,
    sums: BucketSums,
    rates: Rates,
    by_cell: CellSums,
    scratch: Scratch,
}

/// One bucket, by domain; kept to save allocations.
#[derive(Debug, Default)]
struct Scratch {
    /// Model joules of the quanta.
    own: Vec<f64>,
    /// Measured joules per model joule.
    factor: Vec<f64>,
    /// What the recorder took by its share of the time in which CPUs were busy, in joules, where its samples are to tell that.
    of_recorder: Vec<f64>,
    /// By domain: counts of each event, and then what they and the bucket's length are as a share of the
    /// bucket's sum.
    shares: Vec<f64>,
    /// Joules that went to no quantum.
    unattributed: Vec<Unattributed>,
}

/// Joules of one bucket that went to no quantum.
#[derive(Debug, Default, Clone, Copy)]
struct Unattributed {
    static_energy: Joules,
    other_processes: Joules,
    recorder: Joules,
    lost: Joules,
}

impl Unattributed {
    fn add(&mut self, other: &Self) {
        self.static_energy += other.static_energy;
        self.other_processes += other.other_processes;
        self.recorder += other.recorder;
        self.lost += other.lost;
    }
}

/// CPU times are read less often than meters; a bucket waits this long for them.
const LONGEST_WAIT: Nanoseconds = Nanoseconds::from_millis(2000);

impl Attributor {
    /// For these domains and events.
    ///
    /// `others_are_sampled` tells that quanta of other processes are among those to come, so that
    /// busy CPUs need not be guessed from CPU times.
    pub fn new(
        domains: &[DomainInfo],
        cpus_of: impl Fn(&DomainInfo) -> Vec<u32>,
        weights: EventWeights,
        options: Options,
        others_are_sampled: bool,
    ) -> Self {
        let states = Domain::all(domains);
        let cpu_groups = CpuGroups::new(&domains.iter().map(cpus_of).collect::<Vec<_>>());
        let (count, events) = (domains.len(), weights.events());
        let parameters = if options.sensitivities { events + 1 } else { 0 };
        let columns_of_model = (options.sharing == Sharing::Whole).then_some(count);
        let mut cores_first: Vec<usize> = (0..count).collect();
        cores_first.sort_by_key(|index| !states[*index].is_core);
        Self {
            domains: states,
            weights,
            options,
            pending: Window::default(),
            frontier: None,
            bucket_end: None,
            end_known: Timestamp::default(),
            is_end_open: false,
            counted_from: None,
            now: Timestamp::default(),
            asleep_until: Timestamp::default(),
            others_are_sampled,
            recorder_time: RecorderTime::default(),
            pool_factors: None,
            parameters,
            cores_first,
            result: Attribution { balances: vec![Balance::default(); count], ..Attribution::default() },
            sums: BucketSums::new(events, &cpu_groups),
            rates: Rates::new(events, &cpu_groups, columns_of_model),
            by_cell: CellSums::new(count + columns_of_model.unwrap_or(0)),
            cpu_groups,
            scratch: Scratch {
                own: vec![0.0; count],
                factor: vec![0.0; count],
                of_recorder: vec![0.0; count],
                shares: vec![0.0; count * parameters],
                unattributed: vec![Unattributed::default(); count],
            },
        }
    }

    /// A meter's reading. Call everything in time order.
    pub fn reading(&mut self, domain: usize, time: Timestamp, energy: Joules) {
        let Some(state) = self.domains.get_mut(domain) else { return };
        if !state.curve.push(time, energy) {
            self.result.refused_readings += 1;
            return;
        }
        self.frontier.get_or_insert(time);
        self.is_end_open = true;
        self.asleep_until = Timestamp::default();
        self.advance(time);
    }

    /// CPU times of the whole machine and of the recorder, and the program's own on each CPU, if they were counted
    /// exactly.
    pub fn cpu_times(&mut self, time: Timestamp, times: &CpuTimes, own: &[(u32, Nanoseconds)]) {
        let recorder = self.recorder_time.advance(times, own);
        for (index, domain) in self.domains.iter_mut().enumerate() {
            let feeds = |cpu: u32| self.cpu_groups.feeds(index, cpu);
            let sum = |times: &[(u32, Nanoseconds)]| {
                times.iter().filter(|(cpu, _)| feeds(*cpu)).map(|(_, time)| *time).sum::<Nanoseconds>()
            };
            domain.other_time.push(time, sum(&times.busy), recorder.on(feeds));
            if !own.is_empty() {
                domain.other_time.push_own(time, sum(own));
            }
        }
    }

    /// A sample. One of an event without a row of weights costs nothing.
    #[inline]
    pub fn quantum(&mut self, quantum: Quantum) {
        if let Charge::Cell(cell) = quantum.charge
            && let Some(rows) = self.result.rows_of(cell, self.domains.len())
            && self.result.cell_joules.len() < rows.end
        {
            self.result.cell_joules.resize(rows.end, Joules::ZERO);
            self.result.sensitivities.resize(rows.end * self.parameters, 0.0);
            self.by_cell.make_room(self.result.first_cell, cell);
        }
        self.advance(quantum.end);
        self.wait(quantum);
    }

    /// A quantum that ends later than the stream's present time. Losses are such: they are told of when they begin, since
    /// they may last longer than attribution waits for the past.
    pub fn quantum_ahead(&mut self, quantum: Quantum) {
        self.wait(quantum);
    }

    #[inline]
    fn wait(&mut self, quantum: Quantum) {
        // Before the first reading there are no joules to give. What reaches back into what is already
        // distributed counts from there on: it came later than the horizon.
        if let Some(frontier) = self.frontier
            && quantum.end > frontier
            && (quantum.event as usize) < self.weights.events()
        {
            self.pending.push(Pending {
                start: quantum.start.max(frontier),
                end: quantum.end,
                count: quantum.count as f64,
                running: quantum.running.as_nanos() as f64,
                group: self.cpu_groups.group(quantum.cpu),
                event: quantum.event,
                charge: quantum.charge,
            });
        }
    }

    /// The end of the stream: distributes the rest.
    pub fn finish(mut self) -> Attribution {
        // Whatever was waited for does not come any more.
        self.now = Timestamp::from_nanos(u64::MAX);
        while self.close_full_bucket() {}
        let end = self.domains.iter().filter_map(|domain| domain.curve.last()).map(|(time, _)| time).max();
        if let (Some(frontier), Some(end)) = (self.frontier, end)
            && frontier < end
        {
            self.close_bucket(frontier, end, true);
        }
        for (domain, balance) in self.domains.iter().zip(&mut self.result.balances) {
            if let (Some((_, first)), Some((_, last))) = (domain.curve.first(), domain.curve.last()) {
                balance.measured = last - first;
            }
            // A core that counted more than the whole around it: nobody can be given that.
            balance.static_energy += domain.withheld;
        }
        if self.options.sharing == Sharing::Whole {
            self.pool();
        }
        self.result.others_are_unknown =
            self.domains.iter().any(|domain| domain.other_time.is_of_one_reading());
        self.result
    }

    #[inline]
    fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        // This is asked for every sample, and mostly in vain.
        while self.now >= self.asleep_until && self.close_full_bucket() {}
    }

    /// Closes the next bucket if its energy has been counted and no quantum can reach into it any more.
    fn close_full_bucket(&mut self) -> bool {
        let Some(frontier) = self.frontier else { return false };
        if self.bucket_end.is_none() && std::mem::take(&mut self.is_end_open) {
            self.bucket_end = self.end_of_bucket(frontier);
            self.end_known = self.now;
        }
        let Some(end) = self.bucket_end else {
            self.asleep_until = Timestamp::from_nanos(u64::MAX);
            return false;
        };
        if self.now.since(end) < self.options.horizon {
            self.asleep_until = end + self.options.horizon;
            return false;
        }
        let all_are_read = self.domains.iter().all(|domain| {
            // A domain that has stopped giving readings must not hold up the others for ever.
            domain.curve.last().is_none_or(|(last, _)| last >= end || end.since(last) > self.options.horizon)
        });
        let cpu_times_are_read = || {
            self.domains.iter().all(|domain| {
                let waits = self.now.since(end.max(self.end_known)) <= LONGEST_WAIT;
                domain.other_time.last().is_none_or(|last| last >= end || !waits)
            })
        };
        let is_full = all_are_read && cpu_times_are_read();
        if is_full {
            self.close_bucket(frontier, end, false);
        }
        is_full
    }

    /// When the domains that add up to the whole together reach the next multiple of a bucket's energy.
    fn end_of_bucket(&mut self, start: Timestamp) -> Option<Timestamp> {
        let whole: Vec<&EnergyCurve> =
            self.domains.iter().filter(|d| d.parent.is_none()).map(|d| &d.curve).collect();
        let energy_at = |time| whole.iter().map(|curve| curve.at(time)).sum::<Joules>();
        let (before, bucket) = (energy_at(start), self.options.bucket);
        let multiple = |(first, full): (Joules, u64)| first + bucket * (full + 1) as f64;
        // Not simply a bucket more than now: ends are whole nanoseconds, and what they miss would add up. A
        // domain whose first reading comes late makes the whole jump.
        let is_next = |target: Joules| target > before + bucket * 0.5 && target < before + bucket * 1.5;
        let from = self.counted_from.filter(|from| is_next(multiple(*from))).unwrap_or((before, 0));
        self.counted_from = Some(from);
        let target = multiple(from);
        if let [curve] = whole[..] {
            return curve.time_of(target).filter(|end| *end > start);
        }
        let last = whole.iter().filter_map(|curve| curve.last()).map(|(time, _)| time).min()?;
        if energy_at(last) < target || last <= start {
            return None;
        }
        // The sum of curves that never fall never falls: halve the interval down to the nanosecond.
        let (mut low, mut high) = (start.as_nanos(), last.as_nanos());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if energy_at(Timestamp::from_nanos(middle)) >= target { high = middle } else { low = middle }
        }
        Some(Timestamp::from_nanos(high))
    }

    fn close_bucket(&mut self, start: Timestamp, end: Timestamp, is_last: bool) {
        self.sums.collect(&self.pending, start, end, is_last);
        self.weigh();
        let span = end.since(start);
        let measured: Vec<Joules> =
            self.domains.iter().map(|d| d.curve.at(end) - d.curve.at(start)).collect();
        let given = self.within_the_whole(&measured);
        let before = self.balance_of_all();
        self.share_out(&given, start, end, span);
        let by_cell = self.distribute();
        self.pending.forget_until(end);
        if self.options.keep_buckets {
            let modelled = self.modelled(start, end);
            let quanta = self.sums.ended;
            // As the differences of one growing sum, so that those of all buckets add up to the whole.
            let all = self.top_level(&measured).map(|(_, joules)| *joules).sum();
            let balance = Balance { measured: all, ..self.balance_of_all() - before };
            self.result.kept_entries += by_cell.len();
            self.result.buckets.push(Bucket { start, end, measured, modelled, balance, quanta, by_cell });
        }
        for domain in &mut self.domains {
            domain.curve.forget_before(end);
        }
        self.frontier = Some(end);
        if let Some((_, full)) = &mut self.counted_from {
            *full += 1;
        }
        (self.bucket_end, self.is_end_open) = (None, true);
    }

    /// What is said of each domain that no other contains.
    fn top_level<'a, T>(&'a self, of_domain: &'a [T]) -> impl Iterator<Item = (usize, &'a T)> {
        of_domain.iter().enumerate().filter(|(index, _)| self.domains[*index].parent.is_none())
    }

    /// Where the joules of all top-level domains went so far, but for what was measured.
    fn balance_of_all(&self) -> Balance {
        self.top_level(&self.result.balances).fold(Balance::default(), |sum, (_, balance)| sum + *balance)
    }

    /// Model joules of all quanta in the bucket, and their counts, by domain.
    fn weigh(&mut self) {
        self.scratch.own.fill(0.0);
        self.scratch.shares.fill(0.0);
        for (group, fed) in self.cpu_groups.groups().iter().enumerate() {
            for (event, count) in self.sums.counts_of(group).iter().enumerate() {
                let weights = self.weights.of_event(event);
                for domain in fed {
                    self.scratch.own[*domain] += weights[*domain] * count;
                    if self.parameters > 0 {
                        self.scratch.shares[domain * self.parameters + event] += count;
                    }
                }
            }
        }
    }

    /// CPU nanoseconds of the quanta in a domain.
    fn running(&self, domain: usize) -> f64 {
        let groups = self.cpu_groups.groups().iter().enumerate();
        groups.filter(|(_, fed)| fed.contains(&domain)).map(|(group, _)| self.sums.running_of(group)).sum()
    }

    /// The bucket's joules, with those of cores that have a meter of their own bounded by what the whole around them
    /// counted.
    ///
    /// Cores are read less often than what contains them, so that in a bucket they may seem to have had more than the
    /// whole. What is too much is kept for the next buckets: the sum over all of them is each meter's own.
    fn within_the_whole(&mut self, measured: &[Joules]) -> Vec<Joules> {
        let mut given = measured.to_vec();
        let is_given = |scratch: &Scratch, core: usize| scratch.own[core] > 0.0;
        for (core, given) in given.iter_mut().enumerate() {
            if self.domains[core].is_core && is_given(&self.scratch, core) {
                *given += std::mem::replace(&mut self.domains[core].withheld, Joules::ZERO);
            }
        }
        for (whole, counted) in measured.iter().enumerate() {
            let cores = self.domains[whole].measured_cores.iter().copied();
            let cores: Vec<usize> = cores.filter(|&core| is_given(&self.scratch, core)).collect();
            let sum: Joules = cores.iter().map(|&core| given[core]).sum();
            if sum > *counted {
                let share = *counted / sum;
                for core in cores {
                    let kept = given[core] * (1.0 - share);
                    given[core] -= kept;
                    self.domains[core].withheld += kept;
                }
            }
        }
        given
    }

    /// Decides, per domain, the joules per model joule, and books what goes to no quantum.
    fn share_out(&mut self, measured: &[Joules], start: Timestamp, end: Timestamp, span: Nanoseconds) {
        for position in 0..self.cores_first.len() {
            let index = self.cores_first[position];
            let mut unattributed = Unattributed::default();
            let mut left = measured[index];
            for core in &self.domains[index].measured_cores {
                // What a core's own meter counted is given to the quanta by that core's factor.
                if self.scratch.own[*core] > 0.0 {
                    left -= measured[*core];
                    unattributed.add(&self.scratch.unattributed[*core]);
                }
            }
            // What rounding leaves below nothing is nothing.
            let left = left.max(Joules::ZERO);
            let known_static = self.options.static_joules(index, start, end);
            let is_divided_later = self.options.divided_later.get(index).copied().unwrap_or(false);
            let idle = if is_divided_later { left } else { known_static.min(left) };
            let dynamic = left - idle;
            unattributed.static_energy += idle;

            let own = self.scratch.own[index];
            let running = self.running(index);
            let other_time = &mut self.domains[index].other_time;
            let (others, recorder) = match self.others_are_sampled {
                true => (0.0, 0.0),
                false => other_time.charge(start, end, running),
            };
            self.scratch.of_recorder[index] = match self.others_are_sampled {
                true => dynamic.as_joules() * other_time.recorders_share(start, end),
                false => 0.0,
            };
            // A nanosecond of others is taken to cost as much as one of the program's own.
            let per_nanosecond = self.domains[index].cost_of_time(own, running);
            let (others, recorder) = (others * per_nanosecond, recorder * per_nanosecond);
            let total = own + others + recorder;
            self.scratch.factor[index] = 0.0;
            let is_idle = self.domains[index].is_next_to_nothing(total, span);
            if total > 0.0 && !is_idle {
                let factor = dynamic.as_joules() / total;
                self.scratch.factor[index] = factor;
                let shares = &mut self.scratch.shares[index * self.parameters..][..self.parameters];
                if let Some((constant, events)) = shares.split_last_mut() {
                    events.iter_mut().for_each(|count| *count /= total);
                    let watts = dynamic.as_joules();
                    *constant = if watts > 0.0 { span.as_secs_f64() / watts } else { 0.0 };
                }
                unattributed.other_processes += Joules::from_joules(others * factor);
                unattributed.recorder += Joules::from_joules(recorder * factor);
            } else if self.domains[index].is_estimated && !self.others_are_sampled {
                // What is beyond the watts at rest is CPU time, and none of it was sampled of the program.
                unattributed.other_processes += dynamic;
            } else if self.is_explained(index) {
                // Nothing ran: this is what the machine takes to be there.
                unattributed.static_energy += dynamic;
            } else {
                unattributed.lost += dynamic;
            }
            let balance = &mut self.result.balances[index];
            balance.static_energy += unattributed.static_energy;
            balance.other_processes += unattributed.other_processes;
            balance.recorder += unattributed.recorder;
            balance.lost += unattributed.lost;
            self.scratch.unattributed[index] = unattributed;
        }
    }

    /// What the model says that the bucket just summed has cost.
    fn modelled(&self, start: Timestamp, end: Timestamp) -> Joules {
        let whole = self.domains.iter().enumerate().filter(|(_, domain)| domain.parent.is_none());
        whole
            .map(|(index, _)| {
                let constant = self.options.static_joules(index, start, end);
                Joules::from_joules(self.scratch.own[index]) + constant
            })
            .sum()
    }

    /// Can any event be charged with this domain's joules?
    fn is_explained(&self, domain: usize) -> bool {
        (0..).map_while(|event| self.weights.of_event(event).get(domain)).any(|weight| *weight > 0.0)
    }

    /// Gives every quantum its joules; returns those of the cells, of all top-level domains together, and their time, if
    /// buckets are kept.
    fn distribute(&mut self) -> Vec<InSlice> {
        let columns = self.domains.len();
        let (weights, factor) = (&self.weights, &self.scratch.factor);
        let groups = self.cpu_groups.groups();
        self.rates.set(|group, event, column| {
            let weights = weights.of_event(event);
            let Some(domain) = self.domains.get(column) else { return weights[column - columns] };
            // Few domains feed a CPU, though many cores may be measured.
            let measured = groups[group].iter().filter(|core| domain.measured_cores.contains(core));
            weights[column] * factor[column]
                + measured.map(|core| weights[*core] * factor[*core]).sum::<f64>()
        });
        for part in self.sums.parts() {
            self.by_cell.add(part, &self.rates);
        }
        let [other_processes, recorder, lost] = self.by_cell.not_cells();
        for (index, balance) in self.result.balances.iter_mut().enumerate() {
            // Where the recorder is sampled like all others, its samples are lost like theirs. But its CPU time is known.
            let missing =
                (self.scratch.of_recorder[index] - recorder[index]).max(0.0).min(lost[index].max(0.0));
            balance.other_processes += Joules::from_joules(other_processes[index]);
            balance.recorder += Joules::from_joules(recorder[index] + missing);
            balance.lost += Joules::from_joules(lost[index] - missing);
        }
        let mut kept = Vec::new();
        for (cell, row, running) in self.by_cell.cells() {
            let Some(rows) = self.result.rows_of(cell, columns) else { continue };
            let (joules, model) = row.split_at(columns);
            let first = rows.start;
            let cell_joules = &mut self.result.cell_joules[rows];
            let given = if model.is_empty() { joules } else { model };
            for (sum, given) in cell_joules.iter_mut().zip(given) {
                *sum += Joules::from_joules(*given);
            }
            for (balance, joules) in self.result.balances.iter_mut().zip(joules) {
                balance.attributed += Joules::from_joules(*joules);
            }
            let changes = &mut self.result.sensitivities[first * self.parameters..];
            for (index, joules) in joules.iter().enumerate().filter(|(_, joules)| **joules != 0.0) {
                let shares = &self.scratch.shares[index * self.parameters..][..self.parameters];
                let changes = &mut changes[index * self.parameters..][..self.parameters];
                for (change, share) in changes.iter_mut().zip(shares) {
                    *change -= (joules * share) as f32;
                }
            }
            if self.options.keep_buckets {
                let top_level = self.domains.iter().zip(joules).filter(|(domain, _)| domain.parent.is_none());
                let joules = top_level.map(|(_, joules)| joules).sum::<f64>() as f32;
                kept.push(InSlice { cell, joules, seconds: (running / 1e9) as f32 });
            }
        }
        self.by_cell.clear();
        kept
    }
}

#[cfg(test)]
#[path = "attributor_tests.rs"]
mod tests;
