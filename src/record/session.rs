//! One recording from start to end.
//!
//! Its effects come in this order, and each has its reason:
//!
//! 1. Signals are taken over. One that comes later ends the recording, and not eprof.
//! 2. The file is made beside its name, so that a name that cannot be written stops everything else.
//! 3. The program is forked and waits just before its `exec`. So it has a process id to open counters for, and
//!    ends without having started if anything below fails.
//! 4. Counters and meters are opened, while eprof has its capabilities. Of several recorders of one machine one asks with
//!    success for the turn to read the meters closely; the others may take over later, so that they open them, too.
//!    Then, if nothing else says what the machine draws at rest, it is watched for a moment: the program waits.
//! 5. The file gets its head: a recorder that is killed at any later moment leaves a readable file.
//! 6. The meters take their first readings, which the program's joules begin at.
//! 7. The capabilities are given up: whatever needs them is open.
//! 8. The counters start; those of the program alone start with its `exec`, by themselves.
//! 9. The program is released. Only when its `exec` has succeeded the file gets its name: a program that cannot be
//!    started leaves an older recording as it is.
//! 10. Rounds, until the recording ends; the last one takes what meters, rings and counters have.
//! 11. The file gets its trailer, and the program is waited for.

use std::fs::File;
use std::io;

use nix::unistd::Pid;

use crate::identity::Job;
use crate::machine::Roots;
use crate::process::clocks::monotonic_now;
use crate::process::{Signals, privileges};
use crate::record::backlog::Backlog;
use crate::record::cgroup_names::CgroupNames;
use crate::record::closing::close;
use crate::record::description::Description;
use crate::record::duty::Duty;
use crate::record::energy_log::EnergyLog;
use crate::record::error::RecordError;
use crate::record::gpu::gpu_records::GpuRecords;
use crate::record::meter_turn::MeterTurn;
use crate::record::opened::Opened;
use crate::record::options::RecordOptions;
use crate::record::output::PendingOutput;
use crate::record::program::PreparedProgram;
use crate::record::progress::Listener;
use crate::record::recorder::Recorder;
use crate::record::rest;
use crate::record::stop_conditions::{StopConditions, StopRequest};
use crate::record::summary::Summary;
use crate::record::target;

/// Records as `options` say, and tells `progress` now and then what there is so far.
///
/// Signals of the calling thread are taken over meanwhile, and a program is started with `fork`: to be
/// called before other threads are made.
///
/// # Errors
/// Whatever keeps the recording from starting. Once it has started, an error of writing ends it and is
/// in the summary, while the program goes on; [`RecordError::BrokeOff`] is what else ends it then.
pub fn record(options: &RecordOptions, progress: Listener<'_>) -> Result<Summary, RecordError> {
    let create = || PendingOutput::create(&options.output.path);
    record_into(options, create, None, StopRequest::default(), &mut |_| (), progress)
}

/// Records as [`record()`] does, into this open file, which has no name or is not to change it: whoever reads it
/// meanwhile follows the recording. It is never compressed, and its reader gives up what it has read. `request` ends it.
/// While more than `most_unread` bytes of the file are there, nothing is written: what the rings have no room for meanwhile is
/// lost, and counted.
///
/// `started` is told when the program runs, with its process id, and before the first round: threads may be made then.
///
/// # Errors
/// As [`record()`].
pub fn record_to(
    options: &RecordOptions,
    file: File,
    most_unread: u64,
    request: &StopRequest,
    started: &mut dyn FnMut(Option<Pid>),
    progress: Listener<'_>,
) -> Result<Summary, RecordError> {
    let mut options = options.clone();
    options.output.compression_level = None;
    let path = options.output.path.clone();
    let backlog = Backlog::new(&file, most_unread).map_err(RecordError::system("following a file"))?;
    let create = || Ok(PendingOutput::of_open_file(file, &path));
    let mut summary = record_into(&options, create, Some(backlog), request.clone(), started, progress)?;
    // A file in memory has no name that somebody could have taken from it.
    summary.failure = summary.failure.filter(|failure| failure.kind() != io::ErrorKind::NotFound);
    Ok(summary)
}

fn record_into(
    options: &RecordOptions,
    create: impl FnOnce() -> Result<PendingOutput, RecordError>,
    backlog: Option<Backlog>,
    request: StopRequest,
    on_start: &mut dyn FnMut(Option<Pid>),
    progress: Listener<'_>,
) -> Result<Summary, RecordError> {
    let RecordOptions { target, sampling, gpu, energy, output, duration, kept_rights } = options;
    let roots = Roots::default();
    let signals = Signals::take_over()?;
    let mut file = create()?;
    let program = PreparedProgram::fork(target, gpu.cupti.as_ref(), signals.original_mask())?;

    let turn = MeterTurn::ask(energy.sharing, &Job::of_environment(|name| std::env::var(name).ok()));
    let (target, meters) = (&turn.target(target), turn.meters(&energy.meters));
    let mut opened = Opened::open(&roots, target, program.pid(), sampling, &gpu.launches, &meters)?;
    opened.notes.extend(turn.note.clone());

    rest::watch(&mut opened, &target.tasks, energy.rest, &roots);

    let description = Description::of(&opened, &target.tasks, program.pid(), output, turn.read, &roots);
    let compression = output.compression_level;
    let mut drain = description.write(&mut file, compression, &opened, program.tells_activity(), &roots)?;

    let meters = EnergyLog::start(opened.meters, energy.interval, &description.metadata, turn)?;
    let keep =
        |rights| privileges::keep_unless_root(rights).map_err(RecordError::system("giving up capabilities"));
    // Other users' processes are described when counters run already, so that nothing is missed between.
    keep(*kept_rights | privileges::PTRACE)?;
    opened.sampling.start(opened.starts_on_exec)?;
    let running = target::describe_running(target, &roots, opened.sampling.first_id());
    keep(*kept_rights)?;
    running.and_then(|records| drain.round(&mut [], &records)).map_err(|cause| file.failed(cause))?;
    let groups = opened.sampling.cgroups.as_mut().map(CgroupNames::describe).unwrap_or_default();
    drain.round(&mut [], &groups).map_err(|cause| file.failed(cause))?;
    let started = monotonic_now();
    let (program, activity) = program.release()?;
    let stop = StopConditions::new(signals, program, target::watched(&target.tasks), *duration, &roots);
    let stop = stop.or_asked(request);
    if let Err(cause) = file.put_in_place() {
        // The program may go on for long, and nothing is counted any more.
        drop((opened.sampling, meters));
        return Err(stop.broke_off(cause));
    }
    on_start(program);

    let gpu = GpuRecords::new(opened.kernel_names, activity);
    let duty = sampling.duty.map(|cycle| Duty::new(cycle, sampling.rate, monotonic_now()));
    let recorder = Recorder::new(opened.sampling, opened.own_time, meters, gpu, drain, stop, &roots);
    let recorder = recorder.in_duty_cycles(duty).followed(backlog);
    Ok(close(recorder.run(progress)?, description, started, &output.path, &roots))
}
