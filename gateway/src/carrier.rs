//! Whether the requests of a connection travel inside TLS, and what follows
//! from that for their targets. Values only.

use outgate_policy::{Host, Scheme};

/// What a request asks to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upgrade {
    None,
    WebSocket,
}

/// As whom an origin must identify itself, and is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OriginIdentity {
    /// As the host that was judged.
    Itself,
    /// As `localhost`: what the client calls a loopback address, and what the
    /// certificate of a server there names (RFC 6761 6.3).
    Localhost,
}

impl OriginIdentity {
    /// What a client calls a host by the server name of its ClientHello, which
    /// was compared with the host before.
    pub(crate) fn by(server_name: Option<&str>, host: &Host) -> Self {
        match (server_name, host) {
            (Some(_), Host::Address(_)) => Self::Localhost,
            (None, Host::Address(_)) | (_, Host::Name(_)) => Self::Itself,
        }
    }

    /// The host in the words of who called it.
    pub(crate) fn spell(self, host: &Host) -> String {
        match self {
            Self::Itself => host.to_string(),
            Self::Localhost => "localhost".to_owned(),
        }
    }
}

/// What carries requests, on the client's side and on the origin's alike: a
/// request never changes from one to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Carrier {
    /// TCP alone.
    Plain,
    /// TLS that this gateway opened.
    Tls(OriginIdentity),
}

impl Carrier {
    /// The scheme of a request's target.
    pub(crate) fn scheme(self, upgrade: Upgrade) -> Scheme {
        match (self, upgrade) {
            (Self::Plain, Upgrade::None) => Scheme::Http,
            (Self::Plain, Upgrade::WebSocket) => Scheme::Ws,
            (Self::Tls(_), Upgrade::None) => Scheme::Https,
            (Self::Tls(_), Upgrade::WebSocket) => Scheme::Wss,
        }
    }

    /// The authority of a request to this host and port as it is sent: no port
    /// where it is the scheme's own.
    pub(crate) fn authority(self, host: &Host, port: u16) -> String {
        let host = match self {
            Self::Plain => host.to_string(),
            Self::Tls(called) => called.spell(host),
        };
        if port == self.default_port() {
            host
        } else {
            format!("{host}:{port}")
        }
    }

    /// The port a URI of this kind means when it names none.
    pub(crate) fn default_port(self) -> u16 {
        self.scheme(Upgrade::None).default_port()
    }
}

/// A version of HTTP as TLS agrees on it (RFC 7301).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alpn {
    Http1,
    Http2,
}

impl Alpn {
    /// Its registered name.
    pub(crate) fn name(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }

    /// What a client may call it that is answered with it. Some that speak
    /// HTTP/1.0 say so, and are answered in HTTP/1.1 like all others.
    pub(crate) fn names(self) -> Vec<Vec<u8>> {
        let old: &[&[u8]] = match self {
            Self::Http1 => &[b"http/1.0"],
            Self::Http2 => &[],
        };
        let all = std::iter::once(self.name()).chain(old.iter().copied());
        all.map(<[u8]>::to_vec).collect()
    }

    /// What a connection agreed on; without a word it is HTTP/1.1.
    pub(crate) fn of(agreed: Option<&[u8]>) -> Self {
        match agreed {
            Some(b"h2") => Self::Http2,
            _ => Self::Http1,
        }
    }
}
