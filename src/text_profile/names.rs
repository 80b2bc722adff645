//! What functions are called: names as they stand in a text, made those that other tools show.

use std::borrow::Cow;

/// A symbol without the offset that stands behind it (`_start+0x10`).
pub(super) fn without_offset(symbol: &str) -> &str {
    match symbol.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => symbol,
    }
}

/// A name without the parameters of C++ and Java functions. Parentheses that are part of a name stay: in templates and
/// lambdas, of methods of Go (`net/http.(*Client).Do`), of C++'s `(anonymous namespace)` and `operator()`. What is declared in a
/// function goes on behind that one's parameters: `outer(int)::Local::run()` is `outer::Local::run`.
pub(super) fn without_parameters(name: &str) -> Cow<'_, str> {
    let mut whole = String::new();
    // What of the name is not in there yet begins here.
    let mut start = 0;
    let mut depth = 0_i32;
    let mut before = ' ';
    let mut letters = name.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '>' if before == '-' => {}
            '<' | '>' if is_operator(&name[..at]) => {}
            '<' | '{' | '[' => depth += 1,
            '>' | '}' | ']' | ')' => depth -= 1,
            '(' if depth == 0 && name[at..].starts_with("()") && name[..at].ends_with("operator") => {
                letters.next();
            }
            '(' => {
                let is_of_name = before == '.' || name[at..].starts_with("(anonymous namespace)");
                if depth == 0 && !is_of_name {
                    whole += &name[start..at];
                    let Some(behind) = within_function(&name[at..]) else {
                        return if start == 0 { Cow::Borrowed(&name[..at]) } else { Cow::Owned(whole) };
                    };
                    start = at + behind;
                    // The last of what is left out.
                    letters.find(|(at, letter)| at + letter.len_utf8() == start);
                    before = ')';
                    continue;
                }
                depth += 1;
            }
            _ => {}
        }
        before = letter;
    }
    if start == 0 { Cow::Borrowed(name) } else { Cow::Owned(whole + &name[start..]) }
}

/// Behind parameters, and `const` and the like, where what is declared in their function begins: `(int) const::{lambda()#1}`. `None`
/// if the name ends with them.
fn within_function(parameters: &str) -> Option<usize> {
    let mut depth = 0;
    let end = parameters.char_indices().find_map(|(at, letter)| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        (depth == 0).then_some(at + 1)
    })?;
    let mut rest = &parameters[end..];
    loop {
        let shorter = rest.trim_start_matches([' ', '&']);
        let shorter = ["const", "volatile", "noexcept"]
            .iter()
            .find_map(|word| shorter.strip_prefix(word))
            .unwrap_or(shorter);
        if shorter.len() == rest.len() {
            break;
        }
        rest = shorter;
    }
    rest.starts_with("::").then(|| parameters.len() - rest.len())
}

/// Does the name of an operator of C++ begin or go on behind this?
fn is_operator(name: &str) -> bool {
    name.trim_end_matches(['<', '>', '=', '-']).ends_with("operator")
}

/// A method of Java without the `L` before its class, which marks a class in the virtual machine's own notation.
pub(super) fn java(name: &str) -> &str {
    if name.contains('/') { name.strip_prefix('L').unwrap_or(name) } else { name }
}

/// What a linker cannot have in names of Rust, and what stands there instead.
const RUST: [(&str, &str); 9] = [
    ("$SP$", "@"),
    ("$BP$", "*"),
    ("$RF$", "&"),
    ("$LT$", "<"),
    ("$GT$", ">"),
    ("$LP$", "("),
    ("$RP$", ")"),
    ("$C$", ","),
    ("..", "::"),
];
/// Digits of the hash behind a name of Rust.
const HASH: usize = 16;

/// A name of Rust, of which perf has undone no more than what it shares with C++.
pub(super) fn rust(name: &str) -> Cow<'_, str> {
    let is_hash = |hash: &str| hash.len() == HASH && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some((path, _)) = name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash)) else {
        return Cow::Borrowed(name);
    };
    // An underscore hides a `$` at the start of a part.
    let mut text = path.replace("::_$", "::$");
    if let Some(rest) = text.strip_prefix("_$") {
        text = format!("${rest}");
    }
    for (coded, meant) in RUST {
        text = text.replace(coded, meant);
    }
    Cow::Owned(decoded(&text))
}

/// With `$u7b$` and the like as the characters that they stand for.
fn decoded(mut text: &str) -> String {
    let mut whole = String::new();
    while let Some((before, behind)) = text.split_once("$u") {
        whole += before;
        let character = behind.split_once('$').and_then(|(code, rest)| {
            let character = char::from_u32(u32::from_str_radix(code, 16).ok()?)?;
            Some((character, rest))
        });
        match character {
            Some((character, rest)) => {
                whole.push(character);
                text = rest;
            }
            None => {
                whole += "$u";
                text = behind;
            }
        }
    }
    whole + text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_no_names() {
        assert_eq!(without_offset("_start+0xffff018fd5dce000"), "_start");
        assert_eq!(without_offset("a+0xg"), "a+0xg");
        assert_eq!(without_offset("operator+"), "operator+");
    }

    #[test]
    fn parameters_are_left_out_and_other_parentheses_stay() {
        for (text, name) in [
            ("Lock::unlock()", "Lock::unlock"),
            ("net/http.(*Client).Do", "net/http.(*Client).Do"),
            ("(anonymous namespace)::work(int)", "(anonymous namespace)::work"),
            ("std::function<void (int)>::call(int) const", "std::function<void (int)>::call"),
            ("{lambda(int)#2}::run()", "{lambda(int)#2}::run"),
            ("A::operator->(int)", "A::operator->"),
            ("operator<<(A, B)", "operator<<"),
            ("Job::operator()(int) const", "Job::operator()"),
            ("sum(int, int)::Local::run()", "sum::Local::run"),
            (
                "ns::outer(std::function<void (int)>, char) const &::{lambda(int)#1}::operator()(int) const",
                "ns::outer::{lambda(int)#1}::operator()",
            ),
            ("größer(int)::{lambda()#1}::größte()", "größer::{lambda()#1}::größte"),
            ("broken(int", "broken"),
            (".run()V", ".run"),
            ("plain", "plain"),
            ("", ""),
        ] {
            assert_eq!(without_parameters(text), name);
        }
    }

    #[test]
    fn classes_of_java_lose_their_mark() {
        assert_eq!(java("Ljava/io/PrintStream;::print"), "java/io/PrintStream;::print");
        assert_eq!(java("LBusy;::main"), "LBusy;::main");
    }

    #[test]
    fn names_of_rust_are_those_of_its_source() {
        for (text, name) in [
            ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
            ("_$LT$T$u20$as$u20$Into$GT$::into::h0123456789abcdef", "<T as Into>::into"),
            ("alloc..vec..Vec$LT$u8$GT$::push::h0123456789abcdef", "alloc::vec::Vec<u8>::push"),
            ("a::$u7b$$u7b$closure$u7d$$u7d$::h0123456789abcdef", "a::{{closure}}"),
            ("C::h12", "C::h12"),
        ] {
            assert_eq!(rust(text), name);
        }
    }
}
