//! One request of a list in JSON: what its members say, and what its content asks for,
//! whichever of them comes first. Bounded; judges nothing before its end.

use outgate_dlp::json::JsonContainer;

use super::asks::{
    Asks, InnerContent, InnerDepth, InnerPlace, Judge, KEY, Keys, Refused, TOO_DEEP,
};
use super::batches::{BatchState, NotJson, takes_batches};
use super::kept::KeptAsks;
use super::pairs::may_hold_key;
use super::syntax::{JsonEvent, TEXT_BYTES_MAX, Unescape, unescaped};

/// Methods or addresses of one request, at most: names of members may come again.
const VALUES_MAX: usize = 8;

/// Fields of one request, at most.
const FIELDS_MAX: usize = 64;

/// Words in the names of fields that may ask for another request.
const MATTERING: [&str; 16] = [
    "method",
    "verb",
    "override",
    "url",
    "uri",
    "path",
    "prefix",
    "host",
    "forwarded",
    "original",
    "rewrite",
    "destination",
    "source",
    "from",
    "script",
    "scheme",
];

/// What of a request is longer than what is looked at.
const UNENDED: &str = "a request in a batch without end";
const FIELD_UNENDED: &str = "a field of a request without end";

/// What is done with content whose request says no method.
const USUAL_METHOD: &str = "POST";

/// A field in a list.
#[derive(Debug, Default)]
pub(super) struct Pair {
    last: String,
    name: String,
    value: String,
    length: Length,
}

/// What the last member of an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastMember {
    Other,
    List,
    Method,
    Address,
    /// An address beside a method alone.
    Place,
    Fields,
    /// The content of a request.
    Content,
    /// A request in an item that says more (FHIR).
    Request,
    Report,
}

/// What is known of a request.
#[derive(Debug)]
pub(super) struct BatchItem<B> {
    pub(super) key: Option<LastMember>,
    methods: Vec<String>,
    addresses: Vec<String>,
    fields: Vec<(String, String)>,
    /// Whether it is one of a list, and its address needs no method.
    stands: Stands,
    address: Length,
    /// Content that is a text, and not over.
    text: Option<TextContent<B>>,
    asked: KeptAsks,
}

/// Whether a text is longer than what is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Length {
    #[default]
    Known,
    TooLong,
}

/// Where an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stands {
    /// In a list of requests on the way to what takes batches.
    Listed,
    #[default]
    Elsewhere,
}

/// A text of JSON that is content by itself.
#[derive(Debug)]
pub(super) struct TextContent<B> {
    unescape: Unescape,
    content: B,
}

/// Content that is an object or a list.
#[derive(Debug)]
pub(super) struct OpenContent<B> {
    /// How much is open in it.
    open: usize,
    /// Whether the last member asks for a method.
    asks: Option<Override>,
    place: NotJson,
    /// The requests in it; `None` where nobody looks.
    requests: Option<Box<BatchState<B>>>,
    asked: KeptAsks,
}

/// A member that asks for another method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Override;

impl Pair {
    pub(super) fn name_is(&mut self, name: String) {
        self.last = name;
    }

    /// The value of its last member, or the next of two in a list.
    pub(super) fn takes(&mut self, value: Option<String>) {
        match (self.last.as_str(), value) {
            ("", Some(value)) if self.name.is_empty() => self.name = value,
            ("name" | "key" | "header", Some(value)) => self.name = value,
            ("value" | "", Some(value)) => self.value = value,
            ("name" | "key" | "header" | "value" | "", None) => self.length = Length::TooLong,
            _ => {}
        }
    }

    /// Its name, and its value unless that is too long.
    pub(super) fn ends(self) -> (String, Option<String>) {
        let value = Some(self.value).filter(|_| self.length == Length::Known);
        (self.name, value)
    }
}

impl<B: InnerContent> TextContent<B> {
    pub(super) fn new(content: B) -> Self {
        Self {
            unescape: Unescape::default(),
            content,
        }
    }

    pub(super) fn read(&mut self, piece: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        let plain = self.unescape.read(piece);
        self.content.read(&plain, judge)
    }

    pub(super) fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        self.content.finish(judge)
    }
}

impl<B: InnerContent> OpenContent<B> {
    /// What happens in it; whether it is over.
    pub(super) fn is_over(&mut self, event: JsonEvent<'_>) -> bool {
        match event {
            JsonEvent::Closes if self.open == 0 => return true,
            JsonEvent::Closes => self.open -= 1,
            JsonEvent::Opens(_) => self.open += 1,
            JsonEvent::Key(text) if self.open == 0 => self.key(text),
            JsonEvent::Text(text) if self.open == 0 => self.value(text),
            JsonEvent::Key(_) | JsonEvent::Text(_) | JsonEvent::Piece(_) => {}
        }
        self.pass(event);
        false
    }

    fn pass(&mut self, event: JsonEvent<'_>) {
        let (place, asked) = (self.place, &mut self.asked);
        if let Some(requests) = &mut self.requests {
            let mut keep = |asks: Asks<'_>| {
                asked.keep(asks);
                Ok(())
            };
            // What is kept is refused by nobody yet.
            let _kept = requests.take(event, place, &mut keep);
        }
    }

    fn key(&mut self, text: &[u8]) {
        let name = unescaped(text).unwrap_or_default();
        let name = name.trim();
        let keys = may_hold_key(name.as_bytes()).then(Keys::new);
        let asks_for = |keys: &Keys| keys.own.may_be(name) || keys.tunnels.may_be(name);
        self.asks = keys.filter(asks_for).map(|_| Override);
    }

    fn value(&mut self, text: &[u8]) {
        if self.asks.take().is_none() {
            return;
        }
        match unescaped(text).filter(|_| text.len() < TEXT_BYTES_MAX) {
            Some(value) => self.asked.keep(Asks::Tunnelled {
                key: KEY,
                value: &value,
            }),
            None => self.asked.keep(Asks::Unread(UNENDED)),
        }
    }
}

impl<B: InnerContent> BatchItem<B> {
    pub(super) fn new(stands: Stands) -> Self {
        Self {
            key: None,
            methods: Vec::new(),
            addresses: Vec::new(),
            fields: Vec::new(),
            stands,
            address: Length::Known,
            text: None,
            asked: KeptAsks::default(),
        }
    }

    /// Its content is an object or a list.
    pub(super) fn opens(&self, what: JsonContainer, depth: InnerDepth) -> OpenContent<B> {
        let mut addresses = self.addresses.iter();
        let may = self.addresses.is_empty() || addresses.any(|address| takes_batches(address));
        let requests = depth.below().map(|below| Box::new(BatchState::new(below)));
        let mut content = OpenContent {
            open: 0,
            asks: None,
            place: if may {
                NotJson::Unsaid
            } else {
                NotJson::Elsewhere
            },
            requests,
            asked: KeptAsks::default(),
        };
        if content.requests.is_none() {
            content.asked.keep(Asks::Unread(TOO_DEEP));
        }
        content.pass(JsonEvent::Opens(what));
        content
    }

    /// That is over.
    pub(super) fn holds(&mut self, content: OpenContent<B>) {
        self.asked.add(content.asked);
    }

    /// Some of a text in it.
    pub(super) fn piece(&mut self, piece: &[u8], depth: InnerDepth) {
        if self.key != Some(LastMember::Content) {
            return;
        }
        let Some(below) = depth.below() else {
            self.asked.keep(Asks::Unread(TOO_DEEP));
            return;
        };
        let asked = &mut self.asked;
        let text = self
            .text
            .get_or_insert_with(|| TextContent::new(B::of_text(below)));
        let _kept = text.read(piece, &mut |asks| {
            asked.keep(asks);
            Ok(())
        });
    }

    /// A text in it is over.
    pub(super) fn value(&mut self, text: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        if let Some(mut text) = self.text.take() {
            let asked = &mut self.asked;
            let _kept = text.finish(&mut |asks| {
                asked.keep(asks);
                Ok(())
            });
        }
        let values = match self.key.take() {
            Some(LastMember::Method) => &mut self.methods,
            Some(LastMember::Address) => &mut self.addresses,
            Some(LastMember::Place) => {
                self.stands = Stands::Elsewhere;
                &mut self.addresses
            }
            Some(_) | None => return Ok(()),
        };
        match unescaped(text).filter(|_| text.len() < TEXT_BYTES_MAX) {
            Some(value) if values.len() < VALUES_MAX => values.push(value),
            Some(_) => return judge(Asks::Unread(UNENDED)),
            None => self.address = Length::TooLong,
        }
        Ok(())
    }

    /// One of its fields, with its value unless that is too long.
    pub(super) fn field(
        &mut self,
        name: &str,
        value: Option<String>,
        judge: Judge<'_>,
    ) -> Result<(), Refused> {
        let Some(value) = value else {
            // Cookies and tokens may be long, and ask for nothing.
            let name = name.to_ascii_lowercase();
            let matters = MATTERING.iter().any(|word| name.contains(word));
            return if matters {
                judge(Asks::Unread(FIELD_UNENDED))
            } else {
                Ok(())
            };
        };
        if self.fields.len() >= FIELDS_MAX {
            return judge(Asks::Unread(FIELD_UNENDED));
        }
        self.fields.push((name.trim().to_owned(), value));
        Ok(())
    }

    /// Each method with each address, since readers disagree about names that come again.
    pub(super) fn ends(&self, judge: Judge<'_>) -> Result<(), Refused> {
        if self.methods.is_empty() {
            if self.stands == Stands::Elsewhere {
                return Ok(());
            }
            return self.addresses.iter().try_for_each(|target| {
                judge(Asks::Fetched { target })?;
                self.content((USUAL_METHOD, target), judge)
            });
        }
        if self.address == Length::TooLong {
            return judge(Asks::Unread(UNENDED));
        }
        for method in &self.methods {
            // Without an address it asks for nothing by itself.
            if self.addresses.is_empty() {
                self.content((method, ""), judge)?;
            }
            for target in &self.addresses {
                judge(Asks::Item { method, target })?;
                self.content((method, target), judge)?;
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

    /// What its content asks for, of a request by this method to this address.
    fn content(&self, (method, target): (&str, &str), judge: Judge<'_>) -> Result<(), Refused> {
        let by = InnerPlace::Item;
        self.asked.judged(&mut |asks| {
            judge(Asks::Within {
                by,
                method,
                target,
                asks: &asks,
            })
        })
    }
}
