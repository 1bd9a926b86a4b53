//! What editors are given: schemas of the policy document and of the manifest, which every
//! policy here is as they say, and completions.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Desk, outgate};

fn schema(words: &[&str]) -> Value {
    let said = Desk::new().call(&[&["policy", "schema"], words].concat());
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    serde_json::from_str(&said.stdout).expect("JSON")
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// What about a value is not as a schema says, as far as ours say it.
fn fault(schema: &Value, value: &Value, at: &str) -> Option<String> {
    const KNOWN: [&str; 13] = [
        "$schema",
        "title",
        "description",
        "examples",
        "type",
        "properties",
        "additionalProperties",
        "required",
        "items",
        "anyOf",
        "enum",
        "minimum",
        "default",
    ];
    let schema = schema.as_object().expect("a schema is an object");
    let unknown = schema.keys().find(|key| !KNOWN.contains(&key.as_str()));
    assert_eq!(
        unknown, None,
        "the schema says what this test does not judge"
    );
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        let faults: Vec<String> = any.iter().map_while(|one| fault(one, value, at)).collect();
        return (faults.len() == any.len()).then(|| faults.join(", or "));
    }
    let kind = schema.get("type").and_then(Value::as_str).expect("a type");
    if !is_of(kind, value) {
        return Some(format!("{at}: of another type: {value}"));
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array)
        && !words.contains(value)
    {
        return Some(format!("{at}: no such word: {value}"));
    }
    if let Some(least) = schema.get("minimum").and_then(Value::as_i64)
        && value.as_i64().is_none_or(|value| value < least)
    {
        return Some(format!("{at}: below {least}: {value}"));
    }
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        return list
            .iter()
            .enumerate()
            .find_map(|(index, own)| fault(items, own, &format!("{at}[{index}]")));
    }
    let own = value.as_object()?;
    let needed = schema.get("required").and_then(Value::as_array);
    for key in needed.into_iter().flatten() {
        if !own.contains_key(key.as_str().expect("a key")) {
            return Some(format!("{at}: {key} is missing"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    own.iter().find_map(|(key, value)| {
        let at = format!("{at}.{key}");
        match (
            properties.and_then(|all| all.get(key)),
            schema.get("additionalProperties"),
        ) {
            (Some(known), _) => fault(known, value, &at),
            (None, Some(Value::Bool(false))) => Some(format!("{at}: no such key")),
            (None, Some(others)) => fault(others, value, &at),
            (None, None) => Some(format!("{at}: the schema leaves it open")),
        }
    })
}

fn parsed(text: &str) -> Option<Value> {
    toml::from_str(text).ok()
}

/// Policies of this repository: each with its name, and what it says.
fn policies() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![root.join("configs")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "toml")
                && path.file_name().is_some_and(|name| name != "Cargo.toml")
            {
                let text = fs::read_to_string(&path).expect("a policy");
                found.push((path.display().to_string(), text));
            }
        }
    }
    // Of the corpus, each case begins with its policy.
    for entry in fs::read_dir(root.join("tests/policy_corpus"))
        .expect("the corpus")
        .flatten()
    {
        let path = entry.path();
        if path.extension().is_none_or(|end| end != "txt") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a file");
        for (number, document) in documents(&text).into_iter().enumerate() {
            found.push((format!("{}: {number}", path.display()), document));
        }
    }
    found
}

/// The policies of a file of the corpus.
fn documents(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("== ") {
            found.push(String::new());
        } else if let (Some(own), Some(document)) = (line.strip_prefix('|'), found.last_mut()) {
            document.push_str(own.trim_start());
            document.push('\n');
        }
    }
    found
}

#[test]
fn every_policy_here_is_as_the_schema_says() {
    let (policy, manifest) = (schema(&[]), schema(&["--manifest"]));
    let all = policies();
    assert!(all.len() > 60, "{} policies were found", all.len());
    for (name, text) in all {
        let value = parsed(&text);
        assert!(
            value.is_some(),
            "{name} is no TOML:
{text}"
        );
        let value = value.unwrap_or_default();
        assert_eq!(fault(&policy, &value, "$"), None, "{name}");
        // A manifest is a policy with commands.
        assert_eq!(fault(&manifest, &value, "$"), None, "{name}");
    }
}

#[test]
fn what_the_reader_refuses_the_schema_refuses() {
    let (policy, manifest) = (schema(&[]), schema(&["--manifest"]));
    let desk = Desk::new();
    for (text, is_policy, is_manifest) in [
        ("allow = [\"a.example\"]", true, true),
        ("alow = [\"a.example\"]", false, false),
        ("allow = \"a.example\"", false, false),
        (
            "[[allow]]\nrule = \"a.example\"\nbudget = \"1M\"",
            true,
            true,
        ),
        (
            "[[deny]]\nrule = \"a.example\"\nbudget = \"1M\"",
            false,
            false,
        ),
        ("[[allow]]\nnote = \"x\"", false, false),
        ("strict = \"yes\"", false, false),
        ("[limits]\nprocesses = 0", false, false),
        ("[tls]\nintercept = \"sometimes\"", false, false),
        ("[environment]\nset = { A = 1 }", false, false),
        ("[run.t]\ncommand = [\"true\"]", false, true),
        (
            "[run.t]\ncommand = [\"true\"]\nallow = [\"a.example\"]\nabout = \"x\"",
            false,
            true,
        ),
        ("[run.t]\nallow = [\"a.example\"]", false, false),
        ("[run.t]\ncommand = \"true\"", false, false),
        (
            "[run.t]\ncommand = [\"true\"]\n[run.t.limits]\nmemry = \"1G\"",
            false,
            false,
        ),
    ] {
        let value = parsed(text).expect("TOML");
        assert_eq!(fault(&policy, &value, "$").is_none(), is_policy, "{text}");
        assert_eq!(
            fault(&manifest, &value, "$").is_none(),
            is_manifest,
            "{text}"
        );
        desk.write("p.toml", text);
        let said = desk.call(&["policy", "check", "p.toml"]);
        assert_eq!(said.status == 0, is_policy, "{text}: {}", said.stderr);
        desk.write("outgate.toml", text);
        let said = desk.call(&["policy", "check", "outgate.toml"]);
        assert_eq!(said.status == 0, is_manifest, "{text}: {}", said.stderr);
    }
}

#[test]
fn shells_complete_presets_detectors_and_commands_of_manifests() {
    let desk = Desk::new().also(
        "outgate.toml",
        "[run.unit-tests]\ncommand = [\"true\"]\n[run.deps]\ncommand = [\"true\"]\n",
    );
    for shell in ["bash", "zsh", "fish"] {
        let script = desk.call(&["completions", shell]).stdout;
        for word in ["dev-tools", "payment-card=warn", "up --names"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(desk.call(&["up", "--names"]).stdout, "deps\nunit-tests\n");
    desk.write("completions", &desk.call(&["completions", "bash"]).stdout);
    let directory = outgate().parent().expect("a folder").display().to_string();
    let complete = |line: &str| {
        let script = format!(
            "PATH={directory}:$PATH; . ./completions; COMP_LINE='{line}'; COMP_WORDS=({line}); \
             [[ '{line}' == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _outgate_names outgate \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let output = std::process::Command::new("bash")
            .args(["--norc", "-c", &script])
            .current_dir(&desk.directory)
            .output()
            .expect("bash");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(complete("outgate up u"), "unit-tests\n");
    assert_eq!(complete("outgate up "), "deps unit-tests\n");
    assert!(complete("outgate run -P cod").contains("codex"));
}
