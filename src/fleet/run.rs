//! From a question to its answer.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use eprof::units::Joules;

use crate::answer::{Answer, Cell};
use crate::args::{Args, DiffArgs, FlamegraphArgs, Question, ReportArgs, Selected, TopArgs};
use crate::ask::{self, FRAMES_SQL, Function};
use crate::balance::{Row, Whole};
use crate::dimension::Dimension;
use crate::store::Store;
use crate::{flamegraph, output};

/// Answers.
pub fn run(args: Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    runtime.block_on(async {
        match args.question {
            Question::Report(args) => report(args).await,
            Question::Top(args) => top(args).await,
            Question::Diff(args) => diff(args).await,
            Question::Flamegraph(args) => draw(args).await,
        }
    })
}

/// Prints the SQL in place of the answer. The views that it asks of are the tables themselves, but for doubles.
fn print_sql(statements: &[&str]) {
    statements.iter().for_each(|sql| println!("{sql};"));
}

fn cut<T>(rows: &mut Vec<T>, limit: usize) -> usize {
    let shown = if limit == 0 { rows.len() } else { limit.min(rows.len()) };
    let cut = rows.len() - shown;
    rows.truncate(shown);
    cut
}

fn headings(by: &[Dimension]) -> impl Iterator<Item = String> {
    by.iter().map(Dimension::to_string)
}

fn watts(joules: f64, seconds: Option<f64>) -> Cell {
    Cell::Watts(seconds.filter(|seconds| *seconds > 0.0).map(|seconds| joules / seconds))
}

/// CPU time stands in the rows of one domain alone: of a chosen one it is not known.
fn known(seconds: f64, selected: &Selected) -> Option<f64> {
    selected.domain.is_none().then_some(seconds)
}

fn share(part: f64, whole: f64) -> Cell {
    Cell::Share((whole != 0.0).then(|| part / whole))
}

async fn report(args: ReportArgs) -> anyhow::Result<()> {
    if args.selected.sql {
        print_sql(&[&ask::functions_sql(&args.by)]);
        return Ok(());
    }
    let store = Store::open(&args.folder, &args.selected, None).await?;
    let mut rows = ask::functions(&store, &args.by).await?;
    let selected: f64 = rows.iter().map(|row| row.own).sum();
    let by_joules = |row: &Function| if args.total { row.total } else { row.own };
    rows.sort_by(|a, b| by_joules(b).total_cmp(&by_joules(a)));
    let cut = cut(&mut rows, args.rows.limit);
    let columns = ["joules", "total_joules", "share", "watts", "seconds"].map(str::to_owned).into_iter();
    let columns =
        columns.chain(headings(&args.by)).chain(["function", "module"].map(str::to_owned)).collect();
    let cells = |row: Function| {
        let figures = [
            Cell::Joules(row.own),
            Cell::Joules(row.total),
            share(row.own, selected),
            watts(row.own, known(row.seconds, &args.selected)),
            Cell::Seconds(known(row.seconds, &args.selected)),
        ];
        let names = row.by.into_iter().chain([row.name, row.module]).map(Cell::Text);
        figures.into_iter().chain(names).collect()
    };
    let rows = rows.into_iter().map(cells).collect();
    let balances = vec![("", whole(&store, selected).await?)];
    output::write(&Answer { columns, rows, cut, balances, warnings: store.warnings }, args.rows.format)
}

async fn whole(store: &Store, selected: f64) -> anyhow::Result<Whole> {
    let balance = store.balance_of_selected().await?;
    Ok(Whole::of(balance.iter(), Joules::from_joules(selected)))
}

async fn top(args: TopArgs) -> anyhow::Result<()> {
    ensure!(!args.by.is_empty(), "nothing tells rows apart: name columns by --by, such as --by node");
    if args.selected.sql {
        print_sql(&[&ask::groups_sql(&args.by)]);
        return Ok(());
    }
    let store = Store::open(&args.folder, &args.selected, None).await?;
    let mut rows = ask::groups(&store, &args.by).await?;
    let selected: f64 = rows.iter().map(|row| row.joules).sum();
    let balance = store.balance_of_selected().await?;
    // Of a machine it is known what its meters counted; of a rank or pod only what its functions took.
    let of_machines = args.by.iter().all(Dimension::is_of_balance);
    let measured = if of_machines { by_machine(&balance, &args.by) } else { BTreeMap::new() };
    for by in measured.keys().filter(|by| !rows.iter().any(|row| row.by == **by)).cloned().collect::<Vec<_>>()
    {
        rows.push(ask::Group { by, ..ask::Group::default() });
    }
    let of = |row: &ask::Group| measured.get(&row.by).copied().unwrap_or_default();
    rows.sort_by(|a, b| {
        (of(b), b.joules).partial_cmp(&(of(a), a.joules)).unwrap_or(std::cmp::Ordering::Equal)
    });
    let cut = cut(&mut rows, args.rows.limit);
    let first = of_machines.then(|| "measured".to_owned());
    let columns = ["joules", "share", "cpu_watts", "cpu_seconds", "samples"].map(str::to_owned);
    let columns = first.into_iter().chain(columns).chain(headings(&args.by)).collect();
    let cells = |row: ask::Group| {
        let measured = of_machines.then(|| Cell::Joules(of(&row)));
        let figures = [
            Cell::Joules(row.joules),
            share(row.joules, selected),
            watts(row.joules, known(row.seconds, &args.selected)),
            Cell::Seconds(known(row.seconds, &args.selected)),
            Cell::Count(row.samples),
        ];
        measured.into_iter().chain(figures).chain(row.by.into_iter().map(Cell::Text)).collect()
    };
    let rows = rows.into_iter().map(cells).collect();
    let balances = vec![("", Whole::of(balance.iter(), Joules::from_joules(selected)))];
    output::write(&Answer { columns, rows, cut, balances, warnings: store.warnings }, args.rows.format)
}

/// What was measured, by columns of the balance.
fn by_machine(balance: &[Row], by: &[Dimension]) -> BTreeMap<Vec<String>, f64> {
    let mut measured: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    for row in balance {
        let value = |dimension: &Dimension| {
            let value = match dimension.column() {
                "node" => &row.node,
                "boot" => &row.boot,
                _ => &row.method,
            };
            dimension.title(value)
        };
        *measured.entry(by.iter().map(value).collect()).or_default() += row.balance.measured.as_joules();
    }
    measured
}

async fn diff(args: DiffArgs) -> anyhow::Result<()> {
    if args.selected.sql {
        print_sql(&[&ask::functions_sql(&[])]);
        return Ok(());
    }
    if args.newer.is_none() && (args.old.is_none() || args.new.is_none()) {
        bail!(
            "what is compared? Name two folders, or conditions by --old and --new, such as --old 'label:version = 1'"
        );
    }
    let newer = args.newer.as_ref().unwrap_or(&args.folder);
    let old = Store::open(&args.folder, &args.selected, args.old.as_ref()).await?;
    let new = Store::open(newer, &args.selected, args.new.as_ref()).await?;
    let mut both: BTreeMap<(String, String), [f64; 2]> = BTreeMap::new();
    let mut sums = [0.0; 2];
    for (side, store) in [&old, &new].into_iter().enumerate() {
        for row in ask::functions(store, &[]).await? {
            sums[side] += row.own;
            both.entry((row.name, row.module)).or_default()[side] += row.own;
        }
    }
    let scale = if !args.normalize {
        1.0
    } else if sums[0] > 0.0 {
        sums[1] / sums[0]
    } else {
        bail!("the older samples have no joules to be scaled")
    };
    let difference = |[old, new]: [f64; 2]| new - old * scale;
    let mut rows: Vec<_> = both.into_iter().collect();
    rows.sort_by(|(_, a), (_, b)| difference(*b).abs().total_cmp(&difference(*a).abs()));
    let cut = cut(&mut rows, args.rows.limit);
    let columns = ["difference", "change", "old_joules", "new_joules", "function", "module"]
        .map(str::to_owned)
        .to_vec();
    let cells = |((name, module), [old, new]): ((String, String), [f64; 2])| {
        let by = difference([old, new]);
        vec![
            Cell::Joules(by),
            share(by, old * scale),
            Cell::Joules(old * scale),
            Cell::Joules(new),
            Cell::Text(name),
            Cell::Text(module),
        ]
    };
    let rows = rows.into_iter().map(cells).collect();
    let balances = vec![("old", whole(&old, sums[0]).await?), ("new", whole(&new, sums[1]).await?)];
    let mut warnings = old.warnings;
    warnings
        .extend(new.warnings.into_iter().filter(|warning| !warnings.contains(warning)).collect::<Vec<_>>());
    output::write(&Answer { columns, rows, cut, balances, warnings }, args.rows.format)
}

async fn draw(args: FlamegraphArgs) -> anyhow::Result<()> {
    if args.selected.sql {
        print_sql(&[&ask::stacks_sql(&args.by), FRAMES_SQL]);
        return Ok(());
    }
    let store = Store::open(&args.folder, &args.selected, None).await?;
    let stacks = ask::stacks(&store, &args.by).await?;
    let selected: f64 = stacks.iter().map(|stack| stack.joules).sum();
    let whole = whole(&store, selected).await?;
    store.warnings.iter().for_each(|warning| output::say(&format!("warning: {warning}")));
    flamegraph::write(&stacks, &whole, args.format, &args.output)?;
    if args.output != std::path::Path::new("-") {
        output::say(&format!(
            "{}: {} of functions, of {} on {} node(s)",
            args.output.display(),
            whole.selected,
            whole.balance.measured,
            whole.nodes
        ));
    }
    Ok(())
}
