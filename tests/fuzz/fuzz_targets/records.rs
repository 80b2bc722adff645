//! Records behind a sound header, looked at twice: as they come, and again by their positions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perf_data::attr::{EventAttr, flag};
use perf_data::format::{branch_sample_type, read_format, sample_type};
use perf_data::{PerfData, RecordPosition};

const ENOUGH: usize = 10_000;

fuzz_target!(|data: &[u8]| {
    let recording = PerfData::from_bytes(file(data)).expect("a sound header");
    let decoder = recording.decoder();
    let mut records = recording.records();
    let mut held: Vec<(RecordPosition, String)> = Vec::new();
    for _ in 0..ENOUGH {
        match records.next_raw() {
            Ok(Some(raw)) => {
                let context = decoder.context(&raw);
                held.push((raw.position, format!("{:?}", decoder.decode(&raw, &context))));
            }
            Ok(None) | Err(_) => break,
        }
    }
    assert!(held.is_sorted_by(|(before, _), (after, _)| before < after), "positions do not rise");
    for (position, decoded) in &held {
        let raw = records.get(*position).expect("nothing was released");
        let context = decoder.context(&raw);
        assert_eq!(&format!("{:?}", decoder.decode(&raw, &context)), decoded);
    }
});

/// A file of four events told apart by ids 1 to 4, with samples of very different fields.
fn file(data: &[u8]) -> Vec<u8> {
    let common = sample_type::IDENTIFIER | sample_type::IP | sample_type::TID | sample_type::TIME;
    let fields = [
        sample_type::READ | sample_type::CALLCHAIN | sample_type::RAW | sample_type::BRANCH_STACK,
        sample_type::REGS_USER | sample_type::STACK_USER | sample_type::REGS_INTR | sample_type::AUX,
        sample_type::CPU | sample_type::PERIOD | sample_type::CALLCHAIN,
        sample_type::WEIGHT | sample_type::DATA_SRC | sample_type::PHYS_ADDR | sample_type::CGROUP,
    ];
    let attrs = fields.map(|fields| EventAttr {
        sample_type: common | fields,
        read_format: read_format::GROUP | read_format::ID | read_format::LOST,
        branch_sample_type: branch_sample_type::HW_INDEX | branch_sample_type::COUNTERS,
        sample_regs_user: 0xff0f,
        sample_regs_intr: 0x3,
        flags: flag::SAMPLE_ID_ALL,
        ..EventAttr::default()
    });
    let ids_at = 104u64;
    let attrs_at = ids_at + 8 * attrs.len() as u64;
    let entry = EventAttr::SIZE as u64 + 16;
    let data_at = attrs_at + entry * attrs.len() as u64;
    let mut file = b"PERFILE2".to_vec();
    let header = [104, entry, attrs_at, entry * attrs.len() as u64, data_at, data.len() as u64];
    header.iter().chain(&[0; 6]).for_each(|word| file.extend(word.to_le_bytes()));
    (1..=attrs.len() as u64).for_each(|id| file.extend(id.to_le_bytes()));
    for (index, attr) in attrs.iter().enumerate() {
        file.extend(attr.to_bytes());
        file.extend((ids_at + 8 * index as u64).to_le_bytes());
        file.extend(8u64.to_le_bytes());
    }
    file.extend(data);
    file
}
