//! The one place where names from outside are made safe to show.
//!
//! Function names, paths, thread names and messages come from files that anybody may have written.
//! Every format takes them as [`Label`]s, and a label can only be made here: without control
//! characters (a terminal's escape sequences, line breaks), without characters that change the
//! direction of writing or cannot be seen, and of bounded length. What a single format must still
//! escape (quotes, `<`, `;`) depends on the format and is done where it is written.

mod short_name;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub use short_name::ShortNames;

/// The longest label in bytes. Longer names (some C++ templates, hostile files) lose their middle.
pub const MAX_LABEL_BYTES: usize = 4096;
const ELLIPSIS: &str = "…";

/// A text that is safe to show: one line, visible characters only, bounded length, never empty.
///
/// Reports have each of them in many places: copies share it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(Arc<str>);

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Label {
    /// Makes a text safe to show.
    pub fn new(text: &str) -> Self {
        let text = if text.len() > MAX_LABEL_BYTES { cut_middle(text) } else { Cow::Borrowed(text) };
        let text = match visible(&text) {
            // Escapes are longer than what they stand for.
            Cow::Owned(text) if text.len() > MAX_LABEL_BYTES => cut_middle(&text).into_owned(),
            text => text.into_owned(),
        };
        if text.trim().is_empty() {
            return Self("[no name]".into());
        }
        Self(text.into())
    }

    /// The same of a text that others have as well, which is shared where it is safe as it is.
    pub fn shared(text: &Arc<str>) -> Self {
        let is_safe = text.len() <= MAX_LABEL_BYTES && matches!(visible(text), Cow::Borrowed(_));
        if is_safe && !text.trim().is_empty() { Self(Arc::clone(text)) } else { Self::new(text) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part of a path; what is no absolute path (`[vdso]`, `//anon`) stays as it is.
    pub fn file_name(&self) -> &str {
        if !self.0.starts_with('/') || self.0.starts_with("//") {
            return &self.0;
        }
        self.0.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&self.0)
    }

    /// A module in few columns, as reports call it: the name of its file, and `[kernel]` for `[kernel.kallsyms]`.
    pub fn module_name(&self) -> &str {
        match self.file_name() {
            name if name.starts_with("[kernel.") => "[kernel]",
            name => name,
        }
    }

    /// The text as the name of a frame in a folded stack, where `;` parts frames and the number
    /// after the last space is the weight.
    pub fn folded(&self) -> Cow<'_, str> {
        let text = self.0.trim();
        let number_at_end = text.rsplit_once(' ').is_some_and(|(_, tail)| is_number(tail));
        // inferno takes such an ending for its own mark of a kernel, inlined or compiled frame.
        let mark_at_end = text.len() >= 4
            && text.ends_with(']')
            && text.get(text.len() - 4..).is_some_and(|end| end.starts_with("_["));
        if !text.contains(';') && !number_at_end && !mark_at_end && !text.starts_with('#') {
            return Cow::Borrowed(text);
        }
        let mut safe = text.replace(';', ":");
        if number_at_end && let Some(space) = safe.rfind(' ') {
            safe.replace_range(space..=space, "_");
        }
        if mark_at_end {
            safe.insert(safe.len() - 3, ' ');
        }
        if safe.starts_with('#') {
            safe.insert(0, '_');
        }
        Cow::Owned(safe)
    }

    /// The text as a cell of a CSV file: a spreadsheet would run a cell that starts like a formula.
    pub fn csv(&self) -> Cow<'_, str> {
        if self.0.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
            return Cow::Owned(format!("'{}", self.0));
        }
        Cow::Borrowed(&self.0)
    }

    /// The text in at most `columns` columns of a terminal, shortened in the middle: the start of a
    /// name tells where it belongs, its end what it is.
    pub fn shortened(&self, columns: usize) -> Cow<'_, str> {
        if self.0.width() <= columns {
            return Cow::Borrowed(&self.0);
        }
        let room = columns.saturating_sub(1);
        let tail = take_columns(self.0.chars().rev(), room / 2);
        let tail: String = tail.chars().rev().collect();
        let head = take_columns(self.0.chars(), room - tail.width());
        Cow::Owned(if columns == 0 { String::new() } else { format!("{head}{ELLIPSIS}{tail}") })
    }
}

impl Label {
    /// The text in at most `columns` columns of a terminal, shortened at the start: the end of a path
    /// tells more than its start.
    pub fn end_of(&self, columns: usize) -> Cow<'_, str> {
        if self.0.width() <= columns {
            return Cow::Borrowed(&self.0);
        }
        let tail = take_columns(self.0.chars().rev(), columns.saturating_sub(1));
        let tail: String = tail.chars().rev().collect();
        Cow::Owned(if columns == 0 { String::new() } else { format!("{ELLIPSIS}{tail}") })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Pads a text to `columns` columns of a terminal.
pub fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

fn take_columns(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    chars
        .take_while(|c| match left.checked_sub(c.width().unwrap_or(0)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
        .collect()
}

/// A text as a shell takes it for one word: in quotes, unless it is plain.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%".contains(c);
    let all_plain = !text.is_empty() && text.chars().all(is_plain);
    if all_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Replaces what cannot be seen, or acts instead of being seen, by a visible escape.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// The same for text of several lines.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c != '\n' && is_unsafe(c)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split('\n').map(visible).collect::<Vec<_>>().join("\n"))
}

/// Control characters, marks of direction, invisible characters, line and paragraph separators, and
/// the code points that XML 1.0 forbids.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fdd0}'..='\u{fdef}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// Keeps the start and the end of a text that is too long.
fn cut_middle(text: &str) -> Cow<'_, str> {
    let half = (MAX_LABEL_BYTES - ELLIPSIS.len()) / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len() - half);
    Cow::Owned(format!("{}{ELLIPSIS}{}", &text[..head], &text[tail..]))
}

/// What inferno takes for the weight at the end of a folded stack.
fn is_number(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for name in ["main", "std::vec::Vec<T>::push", "operator<<(std::ostream&, Größe)", "[vdso]", "日本"]
        {
            assert_eq!(Label::new(name).as_str(), name);
        }
    }

    #[test]
    fn what_acts_is_made_visible() {
        assert_eq!(Label::new("a\x1b[31mb").as_str(), r"a\u{1b}[31mb");
        assert_eq!(Label::new("a\nb\r\tc").as_str(), r"a\u{a}b\u{d}\u{9}c");
        assert_eq!(Label::new("user\u{202e}txt.exe").as_str(), r"user\u{202e}txt.exe");
        assert_eq!(Label::new("\u{9b}31m").as_str(), r"\u{9b}31m");
        assert_eq!(Label::new(" ").as_str(), "[no name]");
        assert_eq!(visible_lines("a\nb\x1b[31m\n"), "a\nb\\u{1b}[31m\n");
    }

    #[test]
    fn a_shared_text_is_shared_where_it_is_safe() {
        let shared = |text: &str| {
            let text: Arc<str> = text.into();
            let label = Label::shared(&text);
            assert_eq!(label, Label::new(&text));
            Arc::ptr_eq(&text, &label.0)
        };
        assert!(shared("main") && shared("Größe"));
        assert!(!shared("a\x1b[31mb") && !shared(" ") && !shared(&"é".repeat(50_000)));
    }

    #[test]
    fn long_names_keep_both_ends() {
        let label = Label::new(&format!("start{}end", "é".repeat(50_000)));
        assert!(label.as_str().len() <= MAX_LABEL_BYTES);
        assert!(label.as_str().starts_with("start") && label.as_str().ends_with("end"));
        let escaped = Label::new(&"\u{1b}".repeat(MAX_LABEL_BYTES));
        assert!(escaped.as_str().len() <= MAX_LABEL_BYTES);
    }

    #[test]
    fn the_last_part_of_a_path() {
        let name = |path| Label::new(path).file_name().to_owned();
        assert_eq!(name("/usr/lib/libz.so.1"), "libz.so.1");
        assert_eq!(name("/usr/lib/"), "lib");
        assert_eq!([name("//anon"), name("[vdso]"), name("/")], ["//anon", "[vdso]", "/"]);
        // As reports call modules: what is no file of a folder by its whole name, a file that is gone as such.
        let module = |path| Label::new(path).module_name().to_owned();
        for (path, called) in [
            ("[vdso]", "[vdso]"),
            ("//anon", "//anon"),
            ("[anon]", "[anon]"),
            ("[anon:v8/code]", "[anon:v8/code]"),
            ("/tmp/build/app (deleted)", "app (deleted)"),
            ("/memfd:jit (deleted)", "memfd:jit (deleted)"),
            ("[kernel.kallsyms]", "[kernel]"),
            ("[nf_conntrack]", "[nf_conntrack]"),
            ("/lib/modules/6.1/kernel/fs/ext4.ko.xz", "ext4.ko.xz"),
        ] {
            assert_eq!(module(path), called);
        }
    }

    #[test]
    fn shortened_in_the_middle_by_columns() {
        assert_eq!(Label::new("compress_block").shortened(14), "compress_block");
        assert_eq!(Label::new("compress_block").shortened(9), "comp…lock");
        assert_eq!(Label::new("日本語日本語").shortened(6), "日…語");
        assert_eq!(Label::new("abc").shortened(0), "");
        assert_eq!(Label::new("/src/lib/file.c:12").end_of(10), "…file.c:12");
        assert_eq!(padded("日本", 6), "日本  ");
    }

    #[test]
    fn folded_names_hold_no_separator_and_no_weight() {
        assert_eq!(Label::new("[u8; 8]::len").folded(), "[u8: 8]::len");
        assert_eq!(Label::new("foo 12").folded(), "foo_12");
        assert_eq!(Label::new("foo 1 2").folded(), "foo 1_2");
        assert_eq!(Label::new("# comment").folded(), "_# comment");
        assert_eq!(Label::new("evil_[k]").folded(), "evil_ [k]");
        assert_eq!(Label::new("foo(int, char)").folded(), "foo(int, char)");
    }

    #[test]
    fn csv_cells_are_no_formulas() {
        assert_eq!(Label::new("=HYPERLINK(1)").csv(), "'=HYPERLINK(1)");
        assert_eq!(Label::new("-[NSObject init]").csv(), "'-[NSObject init]");
        assert_eq!(Label::new("a=b").csv(), "a=b");
    }

    proptest! {
        #[test]
        fn labels_are_short_single_visible_lines(text in any::<String>()) {
            let label = Label::new(&text);
            prop_assert!(!label.as_str().trim().is_empty());
            prop_assert!(label.as_str().len() <= MAX_LABEL_BYTES);
            prop_assert!(!label.as_str().chars().any(is_unsafe));
            prop_assert_eq!(Label::new(label.as_str()), label);
        }

        #[test]
        fn shortening_keeps_to_the_width(text in any::<String>(), columns in 0usize..60) {
            prop_assert!(Label::new(&text).shortened(columns).width() <= columns);
            prop_assert!(Label::new(&text).end_of(columns).width() <= columns);
        }

        #[test]
        fn a_folded_name_is_one_frame(text in any::<String>()) {
            let label = Label::new(&text);
            let name = label.folded();
            prop_assert!(!name.contains(';') && !name.is_empty() && !name.starts_with("# "));
            prop_assert_eq!(name.trim(), &*name);
            prop_assert!(name.rsplit_once(' ').is_none_or(|(_, tail)| !is_number(tail)));
        }
    }

    #[test]
    fn a_word_of_a_shell_is_quoted_where_it_must_be() {
        assert_eq!(shell_word("run/77-1.data"), "run/77-1.data");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
