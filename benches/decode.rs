//! How fast records are found and decoded: a recording of two events with callchains of 4 to 60 frames, as
//! eprof records them, plain and compressed.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use eprof::recording::Recording;
use eprof::recording::attr::{EventAttr, flag};
use eprof::recording::format::{misc, record_type, sample_type};
use eprof::recording::record::Record;

// The builder serves the tests too, which use more of it.
#[allow(dead_code)]
#[path = "../tests/recording/build.rs"]
mod build;

use build::{Event, File};

const SAMPLES: u64 = 100_000;
/// Records of one ring between two round marks.
const ROUND: u64 = 1000;
const PIECE: usize = 48_000;

fn plain() -> File {
    let attr = EventAttr {
        sample_type: sample_type::IDENTIFIER
            | sample_type::IP
            | sample_type::TID
            | sample_type::TIME
            | sample_type::CPU
            | sample_type::PERIOD
            | sample_type::CALLCHAIN,
        flags: flag::SAMPLE_ID_ALL,
        ..EventAttr::default()
    };
    let event = |name, ids| Event { attr, ids, name };
    let mut file = File::new(vec![event("cycles", vec![1, 2]), event("instructions", vec![3, 4])]);
    for number in 0..SAMPLES {
        let cpu = number / ROUND % 2;
        let id = 1 + 2 * (number & 1) + cpu;
        // Depths spread evenly over 4..=60, about 32 frames on average.
        let depth = 4 + number * 37 % 57;
        let chain = (0..depth).map(|level| 0x5555_0000_0000 + level * 0x40 + (number * level) % 8);
        let fixed = file.bytes().u64(id).u64(0x5555_0000_0000).u32(100).u32(101 + cpu as u32);
        let fixed = fixed.u64(1_000_000_000 + number * 1_000).u32(cpu as u32).u32(0).u64(1_000_003);
        let body = chain.fold(fixed.u64(depth), |body, frame| body.u64(frame)).bytes;
        file.record(record_type::SAMPLE, misc::USER, &body);
        if number % (2 * ROUND) == 2 * ROUND - 1 {
            file.record(record_type::FINISHED_ROUND, 0, b"");
        }
    }
    file
}

fn compressed(plain: &File) -> File {
    let mut file = File::new(plain.events.clone());
    for piece in plain.data.chunks(PIECE) {
        let frame = zstd::bulk::compress(piece, 1).expect("a compressor");
        file.record(record_type::COMPRESSED, 0, &frame);
    }
    file
}

/// Finds all records; gives the sum of their lengths.
fn find(recording: &Recording) -> usize {
    let mut records = recording.records();
    let mut bytes = 0;
    while let Some(raw) = records.next_raw().expect("sound") {
        bytes += raw.body.len();
        let position = raw.position;
        records.release_before(position);
    }
    bytes
}

/// Finds all records and when and where each was made; gives the sum of the times.
fn contexts(recording: &Recording) -> u64 {
    let decoder = recording.decoder();
    let mut records = recording.records();
    let mut times = 0u64;
    while let Some(raw) = records.next_raw().expect("sound") {
        let context = decoder.context(&raw);
        times = times.wrapping_add(context.time.map_or(0, |time| time.as_nanos()));
        let position = raw.position;
        records.release_before(position);
    }
    times
}

/// Decodes all records; gives the number of frames.
fn decode(recording: &Recording) -> usize {
    let mut records = recording.records();
    let mut frames = 0;
    while let Some((_, context, record)) = records.next().expect("sound") {
        black_box(context);
        if let Record::Sample(sample) = record {
            frames += sample.callchain.len();
        }
    }
    frames
}

/// Decodes all records and reads every frame: what no report can do without.
fn read_frames(recording: &Recording) -> u64 {
    let mut records = recording.records();
    let mut sum = 0u64;
    while let Some((_, _, record)) = records.next().expect("sound") {
        if let Record::Sample(sample) = record {
            sum = sample.callchain.entries().fold(sum, u64::wrapping_add);
        }
    }
    sum
}

fn benchmark(criterion: &mut Criterion) {
    let plain = plain();
    let recordings = [("plain", plain.build()), ("compressed", compressed(&plain).build())]
        .map(|(kind, bytes)| (kind, Recording::from_bytes(bytes).expect("sound")));
    let mut group = criterion.benchmark_group("recording");
    group.throughput(Throughput::Elements(SAMPLES));
    for (kind, recording) in &recordings {
        group.bench_function(BenchmarkId::new("find", kind), |b| b.iter(|| find(recording)));
        group.bench_function(BenchmarkId::new("context", kind), |b| b.iter(|| contexts(recording)));
        group.bench_function(BenchmarkId::new("decode", kind), |b| b.iter(|| decode(recording)));
        group.bench_function(BenchmarkId::new("frames", kind), |b| b.iter(|| read_frames(recording)));
    }
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
