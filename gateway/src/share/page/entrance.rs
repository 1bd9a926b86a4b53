//! Who may see the live page: a code lets one browser in, once and soon, and gives it a cookie
//! that holds for a while. Both are kept as hashes, few of each, the oldest given up first.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::random;

/// The name of the cookie.
pub(super) const COOKIE: &str = "outgate";
/// How long a cookie holds: a working day.
pub(super) const COOKIE_TIME: Duration = Duration::from_hours(12);
/// How long a code waits for its browser.
const CODE_TIME: Duration = Duration::from_mins(2);
/// Codes that wait at once.
const CODES_MAX: usize = 8;
/// Browsers that are let in at once.
const COOKIES_MAX: usize = 16;
/// Bytes of a secret.
const SECRET_BYTES: usize = 32;
/// Bytes of the name of the page's host.
const NAME_BYTES: usize = 12;

type Hash = [u8; 32];

/// See the head of this file.
#[derive(Default)]
pub(super) struct PageEntrance(Mutex<AdmittedBrowsers>);

#[derive(Default)]
struct AdmittedBrowsers {
    codes: VecDeque<(Hash, Instant)>,
    cookies: VecDeque<(Hash, Instant)>,
}

impl std::fmt::Debug for PageEntrance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PageEntrance")
    }
}

/// A name that nobody guesses, for a host.
pub(super) fn random_name() -> Result<String, String> {
    let mut bytes = [0; NAME_BYTES];
    random::fill(&mut bytes)?;
    Ok(format!("outgate-{}", HEXLOWER.encode(&bytes)))
}

fn secret() -> Result<String, String> {
    let mut bytes = [0; SECRET_BYTES];
    random::fill(&mut bytes)?;
    Ok(HEXLOWER.encode(&bytes))
}

fn hash(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

/// Keeps one more for a time.
fn keep(all: &mut VecDeque<(Hash, Instant)>, most: usize, secret: &str, until: Instant) {
    while all.len() >= most {
        all.pop_front();
    }
    all.push_back((hash(secret), until));
}

impl PageEntrance {
    /// A new code.
    ///
    /// # Errors
    /// There are no random numbers.
    pub(super) fn code(&self, now: Instant) -> Result<String, String> {
        let code = secret()?;
        let broken = || "the live page is closed".to_owned();
        let mut own = self.0.lock().map_err(|_| broken())?;
        keep(&mut own.codes, CODES_MAX, &code, now + CODE_TIME);
        Ok(code)
    }

    /// Takes a code that waits, and gives a cookie for it.
    pub(super) fn enter(&self, code: &str, now: Instant) -> Option<String> {
        let (code, cookie) = (hash(code), secret().ok()?);
        let mut own = self.0.lock().ok()?;
        own.codes.retain(|(_, until)| *until > now);
        let place = own.codes.iter().position(|(known, _)| *known == code)?;
        own.codes.remove(place)?;
        keep(&mut own.cookies, COOKIES_MAX, &cookie, now + COOKIE_TIME);
        Some(cookie)
    }

    /// Whether a cookie holds.
    pub(super) fn knows(&self, cookie: &str, now: Instant) -> bool {
        let cookie = hash(cookie);
        let Ok(own) = self.0.lock() else {
            return false;
        };
        let mut cookies = own.cookies.iter();
        cookies.any(|(known, until)| *known == cookie && *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_lets_one_in_once_and_soon_and_a_cookie_ends() {
        let (entrance, now) = (PageEntrance::default(), Instant::now());
        let code = entrance.code(now).unwrap();
        assert_eq!(entrance.enter("", now), None);
        assert_eq!(entrance.enter(&code.to_uppercase(), now), None);
        let cookie = entrance.enter(&code, now).expect("a cookie");
        assert_eq!(entrance.enter(&code, now), None, "once");
        assert!(entrance.knows(&cookie, now));
        assert!(!entrance.knows(&code, now) && !entrance.knows("", now));
        assert!(!entrance.knows(&cookie, now + COOKIE_TIME));
        let late = entrance.code(now).unwrap();
        assert_eq!(entrance.enter(&late, now + CODE_TIME), None, "soon");
    }

    #[test]
    fn many_codes_and_cookies_push_out_the_oldest() {
        let (entrance, now) = (PageEntrance::default(), Instant::now());
        let first = entrance.code(now).unwrap();
        let cookie = entrance.enter(&first, now).unwrap();
        let early = entrance.code(now).unwrap();
        for _ in 0..CODES_MAX {
            entrance.code(now).unwrap();
        }
        assert_eq!(entrance.enter(&early, now), None);
        for _ in 0..COOKIES_MAX {
            let code = entrance.code(now).unwrap();
            entrance.enter(&code, now).unwrap();
        }
        assert!(!entrance.knows(&cookie, now));
        assert_ne!(random_name().unwrap(), random_name().unwrap());
    }
}
