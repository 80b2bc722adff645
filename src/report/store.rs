//! Energy profiles as tables: what `eprof export --format parquet` writes, for many machines and for whoever speaks SQL.
//!
//! The tables are named and explained in [`schema`]. Ids are hashes of content: the same function and the same stack have
//! one id wherever they were recorded, and the tables of many recordings are the union of their rows.
//!
//! Rows are written as they are met. Kept are the code's names, the ids of stacks that were met, and one group of rows
//! of each table.

mod code;
mod content_id;
mod overlap;
mod recording;
mod rows;
pub mod schema;
mod table_writer;
#[cfg(test)]
mod tests;
mod threads;
mod uncertainty;

use std::io::Write;

use self::code::Code;
pub use self::overlap::{Overlap, Windows};
pub use self::recording::recording_id;
use self::recording::window;
use self::rows::Rows;
use self::schema::{BALANCE, FUNCTIONS, SAMPLES, STACK_FRAMES, Table};
use self::table_writer::TableWriter;
use super::error::ReportError;
use super::exporter::Exported;
use super::missing_joules::MissingJoules;
use crate::profile::{Balance, MachineEnergy};

/// Writes the tables; `open` gives the place of each. They are given back in the order of [`schema::TABLES`], written but
/// not closed.
///
/// # Errors
/// If there are no joules, or if a place cannot be opened or written.
pub fn write<W: Write + Send>(
    exported: &Exported<'_>,
    no_inline: bool,
    mut open: impl FnMut(&Table) -> Result<W, ReportError>,
) -> Result<Vec<W>, ReportError> {
    let profile = exported.profile.profile();
    if profile.domains.is_empty() {
        let samples = profile.events.iter().map(|event| event.samples).sum();
        return Err(ReportError::NoJoules(MissingJoules::of(profile.method(), samples)));
    }
    let mut new = |table: &'static Table| TableWriter::new(table, open(table)?);
    let (functions, stack_frames) = (new(&FUNCTIONS)?, new(&STACK_FRAMES)?);
    let (samples, balance) = (new(&SAMPLES)?, new(&BALANCE)?);
    let code = Code::new(profile, exported.symbols, !no_inline);
    let functions = code.write_functions(functions)?;
    let mut rows = Rows::new(exported, code, samples, stack_frames);
    rows.write_samples()?;
    let (samples, stack_frames) = rows.finish(exported)?;
    let balance = write_balance(exported, balance)?;
    Ok(vec![functions, stack_frames, samples, balance])
}

/// One row for each domain of each machine.
fn write_balance<W: Write + Send>(
    exported: &Exported<'_>,
    mut table: TableWriter<W>,
) -> Result<W, ReportError> {
    let profile = exported.profile.profile();
    let (start, end) = window(exported);
    let recording = recording_id(profile);
    let top: Vec<usize> = profile.top_domains().map(|(index, _)| index).collect();
    let origin = |machine: usize| profile.recordings.iter().find(|origin| origin.machine as usize == machine);
    for (column, domain) in profile.domains.iter().enumerate() {
        let of_machines: Vec<(usize, Balance)> = if profile.machines.is_empty() {
            vec![(0, domain.balance)]
        } else {
            let of = |(at, machine): (usize, &MachineEnergy)| Some((at, machine.balances[column]?));
            profile.machines.iter().enumerate().filter_map(of).collect()
        };
        for (machine, balance) in of_machines {
            let origin = origin(machine);
            let node = origin.map(threads::node).unwrap_or_default();
            let boot =
                origin.and_then(|origin| origin.identity.as_ref()?.boot.as_deref()).unwrap_or_default();
            let mut row = table.row();
            row.int(recording).text(&node).text(boot);
            row.text(&threads::shown(&domain.info.name)).int(i64::from(top.contains(&column)));
            row.text(rows::method(domain)).int(start).int(end);
            for joules in balance.columns() {
                row.double(joules.as_joules());
            }
            row.end()?;
        }
    }
    table.finish()
}
