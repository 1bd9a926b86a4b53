//! A request as the scan gets it, and what it says of one.

use std::sync::Arc;

use outgate_dlp::{
    Description, Detectors, Issuer, MessagePart, Place, Ruleset, ScanDestination, ScanPolicy,
    ScanSettings, Scope, sample,
};

/// A registry that a client's own configuration names.
pub(crate) const REGISTRY: &str = "packages.example.org";
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";
pub(crate) const JSON: &str = "application/json";

/// A request to a host.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) host: String,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, String)>,
    /// Its media type and content.
    pub(crate) content: Option<(String, String)>,
}

impl Request {
    pub(crate) fn to(host: &str, target: &str) -> Self {
        Self {
            host: host.to_owned(),
            target: target.to_owned(),
            fields: vec![("host".to_owned(), host.to_owned())],
            content: None,
        }
    }

    pub(crate) fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn content(mut self, kind: &str, content: &str) -> Self {
        self.content = Some((kind.to_owned(), content.to_owned()));
        self
    }

    /// The same to another host.
    pub(crate) fn instead(&self, host: &str) -> Self {
        let mut other = self.clone();
        host.clone_into(&mut other.host);
        if let Some((_, value)) = other.fields.first_mut() {
            host.clone_into(value);
        }
        other
    }

    /// The detectors that stop it, or under `Monitor` find something.
    pub(crate) fn found(&self, rules: &Arc<Ruleset>) -> Vec<String> {
        let to = ScanDestination {
            host: &self.host,
            port: 443,
        };
        let target = MessagePart {
            place: Place::Target,
            bytes: self.target.as_bytes(),
        };
        let fields = self.fields.iter().flat_map(|(name, value)| {
            [
                MessagePart {
                    place: Place::FieldName,
                    bytes: name.as_bytes(),
                },
                MessagePart {
                    place: Place::Field(name.clone()),
                    bytes: value.as_bytes(),
                },
            ]
        });
        let parts: Vec<MessagePart<'_>> = std::iter::once(target).chain(fields).collect();
        let head = rules.head(&to, &parts);
        let mut found: Vec<String> = head
            .findings
            .iter()
            .map(|own| own.detector.to_string())
            .collect();
        let Some((kind, content)) = &self.content else {
            return found;
        };
        let description = Description {
            place: Place::Content,
            media_type: Some(kind.as_bytes()),
            content_codings: None,
            length: None,
        };
        let path = self.target.split('?').next().unwrap_or_default();
        let mut stream = rules.stream(&to, &description).for_path(path);
        let pushed = stream.push(content.as_bytes());
        if let Err(stop) = pushed.and_then(|_| stream.finish()) {
            found.push(format!("{stop:?}"));
        }
        found.extend(stream.warnings().iter().map(ToString::to_string));
        found
    }
}

/// The shipped rules under a policy, to which a rule of the operator's named these hosts.
pub(crate) fn rules(policy: ScanPolicy, named: &[String]) -> Arc<Ruleset> {
    let detectors = Detectors::shipped();
    let of_registries = detectors
        .iter()
        .filter(|own| matches!(own.scope, Scope::Registry(_)));
    let registries = of_registries.map(|own| Issuer {
        detector: own.id.to_string(),
        host: REGISTRY.to_owned(),
    });
    let settings = ScanSettings {
        policy,
        registries: registries.collect(),
        named: named.to_vec(),
        ..ScanSettings::default()
    };
    Arc::new(Ruleset::new(&detectors, &settings).expect("the shipped detectors"))
}

/// A name for a pattern.
pub(crate) fn name(pattern: &str) -> String {
    let name = pattern.replace("{region}", "eu-central-1");
    let name = name.replace("{zone}", "cn-hangzhou");
    name.replace("{label}", "any").replace('*', "any")
}

/// A name of a customer's for a pattern, deep enough for no name of a service.
pub(crate) fn rented(pattern: &str) -> String {
    match pattern.strip_prefix("*.") {
        Some(rest) => format!("any.rented.{}", name(rest)),
        None => name(pattern),
    }
}

/// A place without what stands beside it, and that: `{hmac}` behind `:`.
pub(crate) fn apart(place: &str) -> (&str, Option<(&str, &str)>) {
    let Some((place, beside)) = place.split_once(" + ") else {
        return (place, None);
    };
    let form = beside.find('{').expect("a form");
    (place, Some(beside.split_at(form)))
}

/// A signature of a form.
pub(crate) fn signature(form: &str) -> String {
    let text = |template: &str| String::from_utf8(sample(template, 5)).expect("letters");
    match form {
        "{sha1}" => text("{hex:40}"),
        "{sha256}" => text("{hex:64}"),
        "{hmac}" => base64(text("{b62:20}").as_bytes()),
        _ => {
            assert_eq!(form, "{ecdsa}");
            let number = format!("0220{}", text("{hex:64}"));
            format!("3044{number}{number}")
        }
    }
}

/// Everything that can be found: what is found is refused under `--strict`, and what is
/// certain by default too.
pub(crate) fn policies() -> [ScanPolicy; 2] {
    [ScanPolicy::Tiered, ScanPolicy::Strict]
}

/// RFC 4648 4.
pub(crate) fn base64(bytes: &[u8]) -> String {
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
