//! Reads secrets where the user keeps them: variables, files, and what commands
//! print. Runs before the gateway confines itself, and in the keeper beside it;
//! never where bytes of the network are read. No error says a byte of a value.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use outgate_policy::{NamedSecret, SecretKind, SecretSource};
use zeroize::Zeroizing;

use super::value::{Material, SecretValue, SigningKeys};
use crate::limits;

/// Why a secret cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretSourceError {
    /// The variable is not set.
    #[error("the variable {0} is not set")]
    Unset(String),
    /// The file cannot be read.
    #[error("{0}")]
    File(String, #[source] io::Error),
    /// The command cannot be started or read.
    #[error("the command `{0}`")]
    Command(String, #[source] io::Error),
    /// The command did not do what it should.
    #[error("the command `{0}` {1}")]
    Failed(String, String),
    /// What came is no secret.
    #[error("what {0} gives {1}")]
    Unfit(String, String),
}

/// Whether a later look may find another value.
pub(super) fn may_change(named: &NamedSecret) -> bool {
    !matches!(named.source, SecretSource::Variable(_))
}

/// Reads a secret.
pub(crate) fn read(named: &NamedSecret) -> Result<Material, SecretSourceError> {
    let keys_from_environment =
        named.kind == SecretKind::Aws && matches!(named.source, SecretSource::Variable(_));
    if keys_from_environment {
        return keys_of_environment();
    }
    let (text, place) = match &named.source {
        SecretSource::Variable(name) => (variable(name)?, name.clone()),
        SecretSource::File(path) => {
            let text = file(path).map_err(|error| SecretSourceError::File(path.clone(), error))?;
            (text, path.clone())
        }
        SecretSource::Command(line) => (printed(line)?, format!("the command `{line}`")),
    };
    match named.kind {
        SecretKind::Value => Ok(Material::Text(fit(trimmed(text), &place)?)),
        SecretKind::Aws => keys(&text, &place).map(Material::Keys),
    }
}

fn variable(name: &str) -> Result<Zeroizing<Vec<u8>>, SecretSourceError> {
    use std::os::unix::ffi::OsStringExt;
    let value = std::env::var_os(name).ok_or_else(|| SecretSourceError::Unset(name.to_owned()))?;
    Ok(Zeroizing::new(value.into_vec()))
}

/// Opened without waiting: a pipe nobody writes to must not hold up the run.
fn file(path: &str) -> io::Result<Zeroizing<Vec<u8>>> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)?;
    bounded(file)
}

fn bounded(from: impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    // Never grown: a copy left behind would not be overwritten.
    let mut bytes = Zeroizing::new(Vec::with_capacity(limits::SECRET_SOURCE_BYTES_MAX + 1));
    let max = u64::try_from(limits::SECRET_SOURCE_BYTES_MAX).unwrap_or(u64::MAX);
    from.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > limits::SECRET_SOURCE_BYTES_MAX {
        let what = format!("over {} bytes", limits::SECRET_SOURCE_BYTES_MAX);
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(bytes)
}

/// What a command line prints within its time. It gets no input, and its errors
/// go where outgate's do. It is started in `/`: what lies in the working directory, the
/// command of the run may have written.
fn printed(line: &str) -> Result<Zeroizing<Vec<u8>>, SecretSourceError> {
    let failed = |error| SecretSourceError::Command(line.to_owned(), error);
    let mut command = Command::new("/bin/sh");
    let mut child = command
        .args(["-c", line])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let deadline = Instant::now() + limits::SECRET_COMMAND_TIME;
    let read = match child.stdout.take() {
        Some(pipe) => bounded(DeadlinePipe { pipe, deadline }),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    };
    if read.is_err()
        && let Ok(group) = i32::try_from(child.id())
    {
        killpg(Pid::from_raw(group), Signal::SIGKILL).ok();
    }
    let status = child.wait().map_err(failed)?;
    let text = read.map_err(failed)?;
    if status.success() {
        return Ok(text);
    }
    let how = format!("ended with {status}");
    Err(SecretSourceError::Failed(line.to_owned(), how))
}

/// A pipe that is read until a deadline.
struct DeadlinePipe {
    pipe: std::process::ChildStdout,
    deadline: Instant,
}

impl Read for DeadlinePipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::os::fd::AsFd;
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = u16::try_from(left.as_millis()).unwrap_or(u16::MAX);
        let mut polled = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, left) {
            Ok(0) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "did not end within {} s",
                    limits::SECRET_COMMAND_TIME.as_secs()
                ),
            )),
            Ok(_) => self.pipe.read(buffer),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Without the line end that editors and `echo` put behind it.
fn trimmed(mut text: Zeroizing<Vec<u8>>) -> Zeroizing<Vec<u8>> {
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    if text.last() == Some(&b'\r') {
        text.pop();
    }
    text
}

/// A value that can be searched for and put anywhere in a request.
fn fit(bytes: Zeroizing<Vec<u8>>, place: &str) -> Result<SecretValue, SecretSourceError> {
    let unfit = |why: String| Err(SecretSourceError::Unfit(place.to_owned(), why));
    if bytes.is_empty() {
        return unfit("is empty".to_owned());
    }
    if bytes.len() < limits::SECRET_BYTES_MIN {
        return unfit(format!(
            "has fewer than {} bytes: so short a text stands in many places by chance",
            limits::SECRET_BYTES_MIN
        ));
    }
    if bytes.len() > limits::SECRET_BYTES_MAX {
        return unfit(format!("has more than {} bytes", limits::SECRET_BYTES_MAX));
    }
    if bytes.iter().any(u8::is_ascii_control) {
        return unfit("has more than one line, or a control character".to_owned());
    }
    if bytes.first() == Some(&b' ') || bytes.last() == Some(&b' ') {
        return unfit("begins or ends with a space".to_owned());
    }
    Ok(SecretValue::new(bytes))
}

fn keys_of_environment() -> Result<Material, SecretSourceError> {
    let get = |name: &str| fit(variable(name)?, name);
    let session = match std::env::var_os("AWS_SESSION_TOKEN") {
        Some(token) if !token.is_empty() => Some(get("AWS_SESSION_TOKEN")?),
        _ => None,
    };
    Ok(Material::Keys(SigningKeys {
        id: get("AWS_ACCESS_KEY_ID")?,
        secret: get("AWS_SECRET_ACCESS_KEY")?,
        session,
    }))
}

/// The keys that a file of credentials holds under `[default]`, or that a
/// command prints as JSON (`credential_process` of the vendor's own tools).
fn keys(text: &[u8], place: &str) -> Result<SigningKeys, SecretSourceError> {
    let unfit = |why: &str| SecretSourceError::Unfit(place.to_owned(), why.to_owned());
    let text = std::str::from_utf8(text).map_err(|_| unfit("is not UTF-8"))?;
    let found = if text.trim_start().starts_with('{') {
        of_json(text).ok_or_else(|| unfit("is no JSON object of texts"))?
    } else {
        of_sections(text)
    };
    let get = |name: &str| {
        let value = found
            .get(name)
            .ok_or_else(|| unfit("holds no pair of keys"))?;
        fit(Zeroizing::new(value.as_bytes().to_vec()), place)
    };
    let session = match found.get("aws_session_token") {
        Some(token) if !token.is_empty() => Some(get("aws_session_token")?),
        _ => None,
    };
    Ok(SigningKeys {
        id: get("aws_access_key_id")?,
        secret: get("aws_secret_access_key")?,
        session,
    })
}

type Found = BTreeMap<&'static str, Zeroizing<String>>;

const NAMES: [(&str, &str); 3] = [
    ("AccessKeyId", "aws_access_key_id"),
    ("SecretAccessKey", "aws_secret_access_key"),
    ("SessionToken", "aws_session_token"),
];

fn of_json(text: &str) -> Option<Found> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let object = value.as_object()?;
    let find = |(json, own): (&str, &'static str)| {
        let text = object.get(json)?.as_str()?;
        Some((own, Zeroizing::new(text.to_owned())))
    };
    Some(NAMES.into_iter().filter_map(find).collect())
}

fn of_sections(text: &str) -> Found {
    let mut found = Found::new();
    let mut wanted = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            wanted = section.trim_end_matches(']').trim() == "default";
        } else if let Some((key, value)) = line.split_once('=').filter(|_| wanted)
            && let Some((_, own)) = NAMES.into_iter().find(|(_, own)| *own == key.trim())
        {
            found.insert(own, Zeroizing::new(value.trim().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> Result<String, String> {
        let (kind, source) = match source.strip_prefix("aws:") {
            Some(rest) => (SecretKind::Aws, rest),
            None => (SecretKind::Value, source),
        };
        let named = NamedSecret {
            name: "KEY".to_owned(),
            kind,
            source: SecretSource::of(source).expect("a source"),
        };
        match read(&named).map_err(|error| crate::chain(&error))? {
            Material::Text(value) => Ok(String::from_utf8(value.reveal().to_vec()).unwrap()),
            Material::Keys(_) => panic!("keys"),
        }
    }

    #[test]
    fn one_line_of_a_file_or_a_command_is_a_value() {
        let file = std::env::temp_dir().join(format!("outgate-secret-{}", std::process::id()));
        let named = format!("file:{}", file.display());
        for (content, value) in [
            ("0123456789", Some("0123456789")),
            ("0123456789\n", Some("0123456789")),
            ("0123456789\r\n", Some("0123456789")),
            ("p\u{e4}ssword of mine", Some("p\u{e4}ssword of mine")),
            ("0123456789\n\n", None),
            ("01234\n56789", None),
            ("01234\u{0}56789", None),
            (" 0123456789", None),
            ("0123456", None),
            ("", None),
            ("\n", None),
        ] {
            std::fs::write(&file, content).unwrap();
            let read = text(&named);
            assert_eq!(read.as_deref().ok(), value, "{content:?} {read:?}");
            if let Err(error) = read {
                assert!(!error.contains("01234"), "{error}");
            }
        }
        std::fs::remove_file(&file).unwrap();
        assert!(text(&named).is_err());
        assert!(text("file:/dev/zero").is_err());
        assert_eq!(
            text("cmd:printf 'from %s' command").as_deref(),
            Ok("from command")
        );
        for line in [
            "false",
            "exit 3",
            "echo short",
            "true",
            "printf 0123456789; exit 1",
        ] {
            let error = text(&format!("cmd:{line}")).unwrap_err();
            assert!(!error.contains("0123456789 "), "{error}");
        }
        assert!(
            text("env:OUTGATE_NO_SUCH_VARIABLE")
                .unwrap_err()
                .contains("not set")
        );
    }

    #[test]
    fn a_pipe_nobody_writes_to_holds_up_nothing() {
        let path = std::env::temp_dir().join(format!("outgate-fifo-{}", std::process::id()));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let read = text(&format!("file:{}", path.display()));
        std::fs::remove_file(&path).unwrap();
        assert!(read.unwrap_err().contains("is empty"));
    }

    #[test]
    fn keys_are_read_as_the_vendors_tools_do() {
        let sections = "[other]\naws_access_key_id = NO\n\n[default]\naws_access_key_id=AKIAIOSFODNN7EXAMPLE\n# x\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n[more]\naws_session_token = NO";
        let json = r#"{"Version": 1, "AccessKeyId": "AKIAIOSFODNN7EXAMPLE", "SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "SessionToken": "token-of-a-session"}"#;
        for (text, session) in [(sections, None), (json, Some("token-of-a-session"))] {
            let keys = keys(text.as_bytes(), "x").unwrap();
            assert_eq!(keys.id.reveal(), b"AKIAIOSFODNN7EXAMPLE");
            assert_eq!(
                keys.secret.reveal(),
                b"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
            );
            let found = keys.session.map(|token| token.reveal().to_vec());
            assert_eq!(found.as_deref(), session.map(str::as_bytes));
        }
        for text in [
            "",
            "{}",
            "[default]",
            "[default]\naws_access_key_id = x",
            "{",
            "[]",
        ] {
            assert!(keys(text.as_bytes(), "x").is_err(), "{text}");
        }
    }
}
