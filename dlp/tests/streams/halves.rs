//! Of a pair of keys the half that signs, in content behind the id that anybody may have.

use std::sync::Arc;

use outgate_dlp::{
    Action, Piece, PieceSource, Ruleset, ScanDestination, ScanPolicy, UnscannableAction, Window,
};

use crate::encode::plain_base64;
use crate::pieces::piece;
use crate::stage::{Dice, rules, sample_of};

const ISSUER: ScanDestination<'static> = ScanDestination {
    host: "bucket.s3.amazonaws.com",
    port: 443,
};

fn signed() -> Vec<u8> {
    let id = sample_of("aws-access-key-id", 3);
    let rest = format!(
        "/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature={}",
        "0a".repeat(32)
    );
    [
        b"AWS4-HMAC-SHA256 Credential=",
        id.as_slice(),
        rest.as_bytes(),
    ]
    .concat()
}

/// What is done with content behind so many requests with and without an id.
fn action(
    rules: &Arc<Ruleset>,
    to: &ScanDestination<'_>,
    (head, between): (&[u8], usize),
    content: &[u8],
) -> Option<Action> {
    let mut window = Window::new(rules, to);
    let field = piece(PieceSource::Field, "authorization", head);
    assert_eq!(window.push(&[field]), []);
    for number in 0..between {
        let name = format!("{number}");
        let other: Piece<'_> = piece(PieceSource::Query, &name, b"list");
        assert_eq!(window.push(&[other]), []);
    }
    let found = window.push(&[piece(PieceSource::Content, "note", content)]);
    found.first().map(|finding| finding.action)
}

#[test]
fn the_half_that_signs_is_told_in_content_behind_the_id() {
    let default = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
    let strict = rules(ScanPolicy::Strict, UnscannableAction::Refuse);
    let half = b"wJ4lrXUt7FEMIk7MDENGbPxRfiCYz9Qh2LsT8vKa";
    let beside = [b"it is ", half.as_slice(), b" and more"].concat();
    let elsewhere = ScanDestination {
        host: "a.example",
        port: 443,
    };
    let signed = signed();
    for content in [half.to_vec(), beside, plain_base64(half)] {
        for between in [0, 1, 20] {
            let sent = (signed.as_slice(), between);
            assert_eq!(
                action(&default, &ISSUER, sent, &content),
                Some(Action::Warn)
            );
            assert_eq!(
                action(&strict, &ISSUER, sent, &content),
                Some(Action::Block)
            );
            assert_eq!(
                action(&strict, &ISSUER, (b"Bearer none", between), &content),
                None
            );
            assert_eq!(
                action(&strict, &elsewhere, (b"Bearer none", between), &content),
                None
            );
        }
    }
    let letters = b"0123456789abcdef";
    let mut dice = Dice(6);
    let hash: Vec<u8> = (0..40).map(|_| letters[dice.roll(16)]).collect();
    for content in [hash, plain_base64(&dice.bytes(64)), dice.words(400)] {
        assert_eq!(action(&strict, &ISSUER, (&signed, 1), &content), None);
    }
}
