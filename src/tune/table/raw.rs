//! A table of text cells under headings, whatever separates them.

use rustc_hash::FxHashSet;

use super::super::TuneError;
use super::headings::{Heading, read_number};

/// One line.
pub(super) struct Row {
    /// Its number, from 1.
    pub(super) line: u64,
    cells: Vec<String>,
}

/// The whole table.
pub(super) struct RawTable {
    pub(super) headings: Vec<Heading>,
    pub(super) rows: Vec<Row>,
    /// Fields are not separated by commas, so one in a number is the decimal point.
    pub(super) comma_is_point: bool,
}

impl RawTable {
    pub(super) fn read(text: &str) -> Result<Self, TuneError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let refuse = |reason: &str| Err(TuneError::Table { reason: reason.into() });
        let content = |line: &&str| !line.trim().is_empty();
        let Some(first) = text.lines().find(content) else {
            return refuse("the table is empty");
        };
        let separator = separator_of(first, text.lines().filter(content).nth(1).unwrap_or_default());
        let mut headings: Option<Vec<Heading>> = None;
        let mut rows = Vec::new();
        for (index, line) in text.lines().enumerate() {
            // Lines with # are comments, but for a first line that names the columns so.
            let heads = headings.is_none() && split(line.trim_start_matches('#'), separator).len() > 1;
            if line.trim().is_empty() || (line.trim_start().starts_with('#') && !heads) {
                continue;
            }
            let mut cells = split(line, separator);
            match &headings {
                None => {
                    while cells.last().is_some_and(|cell| cell.is_empty()) {
                        cells.pop();
                    }
                    if cells
                        .iter()
                        .all(|cell| read_number(cell, false).is_some_and(|(_, unit)| unit.is_empty()))
                    {
                        return refuse(
                            "the first line must name the columns, as in `threads,freq,seconds,joules`",
                        );
                    }
                    headings = Some(cells.iter().map(|cell| Heading::read(cell)).collect());
                }
                Some(_) => rows.push(Row { line: index as u64 + 1, cells }),
            }
        }
        let headings = headings.unwrap_or_default();
        if rows.is_empty() {
            return refuse("the table has no rows below the line that names the columns");
        }
        Ok(Self { headings, rows, comma_is_point: separator != Some(',') })
    }

    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        self.rows[row].cells.get(column).map_or("", |cell| cell.trim())
    }

    pub(super) fn number(&self, row: usize, column: usize) -> Result<(f64, String), String> {
        let cell = self.cell(row, column);
        let name = &self.headings[column].name;
        read_number(cell, self.comma_is_point).ok_or_else(|| match cell {
            "" => format!("`{name}` is empty"),
            cell => format!("`{name}` is `{cell}`, which is no number"),
        })
    }

    pub(super) fn find(&self, wanted: &str) -> Result<usize, TuneError> {
        let found = self.headings.iter().position(|heading| heading.is_called(wanted));
        found.ok_or_else(|| TuneError::Table {
            reason: format!("there is no column `{wanted}`; {}", self.columns()),
        })
    }

    pub(super) fn columns(&self) -> String {
        let names: Vec<&str> = self.headings.iter().map(|heading| heading.name.as_str()).collect();
        format!("the columns are: {}", names.join(", "))
    }

    /// The rows that fulfil all conditions.
    pub(super) fn matching(&self, conditions: &[(String, String)]) -> Result<Vec<usize>, TuneError> {
        let mut rows: Vec<usize> = (0..self.rows.len()).collect();
        for (name, wanted) in conditions {
            let column = self.find(name)?;
            let number = read_number(wanted, false);
            rows.retain(|&row| {
                let cell = self.cell(row, column);
                cell == wanted.trim()
                    || (number.is_some() && read_number(cell, self.comma_is_point) == number)
            });
            if rows.is_empty() {
                let reason = format!("no row has {name}={wanted}");
                return Err(TuneError::Table { reason });
            }
        }
        Ok(rows)
    }

    /// The different values of a column, at most `most` of them.
    pub(super) fn values(&self, rows: &[usize], column: usize, most: usize) -> Vec<&str> {
        let mut seen = FxHashSet::default();
        rows.iter().map(|&row| self.cell(row, column)).filter(|cell| seen.insert(*cell)).take(most).collect()
    }
}

/// The separator that gives the same number of fields in both lines; `None` for blanks.
fn separator_of(heading: &str, row: &str) -> Option<char> {
    let score = |separator: char| {
        let fields = split(heading, Some(separator)).len();
        let same = split(row, Some(separator)).len() == fields;
        (fields > 1, same, fields)
    };
    let best = [',', ';', '\t', '|'].into_iter().max_by_key(|&separator| score(separator))?;
    score(best).0.then_some(best)
}

/// The fields of a line; quoted ones may contain the separator.
fn split(line: &str, separator: Option<char>) -> Vec<String> {
    let Some(separator) = separator else {
        return line.split_whitespace().map(str::to_string).collect();
    };
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.trim_end_matches(['\r', '\n']).chars() {
        match c {
            '"' => quoted = !quoted,
            c if c == separator && !quoted => fields.push(String::new()),
            c => {
                if let Some(field) = fields.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    fields.into_iter().map(|field| field.trim().to_string()).collect()
}
