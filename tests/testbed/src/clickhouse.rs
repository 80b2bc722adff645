//! Servers of ClickHouse, with ports and folders of their own.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::receiver::post;
use crate::{Started, has_program, skip_quietly};

/// A server is up after so long, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);
const PASSWORD: &str = "a pass-word ü";

/// A server, which ends with the value.
pub struct ClickHouse {
    folder: PathBuf,
    /// Of HTTP and of its own protocol.
    ports: [u16; 2],
    process: Option<Started>,
}

impl ClickHouse {
    /// Starts so many servers; each can reach all as the shards of the cluster `all`. `None` where none is installed.
    pub fn start(folder: &Path, count: usize) -> Option<Vec<Self>> {
        if !has_program("sh", &["-c", "command -v clickhouse-server"]) {
            skip_quietly("no clickhouse-server is installed");
            return None;
        }
        // All are held until all are known, so that they differ.
        let held: Vec<TcpListener> =
            (0..3 * count).map(|_| TcpListener::bind(("127.0.0.1", 0)).expect("a port")).collect();
        let ports: Vec<u16> = held.iter().map(|port| port.local_addr().expect("an address").port()).collect();
        drop(held);
        let shards: String = ports
            .chunks(3)
            .map(|ports| {
                format!("<shard><replica><host>127.0.0.1</host><port>{}</port></replica></shard>", ports[1])
            })
            .collect();
        let mut servers = Vec::new();
        for (index, ports) in ports.chunks(3).enumerate() {
            let folder = folder.join(format!("clickhouse-{index}"));
            configure(&folder, ports, &shards);
            servers.push(Self { folder, ports: [ports[0], ports[1]], process: None });
        }
        servers.iter_mut().for_each(Self::run);
        Some(servers)
    }

    /// Starts a server that was killed.
    pub fn run(&mut self) {
        let config = self.folder.join("config.xml");
        let mut command = Command::new("clickhouse-server");
        command.arg(format!("--config-file={}", config.display())).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(Started::new(&mut command));
        let deadline = Instant::now() + PATIENCE;
        while post(self.address(), "/", &[], b"SELECT 1").is_err() {
            let log = || fs::read_to_string(self.folder.join("err")).unwrap_or_default();
            assert!(Instant::now() < deadline, "clickhouse-server does not answer: {}", log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills it, in the middle of whatever it does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it runs");
            process.wait().expect("it ends");
        }
    }

    /// Where it takes HTTP.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.ports[0]).into()
    }

    /// A user whose name this is has this password; the user `default` has none.
    pub fn writer() -> (&'static str, &'static str) {
        ("writer", PASSWORD)
    }

    /// What it answers: rows of texts.
    #[track_caller]
    pub fn ask(&self, statement: &str) -> Vec<Vec<String>> {
        let path = "/?default_format=TabSeparated";
        let (status, answer) = post(self.address(), path, &[], statement.as_bytes()).expect("it answers");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert_eq!(status, 200, "{statement}: {answer}");
        answer.lines().map(|line| line.split('\t').map(unescaped).collect()).collect()
    }

    /// The only value of what it answers.
    #[track_caller]
    pub fn value(&self, statement: &str) -> String {
        let rows = self.ask(statement);
        let [[value]] = &rows.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] else { panic!("{rows:?}") };
        value.clone()
    }
}

/// A text of `TabSeparated`.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('0') => '\0',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    out
}

fn configure(folder: &Path, ports: &[u16], shards: &str) {
    for part in ["data", "tmp", "formats"] {
        fs::create_dir_all(folder.join(part)).expect("a folder");
    }
    let place = folder.display();
    let [http, tcp, between] = ports else { panic!("three ports") };
    let config = format!(
        "<yandex><logger><level>error</level><log>{place}/log</log><errorlog>{place}/err</errorlog></logger>\
         <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{between}</interserver_http_port>\
         <listen_host>127.0.0.1</listen_host><path>{place}/data/</path><tmp_path>{place}/tmp/</tmp_path>\
         <format_schema_path>{place}/formats/</format_schema_path><mark_cache_size>67108864</mark_cache_size>\
         <users_config>{place}/users.xml</users_config><default_profile>default</default_profile>\
         <default_database>default</default_database>\
         <remote_servers><all>{shards}</all></remote_servers></yandex>"
    );
    fs::write(folder.join("config.xml"), config).expect("written");
    let user = |name: &str, password: &str| {
        format!(
            "<{name}><password>{password}</password><networks><ip>127.0.0.1</ip></networks>\
             <profile>default</profile><quota>default</quota></{name}>"
        )
    };
    let (name, password) = ClickHouse::writer();
    let users = format!(
        "<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>\
         <users>{}{}</users><quotas><default/></quotas></yandex>",
        user("default", ""),
        user(name, password)
    );
    fs::write(folder.join("users.xml"), users).expect("written");
}
