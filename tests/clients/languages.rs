//! The HTTP libraries of languages: one request, many at once over one
//! session, and connections that wait idle.

use outgate_harness::lab_tests;

use crate::scenario::{Run, Scenario, check_all};
use crate::stage::{MARK, Stage, is_opened};

const PYTHON: [Scenario<'_>; 5] = [
    Scenario {
        name: "a session of requests",
        allow: &["GET http://site.example/item/*"],
        script: r"python3 - <<'E'
import requests
session = requests.Session()
for number in range(50):
    response = session.get(f'http://site.example/item/{number}')
    response.raise_for_status()
print(response.text)
E",
        requests: &["site.example GET /item/*"],
        ..Scenario::PLAIN
    },
    Scenario {
        name: "httpx",
        script: r"python3 - <<'E'
import httpx
response = httpx.get('http://site.example/hello')
response.raise_for_status()
print(response.text)
E",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "fifty requests of aiohttp at once",
        allow: &["GET http://site.example/item/*"],
        script: r"python3 - <<'E'
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        async def fetch(number):
            async with session.get(f'http://site.example/item/{number}') as response:
                return await response.text()
        texts = await asyncio.gather(*(fetch(number) for number in range(50)))
        print(len(texts), texts[-1])
asyncio.run(main())
E",
        shows: "50 from-the-real-origin",
        requests: &["site.example GET /item/*"],
        ..Scenario::PLAIN
    },
    Scenario {
        name: "urllib3 that streams an upload",
        allow: &["POST http://live.example/sink"],
        script: r"python3 - <<'E'
import sys, urllib3
parts = (b'x' * 1000 for _ in range(300))
response = urllib3.PoolManager().request('POST', 'http://live.example/sink', body=parts, chunked=True, retries=False)
print(response.status, response.reason, response.data.decode())
sys.exit(response.status != 200)
E",
        shows: "from-the-real-origin 300000",
        requests: &["live.example POST /sink 300000"],
        host: "live.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "processes that fork",
        allow: &["GET http://site.example/item/*"],
        script: r"python3 - <<'E'
import os, sys, urllib.request
def fetch(number):
    with urllib.request.urlopen(f'http://site.example/item/{number}', timeout=30) as response:
        return response.status
children = []
for number in range(24):
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if fetch(number) == 200 else 1)
        except OSError as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
    children.append(child)
codes = {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}
print('from-the-real-origin' if codes == {0} else 'no')
E",
        requests: &["site.example GET /item/*"],
        ..Scenario::PLAIN
    },
];

/// Its wheel brings a libcurl and an OpenSSL of its own, and names a bundle of the system's at
/// a fixed path to them: no variable counts.
const PYCURL: Scenario<'_> = Scenario {
    name: "pycurl",
    script: r"python3 - <<'E'
import io, pycurl, sys
into = io.BytesIO()
curl = pycurl.Curl()
curl.setopt(curl.URL, 'http://site.example/hello')
curl.setopt(curl.WRITEDATA, into)
try:
    curl.perform()
except pycurl.error as error:
    sys.exit(str(error))
status = curl.getinfo(curl.RESPONSE_CODE)
print(into.getvalue().decode() if status == 200 else status)
sys.exit(status != 200)
E",
    ..Scenario::PLAIN
};

const NODE: [Scenario<'_>; 5] = [
    Scenario {
        name: "axios",
        script: r"node - <<'E'
const axios = require('axios');
axios.get('http://site.example/hello').then(
  (response) => console.log(response.data),
  (error) => { console.error(error.message); process.exitCode = 1; });
E",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "an agent of node that keeps connections",
        allow: &["GET http://site.example/item/*"],
        script: r"node - <<'E'
const http = require('http');
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
let left = 60;
for (let number = 0; number < 60; number++) {
  http.get(`http://site.example/item/${number}`, { agent }, (response) => {
    if (response.statusCode !== 200) {
      console.error(response.statusCode, response.statusMessage);
      process.exitCode = 1;
    }
    response.resume();
    response.on('end', () => { if (--left === 0) { console.log(process.exitCode ? 'no' : 'from-the-real-origin'); agent.destroy(); } });
  });
}
E",
        requests: &["site.example GET /item/*"],
        ..Scenario::PLAIN
    },
    Scenario {
        name: "fetch of node that streams an upload",
        allow: &["POST http://live.example/sink"],
        script: r"node - <<'E'
const body = new ReadableStream({ async start(to) {
  for (let part = 0; part < 100; part++) to.enqueue(new Uint8Array(1000));
  to.close();
} });
fetch('http://live.example/sink', { method: 'POST', body, duplex: 'half' }).then(async (response) => {
  console.log(response.status, response.statusText, await response.text());
  process.exitCode = response.ok ? 0 : 1;
});
E",
        shows: "from-the-real-origin 100000",
        requests: &["live.example POST /sink 100000"],
        host: "live.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "fetch of bun",
        script: r"cat > fetch.js <<'E'
const response = await fetch('http://site.example/hello');
console.log(response.status, await response.text());
process.exit(response.ok ? 0 : 1);
E
bun fetch.js",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "fetch of deno",
        script: r"cat > fetch.js <<'E'
const response = await fetch('http://site.example/hello');
console.log(response.status, await response.text());
Deno.exit(response.ok ? 0 : 1);
E
DENO_DIR=$HOME/deno DENO_NO_UPDATE_CHECK=1 deno run --quiet --allow-net fetch.js",
        ..Scenario::PLAIN
    },
];

/// A program of Java that fetches a page.
pub(crate) const JAVA: &str = r#"cat > Fetch.java <<'E'
import java.net.*;
class Fetch {
    public static void main(String[] arguments) throws Exception {
        var connection = (HttpURLConnection) new URL("http://site.example/hello").openConnection();
        System.out.println(connection.getResponseCode() + " " + connection.getResponseMessage());
        System.out.println(new String(connection.getInputStream().readAllBytes()));
    }
}
E
java Fetch.java"#;

/// The same with its newer client.
pub(crate) const JAVA_CLIENT: &str = r#"cat > Client.java <<'E'
import java.net.URI;
import java.net.http.*;
class Client {
    public static void main(String[] arguments) throws Exception {
        var request = HttpRequest.newBuilder(URI.create("http://site.example/hello")).build();
        var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(response.statusCode() + " " + response.body());
        System.exit(response.statusCode() == 200 ? 0 : 1);
    }
}
E
java Client.java"#;

const OTHERS: [Scenario<'_>; 6] = [
    Scenario {
        name: "net/http of Ruby",
        script: r"ruby -r net/http - <<'E'
response = Net::HTTP.get_response(URI('http://site.example/hello'))
puts response.code, response.message, response.body
exit(response.is_a?(Net::HTTPSuccess))
E",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "streams of PHP",
        script: r"cat > fetch.php <<'E'
<?php
$text = file_get_contents('http://site.example/hello');
if ($text === false) { exit(1); }
echo $text;
E
php fetch.php",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "HTTP::Tiny of Perl",
        script: r"perl -MHTTP::Tiny - <<'E'
my $response = HTTP::Tiny->new->get('http://site.example/hello');
print $response->{status}, $response->{reason}, $response->{content};
exit(!$response->{success});
E",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "LWP of Perl",
        script: r"perl -MLWP::UserAgent - <<'E'
my $response = LWP::UserAgent->new->get('http://site.example/hello');
print $response->status_line, $response->decoded_content;
exit(!$response->is_success);
E",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "URL of Java",
        script: JAVA,
        ..Scenario::PLAIN
    },
    Scenario {
        name: "HttpClient of Java",
        script: JAVA_CLIENT,
        ..Scenario::PLAIN
    },
];

const GO: Scenario<'_> = Scenario {
    name: "net/http of Go",
    script: "go-client get http://site.example/hello",
    ..Scenario::PLAIN
};

carried_tests! {
    fn a_program_in_go_works(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["go"]) else { return };
        check_all(&mut stage, &[GO]);
    }

    fn libraries_of_python_work(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &[]) else { return };
        check_all(&mut stage, &PYTHON);
    }

    fn a_client_without_a_variable_is_told_how_it_trusts_the_run(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &[]) else { return };
        stage.publish("site.example", "hello", MARK);
        check_all(&mut stage, &[PYCURL]);
        let run = Run::make(&stage, stage.allowing(PYCURL.allow), PYCURL.script);
        // What is offered for it is safer than to look away.
        assert_eq!(run.outcome.stderr.contains("--trust splice"), is_opened(), "{run}");
    }

    fn libraries_of_node_work(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["node"]) else { return };
        check_all(&mut stage, &NODE);
    }

    fn libraries_of_other_languages_work(lab) {
        let Some(mut stage) = Stage::start(lab, &["ruby", "php", "perl", "java"]) else { return };
        check_all(&mut stage, &OTHERS);
    }
}

lab_tests! {
    fn an_idle_connection_is_used_again(lab) {
        let Some(mut stage) = Stage::start(lab, &[]) else { return };
        let script = r"python3 - <<'E'
import http.client, time
connection = http.client.HTTPConnection('live.example', timeout=30)
for wait in (0, 6, 0.5):
    time.sleep(wait)
    connection.request('GET', '/hello')
    socket = connection.sock
    print(connection.getresponse().read().decode(), socket is connection.sock)
E";
        let scenario = Scenario {
            name: "a connection that was idle",
            allow: &["GET http://live.example/hello"],
            script,
            shows: MARK,
            requests: &["live.example GET /hello", "live.example GET /hello", "live.example GET /hello"],
            ..Scenario::PLAIN
        };
        scenario.check_allowed(&mut stage);
    }
}
