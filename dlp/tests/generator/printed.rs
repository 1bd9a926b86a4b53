//! Dumps and lists of numbers, line by line as programs print them; `streams` asks the programs
//! themselves.

use std::fmt::Write as _;

/// Lines of so many bytes, each made by itself from its offset and bytes.
fn rows(bytes: &[u8], width: usize, row: impl Fn(usize, &[u8]) -> String) -> Vec<u8> {
    let rows = bytes.chunks(width).enumerate();
    let rows = rows.map(|(number, bytes)| row(number * width, bytes));
    rows.collect::<String>().into_bytes()
}

fn shown(bytes: &[u8]) -> String {
    let letter = |byte: &u8| match byte {
        0x20..=0x7e => char::from(*byte),
        _ => '.',
    };
    bytes.iter().map(letter).collect()
}

/// Each byte by itself, with what stands between two.
pub(crate) fn each(bytes: &[u8], between: &str, form: impl Fn(u8) -> String) -> Vec<u8> {
    let all: Vec<String> = bytes.iter().map(|byte| form(*byte)).collect();
    all.join(between).into_bytes()
}

pub(crate) fn xxd(bytes: &[u8]) -> Vec<u8> {
    rows(bytes, 16, |offset, bytes| {
        let mut pairs = String::new();
        for pair in bytes.chunks(2) {
            for byte in pair {
                write!(pairs, "{byte:02x}").expect("memory");
            }
            pairs.push(' ');
        }
        format!("{offset:08x}: {pairs:<40} {}\n", shown(bytes))
    })
}

pub(crate) fn xxd_plain(bytes: &[u8]) -> Vec<u8> {
    rows(bytes, 30, |_, bytes| {
        let mut line = each(bytes, "", |byte| format!("{byte:02x}"));
        line.push(b'\n');
        String::from_utf8(line).expect("digits")
    })
}

pub(crate) fn hexdump_c(bytes: &[u8]) -> Vec<u8> {
    let mut made = rows(bytes, 16, |offset, bytes| {
        let mut pairs = String::new();
        for (place, byte) in bytes.iter().enumerate() {
            let gap = if place == 8 { "  " } else { " " };
            write!(pairs, "{gap}{byte:02x}").expect("memory");
        }
        format!("{offset:08x} {pairs:<49}  |{}|\n", shown(bytes))
    });
    made.extend_from_slice(format!("{:08x}\n", bytes.len()).as_bytes());
    made
}

/// Numbers of two bytes, the low one first, as `hexdump` and `od -x` print them.
pub(crate) fn words(bytes: &[u8]) -> Vec<u8> {
    let mut made = rows(bytes, 16, |offset, bytes| {
        let mut line = format!("{offset:07x}");
        for pair in bytes.chunks(2) {
            let high = pair.get(1).copied().unwrap_or_default();
            write!(line, " {high:02x}{:02x}", pair[0]).expect("memory");
        }
        format!("{line}\n")
    });
    made.extend_from_slice(format!("{:07x}\n", bytes.len()).as_bytes());
    made
}

/// `od` with the bytes in some form.
pub(crate) fn od(bytes: &[u8], form: impl Fn(u8) -> String) -> Vec<u8> {
    let mut made = rows(bytes, 16, |offset, bytes| {
        let mut line = format!("{offset:07o}");
        for byte in bytes {
            write!(line, " {}", form(*byte)).expect("memory");
        }
        format!("{line}\n")
    });
    made.extend_from_slice(format!("{:07o}\n", bytes.len()).as_bytes());
    made
}

/// A letter as `od -c` prints it.
pub(crate) fn od_letter(byte: u8) -> String {
    match byte {
        b'\n' => " \\n".to_owned(),
        b'\r' => " \\r".to_owned(),
        b'\t' => " \\t".to_owned(),
        0 => " \\0".to_owned(),
        0x20..=0x7e => format!("  {}", char::from(byte)),
        _ => format!("{byte:03o}"),
    }
}

/// A list of numbers in some language, in lines of so many, or one.
pub(crate) fn list(
    bytes: &[u8],
    (before, behind): (&str, &str),
    width: usize,
    form: impl Fn(u8) -> String,
) -> Vec<u8> {
    let lines: Vec<String> = bytes
        .chunks(width)
        .map(|line| {
            let numbers: Vec<String> = line.iter().map(|byte| form(*byte)).collect();
            numbers.join(", ")
        })
        .collect();
    format!("{before}{}{behind}", lines.join(",\n  ")).into_bytes()
}
