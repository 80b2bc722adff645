//! The first lines of a table: joules by domain and by what they were measured, time, power,
//! samples, and the balance.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::missing_joules::MissingJoules;
use super::scale::Scale;
use super::style::Style;
use super::summary::{DomainSummary, Summary, how, whole_title};
use crate::hardware::{Method, TYPICAL_WATTS_ERROR};
use crate::label::padded;
use crate::profile::{Balance, ProfileMethod};
use crate::units::{Joules, Nanoseconds, grouped};

/// Columns of a number in the head.
const NUMBER: usize = 10;
/// The source of domains that no meter counts; what watts were assumed says more.
const ESTIMATE: &str = "estimate";
/// Columns that a domain's name may take.
const NAME: usize = 18;

pub(super) fn write(summary: &Summary, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let (bold, plain) = if style.color { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    if let Some(subject) = &summary.subject {
        writeln!(out, "{}", subject.shortened(style.width))?;
    }
    if !summary.has_joules() {
        writeln!(
            out,
            "{bold}no joules in this recording of {}: rows are by samples{plain}",
            summary.duration
        )?;
        write_samples(summary, style, out)?;
        let missing = MissingJoules::of(summary.method, summary.samples());
        return write_wrapped("for joules: ", missing.repair(), style.width, out);
    }
    let power = summary.mean_power().map(|power| format!(" ({power})")).unwrap_or_default();
    let how = how(summary.method);
    writeln!(out, "{bold}{} in {}{power}, {how}{plain}", summary.balance.measured, summary.duration)?;
    if let Some(text) = whose(summary) {
        write_wrapped("", &text, style.width, out)?;
    }
    for domain in &summary.domains {
        write_domain(domain, summary.duration, style, out)?;
    }
    write_samples(summary, style, out)?;
    if let Some(division) = &summary.division {
        write_wrapped("divided: ", &division.sentence(), style.width, out)?;
    }
    writeln!(out)?;
    write_balance(summary, style, out)?;
    let Some(verified) = &summary.verified else { return Ok(()) };
    let [mean, worst] = [verified.mean_error, verified.worst_error].map(|error| 100.0 * error);
    let text = format!("mean {mean:.1} %, worst {worst:.1} %, {}", verified.date);
    write_wrapped("verified on this machine: ", &text, style.width, out)
}

/// Of whom the joules of the first line are, and how many of them are the rows': meters count the machine, whoever
/// was recorded.
fn whose(summary: &Summary) -> Option<String> {
    let balance = &summary.balance;
    let is_of_machine = summary.method != ProfileMethod::Estimated || balance.other_processes > Joules::ZERO;
    is_of_machine.then(|| match summary.samples() {
        0 => "energy of the whole machine; what was recorded was never sampled, and is charged none of it"
            .to_owned(),
        _ => {
            format!("energy of the whole machine, of which the sampled functions took {}", balance.attributed)
        }
    })
}

fn write_domain(
    domain: &DomainSummary,
    duration: Nanoseconds,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let joules = domain.balance.measured.to_string();
    let power = if duration > Nanoseconds::ZERO {
        (domain.balance.measured / duration).to_string()
    } else {
        String::new()
    };
    let method = match domain.method {
        Method::Measured => "measured",
        Method::Estimated => "estimated",
    };
    let start = format!("  {}{}{}  {method}", name(domain), right(&joules), right(&power));
    if domain.source.as_str() == ESTIMATE {
        return match domain.watts_error {
            0.0 => writeln!(out, "{start}: by --watts"),
            error if error < TYPICAL_WATTS_ERROR => {
                writeln!(out, "{start}: by --watts in part, ± {:.0} %", error * 100.0)
            }
            error => writeln!(out, "{start}: typical watts, ± {:.0} %", error * 100.0),
        };
    }
    let source = domain.source.shortened(style.width.saturating_sub(start.width() + 2).max(12));
    writeln!(out, "{start}: {source}")
}

fn write_samples(summary: &Summary, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let mut text: Vec<String> =
        summary.events.iter().map(|event| format!("{} {}", grouped(event.samples), event.name)).collect();
    if text.is_empty() {
        text.push("none".to_owned());
    }
    let mut text = text.join(", ");
    text += &format!("; {} lost", grouped(summary.lost()));
    if summary.of_others() > 0 {
        text +=
            &format!("; {} in no row (of eprof, other programs, idle CPUs)", grouped(summary.of_others()));
    }
    let throttled: u64 = summary.events.iter().map(|event| event.throttled).sum();
    if throttled > 0 {
        text += &format!("; throttled {} times", grouped(throttled));
    }
    write_wrapped("samples: ", &text, style.width, out)
}

/// One line for each domain, one for their sum, one of shares, and whether it adds up.
fn write_balance(summary: &Summary, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let (bold, plain) = if style.color { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let scale = Scale::for_largest(summary.balance.measured);
    let whole = whole_title(summary.method);
    let titles = [whole, "functions", "static", "others", "eprof", "lost"];
    let titles: String = titles.iter().map(|title| right(title)).collect();
    writeln!(out, "{bold}{}{titles}{plain}", padded(&format!("balance, {}", scale.unit), NAME + 2))?;
    let line = |balance: &Balance| -> String {
        balance.columns().into_iter().map(|part| right(&scale.show(part))).collect()
    };
    for domain in &summary.domains {
        writeln!(out, "  {}{}", name(domain), line(&domain.balance))?;
    }
    if summary.domains.len() > 1 {
        let of = if summary.domains.iter().filter(|domain| domain.counted).count() > 1 {
            "sum"
        } else {
            "counted"
        };
        writeln!(out, "  {}{}", padded(of, NAME), line(&summary.balance))?;
    }
    let share = |part: Joules| right(&format!("{:.1}%", 100.0 * (part / summary.balance.measured)));
    let shares: String = summary.balance.columns().into_iter().map(share).collect();
    writeln!(out, "  {}{shares}", padded("", NAME))?;
    let error = summary.domains.iter().map(|domain| domain.balance.error()).fold(0.0, f64::max);
    if summary.domains.iter().any(|domain| !domain.balance.holds()) {
        return writeln!(
            out,
            "{bold}THE PARTS DO NOT ADD UP: they differ by {error:.1e} of the whole{plain}"
        );
    }
    let exactly = if error == 0.0 { "exactly".to_owned() } else { format!("to {error:.0e} of it") };
    writeln!(out, "functions + static + others + eprof + lost = {whole}, {exactly}")
}

/// A domain's name, indented by the domains that contain it.
fn name(domain: &DomainSummary) -> String {
    let indent = (2 * domain.depth).min(NAME / 2);
    padded(&format!("{}{}", " ".repeat(indent), domain.name.shortened(NAME - indent)), NAME)
}

fn right(text: &str) -> String {
    format!("{}{text}", " ".repeat(NUMBER.saturating_sub(text.width()).max(1)))
}

/// Writes words in lines of at most `width` columns; the lines after the first are indented.
pub(super) fn write_wrapped(start: &str, text: &str, width: usize, out: &mut impl Write) -> io::Result<()> {
    let mut line = start.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
        if !is_empty && line.width() + 1 + word.width() > width {
            writeln!(out, "{}", line.trim_end())?;
            line = "  ".to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    writeln!(out, "{}", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap() {
        let mut out = Vec::new();
        write_wrapped("a: ", "bb cc dd", 8, &mut out).expect("a vector takes all");
        assert_eq!(String::from_utf8_lossy(&out), "a: bb cc\n  dd\n");
    }
}
