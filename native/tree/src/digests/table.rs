//! A table of states on disk, read sequentially or by inode.
//!
//! A table has blocks of states, each with a checksum.  A damaged block is ignored, and so is
//! everything after a truncated one: a table is a cache, and at worst costs time.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use huai_git::bug::fit;
use huai_sys::call::{self, Outcome};
use huai_sys::change;
use huai_sys::error::Errno;

use super::block::{BLOCK, BLOCK_BYTES, BLOCK_HEADER, HEADER, decode_block};
use super::state::{STATE, State};
use super::writer::Writer;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    file: OwnedFd,
    blocks: u64,
    /// The block that was read last, and its number.
    block: Vec<u8>,
    number: Option<u64>,
    /// Shortened keys with the places of their states, sorted; `None` until needed.
    index: Option<Vec<(u32, u32)>>,
}

impl Table {
    /// Open the table `name` in a private folder; `None` if missing, or of another version.
    pub(super) fn open(folder: BorrowedFd<'_>, name: &[u8]) -> Outcome<Option<Self>> {
        let file = match call::open_file_at(folder, name) {
            Err(Errno::NOENT) => return Ok(None),
            found => found?,
        };
        let size = call::status(file.as_fd())?.size;
        let Some(left) = size.checked_sub(HEADER.len() as u64) else {
            return Ok(None);
        };
        let mut header = [0; HEADER.len()];
        call::read_all_at(file.as_fd(), 0, &mut header)?;
        Ok((header == *HEADER).then(|| Self {
            file,
            blocks: left.div_ceil(BLOCK_BYTES as u64),
            block: Vec::new(),
            number: None,
            index: None,
        }))
    }

    /// Return the length in bytes, in whole blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES as u64
    }

    /// Return a writer that continues after the last state; a damaged last block is overwritten.
    pub(super) fn into_writer(mut self) -> Outcome<Writer> {
        let last = self.blocks.saturating_sub(1);
        let states: Vec<_> = {
            let states = self.states(last)?.chunks_exact(STATE);
            states.filter_map(State::parse).collect()
        };
        let full = if states.len() == BLOCK {
            self.blocks
        } else {
            last
        };
        let states = if states.len() == BLOCK {
            Vec::new()
        } else {
            states
        };
        let offset = HEADER.len() as u64 + full * BLOCK_BYTES as u64;
        let number = u32::try_from(self.file.as_raw_fd()).map_err(|_| Errno::BADF)?;
        Ok(Writer::at(change::reopen(number)?, offset, states))
    }

    /// Return the state at a place, counted from the front; `None` after the end and in a damaged block.
    pub(super) fn at(&mut self, place: u64) -> Outcome<Option<State>> {
        let (block, rest) = (place / BLOCK as u64, place % BLOCK as u64);
        let offset = fit::<_, usize>(rest) * STATE;
        let states = self.states(block)?;
        Ok(states.get(offset..).and_then(State::parse))
    }

    /// Return true if the states end before `place`.
    pub(super) fn ends(&mut self, place: u64) -> Outcome<bool> {
        let block = place / BLOCK as u64;
        Ok(block >= self.blocks || (block + 1 == self.blocks && self.at(place)?.is_none()))
    }

    /// Return the places of all states with a key, and possibly of others.
    pub(super) fn places(&mut self, key: u64) -> Outcome<Vec<u64>> {
        let key = shortened(key);
        if self.index.is_none() {
            self.index = Some(self.read_index()?);
        }
        let index = self.index.as_deref().unwrap_or_default();
        let from = index.partition_point(|(other, _)| *other < key);
        let same = index[from..].iter();
        let same = same.take_while(|(other, _)| *other == key);
        Ok(same.map(|(_, place)| u64::from(*place)).collect())
    }

    /// Call `visit` with every state, in order; damaged blocks are left out.
    pub(super) fn for_each(&mut self, mut visit: impl FnMut(State) -> Outcome<()>) -> Outcome<()> {
        for block in 0..self.blocks {
            let states = self.states(block)?.chunks_exact(STATE);
            states.filter_map(State::parse).try_for_each(&mut visit)?;
        }
        Ok(())
    }

    /// Read all states for their keys; returns each shortened key with its place, sorted.
    fn read_index(&mut self) -> Outcome<Vec<(u32, u32)>> {
        let mut index = Vec::new();
        for block in 0..self.blocks {
            let states = self.states(block)?;
            let count = states.len() / STATE;
            index.try_reserve(count).map_err(|_| Errno::NOMEM)?;
            let first = block * BLOCK as u64;
            let places = (first..).map_while(|place| u32::try_from(place).ok());
            let states = states.chunks_exact(STATE).filter_map(State::parse);
            index.extend(states.map(|state| shortened(state.key())).zip(places));
        }
        index.sort_unstable();
        Ok(index)
    }

    /// Return the states of a block, which is kept; none if it is damaged.
    fn states(&mut self, number: u64) -> Outcome<&[u8]> {
        if number >= self.blocks {
            return Ok(&[]);
        }
        if self.number != Some(number) {
            self.number = None;
            let offset = HEADER.len() as u64 + number * BLOCK_BYTES as u64;
            let size = call::status(self.file.as_fd())?.size.saturating_sub(offset);
            let size = usize::try_from(size)
                .unwrap_or(BLOCK_BYTES)
                .min(BLOCK_BYTES);
            self.block.resize(size, 0);
            call::read_all_at(self.file.as_fd(), offset, &mut self.block)?;
            let length = decode_block(&self.block).map_or(0, <[u8]>::len);
            self.block.truncate(if length == 0 {
                0
            } else {
                BLOCK_HEADER + length
            });
            self.number = Some(number);
        }
        Ok(self.block.get(BLOCK_HEADER..).unwrap_or_default())
    }
}

/// Return half of a key, mixed from all its bits: of a few million, two are seldom equal.
fn shortened(key: u64) -> u32 {
    // The multiplier spreads similar keys (Fibonacci hashing).
    let spread = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    fit(spread >> 32)
}
