//! Requests to one place as lines: templates of their paths, the keys that all queries had,
//! methods and executables. Whether a line covers what was seen, the decision function says.

use std::collections::{BTreeMap, BTreeSet};

use super::Place;
use super::evidence::Evidence;
use super::lines::{self, LearntLine};
use super::template::{Openness, Template, templates};
use crate::denial::pattern_of;
use crate::facts::Process;
use crate::path::RequestTarget;
use crate::policy::Policy;
use crate::question::Question;
use crate::verdict::Verdict;

/// A request as it was seen: method, path, keys of its query and executable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) keys: BTreeSet<String>,
    pub(super) executable: String,
}

/// The lines for the requests to one place, and what no line covers.
pub(super) fn requests(
    place: &Place,
    seen: &BTreeMap<Seen, Evidence>,
    is_shared: &dyn Fn(&str) -> bool,
) -> (Vec<LearntLine>, Vec<Evidence>) {
    let mut methods: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for own in seen.keys() {
        methods
            .entry(&own.method)
            .or_default()
            .insert(own.path.clone());
    }
    let mut drafts: BTreeMap<Shape, lines::RequestDraft> = BTreeMap::new();
    let mut uncovered = Vec::new();
    for (method, paths) in &methods {
        for template in templates(paths) {
            for (template, own) in covering(place, method, template, seen, &mut uncovered) {
                let keys = own.iter().map(|(seen, _)| &seen.keys);
                let keys = keys
                    .cloned()
                    .reduce(|one, other| &one & &other)
                    .unwrap_or_default();
                let executables: BTreeSet<String> = own
                    .iter()
                    .map(|(seen, _)| seen.executable.clone())
                    .collect();
                let shape = Shape {
                    pattern: template.pattern,
                    keys,
                    executables,
                };
                let draft = drafts.entry(shape).or_default();
                draft.openness = draft.openness.max(Some(template.openness));
                draft.methods.insert((*method).to_owned());
                for (_, evidence) in own {
                    draft.evidence.join(evidence.clone());
                }
            }
        }
    }
    let lines = drafts.into_iter();
    let lines = lines.map(|(shape, draft)| lines::request(place, &shape, draft, is_shared));
    (lines.collect(), uncovered)
}

/// What tells lines of one place apart, beside methods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    pub(super) pattern: String,
    pub(super) keys: BTreeSet<String>,
    pub(super) executables: BTreeSet<String>,
}

/// What was seen, with its evidence.
type Members<'s> = Vec<(&'s Seen, &'s Evidence)>;

/// The template with what it was made of; what its rule would not allow, since servers
/// disagree about such a path, has one of its own, if any covers it.
fn covering<'s>(
    place: &Place,
    method: &str,
    template: Template,
    seen: &'s BTreeMap<Seen, Evidence>,
    uncovered: &mut Vec<Evidence>,
) -> Vec<(Template, Members<'s>)> {
    let own = seen
        .iter()
        .filter(|(own, _)| own.method == method && template.members.contains(&own.path));
    let policy = lines::alone(place, &template.pattern);
    let (fit, unfit): (Members<'s>, Members<'s>) =
        own.partition(|(own, _)| is_allowed(policy.as_ref(), place, own));
    let mut found = Vec::new();
    for (own, evidence) in unfit {
        let target = RequestTarget::parse(&own.path);
        let pattern = target.as_ref().map(pattern_of).unwrap_or_default();
        let alone = lines::alone(place, &pattern).filter(|_| !pattern.is_empty());
        if is_allowed(alone.as_ref(), place, own) {
            let exact = Template {
                pattern,
                openness: Openness::Exact,
                members: BTreeSet::from([own.path.clone()]),
            };
            found.push((exact, vec![(own, evidence)]));
        } else {
            uncovered.push(evidence.clone());
        }
    }
    if !fit.is_empty() {
        found.push((template, fit));
    }
    found
}

/// Whether a policy allows the request, whoever makes it.
fn is_allowed(policy: Option<&Policy>, place: &Place, seen: &Seen) -> bool {
    let keys: Vec<String> = seen.keys.iter().map(|key| format!("{key}=*")).collect();
    let query = if keys.is_empty() {
        String::new()
    } else {
        format!("?{}", keys.join("&"))
    };
    let port = place.port;
    let text = format!(
        "{} {}://{}:{port}{}{query}",
        seen.method, place.scheme, place.host, seen.path
    );
    let process = Process { executable: "" };
    let Ok(question) = Question::parse(&text) else {
        return false;
    };
    policy.is_some_and(|policy| matches!(policy.answer(&question, process), Verdict::Allow(_)))
}
