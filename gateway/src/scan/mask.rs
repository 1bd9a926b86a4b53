//! What records, terminals and answers say of names that the command chose: hosts,
//! executables, paths of sockets, fields, its own arguments. A value that is found
//! in one, in whatever coding or in two pieces behind each other, is not written
//! down, and neither is what belongs to it. Text only; decides nothing.

use outgate_dlp::{Checked, MessagePart, Place, Ruleset, ScanDestination, ScanReport, Tier};

use super::SandboxScan;
use crate::audit::Event;

/// What stands for a value.
const MASK: &str = "*";

/// Shorter texts hold no value.
const TEXT_BYTES_MIN: usize = 8;

/// What separates the pieces of a word; the labels of a host stay together.
const BORDERS: &[char] = &['/', '?', '&', '=', ',', ';', '@', '`', '\'', '"', '(', ')'];

impl SandboxScan {
    /// A text without the values in it; nothing where there is none.
    pub(super) fn masked(&self, text: &str) -> Option<String> {
        let texts = || std::iter::once(text);
        if text.len() < TEXT_BYTES_MIN || self.is_clean_text(texts()) {
            return None;
        }
        let masked = masked(&self.rules, text);
        if masked.is_none() {
            self.add_clean_text(texts());
        }
        masked
    }

    /// A record without values in what it says; nothing where there are none.
    pub(super) fn masked_event<'e>(&self, event: &Event<'e>) -> Option<Event<'e>> {
        if self.is_clean_text(event.texts()) {
            return None;
        }
        let masks: Vec<&str> = event
            .texts()
            .filter(|text| self.masked(text).is_some())
            .collect();
        if masks.is_empty() {
            self.add_clean_text(event.texts());
            return None;
        }
        Some(event.masked(&|text| self.masked(text)))
    }
}

/// A text without the values in it; nothing where there is none.
fn masked(rules: &Ruleset, text: &str) -> Option<String> {
    if !holds(rules, text) {
        return None;
    }
    let words: Vec<String> = text.split(' ').map(|word| covered(rules, word)).collect();
    let words = words.join(" ");
    // What is left of it belongs to a value of several words.
    Some(if holds(rules, &words) {
        MASK.to_owned()
    } else {
        words
    })
}

/// A word without the pieces that hold a value.
fn covered(rules: &Ruleset, word: &str) -> String {
    if !holds(rules, word) {
        return word.to_owned();
    }
    let mut text = String::with_capacity(word.len());
    let is_split = is_split(rules, word);
    for piece in word.split_inclusive(BORDERS) {
        let content = piece.trim_end_matches(BORDERS);
        if holds(rules, content) {
            text.push_str(&host(rules, content));
        } else {
            text.push_str(content);
        }
        text.push_str(piece.get(content.len()..).unwrap_or_default());
    }
    if !is_split && text != word && !holds(rules, &text) {
        return text;
    }
    // It stands in several pieces: nobody can say in which of them it ends.
    match word.split_once("://") {
        Some((scheme, _)) if !holds(rules, scheme) => format!("{scheme}://{MASK}"),
        _ => MASK.to_owned(),
    }
}

/// A host with its labels masked, but those that somebody registered.
fn host(rules: &Ruleset, text: &str) -> String {
    let is_host = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b':' | b'_');
    let mut dots = text.rmatch_indices('.').map(|(at, _)| at);
    let domain = dots.nth(1).and_then(|at| text.get(at..));
    match domain {
        Some(domain) if text.bytes().all(is_host) && !holds(rules, domain) => {
            format!("{MASK}{domain}")
        }
        _ => MASK.to_owned(),
    }
}

/// Whether a text holds a value, also one that could go somewhere.
fn holds(rules: &Ruleset, text: &str) -> bool {
    if text.len() < TEXT_BYTES_MIN {
        return false;
    }
    let report = look(rules, text);
    report.holds || !report.findings.is_empty() || is_split(rules, text)
}

/// Whether two pieces of a text make a value that stands in neither.
fn is_split(rules: &Ruleset, text: &str) -> bool {
    let is_border =
        |character: char| matches!(character, '.' | ':' | ' ') || BORDERS.contains(&character);
    let pieces = || text.split(is_border).filter(|piece| !piece.is_empty());
    pieces().zip(pieces().skip(1)).any(|(front, back)| {
        let both = format!("{front}{back}");
        both.len() >= TEXT_BYTES_MIN
            && is_strong(rules, &both)
            && !is_strong(rules, front)
            && !is_strong(rules, back)
    })
}

/// Whether a text holds what chance does not make.
fn is_strong(rules: &Ruleset, text: &str) -> bool {
    let report = look(rules, text);
    let mut findings = report.findings.iter();
    findings.any(|found| found.tier == Tier::Strong && found.checked != Checked::Failed)
}

fn look(rules: &Ruleset, text: &str) -> ScanReport {
    let nobody = ScanDestination { host: "", port: 0 };
    let part = MessagePart {
        place: Place::Target,
        bytes: text.as_bytes(),
    };
    rules.head(&nobody, &[part])
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use outgate_dlp::{Detectors, ScanSettings, sample};

    use super::*;

    fn rules() -> Ruleset {
        Ruleset::new(&Detectors::shipped(), &ScanSettings::default()).unwrap()
    }

    /// A GitHub token with the right checksum.
    fn token() -> String {
        let shipped = Detectors::shipped();
        let own = shipped
            .iter()
            .find(|own| &*own.id == "github-token")
            .unwrap();
        let template = own.samples.first().unwrap();
        String::from_utf8(sample(template, 7)).unwrap()
    }

    fn percent(text: &str) -> String {
        let coded: Vec<String> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        coded.concat()
    }

    #[test]
    fn a_value_is_covered_wherever_it_stands() {
        let (rules, token) = (rules(), token());
        let (front, back) = token.split_at(20);
        let coded = [
            token.clone(),
            percent(&token),
            STANDARD.encode(format!("x{token}")),
        ];
        for text in coded
            .iter()
            .flat_map(|value| {
                [
                    format!("/run/{value}/socket"),
                    format!("curl -H X-Y:{value} http://a.test/b?c={value}"),
                    format!("field `x-{value}` asks for another request"),
                    format!("http://{value}.a.test:8080"),
                    value.clone(),
                ]
            })
            .chain([
                format!("/run/{front}/{back}/socket"),
                format!("GET http://{front}.{back}.drop.test: no rule allows it"),
                format!("curl a={front}&{back}"),
            ])
        {
            let masked = masked(&rules, &text).unwrap_or_else(|| panic!("{text} is shown"));
            assert!(masked.contains(MASK), "{masked}");
            for value in &coded {
                let shown =
                    (0..value.len() - 8).any(|at| masked.contains(value.get(at..at + 8).unwrap()));
                assert!(!shown, "{text}: {masked}");
            }
        }
    }

    #[test]
    fn the_rest_stays_readable() {
        let (rules, token) = (rules(), token());
        for (text, wanted) in [
            ("GET http://@/a: no", "GET http://*/a: no"),
            ("/run/@/socket", "/run/*/socket"),
            ("curl -H X-Y=@ -d b", "curl -H X-Y=* -d b"),
        ] {
            let text = text.replace('@', &token);
            assert_eq!(masked(&rules, &text).as_deref(), Some(wanted));
        }
        for text in [
            "/usr/lib/x86_64-linux-gnu/libexec/git-core/git-remote-https",
            "https://packages.example.org:443",
            "/run/user/1000/systemd/private",
            "no rule allows GET http://a.example/public/a",
            "deny * */admin/**",
        ] {
            assert_eq!(masked(&rules, text), None, "{text}");
        }
    }

    #[test]
    fn of_a_host_the_domain_is_left() {
        // In lower case a token is none; a key of hexadecimal digits is.
        let rules = rules();
        for (text, wanted) in [("x.y.z.test:8443", "*.z.test:8443"), ("y.test", "*")] {
            assert_eq!(host(&rules, text), wanted);
        }
    }
}
