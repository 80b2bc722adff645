//! What kernels take by themselves: arithmetic of what the meter said.

use super::error::VerifyError;
use super::kernels::Kernel;
use crate::numerics::mean::SampleMean;

/// A stretch of time with one kernel or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Visit {
    /// What the meters counted.
    pub joules: f64,
    /// How long.
    pub seconds: f64,
    /// CPU time that the kernel took meanwhile.
    pub cpu_seconds: f64,
    /// Units of work done meanwhile.
    pub units: u64,
}

/// The power of a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelPower {
    /// The kernel.
    pub kernel: Kernel,
    /// Joules over the idle machine's, of a second of its CPU time.
    pub watts: f64,
    /// Standard error of the watts, as a share of them.
    pub relative_error: f64,
    /// By how much a second of its CPU time differs from another one, as a share of the watts: a standard deviation. What
    /// it takes in a longer stretch is the nearer to the watts, by the root of its length.
    pub scatter: f64,
    /// Units of work in a second of CPU time.
    pub units_per_second: f64,
}

/// All kernels, each by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Alone {
    /// Watts of the idle machine.
    pub idle_watts: f64,
    /// The kernels.
    pub kernels: Vec<KernelPower>,
}

impl Alone {
    /// From visits of the idle machine and of each kernel. Errors follow from how visits differ: of a kernel's, and of
    /// the idle machine's, which all kernels have in common.
    ///
    /// # Errors
    /// [`VerifyError::NotTold`] if a kernel's power is not above the idle machine's.
    pub fn of(idle: &[Visit], kernels: &[(Kernel, Vec<Visit>)]) -> Result<Self, VerifyError> {
        let idle = SampleMean::of(idle.iter().map(|visit| visit.joules / visit.seconds));
        let (idle_watts, idle_error) = value_and_error(idle);
        let of_kernel = |(kernel, visits): &(Kernel, Vec<Visit>)| {
            let watts = |visit: &Visit| (visit.joules - idle_watts * visit.seconds) / visit.cpu_seconds;
            let (watts, watts_error) = value_and_error(SampleMean::of(visits.iter().map(watts)));
            let std_error = watts_error.hypot(idle_error);
            // Three standard errors: what is less is noise now and then.
            let is_told = watts > 3.0 * std_error;
            if !is_told {
                return Err(VerifyError::NotTold { kernel: *kernel, watts, std_error });
            }
            let cpu_seconds: f64 = visits.iter().map(|visit| visit.cpu_seconds).sum();
            let units: u64 = visits.iter().map(|visit| visit.units).sum();
            Ok(KernelPower {
                kernel: *kernel,
                watts,
                relative_error: std_error / watts,
                // The error of the mean of all visits, of one second.
                scatter: watts_error * cpu_seconds.sqrt() / watts,
                units_per_second: units as f64 / cpu_seconds,
            })
        };
        Ok(Self { idle_watts, kernels: kernels.iter().map(of_kernel).collect::<Result<_, _>>()? })
    }
}

/// Zero and an endless error of nothing; an endless error of a single value.
fn value_and_error(mean: Option<SampleMean>) -> (f64, f64) {
    mean.map_or((0.0, f64::INFINITY), |mean| (mean.value, mean.standard_error().unwrap_or(f64::INFINITY)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(watts: f64, seconds: f64, units: u64) -> Visit {
        Visit { joules: watts * seconds, seconds, cpu_seconds: seconds, units }
    }

    #[test]
    fn a_kernel_takes_what_the_meter_counts_above_idle() {
        let idle = [visit(10.0, 1.0, 0), visit(10.0, 2.0, 0)];
        // 5 W above idle for as long as it runs; the meter was read a second earlier and a second later.
        let longer = Visit { joules: 10.0 * 5.0 + 5.0 * 3.0, seconds: 5.0, ..visit(0.0, 3.0, 3000) };
        let kernels =
            vec![(Kernel::Table, vec![visit(15.0, 1.0, 1000), Visit { cpu_seconds: 3.0, ..longer }])];
        let alone = Alone::of(&idle, &kernels).expect("told apart");
        let table = alone.kernels[0];
        assert_eq!(alone.idle_watts, 10.0);
        assert!((table.watts - 5.0).abs() < 1e-12 && table.relative_error < 1e-12, "{table:?}");
        assert!((table.units_per_second - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn errors_of_kernel_and_idle_add_up() {
        // Standard errors: idle 0.1 W, kernel 0.2 W.
        let idle = [visit(9.9, 1.0, 0), visit(10.1, 1.0, 0)];
        let kernels = vec![(Kernel::Table, vec![visit(14.8, 1.0, 1000), visit(15.2, 1.0, 1000)])];
        let alone = Alone::of(&idle, &kernels).expect("told apart");
        assert!((alone.kernels[0].relative_error - 0.1f64.hypot(0.2) / 5.0).abs() < 1e-12);
        // Two visits of a second differ by 0.4 W: 0.2 √2 W around their mean.
        assert!((alone.kernels[0].scatter - 0.2 * 2f64.sqrt() / 5.0).abs() < 1e-12);
    }

    #[test]
    fn a_kernel_that_is_lost_in_the_noise_is_an_error() {
        let idle = [visit(9.0, 1.0, 0), visit(11.0, 1.0, 0)];
        let kernels = vec![(Kernel::Table, vec![visit(12.0, 1.0, 1000), visit(12.0, 1.0, 1000)])];
        let error = Alone::of(&idle, &kernels).expect_err("2 W of 1 W").to_string();
        assert!(error.contains("does not tell table from an idle machine"), "{error}");
        assert!(Alone::of(&idle[..1], &kernels).is_err(), "one visit tells nothing of the scatter");
    }
}
