//! What the library writes into its file, and eprof reads: records of a kind, a length and a payload,
//! little-endian, one after the other. A file that ends within a record ends before it.

/// Longest payload that is written; a longer one is nothing of ours.
pub const LONGEST: usize = 4096;
const HEADER: usize = 8;

/// One record. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// CUPTI was found and watches; its version.
    Watching {
        /// As `cuptiGetVersion` tells it.
        cupti_version: u32,
    },
    /// A thread is inside a call that launches.
    Launch {
        /// When.
        time: u64,
        /// The kernel's number of the thread.
        tid: u32,
        /// What its kernels will be known by.
        correlation: u32,
    },
    /// A kernel ran.
    Kernel {
        /// When it began.
        start: u64,
        /// When it ended.
        end: u64,
        /// The call that launched it; a graph launches many.
        correlation: u32,
        /// CUDA's number of the GPU in this process.
        device: u32,
        /// CUPTI's number of the stream.
        stream: u32,
        /// Number of its name.
        name: u32,
    },
    /// A kernel's name, before its first use.
    Name {
        /// Its number.
        id: u32,
        /// As the compiler mangled it.
        text: &'a [u8],
    },
    /// Which GPU a number stands for.
    Device {
        /// CUDA's number in this process.
        ordinal: u32,
        /// Its address on the PCI bus.
        bus_id: &'a [u8],
    },
    /// The program launched so often that watching would have slowed it down; nothing comes after this.
    Stopped {
        /// When.
        time: u64,
        /// Launches in the last second.
        per_second: u32,
    },
    /// CUPTI had no room for this many records.
    Dropped {
        /// How many.
        count: u64,
    },
    /// Why there is nothing to tell.
    Problem {
        /// For people.
        text: &'a [u8],
    },
}

impl<'a> Record<'a> {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0; HEADER]);
        let mut word = |value: u32| out.extend(value.to_le_bytes());
        let halves = |value: u64| [value as u32, (value >> 32) as u32];
        let kind: u32 = match *self {
            Self::Watching { cupti_version } => {
                word(cupti_version);
                1
            }
            Self::Launch { time, tid, correlation } => {
                halves(time).into_iter().chain([tid, correlation]).for_each(&mut word);
                2
            }
            Self::Kernel { start, end, correlation, device, stream, name } => {
                let times = halves(start).into_iter().chain(halves(end));
                times.chain([correlation, device, stream, name]).for_each(&mut word);
                3
            }
            Self::Name { id, text } => {
                word(id);
                out.extend(&text[..text.len().min(LONGEST - 4)]);
                4
            }
            Self::Device { ordinal, bus_id } => {
                word(ordinal);
                out.extend(&bus_id[..bus_id.len().min(LONGEST - 4)]);
                5
            }
            Self::Stopped { time, per_second } => {
                halves(time).into_iter().chain([per_second]).for_each(&mut word);
                6
            }
            Self::Dropped { count } => {
                halves(count).into_iter().for_each(&mut word);
                7
            }
            Self::Problem { text } => {
                out.extend(&text[..text.len().min(LONGEST)]);
                8
            }
        };
        let length = (out.len() - start - HEADER) as u32;
        out[start..start + 4].copy_from_slice(&kind.to_le_bytes());
        out[start + 4..start + HEADER].copy_from_slice(&length.to_le_bytes());
    }

    fn decode(kind: u32, payload: &'a [u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(payload.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from(word(at)?) | u64::from(word(at + 4)?) << 32);
        Some(match kind {
            1 => Self::Watching { cupti_version: word(0)? },
            2 => Self::Launch { time: long(0)?, tid: word(8)?, correlation: word(12)? },
            3 => Self::Kernel {
                start: long(0)?,
                end: long(8)?,
                correlation: word(16)?,
                device: word(20)?,
                stream: word(24)?,
                name: word(28)?,
            },
            4 => Self::Name { id: word(0)?, text: payload.get(4..)? },
            5 => Self::Device { ordinal: word(0)?, bus_id: payload.get(4..)? },
            6 => Self::Stopped { time: long(0)?, per_second: word(8)? },
            7 => Self::Dropped { count: long(0)? },
            8 => Self::Problem { text: payload },
            _ => return None,
        })
    }
}

/// The records in some bytes, up to the first that is cut off or too long. Kinds that are not known
/// here, from another version, are passed over.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
    /// Bytes of the records so far.
    read: usize,
}

impl<'a> Records<'a> {
    /// From the beginning of a record.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, read: 0 }
    }

    /// How many bytes the records so far took.
    pub fn read(&self) -> usize {
        self.read
    }

    /// The length of the next record with its header, if it is whole.
    fn next_length(&self) -> Option<usize> {
        let header = self.bytes.get(self.read + 4..self.read + HEADER)?;
        let length = u32::from_le_bytes(header.try_into().ok()?) as usize;
        (length <= LONGEST && self.bytes.len() - self.read - HEADER >= length).then_some(HEADER + length)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            let length = self.next_length()?;
            let record = &self.bytes[self.read..self.read + length];
            self.read += length;
            let kind = u32::from_le_bytes(record[..4].try_into().ok()?);
            if let Some(record) = Record::decode(kind, &record[HEADER..]) {
                return Some(record);
            }
        }
    }
}

/// How many of the bytes are whole records of together at most `limit` bytes, and whether what follows
/// can be none of ours.
pub fn whole(bytes: &[u8], limit: usize) -> (usize, bool) {
    let mut records = Records::new(bytes);
    loop {
        let broken = bytes
            .get(records.read + 4..records.read + HEADER)
            .and_then(|length| Some(u32::from_le_bytes(length.try_into().ok()?)))
            .is_some_and(|length| length as usize > LONGEST);
        match records.next_length() {
            Some(length) if records.read + length <= limit => records.read += length,
            _ => return (records.read, broken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Record<'static>; 8] = [
        Record::Watching { cupti_version: 24 },
        Record::Launch { time: 1 << 40, tid: 7, correlation: 9 },
        Record::Kernel { start: 1 << 41, end: (1 << 41) + 5, correlation: 9, device: 1, stream: 13, name: 2 },
        Record::Name { id: 2, text: b"_Z3addPf" },
        Record::Device { ordinal: 1, bus_id: b"0000:3b:00.0" },
        Record::Stopped { time: 3, per_second: 30_000 },
        Record::Dropped { count: 4 },
        Record::Problem { text: b"no CUPTI" },
    ];

    #[test]
    fn records_survive_the_file() {
        let mut bytes = Vec::new();
        ALL.iter().for_each(|record| record.encode(&mut bytes));
        assert_eq!(Records::new(&bytes).collect::<Vec<_>>(), ALL);
        assert_eq!(whole(&bytes, usize::MAX), (bytes.len(), false));
        assert!(whole(&bytes, 40).0 <= 40);
        for cut in 0..bytes.len() {
            let (end, broken) = whole(&bytes[..cut], usize::MAX);
            assert!(end <= cut && !broken);
            let found: Vec<_> = Records::new(&bytes[..cut]).collect();
            assert_eq!(found, ALL[..found.len()], "a beginning of them");
        }
    }

    #[test]
    fn what_is_not_ours_ends_it() {
        let mut bytes = Vec::new();
        ALL[0].encode(&mut bytes);
        let good = bytes.len();
        bytes.extend([0xff; 64]);
        assert_eq!(Records::new(&bytes).count(), 1);
        assert_eq!(whole(&bytes, usize::MAX), (good, true));
        // A kind of a later version is passed over.
        let mut later = vec![99, 0, 0, 0, 2, 0, 0, 0, 1, 2];
        ALL[1].encode(&mut later);
        assert_eq!(Records::new(&later).collect::<Vec<_>>(), [ALL[1]]);
        // Too short a payload for its kind is passed over too.
        assert_eq!(Records::new(&[2, 0, 0, 0, 1, 0, 0, 0, 5]).count(), 0);
    }

    #[test]
    fn a_name_without_end_is_cut() {
        let mut bytes = Vec::new();
        Record::Name { id: 1, text: &[b'x'; 10_000] }.encode(&mut bytes);
        assert!(matches!(Records::new(&bytes).next(), Some(Record::Name { text, .. }) if text.len() == 4092));
    }
}
