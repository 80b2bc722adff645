//! A small server of HTTP, with or without TLS, that answers as a test wants.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A connection is not waited for longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request as it came; the body without chunks.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is asked for, with what stands behind `?`.
    pub path: String,
    /// By their names in small letters.
    pub headers: BTreeMap<String, String>,
    /// What was sent.
    pub body: Vec<u8>,
}

/// What is answered.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A status with headers and a text.
    Status(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Nothing for so long, and then the connection is closed.
    Hang(Duration),
    /// The connection is closed.
    Cut,
}

impl Answer {
    /// A status alone.
    pub fn status(status: u16) -> Self {
        Self::Status(status, Vec::new(), Vec::new())
    }

    /// A text, as ClickHouse answers it: its servers put their name into every answer.
    pub fn of_clickhouse(text: impl Into<Vec<u8>>) -> Self {
        Self::Status(200, vec![("X-ClickHouse-Server-Display-Name", "test".to_owned())], text.into())
    }
}

type MakeAnswer = Arc<Mutex<dyn FnMut(&Request) -> Answer + Send>>;

/// A server that runs until it is dropped.
pub struct Receiver {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
    requests: Arc<Mutex<Vec<Request>>>,
    /// Held while a request is answered.
    answer: MakeAnswer,
}

impl Receiver {
    /// Listens at a port of its own.
    pub fn start(answer: impl FnMut(&Request) -> Answer + Send + 'static) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), None, answer)
    }

    /// Listens there; with TLS if there is a certificate.
    pub fn start_at(
        address: SocketAddr,
        certificate: Option<&Certificate>,
        answer: impl FnMut(&Request) -> Answer + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        let address = listener.local_addr().expect("an address");
        let tls = certificate.map(Certificate::server);
        let (ends, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (ended, list) = (Arc::clone(&ends), Arc::clone(&requests));
        let answer: MakeAnswer = Arc::new(Mutex::new(answer));
        let made = Arc::clone(&answer);
        let thread = thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (tls, list, answer) = (tls.clone(), Arc::clone(&list), Arc::clone(&answer));
                let ended = Arc::clone(&ended);
                thread::spawn(move || {
                    connection.set_read_timeout(Some(PATIENCE)).expect("set");
                    // Who goes away is not missed.
                    let _ = match tls {
                        None => serve(connection, &ended, &list, &answer),
                        Some(tls) => {
                            rustls::ServerConnection::new(tls).map_err(io::Error::other).and_then(|tls| {
                                serve(rustls::StreamOwned::new(tls, connection), &ended, &list, &answer)
                            })
                        }
                    };
                });
            }
        });
        Self { address, ends, thread: Some(thread), requests, answer: made }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no panic").clone()
    }

    /// Ends it, and gives all requests that it has answered: from then on none is, also over connections that are open.
    pub fn end(self) -> Vec<Request> {
        let answering = self.answer.lock().expect("no panic");
        self.ends.store(true, Ordering::SeqCst);
        drop(answering);
        self.requests()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        let woken = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take().filter(|_| woken.is_ok()) {
            let _ = thread.join();
        }
    }
}

fn serve(
    stream: impl Read + Write,
    ended: &AtomicBool,
    requests: &Mutex<Vec<Request>>,
    answer: &Mutex<dyn FnMut(&Request) -> Answer + Send>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream)? {
        let mut answer = answer.lock().expect("no panic");
        if ended.load(Ordering::SeqCst) {
            return Ok(());
        }
        requests.lock().expect("no panic").push(request.clone());
        let made = answer(&request);
        drop(answer);
        match made {
            Answer::Cut => return Ok(()),
            Answer::Hang(time) => {
                thread::sleep(time);
                return Ok(());
            }
            Answer::Status(status, headers, body) => {
                let mut head = format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n", body.len());
                for (name, value) in headers {
                    head += &format!("{name}: {value}\r\n");
                }
                let out = stream.get_mut();
                out.write_all(head.as_bytes())?;
                out.write_all(b"\r\n")?;
                out.write_all(&body)?;
                out.flush()?;
            }
        }
    }
    Ok(())
}

fn read_request(stream: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers = read_headers(stream)?;
    let body = read_body(stream, &headers)?;
    Ok(Some(Request { path, headers, body }))
}

fn read_headers(stream: &mut impl BufRead) -> io::Result<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { return Ok(headers) };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}

fn read_body(stream: &mut impl BufRead, headers: &BTreeMap<String, String>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            let start = body.len();
            // With the line's end.
            body.resize(start + length + 2, 0);
            stream.read_exact(&mut body[start..])?;
            body.truncate(start + length);
            if length == 0 {
                return Ok(body);
            }
        }
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    body.resize(length, 0);
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// Sends a request by POST and gives what is answered: status and text.
///
/// # Errors
/// A server that is away.
pub fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<(u16, Vec<u8>)> {
    let (status, _, body) = post_for_headers(address, path, headers, body)?;
    Ok((status, body))
}

/// The same with the answer's headers, by their names in small letters.
///
/// # Errors
/// A server that is away.
pub fn post_for_headers(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<(u16, BTreeMap<String, String>, Vec<u8>)> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
    let headers = read_headers(&mut stream)?;
    let body = if headers.contains_key("content-length") || headers.contains_key("transfer-encoding") {
        read_body(&mut stream, &headers)?
    } else {
        let mut body = Vec::new();
        stream.read_to_end(&mut body)?;
        body
    };
    Ok((status, headers, body))
}

/// A certificate of `localhost` and 127.0.0.1, and the authority that signed it: files of PEM.
#[derive(Debug)]
pub struct Certificate {
    /// The authority's own certificate.
    pub authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificate {
    /// Makes an authority and a certificate in a folder; `None` where there is no openssl. `names` is what the certificate is for,
    /// as openssl's `subjectAltName` has it.
    pub fn make(folder: &Path, names: &str) -> Option<Self> {
        let script = format!(
            "set -e\n\
             openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test-authority \
             -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out ca.pem\n\
             openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=receiver -keyout server.key -out server.csr\n\
             printf 'subjectAltName={names}\\nbasicConstraints=CA:FALSE\\n' > server.ext\n\
             openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.pem\n"
        );
        fs::create_dir_all(folder).expect("a folder");
        let output = Command::new("sh").args(["-c", &script]).current_dir(folder).output().expect("sh runs");
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("not found"), "{said}");
            crate::skip_quietly("there is no openssl to make certificates");
            return None;
        }
        let place = |name: &str| folder.join(name);
        Some(Self { authority: place("ca.pem"), certificate: place("server.pem"), key: place("server.key") })
    }

    fn server(&self) -> Arc<rustls::ServerConfig> {
        let certificate = CertificateDer::from_pem_file(&self.certificate).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(&self.key).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let config = builder.with_no_client_auth().with_single_cert(vec![certificate], key);
        Arc::new(config.expect("they belong together"))
    }
}
