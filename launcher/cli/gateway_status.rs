//! `outgate gateway status`: asks a gateway how it is, on its admin socket, and shows it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueHint};
use outgate_policy::printable;
use serde_json::Value;

use crate::report;

/// Bytes of an answer at most.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// Time for one step of the conversation.
const STEP_TIME: Duration = Duration::from_secs(5);
/// It cannot be asked, or takes no work.
const FAILED: u8 = 1;

const EXAMPLES: &str = "\
Examples:
  outgate gateway status /run/user/1000/gate
  outgate gateway status /run/user/1000/gate --json | jq .sandboxes
  curl --unix-socket /run/user/1000/gate.admin http://gateway/metrics

Exit status: 0 it serves, 1 it takes no work or cannot be asked.";

/// Show how a gateway is: sandboxes, limits, record
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusOptions {
    /// The socket of the gateway, as in `outgate run --gateway`
    #[arg(value_name = "SOCKET", value_hint = ValueHint::FilePath, required_unless_present = "admin")]
    socket: Option<PathBuf>,
    /// Its admin socket, where that lies elsewhere
    #[arg(long, value_name = "SOCKET", value_hint = ValueHint::FilePath)]
    admin: Option<PathBuf>,
    /// Show what the gateway says, as JSON
    #[arg(long)]
    json: bool,
}

/// Where the admin socket of a gateway lies if nobody says.
pub(crate) fn beside(socket: &Path) -> PathBuf {
    let mut name = OsString::from(socket);
    name.push(".admin");
    PathBuf::from(name)
}

/// Asks and shows.
pub(crate) fn status(options: &StatusOptions) -> ExitCode {
    let socket = options.socket.as_deref().map(beside);
    let Some(path) = options.admin.clone().or(socket) else {
        return report::wrong("name the socket of the gateway");
    };
    let answer = match asked(&path, "GET /status") {
        Ok(answer) => answer,
        Err(error) => return unasked(&path, &error),
    };
    let Ok(status) = serde_json::from_str::<Value>(&answer) else {
        report::wrong("the gateway's answer is no JSON");
        return ExitCode::from(FAILED);
    };
    if options.json {
        report::text(&answer);
    } else {
        report::text(&shown(&status));
    }
    if status.get("state").and_then(Value::as_str) == Some("ready") {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    }
}

/// Says that there is no answer.
pub(crate) fn unasked(path: &Path, error: &io::Error) -> ExitCode {
    let path = printable(&path.to_string_lossy());
    report::wrong_with_hint(
        &format!("no gateway says how it is at `{path}`: {error}"),
        "the gateway's own user and root may ask; --admin names another socket",
    );
    ExitCode::from(FAILED)
}

/// The content of the answer to a question, a method and a path.
pub(crate) fn asked(path: &Path, question: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(STEP_TIME))?;
    stream.set_write_timeout(Some(STEP_TIME))?;
    let question = format!("{question} HTTP/1.0\r\nHost: gateway\r\n\r\n");
    stream.write_all(question.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "it answers something else");
    let (head, content) = answer.split_once("\r\n\r\n").ok_or_else(invalid)?;
    match head.split(' ').nth(1) {
        Some("200") => {}
        // It says why in a line.
        Some("404" | "500") => return Err(io::Error::other(printable(content.trim_end()))),
        _ => return Err(invalid()),
    }
    Ok(content.to_owned())
}

/// A time in words.
fn time(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn text(value: &Value) -> String {
    printable(value.as_str().unwrap_or_default())
}

/// What is used of a limit, and what raises it.
fn share(name: &str, value: &Value) -> String {
    let (used, limit) = (number(&value["used"]), number(&value["limit"]));
    let option = text(&value["option"]);
    format!("  {name:<24} {used:>7} of {limit:<8} {option}\n")
}

/// All of it for people.
fn shown(status: &Value) -> String {
    let (policy, decisions) = (&status["policy"], &status["decisions"]);
    let head = format!(
        "{} for {} (outgate {})\npolicy {}: {} rules\n",
        text(&status["state"]),
        time(number(&status["uptime_seconds"])),
        text(&status["version"]),
        number(&policy["generation"]),
        number(&policy["rules"]),
    );
    let done = format!(
        "{} allowed, {} denied; {} bytes out, {} in; {} under way\n",
        number(&decisions["allowed"]),
        number(&decisions["denied"]),
        number(&decisions["bytes_up"]),
        number(&decisions["bytes_down"]),
        number(&status["under_way"]),
    );
    let most = |name: &str, value: &Value| {
        let (limit, option) = (number(&value["limit"]), text(&value["option"]));
        format!("  {name:<24} {:>7}    {limit:<8} {option}\n", "")
    };
    let limits = [
        "\nlimits                        used    most     raised by\n".to_owned(),
        share("sandboxes", &status["sandboxes"]),
        most("sandboxes of a user", &status["sandboxes_per_user"]),
        share("connections", &status["connections"]),
        most("connections of a user", &status["connections_per_user"]),
        most(
            "connections of a sandbox",
            &status["connections_per_sandbox"],
        ),
        share("open files", &status["open_files"]),
    ];
    let record = record(&status["record"]);
    [head, record, done, limits.concat(), users(status)].concat()
}

fn users(status: &Value) -> String {
    let listed = status["users"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let lines = listed.iter().map(|own| {
        let used = |key: &str| {
            let share = &own[key];
            format!("{} of {}", number(&share["used"]), number(&share["limit"]))
        };
        let uid = number(&own["uid"]);
        format!(
            "  user {uid}: sandboxes {}, connections {}\n",
            used("sandboxes"),
            used("connections")
        )
    });
    let lines: String = lines.collect();
    let all = number(&status["users_total"]);
    let more = all.saturating_sub(u64::try_from(listed.len()).unwrap_or(0));
    let more = if more > 0 {
        format!("  and {more} other users\n")
    } else {
        String::new()
    };
    if lines.is_empty() {
        String::new()
    } else {
        format!("\n{lines}{more}")
    }
}

fn record(record: &Value) -> String {
    let (state, path) = (text(&record["state"]), text(&record["path"]));
    let place = if path.is_empty() {
        state.clone()
    } else {
        format!("{state}, {path}")
    };
    let lost = match number(&record["lost"]) {
        0 => String::new(),
        lost => format!("; {lost} records lost"),
    };
    let fault = match text(&record["fault"]) {
        fault if fault.is_empty() => fault,
        fault => format!("; {fault}"),
    };
    format!("record: {place}{lost}{fault}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn limits_are_shown_with_what_is_used_and_what_raises_them() {
        let status = json!({
            "state": "ready", "uptime_seconds": 3700, "version": "1",
            "policy": { "generation": 2, "rules": 3 },
            "sandboxes": { "used": 4, "limit": 9, "option": "--sandboxes" },
            "users": [{ "uid": 7, "sandboxes": { "used": 4, "limit": 5 } }], "users_total": 3,
            "record": { "state": "failing", "path": "/r", "fault": "no\u{1b}[2J room", "lost": 2 },
        });
        let page = shown(&status);
        for part in [
            "ready for 1 h 1 min",
            "policy 2: 3 rules",
            "4 of 9        --sandboxes",
            "user 7: sandboxes 4 of 5",
            "and 2 other users",
            "record: failing, /r; 2 records lost; no",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains('\u{1b}'), "{page}");
        assert_eq!(beside(Path::new("/run/gate")), Path::new("/run/gate.admin"));
    }
}
