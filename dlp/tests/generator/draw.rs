//! One draw: a secret, what it is coded in, the place that carries it, and how it is cut up.

use crate::carriers::{CARRIERS, Carrier, Item, Request, request};
use crate::codings::{CODINGS, Coding, PLAIN, Takes, is_text, named};
use crate::dice::Dice;
use crate::secrets::{Secret, Secrets};

/// Codings on top of each other.
const DEPTH_MAX: usize = 4;

/// Bytes of a chain beyond which nothing more is put on top.
const CODED_BYTES_MAX: usize = 4 << 10;

/// Fewest bytes of a piece: shorter ones are words.
const PIECE_BYTES_MIN: usize = 8;

/// Most pieces.
const PIECES_MAX: usize = 6;

/// How the coded secret is cut up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Spread {
    /// Not at all.
    Whole,
    /// Over values of one message that follow each other.
    Values,
    /// Over messages to one host.
    Messages,
    /// The same, the last piece first.
    Reversed,
}

const SPREADS: [Spread; 4] = [
    Spread::Whole,
    Spread::Values,
    Spread::Messages,
    Spread::Reversed,
];

/// One draw.
#[derive(Clone)]
pub(crate) struct Draw {
    pub(crate) secret: Secret,
    pub(crate) chain: Vec<Coding>,
    pub(crate) carrier: Carrier,
    pub(crate) spread: Spread,
    /// Where it is cut, in thousandths.
    cuts: Vec<usize>,
    /// What all that is left to chance comes from.
    dice: Dice,
}

impl Draw {
    pub(crate) fn new(dice: &mut Dice, secrets: &Secrets) -> Self {
        let kind = &secrets.kinds[dice.roll(secrets.kinds.len())];
        let secret = kind[dice.roll(kind.len())].clone();
        let carrier = dice.pick(&CARRIERS);
        let mut draw = Self {
            secret,
            chain: Vec::new(),
            carrier,
            spread: dice.pick(&SPREADS),
            cuts: Vec::new(),
            dice: Dice(dice.next()),
        };
        for _ in 0..dice.roll(DEPTH_MAX + 1) {
            let coding = dice.pick(CODINGS);
            let coded = draw.coded(&draw.secret.bytes);
            let is_fit = coding.takes == Takes::Bytes || is_text(&coded);
            if is_fit && coded.len() <= CODED_BYTES_MAX {
                draw.chain.push(coding);
            }
        }
        if !draw.carrier.holds(&draw.coded(&draw.secret.bytes)) {
            draw.chain.truncate(DEPTH_MAX - 1);
            draw.chain.push(named(dice.pick(&PLAIN)));
        }
        let coded = draw.coded(&draw.secret.bytes);
        if !draw.carrier.holds(&coded) {
            draw.carrier = Carrier::Whole;
        }
        let count = (2 + dice.roll(PIECES_MAX - 1)).min(coded.len() / PIECE_BYTES_MIN);
        draw.cuts = (1..count).map(|_| dice.roll(1000)).collect();
        draw.cuts.sort_unstable();
        // Where there is one value, nothing is cut into several.
        let is_one = matches!(draw.carrier, Carrier::Whole | Carrier::Message);
        if draw.spread == Spread::Values && is_one {
            draw.spread = Spread::Messages;
        }
        let pieces = draw.pieces(&coded);
        if count < 2 || !pieces.iter().all(|piece| draw.carrier.holds(piece)) {
            draw.spread = Spread::Whole;
        }
        draw
    }

    /// The secret in its codings.
    pub(crate) fn coded(&self, secret: &[u8]) -> Vec<u8> {
        let mut dice = self.dice.clone();
        let chain = self.chain.iter();
        chain.fold(secret.to_vec(), |made, coding| {
            let mut own = Dice(dice.next());
            (coding.make)(&mut own, &made)
        })
    }

    fn pieces(&self, coded: &[u8]) -> Vec<Vec<u8>> {
        if self.spread == Spread::Whole {
            return vec![coded.to_vec()];
        }
        let count = self.cuts.len() + 1;
        let spare = coded.len().saturating_sub(PIECE_BYTES_MIN * count);
        let (mut pieces, mut from) = (Vec::new(), 0);
        for (number, cut) in (1..).zip(&self.cuts) {
            let to = spare * cut / 1000 + PIECE_BYTES_MIN * number;
            pieces.push(coded[from..to].to_vec());
            from = to;
        }
        pieces.push(coded[from..].to_vec());
        pieces
    }

    /// The requests in which a secret leaves that is drawn like this.
    fn requests_of(&self, secret: &[u8]) -> Vec<Request> {
        let mut dice = Dice(!self.dice.0);
        let names = ["data", "k", "x1"];
        let name = dice.pick(&names);
        let is_same = dice.is_one_in(2);
        let pieces = self.pieces(&self.coded(secret));
        let mut items: Vec<Item> = (0..)
            .zip(pieces)
            .map(|(number, piece): (usize, Vec<u8>)| {
                let is_named_alike = is_same && self.spread != Spread::Values;
                let name = if is_named_alike {
                    name.to_owned()
                } else {
                    format!("{name}{number}")
                };
                (name, piece)
            })
            .collect();
        if self.spread == Spread::Reversed {
            items.reverse();
        }
        let size = match self.spread {
            Spread::Whole | Spread::Values => items.len().max(1),
            Spread::Messages | Spread::Reversed => 1,
        };
        let requests = items.chunks(size);
        requests
            .map(|items| request(&mut dice, self.carrier, items))
            .collect()
    }

    /// The same, each with the place in its content of the last byte of the secret: the last in
    /// which it differs from one that says another byte.
    pub(crate) fn requests(&self) -> Vec<(Request, Option<usize>)> {
        let mut other = self.secret.bytes.clone();
        if let Some(last) = other.last_mut() {
            *last = match *last {
                b'0' => b'1',
                b'1'..=b'9' => b'0',
                b'a' => b'b',
                b'A' => b'B',
                b'b'..=b'z' => b'a',
                b'B'..=b'Z' => b'A',
                own => own ^ 1,
            };
        }
        let own = self.requests_of(&self.secret.bytes);
        let others = self.requests_of(&other);
        let last = |own: &Request, other: Option<&Request>| {
            let (own, other) = (&own.content, &other?.content);
            if own.len() != other.len() {
                return own.len().checked_sub(1);
            }
            own.iter().zip(other).rposition(|(one, two)| one != two)
        };
        let places: Vec<Option<usize>> = (0..)
            .zip(&own)
            .map(|(number, request): (usize, _)| last(request, others.get(number)))
            .collect();
        own.into_iter().zip(places).collect()
    }

    /// What it is, in words.
    pub(crate) fn told(&self) -> String {
        let chain: Vec<&str> = self.chain.iter().map(|coding| coding.name).collect();
        format!(
            "{} in [{}] by {:?}, {:?} in {} pieces",
            self.secret.name,
            chain.join(" > "),
            self.carrier,
            self.spread,
            self.cuts.len() + 1
        )
    }
}
