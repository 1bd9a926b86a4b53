//! How content describes itself, kept as long as a scan of it may begin anew.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use http::header::{self, HeaderMap};
use http::request;
use outgate_dlp::{Description, Place, Stream};

use super::{SandboxScan, destination, host};
use crate::target::Target;

/// How content describes itself.
#[derive(Debug)]
pub(super) struct ContentDescription {
    pub(super) media_type: Option<Vec<u8>>,
    pub(super) codings: Option<Vec<u8>>,
    length: Option<u64>,
}

impl ContentDescription {
    /// As the head of the request has it.
    pub(super) fn of(head: &request::Parts) -> Self {
        let value = |name| head.headers.get(name).map(http::HeaderValue::as_bytes);
        let length = value(header::CONTENT_LENGTH);
        Self {
            media_type: value(header::CONTENT_TYPE).map(<[u8]>::to_vec),
            codings: codings(&head.headers),
            length: length.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()),
        }
    }

    /// A scan of such content that has seen nothing of it.
    pub(super) fn stream(
        &self,
        scan: &SandboxScan,
        target: &Target,
        halt: &Arc<AtomicBool>,
    ) -> Stream {
        let name = host(&target.host);
        let description = Description {
            place: Place::Content,
            media_type: self.media_type.as_deref(),
            content_codings: self.codings.as_deref(),
            length: self.length,
        };
        let to = destination(&name, target.port);
        let stream = scan.rules.stream(&to, &description);
        let stream = stream.for_path(target.resource.path());
        stream.halted_by(Arc::clone(halt))
    }
}

/// All content codings as one list (RFC 9110 8.4).
fn codings(fields: &HeaderMap) -> Option<Vec<u8>> {
    let values: Vec<&[u8]> = fields
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .map(http::HeaderValue::as_bytes)
        .collect();
    (!values.is_empty()).then(|| values.join(&b","[..]))
}
