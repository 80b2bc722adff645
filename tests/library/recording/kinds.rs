//! Kinds of recording: files, pipes, unfinished files; what they say about themselves.

use eprof::units::{Nanoseconds, Timestamp};
use eprof_testbed::recording_builder::{Event, File};
use perf_data::attr::{EventAttr, flag};
use perf_data::features::{BuildId, ClockPair, CpuCount, EventGroup, NumaNode};
use perf_data::format::{event_update, feature, misc, record_type, sample_type};
use perf_data::record::{CpuMode, Record};
use perf_data::{ByteOrder, PerfData, ReadError};

fn cpu_clock() -> Event {
    let attr = EventAttr {
        kind: 1,
        sample_type: sample_type::IP | sample_type::TIME | sample_type::IDENTIFIER,
        flags: flag::SAMPLE_ID_ALL | flag::EXCLUDE_GUEST,
        ..EventAttr::default()
    };
    Event { attr, ids: vec![31, 32], name: "my-clock" }
}

fn add_sample(file: &mut File, ip: u64, time: u64) {
    let body = file.bytes().u64s(&[31, ip, time]).bytes;
    file.record(record_type::SAMPLE, misc::USER, &body);
}

fn addresses(recording: &PerfData) -> Vec<u64> {
    let mut records = recording.records();
    let mut found = Vec::new();
    while let Some((_, _, record)) = records.next().expect("sound records") {
        if let Record::Sample(sample) = record {
            found.extend(sample.ip);
        }
    }
    found
}

fn file_with_features(order: ByteOrder) -> File {
    let mut file = File::new(vec![cpu_clock()]).of_order(order);
    add_sample(&mut file, 0x1000, 10);
    add_sample(&mut file, 0x2000, 20);
    let text = |text: &str| file.bytes().counted_text(text).bytes;
    let build_id_record = {
        let body = file.bytes().u32(u32::MAX).raw(&[0xcd; 20]).raw(&[16, 0, 0, 0]).text("/bin/app").bytes;
        file.record_bytes(0, misc::USER | misc::BUILD_ID_SIZE, &body)
    };
    file.features = vec![
        (feature::BUILD_ID, build_id_record),
        (feature::HOSTNAME, text("box")),
        (feature::OSRELEASE, text("6.18.0")),
        (feature::ARCH, text("x86_64")),
        (feature::NRCPUS, file.bytes().u32(8).u32(6).bytes),
        (feature::CPUDESC, text("Some CPU")),
        (feature::CPUID, text("GenuineIntel,6,42,7")),
        (feature::TOTAL_MEM, file.bytes().u64(16_000_000).bytes),
        (feature::CMDLINE, file.bytes().u32(2).counted_text("perf").counted_text("record").bytes),
        (feature::NUMA_TOPOLOGY, file.bytes().u32(1).u32(0).u64s(&[1_000, 500]).counted_text("0-7").bytes),
        (feature::PMU_MAPPINGS, file.bytes().u32(1).u32(9).counted_text("power").bytes),
        (feature::GROUP_DESC, file.bytes().u32(1).counted_text("{a,b}").u32(0).u32(2).bytes),
        (feature::SAMPLE_TIME, file.bytes().u64s(&[10, 20]).bytes),
        (feature::CLOCKID, file.bytes().u64(1).bytes),
        (feature::CLOCK_DATA, file.bytes().u32(1).u32(1).u64s(&[1_700_000_000_000_000_000, 5]).bytes),
    ];
    file
}

#[test]
fn features_are_read_in_files_and_pipes_of_both_orders() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let file = file_with_features(order);
        for bytes in [file.build(), file.build_pipe()] {
            let recording = PerfData::from_bytes(bytes).expect("sound");
            assert!(recording.is_complete());
            let features = recording.features();
            assert_eq!(features.hostname.as_deref(), Some("box"));
            assert_eq!(features.os_release.as_deref(), Some("6.18.0"));
            assert_eq!(features.arch.as_deref(), Some("x86_64"));
            assert_eq!(features.cpus, Some(CpuCount { available: 8, online: 6 }));
            assert_eq!(features.cpu_description.as_deref(), Some("Some CPU"));
            assert_eq!(features.cpu_id.as_deref(), Some("GenuineIntel,6,42,7"));
            assert_eq!(features.total_memory_kb, Some(16_000_000));
            assert_eq!(features.command_line, ["perf", "record"]);
            let node = NumaNode { node: 0, total_kb: 1_000, free_kb: 500, cpus: "0-7".to_owned() };
            assert_eq!(features.numa_nodes, [node]);
            assert_eq!(features.pmu_names, [(9, "power".to_owned())]);
            let group = EventGroup { name: "{a,b}".to_owned(), leader: 0, members: 2 };
            assert_eq!(features.groups, [group]);
            let (first, last) = (Timestamp::from_nanos(10), Timestamp::from_nanos(20));
            assert_eq!(features.sample_times, Some((first, last)));
            assert_eq!(features.clock_resolution, Some(Nanoseconds::from_nanos(1)));
            let wall_clock_ns = 1_700_000_000_000_000_000;
            assert_eq!(features.clock, Some(ClockPair { clockid: 1, wall_clock_ns, clock_ns: 5 }));
            let build_id =
                BuildId { mode: CpuMode::User, pid: -1, id: vec![0xcd; 16], path: b"/bin/app".to_vec() };
            assert_eq!(features.build_ids, [build_id]);
            assert_eq!(addresses(&recording), [0x1000, 0x2000]);
        }
    }
}

#[test]
fn names_come_from_the_description_an_update_or_the_encoding() {
    let mut file = File::new(vec![cpu_clock()]);
    add_sample(&mut file, 0x1000, 10);
    let described = PerfData::from_bytes(file.build()).expect("sound");
    assert_eq!(described.events()[0].name, "my-clock");

    let mut file = File::new(vec![cpu_clock()]);
    let update = file.bytes().u64(event_update::NAME).u64(32).text("renamed").bytes;
    file.record(record_type::EVENT_UPDATE, 0, &update);
    for bytes in [file.build_pipe(), file.build_unfinished()] {
        let updated = PerfData::from_bytes(bytes).expect("sound");
        assert_eq!(
            (updated.events()[0].name.as_str(), &updated.events()[0].ids[..]),
            ("renamed", &[31, 32][..])
        );
    }

    let unnamed = PerfData::from_bytes(File::new(vec![cpu_clock()]).build_pipe()).expect("sound");
    assert_eq!(unnamed.events()[0].name, "cpu-clock");
}

#[test]
fn build_ids_of_a_pipe_may_come_last() {
    let mut file = File::new(vec![cpu_clock()]);
    add_sample(&mut file, 0x1000, 10);
    let body = file.bytes().u32(u32::MAX).raw(&[0xcd; 20]).raw(&[0; 4]).text("[kernel.kallsyms]").bytes;
    file.record(record_type::HEADER_BUILD_ID, misc::KERNEL, &body);
    let recording = PerfData::from_bytes(file.build_pipe()).expect("sound");
    let build_ids = &recording.features().build_ids;
    assert_eq!((build_ids.len(), build_ids[0].id.len(), build_ids[0].mode), (1, 20, CpuMode::Kernel));
}

#[test]
fn bytes_that_follow_a_record_are_passed_over() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut file = File::new(vec![cpu_clock()]).of_order(order);
        add_sample(&mut file, 0x1000, 10);
        let trace = file.bytes().u64s(&[24, 0, 0, 0]).u32(0).u32(0).bytes;
        file.record(record_type::AUXTRACE, 0, &trace);
        file.data.extend([0xff; 24]);
        let formats = file.bytes().u32(16).bytes;
        file.record(record_type::HEADER_TRACING_DATA, 0, &formats);
        file.data.extend([0xee; 16]);
        add_sample(&mut file, 0x2000, 20);
        let recording = PerfData::from_bytes(file.build_pipe()).expect("sound");
        assert_eq!(addresses(&recording), [0x1000, 0x2000]);
        assert_eq!(recording.features().tracing_data, [0xee; 16]);
    }
}

#[test]
fn a_file_whose_recorder_was_killed_reads_to_its_end() {
    let mut file = File::new(vec![cpu_clock()]);
    (1..=5).for_each(|number| add_sample(&mut file, number * 0x1000, number));
    let bytes = file.build_unfinished();
    let recording = PerfData::from_bytes(bytes.clone()).expect("sound");
    assert!(!recording.is_complete());
    assert_eq!(addresses(&recording).len(), 5);

    // The header may hold the size of an earlier moment; without features it is not the last word.
    let mut earlier = bytes.clone();
    earlier[48..56].copy_from_slice(&64u64.to_le_bytes());
    let recording = PerfData::from_bytes(earlier).expect("sound");
    assert!(!recording.is_complete());
    assert_eq!(addresses(&recording).len(), 5);
}

#[test]
fn positions_lead_back_to_records() {
    let file = file_with_features(ByteOrder::Little);
    let recording = PerfData::from_bytes(file.build()).expect("sound");
    let mut records = recording.records();
    let mut positions = Vec::new();
    while let Some(raw) = records.next_raw().expect("sound") {
        positions.push(raw.position);
    }
    assert!(positions.is_sorted());
    let times: Vec<_> = positions
        .iter()
        .rev()
        .map(|&position| recording.decoder().context(&records.get(position).expect("held")).time)
        .collect();
    assert_eq!(times, [Some(Timestamp::from_nanos(20)), Some(Timestamp::from_nanos(10))]);
}

#[test]
fn other_files_are_refused_with_the_reason() {
    let refusal = |bytes: &[u8]| PerfData::from_bytes(bytes.to_vec()).expect_err("no recording");
    assert!(matches!(refusal(b""), ReadError::Empty { .. }));
    assert!(matches!(refusal(b"\x7fELF and so on, as programs begin"), ReadError::NotPerfData { .. }));
    assert!(matches!(refusal(b"PERFFILE\x68\0\0\0\0\0\0\0"), ReadError::Version1 { .. }));
    assert!(matches!(refusal(b"PERFILE2\x10\0\0\0\0\0\0\0"), ReadError::NoEvents));
    assert!(matches!(refusal(b"PERFILE2\x20\0\0\0\0\0\0\0"), ReadError::Header { offset: 8, .. }));
    assert!(matches!(refusal(b"PERFILE2\x68\0\0\0\0\0\0\0"), ReadError::HeaderCutOff { .. }));
    let folder = tempfile::tempdir().expect("a folder");
    let refused = PerfData::open(folder.path());
    assert!(matches!(refused, Err(ReadError::Folder { .. })), "{refused:?}");
    let refused = PerfData::open(&folder.path().join("absent"));
    assert!(matches!(refused, Err(ReadError::Open { .. })), "{refused:?}");
}
