//! Requests over HTTP and TLS.
//!
//! Redirects are not followed and proxies are not asked, so that a token goes to the host that was named and to nobody else.

use std::cell::Cell;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use ureq::http::{HeaderMap, HeaderValue, Response, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Body, SendBody, Timeout};

use super::date;
use super::endpoint::Endpoint;
use super::error::PushError;
use crate::label::Label;

/// From the look-up of the host's name to the end of TLS's greetings.
const TO_CONNECT: Duration = Duration::from_secs(10);
/// For a request's body; what waits longer comes again in smaller pieces or later.
const TO_SEND: Duration = Duration::from_secs(300);
/// For the answer: a database writes the rows meanwhile.
const TO_ANSWER: Duration = Duration::from_secs(120);
/// Connections are used again for the next request at once, and not later: servers close them.
const IDLE: Duration = Duration::from_secs(2);
/// How large answers may be, and how long they are waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answers {
    /// Bytes that are read.
    most: u64,
    within: Duration,
}

impl Answers {
    /// Of receivers: some words.
    pub const SHORT: Self = Self { most: 1 << 20, within: TO_ANSWER };
    /// Of databases that are asked for rows.
    pub const LONG: Self = Self { most: 4 << 30, within: Duration::from_secs(3_600) };
}

/// Characters of a refusal that are shown.
const MOST_SHOWN: usize = 400;
/// No receiver is waited for longer, whatever it asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
/// A file of certificates is not larger.
const MOST_CERTIFICATES: u64 = 16 << 20;

/// Whose certificates are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// The authorities that this machine trusts.
    #[default]
    System,
    /// Those in this file of PEM alone.
    File(PathBuf),
}

/// What became of a request that did not go well.
#[derive(Debug)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: Kind,
    /// How long the receiver wants to be left alone, of what it asks for an hour at most.
    pub after: Option<Duration>,
    pub(super) text: String,
    /// Of a refusal, the answer's headers: they tell who refuses.
    pub(super) headers: Option<Box<HeaderMap>>,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The receiver is away or broke off: whether it took what was sent is not known.
    Away,
    /// It is there and wants to be asked later.
    Busy,
    /// It answers that it does not take this, with this status of HTTP.
    Refused(u16),
    /// It is not whom it should be, or speaks otherwise, or lacks something.
    Wrong,
    /// What is to be sent cannot be read.
    Unreadable,
}

impl Failure {
    /// A failure of this kind, told in these words.
    pub(super) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, after: None, text: text.into(), headers: None }
    }

    /// Whether the same request may go well later without anybody doing anything.
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, Kind::Away | Kind::Busy)
    }

    /// What the receiver said or what happened, without secrets, in one line.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl From<PushError> for Failure {
    fn from(error: PushError) -> Self {
        Self::new(Kind::Wrong, error.to_string())
    }
}

/// What is answered with a status that says that all went well. Whether it is an answer of whom was asked, is for them to find
/// who know how that one answers: others that listen there, as the page of a network that wants a login, say 200 as well.
pub(super) struct Answered {
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Speaks with one host.
pub struct Client {
    agent: ureq::Agent,
    endpoint: Endpoint,
    /// At which ports such receivers listen, for whoever took another one.
    usual_ports: &'static str,
    answers: Answers,
    /// How long nothing may go well, and when something did last.
    patience: Option<Duration>,
    last_success: Cell<Instant>,
}

impl Client {
    /// Of a host; nothing is sent yet.
    ///
    /// # Errors
    /// Certificates that cannot be read.
    pub fn new(endpoint: Endpoint, usual_ports: &'static str, trust: &Trust) -> Result<Self, PushError> {
        Self::with_answers(endpoint, usual_ports, trust, Answers::SHORT)
    }

    /// Of a host whose answers are such.
    ///
    /// # Errors
    /// Certificates that cannot be read.
    pub(super) fn with_answers(
        endpoint: Endpoint,
        usual_ports: &'static str,
        trust: &Trust,
        answers: Answers,
    ) -> Result<Self, PushError> {
        let roots = if endpoint.is_secure() { authorities(trust)? } else { Vec::new() };
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .max_idle_age(IDLE)
            .timeout_connect(Some(TO_CONNECT))
            .timeout_resolve(Some(TO_CONNECT))
            .timeout_send_request(Some(TO_ANSWER))
            .timeout_send_body(Some(TO_SEND))
            .timeout_recv_response(Some(answers.within))
            .timeout_recv_body(Some(answers.within))
            .user_agent(concat!("eprof/", env!("CARGO_PKG_VERSION")))
            .build();
        let last_success = Cell::new(Instant::now());
        Ok(Self { agent: config.new_agent(), endpoint, usual_ports, answers, patience: None, last_success })
    }

    /// No request is waited for when nothing has gone well for so long, beginning now; without any time requests have the time
    /// that they have otherwise.
    pub(super) fn give_up_after(&mut self, patience: Duration) {
        self.patience = (!patience.is_zero()).then_some(patience);
        self.last_success.set(Instant::now());
    }

    /// The host.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a body there and gives what is answered if its status is good.
    ///
    /// # Errors
    /// Why it did not go well, in words.
    pub(super) fn post(
        &self,
        path: &str,
        headers: &[(&'static str, HeaderValue)],
        body: &mut dyn Read,
    ) -> Result<Answered, Failure> {
        let mut request = self.agent.post(self.endpoint.url(path));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        if let Some(patience) = self.patience {
            let left = patience.saturating_sub(self.last_success.get().elapsed());
            if left.is_zero() {
                return Err(self.silent(patience));
            }
            request = request.config().timeout_global(Some(left)).build();
        }
        let response = request.send(SendBody::from_reader(body)).map_err(|error| self.failure(error))?;
        let answered = self.answer(response)?;
        self.last_success.set(Instant::now());
        Ok(answered)
    }

    /// Nothing went well for as long as was allowed.
    fn silent(&self, patience: Duration) -> Failure {
        let text = format!(
            "{} has not answered for {} s: it may be busy, or something else may listen there",
            self.endpoint.name(),
            patience.as_secs_f64()
        );
        Failure::new(Kind::Away, text)
    }

    fn answer(&self, mut response: Response<Body>) -> Result<Answered, Failure> {
        let status = response.status();
        let asked = response
            .headers()
            .get("retry-after")
            .and_then(|value| asked_to_wait(value.to_str().ok()?, SystemTime::now()));
        let location =
            response.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let mut body = Vec::new();
        let read = response.body_mut().with_config().limit(self.answers.most).reader().read_to_end(&mut body);
        if status.is_success() {
            // The answer may have been cut off: what it was about is done all the same, but not known in full.
            return match read {
                Ok(_) => Ok(Answered { headers: response.headers().clone(), body }),
                Err(error) => Err(self.failure(error.into())),
            };
        }
        let name = self.endpoint.name();
        let said = one_line(&String::from_utf8_lossy(&body));
        let (kind, text) = match status {
            _ if status.is_redirection() => {
                let to = location.map_or(String::new(), |to| format!(" to {}", one_line(&to)));
                let text =
                    format!("{name} redirects{to}, which is not followed: name that address if it is yours");
                (Kind::Refused(status.as_u16()), text)
            }
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::REQUEST_TIMEOUT => (Kind::Busy, format!("{name} answers {status}: {said}")),
            _ => (Kind::Refused(status.as_u16()), format!("{name} answers {status}: {said}")),
        };
        let mut text = text.trim_end_matches([' ', ':']).to_owned();
        if let Some(asked) = asked {
            text += &format!(" (it asks to be tried again after {} s)", asked.as_secs());
        }
        let after = asked.map(|asked| asked.min(LONGEST_WAIT));
        Err(Failure { kind, after, text, headers: Some(Box::new(response.headers().clone())) })
    }

    fn failure(&self, error: ureq::Error) -> Failure {
        // Some of those who do not speak TLS say nothing when they are greeted by it.
        let how = if self.endpoint.is_secure() { " (by TLS)" } else { "" };
        let name = format!("{}{how}", self.endpoint.name());
        match error {
            ureq::Error::Io(error) => self.broken(&error),
            ureq::Error::Rustls(error) => self.distrusted(&error),
            ureq::Error::Timeout(Timeout::Global) => self.silent(self.patience.unwrap_or_default()),
            ureq::Error::Timeout(which) => {
                Failure::new(Kind::Away, format!("{name} takes too long ({which})"))
            }
            ureq::Error::HostNotFound => {
                Failure::new(Kind::Wrong, format!("{name}: there is no host of this name"))
            }
            error @ (ureq::Error::ConnectionFailed | ureq::Error::Protocol(_) | ureq::Error::BodyStalled) => {
                Failure::new(Kind::Away, format!("{name}: {}", one_line(&error.to_string())))
            }
            error => Failure::new(Kind::Wrong, format!("{name}: {}", one_line(&error.to_string()))),
        }
    }

    fn broken(&self, error: &io::Error) -> Failure {
        let inner = error.get_ref();
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return self.distrusted(error);
        }
        // What is sent could not be made: see `Unreadable`.
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<Unreadable>()) {
            return Failure::new(Kind::Unreadable, error.to_string());
        }
        if let Some(ureq::Error::Timeout(Timeout::Global)) = inner.and_then(|inner| inner.downcast_ref()) {
            return self.silent(self.patience.unwrap_or_default());
        }
        let how = if self.endpoint.is_secure() { " (by TLS)" } else { "" };
        let mut text = format!("{}{how}: {}", self.endpoint.name(), one_line(&error.to_string()));
        if error.kind() == io::ErrorKind::ConnectionRefused {
            text += &format!(
                ": nothing listens there; start the server, or name the right port (usually {})",
                self.usual_ports
            );
        }
        Failure::new(Kind::Away, text)
    }

    fn distrusted(&self, error: &rustls::Error) -> Failure {
        use rustls::{CertificateError as Bad, Error};
        let name = self.endpoint.name();
        let why = one_line(&error.to_string());
        match error {
            Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => Failure::new(
                Kind::Wrong,
                format!(
                    "{name}: nobody that is trusted here has signed its certificate ({why}): if it is yours, name the certificate of \
                     your authority with --ca FILE"
                ),
            ),
            Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
                Failure::new(
                    Kind::Wrong,
                    format!(
                        "{name}: its certificate is for another name ({why}): use the name that is in it"
                    ),
                )
            }
            Error::InvalidCertificate(_) => {
                Failure::new(Kind::Wrong, format!("{name}: its certificate is not good ({why})"))
            }
            Error::InvalidMessage(_) => Failure::new(
                Kind::Wrong,
                format!(
                    "{name} does not speak TLS ({why}): take the address without TLS, or the port that has it"
                ),
            ),
            _ => Failure::new(Kind::Away, format!("{name}: TLS failed ({why})")),
        }
    }
}

/// What is to be sent cannot be read; as an error of a body that is being sent.
#[derive(Debug)]
pub(super) struct Unreadable(pub PushError);

impl fmt::Display for Unreadable {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

impl std::error::Error for Unreadable {}

/// A text of a stranger, safe to show, not long.
pub(super) fn one_line(text: &str) -> String {
    let short: String = text.trim().chars().take(MOST_SHOWN).collect();
    if short.is_empty() {
        short
    } else {
        Label::new(&short.replace(['\n', '\r', '\t'], " ")).as_str().to_owned()
    }
}

/// What `Retry-After` asks for: seconds, or a time.
fn asked_to_wait(text: &str, now: SystemTime) -> Option<Duration> {
    match text.trim().parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(date::parse(text)?.duration_since(now).unwrap_or_default()),
    }
}

fn authorities(trust: &Trust) -> Result<Vec<Certificate<'static>>, PushError> {
    let of = |der: &CertificateDer<'_>| Certificate::from_der(der.as_ref()).to_owned();
    match trust {
        Trust::System => {
            let found = rustls_native_certs::load_native_certs();
            if found.certs.is_empty() {
                let why = found.errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                return Err(PushError::NoAuthorities(if why.is_empty() {
                    "none were found".to_owned()
                } else {
                    why
                }));
            }
            Ok(found.certs.iter().map(of).collect())
        }
        Trust::File(path) => {
            let certificates = read_certificates(path)?;
            Ok(certificates.iter().map(of).collect())
        }
    }
}

/// The certificates of a file of PEM, each of which TLS can use.
fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PushError> {
    let wrong = |why: String| PushError::Authority { path: path.to_owned(), why };
    let mut text = Vec::new();
    let file = fs::File::open(path).map_err(PushError::file("read", path))?;
    file.take(MOST_CERTIFICATES).read_to_end(&mut text).map_err(PushError::file("read", path))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| wrong(format!("its certificates cannot be read: {error}")))?;
    let mut store = rustls::RootCertStore::empty();
    let (usable, _) = store.add_parsable_certificates(found.iter().cloned());
    if usable == 0 {
        return Err(wrong(
            "there is no certificate of an authority in it: PEM is needed, `-----BEGIN CERTIFICATE-----`"
                .to_owned(),
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn retry_after_is_seconds_or_a_time() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(asked_to_wait(" 120 ", now), Some(Duration::from_secs(120)));
        assert_eq!(asked_to_wait("Sun, 06 Nov 1994 08:50:37 GMT", now), Some(Duration::from_secs(60)));
        assert_eq!(asked_to_wait("Sun, 06 Nov 1994 08:49:36 GMT", now), Some(Duration::ZERO), "over already");
        assert_eq!(asked_to_wait("soon", now), None);
        assert_eq!(asked_to_wait("-5", now), None);
    }

    #[test]
    fn what_strangers_say_is_one_short_line() {
        let said = one_line("  Code: 60\u{1b}[31m\nno table\t\u{202e} ");
        assert!(!said.contains(['\n', '\u{1b}', '\u{202e}', '\t']), "{said:?}");
        assert!(one_line(&"x".repeat(5_000)).len() <= MOST_SHOWN);
        assert_eq!(one_line(" \n"), "");
    }

    #[test]
    fn a_file_without_certificates_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.pem");
        let endpoint = || Endpoint::new("localhost", 1, true);
        let open = |path| Client::new(endpoint(), "1", &Trust::File(path));
        for text in ["", "no certificate", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            fs::write(&path, text).expect("written");
            let error = open(path.clone()).err().expect(text).to_string();
            assert!(error.contains("ca.pem") && error.contains("BEGIN CERTIFICATE"), "{error}");
        }
        let missing = open(folder.path().join("none")).err().expect("missing");
        assert!(missing.to_string().contains("cannot read"), "{missing}");
    }
}
