//! Whether a request is of the live page itself: asked by its own name, and of no other page
//! that a browser shows. Against DNS rebinding, and against pages of other sites and ports.

use http::{HeaderMap, Request, StatusCode, header};

/// Why it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRefusal {
    pub(super) status: StatusCode,
    pub(super) because: &'static str,
}

/// The one value of a field; nothing where there are more.
fn only<'f>(fields: &'f HeaderMap, name: &str) -> Option<&'f [u8]> {
    let mut values = fields.get_all(name).into_iter();
    let first = values.next()?;
    values.next().is_none().then(|| first.as_bytes())
}

/// Judges a request by its head.
pub(super) fn is_of_page<B>(request: &Request<B>, authority: &str) -> Result<(), PageRefusal> {
    let fields = request.headers();
    let is_named = only(fields, header::HOST.as_str()) == Some(authority.as_bytes());
    if !is_named || request.uri().authority().is_some() {
        return Err(PageRefusal {
            status: StatusCode::MISDIRECTED_REQUEST,
            because: "Nothing of that name is here.\n",
        });
    }
    let foreign = PageRefusal {
        status: StatusCode::FORBIDDEN,
        because: "This page answers no other page.\n",
    };
    // Browsers say who asks, in a field that no script sets (Fetch Metadata).
    let site = fields.contains_key("sec-fetch-site");
    let is_own = matches!(
        only(fields, "sec-fetch-site"),
        Some(b"same-origin" | b"none")
    );
    if site && !is_own {
        return Err(foreign);
    }
    let origin = format!("http://{authority}");
    let is_ours = only(fields, header::ORIGIN.as_str()) == Some(origin.as_bytes());
    if fields.contains_key(header::ORIGIN) && !is_ours {
        return Err(foreign);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "outgate-1.localhost:8000";

    fn check(uri: &str, fields: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        is_of_page(&request.body(()).unwrap(), OWN).is_ok()
    }

    #[test]
    fn only_the_page_itself_is_answered() {
        let host = ("host", OWN);
        let origin = "http://outgate-1.localhost:8000";
        assert!(check("/", &[host]));
        assert!(check("/", &[host, ("sec-fetch-site", "none")]));
        assert!(check(
            "/",
            &[host, ("sec-fetch-site", "same-origin"), ("origin", origin)]
        ));
        for fields in [
            &[][..],
            &[("host", "127.0.0.1:8000")],
            &[("host", "localhost:8000")],
            &[("host", "outgate-2.localhost:8000")],
            &[("host", "outgate-1.localhost")],
            &[("host", "outgate-1.localhost:8000."), host],
            &[host, host],
            &[host, ("sec-fetch-site", "cross-site")],
            &[host, ("sec-fetch-site", "same-site")],
            &[
                host,
                ("sec-fetch-site", "none"),
                ("sec-fetch-site", "cross-site"),
            ],
            &[host, ("origin", "null")],
            &[host, ("origin", "http://outgate-1.localhost:8001")],
            &[host, ("origin", "http://127.0.0.1:8000")],
            &[host, ("origin", origin), ("origin", origin)],
        ] {
            assert!(!check("/", fields), "{fields:?}");
        }
        assert!(!check("http://outgate-1.localhost:8000/", &[host]));
    }
}
