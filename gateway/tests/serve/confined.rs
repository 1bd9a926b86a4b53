//! What a confined gateway can still do. The test runs itself again as the
//! process to be confined, since confinement is for good.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixListener;
use std::process::Command;

use nix::errno::Errno;

use outgate_gateway::config::RecordDirectory;

const MARK: &str = "OUTGATE_TEST_CONFINED";

/// The process that confines itself and reports; an ordinary test otherwise.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "each is tried to see that it is refused or works"
)]
fn report() {
    let Ok(place) = std::env::var(MARK) else {
        return;
    };
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = format!("{place}/socket");
    let unix = UnixListener::bind(&socket).unwrap();
    let records = std::path::PathBuf::from(format!("{place}/records"));
    std::fs::create_dir(&records).unwrap();
    let inode = nix::fcntl::open(
        socket.as_str(),
        nix::fcntl::OFlag::O_PATH,
        nix::sys::stat::Mode::empty(),
    )
    .unwrap();
    // Nothing asks for capabilities any more: what the kernel says of them is kept open.
    let mut about = std::fs::File::open("/proc/thread-self/status").unwrap();
    outgate_gateway::confine(
        Some(&RecordDirectory::Written(records.clone())),
        outgate_gateway::ServedRuns::One,
    )
    .unwrap();

    let failed = |result: std::io::Result<()>| result.unwrap_err().raw_os_error().unwrap();
    let denied = [
        failed(std::fs::read("/etc/hosts").map(drop)),
        failed(std::fs::write(format!("{place}/other"), "x")),
        failed(std::fs::read_dir("/proc/self").map(drop)),
        bound().unwrap_err() as i32,
    ];
    assert_eq!(denied, [13; 4], "{denied:?}");
    assert!(TcpListener::bind("127.0.0.1:0").is_err());
    assert_eq!(failed(Command::new("/bin/true").status().map(drop)), 1);
    let own = nix::unistd::Pid::this();
    let parent = nix::sys::signal::kill(nix::unistd::getppid(), None);
    assert_eq!(parent, Err(Errno::EPERM));
    assert_eq!(nix::sys::signal::kill(own, None), Ok(()));

    let mut status = String::new();
    about.read_to_string(&mut status).unwrap();
    let kept = 1 << 1; // CAP_DAC_OVERRIDE
    for set in ["CapInh:", "CapPrm:", "CapEff:"] {
        let line = status.lines().find_map(|line| line.strip_prefix(set));
        let left = u64::from_str_radix(line.unwrap().trim(), 16).unwrap();
        assert_eq!(left & !kept, 0, "{status}");
    }

    std::fs::write(records.join("a.jsonl"), "x").unwrap();
    let given = std::os::unix::fs::chown(records.join("a.jsonl"), Some(1), None);
    assert_eq!(failed(given), 1, "root is nobody special");
    std::fs::remove_file(records.join("a.jsonl")).unwrap();
    let mut random = [0; 8];
    std::fs::File::open("/dev/urandom")
        .unwrap()
        .read_exact(&mut random)
        .unwrap();
    TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
    UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&inode));
    std::os::unix::net::UnixStream::connect(path).unwrap();
    unix.accept().unwrap();
    std::io::stdout().write_all(b"all as promised\n").unwrap();
}

/// A stream bound to a port, without an option set before.
fn bound() -> nix::Result<()> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, socket};
    let flags = SockFlag::SOCK_CLOEXEC;
    let stream = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
    let name = SockaddrIn::new(127, 0, 0, 1, 0);
    bind(std::os::fd::AsRawFd::as_raw_fd(&stream), &name)
}

#[test]
fn a_confined_gateway_connects_and_records_and_does_nothing_else() {
    let place = std::env::temp_dir().join(format!("outgate-confined-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "confined::report", "--nocapture"])
        .env(MARK, &place)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&place).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("all as promised"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
