//! HTTP/1.1 on one connection: each request becomes a target, is judged, and
//! is forwarded or refused in words. A refusal keeps the connection, so that
//! the next request may be an allowed one.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode, request};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::admit;
use crate::audit::Kind;
use crate::content::Content;
use crate::flow::{self, Flow};
use crate::followed::Followed;
use crate::forward::{self, Admitted};
use crate::heads::Heads;
use crate::limits;
use crate::origin::OriginError;
use crate::refusal::{Refusal, printable};
use crate::replay::Replay;
use crate::respond::{self, Form};
use crate::target::{self, Malformed};

/// What holds for a connection beside its flow.
#[derive(Debug)]
struct Connection {
    /// Set where the destination was refused as a whole: every request is.
    denied: Option<Refusal>,
    /// What the parser does not show of the heads.
    heads: Arc<Mutex<Heads>>,
    /// Requests that were read.
    requests: AtomicU64,
}

impl Connection {
    /// A fault of the next head that the parser does not show.
    fn next_fault(&self) -> Option<Malformed> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let because = match self.heads.lock() {
            Ok(heads) => heads.fault(number.saturating_add(1)),
            Err(_) => Some("the connection cannot be followed"),
        };
        because.map(|because| Malformed {
            status: StatusCode::BAD_REQUEST,
            token: "malformed",
            because: because.to_owned(),
        })
    }

    /// Behind a switch of protocols stand no heads.
    fn answered(&self, response: Response<Content>) -> Response<Content> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS
            && let Ok(mut heads) = self.heads.lock()
        {
            heads.stop();
        }
        response
    }
}

/// Serves a connection until either side ends it.
pub(crate) async fn serve(flow: &Arc<Flow>, stream: Replay, denied: Option<Refusal>) {
    let ended = stream.ended();
    let (stream, mut owner) = Followed::new(stream);
    let connection = Arc::new(Connection {
        denied,
        heads: owner.heads,
        requests: AtomicU64::new(0),
    });
    let service = service_fn(|request| {
        let (flow, connection) = (Arc::clone(flow), Arc::clone(&connection));
        async move { Ok::<_, Infallible>(Box::pin(answer(&flow, &connection, request)).await) }
    });
    let serving = http1::Builder::new()
        .max_buf_size(limits::BUFFER_BYTES_MAX)
        .max_header_size(limits::HEAD_BYTES_MAX)
        .max_headers(limits::FIELDS_MAX)
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEAD_TIME)
        .half_close(true)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let served = tokio::select! {
        served = serving => served,
        () = abandoned(flow, &ended) => return,
    };
    if let Err(error) = served
        && error.is_parse()
    {
        let refusal = Refusal::own(
            "malformed",
            &flow.destination().to_string(),
            &format!("request head: {error}"),
        );
        let target = flow.destination().to_string();
        admit::refused(
            flow.session(),
            Kind::Request,
            flow.process(),
            &target,
            &refusal,
        );
        flow.session().tell(&refusal);
    }
    // After an upgrade somebody else has it.
    if let Ok(stream) = owner.back.try_recv() {
        flow::farewell(stream, &[]).await;
    }
}

/// Returns once the client ended its side and nothing moved for a while.
async fn abandoned(flow: &Flow, ended: &Notify) {
    ended.notified().await;
    loop {
        let before = flow.traffic().total();
        sleep(limits::HALF_CLOSED_TIME).await;
        if flow.traffic().total() == before {
            return;
        }
    }
}

async fn answer(
    flow: &Arc<Flow>,
    connection: &Connection,
    mut request: Request<Incoming>,
) -> Response<Content> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (head, content) = request.into_parts();
    let form = respond::form(&head.headers);
    let made = match connection.next_fault() {
        Some(fault) => Err(fault),
        None => target::make(&head, flow.destination()),
    };
    let target = match made {
        Ok(target) => target,
        Err(fault) => return refuse_malformed(flow, &head, &fault, form),
    };
    if forward::goes_in_circles(&head.headers) {
        let fault = Malformed {
            status: StatusCode::LOOP_DETECTED,
            token: "loop",
            because: "the request went through outgate too often".to_owned(),
        };
        return refuse_malformed(flow, &head, &fault, form);
    }
    let verdict = admit::request(flow.session(), flow.process(), &target);
    let permit = match (verdict, &connection.denied) {
        (Ok(permit), None) => permit,
        // The connection was refused; a permit for the request does not heal it.
        (Ok(_), Some(refusal)) => {
            let origin = target.origin();
            admit::refused(
                flow.session(),
                Kind::Request,
                flow.process(),
                &origin,
                refusal,
            );
            return refuse(flow, refusal, &head, content, form);
        }
        (Err(refusal), _) => return refuse(flow, &refusal, &head, content, form),
    };
    if head.method == Method::OPTIONS && forward::forwards_left(&head.headers) == Some(0) {
        // The last hop that may answer is this one (RFC 9110 7.6.2).
        return Response::new(Content::empty());
    }
    let admitted = Admitted {
        permit,
        target,
        head,
        content,
        upgrade,
    };
    match forward::forward(flow, admitted).await {
        Ok(response) => connection.answered(response),
        Err(error) => {
            if let OriginError::Denied(refusal) = &error {
                let target = flow.destination().to_string();
                admit::refused(
                    flow.session(),
                    Kind::Request,
                    flow.process(),
                    &target,
                    refusal,
                );
                flow.session().tell(refusal);
            }
            respond::failure(&error, form)
        }
    }
}

/// The answer to a denied request. Its content is read and dropped beside the
/// answer, so that the client gets to see it; a client that waits for a go
/// keeps its content.
fn refuse(
    flow: &Flow,
    refusal: &Refusal,
    head: &request::Parts,
    content: Incoming,
    form: Form,
) -> Response<Content> {
    flow.session().tell(refusal);
    if !content.is_end_stream() && !head.headers.contains_key(http::header::EXPECT) {
        flow.session().spawn(async move {
            timeout(limits::DRAIN_TIME, drain(content)).await.ok();
        });
    }
    respond::refusal(refusal, form)
}

async fn drain(mut content: Incoming) {
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

/// The answer to a request without a target; the connection ends with it,
/// since what follows may be the second half of a trick.
fn refuse_malformed(
    flow: &Flow,
    head: &request::Parts,
    fault: &Malformed,
    form: Form,
) -> Response<Content> {
    let subject = printable(&format!("{} http://{}", head.method, flow.destination()));
    let refusal = Refusal::own(fault.token, &subject, &fault.because);
    let target = flow.destination().to_string();
    admit::refused(
        flow.session(),
        Kind::Request,
        flow.process(),
        &target,
        &refusal,
    );
    flow.session().tell(&refusal);
    let mut response = respond::malformed(fault, form);
    let close = http::HeaderValue::from_static("close");
    response
        .headers_mut()
        .insert(http::header::CONNECTION, close);
    response
}
