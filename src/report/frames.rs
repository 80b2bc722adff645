//! What a frame of a stack is called: the keys that rows and flamegraphs are grouped by.
//!
//! Names become numbers once, per function; everything after works on numbers.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::label::Label;
use crate::profile::{AddressId, Module, ModuleKind, Profile, StackId};
use crate::symbolize::{FileId, Function, SourceFrame, Symbols};

/// How finely frames are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// By function and module.
    Function,
    /// By function and [`FrameClass`], as call trees show it: code without symbols is its module.
    ClassedFunction,
    /// By line of the source, and function.
    Line,
    /// By module.
    Module,
}

/// What kind of code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameClass {
    /// A function of a program or library.
    Native,
    /// The same in C++ or Rust, by the name that it has for the linker.
    CppOrRust,
    /// A function that the compiler put into its caller.
    Inlined,
    /// Code made at run time.
    Jit,
    /// The kernel.
    Kernel,
    /// A function of the kernel that the compiler put into its caller.
    InlinedKernel,
}

impl FrameClass {
    /// The kind without the language that it was written in, which two recordings may know of differently.
    pub(super) fn without_language(self) -> Self {
        if self == Self::CppOrRust { Self::Native } else { self }
    }

    /// Whether the compiler put the function into its caller.
    pub(super) fn is_inlined(self) -> bool {
        matches!(self, Self::Inlined | Self::InlinedKernel)
    }
}

/// One key: what a row or a frame of a flamegraph stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FrameKey {
    /// Index in [`FrameTable::functions`]; for [`Detail::Module`] any function of the module.
    pub function: u32,
    pub class: FrameClass,
    pub file: Option<FileId>,
    pub line: Option<u32>,
}

/// What a function is called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FunctionLabel {
    pub name: Label,
    pub module: Label,
    /// Tells static functions of one name apart. Code made at run time has none: a compiler moves its
    /// functions, and they are still the same.
    pub address: Option<u64>,
    /// Tells functions of one name apart that have no name for the linker: file and line of the declaration.
    pub declared: Option<Label>,
}

/// The keys of all frames of a profile.
#[derive(Clone, Default)]
pub(super) struct FrameTable {
    pub functions: Vec<FunctionLabel>,
    pub keys: Vec<FrameKey>,
    /// Keys of each address, outermost first, and where they end.
    frames: Vec<u32>,
    ends: Vec<u32>,
}

/// The key of a stack without frames and of an address without a name.
pub(super) const UNKNOWN: u32 = 0;

impl FrameTable {
    /// Looks up each address once. Without `inline` an address is the function that its code lies in.
    pub fn new(profile: &Profile, symbols: &Symbols, detail: Detail, inline: bool) -> Self {
        let modules: Vec<Label> = profile.modules.iter().map(module_label).collect();
        let unknown = FunctionLabel {
            name: Label::new("[unknown]"),
            module: Label::new("[unknown]"),
            address: None,
            declared: None,
        };
        let moves = moving_modules(profile);
        let mut functions = Interner::default();
        functions.intern(unknown.clone());
        let function_ids: Vec<u32> = symbols
            .functions()
            .iter()
            .map(|function| {
                let module = function.module.0 as usize;
                let made_at_run_time = matches!(
                    profile.modules.get(module).map(|module| module.kind),
                    Some(
                        ModuleKind::Jit
                            | ModuleKind::Anonymous
                            | ModuleKind::GpuKernel
                            | ModuleKind::NotSampled
                            | ModuleKind::Folded
                    )
                );
                let label = modules.get(module).unwrap_or(&unknown.module);
                // Nothing tells one function from another there, but for names that a profile as text brings along.
                let is_nowhere = !function.known
                    && profile.modules.get(module).is_none_or(|module| module.kind == ModuleKind::Unknown);
                let as_module = is_nowhere
                    || detail == Detail::ClassedFunction && !function.known && function.address.is_none();
                let is_still = !moves.get(module).is_some_and(|moves| *moves);
                functions.intern(FunctionLabel {
                    name: if as_module { in_brackets(label) } else { Label::shared(&function.name) },
                    module: label.clone(),
                    address: function.address.filter(|_| !made_at_run_time && !as_module && is_still),
                    declared: function.declared.as_deref().filter(|_| is_still).map(Label::new),
                })
            })
            .collect();
        let mut first_of_module: FxHashMap<Label, u32> =
            FxHashMap::from_iter([(unknown.module.clone(), UNKNOWN)]);

        let mut keys = Interner::default();
        keys.intern(FrameKey { function: UNKNOWN, class: FrameClass::Native, file: None, line: None });
        let (mut frames, mut ends) = (Vec::new(), Vec::with_capacity(profile.addresses.len()));
        for (index, address) in profile.addresses.iter().enumerate() {
            let kind = profile.modules.get(address.module.0 as usize).map(|module| module.kind);
            let found = symbols.frames(AddressId(index as u32));
            let shown = if inline { found } else { &found[..found.len().min(1)] };
            for frame in shown {
                let function = function_ids.get(frame.function.0 as usize).copied().unwrap_or(UNKNOWN);
                let is_mangled =
                    || symbols.functions().get(frame.function.0 as usize).is_some_and(is_of_cpp_or_rust);
                let class = class_of(frame, address.kernel, kind, is_mangled);
                let plain = FrameKey { function, class: FrameClass::Native, file: None, line: None };
                frames.push(keys.intern(match detail {
                    Detail::Function => plain,
                    Detail::ClassedFunction => FrameKey { class, ..plain },
                    Detail::Line => FrameKey { file: frame.file, line: frame.line, ..plain },
                    Detail::Module => {
                        let module = functions.values[function as usize].module.clone();
                        FrameKey { function: *first_of_module.entry(module).or_insert(function), ..plain }
                    }
                }));
            }
            if shown.is_empty() {
                frames.push(UNKNOWN);
            }
            ends.push(frames.len() as u32);
        }
        let mut functions = functions.values;
        tell_apart(&mut functions);
        Self { functions, keys: keys.values, frames, ends }
    }

    /// The same keys, of which each address has only the function that its code lies in.
    pub fn without_inlined(&self) -> Self {
        let outermost = |index: usize| {
            let keys = self.of_address(AddressId(index as u32));
            keys.first().copied().unwrap_or(UNKNOWN)
        };
        let frames: Vec<u32> = (0..self.ends.len()).map(outermost).collect();
        let ends = (1..=frames.len() as u32).collect();
        Self { functions: self.functions.clone(), keys: self.keys.clone(), frames, ends }
    }

    /// The keys of the modules that these functions are of: as [`Detail::Module`] has them.
    pub fn of_modules(&self) -> Self {
        let unknown = &self.functions[UNKNOWN as usize].module;
        let mut first_of_module: FxHashMap<&Label, u32> = FxHashMap::from_iter([(unknown, UNKNOWN)]);
        let mut keys = Interner::default();
        keys.intern(self.keys[UNKNOWN as usize]);
        let mut of_key: Vec<Option<u32>> = vec![None; self.keys.len()];
        let mut module_of = |key: u32| {
            let FrameKey { function, .. } = self.keys[key as usize];
            let module = &self.functions[function as usize].module;
            let function = *first_of_module.entry(module).or_insert(function);
            keys.intern(FrameKey { function, ..self.keys[UNKNOWN as usize] })
        };
        let frames =
            self.frames.iter().map(|&key| *of_key[key as usize].get_or_insert_with(|| module_of(key)));
        let frames: Vec<u32> = frames.collect();
        Self { functions: self.functions.clone(), keys: keys.values, frames, ends: self.ends.clone() }
    }

    /// Whether any code is told to be of a function that was put into another.
    pub fn has_inlined(&self) -> bool {
        self.keys.iter().any(|key| key.class.is_inlined())
    }

    /// The keys of an address, outermost first; never empty.
    #[inline]
    pub fn of_address(&self, address: AddressId) -> &[u32] {
        let index = address.0 as usize;
        let start = if index == 0 { 0 } else { self.ends.get(index - 1).copied().unwrap_or_default() };
        // A file that changes while it is read may have addresses in its second reading that it had not in the first.
        let Some(&end) = self.ends.get(index) else { return &[UNKNOWN] };
        &self.frames[start as usize..end as usize]
    }

    /// The keys of a stack, innermost first.
    pub fn of_stack<'a>(&'a self, profile: &'a Profile, stack: StackId) -> impl Iterator<Item = u32> + 'a {
        profile.stacks.frames(stack).flat_map(|address| self.of_address(address).iter().rev().copied())
    }

    /// The function that a key belongs to.
    pub fn function(&self, key: u32) -> &FunctionLabel {
        &self.functions[self.keys[key as usize].function as usize]
    }

    /// For each key whether its function's name satisfies a condition.
    pub fn flags(&self, condition: impl Fn(&FunctionLabel) -> bool) -> Vec<bool> {
        let functions: Vec<bool> = self.functions.iter().map(condition).collect();
        self.keys.iter().map(|key| functions[key.function as usize]).collect()
    }
}

/// Where functions of a module have one name and are declared in several places, each says in which: `turn (a.c:12)`.
fn tell_apart(functions: &mut [FunctionLabel]) {
    let key = |function: &FunctionLabel| (function.name.clone(), function.module.clone());
    let mut first: FxHashMap<(Label, Label), Label> = FxHashMap::default();
    let mut several: FxHashSet<(Label, Label)> = FxHashSet::default();
    for function in functions.iter() {
        let Some(declared) = &function.declared else { continue };
        if first.entry(key(function)).or_insert_with(|| declared.clone()) != declared {
            several.insert(key(function));
        }
    }
    for function in functions {
        if let Some(declared) = function.declared.as_ref().filter(|_| several.contains(&key(function))) {
            function.name = Label::new(&format!("{} ({})", function.name, declared.file_name()));
        }
    }
}

/// Of each module whether its functions have one name and several addresses, though they are the same for a reader: in a
/// profile of several recordings those of kernels, which every boot puts elsewhere, and of files of which nodes have
/// different builds.
fn moving_modules(profile: &Profile) -> Vec<bool> {
    if profile.recordings.len() < 2 {
        return Vec::new();
    }
    let mut builds: FxHashMap<&str, Option<&[u8]>> = FxHashMap::default();
    let mut several: FxHashSet<&str> = FxHashSet::default();
    for module in &profile.modules {
        let build = module.build_id.as_deref();
        if *builds.entry(module.path.as_str()).or_insert(build) != build {
            several.insert(&module.path);
        }
    }
    let moves = |module: &Module| {
        matches!(module.kind, ModuleKind::Kernel | ModuleKind::KernelModule)
            || several.contains(module.path.as_str())
    };
    profile.modules.iter().map(moves).collect()
}

/// By its name for the linker: a function of C++ in no namespace looks like one of C to its reader. Where a profile brings along
/// names for people alone, it is their path that tells.
fn is_of_cpp_or_rust(function: &Function) -> bool {
    let Function { name, raw_name, .. } = function;
    // In C, too, names may begin with `_R`.
    raw_name.starts_with("_Z") || (raw_name.starts_with("_R") && name != raw_name) || name.contains("::")
}

fn class_of(
    frame: &SourceFrame,
    kernel: bool,
    kind: Option<ModuleKind>,
    is_of_cpp_or_rust: impl Fn() -> bool,
) -> FrameClass {
    let of_kernel = if frame.inlined { FrameClass::InlinedKernel } else { FrameClass::Kernel };
    match kind {
        _ if kernel => of_kernel,
        Some(ModuleKind::Kernel | ModuleKind::KernelModule) => of_kernel,
        _ if frame.inlined => FrameClass::Inlined,
        Some(ModuleKind::Jit | ModuleKind::Anonymous) => FrameClass::Jit,
        // Names of kernels of GPUs are C++'s, and they run on no CPU.
        Some(ModuleKind::GpuKernel) => FrameClass::Native,
        _ if is_of_cpp_or_rust() => FrameClass::CppOrRust,
        _ => FrameClass::Native,
    }
}

/// What a module is called: the path says it, but for code made at run time the path is the
/// function's name.
pub(super) fn module_label(module: &Module) -> Label {
    match module.kind {
        ModuleKind::Jit => Label::new("[jit]"),
        ModuleKind::GpuKernel => Label::new("[gpu]"),
        ModuleKind::NotSampled => Label::new("[not sampled]"),
        ModuleKind::Folded => Label::new("[folded]"),
        _ if module.path.is_empty() => Label::new("[unknown]"),
        _ => Label::new(&module.path),
    }
}

/// `[libz.so.1]` for `/usr/lib/libz.so.1`.
fn in_brackets(module: &Label) -> Label {
    let name = module.file_name();
    if name.starts_with('[') { module.clone() } else { Label::new(&format!("[{name}]")) }
}

/// Numbers for distinct values, in the order they were first seen.
struct Interner<T> {
    values: Vec<T>,
    ids: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { values: Vec::new(), ids: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    fn intern(&mut self, value: T) -> u32 {
        if let Some(&id) = self.ids.get(&value) {
            return id;
        }
        let id = self.values.len() as u32;
        self.values.push(value.clone());
        self.ids.insert(value, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::profile::ModuleId;
    use crate::symbolize::FunctionId;

    #[test]
    fn functions_of_cpp_and_rust_are_known_by_what_the_linker_calls_them() {
        let of = |raw_name: &str, name: &str| {
            is_of_cpp_or_rust(&Function {
                name: Arc::from(name),
                raw_name: Arc::from(raw_name),
                module: ModuleId(0),
                address: None,
                known: true,
                declared: None,
            })
        };
        assert!(of("_Z4sortPi", "sort(int*)") && of("_ZL4turnv", "turn()"), "no namespace");
        assert!(of("_Z4sortPi", "_Z4sortPi"), "--no-demangle");
        assert!(of("_RNvCs1234_7mycrate3foo", "mycrate::foo") && of("core::str::len", "core::str::len"));
        assert!(!of("sort", "sort") && !of("_Read", "_Read") && !of("main", "main"));
        let frame = SourceFrame { function: FunctionId(0), file: None, line: None, inlined: false };
        let class =
            |kernel, kind, inlined| class_of(&SourceFrame { inlined, ..frame }, kernel, kind, || true);
        assert_eq!(class(false, Some(ModuleKind::File), false), FrameClass::CppOrRust);
        assert_eq!(class(false, Some(ModuleKind::File), true), FrameClass::Inlined);
        assert_eq!(class(true, Some(ModuleKind::Kernel), false), FrameClass::Kernel);
        assert_eq!(class(false, Some(ModuleKind::GpuKernel), false), FrameClass::Native);
    }

    #[test]
    fn functions_of_one_name_say_where_they_are_declared_if_that_differs() {
        let of = |name: &str, module: &str, declared: Option<&str>, address| FunctionLabel {
            name: Label::new(name),
            module: Label::new(module),
            address,
            declared: declared.map(Label::new),
        };
        let mut functions = [
            of("turn", "app", Some("/src/a.c:12"), None),
            of("turn", "app", Some("/src/b.c:3"), Some(64)),
            of("turn", "app", None, Some(128)),
            of("turn", "lib", Some("/src/a.c:12"), None),
            // Two copies of one function of a header.
            of("common", "app", Some("/src/c.h:1"), Some(256)),
            of("common", "app", Some("/src/c.h:1"), Some(512)),
        ];
        tell_apart(&mut functions);
        let names = functions.map(|function| function.name.as_str().to_owned());
        assert_eq!(names, ["turn (a.c:12)", "turn (b.c:3)", "turn", "turn", "common", "common"]);
    }
}
