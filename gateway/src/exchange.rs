//! One request from its head to its response, the same for every version of
//! HTTP that carries it: it becomes a target, is judged, and is forwarded or
//! refused in words. Knows no connection of a client.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, request};
use http_body::Body;
use outgate_handoff::{GRANT_BYTES_MAX, LINE_BYTES_MAX, OpenQuestion};
use outgate_policy::{DenialReason, Permit, Verdict, printable};
use outgate_record::Reason;
use tokio::time::timeout;

use crate::admit;
use crate::ask::{self, ConnectionCourse, held};
use crate::audit::Kind;
use crate::body::Inner;
use crate::carrier::Carrier;
use crate::carrier::Upgrade;
use crate::content::MessageContent;
use crate::decide;
use crate::fields;
use crate::filter::{FilterChain, RequestContext};
use crate::filters;
use crate::flow::Flow;
use crate::forward::{self, Admitted, Upgradable, Wire};
use crate::limits;
use crate::malformed::Malformed;
use crate::origin::OriginError;
use crate::own_origin;
use crate::refusal::Refusal;
use crate::replies::Replies;
use crate::request_target;
use crate::respond::{self, TextForm};
use crate::session::Asked;
use crate::text::shortened;
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

/// A request, what it passes, and whether it may be sent.
type JudgedRequest = (RequestContext, FilterChain, Result<Permit, Refusal>);

/// A request, and what an engine knows of it beside.
#[derive(Debug)]
pub(crate) struct EngineRequest {
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
        request: EngineRequest,
    ) -> Result<Response<MessageContent>, h2::Error> {
        let piece = self.flow.session().current().under_way().begin();
        let response = self.answered(request).await?;
        Ok(response.map(|content| content.under_way(piece)))
    }

    async fn answered(
        &self,
        EngineRequest {
            fault,
            request,
            upgrade,
            replies,
        }: EngineRequest,
    ) -> Result<Response<MessageContent>, h2::Error> {
        let (mut head, content) = request.into_parts();
        // Nothing is judged that is not sent: without its type content is something else.
        fields::strip_named(&mut head.headers);
        let form = respond::form(&head.headers);
        if self.flow.destination().is_own() {
            return Ok(self.of_own(fault, &head, content).await);
        }
        let (request, filters, verdict) = match self.judged(fault, &head).await {
            Ok(judged) => judged,
            Err(fault) => return Ok(self.refuse_malformed(&head, &fault, form)),
        };
        let permit = match (verdict, self.denied()) {
            (Ok(permit), None) => permit,
            // The connection was refused; a permit for the request does not heal it.
            (Ok(_), Some(refusal)) => {
                self.record(&request.target.origin(), &refusal);
                return Ok(self.refuse(&refusal, &head, content, form));
            }
            (Err(refusal), _) => return Ok(self.refuse(&refusal, &head, content, form)),
        };
        if head.method == Method::OPTIONS && fields::forwards_left(&head.headers) == Some(0) {
            // The last hop that may answer is this one (RFC 9110 7.6.2).
            return Ok(Response::new(MessageContent::empty()));
        }
        let admitted = Admitted {
            permit,
            request,
            filters,
            head,
            content,
            upgrade,
            replies,
        };
        match self.sent(admitted).await {
            Ok(response) => Ok(response),
            Err(OriginError::Reset(_, reason)) => Err(reason.into()),
            Err(error) => {
                // What a filter stopped was recorded where it was found.
                if let OriginError::Denied(refusal) = &error {
                    self.record(&self.flow.destination().to_string(), refusal);
                    self.flow.caller().tell(refusal);
                }
                // The client broke off, or framed its content wrongly.
                if matches!(error, OriginError::Content(_)) {
                    let subject = self.flow.destination().to_string();
                    let refusal = Refusal::own(Reason::Malformed, &subject, &error.to_string());
                    self.record(&subject, &refusal);
                }
                Ok(respond::failure(&error, form, self.flow.session()))
            }
        }
    }

    /// The answer of the gateway's own origin; nothing is sent anywhere.
    async fn of_own(
        &self,
        fault: Option<Malformed>,
        head: &request::Parts,
        mut content: Inner,
    ) -> Response<MessageContent> {
        let response = match self.context(fault, head) {
            Ok(request) => {
                own_origin::answer(&self.flow, &request.target, head, &mut content).await
            }
            Err(fault) => self.refuse_malformed(head, &fault, respond::form(&head.headers)),
        };
        self.drop_content(head, content);
        response
    }

    /// Sends a permitted request on, by the way that it came.
    async fn sent(&self, mut admitted: Admitted) -> Result<Response<MessageContent>, OriginError> {
        let upgrade = std::mem::take(&mut admitted.upgrade);
        match (&self.wire, upgrade) {
            (Wire::Http2(streams), Upgradable::Http2(client)) if admitted.is_websocket() => {
                websocket::join(&self.flow, streams, admitted, client).await
            }
            (wire, upgrade) => {
                admitted.upgrade = upgrade;
                forward::forward(&self.flow, wire, admitted).await
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
            ConnectionCourse::Explain(refusal) | ConnectionCourse::Deny(refusal) => Some(refusal),
            ConnectionCourse::Direct(..)
            | ConnectionCourse::Inspect(_)
            | ConnectionCourse::Own
            | ConnectionCourse::Stub => None,
        }
    }

    /// What a request is, what it passes, and whether it may be sent. Where no rule decides
    /// it and somebody is asked, it waits for their word, by nobody's turn, and is judged
    /// anew.
    async fn judged(
        &self,
        fault: Option<Malformed>,
        head: &request::Parts,
    ) -> Result<JudgedRequest, Malformed> {
        let session = self.flow.session();
        let mut turn = session.turn().await;
        let mut filters = filters::of(session);
        let mut request = match self.context(fault, head) {
            Ok(request) => request,
            Err(fault) => {
                turn.end().await;
                return Err(fault);
            }
        };
        let mut judged = self.verdict(&mut request, &mut filters, head);
        let question = judged.as_ref().ok();
        let question = question.and_then(|verdict| self.question(&request, verdict));
        if let Some(question) = question {
            turn.end().await;
            let asked = held::patiently(session, question).await;
            turn = session.turn().await;
            if asked == Asked::Granted {
                filters = filters::of(session);
                request = match self.context(None, head) {
                    Ok(request) => request,
                    Err(fault) => {
                        turn.end().await;
                        return Err(fault);
                    }
                };
                judged = self.verdict(&mut request, &mut filters, head);
            }
            judged = judged.map(|verdict| match verdict {
                Verdict::Deny(denial) => Verdict::Deny(denial.asked(asked.words())),
                verdict @ Verdict::Allow(_) => verdict,
            });
        }
        let verdict = match judged {
            Ok(verdict) => {
                let (recorder, process) = (session.recorder(), self.flow.process());
                admit::request(recorder, process, &request.target, verdict).await
            }
            Err(refusal) => Err(refusal),
        };
        turn.end().await;
        Ok((request, filters, verdict))
    }

    /// What a person is asked of a request, where no rule decides it and somebody is asked.
    fn question(&self, request: &RequestContext, verdict: &Verdict) -> Option<OpenQuestion> {
        let session = self.flow.session();
        let Verdict::Deny(denial) = verdict else {
            return None;
        };
        let is_open = denial.reason() == DenialReason::NoRule && denial.narrowest().is_some();
        // What is inside is named by whoever grants it, and not by the command.
        let is_open = is_open && !request.target.host.is_special();
        if !is_open || !session.open_questions().are_asked() {
            return None;
        }
        let target = &request.target;
        let shown = Refusal::Policy(decide::shown(denial.clone(), target));
        let shown = session.recorder().shown(&shown);
        let narrow = match &shown {
            Refusal::Policy(denial) => denial.narrowest().unwrap_or_default(),
            Refusal::Own(_) => String::new(),
        };
        let broad = target.origin();
        let broad = match session.recorder().masked(&broad) {
            None => broad,
            Some(_) => String::new(),
        };
        // A target that no rule can name is offered with all of its host alone, as what it is.
        let is_of_host = narrow.ends_with(&broad) && !broad.is_empty();
        let narrow = if is_of_host { String::new() } else { narrow };
        let cut = |text: &str, most| shortened(&printable(text), most);
        let is_whole = |rule: &String| rule.len() <= GRANT_BYTES_MAX;
        Some(OpenQuestion {
            subject: cut(shown.subject(), LINE_BYTES_MAX),
            narrow: Some(narrow).filter(is_whole).unwrap_or_default(),
            broad: Some(broad).filter(is_whole).unwrap_or_default(),
            process: self.flow.process().clone(),
            words: String::new(),
        })
    }

    /// What the rules say of a request. What a filter finds before any rule is asked is the
    /// answer whatever rules say.
    fn verdict(
        &self,
        request: &mut RequestContext,
        filters: &mut FilterChain,
        head: &request::Parts,
    ) -> Result<Verdict, Refusal> {
        let (session, process) = (self.flow.session(), self.flow.process());
        let judged = filters.examine(request, head)?;
        // In which mode it is inspected the rules say that allow it.
        let rules = session.rules();
        let verdict = decide::judged(&rules, process, &request.target);
        request.target.mode = match &verdict {
            Verdict::Allow(permit) => permit.inspect(),
            Verdict::Deny(_) => rules.mode_of_others(),
        };
        filters.judge(request, judged.as_ref().unwrap_or(head), &verdict)?;
        Ok(verdict)
    }

    fn context(
        &self,
        fault: Option<Malformed>,
        head: &request::Parts,
    ) -> Result<RequestContext, Malformed> {
        if let Some(fault) = fault {
            return Err(fault);
        }
        let target = request_target::make(head, self.flow.destination(), self.carrier)?;
        if fields::goes_in_circles(&head.headers) {
            return Err(Malformed {
                status: StatusCode::LOOP_DETECTED,
                reason: Reason::Loop,
                because: "the request went through outgate too often".to_owned(),
            });
        }
        Ok(RequestContext {
            caller: Arc::clone(self.flow.caller()),
            target,
            carrier: self.carrier,
        })
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
        form: TextForm,
    ) -> Response<MessageContent> {
        self.flow.caller().tell(refusal);
        self.drop_content(head, content);
        respond::refusal(&self.flow.session().recorder().shown(refusal), form)
    }

    /// Reads and drops content beside its answer.
    fn drop_content(&self, head: &request::Parts, content: Inner) {
        if !content.is_end_stream() && !head.headers.contains_key(http::header::EXPECT) {
            self.flow.session().tasks().spawn(async move {
                timeout(limits::DRAIN_TIME, drain(content)).await.ok();
            });
        }
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
        form: TextForm,
    ) -> Response<MessageContent> {
        let subject = printable(&format!(
            "{} {}://{}",
            head.method,
            self.carrier.scheme(Upgrade::None).as_str(),
            self.flow.destination()
        ));
        let said = filters::of(self.flow.session()).malformed(head);
        let because = self.because(head, fault);
        let fault = Malformed {
            because,
            ..fault.clone()
        };
        let (kind, because) = match said {
            Some(said) => (Kind::Finding, format!("{}; {said}", fault.because)),
            None => (Kind::Request, fault.because.clone()),
        };
        let refusal = Refusal::own(fault.reason, &subject, &because);
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
