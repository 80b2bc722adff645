//! `eprof annotate`: a function line by line and instruction by instruction.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use eprof::analyze::Dimensions;
use eprof::label::Label;
use eprof::pattern::pattern;
use eprof::report::annotate::{
    AnnotateOptions, Annotation, CodeOptions, FoundBy, Sources, Syntax, TextOptions, View, annotate,
    precision_of_event, write,
};
use eprof::report::{ReportError, Style};
use regex::Regex;

use super::Outcome;
use super::folder::folder;
use super::input::InputArgs;
use super::needed::Needed;
use super::new_file::keep_inputs;
use super::output::{self, Color};
use super::pager::Paging;
use super::recordings;
use super::select_args::SelectArgs;
use super::work_progress::WorkProgress;

const EXAMPLES: &str = "\
Examples:
  eprof annotate sort_all                      its hottest lines, then its source with their instructions
  eprof annotate sort_all --by instruction     its disassembly alone
  eprof annotate . --limit 3                   the three functions that took most themselves
  eprof annotate memcpy --module libc          of several functions of one name, libc's
  eprof annotate push --inline                 an inlined function, wherever it was put
  eprof annotate sort_all --source ~/src/app   with the source from there";

/// Show what each line and instruction of a function took: the hottest first, then all in their order.
///
/// In the margin stand the share of the function, joules with one standard error (±), watts while it ran, and samples.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct AnnotateArgs {
    /// The function: its name, the end of its path (`sort` for `std::sort`), or a regular expression. Of several, those
    /// that took most come first.
    #[arg(value_name = "FUNCTION")]
    function: String,

    #[command(flatten)]
    input: InputArgs,

    /// What is shown.
    #[arg(long, value_enum, default_value_t = By::Source)]
    by: By,

    /// Only a function in a module whose path matches.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    module: Option<Regex>,

    /// Folder in which source files are found by their paths or the ends of these, before they are looked for where
    /// the compiler found them.
    #[arg(long, value_name = "FOLDER", value_parser = folder())]
    source: Vec<PathBuf>,

    /// Lines shown around each line that took something.
    #[arg(long, value_name = "LINES", default_value_t = 2)]
    context: usize,

    /// Lines or instructions that stand above all others, those that took most.
    #[arg(long, value_name = "ROWS", default_value_t = 5)]
    hottest: usize,

    /// Functions shown where several are meant; 0 for all.
    #[arg(long, value_name = "FUNCTIONS", default_value_t = 10)]
    limit: usize,

    /// How x86 instructions are written.
    #[arg(long, value_enum, default_value_t = SyntaxArg::Att)]
    syntax: SyntaxArg,

    /// File to write instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Columns of the text; 0: as many as it takes [default: COLUMNS, or the terminal's, else as many as code takes].
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,

    /// When to use color.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,

    #[command(flatten)]
    select: SelectArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// Lines of the source, and below each that took something its instructions; instructions alone where no line is
    /// known.
    Source,
    /// Lines of the source alone.
    Line,
    /// Instructions alone, by address.
    Instruction,
}

#[derive(Clone, Copy, ValueEnum)]
enum SyntaxArg {
    /// As in perf and objdump.
    Att,
    /// As in Intel's and AMD's manuals.
    Intel,
}

/// Whether it is the name of a recording rather than of a function. What compilers call functions may also be the name of
/// a program that lies here.
fn is_file_name(text: &str) -> bool {
    let path = Path::new(text);
    path.extension().is_some_and(|ending| ending == "data")
        || (path.is_file() && recordings::fault(path).is_none())
        || (text.ends_with('/') && path.is_dir())
}

/// When the youngest of the programs was written that annotated functions are of, as far as they are here.
fn built(annotation: &Annotation) -> Option<SystemTime> {
    let modules = annotation.functions.iter().map(|function| function.module.as_str());
    modules.filter_map(|path| std::fs::metadata(path).ok()?.modified().ok()).max()
}

/// Runs the verb.
pub fn run(args: AnnotateArgs, paging: Paging) -> Outcome {
    if args.input.is_default() && is_file_name(&args.function) {
        let file = &args.function;
        anyhow::bail!(
            "FUNCTION is missing: {file:?} stands in its place. Name the function before the recording, as in `eprof annotate \
             main {file}`; `eprof report {file}` lists its functions"
        );
    }
    let paths = args.input.paths()?;
    let [path] = &paths[..] else {
        anyhow::bail!("code is shown of one recording, whose files are here: name one file");
    };
    keep_inputs(args.output.as_deref(), &[path])?;
    let needed = Needed {
        dimensions: Dimensions {
            stacks: args.select.needs_stacks(),
            threads: args.select.needs_threads(),
            cpus: false,
        },
        inline: true,
        lines: true,
        slices: false,
        functions: None,
    };
    let mut loaded = args.input.load_file(path, needed, args.input.memory())?;
    let options = AnnotateOptions {
        function: args.function.clone(),
        module: args.module.clone(),
        selection: args.select.selection(),
        code: CodeOptions {
            inline: args.input.inline(false),
            syntax: match args.syntax {
                SyntaxArg::Att => Syntax::Att,
                SyntaxArg::Intel => Syntax::Intel,
            },
        },
        limit: (args.limit > 0).then_some(args.limit),
    };
    let progress = WorkProgress::of("looking at the code");
    let annotation = annotate(loaded.analysis.as_ref(), &loaded.symbols, &mut loaded.symbolizer, &options);
    drop(progress);
    if matches!(annotation, Err(ReportError::NothingToAnnotate { .. })) {
        // Why a name is not known: files without names, or that are others than were recorded.
        output::warn(loaded.symbols.warnings.iter().map(ToString::to_string));
    }
    let annotation = annotation?;
    let to_stdout = output::is_stdout(args.output.as_deref());
    let style = Style {
        width: output::table_width(to_stdout),
        color: to_stdout && args.color.on_stdout(),
        ..Style::default()
    }
    .as_wide_as(args.width);
    let view = match args.by {
        By::Source => View::Source,
        By::Line => View::Line,
        By::Instruction => View::Instruction,
    };
    let mut sources = Sources::new(args.source.clone(), loaded.started).of_program(built(&annotation));
    let profile = loaded.profile();
    let is_otherwise_named = annotation.asked.as_ref().is_some_and(|(_, by)| *by == FoundBy::Pattern);
    // What has no names may be why another function than was meant is shown: that is read first.
    let (before, after) =
        profile.warnings.split_at(if is_otherwise_named { profile.warnings.len() } else { 0 });
    output::warn(before);
    paging.write_text_to(args.output.as_deref(), |out| {
        let sampled = |name: &str| {
            let event = profile.events.iter().find(|event| event.name == name);
            event.is_some_and(|event| event.samples > 0)
        };
        for (name, attr) in loaded.events.iter().filter(|(name, _)| sampled(name)) {
            writeln!(out, "{}: {}", Label::new(name), precision_of_event(attr))?;
        }
        writeln!(out)?;
        let options = TextOptions { view, context: args.context, hottest: args.hottest, style };
        write(&annotation, options, &mut sources, out)
    })?;
    output::warn(after);
    output::warn(sources.warnings());
    Ok(ExitCode::SUCCESS)
}
