//! An energy-weighted copy of a recording: every perf-based tool becomes an energy profiler.
//!
//! In the copy all sampled events are one event of the software type "dummy", which counts nothing. Each
//! sample is the original one but for its period, which is the sample's energy in nanojoules; so a tool
//! that weighs samples by period weighs by energy. Callchains, stack copies, names, mappings and the order
//! of records stay as they are. Left out are eprof's own events, counter values (tools would take periods
//! from them), and samples without energy.
//!
//! Nanojoules are rounded so that their sum is the sum of all energy, to one nanojoule.

use std::io::{Seek, Write};

use perf_data::attr::{EventAttr, flag};
use perf_data::features::{BuildId, Features};
use perf_data::format::{event_type, record_type, sample_type};
use perf_data::record::{CpuMode, EventIndex, Record};
use perf_data::writer::PerfDataWriter;
use perf_data::{EventDesc, RawRecord, ReadError, RecordPosition};

use super::ReportError;
use super::folded::WholeNumbers;
use crate::profile::ProfileMethod;
use crate::recording::Recording;
use crate::recording::energy::domain_of_event;
use crate::recording::metadata::{CPU_TIMES_EVENT, METADATA_EVENT};
use crate::units::{Joules, Nanoseconds, Timestamp};

/// The event's name, as tools show it above their tables; they show nothing else of where the joules come from.
pub const ENERGY_EVENT: &str = "energy-nanojoules";

/// The same where joules are not all measured.
fn event_name(method: ProfileMethod) -> String {
    match method {
        ProfileMethod::Measured | ProfileMethod::None => ENERGY_EVENT.to_owned(),
        ProfileMethod::Estimated => format!("estimated-{ENERGY_EVENT}"),
        ProfileMethod::Mixed => format!("partly-estimated-{ENERGY_EVENT}"),
    }
}
const NANOJOULES: f64 = 1e9;
/// PERF_COUNT_SW_DUMMY of the kernel's perf_event.h.
const SOFTWARE_DUMMY: u64 = 9;
/// PERF_COUNT_SW_CPU_CLOCK.
const SOFTWARE_CPU_CLOCK: u64 = 0;
/// The kernel counts its ids from one and never gets here.
const UNUSED_ID: u64 = 1 << 63;
const HEADER_SIZE: usize = 8;
const PERIOD_SIZE: usize = 8;
/// The fields of a sample that stand before its period; each takes eight bytes.
const BEFORE_PERIOD: u64 = sample_type::IDENTIFIER
    | sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::ADDR
    | sample_type::ID
    | sample_type::STREAM_ID
    | sample_type::CPU;

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Exported {
    /// Samples with energy.
    pub samples: u64,
    /// Their energy.
    pub joules: Joules,
    /// Samples left out because they had no energy.
    pub without_energy: u64,
    /// Samples left out because with a period they are longer than a record can be.
    pub too_long: u64,
    /// Damaged records that were left out.
    pub damaged: u64,
}

/// Writes the copy. `joules` tells the energy of the sample at a place in the recording, and is asked in the order of
/// the file; `method`, how it was found.
///
/// # Errors
/// If writing fails.
pub fn write(
    recording: &Recording,
    method: ProfileMethod,
    mut joules: impl FnMut(RecordPosition) -> Option<Joules>,
    out: impl Write + Seek,
) -> Result<Exported, ReportError> {
    let events = Events::new(recording, &event_name(method));
    let mut writer = PerfDataWriter::create(out, events.written.clone())?;
    let mut exported = Exported::default();
    let mut periods = WholeNumbers::new(NANOJOULES);
    let mut times: Option<(Timestamp, Timestamp)> = None;
    let mut records = recording.records();
    let mut record = Vec::new();
    loop {
        let raw = match records.next_raw() {
            Ok(Some(raw)) => raw,
            Ok(None) => break,
            Err(error) if error.is_recoverable() => {
                exported.damaged += 1;
                continue;
            }
            // What precedes the damage is exported.
            Err(_) => {
                exported.damaged += 1;
                break;
            }
        };
        record.clear();
        let position = raw.position;
        if raw.kind != record_type::SAMPLE {
            if is_copied(raw.kind) {
                push_record(&raw, raw.body, &mut record);
            }
        } else if let Some(joules) = joules(position).filter(|joules| *joules > Joules::ZERO) {
            match events.sample(recording, &raw) {
                Ok(None) => {}
                Ok(Some(body)) if body.len() + HEADER_SIZE > usize::from(u16::MAX) => exported.too_long += 1,
                Ok(Some(mut body)) => {
                    let period = periods.next(joules.as_joules());
                    let at = body.period_at;
                    body.bytes[at..at + PERIOD_SIZE].copy_from_slice(&period.to_le_bytes());
                    push_record(&raw, &body.bytes, &mut record);
                    exported.samples += 1;
                    exported.joules += joules;
                    if let Some(time) = body.time {
                        let (first, last) = times.get_or_insert((time, time));
                        (*first, *last) = ((*first).min(time), (*last).max(time));
                    }
                }
                Err(_) => exported.damaged += 1,
            }
        } else if events.is_written(recording.decoder().context(&raw).event) {
            exported.without_energy += 1;
        }
        if !record.is_empty() {
            writer.write_raw(&record)?;
        }
        records.release_before(position);
    }
    writer.finish(&features(recording, times))?;
    Ok(exported)
}

/// A sample's body with room for the period.
struct Body {
    bytes: Vec<u8>,
    period_at: usize,
    time: Option<Timestamp>,
}

impl Body {
    fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The events of the original and of the copy.
struct Events {
    /// For each event of the original, the one of the copy; `None` for eprof's own.
    written_as: Vec<Option<usize>>,
    written: Vec<EventDesc>,
}

impl Events {
    fn new(recording: &Recording, name: &str) -> Self {
        let mut written: Vec<EventDesc> = Vec::new();
        let written_as = recording
            .events()
            .iter()
            .map(|event| {
                if is_own(recording, event) {
                    return None;
                }
                let attr = energy_attr(&event.attr);
                // Events whose samples have the same fields can be one event.
                if let Some(same) = written.iter().position(|known| is_alike(&known.attr, &attr)) {
                    written[same].ids.extend(&event.ids);
                    written[same].attr.flags |= attr.flags;
                    return Some(same);
                }
                written.push(EventDesc { name: event.name.clone(), attr, ids: event.ids.clone() });
                Some(written.len() - 1)
            })
            .collect();
        match &mut written[..] {
            [only] => only.name = name.to_owned(),
            several => several.iter_mut().for_each(|event| event.name = format!("{name}, {}", event.name)),
        }
        written.extend(written.first().and_then(companion));
        Self { written_as, written }
    }

    fn is_written(&self, event: Option<EventIndex>) -> bool {
        let index = event.map_or(0, |event| event.0 as usize);
        self.written_as.get(index).is_some_and(Option::is_some)
    }

    /// The sample with a period put in and counter values taken out; `None` for samples of eprof's own
    /// events.
    fn sample(&self, recording: &Recording, raw: &RawRecord<'_>) -> Result<Option<Body>, ReadError> {
        let context = recording.decoder().context(raw);
        if !self.is_written(context.event) {
            return Ok(None);
        }
        let Some(event) = recording.events().get(context.event.map_or(0, |event| event.0 as usize)) else {
            return Ok(None);
        };
        let Record::Sample(sample) = recording.decoder().decode(raw, &context)? else { return Ok(None) };
        let kind = event.attr.sample_type;
        let period_at = 8 * (kind & BEFORE_PERIOD).count_ones() as usize;
        let old_period = if kind & sample_type::PERIOD != 0 { PERIOD_SIZE } else { 0 };
        let rest_at = period_at + old_period + sample.read.len();
        // The sample was decoded, so all of these fields are there.
        let (before, rest) =
            (raw.body.get(..period_at).unwrap_or(&[]), raw.body.get(rest_at..).unwrap_or(&[]));
        let bytes = [before, &[0; PERIOD_SIZE], rest].concat();
        Ok(Some(Body { bytes, period_at, time: context.time }))
    }
}

fn is_own(recording: &Recording, event: &EventDesc) -> bool {
    let is_domain = |name| {
        recording.metadata().is_some_and(|metadata| metadata.domains.iter().any(|domain| domain.name == name))
    };
    event.name == METADATA_EVENT
        || event.name == CPU_TIMES_EVENT
        || domain_of_event(&event.name).is_some_and(is_domain)
}

/// What the event is in the copy: nothing that was counted, but with all fields of its samples.
fn energy_attr(attr: &EventAttr) -> EventAttr {
    EventAttr {
        kind: event_type::SOFTWARE,
        config: SOFTWARE_DUMMY,
        config1: 0,
        config2: 0,
        config3: 0,
        breakpoint_type: 0,
        sample_period: 1,
        sample_type: (attr.sample_type | sample_type::PERIOD) & !sample_type::READ,
        read_format: 0,
        flags: attr.flags & !flag::FREQ,
        wakeup: 0,
        ..*attr
    }
}

/// An event without samples beside the energy event. `perf script` takes from the first event that is no
/// dummy whether there are callchains to print, and prints none if all are dummies.
fn companion(energy: &EventDesc) -> Option<EventDesc> {
    // With more than one event, samples must tell theirs.
    let has_ids = energy.attr.sample_type & (sample_type::IDENTIFIER | sample_type::ID) != 0;
    has_ids.then(|| EventDesc {
        name: "cpu-clock".to_owned(),
        attr: EventAttr { config: SOFTWARE_CPU_CLOCK, ..energy.attr },
        ids: vec![UNUSED_ID],
    })
}

/// Whether the samples and trailers of two events have the same fields.
fn is_alike(a: &EventAttr, b: &EventAttr) -> bool {
    let fields = |attr: &EventAttr| EventAttr { flags: attr.flags & flag::SAMPLE_ID_ALL, ..*attr };
    fields(a) == fields(b)
}

/// The kernel's own records are copied but for counter values; of the recorder's, the marks of rounds.
fn is_copied(kind: u32) -> bool {
    let is_trace =
        matches!(kind, record_type::AUX | record_type::ITRACE_START | record_type::AUX_OUTPUT_HW_ID);
    (kind < record_type::USER_START && kind != record_type::READ && !is_trace)
        || matches!(kind, record_type::FINISHED_ROUND | record_type::FINISHED_INIT)
}

fn push_record(raw: &RawRecord<'_>, body: &[u8], out: &mut Vec<u8>) {
    out.extend(raw.kind.to_le_bytes());
    out.extend(raw.misc.to_le_bytes());
    // The caller has checked that it fits.
    out.extend(((body.len() + HEADER_SIZE) as u16).to_le_bytes());
    out.extend(body);
}

/// What the original says about itself, as far as it holds for the copy.
fn features(recording: &Recording, sample_times: Option<(Timestamp, Timestamp)>) -> Features {
    let features = recording.features();
    let metadata = recording.metadata();
    let is_kernel = |mode| matches!(mode, CpuMode::Kernel | CpuMode::GuestKernel);
    Features {
        hostname: features.hostname.clone().or_else(|| metadata.map(|it| it.machine.hostname.clone())),
        os_release: features.os_release.clone().or_else(|| metadata.map(|it| it.machine.kernel.clone())),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        arch: features.arch.clone().or_else(|| metadata.map(|it| it.machine.arch.clone())),
        cpus: features.cpus,
        cpu_description: features.cpu_description.clone(),
        cpu_id: features.cpu_id.clone(),
        total_memory_kb: features.total_memory_kb,
        command_line: features.command_line.clone(),
        build_ids: features
            .build_ids
            .iter()
            .map(|file| {
                let of = if is_kernel(file.mode) { BuildId::of_kernel } else { BuildId::of_file };
                of(file.id.clone(), file.path.clone())
            })
            .collect(),
        hides_branch_stacks: true,
        sample_times,
        clock: features.clock,
        clock_resolution: features
            .clock
            .map(|_| features.clock_resolution.unwrap_or(Nanoseconds::from_nanos(1))),
        ..Features::default()
    }
}
