//! A run one can watch: a small HTTPS origin on loopback, one request that a rule
//! allows, one that none does, one that would carry a credential to a stranger,
//! the sentences that say so, and the record.
//!
//! Uses the two programs and, where it is installed, curl; otherwise it is the
//! confined client itself (`demo --fetch URL [CONTENT]`).

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is what it is for"
)]

mod client;
mod origin;
mod record;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use origin::Origin;

/// The name of the origin. Nobody resolves it: a pin leads to loopback.
const HOST: &str = "api.example.test";
/// What the origin answers, so that it is recognised.
const GREETING: &str = "hello from the origin";
/// What a token looks like; nobody issued this one.
const TOKEN: [&str; 2] = ["ghp_", "dGlMoiyrlfxX1rTnyFf3vA7NUtFOY64WuYlz"];
/// Columns of a line, at most.
const COLUMNS: usize = 110;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.as_slice() {
        [] => show(),
        [option, url] if option == "--fetch" => client::fetch(url, None),
        [option, url, content] if option == "--fetch" => client::fetch(url, Some(content)),
        _ => Err(io::Error::other("usage: demo [--fetch URL [CONTENT]]")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Everything one sees, and whether it was what had to be seen.
fn show() -> io::Result<()> {
    let outgate = outgate()?;
    let place = Place::new()?;
    let origin = Origin::start(HOST, GREETING)?;
    fs::write(place.authority(), origin.authority())?;
    println!("# A small HTTPS server listens on {}.", origin.address());
    println!("# The command may use one path of it, under the name {HOST}, and nothing else.");

    let allowed = run(&outgate, &place, &origin, ("/hello", None))?;
    let denied = run(&outgate, &place, &origin, ("/admin", None))?;
    let token = TOKEN.concat();
    let leak = run(&outgate, &place, &origin, ("/hello", Some(&token)))?;
    println!("\n$ cat {}    # shortened", place.record().display());
    let records = fs::read_to_string(place.record())?;
    for line in records.lines().filter(|line| record::is_request(line)) {
        println!("{}", cut(&record::short(line)));
    }
    let seen = origin.seen();
    println!("\n# The server saw: {}", seen.join(", "));

    let count = |verdict| {
        let of = |line: &&str| record::is_request(line) && record::verdict(line) == verdict;
        records.lines().filter(of).count()
    };
    let faults = [
        (
            allowed.contains(GREETING),
            "the allowed request was not answered",
        ),
        (
            !denied.contains(GREETING) && denied.contains("outgate denied GET"),
            "the denied request was not denied",
        ),
        (
            !leak.contains(GREETING) && leak.contains("github-token"),
            "the credential was not refused",
        ),
        (
            count("allow") == 2 && count("deny") == 2 && !records.contains(&token),
            "the record does not hold what it should, and nothing else",
        ),
        (
            seen == ["GET /hello"],
            "the server saw something else than one request",
        ),
    ];
    match faults.iter().find(|(holds, _)| !holds) {
        None => Ok(()),
        Some((_, fault)) => Err(io::Error::other(*fault)),
    }
}

/// Fetches `path` in a sandbox, shows it, and returns what came back.
fn run(
    outgate: &Path,
    place: &Place,
    origin: &Origin,
    (path, content): (&str, Option<&str>),
) -> io::Result<String> {
    let url = format!("https://{HOST}{path}");
    let mut options = vec![
        "-a".to_owned(),
        format!("GET,POST {HOST}/hello"),
        "--resolve".to_owned(),
        format!("{HOST}:443={}", origin.address()),
        "--upstream-ca".to_owned(),
        place.authority().display().to_string(),
        "--audit".to_owned(),
        place.record().display().to_string(),
    ];
    let client: Vec<String> = if has_curl() {
        let sent = content.map(|content| ["-d", content]);
        let words = ["curl", "-sS"]
            .into_iter()
            .chain(sent.into_iter().flatten());
        words.chain([url.as_str()]).map(str::to_owned).collect()
    } else {
        let own = env::current_exe()?.display().to_string();
        let extra = ["-P", "base", "-r"].map(str::to_owned);
        options.splice(0..0, extra.into_iter().chain([own.clone()]));
        let words = [own.as_str(), "--fetch", &url].into_iter().chain(content);
        words.map(str::to_owned).collect()
    };
    println!();
    print_command(&options, &client);
    let output = Command::new(outgate)
        .arg("run")
        .args(&options)
        .arg("--")
        .args(&client)
        .current_dir(&place.work)
        .output()?;
    print_output(&output);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one would type it, one option with its value per line.
fn print_command(options: &[String], client: &[String]) {
    let mut text = "$ outgate run".to_owned();
    for (position, pair) in options.chunks(2).enumerate() {
        text.push_str(if position == 0 { " " } else { " \\\n    " });
        let words: Vec<String> = pair.iter().map(|word| quoted(word)).collect();
        text.push_str(&words.join(" "));
    }
    let words: Vec<String> = client.iter().map(|word| quoted(word)).collect();
    println!("{text} \\\n    -- {}", words.join(" "));
}

fn print_output(output: &Output) {
    for bytes in [&output.stdout, &output.stderr] {
        for line in String::from_utf8_lossy(bytes).lines() {
            println!("{}", cut(line));
        }
    }
    if !output.status.success() {
        println!("# It ended with {}.", output.status);
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/.:=-_".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{word}'")
    }
}

fn cut(line: &str) -> String {
    if line.chars().count() <= COLUMNS {
        return line.to_owned();
    }
    let kept: String = line.chars().take(COLUMNS - 1).collect();
    format!("{kept}…")
}

/// The launcher: in `OUTGATE_BIN_DIR`, or where cargo puts programs next to
/// its folder of examples.
fn outgate() -> io::Result<PathBuf> {
    let folder = if let Some(folder) = env::var_os("OUTGATE_BIN_DIR") {
        fs::canonicalize(folder)?
    } else {
        let own = env::current_exe()?;
        let folder = own.parent().and_then(Path::parent);
        folder.map(Path::to_owned).unwrap_or_default()
    };
    for name in ["outgate", "outgate-gateway"] {
        if !folder.join(name).is_file() {
            return Err(io::Error::other(format!(
                "`{name}` is not in {}; build it first: cargo build --release",
                folder.display()
            )));
        }
    }
    Ok(folder.join("outgate"))
}

/// Whether there is a curl that a sandbox without options can execute.
fn has_curl() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let first = env::split_paths(&path)
        .map(|folder| folder.join("curl"))
        .find(|file| file.is_file());
    first.is_some_and(|file| file.starts_with("/usr") || file.starts_with("/bin"))
}

/// The files of one demonstration, removed at its end.
struct Place {
    directory: PathBuf,
    /// The working directory of the command, the only one it may write.
    work: PathBuf,
}

impl Place {
    fn new() -> io::Result<Self> {
        let directory = env::temp_dir().join(format!("outgate-demo-{}", std::process::id()));
        let work = directory.join("work");
        // A leftover of the same process number is not ours to use.
        fs::create_dir(&directory)?;
        let place = Self { directory, work };
        fs::create_dir(&place.work)?;
        Ok(place)
    }

    /// Who vouches for the origin.
    fn authority(&self) -> PathBuf {
        self.directory.join("origin-ca.pem")
    }

    /// Where decisions are recorded: outside what the command may write.
    fn record(&self) -> PathBuf {
        self.directory.join("audit.jsonl")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed stays in the directory for temporary files.
        fs::remove_dir_all(&self.directory).ok();
    }
}
