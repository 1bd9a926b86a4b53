//! Quotas as a filter: a head is charged at once, and sent only if all of its content that
//! is announced fits; content and messages are charged as they leave.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::HeaderMap;
use http::request;
use outgate_policy::Permit;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Budgets, Quota};
use crate::body::Stopped;
use crate::fields;
use crate::filter::{
    ContentFilter, Filter, FilterFault, RelayEnds, RequestContext, SentHead, StreamEnd, poll_new,
    writes_through,
};

/// What charges a request to the rules that permit it.
pub(crate) fn filter(budgets: &Arc<Budgets>) -> Box<dyn Filter> {
    Box::new(QuotaFilter {
        budgets: Arc::clone(budgets),
        quota: None,
    })
}

#[derive(Debug)]
struct QuotaFilter {
    budgets: Arc<Budgets>,
    /// What the request spends from, where a rule says how much may leave.
    quota: Option<Quota>,
}

impl Filter for QuotaFilter {
    fn head(
        &mut self,
        request: &RequestContext,
        sent: &mut SentHead,
        permit: &Permit,
    ) -> Result<(), FilterFault> {
        let target = &request.target;
        let subject = format!("{} {}", target.method, target.origin());
        let asked = (&target.host, subject.as_str());
        let Some(quota) = self.budgets.quota(&request.caller, permit, asked)? else {
            return Ok(());
        };
        let bytes = head_bytes(&sent.head, sent.resource(target));
        let all = u64::try_from(bytes).unwrap_or(u64::MAX);
        quota.fits(all.saturating_add(sent.content_bytes))?;
        quota.spend(bytes)?;
        self.quota = Some(quota);
        Ok(())
    }

    fn body(&mut self, _: &RequestContext, _: &request::Parts) -> Option<Box<dyn ContentFilter>> {
        Some(Box::new(self.quota.clone()?))
    }

    fn relayed(&mut self, _: &RequestContext, ends: RelayEnds) -> Result<RelayEnds, Stopped> {
        Ok(match &self.quota {
            None => ends,
            Some(quota) => RelayEnds {
                client: Box::new(Charged {
                    client: ends.client,
                    quota: quota.clone(),
                }),
                ..ends
            },
        })
    }
}

impl ContentFilter for Quota {
    fn pass(&mut self, data: Bytes, _: StreamEnd) -> Result<Bytes, Stopped> {
        self.spend(data.len())?;
        Ok(data)
    }

    fn trailers(&mut self, trailers: &mut HeaderMap) -> Result<(), Stopped> {
        self.spend(fields::bytes(trailers))
    }
}

/// About how many bytes a request's head has on the wire (RFC 9112 3, 5).
fn head_bytes(head: &request::Parts, resource: &str) -> usize {
    let line = head.method.as_str().len().saturating_add(resource.len());
    let line = line.saturating_add(12);
    line.saturating_add(fields::bytes(&head.headers))
}

/// A client whose bytes are charged as they are read.
struct Charged<S> {
    client: S,
    quota: Quota,
}

impl<S: AsyncRead + Unpin> AsyncRead for Charged<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let before = ready!(poll_new(&mut own.client, context, buffer))?;
        let read = buffer.filled().len().saturating_sub(before);
        let spent = own.quota.spend(read);
        Poll::Ready(spent.map_err(|spent| io::Error::new(io::ErrorKind::QuotaExceeded, spent)))
    }
}

writes_through!(Charged.client);
