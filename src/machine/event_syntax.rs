//! perf's way of writing events, taken apart: `pmu/term=value,.../modifiers`, `name:modifiers`,
//! `system:tracepoint`. Nothing is looked up here.

/// An event as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written<'a> {
    /// What is to be counted.
    pub body: Body<'a>,
    /// Terms between slashes, in order.
    pub terms: Vec<Term<'a>>,
    /// Letters after the last colon or slash.
    pub modifiers: &'a str,
}

/// The part before slashes and modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// A generic event, a raw code, a PMU or an event that a PMU names.
    Name(&'a str),
    /// `system:event`
    Tracepoint(&'a str, &'a str),
}

/// `key` or `key=value`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Term<'a> {
    pub key: &'a str,
    pub value: Option<&'a str>,
}

/// The letters that perf knows as modifiers.
const MODIFIERS: &str = "ukhpPGHSDIWeb";

/// Cuts a list at its commas, but not at those between slashes.
pub(super) fn split_list(list: &str) -> Vec<&str> {
    let mut between_slashes = false;
    list.split(|c| {
        between_slashes ^= c == '/';
        c == ',' && !between_slashes
    })
    .map(str::trim)
    .filter(|event| !event.is_empty())
    .collect()
}

/// Takes one event apart; an error says what is wrong with its form.
pub(super) fn parse(text: &str) -> Result<Written<'_>, &'static str> {
    let text = text.trim();
    if text.contains(['{', '}']) {
        return Err("groups in braces are not supported; write the events one after another");
    }
    if let Some((head, rest)) = text.split_once('/') {
        let (terms, modifiers) = rest.rsplit_once('/').ok_or("the closing '/' is missing")?;
        if head.is_empty() {
            return Err("the PMU's name is missing before '/'");
        }
        let modifiers = modifiers.strip_prefix(':').unwrap_or(modifiers);
        return Ok(Written { body: Body::Name(head), terms: parse_terms(terms), modifiers });
    }
    let parts: Vec<&str> = text.split(':').collect();
    let (body, modifiers) = match parts[..] {
        [""] => return Err("an event's name is missing"),
        [name] => (Body::Name(name), ""),
        [name, modifiers] if !modifiers.is_empty() && modifiers.chars().all(|c| MODIFIERS.contains(c)) => {
            (Body::Name(name), modifiers)
        }
        [system, event] if !system.is_empty() && !event.is_empty() => (Body::Tracepoint(system, event), ""),
        [system, event, modifiers] if !system.is_empty() && !event.is_empty() => {
            (Body::Tracepoint(system, event), modifiers)
        }
        _ => return Err("it has a ':' too many"),
    };
    Ok(Written { body, terms: Vec::new(), modifiers })
}

/// Terms between commas; commas between single quotes belong to a value.
pub(super) fn parse_terms(text: &str) -> Vec<Term<'_>> {
    let mut quoted = false;
    text.split(|c| {
        quoted ^= c == '\'';
        c == ',' && !quoted
    })
    .map(str::trim)
    .filter(|term| !term.is_empty())
    .map(|term| match term.split_once('=') {
        Some((key, value)) => Term { key: key.trim(), value: Some(value.trim().trim_matches('\'')) },
        None => Term { key: term, value: None },
    })
    .collect()
}

/// A number as perf takes it: decimal, or hexadecimal after `0x`.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The code of `rNNNN`: one to sixteen hexadecimal digits.
pub(super) fn raw_code(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('r')?;
    let plain = (1..=16).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commas_between_slashes_do_not_cut() {
        let list = "cycles:u, cpu/event=0xa2,umask=0x4/pp,,sched:sched_switch";
        assert_eq!(split_list(list), ["cycles:u", "cpu/event=0xa2,umask=0x4/pp", "sched:sched_switch"]);
    }

    #[test]
    fn terms_and_modifiers() {
        let written = parse("cpu/event=0xa2,umask=4,name='a, b',edge/uk").expect("valid");
        assert_eq!(written.body, Body::Name("cpu"));
        assert_eq!(written.modifiers, "uk");
        let terms: Vec<_> = written.terms.iter().map(|term| (term.key, term.value)).collect();
        let expected =
            [("event", Some("0xa2")), ("umask", Some("4")), ("name", Some("a, b")), ("edge", None)];
        assert_eq!(terms, expected);
        assert_eq!(parse("cpu/event=1/:u").expect("valid").modifiers, "u");
    }

    #[test]
    fn modifiers_or_tracepoint() {
        assert_eq!(parse("cycles:upp").expect("valid").modifiers, "upp");
        let tracepoint = parse("sched:sched_switch:k").expect("valid");
        assert_eq!(tracepoint.body, Body::Tracepoint("sched", "sched_switch"));
        assert_eq!(tracepoint.modifiers, "k");
    }

    #[test]
    fn faults_of_form_are_named() {
        assert!(parse("cpu/event=1").expect_err("unclosed").contains("closing"));
        assert!(parse("{cycles,instructions}:S").expect_err("group").contains("groups"));
        assert!(parse("a:b:c:d").is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn raw_codes() {
        assert_eq!(raw_code("r04a2"), Some(0x04a2));
        assert_eq!(raw_code("r"), None);
        assert_eq!(raw_code("ref-cycles"), None);
        assert_eq!(raw_code("r12345678901234567"), None);
        assert_eq!(raw_code("r+1"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            for event in split_list(&text) {
                let _ = parse(event);
            }
        }
    }
}
