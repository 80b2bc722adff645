//! Builds perf.data files byte by byte, of either byte order, on nothing but the format's description:
//! what the reader reads is not what eprof's own writer wrote.

use perf_data::ByteOrder;
use perf_data::attr::EventAttr;
use perf_data::format::{feature, record_type};

/// Numbers and bytes, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Bytes {
    /// What there is so far.
    pub bytes: Vec<u8>,
    order: ByteOrder,
}

impl Bytes {
    /// None yet.
    pub fn new(order: ByteOrder) -> Self {
        Self { bytes: Vec::new(), order }
    }

    fn number(mut self, little_endian: &[u8]) -> Self {
        match self.order {
            ByteOrder::Little => self.bytes.extend(little_endian),
            ByteOrder::Big => self.bytes.extend(little_endian.iter().rev()),
        }
        self
    }

    /// Appends a number of two bytes.
    pub fn u16(self, number: u16) -> Self {
        self.number(&number.to_le_bytes())
    }

    /// Appends a number of four bytes.
    pub fn u32(self, number: u32) -> Self {
        self.number(&number.to_le_bytes())
    }

    /// Appends a number of eight bytes.
    pub fn u64(self, number: u64) -> Self {
        self.number(&number.to_le_bytes())
    }

    /// Appends numbers of eight bytes.
    pub fn u64s(self, numbers: &[u64]) -> Self {
        numbers.iter().fold(self, |bytes, &number| bytes.u64(number))
    }

    /// Appends bytes as they are.
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    /// Text with a zero behind it, padded to a multiple of eight bytes as the kernel does.
    pub fn text(mut self, text: &str) -> Self {
        let length = text.len() + 1;
        self.bytes.extend(text.as_bytes());
        self.bytes.resize(self.bytes.len() - text.len() + length.next_multiple_of(8), 0);
        self
    }

    /// A string of a feature section: its length, then its bytes.
    pub fn counted_text(self, text: &str) -> Self {
        let length = (text.len() + 1).next_multiple_of(8) as u32;
        self.u32(length).text(text)
    }

    /// Appends an event's attributes, 112 bytes as `perf_event_open` takes them.
    pub fn attr(self, attr: &EventAttr) -> Self {
        let flags = match self.order {
            ByteOrder::Little => attr.flags.to_le_bytes(),
            // A big-endian compiler fills bit fields from the other end of each byte.
            ByteOrder::Big => attr.flags.to_le_bytes().map(u8::reverse_bits),
        };
        self.u32(attr.kind)
            .u32(112)
            .u64(attr.config)
            .u64(attr.sample_period)
            .u64(attr.sample_type)
            .u64(attr.read_format)
            .raw(&flags)
            .u32(attr.wakeup)
            .u32(attr.breakpoint_type)
            .u64(attr.config1)
            .u64(attr.config2)
            .u64(attr.branch_sample_type)
            .u64(attr.sample_regs_user)
            .u32(attr.sample_stack_user)
            .u32(attr.clockid as u32)
            .u64(attr.sample_regs_intr)
            .u32(attr.aux_watermark)
            .u32(u32::from(attr.sample_max_stack))
    }
}

/// An event of a file to be built.
#[derive(Debug, Clone)]
pub struct Event {
    /// How it was opened.
    pub attr: EventAttr,
    /// Its ids, one for each CPU or thread.
    pub ids: Vec<u64>,
    /// Its name; if none of a file's events has one, the file does not describe its events.
    pub name: &'static str,
}

/// A file to be built.
#[derive(Debug, Clone, Default)]
pub struct File {
    /// Of all numbers.
    pub order: ByteOrder,
    /// The events, in the order of the file.
    pub events: Vec<Event>,
    /// The records.
    pub data: Vec<u8>,
    /// Feature sections by bit, in ascending order, besides the events' description.
    pub features: Vec<(u32, Vec<u8>)>,
}

impl File {
    /// A file of these events, without records.
    pub fn new(events: Vec<Event>) -> Self {
        Self { events, ..Self::default() }
    }

    /// The same with its numbers in this order.
    pub fn of_order(mut self, order: ByteOrder) -> Self {
        self.order = order;
        self
    }

    /// None yet, of the file's order.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.order)
    }

    /// Appends a record.
    pub fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let record = self.record_bytes(kind, misc, body);
        self.data.extend(record);
    }

    /// A record with its header.
    pub fn record_bytes(&self, kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(8 + body.len()).expect("a record has at most 64 KiB");
        self.bytes().u32(kind).u16(misc).u16(size).raw(body).bytes
    }

    /// The file with header, attributes, ids, records and features.
    pub fn build(&self) -> Vec<u8> {
        let mut features = self.features.clone();
        if self.events.iter().any(|event| !event.name.is_empty()) {
            features.push((feature::EVENT_DESC, self.event_descriptions()));
            features.sort_by_key(|(bit, _)| *bit);
        }
        self.assemble(&features, true)
    }

    /// The file as a recorder leaves it that is killed: its header does not know the data's size.
    pub fn build_unfinished(&self) -> Vec<u8> {
        self.assemble(&[], false)
    }

    /// Offset of the first record in [`File::build`].
    pub fn data_offset(&self) -> usize {
        self.build_unfinished().len() - self.data.len()
    }

    fn assemble(&self, features: &[(u32, Vec<u8>)], finished: bool) -> Vec<u8> {
        let ids: u64 = self.events.iter().map(|event| 8 * event.ids.len() as u64).sum();
        let attrs_at = 104 + ids;
        let attrs_size = 128 * self.events.len() as u64;
        let data_at = attrs_at + attrs_size;
        let data_size = if finished { self.data.len() as u64 } else { 0 };
        let bits = features.iter().fold(0, |bits, (bit, _)| bits | 1u64 << bit);
        let mut file = self
            .bytes()
            .u64(u64::from_le_bytes(*b"PERFILE2"))
            .u64s(&[104, 128, attrs_at, attrs_size, data_at, data_size, 0, 0, bits, 0, 0, 0]);
        for event in &self.events {
            file = file.u64s(&event.ids);
        }
        let mut ids_at = 104;
        for event in &self.events {
            let size = 8 * event.ids.len() as u64;
            file = file.attr(&event.attr).u64s(&[ids_at, size]);
            ids_at += size;
        }
        file = file.raw(&self.data);
        let mut section_at = file.bytes.len() as u64 + 16 * features.len() as u64;
        for (_, section) in features {
            file = file.u64s(&[section_at, section.len() as u64]);
            section_at += section.len() as u64;
        }
        features.iter().fold(file, |file, (_, section)| file.raw(section)).bytes
    }

    /// The recording as it comes out of a pipe.
    pub fn build_pipe(&self) -> Vec<u8> {
        let mut pipe = self.bytes().u64(u64::from_le_bytes(*b"PERFILE2")).u64(16);
        for event in &self.events {
            let body = self.bytes().attr(&event.attr).u64s(&event.ids).bytes;
            pipe = pipe.raw(&self.record_bytes(record_type::HEADER_ATTR, 0, &body));
        }
        for (bit, section) in &self.features {
            let body = self.bytes().u64(u64::from(*bit)).raw(section).bytes;
            pipe = pipe.raw(&self.record_bytes(record_type::HEADER_FEATURE, 0, &body));
        }
        pipe.raw(&self.data).bytes
    }

    /// The section that describes the events.
    pub fn event_descriptions(&self) -> Vec<u8> {
        let mut section = self.bytes().u32(self.events.len() as u32).u32(112);
        for event in &self.events {
            section = section
                .attr(&event.attr)
                .u32(event.ids.len() as u32)
                .counted_text(event.name)
                .u64s(&event.ids);
        }
        section.bytes
    }
}
