//! What the decoders of many streams keep at once, alone in its process since it is counted
//! for all of it.

#![expect(clippy::expect_used, reason = "what is missing is a failed test")]

use std::sync::Arc;

use outgate_dlp::{
    Description, Detectors, Place, Ruleset, ScanDestination, ScanSettings, Stop, Stream,
    UnscannableAction, UnscannedReason,
};

/// Streams whose decoders keep eight MiB each, as many as there is memory for, in count.
const STREAMS: usize = 64;

const TO: ScanDestination<'static> = ScanDestination {
    host: "elsewhere.test",
    port: 443,
};

fn rules(unscannable: UnscannableAction) -> Arc<Ruleset> {
    let settings = ScanSettings {
        unscannable,
        ..ScanSettings::default()
    };
    let rules = Ruleset::new(&Detectors::shipped(), &settings);
    Arc::new(rules.expect("the shipped detectors"))
}

/// The beginning of a frame of zstd with the largest window, which goes on.
fn frame() -> Vec<u8> {
    let head = [0x28, 0xb5, 0x2f, 0xfd, 0, 0x68];
    let block = [[0x40, 0x1f, 0].as_slice(), &[b'a'; 1000]].concat();
    [head.as_slice(), &block.repeat(3)].concat()
}

fn begin(rules: &Arc<Ruleset>, coding: &str, content: &[u8]) -> Result<Stream, Stop> {
    let description = Description {
        place: Place::Content,
        media_type: None,
        content_codings: Some(coding.as_bytes()),
        length: None,
    };
    let mut stream = rules.stream(&TO, &description);
    stream.push(content)?;
    stream.end_of_message()?;
    Ok(stream)
}

fn is_of_all(stopped: Result<Stream, Stop>) -> bool {
    let Err(Stop::Unscannable(unscanned)) = stopped else {
        return false;
    };
    unscanned.reason == UnscannedReason::Shared
}

#[test]
fn many_streams_at_once_take_no_more_memory_than_there_is_for_all() {
    let usual = rules(UnscannableAction::RefuseBombs);
    let strict = rules(UnscannableAction::Refuse);
    let lax = rules(UnscannableAction::Record);
    take_and_give_back(&usual);
    let begun = (0..STREAMS).map(|_| begin(&usual, "zstd", &frame()));
    let mut streams: Vec<Stream> = begun.collect::<Result<_, _>>().expect("there is memory");
    assert!(is_of_all(begin(&usual, "zstd", &frame())));
    assert!(is_of_all(begin(&strict, "zstd", &frame())));
    let counted = begin(&lax, "zstd", &frame()).expect("it is only recorded");
    let unscanned = counted.unscanned().map(|unscanned| unscanned.reason);
    assert_eq!(unscanned, Some(UnscannedReason::Shared));
    // What keeps little is looked into whatever others keep.
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let small = begin(&strict, "gzip", &gzip).expect("it keeps little");
    assert_eq!(small.unscanned(), None);
    // What a stream kept is there for others once it is over.
    streams.pop();
    let next = begin(&strict, "zstd", &frame()).expect("there is memory again");
    assert!(is_of_all(begin(&usual, "zstd", &frame())));
    drop((streams, next));
    let again = (0..STREAMS).map(|_| begin(&usual, "zstd", &frame()));
    let again: Result<Vec<Stream>, Stop> = again.collect();
    assert_eq!(again.map(|again| again.len()), Ok(STREAMS));
}

/// From many threads, as a gateway has them: nothing is counted twice or lost.
fn take_and_give_back(usual: &Arc<Ruleset>) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let begun = (0..STREAMS).map(|_| begin(usual, "zstd", &frame()));
                drop(begun.collect::<Vec<_>>());
            });
        }
    });
}
