//! Makes one of git's deltas: what to copy of a base, and what to insert (gitformat-pack(5)).
//!
//! Finds what both have where a block of the base begins.  What was replaced by something of the
//! same length, as most changes of a manifest are, is followed at any place.

#![expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "an offset that is out of range is a panic, not another delta"
)]

use crate::bug::fit;
use crate::git::object::put_size;

const BLOCK: usize = 16;
/// A copy that is longer is made by several instructions, as git does it.
const COPY_BYTES: usize = 0x10000;
const INSERT_BYTES: usize = 127;
const COPY: u8 = 0x80;
/// A slot of the table for each block, and as many that are free.
const SLOTS_A_BLOCK: usize = 2;
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The delta that makes `target` from `base`.
pub fn deltify(base: &[u8], target: &[u8]) -> Vec<u8> {
    let blocks = Blocks::of(base);
    let mut delta = Vec::new();
    put_size(base.len() as u64, &mut delta);
    put_size(target.len() as u64, &mut delta);
    let mut done = Place::default();
    let mut at = 0_usize;
    while let Some(block) = block(target, at) {
        let ahead = at - done.target;
        let found = blocks
            .at(done.base + ahead, block)
            .or_else(|| blocks.find(block));
        let Some(found) = found else {
            at += 1;
            continue;
        };
        let back = common_end(head(base, found), part(target, done.target, at));
        let ahead = common_start(tail(base, found), tail(target, at));
        let end = at + ahead;
        insert(part(target, done.target, at - back), &mut delta);
        copy(found - back, back + ahead, &mut delta);
        done = Place {
            base: found + ahead,
            target: end,
        };
        at = end;
    }
    insert(tail(target, done.target), &mut delta);
    delta
}

/// Up to where both were followed.
#[derive(Default)]
struct Place {
    base: usize,
    target: usize,
}

/// Where the blocks of a base begin, by what stands in them.
struct Blocks<'a> {
    base: &'a [u8],
    /// Numbers of blocks from 1 on; 0 is a free slot.
    slots: Vec<u32>,
}

impl<'a> Blocks<'a> {
    fn of(base: &'a [u8]) -> Self {
        let whole = base.chunks_exact(BLOCK).filter_map(<[u8]>::first_chunk);
        let count = base.len() / BLOCK;
        let count = count * SLOTS_A_BLOCK;
        let mut slots = vec![0; count.next_power_of_two()];
        for (number, block) in (1..).zip(whole) {
            let slot = slot(block, slots.len());
            // The first of several: what follows it is likely to be longer.
            if let Some(free) = slots.get_mut(slot).filter(|slot| **slot == 0) {
                *free = number;
            }
        }
        Self { base, slots }
    }

    /// A place of the base where these bytes stand.
    fn find(&self, wanted: &[u8; BLOCK]) -> Option<usize> {
        let number = self.slots.get(slot(wanted, self.slots.len()))?;
        let number = usize::try_from(number.checked_sub(1)?).ok()?;
        self.at(number.checked_mul(BLOCK)?, wanted)
    }

    /// This place, if the bytes stand there.
    fn at(&self, place: usize, wanted: &[u8; BLOCK]) -> Option<usize> {
        (block(self.base, place)? == wanted).then_some(place)
    }
}

fn slot(block: &[u8; BLOCK], slots: usize) -> usize {
    let (low, high) = block.split_at(BLOCK / 2);
    let half = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    let mixed = half(low).wrapping_mul(FACTOR) ^ half(high);
    let mixed = mixed.wrapping_mul(FACTOR) >> 32;
    usize::try_from(mixed).unwrap_or_default() & (slots - 1)
}

fn insert(bytes: &[u8], delta: &mut Vec<u8>) {
    for part in bytes.chunks(INSERT_BYTES) {
        delta.push(fit(part.len()));
        delta.extend_from_slice(part);
    }
}

fn copy(mut from: usize, mut length: usize, delta: &mut Vec<u8>) {
    while length > 0 {
        let now = length.min(COPY_BYTES);
        let code = delta.len();
        delta.push(COPY);
        // The largest length is that of which no byte is there.
        let told = if now == COPY_BYTES { 0 } else { now };
        let present = put_argument(from, 4, delta) | put_argument(told, 3, delta).wrapping_shl(4);
        delta[code] |= present;
        from += now;
        length -= now;
    }
}

/// The bytes of a number that are not 0; a bit for each of those.
fn put_argument(value: usize, bytes: u32, delta: &mut Vec<u8>) -> u8 {
    let mut present = 0;
    for (place, byte) in (0..bytes).zip(value.to_le_bytes()) {
        if byte != 0 {
            present |= 1_u8.wrapping_shl(place);
            delta.push(byte);
        }
    }
    present
}

fn block(bytes: &[u8], at: usize) -> Option<&[u8; BLOCK]> {
    bytes.get(at..)?.first_chunk()
}

fn head(bytes: &[u8], to: usize) -> &[u8] {
    &bytes[..to]
}

fn tail(bytes: &[u8], from: usize) -> &[u8] {
    &bytes[from..]
}

fn part(bytes: &[u8], from: usize, to: usize) -> &[u8] {
    &bytes[from..to]
}

fn common_start(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

fn common_end(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.iter().rev().zip(other.iter().rev());
    pairs.take_while(|(a, b)| a == b).count()
}
