//! From a question to its answer.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use eprof::label::Label;
use eprof::units::Joules;

use crate::again::Attempts;
use crate::answer::{Answer, Cell};
use crate::args::{Args, DiffArgs, FlamegraphArgs, Picture, Question, ReportArgs, Selected, TopArgs};
use crate::ask::{self, Doubted, Function};
use crate::balance::{self, Row, Whole};
use crate::dimension::{Dimension, once};
use crate::does_not_add_up::DoesNotAddUp;
use crate::doubt::{self, Doubt};
use crate::filter::Filter;
use crate::method::Methods;
use crate::place::Place;
use crate::store::Store;
use crate::waiting::Waiting;
use crate::{engine, flamegraph, output};

/// Answers.
pub fn run(args: Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match args.question {
            Question::Report(args) => report(args).await,
            Question::Top(args) => top(args).await,
            Question::Diff(args) => diff(args).await,
            Question::Flamegraph(args) => draw(args).await,
        }
    })
}

/// Asks again as long as that may help.
async fn settled<T>(place: &Place, ask: impl AsyncFn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let _waiting = Waiting::shown(format!("asking {}", Label::new(&place.to_string())));
    let mut attempts = Attempts::at(place);
    loop {
        let error = match ask().await {
            Err(error) => error,
            answer => return answer,
        };
        if error.chain().any(|cause| cause.is::<DoesNotAddUp>()) {
            check_files(place)?;
        }
        attempts.after(error)?;
    }
}

/// In a folder, a damaged file is why sums differ.
fn check_files(place: &Place) -> anyhow::Result<()> {
    match place {
        Place::Folder(folder) => engine::check_files(folder),
        Place::ClickHouse(_) | Place::Sail(_) => Ok(()),
    }
}

/// Where nobody is selected nothing is answered: a name is mistyped, or the time is another one.
fn check_selected(balance: &[Row], has_samples: bool, filter: Option<&Filter>) -> anyhow::Result<()> {
    // A condition on whole windows holds of those that have no samples, too.
    let is_selected = has_samples || filter.is_none_or(Filter::is_of_balance);
    ensure!(
        !balance.is_empty() && is_selected,
        "nothing is selected: no window has samples of which --where holds"
    );
    Ok(())
}

/// Prints the SQL in place of the answer.
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

/// Joules that are estimated follow time: they have no watts of their own.
fn watts(joules: f64, seconds: Option<f64>, methods: Methods) -> Cell {
    let seconds = seconds.filter(|seconds| *seconds > 0.0 && !methods.is_estimated());
    Cell::Watts(seconds.map(|seconds| joules / seconds))
}

/// Why rows have no watts.
fn no_watts(whole: Methods, mut rows: impl Iterator<Item = Methods>) -> Option<&'static str> {
    match (whole.is_estimated(), rows.any(Methods::is_estimated)) {
        (true, true) => Some("No watts by row: joules follow time here"),
        (false, true) => Some("No watts in rows that are estimated: joules follow time there"),
        (_, false) => None,
    }
}

/// How a row's joules were found has a column, where it is not there already.
fn method_heading(by: &[Dimension]) -> Option<String> {
    (!by.iter().any(|by| by.column() == "method")).then(|| "method".to_owned())
}

/// CPU time and samples stand in the rows of one domain alone: of another that is chosen they are not known.
fn tells_time(selected: &Selected, mut seconds: impl Iterator<Item = f64>) -> bool {
    selected.domain.is_none() || seconds.any(|seconds| seconds > 0.0)
}

fn share(part: f64, whole: f64) -> Cell {
    Cell::Share((whole != 0.0).then(|| part / whole))
}

async fn report(mut args: ReportArgs) -> anyhow::Result<()> {
    args.by = once(&args.by);
    let place = Place::parse(&args.place)?;
    let doubted = if args.total { Doubted::Total } else { Doubted::Own };
    if args.selected.sql {
        print_sql(&[&ask::functions_sql(&args.selected.sources(&place, None), &args.by, doubted)]);
        return Ok(());
    }
    let (mut store, mut rows, balance) = settled(&place, async || {
        let store = Store::open(&place, &args.selected, &args.reached, None).await?;
        let rows = ask::functions(&store, &args.by, doubted).await?;
        let balance = store.balance_of_selected().await?;
        Ok((store, rows, balance))
    })
    .await?;
    check_selected(&balance, !rows.is_empty(), store.sources.filter.as_ref())?;
    store.warnings.extend(shared_names(&balance, &args.by));
    let selected: f64 = rows.iter().map(|row| row.own).sum();
    let tells_time = tells_time(&args.selected, rows.iter().map(|row| row.seconds));
    let by_joules = |row: &Function| if args.total { row.total } else { row.own };
    rows.sort_by(|a, b| by_joules(b).total_cmp(&by_joules(a)));
    let cut = cut(&mut rows, args.rows.limit);
    let kinds = doubt::kinds(&balance);
    // The error is beside what it is of.
    let first = match doubted {
        Doubted::Own => ["joules", "stderr_joules", "total_joules"],
        Doubted::Total => ["total_joules", "stderr_joules", "joules"],
    };
    let columns = first.into_iter().chain(["share", "watts", "seconds"]).map(str::to_owned);
    let columns = columns.chain(headings(&args.by)).chain(["function", "module"].map(str::to_owned));
    let columns = columns.chain(method_heading(&args.by)).collect();
    let known = |seconds: f64| tells_time.then_some(seconds);
    let whole = whole(&balance, selected);
    let note = no_watts(whole.methods, rows.iter().map(|row| row.methods)).filter(|_| tells_time);
    let cells = |row: Function| {
        let error = Cell::Error(row.doubt.error(kinds));
        let first = match doubted {
            Doubted::Own => [Cell::Joules(row.own), error, Cell::Joules(row.total)],
            Doubted::Total => [Cell::Joules(row.total), error, Cell::Joules(row.own)],
        };
        let figures = [
            share(row.own, selected),
            watts(row.own, known(row.seconds), row.methods),
            Cell::Seconds(known(row.seconds)),
        ];
        let names = row.by.into_iter().chain([row.name, row.module]).map(Cell::Text);
        let method = method_heading(&args.by).map(|_| Cell::Method(row.methods));
        first.into_iter().chain(figures).chain(names).chain(method).collect()
    };
    let rows = rows.into_iter().map(cells).collect();
    let balances = vec![("", whole)];
    output::write(&Answer { columns, rows, cut, balances, warnings: store.warnings, note }, args.rows.format)
}

fn whole(balance: &[Row], selected: f64) -> Whole {
    Whole::of(balance.iter(), Joules::from_joules(selected))
}

async fn top(mut args: TopArgs) -> anyhow::Result<()> {
    args.by = once(&args.by);
    ensure!(!args.by.is_empty(), "nothing tells rows apart: name columns by --by, such as --by node");
    let place = Place::parse(&args.place)?;
    if args.selected.sql {
        print_sql(&[&ask::groups_sql(&args.selected.sources(&place, None), &args.by)]);
        return Ok(());
    }
    let (mut store, mut rows, balance) = settled(&place, async || {
        let store = Store::open(&place, &args.selected, &args.reached, None).await?;
        let rows = ask::groups(&store, &args.by).await?;
        let balance = store.balance_of_selected().await?;
        Ok((store, rows, balance))
    })
    .await?;
    check_selected(&balance, !rows.is_empty(), store.sources.filter.as_ref())?;
    let selected: f64 = rows.iter().map(|row| row.joules).sum();
    let tells_time = tells_time(&args.selected, rows.iter().map(|row| row.seconds));
    // Of a machine it is known what its meters counted; of a rank or pod only what its functions took.
    let of_machines = args.by.iter().all(Dimension::is_of_balance);
    store.warnings.extend(shared_names(&balance, &args.by));
    let measured = if of_machines { by_machine(&balance, &args.by) } else { BTreeMap::new() };
    for by in measured.keys().filter(|by| !rows.iter().any(|row| row.by == **by)).cloned().collect::<Vec<_>>()
    {
        rows.push(ask::Group { by, ..ask::Group::default() });
    }
    for row in &mut rows {
        row.methods = row.methods.and(measured.get(&row.by).map(|(_, methods)| *methods).unwrap_or_default());
    }
    let of = |row: &ask::Group| measured.get(&row.by).map(|(joules, _)| *joules).unwrap_or_default();
    rows.sort_by(|a, b| {
        (of(b), b.joules).partial_cmp(&(of(a), a.joules)).unwrap_or(std::cmp::Ordering::Equal)
    });
    let cut = cut(&mut rows, args.rows.limit);
    let first = of_machines.then(|| "measured".to_owned());
    let kinds = doubt::kinds(&balance);
    let columns =
        ["joules", "stderr_joules", "share", "cpu_watts", "cpu_seconds", "samples"].map(str::to_owned);
    let columns = first.into_iter().chain(columns).chain(headings(&args.by));
    let columns = columns.chain(method_heading(&args.by)).collect();
    let known = |seconds: f64| tells_time.then_some(seconds);
    let whole = whole(&balance, selected);
    let note = no_watts(whole.methods, rows.iter().map(|row| row.methods)).filter(|_| tells_time);
    let cells = |row: ask::Group| {
        let measured = of_machines.then(|| Cell::Joules(of(&row)));
        let figures = [
            Cell::Joules(row.joules),
            Cell::Error(row.doubt.error(kinds)),
            share(row.joules, selected),
            watts(row.joules, known(row.seconds), row.methods),
            Cell::Seconds(known(row.seconds)),
            Cell::Count(tells_time.then_some(row.samples)),
        ];
        let method = method_heading(&args.by).map(|_| Cell::Method(row.methods));
        let names = row.by.into_iter().map(Cell::Text);
        measured.into_iter().chain(figures).chain(names).chain(method).collect()
    };
    let rows = rows.into_iter().map(cells).collect();
    let balances = vec![("", whole)];
    output::write(&Answer { columns, rows, cut, balances, warnings: store.warnings, note }, args.rows.format)
}

/// Where rows are nodes, but a node's name is of several machines.
fn shared_names(balance: &[Row], by: &[Dimension]) -> Option<String> {
    let is_by = |column| by.iter().any(|by| by.column() == column);
    (is_by("node") && !is_by("boot")).then(|| balance::shared_names(balance.iter()))?
}

/// What was measured or estimated, by columns of the balance.
fn by_machine(balance: &[Row], by: &[Dimension]) -> BTreeMap<Vec<String>, (f64, Methods)> {
    let mut measured: BTreeMap<Vec<String>, (f64, Methods)> = BTreeMap::new();
    for row in balance {
        let value = |dimension: &Dimension| {
            let value = match dimension.column() {
                "node" => &row.node,
                "boot" => &row.boot,
                _ => &row.method,
            };
            dimension.title(value)
        };
        let (joules, methods) = measured.entry(by.iter().map(value).collect()).or_default();
        *joules += row.balance.measured.as_joules();
        *methods = methods.and(Methods::of(&row.method));
    }
    measured
}

async fn diff(args: DiffArgs) -> anyhow::Result<()> {
    let older = Place::parse(&args.place)?;
    let newer = args.newer.as_deref().map(Place::parse).transpose()?;
    let newer = newer.as_ref().unwrap_or(&older);
    if args.selected.sql {
        let sql = |place, condition: &Option<Filter>| {
            ask::functions_sql(&args.selected.sources(place, condition.as_ref()), &[], Doubted::Own)
        };
        print_sql(&[&sql(&older, &args.old), &sql(newer, &args.new)]);
        return Ok(());
    }
    if args.newer.is_none() && (args.old.is_none() || args.new.is_none()) {
        bail!(
            "what is compared? Name two places, or conditions by --old and --new, such as --old 'label:version = 1'"
        );
    }
    let asked = async |place: &Place, condition: Option<&Filter>| {
        settled(place, async || {
            let store = Store::open(place, &args.selected, &args.reached, condition).await?;
            let rows = ask::functions(&store, &[], Doubted::Own).await?;
            let balance = store.balance_of_selected().await?;
            Ok((rows, balance, store.warnings))
        })
        .await
    };
    let (old_rows, old_balance, mut warnings) = asked(&older, args.old.as_ref()).await?;
    let (new_rows, new_balance, new_warnings) = asked(newer, args.new.as_ref()).await?;
    for (balance, rows, condition, side, option) in [
        (&old_balance, &old_rows, &args.old, "older", "--old"),
        (&new_balance, &new_rows, &args.new, "newer", "--new"),
    ] {
        if balance.is_empty() || (rows.is_empty() && condition.is_some()) {
            warnings.push(format!(
                "nothing is on the {side} side: no window has samples of which {option} holds"
            ));
        }
    }
    let kinds = doubt::kinds(&old_balance).max(doubt::kinds(&new_balance));
    let mut both: BTreeMap<(String, String), [(f64, Doubt); 2]> = BTreeMap::new();
    let mut methods: BTreeMap<(String, String), Methods> = BTreeMap::new();
    let mut sums = [0.0; 2];
    for (side, rows) in [old_rows, new_rows].into_iter().enumerate() {
        for row in rows {
            sums[side] += row.own;
            let key = (row.name, row.module);
            let of_both = methods.entry(key.clone()).or_default();
            *of_both = of_both.and(row.methods);
            let (joules, doubt) = &mut both.entry(key).or_default()[side];
            *joules += row.own;
            doubt.add(row.doubt);
        }
    }
    let scale = if !args.normalize {
        1.0
    } else if sums[0] > 0.0 {
        sums[1] / sums[0]
    } else {
        bail!("the older samples have no joules to be scaled")
    };
    let difference = |[(old, _), (new, _)]: [(f64, Doubt); 2]| new - old * scale;
    let mut rows: Vec<_> = both.into_iter().collect();
    rows.sort_by(|(_, a), (_, b)| difference(*b).abs().total_cmp(&difference(*a).abs()));
    let cut = cut(&mut rows, args.rows.limit);
    let figures = ["difference", "stderr_joules", "change", "old_joules", "new_joules"];
    let columns = figures.into_iter().chain(["function", "module", "method"]).map(str::to_owned).collect();
    let cells = |(key, both): ((String, String), [(f64, Doubt); 2])| {
        let by = difference(both);
        let methods = methods.get(&key).copied().unwrap_or_default();
        let (name, module) = key;
        let [(old, mut doubt), (new, of_new)] = both;
        doubt = doubt.scaled(scale);
        doubt.add(of_new);
        vec![
            Cell::Joules(by),
            Cell::Error(doubt.error(kinds)),
            share(by, old * scale),
            Cell::Joules(old * scale),
            Cell::Joules(new),
            Cell::Text(name),
            Cell::Text(module),
            Cell::Method(methods),
        ]
    };
    let rows = rows.into_iter().map(cells).collect();
    let balances = vec![("old", whole(&old_balance, sums[0])), ("new", whole(&new_balance, sums[1]))];
    for warning in new_warnings {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    output::write(&Answer { columns, rows, cut, balances, warnings, note: None }, args.rows.format)
}

/// What is drawn, and where to: the file's ending tells the one, or the other its usual file.
fn picture(args: &FlamegraphArgs) -> anyhow::Result<(Picture, PathBuf)> {
    let ending = args.output.as_deref().and_then(Path::extension).and_then(OsStr::to_str);
    let format = match (args.format, ending) {
        (Some(format), _) => format,
        (None, Some("folded" | "collapsed" | "txt")) => Picture::Collapsed,
        (None, Some(ending @ ("png" | "html" | "json" | "pdf" | "csv"))) => bail!(
            "no .{ending} is written here: flamegraphs of a fleet are SVG (-o fleet.svg) or collapsed stacks (-o fleet.folded)"
        ),
        (None, _) => Picture::Svg,
    };
    let usual = match format {
        Picture::Svg => "fleet.svg",
        Picture::Collapsed => "-",
    };
    Ok((format, args.output.clone().unwrap_or_else(|| usual.into())))
}

async fn draw(mut args: FlamegraphArgs) -> anyhow::Result<()> {
    args.by = once(&args.by);
    let place = Place::parse(&args.place)?;
    let (format, path) = picture(&args)?;
    if args.selected.sql {
        let sources = args.selected.sources(&place, None);
        print_sql(&[
            &ask::stacks_sql(&sources, &args.by),
            &ask::names_sql(&sources),
            &ask::frames_sql(&sources),
        ]);
        return Ok(());
    }
    let (mut store, stacks, balance) = settled(&place, async || {
        let store = Store::open(&place, &args.selected, &args.reached, None).await?;
        let stacks = ask::stacks(&store, &args.by).await?;
        let balance = store.balance_of_selected().await?;
        Ok((store, stacks, balance))
    })
    .await?;
    let selected: f64 = stacks.iter().map(|stack| stack.joules).sum();
    let whole = whole(&balance, selected);
    store.warnings.extend(shared_names(&balance, &args.by));
    store.warnings.iter().for_each(|warning| output::say(&format!("warning: {warning}")));
    flamegraph::write(&stacks, &whole, format, &path)?;
    if path != Path::new("-") {
        output::say(&format!(
            "{}: {} of functions, of {} on {} node{}",
            path.display(),
            whole.selected,
            whole.balance.measured,
            whole.nodes,
            if whole.nodes == 1 { "" } else { "s" }
        ));
    }
    Ok(())
}
