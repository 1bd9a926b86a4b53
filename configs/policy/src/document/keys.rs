//! The keys of a policy document and of a manifest: those of each table, what a value is, and
//! a word about it. The reader knows no others, and a schema for editors is made of the same.

use super::DNS_PINS;
use super::audit::FULL;
use super::inspect::{MODES, TENANTS, UNSCANNABLE};
use super::known::PRECAUTIONS;
use super::tls::INTERCEPTS;
use crate::expected::EXPECTED;

use KeyValue::{
    Count, Policies, Quantity, Rules, Switch, Table, Tables, Text, TextMap, Texts, Word,
};

/// One key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What its value is.
    pub value: KeyValue,
    /// What it does, for who writes one.
    pub about: &'static str,
    /// Whether a table without it is wrong.
    pub need: KeyNeed,
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyNeed {
    /// It must.
    Always,
    /// It need not.
    Free,
}

/// What the value of a key is.
#[derive(Debug, Clone, Copy)]
pub enum KeyValue {
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// `true` or `false`.
    Switch,
    /// A whole number above 0.
    Count,
    /// A text with a unit, as this one.
    Quantity(&'static str),
    /// One of these words.
    Word(fn() -> Vec<&'static str>),
    /// A table with these keys.
    Table(&'static [Key]),
    /// A list of such tables.
    Tables(&'static [Key]),
    /// A list of rules: each a text, or such a table.
    Rules(&'static [Key]),
    /// A table of free names, each with a text.
    TextMap,
    /// A table of names, each with a table of these keys and those of a policy.
    Policies(&'static [Key]),
}

/// The names among these keys.
pub(crate) fn names(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

fn words<T>(pairs: &[(&'static str, T)]) -> Vec<&'static str> {
    pairs.iter().map(|(word, _)| *word).collect()
}

const fn free(name: &'static str, value: KeyValue, about: &'static str) -> Key {
    let need = KeyNeed::Free;
    Key {
        name,
        value,
        about,
        need,
    }
}

const fn needed(name: &'static str, value: KeyValue, about: &'static str) -> Key {
    let need = KeyNeed::Always;
    Key {
        name,
        value,
        about,
        need,
    }
}

/// The keys of a policy document.
#[rustfmt::skip]
pub const POLICY_KEYS: &[Key] = &[
    free("extends", Texts, "Shipped policies, and files (a path with a slash or a dot), that this one builds on; an empty list takes `base` away"),
    free("filesystem", Table(FILESYSTEM), "Files that the command may read, execute and write"),
    free("allow", Rules(GRANT), "Rules that allow"),
    free("deny", Rules(DENY), "Rules that deny, whatever others allow"),
    free("only", Rules(GRANT), "Rules beside which nothing else is allowed for their hosts"),
    free("pin", Tables(PIN), "Addresses of hosts, used instead of asking DNS"),
    free("secret", Tables(SECRET), "Secrets of which the command sees placeholders"),
    free("listen", Texts, "`[ADDR:]PORTS` on which the command may listen, beyond loopback"),
    free("dns", Table(DNS), "How names are resolved"),
    free("tls", Table(TLS), "When TLS is opened, with which authority, and as whom to whom"),
    free("inspect", Table(INSPECT), "What the scan for credentials does"),
    free("environment", Table(ENVIRONMENT), "Variables of the command"),
    free("limits", Table(LIMITS), "What the command may use at most"),
    free("audit", Table(AUDIT), "Where decisions are recorded"),
    free("note", Tables(NOTE), "Lines that the start of a command says"),
    free("denial_note", Text, "A sentence of the operator's that every denial by rules says"),
    free("arguments", Tables(ARGUMENTS), "What programs are started with besides"),
    free("test", Tables(TEST), "What `outgate policy test` expects"),
    free("strict", Switch, "Refuse what cannot be looked into, and what only may be a credential"),
    free("monitor", Switch, "Refused: whoever starts a run has it monitor, by `--monitor`"),
];

/// The keys of a manifest beside those of a policy.
pub const MANIFEST_KEYS: &[Key] = &[free(
    RUN,
    Policies(COMMAND),
    "The commands that `outgate up NAME` runs, by their names",
)];

/// The key of the commands.
pub(crate) const RUN: &str = "run";

/// The keys of a command of a manifest beside those of a policy.
#[rustfmt::skip]
pub(crate) const COMMAND: &[Key] = &[
    needed("command", Texts, "The program and its arguments"),
    free("about", Text, "What it is for, in one line"),
];

#[rustfmt::skip]
pub(super) const GRANT: &[Key] = &[
    needed("rule", Text, "[METHODS ][SCHEME://]HOST[:PORTS][/PATH][?QUERY]"),
    free("process", Texts, "Executables that it holds for, by their absolute paths"),
    free("note", Text, "Why it is there"),
    free("addresses", Texts, "Ranges of private addresses that its hosts may lead to"),
    free("budget", Quantity("10M"), "Bytes that it lets out at most"),
    free("budget_each", Quantity("64K"), "Bytes that it lets out at most in one request"),
    free("inspect", Word(|| words(&MODES)), "What the scan does with findings where it allows"),
];

#[rustfmt::skip]
pub(super) const DENY: &[Key] = &[
    needed("rule", Text, "[METHODS ][SCHEME://]HOST[:PORTS][/PATH][?QUERY][ except HOST]"),
    free("process", Texts, "Executables that it holds for, by their absolute paths"),
    free("note", Text, "Why it is there"),
];

#[rustfmt::skip]
pub(super) const FILESYSTEM: &[Key] = &[
    free("read", Texts, "Paths below which the command may read and execute"),
    free("write", Texts, "Paths below which it may write too; with a `/` at the end, made if absent"),
    free("deny", Texts, "Paths that stay closed, whatever is granted around them"),
    free("new", TextMap, "Files that are made where they are absent, with the text they begin with"),
    free("moved", TextMap, "Variables that move places of the home directory named here"),
];

pub(super) const PIN: &[Key] = &[
    needed("host", Text, "HOST or HOST:PORT"),
    needed("address", Text, "ADDRESS or ADDRESS:PORT"),
];

#[rustfmt::skip]
pub(super) const SECRET: &[Key] = &[
    needed("name", Text, "The variable that holds the placeholder"),
    needed("from", Text, "`env:NAME`, `file:PATH`, `cmd:COMMAND` (run outside), or keys that sign"),
    needed("hosts", Texts, "Where it may go: HOST[:PORT][/PATH]"),
    free("in", Texts, "Where in a request: `fields`, `query`, `path`, `content`, or names of fields"),
];

#[rustfmt::skip]
pub(super) const DNS: &[Key] = &[
    free("servers", Texts, "`system`, or addresses of name servers"),
    free("pin", Word(|| words(&DNS_PINS)), "How long a name keeps its addresses"),
];

#[rustfmt::skip]
pub(super) const TLS: &[Key] = &[
    free("intercept", Word(|| words(&INTERCEPTS)), "When TLS is opened to look inside"),
    free("authority", Text, "The directory of an authority of your own (`outgate ca create`)"),
    free("client", Tables(CLIENT), "Certificates that are presented to hosts"),
];

pub(super) const CLIENT: &[Key] = &[
    needed("host", Text, "The one host that it is presented to"),
    needed("certificate", Text, "The file with the certificate (PEM)"),
    free("key", Text, "The file with the key, if that is another"),
];

#[rustfmt::skip]
pub(super) const INSPECT: &[Key] = &[
    free("mode", Word(|| words(&MODES)), "What is done about credentials on their way to strangers"),
    free("unscannable", Word(|| words(&UNSCANNABLE)), "What is done about content that cannot be looked into"),
    free("detector", Tables(DETECTOR), "Modes of detectors, and detectors of your own"),
    free("allow", Tables(ALLOWANCE), "Hosts that a kind of credential may go to as well"),
    free("scope", Tables(SCOPE), "The same, for several hosts"),
    free("known", Word(|| words(&PRECAUTIONS)), "Whether your own secrets are looked for"),
    free("known_file", Text, "A file with further secrets to look for"),
    free("value", Tables(VALUE), "Where one of your secrets may go"),
    free("canaries", Word(|| words(&PRECAUTIONS)), "Whether false credentials are planted"),
];

#[rustfmt::skip]
pub(super) const DETECTOR: &[Key] = &[
    needed("id", Text, "Its name; `outgate scan --list` shows the shipped ones"),
    free("mode", Word(|| words(&MODES)), "What is done about its findings"),
    free("description", Text, "What it finds, in one line"),
    free("literals", Texts, "Texts of which one stands in each finding"),
    free("pattern", Text, "The form of what it finds, as a regular expression"),
    free("issuers", Texts, "Hosts that may get what it finds"),
    free("tenants", Word(|| words(&TENANTS)), "Whether those hosts keep what anybody sends them"),
];

pub(super) const ALLOWANCE: &[Key] = &[
    needed("detector", Text, "Its id"),
    needed("host", Text, "The host"),
    free("note", Text, "Why it is there"),
];

pub(super) const SCOPE: &[Key] = &[
    needed("detector", Text, "Its id"),
    free("hosts", Texts, "The hosts"),
];

pub(super) const VALUE: &[Key] = &[
    needed("name", Text, "The variable or the file that holds it"),
    free("hosts", Texts, "The hosts that it may go to"),
];

#[rustfmt::skip]
pub(super) const ENVIRONMENT: &[Key] = &[
    free("pass", Texts, "The variables that are passed on; without this key all but credentials"),
    free("set", TextMap, "Variables that are set"),
];

pub(super) const LIMITS: &[Key] = &[
    free("processes", Count, "Processes of the user at one time"),
    free("memory", Quantity("4G"), "Memory of each process"),
    free("open_files", Count, "Open files of each process"),
    free("file_size", Quantity("1G"), "Bytes of one file"),
    free("wall_time", Quantity("30m"), "How long the run may take"),
];

#[rustfmt::skip]
pub(super) const AUDIT: &[Key] = &[
    free("file", Text, "The file of the record"),
    free("full", Word(|| words(&FULL)), "What a full disk means"),
    free("rotate", Quantity("64M"), "Bytes of one file of the record"),
];

#[rustfmt::skip]
pub(super) const NOTE: &[Key] = &[
    needed("text", Text, "The line"),
    free("unless", Texts, "Words of the command line with which it is not said; without any, it is for readers alone"),
];

pub(super) const ARGUMENTS: &[Key] = &[
    needed("program", Text, "The name of the program"),
    needed("first", Texts, "What stands before its own arguments"),
    free("unless", Texts, "Arguments with which it is left out"),
    free("text", Text, "What is said about it"),
];

#[rustfmt::skip]
pub(crate) const TEST: &[Key] = &[
    needed("request", Text, "What is asked: [METHOD ]URL"),
    needed("expect", Word(|| words(&EXPECTED)), "The verdict"),
    free("rule", Text, "The text of the rule that must decide"),
    free("process", Text, "The executable that asks"),
    free("note", Text, "Why it is there"),
];

/// The keys of a file of tests that names the policy it is about.
#[rustfmt::skip]
pub(crate) const TESTS: &[Key] = &[
    needed("policy", Texts, "The policy that the tests are about"),
    free("test", Tables(TEST), "What `outgate policy test` expects"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Source, SourceKind, compile};

    /// What is wrong with a document.
    fn faults(text: &str) -> String {
        let source = Source {
            kind: SourceKind::Document,
            place: "t".to_owned(),
            text: text.to_owned(),
        };
        let compiled = compile(&[source], &Context::nowhere());
        compiled.map_or_else(|errors| errors.to_string(), |_| String::new())
    }

    /// Every key with the tables around it, and whether the innermost one is in a list.
    fn each(keys: &'static [Key], around: &[String], see: &mut dyn FnMut(&[String], &Key)) {
        for key in keys {
            // What tests expect is read elsewhere.
            if key.name == "test" {
                continue;
            }
            see(around, key);
            let header = |open: &str, close: &str| {
                let names = around.iter().map(|own| own.trim_matches(['[', ']']));
                let path: Vec<&str> = names.chain([key.name]).collect();
                let mut all = around.to_vec();
                all.clear();
                all.push(format!("{open}{}{close}", path.join(".")));
                all
            };
            match key.value {
                Table(own) => each(own, &header("[", "]"), see),
                Tables(own) | Rules(own) => {
                    each(own, &header("[[", "]]"), see);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn the_reader_takes_of_each_key_what_the_table_says() {
        let mut seen = 0;
        each(POLICY_KEYS, &[], &mut |around, key| {
            seen += 1;
            let header = around.concat();
            let given = |value: &str| faults(&format!("{header}\n{} = {value}\n", key.name));
            let name = format!("{header} {}", key.name);
            let is_of_kind = |said: &str| {
                !said.contains(&format!("`{}` must be", key.name))
                    && !said.contains("must be a list")
                    && !said.contains("must be a table")
                    && !said.contains("must be a rule")
                    && !said.contains("unknown key")
            };
            // One of the right kind, and one of another.
            let (right, wrong) = match key.value {
                Text | Quantity(_) => ("\"x\"", "7"),
                Texts => ("[\"x\"]", "\"x\""),
                Switch => ("true", "\"x\""),
                Count => ("7", "\"7\""),
                Word(words) => {
                    for word in words() {
                        let said = given(&format!("\"{word}\""));
                        assert!(!said.contains("is no value"), "{name} = {word}: {said}");
                    }
                    assert!(given("\"x-no-word\"").contains("is no value"), "{name}");
                    continue_with(&name, &given("7"));
                    return;
                }
                Table(_) => ("{}", "7"),
                Tables(_) => ("[{}]", "7"),
                Rules(_) => ("[\"a.test\", {}]", "7"),
                TextMap => ("{ a = \"b\" }", "7"),
                Policies(_) => return,
            };
            let said = given(right);
            assert!(is_of_kind(&said), "{name} = {right}: {said}");
            let said = given(wrong);
            assert!(!is_of_kind(&said), "{name} = {wrong}: {said}");
        });
        assert!(seen > 70, "{seen} keys were seen");
    }

    fn continue_with(name: &str, said: &str) {
        assert!(said.contains("must be one of"), "{name}: {said}");
    }

    #[test]
    fn a_needed_key_is_missed_and_no_other_is() {
        let mut lists = 0;
        each(POLICY_KEYS, &[], &mut |around, key| {
            let (Tables(keys) | Rules(keys)) = key.value else {
                return;
            };
            lists += 1;
            let names = around.iter().map(|own| own.trim_matches(['[', ']']));
            let path: Vec<&str> = names.chain([key.name]).collect();
            let said = faults(&format!("[[{}]]\n", path.join(".")));
            let is_needed = keys.iter().any(|own| own.need == KeyNeed::Always);
            assert_eq!(is_needed, !said.is_empty(), "{}: {said}", path.join("."));
        });
        assert!(lists >= 10, "{lists}");
    }
}
