#![allow(clippy::all, clippy::pedantic, missing_docs, clippy::print_stdout, clippy::indexing_slicing, clippy::unwrap_used)]
use std::sync::Arc;
use std::time::Instant;
use outgate_dlp::*;
fn main() {
    let rules = Arc::new(Ruleset::new(&Detectors::shipped(), &Settings::default()).unwrap());
    let to = Destination { host: "api.elsewhere.test", port: 443 };
    let head: Vec<(Source, &str, String)> = vec![
        (Source::Path, "\0", "".into()), (Source::Path, "\u{1}", "v1".into()), (Source::Path, "\u{2}", "chat".into()), (Source::Path, "\u{3}", "completions".into()),
        (Source::Field, "authorization", "Bearer k3Jd8sQpL0vXz7Rt2BnYw5HgMc9FaE0yoVNx".into()), (Source::FieldName, "authorization", "authorization".into()),
        (Source::Field, "x-stainless-lang", "python".into()), (Source::FieldName, "x-stainless-lang", "x-stainless-lang".into()),
        (Source::Field, "x-stainless-package-version", "1.52.0".into()), (Source::FieldName, "x-stainless-package-version", "x-stainless-package-version".into()),
        (Source::Field, "x-stainless-os", "Linux".into()), (Source::Field, "x-stainless-arch", "x64".into()), (Source::Field, "x-stainless-runtime-version", "3.12.3".into()),
        (Source::Cookie, "__cf_bm", "q8dJ3kLmN0pQrStUvWxYz12345-1732543210-1.0.1.1-AbCdEfGhIjKlMnOp".into()), (Source::CookieName, "__cf_bm", "__cf_bm".into()),
    ];
    let text = "Please have a look at the function parse_header in src/lib.rs, it fails on empty input and returns an error that nobody handles; then write a test for it. ";
    let mut turns: Vec<(Source, String, String)> = vec![
        (Source::ContentName, "model".into(), "model".into()), (Source::Content, "model".into(), "gpt-4o-2024-08-06".into()),
        (Source::ContentName, "messages".into(), "messages".into()),
    ];
    let rounds = 40;
    let mut best = [f64::MAX; 3];
    let mut found = 0;
    for _ in 0..12 {
        let mut window = Window::new(&rules, &to);
        turns.truncate(3);
        let mut spent = [0.0; 3];
        let mut state = 7u64;
        let mut id = || { let mut s = String::from("call_"); for _ in 0..24 { state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); let l = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"; s.push(l[(state >> 33) as usize % 62] as char); } s };
        for round in 0..rounds {
            let which = round % 3;
            let who = if which == 0 { "user" } else if which == 1 { "assistant" } else { "tool" };
            turns.push((Source::ContentName, "role".into(), "role".into()));
            turns.push((Source::Content, "role".into(), who.into()));
            turns.push((Source::ContentName, "content".into(), "content".into()));
            turns.push((Source::Content, "content".into(), format!("{round} {}", &text.repeat(2)[..120 + round % 7 * 20])));
            if which == 1 { turns.push((Source::ContentName, "id".into(), "id".into())); turns.push((Source::Content, "id".into(), id()));
                turns.push((Source::Content, "arguments".into(), format!("{{\"path\":\"src/lib.rs\",\"line\":{round}}}"))); }
            let hp: Vec<Piece> = head.iter().map(|(s, n, b)| Piece { source: *s, slot: n.as_bytes(), bytes: b.as_bytes() }).collect();
            let cp: Vec<Piece> = turns.iter().map(|(s, n, b)| Piece { source: *s, slot: n.as_bytes(), bytes: b.as_bytes() }).collect();
            let t = Instant::now(); found += window.push(&hp).len(); spent[0] += t.elapsed().as_secs_f64();
            let t = Instant::now(); found += window.look(&cp).len(); spent[1] += t.elapsed().as_secs_f64();
            let t = Instant::now(); found += window.push(&cp).len(); spent[2] += t.elapsed().as_secs_f64();
        }
        for i in 0..3 { best[i] = best[i].min(spent[i]); }
    }
    println!("head push {:.1} us, content look {:.1} us, content push {:.1} us, pieces at the end {}, found {found}", best[0] / rounds as f64 * 1e6, best[1] / rounds as f64 * 1e6, best[2] / rounds as f64 * 1e6, turns.len());
}
