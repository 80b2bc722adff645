//! What `eprof verify` would do, and what it found.

use std::io::{self, Write};

use eprof::machine::cpu_list;
use eprof::verify::{Bench, Comparison, Row, Verdict, Verification};

/// What would be run.
pub fn plan(out: &mut impl Write, bench: &Bench) -> io::Result<()> {
    writeln!(out, "{} ({})", bench.machine.cpu_identity, bench.machine.cpu_model)?;
    writeln!(out, "\nmeters that are taken for true")?;
    if bench.domains().next().is_none() {
        writeln!(out, "  none: nothing is measured")?;
    }
    for domain in bench.domains() {
        writeln!(out, "  {} ({})", domain.name, domain.source)?;
    }
    let schedule = &bench.schedule;
    writeln!(
        out,
        "\nalone: {} rounds of the idle machine and of each kernel, {:.1} s each",
        schedule.rounds, schedule.visit
    )?;
    for kernel in bench.kernels() {
        writeln!(out, "  {kernel:<10} {}", kernel.description())?;
    }
    writeln!(out, "\nrecorded: {:.1} s each", schedule.recorded)?;
    for layout in &bench.layouts {
        let cpus: Vec<u32> = layout.lanes.iter().map(|(cpu, _)| *cpu).collect();
        let word = if cpus.len() == 1 { "CPU" } else { "CPUs" };
        writeln!(out, "  {:<18} on {word} {}", layout.arrangement, cpu_list::format(&cpus))?;
    }
    for ghz in &bench.frequencies {
        writeln!(out, "  turns of 5 ms at {ghz:.1} GHz, with {} rounds alone", schedule.rounds_at_frequency)?;
    }
    bench.notes.iter().try_for_each(|note| writeln!(out, "  note: {note}"))?;
    if !bench.obstacles.is_empty() {
        writeln!(out, "\neprof cannot be verified on this machine")?;
        bench.obstacles.iter().try_for_each(|obstacle| writeln!(out, "  {obstacle}"))?;
    }
    Ok(())
}

/// What was found, for people.
pub fn table(out: &mut dyn Write, found: &Verification) -> io::Result<()> {
    writeln!(out, "{} ({})", found.cpu_identity, found.cpu_model)?;
    writeln!(out, "true is what is measured by {}", found.meters.join(" + "))?;
    writeln!(out, "\nalone, above the idle machine's {:.2} W", found.idle_watts)?;
    for kernel in &found.kernels {
        let error = kernel.watts * kernel.relative_error;
        writeln!(out, "  {:<10} {:>7.3} W ± {error:.3}", kernel.kernel, kernel.watts)?;
    }
    writeln!(
        out,
        "\n{:<18} {:<10} {:>16} {:>16} {:>8} {:>7}",
        "arrangement", "kernel", "truth, J", "eprof, J", "by time", "error"
    )?;
    for comparison in &found.comparisons {
        for (at, row) in comparison.rows.iter().enumerate() {
            let name = if at == 0 { comparison.arrangement.to_string() } else { String::new() };
            writeln!(
                out,
                "{name:<18} {:<10} {:>8.3} ± {:<5.3} {:>8.3} ± {:<5.3} {:>8.3} {:>+6.1}%{}",
                row.kernel,
                row.truth_joules,
                row.truth_std_error,
                row.eprof_joules,
                row.eprof_std_error,
                row.by_time_joules,
                100.0 * row.error(),
                if row.holds() { "" } else { " *" },
            )?;
        }
        write_sum(out, comparison)?;
    }
    if found.verdict.held < found.verdict.rows {
        writeln!(out, "*: further off than the bars of 95 % allow")?;
    }
    found.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
    let Verdict { by_time_mean_error, by_time_worst_error, .. } = found.verdict;
    writeln!(out, "\n{}", verdict(&found.verdict))?;
    writeln!(
        out,
        "a profile by time: mean {:.1} %, worst {:.1} %",
        100.0 * by_time_mean_error,
        100.0 * by_time_worst_error
    )
}

/// The sums, and what the meter counted.
fn write_sum(out: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
    let sum = |of: fn(&Row) -> f64| comparison.rows.iter().map(of).sum::<f64>();
    let (truth, said) = (sum(|row| row.truth_joules), sum(|row| row.eprof_joules));
    writeln!(
        out,
        "{:<18} {:<10} {truth:>8.3}         {said:>8.3}         {:>8.3} {:>+6.1}%",
        "",
        "together",
        sum(|row| row.by_time_joules),
        100.0 * (said / truth - 1.0),
    )?;
    writeln!(
        out,
        "{:<18} the meters: {:.3} J, {:+.1} % of the kernels' watts alone; the same work alone: {:.3} J",
        "",
        comparison.measured_joules,
        100.0 * (comparison.measured_joules / comparison.alone_joules - 1.0),
        comparison.work_joules
    )
}

/// `functions on this machine: mean 1.2 %, worst 2.9 %; bars hold 19 of 20; the truth is known to 0.4 %`
fn verdict(verdict: &Verdict) -> String {
    format!(
        "functions on this machine: mean {:.1} %, worst {:.1} %; bars hold {} of {}; the truth is known to {:.1} %",
        100.0 * verdict.mean_error,
        100.0 * verdict.worst_error,
        verdict.held,
        verdict.rows,
        100.0 * verdict.truth_error
    )
}

/// A line for each kernel in each arrangement.
pub fn csv(out: &mut dyn Write, found: &Verification) -> io::Result<()> {
    writeln!(
        out,
        "arrangement,seconds,kernel,truth_joules,truth_stderr_joules,eprof_joules,eprof_stderr_joules,\
         by_time_joules,error,holds"
    )?;
    for comparison in &found.comparisons {
        for row in &comparison.rows {
            writeln!(
                out,
                "\"{}\",{},{},{},{},{},{},{},{},{}",
                comparison.arrangement,
                comparison.seconds,
                row.kernel,
                row.truth_joules,
                row.truth_std_error,
                row.eprof_joules,
                row.eprof_std_error,
                row.by_time_joules,
                row.error(),
                row.holds()
            )?;
        }
    }
    Ok(())
}
