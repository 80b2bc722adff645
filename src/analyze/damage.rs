//! Recordings that end too early or are damaged: what is sound of them counts, and the rest is said.

use perf_data::format::record_type;

use crate::analyze::fixture::{file_with_readings, metadata};
use crate::analyze::{Options, analyze};
use crate::profile::Profile;
use crate::recording::Recording;

const SAMPLES: u64 = 200;
/// Where a sample's number of frames lies: behind the header, identifier, address, task, time, CPU and period.
const FRAMES_AT: usize = 8 + 6 * 8;

fn file() -> Vec<u8> {
    let stacks: Vec<Vec<u64>> = (0..SAMPLES).map(|number| vec![1, number % 7]).collect();
    file_with_readings(&stacks, metadata(), |_| true)
}

/// Of each record, where it lies in the file, its length and its kind.
fn records(file: &[u8]) -> Vec<(usize, usize, u32)> {
    let recording = Recording::from_bytes(file.to_vec()).expect("sound");
    let mut records = recording.records();
    let mut found = Vec::new();
    while let Some(raw) = records.next_raw().expect("sound") {
        let at = raw.offset as usize;
        let length = u16::from_le_bytes([file[at + 6], file[at + 7]]);
        found.push((at, usize::from(length), raw.kind));
    }
    found
}

/// Records of samples of the program, which come after the last of the recorder's own; they have frames.
fn samples(file: &[u8]) -> Vec<(usize, usize)> {
    let frames = |at: usize| u64::from_le_bytes(file[at + FRAMES_AT..][..8].try_into().expect("eight bytes"));
    let of_program = |(at, length, kind): (usize, usize, u32)| {
        // Two functions and the marker before them.
        (kind == record_type::SAMPLE && length > FRAMES_AT + 8 && frames(at) == 3).then_some((at, length))
    };
    records(file).into_iter().filter_map(of_program).collect()
}

fn analyzed(file: Vec<u8>) -> Profile {
    let profile = analyze(&Recording::from_bytes(file).expect("its header is sound"), &Options::default());
    for domain in &profile.domains {
        assert!(domain.balance.holds(), "{:?}", domain.balance);
    }
    profile
}

fn counted(profile: &Profile) -> u64 {
    let cells: u64 = profile.cells.iter().map(|cell| cell.samples).sum();
    assert_eq!(cells, profile.events.iter().map(|event| event.samples).sum::<u64>());
    cells
}

fn said(profile: &Profile, beginning: &str) -> usize {
    profile.warnings.iter().filter(|warning| warning.starts_with(beginning)).count()
}

#[test]
fn what_precedes_the_end_is_used() {
    let file = file();
    let samples = samples(&file);
    assert_eq!(samples.len() as u64, SAMPLES);
    let whole = analyzed(file.clone());
    assert_eq!((counted(&whole), whole.is_partial, said(&whole, "the recording is")), (SAMPLES, false, 0));
    for (at, length, _) in records(&file).into_iter().skip(110).step_by(13) {
        // In the middle of a record, and one byte before its end.
        for cut in [at + length / 2, at + length - 1] {
            let profile = analyzed(file[..cut].to_vec());
            let before = samples.iter().filter(|(sample, _)| *sample < at).count() as u64;
            assert_eq!((counted(&profile), profile.is_partial), (before, true), "{cut}");
            let beginning =
                format!("the recording is cut off at byte {at}: the next record has {length} bytes");
            assert_eq!(said(&profile, &beginning), 1, "{:?}", profile.warnings);
            assert_eq!(said(&profile, "the recording is partial"), 0, "said once");
        }
    }
}

#[test]
fn nothing_behind_a_length_that_cannot_be_is_found() {
    let mut file = file();
    let (at, _) = samples(&file)[120];
    file[at + 6..at + 8].copy_from_slice(&3u16.to_le_bytes());
    let profile = analyzed(file);
    assert_eq!((counted(&profile), profile.is_partial), (120, true));
    let beginning = format!(
        "the recording is damaged at byte {at}: a record of 3 bytes cannot be; what precedes it is used"
    );
    assert_eq!(said(&profile, &beginning), 1, "{:?}", profile.warnings);
}

#[test]
fn damaged_samples_are_left_out_and_counted() {
    let mut file = file();
    let damaged = [20, 60, 61, 140, 199].map(|number| samples(&file)[number].0);
    for at in damaged {
        file[at + FRAMES_AT..][..8].copy_from_slice(&1_000_000u64.to_le_bytes());
    }
    let profile = analyzed(file);
    assert_eq!((counted(&profile), profile.is_partial), (SAMPLES - 5, false));
    let beginning =
        format!("5 damaged records were left out; the first: the record at byte {} (type 9)", damaged[0]);
    assert_eq!(said(&profile, &beginning), 1, "{:?}", profile.warnings);
}

/// A sample whose type was damaged is a record that may be of a newer recorder.
#[test]
fn records_of_unknown_types_are_counted() {
    let mut file = file();
    let damaged = [30, 61, 140].map(|number| samples(&file)[number].0);
    for (at, kind) in damaged.into_iter().zip([23u32, 63, 87]) {
        file[at..at + 4].copy_from_slice(&kind.to_le_bytes());
    }
    let profile = analyzed(file.clone());
    assert_eq!(counted(&profile), SAMPLES - 3);
    let beginning = format!(
        "3 records of a type that eprof does not know were left out; the first: type 23 at byte {}",
        damaged[0]
    );
    assert_eq!(said(&profile, &beginning), 1, "{:?}", profile.warnings);
    // Of types that perf writes eprof needs some only.
    for kind in [22u32, 64, 86] {
        file[damaged[0]..][..4].copy_from_slice(&kind.to_le_bytes());
        let beginning = "2 records of a type that eprof does not know were left out; the first: type 63 at";
        assert_eq!(said(&analyzed(file.clone()), beginning), 1, "{kind}");
    }
}
