//! Mirrors of Maven: `<mirror>` in its settings. As much of XML as people write there;
//! what is more is an error, and nothing is guessed.

use super::{Configuration, NamedRegistry, Variable};

/// The files of the machine and of the user.
pub(super) fn files(home: &str, variable: Variable<'_>) -> Vec<String> {
    let base = if home.is_empty() { "." } else { home };
    let machine = ["M2_HOME", "MAVEN_HOME"].into_iter().filter_map(variable);
    let machine = machine.map(|root| format!("{root}/conf/settings.xml"));
    let known = ["/etc/maven/settings.xml".to_owned()];
    let own = [format!("{base}/.m2/settings.xml")];
    machine.chain(known).chain(own).collect()
}

/// A mirror as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirror {
    pub(super) line: usize,
    pub(super) of: String,
    pub(super) url: String,
    pub(super) kind: MirrorKind,
}

/// What a mirror is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MirrorKind {
    /// It is asked.
    Asked,
    /// What it stands for is not asked at all (Maven 3.8.1).
    Blocked,
}

/// What a file names.
pub(super) fn read(file: &Configuration) -> Vec<NamedRegistry> {
    let Some(mirrors) = mirrors(&file.text) else {
        return vec![NamedRegistry {
            place: file.place.clone(),
            key: "settings.xml".to_owned(),
            value: String::new(),
        }];
    };
    let named = |mirror: Mirror| NamedRegistry {
        place: format!("{}:{}", file.place, mirror.line),
        key: "mirror".to_owned(),
        value: mirror.url,
    };
    let asked = mirrors.into_iter();
    let asked = asked.filter(|mirror| mirror.kind == MirrorKind::Asked);
    asked.map(named).collect()
}

/// The mirrors of a text; `None` where it has what is not read here.
pub(super) fn mirrors(text: &str) -> Option<Vec<Mirror>> {
    let plain = without_comments(text)?;
    if plain.contains("<!") {
        return None;
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((before, rest)) = plain.get(at..)?.split_once("<mirror>") {
        let (inside, _) = rest.split_once("</mirror>")?;
        let start = at + before.len();
        at = start + "<mirror>".len() + inside.len();
        let line = plain.get(..start)?.matches('\n').count() + 1;
        let of = element(inside, "mirrorOf")?.to_owned();
        let url = element(inside, "url")?.to_owned();
        let kind = match element(inside, "blocked") {
            Some("true") => MirrorKind::Blocked,
            _ => MirrorKind::Asked,
        };
        found.push(Mirror {
            line,
            of,
            url,
            kind,
        });
    }
    Some(found)
}

/// The text with blanks in the place of comments, its lines as they were.
fn without_comments(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("<!--") {
        let (comment, after) = behind.split_once("-->")?;
        out.push_str(before);
        out.extend(comment.chars().filter(|c| *c == '\n'));
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// The text of an element that holds nothing but text.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inside, _) = rest.split_once(&format!("</{name}>"))?;
    let is_plain = !inside.contains(['<', '>', '&', '"', '$']);
    is_plain.then(|| inside.trim())
}

/// Settings with these mirrors, the repository that runs share, and nothing else.
pub(super) fn settings(mirrors: &[Mirror]) -> String {
    let mirror = |(index, mirror): (usize, &Mirror)| {
        let blocked = match mirror.kind {
            MirrorKind::Asked => "",
            MirrorKind::Blocked => "<blocked>true</blocked>",
        };
        format!(
            "<mirror><id>mirror-{index}</id><mirrorOf>{}</mirrorOf><url>{}</url>{blocked}</mirror>",
            mirror.of, mirror.url
        )
    };
    let all: Vec<String> = mirrors.iter().enumerate().map(mirror).collect();
    format!(
        "<settings><localRepository>${{env.HOME}}/.cache/outgate/maven</localRepository>\
         <mirrors>{}</mirrors></settings>\n",
        all.concat()
    )
}

#[cfg(test)]
mod tests {
    use crate::clients::Client;
    use crate::clients::tests::taken;

    #[test]
    fn mirrors_are_taken_from_where_users_write_them() {
        const FILE: &str = "~/.m2/settings.xml";
        const NONE: &str = "error: the user's configuration of maven names no registry";
        const BROKEN: &str =
            "error: ~/.m2/settings.xml: `settings.xml` is no http or https URL of a registry";
        for (text, expected) in [
            (
                "<settings>\n<mirrors>\n<mirror><id>m</id>\n<url>\n https://m.test/maven2 </url><mirrorOf>*</mirrorOf></mirror></mirrors>\n<servers><server><id>m</id><password>secret</password></server></servers></settings>",
                "GET,HEAD https://m.test (~/.m2/settings.xml:3)",
            ),
            (
                "<settings><!-- <mirror><url>https://no.test</url>\n</mirror> -->\n<mirror><mirrorOf>central</mirrorOf><url>http://127.0.0.1:81/x</url></mirror></settings>",
                "GET,HEAD http://127.0.0.1:81 (~/.m2/settings.xml:3)",
            ),
            ("<settings/>", NONE),
            (
                "<settings><mirror><mirrorOf>external:http:*</mirrorOf><url>http://0.0.0.0/</url><blocked>true</blocked></mirror></settings>",
                NONE,
            ),
            (
                "<settings><mirror><url>https://m.test</url></mirror></settings>",
                BROKEN,
            ),
            (
                "<settings><mirror><mirrorOf>*</mirrorOf><url>https://${env.H}/</url></mirror></settings>",
                BROKEN,
            ),
            (
                "<settings><mirror><mirrorOf>*</mirrorOf><url><![CDATA[https://m.test]]></url></mirror></settings>",
                BROKEN,
            ),
            ("<!DOCTYPE x [<!ENTITY e 'y'>]><settings/>", BROKEN),
            ("<settings><!-- <mirror>", BROKEN),
            (
                "<settings><mirror><mirrorOf>*</mirrorOf><url>https://m.test",
                BROKEN,
            ),
        ] {
            assert_eq!(taken(Client::Maven, (FILE, text), &[]), expected, "{text}");
        }
    }
}
