//! HTTP/2 on one connection, with prior knowledge (RFC 9113 3.3): every
//! stream is a request of its own, judged anew and answered by the exchange.
//! Floods of streams, resets and settings end the connection. Decides nothing.

use std::error::Error;
use std::sync::Arc;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::timeout;

use crate::audit::Kind;
use crate::exchange::Exchange;
use crate::flow::Flow;
use crate::forward::Wire;
use crate::limits;
use crate::origin::Streams;
use crate::refusal::Refusal;
use crate::session::Tasks;
use crate::tls::Client;

/// Serves a connection until either side ends it, or no stream was open for a
/// while. `streams` are its streams to origins, of which some may be open.
pub(crate) async fn serve(
    flow: &Arc<Flow>,
    stream: Client,
    streams: Arc<Streams>,
    denied: Option<Refusal>,
) {
    let exchange = Arc::new(Exchange {
        flow: Arc::clone(flow),
        denied,
        wire: Wire::Http2(Arc::clone(&streams)),
        carrier: stream.carrier(),
    });
    let service = service_fn(|request| {
        let exchange = Arc::clone(&exchange);
        Box::pin(async move { exchange.answer(None, request).await })
    });
    let serving = http2::Builder::new(Tasks::of(flow.session()))
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::STREAMS_MAX)
        .initial_stream_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::STREAMS_WINDOW_BYTES)
        .max_header_list_size(limits::HEAD_LIST_BYTES_MAX)
        .max_pending_accept_reset_streams(limits::STREAMS_RESET_MAX)
        .max_local_error_reset_streams(limits::STREAMS_RESET_MAX)
        .max_send_buf_size(limits::BUFFER_BYTES_MAX)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = streams.idle() => {
            serving.as_mut().graceful_shutdown();
            timeout(limits::LINGER_TIME, serving).await.unwrap_or(Ok(()))
        }
        () = flow.stands_still() => return,
    };
    if let Err(error) = served
        && let Some(broken) = broken_rule(&error)
    {
        let subject = flow.destination().to_string();
        let because = format!("HTTP/2: {broken}");
        flow.refuse(
            Kind::Request,
            &Refusal::own("malformed", &subject, &because),
        );
    }
}

/// What the client did against the protocol, if that ended the connection.
fn broken_rule(error: &hyper::Error) -> Option<&h2::Error> {
    let cause: &h2::Error = error.source()?.downcast_ref()?;
    (cause.is_library() && !cause.is_io()).then_some(cause)
}
