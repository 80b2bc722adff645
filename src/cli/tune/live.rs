//! Tuning by running the program.

use std::io;
use std::process::ExitCode;

use anyhow::{Context, bail};
use eprof::machine::{Roots, topology};
use eprof::measure::tuning::cpu_frequency::CpuFrequency;
use eprof::measure::tuning::power_cap::PowerCap;
use eprof::measure::tuning::{
    BenchOptions, Finished, Metric, Placement, ProgramBench, Template, TuningError,
};
use eprof::tune::design;
use eprof::tune::out_of_line::Doubts;
use eprof::tune::runs::Run;
use eprof::tune::search::{Bench, Purpose, Schedule, SearchError, search};
use eprof::tune::show;
use eprof::tune::space::{Level, Role, Setting, Space, Variable};

use super::super::outcome::Outcome;
use super::notices::{note, warn};
use super::options::{PlacementKind, TuneArgs};
use super::progress::Progress;
use super::result;

/// The hidden verb that [`super::guard`] runs under.
pub const GUARD_VERB: &str = "tune-guard";

/// How variables are set that the command does not mention.
#[derive(Default)]
struct Controls {
    frequency: Option<CpuFrequency>,
    power_cap: Option<PowerCap>,
}

pub fn run(args: &TuneArgs) -> Outcome {
    let (space, controls) = space(args)?;
    let metric = Metric::new(args.live.seconds.as_deref(), args.live.rate.as_deref())?;
    let question = args.question(&space)?;
    let formula = args.formula(&space)?;
    let default =
        space.position(&question.default).context("the default setting is not in the search space")?;
    let settings = args.design.settings(&space, &formula, default)?;
    if args.design.plan {
        let settings = with_budget(args, &space, settings)?;
        result::print(&result::plan_csv(&space, &settings, metric.responses()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.command.is_empty() {
        bail!("nothing to tune: give a command after --, or a table of runs with --runs-csv");
    }
    let budget = args.design.budget.unwrap_or(settings.len());
    if budget < settings.len() {
        bail!(
            "--budget {budget} is less than the {} settings of the first design (see --plan)",
            settings.len()
        );
    }
    let schedule = Schedule {
        settings,
        repeats: args.design.repeat.into(),
        wanted_error: args.design.max_error,
        most_repeats: args.design.max_repeats.max(args.design.repeat.into()),
        budget: budget.min(space.size()),
        grouped: args.live.setup.is_some(),
        verify: !args.live.no_verify,
    };
    let progress = Progress::new(args.output.quiet);
    let responses = metric.responses();
    let bench = ProgramBench::new(&space, options(args, controls, metric), progress)?;
    let journal = bench.journal_state();
    if journal.runs > 0 {
        note(&format!(
            "{} runs are taken from {} (--fresh makes them anew)",
            journal.runs,
            args.live.journal.display()
        ));
    }
    let mut bench = Recorded { bench, runs: Vec::new() };
    let found = search(&space, responses, &question, &schedule, &mut bench);
    let Recorded { bench, runs } = bench;
    let energy = bench.energy_source();
    // Whatever the search gave: the settings come first.
    report(&bench.finish())?;
    let found = match found {
        Ok(found) => found,
        Err(SearchError::Bench(TuningError::Interrupted(signal))) => {
            note(&format!(
                "the runs made are in {}; the same command goes on there",
                args.live.journal.display()
            ));
            return Ok(ExitCode::from(128 + signal as u8));
        }
        Err(error) => return Err(error.into()),
    };
    result::save(args, &found.analysis, &runs)?;
    // Those that verified the last recommendation come behind those that it is made of.
    let learned = &runs[..found.analysis.measured().runs()];
    let doubts = Doubts::of(&found.analysis, learned);
    let named = |run: usize| format!("run {}", run + 1);
    if let Some(text) = show::note_doubts(&found.analysis, learned, &doubts, named) {
        note(&text);
    }
    result::show(args, &found.analysis, &doubts, &found.verifications, &energy)?;
    Ok(ExitCode::SUCCESS)
}

/// A bench that remembers what it measured, for `--save-runs`.
struct Recorded<B> {
    bench: B,
    runs: Vec<Run>,
}

impl<B: Bench> Bench for Recorded<B> {
    type Error = B::Error;

    fn run(&mut self, setting: &Setting, purpose: Purpose) -> Result<[f64; 2], B::Error> {
        let values = self.bench.run(setting, purpose)?;
        self.runs.push(Run { setting: setting.clone(), values });
        Ok(values)
    }

    fn expect(&mut self, runs: usize) {
        self.bench.expect(runs);
    }
}

/// The search space, without what can be set neither by the command nor on this machine.
fn space(args: &TuneArgs) -> anyhow::Result<(Space, Controls)> {
    if let Some(name) = args.space.columns().first() {
        bail!("--var {name}: give its values, as in --var {name}=1,2,4 (a name alone is for --runs-csv)");
    }
    let mut variables = args.space.given()?;
    if variables.is_empty() {
        let cpus = topology::online(&Roots::default())?.len();
        note(&format!("no variable is given: tuning the number of threads, 1 to {cpus}"));
        let levels = (1..=cpus).map(|threads| Level::Number(threads as f64)).collect();
        variables.push(Variable::new("threads", Role::Threads, levels)?);
    }
    if args.command.is_empty() {
        // A plan for runs elsewhere: what this machine can set does not matter.
        return Ok((Space::new(variables)?, Controls::default()));
    }
    let mentioned = mentioned(args, &Space::new(variables.clone())?)?;
    let mut controls = Controls::default();
    let roots = Roots::under(&args.live.root);
    let mut kept = Vec::new();
    for (variable, mentioned) in variables.into_iter().zip(mentioned) {
        let whole = variable.levels().iter().all(|level| level.number().is_some_and(|n| n.fract() == 0.0));
        match variable.role {
            Role::Threads | Role::Nodes if !whole => bail!("{}: whole numbers are needed", variable.name),
            Role::Threads => {
                note_too_many_threads(&variable)?;
                kept.push(variable);
            }
            _ if mentioned => kept.push(variable),
            Role::Frequency => match CpuFrequency::find(&roots) {
                Ok(frequency) => {
                    kept.push(offered(&frequency, &variable)?);
                    controls.frequency = Some(frequency);
                }
                Err(reason) => note(&format!("frequencies are not tuned: {reason}")),
            },
            Role::PowerCap => match PowerCap::find(&roots) {
                Ok(cap) => {
                    kept.push(variable);
                    controls.power_cap = Some(cap);
                }
                Err(reason) => note(&format!("power caps are not tuned: {reason}")),
            },
            Role::Nodes | Role::Other => {
                bail!("nothing sets `{0}`: use {{{0}}} in the command or in --setup", variable.name)
            }
        }
    }
    if kept.is_empty() {
        bail!("nothing is left to tune");
    }
    Ok((Space::new(kept)?, controls))
}

fn note_too_many_threads(threads: &Variable) -> anyhow::Result<()> {
    let cpus = topology::online(&Roots::default())?.len();
    let most = threads.levels().last().and_then(Level::number).unwrap_or(0.0);
    if most > cpus as f64 {
        note(&format!("up to {most} threads will share {cpus} CPUs"));
    }
    Ok(())
}

/// For each variable, whether the command or the setup has its placeholder.
fn mentioned(args: &TuneArgs, space: &Space) -> Result<Vec<bool>, TuningError> {
    let words = args.command.iter().map(|word| word.to_string_lossy().into_owned());
    let templates: Vec<Template> = words
        .chain(args.live.setup.clone())
        .map(|text| Template::parse(&text, space))
        .collect::<Result<_, _>>()?;
    let by_any = |index: usize| templates.iter().any(|template| template.mentions(index));
    Ok((0..space.variables().len()).map(by_any).collect())
}

/// The frequencies nearest to those wanted that the driver offers.
fn offered(frequency: &CpuFrequency, wanted: &Variable) -> anyhow::Result<Variable> {
    let numbers = wanted.levels().iter().filter_map(Level::number);
    let nearest: Vec<Level> = numbers
        .map(|ghz| frequency.nearest(ghz).map(Level::Number).map_err(anyhow::Error::msg))
        .collect::<anyhow::Result<_>>()?;
    Ok(Variable::new(wanted.name.clone(), wanted.role, nearest)?)
}

fn with_budget(args: &TuneArgs, space: &Space, mut settings: Vec<usize>) -> anyhow::Result<Vec<usize>> {
    if let Some(budget) = args.design.budget {
        // What will be measured decides where to look next, so a plan can only spread the rest.
        let rest = design::random(space, space.size(), 1).into_iter().filter(|at| !settings.contains(at));
        let more: Vec<usize> = rest.take(budget.saturating_sub(settings.len())).collect();
        settings.extend(more);
    }
    Ok(settings)
}

fn options(args: &TuneArgs, controls: Controls, metric: Metric) -> BenchOptions {
    BenchOptions {
        command: args.command.clone(),
        setup: args.live.setup.clone(),
        teardown: args.live.teardown.clone(),
        metric,
        placement: match args.live.placement {
            PlacementKind::Spread => Placement::Spread,
            PlacementKind::None => Placement::Free,
        },
        frequency: controls.frequency,
        power_cap: controls.power_cap,
        timeout: args.live.timeout,
        journal: args.live.journal.clone(),
        fresh: args.live.fresh,
        domains: args.live.domain.clone(),
        watts: args.live.watts,
        roots: Roots::default(),
        // Also works when the file of this program was replaced meanwhile.
        guard: ("/proc/self/exe".into(), &[GUARD_VERB]),
    }
}

fn report(finished: &Finished) -> io::Result<()> {
    for warning in &finished.warnings {
        warn(warning);
    }
    for failure in &finished.not_restored {
        warn(&failure.0);
    }
    if finished.restored > 0 {
        note(&format!("{} settings of the machine are as they were before, read back", finished.restored));
    }
    Ok(())
}
