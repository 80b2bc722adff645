//! Real engines, started for a test and stopped by it.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use eprof_testbed::{has_program, skip_quietly};

/// A server that ends with the test.
pub struct Server {
    process: Child,
    pub port: u16,
    folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How long a server may take until it answers: machines that build something else meanwhile are slow.
const TO_START: Duration = Duration::from_secs(60);

impl Server {
    fn start(mut command: Command, port: u16, folder: tempfile::TempDir) -> Self {
        let log = fs::File::create(folder.path().join("output")).expect("a file");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        let mut server = Self { process: command.spawn().expect("a server"), port, folder };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.process.try_wait().expect("a process");
            let said = fs::read_to_string(server.folder.path().join("output")).unwrap_or_default();
            assert!(ended.is_none() && begin.elapsed() < TO_START, "{command:?}: {ended:?}: {said}");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }
}

/// A port of this machine that nobody listens at.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The password of the user `reader`.
pub const PASSWORD: &str = "se cret'&";

/// Two servers of ClickHouse as two shards: on both, tables in `energy_local`, and all of both in `energy`.
pub fn clickhouse_shards() -> Option<[Server; 2]> {
    if !has_program("sh", &["-c", "command -v clickhouse-server"]) {
        skip_quietly(
            "there is no clickhouse-server (apt-get install clickhouse-server): ClickHouse is not asked",
        );
        return None;
    }
    let ports: [[u16; 3]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| free_port()));
    let shards = ports.iter().fold(String::new(), |mut shards, [_, tcp, _]| {
        let _ = write!(shards, "<shard><replica><host>127.0.0.1</host><port>{tcp}</port></replica></shard>");
        shards
    });
    let servers = ports.map(|[http, tcp, between]| {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().display();
        let config = format!(
            "<yandex><logger><level>warning</level><log>{root}/log</log><errorlog>{root}/errors</errorlog></logger>\
             <listen_host>127.0.0.1</listen_host><http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>\
             <interserver_http_port>{between}</interserver_http_port><path>{root}/data/</path><tmp_path>{root}/tmp/</tmp_path>\
             <user_files_path>{root}/files/</user_files_path><format_schema_path>{root}/formats/</format_schema_path>\
             <mark_cache_size>67108864</mark_cache_size><users_config>{root}/users.xml</users_config>\
             <default_profile>default</default_profile><default_database>default</default_database>\
             <remote_servers><shards>{shards}</shards></remote_servers></yandex>"
        );
        let user = |name: &str, password: &str| {
            format!(
                "<{name}><password>{password}</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>\
                 <quota>default</quota></{name}>"
            )
        };
        let users = format!(
            "<yandex><profiles><default/></profiles><users>{}{}</users><quotas><default/></quotas></yandex>",
            user("default", ""),
            user("reader", &PASSWORD.replace('&', "&amp;"))
        );
        fs::write(folder.path().join("config.xml"), config).expect("written");
        fs::write(folder.path().join("users.xml"), users).expect("written");
        let mut command = Command::new("clickhouse-server");
        command.arg(format!("--config-file={root}/config.xml"));
        Server::start(command, http, folder)
    });
    for server in &servers {
        post(server.port, "CREATE DATABASE energy_local");
        post(server.port, "CREATE DATABASE energy");
    }
    Some(servers)
}

/// Asks a server of ClickHouse, as little as that takes.
#[track_caller]
pub fn post(port: u16, statement: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    let length = statement.len();
    write!(stream, "POST / HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{statement}").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
    assert!(head.starts_with("HTTP/1.0 200") || head.starts_with("HTTP/1.1 200"), "{statement}: {answer}");
    body.to_owned()
}

/// A ClickHouse of today, that has the tables of this folder in its database `energy`.
pub fn newer_clickhouse(tables: &Path) -> Option<Server> {
    if !has_program("python3", &["-c", "import chdb"]) {
        skip_quietly("python3 has no chdb (pip install chdb-core): no newer ClickHouse is asked");
        return None;
    }
    let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder"));
    let mut command = Command::new("python3");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fleet/chdb_server.py"));
    command.arg(tables).arg(port.to_string()).arg(folder.path());
    Some(Server::start(command, port, folder))
}

/// A cluster of Sail with two workers.
pub fn sail() -> Option<Server> {
    if !has_program("sail", &["--version"]) {
        skip_quietly("there is no sail (pip install pysail): no lake is asked");
        return None;
    }
    let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder"));
    let mut command = Command::new("sail");
    command.args(["flight", "server", "--port", &port.to_string()]).current_dir(folder.path());
    command.env("SAIL_MODE", "local-cluster").env("SAIL_CLUSTER__WORKER_INITIAL_COUNT", "2");
    Some(Server::start(command, port, folder))
}
