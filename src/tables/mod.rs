//! Tables that others wrote: CSV in all its dialects, logs in columns, exports of spreadsheets.
//!
//! ```text
//!   bytes ──► decode ──► grid ──► table ──► numbers in the units of their columns
//!             one text   rows     headings
//!                        of cells
//! ```
//!
//! Every verb that takes a table reads it here, so that a file means the same to all of them. What
//! columns stand for (time stamps, counters, settings) is the reader's business and not known here.
//!
//! What is understood: cells between commas, semicolons, tabs, bars or blanks; quoted cells, also over
//! several lines; comments after `#`; a byte order mark, UTF-16, bytes of Latin-1; decimal points and
//! commas; thousands set apart where no other reading is possible; units in cells and headings; the
//! ways in which tools write that a value is missing.

mod cell_error;
mod dates;
mod decode;
mod evidence;
mod find;
mod grid;
mod heading;
mod marks;
mod meter_column;
mod number;
mod numeral;
mod quotes;
mod record;
mod separator;
mod separator_fit;
mod table;
mod table_error;
pub mod unit;
mod words;

pub use cell_error::CellError;
pub use dates::{DAY, date_or_clock, day, midnights};
pub use decode::{DecodeError, decode};
pub use grid::{Grid, Row};
pub(crate) use heading::is_work;
pub use heading::{Heading, plain};
pub use marks::Marks;
pub use meter_column::is_of_a_meter;
pub use number::{Number, is_missing};
pub use separator::Separator;
pub use table::Table;
pub use table_error::TableError;
