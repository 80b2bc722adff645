//! Rows of samples and of stacks, as they are met.

use std::io::Write;
use std::ops::Range;

use parquet::data_type::ByteArray;
use rustc_hash::FxHashSet;

use super::code::Code;
use super::recording::{recording_id, window};
use super::table_writer::TableWriter;
use super::threads::{Threads, shown};
use super::uncertainty::{CELLS_AT_ONCE, variances};
use crate::hardware::Method;
use crate::profile::{BALANCE_TOLERANCE, DomainEnergy, Profile, ProfileParts, Variance};
use crate::report::error::ReportError;
use crate::report::exporter::Exported;
use crate::symbolize::Symbols;
use crate::units::Nanoseconds;

/// What stands in the column `method`.
pub(super) fn method(domain: &DomainEnergy) -> &'static str {
    match domain.info.method {
        Method::Measured => "measured",
        Method::Estimated => "estimated",
    }
}

/// A domain as rows name it.
struct Domain {
    name: ByteArray,
    method: ByteArray,
    is_top: bool,
}

/// What all rows have in common, and what is kept between them.
pub(super) struct Rows<'e, W: Write + Send> {
    parts: &'e dyn ProfileParts,
    symbols: &'e Symbols,
    recording: i64,
    time: i64,
    code: Code,
    threads: Threads<'e>,
    domains: Vec<Domain>,
    /// The domain in whose rows CPU time and samples stand.
    first_top: usize,
    events: Vec<ByteArray>,
    samples: TableWriter<W>,
    stack_frames: TableWriter<W>,
    written_stacks: FxHashSet<i64>,
    /// Joules that were written, by domain.
    sums: Vec<f64>,
}

impl<'e, W: Write + Send> Rows<'e, W> {
    pub fn new(
        exported: &Exported<'e>,
        code: Code,
        samples: TableWriter<W>,
        stack_frames: TableWriter<W>,
    ) -> Self {
        let profile = exported.profile.profile();
        let top: Vec<usize> = profile.top_domains().map(|(index, _)| index).collect();
        let text = |text: &str| ByteArray::from(shown(text).as_str());
        let domain = |(index, domain): (usize, &DomainEnergy)| Domain {
            name: text(&domain.info.name),
            method: ByteArray::from(method(domain)),
            is_top: top.contains(&index),
        };
        Self {
            parts: exported.profile,
            symbols: exported.symbols,
            recording: recording_id(profile),
            time: window(exported).0,
            code,
            threads: Threads::new(profile),
            domains: profile.domains.iter().enumerate().map(domain).collect(),
            first_top: top.first().copied().unwrap_or(0),
            events: profile.events.iter().map(|event| text(&event.name)).collect(),
            samples,
            stack_frames,
            written_stacks: FxHashSet::default(),
            sums: vec![0.0; profile.domains.len()],
        }
    }

    /// Writes all samples, and each stack when it is met first.
    pub fn write_samples(&mut self) -> Result<(), ReportError> {
        let (parts, mut result) = (self.parts, Ok(()));
        parts.for_each_part(&mut |part| {
            let mut first = 0;
            while result.is_ok() && first < part.cells.len() {
                let cells = first..part.cells.len().min(first + CELLS_AT_ONCE);
                first = cells.end;
                result = self.write_cells(part, cells);
            }
        });
        result
    }

    fn write_cells(&mut self, part: &Profile, cells: Range<usize>) -> Result<(), ReportError> {
        let head = self.parts.profile();
        let columns = self.domains.len();
        let of_domain = |domain| variances(head, part, self.symbols, cells.clone(), domain);
        let variances: Vec<Option<Vec<Variance>>> = (0..columns).map(of_domain).collect();
        let mut functions = Vec::new();
        for index in cells.clone() {
            let cell = &part.cells[index];
            let joules = part.joules(index);
            let is_empty = cell.samples == 0 && cell.time == Nanoseconds::ZERO;
            if is_empty && joules.iter().all(|joules| joules.as_joules() == 0.0) {
                continue;
            }
            self.code.of_stack(part, cell.stack, &mut functions);
            let stack = self.code.stack_id(&functions);
            if self.written_stacks.insert(stack) {
                self.code.write_stack(stack, &functions, &mut self.stack_frames)?;
            }
            let Some(thread) = self.threads.get(cell.thread.0 as usize) else { continue };
            let Some(event) = self.events.get(cell.event as usize) else { continue };
            for (column, domain) in self.domains.iter().enumerate() {
                let (spent, counts) = (joules[column].as_joules(), column == self.first_top);
                if spent == 0.0 && !counts {
                    continue;
                }
                self.sums[column] += spent;
                let variance = variances[column].as_ref().map(|of_cells| of_cells[index - cells.start]);
                let mut row = self.samples.row();
                row.int(self.recording).shared_text(&thread.job).shared_text(&thread.step);
                row.shared_text(&thread.node).shared_text(&thread.boot).int(thread.rank);
                row.shared_text(&thread.pod).shared_text(&thread.cgroup).shared_text(&thread.labels);
                row.shared_text(&thread.process).shared_text(&thread.comm);
                row.int(self.time).int(stack);
                row.shared_text(&domain.name).int(i64::from(domain.is_top));
                row.shared_text(event).shared_text(&domain.method);
                let is_known =
                    |variance: &Variance| variance.all.is_finite() && variance.by_chance.is_finite();
                let variance = variance.filter(is_known);
                row.double(spent).optional(variance.map(|variance| variance.all));
                row.optional(variance.map(|variance| variance.by_chance));
                let (time, samples) = if counts { (cell.time.as_nanos(), cell.samples) } else { (0, 0) };
                row.int(i64::try_from(time).unwrap_or(i64::MAX));
                row.int(i64::try_from(samples).unwrap_or(i64::MAX)).end()?;
            }
        }
        Ok(())
    }

    /// Both tables, whose sums are said if they are not the balance's.
    pub fn finish(self, exported: &Exported<'_>) -> Result<(W, W), ReportError> {
        for (domain, sum) in exported.profile.profile().domains.iter().zip(&self.sums) {
            let (attributed, measured) =
                (domain.balance.attributed.as_joules(), domain.balance.measured.as_joules());
            if (sum - attributed).abs() > BALANCE_TOLERANCE * measured.abs().max(attributed.abs()) {
                (exported.warn)(&format!(
                    "{}: the samples have {sum} J, the balance has {attributed} J of functions",
                    domain.info.name
                ));
            }
        }
        Ok((self.samples.finish()?, self.stack_frames.finish()?))
    }
}
