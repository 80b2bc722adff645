//! How fast records are found, decoded, put in the order of time and interned: a recording of two events with
//! callchains of 4 to 60 frames, as eprof records them, plain and compressed.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use eprof::analyze::{Dimensions, Options, Replay, analyze};
use eprof::profile::{CodeAddress, ModuleId};
use eprof::recording::Recording;
use eprof::timeline::{CodeInterner, RoundSorter};
use eprof::units::Timestamp;
use eprof_testbed::recording_builder::{Event, File};
use perf_data::attr::{EventAttr, flag};
use perf_data::format::{misc, record_type, sample_type};
use perf_data::record::Record;

const SAMPLES: u64 = 100_000;
/// Records of one ring between two round marks.
const ROUND: u64 = 1000;
const PIECE: usize = 48_000;

/// Of so many samples one has a stack that no other has; 0: none.
fn plain(new_stacks: u64) -> File {
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
        let is_new = number.checked_rem(new_stacks) == Some(0);
        let chain = (0..depth).map(|level| {
            let own_way = if is_new && level == depth / 2 { 0x1_0000 + number } else { 0 };
            0x5555_0000_0000 + level * 0x40 + (number * level) % 8 + own_way
        });
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

/// Puts the times of so many rings in order, drained one after the other in rounds; gives the last.
fn merge(rings: u64) -> u64 {
    let mut sorter = RoundSorter::default();
    let mut last = 0;
    let of_ring = SAMPLES / rings;
    for round in 0..of_ring.div_ceil(ROUND) {
        for ring in 0..rings {
            for number in round * ROUND..of_ring.min((round + 1) * ROUND) {
                let time = number * rings * 1000 + (ring * 7919) % (rings * 1000);
                sorter.push(Timestamp::from_nanos(time), time);
            }
        }
        last = sorter.finish_round().fold(last, |_, (_, time)| black_box(time));
    }
    sorter.finish().fold(last, |_, (_, time)| black_box(time))
}

/// Visits all records in the order of time; gives the number of frames.
fn replay(recording: &Recording) -> usize {
    let mut frames = 0;
    let end = Replay::new(recording).for_each(|_, _, record| {
        if let Record::Sample(sample) = record {
            frames += sample.callchain.len();
        }
    });
    assert!(end.stopped_by.is_none());
    frames
}

/// Numbers code addresses, of which a thousand differ; gives how many those are.
fn intern_addresses() -> usize {
    let mut interner = CodeInterner::default();
    for number in 0..SAMPLES {
        let address = 0x1000 + number * 0x9e37 % 1000 * 16;
        black_box(interner.intern(CodeAddress { module: ModuleId(0), address, kernel: false }));
    }
    interner.len()
}

/// Analyzes a recording on one CPU, with call stacks or without; gives the number of different stacks.
fn stacks(recording: &Recording, stacks: bool) -> usize {
    let dimensions = Dimensions { stacks, threads: false, cpus: false };
    let options = Options { dimensions, threads: Some(1), ..Options::default() };
    analyze(recording, &options).stacks.len()
}

fn merging(criterion: &mut Criterion) {
    let recording = Recording::from_bytes(plain(0).build()).expect("sound");
    let mut group = criterion.benchmark_group("merge");
    group.throughput(Throughput::Elements(SAMPLES));
    for rings in [1, 2, 64] {
        group.bench_function(BenchmarkId::new("rings", rings), |b| b.iter(|| merge(black_box(rings))));
    }
    group.bench_function("replay of 2 rings", |b| b.iter(|| replay(&recording)));
    group.finish();
}

fn interning(criterion: &mut Criterion) {
    let recordings = [("few stacks", plain(0)), ("a quarter new", plain(4))]
        .map(|(kind, file)| (kind, Recording::from_bytes(file.build()).expect("sound")));
    let mut group = criterion.benchmark_group("intern");
    group.throughput(Throughput::Elements(SAMPLES));
    group.bench_function("addresses", |b| b.iter(intern_addresses));
    for (kind, recording) in &recordings {
        group.bench_function(BenchmarkId::new("without stacks", kind), |b| {
            b.iter(|| stacks(recording, false))
        });
        group.bench_function(BenchmarkId::new("stacks", kind), |b| b.iter(|| stacks(recording, true)));
    }
    group.finish();
}

fn decoding(criterion: &mut Criterion) {
    let plain = plain(0);
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

criterion_group!(benches, decoding, merging, interning);
criterion_main!(benches);
