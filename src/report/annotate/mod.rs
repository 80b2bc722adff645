//! Functions line by line and instruction by instruction, with what each took itself.
//!
//! What is summed is what `report --by function` sums: own joules of samples whose innermost code lies in the function.
//! With inlined functions told apart, it is the innermost inlined function that counts, wherever it was put.

mod annotation;
mod code;
mod disassemble;
mod errors;
mod find;
mod margin;
mod precision;
mod source;
mod text;

use regex::Regex;

use super::error::ReportError;
use super::frames::{Detail, FrameTable};
use super::select::{Selected, Selection, Totals};
use super::stack_filter::StackFilter;
use super::summary::Summary;
use crate::profile::{AddressId, ProfileParts, StackId};
use crate::symbolize::{Symbolizer, Symbols};
pub use annotation::{AnnotatedFunction, AnnotatedInstruction, AnnotatedLine, Annotation};
pub use code::CodeOptions;
use code::{Sampled, place_all};
pub use disassemble::Syntax;
use errors::add_errors;
use find::functions_named;
pub use precision::of_event as precision_of_event;
pub use source::Sources;
pub use text::{TextOptions, View, write};

/// What to annotate.
#[derive(Debug, Clone)]
pub struct AnnotateOptions {
    /// The functions: a name, the end of a path, or a regular expression.
    pub function: String,
    /// Only functions in modules that match.
    pub module: Option<Regex>,
    /// Which samples count, and what weighs.
    pub selection: Selection,
    /// How code is shown.
    pub code: CodeOptions,
    /// So many functions at most, the heaviest; all if there is no limit.
    pub limit: Option<usize>,
}

/// Annotates the functions of a name in a profile, whole or in parts.
///
/// # Errors
/// If no function is meant, or the options name something that the profile does not have.
pub fn annotate(
    parts: &dyn ProfileParts,
    symbols: &Symbols,
    symbolizer: &mut Symbolizer,
    options: &AnnotateOptions,
) -> Result<Annotation, ReportError> {
    let own = OwnCode::new(parts, symbols, &options.selection, options.code.inline)?;
    let is_module = |module: &str| options.module.as_ref().is_none_or(|pattern| pattern.is_match(module));
    let found = functions_named(&own.frames, &own.weights(), &options.function, is_module)?;
    Ok(own.annotate(symbolizer, found, options.limit, options.code))
}

/// Annotates the heaviest functions of a profile: those that took any of its joules themselves, with all that was
/// inlined into them.
///
/// # Errors
/// If the selection names something that the profile does not have.
pub fn annotate_heaviest(
    parts: &dyn ProfileParts,
    symbols: &Symbols,
    symbolizer: &mut Symbolizer,
    selection: &Selection,
    most: usize,
) -> Result<Annotation, ReportError> {
    let code = CodeOptions { inline: false, syntax: Syntax::default() };
    let own = OwnCode::new(parts, symbols, selection, code.inline)?;
    let weights = own.weights();
    let mut heaviest: Vec<usize> = (0..weights.len()).filter(|&index| weights[index] > 0.0).collect();
    heaviest.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
    Ok(own.annotate(symbolizer, heaviest, Some(most), code))
}

/// What each function took itself, and where.
struct OwnCode<'a> {
    parts: &'a dyn ProfileParts,
    symbols: &'a Symbols,
    selected: Selected,
    filter: StackFilter,
    frames: FrameTable,
    whole: Totals,
    /// By function.
    own: Vec<Totals>,
    addresses: Vec<Vec<(AddressId, Totals)>>,
}

impl<'a> OwnCode<'a> {
    fn new(
        parts: &'a dyn ProfileParts,
        symbols: &'a Symbols,
        selection: &Selection,
        inline: bool,
    ) -> Result<Self, ReportError> {
        let profile = parts.profile();
        let selected = Selected::resolve(selection, profile)?;
        let filter = StackFilter::new(profile, symbols, selection);
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
        let frames = FrameTable::new(profile, symbols, Detail::Function, inline);
        let mut own = vec![Totals::default(); frames.functions.len()];
        let mut addresses = vec![Vec::new(); frames.functions.len()];
        for (address, totals) in (0..).map(AddressId).zip(by_address).filter(|(_, totals)| !totals.is_empty())
        {
            // The innermost.
            let Some(&key) = frames.of_address(address).last() else { continue };
            let function = frames.keys[key as usize].function as usize;
            own[function] += totals;
            addresses[function].push((address, totals));
        }
        Ok(Self { parts, symbols, selected, filter, frames, whole, own, addresses })
    }

    /// By function.
    fn weights(&self) -> Vec<f64> {
        self.own.iter().map(|totals| totals.weight(self.selected.weight)).collect()
    }

    /// These functions, as far as there is room for them.
    fn annotate(
        &self,
        symbolizer: &mut Symbolizer,
        mut found: Vec<usize>,
        limit: Option<usize>,
        options: CodeOptions,
    ) -> Annotation {
        let profile = self.parts.profile();
        let rest = found.split_off(limit.unwrap_or(found.len()).min(found.len()));
        let left_out = (rest.len(), rest.into_iter().map(|index| self.own[index]).sum());
        let sampled = |&index: &usize| Sampled {
            name: &self.frames.functions[index].name,
            addresses: &self.addresses[index],
        };
        let sampled: Vec<Sampled<'_>> = found.iter().map(sampled).collect();
        let mut placed = place_all(profile, self.symbols, symbolizer, &sampled, options);
        let function = |(&index, placed): (&usize, &mut code::Placed)| {
            let label = &self.frames.functions[index];
            AnnotatedFunction {
                name: label.name.clone(),
                module: label.module.clone(),
                own: self.own[index],
                lines: placed.lines(),
                instructions: std::mem::take(&mut placed.instructions),
                no_code: placed.no_code.take(),
            }
        };
        let mut functions: Vec<AnnotatedFunction> = found.iter().zip(&mut placed).map(function).collect();
        let by_line = FrameTable::new(profile, self.symbols, Detail::Line, options.inline);
        let frames = [&self.frames, &by_line];
        add_errors(self.parts, &self.selected, &self.filter, frames, &placed, &mut functions);
        let summary = Summary::new(profile, &self.selected, None);
        Annotation {
            functions,
            left_out,
            weight: self.selected.weight,
            whole: self.whole,
            is_by_time: summary.is_by_time,
            estimate_mark: summary.estimate_mark(),
        }
    }
}
