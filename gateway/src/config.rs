//! What the gateway's program is to do, from its arguments, and the settings of one that
//! serves, from whoever started it. Opens the place of the records; reads nothing else.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;

use outgate_handoff::settings::CANARY_SEED_BYTES;
use outgate_handoff::{GatewaySetting, RecordRotation, ShareLimit};
use outgate_policy::NamedSecret;

use crate::{AuditTarget, ServeError};

/// Where records go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Records {
    /// Nowhere.
    #[default]
    None,
    /// To a file.
    File(PathBuf),
    /// To files in a directory.
    Directory(PathBuf),
    /// To files in a directory that follow one another.
    Rotated(PathBuf, RecordRotation),
}

impl Records {
    /// Opens the place, and says in which directory files are made from then on.
    ///
    /// # Errors
    /// It cannot be opened or made.
    pub fn open(&self) -> Result<(AuditTarget, Option<RecordDirectory>), ServeError> {
        let failed = |path: &PathBuf, source| ServeError::Audit {
            path: path.display().to_string(),
            source,
        };
        match self {
            Self::None => Ok((AuditTarget::none(), None)),
            Self::File(path) => {
                let target = AuditTarget::file(path.clone()).map_err(|e| failed(path, e))?;
                Ok((target, None))
            }
            Self::Directory(path) => {
                let target = AuditTarget::directory(path.clone()).map_err(|e| failed(path, e))?;
                Ok((target, Some(RecordDirectory::Written(path.clone()))))
            }
            Self::Rotated(path, rotation) => {
                let target = AuditTarget::rotated(path.clone(), *rotation);
                let target = target.map_err(|e| failed(path, e))?;
                Ok((target, Some(RecordDirectory::ReadBack(path.clone()))))
            }
        }
    }
}

/// The one directory in which a confined gateway may make, write and remove files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordDirectory {
    /// That is all.
    Written(PathBuf),
    /// It may read them as well, to compress them.
    ReadBack(PathBuf),
}

/// Files about TLS that the gateway reads before it confines itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsFiles {
    /// Certificates to trust beside the system's, in PEM.
    pub upstream_ca: Vec<PathBuf>,
    /// The user's own authority, for all sessions.
    pub authority: Option<PathBuf>,
    /// What is presented to which host.
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

/// All that a gateway is told beside policies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GatewaySettings {
    /// Where records go.
    pub records: Records,
    /// Files about TLS.
    pub tls: TlsFiles,
    /// Secrets to read.
    pub secrets: Vec<NamedSecret>,
    /// The user's own secrets to look for.
    pub known: InventorySource,
    /// Bounds that who runs a shared gateway chose.
    pub limits: ShareLimits,
}

/// Bounds of a shared gateway in place of those that it works out itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShareLimits(pub Vec<(ShareLimit, u32)>);

impl ShareLimits {
    /// What was chosen for one of them.
    pub(crate) fn of(&self, limit: ShareLimit) -> Option<usize> {
        let chosen = self.0.iter().find(|(own, _)| *own == limit);
        chosen.and_then(|(_, value)| usize::try_from(*value).ok())
    }
}

impl GatewaySettings {
    /// Takes one; what it returns is said twice.
    pub(crate) fn take(&mut self, setting: GatewaySetting) -> Result<(), &'static str> {
        let once = |before: bool, what| if before { Err(what) } else { Ok(()) };
        let records = |own: &Self| once(own.records != Records::None, "two places for records");
        match setting {
            GatewaySetting::RecordFile(path) => {
                records(self)?;
                self.records = Records::File(path);
            }
            GatewaySetting::RecordDirectory(path) => {
                records(self)?;
                self.records = Records::Directory(path);
            }
            GatewaySetting::RotatedRecords(path, rotation) => {
                records(self)?;
                self.records = Records::Rotated(path, rotation);
            }
            GatewaySetting::UpstreamCa(path) => self.tls.upstream_ca.push(path),
            GatewaySetting::Authority(path) => {
                once(self.tls.authority.is_some(), "two authorities")?;
                self.tls.authority = Some(path);
            }
            GatewaySetting::ClientCertificate {
                host,
                certificate,
                key,
            } => self.tls.clients.push(ClientFiles {
                host,
                certificate,
                key,
            }),
            GatewaySetting::Secret(named) => self.secrets.push(named),
            GatewaySetting::OwnSecrets => self.known.own = OwnPlaces::Read,
            GatewaySetting::KnownValues(path) => {
                once(self.known.list.is_some(), "two lists of secrets")?;
                self.known.list = Some(path);
            }
            GatewaySetting::Canaries(seed) => {
                once(self.known.canaries.is_some(), "two seeds of canaries")?;
                self.known.canaries = Some(seed);
            }
            GatewaySetting::Limit(limit, value) => {
                once(self.limits.of(limit).is_some(), "one limit twice")?;
                self.limits.0.push((limit, value));
            }
            GatewaySetting::End => {}
        }
        Ok(())
    }

    /// Whether some of them are for a gateway of one run alone.
    pub(crate) fn are_of_one_run(&self) -> bool {
        let known = &self.known;
        known.own == OwnPlaces::Read || known.canaries.is_some() || !self.secrets.is_empty()
    }
}

/// `serve` with an inherited socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateCommand {
    /// Number of the descriptor.
    pub handoff: RawFd,
}

/// Where the user's own secrets are looked up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InventorySource {
    /// In the environment and in well-known files.
    pub own: OwnPlaces,
    /// In a list.
    pub list: Option<PathBuf>,
    /// What false ones are made from as well.
    pub canaries: Option<[u8; CANARY_SEED_BYTES]>,
}

/// Whether the user's own places are looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OwnPlaces {
    /// They are.
    Read,
    /// They are not.
    #[default]
    Left,
}

/// `share` with an inherited socket and listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareCommand {
    /// Number of the socket that brings the policy.
    pub handoff: RawFd,
    /// Numbers of the listeners.
    pub listeners: ListenerNumbers,
}

/// Numbers of the listeners of a shared gateway: of the first two, one at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListenerNumbers {
    /// That of the Unix socket to which launchers connect.
    pub runs: Option<RawFd>,
    /// That of the explicit proxy.
    pub proxy: Option<RawFd>,
    /// That of the one that says how it is.
    pub admin: Option<RawFd>,
    /// That of its live page.
    pub page: Option<RawFd>,
}

/// `authority BUILD create DIR NAME DAYS [DOMAIN]...` and `authority BUILD show
/// DIR [json]`: `outgate ca` read and checked what people write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorityArguments {
    /// Make one.
    Create(PathBuf, outgate_ca::AuthorityRequest),
    /// Describe one.
    Show(PathBuf, DescriptionForm),
}

/// How a description is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescriptionForm {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// `keep` with an inherited socket: the keeper of secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepCommand {
    /// Number of the descriptor.
    pub handoff: RawFd,
}

/// What the arguments ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayCommand {
    /// Serve one launcher.
    Serve(PrivateCommand),
    /// Serve whoever connects.
    Share(ShareCommand),
    /// Make or describe the user's own authority.
    Authority(AuthorityArguments),
    /// `detectors BUILD [--command NAME] FILE...`: judge the detectors of these policy files.
    Detectors(DetectorFiles),
    /// Be the origin of `outgate check --clients`.
    Trial,
    /// Keep secrets for a gateway.
    Keep(KeepCommand),
    /// Say which build this is.
    Version,
    /// Say how it is used.
    Help,
}

/// Policy files whose detectors are judged together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectorFiles {
    /// In merge order.
    pub files: Vec<PathBuf>,
    /// Of which command the last of them is the manifest; empty for one without commands.
    pub command: Option<String>,
}

/// How it is used.
pub const USAGE: &str = "\
usage: outgate-gateway serve --handoff-fd N
       outgate-gateway share --handoff-fd N [--listen-fd N] [--proxy-fd N] [--admin-fd N]
                             [--page-fd N]
       outgate-gateway authority BUILD create DIR NAME DAYS [DOMAIN]...
       outgate-gateway authority BUILD show DIR [json]
       outgate-gateway detectors BUILD [--command NAME] FILE...
       outgate-gateway trial BUILD
       outgate-gateway --version

`outgate run`, `gateway`, `ca`, `policy` and `check` start this program by themselves, and say\n\
everything else on the inherited socket.";

/// Reads the arguments after the program's name.
///
/// # Errors
/// A sentence that says which argument is wrong.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<GatewayCommand, String> {
    let mut arguments = arguments.into_iter();
    let word = arguments.next();
    match word.as_ref().and_then(|word| word.to_str()) {
        Some("--version" | "-V") => Ok(GatewayCommand::Version),
        Some("--help" | "-h") => Ok(GatewayCommand::Help),
        Some("serve") => Ok(GatewayCommand::Serve(PrivateCommand {
            handoff: options(arguments, Listener::None)?.0,
        })),
        Some("share") => {
            let (handoff, listeners) = options(arguments, Listener::Inherited)?;
            if listeners.runs.is_none() && listeners.proxy.is_none() {
                return Err("`--listen-fd` and `--proxy-fd` are missing".to_owned());
            }
            Ok(GatewayCommand::Share(ShareCommand { handoff, listeners }))
        }
        Some("detectors") => {
            same_build(&mut arguments)?;
            let mut arguments = arguments.peekable();
            let command = arguments.next_if(|word| word == "--command");
            let command = command.and_then(|_| arguments.next()?.into_string().ok());
            let files = arguments.map(PathBuf::from).collect();
            Ok(GatewayCommand::Detectors(DetectorFiles { files, command }))
        }
        Some("trial") => same_build(&mut arguments).map(|()| GatewayCommand::Trial),
        Some("authority") => authority(&mut arguments).map(GatewayCommand::Authority),
        Some("keep") => Ok(GatewayCommand::Keep(KeepCommand {
            handoff: options(arguments, Listener::None)?.0,
        })),
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

fn authority(arguments: &mut dyn Iterator<Item = OsString>) -> Result<AuthorityArguments, String> {
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
            let request = outgate_ca::AuthorityRequest {
                name,
                permitted: permitted.collect(),
                days,
            };
            Ok(AuthorityArguments::Create(directory, request))
        }
        Some("show") => match arguments.next() {
            None => Ok(AuthorityArguments::Show(directory, DescriptionForm::Text)),
            Some(word) if word == "json" => {
                Ok(AuthorityArguments::Show(directory, DescriptionForm::Json))
            }
            Some(word) => Err(format!("unknown word `{}`", word.to_string_lossy())),
        },
        _ => Err(format!("unknown word `{}`", word.to_string_lossy())),
    }
}

/// Whether a listener is inherited beside the socket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listener {
    Inherited,
    None,
}

/// The numbers of what is inherited: the socket, and perhaps listeners.
fn options(
    mut arguments: impl Iterator<Item = OsString>,
    expected: Listener,
) -> Result<(RawFd, ListenerNumbers), String> {
    let (mut handoff, mut listeners) = (None, ListenerNumbers::default());
    while let Some(option) = arguments.next() {
        let option = option.to_string_lossy().into_owned();
        let value = arguments
            .next()
            .ok_or_else(|| format!("`{option}` needs a value"))?;
        let place = match option.as_str() {
            "--handoff-fd" => &mut handoff,
            "--listen-fd" | "--proxy-fd" | "--admin-fd" | "--page-fd"
                if expected == Listener::None =>
            {
                return Err(format!("`{option}` goes with `share`"));
            }
            "--listen-fd" => &mut listeners.runs,
            "--proxy-fd" => &mut listeners.proxy,
            "--admin-fd" => &mut listeners.admin,
            "--page-fd" => &mut listeners.page,
            _ => return Err(format!("unknown option `{option}`")),
        };
        *place = Some(descriptor(&option, &value)?);
    }
    Ok((handoff.ok_or("`--handoff-fd` is missing")?, listeners))
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

    fn parsed(line: &str) -> Result<GatewayCommand, String> {
        parse(
            line.split(' ')
                .filter(|word| !word.is_empty())
                .map(OsString::from),
        )
    }

    #[test]
    fn arguments_are_read_and_faults_named() {
        assert_eq!(
            parsed("serve --handoff-fd 3"),
            Ok(GatewayCommand::Serve(PrivateCommand { handoff: 3 }))
        );
        let share = |runs, proxy, admin| {
            Ok(GatewayCommand::Share(ShareCommand {
                handoff: 3,
                listeners: ListenerNumbers {
                    runs,
                    proxy,
                    admin,
                    page: None,
                },
            }))
        };
        let shared = |listeners| parsed(&format!("share --handoff-fd 3 {listeners}"));
        assert_eq!(shared("--listen-fd 4"), share(Some(4), None, None));
        let both = shared("--proxy-fd 5 --admin-fd 6");
        assert_eq!(both, share(None, Some(5), Some(6)));
        assert_eq!(parsed("--version"), Ok(GatewayCommand::Version));
        let own = env!("CARGO_PKG_VERSION");
        let made = parsed(&format!("authority {own} create /d n 30 a.test b.test"));
        let request = outgate_ca::AuthorityRequest {
            name: "n".to_owned(),
            permitted: vec!["a.test".to_owned(), "b.test".to_owned()],
            days: 30,
        };
        let made_by_hand = AuthorityArguments::Create("/d".into(), request);
        assert_eq!(made, Ok(GatewayCommand::Authority(made_by_hand)));
        let wrong = parsed("authority 0.0.0 show /d").unwrap_err();
        assert!(wrong.contains("different builds"), "{wrong}");
        for line in [
            "",
            "run",
            "serve",
            "serve --handoff-fd",
            "serve --handoff-fd 2",
            "serve --handoff-fd x",
            "serve --handoff-fd 3 --audit /a",
            "serve --handoff-fd 3 --color on",
            "serve --handoff-fd 3 --listen-fd 4",
            "serve --handoff-fd 3 --proxy-fd 4",
            "keep --handoff-fd 3 --secret KEY=env:X",
            "share --handoff-fd 3",
            "share --listen-fd 3",
            "share --handoff-fd 3 --listen-fd 4 --secret KEY=env:X",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
    #[test]
    fn what_can_be_said_once_is_said_once() {
        let path = || PathBuf::from("/a");
        let once = [
            GatewaySetting::RecordFile(path()),
            GatewaySetting::RecordDirectory(path()),
            GatewaySetting::RotatedRecords(path(), RecordRotation::NEVER),
            GatewaySetting::Authority(path()),
            GatewaySetting::KnownValues(path()),
            GatewaySetting::Canaries([1; CANARY_SEED_BYTES]),
            GatewaySetting::Limit(ShareLimit::Sandboxes, 7),
        ];
        for setting in once {
            let mut settings = GatewaySettings::default();
            assert_eq!(settings.take(setting.clone()), Ok(()), "{setting:?}");
            assert!(settings.take(setting.clone()).is_err(), "{setting:?}");
        }
        let mut settings = GatewaySettings::default();
        settings.take(GatewaySetting::RecordFile(path())).unwrap();
        let other = GatewaySetting::RecordDirectory(path());
        assert!(settings.take(other).is_err(), "one place for records");
        let mut settings = GatewaySettings::default();
        for _ in 0..2 {
            settings.take(GatewaySetting::UpstreamCa(path())).unwrap();
        }
        assert_eq!(settings.tls.upstream_ca.len(), 2);
        assert!(!settings.are_of_one_run());
        settings.take(GatewaySetting::OwnSecrets).unwrap();
        assert!(settings.are_of_one_run());
    }
}
