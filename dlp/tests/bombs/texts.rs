//! Texts that look like beginnings of everything, or have too many pieces.

use outgate_dlp::{Detectors, sample};

use crate::Attack;
use crate::pack::gzip;

/// Bytes of most of them.
const BYTES: usize = 1 << 20;

/// Bytes of each text that is made of a detector.
const SHAPE_BYTES: usize = 256 << 10;

/// Unbroken bytes before a literal: more than any pattern looks back over.
const UNBROKEN: usize = 3000;

fn full(piece: &str) -> Vec<u8> {
    piece.repeat(BYTES / piece.len()).into_bytes()
}

pub(crate) fn all() -> Vec<Attack> {
    let bare = |(name, content)| Attack::bare(name, content);
    let mut attacks: Vec<Attack> = [
        ("beginnings of a web token", full("eyJ")),
        ("beginnings of a token", full("glpat-")),
        ("an end without a beginning", full("AZDO")),
        ("addresses without an end", full("postgres://a")),
        ("short runs", full("QUJDREVGR0hJSktMTU5PUFFS ")),
        ("hexadecimal", full("67687067 ")),
        (
            "lines of one letter",
            full(&format!("{} ", "a\nb\n".repeat(24))),
        ),
        (
            "letters far apart",
            full(&format!("{}{} ", "a\n".repeat(40), "\n".repeat(900))),
        ),
        ("base32", full("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ ")),
        (
            "numbers of all kinds",
            full("103 147 67 6768 01601202279 1601202279 "),
        ),
        (
            "a list of numbers that are digits",
            full("51, 48, 51, 49, "),
        ),
        (
            "lines of a dump",
            full("00000010: 3330 2033 3120 3332 2033 3320 3334 2033  30 31 32 33 34 3\n"),
        ),
        (
            "lines of a dump behind escapes",
            full("%41\\u0041 0000010 6768 705f 6161 6161 6161 6161  &#65;=41\n"),
        ),
    ]
    .map(bare)
    .into();
    attacks.extend(escapes().map(bare));
    attacks.extend(runs().map(bare));
    attacks.extend(pieces());
    attacks
}

fn escapes() -> [(&'static str, Vec<u8>); 4] {
    [
        (
            "percent of percent",
            [b"%".as_slice(), &full("25")].concat(),
        ),
        ("backslashes", full("\\")),
        ("references of references", full("&#38;")),
        ("escapes of all kinds", full("%41\\u0041&#65;=41")),
    ]
}

fn runs() -> [(&'static str, Vec<u8>); 7] {
    let digits = |bytes: &[u8]| {
        let pairs = bytes.iter().map(|byte| format!("{byte:02x}"));
        pairs.collect::<Vec<_>>().concat()
    };
    let thin = |piece: &str, blanks: usize| {
        let piece = format!("{piece}{:blanks$}", "");
        piece.repeat((16 << 20) / piece.len()).into_bytes()
    };
    // What follows depends on what stands before alone: nothing is lost by the cut.
    let deep = (0..64).fold(b"ghp_".to_vec(), |mut text, _| {
        text.truncate(BYTES);
        base64(&text)
    });
    [
        (
            "base64 of base64",
            full("Vm0wd2QyUXlVWGxWV0d4V1YwZDRWMVl3WkRSV01WbDNX"),
        ),
        ("base64 of base64, 64 deep", deep),
        (
            "hexadecimal of bombs",
            full(&digits(&gzip(&vec![0; BYTES]))),
        ),
        ("a thin dump without end", thin("1", 70)),
        ("digits among blanks", thin("6", 1)),
        ("bytes among blanks", thin("67", 20)),
        (
            "a thin dump without end behind escapes",
            [b"%41\\u0041=41&#65;".to_vec(), thin("1", 70)].concat(),
        ),
    ]
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let symbols = bytes.chunks(3).flat_map(|three| {
        let at = |place: usize| u32::from(three.get(place).copied().unwrap_or_default());
        let whole = at(0) << 16 | at(1) << 8 | at(2);
        let index = move |place: u32| usize::try_from(whole >> (18 - 6 * place) & 63);
        (0..4).map(move |place| index(place).expect("six bits"))
    });
    symbols
        .filter_map(|index| ALPHABET.get(index).copied())
        .collect()
}

/// Documents and forms of very many parts.
fn pieces() -> Vec<Attack> {
    let values = |value: &str| ["[", &value.repeat(1_000_000), "0]"].concat().into_bytes();
    let said = |name: &str, media: &'static str, content: Vec<u8>| Attack {
        media,
        ..Attack::bare(name, content)
    };
    let json = "application/json";
    let form = "multipart/form-data; boundary=x";
    let parts = |part: &str| [&part.repeat(1_000_000), "--x--\r\n"].concat().into_bytes();
    vec![
        said("JSON of 1,000,000 values", json, values("\"ab\",")),
        said("JSON of 1,000,000 depths", json, b"[".repeat(1_000_000)),
        said(
            "JSON of 1,000,000 members",
            json,
            b"{\"a\":".repeat(1_000_000),
        ),
        said("a form of 1,000,000 parts", form, parts("--x\r\n\r\na\r\n")),
        said(
            "a form of 1,000,000 files",
            form,
            parts("--x\r\nContent-Disposition: form-data; filename=a\r\n\r\n\r\n"),
        ),
        said("a form of boundaries", form, b"\r\n--x".repeat(250_000)),
        said(
            "1,000,000 fields of a form",
            "application/x-www-form-urlencoded",
            b"a=b&".repeat(1_000_000),
        ),
    ]
}

/// What each detector would look back and forth over: its literal alone, its match
/// without an end, and its literal behind what may stand before it.
pub(crate) fn of_detectors() -> Vec<Attack> {
    let detectors = Detectors::shipped();
    let literal = |text: &str| text.as_bytes().to_vec();
    let mut attacks = Vec::new();
    for detector in detectors.iter() {
        let Some(first) = detector.literals.first() else {
            continue;
        };
        let template = detector.samples.first().expect("a sample");
        let made = sample(template, 1);
        let half = made.get(..made.len() * 2 / 3).unwrap_or_default().to_vec();
        let tail = made.get(made.len() / 2..).unwrap_or_default();
        let before = tail.iter().copied().cycle().take(UNBROKEN).collect();
        let shapes = [
            literal(first),
            half,
            [before, literal(first)].concat(),
            detector
                .literals
                .iter()
                .flat_map(|text| literal(text))
                .collect(),
        ];
        let texts = shapes.map(|shape| shape.repeat(SHAPE_BYTES / shape.len().max(1)));
        attacks.push(Attack::bare(&detector.id, texts.join(&b"\n "[..])));
    }
    attacks
}
