//! The policies we ship. Data; whoever collects sources adds them by name.

use crate::preset_paths::{BASE, DEV_TOOLS, ShippedPath};

/// A shipped policy: its document, and what the document grants.
pub(crate) struct Shipped {
    name: &'static str,
    text: &'static str,
    pub(crate) paths: &'static [ShippedPath],
}

/// All of them, in the order of their names.
pub(crate) const SHIPPED: [Shipped; 3] = [
    Shipped {
        name: "base",
        text: include_str!("../../presets/base.toml"),
        paths: BASE,
    },
    Shipped {
        name: "dev-tools",
        text: include_str!("../../presets/dev-tools.toml"),
        paths: DEV_TOOLS,
    },
    Shipped {
        name: "none",
        text: include_str!("../../presets/none.toml"),
        paths: &[],
    },
];

/// The text of a shipped policy.
pub fn preset(name: &str) -> Option<&'static str> {
    SHIPPED
        .iter()
        .find(|shipped| shipped.name == name)
        .map(|shipped| shipped.text)
}

/// What a shipped policy is for, in one line: the first of its document.
pub fn preset_title(name: &str) -> Option<&'static str> {
    let line = preset(name)?.lines().next()?;
    let title = line.strip_prefix("# ")?.strip_prefix(name)?;
    Some(title.strip_prefix(": ")?.trim_end_matches('.'))
}

/// The names of the shipped policies, in order.
pub fn preset_names() -> &'static [&'static str] {
    const { &[SHIPPED[0].name, SHIPPED[1].name, SHIPPED[2].name] }
}

/// The shipped policy with this text, wherever the text came from.
pub(crate) fn shipped(text: &str) -> Option<&'static Shipped> {
    static ALL: [Shipped; 3] = SHIPPED;
    ALL.iter().find(|shipped| shipped.text == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::context;
    use crate::document;
    use crate::draft::{Access, Author, Draft};
    use crate::location::Location;
    use crate::source::{Source, SourceKind};
    use std::fmt::Write as _;

    /// What the document itself grants, in the form of the table.
    fn read(shipped: &Shipped) -> String {
        let source = Source {
            kind: SourceKind::Document,
            place: "p".to_owned(),
            text: shipped.text.to_owned(),
        };
        let context = context();
        let mut draft = Draft::new(&context);
        let location = Location::of(&source);
        document::read(&mut draft, &location, Author::Preset);
        let policy = draft.finish().expect("a sound document");
        assert_eq!(policy.rules().count(), 0, "the table holds paths only");
        let mut out = String::new();
        let files = policy.filesystem();
        for (access, list) in [
            (Access::Read, &files.read),
            (Access::Write, &files.write),
            (Access::Deny, &files.deny),
        ] {
            for grant in list {
                let _ = writeln!(out, "{access:?} {} {}", grant.place, grant.path);
            }
        }
        out
    }

    fn tabled(shipped: &Shipped) -> String {
        let context = context();
        let mut out = String::new();
        for own in shipped.paths {
            let path = crate::expand::expand(own.path, &context).expect("a path");
            let _ = writeln!(out, "{:?} p:{}:{} {path}", own.access, own.line, own.column);
        }
        out
    }

    #[test]
    fn the_tables_say_what_the_documents_say() {
        for shipped in &SHIPPED {
            assert_eq!(tabled(shipped), read(shipped), "{}", shipped.name);
        }
    }
}
