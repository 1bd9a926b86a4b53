//! Credentials towards those who issued them: where a client shows one it may stand,
//! in what is sent to be kept it may not, wherever others may read what is kept.

#![expect(clippy::expect_used, reason = "what is missing is a failed test")]

use std::sync::Arc;

use outgate_dlp::{
    Allowance, Description, Detector, Detectors, Finding, Issuer, IssuerPattern, Joined,
    KnownBuilder, KnownNature, KnownValue, MessagePart, OwnDetector, Piece, PieceSource, Place,
    Ruleset, ScanDestination, ScanSettings, Scope, SecretBytes, Stop, Tenants, Tier, Window,
    sample,
};

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";
/// A registry that a client's own configuration names.
const REGISTRY: &str = "packages.example.org";

fn to(host: &str) -> ScanDestination<'_> {
    ScanDestination { host, port: 443 }
}

/// The shipped rules, and what the client's configuration says.
fn rules() -> Arc<Ruleset> {
    with(ScanSettings::default())
}

fn with(settings: ScanSettings) -> Arc<Ruleset> {
    let detectors = Detectors::shipped();
    let of_registries = detectors
        .iter()
        .filter(|own| matches!(own.scope, Scope::Registry(_)));
    let registries = of_registries.map(|own| Issuer {
        detector: own.id.to_string(),
        host: REGISTRY.to_owned(),
    });
    let settings = ScanSettings {
        registries: registries.collect(),
        ..settings
    };
    Arc::new(Ruleset::new(&detectors, &settings).expect("the shipped detectors"))
}

fn text(template: &str) -> String {
    String::from_utf8(sample(template, 3)).expect("text")
}

/// What is found in one part of a message.
fn at(rules: &Ruleset, host: &str, place: Place, bytes: &[u8]) -> Vec<Finding> {
    rules
        .head(&to(host), &[MessagePart { place, bytes }])
        .findings
}

/// What stops content, if anything does.
fn sent(rules: &Arc<Ruleset>, url: &str, kind: &str, bytes: &[u8]) -> Option<Finding> {
    let (host, path) = url.split_at(url.find('/').unwrap_or(url.len()));
    let (kind, codings) = match kind.split_once("; coded as ") {
        Some((kind, coding)) => (kind, Some(coding.as_bytes())),
        None => (kind, None),
    };
    let description = Description {
        place: Place::Content,
        media_type: Some(kind.as_bytes()),
        content_codings: codings,
        length: None,
    };
    let whole = |step: usize| {
        let mut stream = rules.stream(&to(host), &description).for_path(path);
        let pushed = bytes
            .chunks(step)
            .try_for_each(|piece| stream.push(piece).map(drop));
        match pushed.and_then(|()| stream.finish().map(drop)) {
            Err(Stop::Found(finding)) => Some(*finding),
            _ => None,
        }
    };
    let found = whole(usize::MAX);
    assert_eq!(whole(1), found, "byte by byte: {url}");
    found
}

/// The hosts of a detector, with a label for every star.
fn homes(detector: &Detector) -> Vec<String> {
    let own = detector.issuers.iter().chain(detector.tenant_hosts.iter());
    let name = |own: &String| {
        let name = own
            .replace("{region}", "eu-central-1")
            .replace("{zone}", "cn-hangzhou");
        name.replace("{label}", "any").replace('*', "any")
    };
    let issuers = own.map(|own| name(&own.to_string()));
    let registry = matches!(detector.scope, Scope::Registry(_)).then(|| REGISTRY.to_owned());
    issuers.chain(registry).collect()
}

fn of_many() -> Vec<Detector> {
    let shipped = Detectors::shipped();
    let many = shipped.iter().filter(|own| own.tenants == Tenants::Many);
    many.cloned().collect()
}

#[test]
fn what_many_tenants_keep_holds_no_credential_of_their_issuers() {
    let rules = rules();
    let mut count = 0;
    for detector in of_many() {
        for template in detector.samples.iter() {
            let bytes = sample(template, 3);
            for host in homes(&detector) {
                let found = |place: Place| {
                    let mut found = at(&rules, &host, place, &bytes).into_iter();
                    found.find(|finding| finding.detector == detector.id)
                };
                let what = format!("{} to {host}", detector.id);
                for place in [
                    Place::Content,
                    Place::Trailer("x-sum".to_owned()),
                    Place::Message,
                ] {
                    let finding = found(place.clone());
                    let finding = finding.unwrap_or_else(|| panic!("{what} in the {place}"));
                    assert_eq!(finding.place, place, "{what}");
                    assert!(finding.is_misplaced(&host), "{what}");
                    assert!(!finding.is_misplaced("elsewhere.test"), "{what}");
                }
                count += 1;
            }
        }
    }
    assert!(count > 150, "{count}");
}

#[test]
fn no_host_keeps_content_for_one_detector_and_not_for_another() {
    let patterns: Vec<(String, IssuerPattern)> = of_many()
        .iter()
        .flat_map(|own| {
            own.issuers
                .iter()
                .map(|one| (own.id.to_string(), one.clone()))
        })
        .map(|(id, issuer)| (id, IssuerPattern::parse(&issuer).expect("a pattern")))
        .collect();
    for detector in Detectors::shipped().iter() {
        if detector.tenants == Tenants::Many {
            continue;
        }
        for host in homes(detector) {
            let other = patterns.iter().find(|(_, pattern)| pattern.covers(&host));
            assert_eq!(other, None, "{} to {host}", detector.id);
        }
    }
}

#[test]
fn a_form_shows_a_credential_where_its_issuer_asks_for_it_and_nowhere_else() {
    let rules = rules();
    let refresh = text("ghr_{b62:76}");
    let pat = text("ghp_{b62:30}{crc62}");
    let google = text("1//0{b64u:60}");
    let secret = text("GOCSPX-{b64u:28}");
    let slack = text("xoxe-1-{b62:146}");
    let id = text("AKIA{akid}");
    let form = |pairs: &str| format!("grant_type=x&{pairs}&scope=y");
    let github = form(&format!("refresh_token={refresh}"));
    let both = form(&format!("refresh_token={google}&client_secret={secret}"));
    let escaped = both.replace("1//0", "1%2F%2F0");
    let ghcr = form(&format!("password={pat}"));
    let rotated = form(&format!("refresh_token={slack}"));
    let key = form(&format!("AccessKeyId={id}"));
    let token = "github.com/login/oauth/access_token";
    let charset = "application/x-www-form-urlencoded; charset=utf-8";
    for (url, kind, content, passes) in [
        (token, FORM, &github, true),
        (token, charset, &github, true),
        (token, JSON, &github, false),
        (token, "", &github, false),
        (token, "multipart/form-data; boundary=b", &github, false),
        ("github.com/login/oauth/access_token/", FORM, &github, false),
        ("github.com/login/oauth", FORM, &github, false),
        ("github.com/", FORM, &github, false),
        ("github.com", FORM, &github, false),
        (
            "api.github.com/login/oauth/access_token",
            FORM,
            &github,
            false,
        ),
        ("evil.test/login/oauth/access_token", FORM, &github, false),
        // The form is for one kind of credential.
        (token, FORM, &ghcr, false),
        ("ghcr.io/token", FORM, &ghcr, true),
        ("ghcr.io/v2/evil/image/blobs/uploads/", FORM, &ghcr, false),
        ("ghcr.io/token", FORM, &github, false),
        ("oauth2.googleapis.com/token", FORM, &both, true),
        ("oauth2.googleapis.com/token", FORM, &escaped, true),
        ("oauth2.googleapis.com/token", JSON, &both, false),
        ("storage.googleapis.com/token", FORM, &both, false),
        ("slack.com/api/oauth.v2.access", FORM, &rotated, true),
        ("slack.com/api/chat.postMessage", FORM, &rotated, false),
        ("iam.amazonaws.com/", FORM, &key, true),
        ("sts.eu-central-1.amazonaws.com/", FORM, &key, true),
        ("evil.s3.amazonaws.com/", FORM, &key, false),
    ] {
        let found = sent(&rules, url, kind, content.as_bytes());
        assert_eq!(found.is_none(), passes, "{kind} to {url}: {found:?}");
    }
}

#[test]
fn what_is_coded_in_a_form_is_content() {
    let rules = rules();
    let token = "github.com/login/oauth/access_token";
    let refresh = text("ghr_{b62:76}");
    let base64 = base64(refresh.as_bytes());
    let reversed: String = refresh.chars().rev().collect();
    for (kind, content, passes) in [
        (FORM, format!("refresh_token={refresh}"), true),
        (FORM, format!("refresh_token={base64}"), false),
        (
            "application/x-www-form-urlencoded; coded as identity",
            format!("a={refresh}"),
            true,
        ),
    ] {
        let found = sent(&rules, token, kind, content.as_bytes());
        assert_eq!(found.is_none(), passes, "{kind}: {found:?}");
    }
    // Of what is turned around only a warning is made, wherever it goes.
    let mut stream = rules
        .stream(
            &to("github.com"),
            &Description {
                place: Place::Content,
                media_type: Some(FORM.as_bytes()),
                content_codings: None,
                length: None,
            },
        )
        .for_path("/login/oauth/access_token");
    stream
        .push(format!("a={reversed}").as_bytes())
        .expect("a warning");
    stream.finish().expect("a warning");
    assert_eq!(stream.warnings().len(), 1);
    assert!(!stream.has_granted());
}

#[test]
fn what_is_put_together_has_no_place() {
    let rules = rules();
    let token = text("ghp_{b62:30}{crc62}");
    let (one, two) = token.split_at(20);
    for (joined, source) in [
        (Joined::Messages, PieceSource::Field),
        (Joined::Messages, PieceSource::Content),
        (Joined::Content, PieceSource::Content),
    ] {
        let mut window = Window::of(&rules, &to("api.github.com"), joined);
        let [one, two] = [one, two].map(|text| Piece {
            source,
            slot: b"a",
            bytes: text.as_bytes(),
        });
        assert_eq!(window.push(&[one]), []);
        let found = window.push(&[two]);
        assert_eq!(found.len(), 1, "{joined:?} {source:?}: {found:?}");
    }
    // Beside content, what stands in a field is not there to be shown.
    let shown = format!("Bearer {token}");
    let field = MessagePart {
        place: Place::Field("authorization".to_owned()),
        bytes: shown.as_bytes(),
    };
    let content = MessagePart {
        place: Place::Content,
        bytes: b"x",
    };
    let github = to("api.github.com");
    assert_eq!(
        rules.head(&github, std::slice::from_ref(&field)).findings,
        []
    );
    assert_eq!(rules.head(&github, &[field, content]).findings.len(), 1);
}

#[test]
fn an_operator_lets_content_go_and_to_that_host_only() {
    let rules = with(ScanSettings {
        allowances: vec![Allowance {
            detector: "github-token".to_owned(),
            hosts: IssuerPattern::parse("api.github.com").expect("a host"),
        }],
        ..ScanSettings::default()
    });
    let token = text("ghp_{b62:30}{crc62}");
    for (host, passes) in [
        ("api.github.com", true),
        ("github.com", false),
        ("uploads.github.com", false),
    ] {
        let found = sent(&rules, &format!("{host}/gists"), JSON, token.as_bytes());
        assert_eq!(found.is_none(), passes, "{host}");
    }
}

/// Rules that know a value for a host, which an operator may let go to another.
fn knowing(value: &str, host: &str, besides: &[&str]) -> Arc<Ruleset> {
    let mut builder = KnownBuilder::new([7; 32]);
    let pattern = |host: &str| IssuerPattern::parse(host).expect("a host");
    let about = KnownValue {
        label: "$OWN".to_owned(),
        others: Vec::new(),
        issuers: vec![pattern(host)],
        tier: Tier::Strong,
        nature: KnownNature::Sent,
    };
    let secret = SecretBytes::new(value.as_bytes().to_vec());
    builder.add(&secret, about).expect("a value");
    let homes = besides.iter().map(|host| ("OWN".to_owned(), pattern(host)));
    let rules = Ruleset::new(&Detectors::shipped(), &ScanSettings::default());
    let rules = rules.expect("the shipped detectors");
    Arc::new(rules.with_known(Arc::new(builder.build()), homes.collect()))
}

#[test]
fn a_value_of_the_users_own_goes_home_in_fields_and_in_content_where_nobody_else_reads() {
    let plain = "kV8pq2Lm-zR41x_Qw7Tz9uYb3";
    let token = text("ghp_{b62:30}{crc62}");
    let api = "api.github.com/gists";
    let oauth = "oauth2.googleapis.com/token";
    for (value, home, besides, url, kind, passes) in [
        // A host of one's own.
        (plain, "home.test", &[][..], "home.test/", JSON, true),
        // Hosts that keep what is sent, whatever the value looks like.
        (plain, "*.github.com", &[], api, JSON, false),
        (plain, "*.github.com", &["api.github.com"], api, JSON, true),
        (plain, "*.github.com", &["home.test"], api, JSON, false),
        (
            plain,
            "*.amazonaws.com",
            &[],
            "evil.s3.amazonaws.com/x",
            JSON,
            false,
        ),
        (plain, "oauth2.googleapis.com", &[], oauth, FORM, true),
        (plain, "oauth2.googleapis.com", &[], oauth, JSON, false),
        (
            plain,
            "*.googleapis.com",
            &[],
            "storage.googleapis.com/token",
            FORM,
            false,
        ),
        // A form whose issuer has many, for a server of one's own.
        (&token, "git.home.test", &[], "git.home.test/", JSON, false),
        (
            &token,
            "git.home.test",
            &["git.home.test"],
            "git.home.test/",
            JSON,
            true,
        ),
        (&token, "ghcr.io", &[], "ghcr.io/token", FORM, true),
        (
            &token,
            "github.com",
            &[],
            "github.com/login/oauth/access_token",
            FORM,
            false,
        ),
    ] {
        let rules = knowing(value, home, besides);
        let content = format!("a={value}&b=c");
        let found = sent(&rules, url, kind, content.as_bytes());
        assert_eq!(found.is_none(), passes, "{kind} to {url}: {found:?}");
        let host = url.split('/').next().expect("a host");
        assert!(found.is_none_or(|found| found.is_misplaced(host)), "{url}");
        let field = Place::Field("authorization".to_owned());
        let shown = format!("Bearer {value}");
        assert_eq!(at(&rules, host, field, shown.as_bytes()), [], "{url}");
    }
}

#[test]
fn a_detector_of_the_users_own_says_whose_content_its_hosts_keep() {
    let own = |tenants: Tenants, issuers: &[String]| {
        Detector::own(&OwnDetector {
            id: "acme-key",
            name: "ACME key",
            literals: &[],
            pattern: "acme_[0-9a-f]{24}",
            issuers,
            tenants,
        })
    };
    let issuers = ["*.acme.example".to_owned()];
    let key = text("acme_{hex:24}");
    for (tenants, passes) in [(Tenants::One, true), (Tenants::Many, false)] {
        let mut detectors = Detectors::shipped();
        let made = own(tenants, &issuers).expect("a detector");
        detectors.add(vec![made]).expect("a new id");
        let rules = Ruleset::new(&detectors, &ScanSettings::default()).expect("a ruleset");
        let found = sent(&Arc::new(rules), "x.acme.example/", JSON, key.as_bytes());
        assert_eq!(found.is_none(), passes, "{tenants:?}");
    }
    let told = own(Tenants::Many, &[]).expect_err("nobody's");
    assert!(told.contains("there are none"), "{told}");
}

/// RFC 4648 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = (0..3).fold(0_usize, |number, place| {
            (number << 8) | usize::from(three.get(place).copied().unwrap_or_default())
        });
        for place in 0..=three.len() {
            let letter = LETTERS.get((number >> (18 - 6 * place)) & 63);
            text.extend(letter.map(|letter| char::from(*letter)));
        }
    }
    let missing = (4 - text.len() % 4) % 4;
    text.push_str(&"=".repeat(missing));
    text
}
