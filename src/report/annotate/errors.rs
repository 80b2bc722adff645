//! How sure the joules of functions, lines and instructions are: by the same rules as those of a report's rows.
//!
//! Errors do not add up from instructions to lines: what samples of neighbours took from each other cancels out in their
//! sum, and what the power model is off by does not. So each line and each function is a row of its own.

use super::code::Placed;
use crate::profile::{Profile, ProfileParts, VarianceSums};
use crate::report::select::{Selected, Totals};
use crate::report::stack_filter::StackFilter;

use super::annotation::AnnotatedFunction;

/// The rows that an address is part of: its function, its line and its instruction among all that are annotated.
#[derive(Clone, Copy)]
struct Rows([u32; 3]);

const NO_ROW: u32 = u32::MAX;

/// Adds to the variances of these functions, and of their lines and instructions, what follows from sampling, from the
/// model and from the meters. `placed` are the addresses of each one's instructions.
pub fn add_errors(
    parts: &dyn ProfileParts,
    selected: &Selected,
    filter: &StackFilter,
    placed: &[Placed],
    functions: &mut [AnnotatedFunction],
) {
    let profile = parts.profile();
    let mut sums = [(); 3].map(|()| VarianceSums::new(profile, &selected.domains));
    if sums.iter().any(Option::is_none) {
        return;
    }
    let rows = rows(profile, placed, functions);
    parts.for_each_part(&mut |part| {
        let stacks = filter.totals(part, selected);
        for (kind, sums) in sums.iter_mut().enumerate() {
            let row_of = |cell: usize| {
                let stack = part.cells[cell].stack;
                let address =
                    part.stacks.innermost(stack).filter(|_| !stacks[stack.0 as usize].is_empty())?;
                let row = rows.get(address.0 as usize)?.0[kind];
                (row != NO_ROW).then_some(row as usize)
            };
            if let Some(sums) = sums {
                selected.add_variances(part, &selected.domains, row_of, sums);
            }
        }
    });
    let [of_functions, of_lines, of_instructions] = sums;
    let lines = functions.iter().map(|function| function.lines.len()).sum();
    let instructions = functions.iter().map(|function| function.instructions.len()).sum();
    add(of_functions, functions.len(), functions.iter_mut().map(|function| &mut function.own));
    let all_lines = functions.iter_mut().flat_map(|function| &mut function.lines);
    add(of_lines, lines, all_lines.map(|line| &mut line.own));
    let all_instructions = functions.iter_mut().flat_map(|function| &mut function.instructions);
    add(of_instructions, instructions, all_instructions.map(|instruction| &mut instruction.own));
}

fn add<'t>(sums: Option<VarianceSums<'_>>, rows: usize, totals: impl Iterator<Item = &'t mut Totals>) {
    let variances = sums.map(|sums| sums.finish(rows)).unwrap_or_default();
    for (own, variance) in totals.zip(variances) {
        own.variance += variance.all;
        own.by_chance += variance.by_chance;
    }
}

/// By address.
fn rows(profile: &Profile, placed: &[Placed], functions: &[AnnotatedFunction]) -> Vec<Rows> {
    let mut rows = vec![Rows([NO_ROW; 3]); profile.addresses.len()];
    let (mut first_line, mut first_instruction) = (0, 0);
    for (number, (function, placed)) in functions.iter().zip(placed).enumerate() {
        let mut line_of = vec![NO_ROW; function.instructions.len()];
        for (line, of_line) in function.lines.iter().enumerate() {
            of_line.instructions.iter().for_each(|&at| line_of[at] = (first_line + line) as u32);
        }
        for &(address, at) in &placed.addresses {
            if let Some(row) = rows.get_mut(address.0 as usize) {
                *row = Rows([number as u32, line_of[at], (first_instruction + at) as u32]);
            }
        }
        first_line += function.lines.len();
        first_instruction += function.instructions.len();
    }
    rows
}
