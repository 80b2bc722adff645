//! Which separator a table has, as its first lines tell.

use super::marks::Marks;
use super::number::Number;
use super::record;
use super::separator::Separator;

impl Separator {
    /// The one that fits the first lines of a text best.
    pub(super) fn of(lines: &str) -> Self {
        let mut best = (Self::Character(','), Fit::NONE);
        let tabs = Fit::of(lines, Self::Character('\t'));
        for separator in Self::ALL {
            let fit = Fit::of(lines, separator);
            let (score, best_score) = (fit.score(), best.1.score());
            let is_better = match separator {
                Self::Character(_) => score > best_score || (score == best_score && fit.cells > best.1.cells),
                // A tab is a blank, too, but not if lines have as many of them.
                _ if tabs.cells > 1 && tabs.agreement >= fit.agreement => false,
                Self::Blanks => score > best_score,
                // Words fall apart into ever smaller ones: only if that brings lines into agreement.
                Self::Words | Self::Gaps => score > best_score && fit.agreement > best.1.agreement,
            };
            if is_better {
                best = (separator, fit);
            }
        }
        best.0
    }
}

/// How well a separator fits.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fit {
    /// Share of the lines that have the usual number of cells.
    agreement: f64,
    /// Share of the cells below the first line that are numbers.
    numbers: f64,
    /// The usual number of cells.
    cells: usize,
    /// Whether the first line has it too.
    first_agrees: bool,
}

impl Fit {
    const NONE: Self = Self { agreement: 0.0, numbers: 0.0, cells: 0, first_agrees: false };

    fn of(lines: &str, separator: Separator) -> Self {
        let mut counts: Vec<usize> = Vec::new();
        let (mut numbers, mut cells) = (0, 0);
        let mut at = 0;
        while at < lines.len() {
            let (mut count, mut filled, mut is_cut) = (0, 0, false);
            let is_below = !counts.is_empty();
            at = record::read(lines, at, separator, |cell| {
                count += 1;
                is_cut |= is_cut_quote(cell);
                if !cell.is_empty() {
                    filled = count;
                    cells += usize::from(is_below);
                    numbers += usize::from(is_below && Number::read(cell, Marks::ENGLISH).is_some());
                }
            });
            match filled {
                0 => {}
                // Such a line agrees with no other.
                _ if is_cut => counts.push(0),
                // A separator at the end of some lines separates nothing.
                _ => counts.push(if count == filled + 1 { filled } else { count }),
            }
        }
        let usual = usual(&counts);
        let agreeing = counts.iter().filter(|count| **count == usual && usual > 0).count();
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        Self {
            agreement: share(agreeing, counts.len()),
            numbers: share(numbers, cells),
            cells: usual,
            first_agrees: usual > 1 && counts.first() == Some(&usual),
        }
    }

    /// Lines that agree in their number of cells, above all with the one that names the columns, and cells
    /// that are numbers. A single cell in a line is what every separator finds that does not occur.
    fn score(&self) -> f64 {
        const TEXT_ALONE: f64 = 0.2;
        const SINGLE_CELL: f64 = 0.5;
        const AS_THE_FIRST: f64 = 1.5;
        let cells = match (self.cells > 1, self.first_agrees) {
            (true, true) => AS_THE_FIRST,
            (true, false) => 1.0,
            (false, _) => SINGLE_CELL,
        };
        self.agreement * (TEXT_ALONE + self.numbers) * cells
    }
}

/// Whether a cell begins with words in quotes and ends within one: its separator stands in the quotes of
/// what another separates, as the comma in `"counter 0" "f(x, y)" power`.
fn is_cut_quote(cell: &str) -> bool {
    cell.starts_with('"') && cell.contains(' ') && cell.matches('"').count() % 2 == 1
}

/// The number that occurs most often; of two the larger.
fn usual(counts: &[usize]) -> usize {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|a, b| a == b);
    runs.max_by_key(|run| run.len()).and_then(|run| run.first()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_tell() {
        use Separator::{Blanks, Character, Gaps, Words};
        for (lines, expected) in [
            ("a,b\n1,2\n", Character(',')),
            ("a;b;\n1;2;\n", Character(';')),
            ("a\tb\n1\t2\n", Character('\t')),
            ("a|b\n1|2\n", Character('|')),
            ("a\n1\n", Character('\t')),
            ("", Character(',')),
            // Other separators within cells.
            ("time, s\tpower, W\n0,1\t30,5\n0,2\t31,5\n", Character('\t')),
            ("time;power\n0,1;30,5\n0,2;31,5\n", Character(';')),
            ("name|id,power,time\na|1,2,3\nb|2,3,4\n", Character(',')),
            ("kernel,power\n\"f(a, b)\",2\n\"g(a)\",3\n", Character(',')),
            ("timestamp, power.draw [W]\n2023/08/24 22:18:34.203, 34.63 W\n", Character(',')),
            ("2023/08/24 22:18:34.203, 34.63 W\n2023/08/24 22:18:34.3, 34.63 W\n", Character(',')),
            ("1,0\t10\t\tcycles\n1,0\t7,5\tJoules\tpkg\n", Character('\t')),
            // Blanks.
            ("time power\n0,1 30,5\n0,2 31,5\n", Blanks),
            ("0,100 30,0\n0,115 31,5\n", Blanks),
            ("time [s]  power [mW]\n0.1  30000\n0.2 30000\n", Blanks),
            ("threads lang time\n4 s 10\n8 h 20\n", Words),
            ("core clock   power draw\n1200         30.5\n1300         31.5\n", Gaps),
            ("time  power,W\n0.1 30\n0.2 31\n", Blanks),
            // A comma within quotes, and as many in each line.
            ("\"counter 0\" \"f(x, y)\" told\nnan kernel 0,5\n0 kernel 0,5\n", Blanks),
            ("\"a, b\",\"c d\"\n1,2\n", Character(',')),
            ("name kind of power\na b c 0,1\na b c 0,2\n", Blanks),
        ] {
            assert_eq!(Separator::of(lines), expected, "{lines}");
        }
    }
}
