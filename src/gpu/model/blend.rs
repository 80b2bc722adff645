//! The model that predicts: one recipe or the average of a few, with what is known of its errors.

use serde::{Deserialize, Serialize};

use super::fit::{Model, Recipe, StoredModelError};
use super::table::Table;
use crate::numerics::left_out::LeftOutDistances;

/// What several models say together: the geometric mean of their watts, as errors are shares.
pub(super) fn average(watts: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = watts.len().max(1) as f64;
    (watts.map(f64::ln).sum::<f64>() / count).exp()
}

/// Fitted models that speak together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blend {
    members: Vec<Model>,
    /// How far groups of rows lay from what was predicted without them, where that was found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOutDistances>,
}

impl Blend {
    /// Fits recipes to a table. `None` if there are none, or if the rows do not determine one of them.
    pub fn fit(recipes: &[Recipe], table: &Table) -> Option<Self> {
        let members = recipes.iter().map(|recipe| Model::fit(*recipe, table)).collect::<Option<Vec<_>>>()?;
        (!members.is_empty()).then_some(Self { members, left_out: None })
    }

    /// The same, knowing how far off such a model was from what it had not seen.
    pub fn with_errors(self, left_out: Option<LeftOutDistances>) -> Self {
        Self { left_out, ..self }
    }

    /// Reads a model that was stored as JSON, also by versions that had no averages.
    ///
    /// # Errors
    /// [`StoredModelError`] if it is none, or one that cannot predict anything.
    pub fn from_json(text: &str) -> Result<Self, StoredModelError> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        if value.get("members").is_none() {
            return Ok(Self { members: vec![Model::from_json(text)?], left_out: None });
        }
        let blend: Self = serde_json::from_value(value)?;
        let columns = blend.members.first().map(|member| member.prepared.columns());
        let is_sound = columns.is_some()
            && blend
                .members
                .iter()
                .all(|member| member.is_sound() && Some(member.prepared.columns()) == columns)
            && blend.left_out.as_ref().is_none_or(LeftOutDistances::is_sound);
        if is_sound { Ok(blend) } else { Err(StoredModelError::Inconsistent) }
    }

    /// Predicted power in watts of a row with the columns of the table it was fitted to.
    pub fn predict(&self, row: &[f64]) -> f64 {
        average(self.members.iter().map(|member| member.predict(row)))
    }

    /// Whether a row lies so far from all that was learnt from that limits stand for a part of what it is predicted by.
    pub fn is_beyond(&self, row: &[f64]) -> bool {
        self.members.iter().any(|member| member.is_beyond(row))
    }

    /// Between which watts a measurement lies with this probability (0..1) where `watts` are predicted; `None` where
    /// nothing tells.
    pub fn interval(&self, watts: f64, level: f64) -> Option<(f64, f64)> {
        self.left_out.as_ref()?.interval(watts, level)
    }

    /// How far off such a model was from groups that it had not seen, where that was found out.
    pub fn left_out(&self) -> Option<&LeftOutDistances> {
        self.left_out.as_ref()
    }

    /// The columns that a row must have, in order.
    pub fn columns(&self) -> &[String] {
        self.members.first().map_or(&[], |member| member.prepared.columns())
    }

    /// Which of the columns is the run time.
    pub fn time(&self) -> Option<usize> {
        self.members.first().and_then(|member| member.prepared.time())
    }

    /// Which of the columns are counts.
    pub fn counts(&self) -> &[usize] {
        self.members.first().map_or(&[], |member| member.prepared.counts())
    }

    /// The models themselves.
    pub fn members(&self) -> &[Model] {
        &self.members
    }
}

#[cfg(test)]
mod tests {
    use super::super::fit::{Method, Response};
    use super::super::form::{Columns, Form, Scale};
    use super::*;
    use crate::numerics::folds::spans;

    fn table() -> Table {
        Table {
            columns: vec!["reads".into(), "writes".into()],
            rows: (0..12).map(|i| vec![f64::from(i), f64::from(i * i % 7)]).collect(),
            power: (0..12).map(|i| f64::from(50 + 3 * i)).collect(),
            groups: (0..12).map(|i| i.to_string()).collect(),
            ..Table::default()
        }
    }

    fn blend() -> Blend {
        let recipe = |columns, response| Recipe {
            form: Form::plain(columns, Scale::Linear),
            response,
            method: Method::Ridge(0.0),
        };
        let recipes =
            [recipe(Columns::AsGiven, Response::Watts), recipe(Columns::NoCounters, Response::Watts)];
        let estimated: Vec<f64> = table().power.iter().map(|watts| watts * 1.1).collect();
        let errors = LeftOutDistances::new(&estimated, &table().power, &spans(12, 12));
        Blend::fit(&recipes, &table()).expect("a fit").with_errors(Some(errors))
    }

    /// 50 + 3 times the reads, and the mean of all, 66.5: the geometric mean of both.
    #[test]
    fn members_speak_together() {
        let watts = blend().predict(&table().rows[4]);
        assert!((watts - (62.0f64 * 66.5).sqrt()).abs() < 1e-6, "{watts}");
        let (low, high) = blend().interval(100.0, 0.5).expect("errors are known");
        assert!((high - 110.0).abs() < 1e-9 && (low - 100.0 / 1.1).abs() < 1e-9);
    }

    /// Reads of 0 to 11 were seen: half as much again on either side is followed, at 3 W each, and no more.
    #[test]
    fn rows_beyond_the_data_are_known() {
        let of =
            |reads: f64| (blend().is_beyond(&[reads, 1.0]), blend().predict(&[reads, 1.0]).powi(2) / 66.5);
        for (reads, is_beyond, watts) in [
            (-5.4, false, 33.8),
            (-5.6, true, 33.5),
            (16.4, false, 99.2),
            (16.6, true, 99.5),
            (1e6, true, 99.5),
        ] {
            let (found, first) = of(reads);
            assert!(found == is_beyond && (first - watts).abs() < 1e-6, "{reads}: {found}, {first} W");
        }
        assert!(blend().is_beyond(&[f64::NAN, 1.0]));
    }

    #[test]
    fn what_is_stored_is_read_and_checked() {
        let text = serde_json::to_string(&blend()).expect("JSON");
        let read = Blend::from_json(&text).expect("what was stored");
        assert!((read.predict(&table().rows[3]) / blend().predict(&table().rows[3]) - 1.0).abs() < 1e-12);
        for (whole, part) in [
            ("\"kept\":[0,1]", "\"kept\":[0,2]"),
            ("\"mean_square\":", "\"mean_square\":-"),
            ("\"columns\":[\"reads\",\"writes\"]", "\"columns\":[\"reads\",\"other\"]"),
        ] {
            let broken = text.replacen(whole, part, 1);
            assert_ne!(broken, text, "{whole}");
            assert!(matches!(Blend::from_json(&broken), Err(StoredModelError::Inconsistent)), "{part}");
        }
        assert!(Blend::from_json("{\"members\": []}").is_err());
        // As earlier versions wrote them.
        let single = serde_json::to_string(&blend().members()[0]).expect("JSON");
        assert_eq!(Blend::from_json(&single).expect("one model").columns(), ["reads", "writes"]);
    }
}
