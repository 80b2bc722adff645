//! Which task runs which function on which CPU, and when.

use super::scenario::{Queue, Scenario, Task};
use eprof::numerics::random::Random;

/// A stretch of time in which a CPU does one thing. Times are nanoseconds since the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Its start.
    pub start: u64,
    /// Its end.
    pub end: u64,
    /// The task.
    pub task: usize,
    /// The function it is in.
    pub function: usize,
    /// The function's rates are these times as high.
    pub speed: f64,
    /// Its watts are these times as many.
    pub power: f64,
}

/// The schedulers of all queues.
pub struct Schedule<'s> {
    scenario: &'s Scenario,
    queues: Vec<RunQueue<'s>>,
}

struct RunQueue<'s> {
    slice: u64,
    tasks: Vec<Running<'s>>,
    current: usize,
    slice_left: u64,
}

struct Running<'s> {
    number: usize,
    task: &'s Task,
    step: usize,
    left: u64,
    done: bool,
    random: Random,
}

impl<'s> Schedule<'s> {
    /// All tasks at their start.
    pub fn new(scenario: &'s Scenario, random: &Random) -> Self {
        let mut number = 0;
        let queues = scenario.queues.iter().map(|queue| RunQueue::new(queue, &mut number, random)).collect();
        Self { scenario, queues }
    }

    /// What the CPUs do from `from` to `to`, each in order of time. Idle time has no segment.
    pub fn advance(&mut self, from: u64, to: u64) -> Vec<Vec<Segment>> {
        let cpus = self.scenario.cpus() as usize;
        let mut by_cpu = vec![Vec::new(); cpus];
        let epoch = self.scenario.migrate_every.map(|span| span.as_nanos());
        for (index, queue) in self.queues.iter_mut().enumerate() {
            queue.run(from, to, |segment| {
                let mut rest = segment;
                // A stretch that goes on over a migration lies on two CPUs.
                while rest.start < rest.end {
                    let (number, end) = match epoch {
                        Some(span) => (rest.start / span, rest.end.min((rest.start / span + 1) * span)),
                        None => (0, rest.end),
                    };
                    by_cpu[(index + number as usize) % cpus].push(Segment { end, ..rest });
                    rest.start = end;
                }
            });
        }
        for segments in &mut by_cpu {
            segments.sort_by_key(|segment: &Segment| segment.start);
        }
        by_cpu
    }
}

impl<'s> RunQueue<'s> {
    fn new(queue: &'s Queue, number: &mut usize, random: &Random) -> Self {
        let tasks = queue
            .tasks
            .iter()
            .map(|task| {
                let mut running = Running {
                    number: *number,
                    task,
                    step: 0,
                    left: 0,
                    done: task.steps.is_empty(),
                    random: random.part(*number as u64),
                };
                running.begin_step();
                *number += 1;
                running
            })
            .collect();
        let slice = queue.slice.as_nanos();
        Self { slice, tasks, current: 0, slice_left: slice }
    }

    fn run(&mut self, from: u64, to: u64, mut emit: impl FnMut(Segment)) {
        let mut now = from;
        while now < to {
            if !self.find_runnable() {
                return;
            }
            let alone = self.tasks.iter().filter(|running| !running.done).count() == 1;
            let running = &mut self.tasks[self.current];
            let slice = if alone { u64::MAX } else { self.slice_left };
            let length = running.left.min(slice).min(to - now);
            let function = running.task.steps[running.step].function;
            emit(Segment {
                start: now,
                end: now + length,
                task: running.number,
                function,
                speed: 1.0,
                power: 1.0,
            });
            now += length;
            running.left -= length;
            if running.left == 0 {
                running.next_step();
            }
            if !alone {
                self.slice_left -= length;
                if self.slice_left == 0 {
                    self.current = (self.current + 1) % self.tasks.len();
                    self.slice_left = self.slice;
                }
            }
        }
    }

    /// Moves on to a task that is not done; `false` if all are.
    fn find_runnable(&mut self) -> bool {
        for _ in 0..self.tasks.len() {
            if !self.tasks[self.current].done {
                return true;
            }
            self.current = (self.current + 1) % self.tasks.len();
            self.slice_left = self.slice;
        }
        false
    }
}

impl Running<'_> {
    fn begin_step(&mut self) {
        if let Some(step) = self.task.steps.get(self.step) {
            let factor = 1.0 + self.task.jitter * self.random.symmetric();
            self.left = ((step.length.as_nanos() as f64 * factor) as u64).max(1);
        }
    }

    fn next_step(&mut self) {
        self.step += 1;
        if self.step == self.task.steps.len() {
            self.done = !self.task.repeat;
            self.step = 0;
        }
        if !self.done {
            self.begin_step();
        }
    }
}
