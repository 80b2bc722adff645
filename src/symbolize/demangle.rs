//! Linker names of C++ and Rust, as people read them.

use std::fmt::{self, Write};

use cpp_demangle::DemangleOptions;

/// Longest name that is demangled, and the longest result: hostile names can unfold exponentially.
const LONGEST_NAME: usize = 16 * 1024;
const LONGEST_RESULT: usize = 64 * 1024;

/// How names are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Demangler {
    pub(crate) enabled: bool,
    pub(crate) cpp_parameters: bool,
}

impl Demangler {
    /// The readable form of a linker name; `None` if the name is not mangled or nothing is wanted.
    pub(crate) fn demangle(self, name: &str) -> Option<String> {
        if !self.enabled || name.len() > LONGEST_NAME {
            return None;
        }
        if let Some(function) = name.strip_suffix("@plt") {
            return Some(self.demangle(function)? + "@plt");
        }
        match name.as_bytes() {
            [b'_', b'R', ..] => rust(name),
            // Rust's older scheme looks like C++ with a hash as the last part, so it is tried first.
            [b'_', b'Z', ..] => rust(name).or_else(|| self.cpp(name)),
            [b'_', b'_', b'Z', ..] => rust(name),
            _ => None,
        }
    }

    fn cpp(self, name: &str) -> Option<String> {
        let (mangled, clones) = split_clones(name);
        let symbol = cpp_demangle::Symbol::new(mangled).ok()?;
        let mut options = DemangleOptions::new();
        if !self.cpp_parameters {
            options = options.no_params().no_return_type();
        }
        let mut text = Bounded(String::new());
        symbol.structured_demangle(&mut text, &options).ok()?;
        for clone in clones {
            write!(text, " [clone {clone}]").ok()?;
        }
        Some(text.0)
    }
}

fn rust(name: &str) -> Option<String> {
    let symbol = rustc_demangle::try_demangle(name).ok()?;
    let mut text = Bounded(String::new());
    write!(text, "{symbol:#}").ok()?;
    Some(text.0)
}

/// Splits what a compiler appended to the name of a function that it cloned or cut in parts, such as
/// `.isra.0` and `.cold`: a suffix of letters, and the numbers behind it.
fn split_clones(name: &str) -> (&str, Vec<&str>) {
    let Some(first) = name.find('.') else { return (name, Vec::new()) };
    let mut clones: Vec<&str> = Vec::new();
    let mut start = first;
    let ends = name[first + 1..].match_indices('.').map(|(at, _)| first + 1 + at).chain([name.len()]);
    for end in ends {
        let next = name[end..].get(1..2);
        let number_follows = next.is_some_and(|next| next.as_bytes()[0].is_ascii_digit());
        if !number_follows {
            clones.push(&name[start..end]);
            start = end;
        }
    }
    (&name[..first], clones)
}

/// A string that refuses to grow beyond [`LONGEST_RESULT`].
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_RESULT {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(name: &str) -> Option<String> {
        Demangler { enabled: true, cpp_parameters: false }.demangle(name)
    }

    #[test]
    fn cpp_without_parameters_as_perf_prints_it() {
        assert_eq!(short("_Z6freefnIdET_S0_").as_deref(), Some("freefn<double>"));
        assert_eq!(short("_ZZ4mainENKUliE_clEi").as_deref(), Some("main::{lambda(int)#1}::operator()"));
        assert_eq!(short("_ZNK1a1BIdE1fIiEEdT_RKSt6vectorIdSaIdEE").as_deref(), Some("a::B<double>::f<int>"));
    }

    #[test]
    fn cpp_with_parameters() {
        let full = Demangler { enabled: true, cpp_parameters: true };
        assert_eq!(full.demangle("_Z6freefnIdET_S0_").as_deref(), Some("double freefn<double>(double)"));
    }

    #[test]
    fn rust_of_both_schemes_without_hash() {
        let legacy = "_ZN50_$LT$r..m..S$LT$f64$GT$$u20$as$u20$r..m..Tr$GT$2go17h0123456789abcdefE";
        assert_eq!(short(legacy).as_deref(), Some("<r::m::S<f64> as r::m::Tr>::go"));
        assert_eq!(short("_RNvCs1234_7mycrate3foo").as_deref(), Some("mycrate::foo"));
    }

    #[test]
    fn linkage_stubs_and_clones_keep_what_was_appended() {
        assert_eq!(short("_Z3fooi@plt").as_deref(), Some("foo@plt"));
        assert_eq!(short("_Z3fooi.cold").as_deref(), Some("foo [clone .cold]"));
        assert_eq!(short("_Z3fooi.isra.0.cold").as_deref(), Some("foo [clone .isra.0] [clone .cold]"));
    }

    #[test]
    fn other_names_stay() {
        assert_eq!(short("main"), None);
        assert_eq!(short("_Znot_mangled"), None);
        assert_eq!(short(""), None);
        assert_eq!(Demangler { enabled: false, cpp_parameters: true }.demangle("_Z3fooi"), None);
    }
}
