//! `eprof model show`: the models there are, and what they say.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use eprof::machine::Roots;
use eprof::machine::cpuinfo::CpuIdentity;
use eprof::power_model::folder::{self, ModelFolder, ModelFolders};
use eprof::power_model::model::{PowerModel, Scale};
use eprof::power_model::presets::Preset;
use eprof::power_model::stored::StoredModel;
use eprof::units::Joules;
use nix::unistd::Uid;

use super::super::Outcome;
use super::super::letters;

/// Show a power model: its coefficients and the sampling periods that follow.
///
/// Without MODEL, lists the models there are and says which one fits this machine.
#[derive(Args)]
#[command(after_help = "Examples:
  eprof model show                all models there are
  eprof model show stored         what `eprof calibrate` kept of this machine
  eprof model show model.json --energy 0.01")]
pub struct ShowArgs {
    /// A preset's name (sandybridge, generic), `stored` for this machine's, or a model file.
    #[arg(value_name = "MODEL")]
    model: Option<String>,

    /// Joules per sample, for the periods.
    #[arg(long, value_name = "JOULES", default_value_t = 1.0, value_parser = joules)]
    energy: f64,
}

/// Reads an energy that periods can be made of.
fn joules(text: &str) -> Result<f64, String> {
    let joules: f64 = text.parse().map_err(|_| "a number of joules, as 0.01".to_owned())?;
    if joules > 0.0 && joules.is_finite() { Ok(joules) } else { Err("more than 0 and finite".to_owned()) }
}

/// Runs the verb.
pub fn run(args: &ShowArgs) -> Outcome {
    let mut out = letters::stdout();
    let energy = Joules::from_joules(args.energy);
    let Some(name) = &args.model else {
        list(&mut out)?;
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(preset) = Preset::named(name) {
        print(&mut out, &preset.model(), energy)?;
        return Ok(ExitCode::SUCCESS);
    }
    let stored = stored(name)?;
    writeln!(
        out,
        "for {} ({}), made by eprof {}",
        stored.cpu_identity, stored.cpu_model, stored.eprof_version
    )?;
    print(&mut out, &stored.model, energy)?;
    Ok(ExitCode::SUCCESS)
}

/// The model of this machine, if `stored` is its name, or of a file.
pub fn stored(name: &str) -> anyhow::Result<StoredModel> {
    if name != "stored" {
        return Ok(folder::read(Path::new(name))?);
    }
    let identity = CpuIdentity::read(&Roots::default()).identity;
    folders().find(&identity)?.with_context(|| {
        let places: Vec<String> =
            folders().iter().map(|folder| folder.path().display().to_string()).collect();
        format!(
            "no model of this CPU ({identity}) in {}; make one with `eprof calibrate`",
            places.join(" or ")
        )
    })
}

/// Where this user's models are looked for.
pub fn folders() -> ModelFolders {
    ModelFolders::of_user(env::var_os("XDG_CONFIG_HOME").as_deref(), home().as_deref())
}

/// Where a new model of this user is kept.
pub fn folder_for_new() -> anyhow::Result<ModelFolder> {
    let (is_root, config) = (Uid::effective().is_root(), env::var_os("XDG_CONFIG_HOME"));
    folder::folder_for_new(is_root, config.as_deref(), home().as_deref()).context(
        "this user has no home folder to keep models in: name a file with -o, or set XDG_CONFIG_HOME",
    )
}

/// The home folder: `HOME`, or what the list of users says.
fn home() -> Option<OsString> {
    env::home_dir().map(PathBuf::into_os_string)
}

fn list(out: &mut impl Write) -> anyhow::Result<()> {
    let here = CpuIdentity::read(&Roots::default());
    writeln!(out, "this CPU: {} ({})", here.identity, here.model)?;
    writeln!(out, "\npresets")?;
    for preset in Preset::ALL {
        writeln!(out, "  {:<12} {}", preset.name(), preset.model().source)?;
    }
    let folders = folders();
    for folder in folders.iter() {
        let stored = folder.list();
        writeln!(out, "\nstored in {}", folder.path().display())?;
        if stored.is_empty() {
            writeln!(out, "  none; `eprof calibrate` makes one")?;
        }
        for (_, model) in &stored {
            match model {
                Ok(model) => writeln!(out, "  {:<28} {}", model.cpu_identity, model.model.source)?,
                Err(error) => writeln!(out, "  {error}")?,
            }
        }
    }
    let chosen = match folders.find(&here.identity) {
        Ok(Some(_)) => "the stored one".to_owned(),
        Ok(None) => {
            let preset = Preset::for_microarchitecture(here.microarchitecture.as_deref());
            format!("the preset {}", preset.name())
        }
        Err(error) => format!("none: {error}"),
    };
    writeln!(out, "\nfor this machine: {chosen}")?;
    Ok(())
}

/// Prints a model, with the periods at which an event stands for `energy`.
pub fn print(out: &mut impl Write, model: &PowerModel, energy: Joules) -> io::Result<()> {
    writeln!(out, "{}: {}", model.name, model.source)?;
    if model.scale == Scale::Relative {
        writeln!(out, "proportions only; measured energy gives the scale")?;
    }
    let width = model.events.iter().map(|event| event.name.chars().count()).max().unwrap_or(0).max(8);
    let roles = model.events.iter().map(|event| event.role_name().chars().count()).max().unwrap_or(0).max(9);
    for (kind, domain) in &model.domains {
        writeln!(out, "\n{kind}: static {}", domain.static_power)?;
        if let Some(quality) = domain.quality {
            write!(
                out,
                "R2 {:.4}, condition number {:.1}, {} rows",
                quality.r_squared, quality.condition, quality.rows
            )?;
            match (quality.left_out_error, quality.left_out_worst) {
                (Some(error), Some(worst)) => writeln!(
                    out,
                    ", {:.2} % off for workloads left out, {:.2} % for the worst",
                    100.0 * error,
                    100.0 * worst
                )?,
                (Some(error), None) => writeln!(out, ", {:.2} % off for workloads left out", 100.0 * error)?,
                (None, _) => writeln!(out)?,
            }
        }
        writeln!(
            out,
            "{:<roles$} {:<width$} {:>12} {:>12} {:>20}",
            "role",
            "event",
            "joules each",
            "±",
            format!("events per {energy}")
        )?;
        for (index, event) in model.events.iter().enumerate() {
            let cost = domain.joules_per_event.get(index).copied().unwrap_or(0.0);
            let error = domain.std_errors.get(index).map_or(String::new(), |&error| match (cost, error) {
                (0.0, 0.0) => "at its bound".to_owned(),
                _ => format!("{error:.2e}"),
            });
            let period =
                model.period(*kind, index, energy).map_or("none".to_owned(), |period| period.to_string());
            writeln!(
                out,
                "{:<roles$} {:<width$} {cost:>12.4e} {error:>12} {period:>20}",
                event.role_name(),
                event.name
            )?;
        }
    }
    Ok(())
}
