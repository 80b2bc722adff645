//! The formats of the recorded tracepoints, as perf keeps them: without them it opens no recording of
//! tracepoints.
//!
//! ```text
//! magic, version, byte order, size of a long, size of a page
//! "header_page" and "header_event", each with a 64-bit size and the kernel's text
//! formats of ftrace's own events: how many, then each with a 64-bit size
//! formats by system: how many systems, then name, how many, and each with a 64-bit size
//! kernel symbols and printk formats, each with a 32-bit size; names of commands, with a 64-bit size
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use perf_data::format::event_type;

use crate::machine::{EventSpec, Roots};
use crate::record::ring::page_size;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
const VERSION: &[u8] = b"0.6\0";

/// The section for these events; empty if none of them is a tracepoint.
pub fn collect<'a>(roots: &Roots, events: impl Iterator<Item = &'a EventSpec>) -> Vec<u8> {
    let mut formats: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    let Some(tracefs) = tracefs(roots) else { return Vec::new() };
    for event in events.filter(|event| event.perf_type == event_type::TRACEPOINT) {
        let mut words = event.name.split(':');
        let (Some(system), Some(name)) = (words.next(), words.next()) else { continue };
        let format = fs::read(tracefs.join("events").join(system).join(name).join("format"));
        formats.entry(system).or_default().extend(format.ok());
    }
    if formats.is_empty() { Vec::new() } else { section(&tracefs, &formats) }
}

/// tracefs at its own place, or within debugfs as before Linux 4.1.
fn tracefs(roots: &Roots) -> Option<PathBuf> {
    let places = ["kernel/tracing", "kernel/debug/tracing"];
    places.iter().map(|place| roots.sysfs.join(place)).find(|place| place.join("events").is_dir())
}

fn section(tracefs: &Path, formats: &BTreeMap<&str, Vec<Vec<u8>>>) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(MAGIC);
    out.extend(VERSION);
    out.push(u8::from(cfg!(target_endian = "big")));
    out.push(size_of::<libc::c_long>() as u8);
    out.extend((page_size() as u32).to_le_bytes());
    for name in ["header_page", "header_event"] {
        out.extend(name.as_bytes());
        out.push(0);
        push_text(&fs::read(tracefs.join("events").join(name)).unwrap_or_default(), &mut out);
    }
    // Of ftrace's own events none is recorded.
    out.extend(0u32.to_le_bytes());
    out.extend((formats.len() as u32).to_le_bytes());
    for (system, formats) in formats {
        out.extend(system.as_bytes());
        out.push(0);
        out.extend((formats.len() as u32).to_le_bytes());
        formats.iter().for_each(|format| push_text(format, &mut out));
    }
    // Kernel symbols are told by the recording's mappings; then the printk formats, and no names.
    out.extend(0u32.to_le_bytes());
    let printk = fs::read(tracefs.join("printk_formats")).unwrap_or_default();
    out.extend((printk.len() as u32).to_le_bytes());
    out.extend(printk);
    push_text(b"", &mut out);
    out
}

fn push_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::resolve_events;

    #[test]
    fn each_tracepoints_format_is_kept_under_its_system() {
        let root = tempfile::tempdir().expect("folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join("sys/kernel/tracing").join(path);
            fs::create_dir_all(path.parent().expect("below")).expect("folder");
            fs::write(path, text).expect("file");
        };
        for (name, id) in
            [("sched/sched_switch", "1"), ("sched/sched_waking", "2"), ("irq/irq_handler_entry", "3")]
        {
            write(&format!("events/{name}/id"), id);
            write(&format!("events/{name}/format"), &format!("format of {name}"));
        }
        write("events/header_page", "page");
        let roots = Roots::under(root.path());
        let list = "sched:sched_switch,irq:irq_handler_entry:k,cpu-clock";
        let events = resolve_events(&roots, list).expect("known");
        let section = collect(&roots, events.iter());
        let holds = |text: &str| section.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(section.starts_with(b"\x17\x08\x44tracing0.6\0\0"));
        assert!(
            holds("format of sched/sched_switch")
                && holds("format of irq/irq_handler_entry")
                && holds("page")
        );
        assert!(!holds("format of sched/sched_waking"));
        assert!(collect(&roots, events.iter().skip(2)).is_empty());
    }
}
