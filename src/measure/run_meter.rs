//! The joules of a run: each energy domain's, and the sum of those that contain no other twice.

use std::io;
use std::time::Duration;

use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::meter::{Discovery, Unmet};
use crate::units::Joules;

/// Why the joules of a run are not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunMeterError {
    /// No meter of this name.
    #[error("there is no energy domain `{name}`; there are: {known}")]
    NoDomain {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Nothing that was asked for can be read.
    #[error(transparent)]
    Unmet(#[from] Unmet),
    /// The energy could not be read.
    #[error("cannot read the energy meter: {0}")]
    Meter(io::Error),
}

/// The machine's domains, and a sum of some of them.
pub struct RunMeter {
    discovery: Discovery,
    /// For each meter, for each of its domains, whether it is part of the sum.
    chosen: Vec<Vec<bool>>,
}

impl RunMeter {
    /// The domains named, or all that are in no other.
    ///
    /// # Errors
    /// A name that no domain has, and meters that were asked for of which none can be read.
    pub fn new(mut discovery: Discovery, names: &[String]) -> Result<Self, RunMeterError> {
        discovery.check()?;
        if let Some(name) =
            names.iter().find(|name| !discovery.domains.iter().any(|domain| domain.name == **name))
        {
            let known: Vec<&str> = discovery.domains.iter().map(|domain| domain.name.as_str()).collect();
            return Err(RunMeterError::NoDomain { name: name.clone(), known: known.join(", ") });
        }
        let wanted: Vec<&str> = match names {
            [] => outermost(&discovery.domains).map(|domain| domain.name.as_str()).collect(),
            names => names.iter().map(String::as_str).collect(),
        };
        let chosen = discovery
            .meters
            .iter()
            .map(|meter| {
                meter.domains().iter().map(|domain| wanted.contains(&domain.name.as_str())).collect()
            })
            .collect();
        let unmet = discovery.unmet.drain(..).map(|meter| format!("energy is not measured by {meter}"));
        discovery.warnings.extend(unmet);
        Ok(Self { discovery, chosen })
    }

    /// Energy of the sum since the meters were opened; a domain that cannot be read this time counts as an
    /// error, as a sum without it would be too small.
    ///
    /// # Errors
    /// A meter that cannot be read.
    pub fn read(&mut self) -> Result<Joules, RunMeterError> {
        let mut sum = Joules::ZERO;
        let mut readings = Vec::new();
        for (meter, chosen) in self.discovery.meters.iter_mut().zip(&self.chosen) {
            if !chosen.contains(&true) {
                continue;
            }
            meter.read(&mut readings).map_err(RunMeterError::Meter)?;
            for (reading, _) in readings.iter().zip(chosen).filter(|(_, chosen)| **chosen) {
                sum += reading.ok_or_else(unreadable)?.energy;
            }
        }
        Ok(sum)
    }

    /// Energy of every domain since the meters were opened, in the order of [`RunMeter::all_domains`].
    ///
    /// # Errors
    /// A meter or a domain that cannot be read.
    pub fn read_all(&mut self) -> Result<Vec<Joules>, RunMeterError> {
        let mut energies = Vec::new();
        let mut readings = Vec::new();
        for meter in &mut self.discovery.meters {
            meter.read(&mut readings).map_err(RunMeterError::Meter)?;
            for reading in &readings {
                energies.push(reading.ok_or_else(unreadable)?.energy);
            }
        }
        Ok(energies)
    }

    /// All domains, and whether each is part of the sum.
    pub fn all_domains(&self) -> impl Iterator<Item = (&DomainInfo, bool)> {
        let meters = self.discovery.meters.iter().zip(&self.chosen);
        meters.flat_map(|(meter, chosen)| meter.domains().iter().zip(chosen.iter().copied()))
    }

    /// The domains of the sum.
    pub fn domains(&self) -> impl Iterator<Item = &DomainInfo> {
        self.all_domains().filter(|(_, chosen)| *chosen).map(|(domain, _)| domain)
    }

    /// Whether any part of the sum is an estimate.
    pub fn is_estimated(&self) -> bool {
        self.domains().any(|domain| domain.method == Method::Estimated)
    }

    /// The program's part of an estimate: idle watts for all of its time, the rest by its share of the
    /// CPU time. What was measured is returned as it is: nobody can tell whose it was.
    pub fn share_of_estimate(&self, joules: f64, seconds: f64, share: f64) -> f64 {
        if !self.domains().all(|domain| domain.method == Method::Estimated) {
            return joules;
        }
        let idle: f64 =
            self.domains().filter_map(|domain| domain.static_power).map(|watts| watts.as_watts()).sum();
        let idle = (idle * seconds).min(joules);
        idle + (joules - idle) * share
    }

    /// Where the joules come from, for people.
    pub fn describe(&self) -> String {
        let domains: Vec<String> =
            self.domains().map(|domain| format!("{} ({})", domain.name, domain.source)).collect();
        let how = if self.is_estimated() { "ESTIMATED, not measured: " } else { "measured: " };
        format!("{how}{}", domains.join(" + "))
    }

    /// How often it must be read so that no counter wraps unseen.
    pub fn longest_pause(&self) -> Duration {
        let pauses = self.discovery.meters.iter().map(|meter| meter.pace().longest.as_nanos());
        Duration::from_nanos(pauses.min().unwrap_or(1_000_000_000))
    }

    /// A run should be longer than this to be measured to a percent: a hundred times the slowest
    /// counter's refresh.
    pub fn shortest_run(&self) -> f64 {
        self.domains()
            .filter_map(|domain| domain.refresh)
            .map(|refresh| refresh.as_secs_f64())
            .fold(0.0, f64::max)
            * 100.0
    }

    /// What is to be known of the meters.
    pub fn warnings(&self) -> &[String] {
        &self.discovery.warnings
    }
}

fn unreadable() -> RunMeterError {
    RunMeterError::Meter(io::Error::other("a domain could not be read"))
}

/// Domains within no other; a battery only where nothing else is: it feeds what the others count.
fn outermost(domains: &[DomainInfo]) -> impl Iterator<Item = &DomainInfo> {
    let only_batteries = domains.iter().all(|domain| domain.kind == DomainKind::Battery);
    domains.iter().filter(move |domain| {
        domain.parent.is_none() && (only_batteries || domain.kind != DomainKind::Battery)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{CounterReading, EnergyMeter};

    fn domain(name: &str, kind: DomainKind, parent: Option<&str>, method: Method) -> DomainInfo {
        DomainInfo {
            parent: parent.map(String::from),
            package: Some(0),
            ..DomainInfo::new(name, kind, "powercap", method)
        }
    }

    /// Counts up by a fixed amount per domain at each reading.
    struct Scripted {
        domains: Vec<DomainInfo>,
        steps: Vec<Option<f64>>,
        reads: u32,
    }

    impl EnergyMeter for Scripted {
        fn domains(&self) -> &[DomainInfo] {
            &self.domains
        }
        fn read(&mut self, readings: &mut Vec<Option<CounterReading>>) -> io::Result<()> {
            self.reads += 1;
            readings.clear();
            readings.extend(self.steps.iter().map(|step| {
                step.map(|step| CounterReading {
                    energy: Joules::from_joules(step * f64::from(self.reads)),
                    raw: 0,
                })
            }));
            Ok(())
        }
    }

    fn discovery(steps: &[Option<f64>]) -> Discovery {
        let measured = Method::Measured;
        let domains = vec![
            domain("package-0", DomainKind::Package, None, measured),
            domain("package-0-cores", DomainKind::Cores, Some("package-0"), measured),
            domain("dram-0", DomainKind::Dram, None, measured),
            domain("battery-0", DomainKind::Battery, None, measured),
        ];
        let meter = Scripted { domains: domains.clone(), steps: steps.into(), reads: 0 };
        Discovery {
            meters: vec![Box::new(meter)],
            domains,
            rejected: Vec::new(),
            unmet: Vec::new(),
            warnings: Vec::new(),
        }
    }

    const STEPS: [Option<f64>; 4] = [Some(10.0), Some(6.0), Some(2.0), Some(100.0)];

    #[test]
    fn no_joule_is_counted_twice() {
        let mut meter = RunMeter::new(discovery(&STEPS), &[]).expect("valid");
        let names: Vec<&str> = meter.domains().map(|domain| domain.name.as_str()).collect();
        assert_eq!(names, ["package-0", "dram-0"]);
        let first = meter.read().expect("readable");
        assert_eq!(meter.read().expect("readable") - first, Joules::from_joules(12.0));
        assert_eq!(meter.describe(), "measured: package-0 (powercap) + dram-0 (powercap)");
    }

    #[test]
    fn the_user_may_choose() {
        let mut meter = RunMeter::new(discovery(&STEPS), &["package-0-cores".into()]).expect("valid");
        assert_eq!(meter.read().expect("readable"), Joules::from_joules(6.0));
        let error =
            RunMeter::new(discovery(&STEPS), &["gpu-0".into()]).err().expect("no such domain").to_string();
        assert!(error.contains("package-0, package-0-cores"), "{error}");
    }

    #[test]
    fn neighbours_are_taken_out_of_an_estimate_only() {
        let mut estimated = domain("package-0", DomainKind::Package, None, Method::Estimated);
        estimated.static_power = Some(crate::units::Watts::from_watts(2.0));
        let meter = Scripted { domains: vec![estimated.clone()], steps: vec![Some(1.0)], reads: 0 };
        let discovery = Discovery {
            meters: vec![Box::new(meter)],
            domains: vec![estimated],
            rejected: vec![],
            unmet: vec![],
            warnings: vec![],
        };
        let meter = RunMeter::new(discovery, &[]).expect("valid");
        // 3 s at 2 W idle are 6 J; of the other 10 J the program has 40 %.
        assert_eq!(meter.share_of_estimate(16.0, 3.0, 0.4), 10.0);
        let measured = RunMeter::new(self::discovery(&STEPS), &[]).expect("valid");
        assert_eq!(measured.share_of_estimate(16.0, 3.0, 0.4), 16.0);
    }

    #[test]
    fn a_domain_that_cannot_be_read_is_no_zero() {
        let mut meter = RunMeter::new(discovery(&[Some(1.0), None, None, None]), &[]).expect("valid");
        assert!(matches!(meter.read(), Err(RunMeterError::Meter(_))));
    }
}
