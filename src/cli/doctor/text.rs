//! A diagnosis for people, within 80 columns.

use std::io::{self, Write};

use eprof::hardware::{CoreKind, DomainInfo, DomainKind, Method};
use eprof::machine::permissions::{Permissions, Severity};

use super::diagnosis::{CounterLine, Diagnosis, EventLine, NotUsed, Verdict};
use super::event_probe::EventState;
use super::watch::Watched;

const WIDTH: usize = 80;
/// Commands are never broken: they are to be copied.
const COMMAND_INDENT: &str = "        ";

/// Prints all of it.
pub fn write(out: &mut dyn Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let verdict = match diagnosis.verdict {
        Verdict::Measured => "Programs can be sampled and energy is measured.",
        Verdict::Estimated => "Programs can be sampled, but energy can only be estimated.",
        Verdict::Nothing => "Programs cannot be sampled.",
    };
    writeln!(out, "{verdict}")?;
    machine(out, diagnosis)?;
    events(out, diagnosis)?;
    meters(out, diagnosis)?;
    if let Some(watched) = &diagnosis.watched {
        watched_meters(out, watched)?;
    }
    rights(out, &diagnosis.permissions)?;
    gaps(out, diagnosis)
}

fn heading(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "\n{text}")
}

fn machine(out: &mut dyn Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let machine = &diagnosis.machine;
    heading(out, "Machine")?;
    let name = match machine.microarchitecture.as_deref() {
        // Arm's models are named by their cores.
        Some(name) if machine.cpu_model.contains(name) => String::new(),
        Some(name) => format!("{name}, "),
        None => "unknown microarchitecture, ".to_owned(),
    };
    paragraph(out, 2, &format!("{} ({name}{})", machine.cpu_model, machine.cpu_identity))?;
    let small = match machine.small_cores {
        0 => String::new(),
        count => format!(" ({count} small)"),
    };
    let counts = [
        counted(machine.packages, "package"),
        counted(machine.cores, "core") + &small,
        counted(machine.threads, "thread"),
    ];
    paragraph(out, 2, &format!("{}; Linux {}, {}", counts.join(", "), machine.kernel, machine.arch))?;
    if let Some(hypervisor) = &diagnosis.permissions.hypervisor {
        paragraph(out, 2, &format!("a virtual machine: {hypervisor}"))?;
    }
    if let Some(container) = &diagnosis.permissions.container {
        paragraph(out, 2, &format!("within a container: {container}"))?;
    }
    for gpu in &diagnosis.gpus {
        let text =
            format!("GPU {}: {}, driver {}; energy: {}", gpu.address, gpu.model, gpu.driver, gpu.energy);
        paragraph(out, 2, &text)?;
    }
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn events(out: &mut dyn Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(out, "Events to sample")?;
    for CounterLine { pmu, general, has_fixed, held_by_watchdog } in &diagnosis.counters {
        let fixed = if *has_fixed { ", and fixed ones for cycles and instructions" } else { "" };
        let watchdog = if *held_by_watchdog { "; the NMI watchdog holds one" } else { "" };
        paragraph(out, 2, &format!("PMU {pmu}: {general} general counters per thread{fixed}{watchdog}"))?;
    }
    for event in &diagnosis.events {
        let line = format!("  {:<9} {:<32} {}", event.role, event.name, event.encoding);
        writeln!(out, "{line}")?;
        if let Some(trouble) = trouble(event) {
            paragraph(out, 12, &trouble)?;
        }
    }
    for note in &diagnosis.event_notes {
        item(out, note)?;
    }
    Ok(())
}

/// What is not as it should be with an event.
fn trouble(event: &EventLine) -> Option<String> {
    match &event.state {
        EventState::Refused { why } => Some(format!("refused: {why}")),
        EventState::Counts { share, .. } if *share < 0.99 && event.core_kind == CoreKind::Performance => {
            Some(format!("counts only {:.0} % of the time: other users hold counters", share * 100.0))
        }
        EventState::Counts { outside_kernel_only: true, .. } => Some("outside the kernel only".to_owned()),
        EventState::Counts { .. } | EventState::Allowed => None,
    }
}

fn meters(out: &mut dyn Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(out, "Energy meters")?;
    if !diagnosis.domains.is_empty() {
        domain_line(out, ["domain", "source", "refresh", "resolution", "part of"])?;
    }
    // Cores are many and alike.
    let is_alike = |a: &DomainInfo, b: &DomainInfo| {
        a.kind == DomainKind::Core && b.kind == a.kind && (&a.source, &a.parent) == (&b.source, &b.parent)
    };
    for alike in diagnosis.domains.chunk_by(is_alike) {
        let [domain, rest @ ..] = alike else { continue };
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let last_core = rest.last().and_then(|last| last.name.rsplit('-').next());
        let name = last_core.map_or(domain.name.clone(), |last| format!("{}..{last}", domain.name));
        let parent = domain.parent.as_deref().unwrap_or(match domain.method {
            Method::Measured => "-",
            Method::Estimated => "(estimated)",
        });
        let refresh = text(domain.refresh.map(|refresh| refresh.to_string()));
        let resolution = text(domain.resolution.map(|resolution| resolution.to_string()));
        domain_line(out, [&name, &domain.source, &refresh, &resolution, parent])?;
    }
    for warning in &diagnosis.warnings {
        item(out, warning)?;
    }
    not_used(out, &diagnosis.not_used)
}

fn domain_line(
    out: &mut dyn Write,
    [domain, source, refresh, resolution, parent]: [&str; 5],
) -> io::Result<()> {
    writeln!(out, "  {domain:<20} {source:<18} {refresh:<9} {resolution:<10} {parent}")
}

/// What is not used, for one reason in one item.
fn not_used(out: &mut dyn Write, not_used: &[NotUsed]) -> io::Result<()> {
    if not_used.is_empty() {
        return Ok(());
    }
    heading(out, "Not used")?;
    let is_alike = |a: &NotUsed, b: &NotUsed| (&a.source, &a.why) == (&b.source, &b.why);
    for alike in not_used.chunk_by(is_alike) {
        let [first, ..] = alike else { continue };
        let parts: Vec<&str> = alike.iter().filter_map(|one| one.what.as_deref()).collect();
        let source = format!("{} {}", first.source, parts.join(", "));
        item(out, &format!("{}: {}", source.trim_end(), first.why))?;
        if let Some(repair) = &first.repair {
            writeln!(out, "{COMMAND_INDENT}{repair}")?;
        }
    }
    Ok(())
}

fn watched_meters(out: &mut dyn Write, watched: &Watched) -> io::Result<()> {
    heading(out, &format!("Read for {:.3} s", watched.seconds))?;
    for domain in &watched.domains {
        match (domain.joules, domain.watts) {
            (Some(joules), Some(watts)) => writeln!(out, "  {:<22} {joules:>12} {watts:>12}", domain.name)?,
            _ => writeln!(out, "  {:<22} could not be read", domain.name)?,
        }
    }
    Ok(())
}

fn rights(out: &mut dyn Write, rights: &Permissions) -> io::Result<()> {
    heading(out, "Rights")?;
    let level = |value: Option<i32>| value.map_or("missing".to_owned(), |level| level.to_string());
    let user = if rights.uid == 0 { "root".to_owned() } else { format!("user {}", rights.uid) };
    let limits = format!(
        "{user}; perf_event_paranoid {}, kptr_restrict {}, perf_event_mlock_kb {}, open files {}",
        level(rights.paranoid),
        level(rights.kptr_restrict),
        rights.mlock_kb.map_or("missing".to_owned(), |kb| kb.to_string()),
        match rights.open_files {
            Some((soft, hard)) if soft == hard => soft.to_string(),
            Some((soft, hard)) => format!("{soft} (up to {hard})"),
            None => "unlimited".to_owned(),
        }
    );
    paragraph(out, 2, &limits)?;
    let may = [
        ("own programs", rights.own_events()),
        ("the kernel", rights.own_kernel_events()),
        ("whole CPUs", rights.cpu_wide_events()),
        ("kernel symbols", rights.kernel_symbols()),
    ];
    let list = |wanted: bool| {
        let names = may.iter().filter(|(_, may)| *may == wanted).map(|(what, _)| *what);
        names.collect::<Vec<_>>().join(", ")
    };
    paragraph(
        out,
        2,
        &format!("open: {}", if list(true).is_empty() { "nothing".to_owned() } else { list(true) }),
    )?;
    if !list(false).is_empty() {
        paragraph(out, 2, &format!("closed: {}", list(false)))?;
    }
    Ok(())
}

fn gaps(out: &mut dyn Write, diagnosis: &Diagnosis) -> io::Result<()> {
    if diagnosis.gaps.is_empty() {
        return Ok(());
    }
    heading(out, "What is missing, and what repairs it (the least privileged way first)")?;
    for gap in &diagnosis.gaps {
        let mark = match gap.severity {
            Severity::Fatal => "!!",
            Severity::Major => "! ",
            Severity::Minor => "- ",
        };
        paragraph_after(out, &format!("  {mark} "), 5, &format!("{}: {}", gap.what, gap.consequence))?;
        for repair in &gap.repairs.0 {
            paragraph(out, 5, &format!("{}:", repair.scope))?;
            for command in &repair.commands {
                writeln!(out, "{COMMAND_INDENT}{command}")?;
            }
        }
    }
    Ok(())
}

fn item(out: &mut dyn Write, text: &str) -> io::Result<()> {
    paragraph_after(out, "  - ", 4, text)
}

fn paragraph(out: &mut dyn Write, indent: usize, text: &str) -> io::Result<()> {
    paragraph_after(out, &" ".repeat(indent), indent, text)
}

/// Words up to the width, the first line after `start`, the others indented.
fn paragraph_after(out: &mut dyn Write, start: &str, indent: usize, text: &str) -> io::Result<()> {
    let mut line = start.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(out, "{line}")?;
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    writeln!(out, "{line}")
}
