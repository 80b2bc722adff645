//! One HTML file with everything in it: power over time, and the flamegraph and table of the time that
//! is marked in it. It loads nothing from anywhere and runs only its own script.

mod code;
mod data;
mod difference;
mod extras;
mod functions;
mod leaves;
mod lines;
mod timeline;

use std::io::Write;

use super::style::Style;
use super::table;
use super::tree::CallTree;
use super::{Report, ReportError, Weight};
use crate::markup::escape;
pub use code::MOST_FUNCTIONS as MOST_FUNCTIONS_WITH_CODE;
use data::Page;
pub use extras::Extras;

const TEMPLATE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/page.css");
/// Each has one purpose, and uses those before it.
const SCRIPTS: [&str; 14] = [
    include_str!("html/script/format.js"),
    include_str!("html/script/profile.js"),
    include_str!("html/script/part.js"),
    include_str!("html/script/change.js"),
    include_str!("html/script/inlined.js"),
    include_str!("html/script/layout.js"),
    include_str!("html/script/state.js"),
    include_str!("html/script/look.js"),
    include_str!("html/script/timeline.js"),
    include_str!("html/script/flame.js"),
    include_str!("html/script/table.js"),
    include_str!("html/script/code.js"),
    include_str!("html/script/details.js"),
    include_str!("html/script/main.js"),
];

/// Writes a page of a call tree and, for those without a script, of the report's table.
///
/// # Errors
/// If writing fails.
pub fn write(tree: &CallTree<'_>, report: &Report, out: impl Write) -> Result<(), ReportError> {
    write_with(tree, report, Extras::default(), out)
}

/// The same with more.
///
/// # Errors
/// If the older recording is not weighed by what the newer one is, or writing fails.
pub fn write_with(
    tree: &CallTree<'_>,
    report: &Report,
    mut extras: Extras<'_>,
    mut out: impl Write,
) -> Result<(), ReportError> {
    let data = serde_json::to_string(&Page::new(tree, report, &mut extras)?).map_err(std::io::Error::from)?;
    let mut plain = Vec::new();
    table::write(report, &Style { width: 100, ..Style::default() }, &mut plain)?;
    let title = tree.summary.subject.as_ref().map_or("eprof", |subject| subject.as_str());
    let mark = tree.summary.estimate_mark().filter(|_| tree.weight == Weight::Joules);
    let energy = mark.map_or_else(|| "energy".to_owned(), |mark| format!("energy, {mark}"));
    let parts = [
        ("{{title}}", escape(title)),
        ("{{energy}}", energy),
        ("{{style}}", STYLE.to_owned()),
        ("{{script}}", SCRIPTS.concat()),
        ("{{table}}", escape(&String::from_utf8_lossy(&plain))),
        // In JSON `<` only occurs in texts, where it can be written like this; no text can end the element.
        ("{{data}}", data.replace('<', "\\u003c")),
    ];
    // One pass, so that a name that looks like a placeholder stays a name.
    let mut rest = TEMPLATE;
    while let Some(start) = rest.find("{{") {
        let (before, from) = rest.split_at(start);
        out.write_all(before.as_bytes())?;
        let Some((place, text)) = parts.iter().find(|(place, _)| from.starts_with(place)) else { break };
        out.write_all(text.as_bytes())?;
        rest = &from[place.len()..];
    }
    out.write_all(rest.as_bytes())?;
    out.flush()?;
    Ok(())
}
