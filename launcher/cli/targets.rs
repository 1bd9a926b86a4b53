//! Where what is learnt is written, and the document that it is added to: both as they are
//! before a command runs, which may lay links in the place of either.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use outgate_launcher::private::HeldDirectory;
use outgate_launcher::sources::regular;
use outgate_policy::printable;

use crate::failure::Failure;

/// Where what is learnt goes, and what it is added to, as they were before a command ran.
pub(crate) struct Targets {
    pub(crate) output: Option<Target>,
    /// The document that lines are added to, and its name.
    pub(crate) merge: Option<(PathBuf, String)>,
}

impl Targets {
    pub(crate) fn of(output: Option<&Path>, merge: Option<&Path>) -> Result<Self, Failure> {
        let output = output.or(merge).map(Target::of);
        let merge = merge.map(|path| Ok::<_, Failure>((path.to_owned(), read(path)?)));
        Ok(Self {
            output: output.transpose()?,
            merge: merge.transpose()?,
        })
    }
}

/// A file that is written in a directory which is open, whatever its name leads to by then.
pub(crate) struct Target {
    directory: HeldDirectory,
    name: OsString,
    pub(crate) shown: PathBuf,
}

impl Target {
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        let absolute = std::path::absolute(path).map_err(|error| unwritten(path, &error))?;
        // A link stays one, and what it names now is written.
        let place = path.canonicalize().unwrap_or(absolute);
        let above = place.parent().unwrap_or(Path::new("/"));
        Ok(Self {
            directory: HeldDirectory::open(above).map_err(|error| unwritten(path, &error))?,
            name: place.file_name().unwrap_or_default().to_owned(),
            shown: path.to_owned(),
        })
    }

    /// Writes it whole or not at all.
    pub(crate) fn put(&self, text: &str) -> Result<(), Failure> {
        let path = self.directory.reach().join(&self.name);
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(format!(".{}", std::process::id()));
        let beside = path.with_file_name(name);
        let written = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&beside)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                let before = path.symlink_metadata();
                if let Some(before) = before.ok().filter(std::fs::Metadata::is_file) {
                    file.set_permissions(before.permissions())?;
                }
                std::fs::rename(&beside, &path)
            });
        written.map_err(|error| {
            // It may not be there.
            std::fs::remove_file(&beside).ok();
            unwritten(&self.shown, &error)
        })
    }
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    let path = printable(&path.display().to_string());
    Failure::Words(
        format!("`{path}`: {error}"),
        "name a file that can be written",
    )
}

/// The document that lines are added to; one that is not there is empty.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    match regular(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Failure::Words(
            format!("`{}`: {error}", path.display()),
            "name a policy that can be read",
        )),
    }
}
