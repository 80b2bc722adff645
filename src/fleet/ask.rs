//! The questions, as SQL that every engine understands: no arrays, no engine's own functions, one JOIN ... USING per SELECT.
//!
//! Texts are made of nothing but the names of known columns, and of what [`Sources`] says of a user's selection.

use std::collections::HashMap;

use eprof::profile::BALANCE_TOLERANCE;

use crate::dimension::Dimension;
use crate::does_not_add_up::DoesNotAddUp;
use crate::doubt::{Doubt, OF_SAMPLES};
use crate::method::{self, Methods};
use crate::rows::Columns;
use crate::sources::Sources;
use crate::store::Store;

/// One row of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Function {
    pub name: String,
    pub module: String,
    /// What tells it from others, by the dimensions that were asked for.
    pub by: Vec<String>,
    /// Joules of its own code.
    pub own: f64,
    /// Joules with all that it called.
    pub total: f64,
    /// CPU time of its own code in seconds.
    pub seconds: f64,
    /// Of its own joules, or of the total if that was asked for.
    pub doubt: Doubt,
    /// How the joules of all stacks with it were found.
    pub methods: Methods,
}

/// Joules and CPU time of a group of samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    pub by: Vec<String>,
    pub joules: f64,
    pub seconds: f64,
    pub samples: i64,
    pub doubt: Doubt,
    pub methods: Methods,
}

/// Of which joules it is asked how sure they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubted {
    /// Of a function's own.
    Own,
    /// Of those with all that it called.
    Total,
}

/// One stack.
pub struct Stack {
    /// Outermost first; before them what tells samples apart.
    pub frames: Vec<String>,
    pub joules: f64,
}

fn listed(by: &[Dimension]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    by.iter().map(Dimension::column).for_each(|column| {
        if !columns.contains(&column) {
            columns.push(column);
        }
    });
    columns.iter().map(|column| format!("{column}, ")).collect()
}

/// The columns of [`listed`], and that of [`method::OF_SAMPLES`].
fn with_method(by: &str) -> String {
    let is_there = by.split(", ").any(|column| column == "method");
    format!("{by}{}", if is_there { "" } else { "method, " })
}

/// Own and total joules by function, and how sure the one or the other are.
pub fn functions_sql(sources: &Sources, by: &[Dimension], doubted: Doubted) -> String {
    let by = listed(by);
    let samples =
        sources.samples(&format!("{}stack_id, joules, cpu_ns, {}", with_method(&by), sources.errors()));
    let of_method = method::OF_SAMPLES;
    let of_frames = Some("is_leaf = 1 OR is_first = 1");
    let stack_frames = sources.stack_frames("stack_id, depth, function_id, is_leaf, is_first", of_frames);
    let functions = sources.functions("function_id, name, module");
    let flag = match doubted {
        Doubted::Own => "is_leaf",
        Doubted::Total => "is_first",
    };
    format!(
        "SELECT {by}name, module, SUM(CASE WHEN is_leaf = 1 THEN j ELSE 0e0 END) AS own, \
         SUM(CASE WHEN is_first = 1 THEN j ELSE 0e0 END) AS total, SUM(CASE WHEN is_leaf = 1 THEN ns ELSE 0 END) AS cpu, \
         SUM(CASE WHEN {flag} = 1 THEN c ELSE 0e0 END) AS by_chance, SUM(CASE WHEN {flag} = 1 THEN r ELSE 0e0 END) AS by_rest, \
         SUM(CASE WHEN {flag} = 1 THEN u ELSE 0 END) AS unknown, MAX(e) AS some_estimated, MAX(m) AS some_measured \
         FROM (SELECT {by}function_id, is_leaf, is_first, SUM(sj) AS j, SUM(sns) AS ns, SUM(sc) AS c, SUM(sr) AS r, SUM(su) AS u, \
         MAX(se) AS e, MAX(sm) AS m FROM (SELECT {by}stack_id, SUM(joules) AS sj, SUM(cpu_ns) AS sns, {OF_SAMPLES}, {of_method} \
         FROM {samples} GROUP BY {by}stack_id) AS s \
         INNER JOIN {stack_frames} USING (stack_id) GROUP BY {by}function_id, is_leaf, is_first) AS a \
         INNER JOIN {functions} USING (function_id) GROUP BY {by}name, module"
    )
}

/// Joules by what tells samples apart.
pub fn groups_sql(sources: &Sources, by: &[Dimension]) -> String {
    let by = listed(by);
    let columns = by.trim_end_matches(", ");
    // A sum is not named as a column is: ClickHouse would take the one for the other.
    let samples =
        sources.samples(&format!("{}joules, cpu_ns, samples, {}", with_method(&by), sources.errors()));
    let of_method = method::OF_SAMPLES;
    format!(
        "SELECT {by}SUM(joules) AS j, SUM(cpu_ns) AS cpu, SUM(samples) AS n, {OF_SAMPLES}, {of_method} FROM {samples} \
         GROUP BY {columns}"
    )
}

/// Joules by stack.
pub fn stacks_sql(sources: &Sources, by: &[Dimension]) -> String {
    let by = listed(by);
    let samples = sources.samples(&format!("{by}stack_id, joules"));
    format!("SELECT {by}stack_id, SUM(joules) AS j FROM {samples} GROUP BY {by}stack_id")
}

/// The frames of the selected stacks, outermost first.
pub fn frames_sql(sources: &Sources) -> String {
    let frames = sources.stack_frames("stack_id, depth, function_id", None);
    let samples = sources.samples("stack_id");
    format!(
        "SELECT stack_id, depth, function_id FROM {frames} INNER JOIN (SELECT DISTINCT stack_id FROM {samples}) AS s \
         USING (stack_id) ORDER BY stack_id, depth"
    )
}

/// What functions are called.
pub fn names_sql(sources: &Sources) -> String {
    format!("SELECT function_id, name FROM {}", sources.functions("function_id, name"))
}

/// What tells rows apart, in words, in the order that was asked for.
fn titles(columns: &mut Columns, by: &[Dimension]) -> anyhow::Result<Vec<Vec<String>>> {
    let mut known: Vec<(&str, Vec<String>)> = Vec::new();
    for dimension in by {
        if !known.iter().any(|(column, _)| *column == dimension.column()) {
            known.push((dimension.column(), columns.texts()?));
        }
    }
    let values = |dimension: &Dimension| -> Vec<String> {
        let of_column = known.iter().find(|(column, _)| *column == dimension.column());
        of_column
            .map(|(_, values)| values.iter().map(|value| dimension.title(value)).collect())
            .unwrap_or_default()
    };
    let by_dimension: Vec<Vec<String>> = by.iter().map(values).collect();
    let rows = by_dimension.first().map_or(0, Vec::len);
    Ok((0..rows).map(|row| by_dimension.iter().map(|values| values[row].clone()).collect()).collect())
}

/// That rows which differ only in other labels are one.
fn folded<T>(rows: Vec<T>, is_same: impl Fn(&T, &T) -> bool, add: impl Fn(&mut T, T)) -> Vec<T> {
    let mut folded: Vec<T> = Vec::with_capacity(rows.len());
    for row in rows {
        match folded.last_mut().filter(|last| is_same(last, &row)) {
            Some(last) => add(last, row),
            None => folded.push(row),
        }
    }
    folded
}

/// The rows of an answer must have the joules of the samples that it was made of.
fn check(found: f64, of_samples: f64) -> anyhow::Result<()> {
    if (found - of_samples).abs() <= BALANCE_TOLERANCE * of_samples.abs().max(found.abs()) {
        return Ok(());
    }
    Err(DoesNotAddUp(format!(
        "the answer has {found} J of {of_samples} J of samples: rows of stack_frames or functions are missing or damaged; \
         export the recordings again with --force, and if they were pushed, push their folder by `eprof push --again`"
    ))
    .into())
}

/// What is said of how sure sums are.
fn doubts(columns: &mut Columns) -> anyhow::Result<Vec<Doubt>> {
    let (chance, rest, unknown) = (columns.doubles()?, columns.doubles()?, columns.ints()?);
    let parts = chance.into_iter().zip(rest).zip(unknown);
    Ok(parts.map(|((chance, rest), unknown)| Doubt { chance, rest, unknown }).collect())
}

/// What is said of how sums were found.
fn methods(columns: &mut Columns) -> anyhow::Result<Vec<Methods>> {
    let (estimated, measured) = (columns.ints()?, columns.ints()?);
    Ok(estimated.into_iter().zip(measured).map(|(e, m)| Methods::of_flags(e, m)).collect())
}

/// Asks for joules by function.
pub async fn functions(store: &Store, by: &[Dimension], doubted: Doubted) -> anyhow::Result<Vec<Function>> {
    let mut columns = store.ask(&functions_sql(&store.sources, by, doubted)).await?;
    let titles = titles(&mut columns, by)?;
    let (names, modules) = (columns.texts()?, columns.texts()?);
    let (own, total, cpu) = (columns.doubles()?, columns.doubles()?, columns.ints()?);
    let doubts = doubts(&mut columns)?;
    let methods = methods(&mut columns)?;
    let row = |at: usize| Function {
        name: names[at].clone(),
        module: modules[at].clone(),
        by: titles.get(at).cloned().unwrap_or_default(),
        own: own[at],
        total: total[at],
        seconds: cpu[at] as f64 * 1e-9,
        doubt: doubts[at],
        methods: methods[at],
    };
    let mut rows: Vec<Function> = (0..names.len()).map(row).collect();
    check(rows.iter().map(|row| row.own).sum(), store.joules().await?)?;
    rows.sort_by(|a, b| (&a.by, &a.name, &a.module).cmp(&(&b.by, &b.name, &b.module)));
    let is_same = |a: &Function, b: &Function| (&a.by, &a.name, &a.module) == (&b.by, &b.name, &b.module);
    Ok(folded(rows, is_same, |sum, row| {
        sum.own += row.own;
        sum.total += row.total;
        sum.seconds += row.seconds;
        sum.doubt.add(row.doubt);
        sum.methods = sum.methods.and(row.methods);
    }))
}

/// Asks for joules by what tells samples apart.
pub async fn groups(store: &Store, by: &[Dimension]) -> anyhow::Result<Vec<Group>> {
    let mut columns = store.ask(&groups_sql(&store.sources, by)).await?;
    let titles = titles(&mut columns, by)?;
    let (joules, cpu, samples) = (columns.doubles()?, columns.ints()?, columns.ints()?);
    let doubts = doubts(&mut columns)?;
    let methods = methods(&mut columns)?;
    let row = |at: usize| Group {
        by: titles[at].clone(),
        joules: joules[at],
        seconds: cpu[at] as f64 * 1e-9,
        samples: samples[at],
        doubt: doubts[at],
        methods: methods[at],
    };
    let mut rows: Vec<Group> = (0..joules.len()).map(row).collect();
    check(rows.iter().map(|row| row.joules).sum(), store.joules().await?)?;
    rows.sort_by(|a, b| a.by.cmp(&b.by));
    Ok(folded(
        rows,
        |a, b| a.by == b.by,
        |sum, row| {
            sum.joules += row.joules;
            sum.seconds += row.seconds;
            sum.samples += row.samples;
            sum.doubt.add(row.doubt);
            sum.methods = sum.methods.and(row.methods);
        },
    ))
}

/// Asks for joules by stack.
pub async fn stacks(store: &Store, by: &[Dimension]) -> anyhow::Result<Vec<Stack>> {
    let mut columns = store.ask(&stacks_sql(&store.sources, by)).await?;
    let titles = titles(&mut columns, by)?;
    let (ids, joules) = (columns.ints()?, columns.doubles()?);
    let mut columns = store.ask(&names_sql(&store.sources)).await?;
    let names: HashMap<i64, String> = columns.ints()?.into_iter().zip(columns.texts()?).collect();
    let mut columns = store.ask(&frames_sql(&store.sources)).await?;
    let (of_stacks, depths, functions) = (columns.ints()?, columns.ints()?, columns.ints()?);
    let frames_of = |id: i64| {
        let first = of_stacks.partition_point(|stack| *stack < id);
        let count = of_stacks[first..].partition_point(|stack| *stack == id);
        first..first + count
    };
    let mut stacks = Vec::new();
    for (at, (&id, &joules)) in ids.iter().zip(&joules).enumerate() {
        let range = frames_of(id);
        let is_whole = !range.is_empty()
            && depths[range.clone()].iter().zip(0..).all(|(depth, expected)| *depth == expected);
        let frames: Option<Vec<&String>> =
            functions[range].iter().map(|function| names.get(function)).collect();
        let Some(frames) = frames.filter(|_| is_whole) else {
            let lacks = "lacks frames: rows of stack_frames or functions are missing or damaged";
            return Err(DoesNotAddUp(format!("stack {id} {lacks}")).into());
        };
        let by = titles.get(at).into_iter().flatten().cloned();
        stacks.push(Stack { frames: by.chain(frames.into_iter().cloned()).collect(), joules });
    }
    check(stacks.iter().map(|stack| stack.joules).sum(), store.joules().await?)?;
    Ok(stacks)
}
