//! Draws the view.

use eprof::label::{Label, ShortNames, padded};
use eprof::live::RowKey;
use eprof::profile::ProfileMethod;
use eprof::report::Side;
use eprof::units::Joules;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span as Text};
use ratatui::widgets::{Clear, Paragraph};

use super::super::letters::Letters;
use super::columns::Columns;
use super::history::{DomainWatts, History, Order, Picture, Shown, Span, how, parts, time_of};
use super::keys::HELP;
use super::so_far::Since;
use super::view::View;

/// What the terminal can show.
#[derive(Debug, Clone, Copy)]
pub struct Abilities {
    /// The user wants colors.
    pub color: bool,
    /// The locale has more letters than ASCII's.
    pub unicode: bool,
}

/// Domains shown; more would leave no room for rows.
const MOST_DOMAINS: usize = 6;
const BARS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII_BARS: [&str; 8] = [".", ".", ":", "-", "=", "+", "*", "#"];

/// Draws all of it, in whatever room there is.
pub fn draw(frame: &mut Frame<'_>, view: &View, history: &History, rows: Option<usize>, can: Abilities) {
    let area = frame.area();
    if area.width == 0 || area.height == 0 {
        return;
    }
    let domains = history.domains().len().min(MOST_DOMAINS) as u16;
    let below =
        view.neighbours.as_ref().map_or(0, |(_, _, all)| (all.len().max(1) as u16 + 1).min(area.height / 3));
    let balance_lines =
        view.picture.as_ref().map(|picture| balance_lines(picture, area.width.into(), area.height.into()));
    let balance_lines = balance_lines.unwrap_or_else(|| vec![String::new()]);
    let balance_height = balance_lines.len() as u16;
    let written = u16::from(view.output.is_some());
    let [head, meters, balance, table, neighbours, output, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(domains),
        Constraint::Length(balance_height),
        Constraint::Min(0),
        Constraint::Length(below),
        Constraint::Length(written),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_head(frame, head, view, history, can);
    for (index, domain) in history.domains().iter().take(MOST_DOMAINS).enumerate() {
        let line = Rect { y: meters.y + index as u16, height: 1, ..meters };
        if line.y < meters.bottom() {
            let watts = view.picture.as_ref().and_then(|picture| picture.domains.get(index).copied());
            draw_domain(frame, line, domain, watts, can);
        }
    }
    match &view.picture {
        None => {
            frame.render_widget(Paragraph::new("the first picture comes when its time has passed"), table)
        }
        Some(_) => {
            let lines: Vec<Line<'_>> =
                balance_lines.iter().map(|line| Line::raw(letters(line, can))).collect();
            let bold = style(can, Color::Reset, Modifier::BOLD);
            frame.render_widget(Paragraph::new(lines).style(bold), balance);
            draw_rows(frame, table, view, history, rows, can);
        }
    }
    if let Some((side, of, all)) = &view.neighbours {
        let missing = if *side == Side::Callers { history.missing_callers() } else { 0.0 };
        let title = neighbours_title((*side, view.span), of, missing);
        draw_neighbours(frame, neighbours, &title, all, can);
    }
    if let Some(line) = &view.output {
        let text = format!("output: {}", line.shortened(usize::from(output.width).saturating_sub(8)));
        frame.render_widget(Paragraph::new(letters(&text, can)), output);
    }
    draw_foot(frame, foot, view, history, can);
    if view.shows_help {
        draw_help(frame, area, history.warnings(), can);
    }
}

fn style(can: Abilities, color: Color, modifier: Modifier) -> Style {
    let style = Style::default().add_modifier(modifier);
    if can.color { style.fg(color) } else { style }
}

/// A text in the letters that the locale has; each stands in a column of its own.
fn letters(text: &str, can: Abilities) -> String {
    let letters = if can.unicode { Letters::All } else { Letters::Ascii };
    letters.of_text(text).into_owned()
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, view: &View, history: &History, can: Abilities) {
    // While a picture is held, its own span.
    let span = match (&view.picture, view.span) {
        (Some(picture), _) => time_of(picture),
        (None, Span::Last) => "last refresh".to_owned(),
        (None, Span::Recent) => "last 10 s".to_owned(),
        (None, Span::Start) => "since start".to_owned(),
    };
    let order = match view.order {
        Order::Watts => "watts",
        Order::Total => "total",
        Order::Joules => "joules",
        Order::Name => "name",
    };
    let zoom = history.shown.zoom.as_ref().map_or(String::new(), |zoom| format!("  only {zoom}"));
    let filter = history.filter.as_ref().map_or(String::new(), |filter| format!("  /{filter}/"));
    let held = if history.is_held { "  HELD" } else { "" };
    let text = format!("eprof top  {} by {order}, {span}{zoom}{filter}{held}", history.shown.by.plural());
    frame.render_widget(
        Paragraph::new(letters(&Label::new(&text).shortened(area.width.into()), can)).style(style(
            can,
            Color::Cyan,
            Modifier::BOLD,
        )),
        area,
    );
}

/// A domain's watts in the picture's span, and how they went over the last windows.
fn draw_domain(frame: &mut Frame<'_>, area: Rect, domain: &DomainWatts, watts: Option<f64>, can: Abilities) {
    let watts = watts.or(domain.watts.back().copied()).unwrap_or(0.0);
    let method = if domain.is_estimated { "ESTIMATED" } else { "measured" };
    let name = format!("{}{}", "  ".repeat(domain.depth), domain.name);
    let text = format!("{} {watts:>9.2} W {method} ", padded(&letters(&name, can), 18));
    let room = usize::from(area.width).saturating_sub(text.len());
    let first = domain.watts.len().saturating_sub(room);
    let most = domain.watts.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bars = if can.unicode { BARS } else { ASCII_BARS };
    let bar = |watts: &f64| bars[((watts / most * 7.0).round().clamp(0.0, 7.0)) as usize];
    let sparkline: String = domain.watts.iter().skip(first).map(bar).collect();
    let spans = [Text::raw(text), Text::styled(sparkline, style(can, Color::Green, Modifier::empty()))];
    frame.render_widget(Line::from_iter(spans), area);
}

/// Terminals of fewer rows have one line for the balance, whatever does not fit in it.
const ROWS_TO_FOLD: usize = 12;

/// Where all watts go: in one line, as fully as that has room for it.
fn balance_lines(picture: &Picture, width: usize, height: usize) -> Vec<String> {
    let seconds = picture.seconds.max(1e-9);
    let part = |(name, joules): (&str, Joules)| format!("{name} {:.2}", joules.as_joules() / seconds);
    let parts = parts(&picture.balance).map(part);
    let all = picture.balance.measured.as_joules() / seconds;
    let short = match picture.method {
        ProfileMethod::Measured => "measured",
        ProfileMethod::Estimated => "ESTIMATED",
        ProfileMethod::Mixed => "PARTLY ESTIMATED",
        ProfileMethod::None => "no joules",
    };
    let long = format!("{all:.2} W {} = {}", how(picture.method), parts.join(" + "));
    let shorter = format!("{all:.2} W {short} = {}", parts.join(" + "));
    let shortest = format!("{all:.2} W {short}: {}", parts.join(" "));
    if let Some(line) = [long, shorter].into_iter().find(|line| line.chars().count() <= width) {
        return vec![line];
    }
    // A name and its watts stay together.
    let words = std::iter::once(format!("{all:.2} W {short}:")).chain(parts);
    let lines = folded(words, width);
    match &lines[..] {
        [_] => vec![shortest],
        [first, ..] if height < ROWS_TO_FOLD => {
            vec![Label::new(&format!("{first} …")).shortened(width).into_owned()]
        }
        _ => lines,
    }
}

fn draw_rows(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &View,
    history: &History,
    rows: Option<usize>,
    can: Abilities,
) {
    let Some(room) = usize::from(area.height).checked_sub(1) else { return };
    let room = rows.map_or(room, |rows| rows.min(room));
    let columns = Columns::new(view.rows(), area.width.into());
    let since = view.picture.as_ref().map_or(Since::Start, |picture| picture.since);
    let title = letters(&columns.title(history.shown.by, view.order, since), can);
    let width = usize::from(area.width);
    let title = format!("{title:<width$}");
    let mut lines = vec![Line::styled(title, style(can, Color::Reset, Modifier::REVERSED))];
    // The selected row is always among those that are shown.
    let first = (view.place() + 1).saturating_sub(room);
    let names: Vec<Label> = view.rows().iter().skip(first).take(room).map(Shown::name).collect();
    let names =
        ShortNames::all(&names.iter().collect::<Vec<_>>(), columns.name(), history.shown.by.short_name());
    for ((place, row), name) in view.rows().iter().enumerate().skip(first).zip(&names) {
        let text = letters(&columns.row(row, name, view.order), can);
        let text = format!("{text:<width$}");
        let selected = if place == view.place() { Modifier::REVERSED } else { Modifier::empty() };
        lines.push(Line::styled(text, style(can, Color::Reset, selected)));
    }
    if view.rows().is_empty() {
        let why = letters(&nothing_shown(history), can);
        lines.extend(folded(why.split(' ').map(str::to_owned), area.width.into()).into_iter().map(Line::raw));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Why there are no rows.
pub fn nothing_shown(history: &History) -> String {
    let where_from = history.shown.zoom.as_ref().map_or(String::new(), |zoom| format!(" in {zoom}"));
    match &history.filter {
        Some(filter) => format!(
            "nothing that matches /{filter}/ ran in this time{where_from}: / and Enter show all {}",
            history.shown.by.plural()
        ),
        None => format!("nothing was sampled in this time{where_from}"),
    }
}

/// A smaller share of samples without their direct caller is not worth a word.
const FEWEST_MISSING: f64 = 0.01;

/// What stands above callers and callees; of callers, in what share of all samples the direct one is missing.
fn neighbours_title((side, span): (Side, Span), of: &RowKey, missing: f64) -> String {
    // Windows from before the last ten seconds are not kept.
    let since = if span == Span::Start { " (last 10 s)" } else { "" };
    let missing = if missing < FEWEST_MISSING {
        String::new()
    } else {
        format!("; {:.0} % of all samples lack a caller: --call-graph fp+leaf,2048 or dwarf", missing * 100.0)
    };
    // Other modules may have a function of this name.
    let module = of.module.as_ref().map_or(String::new(), |module| format!(" in {}", module.module_name()));
    format!("{} of {}{module}{since}{missing}", side.name(), of.name)
}

fn draw_neighbours(frame: &mut Frame<'_>, area: Rect, title: &str, all: &[(Label, f64)], can: Abilities) {
    let title = format!("{:>10}  {title}", "WATTS");
    let title = letters(&Label::new(&title).shortened(area.width.into()), can);
    let mut lines = vec![Line::styled(title, style(can, Color::Yellow, Modifier::BOLD))];
    // The last line is for those that have no room.
    let room = usize::from(area.height).saturating_sub(1);
    let shown = if all.len() > room { room.saturating_sub(1) } else { all.len() };
    let (shown, rest) = all.split_at(shown);
    let names: Vec<&Label> = shown.iter().map(|(name, _)| name).collect();
    let names = ShortNames::all(&names, usize::from(area.width).saturating_sub(12), Label::short_name);
    let row = |watts: f64, name: &str| Line::raw(letters(&format!("{watts:>10.3}  {name}"), can));
    lines.extend(shown.iter().zip(&names).map(|((_, watts), name)| row(*watts, name)));
    if !rest.is_empty() {
        let watts = rest.iter().map(|(_, watts)| watts).sum();
        lines.push(row(watts, &format!("… {} more", rest.len())));
    }
    if all.is_empty() {
        lines.push(Line::raw(letters(&format!("{:>10}  did not run in this time", "-"), can)));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// The keys of the foot, as many as there is room for.
const FOOT: [&str; 10] = [
    "? help",
    "q end",
    "s sort",
    "b rows",
    "w span",
    "/ filter",
    "c callers",
    "e callees",
    "Space hold",
    "S save",
];

fn draw_foot(frame: &mut Frame<'_>, area: Rect, view: &View, history: &History, can: Abilities) {
    let width = usize::from(area.width);
    let text = match (&view.typed, &view.message, history.warnings().first()) {
        (Some(typed), ..) => format!("show only what matches: {typed}_"),
        (None, message, _) if !message.is_empty() => message.clone(),
        (None, _, Some(warning)) => format!("? help, notes  q end  {warning}"),
        (None, _, None) => {
            let mut text = FOOT[0].to_owned();
            for key in &FOOT[1..] {
                if text.len() + 2 + key.len() <= width {
                    text += "  ";
                    text += key;
                }
            }
            text
        }
    };
    // What is typed is seen at its end.
    let text = match &view.typed {
        Some(_) => text.chars().skip(text.chars().count().saturating_sub(width)).collect(),
        None => cut(&text, width),
    };
    frame.render_widget(
        Paragraph::new(letters(&text, can)).style(style(can, Color::Cyan, Modifier::empty())),
        area,
    );
}

/// A text that is read from its beginning, in so many columns.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).take(columns).collect()
}

/// Columns of the names of keys in the help.
const KEYS: usize = 30;

/// Words in lines of so many columns.
fn folded(words: impl IntoIterator<Item = String>, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

fn draw_help(frame: &mut Frame<'_>, area: Rect, notes: &[Label], can: Abilities) {
    let columns = usize::from(area.width).saturating_sub(KEYS + 2).max(10);
    let of_key = |(keys, what): &(&str, &str)| {
        let mut keys = *keys;
        let line = |text: String| Line::raw(format!(" {} {text}", padded(std::mem::take(&mut keys), KEYS)));
        folded(what.split(' ').map(str::to_owned), columns).into_iter().map(line).collect::<Vec<_>>()
    };
    let mut lines: Vec<Line<'_>> = HELP.iter().flat_map(of_key).collect();
    for note in notes {
        let words = format!("note: {note}");
        let words = letters(&words, can);
        let folded = folded(words.split(' ').map(str::to_owned), usize::from(area.width).saturating_sub(2));
        lines.extend(folded.into_iter().map(|line| Line::raw(format!(" {line}"))));
    }
    let height = (lines.len() as u16 + 1).min(area.height);
    let area = Rect { height, ..area };
    frame.render_widget(Clear, area);
    let mut all =
        vec![Line::styled(" Keys (any key goes back)", style(can, Color::Cyan, Modifier::REVERSED))];
    all.extend(lines);
    frame.render_widget(Paragraph::new(all), area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::rows::By;
    use super::super::view::tests::picture;
    use super::*;

    fn drawn(width: u16, height: u16, view: &View, unicode: bool) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
        let history = History::new(By::Function, &[], None);
        let can = Abilities { color: false, unicode };
        terminal.draw(|frame| draw(frame, view, &history, None, can)).expect("memory");
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| line(y).trim_end().to_owned()).collect()
    }

    fn view() -> View {
        let mut view = View::new();
        view.show(picture(&[("hot", 7.5, 100.0), ("größer", 2.0, 30.0), ("cold", 0.5, 1.0)]));
        view
    }

    #[test]
    fn the_balance_and_the_rows_are_drawn() {
        let lines = drawn(80, 24, &view(), true);
        assert!(lines[0].starts_with("eprof top  functions by watts, last 1.0 s"), "{lines:#?}");
        let expected = "10.00 W ESTIMATED: functions 10.00 static 0.00 others 0.00 eprof 0.00 lost 0.00";
        assert_eq!(lines[1], expected);
        let wide = drawn(120, 24, &view(), true);
        let expected = "10.00 W ESTIMATED, not measured = functions 10.00 + static 0.00 + others 0.00 + eprof 0.00 + \
                        lost 0.00";
        assert_eq!(wide[1], expected);
        assert_eq!(lines[2], "     WATTS         ±     J SO FAR   SHARE  FUNCTION");
        assert_eq!(lines[3], "     7.500     0.100      100.000   75.0%  hot");
        assert!(lines[4].ends_with("größer"), "{lines:#?}");
        assert_eq!(
            lines[23],
            "? help  q end  s sort  b rows  w span  / filter  c callers  e callees  S save"
        );
        assert!(wide[23].ends_with("Space hold  S save"), "{wide:#?}");
        let ascii = drawn(80, 24, &view(), false);
        assert_eq!(ascii[2], "     WATTS        +-     J SO FAR   SHARE  FUNCTION");
        assert!(ascii[4].ends_with("gr??er"), "no letter that the locale lacks: {ascii:#?}");
    }

    #[test]
    fn a_small_terminal_has_names_and_whole_words() {
        let lines = drawn(30, 6, &view(), true);
        let expected = [
            "eprof top  func…ts, last 1.0 s",
            "10.00 W ESTIMATED: …",
            "   WATTS  SHARE  FUNCTION",
            "   7.500  75.0%  hot",
            "   2.000  20.0%  größer",
            "? help  q end  s sort  b rows",
        ];
        assert_eq!(lines, expected);
        // With more rows the balance has as many lines as it takes.
        let lines = drawn(30, 24, &view(), true);
        let balance =
            ["10.00 W ESTIMATED:", "functions 10.00 static 0.00", "others 0.00 eprof 0.00", "lost 0.00"];
        assert_eq!(lines[1..5], balance);
    }

    #[test]
    fn what_is_cut_is_cut_at_its_end() {
        assert_eq!([cut("? help", 6), cut("? help", 5), cut("? help", 1)], ["? help", "? he…", "…"]);
        assert_eq!(cut("? help", 0), "");
    }

    #[test]
    fn callers_that_may_be_others_are_marked() {
        let module = Some(Label::new("/usr/bin/app"));
        let of = RowKey { name: Label::new("spin"), module, values: Vec::new(), ids: (None, None) };
        let callers = |missing| neighbours_title((Side::Callers, Span::Last), &of, missing);
        assert_eq!(callers(0.0), "callers of spin in app");
        assert_eq!(
            callers(0.25),
            "callers of spin in app; 25 % of all samples lack a caller: --call-graph fp+leaf,2048 or dwarf"
        );
    }

    #[test]
    fn callers_that_have_no_room_are_counted() {
        let mut view = view();
        let of = view.rows()[0].key.clone();
        let caller = |number: usize| (Label::new(&format!("caller_{number}")), 0.5);
        let below = |view: &View| {
            let lines = drawn(80, 24, view, true);
            let head = lines.iter().position(|line| line.contains("callers of hot")).expect("a head");
            lines[head..23].iter().filter(|line| !line.is_empty()).cloned().collect::<Vec<_>>()
        };
        view.neighbours = Some((Side::Callers, of.clone(), (0..20).map(caller).collect()));
        let lines = below(&view);
        assert_eq!((lines[0].as_str(), lines.len()), ("     WATTS  callers of hot", 8));
        assert_eq!((lines[1].as_str(), lines[7].as_str()), ("     0.500  caller_0", "     7.000  … 14 more"));
        view.neighbours = Some((Side::Callers, of.clone(), (0..7).map(caller).collect()));
        assert_eq!(below(&view)[7], "     0.500  caller_6");
        view.neighbours = Some((Side::Callers, of, Vec::new()));
        assert_eq!(below(&view)[1], "         -  did not run in this time");
    }

    #[test]
    fn that_nothing_matches_is_said() {
        let mut view = View::new();
        view.show(picture(&[]));
        let mut terminal = Terminal::new(TestBackend::new(60, 8)).expect("memory");
        let history = History::new(By::Function, &[], Some(regex::Regex::new("nosuch").expect("a pattern")));
        let can = Abilities { color: false, unicode: true };
        terminal.draw(|frame| draw(frame, &view, &history, None, can)).expect("memory");
        let buffer = terminal.backend().buffer();
        let line = |y| (0..60).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        let said = (0..8).map(|y| line(y).trim_end().to_owned()).collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("nothing that matches /nosuch/ ran in this time: / and Enter show all"),
            "{said}"
        );
    }

    #[test]
    fn any_size_is_drawn_and_the_selected_row_is_seen() {
        let mut view = view();
        view.wish(super::super::keys::Wish::Last);
        for width in [1, 2, 7, 40, 200] {
            for height in [1, 2, 3, 5, 50] {
                for help in [false, true] {
                    view.shows_help = help;
                    drawn(width, height, &view, true);
                }
            }
        }
        view.shows_help = false;
        let lines = drawn(120, 5, &view, true);
        assert!(lines[3].ends_with("cold"), "the only row there is room for: {lines:#?}");
    }

    #[test]
    fn the_help_tells_all_keys() {
        let mut view = view();
        view.shows_help = true;
        let lines = drawn(100, 30, &view, true);
        for (keys, _) in HELP {
            assert!(lines.iter().any(|line| line.contains(keys)), "{keys} in {lines:#?}");
        }
        // All of it in the usual terminal.
        let said = drawn(80, 24, &view, true).join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        for word in HELP.iter().flat_map(|(_, what)| what.split(' ')) {
            assert!(said.contains(word), "{word} in {said}");
        }
    }
}
