//! What questions are asked of: a user's selection, as that which stands behind FROM.

use crate::dialect::Dialect;
use crate::filter::Filter;
use crate::place::Place;
use crate::when::When;

/// The tables of one place, and what of them is selected.
#[derive(Debug, Clone)]
pub struct Sources {
    dialect: Dialect,
    /// Before each table's name.
    before: String,
    /// Behind it.
    after: &'static str,
    pub since: Option<When>,
    pub until: Option<When>,
    pub domain: Option<String>,
    pub filter: Option<Filter>,
    /// Recordings whose windows are still being written.
    pub unfinished: Vec<i64>,
    /// The samples tell of their errors; those of an older eprof do not.
    pub has_errors: bool,
    /// The last attempt to push that is counted; what comes later would change the sums from one question to the next.
    pub last_push: Option<i64>,
}

impl Sources {
    /// All that is at a place.
    pub fn of(place: &Place) -> Self {
        let (before, after) = match place {
            Place::Sail(lake) => (format!("parquet.`{}/", lake.path), "`"),
            Place::Folder(_) | Place::ClickHouse(_) => (String::new(), ""),
        };
        let dialect = place.dialect();
        let (since, until, domain, filter) = (None, None, None, None);
        Self {
            dialect,
            before,
            after,
            since,
            until,
            domain,
            filter,
            unfinished: Vec::new(),
            has_errors: true,
            last_push: None,
        }
    }

    /// A table as the engine knows it.
    fn table(&self, name: &str) -> String {
        format!("{}{name}{}", self.before, self.after)
    }

    /// A question that can be asked only if samples have this column.
    pub fn probe_of_samples(&self, column: &str) -> String {
        format!("SELECT COUNT(*) AS n FROM (SELECT {column} FROM {} WHERE 1 = 0) AS s", self.table("samples"))
    }

    fn select(&self, columns: &str, table: &str, conditions: &[String]) -> String {
        let conditions = match conditions {
            [] => String::new(),
            _ => format!(" WHERE {}", conditions.join(" AND ")),
        };
        format!("(SELECT {columns} FROM {}{conditions}) AS of_{table}", self.table(table))
    }

    /// Only windows that start in the time that is asked of.
    fn in_time(&self, column: &str) -> Vec<String> {
        let bounds = [(self.since, ">="), (self.until, "<")];
        let known = bounds.into_iter().filter_map(|(bound, sign)| Some((bound?, sign)));
        known.map(|(When(micros), sign)| format!("{column} {sign} {}", self.dialect.time(micros))).collect()
    }

    /// In time, and of a push that counts.
    fn counted(&self, column: &str) -> Vec<String> {
        let mut conditions = self.in_time(column);
        if self.dialect == Dialect::ClickHouse {
            let pushes = self.pushes("recording, MAX(push)", " GROUP BY recording");
            conditions.push(format!("(recording, push) GLOBAL IN ({pushes})"));
        }
        conditions
    }

    /// A SELECT of the pushes that may count.
    pub fn pushes(&self, columns: &str, rest: &str) -> String {
        let mut conditions = self.in_time("time");
        conditions.extend(self.last_push.map(|push| format!("push <= {push}")));
        let conditions = match &conditions[..] {
            [] => String::new(),
            _ => format!(" WHERE {}", conditions.join(" AND ")),
        };
        format!("SELECT {columns} FROM pushes{conditions}{rest}")
    }

    /// The columns of samples that tell of errors.
    pub fn errors(&self) -> String {
        match (self.has_errors, self.dialect) {
            (true, _) => "variance, chance".to_owned(),
            (false, Dialect::ClickHouse) => "variance, CAST(NULL AS Nullable(Float64)) AS chance".to_owned(),
            (false, _) => "variance, CAST(NULL AS DOUBLE) AS chance".to_owned(),
        }
    }

    /// Why there may be no window.
    pub fn nothing(&self) -> String {
        let since = self.since.is_some().then_some("--since");
        let bounds: Vec<&str> = since.into_iter().chain(self.until.is_some().then_some("--until")).collect();
        match bounds[..] {
            [] => "there is no window in the tables".to_owned(),
            _ => format!("no window starts in the time that is asked of: look at {}", bounds.join(" and ")),
        }
    }

    /// Samples of all domains in the time that is asked of.
    pub fn timed_samples(&self, columns: &str) -> String {
        self.select(columns, "samples", &self.counted("time"))
    }

    /// The samples that are selected.
    pub fn samples(&self, columns: &str) -> String {
        self.samples_of(columns, self.filter.as_ref())
    }

    /// Samples of which this holds in place of the selection's own condition.
    pub fn samples_of(&self, columns: &str, filter: Option<&Filter>) -> String {
        let mut conditions = self.counted("time");
        conditions.push(match &self.domain {
            Some(domain) => format!("domain = {}", self.dialect.text(domain)),
            None => "is_top = 1".to_owned(),
        });
        conditions.extend(filter.map(|filter| format!("({})", filter.sql(self.dialect))));
        if !self.unfinished.is_empty() {
            let ids: Vec<String> = self.unfinished.iter().map(i64::to_string).collect();
            conditions.push(format!("recording NOT IN ({})", ids.join(", ")));
        }
        self.select(columns, "samples", &conditions)
    }

    /// The balance of all windows in the time that is asked of.
    pub fn balance(&self, columns: &str) -> String {
        self.select(columns, "balance", &self.counted("window_start"))
    }

    /// That of which a condition holds, too, which asks for nothing that it has not.
    pub fn filtered_balance(&self, columns: &str, filter: &Filter) -> String {
        let mut conditions = self.counted("window_start");
        conditions.push(format!("({})", filter.sql(self.dialect)));
        self.select(columns, "balance", &conditions)
    }

    /// Frames of stacks, each once.
    pub fn stack_frames(&self, columns: &str, condition: Option<&str>) -> String {
        let conditions: Vec<String> = condition.iter().map(|condition| format!("({condition})")).collect();
        self.select(&format!("DISTINCT {columns}"), "stack_frames", &conditions)
    }

    /// Functions, each once.
    pub fn functions(&self, columns: &str) -> String {
        self.select(&format!("DISTINCT {columns}"), "functions", &[])
    }
}
