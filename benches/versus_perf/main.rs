//! eprof and perf on the same recordings and the same programs, in turns. Prints tables in Markdown.
//!
//! ```text
//! cargo bench --bench versus_perf                                 everything; takes an hour
//! cargo bench --bench versus_perf -- --samples 100000 --rounds 3  a few minutes
//! cargo bench --bench versus_perf -- --only overhead
//! cargo bench --bench versus_perf -- --only reading --samples 5000000 --repeat 10   49 million samples, 14 GB
//! ```
//!
//! Machines are shared and noisy: what counts is the ratio of medians of runs in turns (A B A B ...).

mod equal;
mod four_events;
mod limit;
mod overhead;
mod reading;
mod recordings;
mod run;
mod table;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Compare eprof with perf.
#[derive(Parser)]
struct Args {
    /// Samples of the recordings that are read.
    #[arg(long, value_delimiter = ',', default_values_t = [100_000, 1_000_000, 5_000_000])]
    samples: Vec<u64>,

    /// Read each of these recordings so many times over, as one: ten of 5 million samples instead of one of
    /// 50 million, which is twenty minutes of two busy CPUs.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,

    /// Runs of each program.
    #[arg(long, default_value_t = 5)]
    rounds: usize,

    /// Groups of runs with and without the recorder.
    #[arg(long, default_value_t = 40, value_parser = pairs)]
    pairs: usize,

    /// Samples per second at which recording is compared.
    #[arg(long, value_delimiter = ',', default_values_t = [1000, 5000, 10_000])]
    rates: Vec<u32>,

    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,

    /// Seconds after which a run is ended and counted as that long.
    #[arg(long, default_value_t = 100)]
    longest: u64,

    /// Where recordings are made and kept for the next time.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/target/versus-perf"))]
    folder: PathBuf,

    /// Cargo adds this.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Reports, flamegraphs and dumps of recordings of many samples.
    Reading,
    /// Lines and inlined frames of a large program.
    Lines,
    /// What recording costs.
    Overhead,
    /// What four events at the default rate cost.
    FourEvents,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    std::fs::create_dir_all(&args.folder)?;
    let is_wanted = |part| args.only.is_empty() || args.only.contains(&part);
    println!("{}", table::machine());
    if is_wanted(Part::Reading) {
        for &samples in &args.samples {
            reading::compare(&args.folder, samples, args.repeat, args.rounds, args.longest)?;
        }
    }
    if is_wanted(Part::Lines) {
        reading::compare_lines(&args.folder, args.rounds, args.longest)?;
    }
    if is_wanted(Part::Overhead) {
        overhead::compare(&args.folder, &args.rates, args.pairs)?;
    }
    if is_wanted(Part::FourEvents) {
        four_events::compare(&args.folder, args.pairs)?;
    }
    Ok(())
}

/// Fewer pairs than six say nothing of 95 %.
fn pairs(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&pairs| pairs >= 6).ok_or_else(|| "a number of at least 6".to_owned())
}
