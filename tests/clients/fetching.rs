//! Programs that fetch from and send to the web: the shapes of HTTP they use,
//! and the ways in which they can be led elsewhere.

use outgate_harness::lab_tests;

use crate::scenario::{Run, Scenario, check_all};
use crate::stage::{DYNAMIC, FILES, MARK, Stage};

/// The digest of the 100,000 bytes `yes | head -c 100000`.
const DIGEST: &str = "b09c7baa455eaf62ef3dc74eed1c2b2e";

const CURL: [Scenario<'_>; 12] = [
    Scenario {
        name: "curl over HTTP/1.0",
        script: "curl -sS -0 -f http://site.example/hello",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "curl of an address",
        allow: &["GET http://93.184.216.34/hello"],
        script: "curl -sS -f http://93.184.216.34/hello",
        requests: &["93.184.216.34 GET /hello"],
        host: FILES,
        ..Scenario::PLAIN
    },
    Scenario {
        name: "curl on another port",
        allow: &["GET http://site.example:8080/hello"],
        script: "curl -sS -f http://site.example:8080/hello",
        requests: &["site.example:8080 GET /hello"],
        ..Scenario::PLAIN
    },
    Scenario {
        name: "curl with fast open",
        script: "curl -sS -f --tcp-fastopen http://site.example/hello",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "curl of the fields alone",
        allow: &["HEAD http://site.example/hello"],
        script: "curl -sS -f -I http://site.example/hello",
        shows: "nginx/",
        requests: &["site.example HEAD /hello"],
        ..Scenario::PLAIN
    },
    Scenario {
        name: "curl of a range",
        allow: &["GET http://site.example/ranges"],
        script: "curl -sS -f -r 100-119 http://site.example/ranges | grep -x 55657585960616263646",
        shows: "55657585960616263646",
        requests: &["site.example GET /ranges"],
        ..Scenario::PLAIN
    },
    Scenario {
        name: "curl of compressed content",
        allow: &["GET http://site.example/ranges"],
        script: "curl -sS -f --compressed -D fields http://site.example/ranges | cksum && grep -i 'content-encoding: gzip' fields",
        shows: "gzip",
        requests: &["site.example GET /ranges"],
        told: "",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "curl that follows a redirection",
        allow: &[
            "GET http://live.example/here",
            "GET http://live.example/hello",
        ],
        script: "curl -sS -f -L http://live.example/here",
        requests: &["live.example GET /here", "live.example GET /hello"],
        host: "live.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "curl that uploads a file",
        allow: &["PUT http://live.example/sink"],
        script: "yes | head -c 100000 > file; curl -sS -f -T file http://live.example/sink",
        shows: "100000 DIGEST",
        requests: &["live.example PUT /sink 100000"],
        host: "live.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "curl that uploads in chunks",
        allow: &["PUT http://live.example/sink"],
        script: "yes | head -c 100000 | curl -sS -f -T - http://live.example/sink",
        shows: "100000 DIGEST",
        requests: &["live.example PUT /sink 100000"],
        host: "live.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "curl that posts JSON",
        allow: &["POST http://live.example/sink"],
        script: "curl -sS -f -H 'Content-Type: application/json' -d '{\"key\": \"value\"}' http://live.example/sink",
        shows: "from-the-real-origin 16",
        requests: &["live.example POST /sink 16"],
        host: "live.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "curl that asks before it sends",
        allow: &["POST http://live.example/sink"],
        script: "yes | head -c 100000 > file; curl -sS -f -H 'Expect: 100-continue' --data-binary @file http://live.example/sink",
        shows: "100000 DIGEST",
        requests: &["live.example POST /sink 100000"],
        host: "live.example",
        ..Scenario::PLAIN
    },
];

const OTHERS: [Scenario<'_>; 6] = [
    Scenario {
        name: "curl of several at once over one connection",
        allow: &["GET http://site.example/item/*"],
        script: "curl -sS -f 'http://site.example/item/[1-9]'",
        requests: &["site.example GET /item/*"],
        ..Scenario::PLAIN
    },
    Scenario {
        name: "wget that goes on where it stopped",
        allow: &["GET http://site.example/ranges"],
        script: "printf 12345 > ranges; wget -nv -c http://site.example/ranges && cksum < ranges",
        shows: "836927314 6893",
        requests: &["site.example GET /ranges"],
        ..Scenario::PLAIN
    },
    Scenario {
        name: "wget that posts",
        allow: &["POST http://live.example/sink"],
        script: "wget -nv -O - --post-data=key=value http://live.example/sink",
        shows: "from-the-real-origin 9",
        requests: &["live.example POST /sink 9"],
        host: "live.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "wget of a tree",
        allow: &["GET http://site.example/**"],
        script: "wget -nv -r -e robots=off http://site.example/tree/; cat site.example/tree/leaf.txt",
        shows: "a leaf",
        requests: &["site.example GET /tree/", "site.example GET /tree/leaf.txt"],
        ..Scenario::PLAIN
    },
    Scenario {
        name: "aria2 in pieces",
        allow: &["GET,HEAD http://site.example/ranges"],
        script: "rm -f pieces; aria2c -q --split=3 --min-split-size=1M --async-dns=false --out=pieces http://site.example/ranges; cksum < pieces || exit 1",
        shows: "836927314 6893",
        requests: &["site.example GET /ranges"],
        told: "",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "busybox wget",
        script: "busybox wget -q -O - http://site.example/hello",
        ..Scenario::PLAIN
    },
];

carried_tests! {
    fn curl_works_in_every_shape(lab) {
        let Some(mut stage) = Stage::start(lab, &[]) else { return };
        publish(&stage);
        let shows: Vec<String> = CURL.iter().map(|one| one.shows.replace("DIGEST", DIGEST)).collect();
        let all: Vec<Scenario<'_>> = CURL.iter().zip(&shows).map(|(one, shows)| Scenario { shows, ..*one }).collect();
        check_all(&mut stage, &all);
    }

    fn other_fetchers_work_in_every_shape(lab) {
        let Some(mut stage) = Stage::start(lab, &["wget", "aria2c", "busybox"]) else { return };
        publish(&stage);
        check_all(&mut stage, &OTHERS);
    }
}

lab_tests! {
    fn no_way_of_curl_leads_elsewhere(lab) {
        let Some(mut stage) = Stage::start(lab, &[]) else { return };
        let rules = ["GET http://site.example/hello", "GET http://live.example/elsewhere"];
        // What each of them tries, and the one request that may arrive of it.
        for (script, host, arrives) in [
            // A name that is allowed, at an address it does not have.
            ("curl -sS -i --resolve site.example:80:93.184.216.35 http://site.example/hello", DYNAMIC, None),
            ("curl -sS -i --connect-to site.example:80:denied.example:80 http://site.example/hello", "denied.example", None),
            // An address that an allowed name has.
            ("curl -sS -i -H 'Host: site.example' http://93.184.216.34/hello", FILES, None),
            // An allowed connection, for another host.
            ("curl -sS -i -H 'Host: denied.example' http://site.example/hello", "site.example", None),
            ("curl -sS -i --request-target http://denied.example/hello http://site.example/hello", "site.example", None),
            // A redirection to where nothing is allowed.
            ("curl -sS -i -L http://live.example/elsewhere", "other.example", Some("live.example GET /elsewhere")),
            // Through what would be a proxy, if there was a rule for it.
            ("curl -sS -i -x http://93.184.216.35:80 http://site.example/hello", DYNAMIC, None),
            ("curl -sS -i -p -x http://93.184.216.35:80 http://site.example/hello", DYNAMIC, None),
            ("curl -sS -i --socks5-hostname 93.184.216.35:1080 http://site.example/hello", DYNAMIC, None),
        ] {
            let run = Run::make(&stage, stage.allowing(&rules), script);
            let place = format!("{script}: {run}");
            let seen = stage.seen();
            let arrived: Vec<&str> = seen.requests.iter().map(String::as_str).collect();
            assert_eq!(arrived, arrives.into_iter().collect::<Vec<&str>>(), "{place}");
            assert_eq!(seen.connections, arrived.len(), "{place}");
            assert!(!run.outcome.stdout.contains(MARK), "{place}");
            assert!(!run.lines_about(host).is_empty(), "{host} is named: {place}");
        }
    }

    fn a_users_proxy_variables_are_not_the_commands(lab) {
        let Some(mut stage) = Stage::start(lab, &[]) else { return };
        let mut sandbox = stage
            .sandbox()
            // They are the gateway's, unless it is told to go without.
            .option("--upstream-proxy", "none")
            .allow("GET http://site.example/hello");
        for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            sandbox = sandbox.environment(name, "http://93.184.216.35:80");
        }
        let run = Run::make(&stage, sandbox, "curl -sS -f http://site.example/hello");
        assert_eq!(run.outcome.code, Some(0), "{run}");
        assert_eq!(stage.seen().requests, ["site.example GET /hello"], "{run}");
    }
}

/// Files of `site.example`.
fn publish(stage: &Stage<'_>) {
    let numbers: String = (1..=2000).map(|number| number.to_string()).collect();
    stage.publish("site.example", "ranges", numbers);
    let page = "<html><body><a href=\"leaf.txt\">a leaf</a><a href=\"http://denied.example/x\">elsewhere</a></body></html>";
    stage.publish("site.example", "tree/index.html", page);
    stage.publish("site.example", "tree/leaf.txt", "a leaf\n");
}
