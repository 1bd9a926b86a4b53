//! `outgate approve`: what runs started with `--ask` ask, and what a person, or a program of
//! theirs, says to it. Lines in, lines out; what a rule may be, the run's launcher says.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use outgate_launcher::runs::{
    self, GrantRequest, GrantUses, OpenQuestion, PersonAnswer, Watched, WatchedWord,
};
use outgate_launcher::text::quoted;
use outgate_policy::printable;

use crate::duration::seconds;
use crate::own_words;
use crate::report;
use crate::runs::FAILED;

pub(crate) const EXAMPLES: &str = "\
Examples:
  outgate run --name agent --ask -- agent        in one terminal
  outgate approve                                in another: questions of all your runs
  outgate approve agent --always agent.toml      `always` adds a rule to this file
  outgate approve agent --with ./decide          a program answers

Answers, each a line with the number of the question:
  1 once        this one request
  1 run         what the narrow rule allows, as long as the run
  1 10m         the same for a time
  1 host run    the rule for all of the host, in the place of the narrow one
  1 always      as `run`, and a line in the file of --always
  1 deny        no, and it is not asked again in this run

A program gets one JSON object on a line for each question, and answers with one on a line:
  {\"id\":1,\"run\":\"agent\",\"asks\":\"GET https://api.example.org/x\",\"narrow\":\"GET https://api.example.org/x\",
   \"host\":\"https://api.example.org\",\"program\":\"/usr/bin/curl\",\"pid\":7,\"parents\":[\"/bin/sh\"]}
  {\"id\":1,\"answer\":\"deny\"}      or \"once\", \"run\", a time as \"10m\"; \"rule\":\"host\" for that of the host

What a command proposes (http://outgate.invalid/ inside of its run) has \"says\" besides: its own words, and no more.
It may say yes only to what no rule decides: what a rule denies is never asked.";

/// Longest line of a person or a program.
const LINE_BYTES_MAX: u64 = 16 * 1024;
/// How often runs that began since are looked for.
const LOOK: Duration = Duration::from_secs(1);
/// How often runs are heard.
const HEAR: Duration = Duration::from_millis(50);

/// Answer what runs with --ask ask
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Approve {
    /// The run, as `outgate ps` shows it [default: all of yours]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Where `always` adds rules: a policy file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "with")]
    always: Option<PathBuf>,
    /// Have a program answer: run by `sh -c`, with questions on its standard input
    #[arg(long, value_name = "CMD")]
    with: Option<String>,
}

/// A question that waits here.
struct Waiting {
    run: u32,
    id: u64,
    question: OpenQuestion,
}

/// Who answers, and what is asked.
struct Desk {
    options: Approve,
    watched: BTreeMap<u32, Watched>,
    waiting: BTreeMap<u64, Waiting>,
    numbered: u64,
    program: Option<(Child, ChildStdin)>,
}

/// What an answer says.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Deny,
    Grant(GrantKind, RuleKind),
}

#[derive(Debug, PartialEq, Eq)]
enum GrantKind {
    Once,
    Run,
    For(u32),
    Always,
}

#[derive(Debug, PartialEq, Eq)]
enum RuleKind {
    Narrow,
    Host,
}

/// Watches and answers until nobody is there to answer.
pub(crate) fn approve(options: Approve) -> ExitCode {
    match watched(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            report::wrong(&message);
            ExitCode::from(FAILED)
        }
    }
}

fn watched(options: Approve) -> Result<(), String> {
    let (program, lines) = match &options.with {
        None => (None, lines(io::stdin())),
        Some(command) => {
            let mut child = Command::new("/bin/sh")
                .args(["-c", command])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|error| format!("`{}`: {error}", printable(command)))?;
            let (input, output) = (child.stdin.take(), child.stdout.take());
            let (input, output) = input.zip(output).ok_or("the program has no pipes")?;
            (Some((child, input)), lines(output))
        }
    };
    let mut desk = Desk {
        options,
        watched: BTreeMap::new(),
        waiting: BTreeMap::new(),
        numbered: 0,
        program,
    };
    let served = desk.serve(&lines);
    if let Some((mut child, input)) = desk.program.take() {
        drop(input);
        drop(child.kill());
        drop(child.wait());
    }
    served
}

/// Lines that wait to be taken, at most: who writes faster waits.
const LINES_MAX: usize = 16;

/// The lines of somebody, as they come; each whole and not too long.
fn lines(from: impl io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = sync_channel(LINES_MAX);
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        loop {
            let mut line = Vec::new();
            let read = io::Read::take(&mut from, LINE_BYTES_MAX).read_until(b'\n', &mut line);
            if !matches!(read, Ok(1..)) || line.last() != Some(&b'\n') {
                return;
            }
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
        }
    });
    lines
}

impl Desk {
    fn serve(&mut self, lines: &Receiver<String>) -> Result<(), String> {
        let mut looked: Option<Instant> = None;
        loop {
            if looked.is_none_or(|since| since.elapsed() >= LOOK) {
                self.look()?;
                if looked.is_none() {
                    self.is_anybody()?;
                }
                looked = Some(Instant::now());
            }
            self.hear()?;
            match lines.recv_timeout(HEAR) {
                Ok(line) => {
                    if let Err(message) = self.say(line.trim()) {
                        report::line(&message);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Looks for runs.
    fn look(&mut self) -> Result<(), String> {
        let found = runs::list().map_err(|error| format!("the runs of this machine: {error}"))?;
        let named = self.options.name.clone();
        let pid = named.as_ref().and_then(|name| name.parse::<u32>().ok());
        let wanted = found.into_iter().filter(|run| {
            let name = named.as_ref();
            name.is_none_or(|name| pid == Some(run.pid) || run.is_called(name))
        });
        for run in wanted {
            if !self.watched.contains_key(&run.pid)
                && let Ok(watched) = run.watch()
            {
                self.watched.insert(run.pid, watched);
            }
        }
        Ok(())
    }

    /// A run that is named must be there.
    fn is_anybody(&self) -> Result<(), String> {
        match &self.options.name {
            Some(name) if self.watched.is_empty() => Err(format!(
                "no run of yours is called `{}`; `outgate ps` lists them",
                printable(name)
            )),
            _ => Ok(()),
        }
    }

    /// Hears what runs say.
    fn hear(&mut self) -> Result<(), String> {
        let mut over = Vec::new();
        let mut questions = Vec::new();
        for (pid, watched) in &self.watched {
            loop {
                match watched.receive() {
                    WatchedWord::Nothing => break,
                    WatchedWord::Begun => {
                        report::line(&format!("watching {}", printable(&watched.name)));
                    }
                    WatchedWord::Question(id, question) => questions.push((*pid, id, question)),
                    WatchedWord::Gone(id, how) => {
                        let is_it = |own: &&u64| {
                            self.waiting
                                .get(own)
                                .is_some_and(|own| own.run == *pid && own.id == id)
                        };
                        let number = self.waiting.keys().find(is_it).copied();
                        if let Some(number) = number {
                            self.waiting.remove(&number);
                            report::line(&format!("{number}: {}", printable(&how)));
                        }
                        // Asked and answered before it was shown.
                        questions.retain(|(run, own, _)| (*run, *own) != (*pid, id));
                    }
                    WatchedWord::Refused(message) if self.options.name.is_some() => {
                        report::line(&format!("not taken: {}", printable(&message)));
                    }
                    WatchedWord::Refused(_) => {}
                    WatchedWord::Over => {
                        over.push(*pid);
                        break;
                    }
                }
            }
        }
        for (run, id, question) in questions {
            self.ask((run, id), question)?;
        }
        for pid in over {
            self.watched.remove(&pid);
            self.waiting.retain(|_, own| own.run != pid);
            if self.options.name.is_some() {
                return Err("the run asks nobody, or is over".to_owned());
            }
        }
        Ok(())
    }

    /// Puts a question to whoever answers.
    fn ask(&mut self, (run, id): (u32, u64), question: OpenQuestion) -> Result<(), String> {
        self.numbered = self.numbered.saturating_add(1);
        let number = self.numbered;
        let name = self.watched.get(&run).map(|own| own.name.clone());
        let name = name.unwrap_or_default();
        if let Some((_, input)) = &mut self.program {
            let mut line = json(number, &name, &question);
            line.push('\n');
            let written = input
                .write_all(line.as_bytes())
                .and_then(|()| input.flush());
            written.map_err(|error| format!("the program does not read: {error}"))?;
        } else {
            for line in shown(number, &name, &question) {
                report::line(&line);
            }
        }
        self.waiting.insert(number, Waiting { run, id, question });
        Ok(())
    }

    /// Takes an answer.
    fn say(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        let (number, said) = match &self.program {
            None => parsed(line)?,
            Some(_) => parsed_json(line)?,
        };
        let waiting = self.waiting.get(&number);
        let waiting = waiting.ok_or_else(|| format!("{number}: no such question waits"))?;
        let watched = self.watched.get(&waiting.run);
        let watched = watched.ok_or_else(|| format!("{number}: the run is over"))?;
        let (kind, rule) = match said {
            Said::Deny => return watched.answer(waiting.id, PersonAnswer::Deny),
            Said::Grant(kind, RuleKind::Narrow) => (kind, &waiting.question.narrow),
            Said::Grant(kind, RuleKind::Host) => (kind, &waiting.question.broad),
        };
        if rule.is_empty() {
            return Err(format!(
                "{number}: that rule may not be shown; the other one may be"
            ));
        }
        if kind == GrantKind::Always {
            let Some(file) = &self.options.always else {
                return Err(format!("{number}: --always FILE says where a rule is kept"));
            };
            keep(file, rule).map_err(|error| format!("{number}: {}: {error}", file.display()))?;
        }
        let request = GrantRequest {
            rule: rule.clone(),
            seconds: match kind {
                GrantKind::For(seconds) => seconds,
                GrantKind::Once | GrantKind::Run | GrantKind::Always => 0,
            },
            uses: match kind {
                GrantKind::Once => GrantUses::Once,
                GrantKind::Run | GrantKind::For(_) | GrantKind::Always => GrantUses::All,
            },
        };
        watched.answer(waiting.id, PersonAnswer::Grant(request))
    }
}

/// Adds a rule to a policy file, as a table of its own at the end.
fn keep(file: &Path, rule: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(format!("\n[[allow]]\nrule = {}\n", quoted(rule)).as_bytes())
}

/// A question in lines.
fn shown(number: u64, run: &str, question: &OpenQuestion) -> Vec<String> {
    let process = &question.process;
    let program = match process.executable.as_str() {
        "" => "a program that nobody may read",
        program => program,
    };
    let mut lines = vec![
        format!(
            "{number}: {} {} {}",
            printable(run),
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
    lines.push(format!(
        "   {number} once | {number} run | {number} 10m | {number} host run | {number} deny"
    ));
    lines
}

fn json(number: u64, run: &str, question: &OpenQuestion) -> String {
    let process = &question.process;
    let parents = process.parents.iter();
    let parents: Vec<String> = parents.map(|own| printable(&own.executable)).collect();
    let mut value = serde_json::json!({
        "id": number,
        "run": printable(run),
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

/// `1 once`, `1 host 10m`, `1 deny`.
fn parsed(line: &str) -> Result<(u64, Said), String> {
    let mut words = line.split_whitespace();
    let number = words.next().unwrap_or_default();
    let wrong = || "write the number of a question and once, run, 10m, always or deny".to_owned();
    let number = number.parse().map_err(|_| wrong())?;
    let mut word = words.next().ok_or_else(wrong)?;
    let mut rule = RuleKind::Narrow;
    if word == "host" {
        rule = RuleKind::Host;
        word = words.next().ok_or_else(wrong)?;
    }
    if words.next().is_some() {
        return Err(wrong());
    }
    said(word, rule)
        .map(|said| (number, said))
        .ok_or_else(wrong)
}

fn parsed_json(line: &str) -> Result<(u64, Said), String> {
    let wrong = || format!("the program said what is no answer: {}", printable(line));
    let value: serde_json::Value = serde_json::from_str(line).map_err(|_| wrong())?;
    let number = value.get("id").and_then(serde_json::Value::as_u64);
    let word = value.get("answer").and_then(serde_json::Value::as_str);
    let rule = match value.get("rule").map(serde_json::Value::as_str) {
        None | Some(Some("narrow")) => RuleKind::Narrow,
        Some(Some("host")) => RuleKind::Host,
        Some(_) => return Err(wrong()),
    };
    let (number, word) = number.zip(word).ok_or_else(wrong)?;
    // Files are for a person to fill.
    let said = said(word, rule).filter(|said| !matches!(said, Said::Grant(GrantKind::Always, _)));
    said.map(|said| (number, said)).ok_or_else(wrong)
}

fn said(word: &str, rule: RuleKind) -> Option<Said> {
    let kind = match word {
        "deny" => return (rule == RuleKind::Narrow).then_some(Said::Deny),
        "once" => GrantKind::Once,
        "run" => GrantKind::Run,
        "always" => GrantKind::Always,
        time => GrantKind::For(seconds(time).ok()?),
    };
    Some(Said::Grant(kind, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_nothing_else_is_one() {
        let narrow = |kind| Said::Grant(kind, RuleKind::Narrow);
        for (line, read) in [
            ("1 deny", Some((1, Said::Deny))),
            ("12 once", Some((12, narrow(GrantKind::Once)))),
            ("1 run", Some((1, narrow(GrantKind::Run)))),
            ("1 10m", Some((1, narrow(GrantKind::For(600))))),
            ("1 always", Some((1, narrow(GrantKind::Always)))),
            (
                "1 host 1h",
                Some((1, Said::Grant(GrantKind::For(3600), RuleKind::Host))),
            ),
            ("1 host deny", None),
            ("1", None),
            ("once", None),
            ("1 yes please", None),
            ("1 once more", None),
            ("-1 once", None),
        ] {
            assert_eq!(parsed(line).ok(), read, "{line}");
        }
        for (line, read) in [
            (r#"{"id":1,"answer":"deny"}"#, Some((1, Said::Deny))),
            (
                r#"{"id":1,"answer":"10m","rule":"host"}"#,
                Some((1, Said::Grant(GrantKind::For(600), RuleKind::Host))),
            ),
            (
                r#"{"id":1,"answer":"once","rule":"narrow"}"#,
                Some((1, narrow(GrantKind::Once))),
            ),
            (r#"{"id":1,"answer":"always"}"#, None),
            (r#"{"id":1,"answer":"once","rule":"*"}"#, None),
            (r#"{"id":1,"answer":"once","rule":1}"#, None),
            (r#"{"id":-1,"answer":"once"}"#, None),
            (r#"{"answer":"once"}"#, None),
            ("once", None),
        ] {
            assert_eq!(parsed_json(line).ok(), read, "{line}");
        }
    }

    #[test]
    fn a_question_shows_no_sign_that_a_terminal_obeys() {
        let question = OpenQuestion {
            subject: "GET http://a.test/\u{1b}[2J\r\n2: other".to_owned(),
            narrow: "x\u{7}".to_owned(),
            broad: "\u{202e}y".to_owned(),
            words: "so\u{1b}[2J\"\n2: other".to_owned(),
            ..OpenQuestion::default()
        };
        let lines = shown(1, "a\nb", &question);
        let text = lines.join("\n");
        assert!(
            text.chars()
                .all(|sign| sign == '\n' || (' '..='~').contains(&sign)),
            "{text}"
        );
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(!json(1, "a\nb", &question).contains(char::is_control));
    }
}
