//! The `[filesystem.moved]` table of a policy document: variables with which the user
//! moves what the document names in the home directory. Looks at no file.

use super::reader::{DocumentReader, Item};

/// Where places of this document lie if a variable says so: `VARIABLE` or `VARIABLE/REST`,
/// and the place.
pub(crate) fn moved(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    let Some(table) = reader.expect_table("moved", value) else {
        return;
    };
    for (key, value) in table {
        let key: &str = key.get_ref();
        let Some((at, place)) = reader.string(key, value) else {
            continue;
        };
        let (variable, rest) = key.split_once('/').unwrap_or((key, ""));
        let is_name = !variable.is_empty() && !variable.contains(['=', '$', '~']);
        if !is_name || !place.starts_with("~/") || place.ends_with('/') {
            let hint = "write `VARIABLE = \"~/.place\"`, without a `/` at the end";
            reader.fault(
                value,
                "this says nothing about a place in the home directory",
                hint,
            );
            continue;
        }
        reader.draft.moving(at, (variable, rest), place);
    }
}

#[cfg(test)]
mod tests {
    use crate::grant::PathGrant;
    use crate::{Context, Source, SourceKind, compile};

    fn granted(variables: &[(&str, &str)], text: &str) -> Result<Vec<String>, String> {
        let variables = variables.iter();
        let context = Context {
            home: "/home/me".to_owned(),
            working_directory: "/here".to_owned(),
            variables: variables
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            ..Context::default()
        };
        let source = Source {
            kind: SourceKind::Document,
            place: "a.toml".to_owned(),
            text: text.to_owned(),
        };
        let policy = compile(&[source], &context).map_err(|errors| errors.to_string())?;
        let paths = policy.filesystem().write.iter();
        Ok(paths.map(|PathGrant { path, .. }| path.clone()).collect())
    }

    const TEXT: &str = "[filesystem]\nwrite = [\"~/.it/\", \"~/.it2\", \"~/.it/x\", \"~/.config/it/\"]\n\
        [filesystem.new]\n\"~/.it.json\" = \"{}\"\n[filesystem.moved]\nIT_HOME = \"~/.it\"\n\
        \"IT_HOME/it.json\" = \"~/.it.json\"\nXDG_CONFIG_HOME = \"~/.config\"\n";

    #[test]
    fn places_lie_where_variables_say() {
        let home = [
            "/home/me/.it.json",
            "/home/me/.it",
            "/home/me/.it2",
            "/home/me/.it/x",
            "/home/me/.config/it",
        ];
        assert_eq!(granted(&[], TEXT).unwrap(), home);
        let moved = granted(
            &[("IT_HOME", "/data/./it/"), ("XDG_CONFIG_HOME", "/c")],
            TEXT,
        );
        let there = [
            "/data/it/it.json",
            "/data/it",
            "/home/me/.it2",
            "/data/it/x",
            "/c/it",
        ];
        assert_eq!(moved.unwrap(), there);
    }

    #[test]
    fn what_says_nothing_about_a_place_is_a_fault() {
        for line in [
            "IT = \"/etc\"",
            "IT = \"~/.it/\"",
            "\"\" = \"~/.it\"",
            "\"/x\" = \"~/.it\"",
            "IT = 1",
        ] {
            let text = format!("[filesystem.moved]\n{line}\n");
            assert!(granted(&[("IT", "/data")], &text).is_err(), "{line}");
        }
        let faulty = granted(&[("IT", "/a*b")], "[filesystem.moved]\nIT = \"~/.it\"\n");
        assert!(faulty.unwrap_err().contains("IT"));
    }
}
