//! Bundles that are there before the authority is: each lies under a lease, and
//! whoever opens one waits until it has its content. So a run that trusts nobody pays
//! for no gateway, and a client never sees a bundle without the authority. Writes
//! below the private directory and nowhere else.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use outgate_sys::lease;

use super::{PendingStore, Trust};

/// The size a file shows before it has its content, in bytes: some programs look at
/// that first, and take an empty file for none.
const SHOWN_BYTES: u64 = 4096;

/// Files that wait for their content.
#[derive(Debug)]
pub struct Late {
    trust: Trust,
    /// In the order in which they were made; those before have none without it.
    files: Vec<(PendingStore, File)>,
}

impl Late {
    /// Makes the files, and writes what depends on no authority. SIGIO tells when somebody
    /// opens one; it must be blocked.
    ///
    /// # Errors
    /// The private directory cannot be written; where its file system has no leases, the
    /// trust comes back, and nothing of it is there.
    pub fn make(trust: Trust) -> io::Result<Result<Self, Trust>> {
        let mut files = Vec::new();
        for waiting in trust.waiting() {
            let file = trust.directory.make(Path::new(waiting.name(&trust)))?;
            if lease::take(&file).is_err() {
                files.push((waiting, file));
                for (waiting, _) in &files {
                    trust.directory.remove(Path::new(waiting.name(&trust)))?;
                }
                return Ok(Err(trust));
            }
            file.set_len(SHOWN_BYTES)?;
            files.push((waiting, file));
        }
        trust.write_settings()?;
        Ok(Ok(Self { trust, files }))
    }

    /// Writes all of them, and lets go: who waits goes on.
    ///
    /// # Errors
    /// The private directory cannot be written.
    pub fn write(self, authority: &str) -> io::Result<()> {
        let Self { trust, files } = self;
        // Bundle by bundle, so that one that cannot be written keeps none of the others.
        let mut result = Ok(());
        for (waiting, mut file) in files {
            let content = waiting.content(&trust, authority);
            let written = file.set_len(0).and_then(|()| file.write_all(&content));
            result = result.and(written);
        }
        result
    }
}
