//! Requests as real clients make them, on their way to the issuer: nothing is found in them,
//! and in the same on its way elsewhere it is.

use outgate_dlp::sample;

use crate::redirects::redirected;
use crate::request::{FORM, JSON, REGISTRY, Request, base64, policies, rules};

fn text(template: &str) -> String {
    String::from_utf8(sample(template, 7)).expect("letters")
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", base64(format!("{name}:{password}").as_bytes()))
}

/// A request with one field.
fn with(host: &str, target: &str, field: &str, value: &str) -> Request {
    Request::to(host, target).field(field, value)
}

fn bearer(host: &str, target: &str, token: &str) -> Request {
    with(host, target, "authorization", &format!("Bearer {token}"))
}

/// Names of customers that the rules spell out.
const NAMED: [&str; 8] = [
    "abcdef0123456789.gr7.eu-central-1.eks.amazonaws.com",
    "x1.eu-west-1.aws.endpoints.huggingface.cloud",
    "acme.atlassian.net",
    "adb-1234567890123456.7.azuredatabricks.net",
    "acme.grafana.net",
    "acme.jfrog.io",
    "abcdefghijklmnopqrst.supabase.co",
    "acme.myshopify.com",
];

#[expect(clippy::too_many_lines, reason = "one entry a client")]
fn clouds() -> Vec<Request> {
    let id = text("AKIA{akid}");
    let scope = "20260101/eu-central-1/s3/aws4_request";
    let signature = text("{hex:64}");
    let signed = format!(
        "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature={signature}"
    );
    let session = text("IQoJb3JpZ2lu{b64:600}==");
    let in_query = session
        .replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D");
    let escaped = scope.replace('/', "%2F");
    let sas = text(
        "sv=2024-11-04&ss=b&srt=sco&sp=rl&se=2026-01-01T00%3A00%3A00Z&spr=https&sig={b62:43}%3D",
    );
    let google = text("ya29.{b64u:160}");
    let key = text("AIza{b64u:35}");
    let refresh = text("1//0{b64u:60}");
    let secret = text("GOCSPX-{b64u:28}");
    vec![
        with(
            "bucket.s3.eu-central-1.amazonaws.com",
            "/key?list-type=2",
            "authorization",
            &signed,
        )
        .field("x-amz-security-token", &session)
        .field("x-amz-date", "20260101T000000Z")
        .field("x-amz-content-sha256", &text("{hex:64}")),
        Request::to(
            "bucket.s3.amazonaws.com",
            &format!(
                "/key?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={id}%2F{escaped}&X-Amz-Date=20260101T000000Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Security-Token={in_query}&X-Amz-Signature={signature}"
            ),
        ),
        with(
            "bucket.s3.amazonaws.com",
            "/key",
            "authorization",
            &format!("AWS {id}:{}", base64(text("{b62:20}").as_bytes())),
        ),
        Request::to("sts.amazonaws.com", "/")
            .field("authorization", &signed)
            .content(FORM, "Action=GetCallerIdentity&Version=2011-06-15"),
        with(
            "acme.blob.core.windows.net",
            "/c/b?comp=list",
            "authorization",
            &format!("SharedKey acme:{}", text("{b64:43}=")),
        )
        .field("x-ms-date", "Thu, 01 Jan 2026 00:00:00 GMT")
        .field("x-ms-version", "2024-11-04"),
        Request::to("acme.blob.core.windows.net", &format!("/c/b?{sas}")),
        Request::to(
            "acme.blob.core.windows.net",
            &format!("/c/b?restype=container&comp=list&{sas}"),
        ),
        with(
            "acme.blob.core.windows.net",
            "/c/d",
            "x-ms-copy-source",
            &format!("https://acme.blob.core.windows.net/c/b?{sas}"),
        ),
        with(
            "acme.openai.azure.com",
            "/openai/deployments/d/chat/completions?api-version=2024-10-21",
            "api-key",
            &text("{b62:52}JQQJ99BA{b62:16}z{b62:7}"),
        )
        .content(JSON, "{\"messages\":[]}"),
        Request::to(
            "login.microsoftonline.com",
            "/11111111-2222-3333-4444-555555555555/oauth2/v2.0/token",
        )
        .content(
            FORM,
            &format!(
                "grant_type=client_credentials&client_id=x&client_secret={}&scope=y",
                text("{b62:3}8Q~{b62:34}")
            ),
        ),
        bearer(
            "compute.googleapis.com",
            "/compute/v1/projects/p/zones",
            &google,
        ),
        bearer(
            "storage.googleapis.com",
            "/upload/storage/v1/b/acme/o?uploadType=media",
            &google,
        ),
        with(
            "us-docker.pkg.dev",
            "/v2/token",
            "authorization",
            &basic("oauth2accesstoken", &google),
        ),
        Request::to(
            "maps.googleapis.com",
            &format!("/maps/api/geocode/json?address=Berlin&key={key}"),
        ),
        with(
            "generativelanguage.googleapis.com",
            "/v1beta/models/m:generateContent",
            "x-goog-api-key",
            &key,
        )
        .content(JSON, "{\"contents\":[]}"),
        Request::to("oauth2.googleapis.com", "/token").content(
            FORM,
            &format!(
                "grant_type=refresh_token&client_id=x&client_secret={secret}&refresh_token={}",
                refresh.replace('/', "%2F")
            ),
        ),
        bearer(
            "adb-1234567890123456.7.azuredatabricks.net",
            "/api/2.0/clusters/list",
            &text("dapi{hex:32}"),
        ),
        bearer(
            "api.digitalocean.com",
            "/v2/droplets",
            &text("dop_v1_{hex:64}"),
        ),
        bearer(
            "api.cloudflare.com",
            "/client/v4/zones",
            &text("cfut_{b62:40}{hex:8}"),
        ),
        bearer(
            "abcdefghijklmnopqrst.supabase.co",
            "/rest/v1/t?select=*",
            &text("sb_secret_{b64u:31}"),
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "one entry a client")]
fn code() -> Vec<Request> {
    let token = text("ghp_{b62:30}{crc62}");
    let git = "/acme/a.git/git-upload-pack";
    let fine = text("github_pat_{b62:22}_{b62:59}");
    let npm = text("npm_{b62:30}{crc62}");
    let pypi = text("pypi-{macaroon}");
    let pack = "application/x-git-upload-pack-request";
    vec![
        with(
            "github.com",
            git,
            "authorization",
            &basic("x-access-token", &token),
        )
        .content(pack, "0014command=ls-refs\n0000"),
        with(
            "github.com",
            "/acme/a.git/info/refs?service=git-receive-pack",
            "authorization",
            &basic(&token, "x-oauth-basic"),
        ),
        with(
            "github.com",
            "/acme/a.git/info/refs?service=git-receive-pack",
            "authorization",
            &basic("me", &fine),
        ),
        with(
            "api.github.com",
            "/graphql",
            "authorization",
            &format!("token {token}"),
        )
        .content(JSON, "{\"query\":\"q\"}"),
        bearer("api.github.com", "/repos/acme/a/issues", &token).content(JSON, "{\"title\":\"t\"}"),
        with(
            "ghcr.io",
            "/token?scope=repository:acme/a:pull&service=ghcr.io",
            "authorization",
            &basic("me", &token),
        ),
        with(
            "npm.pkg.github.com",
            "/@acme%2fa",
            "authorization",
            &format!("Bearer {token}"),
        ),
        with(
            "gitlab.com",
            "/api/v4/projects",
            "private-token",
            &text("glpat-{b64u:20}"),
        ),
        with(
            "gitlab.com",
            "/acme/a.git/info/refs?service=git-upload-pack",
            "authorization",
            &basic("oauth2", &text("glpat-{b64u:20}")),
        ),
        with(
            "api.bitbucket.org",
            "/2.0/user",
            "authorization",
            &basic("me", &text("ATBB{b62:32}")),
        ),
        with(
            "acme.atlassian.net",
            "/rest/api/3/myself",
            "authorization",
            &basic(
                "somebody.with.a.long.name+jira@engineering.acme.example",
                &text("ATATT3x{b64u:180}={HEX:8}"),
            ),
        ),
        bearer(REGISTRY, "/@acme%2fa", &npm).content(JSON, "{\"_id\":\"@acme/a\"}"),
        Request::to(REGISTRY, &format!("/-/user/token/{npm}")),
        with(
            REGISTRY,
            "/legacy/",
            "authorization",
            &basic("__token__", &pypi),
        ),
        with(
            REGISTRY,
            "/api/v1/crates/new",
            "authorization",
            &text("cio{b62:32}"),
        ),
        with(
            "rubygems.org",
            "/api/v1/gems",
            "authorization",
            &text("rubygems_{hex:48}"),
        ),
        with(
            "www.nuget.org",
            "/api/v2/package",
            "x-nuget-apikey",
            &text("oy2{b32l:43}"),
        ),
        with(
            "auth.docker.io",
            "/token?service=registry.docker.io&scope=repository:acme/a:pull",
            "authorization",
            &basic("acme", &text("dckr_pat_{b64u:27}")),
        ),
        with(
            "acme.jfrog.io",
            "/artifactory/api/npm/npm/a",
            "x-jfrog-art-api",
            &text("AKCp{b62:69}"),
        ),
        with(
            "sonarcloud.io",
            "/api/ce/submit",
            "authorization",
            &basic(&text("squ_{hex:40}"), ""),
        ),
        with(
            "api.pulumi.com",
            "/api/user",
            "authorization",
            &format!("token {}", text("pul-{hex:40}")),
        ),
        bearer(
            "app.terraform.io",
            "/api/v2/account/details",
            &text("{b62:14}.atlasv1.{b62:67}"),
        ),
        with(
            "api.machines.dev",
            "/v1/apps",
            "authorization",
            &format!("FlyV1 {}", text("fm2_{b64:200}")),
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "one entry a client")]
fn services() -> Vec<Request> {
    let stripe = text("sk_live_{b62:99}");
    let slack = text("xoxb-123456789012-123456789012-{b62:24}");
    let anthropic = text("sk-ant-api03-{b64u:93}AA");
    let openai = text("sk-proj-{b64u:74}T3BlbkFJ{b64u:74}");
    let telegram = text("1234567890:AA{b64u:33}");
    vec![
        bearer("api.stripe.com", "/v1/charges", &stripe).content(FORM, "amount=100&currency=eur"),
        with(
            "api.stripe.com",
            "/v1/charges",
            "authorization",
            &basic(&stripe, ""),
        )
        .content(FORM, "amount=100"),
        Request::to("connect.stripe.com", "/oauth/token").content(
            FORM,
            &format!("grant_type=authorization_code&code=x&client_secret={stripe}"),
        ),
        bearer("slack.com", "/api/chat.postMessage", &slack)
            .content(JSON, "{\"channel\":\"C\",\"text\":\"hello\"}"),
        Request::to("slack.com", "/api/chat.postMessage")
            .content(FORM, &format!("channel=C&text=hello&token={slack}")),
        Request::to("slack.com", "/api/chat.postMessage")
            .content(FORM, &format!("token={slack}&channel=C&text=hello")),
        Request::to("slack.com", &format!("/api/auth.test?token={slack}")),
        with("api.anthropic.com", "/v1/messages", "x-api-key", &anthropic)
            .content(JSON, "{\"messages\":[]}"),
        bearer(
            "api.anthropic.com",
            "/v1/messages?beta=true",
            &text("sk-ant-oat01-{b64u:93}AA"),
        )
        .content(JSON, "{\"messages\":[]}"),
        Request::to("console.anthropic.com", "/v1/oauth/token").content(
            JSON,
            &format!(
                "{{\"grant_type\":\"refresh_token\",\"refresh_token\":\"{}\",\"client_id\":\"x\"}}",
                text("sk-ant-ort01-{b64u:93}AA")
            ),
        ),
        bearer("api.openai.com", "/v1/responses", &openai).content(JSON, "{\"input\":\"hello\"}"),
        with(
            "api.openai.com",
            "/v1/realtime?model=m",
            "sec-websocket-protocol",
            &format!("realtime, openai-insecure-api-key.{openai}, openai-beta.realtime-v1"),
        ),
        bearer("huggingface.co", "/api/whoami-v2", &text("hf_{alpha:34}")),
        with(
            "api.replicate.com",
            "/v1/predictions",
            "authorization",
            &format!("Token {}", text("r8_{b62:37}")),
        ),
        Request::to("api.telegram.org", &format!("/bot{telegram}/sendMessage"))
            .content(JSON, "{\"chat_id\":1,\"text\":\"hello\"}"),
        Request::to(
            "api.telegram.org",
            &format!("/file/bot{telegram}/documents/file_1.txt"),
        ),
        bearer(
            "api.sendgrid.com",
            "/v3/mail/send",
            &text("SG.{b64u:22}.{b64u:43}"),
        )
        .content(JSON, "{\"from\":{}}"),
        with(
            "api.mailgun.net",
            "/v3/acme.example/messages",
            "authorization",
            &basic("api", &text("key-{hex:32}")),
        ),
        with(
            "us12.api.mailchimp.com",
            "/3.0/ping",
            "authorization",
            &basic("anystring", &text("{hex:32}-us12")),
        ),
        with(
            "api.datadoghq.com",
            "/api/v1/series",
            "dd-api-key",
            &text("{hex:32}"),
        )
        .content(JSON, "{\"series\":[]}"),
        with(
            "prometheus-prod-01-eu-west-0.grafana.net",
            "/api/prom/push",
            "x-scope",
            "1",
        ),
        bearer(
            "acme.grafana.net",
            "/api/dashboards/home",
            &text("glsa_{b62:32}_{hex:8}"),
        ),
        with(
            "api.honeycomb.io",
            "/1/events/a",
            "x-honeycomb-team",
            &text("hcaik_{lower:58}"),
        ),
        bearer(
            "api.notion.com",
            "/v1/search",
            &text("ntn_{digits:11}{b62:35}"),
        )
        .content(JSON, "{}"),
        with(
            "api.linear.app",
            "/graphql",
            "authorization",
            &text("lin_api_{b62:40}"),
        )
        .content(JSON, "{\"query\":\"q\"}"),
        with(
            "api.figma.com",
            "/v1/me",
            "x-figma-token",
            &text("figd_{b64u:40}"),
        ),
        with(
            "acme.myshopify.com",
            "/admin/api/2026-01/shop.json",
            "x-shopify-access-token",
            &text("shpat_{hex:32}"),
        ),
        Request::to("production.plaid.com", "/transactions/sync").content(
            JSON,
            &format!(
                "{{\"client_id\":\"x\",\"access_token\":\"{}\"}}",
                text("access-production-{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}")
            ),
        ),
        with(
            "us.cloud.langfuse.com",
            "/api/public/ingestion",
            "authorization",
            &basic(
                &text("pk-lf-{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}"),
                &text("sk-lf-{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}"),
            ),
        ),
        with(
            "api.planetscale.com",
            "/v1/organizations",
            "authorization",
            &format!("{}:{}", text("{lower:12}"), text("pscale_tkn_{b64u:43}")),
        ),
    ]
}

#[test]
fn requests_of_real_clients_pass_to_their_issuers_alone() {
    let named = NAMED.map(str::to_owned);
    let all = [clouds(), code(), services(), redirected()].concat();
    for policy in policies() {
        let rules = rules(policy, &named);
        for request in &all {
            let found = request.found(&rules);
            assert!(found.is_empty(), "{policy:?} {request:?}: {found:?}");
        }
    }
    let strict = rules(outgate_dlp::ScanPolicy::Strict, &named);
    // Of these only signatures and ordinary fields go out.
    let is_signed = |request: &Request| {
        let fields = || request.fields.iter().map(|(_, value)| value);
        fields().any(|value| value.starts_with("SharedKey "))
            || request.host.starts_with("prometheus")
    };
    for request in all.iter().filter(|request| !is_signed(request)) {
        let evil = request.instead("evil.test");
        assert!(!evil.found(&strict).is_empty(), "{evil:?}");
    }
}
