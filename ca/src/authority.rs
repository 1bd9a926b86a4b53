//! The authority: its certificate, its key, and signing of leaves with the
//! properties that strict verifiers ask for (RFC 5280 4.2; CA/Browser Forum
//! Baseline Requirements 7.1.2.7 as far as clients check them).

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use time::{Duration, OffsetDateTime};

use crate::scope::CertificateScope;
use crate::subject::LeafSubject;

/// Certificates begin this long ago: clocks of clients may be behind.
const BACKDATED: Duration = Duration::days(2);

/// Leaves end after this long. With what they are dated back they stay below
/// 197 days: browsers refuse leaves of 200 days and more.
const LEAF_LIFE: Duration = Duration::days(194);

/// The authority of a run outlives its leaves by a day.
const RUN_LIFE: Duration = Duration::days(195);

/// Bytes of a serial number; RFC 5280 4.1.2.2 allows 20, and wants it positive.
const SERIAL_BYTES: usize = 16;

/// Longest common name (RFC 5280 A.1, ub-common-name).
const COMMON_NAME_CHARS_MAX: usize = 64;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaError {
    /// Making a key or a certificate failed: a fault of this program or of the
    /// system's random numbers.
    #[error("making a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The key made cannot sign: a fault of this program.
    #[error("using the key of the leaves: {0}")]
    Key(#[from] rustls::Error),
    /// A host name that no certificate can carry: the caller's fault.
    #[error("no certificate can name `{0}`")]
    Name(String),
    /// The system gave no random numbers.
    #[error("no random numbers from the system")]
    Random,
    /// A file of the authority: the user's to mend.
    #[error("{path}: {fault}")]
    File {
        /// Its path.
        path: String,
        /// What is wrong, and what to do.
        fault: String,
    },
    /// A host that clients would not believe this authority: the operator's.
    #[error("the authority may vouch for {permitted} only, and not for `{subject}`")]
    Beyond {
        /// The host.
        subject: String,
        /// What it may vouch for.
        permitted: String,
    },
    /// The authority ended while it was in use: the operator's.
    #[error("the authority ended on {0}; make a new one")]
    Ended(time::Date),
    /// A name constraint that is neither a domain nor a CIDR block.
    #[error(
        "`{0}` is neither a domain nor an address block; name one as `example.org` or `10.2.0.0/16`"
    )]
    Constraint(String),
}

/// An authority that can issue leaves. All leaves share one key pair, which
/// exists, like the authority's own, in memory only.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    leaf_key: KeyPair,
    signer: Arc<dyn SigningKey>,
    life: Life,
}

/// How long an authority may vouch, and for whom.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) ends: OffsetDateTime,
    pub(crate) scope: CertificateScope,
}

impl std::fmt::Debug for Authority {
    /// Without any key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// A new authority that lives in memory only, for one run.
    ///
    /// # Errors
    /// [`CaError::Make`], [`CaError::Random`]: no random numbers.
    pub fn for_run(name: &str) -> Result<Self, CaError> {
        let now = OffsetDateTime::now_utc();
        let key = KeyPair::generate()?;
        let mut params = issuer_params(&format!("outgate run {name}"))?;
        params.not_before = now - BACKDATED;
        params.not_after = now + RUN_LIFE;
        let certificate = params.self_signed(&key)?;
        let (der, pem) = (certificate.der().clone(), certificate.pem());
        let life = Life {
            ends: params.not_after,
            scope: CertificateScope::default(),
        };
        Self::new(Issuer::new(params, key), der, pem, life)
    }

    pub(crate) fn new(
        issuer: Issuer<'static, KeyPair>,
        certificate: CertificateDer<'static>,
        pem: String,
        life: Life,
    ) -> Result<Self, CaError> {
        let leaf_key = KeyPair::generate()?;
        let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
        let signer = any_ecdsa_type(&der)?;
        Ok(Self {
            issuer,
            certificate,
            pem,
            leaf_key,
            signer,
            life,
        })
    }

    /// The authority's certificate as PEM (RFC 7468): what clients must trust.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The authority's certificate as DER.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Signs a leaf for one host, with the authority's certificate behind it.
    ///
    /// # Errors
    /// [`CaError::Name`] for what is no DNS name, [`CaError::Beyond`] for whom
    /// clients would not believe it, [`CaError::Ended`], [`CaError::Make`].
    pub fn issue(&self, subject: &LeafSubject) -> Result<CertifiedKey, CaError> {
        if !self.life.scope.permits(subject) {
            return Err(CaError::Beyond {
                subject: subject.to_string(),
                permitted: self.life.scope.permitted().join(", "),
            });
        }
        let (name, common_name) = match subject {
            LeafSubject::Name(name) => {
                let ia5 = name.as_str().try_into();
                let san = ia5.map(SanType::DnsName);
                (san.map_err(|_| CaError::Name(name.clone()))?, name.as_str())
            }
            // Verifiers take a common name for a host name, which an address
            // is not: constraints on host names would refuse it.
            LeafSubject::Address(address) => (SanType::IpAddress(*address), ""),
        };
        let now = OffsetDateTime::now_utc();
        if now > self.life.ends {
            return Err(CaError::Ended(self.life.ends.date()));
        }
        let mut params = CertificateParams::new(Vec::new())?;
        params.subject_alt_names = vec![name];
        params.distinguished_name = distinguished(common_name);
        params.serial_number = Some(serial()?);
        params.not_before = now - BACKDATED;
        params.not_after = self.life.ends.min(now + LEAF_LIFE);
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&self.leaf_key, &self.issuer)?;
        let chain = vec![leaf.der().clone(), self.certificate.clone()];
        Ok(CertifiedKey::new(chain, Arc::clone(&self.signer)))
    }
}

/// What the certificates of authorities have in common.
pub(crate) fn issuer_params(common_name: &str) -> Result<CertificateParams, CaError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = distinguished(common_name);
    params.serial_number = Some(serial()?);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    Ok(params)
}

/// A subject that is never empty, so that the alternative name need not be
/// critical; a name too long for it is only in the alternative name.
fn distinguished(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    if (1..=COMMON_NAME_CHARS_MAX).contains(&common_name.chars().count()) {
        name.push(DnType::CommonName, common_name);
    }
    name.push(DnType::OrganizationName, "outgate");
    name
}

/// A serial number nobody can guess, and none twice: some clients refuse a
/// second certificate of an issuer with the same one.
fn serial() -> Result<SerialNumber, CaError> {
    let mut bytes = [0; SERIAL_BYTES];
    let provider = rustls::crypto::ring::default_provider();
    let random = provider.secure_random.fill(&mut bytes);
    random.map_err(|_| CaError::Random)?;
    if let Some(first) = bytes.first_mut() {
        *first = *first & 0x7f | 0x40;
    }
    Ok(SerialNumber::from_slice(&bytes))
}
