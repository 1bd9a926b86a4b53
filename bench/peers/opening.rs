//! How outgate and the peers that open TLS are told to: an authority of their own,
//! and whom they trust to vouch for the origin.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::lab::{Lab, ROOTS, run};

/// What outgate is told: a rule of requests, which asks for it, and whom to trust.
pub(super) fn options(origin: &Path, origin_port: &str) -> Vec<String> {
    let rule = format!("GET,POST https://127.0.0.0/8:{origin_port}/**");
    let named = origin.to_string_lossy().into_owned();
    vec!["-a".into(), rule, "--upstream-ca".into(), named]
}

/// Whether this squid can open TLS.
pub(super) fn bumps(program: &Path) -> bool {
    let said = Command::new(program).arg("-v").output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("--enable-ssl-crtd"))
}

/// The same rule, with every connection opened by an authority of its own.
pub(super) fn squid(
    lab: &Lab,
    program: &Path,
    port: u16,
    origin_port: &str,
) -> Outcome<Vec<OsString>> {
    let file = |name: &str| lab.directory.join(name).to_string_lossy().into_owned();
    let (certificate, key, leaves) = (file("squid.pem"), file("squid.key"), file("squid-leaves"));
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
    ]);
    openssl.args([
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=squid",
        "-keyout",
        &key,
        "-out",
    ]);
    run(openssl.arg(&certificate))?;
    let lib = program
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("/usr"));
    let maker = lib.join("lib/squid/security_file_certgen");
    run(Command::new(&maker).args(["-c", "-s", &leaves, "-M", "16MB"]))?;
    let words = super::squid(lab, program, port, origin_port)?;
    let configuration = lab.directory.join("squid.conf");
    let text = fs::read_to_string(&configuration)?;
    let plain = format!("http_port 127.0.0.1:{port}\n");
    let opened = format!(
        "http_port 127.0.0.1:{port} ssl-bump tls-cert={certificate} tls-key={key} \
         generate-host-certificates=on dynamic_cert_mem_cache_size=16MB\n\
         sslcrtd_program {} -s {leaves} -M 16MB\nsslcrtd_children 2\n\
         acl early at_step SslBump1 SslBump2\nssl_bump stare early\nssl_bump bump all\n\
         tls_outgoing_options cafile={}\nacl opens method CONNECT\n\
         acl anywhere dst 127.0.0.0/8\nhttp_access allow opens anywhere origin\n",
        maker.display(),
        file(ROOTS),
    );
    let text = text
        .replace(&plain, "")
        .replace("127.0.0.1/32", "127.0.0.0/8");
    let (acls, rest) = text.split_once("http_access").ok_or("a configuration")?;
    fs::write(&configuration, format!("{acls}{opened}http_access{rest}"))?;
    Ok(words)
}

/// With an authority of its own, and a place where it stands.
pub(super) fn mitmdump(
    lab: &Lab,
    program: &Path,
    port: u16,
    origin: &str,
) -> Outcome<Vec<OsString>> {
    let mut words = super::mitmdump(lab, program, port, origin)?;
    words.pop();
    let file = |name: &str| lab.directory.join(name).to_string_lossy().into_owned();
    let directory = file("mitm-tls");
    fs::create_dir_all(&directory)?;
    words.push(format!("confdir={directory}").into());
    words.push("--set".into());
    words.push(format!("ssl_verify_upstream_trusted_ca={}", file(ROOTS)).into());
    Ok(words)
}
