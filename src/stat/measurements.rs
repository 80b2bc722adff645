//! Runs, and what they add up to.

use super::interval::Estimate;
use super::ratio::{Ratio, ratio};
use crate::hardware::{DomainInfo, Method};
use crate::units::{Joules, Watts};

/// One run of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// From start to end.
    pub seconds: f64,
    /// CPU time of the program and of what it started and waited for.
    pub cpu_seconds: f64,
    /// Energy of each domain.
    pub joules: Vec<Joules>,
}

/// The runs of one program.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its command line.
    pub command: String,
    /// Its runs, in the order in which they were made.
    pub runs: Vec<Run>,
}

/// A domain whose energy was read.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredDomain {
    /// What it is.
    pub info: DomainInfo,
    /// It is part of the total, since no other domain of the total contains it.
    pub in_total: bool,
    /// Idle power that was taken out of each run's energy, where that was asked for.
    pub idle: Option<Watts>,
}

/// Whose energy the joules are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyOf {
    /// All that the machine took meanwhile: meters can tell no program from others.
    Machine,
    /// The program, and what the idle machine takes: an estimate leaves out what other programs took.
    ProgramAndIdle,
    /// The program alone, above idle.
    Program,
}

/// All runs of one or two programs.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurements {
    /// The domains, in the order of [`Run::joules`].
    pub domains: Vec<MeasuredDomain>,
    /// The program, and the one it is compared with.
    pub series: Vec<Series>,
    /// Runs of each program made before, whose figures do not count.
    pub warmups: usize,
    /// Whose energy it is.
    pub energy_of: EnergyOf,
    /// The last run was cut short by this signal's name.
    pub interrupted: Option<String>,
    /// What makes the figures doubtful.
    pub warnings: Vec<String>,
}

/// What is told of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Energy of the run.
    Energy,
    /// Mean power during the run.
    Power,
    /// Energy times duration: what is saved by being slow does not count.
    EnergyDelay,
    /// Duration.
    Time,
    /// CPU time.
    CpuTime,
}

impl Quantity {
    /// Those that each domain has.
    pub const OF_DOMAINS: [Self; 3] = [Self::Energy, Self::Power, Self::EnergyDelay];
    /// Those of the run as a whole.
    pub const OF_RUNS: [Self; 2] = [Self::Time, Self::CpuTime];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Energy => "energy",
            Self::Power => "power",
            Self::EnergyDelay => "energy-delay",
            Self::Time => "time",
            Self::CpuTime => "cpu-time",
        }
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Energy => "J",
            Self::Power => "W",
            Self::EnergyDelay => "Js",
            Self::Time | Self::CpuTime => "s",
        }
    }

    fn of(self, run: &Run, joules: f64) -> f64 {
        match self {
            Self::Energy => joules,
            Self::Power => joules / run.seconds,
            Self::EnergyDelay => joules * run.seconds,
            Self::Time => run.seconds,
            Self::CpuTime => run.cpu_seconds,
        }
    }
}

/// A domain, or the sum of those that do not overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Index of the domain.
    Domain(usize),
    /// The total.
    Total,
}

impl Measurements {
    /// The parts to show: each domain, and the total if it is more than one of them.
    pub fn parts(&self) -> Vec<Part> {
        let several = self.domains.iter().filter(|domain| domain.in_total).count() > 1;
        (0..self.domains.len()).map(Part::Domain).chain(several.then_some(Part::Total)).collect()
    }

    /// The part that stands for all energy.
    pub fn whole(&self) -> Part {
        let mut in_total = (0..self.domains.len()).filter(|&index| self.domains[index].in_total);
        match (in_total.next(), in_total.next()) {
            (Some(only), None) => Part::Domain(only),
            _ => Part::Total,
        }
    }

    /// A part's name.
    pub fn name(&self, part: Part) -> &str {
        match part {
            Part::Domain(index) => self.domains.get(index).map_or("", |domain| &domain.info.name),
            Part::Total => "total",
        }
    }

    /// How a part's energy is known; a total is estimated if any of its domains is.
    pub fn method(&self, part: Part) -> Method {
        let estimated = |domain: &MeasuredDomain| domain.info.method == Method::Estimated;
        let is_estimated = match part {
            Part::Domain(index) => self.domains.get(index).is_some_and(estimated),
            Part::Total => self.domains.iter().any(|domain| domain.in_total && estimated(domain)),
        };
        if is_estimated { Method::Estimated } else { Method::Measured }
    }

    /// What the watts that an estimate assumes may be off by, one standard error as a share of them, in all runs alike; of
    /// a total the largest of its domains. `None` of a part that is measured, or whose watts the user told.
    pub fn watts_error(&self, part: Part) -> Option<f64> {
        self.of_part(part)
            .map(|(_, domain)| domain.info.error_of_watts())
            .reduce(f64::max)
            .filter(|error| *error > 0.0)
    }

    /// What a part's energy may be off by in all runs alike, one standard error as a share of it: of a total, each
    /// estimated domain's watts, off in one direction, by their share of the joules of a series.
    fn common_error(&self, series: &Series, part: Part) -> f64 {
        let mut all = 0.0;
        let mut unsure = 0.0;
        for (index, domain) in self.of_part(part) {
            let joules: f64 = self.values(series, Part::Domain(index), Quantity::Energy).iter().sum();
            all += joules;
            unsure += joules.abs() * domain.info.error_of_watts();
        }
        if all.abs() > 0.0 { unsure / all.abs() } else { 0.0 }
    }

    fn of_part(&self, part: Part) -> impl Iterator<Item = (usize, &MeasuredDomain)> {
        self.domains.iter().enumerate().filter(move |(index, domain)| match part {
            Part::Domain(wanted) => *index == wanted,
            Part::Total => domain.in_total,
        })
    }

    /// A quantity's value in every run of a series; the part matters to energies only.
    pub fn values(&self, series: &Series, part: Part, quantity: Quantity) -> Vec<f64> {
        let joules = |run: &Run| match part {
            Part::Domain(index) => run.joules.get(index).map_or(0.0, |joules| joules.as_joules()),
            Part::Total => {
                let of_total = run.joules.iter().zip(&self.domains).filter(|(_, domain)| domain.in_total);
                of_total.map(|(joules, _)| joules.as_joules()).sum()
            }
        };
        series.runs.iter().map(|run| quantity.of(run, joules(run))).collect()
    }

    /// The mean of a quantity over the runs of a series, with the interval that its truth is to be expected in: of estimated
    /// energies, what the assumed watts may be off by is part of it. `None` without a run.
    pub fn estimate(&self, series: &Series, part: Part, quantity: Quantity) -> Option<Estimate> {
        let of_repeats = Estimate::of(&self.values(series, part, quantity))?;
        let common = match quantity {
            Quantity::Energy | Quantity::Power | Quantity::EnergyDelay => self.common_error(series, part),
            Quantity::Time | Quantity::CpuTime => 0.0,
        };
        Some(of_repeats.with_common_error(common))
    }

    /// The ratio of the second program's quantity to the first's; `None` if there is one program only.
    pub fn ratio(&self, part: Part, quantity: Quantity) -> Option<Ratio> {
        let [a, b] = &self.series[..] else { return None };
        ratio(&self.values(a, part, quantity), &self.values(b, part, quantity))
    }
}

#[cfg(test)]
pub(super) mod fixture {
    use super::*;
    use crate::hardware::DomainKind;

    fn domain(name: &str, kind: DomainKind, parent: Option<&str>) -> MeasuredDomain {
        let info = DomainInfo {
            parent: parent.map(str::to_owned),
            package: Some(0),
            ..DomainInfo::new(name, kind, "power PMU", Method::Measured)
        };
        MeasuredDomain { info, in_total: parent.is_none(), idle: None }
    }

    fn run(seconds: f64, joules: [f64; 3]) -> Run {
        Run { seconds, cpu_seconds: 2.0 * seconds, joules: joules.map(Joules::from_joules).to_vec() }
    }

    /// Two programs of three runs each on a machine with package, cores and memory.
    pub fn two_programs() -> Measurements {
        let a = [run(1.0, [10.0, 6.0, 1.0]), run(1.1, [11.0, 6.6, 1.1]), run(0.9, [9.0, 5.4, 0.9])];
        let b = [run(2.0, [12.0, 5.0, 2.0]), run(2.2, [13.2, 5.5, 2.2]), run(1.8, [10.8, 4.5, 1.8])];
        Measurements {
            domains: vec![
                domain("package-0", DomainKind::Package, None),
                domain("package-0-cores", DomainKind::Cores, Some("package-0")),
                domain("dram-0", DomainKind::Dram, None),
            ],
            series: vec![
                Series { command: "./fast 1".to_owned(), runs: a.to_vec() },
                Series { command: "./frugal".to_owned(), runs: b.to_vec() },
            ],
            warmups: 1,
            energy_of: EnergyOf::Machine,
            interrupted: None,
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_has_the_error_of_its_watts() {
        let mut measured = fixture::two_programs();
        assert_eq!(measured.watts_error(measured.whole()), None);
        let last = measured.domains.len() - 1;
        measured.domains[last].info.method = Method::Estimated;
        measured.domains[last].info.watts_error = Some(0.3);
        assert_eq!(measured.watts_error(Part::Total), Some(0.3));
        assert_eq!(
            (measured.watts_error(Part::Domain(last)), measured.watts_error(Part::Domain(0))),
            (Some(0.3), None)
        );
        // 60 J of 66 J are measured: a total's interval has 30 % of the rest, the domain's all of it, times none.
        let bounds = |measured: &Measurements, part, quantity| {
            measured.estimate(&measured.series[0], part, quantity).and_then(Estimate::bounds).expect("runs")
        };
        let share = measured.common_error(&measured.series[0], Part::Total);
        assert!((share - 0.3 * 1.0 / 11.0).abs() < 1e-12, "{share}");
        let (low, high) = bounds(&measured, Part::Domain(last), Quantity::Power);
        assert!((high - 1.672).abs() < 2e-3 && (low - 0.598).abs() < 1e-3, "1.3^1.96: {low} {high}");
        let time = |measured: &Measurements| bounds(measured, Part::Total, Quantity::Time);
        assert_eq!(time(&measured), time(&fixture::two_programs()));
        // What the user told is not in doubt.
        measured.domains[last].info.watts_error = Some(0.0);
        assert_eq!(measured.watts_error(Part::Total), None);
    }

    #[test]
    fn the_total_takes_no_joule_twice() {
        let measured = fixture::two_programs();
        let mean =
            |part, quantity| measured.estimate(&measured.series[0], part, quantity).expect("runs").mean;
        assert!((mean(Part::Total, Quantity::Energy) - 11.0).abs() < 1e-12);
        assert!((mean(Part::Domain(1), Quantity::Energy) - 6.0).abs() < 1e-12);
        // 11 W in every run: 11, 12.1 and 9.9 J over 1, 1.1 and 0.9 s.
        assert!((mean(Part::Total, Quantity::Power) - 11.0).abs() < 1e-12);
        let energy_delay = (11.0 + 12.1 * 1.1 + 9.9 * 0.9) / 3.0;
        assert!((mean(Part::Total, Quantity::EnergyDelay) - energy_delay).abs() < 1e-12);
        assert_eq!(measured.parts().len(), 4);
        assert_eq!(measured.whole(), Part::Total);
    }

    #[test]
    fn ratios_are_those_of_pairs() {
        let measured = fixture::two_programs();
        let found = measured.ratio(Part::Total, Quantity::Energy).expect("two programs");
        // Each pair: 14 J to 11 J, 15.4 to 12.1, 12.6 to 9.9.
        assert!((found.mean - 14.0 / 11.0).abs() < 1e-12);
        let (low, high) = found.bounds.expect("three pairs");
        assert!(high - low < 1e-9, "the same in every pair");
        assert!((measured.ratio(Part::Total, Quantity::Time).expect("two").mean - 2.0).abs() < 1e-12);
    }

    #[test]
    fn one_estimated_domain_makes_the_total_an_estimate() {
        let mut measured = fixture::two_programs();
        assert_eq!(measured.method(Part::Total), Method::Measured);
        measured.domains[2].info.method = Method::Estimated;
        assert_eq!(measured.method(Part::Total), Method::Estimated);
        assert_eq!(measured.method(Part::Domain(0)), Method::Measured);
    }

    #[test]
    fn one_domain_is_the_whole_and_two_have_a_total() {
        let mut measured = fixture::two_programs();
        let counted = measured.domains.iter().filter(|domain| domain.in_total).count();
        assert!(counted > 1);
        assert_eq!((measured.whole(), measured.name(measured.whole())), (Part::Total, "total"));
        assert_eq!(measured.parts().last(), Some(&Part::Total));
        let first = measured.domains.iter().position(|domain| domain.in_total).expect("one");
        measured.domains.iter_mut().enumerate().for_each(|(at, domain)| domain.in_total = at == first);
        assert_eq!(measured.whole(), Part::Domain(first));
        assert_eq!(measured.parts().len(), measured.domains.len());
        measured.domains.iter_mut().for_each(|domain| domain.in_total = false);
        assert_eq!(measured.whole(), Part::Total);
    }
}
