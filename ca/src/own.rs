//! A user's own authority: two files, made once, constrained to the names it
//! may vouch for (RFC 5280 4.2.1.10). A key file that others can read is refused.

use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rcgen::{CidrSubnet, GeneralSubtree, Issuer, KeyPair, NameConstraints};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use time::{Duration, OffsetDateTime};

use crate::authority::{Authority, CaError, issuer_params};

/// Bytes of a certificate or key file, at most.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Days an authority may live, at most: ten years.
const DAYS_MAX: u32 = 3650;

/// Clocks of clients may be behind.
const BACKDATED: Duration = Duration::days(2);

/// What a new authority is to be.
#[derive(Debug, Clone)]
pub struct Request {
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
pub fn create(request: &Request) -> Result<Created, CaError> {
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

/// Opens an authority from its two files.
///
/// # Errors
/// [`CaError::File`]: a file is missing, too large, no PEM, or the key can be
/// read by others or belongs to somebody else.
pub fn open(certificate: &Path, key: &Path) -> Result<Authority, CaError> {
    let fault = |path: &Path, fault: String| CaError::File {
        path: path.display().to_string(),
        fault,
    };
    let file = fs::File::open(key).map_err(|error| fault(key, error.to_string()))?;
    let about = file
        .metadata()
        .map_err(|error| fault(key, error.to_string()))?;
    if about.mode() & 0o077 != 0 {
        let mode = about.mode() & 0o777;
        let hint = format!("others may use this key (mode {mode:03o}); chmod 600 it");
        return Err(fault(key, hint));
    }
    let key_pem = text(file).map_err(|error| fault(key, error))?;
    let pem = fs::File::open(certificate)
        .map_err(|error| error.to_string())
        .and_then(text)
        .map_err(|error| fault(certificate, error))?;
    let pair = KeyPair::from_pem(&key_pem)
        .map_err(|error| fault(key, format!("no private key in PEM: {error}")))?;
    let der = CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|error| fault(certificate, format!("no certificate in PEM: {error:?}")))?;
    let issuer = Issuer::from_ca_cert_der(&der, pair)
        .map_err(|error| fault(certificate, format!("not an authority: {error}")))?;
    Authority::new(issuer, der, pem)
}

fn text(file: fs::File) -> Result<String, String> {
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    let count = read.map_err(|error| error.to_string())?;
    if u64::try_from(count).unwrap_or(u64::MAX) > FILE_BYTES_MAX {
        return Err(format!("longer than {FILE_BYTES_MAX} bytes"));
    }
    Ok(text)
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
    let domain = text.strip_prefix("*.").unwrap_or(text).to_ascii_lowercase();
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
