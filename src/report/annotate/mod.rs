//! A function instruction by instruction, with what each took itself.
//!
//! What is summed is what `report --by function` sums: own joules of samples whose innermost code lies in the function.
//! With inlined functions told apart, it is the innermost inlined function that counts, wherever it was put.

mod annotation;
mod disassemble;
mod find;
mod precision;
mod source;
mod text;

use std::collections::BTreeMap;

use regex::Regex;

use super::error::ReportError;
use super::frames::{Detail, FrameTable};
use super::select::{Selected, Selection, Totals};
use super::stack_filter::StackFilter;
use super::summary::Summary;
use crate::label::Label;
use crate::profile::{AddressId, CodeAddress, ModuleId, Profile, ProfileParts, StackId};
use crate::symbolize::{MachineCode, SourceFrame, Symbolizer, Symbols};
pub use annotation::{AnnotatedFunction, AnnotatedInstruction, Annotation};
pub use disassemble::Syntax;
use disassemble::{Instruction, disassemble};
use find::functions_named;
pub use precision::of_event as precision_of_event;
pub use source::Sources;
pub use text::{View, write};

/// What to annotate.
#[derive(Debug, Clone)]
pub struct AnnotateOptions {
    /// The function: its name, the end of its path, or a regular expression that only it matches.
    pub function: String,
    /// Only functions in modules that match.
    pub module: Option<Regex>,
    /// Which samples count, and what weighs.
    pub selection: Selection,
    /// Tell inlined functions from those that they were put into.
    pub inline: bool,
    /// How x86 is written.
    pub syntax: Syntax,
}

/// Annotates a function of a profile, whole or in parts.
///
/// # Errors
/// If no function or several are meant, or the options name something that the profile does not have.
pub fn annotate(
    parts: &dyn ProfileParts,
    symbols: &Symbols,
    symbolizer: &mut Symbolizer,
    options: &AnnotateOptions,
) -> Result<Annotation, ReportError> {
    let profile = parts.profile();
    let selected = Selected::resolve(&options.selection, profile)?;
    let filter = StackFilter::new(profile, symbols, &options.selection);
    let mut by_address = vec![Totals::default(); profile.addresses.len()];
    let mut whole = Totals::default();
    parts.for_each_part(&mut |part| {
        for (stack, totals) in (0..).map(StackId).zip(filter.totals(part, &selected)) {
            whole += totals;
            let at = part.stacks.innermost(stack).and_then(|at| by_address.get_mut(at.0 as usize));
            if let Some(sum) = at {
                *sum += totals;
            }
        }
    });
    let frames = FrameTable::new(profile, symbols, Detail::Function, options.inline);
    let mut own = vec![Totals::default(); frames.functions.len()];
    let mut addresses = vec![Vec::new(); frames.functions.len()];
    for (address, totals) in (0..).map(AddressId).zip(&by_address).filter(|(_, totals)| !totals.is_empty()) {
        // The innermost.
        let Some(&key) = frames.of_address(address).last() else { continue };
        let function = frames.keys[key as usize].function as usize;
        own[function] += *totals;
        addresses[function].push((address, *totals));
    }
    let weights: Vec<f64> = own.iter().map(|totals| totals.weight(selected.weight)).collect();
    let is_module = |module: &str| options.module.as_ref().is_none_or(|pattern| pattern.is_match(module));
    let found = functions_named(&frames, &weights, &options.function, is_module)?;
    let functions = found.into_iter().map(|index| {
        let label = &frames.functions[index];
        let sampled = Sampled { profile, symbols, addresses: &addresses[index] };
        let (instructions, no_code) = instructions(&sampled, symbolizer, options, &label.name);
        let (name, module) = (label.name.clone(), label.module.clone());
        AnnotatedFunction { name, module, own: own[index], instructions, no_code }
    });
    let functions = functions.collect();
    let summary = Summary::new(profile, &selected, None);
    Ok(Annotation {
        functions,
        weight: selected.weight,
        whole,
        is_by_time: summary.is_by_time,
        estimate_mark: summary.estimate_mark(),
    })
}

/// Where samples of a function lie.
struct Sampled<'a> {
    profile: &'a Profile,
    symbols: &'a Symbols,
    addresses: &'a [(AddressId, Totals)],
}

/// What was sampled where, by module and start of a function.
type ByCode = BTreeMap<(ModuleId, Option<u64>), Vec<(AddressId, Totals)>>;

impl Sampled<'_> {
    /// By the code that has them: module, and start of the symbol's function. An inlined function is in many.
    fn by_code(&self) -> ByCode {
        let mut by_code = ByCode::new();
        for &(address, totals) in self.addresses {
            let outermost = self.symbols.frames(address).first();
            let start = outermost.and_then(|frame| self.symbols.function(frame.function).address);
            let module = self.profile.addresses[address.0 as usize].module;
            by_code.entry((module, start)).or_default().push((address, totals));
        }
        by_code
    }

    /// An instruction of which only its address is known.
    fn bare(&self, address: AddressId, own: Totals, inline: bool) -> AnnotatedInstruction {
        let at = self.symbols.offset(address).unwrap_or(self.profile.addresses[address.0 as usize].address);
        let (place, inlined) = place(self.symbols, self.symbols.frames(address), inline);
        AnnotatedInstruction { at, text: None, place, inlined, own }
    }
}

/// The instructions of a function, and why there are none.
fn instructions(
    sampled: &Sampled<'_>,
    symbolizer: &mut Symbolizer,
    options: &AnnotateOptions,
    name: &Label,
) -> (Vec<AnnotatedInstruction>, Option<Label>) {
    let (mut found, mut no_code) = (Vec::new(), None);
    for ((module_id, start), addresses) in sampled.by_code() {
        let module = &sampled.profile.modules[module_id.0 as usize];
        let code = start.map(|start| symbolizer.machine_code(module, start));
        match code {
            Some(Ok(code)) => {
                let disassembly = Disassembly::new(sampled.profile, symbolizer, &code, module_id, options);
                found.extend(disassembly.annotated(sampled, &addresses, options.inline, name));
                continue;
            }
            Some(Err(why)) => no_code = Some(Label::new(&why.to_string())),
            None => no_code = Some(Label::new("no symbol tells where it begins")),
        }
        let mut bare: Vec<_> =
            addresses.iter().map(|&(address, own)| sampled.bare(address, own, options.inline)).collect();
        bare.sort_by_key(|instruction| instruction.at);
        found.extend(bare);
    }
    (found, no_code)
}

/// The instructions of a function's code with their names.
struct Disassembly<'a> {
    code: &'a MachineCode,
    instructions: Vec<Instruction>,
    /// Of the instructions in their order, then of where they jump to.
    symbols: Symbols,
    /// The place of each instruction's target among those.
    targets: Vec<Option<AddressId>>,
}

impl<'a> Disassembly<'a> {
    fn new(
        profile: &Profile,
        symbolizer: &mut Symbolizer,
        code: &'a MachineCode,
        module: ModuleId,
        options: &AnnotateOptions,
    ) -> Self {
        let instructions = disassemble(code, options.syntax);
        let at = |address: u64| CodeAddress { module, address, kernel: false };
        let mut addresses: Vec<CodeAddress> =
            instructions.iter().map(|instruction| at(code.offset + instruction.at)).collect();
        let targets = instructions.iter().map(|instruction| {
            // As far from the function in the file as in memory, since both are in one segment.
            let offset = instruction.target?.wrapping_sub(code.address).wrapping_add(code.offset);
            addresses.push(at(offset));
            Some(AddressId(addresses.len() as u32 - 1))
        });
        let targets = targets.collect();
        let symbols = symbolizer.symbolize(&profile.modules, &addresses);
        Self { code, instructions, symbols, targets }
    }

    /// With what was sampled in it; of an inlined function only what is its own.
    fn annotated(
        &self,
        sampled: &Sampled<'_>,
        addresses: &[(AddressId, Totals)],
        inline: bool,
        name: &Label,
    ) -> Vec<AnnotatedInstruction> {
        let mut own = vec![Totals::default(); self.instructions.len()];
        let mut beside = Vec::new();
        for &(address, totals) in addresses {
            let offset = sampled.profile.addresses[address.0 as usize].address;
            let at = offset.wrapping_sub(self.code.offset);
            let behind = self.instructions.partition_point(|instruction| instruction.at <= at);
            let holds = |index: &usize| at < self.instructions[*index].at + self.instructions[*index].length;
            match behind.checked_sub(1).filter(holds) {
                Some(index) => own[index] += totals,
                None => beside.push(sampled.bare(address, totals, inline)),
            }
        }
        let instructions = self.instructions.iter().zip(own).enumerate();
        let annotated = instructions.filter_map(|(index, (instruction, own))| {
            let frames = self.symbols.frames(AddressId(index as u32));
            let is_of =
                |frame: &SourceFrame| Label::new(&self.symbols.function(frame.function).name) == *name;
            // What took something is shown, whatever its debug information says now.
            if inline && own.is_empty() && !frames.last().is_some_and(is_of) {
                return None;
            }
            let (place, inlined) = place(&self.symbols, frames, inline);
            let target = self.targets[index].and_then(|target| self.name_of_target(target));
            let text = match target {
                Some(target) => format!("{} <{target}>", instruction.text),
                None => instruction.text.clone(),
            };
            Some(AnnotatedInstruction {
                at: instruction.at,
                text: Some(Label::new(&text)),
                place,
                inlined,
                own,
            })
        });
        annotated.chain(beside).collect()
    }

    /// `name+0x10`, as disassemblers write it.
    fn name_of_target(&self, target: AddressId) -> Option<String> {
        let function = self.symbols.function(self.symbols.frames(target).first()?.function);
        match self.symbols.offset(target)? {
            _ if !function.known => None,
            0 => Some(function.name.to_string()),
            offset => Some(format!("{}+{offset:#x}", function.name)),
        }
    }
}

/// The place in a function's own source, and what was inlined there.
fn place(symbols: &Symbols, frames: &[SourceFrame], inline: bool) -> (Option<(Label, u32)>, Option<Label>) {
    let of = if inline { frames.last() } else { frames.first() };
    let place = of.and_then(|frame| {
        let line = frame.line.filter(|&line| line > 0)?;
        Some((Label::new(symbols.file(frame.file?)), line))
    });
    let inlined = frames.last().filter(|_| !inline && frames.len() > 1);
    (place, inlined.map(|frame| Label::new(&symbols.function(frame.function).name)))
}
