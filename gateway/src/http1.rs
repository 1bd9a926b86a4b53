//! HTTP/1.1 on one connection: requests one after the other, each answered by
//! its exchange. A refusal keeps the connection, so that the next request may
//! be an allowed one. Decides nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use http::{Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::audit::Kind;
use crate::content::Content;
use crate::exchange::Exchange;
use crate::flow::{self, Flow};
use crate::followed::Followed;
use crate::forward::Wire;
use crate::heads::Heads;
use crate::limits;
use crate::refusal::Refusal;
use crate::replay::Replay;
use crate::target::Malformed;

/// What holds for a connection.
#[derive(Debug)]
struct Connection {
    exchange: Exchange,
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
    fn answered(&self, response: &Response<Content>) {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS
            && let Ok(mut heads) = self.heads.lock()
        {
            heads.stop();
        }
    }
}

/// Serves a connection until either side ends it.
pub(crate) async fn serve(flow: &Arc<Flow>, stream: Replay, denied: Option<Refusal>) {
    let ended = stream.ended();
    let (stream, mut owner) = Followed::new(stream);
    let connection = Arc::new(Connection {
        exchange: Exchange {
            flow: Arc::clone(flow),
            denied,
            wire: Wire::Http1(owner.interim),
        },
        heads: owner.heads,
        requests: AtomicU64::new(0),
    });
    let service = service_fn(|request| {
        let connection = Arc::clone(&connection);
        Box::pin(async move {
            let fault = connection.next_fault();
            let response = connection.exchange.answer(fault, request).await;
            response.inspect(|response| connection.answered(response))
        })
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
        () = flow.stands_still() => return,
    };
    if let Err(error) = served
        && error.is_parse()
    {
        let subject = flow.destination().to_string();
        let because = format!("request head: {error}");
        flow.refuse(
            Kind::Request,
            &Refusal::own("malformed", &subject, &because),
        );
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
