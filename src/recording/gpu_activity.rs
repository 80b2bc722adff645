//! When kernels really ran, in a recording: what the library of `eprof-cupti-injection` wrote, piece by
//! piece, as the payload of samples of an event of its own.

/// Name of the event whose samples carry [`GpuActivity`].
pub const GPU_ACTIVITY_EVENT: &str = "eprof/gpu-activity/";

/// Some whole records of one process (`eprof_cupti_injection::wire`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuActivity<'a> {
    /// The process.
    pub pid: u32,
    /// The records.
    pub records: &'a [u8],
}

impl<'a> GpuActivity<'a> {
    const VERSION: u32 = 1;
    const HEADER: usize = 12;
    /// Most bytes of records: a sample, as any record, holds less than 64 KiB.
    pub const LONGEST: usize = 32 * 1024;

    /// The payload: version, process, length, records; zeros up to 4 more than a multiple of 8.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::HEADER + self.records.len() + 8);
        for word in [Self::VERSION, self.pid, self.records.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.records);
        while bytes.len() % 8 != 4 {
            bytes.push(0);
        }
        bytes
    }

    /// Reads a payload; `None` if it is too short or of another version.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if word(0)? != Self::VERSION {
            return None;
        }
        let end = Self::HEADER.checked_add(word(8)? as usize)?;
        Some(Self { pid: word(4)?, records: bytes.get(Self::HEADER..end)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activity_survives_the_file() {
        let activity = GpuActivity { pid: 7, records: b"some records" };
        let bytes = activity.to_bytes();
        assert_eq!(bytes.len() % 8, 4);
        assert_eq!(GpuActivity::from_bytes(&bytes), Some(activity));
        assert!((0..24).all(|length| GpuActivity::from_bytes(&bytes[..length]).is_none()));
    }
}
