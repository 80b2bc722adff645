//! The header of a file: where the attributes, records and feature sections lie.

use std::ops::Range;
use std::path::Path;

use crate::attr::EventAttr;
use crate::bytes::{ByteOrder, Cursor};
use crate::error::ReadError;
use crate::features::Features;
use crate::format::{
    FILE_HEADER_SIZE, FileHeader, MAGIC, MAGIC_VERSION_1, PIPE_HEADER_SIZE, SECTION_SIZE, Section,
};

/// What the first bytes of a recording say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// A file, with its header.
    File(ByteOrder, FileHeader),
    /// A stream out of a pipe: all else is in records.
    Pipe(ByteOrder),
}

/// Does a file with this beginning mean to be a recording?
pub(crate) fn is_recording(beginning: &[u8]) -> bool {
    let magic = Cursor::new(beginning, ByteOrder::Little).u64();
    magic.is_some_and(|magic| {
        [MAGIC, MAGIC_VERSION_1].iter().any(|known| [*known, known.swap_bytes()].contains(&magic))
    })
}

/// Whether a file that begins with these bytes begins as recordings do; [`FILE_HEADER_SIZE`] are enough.
///
/// # Errors
/// As opening it, as far as its header decides.
pub fn check_header(path: &Path, bytes: &[u8]) -> Result<(), ReadError> {
    head(path, bytes).map(|_| ())
}

/// Reads the header.
pub(crate) fn head(path: &Path, bytes: &[u8]) -> Result<Head, ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::Empty { path: path.to_owned() });
    }
    let not_perf_data = || ReadError::NotPerfData { path: path.to_owned() };
    let magic = Cursor::new(bytes, ByteOrder::Little).u64().ok_or_else(not_perf_data)?;
    let order = match magic {
        MAGIC => ByteOrder::Little,
        _ if magic == MAGIC.swap_bytes() => ByteOrder::Big,
        _ if magic == MAGIC_VERSION_1 || magic == MAGIC_VERSION_1.swap_bytes() => {
            return Err(ReadError::Version1 { path: path.to_owned() });
        }
        _ => return Err(not_perf_data()),
    };
    let cut_off = |needed| ReadError::HeaderCutOff { needed, present: bytes.len() as u64 };
    let mut fields = Cursor::new(&bytes[8..], order);
    match fields.u64().ok_or_else(|| cut_off(PIPE_HEADER_SIZE))? {
        PIPE_HEADER_SIZE => Ok(Head::Pipe(order)),
        size if size >= FILE_HEADER_SIZE => {
            file_header(&mut fields).map(|header| Head::File(order, header)).ok_or_else(|| cut_off(size))
        }
        _ => Err(ReadError::Header { offset: 8, what: "its length is impossible" }),
    }
}

fn file_header(fields: &mut Cursor<'_>) -> Option<FileHeader> {
    Some(FileHeader {
        attr_size: fields.u64()?,
        attrs: section(fields)?,
        data: section(fields)?,
        event_types: section(fields)?,
        features: [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?],
    })
}

fn section(fields: &mut Cursor<'_>) -> Option<Section> {
    Some(Section { offset: fields.u64()?, size: fields.u64()? })
}

/// The bytes of a section, if it lies within the file.
fn section_bytes(bytes: &[u8], section: Section) -> Option<&[u8]> {
    let start = usize::try_from(section.offset).ok()?;
    let size = usize::try_from(section.size).ok()?;
    bytes.get(start..start.checked_add(size)?)
}

/// Where the records of a file lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) range: Range<usize>,
    /// Bytes of records that the header promises beyond the file's end.
    pub(crate) missing: u64,
    /// The recorder came to write the features, its last act.
    pub(crate) finished: bool,
    /// Where those of further files begin, if they come out of several: see [`folder`](crate::folder).
    pub(crate) further_files: Vec<usize>,
}

impl Data {
    /// All of these are there, of one file.
    pub(crate) fn whole(range: Range<usize>) -> Self {
        Self { range, missing: 0, finished: true, further_files: Vec::new() }
    }
}

/// Finds the records. Those of a recorder that was killed go on to the file's end: the header has the
/// size of an earlier moment, or none.
pub(crate) fn data(header: &FileHeader, length: usize) -> Result<Data, ReadError> {
    let outside = || ReadError::Header { offset: 40, what: "the records begin behind the file's end" };
    let start =
        usize::try_from(header.data.offset).ok().filter(|&start| start <= length).ok_or_else(outside)?;
    let present = (length - start) as u64;
    let finished = header.data.size > 0 && header.features != [0; 4];
    let size = if finished || header.data.size > present { header.data.size } else { present };
    let readable = size.min(present);
    Ok(Data {
        range: start..start + readable as usize,
        missing: size - readable,
        finished,
        further_files: Vec::new(),
    })
}

/// The attributes and ids of a file.
pub(crate) fn attrs(
    bytes: &[u8],
    order: ByteOrder,
    header: &FileHeader,
) -> Result<Vec<(EventAttr, Vec<u64>)>, ReadError> {
    let damaged = |offset: u64, what: &'static str| ReadError::Header { offset, what };
    let entry_size = usize::try_from(header.attr_size).unwrap_or(usize::MAX);
    let attr_size = entry_size.checked_sub(SECTION_SIZE).filter(|&size| size >= EventAttr::MIN_SIZE);
    let attr_size = attr_size.ok_or_else(|| damaged(16, "the attributes' length is impossible"))?;
    let table = section_bytes(bytes, header.attrs)
        .ok_or_else(|| damaged(24, "the attributes lie behind the file's end"))?;
    // Damaged sections may overlap, but honest ones hold at most as many ids as the file has room for.
    let mut id_bytes_left = bytes.len() as u64;
    let mut attrs = Vec::new();
    for (index, entry) in table.chunks_exact(entry_size).enumerate() {
        let offset = header.attrs.offset + (index * entry_size) as u64;
        let (attr, place) = entry.split_at(attr_size);
        let attr =
            EventAttr::from_bytes(attr, order).ok_or_else(|| damaged(offset, "an attribute is too short"))?;
        let place = section(&mut Cursor::new(place, order)).unwrap_or_default();
        let ids = section_bytes(bytes, place)
            .filter(|ids| ids.len() as u64 <= id_bytes_left)
            .ok_or_else(|| damaged(offset, "an attribute's ids lie behind the file's end"))?;
        id_bytes_left -= ids.len() as u64;
        attrs.push((attr, Cursor::new(ids, order).u64s()));
    }
    Ok(attrs)
}

/// The feature sections of a file; those that were cut off are left out and counted.
pub(crate) fn features(bytes: &[u8], order: ByteOrder, header: &FileHeader) -> (Features, u32) {
    let mut features = Features::default();
    let table = header.data.offset.checked_add(header.data.size).and_then(|end| usize::try_from(end).ok());
    let Some(table) = table.filter(|_| header.data.size > 0).and_then(|table| bytes.get(table..)) else {
        return (features, 0);
    };
    let mut table = Cursor::new(table, order);
    let mut cut_off = 0;
    for bit in (0..256).filter(|&bit| header.has_feature(bit)) {
        match section(&mut table).and_then(|place| section_bytes(bytes, place)) {
            Some(section) => features.read_section(bit, section, order),
            None => cut_off += 1,
        }
    }
    (features, cut_off)
}
