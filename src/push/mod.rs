//! Windows and recordings on their way to others: to ClickHouse as rows of the tables, to collectors of OpenTelemetry as
//! profiles.
//!
//! ```text
//!   folder of tables ──► clickhouse  batches of RowBinary ─┐
//!   spool of profiles ─► otlp        one request each ─────┴─► client ──► HTTP, TLS
//! ```
//!
//! What is to be sent lies on disk until the receiver has acknowledged it, so that a receiver may be away and either side may be
//! killed. Secrets come from files or the environment and go into a header, and nowhere else: [`Secret`].

mod acknowledged;
mod backoff;
pub mod clickhouse;
mod client;
mod date;
mod endpoint;
mod error;
mod folder;
pub mod otlp;
mod secret;
mod spool;
mod window_set;

pub use acknowledged::Acknowledged;
pub use backoff::Backoff;
pub use client::{Client, Failure, Kind, Trust};
pub use endpoint::Endpoint;
pub use error::PushError;
pub use folder::{Strays, Window, strays, windows};
pub use secret::{Secret, SecretSource};
pub use spool::Spool;
