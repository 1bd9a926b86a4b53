//! The settings of a gateway that serves one launcher or many, from its
//! arguments. Opens the place of the records; reads nothing else.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;

use crate::{AuditTarget, ServeError};

/// Where records go, as the arguments say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Records {
    /// Nowhere.
    #[default]
    None,
    /// `--audit FILE`.
    File(PathBuf),
    /// `--audit-dir DIR`.
    Directory(PathBuf),
}

impl Records {
    /// Opens the place, and names the directory that must stay writable.
    ///
    /// # Errors
    /// It cannot be opened or made.
    pub fn open(&self) -> Result<(AuditTarget, Option<PathBuf>), ServeError> {
        let failed = |path: &PathBuf, source| ServeError::Audit {
            path: path.display().to_string(),
            source,
        };
        match self {
            Self::None => Ok((AuditTarget::None, None)),
            Self::File(path) => {
                let target = AuditTarget::file(path.clone()).map_err(|e| failed(path, e))?;
                Ok((target, None))
            }
            Self::Directory(path) => {
                let target = AuditTarget::directory(path.clone()).map_err(|e| failed(path, e))?;
                Ok((target, Some(path.clone())))
            }
        }
    }
}

/// `serve` with an inherited socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Private {
    /// Number of the descriptor.
    pub handoff: RawFd,
    /// Where records go.
    pub records: Records,
    /// Files with certificates to trust beside the system's, in PEM.
    pub upstream_ca: Vec<PathBuf>,
}

/// `share` with an inherited socket and listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// Number of the socket that brings the policy.
    pub handoff: RawFd,
    /// Number of the listener.
    pub listener: RawFd,
    /// Where records go.
    pub records: Records,
    /// Files with certificates to trust beside the system's, in PEM.
    pub upstream_ca: Vec<PathBuf>,
}

/// What the arguments ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Serve one launcher.
    Serve(Private),
    /// Serve whoever connects.
    Share(Shared),
    /// Say which build this is.
    Version,
    /// Say how it is used.
    Help,
}

/// How it is used.
pub const USAGE: &str = "\
usage: outgate-gateway serve --handoff-fd N [--audit FILE | --audit-dir DIR]
       outgate-gateway share --handoff-fd N --listen-fd N [--audit FILE | --audit-dir DIR]
       both: [--upstream-ca FILE]...
       outgate-gateway --version

`outgate run` and `outgate gateway` start this program by themselves.";

/// Reads the arguments after the program's name.
///
/// # Errors
/// A sentence that says which argument is wrong.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, String> {
    let mut arguments = arguments.into_iter();
    let word = arguments.next();
    match word.as_ref().and_then(|word| word.to_str()) {
        Some("--version" | "-V") => Ok(Request::Version),
        Some("--help" | "-h") => Ok(Request::Help),
        Some("serve") => {
            let options = options(arguments)?;
            if options.listener.is_some() {
                return Err("`--listen-fd` goes with `share`".to_owned());
            }
            Ok(Request::Serve(Private {
                handoff: options.handoff.ok_or("`--handoff-fd` is missing")?,
                records: options.records,
                upstream_ca: options.upstream_ca,
            }))
        }
        Some("share") => {
            let options = options(arguments)?;
            Ok(Request::Share(Shared {
                handoff: options.handoff.ok_or("`--handoff-fd` is missing")?,
                listener: options.listener.ok_or("`--listen-fd` is missing")?,
                records: options.records,
                upstream_ca: options.upstream_ca,
            }))
        }
        Some(other) => Err(format!("unknown command `{other}`")),
        None => Err("no command".to_owned()),
    }
}

#[derive(Debug, Default)]
struct Options {
    handoff: Option<RawFd>,
    listener: Option<RawFd>,
    records: Records,
    upstream_ca: Vec<PathBuf>,
}

fn options(mut arguments: impl Iterator<Item = OsString>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(option) = arguments.next() {
        let option = option.to_string_lossy().into_owned();
        let value = arguments
            .next()
            .ok_or_else(|| format!("`{option}` needs a value"))?;
        let records = &mut options.records;
        match option.as_str() {
            "--handoff-fd" => options.handoff = Some(descriptor(&option, &value)?),
            "--listen-fd" => options.listener = Some(descriptor(&option, &value)?),
            "--upstream-ca" => options.upstream_ca.push(value.into()),
            "--audit" if *records == Records::None => *records = Records::File(value.into()),
            "--audit-dir" if *records == Records::None => {
                *records = Records::Directory(value.into());
            }
            "--audit" | "--audit-dir" => {
                return Err("`--audit` and `--audit-dir` name the same thing; give one".to_owned());
            }
            _ => return Err(format!("unknown option `{option}`")),
        }
    }
    Ok(options)
}

fn descriptor(option: &str, value: &OsString) -> Result<RawFd, String> {
    let text = value.to_string_lossy();
    match text.parse::<RawFd>() {
        Ok(number) if number >= 3 => Ok(number),
        _ => Err(format!(
            "`{option} {text}` is not a descriptor number from 3 on"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, String> {
        parse(
            line.split(' ')
                .filter(|word| !word.is_empty())
                .map(OsString::from),
        )
    }

    #[test]
    fn arguments_are_read_and_faults_named() {
        let private = |handoff, records| {
            Ok(Request::Serve(Private {
                handoff,
                records,
                upstream_ca: Vec::new(),
            }))
        };
        assert_eq!(parsed("serve --handoff-fd 3"), private(3, Records::None));
        assert_eq!(
            parsed("serve --audit /a --handoff-fd 3"),
            private(3, Records::File("/a".into()))
        );
        assert_eq!(
            parsed("serve --handoff-fd 3 --audit-dir /d"),
            private(3, Records::Directory("/d".into()))
        );
        assert_eq!(
            parsed("share --handoff-fd 3 --listen-fd 4 --audit /a"),
            Ok(Request::Share(Shared {
                handoff: 3,
                listener: 4,
                records: Records::File("/a".into()),
                upstream_ca: Vec::new(),
            }))
        );
        assert_eq!(parsed("--version"), Ok(Request::Version));
        for line in [
            "",
            "run",
            "serve",
            "serve --handoff-fd",
            "serve --handoff-fd 2",
            "serve --handoff-fd x",
            "serve --handoff-fd 3 --audit /a --audit-dir /d",
            "serve --handoff-fd 3 --color on",
            "serve --handoff-fd 3 --listen-fd 4",
            "share --handoff-fd 3",
            "share --listen-fd 3",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
