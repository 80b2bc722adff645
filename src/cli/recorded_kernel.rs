//! What a recording says of its kernel, by which symbols are known to be of that one.

use eprof::recording::Recording;
use eprof::symbolize::{KernelReference, SymbolizeOptions};
use perf_data::record::Record;

/// What the name of the kernel's own mapping begins with. The name of a symbol follows.
const KERNEL: &[u8] = b"[kernel.kallsyms]";
/// Where the kernel lies is told among the first records.
const FIRST_RECORDS: usize = 10_000;

/// Options that tell the recorded kernel, all else as usual.
pub fn options(recording: &Recording) -> SymbolizeOptions {
    let (features, metadata) = (recording.features(), recording.metadata());
    let kernel = features.build_ids.iter().find(|file| file.path.starts_with(KERNEL));
    SymbolizeOptions {
        kernel_build_id: kernel.map(|file| file.id.clone()),
        kernel_release: metadata
            .map(|metadata| metadata.machine.kernel.clone())
            .or_else(|| features.os_release.clone()),
        kernel_reference: reference(recording),
        ..SymbolizeOptions::default()
    }
}

/// Where a symbol of the kernel lay then: at the next boot it lies elsewhere.
fn reference(recording: &Recording) -> Option<KernelReference> {
    let mut records = recording.records();
    for _ in 0..FIRST_RECORDS {
        let (_, _, record) = records.next().ok()??;
        let Record::Mmap(mapping) = record else { continue };
        let Some(symbol) = mapping.path.strip_prefix(KERNEL).filter(|symbol| !symbol.is_empty()) else {
            continue;
        };
        // The offset is the symbol's address; the mapping of older recorders begins before it.
        let address = if mapping.file_offset == 0 { mapping.address } else { mapping.file_offset };
        // Where it is kept secret, it is told to be nowhere.
        let symbol = String::from_utf8_lossy(symbol).into_owned();
        return (address != 0).then_some(KernelReference { symbol, address });
    }
    None
}
