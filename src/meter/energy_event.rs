//! How an event of the energy PMU is opened.

use perf_event::events::Raw;
use perf_event::{Builder, ReadFormat};

use crate::machine::event_spec::EventSpec;

/// An event on a CPU, read together with the others of its group. RAPL's PMU takes no period and no exclusion of
/// modes: they mean nothing to it, and it says EINVAL.
pub(super) fn builder(cpu: u32, spec: &EventSpec) -> Builder<'static> {
    let mut builder = Builder::new(Raw::new(spec.config));
    builder.attrs_mut().type_ = spec.perf_type;
    builder.any_pid().one_cpu(cpu as usize).include_kernel().include_hv();
    builder.read_format(ReadFormat::GROUP | ReadFormat::ID);
    builder
}
