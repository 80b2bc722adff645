//! Where samples lie in the code of functions.

use std::collections::BTreeMap;

use super::annotation::{AnnotatedInstruction, AnnotatedLine};
use super::disassemble::{Instruction, Syntax, disassemble};
use crate::label::Label;
use crate::profile::{AddressId, CodeAddress, ModuleId, Profile};
use crate::report::select::Totals;
use crate::symbolize::{MachineCode, SourceFrame, Symbolizer, Symbols};

/// A function whose samples are placed.
pub struct Sampled<'a> {
    /// Its name, to tell its code from what was inlined.
    pub name: &'a Label,
    /// Where it was sampled, and what it took there.
    pub addresses: &'a [(AddressId, Totals)],
}

/// How code is shown.
#[derive(Debug, Clone, Copy)]
pub struct CodeOptions {
    /// Tell inlined functions from those that they were put into.
    pub inline: bool,
    /// How x86 is written.
    pub syntax: Syntax,
}

/// The instructions of a function with what was sampled at each.
#[derive(Default)]
pub struct Placed {
    /// By address; without code only those that took something.
    pub instructions: Vec<AnnotatedInstruction>,
    /// Of each sampled address, the place of its instruction in that list.
    pub addresses: Vec<(AddressId, usize)>,
    /// Why there is no code.
    pub no_code: Option<Label>,
}

impl Placed {
    /// The lines of the instructions.
    pub fn lines(&self) -> Vec<AnnotatedLine> {
        let mut lines: BTreeMap<Option<(&Label, u32)>, Vec<usize>> = BTreeMap::new();
        for (index, instruction) in self.instructions.iter().enumerate() {
            let place = instruction.place.as_ref().map(|(file, line)| (file, *line));
            lines.entry(place).or_default().push(index);
        }
        let line = |(place, instructions): (Option<(&Label, u32)>, Vec<usize>)| AnnotatedLine {
            place: place.map(|(file, line)| (file.clone(), line)),
            own: instructions.iter().map(|&index| self.instructions[index].own).sum(),
            instructions,
        };
        lines.into_iter().map(line).collect()
    }

    fn push(&mut self, instruction: AnnotatedInstruction, addresses: impl Iterator<Item = AddressId>) {
        let index = self.instructions.len();
        self.addresses.extend(addresses.map(|address| (address, index)));
        self.instructions.push(instruction);
    }
}

/// A piece of code that has samples: an inlined function is in many.
struct Piece<'a> {
    /// Which of the functions.
    function: usize,
    /// The code, or why there is none.
    code: Result<MachineCode, Label>,
    module: ModuleId,
    addresses: Vec<&'a (AddressId, Totals)>,
}

/// Places what was sampled in functions into their code. The files of all are opened once.
pub fn place_all(
    profile: &Profile,
    symbols: &Symbols,
    symbolizer: &mut Symbolizer,
    functions: &[Sampled<'_>],
    options: CodeOptions,
) -> Vec<Placed> {
    let pieces = pieces(profile, symbols, symbolizer, functions);
    let disassembly = Disassembly::new(profile, symbolizer, &pieces, options.syntax);
    let mut all: Vec<Placed> = functions.iter().map(|_| Placed::default()).collect();
    let sampled = Code { profile, symbols, inline: options.inline };
    for (index, piece) in pieces.iter().enumerate() {
        let placed = &mut all[piece.function];
        match &piece.code {
            Ok(code) => {
                let name = functions[piece.function].name;
                sampled.place(&disassembly, index, code, &piece.addresses, name, placed);
            }
            Err(why) => {
                placed.no_code = Some(why.clone());
                let addresses = piece.addresses.iter().map(|at| (sampled.bare(at), at.0));
                let mut bare: Vec<(AnnotatedInstruction, AddressId)> = addresses.collect();
                bare.sort_by_key(|(instruction, _)| instruction.at);
                for (instruction, address) in bare {
                    placed.push(instruction, [address].into_iter());
                }
            }
        }
    }
    all
}

/// The pieces of code that have the functions' samples, in the order of the functions.
fn pieces<'a>(
    profile: &Profile,
    symbols: &Symbols,
    symbolizer: &Symbolizer,
    functions: &[Sampled<'a>],
) -> Vec<Piece<'a>> {
    type Start = (usize, ModuleId, Option<u64>);
    let mut by_code: BTreeMap<Start, Vec<&'a (AddressId, Totals)>> = BTreeMap::new();
    for (function, sampled) in functions.iter().enumerate() {
        for at in sampled.addresses {
            let outermost = symbols.frames(at.0).first();
            let start = outermost.and_then(|frame| symbols.function(frame.function).address);
            let module = profile.addresses[at.0.0 as usize].module;
            by_code.entry((function, module, start)).or_default().push(at);
        }
    }
    let mut starts: BTreeMap<ModuleId, Vec<u64>> = BTreeMap::new();
    for (_, module, start) in by_code.keys() {
        starts.entry(*module).or_default().extend(start);
    }
    let mut codes: BTreeMap<(ModuleId, u64), Result<MachineCode, Label>> = BTreeMap::new();
    for (module, starts) in starts {
        match symbolizer.machine_code(&profile.modules[module.0 as usize], &starts) {
            Ok(found) => {
                let found = found.into_iter().map(|code| code.map_err(|why| Label::new(&why.to_string())));
                codes.extend(starts.into_iter().map(|start| (module, start)).zip(found));
            }
            Err(why) => {
                let why = Label::new(&why.to_string());
                codes.extend(starts.into_iter().map(|start| ((module, start), Err(why.clone()))));
            }
        }
    }
    let code_of = |module, start: Option<u64>| {
        let code = start.and_then(|start| codes.get(&(module, start)).cloned());
        code.unwrap_or_else(|| Err(Label::new("no symbol tells where it begins")))
    };
    let piece = |((function, module, start), addresses): (Start, Vec<&'a (AddressId, Totals)>)| Piece {
        function,
        code: code_of(module, start),
        module,
        addresses,
    };
    by_code.into_iter().map(piece).collect()
}

/// The instructions of all pieces of code with their names.
struct Disassembly {
    /// By piece.
    instructions: Vec<Vec<Instruction>>,
    /// By piece, the place of its first instruction among the symbols.
    first: Vec<usize>,
    /// Of all instructions in their order, then of where they jump to.
    symbols: Symbols,
    /// The place of each instruction's target among those.
    targets: Vec<Option<AddressId>>,
}

impl Disassembly {
    fn new(profile: &Profile, symbolizer: &mut Symbolizer, pieces: &[Piece<'_>], syntax: Syntax) -> Self {
        let (mut instructions, mut first) = (Vec::new(), Vec::new());
        let (mut addresses, mut wanted) = (Vec::new(), Vec::new());
        for piece in pieces {
            first.push(addresses.len());
            let at = |address: u64| CodeAddress { module: piece.module, address, kernel: false };
            let found = piece.code.as_ref().map_or_else(|_| Vec::new(), |code| disassemble(code, syntax));
            if let Ok(code) = &piece.code {
                addresses.extend(found.iter().map(|instruction| at(code.offset + instruction.at)));
                // As far from the function in the file as in memory, since both are in one segment.
                let in_file = |target: u64| at(target.wrapping_sub(code.address).wrapping_add(code.offset));
                wanted.extend(found.iter().map(|instruction| instruction.target.map(in_file)));
            }
            instructions.push(found);
        }
        let mut targets = Vec::with_capacity(wanted.len());
        for target in wanted {
            targets.push(target.map(|target| {
                addresses.push(target);
                AddressId(addresses.len() as u32 - 1)
            }));
        }
        let symbols = symbolizer.symbolize(&profile.modules, &addresses);
        Self { instructions, first, symbols, targets }
    }

    /// `name+0x10`, as disassemblers write it; of a jump within the function where `from` lies, `+0x10`.
    fn name_of_target(&self, from: AddressId, target: AddressId) -> Option<String> {
        let of = |at| Some(self.symbols.frames(at).first()?.function);
        let function = self.symbols.function(of(target)?);
        match self.symbols.offset(target)? {
            _ if !function.known => None,
            offset if of(from) == of(target) => Some(format!("+{offset:#x}")),
            0 => Some(function.name.to_string()),
            offset => Some(format!("{}+{offset:#x}", function.name)),
        }
    }

    /// What an instruction says, with the name of where it jumps to.
    fn text(&self, number: usize, instruction: &Instruction) -> Label {
        let from = AddressId(number as u32);
        match self.targets[number].and_then(|target| self.name_of_target(from, target)) {
            Some(target) => Label::new(&format!("{} <{target}>", instruction.text)),
            None => Label::new(&instruction.text),
        }
    }
}

/// What the addresses of samples are.
struct Code<'a> {
    profile: &'a Profile,
    symbols: &'a Symbols,
    inline: bool,
}

impl Code<'_> {
    /// An instruction of which only its address is known.
    fn bare(&self, at: &(AddressId, Totals)) -> AnnotatedInstruction {
        let (address, own) = *at;
        let place_in_module = self.profile.addresses[address.0 as usize].address;
        let frames = self.symbols.frames(address);
        let (place, inlined) = place(self.symbols, frames, self.inline);
        let within = self.inline.then(|| within(self.symbols, frames)).flatten();
        let at = self.symbols.offset(address).unwrap_or(place_in_module);
        AnnotatedInstruction { at, text: None, place, inlined, within, own }
    }

    /// A piece's instructions with what was sampled in it; of an inlined function only what is its own.
    fn place(
        &self,
        disassembly: &Disassembly,
        piece: usize,
        code: &MachineCode,
        addresses: &[&(AddressId, Totals)],
        name: &Label,
        placed: &mut Placed,
    ) {
        let (instructions, first) = (&disassembly.instructions[piece], disassembly.first[piece]);
        let mut own: Vec<(Totals, Vec<AddressId>)> = vec![Default::default(); instructions.len()];
        let mut beside = Vec::new();
        for &&(address, totals) in addresses {
            let at = self.profile.addresses[address.0 as usize].address.wrapping_sub(code.offset);
            let behind = instructions.partition_point(|instruction| instruction.at <= at);
            let holds = |index: &usize| at < instructions[*index].at + instructions[*index].length;
            match behind.checked_sub(1).filter(holds) {
                Some(index) => {
                    own[index].0 += totals;
                    own[index].1.push(address);
                }
                None => beside.push((self.bare(&(address, totals)), address)),
            }
        }
        let symbols = &disassembly.symbols;
        for (index, (instruction, (own, addresses))) in instructions.iter().zip(own).enumerate() {
            let frames = symbols.frames(AddressId((first + index) as u32));
            let is_of = |frame: &SourceFrame| Label::new(&symbols.function(frame.function).name) == *name;
            // What took something is shown, whatever its debug information says now.
            if self.inline && own.is_empty() && !frames.last().is_some_and(is_of) {
                continue;
            }
            let (place, inlined) = place(symbols, frames, self.inline);
            let within = self.inline.then(|| within(symbols, frames)).flatten();
            let text = Some(disassembly.text(first + index, instruction));
            let at = instruction.at;
            placed
                .push(AnnotatedInstruction { at, text, place, inlined, within, own }, addresses.into_iter());
        }
        for (instruction, address) in beside {
            placed.push(instruction, [address].into_iter());
        }
    }
}

/// The function that code of an inlined one was put into.
fn within(symbols: &Symbols, frames: &[SourceFrame]) -> Option<Label> {
    let outermost = frames.first().filter(|_| frames.len() > 1)?;
    Some(Label::new(&symbols.function(outermost.function).name))
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
