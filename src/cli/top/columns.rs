//! The columns of rows, as many and as wide as there is room for.

use eprof::label::{Label, padded};

use super::history::{Order, Shown};
use super::rows::By;
use super::so_far::Since;

/// Columns before names: watts, their error, joules and share; in narrow terminals watts and share alone.
const NUMBERS: usize = 10 + 1 + 9 + 1 + 12 + 1 + 7 + 2;
const NARROW_NUMBERS: usize = 8 + 1 + 6 + 2;
/// Names have room for so many letters, or there are fewer columns.
const FEWEST_LETTERS: usize = 20;
/// Where there is room for more than so many, modules stand beside names.
const WITH_MODULES: usize = 40;
/// Letters of names beside modules where there is no end of room.
const NAME: usize = 44;

/// How wide each column is.
#[derive(Debug, Clone, Copy)]
pub struct Columns {
    is_narrow: bool,
    name: usize,
    /// `None` without such a column.
    module: Option<usize>,
}

impl Columns {
    /// For these rows, in lines of so many columns; `usize::MAX` where they never end.
    pub fn new(rows: &[Shown], width: usize) -> Self {
        let is_narrow = width < NUMBERS + FEWEST_LETTERS;
        let room = width.saturating_sub(if is_narrow { NARROW_NUMBERS } else { NUMBERS }).max(1);
        let has_modules = rows.iter().any(|row| row.key.module.is_some()) && room > WITH_MODULES;
        let (name, module) = match has_modules {
            false => (room, None),
            true if width == usize::MAX => (NAME, Some(usize::MAX)),
            true => (room * 3 / 5, Some((room * 2 / 5).saturating_sub(1))),
        };
        Self { is_narrow, name, module }
    }

    /// The room of names.
    pub fn name(&self) -> usize {
        self.name
    }

    /// What stands above the rows.
    pub fn title(&self, by: By, order: Order, since: Since) -> String {
        let [watts, joules] = match (order, since) {
            (Order::Total, Since::Start) => ["TOTAL W".to_owned(), "TOTAL SO FAR".to_owned()],
            (Order::Total, Since::Last(seconds)) => {
                ["TOTAL W".to_owned(), format!("TOT {}", in_time(seconds))]
            }
            (_, Since::Start) => ["WATTS".to_owned(), "J SO FAR".to_owned()],
            (_, Since::Last(seconds)) => ["WATTS".to_owned(), format!("J {}", in_time(seconds))],
        };
        let module = if self.module.is_some() { "MODULE" } else { "" };
        self.line([&watts, "±", &joules, "SHARE"], &by.name().to_uppercase(), module)
    }

    /// A row, under such a name.
    pub fn row(&self, row: &Shown, name: &str, order: Order) -> String {
        // What a row's own error says nothing of has none.
        let (watts, error, joules, share) = match order {
            Order::Total => (row.total_watts, "-".to_owned(), row.total_joules, row.total_share),
            _ => (row.watts, format!("{:.3}", row.error), row.joules, row.share),
        };
        let [watts, joules, share] =
            [format!("{watts:.3}"), format!("{joules:.3}"), format!("{:.1}%", share * 100.0)];
        let module = Label::new(row.module_name());
        let module = self.module.map(|room| module.short_name(room)).unwrap_or_default();
        self.line([&watts, &error, &joules, &share], name, &module)
    }

    fn line(&self, [watts, error, joules, share]: [&str; 4], name: &str, module: &str) -> String {
        let numbers = match self.is_narrow {
            true => format!("{watts:>8} {share:>6}"),
            false => format!("{watts:>10} {error:>9} {joules:>12} {share:>7}"),
        };
        match self.module {
            None => format!("{numbers}  {name}"),
            Some(_) => format!("{numbers}  {} {module}", padded(name, self.name)),
        }
    }
}

/// `IN 9.8 s`, in at most eight letters for a day.
fn in_time(seconds: f64) -> String {
    if seconds < 99.95 { format!("IN {seconds:.1} s") } else { format!("IN {seconds:.0}s") }
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::picture;
    use super::*;

    #[test]
    fn columns_fit_their_room() {
        let mut rows = picture(&[("a_function_of_a_rather_long_name", 7.5, 100.0)]).rows;
        let lines = |rows: &[Shown], width| {
            let columns = Columns::new(rows, width);
            let name = Label::new(rows[0].key.name.as_str());
            let name = name.short_name(columns.name()).into_owned();
            [
                columns.title(By::Function, Order::Watts, Since::Start),
                columns.row(&rows[0], &name, Order::Watts),
            ]
        };
        let names_alone = lines(&rows, 80);
        assert_eq!(names_alone[0], "     WATTS         ±     J SO FAR   SHARE  FUNCTION");
        assert_eq!(
            names_alone[1],
            "     7.500     0.100      100.000   75.0%  a_function_of_a_rather_long_name"
        );
        rows[0].key.module =
            Some(Label::new("/usr/lib/a/module/of/a/rather/long/path/libnumbers-and-more.so.1"));
        for width in [20, 30, 63, 80, 84, 90, 120, 200] {
            for line in lines(&rows, width) {
                assert!(line.chars().count() <= width.max(30), "{width}: {line}");
            }
        }
        assert!(!lines(&rows, 80)[0].contains("MODULE"));
        let endless = lines(&rows, usize::MAX);
        assert!(
            endless[0].ends_with(" MODULE") && endless[1].ends_with(" libnumbers-and-more.so.1"),
            "{endless:?}"
        );
    }

    #[test]
    fn joules_of_less_than_all_say_so() {
        let columns = Columns::new(&[], 80);
        let title = |order, seconds| columns.title(By::Line, order, Since::Last(seconds));
        assert_eq!(title(Order::Watts, 9.84), "     WATTS         ±   J IN 9.8 s   SHARE  LINE");
        assert_eq!(title(Order::Joules, 86_400.0), "     WATTS         ±  J IN 86400s   SHARE  LINE");
        assert_eq!(title(Order::Total, 99.96), "   TOTAL W         ±  TOT IN 100s   SHARE  LINE");
    }
}
