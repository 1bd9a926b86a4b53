//! Options of the command line that say what keys of policy documents say: one value each,
//! read as it was typed, by the functions that read the keys. `-a` and its like are rules and
//! paths, and read where those are.

use crate::document::inspect::{MODES, add, judge_id};
use crate::document::known::{PRECAUTIONS, bind, host};
use crate::document::tls::{INTERCEPTS, absolute, presented};
use crate::document::{Text, word};
use crate::draft::Draft;
use crate::host::shown;
use crate::settings::{Enforcement, InspectDetector, Switch};
use crate::source::PolicyOption;

/// How far a run that monitors lets go, in words.
const REACHES: [(&str, Enforcement); 2] = [
    ("public", Enforcement::Monitor),
    ("all", Enforcement::MonitorAll),
];

/// Adds what an option says to the draft.
pub(crate) fn read(draft: &mut Draft<'_>, option: PolicyOption, text: Text<'_, '_>) {
    let key = key(option, text.1);
    draft.note(key, text.0);
    match option {
        PolicyOption::Intercept => {
            if let Some(intercept) = word(draft, key, text, &INTERCEPTS) {
                draft.policy.settings.intercept = intercept;
            }
        }
        PolicyOption::Authority => {
            let path = absolute(draft, text);
            draft.policy.settings.authority = path.or(draft.policy.settings.authority.take());
        }
        PolicyOption::ClientCertificate => certificate(draft, text),
        PolicyOption::Inspect => {
            if let Some(mode) = word(draft, key, text, &MODES) {
                draft.policy.settings.inspect = mode;
            }
        }
        PolicyOption::Detector => detector(draft, text),
        PolicyOption::Known => known(draft, key, text),
        PolicyOption::KnownFile => {
            let path = absolute(draft, text);
            draft.policy.settings.known_file = path.or(draft.policy.settings.known_file.take());
        }
        PolicyOption::Canaries => {
            if let Some(canaries) = word(draft, key, text, &PRECAUTIONS) {
                draft.policy.settings.canaries = canaries;
            }
        }
        PolicyOption::Strict => draft.policy.settings.strict = Switch::On,
        PolicyOption::Monitor => {
            if let Some(enforcement) = word(draft, key, text, &REACHES) {
                draft.policy.settings.enforcement = enforcement;
            }
        }
    }
}

/// The key of documents that says the same.
fn key(option: PolicyOption, text: &str) -> &'static str {
    match option {
        PolicyOption::Intercept => "tls.intercept",
        PolicyOption::Authority => "tls.authority",
        PolicyOption::ClientCertificate => "tls.client",
        PolicyOption::Inspect => "inspect.mode",
        PolicyOption::Detector => "inspect.detector",
        PolicyOption::Known if text.contains('@') => "inspect.value",
        PolicyOption::Known => "inspect.known",
        PolicyOption::KnownFile => "inspect.known_file",
        PolicyOption::Canaries => "inspect.canaries",
        PolicyOption::Strict => "strict",
        PolicyOption::Monitor => "monitor",
    }
}

/// `HOST=CERT[:KEY]`: one file may hold both.
fn certificate(draft: &mut Draft<'_>, (at, text): Text<'_, '_>) {
    let parts = text.split_once('=');
    let Some((host, files)) = parts.filter(|(host, files)| !host.is_empty() && !files.is_empty())
    else {
        let hint = "write HOST=CERT.pem:KEY.pem, or HOST=BOTH.pem";
        return malformed(draft, (at, text), "is no certificate for a host", hint);
    };
    let (certificate, key) = files.split_once(':').unwrap_or((files, files));
    if let Some(client) = presented(draft, (at, host), ((at, certificate), (at, key))) {
        draft.client(at, client);
    }
}

/// `ID=MODE`.
fn detector(draft: &mut Draft<'_>, (at, text): Text<'_, '_>) {
    let parts = text.split_once('=').filter(|(id, _)| !id.is_empty());
    let mode = |word: &str| MODES.iter().find(|(own, _)| *own == word);
    let Some((id, (_, mode))) = parts.and_then(|(id, word)| Some((id, mode(word)?))) else {
        let hint = "write ID=block, ID=warn or ID=off";
        return malformed(draft, (at, text), "is no mode of a detector", hint);
    };
    if judge_id(draft, (at, id)) {
        let own = InspectDetector {
            id: id.to_owned(),
            mode: Some(*mode),
            form: None,
            place: at.place(),
        };
        add(draft, at, own);
    }
}

/// `NAME@HOST`, where the name may have more of them, or whether anything is known.
fn known(draft: &mut Draft<'_>, key: &str, (at, text): Text<'_, '_>) {
    let is_word = PRECAUTIONS.iter().any(|(word, _)| *word == text);
    match text.rsplit_once('@') {
        Some((name, to)) if !name.is_empty() && !to.is_empty() => {
            if let Some(host) = host(draft, (at, to)) {
                bind(draft, (at, name), vec![host]);
            }
        }
        None if is_word => {
            if let Some(known) = word(draft, key, (at, text), &PRECAUTIONS) {
                draft.policy.settings.known = known;
            }
        }
        Some(_) | None => {
            let hint = "write NAME@HOST, as MYCORP_TOKEN@api.example.org, or off";
            malformed(draft, (at, text), "names no value and its host", hint);
        }
    }
}

fn malformed(draft: &mut Draft<'_>, (at, text): Text<'_, '_>, what: &str, hint: &str) {
    let message = format!("`{}` {what}", shown(text));
    draft.fault(at.error(0, message, Some(hint.to_owned())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::compile::tests::context;
    use crate::policy::Policy;
    use crate::source::{Source, SourceKind};

    fn compiled(kind: SourceKind, text: &str) -> Result<Policy, String> {
        let source = Source {
            kind,
            place: "--option".to_owned(),
            text: text.to_owned(),
        };
        compile(&[source], &context()).map_err(|errors| errors.to_string())
    }

    #[test]
    fn an_option_says_what_its_key_says() {
        for (option, text, document) in [
            (
                PolicyOption::Intercept,
                "never",
                "tls.intercept = \"never\"",
            ),
            (
                PolicyOption::Intercept,
                "always",
                "tls.intercept = \"always\"",
            ),
            (
                PolicyOption::Authority,
                "ca \"x\"",
                "tls.authority = 'ca \"x\"'",
            ),
            (
                PolicyOption::ClientCertificate,
                "a.test=c.pem:~/k.pem",
                "tls.client = [{host = \"a.test\", certificate = \"c.pem\", key = \"~/k.pem\"}]",
            ),
            (
                PolicyOption::ClientCertificate,
                "a.test=both=.pem",
                "tls.client = [{host = \"a.test\", certificate = \"both=.pem\"}]",
            ),
            (PolicyOption::Inspect, "warn", "inspect.mode = \"warn\""),
            (
                PolicyOption::Detector,
                "iban=block",
                "inspect.detector = [{id = \"iban\", mode = \"block\"}]",
            ),
            (
                PolicyOption::Known,
                "me@home@a.test",
                "inspect.value = [{name = \"me@home\", hosts = [\"a.test\"]}]",
            ),
            (PolicyOption::Known, "off", "inspect.known = \"off\""),
            (
                PolicyOption::KnownFile,
                "~/list",
                "inspect.known_file = \"~/list\"",
            ),
            (PolicyOption::Canaries, "off", "inspect.canaries = \"off\""),
            (PolicyOption::Strict, "", "strict = true"),
        ] {
            let own = compiled(SourceKind::Option(option), text).unwrap();
            let other = compiled(SourceKind::Document, document).unwrap();
            let other = format!("{other:?}");
            // A document knows the line and the column as well.
            let place = |text: &str| {
                let mut parts = text.split("--option:1:");
                let first = parts.next().unwrap_or_default().to_owned();
                let rest = parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
                rest.fold(first, |text, part| text + "--option" + part)
            };
            assert_eq!(format!("{own:?}"), place(&other), "{document}");
        }
    }

    #[test]
    fn a_fault_says_what_to_write() {
        for (option, text, says) in [
            (PolicyOption::Intercept, "sometimes", "known are"),
            (PolicyOption::Authority, "~bob", "--option: "),
            (
                PolicyOption::ClientCertificate,
                "a.test",
                "write HOST=CERT.pem:KEY.pem",
            ),
            (
                PolicyOption::ClientCertificate,
                "=c.pem",
                "write HOST=CERT.pem:KEY.pem",
            ),
            (
                PolicyOption::ClientCertificate,
                "*.a.test=c.pem",
                "is presented to one host",
            ),
            (PolicyOption::Inspect, "Block", "known are"),
            (PolicyOption::Detector, "iban", "write ID=block"),
            (PolicyOption::Detector, "=block", "write ID=block"),
            (PolicyOption::Detector, "iban=perhaps", "write ID=block"),
            (
                PolicyOption::Detector,
                "IBAN=block",
                "`IBAN` is no id of a detector",
            ),
            (PolicyOption::Known, "A_TOKEN", "write NAME@HOST"),
            (PolicyOption::Known, "@a.test", "write NAME@HOST"),
            (PolicyOption::Known, "A_TOKEN@", "write NAME@HOST"),
            (
                PolicyOption::Known,
                "A_TOKEN@*.test",
                "never bound to a wildcard",
            ),
            (PolicyOption::KnownFile, "", "--option: "),
            (PolicyOption::Canaries, "", "known are"),
        ] {
            let faults = compiled(SourceKind::Option(option), text).unwrap_err();
            assert!(faults.contains(says), "{option:?} {text}: {faults}");
            assert!(
                faults.starts_with("--option: "),
                "{option:?} {text}: {faults}"
            );
        }
    }
}
