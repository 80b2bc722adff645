//! A window as a recording's file.

use std::collections::BTreeSet;
use std::io::Cursor;

use perf_data::features::CpuCount;
use perf_data::{Features, PerfDataWriter, encode};
use rustc_hash::FxHashMap;

use super::held::{Held, Subject, What, tells_of_life};
use super::{MARGIN, Windows};
use crate::live::error::LiveError;
use crate::live::known_tasks::KERNEL_PID;
use crate::recording::own_events;
use crate::units::Timestamp;

/// What a file has beside its records, about.
const ROOM_OF_HEADER: usize = 1 << 14;

impl Windows {
    /// The window as a recording's file: what is known when it begins, then its records.
    pub(super) fn window(&self, begin: Timestamp, end: Timestamp) -> Result<Vec<u8>, LiveError> {
        let first = Timestamp::from_nanos(begin.as_nanos().saturating_sub(MARGIN.as_nanos()));
        let last = end + MARGIN;
        // What others used is told from one reading of the CPU times to the next.
        let times_before = self.cpu_times.iter().rev().find(|time| **time <= begin).copied();
        let times_after = self.cpu_times.iter().find(|time| **time >= end).copied();
        let belongs = |held: &&Held| match held.what {
            What::Reading => begin < held.time && held.time < end,
            What::CpuTimes => {
                times_before.is_none_or(|before| held.time >= before)
                    && times_after.is_none_or(|after| held.time <= after)
            }
            // What was told since the tasks were described.
            What::State => held.time <= last,
            What::Other => first <= held.time && held.time <= last,
        };
        let pids = self.told_apart(belongs);
        let events = self.head.events().to_vec();
        let id = events.first().and_then(|event| event.ids.first()).copied().unwrap_or(0);
        let write = || -> Result<Vec<u8>, encode::RecordTooLong> {
            let mut records = Vec::with_capacity(self.bytes.len());
            own_events::metadata(&self.metadata, begin, &mut records)?;
            self.tasks.describe(&pids, id, &mut records)?;
            records.extend(&self.gpu_names);
            encode::finished_round(&mut records);
            self.meters.encode_at(begin, &mut records)?;
            for held in self.held.iter().filter(belongs).filter(|held| self.says_something_of(held, &pids)) {
                records.extend(&self.bytes[held.at..held.at + held.size]);
            }
            self.meters.encode_at(end, &mut records)?;
            encode::finished_round(&mut records);
            Ok(records)
        };
        let records = write().map_err(LiveError::TooLong)?;
        let mut writer =
            PerfDataWriter::create(Cursor::new(Vec::with_capacity(records.len() + ROOM_OF_HEADER)), events)
                .map_err(LiveError::Read)?;
        writer.write_raw(&records).map_err(LiveError::Read)?;
        let file = writer.finish(&self.features()).map_err(LiveError::Read)?;
        Ok(file.into_inner())
    }

    /// The processes of which something must be known: those that were sampled, and those that these came from meanwhile, whose
    /// code they have.
    fn told_apart(&self, belongs: impl Fn(&&Held) -> bool) -> BTreeSet<u32> {
        let mut of_child: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let (mut found, mut next) = (BTreeSet::new(), Vec::new());
        for held in self.held.iter().filter(belongs) {
            match (held.what, Subject::of(&self.bytes[held.at..held.at + held.size])) {
                (What::State, Some(Subject { pid, parent: Some(parent) })) => {
                    of_child.entry(pid).or_default().push(parent);
                }
                (What::State, _) => {}
                _ => next.extend(held.pid.filter(|pid| *pid != u32::MAX)),
            }
        }
        while let Some(pid) = next.pop() {
            if found.insert(pid) {
                next.extend(of_child.get(&pid).into_iter().flatten());
            }
        }
        found
    }

    /// Whether a record says something of these processes or of all. Of a thousand processes a second few are ever sampled. Where
    /// counters have more of a program than its samples, it is told by all that began and ended what of that is short processes'.
    fn says_something_of(&self, held: &Held, pids: &BTreeSet<u32>) -> bool {
        let record = &self.bytes[held.at..held.at + held.size];
        held.what != What::State
            || (self.has_counters_of_tasks && tells_of_life(record))
            || Subject::of(record).is_none_or(|Subject { pid, .. }| pid == KERNEL_PID || pids.contains(&pid))
    }

    fn features(&self) -> Features {
        let machine = &self.metadata.machine;
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        let cpus = machine.cpus.len() as u32;
        Features {
            hostname: some(&machine.hostname),
            os_release: some(&machine.kernel),
            version: Some(format!("eprof {}", self.metadata.eprof_version)),
            arch: some(&machine.arch),
            cpus: (cpus > 0).then_some(CpuCount { available: cpus, online: cpus }),
            cpu_description: some(&machine.cpu_model),
            cpu_id: some(&machine.cpu_identity),
            command_line: self.metadata.command_line.clone(),
            ..Features::default()
        }
    }
}
