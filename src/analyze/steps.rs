//! What attribution is told, and how one thread tells it another.

use std::sync::mpsc::{Receiver, sync_channel};

use crate::analyze::intervals::cpu_set::CpuSet;
use crate::analyze::intervals::spans::Span;
use crate::analyze::sample_key::{NO_CPU, SampleKey};
use crate::attribute::{Charge, Quantum};
use crate::profile::StackTable;
use crate::recording::energy::CpuTimes;
use crate::units::{Joules, Nanoseconds, Timestamp};

/// What attribution takes in, in the order of time.
#[derive(Debug)]
pub(crate) enum Step {
    /// A sample.
    Sample(SampleStep),
    /// What was counted of the program and no sample tells of.
    NotSampled(Box<NotSampledStep>),
    /// What was lost.
    Lost(Box<LostStep>),
    /// A launch of a GPU's kernel.
    Launch { key: SampleKey, cpu: u32, event: u32 },
    /// A meter's reading, of a domain by index.
    Reading { domain: u32, time: Timestamp, energy: Joules },
    /// CPU times of the machine and the recorder, and the program's own by CPU.
    CpuTimes(Timestamp, Box<(CpuTimes, Vec<(u32, Nanoseconds)>)>),
    /// A part of the profile ends: the callers that its keys name. Those of the next part are numbered anew.
    PartEnds(Box<StackTable>),
    /// Keys tell nothing from now on: there are too many call paths.
    TooLarge,
}

impl Step {
    /// Keys mean something else behind this step than before it.
    #[inline]
    fn is_turn(&self) -> bool {
        matches!(self, Self::PartEnds(_) | Self::TooLarge)
    }
}

/// A sample and whose it is. Hundreds of thousands wait for attribution.
#[derive(Debug)]
pub(crate) struct SampleStep {
    pub end: Timestamp,
    pub count: u64,
    /// The CPU or [`NO_CPU`].
    pub cpu: u32,
    pub event: u32,
    pub owner: Owner,
}

/// What was counted of the program and no sample tells of, as if a sample did.
#[derive(Debug)]
pub(crate) struct NotSampledStep {
    /// It happened after this time.
    pub since: Timestamp,
    /// How long its CPU ran for it, where the event tells time.
    pub running: Nanoseconds,
    pub step: SampleStep,
}

/// Records that the kernel had no room for.
#[derive(Debug)]
pub(crate) struct LostStep {
    pub end: Timestamp,
    pub cpu: Option<u32>,
    pub records: u64,
    /// Where nothing is known of the CPU: what is taken to be lost, how much a record of it stands for, and since
    /// when.
    pub event: u32,
    pub mean: u64,
    pub since: Timestamp,
}

/// Whose a sample is. One of an idle CPU is counted, but gets no joules.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Owner {
    /// The cell of this key.
    Cell { is_idle: bool, key: SampleKey },
    /// Somebody known without a key.
    Charge { is_idle: bool, charge: Charge },
}

impl Owner {
    /// Nobody's: of an idle CPU.
    pub fn is_idle(self) -> bool {
        match self {
            Self::Cell { is_idle, .. } | Self::Charge { is_idle, .. } => is_idle,
        }
    }
}

impl SampleStep {
    /// As attribution takes it, charged to whom its owner was found to be.
    #[inline]
    pub fn quantum(&self, span: Span, charge: Charge) -> Quantum {
        let Self { end, count, event, .. } = *self;
        let (Span { start, running }, cpu) = (span, (self.cpu != NO_CPU).then_some(self.cpu));
        Quantum { start, end, cpu, event, count, running, charge }
    }

    /// Tells samples of other events and CPUs apart, of so many events.
    #[inline]
    pub fn stream(&self, events: u32) -> u32 {
        stream_of_cpu((self.cpu != NO_CPU).then_some(self.cpu)) * events + self.event
    }
}

/// Tells CPUs apart in the sequence of samples.
pub(crate) fn stream_of_cpu(cpu: Option<u32>) -> u32 {
    cpu.map_or(0, |cpu| cpu.min(CpuSet::LAST) + 1)
}

/// Steps handed over at a time.
const CHUNK: usize = 1024;
/// Chunks under way at most, some 20 MB; with as many, the thread that gathers waits for the one that attributes.
/// Attributing begins only when the survey is done: with few chunks, gathering would stand still until then.
const MOST_CHUNKS: usize = 512;

/// A way from one thread to another.
pub(crate) fn channel() -> (StepChunks<impl FnMut(&mut Vec<Step>)>, StepReceiver) {
    let (sender, receiver) = sync_channel(MOST_CHUNKS);
    let send = move |chunk: &mut Vec<Step>| {
        let chunk = std::mem::replace(chunk, Vec::with_capacity(CHUNK));
        // Nobody receives any more only where the other thread panics.
        let _ = sender.send(chunk);
    };
    (StepChunks::new(send), StepReceiver { receiver })
}

/// Hands steps on, many at a time; the last when it is dropped. A step that changes what keys mean comes alone.
pub(crate) struct StepChunks<F: FnMut(&mut Vec<Step>)> {
    chunk: Vec<Step>,
    hand_on: F,
}

impl<F: FnMut(&mut Vec<Step>)> StepChunks<F> {
    /// `hand_on` takes all steps that it is given.
    pub fn new(hand_on: F) -> Self {
        Self { chunk: Vec::with_capacity(CHUNK), hand_on }
    }

    #[inline]
    pub fn push(&mut self, step: Step) {
        let is_turn = step.is_turn();
        if is_turn {
            (self.hand_on)(&mut self.chunk);
        }
        self.chunk.push(step);
        if is_turn || self.chunk.len() == CHUNK {
            (self.hand_on)(&mut self.chunk);
        }
    }
}

impl<F: FnMut(&mut Vec<Step>)> Drop for StepChunks<F> {
    fn drop(&mut self) {
        (self.hand_on)(&mut self.chunk);
    }
}

/// The thread's end that takes them.
pub(crate) struct StepReceiver {
    receiver: Receiver<Vec<Step>>,
}

impl StepReceiver {
    /// Calls `take` with all steps in the order in which they were sent, until the sender is dropped.
    pub fn for_each(self, mut take: impl FnMut(&mut Vec<Step>)) {
        for mut chunk in self.receiver {
            take(&mut chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_small() {
        assert_eq!(std::mem::size_of::<Step>(), 40);
    }

    #[test]
    fn steps_arrive_in_order_however_many() {
        for count in [0, 1, CHUNK, 3 * CHUNK + 1] {
            let (mut sender, receiver) = channel();
            let reading = |time: usize| Step::Reading {
                domain: 0,
                time: Timestamp::from_nanos(time as u64),
                energy: Joules::ZERO,
            };
            (0..count).for_each(|time| sender.push(reading(time)));
            drop(sender);
            let mut times = Vec::new();
            receiver.for_each(|steps| {
                times.extend(steps.iter().filter_map(|step| match step {
                    Step::Reading { time, .. } => Some(time.as_nanos() as usize),
                    _ => None,
                }));
            });
            assert!(times.into_iter().eq(0..count));
        }
    }

    #[test]
    fn a_turn_comes_alone() {
        let mut chunks: Vec<Vec<bool>> = Vec::new();
        let mut sender = StepChunks::new(|steps| {
            chunks.push(steps.drain(..).map(|step| step.is_turn()).collect());
        });
        let reading = || Step::Reading { domain: 0, time: Timestamp::default(), energy: Joules::ZERO };
        for step in [reading(), Step::TooLarge, reading(), reading()] {
            sender.push(step);
        }
        drop(sender);
        assert_eq!(chunks, [vec![false], vec![true], vec![false, false]]);
    }

    #[test]
    fn a_sender_does_not_wait_for_a_receiver_that_is_gone() {
        let (mut sender, receiver) = channel();
        drop(receiver);
        for _ in 0..CHUNK * (MOST_CHUNKS + 1) {
            sender.push(Step::Reading { domain: 0, time: Timestamp::default(), energy: Joules::ZERO });
        }
    }
}
