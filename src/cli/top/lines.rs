//! Pictures as lines of text.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use eprof::label::{Label, ShortNames};
use eprof::live::Engine;
use eprof::units::Joules;
use nix::sys::signal::Signal;

use super::super::letters;
use super::super::output::table_width;
use super::columns::Columns;
use super::history::{History, Order, Picture, Shown, Span, how, parts, time_of};
use super::shared::Shared;

/// How often the recording is looked at.
const TICK: Duration = Duration::from_millis(100);
/// Rows of a picture, unless the user says how many.
pub const ROWS: usize = 10;

/// Writes a picture for each window, until the recording ends or there were enough.
pub fn run(
    mut engine: Engine,
    mut history: History,
    rows: usize,
    iterations: Option<u64>,
    shared: &Shared,
) -> anyhow::Result<()> {
    let enough = |history: &History| iterations.is_some_and(|most| history.windows() >= most);
    let mut out = letters::stdout();
    loop {
        // Asked first: what was written until then is seen below.
        let is_last = shared.is_recorded();
        while !enough(&history) {
            let Some(window) = engine.next_window(is_last)? else { break };
            history.push(window)?;
            if let Some(picture) = history.picture(Span::Last, Order::Watts) {
                write(&history, &picture, rows, &mut out)?;
            }
        }
        if enough(&history) && !shared.has_left() {
            shared.leave(Signal::SIGTERM);
        }
        if is_last || enough(&history) {
            return Ok(());
        }
        thread::sleep(TICK);
    }
}

/// Writes one picture.
pub fn write(history: &History, picture: &Picture, rows: usize, out: &mut impl Write) -> io::Result<()> {
    let seconds = picture.seconds.max(1e-9);
    let measured = picture.balance.measured.as_joules();
    let time = match picture.span {
        Span::Last => format!("{:.3} s", picture.seconds),
        Span::Recent | Span::Start => time_of(picture),
    };
    let all = format!("{}: {time}, {:.3} W {}", history.windows(), measured / seconds, how(picture.method));
    let part = |(name, joules): (&str, Joules)| format!(", {name} {:.3} W", joules.as_joules() / seconds);
    let width = table_width(true);
    let mut column = 0;
    for part in std::iter::once(all).chain(parts(&picture.balance).map(part)) {
        // Where lines end, a name and its watts stay together.
        let letters = part.chars().count();
        let part = if column > 0 && column + letters >= width {
            writeln!(out, ",")?;
            column = 0;
            format!("  {}", part.trim_start_matches(", "))
        } else {
            part
        };
        write!(out, "{part}")?;
        column += part.chars().count();
    }
    writeln!(out)?;
    for (domain, watts) in history.domains().iter().zip(&picture.domains) {
        let method = if domain.is_estimated { "ESTIMATED" } else { "measured" };
        writeln!(out, "  {}{} {watts:.3} W {method}", "  ".repeat(domain.depth), domain.name)?;
    }
    let columns = Columns::new(&picture.rows, width);
    writeln!(out, "{}", columns.title(history.shown.by, Order::Watts, picture.since))?;
    let names: Vec<Label> = picture.rows.iter().take(rows).map(Shown::name).collect();
    let names =
        ShortNames::all(&names.iter().collect::<Vec<_>>(), columns.name(), history.shown.by.short_name());
    for (row, name) in picture.rows.iter().zip(&names) {
        writeln!(out, "{}", columns.row(row, name, Order::Watts))?;
    }
    if picture.rows.is_empty() {
        let filter = history.filter.as_ref().map(|filter| format!(" that matches --filter {filter}"));
        writeln!(out, "nothing{} was sampled in this time", filter.unwrap_or_default())?;
    }
    writeln!(out)?;
    out.flush()
}
