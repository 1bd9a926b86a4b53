//! The `[tls]` table of a policy document: when TLS is opened, by which
//! authority, and as whom the gateway presents itself to which host.
//!
//! Split off [`crate::document`] for length; the same duties and limits. Paths
//! stay text: nothing here looks at a file.

use super::keys;
use super::reader::{DocumentReader, Item, Text};
use crate::draft::Draft;
use crate::expand::{PathFault, expand};
use crate::host::{Host, shown};
use crate::settings::{ClientCertificate, Intercept};

/// The words for when TLS is opened.
pub(crate) const INTERCEPTS: [(&str, Intercept); 3] = [
    ("when-needed", Intercept::WhenNeeded),
    ("always", Intercept::Always),
    ("never", Intercept::Never),
];

/// Reads the table.
pub(crate) fn tls(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    reader.table("tls", value, keys::TLS, |reader, key, value| match key {
        "intercept" => {
            if let Some(intercept) = reader.word(key, value, &INTERCEPTS) {
                reader.draft.policy.settings.intercept = intercept;
            }
        }
        "authority" => {
            let path = reader.string(key, value);
            let path = path.and_then(|path| absolute(reader.draft, path));
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
    reader.table("tls.client", item, keys::CLIENT, |reader, key, value| {
        let before = reader.draft.faults();
        let text = reader.string(key, value);
        match key {
            "host" => host = text,
            "certificate" => certificate = text,
            _ => private = text,
        }
        sound &= reader.draft.faults() == before;
    });
    let Some(host) = host else {
        return reader.missing(item, "host", "host = \"api.example.org\"");
    };
    let Some(certificate) = certificate else {
        return reader.missing(item, "certificate", "certificate = \"client.pem\"");
    };
    // One file may hold both.
    let files = (certificate, private.unwrap_or(certificate));
    if let (Some(client), true) = (presented(reader.draft, host, files), sound) {
        reader.draft.client(host.0, client);
    }
}

/// A certificate and its private key, and the one host that they are presented to.
pub(crate) fn presented(
    draft: &mut Draft<'_>,
    (at, host): Text<'_, '_>,
    (certificate, private): (Text<'_, '_>, Text<'_, '_>),
) -> Option<ClientCertificate> {
    let host = match Host::parse(host) {
        Ok(host) => host,
        Err(error) => {
            let hint = "a certificate is presented to one host: name it, as `api.example.org`";
            draft.fault(at.error(0, error.to_string(), Some(hint.to_owned())));
            return None;
        }
    };
    let certificate = absolute(draft, certificate);
    let key = absolute(draft, private);
    Some(ClientCertificate {
        host,
        certificate: certificate?,
        key: key?,
        place: at.place(),
    })
}

/// A path of the document, absolute.
pub(crate) fn absolute(draft: &mut Draft<'_>, (at, text): Text<'_, '_>) -> Option<String> {
    match expand(text, draft.context) {
        Ok(path) => return Some(path),
        Err(PathFault::Unknown(name)) => {
            let message = format!("the {name} directory is unknown here");
            let hint = format!("write the path itself instead of `{}`", shown(text));
            draft.fault(at.error(0, message, Some(hint)));
        }
        Err(PathFault::Wrong(message, hint)) => {
            draft.fault(at.error(0, message, Some(hint.to_owned())));
        }
    }
    None
}
