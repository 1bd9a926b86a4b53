//! How the screen looks: from what is there to widgets, at any size. Decides nothing.

use outgate_policy::printable;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, List, ListItem, ListState, Paragraph, Wrap};

use super::super::answer::{RuleKind, offered};
use super::super::desk::Waiting;
use super::Screen;
use crate::own_words;

/// Lines of the list at most, where there is something to say of one question.
const LIST_LINES_MAX: u16 = 10;

/// Draws all of it.
pub(super) fn draw(screen: &mut Screen, frame: &mut Frame<'_>) {
    let area = frame.area();
    let count = screen.desk.waiting().len();
    let listed = u16::try_from(count)
        .unwrap_or(u16::MAX)
        .clamp(1, LIST_LINES_MAX);
    // Where there is little room, the question that keys answer has it.
    let listed = listed.min(area.height.saturating_sub(4) / 3).max(1);
    let keys = keys(screen, area.width);
    let keys_lines = u16::try_from(keys.len()).unwrap_or(1);
    let [head, list, details, said, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(listed),
        Constraint::Min(0),
        Constraint::Length(1),
        Constraint::Length(keys_lines),
    ])
    .areas(area);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(title(screen)).style(bold), head);
    draw_list(screen, frame, list);
    draw_details(screen, frame, details);
    frame.render_widget(Paragraph::new(screen.said.as_str()), said);
    frame.render_widget(Paragraph::new(keys).style(bold), foot);
}

fn title(screen: &Screen) -> String {
    let (questions, runs) = (screen.desk.waiting().len(), screen.desk.runs());
    format!("outgate approve: {questions} open, {runs} watched")
}

fn draw_list(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let waiting = screen.desk.waiting();
    if waiting.is_empty() {
        return frame.render_widget(Paragraph::new("nothing is asked"), area);
    }
    let item = |(number, own): (&u64, &Waiting)| {
        let (name, subject) = (printable(&own.name), printable(&own.question.subject));
        ListItem::new(format!("{number:>3} {name}  {subject}"))
    };
    let chosen = screen.chosen;
    let position = waiting.keys().position(|number| Some(*number) == chosen);
    let list = List::new(waiting.iter().map(item))
        .highlight_symbol("> ")
        .highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = ListState::default().with_selected(position);
    frame.render_stateful_widget(list, area, &mut state);
}

fn draw_details(screen: &mut Screen, frame: &mut Frame<'_>, area: Rect) {
    let chosen = screen.chosen;
    let waiting = chosen.and_then(|own| screen.desk.waiting().get(&own));
    let Some(waiting) = waiting else {
        return;
    };
    let known = screen.known.about(&waiting.question.narrow);
    let lines = lines(waiting, screen.rule, &known);
    let block = Block::new().borders(Borders::TOP);
    let details = Paragraph::new(lines)
        .block(block)
        .wrap(Wrap { trim: false });
    frame.render_widget(details, area);
}

fn lines(waiting: &Waiting, rule: RuleKind, known: &[String]) -> Vec<Line<'static>> {
    let question = &waiting.question;
    let process = &question.process;
    let program = match process.executable.as_str() {
        "" => "a program that nobody may read".to_owned(),
        program => printable(program),
    };
    let row = |word: &str, text: String| Line::from(format!("{word:<8}{text}"));
    let mut lines = vec![row("asks", printable(&question.subject))];
    // What an answer gives comes before what may not find room.
    for (kind, word, text) in [
        (RuleKind::Narrow, "narrow", &question.narrow),
        (RuleKind::Host, "broad", &question.broad),
    ] {
        let mark = if kind == rule { "(*)" } else { "( )" };
        if !text.is_empty() {
            let style = if kind == rule { marked() } else { Style::new() };
            let text = format!("{word:<8}{mark} {}", printable(text));
            lines.push(Line::from(Span::styled(text, style)));
        }
    }
    lines.push(row("by", format!("{program} (process {})", process.pid)));
    for parent in &process.parents {
        lines.push(row("below", printable(&parent.to_string())));
    }
    for line in own_words::lines(&question.words) {
        lines.push(Line::from(line));
    }
    let about = match waiting.about.as_str() {
        "" => printable(&waiting.name),
        about => format!("{} ({})", printable(&waiting.name), printable(about)),
    };
    lines.push(row("run", about));
    lines.push(row(
        "waits",
        format!("{} s", waiting.since.elapsed().as_secs()),
    ));
    for line in known {
        lines.push(row("host", printable(line)));
    }
    lines
}

/// How the rule stands out that an answer gives.
fn marked() -> Style {
    let style = Style::new().add_modifier(Modifier::BOLD);
    // https://no-color.org: set and not empty.
    match std::env::var_os("NO_COLOR") {
        Some(value) if !value.is_empty() => style,
        Some(_) | None => style.fg(Color::Cyan),
    }
}

/// What may be pressed, in as many lines as it takes.
fn keys(screen: &Screen, width: u16) -> Vec<Line<'static>> {
    let words: Vec<String> = if let Some(time) = &screen.time {
        vec![
            format!("for how long? {time}_"),
            "Enter".to_owned(),
            "Esc".to_owned(),
        ]
    } else {
        let chosen = screen.chosen;
        let waiting = chosen.and_then(|number| screen.desk.waiting().get(&number));
        let offered = waiting.map_or_else(
            || vec!["once", "host run"],
            |waiting| offered(&waiting.question),
        );
        let is_there = |key: &&str| match *key {
            "o once" => offered.contains(&"once"),
            "h host" => offered.contains(&"host run"),
            _ => true,
        };
        let all = [
            "d deny", "o once", "r run", "t time", "a always", "h host", "j/k move", "q quit",
        ];
        all.into_iter()
            .filter(is_there)
            .map(str::to_owned)
            .collect()
    };
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() + 2 <= usize::from(width) => {
                line.push_str("  ");
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines.into_iter().map(Line::from).collect()
}
