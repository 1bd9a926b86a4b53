//! The origin that only the gateway answers, in every run and to its command alone: what is
//! allowed, what was denied lately and why, whom to trust, and a rule that the command proposes. It asks in
//! words and answers nothing: who says yes is a person, elsewhere. Nothing of it is sent on.

use std::time::Duration;

use http::header::{self, HeaderValue};
use http::{Method, Response, StatusCode, request};
use serde_json::{Value, json};

use crate::body::Inner;
use crate::carrier::Upgrade;
use crate::content::MessageContent;
use crate::flow::Flow;
use crate::respond::{OWN_URL, TextForm, form};
use crate::session::{Asked, Proposal, ProposalStage, Session};
use crate::target::Target;

mod page;
mod proposing;
mod reading;

/// How long one request waits for the answer to a proposal: shorter than clients and proxies
/// give up.
const ANSWER_WAIT: Duration = Duration::from_mins(1);

/// Where proposals are.
const PROPOSALS: &str = "/proposals";

/// Where the certificate is that opens TLS here: for who comes by the explicit proxy, and was
/// given none.
const AUTHORITY: &str = "/ca.pem";

/// What it answers, in both forms.
#[derive(Debug)]
struct OwnAnswer {
    status: StatusCode,
    text: String,
    json: Value,
    /// The proposal that it is about.
    about: Option<u64>,
}

impl OwnAnswer {
    /// A refusal in one sentence.
    fn fault(status: StatusCode, because: &str) -> Self {
        Self {
            status,
            text: format!("{because}\n"),
            json: json!({ "error": because, "ask": OWN_URL }),
            about: None,
        }
    }

    fn response(self, form: TextForm) -> Response<MessageContent> {
        let (kind, body) = match form {
            TextForm::Json => ("application/json", format!("{}\n", self.json)),
            TextForm::Text | TextForm::Grpc | TextForm::Xml => {
                ("text/plain; charset=us-ascii", self.text)
            }
        };
        let mut response = Response::new(MessageContent::text(body));
        *response.status_mut() = self.status;
        let fields = response.headers_mut();
        let mut set = |name, value| fields.insert(name, HeaderValue::from_static(value));
        set(header::CONTENT_TYPE, kind);
        set(header::CACHE_CONTROL, "no-store");
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        let place = self.about.map(|id| format!("{PROPOSALS}/{id}"));
        if let Some(Ok(place)) = place.map(HeaderValue::try_from) {
            fields.insert(header::LOCATION, place);
        }
        response
    }
}

/// Answers a request to it, of which the target was made as of any other.
pub(crate) async fn answer(
    flow: &Flow,
    target: &Target,
    head: &request::Parts,
    content: &mut Inner,
) -> Response<MessageContent> {
    let answered = answered(flow, target, head, content).await;
    let mut response = answered.response(form(&head.headers));
    if head.method == Method::HEAD {
        *response.body_mut() = MessageContent::empty();
    }
    response
}

async fn answered(
    flow: &Flow,
    target: &Target,
    head: &request::Parts,
    content: &mut Inner,
) -> OwnAnswer {
    if target.upgrade() != Upgrade::None {
        let because = "no WebSocket is spoken here";
        return OwnAnswer::fault(StatusCode::FORBIDDEN, because);
    }
    let session = flow.session();
    let path = target.resource.path();
    let number = path
        .strip_prefix(PROPOSALS)
        .and_then(|rest| rest.strip_prefix('/'));
    match (path, number, &target.method) {
        ("/", _, &(Method::GET | Method::HEAD)) => page::page(session),
        (AUTHORITY, _, &(Method::GET | Method::HEAD)) => authority(session),
        (PROPOSALS, _, &Method::POST) => proposing::propose(flow, head, content).await,
        (_, Some(number), &(Method::GET | Method::HEAD)) => {
            proposal(session, number, target.resource.query()).await
        }
        ("/" | AUTHORITY | PROPOSALS, ..) | (_, Some(_), _) => {
            let because = "GET / shows what is allowed, POST /proposals proposes a rule, \
                           GET /proposals/ID says what became of it; nobody answers one here";
            OwnAnswer::fault(StatusCode::METHOD_NOT_ALLOWED, because)
        }
        _ => {
            let because = "there are /, /ca.pem and /proposals here, and nothing else";
            OwnAnswer::fault(StatusCode::NOT_FOUND, because)
        }
    }
}

/// The certificate of the authority that a command has to trust.
fn authority(session: &Session) -> OwnAnswer {
    let Some(tls) = session.tls() else {
        return OwnAnswer::fault(StatusCode::NOT_FOUND, "TLS is not opened here");
    };
    OwnAnswer {
        status: StatusCode::OK,
        text: tls.pem().to_owned(),
        json: json!({ "pem": tls.pem() }),
        about: None,
    }
}

/// What became of a proposal, after a wait for it where one is asked for.
async fn proposal(session: &Session, number: &str, query: Option<&str>) -> OwnAnswer {
    let found = number.parse().ok();
    let Some(proposal) = found.and_then(|id| session.proposals().find(id)) else {
        return OwnAnswer::fault(StatusCode::NOT_FOUND, "this run has no such proposal");
    };
    let mut pairs = query.unwrap_or_default().split('&');
    let seconds = pairs.find_map(|pair| pair.strip_prefix("wait="));
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(0);
    let time = Duration::from_secs(seconds).min(ANSWER_WAIT);
    if !time.is_zero()
        && let Some(_place) = session.proposals().waiter()
    {
        tokio::select! {
            () = proposal.settled_within(time) => {}
            () = session.ended() => {}
        }
    }
    state(StatusCode::OK, &proposal)
}

/// A proposal as it stands.
fn state(status: StatusCode, proposal: &Proposal) -> OwnAnswer {
    let (word, because) = match proposal.stage() {
        ProposalStage::Pending => ("pending", "nobody answered yet"),
        ProposalStage::Settled(Asked::Granted) => ("allowed", "a person allowed it"),
        ProposalStage::Settled(asked) => ("denied", asked.words()),
    };
    let place = format!("{PROPOSALS}/{}", proposal.id);
    let how = match proposal.stage() {
        ProposalStage::Pending => {
            let url = OWN_URL.trim_end_matches('/');
            format!("{url}{place}?wait=30 waits for an answer\n")
        }
        ProposalStage::Settled(_) => String::new(),
    };
    OwnAnswer {
        status,
        text: format!("{word}: {} ({because})\n{how}", proposal.rule),
        json: json!({
            "id": proposal.id,
            "rule": proposal.rule,
            "why": proposal.words,
            "state": word,
            "because": because,
            "place": place,
        }),
        about: Some(proposal.id),
    }
}
