//! Requests for many parts of one resource at once, as a filter: few clients ask for more
//! than two, and each part costs an origin far more than it costs who asks (RFC 9110 17.15).

use http::header::{self, HeaderMap};
use outgate_policy::Permit;
use outgate_record::Reason;

use crate::filter::{Filter, FilterFault, RequestContext, SentHead};
use crate::refusal::Refusal;

/// Parts that one request may ask for.
const RANGES_MAX: usize = 16;

/// What looks for them.
pub(crate) fn filter() -> Box<dyn Filter> {
    Box::new(RangesFilter)
}

#[derive(Debug)]
struct RangesFilter;

impl Filter for RangesFilter {
    fn head(
        &mut self,
        request: &RequestContext,
        sent: &mut SentHead,
        _: &Permit,
    ) -> Result<(), FilterFault> {
        let count = ranges(&sent.head.headers);
        if count <= RANGES_MAX {
            return Ok(());
        }
        let subject = format!("{} {}", request.target.method, request.target.origin());
        let because = format!("it asks for {count} ranges at once, and {RANGES_MAX} may be");
        Err(Refusal::own(Reason::Ranges, &subject, &because).into())
    }
}

/// How many ranges fields ask for.
fn ranges(fields: &HeaderMap) -> usize {
    let values = fields.get_all(header::RANGE).iter();
    let commas = |value: &[u8]| value.iter().filter(|byte| **byte == b',').count();
    values
        .map(|value| commas(value.as_bytes()).saturating_add(1))
        .sum()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn ranges_are_counted_over_all_fields() {
        let mut fields = HeaderMap::new();
        assert_eq!(ranges(&fields), 0);
        fields.append(header::RANGE, HeaderValue::from_static("bytes=0-1"));
        assert_eq!(ranges(&fields), 1);
        fields.append(header::RANGE, HeaderValue::from_static("bytes=0-1,2-3,-9"));
        assert_eq!(ranges(&fields), 4);
    }
}
