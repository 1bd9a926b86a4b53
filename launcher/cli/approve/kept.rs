//! The file of `--always`: rules that a person keeps, added to a policy of theirs. Nothing in
//! it goes or changes.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use outgate_policy::with_rule;

/// Bytes of such a file that are read: more than a policy has.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A policy file to which rules are added. Opened before anything is asked: what a command
/// puts in its place meanwhile is another file.
#[derive(Debug)]
pub(super) struct KeptRules {
    path: PathBuf,
    file: File,
}

impl KeptRules {
    /// Opens it, or makes it.
    ///
    /// # Errors
    /// A sentence: it cannot be, or is a link or no file of one name, which a command may have
    /// laid there.
    pub(super) fn open(path: PathBuf) -> Result<Self, String> {
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let other = || said(&"it is a link, no file, or one with further names");
        let is_own = |about: &Metadata| about.is_file() && about.nlink() == 1;
        if path.symlink_metadata().is_ok_and(|about| !is_own(&about)) {
            return Err(other());
        }
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create(true).open(&path);
        let file = opened.map_err(|error| said(&error))?;
        let about = file.metadata().map_err(|error| said(&error))?;
        // Nobody laid a link there in between.
        let named = path.symlink_metadata().map_err(|error| said(&error))?;
        let is_same = (about.dev(), about.ino()) == (named.dev(), named.ino());
        if !is_own(&about) || !is_same {
            return Err(other());
        }
        Ok(Self { path, file })
    }

    /// Adds a rule behind the others that allow.
    ///
    /// # Errors
    /// A sentence: it has no such place, or cannot be written; then it is as it was.
    pub(super) fn keep(&self, rule: &str) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", self.path.display());
        let mut before = String::new();
        let mut file = &self.file;
        // What was not read would be gone with what is written behind the rest.
        let about = file.metadata().map_err(|error| said(&error))?;
        if about.len() > FILE_BYTES_MAX {
            return Err(said(&"it is too long for a policy; write the rule there"));
        }
        let read = file.seek(SeekFrom::Start(0));
        let read = read.and_then(|_| file.take(FILE_BYTES_MAX).read_to_string(&mut before));
        let read = read.map_err(|error| said(&error))?;
        if u64::try_from(read) != Ok(about.len()) {
            return Err(said(&"it changed while it was read; try again"));
        }
        let after = with_rule(&before, rule);
        let after =
            after.ok_or_else(|| said(&"nothing can be added to its form; write it there"))?;
        let same = before.bytes().zip(after.bytes());
        let same = same.take_while(|(one, other)| one == other).count();
        let rest = |text: &str| text.as_bytes().get(same..).unwrap_or_default().to_vec();
        let put = |rest: &[u8]| {
            let length = u64::try_from(same).unwrap_or(u64::MAX);
            self.file.set_len(length)?;
            (&self.file).write_all(rest)
        };
        put(&rest(&after)).map_err(|error| {
            put(&rest(&before)).ok();
            said(&error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_added_to_whatever_form_a_policy_has() {
        let name = format!("outgate-kept-{}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        let rule = "GET https://a.test/x";
        for (before, after) in [
            ("", "[[allow]]\nrule = \"GET https://a.test/x\"\n"),
            (
                "allow = [\"b.test\"]\n[limits]\nprocesses = 7\n",
                "allow = [\"b.test\",\n    \"GET https://a.test/x\",\n]\n[limits]\nprocesses = 7\n",
            ),
            (
                "[[allow]]\nrule = \"b.test\"\n# end",
                "[[allow]]\nrule = \"b.test\"\n# end\n\n[[allow]]\nrule = \"GET https://a.test/x\"\n",
            ),
        ] {
            std::fs::write(&path, before).unwrap();
            let kept = KeptRules::open(path.clone()).unwrap();
            kept.keep(rule).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
            kept.keep("unix:///run/a \"b\".sock").unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains(r#""unix:///run/a \"b\".sock""#), "{text}");
            let source = outgate_policy::Source {
                kind: outgate_policy::SourceKind::Document,
                place: "kept.toml".to_owned(),
                text,
            };
            let context = outgate_policy::Context::nowhere();
            let policy = outgate_policy::compile(&[source], &context).unwrap();
            assert!(policy.rules().count() >= 2);
        }
        let long = format!("# {}\n", "x".repeat(1 << 20));
        std::fs::write(&path, &long).unwrap();
        let kept = KeptRules::open(path.clone()).unwrap();
        assert!(kept.keep(rule).is_err_and(|said| said.contains("too long")));
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            long,
            "nothing is lost"
        );
        std::fs::write(&path, "allow = 7\n").unwrap();
        let kept = KeptRules::open(path.clone()).unwrap();
        assert!(
            kept.keep(rule)
                .is_err_and(|said| said.contains("nothing can be added"))
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "allow = 7\n");
        std::fs::remove_file(&path).unwrap();
    }
}
