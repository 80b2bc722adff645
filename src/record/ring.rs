//! The ring of records that the kernel fills and eprof empties, one per CPU.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// Where the mapping's first page keeps the count of bytes written (`perf_event_mmap_page.data_head`);
/// the count of bytes read follows it.
const DATA_HEAD_AT: usize = 1024;

/// A ring mapped from a counter's descriptor.
#[derive(Debug)]
pub struct Ring {
    map: MmapRaw,
    data_start: usize,
    data_size: u64,
    /// Bytes read so far; the kernel's copy of it is behind while they are being written out.
    tail: u64,
}

impl Ring {
    /// Maps the ring of a counter, with `data_size` bytes for records (a power of two of pages).
    ///
    /// # Errors
    /// `EPERM` when the user's locked memory is used up, and whatever else `mmap` says.
    pub fn map(counter: BorrowedFd<'_>, data_size: usize) -> io::Result<Self> {
        let page = page_size();
        let map = MmapOptions::new().len(page + data_size).map_raw(counter.as_raw_fd())?;
        Ok(Self { map, data_start: page, data_size: data_size as u64, tail: 0 })
    }

    /// The records that have come since [`Ring::release`] was last called, in one piece or, where the
    /// ring's end was passed, in two.
    pub fn unread(&self) -> Unread<'_> {
        // Acquire: the kernel's records were written before it moved the head.
        let head = self.counter(DATA_HEAD_AT).load(Ordering::Acquire);
        let length = head.wrapping_sub(self.tail).min(self.data_size);
        let start = self.tail % self.data_size;
        let first = length.min(self.data_size - start);
        Unread { pieces: [self.data(start, first), self.data(0, length - first)], head }
    }

    /// Gives the room of records up to `head` back to the kernel.
    pub fn release(&mut self, head: u64) {
        self.tail = head;
        // Release: the records were read before the kernel may overwrite them.
        self.counter(DATA_HEAD_AT + 8).store(head, Ordering::Release);
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped as long as `self` lives, `at` is one of two aligned u64s in
        // it, and the kernel accesses them as whole words too.
        unsafe { &*self.map.as_ptr().add(at).cast::<AtomicU64>() }
    }

    fn data(&self, start: u64, length: u64) -> &[u8] {
        debug_assert!(start + length <= self.data_size);
        // SAFETY: the range lies in the mapped data pages, and between tail and head, where the kernel
        // writes nothing until `release` moves the tail, which needs `&mut self`.
        unsafe {
            std::slice::from_raw_parts(
                self.map.as_ptr().add(self.data_start + start as usize),
                length as usize,
            )
        }
    }
}

/// Records that wait in a ring.
#[derive(Debug, Clone, Copy)]
pub struct Unread<'a> {
    /// Their bytes; the second piece goes on where the first ends, and may be empty.
    pub pieces: [&'a [u8]; 2],
    /// What to give to [`Ring::release`] when they have been dealt with.
    pub head: u64,
}

impl Unread<'_> {
    /// Bytes in both pieces.
    pub fn len(&self) -> usize {
        self.pieces[0].len() + self.pieces[1].len()
    }

    /// Nothing has come.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bytes of a page of memory.
pub fn page_size() -> usize {
    // SAFETY: sysconf only reads a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 256;

    /// A ring that this process fills itself, as the kernel fills those of counters. Miri runs it too: see
    /// benches/RESULTS.md.
    fn ring() -> Ring {
        let page = page_size();
        let map = MmapRaw::from(MmapOptions::new().len(page + SIZE).map_anon().expect("memory"));
        Ring { map, data_start: page, data_size: SIZE as u64, tail: 0 }
    }

    /// The kernel's end of a ring.
    #[derive(Clone, Copy)]
    struct Kernel {
        start: *mut u8,
        head: u64,
    }

    // SAFETY: as in the kernel, what is written is handed over by the head, and taken back by the tail.
    unsafe impl Send for Kernel {}

    impl Kernel {
        fn of(ring: &Ring) -> Self {
            Self { start: ring.map.as_mut_ptr(), head: 0 }
        }

        fn word(&self, at: usize) -> &AtomicU64 {
            // SAFETY: an aligned word in the first page of a ring that outlives this end.
            unsafe { &*self.start.add(at).cast::<AtomicU64>() }
        }

        /// Writes a word if there is room, as `perf_output_begin` does.
        fn write(&mut self, word: u64) -> bool {
            let tail = self.word(DATA_HEAD_AT + 8).load(Ordering::Acquire);
            if self.head + 8 - tail > SIZE as u64 {
                return false;
            }
            let at = page_size() + (self.head % SIZE as u64) as usize;
            // SAFETY: eight aligned bytes in the ring's data, which the reader has given back.
            unsafe { self.start.add(at).cast::<u64>().write(word) };
            self.head += 8;
            self.word(DATA_HEAD_AT).store(self.head, Ordering::Release);
            true
        }
    }

    fn words(unread: &Unread<'_>) -> Vec<u64> {
        let bytes = unread.pieces.concat();
        bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight"))).collect()
    }

    #[test]
    fn records_come_in_two_pieces_at_the_rings_end() {
        let mut ring = ring();
        let mut kernel = Kernel::of(&ring);
        assert!(ring.unread().is_empty());
        assert!((0..24).all(|word| kernel.write(word)));
        let head = ring.unread().head;
        ring.release(head);
        assert!((24..40).all(|word| kernel.write(word)));
        let unread = ring.unread();
        assert_eq!((unread.pieces[0].len(), unread.pieces[1].len()), (64, 64));
        assert_eq!(words(&unread), (24..40).collect::<Vec<u64>>());
        assert!((40..56).all(|word| kernel.write(word)));
        assert!(!kernel.write(56), "full");
        assert_eq!(ring.unread().len(), SIZE);
    }

    #[test]
    fn what_one_side_writes_the_other_reads_whole() {
        const WORDS: u64 = 2000;
        let mut ring = ring();
        let mut kernel = Kernel::of(&ring);
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let kernel = &mut kernel;
                for word in 0..WORDS {
                    while !kernel.write(word) {
                        std::thread::yield_now();
                    }
                }
            });
            while (seen.len() as u64) < WORDS {
                let unread = ring.unread();
                let (new, head) = (words(&unread), unread.head);
                seen.extend(new);
                ring.release(head);
                std::thread::yield_now();
            }
        });
        assert_eq!(seen, (0..WORDS).collect::<Vec<u64>>());
    }
}
