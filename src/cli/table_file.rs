//! Files that hold tables of others, as text.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use eprof::tables::decode;

/// What is no file ends somewhere, or is no table.
const MOST_BYTES: u64 = 1 << 30;

/// Reads a file, or standard input if its name is `-`.
pub fn read(path: &Path) -> anyhow::Result<String> {
    read_bytes(path)
        .map_err(anyhow::Error::from)
        .and_then(|bytes| Ok(decode(bytes)?))
        .with_context(|| format!("cannot read {}", path.display()))
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        read_limited(io::stdin().lock(), &mut bytes)?;
        return Ok(bytes);
    }
    let mut file = File::open(path)?;
    if file.metadata()?.is_file() {
        file.read_to_end(&mut bytes)?;
    } else {
        read_limited(file, &mut bytes)?;
    }
    Ok(bytes)
}

fn read_limited(from: impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    from.take(MOST_BYTES + 1).read_to_end(bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 1 GiB: that is no table"));
    }
    Ok(())
}
