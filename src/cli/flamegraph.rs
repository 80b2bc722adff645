//! `eprof flamegraph`: a picture of where the joules went.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use eprof::report::flamegraph::{self, FlamegraphOptions};
use eprof::report::tree::{CallTree, Direction, Root, TreeOptions};

use super::Outcome;
use super::input::{InputArgs, Loaded, Needed, SelectArgs};
use super::new_file::keep_inputs;
use super::output;

const EXAMPLES: &str = "\
Examples:
  eprof flamegraph                            energy.svg, to be opened in a browser
  eprof flamegraph x.data -o x.svg            of another recording
  eprof flamegraph --root thread              each thread apart
  eprof flamegraph --diff before.data         red: spends more than before.data
  eprof flamegraph --weight samples -o t.svg  time instead of joules";

/// Draw an energy flamegraph.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct FlamegraphArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Picture to write; `-` is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "energy.svg")]
    output: PathBuf,

    /// Show what is spent more (red) or less (blue) than in this older recording.
    #[arg(long, value_name = "FILE")]
    diff: Option<PathBuf>,

    /// With --diff: compare shares, not amounts.
    #[arg(long, requires = "diff")]
    normalize: bool,

    /// Text above the picture.
    #[arg(long)]
    title: Option<String>,

    /// What stands below (before) the outermost functions.
    #[arg(long, value_enum, default_value_t = RootArg::Auto)]
    root: RootArg,

    /// Start from the innermost functions, which spend the energy, with their callers on top of them.
    #[arg(long)]
    reverse: bool,

    /// Also show what was measured but not charged to the program.
    #[arg(long)]
    whole: bool,

    #[command(flatten)]
    select: SelectArgs,
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
pub fn run(args: FlamegraphArgs) -> Outcome {
    let inputs: Vec<&Path> = [args.input.path()].into_iter().chain(args.diff.as_deref()).collect();
    keep_inputs(Some(&args.output), &inputs)?;
    let look = FlamegraphOptions {
        title: args.title.clone(),
        normalize: args.normalize,
        ..FlamegraphOptions::default()
    };
    let memory = args.input.memory().shared_by(inputs.len());
    let newer = args.input.load_file(args.input.path(), Needed::STACKS, memory)?;
    output::warn(&newer.profile().warnings);
    let tree = args.tree(&newer)?;
    let to = Some(args.output.as_path());
    match &args.diff {
        None => output::write_to(to, |out| flamegraph::write(&tree, &look, out))?,
        Some(path) => {
            let older = args.input.load_file(path, Needed::STACKS, memory)?;
            let older = args.tree(&older)?;
            output::write_to(to, |out| flamegraph::write_difference(&older, &tree, &look, out))?;
        }
    }
    if args.output != Path::new("-") {
        let path = args.output.display();
        output::say(format_args!("{path} is written; a browser shows it, and zooms where you click"));
    }
    Ok(ExitCode::SUCCESS)
}

impl FlamegraphArgs {
    fn tree<'a>(&self, loaded: &'a Loaded) -> anyhow::Result<CallTree<'a>> {
        let options = TreeOptions {
            subject: loaded.subject.clone(),
            selection: self.select.selection(),
            no_inline: !self.input.inline(true),
            root: self.root.root(),
            direction: if self.reverse { Direction::FromInnermost } else { Direction::FromOutermost },
            whole: self.whole,
        };
        let tree = CallTree::new(loaded.analysis.as_ref(), &loaded.symbols, &options)?;
        output::warn(tree.warning());
        output::warn(tree.warning_of_paths());
        Ok(tree)
    }
}
