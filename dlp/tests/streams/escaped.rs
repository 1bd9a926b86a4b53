//! Codings within codings that have to know of each other: ends of lines of one that the
//! next escapes, and bytes that were each made a character before they were escaped.

use std::sync::Arc;

use outgate_dlp::{
    Detectors, IssuerPattern, KnownBuilder, KnownNature, KnownValue, Ruleset, ScanSettings,
    SecretBytes, Tier, UnscannableAction,
};

use crate::archives::zip;
use crate::encode::{base32_capitals, deflate, gzip, plain_base64, zstd};
use crate::stage::{Dice, sample_of, send};

/// Something done to bytes, with its name.
type Change = (&'static str, fn(&[u8]) -> Vec<u8>);

/// Known, and like nothing else.
const VALUE: &[u8] = b"vtny3C4Dq8LmZ1-kP0w7Rx";

fn rules() -> Arc<Ruleset> {
    let mut builder = KnownBuilder::new([7; 32]);
    let about = KnownValue {
        label: "~/.netrc".to_owned(),
        others: Vec::new(),
        issuers: vec![IssuerPattern::parse("home.test").expect("a host")],
        tier: Tier::Strong,
        nature: KnownNature::Sent,
    };
    let added = builder.add(&SecretBytes::new(VALUE.to_vec()), about);
    added.expect("a value");
    // What looks compressed before it is decoded is damaged.
    let settings = ScanSettings {
        unscannable: UnscannableAction::Record,
        ..ScanSettings::default()
    };
    let rules = Ruleset::new(&Detectors::shipped(), &settings);
    let rules = rules.expect("the shipped detectors");
    Arc::new(rules.with_known(Arc::new(builder.build()), Vec::new()))
}

/// Credentials of several forms, and a known value.
fn secrets() -> Vec<Vec<u8>> {
    let forms = [
        "github-token",
        "npm-token",
        "anthropic-key",
        "aws-access-key-id",
    ];
    let samples = forms.iter().map(|id| sample_of(id, 11));
    samples.chain([VALUE.to_vec()]).collect()
}

fn replaced(text: &[u8], with: impl Fn(u8) -> Option<String>) -> Vec<u8> {
    let one = |byte: &u8| with(*byte).map_or_else(|| vec![*byte], String::into_bytes);
    text.iter().flat_map(one).collect()
}

/// Text in a document.
fn json(text: &[u8]) -> Vec<u8> {
    replaced(text, |byte| match byte {
        b'\n' => Some("\\n".to_owned()),
        b'\r' => Some("\\r".to_owned()),
        b'\t' => Some("\\t".to_owned()),
        b'"' | b'\\' => Some(format!("\\{}", char::from(byte))),
        _ => None,
    })
}

fn ends(text: &[u8], form: impl Fn(u8) -> String) -> Vec<u8> {
    replaced(text, |byte| {
        matches!(byte, b'\r' | b'\n').then(|| form(byte))
    })
}

/// What a line is put into.
const ESCAPES: &[Change] = &[
    ("as it is", <[u8]>::to_vec),
    ("json", json),
    ("json in json", |text| json(&json(text))),
    ("json three times", |text| json(&json(&json(text)))),
    ("json in hexadecimal", |text| {
        ends(text, |byte| format!("\\u{byte:04x}"))
    }),
    ("hexadecimal escapes", |text| {
        ends(text, |byte| format!("\\x{byte:02X}"))
    }),
    ("octal escapes", |text| {
        ends(text, |byte| format!("\\{byte:03o}"))
    }),
    ("percent", |text| ends(text, |byte| format!("%{byte:02X}"))),
    ("percent twice", |text| {
        ends(text, |byte| format!("%25{byte:02x}"))
    }),
    ("percent of json", |text| {
        replaced(&json(text), |byte| {
            (byte == b'\\').then(|| "%5C".to_owned())
        })
    }),
    ("references", |text| ends(text, |byte| format!("&#{byte};"))),
    ("hexadecimal references", |text| {
        ends(text, |byte| format!("&#x{byte:X};"))
    }),
    ("references in json", |text| {
        json(&ends(text, |byte| format!("&#{byte};")))
    }),
    ("a form", |text| {
        replaced(text, |byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => None,
            _ => Some(format!("%{byte:02X}")),
        })
    }),
    ("utf-16", |text| {
        text.iter().flat_map(|byte| [*byte, 0]).collect()
    }),
    ("utf-32", |text| {
        text.iter().flat_map(|byte| [0, 0, 0, *byte]).collect()
    }),
    ("utf-16 three times", |text| {
        text.iter()
            .flat_map(|byte| [&[*byte], &[0; 7][..]].concat())
            .collect()
    }),
    ("base64", plain_base64),
];

/// Lines of so many bytes, each joined to the next in some way.
fn lines(text: &[u8], bytes: usize, end: &str) -> Vec<u8> {
    text.chunks(bytes).collect::<Vec<_>>().join(end.as_bytes())
}

/// Quoted-printable with its soft line breaks, and what may be cut into lines.
const LINES: &[Change] = &[
    ("quoted-printable", |text| lines(text, 5, "=\r\n")),
    ("quoted-printable of unix", |text| lines(text, 7, "=\n")),
    ("quoted-printable of one break", |text| {
        lines(text, text.len() / 2 + 1, "=\r\n")
    }),
    ("base64", |text| lines(&plain_base64(text), 19, "\r\n")),
    ("base64 of unix", |text| {
        lines(&plain_base64(text), 16, "\n")
    }),
    ("base32", |text| lines(&base32_capitals(text), 24, "\n")),
    ("hex", |text| {
        let digits = replaced(text, |byte| Some(format!("{byte:02x}")));
        lines(&digits, 20, "\r\n")
    }),
];

#[test]
fn every_coding_with_ends_of_lines_is_seen_through_every_escape_of_them() {
    let rules = rules();
    let mut missed = Vec::new();
    for (place, secret) in secrets().iter().enumerate() {
        for (coding, code) in LINES {
            for (escape, change) in ESCAPES {
                let code = code(secret);
                let text = [b"Dear all, the token ", code.as_slice(), b"\r\n goes\r\n"];
                let text = change(&text.concat());
                let content = [b"{\"raw\": \"", text.as_slice(), b"\", \"to\": \"all\"}"].concat();
                for lengths in [&[1000][..], &[1], &[7]] {
                    if send(&rules, None, &content, lengths).found().is_none() {
                        missed.push(format!("{place}: {coding} in {escape} by {lengths:?}"));
                    }
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

/// The character of the same number for each byte.
fn characters(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// How bytes become text of which each is a character.
const TEXTS: &[Change] = &[
    ("utf-8", |bytes| characters(bytes).into_bytes()),
    ("utf-8 in json", |bytes| {
        replaced(characters(bytes).as_bytes(), |byte| match byte {
            0..0x20 | b'"' | b'\\' => Some(format!("\\u{byte:04x}")),
            _ => None,
        })
    }),
    ("json of ascii", |bytes| {
        replaced(bytes, |byte| match byte {
            b'\n' => Some("\\n".to_owned()),
            b'"' | b'\\' => Some(format!("\\{}", char::from(byte))),
            0..0x20 | 0x7f.. => Some(format!("\\u{byte:04x}")),
            _ => None,
        })
    }),
    ("json of every byte", |bytes| {
        replaced(bytes, |byte| Some(format!("\\u{byte:04X}")))
    }),
    ("percent", |bytes| {
        replaced(characters(bytes).as_bytes(), |byte| {
            Some(format!("%{byte:02X}"))
        })
    }),
    ("a form", |bytes| {
        replaced(characters(bytes).as_bytes(), |byte| {
            (!byte.is_ascii_alphanumeric()).then(|| format!("%{byte:02X}"))
        })
    }),
    ("references", |bytes| {
        replaced(bytes, |byte| {
            (!byte.is_ascii_alphanumeric()).then(|| format!("&#{byte};"))
        })
    }),
    ("utf-16", |bytes| {
        bytes.iter().flat_map(|byte| [*byte, 0]).collect()
    }),
    ("utf-16 of the other order", |bytes| {
        bytes.iter().flat_map(|byte| [0, *byte]).collect()
    }),
    ("utf-32", |bytes| {
        bytes.iter().flat_map(|byte| [*byte, 0, 0, 0]).collect()
    }),
    ("utf-32 of the other order", |bytes| {
        bytes.iter().flat_map(|byte| [0, 0, 0, *byte]).collect()
    }),
    ("utf-8 twice", |bytes| {
        characters(characters(bytes).as_bytes()).into_bytes()
    }),
    ("utf-8 in base64", |bytes| {
        plain_base64(characters(bytes).as_bytes())
    }),
    ("quoted-printable", |bytes| {
        replaced(bytes, |byte| match byte {
            b' '..=b'<' | b'>'..=b'~' => None,
            _ => Some(format!("={byte:02X}")),
        })
    }),
    ("small quoted-printable", |bytes| {
        replaced(bytes, |byte| match byte {
            b' '..=b'<' | b'>'..=b'~' => None,
            _ => Some(format!("={byte:02x}")),
        })
    }),
];

#[test]
fn compressed_data_leave_in_no_text_of_their_bytes() {
    let rules = rules();
    let mut dice = Dice(8);
    let formats: &[Change] = &[
        ("gzip", gzip),
        ("zlib", |bytes| {
            miniz_oxide::deflate::compress_to_vec_zlib(bytes, 6)
        }),
        ("fast zlib", |bytes| {
            miniz_oxide::deflate::compress_to_vec_zlib(bytes, 1)
        }),
        ("zstd", zstd),
        ("zip", zip),
        ("gzip in gzip", |bytes| gzip(&gzip(bytes))),
        ("deflate in gzip", |bytes| gzip(&deflate(bytes))),
    ];
    let mut missed = Vec::new();
    for (place, secret) in secrets().iter().enumerate() {
        for round in 0..6 {
            let length = dice.roll(400);
            let noise = characters(&dice.words(length));
            let text = [noise.as_bytes(), b" token ", secret, b"\n", &dice.bytes(30)].concat();
            for (format, pack) in formats {
                for (form, change) in TEXTS {
                    let data = change(&pack(&text));
                    let content = [b"{\"d\": \"", data.as_slice(), b"\", \"e\": 1}"].concat();
                    let lengths = dice.lengths(1460);
                    let outcome = send(&rules, None, &content, &lengths);
                    if outcome.found().is_none() {
                        let what = format!("{place} {round}: {format} as {form}");
                        missed.push(format!(
                            "{what}: {:?} {:?}",
                            outcome.stop, outcome.unscanned
                        ));
                    }
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

/// What people and programs put around each line: before the first, between, behind the last.
const AROUND: &[(&str, &str, &str)] = &[
    ("\n  ", "\n  ", "\n"),
    ("|\n ", "\n ", "\n"),
    ("|\n    ", "\n    ", "\n"),
    ("|\n        ", "\n        ", "\n"),
    ("\n\t", "\n\t", "\n"),
    ("\n\t\t", "\n\t\t", "\n"),
    ("\r\n    ", "\r\n    ", "\r\n"),
    (": ", "\n ", "\n"),
    ("", " ", "\n"),
    ("> ", "\n> ", "\n"),
    (">> ", "\r\n>> ", "\r\n"),
    ("# ", "\n# ", "\n"),
    ("// ", "\n// ", "\n"),
    (" * ", "\n * ", "\n"),
    ("    # ", "\n    # ", "\n"),
    ("'", "' +\n    '", "'"),
    ("\"", "\"\n  \"", "\""),
    ("\"", "\" \\\n  \"", "\";"),
    ("(\"", "\",\n  \"", "\")"),
    ("'", "' '", "'"),
    ("<d>\n   ", "\n   ", "\n</d>"),
    ("", "  \n  ", ""),
    ("", "\\\n   ", ""),
];

#[test]
fn lines_with_something_around_each_hide_nothing() {
    let rules = rules();
    let codes: &[Change] = &[
        ("base64", plain_base64),
        ("base64 of gzip", |bytes| plain_base64(&gzip(bytes))),
        ("base32", base32_capitals),
        ("hex", |bytes| {
            replaced(bytes, |byte| Some(format!("{byte:02x}")))
        }),
    ];
    let escapes: &[Change] = &[
        ("as it is", <[u8]>::to_vec),
        ("json", json),
        ("json in json", |text| json(&json(text))),
    ];
    let mut dice = Dice(12);
    let mut missed = Vec::new();
    for (place, secret) in secrets().iter().enumerate() {
        for (before, between, behind) in AROUND {
            for (code, coded) in codes {
                for (escape, change) in escapes {
                    let mut text = dice.bytes(30 + place * 40);
                    text.extend_from_slice(b"\nAuthorization: ");
                    text.extend_from_slice(secret);
                    text.push(b'\n');
                    text.extend(dice.words(100));
                    let columns = [76, 64, 60, 40][dice.roll(4)];
                    let text = lines(&coded(&text), columns, between);
                    let text = [b"data: ", before.as_bytes(), &text, behind.as_bytes()].concat();
                    let content = [b"key: \"", change(&text).as_slice(), b"\"\n"].concat();
                    if send(&rules, None, &content, &dice.lengths(1460))
                        .found()
                        .is_none()
                    {
                        missed.push(format!("{place}: {code} with {between:?}, {escape}"));
                    }
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

/// As in the documentation of a client.
#[test]
fn words_at_the_ends_of_lines_make_no_form() {
    let strict = crate::stage::strict();
    let text = b"GET /revoke?token=agabcdefddddafdd&callback=package.myCallback HTTP/1.1\n\
        Authorization: Basic czZCaGRSa3F0MzpnWDFmQmF0M2JW\n\n        and an error response\n";
    let text = [text.as_slice(), &Dice(1).words(600)].concat();
    let outcome = send(&strict, None, &text, &[]);
    assert_eq!(outcome.stop, None);
}

/// A letter or a digit as alphabets of mathematics have it, above all that 16 bits hold.
fn mathematical(byte: u8) -> char {
    let (first, base) = match byte {
        b'A'..=b'Z' => (0x1d400, b'A'),
        b'a'..=b'z' => (0x1d41a, b'a'),
        b'0'..=b'9' => (0x1d7ce, b'0'),
        other => return char::from(other),
    };
    char::from_u32(first + u32::from(byte - base)).expect("a letter")
}

#[test]
fn two_halves_of_a_character_are_one_before_it_is_folded() {
    let rules = rules();
    for value in [VALUE.to_vec(), sample_of("github-token", 3)] {
        let letters: String = value.iter().map(|byte| mathematical(*byte)).collect();
        let half = |half: &u16| format!("\\u{half:04x}");
        let halves: Vec<String> = letters
            .encode_utf16()
            .collect::<Vec<_>>()
            .iter()
            .map(half)
            .collect();
        let some: String = letters
            .chars()
            .zip(0..)
            .map(|(letter, number)| {
                let mut units = [0; 2];
                let units = letter.encode_utf16(&mut units);
                if number % 3 == 0 {
                    units.iter().map(half).collect::<Vec<_>>().concat()
                } else {
                    letter.to_string()
                }
            })
            .collect();
        for text in [
            halves.concat(),
            halves.concat().to_uppercase().replace("\\U", "\\u"),
            some,
        ] {
            let content = format!("{{\"a\":\"see {text} there\"}}").into_bytes();
            for lengths in [&[1][..], &[7], &[content.len()]] {
                let outcome = send(&rules, None, &content, lengths);
                assert!(outcome.found().is_some(), "{text} {lengths:?}: {outcome:?}");
            }
        }
    }
}
