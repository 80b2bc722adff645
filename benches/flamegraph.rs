//! What colors cost a flamegraph: 20,000 call paths of 4,000 functions, 8 to 48 frames deep, drawn by the kind of code, each
//! place by its own watts, and each place by what it has more than in another recording.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use eprof::analyze::{self, WattsRange};
use eprof::hardware::Method;
use eprof::profile::Profile;
use eprof::report::flamegraph::{Colors, FlamegraphOptions, write, write_difference};
use eprof::report::tree::{CallTree, TreeOptions};
use eprof::symbolize::Symbols;
use eprof::text_profile::{self, TextOptions};
use eprof::units::Watts;

const PATHS: u64 = 20_000;
const FUNCTIONS: u64 = 4_000;
const CPUS: u32 = 4;

/// Numbers without a pattern that the picture could profit from (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Samples as `perf script` prints them, the innermost frame first. Callers are fewer than what they call, so that paths have
/// much in common near their beginnings, as those of programs do.
fn recording(seed: u64) -> (Profile, Symbols) {
    let mut numbers = Numbers(seed);
    let mut text = String::new();
    for sample in 0..PATHS {
        let _ = writeln!(
            text,
            "app 1/1 [000] {}.{:06}: 1000000 cpu-clock: ",
            sample / 1000,
            sample % 1000 * 1000
        );
        for depth in (0..8 + numbers.below(40)).rev() {
            let function = numbers.below((1 << depth.min(11)).min(FUNCTIONS - 1)) + depth;
            let _ = writeln!(
                text,
                "\t{:x} module::inner::function_{function}+0x10 (/bin/app)",
                0x1000 * (function + 1)
            );
        }
        text.push('\n');
    }
    let read = text_profile::read(text.as_bytes(), TextOptions::default()).expect("samples");
    let mut profile = read.profile;
    let watts = WattsRange { idle: Watts::from_watts(2.0), busy: Watts::from_watts(20.0) };
    analyze::estimate(&mut profile, CPUS, watts);
    // Colors tell watts where these are measured and code differs in them.
    profile.domains.iter_mut().for_each(|domain| domain.info.method = Method::Measured);
    if let Some(division) = &mut profile.division {
        division.is_by_time = false;
    }
    for (joules, part) in profile.cell_joules.iter_mut().zip((1..=5).cycle()) {
        *joules = *joules * f64::from(part);
    }
    (profile, read.symbols)
}

fn colors(criterion: &mut Criterion) {
    let [older, newer] = [1, 2].map(recording);
    let tree = |(profile, symbols): &'static (Profile, Symbols)| {
        CallTree::new(profile, symbols, &TreeOptions::default()).expect("a tree")
    };
    let [older, newer] = [older, newer].map(|recording| tree(Box::leak(Box::new(recording))));
    let mut group = criterion.benchmark_group("flamegraph");
    group.throughput(Throughput::Elements(PATHS)).sample_size(20);
    for (name, colors) in [("kind", Colors::Kind), ("watts", Colors::Watts)] {
        let look = FlamegraphOptions { colors, ..FlamegraphOptions::default() };
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut svg = Vec::new();
                write(&newer, &look, &mut svg).expect("a vector takes all");
                black_box(svg)
            });
        });
    }
    group.bench_function("change", |bencher| {
        bencher.iter(|| {
            let mut svg = Vec::new();
            write_difference(&older, &newer, &FlamegraphOptions::default(), &mut svg)
                .expect("a vector takes all");
            black_box(svg)
        });
    });
    group.finish();
}

criterion_group!(benches, colors);
criterion_main!(benches);
