//! A question in words, `GET https://api.example.org/x`, and its answer.
//!
//! The same decision function as for real traffic, asked in the order in which
//! the gateway asks: may anything be sent there, where does a pin lead, may it
//! pass. Makes no decision of its own and resolves no name.

use std::fmt;

use crate::denial::{self, DeniedEvent};
use crate::facts::{AddressSource, Facts, Peer, Process, Scheme};
use crate::grammar::UNIX;
use crate::host::{Host, shown};
use crate::other_method::{AskedFor, ByMethod, Standing, check_query};
use crate::path::RequestTarget;
use crate::policy::Policy;
use crate::rule::Protocol;
use crate::rule_host::parse_port;
use crate::settings::Intercept;
use crate::survey::Cause;
use crate::verdict::{Denial, DenialReason, Route, Verdict};

/// What somebody asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub(crate) form: QuestionForm,
}

/// The kinds of questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuestionForm {
    /// A request, or an upgrade to WebSocket.
    Request(AskedRequest),
    /// TLS that stays closed.
    Tls(Host, u16),
    /// Bytes of any kind.
    Tcp(Host, u16),
    /// A Unix socket.
    Unix(String),
}

/// A request that somebody asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AskedRequest {
    pub(crate) scheme: Scheme,
    pub(crate) method: String,
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) target: RequestTarget,
}

impl AskedRequest {
    /// What the decision function is asked, of this method.
    fn facts<'a>(&'a self, process: Process<'a>, method: &'a str) -> Facts<'a> {
        Facts::Request {
            process,
            peer: peer(&self.host),
            port: self.port,
            scheme: self.scheme,
            method,
            target: &self.target,
        }
    }
}

/// Why a text is not a question: what is wrong, and the repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionError {
    message: String,
    hint: String,
}

impl QuestionError {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// How to repair it.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for QuestionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for QuestionError {}

impl Question {
    /// Reads `[METHOD ]SCHEME://HOST[:PORT][/PATH][?QUERY]` or `unix:///PATH`.
    /// Without method it is a GET.
    ///
    /// # Errors
    /// The text names no scheme, no host or no such thing; the author is to blame.
    pub fn parse(text: &str) -> Result<Self, QuestionError> {
        let words = text.split_once(' ');
        let (method, url) = match words.filter(|_| !text.starts_with(UNIX)) {
            Some((method, url)) => (Some(method), url),
            None => (None, text),
        };
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(QuestionError::new(
                format!("`{}` has no scheme", shown(url)),
                format!("write `https://{0}` or `http://{0}`", shown(url)),
            ));
        };
        let form = match scheme {
            "http" => QuestionForm::Request(request(Scheme::Http, method, rest)?),
            "https" => QuestionForm::Request(request(Scheme::Https, method, rest)?),
            "ws" => QuestionForm::Request(request(Scheme::Ws, method, rest)?),
            "wss" => QuestionForm::Request(request(Scheme::Wss, method, rest)?),
            "tls" | "tcp" | "unix" if method.is_some() => {
                return Err(QuestionError::new(
                    format!("there are no methods under {scheme}://"),
                    "leave the method away",
                ));
            }
            "tls" => {
                let (host, port) = bare_destination(rest, Some(443))?;
                QuestionForm::Tls(host, port)
            }
            "tcp" => {
                let (host, port) = bare_destination(rest, None)?;
                QuestionForm::Tcp(host, port)
            }
            "unix" => unix(rest)?,
            other => {
                return Err(QuestionError::new(
                    format!("unknown scheme `{}`", shown(other)),
                    "known are http, https, ws, wss, tls, tcp and unix, in lower case",
                ));
            }
        };
        Ok(Self { form })
    }

    /// Whether it is about a request that travels inside TLS.
    pub fn is_inside_tls(&self) -> bool {
        let inside = [Scheme::Https, Scheme::Wss];
        matches!(&self.form, QuestionForm::Request(asked) if inside.contains(&asked.scheme))
    }

    /// The same question about another method, where it is about a request.
    #[must_use]
    pub fn with_method(mut self, method: &str) -> Self {
        if let QuestionForm::Request(asked) = &mut self.form {
            method.clone_into(&mut asked.method);
        }
        self
    }
}

impl fmt::Display for Question {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            QuestionForm::Request(asked) => {
                let (scheme, host) = (asked.scheme.as_str(), &asked.host);
                write!(out, "{} {scheme}://{host}", shown(&asked.method))?;
                if asked.port != asked.scheme.default_port() {
                    write!(out, ":{}", asked.port)?;
                }
                out.write_str(asked.target.as_str())
            }
            QuestionForm::Tls(host, port) => write!(out, "tls://{host}:{port}"),
            QuestionForm::Tcp(host, port) => write!(out, "tcp://{host}:{port}"),
            QuestionForm::Unix(path) => write!(out, "unix://{}", shown(path)),
        }
    }
}

fn request(
    scheme: Scheme,
    method: Option<&str>,
    rest: &str,
) -> Result<AskedRequest, QuestionError> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let (host, port) = destination(authority, Some(scheme.default_port()))?;
    // Clients keep the fragment to themselves (RFC 9110 7.1).
    let target = target.split('#').next().unwrap_or("");
    let target = if target.starts_with('/') {
        RequestTarget::parse(target)
    } else {
        RequestTarget::parse(&format!("/{target}"))
    };
    let target = target.map_err(|error| {
        QuestionError::new(
            error.to_string(),
            "such a request is refused with 400, whatever the rules say",
        )
    })?;
    Ok(AskedRequest {
        scheme,
        method: method.unwrap_or("GET").to_owned(),
        host,
        port,
        target,
    })
}

/// Host and port with nothing behind them but a slash.
fn bare_destination(text: &str, default: Option<u16>) -> Result<(Host, u16), QuestionError> {
    let authority = text.strip_suffix('/').unwrap_or(text);
    if authority.contains(['/', '?', '#']) {
        return Err(QuestionError::new(
            format!("`{}` has a path, which nobody sees there", shown(text)),
            "leave it away, or ask about https://",
        ));
    }
    destination(authority, default)
}

fn destination(authority: &str, default: Option<u16>) -> Result<(Host, u16), QuestionError> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port = match (port.map(|text| (text, parse_port(text))), default) {
        (Some((_, Some(port))), _) | (None, Some(port)) => port,
        (Some((text, None)), _) => {
            return Err(QuestionError::new(
                format!("`{}` is not a port from 1 to 65535", shown(text)),
                "leave the port away for the usual one",
            ));
        }
        (None, None) => {
            return Err(QuestionError::new(
                format!("`{}` has no port", shown(authority)),
                format!("write `tcp://{}:PORT`", shown(authority)),
            ));
        }
    };
    match Host::parse(host) {
        Ok(host) => Ok((host, port)),
        Err(error) => Err(QuestionError::new(
            error.to_string(),
            "ask about one host, such as `https://api.example.org/`",
        )),
    }
}

fn unix(path: &str) -> Result<QuestionForm, QuestionError> {
    let plain = path.starts_with('/') && !path.chars().any(char::is_control);
    if plain {
        return Ok(QuestionForm::Unix(path.to_owned()));
    }
    Err(QuestionError::new(
        format!("`{}` is not an absolute path", shown(path)),
        "write `unix:///run/agent.sock` with three slashes",
    ))
}

fn peer(host: &Host) -> Peer<'_> {
    match host {
        Host::Name(name) => Peer::Name(name),
        Host::Address(ip) => Peer::Address(*ip),
    }
}

impl Policy {
    /// Answers a question as a run with this policy would, up to what only
    /// name resolution can tell.
    pub fn answer(&self, question: &Question, process: Process<'_>) -> Verdict {
        match &question.form {
            QuestionForm::Request(asked) => self.answer_request(asked, process),
            QuestionForm::Tls(host, port) => self.answer_tls((host, *port), process),
            QuestionForm::Tcp(host, port) => self.answer_tcp((host, *port), process),
            QuestionForm::Unix(path) => self.evaluate(&Facts::Unix { process, path }),
        }
    }

    fn answer_request(&self, asked: &AskedRequest, process: Process<'_>) -> Verdict {
        let to = (&asked.host, asked.port);
        let facts = asked.facts(process, &asked.method);
        let is_inside = matches!(asked.scheme, Scheme::Https | Scheme::Wss);
        let is_seen = !is_inside || self.settings().intercept != Intercept::Never;
        let denial = match self.answer_connection(to, process) {
            Verdict::Allow(permit) if permit.route() == Route::Direct => {
                return Verdict::Allow(permit);
            }
            Verdict::Allow(_) if !is_inside => return self.answer_judged(asked, process),
            Verdict::Allow(_) => match self.answer_tunnel(to, process) {
                Verdict::Allow(permit) => return Verdict::Allow(permit),
                Verdict::Deny(denial)
                    if is_seen && denial.reason() == DenialReason::NeedsInspection =>
                {
                    return self.answer_judged(asked, process);
                }
                Verdict::Deny(denial) => denial,
            },
            Verdict::Deny(denial) => denial,
        };
        match asked.scheme {
            // The words of the request are nearer to what was asked.
            _ if is_seen => match self.evaluate(&facts) {
                Verdict::Deny(nearer) if nearer.reason() == denial.reason() => {
                    Verdict::Deny(nearer)
                }
                Verdict::Deny(_) | Verdict::Allow(_) => Verdict::Deny(denial),
            },
            // A wss:// rule alone would need a look inside.
            Scheme::Wss => named(denial, Protocol::Tls, to),
            Scheme::Http | Scheme::Ws | Scheme::Https => named(denial, Protocol::Https, to),
        }
    }

    /// What is said of a request that is looked at: also its query may ask for a method.
    fn answer_judged(&self, asked: &AskedRequest, process: Process<'_>) -> Verdict {
        let facts = asked.facts(process, &asked.method);
        let own = self.evaluate(&facts);
        if matches!(own, Verdict::Deny(_)) {
            return own;
        }
        let by = |method: &str| self.evaluate(&asked.facts(process, method));
        let rules = ByMethod {
            says: &|method| Standing::of(&own, &by(method)),
            named: &|| self.named_methods().collect(),
        };
        let Err(other) = check_query(&asked.target, &asked.method, rules) else {
            return own;
        };
        let flag = match &other.what {
            AskedFor::Method(method) => match by(method) {
                Verdict::Deny(denial) => denial.hint(),
                Verdict::Allow(_) => None,
            },
            AskedFor::Stricter(_) | AskedFor::Unknown | AskedFor::NoMethod => None,
        };
        Verdict::Deny(denial::other_method(&DeniedEvent::of(&facts), &other, flag))
    }

    fn answer_tls(&self, to: (&Host, u16), process: Process<'_>) -> Verdict {
        match self.answer_connection(to, process) {
            Verdict::Allow(permit) if permit.route() != Route::Direct => {
                self.answer_tunnel(to, process)
            }
            Verdict::Allow(permit) => Verdict::Allow(permit),
            Verdict::Deny(denial) => named(denial, Protocol::Tls, to),
        }
    }

    fn answer_tcp(&self, to: (&Host, u16), process: Process<'_>) -> Verdict {
        match self.answer_connection(to, process) {
            Verdict::Allow(permit) if permit.route() == Route::Direct => Verdict::Allow(permit),
            // The gateway closes what is neither HTTP nor TLS.
            Verdict::Allow(_) => Verdict::Deny(no_rule(Protocol::Tcp, to)),
            Verdict::Deny(denial) => named(denial, Protocol::Tcp, to),
        }
    }

    fn answer_tunnel(&self, (host, port): (&Host, u16), process: Process<'_>) -> Verdict {
        self.evaluate(&Facts::Tunnel {
            process,
            peer: peer(host),
            port,
        })
    }

    /// May anything be sent there, and to where the operator's pin leads?
    fn answer_connection(&self, (host, port): (&Host, u16), process: Process<'_>) -> Verdict {
        let peer = peer(host);
        let pin = match host {
            Host::Name(name) => self.pin(name, port),
            Host::Address(_) => None,
        };
        match pin {
            Some(pin) => self.evaluate(&Facts::Dial {
                process,
                peer,
                port,
                address: pin.ip(),
                source: AddressSource::Pinned,
            }),
            None => self.evaluate(&Facts::Connect {
                process,
                peer,
                port,
            }),
        }
    }
}

/// A denial of a connection as one of the protocol that was asked about.
fn named(denial: Denial, protocol: Protocol, to: (&Host, u16)) -> Verdict {
    Verdict::Deny(match denial.reason() {
        DenialReason::NoRule => no_rule(protocol, to),
        DenialReason::DenyRule
        | DenialReason::OnlyRule
        | DenialReason::SpecialUse
        | DenialReason::Process
        | DenialReason::NeedsInspection
        | DenialReason::OtherMethod
        | DenialReason::Malformed => denial,
    })
}

/// No rule lets the protocol pass.
fn no_rule(protocol: Protocol, (host, port): (&Host, u16)) -> Denial {
    let event = DeniedEvent::Whole(protocol, peer(host), port);
    denial::denial(
        &event,
        Cause::plain(DenialReason::NoRule),
        Intercept::default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::compile::tests::context;
    use crate::source::{Source, SourceKind};
    use proptest::prelude::*;

    fn policy(rules: &[(SourceKind, &str)]) -> Policy {
        let sources: Vec<Source> = rules
            .iter()
            .map(|(kind, text)| Source {
                kind: *kind,
                place: "-a".to_owned(),
                text: (*text).to_owned(),
            })
            .collect();
        compile(&sources, &context()).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[track_caller]
    fn check(policy: &Policy, rows: &[(&str, &str)]) {
        for (text, want) in rows {
            let question = Question::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let verdict = policy.answer(&question, Process { executable: "" });
            let found = match verdict {
                Verdict::Allow(permit) => format!("{:?} by {}", permit.route(), permit.rule().text),
                Verdict::Deny(denial) => format!(
                    "{}; {}; {}",
                    denial.reason().token(),
                    denial.subject(),
                    denial.hint().unwrap_or_default()
                ),
            };
            assert_eq!(found, *want, "{text}");
        }
    }

    fn of_each_form() -> Policy {
        policy(&[
            (SourceKind::Allow, "GET http://api.example.org/repos/**"),
            (SourceKind::Allow, "https://files.example.org"),
            (SourceKind::Allow, "GET https://inside.example.org/a"),
            (SourceKind::Allow, "tls://pinned.example.org"),
            (SourceKind::Allow, "tcp://db.example.org:5432"),
            (SourceKind::Allow, "ws://events.example.org/v1"),
        ])
    }

    #[test]
    fn each_form_is_answered_as_a_run_would() {
        check(
            &of_each_form(),
            &[
                (
                    "http://api.example.org/repos/a?x=1#top",
                    "Forward by GET http://api.example.org/repos/**",
                ),
                (
                    "POST http://api.example.org/repos/a",
                    "no-rule; POST http://api.example.org/repos/a; -a 'POST http://api.example.org/repos/a'",
                ),
                (
                    "http://other.example.org",
                    "no-rule; GET http://other.example.org/; -a 'GET http://other.example.org/'",
                ),
                (
                    "ws://events.example.org/v1",
                    "Forward by ws://events.example.org/v1",
                ),
                (
                    "http://events.example.org/v1",
                    "no-rule; GET http://events.example.org/v1; -a 'GET http://events.example.org/v1'",
                ),
                (
                    "tcp://db.example.org:5432",
                    "Direct by tcp://db.example.org:5432",
                ),
                (
                    "http://db.example.org:5432/",
                    "Direct by tcp://db.example.org:5432",
                ),
                (
                    "tcp://api.example.org:80",
                    "no-rule; tcp://api.example.org:80; -a 'tcp://api.example.org:80'",
                ),
                (
                    "tcp://db.example.org:5433",
                    "no-rule; tcp://db.example.org:5433; -a 'tcp://db.example.org:5433'",
                ),
            ],
        );
    }

    #[test]
    fn a_query_that_asks_for_another_method_is_answered_as_a_run_would() {
        let policy = policy(&[
            (SourceKind::Allow, "GET,POST http://api.example.org"),
            (SourceKind::Allow, "GET,POST https://api.example.org"),
            (SourceKind::Allow, "http://any.example.org"),
            (SourceKind::Allow, "https://closed.example.org"),
            (
                SourceKind::Document,
                "allow = [\"http://w.example.org\", { rule = \"PUT http://w.example.org\", budget = \"1K\" }]",
            ),
        ]);
        let denied = |scheme: &str, path: &str| {
            let url = format!("{scheme}://api.example.org{path}");
            format!("override; POST {url}; -a 'DELETE {url}'")
        };
        check(
            &policy,
            &[
                (
                    "POST http://api.example.org/x?_method=DELETE",
                    &denied("http", "/x"),
                ),
                (
                    "POST https://api.example.org/x%3F_method=DELETE",
                    &denied("https", "/x%3F_method=DELETE"),
                ),
                (
                    "POST http://api.example.org/x?a=1%26_method=DELETE",
                    &denied("http", "/x"),
                ),
                (
                    "POST http://api.example.org/x?_method=1",
                    "override; POST http://api.example.org/x; ",
                ),
                (
                    "POST http://api.example.org/x?_method=get",
                    "Forward by GET,POST http://api.example.org",
                ),
                (
                    "POST http://w.example.org/x?_method=PUT",
                    "override; POST http://w.example.org/x; ",
                ),
                (
                    "POST http://w.example.org/x?_method=DELETE",
                    "Forward by http://w.example.org",
                ),
                (
                    "POST http://any.example.org/x?_method=DELETE",
                    "Forward by http://any.example.org",
                ),
            ],
        );
    }

    #[test]
    fn requests_inside_tls_are_answered_in_their_own_words() {
        check(
            &of_each_form(),
            &[
                (
                    "PUT https://files.example.org/x",
                    "Forward by https://files.example.org",
                ),
                (
                    "https://inside.example.org/a",
                    "Forward by GET https://inside.example.org/a",
                ),
                (
                    "https://inside.example.org/b?x=1",
                    "no-rule; GET https://inside.example.org/b; -a 'GET https://inside.example.org/b'",
                ),
                (
                    "wss://inside.example.org/a",
                    "no-rule; GET wss://inside.example.org/a; -a 'wss://inside.example.org/a'",
                ),
                (
                    "tls://inside.example.org",
                    "needs-inspection; TLS to inside.example.org:443; -a 'tls://inside.example.org'",
                ),
                (
                    "https://api.example.org:80/repos/a",
                    "no-rule; GET https://api.example.org:80/repos/a; -a 'GET https://api.example.org:80/repos/a'",
                ),
                (
                    "https://other.example.org/a",
                    "no-rule; GET https://other.example.org/a; -a 'GET https://other.example.org/a'",
                ),
                (
                    "wss://other.example.org:8443/a",
                    "no-rule; GET wss://other.example.org:8443/a; -a 'wss://other.example.org:8443/a'",
                ),
                (
                    "tls://pinned.example.org",
                    "Tunnel by tls://pinned.example.org",
                ),
            ],
        );
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of cases")]
    fn requests_inside_tls_are_judged_unless_looking_is_forbidden() {
        let mut rules = vec![
            (SourceKind::Allow, "GET https://inside.example.org/a"),
            (SourceKind::Allow, "https://files.example.org"),
            (SourceKind::Allow, "wss://events.example.org"),
            (SourceKind::Allow, "https://git.example.org"),
            (SourceKind::Deny, "POST git.example.org"),
        ];
        let same = [
            (
                "tls://files.example.org",
                "Tunnel by https://files.example.org",
            ),
            (
                "https://files.example.org/x",
                "Tunnel by https://files.example.org",
            ),
        ];
        let when_needed = policy(&rules);
        check(
            &when_needed,
            &[
                (
                    "tls://files.example.org",
                    "needs-inspection; TLS to files.example.org:443; -a 'tls://files.example.org'",
                ),
                (
                    "https://files.example.org/x",
                    "Forward by https://files.example.org",
                ),
            ],
        );
        rules.push((SourceKind::Document, "inspect = { mode = \"off\" }"));
        let unscanned = policy(&rules);
        rules.pop();
        check(&unscanned, &same);
        check(
            &when_needed,
            &[
                (
                    "wss://events.example.org/v1",
                    "Forward by wss://events.example.org",
                ),
                (
                    "https://events.example.org/v1",
                    "no-rule; GET https://events.example.org/v1; -a 'GET https://events.example.org/v1'",
                ),
                (
                    "https://git.example.org/a",
                    "Forward by https://git.example.org",
                ),
                (
                    "POST https://git.example.org/a",
                    "deny-rule; POST https://git.example.org/a; ",
                ),
            ],
        );
        rules.push((SourceKind::Document, "tls = { intercept = \"never\" }"));
        let never = policy(&rules);
        check(&never, &same);
        check(
            &never,
            &[
                (
                    "https://inside.example.org/a",
                    "needs-inspection; TLS to inside.example.org:443; -a 'tls://inside.example.org'",
                ),
                (
                    "wss://events.example.org/v1",
                    "needs-inspection; TLS to events.example.org:443; -a 'tls://events.example.org'",
                ),
                (
                    "https://git.example.org/a",
                    "needs-inspection; TLS to git.example.org:443; --intercept when-needed",
                ),
                (
                    "https://other.example.org/a",
                    "no-rule; https://other.example.org:443; -a 'https://other.example.org'",
                ),
                (
                    "wss://other.example.org:8443/a",
                    "no-rule; tls://other.example.org:8443; -a 'tls://other.example.org:8443'",
                ),
            ],
        );
    }

    #[test]
    fn where_all_tls_is_opened_only_tls_rules_leave_it_closed() {
        let policy = policy(&[
            (SourceKind::Allow, "https://files.example.org"),
            (SourceKind::Allow, "tls://pinned.example.org"),
            (SourceKind::Document, "tls = { intercept = \"always\" }"),
        ]);
        check(
            &policy,
            &[
                (
                    "PUT https://files.example.org/x",
                    "Forward by https://files.example.org",
                ),
                (
                    "tls://files.example.org",
                    "needs-inspection; TLS to files.example.org:443; -a 'tls://files.example.org'",
                ),
                (
                    "https://pinned.example.org/x",
                    "Tunnel by tls://pinned.example.org",
                ),
            ],
        );
    }

    #[test]
    fn unix_sockets_are_asked_about_by_path() {
        let policy = policy(&[(SourceKind::Allow, "unix:///run/agent.sock")]);
        check(
            &policy,
            &[
                ("unix:///run/agent.sock", "Direct by unix:///run/agent.sock"),
                (
                    "unix:///run/other.sock",
                    "no-rule; connection to unix:///run/other.sock; -a 'unix:///run/other.sock'",
                ),
            ],
        );
    }

    #[test]
    fn a_pin_into_the_machine_is_the_operators_word_and_an_address_is_not() {
        let policy = policy(&[
            (SourceKind::Allow, "http://api.example.org"),
            (SourceKind::Allow, "*"),
            (SourceKind::Pin, "api.example.org=127.0.0.1:8080"),
        ]);
        check(
            &policy,
            &[
                (
                    "http://api.example.org/",
                    "Forward by http://api.example.org",
                ),
                (
                    "http://127.0.0.1/",
                    "special-use; GET http://127.0.0.1/; -a 'GET http://localhost/'",
                ),
            ],
        );
    }

    #[test]
    fn what_is_no_question_is_refused_with_the_repair() {
        for (text, message, hint) in [
            (
                "api.example.org/x",
                "`api.example.org/x` has no scheme",
                "write `https://api.example.org/x` or `http://api.example.org/x`",
            ),
            (
                "ftp://a.test/",
                "unknown scheme `ftp`",
                "known are http, https, ws, wss, tls, tcp and unix, in lower case",
            ),
            (
                "https://a.test:0/",
                "`0` is not a port from 1 to 65535",
                "leave the port away for the usual one",
            ),
            (
                "tcp://db.test",
                "`db.test` has no port",
                "write `tcp://db.test:PORT`",
            ),
            (
                "http://user@a.test/",
                "`user@a.test` holds `@`, which no host name has",
                "ask about one host, such as `https://api.example.org/`",
            ),
            (
                "GET tcp://db.test:1",
                "there are no methods under tcp://",
                "leave the method away",
            ),
            (
                "tls://a.test/x",
                "`a.test/x` has a path, which nobody sees there",
                "leave it away, or ask about https://",
            ),
            (
                "unix://run",
                "`run` is not an absolute path",
                "write `unix:///run/agent.sock` with three slashes",
            ),
        ] {
            let error = Question::parse(text).expect_err(text);
            assert_eq!((error.to_string().as_str(), error.hint()), (message, hint));
        }
    }

    #[test]
    fn a_question_reads_back_as_it_was_asked() {
        for text in [
            "GET http://a.test/",
            "POST https://a.test:8443/x?y=1",
            "GET ws://[2001:db8::1]/",
            "tls://a.test:443",
            "tcp://a.test:5432",
            "unix:///run/x",
        ] {
            let question = Question::parse(text).expect(text);
            assert_eq!(question.to_string(), text);
            assert_eq!(Question::parse(&question.to_string()), Ok(question));
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "\\PC{0,60}") {
            drop(Question::parse(&text));
        }

        #[test]
        fn what_was_read_reads_back_the_same(
            text in "((GET|POST|get) )?(http|https|ws|wss|tcp|tls|unix)://[a-z0-9.:\\[\\]/?#%@;=&~*-]{0,40}"
        ) {
            if let Ok(question) = Question::parse(&text) {
                let again = Question::parse(&question.to_string());
                prop_assert_eq!(again, Ok(question));
            }
        }
    }
}
