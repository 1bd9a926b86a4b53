//! Requests to hosts that an issuer sends its clients to, or that answer for it beside its own.

use outgate_dlp::sample;

use crate::request::{FORM, Request};

fn text(template: &str) -> String {
    String::from_utf8(sample(template, 7)).expect("letters")
}

fn bearer(host: &str, target: &str, token: &str) -> Request {
    Request::to(host, target).field("authorization", &format!("Bearer {token}"))
}

pub(crate) fn redirected() -> Vec<Request> {
    let id = text("AKIA{akid}");
    let escaped = "20260101%2Feu-central-1%2Fs3%2Faws4_request";
    let signature = text("{hex:64}");
    let sas = text(
        "sv=2024-11-04&ss=b&srt=sco&sp=rl&se=2026-01-01T00%3A00%3A00Z&spr=https&sig={b62:43}%3D",
    );
    vec![
        Request::to(
            "objects.githubusercontent.com",
            &format!(
                "/a?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={id}%2F{escaped}&X-Amz-Date=20260101T000000Z&X-Amz-Expires=300&X-Amz-Signature={signature}&X-Amz-SignedHeaders=host"
            ),
        ),
        Request::to(
            "release-assets.githubusercontent.com",
            &format!("/a/b?{sas}&rscd=attachment"),
        ),
        Request::to(
            "pkg-containers.githubusercontent.com",
            &format!("/ghcr1/blobs/x?{sas}"),
        ),
        bearer(
            "abcdef0123456789.gr7.eu-central-1.eks.amazonaws.com",
            "/api/v1/pods",
            &text("k8s-aws-v1.{b64u:400}"),
        ),
        bearer(
            "generativelanguage.googleapis.com",
            "/v1beta/openai/chat/completions",
            &text("AIza{b64u:35}"),
        ),
        bearer(
            "raw.githubusercontent.com",
            "/a/b/main/c",
            &text("ghp_{b62:30}{crc62}"),
        ),
        bearer(
            "models.github.ai",
            "/inference/chat/completions",
            &text("github_pat_{b62:22}_{b62:59}"),
        ),
        bearer(
            "x1.eu-west-1.aws.endpoints.huggingface.cloud",
            "/v1/chat/completions",
            &text("hf_{alpha:34}"),
        ),
        Request::to("gitlab.com", "/api/v4/projects/7/trigger/pipeline")
            .content(FORM, &format!("token={}&ref=main", text("glptt-{b64u:40}"))),
    ]
}
