//! How much memory an analysis may take, and what it takes it for.
//!
//! What grows with a recording is the number of distinct call stacks. All else is bounded by the program (its addresses,
//! functions and threads) or by the rings (one round of records), and where it is not, as for addresses that a recorder took
//! for code, they are folded into one. So a limit is a limit of tables: of the tree of
//! callers, which the thread that gathers makes, and of the cells, which the one that attributes makes. Each of the
//! two has a share of its own and asks nobody: whether a recording is too large for a limit depends on the
//! recording alone, and not on which thread was ahead.
//!
//! Tables are counted by what they take at their largest: while they grow, when a table of keys stands beside
//! one of twice the size, and later when a report or a picture is made from them.

use std::fmt;

/// Bytes of anonymous memory that an analysis and what is made from it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryLimit(usize);

/// A limit below [`MemoryLimit::LEAST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("with less than {} of memory no recording can be analyzed", MemoryLimit::LEAST)]
pub struct TooLittleMemory;

const MIB: usize = 1 << 20;
/// What is taken beside the tables: steps on their way between two threads (21 MB), a round of the rings, names, and what each
/// thread keeps of its own while trees are walked and drawn. Flamegraphs of 2.9 million samples took 53 to 73 MiB with 64M,
/// 83 to 102 with 96M and 97 to 106 with 128M: what is more is debug information, which is not counted.
const BESIDE_TABLES: usize = 56 * MIB;

impl MemoryLimit {
    /// No limit but the machine's.
    pub const NONE: Self = Self(usize::MAX);
    /// The least that is of use.
    pub const LEAST: Self = Self(64 * MIB);

    /// A limit of so many bytes.
    ///
    /// # Errors
    /// [`TooLittleMemory`] below [`MemoryLimit::LEAST`].
    pub fn from_bytes(bytes: usize) -> Result<Self, TooLittleMemory> {
        if bytes < Self::LEAST.0 { Err(TooLittleMemory) } else { Ok(Self(bytes)) }
    }

    /// In bytes.
    pub fn bytes(self) -> usize {
        self.0
    }

    /// The limit of each of so many analyses that are kept at the same time, when together they may take this. What an
    /// analysis takes beside its tables is given back before the next one begins.
    pub fn shared_by(self, analyses: usize) -> Self {
        self.shared_by_some_at_once(analyses, 1)
    }

    /// The same where `at_once` analyses are made at the same time.
    fn shared_by_some_at_once(self, analyses: usize, at_once: usize) -> Self {
        let tables = self.0.saturating_sub(BESIDE_TABLES.saturating_mul(at_once));
        Self(BESIDE_TABLES.min(self.0).saturating_add(tables / analyses.max(1)))
    }

    /// The limit of each of so many analyses that are kept at the same time, and how many of them may be made at the same time:
    /// an eighth of the memory is for what these take beside their tables. The limit is the same on machines of few and
    /// of many CPUs.
    pub fn shared_at_once(self, analyses: usize) -> (Self, usize) {
        let at_once = (self.0 / 8 / BESIDE_TABLES).clamp(1, analyses.max(1));
        (self.shared_by_some_at_once(analyses, at_once), at_once)
    }

    /// What the tables of a whole profile may take, with call stacks or without.
    pub(crate) fn of_whole(self, stacks: bool) -> TableLimits {
        TableLimits::of_bytes(self.0.saturating_sub(BESIDE_TABLES), self.of_addresses(), stacks)
    }

    /// What the tables of one part of a profile may take: a third of it, for the next part's are begun while joules
    /// still come to this one's, and what is added up from parts needs room too.
    pub(crate) fn of_part(self, stacks: bool) -> TableLimits {
        TableLimits::of_bytes(self.of_sums(), self.of_addresses(), stacks)
    }

    /// What addresses of code may take. Those of a program are few beside this: only where its recorder took anything
    /// for return addresses are there more.
    fn of_addresses(self) -> usize {
        self.0 / 3
    }

    /// What may be taken by what is added up from parts.
    pub(crate) fn of_sums(self) -> usize {
        self.0.saturating_sub(BESIDE_TABLES) / 3
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", self.0 / MIB)
    }
}

/// Bytes that the tables of the two halves of a pass may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableLimits {
    /// Call paths.
    pub paths: usize,
    /// Cells.
    pub cells: usize,
    /// Addresses of code, with their names and what reports say of them.
    pub addresses: usize,
}

impl TableLimits {
    fn of_bytes(bytes: usize, addresses: usize, stacks: bool) -> Self {
        // A deep stack that is like no other takes twenty places in the tree and one cell.
        let cells = if stacks { bytes / 3 } else { bytes };
        Self { paths: bytes - cells, cells, addresses }
    }
}

/// A key in a table that most samples look into: 16 bytes in an entry, of which down to three eighths are
/// taken; half as much again while it grows.
pub(crate) const BYTES_PER_KEY: usize = 64;
/// An address of code: itself and its place in tables that grow, its function and name, and its row in a report, where
/// it has a function of its own.
pub(crate) const BYTES_PER_ADDRESS: usize = 800;
/// A place in the tree of callers while it is made.
pub(crate) const BYTES_PER_CALLER: usize = 8;
/// The same when a call tree is drawn: who it calls, its stacks, how many these are, and what it weighs.
pub(crate) const BYTES_PER_DRAWN_CALLER: usize = 32;
/// A cell without its joules: its parts and counts, then the cell, and the row that it is in.
pub(crate) const BYTES_PER_CELL: usize = 112;
/// A stack: the stack itself, its entry in a table that grows, and sums of it.
pub(crate) const BYTES_PER_STACK: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_given_out_is_less_than_the_limit() {
        assert_eq!(MemoryLimit::from_bytes(MemoryLimit::LEAST.bytes() - 1), Err(TooLittleMemory));
        let error = TooLittleMemory.to_string();
        assert_eq!(error, "with less than 64 MiB of memory no recording can be analyzed");
        for limit in
            [MemoryLimit::LEAST, MemoryLimit::from_bytes(1 << 30).expect("enough"), MemoryLimit::NONE]
        {
            for stacks in [false, true] {
                let TableLimits { paths, cells, .. } = limit.of_whole(stacks);
                assert!(cells > 0 && paths + cells < limit.bytes());
                let of_two = limit.shared_by(2).of_whole(stacks);
                assert!(2 * (of_two.paths + of_two.cells) <= paths + cells);
                let TableLimits { paths, cells, .. } = limit.of_part(stacks);
                assert!(cells > 0 && 2 * (paths + cells) + limit.of_sums() < limit.bytes());
            }
        }
    }

    /// 356 MiB, of which 56 are taken beside the tables.
    #[test]
    fn limits_by_hand() {
        assert_eq!(MemoryLimit::from_bytes(64 << 20), Ok(MemoryLimit::LEAST), "the least is enough");
        let limit = MemoryLimit::from_bytes(356 << 20).expect("enough");
        assert_eq!((limit.to_string().as_str(), limit.bytes()), ("356 MiB", 356 << 20));
        let in_mib = |limits: TableLimits| {
            assert_eq!(limits.addresses, (356 << 20) / 3);
            (limits.paths >> 20, limits.cells >> 20)
        };
        assert_eq!((in_mib(limit.of_whole(true)), in_mib(limit.of_whole(false))), ((200, 100), (0, 300)));
        assert_eq!((in_mib(limit.of_part(true)), in_mib(limit.of_part(false))), ((66, 33), (0, 100)));
        assert_eq!(limit.of_sums() >> 20, 100);
        assert_eq!(limit.shared_by(3).bytes() >> 20, 156);
        assert_eq!((limit.shared_by(0), limit.shared_by(1)), (limit, limit));
        // An eighth of it is no more than one analysis needs; of 1792 MiB four can be made at once, and 1568 are for tables.
        assert_eq!(limit.shared_at_once(3), (limit.shared_by(3), 1));
        let large = MemoryLimit::from_bytes(1792 << 20).expect("enough");
        let (of_each, at_once) = large.shared_at_once(10);
        assert_eq!((of_each.bytes() >> 20, at_once), (56 + 156, 4));
        assert_eq!(large.shared_at_once(2).1, 2);
    }
}
