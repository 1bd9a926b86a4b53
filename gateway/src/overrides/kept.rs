//! What the content of a request asks for, kept until the request itself is known: in JSON
//! its address may stand behind its content. Bounded; text only.

use super::asks::{Asks, InnerPlace, Judge, Refused};

/// How much is kept of one content, at most.
const ASKS_MAX: usize = 256;
const BYTES_MAX: usize = 64 << 10;

/// What is said of more.
const UNENDED: &str = "a request whose content asks for too much";

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct KeptAsks {
    asks: Vec<OwnAsks>,
    bytes: usize,
}

/// The same as [`Asks`], with its texts.
#[derive(Debug)]
enum OwnAsks {
    Method {
        key: String,
        value: String,
    },
    Tunnelled {
        key: String,
        value: String,
    },
    Named {
        key: String,
        value: String,
    },
    Request {
        method: String,
        target: String,
    },
    Item {
        method: String,
        target: String,
    },
    Fetched {
        target: String,
    },
    Field {
        method: String,
        target: String,
        name: String,
        value: String,
    },
    Within {
        by: InnerPlace,
        method: String,
        target: String,
        asks: Box<OwnAsks>,
    },
    Unread(&'static str),
    UnreadMethod(&'static str),
}

impl KeptAsks {
    /// Keeps one more; of what is too much, that it is.
    pub(super) fn keep(&mut self, asks: Asks<'_>) {
        self.push(OwnAsks::of(asks));
    }

    fn push(&mut self, own: OwnAsks) {
        self.bytes = self.bytes.saturating_add(own.bytes());
        if self.asks.len() < ASKS_MAX && self.bytes <= BYTES_MAX {
            self.asks.push(own);
        } else {
            self.asks = vec![OwnAsks::Unread(UNENDED)];
            self.bytes = usize::MAX;
        }
    }

    /// Keeps those of another content too.
    pub(super) fn add(&mut self, other: Self) {
        other.asks.into_iter().for_each(|own| self.push(own));
    }

    /// Judges each of them.
    pub(super) fn judged(&self, judge: Judge<'_>) -> Result<(), Refused> {
        self.asks.iter().try_for_each(|asks| asks.judged(judge))
    }
}

impl OwnAsks {
    fn of(asks: Asks<'_>) -> Self {
        let own = str::to_owned;
        match asks {
            Asks::Method { key, value } => Self::Method {
                key: own(key),
                value: own(value),
            },
            Asks::Tunnelled { key, value } => Self::Tunnelled {
                key: own(key),
                value: own(value),
            },
            Asks::Named { key, value } => Self::Named {
                key: own(key),
                value: own(value),
            },
            Asks::Request { method, target } => Self::Request {
                method: own(method),
                target: own(target),
            },
            Asks::Item { method, target } => Self::Item {
                method: own(method),
                target: own(target),
            },
            Asks::Fetched { target } => Self::Fetched {
                target: own(target),
            },
            Asks::Field {
                method,
                target,
                name,
                value,
            } => Self::Field {
                method: own(method),
                target: own(target),
                name: own(name),
                value: own(value),
            },
            Asks::Within {
                by,
                method,
                target,
                asks,
            } => Self::Within {
                by,
                method: own(method),
                target: own(target),
                asks: Box::new(Self::of(*asks)),
            },
            Asks::Unread(what) => Self::Unread(what),
            Asks::UnreadMethod(what) => Self::UnreadMethod(what),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Method { key, value }
            | Self::Tunnelled { key, value }
            | Self::Named { key, value } => key.len() + value.len(),
            Self::Request { method, target } | Self::Item { method, target } => {
                method.len() + target.len()
            }
            Self::Fetched { target } => target.len(),
            Self::Field {
                method,
                target,
                name,
                value,
            } => method.len() + target.len() + name.len() + value.len(),
            Self::Within {
                method,
                target,
                asks,
                ..
            } => method.len() + target.len() + asks.bytes(),
            Self::Unread(_) | Self::UnreadMethod(_) => 0,
        }
    }

    fn judged(&self, judge: Judge<'_>) -> Result<(), Refused> {
        judge(match self {
            Self::Method { key, value } => Asks::Method { key, value },
            Self::Tunnelled { key, value } => Asks::Tunnelled { key, value },
            Self::Named { key, value } => Asks::Named { key, value },
            Self::Request { method, target } => Asks::Request { method, target },
            Self::Item { method, target } => Asks::Item { method, target },
            Self::Fetched { target } => Asks::Fetched { target },
            Self::Field {
                method,
                target,
                name,
                value,
            } => Asks::Field {
                method,
                target,
                name,
                value,
            },
            Self::Within {
                by,
                method,
                target,
                asks,
            } => {
                return asks.judged(&mut |asks| {
                    judge(Asks::Within {
                        by: *by,
                        method,
                        target,
                        asks: &asks,
                    })
                });
            }
            Self::Unread(what) => Asks::Unread(what),
            Self::UnreadMethod(what) => Asks::UnreadMethod(what),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_again_and_is_bounded() {
        let method = Asks::Method {
            key: "_method",
            value: "DELETE",
        };
        let within = Asks::Within {
            by: InnerPlace::Item,
            method: "POST",
            target: "/a",
            asks: &method,
        };
        let mut kept = KeptAsks::default();
        kept.keep(within);
        let mut found = Vec::new();
        kept.judged(&mut |asks| {
            found.push(format!("{asks:?}"));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [format!("{within:?}")]);
        for (value, count) in [("x", 2 * ASKS_MAX), (&*"x".repeat(BYTES_MAX), 1)] {
            let mut kept = KeptAsks::default();
            for _ in 0..count {
                kept.keep(Asks::Named {
                    key: "method",
                    value,
                });
            }
            assert_eq!(kept.asks.len(), 1);
            let mut told = |asks: Asks<'_>| {
                assert_eq!(asks, Asks::Unread(UNENDED));
                Err(Refused)
            };
            assert_eq!(kept.judged(&mut told), Err(Refused));
        }
    }
}
