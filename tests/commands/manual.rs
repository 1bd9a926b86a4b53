//! Help, completions and manual pages: all from one definition, and what a
//! shell and a formatter make of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Desk, outgate};

/// Names in the list of subcommands of a help text.
fn subcommands(help: &str) -> Vec<String> {
    let (_, list) = help.split_once("\nCommands:\n").unwrap_or_default();
    list.lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Every subcommand, as words.
fn all(desk: &Desk) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut index = 0;
    while let Some(words) = found.get(index).cloned() {
        let mut call: Vec<&str> = words.iter().map(String::as_str).collect();
        call.push("--help");
        for name in subcommands(&desk.call(&call).stdout) {
            found.push([words.clone(), vec![name]].concat());
        }
        index += 1;
    }
    found
}

#[test]
fn every_subcommand_says_what_it_is_for_and_shows_how() {
    let desk = Desk::new();
    let all = all(&desk);
    assert!(all.len() > 12, "{all:?}");
    for words in all {
        for option in ["-h", "--help"] {
            let mut call: Vec<&str> = words.iter().map(String::as_str).collect();
            call.push(option);
            let said = desk.call(&call);
            assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{words:?}");
            let about = said.stdout.lines().next().unwrap_or_default();
            assert!(
                about.len() > 10 && !about.ends_with('.'),
                "{words:?}: {about}"
            );
            assert!(!about.starts_with("Options of"), "{words:?}: {about}");
            let wide = said.stdout.lines().find(|line| line.chars().count() > 100);
            assert_eq!(wide, None, "{words:?}");
        }
    }
    for words in [
        &[][..],
        &["run"],
        &["why"],
        &["policy"],
        &["policy", "test"],
        &["check"],
        &["completions"],
        &["man"],
    ] {
        let said = desk.call(&[words, &["--help"]].concat());
        let examples = said.stdout.matches("\n  outgate ").count();
        assert!(examples >= 2, "{words:?}: {}", said.stdout);
    }
}

#[test]
fn every_rule_of_the_help_is_a_rule() {
    let desk = Desk::new();
    let help = desk.call(&["run", "--help"]).stdout;
    let (_, rules) = help.split_once("\nRules:\n").expect("the rules");
    let mut count = 0;
    for line in rules.lines().take_while(|line| !line.is_empty()) {
        // Several rules, then words about them, two spaces and more apart.
        let cells: Vec<&str> = line
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect();
        let (_, examples) = cells.split_last().expect("a line");
        for rule in examples {
            let said = desk.call(&["why", "-a", rule, "https://elsewhere.test/"]);
            assert_ne!(said.status, 2, "{rule}: {}", said.stderr);
            count += 1;
        }
    }
    assert!(count > 10, "{rules}");
}

#[test]
fn the_examples_of_the_help_are_not_refused() {
    let desk = Desk::new();
    desk.write(
        "agent.toml",
        "allow = [\"http://api.example.org\"]\n[[test]]\nrequest = \"http://a.test/\"\nexpect = \"deny\"\n",
    );
    desk.write("new.toml", "allow = []\n");
    let mut count = 0;
    for command in ["why", "policy"] {
        let help = desk.call(&[command, "--help"]).stdout;
        for line in help
            .lines()
            .filter_map(|line| line.strip_prefix("  outgate "))
        {
            let script = format!(
                "outgate() {{ '{}' \"$@\"; }}; outgate {line}",
                outgate().display()
            );
            // The words behind two spaces explain it.
            let script = script.split("   ").next().unwrap_or_default().to_owned();
            let done = Command::new("sh")
                .args(["-c", &script])
                .current_dir(&desk.directory)
                .output();
            let done = done.expect("a shell");
            let errors = String::from_utf8_lossy(&done.stderr);
            let is_without_run = line.starts_with("why last") || line.contains("--replay last");
            assert!(
                done.status.code() != Some(2) || is_without_run,
                "{line}: {errors}"
            );
            count += 1;
        }
    }
    assert!(count > 8, "{count} examples");
}

#[test]
fn bash_completes_subcommands_options_and_shipped_policies() {
    let desk = Desk::new();
    let script = desk.call(&["completions", "bash"]);
    assert_eq!(script.status, 0, "{}", script.stderr);
    desk.write("outgate.bash", &script.stdout);
    let complete = |words: &[&str]| -> BTreeSet<String> {
        let line = r#"source ./outgate.bash
COMP_WORDS=(outgate "$@"); COMP_CWORD=$#; COMPREPLY=()
_outgate outgate "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}""#;
        let output = Command::new("bash")
            .args(["--norc", "-c", line, "bash"])
            .args(words)
            .current_dir(&desk.directory)
            .output()
            .expect("bash");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(errors, "", "{words:?}");
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(str::to_owned)
            .collect()
    };
    let set = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    assert_eq!(complete(&["pol"]), set(&["policy"]));
    assert_eq!(complete(&["policy", "pre"]), set(&["presets"]));
    assert_eq!(complete(&["run", "--pres"]), set(&["--preset"]));
    assert_eq!(complete(&["run", "-P", "git"]), set(&["github", "gitlab"]));
    assert_eq!(complete(&["why", "--intercept", "n"]), set(&["never"]));
    assert_eq!(complete(&["completions", "z"]), set(&["zsh"]));
}

#[test]
fn scripts_for_other_shells_name_every_subcommand() {
    let desk = Desk::new();
    for shell in ["zsh", "fish"] {
        let said = desk.call(&["completions", shell]);
        assert_eq!(said.status, 0, "{}", said.stderr);
        for word in ["run", "why", "policy", "presets", "github", "intercept"] {
            assert!(said.stdout.contains(word), "{shell}: {word}");
        }
        desk.write("script", &said.stdout);
        if let Ok(checked) = Command::new(shell)
            .arg("-n")
            .arg(desk.directory.join("script"))
            .output()
        {
            let errors = String::from_utf8_lossy(&checked.stderr);
            assert!(checked.status.success(), "{shell}: {errors}");
        }
    }
    assert_eq!(desk.call(&["completions", "csh"]).status, 2);
}

#[test]
fn there_is_a_page_for_every_subcommand_and_it_formats_without_complaint() {
    let desk = Desk::new();
    let said = desk.call(&["man", "pages"]);
    assert_eq!(
        (said.status, said.stdout.as_str(), said.stderr.as_str()),
        (0, "", "")
    );
    let pages: BTreeSet<String> = fs::read_dir(desk.directory.join("pages"))
        .expect("pages")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let wanted: BTreeSet<String> = all(&desk)
        .into_iter()
        .map(|words| [vec!["outgate".to_owned()], words].concat().join("-") + ".1")
        .collect();
    assert_eq!(pages, wanted);
    for page in &pages {
        let path = desk.directory.join("pages").join(page);
        let text = fs::read_to_string(&path).expect(page);
        assert!(
            text.starts_with(".ie ") || text.starts_with(".TH"),
            "{page}"
        );
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
        formats(&path);
    }
    let run = fs::read_to_string(desk.directory.join("pages/outgate-run.1")).expect("a page");
    for part in [
        ".SH \"EXAMPLES\"\n.nf\n",
        ".SH \"EXIT STATUS\"\n",
        "\\-\\-resolve",
    ] {
        assert!(run.contains(part), "{part}: {run}");
    }
    let one = desk.call(&["man"]).stdout;
    assert_eq!(
        one.trim_end(),
        fs::read_to_string(desk.directory.join("pages/outgate.1"))
            .expect("a page")
            .trim_end()
    );
}

/// groff(1) with every warning, where it is installed.
fn formats(page: &Path) {
    let formatted = Command::new("groff")
        .args(["-man", "-Tutf8", "-ww", "-rLL=100n"])
        .arg(page)
        .output();
    if let Ok(formatted) = formatted {
        let errors = String::from_utf8_lossy(&formatted.stderr);
        assert_eq!(errors, "", "{}", page.display());
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error() {
    let desk = Desk::new();
    desk.write("file", "");
    let said = desk.call(&["man", "file/pages"]);
    assert_eq!(said.status, 2);
    assert!(
        said.stderr.starts_with("outgate: `file/pages`: "),
        "{}",
        said.stderr
    );
}
