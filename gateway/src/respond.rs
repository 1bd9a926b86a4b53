//! Refusals and failures as responses a person, a tool and an agent can read:
//! status, reason phrase, fields and a short text (RFC 9110, RFC 9209). Never
//! an address that was resolved. Sends nothing itself.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use hyper::ext::ReasonPhrase;

use crate::content::MessageContent;
use crate::malformed::Malformed;
use crate::origin::OriginError;
use crate::refusal::Refusal;
use crate::resolve::ResolveError;
use crate::session::Session;
use crate::text::shortened;
use outgate_policy::printable;

mod form;

pub(crate) use form::{TextForm, form};

/// Where a command reads what it may do, and asks for more: in every run, and nowhere else.
pub(crate) const OWN_URL: &str = "http://outgate.invalid/";

/// Bytes of a reason phrase: some clients keep status lines in small buffers.
const REASON_BYTES_MAX: usize = 240;

/// Bytes of a gRPC message: with the other fields below 8 KiB, all that
/// clients take in trailers.
const GRPC_MESSAGE_BYTES_MAX: usize = 2048;

/// What a refusal looks like: 403.
pub(crate) fn refusal(refusal: &Refusal, form: TextForm) -> Response<MessageContent> {
    let body = form::refusal(refusal, form);
    let mut response = own(StatusCode::FORBIDDEN, form, body);
    let rule = refusal
        .rule()
        .map_or_else(|| "-".to_owned(), |rule| rule.id.to_string());
    let denied = format!("{}; rule={rule}", refusal.reason().token());
    let name = HeaderName::from_static("outgate-denied");
    set(response.headers_mut(), name, &denied);
    let name = HeaderName::from_static("outgate-ask");
    set(response.headers_mut(), name, OWN_URL);
    proxy_status(
        response.headers_mut(),
        "http_request_denied",
        refusal.because(),
    );
    // Half of a flag is worse than none.
    let whole = refusal.advice();
    let phrase = if whole.len() <= REASON_BYTES_MAX {
        whole
    } else {
        refusal.sentence()
    };
    reason(&mut response, &phrase);
    response
}

/// What a request without a target gets.
pub(crate) fn malformed(fault: &Malformed, form: TextForm) -> Response<MessageContent> {
    let sentence = printable(&format!("outgate refused the request: {}", fault.because));
    let body = form::sentence(&sentence, fault.reason.token(), form);
    let mut response = own(fault.status, form, body);
    let denied = format!("{}; rule=-", fault.reason.token());
    let name = HeaderName::from_static("outgate-denied");
    set(response.headers_mut(), name, &denied);
    proxy_status(response.headers_mut(), "http_request_error", &fault.because);
    reason(&mut response, &format!("outgate: {}", fault.because));
    response
}

/// What stands for a response that did not come: 502 or 504, or 403 where the
/// addresses of the origin were refused. The session knows what may be shown.
pub(crate) fn failure(
    error: &OriginError,
    form: TextForm,
    session: &Session,
) -> Response<MessageContent> {
    let (status, kind) = match error {
        OriginError::Denied(denied) | OriginError::Stopped(denied) => {
            return refusal(&session.recorder().shown(denied), form);
        }
        OriginError::Resolve(ResolveError::Timeout(_)) => {
            (StatusCode::GATEWAY_TIMEOUT, "dns_timeout")
        }
        OriginError::Resolve(_) => (StatusCode::BAD_GATEWAY, "dns_error"),
        OriginError::Connect(_, cause) => match cause.kind() {
            std::io::ErrorKind::ConnectionRefused => {
                (StatusCode::BAD_GATEWAY, "connection_refused")
            }
            std::io::ErrorKind::TimedOut => (StatusCode::GATEWAY_TIMEOUT, "connection_timeout"),
            _ => (StatusCode::BAD_GATEWAY, "destination_unavailable"),
        },
        OriginError::Tls(..) => (StatusCode::BAD_GATEWAY, "tls_certificate_error"),
        OriginError::Proxy(..) => (StatusCode::BAD_GATEWAY, "destination_unavailable"),
        OriginError::Timeout(_) => (StatusCode::GATEWAY_TIMEOUT, "connection_timeout"),
        OriginError::Protocol(..) | OriginError::Reset(..) => {
            (StatusCode::BAD_GATEWAY, "http_protocol_error")
        }
        OriginError::OtherPermit(_) => (StatusCode::INTERNAL_SERVER_ERROR, "proxy_internal_error"),
        // The client's own fault, whatever the origin is like.
        OriginError::Content(_) => (StatusCode::BAD_REQUEST, "http_request_error"),
    };
    let text = error.to_string();
    let text = session.recorder().masked(&text).unwrap_or(text);
    let sentence = printable(&format!("outgate: {text}"));
    let body = form::sentence(&sentence, kind, form);
    let mut response = own(status, form, body);
    proxy_status(response.headers_mut(), kind, &text);
    reason(&mut response, &sentence);
    response
}

fn own(status: StatusCode, form: TextForm, body: String) -> Response<MessageContent> {
    let kind = match form {
        TextForm::Text => "text/plain; charset=us-ascii",
        TextForm::Json => "application/json",
        TextForm::Xml => "application/xml",
        TextForm::Grpc => return grpc(status, &body),
    };
    let mut response = Response::new(MessageContent::text(body));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A response of nothing but a head, which holds the status of the call:
/// clients show the sentence only if the status of HTTP is 200.
fn grpc(status: StatusCode, sentence: &str) -> Response<MessageContent> {
    let code = match status {
        StatusCode::FORBIDDEN => "7",
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => "14",
        _ => "13",
    };
    let mut response = Response::new(MessageContent::empty());
    let fields = response.headers_mut();
    let kind = HeaderValue::from_static("application/grpc");
    fields.insert(header::CONTENT_TYPE, kind);
    let name = HeaderName::from_static("grpc-status");
    fields.insert(name, HeaderValue::from_static(code));
    // Of printable ASCII only the percent sign is escaped in a message.
    let sentence = shortened(&printable(sentence), GRPC_MESSAGE_BYTES_MAX).replace('%', "%25");
    set(fields, HeaderName::from_static("grpc-message"), &sentence);
    response
}

fn set(fields: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::try_from(printable(text)) {
        fields.insert(name, value);
    }
}

/// RFC 9209 2, with the details as an sf-string (RFC 9651 3.3.3).
fn proxy_status(fields: &mut HeaderMap, kind: &str, details: &str) {
    let details = shortened(&printable(details), REASON_BYTES_MAX);
    let details = details.replace('\\', "\\\\").replace('"', "\\\"");
    let text = format!("outgate; error={kind}; details=\"{details}\"");
    set(fields, HeaderName::from_static("proxy-status"), &text);
}

fn reason(response: &mut Response<MessageContent>, phrase: &str) {
    let phrase = shortened(&printable(phrase), REASON_BYTES_MAX);
    if let Ok(phrase) = ReasonPhrase::try_from(phrase.into_bytes()) {
        response.extensions_mut().insert(phrase);
    }
}
