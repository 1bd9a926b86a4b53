//! The working directory that nobody named: shipped policies let the command write it, so
//! it must not be the home directory, nor one around that, nor a place in it that holds
//! secrets or what other programs run. Asks the file system; changes
//! nothing.

use std::path::Path;

use nix::sys::stat::stat;
use outgate_policy::{Context, Policy};

use crate::guarded::{guarded, home_by_account};
use crate::run_error::RunError;
use crate::writable::{Granted, real};

/// May the command write the working directory, as far as only a shipped policy says so?
/// Compares inodes: whatever name somebody came by, it is the same directory.
///
/// # Errors
/// [`RunError::Home`] when the user's home directory, by the environment or by the
/// accounts of the machine, is the working directory or lies in it. [`RunError::Guarded`]
/// when that is, lies in or holds a place of secrets or of programs in the home directory.
pub(crate) fn check(policy: &Policy, context: &Context) -> Result<(), RunError> {
    let directory = &context.working_directory;
    let mut grants = policy.filesystem().write.iter();
    // What only a shipped policy grants may be absent; what a user names may not.
    if !grants.any(|grant| grant.path == *directory && grant.optional) {
        return Ok(());
    }
    let Ok(object) = stat(directory.as_str()) else {
        return Ok(());
    };
    let mut around = Granted::default();
    around.add(&object, directory);
    let homes = [Some(context.home.clone()), home_by_account()];
    for home in homes.into_iter().flatten().filter(|home| !home.is_empty()) {
        let place = real(Path::new(&home));
        let is_inside = |place: &Path| around.around(place).is_some();
        if place.as_deref().is_some_and(is_inside) {
            return Err(RunError::Home {
                directory: directory.clone(),
                home,
            });
        }
        let own = real(Path::new(directory));
        if let Some(place) = own.zip(place).and_then(|(own, home)| guarded(&own, &home)) {
            return Err(RunError::Guarded {
                directory: directory.clone(),
                place: place.display().to_string(),
            });
        }
    }
    Ok(())
}
