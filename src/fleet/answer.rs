//! An answer: rows, and the balance that they are a part of.

use serde_json::{Map, Value, json};

use crate::balance::Whole;
use crate::method::Methods;

/// What stands in a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(String),
    /// Joules, and with how many decimals they are shown by the largest of them.
    Joules(f64),
    /// About one standard error in joules, where that is known.
    Error(Option<f64>),
    /// CPU time, where that is known.
    Seconds(Option<f64>),
    Watts(Option<f64>),
    /// A share of 1.
    Share(Option<f64>),
    /// Samples, where that is known.
    Count(Option<i64>),
    /// How the row's joules were found: for files, as the head of a table says it of the whole.
    Method(Methods),
}

/// Rows of one question.
pub struct Answer {
    /// Names of columns, as JSON and CSV have them.
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// Rows that are not shown, and what they are.
    pub cut: usize,
    /// Balances by what they are of; that of one selection has no name.
    pub balances: Vec<(&'static str, Whole)>,
    pub warnings: Vec<String>,
    /// What is to be said below a table.
    pub note: Option<&'static str>,
}

impl Cell {
    fn value(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Joules(number) => json!(number),
            Self::Error(number) | Self::Seconds(number) | Self::Watts(number) | Self::Share(number) => {
                json!(number)
            }
            Self::Count(number) => json!(number),
            Self::Method(methods) => json!(methods.name()),
        }
    }

    /// As CSV has it; a formula of a spreadsheet is none.
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) => eprof::label::Label::new(text).csv().into_owned(),
            Self::Joules(number) => number.to_string(),
            Self::Error(number) | Self::Seconds(number) | Self::Watts(number) | Self::Share(number) => {
                number.map_or(String::new(), |number| number.to_string())
            }
            Self::Count(number) => number.map_or(String::new(), |number| number.to_string()),
            Self::Method(methods) => methods.name().to_owned(),
        }
    }
}

impl Answer {
    /// All of it for other programs.
    pub fn json(&self) -> Value {
        let row = |row: &Vec<Cell>| {
            let fields = self.columns.iter().zip(row).map(|(name, cell)| (name.clone(), cell.value()));
            Value::Object(fields.collect::<Map<String, Value>>())
        };
        let balance = |whole: &Whole| {
            let balance = &whole.balance;
            json!({
                "measured": balance.measured.as_joules(),
                "functions": balance.attributed.as_joules(),
                "selected": whole.selected.as_joules(),
                "static": balance.static_energy.as_joules(),
                "others": balance.other_processes.as_joules(),
                "eprof": balance.recorder.as_joules(),
                "lost": balance.lost.as_joules(),
                "nodes": whole.nodes,
                "recordings": whole.recordings,
                "method": whole.methods.name(),
                "from_unix_us": whole.span.map(|(start, _)| start),
                "to_unix_us": whole.span.map(|(_, end)| end),
            })
        };
        let balances = self.balances.iter().map(|(name, whole)| {
            (if name.is_empty() { "balance".to_owned() } else { format!("balance_{name}") }, balance(whole))
        });
        let mut all: Map<String, Value> = balances.collect();
        all.insert("rows".to_owned(), self.rows.iter().map(row).collect());
        all.insert("rows_cut".to_owned(), json!(self.cut));
        all.insert("warnings".to_owned(), json!(self.warnings));
        Value::Object(all)
    }
}
