//! Samples.

use crate::bytes::{Words, u32_at, u64_at};
use crate::error::Missing;
use crate::format::sample_type;
use crate::layout::EventLayout;
use crate::record::{BranchStack, Callchain, CpuMode, Sample, UserRegisters};

/// Fields whose place depends on those before them.
const VARIABLE: u64 = sample_type::READ
    | sample_type::CALLCHAIN
    | sample_type::RAW
    | sample_type::BRANCH_STACK
    | sample_type::REGS_USER
    | sample_type::STACK_USER
    | BEHIND_STACK;

/// Fields behind the user stack. A profile needs none of them but the control group; the others are only passed over.
const BEHIND_STACK: u64 = sample_type::WEIGHT
    | sample_type::WEIGHT_STRUCT
    | sample_type::DATA_SRC
    | sample_type::TRANSACTION
    | sample_type::REGS_INTR
    | sample_type::PHYS_ADDR
    | sample_type::CGROUP
    | sample_type::DATA_PAGE_SIZE
    | sample_type::CODE_PAGE_SIZE
    | sample_type::AUX;

/// Writes what a sample says into `sample`, which is empty: there it will be read, and nothing so large is copied.
#[inline(always)]
pub(super) fn decode_into<'a>(
    layout: &EventLayout,
    misc: u16,
    body: &'a [u8],
    sample: &mut Sample<'a>,
) -> Result<(), Missing> {
    let places = &layout.sample;
    let variable = body.get(8 * usize::from(places.fixed_words)..).ok_or("fixed fields")?;
    let fixed = Words::new(body);
    sample.ip = fixed.u64(places.ip);
    sample.address = fixed.u64(places.address);
    sample.mode = CpuMode::of_bits(misc);
    sample.period = fixed.u64(places.period).or(layout.fixed_period);
    match layout.sample_type & VARIABLE {
        0 => Ok(()),
        // As perf and others record without copies of stacks.
        sample_type::CALLCHAIN => decode_callchain(&mut Fields(variable), sample),
        _ => decode_variable(layout, variable, sample),
    }
}

#[inline(always)]
fn decode_callchain<'a>(fields: &mut Fields<'a>, sample: &mut Sample<'a>) -> Result<(), Missing> {
    let count = fields.u64().ok_or("callchain")?;
    sample.callchain = Callchain(fields.array(count, 8).ok_or("callchain")?);
    Ok(())
}

#[inline]
fn decode_variable<'a>(
    layout: &EventLayout,
    fields: &'a [u8],
    sample: &mut Sample<'a>,
) -> Result<(), Missing> {
    let mut fields = Fields(fields);
    if layout.samples(sample_type::READ) {
        let size = read_size(layout, fields.0).ok_or("counter values")?;
        sample.read = fields.take(size).ok_or("counter values")?;
    }
    if layout.samples(sample_type::CALLCHAIN) {
        decode_callchain(&mut fields, sample)?;
    }
    if layout.samples(sample_type::RAW) {
        let size = fields.u32().ok_or("raw data")?;
        sample.raw = fields.array(size.into(), 1).ok_or("raw data")?;
    }
    if layout.samples(sample_type::BRANCH_STACK) {
        let (words_before, words_behind) = layout.branch_words;
        let count = fields.u64().ok_or("branch stack")?;
        fields.take(8 * words_before).ok_or("branch stack")?;
        let bytes = fields.array(count, 24).ok_or("branch stack")?;
        sample.branch_stack = BranchStack { bytes, are_calls: layout.branches_are_calls };
        fields.array(count, 8 * words_behind).ok_or("branch counters")?;
    }
    if layout.samples(sample_type::REGS_USER) {
        sample.user_registers = registers(&mut fields, layout.user_registers).ok_or("user registers")?;
    }
    if layout.samples(sample_type::STACK_USER) {
        sample.user_stack = user_stack(&mut fields).ok_or("user stack")?;
    }
    if layout.samples(BEHIND_STACK) {
        sample.cgroup = behind_stack(layout, &mut fields)?;
    }
    Ok(())
}

/// Bytes of the counter values that `fields` begins with.
#[inline]
fn read_size(layout: &EventLayout, fields: &[u8]) -> Option<usize> {
    if !layout.reads_group {
        return Some(layout.read_size);
    }
    let (before, each) = layout.group_size;
    let count = usize::try_from(u64_at(fields, 0)?).ok()?;
    count.checked_mul(each)?.checked_add(before)
}

/// Registers behind their ABI word: `Some(None)` if the task had none (a kernel thread).
#[inline]
fn registers<'a>(fields: &mut Fields<'a>, mask: u64) -> Option<Option<UserRegisters<'a>>> {
    const ABI_NONE: u64 = 0;
    const ABI_64: u64 = 2;
    let abi = fields.u64()?;
    if abi == ABI_NONE {
        return Some(None);
    }
    let values = fields.take(8 * mask.count_ones() as usize)?;
    Some(Some(UserRegisters { is_64bit: abi == ABI_64, mask, values }))
}

/// The copied stack: room for it, its bytes, and how many of them are real.
#[inline]
fn user_stack<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let room = fields.u64()?;
    if room == 0 {
        return Some(&[]);
    }
    let stack = fields.array(room, 1)?;
    let filled = usize::try_from(fields.u64()?).unwrap_or(usize::MAX);
    Some(&stack[..filled.min(stack.len())])
}

/// Goes through the fields behind the user stack, and gives the control group.
fn behind_stack(layout: &EventLayout, fields: &mut Fields<'_>) -> Result<Option<u64>, Missing> {
    let words = |mask: u64| 8 * (layout.sample_type & mask).count_ones() as usize;
    // WEIGHT and WEIGHT_STRUCT are two readings of one word.
    let weight = 8 * usize::from(layout.samples(sample_type::WEIGHT | sample_type::WEIGHT_STRUCT));
    fields
        .take(weight + words(sample_type::DATA_SRC | sample_type::TRANSACTION))
        .ok_or("weight, data source or transaction")?;
    if layout.samples(sample_type::REGS_INTR) {
        registers(fields, layout.interrupt_registers).ok_or("interrupt registers")?;
    }
    fields.take(words(sample_type::PHYS_ADDR)).ok_or("physical address")?;
    let cgroup = match layout.samples(sample_type::CGROUP) {
        true => Some(fields.u64().ok_or("control group")?),
        false => None,
    };
    fields.take(words(sample_type::DATA_PAGE_SIZE | sample_type::CODE_PAGE_SIZE)).ok_or("page sizes")?;
    if layout.samples(sample_type::AUX) {
        let size = fields.u64().ok_or("hardware trace")?;
        fields.array(size, 1).ok_or("hardware trace")?;
    }
    Ok(cgroup)
}

/// The bytes not decoded yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    #[inline]
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn array(&mut self, count: u64, element: usize) -> Option<&'a [u8]> {
        self.take(usize::try_from(count).ok()?.checked_mul(element)?)
    }

    #[inline]
    fn u64(&mut self) -> Option<u64> {
        u64_at(self.take(8)?, 0)
    }

    #[inline]
    fn u32(&mut self) -> Option<u32> {
        u32_at(self.take(4)?, 0)
    }
}
