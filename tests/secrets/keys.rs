//! Keys that sign: a store of objects that checks every signature accepts what
//! the command signed with placeholders, and nothing that was altered.

use std::fs;
use std::process::Command;

use outgate_harness::servers::{client_tools, is_there, serve};
use outgate_harness::{Identity, Lab, Sandbox, lab_tests};

use crate::origin::ADDRESS;
use crate::stage::bash;

/// Accepts what is signed with the keys below, as the vendor's own library
/// signs; what is not gets 403 and is written down.
const STORE: &str = include_str!("store.py");

const ID: &str = "AKIAREALREALREALREAL";
const SECRET: &str = "RealSecretHalfOfThePairRealSecretHalf123";
const SESSION: &str = "RealTokenOfTheSession/with+signs=RealTokenOfTheSession";

struct Store<'lab> {
    lab: &'lab Lab,
    ca: String,
    log: std::path::PathBuf,
    library: String,
}

/// Where the vendor's library is: the machine's own, or that of the tools.
fn library() -> Option<String> {
    let where_it_is = "import boto3, os; print(os.path.dirname(os.path.dirname(boto3.__file__)))";
    let found = Command::new("python3").args(["-c", where_it_is]).output();
    if let Some(found) = found.ok().filter(|found| found.status.success()) {
        return Some(String::from_utf8_lossy(&found.stdout).trim().to_owned());
    }
    let tools = client_tools(env!("CARGO_TARGET_TMPDIR"))?.join("python");
    let there = tools.join("boto3").exists();
    there.then(|| tools.to_string_lossy().into_owned())
}

impl<'lab> Store<'lab> {
    fn start(lab: &'lab Lab, session: &str) -> Option<Self> {
        let Some(library) = library().filter(|_| is_there("openssl")) else {
            outgate_harness::skip("boto3 is not installed");
            return None;
        };
        let folder = lab.folder("store", Identity::Own);
        fs::write(folder.join("store.py"), STORE).expect("a program");
        fs::write(
            folder.join("req.cnf"),
            "[req]\ndistinguished_name = name\n[name]\n",
        )
        .expect("a file");
        let made = Command::new("openssl")
            .args([
                "req", "-config", "req.cnf", "-x509", "-newkey", "ec", "-nodes", "-days", "30",
            ])
            .args([
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-subj",
                "/CN=objects.test",
            ])
            .args(["-addext", "subjectAltName=DNS:objects.test,DNS:other.test"])
            .args(["-keyout", "key.pem", "-out", "certificate.pem"])
            .current_dir(&folder)
            .output()
            .expect("openssl runs");
        assert!(made.status.success(), "{made:?}");
        let address = format!("{ADDRESS}:443");
        let log = folder.join("log");
        let modules = format!("PYTHONPATH={library}");
        let line = [
            "env",
            &modules,
            "python3",
            "store.py",
            ADDRESS,
            "443",
            ID,
            SECRET,
            session,
            &log.to_string_lossy(),
        ];
        serve(&line, &folder, &[&address]);
        let ca = folder
            .join("certificate.pem")
            .to_string_lossy()
            .into_owned();
        Some(Self {
            lab,
            ca,
            log,
            library,
        })
    }

    fn sandbox(&self, host: &str, session: &str) -> Sandbox<'lab> {
        let sandbox = self
            .lab
            .sandbox(Identity::Own)
            .environment("AWS_ACCESS_KEY_ID", ID)
            .environment("AWS_SECRET_ACCESS_KEY", SECRET)
            .environment("AWS_DEFAULT_REGION", "eu-west-1")
            .environment("AWS_EC2_METADATA_DISABLED", "true")
            .environment("AWS_CONFIG_FILE", "none")
            .environment("PYTHONPATH", &self.library)
            .option("--upstream-ca", &self.ca)
            .pin(&format!("objects.test={ADDRESS}"))
            .pin(&format!("other.test={ADDRESS}"))
            .allow("https://objects.test")
            .allow("https://other.test")
            .option("--secret", &format!("KEYS=aws:env@{host}"));
        if session.is_empty() {
            sandbox
        } else {
            sandbox.environment("AWS_SESSION_TOKEN", session)
        }
    }

    /// What came since this was asked last: `STATUS METHOD TARGET`.
    fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        fs::remove_file(&self.log).ok();
        assert!(!text.contains(SECRET), "the secret half arrived: {text}");
        text.lines().map(str::to_owned).collect()
    }
}

const USE: &str = r"python3 - <<'E'
import boto3, botocore.config, io, os
assert os.environ['AWS_ACCESS_KEY_ID'].startswith('AKIA')
config = botocore.config.Config(s3={'addressing_style': 'path'}, signature_version='s3v4', retries={'total_max_attempts': 1})
store = boto3.client('s3', endpoint_url='https://objects.test', config=config)
store.put_object(Bucket='bucket', Key='a key/with $igns+and ä', Body=b'content')
store.put_object(Bucket='bucket', Key='stream', Body=io.BytesIO(b'x' * 300000))
store.get_object(Bucket='bucket', Key='a key/with $igns+and ä')
store.list_objects_v2(Bucket='bucket', Prefix='a b/c&d', MaxKeys=2)
import urllib.request
url = store.generate_presigned_url('get_object', Params={'Bucket': 'bucket', 'Key': 'signed key'})
print(urllib.request.urlopen(url).read().decode())
plain = boto3.client('sqs', endpoint_url='https://objects.test', config=botocore.config.Config(retries={'total_max_attempts': 1}))
plain.list_queues(QueueNamePrefix='a')
print('done')
E";

lab_tests! {
    fn what_is_signed_with_placeholders_is_signed_again(lab) {
        signs(lab, "");
    }

    fn keys_of_a_session_are_sent_with_its_token(lab) {
        signs(lab, SESSION);
    }

    fn what_was_altered_or_goes_elsewhere_is_not_signed(lab) {
        let Some(store) = Store::start(lab, "") else { return };
        let altered = r"python3 - <<'E'
import boto3, botocore.auth, botocore.awsrequest, os, ssl, http.client
keys = boto3.Session().get_credentials().get_frozen_credentials()
def ask(host, change):
    region = 'glpat-Zk3xQ8vN1mT5rW7yB2cD' if change == 'region' else 'eu-west-1'
    request = botocore.awsrequest.AWSRequest(method='GET', url=f'https://{host}/bucket/key', headers={'x-amz-content-sha256': 'UNSIGNED-PAYLOAD'})
    botocore.auth.S3SigV4Auth(keys, 's3', region).add_auth(request)
    headers = dict(request.headers.items())
    path = '/bucket/key'
    if change == 'path':
        path = '/bucket/other'
    if change == 'date':
        headers['X-Amz-Date'] = '20200101T000000Z'
    if change == 'secret':
        headers['X-Note'] = keys.secret_key
    if change == 'chunks':
        headers['x-amz-content-sha256'] = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD'
    connection = http.client.HTTPSConnection(host, context=ssl.create_default_context())
    connection.request('GET', path, headers=headers)
    answer = connection.getresponse()
    print(change, answer.status, answer.reason)
for host, change in [('objects.test', 'nothing'), ('objects.test', 'path'), ('objects.test', 'date'), ('objects.test', 'secret'), ('objects.test', 'chunks'), ('objects.test', 'region'), ('other.test', 'nothing')]:
    ask(host, change)
E";
        let outcome = store.sandbox("objects.test", "").run(&bash(altered));
        let lines: Vec<&str> = outcome.stdout.lines().collect();
        let starts = ["nothing 200", "path 403", "date 403", "secret 403", "chunks 403", "region 403", "nothing 403"];
        assert_eq!(lines.len(), starts.len(), "{outcome}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{start}: {outcome}");
        }
        assert_eq!(store.log(), ["200 GET /bucket/key"]);
    }
}

fn signs(lab: &Lab, session: &str) {
    let Some(store) = Store::start(lab, session) else {
        return;
    };
    let outcome = store.sandbox("objects.test", session).run(&bash(USE));
    let log = store.log();
    assert!(outcome.stdout.contains("done"), "{outcome} {log:?}");
    for real in [ID, SECRET, SESSION] {
        assert!(!outcome.stdout.contains(real), "{outcome}");
    }
    assert!(log.len() >= 6, "{log:?}");
    assert!(log.iter().all(|line| line.starts_with("200 ")), "{log:?}");
}
