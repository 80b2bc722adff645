//! Where the fields of an event's samples lie, worked out once per attribute.

use crate::attr::{EventAttr, flag};
use crate::format::{read_format, sample_type};

/// A word that lies beyond every record: the field is not recorded.
const ABSENT: u16 = u16::MAX;

/// Bytes of a word.
const WORD: u16 = 8;

/// Fields at fixed places, counted in words of eight bytes, from the start of a sample's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleLayout {
    pub(crate) identifier: u16,
    pub(crate) ip: u16,
    pub(crate) tid: u16,
    pub(crate) time: u16,
    pub(crate) address: u16,
    pub(crate) id: u16,
    pub(crate) cpu: u16,
    pub(crate) period: u16,
    /// Words up to the first field of variable length.
    pub(crate) fixed_words: u16,
}

/// Fields of the `sample_id` that ends every record that is no sample, in words from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrailerLayout {
    pub(crate) tid: u16,
    pub(crate) time: u16,
    pub(crate) id: u16,
    pub(crate) cpu: u16,
    /// Its length in bytes; 0 if there is none.
    pub(crate) size: u16,
}

/// Everything that decoding a sample of an event needs to know of its attribute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventLayout {
    pub(crate) sample: SampleLayout,
    pub(crate) trailer: TrailerLayout,
    pub(crate) sample_type: u64,
    /// Bytes of a counter value that is not a group's.
    pub(crate) read_size: usize,
    /// Bytes before the values of a group, its count included, and bytes of each value.
    pub(crate) group_size: (usize, usize),
    pub(crate) reads_group: bool,
    pub(crate) read_format: u64,
    /// Words before the branches, and words for each branch behind them all.
    pub(crate) branch_words: (usize, usize),
    pub(crate) branches_are_calls: bool,
    pub(crate) user_registers: u64,
    pub(crate) interrupt_registers: u64,
    pub(crate) fixed_period: Option<u64>,
    /// Build-ids of mappings were asked for.
    pub(crate) asked_build_ids: bool,
}

impl EventLayout {
    pub(crate) fn new(attr: &EventAttr) -> Self {
        let words = |mask: u64| 8 * (attr.read_format & mask).count_ones() as usize;
        let times = read_format::TOTAL_TIME_ENABLED | read_format::TOTAL_TIME_RUNNING;
        let per_value = read_format::ID | read_format::LOST;
        Self {
            sample: SampleLayout::new(attr.sample_type),
            trailer: TrailerLayout::new(attr),
            sample_type: attr.sample_type,
            read_size: 8 + words(times | per_value),
            group_size: (8 + words(times), 8 + words(per_value)),
            reads_group: attr.reads_group(),
            read_format: attr.read_format,
            branch_words: attr.branch_words(),
            branches_are_calls: attr.branches_are_calls(),
            user_registers: attr.sample_regs_user,
            interrupt_registers: attr.sample_regs_intr,
            fixed_period: attr.fixed_period(),
            asked_build_ids: attr.has(flag::BUILD_ID),
        }
    }

    #[inline]
    pub(crate) fn samples(&self, field: u64) -> bool {
        self.sample_type & field != 0
    }

    /// The word of a sample's body that is the event's id, if it is recorded.
    pub(crate) fn id_in_sample(&self) -> Option<u16> {
        let place = if self.sample.identifier != ABSENT { self.sample.identifier } else { self.sample.id };
        (place != ABSENT).then_some(place)
    }

    /// Bytes from the event's id to the end of a record that is no sample, if it is recorded.
    pub(crate) fn id_before_end(&self) -> Option<u16> {
        (self.trailer.id != ABSENT).then(|| self.trailer.size - WORD * self.trailer.id)
    }
}

impl SampleLayout {
    fn new(sample_type: u64) -> Self {
        let mut end = 0;
        let mut place = |field: u64| place(sample_type, field, &mut end);
        let layout = Self {
            identifier: place(sample_type::IDENTIFIER),
            ip: place(sample_type::IP),
            tid: place(sample_type::TID),
            time: place(sample_type::TIME),
            address: place(sample_type::ADDR),
            id: place(sample_type::ID),
            cpu: {
                place(sample_type::STREAM_ID);
                place(sample_type::CPU)
            },
            period: place(sample_type::PERIOD),
            fixed_words: 0,
        };
        Self { fixed_words: end, ..layout }
    }
}

impl TrailerLayout {
    fn new(attr: &EventAttr) -> Self {
        // Without sample_id_all no field of the trailer exists.
        let fields = if attr.has(flag::SAMPLE_ID_ALL) { attr.sample_type } else { 0 };
        let mut end = 0;
        let mut place = |field: u64| place(fields, field, &mut end);
        let layout = Self {
            tid: place(sample_type::TID),
            time: place(sample_type::TIME),
            id: place(sample_type::ID),
            cpu: {
                place(sample_type::STREAM_ID);
                place(sample_type::CPU)
            },
            size: 0,
        };
        let identifier = place(sample_type::IDENTIFIER);
        let id = if identifier != ABSENT { identifier } else { layout.id };
        Self { id, size: WORD * end, ..layout }
    }
}

/// The place of the next field, which takes a word if it is recorded and none otherwise.
fn place(fields: u64, field: u64, end: &mut u16) -> u16 {
    if fields & field == 0 {
        return ABSENT;
    }
    *end += 1;
    *end - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other_in_the_kernels_order() {
        let layout = SampleLayout::new(
            sample_type::IDENTIFIER
                | sample_type::IP
                | sample_type::TID
                | sample_type::TIME
                | sample_type::CPU
                | sample_type::PERIOD
                | sample_type::CALLCHAIN,
        );
        let offsets = [layout.identifier, layout.ip, layout.tid, layout.time, layout.cpu, layout.period];
        assert_eq!(offsets, [0, 1, 2, 3, 4, 5]);
        assert_eq!((layout.address, layout.id, layout.fixed_words), (ABSENT, ABSENT, 6));
    }

    #[test]
    fn the_stream_id_takes_its_place() {
        let layout = SampleLayout::new(sample_type::ID | sample_type::STREAM_ID | sample_type::CPU);
        assert_eq!((layout.id, layout.cpu, layout.fixed_words), (0, 2, 3));
    }

    #[test]
    fn the_identifier_ends_the_trailer() {
        let fields = sample_type::IDENTIFIER | sample_type::TID | sample_type::TIME | sample_type::CPU;
        let attr = EventAttr { sample_type: fields, flags: flag::SAMPLE_ID_ALL, ..EventAttr::default() };
        let layout = EventLayout::new(&attr);
        assert_eq!((layout.trailer.tid, layout.trailer.time, layout.trailer.cpu), (0, 1, 2));
        assert_eq!(
            (layout.trailer.size, layout.id_before_end(), layout.id_in_sample()),
            (32, Some(8), Some(0))
        );
    }

    #[test]
    fn no_trailer_without_sample_id_all() {
        let attr = EventAttr { sample_type: sample_type::TIME | sample_type::ID, ..EventAttr::default() };
        let layout = EventLayout::new(&attr);
        assert_eq!((layout.trailer.size, layout.id_before_end(), layout.id_in_sample()), (0, None, Some(1)));
    }
}
