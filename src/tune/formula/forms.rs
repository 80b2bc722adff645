//! The formulas that are tried where nobody names one.

use super::{
    DEGREE, FREEDOM, Factor, Formula, MOST_COEFFICIENTS, Scale, interact, linear, spline, usual_factor,
};
use crate::tune::space::{Role, Space, Variable};

impl Formula {
    /// The usual terms, but with a parabola over the logarithm of the clock and plain products:
    /// `bs(log(cap)) + bs(log(clock), df=2) + cap:clock`.
    ///
    /// Time falls as a power of the clock and saturates, energy has a valley in it: neither is an exponential of the
    /// clock, which is what a linear term under a logarithm says. A product of two numbers says what there is to say
    /// of how they act together, at one coefficient in the place of three. Any other number that has a ratio, as a
    /// tile size, enters alike.
    pub fn smooth(space: &Space) -> Self {
        let mut formula = Self { terms: Vec::new() };
        let mut products = Vec::new();
        let chosen = varying(space);
        for (place, &(index, variable)) in chosen.iter().enumerate() {
            formula.terms.push(vec![smooth_factor(index, variable)]);
            for &(other_index, other) in &chosen[..place] {
                let are_numbers = !variable.is_categorical() && !other.is_categorical();
                if are_numbers && interact(variable.role, other.role) {
                    products.push(vec![linear(other_index, other), linear(index, variable)]);
                }
            }
        }
        formula.terms.extend(products);
        formula
    }

    /// The formulas among which cross validation may choose, the usual one first: smooth curves, the paper's, and
    /// where there are names or numbers of unknown meaning, the usual one with their products with every other
    /// variable.
    pub fn candidates(space: &Space) -> Vec<Self> {
        let usual = Self::usual(space);
        let mut all = vec![usual.clone()];
        let mut add = |formula: Self| {
            if formula.coefficients() <= MOST_COEFFICIENTS && !all.contains(&formula) {
                all.push(formula);
            }
        };
        add(Self::smooth(space));
        add(Self::as_in_the_paper(space));
        let chosen = varying(space);
        let mut rich = usual;
        for (place, &(index, variable)) in chosen.iter().enumerate() {
            for &(other_index, other) in &chosen[..place] {
                if [variable, other].iter().any(|one| one.role == Role::Other || one.is_categorical()) {
                    rich.terms.push(vec![
                        usual_factor(other_index, other, Scale::Logarithmic),
                        usual_factor(index, variable, Scale::Logarithmic),
                    ]);
                }
            }
        }
        add(rich);
        all
    }
}

/// Variables with more than one level, and their positions.
fn varying(space: &Space) -> Vec<(usize, &Variable)> {
    space.variables().iter().enumerate().filter(|(_, variable)| variable.levels().len() > 1).collect()
}

fn smooth_factor(index: usize, variable: &Variable) -> Factor {
    let freedom = match variable.role {
        Role::Frequency | Role::Other => DEGREE,
        Role::Nodes | Role::Threads | Role::PowerCap => FREEDOM,
    };
    let curve = (!variable.is_categorical()).then(|| spline(index, variable, Scale::Logarithmic, freedom));
    curve.flatten().unwrap_or_else(|| usual_factor(index, variable, Scale::Logarithmic))
}
