//! Which sandbox a client of the explicit proxy is, by the credentials that it shows. A token
//! is kept as its hash alone; the sandbox of one that ended is nobody's any more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outgate_handoff::{TOKEN_DIGEST_BYTES, TokenFrame};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep_until};

use crate::session::Session;

/// A token as it is kept and compared.
type TokenDigest = [u8; TOKEN_DIGEST_BYTES];

/// What a client shows: the hash of a token, and the name that it goes with.
pub(super) struct Credentials {
    /// `None`: the token alone says it (RFC 6750 2.1).
    name: Option<String>,
    digest: TokenDigest,
}

impl Credentials {
    /// A user and a password, which is the token.
    pub(super) fn named(name: &[u8], token: &[u8]) -> Option<Self> {
        Some(Self {
            name: Some(String::from_utf8(name.to_vec()).ok()?),
            digest: Sha256::digest(token).into(),
        })
    }

    /// Reads the value of Proxy-Authorization (RFC 9110 11.7.2): Basic or Bearer.
    pub(super) fn of_field(value: &[u8]) -> Option<Self> {
        let space = value.iter().position(|byte| *byte == b' ')?;
        let (scheme, rest) = value.split_at_checked(space)?;
        let shown = rest.trim_ascii();
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return Some(Self {
                name: None,
                digest: Sha256::digest(shown).into(),
            });
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let pair = zeroize::Zeroizing::new(STANDARD.decode(shown).ok()?);
        let colon = pair.iter().position(|byte| *byte == b':')?;
        let (name, token) = pair.split_at_checked(colon)?;
        Self::named(name, token.strip_prefix(b":")?)
    }
}

/// The sandbox of a token.
#[derive(Debug)]
struct TokenEntry {
    digest: TokenDigest,
    session: Arc<Session>,
    until: Option<Instant>,
    number: u64,
}

/// All that are in force, by their names.
#[derive(Debug, Default)]
pub(crate) struct TokenRegistry {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_name: BTreeMap<String, TokenEntry>,
    count: u64,
}

/// A token that is in force: until this is dropped.
#[derive(Debug)]
pub(crate) struct TokenInForce {
    registry: Arc<TokenRegistry>,
    name: String,
    number: u64,
    until: Option<Instant>,
}

impl TokenRegistry {
    /// Lets clients in that show this token; one of the same name is void with it.
    pub(crate) fn enter(
        self: &Arc<Self>,
        token: TokenFrame,
        session: &Arc<Session>,
    ) -> TokenInForce {
        let left = token.left_ms.map(Duration::from_millis);
        let until = left.and_then(|left| Instant::now().checked_add(left));
        let mut number = 0;
        if let Ok(mut entries) = self.entries.lock() {
            entries.count = entries.count.saturating_add(1);
            number = entries.count;
            let entry = TokenEntry {
                digest: token.digest,
                session: Arc::clone(session),
                until,
                number,
            };
            entries.by_name.insert(token.name.clone(), entry);
        }
        TokenInForce {
            registry: Arc::clone(self),
            name: token.name,
            number,
            until,
        }
    }

    /// The sandbox of who shows this; nothing says whether a name or a token was wrong, or what
    /// was right until a moment ago.
    pub(super) fn session(&self, shown: &Credentials) -> Option<Arc<Session>> {
        let entries = self.entries.lock().ok()?;
        let now = Instant::now();
        // Each is compared whole, whatever came of those before.
        let mut found = None;
        for (name, entry) in &entries.by_name {
            let is_named = shown.name.as_ref().is_none_or(|shown| shown == name);
            let is_token = same(&entry.digest, &shown.digest);
            let is_good = entry.until.is_none_or(|until| now < until);
            if [is_named, is_token, is_good].iter().all(|is| *is) {
                found = Some(Arc::clone(&entry.session));
            }
        }
        found
    }
}

impl TokenInForce {
    /// Returns when its time is over.
    pub(crate) async fn over(&self) {
        match self.until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for TokenInForce {
    fn drop(&mut self) {
        if let Ok(mut entries) = self.registry.entries.lock()
            && let Some(entry) = entries.by_name.get(&self.name)
            && entry.number == self.number
        {
            entries.by_name.remove(&self.name);
        }
    }
}

/// Whether two hashes are the same, in a time that does not depend on where they differ.
fn same(one: &TokenDigest, other: &TokenDigest) -> bool {
    let pairs = one.iter().zip(other);
    let differing = pairs.fold(0, |bits, (one, other)| {
        std::hint::black_box(bits | (one ^ other))
    });
    differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &str) -> Option<(Option<String>, TokenDigest)> {
        let read = Credentials::of_field(value.as_bytes())?;
        Some((read.name, read.digest))
    }

    #[test]
    fn credentials_are_read_from_both_schemes_and_nothing_else() {
        let digest = |token: &str| TokenDigest::from(Sha256::digest(token));
        let named = |name: &str, token: &str| Some((Some(name.to_owned()), digest(token)));
        // `a:t`, `a:t:u`, `a:`, `at`, and a name that is not UTF-8.
        for (value, read) in [
            ("Basic YTp0", named("a", "t")),
            ("bASIC  YTp0", named("a", "t")),
            ("Basic YTp0OnU=", named("a", "t:u")),
            ("Basic YTo=", named("a", "")),
            ("Basic YXQ=", None),
            ("Basic /zp0", None),
            ("Basic YTp0=", None),
            ("Basic", None),
            ("Basic ", None),
            ("Bearer t", Some((None, digest("t")))),
            ("Digest YTp0", None),
            ("YTp0", None),
            ("", None),
        ] {
            assert_eq!(shown(value), read, "{value}");
        }
    }

    #[test]
    fn hashes_are_the_same_in_every_byte_or_differ() {
        let one = TokenDigest::from(Sha256::digest("one"));
        assert!(same(&one, &one));
        for position in 0..one.len() {
            let mut other = one;
            other[position] ^= 1;
            assert!(!same(&one, &other), "{position}");
        }
    }
}
