//! One recording from start to end.

use std::io;
use std::time::{Duration, Instant};

use perf_data::EventDesc;
use perf_data::Features;
use perf_data::compress::RecordCompressor;
use perf_data::encode::RecordTooLong;
use perf_data::writer::PerfDataWriter;

use crate::hardware::Method;
use crate::machine::{Roots, topology};
use crate::meter::{Discovery, EnergyMeter, Pace, discover};
use crate::process;
use crate::process::Signals;
use crate::process::clocks::monotonic_now;
use crate::process::{Credentials, Waiting, privileges};
use crate::record::build_ids;
use crate::record::calibrated;
use crate::record::census::Census;
use crate::record::counters::Scope;
use crate::record::cpu_times::CpuTimesReader;
use crate::record::drain::Drain;
use crate::record::energy_log::EnergyLog;
use crate::record::error::RecordError;
use crate::record::event_totals::EventTotals;
use crate::record::events::SampledEvent;
use crate::record::gpu::activity::ActivityFiles;
use crate::record::gpu::gpu_order;
use crate::record::gpu::kernel_names::KernelNames;
use crate::record::gpu::probes::launch_probes;
use crate::record::host;
use crate::record::kernel_state;
use crate::record::options::{Neighbours, RecordOptions, TargetOptions};
use crate::record::output::PendingOutput;
use crate::record::process_state::ProcessState;
use crate::record::readings::MeterReader;
use crate::record::recorder::Recorder;
use crate::record::sampling::Sampling;
use crate::record::summary::Summary;
use crate::record::target;
use crate::record::tracing_data;
use crate::recording::metadata::{METADATA_FORMAT, Metadata};
use crate::recording::own_events;

/// An estimate follows the CPU times, which move in steps of 10 ms: to ask for it more often than this
/// costs more than it tells.
const ESTIMATE_INTERVAL: Duration = Duration::from_millis(50);

/// Records as `options` say.
///
/// Signals of the calling thread are taken over meanwhile, and a program is started with `fork`: to be
/// called before other threads are made.
///
/// # Errors
/// Whatever keeps the recording from starting. Once it has started, an error of writing ends it and is
/// in the summary, while the program goes on.
pub fn record(options: &RecordOptions) -> Result<Summary, RecordError> {
    let roots = Roots::default();
    let signals = Signals::take_over()?;
    let mut output = PendingOutput::create(&options.output)?;
    let credentials = options.run_as.as_deref().map(Credentials::of_user).transpose()?;
    let activity = ActivityFiles::prepare(options, credentials.as_ref())?;
    let program = match options.target.command() {
        Some(argv) => {
            let variables = activity.as_ref().map(ActivityFiles::environment).unwrap_or_default();
            Some(Waiting::spawn(argv, signals.original_mask(), credentials, &variables)?)
        }
        None => None,
    };
    // From here on an error drops `program`, which then ends without having started.
    let pid = program.as_ref().map(Waiting::pid);
    let process_state = ProcessState::new(&roots);
    let own_scope = target::scope(options, pid, &process_state)?;
    let machine = topology::detect(&roots)?;
    let mut energy = discover(&roots, &options.meters)?;
    let wide = target::with_neighbours(options, &roots, &energy);
    let launches = launch_probes(options, &roots, &energy, &machine)?;
    // Counters of the program alone start with it; those that watch others too, before it.
    let starts_on_exec = |scope: &Scope| {
        matches!(options.target, TargetOptions::Command(_)) && matches!(scope, Scope::Tasks(_))
    };
    let open = |scope: Scope| {
        let on_exec = starts_on_exec(&scope);
        Sampling::open(options, &roots, &machine, &scope, on_exec, &launches.probes)
            .map(|sampling| (sampling, scope, on_exec))
    };
    let (mut sampling, scope, on_exec) = match open(if wide { Scope::System } else { own_scope }) {
        // What nobody asked for is done without, should the kernel refuse it after all.
        Err(_) if wide && options.neighbours == Neighbours::Auto => {
            open(target::scope(options, pid, &process_state)?)?
        }
        opened => opened?,
    };
    if let Some(stored) = options.model.as_ref().filter(|stored| stored.cpu_identity == machine.cpu_identity)
    {
        calibrated::tell_static_power(&stored.model, &mut energy.domains);
    }
    sampling.warnings.extend(launches.warnings);
    gpu_order::tell(&mut energy.domains, &target::gpu_environment(options, &process_state));
    let clock = host::clock_reference();
    let mut warnings = [sampling.warnings.clone(), unread_meters(&energy)].concat();
    let metadata = Metadata {
        format: METADATA_FORMAT,
        eprof_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: options.command_line.clone(),
        target: target::describe(&options.target, pid),
        clock: "CLOCK_MONOTONIC".to_owned(),
        started_unix_ns: clock.map_or(0, |clock| clock.wall_clock_ns),
        recorder_pid: std::process::id(),
        system_wide_samples: matches!(scope, Scope::System),
        machine,
        domains: energy.domains.clone(),
        events: sampling.events.iter().map(SampledEvent::info).collect(),
        warnings: [&warnings[..], &sampling.notes, &energy.warnings].concat(),
    };

    let failed = |cause| RecordError::Output { path: options.output.clone(), cause };
    let file = output.take_file().map_err(failed)?;
    let writer = PerfDataWriter::create(file, descriptions(&sampling, &metadata, activity.is_some()))
        .map_err(failed)?;
    let compressor = options.compression_level.map(RecordCompressor::new).transpose().map_err(failed)?;
    let mut drain = Drain::new(writer, compressor);
    let kernel_names = KernelNames::new(&sampling, &metadata.machine.arch);
    let keep = kernel_names.as_ref().map(KernelNames::events).unwrap_or_default();
    let mut census = Census { keep, ..Census::default() };
    let head = head_records(&metadata, &sampling, &roots).map_err(|error| failed(io::Error::other(error)))?;
    drain.round(&mut [], &head, &mut census).map_err(failed)?;

    let meters = start_meters(energy.meters, options.meter_interval)?;
    // All counters and meters are open.
    privileges::drop_unless_root().map_err(RecordError::system("giving up capabilities"))?;
    if on_exec {
        sampling.counters.enable_untied().map_err(RecordError::system("starting the probes"))?;
    } else {
        sampling.counters.enable().map_err(RecordError::system("starting the counters"))?;
        let mut running = Vec::new();
        for pid in target::processes(options, &process_state) {
            process_state
                .describe(pid, sampling.first_id(), &mut running)
                .map_err(|error| failed(io::Error::other(error)))?;
        }
        drain.round(&mut [], &running, &mut census).map_err(failed)?;
    }
    let started = monotonic_now();
    let program = program.map(Waiting::release).transpose()?;
    output.put_in_place()?;

    let mut recorder = Recorder {
        signals,
        drain,
        census,
        totals: EventTotals::default(),
        meters,
        cpu_times: CpuTimesReader::open(&roots).ok(),
        energy: EnergyLog::new(&metadata),
        program,
        watched: target::watched(&options.target),
        process_state,
        deadline: options.duration.map(|duration| Instant::now() + duration),
        kernel_names,
        activity,
        failure: None,
        own_time: match scope {
            Scope::Tasks(_) => sampling.counters.that_tell_time(&sampling.events, options.events.is_empty()),
            Scope::ControlGroup(_) | Scope::System => Vec::new(),
        },
        counters: sampling.counters,
    };
    let outcome = recorder.run()?;
    recorder.last_round();
    let features = Features {
        build_ids: build_ids::collect(&recorder.census, &roots, !sampling.exclude_kernel),
        sample_times: Some((started, monotonic_now())),
        tracing_data: tracing_data::collect(&roots, sampling.events.iter().map(|event| &event.spec)),
        compression: recorder.drain.compression(),
        ..host::features(&roots, &metadata.machine, &options.command_line, clock)
    };
    let Census { samples, lost, throttled, .. } = recorder.census;
    let names: Vec<&str> = sampling.events.iter().map(|event| event.spec.name.as_str()).collect();
    warnings.extend(recorder.totals.warnings(&names));
    if throttled > 0 {
        warnings.push(format!(
            "the kernel held back events {throttled} times, since they came too often; lower the rate (-F, -c)"
        ));
    }
    let energy = recorder.energy.summary();
    let closed = recorder.close(&features);
    let outcome = closed.program.map_or(outcome, |program| process::wait(program, outcome, &closed.signals));
    Ok(Summary {
        outcome,
        samples,
        lost,
        throttled,
        energy,
        file_size: closed.file_size,
        output: options.output.clone(),
        warnings,
        failure: closed.failure,
    })
}

fn start_meters(
    meters: Vec<Box<dyn EnergyMeter>>,
    wanted: Duration,
) -> Result<Vec<MeterReader>, RecordError> {
    let mut first_domain = 0;
    let mut threads = Vec::new();
    for meter in meters {
        let count = meter.domains().len();
        let Pace { shortest, longest } = meter.pace();
        let [shortest, longest] = [shortest, longest].map(|span| Duration::from_nanos(span.as_nanos()));
        let measures = meter.domains().iter().any(|domain| domain.method == Method::Measured);
        let wanted = if measures { wanted } else { wanted.max(ESTIMATE_INTERVAL) };
        let thread = MeterReader::start(meter, first_domain, wanted.min(longest).max(shortest));
        threads.push(thread.map_err(RecordError::system("reading an energy meter"))?);
        first_domain += count;
    }
    Ok(threads)
}

/// What keeps a meter from being read and can be repaired, where joules must be estimated for it.
fn unread_meters(energy: &Discovery) -> Vec<String> {
    let repairable = energy.rejected.iter().filter(|rejected| rejected.repair.is_some());
    let rejected = if energy.measures_cpus() { Vec::new() } else { repairable.collect() };
    rejected.iter().map(|rejected| format!("energy is not measured by {rejected}")).collect()
}

/// The events of the file: those sampled, then those of eprof's own.
fn descriptions(sampling: &Sampling, metadata: &Metadata, with_activity: bool) -> Vec<EventDesc> {
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

/// The records at the start of the file: what eprof says of the recording, and where the kernel lies.
fn head_records(metadata: &Metadata, sampling: &Sampling, roots: &Roots) -> Result<Vec<u8>, RecordTooLong> {
    let mut records = Vec::new();
    own_events::metadata(metadata, monotonic_now(), &mut records)?;
    if !sampling.exclude_kernel {
        kernel_state::describe(roots, sampling.first_id(), &mut records)?;
    }
    Ok(records)
}
