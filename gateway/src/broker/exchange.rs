//! What secrets ask of the exchanges with the hosts they are bound to: that
//! responses come whole and uncoded, so that a value in one can be seen. Edits
//! fields; knows no values.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use outgate_policy::{Host, Secret};

use super::SessionSecrets;

/// Fields by which a client asks for parts or differences: of a value that comes
/// in parts nobody sees the whole.
const PARTIAL: [HeaderName; 4] = [
    header::RANGE,
    header::IF_RANGE,
    HeaderName::from_static("a-im"),
    HeaderName::from_static("want-digest"),
];

/// Makes a request to a bound host one whose response can be looked into.
pub(crate) fn restrict(fields: &mut HeaderMap) {
    for name in PARTIAL {
        fields.remove(name);
    }
    let identity = HeaderValue::from_static("identity");
    fields.insert(header::ACCEPT_ENCODING, identity);
}

/// Makes a WebSocket one whose messages can be looked into, wherever it leads:
/// compressed ones cannot.
pub(crate) fn plain(fields: &mut HeaderMap) {
    fields.remove(header::SEC_WEBSOCKET_EXTENSIONS);
}

impl SessionSecrets {
    /// Whether some secret is bound to this host.
    pub(crate) fn guards(&self, host: &Host, port: u16) -> bool {
        let mut secrets = self.bound.iter();
        secrets.any(|secret: &Secret| secret.is_for(host, port))
    }
}

/// The coding of content, if it has one.
pub(crate) fn coding(fields: &HeaderMap) -> Option<&HeaderValue> {
    let mut codings = fields.get_all(header::CONTENT_ENCODING).iter();
    codings.find(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}
