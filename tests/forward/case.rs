//! One case: what the client says, what the origin answers, what must come of
//! it. Data only.

use crate::origin::Answer;

/// The zone of hosts where paths below `/public/` are allowed, and some there
/// denied again.
pub(crate) const CASE: &str = "case";

/// The zone of hosts where everything plain is allowed.
pub(crate) const OPEN: &str = "open";

/// The zone of hosts where WebSocket is allowed on `/public/ws`, and nothing
/// else.
pub(crate) const WS: &str = "ws";

/// The zone of hosts that no rule allows.
pub(crate) const DENIED: &str = "denied";

/// What carries requests: to the gateway, and from there to the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// TCP alone.
    Plain,
    /// TLS that the gateway opens.
    Tls,
}

impl Carrier {
    /// The scheme of requests it carries, and the one it does not.
    pub(crate) fn schemes(self) -> (&'static str, &'static str) {
        match self {
            Self::Plain => ("http", "https"),
            Self::Tls => ("https", "http"),
        }
    }

    /// The port of its scheme.
    pub(crate) fn port(self) -> u16 {
        match self {
            Self::Plain => 80,
            Self::Tls => 443,
        }
    }
}

/// How the first bytes of TLS are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HelloPace {
    AtOnce,
    /// So many alone, then the rest.
    Cut(usize),
    Singly,
}

/// What the client does, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Sends bytes. `<host>` is the authority of the case, `<name>` its name.
    Send(Vec<u8>),
    /// Sends them one at a time.
    SendSingly(Vec<u8>),
    /// Sends bytes below TLS.
    Below(Vec<u8>),
    /// Asks on streams of HTTP/2, one for each list of fields, at once or byte
    /// by byte.
    Streams(Vec<Fields>, Pace),
    /// Waits until so many whole final responses came in all.
    Await(usize),
    /// Waits that long, in milliseconds.
    Pause(u64),
}

/// The fields of a stream.
pub(crate) type Fields = Vec<(String, String)>;

/// How bytes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    AtOnce,
    Singly,
}

/// How the client ends its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It ends its side and reads to the end.
    HalfClose,
    /// It keeps its side open until nothing came for so many milliseconds.
    Open(u64),
}

/// What must come of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Want {
    /// Whole requests that arrive at the origin.
    pub(crate) sent: usize,
    /// Final responses the client gets; `None`: whatever they are.
    pub(crate) statuses: Option<Vec<u16>>,
    /// Whether the origin may get the beginning of one more request that it
    /// can never take for a whole one.
    pub(crate) cut: Cut,
}

/// Whether a request may be cut off on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    No,
    Last,
}

impl Want {
    /// All of `count` requests arrive and are answered with 200.
    pub(crate) fn sent(count: usize) -> Self {
        Self::replies(count, &vec![200; count])
    }

    /// Nothing arrives; the one response has this status.
    pub(crate) fn refused(status: u16) -> Self {
        Self::replies(0, &[status])
    }

    /// Nothing arrives, and nothing is answered.
    pub(crate) fn closed() -> Self {
        Self::replies(0, &[])
    }

    /// So many arrive, and the responses have these statuses.
    pub(crate) fn replies(sent: usize, statuses: &[u16]) -> Self {
        Self {
            sent,
            statuses: Some(statuses.to_vec()),
            cut: Cut::No,
        }
    }

    /// The request arrives in part only.
    pub(crate) fn cut() -> Self {
        Self {
            sent: 0,
            statuses: None,
            cut: Cut::Last,
        }
    }
}

/// Names of versions of HTTP as TLS agrees on them (RFC 7301).
pub(crate) type Versions = &'static [&'static str];

/// The case.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// For people.
    pub(crate) name: String,
    /// Which rules apply.
    pub(crate) zone: &'static str,
    /// The host connected to, where it is not the case's own name.
    pub(crate) connect: Option<&'static str>,
    /// The port connected to; 80 stands for the port of the scheme.
    pub(crate) port: u16,
    /// Whether the client speaks without TLS where TLS carries the requests.
    pub(crate) bare: bool,
    pub(crate) hello: HelloPace,
    /// The versions of HTTP that client and origin know, where these are not
    /// the one that the steps speak.
    pub(crate) versions: Option<(Versions, Versions)>,
    pub(crate) steps: Vec<Step>,
    pub(crate) ending: Ending,
    pub(crate) answer: Answer,
    pub(crate) want: Want,
    /// Whether the requests are HEAD: their responses have no content.
    pub(crate) method: Method,
}

/// What the client must know of its own requests to read the responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Head,
    Other,
}

impl Case {
    /// Sends `bytes` at once to a host of the zone [`CASE`].
    pub(crate) fn new(name: &str, bytes: impl AsRef<[u8]>, want: Want) -> Self {
        Self {
            name: name.to_owned(),
            zone: CASE,
            connect: None,
            port: 8080,
            bare: false,
            hello: HelloPace::AtOnce,
            versions: None,
            steps: vec![Step::Send(bytes.as_ref().to_vec())],
            ending: Ending::HalfClose,
            answer: Answer::Ok,
            want,
            method: Method::Other,
        }
    }

    pub(crate) fn zone(mut self, zone: &'static str) -> Self {
        self.zone = zone;
        self
    }

    pub(crate) fn connect(mut self, host: &'static str) -> Self {
        self.connect = Some(host);
        self
    }

    pub(crate) fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// The same without TLS, whatever else is carried in it.
    pub(crate) fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    pub(crate) fn hello(mut self, hello: HelloPace) -> Self {
        self.hello = hello;
        self
    }

    /// The versions of HTTP that client and origin know.
    pub(crate) fn versions(mut self, client: Versions, origin: Versions) -> Self {
        self.versions = Some((client, origin));
        self
    }

    /// The versions that the client offers.
    pub(crate) fn offers(&self) -> Versions {
        let streams = |step: &Step| matches!(step, Step::Streams(..));
        match self.versions {
            Some((client, _)) => client,
            None if self.steps.iter().any(streams) => &["h2"],
            None => &["http/1.1"],
        }
    }

    pub(crate) fn answer(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    pub(crate) fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    pub(crate) fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// The same with other steps.
    pub(crate) fn steps(mut self, steps: &[Step]) -> Self {
        self.steps = steps.to_vec();
        self
    }

    /// The same, with every byte sent alone.
    pub(crate) fn singly(mut self) -> Self {
        self.name.push_str(" (byte by byte)");
        for step in &mut self.steps {
            match step {
                Step::Send(bytes) => *step = Step::SendSingly(std::mem::take(bytes)),
                Step::Streams(_, pace) => *pace = Pace::Singly,
                Step::SendSingly(_) | Step::Below(_) | Step::Await(_) | Step::Pause(_) => {}
            }
        }
        self
    }

    /// The same, with the first `count` bytes alone and a pause after them.
    pub(crate) fn first_alone(mut self, count: usize) -> Self {
        self.name = format!("{} (first {count} bytes alone)", self.name);
        if let Some(Step::Send(bytes)) = self.steps.first().cloned() {
            let (first, rest) = bytes.split_at(count.min(bytes.len()));
            self.steps.splice(
                0..1,
                [
                    Step::Send(first.to_vec()),
                    Step::Pause(120),
                    Step::Send(rest.to_vec()),
                ],
            );
        }
        self
    }
}
