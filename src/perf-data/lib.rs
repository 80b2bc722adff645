//! Reads and writes perf.data, the files of Linux's `perf record`.
//!
//! # What it does
//!
//! - **Reads** what any version of perf wrote, and other recorders: [`PerfData`] opens a file or a pipe and says which
//!   events were recorded and what the recorder wrote down of the machine ([`Features`]); [`Records`] finds the
//!   records one after the other, in the file's order; [`Decoder`] says when, where and for which event each was made
//!   and what it holds ([`record`]), borrowed from the file, without allocating.
//! - **Writes** files that perf reads: [`PerfDataWriter`] takes records as they come from the kernel's rings,
//!   [`encode`] makes those that a recorder adds, [`compress`] packs them as `perf record -z` does.
//! - **Carries** any program's own data beside the kernel's records, in a way that other tools pass over:
//!   [`payload`].
//!
//! # What it does not
//!
//! - Record: it opens no events, reads no rings and asks the kernel nothing.
//! - Put records in the order of time. Each CPU's are in order, those of several are not; [`record::Record`] gives out
//!   the marks ([`FinishedRound`](record::Record::FinishedRound)) by which they can be put in order round by round.
//! - Follow tasks and mappings, unwind copied stacks, or look up symbols.
//! - Give out all of a sample: weights, data sources, transactions, registers at the interrupt, physical addresses,
//!   control groups, page sizes and hardware trace are passed over. Branch stacks and counter values come as bytes.
//! - Read the first version of the format, which nothing has written since 2010. It is refused by name.
//! - Put the files of a folder of `perf record --threads` in order: their records stand one file behind the other.
//!
//! # How it is made
//!
//! ```text
//!                  header, pipe ──► features, names, tracing_data ──► reader: PerfData
//!   reading         ▲                                                   │
//! source, folder ───┤                                                   ▼
//!                   ▼                                         decode, ids, layout: Decoder
//!                  walk ─► expand ─► window ─► records: Records, RawRecord ──┴──► record: Record, Sample
//!
//!   writing        attr, encode, payload ──► compress ──► writer: PerfDataWriter ◄── features
//!
//!   below all      format: the numbers of perf.data   bytes: byte orders   event   raw   error   time
//! ```
//!
//! # What can be relied on
//!
//! - **Any file**: of either byte order (records are given out in little-endian order), with attributes shorter or
//!   longer than known here, from a pipe, compressed with zstd, of a recorder that was killed, cut off anywhere,
//!   damaged anywhere.
//! - **No panic**, whatever the bytes are, and no endless loop: each call ends with a record, an error or the end.
//!   What is wrong is a [`ReadError`] with its offset. What precedes the damage is given out first, and what follows
//!   too, if the damage leaves a way to find it ([`ReadError::is_recoverable`]). Damaged feature sections are
//!   as if they were not there. Opening takes time in proportion to the file's size at most.
//! - **Bounded memory.** A file is mapped and its records are borrowed from the map; a pipe is copied to a nameless
//!   temporary file first, and so are the files of a folder. Besides, memory is taken for
//!   the attributes, ids and features, which is in proportion to their size in the file;
//!   and for records that are compressed or of the other byte order, about 5 MiB and zstd's window (at most 128 MiB)
//!   with [`Records::next`]. With [`Records::next_raw`], such records are kept until [`Records::release_before`];
//!   one compressed record is expanded to no more bytes than the file says its recorder's ring had, or 256 MiB.
//! - **One exception**, as for every mapped file: if it is shortened while it is read, the kernel sends SIGBUS.
//! - **Written files** are version 2, little-endian, and with attributes as short as may be, so that old versions of
//!   perf read them too. Up to the last [`PerfDataWriter::commit`] they can be read, whatever happens afterwards.
//!
//! # Counting samples by mapped file and offset
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use perf_data::record::Record;
//! use perf_data::{PerfData, ReadError};
//!
//! struct Mapping {
//!     pid: u32,
//!     address: u64,
//!     length: u64,
//!     file_offset: u64,
//!     path: String,
//! }
//!
//! /// How many samples there are at each offset of each file.
//! fn count(file: &PerfData) -> Result<BTreeMap<(String, u64), u64>, ReadError> {
//!     let mut mappings = Vec::new();
//!     let mut counts = BTreeMap::new();
//!     let mut records = file.records();
//!     while let Some((_, context, record)) = records.next()? {
//!         match record {
//!             Record::Mmap(it) => mappings.push(Mapping {
//!                 pid: it.pid,
//!                 address: it.address,
//!                 length: it.length,
//!                 file_offset: it.file_offset,
//!                 path: String::from_utf8_lossy(it.path).into_owned(),
//!             }),
//!             Record::Sample(sample) => {
//!                 let (Some(pid), Some(ip)) = (context.pid, sample.ip) else { continue };
//!                 // The latest mapping covers older ones. Those of the kernel are of no process.
//!                 let mut latest = mappings.iter().rev();
//!                 let holds = |it: &&Mapping| ip.wrapping_sub(it.address) < it.length;
//!                 if let Some(it) = latest.find(|it| [pid, u32::MAX].contains(&it.pid) && holds(it)) {
//!                     let offset = (ip - it.address).wrapping_add(it.file_offset);
//!                     *counts.entry((it.path.clone(), offset)).or_default() += 1;
//!                 }
//!             }
//!             _ => {}
//!         }
//!     }
//!     Ok(counts)
//! }
//!
//! # fn recording() -> std::io::Result<Vec<u8>> {
//! #     use perf_data::attr::{EventAttr, flag};
//! #     use perf_data::encode::{self, MappingFields, SampleFields, SampleId, TRAILER_FIELDS};
//! #     use perf_data::format::sample_type;
//! #     use perf_data::{EventDesc, Features, PerfDataWriter};
//! #     let sample_type = TRAILER_FIELDS | sample_type::IP;
//! #     let attr = EventAttr { sample_type, flags: flag::SAMPLE_ID_ALL, ..EventAttr::default() };
//! #     let events = vec![EventDesc { name: "cycles".to_owned(), attr, ids: vec![1] }];
//! #     let mut writer = PerfDataWriter::create(std::io::Cursor::new(Vec::new()), events)?;
//! #     let mapping = MappingFields {
//! #         pid: 7, tid: 7, addresses: 0x5000..0x6000, file_offset: 0x1000, inode: (8, 1, 42), protection: 5,
//! #         flags: 2, path: b"/bin/app",
//! #     };
//! #     let mut records = Vec::new();
//! #     encode::mmap2(&mapping, &SampleId { id: 1, ..SampleId::default() }, &mut records).expect("short");
//! #     writer.write_raw(&records)?;
//! #     for ip in [0x5020, 0x5040, 0x5020, 0x9000] {
//! #         writer.write_sample(0, &SampleFields { id: 1, ip, pid: 7, tid: 7, ..SampleFields::default() })?;
//! #     }
//! #     Ok(writer.finish(&Features::default())?.into_inner())
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let bytes = recording()?;
//! let file = PerfData::from_bytes(bytes)?; // Or PerfData::open(Path::new("perf.data"))?
//! let counts = count(&file)?;
//! assert_eq!(counts[&("/bin/app".to_owned(), 0x1020)], 2);
//! assert_eq!(counts[&("/bin/app".to_owned(), 0x1040)], 1);
//! # assert_eq!(counts.len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Writing a file and reading it back
//!
//! ```
//! use std::io::Cursor;
//!
//! use perf_data::attr::{EventAttr, flag};
//! use perf_data::encode::{self, SampleFields, SampleId, TRAILER_FIELDS};
//! use perf_data::format::{event_type, sample_type};
//! use perf_data::record::{CpuMode, Record};
//! use perf_data::{EventDesc, Features, PerfData, PerfDataWriter, Timestamp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = EventDesc {
//!     name: "cpu-clock".to_owned(),
//!     attr: EventAttr {
//!         kind: event_type::SOFTWARE,
//!         sample_period: 1_000_000,
//!         sample_type: TRAILER_FIELDS | sample_type::IP | sample_type::CALLCHAIN,
//!         flags: flag::SAMPLE_ID_ALL,
//!         ..EventAttr::default()
//!     },
//!     // The numbers by which the kernel's records tell their event.
//!     ids: vec![1],
//! };
//!
//! // Anything that can be written and rewound: a file, or bytes in memory.
//! let mut writer = PerfDataWriter::create(Cursor::new(Vec::new()), vec![clock])?;
//! let mut records = Vec::new();
//! let at_start = SampleId { pid: 7, tid: 7, id: 1, ..SampleId::default() };
//! encode::comm(7, 7, b"app", true, &at_start, &mut records)?;
//! writer.write_raw(&records)?;
//! let sample = SampleFields {
//!     id: 1,
//!     ip: 0x5020,
//!     mode: CpuMode::User,
//!     pid: 7,
//!     tid: 7,
//!     time: Timestamp::from_nanos(5_000),
//!     callchain: &[0x5020, 0x4010],
//!     ..SampleFields::default()
//! };
//! writer.write_sample(0, &sample)?;
//! let features = Features { hostname: Some("here".to_owned()), ..Features::default() };
//! let bytes = writer.finish(&features)?.into_inner();
//!
//! let file = PerfData::from_bytes(bytes)?;
//! assert!(file.is_complete());
//! assert_eq!(file.events()[0].name, "cpu-clock");
//! assert_eq!(file.features().hostname.as_deref(), Some("here"));
//! let mut names = Vec::new();
//! let mut callchains = Vec::new();
//! let mut records = file.records();
//! while let Some((_, context, record)) = records.next()? {
//!     match record {
//!         Record::Comm { name, .. } => names.push(name.to_vec()),
//!         Record::Sample(sample) => {
//!             assert_eq!(context.time, Some(Timestamp::from_nanos(5_000)));
//!             assert_eq!(sample.period, Some(1_000_000));
//!             callchains.push(sample.callchain.entries().collect::<Vec<_>>());
//!         }
//!         _ => {}
//!     }
//! }
//! assert_eq!(names, [b"app"]);
//! assert_eq!(callchains, [[0x5020, 0x4010]]);
//! # Ok(())
//! # }
//! ```

pub mod attr;
pub mod compress;
pub mod encode;
pub mod features;
pub mod format;
pub mod payload;
pub mod record;
pub mod time;
pub mod writer;

mod bytes;
mod decode;
mod error;
mod event;
mod expand;
mod folder;
mod header;
mod ids;
mod input_name;
mod layout;
mod names;
mod pipe;
mod raw;
mod reader;
mod records;
mod source;
mod tracing_data;
mod walk;
mod window;

pub use bytes::ByteOrder;
pub use decode::Decoder;
pub use error::ReadError;
pub use event::EventDesc;
pub use features::Features;
pub use header::check_header;
pub use input_name::input_name;
pub use raw::{RawRecord, RecordPosition};
pub use reader::{Opened, PerfData};
pub use records::{Records, RecordsInFile};
pub use time::{Nanoseconds, Timestamp};
pub use writer::PerfDataWriter;
