//! jitdump: the file `jit-PID.dump` in which a just-in-time compiler tells when it placed which function where.
//!
//! Unlike `perf-PID.map` it has times, on the clock CLOCK_MONOTONIC, so that memory that was used again is told
//! apart. The compiler maps the file executable, so that a recording shows its path. All numbers are in the
//! byte order of the machine that wrote it:
//!
//! ```text
//! header   magic, version, size of the header, ELF machine, 0, pid: 4 bytes each; time, flags: 8 bytes each
//! record   kind, size with this head: 4 bytes each; time: 8 bytes; then by kind
//!   0 load       pid, tid: 4; start in its segment, address, size, number: 8; name, 0, code
//!   1 move       pid, tid: 4; start in its segment, old address, new address, size, number: 8
//!   2 lines      not read
//!   3 close      the compiler has ended
//!   4 unwinding  not read
//! ```

use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::units::Timestamp;

const MAGIC: u32 = 0x4a69_5444;
/// The version that is read.
const VERSION: u32 = 1;
/// Flag: times are of the processor's counter.
const PROCESSOR_TIMES: u64 = 1;

/// Why a jitdump file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JitdumpError {
    /// It does not begin as jitdump files do.
    #[error("not a jitdump file")]
    Magic,
    /// The header is cut off or wrong.
    #[error("damaged header of a jitdump file")]
    Header,
    /// A version that is not known.
    #[error("jitdump version {0}; only version {VERSION} can be read")]
    Version(u32),
    /// The times are no clock's.
    #[error(
        "the times in this jitdump file are of the processor's counter; let the compiler use CLOCK_MONOTONIC"
    )]
    ProcessorTimes,
}

/// A function was placed at an address: compiled there, or moved there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitEvent<'a> {
    /// When, on CLOCK_MONOTONIC.
    pub time: Timestamp,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Where its code begins.
    pub address: u64,
    /// Bytes of code.
    pub size: u64,
    /// Its name, without the terminating zero; any bytes.
    pub name: &'a [u8],
    /// The compiler's number of the function; a move keeps it.
    pub code_index: u64,
}

/// The events of a jitdump file, in its order. A file that is cut off, as one is whose process was killed, ends at
/// its last whole record.
#[derive(Debug)]
pub struct Jitdump<'a> {
    pid: u32,
    rest: Bytes<'a>,
    /// Names by number of the function.
    names: FxHashMap<u64, &'a [u8]>,
}

impl<'a> Jitdump<'a> {
    /// Reads the header.
    pub fn new(file: &'a [u8]) -> Result<Self, JitdumpError> {
        let mut header = Bytes { data: file, swapped: false };
        let magic = header.u32().ok_or(JitdumpError::Magic)?;
        header.swapped = magic == MAGIC.swap_bytes();
        if magic != MAGIC && !header.swapped {
            return Err(JitdumpError::Magic);
        }
        let (version, size, pid, flags) = header_fields(&mut header).ok_or(JitdumpError::Header)?;
        if version != VERSION {
            return Err(JitdumpError::Version(version));
        }
        if flags & PROCESSOR_TIMES != 0 {
            return Err(JitdumpError::ProcessorTimes);
        }
        let behind = file.get(size as usize..).ok_or(JitdumpError::Header)?;
        let rest = Bytes { data: behind, swapped: header.swapped };
        Ok(Self { pid, rest, names: FxHashMap::default() })
    }

    /// The process that wrote the file.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    fn load(&mut self, time: Timestamp, mut record: Bytes<'a>) -> Option<JitEvent<'a>> {
        let (pid, tid, _) = (record.u32()?, record.u32()?, record.u64()?);
        let (address, size, code_index) = (record.u64()?, record.u64()?, record.u64()?);
        let name = record.string()?;
        self.names.insert(code_index, name);
        Some(JitEvent { time, pid, tid, address, size, name, code_index })
    }

    fn moved(&self, time: Timestamp, mut record: Bytes<'a>) -> Option<JitEvent<'a>> {
        let (pid, tid, _) = (record.u32()?, record.u32()?, record.u64()?);
        let (_, address, size, code_index) = (record.u64()?, record.u64()?, record.u64()?, record.u64()?);
        let name = self.names.get(&code_index)?;
        Some(JitEvent { time, pid, tid, address, size, name, code_index })
    }
}

fn header_fields(header: &mut Bytes<'_>) -> Option<(u32, u32, u32, u64)> {
    let (version, size, _, _, pid) =
        (header.u32()?, header.u32()?, header.u32()?, header.u32()?, header.u32()?);
    let (_, flags) = (header.u64()?, header.u64()?);
    Some((version, size, pid, flags))
}

impl<'a> Iterator for Jitdump<'a> {
    type Item = JitEvent<'a>;

    fn next(&mut self) -> Option<JitEvent<'a>> {
        loop {
            let mut head = self.rest;
            let (kind, size, time) = (head.u32()?, head.u32()? as usize, head.u64()?);
            let (record, behind) = self.rest.data.split_at_checked(size)?;
            let record = Bytes { data: record.get(16..)?, ..self.rest };
            self.rest.data = behind;
            let time = Timestamp::from_nanos(time);
            let event = match kind {
                0 => self.load(time, record),
                1 => self.moved(time, record),
                3 => return None,
                _ => None,
            };
            if event.is_some() {
                return event;
            }
        }
    }
}

/// Bytes not yet read.
#[derive(Debug, Clone, Copy)]
struct Bytes<'a> {
    data: &'a [u8],
    /// Numbers are in the other byte order.
    swapped: bool,
}

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.data.split_first_chunk::<N>()?;
        self.data = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        let value = u32::from_ne_bytes(self.take()?);
        Some(if self.swapped { value.swap_bytes() } else { value })
    }

    fn u64(&mut self) -> Option<u64> {
        let value = u64::from_ne_bytes(self.take()?);
        Some(if self.swapped { value.swap_bytes() } else { value })
    }

    /// Up to a zero, which is dropped.
    fn string(&mut self) -> Option<&'a [u8]> {
        let end = self.data.iter().position(|&byte| byte == 0)?;
        let text = &self.data[..end];
        self.data = &self.data[end + 1..];
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Writes numbers in one of the byte orders.
    struct Writer {
        bytes: Vec<u8>,
        swapped: bool,
    }

    impl Writer {
        fn words(&mut self, values: &[u32]) -> &mut Self {
            for value in values {
                let value = if self.swapped { value.swap_bytes() } else { *value };
                self.bytes.extend(value.to_ne_bytes());
            }
            self
        }

        fn longs(&mut self, values: &[u64]) -> &mut Self {
            for value in values {
                let value = if self.swapped { value.swap_bytes() } else { *value };
                self.bytes.extend(value.to_ne_bytes());
            }
            self
        }

        fn record(&mut self, kind: u32, time: u64, content: impl Fn(&mut Self)) {
            let mut body = Self { bytes: Vec::new(), swapped: self.swapped };
            content(&mut body);
            self.words(&[kind, body.bytes.len() as u32 + 16]).longs(&[time]);
            self.bytes.extend(body.bytes);
        }
    }

    /// Load of a function, an unknown record, a move of the function, and a load behind the end.
    fn sample(swapped: bool) -> Vec<u8> {
        let mut file = Writer { bytes: Vec::new(), swapped };
        file.words(&[MAGIC, VERSION, 40, 62, 0, 77]).longs(&[1000, 0]);
        file.record(0, 1002, |record| {
            record.words(&[77, 78]).longs(&[0x7000, 0x7000, 3, 5]).bytes.extend(b"hot\0\x90\x90\xc3");
        });
        file.record(9, 1003, |record| record.bytes.extend(b"later version"));
        file.record(1, 1004, |record| {
            record.words(&[77, 78]).longs(&[0x8000, 0x7000, 0x8000, 3, 5]);
        });
        file.record(3, 1005, |_| {});
        file.record(0, 1006, |record| {
            record.words(&[77, 78]).longs(&[0, 0, 1, 6]).bytes.extend(b"never\0\xc3");
        });
        file.bytes
    }

    #[test]
    fn functions_loaded_and_moved_in_both_byte_orders() {
        for swapped in [false, true] {
            let file = sample(swapped);
            let jitdump = Jitdump::new(&file).unwrap();
            assert_eq!(jitdump.pid(), 77);
            let events: Vec<_> = jitdump.collect();
            let seen: Vec<_> =
                events.iter().map(|it| (it.time.as_nanos(), it.tid, it.address, it.size, it.name)).collect();
            assert_eq!(seen, [(1002, 78, 0x7000, 3, &b"hot"[..]), (1004, 78, 0x8000, 3, b"hot")]);
        }
    }

    #[test]
    fn what_is_no_jitdump_is_told() {
        let problem = |file: &[u8]| Jitdump::new(file).unwrap_err();
        assert_eq!(problem(b""), JitdumpError::Magic);
        assert_eq!(problem(b"\x7fELF"), JitdumpError::Magic);
        assert_eq!(problem(&sample(false)[..30]), JitdumpError::Header);
        let mut file = sample(false);
        file[4] = 2;
        assert_eq!(problem(&file), JitdumpError::Version(2));
        let mut file = sample(false);
        file[32..40].copy_from_slice(&1u64.to_ne_bytes());
        assert_eq!(problem(&file), JitdumpError::ProcessorTimes);
    }

    proptest! {
        /// A file cut off anywhere gives the first of the events.
        #[test]
        fn cut_off_anywhere(length in 40usize..400, swapped: bool) {
            let file = sample(swapped);
            let all: Vec<_> = Jitdump::new(&file).unwrap().collect();
            let cut = &file[..length.min(file.len())];
            let some: Vec<_> = Jitdump::new(cut).unwrap().collect();
            prop_assert_eq!(&all[..some.len()], &some);
        }

        #[test]
        fn damaged_anywhere(at in 0usize..300, value: u8) {
            let mut file = sample(false);
            let length = file.len();
            file[at % length] = value;
            if let Ok(jitdump) = Jitdump::new(&file) {
                prop_assert!(jitdump.count() < 100);
            }
        }

        #[test]
        fn any_bytes(records in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut file = sample(false)[..40].to_vec();
            file.extend(records);
            Jitdump::new(&file).unwrap().count();
        }
    }
}
