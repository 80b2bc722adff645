//! `eprof completions` and `eprof man`: what a package of eprof installs beside the binary.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::Shell;

use super::Outcome;
use super::output::write_file;

/// Print the completions of a shell.
#[derive(Args)]
#[command(
    after_help = "Example:\n  eprof completions bash > ~/.local/share/bash-completion/completions/eprof"
)]
pub struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Write the manual pages.
#[derive(Args)]
#[command(after_help = "Example:\n  eprof man -o ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Folder to write one page per verb into; the first page alone goes to standard output without it.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Runs `eprof completions`.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Outcome {
    let name = command.get_name().to_owned();
    // Into memory first: the generator panics if its output goes away.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `eprof man`.
pub fn man(args: &ManArgs, mut command: Command) -> Outcome {
    // `eprof help VERB` is what the page of the verb is; it has none of its own, and no page refers to it.
    command = without_help_verb(command);
    command.build();
    match &args.output {
        None => clap_mangen::Man::new(command).render(&mut io::stdout().lock())?,
        Some(folder) => {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            write_pages(&command, "", folder)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The command and all below it without the verb `help`.
fn without_help_verb(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help_verb)
}

/// Writes `eprof.1`, `eprof-record.1` and so on.
fn write_pages(command: &Command, prefix: &str, folder: &Path) -> anyhow::Result<()> {
    let name = format!("{prefix}{}", command.get_name());
    let path = folder.join(format!("{name}.1"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name.to_uppercase()).render(&mut page)?;
    write_file(&path, page)?;
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    verbs.into_iter().try_for_each(|verb| write_pages(verb, &format!("{name}-"), folder))
}
