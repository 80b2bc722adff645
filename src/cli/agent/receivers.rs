//! Where windows are sent.

use eprof::push::{SecretSource, Trust, clickhouse, otlp};

/// Where windows are sent, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receivers {
    /// The database for its tables.
    pub clickhouse: Option<clickhouse::Target>,
    /// Its user's password.
    pub password: Option<SecretSource>,
    /// The collector for its profiles.
    pub otlp: Option<otlp::Target>,
    /// Its token.
    pub token: Option<SecretSource>,
    /// Whose certificates are believed.
    pub trust: Trust,
    /// Secrets may go without TLS.
    pub allow_plain_http: bool,
    /// What profiles that wait may take on disk.
    pub spool_bytes: u64,
}
