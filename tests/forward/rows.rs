//! Requests that must not leave, one row each: its name, its text, the answer.
//! Data only; `requests.rs` and `kept.rs` say where on a connection they stand.

/// What the connection does after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// It ends: what follows may be the second half of a trick.
    Closes,
    /// It stays: the request was understood, and denied.
    Stays,
}

/// A request that is answered with `status` and not sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) status: u16,
    pub(crate) after: After,
}

const fn bad(name: &'static str, text: &'static str) -> Row {
    Row {
        name,
        text,
        status: 400,
        after: After::Closes,
    }
}

const fn other(status: u16, name: &'static str, text: &'static str) -> Row {
    Row {
        name,
        text,
        status,
        after: After::Closes,
    }
}

const fn denied(name: &'static str, text: &'static str) -> Row {
    Row {
        name,
        text,
        status: 403,
        after: After::Stays,
    }
}

/// Whom: Host, request target and connection must name the same.
#[rustfmt::skip]
pub(crate) const AUTHORITY: &[Row] = &[
    bad("two equal Host fields", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nHost: <host>\r\n\r\n"),
    bad("two different Host fields", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nHost: other.example\r\n\r\n"),
    bad("two Host fields, the other one first", "GET /public/a HTTP/1.1\r\nHost: other.example\r\nHost: <host>\r\n\r\n"),
    bad("no Host", "GET /public/a HTTP/1.1\r\nX: y\r\n\r\n"),
    bad("empty Host", "GET /public/a HTTP/1.1\r\nHost:\r\n\r\n"),
    bad("Host of two", "GET /public/a HTTP/1.1\r\nHost: <host>, other.example\r\n\r\n"),
    bad("Host with user", "GET /public/a HTTP/1.1\r\nHost: other.example@<host>\r\n\r\n"),
    bad("Host with user and password", "GET /public/a HTTP/1.1\r\nHost: <host>:a@other.example\r\n\r\n"),
    bad("Host with path", "GET /public/a HTTP/1.1\r\nHost: <host>/x\r\n\r\n"),
    bad("Host with query", "GET /public/a HTTP/1.1\r\nHost: <name>?x\r\n\r\n"),
    bad("Host with fragment", "GET /public/a HTTP/1.1\r\nHost: <name>#x\r\n\r\n"),
    bad("Host with scheme", "GET /public/a HTTP/1.1\r\nHost: http://<host>\r\n\r\n"),
    bad("Host with blank", "GET /public/a HTTP/1.1\r\nHost: <name> other.example\r\n\r\n"),
    bad("Host with tab", "GET /public/a HTTP/1.1\r\nHost: <name>\tother.example\r\n\r\n"),
    bad("Host with backslash", "GET /public/a HTTP/1.1\r\nHost: other.example\\<host>\r\n\r\n"),
    bad("Host with percent", "GET /public/a HTTP/1.1\r\nHost: %63<host>\r\n\r\n"),
    bad("Host not ASCII", "GET /public/a HTTP/1.1\r\nHost: \u{e9}.<host>\r\n\r\n"),
    bad("Host with empty label", "GET /public/a HTTP/1.1\r\nHost: <name>..:8080\r\n\r\n"),
    bad("Host with a leading dot", "GET /public/a HTTP/1.1\r\nHost: .<host>\r\n\r\n"),
    bad("port 0", "GET /public/a HTTP/1.1\r\nHost: <name>:0\r\n\r\n"),
    bad("port over 65535", "GET /public/a HTTP/1.1\r\nHost: <name>:65536\r\n\r\n"),
    bad("port that wraps to 8080", "GET /public/a HTTP/1.1\r\nHost: <name>:73616\r\n\r\n"),
    bad("port with zero before", "GET /public/a HTTP/1.1\r\nHost: <name>:08080\r\n\r\n"),
    bad("port with sign", "GET /public/a HTTP/1.1\r\nHost: <name>:+8080\r\n\r\n"),
    bad("empty port", "GET /public/a HTTP/1.1\r\nHost: <name>:\r\n\r\n"),
    bad("two ports", "GET /public/a HTTP/1.1\r\nHost: <host>:80\r\n\r\n"),
    bad("number as host", "GET /public/a HTTP/1.1\r\nHost: 2130706433\r\n\r\n"),
    bad("hexadecimal address", "GET /public/a HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n"),
    bad("octal address", "GET /public/a HTTP/1.1\r\nHost: 0177.0.0.1\r\n\r\n"),
    bad("short address", "GET /public/a HTTP/1.1\r\nHost: 127.1\r\n\r\n"),
    bad("zone id", "GET /public/a HTTP/1.1\r\nHost: [::1%25lo]:8080\r\n\r\n"),
    bad("unclosed bracket", "GET /public/a HTTP/1.1\r\nHost: [::1\r\n\r\n"),
    bad("IPv6 without brackets", "GET /public/a HTTP/1.1\r\nHost: ::1\r\n\r\n"),
    bad("name in brackets", "GET /public/a HTTP/1.1\r\nHost: [<name>]:8080\r\n\r\n"),
    other(403, "another Host", "GET /public/a HTTP/1.1\r\nHost: other.example:8080\r\n\r\n"),
    other(403, "a Host below", "GET /public/a HTTP/1.1\r\nHost: x.<host>\r\n\r\n"),
    other(403, "a Host that begins alike", "GET /public/a HTTP/1.1\r\nHost: <name>.other.example:8080\r\n\r\n"),
    other(403, "an address as Host", "GET /public/a HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"),
    other(403, "IPv6 as Host", "GET /public/a HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"),
    other(403, "the metadata service as Host", "GET /public/a HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n"),
    other(403, "localhost as Host", "GET /public/a HTTP/1.1\r\nHost: localhost.\r\n\r\n"),
    other(403, "another port", "GET /public/a HTTP/1.1\r\nHost: <name>:8081\r\n\r\n"),
    bad("target and Host differ", "GET <scheme>://<host>/public/a HTTP/1.1\r\nHost: other.example:8080\r\n\r\n"),
    bad("Host and target differ", "GET <scheme>://other.example:8080/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("target and Host differ in port", "GET <scheme>://<name>:8081/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("target without Host", "GET <scheme>://<host>/public/a HTTP/1.1\r\nX: y\r\n\r\n"),
    bad("user in the target", "GET <scheme>://user:secret@<host>/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("another host behind a user", "GET <scheme>://<host>@other.example/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("scheme https in the target", "GET <other>://<host>/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("scheme ftp in the target", "GET ftp://<host>/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("scheme without slashes", "GET http:<host>/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("port over 65535 in the target", "GET <scheme>://<name>:65536/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("port 0 in the target", "GET <scheme>://<name>:0/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("a query and no path in the target", "GET <scheme>://<host>?a=b HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("authority as target of GET", "GET <host> HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("asterisk as target of GET", "GET * HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    other(403, "both name another", "GET <scheme>://other.example:8080/public/a HTTP/1.1\r\nHost: other.example:8080\r\n\r\n"),
    other(403, "CONNECT to another", "CONNECT other.example:8080 HTTP/1.1\r\nHost: other.example:8080\r\n\r\n"),
    other(403, "CONNECT to itself", "CONNECT <host> HTTP/1.1\r\nHost: <host>\r\n\r\n"),
];

/// How long: whatever two servers may measure differently.
#[rustfmt::skip]
pub(crate) const FRAMING: &[Row] = &[
    bad("CL.TE", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG"),
    bad("TE.CL", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n8\r\nSMUGGLED\r\n0\r\n\r\n"),
    bad("CL.TE with a request inside", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /public/private/x HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("TE.TE", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
    bad("TE twice chunked", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    bad("TE xchunked", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    bad("TE gzip, chunked", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    bad("TE chunked, identity", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
    bad("TE identity", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\na"),
    bad("TE chunked with a comma", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: chunked,\r\n\r\n0\r\n\r\n"),
    bad("TE in quotes", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
    bad("TE with a parameter", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n"),
    bad("TE with a vertical tab", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
    bad("empty TE", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding:\r\nContent-Length: 1\r\n\r\na"),
    bad("TE on HTTP/1.0", "POST /public/a HTTP/1.0\r\nHost: <host>\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    bad("TE with a blank before the colon", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    bad("TE folded", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    bad("TE behind a folded field", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nX: y\r\n\tTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    bad("TE behind a lone line feed", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    bad("TE behind a lone carriage return", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    bad("two different CL", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
    bad("two equal CL", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na"),
    bad("list of CL", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 1, 1\r\n\r\na"),
    bad("CL with zero before", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 01\r\n\r\na"),
    bad("CL with plus", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: +1\r\n\r\na"),
    bad("CL with minus", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: -1\r\n\r\na"),
    bad("CL hexadecimal", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 0x1\r\n\r\na"),
    bad("CL with an underscore", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 1_0\r\n\r\n0123456789"),
    bad("CL with a fraction", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 1.0\r\n\r\na"),
    bad("CL over 64 bits", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 18446744073709551617\r\n\r\na"),
    bad("empty CL", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length:\r\n\r\na"),
    bad("CL with a blank inside", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 1 0\r\n\r\n0123456789"),
    bad("CL with a blank before the colon", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length : 1\r\n\r\na"),
    bad("CL spelt with an underscore", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent_Length: 9\r\n\r\n"),
    bad("CL in both spellings", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 1\r\nContent_Length: 0\r\n\r\na"),
    bad("TE spelt with an underscore", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 1\r\nTransfer_Encoding: chunked\r\n\r\na"),
    bad("an upgrade with content", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\na"),
    other(417, "another Expect", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nExpect: 200-ok\r\nContent-Length: 1\r\n\r\na"),
    other(417, "Expect twice", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nExpect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na"),
];

/// What: heads that parsers read differently.
#[rustfmt::skip]
pub(crate) const SYNTAX: &[Row] = &[
    bad("lone line feeds", "GET /public/a HTTP/1.1\nHost: <host>\n\n"),
    bad("a lone line feed after the request line", "GET /public/a HTTP/1.1\nHost: <host>\r\n\r\n"),
    bad("a lone line feed after a field", "GET /public/a HTTP/1.1\r\nHost: <host>\nX: y\r\n\r\n"),
    bad("a lone line feed at the end", "GET /public/a HTTP/1.1\r\nHost: <host>\r\n\n"),
    bad("a lone line feed before the end", "GET /public/a HTTP/1.1\r\nHost: <host>\n\r\n"),
    bad("a carriage return in a value", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nX: a\rb\r\n\r\n"),
    bad("two carriage returns", "GET /public/a HTTP/1.1\r\nHost: <host>\r\r\n\r\n"),
    bad("NUL in a value", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nX: a\0b\r\n\r\n"),
    bad("NUL in a name", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nX\0: a\r\n\r\n"),
    bad("NUL in Host", "GET /public/a HTTP/1.1\r\nHost: <host>\0\r\n\r\n"),
    bad("a folded field", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nX: a\r\n b\r\n\r\n"),
    bad("a field folded with a tab", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nX: a\r\n\tb\r\n\r\n"),
    bad("Host folded", "GET /public/a HTTP/1.1\r\nHost:\r\n <host>\r\n\r\n"),
    bad("a blank before the first field", "GET /public/a HTTP/1.1\r\n Host: <host>\r\nHost: <host>\r\n\r\n"),
    bad("a blank before the colon", "GET /public/a HTTP/1.1\r\nHost : <host>\r\n\r\n"),
    bad("a blank in a name", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nX Y: a\r\n\r\n"),
    bad("an empty name", "GET /public/a HTTP/1.1\r\nHost: <host>\r\n: a\r\n\r\n"),
    bad("no colon", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nX\r\n\r\n"),
    bad("a name that is not ASCII", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nX\u{e9}: a\r\n\r\n"),
    bad("a lower-case method", "get /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("a method with odd characters", "GE$T /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("a fragment", "GET /public/a#b HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("a fragment in an absolute form", "GET <scheme>://<host>/public/a#b HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("a path that is not ASCII", "GET /public/\u{e9} HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("a path with NUL", "GET /public/%00 HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("a path with an invalid triplet", "GET /public/%zz HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("a path with half a triplet", "GET /public/% HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("a path above the root", "GET /../../public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("a path with an encoded line end", "GET /public/a%0d%0aX:y HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("a path without slash", "GET public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    bad("HTTP/1.2", "GET /public/a HTTP/1.2\r\nHost: <host>\r\n\r\n"),
    bad("HTTP/1.10", "GET /public/a HTTP/1.10\r\nHost: <host>\r\n\r\n"),
];

/// Understood, and denied: the connection stays.
#[rustfmt::skip]
pub(crate) const DENIED: &[Row] = &[
    denied("another path", "GET /secret HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("another path in absolute form", "GET <scheme>://<host>/secret HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a path that a deny rule covers", "GET /public/private/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a dotted way there", "GET /public/x/../private/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("an encoded way there", "GET /public/x/%2e%2e/private/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a doubly encoded way there", "GET /public/%2570rivate/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a way there with a backslash", "GET /public%5cprivate/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a way there with an encoded slash", "GET /public/private%2fa HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a way there with a parameter", "GET /public/private;x=y/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a way there in upper case", "GET /public/PRIVATE/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a way there with two slashes", "GET /public//private/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a way out", "GET /public/../secret HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("an encoded way out", "GET /public/..%2fsecret HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a way out with a parameter", "GET /public/..;/secret HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a denied method", "DELETE /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    denied("a denied method with content", "DELETE /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 48\r\n\r\nGET /public/a HTTP/1.1\r\nHost: smuggled.example\r\n\r\n"),
    denied("a denied path with chunks", "POST /secret HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    denied("an upgrade where only plain requests may pass", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"),
];

/// Methods and fields that ask somebody else to do something else.
#[rustfmt::skip]
pub(crate) const TRICKS: &[Row] = &[
    other(403, "TRACE", "TRACE /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    other(403, "TRACE that ends here", "TRACE /public/a HTTP/1.1\r\nHost: <host>\r\nMax-Forwards: 0\r\n\r\n"),
    other(403, "TRACK", "TRACK /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
    other(403, "another method in a field", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nX-HTTP-Method-Override: DELETE\r\n\r\n"),
    other(403, "another method in a field, shorter", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nX-Method-Override: DELETE\r\n\r\n"),
    other(403, "another path in a field", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nX-Original-URL: /secret\r\n\r\n"),
    other(403, "another path in a field, rewritten", "GET /public/a HTTP/1.1\r\nHost: <host>\r\nX-Rewrite-URL: /secret\r\n\r\n"),
];

/// Every row.
pub(crate) fn all() -> Vec<Row> {
    [AUTHORITY, FRAMING, SYNTAX, DENIED, TRICKS].concat()
}
