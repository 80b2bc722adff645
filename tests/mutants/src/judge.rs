//! One fault at a time: do the tests that pass by it notice?

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::build::Program;
use crate::cases::{Cases, End, run};
use crate::edits::Id;
use crate::verdicts::Verdict;

/// So many tests are run by one process, beginning with few: most faults are noticed by the first ones.
const CHUNKS: [usize; 3] = [4, 16, 64];

/// What judging needs to know.
pub struct Judge<'j> {
    /// The programs of tests.
    pub programs: &'j [Program],
    /// The faulty copy's folder.
    pub copy: &'j Path,
    /// The tests.
    pub cases: &'j Cases,
    /// For how long tests of one fault may take, as they take without it.
    pub budget: Duration,
    /// When to stop.
    pub until: Option<Instant>,
    /// Tests at the same time.
    pub jobs: usize,
}

impl Judge<'_> {
    /// # Errors
    ///
    /// A program of tests cannot be started.
    fn judge(&self, fault: Id) -> Result<Verdict> {
        let Some(tests) = self.cases.by_fault.get(&fault) else { return Ok(Verdict::PassedByNone) };
        let mut spent = Duration::ZERO;
        let mut is_whole = true;
        let affordable: Vec<usize> = tests
            .iter()
            .copied()
            .filter(|index| {
                // The first is run whatever it takes.
                let fits = spent.is_zero() || spent + self.cases.cases[*index].takes <= self.budget;
                spent += if fits { self.cases.cases[*index].takes } else { Duration::ZERO };
                is_whole &= fits;
                fits
            })
            .collect();
        let number = fault.to_string();
        let mut rest = affordable.as_slice();
        let mut sizes = CHUNKS.iter().copied().chain(std::iter::repeat(usize::MAX));
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at(rest.len().min(sizes.next().unwrap_or(usize::MAX)));
            rest = later;
            for (index, program) in self.programs.iter().enumerate() {
                let of_program =
                    chunk.iter().map(|case| &self.cases.cases[*case]).filter(|case| case.program == index);
                let names: Vec<&str> = of_program.clone().map(|case| case.name.as_str()).collect();
                if names.is_empty() {
                    continue;
                }
                let usually: Duration = of_program.map(|case| case.takes).sum();
                let limit = usually * 10 + Duration::from_secs(10);
                let at_once = if program.takes_many { names.len() } else { 1 };
                for names in names.chunks(at_once) {
                    match run(&program.path, self.copy, names, &[("EPROF_FAULT", &number)], limit)? {
                        End::Passed => {}
                        End::Failed => return Ok(Verdict::Noticed),
                        End::TooLong => return Ok(Verdict::NeverEnds),
                    }
                }
            }
        }
        Ok(if is_whole { Verdict::Survived } else { Verdict::SurvivedBudget })
    }

    /// The verdict on each of these faults, in their order; none on those that there was no time for.
    ///
    /// # Errors
    ///
    /// A program of tests cannot be started.
    pub fn all(&self, faults: &[Id], told: &(dyn Fn(Id, Verdict) + Sync)) -> Result<()> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(0_usize);
        std::thread::scope(|scope| {
            let work = || -> Result<()> {
                while self.until.is_none_or(|until| Instant::now() < until) {
                    let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    told(*fault, self.judge(*fault)?);
                    let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    *done += 1;
                    if done.is_multiple_of(500) {
                        eprintln!("{} of {} faults were tried", *done, faults.len());
                    }
                }
                Ok(())
            };
            let workers: Vec<_> = (0..self.jobs).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().unwrap_or(Ok(())))
        })
    }
}
