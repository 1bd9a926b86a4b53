//! Servers that a test starts: programs of the machine, which end with the
//! test's process table, and connections to them without the programs under
//! test.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Longest time for a server to listen: the slowest load half a language first.
const START_SECONDS_MAX: u64 = 40;

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Whether `program` is there; skips the test otherwise.
pub fn is_there(program: &str) -> bool {
    let found = PATH
        .split(':')
        .any(|folder| Path::new(folder).join(program).exists());
    if !found {
        super::skip(&format!("{program} is not installed"));
    }
    found
}

/// The folder of what `tests/clients/tools/install` installs: said by a variable,
/// or beside what cargo builds, of which `built` is a part.
pub fn client_tools(built: &str) -> Option<PathBuf> {
    installed("OUTGATE_CLIENT_TOOLS", built, "client-tools")
}

/// The folder with the packages that `tests/corpora/install` fetched; `built` is where cargo
/// builds tests.
pub fn corpora(built: &str) -> Option<PathBuf> {
    installed("OUTGATE_ORDINARY_CONTENT", built, "ordinary-content")
}

/// What was installed into the folder that a variable names, or into one of this name above.
fn installed(variable: &str, built: &str, name: &str) -> Option<PathBuf> {
    let said = std::env::var_os(variable).map(PathBuf::from);
    let above = Path::new(built).ancestors();
    let mut all = said
        .into_iter()
        .chain(above.map(|folder| folder.join(name)));
    all.find(|folder| folder.join(".installed").exists())
}

/// Starts a server that ends with this process, and waits until it listens.
///
/// # Panics
/// When it does not, with what it said.
pub fn serve(words: &[&str], folder: &Path, listens: &[&str]) {
    let (program, arguments) = words.split_first().expect("a command");
    let name = Path::new(program).file_name().unwrap_or_default();
    let said = folder.join(format!("{}.out", name.to_string_lossy()));
    let file = fs::File::create(&said).expect("a file for what it says");
    let mut server = Command::new(program);
    server
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(file.try_clone().expect("a descriptor"))
        .stderr(file)
        .current_dir(folder)
        .process_group(0);
    // The laboratory is a process table of its own, which ends with the test.
    let mut child = server.spawn().expect("the server starts");
    for address in listens {
        let address: SocketAddr = address.parse().expect("an address");
        let limit = Duration::from_secs(START_SECONDS_MAX);
        let on = super::eventually(limit, || dial(address).is_ok());
        let said = || fs::read_to_string(&said).unwrap_or_default();
        assert!(on, "{words:?} does not listen: {}", said());
    }
    std::thread::spawn(move || child.wait());
}

/// Connects to a server of the test.
///
/// # Errors
/// The kernel's, when nobody listens.
#[expect(
    clippy::disallowed_methods,
    reason = "a test asks its own servers, without the programs under test"
)]
pub fn dial(address: SocketAddr) -> std::io::Result<TcpStream> {
    TcpStream::connect(address)
}
