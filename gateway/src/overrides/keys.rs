//! Keys for a method in forms, as their bytes come: `_method`, whatever stands behind it,
//! and every other key with the word in it that has a method for its value. Keeps a
//! bounded piece; changes nothing.

use outgate_policy::QueryKey;

use super::asks::{Asks, Judge, KEY, Keys, Refused, Sent, is_method};
use super::pairs::{
    ends_pair, from_next_key, may_be_method, may_hold_key, pair_of, spells, text, without_blanks,
};

/// Bytes of one pair or one line of a form that are looked at, at most.
const PIECE_BYTES_MAX: usize = 4096;

/// Finds the keys in bytes as they come.
#[derive(Debug)]
pub(super) struct KeyFinder {
    keys: Keys,
    sent: Sent,
    /// The pair, or the line, that is not over.
    piece: Vec<u8>,
    /// The rest of it says nothing.
    skips: bool,
}

/// Which key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    /// Another one with the word in it.
    Other,
    /// One of those that mean nothing else.
    Tunnel,
    /// `_method`.
    Own,
}

impl Which {
    /// What its value asks for.
    pub(super) fn judge(self, value: &str, sent: Sent, judge: Judge<'_>) -> Result<(), Refused> {
        let value = value.trim_matches(|sign: char| sign.is_whitespace() || sign.is_control());
        // A part `_charset_` may say that the others are in UTF-16 (RFC 7578 4.6).
        let value = &value.replace('\0', "");
        match self {
            Self::Own => own(value, sent, judge),
            Self::Other => other(value, judge),
            Self::Tunnel => tunnelled(value, judge),
        }
    }
}

/// Which key a part's name is, in quotes or without.
pub(super) fn which(name: &str, keys: &Keys) -> Option<Which> {
    if !may_hold_key(name.as_bytes()) {
        return None;
    }
    let name = name.replace('\\', "");
    let is_border =
        |sign: char| matches!(sign, '"' | '\'' | ';' | '=' | ',') || sign.is_whitespace();
    let words = name.split(is_border).filter(|word| !word.is_empty());
    let key_of = |word: &str| match word {
        _ if keys.own.may_be(word) => Some(Which::Own),
        _ if keys.tunnels.may_be(word) => Some(Which::Tunnel),
        _ => keys.others.may_be(word).then_some(Which::Other),
    };
    words.filter_map(key_of).max()
}

impl KeyFinder {
    pub(super) fn new(sent: Sent) -> Self {
        Self {
            keys: Keys::new(),
            sent,
            piece: Vec::new(),
            skips: false,
        }
    }

    pub(super) fn read(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        while !bytes.is_empty() {
            if self.piece.is_empty() && !self.skips {
                bytes = from_next_key(bytes);
            }
            let end = bytes.iter().position(|byte| ends_pair(*byte));
            let (content, rest) = bytes
                .split_at_checked(end.unwrap_or(bytes.len()))
                .unwrap_or_default();
            // However many there are, they are no part of a key.
            let content = if self.piece.is_empty() {
                without_blanks(content)
            } else {
                content
            };
            if !self.skips {
                let room = PIECE_BYTES_MAX.saturating_sub(self.piece.len());
                self.piece
                    .extend_from_slice(content.get(..room).unwrap_or(content));
                if content.len() > room {
                    self.too_long(judge)?;
                }
            }
            match rest.first() {
                Some(end) if self.is_to_come(*end) => self.comes_later(),
                Some(_) => self.piece_ends(judge)?,
                None => {}
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        match self.sent {
            Sent::AtTheEnd => Ok(()),
            Sent::AsItComes => self.goes_on(judge),
        }
    }

    pub(super) fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        self.piece_ends(judge)
    }

    /// Whether the value of a key may stand behind the end of a line: to some that ends a
    /// pair, and others leave away what is blank before a value.
    fn is_to_come(&self, end: u8) -> bool {
        matches!(end, b'\r' | b'\n')
            && !self.skips
            && pair_of(&self.piece).is_some_and(|(key, _)| may_hold_key(key))
            && self.lacks_value(&text(&self.piece))
    }

    /// Whether a pair has one of the keys, and nothing but blanks for its value.
    fn lacks_value(&self, pair: &str) -> bool {
        let more = format!("{pair}x");
        let lacks = |key: &QueryKey| key.values(pair).is_empty() && !key.values(&more).is_empty();
        lacks(&self.keys.own) || lacks(&self.keys.others)
    }

    /// The end of a line before such a value, of which one is enough.
    fn comes_later(&mut self) {
        if self.piece.last() != Some(&b'\n') && self.piece.len() < PIECE_BYTES_MAX {
            self.piece.push(b'\n');
        }
    }

    /// A pair is over.
    fn piece_ends(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        let skipped = std::mem::take(&mut self.skips);
        let says_nothing = !pair_of(&self.piece).is_some_and(|(key, value)| {
            spells(key, b"method")
                || (spells(key, b"verb") && may_be_method(value))
                || value.contains(&b'\n')
        });
        if skipped || says_nothing {
            self.piece.clear();
            return Ok(());
        }
        let piece = text(&self.piece);
        self.piece.clear();
        self.pair(&piece, judge)?;
        match piece.rsplit_once('\n') {
            Some((_, last)) => self.pair(last, judge),
            None => Ok(()),
        }
    }

    /// A pair of a form, as every reader may have it.
    fn pair(&self, pair: &str, judge: Judge<'_>) -> Result<(), Refused> {
        let values = self.keys.own.values(pair);
        let sent = self.sent;
        values
            .iter()
            .try_for_each(|value| own(value, sent, judge))?;
        let others = self.keys.others.values(pair);
        others.iter().try_for_each(|value| other(value, judge))?;
        let tunnels = self.keys.tunnels.values(pair);
        tunnels.iter().try_for_each(|value| tunnelled(value, judge))
    }

    /// What goes on now must not be the beginning of a value of the key that has no other
    /// meaning. A method behind another key is judged where it ends, before that is sent.
    fn goes_on(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        if self.skips || !may_hold_key(&self.piece) {
            return Ok(());
        }
        if self.keys.own.values(&text(&self.piece)).is_empty() {
            Ok(())
        } else {
            judge(Asks::UnreadMethod("a value to come"))
        }
    }

    /// A pair is longer than what is looked at.
    fn too_long(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        self.skips = true;
        let piece = text(&self.piece);
        let may_be = match piece.split_once('=') {
            // Behind so many blanks a value may still come.
            Some(_) => !self.keys.own.values(&piece).is_empty() || self.lacks_value(&piece),
            None => self.keys.own.may_begin(&piece) || self.keys.others.may_begin(&piece),
        };
        if may_be {
            judge(Asks::UnreadMethod("a value without end"))
        } else {
            Ok(())
        }
    }
}

/// Whether a line of a part's head says that the part is in a coding that changes it
/// (RFC 2045 6), which some undo.
pub(super) fn is_coded(line: &str) -> bool {
    let Some((name, coding)) = line.split_once(':') else {
        return false;
    };
    let coding = coding.trim();
    let is_plain = |plain: &&str| coding.eq_ignore_ascii_case(plain);
    name.trim()
        .eq_ignore_ascii_case("content-transfer-encoding")
        && !["7bit", "8bit", "binary"].iter().any(is_plain)
}

/// The value of the key that has no other meaning.
fn own(value: &str, sent: Sent, judge: Judge<'_>) -> Result<(), Refused> {
    match sent {
        _ if value.is_empty() => Ok(()),
        Sent::AtTheEnd => judge(Asks::Method { key: KEY, value }),
        // Some of it may be on its way.
        Sent::AsItComes => judge(Asks::UnreadMethod("a value on its way")),
    }
}

/// The value of a key that may have another meaning.
fn other(value: &str, judge: Judge<'_>) -> Result<(), Refused> {
    let key = "a key for the method";
    if is_method(value) {
        judge(Asks::Method { key, value })
    } else {
        judge(Asks::Named { key, value })
    }
}

/// The value of a key that has no other meaning than a method, whichever that is.
fn tunnelled(value: &str, judge: Judge<'_>) -> Result<(), Refused> {
    let key = "a key for the method";
    judge(Asks::Tunnelled { key, value })
}

#[cfg(test)]
mod tests {
    use super::super::asks::is_known;
    use super::*;

    /// What comes of a form where PUT and POST are allowed.
    fn verdict(sent: Sent, pieces: &[&[u8]]) -> Result<(), Refused> {
        let mut judge = |asks: Asks<'_>| match asks {
            Asks::Method {
                value: "put" | "PUT" | "post",
                ..
            }
            | Asks::Named { .. } => Ok(()),
            Asks::Tunnelled { value, .. }
                if !is_known(value) || value.eq_ignore_ascii_case("put") =>
            {
                Ok(())
            }
            _ => Err(Refused),
        };
        let mut reader = KeyFinder::new(sent);
        for piece in pieces {
            reader.read(piece, &mut judge)?;
        }
        reader.finish(&mut judge)
    }

    /// Whether a form may be sent that was read whole, and whether one that goes on as it
    /// comes, in pieces of every size.
    fn check(form: &str, (held, sent): (bool, bool)) {
        let bytes = form.as_bytes();
        for size in [1, 2, 7, 64, bytes.len()] {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            let place = format!("{form} in pieces of {size}");
            let found = verdict(Sent::AtTheEnd, &pieces).is_ok();
            assert_eq!(found, held, "held: {place}");
            let found = verdict(Sent::AsItComes, &pieces).is_ok();
            assert_eq!(found, sent, "as it comes: {place}");
        }
    }

    const PAIRS: [(&str, bool, bool); 22] = [
        ("a=1&b=2", true, true),
        ("_method=put&a=1", true, false),
        ("a=1&_method=delete", false, false),
        ("a=1&_METHOD=DELETE&b=2", false, false),
        ("%5fmethod=delete", false, false),
        ("a&b=&c&=_method=delete&d", false, false),
        ("a=delete&_method", true, true),
        (".method=delete", false, false),
        ("a=1;_method=delete", false, false),
        ("_method=&a=1", true, true),
        // Other keys count where their value is a method.
        ("x-http-method-override=DELETE", false, false),
        ("a=1&X-HTTP-Method-Override=delete", false, false),
        ("x_http_method=put", true, true),
        ("_HttpMethod=PATCH&a=1", false, false),
        ("x-tunneled-method=%50ATCH", false, false),
        ("method=DELETE", false, false),
        ("method=MERGE", true, true),
        ("a=1&x-http-method=merge", false, false),
        ("verb=delete", false, false),
        ("payment_method=card&method=search", true, true),
        ("payment_method=deleted", true, true),
        ("{\"_method\":\"delete\"}", true, true),
    ];

    #[test]
    fn a_form_is_judged_by_its_key_however_it_comes() {
        for (form, held, sent) in PAIRS {
            check(form, (held, sent));
        }
        let long = format!("a={}&_method=delete", "x".repeat(3 * PIECE_BYTES_MAX));
        let blank = format!("{}_method=delete", "+".repeat(2 * PIECE_BYTES_MAX));
        check(&long, (false, false));
        for end in ["\n", "\r\n", " "] {
            for count in [1, 2, 5000] {
                let ends = end.repeat(count);
                let own = format!("a=1&_method={ends}DELETE");
                check(&own, (false, false));
                let other = format!("verb={ends}DELETE");
                check(&other, (false, false));
                let coded = format!("_method=%20{ends}DELETE");
                check(&coded, (false, false));
                let both = format!("verb={ends}_method=DELETE");
                if ends.contains('\n') {
                    check(&both, (false, false));
                }
            }
        }
        check("verb=\r\na=1&method=\nb", (true, true));
        check(&blank, (false, false));
        check(&"\0".repeat(9000), (true, true));
        check(&"x".repeat(9000), (true, true));
    }

    /// What forms are made of, and what looks like it.
    const WORDS: [&str; 15] = [
        "_method",
        "%5fMe",
        "thod",
        "verb",
        "=",
        "=",
        "delete",
        "put",
        "&",
        ";",
        "?",
        "a",
        "+",
        "%",
        "0123456789abcdef",
    ];

    proptest::proptest! {
        #[test]
        fn what_is_passed_over_says_nothing(
            words in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..24),
            at in 0..200_usize,
        ) {
            let form = words.concat();
            let whole = verdict(Sent::AtTheEnd, &[form.as_bytes()]);
            let (one, two) = form.as_bytes().split_at(at.min(form.len()));
            let bytes: Vec<&[u8]> = form.as_bytes().chunks(1).collect();
            let keys = Keys::new();
            let mut pairs = form.split(|c| "&;?\r\n".contains(c));
            let is_held = pairs.all(|pair| {
                let pair = pair.trim_start_matches(['+', ' ']);
                let own = keys.own.values(pair);
                let others = keys.others.values(pair);
                own.iter().all(|value| value.eq_ignore_ascii_case("put"))
                    && others.iter().all(|value| !value.eq_ignore_ascii_case("delete"))
            });
            assert_eq!(whole.is_ok(), is_held, "{form}");
            assert_eq!(verdict(Sent::AtTheEnd, &[one, two]), whole, "{form}");
            assert_eq!(verdict(Sent::AtTheEnd, &bytes), whole, "{form}");
        }

        #[test]
        fn what_is_kept_is_bounded(pieces in proptest::collection::vec(
            proptest::collection::vec(proptest::prelude::any::<u8>(), 0..3000), 0..6,
        )) {
            let mut reader = KeyFinder::new(Sent::AsItComes);
            for piece in &pieces {
                if reader.read(piece, &mut |_| Ok(())).is_err() {
                    break;
                }
                assert!(reader.piece.len() <= PIECE_BYTES_MAX);
            }
        }
    }
}
