//! Conditions on samples.
//!
//! A condition never becomes text of SQL as it is: it is parsed here, its columns are those of a list, and its values are written
//! by [`Dialect::text`]. So no name of a program, pod or label can say more than that it is a name.

use std::str::FromStr;

use eprof::pattern::fault;
use regex::Regex;

use crate::dialect::Dialect;
use crate::dimension::Dimension;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// All of them hold.
    All(Vec<Filter>),
    /// One of them holds.
    Any(Vec<Filter>),
    /// A column compares with a value.
    Is(Dimension, Comparison, String),
}

/// How a column compares with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Matches,
    MatchesNot,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The longest first, so that `<=` is not taken for `<`.
const COMPARISONS: [(&str, Comparison); 8] = [
    ("!=", Comparison::NotEqual),
    ("!~", Comparison::MatchesNot),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("=", Comparison::Equal),
    ("~", Comparison::Matches),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];
/// Parentheses in one another; more are no condition that anybody means.
const DEEPEST: usize = 64;

impl Filter {
    /// Both hold.
    pub fn and(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(first), Some(second)) => Some(Self::All(vec![first, second])),
            (first, second) => first.or(second),
        }
    }

    /// It asks nothing but what the balance tells, too.
    pub fn is_of_balance(&self) -> bool {
        match self {
            Self::All(of) | Self::Any(of) => of.iter().all(Self::is_of_balance),
            Self::Is(dimension, ..) => dimension.is_of_balance(),
        }
    }

    /// What it asks of windows as a whole; `None` if all of them may have samples of which it holds. What it asks of samples alone
    /// is taken for true, so that each window with such samples is one of which this holds.
    pub fn of_windows(&self) -> Option<Self> {
        match self {
            Self::All(of) => {
                let of: Vec<Self> = of.iter().filter_map(Self::of_windows).collect();
                (!of.is_empty()).then_some(Self::All(of))
            }
            Self::Any(of) => of.iter().map(Self::of_windows).collect::<Option<Vec<_>>>().map(Self::Any),
            Self::Is(dimension, ..) => dimension.is_of_windows().then(|| self.clone()),
        }
    }

    /// As an engine takes it.
    pub fn sql(&self, dialect: Dialect) -> String {
        match self {
            Self::All(of) => joined(of, " AND ", dialect),
            Self::Any(of) => joined(of, " OR ", dialect),
            Self::Is(Dimension::Label(key), comparison, value) => of_label(key, *comparison, value, dialect),
            Self::Is(dimension, comparison, value) => {
                let column = dimension.column();
                match comparison {
                    Comparison::Matches => dialect.matches(column, value, true),
                    Comparison::MatchesNot => dialect.matches(column, value, false),
                    _ => {
                        let value = match value.parse::<i64>() {
                            Ok(number) if dimension.is_number() => number.to_string(),
                            _ => dialect.text(value),
                        };
                        let holds = format!("{column} {} {value}", comparison.operator());
                        let is_below = matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
                        // What has no number has -1.
                        if dimension.is_number() && is_below {
                            format!("{column} >= 0 AND {holds}")
                        } else {
                            holds
                        }
                    }
                }
            }
        }
    }
}

impl Comparison {
    /// In SQL, of values.
    fn operator(self) -> &'static str {
        match self {
            Self::Equal | Self::Matches => "=",
            Self::NotEqual | Self::MatchesNot => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

fn joined(of: &[Filter], word: &str, dialect: Dialect) -> String {
    let parts: Vec<String> = of.iter().map(|filter| format!("({})", filter.sql(dialect))).collect();
    parts.join(word)
}

/// Labels stand in one column as lines of KEY=VALUE, before each and behind the last of which a line ends.
fn of_label(key: &str, comparison: Comparison, value: &str, dialect: Dialect) -> String {
    const COLUMN: &str = "labels";
    let start = format!("\n{key}=");
    let is_pattern = matches!(comparison, Comparison::Matches | Comparison::MatchesNot);
    let holds = if is_pattern {
        let of_value = dialect.matches(&dialect.rest_of_line(COLUMN, &start), value, true);
        // What is not there has no value, which is not one that is empty.
        format!("{} AND {of_value}", dialect.contains(COLUMN, &start))
    } else {
        dialect.contains(COLUMN, &format!("{start}{value}\n"))
    };
    match comparison {
        Comparison::NotEqual | Comparison::MatchesNot => format!("NOT ({holds})"),
        _ => holds,
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text, depth: 0 };
        let filter = parser.any()?;
        match parser.rest.trim_start() {
            "" => Ok(filter),
            rest => Err(format!("expected `and` or `or` at {rest:?}")),
        }
    }
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<Filter, String> {
        let mut of = vec![self.all()?];
        while self.word("or") {
            of.push(self.all()?);
        }
        Ok(if of.len() == 1 { of.remove(0) } else { Filter::Any(of) })
    }

    fn all(&mut self) -> Result<Filter, String> {
        let mut of = vec![self.one()?];
        while self.word("and") {
            of.push(self.one()?);
        }
        Ok(if of.len() == 1 { of.remove(0) } else { Filter::All(of) })
    }

    fn one(&mut self) -> Result<Filter, String> {
        if self.token("(") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err("too many parentheses".to_owned());
            }
            let inner = self.any()?;
            self.depth -= 1;
            return if self.token(")") { Ok(inner) } else { Err(format!("expected `)` at {:?}", self.rest)) };
        }
        self.rest = self.rest.trim_start();
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_:./-".contains(c);
        let end = self.rest.find(|c| !is_of_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            return Err(format!("expected COLUMN = VALUE at {rest:?}"));
        }
        let dimension: Dimension = name.parse()?;
        self.rest = rest;
        let comparison = COMPARISONS.into_iter().find(|(sign, _)| self.token(sign)).map(|(_, found)| found);
        let comparison =
            comparison.ok_or_else(|| format!("expected =, !=, ~, !~, <, <=, > or >= behind {name}"))?;
        let value = self.value()?;
        check(&dimension, comparison, &value)?;
        Ok(Filter::Is(dimension, comparison, value))
    }

    /// A value in quotes, in which the same quote is doubled; or up to a space or parenthesis.
    fn value(&mut self) -> Result<String, String> {
        self.rest = self.rest.trim_start();
        let Some(quote) = self.rest.chars().next().filter(|c| "'\"".contains(*c)) else {
            let end = self.rest.find(|c: char| c.is_whitespace() || c == ')').unwrap_or(self.rest.len());
            let (value, rest) = self.rest.split_at(end);
            self.rest = rest;
            return if value.is_empty() {
                Err("a value is missing".to_owned())
            } else {
                Ok(value.to_owned())
            };
        };
        let (mut value, mut rest) = (String::new(), &self.rest[1..]);
        loop {
            let (part, after) =
                rest.split_once(quote).ok_or_else(|| format!("a quote {quote} is missing"))?;
            value += part;
            match after.strip_prefix(quote) {
                Some(more) => {
                    value.push(quote);
                    rest = more;
                }
                None => {
                    self.rest = after;
                    return Ok(value);
                }
            }
        }
    }

    fn token(&mut self, token: &str) -> bool {
        let found = self.rest.trim_start().strip_prefix(token);
        found.map(|rest| self.rest = rest).is_some()
    }

    /// A whole word, in capitals or not.
    fn word(&mut self, word: &str) -> bool {
        let text = self.rest.trim_start();
        let Some((start, rest)) = text.split_at_checked(word.len()) else { return false };
        let ends = rest.chars().next().is_none_or(|c| c.is_whitespace() || c == '(');
        let found = ends && start.eq_ignore_ascii_case(word);
        if found {
            self.rest = rest;
        }
        found
    }
}

fn check(dimension: &Dimension, comparison: Comparison, value: &str) -> Result<(), String> {
    let is_pattern = matches!(comparison, Comparison::Matches | Comparison::MatchesNot);
    let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    if is_pattern {
        let fault = |error| format!("{value:?} is {}", fault(value, &error));
        Regex::new(value).map_err(fault)?;
        // Engines are given it within a group.
        Regex::new(&format!("({value})")).map_err(fault)?;
    }
    match dimension {
        _ if dimension.is_number() && is_pattern => {
            Err(format!("{dimension} is a number: compare it by = or <"))
        }
        _ if dimension.is_number() => value
            .parse::<i64>()
            .map(|_| ())
            .map_err(|_| format!("{dimension} is a number, and {value:?} is none")),
        _ if !is_pattern && !is_equality => {
            Err(format!("{dimension} is a text: compare it by =, !=, ~ or !~"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is(column: &'static str, comparison: Comparison, value: &str) -> Filter {
        Filter::Is(Dimension::Column(column), comparison, value.to_owned())
    }

    #[test]
    fn conditions_are_what_they_say() {
        let parsed = |text: &str| text.parse::<Filter>();
        let (node, rank) = (is("node", Comparison::Equal, "n1"), is("rank", Comparison::GreaterOrEqual, "3"));
        let comm = is("comm", Comparison::Matches, "^work");
        assert_eq!(parsed("node=n1"), Ok(node.clone()));
        assert_eq!(
            parsed("node = n1 or rank >= 3 AND comm ~ ^work"),
            Ok(Filter::Any(vec![node.clone(), Filter::All(vec![rank.clone(), comm.clone()])]))
        );
        assert_eq!(
            parsed("(node = 'n1' or rank>=3) and comm ~ \"^work\""),
            Ok(Filter::All(vec![Filter::Any(vec![node, rank]), comm]))
        );
        assert_eq!(parsed("pod = 'it''s; drop'"), Ok(is("pod", Comparison::Equal, "it's; drop")));
        for wrong in [
            "",
            "node",
            "node =",
            "node = a b",
            "password = 1",
            "node = 'a",
            "rank = x",
            "rank ~ 1",
            "comm ~ (",
            "(node = a",
            "node = a)",
            "1 = 1",
            "label: = x",
            "label:v < 2",
            "job >= 99",
            "node = a and",
            "node = a; drop table samples",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
        assert!(parsed(&"(".repeat(100_000)).is_err());
        for pattern in ["comm ~ '('", "label:version ~ '('"] {
            let said = parsed(pattern).expect_err("no pattern");
            let expected =
                r#""(" is no regular expression: unclosed group, at letter 1, `(`; the sign itself is `\(`"#;
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn conditions_become_sql() {
        let filter: Filter =
            "(node = n1 or node ~ ^a) and rank >= 3 and comm != 'it''s'".parse().expect("right");
        assert_eq!(
            filter.sql(Dialect::ClickHouse),
            "((node = 'n1') OR (match(node, unhex('283f2d733a5e6129')) = 1)) AND (rank >= 3) AND (comm <> unhex('69742773'))"
        );
        let label: Filter = "label:v = 1".parse().expect("right");
        assert_eq!(label.sql(Dialect::Spark), "instr(labels, CAST(X'0a763d310a' AS STRING)) > 0");
        let label: Filter = "label:v !~ ^1".parse().expect("right");
        assert_eq!(
            label.sql(Dialect::DataFusion),
            "NOT (strpos(labels, CAST(X'0a763d' AS VARCHAR)) > 0 AND split_part(split_part(labels, CAST(X'0a763d' AS VARCHAR), 2), \
             CAST(X'0a' AS VARCHAR), 1) ~ CAST(X'285e3129' AS VARCHAR))"
        );
        let rank: Filter = "rank < 1".parse().expect("right");
        assert_eq!(rank.sql(Dialect::Spark), "rank >= 0 AND rank < 1");
    }

    #[test]
    fn conditions_on_samples_choose_no_windows() {
        let of_windows = |text: &str| {
            let filter: Filter = text.parse().expect(text);
            filter.of_windows().map(|filter| filter.sql(Dialect::Spark))
        };
        for (condition, of_whole_windows) in [
            ("node = n1", Some("node = 'n1'")),
            ("method = measured", Some("method = 'measured'")),
            ("rank = 1 or job = j", Some("(rank = 1) OR (job = 'j')")),
            ("comm = app", None),
            ("pod = p and cgroup = c", None),
            ("process = p or event = e", None),
            ("node = n1 and comm = app", Some("(node = 'n1')")),
            // Windows of other nodes may have such samples, too.
            ("node = n1 or comm = app", None),
            ("(node = n1 or comm = app) and step = 0", Some("(step = '0')")),
            // And here they may not.
            ("(node = n1 and comm = app) or node = n2", Some("((node = 'n1')) OR (node = 'n2')")),
        ] {
            assert_eq!(of_windows(condition).as_deref(), of_whole_windows, "{condition}");
        }
        assert!(of_windows("label:v = 1 and comm = a").is_some_and(|sql| sql.contains("labels")));
    }

    /// Whether it holds of a sample of these values, by equality alone.
    fn holds(filter: &Filter, sample: &[(&str, &str)]) -> bool {
        match filter {
            Filter::All(of) => of.iter().all(|filter| holds(filter, sample)),
            Filter::Any(of) => of.iter().any(|filter| holds(filter, sample)),
            Filter::Is(dimension, _, value) => sample.contains(&(dimension.column(), value.as_str())),
        }
    }

    fn filters() -> impl Strategy<Value = Filter> {
        let one = (prop::sample::select(vec!["node", "job", "comm", "pod"]), "[ab]");
        let one = one.prop_map(|(column, value)| is(column, Comparison::Equal, &value));
        one.prop_recursive(3, 16, 3, |inner| {
            let some = prop::collection::vec(inner, 1..3);
            prop_oneof![some.clone().prop_map(Filter::All), some.prop_map(Filter::Any)]
        })
    }

    proptest! {
        /// No window is left out of the balance that has a sample of which the condition holds; and no condition on samples is left.
        #[test]
        fn windows_of_selected_samples_are_all_there(filter in filters(), values in ["[ab]", "[ab]", "[ab]", "[ab]"]) {
            let [node, job, comm, pod] = &values;
            let sample = [("node", node.as_str()), ("job", job), ("comm", comm), ("pod", pod)];
            match filter.of_windows() {
                None => {}
                Some(of_windows) => {
                    prop_assert!(!holds(&filter, &sample) || holds(&of_windows, &sample));
                    let sql = of_windows.sql(Dialect::Spark);
                    prop_assert!(!sql.contains("comm") && !sql.contains("pod"), "{}", sql);
                }
            }
        }

        /// Whatever a value is, in quotes it is that value and nothing else.
        #[test]
        fn any_value_stays_a_value(value in any::<String>()) {
            let text = format!("node = '{}' and rank = 1", value.replace('\'', "''"));
            let expected = Filter::All(vec![is("node", Comparison::Equal, &value), is("rank", Comparison::Equal, "1")]);
            prop_assert_eq!(text.parse::<Filter>(), Ok(expected));
        }

        /// No text makes the parser fail otherwise than by saying why.
        #[test]
        fn any_text_is_parsed_or_refused(text in "[a-z()=~<>'\" !:]{0,40}") {
            let _ = text.parse::<Filter>();
        }
    }
}
