//! Fields by which some origins take another method, path or host than those
//! of the request itself: what was judged would not be what is done. Reads
//! fields only; knows nothing of policy.

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use outgate_record::Reason;

use crate::destination::Destination;
use crate::malformed::Malformed;
use crate::uri_authority::named_host;

mod addresses;
mod asks;
mod batches;
mod bodies;
mod charset;
mod coding;
mod disposition;
mod filter;
mod form;
mod heads;
mod item;
mod judged;
mod kept;
mod keys;
mod late;
mod lists;
mod media;
mod members;
mod pairs;
mod readers;
mod requests;
mod second;
mod syntax;
mod words;

pub(crate) use charset::hides_query;
pub(crate) use filter::filter;

/// Refused whatever they say.
const OTHER_REQUEST: [&str; 10] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-method",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
    "x-forwarded-method",
    "x-forwarded-uri",
    "x-forwarded-path",
];

/// Refused unless they name the host of the request, with every name that joins one of
/// [`HOST_WORDS`] and one of [`OTHER_WORDS`].
const OTHER_HOST: [&str; 3] = ["forwarded", "x-host", "x-http-host"];
const HOST_WORDS: [&str; 5] = ["host", "hostname", "server", "authority", "vhost"];
const OTHER_WORDS: [&str; 5] = ["forwarded", "original", "rewrite", "override", "upstream"];

/// Refused unless they name a scheme: origins put them in front of the path.
const SCHEME: [&str; 6] = [
    "x-forwarded-proto",
    "x-forwarded-protocol",
    "x-forwarded-scheme",
    "x-scheme",
    "x-url-scheme",
    "x-original-proto",
];

/// Refused unless they name a port.
const PORT: [&str; 3] = ["x-forwarded-port", "x-original-port", "x-port"];

/// Whether no field asks for another request than the one that is judged.
///
/// # Errors
/// The answer to a request with such a field.
pub(crate) fn check(fields: &HeaderMap, to: &Destination) -> Result<(), Malformed> {
    for (name, value) in fields {
        // All of them hold a sign of these, and most fields do not.
        if !may_override(name) {
            continue;
        }
        if is_one_of(name, &OTHER_REQUEST) {
            return Err(refused(
                name,
                "asks for another request than the one judged",
            ));
        }
        if names_host(name) && !names_only(value, to) {
            return Err(refused(name, "names another host than the request"));
        }
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if is_one_of(name, &SCHEME) && !lists(value, is_word) {
            return Err(refused(name, "is no scheme"));
        }
        if is_one_of(name, &PORT) && !lists(value, |byte| byte.is_ascii_digit()) {
            return Err(refused(name, "is no port"));
        }
        if is_one_of(name, &["forwarded"]) && !names_schemes(value) {
            return Err(refused(name, "names something that is no scheme"));
        }
    }
    Ok(())
}

/// Whether a field of this name could ask for another request, whatever it says: behind
/// content (RFC 9110 6.5.1) none does, since nobody judges it there.
pub(crate) fn could_ask(name: &HeaderName) -> bool {
    let lists = [&OTHER_REQUEST[..], &OTHER_HOST, &SCHEME, &PORT];
    lists.iter().any(|list| is_one_of(name, list))
        || names_host(name)
        || asks_for_method(name.as_str())
        || second::role(name).is_some()
}

fn may_override(name: &HeaderName) -> bool {
    let name = name.as_str();
    (name.starts_with('x')
        && !name
            .as_bytes()
            .get(1)
            .is_some_and(u8::is_ascii_alphanumeric))
        || OTHER_WORDS.iter().any(|word| name.contains(word))
}

/// Whether a field of this name may be taken for the host of the request.
fn names_host(name: &HeaderName) -> bool {
    let name_text = name.as_str();
    let words = || name_text.split(|sign: char| !sign.is_ascii_alphanumeric());
    let holds = |list: &[&str]| words().any(|word| list.contains(&word));
    is_one_of(name, &OTHER_HOST) || (holds(&HOST_WORDS) && holds(&OTHER_WORDS))
}

/// A field's name as programs behind interfaces may see it: those take `_` for `-`
/// (RFC 3875 4.1.18), and some every sign that is neither letter nor digit.
fn folded(name: &str) -> String {
    let fold = |sign: char| {
        if sign.is_ascii_alphanumeric() {
            sign.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    name.chars().map(fold).collect()
}

/// Whether a name may be seen as one of these.
fn is_one_of(name: &HeaderName, list: &[&str]) -> bool {
    let name = folded(name.as_str());
    list.contains(&name.as_str())
}

/// Words of the names of fields that are told as they stand.
const WORDS: [&str; 34] = [
    "x",
    "http",
    "https",
    "method",
    "verb",
    "override",
    "request",
    "original",
    "rewrite",
    "forwarded",
    "uri",
    "url",
    "path",
    "host",
    "hostname",
    "server",
    "authority",
    "vhost",
    "upstream",
    "proto",
    "protocol",
    "scheme",
    "port",
    "prefix",
    "script",
    "name",
    "info",
    "copy",
    "source",
    "from",
    "destination",
    "rest",
    "rename",
    "envoy",
];

/// A field's name for people: what is made of anything but such words may be a value of the
/// user's, in the small letters that names have.
fn shown(name: &str) -> String {
    if is_plain(name) {
        format!("field {name}")
    } else {
        "a field whose name is not shown".to_owned()
    }
}

/// Whether a name is made of nothing but such words.
fn is_plain(name: &str) -> bool {
    let mut words = name.split(|sign: char| !sign.is_ascii_alphanumeric());
    words.all(|word| WORDS.contains(&word))
}

/// Whether a field of this name may be taken for the method of its request. The one that
/// asks beforehand about a request that comes later (Fetch 4.8) is none.
fn asks_for_method(name: &str) -> bool {
    let holds = |word: &str| name.contains(word);
    (holds("method") || holds("verb")) && folded(name) != "access-control-request-method"
}

/// Whether every host in the value is the destination's. Of `Forwarded`
/// (RFC 7239 4) only the parameter `host` names one.
fn names_only(value: &HeaderValue, to: &Destination) -> bool {
    let Ok(text) = value.to_str() else {
        return false;
    };
    let elements = text.split([',', ';']).map(str::trim);
    let hosts = elements.filter_map(|element| match element.split_once('=') {
        None => Some(element),
        Some((key, host)) if key.trim().eq_ignore_ascii_case("host") => {
            Some(host.trim().trim_matches('"'))
        }
        Some(_) => None,
    });
    hosts
        .filter(|host| !host.is_empty())
        .all(|host| named_host(host).is_some_and(|host| to.matching(&host).is_some()))
}

/// Whether it is a list of words of such bytes.
fn lists(value: &HeaderValue, is_own: impl Fn(u8) -> bool) -> bool {
    let mut words = value.as_bytes().split(|byte| *byte == b',');
    words.all(|word| word.trim_ascii().iter().all(|byte| is_own(*byte)))
}

/// Whether the parameter `proto` of `Forwarded` is a scheme wherever it stands.
fn names_schemes(value: &HeaderValue) -> bool {
    let text = value.as_bytes();
    let mut elements = text
        .split(|byte| b",;".contains(byte))
        .map(<[u8]>::trim_ascii);
    elements.all(|element| {
        let mut halves = element.splitn(2, |byte| *byte == b'=');
        let key = halves.next().unwrap_or_default().trim_ascii();
        let scheme = halves.next().unwrap_or_default().trim_ascii();
        let scheme = scheme.strip_prefix(b"\"").unwrap_or(scheme);
        let scheme = scheme.strip_suffix(b"\"").unwrap_or(scheme);
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        !key.eq_ignore_ascii_case(b"proto") || scheme.iter().all(is_word)
    })
}

fn refused(name: &HeaderName, what: &str) -> Malformed {
    Malformed {
        status: StatusCode::FORBIDDEN,
        reason: Reason::Override,
        because: format!("{} {what}", shown(name.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Party;
    use outgate_policy::HostName;

    fn verdict(name: &'static str, value: &'static str) -> bool {
        let to = Destination {
            party: Party::Name(HostName::parse("a.test").unwrap()),
            port: 80,
            address: ([198, 18, 0, 1], 80).into(),
        };
        let mut fields = HeaderMap::new();
        fields.insert(name, HeaderValue::from_static(value));
        check(&fields, &to).is_ok()
    }

    #[test]
    fn fields_that_change_the_request_are_refused() {
        for (name, value, allowed) in [
            ("x-http-method-override", "GET", false),
            ("x_http_method_override", "DELETE", false),
            ("x-http_method", "DELETE", false),
            ("x-original-url", "/", false),
            ("x-http-method.override", "DELETE", false),
            ("x~original~url", "/", false),
            ("x-original.url", "/", false),
            ("x!rewrite|url", "/", false),
            ("x-forwarded.host", "b.test", false),
            ("x.forwarded.proto", "http://a", false),
            ("xa.original", "/", true),
            ("x-method", "DELETE", true),
            ("x-forwarded-host", "a.test", true),
            ("x-forwarded-host", "A.test:80, a.test", true),
            ("x-forwarded-host", "b.test", false),
            ("x-forwarded-host", "a.test, b.test", false),
            ("x_forwarded_host", "b.test", false),
            ("x-forwarded-host", "not a host", false),
            ("x-forwarded-server", "b.test", false),
            ("x-host-override", "b.test", false),
            ("x-http-host-override", "b.test", false),
            ("forwarded-host", "b.test", false),
            ("forwarded_host", "a.test", true),
            ("x-envoy-original-host", "b.test", false),
            ("x-rewrite-authority", "b.test", false),
            ("x-hostname", "my laptop", true),
            ("server-timing", "a;dur=1", true),
            ("forwarded", "for=192.0.2.1;proto=http", true),
            ("forwarded", "for=192.0.2.1; host=\"a.test\"", true),
            ("forwarded", "for=192.0.2.1;HOST=b.test", false),
            ("forwarded", "for=1, for=2;host=b.test", false),
            ("x-forwarded-for", "192.0.2.1", true),
            ("x-forwarded-proto", "https", true),
            ("x-forwarded-proto", "https, http", true),
            ("x-forwarded-proto", "http://a.test/admin/x?", false),
            ("x_forwarded_proto", "https:", false),
            ("x-forwarded-scheme", "http/", false),
            ("x-url-scheme", "http a", false),
            ("x-scheme", "http?", false),
            ("x-forwarded-port", "443", true),
            ("x-forwarded-port", "443, 80", true),
            ("x-forwarded-port", "443/admin", false),
            ("forwarded", "for=1;proto=\"http://a.test/admin?\"", false),
            ("forwarded", "for=1, Proto = http:", false),
            ("forwarded", "for=1;proto=\"https\"", true),
        ] {
            assert_eq!(verdict(name, value), allowed, "{name}: {value}");
        }
    }
    #[test]
    fn a_field_for_the_method_is_known_by_its_name() {
        for (name, asks) in [
            ("x-method", true),
            ("method", true),
            ("_method", true),
            ("method-override", true),
            ("x_http_verb", true),
            ("x-rest-method", true),
            ("x-http-requestmethod", true),
            ("verb-override", true),
            ("access-control-request-method", false),
            ("accept", false),
            ("x-request-id", false),
        ] {
            assert_eq!(asks_for_method(name), asks, "{name}");
        }
    }
}
