//! What the certificate of an authority says about itself, for people and for
//! who is to use it. Reads text; verifies no signature.

use pem::{EncodeConfig, LineEnding, Pem, encode_config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::scope::CertificateScope;

/// How PEM is written.
const LINES: EncodeConfig = EncodeConfig::new().set_line_ending(LineEnding::LF);

/// See the head of this file.
#[derive(Debug, Clone)]
pub struct CertificateAbout {
    /// The name that clients' lists show.
    pub name: String,
    /// SHA-256 of the certificate: 32 bytes.
    pub fingerprint: [u8; 32],
    /// When it begins to hold.
    pub begins: OffsetDateTime,
    /// When it ends.
    pub ends: OffsetDateTime,
    /// Whom it may vouch for.
    pub scope: CertificateScope,
    /// The certificate alone, in PEM.
    pub pem: String,
    /// Its public key, as the certificate holds it.
    pub(crate) public_key: Vec<u8>,
    pub(crate) der: CertificateDer<'static>,
}

impl CertificateAbout {
    /// Reads the one certificate of a PEM text.
    ///
    /// # Errors
    /// In words: there is none, or it is not an authority's.
    pub(crate) fn of(pem: &str) -> Result<Self, String> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| "holds no certificate in PEM".to_owned())?;
        let unreadable = |error: &dyn std::fmt::Display| format!("is no certificate: {error}");
        let (rest, parsed) = X509Certificate::from_der(&der).map_err(|error| unreadable(&error))?;
        if !rest.is_empty() {
            return Err(unreadable(&"something follows it"));
        }
        if !parsed.is_ca() {
            return Err("is not the certificate of an authority (it lacks CA:TRUE)".to_owned());
        }
        let constraints = parsed
            .name_constraints()
            .map_err(|error| unreadable(&error))?;
        let validity = parsed.validity();
        Ok(Self {
            name: name(&parsed),
            fingerprint: Sha256::digest(&der).into(),
            begins: moment(validity.not_before.timestamp()),
            ends: moment(validity.not_after.timestamp()),
            scope: constraints.map_or_else(CertificateScope::default, |found| {
                CertificateScope::of(found.value)
            }),
            public_key: parsed.public_key().subject_public_key.data.to_vec(),
            pem: encode_config(&Pem::new("CERTIFICATE", der.to_vec()), LINES),
            der: der.clone(),
        })
    }

    /// Whether it holds now.
    ///
    /// # Errors
    /// In words: not yet, or no more.
    pub fn holds_now(&self) -> Result<(), String> {
        let now = OffsetDateTime::now_utc();
        if now > self.ends {
            return Err(format!("ended on {}; make a new one", self.ends.date()));
        }
        if now < self.begins {
            return Err(format!("begins to hold on {}", self.begins.date()));
        }
        Ok(())
    }
}

/// Its common name, printable, or all of its subject.
fn name(certificate: &X509Certificate<'_>) -> String {
    let subject = certificate.subject();
    let common = subject
        .iter_common_name()
        .find_map(|name| name.as_str().ok());
    let name = common.map_or_else(|| subject.to_string(), str::to_owned);
    let printable = |sign: char| if sign.is_control() { ' ' } else { sign };
    name.chars().map(printable).collect()
}

fn moment(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
