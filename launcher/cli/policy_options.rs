//! The options that make a policy, the same for every subcommand that has one,
//! so that `outgate why` judges what `outgate run` would do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use outgate_dlp::inventory::credential;
use outgate_launcher::enforced::refuse_unenforced;
use outgate_launcher::manifest::ManifestPolicy;
use outgate_launcher::run::{self, RunError};
use outgate_launcher::sources::{SourceCollector, Surroundings};
use outgate_policy::{Context, Policy, PolicyOption, Source, SourceKind, compile, printable};

/// Where a policy comes from.
#[derive(Debug, Default, Args)]
pub(crate) struct PolicyOptions {
    /// Add a policy file (TOML). All options add to `base`, which `-P none`, or
    /// `extends = []` in a file, takes away
    #[arg(short = 'p', long = "policy", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) policies: Vec<PathBuf>,
    /// Add a shipped policy; `outgate policy presets` lists them
    #[arg(short = 'P', long = "preset", value_name = "NAME")]
    pub(crate) presets: Vec<String>,
    /// Allow what the rule describes
    #[arg(short = 'a', long = "allow", value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// Deny what the rule describes, whatever other rules allow
    #[arg(short = 'd', long = "deny", value_name = "RULE")]
    pub(crate) deny: Vec<String>,
    /// Let the command read and execute below PATH
    #[arg(short = 'r', long = "read", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<String>,
    /// Let the command read, execute and write below PATH
    #[arg(short = 'w', long = "write", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) write: Vec<String>,
    /// Let the command listen beyond loopback: at a port, a range of ports, or `*`
    #[arg(long, value_name = "[ADDR:]PORTS")]
    pub(crate) listen: Vec<String>,
    /// Use this address for a host instead of asking DNS
    #[arg(long, value_name = "HOST[:PORT]=ADDR[:PORT]")]
    pub(crate) resolve: Vec<String>,
    /// Do without `.outgate.toml` of the project, which only narrows
    #[arg(long = "no-project")]
    pub(crate) no_project: bool,
    /// Keep a secret from the command: it sees a placeholder, which is replaced on
    /// the way to HOST alone
    #[arg(long = "secret", value_name = "NAME=SOURCE@HOST[/PATH]")]
    pub(crate) secrets: Vec<String>,
    /// When TLS is opened to look inside [default: when-needed]
    #[arg(long, value_name = "WHEN")]
    pub(crate) intercept: Option<Intercept>,
    #[command(flatten)]
    pub(crate) scan: ScanOptions,
    #[command(flatten)]
    pub(crate) keys: KeyOptions,
    /// What `outgate up` adds.
    #[arg(skip)]
    pub(crate) manifest: Option<ManifestPolicy>,
}

/// Keys that the gateway reads and the command never sees.
#[derive(Debug, Default, Args)]
pub(crate) struct KeyOptions {
    /// Open TLS with the authority in DIR (`outgate ca create`), not with one of its own
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) ca: Option<PathBuf>,
    /// Present this certificate (PEM) to that host and no other
    #[arg(long = "client-cert", value_name = "HOST=CERT[:KEY]")]
    pub(crate) client_cert: Vec<String>,
}

impl KeyOptions {
    /// Adds what they say.
    pub(crate) fn collect(&self, collector: &mut SourceCollector) {
        if let Some(directory) = &self.ca {
            let directory = directory.to_string_lossy();
            collector.option(PolicyOption::Authority, "--ca", &directory);
        }
        for certificate in &self.client_cert {
            collector.option(
                PolicyOption::ClientCertificate,
                "--client-cert",
                certificate,
            );
        }
    }
}

/// What the scan for credentials does.
#[derive(Debug, Default, Args)]
pub(crate) struct ScanOptions {
    /// What happens to credentials on their way to strangers [default: block]
    #[arg(long, value_name = "MODE")]
    pub(crate) inspect: Option<Inspect>,
    /// What one detector's findings do: block, warn or off; `outgate scan --list`
    /// names them, those of payment-card, iban and wallets run only when named
    #[arg(long = "detector", value_name = "ID=MODE")]
    pub(crate) detectors: Vec<String>,
    /// Refuse what cannot be looked into, and what only may be a credential
    #[arg(long)]
    pub(crate) strict: bool,
    /// Let the secret that you keep in NAME (a variable or a file) go to HOST too; `off`: do
    /// not look for your own secrets
    #[arg(long, value_name = "NAME@HOST|off")]
    pub(crate) known: Vec<String>,
    /// Look for the secrets in FILE too: one on each line, perhaps with ` -> HOST`
    #[arg(long = "known-values", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) known_values: Option<PathBuf>,
    /// Plant false credentials, and raise an alarm when one leaves [default: on]
    #[arg(long, value_name = "WHETHER")]
    pub(crate) canaries: Option<Canaries>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Canaries {
    /// They are planted where the command may use the network
    On,
    /// They are not
    Off,
}

/// An option as it was typed, as far as it fits into a line: the place of what it says.
fn typed(option: &str, value: &str) -> String {
    /// What fits a line beside what is said of it.
    const CHARACTERS_MAX: usize = 40;
    let value: String = value.chars().take(CHARACTERS_MAX).collect();
    format!("{option} {}", printable(&value))
}

/// The word of an option, as it is typed.
fn word(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Inspect {
    /// The request is refused before a byte of them leaves
    Block,
    /// The request passes and the finding is recorded
    Warn,
    /// Nothing is scanned; TLS is opened only where a rule needs it
    Off,
}

impl ScanOptions {
    /// Adds what they say.
    pub(crate) fn collect(&self, collector: &mut SourceCollector) {
        if let Some(inspect) = &self.inspect {
            collector.option(PolicyOption::Inspect, "--inspect", &word(inspect));
        }
        for detector in &self.detectors {
            let place = typed("--detector", detector);
            collector.option(PolicyOption::Detector, &place, detector);
        }
        if self.strict {
            collector.option(PolicyOption::Strict, "--strict", "");
        }
        for known in &self.known {
            collector.option(PolicyOption::Known, &typed("--known", known), known);
        }
        if let Some(file) = &self.known_values {
            let file = file.to_string_lossy();
            collector.option(PolicyOption::KnownFile, "--known-values", &file);
        }
        if let Some(canaries) = &self.canaries {
            collector.option(PolicyOption::Canaries, "--canaries", &word(canaries));
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Intercept {
    /// Where a rule needs to see inside
    WhenNeeded,
    /// Always, except for tls:// rules
    Always,
    /// Never: what needs a look inside is denied
    Never,
}

impl PolicyOptions {
    /// The policy that a run with these options would have, in this directory.
    pub(crate) fn compile(&self) -> Result<Policy, RunError> {
        let sources = self.sources()?;
        let policy = compile(&sources, &context()?)?;
        refuse_unenforced(&policy).map_err(|key| RunError::NotEnforced { key })?;
        Ok(policy)
    }

    /// Those of these options that are about files, as words of a command line.
    pub(crate) fn about_files(&self) -> Vec<String> {
        let files = self
            .policies
            .iter()
            .map(|file| file.to_string_lossy().into_owned());
        let files: Vec<String> = files.collect();
        let all = [
            ("-P", &self.presets),
            ("-p", &files),
            ("-r", &self.read),
            ("-w", &self.write),
        ];
        let words = all.into_iter().flat_map(|(option, values)| {
            values
                .iter()
                .flat_map(move |value| [option.to_owned(), value.clone()])
        });
        words.collect()
    }

    /// The policy texts that these options name, in merge order.
    pub(crate) fn sources(&self) -> Result<Vec<Source>, RunError> {
        self.collect().map(SourceCollector::finish)
    }

    /// The same, with what was read for them.
    pub(crate) fn collect(&self) -> Result<SourceCollector, RunError> {
        let mut collector = SourceCollector::new(surroundings());
        for name in &self.presets {
            collector.preset(name)?;
        }
        for path in &self.policies {
            collector.file(path)?;
        }
        if let Some(manifest) = &self.manifest {
            manifest.collect(&mut collector)?;
        }
        collector.base()?;
        let texts = [
            (SourceKind::Read, "-r", &self.read),
            (SourceKind::Write, "-w", &self.write),
            (SourceKind::Allow, "-a", &self.allow),
            (SourceKind::Deny, "-d", &self.deny),
            (SourceKind::Pin, "--resolve", &self.resolve),
            (SourceKind::Listen, "--listen", &self.listen),
            (SourceKind::Secret, "--secret", &self.secrets),
        ];
        for (kind, place, list) in texts {
            for text in list {
                if kind == SourceKind::Allow && text == outgate_policy::INSTALL {
                    collector.installs("-a pkg:install")?;
                    continue;
                }
                collector.text(kind, place, text);
            }
        }
        if let Some(intercept) = &self.intercept {
            collector.option(PolicyOption::Intercept, "--intercept", &word(intercept));
        }
        self.keys.collect(&mut collector);
        self.scan.collect(&mut collector);
        let context = context()?;
        collector.git(&context, &|name, value| credential(name, value).is_some());
        if !self.no_project {
            let directory = Path::new(&context.working_directory);
            collector.project(directory, Path::new(&context.home))?;
        }
        Ok(collector)
    }
}

/// Where the user configures clients.
pub(crate) fn surroundings() -> Surroundings {
    let text = |(name, value): (OsString, OsString)| {
        let name = name.into_string().ok()?;
        Some((name, value.into_string().ok()?))
    };
    let mut variables: Vec<_> = std::env::vars_os().filter_map(text).collect();
    variables.sort_unstable();
    let mut all = variables.iter();
    let home = all.find(|(name, value)| name == "HOME" && value.starts_with('/'));
    let home = home.map(|(_, value)| value.clone()).unwrap_or_default();
    Surroundings { home, variables }
}

/// Stands for the private directory, which only a run has.
pub(crate) const PRIVATE: &str = "/$TMPDIR";

/// The directories that paths of a policy begin in, as a run here would have them.
pub(crate) fn context() -> Result<Context, RunError> {
    let directory = std::env::current_dir().map_err(|source| RunError::Machine {
        what: "the working directory",
        source,
    })?;
    let variables = std::env::vars_os().collect();
    Ok(run::context(&variables, &directory, PRIVATE.as_ref()))
}
