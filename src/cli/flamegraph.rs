//! `eprof flamegraph`: a picture of where the joules went.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum};
use eprof::analyze::FunctionsOfStacks;
use eprof::identity::Dimension;
use eprof::report::flamegraph::{self, FlamegraphOptions};
use eprof::report::tree::{CallTree, Direction, Root, TreeOptions};
use eprof::report::{Style, flamegraph_png, flamegraph_text, flamegraph_text_change};

use super::Outcome;
use super::by::{self, tell_what_is_missing};
use super::ending::{self, Named};
use super::input::InputArgs;
use super::loading::Loaded;
use super::needed::Needed;
use super::new_file::keep_inputs;
use super::output::{self, Color};
use super::pager::Paging;
use super::recordings;
use super::select_args::SelectArgs;
use super::work_progress::WorkProgress;

const EXAMPLES: &str = "\
Examples:
  eprof flamegraph                            energy.svg, to be opened in a browser
  eprof flamegraph x.data -o x.svg            of another recording
  eprof flamegraph -o energy.png              a picture of pixels, for where no SVG is shown
  eprof flamegraph --format text              its widest frames in the terminal
  eprof flamegraph --colors kind              native, inlined, kernel code and the like, also where watts are measured
  eprof flamegraph --root thread              each thread apart
  eprof flamegraph --diff before.data         red: spends more than before.data
  eprof flamegraph --diff before.data --format text   what changed, in the terminal
  eprof flamegraph --weight samples -o t.svg  time instead of joules";

/// Draw an energy flamegraph.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct FlamegraphArgs {
    #[command(flatten)]
    input: InputArgs,

    /// A picture for a browser, one of pixels, or text for a terminal [default: as the output's name ends: .svg, .png, .txt;
    /// else svg].
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// File to write; `-` is standard output [default: energy.svg, energy.png, and of text standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Show what is spent more (red) or less (blue) than in this older recording; grey is what chance explains.
    #[arg(long, value_name = "FILE")]
    diff: Option<PathBuf>,

    /// With --diff: compare shares, not amounts.
    #[arg(long, requires = "diff")]
    normalize: bool,

    /// Text above the picture.
    #[arg(long)]
    title: Option<String>,

    /// What the colors of a picture tell [default: watts where they are measured and code differs in them, else kind].
    #[arg(long, value_enum, conflicts_with = "diff")]
    colors: Option<Colors>,

    /// What stands below (before) the outermost functions.
    #[arg(long, value_enum, default_value_t = RootArg::Auto)]
    root: RootArg,

    /// Of several recordings: what tells them apart, as the frames before all others.
    #[arg(long, value_name = "BY", value_delimiter = ',', value_parser = by::dimension())]
    by: Vec<Dimension>,

    /// Start from the innermost functions, which spend the energy, with their callers on top of them.
    #[arg(long)]
    reverse: bool,

    /// Also show what was measured but not charged to the program.
    #[arg(long)]
    whole: bool,

    /// Columns of the text; 0: as many as it takes [default: COLUMNS, or the terminal's, else 120 for names].
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,

    /// When to use color in the text.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,

    #[command(flatten)]
    select: SelectArgs,
}

/// What colors tell.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Colors {
    /// The kind of code: native, C++ and Rust, inlined, compiled at run time, kernel.
    Kind,
    /// How much power a function's own code draws while it runs, where that is known.
    Watts,
}

/// How a flamegraph is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A picture that zooms and searches.
    Svg,
    /// A picture of pixels, for where no SVG is shown.
    Png,
    /// The widest frames as a tree with bars.
    Text,
}

impl Named for Format {
    fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Svg => &["svg"],
            Self::Png => &["png"],
            Self::Text => &["txt"],
        }
    }
}

/// What stands before the outermost functions.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RootArg {
    /// The command, if there are several.
    Auto,
    None,
    Command,
    Process,
    Thread,
}

impl RootArg {
    /// As the library takes it.
    pub fn root(self) -> Root {
        match self {
            Self::Auto => Root::Automatic,
            Self::None => Root::None,
            Self::Command => Root::Command,
            Self::Process => Root::Process,
            Self::Thread => Root::Thread,
        }
    }
}

/// Runs the verb.
pub fn run(args: FlamegraphArgs, paging: Paging) -> Outcome {
    let format = ending::format(args.format, args.output.as_deref())?.unwrap_or(Format::Svg);
    let path = match format {
        Format::Svg => Some(args.output.as_deref().unwrap_or(Path::new("energy.svg"))),
        Format::Png => Some(args.output.as_deref().unwrap_or(Path::new("energy.png"))),
        Format::Text => args.output.as_deref(),
    };
    if format == Format::Png && output::is_stdout(path) && io::stdout().is_terminal() {
        bail!("png is no text, and standard output is a terminal: name a file with -o, or pipe it on");
    }
    let paths = args.input.paths()?;
    let older = args.diff.as_ref().map(|path| recordings::expand(std::slice::from_ref(path))).transpose()?;
    let inputs: Vec<&Path> = paths.iter().chain(older.iter().flatten()).map(PathBuf::as_path).collect();
    keep_inputs(path, &inputs)?;
    let look = FlamegraphOptions {
        title: args.title.clone(),
        normalize: args.normalize,
        colors: match args.colors {
            None => flamegraph::Colors::Telling,
            Some(Colors::Kind) => flamegraph::Colors::Kind,
            Some(Colors::Watts) => flamegraph::Colors::Watts,
        },
        ..FlamegraphOptions::default()
    };
    let memory = args.input.memory().shared_by(1 + usize::from(older.is_some()));
    let needed = Needed { functions: Some(FunctionsOfStacks::Paths), ..Needed::STACKS };
    let newer = args.input.load_all(&paths, needed, memory)?;
    let tree = args.tree(&newer)?;
    let mut warnings = warnings_of(&newer, &tree);
    let to_stdout = output::is_stdout(path);
    let style = Style {
        width: output::table_width(to_stdout),
        color: to_stdout && args.color.on_stdout(),
        ..Style::default()
    }
    .as_wide_as(args.width);
    match &older {
        None if format == Format::Text => {
            paging.write_text_to(path, |out| flamegraph_text::write(&tree, &style, out))?;
        }
        None if format == Format::Png => {
            output::write_to(path, |out| flamegraph_png::write(&tree, None, &look, out))?;
        }
        None => output::write_to(path, |out| flamegraph::write(&tree, &look, out))?,
        Some(older) => {
            let loaded = args.input.load_all(older, needed, memory)?;
            let older = args.tree(&loaded)?;
            // Those of the older recording say so: its program may have been built anew since.
            let of_older = warnings_of(&loaded, &older).into_iter();
            warnings.extend(of_older.map(|warning| format!("of the older recording: {warning}")));
            match format {
                Format::Png => {
                    output::write_to(path, |out| flamegraph_png::write(&tree, Some(&older), &look, out))?;
                }
                Format::Text => paging.write_text_to(path, |out| {
                    flamegraph_text_change::write(&older, &tree, args.normalize, &style, out)
                })?,
                Format::Svg => {
                    output::write_to(path, |out| flamegraph::write_difference(&older, &tree, &look, out))?
                }
            }
        }
    }
    // What must be known of a picture; where there is none, the reason is not to be sought among it.
    output::warn(warnings);
    if let Some(path) = path.filter(|path| *path != Path::new("-")) {
        let path = path.display();
        match format {
            Format::Png | Format::Text => output::say(format_args!("{path} is written")),
            Format::Svg => {
                output::say(format_args!("{path} is written; a browser shows it, and zooms where you click"))
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn warnings_of(loaded: &Loaded, tree: &CallTree<'_>) -> Vec<String> {
    let of_recording = loaded.profile().warnings.iter().cloned();
    of_recording.chain(tree.warning()).chain(tree.warning_of_paths()).collect()
}

impl FlamegraphArgs {
    fn tree<'a>(&self, loaded: &'a Loaded) -> anyhow::Result<CallTree<'a>> {
        tell_what_is_missing(&self.by, loaded.profile());
        let options = TreeOptions {
            subject: loaded.subject.clone(),
            selection: self.select.selection(),
            no_inline: !self.input.inline(true),
            root: self.root.root(),
            dimensions: self.by.clone(),
            direction: if self.reverse { Direction::FromInnermost } else { Direction::FromOutermost },
            whole: self.whole,
        };
        let progress = WorkProgress::of("adding up");
        let tree = CallTree::new(loaded.analysis.as_ref(), &loaded.symbols, &options)?;
        drop(progress);
        Ok(tree)
    }
}
