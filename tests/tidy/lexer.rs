//! Rust sources with comments and literals blanked out, so that a word in a
//! sentence is not taken for code. Lines stay where they are.

/// What the reader stands in.
#[derive(Clone, Copy)]
enum State {
    Code,
    Line,
    Block(usize),
    Text,
    Raw(usize),
}

/// The code of a source: every other character is a space.
pub(crate) fn code(source: &str) -> String {
    let mut state = State::Code;
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (length, next) = step(state, rest);
        let length = length.max(first.len_utf8());
        let (taken, after) = rest.split_at(length);
        let is_code = matches!((state, next), (State::Code, State::Code)) && !is_character(taken);
        out.extend(
            taken
                .chars()
                .map(|c| if is_code || c == '\n' { c } else { ' ' }),
        );
        state = next;
        rest = after;
    }
    out
}

/// Bytes to take, and the state after them.
fn step(state: State, rest: &str) -> (usize, State) {
    match state {
        State::Code => begin(rest),
        State::Line if rest.starts_with('\n') => (1, State::Code),
        State::Block(depth) if rest.starts_with("*/") => match depth {
            0 | 1 => (2, State::Code),
            deeper => (2, State::Block(deeper - 1)),
        },
        State::Block(depth) if rest.starts_with("/*") => (2, State::Block(depth + 1)),
        State::Text if rest.starts_with("\\\\") || rest.starts_with("\\\"") => (2, state),
        State::Text if rest.starts_with('"') => (1, State::Code),
        State::Raw(hashes) if rest.starts_with(&format!("\"{}", "#".repeat(hashes))) => {
            (1 + hashes, State::Code)
        }
        State::Line | State::Block(_) | State::Text | State::Raw(_) => (0, state),
    }
}

fn begin(rest: &str) -> (usize, State) {
    if rest.starts_with("//") {
        return (2, State::Line);
    }
    if rest.starts_with("/*") {
        return (2, State::Block(1));
    }
    if rest.starts_with('"') {
        return (1, State::Text);
    }
    if let Some(after) = rest.strip_prefix('r') {
        let hashes = after.chars().take_while(|c| *c == '#').count();
        if after.chars().nth(hashes) == Some('"') {
            return (2 + hashes, State::Raw(hashes));
        }
    }
    if rest.starts_with('\'') {
        return (character(rest).unwrap_or(1), State::Code);
    }
    // A word is taken whole, so that the `r` at its end begins nothing.
    let word = rest
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_');
    (word.map(char::len_utf8).sum(), State::Code)
}

/// Bytes of a character literal; a lifetime is none.
fn character(rest: &str) -> Option<usize> {
    let mut inside = rest.char_indices().skip(1);
    let (_, first) = inside.next()?;
    if first == '\\' {
        inside.next()?;
        return inside.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    let (at, second) = inside.next()?;
    (second == '\'').then_some(at + 1)
}

fn is_character(taken: &str) -> bool {
    taken.len() > 2 && taken.starts_with('\'')
}

/// Words of a code: identifiers, and a `!` after a macro's name.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, String)> {
    code.lines().enumerate().flat_map(|(number, line)| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '!';
        line.split(move |c| !is_word(c))
            .filter(|word| !word.is_empty())
            .map(move |word| (number + 1, word.to_owned()))
            .collect::<Vec<_>>()
    })
}

#[test]
fn only_code_is_left() {
    let check = |source: &str, expected: &str| {
        let code = code(source);
        let words: Vec<String> = words(&code).map(|(_, word)| word).collect();
        assert_eq!(words.join(" "), expected, "{source}");
        assert_eq!(code.lines().count(), source.lines().count(), "{source}");
    };
    check("let a = 1; // unsafe", "let a 1");
    check("/* unsafe /* unsafe */ unsafe */ fn f()", "fn f");
    check(r#"say("unsafe \" unsafe"); unsafe {}"#, "say unsafe");
    check(r##"say(r#"un"safe"#); b"##, "say b");
    check("for 'a' in \"\n\" x", "for in x");
    check("fn f<'a>(c: &'a str) { c == '\"' }", "fn f a c a str c");
    check(r"match c { '\'' => d, '\\' => e }", "match c d e");
    check("println!(\"x\")", "println!");
    check("b\"x\" for_r \"y\"", "b for_r");
}
