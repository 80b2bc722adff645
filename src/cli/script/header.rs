//! `--header`: what a recording says of itself, as lines that tools which read samples take for comments.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use eprof::identity::{Identity, WallClock};
use eprof::label::Label;
use eprof::recording::Recording;
use eprof::recording::metadata::{Metadata, MetersRead};

/// Writes the lines.
pub fn write(recording: &Recording, mut out: impl Write) -> io::Result<()> {
    let features = recording.features();
    let metadata = recording.metadata();
    let mut lines = Lines::default();
    lines.known(
        "hostname",
        features.hostname.as_ref().or(metadata.map(|metadata| &metadata.machine.hostname)),
    );
    lines.known(
        "os release",
        features.os_release.as_ref().or(metadata.map(|metadata| &metadata.machine.kernel)),
    );
    lines.known("arch", features.arch.as_ref().or(metadata.map(|metadata| &metadata.machine.arch)));
    let cpu = metadata.map(|metadata| &metadata.machine.cpu_model);
    lines.known("cpu", features.cpu_description.as_ref().or(cpu));
    lines.known(
        "recorded by",
        metadata
            .map(|metadata| format!("eprof {}", metadata.eprof_version))
            .or_else(|| features.version.as_ref().map(|version| format!("perf {version}"))),
    );
    let command_line = metadata.map_or(&features.command_line, |metadata| &metadata.command_line);
    lines.known("command line", (!command_line.is_empty()).then(|| command_line.join(" ")));
    match metadata {
        Some(metadata) => lines.of_eprof(metadata),
        None => lines.add("identity", "not known: another recorder made this file"),
    }
    lines.0.push("# ========".to_owned());
    writeln!(out, "# ========")?;
    lines.0.iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Lines of a name and a value each.
#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    fn add(&mut self, name: &str, value: impl AsRef<str>) {
        self.0.push(format!("# {name} : {}", Label::new(value.as_ref()).as_str()));
    }

    fn known(&mut self, name: &str, value: Option<impl AsRef<str>>) {
        if let Some(value) = value.filter(|value| !value.as_ref().is_empty()) {
            self.add(name, value);
        }
    }

    fn of_eprof(&mut self, metadata: &Metadata) {
        self.add("clock", &metadata.clock);
        for domain in &metadata.domains {
            let method = format!("{:?}", domain.method).to_lowercase();
            self.add("energy domain", format!("{} ({}, {method})", domain.name, domain.source));
        }
        let meters = match metadata.meters {
            MetersRead::ByItself => None,
            MetersRead::ForAll => Some("read by this recorder for all of its machine"),
            MetersRead::ByAnother => {
                Some("read closely by another recorder of the machine when this one began")
            }
            MetersRead::Not => Some("not read by this recorder"),
        };
        self.known("meters", meters);
        match &metadata.identity {
            Some(identity) => self.identity(identity),
            None => {
                let started = UNIX_EPOCH.checked_add(Duration::from_nanos(metadata.started_unix_ns));
                self.known("started", started.map(|_| seconds(metadata.started_unix_ns)));
                self.add("identity", "not known: an older eprof made this file");
            }
        }
    }

    fn identity(&mut self, identity: &Identity) {
        self.known("machine id (hashed)", identity.machine.as_ref().map(ToString::to_string));
        self.known("boot id", identity.boot.as_ref());
        self.known("pid namespace", identity.pid_namespace.map(|inode| inode.to_string()));
        self.known("started", identity.started.as_ref().map(started));
        let job = &identity.job;
        self.known("job", job.id.as_ref());
        self.known("job step", job.step.as_ref());
        self.known("rank", job.rank.map(|rank| rank.to_string()));
        self.known("node", identity.node());
        self.known("cgroup", identity.cgroup.as_ref());
        self.known("container", identity.container.as_ref().map(|container| &container.id));
        let pod = identity.pod.as_ref();
        self.known("pod", pod.and_then(eprof::identity::Pod::title));
        self.known("pod uid", pod.and_then(|pod| pod.uid.as_ref()));
        for (key, value) in identity.labels.iter() {
            self.add(&format!("label {key}"), value);
        }
    }
}

/// Seconds of the wall clock and how sure they are.
fn started(clock: &WallClock) -> String {
    let error = match clock.error_ns() {
        Some(error) => format!("± {:.6} s of UTC", error as f64 * 1e-9),
        None => {
            let reading = clock.reading_error_ns;
            format!("read to ± {reading} ns; nothing keeps this machine's clock in time with UTC")
        }
    };
    format!("{} ({error}), {} on the recording's clock", seconds(clock.unix_ns), clock.clock_ns)
}

fn seconds(unix_ns: u64) -> String {
    format!("{}.{:09} s since 1970 UTC", unix_ns / 1_000_000_000, unix_ns % 1_000_000_000)
}
