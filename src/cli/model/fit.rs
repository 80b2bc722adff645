//! `eprof model fit`: a straight-line model of the best few events, with all that speaks for and against it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use eprof::hardware::{CoreKind, DomainKind, Role};
use eprof::machine::Roots;
use eprof::machine::cpuinfo::CpuIdentity;
use eprof::numerics::nnls::Sign;
use eprof::power_model::dataset::Dataset;
use eprof::power_model::error::ModelError;
use eprof::power_model::fit::{Fit, FitOptions, Prior, Weighting};
use eprof::power_model::folder;
use eprof::power_model::model::{DomainModel, FitQuality, ModelEvent, PowerModel, Scale};
use eprof::power_model::presets::Preset;
use eprof::power_model::select::best_events;
use eprof::power_model::stored::{STORED_FORMAT, StoredModel};
use eprof::power_model::validate::{Protocol, validate};
use eprof::units::{Joules, Watts};

use super::super::Outcome;
use super::super::letters;
use super::super::new_file::keep_inputs;
use super::super::output::write_file;
use super::observe::{ObserveArgs, describe};
use super::show::folder_for_new;

/// Fit watts = static + sum of joules per event * rate to measurements.
///
/// Takes the best events, at most --max-events, judged on workloads left out; --use-all takes them as
/// they are. Coefficients are never negative unless --signed.
#[derive(Args)]
#[command(after_help = "Examples:
  eprof model fit --target watts --group job runs.csv
  eprof model fit --target watts runs.csv --max-events 2 -o model.json
  eprof model fit hpl.perf sleep.perf stream.perf --store     # perf stat -a -I 100 -x,")]
pub struct FitArgs {
    #[command(flatten)]
    observe: ObserveArgs,

    /// Largest number of events of the model.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = most_events())]
    max_events: usize,

    /// Take all events instead of choosing.
    #[arg(long)]
    use_all: bool,

    /// Allow coefficients below zero. Such a model gives no sampling periods.
    #[arg(long)]
    signed: bool,

    /// Make errors in watts small instead of relative errors.
    #[arg(long)]
    absolute: bool,

    /// Draw the fit to this model: a preset's name or a model file. Events are matched by role.
    #[arg(long, value_name = "MODEL")]
    prior: Option<String>,

    /// How much the prior counts: 1 weighs as much as all the data.
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.1, requires = "prior")]
    prior_strength: f64,

    /// What the power is of: package, cores or dram [default: by the column's name].
    #[arg(long, value_name = "KIND", value_parser = domain)]
    domain: Option<DomainKind>,

    /// Roles of the columns in the model, if their names do not tell: clk=COL,inst=COL,resource=COL,
    /// l2=COL,llc-miss=COL.
    #[arg(long, value_name = "ROLE=COL,...", value_delimiter = ',', value_parser = role)]
    roles: Vec<(Role, String)>,

    /// Write the model to this file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Keep the model for this kind of CPU, as `eprof record` will find it.
    #[arg(long)]
    store: bool,

    /// The CPU that was measured [default: this machine's].
    #[arg(long, value_name = "IDENTITY")]
    cpu: Option<String>,
}

/// Runs the verb.
pub fn run(args: FitArgs) -> Outcome {
    let prior = args.prior.as_ref().filter(|name| Preset::named(name).is_none()).map(Path::new);
    let inputs: Vec<&Path> = args.observe.files().chain(prior).collect();
    keep_inputs(args.output.as_deref(), &inputs)?;
    let observed = args.observe.observe()?;
    let mut out = letters::stdout();
    for note in &observed.notes {
        writeln!(out, "note: {note}")?;
    }
    writeln!(out, "{}", describe(&observed.data))?;
    let parts = args.observe.parts(observed.data);
    let keep = args.output.is_some() || args.store;
    ensure!(
        !(keep && parts.len() > 1),
        "a model file holds one model, and --frequency makes {}; pick one with --where",
        parts.len()
    );
    for (frequency, data) in &parts {
        if let Some(frequency) = frequency {
            writeln!(out, "\nfrequency {frequency}")?;
        }
        let chosen = args.choose(data)?;
        let options = args.options(&chosen)?;
        let fit = Fit::new(&chosen, &options)?;
        let left_out = left_out_error(&args, data);
        print(&mut out, &fit, left_out, &args)?;
        if keep {
            args.keep(&mut out, &fit, left_out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl FitArgs {
    fn base_options(&self) -> FitOptions {
        FitOptions {
            sign: if self.signed { Sign::Free } else { Sign::NonNegative },
            weighting: if self.absolute { Weighting::Absolute } else { Weighting::Relative },
            prior: None,
        }
    }

    /// The data with the columns of the model only.
    fn choose(&self, data: &Dataset) -> Result<Dataset, ModelError> {
        if self.use_all {
            return Ok(data.clone());
        }
        Ok(data.select(&best_events(data, self.max_events, &self.base_options())?))
    }

    fn options(&self, data: &Dataset) -> anyhow::Result<FitOptions> {
        let mut options = self.base_options();
        if let Some(name) = &self.prior {
            let model = match Preset::named(name) {
                Some(preset) => preset.model(),
                None => folder::read(name.as_ref())?.model,
            };
            let domain = self.domain();
            let known = model.domain(domain).with_context(|| format!("`{name}` has no model of {domain}"))?;
            let coefficients = data
                .columns()
                .iter()
                .map(|column| {
                    let role = self.role_of(column).with_context(|| {
                        format!("no role of column `{column}` to find it in the prior; give one with --roles")
                    })?;
                    let event = model.event(role, CoreKind::Performance);
                    let event = event.with_context(|| format!("`{name}` has no event of role {role}"))?;
                    known.joules_per_event.get(event).copied().context("the prior has no such coefficient")
                })
                .collect::<anyhow::Result<_>>()?;
            options.prior = Some(Prior { coefficients, strength: self.prior_strength });
        }
        Ok(options)
    }

    fn role_of(&self, column: &str) -> Option<Role> {
        let named = self.roles.iter().find(|(_, name)| name == column).map(|(role, _)| *role);
        named.or_else(|| Role::suggested_by(column))
    }

    fn domain(&self) -> DomainKind {
        let column = self.observe.power_column().to_ascii_lowercase();
        self.domain.unwrap_or_else(|| {
            if column.contains("dram") || column.contains("ram") || column.contains("memory") {
                DomainKind::Dram
            } else if column.contains("core") {
                DomainKind::Cores
            } else {
                DomainKind::Package
            }
        })
    }

    fn keep(&self, out: &mut impl Write, fit: &Fit, left_out: Option<f64>) -> anyhow::Result<()> {
        if fit.coefficients.iter().any(|coefficient| coefficient.value < 0.0) {
            bail!(
                "a model with negative coefficients gives no sampling periods and is not kept; leave out --signed"
            );
        }
        let here = CpuIdentity::read(&Roots::default());
        let stored = StoredModel {
            format: STORED_FORMAT,
            eprof_version: env!("CARGO_PKG_VERSION").to_owned(),
            cpu_model: if self.cpu.is_some() { String::new() } else { here.model },
            cpu_identity: self.cpu.clone().unwrap_or(here.identity),
            created_unix: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            model: self.model(fit, left_out),
        };
        if let Some(path) = &self.output {
            write_file(path, stored.to_json()?)?;
            writeln!(out, "model written to {}", path.display())?;
        }
        if self.store {
            let path = folder_for_new()?.save(&stored)?;
            writeln!(out, "model for {} kept in {}", stored.cpu_identity, path.display())?;
        }
        Ok(())
    }

    fn model(&self, fit: &Fit, left_out: Option<f64>) -> PowerModel {
        let domain = DomainModel {
            static_power: Watts::from_watts(fit.constant.value),
            static_std_error: fit.constant.std_error.map(Watts::from_watts),
            sampled_by: Vec::new(),
            joules_per_event: fit.coefficients.iter().map(|c| c.value).collect(),
            std_errors: fit.coefficients.iter().map(|c| c.std_error.unwrap_or(0.0)).collect(),
            quality: Some(FitQuality {
                r_squared: fit.r_squared,
                left_out_error: left_out,
                left_out_worst: None,
                workloads: fit.workloads,
                condition: fit.condition,
                rows: fit.rows,
            }),
        };
        let event = |column: &String| ModelEvent {
            role: self.role_of(column),
            name: column.clone(),
            encoding: column.clone(),
            core_kind: CoreKind::Performance,
        };
        PowerModel {
            name: "fitted".to_owned(),
            source: format!("eprof model fit, {} rows", fit.rows),
            scale: Scale::Joules,
            events: fit.columns.iter().map(event).collect(),
            domains: BTreeMap::from([(self.domain(), domain)]),
        }
    }
}

/// The error for workloads left out, events chosen anew each time; `None` where that cannot be said.
fn left_out_error(args: &FitArgs, data: &Dataset) -> Option<f64> {
    let train = |data: &Dataset| {
        let chosen = args.choose(data)?;
        let columns: Vec<usize> = chosen
            .columns()
            .iter()
            .filter_map(|name| data.columns().iter().position(|c| c == name))
            .collect();
        Ok((Fit::new(&chosen, &args.base_options())?, columns))
    };
    let watts = |(fit, columns): &(Fit, Vec<usize>), rates: &[f64]| {
        fit.watts(&columns.iter().map(|&column| rates[column]).collect::<Vec<_>>())
    };
    validate(data, Protocol::LeaveOneWorkloadOut, train, watts)
        .ok()
        .map(|validation| validation.mean_over_folds())
}

fn print(out: &mut impl Write, fit: &Fit, left_out: Option<f64>, args: &FitArgs) -> io::Result<()> {
    let width = fit.columns.iter().map(|name| name.chars().count()).max().unwrap_or(0).clamp(8, 40);
    writeln!(
        out,
        "\n{:<width$} {:>12} {:>11} {:>16}  role",
        "event", "joules each", "±", "events per joule"
    )?;
    let constant = fit.constant;
    let error =
        constant.std_error.map_or("at its bound".to_owned(), |error| Watts::from_watts(error).to_string());
    writeln!(out, "{:<width$} {:>12} {error:>11}", "static", Watts::from_watts(constant.value).to_string())?;
    for (name, coefficient) in fit.columns.iter().zip(&fit.coefficients) {
        let error = coefficient.std_error.map_or("at its bound".to_owned(), |error| format!("{error:.2e}"));
        let period = if coefficient.value > 0.0 {
            format!("{:.0}", 1.0 / coefficient.value)
        } else {
            "none".to_owned()
        };
        let role = args.role_of(name).map_or("", Role::name);
        writeln!(out, "{name:<width$} {:>12.4e} {error:>11} {period:>16}  {role}", coefficient.value)?;
    }
    match fit.workloads {
        Some(workloads) => writeln!(
            out,
            "\n± is the standard error by leaving each of the {workloads} workloads out in turn"
        )?,
        None => writeln!(
            out,
            "\n± is the standard error by the scatter of rows, as if none had to do with another: too small where \
             rows resemble their neighbours; tell three workloads or more apart with --group"
        )?,
    }
    writeln!(out, "R2 {:.4}, mean error {:.2} % on its own rows", fit.r_squared, 100.0 * fit.mean_error)?;
    match left_out {
        Some(error) => {
            writeln!(out, "mean error {:.2} % with each workload left out in turn", 100.0 * error)?
        }
        None => writeln!(out, "no error for workloads left out: too few workloads")?,
    }
    let warning = if fit.is_ill_conditioned() {
        ": the columns resemble each other, so single coefficients mean little"
    } else {
        ""
    };
    writeln!(out, "condition number {:.1}{warning}", fit.condition)?;
    if fit.columns.len() > 1 && fit.coefficients.iter().any(|c| c.std_error.is_none()) {
        writeln!(out, "an event at its bound explains nothing that the others do not")?;
    }
    if args.domain() != DomainKind::Dram && fit.constant.value > 0.0 {
        let periods = Joules::from_joules(1.0);
        writeln!(
            out,
            "sampling every `events per joule` of each event gives one sample per {periods} of its share"
        )?;
    }
    Ok(())
}

/// How many events a model may have at most.
pub(super) fn most_events() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// Reads `ROLE=COLUMN`.
pub(super) fn role(text: &str) -> Result<(Role, String), String> {
    let (role, column) = text.split_once('=').ok_or("write ROLE=COLUMN")?;
    let role =
        Role::named(role).ok_or_else(|| format!("roles are {}", Role::ALL.map(Role::name).join(", ")))?;
    Ok((role, column.to_owned()))
}

/// A kind of domain, by the name that models have for it.
pub(super) fn domain(text: &str) -> Result<DomainKind, String> {
    DomainKind::named(text)
        .ok_or_else(|| format!("kinds of domain are {}", DomainKind::ALL.map(DomainKind::name).join(", ")))
}
