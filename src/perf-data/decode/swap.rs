//! Turning the records of big-endian machines round, so that decoding knows one byte order only.

use super::Decoder;
use super::kernel::has_build_id;
use crate::bytes::{Words, u32_at, u64_at};
use crate::format::{BUILD_ID_SIZE, RECORD_HEADER_SIZE, record_type, sample_type};
use crate::layout::EventLayout;

impl Decoder {
    /// Turns a whole record of a big-endian machine into a little-endian one, in place.
    ///
    /// Text, raw data and copied stacks stay as they are; so do the bodies of records that are not
    /// decoded. A record that is too short is turned as far as it goes: decoding will find out.
    pub(crate) fn to_little_endian(&self, record: &mut [u8]) {
        let Some((header, body)) = record.split_at_mut_checked(RECORD_HEADER_SIZE) else { return };
        let mut fields = Turner(header);
        fields.u32s(1);
        fields.u16s(2);
        let (Some(kind), Some(bits)) = (u32_at(header, 0), u32_at(header, 4)) else { return };
        match kind {
            record_type::SAMPLE => self.turn_sample(body),
            record_type::USER_START.. => {}
            _ => self.turn_kernel_record(kind, bits as u16, body),
        }
    }

    fn turn_sample(&self, body: &mut [u8]) {
        let id = self.id_in_sample.and_then(|at| Words::new(body).u64(at));
        if let Some(layout) = self.layout_of_big_endian_id(id) {
            turn_sample(layout, &mut Turner(body));
        }
    }

    fn turn_kernel_record(&self, kind: u32, bits: u16, body: &mut [u8]) {
        let place = self.id_before_end.and_then(|distance| body.len().checked_sub(distance.into()));
        let id = place.and_then(|at| u64_at(body, at));
        let Some(layout) = self.layout_of_big_endian_id(id) else { return };
        let Some(own) = body.len().checked_sub(layout.trailer.size.into()) else { return };
        let (body, trailer) = body.split_at_mut(own);
        turn_body(layout, kind, bits, &mut Turner(body));
        let mut trailer = Turner(trailer);
        // The trailer's fields in the kernel's order.
        for field in [
            sample_type::TID,
            sample_type::TIME,
            sample_type::ID,
            sample_type::STREAM_ID,
            sample_type::CPU,
            sample_type::IDENTIFIER,
        ] {
            turn_word(layout, field, &mut trailer);
        }
    }

    fn layout_of_big_endian_id(&self, id: Option<u64>) -> Option<&EventLayout> {
        let event = id.and_then(|id| self.event_of_id(id.swap_bytes()));
        self.layouts.get(event.map_or(0, |event| event.0 as usize))
    }
}

/// Turns one word of a sample: a number, or two halves.
fn turn_word(layout: &EventLayout, field: u64, fields: &mut Turner<'_>) {
    if !layout.samples(field) {
        return;
    }
    match field {
        sample_type::TID | sample_type::CPU => fields.u32s(2),
        _ => fields.u64s(1),
    };
}

fn turn_sample(layout: &EventLayout, fields: &mut Turner<'_>) {
    for field in [
        sample_type::IDENTIFIER,
        sample_type::IP,
        sample_type::TID,
        sample_type::TIME,
        sample_type::ADDR,
        sample_type::ID,
        sample_type::STREAM_ID,
        sample_type::CPU,
        sample_type::PERIOD,
    ] {
        turn_word(layout, field, fields);
    }
    if layout.samples(sample_type::READ) {
        if layout.reads_group {
            let (before, each) = layout.group_size;
            let count = fields.u64s(1);
            fields.u64s(before / 8 - 1);
            fields.u64s(count.saturating_mul(each / 8));
        } else {
            fields.u64s(layout.read_size / 8);
        }
    }
    if layout.samples(sample_type::CALLCHAIN) {
        let count = fields.u64s(1);
        fields.u64s(count);
    }
    if layout.samples(sample_type::RAW) {
        let size = fields.u32s(1);
        fields.skip(size);
    }
    if layout.samples(sample_type::BRANCH_STACK) {
        let (words_before, words_behind) = layout.branch_words;
        let count = fields.u64s(1);
        fields.u64s(words_before);
        fields.u64s(count.saturating_mul(3 + words_behind));
    }
    if layout.samples(sample_type::REGS_USER) {
        turn_registers(layout.user_registers, fields);
    }
    if layout.samples(sample_type::STACK_USER) {
        let room = fields.u64s(1);
        if room > 0 {
            fields.skip(room);
            fields.u64s(1);
        }
    }
    // What lies behind the stack is passed over in decoding, but for the lengths in it.
    if layout.samples(sample_type::WEIGHT | sample_type::WEIGHT_STRUCT) {
        fields.u64s(1);
    }
    turn_word(layout, sample_type::DATA_SRC, fields);
    turn_word(layout, sample_type::TRANSACTION, fields);
    if layout.samples(sample_type::REGS_INTR) {
        turn_registers(layout.interrupt_registers, fields);
    }
    for field in [
        sample_type::PHYS_ADDR,
        sample_type::CGROUP,
        sample_type::DATA_PAGE_SIZE,
        sample_type::CODE_PAGE_SIZE,
        sample_type::AUX,
    ] {
        turn_word(layout, field, fields);
    }
}

fn turn_registers(mask: u64, fields: &mut Turner<'_>) {
    let abi = fields.u64s(1);
    if abi != 0 {
        fields.u64s(mask.count_ones() as usize);
    }
}

fn turn_body(layout: &EventLayout, kind: u32, bits: u16, fields: &mut Turner<'_>) {
    match kind {
        record_type::MMAP => {
            fields.u32s(2);
            fields.u64s(3);
        }
        record_type::MMAP2 => {
            fields.u32s(2);
            fields.u64s(3);
            let place = fields.0.get(..4 + BUILD_ID_SIZE).unwrap_or_default();
            if has_build_id(layout, bits, place) {
                fields.skip(4 + BUILD_ID_SIZE);
            } else {
                fields.u32s(2);
                fields.u64s(2);
            }
            fields.u32s(2);
        }
        record_type::COMM | record_type::SWITCH_CPU_WIDE => {
            fields.u32s(2);
        }
        record_type::FORK | record_type::EXIT => {
            fields.u32s(4);
            fields.u64s(1);
        }
        record_type::THROTTLE | record_type::UNTHROTTLE | record_type::LOST | record_type::LOST_SAMPLES => {
            fields.u64s(usize::MAX);
        }
        record_type::READ => {
            fields.u32s(2);
            fields.u64s(usize::MAX);
        }
        record_type::KSYMBOL => {
            fields.u64s(1);
            fields.u32s(1);
            fields.u16s(2);
        }
        record_type::CGROUP => {
            fields.u64s(1);
        }
        _ => {}
    }
}

/// Turns one number after the other, as far as there are any.
struct Turner<'a>(&'a mut [u8]);

impl<'a> Turner<'a> {
    fn take(&mut self, length: usize) -> &'a mut [u8] {
        let bytes = std::mem::take(&mut self.0);
        let (taken, rest) = bytes.split_at_mut(length.min(bytes.len()));
        self.0 = rest;
        taken
    }

    fn skip(&mut self, length: usize) {
        self.take(length);
    }

    /// Turns `count` numbers of `size` bytes and gives the first of them.
    fn numbers(&mut self, count: usize, size: usize) -> &'a [u8] {
        let taken = self.take(count.saturating_mul(size));
        taken.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        taken
    }

    fn u16s(&mut self, count: usize) {
        self.numbers(count, 2);
    }

    /// The first of the numbers turned, or 0 if there is none.
    fn u32s(&mut self, count: usize) -> usize {
        u32_at(self.numbers(count, 4), 0).unwrap_or(0) as usize
    }

    /// The first of the numbers turned, or 0 if there is none.
    fn u64s(&mut self, count: usize) -> usize {
        usize::try_from(u64_at(self.numbers(count, 8), 0).unwrap_or(0)).unwrap_or(usize::MAX)
    }
}
