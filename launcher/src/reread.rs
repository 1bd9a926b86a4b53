//! Policy files of a shared gateway read again: until they stand still, and
//! only if they are sound; and what changed, in words. Sends nothing.

use nix::poll::poll;
use outgate_policy::{Context, Effect, Policy, Source, Widenings, compile, printable};

use crate::enforced::refuse_unenforced;
use crate::sources::check_total;

/// Readings until two in a row must agree.
const READINGS_MAX: usize = 20;
/// Time between two readings, in milliseconds: longer than writing a file takes.
const READING_PAUSE_MS: u16 = 50;
/// Ways in which more is allowed that are named.
const WIDER_MAX: usize = 20;
/// Rules that are named when they no longer narrow.
const NAMED_MAX: usize = 3;

/// Reads all policy texts once.
pub type Read<'a> = &'a mut dyn FnMut() -> Result<Vec<Source>, String>;

/// A policy that is sound, with its texts.
#[derive(Debug)]
pub struct Sound {
    /// Texts in merge order.
    pub sources: Vec<Source>,
    /// What they say.
    pub policy: Policy,
}

/// Reads the texts until two readings agree, so that a file that is being
/// written is not taken for a whole one, and compiles them.
///
/// # Errors
/// A sentence: they keep changing, cannot be read, or have faults.
pub fn reread(read: Read<'_>, context: &Context) -> Result<Sound, String> {
    let mut before = read();
    for _ in 0..READINGS_MAX {
        // Nothing tells when a writer is done.
        let _ = poll(&mut [], READING_PAUSE_MS);
        let now = read();
        if now == before {
            return sound(now?, context);
        }
        before = now;
    }
    Err("the policy files keep changing".to_owned())
}

/// Compiles texts that a gateway is to enforce.
fn sound(sources: Vec<Source>, context: &Context) -> Result<Sound, String> {
    check_total(&sources).map_err(|error| error.to_string())?;
    let policy = compile(&sources, context).map_err(|errors| errors.to_string())?;
    refuse_unenforced(&policy)
        .map_err(|key| format!("the policy sets `{key}`, which only who starts a run can say"))?;
    Ok(Sound { sources, policy })
}

/// What is different between two policies: one line, one for each rule that narrowed
/// and is gone, and one for each way in which the second allows more.
pub fn differences(before: &Policy, after: &Policy) -> Vec<String> {
    let rules = |policy: &Policy| -> Vec<(Effect, String)> {
        let rules = policy.rules();
        rules
            .map(|rule| (rule.effect, rule.text.to_string()))
            .collect()
    };
    let (old, new) = (rules(before), rules(after));
    let added = new.iter().filter(|rule| !old.contains(rule)).count();
    let gone: Vec<_> = old.iter().filter(|rule| !new.contains(rule)).collect();
    let mut lines = vec![format!(
        "{} rules; {added} new, {} gone",
        new.len(),
        gone.len()
    )];
    let narrowed = gone.iter().filter(|(effect, _)| *effect != Effect::Allow);
    for (effect, text) in narrowed.take(NAMED_MAX) {
        lines.push(format!(
            "no longer in force: {} `{}`",
            effect.as_str(),
            printable(text)
        ));
    }
    lines.extend(widened(before, after));
    lines
}

/// What the second allows that the first does not, a line each.
fn widened(before: &Policy, after: &Policy) -> Vec<String> {
    let wider = Widenings::between(before, after);
    let rules = wider.rules.iter().map(|own| {
        let (effect, text) = (own.rule.effect.as_str(), printable(&own.rule.text));
        match &own.shown {
            Some(shown) => format!(
                "allows more: {effect} `{text}`, for one {}",
                printable(&shown.event)
            ),
            None => format!("may allow more: {effect} `{text}`"),
        }
    });
    let others = wider
        .others
        .iter()
        .map(|own| format!("allows more: {}: {}", own.key, printable(&own.what)));
    let mut lines: Vec<String> = rules.chain(others).collect();
    let more = lines.len().saturating_sub(WIDER_MAX);
    lines.truncate(WIDER_MAX);
    if more > 0 {
        lines.push(format!(
            "allows more in {more} other ways; `outgate policy diff` names them"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use outgate_policy::SourceKind;

    fn document(text: &str) -> Vec<Source> {
        vec![Source {
            kind: SourceKind::Document,
            place: "site.toml".to_owned(),
            text: text.to_owned(),
        }]
    }

    fn context() -> Context {
        Context {
            working_directory: "/w".to_owned(),
            ..Context::default()
        }
    }

    #[test]
    fn a_file_that_is_being_written_is_read_until_it_stands_still() {
        let mut readings = [
            "allow = [\"a.test\"]",
            "allow = [\"a.test\"]\ndeny = [\"a.t",
        ]
        .into_iter()
        .chain(std::iter::repeat(
            "allow = [\"a.test\"]\ndeny = [\"a.test/x\"]",
        ));
        let mut count = 0;
        let sound = reread(
            &mut || {
                count += 1;
                Ok(document(readings.next().unwrap()))
            },
            &context(),
        );
        assert_eq!(sound.unwrap().policy.rules().count(), 2);
        assert_eq!(count, 4);
    }

    #[test]
    fn what_never_stands_still_or_is_faulty_is_no_policy() {
        let mut count = 0;
        let restless = reread(
            &mut || {
                count += 1;
                Ok(document(&format!("allow = [\"h{count}.test\"]")))
            },
            &context(),
        );
        assert!(restless.unwrap_err().contains("keep changing"));
        for text in ["allow = [\"*.com\"]", "allow = [", "monitor = true"] {
            assert!(
                reread(&mut || Ok(document(text)), &context()).is_err(),
                "{text}"
            );
        }
        let absent = reread(&mut || Err("no such file".to_owned()), &context());
        assert_eq!(absent.unwrap_err(), "no such file");
    }

    #[test]
    fn rules_that_narrowed_and_are_gone_are_named() {
        let policy = |text| sound(document(text), &context()).unwrap().policy;
        let before = policy("allow = [\"a.test\"]\ndeny = [\"a.test/x\"]\nonly = [\"GET b.test\"]");
        let after = policy("allow = [\"a.test\", \"c.test\"]");
        let lines = differences(&before, &after);
        let (named, wider) = lines.split_at(3);
        assert_eq!(
            named,
            [
                "2 rules; 1 new, 2 gone",
                "no longer in force: deny `a.test/x`",
                "no longer in force: only `GET b.test`",
            ]
        );
        for rule in ["a.test", "c.test"] {
            let line = format!("allows more: allow `{rule}`, for one ");
            assert!(
                wider.iter().any(|own| own.starts_with(&line)),
                "{rule}: {wider:?}"
            );
        }
        assert_eq!(differences(&after, &after), ["2 rules; 0 new, 0 gone"]);
    }
}
