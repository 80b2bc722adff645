//! Passwords go to whom they are for, hidden, and appear nowhere else.

use std::fs;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use eprof_testbed::clickhouse::ClickHouse;
use eprof_testbed::eprof;
use eprof_testbed::receiver::{Answer, Certificate, Receiver};

use super::{Sums, forward, push, push_all, said, server, tables};

const SECRET: &str = "hunter2-Zx9";

#[test]
fn a_password_opens_the_database_and_is_shown_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server(folder.path()) else { return };
    let tables = tables(folder.path(), 1, &["a"]);
    let (user, password) = ClickHouse::writer();
    let file = folder.path().join("password");
    let url = format!("clickhouse://{user}@{}/energy", server.address());
    let arguments = ["--password-file", file.to_str().expect("UTF-8")];
    fs::write(&file, SECRET).expect("written");
    let wrong = push(&tables, &url, &arguments);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(said(&wrong).contains("password") && !said(&wrong).contains(SECRET), "{}", said(&wrong));
    fs::write(&file, format!("{password}\n")).expect("written");
    let right = push_all(&tables, &url, &arguments);
    assert!(!right.contains(password), "{right}");
    Sums::of_files(&tables).assert_same(&Sums::of_server(&server));
    for entry in fs::read_dir(&tables).expect("a folder").map(|entry| entry.expect("readable").path()) {
        if entry.is_file() {
            assert!(!fs::read_to_string(&entry).expect("text").contains(password), "{}", entry.display());
        }
    }
}

#[test]
fn tls_is_for_those_whose_authority_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server(folder.path()) else { return };
    let Some(ours) = Certificate::make(&folder.path().join("ours"), "DNS:localhost,IP:127.0.0.1") else {
        return;
    };
    let Some(others) = Certificate::make(&folder.path().join("others"), "DNS:localhost") else { return };
    let tables = tables(folder.path(), 1, &["a"]);
    let address = server.address();
    let start = |certificate: &Certificate| {
        Receiver::start_at(([127, 0, 0, 1], 0).into(), Some(certificate), move |request| {
            forward(address, request)
        })
    };
    let (receiver, elsewhere) = (start(&ours), start(&others));
    let url = |receiver: &Receiver, host: &str| {
        format!("clickhouses://{host}:{}/energy", receiver.address().port())
    };
    let ca = ours.authority.to_str().expect("UTF-8");
    let refused = |url: &str, arguments: &[&str]| {
        let output = push(&tables, url, arguments);
        assert_eq!(output.status.code(), Some(1));
        said(&output)
    };
    let unknown = refused(&url(&receiver, "localhost"), &[]);
    assert!(unknown.contains("--ca FILE") && unknown.contains("UnknownIssuer"), "{unknown}");
    let another = refused(&url(&elsewhere, "localhost"), &["--ca", ca]);
    assert!(another.contains("--ca FILE"), "{another}");
    let other_name =
        refused(&url(&elsewhere, "127.0.0.1"), &["--ca", others.authority.to_str().expect("UTF-8")]);
    assert!(other_name.contains("another name"), "{other_name}");
    let plain = refused(&format!("clickhouses://{address}/energy"), &["--ca", ca, "--retry-for", "0s"]);
    assert!(plain.contains("TLS"), "{plain}");
    assert!(receiver.requests().is_empty() && elsewhere.requests().is_empty(), "nothing was sent");
    push_all(&tables, &url(&receiver, "localhost"), &["--ca", ca]);
    Sums::of_files(&tables).assert_same(&Sums::of_server(&server));
}

#[test]
fn a_password_is_not_sent_on_nor_in_the_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = tables(folder.path(), 1, &["a"]);
    let file = folder.path().join("password");
    fs::write(&file, SECRET).expect("written");
    let arguments = ["--password-file", file.to_str().expect("UTF-8"), "--retry-for", "0s"];
    let refused = |url: &str, arguments: &[&str]| {
        let output = push(&tables, url, arguments);
        assert_eq!(output.status.code(), Some(1));
        let said = said(&output);
        assert!(!said.contains(SECRET), "{said}");
        said
    };
    // Nobody is there, and nobody is asked: it is refused before.
    let open = refused("clickhouse://192.0.2.1:8123/energy", &arguments);
    assert!(open.contains("--allow-plain-http") && open.contains("clickhouses://"), "{open}");
    let in_url = refused(&format!("clickhouse://user:{SECRET}@127.0.0.1/energy"), &[]);
    assert!(in_url.contains("list of processes"), "{in_url}");
    let elsewhere = Receiver::start(|_| Answer::status(200));
    let to = format!("http://{}/", elsewhere.address());
    for status in [301, 302, 307, 308] {
        let value = to.clone();
        let redirects =
            Receiver::start(move |_| Answer::Status(status, vec![("Location", value.clone())], Vec::new()));
        let told = refused(&format!("clickhouse://{}/energy", redirects.address()), &arguments);
        assert!(told.contains("not followed") && told.contains(&to), "{told}");
        assert_eq!(redirects.requests()[0].headers["x-clickhouse-key"], SECRET);
    }
    assert!(elsewhere.requests().is_empty(), "nobody was sent there");
}

#[test]
fn the_list_of_processes_does_not_tell_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = tables(folder.path(), 1, &["a"]);
    let (tell, told) = mpsc::channel();
    let receiver = Receiver::start(move |request| {
        tell.send(request.headers.get("x-clickhouse-key").cloned()).expect("somebody listens");
        Answer::Hang(Duration::from_secs(20))
    });
    let mut command = eprof();
    command.arg("push").arg(&tables).arg(format!("clickhouse://{}/energy", receiver.address()));
    command.env("EPROF_PUSH_PASSWORD", SECRET).stderr(std::process::Stdio::null());
    let child = eprof_testbed::Started::new(&mut command);
    let sent = told.recv_timeout(Duration::from_secs(60)).expect("a request");
    assert_eq!(sent.as_deref(), Some(SECRET), "from the environment");
    let line = fs::read(format!("/proc/{}/cmdline", child.id())).expect("read");
    assert!(!String::from_utf8_lossy(&line).contains(SECRET));
    let list = Command::new("ps").args(["-ww", "-o", "args", "-p", &child.id().to_string()]).output();
    if let Ok(list) = list {
        assert!(!String::from_utf8_lossy(&list.stdout).contains(SECRET));
    }
}
