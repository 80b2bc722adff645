//! Rows that a linear fit hangs on, and rows that it cannot explain.

use serde::Serialize;

use super::fit::Response;
use super::form::{Columns, Form, Prepared, Scale};
use super::table::Table;
use crate::numerics::ridge::{Ridge, with_constant};

/// One row of a table, seen by the linear fit of all rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowDiagnosis {
    /// Number of the row in the table, from 0.
    pub row: usize,
    /// How much the fit at this row follows the row itself: 0 not at all, 1 entirely.
    pub leverage: f64,
    /// Residual in standard deviations, with the row left out of both.
    pub studentised: f64,
    /// The term in which the row is farthest from the mean, and how many standard deviations.
    pub farthest: Option<(String, f64)>,
}

impl RowDiagnosis {
    /// The row decides its own prediction: more than three times the mean leverage, or nearly 1.
    pub fn is_leverage_point(&self, mean: f64) -> bool {
        self.leverage > (3.0 * mean).min(0.9)
    }

    /// The fit of the other rows does not explain this one.
    pub fn is_outlier(&self) -> bool {
        self.studentised.abs() > 3.0
    }
}

/// Diagnoses all rows by the least-squares fit of rates, lightly penalised so that dependent columns do
/// not hide each other. The second value is the mean leverage.
pub fn diagnose(table: &Table) -> Option<(Vec<RowDiagnosis>, f64)> {
    let columns = if table.time.is_some() { Columns::PerTime } else { Columns::AsGiven };
    let form = Form::plain(columns, Scale::Linear);
    let (prepared, rows) = Prepared::learn(form, table);
    let y = Response::Watts.of(&table.power);
    let design = with_constant(&rows);
    let fit = Ridge::fit(&design, &y, None, 1e-6)?;
    let (residuals, leverages) = (fit.residuals(&design, &y), fit.leverages(&design));
    let used: f64 = leverages.iter().sum();
    let free = (rows.len() as f64 - used - 1.0).max(1.0);
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let rows = rows
        .iter()
        .enumerate()
        .map(|(row, terms)| {
            let leverage = leverages[row];
            let rest = (1.0 - leverage).max(1e-9);
            let variance = ((squares - residuals[row].powi(2) / rest) / free).max(1e-12);
            let farthest = terms.iter().zip(&prepared.names).max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
            RowDiagnosis {
                row,
                leverage,
                studentised: residuals[row] / (variance * rest).sqrt(),
                farthest: farthest.map(|(value, name)| (name.clone(), *value)),
            }
        })
        .collect();
    Some((rows, used / leverages.len().max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_lonely_kernel_is_reported() {
        // 20 kernels; two of them serialise warps, one of these a hundred times more.
        let serialize = |i: usize| match i {
            3 => 200.0,
            7 => 2.0,
            _ => 0.0,
        };
        let power = |i: usize| 100.0 + 2.0 * i as f64 + if i == 12 { 60.0 } else { (i % 3) as f64 };
        let table = Table {
            columns: vec!["instructions".into(), "warp_serialize".into()],
            rows: (0..20).map(|i| vec![i as f64, serialize(i)]).collect(),
            power: (0..20).map(power).collect(),
            groups: (0..20).map(|i| i.to_string()).collect(),
            time: None,
            counts: vec![],
            clocks: vec![],
            left_out: vec![],
            skipped: 0,
        };
        let (rows, mean) = diagnose(&table).expect("a fit");
        let leverage: Vec<usize> =
            rows.iter().filter(|row| row.is_leverage_point(mean)).map(|row| row.row).collect();
        assert_eq!(leverage, [3]);
        assert_eq!(rows[3].farthest.as_ref().map(|f| f.0.as_str()), Some("warp_serialize"));
        let outliers: Vec<usize> = rows.iter().filter(|row| row.is_outlier()).map(|row| row.row).collect();
        assert_eq!(outliers, [12]);
    }
}
