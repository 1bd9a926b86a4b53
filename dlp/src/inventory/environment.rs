//! Variables that hold secrets, told by their names; and where their values may
//! go, as far as a name tells it.

use super::lines::unquoted;
use super::{HeldValues, Inventory, host_of, objects, password_of};
use crate::validate::placeholder;

/// Words of a name that make its value a secret.
const WORDS: [&str; 17] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "APIKEY",
    "CREDENTIALS",
    "CREDENTIAL",
    "PAT",
    "PWD",
    "AUTH",
    "KEY",
    "PASS",
    "JWT",
    "PIN",
    "SALT",
    "COOKIE",
];
/// Names whose values are secrets whatever they look like, beside those with hosts.
const OPAQUE: [&str; 3] = [
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SECRET_KEY",
    "AZURE_CLIENT_SECRET",
];
/// First folders of paths that are none of small letters.
const FOLDERS: [&str; 5] = ["Users", "Volumes", "Applications", "Library", "System"];
/// Longest object that is read as one, in bytes.
const OBJECT_BYTES_MAX: usize = 64 * 1024;
/// Longest scheme of a URL, in bytes.
const SCHEME_BYTES_MAX: usize = 12;

/// Words of a name that make its value none: names of files, of public halves,
/// of sockets and of keys that are only identifiers.
const HARMLESS: [&str; 15] = [
    "FILE",
    "PATH",
    "DIR",
    "SOCK",
    "SOCKET",
    "PUBLIC",
    "PUB",
    "ID",
    "URI",
    "ENDPOINT",
    "HOST",
    "TYPE",
    "METHOD",
    "FINGERPRINT",
    "OLDPWD",
];

/// Words that end as those of passwords do, and mean something else.
const NO_PASS: [&str; 4] = ["BYPASS", "COMPASS", "TRESPASS", "SURPASS"];

/// Names and where their values are for.
const HOSTS: [(&str, &[&str]); 34] = [
    ("ANTHROPIC_API_KEY", &["*.anthropic.com", "*.claude.com"]),
    (
        "CLAUDE_CODE_OAUTH_TOKEN",
        &["*.anthropic.com", "*.claude.com", "claude.ai"],
    ),
    ("OPENAI_API_KEY", &["*.openai.com", "chatgpt.com"]),
    (
        "AZURE_OPENAI_API_KEY",
        &["*.openai.azure.com", "*.cognitiveservices.azure.com"],
    ),
    ("GEMINI_API_KEY", &["*.googleapis.com"]),
    ("GOOGLE_API_KEY", &["*.googleapis.com"]),
    (
        "MISTRAL_API_KEY",
        &["api.mistral.ai", "codestral.mistral.ai"],
    ),
    ("DEEPSEEK_API_KEY", &["api.deepseek.com"]),
    ("COHERE_API_KEY", &["api.cohere.com", "api.cohere.ai"]),
    ("GROQ_API_KEY", &["api.groq.com"]),
    ("XAI_API_KEY", &["api.x.ai"]),
    ("OPENROUTER_API_KEY", &["openrouter.ai"]),
    ("TOGETHER_API_KEY", &["api.together.xyz", "api.together.ai"]),
    ("FIREWORKS_API_KEY", &["api.fireworks.ai"]),
    ("PERPLEXITY_API_KEY", &["api.perplexity.ai"]),
    ("MOONSHOT_API_KEY", &["api.moonshot.ai", "api.moonshot.cn"]),
    (
        "DASHSCOPE_API_KEY",
        &["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"],
    ),
    ("ZAI_API_KEY", &["api.z.ai"]),
    ("VOYAGE_API_KEY", &["api.voyageai.com"]),
    (
        "HF_TOKEN",
        &["huggingface.co", "*.huggingface.co", "*.hf.co"],
    ),
    (
        "HUGGINGFACE_TOKEN",
        &["huggingface.co", "*.huggingface.co", "*.hf.co"],
    ),
    (
        "GITHUB_TOKEN",
        &[
            "github.com",
            "*.github.com",
            "ghcr.io",
            "*.pkg.github.com",
            "*.githubcopilot.com",
        ],
    ),
    (
        "GH_TOKEN",
        &[
            "github.com",
            "*.github.com",
            "ghcr.io",
            "*.pkg.github.com",
            "*.githubcopilot.com",
        ],
    ),
    ("GITLAB_TOKEN", &["gitlab.com", "*.gitlab.com"]),
    (
        "AWS_SESSION_TOKEN",
        &["*.amazonaws.com", "*.amazonaws.com.cn", "*.api.aws"],
    ),
    (
        "AWS_BEARER_TOKEN_BEDROCK",
        &["*.amazonaws.com", "*.api.aws"],
    ),
    ("BRAVE_API_KEY", &["api.search.brave.com"]),
    ("EXA_API_KEY", &["api.exa.ai"]),
    ("SERPER_API_KEY", &["google.serper.dev"]),
    ("SERPAPI_API_KEY", &["serpapi.com"]),
    ("JINA_API_KEY", &["*.jina.ai"]),
    ("SNYK_TOKEN", &["*.snyk.io"]),
    ("CODECOV_TOKEN", &["*.codecov.io"]),
    ("VERCEL_TOKEN", &["api.vercel.com", "vercel.com"]),
];

/// Whom keys sign for that are never sent.
const AWS: [&str; 3] = ["*.amazonaws.com", "*.amazonaws.com.cn", "*.api.aws"];

/// Secrets among variables.
pub fn environment<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>) -> Inventory {
    let mut inventory = Inventory::default();
    let mut into = HeldValues {
        label: "",
        inventory: &mut inventory,
    };
    for (name, value) in variables {
        variable(name, value, &format!("${name}"), &mut into);
    }
    inventory
}

/// The hosts that the secret in one variable is for, as host patterns; `None` where
/// it holds none that is looked for in what leaves, by its name or by a certain form.
pub fn credential(name: &str, value: &str) -> Option<Vec<String>> {
    let values = environment(std::iter::once((name, value))).values;
    let looked_for = values.into_iter().filter_map(|holding| {
        let mut hosts = holding.hosts;
        if hosts.is_empty() && name.starts_with("AWS_") {
            hosts = AWS.map(str::to_owned).to_vec();
        }
        crate::known::is_looked_for(holding.value.expose(), &hosts).then_some(hosts)
    });
    // What goes to the fewest decides.
    let named = looked_for.min_by_key(Vec::len);
    named.or_else(|| super::forms::hosts(value))
}

/// `NAME=value` on each line, with quotation marks or without.
pub(super) fn dotenv(text: &str, into: &mut HeldValues<'_>) {
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        if let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            let value = value.trim();
            let bare = value.split(" #").next().unwrap_or(value).trim();
            let value = if value.starts_with(['"', '\'']) {
                unquoted(value)
            } else {
                bare
            };
            let label = format!("{}:{}", into.label, name.trim());
            variable(name.trim(), value, &label, into);
        }
    }
}

fn variable(name: &str, value: &str, label: &str, into: &mut HeldValues<'_>) {
    let upper = name.to_ascii_uppercase();
    if let Some(password) = password_of(value) {
        into.labelled(label.to_owned(), password, &[value]);
        return;
    }
    if value.contains("-----BEGIN ") {
        super::private_key::read(value, into);
        return;
    }
    settings(value, label, into);
    let hosts = HOSTS.iter().find(|(known, _)| *known == upper);
    let is_known = hosts.is_some() || OPAQUE.contains(&upper.as_str());
    if !is_secret(&upper) || names_setting(&upper, value) || !is_known && is_plain(value.trim()) {
        return;
    }
    let hosts = hosts.map(|(_, hosts)| *hosts).unwrap_or_default();
    let mut add = |value: &str| into.labelled(label.to_owned(), value.as_bytes().to_vec(), hosts);
    // Behind the name of a scheme.
    for part in value.split_ascii_whitespace() {
        let is_value = crate::known::is_looked_for(part.as_bytes(), &[]);
        if part.len() < value.trim().len() && is_value && !placeholder::is_of_words(part.as_bytes())
        {
            add(part);
        }
    }
    add(value);
}

/// Secrets among `name=value` in a list, such as those of connections, of the queries of
/// URLs and of fields for telemetry; among the fields of a request, such as options of curl
/// have them; and among the members of JSON.
fn settings(value: &str, label: &str, into: &mut HeldValues<'_>) {
    const FURTHER: [char; 2] = [',', '\n'];
    let (list, separators, url): (&str, &[char], &[&str]) = match value.split_once("://") {
        Some((_, rest)) => (rest, &[';', '&', '?'], &[value]),
        None if value.contains(';') => (value, &[';'], &[]),
        None => (value, &[' ', '\t'], &[]),
    };
    let mut add = |name: &str, text: &str, hosts: &[&str]| {
        let is_value = crate::known::is_looked_for(text.as_bytes(), &[]);
        if is_member(name) && text.len() < value.len() && is_value && !is_plain(text) {
            into.labelled(label.to_owned(), text.as_bytes().to_vec(), hosts);
        }
    };
    let pairs = |separators: &[char]| -> Vec<(&str, &str)> {
        let pairs = list.split(separators);
        pairs.filter_map(|pair| pair.split_once('=')).collect()
    };
    let mut named = pairs(separators);
    if list.contains(FURTHER) {
        named.extend(pairs(&[separators, &FURTHER].concat()));
        named.sort_unstable();
        named.dedup();
    }
    for (name, text) in named {
        add(name, unquoted(text.trim()), url);
    }
    for (at, _) in value.match_indices(": ") {
        let (before, after) = (
            value.get(..at).unwrap_or_default(),
            value.get(at + 2..).unwrap_or_default(),
        );
        let is_name = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
        let name = before
            .rsplit(|sign| !is_name(sign))
            .next()
            .unwrap_or_default();
        let field = after
            .split(['\n', '\r', '"', '\''])
            .next()
            .unwrap_or_default();
        for text in field.split_ascii_whitespace() {
            if !placeholder::is_of_words(text.as_bytes()) {
                add(name, text, &[]);
            }
        }
    }
    if value.trim_start().starts_with(['{', '[']) && value.len() <= OBJECT_BYTES_MAX {
        objects::members(value, &mut add);
        let mut own = HeldValues {
            label,
            inventory: into.inventory,
        };
        objects::docker(value, &mut own);
    }
}

/// Whether it says which setting of git `GIT_CONFIG_VALUE_0` is the value of (git-config(1)),
/// and no more: the name of one may hold a URL, and that a token.
fn names_setting(name: &str, value: &str) -> bool {
    name.starts_with("GIT_CONFIG_KEY_") && !value.contains('@')
}

/// Whether a name within a value makes what it names a secret.
fn is_member(name: &str) -> bool {
    let name = name.trim().to_ascii_uppercase().replace(' ', "_");
    is_secret(&name)
        || ["PWD", "KEY", "AUTHORIZATION"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// A name of a file, a list, a URL or a text is no secret; one that has the signs of these
/// and no words is.
fn is_plain(value: &str) -> bool {
    let has_blank = value.contains([' ', '\n']);
    let may_be = value.starts_with(['/', '~', '.']) || has_blank || value.contains("://");
    let is_public = has_blank && (value.starts_with("ssh-") || value.starts_with("ecdsa-"));
    may_be
        && (value.contains('\n')
            || is_public
            || is_url(value)
            || is_path(value)
            || placeholder::is_of_words(value.as_bytes()))
}

fn is_url(value: &str) -> bool {
    let is_sign = |letter: char| letter.is_ascii_lowercase() || "+-".contains(letter);
    value.split_once("://").is_some_and(|(scheme, _)| {
        (2..=SCHEME_BYTES_MAX).contains(&scheme.len())
            && scheme.chars().all(is_sign)
            && host_of(value).is_some()
    })
}

/// Whether it begins as paths do: with a folder that has a name of letters.
fn is_path(value: &str) -> bool {
    if ["./", "../", "~/"]
        .iter()
        .any(|start| value.starts_with(start))
    {
        return true;
    }
    let folders = value
        .strip_prefix('/')
        .and_then(|rest| rest.split_once('/'));
    folders.is_some_and(|(first, _)| {
        let is_name = first.len() > 1 && first.bytes().all(|byte| byte.is_ascii_lowercase());
        is_name || FOLDERS.contains(&first)
    })
}

fn is_secret(name: &str) -> bool {
    let words = || name.split(['_', '-', '.']);
    let meant = words().any(|word| WORDS.contains(&word))
        || name.ends_with("TOKEN")
        || name.ends_with("PASSWORD")
        || name.ends_with("SECRET")
        || name.ends_with("APIKEY")
        || name.ends_with("PASSWD")
        || name.ends_with("PASSPHRASE")
        || name.ends_with("PASS") && !NO_PASS.iter().any(|word| name.ends_with(word));
    let last = words().next_back().unwrap_or_default();
    meant && name != "PWD" && !HARMLESS.contains(&last) && !words().any(|word| word == "PUBLIC")
}
