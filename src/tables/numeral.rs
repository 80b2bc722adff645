//! The digits of a number and the marks between them.

use super::marks::Marks;

/// Which of the two marks separates the fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Comma,
    Point,
}

impl Mark {
    const fn sign(self) -> char {
        match self {
            Self::Comma => ',',
            Self::Point => '.',
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Comma => Self::Point,
            Self::Point => Self::Comma,
        }
    }
}

/// What the marks in a numeral tell about which of them separates its fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// There are none.
    Nothing,
    /// This one separates the fraction, or would if there were one.
    Decimal(Mark),
    /// This one stands once before three digits: either it separates the fraction or thousands.
    Either(Mark),
}

/// The digits of an unsigned number with the marks between them, and its exponent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numeral<'a> {
    /// All of it.
    pub(super) text: &'a str,
    mantissa: &'a str,
}

/// Signs that only ever set thousands apart.
fn is_gap(c: char) -> bool {
    matches!(c, ' ' | '\'' | '\u{2019}' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

impl<'a> Numeral<'a> {
    /// The longest numeral that the text begins with.
    pub(super) fn before(text: &'a str) -> Option<Self> {
        let mut end = 0;
        let mut has_digit = false;
        for (at, c) in text.char_indices() {
            let next_is_digit = || text[at + c.len_utf8()..].starts_with(|next: char| next.is_ascii_digit());
            match c {
                '0'..='9' => {
                    has_digit = true;
                    end = at + 1;
                }
                '.' => end = at + 1,
                ',' if next_is_digit() => end = at + 1,
                _ if is_gap(c) && has_digit && next_is_digit() => {}
                _ => break,
            }
        }
        if !has_digit {
            return None;
        }
        let mantissa = &text[..end];
        let exponent = exponent_length(&text[end..]);
        Some(Self { text: &text[..end + exponent], mantissa })
    }

    /// What its marks tell.
    pub(super) fn told(&self) -> Told {
        let marks = |mark: Mark| self.mantissa.matches(mark.sign()).count();
        match (marks(Mark::Comma), marks(Mark::Point)) {
            (0, 0) => Told::Nothing,
            (0, 1) => self.single(Mark::Point),
            (1, 0) => self.single(Mark::Comma),
            // Several of one kind set thousands apart.
            (0, _) => Told::Decimal(Mark::Comma),
            (_, 0) => Told::Decimal(Mark::Point),
            // Of both kinds the last one separates the fraction.
            _ => {
                let last = self.mantissa.rfind([',', '.']).map(|at| &self.mantissa[at..=at]);
                Told::Decimal(if last == Some(",") { Mark::Comma } else { Mark::Point })
            }
        }
    }

    fn single(&self, mark: Mark) -> Told {
        let has_exponent = self.text.len() > self.mantissa.len();
        let could_be_thousands = !has_exponent
            && self.mantissa.split_once(mark.sign()).is_some_and(|(whole, part)| {
                part.len() == 3 && matches!(whole.len(), 1..=3) && !whole.starts_with('0')
            });
        if could_be_thousands { Told::Either(mark) } else { Told::Decimal(mark) }
    }

    /// Its value; `None` if the marks stand where no numeral has them.
    pub(super) fn value(&self, marks: Marks) -> Option<f64> {
        let decimal = match self.told() {
            Told::Nothing => Mark::Point,
            Told::Decimal(mark) => mark,
            Told::Either(Mark::Comma) if marks.comma_sets_thousands_apart => Mark::Point,
            Told::Either(Mark::Point) if marks.point_sets_thousands_apart => Mark::Comma,
            Told::Either(mark) => mark,
        };
        let plain = !self.mantissa.contains(|c| c == ',' || is_gap(c));
        if decimal == Mark::Point && plain {
            return self.text.parse().ok();
        }
        let (whole, part) = self.mantissa.split_once(decimal.sign()).unwrap_or((self.mantissa, ""));
        let digits_only = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits_only(part) || !are_thousands(whole, decimal.other()) {
            return None;
        }
        let mut text: String = whole.chars().filter(char::is_ascii_digit).collect();
        text.push('.');
        text += part;
        text += &self.text[self.mantissa.len()..];
        text.parse().ok()
    }
}

/// Length of `e-12` and the like.
fn exponent_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return 0 };
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 { 0 } else { text.len() - digits.len() + count }
}

/// Digits, of which groups of three may be set apart, all by the same sign: `mark` or a gap.
fn are_thousands(whole: &str, mark: Mark) -> bool {
    let is_sign = |c: char| c == mark.sign() || is_gap(c);
    let Some(sign) = whole.chars().find(|c| is_sign(*c)) else {
        return whole.bytes().all(|byte| byte.is_ascii_digit());
    };
    let mut groups = whole.split(sign);
    let is_group = |group: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_digit())
    };
    groups.next().is_some_and(|first| is_group(first, 1..=3)) && groups.all(|group| is_group(group, 3..=3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_what_they_are() {
        let told = |text: &str| Numeral::before(text).map(|numeral| (numeral.told(), numeral.text.len()));
        assert_eq!(told("1234 W"), Some((Told::Nothing, 4)));
        assert_eq!(told("1,234 W"), Some((Told::Either(Mark::Comma), 5)));
        assert_eq!(told("1.234"), Some((Told::Either(Mark::Point), 5)));
        assert_eq!(told("1,234e3"), Some((Told::Decimal(Mark::Comma), 7)));
        assert_eq!(told("0,234"), Some((Told::Decimal(Mark::Comma), 5)));
        assert_eq!(told("1,234,567"), Some((Told::Decimal(Mark::Point), 9)));
        assert_eq!(told("1.234,5"), Some((Told::Decimal(Mark::Comma), 7)));
        assert_eq!(told("1,234.5"), Some((Told::Decimal(Mark::Point), 7)));
        assert_eq!(told("1 234.5 W"), Some((Told::Decimal(Mark::Point), 7)));
        assert_eq!(told("12e"), Some((Told::Nothing, 2)));
        assert_eq!((told("W"), told("."), told("")), (None, None, None));
    }
}
