//! `eprof push`: a folder of tables into a database of ClickHouse.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use eprof::push::clickhouse::{PASSWORD_VARIABLE, Sender, Server, Target, create_tables};
use eprof::push::{Backoff, SecretSource, Strays, Trust, strays, windows};

use super::Outcome;
use super::agent::Span;
use super::output;
use super::progress_line::ProgressLine;

/// Between two tries, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "\
Examples:
  eprof push energy clickhouse://db:8123/energy       what is in the folder and not yet there
  eprof push energy clickhouses://writer@db/energy --password-file /etc/eprof/password
  eprof push --print-tables | clickhouse-client -d energy -n     where eprof may not make tables
  eprof fleet report clickhouse://db:8123/energy      where the joules went

What the database has acknowledged is remembered in the folder. A server that is away is tried again; what was sent twice
counts once. kernel-notes/clickhouse.md describes the tables, for servers of several shards, too.";

/// Put tables of `eprof export --format parquet` or `eprof agent` into a database of ClickHouse.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct PushArgs {
    /// The folder of the tables.
    #[arg(value_name = "DIR", required_unless_present = "print_tables")]
    folder: Option<PathBuf>,

    /// The database, by ClickHouse's HTTP: clickhouse://[USER@]HOST[:PORT]/DATABASE, with TLS clickhouses://.
    #[arg(value_name = "URL", required_unless_present = "print_tables")]
    url: Option<String>,

    /// The file that has the user's password; without it the variable EPROF_PUSH_PASSWORD may have it.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// Believe the authorities in this file (PEM) alone, instead of those that this machine trusts.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Send the password without TLS also to other machines: everybody on the way can read it.
    #[arg(long)]
    allow_plain_http: bool,

    /// How long the server may be away or silent: it is tried again and waited for so long. 0s: it is tried once.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    retry_for: Span,

    /// Print the statements that make the tables, and end.
    #[arg(long, conflicts_with_all = ["folder", "url"])]
    print_tables: bool,
}

/// Runs the verb.
pub fn run(args: PushArgs) -> Outcome {
    if args.print_tables {
        output::write_to(None, |out| out.write_all(create_tables().as_bytes()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (Some(folder), Some(url)) = (args.folder, args.url) else {
        bail!("name a folder of tables and the address of a database");
    };
    let target = Target::parse(&url)?;
    let password = SecretSource::choose(args.password_file.as_deref(), PASSWORD_VARIABLE);
    if let Some(password) = &password {
        // What is wrong with it is told before anything is done.
        password.read()?;
    }
    // Before anything is written into it: it may not be a folder of tables.
    let is_empty = !windows(&folder)?.iter().any(|window| window.is_whole(&folder));
    let Strays { pieces, foreign } = strays(&folder)?;
    output::warn(foreign.iter().map(|path| format!("left out: {} is no table of eprof", path.display())));
    output::warn(pieces.iter().map(|why| format!("left out: {why}")));
    if is_empty {
        bail!(
            "nothing to push: no window is whole in the tables in {}: make some by `eprof export RECORDINGS --format \
             parquet -o DIR` or `eprof agent`",
            folder.display()
        );
    }
    let trust = args.ca.map_or(Trust::System, Trust::File);
    let name = target.name();
    let mut server = Server::new(target, password, &trust, args.allow_plain_http)?;
    server.give_up_after(args.retry_for.0);
    let mut sender = Sender::new(&folder, server)?;
    let all = sender.waiting()?.len();
    let line = ProgressLine::new(false, false);
    let mut backoff = Backoff::new(LONGEST_PAUSE);
    let mut last_success = Instant::now();
    let (mut windows, mut rows, mut left_out) = (0, 0, pieces.len());
    loop {
        line.show(format_args!("{windows} of {all} windows pushed; waiting for {name}"));
        match sender.step() {
            Ok(step) => {
                backoff.succeeded();
                last_success = Instant::now();
                windows += step.pushed.windows;
                rows += step.pushed.rows;
                left_out += step.left_out.len();
                output::warn(step.left_out.iter().map(|why| format!("left out: {why}")));
                if step.waiting == 0 {
                    break;
                }
            }
            Err(failure) if failure.is_temporary() => {
                let pause = backoff.failed(failure.after);
                if last_success.elapsed() + pause > args.retry_for.0 {
                    line.clear();
                    return Err(failure).with_context(|| {
                        format!(
                            "{windows} of {all} windows are pushed; the same command goes on with the others"
                        )
                    });
                }
                if backoff.failures() == 1 {
                    output::say(format_args!("trying again for {:?}: {failure}", args.retry_for.0));
                }
                thread::sleep(pause);
            }
            Err(failure) => {
                line.clear();
                return Err(failure)
                    .with_context(|| format!("{windows} of {all} windows are pushed to {name}"));
            }
        }
    }
    line.clear();
    let plural = if windows == 1 { "" } else { "s" };
    match windows {
        0 if left_out == 0 => output::say(format_args!("{name} has all of {} already", folder.display())),
        _ => {
            output::say(format_args!("{name}: {windows} window{plural}, {rows} rows of {}", folder.display()))
        }
    }
    Ok(if left_out == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
