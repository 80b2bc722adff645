//! What the tables are: names, columns, types, meaning.
//!
//! The types are those that every reader of Parquet knows: whole numbers of 64 bits, flags of 32 bits, doubles, UTF-8, and
//! microseconds UTC. There are no arrays, maps or unsigned numbers, and nothing but `variance` and `chance` can
//! be null.

/// The version of these tables. It grows when a column changes its meaning or goes; columns that are added leave it.
pub const VERSION: &str = "1";
/// The key in the metadata of each file under which [`VERSION`] stands.
pub const VERSION_KEY: &str = "eprof.schema.version";
/// The key under which the table's name stands.
pub const TABLE_KEY: &str = "eprof.table";

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A signed 64-bit hash of content.
    Id,
    /// A whole number.
    Number,
    /// 1 for yes, 0 for no, in 32 bits.
    Flag,
    /// Microseconds since 1970-01-01 UTC.
    Time,
    /// A double.
    Double,
    /// A double that may be missing.
    OptionalDouble,
    /// UTF-8; empty where it is not known.
    Text,
}

/// A column.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// What it says.
    pub meaning: &'static str,
}

/// A table: in an export, a folder of this name with a file for each thing that was exported.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What one row is.
    pub meaning: &'static str,
    /// What tells its rows apart; empty if nothing does.
    pub key: &'static [&'static str],
    /// Its columns.
    pub columns: &'static [Column],
}

const fn column(name: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, meaning }
}

const RECORDING: Column = column(
    "recording",
    Kind::Id,
    "what was exported together: one recording, or those of one boot and one time",
);
const NODE: Column = column(
    "node",
    Kind::Text,
    "the machine, as its job or cluster calls it, or else its host name; with a part of its id beside another of that name in the same export; of another export a machine may have the same name, and its `boot` tells them apart",
);
const BOOT: Column = column("boot", Kind::Text, "the boot id of the machine's kernel");
const DOMAIN: Column = column("domain", Kind::Text, "the part of the machine whose joules a meter counts");
const IS_TOP: Column = column("is_top", Kind::Flag, "no other domain contains this one: only such add up");
const METHOD: Column = column("method", Kind::Text, "`measured` by a meter, or `estimated`");
const STACK_ID: Column = column("stack_id", Kind::Id, "the call stack");
const FUNCTION_ID: Column = column("function_id", Kind::Id, "a place in the code");

/// What stacks spent.
pub static SAMPLES: Table = Table {
    name: "samples",
    meaning: "what one stack of one thread spent of one domain, by the samples of one event",
    key: &[],
    columns: &[
        RECORDING,
        column("job", Kind::Text, "the job's id in its batch system"),
        column("step", Kind::Text, "the step of the job"),
        NODE,
        BOOT,
        column("rank", Kind::Number, "the process's number in its job; -1 if it has none"),
        column("pod", Kind::Text, "the pod, as namespace/name or else its UID"),
        column("cgroup", Kind::Text, "the container, service or control group"),
        column("labels", Kind::Text, "the recording's own labels, each KEY=VALUE between line feeds"),
        column("process", Kind::Text, "the process's name"),
        column("comm", Kind::Text, "the thread's name"),
        column("time", Kind::Time, "start of the window: its balance has it as window_start"),
        STACK_ID,
        DOMAIN,
        IS_TOP,
        column("event", Kind::Text, "the sampled event"),
        METHOD,
        column("joules", Kind::Double, "energy"),
        column(
            "variance",
            Kind::OptionalDouble,
            "square of the standard error of this row's joules alone; those of rows are not independent, and their sum is not the variance of the sum",
        ),
        column(
            "chance",
            Kind::OptionalDouble,
            "the part of `variance` that comes of chance from sample to sample: it adds up over rows; of the rest, the square roots add up at most",
        ),
        column(
            "cpu_ns",
            Kind::Number,
            "CPU time; of a stack's rows it stands in that of the first top domain, so that it may be summed",
        ),
        column("samples", Kind::Number, "samples; they stand where cpu_ns does"),
    ],
};

/// What stacks are made of.
pub static STACK_FRAMES: Table = Table {
    name: "stack_frames",
    meaning: "one frame of one stack; the same stack is in the file of each recording that has it",
    key: &["stack_id", "depth"],
    columns: &[
        STACK_ID,
        FUNCTION_ID,
        column("depth", Kind::Number, "0 for the outermost frame"),
        column("is_leaf", Kind::Flag, "the innermost frame: joules of stacks by it are each function's own"),
        column(
            "is_first",
            Kind::Flag,
            "the outermost frame of its function, by name and module: joules of stacks by it are totals, in which recursion counts once",
        ),
    ],
};

/// Code.
pub static FUNCTIONS: Table = Table {
    name: "functions",
    meaning: "a line of a function; the same line is in the file of each recording that has it",
    key: &["function_id"],
    columns: &[
        FUNCTION_ID,
        column("name", Kind::Text, "the function"),
        column("module", Kind::Text, "the file or other place that the code came from"),
        column("build_id", Kind::Text, "the file's build id, in hexadecimal digits"),
        column("file", Kind::Text, "the source file"),
        column("line", Kind::Number, "the line in it that ran, or that called; 0 if it is not known"),
    ],
};

/// Where all joules went.
pub static BALANCE: Table = Table {
    name: "balance",
    meaning: "measured = functions + static + others + recorder + lost, of one domain of one boot in one window of time",
    key: &["boot", "domain", "window_start", "window_end"],
    columns: &[
        RECORDING,
        NODE,
        BOOT,
        DOMAIN,
        IS_TOP,
        METHOD,
        column("window_start", Kind::Time, "start of the window"),
        column("window_end", Kind::Time, "its end"),
        column("measured", Kind::Double, "all joules"),
        column(
            "functions",
            Kind::Double,
            "joules of the recorded program: the sum over samples of this recording and domain",
        ),
        column("static", Kind::Double, "joules spent whatever runs"),
        column("others", Kind::Double, "joules of processes that were not recorded"),
        column("recorder", Kind::Double, "joules of eprof itself"),
        column("lost", Kind::Double, "joules while records were lost, or with nothing to charge them to"),
    ],
};

/// All tables, in the order in which their files get their names: what others refer to comes first.
pub static TABLES: [&Table; 4] = [&FUNCTIONS, &STACK_FRAMES, &SAMPLES, &BALANCE];
