//! The formulas that are tried where nobody names one.

use super::{
    DEGREE, FREEDOM, Factor, Formula, MOST_COEFFICIENTS, Scale, amdahl, interact, linear, spline,
    usual_factor,
};
use crate::tune::space::{Role, Space, Variable};

/// Shares of the work that one core does alone, among which the runs choose.
const SERIAL: [f64; 10] = [0.0, 0.003, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.5, 0.8];

impl Formula {
    /// Formulas with Amdahl's law for the cores, one for each share of serial work among which the runs choose; all other
    /// variables enter as in [`Formula::smooth`].
    ///
    /// A law has one coefficient where a curve has three, so fewer runs tell it, and where it holds it holds between and
    /// beyond them. Energy has this form, too: idle watts times the time, and as much again for the work. Empty unless one
    /// variable is the number of threads, or without one the number of nodes.
    pub fn scaling_laws(space: &Space) -> Vec<Self> {
        let chosen = varying(space);
        let of_role = |role: Role| -> Vec<usize> {
            (0..chosen.len()).filter(|&place| chosen[place].1.role == role).collect()
        };
        let cores = [Role::Threads, Role::Nodes].map(of_role).into_iter().find(|places| !places.is_empty());
        let Some([cores]) = cores.as_deref() else { return Vec::new() };
        let (index, variable) = chosen[*cores];
        let others = chosen.iter().filter(|(other, _)| *other != index);
        let others: Vec<Vec<Factor>> =
            others.map(|(index, other)| vec![smooth_factor(*index, other)]).collect();
        let law = |serial: &f64| {
            let factor = amdahl(index, variable, *serial)?;
            let formula = Self { terms: [&[vec![factor]], others.as_slice()].concat() };
            (formula.coefficients() <= MOST_COEFFICIENTS).then_some(formula)
        };
        SERIAL.iter().filter_map(law).collect()
    }

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

#[cfg(test)]
mod tests {
    use super::super::super::levels::parse_named_variable;
    use super::super::super::space::Level;
    use super::*;

    /// Names of clocks, as tables have them, have no product with numbers of threads, though clocks have.
    #[test]
    fn only_numbers_have_products() {
        let named = |name: &str, role| {
            let levels = ["low", "high"].map(|level| Level::Label(level.to_owned())).to_vec();
            Variable::new(name.to_owned(), role, levels).expect("valid")
        };
        let of = |text: &str| parse_named_variable(text).expect("valid");
        let smooth =
            |variables: Vec<Variable>| Formula::smooth(&Space::new(variables).expect("valid")).to_string();
        let products = |variables: Vec<Variable>| smooth(variables).matches(':').count();
        let (threads, clocks) = (of("threads=1,2,4"), of("freq=1,1.5,2"));
        assert_eq!(products(vec![threads.clone(), clocks.clone()]), 1);
        assert_eq!(products(vec![threads.clone(), named("freq", Role::Frequency)]), 0);
        assert_eq!(products(vec![named("threads", Role::Threads), clocks.clone()]), 0);
        assert_eq!(products(vec![threads.clone(), of("tile=8,16,32")]), 0);
        assert_eq!(products(vec![threads.clone(), clocks, of("cap=50,60,70")]), 3);
        assert!(smooth(vec![threads, of("freq=1")]).starts_with("bs("), "what never varies has no term");
    }

    #[test]
    fn laws_are_as_large_as_any_formula_and_no_larger() {
        let laws = |names: usize| {
            let names: Vec<String> = (0..names).map(|n| format!("run{n}")).collect();
            let variables = ["threads=1..8".to_owned(), format!("id={}", names.join(","))];
            let variables = variables.iter().map(|text| parse_named_variable(text).expect("valid"));
            Formula::scaling_laws(&Space::new(variables.collect()).expect("valid"))
        };
        // One for the intercept, one for the cores, and one for each name but the first.
        let most = laws(MOST_COEFFICIENTS - 1);
        assert_eq!(most.len(), SERIAL.len());
        assert!(most.iter().all(|law| law.coefficients() == MOST_COEFFICIENTS));
        assert_eq!(laws(MOST_COEFFICIENTS), []);
    }
}
