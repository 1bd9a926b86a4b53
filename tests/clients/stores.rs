//! Stores: PostgreSQL, files over ssh, and objects over HTTP. What is no HTTP
//! goes over `tcp://` rules and is refused at once without one.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use outgate_harness::Identity;
use outgate_harness::lab_tests;
use outgate_harness::servers::serve;

use crate::scenario::{Run, Scenario, assert_requests, check_all};
use crate::stage::{FILES, MARK, Stage};

/// Where the store of objects listens.
const OBJECTS: &str = "127.0.0.1:5000";

/// The key that may log in, where the sandboxes of a stage may read.
const KEY: &str = "/run/clients/key";

/// Starts PostgreSQL, which refuses to run as root, on port 5432.
fn database(stage: &Stage<'_>) {
    let folder = stage.lab.folder("database", Identity::Nobody);
    let mut all: Vec<_> = fs::read_dir("/usr/lib/postgresql")
        .expect("PostgreSQL is installed")
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .filter(|path| path.join("postgres").exists())
        .collect();
    all.sort();
    let programs = all.pop().expect("PostgreSQL is installed");
    let script = format!(
        "set -e; export HOME=$PWD; {0}/initdb -D data -U tester --no-sync -A trust > log; echo 'host all all all trust' >> data/pg_hba.conf; exec {0}/postgres -D data -k '' -c listen_addresses=127.0.0.1,{FILES} -c fsync=off -c log_connections=on",
        programs.display()
    );
    let mut line = Identity::Nobody.prefix();
    line.extend(["bash", "-c", &script].map(str::to_owned));
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    serve(&line, &folder, &[&format!("{FILES}:5432")]);
}

/// Connections the database took, by its log.
fn sessions(stage: &Stage<'_>) -> usize {
    let folder = stage.lab.folder("database", Identity::Nobody);
    let log = fs::read_to_string(folder.join("setpriv.out")).unwrap_or_default();
    log.matches("connection received").count()
}

/// Starts sshd on port 2222, for whoever has [`KEY`].
fn shell(stage: &Stage<'_>) {
    let folder = stage.lab.folder("ssh", Identity::Own);
    for key in ["host", "user"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", key]);
        let made = keygen.current_dir(&folder).status();
        assert!(made.expect("ssh-keygen runs").success());
    }
    let configuration = format!(
        "Port 2222\nHostKey {0}/host\nAuthorizedKeysFile {0}/user.pub\nStrictModes no\nLogLevel VERBOSE\n\
         PermitRootLogin yes\nUsePAM no\nPidFile none\nSubsystem sftp internal-sftp\n",
        folder.display()
    );
    let file = folder.join("sshd_config");
    fs::write(&file, configuration).expect("a configuration");
    fs::create_dir_all("/run/sshd").expect("the folder sshd changes root to");
    let line = ["/usr/sbin/sshd", "-D", "-e", "-f", &file.to_string_lossy()];
    serve(&line, &folder, &["127.0.0.1:2222"]);
    let key = Path::new(KEY);
    fs::copy(folder.join("user"), key).expect("a key");
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).expect("mode 0600");
    let id = stage.identity.uid();
    chown(key, Some(id), Some(id)).expect("chown");
}

/// Starts a store of objects (S3) with an empty object in its only bucket.
pub(crate) fn objects(stage: &Stage<'_>) {
    let folder = stage.lab.folder("objects", Identity::Own);
    let (host, port) = OBJECTS.split_once(':').expect("an address and a port");
    let line = [
        "env",
        "S3_IGNORE_SUBDOMAIN_BUCKETNAME=true",
        "PYTHONPATH=/run/clients/tools/python",
        "PYTHONDONTWRITEBYTECODE=1",
        "python3",
        "-m",
        "moto.server",
        "-H",
        host,
        "-p",
        port,
    ];
    serve(&line, &folder, &[OBJECTS]);
    for path in ["bucket", "bucket/file"] {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-f", "-X", "PUT", "-d", ""]);
        let made = curl.arg(format!("http://{OBJECTS}/{path}")).output();
        let made = made.expect("curl runs");
        assert!(made.status.success(), "{made:?}");
    }
}

/// Makes an account at the store of objects, which asks for its keys from then on
/// and checks every signature.
const ACCOUNT: &str = r"
import boto3, json, urllib.request
where = 'http://127.0.0.1:5000'
own = {'region_name': 'us-east-1', 'aws_access_key_id': 'x', 'aws_secret_access_key': 'x'}
iam = boto3.client('iam', endpoint_url=where, **own)
iam.create_user(UserName='agent')
allow = {'Version': '2012-10-17', 'Statement': [{'Effect': 'Allow', 'Action': '*', 'Resource': '*'}]}
iam.put_user_policy(UserName='agent', PolicyName='all', PolicyDocument=json.dumps(allow))
keys = iam.create_access_key(UserName='agent')['AccessKey']
plain = {'Content-Type': 'text/plain'}
urllib.request.urlopen(urllib.request.Request(where + '/moto-api/reset-auth', b'0', plain))
print(keys['AccessKeyId'], keys['SecretAccessKey'])
";

/// The identifier and the secret half of its keys.
fn account() -> (String, String) {
    let mut python = Command::new("python3");
    python.args(["-c", ACCOUNT]);
    python.env("PYTHONPATH", "/run/clients/tools/python");
    let made = python.output().expect("python3 runs");
    let said = String::from_utf8_lossy(&made.stdout);
    let keys = said.trim().split_once(' ');
    let (id, secret) = keys.unwrap_or_else(|| panic!("no keys: {made:?}"));
    (id.to_owned(), secret.to_owned())
}

/// What clients of the store of objects need to know.
pub(crate) const KEYS: &str = "export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_DEFAULT_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true AWS_ENDPOINT_URL=http://objects.example AWS_CONFIG_FILE=none;";

const OBJECT_CLIENTS: [Scenario<'_>; 3] = [
    Scenario {
        name: "boto3",
        allow: &["GET,PUT http://objects.example/bucket/**"],
        script: r"KEYS python3 - <<'E'
import boto3, botocore
store = boto3.client('s3', config=botocore.config.Config(s3={'addressing_style': 'path'}))
store.put_object(Bucket='bucket', Key='key', Body=b'from-the-real-' + b'origin')
print(store.get_object(Bucket='bucket', Key='key')['Body'].read().decode())
E",
        shows: MARK,
        requests: &[
            "objects.example PUT /bucket/key",
            "objects.example GET /bucket/key",
        ],
        told: "An error occurred (AccessDenied) when calling the PutObject operation: outgate denied PUT http://objects.example/bucket/key: no rule allows it",
        host: "objects.example",
    },
    Scenario {
        name: "aws s3 cp",
        allow: &["GET,PUT,HEAD http://objects.example/bucket/**"],
        script: "KEYS echo from-the-real-origin > here; aws s3 cp --only-show-errors here s3://bucket/file && aws s3 cp --only-show-errors s3://bucket/file back && cat back",
        shows: MARK,
        requests: &[
            "objects.example PUT /bucket/file",
            "objects.example HEAD /bucket/file",
            "objects.example GET /bucket/file",
        ],
        told: "outgate denied PUT http://objects.example/bucket/file",
        host: "objects.example",
    },
    Scenario {
        name: "aws s3 ls",
        allow: &["GET http://objects.example/bucket"],
        script: "KEYS aws s3 ls s3://bucket && echo listed",
        shows: "listed",
        requests: &["objects.example GET /bucket?*"],
        told: "outgate denied GET http://objects.example/bucket: no rule allows it",
        host: "objects.example",
    },
];

carried_tests! {
    fn objects_are_stored(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &[]) else { return };
        objects(&stage);
        let scripts: Vec<String> = OBJECT_CLIENTS.iter().map(|one| one.script.replace("KEYS", KEYS)).collect();
        let all: Vec<Scenario<'_>> = OBJECT_CLIENTS.iter().zip(&scripts).map(|(one, script)| Scenario { script, ..*one }).collect();
        check_all(&mut stage, &all);
    }
}

lab_tests! {
    fn keys_that_the_command_has_not_got_sign_for_it(lab) {
        crate::stage::open_tls();
        let Some(mut stage) = Stage::with_tools(lab, &[]) else { return };
        objects(&stage);
        let (id, secret) = account();
        let boto3 = OBJECT_CLIENTS[0];
        // Others than its own the store refuses.
        let run = Run::make(&stage, stage.allowing(boto3.allow), &boto3.script.replace("KEYS", KEYS));
        assert!(run.errors.contains("InvalidAccessKeyId"), "{run}");
        let settings: Vec<&str> = KEYS.split(' ').filter(|word| !word.ends_with("=test")).collect();
        let script = format!("env; {}", boto3.script.replace("KEYS", &settings.join(" ")));
        stage.seen();
        let sandbox = stage
            .allowing(boto3.allow)
            .environment("AWS_ACCESS_KEY_ID", &id)
            .environment("AWS_SECRET_ACCESS_KEY", &secret)
            .option("--secret", "KEYS=aws:env@objects.example");
        let run = Run::make(&stage, sandbox, &script);
        assert!(run.outcome.stdout.contains(MARK), "{run}");
        assert!(run.outcome.stdout.contains("AWS_SECRET_ACCESS_KEY="), "{run}");
        for value in [&id, &secret] {
            assert!(!run.words().contains(value) && !run.outcome.stderr.contains(value), "{run}");
        }
        assert_requests(&stage.seen(), boto3.requests, &run.to_string());
    }

    fn psql_works_over_a_tcp_rule(lab) {
        if outgate_harness::lab::is_mapped() {
            return outgate_harness::skip_here("PostgreSQL refuses to run as root, which is the only account here");
        }
        let Some(mut stage) = Stage::start(lab, &["psql"]) else { return };
        database(&stage);
        let scenario = Scenario {
            name: "psql",
            allow: &["tcp://data.example:5432"],
            script: "psql -X -q -At -h data.example -U tester postgres -c 'create temp table t as select * from generate_series(1, 20000) n; select sum(n) from t'",
            shows: "200010000",
            requests: &[],
            told: "Connection refused",
            host: "data.example",
        };
        scenario.check_allowed(&mut stage);
        let before = sessions(&stage);
        assert!(before > 0, "the database tells of connections");
        scenario.check_denied(&mut stage, &["tcp://data.example:5433", "tcp://other.example:5432"]);
        assert_eq!(sessions(&stage), before);
    }

    fn files_move_over_ssh(lab) {
        if outgate_harness::lab::is_mapped() {
            return outgate_harness::skip_here("sshd must set groups, which a user namespace with one account forbids");
        }
        let Some(mut stage) = Stage::start(lab, &["sshd", "ssh", "rsync"]) else { return };
        shell(&stage);
        let there = stage.lab.directory.join("there");
        fs::create_dir(&there).expect("a folder");
        let options = format!("-F /dev/null -i {KEY} -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=known");
        let scripts = [
            format!("head -c 3000000 /dev/urandom > sent; printf 'put sent {0}/sftp\\nget {0}/sftp back\\n' | sftp -b - {options} -P 2222 root@shell.example && cmp sent back && echo same", there.display()),
            format!("mkdir tree; seq 100000 > tree/a; seq 9 > tree/b; rsync -a -e \"ssh {options} -p 2222\" tree root@shell.example:{0}/ && rsync -a -e \"ssh {options} -p 2222\" root@shell.example:{0}/tree back && diff -r tree back/tree && echo same", there.display()),
        ];
        let log = stage.lab.folder("ssh", Identity::Own).join("sshd.out");
        let sessions = || fs::read_to_string(&log).unwrap_or_default().matches("Connection from").count();
        for script in &scripts {
            let scenario = Scenario {
                name: "files over ssh",
                allow: &["tcp://shell.example:2222"],
                script,
                shows: "same",
                requests: &[],
                told: "Connection refused",
                host: "shell.example",
            };
            let before = sessions();
            scenario.check_allowed(&mut stage);
            let after = sessions();
            assert!(after > before, "sshd tells of connections");
            scenario.check_denied(&mut stage, &["tcp://shell.example:2223", "tcp://other.example:2222"]);
            assert_eq!(sessions(), after);
        }
    }
}
