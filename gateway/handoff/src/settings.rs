//! What a gateway is told beside the policy: what it opens and reads before it confines
//! itself. Comes before everything else, so that nothing of it stands where other users of
//! the machine read it. Values only; opens nothing.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use outgate_policy::{NamedSecret, SecretKind, SecretSource};

use crate::rotation::RecordRotation;
use crate::wire::{FrameError, FrameReader, FrameWriter};
use crate::{NAME_BYTES_MAX, PATH_BYTES_MAX};

/// Bytes that the canaries of a run are made of.
pub const CANARY_SEED_BYTES: usize = 32;

/// One setting.
#[derive(Clone, PartialEq, Eq)]
pub enum GatewaySetting {
    /// Records go to this file.
    RecordFile(PathBuf),
    /// Records go to files in this directory.
    RecordDirectory(PathBuf),
    /// Records go to files in this directory that follow one another.
    RotatedRecords(PathBuf, RecordRotation),
    /// Certificates to trust beside the system's, in PEM.
    UpstreamCa(PathBuf),
    /// The directory of the user's own authority.
    Authority(PathBuf),
    /// What is presented to one host.
    ClientCertificate {
        /// The host: a name or an address.
        host: String,
        /// The certificate and those behind it, in PEM.
        certificate: PathBuf,
        /// The key, in PEM; perhaps the same file.
        key: PathBuf,
    },
    /// A secret that the gateway reads, without its value.
    Secret(NamedSecret),
    /// The user's own secrets are looked up in the environment and in well-known files.
    OwnSecrets,
    /// A list of secrets to look for.
    KnownValues(PathBuf),
    /// False credentials are made, too, of these bytes: those that the launcher planted.
    Canaries([u8; CANARY_SEED_BYTES]),
    /// A bound of a shared gateway, in place of the one it works out itself.
    Limit(ShareLimit, u32),
    /// That was all.
    End,
}

/// What somebody who runs a shared gateway may bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareLimit {
    /// Sandboxes at once.
    Sandboxes,
    /// Of them those of one user.
    SandboxesPerUser,
    /// Connections served at once.
    Connections,
    /// Of them those of one user.
    ConnectionsPerUser,
    /// Of them those of one sandbox.
    ConnectionsPerSandbox,
    /// Seconds that running requests have once it is to end.
    DrainSeconds,
}

impl ShareLimit {
    /// Every one, once; the position is its number in a frame, from 1.
    pub const ALL: [Self; 6] = [
        Self::Sandboxes,
        Self::SandboxesPerUser,
        Self::Connections,
        Self::ConnectionsPerUser,
        Self::ConnectionsPerSandbox,
        Self::DrainSeconds,
    ];

    /// The option of `outgate gateway` that sets it.
    pub const fn option(self) -> &'static str {
        match self {
            Self::Sandboxes => "--sandboxes",
            Self::SandboxesPerUser => "--sandboxes-per-user",
            Self::Connections => "--connections",
            Self::ConnectionsPerUser => "--connections-per-user",
            Self::ConnectionsPerSandbox => "--connections-per-sandbox",
            Self::DrainSeconds => "--drain",
        }
    }

    fn number(self) -> u8 {
        let position = Self::ALL.iter().position(|one| *one == self);
        let number = position.and_then(|position| u8::try_from(position).ok());
        number.map_or(0, |number| number.saturating_add(1))
    }

    fn of(number: u8) -> Option<Self> {
        let position = usize::from(number).checked_sub(1)?;
        Self::ALL.get(position).copied()
    }
}

impl fmt::Debug for GatewaySetting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Who has the seed knows the canaries, and a command line may hold a secret.
        let name = match self {
            Self::RecordFile(path) => return write!(formatter, "RecordFile({})", path.display()),
            Self::RecordDirectory(path) => {
                return write!(formatter, "RecordDirectory({})", path.display());
            }
            Self::RotatedRecords(path, rotation) => {
                return write!(
                    formatter,
                    "RotatedRecords({}, {rotation:?})",
                    path.display()
                );
            }
            Self::UpstreamCa(path) => return write!(formatter, "UpstreamCa({})", path.display()),
            Self::Authority(path) => return write!(formatter, "Authority({})", path.display()),
            Self::ClientCertificate { host, .. } => {
                return write!(formatter, "ClientCertificate({host})");
            }
            Self::Secret(secret) => return write!(formatter, "Secret({})", secret.name),
            Self::OwnSecrets => "OwnSecrets",
            Self::KnownValues(path) => return write!(formatter, "KnownValues({})", path.display()),
            Self::Canaries(_) => "Canaries",
            Self::Limit(limit, value) => return write!(formatter, "Limit({limit:?}, {value})"),
            Self::End => "End",
        };
        formatter.write_str(name)
    }
}

fn write_path(w: &mut FrameWriter, path: &Path) {
    w.bytes("path", path.as_os_str().as_bytes(), PATH_BYTES_MAX);
}

fn read_path(r: &mut FrameReader<'_>) -> Result<PathBuf, FrameError> {
    let bytes = r.bytes("path", PATH_BYTES_MAX)?;
    Ok(OsString::from_vec(bytes.to_vec()).into())
}

fn write_secret(w: &mut FrameWriter, secret: &NamedSecret) {
    w.bytes("name", secret.name.as_bytes(), NAME_BYTES_MAX);
    w.u8(match secret.kind {
        SecretKind::Value => 1,
        SecretKind::Aws => 2,
    });
    let (number, text) = match &secret.source {
        SecretSource::Variable(name) => (1, name),
        SecretSource::File(path) => (2, path),
        SecretSource::Command(line) => (3, line),
    };
    w.u8(number);
    w.bytes("source", text.as_bytes(), PATH_BYTES_MAX);
}

fn read_secret(r: &mut FrameReader<'_>) -> Result<NamedSecret, FrameError> {
    let name = r.text("name", NAME_BYTES_MAX)?;
    let kind = match r.u8("kind")? {
        1 => SecretKind::Value,
        2 => SecretKind::Aws,
        _ => return Err(FrameError::Value { field: "kind" }),
    };
    let source = match r.u8("source")? {
        1 => SecretSource::Variable,
        2 => SecretSource::File,
        3 => SecretSource::Command,
        _ => return Err(FrameError::Value { field: "source" }),
    };
    let source = source(r.text("source", PATH_BYTES_MAX)?);
    Ok(NamedSecret { name, kind, source })
}

impl GatewaySetting {
    pub(crate) fn write(&self, w: &mut FrameWriter) {
        match self {
            Self::End => w.u8(0),
            Self::RecordFile(path) => {
                w.u8(1);
                write_path(w, path);
            }
            Self::RecordDirectory(path) => {
                w.u8(2);
                write_path(w, path);
            }
            Self::UpstreamCa(path) => {
                w.u8(3);
                write_path(w, path);
            }
            Self::Authority(path) => {
                w.u8(4);
                write_path(w, path);
            }
            Self::ClientCertificate {
                host,
                certificate,
                key,
            } => {
                w.u8(5);
                w.bytes("host", host.as_bytes(), NAME_BYTES_MAX);
                write_path(w, certificate);
                write_path(w, key);
            }
            Self::Secret(secret) => {
                w.u8(6);
                write_secret(w, secret);
            }
            Self::OwnSecrets => w.u8(7),
            Self::KnownValues(path) => {
                w.u8(8);
                write_path(w, path);
            }
            Self::Canaries(seed) => {
                w.u8(9);
                w.bytes("seed", seed, CANARY_SEED_BYTES);
            }
            Self::Limit(limit, value) => {
                w.u8(10);
                w.u8(limit.number());
                w.u32(*value);
            }
            Self::RotatedRecords(path, rotation) => {
                w.u8(11);
                write_path(w, path);
                rotation.write(w);
            }
        }
    }

    pub(crate) fn read(r: &mut FrameReader<'_>) -> Result<Self, FrameError> {
        Ok(match r.u8("setting")? {
            0 => Self::End,
            1 => Self::RecordFile(read_path(r)?),
            2 => Self::RecordDirectory(read_path(r)?),
            3 => Self::UpstreamCa(read_path(r)?),
            4 => Self::Authority(read_path(r)?),
            5 => Self::ClientCertificate {
                host: r.text("host", NAME_BYTES_MAX)?,
                certificate: read_path(r)?,
                key: read_path(r)?,
            },
            6 => Self::Secret(read_secret(r)?),
            7 => Self::OwnSecrets,
            8 => Self::KnownValues(read_path(r)?),
            9 => {
                let seed = r.bytes("seed", CANARY_SEED_BYTES)?;
                let seed = seed.try_into();
                Self::Canaries(seed.map_err(|_| FrameError::Value { field: "seed" })?)
            }
            10 => {
                let limit = ShareLimit::of(r.u8("limit")?);
                let limit = limit.ok_or(FrameError::Value { field: "limit" })?;
                Self::Limit(limit, r.u32("value")?)
            }
            11 => Self::RotatedRecords(read_path(r)?, RecordRotation::read(r)?),
            _ => return Err(FrameError::Value { field: "setting" }),
        })
    }
}
