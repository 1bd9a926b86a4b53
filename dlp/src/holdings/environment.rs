//! Variables that hold secrets, told by their names; and where their values may
//! go, as far as a name tells it.

use super::lines::unquoted;
use super::{Collector, Holdings, password_of};

/// Words of a name that make its value a secret.
const WORDS: [&str; 12] = [
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
];
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

/// Names and where their values are for.
const HOSTS: [(&str, &[&str]); 34] = [
    ("ANTHROPIC_API_KEY", &["*.anthropic.com", "*.claude.com"]),
    (
        "CLAUDE_CODE_OAUTH_TOKEN",
        &["*.anthropic.com", "*.claude.com", "claude.ai"],
    ),
    ("OPENAI_API_KEY", &["*.openai.com"]),
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

/// Secrets among variables.
pub fn environment<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>) -> Holdings {
    let mut holdings = Holdings::default();
    let mut into = Collector {
        label: "",
        holdings: &mut holdings,
    };
    for (name, value) in variables {
        variable(name, value, &format!("${name}"), &mut into);
    }
    holdings
}

/// `NAME=value` on each line, with quotation marks or without.
pub(super) fn dotenv(text: &str, into: &mut Collector<'_>) {
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

fn variable(name: &str, value: &str, label: &str, into: &mut Collector<'_>) {
    let upper = name.to_ascii_uppercase();
    if let Some(password) = password_of(value) {
        into.labelled(label.to_owned(), password, &[value]);
        return;
    }
    // A name of a file, a list, or a text is no secret.
    let is_plain =
        value.starts_with(['/', '~', '.']) || value.contains([' ', '\n']) || value.contains("://");
    let is_key = value.contains("-----BEGIN ");
    if is_key {
        super::private_key::read(value, into);
    } else if is_secret(&upper) && !is_plain {
        let hosts = HOSTS.iter().find(|(known, _)| *known == upper);
        let hosts = hosts.map(|(_, hosts)| *hosts).unwrap_or_default();
        into.labelled(label.to_owned(), value.as_bytes().to_vec(), hosts);
    }
}

fn is_secret(name: &str) -> bool {
    let words = || name.split(['_', '-', '.']);
    let meant = words().any(|word| WORDS.contains(&word))
        || name.ends_with("TOKEN")
        || name.ends_with("PASSWORD")
        || name.ends_with("SECRET")
        || name.ends_with("APIKEY");
    let last = words().next_back().unwrap_or_default();
    meant && name != "PWD" && !HARMLESS.contains(&last) && !words().any(|word| word == "PUBLIC")
}
