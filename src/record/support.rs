//! What the running kernel can do, found by trying.

use perf_data::format::sample_type;
use perf_event::events::Software;
use perf_event::{Builder, ReadFormat};

/// Abilities that kernels have only since some version. Each was tried on a counter that counts nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSupport {
    /// A counter tells how many of its records were dropped (`PERF_FORMAT_LOST`, Linux 6.0).
    pub lost_counts: bool,
    /// BPF programs and other kernel code that comes and goes is told (`ksymbol`, Linux 5.0).
    pub kernel_symbols: bool,
    /// Samples tell the control group of their task (`PERF_SAMPLE_CGROUP`, Linux 5.7 with `CONFIG_CGROUP_PERF`).
    pub cgroups: bool,
}

impl KernelSupport {
    /// Asks the running kernel.
    pub fn probe() -> Self {
        Self {
            lost_counts: accepts(|builder| {
                builder.read_format(ReadFormat::LOST);
            }),
            kernel_symbols: accepts(|builder| {
                builder.ksymbol(true).bpf_event(true);
            }),
            cgroups: accepts(|builder| {
                let attr = builder.attrs_mut();
                attr.sample_type |= sample_type::CGROUP;
                attr.set_cgroup(1);
            }),
        }
    }
}

fn accepts(change: impl FnOnce(&mut Builder<'_>)) -> bool {
    let mut builder = Builder::new(Software::DUMMY);
    change(&mut builder);
    builder.build().is_ok()
}
