//! Whether an answer is ClickHouse's, and what it says.
//!
//! A status of 200 says neither. The page of a network that wants a login has it, and any server of HTTP that listens where
//! ClickHouse was thought to be; and ClickHouse itself says 200 where it comes upon an error late, for one when the rest of a
//! body does not arrive. Servers from 18.16 on put headers of their own into every answer, `X-ClickHouse-Server-Display-Name` at
//! least, and newer ones tell errors by `X-ClickHouse-Exception-Code`; before those, errors of status 200 are in the text alone.

use ureq::http::HeaderMap;

use crate::push::client::{Answered, Failure, Kind, one_line};

/// What the names of ClickHouse's own headers begin with.
const OWN_HEADERS: &str = "x-clickhouse-";
/// The header that has the code of an error.
const EXCEPTION_CODE: &str = "x-clickhouse-exception-code";
/// An error that comes late stands at the end of an answer, and is not longer than that.
const END: usize = 16 << 10;
/// The status that errors must not have.
const OK: u16 = 200;

/// The body of an answer that is ClickHouse's and tells of no error. `name` is whom was asked.
///
/// # Errors
/// An answer of somebody else, or ClickHouse's error.
pub(super) fn checked(name: String, usual_ports: &str, answered: Answered) -> Result<Vec<u8>, Failure> {
    let Answered { headers, body } = answered;
    if !is_own(&headers) {
        return Err(Failure::new(Kind::Wrong, format!("{name} {}", not_clickhouse(&body, usual_ports))));
    }
    let said = exception(&body);
    let code = headers.get(EXCEPTION_CODE).map(|code| String::from_utf8_lossy(code.as_bytes()).into_owned());
    let text = match (said, code) {
        (Some(said), _) => one_line(&said),
        (None, Some(code)) => one_line(&format!("Code: {code}, {}", String::from_utf8_lossy(&body))),
        (None, None) => return Ok(body),
    };
    let text = text.trim_end_matches([' ', ',']);
    Err(Failure::new(Kind::Refused(OK), format!("{name} answers by an error: {}", with_repair(text))))
}

/// Whether nothing is said: so ClickHouse acknowledges rows.
///
/// # Errors
/// Whatever is said.
pub(super) fn check_silent(name: String, body: &[u8]) -> Result<(), Failure> {
    let said = one_line(&String::from_utf8_lossy(body));
    if said.is_empty() {
        return Ok(());
    }
    let text = format!("{name} answers rows by a text, where ClickHouse is silent when it has them: {said}");
    Err(Failure::new(Kind::Refused(OK), text))
}

/// A refusal, with the doubt whether it is ClickHouse's.
pub(super) fn told(failure: Failure, usual_ports: &str) -> Failure {
    // A redirection is told as one, and who is busy may be a proxy in front.
    let is_doubtful = matches!(failure.kind, Kind::Refused(status) if !(300..400).contains(&status))
        && failure.headers.as_ref().is_some_and(|headers| !is_own(headers))
        && exception(failure.text().as_bytes()).is_none();
    if !is_doubtful {
        return Failure { text: with_repair(failure.text()), ..failure };
    }
    let text = format!(
        "{} (the answer has none of ClickHouse's headers: is the port right, usually {usual_ports}?)",
        failure.text()
    );
    Failure { text, ..failure }
}

/// An error of ClickHouse's, and what to do about it where that is known from its number.
fn with_repair(text: &str) -> String {
    let code = text.split("Code: ").nth(1).unwrap_or_default();
    let code = code.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
    let repair = match code {
        // UNKNOWN_DATABASE
        "81" => {
            "make it by `CREATE DATABASE`, or name another one behind the host: clickhouse://HOST/DATABASE"
        }
        // UNKNOWN_USER, REQUIRED_PASSWORD, AUTHENTICATION_FAILED
        "192" | "194" | "516" => {
            "name the user before the host, clickhouse://USER@HOST/DATABASE, and the file with the password by its option, \
             --password-file or the agent's --push-password-file"
        }
        // READONLY, ACCESS_DENIED
        "164" | "497" => {
            "let this user do so by `GRANT`, or name another one before the host: clickhouse://USER@HOST/DATABASE"
        }
        _ => return text.to_owned(),
    };
    format!("{text}: {repair}")
}

fn is_own(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with(OWN_HEADERS))
}

fn not_clickhouse(body: &[u8], usual_ports: &str) -> String {
    let said = one_line(&String::from_utf8_lossy(&body[..body.len().min(END)]));
    let said = if said.is_empty() { "by nothing".to_owned() } else { format!("`{said}`") };
    format!(
        "is not ClickHouse: its answer has none of the headers X-ClickHouse-..., and nothing counts as sent. Name ClickHouse's host and port \
         (usually {usual_ports}), and let a proxy in front of it pass these headers. It answers {said}"
    )
}

/// The error that an answer consists of or ends with. Lines that look so are no rows that eprof asks for.
fn exception(body: &[u8]) -> Option<String> {
    let is_error = |line: &&str| {
        let code = line.trim_start().strip_prefix("Code: ").unwrap_or_default();
        code.starts_with(|letter: char| letter.is_ascii_digit()) && line.contains("DB::")
    };
    let (start, end) = (&body[..body.len().min(END)], &body[body.len().saturating_sub(END)..]);
    [end, start].into_iter().find_map(|part| {
        let text = String::from_utf8_lossy(part);
        text.lines().find(is_error).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(headers: &[(&'static str, &'static str)], body: &[u8]) -> Answered {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")));
        Answered { headers: headers.collect(), body: body.to_vec() }
    }

    fn refusal(headers: &[(&'static str, &'static str)], body: &[u8]) -> Failure {
        checked("db:8123".to_owned(), "8123", answered(headers, body)).expect_err("no answer")
    }

    const OLD: (&str, &str) = ("X-ClickHouse-Server-Display-Name", "db");
    const NEW: (&str, &str) = ("X-ClickHouse-Summary", "{}");

    #[test]
    fn answers_of_old_and_new_servers_are_theirs() {
        for header in [OLD, NEW] {
            let rows = checked("db:8123".to_owned(), "8123", answered(&[header], b"a\tb\n")).expect("rows");
            assert_eq!(rows, b"a\tb\n");
        }
    }

    #[test]
    fn errors_of_those_who_may_not_say_what_to_name() {
        let of = |code: u32| {
            told(
                Failure::new(Kind::Refused(403), format!("db answers 403: Code: {code}. DB::Exception: no")),
                "8123",
            )
        };
        for (code, repair) in
            [(516, "--password-file"), (192, "USER@HOST"), (81, "CREATE DATABASE"), (497, "GRANT")]
        {
            assert!(of(code).to_string().contains(repair), "{}", of(code));
        }
        assert!(of(60).to_string().ends_with("DB::Exception: no"));
    }

    #[test]
    fn answers_of_others_are_not() {
        for body in [&b"<html>Log in to go on</html>"[..], b"", b"Ok.\n"] {
            let failure = refusal(&[("Server", "nginx")], body);
            assert_eq!(failure.kind, Kind::Wrong);
            let said = failure.to_string();
            assert!(said.contains("db:8123 is not ClickHouse") && said.contains("usually 8123"), "{said}");
        }
    }

    #[test]
    fn an_error_is_one_whatever_its_status() {
        let in_header = refusal(&[NEW, ("X-ClickHouse-Exception-Code", "209")], b"");
        assert!(in_header.to_string().contains("Code: 209"), "{in_header}");
        let old = b"Code: 60, e.displayText() = DB::Exception: no table, e.what() = DB::Exception";
        let mut late = b"1\n".repeat(END);
        late.extend(b"Code: 241. DB::Exception: Memory limit exceeded. (MEMORY_LIMIT_EXCEEDED)\n");
        for body in [&old[..], &late] {
            let failure = refusal(&[OLD], body);
            assert_eq!(failure.kind, Kind::Refused(200));
            assert!(failure.to_string().contains("db:8123 answers by an error: Code: "), "{failure}");
        }
        // What ClickHouse itself calls so may well be profiled.
        let functions = answered(&[OLD], b"name\nDB::Exception::what()\nCode: none\n");
        assert!(checked("db".to_owned(), "8123", functions).is_ok());
    }

    #[test]
    fn rows_are_acknowledged_by_silence() {
        assert!(check_silent("db:8123".to_owned(), b"\n").is_ok());
        let failure = check_silent("db:8123".to_owned(), b"Ok.").expect_err("a text");
        assert!(failure.to_string().contains("db:8123") && failure.to_string().contains("Ok."), "{failure}");
    }
}
