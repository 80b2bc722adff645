//! Addresses of receivers.

use std::net::IpAddr;

use super::error::PushError;

/// A host that listens for HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an address, as it stands in URLs: those of version 6 in brackets.
    host: String,
    port: u16,
    is_secure: bool,
}

/// An address in its parts; none of them is empty but the path and what stands behind `?`.
pub(super) struct Parts<'a> {
    pub scheme: &'a str,
    /// Who asks, before `@`.
    pub user: Option<&'a str>,
    pub host: &'a str,
    pub port: Option<u16>,
    /// With its first slash.
    pub path: &'a str,
    pub query: &'a str,
}

/// Takes an address apart. What is wrong is told without the address itself: there may be a password in it.
pub(super) fn parts<'a>(url: &'a str, example: &str) -> Result<Parts<'a>, PushError> {
    let wrong = |why: &str| PushError::Address(format!("the address {why}: it should be like {example}"));
    if !url.is_ascii() || url.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
        return Err(wrong("has spaces or characters that addresses have not"));
    }
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("has no scheme"))?;
    if rest.contains('#') {
        return Err(wrong("has a part behind `#`, which is never sent"));
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, authority),
    };
    if user.is_some_and(|user| user.contains(':')) {
        return Err(PushError::Address(
            "the address has a password in it, which everybody on this machine can read in the list of processes: take another \
             password, and give it in a file or in the environment (see --help)"
                .to_owned(),
        ));
    }
    let host_end = match place.find(']') {
        Some(bracket) => bracket + 1,
        None => place.find(':').unwrap_or(place.len()),
    };
    let (host, port) = place.split_at(host_end);
    let port = match port.strip_prefix(':') {
        Some(digits) => Some(
            digits.parse().ok().filter(|port| *port != 0).ok_or_else(|| wrong("has a port that is none"))?,
        ),
        None if port.is_empty() => None,
        None => return Err(wrong("has something behind its host that is no port")),
    };
    let is_name = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    };
    let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if !in_brackets.map_or(is_name(host), |inside| inside.parse::<std::net::Ipv6Addr>().is_ok()) {
        return Err(wrong("has no host"));
    }
    Ok(Parts { scheme, user, host, port, path, query })
}

impl Endpoint {
    pub(super) fn new(host: &str, port: u16, is_secure: bool) -> Self {
        Self { host: host.to_ascii_lowercase(), port, is_secure }
    }

    /// Whether what is sent is hidden from others on the way.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Whether it is this machine itself.
    pub fn is_loopback(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        self.host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Host and port, as messages name them.
    pub fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The address of something there; `path` begins with a slash.
    pub(super) fn url(&self, path: &str) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}:{}{path}", self.host, self.port)
    }

    /// Whether a secret may be sent there.
    ///
    /// # Errors
    /// If others could read it on its way, and that was not allowed.
    pub(super) fn check_secret(
        &self,
        what: &'static str,
        repair: &'static str,
        is_allowed: bool,
    ) -> Result<(), PushError> {
        if self.is_secure || self.is_loopback() || is_allowed {
            return Ok(());
        }
        Err(PushError::PlainSecret { what, host: self.name(), repair })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let all = parts("clickhouse://ann@[::1]:8123/energy?secure=1", "x").expect("right");
        let found = (all.scheme, all.user, all.host, all.port, all.path, all.query);
        assert_eq!(found, ("clickhouse", Some("ann"), "[::1]", Some(8123), "/energy", "secure=1"));
        let least = parts("http://collector", "x").expect("right");
        assert_eq!((least.host, least.port, least.path, least.query), ("collector", None, "", ""));
    }

    #[test]
    fn wrong_addresses_are_told_without_what_they_hold() {
        for wrong in [
            "collector",
            "http://",
            "http://:80",
            "http://a b",
            "http://a:0",
            "http://a:70000",
            "http://a:x",
            "http://[::1",
            "http://[::1]x",
            "http://ä",
            "http://a/#f",
            "http://a\n.example",
            "http://a;b",
        ] {
            let said = parts(wrong, "http://host:4318").err().expect(wrong).to_string();
            assert!(said.contains("http://host:4318"), "{said}");
        }
        let said = parts("http://ann:hunter2@host", "x").err().expect("refused").to_string();
        assert!(said.contains("password") && !said.contains("hunter2"), "{said}");
    }

    #[test]
    fn secrets_go_to_this_machine_or_hidden() {
        let to = |url: &str, is_secure| {
            let parts = parts(url, "x").expect("right");
            Endpoint::new(parts.host, 80, is_secure).check_secret("token", "https://", false)
        };
        for fine in
            ["http://localhost", "http://127.0.0.1", "http://127.9.9.9", "http://[::1]", "http://LOCALHOST"]
        {
            assert!(to(fine, false).is_ok(), "{fine}");
        }
        for plain in
            ["http://10.0.0.1", "http://localhost.example", "http://127.0.0.1.example", "http://[::2]"]
        {
            assert!(to(plain, false).is_err(), "{plain}");
            assert!(to(plain, true).is_ok(), "{plain}");
        }
    }
}
