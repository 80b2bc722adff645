//! The sections behind the data of a perf.data file: what perf calls features.

use crate::EventDesc;
use crate::format::{BUILD_ID_SIZE, feature, misc, record_type};
use crate::time::{Nanoseconds, Timestamp};
use crate::writer::encoded_attrs;

/// perf pads texts to a multiple of this.
const TEXT_ALIGNMENT: usize = 64;

/// What a recording says about itself behind its data. What is `None` or empty is left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trailer {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel release.
    pub os_release: Option<String>,
    /// Version of the program that recorded.
    pub version: Option<String>,
    /// Architecture.
    pub arch: Option<String>,
    /// CPUs present and CPUs online.
    pub cpus: Option<(u32, u32)>,
    /// Name of the CPU for people.
    pub cpu_description: Option<String>,
    /// Name of the CPU for model files.
    pub cpu_id: Option<String>,
    /// Memory of the machine in KiB.
    pub total_memory_kib: Option<u64>,
    /// Command line of the recorder.
    pub command_line: Vec<String>,
    /// The PMUs of the machine: type number and name.
    pub pmus: Vec<(u32, String)>,
    /// Build-ids of the files that were mapped.
    pub build_ids: Vec<BuildId>,
    /// Times of the first and the last sample.
    pub sample_times: Option<(Timestamp, Timestamp)>,
    /// The clock of the time stamps.
    pub clock: Option<ClockReference>,
    /// Samples carry branch stacks.
    pub has_branch_stacks: bool,
    /// Descriptions of the tracepoints, in the layout of the kernel's `trace.dat`.
    pub tracing_data: Vec<u8>,
    /// Compression of the data, if it is compressed.
    pub compression: Option<Compression>,
}

/// The build-id of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BuildId {
    /// The kernel or one of its modules, rather than a file mapped by a program.
    pub kernel: bool,
    /// At most 20 bytes.
    pub id: Vec<u8>,
    /// Path of the file as its mappings name it.
    pub path: Vec<u8>,
}

/// One instant on the recording's clock and on the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReference {
    /// Number of the clock (`CLOCK_MONOTONIC` is 1).
    pub clock_id: u32,
    /// Its resolution.
    pub resolution: Nanoseconds,
    /// The instant on this clock.
    pub time: Timestamp,
    /// The same instant in nanoseconds since 1970-01-01 UTC.
    pub unix_ns: u64,
}

/// How the data are compressed (zstd).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// Level.
    pub level: u32,
    /// Uncompressed size divided by compressed size, rounded.
    pub ratio: u32,
    /// Upper limit of what one compressed record holds.
    pub chunk: u32,
}

impl Trailer {
    /// The sections in the order of their numbers.
    pub(super) fn sections(&self, events: &[EventDesc]) -> Vec<(u32, Vec<u8>)> {
        let text = |number, value: &Option<String>| value.as_ref().map(|value| (number, text_section(value)));
        let mut sections: Vec<(u32, Vec<u8>)> = [
            text(feature::HOSTNAME, &self.hostname),
            text(feature::OSRELEASE, &self.os_release),
            text(feature::VERSION, &self.version),
            text(feature::ARCH, &self.arch),
            self.cpus.map(|(present, online)| (feature::NRCPUS, numbers_u32(&[present, online]))),
            text(feature::CPUDESC, &self.cpu_description),
            text(feature::CPUID, &self.cpu_id),
            self.total_memory_kib.map(|kib| (feature::TOTAL_MEM, kib.to_le_bytes().to_vec())),
            non_empty(feature::CMDLINE, &self.command_line, texts),
            Some((feature::EVENT_DESC, event_descriptions(events))),
            self.has_branch_stacks.then(|| (feature::BRANCH_STACK, Vec::new())),
            non_empty(feature::PMU_MAPPINGS, &self.pmus, pmus),
            non_empty(feature::BUILD_ID, &self.build_ids, build_ids),
            non_empty(feature::TRACING_DATA, &self.tracing_data, <[u8]>::to_vec),
            self.sample_times.map(|(first, last)| {
                (feature::SAMPLE_TIME, [first.as_nanos(), last.as_nanos()].map(u64::to_le_bytes).concat())
            }),
            self.clock.map(|clock| (feature::CLOCKID, clock.resolution.as_nanos().to_le_bytes().to_vec())),
            self.clock.map(|clock| (feature::CLOCK_DATA, clock_data(clock))),
            self.compression.map(|with| (feature::COMPRESSED, compression(with))),
        ]
        .into_iter()
        .flatten()
        .collect();
        sections.sort_by_key(|(number, _)| *number);
        sections
    }
}

fn non_empty<T>(number: u32, items: &[T], encode: fn(&[T]) -> Vec<u8>) -> Option<(u32, Vec<u8>)> {
    (!items.is_empty()).then(|| (number, encode(items)))
}

fn numbers_u32(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// perf's text: padded length, then the text with zeros up to it.
fn push_text(text: &[u8], out: &mut Vec<u8>) {
    let padded = (text.len() + 1).next_multiple_of(TEXT_ALIGNMENT);
    out.extend((padded as u32).to_le_bytes());
    out.extend(text);
    out.resize(out.len() + padded - text.len(), 0);
}

fn text_section(text: &String) -> Vec<u8> {
    let mut out = Vec::new();
    push_text(text.as_bytes(), &mut out);
    out
}

fn texts(texts: &[String]) -> Vec<u8> {
    let mut out = (texts.len() as u32).to_le_bytes().to_vec();
    texts.iter().for_each(|text| push_text(text.as_bytes(), &mut out));
    out
}

fn pmus(pmus: &[(u32, String)]) -> Vec<u8> {
    let mut out = (pmus.len() as u32).to_le_bytes().to_vec();
    for (number, name) in pmus {
        out.extend(number.to_le_bytes());
        push_text(name.as_bytes(), &mut out);
    }
    out
}

fn event_descriptions(events: &[EventDesc]) -> Vec<u8> {
    let attrs = encoded_attrs(events);
    let mut out = numbers_u32(&[events.len() as u32, attrs.first().map_or(0, Vec::len) as u32]);
    for (event, attr) in events.iter().zip(attrs) {
        out.extend(attr);
        out.extend((event.ids.len() as u32).to_le_bytes());
        push_text(event.name.as_bytes(), &mut out);
        event.ids.iter().for_each(|id| out.extend(id.to_le_bytes()));
    }
    out
}

/// Each is a record of its own kind: header, process, 20 bytes of id with their number, padded path.
fn build_ids(build_ids: &[BuildId]) -> Vec<u8> {
    const FIXED: usize = 8 + 4 + BUILD_ID_SIZE + 4;
    let mut out = Vec::new();
    for build_id in build_ids {
        let padded = (build_id.path.len() + 1).next_multiple_of(TEXT_ALIGNMENT);
        let Ok(size) = u16::try_from(FIXED + padded) else { continue };
        let mode = if build_id.kernel { misc::KERNEL } else { misc::USER };
        let id = &build_id.id[..build_id.id.len().min(BUILD_ID_SIZE)];
        out.extend(record_type::HEADER_BUILD_ID.to_le_bytes());
        out.extend((mode | misc::BUILD_ID_SIZE).to_le_bytes());
        out.extend(size.to_le_bytes());
        out.extend(u32::MAX.to_le_bytes());
        out.extend(id);
        out.resize(out.len() + BUILD_ID_SIZE - id.len(), 0);
        out.extend([id.len() as u8, 0, 0, 0]);
        out.extend(&build_id.path);
        out.resize(out.len() + padded - build_id.path.len(), 0);
    }
    out
}

fn clock_data(clock: ClockReference) -> Vec<u8> {
    const VERSION: u32 = 1;
    let mut out = numbers_u32(&[VERSION, clock.clock_id]);
    out.extend(clock.unix_ns.to_le_bytes());
    out.extend(clock.time.as_nanos().to_le_bytes());
    out
}

fn compression(compression: Compression) -> Vec<u8> {
    const VERSION: u32 = 1;
    const ZSTD: u32 = 1;
    numbers_u32(&[VERSION, ZSTD, compression.level, compression.ratio, compression.chunk])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_come_in_the_order_of_their_numbers() {
        let trailer = Trailer {
            hostname: Some("host".into()),
            command_line: vec!["perf".into(), "record".into()],
            build_ids: vec![BuildId { kernel: false, id: vec![1; 20], path: b"/bin/true".to_vec() }],
            sample_times: Some((Timestamp::from_nanos(1), Timestamp::from_nanos(2))),
            ..Trailer::default()
        };
        let numbers: Vec<u32> = trailer.sections(&[]).iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [2, 3, 11, 12, 21]);
    }

    #[test]
    fn text_is_padded_to_64_bytes_with_room_for_its_zero() {
        for (length, padded) in [(0, 64), (63, 64), (64, 128)] {
            let mut out = Vec::new();
            push_text(&vec![b'x'; length], &mut out);
            assert_eq!(out.len(), 4 + padded);
            assert_eq!(out[..4], (padded as u32).to_le_bytes());
        }
    }

    #[test]
    fn a_build_id_record_says_how_long_its_id_is() {
        let bytes =
            build_ids(&[BuildId { kernel: true, id: vec![7; 16], path: b"[kernel.kallsyms]".to_vec() }]);
        assert_eq!(bytes.len(), 8 + 4 + 24 + 64);
        assert_eq!(bytes[6..8], 100u16.to_le_bytes());
        assert_eq!(bytes[12..28], [7; 16]);
        assert_eq!(bytes[32], 16);
        assert_eq!(bytes[36..40], *b"[ker");
    }
}
