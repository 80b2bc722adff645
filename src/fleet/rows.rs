//! The engine's answers as plain values.

use anyhow::{Context, bail};
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};

/// One column of an answer.
pub enum Column {
    /// Whole numbers; times are microseconds.
    Int(Vec<i64>),
    /// Doubles; what is missing is 0.
    Double(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
}

/// The columns of an answer, in order.
pub fn columns(batches: &[RecordBatch]) -> anyhow::Result<Vec<Column>> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    (0..first.num_columns()).map(|at| column(batches, at)).collect()
}

fn column(batches: &[RecordBatch], at: usize) -> anyhow::Result<Column> {
    let arrays = batches.iter().map(|batch| batch.column(at));
    let kind = batches[0].column(at).data_type().clone();
    Ok(match kind {
        DataType::Float64 => {
            let mut values = Vec::new();
            for array in arrays {
                values.extend(array.as_primitive::<Float64Type>().iter().map(Option::unwrap_or_default));
            }
            Column::Double(values)
        }
        DataType::Int32 | DataType::Int64 | DataType::UInt64 | DataType::Timestamp(..) => {
            let mut values = Vec::new();
            for array in arrays {
                let array = match array.data_type() {
                    DataType::Timestamp(_, zone) => {
                        &cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?
                    }
                    _ => array,
                };
                let whole = cast(array, &DataType::Int64).context("whole numbers")?;
                values.extend(whole.as_primitive::<Int64Type>().iter().map(Option::unwrap_or_default));
            }
            Column::Int(values)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => {
            let mut values = Vec::new();
            for array in arrays {
                let texts = cast(array, &DataType::Utf8).context("texts")?;
                let texts = texts.as_string::<i32>();
                values.extend(texts.iter().map(|text| text.unwrap_or_default().to_owned()));
            }
            Column::Text(values)
        }
        other => bail!("column {at} of the answer is of the type {other}"),
    })
}

/// The columns of an answer, of which the next must be of this kind.
pub struct Columns(std::vec::IntoIter<Column>);

impl Columns {
    /// Of an answer in Arrow.
    pub fn of(batches: &[RecordBatch]) -> anyhow::Result<Self> {
        Ok(Self(columns(batches)?.into_iter()))
    }

    /// Of these.
    pub fn new(columns: Vec<Column>) -> Self {
        Self(columns.into_iter())
    }

    /// Whole numbers; none if the answer has no rows.
    pub fn ints(&mut self) -> anyhow::Result<Vec<i64>> {
        match self.0.next() {
            Some(Column::Int(values)) => Ok(values),
            None => Ok(Vec::new()),
            Some(_) => bail!("a column of the tables holds no whole numbers: they are not eprof's"),
        }
    }

    /// Doubles.
    pub fn doubles(&mut self) -> anyhow::Result<Vec<f64>> {
        match self.0.next() {
            Some(Column::Double(values)) => Ok(values),
            None => Ok(Vec::new()),
            Some(_) => bail!("a column of the tables holds no doubles: they are not eprof's"),
        }
    }

    /// Texts. Whole numbers are written out.
    pub fn texts(&mut self) -> anyhow::Result<Vec<String>> {
        match self.0.next() {
            Some(Column::Text(values)) => Ok(values),
            Some(Column::Int(values)) => Ok(values.iter().map(i64::to_string).collect()),
            None => Ok(Vec::new()),
            Some(Column::Double(_)) => bail!("a column of the tables holds no texts: they are not eprof's"),
        }
    }
}
