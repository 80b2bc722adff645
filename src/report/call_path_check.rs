//! Which call paths end before they reach where a program or a thread begins, and what lies in modules without symbols:
//! what of a report is known by address alone, in one sentence with its repair.

use std::collections::BTreeMap;

use super::select::Weight;
use crate::label::Label;
use crate::profile::{AddressId, DEEPEST_CHAIN, Module, ModuleKind, Profile, StackId, StackTable};
use crate::symbolize::{SymbolWarning, Symbols};

/// Less than this share of the whole is not worth a line.
const WORTH_TELLING: f64 = 0.05;
/// Modules that are named.
const MOST_NAMED: usize = 3;
/// A module with less than this part of what the heaviest has is no cause worth a name.
const WORTH_NAMING: f64 = 0.05;

/// Functions that programs, threads and tasks begin in, or that call those.
const ROOTS: [&str; 16] = [
    "main",
    "_start",
    "_start_c",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "execute_native_thread_routine",
    "execute_native_thread_routine_compat",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "_dl_start",
    "_dl_start_user",
    "_dl_relocate_static_pie",
    "__restore_rt",
];
/// The same as beginnings of names. Go's schedulers run on stacks of their own.
const ROOTS_BEGIN: [&str; 6] = [
    "__libc_start_main",
    "std::rt::lang_start",
    "runtime.goexit",
    "runtime.mstart",
    "runtime.rt0_go",
    "runtime.systemstack",
];
/// Libraries whose unnamed functions call `main` and what threads begin with: their names are stripped. That of C++ has no
/// frame pointers, so that a chain of them ends there in every thread.
const STARTERS: [&str; 5] = ["libc.so", "libc-2", "libpthread", "libstdc++.so", "ld-linux"];

/// What else repairs that a debug package does, of several modules and of one.
const FETCH: [&str; 2] = [", or have them fetched by --debuginfod", ", or have it fetched by --debuginfod"];

/// No module.
const NONE: u32 = u32::MAX;

/// What an address is to the path that it lies on.
#[derive(Debug, Clone, Copy)]
struct Code {
    module: u32,
    is_user: bool,
    is_root: bool,
    /// Code of a library that programs and threads are started by, without a name.
    is_starter: bool,
    is_nowhere: bool,
}

impl Code {
    /// Of an address that nothing is known of.
    const UNKNOWN: Self =
        Self { module: NONE, is_user: false, is_root: false, is_starter: false, is_nowhere: false };
}

/// What is known of a path from its outermost frame on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Path {
    /// User frames: none, one, or more.
    user_frames: u8,
    /// All frames, the kernel's as well.
    frames: u16,
    has_root: bool,
    begins_in_starter: bool,
    /// Behind where it begins: what a chain of frame pointers finds beyond that is garbage, and does no harm.
    has_nowhere: bool,
    /// The module of the outermost user frame that lies somewhere: the code that did not tell its caller.
    ends_in: u32,
}

impl Path {
    const EMPTY: Self = Self {
        user_frames: 0,
        frames: 0,
        has_root: false,
        begins_in_starter: false,
        has_nowhere: false,
        ends_in: NONE,
    };

    /// With a frame called by its innermost.
    fn with(mut self, code: Code) -> Self {
        self.frames = self.frames.saturating_add(1);
        if code.is_user {
            // Garbage alone lies beyond it.
            if code.is_starter && self.ends_in == NONE && !self.has_root {
                (self.begins_in_starter, self.has_nowhere, self.user_frames) = (true, false, 0);
            }
            self.user_frames = self.user_frames.saturating_add(1).min(2);
            self.has_root |= code.is_root;
            self.has_nowhere = (self.has_nowhere || code.is_nowhere) && !code.is_root;
            self.ends_in = match self.ends_in {
                _ if code.is_nowhere => NONE,
                NONE => code.module,
                outermost => outermost,
            };
        }
        self
    }

    fn is_broken(self) -> bool {
        let begins = self.has_root || self.begins_in_starter && self.user_frames > 1;
        self.user_frames > 0 && (self.has_nowhere || !begins)
    }

    /// Whether the kernel followed it no further, and not the chain ended.
    fn is_cut_off(self) -> bool {
        self.frames >= DEEPEST_CHAIN && !self.has_root
    }

    fn end(self) -> PathEnd {
        match (self.is_broken(), self.is_cut_off()) {
            (false, _) => PathEnd::Whole,
            (true, true) => PathEnd::CutOff,
            (true, false) => PathEnd::Broken((self.ends_in != NONE).then_some(self.ends_in)),
        }
    }
}

/// The paths of all stacks of a part of the profile.
pub(super) struct Paths {
    by_callers: Vec<Path>,
}

impl Paths {
    fn new(code: &[Code], table: &StackTable) -> Self {
        let mut by_callers = vec![Path::EMPTY; table.callers_len()];
        for callers in table.all_callers() {
            if let Some((address, outer)) = table.caller(callers) {
                by_callers[callers.0 as usize] = by_callers[outer.0 as usize].with(code_at(code, address));
            }
        }
        Self { by_callers }
    }

    fn of(&self, stack: StackId, code: &[Code], table: &StackTable) -> Path {
        let path = self.by_callers[table.callers(stack).0 as usize];
        table.innermost(stack).map_or(path, |address| path.with(code_at(code, address)))
    }
}

fn code_at(code: &[Code], address: AddressId) -> Code {
    code.get(address.0 as usize).copied().unwrap_or(Code::UNKNOWN)
}

/// How a call path ends on its outer side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathEnd {
    /// Where a program or a thread begins, or in the kernel, which has no such place.
    Whole,
    /// The kernel followed it no further.
    CutOff,
    /// In code that did not tell its caller: the number of its module, where that is known.
    Broken(Option<u32>),
    /// None of its callers was recorded, nor that of any other.
    NotRecorded,
}

/// Adds up what lies on broken paths and in modules without symbols.
pub(super) struct CallPathCheck {
    code: Vec<Code>,
    /// Of each address, the module without a symbol for it.
    unnamed: Vec<Option<u32>>,
    names: Vec<Label>,
    copies_stacks: bool,
    asked_servers: bool,
    /// What gives a module its names, where that is something else than its debug package.
    repairs: BTreeMap<u32, String>,
    has_callers: bool,
    whole: f64,
    /// Broken paths that the kernel cut off, and others by the module whose code did not tell its caller.
    cut_off: f64,
    broken_in: BTreeMap<u32, f64>,
    by_module: BTreeMap<u32, f64>,
}

impl CallPathCheck {
    /// Nothing yet.
    pub fn new(profile: &Profile, symbols: &Symbols) -> Self {
        let module_of = |index: usize| profile.modules.get(profile.addresses[index].module.0 as usize);
        let code = (0..profile.addresses.len()).map(|index| {
            let frames = symbols.frames(AddressId(index as u32));
            let functions = || frames.iter().map(|frame| symbols.function(frame.function));
            let is_known = functions().next().is_some_and(|function| function.known);
            let module = module_of(index);
            Code {
                module: profile.addresses[index].module.0,
                is_user: !profile.addresses[index].kernel && module.is_some_and(is_user_code),
                // What is folded may be where the path begins.
                is_root: module.is_some_and(|module| module.kind == ModuleKind::Folded)
                    || functions().any(|function| function.known && is_root(&function.name)),
                is_starter: !is_known && module.is_some_and(is_starter),
                is_nowhere: !is_known && module.is_none_or(|module| module.kind == ModuleKind::Unknown),
            }
        });
        let unnamed = (0..profile.addresses.len()).map(|index| {
            let module = module_of(index).filter(|module| module.kind == ModuleKind::File)?;
            let frames = symbols.frames(AddressId(index as u32));
            let is_known = frames.first().is_some_and(|frame| symbols.function(frame.function).known);
            (!is_known && !module.path.is_empty()).then_some(profile.addresses[index].module.0)
        });
        Self {
            code: code.collect(),
            unnamed: unnamed.collect(),
            names: profile.modules.iter().map(|module| Label::new(&module.path)).collect(),
            copies_stacks: profile.copies_stacks,
            asked_servers: symbols.asked_servers,
            repairs: other_repairs(symbols),
            has_callers: profile.has_call_paths,
            whole: 0.0,
            cut_off: 0.0,
            broken_in: BTreeMap::new(),
            by_module: BTreeMap::new(),
        }
    }

    /// Adds stacks of a part of the profile, with their weights.
    pub fn add(&mut self, part: &Profile, stacks: impl Iterator<Item = (StackId, f64)>) {
        self.add_on(&self.paths(part), part, stacks);
    }

    /// The paths of all stacks of a part of the profile, for [`CallPathCheck::add_on`].
    pub fn paths(&self, part: &Profile) -> Paths {
        Paths::new(&self.code, &part.stacks)
    }

    /// As [`CallPathCheck::add`], with the paths that the part has.
    pub fn add_on(&mut self, paths: &Paths, part: &Profile, stacks: impl Iterator<Item = (StackId, f64)>) {
        self.has_callers |= part.stacks.callers_len() > 1;
        for (stack, weight) in stacks.filter(|(_, weight)| *weight > 0.0) {
            self.whole += weight;
            match paths.of(stack, &self.code, &part.stacks).end() {
                PathEnd::CutOff => self.cut_off += weight,
                PathEnd::Broken(module) => {
                    *self.broken_in.entry(module.unwrap_or(NONE)).or_default() += weight;
                }
                PathEnd::Whole | PathEnd::NotRecorded => {}
            }
            let innermost = part.stacks.innermost(stack);
            let module = innermost.and_then(|address| *self.unnamed.get(address.0 as usize)?);
            if let Some(module) = module {
                *self.by_module.entry(module).or_default() += weight;
            }
        }
    }

    /// How each stack's path ends, of a part of the profile that was added.
    pub fn ends(&self, part: &Profile) -> Vec<PathEnd> {
        let paths = self.paths(part);
        let end = |stack| paths.of(stack, &self.code, &part.stacks).end();
        (0..part.stacks.len() as u32).map(|stack| end(StackId(stack))).collect()
    }

    /// How a path ends where all parts were added: a single frame means something only beside paths of several.
    pub fn end_as_recorded(&self, end: PathEnd) -> PathEnd {
        if self.has_callers { end } else { PathEnd::NotRecorded }
    }

    /// What a module is called.
    pub fn module_name(&self, module: u32) -> Option<Label> {
        self.names.get(module as usize).cloned()
    }

    /// What the reader must know and can do; `None` if nearly all is as it should be.
    pub fn warning(&self, weight: Weight) -> Option<String> {
        let share = |part: f64| if self.whole > 0.0 { part / self.whole } else { 0.0 };
        let in_modules: f64 = self.broken_in.values().sum();
        // Where none were recorded, or none were asked for, as in a report of functions alone, nothing is broken.
        let broken = if self.has_callers { share(self.cut_off + in_modules) } else { 0.0 };
        let unnamed = share(self.by_module.values().sum());
        let (is_broken, is_unnamed) = (broken >= WORTH_TELLING, unnamed >= WORTH_TELLING);
        if !is_broken && !is_unnamed {
            return None;
        }
        let percent = |share: f64| format!("{:.0}%", share * 100.0);
        let (mut told, mut repairs) = (Vec::new(), Vec::new());
        if is_broken {
            told.push(format!(
                "{} of {} have broken call paths, which end before main or the start of a thread",
                percent(broken),
                weight.name()
            ));
            let causes = self.causes();
            let most = causes.iter().map(|(weight, _)| *weight).fold(0.0, f64::max);
            let are_told =
                causes.iter().filter(|(weight, _)| *weight == most || share(*weight) >= WORTH_TELLING);
            let are_told: Vec<_> = are_told.collect();
            repairs.extend(are_told.iter().map(|(weight, repair)| match are_told.len() {
                1 => repair.clone(),
                _ => format!("{}: {repair}", percent(share(*weight))),
            }));
        }
        if is_unnamed {
            let of = if is_broken { "" } else { &format!(" of {}", weight.name()) };
            told.push(format!(
                "{}{of} lie in modules without symbols ({})",
                percent(unnamed),
                self.worst(&self.by_module)
            ));
            repairs.extend(self.repairs_of_modules());
        }
        Some(format!("{}: {}", told.join("; "), repairs.join("; ")))
    }

    /// What gives the modules without symbols their names: for each repair those that it is of, as long as they weigh enough to
    /// be named.
    fn repairs_of_modules(&self) -> Vec<String> {
        let mut by_repair: BTreeMap<Option<&str>, BTreeMap<u32, f64>> = BTreeMap::new();
        for (module, weight) in &self.by_module {
            let repair = self.repairs.get(module).map(String::as_str);
            by_repair.entry(repair).or_default().insert(*module, *weight);
        }
        let weight = |modules: &BTreeMap<u32, f64>| modules.values().sum::<f64>();
        let most = by_repair.values().map(weight).fold(0.0, f64::max);
        let mut groups: Vec<_> =
            by_repair.iter().filter(|(_, of)| weight(of) >= most * WORTH_NAMING).collect();
        groups.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)));
        let is_only = groups.len() == 1;
        let repair = |(repair, modules): (&Option<&str>, &BTreeMap<u32, f64>)| match (repair, is_only) {
            (Some(repair), true) => (*repair).to_owned(),
            (Some(repair), false) => format!("{}: {repair}", self.worst(modules)),
            (None, _) => {
                let packages = match is_only {
                    true => "install their debug packages".to_owned(),
                    false => format!("{}: install its debug package", self.worst(modules)),
                };
                if self.asked_servers { packages } else { packages + FETCH[usize::from(!is_only)] }
            }
        };
        groups.into_iter().map(repair).collect()
    }

    /// Why paths are broken, with the repair of each, and how much of the whole lies on such paths.
    fn causes(&self) -> Vec<(f64, String)> {
        let in_modules: f64 = self.broken_in.values().sum();
        if self.copies_stacks {
            // The chain ends with the copy, or at code whose unwind tables are not here.
            let repair = "copy more of the stack (--call-graph dwarf,65528), and report where the recorded files are, or \
                          with --symfs";
            return vec![(self.cut_off + in_modules, repair.to_owned())];
        }
        let is_library = |module: &u32| self.names.get(*module as usize).is_some_and(is_library);
        let in_libraries: BTreeMap<u32, f64> = self
            .broken_in
            .iter()
            .filter(|(module, _)| is_library(module))
            .map(|(module, weight)| (*module, *weight))
            .collect();
        let of_libraries: f64 = in_libraries.values().sum();
        let cut_off = "they are deeper than the kernel follows them: raise that by `sysctl -w \
                       kernel.perf_event_max_stack=1024` (or 512 on a busy machine) and record again, or record with \
                       --call-graph dwarf";
        let libraries = format!(
            "they end in {}, whose code keeps no frame pointers, however yours is built: record with --call-graph dwarf",
            self.worst(&in_libraries)
        );
        let own = "record with --call-graph dwarf, or build with -fno-omit-frame-pointer";
        let causes = [
            (self.cut_off, cut_off.to_owned()),
            (of_libraries, libraries),
            (in_modules - of_libraries, own.to_owned()),
        ];
        causes.into_iter().filter(|(weight, _)| *weight > 0.0).collect()
    }

    /// The modules with most weight.
    fn worst(&self, by_module: &BTreeMap<u32, f64>) -> String {
        let mut modules: Vec<(&u32, &f64)> = by_module.iter().collect();
        modules.sort_by(|a, b| b.1.total_cmp(a.1));
        let name = |module: u32| self.names.get(module as usize).map_or("?", |label| label.file_name());
        let mut names: Vec<&str> = Vec::new();
        let least = modules.first().map_or(0.0, |(_, weight)| **weight * WORTH_NAMING);
        for (module, _) in modules.iter().filter(|(_, weight)| **weight >= least) {
            let name = name(**module);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let rest = names.len().saturating_sub(MOST_NAMED);
        names.truncate(MOST_NAMED);
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        format!("{}{rest}", names.join(", "))
    }
}

/// Of modules whose file was not used, what repairs that.
fn other_repairs(symbols: &Symbols) -> BTreeMap<u32, String> {
    let of = |warning: &SymbolWarning| Some((warning.modules.clone(), warning.why.repair_of_names()?));
    let all = symbols.warnings.iter().filter_map(of);
    all.flat_map(|(modules, repair)| modules.into_iter().map(move |module| (module.0, repair.clone())))
        .collect()
}

fn is_user_code(module: &Module) -> bool {
    !matches!(
        module.kind,
        ModuleKind::Kernel | ModuleKind::KernelModule | ModuleKind::GpuKernel | ModuleKind::NotSampled
    )
}

/// By its name: `libz.so`, `libz.so.1.3`.
fn is_library(module: &Label) -> bool {
    let name = module.file_name();
    name.ends_with(".so") || name.contains(".so.")
}

fn is_root(name: &str) -> bool {
    ROOTS.contains(&name) || ROOTS_BEGIN.iter().any(|root| name.starts_with(root))
}

fn is_starter(module: &Module) -> bool {
    let name = module.path.rsplit('/').next().unwrap_or_default();
    module.kind == ModuleKind::File && STARTERS.iter().any(|starter| name.starts_with(starter))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Code =
        Code { module: 0, is_user: true, is_root: false, is_starter: false, is_nowhere: false };
    const ROOT: Code = Code { is_root: true, ..USER };
    const STARTER: Code = Code { is_starter: true, ..USER };
    const NOWHERE: Code = Code { module: 1, is_nowhere: true, ..USER };
    const OF_LIBRARY: Code = Code { module: 2, ..USER };
    const KERNEL: Code = Code { is_user: false, ..USER };

    /// Outermost first.
    fn is_broken(path: &[Code]) -> bool {
        path.iter().fold(Path::EMPTY, |path, &code| path.with(code)).is_broken()
    }

    #[test]
    fn a_path_is_whole_if_it_begins_where_programs_and_threads_do() {
        assert!(!is_broken(&[ROOT, USER, USER]));
        assert!(!is_broken(&[USER, ROOT, USER]), "what calls main may have any name");
        assert!(!is_broken(&[ROOT]), "main itself");
        assert!(!is_broken(&[STARTER, USER]), "the C library's own code that calls main");
        assert!(!is_broken(&[KERNEL, KERNEL]) && !is_broken(&[]), "the kernel has no main");
        assert!(!is_broken(&[ROOT, USER, KERNEL]));
        assert!(is_broken(&[USER, USER]) && is_broken(&[USER]), "no beginning");
        assert!(is_broken(&[STARTER]), "a function of the C library alone");
        assert!(is_broken(&[USER, STARTER]), "called by an unknown");
        assert!(is_broken(&[ROOT, NOWHERE, USER]) && is_broken(&[USER, KERNEL]));
        assert!(!is_broken(&[NOWHERE, ROOT, USER]), "garbage beyond where it begins");
        assert!(!is_broken(&[NOWHERE, STARTER, USER]), "garbage beyond the library that starts threads");
        assert!(is_broken(&[NOWHERE, USER, STARTER, USER]) && is_broken(&[STARTER, NOWHERE, USER]));
    }

    #[test]
    fn a_broken_path_ends_in_the_code_that_did_not_tell_its_caller() {
        let ends_in = |path: &[Code]| path.iter().fold(Path::EMPTY, |path, &code| path.with(code)).ends_in;
        assert_eq!(ends_in(&[OF_LIBRARY, USER, USER]), 2);
        assert_eq!(ends_in(&[NOWHERE, NOWHERE, OF_LIBRARY, USER]), 2);
        assert_eq!(ends_in(&[OF_LIBRARY, NOWHERE, USER]), 0, "it went astray there");
        assert_eq!(ends_in(&[USER, OF_LIBRARY, KERNEL]), 0);
        assert_eq!(ends_in(&[NOWHERE]), NONE);
    }

    #[test]
    fn a_path_of_as_many_frames_as_the_kernel_follows_was_cut_off() {
        let path = |frames: usize, first: Code| {
            let path = std::iter::once(first).chain(std::iter::repeat_n(USER, frames - 1));
            path.fold(Path::EMPTY, Path::with)
        };
        assert!(path(127, USER).is_cut_off() && path(127, USER).is_broken());
        assert!(!path(127, ROOT).is_cut_off() && !path(20, USER).is_cut_off());
    }

    #[test]
    fn names_of_beginnings() {
        for name in ["main", "_start", "__libc_start_main@@GLIBC_2.34", "clone3", "runtime.goexit.abi0"] {
            assert!(is_root(name), "{name}");
        }
        for name in ["remain", "main_loop", "domain", "start", "runtime.mallocgc"] {
            assert!(!is_root(name), "{name}");
        }
    }
}
