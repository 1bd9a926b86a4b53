//! Credentials told by their form, whatever the variable is called that holds one: the
//! beginning that the detector of a certain form looks for, and as many letters behind it
//! as the form has. No pattern is run, so that every start of a run can afford it.

use crate::validate::entropy;

/// Longest value that is looked at, in bytes: a longer one is a text.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A place in [`TEXT`]: its first byte, and the first behind it.
type TextPlace = (u16, u16);

/// What the form of a certain detector is told by.
struct CredentialForm {
    /// Lengths in bytes.
    min: u32,
    max: u32,
    /// Bits a byte.
    min_entropy: f32,
    /// Which of [`SIGNS`] it may hold, the first by the lowest bit.
    signs: u8,
    /// Hosts that it is for, one a line.
    hosts: TextPlace,
}

/// How a form begins.
struct FormBeginning {
    text: TextPlace,
    /// Its place in [`FORMS`].
    form: u16,
}

// `SIGNS` in the order of a form's bits, `TEXT`, `FORMS`, `BEGINNINGS` in the order of their first bytes, and `STARTS`, for each
// byte the first beginning with it, by `forms/written.rs`. No pointer is among them: the
// table of detectors has thousands, each of which costs every start of a program.
include!(concat!(env!("OUT_DIR"), "/forms.rs"));

fn text((at, end): TextPlace) -> &'static [u8] {
    TEXT.get(usize::from(at)..usize::from(end))
        .unwrap_or_default()
}

/// The beginnings with this first byte.
fn beginnings(first: u8) -> &'static [FormBeginning] {
    let start = |byte: usize| STARTS.get(byte).map_or(0, |start| usize::from(*start));
    let byte = usize::from(first);
    let rows = start(byte)..start(byte.saturating_add(1));
    BEGINNINGS.get(rows).unwrap_or_default()
}

/// The hosts that a credential in a value is for, as `NAME` or `*.NAME`; `None` where the
/// value holds none of a certain form.
pub(super) fn hosts(value: &str) -> Option<Vec<String>> {
    let bytes = value.as_bytes();
    if bytes.len() > VALUE_BYTES_MAX {
        return None;
    }
    let mut before = b' ';
    for (at, byte) in bytes.iter().enumerate() {
        let is_word = std::mem::replace(&mut before, *byte).is_ascii_alphanumeric();
        if is_word {
            continue;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let mut forms = beginnings(*byte).iter().filter_map(|row| form(rest, row));
        if let Some(form) = forms.next() {
            let hosts = String::from_utf8_lossy(text(form.hosts));
            return Some(hosts.lines().map(str::to_owned).collect());
        }
    }
    None
}

/// The form that a text begins with a credential of.
fn form(whole: &[u8], begin: &FormBeginning) -> Option<&'static CredentialForm> {
    let form = FORMS.get(usize::from(begin.form))?;
    let begin = text(begin.text);
    let tail = whole.strip_prefix(begin)?;
    let letters = tail.iter().take_while(|byte| form.may_hold(**byte)).count();
    let bytes = begin.len().saturating_add(letters);
    let size = |size: u32| usize::try_from(size).unwrap_or(usize::MAX);
    let most = whole.get(..bytes.min(size(form.max))).unwrap_or_default();
    let is_of = bytes >= size(form.min) && entropy::bits(most) >= f64::from(form.min_entropy);
    is_of.then_some(form)
}

impl CredentialForm {
    fn may_hold(&self, byte: u8) -> bool {
        let bit = SIGNS.iter().position(|sign| *sign == byte);
        byte.is_ascii_alphanumeric() || bit.is_some_and(|bit| self.signs >> bit & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detector::{Anchor, Tier};
    use crate::detector_sample::expand;
    use crate::shipped::shipped;

    #[test]
    fn every_certain_form_is_told_by_its_beginning() {
        let mut told = 0;
        for form in shipped() {
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
        for form in shipped().iter().filter(|form| form.tier == Tier::Strong) {
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
    fn a_form_has_the_hosts_of_its_detector() {
        let open =
            |host: &str| host.contains('{') || host.split('.').skip(1).any(|label| label == "*");
        for form in shipped()
            .iter()
            .filter(|form| form.tier == Tier::Strong && form.anchor == Anchor::Start)
        {
            let Some(sample) = form.samples.first() else {
                continue;
            };
            let text = String::from_utf8(expand(sample, 1)).unwrap_or_default();
            let Some(hosts) = hosts(&text) else { continue };
            assert_eq!(hosts.len(), form.issuers.len(), "{}", form.id);
            for (host, issuer) in hosts.iter().zip(form.issuers.iter()) {
                let end = host.strip_prefix('*').unwrap_or(host);
                assert!(
                    issuer.ends_with(end) && (open(issuer) || host == issuer),
                    "{host} {issuer}"
                );
                assert!(!open(host), "{host}");
            }
        }
        let aws = hosts("AKIAIOSFODNN7EXAMPLE").unwrap_or_default();
        assert!(aws.iter().any(|host| host == "*.amazonaws.com"), "{aws:?}");
    }
}
