//! Where a function keeps the address that it returns to, by the unwind tables of x86-64 programs.
//!
//! A chain of frame pointers lacks the caller of whatever has set up no frame: of functions that compilers give none
//! (leaves, also with `-fno-omit-frame-pointer`), and of all others in their first and last instructions. There
//! the return address lies at a fixed distance above the stack pointer, and the tables tell which.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EhFrameHdr, Encoding, EndianSlice, Evaluation,
    EvaluationResult, LittleEndian, Location, RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
    UnwindTableRow, Value, X86_64,
};
use rustc_hash::FxHashMap;

use super::call_instruction::may_return_between;
use super::known_returns::ReturnAddress;
use super::options::SymbolizeOptions;
use super::unwind_file::{CodeMapping, UnwindFile};
use super::unwind_files::UnwindFiles;
use crate::profile::{Module, ModuleKind};

/// Most addresses whose answer is kept: each takes 24 bytes, down to seven sixteenths of a table filled.
const MOST_KNOWN: usize = 1 << 17;
/// Steps of an expression, of which the linker's own (for its stubs) have eight.
const MOST_STEPS: u32 = 100;
/// Stands for a stack pointer in expressions: what they make of it is told from all that lies elsewhere.
const STACK_POINTER: u64 = 1 << 40;
/// Bytes between the canonical frame address and the return address below it.
const WORD: i64 = 8;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Finds return addresses of many processes, keeping opened files and what was learnt of their code.
#[derive(Debug)]
pub struct ReturnAddressFinder {
    options: SymbolizeOptions,
    opened: UnwindFiles,
    files: FxHashMap<Module, Option<FrameTables>>,
    /// By state of an address space and address; `None` where no code is.
    known: FxHashMap<(u32, u64), Option<ReturnAddress>>,
}

impl ReturnAddressFinder {
    /// Files are found as for symbols.
    pub fn new(options: SymbolizeOptions) -> Self {
        let (opened, files, known) = Default::default();
        Self { options, opened, files, known }
    }

    /// With the files that others opened, all of them by the same options.
    pub fn with_files(self, opened: UnwindFiles) -> Self {
        Self { opened, ..self }
    }

    /// Where the function that has an instruction at this address keeps its return address; `None` if no code is
    /// there. Of a caller, the address is to lie in the call.
    ///
    /// `space` names a state of an address space: where it is the same, `mapping` would be too, and is not called
    /// again.
    #[inline]
    pub fn find<'m>(
        &mut self,
        space: u32,
        address: u64,
        mapping: impl FnOnce() -> Option<CodeMapping<'m>>,
    ) -> Option<ReturnAddress> {
        if let Some(known) = self.known.get(&(space, address)) {
            return *known;
        }
        let found = mapping().map(|mapping| self.look_up(&mapping, address));
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert((space, address), found);
        found
    }

    /// Whether an address is certainly none that a function returns to: it is not that of an instruction behind a call,
    /// and the instruction before it lies in no function that the unwind tables know.
    ///
    /// Chains of frame pointers end in such ones where the first functions of a program use the register for something
    /// else, as those of the C library do that runs a list of initializers: what lies there is taken for a return
    /// address.
    pub fn is_no_return_address(&mut self, mapping: &CodeMapping<'_>, address: u64) -> bool {
        let Some(tables) = self.tables_of(mapping) else { return false };
        address.checked_sub(1).is_some_and(|call| tables.find(mapping, call).is_none())
            && tables.may_return_to(mapping, address) == Some(false)
    }

    fn look_up(&mut self, mapping: &CodeMapping<'_>, address: u64) -> ReturnAddress {
        let tables = self.tables_of(mapping);
        tables.and_then(|tables| tables.find(mapping, address)).unwrap_or(ReturnAddress::Unknown)
    }

    fn tables_of(&mut self, mapping: &CodeMapping<'_>) -> Option<&mut FrameTables> {
        if !self.files.contains_key(mapping.module) {
            let is_file = matches!(mapping.module.kind, ModuleKind::File | ModuleKind::Vdso);
            let file = is_file.then(|| self.opened.open(&self.options, mapping.module).ok()).flatten();
            let file = file.filter(|file| file.architecture == object::Architecture::X86_64);
            self.files.insert(mapping.module.clone(), file.map(FrameTables::new));
        }
        self.files.get_mut(mapping.module).and_then(Option::as_mut)
    }
}

/// The tables of a file, and the way into them.
#[derive(Debug)]
struct FrameTables {
    file: Arc<UnwindFile>,
    bases: BaseAddresses,
    /// Of `.eh_frame`, where it has no index of its own.
    eh_frame: OnceCell<Vec<Entry>>,
    debug_frame: OnceCell<Vec<Entry>>,
    context: UnwindContext<usize>,
}

/// What a table says of a function stands at `offset`.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    offset: usize,
}

impl FrameTables {
    fn new(file: Arc<UnwindFile>) -> Self {
        let sections = &file.sections;
        let start = |range: &Option<Range<u64>>| range.as_ref().map_or(0, |range| range.start);
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(start(&sections.eh_frame_hdr_svma))
            .set_eh_frame(start(&sections.eh_frame_svma))
            .set_text(start(&sections.text_svma))
            .set_got(start(&sections.got_svma));
        let (eh_frame, debug_frame, context) = Default::default();
        Self { bases, eh_frame, debug_frame, context, file }
    }

    fn find(&mut self, mapping: &CodeMapping<'_>, address: u64) -> Option<ReturnAddress> {
        let address = self.address_in_file(mapping, address)?;
        let file = Arc::clone(&self.file);
        file.returns.get_or(address, || match self.look_up(address) {
            Some((answer, code)) => (Some(answer), code),
            None => (None, only(address)),
        })
    }

    /// What the tables say of an address, and of which code they say it.
    fn look_up(&mut self, address: u64) -> Option<(ReturnAddress, Range<u64>)> {
        let Self { file, bases, context, .. } = self;
        file.was_read();
        let sections = &file.sections;
        if let Some(bytes) = &sections.eh_frame {
            let table = eh_frame(bytes);
            let entry = match &sections.eh_frame_hdr {
                Some(index) => entry_by_index(index, bases, address),
                None => entry_of(self.eh_frame.get_or_init(|| entries(&table, bases)), address),
            };
            let found = entry.and_then(|entry| in_table(&table, bases, entry.into(), address, context));
            if found.is_some() {
                return found;
            }
        }
        let table = debug_frame(sections.debug_frame.as_ref()?);
        let entry = entry_of(self.debug_frame.get_or_init(|| entries(&table, bases)), address)?;
        in_table(&table, bases, entry.into(), address, context)
    }

    /// Whether an address is one that a function can return to, by the instruction before it; `None` where the file does
    /// not tell.
    fn may_return_to(&self, mapping: &CodeMapping<'_>, address: u64) -> Option<bool> {
        self.file.was_read();
        let sections = &self.file.sections;
        let text = sections.text.as_ref()?;
        let at = self.address_in_file(mapping, address)?.checked_sub(sections.text_svma.as_ref()?.start)?;
        let (before, behind) = text.split_at_checked(usize::try_from(at).ok()?)?;
        (!before.is_empty() && !behind.is_empty()).then(|| may_return_between(before, behind))
    }

    /// An address of a process as the file itself counts.
    fn address_in_file(&self, mapping: &CodeMapping<'_>, address: u64) -> Option<u64> {
        let length = mapping.end.checked_sub(mapping.start)?;
        let start = self.file.segments.address_of_mapping(mapping.module_address, length)?;
        start.checked_add(address.checked_sub(mapping.start)?)
    }
}

fn eh_frame(bytes: &[u8]) -> EhFrame<Bytes<'_>> {
    let mut table = EhFrame::new(bytes, LittleEndian);
    table.set_address_size(8);
    table
}

fn debug_frame(bytes: &[u8]) -> DebugFrame<Bytes<'_>> {
    let mut table = DebugFrame::new(bytes, LittleEndian);
    table.set_address_size(8);
    table
}

/// All entries of a table, by address; of a damaged one, those before the damage.
fn entries<'a, Table: UnwindSection<Bytes<'a>>>(table: &Table, bases: &BaseAddresses) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut entries = table.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        if let gimli::CieOrFde::Fde(partial) = entry
            && let Ok(function) = partial.parse(Table::cie_from_offset)
        {
            found.push(Entry { start: function.initial_address(), offset: function.offset() });
        }
    }
    found.sort_by_key(|entry| entry.start);
    found
}

/// Where in `.eh_frame` the entry of the function is that begins at or before an address, by the linker's index.
fn entry_by_index(index: &[u8], bases: &BaseAddresses, address: u64) -> Option<usize> {
    let index = EhFrameHdr::new(index, LittleEndian).parse(bases, 8).ok()?;
    let index = index.table()?;
    Some(index.pointer_to_offset(index.lookup(address, bases).ok()?).ok()?.0)
}

fn entry_of(entries: &[Entry], address: u64) -> Option<usize> {
    let behind = entries.partition_point(|entry| entry.start <= address);
    entries.get(behind.checked_sub(1)?).map(|entry| entry.offset)
}

/// What the entry says of an instruction; `None` if it is of another function, or damaged.
fn in_table<'a, Table: UnwindSection<Bytes<'a>>>(
    table: &Table,
    bases: &BaseAddresses,
    entry: Table::Offset,
    address: u64,
    context: &mut UnwindContext<usize>,
) -> Option<(ReturnAddress, Range<u64>)> {
    let function = table.fde_from_offset(bases, entry, Table::cie_from_offset).ok()?;
    if !function.contains(address) {
        return None;
    }
    let encoding = function.cie().encoding();
    let row = function.unwind_info_for_address(table, bases, context, address).ok()?;
    // What an expression gives may depend on the instruction.
    let code = match row.cfa() {
        CfaRule::Expression(_) => only(address),
        CfaRule::RegisterAndOffset { .. } => row.start_address()..row.end_address(),
    };
    let code = if code.contains(&address) { code } else { only(address) };
    Some((of_row(row, |expression| evaluate(expression.get(table).ok()?, encoding, address)), code))
}

fn only(address: u64) -> Range<u64> {
    address..address.saturating_add(1)
}

/// What a row of a table says. `evaluate` tells how far above the stack pointer an expression leads.
fn of_row(
    row: &UnwindTableRow<usize>,
    evaluate: impl FnOnce(&UnwindExpression<usize>) -> Option<i64>,
) -> ReturnAddress {
    match row.register(X86_64::RA) {
        Some(RegisterRule::Offset(offset)) if offset == -WORD => {}
        Some(RegisterRule::Undefined) => return ReturnAddress::Outermost,
        _ => return ReturnAddress::Unknown,
    }
    let above_stack_pointer = match row.cfa() {
        CfaRule::RegisterAndOffset { register: X86_64::RSP, offset } => Some(*offset),
        // Two words: the caller's frame pointer and the return address.
        CfaRule::RegisterAndOffset { register: X86_64::RBP, offset } if *offset == 2 * WORD => {
            return ReturnAddress::ByFramePointer;
        }
        CfaRule::RegisterAndOffset { .. } => None,
        CfaRule::Expression(expression) => evaluate(expression),
    };
    let distance = above_stack_pointer.and_then(|cfa| u32::try_from(cfa.checked_sub(WORD)?).ok());
    distance.map_or(ReturnAddress::Unknown, ReturnAddress::AboveStackPointer)
}

/// How far above the stack pointer the address lies that an expression gives, if it is one of stack pointer and
/// instruction alone.
fn evaluate(expression: gimli::Expression<Bytes<'_>>, encoding: Encoding, address: u64) -> Option<i64> {
    let mut evaluation: Evaluation<Bytes<'_>> = expression.evaluation(encoding);
    evaluation.set_max_iterations(MOST_STEPS);
    let mut state = evaluation.evaluate().ok()?;
    while let EvaluationResult::RequiresRegister { register, .. } = state {
        let value = match register {
            X86_64::RSP => STACK_POINTER,
            X86_64::RA => address,
            _ => return None,
        };
        state = evaluation.resume_with_register(Value::Generic(value)).ok()?;
    }
    // Crypto libraries keep the stack pointer of their callers in the stack: that takes memory, which is not here.
    let EvaluationResult::Complete = state else { return None };
    let [piece] = evaluation.as_result() else { return None };
    let Location::Address { address } = piece.location else { return None };
    i64::try_from(address.checked_sub(STACK_POINTER)?).ok()
}

#[cfg(test)]
mod tests {
    use gimli::{Expression, Format};

    use super::*;

    fn found(expression: &[u8], address: u64) -> Option<i64> {
        let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 4 };
        evaluate(Expression(EndianSlice::new(expression, LittleEndian)), encoding, address)
    }

    /// Operations by their numbers in DWARF 5, section 7.7.1; a register's with its distance behind it.
    #[test]
    fn expressions_of_stack_pointer_and_instruction_are_known() {
        const STACK_POINTER: u8 = 0x77;
        const FRAME_POINTER: u8 = 0x76;
        const INSTRUCTION: u8 = 0x80;
        assert_eq!(found(&[STACK_POINTER, 24], 0), Some(24));
        // A linker's stubs: 8 bytes, and 8 more from the eleventh byte of each sixteen on.
        let stub = [STACK_POINTER, 8, INSTRUCTION, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!((found(&stub, 0x100a), found(&stub, 0x100b)), (Some(8), Some(16)));
        // What the stack has there, what the frame pointer has, and what the expression itself is to tell.
        for other in [&[STACK_POINTER, 8, 0x06][..], &[FRAME_POINTER, 16], &[0x9c], &[]] {
            assert_eq!(found(other, 0), None, "{other:?}");
        }
        // An operation that leads back to itself.
        assert_eq!(found(&[0x2f, 0xfd, 0xff], 0), None);
    }
}
