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
    /// Units of work done meanwhile.
    pub units: u64,
}

/// The energy of a kernel's work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitEnergy {
    /// The kernel.
    pub kernel: Kernel,
    /// Power over the idle machine's, in watts.
    pub watts: f64,
    /// Joules over the idle machine's, of a unit of work.
    pub joules_per_unit: f64,
    /// Standard error of either, as a share of it.
    pub relative_error: f64,
    /// Units in a second.
    pub units_per_second: f64,
}

/// All kernels, each by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Alone {
    /// Watts of the idle machine.
    pub idle_watts: f64,
    /// The kernels.
    pub kernels: Vec<UnitEnergy>,
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
            let dynamic = |visit: &Visit| visit.joules - idle_watts * visit.seconds;
            let units = |visit: &Visit| visit.units.max(1) as f64;
            let watts = visits.iter().map(|visit| dynamic(visit) / visit.seconds);
            let (watts, watts_error) = value_and_error(SampleMean::of(watts));
            let per_unit = visits.iter().map(|visit| dynamic(visit) / units(visit));
            let (joules_per_unit, unit_error) = value_and_error(SampleMean::of(per_unit));
            let std_error = watts_error.hypot(idle_error);
            // Three standard errors: what is less is noise now and then.
            if !(watts > 3.0 * std_error && joules_per_unit > 0.0) {
                return Err(VerifyError::NotTold { kernel: *kernel, watts, std_error });
            }
            let seconds: f64 = visits.iter().map(|visit| visit.seconds).sum();
            Ok(UnitEnergy {
                kernel: *kernel,
                watts,
                joules_per_unit,
                relative_error: (unit_error / joules_per_unit).hypot(idle_error / watts),
                units_per_second: visits.iter().map(units).sum::<f64>() / seconds,
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
        Visit { joules: watts * seconds, seconds, units }
    }

    #[test]
    fn a_unit_is_what_the_meter_counts_above_idle() {
        let idle = [visit(10.0, 1.0, 0), visit(10.0, 2.0, 0)];
        // 5 W above idle do 1000 units a second, however long a visit is.
        let kernels = vec![(Kernel::Table, vec![visit(15.0, 1.0, 1000), visit(15.0, 3.0, 3000)])];
        let alone = Alone::of(&idle, &kernels).expect("told apart");
        let table = alone.kernels[0];
        assert_eq!(alone.idle_watts, 10.0);
        assert!((table.watts - 5.0).abs() < 1e-12 && (table.joules_per_unit - 0.005).abs() < 1e-15);
        assert!(table.relative_error < 1e-12 && (table.units_per_second - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn errors_of_kernel_and_idle_add_up() {
        // Standard errors: idle 0.1 W, kernel 0.2 W.
        let idle = [visit(9.9, 1.0, 0), visit(10.1, 1.0, 0)];
        let kernels = vec![(Kernel::Table, vec![visit(14.8, 1.0, 1000), visit(15.2, 1.0, 1000)])];
        let alone = Alone::of(&idle, &kernels).expect("told apart");
        assert!((alone.kernels[0].relative_error - 0.1f64.hypot(0.2) / 5.0).abs() < 1e-12);
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
