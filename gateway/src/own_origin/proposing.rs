//! A rule that a command proposes: held against what was denied to it, recorded, and put to a
//! person with the command's words marked as such. Whatever it says, it allows nothing.

use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, header, request};
use outgate_handoff::{OpenQuestion, ProcessFacts, WORDS_BYTES_MAX};
use outgate_policy::{ProposedRule, printable};
use serde_json::json;

use super::reading::{SentProposal, read};
use super::{OwnAnswer, state};
use crate::ask::held;
use crate::audit::{Event, Kind, Outcome};
use crate::body::Inner;
use crate::flow::Flow;
use crate::session::{Asked, EnteredProposal, Proposal, ProposalStage, Session};
use crate::text::shortened;

/// How long a proposal waits for an answer: no client hangs meanwhile.
const QUESTION_TIME: Duration = Duration::from_mins(10);
/// How long it takes at most to hear that nobody is there.
const HEARD_WAIT: Duration = Duration::from_millis(300);

/// What is said where nobody is asked.
pub(super) const UNASKED: &str = "Nobody is asked in this run, so no proposals are taken: its \
    user has it ask with `outgate run --ask`, and answers with `outgate approve`.";
/// What is said where nobody is there.
const UNHEARD: &str = "Nobody is there to answer: the user of this run answers with `outgate \
    approve` in another terminal. Propose it again then.";

/// Takes a proposal, or says why not.
pub(super) async fn propose(flow: &Flow, head: &request::Parts, content: &mut Inner) -> OwnAnswer {
    let session = flow.session();
    if !session.open_questions().are_asked() {
        return OwnAnswer::fault(StatusCode::FORBIDDEN, UNASKED);
    }
    if head.headers.contains_key(header::ORIGIN) {
        let because = "a page in a browser proposes nothing";
        return OwnAnswer::fault(StatusCode::FORBIDDEN, because);
    }
    let sent = match read(content).await {
        Ok(sent) => sent,
        Err(fault) => return fault,
    };
    let turn = session.turn().await;
    let checked = check(session, &sent);
    turn.end().await;
    let proposed = match checked {
        Ok(proposed) => proposed,
        Err(because) => {
            refused(session, flow.process(), &sent, &because);
            return OwnAnswer::fault(StatusCode::FORBIDDEN, &because);
        }
    };
    if proposed.is_granted_by(session.rules().own()) {
        return granted(&sent.rule);
    }
    let words = session.recorder().masked(&sent.why).unwrap_or(sent.why);
    let words = shortened(&printable(&words), WORDS_BYTES_MAX);
    match session.proposals().enter(&sent.rule, &words) {
        EnteredProposal::New(proposal) => ask(session, flow.process(), proposal).await,
        EnteredProposal::Known(proposal) => answered(&proposal),
        EnteredProposal::Unheard => OwnAnswer::fault(StatusCode::FORBIDDEN, UNHEARD),
        EnteredProposal::Crowded => {
            let because = "as many proposals of this run wait for an answer as may; wait for one";
            OwnAnswer::fault(StatusCode::TOO_MANY_REQUESTS, because)
        }
        EnteredProposal::Spent => {
            let because = "this run proposed as much as it may";
            OwnAnswer::fault(StatusCode::TOO_MANY_REQUESTS, because)
        }
    }
}

/// Holds the rule against what was denied to this run.
fn check(session: &Session, sent: &SentProposal) -> Result<ProposedRule, String> {
    if printable(&sent.rule) != sent.rule {
        return Err("the rule holds signs that no rule has".to_owned());
    }
    if session.recorder().masked(&sent.rule).is_some() {
        return Err("the rule holds a value that may not be shown".to_owned());
    }
    let recent = session.recorder().recent();
    let denied = recent.iter().filter_map(|own| own.narrowest.as_deref());
    let denied: Vec<&str> = denied.collect();
    ProposedRule::new(&sent.rule, &denied).map_err(|fault| printable(&fault.to_string()))
}

/// Records that a proposal was none; the first ones.
fn refused(session: &Session, process: &ProcessFacts, sent: &SentProposal, because: &str) {
    if !session.proposals().is_refusal_recorded() {
        return;
    }
    let target = printable(&sent.rule);
    let event = Event::new(Kind::Proposal, Outcome::Note, &target).process(process);
    let detail = format!("not taken: {because}");
    session.recorder().record(&event.detail(&detail)).ok();
}

/// A rule that holds already.
fn granted(rule: &str) -> OwnAnswer {
    let because = "the rules of this run allow it already";
    OwnAnswer {
        status: StatusCode::OK,
        text: format!("allowed: {rule} ({because})\n"),
        json: json!({ "rule": rule, "state": "allowed", "because": because }),
        about: None,
    }
}

/// Puts a new one to a person, once it is recorded.
async fn ask(session: &Arc<Session>, process: &ProcessFacts, proposal: Arc<Proposal>) -> OwnAnswer {
    let detail = format!("proposal {}: {}", proposal.id, proposal.words);
    let event = Event::new(Kind::Proposal, Outcome::Note, &proposal.rule).process(process);
    if session.recorder().record(&event.detail(&detail)).is_err() {
        session.proposals().settle(&proposal, Asked::Crowded);
        let because = "the audit record cannot be written, so nothing is asked";
        return OwnAnswer::fault(StatusCode::SERVICE_UNAVAILABLE, because);
    }
    let question = OpenQuestion {
        subject: proposal.rule.clone(),
        narrow: proposal.rule.clone(),
        // A proposal is for what was denied, and for nothing beside it.
        broad: String::new(),
        process: process.clone(),
        words: proposal.words.clone(),
    };
    let (asking, own) = (Arc::clone(session), Arc::clone(&proposal));
    session.tasks().spawn(async move {
        let asked = held::asked(&asking, question, QUESTION_TIME).await;
        let (word, how) = match asked {
            Asked::Granted => ("allowed", "a person allowed it"),
            Asked::Denied | Asked::Nobody | Asked::Late | Asked::Crowded => {
                ("denied", asked.words())
            }
        };
        let detail = format!("proposal {} {word}: {how}", own.id);
        let event = Event::new(Kind::Proposal, Outcome::Note, &own.rule);
        asking.recorder().record(&event.detail(&detail)).ok();
        asking.proposals().settle(&own, asked);
    });
    proposal.settled_within(HEARD_WAIT).await;
    answered(&proposal)
}

/// What is said of one that was taken.
fn answered(proposal: &Proposal) -> OwnAnswer {
    match proposal.stage() {
        ProposalStage::Settled(Asked::Nobody) => OwnAnswer::fault(StatusCode::FORBIDDEN, UNHEARD),
        ProposalStage::Settled(Asked::Crowded) => {
            let because = Asked::Crowded.words();
            OwnAnswer::fault(StatusCode::TOO_MANY_REQUESTS, because)
        }
        ProposalStage::Settled(Asked::Denied | Asked::Late) => {
            state(StatusCode::FORBIDDEN, proposal)
        }
        ProposalStage::Pending | ProposalStage::Settled(Asked::Granted) => {
            state(StatusCode::ACCEPTED, proposal)
        }
    }
}
