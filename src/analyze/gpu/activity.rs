//! What a recording tells of GPU kernels besides their launches: names by handle, and, with CUPTI, when
//! each ran. Both come later in the file than they hold, so the file is read for them first.

use rustc_hash::FxHashMap;

use eprof_cupti_injection::wire::{Record as Wire, Records};
use perf_data::record::{Record, RecordContext, Sample};

use crate::analyze::events::{EventRole, EventRoles};
use crate::recording::Recording;
use crate::recording::gpu_activity::GpuActivity;
use crate::recording::gpu_events::{ContextDevice, GpuCall, KernelName};
use crate::recording::metadata::Metadata;
use crate::units::Timestamp;

/// One kernel as CUPTI saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelRun {
    pub start: Timestamp,
    pub end: Timestamp,
    /// Index of the GPU's domain, where its place on the bus told it.
    pub gpu: Option<usize>,
    name: u32,
}

/// Names and times of kernels.
#[derive(Debug, Default)]
pub(crate) struct KernelFacts {
    names: FxHashMap<(u32, u64), String>,
    /// CUDA's numbers of GPUs, by process and context.
    contexts: FxHashMap<(u32, u64), u32>,
    /// By process, thread and time of the launch.
    runs: FxHashMap<(u32, u32, Timestamp), Vec<KernelRun>>,
    run_names: FxHashMap<(u32, u32), String>,
    notes: Notes,
}

/// What a reader must know of CUPTI's part.
#[derive(Debug, Default)]
struct Notes {
    stopped: Option<u32>,
    dropped: u64,
    problems: Vec<String>,
}

impl KernelFacts {
    /// Reads all of a recording.
    pub fn of(recording: &Recording, roles: &EventRoles) -> Self {
        let mut gathered = Gathered::default();
        let mut records = recording.records();
        loop {
            match records.next() {
                Ok(Some((_, context, Record::Sample(sample)))) => gathered.sample(roles, &context, &sample),
                Ok(Some(_)) => {}
                Err(error) if error.is_recoverable() => {}
                Ok(None) | Err(_) => break,
            }
        }
        gathered.join(recording.metadata())
    }

    /// The name of a kernel by the handle that it is launched by.
    pub fn name(&self, pid: u32, handle: u64) -> Option<&str> {
        self.names.get(&(pid, handle)).map(String::as_str)
    }

    /// CUDA's number of the GPU that a context is on.
    pub fn ordinal(&self, pid: u32, context: u64) -> Option<u32> {
        self.contexts.get(&(pid, context)).copied()
    }

    /// When the kernels of a launch ran; empty where nobody told.
    pub fn runs(&self, pid: u32, tid: u32, launch: Timestamp) -> &[KernelRun] {
        self.runs.get(&(pid, tid, launch)).map_or(&[], Vec::as_slice)
    }

    /// The name that CUPTI gave a kernel.
    pub fn run_name(&self, pid: u32, run: &KernelRun) -> Option<&str> {
        self.run_names.get(&(pid, run.name)).map(String::as_str)
    }

    /// What a reader must know.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.notes.problems.clone();
        if let Some(per_second) = self.notes.stopped {
            warnings.push(format!(
                "CUPTI was stopped during the recording, as the program launched more than {per_second} kernels a \
                 second: the launches after that go by their time from launch to wait (record with --cupti-max-rate=0 \
                 to keep it)"
            ));
        }
        if self.notes.dropped > 0 {
            warnings.push(format!(
                "CUPTI lost {} kernels: their launches go by their time from launch to wait",
                self.notes.dropped
            ));
        }
        warnings
    }
}

#[derive(Debug, Default)]
struct Gathered {
    facts: KernelFacts,
    /// Launches by thread: time, and whether it is CUDA's runtime's, with the driver's in it.
    launches: FxHashMap<(u32, u32), Vec<(Timestamp, bool)>>,
    /// Calls as CUPTI saw them, by thread: time and correlation.
    calls: FxHashMap<(u32, u32), Vec<(Timestamp, u32)>>,
    /// By process and correlation, with CUDA's number of the GPU.
    kernels: FxHashMap<(u32, u32), Vec<(KernelRun, u32)>>,
    /// Places on the bus, by process and CUDA's number.
    places: FxHashMap<(u32, u32), String>,
}

impl Gathered {
    fn sample(&mut self, roles: &EventRoles, context: &RecordContext, sample: &Sample<'_>) {
        match roles.of(context.event.map(|event| event.0)) {
            Some(EventRole::KernelName) => {
                if let Some(KernelName { pid, handle, name }) = KernelName::from_bytes(sample.raw) {
                    self.facts.names.insert((pid, handle), name);
                }
            }
            Some(EventRole::Context) => {
                if let Some(ContextDevice { pid, context, ordinal }) = ContextDevice::from_bytes(sample.raw) {
                    self.facts.contexts.insert((pid, context), ordinal);
                }
            }
            Some(EventRole::GpuActivity) => {
                if let Some(activity) = GpuActivity::from_bytes(sample.raw) {
                    Records::new(activity.records).for_each(|record| self.activity(activity.pid, &record));
                }
            }
            Some(EventRole::Gpu(call)) => {
                let runtime = match roles.gpu_call(call) {
                    Some((GpuCall::RuntimeLaunch, _)) => true,
                    Some((GpuCall::Launch | GpuCall::GraphLaunch, _)) => false,
                    _ => return,
                };
                if let (Some(pid), Some(tid), Some(time)) = (context.pid, context.tid, context.time) {
                    self.launches.entry((pid, tid)).or_default().push((time, runtime));
                }
            }
            _ => {}
        }
    }

    fn activity(&mut self, pid: u32, record: &Wire<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let notes = &mut self.facts.notes;
        match *record {
            Wire::Watching { .. } => {}
            Wire::Launch { time, tid, correlation } => {
                self.calls.entry((pid, tid)).or_default().push((Timestamp::from_nanos(time), correlation));
            }
            Wire::Kernel { start, end, correlation, device, name, .. } if start <= end => {
                let [start, end] = [start, end].map(Timestamp::from_nanos);
                let run = KernelRun { start, end, gpu: None, name };
                self.kernels.entry((pid, correlation)).or_default().push((run, device));
            }
            Wire::Kernel { .. } => notes.dropped += 1,
            Wire::Name { id, text: name } => {
                self.facts.run_names.insert((pid, id), text(name));
            }
            Wire::Device { ordinal, bus_id } => {
                self.places.insert((pid, ordinal), text(bus_id));
            }
            Wire::Stopped { per_second, .. } => notes.stopped = notes.stopped.max(Some(per_second)),
            Wire::Dropped { count } => notes.dropped = notes.dropped.saturating_add(count),
            Wire::Problem { text: why } => {
                let why = text(why);
                notes.problems.push(format!("CUPTI told nothing of process {pid}: {why}"));
            }
        }
    }

    /// A call that CUPTI saw lies within the last launch before it that the thread made. Where that is the
    /// driver's within the runtime's, it is the runtime's.
    fn join(mut self, metadata: Option<&Metadata>) -> KernelFacts {
        let domains = metadata.map_or(&[][..], |metadata| &metadata.domains);
        let gpu_at = |place: &str| {
            domains.iter().position(|domain| domain.bus_id.as_deref().is_some_and(|id| same_place(id, place)))
        };
        let gpus: FxHashMap<(u32, u32), usize> =
            self.places.iter().filter_map(|(key, place)| Some((*key, gpu_at(place)?))).collect();
        for (thread, mut calls) in std::mem::take(&mut self.calls) {
            let Some(launches) = self.launches.get_mut(&thread) else { continue };
            calls.sort_unstable();
            let outer = outermost(launches);
            let mut next = 0;
            for (time, correlation) in calls {
                while outer.get(next).is_some_and(|(launch, _)| *launch <= time) {
                    next += 1;
                }
                let Some((_, launch)) = next.checked_sub(1).and_then(|last| outer.get(last)) else {
                    continue;
                };
                let Some(kernels) = self.kernels.remove(&(thread.0, correlation)) else { continue };
                let of_gpu = |(run, device): (KernelRun, u32)| KernelRun {
                    gpu: gpus.get(&(thread.0, device)).copied(),
                    ..run
                };
                let runs = self.facts.runs.entry((thread.0, thread.1, *launch)).or_default();
                runs.extend(kernels.into_iter().map(of_gpu));
            }
        }
        self.facts
    }
}

/// Each launch's time, in order, with that of the launch by the runtime that it lies in, or else its own.
fn outermost(launches: &mut [(Timestamp, bool)]) -> Vec<(Timestamp, Timestamp)> {
    launches.sort_unstable();
    let mut runtime = None;
    let of = |(time, is_runtime): &(Timestamp, bool)| {
        if *is_runtime {
            runtime = Some(*time);
            return (*time, *time);
        }
        (*time, runtime.take().unwrap_or(*time))
    };
    launches.iter().map(of).collect()
}

/// Places on the PCI bus, of which some write the domain with four digits and some with eight.
fn same_place(a: &str, b: &str) -> bool {
    let parts = |text: &str| {
        let (domain, rest) = text.split_once(':')?;
        Some((u32::from_str_radix(domain, 16).ok()?, rest.to_ascii_lowercase()))
    };
    parts(a).is_some() && parts(a) == parts(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn what_cupti_had_to_say_is_passed_on() {
        let mut gathered = Gathered::default();
        assert!(std::mem::take(&mut gathered).join(None).warnings().is_empty());
        let records = [
            Wire::Stopped { time: 0, per_second: 300 },
            Wire::Stopped { time: 0, per_second: 200 },
            Wire::Dropped { count: 3 },
            Wire::Dropped { count: 4 },
            Wire::Problem { text: b"no rights" },
            // A kernel that takes no time is one.
            Wire::Kernel { start: 5, end: 5, correlation: 1, device: 3, stream: 1, name: 0 },
            Wire::Launch { time: 4, tid: 5, correlation: 1 },
            Wire::Device { ordinal: 3, bus_id: b"0000:3b:00.0" },
        ];
        records.iter().for_each(|record| gathered.activity(1, record));
        gathered.launches.insert((1, 5), vec![(at(4), false)]);
        let facts = gathered.join(None);
        assert_eq!(facts.runs(1, 5, at(4)).len(), 1, "a call at the launch's own time is its");
        assert_eq!(facts.runs(1, 5, at(4))[0].gpu, None);
        let told = facts.warnings();
        assert_eq!(told.len(), 3);
        assert!(
            told[0].contains("process 1: no rights") && told[1].contains("more than 300 kernels"),
            "{told:?}"
        );
        assert!(told[2].contains("lost 7 kernels"), "{told:?}");
        assert_eq!((facts.name(1, 5), facts.ordinal(1, 5)), (None, None));
    }

    #[test]
    fn a_runtimes_launch_takes_the_drivers_in_it() {
        let mut launches = [(at(30), false), (at(10), true), (at(11), false), (at(20), false)];
        let expected = [(10, 10), (11, 10), (20, 20), (30, 30)].map(|(a, b)| (at(a), at(b)));
        assert_eq!(outermost(&mut launches), expected);
    }

    #[test]
    fn places_are_equal_however_their_domain_is_written() {
        assert!(same_place("00000000:3B:00.0", "0000:3b:00.0"));
        assert!(!same_place("00000000:3B:00.0", "0000:3c:00.0"));
        assert!(!same_place("", ""));
    }

    #[test]
    fn kernels_find_their_launch_by_correlation() {
        let mut gathered = Gathered::default();
        gathered.launches.insert((1, 5), vec![(at(100), false), (at(200), false), (at(300), false)]);
        let records = [
            // The second launch comes to CUPTI first in the file, the third never.
            Wire::Launch { time: 201, tid: 5, correlation: 8 },
            Wire::Launch { time: 101, tid: 5, correlation: 7 },
            Wire::Name { id: 0, text: b"heat" },
            Wire::Kernel { start: 150, end: 190, correlation: 7, device: 0, stream: 1, name: 0 },
            Wire::Kernel { start: 250, end: 260, correlation: 8, device: 0, stream: 1, name: 0 },
            Wire::Kernel { start: 270, end: 290, correlation: 8, device: 0, stream: 1, name: 0 },
            Wire::Kernel { start: 9, end: 8, correlation: 8, device: 0, stream: 1, name: 0 },
        ];
        records.iter().for_each(|record| gathered.activity(1, record));
        let facts = gathered.join(None);
        let times = |launch: u64| -> Vec<_> {
            facts.runs(1, 5, at(launch)).iter().map(|run| (run.start, run.end)).collect()
        };
        assert_eq!(times(100), [(at(150), at(190))]);
        assert_eq!(times(200), [(at(250), at(260)), (at(270), at(290))]);
        assert_eq!(times(300), []);
        assert_eq!(facts.run_name(1, &facts.runs(1, 5, at(100))[0]), Some("heat"));
        assert!(facts.warnings()[0].contains("lost 1 kernels"));
    }
}
