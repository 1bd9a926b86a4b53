//! The text of a secret: `NAME=SOURCE@HOST[:PORT][/PATH][;in=PLACES]`, the same
//! on the command line and, in parts, in documents.
//!
//! Texts in, values out; the value of no secret passes through here.

use super::Draft;
use crate::author::{Access, Author};
use crate::effect::Effect;
use crate::expand::{PathFault, expand};
use crate::facts::{Peer, Process};
use crate::host::{HostPattern, shown};
use crate::limits::{SECRET_BYTES_MAX, SECRETS_MAX};
use crate::location::At;
use crate::pattern::PathPattern;
use crate::rule::{Protocol, RuleTarget};
use crate::rule_error::RuleError;
use crate::rule_host;
use crate::secret::{Allowed, Binding, BindingPlaces, Fields, Secret, SecretKind, SecretSource};
use crate::settings::Intercept;
use crate::survey::SurveyDestination;

const EXAMPLE: &str = "write `GH_TOKEN=env:GH_TOKEN@api.github.com`";

/// Variables that decide which code runs: a placeholder there would only break
/// the command, and a value from there is no secret.
const NOT_SECRETS: [&str; 8] = [
    "PATH", "HOME", "TMPDIR", "SHELL", "USER", "TERM", "LANG", "PWD",
];

/// The parts of a secret, each with its place.
pub(crate) struct SecretParts<'a, 't> {
    pub(crate) name: (At<'a>, &'t str),
    pub(crate) value: (At<'a>, &'t str),
    pub(crate) binding: (At<'a>, &'t str),
    /// Where it may stand; `None` for credentials only.
    pub(crate) places: Option<Vec<(At<'a>, &'t str)>>,
}

/// Adds a secret written as one text.
pub(crate) fn argument(draft: &mut Draft<'_>, at: At<'_>, text: &str) {
    let behind = |offset: usize| At {
        offset: at.offset + offset,
        ..at
    };
    let Some((name, rest)) = text.split_once('=') else {
        let message = "the secret has no `=` behind its name".to_owned();
        return draft.fault(at.error(0, message, Some(EXAMPLE.to_owned())));
    };
    // A command line may hold `@`, a host never does.
    let Some((value, target)) = rest.rsplit_once('@') else {
        let message = "the secret names no host behind `@`".to_owned();
        return draft.fault(at.error(text.len(), message, Some(EXAMPLE.to_owned())));
    };
    let target_at = name.len() + value.len() + 2;
    let (binding, options) = match target.split_once(';') {
        Some((binding, options)) => (binding, Some(options)),
        None => (target, None),
    };
    let options_at = behind(target_at + binding.len() + 1);
    let places = match options.map(|options| (options, options.strip_prefix("in="))) {
        None => None,
        Some((_, Some(list))) => Some(list.split(',').map(|word| (options_at, word)).collect()),
        Some((options, None)) => {
            let message = format!("`{}` is no option of a secret", shown(options));
            let hint = "the one option is `;in=`, such as `;in=credentials,query`";
            return draft.fault(options_at.error(0, message, Some(hint.to_owned())));
        }
    };
    let parts = SecretParts {
        name: (at, name),
        value: (behind(name.len() + 1), value),
        binding: (behind(target_at), binding),
        places,
    };
    add(draft, parts);
}

/// Adds a secret from its parts.
pub(crate) fn add(draft: &mut Draft<'_>, parts: SecretParts<'_, '_>) {
    let (at, name) = parts.name;
    let before = draft.faults();
    if let Err((message, hint)) = check_name(name) {
        draft.fault(at.error(0, message, Some(hint.to_owned())));
    }
    let value = value(draft, parts.value);
    let keys = value
        .as_ref()
        .is_some_and(|(kind, _)| *kind == SecretKind::Aws);
    let binding = binding(parts.binding.1, keys.then_some(SecretKind::Aws));
    let binding = binding.map_err(|error| {
        let at = parts.binding.0;
        draft.fault(at.error(error.offset, error.message, error.hint));
    });
    let places = places(draft, parts.places);
    let (Some((kind, source)), Ok(mut binding)) = (value, binding) else {
        return;
    };
    if draft.faults() > before {
        return;
    }
    if kind == SecretKind::Aws && places != BindingPlaces::default() {
        let hint = "remove `in`: keys sign the field or the query that holds them";
        let message = "a pair of keys has no places of its own".to_owned();
        return draft.fault(at.error(0, message, Some(hint.to_owned())));
    }
    binding.places = places;
    keep(draft, at, (name, kind, source), binding);
}

/// Puts a binding to the secret of its name.
fn keep(
    draft: &mut Draft<'_>,
    at: At<'_>,
    (name, kind, source): (&str, SecretKind, SecretSource),
    binding: Binding,
) {
    let secrets = &mut draft.policy.secrets;
    if let Some(known) = secrets.iter_mut().find(|known| known.name == name) {
        if known.kind == kind && known.source == source {
            known.bindings.push(binding);
            return;
        }
        let message = format!("the secret `{name}` has two values ({})", known.place);
        let hint = "give each value a name of its own".to_owned();
        return draft.fault(at.error(0, message, Some(hint)));
    }
    let keys = |secret: &Secret| secret.kind == SecretKind::Aws;
    if kind == SecretKind::Aws && secrets.iter().any(keys) {
        let message = "the policy has two pairs of keys, and programs look for one".to_owned();
        let hint = "give all hosts the same name and source".to_owned();
        return draft.fault(at.error(0, message, Some(hint)));
    }
    if secrets.len() >= SECRETS_MAX {
        let message = format!("the policy has more than {SECRETS_MAX} secrets");
        let hint = "leave those away that the command does not need".to_owned();
        return draft.fault(at.error(0, message, Some(hint)));
    }
    let here = at.error(0, String::new(), None);
    secrets.push(Secret {
        name: name.to_owned(),
        kind,
        source: source.clone(),
        bindings: vec![binding],
        place: at.place(),
        position: (here.place, here.line, here.column),
    });
    if let SecretSource::File(path) = source {
        // The command must not find it where the gateway does.
        draft.path(at, Access::Deny, &path, Author::User);
    }
}

fn check_name(name: &str) -> Result<(), (String, &'static str)> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    if !starts || name.len() > 64 || !name.bytes().all(plain) {
        return Err((
            format!("`{}` is not the name of a variable", shown(name)),
            "use letters, digits and `_`, at most 64: `GH_TOKEN`",
        ));
    }
    if NOT_SECRETS.contains(&name) || name.starts_with("LD_") {
        return Err((
            format!("the variable `{name}` decides how programs run and holds no secret"),
            "name the variable in which the command looks for the secret",
        ));
    }
    Ok(())
}

fn value(draft: &mut Draft<'_>, (at, text): (At<'_>, &str)) -> Option<(SecretKind, SecretSource)> {
    let (kind, source) = match text.strip_prefix("aws:") {
        Some("env") => (SecretKind::Aws, "env:"),
        Some(rest) => (SecretKind::Aws, rest),
        None => (SecretKind::Value, text),
    };
    let fault = |message: String, hint: &str| Some((message, Some(hint.to_owned())));
    let wrong = if text.len() > SECRET_BYTES_MAX || text.chars().any(char::is_control) {
        fault(
            format!(
                "where the value comes from is over {SECRET_BYTES_MAX} bytes or holds a control character"
            ),
            "name a file or a short command",
        )
    } else {
        match (kind, source.split_once(':')) {
            (SecretKind::Aws, Some(("env", rest))) if !rest.is_empty() => fault(
                "keys from the environment are those in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN".to_owned(),
                "write `aws:env`",
            ),
            (SecretKind::Value, Some(("env", name))) if check_name(name).is_err() => fault(
                "what follows `env:` is not the name of a variable".to_owned(),
                "write `env:NAME`, or `file:PATH` or `cmd:COMMAND`",
            ),
            (_, Some(("cmd" | "file", "")) | None) => fault(
                "this does not say where the value comes from".to_owned(),
                "write `env:NAME`, `file:PATH` or `cmd:COMMAND`; the value itself never stands here",
            ),
            (_, Some(("env" | "file" | "cmd", _))) => None,
            (_, Some(_)) => fault(
                "values come from a variable, a file or a command only".to_owned(),
                "write `env:NAME`, `file:PATH` or `cmd:COMMAND`; the value itself never stands here",
            ),
        }
    };
    if let Some((message, hint)) = wrong {
        draft.fault(at.error(0, message, hint));
        return None;
    }
    let source = match SecretSource::of(source)? {
        SecretSource::File(path) => match expand(&path, draft.context) {
            Ok(path) => SecretSource::File(path),
            Err(PathFault::Unknown(name)) => {
                let hint = Some("write the path itself".to_owned());
                draft.fault(at.error(0, format!("the {name} directory is unknown here"), hint));
                return None;
            }
            Err(PathFault::Wrong(message, hint)) => {
                draft.fault(at.error(0, message, Some(hint.to_owned())));
                return None;
            }
        },
        other => other,
    };
    Some((kind, source))
}

/// `HOST[:PORT][/PATH]`.
fn binding(text: &str, keys: Option<SecretKind>) -> Result<Binding, RuleError> {
    const HINT: &str =
        "a secret is bound to one name: `api.example.org`, `api.example.org:8443/v1/**`";
    if text.contains("://") || text.contains([' ', '?']) {
        let message = format!("`{}` is more than a host, a port and a path", shown(text));
        return Err(RuleError::new(0, message, HINT));
    }
    let end = rule_host::host_end(text);
    let (host, path) = text.split_at_checked(end).unwrap_or((text, ""));
    let parsed = rule_host::parse(host, Effect::Allow)?;
    let fits = match &parsed.pattern {
        HostPattern::Exact(_) => true,
        // A signature tells nobody the key, whoever gets it.
        HostPattern::Below(_) | HostPattern::AtOrBelow(_) => keys.is_some(),
        HostPattern::Everything
        | HostPattern::Any
        | HostPattern::Localhost
        | HostPattern::Net(_) => false,
    };
    if !fits {
        let message = format!("`{}` is not the name of one host", shown(host));
        return Err(RuleError::new(0, message, HINT));
    }
    let Some(port) = parsed.ports.only(443) else {
        let message = format!("`{}` has more than one port", shown(host));
        return Err(RuleError::new(0, message, HINT));
    };
    let path_fault = |error: crate::pattern::PatternError| {
        RuleError::new(end + error.offset, error.message, error.hint)
    };
    Ok(Binding {
        host: parsed.pattern,
        port,
        path: match path {
            "" => None,
            path => PathPattern::parse(path).map_err(path_fault)?,
        },
        places: BindingPlaces::default(),
        text: text.to_owned(),
    })
}

fn places(draft: &mut Draft<'_>, list: Option<Vec<(At<'_>, &str)>>) -> BindingPlaces {
    let mut places = BindingPlaces::default();
    let Some(list) = list else {
        return places;
    };
    let mut credentials = Allowed::No;
    let mut names = Vec::new();
    for (at, word) in list {
        match word {
            "credentials" => credentials = Allowed::Yes,
            "fields" => places.fields = Fields::All,
            "query" => places.query = Allowed::Yes,
            "path" => places.path = Allowed::Yes,
            "content" => places.content = Allowed::Yes,
            name if is_field(name) => names.push(name.to_ascii_lowercase()),
            other => {
                let message = format!("`{}` is no place in a request", shown(other));
                let hint = "known are `credentials`, `fields`, `query`, `path`, `content` and names of fields";
                draft.fault(at.error(0, message, Some(hint.to_owned())));
            }
        }
    }
    if places.fields != Fields::All {
        places.fields = if credentials == Allowed::Yes && names.is_empty() {
            Fields::Credentials
        } else {
            Fields::Named(credentials, names)
        };
    }
    places
}

/// A field that may carry a secret: none that says where a message goes or ends.
fn is_field(name: &str) -> bool {
    const OTHERS: [&str; 9] = [
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "via",
    ];
    let lower = name.to_ascii_lowercase();
    let token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(token) && !OTHERS.contains(&&*lower)
}

/// What the rest of the policy means for its secrets; asked once all is read.
pub(crate) fn check(draft: &mut Draft<'_>) {
    let Some(first) = draft.policy.secrets.first() else {
        return;
    };
    if draft.policy.settings.intercept == Intercept::Never {
        let message = format!(
            "the secret `{}` is inserted inside TLS, which `tls.intercept = \"never\"` keeps closed",
            first.name
        );
        let fault = crate::error::PolicyError {
            place: first.position.0.clone(),
            line: first.position.1,
            column: first.position.2,
            message,
            hint: Some("leave `tls.intercept` at \"when-needed\", or remove the secret".to_owned()),
        };
        return draft.fault(fault);
    }
    let warnings: Vec<_> = draft
        .policy
        .secrets
        .iter()
        .flat_map(|secret| {
            let bindings = secret.bindings.iter();
            bindings.filter_map(|binding| unreachable(&draft.policy, secret, binding))
        })
        .collect();
    draft.policy.warnings.extend(warnings);
}

/// Why a binding never counts, if it does not.
fn unreachable(
    policy: &crate::policy::Policy,
    secret: &Secret,
    binding: &Binding,
) -> Option<crate::error::PolicyError> {
    let HostPattern::Exact(host) = &binding.host else {
        return None;
    };
    let process = Process { executable: "" };
    let to = SurveyDestination::new(process, Peer::Name(host), binding.port);
    let grants = |protocols: &[Protocol]| {
        policy.all_rules().iter().any(|rule| {
            let RuleTarget::Network(target) = &rule.target else {
                return false;
            };
            rule.reference.effect != Effect::Deny
                && to.is_granted_host(&target.host)
                && protocols
                    .iter()
                    .any(|protocol| target.grants_port(*protocol, binding.port))
        })
    };
    let named = format!("{host}:{}", binding.port);
    let (message, hint) = if grants(&[Protocol::Tls]) {
        (
            format!(
                "a tls:// rule lets TLS to {named} pass unopened, so the secret `{}` is never inserted there",
                secret.name
            ),
            format!("allow `https://{host}` in its place"),
        )
    } else if grants(&[Protocol::Https, Protocol::Wss]) {
        return None;
    } else {
        (
            format!(
                "no rule allows https to {named}, and the secret `{}` allows nothing by itself",
                secret.name
            ),
            format!("add a rule such as `-a https://{}`", binding.text),
        )
    };
    Some(crate::error::PolicyError {
        place: secret.position.0.clone(),
        line: secret.position.1,
        column: secret.position.2,
        message,
        hint: Some(hint),
    })
}
