//! A trust store for Java: certificates in the clear, as PKCS #12 (RFC 7292) has
//! it, without a password and so without a checksum that would need one. Every
//! Java since 8 reads that. Writes DER (X.690), and reads such stores again; makes
//! no keys, knows none, and opens nothing that is locked.

use super::der::{BMP_STRING, DerValues, EXPLICIT_0, OCTET_STRING, SEQUENCE, SET, value};

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

/// The certificates that a store trusts, each in DER, where they stand in the
/// clear: as in the store that Java brings since 18, and in what `store` makes.
/// `None` where some are locked: what a password opens cannot be taken over, and
/// the rest alone would be less than the store.
pub(super) fn certificates(store: &[u8]) -> Option<Vec<Vec<u8>>> {
    let outer = DerValues(DerValues(store).next(SEQUENCE)?);
    let rest = outer.0.strip_prefix(VERSION)?;
    let mut parts = DerValues(content(DerValues(rest).next(SEQUENCE)?)?);
    let mut parts = DerValues(parts.next(SEQUENCE)?);
    let mut found = Vec::new();
    while !parts.0.is_empty() {
        // A part of another kind than `data` is locked.
        let mut bags = DerValues(content(parts.next(SEQUENCE)?)?);
        let mut bags = DerValues(bags.next(SEQUENCE)?);
        while !bags.0.is_empty() {
            gather(bags.next(SEQUENCE)?, &mut found)?;
        }
    }
    Some(found)
}

/// What a part of the kind `data` holds.
fn content(part: &[u8]) -> Option<&[u8]> {
    let mut explicit = DerValues(part.strip_prefix(DATA)?);
    DerValues(explicit.next(EXPLICIT_0)?).next(OCTET_STRING)
}

/// Takes the certificate of a bag, if it is one that is trusted: a key is none,
/// and neither is a link of its chain.
fn gather(bag: &[u8], found: &mut Vec<Vec<u8>>) -> Option<()> {
    let Some(bag) = bag.strip_prefix(CERTIFICATE_BAG) else {
        return Some(());
    };
    let mut bag = DerValues(bag);
    let mut held = DerValues(bag.next(EXPLICIT_0)?);
    let mut held = DerValues(held.next(SEQUENCE)?.strip_prefix(X509)?);
    let certificate = DerValues(held.next(EXPLICIT_0)?).next(OCTET_STRING)?;
    if bag.0.is_empty() {
        return Some(());
    }
    let mut attributes = DerValues(bag.next(SET)?);
    let mut is_trusted = false;
    while !attributes.0.is_empty() {
        is_trusted |= attributes.next(SEQUENCE)?.starts_with(TRUSTED_FOR);
    }
    found.extend(is_trusted.then(|| certificate.to_vec()));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_stands_in_the_clear_is_read_again_and_nothing_behind_its_end() {
        let certificates = vec![b"first".to_vec(), vec![7; 300]];
        let made = store(&certificates);
        assert_eq!(super::certificates(&made), Some(certificates));
        assert_eq!(super::certificates(&store(&[])), Some(Vec::new()));
        for end in 0..made.len() {
            assert_eq!(super::certificates(&made[..end]), None, "{end}");
        }
    }

    #[test]
    fn what_is_locked_keeps_all_of_a_store() {
        let open = data(&value(SEQUENCE, &[&bag("own", b"own")]));
        let mut locked = open.clone();
        // `encryptedData`, 1.2.840.113549.1.7.6.
        let kind = locked.windows(DATA.len()).position(|part| part == DATA);
        locked[kind.unwrap() + DATA.len() - 1] = 6;
        for (parts, expected) in [
            (vec![&open], Some(vec![b"own".to_vec()])),
            (vec![&locked], None),
            (vec![&open, &locked], None),
        ] {
            let parts: Vec<u8> = parts.into_iter().flatten().copied().collect();
            let safe = data(&value(SEQUENCE, &[&parts]));
            let store = value(SEQUENCE, &[VERSION, &safe]);
            assert_eq!(certificates(&store), expected);
        }
    }

    #[test]
    fn a_link_of_a_chain_and_a_key_are_not_trusted() {
        let octets = value(OCTET_STRING, &[b"link"]);
        let held = value(SEQUENCE, &[X509, &value(EXPLICIT_0, &[&octets])]);
        let link = value(SEQUENCE, &[CERTIFICATE_BAG, &value(EXPLICIT_0, &[&held])]);
        let mut key = bag("own", b"own");
        // `pkcs8ShroudedKeyBag`, 1.2.840.113549.1.12.10.1.2.
        let end = CERTIFICATE_BAG.len();
        let at = key.windows(end).position(|part| part == CERTIFICATE_BAG);
        key[at.unwrap() + end - 1] = 2;
        for bag in [link, key] {
            let safe = data(&value(SEQUENCE, &[&data(&value(SEQUENCE, &[&bag]))]));
            let store = value(SEQUENCE, &[VERSION, &safe]);
            assert_eq!(certificates(&store), Some(Vec::new()));
        }
    }
}
