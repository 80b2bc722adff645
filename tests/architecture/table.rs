//! The table on the crate's page: which room may use which.
//!
//! ```text
//!   units *            ->
//!   recording          -> units
//!   timeline *         -> units recording
//! ```
//!
//! A star marks rooms that touch no file, clock, thread or process. A row names only rooms that stand above it. A
//! line without an arrow goes on with the row before it.

use std::collections::{BTreeMap, BTreeSet};

/// A room's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The room.
    pub name: String,
    /// Values in, values out.
    pub is_pure: bool,
    /// Rooms that it uses, in the order of the page.
    pub uses: Vec<String>,
}

const FENCE: &str = "//! ```";
const ARROW: &str = "->";
/// As wide as other comments.
const WIDTH: usize = 110;

/// Where the table's lines stand in the crate's page: of the fenced block that has arrows.
fn lines_of_table(page: &str) -> std::ops::Range<usize> {
    let lines: Vec<&str> = page.lines().collect();
    let fences: Vec<usize> = (0..lines.len()).filter(|&line| lines[line].starts_with(FENCE)).collect();
    let blocks = fences.chunks_exact(2).map(|pair| pair[0] + 1..pair[1]);
    let mut tables =
        blocks.filter(|block| lines[block.clone()].iter().any(|line| line.contains(&format!(" {ARROW}"))));
    let table = tables.next().expect("a fenced block of rows `module -> modules` on the crate's page");
    assert!(
        tables.next().is_none(),
        "there is more than one table of rows `module -> modules` on the crate's page"
    );
    table
}

/// Reads the table from the crate's page.
///
/// # Panics
/// If there is none, or two.
pub fn parse(page: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let lines = lines_of_table(page);
    for line in page.lines().take(lines.end).skip(lines.start) {
        let line = line.trim_start_matches("//!").trim();
        let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        match line.split_once(ARROW) {
            Some((name, uses)) => {
                let (name, is_pure) = match name.trim().strip_suffix('*') {
                    Some(name) => (name.trim(), true),
                    None => (name.trim(), false),
                };
                rows.push(Row { name: name.to_owned(), is_pure, uses: names(uses) });
            }
            None => rows.last_mut().expect("the first line has an arrow").uses.extend(names(line)),
        }
    }
    rows
}

/// The rows as they should be: in the old order where that holds, no room before those that it uses.
pub fn rows(rooms: &BTreeMap<String, BTreeSet<String>>, old: &[Row]) -> Vec<Row> {
    let old_place = |name: &str| old.iter().position(|row| row.name == name).unwrap_or(old.len());
    let mut open: Vec<&String> = rooms.keys().collect();
    open.sort_by_key(|name| old_place(name));
    let mut order: Vec<&String> = Vec::new();
    while !open.is_empty() {
        let is_next = |name: &&String| {
            rooms[*name].iter().all(|used| order.contains(&used) || !rooms.contains_key(used))
        };
        // In a circle no room is the next; that is said elsewhere.
        let at = open.iter().position(is_next).unwrap_or(0);
        order.push(open.remove(at));
    }
    let row = |name: &&String| Row {
        name: (*name).clone(),
        is_pure: old.iter().any(|row| row.name == **name && row.is_pure),
        uses: order.iter().filter(|used| rooms[*name].contains(**used)).map(|used| (*used).clone()).collect(),
    };
    order.iter().map(row).collect()
}

/// The table's lines.
pub fn print(rows: &[Row]) -> Vec<String> {
    let width = rows.iter().map(|row| row.name.len() + 2).max().unwrap_or(0);
    let mut lines = Vec::new();
    for row in rows {
        let name = if row.is_pure { format!("{} *", row.name) } else { row.name.clone() };
        let mut line = format!("//!   {name:<width$} {ARROW}");
        for used in &row.uses {
            if line.len() + 1 + used.len() > WIDTH {
                lines.push(std::mem::replace(&mut line, format!("//!   {:<width$}   ", "")));
            }
            line += &format!(" {used}");
        }
        lines.push(line);
    }
    lines
}

/// The crate's page with these rows in the place of the old ones.
pub fn replace(page: &str, rows: &[Row]) -> String {
    let table = lines_of_table(page);
    let lines: Vec<&str> = page.lines().collect();
    let new = print(rows);
    let whole = lines[..table.start].iter().copied().chain(new.iter().map(String::as_str));
    whole.chain(lines[table.end..].iter().copied()).map(|line| format!("{line}\n")).collect()
}
