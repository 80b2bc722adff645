//! One table as a file of Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{
    Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel,
};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::schema::{Column, Kind, TABLE_KEY, Table, VERSION, VERSION_KEY};
use crate::report::error::ReportError;

/// Rows that are gathered before they are written: what readers skip or take as a whole.
const ROWS_OF_GROUP: usize = 1 << 16;

/// A table that is being written.
pub(super) struct TableWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Gathered>,
    rows: usize,
}

/// The values of a column that are not yet written.
enum Gathered {
    Int(Vec<i64>),
    Flag(Vec<i32>),
    Double(Vec<f64>),
    /// Values that are there, and for each row whether its is.
    Optional(Vec<f64>, Vec<i16>),
    Text(Vec<ByteArray>),
}

/// A row that is being added; its values come in the order of the table's columns.
pub(super) struct Row<'t, W: Write + Send> {
    table: &'t mut TableWriter<W>,
    next: usize,
}

pub(super) fn failed(error: ParquetError) -> ReportError {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => ReportError::Write(*error),
            Err(other) => ReportError::Write(io::Error::other(other)),
        },
        other => ReportError::Write(io::Error::other(other)),
    }
}

impl<W: Write + Send> TableWriter<W> {
    pub fn new(table: &'static Table, out: W) -> Result<Self, ReportError> {
        let fields = table.columns.iter().map(|column| field(column).map(Arc::new));
        let fields = fields.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let root = Type::group_type_builder(table.name).with_fields(fields).build().map_err(failed)?;
        let file =
            SerializedFileWriter::new(out, Arc::new(root), Arc::new(properties(table))).map_err(failed)?;
        let columns = table.columns.iter().map(|column| Gathered::of(column.kind)).collect();
        Ok(Self { file, columns, rows: 0 })
    }

    pub fn row(&mut self) -> Row<'_, W> {
        Row { table: self, next: 0 }
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for gathered in &mut self.columns {
            if let Some(mut column) = group.next_column()? {
                gathered.write_to(&mut column)?;
                column.close()?;
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    /// Writes what is left, and the file's own description.
    pub fn finish(mut self) -> Result<W, ReportError> {
        self.write_group().map_err(failed)?;
        self.file.into_inner().map_err(failed)
    }
}

impl<W: Write + Send> Row<'_, W> {
    /// A whole number, an id, a time or a flag.
    pub fn int(&mut self, value: i64) -> &mut Self {
        match &mut self.table.columns[self.next] {
            Gathered::Int(values) => values.push(value),
            Gathered::Flag(values) => values.push(value as i32),
            _ => unreachable!("column {} takes no whole numbers", self.next),
        }
        self.step()
    }

    pub fn double(&mut self, value: f64) -> &mut Self {
        self.optional(Some(value))
    }

    pub fn optional(&mut self, value: Option<f64>) -> &mut Self {
        match (&mut self.table.columns[self.next], value) {
            (Gathered::Double(values), Some(value)) => values.push(value),
            (Gathered::Optional(values, is_there), value) => {
                values.extend(value);
                is_there.push(i16::from(value.is_some()));
            }
            _ => unreachable!("column {} takes no double", self.next),
        }
        self.step()
    }

    pub fn text(&mut self, value: &str) -> &mut Self {
        self.shared_text(&ByteArray::from(value))
    }

    /// A text that many rows have: nothing is copied.
    pub fn shared_text(&mut self, value: &ByteArray) -> &mut Self {
        match &mut self.table.columns[self.next] {
            Gathered::Text(values) => values.push(value.clone()),
            _ => unreachable!("column {} takes no text", self.next),
        }
        self.step()
    }

    fn step(&mut self) -> &mut Self {
        self.next += 1;
        self
    }

    /// Ends the row. What is gathered is written when it is enough.
    pub fn end(&mut self) -> Result<(), ReportError> {
        debug_assert_eq!(self.next, self.table.columns.len(), "values of all columns");
        self.table.rows += 1;
        if self.table.rows == ROWS_OF_GROUP {
            self.table.write_group().map_err(failed)?;
        }
        Ok(())
    }
}

impl Gathered {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Id | Kind::Number | Kind::Time => Self::Int(Vec::new()),
            Kind::Flag => Self::Flag(Vec::new()),
            Kind::Double => Self::Double(Vec::new()),
            Kind::OptionalDouble => Self::Optional(Vec::new(), Vec::new()),
            Kind::Text => Self::Text(Vec::new()),
        }
    }

    fn write_to(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Self::Int(values) => {
                column.typed::<Int64Type>().write_batch(values, None, None)?;
                values.clear();
            }
            Self::Flag(values) => {
                column.typed::<Int32Type>().write_batch(values, None, None)?;
                values.clear();
            }
            Self::Double(values) => {
                column.typed::<DoubleType>().write_batch(values, None, None)?;
                values.clear();
            }
            Self::Optional(values, is_there) => {
                column.typed::<DoubleType>().write_batch(values, Some(is_there), None)?;
                values.clear();
                is_there.clear();
            }
            Self::Text(values) => {
                column.typed::<ByteArrayType>().write_batch(values, None, None)?;
                values.clear();
            }
        }
        Ok(())
    }
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let physical = match column.kind {
        Kind::Id | Kind::Number | Kind::Time => PhysicalType::INT64,
        Kind::Flag => PhysicalType::INT32,
        Kind::Double | Kind::OptionalDouble => PhysicalType::DOUBLE,
        Kind::Text => PhysicalType::BYTE_ARRAY,
    };
    let logical = match column.kind {
        Kind::Text => Some(LogicalType::String),
        Kind::Time => Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
        _ => None,
    };
    let repetition =
        if column.kind == Kind::OptionalDouble { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
}

/// Each kind of value is packed in the way that takes least; all of it is compressed.
fn properties(table: &Table) -> WriterProperties {
    let metadata = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![metadata(VERSION_KEY, VERSION), metadata(TABLE_KEY, table.name)]));
    for column in table.columns {
        let path = ColumnPath::from(column.name);
        let encoding = match column.kind {
            Kind::Double | Kind::OptionalDouble => Encoding::BYTE_STREAM_SPLIT,
            Kind::Number | Kind::Time => Encoding::DELTA_BINARY_PACKED,
            // Few values that come again and again: dictionaries.
            Kind::Id | Kind::Flag | Kind::Text => continue,
        };
        properties =
            properties.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding);
    }
    properties.build()
}
