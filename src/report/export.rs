//! The formats of other tools, as one list: `eprof export --format`.
//!
//! **To add a format**, write a file beside this one with a type that implements [`Exporter`], and put it into
//! [`EXPORTERS`]. The command line, its help and the tests that try every format follow from the list. (Only an
//! energy-weighted perf.data is not in it: it is written from the recording itself, sample by sample, by
//! [`perf_data`](super::perf_data).)

pub use super::exporter::{Exported, Exporter};
use super::firefox::Firefox;
use super::folded::Collapsed;
pub use super::otlp::Otlp;
use super::pprof::Pprof;
use super::speedscope::Speedscope;

/// All formats but the energy-weighted perf.data.
pub static EXPORTERS: [&dyn Exporter; 5] = [&Collapsed, &Speedscope, &Pprof, &Firefox, &Otlp];

#[cfg(test)]
mod tests {
    use super::super::fixture::{exported, sample_profile};
    use super::super::tree::TreeOptions;
    use super::*;

    #[test]
    fn every_format_has_a_name_of_its_own_and_writes_something_else() {
        let (profile, symbols) = sample_profile();
        let options = TreeOptions::default();
        let exported = exported(&profile, &symbols, &options);
        let written = EXPORTERS.map(|exporter| {
            let mut out = Vec::new();
            exporter.write(&exported, &mut out).expect("a profile with joules");
            assert!(!out.is_empty() && !exporter.about().is_empty(), "{}", exporter.name());
            (exporter.name(), out)
        });
        for (index, (name, out)) in written.iter().enumerate() {
            assert!(written[..index].iter().all(|(other, bytes)| other != name && bytes != out), "{name}");
        }
    }
}
