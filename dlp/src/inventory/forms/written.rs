//! The beginnings of certain forms as the build script writes them: numbers and one text,
//! without a pointer, so that a program that starts has nothing of it to relocate.

use std::fmt::Write as _;

use super::detector::{Anchor, Detector, Tier};

/// Signs that forms have beside letters and digits; the bits of a form say which.
const SIGNS: &[u8] = b"_-.+/=%$";

/// The tables of all beginnings of certain forms, in the order of their first bytes and of
/// the detectors, as Rust.
///
/// # Errors
/// One is too large for its column.
pub(crate) fn tables(detectors: &[Detector]) -> Result<String, String> {
    let is_certain = |form: &&Detector| form.tier == Tier::Strong && form.anchor == Anchor::Start;
    let (mut forms, mut begins, mut text) = (String::new(), Vec::new(), String::new());
    for (number, form) in detectors.iter().filter(is_certain).enumerate() {
        let hosts: Vec<String> = form.issuers.iter().map(|issuer| wide(issuer)).collect();
        let at = column(text.len())?;
        text.push_str(&hosts.join("\n"));
        let end = column(text.len())?;
        let signs = signs(&form.pattern);
        writeln!(
            forms,
            "CredentialForm {{ min: {}, max: {}, min_entropy: {:?}, signs: {signs}, hosts: ({at}, {end}) }},",
            form.min, form.max, form.min_entropy
        )
        .map_err(|error| error.to_string())?;
        for literal in form.literals.iter() {
            let at = column(text.len())?;
            text.push_str(literal);
            begins.push((
                literal.bytes().next(),
                at,
                column(text.len())?,
                column(number)?,
            ));
        }
    }
    begins.sort_by_key(|(first, ..)| *first);
    let mut rows = String::new();
    for (_, at, end, form) in &begins {
        writeln!(
            rows,
            "FormBeginning {{ text: ({at}, {end}), form: {form} }},"
        )
        .map_err(|error| error.to_string())?;
    }
    let before = |byte: u8| {
        begins
            .iter()
            .filter(|(first, ..)| *first < Some(byte))
            .count()
    };
    let starts: Vec<usize> = (0..=u8::MAX).map(before).chain([begins.len()]).collect();
    Ok(format!(
        "static SIGNS: [u8; {}] = *b\"{}\";\n\
         static TEXT: [u8; {}] = *b\"{}\";\n\
         static FORMS: [CredentialForm; {}] = [\n{forms}];\n\
         static BEGINNINGS: [FormBeginning; {}] = [\n{rows}];\n\
         static STARTS: [u16; {}] = {starts:?};\n",
        SIGNS.len(),
        SIGNS.escape_ascii(),
        text.len(),
        text.as_bytes().escape_ascii(),
        forms.lines().count(),
        begins.len(),
        starts.len(),
    ))
}

fn column(number: usize) -> Result<u16, String> {
    u16::try_from(number).map_err(|_| "the beginnings of forms outgrew their table".to_owned())
}

/// Which signs stand in a pattern as themselves. A dash there is mostly one between two ends
/// of a range.
fn signs(pattern: &str) -> u8 {
    let has = |sign: u8| match sign {
        b'-' => ["\\-", "-[", "-("]
            .iter()
            .any(|dash| pattern.contains(dash)),
        _ => pattern.contains(char::from(sign)),
    };
    let bits = (0..).zip(SIGNS).filter(|(_, sign)| has(**sign));
    bits.fold(0, |all, (bit, _)| all | 1_u8 << bit)
}

/// A pattern of hosts as rules are asked about: what is left open in it is any label.
fn wide(issuer: &str) -> String {
    let open = |label: &str| label.contains(['*', '{']);
    if !issuer.split('.').skip(1).any(open) && !issuer.contains('{') {
        return issuer.to_owned();
    }
    let labels: Vec<&str> = issuer
        .rsplit('.')
        .take_while(|label| !open(label))
        .collect();
    let name: Vec<&str> = labels.into_iter().rev().collect();
    format!("*.{}", name.join("."))
}
