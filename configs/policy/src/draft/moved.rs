//! Places of a document that lie elsewhere, because a variable of the user's says so.

use std::borrow::Cow;

use super::Draft;
use crate::expand::{PathFault, expand};
use crate::grant::{Movable, Moved};
use crate::location::At;

/// A place of a document, and where a variable of the user's says that it lies.
pub(crate) struct Move {
    place: String,
    path: String,
    variable: String,
}

impl Draft<'_> {
    /// Notes that a place of the document lies below a variable's value, if the user set it.
    pub(crate) fn moving(&mut self, at: At<'_>, (variable, rest): (&str, &str), place: &str) {
        let to = [variable, rest].join("/");
        self.policy.filesystem.movable.push(Movable {
            to: to.trim_end_matches('/').to_owned(),
            from: place.to_owned(),
            place: at.place(),
        });
        let Some(value) = self.context.variables.get(variable) else {
            return;
        };
        let below = format!("{}/{rest}", value.trim_end_matches('/'));
        let below = below.trim_end_matches('/').to_owned();
        match expand(&below, self.context) {
            Ok(path) => self.moves.push(Move {
                place: place.to_owned(),
                path,
                variable: variable.to_owned(),
            }),
            Err(PathFault::Wrong(message, hint)) => {
                let message = format!("the variable {variable} moves `{place}`, but {message}");
                self.fault(at.error(0, message, Some(hint.to_owned())));
            }
            Err(PathFault::Unknown(_)) => {}
        }
    }

    /// A path as the document has it, or where it lies.
    pub(crate) fn placed<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let lies = |moved: &Move| {
            let rest = text.strip_prefix(moved.place.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", moved.path))
        };
        let found = self.moves.iter().find_map(lies);
        found.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// Notes that what the document grants as `text` is granted at `path`.
    pub(crate) fn note_moved(&mut self, at: At<'_>, text: &str, path: &str) {
        let is_it = |moved: &&Move| text.starts_with(moved.place.as_str());
        if let Some(moved) = self.moves.iter().find(is_it) {
            self.policy.filesystem.moved.push(Moved {
                variable: moved.variable.clone(),
                path: path.to_owned(),
                place: at.place(),
            });
        }
    }
}
