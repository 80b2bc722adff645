//! The page that a scraper gets.

use std::time::{SystemTime, UNIX_EPOCH};

use super::series::OTHER;
use super::text::{Format, Kind, Page};
use super::totals::{DomainKey, DomainTotals, Metrics, Sent};

/// A figure of what is sent.
type SentValue = fn(&Sent) -> Option<u64>;

/// What the agent takes itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnCost {
    /// CPU time of all threads so far.
    pub cpu_seconds: f64,
    /// Memory that it has now, if the kernel tells.
    pub resident_bytes: Option<u64>,
    /// When it began.
    pub started: SystemTime,
}

/// The page.
pub fn render(metrics: &Metrics, cost: &OwnCost, format: Format) -> String {
    let mut page = Page::new(format);
    of_domains(metrics, &mut page);
    of_rows(metrics, &mut page);
    of_agent(metrics, cost, &mut page);
    page.finish()
}

fn of_domains(metrics: &Metrics, page: &mut Page) {
    let each = |page: &mut Page, joules: &dyn Fn(&DomainTotals) -> f64| {
        for (DomainKey { name, method }, totals) in &metrics.domains {
            page.sample(&[("domain", name), ("method", method)], joules(totals));
        }
    };
    page.family(
        "eprof_domain_joules",
        Kind::Counter,
        "joules",
        "Energy of each domain. Domains with a parent are a part of that one (eprof_domain_info).",
    );
    each(page, &|totals| totals.balance.measured.as_joules());
    page.family(
        "eprof_domain_part_joules",
        Kind::Counter,
        "joules",
        "Where it went: to functions, to static power, to processes that were not sampled, to the agent itself, or lost.",
    );
    for (DomainKey { name, method }, totals) in &metrics.domains {
        let [_, functions, fixed, others, recorder, lost] = totals.balance.columns();
        let parts = [
            ("functions", functions),
            ("static", fixed),
            ("others", others),
            ("recorder", recorder),
            ("lost", lost),
        ];
        for (part, joules) in parts {
            page.sample(&[("domain", name), ("method", method), ("part", part)], joules.as_joules());
        }
    }
    page.family(
        "eprof_domain",
        Kind::Info,
        "",
        "What each domain is a part of, and what meter it is read from.",
    );
    for (DomainKey { name, method }, totals) in &metrics.domains {
        let parent = totals.parent.as_deref().unwrap_or("");
        let labels =
            [("domain", &**name), ("method", method), ("parent", parent), ("source", &totals.source)];
        page.sample(&labels, 1.0);
    }
    page.family(
        "eprof_agent_joules",
        Kind::Counter,
        "joules",
        "Energy that the agent itself took: the part `recorder` of each domain.",
    );
    each(page, &|totals| totals.balance.recorder.as_joules());
    page.family(
        "eprof_agent_dropped_joules",
        Kind::Counter,
        "joules",
        "Energy of windows that are in these counters but could not be written.",
    );
    each(page, &|totals| totals.dropped);
}

fn of_rows(metrics: &Metrics, page: &mut Page) {
    let tops = || metrics.domains.iter().filter_map(|(key, totals)| Some((key, totals.rows.as_ref()?)));
    page.family(
        "eprof_function_joules",
        Kind::Counter,
        "joules",
        "Energy of each function itself, of domains without a parent. `other` has all functions without a counter of their \
         own, and what each had before it got one: the sum is the part `functions`.",
    );
    for (DomainKey { name, method }, rows) in tops() {
        for ((function, module), joules) in rows.functions.iter() {
            let labels =
                [("domain", &**name), ("method", method), ("function", function), ("module", module)];
            page.sample(&labels, joules);
        }
        let labels = [("domain", &**name), ("method", method), ("function", OTHER), ("module", "")];
        page.sample(&labels, rows.functions.rest());
    }
    page.family(
        "eprof_cgroup_joules",
        Kind::Counter,
        "joules",
        "The same by control group: a container, service or pod.",
    );
    for (DomainKey { name, method }, rows) in tops() {
        for (group, joules) in rows.cgroups.iter() {
            page.sample(&[("domain", &**name), ("method", method), ("cgroup", group)], joules);
        }
        page.sample(&[("domain", &**name), ("method", method), ("cgroup", OTHER)], rows.cgroups.rest());
    }
}

fn of_agent(metrics: &Metrics, cost: &OwnCost, page: &mut Page) {
    let mut one = |name: &str, kind, unit: &str, help: &str, value: f64| {
        page.family(name, kind, unit, help);
        page.sample(&[], value);
    };
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let counter = Kind::Counter;
    one(
        "eprof_window_seconds",
        counter,
        "seconds",
        "Time of all windows.",
        metrics.window_time.as_secs_f64(),
    );
    one("eprof_agent_cpu_seconds", counter, "seconds", "CPU time of the agent.", cost.cpu_seconds);
    if let Some(bytes) = cost.resident_bytes {
        let help = "Memory of the agent.";
        one("eprof_agent_resident_memory_bytes", Kind::Gauge, "bytes", help, bytes as f64);
    }
    let help = "Windows that were written.";
    one("eprof_agent_windows_written", counter, "", help, metrics.windows_written as f64);
    let help = "Windows that could not be written, by a full disk above all.";
    one("eprof_agent_windows_dropped", counter, "", help, metrics.windows_dropped as f64);
    let help = "Windows that were removed, for age or room.";
    one("eprof_agent_windows_removed", counter, "", help, metrics.windows_removed as f64);
    let help = "Records of the kernel that found no room in a ring.";
    one("eprof_agent_lost_records", counter, "", help, metrics.lost_records as f64);
    let help = "Recordings that were begun anew: other settings, a meter that fell silent.";
    one("eprof_agent_restarts", counter, "", help, metrics.restarts as f64);
    let help = "Times that the configuration was read again.";
    one("eprof_agent_reloads", counter, "", help, metrics.reloads as f64);
    let help = "Times that it was wrong and the old settings stayed.";
    one("eprof_agent_failed_reloads", counter, "", help, metrics.failed_reloads as f64);
    let help = "Time that the machine was suspended while the agent ran, which is in no window.";
    one("eprof_agent_suspended_seconds", counter, "seconds", help, metrics.slept.as_secs_f64());
    let help = "Time between two recordings, as where other settings began: nothing of it is in a window or another counter.";
    one("eprof_agent_unrecorded_seconds", counter, "seconds", help, metrics.unrecorded.as_secs_f64());
    let help = "Steps of the wall clock.";
    one("eprof_agent_clock_steps", counter, "", help, metrics.clock_steps as f64);
    let help = "What the windows take on disk.";
    one("eprof_agent_disk_bytes", Kind::Gauge, "bytes", help, metrics.disk_bytes as f64);
    if let Some(last) = metrics.last_window {
        let help = "When the last window ended.";
        one("eprof_agent_last_window_timestamp_seconds", Kind::Gauge, "seconds", help, seconds(last));
    }
    let help = "When the agent began.";
    one("eprof_agent_start_time_seconds", Kind::Gauge, "seconds", help, seconds(cost.started));
    let of_receivers: [(&str, Kind, &str, SentValue); 4] = [
        ("eprof_agent_sent_windows", counter, "Windows that a receiver has acknowledged.", |sent| {
            Some(sent.windows)
        }),
        (
            "eprof_agent_send_failures",
            counter,
            "Times that a receiver was away or did not take windows.",
            |sent| Some(sent.failures),
        ),
        ("eprof_agent_unsent_windows", counter, "Windows that a receiver will not get.", |sent| {
            Some(sent.given_up)
        }),
        ("eprof_agent_waiting_windows", Kind::Gauge, "Windows that wait for a receiver.", |sent| {
            sent.waiting
        }),
    ];
    for (name, kind, help, value) in of_receivers.into_iter().filter(|_| !metrics.sent.is_empty()) {
        page.family(name, kind, "", help);
        for (receiver, sent) in &metrics.sent {
            if let Some(value) = value(sent) {
                page.sample(&[("receiver", receiver)], value as f64);
            }
        }
    }
    page.family("eprof_build", Kind::Info, "", "The agent's version.");
    page.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;
    use std::time::Duration;

    use eprof::profile::Balance;
    use eprof::units::Joules;
    use proptest::prelude::*;

    use super::*;
    use crate::cli::agent::metrics::series::Part;
    use crate::cli::agent::metrics::totals::{Bounds, OfDomain, WindowJoules};

    fn part<K>(key: K, joules: f64) -> Part<K> {
        Part { key, joules, samples: 50 }
    }

    fn window(functions: &[(u8, f64)], groups: &[(u8, f64)]) -> WindowJoules {
        let sum: f64 = functions.iter().map(|(_, joules)| joules).sum();
        let joules = Joules::from_joules;
        let name = |kind: &str, number: u8| Arc::<str>::from(format!("{kind} \"{number}\"\n\\"));
        WindowJoules {
            time: Duration::from_secs(60),
            domains: vec![OfDomain {
                key: DomainKey { name: "package-0".into(), method: "measured" },
                balance: Balance {
                    measured: joules(sum + 3.0),
                    attributed: joules(sum),
                    static_energy: joules(2.0),
                    recorder: joules(1.0),
                    ..Balance::default()
                },
                parent: None,
                source: "power".into(),
                rows: Some((
                    functions
                        .iter()
                        .map(|(id, joules)| part((name("f", *id), "m".into()), *joules))
                        .collect(),
                    groups.iter().map(|(id, joules)| part(name("/g", *id), *joules)).collect(),
                )),
            }],
        }
    }

    /// Samples by their names and labels; each is there once, and its family was described before.
    fn samples(page: &str) -> BTreeMap<String, f64> {
        let mut families = BTreeSet::new();
        let mut found = BTreeMap::new();
        for line in page.lines() {
            if let Some(about) = line.strip_prefix("# TYPE ") {
                families.insert(about.split(' ').next().expect("a name").to_owned());
            }
            if line.starts_with('#') {
                continue;
            }
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().expect("a name");
            assert!(families.contains(name), "{name} was not described");
            assert!(
                found.insert(series.to_owned(), value.parse().expect("a number")).is_none(),
                "{series} twice"
            );
        }
        found
    }

    fn sum(samples: &BTreeMap<String, f64>, start: &str) -> f64 {
        samples.iter().filter(|(series, _)| series.starts_with(start)).map(|(_, value)| value).sum()
    }

    proptest! {
        #[test]
        fn counters_never_fall_and_functions_are_their_domains_part(
            windows in prop::collection::vec(
                (prop::collection::btree_map(0u8..30, 0.1..50.0f64, 0..12), any::<bool>()),
                1..15,
            ),
        ) {
            let cost = OwnCost { cpu_seconds: 1.0, resident_bytes: Some(5), started: UNIX_EPOCH };
            let mut metrics = Metrics::new(Bounds { functions: 5, cgroups: 3 });
            let mut before = BTreeMap::new();
            for (functions, was_written) in windows {
                let functions: Vec<(u8, f64)> = functions.into_iter().collect();
                metrics.add(window(&functions, &functions), was_written);
                let now = samples(&render(&metrics, &cost, Format::Prometheus));
                for (series, value) in &before {
                    prop_assert!(now.get(series).is_some_and(|now| now >= value), "{series} fell or went");
                }
                let part = "eprof_domain_part_joules_total{domain=\"package-0\",method=\"measured\",part=";
                let functions = now[&format!("{part}\"functions\"}}")];
                for rows in ["eprof_function_joules_total", "eprof_cgroup_joules_total"] {
                    prop_assert!((sum(&now, rows) - functions).abs() <= 1e-9 * functions.max(1.0));
                }
                let all = now["eprof_domain_joules_total{domain=\"package-0\",method=\"measured\"}"];
                prop_assert!((sum(&now, part) - all).abs() <= 1e-9 * all);
                before = now;
            }
        }
    }

    #[test]
    fn openmetrics_ends_and_has_the_same_samples() {
        let cost = OwnCost { cpu_seconds: 1.0, resident_bytes: None, started: UNIX_EPOCH };
        let mut metrics = Metrics::new(Bounds { functions: 5, cgroups: 3 });
        metrics.add(window(&[(1, 5.0)], &[(1, 5.0)]), true);
        let lines = |format| -> Vec<String> {
            let page = render(&metrics, &cost, format);
            page.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        assert_eq!(lines(Format::OpenMetrics), lines(Format::Prometheus));
        assert!(render(&metrics, &cost, Format::OpenMetrics).ends_with("\n# EOF\n"));
    }
}
