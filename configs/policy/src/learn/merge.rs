//! What was learnt, added to a document that somebody wrote: nothing of it goes, nothing
//! changes, and what it allows already is not there twice.

use super::lines::quoted;
use super::{Learnt, LearntLine, LineKind};
use crate::document::{AddedItem, with_tables, with_texts};

/// A document with one more rule that allows, behind its own; nothing where it is no document
/// whose rules can be added to.
pub fn with_rule(document: &str, rule: &str) -> Option<String> {
    let rule = quoted(rule);
    let table = vec!["[[allow]]".to_owned(), format!("rule = {rule}")];
    let added = AddedItem {
        comment: Vec::new(),
        item: rule,
        table,
    };
    with_tables(document, "allow", &[added])
}

impl Learnt {
    /// The document with these lines behind its own; nothing where it is no document whose
    /// lists can be added to.
    pub fn added_to(&self, document: &str) -> Option<String> {
        let (listen, allow): (Vec<&LearntLine>, Vec<&LearntLine>) = self
            .lines
            .iter()
            .partition(|line| line.kind == LineKind::Listen);
        let items = |lines: Vec<&LearntLine>| -> Vec<AddedItem> {
            let item = |line: &LearntLine| AddedItem {
                comment: line.comment(),
                item: line.item(),
                table: line.table(),
            };
            lines.into_iter().map(item).collect()
        };
        let text = with_tables(document, "allow", &items(allow))?;
        with_texts(&text, "listen", &items(listen))
    }
}
