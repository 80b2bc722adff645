//! `eprof push`: a folder of tables into a database of ClickHouse.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use eprof::push::clickhouse::{PASSWORD_VARIABLE, Sender, Server, Target, create_tables};
use eprof::push::{Backoff, PushError, SecretSource, Strays, Trust, strays, windows};

use super::Outcome;
use super::agent::Span;
use super::denied;
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

What the database has acknowledged is remembered in the folder, and compared with what it has: what is gone, as of a
database that was made anew, is sent again. Where a part of a window's rows is lost, `eprof fleet` refuses to answer:
push --again. A server that is away is tried again; what was sent twice counts once in `eprof fleet`. Who asks the tables
by SQL of their own takes of each recording the last push alone:
  SELECT SUM(joules) FROM samples WHERE is_top = 1
    AND (recording, push) IN (SELECT recording, MAX(push) FROM pushes GROUP BY recording)
Recordings of one machine and one time belong into one export: two exports of them are two of its meters' joules.
kernel-notes/clickhouse.md describes the tables, for servers of several shards, too.";

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

    /// Send everything again, whatever the database acknowledged before, as where rows of it were deleted: what it has twice
    /// counts once.
    #[arg(long)]
    again: bool,

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
        output::warn(password.warning());
    }
    // Before anything is written into it: it may not be a folder of tables.
    let whole =
        windows(&folder).map_err(or_whose)?.into_iter().filter(|window| window.is_whole(&folder)).count();
    let Strays { pieces, foreign } = strays(&folder).map_err(or_whose)?;
    output::warn(foreign.iter().map(|path| format!("left out: {} is no table of eprof", path.display())));
    output::warn(pieces.iter().map(|why| format!("left out: {why}")));
    if whole == 0 {
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
    let mut sender = Sender::new(&folder, server).map_err(or_whose)?;
    if args.again {
        sender.send_all_again()?;
    }
    let waiting = sender.waiting()?.len();
    let mut counts =
        Counts { there: whole.saturating_sub(waiting), waiting, broken: pieces.len(), ..Counts::default() };
    let line = ProgressLine::new(false, false);
    let pushed = push(&mut sender, &mut counts, args.retry_for.0, &line);
    line.clear();
    pushed.with_context(|| {
        let again = if counts.waiting > 0 { "; the same command goes on with those that wait" } else { "" };
        format!("{name}: {counts}{again}")
    })?;
    match counts {
        Counts { sent: 0, broken: 0, .. } => {
            output::say(format_args!("{name} has all of {} already: {counts}", folder.display()))
        }
        _ => output::say(format_args!("{name}: {counts}, of {}", folder.display())),
    }
    Ok(if counts.broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is wrong, and where the system denies something, whose that is.
fn or_whose(error: PushError) -> anyhow::Error {
    match &error {
        PushError::File { path, cause, .. } => {
            let (path, kind) = (path.clone(), cause.kind());
            denied::or_whose(error, kind, &path)
        }
        _ => error.into(),
    }
}

/// What became of the windows of a folder. One that an agent removes meanwhile is found no more.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    sent: usize,
    /// Rows of those.
    rows: u64,
    /// What the server had before.
    there: usize,
    /// What is not whole or cannot be read.
    broken: usize,
    waiting: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, rows, there, broken, waiting } = self;
        let found = sent + there + broken + waiting;
        let plural = if found == 1 { "" } else { "s" };
        write!(
            to,
            "{found} window{plural} found: {sent} sent ({rows} rows), {there} there already, {broken} broken, {waiting} waiting"
        )
    }
}

/// Sends until nothing waits, or nothing has gone well for so long.
fn push(
    sender: &mut Sender,
    counts: &mut Counts,
    retry_for: Duration,
    line: &ProgressLine,
) -> anyhow::Result<()> {
    let name = sender.server().target().name();
    let mut backoff = Backoff::new(LONGEST_PAUSE);
    let mut last_success = Instant::now();
    let mut told = None;
    loop {
        let (sent, left) = (counts.sent, counts.waiting);
        line.show(format_args!("{sent} of {} windows pushed; waiting for {name}", sent + left));
        let failure = match sender.step() {
            Ok(step) => {
                backoff.succeeded();
                (last_success, told) = (Instant::now(), None);
                counts.sent += step.pushed.windows;
                counts.rows += step.pushed.rows;
                counts.broken += step.left_out.len();
                counts.waiting = step.waiting;
                counts.there = counts.there.saturating_sub(step.lost);
                output::warn(step.lost_told(&name));
                output::warn(step.left_out.iter().map(|why| format!("left out: {why}")));
                if step.waiting == 0 {
                    return Ok(());
                }
                continue;
            }
            Err(failure) => failure,
        };
        // What went wrong says more than a folder that cannot be read now.
        counts.waiting = sender.waiting().map_or(counts.waiting, |waiting| waiting.len());
        if !failure.is_temporary() {
            return Err(failure.into());
        }
        let pause = backoff.failed(failure.after);
        let left = retry_for.saturating_sub(last_success.elapsed());
        // What the server asks for is waited for in full; a little more keeps many senders from coming back at once.
        if failure.after.unwrap_or(pause) >= left {
            let why = failure.after.filter(|_| !retry_for.is_zero()).map(|_| {
                format!(
                    ", which is longer than --retry-for {} s allows: give it more, or push again then",
                    retry_for.as_secs_f64()
                )
            });
            bail!("{failure}{}", why.unwrap_or_default());
        }
        if told != Some(failure.after) {
            told = Some(failure.after);
            let when = failure
                .after
                .map_or(String::new(), |asked| format!(" in {} s, as it asks,", asked.as_secs()));
            output::say(format_args!(
                "trying again{when} for {} s at most: {failure}",
                retry_for.as_secs_f64()
            ));
        }
        thread::sleep(pause.min(left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_the_sum() {
        let counts = Counts { sent: 2, rows: 70, there: 3, broken: 4, waiting: 5 };
        let text = "14 windows found: 2 sent (70 rows), 3 there already, 4 broken, 5 waiting";
        assert_eq!(counts.to_string(), text);
        assert!(Counts { sent: 1, ..Counts::default() }.to_string().starts_with("1 window found: 1 sent"));
    }
}
