//! The published measurements that recordings are made of: events and watts of programs that ran alone on real machines.

use std::path::Path;

use eprof::hardware::{DomainKind, Role};
use eprof::power_model::dataset::Dataset;
use eprof::power_model::observations::perf_stat::{self, PerfStatLog};
use eprof::power_model::observations::table::TableColumns;
use eprof_testbed::published;

use crate::published::{csv_below, observe, read, stem, strings};

/// What was measured of one machine.
#[derive(Clone)]
pub struct Trace {
    /// The machine and its meter.
    pub name: String,
    /// The roles of the events that were counted.
    pub roles: Vec<Role>,
    /// What the meters stand for.
    pub domains: Vec<DomainKind>,
    /// Cycles per second of all CPUs, if none is ever idle.
    pub capacity: f64,
    /// Watts at rest, by domain.
    pub rest: Vec<f64>,
    /// The package's graphics did a part of what is measured.
    pub has_graphics: bool,
    /// What ran.
    pub programs: Vec<Program>,
}

/// A program's own intervals.
#[derive(Clone)]
pub struct Program {
    pub name: String,
    pub rows: Vec<Row>,
}

/// Means of an interval.
#[derive(Clone)]
pub struct Row {
    /// Events per second of all CPUs, in the order of the roles.
    pub rates: Vec<f64>,
    /// Watts by domain, those at rest among them.
    pub watts: Vec<f64>,
}

/// Programs of which the package's graphics do a part, which no event of a core counts.
const BY_GRAPHICS: [&str; 3] = ["kerbal", "ksp", "opencl"];
/// What a program is called whose watts are those at rest.
const AT_REST: [&str; 2] = ["sleep", "idle"];

impl Trace {
    /// From data sets of the same rows, one for each domain. Without a program that does nothing, rest is what one row of
    /// a hundred is below.
    fn new(
        name: &str,
        capacity: f64,
        roles: &[(Role, &str)],
        domains: &[(DomainKind, Dataset)],
        program: impl Fn(&Dataset, usize) -> String,
    ) -> Self {
        let data = &domains[0].1;
        assert!(domains.iter().all(|(_, other)| other.len() == data.len()), "{name}: rows of each domain");
        let column = |name: &str| {
            let found = data.columns().iter().position(|column| column == name);
            found.unwrap_or_else(|| panic!("no {name} among {:?}", data.columns()))
        };
        let columns: Vec<usize> = roles.iter().map(|(_, name)| column(name)).collect();
        let mut programs: Vec<Program> = Vec::new();
        let mut at_rest: Vec<Row> = Vec::new();
        for row in 0..data.len() {
            let name = program(data, row);
            let row = Row {
                rates: columns.iter().map(|&column| data.rates(row)[column]).collect(),
                watts: domains.iter().map(|(_, of)| of.watts(row)).collect(),
            };
            if AT_REST.contains(&name.as_str()) {
                at_rest.push(row);
                continue;
            }
            match programs.iter_mut().find(|program| program.name == name) {
                Some(program) => program.rows.push(row),
                None => programs.push(Program { name, rows: vec![row] }),
            }
        }
        let rest = (0..domains.len()).map(|domain| {
            let of = |row: &Row| row.watts[domain];
            if at_rest.is_empty() {
                let mut all: Vec<f64> = programs.iter().flat_map(|program| &program.rows).map(of).collect();
                all.sort_by(f64::total_cmp);
                all[all.len() / 100]
            } else {
                at_rest.iter().map(of).sum::<f64>() / at_rest.len() as f64
            }
        });
        Self {
            name: name.to_owned(),
            roles: roles.iter().map(|(role, _)| *role).collect(),
            domains: domains.iter().map(|(kind, _)| *kind).collect(),
            capacity,
            rest: rest.collect(),
            has_graphics: false,
            programs,
        }
    }
}

fn by_workload(data: &Dataset, row: usize) -> String {
    data.workloads()[data.workload_of(row)].clone()
}

/// All machines, of the folder of published data.
pub fn all(data: &Path) -> Vec<Trace> {
    let mut all = Vec::new();
    if let Some(data) = published("rapl_validation") {
        all.push(haswell_logs(&data));
        all.extend(haswell_totals(&data));
    }
    let graphics = |program: &Program| BY_GRAPHICS.contains(&program.name.as_str());
    let mut without: Vec<Trace> = Vec::new();
    for trace in &mut all {
        if trace.programs.iter().any(graphics) {
            let programs = trace.programs.iter().filter(|program| !graphics(program)).cloned().collect();
            without.push(Trace { programs, ..trace.clone() });
            trace.name += ", with its graphics";
            trace.has_graphics = true;
        }
    }
    all.extend(without);
    all.extend(servers(data));
    all.push(kepler(data));
    all.extend(phone(data));
    all
}

/// Four cores at 3.2 GHz, RAPL every 100 ms: 25 to 78 s of each of three programs.
fn haswell_logs(data: &Path) -> Trace {
    let folder = data.join("phase_plots/haswellian-i5");
    let log = |name: &str| {
        let path = folder.join(format!("{name}.perf"));
        PerfStatLog::parse(&stem(&path), &stem(&path), &read(&path)).expect("a log")
    };
    let logs: Vec<PerfStatLog> =
        ["hpl_mkl/hpl_mkl", "hpl_atlas/hpl_atlas", "gpu_ksp/kerbal", "sleep/sleep"].map(log).into();
    let of = |power: &str| {
        let data = perf_stat::observe(&logs, Some(power), None, &[]).expect("rows").data;
        let columns = ["cycles", "instructions", "cache-misses"];
        let at = |name| data.columns().iter().position(|column| column == name).expect("counted");
        data.select(&columns.map(at))
    };
    let domains =
        [(DomainKind::Package, of("power/energy-pkg/")), (DomainKind::Dram, of("power/energy-ram/"))];
    let roles = [(Role::Clk, "cycles"), (Role::Inst, "instructions"), (Role::LlcMiss, "cache-misses")];
    Trace::new("Haswell i5, each 100 ms", 12.8e9, &roles, &domains, by_workload)
}

/// Means of whole runs of the same machine and of two sockets of eight cores.
fn haswell_totals(data: &Path) -> Vec<Trace> {
    let file = data.join("derived_run_totals.given.csv");
    let of = |machine: &str, power: &str| {
        let columns = TableColumns {
            power: power.into(),
            power_is_energy: true,
            events: Some(strings(&["cycles", "instructions", "cache_misses"])),
            workload: vec!["bench".into()],
            duration: Some("elapsed_s".into()),
            only: vec![("machine".into(), machine.into())],
            ..TableColumns::default()
        };
        observe(std::slice::from_ref(&file), &columns)
    };
    let roles = [(Role::Clk, "cycles"), (Role::Inst, "instructions"), (Role::LlcMiss, "cache_misses")];
    let trace = |name: &str, machine: &str, capacity: f64| {
        let domains =
            [(DomainKind::Package, of(machine, "e_pkg_j")), (DomainKind::Dram, of(machine, "e_ram_j"))];
        Trace::new(name, capacity, &roles, &domains, by_workload)
    };
    vec![
        trace("Haswell i5, whole runs", "haswell-i5", 13e9),
        trace("Haswell-EP, whole runs", "haswell-ep", 88e9),
    ]
}

/// Servers behind wall meters, each second, running services.
fn servers(data: &Path) -> Vec<Trace> {
    let machines = [("AMD_Opteron_6140", 41.6e9), ("INTEL_Xeon_E5-2650", 64e9), ("INTEL_Xeon_X5650", 64e9)];
    let trace = |(server, capacity): (&str, f64)| {
        let files = csv_below(&data.join("canuto-power-modelling").join(server).join("validation"));
        let columns = TableColumns { power: "powerWatts".into(), ..TableColumns::default() };
        let domains = [(DomainKind::Package, observe(&files, &columns))];
        let roles =
            [(Role::Clk, "cpu-cycles"), (Role::Inst, "instructions"), (Role::LlcMiss, "LLC-load-misses")];
        Trace::new(&format!("{server}, at the wall"), capacity, &roles, &domains, by_workload)
    };
    machines.map(trace).into()
}

/// A node of two packages, each 3 s. What ran is not told: each fifth of the time is taken for a program.
fn kepler(data: &Path) -> Trace {
    let file = data.join("kepler-model-db/preprocess_abs_default_rapl_CounterOnly.given.csv");
    let of = |power: &str| {
        let events = Some(strings(&["cpu_cycles", "cpu_instructions", "cache_miss"]));
        let columns = TableColumns { power: power.into(), events, ..TableColumns::default() };
        observe(std::slice::from_ref(&file), &columns)
    };
    let domains = [(DomainKind::Package, of("package_power")), (DomainKind::Dram, of("dram_power"))];
    let roles = [(Role::Clk, "cpu_cycles"), (Role::Inst, "cpu_instructions"), (Role::LlcMiss, "cache_miss")];
    let fifth = |data: &Dataset, row: usize| format!("part {}", 1 + row * 5 / data.len());
    Trace::new("2 x E5-2667 v3, each 3 s", 51.2e9, &roles, &domains, fifth)
}

/// The big cores of a phone's processor at two clock frequencies, one row for each program on one to four cores.
fn phone(data: &Path) -> Vec<Trace> {
    let columns = TableColumns {
        power: "Power A15".into(),
        events: Some(strings(&[
            "Average A15 CycleCount",
            "Average A15 Event 0x1b",
            "Average A15 Event 0x50",
            "Average A15 Event 0x19",
        ])),
        workload: vec!["Workload Name".into()],
        frequency: Some("Frequency A15".into()),
        ..TableColumns::default()
    };
    let file = data.join("gemstone-applypower/asrtpm-A15-powmon-data.given.csv");
    // The table has means of four cores.
    let roles = [
        (Role::Clk, "Average A15 CycleCount"),
        (Role::Inst, "Average A15 Event 0x1b"),
        (Role::L2, "Average A15 Event 0x50"),
        (Role::LlcMiss, "Average A15 Event 0x19"),
    ];
    let parts = observe(&[file], &columns).by_frequency();
    let chosen = parts.into_iter().filter(|(frequency, _)| [600.0, 1600.0].contains(frequency));
    chosen
        .map(|(frequency, part)| {
            let name = format!("Cortex-A15, {frequency} MHz");
            Trace::new(&name, frequency * 1e6, &roles, &[(DomainKind::Cores, part)], by_workload)
        })
        .collect()
}
