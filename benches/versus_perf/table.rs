//! Medians and tables in Markdown.

use std::time::Duration;

/// The middle one; between the two middle ones of an even number.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

/// The interval that holds the median of the whole population with 95 %, of at least six values.
pub fn interval_of_median(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let [least, most] = ranks_of_median(values.len()).map(|rank| values[rank]);
    format!("{least:.4} to {most:.4}")
}

/// The ranks, from 0, between which the median of the whole population lies with 95 %: the normal
/// approximation of the binomial distribution.
fn ranks_of_median(count: usize) -> [usize; 2] {
    let half_width = 0.98 * (count as f64).sqrt();
    let middle = (count as f64 - 1.0) / 2.0;
    [(middle - half_width).floor().max(0.0) as usize, ((middle + half_width).ceil() as usize).min(count - 1)]
}

/// Seconds with three digits.
pub fn seconds(time: f64) -> String {
    match time {
        _ if !time.is_finite() => "-".to_owned(),
        ..0.01 => format!("{:.2} ms", time * 1e3),
        ..1.0 => format!("{:.0} ms", time * 1e3),
        ..100.0 => format!("{time:.2} s"),
        _ => format!("{time:.0} s"),
    }
}

pub fn median_seconds(times: impl IntoIterator<Item = Duration>) -> f64 {
    median(times.into_iter().map(|time| time.as_secs_f64()))
}

pub fn megabytes(bytes: f64) -> String {
    format!("{:.0} MB", bytes / 1e6)
}

pub fn row<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) {
    let line: String = cells.into_iter().map(|cell| format!(" {} |", cell.as_ref())).collect();
    println!("|{line}");
}

pub fn head(columns: &[&str]) {
    row(columns);
    row(columns.iter().map(|_| "---"));
}

/// The machine and the programs, for people.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = read("/proc/sys/kernel/osrelease");
    let version = |program: &str| {
        let output = std::process::Command::new(program).arg("--version").output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        text.unwrap_or_else(|_| format!("no {program}"))
    };
    let load = read("/proc/loadavg");
    format!(
        "{count} CPUs, {}; Linux {}; load before {}; {}; {}; {}",
        model.map_or("unknown", |(_, name)| name.trim()),
        kernel.trim(),
        load.split(' ').next().unwrap_or_default(),
        version(crate::recordings::EPROF),
        version("perf"),
        version("samply"),
    )
}
