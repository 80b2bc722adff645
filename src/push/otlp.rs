//! Profiles for collectors of OpenTelemetry, by HTTP.

use ureq::http::HeaderValue;

use super::client::{Answered, Client, Failure, Kind, Trust, one_line};
use super::endpoint::{Endpoint, parts};
use super::error::PushError;
use super::secret::SecretSource;
use super::spool::Spool;
use crate::label::Label;

/// Where the collector's token is, if no file is named.
pub const TOKEN_VARIABLE: &str = "EPROF_OTLP_TOKEN";
/// Where collectors take profiles.
const PATH: &str = "/v1development/profiles";
const EXAMPLE: &str = "http://host:4318 or https://host/v1development/profiles";

/// Where collectors listen.
const USUAL_PORTS: &str = "4318";

/// Where profiles are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The host.
    pub endpoint: Endpoint,
    path: String,
}

impl Target {
    /// Reads `http://HOST[:PORT][/PATH]` or `https://...`. Without a path it is the one that collectors have.
    ///
    /// # Errors
    /// What is wrong with it, without the address: people write tokens into it.
    pub fn parse(url: &str) -> Result<Self, PushError> {
        let parts = parts(url, EXAMPLE)?;
        let wrong = |why: &str| PushError::Address(format!("the address {why}: it should be like {EXAMPLE}"));
        let (is_secure, usual_port) = match parts.scheme {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return Err(wrong("is not HTTP's")),
        };
        if parts.user.is_some() || !parts.query.is_empty() {
            return Err(wrong("names a user or says something behind `?`; tokens have no place there"));
        }
        let path = if parts.path.len() > 1 { parts.path } else { PATH };
        let endpoint = Endpoint::new(parts.host, parts.port.unwrap_or(usual_port), is_secure);
        Ok(Self { endpoint, path: path.to_owned() })
    }

    /// The address in one form.
    pub fn name(&self) -> String {
        self.endpoint.url(&self.path)
    }
}

/// A collector that profiles are sent to.
pub struct Collector {
    client: Client,
    target: Target,
    token: Option<SecretSource>,
}

impl Collector {
    /// Of this address; nothing is sent yet.
    ///
    /// # Errors
    /// Certificates that cannot be read; a token that would go over the network for everybody to read.
    pub fn new(
        target: Target,
        token: Option<SecretSource>,
        trust: &Trust,
        may_be_plain: bool,
    ) -> Result<Self, PushError> {
        if token.is_some() {
            target.endpoint.check_secret("token", "https://", may_be_plain)?;
        }
        let client = Client::new(target.endpoint.clone(), USUAL_PORTS, trust)?;
        Ok(Self { client, target, token })
    }

    /// Sends one message that gzip has packed. Gives what the collector says of it, if it did not take all.
    ///
    /// # Errors
    /// Why it is not known that it was taken.
    pub fn send(&self, packed: &[u8]) -> Result<Option<String>, Failure> {
        let mut headers = vec![
            ("content-type", HeaderValue::from_static("application/x-protobuf")),
            ("content-encoding", HeaderValue::from_static("gzip")),
            ("content-length", HeaderValue::from(packed.len())),
        ];
        if let Some(token) = &self.token {
            let token = token.read()?;
            let value = HeaderValue::from_bytes(format!("Bearer {}", token.reveal()).as_bytes());
            let cannot = |_| Failure::new(Kind::Wrong, "the token has characters that HTTP has not");
            let mut value = value.map_err(cannot)?;
            value.set_sensitive(true);
            headers.push(("authorization", value));
        }
        let answered = self.client.post(&self.target.path, &headers, &mut &packed[..])?;
        if !is_of_collector(&answered) {
            let said = one_line(&String::from_utf8_lossy(&answered.body));
            let text = format!(
                "{} is no collector of OpenTelemetry: what it answers is none of its messages, and nothing counts as sent. Name the \
                 collector's host and port (usually {USUAL_PORTS}) and path. It answers `{said}`",
                self.target.name()
            );
            return Err(Failure::new(Kind::Wrong, text));
        }
        Ok(partly_taken(&answered.body))
    }
}

/// What came of a step.
#[derive(Debug, Default)]
pub struct Step {
    /// Windows that were taken.
    pub sent: usize,
    /// Windows that are given up, and why.
    pub given_up: Vec<String>,
    /// Windows that wait.
    pub waiting: usize,
}

/// Sends what is in a spool, the oldest first.
pub struct Sender {
    collector: Collector,
    spool: Spool,
}

impl Sender {
    /// Of a spool.
    pub fn new(collector: Collector, spool: Spool) -> Self {
        Self { collector, spool }
    }

    /// Where windows wait.
    pub fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Sends the next window.
    ///
    /// # Errors
    /// Why it is not sent; it waits still.
    pub fn step(&mut self) -> Result<Step, Failure> {
        let waiting = self.spool.waiting()?;
        let Some(first) = waiting.first() else { return Ok(Step::default()) };
        let mut step = Step { waiting: waiting.len() - 1, ..Step::default() };
        // What was removed for want of room meanwhile is counted where it was removed.
        let Some(packed) = self.spool.read(first)? else { return Ok(step) };
        match self.collector.send(&packed) {
            Ok(said) => {
                step.sent = 1;
                step.given_up.extend(said.map(|said| format!("not all was taken: {said}")));
            }
            Err(failure) if is_final(failure.kind) => step.given_up.push(failure.to_string()),
            Err(failure) => return Err(failure),
        }
        self.spool.remove(first)?;
        Ok(step)
    }
}

/// Whether a message is refused for what it is, so that it is not sent again. Who is not let in, or finds nobody at this
/// address, waits for somebody to mend that.
fn is_final(kind: Kind) -> bool {
    const UNAUTHORIZED: u16 = 401;
    const FORBIDDEN: u16 = 403;
    const NOT_FOUND: u16 = 404;
    match kind {
        Kind::Refused(UNAUTHORIZED | FORBIDDEN | NOT_FOUND) => false,
        Kind::Refused(status) => (400..500).contains(&status),
        Kind::Away | Kind::Busy | Kind::Wrong | Kind::Unreadable => false,
    }
}

const PARTIAL_SUCCESS: u64 = 1;

/// Whether an answer can be a collector's. Most say nothing when they have taken all. The page of a network that wants a login, or
/// of another server, is neither an `ExportProfilesServiceResponse` nor one as JSON.
fn is_of_collector(answered: &Answered) -> bool {
    let kind = answered.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/html") {
        return false;
    }
    let body = answered.body.trim_ascii();
    if body.starts_with(b"{") {
        return serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(body).is_ok();
    }
    let mut fields = Fields(&answered.body);
    let is_known =
        fields.by_ref().all(|(field, value)| field == PARTIAL_SUCCESS && matches!(value, Value::Bytes(_)));
    is_known && fields.0.is_empty()
}

/// What a collector says of profiles that it did not take, of an `ExportProfilesServiceResponse`.
fn partly_taken(answer: &[u8]) -> Option<String> {
    const REJECTED: u64 = 1;
    const MESSAGE: u64 = 2;
    if answer.trim_ascii().starts_with(b"{") {
        return partly_taken_in_json(answer);
    }
    let (mut rejected, mut message) = (0, String::new());
    for (field, value) in Fields(answer) {
        let Value::Bytes(partial) = value else { continue };
        for (inner, value) in Fields(partial).filter(|_| field == PARTIAL_SUCCESS) {
            match (inner, value) {
                (REJECTED, Value::Number(count)) => rejected = count,
                (MESSAGE, Value::Bytes(text)) => message = String::from_utf8_lossy(text).into_owned(),
                _ => {}
            }
        }
    }
    rejection(rejected, &message)
}

/// The same of an answer as JSON, in which numbers of 64 bits are texts.
fn partly_taken_in_json(answer: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    let rejected = partial.get("rejectedProfiles")?;
    let rejected = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok())?;
    rejection(rejected, partial.get("errorMessage").and_then(|text| text.as_str()).unwrap_or_default())
}

fn rejection(rejected: u64, message: &str) -> Option<String> {
    let said = || message.chars().take(200).collect::<String>();
    (rejected > 0).then(|| format!("{rejected} profiles: {}", Label::new(&said())))
}

/// The fields of a message, as far as they can be read.
struct Fields<'a>(&'a [u8]);

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    /// What cannot be read is left.
    fn next(&mut self) -> Option<Self::Item> {
        let before = self.0;
        let field = self.field();
        if field.is_none() {
            self.0 = before;
        }
        field
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Bytes(self.take(8)?),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ureq::http::header::CONTENT_TYPE;

    use super::*;

    #[test]
    fn the_path_is_that_of_collectors_where_none_is_named() {
        for (url, name) in [
            ("http://localhost:4318", "http://localhost:4318/v1development/profiles"),
            ("http://localhost:4318/", "http://localhost:4318/v1development/profiles"),
            ("https://collector.example/otlp/v1", "https://collector.example:443/otlp/v1"),
            ("http://[::1]/x", "http://[::1]:80/x"),
        ] {
            assert_eq!(Target::parse(url).expect(url).name(), name);
        }
        for url in ["ftp://host", "http://token@host", "http://host/x?token=hunter2", "host:4318"] {
            let said = Target::parse(url).expect_err(url).to_string();
            assert!(!said.contains("hunter2") && said.contains("4318"), "{said}");
        }
    }

    #[test]
    fn what_is_refused_for_good_is_given_up() {
        let refused = [400, 413, 415, 422].map(|status| is_final(Kind::Refused(status)));
        let waits = [401, 403, 404, 500, 501, 302].map(|status| is_final(Kind::Refused(status)));
        assert!(refused.iter().all(|is_final| *is_final) && !waits.iter().any(|is_final| *is_final));
        assert!(![Kind::Away, Kind::Busy, Kind::Wrong, Kind::Unreadable].map(is_final).contains(&true));
    }

    #[test]
    fn a_partial_success_is_told() {
        // { partial_success { rejected_profiles: 3 error_message: "too large" } }
        let answer = b"\x0a\x0d\x08\x03\x12\x09too large";
        assert_eq!(partly_taken(answer).as_deref(), Some("3 profiles: too large"));
        assert_eq!(partly_taken(b""), None);
        // A warning alone.
        assert_eq!(partly_taken(b"\x0a\x04\x12\x02hm"), None);
    }

    #[test]
    fn the_same_in_json_is_told() {
        let told = partly_taken(br#"{"partialSuccess":{"rejectedProfiles":"3","errorMessage":"too large"}}"#);
        assert_eq!(told.as_deref(), Some("3 profiles: too large"));
        assert_eq!(partly_taken(b"{\"partialSuccess\":{}}"), None);
    }

    #[test]
    fn pages_of_others_are_no_answers_of_collectors() {
        let is_of_collector = |kind: Option<&str>, body: &[u8]| {
            let kind = kind.map(|kind| (CONTENT_TYPE, HeaderValue::from_str(kind).expect("a value")));
            is_of_collector(&Answered { headers: kind.into_iter().collect(), body: body.to_vec() })
        };
        let partial = b"\x0a\x0d\x08\x03\x12\x09too large";
        for (kind, body) in [
            (None, &b""[..]),
            (Some("application/x-protobuf"), b""),
            (Some("application/x-protobuf"), partial),
            (Some("application/json"), b"{}\n"),
            (Some("text/plain; charset=utf-8"), b""),
        ] {
            assert!(is_of_collector(kind, body), "{kind:?} {body:?}");
        }
        for (kind, body) in [
            (Some("text/html"), &b""[..]),
            (None, b"<html>Log in to go on</html>"),
            (Some("text/plain"), b"OK"),
            (Some("text/plain"), b"\n"),
            (Some("application/json"), b"{"),
        ] {
            assert!(!is_of_collector(kind, body), "{kind:?} {body:?}");
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_read(answer in prop::collection::vec(any::<u8>(), 0..64)) {
            partly_taken(&answer);
        }
    }
}
