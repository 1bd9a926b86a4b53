//! The filters that one request passes, in their order. Its response passes them the other
//! way round: what was last to touch a request is first to see what comes of it.

use std::sync::Arc;

use bytes::Bytes;
use http::header::HeaderMap;
use http::{request, response};
use http_body::Body as _;
use outgate_policy::{Permit, Verdict};

use super::{
    ContentFilter, FieldFilter, Filter, FilterFault, RelayEnds, RequestContext,
    ResponseContentKind, SentHead,
};
use crate::body::{ContentError, Inner, Stopped};
use crate::refusal::Refusal;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct FilterChain(Vec<Box<dyn Filter>>);

/// What looks at interim responses.
#[derive(Debug, Clone, Default)]
pub(crate) struct InterimFilters(Vec<Arc<dyn FieldFilter>>);

impl FieldFilter for InterimFilters {
    fn fields(&self, fields: &mut HeaderMap) {
        for filter in &self.0 {
            filter.fields(fields);
        }
    }
}

impl InterimFilters {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FilterChain {
    pub(crate) fn new(filters: impl IntoIterator<Item = Option<Box<dyn Filter>>>) -> Self {
        Self(filters.into_iter().flatten().collect())
    }

    /// As [`Filter::malformed`]: the first that says something.
    pub(crate) fn malformed(&self, head: &request::Parts) -> Option<String> {
        self.0.iter().find_map(|filter| filter.malformed(head))
    }

    /// As [`Filter::examine`]; the result is what stands for the head from here on.
    ///
    /// # Errors
    /// The request may not be sent, which was recorded.
    pub(crate) fn examine(
        &mut self,
        request: &mut RequestContext,
        head: &request::Parts,
    ) -> Result<Option<request::Parts>, Refusal> {
        let mut judged = None;
        let mut fault = None;
        for filter in &mut self.0 {
            match filter.examine(request, judged.as_ref().unwrap_or(head)) {
                Ok(Some(other)) => judged = Some(other),
                Ok(None) => {}
                Err(refusal) => {
                    fault = Some(refusal);
                    break;
                }
            }
        }
        let Some(refusal) = fault else {
            return Ok(judged);
        };
        let mut filters = self.0.iter();
        if let Some(shown) = filters.find_map(|filter| filter.visibility(&request.target)) {
            request.target.shown = shown;
        }
        request.caller.found(&request.target, &refusal);
        Err(refusal)
    }

    /// As [`Filter::judge`].
    ///
    /// # Errors
    /// The request may not be sent, which was recorded.
    pub(crate) fn judge(
        &mut self,
        request: &mut RequestContext,
        head: &request::Parts,
        verdict: &Verdict,
    ) -> Result<(), Refusal> {
        let mut filters = self.0.iter_mut();
        filters.try_for_each(|filter| filter.judge(request, head, verdict))
    }

    /// As [`Filter::head`].
    ///
    /// # Errors
    /// The request is not to be sent.
    pub(crate) fn head(
        &mut self,
        request: &RequestContext,
        sent: &mut SentHead,
        permit: &Permit,
    ) -> Result<(), FilterFault> {
        let mut filters = self.0.iter_mut();
        filters.try_for_each(|filter| filter.head(request, sent, permit))
    }

    /// The content with what looks at it, its beginning read where a filter wants that.
    ///
    /// # Errors
    /// It may not leave, or its sender ended it.
    pub(crate) async fn body(
        &mut self,
        request: &RequestContext,
        head: &request::Parts,
        mut content: Inner,
    ) -> Result<(Inner, Vec<Box<dyn ContentFilter>>), ContentError> {
        if content.is_end_stream() {
            return Ok((content, Vec::new()));
        }
        for filter in &mut self.0 {
            content = filter.before(request, head, content);
        }
        content.read_ahead().await?;
        let filters = self.0.iter_mut();
        let filters = filters.filter_map(|filter| filter.body(request, head));
        Ok((content, filters.collect()))
    }

    /// As [`Filter::complete`].
    ///
    /// # Errors
    /// The request is not to be sent.
    pub(crate) fn complete(
        &mut self,
        request: &RequestContext,
        (fields, resource): (&mut HeaderMap, &str),
        content: Option<&Bytes>,
    ) -> Result<(), FilterFault> {
        let mut filters = self.0.iter_mut();
        filters.try_for_each(|filter| filter.complete(request, (&mut *fields, resource), content))
    }

    /// As [`Filter::interim`].
    pub(crate) fn interim(&self) -> InterimFilters {
        let filters = self.0.iter().rev();
        InterimFilters(filters.filter_map(|filter| filter.interim()).collect())
    }

    /// As [`Filter::returned`].
    ///
    /// # Errors
    /// The response may not come back.
    pub(crate) fn returned(
        &mut self,
        request: &RequestContext,
        head: &mut response::Parts,
        content: ResponseContentKind,
    ) -> Result<Vec<Box<dyn ContentFilter>>, Refusal> {
        let filters = self.0.iter_mut().rev();
        let looks =
            filters.filter_map(|filter| filter.returned(request, head, content).transpose());
        looks.collect()
    }

    /// As [`Filter::switched`].
    ///
    /// # Errors
    /// What the origin may not agree to.
    pub(crate) fn switched(&mut self, head: &mut response::Parts) -> Result<(), &'static str> {
        let mut filters = self.0.iter_mut().rev();
        filters.try_for_each(|filter| filter.switched(head))
    }

    /// As [`Filter::relayed`].
    ///
    /// # Errors
    /// Nothing can be looked at.
    pub(crate) fn relayed(
        &mut self,
        request: &RequestContext,
        ends: RelayEnds,
    ) -> Result<RelayEnds, Stopped> {
        let mut filters = self.0.iter_mut();
        filters.try_fold(ends, |ends, filter| filter.relayed(request, ends))
    }
}
