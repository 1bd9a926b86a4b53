//! `outgate top` on a whole screen: how things are above, what happens below. All text is
//! printable ASCII before it comes here.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::lines::{self, TopLine, TopLineKind};
use super::{events, overview};

/// How often the gateway is asked.
const ASK_TIME: Duration = Duration::from_secs(1);
/// How long one look for keys takes.
const KEYS_TIME: Duration = Duration::from_millis(100);
/// Keys taken in a row before the gateway is asked again.
const KEYS_MAX: usize = 64;
/// Events that are kept.
const EVENTS_MAX: usize = 200;
/// Lines of Page Up and Page Down.
const PAGE_LINES: u16 = 10;

/// What is shown.
#[derive(Debug, Default)]
struct TopScreen {
    lines: Vec<TopLine>,
    events: VecDeque<TopLine>,
    /// Events that were too many.
    dropped: u64,
    /// The number of the next event.
    next: Option<u64>,
    /// The first line that is shown.
    first: u16,
    fault: Option<String>,
}

/// What comes of a key.
#[derive(Debug, PartialEq, Eq)]
enum TopKey {
    On,
    End,
}

/// Shows until the person leaves.
pub(super) fn serve(path: &Path, first: &Value) -> io::Result<()> {
    let mut screen = TopScreen {
        lines: lines::all(first),
        ..TopScreen::default()
    };
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&ended))?;
    }
    let mut asked: Option<Instant> = None;
    let mut terminal = ratatui::try_init()?;
    let served = loop {
        // The terminal is given back as it was.
        if ended.load(Ordering::Relaxed) {
            break Ok(());
        }
        if asked.is_none_or(|at| at.elapsed() >= ASK_TIME) {
            asked = Some(Instant::now());
            screen.ask(path);
        }
        if let Err(error) = terminal.draw(|frame| screen.draw(frame)) {
            break Err(error);
        }
        match screen.take_keys() {
            Ok(TopKey::On) => {}
            Ok(TopKey::End) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let restored = ratatui::try_restore();
    served.and(restored)
}

impl TopScreen {
    fn ask(&mut self, path: &Path) {
        let answers = overview(path).and_then(|now| Ok((now, events(path, self.next)?)));
        match answers {
            Ok((now, events)) => {
                self.lines = lines::all(&now);
                self.take(&events);
                self.fault = None;
            }
            // It may be started again.
            Err(error) => self.fault = Some(format!("no answer: {error}")),
        }
    }

    fn take(&mut self, events: &Value) {
        let next = events["next"].as_u64();
        if next < self.next {
            // It was started anew, and counts anew.
            self.next = None;
            return;
        }
        self.next = next;
        let dropped = events["dropped"].as_u64().unwrap_or(0);
        self.dropped = self.dropped.saturating_add(dropped);
        for event in events["events"].as_array().into_iter().flatten() {
            self.events.push_front(lines::event(event));
        }
        self.events.truncate(EVENTS_MAX);
    }

    fn take_keys(&mut self) -> io::Result<TopKey> {
        let mut wait = KEYS_TIME;
        for _ in 0..KEYS_MAX {
            if !event::poll(wait)? {
                break;
            }
            wait = Duration::ZERO;
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
                && self.press(key) == TopKey::End
            {
                return Ok(TopKey::End);
            }
        }
        Ok(TopKey::On)
    }

    fn press(&mut self, key: KeyEvent) -> TopKey {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let first = self.first;
        match key.code {
            KeyCode::Char('c' | 'd') if with_control => return TopKey::End,
            KeyCode::Char('q') => return TopKey::End,
            KeyCode::Char('j') | KeyCode::Down => self.first = first.saturating_add(1),
            KeyCode::Char('k') | KeyCode::Up => self.first = first.saturating_sub(1),
            KeyCode::PageDown => self.first = first.saturating_add(PAGE_LINES),
            KeyCode::PageUp => self.first = first.saturating_sub(PAGE_LINES),
            KeyCode::Home => self.first = 0,
            _ => {}
        }
        let last = u16::try_from(self.lines.len()).unwrap_or(u16::MAX);
        self.first = self.first.min(last.saturating_sub(1));
        TopKey::On
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let below = area.height / 3;
        let [state, now, foot] = Layout::vertical([
            Constraint::Min(1),
            Constraint::Length(below),
            Constraint::Length(1),
        ])
        .areas(area);
        let lines: Vec<Line<'_>> = self.lines.iter().map(styled).collect();
        frame.render_widget(Paragraph::new(lines).scroll((self.first, 0)), state);
        let mut title = " now ".to_owned();
        if self.dropped > 0 {
            title = format!(" now; {} events were too many to be shown ", self.dropped);
        }
        let block = Block::new().borders(Borders::TOP).title(title);
        let events: Vec<Line<'_>> = self.events.iter().map(styled).collect();
        frame.render_widget(Paragraph::new(events).block(block), now);
        let foot_text = match &self.fault {
            Some(fault) => Line::styled(fault.as_str(), style(TopLineKind::Alarm)),
            None => Line::styled("j/k scroll  q quit", style(TopLineKind::Title)),
        };
        frame.render_widget(Paragraph::new(foot_text), foot);
    }
}

fn styled(line: &TopLine) -> Line<'_> {
    Line::styled(line.text.as_str(), style(line.kind))
}

fn style(kind: TopLineKind) -> Style {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    // https://no-color.org: set and not empty.
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match (kind, is_plain) {
        (TopLineKind::Plain, _) | (TopLineKind::Warning, true) => Style::new(),
        (TopLineKind::Title, _) | (TopLineKind::Alarm, true) => bold,
        (TopLineKind::Alarm, false) => bold.fg(Color::Red),
        (TopLineKind::Warning, false) => Style::new().fg(Color::Yellow),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;

    #[test]
    fn any_size_is_drawn_and_what_was_dropped_is_said() {
        let mut screen = TopScreen {
            lines: lines::all(&json!({ "gateway": { "state": "ready" } })),
            ..TopScreen::default()
        };
        screen.take(&json!({ "next": 9, "dropped": 3, "events": [
            { "verdict": "deny", "kind": "connect", "target": "\u{1b}]0;x\u{7}.test:1" },
        ] }));
        for (width, height) in [(1, 1), (10, 2), (40, 8), (80, 24), (200, 60)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| screen.draw(frame)).unwrap();
            let text = terminal.backend().to_string();
            assert!(!text.contains('\u{1b}'), "{text}");
            if width >= 80 {
                assert!(
                    text.contains("ready for") && text.contains("3 events were"),
                    "{text}"
                );
            }
        }
        // A gateway that was started anew counts anew.
        screen.take(&json!({ "next": 2, "events": [] }));
        assert_eq!(screen.next, None);
    }

    #[test]
    fn keys_scroll_within_what_there_is() {
        let mut screen = TopScreen {
            lines: lines::all(&json!({})),
            ..TopScreen::default()
        };
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        for _ in 0..100 {
            assert_eq!(screen.press(key(KeyCode::PageDown)), TopKey::On);
        }
        assert!(usize::from(screen.first) < screen.lines.len());
        screen.press(key(KeyCode::Home));
        screen.press(key(KeyCode::Up));
        assert_eq!(screen.first, 0);
        assert_eq!(screen.press(key(KeyCode::Char('q'))), TopKey::End);
    }
}
