//! The two text formats that Prometheus reads: its own, and OpenMetrics.

use std::fmt::Write;

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises; `_total` stands behind its name.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Always 1, and tells by its labels; `_info` stands behind its name.
    Info,
}

impl Format {
    /// The one that whoever sends this header `Accept` reads, and likes best.
    pub fn accepted(accept: Option<&str>) -> Self {
        let mut best = (Self::Prometheus, 0.0);
        for range in accept.unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let format = match parts.next().map(str::to_ascii_lowercase).as_deref() {
                Some("application/openmetrics-text") => Self::OpenMetrics,
                Some("text/plain" | "text/*" | "*/*") => Self::Prometheus,
                _ => continue,
            };
            let weight = parts.find_map(|part| part.strip_prefix("q=")).and_then(|q| q.trim().parse().ok());
            let weight: f64 = weight.unwrap_or(1.0);
            let is_better = weight > best.1 || (weight == best.1 && format == Self::OpenMetrics);
            if weight > 0.0 && is_better {
                best = (format, weight);
            }
        }
        best.0
    }

    /// What it is called in a response.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A page of metrics in the making.
pub struct Page {
    format: Format,
    text: String,
    /// Of the family at hand, as its lines have it.
    name: String,
}

impl Page {
    /// An empty one.
    pub fn new(format: Format) -> Self {
        Self { format, text: String::new(), name: String::new() }
    }

    /// Begins a family: `name` without what its kind adds, and with its unit, if it has one, at its end.
    pub fn family(&mut self, name: &str, kind: Kind, unit: &str, help: &str) {
        let suffix = match kind {
            Kind::Counter => "_total",
            Kind::Gauge => "",
            Kind::Info => "_info",
        };
        self.name = format!("{name}{suffix}");
        let (family, kind) = match self.format {
            Format::OpenMetrics => (
                name,
                match kind {
                    Kind::Counter => "counter",
                    Kind::Gauge => "gauge",
                    Kind::Info => "info",
                },
            ),
            Format::Prometheus => (
                &*self.name,
                match kind {
                    Kind::Counter => "counter",
                    Kind::Gauge | Kind::Info => "gauge",
                },
            ),
        };
        // Writing to a text does not fail.
        let _ = writeln!(self.text, "# HELP {family} {}\n# TYPE {family} {kind}", escaped(help));
        if self.format == Format::OpenMetrics && !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {family} {unit}");
        }
    }

    /// A sample of the family.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(&self.name);
        for (index, (name, text)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{name}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// The whole page.
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// A text within quotation marks. Other control characters have no place in a line, and no way to be written.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A metric's name, its labels and its value.
    type Sample = (String, Vec<(String, String)>, f64);

    /// Reads a line of a sample as a scraper does.
    fn parse(line: &str) -> Option<Sample> {
        let end = line.find(['{', ' '])?;
        let (name, mut rest) = line.split_at(end);
        let mut labels = Vec::new();
        while let Some(inner) = rest.strip_prefix(['{', ',']) {
            let (label, quoted) = inner.split_once("=\"")?;
            let (mut value, mut letters) = (String::new(), quoted.char_indices());
            let end = loop {
                match letters.next()? {
                    (_, '\\') => value.push(match letters.next()?.1 {
                        'n' => '\n',
                        other => other,
                    }),
                    (at, '"') => break at,
                    (_, letter) => value.push(letter),
                }
            };
            labels.push((label.to_owned(), value));
            rest = &quoted[end + 1..];
        }
        let number = rest.strip_prefix('}').unwrap_or(rest).strip_prefix(' ')?;
        Some((name.to_owned(), labels, number.parse().ok()?))
    }

    proptest! {
        #[test]
        fn hostile_labels_are_one_line_and_come_back(text in "(\\PC|[\"\\\\\n{},= ]){0,40}", value in 0.0..1e18f64) {
            let mut page = Page::new(Format::Prometheus);
            page.family("eprof_x_joules", Kind::Counter, "joules", "What.");
            page.sample(&[("function", &text), ("module", "m")], value);
            let page = page.finish();
            let lines: Vec<&str> = page.split_terminator('\n').collect();
            prop_assert_eq!(lines.len(), 3);
            let (name, labels, found) = parse(lines[2]).expect("a sample");
            prop_assert_eq!((&*name, found), ("eprof_x_joules_total", value));
            prop_assert_eq!(&labels[0], &("function".to_owned(), text));
            prop_assert_eq!(&labels[1], &("module".to_owned(), "m".to_owned()));
        }
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(escaped("a\u{1b}[2J\r\n"), "a\u{fffd}[2J\u{fffd}\\n");
    }

    #[test]
    fn families_are_as_each_format_has_them() {
        let page = |format| {
            let mut page = Page::new(format);
            page.family("eprof_domain_joules", Kind::Counter, "joules", "Energy.");
            page.sample(&[("domain", "package-0")], 1.5);
            page.family("eprof_build", Kind::Info, "", "Version.");
            page.sample(&[("version", "1")], 1.0);
            page.finish()
        };
        assert_eq!(
            page(Format::OpenMetrics),
            "# HELP eprof_domain_joules Energy.\n# TYPE eprof_domain_joules counter\n# UNIT eprof_domain_joules joules\n\
             eprof_domain_joules_total{domain=\"package-0\"} 1.5\n\
             # HELP eprof_build Version.\n# TYPE eprof_build info\neprof_build_info{version=\"1\"} 1\n# EOF\n"
        );
        assert_eq!(
            page(Format::Prometheus),
            "# HELP eprof_domain_joules_total Energy.\n# TYPE eprof_domain_joules_total counter\n\
             eprof_domain_joules_total{domain=\"package-0\"} 1.5\n\
             # HELP eprof_build_info Version.\n# TYPE eprof_build_info gauge\neprof_build_info{version=\"1\"} 1\n"
        );
    }

    #[test]
    fn the_format_is_the_one_that_is_liked_best() {
        let accepted = |text| Format::accepted(Some(text));
        assert_eq!(Format::accepted(None), Format::Prometheus);
        assert_eq!(accepted("text/html"), Format::Prometheus);
        assert_eq!(accepted("application/openmetrics-text"), Format::OpenMetrics);
        assert_eq!(
            accepted(
                "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
            ),
            Format::OpenMetrics
        );
        assert_eq!(accepted("text/plain;q=0.9, application/openmetrics-text;q=0.2"), Format::Prometheus);
        assert_eq!(accepted("application/openmetrics-text;q=0"), Format::Prometheus);
    }
}
