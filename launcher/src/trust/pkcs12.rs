//! A trust store for Java: certificates in the clear, as PKCS #12 (RFC 7292) has
//! it, without a password and so without a checksum that would need one. Every
//! Java since 8 reads that. Writes DER (X.690); makes no keys and knows none.

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OCTET_STRING: u8 = 0x04;
const BMP_STRING: u8 = 0x1e;
const EXPLICIT_0: u8 = 0xa0;

/// Version 3 (RFC 7292 4).
const VERSION: &[u8] = &[0x02, 1, 3];

/// `data`, 1.2.840.113549.1.7.1 (RFC 2315 14).
const DATA: &[u8] = &[0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1];

/// `certBag`, 1.2.840.113549.1.12.10.1.3.
const CERTIFICATE_BAG: &[u8] = &[
    0x06, 11, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 12, 10, 1, 3,
];

/// `x509Certificate`, 1.2.840.113549.1.9.22.1.
const X509: &[u8] = &[0x06, 10, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 22, 1];

/// `friendlyName`, 1.2.840.113549.1.9.20: the alias of an entry.
const FRIENDLY_NAME: &[u8] = &[0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 20];

/// 2.16.840.1.113894.746875.1.1: what a certificate is trusted for. Java takes
/// one without it for a part of some chain.
const TRUSTED_FOR: &[u8] = &[
    0x06, 12, 0x60, 0x86, 0x48, 0x01, 0x86, 0xf9, 0x66, 0xad, 0xca, 0x7b, 1, 1,
];

/// `anyExtendedKeyUsage`, 2.5.29.37.0 (RFC 5280 4.2.1.12).
const ANYTHING: &[u8] = &[0x06, 4, 0x55, 0x1d, 37, 0];

/// A store that trusts these certificates, each in DER.
pub(super) fn store(certificates: &[Vec<u8>]) -> Vec<u8> {
    let bags: Vec<u8> = certificates
        .iter()
        .enumerate()
        .flat_map(|(index, certificate)| bag(&format!("outgate-{index}"), certificate))
        .collect();
    let safe = data(&value(SEQUENCE, &[&bags]));
    value(SEQUENCE, &[VERSION, &data(&value(SEQUENCE, &[&safe]))])
}

/// Content of the kind `data`.
fn data(content: &[u8]) -> Vec<u8> {
    let octets = value(OCTET_STRING, &[content]);
    value(SEQUENCE, &[DATA, &value(EXPLICIT_0, &[&octets])])
}

/// One trusted certificate.
fn bag(alias: &str, certificate: &[u8]) -> Vec<u8> {
    let octets = value(OCTET_STRING, &[certificate]);
    let held = value(SEQUENCE, &[X509, &value(EXPLICIT_0, &[&octets])]);
    let alias: Vec<u8> = alias.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let alias = value(SET, &[&value(BMP_STRING, &[&alias])]);
    let alias = value(SEQUENCE, &[FRIENDLY_NAME, &alias]);
    let trusted = value(SEQUENCE, &[TRUSTED_FOR, &value(SET, &[ANYTHING])]);
    // The members of a set are in the order of their bytes (X.690 11.6).
    let mut attributes = [alias, trusted];
    attributes.sort();
    let attributes = value(SET, &[&attributes.concat()]);
    value(
        SEQUENCE,
        &[CERTIFICATE_BAG, &value(EXPLICIT_0, &[&held]), &attributes],
    )
}

/// A value of a kind, made of parts (X.690 8.1).
fn value(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let bytes = length.to_be_bytes();
    let digits = bytes.iter().skip_while(|byte| **byte == 0);
    let mut out = Vec::with_capacity(length + 6);
    out.push(kind);
    if let Ok(short @ ..0x80) = u8::try_from(length) {
        out.push(short);
    } else {
        let count = u8::try_from(digits.clone().count()).unwrap_or(8);
        out.push(0x80 | count);
        out.extend(digits);
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_short_as_they_can_be() {
        for (length, head) in [
            (0_usize, &[4, 0][..]),
            (127, &[4, 127]),
            (128, &[4, 0x81, 128]),
            (255, &[4, 0x81, 255]),
            (256, &[4, 0x82, 1, 0]),
            (70_000, &[4, 0x83, 1, 0x11, 0x70]),
        ] {
            let made = value(OCTET_STRING, &[&vec![7; length]]);
            assert!(
                made.starts_with(head),
                "{length}: {:?}",
                &made[..head.len()]
            );
            assert_eq!(made.len(), head.len() + length);
        }
    }

    #[test]
    fn each_certificate_stands_in_it_once() {
        let certificates = [b"first".to_vec(), b"second".to_vec()];
        let made = store(&certificates);
        for certificate in &certificates {
            let times = made
                .windows(certificate.len())
                .filter(|part| part == certificate)
                .count();
            assert_eq!(times, 1);
        }
        assert_eq!(made.first(), Some(&SEQUENCE));
    }
}
