//! Which value of a JSON document (RFC 8259) stands at a place of content, as a path in
//! the manner of RFC 9535: `$.messages[0].content`. Follows the beginning of content as it
//! comes, and keeps where its texts stand and the steps to them, within bounds; a path
//! is put together when somebody asks for it. Several documents may follow each other,
//! each on a line of its own. Whatever is none is followed no further.

use super::{IsClean, Spread, shown};
use crate::budget::wide;
use crate::json::{JsonContainer, JsonGrammar, JsonPart};
use crate::limits;
use crate::span;

/// Longest name that is kept, in bytes with its escapes.
const NAME_BYTES_MAX: usize = 6 * limits::NAME_BYTES_SHOWN;

/// The text has not ended.
const OPEN: u64 = u64::MAX;

/// Follows one content.
#[derive(Debug, Default)]
pub(crate) struct Document {
    state: JsonPathState,
    grammar: JsonGrammar<{ limits::DOCUMENT_DEPTH_MAX }>,
    /// How many bytes were followed.
    followed: usize,
    /// What is open, outermost first.
    levels: Vec<Level>,
    /// The step that leads to the value which comes.
    next: PathStep,
    /// How many values stand outside of all others so far.
    count: u32,
    /// Whether the line has ended since the last of them.
    gap: Gap,
    nodes: Vec<PathNode>,
    texts: Vec<QuotedText>,
    /// The names of members, one after the other, as they came.
    names: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum JsonPathState {
    /// Outside of texts, numbers and words.
    #[default]
    Between,
    /// Within a number or a word.
    Plain,
    Text(StringRole),
    /// Behind a backslash.
    Escape(StringRole),
    /// It is no document, or too long a one.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringRole {
    Name,
    Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Gap {
    #[default]
    None,
    Line,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    kind: JsonContainer,
    /// How one comes to it.
    node: u32,
    /// The number of the element that comes.
    index: u32,
}

/// A step, and the one before.
#[derive(Debug, Clone, Copy)]
struct PathNode {
    before: u32,
    step: PathStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum PathStep {
    /// To the value with this number, outside of all others.
    Root(u32),
    /// To the member with the name of this length that stands there.
    Name(u32, u16),
    /// To a member whose name is too long.
    #[default]
    Hidden,
    Index(u32),
}

/// A text with its quotes.
#[derive(Debug, Clone, Copy)]
struct QuotedText {
    from: u64,
    to: u64,
    node: u32,
    role: StringRole,
}

impl Document {
    /// Takes the next bytes, of which the first has this offset.
    pub(crate) fn push(&mut self, at: u64, bytes: &[u8]) {
        if self.state == JsonPathState::Lost {
            return;
        }
        let room = limits::DOCUMENT_BYTES_MAX.saturating_sub(self.followed);
        let (bytes, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        let mut place = 0;
        while let Some(byte) = bytes.get(place) {
            let here = at.saturating_add(wide(place));
            let used = match self.state {
                JsonPathState::Lost => break,
                JsonPathState::Text(role) => {
                    let rest = span::from(bytes, place);
                    self.text(here, rest, role)
                }
                JsonPathState::Escape(role) => {
                    self.keep(role, &[*byte]);
                    self.state = JsonPathState::Text(role);
                    1
                }
                // Of numbers there may be many.
                JsonPathState::Plain if is_plain(*byte) => {
                    let rest = span::from(bytes, place);
                    let end = rest.iter().position(|byte| !is_plain(*byte));
                    end.unwrap_or(rest.len())
                }
                _ => {
                    self.take(here, *byte);
                    1
                }
            };
            place = place.saturating_add(used);
        }
        self.followed = self.followed.saturating_add(place);
        if !rest.is_empty() {
            self.lose(at.saturating_add(wide(bytes.len())));
        }
    }

    /// Begins again with another document, with what is left of all bounds.
    pub(crate) fn restart(&mut self, at: u64) {
        self.lose(at);
        self.grammar.clear();
        self.levels.clear();
        self.count = 0;
        self.gap = Gap::None;
        if self.followed < limits::DOCUMENT_BYTES_MAX {
            self.state = JsonPathState::Between;
        }
    }

    /// Nothing is followed any more; what is open ends at `at`.
    pub(crate) fn lose(&mut self, at: u64) {
        self.state = JsonPathState::Lost;
        if let Some(last) = self.texts.last_mut().filter(|last| last.to == OPEN) {
            last.to = at;
        }
    }

    /// Within a text: says how many bytes it took.
    fn text(&mut self, at: u64, bytes: &[u8], role: StringRole) -> usize {
        let stop = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
        self.keep(role, span::upto(bytes, stop));
        match bytes.get(stop) {
            None => return stop,
            Some(b'"') => self.end(at.saturating_add(wide(stop))),
            Some(_) => {
                self.keep(role, b"\\");
                self.state = JsonPathState::Escape(role);
            }
        }
        stop.saturating_add(1)
    }

    /// Keeps what it came by of a name.
    fn keep(&mut self, role: StringRole, bytes: &[u8]) {
        if role == StringRole::Value {
            return;
        }
        let PathStep::Name(from, length) = self.next else {
            return;
        };
        let all = usize::from(length).saturating_add(bytes.len());
        self.next = match u16::try_from(all) {
            Ok(all) if usize::from(all) <= NAME_BYTES_MAX => {
                self.names.extend_from_slice(bytes);
                PathStep::Name(from, all)
            }
            _ => {
                self.names
                    .truncate(self.names.len().saturating_sub(usize::from(length)));
                PathStep::Hidden
            }
        };
    }

    /// The quote at the end of a text.
    fn end(&mut self, at: u64) {
        if let Some(last) = self.texts.last_mut() {
            last.to = at;
        }
        self.state = JsonPathState::Between;
    }

    /// Takes a byte outside of texts.
    fn take(&mut self, at: u64, byte: u8) {
        self.state = JsonPathState::Between;
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            if byte == b'\n' {
                self.gap = Gap::Line;
            }
            return;
        }
        if self.grammar.is_outermost() {
            let is_first = self.count == 0;
            match byte {
                b'{' | b'[' if is_first || self.gap == Gap::Line => {}
                // A mark of the order of bytes may stand before all.
                0xef | 0xbb | 0xbf if is_first => return,
                _ => return self.lose(at),
            }
        }
        match self.grammar.take(byte) {
            Some(JsonPart::Opens(kind)) => self.open(at, kind),
            Some(JsonPart::Closes) => {
                self.levels.pop();
                self.gap = Gap::None;
            }
            Some(JsonPart::Name) => self.name(at),
            Some(JsonPart::Text) => match self.node() {
                Some(node) => self.begin(at, node, StringRole::Value),
                None => self.lose(at),
            },
            Some(JsonPart::Bare) if matches!(byte, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.state = JsonPathState::Plain;
            }
            Some(JsonPart::Colon) => {}
            Some(JsonPart::Comma) => {
                let level = self.levels.last_mut();
                if let Some(level) = level.filter(|level| level.kind == JsonContainer::Array) {
                    level.index = level.index.saturating_add(1);
                }
            }
            Some(JsonPart::Bare) | None => self.lose(at),
        }
    }

    fn open(&mut self, at: u64, kind: JsonContainer) {
        match self.node() {
            Some(node) => self.levels.push(Level {
                kind,
                node,
                index: 0,
            }),
            None => self.lose(at),
        }
    }

    /// The name of a member begins.
    fn name(&mut self, at: u64) {
        let is_room = self.names.len() < limits::DOCUMENT_NAMES_BYTES_MAX;
        let from = u32::try_from(self.names.len()).ok().filter(|_| is_room);
        match (from, self.levels.last().map(|level| level.node)) {
            (Some(from), Some(node)) => {
                self.next = PathStep::Name(from, 0);
                self.begin(at, node, StringRole::Name);
            }
            _ => self.lose(at),
        }
    }

    /// A text begins.
    fn begin(&mut self, at: u64, node: u32, role: StringRole) {
        if self.texts.len() >= limits::DOCUMENT_TEXTS_MAX {
            return self.lose(at);
        }
        let (from, to) = (at, OPEN);
        self.texts.push(QuotedText {
            from,
            to,
            node,
            role,
        });
        self.state = JsonPathState::Text(role);
    }

    /// The value that comes, as a node; nothing where they are too many.
    fn node(&mut self) -> Option<u32> {
        let (before, step) = match self.levels.last() {
            None => {
                self.count = self.count.saturating_add(1);
                (u32::MAX, PathStep::Root(self.count))
            }
            Some(level) => match level.kind {
                JsonContainer::Object => (level.node, self.next),
                JsonContainer::Array => (level.node, PathStep::Index(level.index)),
            },
        };
        if self.nodes.len() >= limits::DOCUMENT_STEPS_MAX {
            return None;
        }
        let number = u32::try_from(self.nodes.len()).ok()?;
        self.nodes.push(PathNode { before, step });
        Some(number)
    }

    /// The path of the text that holds the place; of a name, that of what has it.
    pub(crate) fn inside(&self, spread: Spread, is_clean: IsClean<'_>) -> Option<String> {
        let text = match spread {
            Spread::Between(first, last) => self.holds(first).filter(|text| last <= text.to)?,
            Spread::Run(start) => self.run(start)?,
            Spread::Unknown => return None,
        };
        let (path, number) = self.path(text.node, is_clean);
        let path = match number {
            0 | 1 => path,
            number => format!("{path} of value {number}"),
        };
        Some(match text.role {
            StringRole::Name => format!("a name in {path}"),
            StringRole::Value => path,
        })
    }

    /// The text that goes over this offset.
    fn holds(&self, offset: u64) -> Option<QuotedText> {
        let behind = self.texts.partition_point(|text| text.from <= offset);
        let text = self.texts.get(behind.checked_sub(1)?).copied()?;
        (offset <= text.to).then_some(text)
    }

    /// The text in which a run stands: no alphabet has quotes. Where it may stand in two,
    /// it is in the one that begins with it.
    fn run(&self, start: u64) -> Option<QuotedText> {
        let behind = start.saturating_add(limits::RUN_LAG_BYTES);
        let (short, long) = match (self.holds(start), self.holds(behind)) {
            (Some(short), Some(long)) => (short, long),
            (one, other) => return one.or(other),
        };
        let is_begin = |text: &QuotedText, offset| text.from.saturating_add(1) == offset;
        match (is_begin(&short, start), is_begin(&long, behind)) {
            _ if short.from == long.from => Some(short),
            (true, false) => Some(short),
            (false, true) => Some(long),
            (true, true) | (false, false) => None,
        }
    }

    /// The steps to a node, and the number of the value they begin with.
    fn path(&self, node: u32, is_clean: IsClean<'_>) -> (String, u32) {
        let (mut steps, mut number) = (Vec::new(), 1);
        let mut next = node;
        while let Some(node) = usize::try_from(next).ok().and_then(|at| self.nodes.get(at)) {
            next = node.before;
            match node.step {
                PathStep::Root(own) => number = own,
                PathStep::Index(index) => steps.push(format!("[{index}]")),
                PathStep::Hidden => steps.push(HIDDEN.to_owned()),
                PathStep::Name(from, length) => {
                    let from = usize::try_from(from).unwrap_or(usize::MAX);
                    let name = self.names.get(from..from.saturating_add(length.into()));
                    let step = name.and_then(|name| member(name, is_clean));
                    steps.push(step.unwrap_or_else(|| HIDDEN.to_owned()));
                }
            }
        }
        // Of a long path both ends are shown, which say most.
        let mut is_cut = false;
        while steps.iter().map(String::len).sum::<usize>() > limits::PATH_BYTES_SHOWN {
            steps.remove(steps.len() / 2);
            is_cut = true;
        }
        if is_cut {
            steps.insert(steps.len() / 2, "…".to_owned());
        }
        steps.reverse();
        (format!("${}", steps.concat()), number)
    }
}

/// Whether it is a part of a number or a word.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// Stands for a name that is not shown.
const HIDDEN: &str = "[…]";

/// The step to the member with this name, as it came.
fn member(name: &[u8], is_clean: IsClean<'_>) -> Option<String> {
    let quoted = [b"\"", name, b"\""].concat();
    let name: String = serde_json::from_slice(&quoted).ok()?;
    let shown = shown(name.as_bytes(), '\'', is_clean)?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_plain = name.bytes().all(is_word);
    let begins = name
        .bytes()
        .next()
        .is_some_and(|first| !first.is_ascii_digit());
    Some(if is_plain && begins {
        format!(".{shown}")
    } else {
        format!("['{shown}']")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stands in a document for the place that is asked for.
    const HERE: char = '@';

    /// The path of the place, with the document in pieces of this length.
    fn paths(document: &str, length: usize) -> Option<String> {
        let at = document.find(HERE).expect("a place");
        let mut own = Document::default();
        for (number, piece) in document.as_bytes().chunks(length).enumerate() {
            own.push(wide(number * length), piece);
        }
        let is_clean = |name: &[u8]| !name.starts_with(b"ghp_");
        own.inside(Spread::Between(wide(at), wide(at)), &is_clean)
    }

    fn check(document: &str, expected: Option<&str>) {
        // Long ones in fewer ways: each takes its time.
        let most = if document.len() > 10_000 { 3 } else { 64 };
        for length in (1..=most.min(document.len())).chain([document.len()]) {
            let found = paths(document, length);
            let shown: String = document.chars().take(80).collect();
            assert_eq!(found.as_deref(), expected, "{shown} by {length}");
        }
    }

    #[test]
    fn places_have_paths() {
        for (document, path) in [
            (r#"{"a":"@"}"#, "$.a"),
            (r#"["x", "@"]"#, "$[1]"),
            (
                r#" { "a" : [ 1 , true , { "b_1" : "x@" } ] } "#,
                "$.a[2].b_1",
            ),
            (
                r#"{"messages":[{"role":"user","content":"a \"@\""}]}"#,
                "$.messages[0].content",
            ),
            (r#"[[],{},[[1,-2.5e+3,null],["@"]]]"#, "$[2][1][0]"),
            (r#"{"a":{"b":"x"},"c":"@"}"#, "$.c"),
            (r#"{"a":"x","a":"@","a":"y"}"#, "$.a"),
            (r#"{"a b":"@"}"#, "$['a b']"),
            (r#"{"":{"1a":{"a-b":"@"}}}"#, "$['']['1a']['a-b']"),
            (r#"{"it's":"@"}"#, r"$['it\'s']"),
            (r#"{"a\"b\u0022\\":"@"}"#, r#"$['a"b"\\']"#),
            (r#"{"\u0061\n\u202e":"@"}"#, r"$['a\u000a\u202e']"),
            (r#"{"\ud83d\ude00é":"@"}"#, "$['😀é']"),
            // What is no text, and what holds a credential.
            (r#"{"\ud83d":{"b":"@"}}"#, "$[…].b"),
            (r#"{"ghp_":{"\u0067hp_x":{"b":"@"}}}"#, "$[…][…].b"),
            // Names.
            (r#"{"a":{"b":1,"x@":"y"}}"#, "a name in $.a"),
            (r#"{"@":1}"#, "a name in $"),
            // Several, and what is behind is no matter.
            ("{\"a\":1}\n{\"b\":\"@\"}\n", "$.b of value 2"),
            ("[1]\r\n\r\n[\"x\"]\n[\"@\"]", "$[0] of value 3"),
            ("[1]\n{\"@\":0}", "a name in $ of value 2"),
            ("\u{feff}[\"@\"]", "$[0]"),
            (r#"{"a":"@"} and words"#, "$.a"),
            (r#"{"a":"@"#, "$.a"),
            (r#"{"a":["@","#, "$.a[0]"),
        ] {
            check(document, Some(path));
        }
    }

    #[test]
    fn what_is_no_document_has_no_paths() {
        for document in [
            "@",
            r#""@""#,
            r#"words {"a":"@"}"#,
            r#"{a:"@"}"#,
            r#"{"a" "@"}"#,
            r#"{"a":1,}["@"]"#,
            r#"[1,]["@"]"#,
            r#"[1 2,"@"]"#,
            r#"{"a":1]["@"]"#,
            r#"["a"}["@"]"#,
            r#"[]]["@"]"#,
            r#"{"a","@"}"#,
            r#"[/* no */"@"]"#,
            r"['@']",
            r#"{"a":1} {"b":"@"}"#,
            r#"[1] "@""#,
            "[2026-01-02] {\"a\":\"@\"}",
            "[note] a=\"@\"",
            r#"{"a":@1}"#,
            "[1]\n\"@\"",
        ] {
            check(document, None);
        }
    }

    #[test]
    fn a_place_between_two_values_is_in_none() {
        let document = br#"{"a":"12345","b":"12345"}"#;
        let mut own = Document::default();
        own.push(0, document);
        let inside = |first, last| own.inside(Spread::Between(first, last), &|_| true);
        assert_eq!(inside(6, 11).as_deref(), Some("$.a"));
        assert_eq!(inside(6, 12), None);
        assert_eq!(inside(6, 19), None);
        assert_eq!(inside(18, 19).as_deref(), Some("$.b"));
        assert_eq!(own.inside(Spread::Unknown, &|_| true), None);
    }

    #[test]
    fn runs_are_in_the_text_that_begins_with_them() {
        let (short, long) = ("x".repeat(54), "y".repeat(2000));
        let document = format!(r#"{{"short":"{short}","b":"{long}"}}"#);
        let mut own = Document::default();
        own.push(0, document.as_bytes());
        let run = |start: usize| own.inside(Spread::Run(wide(start)), &|_| true);
        let begin = |text: &str| document.find(text).expect("a run");
        let lag = usize::try_from(limits::RUN_LAG_BYTES).expect("a length");
        assert_eq!(run(begin(&short)).as_deref(), Some("$.short"));
        assert_eq!(run(begin(&long) - lag).as_deref(), Some("$.b"));
        assert_eq!(run(begin(&long) + 512 - lag).as_deref(), Some("$.b"));
        assert_eq!(run(begin(&short) + 3), None, "it may be in either");
    }

    #[test]
    fn paths_are_bounded() {
        let deep = |depth: usize| format!("{}\"@\"{}", "[".repeat(depth), "]".repeat(depth));
        let most = limits::DOCUMENT_DEPTH_MAX;
        check(&deep(most), Some(&format!("${}", "[0]".repeat(most))));
        check(&deep(most + 1), None);
        check(&deep(100_000), None);

        let name = |length: usize| format!("{{\"{}\":\"@\"}}", "n".repeat(length));
        let most = limits::NAME_BYTES_SHOWN;
        check(&name(most), Some(&format!("$.{}", "n".repeat(most))));
        check(&name(most + 1), Some("$[…]"));
        check(&name(NAME_BYTES_MAX + 1), Some("$[…]"));
        check(
            &format!("{{\"{}\":1,\"b\":\"@\"}}", "n".repeat(100_000)),
            Some("$.b"),
        );
        check(&name(1 << 20), None);

        // Of a long path the middle is left out.
        let names = (0..40).map(|number| format!("{{\"a_long_name_{number:02}\":"));
        let document = names.collect::<String>() + "\"@\"";
        let path = paths(&document, 100).expect("a path");
        assert!(path.len() <= limits::PATH_BYTES_SHOWN + 8, "{path}");
        assert!(path.starts_with("$.a_long_name_00."), "{path}");
        assert!(path.ends_with(".a_long_name_39"), "{path}");
        assert!(path.contains('…'), "{path}");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        for piece in [
            "\"\",",
            "[],",
            "[[],[]],",
            "1,",
            "{\"\":0},",
            "{\"a_name_of_some_length\":\"\"},",
            "{\"a_name_of_some_length_that_is_not_short_at_all\":0},",
            "\"\\\"\",",
        ] {
            let document = format!("[{}\"@\"]", piece.repeat((1 << 20) / piece.len()));
            assert_eq!(paths(&document, 4096), None, "{piece}");
            let mut own = Document::default();
            own.push(0, document.as_bytes());
            assert!(own.texts.len() <= limits::DOCUMENT_TEXTS_MAX, "{piece}");
            assert!(own.nodes.len() <= limits::DOCUMENT_STEPS_MAX, "{piece}");
            let most = limits::DOCUMENT_NAMES_BYTES_MAX + NAME_BYTES_MAX;
            assert!(own.names.len() <= most, "{piece}");
            assert!(own.levels.len() <= limits::DOCUMENT_DEPTH_MAX, "{piece}");
        }
        // Numbers take no room.
        let numbers = format!("[{}\"@\"]", "0.25,".repeat(40_000));
        check(&numbers, Some("$[40000]"));
        // A text that goes on behind the bound ends there.
        let long = format!("[\"{}@\"]", "x".repeat(limits::DOCUMENT_BYTES_MAX));
        check(&long, None);
    }

    #[test]
    fn another_document_begins_where_one_is_said_to() {
        let mut own = Document::default();
        own.push(0, b"{\"a\":\"x");
        own.restart(10);
        own.push(10, b"[\"y\"]");
        own.restart(20);
        own.push(20, b"{\"b\":\"z\"}");
        let inside = |at| own.inside(Spread::Between(at, at), &|_| true);
        assert_eq!(inside(6).as_deref(), Some("$.a"));
        assert_eq!(inside(12).as_deref(), Some("$[0]"));
        assert_eq!(inside(26).as_deref(), Some("$.b"));
        assert_eq!(inside(18), None);
    }

    #[test]
    fn what_is_not_followed_counts_for_nothing() {
        for length in [100, limits::DOCUMENT_BYTES_MAX] {
            let words = "words and words ".repeat(limits::DOCUMENT_BYTES_MAX / 16);
            let mut own = Document::default();
            for piece in words.as_bytes().chunks(length) {
                own.push(0, piece);
            }
            own.restart(1 << 20);
            own.push(1 << 20, b"[\"x\"]");
            let at = (1 << 20) + 2;
            let inside = own.inside(Spread::Between(at, at), &|_| true);
            assert_eq!(inside.as_deref(), Some("$[0]"), "{length}");
        }
    }
}
