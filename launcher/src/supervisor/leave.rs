//! The end of a run: what the command left behind that runs later, and the gateway's closing
//! words.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::poll::{PollFd, PollFlags, poll};
use outgate_handoff::{LINE_BYTES_MAX, PATH_BYTES_MAX, SUMMARY_LINES_MAX, ToGateway};
use outgate_policy::printable;

use super::{Farewell, ServedCalls, Supervisor};
use crate::gateway_link::GatewayLink;
use crate::leftovers::{KeptLeftovers, LeftoverLook, LeftoverWatch, LeftoversMode, lines};
use crate::options::Summary;

/// How long the gateway may take for its closing words.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest single wait for them, in milliseconds.
const FAREWELL_WAIT_MS: u16 = 50;
/// The status of a run that left something behind, where that was asked for.
const LEFT_STATUS: u8 = 3;

/// What is looked for at the end of a run, and what is done about it.
#[derive(Debug)]
pub struct Leaving {
    /// What was there before.
    pub watch: LeftoverWatch,
    /// What is done.
    pub mode: LeftoversMode,
    /// Name of the sandbox.
    pub run: String,
    /// Where the run began.
    pub directory: PathBuf,
    /// Where what was there before is kept; nothing where the command could alter it.
    pub records: Option<PathBuf>,
}

/// What was found.
pub(super) struct Left {
    look: LeftoverLook,
    mode: LeftoversMode,
    run: String,
    directory: PathBuf,
    records: Option<PathBuf>,
}

impl Supervisor<'_> {
    /// Collects the gateway's closing words and ends it.
    pub(super) fn finish(mut self) -> ServedCalls {
        self.alarm.stop();
        let status = self.over.unwrap_or(125);
        let left = self
            .leaving
            .take()
            .map(|leaving| self.look_for_left(leaving));
        if matches!(self.link, GatewayLink::Open(_)) {
            self.tell(&ToGateway::Finish { status }, Vec::new());
            let until = Instant::now().checked_add(SUMMARY_TIMEOUT);
            while self.summary.is_none()
                && matches!(self.link, GatewayLink::Open(_))
                && until.is_some_and(|until| Instant::now() < until)
            {
                self.wait_for_gateway();
                self.link.flush();
                self.hear();
            }
        }
        let is_nothing = self.summary.as_ref().is_none_or(String::is_empty);
        let farewell = if is_nothing {
            Farewell::Nothing
        } else {
            Farewell::Said
        };
        if let (Some(lines), Summary::Say) = (self.summary.take(), self.say_summary) {
            for line in lines.lines().take(SUMMARY_LINES_MAX) {
                self.voice.say(line);
            }
        }
        self.tell_datagrams();
        let status = left.and_then(|left| self.tell_left(left));
        self.people.end();
        if let GatewayLink::Open(open) = self.link {
            open.finish(500);
        }
        // Sockets of the command close with the supervisor.
        self.alarm.set();
        ServedCalls {
            counters: self.counters,
            farewell,
            status,
        }
    }

    /// Waits for the gateway alone, and not for long: what else is ready by now
    /// nobody takes any more, and would end every wait at once.
    fn wait_for_gateway(&self) {
        if let Some((socket, full)) = self.link.poll() {
            let mut events = PollFlags::POLLIN;
            events.set(PollFlags::POLLOUT, full);
            let _ = poll(&mut [PollFd::new(socket, events)], FAREWELL_WAIT_MS);
        }
    }

    /// Looks at what is there, now that nothing of the command runs any more, and has it
    /// recorded.
    fn look_for_left(&mut self, leaving: Leaving) -> Left {
        let look = leaving.watch.look();
        for left in &look.left {
            let frame = ToGateway::Leftover {
                kind: left.token().to_owned(),
                path: within(&printable(&left.path().to_string_lossy()), PATH_BYTES_MAX),
                detail: within(&left.detail(), LINE_BYTES_MAX),
            };
            self.tell(&frame, Vec::new());
        }
        if let Some(why) = &look.unseen {
            let frame = ToGateway::Leftover {
                kind: "incomplete".to_owned(),
                path: String::new(),
                detail: within(&printable(why), LINE_BYTES_MAX),
            };
            self.tell(&frame, Vec::new());
        }
        Left {
            look,
            mode: leaving.mode,
            run: leaving.run,
            directory: leaving.directory,
            records: leaving.records,
        }
    }

    /// Tells what was found, keeps it beside the record, and says how the run ends because
    /// of it.
    fn tell_left(&mut self, left: Left) -> Option<u8> {
        if left.look.is_clean() {
            return None;
        }
        let Left {
            look,
            mode,
            run,
            directory,
            records,
        } = left;
        let stem = self.stem();
        let records = records.filter(|_| !look.left.is_empty());
        let told = |kept: Option<&Path>| lines(&look, &directory, kept);
        let (mut with, without) = (told(records.as_deref()), told(None));
        if let Some(records) = records {
            let kept = KeptLeftovers::write(look, &directory, (&records, &stem), &run);
            if kept.is_err() {
                with = without;
            }
        }
        if self.say_summary == Summary::Say || mode == LeftoversMode::Fail {
            for line in with {
                self.voice.say(&line);
            }
        }
        match mode {
            LeftoversMode::Fail => Some(LEFT_STATUS),
            LeftoversMode::Tell | LeftoversMode::Off => None,
        }
    }

    /// What the files of this run are called: as its record, if it has one of its own.
    fn stem(&self) -> String {
        let record = self.record.as_deref().map(Path::new);
        let own = record.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        let stem = own.and_then(|path| path.file_stem()?.to_str());
        // Records of runs begin with the time; what the user calls a file may be anything.
        if let Some(stem) = stem.filter(|stem| stem.starts_with("20")) {
            return stem.to_owned();
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.unwrap_or_default().as_secs();
        format!("run-{seconds}-{}", std::process::id())
    }
}

/// A text cut at a character.
fn within(text: &str, bytes_max: usize) -> String {
    let end = text.floor_char_boundary(bytes_max);
    text.get(..end).unwrap_or_default().to_owned()
}
