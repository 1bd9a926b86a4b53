//! Items added to the lists of a document that somebody wrote: its text stays as it is, and
//! what is added stands behind what is there. Text only; what items mean is read as ever.

use toml::de::{DeTable, DeValue};

/// An item of a list, with the comment above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AddedItem {
    /// Lines of the comment, each with its `#`.
    pub(crate) comment: Vec<String>,
    /// As it stands in a list.
    pub(crate) item: String,
    /// The same as a table of its own.
    pub(crate) table: Vec<String>,
}

/// How a list is written.
#[derive(Debug, PartialEq, Eq)]
enum ListForm {
    /// `key = […]`: where its bracket closes, and where a comma is missing.
    Inline { end: usize, comma: Option<usize> },
    /// `[[key]]`, or not at all.
    Tables,
}

/// The text with these items of a list of tables, such as `allow`, or nothing where the text
/// has another form than a policy document.
pub(crate) fn with_tables(text: &str, key: &str, items: &[AddedItem]) -> Option<String> {
    if items.is_empty() {
        return Some(text.to_owned());
    }
    match form(text, key)? {
        ListForm::Inline { end, comma } => inserted(text, (end, comma), items),
        ListForm::Tables => {
            let mut out = text.trim_end().to_owned();
            for item in items {
                if !out.is_empty() {
                    out.push_str("\n\n");
                }
                let lines = item.comment.iter().chain(&item.table).cloned();
                out.push_str(&lines.collect::<Vec<_>>().join("\n"));
            }
            out.push('\n');
            Some(out)
        }
    }
}

/// The same for a list of texts, such as `listen`, which stands before all tables.
pub(crate) fn with_texts(text: &str, key: &str, items: &[AddedItem]) -> Option<String> {
    if items.is_empty() {
        return Some(text.to_owned());
    }
    match form(text, key)? {
        ListForm::Inline { end, comma } => inserted(text, (end, comma), items),
        ListForm::Tables => {
            let mut lines = vec![format!("{key} = [")];
            lines.extend(items.iter().flat_map(indented));
            lines.push("]".to_owned());
            let head = text
                .split_inclusive('\n')
                .take_while(|line| line.starts_with('#'));
            let head: usize = head.map(str::len).sum();
            let (before, after) = text.split_at_checked(head)?;
            let gap = if before.is_empty() || before.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            Some(format!("{before}{gap}{}\n{after}", lines.join("\n")))
        }
    }
}

fn indented(item: &AddedItem) -> Vec<String> {
    let mut lines: Vec<String> = item
        .comment
        .iter()
        .map(|line| format!("    {line}"))
        .collect();
    lines.push(format!("    {},", item.item));
    lines
}

fn inserted(
    text: &str,
    (end, comma): (usize, Option<usize>),
    items: &[AddedItem],
) -> Option<String> {
    let (before, after) = text.split_at_checked(end)?;
    let before = match comma {
        Some(at) => {
            let (head, tail) = before.split_at_checked(at)?;
            format!("{head},{tail}")
        }
        None => before.to_owned(),
    };
    let mut before = before.trim_end().to_owned();
    before.push('\n');
    for line in items.iter().flat_map(indented) {
        before.push_str(&line);
        before.push('\n');
    }
    Some(format!("{before}{after}"))
}

/// How the list is written; nothing where it is none, or the text is no document.
fn form(text: &str, key: &str) -> Option<ListForm> {
    let table = DeTable::parse(text).ok()?;
    let Some(value) = table.get_ref().get(key) else {
        return Some(ListForm::Tables);
    };
    let DeValue::Array(items) = value.get_ref() else {
        return None;
    };
    let span = value.span();
    let written = text.get(span.clone()).unwrap_or_default();
    let is_inline =
        written.starts_with('[') && !written.starts_with("[[") && written.ends_with(']');
    if !is_inline {
        return Some(ListForm::Tables);
    }
    let end = span.end.checked_sub(1)?;
    let last = items.iter().map(|item| item.span().end).max();
    // Behind the last item stand blanks, comments, and perhaps a comma.
    let comma = last.filter(|last| {
        let behind = text.get(*last..end).unwrap_or_default();
        !behind.lines().any(|line| {
            let code = line.split('#').next().unwrap_or_default();
            code.contains(',')
        })
    });
    Some(ListForm::Inline { end, comma })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> AddedItem {
        AddedItem {
            comment: vec![format!("# {text}")],
            item: format!("\"{text}\""),
            table: vec!["[[allow]]".to_owned(), format!("rule = \"{text}\"")],
        }
    }

    #[test]
    fn items_stand_behind_those_that_are_there() {
        let table = "# n\n[[allow]]\nrule = \"n\"\n";
        let inside = "\n    # n\n    \"n\",\n]";
        for (text, expected) in [
            ("", table.to_owned()),
            ("strict = true\n", format!("strict = true\n\n{table}")),
            (
                "[[allow]]\nrule = \"a\"\n",
                format!("[[allow]]\nrule = \"a\"\n\n{table}"),
            ),
            ("allow = []\n", format!("allow = [{inside}\n")),
            (
                "allow = [\"a\"]\nx = 1\n",
                format!("allow = [\"a\",{inside}\nx = 1\n"),
            ),
            (
                "allow = [\n  \"a\", # b, c\n]\n",
                format!("allow = [\n  \"a\", # b, c{inside}\n"),
            ),
            (
                "allow = [\n  \"a\" # b, c\n]\n",
                format!("allow = [\n  \"a\", # b, c{inside}\n"),
            ),
            (
                "allow = [{ rule = \"a\" },\n # ]\n]",
                format!("allow = [{{ rule = \"a\" }},\n # ]{inside}"),
            ),
        ] {
            let found = with_tables(text, "allow", &[item("n")]);
            assert_eq!(found.as_ref(), Some(&expected), "{text}");
            assert!(DeTable::parse(&expected).is_ok(), "{expected}");
        }
        assert_eq!(with_tables("allow = 1\n", "allow", &[item("n")]), None);
        assert_eq!(with_tables("allow = [", "allow", &[item("n")]), None);
    }

    #[test]
    fn texts_stand_before_all_tables() {
        let found = with_texts("# head\n[tls]\n", "listen", &[item("8080")]).unwrap();
        assert_eq!(
            found,
            "# head\nlisten = [\n    # 8080\n    \"8080\",\n]\n[tls]\n"
        );
        let found = with_texts("listen = [\"1\"]\n[tls]\n", "listen", &[item("2")]).unwrap();
        assert_eq!(found, "listen = [\"1\",\n    # 2\n    \"2\",\n]\n[tls]\n");
    }
}
