//! The statements. Texts of eprof alone stand in them, and the database's name, which needs no escape: what was recorded is
//! sent as bytes behind them.

use std::fmt::Write as _;

use crate::report::store::schema::{BALANCE, FUNCTIONS, Kind, SAMPLES, STACK_FRAMES, Table};

/// A column as the server has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Column {
    pub name: &'static str,
    pub kind: &'static str,
}

/// The id of the attempt.
pub(super) const PUSH: Column = Column { name: "push", kind: INT };
const INT: &str = "Int64";
const TEXT: &str = "String";

/// What says which attempts count.
pub(super) const PUSHES: &str = "pushes";
pub(super) const PUSHES_COLUMNS: [Column; 7] = [
    Column { name: "recording", kind: INT },
    PUSH,
    Column { name: "version", kind: "Int32" },
    Column { name: "node", kind: TEXT },
    Column { name: "time", kind: INT },
    Column { name: "samples", kind: INT },
    Column { name: "balance", kind: INT },
];

/// Each table on the server: its name, columns, engine and order.
pub(super) struct Made {
    pub name: &'static str,
    pub columns: Vec<Column>,
    engine: &'static str,
    /// Where a row's time stands.
    time: Option<&'static str>,
    order: &'static str,
}

/// All tables.
pub(super) fn tables() -> [Made; 5] {
    let of = |table: &'static Table, engine, time, order| Made {
        name: table.name,
        columns: columns(table),
        engine,
        time,
        order,
    };
    [
        of(&FUNCTIONS, "ReplacingMergeTree", None, "function_id"),
        of(&STACK_FRAMES, "ReplacingMergeTree", None, "stack_id, depth"),
        of(&SAMPLES, "MergeTree", Some("time"), "node, time, domain, stack_id"),
        of(&BALANCE, "MergeTree", Some("window_start"), "node, window_start, domain"),
        Made {
            name: PUSHES,
            columns: PUSHES_COLUMNS.to_vec(),
            engine: "ReplacingMergeTree",
            time: Some("time"),
            order: "recording, push",
        },
    ]
}

/// Whether rows of this table say which attempt they are of: the others are the same whoever sends them.
pub(super) fn has_push(table: &Table) -> bool {
    [SAMPLES.name, BALANCE.name].contains(&table.name)
}

/// The columns of a table, in the order in which they are sent.
pub(super) fn columns(table: &'static Table) -> Vec<Column> {
    let mut columns: Vec<Column> = table
        .columns
        .iter()
        .map(|column| Column {
            name: column.name,
            kind: match column.kind {
                Kind::Id | Kind::Number | Kind::Time => INT,
                Kind::Flag => "Int32",
                Kind::Double => "Float64",
                Kind::OptionalDouble => "Nullable(Float64)",
                Kind::Text => TEXT,
            },
        })
        .collect();
    if has_push(table) {
        columns.push(PUSH);
    }
    columns
}

/// Whether a column of the server takes the bytes that are sent for one of ours.
pub(super) fn takes(theirs: &str, ours: &Column) -> bool {
    // Microseconds in 64 bits are the same bytes, with a type that earlier servers have not.
    let is_time =
        ["time", "window_start", "window_end"].contains(&ours.name) && theirs.starts_with("DateTime64(6");
    theirs == ours.kind || theirs == format!("LowCardinality({})", ours.kind) || is_time
}

fn create(database: Option<&str>, table: &Made) -> String {
    let place =
        database.map_or(format!("`{}`", table.name), |database| format!("`{database}`.`{}`", table.name));
    let mut text = format!("CREATE TABLE IF NOT EXISTS {place} (");
    for (index, column) in table.columns.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Writing into a text cannot fail.
        let _ = write!(text, "{comma}`{}` {}", column.name, column.kind);
    }
    let _ = write!(text, ") ENGINE = {}", table.engine);
    if let Some(time) = table.time {
        // By days, so that old ones can be dropped.
        let _ = write!(text, " PARTITION BY toYYYYMMDD(toDateTime(intDiv(`{time}`, 1000000), 'UTC'))");
    }
    let _ = write!(text, " ORDER BY ({})", table.order);
    text
}

/// The statement that makes a table in a database if it is not there.
pub(super) fn create_table(database: &str, table: &Made) -> String {
    create(Some(database), table)
}

/// The statements that make all tables, for whoever does not let senders do that.
pub fn create_tables() -> String {
    tables().iter().map(|table| create(None, table) + ";\n").collect()
}

/// The statement in front of rows.
pub(super) fn insert(database: &str, table: &str, columns: &[Column]) -> String {
    let names: Vec<String> = columns.iter().map(|column| format!("`{}`", column.name)).collect();
    format!("INSERT INTO `{database}`.`{table}` ({}) FORMAT RowBinary", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_those_of_the_page() {
        insta::assert_snapshot!(create_tables(), @r"
        CREATE TABLE IF NOT EXISTS `functions` (`function_id` Int64, `name` String, `module` String, `build_id` String, `file` String, `line` Int64) ENGINE = ReplacingMergeTree ORDER BY (function_id);
        CREATE TABLE IF NOT EXISTS `stack_frames` (`stack_id` Int64, `function_id` Int64, `depth` Int64, `is_leaf` Int32, `is_first` Int32) ENGINE = ReplacingMergeTree ORDER BY (stack_id, depth);
        CREATE TABLE IF NOT EXISTS `samples` (`recording` Int64, `job` String, `step` String, `node` String, `boot` String, `rank` Int64, `pod` String, `cgroup` String, `labels` String, `process` String, `comm` String, `time` Int64, `stack_id` Int64, `domain` String, `is_top` Int32, `event` String, `method` String, `joules` Float64, `variance` Nullable(Float64), `chance` Nullable(Float64), `cpu_ns` Int64, `samples` Int64, `push` Int64) ENGINE = MergeTree PARTITION BY toYYYYMMDD(toDateTime(intDiv(`time`, 1000000), 'UTC')) ORDER BY (node, time, domain, stack_id);
        CREATE TABLE IF NOT EXISTS `balance` (`recording` Int64, `node` String, `boot` String, `domain` String, `is_top` Int32, `method` String, `window_start` Int64, `window_end` Int64, `measured` Float64, `functions` Float64, `static` Float64, `others` Float64, `recorder` Float64, `lost` Float64, `push` Int64) ENGINE = MergeTree PARTITION BY toYYYYMMDD(toDateTime(intDiv(`window_start`, 1000000), 'UTC')) ORDER BY (node, window_start, domain);
        CREATE TABLE IF NOT EXISTS `pushes` (`recording` Int64, `push` Int64, `version` Int32, `node` String, `time` Int64, `samples` Int64, `balance` Int64) ENGINE = ReplacingMergeTree PARTITION BY toYYYYMMDD(toDateTime(intDiv(`time`, 1000000), 'UTC')) ORDER BY (recording, push);
        ");
        let statement = insert("energy", "stack_frames", &columns(&STACK_FRAMES));
        insta::assert_snapshot!(
            statement,
            @"INSERT INTO `energy`.`stack_frames` (`stack_id`, `function_id`, `depth`, `is_leaf`, `is_first`) FORMAT RowBinary"
        );
    }

    #[test]
    fn other_types_of_the_same_bytes_are_taken() {
        let column = |name, kind| Column { name, kind };
        assert!(takes("LowCardinality(String)", &column("node", TEXT)));
        assert!(takes("DateTime64(6, 'UTC')", &column("time", INT)));
        assert!(!takes("DateTime64(3)", &column("time", INT)));
        assert!(!takes("DateTime64(6)", &column("cpu_ns", INT)));
        assert!(!takes("UInt8", &column("is_top", "Int32")));
        assert!(!takes("Nullable(String)", &column("node", TEXT)));
    }
}
