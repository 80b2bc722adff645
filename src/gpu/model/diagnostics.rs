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
            ..Table::default()
        };
        let (rows, mean) = diagnose(&table).expect("a fit");
        let leverage: Vec<usize> =
            rows.iter().filter(|row| row.is_leverage_point(mean)).map(|row| row.row).collect();
        assert_eq!(leverage, [3]);
        assert_eq!(rows[3].farthest.as_ref().map(|f| f.0.as_str()), Some("warp_serialize"));
        let outliers: Vec<usize> = rows.iter().filter(|row| row.is_outlier()).map(|row| row.row).collect();
        assert_eq!(outliers, [12]);
    }
    /// A straight line through points, by the textbook's sums: its residuals and the sum of their squares.
    fn line(points: &[(f64, f64)]) -> (f64, f64, Vec<f64>) {
        let count = points.len() as f64;
        let (x, y) =
            points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / count, sum.1 + point.1 / count));
        let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / squares;
        let residuals = points.iter().map(|point| point.1 - y - slope * (point.0 - x)).collect();
        (x, squares, residuals)
    }

    /// Of a line, all of that is known in closed form.
    #[test]
    fn leverages_and_residuals_of_a_line() {
        let xs = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 25.0];
        let off = [0.3, -0.7, 0.5, 0.1, -0.4, 9.0, 0.6, -0.2, -0.5, 0.1];
        let points: Vec<(f64, f64)> =
            xs.iter().zip(off).map(|(x, off)| (*x, 100.0 + 2.0 * x + off)).collect();
        let table = Table {
            columns: vec!["instructions".into()],
            rows: xs.iter().map(|x| vec![*x]).collect(),
            power: points.iter().map(|point| point.1).collect(),
            groups: (0..10).map(|i| i.to_string()).collect(),
            ..Table::default()
        };
        let (rows, mean) = diagnose(&table).expect("a fit");
        assert!((mean - 0.2).abs() < 1e-5, "two coefficients over ten rows: {mean}");
        let (middle, squares, residuals) = line(&points);
        let deviation = (squares / 10.0).sqrt();
        for (row, found) in rows.iter().enumerate() {
            let x = points[row].0;
            let leverage = 0.1 + (x - middle).powi(2) / squares;
            assert!((found.leverage - leverage).abs() < 1e-5, "{row}: {found:?} {leverage}");
            // The residual over its standard deviation, which the line through the other points tells.
            let others: Vec<(f64, f64)> = [&points[..row], &points[row + 1..]].concat();
            let variance = line(&others).2.iter().map(|residual| residual.powi(2)).sum::<f64>() / 7.0;
            let studentised = residuals[row] / (variance * (1.0 - leverage)).sqrt();
            assert!((found.studentised / studentised - 1.0).abs() < 1e-3, "{row}: {found:?} {studentised}");
            let (name, distance) = found.farthest.clone().expect("a term");
            assert!(
                name == "instructions" && (distance - (x - middle) / deviation).abs() < 1e-9,
                "{name} {distance}"
            );
            assert_eq!((found.row, found.is_outlier()), (row, row == 5));
            assert_eq!(found.is_leverage_point(mean), row == 9);
        }
    }

    #[test]
    fn limits_of_what_is_odd() {
        let row =
            |leverage: f64, studentised: f64| RowDiagnosis { row: 0, leverage, studentised, farthest: None };
        let is_leverage_point = |leverage: f64, mean: f64| row(leverage, 0.0).is_leverage_point(mean);
        assert!(!is_leverage_point(0.75, 0.25) && is_leverage_point(0.7501, 0.25));
        assert!(!is_leverage_point(0.9, 0.5) && is_leverage_point(0.9001, 0.5), "never more than nearly 1");
        let is_outlier = |studentised: f64| row(0.0, studentised).is_outlier();
        assert!(!is_outlier(3.0) && !is_outlier(-3.0) && is_outlier(3.0001) && is_outlier(-3.0001));
    }
}
