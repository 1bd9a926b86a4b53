//! The head of a part as those read it to whom only CR LF CR LF ends one (Rack): of a part
//! whose lines end with LF, or without a head, it goes on in what others take for its
//! content. Keeps a bounded piece; changes nothing.

use memchr::memmem;

use super::words;

/// What ends such a head.
const END: &[u8] = b"\r\n\r\n";

/// Bytes of a line behind a name that are looked at.
const NAME_BYTES_MAX: usize = 512;

/// Names of fields that give a part its name: RFC 7578 4.2, and what Rack takes for it.
pub(super) const NAMING: [&str; 2] = ["content-disposition", "content-id"];

/// Whether such a head could name a key for the method.
#[derive(Debug, Default)]
pub(super) struct Late {
    place: Place,
    /// Whether a content-disposition was seen.
    disposed: Seen,
    key: Seen,
    /// The last bytes, which may begin something that is looked for.
    recent: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Over,
    Within,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Seen {
    #[default]
    No,
    Yes,
}

impl Late {
    /// Goes on behind a head, with the line that ended it for others.
    pub(super) fn begin(&mut self, head: &[u8], last: &[u8]) {
        if self.place == Place::Over {
            *self = Self::default();
        }
        self.place = Place::Within;
        let [disposition, _] = NAMING;
        if memmem::find(&head.to_ascii_lowercase(), disposition.as_bytes()).is_some() {
            self.disposed = Seen::Yes;
        }
        self.recent = last.to_vec();
    }

    /// No such head is open any more.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// # Errors
    /// The head is over, and could name a key.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        if self.place == Place::Over {
            return Ok(());
        }
        let mut window = std::mem::take(&mut self.recent);
        window.extend_from_slice(bytes);
        let Some(end) = memmem::find(&window, END) else {
            let keep = self.look(&window, Seen::No);
            self.recent = window.get(keep..).unwrap_or_default().to_vec();
            return Ok(());
        };
        self.look(window.get(..end).unwrap_or_default(), Seen::Yes);
        let key = self.key;
        self.end();
        if key == Seen::Yes {
            return Err("a part whose head goes on for some");
        }
        Ok(())
    }

    /// Looks for names; from where on they are not yet known. `over` where nothing follows.
    fn look(&mut self, window: &[u8], over: Seen) -> usize {
        let lower = window.to_ascii_lowercase();
        let [disposition, id] = NAMING;
        let mut from = 0;
        if self.disposed == Seen::No {
            match memmem::find(&lower, disposition.as_bytes()) {
                Some(at) => {
                    self.disposed = Seen::Yes;
                    from = at;
                }
                None => from = lower.len(),
            }
        }
        let behind = lower.get(from..).unwrap_or_default();
        let names = memmem::find_iter(behind, b"name").map(|at| (from + at, Naming::Name));
        let ids = memmem::find_iter(&lower, id.as_bytes()).map(|at| (at, Naming::Id));
        let longest = disposition.len();
        let mut keep = window.len().saturating_sub(longest);
        for (at, naming) in names.chain(ids) {
            let rest = window.get(at..).unwrap_or_default();
            if over == Seen::No && rest.len() < NAME_BYTES_MAX {
                keep = keep.min(at);
            }
            let rest = rest.get(..NAME_BYTES_MAX).unwrap_or(rest);
            if naming.may_be_key(rest) {
                self.key = Seen::Yes;
            }
        }
        keep
    }
}

/// What gives the name.
#[derive(Debug, Clone, Copy)]
enum Naming {
    Name,
    Id,
}

impl Naming {
    /// Whether a key could stand behind it, in its line.
    fn may_be_key(self, text: &[u8]) -> bool {
        let value = match self {
            Self::Name => words::names(text.get(..64).unwrap_or(text))
                .next()
                .and_then(|short| {
                    let at = text.get(..64).unwrap_or(text).len() - short.len();
                    text.get(at..)
                }),
            Self::Id => text
                .get(NAMING[1].len()..)
                .and_then(|rest| rest.trim_ascii_start().strip_prefix(b":")),
        };
        let Some(value) = value else {
            return false;
        };
        let value = value.trim_ascii_start();
        let end = memchr::memchr2(b'\r', b'\n', value).unwrap_or(value.len());
        words::may_hold_key(value.get(..end).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_that_could_be_a_key_counts() {
        for (head, rest, passes) in [
            (
                "",
                "content-disposition: a; name=_method\r\n\r\nDELETE",
                false,
            ),
            (
                "",
                "x Content-Disposition: a; pad=\"PAD\"; name=\"_method\"\r\n\r\nDELETE",
                false,
            ),
            (
                "",
                "content-disposition: a; name=\"=?utf-8?B?X21ldGhvZA==?=\"\r\n\r\n",
                false,
            ),
            (
                "Content-Disposition: a",
                "; name=_method\r\n\r\nDELETE",
                false,
            ),
            ("", "content-id: _method\r\n\r\nDELETE", false),
            // To nobody does that head end.
            ("", "content-disposition: a; name=_method\n\nDELETE", true),
            ("", "; name=_method\r\n\r\nDELETE", true),
            (
                "",
                "content-disposition: a; name=b; filename=_method.py\r\n\r\nx",
                false,
            ),
            (
                "",
                "Content-Disposition: inline\r\n\r\n; name=_method",
                true,
            ),
            (
                "",
                "content-disposition and content-id are fields of a method\r\n\r\nx",
                true,
            ),
            ("", "PAD\r\n\r\nPAD", true),
        ] {
            let rest = rest.replace("PAD", &"A".repeat(3000));
            for size in [1, 7, 64, 600, rest.len()] {
                let mut late = Late::default();
                late.begin(head.as_bytes(), b"\n");
                let mut pieces = rest.as_bytes().chunks(size);
                let read = pieces.try_for_each(|piece| late.read(piece));
                assert_eq!(read.is_ok(), passes, "{rest} in pieces of {size}");
                assert!(late.recent.len() <= NAME_BYTES_MAX + 32);
            }
        }
    }
}
