//! What functions took themselves, and where.

use super::annotation::{AnnotatedFunction, Annotation};
use super::code::{CodeOptions, Placed, Sampled, place_all};
use super::errors::add_errors;
use crate::profile::{AddressId, ProfileParts, StackId};
use crate::report::error::ReportError;
use crate::report::frames::{Detail, FrameTable, UNKNOWN};
use crate::report::select::{Selected, Selection, Totals};
use crate::report::stack_filter::StackFilter;
use crate::report::summary::Summary;
use crate::symbolize::{Symbolizer, Symbols};

/// What each function took itself, and where.
pub(super) struct OwnCode<'a> {
    pub parts: &'a dyn ProfileParts,
    pub symbols: &'a Symbols,
    pub selected: Selected,
    pub filter: StackFilter,
    pub frames: FrameTable,
    pub whole: Totals,
    /// By function.
    pub own: Vec<Totals>,
    /// By function, where it was inlined into others whose own that is.
    pub elsewhere: Vec<Totals>,
    pub addresses: Vec<Vec<(AddressId, Totals)>>,
}

impl<'a> OwnCode<'a> {
    pub fn new(
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
        let with_inlined = FrameTable::new(profile, symbols, Detail::Function, true);
        let frames = if inline { with_inlined.clone() } else { with_inlined.without_inlined() };
        let mut own = vec![Totals::default(); frames.functions.len()];
        let mut elsewhere = own.clone();
        let mut addresses = vec![Vec::new(); frames.functions.len()];
        for (address, totals) in (0..).map(AddressId).zip(by_address).filter(|(_, totals)| !totals.is_empty())
        {
            let innermost = |frames: &FrameTable| {
                let key = frames.of_address(address).last().copied().unwrap_or(UNKNOWN);
                frames.keys[key as usize].function as usize
            };
            let (function, inlined) = (innermost(&frames), innermost(&with_inlined));
            own[function] += totals;
            if inlined != function {
                elsewhere[inlined] += totals;
            }
            addresses[function].push((address, totals));
        }
        Ok(Self { parts, symbols, selected, filter, frames, whole, own, elsewhere, addresses })
    }

    /// By function.
    pub fn weights(&self) -> Vec<f64> {
        self.own.iter().map(|totals| totals.weight(self.selected.weight)).collect()
    }

    /// These functions, as far as there is room for them.
    pub fn annotate(
        &self,
        symbolizer: &mut Symbolizer,
        mut found: Vec<usize>,
        limit: Option<usize>,
        options: CodeOptions,
    ) -> Annotation {
        let profile = self.parts.profile();
        let rest = found.split_off(limit.unwrap_or(found.len()).min(found.len()));
        let name = |&index: &usize| self.frames.functions[index].name.clone();
        let left_out = (rest.iter().map(name).collect(), rest.iter().map(|&index| self.own[index]).sum());
        let sampled = |&index: &usize| Sampled {
            name: &self.frames.functions[index].name,
            addresses: &self.addresses[index],
        };
        let sampled: Vec<Sampled<'_>> = found.iter().map(sampled).collect();
        let mut placed = place_all(profile, self.symbols, symbolizer, &sampled, options);
        let function = |(&index, placed): (&usize, &mut Placed)| {
            let label = &self.frames.functions[index];
            AnnotatedFunction {
                name: label.name.clone(),
                module: label.module.clone(),
                own: self.own[index],
                elsewhere: self.elsewhere[index],
                lines: placed.lines(),
                instructions: std::mem::take(&mut placed.instructions),
                no_code: placed.no_code.take(),
            }
        };
        let mut functions: Vec<AnnotatedFunction> = found.iter().zip(&mut placed).map(function).collect();
        add_errors(self.parts, self.symbols, &self.selected, &self.filter, &placed, &mut functions);
        let summary = Summary::new(profile, &self.selected, None);
        Annotation {
            functions,
            asked: None,
            only_inlined: false,
            left_out,
            weight: self.selected.weight,
            whole: self.whole,
            is_by_time: summary.is_by_time,
            estimate_mark: summary.estimate_mark(),
        }
    }
}
