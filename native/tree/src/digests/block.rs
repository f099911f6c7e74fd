//! The blocks of a table, each with its checksum.

use huai_git::bug::fit;
use huai_git::crc::crc32;

use super::state::{STATE, State};

/// The beginning of a table; another version has another word.
pub(super) const HEADER: &[u8; 16] = b"huai digests 1\n\0";
/// The states of a full block; only the last block may have fewer.
pub(super) const BLOCK: usize = 4096;
/// The bytes of a block's header: number of states, and checksum.
pub(super) const BLOCK_HEADER: usize = 8;
pub(super) const BLOCK_BYTES: usize = BLOCK_HEADER + BLOCK * STATE;

/// Replace `to` with one block: `states` after their number and checksum.
pub(super) fn encode_block(states: &[State], to: &mut Vec<u8>) {
    to.clear();
    to.resize(BLOCK_HEADER, 0);
    to.extend(states.iter().flat_map(State::bytes));
    let count: u32 = fit(states.len());
    let sum = crc32(&to[BLOCK_HEADER..]);
    let header = count.to_le_bytes().into_iter().chain(sum.to_le_bytes());
    for (to, from) in to.iter_mut().zip(header) {
        *to = from;
    }
}

/// Return the states of a block, as bytes; `None` if its checksum is wrong, or it has none or is too short.
pub(super) fn decode_block(bytes: &[u8]) -> Option<&[u8]> {
    let (header, rest) = bytes.split_first_chunk::<BLOCK_HEADER>()?;
    let number = |at: usize| Some(u32::from_le_bytes(*header.get(at..)?.first_chunk()?));
    let count = usize::try_from(number(0)?).ok()?;
    let states = rest.get(..count.checked_mul(STATE)?)?;
    (count > 0 && crc32(states) == number(4)?).then_some(states)
}
