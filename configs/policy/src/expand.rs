//! Paths as people write them to absolute, normalised ones, by text alone.
//!
//! `~` is the home directory, `$TMPDIR` the private directory of the run, any
//! other relative path begins in the working directory. Opens nothing.

use crate::host::shown;
use crate::source::Context;

/// Why a path cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathFault {
    /// The directory its placeholder stands for is unknown.
    Unknown(&'static str),
    /// Message and hint.
    Wrong(String, &'static str),
}

/// Makes an absolute path without `.`, `..`, repeated or trailing slashes.
///
/// `..` takes away the segment before it; links are not followed.
///
/// # Errors
/// An empty path, control characters, patterns, unknown placeholders.
pub(crate) fn expand(text: &str, context: &Context) -> Result<String, PathFault> {
    Ok(normalised(&parts(text, context)?))
}

/// The absolute path with each `..` as it is written, if it has one: behind a symbolic link
/// that is another place than what [`expand`] makes of it (path_resolution(7)).
///
/// # Errors
/// Those of [`expand`].
pub(crate) fn walked(text: &str, context: &Context) -> Result<Option<String>, PathFault> {
    let parts = parts(text, context)?;
    let segments = parts.iter().flat_map(|part| part.split('/'));
    let segments: Vec<&str> = segments
        .filter(|segment| !matches!(*segment, "" | "."))
        .collect();
    let climbs = segments.contains(&"..");
    Ok(climbs.then(|| format!("/{}", segments.join("/"))))
}

/// What follows one another on the way.
fn parts<'t>(text: &'t str, context: &'t Context) -> Result<Vec<&'t str>, PathFault> {
    let wrong = |message: String, hint| Err(PathFault::Wrong(message, hint));
    if text.is_empty() {
        return wrong(
            "the path is empty".to_owned(),
            "write `.` for the working directory",
        );
    }
    if text.chars().any(char::is_control) {
        return wrong(
            format!("the path `{}` holds a control character", shown(text)),
            "remove it",
        );
    }
    if text.contains('*') {
        return wrong(
            format!("the path `{}` is a pattern", shown(text)),
            "name the directory: everything below it is included",
        );
    }
    let (base, rest) = if let Some(rest) = text.strip_prefix('~') {
        (Some((context.home.as_str(), "home")), rest)
    } else if let Some(rest) = text.strip_prefix("$TMPDIR") {
        (Some((context.private_directory.as_str(), "private")), rest)
    } else {
        (None, text)
    };
    if base.is_some() && !rest.is_empty() && !rest.starts_with('/') {
        return wrong(
            format!(
                "`{}` begins with another user's home or an unknown variable",
                shown(text)
            ),
            "write the path itself; only `~/` and `$TMPDIR/` are known",
        );
    }
    if base.is_none() && text.starts_with('$') {
        return wrong(
            format!("`{}` begins with an unknown variable", shown(text)),
            "write the path itself; only `~/` and `$TMPDIR/` are known",
        );
    }
    match base {
        Some(("", name)) => Err(PathFault::Unknown(name)),
        Some((directory, _)) => Ok(vec![directory, rest]),
        None if text.starts_with('/') => Ok(vec![text]),
        None => Ok(vec![&context.working_directory, text]),
    }
}

/// Puts the directory into a variable's value that begins with `~/` or `$TMPDIR/`,
/// or has one of them behind its first `=`, as an option of a program has.
///
/// # Errors
/// Those of [`expand`], where there is one.
pub(crate) fn expand_value(value: &str, context: &Context) -> Result<String, PathFault> {
    let is_path = |text: &str| text.starts_with("~/") || text.starts_with("$TMPDIR/");
    let (before, path) = match value.split_once('=') {
        _ if is_path(value) => ("", value),
        Some((option, path)) if is_path(path) => (option, path),
        _ => return Ok(value.to_owned()),
    };
    let path = expand(path, context)?;
    Ok(if before.is_empty() {
        path
    } else {
        format!("{before}={path}")
    })
}

fn normalised(parts: &[&str]) -> String {
    let mut out = String::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
    for segment in parts.iter().flat_map(|part| part.split('/')) {
        match segment {
            "" | "." => {}
            ".." => out.truncate(out.rfind('/').unwrap_or(0)),
            _ => {
                out.push('/');
                out.push_str(segment);
            }
        }
    }
    if out.is_empty() {
        out.push('/');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context {
        Context {
            home: "/home/me/".to_owned(),
            working_directory: "/here/x".to_owned(),
            private_directory: "/tmp/private".to_owned(),
            ..Context::default()
        }
    }

    #[test]
    fn paths_become_absolute_and_normal() {
        for (text, want) in [
            ("/usr//lib/./x/../y/", "/usr/lib/y"),
            ("/", "/"),
            ("/..", "/"),
            ("~", "/home/me"),
            ("~/.ssh/", "/home/me/.ssh"),
            (".", "/here/x"),
            ("src", "/here/x/src"),
            ("../shared", "/here/shared"),
            ("./~", "/here/x/~"),
            ("$TMPDIR", "/tmp/private"),
            ("$TMPDIR/a", "/tmp/private/a"),
        ] {
            assert_eq!(expand(text, &context()), Ok(want.to_owned()), "{text}");
        }
    }

    #[test]
    fn paths_that_mean_nothing_are_refused() {
        for text in [
            "",
            "a\nb",
            "/a/*",
            "~other",
            "$HOME/x",
            "$TMPDIRX",
            "$TMPDIR2/x",
        ] {
            assert!(
                matches!(expand(text, &context()), Err(PathFault::Wrong(..))),
                "{text}"
            );
        }
        let unknown = Context {
            working_directory: "/here".to_owned(),
            ..Context::default()
        };
        assert_eq!(expand("~/x", &unknown), Err(PathFault::Unknown("home")));
        assert_eq!(
            expand("$TMPDIR", &unknown),
            Err(PathFault::Unknown("private"))
        );
    }

    #[test]
    fn what_climbs_is_also_kept_as_it_is_written() {
        for (text, want) in [
            ("~/a/../b", Some("/home/me/a/../b")),
            ("/l/..", Some("/l/..")),
            ("../b", Some("/here/x/../b")),
            ("/a/b..c/.", None),
            ("~/b", None),
        ] {
            let walked = walked(text, &context()).unwrap();
            assert_eq!(walked.as_deref(), want, "{text}");
        }
    }
}
