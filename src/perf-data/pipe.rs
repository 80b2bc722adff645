//! What recorders say in records instead of header and sections: in pipes, and in files whose sections
//! could not be written any more.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::attr::EventAttr;
use crate::bytes::{ByteOrder, Cursor, until_zero};
use crate::features::{Features, build_id};
use crate::format::{RECORD_HEADER_SIZE, event_update, record_type};
use crate::walk::{Found, Walk};

/// Attributes, names and features found among the records.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    pub(crate) attrs: Vec<(EventAttr, Vec<u64>)>,
    /// Names, numbered by `first_of_id`: for each event id, the first that was announced for it.
    names: Vec<String>,
    first_of_id: FxHashMap<u64, usize>,
    pub(crate) features: Features,
}

/// How far to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everywhere: a pipe has no other place, and some of it may come late.
    All,
    /// Up to the first sample.
    BeforeSamples,
}

/// Collects what the records at `data` in the file announce, up to the first one that is damaged: the
/// reader of the records will come to it and say so.
pub(crate) fn announced(file: &[u8], data: Range<usize>, order: ByteOrder, extent: Extent) -> Announced {
    let mut found = Announced::default();
    let mut walk = Walk::new(file, order, data, 0);
    while let Ok(Some(Found { offset, header, compressed })) = walk.next() {
        if header.kind == record_type::SAMPLE && extent == Extent::BeforeSamples {
            break;
        }
        let end = offset + usize::from(header.size);
        let body = file.get(offset + RECORD_HEADER_SIZE..end).filter(|_| compressed.is_none());
        let (Some(body), Some(appended)) = (body, file.get(end..walk.offset())) else { continue };
        found.take_in(header.kind, header.misc, body, appended, order);
    }
    found
}

impl Announced {
    fn take_in(&mut self, kind: u32, bits: u16, body: &[u8], appended: &[u8], order: ByteOrder) {
        match kind {
            record_type::HEADER_ATTR => self.attrs.extend(attr(body, order)),
            record_type::EVENT_UPDATE => {
                if let Some((id, name)) = name(body, order) {
                    self.first_of_id.entry(id).or_insert(self.names.len());
                    self.names.push(name);
                }
            }
            record_type::HEADER_TRACING_DATA => self.features.tracing_data = appended.to_vec(),
            record_type::HEADER_BUILD_ID => self.features.build_ids.extend(build_id(bits, body, order)),
            record_type::HEADER_FEATURE => {
                let mut fields = Cursor::new(body, order);
                if let Some(bit) = fields.u64().and_then(|bit| u32::try_from(bit).ok()) {
                    self.features.read_section(bit, fields.rest(), order);
                }
            }
            _ => {}
        }
    }

    /// The name announced for an event of these ids: the first, if there are several.
    pub(crate) fn name_of(&self, ids: &[u64]) -> Option<&str> {
        let first = ids.iter().filter_map(|id| self.first_of_id.get(id)).min()?;
        self.names.get(*first).map(String::as_str)
    }
}

/// An attribute of whatever size it says, then its ids.
fn attr(body: &[u8], order: ByteOrder) -> Option<(EventAttr, Vec<u64>)> {
    let attr = EventAttr::from_bytes(body, order)?;
    let own_size = Cursor::new(body.get(4..8)?, order).u32()? as usize;
    let ids = body.get(own_size.max(EventAttr::MIN_SIZE)..).unwrap_or_default();
    Some((attr, Cursor::new(ids, order).u64s()))
}

fn name(body: &[u8], order: ByteOrder) -> Option<(u64, String)> {
    let mut fields = Cursor::new(body, order);
    let kind = fields.u64()?;
    let id = fields.u64()?;
    let name = String::from_utf8_lossy(until_zero(fields.rest())).into_owned();
    (kind == event_update::NAME).then_some((id, name))
}
