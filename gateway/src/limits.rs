//! Every bound of the gateway, with its unit and its reason. Constants only:
//! whoever waits, buffers or counts takes the number from here.

use std::time::Duration;

/// Connections of one sandbox that are served at once; fewer where the user's
/// limit of open files is too low for them.
pub(crate) const FLOWS_MAX: usize = 1024;

/// Descriptors of one connection: both its sides, and a pipe for each
/// direction that carries much.
pub(crate) const DESCRIPTORS_PER_FLOW: u64 = 6;

/// Descriptors kept for everything else: names, records, unused origins.
pub(crate) const DESCRIPTORS_RESERVED: u64 = 160;

/// Descriptors that suffice for all connections at once.
pub(crate) const DESCRIPTORS_WANTED: u64 = 8192;

/// Questions of one sandbox that wait for an answer at once; more of them
/// wait in the socket.
pub(crate) const QUESTIONS_MAX: usize = 256;

/// Bytes read before a connection must have shown what it speaks. Twice the
/// largest head or handshake that real clients send.
pub(crate) const CLASSIFY_BYTES_MAX: usize = 64 * 1024;

/// Time until a connection must have shown what it speaks. A client that
/// waits for the server to speak first learns of its mistake in this time.
pub(crate) const CLASSIFY_TIME: Duration = Duration::from_secs(10);

/// Bytes of one request or response head. What servers accept by default is
/// between 8 and 64 KiB.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the same as HTTP/2 counts them: 32 more for each field
/// (RFC 9113 6.5.2).
pub(crate) const HEAD_LIST_BYTES_MAX: u32 = 64 * 1024 + 32 * 100;

/// Bytes of one header block as it is coded: what the engine decodes of a head that
/// it answers with a refusal.
pub(crate) const HEAD_BLOCK_BYTES_MAX: usize = 4 * HEAD_BYTES_MAX;

/// Streams of one connection whose requests are malformed and which nobody asked
/// for yet. The engine ends the connection after half as many that it resets.
pub(crate) const STREAMS_FAULTY_MAX: usize = 128;

/// Streams of one HTTP/2 connection at once. Clients begin with 100.
pub(crate) const STREAMS_MAX: u32 = 128;

/// Time for an origin to say which settings its streams have, where that has
/// to be known, and between two looks at them.
pub(crate) const SETTINGS_TIME: Duration = Duration::from_secs(2);
pub(crate) const SETTINGS_PAUSE: Duration = Duration::from_millis(2);

/// Bytes that one stream may send before they were passed on. One delay of
/// 100 ms then still lets 10 MB pass in a second.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;

/// The same for all streams of a connection together: some may stand still
/// without holding up the others.
pub(crate) const STREAMS_WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// Streams of one connection that were reset and are still remembered; more
/// at once is an attack (CVE-2023-44487), and ends the connection.
pub(crate) const STREAMS_RESET_MAX: usize = 64;

/// Frames without content that a client of HTTP/2 may send at once: it makes room
/// for what is on its way to it, in the smallest steps that are known.
pub(crate) const EMPTY_FRAMES_MAX: u64 = 16_384;

/// The same each second, for pings and priorities of many streams.
pub(crate) const EMPTY_FRAMES_PER_SECOND: u64 = 1000;

/// Bytes to the client for each of which it may send one more: some make room
/// twice, for the stream and the connection, for every 4 KiB.
pub(crate) const EMPTY_FRAME_PER_BYTES: u64 = 512;

/// Bytes buffered per connection and direction where the other side is
/// slower. Small answers stay far below; large ones need fewer calls.
pub(crate) const BUFFER_BYTES_MAX: usize = 256 * 1024;

/// Fields of one request or response head: what the parser of HTTP/1.1 has
/// room for without asking for memory, and by itself refuses to exceed.
pub(crate) const FIELDS_MAX: usize = 100;

/// Interim responses to one request that are passed on.
pub(crate) const INTERIM_MAX: usize = 16;

/// Bytes of one request target. RFC 9110 4.1 asks for at least 8000.
pub(crate) const TARGET_BYTES_MAX: usize = 16 * 1024;

/// Bytes of one request method. The longest registered one has 17.
pub(crate) const METHOD_BYTES_MAX: usize = 32;

/// Time between two requests of a connection, and for reading a head. Longer
/// than the idle time of common clients' pools.
pub(crate) const HEAD_TIME: Duration = Duration::from_mins(2);

/// Time without a request after which a connection gives back its buffers
/// until the next one. Requests that follow each other closely do not wait
/// for new ones.
pub(crate) const PARK_TIME: Duration = Duration::from_millis(50);

/// Entries of `Via` that name this program before a request counts as going
/// in circles; sandboxes inside sandboxes add one each.
pub(crate) const VIA_MAX: usize = 8;

/// Time to reach an origin, all its addresses together.
pub(crate) const DIAL_TIME: Duration = Duration::from_secs(10);

/// Bytes of the head of an upstream proxy's answer.
pub(crate) const PROXY_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Head start of each address before the next is tried too (RFC 8305 5).
pub(crate) const DIAL_STAGGER: Duration = Duration::from_millis(250);

/// Time for a TLS handshake, with a client or an origin.
pub(crate) const TLS_HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Connections that the origin of `outgate check --clients` serves at once.
pub(crate) const TRIAL_CONNECTIONS_MAX: usize = 64;

/// How long it waits for one of the checked clients.
pub(crate) const TRIAL_TIME: Duration = Duration::from_secs(10);

/// Certificates between a client's own and its root, with its own.
pub(crate) const IDENTITY_CHAIN_MAX: usize = 8;

/// Bytes of a file with root certificates. Systems' bundles have 250 KiB.
pub(crate) const ROOTS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Connections that must be done before memory is given back to the system.
pub(crate) const TRIM_CONNECTIONS: u32 = 128;

/// Time from then, or from the start, until it is: most of a crowd goes at once,
/// and most runs are over before. It takes about a millisecond for each 25 MiB, and
/// everybody waits meanwhile.
pub(crate) const TRIM_TIME: Duration = Duration::from_millis(1500);

/// Time an unused connection to an origin is kept. Below the idle time of
/// most servers, so that few are found closed.
pub(crate) const ORIGIN_IDLE: Duration = Duration::from_secs(30);

/// Unused connections kept over all origins of a sandbox.
pub(crate) const ORIGIN_IDLE_MAX: usize = 64;

/// Time without a byte after which a client that ended its side counts as
/// gone: whether it only stopped sending cannot be told from outside.
pub(crate) const HALF_CLOSED_TIME: Duration = Duration::from_mins(2);

/// Time without a byte in either direction until a tunnel, a request that is
/// not complete or a response that does not come is given up. Calls that wait
/// for events stay silent for long.
pub(crate) const TUNNEL_IDLE: Duration = Duration::from_hours(2);

/// Bytes of a tunnel's buffer, one per direction. Small, since most tunnels
/// idle; what carries much is moved by the kernel.
pub(crate) const TUNNEL_BUFFER_BYTES: usize = 16 * 1024;

/// Bytes after which a direction counts as carrying much.
pub(crate) const SPLICE_AFTER_BYTES: u64 = 256 * 1024;

/// Bytes of the pipe that carries them, and of one move. What the kernel
/// grants to any user (pipe(7), pipe-max-size).
pub(crate) const SPLICE_BYTES: usize = 1024 * 1024;

/// Bytes of denied content that are read and dropped, so that the client
/// gets to see the answer instead of a reset.
pub(crate) const DRAIN_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Time for that.
pub(crate) const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Longest that a call of the serving thread waits, as close(2) of what others sent may.
pub(crate) const SERVING_CALL_MAX: Duration = Duration::from_millis(5);
/// How long the alarm that ends such a call goes on ringing before it is looked at again.
pub(crate) const SERVING_ALARM_TIME: Duration = Duration::from_millis(50);

/// Time a refused client has to read its refusal, and a launcher to hang up.
pub(crate) const LINGER_TIME: Duration = Duration::from_secs(2);

/// Names of one sandbox that hold a synthetic address: a quarter of the range,
/// so that probing stays short.
pub(crate) const NAMES_MAX: usize = 32 * 1024;

/// Bytes of a DNS message over UDP without EDNS (RFC 1035 4.2.1).
pub(crate) const DNS_DATAGRAM_BYTES: usize = 512;

/// Bytes of a DNS message that is read at all. Questions are small.
pub(crate) const DNS_QUESTION_BYTES_MAX: usize = 4096;

/// Time between two questions on one TCP connection (RFC 7766 6.2.3).
pub(crate) const DNS_IDLE: Duration = Duration::from_secs(30);

/// Seconds a synthetic address may be cached by the client.
pub(crate) const DNS_TTL_SECONDS: u32 = 60;

/// Datagram stub sockets of one sandbox: one per address family and network
/// namespace.
pub(crate) const STUBS_MAX: usize = 16;

/// Time for resolving a name, all servers and attempts together.
pub(crate) const RESOLVE_TIME: Duration = Duration::from_secs(5);

/// Time for one attempt at one server.
pub(crate) const RESOLVE_ATTEMPT_TIME: Duration = Duration::from_millis(1500);

/// Resolved names kept per sandbox.
pub(crate) const RESOLVED_MAX: usize = 4096;

/// Addresses used of one answer.
pub(crate) const RESOLVED_ADDRESSES_MAX: usize = 16;

/// Shortest and longest time an answer holds where the policy wants its own
/// time to live.
pub(crate) const RESOLVED_TTL: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(30));

/// Bytes read of hosts(5) and resolv.conf(5).
pub(crate) const SYSTEM_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Lines of hosts(5) that are used.
pub(crate) const HOSTS_LINES_MAX: usize = 16 * 1024;

/// Denied targets told on standard error per sandbox; the records hold all.
pub(crate) const NOTICES_MAX: usize = 64;

/// Alarms told on standard error per sandbox, whatever was denied: the first of
/// them says it all, and the summary how many there were.
pub(crate) const ALARMS_MAX: usize = 16;

/// Hosts that the summary names of those whose TLS passed unopened: one line.
pub(crate) const SUMMARY_HOSTS_MAX: usize = 4;

/// Time an answer of a redirect may be reused by the launcher,
/// in milliseconds. Direct connections are asked for each time, so that each
/// is recorded.
pub(crate) const REUSE_MS: u32 = 1000;

/// Bytes of records that wait to be written together; one turn of the event
/// loop makes far less.
pub(crate) const AUDIT_AHEAD_BYTES_MAX: usize = 64 * 1024;

/// Connections of a sandbox from which on their records are written together.
/// Fewer seldom ask in the same turn, and waiting for nobody costs time.
pub(crate) const RECORD_TOGETHER: usize = 4;

/// Bytes of a text inside an audit record.
pub(crate) const AUDIT_TEXT_BYTES_MAX: usize = 2048;

/// Bytes after which a record goes on in another file, in the audit directory:
/// some hundred thousand decisions.
pub(crate) const AUDIT_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Leftovers that one session may have recorded: those of a launcher, and one word that it did
/// not look at everything.
pub(crate) const LEFTOVERS_MAX: usize = 257;

/// Files of earlier runs that are kept in the audit directory.
pub(crate) const AUDIT_FILES_MAX: usize = 64;

/// Entries of a directory of rotated records that are looked at: years of hourly files.
pub(crate) const AUDIT_LISTED_MAX: usize = 100_000;

/// Runs of which one record says what is removed: more go with the next file.
pub(crate) const AUDIT_SAID_MAX: usize = 16;

/// Time that connections have to deliver what a finished command left behind.
pub(crate) const FINISH_TIME: Duration = Duration::from_millis(500);

/// Time for a launcher to send its policy.
pub(crate) const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Open files of a shared gateway at most: its hard limit, but no more than the kernel's
/// own default for the largest (fs.nr_open).
pub(crate) const SHARED_DESCRIPTORS_WANTED: u64 = 1_048_576;

/// Of them, those that are shared out where nobody says how many sandboxes there may be.
pub(crate) const SHARED_DESCRIPTORS_PLANNED: u64 = 65_536;

/// Sandboxes of a shared gateway at once.
pub(crate) const SHARED_SESSIONS_MAX: usize = 512;

/// Descriptors one sandbox of a shared gateway holds without a connection:
/// its control socket, stub sockets, unused connections to origins, names.
pub(crate) const DESCRIPTORS_PER_SESSION: usize =
    DESCRIPTORS_OF_SESSION + STUBS_MAX + ORIGIN_IDLE_MAX;

/// Of them its control socket, and names on their way.
pub(crate) const DESCRIPTORS_OF_SESSION: usize = 1 + 3;

/// Stub sockets of a sandbox where there are many: a launcher has one for each version of
/// IP, and may begin anew.
pub(crate) const STUBS_LEAST: usize = 4;

/// Descriptors one sandbox of a shared gateway has at the least without a connection.
pub(crate) const DESCRIPTORS_PER_SESSION_LEAST: usize = DESCRIPTORS_OF_SESSION + STUBS_LEAST + 1;

/// Open files per sandbox: what it holds without a connection, and some.
pub(crate) const DESCRIPTORS_PER_SEAT: usize = 128;

/// Names of one sandbox of a shared gateway: there are many of them, and one
/// user may have half.
pub(crate) const SHARED_NAMES_MAX: usize = 4096;

/// Bytes of policy text of one sandbox of a shared gateway.
pub(crate) const SHARED_POLICY_BYTES_MAX: usize = 512 * 1024;

/// Sandboxes of one user whose policy is received or compiled at once; further
/// ones wait.
pub(crate) const SHARED_OPENINGS_MAX: usize = 8;

/// Clients of the explicit proxy at once that have not said who they are: a descriptor and
/// some KiB each. A quarter of them from one address.
pub(crate) const PROXY_GREETINGS_MAX: usize = 128;

/// Steps of ready tasks between two looks at the sockets. The runtime's own
/// number is 61, which is long where one step may judge a hard policy.
pub(crate) const SHARED_EVENT_INTERVAL: u32 = 1;

/// Threads that compile policies, so that long ones hold up no traffic.
pub(crate) const COMPILERS_MAX: usize = 2;

/// How long such a thread may have nothing to do: as good as for ever.
pub(crate) const COMPILERS_IDLE: Duration = Duration::from_hours(24 * 365);

/// Pause after a connection that could not be accepted.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections to the admin socket that are served at once.
pub(crate) const ADMIN_CONNECTIONS_MAX: usize = 16;

/// Time that one of them has, from its first byte to its last.
pub(crate) const ADMIN_TIME: Duration = Duration::from_secs(5);

/// Users that the status lists.
pub(crate) const ADMIN_USERS_MAX: usize = 100;

/// Time that running requests have when a shared gateway is to end, where nobody says.
pub(crate) const ENDING_TIME: Duration = Duration::from_secs(10);

/// Pause until every session knows that the gateway ends.
pub(crate) const ENDING_PAUSE: Duration = Duration::from_millis(50);

/// Time for all sessions to close when a shared gateway ends.
pub(crate) const CLOSE_TIME: Duration = Duration::from_secs(2);

/// Bytes of a secret at least. Shorter texts stand anywhere by chance, and
/// would be masked there.
pub(crate) const SECRET_BYTES_MIN: usize = 8;

/// Bytes of a secret at most: tokens that hold their claims have some thousand.
pub(crate) const SECRET_BYTES_MAX: usize = 8 * 1024;

/// Bytes that are read of a file with a secret, or of what a command prints.
pub(crate) const SECRET_SOURCE_BYTES_MAX: usize = 64 * 1024;

/// Time a command has to print a secret: some ask a person first.
pub(crate) const SECRET_COMMAND_TIME: Duration = Duration::from_secs(30);

/// Bytes of content that are held whole before a request is sent, where it may
/// hold a placeholder: a refusal then comes before the origin sees anything.
pub(crate) const SECRET_HELD_BYTES_MAX: u64 = 256 * 1024;

/// The same where content has to be hashed before it is signed.
pub(crate) const SECRET_SIGNED_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Time between two looks at the files that secrets come from, in milliseconds:
/// one stat(2) each.
pub(crate) const SECRET_LOOK_MS: u16 = 1000;

/// Time that the end of a message waits, where it may be the beginning of a
/// value: longer than the pauses inside what was sent at once.
pub(crate) const SECRET_PATIENCE: Duration = Duration::from_millis(100);

/// Time between two times that a secret is read again because an origin minds
/// it: a command that runs a program of the user's must not run it all the time.
pub(crate) const SECRET_AGAIN_TIME: Duration = Duration::from_secs(20);

/// Hosts for which a sandbox's last values are kept, against credentials that
/// are sent in pieces: enough for what a command talks to at once, at most 4 KiB for each source.
pub(crate) const SCAN_WINDOWS_MAX: usize = 64;
/// How often a head that comes again is read together with what came before: as often as
/// the same letter may stand in a row in a credential.
pub(crate) const SCAN_AGAIN_MAX: usize = 4;
/// Messages of a WebSocket or of gRPC that are looked at before others have a
/// turn: with what went before each takes up to a millisecond.
pub(crate) const SCAN_MESSAGES_PER_TURN: usize = 8;
/// Bytes, and parts of different kinds, that may wait behind a message that is
/// not over: far more than the scan ever holds back of one.
pub(crate) const SCAN_MESSAGE_HELD_BYTES_MAX: usize = 1024 * 1024;
pub(crate) const SCAN_MESSAGE_HELD_PARTS_MAX: usize = 4096;
/// Bytes of content whose values are told apart, so that a credential which is
/// split over several requests is seen; of longer content, its end.
pub(crate) const SCAN_VALUES_BYTES_MAX: usize = 16 * 1024;
/// Values of one content that are told apart: as many as the scan keeps of a source.
pub(crate) const SCAN_VALUES_MAX: usize = 512;
/// Messages of Protocol Buffers inside of each other whose texts are told apart.
pub(crate) const SCAN_MESSAGE_DEPTH_MAX: usize = 8;
/// Parts of requests that are remembered as clean, at 8 bytes each: the fields of
/// some clients, and targets that are asked for again.
pub(crate) const SCAN_CLEAN_MAX: usize = 8192;
/// How long a request may wait for a person, and its question for one who tries again, at most:
/// longer than clients wait.
pub(crate) const ASK_TIME_MAX: Duration = Duration::from_mins(10);
/// How long a held call, or a connection that waits in its place, may take: clients give up
/// connecting after ten seconds, the hastiest of those that have such a time by default.
pub(crate) const ASK_CALL_TIME_MAX: Duration = Duration::from_secs(9);
/// Requests of one sandbox that wait for a person, beside a quarter of its connections.
pub(crate) const ASK_WAITERS_MAX: usize = 256;
/// Questions that are open at once in one sandbox.
pub(crate) const ASK_OPEN_MAX: usize = 64;
/// Those of them about one host: one host's are not to hide others'.
pub(crate) const ASK_OF_HOST_MAX: usize = 8;
/// Questions that were answered with no, and are remembered.
pub(crate) const ASK_DENIED_MAX: usize = 4096;
/// Rules granted for one request that had it, in one sandbox: beyond, none has one.
pub(crate) const USED_GRANTS_MAX: usize = 4096;
/// Budgets that are counted at once in one sandbox: beyond, nothing is left of a new one.
pub(crate) const BUDGETS_MAX: usize = 4096;
/// Share of a budget at which it is told that it is nearly spent, in percent.
pub(crate) const BUDGET_ALARM_PERCENT: u64 = 80;
/// Bytes of labels that were never named before and that may leave below one
/// registered domain, where no rule spells the name out: some two hundred hosts.
pub(crate) const LABEL_BYTES_MAX: usize = 4096;
/// Domains whose labels are counted one by one.
pub(crate) const LABEL_DOMAINS_MAX: usize = 256;
/// Findings in names that are recorded once and no more.
pub(crate) const LABEL_FINDINGS_MAX: usize = 1024;
/// Bytes of content that are read before anything is sent, so that a refusal is
/// a clean one. Most requests of programs are smaller.
pub(crate) const SCAN_AHEAD_BYTES_MAX: u64 = 256 * 1024;
/// Bytes of content behind which the rest is scanned by a thread beside: what most
/// requests of programs have is scanned where it is, in a millisecond.
pub(crate) const SCAN_LONG_BYTES: u64 = 64 * 1024;
/// Bytes that the scan may make of content where it is, by decoding and decompressing: two
/// milliseconds of work. Behind that it begins anew beside.
pub(crate) const SCAN_HERE_BYTES_MADE: u64 = 128 * 1024;
/// How long content may have taken where it is before the rest is scanned beside.
pub(crate) const SCAN_HERE_TIME: Duration = Duration::from_millis(2);
/// Bytes of a WebSocket that are looked at where they are: however much is made of them,
/// others wait for some milliseconds.
pub(crate) const SCAN_TALK_BYTES: usize = 1024;
/// Bytes that such a thread gets at once, about: enough that going to and fro costs
/// little beside. As many are gathered meanwhile, and as many may wait to be sent.
pub(crate) const SCAN_APART_BYTES: usize = 256 * 1024;
/// How long work that others wait for goes on before it is their turn.
pub(crate) const SCAN_TURN_TIME: Duration = Duration::from_millis(5);
/// Bytes that such a thread looks at in one step at least and at most: fewer the more is
/// made of them.
pub(crate) const SCAN_PART_BYTES_MIN: usize = 512;
pub(crate) const SCAN_PART_BYTES: usize = 64 * 1024;
/// Bytes that it looks at in its first step.
pub(crate) const SCAN_PART_BYTES_FIRST: usize = 8 * 1024;
/// Bytes made in a step before the next one is shorter.
pub(crate) const SCAN_STEP_BYTES_MADE: u64 = 256 * 1024;
/// Pieces of content that are shorter are put together while they wait: each takes
/// some memory of its own.
pub(crate) const SCAN_PIECE_BYTES_MIN: usize = 4 * 1024;
/// Threads that scan, at most.
pub(crate) const SCANNERS_MAX: usize = 8;
/// Stack of such a thread: what the first thread of a process has, since contents
/// in contents are looked into by calls in calls.
pub(crate) const SCANNER_STACK_BYTES: usize = 8 * 1024 * 1024;
/// How long content of a known and small length may take to come before the
/// request begins without it.
pub(crate) const SCAN_AHEAD_TIME: Duration = Duration::from_secs(2);
/// How long content of an unknown length may pause before the request begins:
/// some clients send the rest only after they were answered.
pub(crate) const SCAN_PAUSE_TIME: Duration = Duration::from_millis(20);
/// After which what still waits is looked at again.
pub(crate) const SCAN_HELD_TIME: Duration = Duration::from_secs(2);

/// Hosts of issuers in a line about a denial, at most: as many as somebody reads.
pub(crate) const HOSTS_SHOWN_MAX: usize = 8;

/// Lines about files of the user's that could not be read, at most: the rest of
/// them say the same.
pub(crate) const LEFT_OUT_MAX: usize = 3;

/// How long an account has to wait that handed a shared gateway what no launcher
/// hands over, the first time: a fault of one program costs its user little.
pub(crate) const BARRED_TIME: Duration = Duration::from_secs(5);

/// The same at most, after doubling with each further time; as long quiet, and it
/// begins anew. A flood of them is twelve an hour.
pub(crate) const BARRED_TIME_MAX: Duration = Duration::from_mins(5);

/// Bytes of one line of the summary about a group of denials: the longest shown path twice.
pub(crate) const DIGEST_LINE_BYTES_MAX: usize = 800;

/// Longest wait for a setting, in milliseconds: whoever started the gateway has them ready.
pub(crate) const SETTINGS_WAIT_MS: u16 = 10_000;

/// Changes of one run that wait for those before them.
pub(crate) const CHANGES_MAX: usize = 4;
