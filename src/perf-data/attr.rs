//! `perf_event_attr`: what was asked of the kernel for an event.

use crate::bytes::{ByteOrder, Cursor};
use crate::format::{branch_sample_type, read_format, sample_type};

/// Bits of [`EventAttr::flags`].
pub mod flag {
    /// Off until enabled.
    pub const DISABLED: u64 = 1 << 0;
    /// Children of the task are counted too.
    pub const INHERIT: u64 = 1 << 1;
    /// Must always be on a counter.
    pub const PINNED: u64 = 1 << 2;
    /// Not while programs run.
    pub const EXCLUDE_USER: u64 = 1 << 4;
    /// Not while the kernel runs.
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    /// Not while a hypervisor runs.
    pub const EXCLUDE_HV: u64 = 1 << 6;
    /// Not while idle.
    pub const EXCLUDE_IDLE: u64 = 1 << 7;
    /// Record mappings of code.
    pub const MMAP: u64 = 1 << 8;
    /// Record names of tasks.
    pub const COMM: u64 = 1 << 9;
    /// `sample_period` is a frequency in hertz.
    pub const FREQ: u64 = 1 << 10;
    /// Counts of inherited events are kept apart by task.
    pub const INHERIT_STAT: u64 = 1 << 11;
    /// Enabled by the next exec.
    pub const ENABLE_ON_EXEC: u64 = 1 << 12;
    /// Record births and deaths of tasks.
    pub const TASK: u64 = 1 << 13;
    /// `wakeup` counts bytes, not events.
    pub const WATERMARK: u64 = 1 << 14;
    /// Lowest bit of the two of `precise_ip`.
    pub const PRECISE_IP_SHIFT: u32 = 15;
    /// Record mappings of data.
    pub const MMAP_DATA: u64 = 1 << 17;
    /// Records other than samples end with a `sample_id`.
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    /// Not while the host runs.
    pub const EXCLUDE_HOST: u64 = 1 << 19;
    /// Not while a guest runs.
    pub const EXCLUDE_GUEST: u64 = 1 << 20;
    /// No kernel frames in callchains.
    pub const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
    /// No user frames in callchains.
    pub const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    /// Mappings come as MMAP2.
    pub const MMAP2: u64 = 1 << 23;
    /// Names say whether exec changed them.
    pub const COMM_EXEC: u64 = 1 << 24;
    /// Times are of the clock `clockid`.
    pub const USE_CLOCKID: u64 = 1 << 25;
    /// Record context switches.
    pub const CONTEXT_SWITCH: u64 = 1 << 26;
    /// Record kernel symbols that come and go.
    pub const KSYMBOL: u64 = 1 << 29;
    /// Record BPF programs that come and go.
    pub const BPF_EVENT: u64 = 1 << 30;
    /// Record control groups that are made (Linux 5.7).
    pub const CGROUP: u64 = 1 << 32;
    /// Mappings carry build-ids instead of inodes.
    pub const BUILD_ID: u64 = 1 << 34;
}

/// What was asked of the kernel for an event: `perf_event_attr` of any version.
///
/// Fields that the recording's kernel or recorder did not know yet are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventAttr {
    /// The PMU: one of [`crate::format::event_type`] or a number from sysfs (`type`).
    pub kind: u32,
    /// Which of the PMU's events.
    pub config: u64,
    /// Events between samples; hertz with [`flag::FREQ`].
    pub sample_period: u64,
    /// What samples hold: bits of [`crate::format::sample_type`].
    pub sample_type: u64,
    /// What counter values hold: bits of [`crate::format::read_format`].
    pub read_format: u64,
    /// Bits of [`flag`], as a little-endian machine lays out the bit field.
    pub flags: u64,
    /// Events, or bytes with [`flag::WATERMARK`], until the recorder is woken.
    pub wakeup: u32,
    /// Kind of breakpoint.
    pub breakpoint_type: u32,
    /// More of `config`; a breakpoint's address.
    pub config1: u64,
    /// More of `config`; a breakpoint's length.
    pub config2: u64,
    /// Which branches are recorded.
    pub branch_sample_type: u64,
    /// Which user registers are recorded.
    pub sample_regs_user: u64,
    /// Bytes of user stack to copy.
    pub sample_stack_user: u32,
    /// Clock of the times, with [`flag::USE_CLOCKID`].
    pub clockid: i32,
    /// Which registers at the interrupt are recorded.
    pub sample_regs_intr: u64,
    /// Bytes of AUX area until the recorder is woken.
    pub aux_watermark: u32,
    /// Longest callchain.
    pub sample_max_stack: u16,
    /// Bytes of AUX area in a sample.
    pub aux_sample_size: u32,
    /// Data of the signal to send.
    pub sig_data: u64,
    /// More of `config`.
    pub config3: u64,
}

impl EventAttr {
    /// Bytes of the first version (Linux 2.6.31); the shortest there is.
    pub const MIN_SIZE: usize = 64;
    /// Bytes that [`EventAttr::to_bytes`] writes: up to `config3` (Linux 6.3).
    pub const SIZE: usize = 136;

    /// Reads an attribute of whatever size its own `size` field says, at most all of `bytes`.
    ///
    /// `None` if `bytes` is shorter than the shortest attribute.
    pub fn from_bytes(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let own_size = Cursor::new(bytes.get(4..8)?, order).u32()? as usize;
        // perf of 2009 left the size 0.
        let size = own_size.max(Self::MIN_SIZE).min(bytes.len());
        let mut fields = Cursor::new(bytes.get(..size)?, order);
        let kind = fields.u32()?;
        fields.u32()?;
        let mut attr = Self {
            kind,
            config: fields.u64()?,
            sample_period: fields.u64()?,
            sample_type: fields.u64()?,
            read_format: fields.u64()?,
            flags: bit_field(fields.take(8)?, order)?,
            wakeup: fields.u32()?,
            breakpoint_type: fields.u32()?,
            config1: fields.u64()?,
            ..Self::default()
        };
        // From here on every field may be missing, and then so are all that follow.
        attr.read_later_fields(&mut fields);
        Some(attr)
    }

    fn read_later_fields(&mut self, fields: &mut Cursor<'_>) -> Option<()> {
        self.config2 = fields.u64()?;
        self.branch_sample_type = fields.u64()?;
        self.sample_regs_user = fields.u64()?;
        self.sample_stack_user = fields.u32()?;
        self.clockid = fields.u32()? as i32;
        self.sample_regs_intr = fields.u64()?;
        self.aux_watermark = fields.u32()?;
        self.sample_max_stack = fields.u16()?;
        fields.u16()?;
        self.aux_sample_size = fields.u32()?;
        fields.u32()?;
        self.sig_data = fields.u64()?;
        self.config3 = fields.u64()?;
        Some(())
    }

    /// The attribute as it lies in a little-endian file.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &self.kind.to_le_bytes());
        put(4, &(Self::SIZE as u32).to_le_bytes());
        put(8, &self.config.to_le_bytes());
        put(16, &self.sample_period.to_le_bytes());
        put(24, &self.sample_type.to_le_bytes());
        put(32, &self.read_format.to_le_bytes());
        put(40, &self.flags.to_le_bytes());
        put(48, &self.wakeup.to_le_bytes());
        put(52, &self.breakpoint_type.to_le_bytes());
        put(56, &self.config1.to_le_bytes());
        put(64, &self.config2.to_le_bytes());
        put(72, &self.branch_sample_type.to_le_bytes());
        put(80, &self.sample_regs_user.to_le_bytes());
        put(88, &self.sample_stack_user.to_le_bytes());
        put(92, &self.clockid.to_le_bytes());
        put(96, &self.sample_regs_intr.to_le_bytes());
        put(104, &self.aux_watermark.to_le_bytes());
        put(108, &self.sample_max_stack.to_le_bytes());
        put(112, &self.aux_sample_size.to_le_bytes());
        put(120, &self.sig_data.to_le_bytes());
        put(128, &self.config3.to_le_bytes());
        bytes
    }

    /// Whether all bits of `flags` (see [`flag`]) are set.
    #[inline]
    pub fn has(&self, flags: u64) -> bool {
        self.flags & flags == flags
    }

    /// Whether samples hold all of these fields (see [`crate::format::sample_type`]).
    #[inline]
    pub fn samples(&self, fields: u64) -> bool {
        self.sample_type & fields == fields
    }

    /// How precise the instruction address was asked to be, 0..=3.
    pub fn precise_ip(&self) -> u32 {
        (self.flags >> flag::PRECISE_IP_SHIFT) as u32 & 3
    }

    /// The clock of the times, if it was chosen; else the kernel's own (`perf_clock`).
    pub fn clock(&self) -> Option<i32> {
        self.has(flag::USE_CLOCKID).then_some(self.clockid)
    }

    /// Events that one sample stands for, unless the kernel varied it to reach a frequency.
    #[inline]
    pub fn fixed_period(&self) -> Option<u64> {
        (!self.has(flag::FREQ)).then_some(self.sample_period)
    }

    /// Counter values come for the whole group.
    pub fn reads_group(&self) -> bool {
        self.samples(sample_type::READ) && self.read_format & read_format::GROUP != 0
    }

    /// Branch stacks are call stacks: calls that did not return yet, and no other branches.
    pub fn branches_are_calls(&self) -> bool {
        self.samples(sample_type::BRANCH_STACK)
            && self.branch_sample_type & branch_sample_type::CALL_STACK != 0
    }

    /// Extra words of a branch stack: before the entries, and for each entry behind them.
    pub(crate) fn branch_words(&self) -> (usize, usize) {
        let bit = |mask| usize::from(self.branch_sample_type & mask != 0);
        (bit(branch_sample_type::HW_INDEX), bit(branch_sample_type::COUNTERS))
    }
}

/// The flags as a little-endian machine lays them out: a big-endian machine's compiler fills bit
/// fields from the highest bit of the first byte.
fn bit_field(bytes: &[u8], order: ByteOrder) -> Option<u64> {
    let bytes: [u8; 8] = bytes.try_into().ok()?;
    Some(u64::from_le_bytes(match order {
        ByteOrder::Little => bytes,
        ByteOrder::Big => bytes.map(u8::reverse_bits),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> EventAttr {
        EventAttr {
            kind: 1,
            config: 2,
            sample_period: 3,
            sample_type: 4,
            read_format: 5,
            flags: flag::FREQ | flag::SAMPLE_ID_ALL | flag::BUILD_ID | 2 << flag::PRECISE_IP_SHIFT,
            wakeup: 6,
            breakpoint_type: 7,
            config1: 8,
            config2: 9,
            branch_sample_type: 10,
            sample_regs_user: 11,
            sample_stack_user: 12,
            clockid: -1,
            sample_regs_intr: 13,
            aux_watermark: 14,
            sample_max_stack: 15,
            aux_sample_size: 16,
            sig_data: 17,
            config3: 18,
        }
    }

    #[test]
    fn every_field_survives_the_file() {
        let attr = full();
        assert_eq!(EventAttr::from_bytes(&attr.to_bytes(), ByteOrder::Little), Some(attr));
        assert_eq!(attr.precise_ip(), 2);
        assert_eq!(attr.fixed_period(), None);
    }

    #[test]
    fn short_attributes_of_old_kernels_leave_the_rest_zero() {
        let mut bytes = full().to_bytes();
        bytes[4..8].copy_from_slice(&72u32.to_le_bytes());
        let attr = EventAttr::from_bytes(&bytes, ByteOrder::Little).expect("long enough");
        assert_eq!((attr.config2, attr.branch_sample_type, attr.clockid), (9, 0, 0));
        assert_eq!(EventAttr::from_bytes(&bytes[..63], ByteOrder::Little), None);
    }

    #[test]
    fn a_longer_attribute_of_a_newer_kernel_is_read_as_far_as_known() {
        let mut bytes = full().to_bytes().to_vec();
        bytes.extend([0xff; 24]);
        bytes[4..8].copy_from_slice(&160u32.to_le_bytes());
        assert_eq!(EventAttr::from_bytes(&bytes, ByteOrder::Little), Some(full()));
    }

    #[test]
    fn the_bit_field_of_a_big_endian_machine_is_turned_round() {
        // Bit 10 (FREQ) counted from the highest bit of the first byte.
        let bytes = [0, 0b0010_0000, 0, 0, 0, 0, 0, 0];
        assert_eq!(bit_field(&bytes, ByteOrder::Big), Some(flag::FREQ));
    }
}
