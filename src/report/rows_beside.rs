//! A report, and beside it the rows of other kinds, of which nothing but the sums is wanted: what reports of one profile have in
//! common is found once.

use std::sync::Arc;

use super::error::ReportError;
use super::frames::{Detail, FrameTable};
use super::row_sums::{RowSums, RowsWanted};
use super::rows::{Grouping, Row};
use super::select::{Selected, Selection, Totals};
use super::stack_filter::StackFilter;
use super::sums::Sums;
use super::value::{Options, Report};
use crate::profile::Profile;
use crate::symbolize::Symbols;

/// The report of `options`, and the rows that a report of each of `others` has, in no certain order. Of these, the rows' kind,
/// selection, dimensions and inlined functions count.
///
/// # Errors
/// As of [`Report::new`].
pub fn with_rows_beside(
    profile: &Profile,
    symbols: &Symbols,
    options: &Options,
    others: &[Options],
) -> Result<(Report, Vec<Vec<Row>>), ReportError> {
    let mut shared = Shared { profile, symbols, functions: None, whole: None };
    let report = match options.has_own_sums() || options.by == Grouping::Domain {
        true => Report::new(profile, symbols, options)?,
        false => {
            let selected = Selected::resolve(&options.selection, profile)?;
            let wanted = options.wanted();
            let frames = shared.frames(wanted);
            let mut sums = Sums::of_frames(profile, symbols, &selected, &options.selection, wanted, frames)?;
            sums.add(profile);
            Report::of_sums(profile, symbols, options, &selected, sums.finish()?)
        }
    };
    let rows = others.iter().map(|options| shared.rows(options));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    Ok((report, rows))
}

/// What was found of a profile.
struct Shared<'a> {
    profile: &'a Profile,
    symbols: &'a Symbols,
    functions: Option<Arc<FrameTable>>,
    /// Of all samples: sums by stack.
    whole: Option<Arc<(Selected, Vec<Totals>)>>,
}

impl Shared<'_> {
    fn rows(&mut self, options: &Options) -> Result<Vec<Row>, ReportError> {
        if options.has_own_sums() || options.by == Grouping::Domain {
            return Ok(Report::new(self.profile, self.symbols, options)?.rows);
        }
        let wanted = options.wanted();
        let stacks = self.stacks(&options.selection)?;
        let (selected, totals) = &*stacks;
        let frames = self.frames(wanted);
        let mut sums = RowSums::new(self.profile, self.symbols, selected, wanted, frames)?;
        sums.add(self.profile, totals, None);
        sums.finish(None)
    }

    fn stacks(&mut self, selection: &Selection) -> Result<Arc<(Selected, Vec<Totals>)>, ReportError> {
        if let Some(whole) = self.whole.as_ref().filter(|_| selection.is_default()) {
            return Ok(Arc::clone(whole));
        }
        let selected = Selected::resolve(selection, self.profile)?;
        let totals = StackFilter::new(self.profile, self.symbols, selection).totals(self.profile, &selected);
        let stacks = Arc::new((selected, totals));
        if selection.is_default() {
            self.whole = Some(Arc::clone(&stacks));
        }
        Ok(stacks)
    }

    fn frames(&mut self, wanted: RowsWanted<'_>) -> Arc<FrameTable> {
        if !wanted.has_frames() || wanted.inline || wanted.detail() == Detail::Line {
            return Arc::new(wanted.frames(self.profile, self.symbols));
        }
        let (profile, symbols) = (self.profile, self.symbols);
        let functions = self
            .functions
            .get_or_insert_with(|| Arc::new(FrameTable::new(profile, symbols, Detail::Function, false)));
        match wanted.detail() {
            Detail::Module => Arc::new(functions.of_modules()),
            _ => Arc::clone(functions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, Spent, sample_profile};
    use super::super::select::TaskIds;
    use super::*;
    use crate::hardware::Method;
    use crate::identity::Dimension;
    use crate::units::Joules;

    /// All kinds of rows that a live view goes through, and such as it has not.
    fn kinds() -> Vec<Options> {
        let by = |by| Options { by, inline: false, ..Options::default() };
        let task = Some(TaskIds { pid: 100, tid: Some(101) });
        vec![
            by(Grouping::Function),
            by(Grouping::Module),
            by(Grouping::Process),
            by(Grouping::Thread),
            by(Grouping::Core),
            by(Grouping::Line),
            by(Grouping::Domain),
            Options { dimensions: vec![Dimension::Cgroup], ..by(Grouping::Recording) },
            Options { dimensions: vec![Dimension::Cgroup], ..by(Grouping::Function) },
            Options { selection: Selection { task, ..Selection::default() }, ..by(Grouping::Function) },
            Options { inline: true, ..by(Grouping::Module) },
        ]
    }

    fn sorted(mut rows: Vec<Row>) -> Vec<String> {
        rows.sort_by(|a, b| {
            (&a.name, &a.module, &a.values, a.ids).cmp(&(&b.name, &b.module, &b.values, b.ids))
        });
        rows.iter().map(|row| format!("{row:?}")).collect()
    }

    fn check(profile: &Profile, symbols: &Symbols) {
        for shown in kinds() {
            let (report, rows) = with_rows_beside(profile, symbols, &shown, &kinds()).expect("joules");
            assert_eq!(report, Report::new(profile, symbols, &shown).expect("joules"));
            for (options, rows) in kinds().iter().zip(rows) {
                let alone = Report::new(profile, symbols, options).expect("joules");
                assert_eq!(sorted(rows), sorted(alone.rows), "{:?} beside {:?}", options.by, shown.by);
            }
        }
    }

    #[test]
    fn rows_beside_a_report_are_those_of_their_own_reports() {
        let (profile, symbols) = sample_profile();
        check(&profile, &symbols);
        // Of code that lies nowhere, and of a stack without frames.
        let mut fixture = Fixture::default();
        fixture.domain("package-0", None, Method::Measured, "power PMU", [1.0, 0.0, 0.0, 0.0]);
        fixture.event("cpu-clock", 0);
        fixture.thread(100, 101, "worker", "app");
        fixture.cgroup("/a.slice");
        for (stack, joules) in [("", 1.0), ("app`main  `lost", 2.0), ("`lost  app`main", 4.0)] {
            fixture.cell(0, 0, 0, stack, Spent { samples: 3, millis: 3, joules: &[joules] });
        }
        let (profile, symbols) = fixture.finish();
        check(&profile, &symbols);
        let options = Options { by: Grouping::Module, inline: false, ..Options::default() };
        let modules = Report::new(&profile, &symbols, &options).expect("joules");
        let own = |name: &str| {
            let of_name = modules.rows.iter().filter(|row| row.name.as_str() == name);
            of_name.map(|row| row.own.joules).sum::<Joules>().as_joules()
        };
        assert_eq!((own("app"), own("[unknown]"), modules.rows.len()), (4.0, 3.0, 2), "{:?}", modules.rows);
    }
}
