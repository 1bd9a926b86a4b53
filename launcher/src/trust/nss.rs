//! The database in which NSS keeps certificates, for Chromium and what is built on it: they
//! read no variable that names one. It lies below the run's own directory for data, or is
//! given in the place of the user's own, which a run never reads. Holds one authority that is
//! trusted for servers; knows no key and no password.

use std::path::Path;

use super::der::{DerValues, EXPLICIT_0, INTEGER, SEQUENCE, value};
use super::sha1;
use super::sqlite::{DatabaseTable, SqlValue, database};

/// Where the database lies below a directory for data.
pub(super) const BELOW_DATA: &str = "pki/nssdb";

/// Where it lies in the home directory, if it does.
pub(super) const BELOW_HOME: &str = ".pki/nssdb";

/// The file of certificates, and that of keys.
pub(super) const CERTIFICATES: &str = "cert9.db";
const KEYS: &str = "key4.db";

/// The file that names modules beside NSS's own.
const MODULES: &str = "pkcs11.txt";

/// Numbers of the two objects, of no meaning.
const OBJECTS: [u64; 2] = [1, 2];

/// PKCS #11, and what NSS adds: its objects, and how far it trusts.
const CERTIFICATE: u32 = 1;
const JUDGEMENT: u32 = 0xce53_4353;
const TRUSTED_AUTHORITY: u32 = 0xce53_4352;

/// The columns, each an attribute by its number: class, token, private, label, value, kind,
/// issuer, serial number, subject; whether trusted for servers, and of which certificate.
const COLUMNS: [&str; 12] = [
    "id INTEGER PRIMARY KEY",
    "a0",
    "a1",
    "a2",
    "a3",
    "a11",
    "a80",
    "a81",
    "a82",
    "a101",
    "ace536358",
    "ace5363b4",
];

/// What a name in such a directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NssFile {
    Certificates,
    Keys,
    Modules,
}

impl NssFile {
    /// By its name.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        let all = [
            (CERTIFICATES, Self::Certificates),
            (KEYS, Self::Keys),
            (MODULES, Self::Modules),
        ];
        let mut all = all.into_iter();
        all.find_map(|(own, file)| (own.as_bytes() == name).then_some(file))
    }
}

/// The database of certificates: this authority in DER, or nothing where there is none or
/// it is none that can be read.
pub(super) fn certificates(authority: Option<&[u8]>) -> Vec<u8> {
    let rows = authority.and_then(rows).unwrap_or_default();
    let table = |rows| {
        database(&[DatabaseTable {
            name: "nssPublic",
            columns: &COLUMNS,
            rows,
        }])
    };
    table(rows)
        .or_else(|| table(Vec::new()))
        .unwrap_or_default()
}

/// The database of keys: none.
pub(super) fn keys() -> Vec<u8> {
    let table = |name, columns| DatabaseTable {
        name,
        columns,
        rows: Vec::new(),
    };
    database(&[
        table("nssPrivate", &COLUMNS),
        table("metaData", &["id", "item1", "item2"]),
    ])
    .unwrap_or_default()
}

/// Whether a database is missing in such a directory.
pub(super) fn is_unmade(directory: &Path) -> bool {
    let is_there = |name: &str| directory.join(name).exists();
    !is_there(CERTIFICATES) || !is_there(KEYS)
}

/// The authority and the judgement on it.
fn rows(der: &[u8]) -> Option<Vec<(u64, Vec<SqlValue>)>> {
    let names = CertificateNames::of(der)?;
    let bytes = |bytes: &[u8]| SqlValue::Bytes(bytes.to_vec());
    let number = |number: u32| SqlValue::Bytes(number.to_be_bytes().to_vec());
    let CertificateNames {
        issuer,
        serial,
        subject,
    } = names;
    let row = |class, about: [SqlValue; 7]| {
        let first = [SqlValue::Null, number(class), bytes(&[1]), bytes(&[0])];
        let label = [bytes(b"outgate")];
        first.into_iter().chain(label).chain(about).collect()
    };
    let certificate = row(
        CERTIFICATE,
        [
            bytes(der),
            number(0),
            bytes(&issuer),
            bytes(&serial),
            bytes(&subject),
            SqlValue::Null,
            SqlValue::Null,
        ],
    );
    let judgement = row(
        JUDGEMENT,
        [
            SqlValue::Null,
            SqlValue::Null,
            bytes(&issuer),
            bytes(&serial),
            SqlValue::Null,
            number(TRUSTED_AUTHORITY),
            bytes(&sha1::digest(der)),
        ],
    );
    Some(OBJECTS.into_iter().zip([certificate, judgement]).collect())
}

/// What NSS looks certificates up by, each as a value in DER (RFC 5280 4.1).
struct CertificateNames {
    issuer: Vec<u8>,
    serial: Vec<u8>,
    subject: Vec<u8>,
}

impl CertificateNames {
    fn of(der: &[u8]) -> Option<Self> {
        let mut signed = DerValues(DerValues(der).next(SEQUENCE)?);
        let mut fields = DerValues(signed.next(SEQUENCE)?);
        let _version = fields.next(EXPLICIT_0)?;
        let serial = value(INTEGER, &[fields.next(INTEGER)?]);
        let _algorithm = fields.next(SEQUENCE)?;
        let issuer = value(SEQUENCE, &[fields.next(SEQUENCE)?]);
        let _validity = fields.next(SEQUENCE)?;
        let subject = value(SEQUENCE, &[fields.next(SEQUENCE)?]);
        Some(Self {
            issuer,
            serial,
            subject,
        })
    }
}
