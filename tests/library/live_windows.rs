//! Windows of a recording that is read as it grows: together they say what the whole says.

use std::collections::{BTreeMap, BTreeSet};

use eprof::analyze::{self, Dimensions, EarlierIntervals, ModelChoice, Options};
use eprof::live::{Cut, CutOptions, RunningTotals, Windows, join};
use eprof::power_model::presets::Preset;
use eprof::profile::Profile;
use eprof::recording::Recording;
use eprof::recording::energy::{EnergyReading, domain_of_event};
use eprof::report::{Grouping, Options as ReportOptions, Report};
use eprof::symbolize::{SymbolizeOptions, Symbolizer};
use eprof::units::{Joules, Nanoseconds};
use eprof_testbed::simulate::alternating::{Alternation, scenario};
use eprof_testbed::simulate::simulate;
use perf_data::record::Record;

/// Seconds of a machine with meters and hardware events, whose functions take turns.
fn recording() -> Vec<u8> {
    let alternation = Alternation {
        duration: Nanoseconds::from_millis(5_000),
        joules_per_sample: Joules::from_joules(0.003),
        ..Alternation::default()
    };
    simulate(&scenario(&alternation)).expect("a scenario that fits together").recording
}

fn data(file: &[u8]) -> &[u8] {
    let word = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().expect("a header")) as usize;
    &file[word(40)..word(40) + word(48)]
}

/// The windows of a file that comes in pieces of so many bytes, each of these milliseconds at least.
fn windows(file: &[u8], piece: usize, millis: u64) -> Vec<Recording> {
    cuts(file, piece, millis).into_iter().map(|cut| cut.recording).collect()
}

/// The same with what is counted of each.
fn cuts(file: &[u8], piece: usize, millis: u64) -> Vec<Cut> {
    let head = Recording::from_bytes(file.to_vec()).expect("a recording");
    let cut = CutOptions { period: Nanoseconds::from_millis(millis), ..CutOptions::default() };
    let mut windows = Windows::new(head, cut).expect("eprof's");
    let mut all = Vec::new();
    for piece in data(file).chunks(piece) {
        windows.push(piece);
        while let Some(window) = windows.next_window().expect("a window") {
            all.push(window);
        }
    }
    all.extend(windows.finish().expect("a window"));
    assert!(windows.held_bytes() < data(file).len() / 4, "what is done with is given up");
    all
}

/// As `eprof report` makes it, without call paths: of those there is the warning that the program's file is not here.
fn profile(recording: &Recording) -> Profile {
    let dimensions = Dimensions { stacks: false, ..Dimensions::ALL };
    analyze::analyze(recording, &Options { dimensions, ..Options::default() })
}

fn report(profile: &Profile, by: Grouping) -> Report {
    let mut symbolizer = Symbolizer::new(SymbolizeOptions::default());
    let symbols = symbolizer.symbolize(&profile.modules, &profile.addresses);
    Report::new(profile, &symbols, &ReportOptions { by, ..ReportOptions::default() }).expect("a report")
}

/// Time and joules of each domain's readings.
fn readings(recording: &Recording) -> BTreeMap<String, Vec<(f64, f64)>> {
    let mut all: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let mut records = recording.records();
    while let Some((_, context, record)) = records.next().expect("undamaged") {
        let Record::Sample(sample) = record else { continue };
        let name = &recording.events()[context.event.expect("an event").0 as usize].name;
        let Some(domain) = domain_of_event(name) else { continue };
        let reading = EnergyReading::from_bytes(sample.raw).expect("a reading");
        let time = context.time.expect("a time").as_nanos() as f64;
        all.entry(domain.to_owned()).or_default().push((time, reading.energy.as_joules()));
    }
    all
}

fn at(curve: &[(f64, f64)], time: f64) -> f64 {
    let behind = curve.partition_point(|(at, _)| *at <= time);
    match (behind.checked_sub(1).map(|before| curve[before]), curve.get(behind)) {
        (Some((t0, e0)), Some((t1, e1))) => e0 + (e1 - e0) * (time - t0) / (t1 - t0),
        (Some((_, last)), None) => last,
        (None, _) => curve[0].1,
    }
}

#[test]
fn each_window_has_the_joules_that_its_meters_counted_in_its_time() {
    let file = recording();
    let whole = Recording::from_bytes(file.clone()).expect("a recording");
    let curves = readings(&whole);
    let windows = windows(&file, 10_007, 700);
    assert!((5..=8).contains(&windows.len()), "{} windows", windows.len());
    let mut end = None;
    for window in &windows {
        let profile = profile(window);
        let (start, length) = (profile.start.as_nanos() as f64, profile.duration.as_nanos() as f64);
        assert!(end.is_none_or(|end| end == start), "no gap, and nothing twice");
        end = Some(start + length);
        assert!(profile.warnings.is_empty(), "{:?}", profile.warnings);
        for domain in &profile.domains {
            let curve = &curves[&domain.info.name];
            let counted = at(curve, start + length) - at(curve, start);
            let measured = domain.balance.measured.as_joules();
            assert!((measured - counted).abs() < 1e-9 * counted.max(1.0), "{measured} of {counted} J");
            assert!(domain.balance.holds(), "{:?}", domain.balance);
        }
    }
}

#[test]
fn windows_add_up_to_what_the_whole_recording_says() {
    let file = recording();
    let whole = profile(&Recording::from_bytes(file.clone()).expect("a recording"));
    for (piece, millis) in [(997, 400), (1 << 20, 1_000)] {
        let profiles: Vec<Profile> = windows(&file, piece, millis).iter().map(profile).collect();
        for (index, domain) in whole.domains.iter().enumerate() {
            let sum: f64 = profiles.iter().map(|one| one.domains[index].balance.measured.as_joules()).sum();
            let all = domain.balance.measured.as_joules();
            assert!((sum - all).abs() < 1e-9 * all, "{}: {sum} of {all} J", domain.info.name);
        }
        for by in [Grouping::Function, Grouping::Thread, Grouping::Core] {
            let expected = report(&whole, by);
            let mut sums = RunningTotals::default();
            profiles.iter().for_each(|profile| sums.add(&report(profile, by)));
            let all = expected.summary.balance.attributed.as_joules();
            let found = sums.balance().attributed.as_joules();
            assert!((found - all).abs() < 0.02 * all, "{found} of {all} J are the program's");
            let by_row: f64 = sums.rows().map(|(_, of)| of.own.as_joules()).sum();
            assert!((by_row - found).abs() < 1e-6 * all, "rows are {by_row} of {found} J");
            // Buckets end elsewhere, and a row's joules depend on what else ran in its bucket.
            for row in expected.rows.iter().filter(|row| row.own.joules.as_joules() > 0.02 * all) {
                let own = row.own.joules.as_joules();
                let same = |key: &eprof::live::RowKey| key.name == row.name && key.ids == row.ids;
                let found: f64 =
                    sums.rows().filter(|(key, _)| same(key)).map(|(_, of)| of.own.as_joules()).sum();
                assert!((found - own).abs() < 0.05 * own, "{by:?} {}: {found} of {own} J", row.name);
            }
        }
    }
}

/// Samples and CPU seconds of a profile's cells.
fn counts(profile: &Profile) -> (u64, f64) {
    let samples = profile.cells.iter().map(|cell| cell.samples).sum();
    (samples, profile.cells.iter().map(|cell| cell.time.as_secs_f64()).sum())
}

/// Samples of a short time around each cut lie in two windows, and count in one.
#[test]
fn samples_and_cpu_time_of_windows_add_up_and_none_has_more_than_its_cpus_have() {
    let file = recording();
    let whole = profile(&Recording::from_bytes(file.clone()).expect("a recording"));
    let (all_samples, all_seconds) = counts(&whole);
    let cpus = whole.cells.iter().filter_map(|cell| cell.cpu).collect::<BTreeSet<u32>>().len();
    let (mut samples, mut seconds, mut of_events) = (0, 0.0, 0);
    let cuts = cuts(&file, 1 << 16, 250);
    assert!(cuts.len() > 10, "{}", cuts.len());
    for Cut { recording, counted } in cuts {
        let dimensions = Dimensions { stacks: false, ..Dimensions::ALL };
        let options = Options { dimensions, counted: Some(counted), ..Options::default() };
        let window = analyze::analyze(&recording, &options);
        let (of_window, ran) = counts(&window);
        let most = cpus as f64 * counted.end.since(counted.start).as_secs_f64();
        assert!(ran <= 1.002 * most, "{ran} s of {most}");
        samples += of_window;
        seconds += ran;
        of_events += window.events.iter().map(|event| event.samples).sum::<u64>();
    }
    // What was sampled before the meters' first and after their last reading is in no window.
    assert!(all_samples - samples <= all_samples / 200, "{samples} of {all_samples} samples");
    assert!((all_seconds - seconds).abs() <= 0.005 * all_seconds, "{seconds} of {all_seconds} s");
    assert!(of_events >= samples);
}

#[test]
fn windows_that_are_joined_are_one_recording_again() {
    let file = recording();
    let whole = profile(&Recording::from_bytes(file.clone()).expect("a recording"));
    let windows = windows(&file, 1 << 16, 800);
    let joined = join(&windows.iter().collect::<Vec<_>>()).expect("a file");
    let joined = profile(&Recording::from_bytes(joined).expect("a recording"));
    assert!(joined.warnings.is_empty(), "{:?}", joined.warnings);
    for (whole, joined) in whole.domains.iter().zip(&joined.domains) {
        let (all, found) = (whole.balance, joined.balance);
        let off = |of: fn(&eprof::profile::Balance) -> eprof::units::Joules| {
            (of(&found) - of(&all)).as_joules().abs() / all.measured.as_joules()
        };
        assert!(off(|balance| balance.measured) < 1e-9);
        assert!(off(|balance| balance.attributed) < 0.02, "{found:?} of {all:?}");
    }
    let samples = |profile: &Profile| profile.events.iter().map(|event| event.samples).sum::<u64>();
    let (all, found) = (samples(&whole), samples(&joined));
    assert!(all.abs_diff(found) <= all / 200, "each sample once: {found} of {all}");
}

/// Joules that functions have of each domain that counts: of windows, one after the other.
fn functions(windows: &[Recording], options: &Options) -> Vec<f64> {
    let of = |recording| -> f64 {
        let profile = analyze::analyze(recording, options);
        profile.top_domains().map(|(_, domain)| domain.balance.attributed.as_joules()).sum()
    };
    windows.iter().map(of).collect()
}

#[test]
fn what_the_machine_draws_at_rest_is_learnt_from_the_windows_before() {
    // Nobody told the static power, and proportions from elsewhere say nothing of it.
    let alternation = Alternation {
        duration: Nanoseconds::from_millis(30_000),
        turn: Nanoseconds::from_millis(60),
        busy: 3,
        joules_per_sample: Joules::from_joules(0.01),
        static_power_known: false,
        ..Alternation::default()
    };
    let file = simulate(&scenario(&alternation)).expect("a scenario that fits together").recording;
    let options = || Options {
        dimensions: Dimensions { stacks: false, ..Dimensions::ALL },
        model: ModelChoice::Exactly(Preset::Generic.model()),
        ..Options::default()
    };
    let whole = functions(&[Recording::from_bytes(file.clone()).expect("a recording")], &options())[0];
    let windows = windows(&file, 1 << 16, 1_000);
    // A window's share of the whole, to compare them one by one.
    let share = whole / windows.len() as f64;
    let off = |joules: &[f64]| {
        let late = &joules[joules.len() / 3..];
        late.iter().map(|joules| (joules / share - 1.0).abs()).sum::<f64>() / late.len() as f64
    };
    let alone = functions(&windows, &options());
    let together = functions(&windows, &Options { earlier: Some(EarlierIntervals::default()), ..options() });
    println!("whole {whole}, alone {alone:?}, together {together:?}");
    let sum: f64 = together.iter().sum();
    assert!((sum / whole - 1.0).abs() < 0.04, "{sum} of {whole} J");
    assert!(off(&together) < 0.05 && off(&together) < 0.7 * off(&alone), "{alone:?}, {together:?}");
}
