//! The tables of one thread: strings, functions, frames and the tree of call stacks, each entry once.

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::code::{Code, Frame};
use super::stack_tree::StackTree;

/// A column that says the same in each row.
pub struct Same<T> {
    pub value: T,
    pub rows: usize,
}

impl<T: Serialize> Serialize for Same<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.rows))?;
        (0..self.rows).try_for_each(|_| rows.serialize_element(&self.value))?;
        rows.end()
    }
}

/// A library that functions of a thread are in.
const RESOURCE_IS_LIBRARY: u8 = 1;

/// The tables of one thread.
#[derive(Default)]
pub struct Tables {
    strings: Vec<String>,
    string_of: FxHashMap<String, u32>,
    /// Name, resource and file of each function.
    functions: Vec<(u32, i64, Option<u32>)>,
    function_of: FxHashMap<u32, u32>,
    /// Library and name of each resource.
    resources: Vec<(Option<u32>, u32)>,
    resource_of: FxHashMap<u32, u32>,
    /// Frame, function and line of each frame.
    frames: Vec<(Frame, u32, Option<u32>)>,
    frame_of: FxHashMap<Frame, u32>,
    stacks: StackTree,
}

impl Tables {
    pub fn string(&mut self, text: &str) -> u32 {
        if let Some(&index) = self.string_of.get(text) {
            return index;
        }
        let index = self.strings.len() as u32;
        self.strings.push(text.to_owned());
        self.string_of.insert(text.to_owned(), index);
        index
    }

    /// The node of a frame that these callers called; `None` if it is new and there is to be no new one.
    pub fn stack(&mut self, code: &Code<'_>, callers: Option<u32>, frame: Frame, room: bool) -> Option<u32> {
        let frame = match self.frame_of.get(&frame) {
            Some(&known) => known,
            None if room => self.frame(code, frame),
            None => return None,
        };
        self.stacks.callee(callers, frame, room)
    }

    fn frame(&mut self, code: &Code<'_>, frame: Frame) -> u32 {
        if let Some(&index) = self.frame_of.get(&frame) {
            return index;
        }
        let function = self.function(code, frame);
        self.frames.push((frame, function, code.line_of(frame)));
        let index = self.frames.len() as u32 - 1;
        self.frame_of.insert(frame, index);
        index
    }

    fn function(&mut self, code: &Code<'_>, frame: Frame) -> u32 {
        let number = code.function_of(frame);
        if let Some(&index) = self.function_of.get(&number) {
            return index;
        }
        let (name, library, lib) = code.function(number);
        let resource = match lib {
            None => -1,
            Some(lib) => i64::from(self.resource(lib, library)),
        };
        let file = code.file_of(frame).map(|file| self.string(file.as_str()));
        let name = self.string(name);
        self.functions.push((name, resource, file));
        let index = self.functions.len() as u32 - 1;
        self.function_of.insert(number, index);
        index
    }

    fn resource(&mut self, lib: u32, name: &str) -> u32 {
        if let Some(&index) = self.resource_of.get(&lib) {
            return index;
        }
        let name = self.string(name);
        self.resources.push((Some(lib), name));
        let index = self.resources.len() as u32 - 1;
        self.resource_of.insert(lib, index);
        index
    }

    /// Nodes of the tree of stacks.
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    pub fn strings(&self) -> &[String] {
        &self.strings
    }

    pub fn stack_table(&self) -> impl Serialize {
        #[derive(Serialize)]
        struct Table {
            length: usize,
            prefix: Vec<Option<u32>>,
            frame: Vec<u32>,
        }
        let (prefix, frame) = self.stacks.nodes().unzip();
        Table { length: self.stacks.len(), prefix, frame }
    }

    pub fn frame_table(&self) -> impl Serialize {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Table {
            length: usize,
            /// Everything has its name already.
            address: Same<i8>,
            inline_depth: Vec<u8>,
            category: Vec<u8>,
            subcategory: Same<u8>,
            func: Vec<u32>,
            native_symbol: Same<Option<u32>>,
            #[serde(rename = "innerWindowID")]
            inner_window_id: Same<u8>,
            line: Vec<Option<u32>>,
            column: Same<Option<u32>>,
        }
        let rows = self.frames.len();
        Table {
            length: rows,
            address: Same { value: -1, rows },
            inline_depth: self.frames.iter().map(|(frame, ..)| frame.depth).collect(),
            category: self.frames.iter().map(|(frame, ..)| frame.category).collect(),
            subcategory: Same { value: 0, rows },
            func: self.frames.iter().map(|(_, function, _)| *function).collect(),
            native_symbol: Same { value: None, rows },
            inner_window_id: Same { value: 0, rows },
            line: self.frames.iter().map(|(.., line)| *line).collect(),
            column: Same { value: None, rows },
        }
    }

    pub fn func_table(&self) -> impl Serialize {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Table {
            length: usize,
            name: Vec<u32>,
            #[serde(rename = "isJS")]
            is_js: Same<bool>,
            #[serde(rename = "relevantForJS")]
            relevant_for_js: Same<bool>,
            resource: Vec<i64>,
            file_name: Vec<Option<u32>>,
            line_number: Same<Option<u32>>,
            column_number: Same<Option<u32>>,
        }
        let rows = self.functions.len();
        Table {
            length: rows,
            name: self.functions.iter().map(|(name, ..)| *name).collect(),
            is_js: Same { value: false, rows },
            relevant_for_js: Same { value: false, rows },
            resource: self.functions.iter().map(|(_, resource, _)| *resource).collect(),
            file_name: self.functions.iter().map(|(.., file)| *file).collect(),
            line_number: Same { value: None, rows },
            column_number: Same { value: None, rows },
        }
    }

    pub fn resource_table(&self) -> impl Serialize {
        #[derive(Serialize)]
        struct Table {
            length: usize,
            lib: Vec<Option<u32>>,
            name: Vec<u32>,
            host: Same<Option<u32>>,
            #[serde(rename = "type")]
            kind: Same<u8>,
        }
        let rows = self.resources.len();
        let (lib, name) = self.resources.iter().copied().unzip();
        Table {
            length: rows,
            lib,
            name,
            host: Same { value: None, rows },
            kind: Same { value: RESOURCE_IS_LIBRARY, rows },
        }
    }
}
