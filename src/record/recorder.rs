//! A recording under way: waits for rings, readings, signals and the program's end.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use perf_data::encode::{self, RecordTooLong};

use crate::machine::Roots;
use crate::process::Outcome;
use crate::process::clocks::monotonic_now;
use crate::record::backlog::Backlog;
use crate::record::cgroup_names::CgroupNames;
use crate::record::counter_log::{self, CounterLog};
use crate::record::counters::Counters;
use crate::record::cpu_times::CpuTimesReader;
use crate::record::drain::Drain;
use crate::record::duty::Duty;
use crate::record::energy_log::{EnergyLog, EnergySummary};
use crate::record::error::RecordError;
use crate::record::event_totals::EventTotals;
use crate::record::gpu::gpu_records::GpuRecords;
use crate::record::progress::{Listener, SoFar};
use crate::record::sampling::Sampling;
use crate::record::stop_conditions::StopConditions;
use crate::record::untold_losses::UntoldLosses;
use crate::recording::own_events;

/// How often rings are emptied that have not asked for it, so that little is missing from the file if
/// the recorder is killed.
const TICK: Duration = Duration::from_millis(100);
/// Reading the CPU times may take this share of the recorder's time: on machines with many CPUs and
/// interrupts one reading takes milliseconds.
const CPU_TIMES_SHARE: u32 = 500;
/// A reading can also seem slow because the recorder had to wait for a CPU. Without readings for long,
/// nobody knows what others used.
const LONGEST_WITHOUT_CPU_TIMES: Duration = Duration::from_millis(500);

/// Between two tellings of what there is so far.
const BETWEEN_TELLING: Duration = Duration::from_millis(500);

/// A recording under way.
pub struct Recorder {
    /// What is counted.
    sampling: Sampling,
    /// Those of the counters that tell the target's own CPU time.
    own_time: Vec<usize>,
    /// How busy the CPUs are.
    cpu_times: Option<CpuTimesReader>,
    /// The meters and their readings.
    energy: EnergyLog,
    /// What is told of the program's GPU.
    gpu: GpuRecords,
    /// The way to the file.
    drain: Drain,
    /// What the counters say meanwhile.
    counter_log: CounterLog,
    /// What they say in the end.
    totals: EventTotals,
    /// What they say was lost in the end, and no record does.
    untold_losses: UntoldLosses,
    /// What ends the recording.
    stop: StopConditions,
    /// When samples are taken, if not always.
    duty: Option<Duty>,
    /// Of a file that is read meanwhile.
    backlog: Option<Backlog>,
    /// The first error of writing; nothing is recorded after it.
    failure: Option<io::Error>,
}

/// A recording that has ended, its file still without a trailer.
pub struct Recorded {
    /// How it ended.
    pub outcome: Outcome,
    /// What was sampled.
    pub sampling: Sampling,
    /// What the meters read.
    pub energy: Option<EnergySummary>,
    /// What the counters say in the end.
    pub totals: EventTotals,
    /// The way to the file.
    pub drain: Drain,
    /// Who waits for the program.
    pub stop: StopConditions,
    /// The first error of writing.
    pub failure: Option<io::Error>,
}

const SIGNAL_TOKEN: u64 = u64::MAX;

impl Recorder {
    /// Of counters and meters that have been started, into the file that `drain` writes.
    pub fn new(
        sampling: Sampling,
        own_time: Vec<usize>,
        energy: EnergyLog,
        gpu: GpuRecords,
        drain: Drain,
        stop: StopConditions,
        roots: &Roots,
    ) -> Self {
        let cpu_times = CpuTimesReader::open(roots).ok();
        Self {
            sampling,
            own_time,
            cpu_times,
            energy,
            gpu,
            drain,
            counter_log: CounterLog::default(),
            totals: EventTotals::default(),
            untold_losses: UntoldLosses::default(),
            stop,
            duty: None,
            backlog: None,
            failure: None,
        }
    }

    /// Samples are taken only when `duty` says so.
    pub fn in_duty_cycles(self, duty: Option<Duty>) -> Self {
        Self { duty, ..self }
    }

    /// The file is read meanwhile, and what of it is not read has a bound.
    pub fn followed(self, backlog: Option<Backlog>) -> Self {
        Self { backlog, ..self }
    }

    /// Records until the program, the watched tasks, the time or somebody's patience ends, and takes what is left
    /// then.
    ///
    /// # Errors
    /// If the kernel gives no way to wait for rings and signals; the program has ended then, too.
    pub fn run(mut self, progress: Listener<'_>) -> Result<Recorded, RecordError> {
        let outcome = match self.rounds(progress) {
            Ok(outcome) => outcome,
            Err(cause) => {
                let Self { stop, sampling, .. } = self;
                drop(sampling);
                return Err(stop.broke_off(cause));
            }
        };
        self.last_round();
        let Self { sampling, totals, drain, stop, failure, .. } = self;
        Ok(Recorded { outcome, sampling, energy: self.energy.summary(), totals, drain, stop, failure })
    }

    /// Empties the rings again and again, until the recording ends.
    fn rounds(&mut self, progress: Listener<'_>) -> Result<Outcome, RecordError> {
        let epoll =
            Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(RecordError::system("epoll_create1"))?;
        let readable = |token| EpollEvent::new(EpollFlags::EPOLLIN, token);
        epoll
            .add(self.stop.signals().as_fd(), readable(SIGNAL_TOKEN))
            .map_err(RecordError::system("waiting for signals"))?;
        for ring in &self.sampling.counters.rings {
            let owner = self.sampling.counters.counters[ring.owner].descriptor();
            epoll
                .add(owner, readable(ring.owner as u64))
                .map_err(RecordError::system("waiting for a ring"))?;
        }
        let mut ready = [EpollEvent::empty(); 64];
        let mut next_tick = Instant::now();
        let mut next_cpu_times = Instant::now();
        let started = Instant::now();
        let mut next_progress = started + BETWEEN_TELLING;
        loop {
            let until = self.stop.deadline().map_or(next_tick, |deadline| deadline.min(next_tick));
            let until = self.duty.as_ref().map_or(until, |duty| duty.next().min(until));
            let count = epoll.wait(&mut ready, timeout_until(until)).unwrap_or(0);
            for event in &ready[..count] {
                self.forget_if_ended(&epoll, event);
            }
            let now = Instant::now();
            let is_tick = now >= next_tick;
            if is_tick {
                next_tick = now + TICK;
            }
            let outcome = self.stop.met(is_tick);
            let with_cpu_times = outcome.is_some() || now >= next_cpu_times;
            self.round(with_cpu_times);
            if with_cpu_times {
                let pause = now.elapsed() * CPU_TIMES_SHARE;
                next_cpu_times = now + pause.clamp(TICK, LONGEST_WITHOUT_CPU_TIMES);
            }
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
            if now >= next_progress {
                next_progress = now + BETWEEN_TELLING;
                progress(&self.so_far(started));
            }
        }
    }

    fn so_far(&self, started: Instant) -> SoFar {
        let census = self.drain.census();
        let (samples, lost) = (census.samples, census.lost);
        SoFar { elapsed: started.elapsed(), energy: self.energy.summary(), samples, lost }
    }

    /// The tasks of a ring's owner have ended: its descriptor would say so for ever. The ring is still
    /// emptied, at every tick.
    fn forget_if_ended(&self, epoll: &Epoll, event: &EpollEvent) {
        if event.events().contains(EpollFlags::EPOLLHUP)
            && let Some(owner) = self.sampling.counters.counters.get(event.data() as usize)
        {
            let _ = epoll.delete(owner.descriptor());
        }
    }

    /// One round. An error of writing ends the recording, but not the program.
    fn round(&mut self, with_cpu_times: bool) {
        if self.failure.is_some() || self.backlog.as_ref().is_some_and(Backlog::is_full) {
            return;
        }
        if let Err(error) = self.try_round(with_cpu_times) {
            self.failure = Some(error);
            self.sampling.counters = Counters::default();
            self.own_time.clear();
            self.energy.give_up();
        }
    }

    fn try_round(&mut self, with_cpu_times: bool) -> io::Result<()> {
        let mut own = Vec::new();
        self.energy.collect(&mut own).map_err(io::Error::other)?;
        if let Some(duty) = &mut self.duty {
            duty.step(Instant::now(), &mut self.sampling.counters, &mut own).map_err(io::Error::other)?;
        }
        if let (true, Some(reader)) = (with_cpu_times, &mut self.cpu_times) {
            let time = monotonic_now();
            let times = reader.read()?;
            let target = self.sampling.counters.running_times(&self.own_time);
            let encoded = match &target[..] {
                [] => own_events::cpu_times(&times, time, &mut own),
                target => own_events::cpu_times_with_target(&times, target, time, &mut own),
            };
            encoded.map_err(io::Error::other)?;
        }
        if with_cpu_times {
            let Sampling { counters, events, .. } = &mut self.sampling;
            self.counter_log.append(counters, events, &mut own).map_err(io::Error::other)?;
            self.gpu.collect_activity(&mut own)?;
        }
        self.write_round(&own)?;
        self.write_kernel_names()
    }

    /// Writes a round whose own records begin with the readings that were last encoded.
    fn write_round(&mut self, own: &[u8]) -> io::Result<()> {
        let written = self.drain.round(&mut self.sampling.counters.rings, own);
        self.energy.written(self.drain.own_written());
        written
    }

    /// Writes the names of kernels that the program has just asked for. They are rare, and a round of their own
    /// keeps them from waiting, as the program may end.
    fn write_kernel_names(&mut self) -> io::Result<()> {
        let kept = self.drain.take_kept();
        let mut own = Vec::new();
        if !kept.is_empty() {
            self.gpu.name_kernels(&kept, &mut own).map_err(io::Error::other)?;
        }
        self.drain.round(&mut [], &own)
    }

    /// The last round: final readings, what is left in the rings, and the counters' final values.
    fn last_round(&mut self) {
        if self.failure.is_some() {
            return;
        }
        let mut own = Vec::new();
        let stopped = self.energy.stop(&mut own);
        self.sampling.counters.disable();
        own.extend(self.sampling.cgroups.as_mut().map(CgroupNames::describe).unwrap_or_default());
        let encoded = stopped.and_then(|()| self.final_values(&mut own));
        let encoded = encoded.map_err(io::Error::other).and_then(|()| {
            while self.gpu.collect_activity(&mut own)? {
                self.write_round(&std::mem::take(&mut own))?;
            }
            Ok(())
        });
        let written = encoded
            .and_then(|()| self.write_round(&own))
            .and_then(|()| self.write_kernel_names())
            .and_then(|()| self.write_untold_losses());
        self.failure = written.err();
    }

    fn write_untold_losses(&mut self) -> io::Result<()> {
        let cpus = self.sampling.counters.rings.iter().map(|ring| ring.cpu);
        let told = &self.drain.census().lost_by_ring;
        let now = self.untold_losses.tell(cpus, told, monotonic_now()).map_err(io::Error::other)?;
        self.drain.add_losses(&now)
    }

    fn final_values(&mut self, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        let time = monotonic_now();
        for open in &mut self.sampling.counters.counters {
            let Ok(value) = open.value() else { continue };
            self.totals.add(open.event, open.task, &value);
            self.untold_losses.add(open.cpu, open.id(), &value);
            encode::read(&value, &counter_log::id_of(open, time), out)?;
        }
        Ok(())
    }
}

/// Milliseconds from now, rounded up so that a wait does not end just before its time.
fn timeout_until(instant: Instant) -> EpollTimeout {
    let left = instant.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
    EpollTimeout::try_from(left).unwrap_or(EpollTimeout::ZERO)
}
