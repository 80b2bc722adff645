//! A recording under way: waits for rings, readings, signals and the program's end.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::unistd::Pid;
use perf_data::Features;
use perf_data::encode::{self, RecordTooLong, SampleId};
use perf_data::writer::PerfDataWriter;

use crate::process;
use crate::process::Outcome;
use crate::process::clocks::monotonic_now;
use crate::process::{ReceivedSignal, Signals};
use crate::record::census::Census;
use crate::record::counters::Counters;
use crate::record::cpu_times::CpuTimesReader;
use crate::record::drain::Drain;
use crate::record::energy_log::EnergyLog;
use crate::record::error::RecordError;
use crate::record::event_totals::EventTotals;
use crate::record::gpu::activity::ActivityFiles;
use crate::record::gpu::kernel_names::{GivenHandle, KernelNames};
use crate::record::process_state::ProcessState;
use crate::record::readings::MeterReader;
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

/// A recording under way.
pub struct Recorder {
    /// The recorder's signals.
    pub signals: Signals,
    /// What is counted.
    pub counters: Counters,
    /// Those of them that tell the target's own CPU time.
    pub own_time: Vec<usize>,
    /// The way to the file.
    pub drain: Drain,
    /// What went there.
    pub census: Census,
    /// What the counters say in the end.
    pub totals: EventTotals,
    /// The meters.
    pub meters: Vec<MeterReader>,
    /// How busy the CPUs are.
    pub cpu_times: Option<CpuTimesReader>,
    /// The meters' readings.
    pub energy: EnergyLog,
    /// The program, if the recorder started one.
    pub program: Option<Pid>,
    /// Tasks whose end ends the recording, if it is not a program's.
    pub watched: Vec<u32>,
    /// Where their state is read.
    pub process_state: ProcessState,
    /// When the time is up.
    pub deadline: Option<Instant>,
    /// Names of GPU kernels, where their launches are recorded.
    pub kernel_names: Option<KernelNames>,
    /// When kernels really ran, where the program tells it through CUPTI.
    pub activity: Option<ActivityFiles>,
    /// The first error of writing; nothing is recorded after it.
    pub failure: Option<io::Error>,
}

const SIGNAL_TOKEN: u64 = u64::MAX;

impl Recorder {
    /// Empties the rings until the program, the watched tasks, the time or somebody's patience ends.
    pub fn run(&mut self) -> Result<Outcome, RecordError> {
        let epoll =
            Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(RecordError::system("epoll_create1"))?;
        let readable = |token| EpollEvent::new(EpollFlags::EPOLLIN, token);
        epoll
            .add(self.signals.descriptor().as_fd(), readable(SIGNAL_TOKEN))
            .map_err(RecordError::system("waiting for signals"))?;
        for ring in &self.counters.rings {
            let owner = self.counters.counters[ring.owner].descriptor();
            epoll
                .add(owner, readable(ring.owner as u64))
                .map_err(RecordError::system("waiting for a ring"))?;
        }
        let mut ready = [EpollEvent::empty(); 64];
        let mut next_tick = Instant::now();
        let mut next_cpu_times = Instant::now();
        loop {
            let until = self.deadline.map_or(next_tick, |deadline| deadline.min(next_tick));
            let count = epoll.wait(&mut ready, timeout_until(until)).unwrap_or(0);
            for event in &ready[..count] {
                self.forget_if_ended(&epoll, event);
            }
            let now = Instant::now();
            let is_tick = now >= next_tick;
            if is_tick {
                next_tick = now + TICK;
            }
            let outcome = self.ending(is_tick);
            let with_cpu_times = outcome.is_some() || now >= next_cpu_times;
            self.round(with_cpu_times);
            if with_cpu_times {
                let pause = now.elapsed() * CPU_TIMES_SHARE;
                next_cpu_times = now + pause.clamp(TICK, LONGEST_WITHOUT_CPU_TIMES);
            }
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
        }
    }

    /// The tasks of a ring's owner have ended: its descriptor would say so for ever. The ring is still
    /// emptied, at every tick.
    fn forget_if_ended(&self, epoll: &Epoll, event: &EpollEvent) {
        if event.events().contains(EpollFlags::EPOLLHUP)
            && let Some(owner) = self.counters.counters.get(event.data() as usize)
        {
            let _ = epoll.delete(owner.descriptor());
        }
    }

    /// One round. An error of writing ends the recording, but not the program.
    fn round(&mut self, with_cpu_times: bool) {
        if self.failure.is_some() {
            return;
        }
        if let Err(error) = self.try_round(with_cpu_times) {
            self.failure = Some(error);
            self.counters = Counters::default();
            self.own_time.clear();
            self.meters.clear();
        }
    }

    fn try_round(&mut self, with_cpu_times: bool) -> io::Result<()> {
        let mut own = Vec::new();
        for meter in &mut self.meters {
            meter.collect(self.energy.waiting());
        }
        self.energy.encode(&mut own).map_err(io::Error::other)?;
        if let (true, Some(reader)) = (with_cpu_times, &mut self.cpu_times) {
            let time = monotonic_now();
            let times = reader.read()?;
            let target = self.counters.running_times(&self.own_time);
            let encoded = match &target[..] {
                [] => own_events::cpu_times(&times, time, &mut own),
                target => own_events::cpu_times_with_target(&times, target, time, &mut own),
            };
            encoded.map_err(io::Error::other)?;
        }
        if with_cpu_times {
            self.collect_activity(&mut own)?;
        }
        self.write_round(&own)?;
        self.write_kernel_names()
    }

    /// Writes a round whose own records begin with the readings that were last encoded.
    fn write_round(&mut self, own: &[u8]) -> io::Result<()> {
        let written = self.drain.round(&mut self.counters.rings, own, &mut self.census);
        self.energy.written(self.drain.own_written());
        written
    }

    /// What the program's GPU did, as far as it has told by now. Tells whether there may be more.
    fn collect_activity(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        const MOST: u64 = 4 << 20;
        let Some(activity) = &mut self.activity else { return Ok(false) };
        let time = monotonic_now();
        let mut written = Ok(());
        let more = activity.collect(MOST, |piece| {
            if written.is_ok() {
                written = own_events::gpu_activity(&piece, time, out);
            }
        });
        written.map(|()| more).map_err(io::Error::other)
    }

    /// Asks the program for the names of kernels that it has just asked for. They are rare, and a round
    /// of their own keeps them from waiting, as the program may end.
    fn write_kernel_names(&mut self) -> io::Result<()> {
        let kept = std::mem::take(&mut self.census.kept);
        let Some(names) = self.kernel_names.as_mut().filter(|_| !kept.is_empty()) else { return Ok(()) };
        let mut own = Vec::new();
        for given in names.take(&kept) {
            let written = match given {
                GivenHandle::Kernel(name) => own_events::kernel_name(&name, monotonic_now(), &mut own),
                GivenHandle::Context(context) => own_events::context(context, monotonic_now(), &mut own),
            };
            written.map_err(io::Error::other)?;
        }
        self.drain.round(&mut [], &own, &mut self.census)
    }

    /// Whether and how the recording ends now.
    fn ending(&mut self, tick: bool) -> Option<Outcome> {
        while let Some(signal) = self.signals.next() {
            match signal {
                ReceivedSignal::ChildChanged => {
                    if let Some(outcome) = self.program.and_then(process::reap) {
                        self.program = None;
                        return Some(outcome);
                    }
                }
                // The program has got it too, and decides what it means.
                ReceivedSignal::FromTerminal(_) if self.program.is_some() => {}
                ReceivedSignal::FromTerminal(signal) | ReceivedSignal::Stop(signal) => {
                    return Some(Outcome::Stopped(signal));
                }
            }
        }
        if tick
            && !self.watched.is_empty()
            && !self.watched.iter().any(|&tid| self.process_state.is_alive(tid))
        {
            return Some(Outcome::TargetsEnded);
        }
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(Outcome::TimeUp)
    }

    /// The last round: final readings, what is left in the rings, and the counters' final values.
    pub fn last_round(&mut self) {
        if self.failure.is_some() {
            return;
        }
        for meter in std::mem::take(&mut self.meters) {
            meter.stop(self.energy.waiting());
        }
        self.counters.disable();
        let mut own = Vec::new();
        let encoded = self.energy.encode(&mut own).and_then(|()| self.final_values(&mut own));
        let encoded = encoded.map_err(io::Error::other).and_then(|()| {
            while self.collect_activity(&mut own)? {
                self.write_round(&std::mem::take(&mut own))?;
            }
            Ok(())
        });
        let written = encoded.and_then(|()| self.write_round(&own)).and_then(|()| self.write_kernel_names());
        self.failure = written.err();
    }

    fn final_values(&mut self, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        let time = monotonic_now();
        for open in &mut self.counters.counters {
            let Ok(value) = open.value() else { continue };
            self.totals.add(open.event, open.task, &value);
            let id = SampleId { pid: u32::MAX, tid: u32::MAX, time, cpu: open.cpu, id: open.id() };
            encode::read(&value, &id, out)?;
        }
        Ok(())
    }

    /// Closes the file, readable whatever went wrong.
    pub fn close(self, features: &Features) -> Closed {
        let (file_size, closed) = finish_file(self.drain.into_writer(), features);
        let failure = self.failure.or(closed.err());
        Closed { file_size, failure, signals: self.signals, program: self.program }
    }
}

/// Writes the features, and leaves the file without them if that fails. Gives the file's size; `NotFound` is a file
/// that somebody removed meanwhile.
fn finish_file(writer: PerfDataWriter<File>, features: &Features) -> (u64, io::Result<()>) {
    let data_end = writer.data_end();
    let finish = || {
        let file = writer.get_ref().try_clone()?;
        // A failed write may have left a part of its records, which also takes the features' room.
        file.set_len(data_end)?;
        match writer.finish(features) {
            Ok(file) => match file.metadata()? {
                removed if removed.nlink() == 0 => Err(io::ErrorKind::NotFound.into()),
                kept => Ok(kept.len()),
            },
            Err(error) => {
                // Readers of a recording without features go on to the end of the file.
                file.set_len(data_end)?;
                Err(error)
            }
        }
    };
    match finish() {
        Ok(size) => (size, Ok(())),
        Err(error) => (data_end, Err(error)),
    }
}

/// What is left of a recorder when its file is closed.
pub struct Closed {
    /// Bytes of the file.
    pub file_size: u64,
    /// The first error of writing.
    pub failure: Option<io::Error>,
    /// The recorder's signals.
    pub signals: Signals,
    /// The program, if it still runs.
    pub program: Option<Pid>,
}

/// Milliseconds from now, rounded up so that a wait does not end just before its time.
fn timeout_until(instant: Instant) -> EpollTimeout {
    let left = instant.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
    EpollTimeout::try_from(left).unwrap_or(EpollTimeout::ZERO)
}
