//! Questions on a whole screen: a list, what there is to know of one of them, and a key for
//! each answer. All text is printable ASCII before it comes here to be drawn. What a key
//! answers is the question that stood there for a while: one that moved into the place of
//! another is looked at first.

mod drawn;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outgate_policy::printable;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::HEAR;
use super::answer::{GrantKind, RuleKind, Said};
use super::desk::{Desk, DeskEvent};
use super::known::KnownHosts;
use crate::duration::seconds;

/// How long a question stands there before a key answers it, where it took the place of
/// another: nobody reads and types faster.
const LOOK_TIME: Duration = Duration::from_millis(700);
/// Keys taken in a row before runs are heard again.
const KEYS_MAX: usize = 64;
/// Signs of a time that is typed.
const TIME_SIGNS_MAX: usize = 8;

/// What is shown, and who says so.
struct Screen {
    desk: Desk,
    known: KnownHosts,
    /// The number of the question that keys answer.
    chosen: Option<u64>,
    /// Since when it is that one, where nobody chose it.
    moved: Option<Instant>,
    rule: RuleKind,
    /// The time that is being typed.
    time: Option<String>,
    /// What happened last.
    said: String,
}

/// What comes of a key.
#[derive(Debug, PartialEq, Eq)]
enum Pressed {
    On,
    End,
}

/// Shows and answers until the person leaves.
pub(super) fn serve(desk: Desk) -> Result<(), String> {
    let broken = |error: io::Error| format!("the terminal: {error}");
    let mut screen = Screen::new(desk, KnownHosts::begin());
    // What is wrong from the beginning is said before anything is drawn over it.
    screen.hear()?;
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&ended)).map_err(broken)?;
    }
    let mut terminal = ratatui::try_init().map_err(broken)?;
    let served = loop {
        // The terminal is given back as it was.
        if ended.load(Ordering::Relaxed) {
            break Ok(());
        }
        if let Err(message) = screen.hear() {
            break Err(message);
        }
        let drawn = terminal.draw(|frame| drawn::draw(&mut screen, frame));
        if let Err(error) = drawn {
            break Err(broken(error));
        }
        match screen.take_keys() {
            Ok(Pressed::On) => {}
            Ok(Pressed::End) => break Ok(()),
            Err(error) => break Err(broken(error)),
        }
    };
    let restored = ratatui::try_restore().map_err(broken);
    served.and(restored)
}

impl Screen {
    fn new(desk: Desk, known: KnownHosts) -> Self {
        Self {
            desk,
            known,
            chosen: None,
            moved: None,
            rule: RuleKind::Narrow,
            time: None,
            said: String::new(),
        }
    }

    /// Hears the runs.
    fn hear(&mut self) -> Result<(), String> {
        for event in self.desk.turn()? {
            self.said = match event {
                DeskEvent::Watching(name) => format!("watching {}", printable(&name)),
                DeskEvent::Asked(_) => continue,
                DeskEvent::Gone(number, how) => format!("{number}: {}", printable(&how)),
                DeskEvent::Refused(message) => format!("not taken: {}", printable(&message)),
            };
        }
        self.settle();
        Ok(())
    }

    /// Chooses another question where the chosen one is gone.
    fn settle(&mut self) {
        let waiting = self.desk.waiting();
        if self.chosen.is_some_and(|own| waiting.contains_key(&own)) {
            return;
        }
        let next = self.chosen.and_then(|own| waiting.range(own..).next());
        let next = next.or_else(|| waiting.iter().next_back());
        self.chosen = next.map(|(number, _)| *number);
        self.moved = self.chosen.map(|_| Instant::now());
        self.rule = RuleKind::Narrow;
        self.time = None;
    }

    /// Takes the keys that were pressed, or waits for one for a while.
    fn take_keys(&mut self) -> io::Result<Pressed> {
        let mut wait = HEAR;
        for _ in 0..KEYS_MAX {
            if !event::poll(wait)? {
                break;
            }
            wait = Duration::ZERO;
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
                && self.press(key) == Pressed::End
            {
                return Ok(Pressed::End);
            }
        }
        Ok(Pressed::On)
    }

    fn press(&mut self, key: KeyEvent) -> Pressed {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if with_control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Pressed::End;
        }
        if self.time.is_some() {
            self.type_time(key.code);
            return Pressed::On;
        }
        match key.code {
            KeyCode::Char('q') => return Pressed::End,
            KeyCode::Down | KeyCode::Char('j') => self.go(Direction::Down),
            KeyCode::Up | KeyCode::Char('k') => self.go(Direction::Up),
            KeyCode::Char('h') => self.turn_rule(),
            KeyCode::Char('d') => self.answer(Said::Deny),
            KeyCode::Char('o') => self.grant(GrantKind::Once),
            KeyCode::Char('r') => self.grant(GrantKind::Run),
            KeyCode::Char('a') => self.grant(GrantKind::Always),
            KeyCode::Char('t') if self.chosen.is_some() => self.time = Some("10m".to_owned()),
            _ => {}
        }
        Pressed::On
    }

    fn go(&mut self, direction: Direction) {
        let waiting = self.desk.waiting();
        let Some(own) = self.chosen else {
            return;
        };
        let next = match direction {
            Direction::Down => waiting.range(own.saturating_add(1)..).next(),
            Direction::Up => waiting.range(..own).next_back(),
        };
        if let Some((number, _)) = next {
            self.chosen = Some(*number);
            self.moved = None;
            self.rule = RuleKind::Narrow;
        }
    }

    /// Takes the other rule of the question, where there is one.
    fn turn_rule(&mut self) {
        let waiting = self.chosen.and_then(|own| self.desk.waiting().get(&own));
        let Some(waiting) = waiting else {
            return;
        };
        self.rule = match self.rule {
            RuleKind::Narrow if waiting.question.broad.is_empty() => {
                "there is no broader rule to give".clone_into(&mut self.said);
                RuleKind::Narrow
            }
            RuleKind::Narrow => RuleKind::Host,
            RuleKind::Host => RuleKind::Narrow,
        };
    }

    fn type_time(&mut self, key: KeyCode) {
        let Some(time) = &mut self.time else {
            return;
        };
        match key {
            KeyCode::Esc => self.time = None,
            KeyCode::Backspace => drop(time.pop()),
            KeyCode::Char(sign) if sign.is_ascii_alphanumeric() && time.len() < TIME_SIGNS_MAX => {
                time.push(sign);
            }
            KeyCode::Enter => match seconds(time) {
                Ok(seconds) => {
                    self.time = None;
                    self.grant(GrantKind::For(seconds));
                }
                Err(message) => self.said = message,
            },
            _ => {}
        }
    }

    fn grant(&mut self, kind: GrantKind) {
        self.answer(Said::Grant(kind, self.rule));
    }

    fn answer(&mut self, said: Said) {
        let Some(number) = self.chosen else {
            return;
        };
        if self.moved.is_some_and(|since| since.elapsed() < LOOK_TIME) {
            self.said = format!("{number} has come to this place just now: look, and press again");
            return;
        }
        self.said = match self.desk.say(number, said) {
            Ok(()) => format!("{number}: answered"),
            Err(message) => message,
        };
    }
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Up,
    Down,
}

#[cfg(test)]
mod tests {
    use outgate_launcher::runs::OpenQuestion;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn question(subject: &str, broad: &str) -> OpenQuestion {
        OpenQuestion {
            subject: subject.to_owned(),
            narrow: subject.to_owned(),
            broad: broad.to_owned(),
            ..OpenQuestion::default()
        }
    }

    fn screen() -> Screen {
        Screen::new(Desk::new(None, None), KnownHosts::none())
    }

    fn drawn_at(screen: &mut Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| drawn::draw(screen, frame)).unwrap();
        terminal.backend().to_string()
    }

    fn press(screen: &mut Screen, keys: &str) {
        for key in keys.chars() {
            screen.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
        }
    }

    #[test]
    fn any_size_is_drawn_and_hostile_names_are_plain_signs() {
        let mut screen = screen();
        for number in 0..40 {
            let subject = format!("GET http://a.test/{number}\u{1b}[2J\r\n\u{202e}");
            screen.desk.put(question(&subject, "http://a.test"));
        }
        screen.settle();
        for width in [1, 2, 10, 20, 40, 80, 200] {
            for height in [1, 2, 3, 5, 8, 24, 60] {
                let text = drawn_at(&mut screen, width, height);
                let is_sign = |sign: char| (' '..='~').contains(&sign) || sign == '\n';
                assert!(
                    text.chars().all(|sign| is_sign(sign) || sign == '\u{2500}'),
                    "{text}"
                );
            }
        }
        let text = drawn_at(&mut screen, 40, 16);
        assert!(
            text.contains("40 open") && text.contains("d deny"),
            "{text}"
        );
    }

    #[test]
    fn a_key_answers_what_was_there_and_not_what_took_its_place() {
        let mut screen = screen();
        let first = screen
            .desk
            .put(question("GET http://a.test/1", "http://a.test"));
        let second = screen.desk.put(question("GET http://a.test/2", ""));
        screen.settle();
        assert_eq!(screen.chosen, Some(second));
        press(&mut screen, "r");
        assert!(screen.said.contains("just now"), "{}", screen.said);
        // Who goes to a question looks at it.
        press(&mut screen, "kr");
        assert_eq!(screen.chosen, Some(first));
        assert!(screen.said.contains("the run is over"), "{}", screen.said);
        // A question that comes moves nothing.
        screen.desk.put(question("GET http://a.test/3", ""));
        screen.settle();
        assert_eq!(screen.chosen, Some(first));
        press(&mut screen, "h");
        assert_eq!(screen.rule, RuleKind::Host);
        press(&mut screen, "j");
        assert_eq!(screen.rule, RuleKind::Narrow);
        press(&mut screen, "h");
        assert!(screen.said.contains("no broader rule"), "{}", screen.said);
    }

    #[test]
    fn a_time_is_typed_and_bounded() {
        let mut screen = screen();
        press(&mut screen, "t");
        assert_eq!(screen.time, None);
        screen.desk.put(question("GET http://a.test/1", ""));
        screen.settle();
        press(&mut screen, "t0000000000q");
        assert_eq!(screen.time.as_deref(), Some("10m00000"));
        screen.press(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
        assert!(screen.said.contains("write a number"), "{}", screen.said);
        screen.press(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
        assert_eq!(screen.time, None);
        let leave = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(screen.press(leave), Pressed::End);
    }
}
