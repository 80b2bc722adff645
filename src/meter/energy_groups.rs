//! Open energy events, grouped by CPU, read by eprof or by the kernel itself.

use std::io;

use perf_event::Counter;

use super::clocked_groups::ClockedGroups;
use super::counters::CounterReader;
use super::energy_event;
use crate::machine::event_spec::EventSpec;
use crate::units::{Nanoseconds, Timestamp};

/// Counters of one PMU: those of one CPU in one group, so that one read takes all of a package.
pub(super) struct Groups {
    groups: Vec<Group>,
    /// For each counter: its group, its place within, and what it was opened from.
    places: Vec<Place>,
    /// The same counters, read by the kernel.
    clocked: Option<ClockedGroups>,
    may_be_clocked: bool,
}

struct Group {
    cpu: u32,
    /// The leader comes first; one that was removed stays open, since others depend on it.
    counters: Vec<Counter>,
    values: Vec<Option<u64>>,
}

struct Place {
    group: usize,
    at: usize,
    cpu: u32,
    spec: EventSpec,
}

impl Groups {
    pub fn new(may_be_clocked: bool) -> Self {
        Self { groups: Vec::new(), places: Vec::new(), clocked: None, may_be_clocked }
    }

    /// Opens an event on a CPU, not yet counting.
    pub fn open(&mut self, cpu: u32, spec: &EventSpec) -> io::Result<()> {
        let place = |group, at| Place { group, at, cpu, spec: spec.clone() };
        if let Some((index, group)) = self.groups.iter_mut().enumerate().find(|(_, group)| group.cpu == cpu) {
            let leader = group.counters.first_mut().ok_or(io::ErrorKind::NotFound)?;
            // Not every kernel groups them: a second group for the same CPU costs one more read.
            if let Ok(counter) = energy_event::builder(cpu, spec).build_with_group(leader) {
                self.places.push(place(index, group.counters.len()));
                group.counters.push(counter);
                return Ok(());
            }
        }
        let counter = energy_event::builder(cpu, spec).build()?;
        self.places.push(place(self.groups.len(), 0));
        self.groups.push(Group { cpu, counters: vec![counter], values: Vec::new() });
        Ok(())
    }

    /// Starts to count. A member that joins a group already enabled may never be scheduled, so all
    /// are opened first.
    pub fn enable(&mut self) -> io::Result<()> {
        let leaders = self.groups.iter_mut().filter_map(|group| group.counters.first_mut());
        for leader in leaders {
            leader.enable_group()?;
        }
        Ok(())
    }
}

impl CounterReader for Groups {
    fn read(&mut self, raw: &mut Vec<Option<u64>>) -> io::Result<()> {
        raw.clear();
        if let Some(clocked) = &mut self.clocked {
            clocked.read(raw);
            return Ok(());
        }
        for (index, group) in self.groups.iter_mut().enumerate() {
            group.values.clear();
            if !self.places.iter().any(|place| place.group == index) {
                continue;
            }
            if let Some(leader) = group.counters.first_mut()
                && let Ok(data) = leader.read_group()
            {
                group.values.extend(group.counters.iter().map(|counter| Some(data.get(counter)?.value())));
            }
        }
        let value = |place: &Place| *self.groups.get(place.group)?.values.get(place.at)?;
        raw.extend(self.places.iter().map(value));
        Ok(())
    }

    fn remove(&mut self, index: usize) {
        if index < self.places.len() {
            self.places.remove(index);
        }
    }

    fn start_stamping(&mut self, period: Nanoseconds) -> bool {
        if !self.may_be_clocked {
            return false;
        }
        let counters: Vec<(u32, &EventSpec)> =
            self.places.iter().map(|place| (place.cpu, &place.spec)).collect();
        self.clocked = ClockedGroups::start(&counters, period).ok();
        if self.clocked.is_some() {
            self.groups.clear();
        }
        self.clocked.is_some()
    }

    fn take_stamped(&mut self, each: &mut dyn FnMut(Timestamp, usize, u64)) {
        if let Some(clocked) = &mut self.clocked {
            clocked.take(each);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Groups of software events stand for those of the energy PMU: they count nanoseconds of a CPU's clock.

    use std::thread;
    use std::time::Duration;

    use super::*;

    const CPU_CLOCK: u64 = 0;
    /// Traps of instructions that are emulated: there are none.
    const EMULATION_FAULTS: u64 = 8;

    fn software(config: u64) -> EventSpec {
        EventSpec {
            scale: 1e-9,
            unit: Some("Joules".to_owned()),
            ..EventSpec::plain("software", "software", 1, config)
        }
    }

    /// Counters of the first CPU; `None` where this user may not count all that runs on a CPU, which is checked.
    fn open(may_be_clocked: bool, configs: &[u64]) -> Option<Groups> {
        let mut groups = Groups::new(may_be_clocked);
        for config in configs {
            match groups.open(0, &software(*config)) {
                Ok(()) => {}
                Err(error) => {
                    assert!(
                        matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::ENOSYS)),
                        "{error}"
                    );
                    return None;
                }
            }
        }
        groups.enable().expect("they were opened");
        Some(groups)
    }

    fn read(groups: &mut Groups) -> Vec<Option<u64>> {
        let mut raw = Vec::new();
        groups.read(&mut raw).expect("readable");
        raw
    }

    #[test]
    fn counters_of_one_cpu_are_read_at_once_and_in_their_order() {
        let Some(mut groups) = open(false, &[CPU_CLOCK, EMULATION_FAULTS, CPU_CLOCK]) else { return };
        assert_eq!((groups.groups.len(), groups.places.len()), (1, 3), "one read takes all of a CPU");
        thread::sleep(Duration::from_millis(5));
        let [Some(first), Some(0), Some(last)] = read(&mut groups)[..] else { panic!("three counters") };
        // They have counted for as long, but for the time between their openings.
        assert!(
            first >= 5_000_000 && last >= 5_000_000 && first.abs_diff(last) < first / 2,
            "{first} {last}"
        );
        groups.remove(7);
        groups.remove(0);
        let [Some(0), Some(later)] = read(&mut groups)[..] else { panic!("two counters are left") };
        assert!(later > last);
        assert!(!groups.start_stamping(Nanoseconds::from_millis(1)), "it was not to be tried");
        groups.remove(1);
        groups.remove(0);
        assert_eq!(read(&mut groups), []);
    }

    /// A clock's count rises by as many nanoseconds as pass between the kernel's own time stamps.
    #[test]
    fn the_kernel_reads_counters_with_its_time() {
        let Some(mut groups) = open(true, &[CPU_CLOCK, EMULATION_FAULTS]) else { return };
        let nothing_yet = &mut |_: Timestamp, _: usize, _: u64| panic!("nobody reads yet");
        groups.take_stamped(nothing_yet);
        thread::sleep(Duration::from_millis(2));
        let before = read(&mut groups);
        assert!(groups.start_stamping(Nanoseconds::from_millis(1)));
        thread::sleep(Duration::from_millis(40));
        let mut taken: Vec<(u64, u64)> = Vec::new();
        let mut of_second = 0;
        groups.take_stamped(&mut |time, index, count| match index {
            0 => taken.push((time.as_nanos(), count)),
            1 if count == 0 => of_second += 1,
            _ => panic!("{index} {count}"),
        });
        assert!(taken.len() >= 3 && taken.len() == of_second, "{} {of_second}", taken.len());
        assert!(taken.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1), "{taken:?}");
        // A virtual machine may be held up between the two.
        let ((first, counted), (last, counted_last)) = (taken[0], taken[taken.len() - 1]);
        let (time, count) = (last - first, counted_last - counted);
        assert!(time >= 1_500_000 && count.abs_diff(time) < 1_000_000 + time / 10, "{time} {count}");
        let after = read(&mut groups);
        assert_eq!((after.len(), after[1]), (2, Some(0)));
        let (last, now) = (taken[taken.len() - 1].1, after[0].expect("readable"));
        assert!(now > last && before[0].is_some_and(|before| before >= 2_000_000), "{before:?} {last} {now}");
    }

    #[test]
    fn a_group_that_counts_nothing_is_not_left_to_the_kernel() {
        let Some(mut groups) = open(true, &[EMULATION_FAULTS]) else { return };
        assert!(!groups.start_stamping(Nanoseconds::from_millis(1)));
        assert_eq!(read(&mut groups), [Some(0)], "it is read by hand as before");
    }
}
