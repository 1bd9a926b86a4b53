//! Credentials as programs of this machine print them: every form of a dump and of a list
//! of numbers, alone and in a document, base64 and gzip, wherever the text before ends.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::encode::{gzip, plain_base64};
use crate::stage::{Dice, sample_of, send, strict};

/// A form: what prints it, for a shell.
type Form = &'static str;

/// Lines with the place of each.
const DUMPS: &[Form] = &[
    "xxd",
    "xxd -u",
    "xxd -c 8",
    "xxd -c 20",
    "xxd -c 30",
    "xxd -c 64",
    "xxd -g 1",
    "xxd -g 1 -c 8",
    "xxd -g 4",
    "xxd -g 8",
    "xxd -g 0",
    "xxd -e",
    "xxd -e -g 2",
    "xxd -e -g 8",
    "xxd -b",
    "xxd -d",
    "xxd -o 70000",
    "xxd | sed 's/^/> /'",
    "od",
    "od -A x",
    "od -A d",
    "od -t x1",
    "od -t x1z",
    "od -A n -t x1z",
    "od -A d -t x1 -w8",
    "od -A x -t x1 -w32",
    "od -t x2",
    "od -t x2z",
    "od -t x4",
    "od -A x -t x4z",
    "od -t x8",
    "od -A n -t x4",
    "od --endian=big -t x4",
    "od -b",
    "od -A n -b",
    "od -t o1z",
    "od -t o2",
    "od -A x -t o2",
    "od -t o4",
    "od -t o8",
    "od -t u1",
    "od -t u1z",
    "od -A n -t u1",
    "od -t d1",
    "od -t u2",
    "od -t d2",
    "od -A x -t u2",
    "od -t u4",
    "od -t d4",
    "od -A d -t u8",
    "od -t d8",
    "od -A n -t u4",
    "od --endian=big -t u4",
    "od --endian=big -A n -t u2",
    "hexdump",
    "hexdump -C",
    "hexdump -C | cat -A | sed 's/\\$$//'",
    "hexdump -x",
    "hexdump -d",
    "hexdump -o",
    "hexdump -b",
    "hexdump -v -e '8/2 \"%04x \" \"\\n\"'",
    "hexdump -v -e '16/1 \"%03u \" \"\\n\"'",
    "hexdump -v -e '1/4 \"%08x\\n\"'",
    "hexdump -v -e '\"%07.7_ad  \" 8/1 \"%02x \" \"  \" 8/1 \"%02x \" \"  \"' -e '16/1 \"%_p\" \"\\n\"'",
];

/// Lists of numbers.
const LISTS: &[Form] = &[
    "xxd -p",
    "xxd -i",
    "od -A n -v -t u1 | tr -s ' \\n' ,",
    "od -A n -v -t u1 -w1",
    "od -A n -v -t d4 -w4 | tr -d ' '",
    "hexdump -v -e '1/1 \"%d,\"'",
    "hexdump -v -e '1/1 \"0%o, \"'",
    "hexdump -v -e '1/4 \"%u, \"'",
    "hexdump -v -e '1/2 \"%u, \"'",
    "hexdump -v -e '1/2 \"0x%04x, \"'",
    "hexdump -v -e '1/8 \"%d;\"'",
    "perl -0777 -ne 'print join \", \", map ord, split //'",
    "perl -0777 -ne 'print join \" \", unpack \"N*\", $_.\"\\0\" x 3'",
    "perl -0777 -ne 'printf \"%08b \", ord for split //'",
    "python3 -c 'import sys; print(list(sys.stdin.buffer.read()))'",
    "python3 -c 'import sys, json; print(json.dumps({\"size\": 52, \"data\": list(sys.stdin.buffer.read()), \"more\": 17}, indent=1))'",
    "python3 -c 'import sys; print(sys.stdin.buffer.read().hex(\" \"))'",
    "python3 -c 'import sys; print(\", \".join(bin(b) for b in sys.stdin.buffer.read()))'",
    "node -e 'console.log(JSON.stringify(require(\"fs\").readFileSync(0)))'",
    "node -e 'console.log([...require(\"fs\").readFileSync(0)].map(b => \"0x\" + b.toString(16)).join())'",
];

/// What a form makes of some bytes; nothing where its program is not here, which is a fault.
fn printed(form: Form, input: &[u8]) -> Option<Vec<u8>> {
    let mut child = Command::new("sh")
        .args(["-c", form])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("its output");
    writer.join().expect("a thread").ok();
    if output.stdout.is_empty() {
        return None;
    }
    Some(output.stdout)
}

/// The same bytes, printed where other bytes stand for the credential: where the two differ
/// first, it begins to leave.
fn begins(form: Form, (before, credential, behind): (&[u8], &[u8], &[u8])) -> usize {
    let other: Vec<u8> = credential.iter().map(|byte| byte ^ 7).collect();
    let print = |middle| printed(form, &[before, middle, behind].concat()).unwrap_or_default();
    let (own, other) = (print(credential), print(&other));
    let same = own.iter().zip(&other).take_while(|(one, two)| one == two);
    same.count()
}

fn check(form: Form, seed: u64) -> Result<(), String> {
    let mut dice = Dice(seed | 1);
    let id = ["github-token", "gitlab-token", "npm-token"][dice.roll(3)];
    let credential = sample_of(id, seed);
    let before = match dice.roll(3) {
        0 => Vec::new(),
        1 => [words(&mut dice, 0, 50), b"\n".to_vec()].concat(),
        _ => [words(&mut dice, 3000, 16), b"\n".to_vec()].concat(),
    };
    let behind = [&b"\n"[..], &dice.words(70)].concat();
    let Some(text) = printed(form, &[&before, &credential, &behind[..]].concat()) else {
        return Err(format!("nothing printed by {form}: is the program here?"));
    };
    let begin = begins(form, (&before, &credential, &behind));
    let what = format!("{form} of {id}, seed {seed}");
    for lengths in [vec![text.len()], vec![1], dice.lengths(100), vec![1000, 7]] {
        let outcome = send(&strict(), None, &text, &lengths);
        let found = outcome.found();
        found.ok_or_else(|| format!("{what} by {}: {:?}", lengths.len(), outcome.stop))?;
        let released = usize::try_from(outcome.released).expect("a length");
        if released > begin {
            return Err(format!("{what}: {released} of {begin} released"));
        }
    }
    let quoted = String::from_utf8(text.clone()).expect("text");
    let document = document(&quoted);
    for (name, content) in [
        ("a document", document),
        ("base64", plain_base64(&text)),
        ("gzip", gzip(&text)),
    ] {
        let outcome = send(&strict(), None, &content, &dice.lengths(900));
        let found = outcome.found();
        found.ok_or_else(|| format!("{what} in {name}: left"))?;
    }
    Ok(())
}

fn check_all(forms: &[Form]) {
    let seeds = |form: &'static str| (0..3).map(move |seed| (form, seed * 1003 + 7));
    let all = forms.iter().flat_map(|form| seeds(form));
    let faults: Vec<String> = all
        .filter_map(|(form, seed)| check(form, seed).err())
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Words of at least so many bytes, and up to as many more.
fn words(dice: &mut Dice, least: usize, more: usize) -> Vec<u8> {
    let length = least + dice.roll(more);
    dice.words(length)
}

/// A document of JSON with a text.
fn document(text: &str) -> Vec<u8> {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    let text = text.replace('\n', "\\n").replace('\t', "\\t");
    format!("{{\"output\":\"{text}\",\"code\":0}}").into_bytes()
}

#[test]
fn no_credential_leaves_as_dumps_print_it() {
    check_all(DUMPS);
}

#[test]
fn no_credential_leaves_as_a_list_of_numbers() {
    check_all(LISTS);
}
