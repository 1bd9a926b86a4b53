//! The character set that a request asks for. Some origins read its query in it too,
//! and in one that writes ASCII otherwise keys and values are not what they look
//! like. Reads fields only.

use http::header::HeaderMap;

use outgate_dlp::charset::writes_ascii;

use super::folded;

/// Whether a query cannot be read as it stands, since its character set is unknown or
/// writes ASCII otherwise.
pub(crate) fn hides_query(fields: &HeaderMap) -> bool {
    let kinds = fields
        .iter()
        .filter(|(name, _)| folded(name.as_str()) == "content-type");
    kinds
        .into_iter()
        .any(|(_, value)| !writes_ascii(value.as_bytes()))
}
