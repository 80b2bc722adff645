//! Profiles made by hand, for tests.

use super::exporter::Exported;
use super::tree::TreeOptions;
use crate::hardware::{CoreKind, CpuInfo, DomainInfo, DomainKind, Method};
use crate::profile::{
    AddressId, Balance, CallersId, Cell, CodeAddress, DomainEnergy, EventTotals, InSlice, Module, ModuleId,
    ModuleKind, Profile, ProfileParts, RecordingId, Thread, ThreadIndex, TimeSlice,
};
use crate::symbolize::{FileId, FoundFrames, FoundFunction, Item, SourceFrame, Symbols, SymbolsBuilder};
use crate::units::{Joules, Nanoseconds, Timestamp};

/// A profile to be exported, of which it is not known when it began, and whose warnings nobody hears.
pub(crate) fn exported<'p>(
    profile: &'p Profile,
    symbols: &'p Symbols,
    options: &'p TreeOptions,
) -> Exported<'p> {
    Exported { profile, symbols, options, started: None, warn: &|_| () }
}

/// What cells had of a stretch of time: cell and joules, and a second of CPU time for each four joules.
pub(crate) fn in_slice(joules: &[(u32, f32)]) -> Vec<InSlice> {
    joules.iter().map(|&(cell, joules)| InSlice { cell, joules, seconds: joules / 4.0 }).collect()
}

/// A profile whose cells come in parts.
pub(crate) struct Divided {
    head: Profile,
    parts: Vec<Profile>,
    spare_bytes: usize,
}

impl Divided {
    /// `part_of` tells for each cell in which of so many parts it is.
    pub fn new(whole: &Profile, parts: usize, part_of: impl Fn(usize) -> usize) -> Self {
        let empty = |slices| Profile {
            stacks: Default::default(),
            cells: Vec::new(),
            cell_joules: Vec::new(),
            cell_variances: Vec::new(),
            slices,
            ..whole.clone()
        };
        let without_cells = |slice: &TimeSlice| TimeSlice { by_cell: Vec::new(), ..slice.clone() };
        let part = |number: usize| {
            let mut part = empty(Vec::new());
            part.stacks = whole.stacks.clone();
            let mut moved = vec![None; whole.cells.len()];
            for (cell, moved) in moved.iter_mut().enumerate().filter(|(cell, _)| part_of(*cell) == number) {
                *moved = Some(part.cells.len() as u32);
                part.cells.push(whole.cells[cell]);
                part.cell_joules.extend(whole.joules(cell));
                let columns = whole.domains.len();
                part.cell_variances.extend(&whole.cell_variances[cell * columns..][..columns]);
            }
            let of_part = |slice: &TimeSlice| {
                let by_cell = slice.by_cell.iter();
                let by_cell =
                    by_cell.filter_map(|of| Some(InSlice { cell: moved[of.cell as usize]?, ..*of }));
                TimeSlice { by_cell: by_cell.collect(), measured: Vec::new(), ..slice.clone() }
            };
            part.slices =
                whole.slices.iter().map(of_part).filter(|slice| !slice.by_cell.is_empty()).collect();
            part
        };
        let head = empty(whole.slices.iter().map(without_cells).collect());
        Self { head, parts: (0..parts).map(part).collect(), spare_bytes: usize::MAX }
    }

    /// The same with so little memory beside.
    pub fn within(self, spare_bytes: usize) -> Self {
        Self { spare_bytes, ..self }
    }
}

impl ProfileParts for Divided {
    fn profile(&self) -> &Profile {
        &self.head
    }

    fn whole(&self) -> Option<&Profile> {
        None
    }

    fn for_each_part(&self, visit: &mut dyn FnMut(&Profile)) {
        self.parts.iter().for_each(visit);
    }

    fn spare_bytes(&self) -> usize {
        self.spare_bytes
    }
}

/// One function at an address: its name and, if known, file and line.
type Place = (String, Option<(String, u32)>);

/// A profile in the making.
#[derive(Default)]
pub(crate) struct Fixture {
    pub profile: Profile,
    /// The functions of each address, outermost first.
    places: Vec<Vec<Place>>,
}

/// What one line of a profile adds: `samples` samples of `time` milliseconds and joules by domain.
#[derive(Clone, Copy)]
pub(crate) struct Spent<'a> {
    pub samples: u64,
    pub millis: u64,
    pub joules: &'a [f64],
}

impl Fixture {
    /// Adds a domain; its measured and attributed joules follow from the balance and the cells.
    pub fn domain(&mut self, name: &str, parent: Option<&str>, method: Method, source: &str, rest: [f64; 4]) {
        let [static_energy, other_processes, recorder, lost] = rest.map(Joules::from_joules);
        self.profile.domains.push(DomainEnergy {
            info: DomainInfo {
                parent: parent.map(str::to_owned),
                package: Some(0),
                ..DomainInfo::new(name, DomainKind::Package, source, method)
            },
            balance: Balance {
                measured: static_energy + other_processes + recorder + lost,
                attributed: Joules::ZERO,
                static_energy,
                other_processes,
                recorder,
                lost,
            },
        });
    }

    pub fn event(&mut self, name: &str, lost: u64) {
        self.profile.events.push(EventTotals { name: name.to_owned(), lost, ..EventTotals::default() });
    }

    pub fn thread(&mut self, pid: u32, tid: u32, name: &str, process_name: &str) {
        let (name, process_name) = (name.to_owned(), process_name.to_owned());
        let recording = RecordingId(0);
        self.profile.threads.push(Thread { pid, tid, name, process_name, recording, cgroup: None });
    }

    /// The control group of the last thread.
    pub fn cgroup(&mut self, path: &str) {
        self.profile.threads.last_mut().expect("a thread").cgroup = Some(path.into());
    }

    pub fn cpu(&mut self, cpu: u32, core: u32) {
        let kind = CoreKind::Performance;
        self.profile.cpus.push(CpuInfo { cpu, core, die: 0, package: 0, kind });
    }

    /// Adds a cell. The stack is written outermost first: frames apart by two spaces, each a module, a
    /// backquote and functions, with `>` before an inlined one and `@file:line` behind each. The module
    /// says by its name what it is: `[kernel]`, `[jit]`, or a file.
    pub fn cell(&mut self, thread: u32, cpu: u32, event: u32, stack: &str, spent: Spent<'_>) {
        let frames: Vec<(&str, &str)> = stack
            .split("  ")
            .filter(|frame| !frame.is_empty())
            .map(|frame| frame.split_once('`').expect("a module"))
            .collect();
        self.cell_of(thread, cpu, event, &frames, spent);
    }

    /// Adds a cell with any names: a stack of modules and functions.
    pub fn cell_of(&mut self, thread: u32, cpu: u32, event: u32, frames: &[(&str, &str)], spent: Spent<'_>) {
        let addresses: Vec<AddressId> =
            frames.iter().map(|(module, code)| self.address(module, code)).collect();
        let (innermost, callers) = match addresses.split_last() {
            Some((innermost, callers)) => (Some(*innermost), callers),
            None => (None, &[][..]),
        };
        let stacks = &mut self.profile.stacks;
        let callers =
            callers.iter().fold(CallersId::NONE, |callers, frame| stacks.push_caller(callers, *frame));
        let stack = stacks.push(callers, innermost);
        let time = Nanoseconds::from_millis(spent.millis);
        let (samples, count) = (spent.samples, spent.samples * 1000);
        self.profile.cells.push(Cell {
            stack,
            thread: ThreadIndex(thread),
            cpu: Some(cpu),
            event,
            samples,
            count,
            time,
        });
        let totals = &mut self.profile.events[event as usize];
        totals.samples += samples;
        totals.count += count;
        assert_eq!(spent.joules.len(), self.profile.domains.len());
        for (domain, &joules) in self.profile.domains.iter_mut().zip(spent.joules) {
            let joules = Joules::from_joules(joules);
            domain.balance.attributed += joules;
            domain.balance.measured += joules;
            self.profile.cell_joules.push(joules);
            // A standard error of a tenth.
            self.profile.cell_variances.push((joules * 0.1).as_joules().powi(2));
        }
    }

    /// The profile and the symbols of its addresses.
    pub fn finish(self) -> (Profile, Symbols) {
        let mut builder = SymbolsBuilder::new(self.places.len());
        for module in 0..self.profile.modules.len() {
            let (mut items, mut found) = (Vec::new(), FoundFrames::default());
            let of_module = self.places.iter().zip(&self.profile.addresses).enumerate();
            for (index, (places, address)) in of_module.filter(|(_, (_, it))| it.module.0 as usize == module)
            {
                items.push(Item { address: address.address, index: index as u32 });
                for (depth, (name, line)) in places.iter().enumerate() {
                    let raw_name = name.as_str().into();
                    let function = found.add_function(FoundFunction {
                        raw_name,
                        name: None,
                        address: None,
                        known: true,
                        declaration: None,
                    });
                    let file = line.as_ref().map(|(file, _)| {
                        found.files.push(file.as_str().into());
                        FileId(found.files.len() as u32 - 1)
                    });
                    let line = line.as_ref().map(|(_, line)| *line);
                    found.frames.push(SourceFrame { function, file, line, inlined: depth > 0 });
                }
                found.ends.push(found.frames.len() as u32);
            }
            builder.merge(ModuleId(module as u32), &[(&items, &found)]);
        }
        (self.profile, builder.finish(Vec::new()))
    }

    fn address(&mut self, module: &str, code: &str) -> AddressId {
        let kernel = module == "[kernel]";
        let kind = match module {
            "[kernel]" => ModuleKind::Kernel,
            "[jit]" => ModuleKind::Jit,
            _ => ModuleKind::File,
        };
        let modules = &mut self.profile.modules;
        let known = modules.iter().position(|known| known.path == module);
        let module = ModuleId(known.unwrap_or_else(|| {
            modules.push(Module { kind, path: module.to_owned(), build_id: None, inode: None, pid: None });
            modules.len() - 1
        }) as u32);
        let place = |text: &str| match text
            .split_once('@')
            .and_then(|(name, place)| Some((name, place.split_once(':')?)))
        {
            Some((name, (file, line))) => {
                (name.to_owned(), line.parse().ok().map(|line| (file.to_owned(), line)))
            }
            None => (text.to_owned(), None),
        };
        self.places.push(code.split('>').map(place).collect());
        let address = 0x1000 + self.profile.addresses.len() as u64 * 16;
        self.profile.addresses.push(CodeAddress { module, address, kernel });
        AddressId(self.profile.addresses.len() as u32 - 1)
    }
}

/// The profile of the golden files. By hand:
///
/// | stack | thread, CPU, event | samples | ms | package J | cores J | dram J |
/// |---|---|---|---|---|---|---|
/// | main, work, kernel write | worker, 0, cpu-clock | 10 | 10 | 0.5 | 0.25 | 0 |
/// | main, work, inlined mix | worker, 0, cpu-clock | 600 | 600 | 9 | 6 | 0.5 |
/// | main, work, libz deflate, recursive walk twice | app, 1, cpu-clock | 200 | 200 | 2.5 | 2 | 0.25 |
/// | main, jitted | app, 1, cpu-clock | 190 | 190 | 1 | 0.75 | 0.25 |
/// | main, work, inlined mix | worker, 0, instructions | 400 | 0 | 3 | 2 | 1 |
///
/// Package: 16 attributed + 9 static + 3 others + 1.5 eprof + 0.5 lost = 30. DRAM: 2 + 1 + 0.5 + 0.25
/// + 0.25 = 4. Together 34 J in 2 s: 17 W. The cores lie inside the package and are not added.
pub(crate) fn sample_profile() -> (Profile, Symbols) {
    let mut fixture = Fixture::default();
    fixture.profile.start = Timestamp::from_nanos(1_000_000_000);
    fixture.profile.duration = Nanoseconds::from_millis(2000);
    fixture.profile.warnings.push("the PMU has only 4 counters: 5 events took turns".to_owned());
    fixture.domain("package-0", None, Method::Measured, "power PMU", [9.0, 3.0, 1.5, 0.5]);
    fixture.domain("package-0-cores", Some("package-0"), Method::Measured, "power PMU", [4.0, 1.0, 0.5, 0.5]);
    fixture.domain("dram-0", None, Method::Estimated, "estimate", [1.0, 0.5, 0.25, 0.25]);
    fixture.event("cpu-clock", 7);
    fixture.event("instructions", 0);
    fixture.thread(100, 100, "app", "app");
    fixture.thread(100, 101, "worker", "app");
    for (cpu, core) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
        fixture.cpu(cpu, core);
    }
    let mut cell = |thread, cpu, event, stack: &str, samples, millis, joules: [f64; 3]| {
        fixture.cell(thread, cpu, event, stack, Spent { samples, millis, joules: &joules });
    };
    let main = "/opt/app/bin/app`main@src/main.c:10";
    let work = "/opt/app/bin/app`work@src/work.c:42";
    let walk = "/usr/lib/x86_64-linux-gnu/libz.so.1.3`walk";
    let mix = format!("{main}  {work}>mix@src/mix.h:7");
    cell(1, 0, 0, &format!("{main}  {work}  [kernel]`ksys_write"), 10, 10, [0.5, 0.25, 0.0]);
    cell(1, 0, 0, &mix, 600, 600, [9.0, 6.0, 0.5]);
    cell(
        0,
        1,
        0,
        &format!("{main}  {work}  /usr/lib/x86_64-linux-gnu/libz.so.1.3`deflate  {walk}  {walk}"),
        200,
        200,
        [2.5, 2.0, 0.25],
    );
    cell(0, 3, 0, &format!("{main}  [jit]`LazyCompile:~sum app.js:3"), 190, 190, [1.0, 0.75, 0.25]);
    cell(1, 0, 1, &mix, 400, 0, [3.0, 2.0, 1.0]);
    fixture.finish()
}
