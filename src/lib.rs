//! eprof: where do the joules of a program go?
//!
//! The crate is a pipeline. Each box is a room (a folder or a file of `src`):
//!
//! ```text
//!   program ──► record ──► recording ──► timeline ──► attribute ──► profile ──► report
//!               samples,   perf.data     one stream   joules to     a plain     table, json,
//!               meters     file          in time      stacks        value       flamegraph
//!                                        order
//!                          └────────── analyze: drives these ────────┘
//!                                                     symbolize ─────────────────┘
//!                                                     address ► function, line
//!                                  text_profile ─────────────┘
//!                                  of other tools: samples by name
//!
//!   measure ► repeated runs, tuning, GPU experiments    calibrate ► this machine's power model
//!   verify  ► how wrong all of this is on this machine  merge     ► profiles of ranks, nodes, times: one
//!   live    ► a recording read while it is made         push  ► tables and profiles on their way to others
//!   meter   ► every kind of energy meter                process   ► programs: launch, end, signals, rights
//!   stat, tune, gpu, power_model ► arithmetic           hardware, identity, units, numerics, tables, ... ► ground
//! ```
//!
//! # Which room may use which
//!
//! Dependencies point one way. A module may use those in its row, and all of these stand above it; `cli` and `main`
//! are the binary's, `eprof-cupti-injection` is the crate that CUDA loads into programs, [`perf_data`] the one that
//! reads and writes perf.data files, which knows nothing of energy, and `eprof-fleet` the program that asks the tables of
//! many machines. A star marks arithmetic: values in, values out,
//! without a file, clock, thread or process. A test parses the code and holds this table,
//! and that the files of no folder need each other round about.
//!
//! ```text
//!   markup *                ->
//!   label *                 ->
//!   pattern *               ->
//!   numerics *              ->
//!   tables *                ->
//!   threads                 ->
//!   eprof-cupti-injection   ->
//!   perf-data               ->
//!   units *                 -> perf-data
//!   hardware *              -> units
//!   identity *              ->
//!   recording               -> perf-data units hardware identity
//!   machine                 -> hardware
//!   process                 -> units hardware
//!   power_model *           -> numerics tables units hardware
//!   profile *               -> units hardware identity
//!   merge *                 -> units hardware identity profile
//!   timeline *              -> perf-data units profile
//!   attribute *             -> units hardware recording profile
//!   symbolize               -> threads units profile
//!   text_profile            -> units profile timeline symbolize
//!   gpu *                   -> markup numerics tables units
//!   meter                   -> units hardware machine process gpu
//!   analyze                 -> threads eprof-cupti-injection perf-data units hardware recording power_model
//!                              profile timeline attribute symbolize gpu
//!   record                  -> label numerics eprof-cupti-injection perf-data units hardware identity
//!                              recording machine process power_model meter
//!   report                  -> markup label pattern threads perf-data units hardware identity recording profile
//!                              symbolize
//!   push                    -> label process report
//!   live                    -> label perf-data units recording process power_model profile symbolize analyze
//!                              report
//!   tune *                  -> markup label numerics tables units
//!   stat *                  -> label numerics units hardware
//!   measure                 -> pattern units hardware machine process gpu meter tune stat
//!   calibrate               -> numerics units hardware machine process power_model meter measure
//!   verify                  -> label numerics hardware recording machine process power_model profile
//!                              symbolize meter analyze report measure calibrate
//!   cli                     -> label pattern numerics tables threads perf-data units hardware identity recording
//!                              machine process power_model profile merge timeline symbolize text_profile gpu
//!                              meter analyze record report push live tune stat measure calibrate verify
//!   main                    -> cli
//!   eprof-fleet             -> label pattern units identity machine profile analyze report push
//! ```
//!
//! # Words
//!
//! | word | means |
//! |---|---|
//! | sample | what the kernel writes when an event has been counted `period` times: time, CPU, thread, call stack |
//! | period | events between two samples; a sample stands for as many |
//! | role | what an event stands for in a power model, whatever a CPU calls it: [`hardware::Role`] |
//! | domain | a part of the machine whose joules a meter counts together: [`hardware::DomainInfo`]; domains form a tree |
//! | reading | what a meter said at one time: joules since the recording began |
//! | quantum | a sample as attribution sees it: so many events on one CPU, spread over the time since that event's previous sample there, worth (coefficient × events) model joules: [`attribute::Quantum`] |
//! | cell | the key that samples are summed by: call stack, thread, CPU and event: [`profile::Cell`] |
//! | bucket | a stretch of time in which the meters counted the same energy as in each other one: [`attribute::Bucket`]; in a profile, a time slice |
//! | static energy | what the machine takes whatever runs, as far as it is known |
//! | others | processes that were not recorded |
//! | balance | measured = functions + static + others + eprof + lost, of one domain: [`profile::Balance`] |
//! | span | the stretch of time in which a sample's events happened |
//! | turn | of several recorders of one machine, whose it is to read the meters closely: [`recording::metadata::MetersRead`] |
//! | lent | of readings: taken by another recorder of the machine, and given to a recording in place of its own: [`recording::node_meters`] |
//! | identity | what a recording says of where it comes from: machine, boot, job, rank, container, labels: [`identity::Identity`] |
//! | control group | the kernel's group of processes that a container, a pod or a service is: what samples tell of their task beside its number |
//! | machine | in a profile of several recordings, one boot of a machine: what has one clock and one set of meters: [`profile::MachineEnergy`] |
//! | survey | the first pass over a recording: which events and meters it has, how much they counted |
//! | prior | what is believed of a model's coefficients before the recording is seen |
//! | label | a text from outside, made safe to show: [`label::Label`] |
//! | module | a file or another place that code came from, as in perf's DSO |
//! | own, total | of a function alone, and with all that it called: perf's self and children |
//!
//! # What a change touches
//!
//! - **An output format** for other tools: a file beside [`report::export`] with an `Exporter`, and a line in
//!   `EXPORTERS`. Command line and help follow from the list.
//! - **A column of the tables** for many machines: [`report::store::schema`], the row that it stands in (`report::store`), and
//!   the page in kernel-notes that a test compares; a changed meaning is another version.
//! - **A kind of energy meter**: a file in [`meter`], and its names in [`meter::Source`]; the compiler then asks in which
//!   turn it is looked for (`meter::kinds`) and what repairs a refusal (`meter::rejected`).
//! - **A role of events**: [`hardware::Role`], and what the compiler then asks for: its event by microarchitecture
//!   ([`machine::model_events`]), how often it usually happens (`record::periods`), and what it costs by the presets
//!   ([`power_model::presets`]).
//! - **What tells recordings apart** (`--by rank`): [`identity::Dimension`], with its value of an identity, and of a thread if
//!   threads of one recording may differ by it; what the recorder learns for it stands in `record::identity`, and is
//!   shown by `cli::script::header`.
//! - **A record type of perf.data**: in the crate of perf.data its fields (`record`), how they are decoded
//!   (`decode::kernel`) and turned where a machine of the other byte order wrote them (`decode::swap`: the compiler does
//!   not ask for it), how they are written if anybody writes them (`encode`); and what analysis makes of them, if anything
//!   (`analyze::aggregate`).

pub mod hardware;
pub mod identity;
pub mod label;
mod markup;
pub mod numerics;
pub mod pattern;
pub mod tables;
pub mod threads;
pub mod units;

pub mod machine;
pub mod power_model;

pub mod meter;
pub mod process;
pub mod push;

pub mod record;
pub mod recording;
pub mod timeline;

pub mod attribute;
pub mod symbolize;
pub mod text_profile;

pub mod analyze;
pub mod live;
pub mod merge;
pub mod profile;
pub mod report;

pub mod calibrate;
pub mod gpu;
pub mod measure;
pub mod stat;
pub mod tune;
pub mod verify;
