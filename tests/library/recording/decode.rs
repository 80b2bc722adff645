//! Fields of samples and of the kernel's other records, in both byte orders.

use eprof::units::Timestamp;
use eprof_testbed::recording_builder::{Bytes, Event, File};
use perf_data::attr::{EventAttr, flag};
use perf_data::format::{branch_sample_type, misc, read_format, record_type, sample_type};
use perf_data::record::{CpuMode, EventIndex, FileIdentity, ReadValue, Record, RecordContext, TaskChange};
use perf_data::{ByteOrder, PerfData, ReadError};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];
const BASIC: u64 = sample_type::IP | sample_type::TID | sample_type::TIME | sample_type::CPU;

fn event(sample_type: u64, attr: EventAttr) -> Event {
    Event { attr: EventAttr { sample_type, ..attr }, ids: vec![], name: "cycles" }
}

/// Builds a recording of one record and hands what is decoded of it to `check`.
fn with_record(
    order: ByteOrder,
    event: Event,
    (kind, bits): (u32, u16),
    body: impl Fn(Bytes) -> Bytes,
    check: impl Fn(RecordContext, Record<'_>),
) {
    let mut file = File::new(vec![event]).of_order(order);
    file.record(kind, bits, &body(file.bytes()).bytes);
    let recording = PerfData::from_bytes(file.build()).expect("a sound file");
    assert_eq!(recording.byte_order(), order);
    let mut records = recording.records();
    let (_, context, record) = records.next().expect("a sound record").expect("one record");
    check(context, record);
    assert!(records.next().expect("no error").is_none());
}

#[test]
fn every_field_of_a_sample_is_found() {
    let fields = BASIC
        | sample_type::IDENTIFIER
        | sample_type::ADDR
        | sample_type::ID
        | sample_type::STREAM_ID
        | sample_type::PERIOD
        | sample_type::READ
        | sample_type::CALLCHAIN
        | sample_type::RAW
        | sample_type::BRANCH_STACK
        | sample_type::REGS_USER
        | sample_type::STACK_USER
        | sample_type::WEIGHT
        | sample_type::DATA_SRC
        | sample_type::TRANSACTION
        | sample_type::REGS_INTR
        | sample_type::PHYS_ADDR
        | sample_type::AUX
        | sample_type::CGROUP
        | sample_type::DATA_PAGE_SIZE
        | sample_type::CODE_PAGE_SIZE;
    let attr = EventAttr {
        read_format: read_format::GROUP | read_format::ID | read_format::TOTAL_TIME_ENABLED,
        branch_sample_type: branch_sample_type::HW_INDEX | branch_sample_type::COUNTERS,
        sample_regs_user: 0b1000_0010,
        sample_regs_intr: 0b111,
        ..EventAttr::default()
    };
    for order in ORDERS {
        let body = |bytes: Bytes| {
            bytes
                .u64s(&[77, 0x401000])
                .u32(10)
                .u32(11)
                .u64s(&[5_000_000_000, 0xdada, 77, 78])
                .u32(3)
                .u32(0)
                .u64(1234)
                // READ of a group of two: number, time enabled, then value and id of each
                .u64s(&[2, 900, 100, 77, 200, 79])
                // CALLCHAIN
                .u64s(&[3, 0xffff_ffff_ffff_fe00, 0x401000, 0x402000])
                // RAW
                .u32(4)
                .raw(b"rawd")
                // BRANCH_STACK: number, hardware index, branches, counters
                .u64s(&[1, 99, 0xaaa, 0xbbb, 0xccc, 0xddd])
                // REGS_USER: 64-bit ABI, registers 1 and 7
                .u64s(&[2, 0x11, 0x77])
                // STACK_USER: room for 8 bytes, 5 of them filled
                .u64(8)
                .raw(b"stack\0\0\0")
                .u64(5)
                // WEIGHT, DATA_SRC, TRANSACTION, REGS_INTR, PHYS_ADDR, CGROUP, page sizes, AUX
                .u64s(&[1, 2, 3, 2, 4, 5, 6, 7, 8, 9, 10])
                .u64(3)
                .raw(b"aux")
        };
        with_record(
            order,
            event(fields, attr),
            (record_type::SAMPLE, misc::USER),
            body,
            |context, record| {
                let expected = RecordContext {
                    time: Some(Timestamp::from_nanos(5_000_000_000)),
                    pid: Some(10),
                    tid: Some(11),
                    cpu: Some(3),
                    event: Some(EventIndex(0)),
                };
                assert_eq!(context, expected);
                let Record::Sample(sample) = record else { panic!("no sample: {record:?}") };
                assert_eq!((sample.ip, sample.address), (Some(0x401000), Some(0xdada)));
                assert_eq!((sample.mode, sample.period), (CpuMode::User, Some(1234)));
                let words: Vec<u64> = [2u64, 900, 100, 77, 200, 79].to_vec();
                assert_eq!(
                    sample.read,
                    words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
                );
                let chain: Vec<u64> = sample.callchain.entries().collect();
                assert_eq!(chain, [0xffff_ffff_ffff_fe00, 0x401000, 0x402000]);
                assert_eq!(sample.raw, b"rawd");
                let branches: Vec<_> = sample.branch_stack.entries().map(|branch| branch.from).collect();
                assert_eq!(branches, [0xaaa]);
                assert_eq!(sample.branch_stack.calls().len(), 0, "nobody asked for calls alone");
                let registers = sample.user_registers.expect("recorded");
                assert!(registers.is_64bit);
                assert_eq!(
                    (registers.get(1), registers.get(7), registers.get(2)),
                    (Some(0x11), Some(0x77), None)
                );
                assert_eq!(sample.user_stack, b"stack");
            },
        );
    }
}

#[test]
fn a_kernel_thread_has_no_user_registers_and_no_stack() {
    let fields = sample_type::REGS_USER | sample_type::STACK_USER | sample_type::WEIGHT_STRUCT;
    let attr = EventAttr { sample_regs_user: 0xff, ..EventAttr::default() };
    for order in ORDERS {
        let body = |bytes: Bytes| bytes.u64s(&[0, 0, 4]);
        with_record(order, event(fields, attr), (record_type::SAMPLE, misc::KERNEL), body, |_, record| {
            let Record::Sample(sample) = record else { panic!("no sample: {record:?}") };
            assert_eq!((sample.user_registers, sample.user_stack), (None, &b""[..]));
            assert_eq!(sample.mode, CpuMode::Kernel);
        });
    }
}

#[test]
fn a_period_that_is_not_recorded_is_the_attributes() {
    let fixed = EventAttr { sample_period: 4000, ..EventAttr::default() };
    let frequency = EventAttr { flags: flag::FREQ, ..fixed };
    for (attr, expected) in [(fixed, Some(4000)), (frequency, None)] {
        let body = |bytes: Bytes| bytes.u64(1);
        let sample = (record_type::SAMPLE, 0);
        with_record(ByteOrder::Little, event(sample_type::IP, attr), sample, body, |context, record| {
            let Record::Sample(sample) = record else { panic!("no sample: {record:?}") };
            assert_eq!(sample.period, expected);
            assert_eq!((context.time, context.cpu), (None, None));
        });
    }
}

/// An event whose other records carry a trailer: thread, time, CPU.
fn with_trailer() -> Event {
    event(BASIC, EventAttr { flags: flag::SAMPLE_ID_ALL, ..EventAttr::default() })
}

fn trailer(bytes: Bytes) -> Bytes {
    bytes.u32(20).u32(21).u64(6_000).u32(2).u32(0)
}

fn trailer_context() -> RecordContext {
    RecordContext {
        time: Some(Timestamp::from_nanos(6_000)),
        pid: Some(20),
        tid: Some(21),
        cpu: Some(2),
        event: Some(EventIndex(0)),
    }
}

fn check_kernel_record(kind_and_misc: (u32, u16), body: impl Fn(Bytes) -> Bytes, check: impl Fn(Record<'_>)) {
    for order in ORDERS {
        with_record(
            order,
            with_trailer(),
            kind_and_misc,
            |bytes| trailer(body(bytes)),
            |context, record| {
                assert_eq!(context, trailer_context());
                check(record);
            },
        );
    }
}

#[test]
fn mappings_of_both_generations() {
    let body = |bytes: Bytes| bytes.u32(7).u32(8).u64s(&[0x1000, 0x2000, 0x3000]).text("/bin/true");
    check_kernel_record((record_type::MMAP, misc::USER | misc::MMAP_DATA), body, |record| {
        let Record::Mmap(map) = record else { panic!("no mapping: {record:?}") };
        assert_eq!(
            (map.pid, map.tid, map.address, map.length, map.file_offset),
            (7, 8, 0x1000, 0x2000, 0x3000)
        );
        assert_eq!((map.path, map.is_data, map.mode), (&b"/bin/true"[..], true, CpuMode::User));
        assert_eq!((map.identity, map.protection), (FileIdentity::Unknown, None));
    });
    let body = |bytes: Bytes| {
        let bytes = bytes.u32(7).u32(8).u64s(&[0x1000, 0x2000, 0x3000]);
        bytes.u32(8).u32(1).u64(4711).u64(2).u32(5).u32(2).text("/usr/lib/libc.so.6")
    };
    check_kernel_record((record_type::MMAP2, misc::KERNEL), body, |record| {
        let Record::Mmap(map) = record else { panic!("no mapping: {record:?}") };
        assert_eq!(map.identity, FileIdentity::Inode { major: 8, minor: 1, inode: 4711, generation: 2 });
        assert_eq!((map.protection, map.path, map.is_data), (Some(5), &b"/usr/lib/libc.so.6"[..], false));
    });
}

/// What a mapping whose bit tells of a build-id is taken for, where such were asked for or not.
fn check_identity(asked: bool, place: impl Fn(Bytes) -> Bytes, expected: FileIdentity<'_>) {
    let flags = flag::SAMPLE_ID_ALL | if asked { flag::BUILD_ID } else { 0 };
    for order in ORDERS {
        let event = event(BASIC, EventAttr { flags, ..EventAttr::default() });
        let body = |bytes: Bytes| {
            let bytes = bytes.u32(7).u32(8).u64s(&[0x1000, 0x2000, 0x3000]);
            trailer(place(bytes).u32(5).u32(2).text("/usr/lib/x.so"))
        };
        let kind = (record_type::MMAP2, misc::USER | misc::MMAP_BUILD_ID);
        with_record(order, event, kind, body, |_, record| {
            let Record::Mmap(map) = record else { panic!("no mapping: {record:?}") };
            assert_eq!(map.identity, expected, "asked: {asked}");
            assert_eq!((map.address, map.protection, map.path), (0x1000, Some(5), &b"/usr/lib/x.so"[..]));
        });
    }
}

#[test]
fn mappings_have_the_build_ids_that_were_asked_for() {
    let short = |bytes: Bytes| bytes.raw(&[3, 0, 0, 0]).raw(&[0xab; 20]);
    check_identity(true, short, FileIdentity::BuildId(&[0xab; 3]));
    // A tool that writes them in afterwards does not change the attribute.
    let whole = |bytes: Bytes| bytes.raw(&[20, 0, 0, 0]).raw(&[0xab; 20]);
    check_identity(false, whole, FileIdentity::BuildId(&[0xab; 20]));
    let sixteen = |bytes: Bytes| bytes.raw(&[16, 0, 0, 0]).raw(&[0xab; 16]).raw(&[0; 4]);
    check_identity(false, sixteen, FileIdentity::BuildId(&[0xab; 16]));
}

#[test]
fn a_bit_that_another_recorders_wish_left_makes_no_build_id_of_an_inode() {
    for (major, inode) in [(8, 4711), (259, 0), (0, u64::MAX)] {
        let place = |bytes: Bytes| bytes.u32(major).u32(1).u64(inode).u64(2);
        check_identity(false, place, FileIdentity::Inode { major, minor: 1, inode, generation: 2 });
    }
}

#[test]
fn names_births_and_deaths_of_tasks() {
    let body = |bytes: Bytes| bytes.u32(7).u32(8).text("worker");
    check_kernel_record((record_type::COMM, misc::COMM_EXEC), body, |record| {
        assert_eq!(record, Record::Comm { pid: 7, tid: 8, name: b"worker", exec: true });
    });
    let change = TaskChange { pid: 7, tid: 8, parent_pid: 5, parent_tid: 6 };
    let body = |bytes: Bytes| bytes.u32(7).u32(5).u32(8).u32(6).u64(6_000);
    check_kernel_record((record_type::FORK, 0), body, |record| assert_eq!(record, Record::Fork(change)));
    check_kernel_record((record_type::EXIT, 0), body, |record| assert_eq!(record, Record::Exit(change)));
}

#[test]
fn what_the_kernel_says_about_counting() {
    let body = |bytes: Bytes| bytes.u64s(&[1, 42]);
    check_kernel_record((record_type::LOST, 0), body, |record| {
        assert_eq!(record, Record::Lost { count: 42 })
    });
    let body = |bytes: Bytes| bytes.u64s(&[43]);
    check_kernel_record((record_type::LOST_SAMPLES, 0), body, |record| {
        assert_eq!(record, Record::Lost { count: 43 });
    });
    check_kernel_record((record_type::LOST_SAMPLES, misc::LOST_SAMPLES_BPF), body, |record| {
        assert_eq!(record, Record::Other(record_type::LOST_SAMPLES));
    });
    let body = |bytes: Bytes| bytes.u64s(&[6_000, 1, 1]);
    check_kernel_record((record_type::THROTTLE, 0), body, |record| {
        assert_eq!(record, Record::Throttle(true))
    });
    check_kernel_record((record_type::UNTHROTTLE, 0), body, |record| {
        assert_eq!(record, Record::Throttle(false));
    });
    check_kernel_record(
        (record_type::SWITCH, misc::SWITCH_OUT),
        |bytes| bytes,
        |record| assert_eq!(record, Record::Switch { out: true }),
    );
    let body = |bytes: Bytes| bytes.u32(1).u32(2);
    check_kernel_record((record_type::SWITCH_CPU_WIDE, 0), body, |record| {
        assert_eq!(record, Record::Switch { out: false });
    });
    let body = |bytes: Bytes| bytes.u64(0xffff_ffff_c000_0000).u32(64).u16(1).u16(0).text("bpf_prog_1");
    check_kernel_record((record_type::KSYMBOL, 0), body, |record| {
        let address = 0xffff_ffff_c000_0000;
        assert_eq!(record, Record::Ksymbol { address, length: 64, unregistered: false, name: b"bpf_prog_1" });
    });
    let body = |bytes: Bytes| bytes.u64(1 << 40).text("/a.slice");
    check_kernel_record((record_type::CGROUP, 0), body, |record| {
        assert_eq!(record, Record::Cgroup { id: 1 << 40, path: b"/a.slice" });
    });
    check_kernel_record(
        (record_type::NAMESPACES, 0),
        |bytes| bytes.u64s(&[1, 2]),
        |record| assert_eq!(record, Record::Other(record_type::NAMESPACES)),
    );
}

#[test]
fn counter_values_follow_the_read_format() {
    let read_format = read_format::TOTAL_TIME_RUNNING | read_format::ID | read_format::LOST;
    let mut event = with_trailer();
    event.attr.read_format = read_format;
    for order in ORDERS {
        let body = |bytes: Bytes| trailer(bytes.u32(7).u32(8).u64s(&[100, 90, 5, 1]));
        with_record(order, event.clone(), (record_type::READ, 0), body, |_, record| {
            let value = ReadValue {
                value: 100,
                time_enabled: None,
                time_running: Some(90),
                id: Some(5),
                lost: Some(1),
            };
            assert_eq!(record, Record::Read { pid: 7, tid: 8, value });
        });
    }
}

#[test]
fn a_record_that_the_recorder_made_up_says_nothing_of_time_and_place() {
    let body = |bytes: Bytes| bytes.u32(7).u32(7).text("init").u64s(&[0, 0, 0]);
    with_record(ByteOrder::Little, with_trailer(), (record_type::COMM, 0), body, |context, record| {
        assert_eq!(context, RecordContext::default());
        assert_eq!(record, Record::Comm { pid: 7, tid: 7, name: b"init", exec: false });
    });
}

#[test]
fn without_trailers_births_still_tell_their_time() {
    let body = |bytes: Bytes| bytes.u32(7).u32(5).u32(8).u32(6).u64(6_000);
    let event = event(BASIC, EventAttr::default());
    with_record(ByteOrder::Little, event, (record_type::FORK, 0), body, |context, record| {
        assert_eq!(context.time, Some(Timestamp::from_nanos(6_000)));
        assert!(matches!(record, Record::Fork(_)));
    });
}

/// Two events of different fields, told apart by `id_field`.
fn two_events(id_field: u64) -> [Event; 2] {
    let attr = |fields| EventAttr {
        sample_type: fields | id_field,
        flags: flag::SAMPLE_ID_ALL,
        sample_period: 1,
        ..EventAttr::default()
    };
    [
        Event { attr: attr(sample_type::IP | sample_type::TIME), ids: vec![501, 502], name: "cycles" },
        Event {
            attr: attr(sample_type::IP | sample_type::TIME | sample_type::CALLCHAIN),
            ids: vec![601],
            name: "instructions",
        },
    ]
}

#[test]
fn events_are_told_apart_by_either_kind_of_id() {
    for order in ORDERS {
        for id_field in [sample_type::IDENTIFIER, sample_type::ID] {
            let mut file = File::new(two_events(id_field).into()).of_order(order);
            let fixed = |file: &File, id: u64| match id_field {
                sample_type::IDENTIFIER => file.bytes().u64s(&[id, 0x401000, 1_000]),
                _ => file.bytes().u64s(&[0x401000, 1_000, id]),
            };
            let plain = fixed(&file, 502).bytes;
            file.record(record_type::SAMPLE, 0, &plain);
            let with_chain = fixed(&file, 601).u64s(&[1, 0x401000]).bytes;
            file.record(record_type::SAMPLE, 0, &with_chain);
            let unknown = fixed(&file, 999).bytes;
            file.record(record_type::SAMPLE, 0, &unknown);
            let lost = file.bytes().u64s(&[601, 4]).u64s(&[2_000, 601]).bytes;
            file.record(record_type::LOST, 0, &lost);

            let recording = PerfData::from_bytes(file.build()).expect("a sound file");
            let mut records = recording.records();
            let mut seen = Vec::new();
            while let Some((_, context, record)) = records.next().expect("sound records") {
                let depth = match record {
                    Record::Sample(sample) => sample.callchain.len() as u64,
                    Record::Lost { count } => count,
                    other => panic!("unexpected {other:?}"),
                };
                seen.push((context.event.map(|event| event.0), depth));
            }
            assert_eq!(seen, [(Some(0), 0), (Some(1), 1), (None, 0), (Some(1), 4)]);
        }
    }
}

#[test]
fn what_a_counter_lost_in_all_is_told_apart_from_what_was_told_before() {
    let mut file = File::new(two_events(sample_type::ID).into());
    // A thread, time and CPU of which nothing is known, and the counter.
    let in_all = |id| [43, 0, 0, id];
    for id in [502, 601] {
        let body = file.bytes().u64s(&in_all(id)).bytes;
        file.record(record_type::LOST_SAMPLES, 0, &body);
    }
    let recording = PerfData::from_bytes(file.build()).expect("a sound file");
    let mut records = recording.records();
    for event in 0..2 {
        let (_, context, record) = records.next().expect("sound").expect("as many");
        assert_eq!(context, RecordContext { event: Some(EventIndex(event)), ..RecordContext::default() });
        assert_eq!(record, Record::LostInAll { count: 43 });
    }
}

#[test]
fn events_that_cannot_be_told_apart_are_refused() {
    let file = File::new(two_events(0).into());
    let refused = PerfData::from_bytes(file.build());
    assert!(matches!(refused, Err(ReadError::MixedLayouts)), "{refused:?}");
}
