//! The clients that `outgate check --clients` knows: where their program is, how
//! it says its version, and how it makes one request. Data only.

/// One client.
pub(super) struct Client {
    /// As people call it.
    pub(super) name: &'static str,
    /// Its program, on the path or by its own path.
    pub(super) program: &'static str,
    /// Has the program show its version.
    pub(super) version: &'static [&'static str],
    /// Ends well if the client is there, where the program is not enough.
    pub(super) needs: &'static [&'static str],
    /// Makes one request; `URL` stands for `https://` and a host.
    pub(super) request: Request,
    /// What makes it trust.
    pub(super) by: By,
    /// What shows that it does.
    pub(super) proof: Proof,
}

/// What makes a client trust.
#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    /// A variable of a run.
    Variable(&'static str),
    /// What a shipped policy has the run give: the client reads no variable that names it.
    Preset(&'static str),
}

/// How a client is made to ask.
#[derive(Debug, Clone, Copy)]
pub(super) enum Request {
    /// By arguments of its program.
    Arguments(&'static [&'static str]),
    /// By a line of a shell.
    Line(&'static str),
}

/// What shows that a client trusts a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// Its request arrived.
    Asked,
    /// It ended well: what it speaks is not answered here.
    Status,
}

impl Client {
    /// The first label of its host.
    pub(super) fn host(&self) -> String {
        let plain = |sign: char| {
            if sign.is_ascii_alphanumeric() {
                sign
            } else {
                '-'
            }
        };
        self.name.to_ascii_lowercase().chars().map(plain).collect()
    }
}

/// One that is a program of its own.
const fn program(
    name: &'static str,
    arguments: &'static [&'static str],
    variable: &'static str,
) -> Client {
    Client {
        name,
        program: name,
        version: &["--version"],
        needs: &[],
        request: Request::Arguments(arguments),
        by: By::Variable(variable),
        proof: Proof::Asked,
    }
}

/// One that is a library of Python.
const fn python(
    name: &'static str,
    needs: &'static [&'static str],
    arguments: &'static [&'static str],
    variable: &'static str,
) -> Client {
    Client {
        name,
        program: "python3",
        version: needs,
        needs,
        request: Request::Arguments(arguments),
        by: By::Variable(variable),
        proof: Proof::Asked,
    }
}

/// One that needs a line of a shell; `program` tells whether it is there.
const fn shell(
    name: &'static str,
    program: &'static str,
    line: &'static str,
    variable: &'static str,
) -> Client {
    Client {
        name,
        program,
        version: &["--version"],
        needs: &[],
        request: Request::Line(line),
        by: By::Variable(variable),
        proof: Proof::Asked,
    }
}

const URLLIB: &str = "import urllib.request as r; r.urlopen('URL/', timeout=15).read()";
const REQUESTS: &str = "import requests; requests.get('URL/', timeout=15)";
const HTTPX: &str = "import httpx; httpx.get('URL/', timeout=15)";
const AIOHTTP: &str = "import asyncio, aiohttp\nasync def f():\n async with aiohttp.ClientSession() as s:\n  await (await s.get('URL/')).text()\nasyncio.run(f())";
// Its own word for an address is the one that stands for ours here.
const PYCURL: &str = "import pycurl; c = pycurl.Curl(); c.setopt(getattr(c, 'U' 'RL'), 'URL/'); c.setopt(c.TIMEOUT, 15); c.perform()";
const BOTO3: &str = "import boto3, botocore\nfrom botocore.config import Config\nboto3.client('s3', endpoint_url='URL', region_name='x', config=Config(signature_version=botocore.UNSIGNED, retries={'max_attempts': 0})).list_buckets()";
const GRPC: &str = "import grpc\nc = grpc.secure_channel('URL'[8:] + ':443', grpc.ssl_channel_credentials())\ngrpc.channel_ready_future(c).result(timeout=10)";
const FETCH: &str = "fetch('URL/').then((r) => r.text()).catch((e) => { console.error(String(e.cause ?? e)); process.exit(1); })";
const DENO: &str =
    "try { await (await fetch('URL/')).text() } catch (e) { console.error(String(e)) }";
const RUBY: &str = "require 'net/http'; Net::HTTP.get(URI('URL/'))";
const PHP: &str = "exit(file_get_contents('URL/') === false ? 1 : 0);";
const PERL: &str =
    "$r = HTTP::Tiny->new(verify_SSL => 1)->get('URL/'); $r->{success} or die $r->{content}";
const LWP: &str = "$r = LWP::UserAgent->new->get('URL/'); $r->is_success or die $r->status_line";
const JAVA: &str = "printf '%s' 'import java.net.*; import java.net.http.*; public class F { public static void main(String[] a) throws Exception { HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(\"URL/\")).build(), HttpResponse.BodyHandlers.ofString()); } }' > F.java && exec java F.java";
const GO: &str = "mkdir -p go && cd go && GO111MODULE=on GOFLAGS=-mod=mod GOTOOLCHAIN=local GONOSUMDB='*' GONOSUMCHECK=1 GOPROXY=URL GOPATH=$PWD/p GOCACHE=$PWD/c exec go list -m example.test/x@latest";
const UV: &str = "echo x > r.txt && exec uv pip compile --no-cache -q --index-url URL/simple r.txt";
const CARGO: &str = "CARGO_HOME=$PWD/cargo exec cargo search --index sparse+URL/ --limit 1 x";
// Its own sandbox needs namespaces; it asks its maker for this and that.
const CHROMIUM: &str = "exec timeout 15 chromium --headless --no-sandbox --disable-gpu --user-data-dir=\"$TMPDIR/profile\" --host-resolver-rules='MAP * ~NOTFOUND, EXCLUDE *.outgate.test' --dump-dom URL/";

/// All of them, in the order of the table.
pub(super) const CLIENTS: &[Client] = &[
    program("curl", &["-sS", "-m", "15", "URL/"], "SSL_CERT_FILE"),
    program(
        "wget",
        &["-q", "-T", "15", "-t", "1", "-O", "-", "URL/"],
        "WGETRC",
    ),
    program("git", &["ls-remote", "URL/x.git"], "GIT_SSL_CAINFO"),
    Client {
        name: "apt",
        program: "/usr/lib/apt/apt-helper",
        version: &["--version"],
        needs: &[],
        request: Request::Arguments(&[
            "-o",
            "APT::Sandbox::User=root",
            "download-file",
            "URL/x",
            "x",
        ]),
        by: By::Variable("APT_CONFIG"),
        proof: Proof::Asked,
    },
    python(
        "pip",
        &["-m", "pip", "--version"],
        &[
            "-m",
            "pip",
            "download",
            "--disable-pip-version-check",
            "--no-cache-dir",
            "--no-deps",
            "--retries",
            "0",
            "--index-url",
            "URL/simple",
            "x",
        ],
        "PIP_CERT",
    ),
    python(
        "python urllib",
        &["--version"],
        &["-c", URLLIB],
        "SSL_CERT_FILE",
    ),
    python(
        "python requests",
        &["-c", "import requests; print(requests.__version__)"],
        &["-c", REQUESTS],
        "REQUESTS_CA_BUNDLE",
    ),
    python(
        "python httpx",
        &["-c", "import httpx; print(httpx.__version__)"],
        &["-c", HTTPX],
        "SSL_CERT_FILE",
    ),
    python(
        "python aiohttp",
        &["-c", "import aiohttp; print(aiohttp.__version__)"],
        &["-c", AIOHTTP],
        "SSL_CERT_FILE",
    ),
    python(
        "python pycurl",
        &["-c", "import pycurl; print(pycurl.version)"],
        &["-c", PYCURL],
        "SSL_CERT_FILE",
    ),
    python(
        "python boto3",
        &["-c", "import boto3; print(boto3.__version__)"],
        &["-c", BOTO3],
        "AWS_CA_BUNDLE",
    ),
    Client {
        proof: Proof::Status,
        ..python(
            "python grpcio",
            &["-c", "import grpc; print(grpc.__version__)"],
            &["-c", GRPC],
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
        )
    },
    shell("uv", "uv", UV, "SSL_CERT_FILE"),
    program("node", &["-e", FETCH], "NODE_EXTRA_CA_CERTS"),
    program(
        "npm",
        &[
            "ping",
            "--registry",
            "URL/",
            "--fetch-retries",
            "0",
            "--no-update-notifier",
            "--cache",
            "./npm",
        ],
        "npm_config_cafile",
    ),
    program("bun", &["-e", FETCH], "NODE_EXTRA_CA_CERTS"),
    program("deno", &["eval", DENO], "DENO_CERT"),
    shell("cargo", "cargo", CARGO, "CARGO_HTTP_CAINFO"),
    Client {
        version: &["version"],
        ..shell("go", "go", GO, "SSL_CERT_FILE")
    },
    Client {
        version: &["-version"],
        ..shell("java", "java", JAVA, "JAVA_TOOL_OPTIONS")
    },
    program("ruby", &["-e", RUBY], "SSL_CERT_FILE"),
    program("php", &["-r", PHP], "PHP_INI_SCAN_DIR"),
    Client {
        name: "perl HTTP::Tiny",
        program: "perl",
        version: &["-e", "print $^V"],
        needs: &["-MIO::Socket::SSL", "-MHTTP::Tiny", "-e", "1"],
        request: Request::Arguments(&["-MHTTP::Tiny", "-e", PERL]),
        by: By::Variable("SSL_CERT_FILE"),
        proof: Proof::Asked,
    },
    Client {
        name: "perl LWP",
        program: "perl",
        version: &["-e", "print $^V"],
        needs: &["-MLWP::Protocol::https", "-e", "1"],
        request: Request::Arguments(&["-MLWP::UserAgent", "-e", LWP]),
        by: By::Variable("PERL_LWP_SSL_CA_FILE"),
        proof: Proof::Asked,
    },
    program(
        "aws",
        &[
            "s3",
            "ls",
            "--endpoint-url",
            "URL",
            "--no-sign-request",
            "--region",
            "x",
        ],
        "AWS_CA_BUNDLE",
    ),
    Client {
        by: By::Preset("chromium"),
        ..shell("chromium", "chromium", CHROMIUM, "")
    },
];
