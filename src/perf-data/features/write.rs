//! Writing the sections.

use super::{BuildId, ClockPair, Compression, CpuCount, EventGroup, Features, NumaNode};
use crate::event::{EventDesc, encoded_attrs};
use crate::format::{BUILD_ID_SIZE, feature, misc, record_type, sample_type};

/// perf pads texts to a multiple of this.
const TEXT_ALIGNMENT: usize = 64;

impl Features {
    /// The sections in the order of their numbers.
    pub(crate) fn sections(&self, events: &[EventDesc]) -> Vec<(u32, Vec<u8>)> {
        let text = |number, value: &Option<String>| value.as_ref().map(|value| (number, text_section(value)));
        let has_branch_stacks = !self.hides_branch_stacks
            && events.iter().any(|event| event.attr.samples(sample_type::BRANCH_STACK));
        let mut sections: Vec<(u32, Vec<u8>)> = [
            text(feature::HOSTNAME, &self.hostname),
            text(feature::OSRELEASE, &self.os_release),
            text(feature::VERSION, &self.version),
            text(feature::ARCH, &self.arch),
            self.cpus
                .map(|CpuCount { available, online }| (feature::NRCPUS, numbers_u32(&[available, online]))),
            text(feature::CPUDESC, &self.cpu_description),
            text(feature::CPUID, &self.cpu_id),
            self.total_memory_kb.map(|kb| (feature::TOTAL_MEM, kb.to_le_bytes().to_vec())),
            non_empty(feature::CMDLINE, &self.command_line, texts),
            Some((feature::EVENT_DESC, event_descriptions(events))),
            has_branch_stacks.then(|| (feature::BRANCH_STACK, Vec::new())),
            non_empty(feature::NUMA_TOPOLOGY, &self.numa_nodes, numa_nodes),
            non_empty(feature::GROUP_DESC, &self.groups, groups),
            non_empty(feature::PMU_MAPPINGS, &self.pmu_names, pmus),
            non_empty(feature::BUILD_ID, &self.build_ids, build_ids),
            non_empty(feature::TRACING_DATA, &self.tracing_data, <[u8]>::to_vec),
            self.sample_times.map(|(first, last)| {
                (feature::SAMPLE_TIME, [first.as_nanos(), last.as_nanos()].map(u64::to_le_bytes).concat())
            }),
            self.clock_resolution.map(|it| (feature::CLOCKID, it.as_nanos().to_le_bytes().to_vec())),
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

fn numa_nodes(nodes: &[NumaNode]) -> Vec<u8> {
    let mut out = numbers_u32(&[nodes.len() as u32]);
    for node in nodes {
        out.extend(node.node.to_le_bytes());
        out.extend(node.total_kb.to_le_bytes());
        out.extend(node.free_kb.to_le_bytes());
        push_text(node.cpus.as_bytes(), &mut out);
    }
    out
}

fn groups(groups: &[EventGroup]) -> Vec<u8> {
    let mut out = numbers_u32(&[groups.len() as u32]);
    for group in groups {
        push_text(group.name.as_bytes(), &mut out);
        out.extend(numbers_u32(&[group.leader, group.members]));
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
        let id = &build_id.id[..build_id.id.len().min(BUILD_ID_SIZE)];
        out.extend(record_type::HEADER_BUILD_ID.to_le_bytes());
        out.extend((build_id.mode.bits() | misc::BUILD_ID_SIZE).to_le_bytes());
        out.extend(size.to_le_bytes());
        out.extend(build_id.pid.to_le_bytes());
        out.extend(id);
        out.resize(out.len() + BUILD_ID_SIZE - id.len(), 0);
        out.extend([id.len() as u8, 0, 0, 0]);
        out.extend(&build_id.path);
        out.resize(out.len() + padded - build_id.path.len(), 0);
    }
    out
}

fn clock_data(clock: ClockPair) -> Vec<u8> {
    const VERSION: u32 = 1;
    let mut out = numbers_u32(&[VERSION, clock.clockid]);
    out.extend(clock.wall_clock_ns.to_le_bytes());
    out.extend(clock.clock_ns.to_le_bytes());
    out
}

fn compression(compression: Compression) -> Vec<u8> {
    const VERSION: u32 = 1;
    let Compression { kind, level, ratio, ring_size } = compression;
    numbers_u32(&[VERSION, kind, level, ratio, ring_size])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::ByteOrder;
    use crate::record::CpuMode;
    use crate::time::{Nanoseconds, Timestamp};

    fn full() -> Features {
        let text = |text: &str| Some(text.to_owned());
        Features {
            hides_branch_stacks: false,
            hostname: text("host"),
            os_release: text("6.18.0"),
            version: text("a recorder 1.0"),
            arch: text("x86_64"),
            cpus: Some(CpuCount { available: 8, online: 4 }),
            cpu_description: text("Some CPU"),
            cpu_id: text("GenuineIntel,6,42,7"),
            total_memory_kb: Some(16_000_000),
            command_line: vec!["perf".into(), "record".into(), "a b".into()],
            event_descriptions: Vec::new(),
            numa_nodes: vec![NumaNode { node: 1, total_kb: 1000, free_kb: 10, cpus: "0-7".into() }],
            pmu_names: vec![(4, "cpu".into()), (9, "power".into())],
            groups: vec![EventGroup { name: "{a,b}".into(), leader: 0, members: 2 }],
            build_ids: vec![
                BuildId::of_kernel(vec![7; 16], b"[kernel.kallsyms]".to_vec()),
                BuildId { mode: CpuMode::GuestUser, pid: 12, id: vec![1; 20], path: b"/bin/true".to_vec() },
            ],
            sample_times: Some((Timestamp::from_nanos(1), Timestamp::from_nanos(2))),
            clock_resolution: Some(Nanoseconds::from_nanos(1)),
            clock: Some(ClockPair { clockid: 1, wall_clock_ns: 5, clock_ns: 6 }),
            compression: Some(Compression { kind: Compression::ZSTD, level: 1, ratio: 5, ring_size: 4096 }),
            tracing_data: b"formats".to_vec(),
        }
    }

    #[test]
    fn every_feature_is_read_as_it_was_written() {
        let mut read = Features::default();
        for (number, section) in full().sections(&[]) {
            read.read_section(number, &section, ByteOrder::Little);
        }
        assert_eq!(read, full());
    }

    #[test]
    fn sections_come_in_the_order_of_their_numbers() {
        let numbers = |features: Features| -> Vec<u32> {
            features.sections(&[]).iter().map(|(number, _)| *number).collect()
        };
        let some = Features {
            hostname: Some("host".into()),
            command_line: vec!["perf".into(), "record".into()],
            build_ids: vec![BuildId::of_file(vec![1; 20], b"/bin/true".to_vec())],
            sample_times: Some((Timestamp::from_nanos(1), Timestamp::from_nanos(2))),
            ..Features::default()
        };
        assert_eq!(numbers(some), [2, 3, 11, 12, 21]);
        assert!(numbers(full()).is_sorted());
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
        let bytes = build_ids(&[BuildId::of_kernel(vec![7; 16], b"[kernel.kallsyms]".to_vec())]);
        assert_eq!(bytes.len(), 8 + 4 + 24 + 64);
        assert_eq!(bytes[4..6], 0x8001u16.to_le_bytes());
        assert_eq!(bytes[6..8], 100u16.to_le_bytes());
        assert_eq!(bytes[8..12], [0xff; 4]);
        assert_eq!(bytes[12..28], [7; 16]);
        assert_eq!(bytes[32], 16);
        assert_eq!(bytes[36..40], *b"[ker");
    }
}
