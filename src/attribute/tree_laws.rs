//! What holds of a whole tree of domains: cores with meters of their own in a package, memory and a graphics card
//! beside it, read at paces of their own, with losses, other processes and the recorder.

use proptest::prelude::*;

use super::attribution::{Attribution, Options, Sharing};
use super::attributor::Attributor;
use super::quantum::{Charge, Quantum};
use super::weights::EventWeights;
use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::recording::energy::CpuTimes;
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

const MILLISECOND: u64 = 1_000_000;
const EVENTS: usize = 2;
const DOMAINS: usize = 5;
const PACKAGE: usize = 0;
const CORES: [usize; 2] = [1, 2];

fn domains() -> [DomainInfo; DOMAINS] {
    let domain = |name: &str, kind, cpus: &[u32], parent: Option<&str>| DomainInfo {
        parent: parent.map(str::to_owned),
        cpus: cpus.to_vec(),
        ..DomainInfo::new(name, kind, "test", Method::Measured)
    };
    [
        domain("package-0", DomainKind::Package, &[0, 1], None),
        domain("core-0", DomainKind::Core, &[0], Some("package-0")),
        domain("core-1", DomainKind::Core, &[1], Some("package-0")),
        domain("dram-0", DomainKind::Dram, &[0, 1], None),
        domain("gpu-0", DomainKind::Gpu, &[], None),
    ]
}

/// A machine's milliseconds.
#[derive(Debug, Clone)]
struct Machine {
    /// Watts of each core, of what lies around them, of memory and of the graphics card.
    watts: Vec<[f64; DOMAINS]>,
    quanta: Vec<Quantum>,
    /// Milliseconds from one reading of a domain to the next.
    paces: [u64; DOMAINS],
    /// Busy milliseconds of each CPU and of the recorder, per ten milliseconds; told only if others are not sampled.
    busy: Option<Vec<[u64; 3]>>,
}

impl Machine {
    fn end(&self) -> u64 {
        self.watts.len() as u64
    }

    /// Joules of a domain until a millisecond.
    fn joules(&self, domain: usize, until: u64) -> f64 {
        let watts = |row: &[f64; DOMAINS]| match domain {
            PACKAGE => row[PACKAGE] + CORES.iter().map(|&core| row[core]).sum::<f64>(),
            other => row[other],
        };
        self.watts[..until as usize].iter().map(watts).sum::<f64>() * 1e-3
    }

    fn attribute(&self, weights: &EventWeights, bucket: f64, static_watts: f64) -> Attribution {
        let options = Options {
            bucket: Joules::from_joules(bucket),
            static_power: vec![Watts::from_watts(static_watts); DOMAINS],
            rises: Vec::new(),
            divided_later: Vec::new(),
            horizon: Nanoseconds::from_millis(200),
            keep_buckets: false,
            sharing: Sharing::ByBucket,
            sensitivities: true,
        };
        let cpus_of = |info: &DomainInfo| info.cpus.clone();
        let sampled = self.busy.is_none();
        let mut attributor = Attributor::new(&domains(), cpus_of, weights.clone(), options, sampled);
        let mut quanta = self.quanta.clone();
        quanta.sort_by_key(|quantum| quantum.end);
        let mut quanta = quanta.into_iter().peekable();
        let mut busy = [0; 3];
        for at in 0..=self.end() {
            let time = Timestamp::from_nanos(at * MILLISECOND);
            while let Some(quantum) = quanta.next_if(|quantum| quantum.end <= time) {
                attributor.quantum(quantum);
            }
            for domain in 0..DOMAINS {
                // The recorder reads all meters when it begins and when it ends.
                if at % self.paces[domain] == 0 || at == self.end() {
                    attributor.reading(domain, time, Joules::from_joules(self.joules(domain, at)));
                }
            }
            if let Some(times) = &self.busy
                && at % 10 == 0
            {
                let [first, second, recorder] = busy.map(Nanoseconds::from_millis);
                attributor.cpu_times(time, &CpuTimes { recorder, busy: vec![(0, first), (1, second)] }, &[]);
                let next = times.get(at as usize / 10).copied().unwrap_or_default();
                busy.iter_mut().zip(next).for_each(|(busy, more)| *busy += more);
            }
        }
        attributor.finish()
    }
}

fn machine() -> impl Strategy<Value = Machine> {
    let phase = (1u64..120, [0.5f64..6.0, 0.0..9.0, 0.0..9.0, 0.1..3.0, 0.0..40.0]);
    let quantum =
        (0u64..100_000, 0u64..50, prop::option::of(0u32..2), 0u32..EVENTS as u32, 1u64..20, 0u32..9);
    let paces = [1u64..4, 10..90, 10..90, 1..30, 20..150];
    let busy = prop::option::of(prop::collection::vec([0u64..11, 0..11, 0..3], 60));
    (prop::collection::vec(phase, 1..8), prop::collection::vec(quantum, 0..200), paces, busy).prop_map(
        |(phases, quanta, paces, busy)| {
            let watts: Vec<_> = phases
                .iter()
                .flat_map(|(length, watts)| std::iter::repeat_n(*watts, *length as usize))
                .collect();
            let last = watts.len() as u64;
            let quanta = quanta.into_iter().map(|(end, span, cpu, event, count, charge)| {
                let end = 1 + end % last;
                Quantum {
                    start: Timestamp::from_nanos(end.saturating_sub(span) * MILLISECOND),
                    end: Timestamp::from_nanos(end * MILLISECOND),
                    cpu,
                    event,
                    count,
                    running: Nanoseconds::from_millis(if event == 0 { span.min(count) } else { 0 }),
                    charge: match charge {
                        0 => Charge::OtherProcess,
                        1 => Charge::Recorder,
                        2 => Charge::Lost,
                        cell => Charge::Cell(cell - 3),
                    },
                }
            });
            Machine { quanta: quanta.collect(), watts, paces, busy }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// What a meter counted is what its domain's cells, static power, others, the recorder and losses were given; and
    /// nobody is given less than nothing.
    #[test]
    fn parts_of_each_domain_are_what_its_meter_counted(
        machine in machine(),
        costs in prop::collection::vec(0.0f64..3.0, EVENTS * DOMAINS),
        bucket in 0.01f64..3.0,
        static_watts in 0.0f64..12.0,
    ) {
        let weights = EventWeights::new(EVENTS, DOMAINS, |event, domain| costs[event * DOMAINS + domain]);
        let found = machine.attribute(&weights, bucket, static_watts);
        for (domain, balance) in found.balances.iter().enumerate() {
            let cells: f64 =
                found.cell_joules.iter().skip(domain).step_by(DOMAINS).map(|joules| joules.as_joules()).sum();
            let parts = [balance.static_energy, balance.other_processes, balance.recorder, balance.lost];
            let sum = cells + parts.iter().map(|part| part.as_joules()).sum::<f64>();
            let measured = machine.joules(domain, machine.end());
            prop_assert!((sum - measured).abs() < 1e-9 * (1.0 + measured), "{domain}: {sum} of {measured} J");
            prop_assert!(parts.iter().all(|part| part.as_joules() >= -1e-12), "{domain}: {balance:?}");
            prop_assert!(found.cell_joules.iter().all(|joules| joules.as_joules() >= -1e-12));
        }
    }
}
