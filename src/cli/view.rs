//! `eprof view`: a page to look at in a browser.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use eprof::analyze::Dimensions;
use eprof::identity::Dimension;
use eprof::report::annotate::{Annotation, Sources, annotate_heaviest};
use eprof::report::html::{self, Extras};
use eprof::report::tree::{CallTree, TreeOptions};
use eprof::report::{Options, Report};

use super::Outcome;
use super::by::{self, tell_what_is_missing};
use super::ending::{self, Named};
use super::flamegraph::RootArg;
use super::folder::folder;
use super::input::InputArgs;
use super::loading::Loaded;
use super::needed::Needed;
use super::new_file::keep_inputs;
use super::output;
use super::recordings;
use super::select_args::SelectArgs;
use super::work_progress::WorkProgress;

mod browser;

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Page {
    Html,
}

impl Named for Page {
    fn endings(self) -> &'static [&'static str] {
        &["html", "htm"]
    }
}

/// The page that is written if the user names none.
const DEFAULT_PAGE: &str = "energy.html";
/// Rows of the table for those without a script.
const PLAIN_ROWS: usize = 40;

const EXAMPLES: &str = "\
Examples:
  eprof view                                  energy.html, and opens it in a browser
  eprof view x.data -o x.html --no-open       only writes it
  eprof view --source                         with the lines of the source that took something
  eprof view --diff before.data               what changed since before.data
  eprof view --thread worker                  of threads of this name alone
  eprof record --view ./app                   records and shows what was recorded";

/// Look at a recording in a browser: power over time, flamegraph, callers and callees, table.
///
/// The page is one file that needs nothing beside it: it can be sent to somebody, and loads nothing.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ViewArgs {
    #[command(flatten)]
    input: InputArgs,

    /// File to write; `-` is standard output.
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_PAGE)]
    output: PathBuf,

    /// Write the page and open no browser.
    #[arg(long)]
    no_open: bool,

    /// Show what changed since this older recording.
    #[arg(long, value_name = "FILE")]
    diff: Option<PathBuf>,

    /// Put the source lines that took something into the page, with those around them. They are found where the
    /// compiler found them, or in FOLDER by their paths or the ends of these.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true, value_parser = folder())]
    source: Option<Option<PathBuf>>,

    /// Leave out the instructions of the functions that took most.
    #[arg(long)]
    no_code: bool,

    /// What stands above the outermost functions.
    #[arg(long, value_enum, default_value_t = RootArg::Auto)]
    root: RootArg,

    /// Of several recordings: what tells them apart, as the frames above all others.
    #[arg(long, value_name = "BY", value_delimiter = ',', value_parser = by::dimension())]
    by: Vec<Dimension>,

    #[command(flatten)]
    select: SelectArgs,
}

/// Runs the verb.
pub fn run(args: ViewArgs) -> Outcome {
    ending::format(Some(Page::Html), Some(&args.output))?;
    output::check_page(Some(&args.output))?;
    let paths = args.input.paths()?;
    let older = args.diff.as_ref().map(|path| recordings::expand(std::slice::from_ref(path))).transpose()?;
    let inputs: Vec<&Path> = paths.iter().chain(older.iter().flatten()).map(PathBuf::as_path).collect();
    keep_inputs(Some(&args.output), &inputs)?;
    let memory = args.input.memory().shared_by(1 + usize::from(older.is_some()));
    let mut newer = args.input.load_all(&paths, needed(), memory)?;
    let older = older.map(|paths| args.input.load_all(&paths, needed(), memory)).transpose()?;
    let progress = WorkProgress::of("adding up");
    let code = args.code(&mut newer)?;
    let tree = args.tree(&newer)?;
    let older_tree = older.as_ref().map(|older| args.tree(older)).transpose()?;
    let report = Report::new(newer.analysis.as_ref(), &newer.symbols, &args.report_options(&newer))?;
    drop(progress);
    let mut sources =
        args.source.as_ref().map(|folder| Sources::new(folder.iter().cloned().collect(), newer.started));
    let extras = Extras {
        symbols: Some(&newer.symbols),
        sources: sources.as_mut(),
        code: code.as_ref(),
        older: older_tree.as_ref(),
    };
    output::write_to(Some(&args.output), |out| html::write_with(&tree, &report, extras, out))?;
    if let Some(sources) = sources {
        output::warn(sources.none_found().into_iter().chain(sources.warnings()));
    }
    // The page folds its notes away.
    output::warn(&newer.profile().warnings);
    // Its program may have been built anew since, and then its functions have no names.
    if let (Some(older), Some(tree)) = (&older, &older_tree) {
        let of_profile = older.profile().warnings.iter().cloned();
        let of_tree = tree.warning().into_iter().chain(tree.warning_of_paths());
        output::warn(of_profile.chain(of_tree).map(|warning| format!("of the older recording: {warning}")));
    }
    if args.output != Path::new("-") {
        if args.no_open {
            output::say(format_args!("{} is written; a browser shows it", args.output.display()));
        } else {
            browser::show(&args.output);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// All that a page shows.
pub fn needed() -> Needed {
    let dimensions = Dimensions { stacks: true, threads: true, cpus: true };
    Needed { dimensions, inline: true, lines: true, slices: true, functions: None }
}

impl ViewArgs {
    /// The code of the functions that took most, if it is wanted; files of several recordings may differ.
    fn code(&self, loaded: &mut Loaded) -> anyhow::Result<Option<Annotation>> {
        if self.no_code || loaded.profile().recordings.len() > 1 {
            return Ok(None);
        }
        let Loaded { analysis, symbols, symbolizer, .. } = loaded;
        let selection = self.select.selection();
        let most = html::MOST_FUNCTIONS_WITH_CODE;
        Ok(Some(annotate_heaviest(analysis.as_ref(), symbols, symbolizer, &selection, most)?))
    }

    fn tree<'a>(&self, loaded: &'a Loaded) -> anyhow::Result<CallTree<'a>> {
        tell_what_is_missing(&self.by, loaded.profile());
        let options = TreeOptions {
            subject: loaded.subject.clone(),
            selection: self.select.selection(),
            no_inline: !self.input.inline(true),
            root: self.root.root(),
            dimensions: self.by.clone(),
            ..TreeOptions::default()
        };
        Ok(CallTree::new(loaded.analysis.as_ref(), &loaded.symbols, &options)?)
    }

    fn report_options(&self, loaded: &Loaded) -> Options {
        Options {
            subject: loaded.subject.clone(),
            selection: self.select.selection(),
            inline: self.input.inline(true),
            limit: Some(PLAIN_ROWS),
            verified: loaded.verified.clone(),
            ..Options::default()
        }
    }
}
