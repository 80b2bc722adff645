//! A text as rows of cells.

use super::marks::Marks;
use super::number::Number;
use super::record::{self, behind_line_end, line_end};
use super::separator::Separator;

/// So many lines tell what stands between the cells of all.
const TELLING_LINES: usize = 40;

/// All cells of a table, the heading among them.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    separator: Separator,
    /// The cells one after another, and where each of them ends.
    text: String,
    ends: Vec<usize>,
    rows: Vec<Span>,
}

/// Cells of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    line: usize,
    first: usize,
    count: usize,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    grid: &'a Grid,
    span: Span,
}

/// A line that begins with `#`.
struct Comment {
    line: usize,
    start: usize,
}

impl Grid {
    /// Reads a text. Lines without any cell are left out, and so are comments, but for one that names
    /// the columns of a table that has no other line for that, and where all rows begin with `#`.
    pub fn read(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let separator = Separator::of(&telling_lines(text));
        let mut grid = Self { separator, text: String::new(), ends: Vec::new(), rows: Vec::new() };
        let comments = grid.take_rows(text);
        grid.drop_title_lines();
        grid.take_heading_of_comments(text, &comments);
        if grid.rows.len() <= 1 {
            grid.take_comments_as_rows(text, &comments);
        }
        grid
    }

    /// What stands between the cells.
    pub fn separator(&self) -> Separator {
        self.separator
    }

    /// How marks are read that nothing else tells about.
    pub fn default_marks(&self) -> Marks {
        if self.separator == Separator::Character(',') { Marks::ENGLISH } else { Marks::UNTOLD }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// There is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A row, counted from 0.
    pub fn row(&self, index: usize) -> Option<Row<'_>> {
        self.rows.get(index).map(|span| Row { grid: self, span: *span })
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|span| Row { grid: self, span: *span })
    }

    /// The rows that are no comments; the comments.
    fn take_rows(&mut self, text: &str) -> Vec<Comment> {
        let mut comments = Vec::new();
        let (mut at, mut line) = (0, 1);
        while at < text.len() {
            let rest = text[at..].trim_start_matches([' ', '\t']);
            let next = if rest.starts_with('#') {
                comments.push(Comment { line, start: text.len() - rest.len() });
                behind_line_end(text, line_end(text, at))
            } else {
                self.take_row(text, at, line)
            };
            line += lines_between(text, at, next);
            at = next;
        }
        comments
    }

    /// Adds the row that begins at `start`, unless all its cells are empty. Returns where the next begins.
    fn take_row(&mut self, text: &str, start: usize, line: usize) -> usize {
        let (first, length) = (self.ends.len(), self.text.len());
        let next = record::read(text, start, self.separator, |cell| {
            self.text.push_str(cell);
            self.ends.push(self.text.len());
        });
        let count = self.ends.len() - first;
        if self.text.len() == length {
            self.ends.truncate(first);
        } else {
            self.rows.push(Span { line, first, count });
        }
        next
    }

    /// Titles above a table: lines of a single cell that is no number, where the next has more.
    fn drop_title_lines(&mut self) {
        let is_title = |row: &Row<'_>| row.len() == 1 && row.numbers() == 0;
        let titles = self.rows().take(TELLING_LINES).take_while(is_title).count();
        if matches!(self.separator, Separator::Character(_))
            && self.rows.get(titles).is_some_and(|row| row.count > 1)
        {
            self.rows.drain(..titles);
        }
    }

    /// Where nothing but a heading is left, `#` was the beginning of cells.
    fn take_comments_as_rows(&mut self, text: &str, comments: &[Comment]) {
        let heading = self.rows.first().copied();
        for comment in comments {
            let is_heading = self.rows.is_empty();
            let start = if is_heading { behind_signs(text, comment.start) } else { comment.start };
            self.take_row(text, start, comment.line);
            if let (Some(heading), Some(row)) = (heading, self.rows.last())
                && (row.count != heading.count || row.line < heading.line)
                && self.rows.len() > 1
            {
                self.rows.pop();
            }
        }
    }

    /// A table whose first row holds numbers has its names in a comment above, if there is one with as
    /// many cells, or at least one of several where the row holds nothing else.
    fn take_heading_of_comments(&mut self, text: &str, comments: &[Comment]) {
        let Some(first) = self.row(0) else { return };
        let (line, cells, filled) = (first.span.line, first.len(), first.filled());
        let numbers = first.numbers();
        if numbers == 0 {
            return;
        }
        let is_bare = numbers == first.cells().filter(|cell| !cell.is_empty()).count();
        let mut fallback = None;
        for comment in comments.iter().rev().filter(|comment| comment.line < line) {
            self.take_row(text, behind_signs(text, comment.start), comment.line);
            if self.rows.last().is_none_or(|row| row.line != comment.line) {
                continue;
            }
            let Some(span) = self.rows.pop() else { continue };
            let names = Row { grid: self, span };
            if names.numbers() > 0 {
                continue;
            }
            if names.len() == cells || names.filled() == filled {
                self.rows.insert(0, span);
                return;
            }
            if is_bare && names.filled() > 1 && fallback.is_none() {
                fallback = Some(span);
            }
        }
        if let Some(span) = fallback {
            self.rows.insert(0, span);
        }
    }
}

impl<'a> Row<'a> {
    /// Its line in the text, from 1.
    pub fn line(&self) -> usize {
        self.span.line
    }

    /// Number of its cells.
    pub fn len(&self) -> usize {
        self.span.count
    }

    /// It has no cell; no row of a [`Grid`] is like that.
    pub fn is_empty(&self) -> bool {
        self.span.count == 0
    }

    /// A cell, counted from 0; empty behind the row's end.
    pub fn cell(&self, column: usize) -> &'a str {
        if column >= self.span.count {
            return "";
        }
        let at = self.span.first + column;
        let start = if at == 0 { 0 } else { self.grid.ends[at - 1] };
        &self.grid.text[start..self.grid.ends[at]]
    }

    /// All cells.
    pub fn cells(self) -> impl Iterator<Item = &'a str> {
        (0..self.span.count).map(move |column| self.cell(column))
    }

    /// Number of cells up to the last that is not empty.
    pub(super) fn filled(&self) -> usize {
        (0..self.span.count).rev().find(|column| !self.cell(*column).is_empty()).map_or(0, |last| last + 1)
    }

    fn numbers(&self) -> usize {
        self.cells().filter(|cell| Number::read(cell, Marks::ENGLISH).is_some()).count()
    }
}

/// The first lines that are no comments; the first comments if there are no others.
fn telling_lines(text: &str) -> String {
    let is_blank = |line: &&str| !line.trim().is_empty();
    let is_comment = |line: &&str| line.trim_start().starts_with('#');
    let lines = || text.split(['\n', '\r']).filter(is_blank);
    let told = |lines: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        lines.take(TELLING_LINES).map(str::to_owned).collect()
    };
    let rows = told(&mut lines().filter(|line| !is_comment(line)));
    if rows.len() > 1 {
        return rows.join("\n");
    }
    rows.into_iter().chain(told(&mut lines().filter(is_comment))).collect::<Vec<_>>().join("\n")
}

/// Where a comment's text begins.
fn behind_signs(text: &str, start: usize) -> usize {
    text.len() - text[start..].trim_start_matches('#').len()
}

fn lines_between(text: &str, from: usize, to: usize) -> usize {
    let part = &text.as_bytes()[from..to];
    let ends = part.iter().enumerate().filter(|(at, byte)| match byte {
        b'\n' => true,
        b'\r' => part.get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    ends.count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str) -> Vec<String> {
        let grid = Grid::read(text);
        grid.rows()
            .map(|row| format!("{}:{}", row.line(), row.cells().collect::<Vec<_>>().join("|")))
            .collect()
    }

    #[test]
    fn rows_know_their_lines() {
        assert_eq!(rows("\u{feff}a,b\r\n\r\n1,2\r\n , \r\n3,4"), ["1:a|b", "3:1|2", "5:3|4"]);
        assert_eq!(rows("a,b\n\"x\ny\",2\n3,4\n"), ["1:a|b", "2:x\ny|2", "4:3|4"]);
        assert_eq!(rows("a\tb\r1\t2\r"), ["1:a|b", "2:1|2"]);
        assert!(rows("").is_empty() && rows("\n \n").is_empty());
    }

    #[test]
    fn comments_are_no_rows() {
        assert_eq!(rows("# made, by, hand\na,b\n1,2\n#3,4\n5,6\n"), ["2:a|b", "3:1|2", "5:5|6"]);
        assert_eq!(rows("a,b\n\"#1\",2\n3,4\n"), ["1:a|b", "2:#1|2", "3:3|4"]);
        // But for one that names the columns,
        assert_eq!(rows("# by hand\n#a;b;\n1;2;\n3;4;\n"), ["2:a|b|", "3:1|2|", "4:3|4|"]);
        assert_eq!(rows("#a;b;c\n1;2;3\n"), ["1:a|b|c", "2:1|2|3"]);
        assert_eq!(rows("#time power\n0.1 30\n0.2 31\n"), ["1:time|power", "2:0.1|30", "3:0.2|31"]);
        // and where all begin so.
        assert_eq!(rows("id,b\n#1,2\n#3,4\n# end\n"), ["1:id|b", "2:#1|2", "3:#3|4"]);
        assert_eq!(rows("#id,b\n#1,2\n"), ["1:id|b", "2:#1|2"]);
    }

    #[test]
    fn titles_are_no_rows() {
        assert_eq!(rows("Runs of today\n\na,b\n1,2\n"), ["3:a|b", "4:1|2"]);
        assert_eq!(rows("times\n1\n2\n"), ["1:times", "2:1", "3:2"]);
        assert_eq!(rows("0.1\n0.2,on\n"), ["1:0.1", "2:0.2|on"]);
    }

    #[test]
    fn cells_behind_a_rows_end_are_empty() {
        let grid = Grid::read("a,b,c\n1,,\n2\n");
        let row = grid.row(2).expect("a row");
        assert_eq!((row.len(), row.cell(0), row.cell(1), row.cell(99)), (1, "2", "", ""));
        assert_eq!(grid.row(1).map(|row| row.filled()), Some(1));
        assert!(grid.row(3).is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_a_grid(text in "[a-z0-9#,;\"\n\r\t |é.-]{0,80}") {
            let grid = Grid::read(&text);
            let lines = text.matches(['\n', '\r']).count() + 1;
            for row in grid.rows() {
                prop_assert!(!row.is_empty() && row.line() <= lines);
                prop_assert!(row.filled() > 0);
            }
        }
    }
}
