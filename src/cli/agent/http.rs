//! A server of two pages, for scrapers.
//!
//! One request a connection, and little of everything: bytes, time, connections at once. Who connects and asks for nothing makes
//! room for the next one, as does who asks and does not read. Requests are parsed by httparse; what else a server of the web
//! does is not wanted here.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use eprof::process::privileges;

use super::metrics::{Format, MakePage};
use super::places::{Place, Places, forget_unread};

/// Bytes of a request up to its empty line.
const MOST_BYTES: usize = 8 << 10;
const MOST_HEADERS: usize = 64;
/// Connections that are answered at once.
const MOST_CONNECTIONS: usize = 8;
/// From a connection's start to its end.
const MOST_TIME: Duration = Duration::from_secs(5);

/// A server that runs until it is dropped.
pub struct Server {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens there.
    ///
    /// # Errors
    /// An address that is not this machine's, or is taken.
    pub fn start(address: SocketAddr, page: MakePage) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let run = move || {
            // Whoever speaks to this thread speaks to one without rights.
            let _ = privileges::keep_capabilities(0);
            serve(&listener, &ended, &page);
        };
        let thread = thread::Builder::new().name("eprof-http".into()).spawn(run)?;
        Ok(Self { address, ends, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // Wakes the one who waits for connections.
        let mut here = self.address;
        if here.ip().is_unspecified() {
            here.set_ip(match here {
                SocketAddr::V4(_) => [127, 0, 0, 1].into(),
                SocketAddr::V6(_) => [0, 0, 0, 0, 0, 0, 0, 1].into(),
            });
        }
        let woken = TcpStream::connect_timeout(&here, Duration::from_secs(1)).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, ends: &AtomicBool, page: &MakePage) {
    let places = Places::new(MOST_CONNECTIONS);
    for connection in listener.incoming() {
        if ends.load(Ordering::SeqCst) {
            return;
        }
        let Ok(connection) = connection else {
            // Without descriptors nothing gets better by asking at once.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        // Whoever finds no room is closed.
        let Some(place) = places.take(&connection) else { continue };
        let page = Arc::clone(page);
        // Who went away is not missed.
        let answer = move || {
            let _ = answer(connection, &place, &page);
        };
        // A place is free again when its value is gone, with the thread or without.
        let _ = thread::Builder::new().name("eprof-http".into()).stack_size(256 << 10).spawn(answer);
    }
}

/// What is answered.
struct Answer {
    status: &'static str,
    content_type: &'static str,
    text: String,
}

impl Answer {
    fn plain(status: &'static str, text: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", text: format!("{text}\n") }
    }
}

fn answer(mut connection: TcpStream, place: &Place, page: &MakePage) -> io::Result<()> {
    let deadline = Instant::now() + MOST_TIME;
    let mut request = Vec::new();
    let (answer, with_text) = loop {
        if let Some(answered) = parsed(&request, || place.has_asked(), page) {
            break answered;
        }
        if request.len() >= MOST_BYTES {
            break (Answer::plain("431 Request Header Fields Too Large", "the request is too long"), true);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break (Answer::plain("408 Request Timeout", "the request took too long"), true);
        }
        connection.set_read_timeout(Some(left))?;
        let mut buffer = [0; 1024];
        match connection.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => request.extend(&buffer[..count]),
            Err(error) if is_of_time(&error) => {}
            Err(error) => return Err(error),
        }
    };
    let Answer { status, content_type, text } = answer;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\
         X-Content-Type-Options: nosniff\r\n\r\n",
        text.len()
    );
    let body = if with_text { text.as_str() } else { "" };
    place.is_given();
    for mut part in [head.as_bytes(), body.as_bytes()] {
        while !part.is_empty() {
            // A page is taken in time as a request is given.
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            connection.set_write_timeout(Some(left))?;
            let written = match connection.write(part) {
                Err(error) if is_of_time(&error) => 0,
                written => written?,
            };
            part = &part[written..];
            if Instant::now() >= deadline && !part.is_empty() {
                forget_unread(&connection);
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
    connection.shutdown(Shutdown::Write)
}

/// Nothing is wrong: there was nothing to read yet, or no room to write.
fn is_of_time(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The answer to a request that is all there, and whether its text is wanted. `is_whole` is told before a page is made.
fn parsed(request: &[u8], is_whole: impl FnOnce(), page: &MakePage) -> Option<(Answer, bool)> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => is_whole(),
        Err(httparse::Error::TooManyHeaders) => {
            return Some((Answer::plain("431 Request Header Fields Too Large", "too many headers"), true));
        }
        Err(error) => return Some((Answer::plain("400 Bad Request", &error.to_string()), true)),
    }
    let with_text = match parsed.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return Some((Answer::plain("405 Method Not Allowed", "only GET and HEAD"), true)),
    };
    let path = parsed.path.and_then(|path| path.split('?').next()).unwrap_or_default();
    let answer = match path {
        "/metrics" => {
            let accept = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case("accept"));
            let format = Format::accepted(accept.and_then(|header| std::str::from_utf8(header.value).ok()));
            match page(format) {
                Some(text) => Answer { status: "200 OK", content_type: format.content_type(), text },
                None => Answer::plain("503 Service Unavailable", "the agent does not record"),
            }
        }
        "/healthz" => match page(Format::Prometheus) {
            Some(_) => Answer::plain("200 OK", "ok"),
            None => Answer::plain("503 Service Unavailable", "the agent does not record"),
        },
        "/" => Answer::plain("200 OK", "eprof agent: /metrics, /healthz"),
        _ => Answer::plain("404 Not Found", "there are /metrics and /healthz"),
    };
    Some((answer, with_text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        let page: MakePage = Arc::new(|format| Some(format!("page of {}\n", format.content_type())));
        Server::start(([127, 0, 0, 1], 0).into(), page).expect("a port")
    }

    /// Sends bytes and reads all that comes back.
    fn ask(server: &Server, request: &[u8]) -> String {
        let mut connection = TcpStream::connect(server.address()).expect("connected");
        connection.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        connection.write_all(request).expect("sent");
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = connection.read(&mut buffer) {
            answer.extend(&buffer[..count]);
        }
        String::from_utf8(answer).expect("text")
    }

    #[test]
    fn pages_are_given_in_the_format_that_is_asked_for() {
        let server = server();
        let plain = ask(&server, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(
            plain.starts_with("HTTP/1.1 200 OK\r\n")
                && plain.ends_with("\r\n\r\npage of text/plain; version=0.0.4; charset=utf-8\n"),
            "{plain}"
        );
        let open = ask(&server, b"GET /metrics?x=1 HTTP/1.1\r\naccept: application/openmetrics-text\r\n\r\n");
        assert!(open.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{open}");
        let head = ask(&server, b"HEAD /metrics HTTP/1.0\r\n\r\n");
        assert!(head.ends_with("\r\n\r\n") && !head.contains("Content-Length: 0"), "{head}");
        assert!(ask(&server, b"GET /healthz HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nok\n"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let server = server();
        let status = |request: &[u8]| ask(&server, request).split(' ').nth(1).unwrap_or("none").to_owned();
        assert_eq!(status(b"GET /etc/passwd HTTP/1.1\r\n\r\n"), "404");
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\n\r\n"), "405");
        assert_eq!(status(b"\x16\x03\x01 hello\r\n\r\n"), "400");
        let many: String = (0..100).map(|index| format!("a{index}: b\r\n")).collect();
        assert_eq!(status(format!("GET / HTTP/1.1\r\n{many}\r\n").as_bytes()), "431");
        let long = [b"GET /".as_slice(), &[b'x'; MOST_BYTES]].concat();
        assert_eq!(status(&long), "431");
    }

    /// Whether the server has closed it.
    fn is_closed(mut connection: &TcpStream, within: Duration) -> bool {
        connection.set_read_timeout(Some(within)).expect("set");
        match connection.read(&mut [0; 1]) {
            Ok(read) => read == 0,
            // So it is told where the server had not read all.
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    #[test]
    fn who_asks_for_nothing_makes_room_the_oldest_first() {
        let server = server();
        let connect = || TcpStream::connect(server.address()).expect("connected");
        let started = Instant::now();
        let mut idle: Vec<TcpStream> = (0..MOST_CONNECTIONS).map(|_| connect()).collect();
        // What has begun and does not go on is idle, too.
        idle[0].write_all(b"GET /metrics HTTP/1.1\r\n").expect("sent");
        for _ in 0..3 {
            assert!(ask(&server, b"GET /healthz HTTP/1.1\r\n\r\n").ends_with("ok\n"), "nobody is answered");
        }
        assert!(started.elapsed() < MOST_TIME, "nobody waited until the others' time was over");
        assert!(is_closed(&idle[0], MOST_TIME / 2), "the oldest went");
        assert!(!is_closed(&idle[MOST_CONNECTIONS - 1], Duration::from_millis(50)), "the youngest stays");
        // Many more of them change nothing.
        let many: Vec<TcpStream> = (0..5 * MOST_CONNECTIONS).map(|_| connect()).collect();
        assert!(ask(&server, b"GET /healthz HTTP/1.1\r\n\r\n").ends_with("ok\n"), "nobody is answered");
        drop((idle, many));
    }

    #[test]
    fn who_has_asked_is_answered_though_others_come() {
        let (made, is_made) = std::sync::mpsc::channel();
        let (go, goes) = std::sync::mpsc::channel::<()>();
        let (made, goes) = (std::sync::Mutex::new(made), std::sync::Mutex::new(goes));
        let page: MakePage = Arc::new(move |_| {
            made.lock().expect("no panic").send(()).expect("somebody looks");
            let _ = goes.lock().expect("no panic").recv();
            Some("a page\n".to_owned())
        });
        let server = Server::start(([127, 0, 0, 1], 0).into(), page).expect("a port");
        let connect = || TcpStream::connect(server.address()).expect("connected");
        let mut asked = connect();
        asked.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
        is_made.recv_timeout(Duration::from_secs(20)).expect("the page is made");
        let idle: Vec<TcpStream> = (0..2 * MOST_CONNECTIONS).map(|_| connect()).collect();
        assert!(is_closed(&idle[0], Duration::from_secs(20)), "an idle one went");
        drop(go);
        asked.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        let mut answer = String::new();
        asked.read_to_string(&mut answer).expect("text");
        assert!(answer.ends_with("a page\n"), "{answer}");
    }

    /// Pages that no socket takes whole, so that who does not read keeps its thread.
    #[test]
    fn who_asks_and_does_not_read_makes_room() {
        const LENGTH: usize = 32 << 20;
        let text = "j".repeat(LENGTH);
        let page: MakePage = Arc::new(move |_| Some(text.clone()));
        let server = Server::start(([127, 0, 0, 1], 0).into(), page).expect("a port");
        let silent: Vec<TcpStream> = (0..2 * MOST_CONNECTIONS)
            .map(|_| {
                let mut connection = TcpStream::connect(server.address()).expect("connected");
                connection.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
                // From here on it is given its page.
                connection.read_exact(&mut [0; 1]).expect("an answer");
                connection
            })
            .collect();
        for _ in 0..3 {
            assert!(ask(&server, b"GET /healthz HTTP/1.1\r\n\r\n").ends_with("ok\n"), "nobody is answered");
        }
        // Nothing of its page is left in the kernel: it was not closed as who was served is.
        let mut first = &silent[0];
        first.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        let ended = first.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
        assert_eq!(ended, Err(io::ErrorKind::ConnectionReset));
        // Who reads gets all of it meanwhile.
        assert!(ask(&server, b"GET /metrics HTTP/1.1\r\n\r\n").len() > LENGTH);
    }

    #[test]
    fn the_end_leaves_the_port_free() {
        let server = server();
        let address = server.address();
        drop(server);
        assert!(TcpListener::bind(address).is_ok());
    }
}
