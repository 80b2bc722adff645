//! The programs that eprof runs and the process that it is: launch, end, signals, privileges, clocks, limits, and
//! what it leaves behind.

pub mod affinity;
pub mod clocks;
mod ending;
pub mod environment;
pub mod file_limit;
mod launch;
mod outcome;
pub mod privileges;
mod replace;
mod runtime_folder;
mod signals;
mod system_error;
mod unnamed_file;
mod with_parent;

pub use ending::{reap, wait};
pub use launch::{Credentials, LaunchError, Streams, Waiting};
pub use outcome::Outcome;
pub use replace::replace_by;
pub use runtime_folder::runtime_folder;
pub use signals::{ReceivedSignal, Signals};
pub use system_error::SystemError;
pub use unnamed_file::{
    check_folder, create_scratch, create_unnamed, folder_of, hidden_beside, name_unnamed,
};
pub use with_parent::end_with_parent;
