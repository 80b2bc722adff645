//! Samples by name to a profile: each distinct place, stack, thread and cell once.

use rustc_hash::FxHashMap;

use super::names::{java, rust, without_parameters};
use super::sample::{Frame, Sample, UNKNOWN};
use super::text::{TextKind, TextOptions, TextProfile};
use crate::profile::{
    AddressId, CallersId, Cell, CodeAddress, EventTotals, Module, ModuleId, ModuleKind, Profile, RecordingId,
    StackTable, Thread, ThreadIndex,
};
use crate::symbolize::{FoundFrames, FoundFunction, FunctionId, Item, SourceFrame, Symbols, SymbolsBuilder};
use crate::timeline::StackInterner;
use crate::units::{Nanoseconds, Timestamp};

/// Events whose period is nanoseconds on a CPU.
const CLOCKS: [&str; 2] = ["cpu-clock", "task-clock"];
/// What all samples of a text may weigh together, so that every sum of them is a number.
const MOST: u64 = 1 << 62;
/// Names in brackets that are the program's own.
const OF_PROGRAMS: [&str; 5] = ["[vdso", "[vsyscall", "[uprobes", "[heap", "[stack"];

/// A code address as a text has it: the functions there, the outermost first, and where they lie.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    module: ModuleId,
    /// Numbers of names; `None` where nobody knew it.
    names: Vec<Option<u32>>,
}

/// Puts a profile together, sample by sample.
pub(super) struct Builder {
    options: TextOptions,
    profile: Profile,
    kind: TextKind,
    cpus_of_machine: Option<u32>,
    highest_cpu: Option<u32>,
    times: Option<(u64, u64)>,
    names: FxHashMap<Box<str>, u32>,
    modules: FxHashMap<Box<str>, ModuleId>,
    threads: FxHashMap<(u32, u32, String), ThreadIndex>,
    events: FxHashMap<String, u32>,
    places: FxHashMap<Place, AddressId>,
    callers: StackTable,
    known_callers: FxHashMap<(CallersId, AddressId), CallersId>,
    stacks: StackInterner,
    cells: FxHashMap<(u32, ThreadIndex, Option<u32>, u32), usize>,
    open: Option<Sample>,
    /// What samples, and their counts, may still add to the whole.
    left: (u64, u64),
    is_cut: bool,
    /// The frames of the sample at hand, innermost first.
    path: Vec<AddressId>,
    /// Names of functions that are inlined into the next frame, innermost first.
    inlined: Vec<Option<u32>>,
}

impl Builder {
    pub(super) fn new(kind: TextKind, options: TextOptions) -> Self {
        Self {
            options,
            profile: Profile::default(),
            kind,
            cpus_of_machine: None,
            highest_cpu: None,
            times: None,
            names: FxHashMap::default(),
            modules: FxHashMap::default(),
            threads: FxHashMap::default(),
            events: FxHashMap::default(),
            places: FxHashMap::default(),
            callers: StackTable::default(),
            known_callers: FxHashMap::default(),
            stacks: StackInterner::default(),
            cells: FxHashMap::default(),
            open: None,
            left: (MOST, MOST),
            is_cut: false,
            path: Vec::new(),
            inlined: Vec::new(),
        }
    }

    /// Takes what a comment says of the machine: `nrcpus online : 8`, as perf has it.
    pub(super) fn take_comment(&mut self, comment: &str) {
        if let Some((key, value)) = comment.split_once(':')
            && key.trim() == "nrcpus online"
        {
            self.cpus_of_machine = value.trim().parse().ok();
        }
    }

    /// What the reader of a report must know.
    pub(super) fn warn(&mut self, warning: Option<String>) {
        self.profile.warnings.extend(warning);
    }

    /// Begins a sample; its frames follow, innermost first.
    pub(super) fn begin_sample(&mut self, sample: Sample) {
        self.path.clear();
        self.inlined.clear();
        self.open = Some(sample);
    }

    pub(super) fn add_frame(&mut self, frame: Frame<'_>) {
        let Some(sample) = &self.open else { return };
        let is_java = sample.comm.starts_with("java");
        // Java's compilers tell what they inlined in the name, the outermost first.
        let made_at_run_time = module_kind(frame.module) == ModuleKind::Anonymous;
        let (own, inlined) = match frame.symbol.and_then(|symbol| symbol.split_once("->")) {
            Some((own, inlined)) if made_at_run_time => (Some(own), Some(inlined)),
            _ => (frame.symbol, None),
        };
        for name in inlined.into_iter().flat_map(|inlined| inlined.rsplit("->")) {
            let name = self.name(name, is_java);
            self.inlined.push(Some(name));
        }
        let name = own.map(|own| self.name(own, is_java));
        if frame.inlined {
            self.inlined.push(name);
            return;
        }
        self.place(frame.module, name);
    }

    /// Ends the sample at hand, if there is one.
    pub(super) fn end_sample(&mut self) {
        let Some(sample) = self.open.take() else { return };
        // Of what they are inlined into is not told.
        if let Some(outermost) = self.inlined.pop() {
            self.place(UNKNOWN, outermost);
        }
        let event = self.event(&sample.event);
        let thread = self.thread(&sample);
        let callers = self.callers_of_path();
        let stack = self.stacks.stack(callers, self.path.first().copied());
        let cpu = sample.cpu.filter(|_| self.options.cpus);
        let cells = &mut self.profile.cells;
        let cell = *self.cells.entry((stack.0, thread, cpu, event)).or_insert_with(|| {
            let (samples, count, time) = (0, 0, Nanoseconds::ZERO);
            cells.push(Cell { stack, thread, cpu, event, samples, count, time });
            cells.len() - 1
        });
        let cell = &mut cells[cell];
        let totals = &mut self.profile.events[event as usize];
        let told = (sample.samples, sample.count.unwrap_or(sample.samples));
        let (samples, count) = (told.0.min(self.left.0), told.1.min(self.left.1));
        self.left = (self.left.0 - samples, self.left.1 - count);
        self.is_cut |= (samples, count) != told;
        cell.samples += samples;
        totals.samples += samples;
        cell.count += count;
        totals.count += count;
        if sample.count.is_some() && is_clock(&sample.event) {
            cell.time += Nanoseconds::from_nanos(count);
        }
        self.highest_cpu = self.highest_cpu.max(sample.cpu);
        if let Some(time) = sample.time {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
    }

    /// The whole.
    pub(super) fn finish(mut self) -> TextProfile {
        self.end_sample();
        if let Some((first, last)) = self.times {
            self.profile.start = Timestamp::from_nanos(first);
            self.profile.duration = Nanoseconds::from_nanos(last - first);
        }
        if self.is_cut {
            self.warn(Some(
                "its samples weigh more than can be counted: what came last is cut off".to_owned(),
            ));
        }
        let symbols = self.symbols();
        self.count_time_once();
        let Self { mut profile, callers, stacks, kind, cpus_of_machine, .. } = self;
        profile.stacks = callers.with_stacks_of(stacks.into_stacks());
        let seen = self.highest_cpu.map_or(1, |cpu| cpu.saturating_add(1));
        let cpus = cpus_of_machine.unwrap_or(seen).max(1);
        profile
            .warnings
            .insert(0, format!("this is {}: it has no energy, and names are as it has them", kind.name()));
        TextProfile { kind, profile, symbols, cpus, cpus_are_told: cpus_of_machine.is_some() }
    }

    /// Of clocks that count the same time one does.
    fn count_time_once(&mut self) {
        let names: Vec<&str> = self.profile.events.iter().map(|event| event.name.as_str()).collect();
        let counts = counting_clocks(&names);
        let more: Vec<&str> = names
            .iter()
            .zip(&counts)
            .filter(|(name, counts)| is_clock(name) && !*counts)
            .map(|(name, _)| *name)
            .collect();
        if more.is_empty() {
            return;
        }
        let note = format!(
            "another clock counts the time of {} as well: joules follow that one alone",
            more.join(", ")
        );
        let others = self.profile.cells.iter_mut().filter(|cell| !counts[cell.event as usize]);
        others.for_each(|cell| cell.time = Nanoseconds::ZERO);
        self.profile.warnings.push(note);
    }

    fn name(&mut self, name: &str, is_java: bool) -> u32 {
        let name = rust(name.trim());
        let name = without_parameters(&name);
        let name = if is_java { java(&name) } else { &*name };
        if let Some(&known) = self.names.get(name) {
            return known;
        }
        let number = self.names.len() as u32;
        self.names.insert(name.into(), number);
        number
    }

    /// Adds the place of a function, and of those that are inlined into it, to the sample's path.
    fn place(&mut self, module: &str, own: Option<u32>) {
        let module = self.module(module);
        let names = [own].into_iter().chain(self.inlined.drain(..).rev()).collect();
        let place = Place { module, names };
        let id = match self.places.get(&place) {
            Some(&known) => known,
            None => {
                let number = self.profile.addresses.len() as u32;
                let kernel = matches!(
                    self.profile.modules[module.0 as usize].kind,
                    ModuleKind::Kernel | ModuleKind::KernelModule
                );
                // Texts of one function have it at many addresses; what it is called tells it apart.
                self.profile.addresses.push(CodeAddress { module, address: number.into(), kernel });
                self.places.insert(place, AddressId(number));
                AddressId(number)
            }
        };
        self.path.push(id);
    }

    fn module(&mut self, path: &str) -> ModuleId {
        if let Some(&known) = self.modules.get(path) {
            return known;
        }
        let id = ModuleId(self.profile.modules.len() as u32);
        let kind = module_kind(path);
        self.profile.modules.push(Module {
            kind,
            path: path.to_owned(),
            build_id: None,
            inode: None,
            pid: None,
        });
        self.modules.insert(path.into(), id);
        id
    }

    fn event(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.events.get(name) {
            return known;
        }
        let number = self.profile.events.len() as u32;
        let name = name.to_owned();
        self.events.insert(name.clone(), number);
        self.profile.events.push(EventTotals { name, ..EventTotals::default() });
        number
    }

    fn thread(&mut self, sample: &Sample) -> ThreadIndex {
        let Sample { pid, tid, comm, .. } = sample;
        let threads = &mut self.profile.threads;
        *self.threads.entry((*pid, *tid, comm.clone())).or_insert_with(|| {
            // Of a thread's process only the thread's own name is told.
            let (name, process_name) = (comm.clone(), comm.clone());
            let recording = RecordingId(0);
            threads.push(Thread { pid: *pid, tid: *tid, name, process_name, recording, cgroup: None });
            ThreadIndex(threads.len() as u32 - 1)
        })
    }

    /// The place in the tree of all frames of the path but the innermost.
    fn callers_of_path(&mut self) -> CallersId {
        let Self { path, callers, known_callers, .. } = self;
        path.iter().skip(1).rev().fold(CallersId::NONE, |outer, &frame| {
            *known_callers.entry((outer, frame)).or_insert_with(|| callers.push_caller(outer, frame))
        })
    }

    /// The names of all addresses.
    fn symbols(&self) -> Symbols {
        let mut texts = vec![""; self.names.len()];
        self.names.iter().for_each(|(text, number)| texts[*number as usize] = text);
        let mut by_module: Vec<Vec<(AddressId, &Place)>> = vec![Vec::new(); self.profile.modules.len()];
        for (place, id) in &self.places {
            by_module[place.module.0 as usize].push((*id, place));
        }
        let mut builder = SymbolsBuilder::new(self.profile.addresses.len());
        for (number, mut places) in (0..).zip(by_module) {
            places.sort_unstable_by_key(|(id, _)| id.0);
            let unknown = in_brackets(&self.profile.modules[number as usize].path);
            let mut found = FoundFrames::default();
            let mut functions: FxHashMap<Option<u32>, FunctionId> = FxHashMap::default();
            for (_, place) in &places {
                for (depth, name) in place.names.iter().enumerate() {
                    let function = *functions.entry(*name).or_insert_with(|| {
                        let raw_name = name.map_or(unknown.as_str(), |name| texts[name as usize]);
                        found.add_function(FoundFunction {
                            raw_name: raw_name.into(),
                            name: None,
                            address: None,
                            known: name.is_some(),
                            declaration: None,
                        })
                    });
                    found.add_frame(SourceFrame { function, file: None, line: None, inlined: depth > 0 });
                }
                found.end_address(None, None);
            }
            let items: Vec<Item> =
                places.iter().map(|(id, _)| Item { address: id.0.into(), index: id.0 }).collect();
            builder.merge(ModuleId(number), &[(&items, &found)]);
        }
        builder.finish(Vec::new())
    }
}

fn is_clock(event: &str) -> bool {
    CLOCKS.contains(&event.split(':').next().unwrap_or(event))
}

/// Which of these events are clocks that count time that no other one does: the first that counts it in both modes, else the first
/// of each mode, as `cpu-clock:u` and `cpu-clock:k`.
fn counting_clocks(names: &[&str]) -> Vec<bool> {
    let mode = |name: &str| -> Option<char> {
        let modifiers = name.split_once(':').map_or("", |(_, modifiers)| modifiers);
        let mut modes = ['u', 'k'].into_iter().filter(|mode| modifiers.contains(*mode));
        modes.next().filter(|_| modes.next().is_none())
    };
    let of_both = names.iter().position(|name| is_clock(name) && mode(name).is_none());
    let is_first =
        |at: usize| !names[..at].iter().any(|other| is_clock(other) && mode(other) == mode(names[at]));
    let counts = |at: usize| is_clock(names[at]) && of_both.map_or_else(|| is_first(at), |whole| whole == at);
    (0..names.len()).map(counts).collect()
}

/// What perf's name for a module means.
fn module_kind(path: &str) -> ModuleKind {
    let file = path.rsplit('/').next().unwrap_or(path);
    let is_kernel_image = file == "vmlinux" || file.starts_with("vmlinux-");
    let is_map = file.starts_with("perf-") && file.ends_with(".map");
    match path {
        UNKNOWN => ModuleKind::Unknown,
        _ if path.starts_with("[vdso") => ModuleKind::Vdso,
        _ if OF_PROGRAMS.iter().any(|name| path.starts_with(name)) => ModuleKind::Unknown,
        _ if path.starts_with("[kernel") || path.starts_with("[guest.kernel") || is_kernel_image => {
            ModuleKind::Kernel
        }
        _ if path.starts_with("//anon") || path.starts_with("[anon") || is_map => ModuleKind::Anonymous,
        _ if file.starts_with("jitted-") && file.ends_with(".so") => ModuleKind::Anonymous,
        _ if path.starts_with('[')
            || [".ko", ".ko.xz", ".ko.gz", ".ko.zst"].iter().any(|end| file.ends_with(end)) =>
        {
            ModuleKind::KernelModule
        }
        _ => ModuleKind::File,
    }
}

/// What code without a symbol is called.
fn in_brackets(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    if path.starts_with('[') { path.to_owned() } else { format!("[{name}]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_what_perf_calls_them() {
        for (path, kind) in [
            ("[kernel.kallsyms]", ModuleKind::Kernel),
            ("[kernel.kallsyms].init.text", ModuleKind::Kernel),
            ("/usr/lib/debug/boot/vmlinux-5.4", ModuleKind::Kernel),
            ("/lib/modules/4.3/build/vmlinux", ModuleKind::Kernel),
            ("[nf_conntrack]", ModuleKind::KernelModule),
            ("/lib/modules/5/kernel/fs/ext4.ko.xz", ModuleKind::KernelModule),
            ("[vdso]", ModuleKind::Vdso),
            ("[unknown]", ModuleKind::Unknown),
            ("/tmp/perf-12.map", ModuleKind::Anonymous),
            ("//anon", ModuleKind::Anonymous),
            ("[anon]", ModuleKind::Anonymous),
            ("[anon:v8]", ModuleKind::Anonymous),
            ("/opt/app (deleted)", ModuleKind::File),
            ("/home/x/.debug/jit/jitted-12-1.so", ModuleKind::Anonymous),
            ("/usr/lib/libc.so.6", ModuleKind::File),
        ] {
            assert_eq!(module_kind(path), kind, "{path}");
        }
    }
}
