//! A report as a value: rows of functions, lines, threads and the like, with the sums around them.

use regex::Regex;

use super::by_group::sums_by_group;
use super::error::ReportError;
use super::missing_joules::MissingJoules;
use super::neighbours::{Neighbours, Side};
use super::nothing_selected;
use super::perf_data::ENERGY_EVENT;
use super::repeated::said_once;
use super::row_sums::RowsWanted;
use super::rows::{self, Grouping, Row, RowKind, SortKey};
use super::select::{Selected, Selection, Totals, Weight};
use super::summary::{EventSummary, Summary, Verified};
use super::sums::{Found, Sums};

use crate::identity::Dimension;
use crate::label::Label;
use crate::profile::{BALANCE_TOLERANCE, EQUAL_WATTS_ERROR, Profile, ProfileMethod, ProfileParts};
use crate::symbolize::Symbols;
use crate::units::{Joules, Watts};

/// What a report shows. The default: all functions by their own joules.
#[derive(Debug, Clone)]
pub struct Options {
    /// What was recorded, for people.
    pub subject: Option<String>,
    /// What a row stands for.
    pub by: Grouping,
    /// What tells recordings apart: each of these has rows of its own.
    pub dimensions: Vec<Dimension>,
    /// What the report is made from, and what weighs.
    pub selection: Selection,
    /// Show the callers or callees of a function instead of all rows.
    pub neighbours: Option<Neighbours>,
    /// Only rows whose name or module matches.
    pub rows: Option<Regex>,
    /// Tell inlined functions from the function they were put into.
    pub inline: bool,
    /// What rows are sorted by.
    pub sort: SortKey,
    /// At most so many rows.
    pub limit: Option<usize>,
    /// Leave out rows that have no weight of their own, only of what they called.
    pub own_only: bool,
    /// Shares of everything measured instead of what was attributed, with rows for what was not.
    pub whole: bool,
    /// How wrong eprof is known to be on the machine of the recording.
    pub verified: Option<Verified>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            subject: None,
            by: Grouping::Function,
            dimensions: Vec::new(),
            selection: Selection::default(),
            neighbours: None,
            rows: None,
            inline: true,
            sort: SortKey::Own,
            limit: None,
            own_only: false,
            whole: false,
            verified: None,
        }
    }
}

impl Options {
    /// Which rows these are.
    pub(super) fn wanted(&self) -> RowsWanted<'_> {
        RowsWanted {
            by: self.by,
            neighbours: self.neighbours.as_ref(),
            inline: self.inline,
            dimensions: &self.dimensions,
        }
    }

    /// Whether each group of recordings or threads has rows, and so sums, of its own.
    pub(super) fn has_own_sums(&self) -> bool {
        !self.dimensions.is_empty() && self.by != Grouping::Recording
    }
}

/// A report, ready to be written in any format.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What the whole profile is about.
    pub summary: Summary,
    /// What weighs.
    pub weight: Weight,
    /// What a row stands for.
    pub by: Grouping,
    /// What tells recordings apart that have rows of their own.
    pub dimensions: Vec<Dimension>,
    /// The only event whose samples count, if one was asked for.
    pub event: Option<Label>,
    /// Inlined functions are told from those that they were put into.
    pub inline: bool,
    /// Whose callers or callees the rows are.
    pub neighbours_of: Option<(Side, Label)>,
    /// The rows, sorted.
    pub rows: Vec<Row>,
    /// Rows beyond the limit: how many, and their own sums.
    pub cut: (usize, Totals),
    /// Rows that the filter took away: how many, and their own sums.
    pub filtered: (usize, Totals),
    /// Samples that were not selected.
    pub not_selected: Totals,
    /// What shares are shares of.
    pub whole: Totals,
    /// The whole is everything measured, and rows of the balance are among the rows.
    pub includes_balance: bool,
    /// What the reader must know.
    pub warnings: Vec<Label>,
    /// Why there is nothing to show, where there is nothing: in a piece of time that is as it should be, in a whole recording it is
    /// a mistake.
    nothing: Option<String>,
    /// Errors of joules are known.
    has_errors: bool,
}

impl Report {
    /// Makes a report of a profile, whole or in parts: its sums do not depend on which it is.
    ///
    /// # Errors
    /// If the options name something that the profile does not have.
    pub fn new(parts: &dyn ProfileParts, symbols: &Symbols, options: &Options) -> Result<Self, ReportError> {
        let profile = parts.profile();
        let selected = Selected::resolve(&options.selection, profile)?;
        let weight = selected.weight;
        if options.by == Grouping::Domain && weight != Weight::Joules {
            return Err(no_rows_by_domain(profile, &selected));
        }
        let wanted = options.wanted();
        let found = match options.has_own_sums() {
            false => {
                let mut sums = Sums::new(profile, symbols, &selected, &options.selection, wanted)?;
                parts.for_each_part(&mut |part| sums.add(part));
                sums.finish()?
            }
            true => sums_by_group(parts, symbols, &selected, &options.selection, wanted)?,
        };
        Ok(Self::of_sums(profile, symbols, options, &selected, found))
    }

    /// The same, where a user chose what it is of: a report of nothing is not what was wanted.
    ///
    /// # Errors
    /// If nothing is selected.
    pub fn of_something(self) -> Result<Self, ReportError> {
        match self.nothing {
            Some(why) => Err(ReportError::NothingSelected(why)),
            None => Ok(self),
        }
    }

    /// Of what was added up.
    pub(super) fn of_sums(
        profile: &Profile,
        symbols: &Symbols,
        options: &Options,
        selected: &Selected,
        found: Found,
    ) -> Self {
        let Found { rows, chosen, not_selected, in_cells, paths } = found;

        let nothing = (selected.partial && rows.is_empty())
            .then(|| nothing_selected::why(&options.selection, profile, symbols))
            .or_else(|| nothing_selected::cut_off_before_anything(profile));
        let neighbours = options.neighbours.as_ref();
        let neighbours_of = neighbours.map(|of| (of.side, Label::new(of.function.name())));
        let summary = Summary::new(profile, selected, options.subject.as_deref());
        let summary = summary.with_verified(options.verified.as_ref());
        let mut report = Self {
            weight: selected.weight,
            by: options.by,
            dimensions: options.dimensions.clone(),
            event: options.selection.event.as_deref().map(Label::new),
            inline: options.inline,
            not_selected,
            whole: if neighbours_of.is_some() { rows.iter().map(|row| row.own).sum() } else { chosen },
            neighbours_of,
            rows,
            includes_balance: options.whole
                && selected.weight == Weight::Joules
                && options.neighbours.is_none(),
            cut: (0, Totals::default()),
            filtered: (0, Totals::default()),
            warnings: warnings(profile, &summary, &in_cells)
                .into_iter()
                .chain(paths.map(|text| Label::new(&text)))
                .collect(),
            summary,
            nothing,
            has_errors: false,
        };
        let chose_itself = options.selection.weight.is_none();
        report.warnings.extend(report.why_no_joules().filter(|_| chose_itself));
        report.finish(options);
        report
    }

    /// Adds the balance's rows where wanted, filters, sorts and cuts.
    fn finish(&mut self, options: &Options) {
        // Of all rows: those that are taken away have errors as well.
        let has_errors = self.rows.iter().any(|row| row.own.variance > 0.0);
        self.has_errors = has_errors;
        let whole = self.rows.iter().map(|row| row.own.joules).sum();
        let sum = |report: &Self, rows: &[Row]| {
            let mut sum: Totals = rows.iter().map(|row| row.own).sum();
            if !has_errors {
                return sum;
            }
            let together = chance_of_sum(rows, whole);
            sum.variance -= sum.by_chance - together;
            sum.by_chance = together;
            report.with_error_of_estimate(sum, EQUAL_WATTS_ERROR, report.error_of_meters(rows))
        };
        let of_meters = self.error_of_meters(&self.rows);
        if self.includes_balance {
            let parts = self.summary.balance.unattributed();
            let row = |(name, joules)| match (self.by, name) {
                // What a GPU draws whatever runs on it.
                (Grouping::Kernel, "[static]") => Row::of_balance("[idle]", joules),
                _ => Row::of_balance(name, joules),
            };
            self.rows.extend(parts.into_iter().map(row));
            self.rows.extend(self.has_row_of_not_selected().then(|| {
                // It is within everything, as what no sample was charged with is.
                Row::of_balance("[not selected]", self.not_selected.joules)
            }));
            self.whole.joules = self.summary.balance.measured;
        }
        if let Some(pattern) = &options.rows {
            let (kept, filtered): (Vec<Row>, Vec<Row>) =
                std::mem::take(&mut self.rows).into_iter().partition(|row| rows::matches(row, pattern));
            self.filtered = (filtered.len(), sum(self, &filtered));
            self.rows = kept;
            if self.rows.is_empty() && self.nothing.is_none() {
                let has_modules = matches!(self.by, Grouping::Function | Grouping::Line | Grouping::Kernel);
                let named = if has_modules { "name or module" } else { "name" };
                let kind = self.by.name();
                self.nothing = Some(format!(
                    "no {kind}'s {named} matches --filter {pattern}; without it, `--limit 0` lists all"
                ));
            }
        }
        if options.own_only {
            let weight = self.weight;
            self.rows.retain(|row| row.is_told || row.own.weight(weight) != 0.0);
        }
        let sort = match options.sort {
            // They would be sorted by what rounding leaves.
            SortKey::Watts if self.summary.is_by_time => SortKey::Own,
            sort => sort,
        };
        rows::sort(&mut self.rows, sort, self.weight);
        if let Some(limit) = options.limit.filter(|&limit| limit < self.rows.len()) {
            let cut = self.rows.split_off(limit);
            self.cut = (cut.len(), sum(self, &cut));
            self.warnings.extend(rows::idle(&cut).map(|who| {
                Label::new(&format!("nothing was sampled of {who}, whose rows are beyond --limit"))
            }));
        }
        if has_errors {
            // How everything is divided does not matter to its sum.
            let (of_division, of_meters) =
                if self.includes_balance { (0.0, Joules::ZERO) } else { (EQUAL_WATTS_ERROR, of_meters) };
            self.whole = self.with_error_of_estimate(self.whole, of_division, of_meters);
        }
    }

    /// Sums of rows whose errors are of one cause, the watts that were assumed: these are as large in a sum as in
    /// its rows, and what comes of chance, from row to row, adds to that. `of_division` is the relative error of taking all code to
    /// draw the same; `of_meters` that of what the readings leave open ([`Report::error_of_meters`]).
    fn with_error_of_estimate(&self, mut sum: Totals, of_division: f64, of_meters: Joules) -> Totals {
        if let (ProfileMethod::Estimated, Some(error)) = (self.summary.method, self.summary.watts_error) {
            let by_watts = sum.joules.as_joules() * error.hypot(of_division);
            let of_meters = of_meters.as_joules();
            sum.variance = sum.variance.max(by_watts * by_watts + sum.by_chance + of_meters * of_meters);
        }
        sum
    }

    /// What rows of an estimate are off by together because meters, or clocks in their place, were not read when they began and
    /// ended: what is left of their errors without chance and without assumed watts. It is wrong in all of them alike.
    fn error_of_meters(&self, rows: &[Row]) -> Joules {
        // A domain lies in another, which has its joules as well.
        let rows = rows.iter().filter(|_| self.by != Grouping::Domain);
        let left = |row: &Row| (row.own.variance - row.own.by_chance - row.own.common).max(0.0).sqrt();
        Joules::from_joules(rows.map(left).sum())
    }

    /// Whether rows say how often an event happened that tells nothing of joules.
    pub(super) fn is_of_no_joules(&self) -> bool {
        let Some(division) = &self.summary.division else { return false };
        let is_left_out = |event: &Label| division.left_out.iter().any(|left_out| left_out.event == *event);
        let tells_nothing =
            division.in_place_of_time.is_some() || self.event.as_ref().is_some_and(is_left_out);
        self.weight == Weight::Count && tells_nothing
    }

    /// Why rows are of one event's counts, where the recording has joules.
    fn why_no_joules(&self) -> Option<Label> {
        let (division, event) = (self.summary.division.as_ref()?, self.event.as_ref()?);
        let left_out = division.left_out.iter().find(|left_out| left_out.event == *event)?;
        if self.weight != Weight::Count {
            return None;
        }
        let by: Vec<&str> = division.events.iter().map(Label::as_str).collect();
        let (by, reason) = (by.join(", "), left_out.reason.as_str());
        Some(Label::new(&format!(
            "{event} has no joules ({reason}): rows are by its count; joules are by {by}"
        )))
    }

    /// The share that a row's own weight has of the whole, from 0 to 1; `None` if the whole is nothing.
    pub fn share(&self, totals: &Totals) -> Option<f64> {
        let whole = self.whole.weight(self.weight);
        let share = (whole > 0.0).then(|| totals.weight(self.weight) / whole)?;
        // The same joules added up in another order differ in the last digits.
        Some(if (share - 1.0).abs() < 1e-12 { 1.0 } else { share })
    }

    /// A row's watts while it ran; `None` where joules follow time alone, so that all rows have the same.
    pub fn watts(&self, row: &Row) -> Option<Watts> {
        row.own.watts().filter(|_| !self.summary.is_by_time)
    }

    /// Whether what was not selected is a row: it is within the whole, where that is everything measured.
    pub(super) fn has_row_of_not_selected(&self) -> bool {
        self.includes_balance && self.not_selected.joules > Joules::ZERO
    }

    /// The joules of a row, its own or its total; `None` where there are none, or where samples follow an event that does not tell
    /// whose they were.
    pub fn joules(&self, row: &Row, totals: &Totals) -> Option<Joules> {
        let division = self.summary.division.as_ref();
        let is_by_count = self.weight == Weight::Count && row.kind == RowKind::Samples;
        let nobody_knows =
            is_by_count && division.is_some_and(|division| division.in_place_of_time.is_some());
        (self.summary.has_joules() && !nobody_knows).then_some(totals.joules)
    }

    /// One standard error of a row's own joules; `None` where it is not known.
    pub fn error(&self, row: &Row) -> Option<Joules> {
        // Where nothing was sampled there is nothing to be wrong about.
        let is_known = row.own.variance > 0.0 || self.has_errors && row.own.is_empty();
        let is_sampled = row.kind == RowKind::Samples;
        self.joules(row, &row.own).filter(|_| is_sampled && is_known).map(|_| row.own.standard_error())
    }

    /// The share that a row has of all time; `None` where no event told the time.
    pub fn time_share(&self, totals: &Totals) -> Option<f64> {
        let whole = self.whole.time.as_secs_f64();
        (whole > 0.0).then(|| totals.time.as_secs_f64() / whole)
    }
}

/// How much of the variance of rows' sum, which has the `whole` with the other rows, comes of chance: what samples give one of them
/// they take from another. Rows are drawn as from an urn, in each draw one: of parts `p` of the whole, each with a variance `v`, two
/// have a covariance of `-sqrt(v1 p1 / (1 - p1)) sqrt(v2 p2 / (1 - p2))`, which is that of an urn where samples come of one.
/// Of one row it is its own, of all rows nothing.
fn chance_of_sum(rows: &[Row], whole: Joules) -> f64 {
    let part = |row: &Row| (row.own.joules.as_joules() / whole.as_joules()).clamp(0.0, 1.0);
    let own: f64 = rows.iter().map(|row| row.own.by_chance).sum();
    let square = |row: &Row| match part(row) {
        part if part < 1.0 => row.own.by_chance * part / (1.0 - part),
        _ => 0.0,
    };
    let squares: f64 = rows.iter().map(square).sum();
    let roots: f64 = rows.iter().map(|row| square(row).max(0.0).sqrt()).sum();
    let is_all = rows.iter().map(|row| row.own.joules).sum::<Joules>() >= whole;
    if is_all { 0.0 } else { (own - (roots * roots - squares)).max(0.0) }
}

/// Why rows by domain cannot be weighed by anything but joules.
fn no_rows_by_domain(profile: &Profile, selected: &Selected) -> ReportError {
    if selected.has_joules {
        return ReportError::DomainsHaveNoSamples;
    }
    ReportError::NothingWithoutJoules { what: "domains are", why: MissingJoules::in_profile(profile) }
}

/// The profile's own warnings, and what does not add up. `in_cells` are the joules of all cells, by domain.
fn warnings(profile: &Profile, summary: &Summary, in_cells: &[f64]) -> Vec<Label> {
    let mut warnings: Vec<Label> = said_once(&profile.warnings).iter().map(|text| Label::new(text)).collect();
    let unbalanced = summary.domains.iter().filter(|domain| !domain.balance.holds());
    warnings.extend(unbalanced.map(|domain| {
        let (sum, measured) = (domain.balance.accounted(), domain.balance.measured);
        Label::new(&format!(
            "the balance of {} is off: its parts are {sum}, measured were {measured}",
            domain.name
        ))
    }));
    for (domain, &in_cells) in profile.domains.iter().zip(in_cells) {
        let attributed = domain.balance.attributed.as_joules();
        if (in_cells - attributed).abs()
            > BALANCE_TOLERANCE * domain.balance.measured.as_joules().abs().max(in_cells)
        {
            warnings.push(Label::new(&format!(
                "the samples of {} have {in_cells} J, the balance says {attributed} J",
                domain.info.name
            )));
        }
    }
    let joules_missing = summary.method != crate::profile::ProfileMethod::None && !summary.has_joules();
    if joules_missing {
        let why = MissingJoules::of(summary.method, summary.samples());
        warnings.push(Label::new(&format!("{why}: this report is by samples, not by joules")));
    }
    let is_exported =
        |event: &&EventSummary| event.samples > 0 && event.name.as_str().ends_with(ENERGY_EVENT);
    warnings.extend(summary.events.iter().find(is_exported).map(|event| {
        Label::new(&format!(
            "the periods of {} are nanojoules, as `eprof export --format perf-data` wrote them: `--weight count` has them; \
             `eprof report` of the recording that was exported has joules and their errors",
            event.name
        ))
    }));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Method;
    use crate::profile::{BucketReason, Division, Variance};
    use crate::report::fixture::sample_profile;

    #[test]
    fn rows_of_an_event_without_joules_say_why() {
        let (mut profile, symbols) = sample_profile();
        profile.division = Some(Division {
            model: "time".to_owned(),
            source: "typical watts".to_owned(),
            is_exact: false,
            left_out: vec![None, Some("another clock tells the time".to_owned())],
            domains: Vec::new(),
            bucket: Joules::from_joules(0.25),
            bucket_reason: BucketReason::Usual,
            is_by_time: true,
            static_is_spread: false,
            in_place_of_time: None,
        });
        let said = |event: &str, weight: Option<Weight>| {
            let selection = Selection { event: Some(event.to_owned()), weight, ..Selection::default() };
            let options = Options { selection, ..Options::default() };
            let report = Report::new(&profile, &symbols, &options).expect("it has both events");
            let said = |text: &&Label| text.as_str().contains(" has no joules (");
            (report.weight, report.warnings.iter().find(said).map(Label::to_string))
        };
        let why = "instructions has no joules (another clock tells the time): rows are by its count; joules are by cpu-clock";
        assert_eq!(said("instructions", None), (Weight::Count, Some(why.to_owned())));
        assert_eq!(said("instructions", Some(Weight::Count)), (Weight::Count, None), "as asked for");
        assert_eq!(said("cpu-clock", None), (Weight::Joules, None));
    }

    /// Joules by counts of what tells no time are of no function: programs get none either.
    #[test]
    fn rows_by_an_event_in_place_of_time_have_no_joules() {
        let (mut profile, symbols) = sample_profile();
        let event = profile.events[0].name.clone();
        profile.division = Some(Division {
            model: "time".to_owned(),
            source: "typical watts".to_owned(),
            is_exact: false,
            left_out: Vec::new(),
            domains: Vec::new(),
            bucket: Joules::from_joules(0.25),
            bucket_reason: BucketReason::Usual,
            is_by_time: true,
            static_is_spread: false,
            in_place_of_time: Some(event),
        });
        let known = |weight: Option<Weight>| {
            let selection = Selection { weight, ..Selection::default() };
            let options = Options { selection, ..Options::default() };
            let report = Report::new(&profile, &symbols, &options).expect("it has joules and counts");
            let known = report.rows.iter().filter(|row| report.joules(row, &row.own).is_some()).count();
            (known, report.rows.len())
        };
        // What somebody asks for all the same is there.
        let (by_count, by_joules) = (known(None), known(Some(Weight::Joules)));
        assert!(by_count.0 == 0 && by_count.1 > 0, "{by_count:?}");
        assert_eq!(by_joules.0, by_joules.1);
    }

    #[test]
    fn joules_that_were_exported_as_periods_are_told() {
        for (name, is_told) in
            [("energy-nanojoules", true), ("estimated-energy-nanojoules", true), ("cycles", false)]
        {
            let (mut profile, symbols) = sample_profile();
            profile.events[0].name = name.to_owned();
            let report =
                Report::new(&profile, &symbols, &Options::default()).expect("no option asks for more");
            let beginning = format!("the periods of {name} are nanojoules");
            let said = report.warnings.iter().any(|text| text.as_str().starts_with(&beginning));
            assert_eq!(said, is_told, "{name}");
        }
    }

    /// Two rows of an estimate, of which each is off by 0.2 and the watts' error of its joules, by 0.3 J of chance, and by 0.1 J
    /// and 0.2 J of its meters' ends.
    #[test]
    fn sums_of_an_estimates_rows_have_the_errors_of_their_rows() {
        let (mut profile, symbols) = sample_profile();
        profile.domains.iter_mut().for_each(|domain| domain.info.method = Method::Estimated);
        let mut report = Report::new(&profile, &symbols, &Options::default()).expect("it has joules");
        let of_watts = report.summary.watts_error.expect("assumed").hypot(EQUAL_WATTS_ERROR);
        let row = |name: &str, joules: f64, of_meters: f64| {
            let mut own = Totals::of_joules(Joules::from_joules(joules));
            let common = (joules * of_watts).powi(2);
            own.add_variance(Variance { all: common + 0.09 + of_meters.powi(2), by_chance: 0.09, common });
            Row::new(Label::new(name), own, own)
        };
        let rows = vec![row("a", 2.0, 0.1), row("b", 1.0, 0.2), row("c", 1.0, 0.2)];
        let finished = |rows: &[Row], options: &Options| {
            let mut report = report.clone();
            (report.rows, report.whole) = (rows.to_vec(), Totals::of_joules(Joules::from_joules(4.0)));
            report.finish(options);
            report
        };
        let near =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
        let cut = finished(&rows, &Options { limit: Some(1), ..Options::default() });
        // Chance of two quarters of the whole: 0.18 less twice 0.09 / 3; all else adds up as it is.
        near(cut.cut.1.variance, (2.0 * of_watts).powi(2) + 0.12 + 0.4f64.powi(2));
        let filter = Regex::new("b").expect("valid");
        let filtered = finished(&rows, &Options { rows: Some(filter), ..Options::default() });
        // A half and a quarter: less twice the root of 0.09 and of 0.09 / 3.
        let chance = 0.18 - 2.0 * (0.09f64 * 0.03).sqrt();
        near(filtered.filtered.1.variance, (3.0 * of_watts).powi(2) + chance + 0.3f64.powi(2));
        // All rows together are the whole, by whatever they were taken away.
        let none = Regex::new("nobody").expect("valid");
        let none = finished(&rows, &Options { rows: Some(none), ..Options::default() });
        near(none.filtered.1.variance, none.whole.variance);
        let why = none.of_something().expect_err("no row is left").to_string();
        assert!(
            why.starts_with("nothing to show: no function's name or module matches --filter nobody"),
            "{why}"
        );
        // Of all of them together chance decides nothing.
        near(filtered.whole.variance, (4.0 * of_watts).powi(2) + 0.5f64.powi(2));
        report.by = Grouping::Domain;
        assert_eq!(report.error_of_meters(&rows), Joules::ZERO);
    }
}
