//! The second phase of a recording: what its file says of it before the first sample.

use std::fs::File;
use std::io;

use nix::unistd::Pid;
use perf_data::EventDesc;
use perf_data::compress::RecordCompressor;
use perf_data::encode::RecordTooLong;
use perf_data::features::ClockPair;
use perf_data::writer::PerfDataWriter;

use crate::machine::Roots;
use crate::process::clocks::monotonic_now;
use crate::record::counters::Scope;
use crate::record::drain::Drain;
use crate::record::error::RecordError;
use crate::record::gpu::kernel_names::KernelNames;
use crate::record::host;
use crate::record::identity;
use crate::record::kernel_state;
use crate::record::mapped_files::MappedFiles;
use crate::record::opened::Opened;
use crate::record::options::{OutputOptions, TargetTasks};
use crate::record::output::PendingOutput;
use crate::record::sampled_event::SampledEvent;
use crate::record::sampling::Sampling;
use crate::record::target;
use crate::recording::metadata::{METADATA_FORMAT, Metadata, MetersRead};
use crate::recording::own_events;

/// What is known of a recording before its first sample.
pub struct Description {
    /// What the file says.
    pub metadata: Metadata,
    /// One instant on the recording's clock and on the wall.
    pub clock: Option<ClockPair>,
    /// What the user should know of it, too.
    pub warnings: Vec<String>,
}

impl Description {
    /// Describes what was opened. `program` is the one that waits to be recorded.
    pub fn of(
        opened: &Opened,
        tasks: &TargetTasks,
        program: Option<Pid>,
        output: &OutputOptions,
        meters: MetersRead,
        roots: &Roots,
    ) -> Self {
        let started = host::clock_reference();
        let clock = started.map(|clock| ClockPair {
            clockid: libc::CLOCK_MONOTONIC as u32,
            clock_ns: clock.clock_ns,
            wall_clock_ns: clock.unix_ns,
        });
        let metadata = Metadata {
            format: METADATA_FORMAT,
            eprof_version: env!("CARGO_PKG_VERSION").to_owned(),
            command_line: output.command_line.clone(),
            target: target::describe(tasks, program),
            clock: "CLOCK_MONOTONIC".to_owned(),
            started_unix_ns: started.map_or(0, |clock| clock.unix_ns),
            recorder_pid: std::process::id(),
            system_wide_samples: matches!(opened.scope, Scope::System),
            machine: opened.machine.clone(),
            domains: opened.domains.clone(),
            events: opened.sampling.events.iter().map(SampledEvent::info).collect(),
            warnings: [&opened.warnings[..], &opened.notes].concat(),
            identity: Some(identity::of(roots, &opened.machine, tasks, started, &output.labels)),
            meters,
        };
        Self { metadata, clock, warnings: opened.warnings.clone() }
    }

    /// Writes the head of the file: its events, what eprof says of the recording, and where the kernel lies.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn write(
        &self,
        output: &mut PendingOutput,
        compression_level: Option<i32>,
        opened: &Opened,
        with_activity: bool,
        roots: &Roots,
    ) -> Result<Drain, RecordError> {
        let Opened { sampling, kernel_names, .. } = opened;
        let keep = kernel_names.as_ref().map(KernelNames::events).unwrap_or_default();
        let write = |file: File| {
            let writer = PerfDataWriter::create(file, events(sampling, &self.metadata, with_activity))?;
            let compressor = compression_level.map(RecordCompressor::new).transpose()?;
            let mut drain = Drain::new(writer, compressor, keep, MappedFiles::new(roots));
            let records = head_records(&self.metadata, sampling, roots).map_err(io::Error::other)?;
            drain.round(&mut [], &records)?;
            Ok(drain)
        };
        output.take_file().and_then(write).map_err(|cause| output.failed(cause))
    }
}

/// The events of the file: those sampled, then those of eprof's own.
fn events(sampling: &Sampling, metadata: &Metadata, with_activity: bool) -> Vec<EventDesc> {
    let sampled = sampling.events.iter().enumerate().map(|(index, event)| EventDesc {
        name: event.spec.name.clone(),
        attr: sampling.counters.attrs[index],
        ids: sampling.counters.ids(index),
    });
    let launches = sampling.events.iter().any(|event| event.probe.is_some());
    let handles = if launches { own_events::gpu_handles_descriptions() } else { Vec::new() };
    let activity = with_activity.then(own_events::gpu_activity_description);
    sampled.chain(own_events::descriptions(&metadata.domains)).chain(handles).chain(activity).collect()
}

fn head_records(metadata: &Metadata, sampling: &Sampling, roots: &Roots) -> Result<Vec<u8>, RecordTooLong> {
    let mut records = Vec::new();
    own_events::metadata(metadata, monotonic_now(), &mut records)?;
    if !sampling.exclude_kernel {
        kernel_state::describe(roots, sampling.first_id(), &mut records)?;
    }
    Ok(records)
}
