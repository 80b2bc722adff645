//! How sure the joules of functions, lines and instructions are: by the same rules as those of a report's rows.
//!
//! Errors do not add up from instructions to lines: what samples of neighbours took from each other cancels out in their
//! sum, and what the power model is off by does not. So each line and each function is a row of its own.

use super::annotation::AnnotatedFunction;
use super::code::Placed;
use crate::profile::{Profile, ProfileParts, VarianceSums};
use crate::report::select::{Selected, Totals};
use crate::report::stack_filter::StackFilter;
use crate::symbolize::Symbols;

/// The rows that an address is part of, of each of three kinds: functions, lines and instructions.
struct Rows {
    /// By address; `None` of code that is not annotated.
    of: Vec<Option<[usize; 3]>>,
    /// How many there are of each kind.
    all: [usize; 3],
}

/// Adds to the variances of these functions, and of their lines and instructions, what follows from sampling, from the
/// model and from the meters. `placed` are the addresses of each one's instructions.
pub fn add_errors(
    parts: &dyn ProfileParts,
    symbols: &Symbols,
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
    let rows = Rows::new(profile, placed, functions);
    parts.for_each_part(&mut |part| {
        let stacks = filter.totals(part, selected);
        for (kind, sums) in sums.iter_mut().enumerate() {
            let row_of = |cell: usize| {
                let stack = part.cells[cell].stack;
                let counts = !stacks[stack.0 as usize].is_empty();
                let innermost = || part.stacks.frames(stack).next();
                let rows = || *rows.of.get(innermost()?.0 as usize)?;
                counts.then(rows).flatten().map(|rows| rows[kind])
            };
            if let Some(sums) = sums {
                selected.add_variances(part, symbols, &selected.domains, row_of, sums);
            }
        }
    });
    let [of_functions, of_lines, of_instructions] = sums;
    add(of_functions, rows.all[0], functions.iter_mut().map(|function| &mut function.own));
    let lines = functions.iter_mut().flat_map(|function| &mut function.lines);
    add(of_lines, rows.all[1], lines.map(|line| &mut line.own));
    let instructions = functions.iter_mut().flat_map(|function| &mut function.instructions);
    add(of_instructions, rows.all[2], instructions.map(|instruction| &mut instruction.own));
}

fn add<'t>(sums: Option<VarianceSums<'_>>, rows: usize, totals: impl Iterator<Item = &'t mut Totals>) {
    let variances = sums.map(|sums| sums.finish(rows)).unwrap_or_default();
    for (own, variance) in totals.zip(variances) {
        own.add_variance(variance);
    }
}

impl Rows {
    fn new(profile: &Profile, placed: &[Placed], functions: &[AnnotatedFunction]) -> Self {
        let mut of = vec![None; profile.addresses.len()];
        let (mut first_line, mut first_instruction) = (0, 0);
        for (number, (function, placed)) in functions.iter().zip(placed).enumerate() {
            let mut line_of = vec![0; function.instructions.len()];
            for (line, of_line) in function.lines.iter().enumerate() {
                of_line.instructions.iter().for_each(|&at| line_of[at] = first_line + line);
            }
            for &(address, at) in &placed.addresses {
                if let Some(rows) = of.get_mut(address.0 as usize) {
                    *rows = Some([number, line_of[at], first_instruction + at]);
                }
            }
            first_line += function.lines.len();
            first_instruction += function.instructions.len();
        }
        Self { of, all: [functions.len(), first_line, first_instruction] }
    }
}
