//! What makes Java trust an authority: a store that its options name. What the
//! user's options name already is taken over where it can be read without a
//! password, and left alone where it cannot. Reads files; writes none.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::environment::Variables;

/// The variable that every Java machine reads.
pub(super) const OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// The option that names a trust store.
const STORE: &str = "-Djavax.net.ssl.trustStore=";

/// How a store of Java's own format begins, and its versions.
const MAGIC: u32 = 0xfeed_feed;
const VERSIONS: [u32; 2] = [1, 2];

/// Entries of a store at most.
const ENTRIES_MAX: u32 = 4096;

/// Whether there is a Java for which a store is worth its making.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JavaPresence {
    /// One is found.
    Here,
    /// None is told of a store either, and nobody sees its word about that.
    Absent,
}

/// Looks for a Java once, in every directory where the command looks for programs.
pub fn presence(variables: &Variables) -> JavaPresence {
    let set = |name: &str| {
        variables
            .get(OsStr::new(name))
            .filter(|own| !own.is_empty())
    };
    let path = set("PATH").cloned().unwrap_or_default();
    let is_here = set("JAVA_HOME").is_some()
        || std::env::split_paths(&path).any(|folder| folder.join("java").is_file());
    if is_here {
        JavaPresence::Here
    } else {
        JavaPresence::Absent
    }
}

/// The store that the user's options name.
pub(super) fn named(variables: &Variables) -> Option<PathBuf> {
    let options = variables.get(OsStr::new(OPTIONS))?.to_string_lossy();
    let (_, rest) = options.split_once(STORE)?;
    let path = match rest.chars().next()? {
        quote @ ('"' | '\'') => rest.split(quote).nth(1)?,
        _ => rest.split_whitespace().next()?,
    };
    Some(PathBuf::from(path))
}

/// The option that names the directory for temporary files. No Java asks `TMPDIR`.
const TEMPORARY: &str = "-Djava.io.tmpdir=";

/// Has Java, where there is one, keep temporary files in a directory, unless the user's
/// options name another.
pub(crate) fn keep_temporary(directory: &Path, java: JavaPresence, variables: &mut Variables) {
    let own = variables.get(OsStr::new(OPTIONS));
    let is_named = own.is_some_and(|own| own.to_string_lossy().contains(TEMPORARY));
    if is_named || directory.as_os_str().is_empty() || java == JavaPresence::Absent {
        return;
    }
    add(variables, TEMPORARY, directory);
}

/// Has the options name another store. The last word about it counts.
pub(super) fn name(variables: &mut Variables, store: &Path) {
    add(variables, STORE, store);
    let options = variables.entry(OPTIONS.into()).or_default();
    options.push(" -Djavax.net.ssl.trustStoreType=PKCS12");
}

/// Adds an option that names a path.
fn add(variables: &mut Variables, option: &str, path: &Path) {
    let options = variables.entry(OPTIONS.into()).or_default();
    if !options.is_empty() {
        options.push(" ");
    }
    let mut own = OsString::from(option);
    own.push(path);
    // Options end at a space unless they are in quotes.
    let spaced = own.to_string_lossy().contains(char::is_whitespace);
    let quote = if spaced { "\"" } else { "" };
    for part in [OsStr::new(quote), &own, OsStr::new(quote)] {
        options.push(part);
    }
}

/// Takes out of the options what [`name`] and [`keep_temporary`] put there for a directory.
pub(super) fn forget(directory: &Path, variables: &mut Variables) {
    let options = variables.get(OsStr::new(OPTIONS));
    let Some(text) = options.and_then(|options| options.to_str()) else {
        return;
    };
    let directory = directory.display();
    let own = [
        format!("{STORE}{directory}/"),
        format!("{TEMPORARY}{directory}"),
    ];
    // Ours are the last words.
    let Some(at) = own.iter().filter_map(|own| text.find(own)).min() else {
        return;
    };
    let kept = text.get(..at).unwrap_or_default().trim_end_matches('"');
    let kept = OsString::from(kept.trim_end());
    if kept.is_empty() {
        variables.remove(OsStr::new(OPTIONS));
    } else {
        variables.insert(OPTIONS.into(), kept);
    }
}

/// The certificates of a store in Java's own format (JKS), each in DER. `None`
/// for what is something else: certificates there may be locked.
pub(super) fn certificates(store: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut reader = KeystoreReader(store);
    let (magic, version) = (reader.number()?, reader.number()?);
    if magic != MAGIC || !VERSIONS.contains(&version) {
        return None;
    }
    let count = reader.number()?;
    let mut found = Vec::new();
    for _ in 0..count.min(ENTRIES_MAX) {
        let kind = reader.number()?;
        reader.text()?;
        reader.take(8)?;
        let chain = match kind {
            // A key, and the chain of its certificates.
            1 => {
                reader.block()?;
                reader.number()?.min(ENTRIES_MAX)
            }
            2 => 1,
            _ => return None,
        };
        for _ in 0..chain {
            if version == 2 {
                reader.text()?;
            }
            let certificate = reader.block()?;
            if kind == 2 {
                found.push(certificate.to_vec());
            }
        }
    }
    Some(found)
}

/// Big-endian numbers, and blocks that say their length.
struct KeystoreReader<'a>(&'a [u8]);

impl<'a> KeystoreReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let bytes = self.take(2)?;
        let length = u16::from_be_bytes(bytes.try_into().ok()?);
        self.take(usize::from(length))
    }

    fn block(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_user_stay_and_ours_come_last() {
        for (own, store, named_by_user, expected) in [
            (
                "",
                "/tmp/p/s.p12",
                None,
                "-Djavax.net.ssl.trustStore=/tmp/p/s.p12 -Djavax.net.ssl.trustStoreType=PKCS12",
            ),
            (
                "-Xmx1g -Djavax.net.ssl.trustStore=/own.jks -ea",
                "/p/s",
                Some("/own.jks"),
                "-Xmx1g -Djavax.net.ssl.trustStore=/own.jks -ea \
                 -Djavax.net.ssl.trustStore=/p/s -Djavax.net.ssl.trustStoreType=PKCS12",
            ),
            (
                "-Djavax.net.ssl.trustStore=\"/my own.jks\"",
                "/p q/s",
                Some("/my own.jks"),
                "-Djavax.net.ssl.trustStore=\"/my own.jks\" \
                 \"-Djavax.net.ssl.trustStore=/p q/s\" -Djavax.net.ssl.trustStoreType=PKCS12",
            ),
        ] {
            let mut variables = Variables::from([(OPTIONS.into(), own.into())]);
            assert_eq!(named(&variables), named_by_user.map(PathBuf::from));
            let before = variables.clone();
            name(&mut variables, Path::new(store));
            assert_eq!(variables[OsStr::new(OPTIONS)], expected);
            forget(Path::new(store).parent().unwrap(), &mut variables);
            // Temporary files first, as a run has it.
            variables.insert("JAVA_HOME".into(), "/j".into());
            let directory = Path::new(store).parent().unwrap();
            keep_temporary(directory, presence(&variables), &mut variables);
            let both = variables[OsStr::new(OPTIONS)]
                .to_string_lossy()
                .into_owned();
            assert!(
                both.contains(&format!("{TEMPORARY}{}", directory.display())),
                "{both}"
            );
            keep_temporary(Path::new("/other"), presence(&variables), &mut variables);
            assert_eq!(
                variables[OsStr::new(OPTIONS)],
                *both,
                "one of the user's stays"
            );
            name(&mut variables, Path::new(store));
            forget(directory, &mut variables);
            let kept = variables
                .get(OsStr::new(OPTIONS))
                .cloned()
                .unwrap_or_default();
            assert_eq!(kept, before[OsStr::new(OPTIONS)]);
            name(&mut variables, Path::new(store));
            assert_eq!(variables[OsStr::new(OPTIONS)], expected);
            forget(Path::new(store).parent().unwrap(), &mut variables);
            let kept = variables.get(OsStr::new(OPTIONS)).cloned();
            assert_eq!(kept.unwrap_or_default(), before[OsStr::new(OPTIONS)]);
        }
    }

    #[test]
    fn a_store_of_java_is_read_and_nothing_behind_its_end() {
        let mut store = Vec::new();
        for number in [MAGIC, 2, 2] {
            store.extend(number.to_be_bytes());
        }
        let text = |text: &[u8]| [&u16::try_from(text.len()).unwrap().to_be_bytes(), text].concat();
        let block =
            |text: &[u8]| [&u32::try_from(text.len()).unwrap().to_be_bytes(), text].concat();
        // A key with a chain of one, then a trusted certificate.
        for (kind, content) in [(1_u32, &b"chain"[..]), (2, b"root")] {
            store.extend(kind.to_be_bytes());
            store.extend(text(b"alias"));
            store.extend([0; 8]);
            if kind == 1 {
                store.extend(block(b"locked key"));
                store.extend(1_u32.to_be_bytes());
            }
            store.extend(text(b"X.509"));
            store.extend(block(content));
        }
        assert_eq!(certificates(&store), Some(vec![b"root".to_vec()]));
        for end in 0..store.len() {
            assert_eq!(certificates(&store[..end]), None, "{end}");
        }
        assert_eq!(certificates(b"\x30\x82"), None);
    }
}
