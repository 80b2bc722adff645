//! On which GPU does each thread launch? As its calls tell that change it.

use rustc_hash::FxHashMap;

/// CUDA's numbers of GPUs, as threads use them.
#[derive(Debug, Default)]
pub(crate) struct GpuThreads {
    /// By thread: the GPUs of its contexts, the current one last; `None`: a context that nobody told of.
    stacks: FxHashMap<u32, Vec<Option<u32>>>,
}

impl GpuThreads {
    /// A thread goes over to a GPU.
    pub fn set(&mut self, tid: u32, ordinal: Option<u32>) {
        let stack = self.stacks.entry(tid).or_default();
        stack.pop();
        stack.push(ordinal);
    }

    /// A thread goes over to a GPU until [`GpuThreads::pop`].
    pub fn push(&mut self, tid: u32, ordinal: Option<u32>) {
        self.stacks.entry(tid).or_default().push(ordinal);
    }

    /// A thread goes back.
    pub fn pop(&mut self, tid: u32) {
        if let Some(stack) = self.stacks.get_mut(&tid) {
            stack.pop();
        }
    }

    /// The GPU that a thread is on, if its calls told.
    pub fn of(&self, tid: u32) -> Option<u32> {
        *self.stacks.get(&tid)?.last()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_where_it_went_last() {
        let mut threads = GpuThreads::default();
        assert_eq!(threads.of(1), None);
        threads.set(1, Some(0));
        threads.set(1, Some(3));
        threads.push(1, Some(2));
        threads.set(2, None);
        assert_eq!((threads.of(1), threads.of(2)), (Some(2), None));
        threads.pop(1);
        assert_eq!(threads.of(1), Some(3));
        threads.pop(1);
        threads.pop(1);
        assert_eq!(threads.of(1), None);
    }
}
