//! The model's terms, in the notation of Wilkinson and Rogers (1973) that R and patsy use.

use std::fmt;

use super::TuneError;
use super::space::{Level, Role, Setting, Space, Variable};
use super::spline::BSplineBasis;
use crate::numerics::quantiles::interpolated;

mod forms;
mod parse;

/// Degree of the splines.
const DEGREE: usize = 2;
/// Most functions of one spline: degree 2 and one interior knot, as in the paper.
const FREEDOM: usize = 3;

/// Most coefficients of a formula; the work grows with their cube.
const MOST_COEFFICIENTS: usize = 300;

/// Whether a spline runs over the values themselves or over their logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// `bs(x)`, as in the paper.
    Plain,
    /// `bs(log(x))`: for what falls as 1/x.
    Logarithmic,
}

impl Scale {
    fn apply(self, value: f64) -> f64 {
        match self {
            Scale::Plain => value,
            Scale::Logarithmic => value.ln(),
        }
    }
}

/// How one variable enters a term.
#[derive(Debug, Clone, PartialEq)]
enum Basis {
    /// The value itself: one column.
    Linear,
    /// `bs(x)` or `bs(log(x))`: as many columns as the spline has functions.
    Spline(Scale, BSplineBasis),
    /// `amdahl(x, serial=s)`: the logarithm of the time that Amdahl's law gives `x` cores, of which one alone works for the
    /// share `s` of what it would take without the others (G. M. Amdahl, "Validity of the single processor approach to
    /// achieving large scale computing capabilities", AFIPS 1967): `ln(s + (1 - s) / x)`.
    Amdahl(f64),
    /// `C(x)`: one column for every level but the first.
    Categories(Vec<Level>),
}

/// One variable within a term.
#[derive(Debug, Clone, PartialEq)]
struct Factor {
    /// Position of the variable in the space.
    variable: usize,
    basis: Basis,
    text: String,
}

impl Factor {
    fn width(&self) -> usize {
        match &self.basis {
            Basis::Linear | Basis::Amdahl(_) => 1,
            Basis::Spline(_, basis) => basis.dimension(),
            Basis::Categories(levels) => levels.len(),
        }
    }

    fn columns(&self, setting: &Setting) -> Vec<f64> {
        let level = setting.0.get(self.variable);
        let number = level.and_then(Level::number).unwrap_or(0.0);
        match &self.basis {
            Basis::Linear => vec![number],
            Basis::Amdahl(serial) => vec![(serial + (1.0 - serial) / number).ln()],
            Basis::Spline(scale, basis) => basis.evaluate(scale.apply(number)),
            Basis::Categories(levels) => {
                levels.iter().map(|own| f64::from(level.is_some_and(|level| level.same(own)))).collect()
            }
        }
    }

    fn column_names(&self) -> Vec<String> {
        match &self.basis {
            Basis::Linear | Basis::Amdahl(_) => vec![self.text.clone()],
            Basis::Spline(_, basis) => {
                (1..=basis.dimension()).map(|n| format!("{}[{n}]", self.text)).collect()
            }
            Basis::Categories(levels) => {
                levels.iter().map(|level| format!("{}[{level}]", self.text)).collect()
            }
        }
    }
}

/// The right-hand side of `ln(y) ~ ...`: an intercept and terms, each a product of factors.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    terms: Vec<Vec<Factor>>,
}

impl Formula {
    /// The paper's terms for the variables that this space has, with splines over logarithms:
    /// `bs(log(nodes)) + bs(log(threads)) + freq` and the products of threads with both others.
    ///
    /// A power cap takes part as threads do, with the frequency and with threads; names shift the
    /// logarithm by one constant each; any other number has a curve of its own. A variable with one
    /// level has no term; one with two is linear, one with three a parabola.
    ///
    /// Why logarithms: time falls about as 1/threads until something saturates. In ln(threads) that
    /// is a line that bends; in threads it is a hyperbola, which a parabola per piece cannot follow at
    /// few threads. On the 48-core runs of `tests/library/tune_data.rs` the error is a third.
    pub fn usual(space: &Space) -> Self {
        Self::with_scale(space, Scale::Logarithmic)
    }

    /// The paper's formula to the letter: `bs(nodes) + bs(threads) + freq + bs(nodes):bs(threads) +
    /// bs(threads):freq`.
    pub fn as_in_the_paper(space: &Space) -> Self {
        Self::with_scale(space, Scale::Plain)
    }

    fn with_scale(space: &Space, scale: Scale) -> Self {
        let mut mains = Vec::new();
        let mut products = Vec::new();
        let chosen: Vec<(usize, &Variable)> = space
            .variables()
            .iter()
            .enumerate()
            .filter(|(_, variable)| variable.levels().len() > 1)
            .collect();
        for (place, &(index, variable)) in chosen.iter().enumerate() {
            let factor = usual_factor(index, variable, scale);
            for &(other_index, other) in &chosen[..place] {
                if interact(variable.role, other.role)
                    && !variable.is_categorical()
                    && !other.is_categorical()
                {
                    products.push(vec![usual_factor(other_index, other, scale), factor.clone()]);
                }
            }
            mains.push(vec![factor]);
        }
        mains.extend(products);
        Self { terms: mains }
    }

    /// Refuses a formula too large to fit in reasonable time.
    ///
    /// # Errors
    /// More coefficients than anyone has runs for.
    pub fn check_size(&self) -> Result<(), TuneError> {
        let coefficients = self.coefficients();
        if coefficients <= MOST_COEFFICIENTS {
            return Ok(());
        }
        let reason = format!(
            "{coefficients} coefficients are more than {MOST_COEFFICIENTS}: leave out a variable with many names"
        );
        Err(TuneError::Formula { text: self.to_string(), reason })
    }

    /// Number of coefficients, with the intercept.
    pub fn coefficients(&self) -> usize {
        1 + self.terms.iter().map(|term| term.iter().map(Factor::width).product::<usize>()).sum::<usize>()
    }

    /// The row of the design matrix for a setting.
    pub fn row(&self, setting: &Setting) -> Vec<f64> {
        let mut row = vec![1.0];
        for term in &self.terms {
            let mut products = vec![1.0];
            for factor in term {
                let columns = factor.columns(setting);
                products =
                    products.iter().flat_map(|product| columns.iter().map(move |c| product * c)).collect();
            }
            row.extend(products);
        }
        row
    }

    /// What each coefficient belongs to, in the order of [`Formula::row`].
    pub fn coefficient_names(&self) -> Vec<String> {
        let mut names = vec!["(intercept)".to_string()];
        for term in &self.terms {
            let mut products = vec![String::new()];
            for factor in term {
                let columns = factor.column_names();
                products = products
                    .iter()
                    .flat_map(|product| {
                        columns.iter().map(move |column| match product.as_str() {
                            "" => column.clone(),
                            product => format!("{product}:{column}"),
                        })
                    })
                    .collect();
            }
            names.extend(products);
        }
        names
    }

    /// For each variable that the formula uses: its position in the space and how many different
    /// values of it the runs need at least.
    pub fn levels_needed(&self) -> Vec<(usize, usize)> {
        let mut needed: Vec<(usize, usize)> = Vec::new();
        for factor in self.terms.iter().flatten() {
            let levels = factor.width() + 1;
            match needed.iter_mut().find(|(variable, _)| *variable == factor.variable) {
                Some((_, most)) => *most = levels.max(*most),
                None => needed.push((factor.variable, levels)),
            }
        }
        needed.sort_unstable();
        needed
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("1");
        }
        for (index, term) in self.terms.iter().enumerate() {
            let product: Vec<&str> = term.iter().map(|factor| factor.text.as_str()).collect();
            write!(f, "{}{}", if index == 0 { "" } else { " + " }, product.join(":"))?;
        }
        Ok(())
    }
}

/// Which roles have a common term: cores contend for what the frequency and the cap give them, and
/// more nodes change how much work a core has. Nodes and frequency do not interact (the paper).
fn interact(a: Role, b: Role) -> bool {
    let pair = |x, y| (a == x && b == y) || (a == y && b == x);
    pair(Role::Threads, Role::Frequency)
        || pair(Role::Nodes, Role::Threads)
        || pair(Role::PowerCap, Role::Frequency)
        || pair(Role::PowerCap, Role::Threads)
}

fn usual_factor(index: usize, variable: &Variable, scale: Scale) -> Factor {
    if variable.is_categorical() {
        return categories(index, variable);
    }
    if variable.role == Role::Frequency {
        return linear(index, variable);
    }
    spline(index, variable, scale, FREEDOM).unwrap_or_else(|| linear(index, variable))
}

fn linear(index: usize, variable: &Variable) -> Factor {
    Factor { variable: index, basis: Basis::Linear, text: variable.name.clone() }
}

/// Amdahl's law over a number of cores; `None` where there are fewer than one of them, or names.
fn amdahl(index: usize, variable: &Variable, serial: f64) -> Option<Factor> {
    let is_count = |level: &Level| level.number().is_some_and(|number| number >= 1.0);
    let can_be = variable.levels().iter().all(is_count) && (0.0..1.0).contains(&serial);
    let text = format!("amdahl({}, serial={serial})", variable.name);
    can_be.then_some(Factor { variable: index, basis: Basis::Amdahl(serial), text })
}

fn categories(index: usize, variable: &Variable) -> Factor {
    let others = variable.levels().get(1..).unwrap_or_default().to_vec();
    Factor { variable: index, basis: Basis::Categories(others), text: format!("C({})", variable.name) }
}

/// A spline over the whole range of the space, with its interior knots at quantiles of the space's
/// levels: so it does not depend on where the runs lie. `None` for fewer than three levels.
fn spline(index: usize, variable: &Variable, scale: Scale, freedom: usize) -> Option<Factor> {
    let numbers: Vec<f64> = variable.levels().iter().filter_map(Level::number).collect();
    // A logarithm needs values above 0.
    let scale = if numbers.first().is_some_and(|&least| least > 0.0) { scale } else { Scale::Plain };
    let numbers: Vec<f64> = numbers.into_iter().map(|number| scale.apply(number)).collect();
    let most = numbers.len() - 1;
    let freedom = freedom.min(most);
    if freedom < DEGREE {
        return None;
    }
    let knots = freedom - DEGREE;
    let share = |knot: usize| knot as f64 / (knots + 1) as f64;
    let interior: Vec<f64> = (1..=knots).filter_map(|knot| interpolated(&numbers, share(knot))).collect();
    let basis = BSplineBasis::new(DEGREE, *numbers.first()?, *numbers.last()?, &interior)?;
    let of = match scale {
        Scale::Plain => variable.name.clone(),
        Scale::Logarithmic => format!("log({})", variable.name),
    };
    let text =
        if freedom == FREEDOM.min(most) { format!("bs({of})") } else { format!("bs({of}, df={freedom})") };
    Some(Factor { variable: index, basis: Basis::Spline(scale, basis), text })
}

#[cfg(test)]
mod tests {
    use super::super::levels::parse_named_variable;
    use super::*;
    use proptest::prelude::*;

    fn space(variables: &[&str]) -> Space {
        Space::new(variables.iter().map(|text| parse_named_variable(text).expect("valid")).collect())
            .expect("valid")
    }

    #[test]
    fn the_papers_formula_has_20_coefficients_and_8_for_one_node_count() {
        let whole =
            Formula::as_in_the_paper(&space(&["nodes=20,42,64,86", "threads=4..44:4", "freq=1.2..2.2GHz"]));
        assert_eq!(
            whole.to_string(),
            "bs(nodes) + bs(threads) + freq + bs(nodes):bs(threads) + bs(threads):freq"
        );
        assert_eq!(whole.coefficients(), 20);
        let one = Formula::as_in_the_paper(&space(&["nodes=64", "threads=4..44:4", "freq=1.2..2.2GHz"]));
        assert_eq!(one.to_string(), "bs(threads) + freq + bs(threads):freq");
        assert_eq!(one.coefficients(), 8);
        assert_eq!(one.levels_needed(), [(1, 4), (2, 2)]);
    }

    #[test]
    fn few_levels_need_few_coefficients() {
        assert_eq!(Formula::usual(&space(&["threads=1..2"])).coefficients(), 2);
        assert_eq!(Formula::usual(&space(&["threads=1..3"])).coefficients(), 3);
        assert_eq!(Formula::usual(&space(&["threads=1..4"])).coefficients(), 4);
        assert_eq!(Formula::usual(&space(&["threads=4"])).to_string(), "1");
        assert_eq!(Formula::usual(&space(&["flags=a,b,c", "threads=1..2"])).coefficients(), 4);
        assert_eq!(Formula::usual(&space(&["cap=150..300", "clock=1005,1110,1200"])).coefficients(), 8);
    }

    #[test]
    fn rows_and_names_agree() {
        let space = space(&["threads=1..3", "freq=1,2", "flags=a,b"]);
        let formula = Formula::parse("ln(y) ~ freq*C(flags) + threads", &space).expect("valid");
        assert_eq!(
            formula.coefficient_names(),
            ["(intercept)", "freq", "C(flags)[b]", "freq:C(flags)[b]", "threads"]
        );
        let setting = Setting(vec![Level::Number(3.0), Level::Number(2.0), Level::Label("b".into())]);
        assert_eq!(formula.row(&setting), [1.0, 2.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_written_formula_is_the_usual_one() {
        let space = space(&["threads=4..44:4", "freq=1.2..2.2GHz"]);
        let written = Formula::parse("bs(threads) + freq + bs(threads):freq", &space).expect("valid");
        assert_eq!(written, Formula::as_in_the_paper(&space));
        assert_eq!(Formula::parse("paper", &space).expect("valid"), written);
        let usual = Formula::usual(&space);
        assert_eq!(usual.to_string(), "bs(log(threads)) + freq + bs(log(threads)):freq");
        assert_eq!(Formula::parse(&usual.to_string(), &space).expect("valid"), usual);
        let finer = Formula::parse("bs(threads, df=5)", &space).expect("valid");
        assert_eq!(finer.coefficients(), 6);
        let laws = Formula::scaling_laws(&space);
        assert_eq!(laws[4].to_string(), "amdahl(threads, serial=0.04) + bs(log(freq), df=2)");
        assert_eq!((laws[4].coefficients(), laws[4].levels_needed()), (4, vec![(0, 2), (1, 3)]));
        for formula in Formula::candidates(&space).into_iter().chain(laws).chain([finer]) {
            assert_eq!(Formula::parse(&formula.to_string(), &space).expect("valid"), formula);
        }
    }

    #[test]
    fn names_and_unknown_numbers_may_interact_with_all() {
        let formulas = |variables: &[&str]| -> Vec<String> {
            Formula::candidates(&space(variables)).iter().map(Formula::to_string).collect()
        };
        assert_eq!(
            formulas(&["threads=1..8", "flags=a,b"]),
            [
                "bs(log(threads)) + C(flags)",
                "bs(threads) + C(flags)",
                "bs(log(threads)) + C(flags) + bs(log(threads)):C(flags)"
            ]
        );
        assert_eq!(
            formulas(&["threads=4..44:4", "freq=1.2..2.2GHz"]),
            [
                "bs(log(threads)) + freq + bs(log(threads)):freq",
                "bs(log(threads)) + bs(log(freq), df=2) + threads:freq",
                "bs(threads) + freq + bs(threads):freq"
            ]
        );
        assert_eq!(formulas(&["tile=1..8"]), ["bs(log(tile))", "bs(log(tile), df=2)", "bs(tile)"]);
    }

    /// One core does a tenth alone: five cores take 0.1 + 0.9 / 5 of the time of one.
    #[test]
    fn amdahls_law_by_hand() {
        let space = space(&["threads=1..8"]);
        let formula = Formula::parse("amdahl(threads, serial = 0.1)", &space).expect("valid");
        let of = |threads: f64| formula.row(&Setting(vec![Level::Number(threads)]));
        assert_eq!(of(1.0), [1.0, 0.0]);
        assert!((of(5.0)[1] - 0.28f64.ln()).abs() < 1e-12);
        for wrong in [
            "amdahl(threads)",
            "amdahl(threads, serial=1)",
            "amdahl(threads, df=2)",
            "amdahl(threads, serial=x)",
        ] {
            let error = Formula::parse(wrong, &space).expect_err(wrong).to_string();
            assert!(error.contains("as in amdahl(threads, serial=0.05)"), "{error}");
        }
    }

    #[test]
    fn a_name_for_every_run_is_refused() {
        let names: Vec<String> = (0..400).map(|n| format!("run{n}")).collect();
        let space = space(&[&format!("id={}", names.join(","))]);
        let error = Formula::usual(&space).check_size().expect_err("too many names").to_string();
        assert!(error.contains("400 coefficients"), "{error}");
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let space = space(&["threads=4..44:4", "flags=a,b"]);
        for text in [
            "bs(cores)",
            "amdahl(flags, serial=0.1)",
            "sin(threads)",
            "bs(flags)",
            "bs(threads",
            "bs(threads, df=1)",
            "threads + ",
            "a*",
        ] {
            assert!(Formula::parse(text, &space).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "[a-z()+:*,=0-9 ]{0,60}") {
            let space = space(&["threads=4..44:4", "flags=a,b"]);
            if let Ok(formula) = Formula::parse(&text, &space) {
                prop_assert_eq!(formula.row(&space.setting(0)).len(), formula.coefficients());
                prop_assert_eq!(formula.coefficient_names().len(), formula.coefficients());
            }
        }
    }
}
