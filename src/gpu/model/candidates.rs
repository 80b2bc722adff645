//! The recipes among which rows that are left out choose.

use super::fit::{Method, Response};
use super::form::{Columns, Form, Scale};
use super::table::Table;

/// Which recipes may be chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// All.
    All,
    /// Those with coefficients.
    Linear,
    /// Plain least squares of counters per time, as in the paper.
    Published,
}

/// More rows than this and fits by similarity take too long (cubic in the rows).
const MOST_SIMILAR: usize = 420;
/// More rows times squares of columns than this and robust fits, which are made anew a dozen times, take too long.
const MOST_ROBUST: usize = 1 << 19;

/// What fits by this form and method may make small.
pub(super) fn responses(form: Form, method: Method, allowed: Allowed) -> Vec<Response> {
    match (allowed, method) {
        (Allowed::Published, _) | (_, Method::Level) => vec![Response::Watts],
        // Steps of the clock multiply what the work takes.
        _ if form.clock_steps => vec![Response::Log],
        (_, Method::Similar { .. }) => vec![Response::Watts, Response::Log],
        _ => vec![Response::Watts, Response::Shares, Response::Log],
    }
}

/// The forms in which counters may enter.
pub(super) fn forms(table: &Table, allowed: Allowed) -> Vec<Form> {
    let per_time = table.time.is_some() && !table.counts.is_empty();
    let rate = if per_time { Columns::PerTime } else { Columns::AsGiven };
    if allowed == Allowed::Published {
        return vec![Form::plain(rate, Scale::Linear)];
    }
    // A count that is not divided by its time tells energy, not power.
    let columns = if per_time { vec![Columns::PerTime, Columns::Pooled] } else { vec![Columns::AsGiven] };
    let scales = [Scale::Linear, Scale::Root, Scale::Log];
    let mut forms = vec![Form::plain(Columns::NoCounters, Scale::Linear)];
    forms.extend(columns.iter().flat_map(|columns| scales.map(|scale| Form::plain(*columns, scale))));
    if !table.clocks.is_empty() {
        let by_steps = |form: Form| Form { clock_steps: true, ..form };
        // Beside more counters than kernels, a dozen terms more follow the noise.
        let few = table.columns.len() <= table.by_group().len();
        let may_have = |form: &Form| few || form.columns == Columns::NoCounters;
        forms.extend(forms.clone().into_iter().filter(may_have).map(by_steps));
        if table.rows.len() > 4 * table.columns.len() * (1 + table.clocks.len()) {
            let products = |scale| Form { clock_products: true, ..Form::plain(rate, scale) };
            forms.extend([Scale::Linear, Scale::Log].map(products));
        }
    }
    forms
}

/// Too few kernels for each counter's sign to come from the rows. Then physics gives it: fits whose
/// signs are free follow the noise, and choosing among them by rows left out follows it once more.
fn is_scarce(table: &Table) -> bool {
    const FEWEST_PER_COLUMN: usize = 3;
    table.by_group().len() < FEWEST_PER_COLUMN * table.columns.len()
}

/// How coefficients may be found.
pub(super) fn methods(table: &Table, allowed: Allowed) -> Vec<Method> {
    if allowed == Allowed::Published {
        return vec![Method::Ridge(0.0)];
    }
    if is_scarce(table) {
        let mut methods = [1e-3, 0.03, 0.1, 0.3].map(Method::NonNegative).to_vec();
        methods.push(Method::Level);
        return methods;
    }
    let mut methods: Vec<Method> = vec![Method::Level];
    methods.extend([0.0, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0].map(Method::Ridge));
    if table.rows.len() * table.columns.len().pow(2) <= MOST_ROBUST {
        methods.extend([Method::Robust(1e-2), Method::Robust(0.1)]);
    }
    methods.extend([0.0, 0.03, 0.3].map(Method::NonNegative));
    if allowed == Allowed::All && table.rows.len() <= MOST_SIMILAR {
        for length in [0.6, 1.0, 2.0] {
            methods.extend([0.003, 0.03, 0.15].map(|noise| Method::Similar { length, noise }));
        }
    }
    methods
}

impl Method {
    /// The price of large coefficients.
    pub(super) fn penalty(self) -> f64 {
        match self {
            Self::Ridge(ridge) | Self::Robust(ridge) | Self::NonNegative(ridge) => ridge,
            Self::Similar { noise, .. } => noise,
            Self::Level => 0.0,
        }
    }

    /// Whether a form may be fitted so. Steps of a clock may only rise. Without counters and clocks there is nothing to
    /// hold small or under a sign.
    pub(super) fn suits(self, form: Form) -> bool {
        match (form.columns, form.clock_steps) {
            (Columns::NoCounters, false) => self == Self::Level,
            (_, true) => matches!(self, Self::NonNegative(_)),
            _ => self != Self::Level,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_divided_by_time_where_both_are_there() {
        let published = |time: Option<usize>, counts: &[usize]| {
            let columns = ["time", "reads"].map(str::to_owned).to_vec();
            let table = Table { columns, time, counts: counts.to_vec(), ..Table::default() };
            let columns = |allowed: Allowed| -> Vec<Columns> {
                forms(&table, allowed).iter().map(|form| form.columns).collect()
            };
            assert_eq!(
                columns(Allowed::All).contains(&Columns::Pooled),
                time.is_some() && !counts.is_empty()
            );
            columns(Allowed::Published)
        };
        assert_eq!(published(Some(0), &[1]), [Columns::PerTime]);
        assert_eq!(published(Some(0), &[]), [Columns::AsGiven], "no counter grows with the time");
        assert_eq!(published(None, &[1]), [Columns::AsGiven], "nobody knows the time");
    }
}
