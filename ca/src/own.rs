//! A user's own authority: two files, made once, constrained to the names it
//! may vouch for (RFC 5280 4.2.1.10). A key file that others can read is refused.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rcgen::{CidrSubnet, GeneralSubtree, Issuer, KeyPair, NameConstraints, PublicKeyData};
use time::{Duration, OffsetDateTime};

use crate::about::CertificateAbout;
use crate::authority::{Authority, CaError, Life, issuer_params};
use crate::files::{self, fault};

/// Days an authority may live, at most: ten years.
const DAYS_MAX: u32 = 3650;

/// Clocks of clients may be behind.
const BACKDATED: Duration = Duration::days(2);

/// Names of the two files in an authority's directory.
const CERTIFICATE: &str = "authority.pem";
const KEY: &str = "authority.key";

/// What a new authority is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityRequest {
    /// Its name, as clients' lists show it.
    pub name: String,
    /// Domains (with everything below) and CIDR blocks it may vouch for; none
    /// means every name.
    pub permitted: Vec<String>,
    /// How long it lives, in days.
    pub days: u32,
}

/// A new authority as PEM texts.
pub struct Created {
    /// Its certificate, for everybody.
    pub certificate: String,
    /// Its key (PKCS#8), for nobody else.
    pub key: String,
}

impl std::fmt::Debug for Created {
    /// Without the key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Created")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

/// Makes a new authority.
///
/// # Errors
/// [`CaError::Constraint`]: the caller's; others: no random numbers.
pub fn create(request: &AuthorityRequest) -> Result<Created, CaError> {
    let now = OffsetDateTime::now_utc();
    let key = KeyPair::generate()?;
    let mut params = issuer_params(&request.name)?;
    params.not_before = now - BACKDATED;
    params.not_after = now + Duration::days(i64::from(request.days.clamp(1, DAYS_MAX)));
    let permitted: Vec<_> = request
        .permitted
        .iter()
        .map(|text| subtree(text).ok_or_else(|| CaError::Constraint(text.clone())))
        .collect::<Result<_, _>>()?;
    if !permitted.is_empty() {
        params.name_constraints = Some(NameConstraints {
            excluded_subtrees: excluded(&permitted),
            permitted_subtrees: permitted,
        });
    }
    let certificate = params.self_signed(&key)?;
    Ok(Created {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// The two files of an authority, in a directory of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityFiles {
    /// The certificate, for everybody.
    pub certificate: PathBuf,
    /// The key, for its owner.
    pub key: PathBuf,
}

impl AuthorityFiles {
    /// In this directory.
    pub fn of(directory: &Path) -> Self {
        Self {
            certificate: directory.join(CERTIFICATE),
            key: directory.join(KEY),
        }
    }
}

/// Makes a new authority in a directory, which is made for its owner alone if
/// it is not there. What is there already stays as it is.
///
/// # Errors
/// As [`create`]; [`CaError::File`]: one is there already, or the directory
/// cannot be written.
pub fn establish(
    directory: &Path,
    request: &AuthorityRequest,
) -> Result<CertificateAbout, CaError> {
    let created = create(request)?;
    let about = CertificateAbout::of(&created.certificate).map_err(|why| fault(directory, why))?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| fault(directory, error))?;
    let place = AuthorityFiles::of(directory);
    // Of both, before either is made.
    for path in [&place.certificate, &place.key] {
        if path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
    }
    let made = |path: &Path, result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(path)),
        result => result.map_err(|error| fault(path, error)),
    };
    made(&place.key, files::create(&place.key, 0o600, &created.key))?;
    let certificate = files::create(&place.certificate, 0o644, &created.certificate);
    if let Err(error) = made(&place.certificate, certificate) {
        // A key without a certificate is good for nothing, and ours to remove.
        fs::remove_file(&place.key).ok();
        return Err(error);
    }
    Ok(about)
}

fn exists(path: &Path) -> CaError {
    let why = "is there already, and is not overwritten; name another directory, or remove it";
    fault(path, why)
}

/// What the certificate of an authority says.
///
/// # Errors
/// [`CaError::File`]: it cannot be read, or is none.
pub fn describe(place: &AuthorityFiles) -> Result<CertificateAbout, CaError> {
    let pem = files::read_public(&place.certificate)?;
    CertificateAbout::of(&pem).map_err(|why| fault(&place.certificate, why))
}

/// Opens an authority from its two files.
///
/// # Errors
/// [`CaError::File`]: a file is missing, too large, no PEM; the certificate is
/// not an authority's, does not hold now, or is of another key; the key can be
/// had by others.
pub fn open(place: &AuthorityFiles) -> Result<Authority, CaError> {
    let key_pem = files::read_key(&place.key)?;
    let about = describe(place)?;
    about
        .holds_now()
        .map_err(|why| fault(&place.certificate, why))?;
    let pair = KeyPair::from_pem(&key_pem)
        .map_err(|error| fault(&place.key, format!("holds no private key in PEM: {error}")))?;
    if pair.der_bytes() != about.public_key {
        return Err(fault(
            &place.certificate,
            "is the certificate of another key",
        ));
    }
    let issuer = Issuer::from_ca_cert_der(&about.der, pair)
        .map_err(|error| fault(&place.certificate, format!("is not an authority: {error}")))?;
    let life = Life {
        ends: about.ends,
        scope: about.scope,
    };
    Authority::new(issuer, about.der, about.pem, life)
}

/// A domain, with all names below it, or a block of addresses.
fn subtree(text: &str) -> Option<GeneralSubtree> {
    if let Some((address, prefix)) = text.split_once('/') {
        let address: IpAddr = address.parse().ok()?;
        let prefix: u8 = prefix.parse().ok()?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        return (prefix <= longest)
            .then(|| GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, prefix)));
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        return Some(GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(
            address, longest,
        )));
    }
    let domain = text
        .trim_start_matches("**.")
        .trim_start_matches("*.")
        .to_ascii_lowercase();
    let labels_hold = domain.split('.').all(|label| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    });
    (labels_hold && domain.len() <= 253).then_some(GeneralSubtree::DnsName(domain))
}

/// A kind of name without a permitted subtree is unconstrained, so a list of
/// domains alone would vouch for every address: those are excluded as a whole.
fn excluded(permitted: &[GeneralSubtree]) -> Vec<GeneralSubtree> {
    let has = |is: fn(&CidrSubnet) -> bool| {
        permitted
            .iter()
            .any(|subtree| matches!(subtree, GeneralSubtree::IpAddress(block) if is(block)))
    };
    let mut excluded = Vec::new();
    if !has(|block| matches!(block, CidrSubnet::V4(..))) {
        excluded.push(GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix(
            [0; 4], 0,
        )));
    }
    if !has(|block| matches!(block, CidrSubnet::V6(..))) {
        excluded.push(GeneralSubtree::IpAddress(CidrSubnet::from_v6_prefix(
            [0; 16], 0,
        )));
    }
    excluded
}
