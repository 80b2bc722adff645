//! ClickHouse, by HTTP.

use anyhow::{Context, bail, ensure};
use eprof::push::clickhouse::{Server, Target};
use eprof::push::{SecretSource, Trust};

use super::version::check_version;
use crate::args::Reached;
use crate::rows::{Column, Columns};

/// Where a password is looked for if no file is named.
const PASSWORD: &str = "EPROF_FLEET_PASSWORD";
/// Nothing is changed by whoever asks. Old versions want to be told what a JOIN is. An answer is sent when all of it is there, so
/// that what goes wrong in the middle is an error and no short answer.
const SETTINGS: &str =
    "readonly=2&join_default_strictness=ALL&wait_end_of_query=1&default_format=TabSeparatedWithNamesAndTypes";

/// A server with the tables.
pub struct ClickHouse {
    server: Server,
}

impl ClickHouse {
    /// Looks whether the tables are there, and of which version.
    ///
    /// # Errors
    /// A server that is away or refuses, or lacks the tables.
    pub fn open(target: Target, reached: &Reached) -> anyhow::Result<Self> {
        let password = SecretSource::choose(reached.password_file.as_deref(), PASSWORD);
        let trust = reached.ca.clone().map_or(Trust::System, Trust::File);
        let database = target.database.clone();
        let name = target.name();
        let server =
            Self { server: Server::for_reading(target, password, &trust, reached.allow_plain_http)? };
        let mut columns = server.ask(&format!(
            "SELECT name FROM system.tables WHERE database = '{database}' AND name = 'pushes'"
        ))?;
        ensure!(
            !columns.texts()?.is_empty(),
            "{name} has no tables of eprof, or this user may not read them: `eprof push DIR {name}` makes and fills them"
        );
        for version in server.ask("SELECT DISTINCT version FROM pushes")?.texts()? {
            check_version(&version, &name)?;
        }
        Ok(server)
    }

    pub fn ask(&self, sql: &str) -> anyhow::Result<Columns> {
        columns(&self.server.read(sql, SETTINGS)?)
    }
}

/// What `TabSeparatedWithNamesAndTypes` says.
fn columns(answer: &[u8]) -> anyhow::Result<Columns> {
    let text = std::str::from_utf8(answer).context("ClickHouse's answer is no UTF-8")?;
    let mut lines = text.split_terminator('\n');
    let (_names, types) = (lines.next(), lines.next().context("ClickHouse's answer has no columns")?);
    let mut columns = types.split('\t').map(empty).collect::<anyhow::Result<Vec<Column>>>()?;
    for line in lines {
        let mut fields = line.split('\t');
        for column in &mut columns {
            let field = fields.next().context("a row of ClickHouse's answer is too short")?;
            add(column, field)?;
        }
        ensure!(fields.next().is_none(), "a row of ClickHouse's answer is too long");
    }
    Ok(Columns::new(columns))
}

/// A column of this type.
fn empty(kind: &str) -> anyhow::Result<Column> {
    let inner = |wrapper: &str| kind.strip_prefix(wrapper)?.strip_suffix(')');
    if let Some(kind) = inner("Nullable(").or_else(|| inner("LowCardinality(")) {
        return empty(kind);
    }
    Ok(match kind {
        "String" => Column::Text(Vec::new()),
        "Float32" | "Float64" => Column::Double(Vec::new()),
        "Int8" | "Int16" | "Int32" | "Int64" | "UInt8" | "UInt16" | "UInt32" | "UInt64" => {
            Column::Int(Vec::new())
        }
        other => bail!("ClickHouse answers with the type {other}, which eprof does not know"),
    })
}

/// What is missing is 0 or empty, as elsewhere.
fn add(column: &mut Column, field: &str) -> anyhow::Result<()> {
    let is_null = field == "\\N";
    match column {
        Column::Text(values) => values.push(if is_null { String::new() } else { unescaped(field) }),
        Column::Double(values) => values.push(if is_null {
            0.0
        } else {
            field.parse().with_context(|| format!("{field:?} is no number"))?
        }),
        Column::Int(values) => values.push(if is_null {
            0
        } else {
            field.parse().with_context(|| format!("{field:?} is no whole number"))?
        }),
    }
    Ok(())
}

/// A text without the backslashes of TabSeparated.
fn unescaped(field: &str) -> String {
    if !field.contains('\\') {
        return field.to_owned();
    }
    let mut text = String::with_capacity(field.len());
    let mut letters = field.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('0') => text.push('\0'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some(other) => text.push(other),
            None => text.push('\\'),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_columns() {
        let answer = "a\tb\tc\td\nString\tFloat64\tUInt64\tNullable(Float64)\nx\\ty\\\\\\'z\\n\t0.30000000000000004\t3\t\\N\n\tinf\t0\t-1e-9\n";
        let mut found = columns(answer.as_bytes()).expect("right");
        assert_eq!(found.texts().expect("texts"), ["x\ty\\'z\n", ""]);
        assert_eq!(found.doubles().expect("doubles"), [0.1 + 0.2, f64::INFINITY]);
        assert_eq!(found.ints().expect("whole numbers"), [3, 0]);
        assert_eq!(found.doubles().expect("doubles"), [0.0, -1e-9]);
        let mut none = columns(b"a\nLowCardinality(String)\n").expect("right");
        assert!(none.texts().expect("texts").is_empty());
    }

    #[test]
    fn what_is_no_such_answer_is_refused() {
        for wrong in [
            "",
            "a\n",
            "a\nDate\n",
            "a\tb\nInt8\tInt8\n1\n",
            "a\nInt8\n1\t2\n",
            "a\nInt8\nx\n",
            "a\nUInt64\n18446744073709551615\n",
        ] {
            assert!(columns(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert!(columns(b"a\nString\n\xff\n").is_err());
    }
}
