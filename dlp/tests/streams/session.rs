//! A long token in its place in heads, and what the window makes of it with the contents
//! behind: nothing, unless those hold pieces of it.

use std::sync::Arc;

use outgate_dlp::{
    Detectors, IssuerPattern, KnownBuilder, KnownNature, KnownValue, Piece, PieceSource, Ruleset,
    ScanDestination, ScanSettings, SecretBytes, Tier, Window,
};

use crate::pieces::{is_refused, piece};
use crate::stage::Dice;

const ISSUER: ScanDestination<'static> = ScanDestination {
    host: "sts.eu-west-1.amazonaws.com",
    port: 443,
};

const CONTENTS: [&str; 3] = [
    "text",
    "Action=GetCallerIdentity&Version=2011-06-15",
    "Action=Other&Version=2011-06-15&Name=x-1",
];

/// A token as the service makes them, of so many letters that only parts of it are kept.
fn token(dice: &mut Dice) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |_| char::from(*LETTERS.get(dice.roll(64)).expect("a letter"));
    let letters: String = (0..600).map(letter).collect();
    format!("IQoJb3JpZ2luX2VjE{letters}")
}

fn window(token: &str) -> Window {
    let mut builder = KnownBuilder::new([7; 32]);
    let about = KnownValue {
        label: "AWS_SESSION_TOKEN".to_owned(),
        others: Vec::new(),
        issuers: vec![IssuerPattern::parse("*.amazonaws.com").expect("a pattern")],
        tier: Tier::Strong,
        nature: KnownNature::Sent,
    };
    let added = builder.add(&SecretBytes::new(token.as_bytes().to_vec()), about);
    added.expect("a value");
    let rules = Ruleset::new(&Detectors::shipped(), &ScanSettings::default());
    let rules = rules.expect("the shipped detectors");
    let rules = rules.with_known(Arc::new(builder.build()), Vec::new());
    Window::new(&Arc::new(rules), &ISSUER)
}

/// Sends a head with the token in its place; answers whether it was refused.
fn head(window: &mut Window, token: &str, number: usize) -> bool {
    let date = format!("20240105T20165{number}Z");
    let id = format!("6c020136-41ac-4b52-9f1f-c465fdd9b25{number}");
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential=ASIAQWERTYUIOPASDFGH/20240105/eu-west-1/sts/aws4_request, \
         SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, \
         Signature=a4b8d56fed281c36ee530f7ad4f09a056420738f5e2a018eaddc94ca124d14{number:02}"
    );
    let field = |name, value: &'static str| piece(PieceSource::Client, name, value.as_bytes());
    let found = window.push(&[
        field(
            "user-agent",
            "aws-cli/1.45.11 md/Botocore#1.43.11 ua/2.1 os/linux#6.1.0",
        ),
        piece(PieceSource::Field, "x-amz-date", date.as_bytes()),
        piece(PieceSource::Field, "x-amz-security-token", token.as_bytes()),
        piece(
            PieceSource::Field,
            "authorization",
            authorization.as_bytes(),
        ),
        piece(PieceSource::Field, "amz-sdk-invocation-id", id.as_bytes()),
    ]);
    is_refused(&found)
}

/// Sends a form; answers whether it was refused.
fn form(window: &mut Window, text: &str) -> bool {
    let pairs = text
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or(("", pair)));
    let pieces: Vec<Piece<'_>> = pairs
        .map(|(name, value)| piece(PieceSource::Content, name, value.as_bytes()))
        .collect();
    is_refused(&window.push(&pieces))
}

#[test]
fn a_token_in_its_place_is_no_part_of_the_contents_behind_it() {
    let mut dice = Dice(20_260_101);
    for draw in 0..100 {
        let token = token(&mut dice);
        let mut window = window(&token);
        for (number, content) in CONTENTS.iter().enumerate() {
            assert!(
                !head(&mut window, &token, number),
                "draw {draw}, head {number}"
            );
            assert!(!form(&mut window, content), "draw {draw}, content {number}");
        }
    }
}

#[test]
fn a_token_in_its_place_hides_no_pieces_of_it_behind_it() {
    let mut dice = Dice(20_260_102);
    for draw in 0..40 {
        let token = token(&mut dice);
        let mut window = window(&token);
        assert!(!head(&mut window, &token, 0), "draw {draw}");
        let (_, last) = token.split_at(token.len() - 80);
        let (one, two) = last.split_at(40 + dice.roll(20));
        let is_stopped = form(&mut window, &format!("a={one}"))
            || head(&mut window, &token, 1)
            || form(&mut window, &format!("a={two}"));
        assert!(is_stopped, "draw {draw}");
    }
}
