//! HTML by construction: what stands in this program goes in as it is, whatever
//! comes from a record only as text. There is no third way in.

use std::fmt::Write as _;

use outgate_policy::printable;

/// Characters of one text that are shown at most.
const TEXT_CHARS_MAX: usize = 400;

/// A piece of a document.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Markup that stands in this program.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Text from anywhere: no markup, no controls, no character that hides.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        let visible = printable(text);
        let mut characters = visible.chars();
        for character in characters.by_ref().take(TEXT_CHARS_MAX) {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                other => self.0.push(other),
            }
        }
        if characters.next().is_some() {
            self.0.push_str("&hellip;");
        }
        self
    }

    /// An element with text in it.
    pub(super) fn element(
        &mut self,
        open: &'static str,
        text: &str,
        close: &'static str,
    ) -> &mut Self {
        self.raw(open).text(text).raw(close)
    }

    /// An attribute whose value comes from anywhere.
    pub(super) fn attribute(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.raw(" ").raw(name).raw("=\"").text(value).raw("\"")
    }

    /// A number.
    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        // Writing into a text cannot fail.
        write!(self.0, "{number}").ok();
        self
    }

    /// A number with thousands apart.
    pub(super) fn count(&mut self, number: u64) -> &mut Self {
        let digits = number.to_string();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                self.0.push_str("&#8239;");
            }
            self.0.push(digit);
        }
        self
    }

    /// A number of hundredths, as attributes of drawings have them.
    pub(super) fn hundredths(&mut self, number: u64) -> &mut Self {
        write!(self.0, "{}.{:02}", number / 100, number % 100).ok();
        self
    }

    /// The text of the document.
    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// `1 request`, `2 requests`.
pub(super) fn counted(number: u64, one: &str, many: &str) -> String {
    let word = if number == 1 { one } else { many };
    format!("{number} {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let mut html = Html::default();
        html.raw("<p");
        html.attribute("title", "\"onload='x'\u{7}").raw(">");
        html.text("</p><script>a&b</script>\u{202e}\u{0}");
        assert_eq!(
            html.into_text(),
            "<p title=\"&quot;onload=&#39;x&#39;\\u{7}\">&lt;/p&gt;&lt;script&gt;a&amp;b&lt;/script&gt;\\u{202e}\\u{0}"
        );
        let mut html = Html::default();
        html.text(&"<".repeat(1000)).count(1_234_567);
        let text = html.into_text();
        assert_eq!(text.matches("&lt;").count(), TEXT_CHARS_MAX);
        assert!(text.ends_with("&hellip;1&#8239;234&#8239;567"), "{text}");
    }
}
