//! What the kernel tells a network of a group that somebody joins (IGMP, RFC 3376; MLD, RFC
//! 3810) is chosen by who joins, and it takes memberships of TCP sockets.

use std::fs;

use outgate_harness::{Identity, Lab, lab_tests};

/// Joins groups whose names are text, by every option of both levels, on streams of both
/// families, and holds them until it is told to end. Says how each was answered.
const JOIN: &str = r"
import socket, struct, sys
lo = socket.if_nametoindex('lo')
four, six = socket.socket(), socket.socket(socket.AF_INET6)
def storage(address):
    if len(address) == 4: text = struct.pack('=HH4s', socket.AF_INET, 0, address)
    else: text = struct.pack('=HHI16sI', socket.AF_INET6, 0, 0, address, 0)
    return text.ljust(128, b'\0')
def group(address): return struct.pack('=Ixxxx', lo) + storage(address)
def source(address, sender): return group(address) + storage(sender)
def several(address, senders):
    return group(address) + struct.pack('=II', 1, len(senders)) + b''.join(map(storage, senders))
here = socket.inet_aton('127.0.0.1')
values = {
    (0, 35): b'\xefKE1' + here, (0, 39): b'\xefKE2' + here + b'OLDS', (0, 42): group(b'\xefKE3'),
    (0, 46): source(b'\xefKE4', b'SRCE'), (0, 48): several(b'\xefKE3', [b'MANY']),
    (0, 41): b'\xefKE1' + here + struct.pack('=II', 1, 1) + b'FILT',
    (41, 20): b'\xff\x1eOLDESTGROUP000' + struct.pack('=I', lo), (41, 42): group(b'\xff\x1eGROUPADDRESS00'),
    (41, 46): source(b'\xff\x1eGROUPADDRESS02', b'ONE-PRIVATE-KEY!'),
    (41, 48): several(b'\xff\x1eGROUPADDRESS00', [b'%02d-private-key!' % n for n in range(30)]),
}
for (level, option), value in values.items():
    # Unknown ones are tried with every value, so that no number is forgotten.
    try: (six if level else four).setsockopt(level, option, value)
    except OSError as error: pass
if len(sys.argv) > 1:
    for level, stream in ((0, four), (41, six)):
        for option in range(2, 256):
            for value in values.values():
                try: stream.setsockopt(level, option, value)
                except OSError: pass
print('joined', flush=True)
sys.stdin.readline()
";

/// What the machine's own network has of those groups, as everybody may read it.
fn told() -> String {
    let names = ["igmp", "igmp6", "mcfilter", "mcfilter6"];
    let all = names.map(|name| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default());
    let chosen = |line: &&str| {
        // `igmp` shows addresses as numbers of the machine.
        ["ef4b45", "454bef", "45 4bef", "ff1e47", "ff1e4f"]
            .iter()
            .any(|name| line.to_ascii_lowercase().contains(name))
    };
    all.iter()
        .flat_map(|text| text.lines())
        .filter(chosen)
        .collect()
}

fn joins(lab: &Lab, identity: Identity, words: &[&str], options: &[(&str, &str)]) -> String {
    let mut command = ["python3", "-c", JOIN].map(str::to_owned).to_vec();
    command.extend(words.iter().map(|&word| word.to_owned()));
    let mut sandbox = lab.sandbox(identity).with_input();
    for (option, value) in options {
        sandbox = sandbox.option(option, value);
    }
    let mut run = sandbox.start(&command);
    run.wait_for("joined");
    let told = told();
    run.say("end\n");
    let outcome = run.finish();
    assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
    told
}

lab_tests! {
    fn no_membership_of_a_stream_tells_a_network_anything(lab) {
        let mut bare = lab.start_bare(Identity::Nobody, &["/usr/bin/python3", "-c", JOIN].map(str::to_owned));
        bare.wait_for("joined");
        assert!(told().to_ascii_lowercase().contains("ff1e47"), "a stream may join, bare");
        bare.say("end\n");
        bare.finish();
        assert_eq!(told(), "", "and leaves at its end");
        for identity in Identity::all() {
            for words in [&[][..], &["every"]] {
                assert_eq!(joins(lab, identity, words, &[]), "", "{identity:?}");
                let told = joins(lab, identity, words, &[("-a", "tcp://127.0.0.1:9")]);
                assert_eq!(told, "", "{identity:?}");
            }
        }
    }
}
