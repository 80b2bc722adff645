//! The last phase of a recording: its file gets its features, and what it was is summed up.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use perf_data::Features;
use perf_data::writer::PerfDataWriter;

use crate::machine::Roots;
use crate::process::clocks::monotonic_now;
use crate::record::census::Census;
use crate::record::description::Description;
use crate::record::host;
use crate::record::kernel_state;
use crate::record::recorder::Recorded;
use crate::record::summary::Summary;
use crate::record::tracing_data;
use crate::units::Timestamp;

/// Closes the file, readable whatever went wrong, and waits for the program, should it still run.
pub fn close(
    recorded: Recorded,
    description: Description,
    started: Timestamp,
    path: &Path,
    roots: &Roots,
) -> Summary {
    let Recorded { outcome, sampling, energy, totals, drain, stop, failure } = recorded;
    let census = drain.census();
    let of_kernel = if sampling.exclude_kernel { Vec::new() } else { kernel_state::build_ids(roots) };
    let features = Features {
        build_ids: of_kernel.into_iter().chain(drain.build_ids()).collect(),
        sample_times: Some((started, monotonic_now())),
        tracing_data: tracing_data::collect(roots, sampling.events.iter().map(|event| &event.spec)),
        compression: drain.compression(),
        ..host::features(roots, &description.metadata, description.clock)
    };
    let Census { samples, lost, throttled, .. } = *census;
    let mut warnings = description.warnings;
    let names: Vec<&str> = sampling.events.iter().map(|event| event.spec.name.as_str()).collect();
    warnings.extend(totals.warnings(&names));
    if throttled > 0 {
        warnings.push(format!(
            "the kernel held back events {throttled} times, since they came too often; lower the rate (-F, -c)"
        ));
    }
    let (file_size, finished) = finish_file(drain.into_writer(monotonic_now()), &features);
    // The program may go on for long, and nothing is counted any more.
    drop(sampling);
    Summary {
        meters: description.metadata.meters,
        outcome: stop.wait_for_program(outcome),
        samples,
        lost,
        throttled,
        energy,
        file_size,
        output: path.to_owned(),
        warnings,
        failure: failure.or(finished.err()),
    }
}

/// Writes the features, and leaves the file without them if that fails. Gives the file's size; `NotFound` is a file that
/// somebody removed meanwhile.
fn finish_file(writer: PerfDataWriter<File>, features: &Features) -> (u64, io::Result<()>) {
    let data_end = writer.data_end();
    let finish = || {
        let file = writer.get_ref().try_clone()?;
        // A failed write may have left a part of its records, which also takes the features' room.
        file.set_len(data_end)?;
        match writer.finish(features) {
            Ok(file) => match file.metadata()? {
                removed if removed.nlink() == 0 => Err(io::ErrorKind::NotFound.into()),
                kept => Ok(kept.len()),
            },
            Err(error) => {
                // Readers of a recording without features go on to the end of the file.
                file.set_len(data_end)?;
                Err(error)
            }
        }
    };
    match finish() {
        Ok(size) => (size, Ok(())),
        Err(error) => (data_end, Err(error)),
    }
}
