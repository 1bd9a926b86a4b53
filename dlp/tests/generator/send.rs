//! Sends requests through the scan as the gateway does: the head whole, its pieces, the content
//! chunk by chunk, and the values in it. Says whether the last byte of the secret was held.

use std::sync::Arc;

use outgate_dlp::{
    Action, Description, Finding, MessagePart, Piece, Place, Ruleset, ScanDestination, Stream,
    Unscanned, Window,
};

use crate::carriers::{OwnPiece, Request};
use crate::dice::Dice;

/// A host that issued nothing.
pub(crate) const ELSEWHERE: ScanDestination<'static> = ScanDestination {
    host: "elsewhere.test",
    port: 443,
};

fn is_refused(findings: &[Finding]) -> bool {
    findings.iter().any(|found| found.action == Action::Block)
}

fn pieces(own: &[OwnPiece]) -> Vec<Piece<'_>> {
    let pieces = own.iter().map(|own| Piece {
        source: own.source,
        slot: &own.slot,
        bytes: &own.bytes,
    });
    pieces.collect()
}

/// Whether a request is refused before the byte at `last` of its content leaves, or, where that
/// is nowhere, before it is over.
fn is_stopped(
    (rules, window): (&Arc<Ruleset>, &mut Window),
    request: &Request,
    (last, chunks): (Option<usize>, &[usize]),
) -> bool {
    let parts: Vec<MessagePart<'_>> = request
        .parts
        .iter()
        .map(|(place, bytes)| MessagePart {
            place: place.clone(),
            bytes,
        })
        .collect();
    let refuses = |missed: Option<Unscanned>| {
        missed.is_some_and(|missed| rules.unscannable().refuses(missed.reason))
    };
    let report = rules.head(&ELSEWHERE, &parts);
    if report.block().is_some() || refuses(report.unscanned) {
        return true;
    }
    if is_refused(&window.push(&pieces(&request.head))) || refuses(window.missed()) {
        return true;
    }
    let description = Description {
        place: Place::Content,
        media_type: request.media_type.map(str::as_bytes),
        content_codings: None,
        length: None,
    };
    let mut stream = rules.stream(&ELSEWHERE, &description);
    let mut rest = &request.content[..];
    let mut lengths = chunks.iter().copied().cycle();
    let mut released = 0;
    while !rest.is_empty() {
        let length = lengths.next().unwrap_or(1).clamp(1, rest.len());
        let (now, later) = rest.split_at(length);
        match stream.push(now) {
            Ok(upto) => released = upto,
            Err(_) => return is_held(released, last),
        }
        rest = later;
    }
    if stream.finish().is_err() {
        return is_held(released, last);
    }
    is_refused(&window.push(&content_pieces(request, &stream))) || refuses(window.missed())
}

/// The values of content, and the texts that codings in it stand for.
fn content_pieces<'a>(request: &'a Request, stream: &'a Stream) -> Vec<Piece<'a>> {
    let mut all = pieces(&request.values);
    all.extend(stream.made().map(Piece::of_content));
    all
}

/// Whether a byte was held; where nobody knows which one counts, whether anything was.
fn is_held(released: u64, last: Option<usize>) -> bool {
    last.is_none_or(|last| usize::try_from(released).expect("a length") <= last)
}

/// What became of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// A request was refused before its last byte left.
    Held,
    Left,
}

/// What became of a secret in these requests, of which the last byte stands in each at this place
/// of the content, if it does.
pub(crate) fn fate(
    rules: &Arc<Ruleset>,
    requests: &[(Request, Option<usize>)],
    dice: &mut Dice,
) -> Fate {
    let mut window = Window::new(rules, &ELSEWHERE);
    let most = dice.pick(&[1, 7, 100, 1500, 16_384, 100_000]);
    let chunks: Vec<usize> = (0..16).map(|_| 1 + dice.roll(most)).collect();
    let is_held = requests
        .iter()
        .any(|(request, last)| is_stopped((rules, &mut window), request, (*last, &chunks)));
    if is_held { Fate::Held } else { Fate::Left }
}
