//! What goes back to the client on one stream of HTTP/2: interim responses,
//! then one final response, or a reset. Decides nothing.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{HeaderMap, Response, StatusCode};

use crate::filter::{FieldFilter as _, InterimFilters};
use crate::interim;
use crate::limits;

/// The way back; every copy is of the same stream.
#[derive(Debug, Clone)]
pub(crate) struct Replies(Arc<Mutex<ReplyStream>>);

#[derive(Debug)]
struct ReplyStream {
    respond: SendResponse<Bytes>,
    /// Interim responses that were passed on.
    interim: usize,
    is_open: bool,
    /// What looks at interim responses.
    filters: InterimFilters,
}

impl Replies {
    pub(crate) fn new(respond: SendResponse<Bytes>) -> Self {
        Self(Arc::new(Mutex::new(ReplyStream {
            respond,
            interim: 0,
            is_open: true,
            filters: InterimFilters::default(),
        })))
    }

    /// What is passed on passes these.
    pub(crate) fn filter(&self, filters: InterimFilters) {
        if let Ok(mut way) = self.0.lock() {
            way.filters = filters;
        }
    }

    /// Passes an interim response of the origin on, if it is one for clients.
    pub(crate) fn interim(&self, status: StatusCode, fields: &HeaderMap) {
        if interim::is_for_clients(status) {
            let mut fields = interim::passed_on(fields, http::Version::HTTP_2);
            let filters = self.0.lock().map(|way| way.filters.clone());
            // Where nobody knows what looks at it, nothing is passed on.
            let Ok(filters) = filters else { return };
            filters.fields(&mut fields);
            self.inform(status, fields);
        }
    }

    /// Says that content is wanted.
    pub(crate) fn go_on(&self) {
        self.inform(StatusCode::CONTINUE, HeaderMap::new());
    }

    fn inform(&self, status: StatusCode, fields: HeaderMap) {
        let Ok(mut way) = self.0.lock() else { return };
        if !way.is_open || way.interim >= limits::INTERIM_MAX {
            return;
        }
        way.interim += 1;
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = fields;
        // What cannot be said before the answer is left unsaid.
        way.respond.send_informational(response).ok();
    }

    /// Sends the head of the final response; no interim one follows.
    pub(crate) fn send(
        &self,
        head: Response<()>,
        end: ResponseEnd,
    ) -> Result<SendStream<Bytes>, h2::Error> {
        let mut way = self.0.lock().map_err(|_| Reason::INTERNAL_ERROR)?;
        way.is_open = false;
        way.respond.send_response(head, end == ResponseEnd::Head)
    }

    /// Ends the stream without a response.
    pub(crate) fn reset(&self, reason: Reason) {
        if let Ok(mut way) = self.0.lock() {
            way.is_open = false;
            way.respond.send_reset(reason);
        }
    }

    /// Ready once the client gave up.
    pub(crate) fn poll_reset(&self, context: &mut Context<'_>) -> Poll<()> {
        match self.0.lock() {
            Ok(mut way) if way.is_open => way.respond.poll_reset(context).map(drop),
            _ => Poll::Pending,
        }
    }
}

/// Where a response ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseEnd {
    /// With its head.
    Head,
    /// With its content.
    Content,
}
