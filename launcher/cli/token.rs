//! `outgate token`: who may use the explicit proxy of a shared gateway (`outgate gateway
//! --proxy`), and as which sandbox.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use outgate_launcher::sources::SourceCollector;
use outgate_launcher::tokens::{StoredToken, TokenDirectory, tokens_directory};
use outgate_policy::compile;

use crate::duration::seconds;
use crate::policy_options::{context, surroundings};
use crate::report;
use crate::runs::FAILED;

const EXAMPLES: &str = "\
Examples:
  outgate token create ci --policy ci.toml --ttl 8h
  curl -x http://ci:TOKEN@127.0.0.1:3128 https://files.example.org/
  curl -x socks5h://ci:TOKEN@127.0.0.1:3128 https://files.example.org/
  outgate token revoke ci

A token stands for one sandbox: what it may do is what both its policy and the gateway's
allow. It is printed once; its hash is kept, for you alone. A running gateway takes new ones
and ends the connections of revoked ones at once. Nothing forces a client through a proxy but
a network that has no other way out.

Exit status: 0 done, 1 there is no such token, or it cannot be kept, 2 bad usage or policy.";

/// See `outgate token --help`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TokenArguments {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token for a sandbox, and print it: once
    Create(TokenCreate),
    /// List the tokens of a gateway
    List(TokenPlace),
    /// End one, and the connections that were made with it
    Revoke(TokenRevoke),
}

#[derive(Debug, Args)]
struct TokenPlace {
    /// Where the tokens are [default: tokens in the state directory]
    #[arg(long, value_name = "DIR")]
    tokens: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct TokenCreate {
    /// Name of the sandbox, and user of the credentials
    #[arg(value_name = "NAME")]
    name: String,
    /// The policy of the sandbox [default: that of the gateway]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// How long it is good: 90s, 10m, 2h, 1d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    ttl: Option<u32>,
    #[command(flatten)]
    place: TokenPlace,
}

#[derive(Debug, Args)]
struct TokenRevoke {
    /// Name of the sandbox
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    place: TokenPlace,
}

/// Where tokens are: the option, or the state directory.
pub(crate) fn directory(option: Option<&Path>) -> Result<TokenDirectory, String> {
    let path = if let Some(path) = option {
        std::path::absolute(path).map_err(|error| error.to_string())?
    } else {
        let variable = std::env::var_os;
        let default = tokens_directory(variable("XDG_STATE_HOME"), variable("HOME"));
        default.ok_or("there is no home directory for tokens; name one with --tokens")?
    };
    Ok(TokenDirectory::at(path))
}

/// Does what is asked for.
pub(crate) fn token(arguments: &TokenArguments) -> ExitCode {
    let place = match &arguments.command {
        TokenCommand::Create(create) => &create.place,
        TokenCommand::List(place) => place,
        TokenCommand::Revoke(revoke) => &revoke.place,
    };
    let directory = match directory(place.tokens.as_deref()) {
        Ok(directory) => directory,
        Err(message) => return report::wrong(&message),
    };
    match &arguments.command {
        TokenCommand::Create(create) => made(create, &directory),
        TokenCommand::List(_) => list(&directory),
        TokenCommand::Revoke(revoke) => revoked(&revoke.name, &directory),
    }
}

fn made(create: &TokenCreate, directory: &TokenDirectory) -> ExitCode {
    let policy = match create.policy.as_deref().map(checked).transpose() {
        Ok(policy) => policy,
        Err(message) => return report::wrong(&message),
    };
    let time = create
        .ttl
        .map(|seconds| Duration::from_secs(seconds.into()));
    let (stored, token) = match StoredToken::make(&create.name, time, policy) {
        Ok(made) => made,
        Err(message) => return report::wrong(&message),
    };
    if let Err(error) = directory.add(&stored) {
        return failed(&error.to_string());
    }
    report::line(&token);
    report::note(&format!(
        "it is shown once; clients use it as http://{}:TOKEN@ADDR:PORT or \
         socks5h://{}:TOKEN@ADDR:PORT",
        stored.name, stored.name
    ));
    ExitCode::SUCCESS
}

/// A policy file by its absolute path, if there is nothing wrong with it.
fn checked(path: &Path) -> Result<PathBuf, String> {
    let mut collector = SourceCollector::new(surroundings());
    let read = collector.file(path);
    read.map_err(|error| report::chain(&error))?;
    let context = context().map_err(|error| report::chain(&error))?;
    compile(&collector.finish(), &context).map_err(|errors| errors.to_string())?;
    std::path::absolute(path).map_err(|error| error.to_string())
}

fn list(directory: &TokenDirectory) -> ExitCode {
    let tokens = match directory.list() {
        Ok(tokens) => tokens,
        Err(error) => return failed(&error.to_string()),
    };
    report::line(&format!("{:<24} {:>12} POLICY", "NAME", "ENDS"));
    for token in &tokens {
        report::line(&row(token));
    }
    ExitCode::SUCCESS
}

fn row(token: &StoredToken) -> String {
    let policy = token.policy.as_ref();
    let policy = policy.map(|path| outgate_policy::printable(&path.to_string_lossy()));
    format!(
        "{:<24} {:>12} {}",
        token.name,
        ends(token),
        policy.as_deref().unwrap_or("the gateway's")
    )
}

/// When a token ends, for people.
fn ends(token: &StoredToken) -> String {
    match token.left().map(|left| left.as_secs()) {
        None => "when revoked".to_owned(),
        Some(0) => "expired".to_owned(),
        Some(left @ 1..60) => format!("in {left}s"),
        Some(left @ 60..3600) => format!("in {}m", left / 60),
        Some(left @ 3600..86400) => format!("in {}h{:02}m", left / 3600, left / 60 % 60),
        Some(left) => format!("in {}d{:02}h", left / 86400, left / 3600 % 24),
    }
}

fn revoked(name: &str, directory: &TokenDirectory) -> ExitCode {
    match directory.revoke(name) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => failed(&format!(
            "there is no token `{}`; `outgate token list` lists them",
            outgate_policy::printable(name)
        )),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(message: &str) -> ExitCode {
    report::wrong(message);
    ExitCode::from(FAILED)
}

/// The sandboxes of the default directory, for `outgate ps`: lines, or none where there are
/// no tokens.
pub(crate) fn of_ps() -> Vec<String> {
    let tokens = directory(None).ok();
    let tokens = tokens.and_then(|directory| directory.list().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs());
    let tokens = tokens.unwrap_or_default().into_iter();
    tokens
        .filter(|token| !token.is_over())
        .map(|token| {
            let age = crate::runs::age_of(now.saturating_sub(token.created));
            let ends = ends(&token);
            format!(
                "{:<24} {:>8} {age:>8} {:>8} token of the proxy, ends {ends}",
                token.name, "-", "shared"
            )
        })
        .collect()
}
