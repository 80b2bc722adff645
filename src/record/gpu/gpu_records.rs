//! What a recording says of its program's GPU beside the probes' samples: names of kernels, and when they ran.

use std::io;

use perf_data::encode::RecordTooLong;

use crate::process::clocks::monotonic_now;
use crate::record::gpu::activity::ActivityFiles;
use crate::record::gpu::kernel_names::{GivenHandle, KernelNames};
use crate::recording::own_events;

/// Bytes of each process that are taken at once.
const MOST: u64 = 4 << 20;

/// Makes the records that tell of a program's GPU.
pub struct GpuRecords {
    /// Names of kernels, where their launches are recorded.
    names: Option<KernelNames>,
    /// When kernels really ran, where the program tells it through CUPTI.
    activity: Option<ActivityFiles>,
}

impl GpuRecords {
    /// From these sources, as far as they are there.
    pub fn new(names: Option<KernelNames>, activity: Option<ActivityFiles>) -> Self {
        Self { names, activity }
    }

    /// Appends what the program's GPU did, as far as it has told by now. Tells whether there may be more.
    pub fn collect_activity(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let Some(activity) = &mut self.activity else { return Ok(false) };
        let time = monotonic_now();
        let mut written = Ok(());
        let more = activity.collect(MOST, |piece| {
            if written.is_ok() {
                written = own_events::gpu_activity(&piece, time, out);
            }
        });
        written.map(|()| more).map_err(io::Error::other)
    }

    /// Asks the program for the names of kernels that it has just asked for, by these samples of its calls, and
    /// appends them.
    pub fn name_kernels(&mut self, samples: &[Vec<u8>], out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        for given in self.names.iter_mut().flat_map(|names| names.take(samples)) {
            match given {
                GivenHandle::Kernel(name) => own_events::kernel_name(&name, monotonic_now(), out)?,
                GivenHandle::Context(context) => own_events::context(context, monotonic_now(), out)?,
            }
        }
        Ok(())
    }
}
