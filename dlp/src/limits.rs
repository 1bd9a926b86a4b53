//! Every bound of the scan, with its unit and its reason.

/// Longest host, in bytes (RFC 1035 2.3.4).
pub(crate) const HOST_BYTES_MAX: usize = 253;

/// How often canaries are made anew when chance made one that cannot be looked
/// for: one in thousands.
pub(crate) const CANARIES_TRIES: u8 = 16;

/// Most detectors of one ruleset.
pub(crate) const DETECTORS_MAX: usize = 4096;

/// Longest match a detector may have, in bytes: so much may have to be held.
pub(crate) const MATCH_BYTES_MAX: usize = 16 * 1024;

/// Longest match whose literal stands inside, in bytes: so much is held always.
pub(crate) const INSIDE_BYTES_MAX: usize = 2048;

/// Longest literal of a detector, in bytes: so much of every step is read twice.
pub(crate) const LITERAL_BYTES_MAX: usize = 64;

/// Shortest literal, in bytes: shorter ones are everywhere.
pub(crate) const LITERAL_BYTES_MIN: usize = 3;

/// Literals of the user's own that are placed where they are told apart best, in
/// count: it takes about ten microseconds for each.
pub(crate) const PLACED_MAX: usize = 1024;

/// Largest compiled pattern, in bytes.
pub(crate) const PATTERN_BYTES_MAX: usize = 4 << 20;

/// Bytes a layer gathers before it looks at them: they fit into the first cache.
pub(crate) const STEP_BYTES: usize = 16 * 1024;

/// Bytes a layer keeps of what it has seen: what a coding that starts late may
/// reach back to. More than the longest match with a literal inside.
pub(crate) const CONTEXT_BYTES: usize = 4096;

/// Most credentials of a form that are remembered: a request for a token shows two.
pub(crate) const SHOWN_MAX: usize = 8;

/// Bytes before a match that stay as long as it does: a key of a form or a document, of which
/// the longest that opens one has 16, with what stands around it.
pub(crate) const KEY_BYTES_MAX: usize = 64;

/// Bytes that go from a layer to the next at a time: how exactly a place in the
/// next can be traced back.
pub(crate) const PIECE_BYTES: usize = 512;

/// How many bytes before a piece of a run the first byte it makes may have begun.
pub(crate) const RUN_LAG_BYTES: u64 = 64;

/// Layers on top of each other.
pub(crate) const DEPTH_MAX: usize = 16;

/// Archives and compressed data decoded side by side in one layer.
pub(crate) const CONTAINERS_MAX: usize = 8;

/// Containers of one layer that ended, of which it is remembered where they lay, in count.
pub(crate) const ENDED_MAX: usize = 16;

/// Bytes that deflate with its fixed codes makes at least, in a run that is whole: random
/// bytes seldom make as many without a fault.
pub(crate) const DEFLATED_BYTES_MIN: u32 = 21;

/// Or so many letters of text.
pub(crate) const DEFLATED_TEXT_MIN: u32 = 12;

/// Bytes of what digits stand for by which tables of numbers are told from what is compressed
/// or encrypted: of so many random ones hardly any have decimal digits alone.
pub(crate) const DIGITS_LOOK_BYTES: usize = 64;

/// Bytes of a block of deflate with the fixed codes that are looked at where it begins behind
/// other bytes: of 2^20 places in random bytes none shows as many without a fault.
pub(crate) const FIXED_LOOK_BYTES: usize = 64;

/// Bytes of other blocks: more than any codes take (RFC 1951 3.2.7), which are 318 lengths of
/// 14 bits and what is before them.
pub(crate) const CODES_LOOK_BYTES: usize = 640;

/// Bytes from a header on that are waited for at a pause: fewer look like too much, and hold
/// no credential.
pub(crate) const FLUSHED_LOOK_BYTES: usize = 18;

/// What is opened behind other bytes without regard to their number, in count.
pub(crate) const BEHIND_FREE: u64 = 1024;

/// Bytes of input, or of what was decompressed, that let one more be opened.
pub(crate) const BYTES_PER_BEHIND: u64 = 512;

/// Fewest bytes of a run that may be a credential under compression, without a mark.
pub(crate) const UNMARKED_BYTES_MIN: usize = 21;

/// Bytes that may go into a decompressor and wait for something to come out: headers take
/// a few KiB, and blocks to be skipped up to 16 MiB.
pub(crate) const IDLE_BYTES_MAX: u64 = 64 << 10;

/// Bytes of a header of Brotli that are read before a decompressor is begun.
pub(crate) const HEADER_BYTES_MAX: usize = 4096;

/// What is decompressed of one stream at a time and may be none, in count: what comes out
/// of that may look like more of it.
pub(crate) const GUESSES_MAX: usize = 16;

/// Bare deflate and Brotli that are undone on top of each other, in layers.
pub(crate) const UNMARKED_DEPTH_MAX: usize = 4;

/// Layers of one stream at a time: each keeps up to [`STEP_BYTES`] and
/// [`CONTEXT_BYTES`], and nine tenths as much again of what stands where in them; of
/// what its short runs of base64 stand for [`STEP_BYTES`] and one run more, and of what it
/// looks at in a long one three bytes for each of [`LOOK_SYMBOLS`], both with nine tenths
/// again.
pub(crate) const LAYERS_MAX: usize = 256;

/// Bytes around an escape that are looked at without it.
pub(crate) const AFTER_ESCAPE_BYTES: u64 = 256;

/// Bytes before an escape that are looked at without it, at least.
pub(crate) const BEFORE_ESCAPE_BYTES: usize = 128;

/// Fewest symbols of base64 worth decoding: shorter ones hold no credential.
pub(crate) const BASE64_SYMBOLS_MIN: usize = 20;

/// Symbols of base64 looked at in one go: those at the borders are decoded twice, a
/// fortieth of them, and what four phases make still fits into the first cache.
pub(crate) const LOOK_SYMBOLS: usize = 4096;

/// Short runs of base64 that a stream remembers, in count: a few files have not many more
/// of these names.
pub(crate) const REPEATS_MAX: usize = 512;

/// Bytes of one of them with its length: longer ones are looked at each time.
pub(crate) const REPEAT_BYTES: usize = 32;

/// Fewest digits of hexadecimal and symbols of base32 worth decoding.
pub(crate) const DIGITS_MIN: usize = 32;

/// Bytes that numbers stand for before they are looked at: fewer hold no credential.
pub(crate) const NUMBERS_BYTES_MIN: usize = 8;

/// Bytes that they stand for and that go to a layer at a time.
pub(crate) const NUMBERS_PIECE_BYTES: usize = 64;

/// Bytes that they stand for before they are looked at again.
pub(crate) const NUMBERS_STEP_BYTES: usize = 1024;

/// Bytes without a number behind which a dump or a list has ended: the text beside a line,
/// and a line or two between.
pub(crate) const NUMBERS_GAP_BYTES: u64 = 256;

/// Symbols of a run that are asked whether compressed data begin with them: the codes of most
/// first blocks end in so many.
pub(crate) const FIRST_SYMBOLS: usize = 512;

/// Smallest window of Brotli that a thread keeps for the next stream, in bytes.
pub(crate) const ROOM_BYTES_MIN: usize = 32 * 1024;

/// Largest one: all windows but those that only some programs read. Of one that is kept no
/// more memory was used than [`ROOM_USED_MAX`].
pub(crate) const ROOM_BYTES_MAX: usize = (16 << 20) + 1024;

/// Bytes of a window that may have come out if it is kept: so many are made zero again.
pub(crate) const ROOM_USED_MAX: usize = 64 * 1024;

/// Bytes of a run in which something may begin behind its first symbols: what a line or a
/// word before it looks like.
pub(crate) const STARTS_BYTES: usize = 96;

/// Places in them that are looked at, in count.
pub(crate) const STARTS_MAX: usize = 4;

/// Words in them of which it is asked whether they are names, in count: lines of one letter
/// each are as many as half the bytes.
pub(crate) const STARTS_ASKED_MAX: usize = 8;

/// Longest piece of what may become a run, in bytes, before it counts as none.
pub(crate) const RUN_START_BYTES_MAX: usize = 1024;

/// Bytes at the end of a run that tell whether something compressed stands there back to
/// front.
pub(crate) const TURNED_LOOK_BYTES: usize = 512;

/// Bytes of them that tell of most runs that nothing does: symbols of one word of 64 bits.
pub(crate) const TURNED_GLANCE_BYTES: usize = 8;

/// Bytes of text that chance makes at the end of hardly any run.
pub(crate) const TURNED_TEXT_BYTES: usize = 20;

/// Bytes of a mark that chance makes at the end of hardly any run.
pub(crate) const TURNED_MARK_BYTES_MIN: usize = 3;

/// Bytes that decoding may make without regard to the length of the input.
pub(crate) const DERIVED_BYTES_FREE: u64 = 1 << 20;

/// Bytes that decoding may make for each byte of input: four phases of base64
/// make three, and each of their layers three quarters of that; five kinds of
/// escapes side by side have thirty-one sets.
pub(crate) const DERIVED_RATIO_MAX: u64 = 64;

/// Bytes that a head may cost, as a budget counts them: some ten milliseconds, and sixteen for
/// each byte of the longest one.
pub(crate) const HEAD_BYTES_MADE: u64 = 1 << 20;

/// Bytes that the containers of a stream share without regard to the length of the input:
/// one may take half of what the others left, and is closed where it wants more.
pub(crate) const INFLATED_BYTES_FREE: u64 = 32 << 20;

/// The same for each byte of input.
pub(crate) const INFLATED_RATIO_MAX: u64 = 100;

/// Bytes for each byte of input that an outermost container may make whatever the others
/// took: so much is looked at behind any number of bombs.
pub(crate) const OUTER_RATIO_MIN: u64 = 100;

/// The same of a container in another.
pub(crate) const INNER_RATIO_MIN: u64 = 8;

/// Bytes that decompression may make in all without regard to the length of the input:
/// behind them nothing is looked at.
pub(crate) const ALL_INFLATED_BYTES_FREE: u64 = 64 << 20;

/// The same for each byte of input: as much as all that the others allow together where
/// containers stand in each other as deep as they may.
pub(crate) const ALL_INFLATED_RATIO_MAX: u64 = 400;

/// Work that confirming may take without regard to the length of the input, in
/// bytes that patterns read.
pub(crate) const WORK_BYTES_FREE: u64 = 32 << 20;

/// Work that confirming may take for each byte of input.
pub(crate) const WORK_RATIO_MAX: u64 = 16;

/// Bytes that patterns read and that take as long as one that is made, about.
pub(crate) const WORK_BYTES_PER_MADE: u64 = 4;

/// Bytes of a word that may stand beside a match, on both sides together, whose form is rare
/// enough to be no chance there. Base 64 and proteins have longer ones.
pub(crate) const NEAR_BYTES_MAX: usize = 32;

/// Longest literal that random symbols of base64 make now and then, in bytes: one of seven
/// stands in four TB of them, and there are some hundred.
pub(crate) const CHANCE_LITERAL_BYTES_MAX: usize = 6;

/// Symbols of base64 around a place that make a long run, in count: in as many chance makes
/// no form.
pub(crate) const CHANCE_SYMBOLS_MIN: usize = 1024;

/// Signs among them, in count: of random ones there are thirty-two.
pub(crate) const CHANCE_SIGNS_MIN: usize = 8;

/// Bytes from a literal on that are looked at before a place is kept for it: nearly all
/// that begin nothing show it in so many, and each literal costs as much.
pub(crate) const FIRST_BYTES: usize = 16;

/// What beginning to decompress counts, in bytes read: it takes as long, however little
/// comes out.
pub(crate) const CONTAINER_WORK: u64 = 4096;

/// Stronger forms that are asked about what a weaker one found, in count: a credential has
/// few literals.
pub(crate) const STRONGER_MAX: usize = 32;

/// What one confirmation counts at least, in bytes read.
pub(crate) const CONFIRM_BYTES_MIN: u64 = 64;

/// How many times a pattern with its literal inside may read the same bytes.
pub(crate) const INSIDE_STARTS_MAX: usize = 8;

/// Window a decoder may ask for, in bytes.
pub(crate) const DECODER_WINDOW_BYTES_MAX: u64 = 8 << 20;

/// Memory that LZMA may ask for, in KiB: a dictionary of 8 MiB as the window of other decoders
/// with the largest tables (8 bits of context, 4 of position), or one of 16 MiB. No more counts than
/// twice what came out.
pub(crate) const DICTIONARY_KIB_MAX: u32 = 22 << 10;

/// What all decoders of one stream may keep at a time, in bytes.
pub(crate) const KEPT_BYTES_MAX: u64 = 24 << 20;

/// What all decoders of all streams of a process may keep at a time, in bytes.
pub(crate) const SHARED_BYTES_MAX: u64 = 512 << 20;

/// What a stream keeps that is little, in bytes: the windows of most codings.
pub(crate) const SHARED_LITTLE_BYTES: u64 = 256 << 10;

/// What streams that keep little may keep besides, in bytes.
pub(crate) const SHARED_LITTLE_BYTES_MAX: u64 = 64 << 20;

/// Bytes that come out of Brotli before the whole of a window of 16 MiB counts: of a short
/// stream no more is taken than it needs.
pub(crate) const WIDE_FREE_BYTES: u64 = 1 << 20;

/// How many of them count as one byte that a pattern reads.
pub(crate) const KEPT_BYTES_PER_WORK: u64 = 4;

/// Content codings on top of each other.
pub(crate) const CODINGS_MAX: usize = 8;

/// Findings kept of one stream.
pub(crate) const FINDINGS_MAX: usize = 64;

/// Values a stream remembers to have reported.
pub(crate) const REPORTED_MAX: usize = 1024;

/// Bytes of the name of an archive's entry that a finding shows.
pub(crate) const INSIDE_BYTES_SHOWN: usize = 128;

/// Bytes of JSON that are followed to say in which value a finding stands: more than most
/// requests have.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 256 * 1024;

/// Values within each other that are followed; behind deeper ones no path is told.
pub(crate) const DOCUMENT_DEPTH_MAX: usize = 64;

/// Texts of documents that are kept with their places, 24 bytes each; behind them no path
/// is told.
pub(crate) const DOCUMENT_TEXTS_MAX: usize = 4096;

/// Steps of paths that are kept, 16 bytes each.
pub(crate) const DOCUMENT_STEPS_MAX: usize = 4096;

/// Bytes of the names in paths that are kept.
pub(crate) const DOCUMENT_NAMES_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a name that is shown in a path or as that of a part: longer ones hold more
/// than a name.
pub(crate) const NAME_BYTES_SHOWN: usize = 64;

/// Names of one stream that are looked at before they are shown, in count: each takes some
/// microseconds. Of findings behind them it is not said in what they stand.
pub(crate) const NAMES_MAX: usize = 1024;

/// Bytes of a path that is shown, about: of a longer one the middle is left out.
pub(crate) const PATH_BYTES_SHOWN: usize = 256;

/// Shortest name that is not shown since a credential that was found holds it, in bytes:
/// words like `key` are in many.
pub(crate) const NAME_OF_SECRET_BYTES_MIN: usize = 6;

/// Longest boundary of multipart content, in bytes (RFC 2046 5.1.1).
pub(crate) const BOUNDARY_BYTES_MAX: usize = 70;

/// Bytes of the fields of a part that are read; behind them its name stays unknown.
pub(crate) const PART_FIELDS_BYTES_MAX: usize = 4096;

/// Parts of multipart content that are told apart; of those behind nothing is told.
pub(crate) const PARTS_MAX: usize = 1024;

/// How far behind the mark of a piece a place may lie that several codings of text were
/// removed from, in bytes: escapes of six bytes of what fills [`PIECE_BYTES`].
pub(crate) const NESTED_REACH_BYTES: u64 = 4096;

/// Bytes of pieces before those of a message with which they are read together: longer
/// than nearly any credential that is told by its form, and looked through in several
/// streams with each message, however short.
pub(crate) const WINDOW_BYTES_MAX: usize = 512;

/// Bytes that all streams of one message's pieces may cost, as a budget counts them: some
/// forty milliseconds, where ordinary ones take a hundredth of one.
pub(crate) const WINDOW_BYTES_MADE: u64 = 4 << 20;

/// Bytes of pieces kept of what went to one host, for each source: so many that a few
/// credentials' worth of words between two pieces hides nothing.
pub(crate) const WINDOW_KEPT_BYTES_MAX: usize = 8 * WINDOW_BYTES_MAX;

/// Pieces kept of what went to one host, for each source: letters one by one are pieces.
pub(crate) const WINDOW_PIECES_MAX: usize = 512;

/// Marks of what was recorded of one host's pieces: more than fit into a window.
pub(crate) const WINDOW_TOLD_MAX: usize = 64;

/// Bytes kept of one piece: half of either end. A credential that is longer is seen in
/// the piece itself.
pub(crate) const PIECE_BYTES_MAX: usize = 2 * WINDOW_BYTES_MAX;

/// Bytes of all streams that one message's pieces are put together to, for the head and
/// for the content: with each message, however short.
pub(crate) const JOINED_BYTES_MAX: usize = 16 << 10;

/// Bytes of a piece by which the beginning of a credential is told from a word.
pub(crate) const BEGINNING_BYTES_MIN: usize = 3;

/// Bytes of a literal that is the beginning of a form by itself: shorter ones are words.
pub(crate) const BEGUN_BYTES_MIN: usize = 4;

/// Messages behind one that showed the id of a pair of keys in which the other half is looked
/// for, in count: as many as letters sent one by one are read together.
pub(crate) const HALVES_MESSAGES_MAX: u64 = 512;

/// Bytes at the end of a stream that are read in more forms than one.
pub(crate) const JOINED_FORMS_BYTES_MAX: usize = WINDOW_BYTES_MAX;

/// The same of a stream whose pieces may come several times.
pub(crate) const JOINED_REPEATED_BYTES_MAX: usize = 4 * JOINED_FORMS_BYTES_MAX;

/// Bytes of the values of one source that are looked through for words: all content whose
/// values are told apart.
pub(crate) const WORDS_READ_BYTES_MAX: usize = 16 << 10;

/// Bytes of the new values of a message in which it is looked for what is woven into them.
pub(crate) const WOVEN_BYTES_MAX: usize = 4 << 10;
/// Bytes of one text that a coding stands for which are kept, so that a credential which is
/// cut into its values is seen.
pub(crate) const MADE_TEXT_BYTES_MAX: usize = 16 << 10;
/// Bytes of all such texts of one stream.
pub(crate) const MADE_BYTES_MAX: usize = 64 << 10;
/// Such texts of one stream.
pub(crate) const MADE_TEXTS_MAX: usize = 256;

/// Bytes of a word in a value that is a piece: shorter ones are versions and ordinals.
pub(crate) const WORD_BYTES_MIN: usize = 4;

/// Bytes of two pieces between which a sign counts as a separator that credentials have as
/// well.
pub(crate) const SIGNED_BYTES_MIN: usize = 6;

/// Bytes of the streams of one slot of the head and the content, of all slots together.
pub(crate) const JOINED_MIXED_BYTES_MAX: usize = 4 << 10;

/// Bytes of a stream that could hold a credential told by its form.
pub(crate) const JOINED_BYTES_MIN: usize = 10;

/// Slots whose own streams are read with one message.
pub(crate) const JOINED_SLOTS_MAX: usize = 16;

/// How many of a message's last pieces are also read without those behind them.
pub(crate) const JOINED_ENDS_MAX: usize = 4;

/// How often the same piece again, or the same head, counts as a piece: letters stand
/// beside each other twice.
pub(crate) const AGAIN_MAX: usize = 4;

/// Unbroken bytes at the end of a message that may be a credential whose literal
/// has not come: fewer give too little away.
pub(crate) const UNBROKEN_BYTES_MIN: usize = 32;

/// Largest text that is read, in bytes; more is left out.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
