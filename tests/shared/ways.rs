//! Every kind of rule by every way into the explicit proxy, with real clients: what a rule
//! allows arrives, what stands beside it is denied in words and never arrives.

use std::process::{Command, Stdio};

use outgate_harness::{Identity, lab_tests};

use crate::proxied::{ORIGIN, PROXY, Stage, UNNAMED};

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Absolute,
    Connect,
    SocksName,
    SocksAddress,
}

impl Way {
    const ALL: [Self; 4] = [
        Self::Absolute,
        Self::Connect,
        Self::SocksName,
        Self::SocksAddress,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Absolute => "absolute",
            Self::Connect => "connect",
            Self::SocksName => "socks-name",
            Self::SocksAddress => "socks-address",
        }
    }

    /// Options of curl.
    fn options(self, token: &str) -> Vec<String> {
        let scheme = match self {
            Self::Absolute | Self::Connect => "http",
            Self::SocksName => "socks5h",
            Self::SocksAddress => "socks5",
        };
        let mut options = vec!["-x".to_owned(), format!("{scheme}://ci:{token}@{PROXY}")];
        if self == Self::Connect {
            options.push("-p".to_owned());
        }
        options
    }
}

/// A kind of rule: what it allows, and what stands beside that.
struct Kind {
    name: &'static str,
    method: [&'static str; 2],
    url: [&'static str; 2],
    /// The same by address, where clients look names up themselves.
    by_address: [&'static str; 2],
}

const KINDS: [Kind; 8] = [
    Kind {
        name: "host",
        method: ["GET", "GET"],
        url: ["http://host.example/x", "http://other.example/x"],
        by_address: ["http://93.184.216.34/a/x", "http://93.184.216.35/a/x"],
    },
    Kind {
        name: "method",
        method: ["GET", "POST"],
        url: ["http://method.example/x", "http://method.example/x"],
        by_address: ["http://93.184.216.34/a/x", "http://93.184.216.34/a/x"],
    },
    Kind {
        name: "path",
        method: ["GET", "GET"],
        url: ["http://path.example/a/x", "http://path.example/b/x"],
        by_address: ["http://93.184.216.34/a/x", "http://93.184.216.34/b/x"],
    },
    Kind {
        name: "opened",
        method: ["GET", "GET"],
        url: ["https://opened.example/a", "https://opened.example/b"],
        by_address: ["https://93.184.216.34/a", "https://93.184.216.34/b"],
    },
    Kind {
        name: "passed",
        method: ["GET", "GET"],
        url: ["https://passed.example/x", "https://other.example/x"],
        // Unopened, an address has no name that could agree with anything.
        by_address: ["", "https://93.184.216.35/x"],
    },
    Kind {
        name: "tcp",
        method: ["GET", "GET"],
        url: ["tcp://raw.example:5432", "tcp://raw.example:5433"],
        by_address: ["tcp://93.184.216.34:5432", "tcp://93.184.216.34:5433"],
    },
    Kind {
        name: "ws",
        method: ["GET", "GET"],
        url: ["ws://ws.example/live", "ws://ws.example/other"],
        by_address: ["ws://93.184.216.34/live", "ws://93.184.216.34/other"],
    },
    Kind {
        name: "deny",
        method: ["GET", "GET"],
        url: ["http://deny.example/open", "http://deny.example/secret"],
        by_address: [
            "http://93.184.216.36/a/open",
            "http://93.184.216.36/a/secret",
        ],
    },
];

/// One request by one way.
struct Case<'a> {
    way: Way,
    method: &'a str,
    url: &'a str,
    /// Whom the client trusts: the origin itself where TLS is not opened.
    trusted: String,
}

impl Case<'_> {
    fn with_curl(&self, stage: &Stage<'_>, token: &str) -> String {
        let mut words = self.way.options(token);
        words.extend(["-X".to_owned(), self.method.to_owned()]);
        words.extend(["--cacert".to_owned(), self.trusted.clone()]);
        // curl's name for "sends a line and reads to the end".
        let url = match self.url.strip_prefix("tcp://") {
            Some(rest) => format!("gopher://{rest}/1x"),
            None => self.url.to_owned(),
        };
        let url = match url.strip_prefix("ws://") {
            None => url,
            Some(rest) => {
                for field in [
                    "Connection: Upgrade",
                    "Upgrade: websocket",
                    "Sec-WebSocket-Version: 13",
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                ] {
                    words.extend(["-H".to_owned(), field.to_owned()]);
                }
                format!("http://{rest}")
            }
        };
        words.push(url);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (status, content) = stage.curl(&words);
        format!("{status} {content}")
    }

    fn with_python(&self, token: &str) -> String {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/shared/proxied_client.py"
        );
        let mut command = Command::new("/usr/bin/python3");
        let words = [self.way.word(), PROXY, "ci", token, self.method, self.url];
        command.arg(script).args(words).arg(&self.trusted);
        let output = command.stdin(Stdio::null()).output().expect("python runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        format!("{said}{}", String::from_utf8_lossy(&output.stderr))
    }
}

/// Whether a client says that it got what it asked for.
fn arrived(said: &str) -> bool {
    ["/200 ", "/101 ", "tcp-banner"]
        .iter()
        .any(|word| said.contains(word))
        || said.starts_with("200 ")
        || said.starts_with("101 ")
}

/// Whether it says that it was denied, and not that something else went wrong.
fn denied(said: &str, case: &Case<'_>) -> bool {
    let by_command = case.way != Way::Connect && case.way != Way::Absolute;
    let is_raw = case.url.starts_with("tcp://");
    said.contains("403")
        || by_command && is_raw && (said.contains("(2)") || said.contains("reply 2"))
}

fn ways_of(stage: &Stage<'_>, token: &str, kind: &Kind) {
    for way in Way::ALL {
        let urls = match way {
            Way::SocksAddress => kind.by_address,
            Way::Absolute | Way::Connect | Way::SocksName => kind.url,
        };
        // https:// and raw bytes have no absolute form.
        let has_form =
            way != Way::Absolute || urls[0].starts_with("http://") || urls[0].starts_with("ws://");
        for position in [0, 1] {
            let url = urls[position];
            if url.is_empty() || !has_form {
                continue;
            }
            let trusted = if kind.name == "passed" && position == 0 {
                &stage.origin_certificate
            } else {
                &stage.trusted
            };
            let case = Case {
                way,
                method: kind.method[position],
                url,
                trusted: trusted.to_string_lossy().into_owned(),
            };
            let clients: [&dyn Fn() -> String; 2] = [&|| case.with_curl(stage, token), &|| {
                case.with_python(token)
            }];
            for client in clients {
                let said = client();
                let place = format!("{} {way:?} {} {url}: {said}", kind.name, case.method);
                let seen = stage.arrived();
                if position == 0 {
                    assert!(arrived(&said), "{place}\n{}", stage.gate.errors());
                    assert!(!seen.is_empty(), "{place}");
                    if kind.name == "ws" && said.starts_with("101") {
                        assert!(said.to_ascii_lowercase().contains(" upgrade"), "{place}");
                    }
                    let seen = seen.to_ascii_lowercase();
                    assert!(!seen.contains("proxy-"), "{place}: {seen}");
                    assert!(!seen.contains(token), "{place}: {seen}");
                } else {
                    assert!(denied(&said, &case), "{place}\n{}", stage.gate.errors());
                    assert_eq!(seen, "", "{place}");
                }
            }
        }
    }
}

lab_tests! {
    fn every_kind_of_rule_decides_by_every_way(lab) {
        for identity in Identity::all() {
            let Some(stage) = Stage::start(lab, identity, &[]) else {
                return;
            };
            let token = stage.make("ci", &[]);
            stage.arrived();
            for kind in &KINDS {
                ways_of(&stage, &token, kind);
            }
            let revoked = stage.token(&["revoke", "ci"]);
            assert_eq!(revoked.code, Some(0), "{revoked}");
            let outcome = stage.gate.end();
            assert_eq!(outcome.code, Some(0), "{outcome}");
        }
    }

    fn a_name_that_the_client_looked_up_itself_is_an_address(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let token = stage.make("ci", &[]);
        stage.arrived();
        let proxy = format!("socks5://ci:{token}@{PROXY}");
        for (url, address) in [
            ("http://host.example/x", UNNAMED),
            ("http://host.example/a/x", ORIGIN),
            ("https://opened.example/a", ORIGIN),
        ] {
            let host = url.split('/').nth(2).unwrap_or_default();
            for port in [80, 443] {
                let resolve = format!("{host}:{port}:{address}");
                let (status, said) = stage.curl(&["-x", &proxy, "--resolve", &resolve, url]);
                assert!(!status.contains("200"), "{url}: {status} {said}");
            }
        }
        assert_eq!(stage.arrived(), "");
    }
}
