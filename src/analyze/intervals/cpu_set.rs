//! Sets of CPUs.

/// A set of CPUs, a bit for each.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CpuSet(Vec<u64>);

impl CpuSet {
    /// Kernels end at 8192 CPUs; a number beyond is damage in the file.
    pub const LAST: u32 = 8191;

    #[inline]
    pub fn insert(&mut self, cpu: u32) {
        let (word, bit) = Self::place(cpu);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    #[inline]
    pub fn contains(&self, cpu: u32) -> bool {
        let (word, bit) = Self::place(cpu);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }

    fn place(cpu: u32) -> (usize, u64) {
        let cpu = cpu.min(Self::LAST);
        (cpu as usize / 64, 1 << (cpu % 64))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> u32 {
        self.0.iter().map(|bits| bits.count_ones()).sum()
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<T: IntoIterator<Item = u32>>(cpus: T) -> Self {
        let mut set = Self::default();
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_counted_once() {
        let set: CpuSet = [3, 64, 3, 300].into_iter().collect();
        assert_eq!(set.len(), 3);
        assert!([3, 64, 300].into_iter().all(|cpu| set.contains(cpu)));
        assert!([0, 65, 301, 100_000].into_iter().all(|cpu| !set.contains(cpu)));
        assert!(CpuSet::default().is_empty() && !set.is_empty());
    }

    #[test]
    fn a_wild_number_takes_no_memory() {
        let set: CpuSet = [u32::MAX].into_iter().collect();
        assert_eq!(set.0.len(), 128);
    }
}
