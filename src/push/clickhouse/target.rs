//! Which server and which database.

use crate::push::PushError;
use crate::push::endpoint::{Endpoint, parts};

/// A database of ClickHouse that is reached by HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The server.
    pub endpoint: Endpoint,
    /// The database; it consists of letters, digits, `_`, `-` and `.`.
    pub database: String,
    /// Who asks; nobody in particular if there is none.
    pub user: Option<String>,
}

const EXAMPLE: &str = "clickhouse://host:8123/database or clickhouses://host:8443/database";
/// Ports of ClickHouse's HTTP, without and with TLS.
const PORTS: [u16; 2] = [8_123, 8_443];

impl Target {
    /// Reads `clickhouse://[USER@]HOST[:PORT]/DATABASE`, with TLS as `clickhouses://` or by `?secure=1`.
    ///
    /// # Errors
    /// What is wrong with it, without the address: people write passwords into it.
    pub fn parse(url: &str) -> Result<Self, PushError> {
        let parts = parts(url, EXAMPLE)?;
        let wrong = |why: &str| PushError::Address(format!("the address {why}: it should be like {EXAMPLE}"));
        let mut is_secure = match parts.scheme {
            "clickhouse" => false,
            "clickhouses" => true,
            _ => return Err(wrong("is not ClickHouse's")),
        };
        for pair in parts.query.split('&').filter(|pair| !pair.is_empty()) {
            match pair {
                "secure=1" | "secure=true" => is_secure = true,
                "secure=0" | "secure=false" if !is_secure => {}
                _ => {
                    return Err(wrong(
                        "says something behind `?` that is not secure=1; passwords have no place there",
                    ));
                }
            }
        }
        let database = parts.path.strip_prefix('/').unwrap_or_default();
        if !is_name(database) {
            return Err(wrong("names no database of letters, digits, _, - and ."));
        }
        if parts.user.is_some_and(|user| !is_name(user)) {
            return Err(wrong("names a user that is not of letters, digits, _, - and ."));
        }
        let port = parts.port.unwrap_or(PORTS[usize::from(is_secure)]);
        Ok(Self {
            endpoint: Endpoint::new(parts.host, port, is_secure),
            database: database.to_owned(),
            user: parts.user.map(str::to_owned),
        })
    }

    /// The address in one form, without who asks.
    pub fn name(&self) -> String {
        self.address("")
    }

    /// The address in one form, with who asks: as it is read.
    pub fn url(&self) -> String {
        self.address(&self.user.as_ref().map_or(String::new(), |user| format!("{user}@")))
    }

    fn address(&self, user: &str) -> String {
        let scheme = if self.endpoint.is_secure() { "clickhouses" } else { "clickhouse" };
        format!("{scheme}://{user}{}/{}", self.endpoint.name(), self.database)
    }
}

/// Names that need no escape in any place where they are written.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_usual_ports_and_tls_where_it_is_said() {
        for (url, name) in [
            ("clickhouse://db/energy", "clickhouse://db:8123/energy"),
            ("clickhouses://db/energy", "clickhouses://db:8443/energy"),
            ("clickhouse://db:9440/energy?secure=1", "clickhouses://db:9440/energy"),
            ("clickhouse://DB:1/e?secure=0", "clickhouse://db:1/e"),
            ("clickhouse://[::1]:81/e.1-x_y", "clickhouse://[::1]:81/e.1-x_y"),
        ] {
            assert_eq!(Target::parse(url).expect(url).name(), name);
        }
        let target = Target::parse("clickhouses://writer@db/energy").expect("right");
        assert_eq!((target.user.as_deref(), target.name().contains("writer")), (Some("writer"), false));
    }

    #[test]
    fn other_addresses_are_refused_without_their_text() {
        for url in [
            "http://db:8123/energy",
            "clickhouse://db",
            "clickhouse://db/",
            "clickhouse://db/a/b",
            "clickhouse://db/a`b",
            "clickhouse://db/a%60b",
            "clickhouse://db/e?password=hunter2",
            "clickhouse://u:hunter2@db/e",
            "clickhouse://u;x@db/e",
            "clickhouses://db/e?secure=0",
            "clickhouse://db/e?secure=2",
            "db",
        ] {
            let said = Target::parse(url).expect_err(url).to_string();
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
