//! One request from its head to its response, the same for every version of
//! HTTP that carries it: it becomes a target, is judged, and is forwarded or
//! refused in words. Knows no connection of a client.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, request};
use http_body::Body;
use outgate_policy::{Permit, Verdict};
use tokio::time::timeout;

use crate::admit;
use crate::ask::{self, Course};
use crate::audit::Kind;
use crate::body::Inner;
use crate::broker::Insertion;
use crate::carrier::Carrier;
use crate::carrier::Upgrade;
use crate::content::Content;
use crate::decide;
use crate::fields;
use crate::flow::Flow;
use crate::forward::{self, Admitted, Upgradable, Wire};
use crate::limits;
use crate::malformed::Malformed;
use crate::origin::OriginError;
use crate::overrides;
use crate::refusal::{Refusal, printable};
use crate::replies::Replies;
use crate::request_target;
use crate::respond::{self, Form};
use crate::target::Target;
use crate::websocket;

/// What holds for every request of a connection.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) flow: Arc<Flow>,
    /// Set where the destination was refused as a whole, by the rules of then:
    /// every request is.
    pub(crate) denied: Option<Refusal>,
    /// How requests go on to the origin.
    pub(crate) wire: Wire,
    /// What carries them.
    pub(crate) carrier: Carrier,
}

/// A request, and what an engine knows of it beside.
#[derive(Debug)]
pub(crate) struct Asked {
    /// What its bytes were found to hold beyond what the parser shows.
    pub(crate) fault: Option<Malformed>,
    pub(crate) request: Request<Inner>,
    pub(crate) upgrade: Upgradable,
    /// How interim responses go back, where that is a matter of the request.
    pub(crate) replies: Option<Replies>,
}

impl Exchange {
    /// Answers one request.
    ///
    /// # Errors
    /// The origin ended the stream instead of answering it (RFC 9113 5.4.2);
    /// the client gets to hear the same.
    pub(crate) async fn answer(
        &self,
        Asked {
            fault,
            request,
            upgrade,
            replies,
        }: Asked,
    ) -> Result<Response<Content>, h2::Error> {
        let (mut head, content) = request.into_parts();
        let form = respond::form(&head.headers);
        let turn = self.flow.session().turn().await;
        let judged = match self.target(fault, &head) {
            Ok(mut target) => {
                let verdict = self.judge(&mut target, &head).await;
                Ok((target, verdict))
            }
            Err(fault) => Err(fault),
        };
        turn.end().await;
        let (target, verdict) = match judged {
            Ok(judged) => judged,
            Err(fault) => return Ok(self.refuse_malformed(&head, &fault, form)),
        };
        let (permit, insertion) = match (verdict, self.denied()) {
            (Ok(judged), None) => judged,
            // The connection was refused; a permit for the request does not heal it.
            (Ok(_), Some(refusal)) => {
                self.record(&target.origin(), &refusal);
                return Ok(self.refuse(&refusal, &head, content, form));
            }
            (Err(refusal), _) => return Ok(self.refuse(&refusal, &head, content, form)),
        };
        if head.method == Method::OPTIONS && fields::forwards_left(&head.headers) == Some(0) {
            // The last hop that may answer is this one (RFC 9110 7.6.2).
            return Ok(Response::new(Content::empty()));
        }
        let is_scanned = self.flow.session().scan(target.mode).is_some();
        if target.upgrade() == Upgrade::WebSocket && is_scanned {
            // Messages that are compressed could not be looked into.
            head.headers.remove(http::header::SEC_WEBSOCKET_EXTENSIONS);
        }
        let admitted = Admitted {
            permit,
            target,
            head,
            content,
            insertion,
            upgrade,
            replies,
        };
        match self.sent(admitted).await {
            Ok(response) => Ok(response),
            Err(OriginError::Reset(_, reason)) => Err(reason.into()),
            Err(error) => {
                // What a secret's misuse is was recorded where it was found.
                if let OriginError::Denied(refusal) = &error {
                    self.record(&self.flow.destination().to_string(), refusal);
                    self.flow.caller().tell(refusal);
                }
                // The client broke off, or framed its content wrongly.
                if matches!(error, OriginError::Content(_)) {
                    let subject = self.flow.destination().to_string();
                    let refusal = Refusal::own("malformed", &subject, &error.to_string());
                    self.record(&subject, &refusal);
                }
                Ok(respond::failure(&error, form, self.flow.session()))
            }
        }
    }

    /// Sends a permitted request on, by the way that it came.
    async fn sent(&self, mut admitted: Admitted) -> Result<Response<Content>, OriginError> {
        let upgrade = std::mem::take(&mut admitted.upgrade);
        match (&self.wire, upgrade) {
            (Wire::Http2(streams), Upgradable::Http2(client)) if admitted.is_websocket() => {
                websocket::join(&self.flow, (streams, self.carrier), admitted, client).await
            }
            (wire, upgrade) => {
                admitted.upgrade = upgrade;
                forward::forward(&self.flow, (wire, self.carrier), admitted).await
            }
        }
    }

    /// Why the destination is refused as a whole, by the rules in force.
    fn denied(&self) -> Option<Refusal> {
        if !self.flow.is_judged_by_others() {
            return self.denied.clone();
        }
        let flow = &self.flow;
        match ask::course(flow.session(), flow.process(), flow.destination()) {
            Course::Explain(refusal) | Course::Deny(refusal) => Some(refusal),
            Course::Direct(..) | Course::Inspect | Course::Stub => None,
        }
    }

    /// May this request be sent, and what goes into it? A placeholder where none
    /// may be is the answer before any rule is asked.
    async fn judge(
        &self,
        target: &mut Target,
        head: &request::Parts,
    ) -> Result<(Permit, Insertion), Refusal> {
        let (session, caller) = (self.flow.session(), self.flow.caller());
        let insertion = match session.secrets() {
            None => Insertion::default(),
            Some(secrets) => match secrets.examine(head, target, self.carrier) {
                Ok(insertion) => insertion,
                Err(misuse) => {
                    target.shown = session.scans().shown(target);
                    return Err(caller.misused(target, &misuse.because));
                }
            },
        };
        // By which mode it is weighed the rules say that allow it.
        let verdict = decide::judged(&session.rules(), caller.process(), target);
        target.mode = match &verdict {
            Verdict::Allow(permit) => permit.inspect(),
            Verdict::Deny(_) => session.rules().mode_of_others(),
        };
        let scans = session.scans();
        target.shown = match scans.by(target.mode) {
            Some(scan) => {
                // A placeholder looks like what it stands for, and is nothing. What
                // stands beside it is looked through like everything else.
                let own = insertion.without_placeholders(head);
                let head = own.as_ref().unwrap_or(head);
                scan.head((caller, target), head)?
            }
            // What is not weighed is not written down either.
            None => scans.shown(target),
        };
        if matches!(verdict, Verdict::Allow(_)) {
            overrides::check_query(caller, target)?;
            overrides::check_methods(caller, target, &head.headers)?;
            overrides::check_media(caller, target, &head.headers)?;
            overrides::check_fields(caller, target, &head.headers)?;
        }
        let permit = admit::request(session.recorder(), caller.process(), target, verdict).await?;
        Ok((permit, insertion))
    }

    fn target(&self, fault: Option<Malformed>, head: &request::Parts) -> Result<Target, Malformed> {
        if let Some(fault) = fault {
            return Err(fault);
        }
        let target = request_target::make(head, self.flow.destination(), self.carrier)?;
        if fields::goes_in_circles(&head.headers) {
            return Err(Malformed {
                status: StatusCode::LOOP_DETECTED,
                token: "loop",
                because: "the request went through outgate too often".to_owned(),
            });
        }
        Ok(target)
    }

    fn record(&self, target: &str, refusal: &Refusal) {
        self.flow.caller().refused(Kind::Request, target, refusal);
    }

    /// The answer to a denied request. Its content is read and dropped beside
    /// the answer, so that the client gets to see it; a client that waits for a
    /// go keeps its content.
    fn refuse(
        &self,
        refusal: &Refusal,
        head: &request::Parts,
        content: Inner,
        form: Form,
    ) -> Response<Content> {
        self.flow.caller().tell(refusal);
        if !content.is_end_stream() && !head.headers.contains_key(http::header::EXPECT) {
            self.flow.session().tasks().spawn(async move {
                timeout(limits::DRAIN_TIME, drain(content)).await.ok();
            });
        }
        respond::refusal(&self.flow.session().recorder().shown(refusal), form)
    }

    /// Why a request has no target, in words that anybody may read. A host is named
    /// in small letters, and a value in it is none any more.
    fn because(&self, head: &request::Parts, fault: &Malformed) -> String {
        let session = self.flow.session();
        let hidden = authorities(head).filter(|named| session.recorder().masked(named).is_some());
        let because = hidden.fold(fault.because.clone(), |because, named| {
            let host = named.rsplit_once(':').map_or(named, |(host, _)| host);
            because.replace(&host.to_ascii_lowercase(), "*")
        });
        session.recorder().masked(&because).unwrap_or(because)
    }

    /// The answer to a request without a target; a connection that carries one
    /// request after the other ends with it, since what follows may be the
    /// second half of a trick.
    fn refuse_malformed(
        &self,
        head: &request::Parts,
        fault: &Malformed,
        form: Form,
    ) -> Response<Content> {
        let subject = printable(&format!(
            "{} {}://{}",
            head.method,
            self.carrier.scheme(Upgrade::None).as_str(),
            self.flow.destination()
        ));
        let secrets = self.flow.session().secrets();
        let because = self.because(head, fault);
        let fault = Malformed {
            because,
            ..fault.clone()
        };
        let (kind, because) = match secrets.and_then(|own| own.seen(head)) {
            Some(misuse) => (
                Kind::Finding,
                format!("{}; {}", fault.because, misuse.because),
            ),
            None => (Kind::Request, fault.because.clone()),
        };
        let refusal = Refusal::own(fault.token, &subject, &because);
        let target = self.flow.destination().to_string();
        self.flow.caller().refused(kind, &target, &refusal);
        self.flow.caller().tell(&refusal);
        let mut response = respond::malformed(&fault, form);
        if head.version < http::Version::HTTP_2 {
            let close = http::HeaderValue::from_static("close");
            response
                .headers_mut()
                .insert(http::header::CONNECTION, close);
        }
        response
    }
}

/// The authorities that a request names, as it spells them.
fn authorities(head: &request::Parts) -> impl Iterator<Item = &str> {
    let fields = head.headers.get_all(http::header::HOST).iter();
    let fields = fields.filter_map(|value| value.to_str().ok());
    fields.chain(head.uri.authority().map(http::uri::Authority::as_str))
}

async fn drain(mut content: Inner) {
    use http_body_util::BodyExt;
    let mut total: u64 = 0;
    while let Some(Ok(frame)) = content.frame().await {
        let count = frame.data_ref().map_or(0, bytes::Bytes::len);
        total = total.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if total > limits::DRAIN_BYTES_MAX {
            return;
        }
    }
}
