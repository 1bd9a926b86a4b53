//! The `[tls]` table of a policy document: when TLS is opened, by which
//! authority, and as whom the gateway presents itself to which host.
//!
//! Split off [`crate::document`] for length; the same duties and limits. Paths
//! stay text: nothing here looks at a file.

use super::reader::{DocumentReader, Item};
use crate::expand::{PathFault, expand};
use crate::host::{Host, shown};
use crate::location::At;
use crate::settings::{ClientCertificate, Intercept};

/// Reads the table.
pub(crate) fn tls(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    let words = [
        ("when-needed", Intercept::WhenNeeded),
        ("always", Intercept::Always),
        ("never", Intercept::Never),
    ];
    let known = ["intercept", "authority", "client"];
    reader.table("tls", value, &known, |reader, key, value| match key {
        "intercept" => {
            if let Some(intercept) = reader.word(key, value, &words) {
                reader.draft.policy.settings.intercept = intercept;
            }
        }
        "authority" => {
            let path = reader.string(key, value);
            let path = path.and_then(|(at, text)| absolute(reader, at, text));
            if path.is_some() {
                reader.draft.policy.settings.authority = path;
            }
        }
        _ => {
            for item in reader.array("tls.client", value) {
                client(reader, item);
            }
        }
    });
}

/// One certificate that is presented to one host.
fn client(reader: &mut DocumentReader<'_, '_, '_>, item: Item<'_>) {
    let (mut host, mut certificate, mut private) = (None, None, None);
    let mut sound = true;
    let known = ["host", "certificate", "key"];
    reader.table("tls.client", item, &known, |reader, key, value| {
        let before = reader.draft.faults();
        let text = reader.string(key, value);
        match key {
            "host" => host = text,
            "certificate" => certificate = text,
            _ => private = text,
        }
        sound &= reader.draft.faults() == before;
    });
    let Some((at, text)) = host else {
        return reader.missing(item, "host", "host = \"api.example.org\"");
    };
    let Some(certificate) = certificate else {
        return reader.missing(item, "certificate", "certificate = \"client.pem\"");
    };
    let host = match Host::parse(text) {
        Ok(host) => host,
        Err(error) => {
            let hint = "a certificate is presented to one host: name it, as `api.example.org`";
            let fault = at.error(0, error.to_string(), Some(hint.to_owned()));
            return reader.draft.fault(fault);
        }
    };
    // One file may hold both.
    let private = private.unwrap_or(certificate);
    let certificate = absolute(reader, certificate.0, certificate.1);
    let private = absolute(reader, private.0, private.1);
    if let (Some(certificate), Some(key), true) = (certificate, private, sound) {
        let place = at.place();
        let client = ClientCertificate {
            host,
            certificate,
            key,
            place,
        };
        reader.draft.client(at, client);
    }
}

/// A path of the document, absolute.
pub(crate) fn absolute(
    reader: &mut DocumentReader<'_, '_, '_>,
    at: At<'_>,
    text: &str,
) -> Option<String> {
    match expand(text, reader.draft.context) {
        Ok(path) => return Some(path),
        Err(PathFault::Unknown(name)) => {
            let message = format!("the {name} directory is unknown here");
            let hint = format!("write the path itself instead of `{}`", shown(text));
            reader.draft.fault(at.error(0, message, Some(hint)));
        }
        Err(PathFault::Wrong(message, hint)) => {
            let fault = at.error(0, message, Some(hint.to_owned()));
            reader.draft.fault(fault);
        }
    }
    None
}
