//! Linker names of C++ and Rust, as people read them.

use std::fmt::{self, Write};
use std::hash::Hasher;
use std::thread;

use cpp_demangle::{DemangleOptions, ParseOptions};
use rustc_hash::FxHasher;

/// Longest name that is demangled, and the longest result: hostile names can unfold exponentially. Of longer results the
/// beginning is shown.
const LONGEST_NAME: usize = 64 * 1024;
const LONGEST_RESULT: usize = 64 * 1024;
const SHOWN_OF_LONGER: usize = 2000;
/// Templates within templates, so many deep, need more stack than threads have.
const DEEPEST: u32 = 4096;
const STACK_FOR_DEEPEST: usize = 128 << 20;

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
        // What a compiler appended to the name of a function that it cloned or cut in parts: `.isra.0`, `.cold`.
        let (mangled, clone) = name.split_at(name.find('.').unwrap_or(name.len()));
        match mangled.as_bytes() {
            [b'_', b'R', ..] => rust(name),
            // Rust's older scheme looks like C++ with a hash as the last part, so it is tried first.
            [b'_', b'Z', ..] => rust(name).or_else(|| self.cpp(mangled, clone)),
            _ => None,
        }
    }

    fn cpp(self, mangled: &str, clone: &str) -> Option<String> {
        if self.cpp_parameters {
            let name =
                cpp_text(mangled, &DemangleOptions::new()).or_else(|| Some(name_alone(mangled)? + "(…)"))?;
            return Some(
                clones(clone).into_iter().fold(name, |name, clone| format!("{name} [clone {clone}]")),
            );
        }
        if let Some((kind, target)) = thunk(mangled) {
            return Some(kind.to_owned() + &cpp_text(&target, &DemangleOptions::new())?);
        }
        let name = cpp_text(mangled, &DemangleOptions::new().no_params().no_return_type());
        let mut name = name.or_else(|| name_alone(mangled))?;
        // Qualifiers of a member function belong to its parameters.
        for qualifier in [" &&", " &", " const", " volatile"] {
            name.truncate(name.strip_suffix(qualifier).unwrap_or(&name).len());
        }
        Some(name)
    }
}

/// The clones that a name went through, each a word with its numbers: `.isra.0.cold` are `.isra.0` and `.cold`.
fn clones(suffix: &str) -> Vec<&str> {
    let is_word = |at: usize| suffix[at + 1..].starts_with(|c: char| !c.is_ascii_digit());
    let dots = suffix.match_indices('.').map(|(at, _)| at);
    let mut starts: Vec<usize> = dots.filter(|&at| at == 0 || is_word(at)).collect();
    starts.push(suffix.len());
    starts.windows(2).map(|pair| &suffix[pair[0]..pair[1]]).collect()
}

/// A stub that adjusts `this` and jumps to a virtual function: what to call it, and the function's linker name.
fn thunk(mangled: &str) -> Option<(&'static str, String)> {
    let offset = |text: &mut &str| {
        let digits = text.strip_prefix('n').unwrap_or(text).trim_start_matches(|c: char| c.is_ascii_digit());
        *text = digits.strip_prefix('_')?;
        Some(())
    };
    let call_offset = |text: &mut &str| {
        let virtual_base = text.starts_with('v');
        *text = text.strip_prefix(['h', 'v'])?;
        offset(text)?;
        if virtual_base { offset(text) } else { Some(()) }
    };
    let mut rest = mangled.strip_prefix("_ZT")?;
    let kind = match rest.as_bytes().first()? {
        b'h' => "non-virtual thunk to ",
        b'v' => "virtual thunk to ",
        b'c' => {
            rest = &rest[1..];
            call_offset(&mut rest)?;
            "covariant return thunk to "
        }
        _ => return None,
    };
    call_offset(&mut rest)?;
    Some((kind, format!("_Z{rest}")))
}

/// So many places are tried as the end of a name.
const MOST_ENDS: usize = 1000;

/// The name of a function without its types, of which the demangler does not know all: expressions in them, as of
/// `std::enable_if`, have a form of their own in GCC's names.
fn name_alone(mangled: &str) -> Option<String> {
    // What a name goes on with: template arguments, tags of the ABI, and the numbers of local names.
    let goes_on = |rest: &str| rest.starts_with(['I', 'B', '_']);
    let ends = (3..mangled.len()).filter(|&end| mangled.is_char_boundary(end)).take(MOST_ENDS);
    let mut names = ends.map(|end| mangled.split_at(end)).filter(|(_, types)| !goes_on(types));
    names.find_map(|(name, _)| {
        let options = DemangleOptions::new().no_params().no_return_type();
        cpp_text_within(name, &ParseOptions::default(), &options)
    })
}

fn cpp_text(mangled: &str, options: &DemangleOptions) -> Option<String> {
    // The usual limits of depth fit the usual stacks.
    if let Some(text) = cpp_text_within(mangled, &ParseOptions::default(), options) {
        return Some(text);
    }
    let parsing = ParseOptions::default().recursion_limit(DEEPEST);
    let options = options.recursion_limit(DEEPEST);
    thread::scope(|scope| {
        let deep = thread::Builder::new().name("demangle".into()).stack_size(STACK_FOR_DEEPEST);
        let deep = deep.spawn_scoped(scope, || cpp_text_within(mangled, &parsing, &options)).ok()?;
        deep.join().ok()?
    })
}

fn cpp_text_within(mangled: &str, parsing: &ParseOptions, options: &DemangleOptions) -> Option<String> {
    let mut text = Bounded::default();
    let symbol = cpp_demangle::Symbol::new_with_options(mangled, parsing).ok()?;
    let written = symbol.structured_demangle(&mut text, options).is_ok();
    text.finish(written, mangled).map(|name| without_empty_packs(&name))
}

/// Without the comma that the demangler writes before an empty pack at the end of template arguments; other demanglers
/// (those of binutils and LLVM) write none.
fn without_empty_packs(name: &str) -> String {
    // `operator,` has no space before it.
    let mut parts = name.split(", >");
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // What closes two templates is kept apart, as elsewhere in the name.
        short += if short.ends_with('>') { " >" } else { ">" };
        short += part;
    }
    short
}

fn rust(name: &str) -> Option<String> {
    // Dots are part of names in the older scheme, which ends with `E`, but not in the newer one.
    let end = match name.strip_prefix("_R") {
        Some(_) => name.find('.'),
        None => name.rfind("E.").map(|last| last + 1),
    };
    let symbol = rustc_demangle::try_demangle(&name[..end.unwrap_or(name.len())]).ok()?;
    let mut text = Bounded::default();
    let written = write!(text, "{symbol:#}").is_ok();
    text.finish(written, name)
}

/// A string that refuses to grow beyond [`LONGEST_RESULT`].
#[derive(Default)]
struct Bounded {
    text: String,
    is_full: bool,
}

impl Bounded {
    /// The text; of one that is too long its beginning, with what tells it from others that begin so.
    fn finish(self, is_written: bool, mangled: &str) -> Option<String> {
        match (is_written, self.is_full) {
            (true, _) => Some(self.text),
            (false, false) => None,
            (false, true) => {
                let mut hasher = FxHasher::default();
                hasher.write(mangled.as_bytes());
                let end = self.text.floor_char_boundary(SHOWN_OF_LONGER);
                Some(format!("{}… [{:08x}]", &self.text[..end], hasher.finish() as u32))
            }
        }
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len() + text.len() > LONGEST_RESULT {
            self.is_full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(text);
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
        let legacy = "_ZN47_$LT$r..m..S$LT$f64$GT$$u20$as$u20$r..m..Tr$GT$2go17h0123456789abcdefE";
        assert_eq!(short(legacy).as_deref(), Some("<r::m::S<f64> as r::m::Tr>::go"));
        assert_eq!(short("_RNvCs1234_7mycrate3foo").as_deref(), Some("mycrate::foo"));
    }

    #[test]
    fn linkage_stubs_clones_and_thunks() {
        let full = |name| Demangler { enabled: true, cpp_parameters: true }.demangle(name);
        assert_eq!(short("_Z3fooi@plt").as_deref(), Some("foo@plt"));
        assert_eq!(short("_Z3fooi.isra.0.cold").as_deref(), Some("foo"));
        assert_eq!(full("_Z3fooi.cold").as_deref(), Some("foo(int) [clone .cold]"));
        assert_eq!(full("_Z3fooi.isra.0.cold").as_deref(), Some("foo(int) [clone .isra.0] [clone .cold]"));
        assert_eq!(
            full("_Z3fooi.part.3.lto_priv.7").as_deref(),
            Some("foo(int) [clone .part.3] [clone .lto_priv.7]")
        );
        assert_eq!(full("_Z3fooi.part.0@plt").as_deref(), Some("foo(int) [clone .part.0]@plt"));
        assert_eq!(short("_ZThn16_N1A1fEi").as_deref(), Some("non-virtual thunk to A::f(int)"));
        assert_eq!(short("_ZTv0_n24_N1A1fEi").as_deref(), Some("virtual thunk to A::f(int)"));
        assert_eq!(
            short("_ZTcv0_n24_v0_n32_N1A1fEi").as_deref(),
            Some("covariant return thunk to A::f(int)")
        );
    }

    #[test]
    fn qualifiers_of_member_functions_are_left_out_with_the_parameters() {
        assert_eq!(short("_ZNKR1A1fEv").as_deref(), Some("A::f"));
        assert_eq!(short("_ZNO1A1fEv").as_deref(), Some("A::f"));
        assert_eq!(short("_ZN1AcvRKiEv").as_deref(), Some("A::operator int const&"));
    }

    /// Names of std::swap and the like by g++ 12 with -std=c++17; what c++filt says of them, without the types.
    #[test]
    fn functions_with_expressions_in_their_types_have_their_names() {
        let of_struct = "_ZSt4swapI1PENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_move_constructible\
                         IS5_ESt18is_move_assignableIS5_EEE5valueEvE4typeERS5_SF_";
        let of_array = "_ZSt4swapI1PLm3EENSt9enable_ifIXsrSt14__is_swappableIT_E5valueEvE4typeERAT0__S3_S8_";
        let fill = "_ZSt9__fill_a1IP1PS0_EN9__gnu_cxx11__enable_ifIXntsrSt11__is_scalarIT0_E7__valueEvE6__typeET_S9_RKS5_";
        assert_eq!(short(of_struct).as_deref(), Some("std::swap<P>"));
        assert_eq!(short(of_array).as_deref(), Some("std::swap<P, (unsigned long)3>"));
        assert_eq!(short(fill).as_deref(), Some("std::__fill_a1<P*, P>"));
        let full = Demangler { enabled: true, cpp_parameters: true };
        assert_eq!(full.demangle(of_struct).as_deref(), Some("std::swap<P>(…)"));
        // What is wrong in the name itself is not guessed.
        for of_name in ["_ZSt4swapIXsrSt6__not_IiE5valueEEvv", "_ZN1a1fIXsrSt6__not_IiE5valueEEEvv", "_Z"] {
            assert_eq!(short(of_name), None, "{of_name}");
        }
    }

    #[test]
    fn templates_are_demangled_however_deep_they_are() {
        // f<pair<pair<... int, int>, int>>, so many deep.
        let nested = |depth| {
            let (open, close) = ("St4pairI".repeat(depth), "iE".repeat(depth));
            format!("_Z1fI{open}i{close}Evv")
        };
        let shown = short(&nested(300)).expect("demangled");
        assert!(shown.starts_with("f<std::pair<std::pair<") && shown.ends_with("int>, int> >"), "{shown}");
        assert_eq!(shown.matches("std::pair<").count(), 300);
    }

    #[test]
    fn of_names_that_unfold_without_end_the_beginning_is_shown() {
        // Each pair is of two of the one before: S1_ is twice S0_, and so on.
        let doubled = |first: &str| {
            let parameters: String = (0..24).fold(format!("St4pairI{first}{first}E"), |all, at| {
                let before = if at == 0 {
                    "S1_".to_owned()
                } else {
                    format!(
                        "S{}_",
                        [
                            "2", "3", "4", "5", "6", "7", "8", "9", "A", "B", "C", "D", "E", "F", "G", "H",
                            "I", "J", "K", "L", "M", "N", "O", "P"
                        ][at - 1]
                    )
                };
                format!("{all}S_I{before}{before}E")
            });
            let full = Demangler { enabled: true, cpp_parameters: true };
            full.demangle(&format!("_Z1f{parameters}"))
        };
        let [first, second] = [doubled("1A"), doubled("1B")].map(|shown| shown.expect("the beginning"));
        assert!(first.starts_with("f(std::pair<A, A>, ") && first.contains("… ["), "{first}");
        assert!(first.len() < SHOWN_OF_LONGER + 20 && first != second);
    }

    #[test]
    fn an_empty_pack_at_the_end_leaves_no_comma() {
        for (mangled, expected) in [
            (
                "_ZN4llvm15AnalysisManagerINS_8FunctionEJEE5clearEv",
                "llvm::AnalysisManager<llvm::Function>::clear",
            ),
            ("_Z1fI1AI1BIiEJEEJEEvv", "f<A<B<int> > >"),
            ("_Z1fIJEEvv", "f<>"),
        ] {
            assert_eq!(short(mangled).as_deref(), Some(expected));
        }
    }

    #[test]
    fn other_names_stay() {
        assert_eq!(short("main"), None);
        assert_eq!(short("_Znot_mangled"), None);
        assert_eq!(short(""), None);
        assert_eq!(Demangler { enabled: false, cpp_parameters: true }.demangle("_Z3fooi"), None);
    }
}
