//! A program of the user's that answers in their place: a question is one JSON object on a
//! line of its standard input, an answer one on a line of its standard output
//! (`configs/ask.schema.json`). Nobody waits for it: what it does not read in time it is not
//! asked, and what it does not answer in time is denied by who asks.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use outgate_launcher::runs::Watched;
use outgate_policy::printable;

use super::answer::parsed_json;
use super::desk::{Desk, DeskEvent, Waiting};
use super::{HEAR, lines};
use crate::report;

/// Questions that a program has not read yet: as many as one run has open at once, twice.
const UNREAD_MAX: usize = 128;
/// How often a program that ends is started again, in a row.
const AGAIN_MAX: u32 = 3;
/// One that ran so long before it ended did not end in a row.
const STEADY: Duration = Duration::from_mins(1);
/// Answers that are none are told so often, and no more.
const WRONG_SHOWN_MAX: u32 = 16;

/// Whose program it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// Its user's, who started it: when it ends, it is over.
    Once,
    /// A run's: started again when it ends.
    Again,
}

/// A program that runs.
struct Decider {
    child: Child,
    /// Towards its standard input.
    questions: SyncSender<String>,
    answers: Receiver<String>,
    began: Instant,
}

impl Drop for Decider {
    fn drop(&mut self) {
        // Dead or not by now: nothing it says is for anybody.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What a run starts for itself.
pub(super) fn of_run(command: &str, number: i32, name: Option<String>) -> Result<(), String> {
    let watched = Watched::inherited(number, name.unwrap_or_default())?;
    // What was said of the run's end is not for its user: they see it.
    let mut desk = Desk::of(watched);
    let served = serve(command, &mut desk, Stay::Again);
    let words = if desk.is_over() { Ok(()) } else { served };
    if let Err(message) = &words {
        report::wrong(message);
    }
    // With all that it started and did not end.
    outgate_launcher::runs::end_own_group();
    words
}

/// What a user starts beside runs.
pub(super) fn of_user(command: &str, mut desk: Desk) -> Result<(), String> {
    serve(command, &mut desk, Stay::Once)
}

fn serve(command: &str, desk: &mut Desk, stay: Stay) -> Result<(), String> {
    let mut decider = Decider::start(command, stay)?;
    let mut again = 0;
    let mut wrong = 0;
    loop {
        for event in desk.turn()? {
            match event {
                DeskEvent::Asked(number) => decider.ask(number, desk),
                // A run that is watched by its own start says so in its own words.
                DeskEvent::Watching(name) if stay == Stay::Once => {
                    report::line(&format!("watching {}", printable(&name)));
                }
                DeskEvent::Refused(message) if stay == Stay::Once => {
                    report::line(&format!("not taken: {}", printable(&message)));
                }
                DeskEvent::Refused(message) => {
                    tell_wrong(
                        &mut wrong,
                        &format!("not taken: {}", printable(&message)),
                        stay,
                    );
                }
                DeskEvent::Gone(number, how) if stay == Stay::Once => {
                    report::line(&format!("{number}: {}", printable(&how)));
                }
                DeskEvent::Watching(_) | DeskEvent::Gone(..) => {}
            }
        }
        match decider.answers.recv_timeout(HEAR) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                let said = parsed_json(line.trim());
                if let Err(message) = said.and_then(|(number, said)| desk.say(number, said)) {
                    tell_wrong(&mut wrong, &message, stay);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if stay == Stay::Once => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                if decider.began.elapsed() >= STEADY {
                    again = 0;
                }
                let how = decider.end();
                if again == AGAIN_MAX {
                    return Err(format!(
                        "the program of --ask-with ended again ({how}), and is not started any \
                         more: what no rule decides is denied"
                    ));
                }
                again += 1;
                report::wrong(&format!(
                    "the program of --ask-with ended ({how}); started again ({again} of {AGAIN_MAX})"
                ));
                decider = Decider::start(command, stay)?;
                for number in desk.waiting().keys() {
                    decider.ask(*number, desk);
                }
            }
        }
    }
}

/// Tells what was no answer: on the terminal of the run, or in the list of its user.
fn tell_wrong(told: &mut u32, message: &str, stay: Stay) {
    *told = told.saturating_add(1);
    if *told > WRONG_SHOWN_MAX {
        return;
    }
    match stay {
        Stay::Once => report::line(message),
        Stay::Again => report::note(&format!("--ask-with: {message}")),
    }
}

impl Decider {
    fn start(command: &str, stay: Stay) -> Result<Self, String> {
        let mut shell = Command::new("/bin/sh");
        if stay == Stay::Again {
            // The run's command may write the working directory, and put there what a
            // program reads first.
            shell.current_dir("/");
        }
        let mut child = shell
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("`{}`: {error}", printable(command)))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (mut input, output) = input.zip(output).ok_or("the program has no pipes")?;
        let (questions, unread) = sync_channel::<String>(UNREAD_MAX);
        // Who does not read keeps this thread, and nobody else.
        thread::spawn(move || {
            while let Ok(line) = unread.recv() {
                let written = input.write_all(line.as_bytes());
                if written.and_then(|()| input.flush()).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            child,
            questions,
            answers: lines(output),
            began: Instant::now(),
        })
    }

    /// Puts a question to it. One that does not read is not asked, and the question is late.
    fn ask(&self, number: u64, desk: &Desk) {
        if let Some(waiting) = desk.waiting().get(&number) {
            let mut line = json(number, waiting);
            line.push('\n');
            drop(self.questions.try_send(line));
        }
    }

    /// How it ended, now that it closed its standard output.
    fn end(&mut self) -> String {
        // Who is on the way out by then goes by its own status all the same.
        drop(self.child.kill());
        let status = self.child.wait().ok();
        let own = status.filter(|status| status.code().is_some());
        own.map_or_else(
            || "it closed its output".to_owned(),
            |status| status.to_string(),
        )
    }
}

fn json(number: u64, waiting: &Waiting) -> String {
    let question = &waiting.question;
    let process = &question.process;
    let parents = process.parents.iter();
    let parents: Vec<String> = parents.map(|own| printable(&own.executable)).collect();
    let mut value = serde_json::json!({
        "id": number,
        "run": printable(&waiting.name),
        "asks": printable(&question.subject),
        "narrow": printable(&question.narrow),
        "host": printable(&question.broad),
        "program": printable(&process.executable),
        "pid": process.pid,
        "parents": parents,
    });
    if let Some(members) = value.as_object_mut().filter(|_| !question.words.is_empty()) {
        members.insert("says".to_owned(), printable(&question.words).into());
    }
    value.to_string()
}

#[cfg(test)]
mod tests {
    use outgate_launcher::runs::OpenQuestion;

    use super::*;

    #[test]
    fn a_question_is_one_line_of_signs_that_no_terminal_obeys() {
        let waiting = Waiting::of_test(OpenQuestion {
            subject: "GET http://a.test/\u{1b}[2J\r\n2: other".to_owned(),
            narrow: "x\u{7}".to_owned(),
            broad: "\u{202e}y".to_owned(),
            ..OpenQuestion::default()
        });
        let line = json(1, &waiting);
        assert!(
            line.chars().all(|sign| (' '..='~').contains(&sign)),
            "{line}"
        );
    }
}
