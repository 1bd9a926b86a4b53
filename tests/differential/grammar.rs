//! Targets and queries made of what parsers disagree about.

use std::fmt::Write as _;

/// A xorshift generator: the same seed makes the same texts everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut own = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| {
            own.next();
        });
        own
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a bound that fits");
        usize::try_from((self.next() >> 11) % bound).expect("a number below the bound")
    }

    pub(crate) fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const BEGINNINGS: &[&str] = &[
    "/",
    "/",
    "/",
    "//",
    "//",
    "///",
    "////",
    "/%2f",
    "/%2F/",
    "/\\",
    "/\\\\",
    "/%5c",
    "/%5C%5C",
    "/%252f",
    "/%255c",
    "/.//",
    "/./",
    "/x/..//",
    "/x/../",
    "/;//",
    "/;/",
    "/%2e//",
    "/%20//",
    "/pub//",
    "/pub/../",
    "/pub/..//",
    "/pub",
    "/pub/",
    "/pub/",
    "/pub/",
    "/admin",
    "//pub/",
    "//x/",
    "//x",
    "//pub@x/",
    "//x:80/",
    "//[::1]/",
    "//x:pub/",
    "/http:",
    "/http:/",
    "/http://x/",
    "/x:",
    "/:80/",
    "//:80/",
    "//@/",
    "/%3f",
    "/%23",
    "/*",
];

const PIECES: &[&str] = &[
    "/",
    "/",
    "/",
    "//",
    "///",
    "x",
    "a",
    "admin",
    "pub",
    "k",
    "ADMIN",
    "Pub",
    "%61dmin",
    "%70ub",
    "%2561dmin",
    "adm%69n",
    "%41dmin",
    "%2f",
    "%2F",
    "%5c",
    "\\",
    "%252f",
    "%255c",
    "%25252f",
    "%2f%2f",
    "..",
    "/..",
    "/../",
    "/./",
    ".",
    "%2e",
    "%2e%2e",
    "%2e.",
    "..%2f",
    "%252e%252e",
    ";",
    ";a=b",
    "/;",
    "..;",
    "..;/",
    ";/..",
    "/;x/",
    "@",
    "user@",
    ":",
    ":80",
    ":x",
    "[::1]",
    "localhost",
    "127.0.0.1",
    "http:",
    "https://",
    "file:",
    "%3f",
    "%23",
    "%253f",
    "%3f/",
    "%23/",
    "%20",
    "%20/",
    "/%20",
    "+",
    "%c3%a4",
    "%e2%80%8b",
    "%ef%bc%8f",
    "%e2%88%95",
    "%ff",
    "%a0",
    "%85",
    "%e3%80%80",
    "|",
    "{",
    "}",
    "[",
    "]",
    "^",
    "`",
    "\"",
    "<",
    ">",
    "&",
    "=",
    "~",
    "*",
    "$",
    ",",
    "!",
    "'",
    "(",
    ")",
    "-",
    "_",
    "%25",
    "%2b",
    "%7f",
    "%09",
    "%0d%0a",
    "%c5%bf",
    "?",
    "?q=/admin",
    "?/../admin",
    "?a=//x/admin",
];

const ENDS: &[&str] = &[
    "",
    "",
    "/",
    "admin/k",
    "admin",
    "/admin/k",
    "/admin/k",
    "/admin/",
    "/admin",
    "//admin/k",
    "/../admin/k",
    "%2fadmin/k",
    "\\admin\\k",
    "/admin;x/k",
    "/admin%20",
    "/admin.",
    "/admin?x",
    "/admin%3fx",
    "/admin%23x",
    "/pub/f",
    "/pub",
    "/pub/../admin/k",
    "/..;/admin/k",
    "/k",
];

/// A request target; many are refused.
pub(crate) fn target(random: &mut Random) -> String {
    let mut out = random.one(BEGINNINGS).to_owned();
    for _ in 0..random.below(6) {
        out.push_str(random.one(PIECES));
    }
    out.push_str(random.one(ENDS));
    out
}

const BEFORE: &[&str] = &[
    "",
    "",
    "",
    "",
    "",
    "+",
    "%20",
    "++",
    "%09",
    "%0a",
    "%0d",
    "%0b",
    "%0c",
    "%a0",
    "%c2%a0",
    "%e3%80%80",
    "%ef%bb%bf",
    ".",
    "_",
    "[",
    "]",
    "[[",
    "!",
    "?",
    "%3f",
    "x",
    "x&",
    "%26",
    "amp;",
    "-",
    "$",
    "%ff",
    "%00",
    "%7f",
    "%1f",
    "/",
    "#",
    "%23",
    "x[",
    "(",
];

const AFTER: &[&str] = &[
    "",
    "",
    "",
    "",
    "",
    "[]",
    "[0]",
    "[x]",
    "[",
    "]",
    "[]]",
    "[[]",
    "[a][b]",
    "[a]b",
    "%5b%5d",
    "%5B0%5D",
    "[%5d",
    "+",
    "%20",
    ".",
    ".x",
    "%2ex",
    ".0",
    "%00",
    "%00x",
    ":",
    ":list",
    "(1i)",
    "\\",
    "*",
    "?",
    "%3d",
    "%253d",
    "%3duser%26",
    "_",
    "[+]",
    "%255b%255d",
    "%ef%bb%bf",
    "%c2%a0",
    "[100]",
    "[a.b]",
    "][",
    "[=]",
];

const VALUES: &[&str] = &[
    "user",
    "user",
    "user",
    "user",
    "admin",
    "admin",
    "admin",
    "adm%69n",
    "%61dmin",
    "u%73er",
    "ADMIN",
    "admin+",
    "+admin",
    "%20admin",
    "user,admin",
    "user%2cadmin",
    "admin,user",
    "admin%26",
    "user%26role=admin",
    "",
    "user;role=admin",
    "user;admin",
    "user?role=admin",
    "=admin",
    "%3dadmin",
    "us%2565r",
    "adm%2569n",
    "%ffadmin",
    "admin%ff",
    "user%ff",
    "user%00admin",
    "%ef%bb%bfadmin",
    "admin[]",
    "user|admin",
    "user%7cadmin",
    "user%0aadmin",
    "user+",
    "user%20",
    "user%26role%3dadmin",
    "user%2526role%253dadmin",
    "x%26role=admin",
    "x%3brole%3dadmin",
    "x%3frole%3dadmin",
    "https%3a%2f%2fx%3fa%3d1%26role%3dadmin",
    "user%23",
    "user%3b",
    "admin%2523",
    "&#97;dmin",
    "%26%2397%3bdmin",
    "user,user",
];

const BETWEEN: &[&str] = &[
    "&", "&", "&", "&", "&", ";", "&&", "&amp;", "?", "&+", "&%20", "=", ",", "%26", "|", "&=&",
    "%2526", "%3b", "%3f", "%23", "%3d",
];

/// A key that some parser may take for one of the two that rules name.
fn key(random: &mut Random) -> String {
    let mut out = String::new();
    let joint = [
        "_", "_", ".", "+", "%20", "[", "%5b", "%2e", "%5f", "_%20", "]", "-", "%09", "[_", "[id]",
    ];
    match random.below(10) {
        0 | 1 => {
            out.push_str("user");
            out.push_str(random.one(&joint));
            out.push_str("id");
        }
        2 => out.push_str(random.one(&[
            "[role]",
            "[role",
            "role]",
            "[user_id]",
            "[user][id]",
            "%5brole%5d",
            "__proto__[role]",
            "[][role]",
            "a[role]",
        ])),
        3 => out.push_str(random.one(&[
            "x",
            "a[b]",
            "utf8",
            "_charset_",
            "__proto__",
            "constructor",
            "",
        ])),
        _ => out.push_str("role"),
    }
    let mut spelled = String::new();
    for letter in out.chars() {
        match random.below(24) {
            0 if letter.is_ascii_alphabetic() => spelled.push(letter.to_ascii_uppercase()),
            1 if letter.is_ascii_alphabetic() => {
                let _ = write!(spelled, "%{:02x}", u32::from(letter));
            }
            2 if random.below(4) == 0 && letter.is_ascii_alphabetic() => {
                let _ = write!(spelled, "%25{:02X}", u32::from(letter));
            }
            _ => spelled.push(letter),
        }
    }
    spelled
}

/// A query; some are refused.
pub(crate) fn query(random: &mut Random) -> String {
    let mut out = String::new();
    // What a rule that allows wants is there more often than by chance.
    if random.below(2) == 0 {
        out.push_str(random.one(&["role=user", "user_id=user", "role=user&user_id=user"]));
        out.push_str(random.one(BETWEEN));
    }
    if random.below(400) == 0 {
        for _ in 0..random.below(1100) {
            out.push_str("x=1&");
        }
    }
    for _ in 0..=random.below(3) {
        out.push_str(random.one(BEFORE));
        out.push_str(&key(random));
        out.push_str(random.one(AFTER));
        if random.below(12) != 0 {
            out.push('=');
            out.push_str(random.one(VALUES));
        }
        out.push_str(random.one(BETWEEN));
    }
    out
}

/// Signs that begin a query, or one more pair of it, where a path is handed on as text.
const SIGNS: &[&str] = &[
    "%3f", "%3F", "%253f", "%25253f", "&", "%26", "%2526", ";", "%3b", "%23", "/", "%2f", "%26/",
];

/// A target whose path some server takes for a part of its query.
pub(crate) fn disguised(random: &mut Random) -> String {
    let places = [
        "/x", "/x/", "/u/x", "/u/", "/u/x/y", "/s/x", "/s/", "/s/x/y",
    ];
    let mut out = random.one(&places).to_owned();
    for _ in 0..=random.below(3) {
        out.push_str(random.one(SIGNS));
        out.push_str(&key(random));
        out.push_str(random.one(&["=", "=", "%3d", "%253d", "[]=", ""]));
        out.push_str(random.one(VALUES));
    }
    match random.below(4) {
        0 => {}
        1 => out.push_str("?role=user"),
        2 => out.push_str("?a=1"),
        _ => {
            out.push('?');
            out.push_str(&query(random));
        }
    }
    out
}
