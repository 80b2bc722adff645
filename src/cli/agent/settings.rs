//! What the agent is asked to do: by options, by a configuration file with the same keys, or as usual.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use eprof::identity::Labels;
use eprof::meter::{AssumedWatts, MeterOptions, Source};
use eprof::process::privileges;
use eprof::push::{SecretSource, Trust, clickhouse, otlp};
use eprof::record::{CallGraph, DutyCycle};
use eprof::units::Nanoseconds;
use serde::Deserialize;

use super::super::output::warn;
use super::super::record::call_graph;
use super::receivers::Receivers;
use super::values::{Bytes, Share, Span};

/// What may be chosen, by options and by the configuration file.
#[derive(Args, Deserialize, Debug, Clone, Default, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Choices {
    /// Folder for the tables, of this machine alone. It is made if it is not there.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Samples per second of each event on each CPU that is not idle [default: 49].
    #[arg(short = 'F', long, value_name = "HERTZ")]
    pub frequency: Option<u64>,

    /// Share of the time in which samples are taken: 1% costs a hundredth, and of what code took 99 of 100
    /// joules are told as lost [default: 100%].
    #[arg(long, value_name = "SHARE")]
    pub duty: Option<Share>,

    /// Length of a window [default: 60s].
    #[arg(long, value_name = "TIME")]
    pub window: Option<Span>,

    /// Windows that are older are removed [default: 7d].
    #[arg(long, value_name = "TIME")]
    pub keep: Option<Span>,

    /// The oldest windows are removed when all take more [default: 10G].
    #[arg(long, value_name = "SIZE")]
    pub max_disk: Option<Bytes>,

    /// Where Prometheus finds the counters: an address with its port, or `none`. Anybody who reaches it may read them
    /// [default: 127.0.0.1:9753].
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<Listen>,

    /// Counters of functions at most, in each energy domain; what has none counts in one together. A function gets one in a
    /// window in which it has five samples and the COUNTth part of the joules, and up to twenty times as much as places get few,
    /// and keeps it [default: 100].
    #[arg(long, value_name = "COUNT")]
    pub functions: Option<usize>,

    /// The same of control groups [default: 200].
    #[arg(long, value_name = "COUNT")]
    pub cgroups: Option<usize>,

    /// Events to sample, as perf names them [default: as `eprof record`].
    #[arg(short, long, value_name = "EVENT")]
    pub event: Vec<String>,

    /// How to follow call paths, as for `eprof record` [default: fp].
    #[arg(long, value_name = "HOW")]
    pub call_graph: Option<String>,

    /// The power model, as for `eprof record`: a file, `stored`, or `none` [default: stored].
    #[arg(long, value_name = "MODEL")]
    pub model: Option<PathBuf>,

    /// Watts of the whole machine when idle and when busy, for an estimate where nothing is measured.
    #[arg(long, value_name = "IDLE:BUSY")]
    pub watts: Option<String>,

    /// Read only this kind of meter, as for `eprof record`.
    #[arg(long, value_name = "METER", value_delimiter = ',')]
    pub meter: Vec<String>,

    /// NVIDIA's management library, if not the driver's own libnvidia-ml.so.1.
    #[arg(long, value_name = "FILE")]
    pub nvml_lib: Option<PathBuf>,

    /// Tell these windows from others, as `eprof record --label`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,

    /// Put each window into this database of ClickHouse, by its HTTP: clickhouse://[USER@]HOST[:PORT]/DATABASE, with TLS
    /// clickhouses://. What it has not acknowledged is sent again, and counts once.
    #[arg(long, value_name = "URL")]
    pub push: Option<String>,

    /// The file that has that user's password; without it the variable EPROF_PUSH_PASSWORD may have it.
    #[arg(long, value_name = "FILE")]
    pub push_password_file: Option<PathBuf>,

    /// Send each window as a profile to this collector of OpenTelemetry, by HTTP: http(s)://HOST[:PORT], and
    /// /v1development/profiles if no other path is named.
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,

    /// The file that has the collector's token (bearer); without it the variable EPROF_OTLP_TOKEN may have it.
    #[arg(long, value_name = "FILE")]
    pub otlp_token_file: Option<PathBuf>,

    /// What profiles that wait for the collector may take on disk [default: 256M].
    #[arg(long, value_name = "SIZE")]
    pub otlp_spool: Option<Bytes>,

    /// Of receivers with TLS believe the authorities in this file (PEM) alone, instead of those that this machine trusts.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Send password and token without TLS also to other machines: everybody on the way can read them.
    #[arg(long)]
    pub allow_plain_http: bool,

    /// Become this user when all is open (with root's rights alone).
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
}

/// What settings are made from, again at each SIGHUP.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The options.
    pub options: Choices,
    /// The configuration file for what they leave open.
    pub file: Option<PathBuf>,
}

impl Asked {
    /// The settings as they are now.
    ///
    /// # Errors
    /// What is wrong with options or file, in a sentence.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let file = self.file.as_deref().map(Choices::read).transpose()?.unwrap_or_default();
        Settings::new(self.options.clone().or(file))
    }
}

/// Where to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere.
    Nowhere,
    /// There.
    At(SocketAddr),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::Nowhere);
        }
        let form =
            || format!("'{text}' is neither `none` nor an address with its port, such as 127.0.0.1:9753");
        if let Some((host, port)) = text.rsplit_once(':')
            && host == "localhost"
        {
            let port = port.parse().map_err(|_| form())?;
            return Ok(Self::At(SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port)));
        }
        text.parse().map(Self::At).map_err(|_| form())
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What the agent does.
#[derive(Debug, Clone)]
pub struct Settings {
    pub output: PathBuf,
    pub keep: Duration,
    pub max_disk: u64,
    pub listen: Listen,
    pub functions: usize,
    pub cgroups: usize,
    pub user: Option<String>,
    pub receivers: Receivers,
    pub sampled: Sampled,
}

/// What a recording has to begin anew for, should it change.
#[derive(Debug, Clone)]
pub struct Sampled {
    pub frequency: u64,
    pub duty: Option<DutyCycle>,
    pub window: Duration,
    pub event: Vec<String>,
    pub call_graph: CallGraph,
    pub model: PathBuf,
    pub meters: MeterOptions,
    pub labels: Labels,
    /// What it was made of, to see whether it changed.
    of: Choices,
}

/// A configuration file is no larger.
const MOST_BYTES: u64 = 1 << 20;
const FREQUENCY: u64 = 49;
/// More than that is no low rate any more.
const HIGHEST_FREQUENCY: u64 = 999;
const WINDOW: Duration = Duration::from_secs(60);
const SHORTEST_WINDOW: Duration = Duration::from_secs(1);
const LONGEST_WINDOW: Duration = Duration::from_secs(3_600);
const KEEP: Duration = Duration::from_secs(7 * 86_400);
const MAX_DISK: u64 = 10 << 30;
/// Less is a unit that was forgotten.
const LEAST_DISK: u64 = 64 << 10;
const LISTEN: Listen = Listen::At(SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9_753));
const OTLP_SPOOL: u64 = 256 << 20;
const FUNCTIONS: usize = 100;
const CGROUPS: usize = 200;
/// Series that a scraper and this process can be asked to bear.
const MOST_SERIES: usize = 10_000;
/// A cycle of the duty is so long at most, where a stretch has samples enough,
const LONGEST_CYCLE: Duration = Duration::from_secs(10);
/// and a window has so many of them at least: one without a stretch says nothing of functions.
const CYCLES_OF_WINDOW: u32 = 4;

impl Choices {
    /// What a configuration file says.
    ///
    /// # Errors
    /// A file that cannot be read, is no JSON, or has keys or values that nobody knows.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot read the configuration {}", path.display());
        // What is wrong with it is told with its own words.
        let text = privileges::read_unaided(path, MOST_BYTES).with_context(cannot)?;
        serde_json::from_slice(&text).map_err(|error| {
            let why = match error.classify() {
                serde_json::error::Category::Data => "keys and values are those of the options",
                serde_json::error::Category::Eof => "it ends before the JSON in it does",
                _ => "it is no JSON",
            };
            anyhow::Error::new(error).context(format!("the configuration {} is wrong: {why}", path.display()))
        })
    }

    /// These, and what they leave open from `others`.
    fn or(self, others: Self) -> Self {
        fn listed<T>(ours: Vec<T>, theirs: Vec<T>) -> Vec<T> {
            if ours.is_empty() { theirs } else { ours }
        }
        Self {
            output: self.output.or(others.output),
            frequency: self.frequency.or(others.frequency),
            duty: self.duty.or(others.duty),
            window: self.window.or(others.window),
            keep: self.keep.or(others.keep),
            max_disk: self.max_disk.or(others.max_disk),
            listen: self.listen.or(others.listen),
            functions: self.functions.or(others.functions),
            cgroups: self.cgroups.or(others.cgroups),
            event: listed(self.event, others.event),
            call_graph: self.call_graph.or(others.call_graph),
            model: self.model.or(others.model),
            watts: self.watts.or(others.watts),
            meter: listed(self.meter, others.meter),
            nvml_lib: self.nvml_lib.or(others.nvml_lib),
            label: listed(self.label, others.label),
            push: self.push.or(others.push),
            push_password_file: self.push_password_file.or(others.push_password_file),
            otlp: self.otlp.or(others.otlp),
            otlp_token_file: self.otlp_token_file.or(others.otlp_token_file),
            otlp_spool: self.otlp_spool.or(others.otlp_spool),
            ca: self.ca.or(others.ca),
            allow_plain_http: self.allow_plain_http || others.allow_plain_http,
            user: self.user.or(others.user),
        }
    }
}

impl Settings {
    fn new(choices: Choices) -> anyhow::Result<Self> {
        let Some(output) = choices.output.clone() else {
            bail!(
                "nowhere to write: name a folder of this machine's own with -o DIR (or `output` in the configuration)"
            );
        };
        ensure!(
            output.as_os_str() != "-",
            "the tables are files of a folder, and cannot go to standard output: name a folder with -o DIR"
        );
        let frequency = choices.frequency.unwrap_or(FREQUENCY);
        ensure!(
            (1..=HIGHEST_FREQUENCY).contains(&frequency),
            "--frequency is 1 to {HIGHEST_FREQUENCY} samples a second; for more there is `eprof record`"
        );
        let window = choices.window.map_or(WINDOW, |span| span.0);
        ensure!(
            (SHORTEST_WINDOW..=LONGEST_WINDOW).contains(&window),
            "--window is 1s to 1h: shorter ones tell little, longer ones take memory"
        );
        let count = |option: &str, count: usize| {
            ensure!((1..=MOST_SERIES).contains(&count), "{option} is 1 to {MOST_SERIES}");
            Ok(count)
        };
        let keep = choices.keep.map_or(KEEP, |span| span.0);
        ensure!(keep >= window, "--keep is shorter than a window");
        let max_disk = choices.max_disk.map_or(MAX_DISK, |bytes| bytes.0);
        ensure!(
            max_disk >= LEAST_DISK,
            "--max-disk {max_disk} is less than a window takes: give 64K or more, with K, M or G behind the number"
        );
        let longest_cycle = LONGEST_CYCLE.min(window / CYCLES_OF_WINDOW);
        let of_share = |share: Share| DutyCycle::of_share(share.0, frequency as f64, longest_cycle);
        let duty = choices.duty.and_then(of_share);
        if let Some(DutyCycle { cycle, .. }) = duty.filter(|duty| duty.cycle > window) {
            anyhow::bail!(
                "--duty: a few samples once in {:.1} s are its share at this --frequency, and most windows of {:.1} s would have none: \
                 make windows longer (--window), the share larger or the frequency higher",
                cycle.as_secs_f64(),
                window.as_secs_f64()
            );
        }
        Ok(Self {
            output,
            keep,
            max_disk,
            listen: choices.listen.unwrap_or(LISTEN),
            functions: count("--functions", choices.functions.unwrap_or(FUNCTIONS))?,
            cgroups: count("--cgroups", choices.cgroups.unwrap_or(CGROUPS))?,
            user: choices.user.clone(),
            receivers: receivers(&choices)?,
            sampled: Sampled {
                frequency,
                duty,
                window,
                event: choices.event.clone(),
                call_graph: call_graph(choices.call_graph.as_deref().unwrap_or("fp"))
                    .map_err(|error| anyhow::anyhow!("--call-graph is {error}"))?,
                model: choices.model.clone().unwrap_or_else(|| "stored".into()),
                meters: meters(&choices)?,
                labels: labels(&choices.label)?,
                of: choices,
            },
        })
    }
}

impl Sampled {
    /// Whether other settings want the same recording.
    pub fn is_as(&self, other: &Self) -> bool {
        let core = |choices: &Choices| Choices {
            output: None,
            keep: None,
            max_disk: None,
            listen: None,
            functions: None,
            cgroups: None,
            push: None,
            push_password_file: None,
            otlp: None,
            otlp_token_file: None,
            otlp_spool: None,
            ca: None,
            allow_plain_http: false,
            user: None,
            ..choices.clone()
        };
        core(&self.of) == core(&other.of)
    }

    /// A window's length.
    pub fn period(&self) -> Nanoseconds {
        Nanoseconds::from_nanos(self.window.as_nanos() as u64)
    }
}

fn meters(choices: &Choices) -> anyhow::Result<MeterOptions> {
    let watts = choices.watts.as_deref().map(AssumedWatts::parse).transpose();
    let watts = watts.map_err(|error| anyhow::anyhow!("--watts: {error}"))?;
    let mut only = Vec::new();
    for name in &choices.meter {
        let known = || Source::ALL.map(Source::name).join(", ");
        only.push(Source::named(name).with_context(|| format!("--meter {name} is none of {}", known()))?);
    }
    Ok(MeterOptions {
        watts,
        only: (!only.is_empty()).then_some(only),
        nvml_library: choices.nvml_lib.clone(),
        ..MeterOptions::default()
    })
}

/// Where windows are sent. Files that are named are read later, without rights.
fn receivers(choices: &Choices) -> anyhow::Result<Receivers> {
    let clickhouse = choices.push.as_deref().map(clickhouse::Target::parse).transpose().context("--push")?;
    let otlp = choices.otlp.as_deref().map(otlp::Target::parse).transpose().context("--otlp")?;
    let absolute = |path: &Option<PathBuf>| path.as_deref().map(std::path::absolute).transpose();
    let secret = |is_wanted: bool, path: &Option<PathBuf>, option: &str, variable| {
        ensure!(is_wanted || path.is_none(), "{option} is of no use without an address to send to");
        let source = SecretSource::choose(absolute(path)?.as_deref(), variable);
        let source = source.filter(|_| is_wanted);
        warn(source.as_ref().and_then(SecretSource::warning));
        anyhow::Ok(source)
    };
    Ok(Receivers {
        password: secret(
            clickhouse.is_some(),
            &choices.push_password_file,
            "--push-password-file",
            clickhouse::PASSWORD_VARIABLE,
        )?,
        token: secret(otlp.is_some(), &choices.otlp_token_file, "--otlp-token-file", otlp::TOKEN_VARIABLE)?,
        clickhouse,
        otlp,
        trust: absolute(&choices.ca)?.map_or(Trust::System, Trust::File),
        allow_plain_http: choices.allow_plain_http,
        spool_bytes: choices.otlp_spool.map_or(OTLP_SPOOL, |bytes| bytes.0),
    })
}

fn labels(texts: &[String]) -> anyhow::Result<Labels> {
    let parse = |text: &String| Labels::parse(text).with_context(|| format!("the label {text:?}"));
    let pairs: Vec<_> = texts.iter().map(parse).collect::<anyhow::Result<_>>()?;
    Ok(Labels::new(pairs)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(json: &str) -> Result<Choices, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn a_file_has_the_options_keys_and_options_come_first() {
        let file = choices(
            r#"{"output": "/var/lib/eprof", "frequency": 19, "duty": "1%", "window": 30, "keep": "2d",
                "max-disk": "1G", "listen": "none", "label": ["rack=7"], "watts": "5:20"}"#,
        )
        .expect("right");
        let options = Choices { frequency: Some(99), ..Choices::default() };
        let settings = Settings::new(options.or(file)).expect("right");
        assert_eq!((settings.sampled.frequency, settings.listen), (99, Listen::Nowhere));
        assert_eq!((settings.keep.as_secs(), settings.max_disk), (2 * 86_400, 1 << 30));
        assert_eq!(settings.sampled.window.as_secs(), 30);
        let duty = settings.sampled.duty.expect("a part");
        assert!((duty.on.as_secs_f64() / duty.cycle.as_secs_f64() - 0.01).abs() < 1e-9);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(choices(r#"{"frequenzy": 19}"#).expect_err("unknown").to_string().contains("frequenzy"));
        assert!(choices(r#"{"keep": "soon"}"#).is_err());
        let refused = |choices: Choices| Settings::new(choices).expect_err("wrong").to_string();
        let here = || Choices { output: Some("x".into()), ..Choices::default() };
        assert!(refused(Choices::default()).contains("-o DIR"));
        assert!(
            refused(Choices { output: Some("-".into()), ..here() }).contains("cannot go to standard output")
        );
        assert!(refused(Choices { frequency: Some(0), ..here() }).contains("--frequency"));
        assert!(
            refused(Choices { window: Some(Span(Duration::from_millis(1))), ..here() }).contains("--window")
        );
        assert!(refused(Choices { meter: vec!["x".into()], ..here() }).contains("--meter"));
        assert!(refused(Choices { functions: Some(0), ..here() }).contains("--functions"));
    }

    #[test]
    fn a_file_that_is_no_json_is_not_told_to_have_wrong_keys() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("agent.json");
        for (text, why) in [
            (r#"{"output": "x",}"#, "it is no JSON"),
            (r#"{"output": "#, "ends before"),
            (r#"{"frequenzy": 1}"#, "those of the options"),
        ] {
            std::fs::write(&path, text).expect("written");
            let said = format!("{:#}", Choices::read(&path).expect_err(text));
            assert!(said.contains(why) && said.contains("agent.json") && said.contains("line 1"), "{said}");
        }
    }

    #[test]
    fn only_what_is_sampled_wants_another_recording() {
        let of = |json: &str| Settings::new(choices(json).expect("right")).expect("right");
        let first = of(r#"{"output": "x", "keep": "1d"}"#);
        assert!(first.sampled.is_as(&of(r#"{"output": "x", "keep": "3d", "listen": "none"}"#).sampled));
        assert!(!first.sampled.is_as(&of(r#"{"output": "x", "frequency": 19}"#).sampled));
    }

    #[test]
    fn addresses_have_a_port_and_the_usual_one_is_of_this_machine_alone() {
        let Listen::At(address) = LISTEN else { panic!("somewhere") };
        assert!(address.ip().is_loopback());
        assert_eq!("localhost:80".parse(), Ok(Listen::At(([127, 0, 0, 1], 80).into())));
        assert_eq!("[::1]:80".parse::<Listen>().map(|_| ()), Ok(()));
        assert!(["", "9753", "host:80", "0.0.0.0", "::1"].iter().all(|text| text.parse::<Listen>().is_err()));
    }
}
