//! Sources to a policy: one pass over each, in order, collecting every fault.
//!
//! The only maker of a [`Policy`]. Which syntax a source has is decided here;
//! documents are read in [`crate::document`], everything else is one value.

use crate::document;
use crate::draft::{Access, Author, Draft, RuleExtras};
use crate::error::PolicyErrors;
use crate::limits::SOURCE_BYTES_MAX;
use crate::location::Location;
use crate::policy::Policy;
use crate::source::{Context, Source, SourceKind};
use crate::verdict::Effect;

/// Makes a policy from its sources, merged in order: lists unite, denials
/// always survive, of scalars the last wins. `extends` is not followed here;
/// whoever collects the sources does so with [`extends`].
///
/// # Errors
/// Every fault of every source, with its place; the author is to blame.
pub fn compile(sources: &[Source], context: &Context) -> Result<Policy, PolicyErrors> {
    let mut draft = Draft::new(context);
    for source in sources {
        let location = Location::of(source);
        let first = draft.faults();
        add(&mut draft, source, &location);
        draft.order_faults(first);
    }
    draft.finish()
}

/// The presets and files that a document extends, in order. Other kinds of
/// sources extend nothing.
///
/// # Errors
/// The document is not TOML, or its `extends` is not a list of texts.
pub fn extends(source: &Source) -> Result<Vec<String>, PolicyErrors> {
    if source.kind != SourceKind::Document {
        return Ok(Vec::new());
    }
    let context = Context::default();
    let mut draft = Draft::new(&context);
    let location = Location::of(source);
    let names = if is_too_long(&mut draft, &location) {
        Vec::new()
    } else {
        document::extends(&mut draft, &location)
    };
    draft.finish().map(|_| names)
}

fn add<'a>(draft: &mut Draft<'_>, source: &'a Source, location: &'a Location<'a>) {
    if is_too_long(draft, location) {
        return;
    }
    let at = location.start();
    let text = source.text.as_str();
    match source.kind {
        SourceKind::Document => document::read(draft, location, author(text)),
        SourceKind::Allow => draft.rule(at, Effect::Allow, text, RuleExtras::default()),
        SourceKind::Deny => draft.rule(at, Effect::Deny, text, RuleExtras::default()),
        SourceKind::Pin => draft.pin_argument(at, text),
        SourceKind::Read => draft.path(at, Access::Read, text, Author::User),
        SourceKind::Write => draft.path(at, Access::Write, text, Author::User),
        SourceKind::Listen => draft.listen(at, text),
    }
}

/// A text that we ship is ours wherever it comes from.
fn author(text: &str) -> Author {
    if crate::preset::is_shipped(text) {
        Author::Preset
    } else {
        Author::User
    }
}

fn is_too_long<'a>(draft: &mut Draft<'_>, location: &'a Location<'a>) -> bool {
    let length = location.text().len();
    let too_long = length > SOURCE_BYTES_MAX;
    if too_long {
        draft.fault(location.start().error(
            0,
            format!("the policy has {length} bytes, more than {SOURCE_BYTES_MAX}"),
            Some("split it, or use wildcards".to_owned()),
        ));
    }
    too_long
}
