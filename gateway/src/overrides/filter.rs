//! Overrides as a filter: a request in the request is looked for in a head that is allowed,
//! and then in its content.

use bytes::Bytes;
use http::{HeaderMap, request};
use outgate_policy::Verdict;

use super::form::{WatchedForm, check_media, check_methods, check_query};
use super::second::check_fields;
use crate::body::Stopped;
use crate::filter::{ContentFilter, Filter, RequestContext, StreamEnd};
use crate::limits;
use crate::refusal::Refusal;

/// What looks for overrides.
pub(crate) fn filter() -> Box<dyn Filter> {
    Box::new(OverridesFilter)
}

#[derive(Debug)]
struct OverridesFilter;

impl Filter for OverridesFilter {
    fn judge(
        &mut self,
        RequestContext { caller, target, .. }: &mut RequestContext,
        head: &request::Parts,
        verdict: &Verdict,
    ) -> Result<(), Refusal> {
        if matches!(verdict, Verdict::Deny(_)) {
            return Ok(());
        }
        check_query(caller, target)?;
        check_methods(caller, target, &head.headers)?;
        check_media(caller, target, &head.headers)?;
        check_fields(caller, target, &head.headers)
    }

    fn body(
        &mut self,
        RequestContext { caller, target, .. }: &RequestContext,
        head: &request::Parts,
    ) -> Option<Box<dyn ContentFilter>> {
        Some(Box::new(WatchedContent(WatchedForm::of(
            caller, target, head,
        ))))
    }
}

/// Content, with the form or document in it where there is one.
#[derive(Debug)]
struct WatchedContent(Option<WatchedForm>);

impl ContentFilter for WatchedContent {
    fn pass(&mut self, data: Bytes, end: StreamEnd) -> Result<Bytes, Stopped> {
        let Some(form) = &mut self.0 else {
            return Ok(data);
        };
        if !data.is_empty() {
            form.read(&data)?;
        }
        if end == StreamEnd::Yes {
            form.finish()?;
        }
        Ok(data)
    }

    /// Behind content nobody judges what a field asks for, so none goes on that could.
    fn trailers(&mut self, fields: &mut HeaderMap) -> Result<(), Stopped> {
        let asking: Vec<_> = fields
            .keys()
            .filter(|name| super::could_ask(name))
            .cloned()
            .collect();
        for name in asking {
            fields.remove(name);
        }
        Ok(())
    }

    /// Some programs act on a form that did not come to its end. JSON that did not is none.
    fn whole_bytes_max(&self) -> u64 {
        match &self.0 {
            Some(form) if form.is_form() => limits::SECRET_HELD_BYTES_MAX,
            _ => 0,
        }
    }

    fn hold(&mut self) {
        if let Some(form) = &mut self.0 {
            form.read_whole();
        }
    }
}
