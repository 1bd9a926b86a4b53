//! Requests that stand in JSON (the batches of OData, Microsoft Graph and their like), as
//! its bytes come: objects with a method and an address in a list that is called so, each
//! judged as if it were sent by itself. Keeps bounded strings; changes nothing.

use super::asks::{Asks, Judge, Refused};
use super::syntax::{Ended, Event, NO_JSON, Open, Syntax, TEXT_BYTES_MAX, unescaped};

/// How deep the lists of batches may stand.
const DEPTH_MAX: usize = 32;

/// Methods or addresses of one request, at most: names of members may come again.
const VALUES_MAX: usize = 8;

/// Names of lists of requests.
const LISTS: [&str; 3] = ["requests", "batch", "operations"];

/// Names of their addresses.
const ADDRESSES: [&str; 4] = ["url", "relative_url", "path", "uri"];

/// What content is where it is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// On the way to what takes batches: each list is one, and all of it is JSON.
    Batch,
    /// Elsewhere: what is no JSON is none.
    Elsewhere,
}

/// Finds the requests.
#[derive(Debug)]
pub(super) struct Batches {
    place: Where,
    syntax: Syntax,
    state: State,
    begin: Begin,
}

/// Whether JSON has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    NotYet,
    Json,
    /// It is something else.
    Other,
}

/// Where we are.
#[derive(Debug, Default)]
struct State {
    /// What is open, outermost first.
    open: Vec<Frame>,
    /// How much is open below that.
    deeper: usize,
}

/// An object or a list that is open.
#[derive(Debug)]
enum Frame {
    Plain(Key),
    List,
    Item(Item),
    /// The fields of a request, and the name of the last one.
    Fields(String),
}

/// What the last member of an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Other,
    List,
    Method,
    Address,
    Fields,
}

/// What is known of a request.
#[derive(Debug, Default)]
struct Item {
    key: Option<Key>,
    methods: Vec<String>,
    addresses: Vec<String>,
    fields: Vec<(String, String)>,
}

impl Batches {
    pub(super) fn new(place: Where) -> Self {
        Self {
            place,
            syntax: Syntax::new(),
            state: State::default(),
            begin: Begin::NotYet,
        }
    }

    pub(super) fn read(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        let mut bytes = bytes;
        if self.begin == Begin::NotYet {
            let is_first = |byte: &u8| *byte > b' ' && byte.is_ascii();
            let Some(at) = bytes.iter().position(is_first) else {
                return Ok(());
            };
            bytes = bytes.get(at..).unwrap_or_default();
            let is_json = bytes.first().is_some_and(|first| b"{[".contains(first));
            let is_comment = self.place == Where::Batch
                && bytes.first().is_some_and(|first| b"/#'(".contains(first));
            self.begin = if is_json || is_comment {
                Begin::Json
            } else {
                Begin::Other
            };
        }
        if self.begin == Begin::Other {
            return Ok(());
        }
        let (state, place) = (&mut self.state, self.place);
        let read = self
            .syntax
            .read(bytes, &mut |event| state.take(event, place, &mut *judge));
        match read {
            Ok(()) => Ok(()),
            Err(Ended::Said(refused)) => Err(refused),
            Err(Ended::Fault) => {
                self.begin = Begin::Other;
                match self.place {
                    Where::Batch => judge(Asks::Unread(NO_JSON)),
                    Where::Elsewhere => Ok(()),
                }
            }
        }
    }
}

impl State {
    fn take(&mut self, event: Event<'_>, place: Where, judge: Judge<'_>) -> Result<(), Refused> {
        match event {
            Event::Opens(_) if self.open.len() >= DEPTH_MAX => self.deeper += 1,
            Event::Opens(what) => {
                let frame = self.opens(what, place);
                self.open.push(frame);
            }
            Event::Closes if self.deeper > 0 => self.deeper -= 1,
            Event::Closes => {
                if let Some(Frame::Item(item)) = self.open.pop() {
                    return item.ends(judge);
                }
            }
            Event::Key(text) if self.deeper == 0 => self.key(text),
            Event::Text(text) if self.deeper == 0 => return self.value(text, judge),
            Event::Key(_) | Event::Text(_) => {}
        }
        Ok(())
    }

    fn opens(&self, what: Open, place: Where) -> Frame {
        let last = match self.open.last() {
            Some(Frame::Plain(key)) => *key,
            Some(Frame::Item(item)) => item.key.unwrap_or(Key::Other),
            Some(Frame::List | Frame::Fields(_)) | None => Key::Other,
        };
        let is_batch = place == Where::Batch;
        match (what, self.open.last()) {
            (Open::List, Some(Frame::Plain(_))) if last == Key::List => Frame::List,
            (Open::List, None) if is_batch => Frame::List,
            (Open::Object, Some(Frame::List)) => Frame::Item(Item::default()),
            (Open::Object, Some(Frame::Item(_))) if last == Key::Fields => {
                Frame::Fields(String::new())
            }
            // Some give each request a name, or put one into another.
            (Open::Object, Some(Frame::Plain(_) | Frame::Item(_))) if is_batch => {
                Frame::Item(Item::default())
            }
            _ => Frame::Plain(Key::Other),
        }
    }

    fn key(&mut self, text: &[u8]) {
        let name = unescaped(text).unwrap_or_default();
        let name = name.trim().to_ascii_lowercase();
        let key = match name.as_str() {
            "method" | "http_method" | "httpmethod" | "verb" => Key::Method,
            "headers" => Key::Fields,
            other if ADDRESSES.contains(&other) => Key::Address,
            other if LISTS.contains(&other) => Key::List,
            _ => Key::Other,
        };
        match self.open.last_mut() {
            Some(Frame::Plain(last)) => *last = key,
            Some(Frame::Item(item)) => item.key = Some(key),
            Some(Frame::Fields(last)) => *last = name,
            Some(Frame::List) | None => {}
        }
    }

    fn value(&mut self, text: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        let value = || unescaped(text).filter(|_| text.len() < TEXT_BYTES_MAX);
        let item = match self.open.as_mut_slice() {
            [.., Frame::Item(item), Frame::Fields(name)] => {
                let name = std::mem::take(name);
                return match value() {
                    Some(value) if item.fields.len() < 8 * VALUES_MAX => {
                        item.fields.push((name, value));
                        Ok(())
                    }
                    _ => judge(Asks::Unread("a field of a request without end")),
                };
            }
            [.., Frame::Item(item)] => item,
            _ => return Ok(()),
        };
        let values = match item.key.take() {
            Some(Key::Method) => &mut item.methods,
            Some(Key::Address) => &mut item.addresses,
            Some(Key::Other | Key::List | Key::Fields) | None => return Ok(()),
        };
        match value() {
            Some(value) if values.len() < VALUES_MAX => values.push(value),
            _ => return judge(Asks::Unread("a request in a batch without end")),
        }
        Ok(())
    }
}

impl Item {
    /// Each method with each address, since readers disagree about names that come again.
    fn ends(&self, judge: Judge<'_>) -> Result<(), Refused> {
        for method in &self.methods {
            for target in &self.addresses {
                judge(Asks::Item { method, target })?;
                for (name, value) in &self.fields {
                    judge(Asks::Field {
                        method,
                        target,
                        name,
                        value,
                    })?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(place: Where, content: &str, size: usize) -> Vec<String> {
        let mut found = Vec::new();
        let mut judge = |asks: Asks<'_>| {
            found.push(match asks {
                Asks::Item { method, target } => format!("{method} {target}"),
                Asks::Field { name, value, .. } => format!("{name}: {value}"),
                other => format!("{other:?}"),
            });
            Ok(())
        };
        let mut batches = Batches::new(place);
        for piece in content.as_bytes().chunks(size) {
            batches.read(piece, &mut judge).unwrap();
        }
        found
    }

    #[test]
    fn only_the_requests_of_a_batch_are_requests() {
        use Where::{Batch, Elsewhere};
        for (place, content, wanted) in [
            (
                Elsewhere,
                r#"{"requests":[{"id":"1","method":"GET","url":"/a"}]}"#,
                &["GET /a"][..],
            ),
            (
                Elsewhere,
                r#"{"x":{"Batch":[{"relative_url":"b","method":"DELETE"}]}}"#,
                &["DELETE b"],
            ),
            (
                Elsewhere,
                r#"{"operations":[{"m\u0065thod":"PUT","path":"\/c"}]}"#,
                &["PUT /c"],
            ),
            (
                Elsewhere,
                r#"{"requests":[{"url":"/a","url":"/b","method":"GET"}]}"#,
                &["GET /a", "GET /b"],
            ),
            (
                Elsewhere,
                r#"{"requests":[{"url":"/a","method":"POST","headers":{"X-HTTP-Method":"DELETE"}}]}"#,
                &["POST /a", "x-http-method: DELETE"],
            ),
            // Hooks, crawls and calls.
            (Elsewhere, r#"{"url":"/a","method":"GET"}"#, &[]),
            (Elsewhere, r#"[{"url":"/a","method":"GET"}]"#, &[]),
            (
                Elsewhere,
                r#"{"requests":[{"url":"/a"},{"method":"GET"}]}"#,
                &[],
            ),
            (
                Elsewhere,
                r#"{"requests":{"url":"/a","method":"GET"}}"#,
                &[],
            ),
            (
                Elsewhere,
                r#"{"requests":[[{"url":"/a","method":"GET"}]]}"#,
                &[],
            ),
            (
                Elsewhere,
                r#"{"requests":[{"a":{"url":"/a","method":"GET"}}]}"#,
                &[],
            ),
            (Elsewhere, "requests=[]", &[]),
            (Elsewhere, "{/**/}", &[]),
            (Batch, r#"[{"url":"/a","method":"GET"}]"#, &["GET /a"]),
            (Batch, r#"{"a":{"url":"/a","method":"GET"}}"#, &["GET /a"]),
            (Batch, "{/**/}", &["Unread(\"something that is no JSON\")"]),
        ] {
            for size in [1, 5, 1000] {
                assert_eq!(found(place, content, size), wanted, "{content}");
            }
        }
        let long = format!(
            "{{\"requests\":[{{\"url\":\"{}\"}}]}}",
            "a".repeat(TEXT_BYTES_MAX)
        );
        assert!(found(Elsewhere, &long, 100)[0].contains("without end"));
        let deep = format!("{{\"requests\":[{}1{}]}}", "[".repeat(100), "]".repeat(100));
        assert!(found(Elsewhere, &deep, 100).is_empty());
    }
}
