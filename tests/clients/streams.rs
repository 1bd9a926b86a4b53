//! What lasts: events, WebSockets, gRPC, and a gibibyte in each direction.

use outgate_harness::servers::serve;
use outgate_harness::{Identity, lab_tests};

use crate::scenario::{Run, Scenario, check_all};
use crate::stage::{FILES, MARK, Stage, is_opened, spelt};

/// A gibibyte.
const GIBIBYTE: u64 = 1 << 30;

/// Longest time between the sending of an event and its arrival, on a machine
/// that does other things too. Buffered until the end it would be 0.8 s and more.
const LAG_SECONDS_MAX: f64 = 0.4;

const EVENTS: Scenario<'_> = Scenario {
    name: "",
    allow: &["GET http://live.example/events"],
    script: "",
    shows: "lag ",
    requests: &["live.example GET /events"],
    told: "403",
    host: "live.example",
};

const EVENT_CLIENTS: [Scenario<'_>; 3] = [
    Scenario {
        name: "curl of events",
        script: r"curl -sS -f -N http://live.example/events | while read -r word sent; do
    if [ $word = data: ]; then echo lag $sent $EPOCHREALTIME; fi
done; exit ${PIPESTATUS[0]}",
        ..EVENTS
    },
    Scenario {
        name: "events in Python",
        script: r"python3 - <<'E'
import time, urllib.request
with urllib.request.urlopen('http://live.example/events', timeout=30) as response:
    for line in response:
        if line.startswith(b'data: '):
            print('lag', time.time() - float(line[6:]))
E",
        ..EVENTS
    },
    Scenario {
        name: "events in node",
        script: r"node - <<'E'
fetch('http://live.example/events').then(async (response) => {
  if (!response.ok) {
    console.error(response.status, response.statusText);
    process.exit(1);
  }
  for await (const part of response.body)
    for (const [, sent] of Buffer.from(part).toString().matchAll(/data: (.*)/g))
      console.log('lag', Date.now() / 1000 - sent);
});
E",
        ..EVENTS
    },
];

const SOCKET: Scenario<'_> = Scenario {
    name: "",
    allow: &["ws://live.example/socket"],
    script: "",
    shows: MARK,
    requests: &["live.example GET /socket"],
    told: "403",
    host: "live.example",
};

const SOCKET_CLIENTS: [Scenario<'_>; 2] = [
    Scenario {
        name: "a WebSocket of Python",
        script: r"python3 - <<'E'
import websockets.sync.client
with websockets.sync.client.connect('ws://live.example/socket', compression=None) as socket:
    for number in range(100):
        text = f'message {number} ' * (number % 7 + 1)
        socket.send(text)
        assert socket.recv(timeout=20) == text
    socket.send(b'x' * 60000)
    assert socket.recv(timeout=20) == b'x' * 60000
    assert socket.ping().wait(20)
    print('from-the-real-origin')
E",
        ..SOCKET
    },
    Scenario {
        name: "a WebSocket of node",
        script: r"node - <<'E'
const WebSocket = require('ws');
const socket = new WebSocket('ws://live.example/socket', { perMessageDeflate: false });
let left = 100;
socket.on('open', () => socket.send('from-the-real-origin 0'));
socket.on('message', (text) => {
  if (--left > 0) socket.send(`from-the-real-origin ${left}`);
  else { console.log(String(text)); socket.close(); }
});
socket.on('error', (error) => { console.error(error.message); process.exitCode = 1; });
E",
        ..SOCKET
    },
];

/// The lags that a client of events told, or the times between which they lie.
fn lags(run: &Run) -> Vec<f64> {
    let lines = run.outcome.stdout.lines();
    let lags = lines.filter_map(|line| line.strip_prefix("lag "));
    lags.map(|lag| {
        let times: Vec<f64> = lag
            .split_whitespace()
            .map(|time| time.parse().expect("a number"))
            .collect();
        times.get(1).map_or(times[0], |arrived| arrived - times[0])
    })
    .collect()
}

carried_tests! {
    fn events_arrive_when_they_are_sent(lab) {
        let Some(mut stage) = Stage::start(lab, &["node"]) else { return };
        check_all(&mut stage, &EVENT_CLIENTS);
        for scenario in EVENT_CLIENTS {
            let run = Run::make(&stage, stage.allowing(scenario.allow), scenario.script);
            let mut lags = lags(&run);
            assert_eq!(lags.len(), 5, "{run}");
            lags.sort_by(f64::total_cmp);
            assert!(lags[2] < LAG_SECONDS_MAX, "{}: {run}", scenario.name);
        }
    }

    fn websockets_work_where_a_rule_says_so(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["node"]) else { return };
        check_all(&mut stage, &SOCKET_CLIENTS);
        // The right to GET is no right to a WebSocket.
        for scenario in SOCKET_CLIENTS {
            scenario.check_denied(&mut stage, &["http://live.example"]);
        }
    }

    fn grpc_works_over_an_http_rule(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &[]) else { return };
        let log = grpc(&stage);
        let calls = || std::fs::read_to_string(&log).unwrap_or_default();
        let script = CALLS.replace("TARGET", "rpc.example:50051");
        let scenario = Scenario {
            name: "gRPC",
            allow: &["POST http://rpc.example:50051/demo.Echo/*"],
            script: &script,
            shows: "echo last",
            requests: &[],
            told: "PERMISSION_DENIED",
            host: "rpc.example",
        };
        scenario.check_allowed(&mut stage);
        assert_eq!(calls(), "once\nmany\nboth\n");
        scenario.check_denied(&mut stage, &["http://rpc.example:50051/other"]);
        // One call may be allowed and the next not, over the same connection.
        let some = ["POST http://rpc.example:50051/demo.Echo/Once"];
        let run = Run::make(&stage, stage.allowing(&some), &script);
        assert!(run.outcome.stdout.starts_with("from-the-real-origin one\n"), "{run}");
        let told = spelt("PERMISSION_DENIED outgate denied POST http://rpc.example:50051/demo.Echo/Many");
        assert!(run.errors.contains(&told), "{run}");
        assert_eq!(calls(), "once\nmany\nboth\nonce\n");
    }

    fn grpc_of_node_works_too(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["node"]) else { return };
        let log = grpc(&stage);
        let scenario = Scenario {
            name: "gRPC of node",
            allow: &["POST http://rpc.example:50051/demo.Echo/Once"],
            script: CALL_IN_NODE,
            shows: MARK,
            requests: &[],
            told: "PERMISSION_DENIED",
            host: "rpc.example",
        };
        scenario.check_allowed(&mut stage);
        scenario.check_denied(&mut stage, &["http://rpc.example:50051/other"]);
        assert_eq!(std::fs::read_to_string(&log).unwrap_or_default(), "once\n");
    }

    fn grpc_of_go_works_too(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["go"]) else { return };
        let log = grpc(&stage);
        let scenario = Scenario {
            name: "gRPC of Go",
            allow: &["POST http://rpc.example:50051/demo.Echo/*"],
            script: CALL_IN_GO,
            shows: "echo last",
            requests: &[],
            told: "PermissionDenied",
            host: "rpc.example",
        };
        scenario.check_allowed(&mut stage);
        scenario.check_denied(&mut stage, &["http://rpc.example:50051/other"]);
        assert_eq!(std::fs::read_to_string(&log).unwrap_or_default(), "once\nboth\n");
    }
}

lab_tests! {
    fn a_gibibyte_passes_in_each_direction(lab) {
        let Some(mut stage) = Stage::start(lab, &[]) else { return };
        let file = stage.host("site.example").join("big");
        let file = std::fs::File::create(file).expect("a file");
        file.set_len(GIBIBYTE).expect("a sparse file");
        let scenarios = [
            Scenario {
                name: "a gibibyte down",
                allow: &["GET http://site.example/big"],
                script: "curl -sS -f -o /dev/null -w '%{size_download} bytes' http://site.example/big",
                shows: "1073741824 bytes",
                requests: &["site.example GET /big"],
                ..Scenario::PLAIN
            },
            Scenario {
                name: "a gibibyte up",
                allow: &["PUT http://live.example/sink"],
                script: "head -c 1G /dev/zero | curl -sS -f -T - http://live.example/sink",
                shows: "from-the-real-origin 1073741824",
                requests: &["live.example PUT /sink 1073741824"],
                host: "live.example",
                ..Scenario::PLAIN
            },
        ];
        check_all(&mut stage, &scenarios);
    }

    fn what_was_sent_is_what_arrives(lab) {
        let Some(mut stage) = Stage::start(lab, &[]) else { return };
        let script = r"head -c 50000000 /dev/urandom > sent
curl -sS -f -T sent http://live.example/sink | cut -d' ' -f 3 > arrived
sha256sum < sent | cut -d' ' -f 1 | cmp - arrived && echo same";
        let scenario = Scenario {
            name: "fifty megabytes of noise",
            allow: &["PUT http://live.example/sink"],
            script,
            shows: "same",
            requests: &["live.example PUT /sink 50000000"],
            host: "live.example",
            ..Scenario::PLAIN
        };
        scenario.check(&mut stage);
    }

    fn grpc_works_over_a_tcp_rule(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &[]) else { return };
        let log = grpc(&stage);
        let calls = || std::fs::read_to_string(&log).unwrap_or_default();
        let script = CALLS.replace("TARGET", "rpc.example:50051");
        let scenario = Scenario {
            name: "gRPC, unseen",
            allow: &["tcp://rpc.example:50051"],
            script: &script,
            shows: "echo last",
            requests: &[],
            told: "UNAVAILABLE",
            host: "rpc.example",
        };
        scenario.check(&mut stage);
        assert_eq!(calls(), "once\nmany\nboth\n");
    }
}

/// Calls of every kind.
pub(crate) const CALLS: &str = r"python3 - <<'E'
import sys, grpc
ADDRESS = 'TARGET'
with grpc.insecure_channel(ADDRESS) as channel:
    try:
        print(channel.unary_unary('/demo.Echo/Once')(b'one', timeout=20).decode())
        print([part.decode() for part in channel.unary_stream('/demo.Echo/Many')(b'many', timeout=20)])
        parts = channel.stream_stream('/demo.Echo/Both')(iter([b'first', b'last']), timeout=20)
        print(*(part.decode() for part in parts), sep='\n')
    except grpc.RpcError as error:
        print(error.code(), error.details(), file=sys.stderr)
        sys.exit(1)
E";

/// One call.
pub(crate) const CALL_IN_NODE: &str = r"node - <<'E'
const grpc = require('@grpc/grpc-js');
const client = new grpc.Client('rpc.example:50051', grpc.credentials.createInsecure());
const whole = (bytes) => bytes;
const limit = { deadline: Date.now() + 20000 };
client.makeUnaryRequest('/demo.Echo/Once', whole, whole, Buffer.from('one'), new grpc.Metadata(), limit, (error, answer) => {
  if (error) { console.error(grpc.status[error.code], error.details); process.exitCode = 1; }
  else console.log(String(answer));
  client.close();
});
E";

/// A call, and a conversation.
pub(crate) const CALL_IN_GO: &str = "go-client call rpc.example:50051";

/// Starts the server of gRPC; the file that names each call.
pub(crate) fn grpc(stage: &Stage<'_>) -> std::path::PathBuf {
    let folder = stage.lab.folder("grpc", Identity::Own);
    let log = folder.join("calls.log");
    let program = include_str!("origins/grpc_server.py");
    let address = format!("{FILES}:50051");
    let (log_name, secrets) = (log.to_string_lossy().into_owned(), stage.secrets());
    let mut line = vec![
        "env",
        "PYTHONPATH=/run/clients/tools/python",
        "PYTHONDONTWRITEBYTECODE=1",
        "python3",
        "-c",
        program,
        &address,
        &log_name,
    ];
    if is_opened() {
        line.extend(secrets.iter().map(String::as_str));
    }
    serve(&line, &folder, &[&address]);
    log
}
