//! `outgate completions` and `outgate man`: what shells and man(1) want to know,
//! made from the one definition of the command line, which `main` hands on. Nothing here
//! is touched by a run.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, Command, ValueEnum, ValueHint};
use clap_complete::generate;
use clap_mangen::Man;
use outgate_dlp::Detectors;
use outgate_policy::preset_names;

use crate::report;

const COMPLETION_EXAMPLES: &str = "\
Examples:
  outgate completions bash > ~/.local/share/bash-completion/completions/outgate
  outgate completions zsh > ~/.zfunc/_outgate              with ~/.zfunc in $fpath
  outgate completions fish > ~/.config/fish/completions/outgate.fish";

const MANUAL_EXAMPLES: &str = "\
Examples:
  outgate man | man -l -                                   read it at once
  outgate man ~/.local/share/man/man1                      then `man outgate-run`";

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = COMPLETION_EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Print the manual page, or write all of them into a directory
#[derive(Debug, Args)]
#[command(after_help = MANUAL_EXAMPLES)]
pub(crate) struct Manual {
    /// Write a page for each subcommand there
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,
}

/// Prints the script of a shell.
pub(crate) fn completions(arguments: &Completions, definition: Command) -> ExitCode {
    use clap_complete::Shell as Generator;
    let generator = match arguments.shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    generate(
        generator,
        &mut completed(definition),
        "outgate",
        &mut script,
    );
    let script = String::from_utf8_lossy(&script);
    report::line(&with_names(script.trim_end(), arguments.shell));
    ExitCode::SUCCESS
}

/// The script, which asks the manifest for the names of its commands. They are letters,
/// digits, `-` and `_`: nothing that a shell would take for more.
fn with_names(script: &str, shell: Shell) -> String {
    match shell {
        Shell::Bash => format!("{script}\n{BASH_NAMES}"),
        Shell::Zsh => script.replacen("_outgate() {\n", ZSH_NAMES, 1),
        Shell::Fish => format!("{script}\n{FISH_NAMES}"),
    }
}

const BASH_NAMES: &str = r#"
_outgate_names() {
    if [[ ${COMP_WORDS[1]} == up && $COMP_CWORD == 2 && $2 != -* ]]; then
        COMPREPLY=($(compgen -W "$(outgate up --names 2>/dev/null)" -- "$2"))
        return 0
    fi
    _outgate "$@"
}
complete -F _outgate_names -o nosort -o bashdefault -o default outgate"#;

const ZSH_NAMES: &str = r#"_outgate() {
    if (( CURRENT == 3 )) && [[ $words[2] == up && $words[3] != -* ]]; then
        local -a names
        names=(${(f)"$(outgate up --names 2>/dev/null)"})
        compadd -a names
        return
    fi
"#;

const FISH_NAMES: &str = r#"
complete -c outgate -n "__fish_outgate_using_subcommand up" -f -a "(outgate up --names 2>/dev/null)""#;

/// Modes of detectors, as `--detector` takes them. They stay as long as the program, which
/// prints a script and ends.
fn detectors() -> Vec<&'static str> {
    let all = Detectors::shipped();
    let ids = all.iter().map(|own| own.id.to_string());
    let modes = |id: String| ["block", "warn", "off"].map(|mode| format!("{id}={mode}"));
    ids.flat_map(modes).map(|text| &*text.leak()).collect()
}

/// The command line with what only completions need: names of shipped policies and detectors,
/// and what `up` hands to `run`.
fn completed(definition: Command) -> Command {
    fn known(command: Command) -> Command {
        let has = |id: &str| command.get_arguments().any(|own| own.get_id() == id);
        let has_detectors = has("detectors");
        let has_presets = command.get_arguments().any(|own| own.get_id() == "presets");
        let names: Vec<String> = command
            .get_subcommands()
            .map(|own| own.get_name().to_owned())
            .collect();
        let command = if has_presets {
            let parser = PossibleValuesParser::new(preset_names());
            command.mut_arg("presets", |own| own.value_parser(parser))
        } else {
            command
        };
        let command = if has_detectors {
            let parser = PossibleValuesParser::new(detectors());
            command.mut_arg("detectors", |own| own.value_parser(parser))
        } else {
            command
        };
        names
            .into_iter()
            .fold(command, |command, name| command.mut_subcommand(name, known))
    }
    let mut definition = built(definition);
    let run = definition.find_subcommand("run").map(|run| {
        let options = run.get_arguments().filter(|own| !own.is_positional());
        let options = options.filter(|own| !["help", "version"].contains(&own.get_id().as_str()));
        options.cloned().collect::<Vec<_>>()
    });
    definition = definition.mut_subcommand("up", |up| up.args(run.unwrap_or_default()));
    known(definition)
}

/// The whole definition, with what is built only where it is used.
fn built(mut definition: Command) -> Command {
    definition.build();
    definition
}

/// Prints the page of outgate itself, or writes all pages.
pub(crate) fn manual(arguments: &Manual, definition: Command) -> ExitCode {
    let mut pages = Vec::new();
    if let Err(error) = collect(&built(definition), &mut pages) {
        return report::wrong(&format!("the manual: {error}"));
    }
    let Some(directory) = &arguments.directory else {
        if let Some((_, text)) = pages.first() {
            report::line(text.trim_end());
        }
        return ExitCode::SUCCESS;
    };
    match write(directory, &pages) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report::wrong(&format!("`{}`: {error}", directory.display())),
    }
}

fn write(directory: &Path, pages: &[(String, String)]) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for (name, text) in pages {
        std::fs::write(directory.join(name), text)?;
    }
    Ok(())
}

/// Makes the page of a command and those of its subcommands.
fn collect(command: &Command, pages: &mut Vec<(String, String)>) -> io::Result<()> {
    let source = concat!("outgate ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).manual("outgate").source(source);
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let more = command.get_after_long_help();
    if let Some(more) = more.or_else(|| command.get_after_help()) {
        text.push_str(&sections(&more.to_string()));
    }
    pages.push((man.get_filename(), text));
    for own in command.get_subcommands() {
        collect(own, pages)?;
    }
    Ok(())
}

/// The text behind the options as sections. What is indented stays as it is,
/// the rest is filled.
fn sections(text: &str) -> String {
    let mut out = String::new();
    let mut title = String::new();
    for block in text.split("\n\n") {
        let (own, body) = match block.split_once(':') {
            Some((own @ ("Examples" | "Rules" | "Files" | "Exit status"), body)) => {
                (own.to_uppercase(), body.trim_start_matches([' ', '\n']))
            }
            Some(_) | None => ("NOTES".to_owned(), block),
        };
        if own == title {
            out.push_str(".PP\n");
        } else {
            let _ = writeln!(out, ".SH \"{own}\"");
            title = own;
        }
        let is_indented = block.lines().skip(1).any(|line| line.starts_with("  "));
        let body = if is_indented && title != "FILES" {
            let lines: Vec<&str> = body
                .lines()
                .map(|line| line.trim_start_matches("  "))
                .collect();
            format!(".nf\n{}\n.fi", escaped(&lines.join("\n")))
        } else {
            escaped(&body.replace("\n  ", "\n"))
        };
        let _ = writeln!(out, "{body}");
    }
    out
}

/// Text as roff takes it literally (groff(7)).
fn escaped(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = line.trim_end().replace('\\', "\\e").replace('-', "\\-");
        let line = line.replace('`', "\\(ga").replace('\'', "\\(aq");
        let guard = if line.starts_with('.') { "\\&" } else { "" };
        lines.push(format!("{guard}{line}"));
    }
    lines.join("\n")
}
