//! For every detector: its own places are open to it at its issuers, every other place of a
//! request is closed there, and so are all of them at a stranger's name.

use std::sync::Arc;

use outgate_dlp::{Anchor, Detector, Detectors, Ruleset, ScanPolicy, Scope, sample};

use crate::request::{
    FORM, JSON, REGISTRY, Request, apart, base64, name, policies, rented, rules, signature,
};

/// Domains below which strangers get names: buckets, applications, shops, sites, accounts.
const TENANCY: &[&str] = &[
    "amazonaws.com",
    "s3.amazonaws.com",
    "s3-us-west-2.amazonaws.com",
    "us-east-1.elb.amazonaws.com",
    "execute-api.us-east-1.amazonaws.com",
    "lambda-url.us-east-1.on.aws",
    "cn-north-1.amazonaws.com.cn",
    "blob.core.windows.net",
    "z13.web.core.windows.net",
    "servicebus.windows.net",
    "azurewebsites.net",
    "azure-api.net",
    "cloudapp.azure.com",
    "openai.azure.com",
    "cognitiveservices.azure.com",
    "search.windows.net",
    "azurecr.io",
    "visualstudio.com",
    "azuredatabricks.net",
    "cloud.databricks.com",
    "gcp.databricks.com",
    "databricksapps.com",
    "oss-cn-hangzhou.aliyuncs.com",
    "cn-hangzhou.fc.aliyuncs.com",
    "cos.ap-guangzhou.myqcloud.com",
    "supabase.co",
    "myshopify.com",
    "grafana.net",
    "jfrog.io",
    "firebaseio.com",
    "storage.googleapis.com",
    "run.app",
    "appspot.com",
    "web.app",
    "zendesk.com",
    "atlassian.net",
    "okta.com",
    "vercel.app",
    "netlify.app",
    "netlify.com",
    "herokuapp.com",
    "fly.dev",
    "onrender.com",
    "workers.dev",
    "pages.dev",
    "github.io",
    "app.github.dev",
    "gitlab.io",
    "bitbucket.io",
    "hf.space",
    "e2b.app",
    "langgraph.app",
    "ondigitalocean.app",
    "digitaloceanspaces.com",
    "eu-west-1.aws.neon.tech",
    "svc.us-east1.pinecone.io",
    "live.dynatrace.com",
    "apps.dynatrace.com",
    "sourcegraph.com",
    "sourcegraphcloud.com",
    "z1.hashicorp.cloud",
    "ts.net",
];
/// Names that are a stranger's by themselves, since an issuer's pattern looks like them.
const RENTED: &[&str] = &[
    "storage.googleapis.com",
    "bedrock.s3.amazonaws.com",
    "bedrock-runtime.s3.amazonaws.com",
    "bedrock-runtime.s3-us-west-2.amazonaws.com",
    "sts.s3.amazonaws.com",
];

/// A request that shows a text where a detector has a place for it, to a host or to the one
/// that the place names.
pub(crate) fn shows(place: &str, text: &str, host: &str) -> Vec<Request> {
    let (_, beside) = apart(place);
    let made = beside.map(|(_, form)| signature(form));
    shows_beside(place, text, (host, made.as_deref().unwrap_or_default()))
}

/// The same with a text where the signature stands.
pub(crate) fn shows_beside(place: &str, text: &str, to: (&str, &str)) -> Vec<Request> {
    let (host, own) = to;
    let (place, beside) = apart(place);
    let text = match beside {
        Some((name, _)) if place.starts_with('?') => format!("{text}&{name}{own}"),
        Some((":", _)) => format!("{text}:{own}"),
        Some((name, _)) if name.starts_with("q-") => format!("{text}&q-time=1;2&{name}{own}"),
        Some((name, _)) => format!("{text}/20260101/any, SignedHeaders=a;b, {name}{own}"),
        None => text.to_owned(),
    };
    let text = &*text;
    if place == "?*" {
        return vec![Request::to(host, &format!("/a?{text}"))];
    }
    if let Some(key) = place.strip_prefix('?') {
        return vec![Request::to(host, &format!("/a?b=c&{key}={text}&d=e"))];
    }
    if let Some(before) = place.strip_prefix('/') {
        let before = before.trim_end_matches('*');
        return vec![Request::to(host, &format!("/{before}{text}/x"))];
    }
    let (field, prefix) = place.split_once(": ").unwrap_or((place, ""));
    if let Some((route, key)) = field
        .split_once('?')
        .filter(|(route, _)| route.contains('/'))
    {
        let (own, path) = route.split_at(route.find('/').expect("a path"));
        return vec![Request::to(
            &name(own),
            &format!("{}?{key}={text}", name(path)),
        )];
    }
    let prefix = prefix.replace("{issuer}", &format!("https://{host}/a/b"));
    let prefix = prefix.replace('*', "some");
    let value = |value: String| vec![Request::to(host, "/a").field(field, &value)];
    match field {
        _ if prefix == "Basic " => [format!("user@some.example:{text}"), format!("{text}:")]
            .into_iter()
            .flat_map(|pair| value(format!("Basic {}", base64(pair.as_bytes()))))
            .collect(),
        "cookie" => value(format!("a=b; {prefix}{text}; c=d")),
        "sec-websocket-protocol" => value(format!("realtime, {prefix}{text}, beta")),
        _ => value(format!("{prefix}{text}")),
    }
}

/// A request whose content shows a text for a route, and the same under another key.
fn sends(route: &str, kind: &str, text: &str) -> (Request, Option<Request>) {
    let (route, key) = match route.split_once('?') {
        Some((route, key)) => (route, Some(key)),
        None => (route, None),
    };
    let (host, path) = route.split_at(route.find('/').expect("a path"));
    let write = |key: &str| match kind {
        JSON => format!("{{\"a\":\"b\",\"{key}\": \"{text}\"}}"),
        _ => format!("a=b&{key}={text}&c=d"),
    };
    let request = Request::to(&name(host), &name(path));
    let own = request.clone().content(kind, &write(key.unwrap_or("any")));
    let other = key.map(|key| request.content(kind, &write(&format!("x{key}"))));
    (own, other)
}

/// Requests that show a text where no detector has a place.
fn hides(host: &str, text: &str, detector: &Detector) -> Vec<Request> {
    let to = |target: &str| Request::to(host, target);
    let has = |place: &str| {
        detector
            .places
            .iter()
            .any(|own| apart(own).0.eq_ignore_ascii_case(place))
    };
    let mut requests = vec![
        to(&format!("/{text}")),
        to(&format!("/a/{text}/b")),
        to(&format!("/a?d={text}")),
        to(&format!("/a?{text}=1")),
    ];
    // One of these shows the whole query.
    if has("?*") {
        requests.retain(|request| !request.target.contains('?'));
    }
    for field in [
        "user-agent",
        "x-any",
        "referer",
        "x-forwarded-for",
        "from",
        "etag",
    ] {
        requests.push(to("/").field(field, text));
    }
    requests.push(to("/").field("cookie", &format!("a=b; z={text}")));
    for scheme in ["", "Digest ", "Negotiate ", "Bearer ", "token ", "Basic "] {
        let place = format!("authorization: {scheme}");
        if !has(&place) && !has(place.trim_end_matches(": ")) {
            requests.push(to("/").field("authorization", &format!("{scheme}{text}")));
        }
    }
    for (kind, content) in [
        (
            JSON,
            format!("{{\"messages\":[{{\"content\":\"{text}\"}}]}}"),
        ),
        (JSON, format!("{{\"z\":\"{text}\"}}")),
        (FORM, format!("z={text}")),
        ("text/plain", text.to_owned()),
        (
            "multipart/form-data; boundary=b",
            format!("--b\r\ncontent-disposition: form-data; name=z\r\n\r\n{text}\r\n--b--\r\n"),
        ),
    ] {
        requests.push(to("/v1/any").content(kind, &content));
    }
    requests
}

/// The names of a detector's issuers: one for each pattern, and where it is a registry's, that
/// of the registry.
fn homes(detector: &Detector) -> Vec<String> {
    let own = detector.issuers.iter().map(|own| name(own));
    let tenants = detector.tenant_hosts.iter().map(|own| rented(own));
    let registry = matches!(detector.scope, Scope::Registry(_)).then(|| REGISTRY.to_owned());
    own.chain(tenants).chain(registry).collect()
}

/// All that is issued, with a text of each of its kinds.
pub(crate) fn issued() -> Vec<(Detector, String)> {
    let mut all = Vec::new();
    let shipped = Detectors::shipped();
    // What runs only where somebody asks for it is refused nowhere by itself.
    let on = |own: &&Detector| own.anchor != Anchor::Scan;
    for detector in shipped.iter().filter(on) {
        for template in detector
            .samples
            .iter()
            .filter(|_| !homes(detector).is_empty())
        {
            // A form and a document have a text in quotes or escapes otherwise.
            let text = String::from_utf8(sample(template, 3)).expect("letters");
            all.push((detector.clone(), text));
        }
    }
    all
}

/// Customers' names of all detectors, as if rules spelt them out.
fn named() -> Vec<String> {
    let shipped = Detectors::shipped();
    let tenants = shipped.iter().flat_map(|own| own.tenant_hosts.iter());
    tenants.flat_map(|own| [name(own), rented(own)]).collect()
}

pub(crate) fn both(named: &[String]) -> [(ScanPolicy, Arc<Ruleset>); 2] {
    policies().map(|policy| (policy, rules(policy, named)))
}

#[test]
fn each_credential_goes_where_its_clients_show_it() {
    let mut count = 0;
    for (policy, rules) in both(&named()) {
        for (detector, text) in issued() {
            for host in homes(&detector) {
                for place in detector.places.iter() {
                    for request in shows(place, &text, &host) {
                        let found = request.found(&rules);
                        let what = (&detector.id, place, policy);
                        assert!(found.is_empty(), "{what:?}: {request:?}: {found:?}");
                        count += 1;
                    }
                }
            }
            for (routes, kind) in [(&detector.forms, FORM), (&detector.documents, JSON)] {
                for route in routes.iter() {
                    let (own, other) = sends(route, kind, &text);
                    let what = (&detector.id, route, policy);
                    let found = own.found(&rules);
                    assert!(found.is_empty(), "{what:?}: {own:?}: {found:?}");
                    let found = other.map(|other| other.found(&rules));
                    assert!(found.is_none_or(|found| !found.is_empty()), "{what:?}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 600, "{count}");
}

#[test]
fn no_credential_goes_anywhere_else_to_its_issuer() {
    let mut count = 0;
    for (policy, rules) in both(&named()) {
        let issued = issued();
        let placed = issued.iter().filter(|(detector, _)| detector.is_placed());
        for (detector, text) in placed {
            for host in homes(detector) {
                for request in hides(&host, text, detector) {
                    let found = request.found(&rules);
                    let what = (&detector.id, policy);
                    assert!(!found.is_empty(), "{what:?}: {request:?}");
                    count += 1;
                }
                // Shown where it should be, it is not open elsewhere in the same request.
                for shown in detector
                    .places
                    .iter()
                    .flat_map(|place| shows(place, text, &host))
                {
                    let twice = shown.clone().field("x-any", text);
                    assert!(!twice.found(&rules).is_empty(), "{twice:?}");
                    let evil = shown.instead(&format!("{host}.evil.test"));
                    assert!(!evil.found(&rules).is_empty(), "{evil:?}");
                }
            }
        }
    }
    assert!(count > 5000, "{count}");
}

/// Those whose places are open at names that strangers rent, of which the provider alone reads
/// the heads, each with its reason in the data.
const HARMLESS: [&str; 10] = [
    "alibaba-key-id",
    "aws-access-key-id",
    "aws-session-token",
    "azure-cask",
    "azure-devops-pat",
    "azure-sas",
    "gcp-oauth-access",
    "jwt",
    "sentry-token",
    "tencent-secret-id",
];

/// Domains and names of these that are machines, functions and proxies of strangers' own, who
/// read all of a request.
const READ: &[&str] = &[
    "compute-1.amazonaws.com",
    "eu-west-1.compute.amazonaws.com",
    "us-east-1.elb.amazonaws.com",
    "elb.us-east-1.amazonaws.com",
    "execute-api.us-east-1.amazonaws.com",
    "execute-api.cn-north-1.amazonaws.com.cn",
    "appsync-api.us-east-1.amazonaws.com",
    "iot.us-east-1.amazonaws.com",
    "us-east-1.es.amazonaws.com",
    "us-east-1.rds.amazonaws.com",
    "gr7.eu-central-1.eks.amazonaws.com",
    "s3-website-us-east-1.amazonaws.com",
    "s3-website.eu-central-1.amazonaws.com",
    "lambda-url.us-east-1.on.aws",
    "vpc-lattice-svcs.us-east-1.on.aws",
    "execute-api.us-east-1.api.aws",
    "cn-north-1.compute.amazonaws.com.cn",
    "z13.web.core.windows.net",
    "servicebus.windows.net",
    "azurewebsites.net",
    "azure-api.net",
    "cloudapp.azure.com",
    "apps.online.visualstudio.com",
    "cn-hangzhou.fc.aliyuncs.com",
    "cn-hangzhou.pai-eas.aliyuncs.com",
    "cn-hangzhou.alb.aliyuncs.com",
    "elasticsearch.aliyuncs.com",
    "file.myqcloud.com",
    "cos-website.ap-guangzhou.myqcloud.com",
    "us-central1.p.googleapis.com",
    "run.app",
    "cloudfunctions.net",
    "firebaseio.com",
    "firebaseapp.com",
    "appspot.com",
];

#[test]
fn no_stranger_gets_a_credential_at_a_name_that_anybody_rents() {
    let strangers: Vec<(String, bool)> = TENANCY
        .iter()
        .map(|suffix| (format!("evil.{suffix}"), READ.contains(suffix)))
        .chain(READ.iter().map(|suffix| (format!("evil.{suffix}"), true)))
        .chain(RENTED.iter().map(|own| ((*own).to_owned(), false)))
        .collect();
    let mut count = 0;
    for (policy, rules) in both(&[]) {
        for (detector, text) in issued() {
            let what = (&detector.id, policy);
            let is_harmless = HARMLESS.contains(&&*detector.id);
            assert!(!is_harmless || !detector.harmless.is_empty(), "{what:?}");
            for place in detector.places.iter() {
                let requests = shows(place, &text, "any.test").into_iter();
                let closed = strangers.iter().filter(|(_, reads)| *reads || !is_harmless);
                let each =
                    |request: Request| closed.clone().map(move |(own, _)| request.instead(own));
                for sent in requests.flat_map(each) {
                    assert!(!sent.found(&rules).is_empty(), "{what:?}: {sent:?}");
                    count += 1;
                }
                // A customer's name that no rule spells out is a stranger's.
                for tenant in detector.tenant_hosts.iter() {
                    for sent in shows(place, &text, "any.test") {
                        let sent = sent.instead(&rented(tenant));
                        assert!(!sent.found(&rules).is_empty(), "{what:?}: {sent:?}");
                    }
                }
            }
            // And in no other place, nor in what their issuer asks for.
            for (host, _) in strangers.iter().skip(policy as usize).step_by(9) {
                let mut sent = hides(host, &text, &detector);
                for (routes, kind) in [(&detector.forms, FORM), (&detector.documents, JSON)] {
                    let own = routes.iter().map(|route| sends(route, kind, &text).0);
                    sent.extend(own.map(|own| own.instead(host)));
                }
                for sent in sent {
                    assert!(!sent.found(&rules).is_empty(), "{what:?}: {sent:?}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 20_000, "{count}");
}

#[test]
fn every_issuer_has_places_or_a_reason_for_none() {
    for (detector, _) in issued() {
        assert!(
            detector.is_placed(),
            "{} needs `places` or `unplaced`",
            detector.id
        );
        let shows = detector.places.len() + detector.forms.len() + detector.documents.len();
        assert!(
            shows > 0 || !detector.unplaced.is_empty(),
            "{}",
            detector.id
        );
    }
}
