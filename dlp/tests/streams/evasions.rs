//! The ways around other scanners, one by one.

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

use outgate_dlp::{
    Anchor, Coding, Detectors, MessagePart, Place, ScanDestination, ScanPolicy, ScanReport, Stop,
    Tier, UnscannableAction, UnscannedReason, sample,
};

use crate::archives::zip;
use crate::encode::{decoys, gzip, plain_base64, zstd};
use crate::stage::{Dice, ELSEWHERE, Outcome, rules, sample_of, send, stream, strict};

fn token() -> Vec<u8> {
    sample_of("github-token", 11)
}

fn content(codings: Option<&str>, content: &[u8]) -> Outcome {
    send(
        &rules(ScanPolicy::Tiered, UnscannableAction::Refuse),
        codings,
        content,
        &[700],
    )
}

fn assert_found(codings: Option<&str>, bytes: &[u8]) {
    let outcome = content(codings, bytes);
    assert!(
        outcome.found().is_some(),
        "{:?} {:?}",
        codings,
        outcome.stop
    );
}

fn assert_refused(codings: Option<&str>, bytes: &[u8], reason: UnscannedReason) {
    let outcome = content(codings, bytes);
    match outcome.stop {
        Some(Stop::Unscannable(unscanned)) => assert_eq!(unscanned.reason, reason, "{codings:?}"),
        other => panic!("{codings:?} {other:?}"),
    }
}

fn part(place: Place, bytes: &[u8]) -> ScanReport {
    strict().head(&ELSEWHERE, &[MessagePart { place, bytes }])
}

#[test]
fn bytes_that_are_no_text_hide_nothing() {
    for before in [
        &b"\xff"[..],
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xf0\x9f",
        &[0x80; 400],
    ] {
        let bytes = [before, b" ", &token(), before].concat();
        assert_found(None, &bytes);
        assert!(
            part(Place::Field("x-note".to_owned()), &bytes)
                .block()
                .is_some()
        );
    }
}

#[test]
fn every_field_and_every_name_is_read() {
    for name in ["user-agent", "referer", "if-none-match", "accept", "cookie"] {
        let report = part(Place::Field(name.to_owned()), &token());
        let finding = report.block().expect(name);
        assert_eq!(finding.place, Place::Field(name.to_owned()));
        assert_eq!(finding.offset, 0);
    }
    for place in [
        Place::Method,
        Place::FieldName,
        Place::ServerName,
        Place::Label,
        Place::Target,
    ] {
        assert!(part(place.clone(), &token()).block().is_some(), "{place}");
    }
}

#[test]
fn fields_and_targets_are_decoded() {
    let basic = [b"user:", token().as_slice()].concat();
    let basic = [b"Basic ", plain_base64(&basic).as_slice()].concat();
    assert!(
        part(Place::Field("authorization".to_owned()), &basic)
            .block()
            .is_some()
    );
    let coded: Vec<String> = token().iter().map(|byte| format!("%{byte:02x}")).collect();
    let coded = coded.concat();
    assert!(
        part(Place::Target, format!("/?d={coded}").as_bytes())
            .block()
            .is_some()
    );
    let based = plain_base64(&token());
    let target = [b"/?d=", based.as_slice()].concat();
    let report = part(Place::Target, &target);
    let finding = report.block().expect("a finding");
    assert_eq!(finding.chain, [Coding::Base64]);
    assert_eq!(finding.to_string(), "base64>github-token");
}

#[test]
fn content_codings_are_undone_declared_or_not() {
    let text = [b"{\"note\": \"", token().as_slice(), b"\"}"].concat();
    let raw = compress_to_vec(&text, 6);
    let zlib = compress_to_vec_zlib(&text, 6);
    for (codings, bytes) in [
        (Some("identity"), gzip(&text)),
        (None, gzip(&text)),
        (None, zlib.clone()),
        (None, zstd(&text)),
        (Some("gzip"), gzip(&text)),
        (Some("GZip "), gzip(&text)),
        (Some("x-gzip"), gzip(&text)),
        (Some("deflate"), raw),
        (Some("deflate"), zlib),
        (Some("zstd"), zstd(&text)),
        (Some("gzip, gzip"), gzip(&gzip(&text))),
        (Some("zstd,gzip"), gzip(&zstd(&text))),
        (Some("gzip"), [gzip(b"first"), gzip(&text)].concat()),
        (Some("zstd"), [zstd(b"first"), zstd(&text)].concat()),
    ] {
        assert_found(codings, &bytes);
    }
}

#[test]
fn brotli_is_undone() {
    // Words, a synthetic token and words, compressed elsewhere.
    let compressed = "1b5604f88d946ee6a49b5ba91ae23d6f4be3b9ad09e240e3ad37918bb0d674000304e411cebd3e\
                      9da1b99ef66183de017924cd49ac35642d51df6500e6893b8822076317e9a394a7d9acedba22d6\
                      c6f42bfa07fc6f1d01";
    let bytes: Vec<u8> = (0..compressed.len())
        .step_by(2)
        .map(|place| u8::from_str_radix(&compressed[place..place + 2], 16).expect("hex"))
        .collect();
    let outcome = content(Some("br"), &bytes);
    let finding = outcome.found().expect("a finding");
    assert_eq!(finding.to_string(), "br>digitalocean-token");
    assert_refused(Some("br"), &bytes[..60], UnscannedReason::Damaged);
    // With a window of 16 MiB as programs ask for that cannot know how much comes.
    let wide = [&[bytes[0] | 0x0f], &bytes[1..]].concat();
    assert_eq!(wide[0] & 0x30, 0x10, "the last block");
    assert!(content(Some("br"), &wide).found().is_some());
}

#[test]
fn what_cannot_be_decoded_is_refused() {
    let text = Dice(4).words(3000);
    let whole = gzip(&text);
    assert_refused(
        Some("gzip"),
        &whole[..whole.len() - 3],
        UnscannedReason::Damaged,
    );
    assert_refused(
        Some("gzip"),
        &whole[..whole.len() / 2],
        UnscannedReason::Damaged,
    );
    assert_refused(None, &whole[..whole.len() / 2], UnscannedReason::Damaged);
    assert_refused(Some("gzip"), &text, UnscannedReason::Damaged);
    assert_refused(Some("deflate"), &[0xff; 300], UnscannedReason::Damaged);
    assert_refused(Some("zstd"), &text, UnscannedReason::Damaged);
    for codings in ["compress", "gzip, magic", "aes128gcm"] {
        assert_refused(Some(codings), &text, UnscannedReason::UnknownCoding);
    }
    assert_refused(Some("magic, gzip"), &whole, UnscannedReason::UnknownCoding);
    let mut damaged = whole.clone();
    for byte in &mut damaged[40..60] {
        *byte ^= 0x55;
    }
    assert!(content(Some("gzip"), &damaged).stop.is_some());
    let mut encrypted = zip(&text);
    let second = encrypted.len() / 2;
    let entry = encrypted[second..]
        .windows(4)
        .position(|four| four == b"PK\x03\x04");
    let entry = entry.map_or(0, |place| second + place);
    encrypted[entry + 6] |= 1;
    assert_refused(None, &encrypted, UnscannedReason::Encrypted);
    // Under rules that only record, it leaves and is told.
    let recording = rules(ScanPolicy::Tiered, UnscannableAction::Record);
    let outcome = send(&recording, Some("magic"), &text, &[100]);
    assert_eq!(outcome.stop, None);
    assert_eq!(
        outcome.unscanned.expect("told").reason,
        UnscannedReason::UnknownCoding
    );
}

#[test]
fn what_compressed_data_carry_beside_them_is_read() {
    // The name of a file in gzip, and a frame of zstd that everybody skips.
    let mut named = vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3];
    named.extend(token());
    named.push(0);
    named.extend(compress_to_vec(b"text", 6));
    named.extend_from_slice(&[0; 8]);
    assert_found(Some("gzip"), &named);
    let mut skipped = vec![0x50, 0x2a, 0x4d, 0x18, 40, 0, 0, 0];
    skipped.extend(token());
    skipped.extend(zstd(b"text"));
    assert_found(Some("zstd"), &skipped);
    let trailing = [gzip(b"text"), token()].concat();
    assert_found(Some("gzip"), &trailing);
}

#[test]
fn size_is_no_shelter() {
    let mut bytes = vec![b' '; 9 << 20];
    bytes.extend(plain_base64(&token()));
    let rules = rules(ScanPolicy::Tiered, UnscannableAction::Refuse);
    let outcome = send(&rules, None, &bytes, &[65536]);
    assert!(outcome.found().is_some(), "{:?}", outcome.stop);
    assert!(outcome.released <= 9 << 20);
}

#[test]
fn a_long_run_hides_nothing_at_its_end() {
    let mut dice = Dice(5);
    let mut inner = dice.words(100_000);
    inner.extend(token());
    let outcome = content(None, &plain_base64(&inner));
    assert_eq!(outcome.found().expect("a finding").chain, [Coding::Base64]);
    let outcome = content(None, &plain_base64(&gzip(&inner)));
    assert_eq!(
        outcome.found().expect("a finding").chain,
        [Coding::Base64, Coding::Gzip]
    );
}

#[test]
fn decoys_exhaust_nothing() {
    let outcome = content(None, &decoys(&token()));
    assert_eq!(outcome.found().expect("a finding").chain, [Coding::Base64]);
}

#[test]
fn an_entry_of_an_archive_is_named() {
    let text = [Dice(8).words(600), token()].concat();
    let outcome = content(None, &zip(&text));
    let finding = outcome.found().expect("a finding");
    assert_eq!(finding.inside.as_deref(), Some("folder/second.txt"));
    assert_eq!(finding.to_string(), "zip>github-token");
}

#[test]
fn look_alikes_hide_nothing() {
    let token = String::from_utf8(token()).expect("text");
    let alike = token
        .replace('p', "\u{440}")
        .replace('a', "\u{430}")
        .replace('_', "\u{ff3f}");
    assert_found(None, alike.as_bytes());
    let invisible: String = token
        .chars()
        .flat_map(|letter| [letter, '\u{2063}'])
        .collect();
    assert_found(None, invisible.as_bytes());
}

/// One byte in each kind of escape that stands in the middle of text.
fn escaped(kind: usize, byte: u8) -> Vec<u8> {
    let text = match kind {
        0 => format!("%{byte:02x}"),
        1 => format!("\\u{byte:04x}"),
        2 => format!("&#{byte};"),
        3 => format!("={byte:02X}"),
        4 => char::from_u32(u32::from(byte) + 0xfee0)
            .expect("a wide letter")
            .to_string(),
        _ => unreachable!(),
    };
    text.into_bytes()
}

#[test]
fn escapes_of_several_kinds_in_one_credential_hide_nothing() {
    let mut dice = Dice(21);
    let rules = rules(ScanPolicy::Tiered, UnscannableAction::Refuse);
    let key = sample_of("pem-private-key", 4);
    for (secret, reach) in [(token(), 30), (key, 26)] {
        for (one, two) in (0..5).flat_map(|one| (0..5).map(move |two| (one, two))) {
            for third in [None, Some((one + 2) % 5)] {
                let mut places: Vec<usize> = (0..reach).collect();
                places.retain(|place| secret[*place].is_ascii_graphic());
                let mut coded = secret.clone();
                let mut kinds = vec![one, two];
                kinds.extend(third);
                let mut chosen: Vec<usize> = (kinds.iter())
                    .map(|_| places.swap_remove(dice.roll(places.len())))
                    .collect();
                chosen.sort_unstable();
                // From the last on, so that places stay.
                for (place, kind) in chosen.iter().zip(&kinds).rev() {
                    let escape = escaped(*kind, coded[*place]);
                    coded.splice(*place..=*place, escape);
                }
                let text = [dice.words(300), b" ".to_vec(), coded, b"\n".to_vec()].concat();
                for lengths in [&[1 << 20][..], &[1], &[290, 3, 17]] {
                    let outcome = send(&rules, None, &text, lengths);
                    assert!(
                        outcome.found().is_some() && outcome.released <= 301,
                        "{kinds:?} {lengths:?} {outcome:?} {}",
                        String::from_utf8_lossy(&text[290..])
                    );
                }
            }
        }
    }
}

#[test]
fn text_with_escapes_of_every_kind_is_looked_at_whole() {
    let mut dice = Dice(22);
    let mut text = Vec::new();
    while text.len() < 4 << 20 {
        text.extend(dice.words(60));
        text.push(b' ');
        text.extend(dice.words(8));
        text.extend(escaped(dice.roll(5), b'e'));
        text.extend(dice.words(8));
        text.push(b' ');
    }
    let outcome = content(None, &text);
    assert_eq!((outcome.stop, outcome.unscanned), (None, None));
    text.extend(token());
    assert_found(None, &text);
}

#[test]
fn ordinary_content_is_not_stopped() {
    let mut dice = Dice(6);
    let text = dice.words(40_000);
    let binary: Vec<u8> = (0..40_000)
        .map(|_| u8::try_from(dice.roll(256)).expect("a byte"))
        .collect();
    let greek = "Η ταχεία αλεπού, Съешь ещё этих мягких французских булок. ".repeat(300);
    for bytes in [
        text.clone(),
        binary.clone(),
        greek.into_bytes(),
        plain_base64(&binary),
        gzip(&text),
    ] {
        let outcome = content(None, &bytes);
        assert_eq!(outcome.stop, None);
        assert_eq!(outcome.warnings, []);
        assert_eq!(outcome.unscanned, None);
    }
}

#[test]
fn a_credential_may_go_to_its_issuer_and_to_none_like_it() {
    let rules = strict();
    let goes = |host: &str| {
        let destination = ScanDestination { host, port: 443 };
        let bytes = [&b"Bearer "[..], &token()].concat();
        let place = Place::Field("authorization".to_owned());
        rules
            .head(
                &destination,
                &[MessagePart {
                    place,
                    bytes: &bytes,
                }],
            )
            .block()
            .is_none()
    };
    assert!(goes("api.github.com"));
    for host in [
        "api.github.com.evil.test",
        "github.com.test",
        "xgithub.com",
        "gist.githubusercontent.test",
    ] {
        assert!(!goes(host), "{host}");
    }
}

#[test]
fn a_message_that_ends_leaves_unless_a_credential_has_begun() {
    let rules = strict();
    let mut open = stream(&rules, None);
    open.push(b"an ordinary message").expect("nothing found");
    assert_eq!(open.end_of_message(), Ok(19));
    // What has begun stays, however often the sender pauses.
    let token = token();
    open.push(&token[..20]).expect("nothing complete");
    assert_eq!(open.end_of_message(), Ok(19));
    assert_eq!(open.end_of_message(), Ok(19));
    open.push(&token[20..]).ok();
    assert!(matches!(open.end_of_message(), Err(Stop::Found(_))));
}

#[test]
fn a_beginning_that_came_to_nothing_leaves() {
    let rules = strict();
    let mut open = stream(&rules, None);
    open.push(b"ghp_short and then words")
        .expect("nothing found");
    assert_eq!(open.end_of_message(), Ok(24));
}

#[test]
fn a_sender_that_pauses_after_every_byte_gets_little_out() {
    let rules = strict();
    for detector in Detectors::shipped().iter() {
        if detector.anchor == Anchor::Scan || detector.tier != Tier::Strong {
            continue;
        }
        let secret = sample(&detector.samples[0], 5);
        let mut stream = stream(&rules, None);
        stream.push(b"words ").expect("nothing yet");
        let mut released = 0;
        let mut is_stopped = false;
        for byte in [secret.as_slice(), b" "].concat() {
            let outcome = stream.push(&[byte]).and_then(|_| stream.end_of_message());
            let Ok(upto) = outcome else {
                is_stopped = true;
                break;
            };
            released = upto;
        }
        is_stopped |= stream.finish().is_err();
        let leaked = usize::try_from(released)
            .expect("a length")
            .saturating_sub(6);
        assert!(is_stopped, "{}", detector.id);
        // Labels in quotes and headings are not what is to be kept.
        let is_little = leaked <= 56 && leaked < secret.len();
        assert!(is_little, "{}: {leaked} of {}", detector.id, secret.len());
    }
}
