//! The options of `eprof tune`, and the pure questions they make.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use eprof::meter::AssumedWatts;
use eprof::tune::TuneError;
use eprof::tune::analysis::{ErrorLimits, Question};
use eprof::tune::choice::Goal;
use eprof::tune::design;
use eprof::tune::formula::Formula;
use eprof::tune::levels::{parse_named_variable, parse_variable};
use eprof::tune::space::{Role, Setting, Space, Variable};

use super::super::table_options::condition;

/// What is recommended when no goal is given: little loss of time for all the energy it saves.
const USUAL_SLOWDOWN: f64 = 0.10;

const EXAMPLES: &str = "\
Examples:
  eprof tune --threads 1..16 -- ./app {threads}
      run ./app at about six thread counts, predict the other ten, recommend one, verify it
  eprof tune --threads 4..44:4 --freq 1.2..2.2GHz --max-slowdown 20% --svg front.svg -- ./app
      threads by OMP_NUM_THREADS and affinity, frequency by cpufreq (needs root; restored at the end)
  eprof tune --nodes 20,42,64,86 --threads 4..44:4 --rate 'Rate \\(MFlops/s\\): ([0-9.]+)' \\
      -- srun -N {nodes} -c {threads} ./stencil
  eprof tune --var flags=-O2,-O3,'-O3 -march=native' --setup 'make clean all CFLAGS=\"{flags}\"' -- ./app
  eprof tune --threads 4..44:4 --freq 1.2..2.2GHz --plan > runs.csv
      only print which settings to run; fill in seconds and joules elsewhere, then
  eprof tune --runs-csv runs.csv --threads 4..44:4 --freq 1.2..2.2GHz --min-energy";

/// Find the best settings of a program from a dozen runs.
///
/// Runs COMMAND at a sample of its settings, fits a model of time and energy (splines of their
/// logarithms), prints the Pareto front with its trade-off zone, recommends a setting and verifies it
/// by running it. In COMMAND, {threads}, {nodes}, {freq} (GHz), {mhz}, {khz}, {cap} (watts) and the
/// {names} of other variables stand for the setting's values.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct TuneArgs {
    #[command(flatten)]
    pub space: SpaceArgs,
    #[command(flatten)]
    pub design: DesignArgs,
    #[command(flatten)]
    pub goal: GoalArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub offline: OfflineArgs,
    #[command(flatten)]
    pub output: OutputArgs,

    /// Program to tune, with its arguments.
    #[arg(trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

#[derive(Args)]
#[command(next_help_heading = "What can be set")]
pub struct SpaceArgs {
    /// Thread counts: 1..16, 4..44:4 (a step) or 1,2,4,8.
    #[arg(long, value_name = "VALUES")]
    threads: Option<String>,

    /// CPU frequencies: 1.2..3.0GHz, 1200..3000MHz:200 or a list.
    #[arg(long, value_name = "VALUES")]
    freq: Option<String>,

    /// Node counts, used as {nodes} in COMMAND.
    #[arg(long, value_name = "VALUES")]
    nodes: Option<String>,

    /// Power caps of each CPU package: 40..120W:20 or a list.
    #[arg(long, value_name = "VALUES")]
    power_cap: Option<String>,

    /// Any other variable, used as {NAME}: numbers (tile=16..128:16) or names (flags=-O2,-O3). With
    /// --runs-csv, NAME alone makes that column a variable.
    #[arg(long = "var", visible_alias = "space", value_name = "NAME=VALUES")]
    variables: Vec<String>,

    /// The setting that savings refer to: NAME=VALUE,... The most threads, nodes, frequency and power,
    /// and the first of names, where not given.
    #[arg(long, value_name = "SETTING")]
    default: Option<String>,
}

#[derive(Args)]
#[command(next_help_heading = "Which settings to run")]
pub struct DesignArgs {
    /// How the first settings are chosen.
    #[arg(long, value_enum, default_value_t = DesignKind::Uniform)]
    design: DesignKind,

    /// Number of settings in the first design (for latin and random).
    #[arg(long, value_name = "N")]
    runs: Option<usize>,

    /// Values of a variable to run in the uniform design, instead of evenly spaced ones.
    #[arg(long, value_name = "NAME=VALUES")]
    sample: Vec<String>,

    /// Different settings to run in all; beyond the first design, where the prediction is least certain.
    #[arg(long, value_name = "N")]
    pub budget: Option<usize>,

    /// Runs of each setting.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repeat: u16,

    /// Repeat a setting until its mean is this certain (95 % interval), as in 2%.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub max_error: Option<f64>,

    /// Most runs of a setting with --max-error.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub max_repeats: usize,

    /// Print the settings that would be run as CSV, and end. With --runs-csv, the next ones to run.
    #[arg(long)]
    pub plan: bool,

    /// Seed of the order of runs, of random designs and of the cross validation.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DesignKind {
    /// All combinations of evenly spaced values (the most accurate in the paper).
    Uniform,
    /// A latin hypercube.
    Latin,
    /// Random settings.
    Random,
}

#[derive(Args)]
#[command(next_help_heading = "What is wanted")]
pub struct GoalArgs {
    /// The least energy at no more than this slow-down against the default, as in 20% [default: 10%].
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with_all = ["min_energy", "edp"])]
    max_slowdown: Option<f64>,

    /// The least energy, however long it takes.
    #[arg(long, conflicts_with = "edp")]
    min_energy: bool,

    /// The least product of energy and time.
    #[arg(long)]
    edp: bool,

    /// The model's terms, as in 'bs(log(threads)) + freq + bs(log(threads)):freq'; 'paper' for splines
    /// over the values themselves.
    #[arg(long, value_name = "TERMS")]
    formula: Option<String>,

    /// Confidence level of all intervals.
    #[arg(long, value_name = "PERCENT", default_value = "95%", value_parser = confidence)]
    level: f64,

    /// Error limit of measured values, for their trade-off zone [default: from repeats, else 5%].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    measured_error: Option<f64>,

    /// Error limit of predicted values, for their trade-off zone [default: the model's].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    predicted_error: Option<f64>,
}

#[derive(Args)]
#[command(next_help_heading = "Running the program")]
pub struct LiveArgs {
    /// Command run by the shell before a run whenever its text changes with the setting; not measured.
    #[arg(long, value_name = "COMMAND")]
    pub setup: Option<String>,

    /// Command run by the shell at the end, however tuning ends, to undo what --setup did.
    #[arg(long, value_name = "COMMAND", requires = "setup")]
    pub teardown: Option<String>,

    /// Work per second is what this regular expression finds in the output (first group, last match).
    #[arg(long, value_name = "REGEX", conflicts_with = "seconds")]
    pub rate: Option<String>,

    /// The time in seconds is what this regular expression finds in the output.
    #[arg(long, value_name = "REGEX")]
    pub seconds: Option<String>,

    /// On which CPUs the threads run.
    #[arg(long, value_enum, default_value_t = PlacementKind::Spread)]
    pub placement: PlacementKind,

    /// Watts of the whole machine, idle and busy, for the estimate where there is no meter.
    #[arg(long, value_name = "IDLE:BUSY", value_parser = AssumedWatts::parse)]
    pub watts: Option<AssumedWatts>,

    /// Energy domains to add up, as `eprof doctor` names them [default: all that no other one contains].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub domain: Vec<String>,

    /// End a run after this many seconds as failed.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,

    /// File that keeps every run, so that an interrupted tuning goes on where it stopped.
    #[arg(long, value_name = "FILE", default_value = "eprof-tune.jsonl")]
    pub journal: PathBuf,

    /// Begin anew even if the journal has runs.
    #[arg(long)]
    pub fresh: bool,

    /// Do not run the recommended setting to verify it.
    #[arg(long)]
    pub no_verify: bool,

    /// Folder that stands for / when CPU frequencies and power caps are set.
    #[arg(long, value_name = "FOLDER", default_value = "/", hide = true)]
    pub root: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlacementKind {
    /// Spread over packages and cores, one thread per core while there are cores.
    Spread,
    /// Wherever the kernel puts them.
    None,
}

#[derive(Args)]
#[command(next_help_heading = "Without running the program")]
pub struct OfflineArgs {
    /// Take the runs from a table: one line per run, the first names the columns. - is stdin.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "setup", "rate", "seconds", "fresh"])]
    pub runs_csv: Option<PathBuf>,

    /// Column of the time of a run, NAME or NAME:UNIT.
    #[arg(long, value_name = "COLUMN", requires = "runs_csv", alias = "time")]
    pub duration: Option<String>,

    /// Column of the energy, NAME or NAME:UNIT, or A+B.
    #[arg(long, value_name = "COLUMN", requires = "runs_csv")]
    pub energy: Option<String>,

    /// Column of the performance (work per second), instead of the time.
    #[arg(long, value_name = "COLUMN", requires = "runs_csv")]
    pub performance: Option<String>,

    /// Column of the efficiency (work per joule), instead of the energy.
    #[arg(long, value_name = "COLUMN", requires = "runs_csv")]
    pub efficiency: Option<String>,

    /// Learn only from the settings that the design chooses (--design, --sample, --runs), and compare
    /// the predictions with the others.
    #[arg(long, requires = "runs_csv")]
    pub hold_out: bool,

    /// Only rows in which COLUMN has this VALUE; may be repeated.
    #[arg(long = "where", value_name = "COLUMN=VALUE", requires = "runs_csv", value_parser = condition)]
    pub conditions: Vec<(String, String)>,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// What to print: a table for people, or every setting with its prediction as CSV.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// Draw front, zone, runs and recommendation as SVG.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// Write the runs as CSV, as --runs-csv reads it.
    #[arg(long, value_name = "FILE")]
    pub save_runs: Option<PathBuf>,

    /// Show no progress.
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table.
    Text,
    /// Comma-separated values.
    Csv,
}

impl SpaceArgs {
    /// The variables given with their values.
    pub fn given(&self) -> Result<Vec<Variable>, TuneError> {
        let known = [
            ("nodes", Role::Nodes, &self.nodes),
            ("threads", Role::Threads, &self.threads),
            ("cap", Role::PowerCap, &self.power_cap),
            ("freq", Role::Frequency, &self.freq),
        ];
        let mut variables = Vec::new();
        for (name, role, values) in known {
            if let Some(values) = values {
                variables.push(parse_variable(name, role, values)?);
            }
        }
        for text in self.variables.iter().filter(|text| text.contains('=')) {
            variables.push(parse_named_variable(text)?);
        }
        Ok(variables)
    }

    /// The variables given by name alone.
    pub fn columns(&self) -> Vec<String> {
        self.variables.iter().filter(|text| !text.contains('=')).cloned().collect()
    }

    /// The setting that savings refer to.
    pub fn default_setting(&self, space: &Space) -> anyhow::Result<Setting> {
        let mut setting = space.usual_setting();
        for part in self.default.iter().flat_map(|text| text.split(',')) {
            let (name, value) = part.split_once('=').context("--default takes NAME=VALUE,NAME=VALUE")?;
            let name = name.trim();
            let found = space.variables().iter().position(|variable| variable.name == name);
            let Some(index) = found else {
                let names: Vec<&str> =
                    space.variables().iter().map(|variable| variable.name.as_str()).collect();
                bail!("--default names `{name}`, but the variables are: {}", names.join(", "));
            };
            let variable = &space.variables()[index];
            let wanted = parse_variable(name, variable.role, value)
                .ok()
                .and_then(|wanted| wanted.levels().first().cloned())
                .filter(|level| variable.position(level).is_some());
            let by_name = variable.levels().iter().find(|level| level.to_string() == value.trim());
            setting.0[index] = wanted
                .or_else(|| by_name.cloned())
                .with_context(|| format!("--default {name}={value}: {name} has no such value"))?;
        }
        Ok(setting)
    }
}

impl DesignArgs {
    /// The first settings to run, the default setting among them.
    pub fn settings(&self, space: &Space, formula: &Formula, default: usize) -> anyhow::Result<Vec<usize>> {
        self.settings_among(space, (0..space.size()).collect(), formula, default)
    }

    /// The settings that the design chooses from runs that exist: at random only from these, and by a plan as far as
    /// there are such.
    pub fn settings_among(
        &self,
        space: &Space,
        existing: Vec<usize>,
        formula: &Formula,
        default: usize,
    ) -> anyhow::Result<Vec<usize>> {
        let mut settings = match self.design {
            DesignKind::Uniform if self.sample.is_empty() => {
                if self.runs.is_some() {
                    bail!(
                        "--runs is for --design latin and random; the uniform one takes --sample NAME=VALUES"
                    );
                }
                design::uniform(space, &design::usual_counts(space, formula))
            }
            DesignKind::Uniform => self.sampled(space, formula)?,
            kind => {
                let enough = design::usual_counts(space, formula).iter().product();
                let count = self.runs.unwrap_or(enough).min(space.size());
                match kind {
                    DesignKind::Latin => design::latin_hypercube(space, count, self.seed),
                    _ => design::random_among(existing, count, self.seed),
                }
            }
        };
        if !settings.contains(&default) {
            settings.push(default);
        }
        Ok(settings)
    }

    /// The uniform design with the values the user wants of some variables.
    fn sampled(&self, space: &Space, formula: &Formula) -> anyhow::Result<Vec<usize>> {
        let counts = design::usual_counts(space, formula);
        let mut chosen: Vec<Vec<usize>> = space
            .variables()
            .iter()
            .zip(counts)
            .map(|(variable, count)| design::spread(variable, count))
            .collect();
        for text in &self.sample {
            let (name, values) = text.split_once('=').context("--sample takes NAME=VALUES")?;
            let index = space
                .variables()
                .iter()
                .position(|variable| variable.name == name.trim())
                .with_context(|| format!("--sample names `{name}`, which is no variable"))?;
            let variable = &space.variables()[index];
            chosen[index] = parse_variable(name.trim(), variable.role, values)?
                .levels()
                .iter()
                .map(|level| {
                    variable.position(level).with_context(|| {
                        format!("--sample {name}: {} is not in the search space", variable.show(level))
                    })
                })
                .collect::<anyhow::Result<_>>()?;
        }
        Ok(design::combinations(space, &chosen))
    }
}

impl TuneArgs {
    /// What to answer about a space.
    pub fn question(&self, space: &Space) -> anyhow::Result<Question> {
        let GoalArgs { max_slowdown, min_energy, edp, formula, level, measured_error, predicted_error } =
            &self.goal;
        if !(0.5..1.0).contains(level) {
            bail!("--level must be at least 50% and less than 100%");
        }
        Ok(Question {
            formula: formula.clone(),
            default: self.space.default_setting(space)?,
            goal: match (max_slowdown, min_energy, edp) {
                (Some(limit), ..) => Goal::MaxSlowdown(*limit),
                (None, true, _) => Goal::LeastEnergy,
                (None, false, true) => Goal::EnergyDelay,
                (None, false, false) => Goal::MaxSlowdown(USUAL_SLOWDOWN),
            },
            level: *level,
            limits: ErrorLimits { measured: *measured_error, predicted: *predicted_error },
            seed: self.design.seed,
        })
    }

    /// The model's terms for a space.
    pub fn formula(&self, space: &Space) -> Result<Formula, TuneError> {
        match &self.goal.formula {
            Some(text) => Formula::parse(text, space),
            None => Ok(Formula::usual(space)),
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    percentage(text, "20%")
}

/// An example must be one that is taken.
fn confidence(text: &str) -> Result<f64, String> {
    percentage(text, "95%")
}

fn percentage(text: &str, example: &str) -> Result<f64, String> {
    let number =
        text.trim().strip_suffix('%').ok_or_else(|| format!("write a percentage, such as {example}"))?;
    match number.trim().parse::<f64>() {
        Ok(value) if (0.0..=1000.0).contains(&value) => Ok(value / 100.0),
        _ => Err("a percentage from 0% to 1000% is needed".into()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.trim_end_matches('s').parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
