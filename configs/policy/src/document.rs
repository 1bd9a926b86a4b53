//! The policy document: TOML to a draft, every fault with line and column.
//!
//! The only file that reads this format. The text is parsed leniently, so that
//! several faults are reported together; unknown keys are refused. What values
//! mean is decided elsewhere.

mod arguments;
mod audit;
mod files;
mod insert;
pub(crate) mod inspect;
mod keys;
pub(crate) mod known;
mod moved;
mod reader;
mod rules;
pub(crate) mod tls;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::author::Author;
use crate::draft::{Draft, LockState};
use crate::effect::Effect;
use crate::host::shown;
use crate::location::{At, Location};
use crate::quantity;
use crate::rule_host::{parse_address, parse_port};
use crate::settings::{DnsPin, DnsServer, Enforcement, Switch};
use arguments::arguments;
use audit::audit;
use files::{denial_note, filesystem, note};
pub(crate) use insert::{AddedItem, with_tables, with_texts};
use inspect::inspect;
pub(crate) use keys::{COMMAND, RUN, TEST, TESTS};
pub use keys::{Key, KeyNeed, KeyValue, MANIFEST_KEYS, POLICY_KEYS};
pub(crate) use reader::{DocumentReader, Item, Text, word};
use rules::{pins, rule, rule_items, secrets};
use tls::tls;

/// The words for how long a name keeps its addresses.
const DNS_PINS: [(&str, DnsPin); 2] = [("run", DnsPin::Run), ("ttl", DnsPin::Ttl)];

/// The keys with which a document narrows.
const NARROWING_KEYS: &[&str] = &["deny", "only", "filesystem", "limits", "test"];

/// Refuses what a project or a lock may not say; whether it did.
fn is_refused(reader: &mut DocumentReader<'_, '_, '_>, key: &str, value: Item<'_>) -> bool {
    match reader.author {
        Author::Project if !NARROWING_KEYS.contains(&key) => {
            not_for_projects(reader, key, value);
            true
        }
        Author::Lock if key != Effect::Allow.as_str() => {
            let message = format!("a lock says what may be reached, so `{key}` is not for it");
            let hint = "write it into a policy, and name that with `-p FILE`";
            reader.fault(value, &message, hint);
            true
        }
        _ => false,
    }
}

pub(crate) fn not_for_projects(
    reader: &mut DocumentReader<'_, '_, '_>,
    key: &str,
    value: Item<'_>,
) {
    let message = format!("a project's own file only narrows, so `{key}` is not for it");
    let hint = "take it out; a user who wants it names a file with `-p FILE`, or goes without \
                this one by `--no-project`";
    reader.fault(value, &message, hint);
}

/// Adds a document to the draft.
pub(crate) fn read<'a>(draft: &mut Draft<'_>, location: &'a Location<'a>, author: Author) {
    add(draft, location, (author, None));
}

/// Adds a manifest to the draft: what it says for all its commands, and for this one.
pub(crate) fn of_command<'a>(
    draft: &mut Draft<'_>,
    location: &'a Location<'a>,
    (author, command): (Author, &str),
) {
    add(draft, location, (author, Some(command)));
}

fn add<'a>(
    draft: &mut Draft<'_>,
    location: &'a Location<'a>,
    (author, command): (Author, Option<&str>),
) {
    let first = draft.faults();
    let (table, syntax) = parse(draft, location);
    let syntax_faults = draft.faults() - first;
    let mut reader = DocumentReader {
        draft,
        location,
        author,
        broken: syntax == DocumentSyntax::Broken,
    };
    let mut rules = Vec::new();
    let top = table.get_ref();
    if let Some(name) = command {
        policy(&mut reader, (top, MANIFEST_KEYS), &mut rules);
        let own = top.get(RUN).and_then(|run| run.get_ref().get(name));
        if let Some(own) = own.and_then(|own| own.get_ref().as_table()) {
            policy(&mut reader, (own, COMMAND), &mut rules);
        }
    } else {
        policy(&mut reader, (top, &[]), &mut rules);
    }
    rules.sort_by_key(|(offset, _, _)| *offset);
    for (_, effect, item) in rules {
        rule(&mut reader, effect, item);
    }
    draft.drop_consequences(first, syntax_faults);
}

/// Reads a table with the keys of a policy, and some of another's that are left alone.
fn policy<'t>(
    reader: &mut DocumentReader<'_, '_, '_>,
    (table, beside): (&'t DeTable<'t>, &[Key]),
    rules: &mut Vec<(usize, Effect, Item<'t>)>,
) {
    let known = [POLICY_KEYS, beside].concat();
    let is_beside = |key: &str| beside.iter().any(|own| own.name == key);
    reader.each(table, "", &known, |reader, key, value| match key {
        key if is_beside(key) => {}
        key if is_refused(reader, key, value) => {}
        "extends" => drop(reader.strings("extends", value)),
        "filesystem" => filesystem(reader, value),
        "allow" => rules.extend(rule_items(reader, Effect::Allow, value)),
        "deny" => rules.extend(rule_items(reader, Effect::Deny, value)),
        "only" => rules.extend(rule_items(reader, Effect::Only, value)),
        "pin" => pins(reader, value),
        "secret" => secrets(reader, value),
        "listen" => listen(reader, value),
        "dns" => dns(reader, value),
        "tls" => tls(reader, value),
        "inspect" => inspect(reader, value),
        "environment" => environment(reader, value),
        "limits" => limits(reader, value),
        "audit" => audit(reader, value),
        "note" => note(reader, value),
        "denial_note" => denial_note(reader, value),
        "arguments" => arguments(reader, value),
        // Read by `expectation`; a run has no use for them.
        "test" => {}
        "strict" => reader.switch(key, value, |settings, switch| settings.strict = switch),
        _ => reader.switch(key, value, |settings, switch| settings.monitor = switch),
    });
}

/// Adds the document of a run that learns, and marks the draft as one.
pub(crate) fn learning<'a>(draft: &mut Draft<'_>, location: &'a Location<'a>) {
    read(draft, location, Author::User);
    draft.policy.settings.enforcement = Enforcement::Learning;
}

/// Adds the document that alone allows.
pub(crate) fn lock<'a>(draft: &mut Draft<'_>, location: &'a Location<'a>) {
    let before = std::mem::replace(&mut draft.lock, LockState::Within);
    read(draft, location, Author::Lock);
    draft.lock = before;
}

/// The names a document extends; none where it does not say. Only its syntax and this one
/// key are judged.
pub(crate) fn extends<'a>(
    draft: &mut Draft<'_>,
    location: &'a Location<'a>,
) -> Option<Vec<String>> {
    let (table, syntax) = parse(draft, location);
    let mut reader = DocumentReader {
        draft,
        location,
        author: Author::User,
        broken: syntax == DocumentSyntax::Broken,
    };
    let value = table.get_ref().get("extends")?;
    let names = reader.strings("extends", value);
    Some(names.into_iter().map(|(_, name)| name.to_owned()).collect())
}

/// Whether the text follows the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentSyntax {
    Sound,
    /// Values may be missing or of kinds that nobody wrote.
    Broken,
}

/// Parses what can be parsed and reports the faults of the syntax: one for
/// each line, and none behind an open list, which all lines below belong to.
pub(crate) fn parse<'a>(
    draft: &mut Draft<'_>,
    location: &'a Location<'a>,
) -> (Spanned<DeTable<'a>>, DocumentSyntax) {
    let (table, errors) = DeTable::parse_recoverable(location.text());
    let mut faults: Vec<(usize, &str)> = errors
        .iter()
        .map(|error| (error.span().map_or(0, |span| span.start), error.message()))
        .collect();
    faults.sort_unstable();
    let mut syntax = DocumentSyntax::Sound;
    let mut last_line = 0;
    for (offset, message) in faults {
        let (short, hint) = syntax_message(message);
        let error = location
            .start()
            .error(offset, short.to_owned(), hint.map(str::to_owned));
        if error.line != last_line {
            last_line = error.line;
            draft.fault(error);
        }
        if message != "duplicate key" {
            syntax = DocumentSyntax::Broken;
        }
        if message.contains("array") {
            break;
        }
    }
    (table, syntax)
}

/// The parser's words, without its list of tokens where a repair can be named.
fn syntax_message(message: &str) -> (&str, Option<&str>) {
    let hint = if message == "duplicate key" {
        "write each key once; rules stand either in `allow = […]` or under `[[allow]]`"
    } else if message.contains("array") {
        "separate items with `,` and close the list with `]`"
    } else if message.contains("must be quoted") {
        "write texts in quotes"
    } else {
        return (message, None);
    };
    let short = message
        .split_once(", expected")
        .map_or(message, |(short, _)| short);
    (short, Some(hint))
}

fn listen(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    for (at, text) in reader.strings("listen", value) {
        reader.draft.listen(at, text);
    }
}

fn dns(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    reader.table("dns", value, keys::DNS, |reader, key, value| {
        if key == "servers" {
            dns_servers(reader, value);
        } else if let Some(pin) = reader.word(key, value, &DNS_PINS) {
            reader.draft.policy.settings.dns_pin = pin;
        }
    });
}

fn dns_servers(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    for (at, text) in reader.strings("servers", value) {
        if let Some(server) = dns_server(text) {
            reader.draft.policy.settings.dns_servers.push(server);
            continue;
        }
        reader.draft.fault(at.error(
            0,
            format!("`{}` is not a name server", shown(text)),
            Some(
                "write `system`, `192.0.2.53`, `192.0.2.53:5353` or `[2001:db8::53]:53`".to_owned(),
            ),
        ));
    }
}

fn dns_server(text: &str) -> Option<DnsServer> {
    const DNS_PORT: u16 = 53;
    if text == "system" {
        return Some(DnsServer::System);
    }
    if let Some(ip) = parse_address(text) {
        return Some(DnsServer::Address((ip, DNS_PORT).into()));
    }
    let (address, port) = text.rsplit_once(':')?;
    Some(DnsServer::Address(
        (parse_address(address)?, parse_port(port)?).into(),
    ))
}

fn environment(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    reader.table(
        "environment",
        value,
        keys::ENVIRONMENT,
        |reader, key, value| {
            if key == "pass" {
                passed_variables(reader, value);
            } else {
                set_variables(reader, value);
            }
        },
    );
}

fn passed_variables(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    let names = reader.strings("pass", value);
    let mut pass = reader
        .draft
        .policy
        .environment
        .pass
        .take()
        .unwrap_or_default();
    for (at, name) in names {
        if is_variable_name(reader, at, name) && !pass.iter().any(|own| own == name) {
            pass.push(name.to_owned());
        }
    }
    reader.draft.policy.environment.pass = Some(pass);
}

fn set_variables(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    let Some(table) = reader.expect_table("set", value) else {
        return;
    };
    for (name, value) in table {
        let at = reader.at(name.span().start);
        let name = name.get_ref();
        if !is_variable_name(reader, at, name) {
            continue;
        }
        let Some((at, text)) = reader.string(name, value) else {
            continue;
        };
        if text.contains('\0') {
            let hint = Some("remove it".to_owned());
            reader
                .draft
                .fault(at.error(0, "the value holds a NUL".to_owned(), hint));
        }
        reader.draft.variable(at, (name, text), reader.author);
    }
}

fn is_variable_name(reader: &mut DocumentReader<'_, '_, '_>, at: At<'_>, name: &str) -> bool {
    let valid =
        !name.is_empty() && !name.contains(['=', '*']) && !name.chars().any(char::is_control);
    if !valid {
        reader.draft.fault(at.error(
            0,
            format!("`{}` is not the name of a variable", shown(name)),
            Some("name each variable; there are no patterns here".to_owned()),
        ));
    }
    valid
}

fn limits(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    reader.table(
        "limits",
        value,
        keys::LIMITS,
        |reader, key, value| match key {
            "processes" => {
                if let Some(count) = reader.count(key, value) {
                    reader.draft.policy.limits.processes = Some(count);
                }
            }
            "open_files" => {
                if let Some(count) = reader.count(key, value) {
                    reader.draft.policy.limits.open_files = Some(count);
                }
            }
            "memory" => {
                if let Some(bytes) = reader.quantity(key, value, "4G", quantity::parse_size) {
                    reader.draft.policy.limits.memory_bytes = Some(bytes);
                }
            }
            "file_size" => {
                if let Some(bytes) = reader.quantity(key, value, "1G", quantity::parse_size) {
                    reader.draft.policy.limits.file_size_bytes = Some(bytes);
                }
            }
            _ => {
                if let Some(time) = reader.quantity(key, value, "30m", quantity::parse_duration) {
                    reader.draft.policy.limits.wall_time = Some(time);
                }
            }
        },
    );
}

/// A switch of the top level.
pub(crate) fn switch_of(value: &DeValue<'_>) -> Option<Switch> {
    match value {
        DeValue::Boolean(true) => Some(Switch::On),
        DeValue::Boolean(false) => Some(Switch::Off),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => None,
    }
}
