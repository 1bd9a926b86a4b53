//! Frames survive the way there and back; anything else is refused, and
//! nothing that a peer sends can do more than that.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use outgate_handoff::{
    ADDRESSES_MAX, Answer, Ask, AskTimes, BeginFrame, CallQuestion, Decision, FRAME_BYTES_MAX,
    FlowFrame, FrameError, GatewaySetting, HEADER_BYTES, HelloFrame, HoldForm, LINE_BYTES_MAX,
    NAME_BYTES_MAX, PARENTS_MAX, PATH_BYTES_MAX, Parent, ProcessFacts, RecordRotation,
    SOURCE_CHUNK_BYTES_MAX, ShareLimit, SourceFrame, ToGateway, ToLauncher, TokenFrame,
};
use outgate_policy::{NamedSecret, PolicyOption, SecretKind, SecretSource, SourceKind};
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(any::<char>(), 0..40).prop_map(|text| text.into_iter().collect())
}

fn address() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

fn process() -> impl Strategy<Value = ProcessFacts> {
    let parent = (any::<u32>(), text()).prop_map(|(pid, executable)| Parent { pid, executable });
    let parents = proptest::collection::vec(parent, 0..=PARENTS_MAX);
    (any::<u32>(), text(), parents).prop_map(|(pid, executable, parents)| ProcessFacts {
        pid,
        executable,
        parents,
    })
}

fn hold() -> impl Strategy<Value = HoldForm> {
    prop_oneof![
        Just(HoldForm::Refuse),
        Just(HoldForm::Crowded),
        Just(HoldForm::Call),
        Just(HoldForm::Connection),
    ]
}

fn question() -> impl Strategy<Value = CallQuestion> {
    prop_oneof![
        address().prop_map(|destination| CallQuestion::Connect { destination }),
        proptest::collection::vec(any::<u8>(), 0..200).prop_map(|path| CallQuestion::Unix { path }),
        address().prop_map(|address| CallQuestion::Listen { address }),
    ]
}

fn source_kind() -> impl Strategy<Value = SourceKind> {
    proptest::sample::select(vec![
        SourceKind::Document,
        SourceKind::Allow,
        SourceKind::Deny,
        SourceKind::Pin,
        SourceKind::Read,
        SourceKind::Write,
        SourceKind::Listen,
        SourceKind::Project,
        SourceKind::Secret,
        SourceKind::Learning,
        SourceKind::Lock,
        SourceKind::Manifest,
        SourceKind::UntrustedManifest,
        SourceKind::Option(PolicyOption::Intercept),
        SourceKind::Option(PolicyOption::Authority),
        SourceKind::Option(PolicyOption::ClientCertificate),
        SourceKind::Option(PolicyOption::Inspect),
        SourceKind::Option(PolicyOption::Detector),
        SourceKind::Option(PolicyOption::Known),
        SourceKind::Option(PolicyOption::KnownFile),
        SourceKind::Option(PolicyOption::Canaries),
        SourceKind::Option(PolicyOption::Strict),
        SourceKind::Option(PolicyOption::Monitor),
    ])
}

fn setting() -> impl Strategy<Value = GatewaySetting> {
    let path = || text().prop_map(PathBuf::from);
    let kind = prop_oneof![Just(SecretKind::Value), Just(SecretKind::Aws)];
    let source = prop_oneof![
        text().prop_map(SecretSource::Variable),
        text().prop_map(SecretSource::File),
        text().prop_map(SecretSource::Command),
    ];
    let secret = (text(), kind, source);
    prop_oneof![
        path().prop_map(GatewaySetting::RecordFile),
        path().prop_map(GatewaySetting::RecordDirectory),
        (path(), any::<[u64; 4]>()).prop_map(|(path, [bytes, seconds, files, stay_seconds])| {
            let rotation = RecordRotation {
                bytes,
                seconds,
                files,
                stay_seconds,
            };
            GatewaySetting::RotatedRecords(path, rotation)
        }),
        path().prop_map(GatewaySetting::UpstreamCa),
        path().prop_map(GatewaySetting::Authority),
        path().prop_map(GatewaySetting::KnownValues),
        (text(), path(), path()).prop_map(|(host, certificate, key)| {
            GatewaySetting::ClientCertificate {
                host,
                certificate,
                key,
            }
        }),
        secret.prop_map(|(name, kind, source)| {
            GatewaySetting::Secret(NamedSecret { name, kind, source })
        }),
        any::<[u8; 32]>().prop_map(GatewaySetting::Canaries),
        Just(GatewaySetting::OwnSecrets),
        (
            proptest::sample::select(ShareLimit::ALL.to_vec()),
            any::<u32>()
        )
            .prop_map(|(limit, value)| GatewaySetting::Limit(limit, value)),
        Just(GatewaySetting::End),
    ]
}

fn to_gateway() -> impl Strategy<Value = ToGateway> {
    let hello =
        (any::<u16>(), text(), text(), any::<u32>()).prop_map(|(protocol, build, sandbox, pid)| {
            ToGateway::Hello(HelloFrame {
                protocol,
                build,
                sandbox,
                pid,
            })
        });
    let chunk = proptest::collection::vec(any::<u8>(), 0..300);
    let source =
        (any::<u32>(), source_kind(), text(), chunk).prop_map(|(index, kind, place, chunk)| {
            ToGateway::Source(SourceFrame {
                index,
                kind,
                place,
                chunk,
            })
        });
    let begin = (text(), text(), text(), text()).prop_map(
        |(home, working_directory, private_directory, command)| {
            ToGateway::Begin(BeginFrame {
                home,
                working_directory,
                private_directory,
                command,
                ask: AskTimes {
                    held_seconds: 25,
                    open_seconds: 300,
                },
            })
        },
    );
    prop_oneof![
        hello,
        source,
        begin,
        (any::<u64>(), question(), process(), hold()).prop_map(|(id, question, process, hold)| {
            let ask = Ask {
                question,
                process,
                hold,
            };
            ToGateway::Ask(id, ask)
        }),
        (question(), process())
            .prop_map(|(question, process)| ToGateway::Flow(FlowFrame { question, process })),
        Just(ToGateway::Stub),
        (text(), any::<[u8; 32]>(), proptest::option::of(0..u64::MAX)).prop_map(
            |(name, digest, left_ms)| ToGateway::Token(TokenFrame {
                name,
                digest,
                left_ms
            }),
        ),
        setting().prop_map(ToGateway::Setting),
        any::<u8>().prop_map(|status| ToGateway::Finish { status }),
        any::<u64>().prop_map(ToGateway::Ping),
        (any::<u64>(), text()).prop_map(|(id, what)| ToGateway::Change(id, what)),
        (text(), any::<u64>()).prop_map(|(place, left_ms)| ToGateway::Until { place, left_ms }),
        (text(), text(), text()).prop_map(|(kind, path, detail)| ToGateway::Leftover {
            kind,
            path,
            detail
        }),
    ]
}

fn to_launcher() -> impl Strategy<Value = ToLauncher> {
    let decision = prop_oneof![
        Just(Decision::Deny),
        Just(Decision::Redirect),
        proptest::collection::vec(address(), 0..=ADDRESSES_MAX).prop_map(Decision::Direct),
    ];
    let answer = (any::<u64>(), decision, any::<u64>(), any::<u32>()).prop_map(
        |(id, decision, generation, reuse_ms)| {
            let answer = Answer {
                decision,
                generation,
                reuse_ms,
            };
            ToLauncher::Answer(id, answer)
        },
    );
    prop_oneof![
        (any::<u64>(), text(), text(), text(), text()).prop_map(
            |(generation, build, audit, hosts, authority)| {
                ToLauncher::Ready {
                    generation,
                    build,
                    audit,
                    hosts,
                    authority,
                }
            },
        ),
        text().prop_map(|message| ToLauncher::Refused { message }),
        answer,
        text().prop_map(|line| ToLauncher::Notice { line }),
        any::<u64>().prop_map(|generation| ToLauncher::Generation { generation }),
        text().prop_map(|lines| ToLauncher::Summary { lines }),
        any::<u64>().prop_map(ToLauncher::Pong),
        text().prop_map(|message| ToLauncher::Kept { message }),
        text().prop_map(|lines| ToLauncher::Variables { lines }),
        (any::<u64>(), text()).prop_map(|(id, message)| ToLauncher::Changed(id, message)),
        text().prop_map(|place| ToLauncher::Spent { place }),
    ]
}

proptest! {
    #[test]
    fn frames_to_the_gateway_arrive_as_sent(frame in to_gateway()) {
        let bytes = frame.encode().expect("within the limits");
        prop_assert_eq!(ToGateway::decode(&bytes), Ok(frame));
        prop_assert!(ToLauncher::decode(&bytes).is_err());
    }

    #[test]
    fn frames_to_the_launcher_arrive_as_sent(frame in to_launcher()) {
        let bytes = frame.encode().expect("within the limits");
        prop_assert_eq!(ToLauncher::decode(&bytes), Ok(frame));
        prop_assert!(ToGateway::decode(&bytes).is_err());
    }

    #[test]
    fn a_frame_cut_or_lengthened_anywhere_is_refused(frame in to_gateway(), more in 1..9_usize) {
        let bytes = frame.encode().expect("within the limits");
        for cut in 0..bytes.len() {
            prop_assert!(ToGateway::decode(bytes.get(..cut).unwrap_or_default()).is_err());
        }
        let mut longer = bytes;
        longer.extend(vec![0; more]);
        prop_assert!(ToGateway::decode(&longer).is_err());
    }

    #[test]
    fn a_frame_with_a_lying_length_is_refused(frame in to_gateway(), claimed in any::<u32>()) {
        let mut bytes = frame.encode().expect("within the limits");
        let actual = bytes.len() - HEADER_BYTES;
        prop_assume!(usize::try_from(claimed) != Ok(actual));
        bytes.splice(4..8, claimed.to_le_bytes());
        prop_assert!(ToGateway::decode(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_answered(kind in 0..120_u16, body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(u32::try_from(body.len()).expect("short").to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(body);
        // What is accepted at all has exactly one spelling.
        if let Ok(frame) = ToGateway::decode(&bytes) {
            prop_assert!(frame.encode().is_ok());
        }
        if let Ok(frame) = ToLauncher::decode(&bytes) {
            prop_assert!(frame.encode().is_ok());
        }
    }
}

#[test]
fn fields_over_their_limits_are_refused_by_the_sender() {
    let over = |field, max| {
        Err(FrameError::Limit {
            field,
            max,
            actual: max + 1,
        })
    };
    let notice = ToLauncher::Notice {
        line: "x".repeat(LINE_BYTES_MAX + 1),
    };
    assert_eq!(notice.encode(), over("line", LINE_BYTES_MAX));
    let source = |place: usize, chunk: usize| {
        ToGateway::Source(SourceFrame {
            index: 0,
            kind: SourceKind::Allow,
            place: "x".repeat(place),
            chunk: vec![0; chunk],
        })
    };
    let whole = source(NAME_BYTES_MAX, SOURCE_CHUNK_BYTES_MAX).encode();
    assert!(whole.is_ok_and(|bytes| bytes.len() <= FRAME_BYTES_MAX));
    let long = source(0, SOURCE_CHUNK_BYTES_MAX + 1).encode();
    assert_eq!(long, over("chunk", SOURCE_CHUNK_BYTES_MAX));
    let named = source(NAME_BYTES_MAX + 1, 0).encode();
    assert_eq!(named, over("place", NAME_BYTES_MAX));
    let unix = ToGateway::Ask(
        1,
        Ask {
            question: CallQuestion::Unix {
                path: vec![b'x'; PATH_BYTES_MAX + 1],
            },
            process: ProcessFacts::default(),
            hold: HoldForm::Refuse,
        },
    );
    assert_eq!(unix.encode(), over("path", PATH_BYTES_MAX));
}

#[test]
fn the_largest_question_fits_a_frame() {
    let path = "x".repeat(PATH_BYTES_MAX);
    let parent = Parent {
        pid: 1,
        executable: path.clone(),
    };
    let ask = Ask {
        question: CallQuestion::Unix {
            path: path.clone().into_bytes(),
        },
        process: ProcessFacts {
            pid: 1,
            executable: path,
            parents: vec![parent; PARENTS_MAX],
        },
        hold: HoldForm::Call,
    };
    assert!(ToGateway::Ask(1, ask).encode().is_ok());
}
