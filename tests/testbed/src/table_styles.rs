//! One table, written as different people and programs would write it.

/// What is in a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A number, as many digits of whose fraction are written as its column says.
    Number(f64),
    /// A name.
    Text(String),
    /// Nothing was measured.
    Missing,
}

/// A column's name, the unit of its numbers, and how many digits their fractions have.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name, without the unit.
    pub name: String,
    /// Unit of its numbers; empty for none.
    pub unit: &'static str,
    /// Digits of their fractions.
    pub decimals: usize,
}

impl Column {
    /// A column of this name, unit and number of digits.
    pub fn new(name: &str, unit: &'static str, decimals: usize) -> Self {
        Self { name: name.to_owned(), unit, decimals }
    }
}

/// Names of columns and rows below them.
#[derive(Debug, Clone)]
pub struct Written {
    /// The columns.
    pub columns: Vec<Column>,
    /// Rows of as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// Where units are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// They are left out.
    Nowhere,
    /// `12.5 W`
    InCells,
    /// `power [W]`
    InSquareBrackets,
    /// `power (W)`
    InBrackets,
    /// `power_W`
    BehindName,
}

/// A way of writing tables.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// What tests call it.
    pub name: &'static str,
    /// Between cells; several blanks align the columns.
    pub separator: &'static str,
    /// Before the digits of a fraction.
    pub decimal: char,
    /// Between groups of three digits.
    pub thousands: Option<char>,
    /// All cells are in quotes; else only those that need it.
    pub quoted: bool,
    /// Where units are written.
    pub units: Units,
    /// For a value that is missing.
    pub missing: &'static str,
    /// At the beginning of the file, with lines of its own.
    pub title: &'static str,
    /// Before the names of the columns.
    pub before_names: &'static str,
    /// Comments between rows.
    pub comments: bool,
    /// A separator at the end of each line.
    pub trailing: bool,
    /// At the end of each line.
    pub line_end: &'static str,
    /// The file begins with a byte order mark.
    pub byte_order_mark: bool,
    /// In UTF-16, little-endian, in the place of UTF-8.
    pub utf16: bool,
}

/// As most programs write tables.
pub const PLAIN: Style = Style {
    name: "commas and points",
    separator: ",",
    decimal: '.',
    thousands: None,
    quoted: false,
    units: Units::Nowhere,
    missing: "",
    title: "",
    before_names: "",
    comments: false,
    trailing: false,
    line_end: "\n",
    byte_order_mark: false,
    utf16: false,
};

/// The same table in so many ways.
pub const STYLES: [Style; 14] = [
    PLAIN,
    Style {
        name: "a spreadsheet in German",
        separator: ";",
        decimal: ',',
        line_end: "\r\n",
        byte_order_mark: true,
        ..PLAIN
    },
    Style { name: "tabs", separator: "\t", missing: "N/A", units: Units::InSquareBrackets, ..PLAIN },
    Style { name: "tabs and decimal commas", separator: "\t", decimal: ',', trailing: true, ..PLAIN },
    Style { name: "bars", separator: " | ", missing: "-", units: Units::InBrackets, ..PLAIN },
    Style { name: "aligned by blanks", separator: "   ", missing: "[N/A]", ..PLAIN },
    Style { name: "one blank and decimal commas", separator: " ", decimal: ',', missing: "nan", ..PLAIN },
    Style { name: "everything quoted", quoted: true, missing: "null", ..PLAIN },
    Style { name: "decimal commas in quotes", quoted: true, decimal: ',', ..PLAIN },
    Style {
        name: "thousands",
        separator: ";",
        thousands: Some(','),
        units: Units::InCells,
        missing: "[Not Supported]",
        ..PLAIN
    },
    Style { name: "thousands in German", separator: "\t", decimal: ',', thousands: Some('.'), ..PLAIN },
    Style {
        name: "thousands by blanks",
        separator: ",",
        thousands: Some(' '),
        missing: "<not counted>",
        ..PLAIN
    },
    Style {
        name: "comments",
        separator: ", ",
        title: "# Written by hand, after lunch\n#\n",
        before_names: "# ",
        comments: true,
        units: Units::BehindName,
        ..PLAIN
    },
    Style {
        name: "UTF-16",
        separator: ";",
        title: "Runs of today\n\n",
        decimal: ',',
        trailing: true,
        utf16: true,
        ..PLAIN
    },
];

impl Written {
    /// The table in a style, as text.
    pub fn text(&self, style: &Style) -> String {
        let mut lines: Vec<String> =
            vec![style.before_names.to_owned() + &self.line(style, |column| self.name(style, column))];
        for (number, row) in self.rows.iter().enumerate() {
            if style.comments && number % 3 == 1 {
                lines.push(format!("# {number} rows above, 1, 2, 3"));
            }
            lines.push(self.line(style, |column| self.cell(style, column, &row[column])));
        }
        let text = lines.join(style.line_end) + style.line_end;
        style.title.replace('\n', style.line_end) + &text
    }

    /// The table in a style, as the bytes of a file.
    pub fn bytes(&self, style: &Style) -> Vec<u8> {
        let mut text = self.text(style);
        if style.byte_order_mark || style.utf16 {
            text.insert(0, '\u{feff}');
        }
        if style.utf16 { text.encode_utf16().flat_map(u16::to_le_bytes).collect() } else { text.into_bytes() }
    }

    /// What a number of a column is after it was written with so many digits.
    pub fn rounded(&self, column: usize, value: f64) -> f64 {
        format!("{value:.*}", self.columns[column].decimals).parse().expect("a number")
    }

    fn line(&self, style: &Style, cell: impl Fn(usize) -> String) -> String {
        let quote = |cell: String| {
            let separator = style.separator.trim();
            let must = (!separator.is_empty() && cell.contains(separator))
                || cell.starts_with('"')
                || (separator.is_empty() && style.separator.starts_with(' ') && cell.contains(' '));
            if style.quoted || must { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
        };
        let cells: Vec<String> = (0..self.columns.len()).map(|column| quote(cell(column))).collect();
        cells.join(style.separator) + if style.trailing { style.separator.trim_end_matches(' ') } else { "" }
    }

    fn name(&self, style: &Style, column: usize) -> String {
        let Column { name, unit, .. } = &self.columns[column];
        match style.units {
            _ if unit.is_empty() => name.clone(),
            Units::Nowhere | Units::InCells => name.clone(),
            Units::InSquareBrackets => format!("{name} [{unit}]"),
            Units::InBrackets => format!("{name} ({unit})"),
            Units::BehindName => format!("{name}_{unit}"),
        }
    }

    fn cell(&self, style: &Style, column: usize, cell: &Cell) -> String {
        let Column { unit, decimals, .. } = &self.columns[column];
        match cell {
            Cell::Missing => style.missing.to_owned(),
            Cell::Text(text) => text.clone(),
            Cell::Number(value) => {
                let unit = if style.units == Units::InCells { *unit } else { "" };
                format!("{} {unit}", number(*value, *decimals, style)).trim().to_owned()
            }
        }
    }
}

/// A number as the style writes it.
fn number(value: f64, decimals: usize, style: &Style) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        // Whole numbers with points alone could as well have fractions of three digits.
        let is_told = !part.is_empty() || style.thousands != Some('.');
        if let Some(mark) = style.thousands.filter(|_| is_told && at > 0 && (whole.len() - at) % 3 == 0) {
            grouped.push(mark);
        }
        grouped.push(digit);
    }
    if !part.is_empty() {
        grouped.push(style.decimal);
        grouped += part;
    }
    if text.trim_matches(['0', '.']).is_empty() || value > 0.0 { grouped } else { format!("-{grouped}") }
}
