//! What of a `.pth` file Python executes when it starts (site.py, `addpackage`), and which
//! words of it, or of the entry points in a `.start` file (PEP 829), may be modules. Pure.

/// What setuptools writes into every environment, but for its default and its last call, which
/// differ from version to version.
const OWN: [&str; 3] = [
    "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, '",
    "') == 'local'; enabled and __import__('_distutils_hack')",
    ".add_shim();",
];

/// What Python executes: of each line all from where one of its versions, or of its codings,
/// begins to. Older ones begin lines behind ends of lines alone, newer ones behind every
/// character that `str.splitlines` takes for one.
pub(in crate::leftovers) fn executed(bytes: &[u8]) -> Vec<Vec<u8>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
    let run = lines.filter_map(|line| {
        let begin = begins(line).find(|begin| is_import(line.get(*begin..)))?;
        line.get(begin..)
    });
    run.map(|line| line.trim_ascii_end().to_owned()).collect()
}

/// Where in a line another may begin.
fn begins(line: &[u8]) -> impl Iterator<Item = usize> {
    let ends = line.iter().enumerate().filter(|(at, byte)| match byte {
        0x0b | 0x0c | 0x1c..=0x1e | 0x85 => true,
        0xa8 | 0xa9 => line
            .get(..*at)
            .is_some_and(|before| before.ends_with(b"\xe2\x80")),
        _ => false,
    });
    std::iter::once(0).chain(ends.map(|(at, _)| at.saturating_add(1)))
}

fn is_import(line: Option<&[u8]>) -> bool {
    line.is_some_and(|line| line.starts_with(b"import ") || line.starts_with(b"import\t"))
}

/// What virtualenv and uv write into every environment.
const VIRTUALENV: &[u8] = b"import _virtualenv";

/// Whether a line is one that comes with every environment. What it imports is looked at.
pub(super) fn is_own(line: &[u8]) -> bool {
    if line == VIRTUALENV {
        return true;
    }
    let [begin, middle, end] = OWN.map(str::as_bytes);
    let rest = line.strip_prefix(begin);
    let rest = rest.and_then(|rest| {
        ["local", "stdlib"]
            .iter()
            .find_map(|default| rest.strip_prefix(default.as_bytes()))
    });
    let rest = rest.and_then(|rest| rest.strip_prefix(middle));
    rest.is_some_and(|rest| rest.is_empty() || rest == end)
}

/// Words of what is executed that may name modules.
pub(in crate::leftovers) fn words(lines: &[Vec<u8>]) -> Vec<String> {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let words = lines
        .iter()
        .flat_map(|line| line.split(|byte| !is_letter(byte)));
    let mut words: Vec<String> = words
        .filter(|word| !word.is_empty() && *word != b"import")
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    words.sort();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_executes_is_found_behind_every_end_of_a_line() {
        for (text, count) in [
            ("/some/path\nimportant\n# import x\n", 0),
            ("import x\nimport\ty\r\nimport z", 3),
            ("#\rimport x", 1),
            ("\u{feff}import x", 1),
            (
                "#\u{b}import a\n#\u{c}import b\n#\u{1c}import c\n#\u{85}import d\n#\u{2028}import e",
                5,
            ),
            (" import x", 0),
        ] {
            assert_eq!(executed(text.as_bytes()).len(), count, "{text:?}");
        }
        let own = executed(
            b"import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'stdlib') == 'local'; enabled and __import__('_distutils_hack').add_shim(); \n\
              import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; enabled and __import__('_distutils_hack')\n\
              import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; enabled and __import__('_distutils_hack').add_shim();x()\n",
        );
        let own: Vec<bool> = own.iter().map(|line| is_own(line)).collect();
        assert_eq!(own, [true, true, false]);
        let changed = [&b"import x; y\x0cz()"[..], b"import x; y\x0cw()"].map(executed);
        assert_ne!(changed[0], changed[1]);
        assert_eq!(
            words(&executed(b"import a.b; c.install(__import__('d'))\nx")),
            ["__import__", "a", "b", "c", "d", "install"]
        );
    }
}
