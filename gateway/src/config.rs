//! The settings of a gateway that serves one launcher or many, from its
//! arguments. Opens the place of the records; reads nothing else.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;

use crate::{AuditTarget, Named, ServeError};

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

/// Files about TLS that the gateway reads before it confines itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsFiles {
    /// `--upstream-ca FILE`: certificates to trust beside the system's, in PEM.
    pub upstream_ca: Vec<PathBuf>,
    /// `--authority DIR`: the user's own authority, for all sessions.
    pub authority: Option<PathBuf>,
    /// `--client-cert HOST CERTIFICATE KEY`.
    pub clients: Vec<ClientFiles>,
}

/// What is presented to one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFiles {
    /// The host: a name or an address.
    pub host: String,
    /// The certificate and those behind it, in PEM.
    pub certificate: PathBuf,
    /// The key, in PEM; perhaps the same file.
    pub key: PathBuf,
}

/// `serve` with an inherited socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Private {
    /// Number of the descriptor.
    pub handoff: RawFd,
    /// Where records go.
    pub records: Records,
    /// Files about TLS.
    pub tls: TlsFiles,
    /// Secrets to read, as `--secret NAME=SOURCE`.
    pub secrets: Vec<Named>,
    /// The user's own secrets to look for.
    pub known: Known,
}

/// Where the user's own secrets are looked up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// `--known on`: in the environment and in well-known files.
    pub own: Own,
    /// `--known-values FILE`: in a list.
    pub list: Option<PathBuf>,
    /// `--canaries on`: whether false ones are made as well.
    pub canaries: Plants,
}

/// Whether canaries are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Plants {
    /// They are.
    Yes,
    /// They are not.
    #[default]
    No,
}

/// Whether the user's own places are looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Own {
    /// They are.
    Read,
    /// They are not.
    #[default]
    Left,
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
    /// Files about TLS.
    pub tls: TlsFiles,
    /// `--known-values FILE`: secrets to look for in all sessions.
    pub list: Option<PathBuf>,
}

/// `authority BUILD create DIR NAME DAYS [DOMAIN]...` and `authority BUILD show
/// DIR [json]`: `outgate ca` read and checked what people write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authority {
    /// Make one.
    Create(PathBuf, outgate_ca::Request),
    /// Describe one.
    Show(PathBuf, Shape),
}

/// How a description is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// `keep` with an inherited socket: the keeper of secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Number of the descriptor.
    pub handoff: RawFd,
    /// Secrets to look at.
    pub secrets: Vec<Named>,
}

/// What the arguments ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Serve one launcher.
    Serve(Private),
    /// Serve whoever connects.
    Share(Shared),
    /// Make or describe the user's own authority.
    Authority(Authority),
    /// `detectors BUILD FILE...`: judge the detectors of these policy files.
    Detectors(Vec<PathBuf>),
    /// Be the origin of `outgate check --clients`.
    Trial,
    /// Keep secrets for a gateway.
    Keep(Kept),
    /// Say which build this is.
    Version,
    /// Say how it is used.
    Help,
}

/// How it is used.
pub const USAGE: &str = "\
usage: outgate-gateway serve --handoff-fd N [--audit FILE | --audit-dir DIR]
       outgate-gateway share --handoff-fd N --listen-fd N [--audit FILE | --audit-dir DIR]
       both: [--upstream-ca FILE]... [--authority DIR] [--client-cert HOST CERTIFICATE KEY]...
             [--known-values FILE]
       serve: [--secret NAME=SOURCE]... [--known on] [--canaries on]
       outgate-gateway authority BUILD create DIR NAME DAYS [DOMAIN]...
       outgate-gateway authority BUILD show DIR [json]
       outgate-gateway detectors BUILD FILE...
       outgate-gateway trial BUILD
       outgate-gateway --version

`outgate run`, `gateway`, `ca`, `policy` and `check` start this program by themselves.";

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
                tls: options.tls,
                secrets: options.secrets,
                known: options.known,
            }))
        }
        Some("share") => {
            let options = options(arguments)?;
            if options.known.own == Own::Read || options.known.canaries == Plants::Yes {
                return Err("`--known` and `--canaries` go with `serve`".to_owned());
            }
            if !options.secrets.is_empty() {
                return Err("`--secret` goes with `serve`".to_owned());
            }
            Ok(Request::Share(Shared {
                handoff: options.handoff.ok_or("`--handoff-fd` is missing")?,
                listener: options.listener.ok_or("`--listen-fd` is missing")?,
                records: options.records,
                tls: options.tls,
                list: options.known.list,
            }))
        }
        Some("detectors") => {
            same_build(&mut arguments)?;
            Ok(Request::Detectors(arguments.map(PathBuf::from).collect()))
        }
        Some("trial") => same_build(&mut arguments).map(|()| Request::Trial),
        Some("authority") => authority(&mut arguments).map(Request::Authority),
        Some("keep") => {
            let options = options(arguments)?;
            Ok(Request::Keep(Kept {
                handoff: options.handoff.ok_or("`--handoff-fd` is missing")?,
                secrets: options.secrets,
            }))
        }
        Some(other) => Err(format!("unknown command `{other}`")),
        None => Err("no command".to_owned()),
    }
}

/// Nothing is negotiated: both programs come from one build.
fn same_build(arguments: &mut dyn Iterator<Item = OsString>) -> Result<(), String> {
    let own = env!("CARGO_PKG_VERSION");
    let build = arguments.next().ok_or("the build is missing")?;
    if build == own {
        return Ok(());
    }
    let build = build.to_string_lossy();
    Err(format!(
        "outgate {build} and outgate-gateway {own} are different builds; install both from one \
         release"
    ))
}

fn authority(arguments: &mut dyn Iterator<Item = OsString>) -> Result<Authority, String> {
    same_build(arguments)?;
    let mut next = |what: &str| arguments.next().ok_or_else(|| format!("{what} is missing"));
    let word = next("`create` or `show`")?;
    let directory = PathBuf::from(next("the directory")?);
    match word.to_str() {
        Some("create") => {
            let name = next("the name")?.to_string_lossy().into_owned();
            let days = next("the number of days")?;
            let days = days.to_string_lossy().parse();
            let days = days.map_err(|_| "the days are no number".to_owned())?;
            let permitted = arguments.map(|domain| domain.to_string_lossy().into_owned());
            let request = outgate_ca::Request {
                name,
                permitted: permitted.collect(),
                days,
            };
            Ok(Authority::Create(directory, request))
        }
        Some("show") => match arguments.next() {
            None => Ok(Authority::Show(directory, Shape::Text)),
            Some(word) if word == "json" => Ok(Authority::Show(directory, Shape::Json)),
            Some(word) => Err(format!("unknown word `{}`", word.to_string_lossy())),
        },
        _ => Err(format!("unknown word `{}`", word.to_string_lossy())),
    }
}

#[derive(Debug, Default)]
struct Options {
    handoff: Option<RawFd>,
    listener: Option<RawFd>,
    records: Records,
    tls: TlsFiles,
    secrets: Vec<Named>,
    known: Known,
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
            "--upstream-ca" => options.tls.upstream_ca.push(value.into()),
            "--authority" => options.tls.authority = Some(value.into()),
            "--client-cert" => {
                let missing = || format!("`{option}` needs a host and two files");
                options.tls.clients.push(ClientFiles {
                    host: value.to_string_lossy().into_owned(),
                    certificate: arguments.next().ok_or_else(missing)?.into(),
                    key: arguments.next().ok_or_else(missing)?.into(),
                });
            }
            "--secret" => {
                let named = value.to_str().and_then(Named::parse);
                options
                    .secrets
                    .push(named.ok_or("`--secret` takes NAME=SOURCE")?);
            }
            "--known" if value == "on" => options.known.own = Own::Read,
            "--canaries" if value == "on" => options.known.canaries = Plants::Yes,
            "--known-values" => options.known.list = Some(value.into()),
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
                tls: TlsFiles::default(),
                secrets: Vec::new(),
                known: Known::default(),
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
                tls: TlsFiles::default(),
                list: None,
            }))
        );
        assert_eq!(parsed("--version"), Ok(Request::Version));
        let own = env!("CARGO_PKG_VERSION");
        let made = parsed(&format!("authority {own} create /d n 30 a.test b.test"));
        let request = outgate_ca::Request {
            name: "n".to_owned(),
            permitted: vec!["a.test".to_owned(), "b.test".to_owned()],
            days: 30,
        };
        let made_by_hand = Authority::Create("/d".into(), request);
        assert_eq!(made, Ok(Request::Authority(made_by_hand)));
        let wrong = parsed("authority 0.0.0 show /d").unwrap_err();
        assert!(wrong.contains("different builds"), "{wrong}");
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
            "serve --handoff-fd 3 --authority",
            "serve --handoff-fd 3 --client-cert a.test /c",
            "serve --handoff-fd 3 --secret KEY",
            "serve --handoff-fd 3 --secret KEY=env",
            "share --handoff-fd 3 --listen-fd 4 --secret KEY=env:X",
            "share --handoff-fd 3 --listen-fd 4 --known on",
            "share --handoff-fd 3 --listen-fd 4 --canaries on",
            "serve --handoff-fd 3 --known maybe",
            "serve --handoff-fd 3 --canaries maybe",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
