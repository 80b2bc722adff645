//! What attribution is told, and how one thread tells it another.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::cells::SampleKey;
use crate::attribute::Quantum;
use crate::recording::energy::CpuTimes;
use crate::units::{Joules, Nanoseconds, Timestamp};

/// What attribution takes in, in the order of time.
#[derive(Debug)]
pub(super) enum Step {
    /// A sample. With a key, it is charged to the cell of that. One of an idle CPU is counted, but gets no
    /// joules. The stream tells samples of other events and CPUs apart.
    Sample { quantum: Quantum, key: Option<SampleKey>, stream: u32, is_idle: bool },
    /// What was lost, as if it were a sample.
    Lost(Quantum),
    /// A launch of a GPU's kernel.
    Launch(SampleKey),
    /// A meter's reading, of a domain by index.
    Reading { domain: u32, time: Timestamp, energy: Joules },
    /// CPU times of the machine and the recorder, and the program's own by CPU.
    CpuTimes(Timestamp, Box<(CpuTimes, Vec<(u32, Nanoseconds)>)>),
}

/// Steps handed over at a time.
const CHUNK: usize = 1024;
/// Chunks under way at most, some 20 MB: who gathers waits then for who attributes. The latter begins when the
/// survey is done, so that few would stop the former until then.
const MOST_CHUNKS: usize = 192;

/// A way from one thread to another.
pub(super) fn channel() -> (StepSender, StepReceiver) {
    let (sender, receiver) = sync_channel(MOST_CHUNKS);
    (StepSender { chunk: Vec::with_capacity(CHUNK), sender }, StepReceiver { receiver })
}

/// The thread's end that gathers steps. What it was given arrives when it is dropped at the latest.
pub(super) struct StepSender {
    chunk: Vec<Step>,
    sender: SyncSender<Vec<Step>>,
}

impl StepSender {
    pub fn send(&mut self, step: Step) {
        self.chunk.push(step);
        if self.chunk.len() == CHUNK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        // Nobody receives any more only where the other thread panics.
        let _ = self.sender.send(chunk);
    }
}

impl Drop for StepSender {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The thread's end that takes them.
pub(super) struct StepReceiver {
    receiver: Receiver<Vec<Step>>,
}

impl StepReceiver {
    /// Calls `take` with all steps in the order in which they were sent, until the sender is dropped.
    pub fn for_each(self, take: impl FnMut(Step)) {
        self.receiver.into_iter().flatten().for_each(take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_arrive_in_order_however_many() {
        for count in [0, 1, CHUNK, 3 * CHUNK + 1] {
            let (mut sender, receiver) = channel();
            let reading = |time: usize| Step::Reading {
                domain: 0,
                time: Timestamp::from_nanos(time as u64),
                energy: Joules::ZERO,
            };
            (0..count).for_each(|time| sender.send(reading(time)));
            drop(sender);
            let mut times = Vec::new();
            receiver.for_each(|step| {
                if let Step::Reading { time, .. } = step {
                    times.push(time.as_nanos() as usize);
                }
            });
            assert!(times.into_iter().eq(0..count));
        }
    }

    #[test]
    fn a_sender_does_not_wait_for_a_receiver_that_is_gone() {
        let (mut sender, receiver) = channel();
        drop(receiver);
        for _ in 0..CHUNK * (MOST_CHUNKS + 1) {
            sender.send(Step::Reading { domain: 0, time: Timestamp::default(), energy: Joules::ZERO });
        }
    }
}
