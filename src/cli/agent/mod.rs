//! `eprof agent`: the continuous recorder of a machine.
//!
//! ```text
//!   session    a recording of everything, in memory ──► windows ──► pipeline ─┬─► folder   tables, the oldest removed ─┐
//!   settings   options and a file                                             ├─► metrics ──► http   for scrapers     │
//!                                                                             └─► push     to databases, collectors ◄─┘
//! ```
//!
//! The recorder runs in the first thread, the windows are made in a second one: `session`. When settings change or a meter falls
//! silent, the recording ends with a last window and the next one begins.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use clap::Args;
use eprof::machine::Roots;
use eprof::machine::permissions::Permissions;
use eprof::process::Credentials;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Uid;

use super::Outcome;
use super::output::say;
use super::tables_folder;
use alone::Alone;
use folder::Folder;
use log::Log;
use metrics::Bounds;
use pipeline::{Kept, Pipeline, listen};
use push::Pushing;
use session::End;
use settings::{Asked, Choices, Listen, Settings};
use shared::Shared;
use units::Manager;
pub use values::Span;

mod alone;
mod clocks;
mod folder;
mod http;
mod log;
mod metrics;
mod pipeline;
mod places;
mod push;
mod receivers;
mod rights;
mod session;
mod settings;
mod shared;
mod units;
mod values;
mod waiting;

const EXAMPLES: &str = "\
Examples:
  eprof agent -o /var/lib/eprof                     windows of a minute, and /metrics on 127.0.0.1:9753
  eprof agent -o /var/lib/eprof --listen 10.0.0.5:9753   scraped from elsewhere: whoever reaches it may read
  eprof agent -o /var/lib/eprof --duty 1% --keep 30d     cheaper, and for longer
  eprof agent -o /var/lib/eprof --push clickhouses://eprof@db/energy --push-password-file /etc/eprof/password
  eprof agent -o /var/lib/eprof --otlp https://collector:4318 --otlp-token-file /etc/eprof/token
  eprof agent --config /etc/eprof-agent.json        {\"output\": \"/var/lib/eprof\", \"window\": \"60s\", ...}
  eprof agent --print-unit systemd                  what a service manager needs
  eprof fleet report /var/lib/eprof                 where the joules went, of all windows

SIGTERM and SIGINT end it with a last window; SIGHUP reads the configuration again.";

/// Record a machine for as long as it runs: energy by function and control group, as tables and as counters for
/// Prometheus.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct AgentArgs {
    #[command(flatten)]
    choices: Choices,

    /// Read what the options leave open from this file: JSON with the options' names as keys. Read again at SIGHUP.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print what a service manager needs to run the agent with the least rights, and end.
    #[arg(long, value_name = "MANAGER")]
    print_unit: Option<Manager>,
}

/// Runs the verb until a signal ends it.
pub fn run(args: AgentArgs) -> Outcome {
    if let Some(manager) = args.print_unit {
        super::output::write_to(None, |out| out.write_all(manager.unit().as_bytes()))?;
        return Ok(ExitCode::SUCCESS);
    }
    // A path that is not absolute would mean another file should a service manager change the folder.
    let config = args.config.map(std::path::absolute).transpose()?;
    let asked = Asked { options: args.choices, file: config };
    let settings = asked.settings()?;
    if !Permissions::read(&Roots::default()).cpu_wide_events() {
        anyhow::bail!(
            "the whole machine may be sampled by root alone here, or with the right to do so: `eprof doctor` says how to get \
             that, and `eprof agent --print-unit systemd` has it"
        );
    }
    // Between two recordings they wait for the next one.
    let mut mine = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP] {
        mine.add(signal);
    }
    mine.thread_block().context("blocking signals")?;
    give_folder(&settings)?;
    rights::before_opening().context("cannot give up rights")?;

    let log = Arc::new(Log::default());
    let bounds = Bounds { functions: settings.functions, cgroups: settings.cgroups };
    let shared = Arc::new(Mutex::new(Shared::new(bounds)));
    let back: Arc<Mutex<Option<Kept>>> = Arc::default();
    let mut sampled = settings.sampled.clone();
    let mut first = Some((asked, settings));
    loop {
        let mut opened = |_: &eprof::record::StopRequest| {
            let kept = match first.take() {
                Some((asked, settings)) => begin(asked, settings, &shared, &log)?,
                None => {
                    let kept = back.lock().unwrap_or_else(PoisonError::into_inner).take();
                    kept.context("the recording before left nothing; this is a bug of eprof")?
                }
            };
            let (back, shared, log) = (Arc::clone(&back), Arc::clone(&shared), Arc::clone(&log));
            let mut pipeline = Pipeline::new(kept, back, shared, log);
            pipeline.prune();
            Ok(pipeline)
        };
        let end = session::run(&sampled, &shared, &mut opened)?;
        if end == End::Stopped {
            let kept = back.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(Kept { settings, pushing, .. }) = kept {
                for left in pushing.finish() {
                    say(left.told(&settings.output, &settings.receivers));
                }
            }
        }
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if end == End::Stopped {
            shared.is_recording = false;
            let metrics = &shared.metrics;
            say(format_args!(
                "agent ends: {} windows written, {} dropped, {} removed",
                metrics.windows_written, metrics.windows_dropped, metrics.windows_removed
            ));
            return Ok(ExitCode::SUCCESS);
        }
        shared.metrics.restarts += 1;
        if let Some(kept) = &*back.lock().unwrap_or_else(PoisonError::into_inner) {
            sampled = kept.settings.sampled.clone();
        }
    }
}

/// What is done once, when events and meters are open for the first time.
fn begin(
    asked: Asked,
    settings: Settings,
    shared: &Arc<Mutex<Shared>>,
    log: &Arc<Log>,
) -> anyhow::Result<Kept> {
    rights::when_open(settings.user.as_deref())?;
    let folder = Folder::open(&settings.output)?;
    // A system without such sockets is no reason to run no agent.
    let alone = Alone::take();
    if matches!(alone, Ok(None)) {
        log.say(
            "alone",
            "warning: another `eprof agent` runs on this machine: both read its meters, and who adds up the tables of both counts \
             its joules twice; stop one of them (systemctl stop eprof-agent)",
        );
    }
    let server = listen(settings.listen, shared, log);
    // Who starts an agent wants to know at once that nobody can scrape it.
    anyhow::ensure!(
        server.is_some() || settings.listen == Listen::Nowhere,
        "the counters cannot be offered: choose another address with --listen, or none"
    );
    let pushing = Pushing::start(&settings.receivers, &settings.output, shared, log)?;
    let every = settings.sampled.window.as_secs_f64();
    let counters =
        server.as_ref().map_or("none".to_owned(), |server| format!("http://{}/metrics", server.address()));
    say(format_args!(
        "agent: windows of {every} s into {}, {} samples a second, counters: {counters}",
        settings.output.display(),
        settings.sampled.frequency
    ));
    pushing.tell();
    Ok(Kept::new(asked, settings, folder, server, pushing, alone.ok().flatten()))
}

/// A folder that root makes for another user is that user's.
fn give_folder(settings: &Settings) -> anyhow::Result<()> {
    let Some(user) = settings.user.as_deref().filter(|_| Uid::effective().is_root()) else { return Ok(()) };
    let credentials = Credentials::of_user(user)?;
    if !settings.output.exists() {
        let cannot = || format!("cannot make the folder {}", settings.output.display());
        tables_folder::make(&settings.output).with_context(cannot)?;
        credentials.give(&settings.output).with_context(cannot)?;
    }
    Ok(())
}
