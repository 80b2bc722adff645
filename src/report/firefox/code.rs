//! What the frames of all threads are: names, places in the source, libraries and categories.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::label::Label;
use crate::profile::{AddressId, ModuleKind, Profile};
use crate::report::frames::{Detail, FrameTable, UNKNOWN, module_label};
use crate::symbolize::Symbols;

/// A category of frames, which gives them their color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Category {
    name: &'static str,
    color: &'static str,
    /// The first must be so named, and stands for the category itself.
    subcategories: [&'static str; 1],
}

const fn category(name: &'static str, color: &'static str) -> Category {
    Category { name, color, subcategories: ["Other"] }
}

/// All categories; frames have an index into them. A grey one must be among them, which is everything's that has none.
pub const CATEGORIES: [Category; 6] = [
    category("Other", "grey"),
    category("Program", "yellow"),
    category("Kernel", "orange"),
    category("Code made at run time", "blue"),
    category("GPU", "green"),
    category("Not sampled", "darkgrey"),
];

/// The index of a category.
fn category_of(kind: Option<ModuleKind>, kernel: bool) -> u8 {
    match kind {
        _ if kernel => 2,
        Some(ModuleKind::Kernel | ModuleKind::KernelModule) => 2,
        Some(ModuleKind::Jit | ModuleKind::Anonymous) => 3,
        Some(ModuleKind::GpuKernel) => 4,
        Some(ModuleKind::NotSampled) => 5,
        Some(ModuleKind::Folded) | None => 0,
        Some(ModuleKind::File | ModuleKind::Vdso | ModuleKind::Unknown) => 1,
    }
}

/// A file that code came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lib {
    arch: &'static str,
    name: String,
    path: String,
    debug_name: String,
    debug_path: String,
    breakpad_id: String,
    code_id: Option<String>,
}

/// A frame: its key in the table of frames, its category, and how deep it was inlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    pub key: u32,
    pub category: u8,
    pub depth: u8,
}

impl Frame {
    /// Of a sample without any frame.
    pub const UNKNOWN: Self = Self { key: UNKNOWN, category: 0, depth: 0 };
}

/// All code of a profile.
pub struct Code<'a> {
    symbols: &'a Symbols,
    frames: FrameTable,
    /// Of each address.
    categories: Vec<u8>,
    pub libs: Vec<Lib>,
    lib_of: FxHashMap<Label, u32>,
}

impl<'a> Code<'a> {
    pub fn new(profile: &Profile, symbols: &'a Symbols, inline: bool) -> Self {
        let kind = |module: usize| profile.modules.get(module).map(|module| module.kind);
        let categories =
            profile.addresses.iter().map(|at| category_of(kind(at.module.0 as usize), at.kernel)).collect();
        let (mut libs, mut lib_of) = (Vec::new(), FxHashMap::default());
        for module in &profile.modules {
            let label = module_label(module);
            lib_of.entry(label.clone()).or_insert_with(|| {
                let (name, path) = (label.file_name().to_owned(), label.as_str().to_owned());
                libs.push(Lib {
                    arch: "",
                    debug_name: name.clone(),
                    debug_path: path.clone(),
                    name,
                    path,
                    breakpad_id: module.build_id.as_deref().map(breakpad_id).unwrap_or_default(),
                    code_id: module.build_id.as_deref().map(hex),
                });
                libs.len() as u32 - 1
            });
        }
        let frames = FrameTable::new(profile, symbols, Detail::Line, inline);
        Self { symbols, frames, categories, libs, lib_of }
    }

    /// The frames of an address, outermost first.
    pub fn of_address(&self, address: AddressId) -> impl DoubleEndedIterator<Item = Frame> + '_ {
        let category = self.categories.get(address.0 as usize).copied().unwrap_or_default();
        let frame = move |(depth, &key): (usize, &u32)| Frame { key, category, depth: depth.min(255) as u8 };
        self.frames.of_address(address).iter().enumerate().map(frame)
    }

    /// The function of a frame, by its number.
    pub fn function_of(&self, frame: Frame) -> u32 {
        self.frames.keys[frame.key as usize].function
    }

    /// The line of a frame.
    pub fn line_of(&self, frame: Frame) -> Option<u32> {
        self.frames.keys[frame.key as usize].line
    }

    /// The source file of a frame.
    pub fn file_of(&self, frame: Frame) -> Option<Label> {
        self.frames.keys[frame.key as usize].file.map(|file| Label::new(self.symbols.file(file)))
    }

    /// Name of a function, name of its library, and the library's index.
    pub fn function(&self, function: u32) -> (&str, &str, Option<u32>) {
        let label = &self.frames.functions[function as usize];
        (label.name.as_str(), label.module.file_name(), self.lib_of.get(&label.module).copied())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A build-id as symbol servers know it: its first sixteen bytes as a GUID, whose first three numbers are stored with
/// the least byte first, and an age of 0 (<https://chromium.googlesource.com/breakpad/breakpad/+/main/docs/symbol_files.md>).
fn breakpad_id(build_id: &[u8]) -> String {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(build_id).for_each(|(to, from)| *to = *from);
    for range in [0..4, 4..6, 6..8] {
        bytes[range].reverse();
    }
    format!("{}0", hex(&bytes).to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_a_guid_and_an_age() {
        let id: Vec<u8> = (1..=20).collect();
        assert_eq!(breakpad_id(&id), "0403020106050807090A0B0C0D0E0F100");
        assert_eq!(breakpad_id(&[0xab]), "000000AB0000000000000000000000000");
        assert_eq!(hex(&[0, 0xff]), "00ff");
    }
}
