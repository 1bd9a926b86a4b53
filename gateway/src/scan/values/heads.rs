//! Documents in the values of a head, coded each as a whole: in a value of the query, a
//! segment of the path, a token. A credential may be cut into their texts. Reads only.

use outgate_dlp::{Piece, PieceSource};

use super::{CODED_BYTES_MIN, ContentValue, DEPTH_MAX, decoded, within};
use crate::limits;

/// The texts of documents in pieces of a head, as more pieces of the same source.
pub(in crate::scan) fn documents(pieces: &[Piece<'_>]) -> Vec<ContentValue> {
    let mut found = Vec::new();
    for piece in pieces {
        let is_symbol = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
        let words = piece.bytes.split(|byte| !is_symbol(byte));
        for text in words.filter(|word| may_be(word)).filter_map(decoded) {
            if !matches!(text.trim_ascii_start(), [b'{' | b'[', ..]) {
                continue;
            }
            let values = within(&text, DEPTH_MAX).into_iter();
            found.extend(values.map(|value| of(piece, value)));
            found.truncate(limits::SCAN_VALUES_MAX);
        }
    }
    found
}

/// Whether a word may be the coding of a document: a brace or a bracket in base 64 or in
/// hexadecimal, or a blank before one.
fn may_be(word: &[u8]) -> bool {
    word.len() >= CODED_BYTES_MIN
        && matches!(
            word,
            [b'e' | b'W' | b'I' | b'C' | b'2' | b'5' | b'7' | b'0', ..]
        )
}

/// A value of a document as a piece of the source in which the document stands.
fn of(piece: &Piece<'_>, value: ContentValue) -> ContentValue {
    let source = match (value.source, piece.source) {
        (PieceSource::ContentName, PieceSource::Query | PieceSource::Path) => {
            PieceSource::QueryName
        }
        (PieceSource::ContentName, PieceSource::Cookie) => PieceSource::CookieName,
        (PieceSource::ContentName, _) => PieceSource::FieldName,
        (_, source) => source,
    };
    // A name of the document in its place, which is no name of the head's own.
    let slot = [piece.slot, b"\0", &value.slot].concat();
    ContentValue {
        source,
        slot,
        ..value
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::{BASE64URL_NOPAD, HEXLOWER};

    use super::*;

    fn texts(source: PieceSource, bytes: &str) -> Vec<String> {
        let piece = Piece {
            source,
            slot: b"a",
            bytes: bytes.as_bytes(),
        };
        let found = documents(&[piece]).into_iter();
        let found = found.filter(|value| value.source == source);
        found
            .map(|value| String::from_utf8(value.bytes).unwrap())
            .collect()
    }

    #[test]
    fn texts_of_documents_in_a_head_are_pieces() {
        let coded = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
        let list = r#"["one piece", "two pieces"]"#;
        let object = r#" {"a": "one piece", "b": {"c": "two pieces"}}"#;
        for document in [list, object] {
            for text in [
                coded(document),
                format!("{}%3D", coded(document)),
                HEXLOWER.encode(document.as_bytes()),
                format!("Bearer {}.{}.", coded(r#"{"alg":"none"}"#), coded(document)),
            ] {
                for source in [PieceSource::Query, PieceSource::Path, PieceSource::Field] {
                    let found = texts(source, &text);
                    assert!(
                        found.ends_with(&["one piece".into(), "two pieces".into()]),
                        "{text}: {found:?}"
                    );
                }
            }
        }
        for text in [
            list,
            "Mozilla/5.0",
            &coded("only a text, and no document"),
            "",
        ] {
            assert_eq!(texts(PieceSource::Field, text), [] as [&str; 0], "{text}");
        }
    }
}
