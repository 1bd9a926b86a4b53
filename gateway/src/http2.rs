//! HTTP/2 on one connection (RFC 9113): every stream is a request of its own,
//! judged anew and answered by the exchange; interim responses go back as they
//! come, and a stream may become a WebSocket (RFC 8441). Floods of streams, and
//! of frames that carry nothing, end the connection. Decides nothing.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::header::{self, HeaderValue};
use http::{Method, Request, Response};
use http_body::Body as _;
use outgate_record::Reason;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use crate::audit::Kind;
use crate::body::{Inner, ReceivedContent, pour};
use crate::content::MessageContent;
use crate::duplex::Duplex;
use crate::exchange::{EngineRequest, Exchange};
use crate::flow::Flow;
use crate::forward::{Upgradable, Wire};
use crate::limits;
use crate::malformed::Malformed;
use crate::origin::Streams;
use crate::refusal::Refusal;
use crate::replies::{Replies, ResponseEnd};
use crate::tls::ClientStream;

mod frames;
mod hpack;

use frames::{FLOOD, Metered, UNREADABLE};

/// Serves a connection until either side ends it, or no stream was open for a
/// while. `streams` are its streams to origins, of which some may be open.
pub(crate) async fn serve(
    flow: &Arc<Flow>,
    stream: ClientStream,
    streams: Arc<Streams>,
    denied: Option<Refusal>,
) {
    let exchange = Arc::new(Exchange {
        flow: Arc::clone(flow),
        denied,
        wire: Wire::Http2(Arc::clone(&streams)),
        carrier: stream.carrier(),
    });
    let served = tokio::select! {
        served = run(&exchange, stream, &streams) => served,
        () = flow.stands_still() => return,
    };
    let Err(error) = served else {
        return;
    };
    let is_misframed = error
        .get_io()
        .is_some_and(|error| [FLOOD, UNREADABLE].contains(&error.to_string().as_str()));
    if is_misframed || error.is_library() && !error.is_io() {
        let subject = flow.destination().to_string();
        let because = format!("HTTP/2: {error}");
        flow.caller().refuse(
            Kind::Request,
            &Refusal::own(Reason::Malformed, &subject, &because),
        );
    }
}

/// Takes streams until the connection ends.
async fn run(
    exchange: &Arc<Exchange>,
    stream: ClientStream,
    streams: &Streams,
) -> Result<(), h2::Error> {
    let mut settings = h2::server::Builder::new();
    settings
        .max_concurrent_streams(limits::STREAMS_MAX)
        .initial_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::STREAMS_WINDOW_BYTES)
        .max_header_list_size(limits::HEAD_LIST_BYTES_MAX)
        .max_pending_accept_reset_streams(limits::STREAMS_RESET_MAX)
        .max_local_error_reset_streams(Some(limits::STREAMS_RESET_MAX))
        .max_send_buffer_size(limits::BUFFER_BYTES_MAX)
        .enable_connect_protocol();
    let stream = Metered::new(stream);
    let faults = stream.faults();
    let shaken = timeout(limits::HEAD_TIME, settings.handshake::<_, Bytes>(stream));
    let Ok(shaken) = shaken.await else {
        return Ok(());
    };
    let mut connection = shaken?;
    let mut idle = std::pin::pin!(streams.idle());
    let mut closing: Option<Instant> = None;
    loop {
        let last = closing.unwrap_or_else(Instant::now);
        tokio::select! {
            accepted = connection.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    let fault = faults.take(request.body().stream_id().into());
                    let fault = fault.map(Malformed::bad);
                    let answering = answer(Arc::clone(exchange), fault, request, respond);
                    exchange.flow.session().tasks().spawn(answering);
                }
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
            () = &mut idle, if closing.is_none() => {
                connection.graceful_shutdown();
                closing = Some(Instant::now() + limits::LINGER_TIME);
            }
            () = sleep_until(last), if closing.is_some() => return Ok(()),
        }
    }
}

/// Answers one stream.
async fn answer(
    exchange: Arc<Exchange>,
    fault: Option<Malformed>,
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
) {
    let (head, received) = request.into_parts();
    let replies = Replies::new(respond);
    let is_head = head.method == Method::HEAD;
    let mut becomes = None;
    let (content, upgrade) = if head.extensions.get::<h2::ext::Protocol>().is_some() {
        let (give, take) = oneshot::channel();
        becomes = Some((give, received));
        (Inner::None, Upgradable::Http2(take))
    } else {
        let content = ReceivedContent::new(received, &head.headers);
        let content = if head.headers.contains_key(header::EXPECT) {
            let way = replies.clone();
            content.awaited(move || way.go_on())
        } else {
            content
        };
        (Inner::Http2(content), Upgradable::Never)
    };
    let asked = EngineRequest {
        fault,
        request: Request::from_parts(head, content),
        upgrade,
        replies: Some(replies.clone()),
    };
    let answered = tokio::select! {
        answered = exchange.answer(asked) => answered,
        // Whoever gave up needs no answer, and the origin is told.
        () = poll_fn(|context| replies.poll_reset(context)) => return,
    };
    let response = match answered {
        Ok(response) => response,
        Err(error) => return replies.reset(error.reason().unwrap_or(h2::Reason::INTERNAL_ERROR)),
    };
    let (head, content) = response.into_parts();
    let mut head = Response::from_parts(head, ());
    if let Some((give, received)) = becomes.filter(|_| head.status().is_success()) {
        if let Ok(sent) = replies.send(head, ResponseEnd::Content) {
            give.send(Duplex::new(sent, received)).ok();
        }
        return;
    }
    announce(&mut head, &content);
    let end = if is_head || content.is_end_stream() {
        ResponseEnd::Head
    } else {
        ResponseEnd::Content
    };
    if let (Ok(sent), ResponseEnd::Content) = (replies.send(head, end), end) {
        pour(content, sent, drop).await;
    }
}

/// Names the length of content that is all there.
fn announce(head: &mut Response<()>, content: &MessageContent) {
    if let MessageContent::Own(Some(text)) = content {
        let length = HeaderValue::from(text.len());
        head.headers_mut()
            .entry(header::CONTENT_LENGTH)
            .or_insert(length);
    }
}
