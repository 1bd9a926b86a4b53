//! What a run was denied as a policy document: the smallest rules that would have allowed
//! it, each with what it is for. Nothing that was refused for a credential is allowed by
//! it. Text only; a person reads it before anybody uses it.

use std::collections::BTreeSet;

use outgate_policy::{
    Context, DenialGroup, Digest, Policy, Process, Question, Source, SourceKind, Urgency, Verdict,
    compile, rule_of,
};

/// A run whose denials are known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeniedRun<'a> {
    /// The program that was run, and the name of the run.
    pub(crate) program: &'a str,
    pub(crate) name: &'a str,
    pub(crate) time: &'a str,
    pub(crate) digest: &'a Digest,
    /// What was refused for a credential, as questions to a policy.
    pub(crate) credentials: &'a BTreeSet<String>,
}

/// The document, line by line.
pub(crate) fn policy(run: DeniedRun<'_>) -> Vec<String> {
    let mut lines = vec![
        format!(
            "# What would have allowed what {} ({}) was denied at {}.",
            run.program, run.name, run.time
        ),
        "# Take out what it is not to have, and then: outgate run -p THIS-FILE -- COMMAND"
            .to_owned(),
    ];
    let mut allow = Vec::new();
    let mut listen = Vec::new();
    let mut left_out = Vec::new();
    let mut seen = BTreeSet::new();
    for group in run.digest.groups() {
        let mut is_told = false;
        for flag in suggestions(group) {
            let (list, text) = match (rule_of(flag), listening(flag)) {
                (Some(rule), _) if is_fit(&rule, run.credentials) => (&mut allow, rule),
                (_, Some(address)) => (&mut listen, address.to_owned()),
                _ => continue,
            };
            is_told = true;
            if seen.insert(text.clone()) {
                list.push(format!("    # {}", remark(group)));
                list.push(format!("    {},", toml_string(&text)));
            }
        }
        if !is_told {
            left_out.push(format!("#   {}: {}", group.subject, group.because));
        }
    }
    for (name, list) in [("allow", allow), ("listen", listen)] {
        if !list.is_empty() {
            lines.push(format!("\n{name} = ["));
            lines.extend(list);
            lines.push("]".to_owned());
        }
    }
    if !left_out.is_empty() {
        lines.push("\n# Left out, since no rule can or should allow it:".to_owned());
        lines.extend(left_out);
    }
    if run.digest.beyond() > 0 {
        let beyond = run.digest.beyond();
        lines.push(format!(
            "\n# {beyond} more denials were too many to be told apart."
        ));
    }
    lines
}

/// The flags of what was only refused.
fn suggestions(group: &DenialGroup) -> &[String] {
    match group.urgency {
        Urgency::Denied | Urgency::Passed => &group.flags,
        Urgency::Alarm | Urgency::Credential => &[],
    }
}

fn remark(group: &DenialGroup) -> String {
    let times = match group.count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    match group.program.as_str() {
        "" => format!("{}, {times}", group.subject),
        program => format!("{}, {times}, by {program}", group.subject),
    }
}

/// The address in a flag `--listen 'ADDRESS'`, or without quotes.
fn listening(flag: &str) -> Option<&str> {
    let address = flag.strip_prefix("--listen ")?;
    let address = address.strip_prefix('\'').unwrap_or(address);
    let address = address.strip_suffix('\'').unwrap_or(address);
    let is_address = |byte: u8| byte.is_ascii_alphanumeric() || b"[]:.*".contains(&byte);
    address.bytes().all(is_address).then_some(address)
}

/// Whether a rule is one, and allows nothing of what was refused for a credential.
fn is_fit(rule: &str, credentials: &BTreeSet<String>) -> bool {
    let Some(policy) = alone(rule) else {
        return false;
    };
    credentials.iter().all(|subject| {
        let Some(host) = host_of(subject) else {
            // A name that was asked for, or something else without a place.
            return true;
        };
        match Question::parse(subject) {
            Ok(question) => !is_allowed(&policy, &question) && !passes_unopened(&policy, host),
            // Its path is not told: then nothing of its host.
            Err(_) => !rule.contains(host_name(host)),
        }
    })
}

/// The policy of one rule.
fn alone(rule: &str) -> Option<Policy> {
    let source = Source {
        kind: SourceKind::Allow,
        place: "record".to_owned(),
        text: rule.to_owned(),
    };
    compile(&[source], &Context::nowhere()).ok()
}

fn is_allowed(policy: &Policy, question: &Question) -> bool {
    let process = Process { executable: "" };
    matches!(policy.answer(question, process), Verdict::Allow(_))
}

/// Whether bytes to the host may pass that nobody looks at.
fn passes_unopened(policy: &Policy, host: &str) -> bool {
    let ports: &[&str] = if has_port(host) {
        &[""]
    } else {
        &[":80", ":443"]
    };
    ports.iter().any(|port| {
        ["tls", "tcp"].iter().any(|scheme| {
            Question::parse(&format!("{scheme}://{host}{port}"))
                .is_ok_and(|question| is_allowed(policy, &question))
        })
    })
}

/// Host and port in what was refused.
fn host_of(subject: &str) -> Option<&str> {
    let (_, rest) = subject.split_once("://")?;
    rest.split(['/', '?', ' '])
        .next()
        .filter(|host| !host.is_empty())
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':')
        .is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
        && !host.ends_with(']')
}

fn host_name(host: &str) -> &str {
    if has_port(host) {
        host.rsplit_once(':').map_or(host, |(name, _)| name)
    } else {
        host
    }
}

/// Printable text as a basic string of TOML.
fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
