//! Compressed data and archives that end where they should not: what somebody can
//! take out of them was looked at, and of what left nothing can be taken out.

use miniz_oxide::MZFlush;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use outgate_dlp::{ScanPolicy, Stop, UnscannableAction};

use crate::archives::{ENTRY_END_BYTES, zip, zip_stored};
use crate::encode::zstd;
use crate::stage::{Dice, Outcome, rules, sample_of, send};

fn content(codings: Option<&str>, content: &[u8]) -> Outcome {
    let rules = rules(ScanPolicy::Tiered, UnscannableAction::Refuse);
    send(&rules, codings, content, &[700])
}

fn assert_held(name: &str, bytes: &[u8]) {
    let outcome = content(None, bytes);
    assert!(outcome.found().is_some(), "{name}: {:?}", outcome.stop);
}

#[test]
fn a_stored_entry_is_looked_at_to_its_last_byte() {
    let mut tokens = (0..).map(|seed| sample_of("prefect-key", seed));
    for last in [b'P', b'a'] {
        // A record of the archive begins with the first of these letters.
        let token = tokens
            .find(|token| token.ends_with(&[last]))
            .expect("one in 62");
        // Outside the entry, the letters of its name before it make it none.
        let mut archive = zip_stored(&token);
        let cut = archive.len() - ENTRY_END_BYTES;
        archive.truncate(cut);
        assert!(archive.ends_with(&token));
        assert_held("stored", &archive);
    }
}

#[test]
fn what_comes_out_before_damage_is_looked_at() {
    // A little that becomes much, so that the token comes out late.
    let text = [
        vec![0; 20_000],
        sample_of("github-token", 11),
        b" ".to_vec(),
    ]
    .concat();
    let mut space = vec![0; 4096];
    let mut state = CompressorOxide::new(create_comp_flags_from_zip_params(6, 1, 0));
    let made = deflate(&mut state, &text, &mut space, MZFlush::Sync).bytes_written;
    // Blocks that are whole, and one of a kind that does not exist.
    let damaged = [&space[..made], &[7]].concat();
    let mut wrong = compress_to_vec_zlib(&text, 6);
    *wrong.last_mut().expect("a checksum") ^= 1;
    for (name, content) in [("damaged", damaged), ("a wrong checksum", wrong)] {
        assert!(content.len() < 300, "{name}: {} bytes", content.len());
        assert_held(name, &content);
    }
}

#[test]
fn an_archive_of_many_small_files_is_no_bomb() {
    let file = |seed: u64| Dice(seed).words(300);
    let small: Vec<Vec<u8>> = (0..200).map(|seed| zip(&file(seed))).collect();
    let archive = small.concat();
    assert_eq!(content(None, &archive).stop, None);
    let token = sample_of("github-token", 11);
    for place in [0, 7, 8, 199] {
        let mut files = small.clone();
        files[place] = zip(&[file(1), token.clone(), b" ".to_vec()].concat());
        assert_held(&format!("file {place}"), &files.concat());
    }
    // As many at once as nobody reads are still refused.
    let stored = zip_stored(&[0; 40]);
    let mut open = stored[..stored.len() - 40 - ENTRY_END_BYTES].to_vec();
    // Each says that it is so long that all others lie in it.
    open[18..22].copy_from_slice(&100_000_u32.to_le_bytes());
    let open = open.repeat(9);
    let stop = content(None, &[open, vec![b' '; 40_000]].concat()).stop;
    assert!(matches!(stop, Some(Stop::Unscannable(_))), "{stop:?}");
}

/// What somebody takes out of a frame of zstd who has its beginning.
fn read(beginning: &[u8]) -> Vec<u8> {
    let mut decoder = FrameDecoder::new();
    let mut rest = beginning;
    if decoder.reset(&mut rest).is_err() {
        return Vec::new();
    }
    let one = || BlockDecodingStrategy::UptoBlocks(1);
    while decoder
        .decode_blocks(&mut rest, one())
        .is_ok_and(|is_over| !is_over)
    {}
    if !decoder.is_finished() {
        let end = [1, 0, 0, 0, 0, 0, 0];
        decoder
            .decode_blocks(&end[..], one())
            .expect("an empty block");
    }
    decoder.collect().expect("a frame")
}

/// Letters by chance, which compression makes shorter.
fn letters(seed: u64, length: usize) -> Vec<u8> {
    let mut dice = Dice(seed);
    let letters = (0..length).map(|_| b'a' + dice.byte(26));
    letters.chain([b' ']).collect()
}

fn holds(bytes: &[u8], token: &[u8]) -> bool {
    bytes.windows(token.len()).any(|window| window == token)
}

#[test]
fn a_frame_without_its_end_is_looked_at() {
    let token = sample_of("github-token", 11);
    let text = [
        letters(8, 9000),
        token.clone(),
        b" ".to_vec(),
        letters(8, 9000),
    ]
    .concat();
    let frame = zstd(&text);
    assert!(!holds(&frame, &token), "it is compressed");
    // The last block says that more will come.
    let place = (0..frame.len() - 3)
        .find(|place| {
            let header = u32::from_le_bytes([frame[*place], frame[place + 1], frame[place + 2], 0]);
            header & 7 == 5 && (place + 3 + (header >> 3) as usize).abs_diff(frame.len()) <= 4
        })
        .expect("a last block");
    let mut endless = frame.clone();
    endless[place] &= 0xfe;
    assert!(holds(&read(&endless), &token), "somebody can read it");
    // Where nobody says what it is, and it might only look like it.
    for (name, bytes) in [("a frame", frame), ("one without an end", endless)] {
        let text: Vec<String> = bytes.iter().map(|byte| format!("%{byte:02x}")).collect();
        assert_held(name, format!("it is {} or not", text.concat()).as_bytes());
    }
}

#[test]
fn what_left_of_a_long_frame_gives_nothing_away() {
    let token = sample_of("github-token", 11);
    let text = [
        letters(1, 1_300_000),
        token.clone(),
        b" ".to_vec(),
        letters(2, 2_500_000),
    ]
    .concat();
    let mut frame = zstd(&text);
    // A window of 1 MiB, so that much of it can be copied from long afterwards.
    assert_eq!(frame[4] & 0x20, 0, "the window is said");
    frame[5] = (20 - 10) << 3;
    assert!(!holds(&frame, &token), "it is compressed");
    assert!(holds(&read(&frame), &token), "somebody can read it");
    for codings in [None, Some("zstd")] {
        let outcome = content(codings, &frame);
        assert!(outcome.found().is_some(), "{:?}", outcome.stop);
        let left = usize::try_from(outcome.released).expect("a length");
        assert!(left > 0, "not all of it waits");
        assert!(!holds(&read(&frame[..left]), &token), "{left} bytes left");
    }
}
