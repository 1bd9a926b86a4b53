//! Requests that stand in JSON (the batches of OData, Microsoft Graph and their like), as
//! its bytes come: objects with a method and an address of their own in a list that is no
//! part of another item, each judged as if it were sent by itself. What stands deeper are
//! arguments: descriptions of tools, parameters of calls. Keeps bounded strings; changes
//! nothing.

use outgate_dlp::json::JsonContainer;

use super::asks::{Asks, InnerContent, InnerDepth, Judge, Refused, TOO_DEEP};
use super::item::{BatchItem, LastMember, OpenContent, Pair, Stands, TextContent};
use super::syntax::{Ended, JsonEvent, JsonSyntax, NO_JSON, TEXT_BYTES_MAX, unescaped};

/// How deep the lists of batches may stand.
const DEPTH_MAX: usize = 32;

/// Names of lists of requests, which may stand one level deeper than others.
pub(super) const LISTS: [&str; 7] = [
    "actions",
    "batch",
    "batchrequests",
    "compositerequest",
    "operations",
    "requests",
    "subrequests",
];

/// Whether the path of a request says that it takes batches, by one of these words.
pub(super) fn takes_batches(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["batch", "subrequests"]
        .iter()
        .any(|word| path.contains(word))
}

/// Names of lists of what reports or describes requests: of logs, traces, hooks and routes.
const REPORTS: [&str; 14] = [
    "endpoints",
    "entries",
    "events",
    "hooks",
    "links",
    "logs",
    "messages",
    "metrics",
    "records",
    "routes",
    "spans",
    "tools",
    "traces",
    "webhooks",
];

/// Names of the content of requests.
const CONTENTS: [&str; 5] = ["body", "content", "data", "payload", "richinput"];

/// Names of their methods.
const METHODS: [&str; 5] = ["method", "httpmethod", "requestmethod", "verb", "httpverb"];

/// Names of their fields.
const FIELDS: [&str; 5] = [
    "headers",
    "header",
    "httpheaders",
    "requestheaders",
    "requestheaderdetails",
];

/// Names of their addresses.
const ADDRESSES: [&str; 7] = [
    "url",
    "relativeurl",
    "relativeuri",
    "relativepath",
    "requesturl",
    "requesturi",
    "requestpath",
];

/// The same by words that are addresses beside a method alone.
const PLACES: [&str; 2] = ["path", "uri"];

/// The same on the way to what takes batches.
const TARGETS: [&str; 2] = ["href", "endpoint"];

/// What content is where it is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotJson {
    /// On the way to what takes batches: each list is one, and all of it is JSON.
    Batch,
    /// The same of what is said to be something else: what is no JSON is none.
    Unsaid,
    /// Elsewhere: what is no JSON is none.
    Elsewhere,
}

/// Finds the requests.
#[derive(Debug)]
pub(super) struct Batches<B> {
    place: NotJson,
    syntax: JsonSyntax,
    state: BatchState<B>,
    begin: JsonBegin,
}

/// Whether JSON has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonBegin {
    NotYet,
    Json,
    /// It is something else.
    Other,
}

/// Where we are.
#[derive(Debug)]
pub(super) struct BatchState<B> {
    /// What is open, outermost first.
    open: Vec<Frame<B>>,
    /// How much is open below that.
    deeper: usize,
    /// A list of requests that is a text, and not over.
    list: Option<Box<TextContent<B>>>,
    depth: InnerDepth,
}

/// An object or a list that is open.
#[derive(Debug)]
enum Frame<B> {
    Plain(LastMember),
    List,
    Item(BatchItem<B>),
    /// The fields of a request, and the name of the last one.
    Fields(String),
    /// The values of one field.
    FieldValues(String),
    /// The same as a list of lines, or of names and values.
    FieldList,
    FieldPair(Pair),
    /// The content of a request.
    Content(OpenContent<B>),
}

impl<B: InnerContent> Batches<B> {
    pub(super) fn new(place: NotJson, depth: InnerDepth) -> Self {
        Self {
            place,
            syntax: JsonSyntax::new(),
            state: BatchState::new(depth),
            begin: JsonBegin::NotYet,
        }
    }

    pub(super) fn read(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        let mut bytes = bytes;
        if self.begin == JsonBegin::NotYet {
            let is_first = |byte: &u8| *byte > b' ' && byte.is_ascii();
            let Some(at) = bytes.iter().position(is_first) else {
                return Ok(());
            };
            bytes = bytes.get(at..).unwrap_or_default();
            let is_json = bytes.first().is_some_and(|first| b"{[".contains(first));
            let is_comment = self.place == NotJson::Batch
                && bytes.first().is_some_and(|first| b"/#'(".contains(first));
            self.begin = if is_json || is_comment {
                JsonBegin::Json
            } else {
                JsonBegin::Other
            };
        }
        if self.begin == JsonBegin::Other {
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
                self.begin = JsonBegin::Other;
                match self.place {
                    NotJson::Batch => judge(Asks::Unread(NO_JSON)),
                    NotJson::Unsaid | NotJson::Elsewhere => Ok(()),
                }
            }
        }
    }
}

impl<B> Batches<B> {
    /// Whether what comes cannot matter.
    pub(super) fn is_over(&self) -> bool {
        self.begin == JsonBegin::Other
    }
}

impl<B: InnerContent> BatchState<B> {
    pub(super) fn new(depth: InnerDepth) -> Self {
        Self {
            open: Vec::new(),
            deeper: 0,
            list: None,
            depth,
        }
    }

    pub(super) fn take(
        &mut self,
        event: JsonEvent<'_>,
        place: NotJson,
        judge: Judge<'_>,
    ) -> Result<(), Refused> {
        if let Some(Frame::Content(content)) = self.open.last_mut() {
            if content.is_over(event) {
                self.content_ends();
            }
            return Ok(());
        }
        match event {
            JsonEvent::Opens(_) if self.open.len() >= DEPTH_MAX => self.deeper += 1,
            JsonEvent::Opens(what) => {
                let frame = self.opens(what, place);
                self.open.push(frame);
            }
            JsonEvent::Closes if self.deeper > 0 => self.deeper -= 1,
            JsonEvent::Closes => match self.open.pop() {
                Some(Frame::Item(item)) => return item.ends(judge),
                Some(Frame::FieldPair(pair)) => {
                    let (name, value) = pair.ends();
                    return self.field(&name, value, judge);
                }
                _ => {}
            },
            JsonEvent::Key(text) if self.deeper == 0 => self.key(text, place),
            JsonEvent::Piece(piece) if self.deeper == 0 => return self.piece(piece, judge),
            JsonEvent::Text(text) if self.deeper == 0 => return self.value(text, judge),
            JsonEvent::Key(_) | JsonEvent::Piece(_) | JsonEvent::Text(_) => {}
        }
        Ok(())
    }

    fn content_ends(&mut self) {
        let content = self.open.pop();
        if let (Some(Frame::Content(content)), Some(Frame::Item(item))) =
            (content, self.open.last_mut())
        {
            item.holds(content);
        }
    }

    fn opens(&self, what: JsonContainer, place: NotJson) -> Frame<B> {
        let is_batch = place != NotJson::Elsewhere;
        match (what, self.open.as_slice()) {
            (JsonContainer::Array, []) if is_batch => Frame::List,
            (JsonContainer::Array, [Frame::Plain(key)]) if *key != LastMember::Report => {
                Frame::List
            }
            (JsonContainer::Array, [Frame::Plain(_), Frame::Plain(LastMember::List)]) => {
                Frame::List
            }
            // Some have lists of batches.
            (JsonContainer::Array, [Frame::Plain(_) | Frame::List, .., Frame::Item(item)])
                if self.open.len() <= 3 && item.key == Some(LastMember::List) =>
            {
                Frame::List
            }
            (JsonContainer::Object, [.., Frame::List]) => {
                Frame::Item(BatchItem::new(if is_batch {
                    Stands::Listed
                } else {
                    Stands::Elsewhere
                }))
            }
            (JsonContainer::Object, [.., Frame::Item(item)])
                if item.key == Some(LastMember::Fields) =>
            {
                Frame::Fields(String::new())
            }
            (JsonContainer::Array, [.., Frame::Item(item)])
                if item.key == Some(LastMember::Fields) =>
            {
                Frame::FieldList
            }
            (JsonContainer::Array, [.., Frame::Fields(name)]) => Frame::FieldValues(name.clone()),
            (_, [.., Frame::FieldList]) => Frame::FieldPair(Pair::default()),
            (_, [.., Frame::Item(item)]) if item.key == Some(LastMember::Content) => {
                Frame::Content(item.opens(what, self.depth))
            }
            (JsonContainer::Object, [.., Frame::Item(item)])
                if item.key == Some(LastMember::Request) =>
            {
                Frame::Item(BatchItem::new(Stands::Elsewhere))
            }
            // Some give each request a name.
            (JsonContainer::Object, [Frame::Plain(_)]) if is_batch => {
                Frame::Item(BatchItem::new(Stands::Elsewhere))
            }
            _ => Frame::Plain(LastMember::Other),
        }
    }

    fn key(&mut self, text: &[u8], place: NotJson) {
        let is_batch = place != NotJson::Elsewhere;
        let name = unescaped(text).unwrap_or_default();
        let name = name.trim().to_ascii_lowercase();
        let word = name.replace(['_', '-'], "");
        let key = match word.as_str() {
            "request" => LastMember::Request,
            other if METHODS.contains(&other) => LastMember::Method,
            other if FIELDS.contains(&other) => LastMember::Fields,
            other if CONTENTS.contains(&other) => LastMember::Content,
            other if ADDRESSES.contains(&other) => LastMember::Address,
            // Where nothing but requests stands, whatever says what is done with it.
            other if place == NotJson::Batch && PLACES.contains(&other) => LastMember::Address,
            other if PLACES.contains(&other) => LastMember::Place,
            other if is_batch && TARGETS.contains(&other) => LastMember::Place,
            other if LISTS.contains(&other) => LastMember::List,
            other if REPORTS.contains(&other) => LastMember::Report,
            _ => LastMember::Other,
        };
        match self.open.last_mut() {
            Some(Frame::Plain(last)) => *last = key,
            Some(Frame::Item(item)) => item.key = Some(key),
            Some(Frame::Fields(last)) => *last = name,
            Some(Frame::FieldPair(pair)) => pair.name_is(name),
            Some(Frame::List | Frame::FieldList | Frame::FieldValues(_) | Frame::Content(_))
            | None => {}
        }
    }

    /// A field of the request that is open, with its value unless that is too long.
    fn field(
        &mut self,
        name: &str,
        value: Option<String>,
        judge: Judge<'_>,
    ) -> Result<(), Refused> {
        let mut items = self.open.iter_mut().rev().filter_map(|frame| match frame {
            Frame::Item(item) => Some(item),
            _ => None,
        });
        match items.next() {
            Some(item) => item.field(name, value, judge),
            None => Ok(()),
        }
    }

    /// Some of a text.
    fn piece(&mut self, piece: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        match self.open.as_mut_slice() {
            [.., Frame::Item(item)] => {
                item.piece(piece, self.depth);
                Ok(())
            }
            [Frame::Plain(LastMember::List)] => {
                let Some(below) = self.depth.below() else {
                    return judge(Asks::Unread(TOO_DEEP));
                };
                let list = self
                    .list
                    .get_or_insert_with(|| Box::new(TextContent::new(B::of_list(below))));
                list.read(piece, judge)
            }
            _ => Ok(()),
        }
    }

    fn value(&mut self, text: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        if let Some(mut list) = self.list.take() {
            list.finish(judge)?;
        }
        let value = || unescaped(text).filter(|_| text.len() < TEXT_BYTES_MAX);
        match self.open.as_mut_slice() {
            [.., Frame::Fields(name)] => {
                let name = std::mem::take(name);
                self.field(&name, value(), judge)
            }
            [.., Frame::FieldValues(name)] => {
                let name = name.clone();
                self.field(&name, value(), judge)
            }
            [.., Frame::FieldList] => {
                let line = String::from_utf8_lossy(text);
                let (name, _) = line.split_once(':').unwrap_or_default();
                let whole = value();
                let value = whole.as_deref().map(|line| {
                    let (_, value) = line.split_once(':').unwrap_or_default();
                    value.trim().to_owned()
                });
                self.field(name, value, judge)
            }
            [.., Frame::FieldPair(pair)] => {
                pair.takes(value());
                Ok(())
            }
            [.., Frame::Item(item)] => item.value(text, judge),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::asks::told::Told;
    use super::*;

    fn found(place: NotJson, content: &str, size: usize) -> Vec<String> {
        let mut found = Vec::new();
        let mut judge = |asks: Asks<'_>| {
            found.push(match asks {
                Asks::Item { method, target } => format!("{method} {target}"),
                Asks::Field { name, value, .. } => format!("{name}: {value}"),
                Asks::Within {
                    method,
                    target,
                    asks: Asks::Named { value, .. },
                    ..
                } => format!("{method} {target} holds {value}"),
                Asks::Within {
                    target: to,
                    asks: Asks::Item { method, target },
                    ..
                } => format!("{to} holds {method} {target}"),
                Asks::Within {
                    target,
                    asks: Asks::Tunnelled { key, value },
                    ..
                } => format!("{target} holds {key}: {value}"),
                Asks::Named { value, .. } => format!("list {value}"),
                other => format!("{other:?}"),
            });
            Ok(())
        };
        let mut batches = Batches::<Told>::new(place, InnerDepth::default());
        for piece in content.as_bytes().chunks(size) {
            batches.read(piece, &mut judge).unwrap();
        }
        found
    }

    use NotJson::{Batch, Elsewhere};

    /// Where content stands, the content, and what is found in it.
    type Row = (NotJson, &'static str, &'static [&'static str]);

    const REQUESTS: &[Row] = &[
        (
            Elsewhere,
            r#"{"requests":[{"id":"1","method":"GET","url":"/a"}]}"#,
            &["GET /a"],
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
        // Other lists.
        (
            Elsewhere,
            r#"{"compositeRequest":[{"method":"PATCH","url":"/a","referenceId":"r"}]}"#,
            &["PATCH /a"],
        ),
        (
            Elsewhere,
            r#"{"graphs":[{"graphId":"1","compositeRequest":[{"method":"PATCH","url":"/a"}]}]}"#,
            &["PATCH /a"],
        ),
        (
            Elsewhere,
            r#"{"entry":[{"resource":{"method":"x","url":"y"},"request":{"method":"PUT","url":"a"}}]}"#,
            &["PUT a"],
        ),
        (
            Elsewhere,
            r#"{"logs":[{"method":"DELETE","path":"/a"}]}"#,
            &[],
        ),
    ];

    const NONE: &[Row] = &[
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
    ];

    const ARGUMENTS: &[Row] = &[
        // What else says something of a request.
        (
            Elsewhere,
            r#"{"requests":[{"url":"/a","method":"POST","headers":["X-HTTP-Method: DELETE","none"]}]}"#,
            &["POST /a", "X-HTTP-Method: DELETE", ": "],
        ),
        (
            Elsewhere,
            r#"{"requests":[{"url":"/a","method":"POST","headers":[{"value":"DELETE","name":"X-HTTP-Method"}]}]}"#,
            &["POST /a", "X-HTTP-Method: DELETE"],
        ),
        // Other names.
        (
            Elsewhere,
            r#"{"compositeRequest":[{"requestUrl":"/a","http_verb":"POST","httpHeaders":{"X-HTTP-Method":"DELETE"},"content":"a"}]}"#,
            &["POST /a", "POST /a holds a", "x-http-method: DELETE"],
        ),
        (
            Elsewhere,
            r#"{"requests":[{"url":"/a","method":"POST","headers":[["X-HTTP-Method","DELETE"],["A","b"]]}]}"#,
            &["POST /a", "X-HTTP-Method: DELETE", "A: b"],
        ),
        (
            Elsewhere,
            r#"{"requests":[{"url":"/a","method":"POST","headers":{"X-HTTP-Method":["GET","DELETE"],"A":"b"}}]}"#,
            &[
                "POST /a",
                "x-http-method: GET",
                "x-http-method: DELETE",
                "a: b",
            ],
        ),
        (
            Elsewhere,
            r#"{"requests":[{"url":"/a","method":"POST","body":"a=%62 c&_method=DELETE#"}]}"#,
            &["POST /a", "POST /a holds a=%62 c&_method=DELETE#"],
        ),
        // Whichever comes first, and however long it is.
        (
            Elsewhere,
            r#"{"requests":[{"body":"a=\"\u0062\n","method":"POST","url":"/a"}]}"#,
            &["POST /a", "POST /a holds a=\"b\n"],
        ),
        // Without an address it is about that of the batch.
        (
            Elsewhere,
            r#"{"requests":[{"method":"POST","body":"a"},{"method":"POST"},{"body":"a"}]}"#,
            &["POST  holds a"],
        ),
        (
            Batch,
            r#"[{"relative_url":"a","body":"b"}]"#,
            &["Fetched { target: \"a\" }", "POST a holds b"],
        ),
        // Requests in the content of one, and a list that is a text.
        (
            Elsewhere,
            r#"{"requests":[{"url":"/batch","method":"POST","body":{"requests":[{"method":"PUT","url":"/b"}]}},{"url":"/c","method":"PUT"}]}"#,
            &["POST /batch", "/batch holds PUT /b", "PUT /c"],
        ),
        (
            Elsewhere,
            r#"{"requests":[{"body":[{"method":"PUT","url":"/b"}],"url":"/batch","method":"POST"}]}"#,
            &["POST /batch", "/batch holds PUT /b"],
        ),
        (
            Elsewhere,
            r#"{"batch":"[{\"method\":1}]","a":"[2]"}"#,
            &[r#"list [{"method":1}]"#],
        ),
        (
            Elsewhere,
            r#"{"requests":[{"url":"/a","method":"POST","body":{"a":{"_method":"GET"},"_method":"DELETE","b":"PUT"}}]}"#,
            &["POST /a", "/a holds _method: DELETE"],
        ),
        (
            Batch,
            r#"{"requests":[{"url":"/a"},{"path":"/b"},{"endpoint":"/c","method":"GET"}]}"#,
            &[
                "Fetched { target: \"/a\" }",
                "Fetched { target: \"/b\" }",
                "GET /c",
            ],
        ),
        (
            Elsewhere,
            r#"{"requests":[{"href":"/c","method":"GET"}],"_links":[{"url":"/a","method":"DELETE"}]}"#,
            &[],
        ),
        // Arguments.
        (
            Batch,
            r#"{"requests":[{"custom_id":"1","params":{"method":"DELETE","url":"/a","tools":[{"properties":{"method":{"enum":["DELETE"]},"url":{},"operations":[{"method":"DELETE","url":"/a"}]}}]}}]}"#,
            &[],
        ),
        (
            Batch,
            r#"[{"jsonrpc":"2.0","method":"x","params":{"path":"/a","method":"DELETE"}}]"#,
            &[],
        ),
        (
            Batch,
            r#"{"batch":[{"event":"x","properties":{"method":"DELETE","url":"/a"}}]}"#,
            &[],
        ),
        (
            NotJson::Unsaid,
            r#"[{"url":"/a","method":"GET"}]"#,
            &["GET /a"],
        ),
        (NotJson::Unsaid, "{/**/}", &[]),
        (Elsewhere, "{/**/}", &[]),
        (Batch, r#"[{"url":"/a","method":"GET"}]"#, &["GET /a"]),
        (Batch, r#"{"a":{"url":"/a","method":"GET"}}"#, &["GET /a"]),
        (Batch, "{/**/}", &["Unread(\"something that is no JSON\")"]),
    ];

    #[test]
    fn only_the_requests_of_a_batch_are_requests() {
        for (place, content, wanted) in [REQUESTS, NONE, ARGUMENTS].concat() {
            for size in [1, 5, 1000] {
                assert_eq!(found(place, content, size), wanted, "{content}");
            }
        }
        let long = format!(
            "{{\"requests\":[{{\"url\":\"{}\"}}]}}",
            "a".repeat(TEXT_BYTES_MAX)
        );
        assert_eq!(found(Elsewhere, &long, 100), [""; 0]);
        let long = long.replace("[{", "[{\"method\":\"GET\",");
        assert!(found(Elsewhere, &long, 100)[0].contains("without end"));
        let token = "a".repeat(TEXT_BYTES_MAX);
        for (name, passes) in [("Authorization", true), ("X-Original-URL", false)] {
            for fields in [
                format!("{{\"{name}\":\"{token}\"}}"),
                format!("[\"{name}: {token}\"]"),
                format!("[{{\"value\":\"{token}\",\"name\":\"{name}\"}}]"),
            ] {
                let item = format!(
                    "{{\"requests\":[{{\"method\":\"GET\",\"url\":\"/a\",\"headers\":{fields}}}]}}"
                );
                assert_eq!(found(Batch, &item, 100) == ["GET /a"], passes, "{item}");
            }
        }
        let deep = format!("{{\"requests\":[{}1{}]}}", "[".repeat(100), "]".repeat(100));
        assert!(found(Elsewhere, &deep, 100).is_empty());
    }
}
