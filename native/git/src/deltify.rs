//! Makes a git delta: the ranges to copy from a base, and the bytes to insert (gitformat-pack(5)).
//!
//! Matches are found where a block of the base begins.  Text that was replaced by other text of the
//! same length, as in most changes of a manifest, is followed from any position.

#![expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "an offset that is out of range is a panic, not another delta"
)]

use crate::bug::fit;
use crate::object::put_size;

const BLOCK: usize = 16;
/// The longest copy of one instruction, as in git.
const COPY_BYTES: usize = 0x10000;
const INSERT_BYTES: usize = 127;
const COPY: u8 = 0x80;
/// The table has a slot for each block, and as many free ones.
const SLOTS_A_BLOCK: usize = 2;
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Return the delta that makes `target` from `base`.
pub fn deltify(base: &[u8], target: &[u8]) -> Vec<u8> {
    let blocks = Blocks::of(base);
    let mut delta = Vec::new();
    put_size(base.len() as u64, &mut delta);
    put_size(target.len() as u64, &mut delta);
    let mut followed = Followed::default();
    let mut at = 0_usize;
    while let Some(block) = block(target, at) {
        let ahead = at - followed.target;
        let matched = blocks
            .at(followed.base + ahead, block)
            .or_else(|| blocks.find(block));
        let Some(matched) = matched else {
            at += 1;
            continue;
        };
        let back = common_end(head(base, matched), part(target, followed.target, at));
        let ahead = common_start(tail(base, matched), tail(target, at));
        let end = at + ahead;
        put_insert(part(target, followed.target, at - back), &mut delta);
        put_copy(matched - back, back + ahead, &mut delta);
        followed = Followed {
            base: matched + ahead,
            target: end,
        };
        at = end;
    }
    put_insert(tail(target, followed.target), &mut delta);
    delta
}

/// The positions up to which both were followed.
#[derive(Default)]
struct Followed {
    base: usize,
    target: usize,
}

/// A table of the blocks of a base, by their bytes.
struct Blocks<'a> {
    base: &'a [u8],
    /// The numbers of blocks from 1 on; 0 is a free slot.
    slots: Vec<u32>,
}

impl<'a> Blocks<'a> {
    /// Enter all full blocks of `base`; of equal ones the first.
    fn of(base: &'a [u8]) -> Self {
        let full_blocks = base.chunks_exact(BLOCK).filter_map(<[u8]>::first_chunk);
        let count = base.len() / BLOCK;
        let count = count * SLOTS_A_BLOCK;
        let mut slots = vec![0; count.next_power_of_two()];
        for (number, block) in (1..).zip(full_blocks) {
            let slot = slot(block, slots.len());
            // Keep the first of several equal blocks: what follows it is likely to be longer.
            if let Some(free) = slots.get_mut(slot).filter(|slot| **slot == 0) {
                *free = number;
            }
        }
        Self { base, slots }
    }

    /// Return the position of a block of the base with these bytes; `None` also for some that it
    /// has.
    fn find(&self, wanted: &[u8; BLOCK]) -> Option<usize> {
        let number = self.slots.get(slot(wanted, self.slots.len()))?;
        let number = usize::try_from(number.checked_sub(1)?).ok()?;
        self.at(number.checked_mul(BLOCK)?, wanted)
    }

    /// Return `offset` if the base has these bytes there.
    fn at(&self, offset: usize, wanted: &[u8; BLOCK]) -> Option<usize> {
        (block(self.base, offset)? == wanted).then_some(offset)
    }
}

/// Return the slot of a block in a table of `slots`, a power of two.
fn slot(block: &[u8; BLOCK], slots: usize) -> usize {
    let (low, high) = block.split_at(BLOCK / 2);
    let half = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    let mixed = half(low).wrapping_mul(FACTOR) ^ half(high);
    let mixed = mixed.wrapping_mul(FACTOR) >> 32;
    usize::try_from(mixed).unwrap_or_default() & (slots - 1)
}

/// Append instructions that insert `bytes` to `delta`.
fn put_insert(bytes: &[u8], delta: &mut Vec<u8>) {
    for part in bytes.chunks(INSERT_BYTES) {
        delta.push(fit(part.len()));
        delta.extend_from_slice(part);
    }
}

/// Append instructions that copy `length` bytes of the base to `delta`.
fn put_copy(mut from: usize, mut length: usize, delta: &mut Vec<u8>) {
    while length > 0 {
        let now = length.min(COPY_BYTES);
        let code = delta.len();
        delta.push(COPY);
        // The largest length is stored without any byte.
        let stored = if now == COPY_BYTES { 0 } else { now };
        let present = put_argument(from, 4, delta) | put_argument(stored, 3, delta).wrapping_shl(4);
        delta[code] |= present;
        from += now;
        length -= now;
    }
}

/// Append those of the lowest `bytes` bytes of a number that are not zero; returns a bit for each,
/// the lowest for the lowest byte.
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

/// Return the block that begins at `at`, which may be any position; `None` if too few bytes follow.
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
