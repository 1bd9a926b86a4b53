//! Credentials told by their form, whatever the variable is called that holds one: the
//! beginning that the detector of a certain form looks for, and as many letters behind it
//! as the form has. No pattern is run, so that every start of a run can afford it.

use std::sync::OnceLock;

use crate::detector::{Anchor, Detector, Tier};
use crate::shipped::SHIPPED;
use crate::validate::entropy;

/// Signs that forms have beside letters and digits.
const SIGNS: &[u8] = b"_-.+/=%$";

/// Longest value that is looked at, in bytes: a longer one is a text.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A beginning, and the form that it is of.
type Beginning = (&'static [u8], &'static Detector);

/// Beginnings by their first byte.
fn beginnings() -> &'static [Vec<Beginning>] {
    static ALL: OnceLock<Vec<Vec<Beginning>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = vec![Vec::new(); 256];
        let certain =
            |form: &&'static Detector| form.tier == Tier::Strong && form.anchor == Anchor::Start;
        for form in SHIPPED.iter().filter(certain) {
            for literal in form.literals.iter() {
                let first = literal.as_bytes().first().copied().unwrap_or_default();
                if let Some(row) = all.get_mut(usize::from(first)) {
                    row.push((literal.as_bytes(), form));
                }
            }
        }
        all
    })
}

/// The hosts that a credential in a value is for, as `NAME` or `*.NAME`; `None` where the
/// value holds none of a certain form.
pub(super) fn hosts(value: &str) -> Option<Vec<String>> {
    let bytes = value.as_bytes();
    if bytes.len() > VALUE_BYTES_MAX {
        return None;
    }
    let all = beginnings();
    let mut before = b' ';
    for (at, byte) in bytes.iter().enumerate() {
        let is_word = std::mem::replace(&mut before, *byte).is_ascii_alphanumeric();
        let row = all.get(usize::from(*byte)).filter(|row| !row.is_empty());
        if let (false, Some(row), Some(rest)) = (is_word, row, bytes.get(at..)) {
            let found = row.iter().find(|(begin, form)| is_of(rest, begin, form));
            if let Some((_, form)) = found {
                return Some(form.issuers.iter().map(|issuer| wide(issuer)).collect());
            }
        }
    }
    None
}

/// Whether a text begins with a credential of this form.
fn is_of(text: &[u8], begin: &[u8], form: &Detector) -> bool {
    let Some(tail) = text.strip_prefix(begin) else {
        return false;
    };
    let is_letter = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || SIGNS.contains(byte) && has_sign(&form.pattern, **byte)
    };
    let letters = tail.iter().take_while(is_letter).count();
    let bytes = begin.len().saturating_add(letters);
    let whole = text.get(..bytes.min(form.max)).unwrap_or_default();
    bytes >= form.min && entropy::bits(whole) >= f64::from(form.min_entropy)
}

/// Whether a sign stands in a pattern as itself. A dash there is mostly one between two ends
/// of a range.
fn has_sign(pattern: &str, sign: u8) -> bool {
    let sign = char::from(sign);
    match sign {
        '-' => ["\\-", "-[", "-("]
            .iter()
            .any(|dash| pattern.contains(dash)),
        _ => pattern.contains(sign),
    }
}

/// A pattern of hosts as rules are asked about: what is left open in it is any label.
fn wide(issuer: &str) -> String {
    let open = |label: &str| label.contains(['*', '{']);
    if !issuer.split('.').skip(1).any(open) && !issuer.contains('{') {
        return issuer.to_owned();
    }
    let labels: Vec<&str> = issuer
        .rsplit('.')
        .take_while(|label| !open(label))
        .collect();
    let name: Vec<&str> = labels.into_iter().rev().collect();
    format!("*.{}", name.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detector_sample::expand;

    #[test]
    fn every_certain_form_is_told_by_its_beginning() {
        let mut told = 0;
        for form in &SHIPPED {
            let certain = form.tier == Tier::Strong && form.anchor == Anchor::Start;
            for (seed, sample) in (1..).zip(form.samples.iter()) {
                let text = String::from_utf8(expand(sample, seed)).unwrap_or_default();
                if certain && is_one_line(&text) {
                    assert!(hosts(&text).is_some(), "{} {text}", form.id);
                    assert!(hosts(&format!("Bearer {text}")).is_some(), "{}", form.id);
                    told += 1;
                }
            }
        }
        assert!(told > 80, "{told}");
    }

    #[test]
    fn what_comes_close_to_a_form_is_nothing() {
        for form in SHIPPED.iter().filter(|form| form.tier == Tier::Strong) {
            for (seed, text) in (1..).zip(form.near_misses.iter()) {
                let text = String::from_utf8(expand(text, seed)).unwrap_or_default();
                let is_short = text.len() < form.min;
                assert!(!is_short || hosts(&text).is_none(), "{} {text}", form.id);
            }
        }
    }

    fn is_one_line(text: &str) -> bool {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || SIGNS.contains(&byte))
    }

    #[test]
    fn what_only_begins_so_is_nothing() {
        for text in [
            "ghp_short",
            "ghp_ is how such a token begins",
            "xghp_0123456789abcdefghijABCDEFGHIJ012345",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "sk-ant-api03",
            "AKIA",
            "/usr/share/AKIAN/lib",
            "postgres-client",
            "",
        ] {
            assert_eq!(hosts(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_open_in_a_host_is_any_label() {
        for (issuer, asked) in [
            ("github.com", "github.com"),
            ("*.github.com", "*.github.com"),
            ("{label}.{region}.amazonaws.com", "*.amazonaws.com"),
            ("*.s3.{region}.api.aws", "*.api.aws"),
        ] {
            assert_eq!(wide(issuer), asked);
        }
    }
}
