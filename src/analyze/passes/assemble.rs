//! Puts together what both halves of a pass found.

use perf_data::RecordPosition;

use crate::analyze::aggregate::collect::Collected;
use crate::analyze::aggregate::gather::Gathered;
use crate::analyze::aggregate::samples::SampleList;
use crate::analyze::aggregate::unwind::{
    SampleUnwinder, copies_stacks, copies_tops_of_stacks, follows_calls,
};
use crate::analyze::events::{EventRoles, EventUnit};
use crate::analyze::group_reads;
use crate::analyze::intervals::survey::Survey;
use crate::analyze::model::estimate::Estimate;
use crate::analyze::options::Options;
use crate::analyze::passes::attributing::Attributed;
use crate::attribute::{Attribution, Bucket};
use crate::hardware::DomainInfo;
use crate::profile::{
    CUT_OFF, CallersId, Cell, DomainEnergy, ErrorTerms, HiddenCallers, Origin, Profile, StackTable,
    ThreadIndex, TimeSlice,
};
use crate::recording::Recording;
use crate::recording::metadata::Target;
use crate::units::{Joules, Nanoseconds, Timestamp};

/// What a pass makes of a recording.
pub(crate) struct Assembled {
    pub profile: Profile,
    /// Places of the samples, where each is a cell of its own, and up to where these are all.
    pub positions: (Vec<RecordPosition>, Option<RecordPosition>),
    /// There is one cell for each event: the rest was too much.
    pub by_event: bool,
    /// See [`Attribution::pool_factors`].
    pub pool_factors: Vec<f64>,
}

/// What samples of an event stand for beyond their periods, of one that counts what happens and not time.
fn made_up_of(roles: &EventRoles, made_up: &[u64], event: usize) -> Option<u64> {
    let is_counter = roles.sampled().get(event)?.unit != EventUnit::Nanoseconds;
    is_counter.then(|| made_up.get(event).copied().unwrap_or(0))
}

/// The profile of a recording.
pub(crate) fn assemble(
    recording: &Recording,
    roles: &EventRoles,
    survey: &Survey,
    options: &Options,
    attributed: Attributed,
    mut gathered: Gathered,
) -> Assembled {
    let Attributed {
        attribution,
        cells,
        cell_counts,
        launch_cells,
        errors,
        division,
        warnings,
        by_event,
        made_up,
        sample_times,
        ..
    } = attributed;
    let Collected { callers, addresses, .. } = gathered.collected;
    let mut cell_counts = cell_counts.into_iter();
    let (cells, stacks) = match by_event {
        false => {
            let (cells, stacks) = cells.finish(&mut cell_counts);
            (cells, callers.with_stacks_of(stacks))
        }
        true => cells_of_events(gathered.totals.len(), &mut cell_counts),
    };
    let launch_cells = [gathered.launch_cells, launch_cells].concat();
    let positions = gathered.samples.as_mut().map(SampleList::take_positions).unwrap_or_default();
    let times = cell_counts.map(|(_, _, time)| time);
    let cells = gathered.samples.map_or(cells, |samples| samples.into_cells(times));
    let (start, end) = time_range(gathered.sampled, survey);
    let pool_factors = attribution.pool_factors.clone();
    let mut errors = Some(errors);
    let missed =
        gathered.missing.warnings_of_counts(&gathered.totals, |event| made_up_of(roles, &made_up, event));
    for (event, made_up) in gathered.totals.iter_mut().zip(&made_up) {
        event.count = event.count.saturating_add(*made_up);
    }
    let mut profile = Profile {
        start,
        duration: end.since(start),
        events: gathered.totals,
        modules: gathered.modules,
        threads: gathered.threads,
        addresses,
        stacks,
        cells,
        sample_times,
        division,
        has_call_paths: options.dimensions.stacks && follows_calls(recording),
        copies_stacks: copies_stacks(recording),
        is_partial: !recording.is_complete() || gathered.end.stopped_by.is_some(),
        hidden_callers: gathered.hidden_callers,
        warnings: [gathered.warnings, missed, warnings].concat(),
        recordings: vec![origin(recording, survey)],
        ..Profile::default()
    };
    if let Some(metadata) = recording.metadata() {
        profile.cpus = metadata.machine.cpus.clone();
        profile.warnings.extend(metadata.warnings.iter().cloned());
        profile.warnings.extend(survey.read_too_late(&metadata.domains));
        if !recording.is_complete() && attribution.others_are_unknown && !metadata.system_wide_samples {
            profile.warnings.push(OTHERS_UNKNOWN.to_owned());
        }
        match survey.tells_joules() {
            true => add_energy(&mut profile, &metadata.domains, attribution, &mut errors),
            false => {
                profile.division = None;
                let is_missed = !metadata.domains.is_empty() && options.watts.is_none();
                profile.warnings.extend(is_missed.then(|| READ_ONCE.to_owned()));
            }
        }
        gathered.launches.settle(&mut profile, &launch_cells);
    }
    if let Some(watts) = options.watts
        && profile.domains.is_empty()
    {
        Estimate::of_recording(recording, survey, watts).add_to(&mut profile);
        profile.errors = errors;
    }
    for event in profile.events.iter().filter(|event| event.lost > 0) {
        profile.warnings.push(format!(
            "{} records were lost (event {}): the rings were full; lower the rate (-F) or raise \
             kernel.perf_event_mlock_kb",
            event.lost, event.name
        ));
    }
    for event in profile.events.iter().filter(|event| event.throttled > 0) {
        profile.warnings.push(format!(
            "the kernel throttled event {} {} times: its rate was above kernel.perf_event_max_sample_rate",
            event.name, event.throttled
        ));
    }
    profile.warnings.extend(group_reads::warning(recording.events(), &profile.events));
    profile.warnings.extend(SampleUnwinder::obstacle(recording));
    let of_end = gathered.end.warnings();
    // Where the file ends or is damaged in a record, that says where and why.
    if profile.is_partial && gathered.end.stopped_by.is_none() {
        profile.warnings.push(
            "the recording is partial: its recorder was killed or the file was cut off; this is what it holds up to \
             there"
                .to_owned(),
        );
    }
    let missing = recording.perf_data().features_cut_off();
    if missing > 0 {
        profile.warnings.push(format!(
            "{CUT_OFF} behind its samples, which are all there: {missing} of the descriptions at its end are missing, such as \
             which builds of programs ran (build-ids); copy it again"
        ));
    }
    profile.warnings.extend(out_of_reach(gathered.hidden_callers, copies_tops_of_stacks(recording)));
    profile.warnings.extend(of_end);
    Assembled { profile, positions, by_event, pool_factors }
}

/// Of recordings that end before the second reading of the CPU times, by which estimates and what others took are known.
const OTHERS_UNKNOWN: &str = "the recording ends before it was known what other processes took, as where a recorder is killed or a disk is full: their \
     joules are among the functions'. Where a recording of another rank or of its node has that time, report both together";
/// Of recordings whose meters were not read twice.
const READ_ONCE: &str = "its meters were not read twice, as where a recorder is killed at once: its joules are not known. Give the recordings of the other \
     ranks of its machine as well, or watts to estimate by: --watts IDLE:BUSY";

/// What the recording says of where it comes from.
fn origin(recording: &Recording, survey: &Survey) -> Origin {
    let features = recording.features();
    let Some(metadata) = recording.metadata() else {
        return Origin {
            hostname: features.hostname.clone().unwrap_or_default(),
            kernel: features.os_release.clone().unwrap_or_default(),
            ..Origin::default()
        };
    };
    Origin {
        name: None,
        hostname: metadata.machine.hostname.clone(),
        node: None,
        kernel: metadata.machine.kernel.clone(),
        identity: metadata.identity.clone(),
        started_unix_ns: Some(metadata.started_unix_ns).filter(|&nanos| nanos > 0),
        is_monotonic: metadata.clock == "CLOCK_MONOTONIC",
        recorder_pid: Some(metadata.recorder_pid),
        is_of_system: metadata.target == Target::System,
        cpus: metadata.machine.cpus.clone(),
        meters: survey.meters.clone(),
        machine: 0,
    }
}

/// Callers that are missing in more than one sample of twenty are worth another recording.
fn out_of_reach(callers: HiddenCallers, tops_are_copied: bool) -> Option<String> {
    let percent = |part: u64| 100.0 * part as f64 / callers.samples.max(1) as f64;
    let (missing, unknown) = (percent(callers.out_of_reach), percent(callers.unknown));
    if tops_are_copied {
        return (missing > 5.0).then(|| {
            format!(
                "in {missing:.1} % of samples the caller of a function without a frame is missing: it lay deeper in the \
                 stack than was copied. Programs without frame pointers need --call-graph dwarf; others with large \
                 frames, --call-graph fp+leaf,2048"
            )
        });
    }
    if missing > 5.0 {
        return Some(format!(
            "in {missing:.1} % of samples the direct caller is missing: frame pointers do not tell who called a function \
             that sets up no frame. --call-graph fp+leaf, `eprof record`'s default, finds them, and so does --call-graph \
             dwarf"
        ));
    }
    (unknown > 50.0).then(|| {
        format!(
            "direct callers may be missing: frame pointers do not tell who called a function that sets up no frame, and \
             the files that would tell how often are not here, for {unknown:.0} % of samples. `eprof record`'s default, \
             --call-graph fp+leaf, and --call-graph dwarf record these callers, too"
        )
    })
}

/// One cell for each event, all without a stack.
fn cells_of_events(
    events: usize,
    cell_counts: &mut impl Iterator<Item = (u64, u64, Nanoseconds)>,
) -> (Vec<Cell>, StackTable) {
    let mut stacks = StackTable::default();
    let stack = stacks.push(CallersId::NONE, None);
    let cell = |(event, (samples, count, time))| {
        let thread = ThreadIndex(0);
        Cell { stack, thread, cpu: None, event, samples, count, time }
    };
    ((0..events as u32).zip(cell_counts).map(cell).collect(), stacks)
}

fn add_energy(
    profile: &mut Profile,
    domains: &[DomainInfo],
    attribution: Attribution,
    errors: &mut Option<ErrorTerms>,
) {
    let columns = domains.len();
    profile.domains = domains
        .iter()
        .zip(attribution.balances)
        .map(|(info, balance)| DomainEnergy { info: info.clone(), balance })
        .collect();
    let slice = |bucket: Bucket| TimeSlice {
        start: bucket.start,
        end: bucket.end,
        measured: bucket.measured,
        modelled: bucket.modelled,
        balance: bucket.balance,
        by_cell: bucket.by_cell,
    };
    profile.slices = attribution.buckets.into_iter().map(slice).collect();
    // Cells that never got a quantum have no row yet.
    profile.cell_joules = attribution.cell_joules;
    profile.cell_joules.resize(profile.cells.len() * columns, Joules::ZERO);
    // Of joules that follow what tells no time nobody knows how wrong they are.
    if profile.division.as_ref().is_some_and(|division| division.in_place_of_time.is_none())
        && let Some(errors) = errors.take()
    {
        let mut sensitivities = attribution.sensitivities;
        if !sensitivities.is_empty() {
            sensitivities.resize(profile.cells.len() * columns * errors.parameters, 0.0);
        }
        profile.errors = Some(ErrorTerms { sensitivities, ..errors });
    }
    if attribution.refused_readings > 0 {
        profile.warnings.push(format!(
            "{} energy readings went backwards and were left out: a counter was reset or its clock jumped",
            attribution.refused_readings
        ));
    }
}

/// The recorded time: of the meters where they were read, else of the samples. Of meters that were read once alone, from then to the
/// last sample.
fn time_range(sampled: Option<(Timestamp, Timestamp)>, survey: &Survey) -> (Timestamp, Timestamp) {
    let readings = || survey.readings.iter().flatten();
    let first = readings().map(|[(time, _), _]| *time).min();
    let last = readings().map(|[_, (time, _)]| *time).max();
    match (first, last, sampled) {
        (Some(first), Some(last), Some(sampled)) if first == last => {
            (first.min(sampled.0), last.max(sampled.1))
        }
        (Some(first), Some(last), _) => (first, last),
        _ => sampled.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::fixture::{metadata, recording_with_readings};
    use crate::analyze::{EventRoles, survey};
    use crate::recording::metadata::Metadata;

    #[test]
    fn what_a_recording_says_of_itself_is_its_origin() {
        let of = |metadata: Metadata| {
            let recording = recording_with_readings(&[vec![1]], metadata, |_| true);
            origin(&recording, &survey(&recording, &EventRoles::new(&recording)))
        };
        let found = of(metadata());
        // Nobody knows when, which is written as 0.
        assert_eq!((found.started_unix_ns, found.recorder_pid), (None, Some(1)));
        assert!(found.is_monotonic && found.is_of_system);
        assert_eq!(found.meters.len(), 3);
        let other = Metadata {
            started_unix_ns: 1,
            clock: "CLOCK_REALTIME".to_owned(),
            target: Target::Processes(vec![7]),
            ..metadata()
        };
        let found = of(other);
        assert_eq!(found.started_unix_ns, Some(1));
        assert!(!found.is_monotonic && !found.is_of_system);
    }

    #[test]
    fn five_per_cent_of_the_callers_are_worth_telling() {
        let said = |out: u64, unknown: u64, tops_are_copied| {
            let callers = HiddenCallers { samples: 1000, found: 0, out_of_reach: out, unknown };
            out_of_reach(callers, tops_are_copied).unwrap_or_default()
        };
        assert_eq!([said(50, 1000, true), said(50, 500, false)], ["", ""]);
        assert!(
            said(51, 0, true).starts_with("in 5.1 % of samples the caller of a function without a frame")
        );
        assert!(said(51, 999, false).starts_with("in 5.1 % of samples the direct caller is missing"));
        assert!(said(50, 510, false).contains("are not here, for 51 % of samples"));
        assert_eq!(out_of_reach(HiddenCallers::default(), false), None);
    }
}
