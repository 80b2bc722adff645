//! One fault at a time: do the tests that pass by it notice?
//!
//! There is time for some of them only ([`Judge::budget`]). Those come first that are likely to notice for what they take, as
//! the faults before have shown: a test that compares all figures of a profile is worth more than ten quick ones that build
//! one to look at its name.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::build::Program;
use crate::cases::{Cases, End, failed, run};
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
    /// Where what tests print is kept while it is looked at.
    pub folder: &'j Path,
    /// For how long tests of one fault may take, as they take without it.
    pub budget: Duration,
    /// When to stop.
    pub until: Option<Instant>,
    /// Tests at the same time.
    pub jobs: usize,
    /// What tests have noticed so far.
    pub record: Mutex<Record>,
}

/// Of each test, how often it was tried and how often it noticed.
#[derive(Debug)]
pub struct Record(Vec<(u32, u32)>);

/// What a process of its own takes: a test that takes less is not worth more.
const LEAST: Duration = Duration::from_millis(5);

impl Record {
    /// Nothing, of so many tests.
    pub fn new(tests: usize) -> Self {
        Self(vec![(0, 0); tests])
    }

    fn add(&mut self, test: usize, noticed: bool) {
        let (tried, notices) = &mut self.0[test];
        *tried += 1;
        *notices += u32::from(noticed);
    }

    /// How likely a test is to notice, for each second that it takes; one that was not tried yet, as one in ten does.
    fn worth(&self, test: usize, takes: Duration) -> f64 {
        let (tried, notices) = self.0[test];
        (f64::from(notices) + 0.5) / (f64::from(tried) + 5.0) / takes.max(LEAST).as_secs_f64()
    }
}

impl Judge<'_> {
    /// These tests, those first that are likely to notice for what they take.
    fn in_order(&self, tests: &[usize]) -> Vec<usize> {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sorted: Vec<(f64, usize)> =
            tests.iter().map(|&test| (record.worth(test, self.cases.cases[test].takes), test)).collect();
        sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
        sorted.into_iter().map(|(_, test)| test).collect()
    }

    /// These tests were run together; those noticed that are named in what was printed.
    fn learn(&self, tests: &[usize], printed: &Path) {
        let printed = fs::read(printed).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed);
        let noticed: Vec<&str> = failed(&printed).collect();
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        for &test in tests {
            record.add(test, noticed.contains(&self.cases.cases[test].name.as_str()));
        }
    }

    /// # Errors
    ///
    /// A program of tests cannot be started.
    fn judge(&self, fault: Id, printed: &Path) -> Result<Verdict> {
        let Some(tests) = self.cases.by_fault.get(&fault) else { return Ok(Verdict::PassedByNone) };
        let mut spent = Duration::ZERO;
        let mut is_whole = true;
        let affordable: Vec<usize> = self
            .in_order(tests)
            .into_iter()
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
                let case = |test: &usize| &self.cases.cases[*test];
                let of_program: Vec<usize> =
                    chunk.iter().copied().filter(|test| case(test).program == index).collect();
                let at_once = if program.takes_many { of_program.len().max(1) } else { 1 };
                for tests in of_program.chunks(at_once) {
                    let names: Vec<&str> = tests.iter().map(|test| case(test).name.as_str()).collect();
                    let usually: Duration = tests.iter().map(|test| case(test).takes).sum();
                    let limit = usually * 10 + Duration::from_secs(10);
                    let environment = [("EPROF_FAULT", number.as_str())];
                    let to = Stdio::from(File::create(printed)?);
                    let end = run(&program.path, self.copy, &names, &environment, limit, to)?;
                    self.learn(tests, printed);
                    match end {
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
                let printed: PathBuf = self.folder.join(format!("printed-{:?}", std::thread::current().id()));
                while self.until.is_none_or(|until| Instant::now() < until) {
                    let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    told(*fault, self.judge(*fault, &printed)?);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    *done += 1;
                    if done.is_multiple_of(500) {
                        eprintln!("{} of {} faults were tried", *done, faults.len());
                    }
                }
                let _ = fs::remove_file(printed);
                Ok(())
            };
            let workers: Vec<_> = (0..self.jobs).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().unwrap_or(Ok(())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Case;

    fn cases(milliseconds: &[u64]) -> Cases {
        let case =
            |takes: &u64| Case { program: 0, name: String::new(), takes: Duration::from_millis(*takes) };
        Cases { cases: milliseconds.iter().map(case).collect(), ..Cases::default() }
    }

    #[test]
    fn tests_that_notice_come_before_quick_ones_that_do_not() {
        // 0.3 s, 5 ms and 1 s.
        let cases = cases(&[300, 5, 1000]);
        let judge = Judge {
            programs: &[],
            copy: Path::new(""),
            cases: &cases,
            folder: Path::new(""),
            budget: Duration::ZERO,
            until: None,
            jobs: 1,
            record: Mutex::new(Record::new(3)),
        };
        assert_eq!(judge.in_order(&[0, 1, 2]), [1, 0, 2], "nothing is known: the quickest first");
        let mut record = judge.record.lock().expect("no panic");
        (0..100).for_each(|_| record.add(0, true));
        (0..1000).for_each(|_| record.add(1, false));
        drop(record);
        // 0.96 in 0.3 s, one in two thousand in 5 ms, a tenth in a second.
        assert_eq!(judge.in_order(&[0, 1, 2]), [0, 2, 1]);
    }

    #[test]
    fn what_failed_is_read_from_what_was_printed() {
        let printed = "running 3 tests\ntest a::b ... ok\ntest c::d ... FAILED\ntest e ... FAILED\n\nfailures:\n    e\n";
        assert_eq!(failed(printed).collect::<Vec<_>>(), ["c::d", "e"]);
    }
}
