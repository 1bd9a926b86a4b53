//! The forms in which clients read a text of the gateway, and a refusal in each
//! of them: plain for people and for tools that show it as it came, JSON, gRPC,
//! and the XML of stores of objects. Text in, text out.

use http::header::{self, HeaderMap};
use serde_json::json;

use crate::fields::names_in;
use crate::refusal::Refusal;
use outgate_policy::printable;

use super::OWN_URL;

/// How the client wants to read a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextForm {
    Text,
    Json,
    /// A status and a sentence as gRPC clients show them.
    Grpc,
    /// The error of a store of objects (S3), whose clients show no other.
    Xml,
}

/// gRPC and XML where the request is of that kind; JSON where `Accept` names it
/// and not `text/plain`, or where the request itself is of a kind that clients
/// answer to in JSON only.
pub(crate) fn form(fields: &HeaderMap) -> TextForm {
    if is_grpc(fields) {
        return TextForm::Grpc;
    }
    if fields.contains_key("x-amz-content-sha256") {
        return TextForm::Xml;
    }
    let mut form = if is_kind(fields, b"application/x-amz-json-1") {
        TextForm::Json
    } else {
        TextForm::Text
    };
    for media in names_in(fields, &header::ACCEPT) {
        let kind = media.split(';').next().unwrap_or_default().trim();
        let kind = kind.to_ascii_lowercase();
        if kind == "text/plain" || kind == "text/html" {
            return TextForm::Text;
        }
        if kind == "application/json" || kind.ends_with("+json") {
            form = TextForm::Json;
        }
    }
    form
}

/// `application/grpc`, with whatever coding of its messages.
fn is_grpc(fields: &HeaderMap) -> bool {
    is_kind(fields, b"application/grpc")
}

/// Whether the content is of `kind`, or of a kind that goes on after a mark.
fn is_kind(fields: &HeaderMap, kind: &[u8]) -> bool {
    fields
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.as_bytes().strip_prefix(kind))
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ' | b'.')))
}

/// The content of a refusal.
pub(super) fn refusal(refusal: &Refusal, form: TextForm) -> String {
    let sentence = refusal.sentence();
    let hint = refusal.hint().map(|hint| printable(&hint));
    match form {
        TextForm::Text => {
            let hint = hint.map(|hint| format!("to allow it: {hint}\n"));
            let note = refusal.note().map(|note| format!("{note}\n"));
            let (hint, note) = (hint.unwrap_or_default(), note.unwrap_or_default());
            format!("{sentence}\n{hint}{note}")
        }
        TextForm::Grpc => noted(refusal),
        TextForm::Xml => xml("AccessDenied", &noted(refusal)),
        TextForm::Json => {
            let advice = refusal.advice();
            let value = json!({
                "error": sentence,
                "message": advice,
                "detail": advice,
                "reason": refusal.reason().token(),
                "rule": refusal.rule().map(|rule| rule.text.to_string()),
                "hint": hint,
                "note": refusal.note(),
                "ask": OWN_URL,
                "errors": [{ "detail": advice }],
            });
            format!("{value}\n")
        }
    }
}

/// One sentence as content; `token` says which kind of fault it is.
pub(super) fn sentence(sentence: &str, token: &str, form: TextForm) -> String {
    match form {
        TextForm::Text => format!("{sentence}\n"),
        TextForm::Grpc => sentence.to_owned(),
        TextForm::Xml => xml("InternalError", sentence),
        TextForm::Json => {
            let value = json!({ "error": sentence, "message": sentence, "reason": token });
            format!("{value}\n")
        }
    }
}

/// What a client shows in one line, with the operator's sentence.
fn noted(refusal: &Refusal) -> String {
    let advice = refusal.advice();
    match refusal.note() {
        Some(note) => format!("{advice}; {note}"),
        None => advice,
    }
}

fn xml(code: &str, message: &str) -> String {
    let mut escaped = String::with_capacity(message.len());
    for character in message.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            other => escaped.push(other),
        }
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{escaped}</Message></Error>\n"
    )
}

#[cfg(test)]
mod tests {
    use outgate_record::Reason;

    use super::*;

    fn of(fields: &[(&'static str, &'static str)]) -> TextForm {
        let fields = fields.iter().map(|(name, value)| {
            let name = header::HeaderName::from_static(name);
            (name, header::HeaderValue::from_static(value))
        });
        form(&fields.collect())
    }

    #[test]
    fn every_client_gets_the_form_it_reads() {
        for (fields, expected) in [
            (&[][..], TextForm::Text),
            (&[("accept", "*/*")], TextForm::Text),
            (&[("accept", "application/json, */*")], TextForm::Json),
            (
                &[("accept", "application/json, text/html;q=0.1")],
                TextForm::Text,
            ),
            (&[("content-type", "application/json")], TextForm::Text),
            (
                &[("content-type", "application/x-amz-json-1.0")],
                TextForm::Json,
            ),
            (
                &[("content-type", "application/x-amz-json-10")],
                TextForm::Text,
            ),
            (
                &[("x-amz-content-sha256", "UNSIGNED-PAYLOAD")],
                TextForm::Xml,
            ),
            (
                &[("content-type", "application/grpc+proto")],
                TextForm::Grpc,
            ),
            (&[("content-type", "application/grpc-web")], TextForm::Text),
        ] {
            assert_eq!(of(fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn no_word_of_a_request_becomes_markup() {
        let own = Refusal::own(
            Reason::Authority,
            "GET http://a.example/?<b>&\"'",
            "no rule",
        );
        let text = refusal(&own, TextForm::Xml);
        assert!(
            text.contains(
                "<Message>outgate denied GET http://a.example/?&lt;b&gt;&amp;\"': no rule</Message>"
            ),
            "{text}"
        );
        let json: serde_json::Value =
            serde_json::from_str(&refusal(&own, TextForm::Json)).expect("JSON");
        assert_eq!(
            json["message"],
            "outgate denied GET http://a.example/?<b>&\"': no rule"
        );
    }
}
