//! The frames of a sample: what its callchain, its branches and its unwound stack say.

use std::slice;

use perf_data::record::{BranchStack, Callchain, CpuMode, Sample};

/// A frame of a call stack before it is located.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Where it runs.
    pub mode: CpuMode,
    /// Its address as recorded.
    pub address: u64,
    /// The address is that of the instruction behind the call.
    pub is_return: bool,
}

/// Callchain entries from here on are markers of a change of mode (`PERF_CONTEXT_MAX`).
pub(super) const FIRST_MARKER: u64 = -4095i64 as u64;

/// The frames of a sample, innermost first.
pub fn frames_of(sample: &Sample<'_>, unwound: &[u64]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for_each_frame(sample, unwound, |frame| frames.push(frame));
    frames
}

/// Calls `visit` with the frames of a sample, innermost first: its own address, then the callchain without it, then what
/// was unwound.
pub fn for_each_frame(sample: &Sample<'_>, unwound: &[u64], mut visit: impl FnMut(Frame)) {
    own_frame(sample).into_iter().for_each(&mut visit);
    for_each_caller(sample, unwound, visit);
}

pub(super) fn own_frame(sample: &Sample<'_>) -> Option<Frame> {
    sample.ip.map(|address| Frame { mode: sample.mode, address, is_return: false })
}

/// Calls `visit` with the frames of a sample but its own address, innermost first.
#[inline]
pub(super) fn for_each_caller(sample: &Sample<'_>, unwound: &[u64], visit: impl FnMut(Frame)) {
    match ChainCallers::of(sample, unwound) {
        Some(callers) => callers.for_each(visit),
        None => for_each_of_several(sample, unwound, visit),
    }
}

/// The frames of a sample but its own address, innermost first, where the callchain is all there is, as it mostly is. Nearly all
/// frames of nearly all samples come by here: a loop over them has all it needs in registers.
#[derive(Debug, Clone)]
pub(super) struct ChainCallers<'a> {
    entries: slice::Iter<'a, [u8; 8]>,
    of_sample: CpuMode,
    mode: CpuMode,
    is_return: bool,
    /// The next address is that of the sampled instruction itself, unless it is of another mode.
    may_be_own: bool,
}

impl<'a> ChainCallers<'a> {
    /// `None` where branches that the CPU kept, or what was unwound, say more.
    #[inline(always)]
    pub(super) fn of(sample: &Sample<'a>, unwound: &[u64]) -> Option<Self> {
        (unwound.is_empty() && sample.branch_stack.calls().len() == 0).then(|| Self {
            entries: entries_of(sample.callchain).iter(),
            of_sample: sample.mode,
            mode: sample.mode,
            is_return: false,
            may_be_own: sample.ip.is_some(),
        })
    }
}

impl ChainCallers<'_> {
    /// The mode of the frame that comes next, unless a marker comes before it.
    #[inline(always)]
    pub(super) fn mode(&self) -> CpuMode {
        self.mode
    }

    /// Passes over the return addresses that come next, as long as there are some and `knows` says so of each; how many these are.
    #[inline(always)]
    pub(super) fn pass_returns(&mut self, mut knows: impl FnMut(u64) -> bool) -> usize {
        if !self.is_return {
            return 0;
        }
        let entries = self.entries.as_slice();
        let mut passed = 0;
        for entry in entries {
            let address = u64::from_le_bytes(*entry);
            if address >= FIRST_MARKER || !knows(address) {
                break;
            }
            passed += 1;
        }
        self.entries = entries[passed..].iter();
        passed
    }
}

impl Iterator for ChainCallers<'_> {
    type Item = Frame;

    #[inline(always)]
    fn next(&mut self) -> Option<Frame> {
        loop {
            let address = u64::from_le_bytes(*self.entries.next()?);
            if address >= FIRST_MARKER {
                self.mode = mode_of_marker(address).unwrap_or(self.mode);
                self.is_return = false;
                continue;
            }
            let is_return = std::mem::replace(&mut self.is_return, true);
            if self.may_be_own {
                self.may_be_own = false;
                if !is_other_mode(self.of_sample, self.mode) {
                    continue;
                }
            }
            return Some(Frame { mode: self.mode, address, is_return });
        }
    }
}

/// Where branches that the CPU kept, or what was unwound, say more than the callchain.
#[inline(never)]
fn for_each_of_several(sample: &Sample<'_>, unwound: &[u64], mut visit: impl FnMut(Frame)) {
    let mut mode = sample.mode;
    let mut is_return = false;
    let own = own_entry(sample);
    let calls = if unwound.is_empty() { sample.branch_stack.calls() } else { BranchStack::default().calls() };
    let mut is_in_program = false;
    for (at, address) in sample.callchain.entries().enumerate() {
        if address >= FIRST_MARKER {
            mode = mode_of_marker(address).unwrap_or(mode);
            is_in_program |= mode == CpuMode::User;
            is_return = false;
            continue;
        }
        // Of the program itself branches tell more than frame pointers, but for where it was.
        let is_unwound = mode == CpuMode::User && (!unwound.is_empty() || (is_return && calls.len() > 0));
        if !is_unwound && own != Some(at) {
            visit(Frame { mode, address, is_return });
        }
        is_return = true;
    }
    // Kernel threads have no callers in a program, whatever the CPU still holds.
    if is_in_program {
        let is_placed = is_return || (sample.mode == CpuMode::User && sample.ip.is_some());
        let entered = calls.clone().next().map(|call| call.to).filter(|_| !is_placed);
        let calls = entered.into_iter().chain(calls.map(|call| call.from));
        calls.for_each(|address| visit(Frame { mode: CpuMode::User, address, is_return: false }));
    }
    // The innermost unwound frame is where the program is: the sampled instruction itself, or where it
    // entered the kernel.
    let in_user_mode = sample.mode == CpuMode::User && sample.ip.is_some();
    for (depth, &address) in unwound.iter().enumerate().skip(usize::from(in_user_mode)) {
        visit(Frame { mode: CpuMode::User, address, is_return: depth > 0 });
    }
}

/// The bytes of a callchain before and behind the entry that is the sampled instruction itself.
pub(super) fn around_own<'a>(sample: &Sample<'a>) -> (&'a [u8], &'a [u8]) {
    let chain = sample.callchain;
    match own_entry(sample) {
        Some(own) => (&chain.0[..8 * own], &chain.0[8 * (own + 1)..]),
        None => (chain.0, &[]),
    }
}

/// Which entry of a sample's callchain is the sampled instruction itself: the first that is no marker.
///
/// None is if that entry is of another mode. An event that counts in user mode alone may interrupt the program only when
/// it is in the kernel already; the callchain then begins with the program's frames, since it has no others.
#[inline]
fn own_entry(sample: &Sample<'_>) -> Option<usize> {
    sample.ip?;
    let mut mode = sample.mode;
    for (at, entry) in sample.callchain.entries().enumerate() {
        if entry < FIRST_MARKER {
            return (!is_other_mode(sample.mode, mode)).then_some(at);
        }
        mode = mode_of_marker(entry).unwrap_or(mode);
    }
    None
}

/// Whether an entry of this mode cannot be what a sample of that one interrupted.
#[inline]
fn is_other_mode(of_sample: CpuMode, of_entry: CpuMode) -> bool {
    matches!((of_sample, of_entry), (CpuMode::Kernel, CpuMode::User) | (CpuMode::User, CpuMode::Kernel))
}

/// The entries of a callchain as they lie in the file.
#[inline]
pub(super) fn entries_of(chain: Callchain<'_>) -> &[[u8; 8]] {
    chain.0.as_chunks().0
}

#[inline]
pub(super) fn mode_of_marker(marker: u64) -> Option<CpuMode> {
    match marker as i64 {
        -32 => Some(CpuMode::Hypervisor),
        -128 => Some(CpuMode::Kernel),
        -512 => Some(CpuMode::User),
        -2048 => Some(CpuMode::GuestKernel),
        -2176 => Some(CpuMode::GuestKernel),
        -2560 => Some(CpuMode::GuestUser),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Both ways tell the same of a sample that has a callchain alone.
        #[test]
        fn a_chain_alone_is_as_one_of_several(
            kinds in prop::collection::vec(0usize..7, 0..12),
            mode in prop::sample::select(vec![CpuMode::User, CpuMode::Kernel, CpuMode::Unknown]),
            has_own: bool,
        ) {
            const KINDS: [u64; 7] =
                [-512i64 as u64, -128i64 as u64, -4095i64 as u64, -4096i64 as u64, 0x11, 0x12, 0x13];
            let entries: Vec<u8> = kinds.iter().flat_map(|&kind| KINDS[kind].to_le_bytes()).collect();
            let (ip, callchain) = (has_own.then_some(0x11), Callchain(&entries));
            let sample = Sample { ip, mode, callchain, ..Sample::default() };
            let mut expected = Vec::new();
            for_each_of_several(&sample, &[], |frame| expected.push(frame));
            let callers = ChainCallers::of(&sample, &[]).expect("a chain alone");
            prop_assert_eq!(callers.clone().collect::<Vec<_>>(), &expected[..]);
            // With as many passed over as are known.
            let (mut callers, mut told) = (callers, Vec::new());
            loop {
                let mode = callers.mode();
                callers.pass_returns(|address| {
                    let is_known = address < 0x13;
                    told.extend(is_known.then_some(Frame { mode, address, is_return: true }));
                    is_known
                });
                let Some(frame) = callers.next() else { break };
                told.push(frame);
            }
            prop_assert_eq!(told, expected);
        }
    }

    #[test]
    fn no_marker_is_passed_over_as_a_return_address() {
        for marker in [FIRST_MARKER, -512i64 as u64, u64::MAX] {
            let entries: Vec<u8> =
                [0x11, 0x12, 0x13, marker, 0x14].into_iter().flat_map(u64::to_le_bytes).collect();
            let sample = Sample {
                ip: Some(0x11),
                mode: CpuMode::User,
                callchain: Callchain(&entries),
                ..Sample::default()
            };
            let mut callers = ChainCallers::of(&sample, &[]).expect("a chain alone");
            assert_eq!(callers.next().map(|frame| frame.address), Some(0x12));
            assert_eq!(callers.pass_returns(|_| true), 1, "{marker:#x}");
            let behind = callers.next().map(|frame| (frame.address, frame.is_return));
            assert_eq!(behind, Some((0x14, false)), "{marker:#x}");
        }
    }
}
