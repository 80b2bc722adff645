//! Pictures as lines of text.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use eprof::label::{Label, ShortNames, padded};
use eprof::live::Engine;
use nix::sys::signal::Signal;

use super::super::output::terminal_width;
use super::history::{History, Order, Picture, Shown, Span, how, parts, time_of};
use super::shared::Shared;

/// How often the recording is looked at.
const TICK: Duration = Duration::from_millis(100);
/// Rows of a picture, unless the user says how many.
pub const ROWS: usize = 10;
/// Columns of names, and of the numbers before them.
const NAME: usize = 44;
const NUMBERS: usize = 43;

/// Writes a picture for each window, until the recording ends or there were enough.
pub fn run(
    mut engine: Engine,
    mut history: History,
    rows: usize,
    iterations: Option<u64>,
    shared: &Shared,
) -> anyhow::Result<()> {
    let enough = |history: &History| iterations.is_some_and(|most| history.windows() >= most);
    let mut out = io::stdout().lock();
    loop {
        // Asked first: what was written until then is seen below.
        let is_last = shared.is_recorded();
        let windows = if is_last { engine.finish()? } else { engine.poll()? };
        for window in windows {
            if enough(&history) {
                break;
            }
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
    write!(
        out,
        "{}: {}, {:.3} W {}",
        history.windows(),
        match picture.span {
            Span::Last => format!("{:.3} s", picture.seconds),
            Span::Recent | Span::Start => time_of(picture),
        },
        measured / seconds,
        how(picture.method)
    )?;
    for (name, joules) in parts(&picture.balance) {
        write!(out, ", {name} {:.3} W", joules.as_joules() / seconds)?;
    }
    writeln!(out)?;
    for (domain, watts) in history.domains().iter().zip(&picture.domains) {
        let method = if domain.is_estimated { "ESTIMATED" } else { "measured" };
        writeln!(out, "  {}{} {watts:.3} W {method}", "  ".repeat(domain.depth), domain.name)?;
    }
    writeln!(
        out,
        "{:>10} {:>9} {:>12} {:>7}  {} MODULE",
        "WATTS",
        "+-",
        "J SO FAR",
        "SHARE",
        padded(&history.by.name().to_uppercase(), NAME)
    )?;
    // Rows are not broken where a terminal ends.
    let room = terminal_width().map_or(usize::MAX, |width| width.saturating_sub(NUMBERS + NAME + 1).max(8));
    let names: Vec<Label> = picture.rows.iter().take(rows).map(Shown::name).collect();
    let names = ShortNames::all(&names.iter().collect::<Vec<_>>(), NAME, Label::short_name);
    for (row, name) in picture.rows.iter().zip(&names) {
        writeln!(
            out,
            "{:>10.3} {:>9.3} {:>12.3} {:>6.1}%  {} {}",
            row.watts,
            row.error,
            row.joules,
            row.share * 100.0,
            padded(name, NAME),
            Label::new(row.module_name()).end_of(room)
        )?;
    }
    if picture.rows.is_empty() {
        let filter = history.filter.as_ref().map(|filter| format!(" that matches --filter {filter}"));
        writeln!(out, "nothing{} was sampled in this time", filter.unwrap_or_default())?;
    }
    writeln!(out)?;
    out.flush()
}
