//! The events of a file.

use crate::attr::EventAttr;

/// Where `perf_event_attr` keeps its own size.
const ATTR_SIZE_AT: usize = 4;
/// Size of `perf_event_attr` in its version 5, which perf has read since Linux 4.1.
pub(crate) const COMMON_ATTR_SIZE: usize = 112;

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDesc {
    /// Its name as the recorder or perf would print it.
    pub name: String,
    /// What was asked of the kernel.
    pub attr: EventAttr,
    /// Ids by which its records are told from others'.
    pub ids: Vec<u64>,
}

/// The attributes as bytes, all of the same length and each saying so, since perf reads a table of
/// attributes by the size that each says of itself. Bytes that are zero at the end of all are dropped:
/// an older perf refuses attributes that are longer than those it knows.
pub(crate) fn encoded_attrs(events: &[EventDesc]) -> Vec<Vec<u8>> {
    let mut attrs: Vec<[u8; EventAttr::SIZE]> = events.iter().map(|event| event.attr.to_bytes()).collect();
    let used = |attr: &[u8; EventAttr::SIZE]| attr.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
    let length = attrs.iter().map(used).max().unwrap_or(0).max(COMMON_ATTR_SIZE).next_multiple_of(8);
    let with_size = |attr: &mut [u8; EventAttr::SIZE]| {
        attr[ATTR_SIZE_AT..ATTR_SIZE_AT + 4].copy_from_slice(&(length as u32).to_le_bytes());
        attr[..length].to_vec()
    };
    attrs.iter_mut().map(with_size).collect()
}
