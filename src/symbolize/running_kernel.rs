//! Is the running kernel the one that was recorded?

use std::fs;

use super::debug_file::same_build_id;
use super::elf::hex;
use super::error::SymbolizeError;
use super::options::SymbolizeOptions;

/// Note type and owner of a build-id.
const NT_GNU_BUILD_ID: u32 = 3;
const NOTE_OWNER: &[u8] = b"GNU\0";
/// Is the running kernel the recorded one?
pub(crate) fn check_running(
    options: &SymbolizeOptions,
    recorded: Option<&[u8]>,
) -> Result<(), SymbolizeError> {
    if let Some(recorded) = recorded {
        let running = fs::read(options.sysfs.join("kernel/notes")).ok().and_then(|notes| build_id_of(&notes));
        return match running {
            Some(running) if same_build_id(&running, recorded) => Ok(()),
            running => Err(SymbolizeError::KernelDiffers {
                running: running.map_or_else(|| String::from("without build-id"), |id| hex(&id)),
                recorded: hex(recorded),
            }),
        };
    }
    let Some(recorded) = &options.kernel_release else { return Err(SymbolizeError::KernelUnknown) };
    let running = fs::read_to_string(options.procfs.join("sys/kernel/osrelease")).unwrap_or_default();
    if running.trim_end() == recorded {
        return Ok(());
    }
    Err(SymbolizeError::KernelDiffers { running: running.trim_end().to_owned(), recorded: recorded.clone() })
}

/// The build-id in the notes of a kernel: `/sys/kernel/notes`.
fn build_id_of(notes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = notes;
    loop {
        let (header, behind) = rest.split_at_checked(12)?;
        let word = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let (name_size, size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let (name, behind) = behind.split_at_checked(name_size.checked_next_multiple_of(4)?)?;
        let id = behind.get(..size)?;
        if kind == NT_GNU_BUILD_ID && name == NOTE_OWNER {
            return Some(id.to_vec());
        }
        rest = behind.get(size.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn note(owner: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [owner.len() as u32, content.len() as u32, kind] {
            note.extend(word.to_ne_bytes());
        }
        for part in [owner, content] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let notes = [note(b"Linux\0", 257, b"\0\0\0\0"), note(b"GNU\0", 3, &[1, 2, 3, 4, 5])].concat();
        assert_eq!(build_id_of(&notes), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!(build_id_of(&note(b"GNU\0", 1, b"abi!")), None);
    }

    proptest! {
        #[test]
        fn any_notes_are_parsed(notes in proptest::collection::vec(any::<u8>(), 0..100)) {
            build_id_of(&notes);
        }
    }
}
