//! Estimates by a model that was made before: this machine's calibration, a preset or a file.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use eprof::hardware::{CoreKind, Role};
use eprof::power_model::model::{ModelEvent, PowerModel, Prediction, Scale};
use eprof::power_model::presets::Preset;
use serde_json::json;

use super::args::{Format, PredictArgs};
use super::rows::{self, Predicted, print_csv, print_rows};
use crate::cli::Outcome;
use crate::cli::model::show;

/// Runs the verb for the model of this name.
pub(super) fn run(args: &PredictArgs, name: &str) -> Outcome {
    let (model, of) = match Preset::named(name) {
        Some(preset) => (preset.model(), String::new()),
        None => {
            let stored = show::stored(name)?;
            (stored.model, format!(", for {}", stored.cpu_identity))
        }
    };
    ensure!(
        model.scale == Scale::Joules,
        "`{name}` knows only what events cost beside each other, not in joules: make a model with `eprof calibrate`"
    );
    let domain = model.domain(args.domain).with_context(|| {
        let kinds: Vec<String> = model.domains.keys().map(ToString::to_string).collect();
        format!("`{name}` has no model of {}; it has: {} (--domain)", args.domain, kinds.join(", "))
    })?;
    // What an event costs nothing, its rate does not matter.
    let needed: Vec<usize> = (0..model.events.len())
        .filter(|&event| domain.joules_per_event.get(event).is_some_and(|cost| *cost > 0.0))
        .collect();
    let columns = |names: &[String]| -> anyhow::Result<Vec<String>> {
        needed.iter().map(|&event| column(&model, &model.events[event], names, &args.roles)).collect()
    };
    let rates = args.observe.rates_for(&args.rates, columns)?;
    let predicted: Vec<Predicted> = rates
        .rows
        .iter()
        .filter_map(|row| {
            let mut of_events = vec![0.0; model.events.len()];
            needed.iter().zip(&row.rates).for_each(|(&event, rate)| of_events[event] = *rate);
            let Prediction { watts, interval } =
                model.predict(args.domain, &of_events, args.packages, args.level / 100.0)?;
            Some(Predicted { of: row, watts, interval, is_beyond: None, is_limited: false })
        })
        .collect();
    let title = format!("{}: {}{of}", model.name, model.source);
    let mut out = io::stdout().lock();
    match args.format {
        Format::Csv => print_csv(&mut out, &predicted)?,
        Format::Json => {
            let whole = json!({
                "model": title, "notes": rates.notes, "level": args.level / 100.0,
                "domain": args.domain.to_string(),
                "rows": predicted.iter().map(rows::json).collect::<Vec<_>>(),
            });
            serde_json::to_writer_pretty(&mut out, &whole)?;
            writeln!(out)?;
        }
        Format::Text => {
            for note in &rates.notes {
                writeln!(out, "note: {note}")?;
            }
            writeln!(out, "model: {title}")?;
            match domain.quality.and_then(|quality| quality.left_out_error) {
                Some(error) => writeln!(
                    out,
                    "{:.2} % off for workloads left out when it was made; intervals of {} % follow from that and from the \
                     errors of its coefficients",
                    100.0 * error,
                    args.level
                )?,
                None => writeln!(
                    out,
                    "note: no intervals: the model does not say how far off it is for what it does not know; \
                     `eprof calibrate` makes one that does"
                )?,
            }
            print_rows(&mut out, &predicted)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The column that counts an event: one that was named for its role, or has its name or encoding, or else the only one
/// whose name says that it counts what the event does.
fn column(
    model: &PowerModel,
    event: &ModelEvent,
    names: &[String],
    roles: &[(Role, String)],
) -> anyhow::Result<String> {
    let given =
        roles.iter().find(|(role, _)| Some(*role) == event.role && event.core_kind == CoreKind::Performance);
    if let Some((_, column)) = given {
        return Ok(column.clone());
    }
    if let Some(name) = names.iter().find(|name| **name == event.name || **name == event.encoding) {
        return Ok(name.clone());
    }
    let of_role = model.events.iter().filter(|other| other.role == event.role).count();
    let alike: Vec<&String> =
        names.iter().filter(|name| event.role.is_some() && Role::suggested_by(name) == event.role).collect();
    match (alike.as_slice(), of_role) {
        ([only], 1) => Ok((*only).clone()),
        _ => {
            let repair = event.role.map_or_else(
                || format!("call it `{}`", event.name),
                |role| format!("name it with --roles {}=COLUMN", role.name()),
            );
            bail!(
                "which column counts {} ({})? {repair}; the columns are: {}",
                event.role_name(),
                event.encoding,
                names.join(", ")
            )
        }
    }
}
