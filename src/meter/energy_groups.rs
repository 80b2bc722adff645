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
