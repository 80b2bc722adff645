//! Energy counters that the kernel reads itself, with its own time stamps.
//!
//! The energy PMU cannot sample, but a clock can: a `cpu-clock` event on the package's CPU leads a group
//! whose members are the package's energy events, and each of its samples carries the values of all
//! (`PERF_SAMPLE_READ` with `PERF_FORMAT_GROUP`). The kernel reads the counters in the very interrupt
//! that it stamps, and eprof wakes a few times a second instead of a thousand.
//!
//! Not every kernel takes such groups, so it is tried before it is used.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, ReadFormat, SampleFlag, Sampler};

use super::energy_event;
use crate::machine::event_spec::EventSpec;
use crate::units::{Nanoseconds, Timestamp};

/// Bytes of a group's ring: room for half a second of samples of five domains at 1 kHz.
const RING: usize = 64 * 1024;
/// After so many samples a group is known to work.
const TRIAL_SAMPLES: usize = 3;
/// How long a group is given to deliver them, whatever the period.
const LONGEST_TRIAL: Duration = Duration::from_millis(100);

/// Groups of all packages, in the order of their first counters.
pub(super) struct ClockedGroups {
    groups: Vec<ClockedGroup>,
    counters: usize,
}

struct ClockedGroup {
    cpu: u32,
    leader: Sampler,
    /// Index among all counters, and the counter.
    members: Vec<(usize, Counter)>,
}

impl ClockedGroups {
    /// Opens one group per CPU and waits until each has shown that it works. Counting starts at zero.
    ///
    /// # Errors
    /// If the kernel refuses a clock, a ring or a member, or if a group stays silent.
    pub fn start(counters: &[(u32, &EventSpec)], period: Nanoseconds) -> io::Result<Self> {
        let mut groups: Vec<ClockedGroup> = Vec::new();
        for (index, &(cpu, spec)) in counters.iter().enumerate() {
            let known = groups.iter().position(|group| group.cpu == cpu);
            let at = match known {
                Some(at) => at,
                None => {
                    groups.push(ClockedGroup { cpu, leader: clock(cpu, period)?, members: Vec::new() });
                    groups.len() - 1
                }
            };
            if let Some(group) = groups.get_mut(at) {
                // A group has one clock: members that name none are refused (EINVAL).
                let mut member = energy_event::builder(cpu, spec);
                member.clockid(Clock::MONOTONIC);
                let member = member.build_with_group(group.leader.as_counter_mut())?;
                group.members.push((index, member));
            }
        }
        for group in &mut groups {
            group.leader.as_counter_mut().enable_group()?;
        }
        let mut started = Self { groups, counters: counters.len() };
        started.prove(period)?;
        Ok(started)
    }

    /// Waits for a few samples of each group whose members are all there and of which one moves.
    fn prove(&mut self, period: Nanoseconds) -> io::Result<()> {
        let period = Duration::from_nanos(period.as_nanos());
        let longest = LONGEST_TRIAL.max(period * (TRIAL_SAMPLES as u32 + 2));
        let start = Instant::now();
        for group in &mut self.groups {
            let (mut samples, mut highest) = (0, 0);
            while samples < TRIAL_SAMPLES || highest == 0 {
                // Who was kept from running finds in the ring what has come meanwhile, and only then gives up.
                let is_over = start.elapsed() > longest;
                thread::sleep(period.min(Duration::from_millis(1)));
                let mut members_seen = 0;
                group.take(&mut |_, _, count| {
                    members_seen += 1;
                    highest = highest.max(count);
                });
                samples += members_seen / group.members.len().max(1);
                if is_over && (samples < TRIAL_SAMPLES || highest == 0) {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "the kernel does not read the group",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Reads all counters now.
    pub fn read(&mut self, raw: &mut Vec<Option<u64>>) {
        raw.clear();
        raw.resize(self.counters, None);
        for group in &mut self.groups {
            let Ok(data) = group.leader.as_counter_mut().read_group() else { continue };
            for (index, member) in &group.members {
                if let (Some(value), Some(entry)) = (raw.get_mut(*index), data.get(member)) {
                    *value = Some(entry.value());
                }
            }
        }
    }

    /// Hands out what the kernel has read since the last call: when, which counter, and its count.
    pub fn take(&mut self, each: &mut dyn FnMut(Timestamp, usize, u64)) {
        for group in &mut self.groups {
            group.take(each);
        }
    }
}

impl ClockedGroup {
    fn take(&mut self, each: &mut dyn FnMut(Timestamp, usize, u64)) {
        while let Some(record) = self.leader.next_record() {
            // Lost samples lose moments, not energy: counts go on.
            let Ok(Record::Sample(sample)) = record.parse_record() else { continue };
            let (Some(time), Some(values)) = (sample.time(), sample.values()) else { continue };
            for (index, member) in &self.members {
                if let Some(entry) = values.get_by_id(member.id()) {
                    each(Timestamp::from_nanos(time), *index, entry.value());
                }
            }
        }
    }
}

/// A clock of the CPU that leads a group: it stops neither when the CPU idles nor in the kernel.
fn clock(cpu: u32, period: Nanoseconds) -> io::Result<Sampler> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder.any_pid().one_cpu(cpu as usize).include_kernel().include_hv();
    builder.read_format(ReadFormat::GROUP | ReadFormat::ID);
    builder.sample(SampleFlag::TIME).sample(SampleFlag::READ).clockid(Clock::MONOTONIC);
    builder.sample_period(period.as_nanos().max(1));
    builder.build()?.sampled(RING)
}
