//! What keys mean.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Quit,
    /// As the terminal would have sent it.
    Interrupt,
    Help,
    Pause,
    NextSort,
    NextBy,
    NextSpan,
    Filter,
    Callers,
    Callees,
    ZoomIn,
    ZoomOut,
    Save,
    Move(isize),
    First,
    Last,
}

/// The keys of the help, with what they do.
pub const HELP: [(&str, &str); 14] = [
    ("q", "end; a program that eprof started is asked to end (SIGTERM)"),
    ("Ctrl-C", "interrupt the program, or end without one"),
    ("? h", "this help"),
    ("Space p", "hold the picture, and go on"),
    ("s >", "sort by watts, total, joules, name"),
    ("b Tab", "rows are functions, modules, processes, threads, control groups, cores, lines"),
    ("w", "watts and shares are of the last refresh, of 10 seconds, since the start"),
    ("/", "show only what matches a regular expression; empty shows all"),
    ("c", "who called the selected function"),
    ("e", "what it called"),
    ("Enter", "all functions of the selected process or thread alone"),
    ("Backspace", "all of them again"),
    ("S", "save the windows shown, at most 10 seconds, for `eprof report`"),
    ("arrows j k PgUp PgDn Home End", "select"),
];

/// What a key means outside of the filter's line.
pub fn wish(key: &KeyEvent) -> Option<Wish> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Wish::Interrupt),
            _ => None,
        };
    }
    Some(match key.code {
        KeyCode::Char('q') | KeyCode::F(10) => Wish::Quit,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => Wish::Help,
        KeyCode::Char(' ' | 'p') => Wish::Pause,
        KeyCode::Char('s' | '>') | KeyCode::F(6) => Wish::NextSort,
        KeyCode::Char('b') | KeyCode::Tab => Wish::NextBy,
        KeyCode::Char('w') => Wish::NextSpan,
        KeyCode::Char('/') | KeyCode::F(4) => Wish::Filter,
        KeyCode::Char('c') => Wish::Callers,
        KeyCode::Char('e') => Wish::Callees,
        KeyCode::Enter => Wish::ZoomIn,
        KeyCode::Backspace | KeyCode::Esc => Wish::ZoomOut,
        KeyCode::Char('S') | KeyCode::F(2) => Wish::Save,
        KeyCode::Up | KeyCode::Char('k') => Wish::Move(-1),
        KeyCode::Down | KeyCode::Char('j') => Wish::Move(1),
        KeyCode::PageUp => Wish::Move(-10),
        KeyCode::PageDown => Wish::Move(10),
        KeyCode::Home => Wish::First,
        KeyCode::End => Wish::Last,
        _ => return None,
    })
}
