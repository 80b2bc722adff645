//! Functions and stacks by ids of their content.

use std::io::Write;

use rustc_hash::{FxHashMap, FxHashSet};

use super::content_id::ContentId;
use super::table_writer::TableWriter;
use crate::label::Label;
use crate::profile::{AddressId, Profile, StackId};
use crate::report::error::ReportError;
use crate::report::frames::{Detail, FrameTable};
use crate::symbolize::Symbols;

/// A line of a function of one build of a module.
struct Function {
    id: i64,
    name: Label,
    module: Label,
    build_id: String,
    file: Option<Label>,
    line: i64,
    /// Its number by name and module alone.
    by_name: u32,
}

/// All code of a profile.
pub(super) struct Code {
    functions: Vec<Function>,
    /// Functions of each address, outermost first, and where they end.
    frames: Vec<u32>,
    ends: Vec<u32>,
    /// What stands for a stack without frames.
    unknown: u32,
}

impl Code {
    pub fn new(profile: &Profile, symbols: &Symbols, inline: bool) -> Self {
        let table = FrameTable::new(profile, symbols, Detail::Line, inline);
        let mut code = Self { functions: Vec::new(), frames: Vec::new(), ends: Vec::new(), unknown: 0 };
        let mut known: FxHashMap<(u32, &[u8]), u32> = FxHashMap::default();
        let mut by_name: FxHashMap<(Label, Label), u32> = FxHashMap::default();
        let mut place = |functions: &mut Vec<Function>, key: u32, build_id| {
            *known.entry((key, build_id)).or_insert_with(|| {
                let (frame, label) = (table.keys[key as usize], table.function(key));
                let count = by_name.len() as u32;
                let by_name = *by_name.entry((label.name.clone(), label.module.clone())).or_insert(count);
                let file = frame.file.map(|file| Label::new(symbols.file(file)));
                functions.push(Function::new(
                    label.name.clone(),
                    label.module.clone(),
                    build_id,
                    file,
                    frame.line,
                    by_name,
                ));
                functions.len() as u32 - 1
            })
        };
        code.unknown = place(&mut code.functions, crate::report::frames::UNKNOWN, &[]);
        for (index, address) in profile.addresses.iter().enumerate() {
            let module = profile.modules.get(address.module.0 as usize);
            let build_id = module.and_then(|module| module.build_id.as_deref()).unwrap_or_default();
            for &key in table.of_address(AddressId(index as u32)) {
                let function = place(&mut code.functions, key, build_id);
                code.frames.push(function);
            }
            code.ends.push(code.frames.len() as u32);
        }
        code
    }

    pub fn write_functions<W: Write + Send>(&self, mut table: TableWriter<W>) -> Result<W, ReportError> {
        // Addresses of two modules of one name may lie in the same line of the same build.
        let mut written = FxHashSet::default();
        for function in self.functions.iter().filter(|function| written.insert(function.id)) {
            let mut row = table.row();
            row.int(function.id).text(function.name.as_str()).text(function.module.as_str());
            row.text(&function.build_id).text(function.file.as_ref().map_or("", Label::as_str));
            row.int(function.line).end()?;
        }
        table.finish()
    }

    /// The functions of a stack, innermost first; never none.
    pub fn of_stack(&self, profile: &Profile, stack: StackId, into: &mut Vec<u32>) {
        into.clear();
        for address in profile.stacks.frames(stack) {
            let index = address.0 as usize;
            let start = if index == 0 { 0 } else { self.ends.get(index - 1).copied().unwrap_or_default() };
            // A file that changes while it is read may have addresses in its second reading that it had not in the first.
            match self.ends.get(index) {
                Some(&end) => into.extend(self.frames[start as usize..end as usize].iter().rev()),
                None => into.push(self.unknown),
            }
        }
        if into.is_empty() {
            into.push(self.unknown);
        }
    }

    pub fn stack_id(&self, functions: &[u32]) -> i64 {
        let mut id = ContentId::new("stack");
        functions.iter().for_each(|function| {
            id.number(self.functions[*function as usize].id as u64);
        });
        id.finish()
    }

    /// Adds the frames of a stack, outermost first.
    pub fn write_stack<W: Write + Send>(
        &self,
        id: i64,
        functions: &[u32],
        table: &mut TableWriter<W>,
    ) -> Result<(), ReportError> {
        let mut seen = FxHashSet::default();
        for (depth, function) in functions.iter().rev().enumerate() {
            let function = &self.functions[*function as usize];
            let is_leaf = depth + 1 == functions.len();
            let is_first = seen.insert(function.by_name);
            let mut row = table.row();
            row.int(id).int(function.id).int(depth as i64);
            row.int(i64::from(is_leaf)).int(i64::from(is_first)).end()?;
        }
        Ok(())
    }
}

impl Function {
    fn new(
        name: Label,
        module: Label,
        build_id: &[u8],
        file: Option<Label>,
        line: Option<u32>,
        by_name: u32,
    ) -> Self {
        let build_id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = line.unwrap_or(0);
        let mut id = ContentId::new("function");
        id.text(name.as_str()).text(module.as_str()).text(&build_id);
        id.text(file.as_ref().map_or("", Label::as_str)).number(u64::from(line));
        Self { id: id.finish(), name, module, build_id, file, line: i64::from(line), by_name }
    }
}
