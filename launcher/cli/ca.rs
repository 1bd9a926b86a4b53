//! `outgate ca`: makes and shows an authority of the user's own by the gateway's
//! program, which alone knows certificates, and has other programs trust it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, Subcommand, ValueHint};
use outgate_launcher::private::HeldDirectory;
use outgate_launcher::run::gateway_program;
use outgate_launcher::secrets;
use outgate_launcher::trust::{self, Trust};
use serde_json::Value;

use crate::report;

/// The certificate of an authority, in its directory.
const CERTIFICATE: &str = "authority.pem";
/// Where variables lead: below the authority's directory.
const TRUST: &str = "trust";
/// Something outside is at fault.
const FAILED: u8 = 125;

pub(crate) const EXAMPLES: &str = "\
Examples:
  outgate ca create --name 'Ann agents' --permit example.org
  outgate run --ca ~/.config/outgate/ca -a 'GET https://example.org/**' -- agent
  outgate ca show                                what it may vouch for, and until when
  outgate ca bundle > bundle.pem                 the system's authorities and yours
  eval \"$(outgate ca env)\"                       have programs of this shell trust it

Each run has an authority of its own, which nobody else trusts and which ends with it. One of
your own is for programs that outlive a run, or that you have to tell by hand what to trust.
Whoever has its key can pass as every host that --permit names, towards all that trust it.";

/// Make an authority of your own, and have programs trust it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AuthorityArguments {
    #[command(subcommand)]
    pub(crate) command: AuthorityCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthorityCommand {
    /// Make an authority: a certificate, and a key that only you can read
    Create(Create),
    /// Show whom an authority may vouch for, until when, and whether its key is safe
    Show(Show),
    /// Print the system's authorities and this one, in PEM
    Bundle(Bundle),
    /// Print shell commands that make programs trust it
    Env(Env),
}

const CREATE_EXAMPLES: &str = "\
Examples:
  outgate ca create --permit example.org         its hosts, and no others
  outgate ca create --permit example.org --permit 10.2.0.0/16 --days 30 ./ca
  outgate ca create --name 'Ann agents'          every host: keep its key well

Nothing is overwritten: where there is an authority, it stays.";

/// Make an authority: a certificate, and a key that only you can read
#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub(crate) struct Create {
    /// Its name, as lists of certificates show it
    #[arg(long, value_name = "NAME", default_value = "outgate", value_parser = name)]
    name: String,
    /// Let it vouch for this domain with all below it, or these addresses, and nothing else
    #[arg(long, value_name = "DOMAIN|CIDR")]
    permit: Vec<String>,
    /// How long it holds
    #[arg(long, value_name = "N", default_value = "365")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    #[command(flatten)]
    place: Place,
}

/// Show whom an authority may vouch for, until when, and whether its key is safe
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 it can be used, 1 it cannot, 2 there is none.")]
pub(crate) struct Show {
    /// As one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// Print the system's authorities and this one, in PEM
#[derive(Debug, Args)]
pub(crate) struct Bundle {
    /// Write it to FILE, in the place of what is there
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

const ENV_EXAMPLES: &str = "\
Examples:
  eval \"$(outgate ca env)\"                       in a shell or a profile
  outgate ca env --json | jq -r .SSL_CERT_FILE   for other programs

Each variable names the authorities that held before, and this one with them; the files are
in DIR/trust.";

/// Print shell commands that make programs trust it
#[derive(Debug, Args)]
#[command(after_help = ENV_EXAMPLES)]
pub(crate) struct Env {
    /// As one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Place {
    /// Its directory [default: ~/.config/outgate/ca]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,
}

impl Place {
    /// The directory, absolute.
    fn find(&self) -> Result<PathBuf, String> {
        let found = match &self.directory {
            Some(directory) => directory.clone(),
            None => own_authority()
                .ok_or("neither HOME nor XDG_CONFIG_HOME is set; name the directory")?,
        };
        std::path::absolute(&found).map_err(|error| format!("{}: {error}", found.display()))
    }
}

/// Where the user's own authority is, unless another directory is named.
pub(crate) fn own_authority() -> Option<PathBuf> {
    secrets::own_authority(
        std::env::var_os("XDG_CONFIG_HOME"),
        std::env::var_os("HOME"),
    )
}

/// A name that every list can show.
fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.chars().count() > 64 || text.chars().any(char::is_control) {
        return Err("a name has 1 to 64 characters, all of them printable".to_owned());
    }
    Ok(text.to_owned())
}

/// Does one of the subcommands.
pub(crate) fn ca(command: &AuthorityCommand) -> ExitCode {
    let (AuthorityCommand::Create(Create { place, .. })
    | AuthorityCommand::Show(Show { place, .. })
    | AuthorityCommand::Bundle(Bundle { place, .. })
    | AuthorityCommand::Env(Env { place, .. })) = command;
    let directory = match place.find() {
        Ok(directory) => directory,
        Err(message) => return report::wrong(&message),
    };
    let done = match command {
        AuthorityCommand::Create(create) => {
            let days = create.days.to_string();
            let mut words = vec![OsStr::new(&create.name), OsStr::new(&days)];
            words.extend(create.permit.iter().map(OsStr::new));
            return ask("create", &directory, &words);
        }
        AuthorityCommand::Show(show) => {
            let words = show.json.then_some(OsStr::new("json"));
            return ask("show", &directory, words.as_slice());
        }
        AuthorityCommand::Bundle(bundle) => self::bundle(&directory, bundle.output.as_deref()),
        AuthorityCommand::Env(env) => self::env(&directory).map(|set| say(set, env)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            report::wrong(&message);
            ExitCode::from(FAILED)
        }
    }
}

/// Becomes the gateway's program.
fn ask(word: &str, directory: &Path, words: &[&OsStr]) -> ExitCode {
    let program = gateway_program();
    let error = Command::new(&program)
        .args(["authority", env!("CARGO_PKG_VERSION"), word])
        .arg(directory)
        .args(words)
        .exec();
    report::wrong(&format!("{}: {error}", program.display()));
    ExitCode::from(FAILED)
}

/// The certificate in a directory.
fn certificate(directory: &Path) -> Result<Vec<u8>, String> {
    let path = directory.join(CERTIFICATE);
    let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text)
}

fn bundle(directory: &Path, output: Option<&Path>) -> Result<(), String> {
    let text = trust::bundle(&certificate(directory)?);
    let written = match output {
        None => std::io::stdout().write_all(&text),
        Some(path) => replace(path, &text),
    };
    let place = output.map_or("standard output".into(), Path::to_string_lossy);
    written.map_err(|error| format!("{place}: {error}"))
}

/// Puts a whole file in the place of what is there.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".new-{}", std::process::id()));
    std::fs::write(&draft, content)?;
    std::fs::rename(draft, path)
}

/// Writes the bundles; the variables that lead to them.
fn env(directory: &Path) -> Result<BTreeMap<OsString, OsString>, String> {
    let certificate = certificate(directory)?;
    let certificate = String::from_utf8(certificate).map_err(|error| error.to_string())?;
    let home = directory.join(TRUST);
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    // What an earlier call had set would become part of itself.
    trust::forget(&home, &mut variables);
    let before = variables.clone();
    let written = std::fs::create_dir_all(&home).and_then(|()| {
        let place = HeldDirectory::open(&home)?;
        let trust = Trust::prepare(&place, trust::presence(&variables), &mut variables);
        trust.write(&certificate)
    });
    written.map_err(|error| format!("{}: {error}", home.display()))?;
    variables.retain(|name, value| before.get(name) != Some(value));
    Ok(variables)
}

/// Prints variables.
fn say(variables: BTreeMap<OsString, OsString>, how: &Env) {
    if how.json {
        let text = |value: OsString| Value::from(value.to_string_lossy().into_owned());
        let object = variables.into_iter().map(|(name, value)| {
            let name = name.to_string_lossy().into_owned();
            (name, text(value))
        });
        report::line(&Value::Object(object.collect()).to_string());
        return;
    }
    for (name, value) in variables {
        let value = value.to_string_lossy().replace('\'', r"'\''");
        report::line(&format!("export {}='{value}'", name.to_string_lossy()));
    }
}
