//! The scan as a filter: heads are scanned before their verdict is recorded, content and the
//! messages of WebSockets before they go on.

use std::sync::Arc;

use http::{header, request, response};
use outgate_policy::Verdict;

use super::body::Screened;
use super::{SandboxScan, Scans};
use crate::body::{Inner, Stopped};
use crate::carrier::Upgrade;
use crate::filter::{Filter, FilterFault, RelayEnds, RequestContext, SentHead, no_extensions};
use crate::refusal::Refusal;
use crate::target::{Target, TargetVisibility};

/// What scans a request.
pub(crate) fn filter(scans: Arc<Scans>) -> Box<dyn Filter> {
    Box::new(ScanFilter { scans, scan: None })
}

#[derive(Debug)]
struct ScanFilter {
    scans: Arc<Scans>,
    /// The one by whose mode the request is inspected; nothing where it is not.
    scan: Option<Arc<SandboxScan>>,
}

impl Filter for ScanFilter {
    fn visibility(&self, target: &Target) -> Option<TargetVisibility> {
        Some(self.scans.shown(target))
    }

    fn judge(
        &mut self,
        request: &mut RequestContext,
        head: &request::Parts,
        _: &Verdict,
    ) -> Result<(), Refusal> {
        let RequestContext { caller, target, .. } = request;
        self.scan = self.scans.by(target.mode).cloned();
        target.shown = match &self.scan {
            Some(scan) => scan.head((caller, target), head)?,
            // What is not inspected is not written down either.
            None => self.scans.shown(target),
        };
        Ok(())
    }

    fn head(
        &mut self,
        request: &RequestContext,
        sent: &mut SentHead,
        _: &outgate_policy::Permit,
    ) -> Result<(), FilterFault> {
        if request.target.upgrade() == Upgrade::WebSocket && self.scan.is_some() {
            // Messages that are compressed could not be looked into.
            let fields = &mut sent.head.headers;
            fields.remove(header::SEC_WEBSOCKET_EXTENSIONS);
        }
        Ok(())
    }

    fn before(&mut self, request: &RequestContext, head: &request::Parts, content: Inner) -> Inner {
        let Some(scan) = &self.scan else {
            return content;
        };
        let guard = scan.guard((&request.caller, &request.target), head);
        Inner::Filtered(Box::new(Screened::new(content, guard)))
    }

    fn switched(&mut self, head: &mut response::Parts) -> Result<(), &'static str> {
        self.scan.as_ref().map_or(Ok(()), |_| no_extensions(head))
    }

    fn relayed(&mut self, request: &RequestContext, ends: RelayEnds) -> Result<RelayEnds, Stopped> {
        let Some(scan) = &self.scan else {
            return Ok(ends);
        };
        let asked = (&request.caller, &request.target);
        Ok(RelayEnds {
            client: Box::new(scan.watched(ends.client, asked)),
            ..ends
        })
    }
}
