//! A machine of which all is known, and what recorders would see of it.

use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::identity::{Identity, Job};
use crate::profile::{
    AddressId, Balance, CallersId, Cell, CodeAddress, DomainEnergy, EventTotals, InSlice, MeterCurve, Module,
    ModuleId, ModuleKind, Origin, Profile, RecordingId, StackTable, Thread, ThreadIndex, TimeSlice,
};
use crate::units::{Joules, Nanoseconds, Timestamp};

/// Length of a tick.
pub const TICK: Nanoseconds = Nanoseconds::from_millis(10);

/// What a machine spent, tick by tick.
#[derive(Debug, Clone)]
pub struct World {
    pub boot: &'static str,
    /// Of each tick.
    pub static_joules: f64,
    /// By tick, then by process.
    pub spent: Vec<Vec<f64>>,
}

/// What a recorder is told to record.
#[derive(Debug, Clone)]
pub struct Recorder {
    pub pid: u32,
    /// Processes by their number in the world.
    pub of: Vec<usize>,
    /// Ticks.
    pub window: (usize, usize),
}

/// The process of a number.
pub fn pid(process: usize) -> u32 {
    1000 + process as u32
}

fn at(tick: usize) -> Timestamp {
    Timestamp::from_nanos(5_000_000_000 + tick as u64 * TICK.as_nanos())
}

impl World {
    /// Joules of a process in some ticks.
    pub fn of_process(&self, process: usize, ticks: (usize, usize)) -> f64 {
        self.spent[ticks.0..ticks.1].iter().map(|tick| tick[process]).sum()
    }

    /// Joules of the machine in some ticks.
    pub fn measured(&self, ticks: (usize, usize)) -> f64 {
        self.spent[ticks.0..ticks.1].iter().map(|tick| self.static_joules + tick.iter().sum::<f64>()).sum()
    }

    /// A tick of what a perfect recorder makes of it.
    fn slice(&self, recorder: &Recorder, tick: usize) -> TimeSlice {
        let joules = |process: &usize| self.of_process(*process, (tick, tick + 1));
        let attributed: f64 = recorder.of.iter().map(joules).sum();
        let measured = self.measured((tick, tick + 1));
        let in_slice = |(cell, process): (u32, &usize)| InSlice {
            cell,
            joules: joules(process) as f32,
            seconds: TICK.as_secs_f64() as f32,
        };
        TimeSlice {
            start: at(tick),
            end: at(tick + 1),
            measured: vec![Joules::from_joules(measured)],
            modelled: Joules::ZERO,
            balance: Balance {
                measured: Joules::from_joules(measured),
                attributed: Joules::from_joules(attributed),
                static_energy: Joules::from_joules(self.static_joules),
                other_processes: Joules::from_joules(measured - attributed - self.static_joules),
                ..Balance::default()
            },
            by_cell: (0..).zip(&recorder.of).map(in_slice).collect(),
        }
    }

    /// What a perfect recorder makes of it.
    pub fn record(&self, recorder: &Recorder) -> Profile {
        let (from, to) = recorder.window;
        let ticks = (to - from) as f64;
        let mut curve = MeterCurve::default();
        (from..=to).for_each(|tick| curve.push(at(tick), Joules::from_joules(self.measured((from, tick)))));
        let joules: Vec<f64> =
            recorder.of.iter().map(|&process| self.of_process(process, recorder.window)).collect();
        let (measured, attributed) = (self.measured(recorder.window), joules.iter().sum::<f64>());
        let static_energy = self.static_joules * ticks;
        let mut stacks = StackTable::default();
        let mut threads = Vec::new();
        let mut addresses = Vec::new();
        let cells = recorder.of.iter().enumerate().map(|(index, &process)| {
            let name = format!("p{process}");
            let tid = pid(process);
            threads.push(Thread {
                pid: tid,
                tid,
                name: name.clone(),
                process_name: name,
                recording: RecordingId(0),
                cgroup: None,
            });
            addresses.push(CodeAddress { module: ModuleId(0), address: process as u64, kernel: false });
            let address = AddressId(index as u32);
            let main = stacks.push_caller(CallersId::NONE, address);
            Cell {
                stack: stacks.push(main, Some(address)),
                thread: ThreadIndex(index as u32),
                cpu: Some(0),
                event: 0,
                samples: to as u64 - from as u64,
                count: 10 * (to as u64 - from as u64),
                time: Nanoseconds::from_nanos((to - from) as u64 * TICK.as_nanos()),
            }
        });
        let cells: Vec<Cell> = cells.collect();
        let info = DomainInfo::new("package-0", DomainKind::Package, "test", Method::Measured);
        let balance = Balance {
            measured: Joules::from_joules(measured),
            attributed: Joules::from_joules(attributed),
            static_energy: Joules::from_joules(static_energy),
            other_processes: Joules::from_joules((measured - attributed - static_energy).max(0.0)),
            ..Balance::default()
        };
        let module = Module {
            kind: ModuleKind::File,
            path: "/bin/app".to_owned(),
            build_id: None,
            inode: None,
            pid: None,
        };
        let identity = Identity {
            boot: Some(self.boot.to_owned()),
            pid_namespace: Some(1),
            job: Job { rank: Some(recorder.pid), ..Job::default() },
            ..Identity::default()
        };
        Profile {
            start: at(from),
            duration: Nanoseconds::from_nanos((to - from) as u64 * TICK.as_nanos()),
            domains: vec![DomainEnergy { info, balance }],
            events: vec![EventTotals {
                name: "cycles".to_owned(),
                samples: cells.iter().map(|cell| cell.samples).sum(),
                count: cells.iter().map(|cell| cell.count).sum(),
                ..EventTotals::default()
            }],
            modules: vec![module],
            addresses,
            stacks,
            threads,
            cells,
            cell_joules: joules.into_iter().map(Joules::from_joules).collect(),
            slices: (from..to).map(|tick| self.slice(recorder, tick)).collect(),
            recordings: vec![Origin {
                name: Some(format!("{}.data", recorder.pid)),
                hostname: "host".to_owned(),
                identity: Some(identity),
                started_unix_ns: Some(1_000_000_000_000 + at(from).as_nanos()),
                is_monotonic: true,
                recorder_pid: Some(recorder.pid),
                meters: vec![curve],
                ..Origin::default()
            }],
            ..Profile::default()
        }
    }
}

/// Puts profiles together, in time, too.
pub fn merge(profiles: Vec<Profile>) -> super::Merged {
    super::merge(profiles, super::InTime::Told)
}

/// Joules of functions, which are addresses here, in their order.
pub fn by_function(profile: &Profile) -> Vec<(u64, f64)> {
    let mut sums = std::collections::BTreeMap::new();
    for (index, cell) in profile.cells.iter().enumerate() {
        let address = profile.stacks.innermost(cell.stack).expect("an address");
        let joules: Joules = profile.joules(index).iter().sum();
        *sums.entry(profile.addresses[address.0 as usize].address).or_insert(0.0) += joules.as_joules();
    }
    sums.into_iter().collect()
}
