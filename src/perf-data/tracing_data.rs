//! Names of tracepoints, from the copy of tracefs that recorders put beside their samples.

use rustc_hash::FxHashMap;

use crate::bytes::{ByteOrder, Cursor};

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The names (`sched:sched_switch`) of the tracepoints by their numbers, as far as the formats are there.
pub(crate) fn tracepoint_names(tracing_data: &[u8]) -> FxHashMap<u64, String> {
    let mut names = FxHashMap::default();
    collect(tracing_data, &mut names);
    names
}

/// Collects names up to the end, or to where the data are damaged.
fn collect(tracing_data: &[u8], names: &mut FxHashMap<u64, String>) -> Option<()> {
    let mut fields = Cursor::new(tracing_data.strip_prefix(MAGIC)?, ByteOrder::Little);
    let _version = fields.text()?;
    let order = if fields.take(1)? == [0] { ByteOrder::Little } else { ByteOrder::Big };
    let mut fields = Cursor::new(fields.rest(), order);
    let _long_size = fields.take(1)?;
    let _page_size = fields.u32()?;
    for heading in [&b"header_page"[..], b"header_event"] {
        (fields.text()? == heading).then_some(())?;
        sized(&mut fields)?;
    }
    for _ in 0..fields.u32()? {
        // The kernel's own formats; they are of no system.
        sized(&mut fields)?;
    }
    for _ in 0..fields.u32()? {
        let system = fields.text()?;
        for _ in 0..fields.u32()? {
            let format = sized(&mut fields)?;
            if let (Some(id), Some(name)) = (number(format), line(format, b"name: ")) {
                let full =
                    || format!("{}:{}", String::from_utf8_lossy(system), String::from_utf8_lossy(name));
                names.entry(id).or_insert_with(full);
            }
        }
    }
    Some(())
}

/// A file of tracefs: its length, then its text.
fn sized<'a>(fields: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let size = usize::try_from(fields.u64()?).ok()?;
    fields.take(size)
}

/// What follows `key` on the line of a format that begins with it.
fn line<'a>(format: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    format.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(key))
}

fn number(format: &[u8]) -> Option<u64> {
    str::from_utf8(line(format, b"ID: ")?).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(out: &mut Vec<u8>, text: &[u8]) {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text);
    }

    fn tracing_data() -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(b"0.6\0");
        out.extend([0, 8]);
        out.extend(4096u32.to_le_bytes());
        out.extend(b"header_page\0");
        file(&mut out, b"field: u64 timestamp;\n");
        out.extend(b"header_event\0");
        file(&mut out, b"# compressed entry header\n");
        out.extend(1u32.to_le_bytes());
        file(&mut out, b"name: function\nID: 1\n");
        out.extend(2u32.to_le_bytes());
        for (system, name, id) in [("irq", "softirq_entry", 12), ("sched", "sched_switch", 316)] {
            out.extend(system.as_bytes());
            out.push(0);
            out.extend(1u32.to_le_bytes());
            file(&mut out, format!("name: {name}\nID: {id}\nformat:\n\tfield:int x;\n").as_bytes());
        }
        out
    }

    #[test]
    fn tracepoints_are_found_by_their_number() {
        let names = tracepoint_names(&tracing_data());
        assert_eq!(names.get(&316).map(String::as_str), Some("sched:sched_switch"));
        assert_eq!(names.get(&12).map(String::as_str), Some("irq:softirq_entry"));
        assert_eq!(names.get(&1), None);
    }

    #[test]
    fn data_cut_off_anywhere_name_what_precedes_the_cut() {
        let data = tracing_data();
        let known: Vec<usize> =
            (0..=data.len()).map(|length| tracepoint_names(&data[..length]).len()).collect();
        assert!(known.is_sorted() && known.contains(&1));
        assert_eq!((known[0], known[data.len()]), (0, 2));
    }
}
