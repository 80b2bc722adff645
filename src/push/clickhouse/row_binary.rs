//! A file of Parquet as rows of `RowBinary`: the values of a row one after the other, numbers in their bytes, the lowest first,
//! texts behind their length.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::push::PushError;
use crate::report::store::schema::{Kind, TABLE_KEY, Table, VERSION, VERSION_KEY};

/// Rows that are turned at once.
const ROWS_AT_ONCE: usize = 4_096;

/// A file of a table that is being read.
pub(super) struct TableFile {
    reader: SerializedFileReader<File>,
    path: PathBuf,
    table: &'static Table,
    /// Where each column of the table stands in the file.
    places: Vec<usize>,
    next_group: usize,
    columns: Vec<Values>,
    rows_left: usize,
}

/// Values of a column that are read and not yet sent.
enum Values {
    Int(ColumnReaderImpl<Int64Type>, Vec<i64>),
    Flag(ColumnReaderImpl<Int32Type>, Vec<i32>),
    Double(ColumnReaderImpl<DoubleType>, Vec<f64>),
    /// Values that are there, and for each row whether its is.
    Optional(ColumnReaderImpl<DoubleType>, Vec<f64>, Vec<i16>),
    Text(ColumnReaderImpl<ByteArrayType>, Vec<ByteArray>),
}

impl TableFile {
    /// Opens a file and looks whether it is what it should be.
    ///
    /// # Errors
    /// A file that is no Parquet, or not this table of this version.
    pub fn new(file: File, table: &'static Table, path: &Path) -> Result<Self, PushError> {
        let wrong = |why: String| PushError::Table { path: path.to_owned(), why };
        let cannot = |error: ParquetError| wrong(format!("it cannot be read: {error}"));
        let reader = SerializedFileReader::new(file).map_err(cannot)?;
        let metadata = reader.metadata().file_metadata();
        let said = |key: &str| {
            let pairs = metadata.key_value_metadata()?;
            pairs.iter().find(|pair| pair.key == key)?.value.clone()
        };
        if said(TABLE_KEY).as_deref() != Some(table.name) {
            return Err(wrong(format!("it does not say that it is a table `{}` of eprof", table.name)));
        }
        match said(VERSION_KEY) {
            Some(version) if version == VERSION => {}
            other => {
                let version = other.unwrap_or_else(|| "none".to_owned());
                return Err(wrong(format!(
                    "its version is {version}, and this eprof sends version {VERSION}: take the eprof that wrote it, or export the \
                     recording again"
                )));
            }
        }
        let theirs = metadata.schema_descr().columns();
        let place = |column: &crate::report::store::schema::Column| {
            let found = theirs.iter().position(|their| their.path().parts() == [column.name.to_owned()]);
            let place = found.ok_or_else(|| wrong(format!("it lacks the column `{}`", column.name)))?;
            let their = &theirs[place];
            let physical = match column.kind {
                Kind::Id | Kind::Number | Kind::Time => Physical::INT64,
                Kind::Flag => Physical::INT32,
                Kind::Double | Kind::OptionalDouble => Physical::DOUBLE,
                Kind::Text => Physical::BYTE_ARRAY,
            };
            let level = i16::from(column.kind == Kind::OptionalDouble);
            let is_right = their.physical_type() == physical
                && their.max_def_level() == level
                && their.max_rep_level() == 0;
            if is_right {
                Ok(place)
            } else {
                Err(wrong(format!("its column `{}` is of another type", column.name)))
            }
        };
        let places = table.columns.iter().map(place).collect::<Result<_, _>>()?;
        Ok(Self {
            reader,
            path: path.to_owned(),
            table,
            places,
            next_group: 0,
            columns: Vec::new(),
            rows_left: 0,
        })
    }

    /// Rows of the whole file.
    pub fn rows(&self) -> i64 {
        self.reader.metadata().file_metadata().num_rows()
    }

    /// The first value of a column of numbers.
    ///
    /// # Errors
    /// As for [`Self::add_rows`].
    pub fn first_number(&self, name: &str) -> Result<Option<i64>, PushError> {
        self.first::<Int64Type>(name)
    }

    /// The first value of a column of texts.
    ///
    /// # Errors
    /// As for [`Self::add_rows`].
    pub fn first_text(&self, name: &str) -> Result<Option<Vec<u8>>, PushError> {
        Ok(self.first::<ByteArrayType>(name)?.map(|text| text.data().to_vec()))
    }

    fn first<T: DataType>(&self, name: &str) -> Result<Option<T::T>, PushError> {
        let column = self.table.columns.iter().position(|column| column.name == name);
        let Some(place) = column.filter(|_| self.rows() > 0).map(|column| self.places[column]) else {
            return Ok(None);
        };
        let mut values = Vec::new();
        let read = self.reader.get_row_group(0).and_then(|group| {
            let mut reader = get_typed_column_reader::<T>(group.get_column_reader(place)?);
            read(&mut reader, 1, &mut values, None)
        });
        read.map_err(|error| self.broken(&error))?;
        Ok(values.pop())
    }

    /// Reads the next rows and adds their bytes, each row's with `push` behind it. `false`: there are no more.
    ///
    /// # Errors
    /// What Parquet says of a file that is broken.
    pub fn add_rows(&mut self, push: Option<i64>, out: &mut Vec<u8>) -> Result<bool, PushError> {
        self.try_add_rows(push, out).map_err(|error| self.broken(&error))
    }

    fn broken(&self, error: &ParquetError) -> PushError {
        PushError::Table { path: self.path.clone(), why: format!("it is broken: {error}") }
    }

    fn try_add_rows(&mut self, push: Option<i64>, out: &mut Vec<u8>) -> Result<bool, ParquetError> {
        while self.rows_left == 0 {
            if self.next_group == self.reader.num_row_groups() {
                return Ok(false);
            }
            self.open_group()?;
        }
        let rows = self.rows_left.min(ROWS_AT_ONCE);
        for column in &mut self.columns {
            column.read(rows)?;
        }
        self.rows_left -= rows;
        let mut there = vec![0; self.columns.len()];
        for row in 0..rows {
            for (column, there) in self.columns.iter().zip(&mut there) {
                column.add(row, there, out);
            }
            out.extend(push.iter().flat_map(|push| push.to_le_bytes()));
        }
        Ok(true)
    }

    fn open_group(&mut self) -> Result<(), ParquetError> {
        let group = self.reader.get_row_group(self.next_group)?;
        self.next_group += 1;
        let rows = group.metadata().num_rows();
        self.rows_left = usize::try_from(rows).map_err(|_| ParquetError::General(format!("{rows} rows")))?;
        self.columns.clear();
        for (column, &place) in self.table.columns.iter().zip(&self.places) {
            self.columns.push(Values::of(column.kind, group.get_column_reader(place)?));
        }
        Ok(())
    }
}

impl Values {
    /// The file's types were looked at when it was opened.
    fn of(kind: Kind, reader: ColumnReader) -> Self {
        match kind {
            Kind::Id | Kind::Number | Kind::Time => Self::Int(get_typed_column_reader(reader), Vec::new()),
            Kind::Flag => Self::Flag(get_typed_column_reader(reader), Vec::new()),
            Kind::Double => Self::Double(get_typed_column_reader(reader), Vec::new()),
            Kind::OptionalDouble => Self::Optional(get_typed_column_reader(reader), Vec::new(), Vec::new()),
            Kind::Text => Self::Text(get_typed_column_reader(reader), Vec::new()),
        }
    }

    fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
        match self {
            Self::Int(reader, values) => read(reader, rows, values, None),
            Self::Flag(reader, values) => read(reader, rows, values, None),
            Self::Double(reader, values) => read(reader, rows, values, None),
            Self::Optional(reader, values, is_there) => read(reader, rows, values, Some(is_there)),
            Self::Text(reader, values) => read(reader, rows, values, None),
        }
    }

    /// Adds a row's value. `there` counts the values that were there in the rows before.
    fn add(&self, row: usize, there: &mut usize, out: &mut Vec<u8>) {
        match self {
            Self::Int(_, values) => out.extend(values[row].to_le_bytes()),
            Self::Flag(_, values) => out.extend(values[row].to_le_bytes()),
            Self::Double(_, values) => out.extend(values[row].to_le_bytes()),
            Self::Optional(_, values, is_there) => {
                let is_null = is_there[row] == 0;
                out.push(u8::from(is_null));
                if !is_null {
                    out.extend(values[*there].to_le_bytes());
                    *there += 1;
                }
            }
            Self::Text(_, values) => add_text(values[row].data(), out),
        }
    }
}

/// Exactly so many rows, in the place of those before.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    values: &mut Vec<T::T>,
    mut is_there: Option<&mut Vec<i16>>,
) -> Result<(), ParquetError> {
    values.clear();
    if let Some(is_there) = &mut is_there {
        is_there.clear();
    }
    let mut read = 0;
    while read < rows {
        let (count, _, _) = reader.read_records(rows - read, is_there.as_deref_mut(), None, values)?;
        if count == 0 {
            return Err(ParquetError::EOF("a column has fewer values than there are rows".to_owned()));
        }
        read += count;
    }
    let (expected, found) = match is_there {
        Some(is_there) if is_there.len() == rows => {
            (is_there.iter().filter(|level| **level != 0).count(), values.len())
        }
        Some(is_there) => (rows, is_there.len()),
        None => (rows, values.len()),
    };
    if expected == found {
        Ok(())
    } else {
        Err(ParquetError::General(format!("{found} values of {expected}")))
    }
}

/// A text behind its length, which has seven bits in each byte, the lowest first.
pub(super) fn add_text(text: &[u8], out: &mut Vec<u8>) {
    let mut length = text.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stand_behind_their_length() {
        let bytes = |length: usize| {
            let mut out = Vec::new();
            add_text(&vec![b'x'; length], &mut out);
            out
        };
        assert_eq!(bytes(0), [0]);
        assert_eq!(bytes(3), [3, b'x', b'x', b'x']);
        assert_eq!(bytes(300)[..3], [0b1010_1100, 0b10, b'x']);
        assert_eq!(bytes(300).len(), 302);
    }
}
