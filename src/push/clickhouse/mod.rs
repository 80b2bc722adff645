//! Rows of the tables for ClickHouse, by plain HTTP.
//!
//! ClickHouse has no transactions, and whoever sends rows and hears nothing does not know whether they arrived. So each attempt
//! to push a window has an id of its own, which stands in the rows, and a window counts when a row of the table `pushes` names it
//! and an attempt: that row is sent when all others are acknowledged. An attempt whose end is not known is never finished, but
//! begun anew under another id; what is left of it is in no attempt that counts. If there are several that do, the last one
//! counts.

mod answer;
mod batch;
mod row_binary;
mod sender;
mod server;
mod statements;
mod target;
mod waiting;

pub use batch::Pushed;
pub use sender::{Sender, Step};
pub use server::Server;
pub use statements::create_tables;
pub use target::Target;
pub use waiting::Waiting;

/// Where the password of ClickHouse's user is, if no file is named.
pub const PASSWORD_VARIABLE: &str = "EPROF_PUSH_PASSWORD";
