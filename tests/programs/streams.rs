//! What HTTP/2 has beside requests and responses, between real programs: Node's
//! client and Node's server, with nothing set by hand.

use std::fs;

use outgate_harness::{Identity, Lab, lab_tests};

use crate::servers::{Servers, is_there, serve};
use crate::{confined, words};

/// Where the origin listens: HTTP/2 with prior knowledge on one port, HTTP/1.1
/// on the other; with keys, HTTP/2 inside TLS alone.
const ADDRESS: &str = "93.184.216.34";

/// Early hints before each answer, WebSockets (as bytes sent back), and a log of
/// what arrived. On port 8081 the older version, where a WebSocket is an upgrade.
const ORIGIN: &str = r"
const http2 = require('http2'), http = require('http'), crypto = require('crypto'), fs = require('fs');
const note = line => fs.appendFileSync(process.argv[2], line + '\n');
const settings = { enableConnectProtocol: true };
const server = http2.createServer({ settings });
const serve = (stream, head) => {
  note(`2 ${head[':method']} ${head[':path']} ${head[':protocol'] || '-'} ${head['via']}`);
  stream.on('error', () => {});
  if (head[':method'] === 'CONNECT') {
    stream.respond({ ':status': 200, 'sec-websocket-protocol': 'chat' });
    stream.write('hello');
    stream.on('data', data => stream.write('<' + data + '>'));
    stream.on('end', () => stream.end('bye'));
    return;
  }
  stream.additionalHeaders({ ':status': 103, link: '</style.css>; rel=preload' });
  stream.respond({ ':status': 200 });
  stream.end('from-the-origin');
};
server.on('stream', serve);
const [,,, key, cert] = process.argv;
if (cert) {
  const keys = { key: fs.readFileSync(key), cert: fs.readFileSync(cert) };
  http2.createSecureServer({ ...keys, settings }).on('stream', serve).listen(8443, '0.0.0.0');
} else {
  server.listen(8080, '0.0.0.0');
}
const older = http.createServer((request, response) => response.end('from-the-origin'));
older.on('upgrade', (request, socket) => {
  note(`1 ${request.method} ${request.url} ${request.headers.upgrade} ${request.headers.via}`);
  const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
  const accept = crypto.createHash('sha1').update(key).digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    `Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: ${accept}\r\n\r\nhello`);
  socket.on('data', data => socket.write('<' + data + '>'));
  socket.on('end', () => socket.end('bye'));
  socket.on('error', () => {});
});
if (!cert) older.listen(8081, '0.0.0.0');
";

/// Asks for a page and for a WebSocket, and says what came.
const CLIENT: &str = r"
const http2 = require('http2');
const [,, base, path] = process.argv;
const url = new URL(base);
const session = http2.connect(base);
session.on('error', error => { console.log('error', error.code); process.exit(3); });
setTimeout(() => { console.log('late'); process.exit(4); }, 20000).unref();
session.once('remoteSettings', settings => {
  console.log('takes', settings.enableConnectProtocol);
  const stream = session.request({ ':method': 'CONNECT', ':protocol': 'websocket', ':path': path,
    ':scheme': url.protocol.slice(0, -1), ':authority': url.host, 'sec-websocket-version': '13',
    'sec-websocket-protocol': 'chat' });
  let got = '', sent = false;
  stream.on('response', head => console.log('answer', head[':status'], head['sec-websocket-protocol']));
  stream.on('data', data => {
    got += data;
    if (got === 'hello') stream.write('ping');
    if (got === 'hello<ping>' && !sent) { sent = true; stream.end(); }
  });
  stream.on('error', error => console.log('reset', error.code));
  stream.on('close', () => { console.log('got', got.split('\n')[0]); page(); });
});
function page() {
  const stream = session.request({ ':path': '/page' });
  let text = '';
  stream.on('headers', head => console.log('hint', head[':status'], head.link));
  stream.on('response', head => console.log('page', head[':status']));
  stream.on('data', data => text += data);
  stream.on('error', error => console.log('reset', error.code));
  stream.on('close', () => { console.log('text', text.split('\n')[0]); session.close(); });
}
";

lab_tests! {
    fn a_websocket_and_early_hints_pass_on_streams(lab) {
        if !is_there("node") {
            return;
        }
        let log = start(lab, &[]);
        for identity in Identity::all() {
            let run = |rules: &[&str], port: &str, path: &str| {
                let base = format!("http://a.example:{port}");
                let program = lab.folder("given", Identity::Own).join("client.js");
                let program = program.to_string_lossy().into_owned();
                // What is sent here is text, and no frames.
                let mut sandbox = confined(lab, identity)
                    .option("--inspect", "off")
                    .pin(&format!("a.example={ADDRESS}"));
                for rule in rules {
                    sandbox = sandbox.allow(rule);
                }
                fs::write(&log, "").expect("a log");
                let outcome = sandbox.run(&words(&["node", &program, &base, path]));
                (outcome, fs::read_to_string(&log).expect("a log"))
            };
            let all = ["ws://a.example:8080/chat", "http://a.example:8080"];
            let (outcome, seen) = run(&all, "8080", "/chat");
            let said = "takes true\nanswer 200 chat\ngot hello<ping>bye\n\
                        hint 103 </style.css>; rel=preload\npage 200\ntext from-the-origin\n";
            assert_eq!(outcome.stdout, said, "{outcome}");
            assert_eq!(seen, "2 CONNECT /chat websocket 2.0 outgate\n2 GET /page - 2.0 outgate\n");
            // Without a rule of its own it is denied in words, and nothing arrives.
            let (outcome, seen) = run(&all, "8080", "/other");
            assert!(outcome.stdout.contains("answer 403"), "{outcome}");
            assert!(outcome.stdout.contains("got outgate denied GET ws://a.example:8080/other"), "{outcome}");
            assert!(outcome.stderr.contains("-a 'ws://a.example:8080/other'"), "{outcome}");
            assert_eq!(seen, "2 GET /page - 2.0 outgate\n");
            // An origin of the older version is asked in its own words.
            let (outcome, seen) = run(&["ws://a.example:8081/chat"], "8081", "/chat");
            assert!(outcome.stdout.contains("answer 200 chat\ngot hello<ping>bye\n"), "{outcome}");
            assert_eq!(seen, "1 GET /chat websocket 2.0 outgate\n");
        }
    }

    fn they_pass_inside_opened_tls_too(lab) {
        if !is_there("node") {
            return;
        }
        let Some(servers) = Servers::start(lab) else {
            return;
        };
        let key = lab.folder("servers", Identity::Own).join("key.pem");
        let ca = servers.certificate();
        let log = start(lab, &[&key.to_string_lossy(), &ca]);
        let given = lab.folder("given", Identity::Own).join("client.js");
        let program = given.to_string_lossy().into_owned();
        let run = |rules: &[&str]| {
            let mut sandbox = confined(lab, Identity::Own)
                .option("--inspect", "off")
                .option("--upstream-ca", &ca)
                .pin(&format!("secure.example={ADDRESS}"));
            for rule in rules {
                sandbox = sandbox.allow(rule);
            }
            fs::write(&log, "").expect("a log");
            let outcome = sandbox.run(&words(&["node", &program, "https://secure.example:8443", "/chat"]));
            (outcome, fs::read_to_string(&log).expect("a log"))
        };
        let page = "GET https://secure.example:8443/page";
        let (outcome, seen) = run(&["wss://secure.example:8443/chat", page]);
        assert!(outcome.stdout.contains("answer 200 chat\ngot hello<ping>bye\n"), "{outcome}");
        assert!(outcome.stdout.contains("hint 103"), "{outcome}");
        assert_eq!(seen, "2 CONNECT /chat websocket 2.0 outgate\n2 GET /page - 2.0 outgate\n");
        let (outcome, seen) = run(&[page]);
        assert!(outcome.stdout.contains("answer 403"), "{outcome}");
        assert!(outcome.stderr.contains("-a 'wss://secure.example:8443/chat'"), "{outcome}");
        assert_eq!(seen, "2 GET /page - 2.0 outgate\n");
    }
}

/// Starts the origin; its log.
fn start(lab: &Lab, keys: &[&str]) -> std::path::PathBuf {
    let given = lab.folder("given", Identity::Own);
    fs::write(given.join("client.js"), CLIENT).expect("a program");
    let folder = lab.folder("origin", Identity::Own);
    let (program, log) = (folder.join("origin.js"), folder.join("log"));
    fs::write(&program, ORIGIN).expect("a program");
    let (program, file) = (program.to_string_lossy(), log.to_string_lossy());
    let mut line = vec!["node", &program, &file];
    line.extend_from_slice(keys);
    let listens = if keys.is_empty() {
        &["127.0.0.1:8080", "127.0.0.1:8081"][..]
    } else {
        &["127.0.0.1:8443"]
    };
    serve(&line, &folder, listens);
    log
}
