//! Step 1: launch or attach to a program, sample it, drain the rings into a recording.
//!
//! ```text
//! options ──► events ──► sampling: counters, rings ──► recorder ──► drain ──► perf.data
//! target ───► program ─────┘            meters ──► readings ──┘
//! ```
//!
//! [`record()`] says what happens, in its order: open (`opened`), describe (`description`), run (`recorder`), close
//! (`closing`).
//!
//! The kernel's records go from its rings to the file as they are; what they say is found out later,
//! by [`crate::recording`]. All that eprof adds is made by [`crate::recording::own_events`].

mod attr;
mod backlog;
mod calibrated;
mod census;
mod cgroup_names;
mod closing;
mod counter_log;
mod counters;
mod cpu_times;
mod description;
mod drain;
mod duty;
mod energy_log;
mod error;
mod event_totals;
mod events;
mod frequency;
mod gpu;
mod host;
mod identity;
mod kernel_state;
mod mapped_files;
mod meter_lock;
mod meter_turn;
mod opened;
mod options;
mod output;
mod partial_round;
mod periods;
mod pieces;
mod probe_program;
mod process_state;
mod program;
mod progress;
mod readings;
mod recorder;
mod rest;
mod ring;
mod sampled_event;
mod sampling;
mod session;
mod stop_conditions;
mod summary;
mod support;
mod target;
mod tracing_data;
mod untold_losses;
mod uprobe;

pub use energy_log::EnergySummary;
pub use eprof_cupti_injection::DEFAULT_MAX_RATE as CUPTI_MAX_RATE;
pub use error::RecordError;
pub use frequency::highest as highest_frequency;
pub use gpu::activity::COST as CUPTI_COST;
pub use options::{
    CallGraph, ControlGroups, CuptiOptions, DutyCycle, EnergyOptions, GpuLaunches, GpuOptions, LaunchOptions,
    MeterSharing, OtherProcesses, OutputOptions, RecordOptions, SamplingOptions, SamplingRate, TargetOptions,
    TargetTasks,
};
pub use progress::{Listener, SoFar};
pub use session::{record, record_to};
pub use stop_conditions::StopRequest;
pub use summary::{DEFAULT_OUTPUT, Summary};
