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

/// How a form is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// `application/x-www-form-urlencoded`.
    Pairs,
    /// `multipart/form-data` (RFC 7578).
    Parts,
}

/// Finds the keys in bytes as they come.
#[derive(Debug)]
pub(super) struct Reader {
    keys: Keys,
    written: Written,
    sent: Sent,
    /// The pair, or the line, that is not over.
    piece: Vec<u8>,
    /// The rest of it says nothing.
    skips: bool,
    /// What was said of a part in the lines before.
    part: Part,
    /// What ended the line before.
    end: LineEnd,
    head: Head,
}

/// Whether the line before belongs to the head of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    Outside,
    Within,
    /// Within one that says that the part is coded.
    Coded,
}

/// What ends a line of a multipart form: some take a lone CR for an end, others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    /// CR, behind which LF is no further line.
    Cr,
    Lf,
}

/// Where in a part of a multipart form we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Any,
    /// Its name is a key: what stands behind the empty line is the value.
    Named(Which),
    Value(Which),
}

/// Which key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// `_method`.
    Own,
    /// Another one with the word in it.
    Other,
    /// One of those that mean nothing else.
    Tunnel,
}

impl Reader {
    pub(super) fn new(written: Written, sent: Sent) -> Self {
        Self {
            keys: Keys::new(),
            written,
            sent,
            piece: Vec::new(),
            skips: false,
            part: Part::Any,
            end: LineEnd::Lf,
            head: Head::Outside,
        }
    }

    pub(super) fn read(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        let written = self.written;
        let end_of = |bytes: &[u8]| match written {
            Written::Pairs => bytes.iter().position(|byte| ends_pair(*byte)),
            Written::Parts => memchr::memchr2(b'\r', b'\n', bytes),
        };
        while !bytes.is_empty() {
            if self.written == Written::Pairs && self.piece.is_empty() && !self.skips {
                bytes = from_next_key(bytes);
            }
            if self.written == Written::Parts
                && self.end == LineEnd::Cr
                && self.piece.is_empty()
                && let Some(rest) = bytes.strip_prefix(b"\n")
            {
                self.end = LineEnd::Lf;
                bytes = rest;
                continue;
            }
            let end = end_of(bytes);
            let (content, rest) = bytes
                .split_at_checked(end.unwrap_or(bytes.len()))
                .unwrap_or_default();
            let content = match self.written {
                // However many there are, they are no part of a key.
                Written::Pairs if self.piece.is_empty() => without_blanks(content),
                Written::Pairs | Written::Parts => content,
            };
            if !self.skips {
                let room = PIECE_BYTES_MAX.saturating_sub(self.piece.len());
                self.piece
                    .extend_from_slice(content.get(..room).unwrap_or(content));
                if content.len() > room {
                    self.too_long(judge)?;
                }
            }
            if let Some(end) = rest.first() {
                if self.is_to_come(*end) {
                    self.comes_later();
                } else {
                    self.piece_ends(judge)?;
                }
                self.end = match end {
                    b'\r' => LineEnd::Cr,
                    _ => LineEnd::Lf,
                };
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
        self.written == Written::Pairs
            && matches!(end, b'\r' | b'\n')
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

    /// A pair or a line is over.
    fn piece_ends(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        let skipped = std::mem::take(&mut self.skips);
        let says_nothing = match (self.written, self.part) {
            (Written::Pairs, _) => !pair_of(&self.piece).is_some_and(|(key, value)| {
                spells(key, b"method")
                    || (spells(key, b"verb") && may_be_method(value))
                    || value.contains(&b'\n')
            }),
            // Outside of a head, a line that begins none changes nothing.
            (Written::Parts, Part::Any) => {
                self.head == Head::Outside && !may_begin_head(&self.piece)
            }
            (Written::Parts, Part::Named(_) | Part::Value(_)) => false,
        };
        if skipped || says_nothing {
            self.piece.clear();
            return Ok(());
        }
        let piece = text(&self.piece);
        self.piece.clear();
        match (self.written, self.part) {
            (Written::Pairs, _) => {
                self.pair(&piece, judge)?;
                match piece.rsplit_once('\n') {
                    Some((_, last)) => self.pair(last, judge),
                    None => Ok(()),
                }
            }
            // The value goes on up to the border, and many leave away what is blank before it.
            (Written::Parts, Part::Value(_)) if is_blank(&piece) => Ok(()),
            (Written::Parts, Part::Value(_)) if piece.starts_with("--") => {
                self.part = Part::Any;
                self.line(&piece, judge)
            }
            (Written::Parts, Part::Value(which)) => {
                self.part = Part::Any;
                match which {
                    Which::Own => self.own(trimmed(&piece), judge),
                    Which::Other => other(trimmed(&piece), judge),
                    Which::Tunnel => tunnelled(trimmed(&piece), judge),
                }
            }
            (Written::Parts, Part::Named(which)) if piece.trim().is_empty() => {
                self.head_ends(which, judge)
            }
            (Written::Parts, Part::Any | Part::Named(_)) => self.line(&piece, judge),
        }
    }

    /// A pair of a form, as every reader may have it.
    fn pair(&self, pair: &str, judge: Judge<'_>) -> Result<(), Refused> {
        let own = self.keys.own.values(pair);
        own.iter().try_for_each(|value| self.own(value, judge))?;
        let others = self.keys.others.values(pair);
        others.iter().try_for_each(|value| other(value, judge))?;
        let tunnels = self.keys.tunnels.values(pair);
        tunnels.iter().try_for_each(|value| tunnelled(value, judge))
    }

    /// What goes on now must not be the beginning of a value of the key that has no other
    /// meaning. A method behind another key is judged where it ends, before that is sent.
    fn goes_on(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        let is_in_part = matches!(self.part, Part::Named(Which::Own) | Part::Value(_));
        if !is_in_part && !may_hold_key(&self.piece) {
            return Ok(());
        }
        let piece = text(&self.piece);
        let is_begun = match (self.written, self.part) {
            (Written::Pairs, _) => !self.skips && !self.keys.own.values(&piece).is_empty(),
            (Written::Parts, Part::Any | Part::Named(Which::Other | Which::Tunnel)) => {
                self.named(&piece) == Some(Which::Own)
            }
            (Written::Parts, Part::Named(Which::Own) | Part::Value(Which::Own)) => true,
            (Written::Parts, Part::Value(Which::Other | Which::Tunnel)) => false,
        };
        if is_begun {
            judge(Asks::Unread("a value to come"))
        } else {
            Ok(())
        }
    }

    /// A piece is longer than what is looked at.
    fn too_long(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        self.skips = true;
        let piece = text(&self.piece);
        let may_be = match (self.written, self.part) {
            (Written::Pairs, _) => match piece.split_once('=') {
                // Behind so many blanks a value may still come.
                Some(_) => !self.keys.own.values(&piece).is_empty() || self.lacks_value(&piece),
                None => self.keys.own.may_begin(&piece) || self.keys.others.may_begin(&piece),
            },
            (Written::Parts, Part::Value(which)) => which == Which::Own,
            (Written::Parts, _) => self.named(&piece).is_some(),
        };
        if may_be {
            judge(Asks::Unread("a value without end"))
        } else {
            Ok(())
        }
    }

    /// Whether it is a line of a part's head, or what goes on with one.
    fn is_of_head(&self, line: &str) -> bool {
        let begin = line.trim_start().get(.."content".len());
        let begins = begin.is_some_and(|begin| begin.eq_ignore_ascii_case("content"));
        // A folded line may hold the name alone (RFC 5322 2.2.3), and one behind a lone
        // CR is the same line to many.
        let goes_on = self.head != Head::Outside && self.end == LineEnd::Cr;
        begins || goes_on || line.starts_with([' ', '\t'])
    }

    /// A line that is neither the end of a named part's head nor a value.
    fn line(&mut self, line: &str, judge: Judge<'_>) -> Result<(), Refused> {
        let (is_blank, named) = (line.trim().is_empty(), self.named(line));
        let is_of_head = self.is_of_head(line);
        self.head = match self.head {
            _ if is_blank && self.end == LineEnd::Lf => Head::Outside,
            Head::Outside | Head::Within if is_coded(line) => Head::Coded,
            Head::Outside if is_of_head => Head::Within,
            same => same,
        };
        if is_of_head && is_spread(line) {
            return judge(Asks::Unread("a name that is written in several ways"));
        }
        self.part = match (self.part, named) {
            (_, Some(Which::Own)) => Part::Named(Which::Own),
            (Part::Any, Some(which)) => Part::Named(which),
            (part, _) => part,
        };
        match self.part {
            Part::Named(_) if self.end == LineEnd::Cr => {
                judge(Asks::Unread("a line that ends for some"))
            }
            Part::Any | Part::Named(_) | Part::Value(_) => Ok(()),
        }
    }

    /// The empty line behind the head of a part whose name is a key.
    fn head_ends(&mut self, which: Which, judge: Judge<'_>) -> Result<(), Refused> {
        self.part = Part::Value(which);
        if std::mem::replace(&mut self.head, Head::Outside) == Head::Coded {
            return judge(Asks::Unread("a value in a coding that is not read"));
        }
        if self.end == LineEnd::Cr {
            return judge(Asks::Unread("a line that ends for some"));
        }
        Ok(())
    }

    fn own(&self, value: &str, judge: Judge<'_>) -> Result<(), Refused> {
        match self.sent {
            _ if value.is_empty() => Ok(()),
            Sent::AtTheEnd => judge(Asks::Method { key: KEY, value }),
            // Some of it may be on its way.
            Sent::AsItComes => judge(Asks::Unread("a value on its way")),
        }
    }

    /// Which key a line of a part's head names: in quotes or without, coded as
    /// browsers and RFC 8187 have it.
    fn named(&self, line: &str) -> Option<Which> {
        if !may_hold_key(line.as_bytes()) {
            return None;
        }
        let line = line.replace('\\', "");
        let is_head = self.is_of_head(&line);
        let is_border = |character: char| {
            matches!(character, '"' | '\'' | ';' | '=' | ',') || character.is_whitespace()
        };
        let words = || line.split(is_border).filter(|word| !word.is_empty());
        if !is_head {
            None
        } else if words().any(|word| self.keys.own.may_be(word)) {
            Some(Which::Own)
        } else if words().any(|word| self.keys.tunnels.may_be(word)) {
            Some(Which::Tunnel)
        } else {
            let mut words = words();
            words
                .any(|word| self.keys.others.may_be(word))
                .then_some(Which::Other)
        }
    }
}

/// A value without what some leave away around it.
fn trimmed(value: &str) -> &str {
    value.trim_matches(|sign: char| sign.is_whitespace() || sign.is_control())
}

fn is_blank(line: &str) -> bool {
    trimmed(line).is_empty()
}

/// Whether a line may be one of a part's head, or what goes on with one.
fn may_begin_head(line: &[u8]) -> bool {
    let begin = line.iter().position(|byte| *byte > b' ');
    let begins = line.get(begin.unwrap_or(line.len())..).unwrap_or_default();
    let word = begins.get(.."content".len());
    line.starts_with(b" ")
        || line.starts_with(b"\t")
        || word.is_some_and(|word| word.eq_ignore_ascii_case(b"content"))
}

/// Whether a line of a part's head says that the part is in a coding that changes it
/// (RFC 2045 6), which some undo.
fn is_coded(line: &str) -> bool {
    let Some((name, coding)) = line.split_once(':') else {
        return false;
    };
    let coding = coding.trim();
    let is_plain = |plain: &&str| coding.eq_ignore_ascii_case(plain);
    name.trim()
        .eq_ignore_ascii_case("content-transfer-encoding")
        && !["7bit", "8bit", "binary"].iter().any(is_plain)
}

/// Whether a line of a part's head has a name in sections, or in a character set that is
/// not read (RFC 2231 3 and 4): RFC 7578 4.2 knows neither, and some put them together.
fn is_spread(line: &str) -> bool {
    let mut line = line.to_ascii_lowercase();
    line.retain(|character| !character.is_whitespace() && character != '\\');
    let mut places = line.match_indices("name*");
    places.any(|(at, sign)| {
        let is_file = line
            .get(..at)
            .is_some_and(|before| before.ends_with("file"));
        let rest = line.get(at + sign.len()..).unwrap_or_default();
        let set = rest.strip_prefix('=').unwrap_or_default();
        let set = set
            .trim_start_matches('"')
            .split('\'')
            .next()
            .unwrap_or_default();
        let sets = ["", "utf-8", "us-ascii", "ascii", "iso-8859-1"];
        !(is_file || (rest.starts_with('=') && sets.contains(&set)))
    })
}

/// The value of a key that may have another meaning.
fn other(value: &str, judge: Judge<'_>) -> Result<(), Refused> {
    if !is_method(value) {
        return Ok(());
    }
    let key = "a key for the method";
    judge(Asks::Method { key, value })
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
    fn verdict(written: Written, sent: Sent, pieces: &[&[u8]]) -> Result<(), Refused> {
        let mut judge = |asks: Asks<'_>| match asks {
            Asks::Method {
                value: "put" | "PUT" | "post",
                ..
            } => Ok(()),
            Asks::Tunnelled { value, .. }
                if !is_known(value) || value.eq_ignore_ascii_case("put") =>
            {
                Ok(())
            }
            _ => Err(Refused),
        };
        let mut reader = Reader::new(written, sent);
        for piece in pieces {
            reader.read(piece, &mut judge)?;
        }
        reader.finish(&mut judge)
    }

    const PART: &str = "--b\r\nContent-Disposition: form-data; name=NAME\r\n\r\nVALUE\r\n--b--\r\n";

    /// Whether a form may be sent that was read whole, and whether one that goes on as it
    /// comes, in pieces of every size.
    fn check(written: Written, form: &str, (held, sent): (bool, bool)) {
        let bytes = form.as_bytes();
        for size in [1, 2, 7, 64, bytes.len()] {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            let place = format!("{form} in pieces of {size}");
            let found = verdict(written, Sent::AtTheEnd, &pieces).is_ok();
            assert_eq!(found, held, "held: {place}");
            let found = verdict(written, Sent::AsItComes, &pieces).is_ok();
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
            check(Written::Pairs, form, (held, sent));
        }
        let long = format!("a={}&_method=delete", "x".repeat(3 * PIECE_BYTES_MAX));
        let blank = format!("{}_method=delete", "+".repeat(2 * PIECE_BYTES_MAX));
        check(Written::Pairs, &long, (false, false));
        for end in ["\n", "\r\n", " "] {
            for count in [1, 2, 5000] {
                let ends = end.repeat(count);
                let own = format!("a=1&_method={ends}DELETE");
                check(Written::Pairs, &own, (false, false));
                let other = format!("verb={ends}DELETE");
                check(Written::Pairs, &other, (false, false));
                let coded = format!("_method=%20{ends}DELETE");
                check(Written::Pairs, &coded, (false, false));
                let both = format!("verb={ends}_method=DELETE");
                if ends.contains('\n') {
                    check(Written::Pairs, &both, (false, false));
                }
            }
        }
        check(Written::Pairs, "verb=\r\na=1&method=\nb", (true, true));
        check(Written::Pairs, &blank, (false, false));
        check(Written::Pairs, &"\0".repeat(9000), (true, true));
        check(Written::Pairs, &"x".repeat(9000), (true, true));
    }

    /// What stands behind `name=` in a part's head, and the part's value.
    const PARTS: [(&str, &str, bool, bool); 24] = [
        ("\"a\"", "delete", true, true),
        ("\"_method\"", "put", true, false),
        ("\"_method\"", "delete", false, false),
        ("_method", "delete", false, false),
        ("\"_Met\\hod\"", "delete", false, false),
        ("a; name*=utf-8''%5Fmethod", "delete", false, false),
        ("\r\n \"_method\"", "delete", false, false),
        // Names in sections, and in what nobody reads.
        ("a; name*0=\"_met\"; name*1=\"hod\"", "delete", false, false),
        (
            "a;\r\n name*0=\"_met\";\r\n name*1=\"hod\"",
            "delete",
            false,
            false,
        ),
        (
            "a; NAME*1*=hod; name*0*=utf-8''%5Fmet",
            "delete",
            false,
            false,
        ),
        ("a; name*=ibm037''%6D%94", "delete", false, false),
        ("a; name *= utf-7''+AF8-", "delete", false, false),
        ("a; name*=utf-8''b", "delete", true, true),
        ("a; filename*0=b; filename*1=c", "delete", true, true),
        ("a; filename*=utf-16''b", "delete", true, true),
        // Lines that end otherwise.
        ("\"verb\"\r\rX", "delete", false, false),
        ("a;x=y\r\rname=\"_method\"", "delete", false, false),
        ("a;\rname=\"_method\"", "delete", false, false),
        ("a", "delete\rname=_method", true, true),
        ("\"a\"", "_method=delete", true, true),
        ("\"X-HTTP-Method-Override\"", "DELETE", false, false),
        ("\"method\"", "put", true, true),
        ("\"method\"", "merge", true, true),
        ("\"http_method\"", "merge", false, false),
    ];

    fn part(name: &str, value: &str) -> String {
        PART.replace("NAME", name).replace("VALUE", value)
    }

    #[test]
    fn a_part_is_judged_by_its_name_however_it_is_written() {
        for (name, value, held, sent) in PARTS {
            check(Written::Parts, &part(name, value), (held, sent));
        }
        check(
            Written::Parts,
            &part("\"method\"", "standard"),
            (true, true),
        );
        for (name, value, end, passes) in [
            ("\"_method\"", "delete", "\r", false),
            ("\"_method\"", "delete", "\n", false),
            ("\"verb\"", "delete", "\r", false),
            ("\"verb\"", "x", "\r", false),
            ("a", "put", "\r", true),
        ] {
            let part = part(name, value).replace("\r\n", end);
            check(Written::Parts, &part, (passes, passes));
        }
        for (name, coding, passes) in [
            ("_method", "base64", false),
            ("verb", "base64", false),
            ("file", "base64", true),
            ("verb", "8bit", true),
        ] {
            let head = format!("Content-Transfer-Encoding: {coding}\r\nContent");
            let part = part(name, "REVMRVRF").replacen("Content", &head, 1);
            check(Written::Parts, &part, (passes, passes));
        }
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
            let whole = verdict(Written::Pairs, Sent::AtTheEnd, &[form.as_bytes()]);
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
            assert_eq!(verdict(Written::Pairs, Sent::AtTheEnd, &[one, two]), whole, "{form}");
            assert_eq!(verdict(Written::Pairs, Sent::AtTheEnd, &bytes), whole, "{form}");
        }

        #[test]
        fn what_is_kept_is_bounded(pieces in proptest::collection::vec(
            proptest::collection::vec(proptest::prelude::any::<u8>(), 0..3000), 0..6,
        )) {
            for written in [Written::Pairs, Written::Parts] {
                let mut reader = Reader::new(written, Sent::AsItComes);
                for piece in &pieces {
                    if reader.read(piece, &mut |_| Ok(())).is_err() {
                        break;
                    }
                    assert!(reader.piece.len() <= PIECE_BYTES_MAX);
                }
            }
        }
    }
}
