//! The view in a terminal, which is as it was before when the view ends, however that is.

use std::io::{self, Stdout};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use eprof::live::Engine;
use eprof::pattern::pattern;
use nix::sys::signal::Signal;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use regex::Regex;

use super::super::letters::{self, Letters};
use super::super::new_file::{NewFile, Readers};
use super::super::output::Color;
use super::history::{History, Order, Span};
use super::keys::wish;
use super::lines;
use super::program_output::ProgramOutput;
use super::rows::{By, Rows};
use super::screen::{Abilities, draw};
use super::shared::Shared;
use super::view::{Task, View};
use super::zoom::Zoom;

/// How often the recording is looked at. Keys are answered at once.
const TICK: Duration = Duration::from_millis(100);

/// Shows the view, with a message until the first key, until the user or the recording ends it. What the program writes comes out behind it, and then what the
/// view came to.
pub fn run(
    engine: Engine,
    history: History,
    rows: Option<usize>,
    output: Option<ProgramOutput>,
    message: Option<String>,
    shared: &Shared,
) -> anyhow::Result<()> {
    // Restores the terminal in a panic, too, before the panic is told.
    let terminal = ratatui::try_init()?;
    let mut view = View::new();
    view.message = message.unwrap_or_default();
    let mut session = Session { engine, history, held: None, rows, output, shared, view };
    let shown = session.run(terminal);
    ratatui::restore();
    if let Some(output) = session.output.take() {
        output.show();
        if !shared.is_recorded() && !shared.has_left() {
            shared.leave(Signal::SIGTERM);
        }
        // A program that was asked to end may have something to say.
        while !shared.is_recorded() {
            thread::sleep(TICK);
        }
    }
    shown?;
    // The view is gone with its screen: what it came to stays.
    let Some(picture) = session.history.picture(Span::Start, Order::Watts) else { return Ok(()) };
    lines::write(&session.history, &picture, rows.unwrap_or(lines::ROWS), &mut letters::stdout())?;
    Ok(())
}

struct Session<'s> {
    engine: Engine,
    history: History,
    /// What was there when the picture was held, as long as it is.
    held: Option<History>,
    rows: Option<usize>,
    output: Option<ProgramOutput>,
    shared: &'s Shared,
    view: View,
}

impl Session<'_> {
    /// What is looked at.
    fn shown(&self) -> &History {
        self.held.as_ref().unwrap_or(&self.history)
    }

    /// Shows other rows, of what is held as well.
    fn change(&mut self, rows: Rows) -> anyhow::Result<()> {
        for history in [&mut self.history].into_iter().chain(&mut self.held) {
            history.change(rows.clone(), &mut self.engine)?;
        }
        Ok(())
    }

    /// Another filter, of what is held as well.
    fn filter(&mut self, filter: Option<&Regex>) {
        for history in [&mut self.history].into_iter().chain(&mut self.held) {
            history.filter = filter.cloned();
        }
    }

    fn run(&mut self, mut terminal: Terminal<CrosstermBackend<Stdout>>) -> anyhow::Result<()> {
        let can =
            Abilities { color: Color::Auto.on_stdout(), unicode: Letters::of(&io::stdout()) == Letters::All };
        // To lay out a picture that is there already costs more than most windows do.
        let mut is_drawn = false;
        loop {
            // Asked first: what was written until then is seen below.
            let is_last = self.shared.is_recorded();
            let mut is_new = false;
            while let Some(window) = self.engine.next_window(is_last)? {
                self.history.push(window)?;
                is_new = true;
            }
            if is_new && self.held.is_none() {
                self.refresh();
            }
            let line = self.output.as_ref().and_then(ProgramOutput::last_line);
            if !is_drawn || is_new || line != self.view.output {
                self.view.output = line;
                terminal.draw(|frame| {
                    draw(frame, &self.view, self.held.as_ref().unwrap_or(&self.history), self.rows, can)
                })?;
                is_drawn = true;
            }
            if is_last || self.shared.has_left() {
                return Ok(());
            }
            let until = Instant::now() + TICK;
            while event::poll(until.saturating_duration_since(Instant::now()))? {
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => self.key(&key),
                    _ => {}
                }
                terminal.draw(|frame| {
                    draw(frame, &self.view, self.held.as_ref().unwrap_or(&self.history), self.rows, can)
                })?;
                if self.shared.has_left() {
                    return Ok(());
                }
            }
        }
    }

    fn refresh(&mut self) {
        if let Some(picture) = self.shown().picture(self.view.span, self.view.order) {
            self.view.show(picture);
        }
        if let Some((side, of, _)) = self.view.neighbours.take() {
            let all = self.shown().neighbours(side, &of, self.view.span);
            self.view.neighbours = Some((side, of, all));
        }
    }

    fn key(&mut self, key: &KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let task = if self.view.typed.is_some() && !is_control {
            match key.code {
                KeyCode::Char(letter) => {
                    self.view.type_letter(letter);
                    None
                }
                KeyCode::Backspace => {
                    self.view.untype();
                    None
                }
                KeyCode::Enter => self.view.end_typing(),
                KeyCode::Esc => {
                    self.view.typed = None;
                    None
                }
                _ => None,
            }
        } else {
            let Some(wish) = wish(key) else {
                self.view.shows_help = false;
                return;
            };
            let before = (self.view.span, self.view.order);
            let task = self.view.wish(wish);
            if (self.view.span, self.view.order) != before {
                self.refresh();
            }
            task
        };
        if let Some(task) = task
            && let Err(error) = self.perform(task)
        {
            self.view.message = format!("{error:#}");
        }
    }

    fn perform(&mut self, task: Task) -> anyhow::Result<()> {
        match task {
            Task::Quit => self.shared.leave(Signal::SIGTERM),
            // In raw mode the terminal sends no signal itself. The recorder hands it on to a program.
            Task::Interrupt => self.shared.leave(Signal::SIGINT),
            Task::Hold => {
                self.held = match self.held.take() {
                    Some(_) => None,
                    None => Some(self.history.held()),
                };
                self.refresh();
            }
            Task::NextBy => {
                let Rows { by, zoom } = self.history.shown.clone();
                let at = By::ALL.iter().position(|other| *other == by).unwrap_or(0);
                let by = By::ALL[(at + 1) % By::ALL.len()];
                self.change(Rows { by, zoom })?;
                self.view.forget_selection();
                self.refresh();
            }
            Task::ZoomIn(key) => {
                let zoom = Zoom::of(&key)
                    .context("Enter shows the functions of a process or thread: press b for these rows")?;
                let functions = Rows { by: By::Function, zoom: Some(zoom) };
                self.change(functions)?;
                // It was one of names of processes, and would hide nearly all functions.
                if let Some(filter) = self.history.filter.clone() {
                    self.filter(None);
                    self.view.message = format!("all functions: /{filter}/ is taken away; / sets a filter");
                }
                self.view.forget_selection();
                self.refresh();
            }
            Task::ZoomOut => {
                let Rows { by, zoom } = self.history.shown.clone();
                if zoom.is_some() {
                    self.change(Rows { by, zoom: None })?;
                    self.view.forget_selection();
                }
                self.refresh();
            }
            Task::Filter(text) => {
                let filter = match text.as_str() {
                    "" => None,
                    text => Some(pattern(text).map_err(|why| anyhow::anyhow!("/{text}/ is {why}"))?),
                };
                self.filter(filter.as_ref());
                self.refresh();
            }
            Task::Save => {
                let path = free_name();
                let bytes = self.shown().recording(self.view.span)?;
                let write = || {
                    let mut file = NewFile::create(&path, Readers::Owner)?;
                    io::Write::write_all(&mut file, &bytes)?;
                    file.keep()
                };
                write().with_context(|| {
                    format!("{} cannot be written here; start top in a folder of your own", path.display())
                })?;
                self.view.message = format!("saved: eprof report {}", path.display());
            }
            Task::Neighbours(side, of) => {
                anyhow::ensure!(
                    self.history.shown.by == By::Function,
                    "callers and callees are of functions: press b for these rows"
                );
                let all = self.shown().neighbours(side, &of, self.view.span);
                anyhow::ensure!(!all.is_empty() || self.view.neighbours.is_some(), "{} did not run", of.name);
                self.view.neighbours = Some((side, of, all));
            }
        }
        Ok(())
    }
}

/// A name for a recording that no file has.
fn free_name() -> PathBuf {
    let names = (1..).map(|number| PathBuf::from(format!("eprof-top-{number}.data")));
    names.into_iter().find(|path| !path.exists()).unwrap_or_default()
}
