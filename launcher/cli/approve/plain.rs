//! Questions in lines, and answers in lines: for whoever has no screen, or wants none.

use std::io;
use std::sync::mpsc::RecvTimeoutError;

use outgate_policy::printable;

use super::answer::{offered, parsed};
use super::desk::{Desk, DeskEvent, Waiting};
use super::{HEAR, lines};
use crate::own_words;
use crate::report;

/// Shows and answers until standard input ends.
pub(super) fn serve(mut desk: Desk) -> Result<(), String> {
    let lines = lines(io::stdin());
    loop {
        for event in desk.turn()? {
            for line in words(&event, &desk) {
                report::line(&line);
            }
        }
        match lines.recv_timeout(HEAR) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                let said = parsed(line.trim());
                if let Err(message) = said.and_then(|(number, said)| desk.say(number, said)) {
                    report::line(&message);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn words(event: &DeskEvent, desk: &Desk) -> Vec<String> {
    match event {
        DeskEvent::Watching(name) => vec![format!("watching {}", printable(name))],
        DeskEvent::Asked(number) => {
            let waiting = desk.waiting().get(number);
            waiting.map_or_else(Vec::new, |waiting| shown(*number, waiting))
        }
        DeskEvent::Gone(number, how) => vec![format!("{number}: {}", printable(how))],
        DeskEvent::Refused(message) => vec![format!("not taken: {}", printable(message))],
    }
}

/// A question in lines.
fn shown(number: u64, waiting: &Waiting) -> Vec<String> {
    let question = &waiting.question;
    let process = &question.process;
    let program = match process.executable.as_str() {
        "" => "a program that nobody may read",
        program => program,
    };
    let mut lines = vec![
        format!(
            "{number}: {} {} {}",
            printable(&waiting.name),
            if question.words.is_empty() {
                "asks for"
            } else {
                "proposes"
            },
            printable(&question.subject)
        ),
        format!("   by     {} (process {})", printable(program), process.pid),
    ];
    for parent in &process.parents {
        lines.push(format!("   below  {}", printable(&parent.to_string())));
    }
    lines.extend(own_words::lines(&question.words));
    for (word, rule) in [("narrow", &question.narrow), ("host  ", &question.broad)] {
        if !rule.is_empty() {
            lines.push(format!("   {word} {}", printable(rule)));
        }
    }
    let offered = offered(question).into_iter();
    let offered: Vec<String> = offered.map(|word| format!("{number} {word}")).collect();
    lines.push(format!("   {}", offered.join(" | ")));
    lines
}

#[cfg(test)]
mod tests {
    use outgate_launcher::runs::OpenQuestion;

    use super::*;

    #[test]
    fn a_question_shows_no_sign_that_a_terminal_obeys() {
        let waiting = Waiting::of_test(OpenQuestion {
            subject: "GET http://a.test/\u{1b}[2J\r\n2: other".to_owned(),
            narrow: "x\u{7}".to_owned(),
            broad: "\u{202e}y".to_owned(),
            words: "so\u{1b}[2J\"\n2: other".to_owned(),
            ..OpenQuestion::default()
        });
        let lines = shown(1, &waiting);
        let text = lines.join("\n");
        assert!(
            text.chars()
                .all(|sign| sign == '\n' || (' '..='~').contains(&sign)),
            "{text}"
        );
        assert_eq!(text.lines().count(), 6, "{text}");
    }
}
