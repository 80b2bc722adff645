//! The state of the view: what is shown, selected and typed. It knows no terminal.

use eprof::label::Label;
use eprof::live::RowKey;
use eprof::report::Side;

use super::history::{Order, Picture, Shown, Span, sort};
use super::keys::Wish;

/// What is to be done with the windows, which the view does not have.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    Quit,
    Interrupt,
    /// Holds the picture, or goes on.
    Hold,
    NextBy,
    ZoomIn(RowKey),
    ZoomOut,
    Filter(String),
    Save,
    Neighbours(Side, RowKey),
}

/// Callers or callees of a function, with their watts.
pub type Neighbours = (Side, RowKey, Vec<(Label, f64)>);

/// A picture and the place in it.
#[derive(Debug)]
pub struct View {
    pub span: Span,
    pub order: Order,
    pub shows_help: bool,
    /// The filter as it is being typed.
    pub typed: Option<String>,
    /// What is said in the last line.
    pub message: String,
    /// The last line that the program wrote.
    pub output: Option<Label>,
    /// Callers or callees of a function, in place of the lower rows.
    pub neighbours: Option<Neighbours>,
    pub picture: Option<Picture>,
    /// The selected row, wherever it moves.
    selected: Option<RowKey>,
    /// Where it was, should it be gone.
    place: usize,
}

impl View {
    pub fn new() -> Self {
        Self {
            span: Span::Last,
            order: Order::Watts,
            shows_help: false,
            typed: None,
            message: String::new(),
            output: None,
            neighbours: None,
            picture: None,
            selected: None,
            place: 0,
        }
    }

    /// A new picture. The selected row stays selected where it now is; should it be gone, what is in its place.
    pub fn show(&mut self, picture: Picture) {
        self.picture = Some(picture);
        if let Some(at) = self.selected.as_ref().and_then(|key| self.position_of(key)) {
            self.place = at;
        }
    }

    pub fn rows(&self) -> &[Shown] {
        self.picture.as_ref().map_or(&[], |picture| &picture.rows)
    }

    /// The place of the selected row.
    pub fn place(&self) -> usize {
        self.place.min(self.rows().len().saturating_sub(1))
    }

    /// The selected row. Without a choice it is the first.
    pub fn selected(&self) -> Option<&Shown> {
        self.rows().get(self.place())
    }

    fn position_of(&self, key: &RowKey) -> Option<usize> {
        self.rows().iter().position(|row| row.key == *key)
    }

    fn select(&mut self, place: usize) {
        self.place = place.min(self.rows().len().saturating_sub(1));
        self.selected = self.selected().map(|row| row.key.clone());
    }

    /// Rows stand for something else now.
    pub fn forget_selection(&mut self) {
        (self.selected, self.place, self.neighbours) = (None, 0, None);
    }

    /// A letter of the filter.
    pub fn type_letter(&mut self, letter: char) {
        if let Some(typed) = &mut self.typed {
            typed.push(letter);
        }
    }

    pub fn untype(&mut self) {
        if let Some(typed) = &mut self.typed {
            typed.pop();
        }
    }

    /// The filter is typed.
    pub fn end_typing(&mut self) -> Option<Task> {
        self.typed.take().map(Task::Filter)
    }

    /// Does what concerns the view alone, and says what else is to be done.
    pub fn wish(&mut self, wish: Wish) -> Option<Task> {
        self.message.clear();
        if self.shows_help && wish != Wish::Interrupt {
            self.shows_help = false;
            return None;
        }
        match wish {
            Wish::Quit => return Some(Task::Quit),
            Wish::Interrupt => return Some(Task::Interrupt),
            Wish::Help => self.shows_help = true,
            Wish::Pause => return Some(Task::Hold),
            Wish::NextSort => {
                self.order = match self.order {
                    Order::Watts => Order::Total,
                    Order::Total => Order::Joules,
                    Order::Joules => Order::Name,
                    Order::Name => Order::Watts,
                };
                if let Some(picture) = &mut self.picture {
                    sort(&mut picture.rows, self.order);
                }
                if let Some(at) = self.selected.as_ref().and_then(|key| self.position_of(key)) {
                    self.place = at;
                }
            }
            Wish::NextBy => return Some(Task::NextBy),
            Wish::NextSpan => self.span = self.span.next(),
            Wish::Filter => self.typed = Some(String::new()),
            Wish::Callers | Wish::Callees => {
                let side = if wish == Wish::Callers { Side::Callers } else { Side::Callees };
                // It stays the selected one, wherever it moves.
                self.select(self.place());
                let function = self.selected().map(|row| row.key.clone());
                if self
                    .neighbours
                    .as_ref()
                    .is_some_and(|(its, of, _)| *its == side && Some(of) == function.as_ref())
                {
                    self.neighbours = None;
                    return None;
                }
                return function.map(|function| Task::Neighbours(side, function));
            }
            Wish::ZoomIn => return self.selected().map(|row| Task::ZoomIn(row.key.clone())),
            Wish::ZoomOut if self.neighbours.is_some() => self.neighbours = None,
            Wish::ZoomOut => return Some(Task::ZoomOut),
            Wish::Save => return Some(Task::Save),
            Wish::Move(by) => return self.move_to(self.place().saturating_add_signed(by)),
            Wish::First => return self.move_to(0),
            Wish::Last => return self.move_to(usize::MAX),
        }
        None
    }

    /// Selects a row; the callers or callees that are shown are its own then.
    fn move_to(&mut self, place: usize) -> Option<Task> {
        self.select(place);
        let (side, of, _) = self.neighbours.as_ref()?;
        let row = self.selected().filter(|row| row.key != *of)?;
        Some(Task::Neighbours(*side, row.key.clone()))
    }
}

#[cfg(test)]
pub mod tests {
    use eprof::profile::{Balance, ProfileMethod};
    use eprof::units::Joules;

    use super::super::so_far::Since;
    use super::*;

    pub fn picture(rows: &[(&str, f64, f64)]) -> Picture {
        let shown = |(name, watts, joules): &(&str, f64, f64)| Shown {
            key: RowKey { name: Label::new(name), module: None, values: Vec::new(), ids: (None, None) },
            watts: *watts,
            error: 0.1,
            total_watts: *watts,
            share: watts / 10.0,
            joules: *joules,
            total_share: watts / 10.0,
            total_joules: *joules,
        };
        let balance = Balance {
            measured: Joules::from_joules(10.0),
            attributed: Joules::from_joules(10.0),
            ..Balance::default()
        };
        let mut rows: Vec<Shown> = rows.iter().map(shown).collect();
        sort(&mut rows, Order::Watts);
        let (method, seconds) = (ProfileMethod::Estimated, 1.0);
        let (span, since) = (Span::Last, Since::Start);
        Picture { span, since, method, balance, seconds, domains: vec![10.0], rows }
    }

    fn selected(view: &View) -> &str {
        view.selected().map_or("", |row| row.key.name.as_str())
    }

    #[test]
    fn the_selected_row_stays_selected_while_rows_move() {
        let mut view = View::new();
        view.show(picture(&[("a", 3.0, 9.0), ("b", 2.0, 9.0), ("c", 1.0, 9.0)]));
        assert_eq!(selected(&view), "a");
        view.wish(Wish::Move(1));
        assert_eq!(selected(&view), "b");
        view.show(picture(&[("a", 3.0, 9.0), ("b", 0.5, 9.0), ("c", 1.0, 9.0), ("d", 7.0, 9.0)]));
        assert_eq!((selected(&view), view.place()), ("b", 3));
        // Gone for a picture, the place counts; and it is selected again when it comes back.
        view.show(picture(&[("a", 3.0, 9.0), ("c", 1.0, 9.0)]));
        assert_eq!(selected(&view), "c");
        view.show(picture(&[("b", 9.0, 9.0), ("a", 3.0, 9.0)]));
        assert_eq!((selected(&view), view.place()), ("b", 0));
        view.wish(Wish::Last);
        assert_eq!(selected(&view), "a");
        view.wish(Wish::Move(-10));
        assert_eq!(selected(&view), "b");
        view.show(picture(&[]));
        assert_eq!((view.selected(), view.place()), (None, 0));
    }

    #[test]
    fn callers_are_those_of_the_selected_row() {
        let mut view = View::new();
        view.show(picture(&[("a", 3.0, 9.0), ("b", 2.0, 9.0)]));
        let Some(Task::Neighbours(side, a)) = view.wish(Wish::Callers) else { panic!("callers of a") };
        view.neighbours = Some((side, a.clone(), Vec::new()));
        let Some(Task::Neighbours(Side::Callers, b)) = view.wish(Wish::Move(1)) else {
            panic!("callers of b")
        };
        assert_eq!((a.name.as_str(), b.name.as_str()), ("a", "b"));
        view.neighbours = Some((side, b, Vec::new()));
        // There is no row below it.
        assert_eq!(view.wish(Wish::Last), None);
        assert_eq!((view.wish(Wish::Callers), view.neighbours.is_none()), (None, true));
        assert_eq!(view.wish(Wish::First), None, "nothing is shown that would follow");
        // What was selected without a choice stays so, whatever comes to stand above it.
        view.wish(Wish::Callees);
        view.show(picture(&[("b", 9.0, 9.0), ("a", 3.0, 9.0)]));
        assert_eq!(selected(&view), "a");
    }

    #[test]
    fn sorting_keeps_the_selection() {
        let mut view = View::new();
        view.show(picture(&[("a", 3.0, 1.0), ("b", 2.0, 5.0), ("c", 1.0, 9.0)]));
        view.wish(Wish::First);
        view.wish(Wish::NextSort);
        view.wish(Wish::NextSort);
        assert_eq!(view.order, Order::Joules);
        let names: Vec<&str> = view.rows().iter().map(|row| row.key.name.as_str()).collect();
        assert_eq!(names, ["c", "b", "a"]);
        assert_eq!((selected(&view), view.place()), ("a", 2));
    }

    #[test]
    fn a_filter_is_typed_and_help_is_left_by_any_key() {
        let mut view = View::new();
        view.wish(Wish::Filter);
        "libx".chars().for_each(|letter| view.type_letter(letter));
        view.untype();
        assert_eq!(view.end_typing(), Some(Task::Filter("lib".to_owned())));
        assert_eq!(view.end_typing(), None);
        view.wish(Wish::Help);
        assert!(view.shows_help);
        for key in [Wish::Save, Wish::Quit] {
            view.shows_help = true;
            assert_eq!(view.wish(key), None);
            assert!(!view.shows_help);
        }
        assert_eq!(view.wish(Wish::Save), Some(Task::Save));
    }
}
