//! Writes a table, block by block.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use huai_sys::call::Outcome;
use huai_sys::change;

use super::block::{BLOCK, HEADER, encode_block};
use super::state::State;

/// A table that is being written.
#[derive(Debug)]
pub(super) struct Writer {
    file: OwnedFd,
    /// The offset of the next block.
    offset: u64,
    states: Vec<State>,
    bytes: Vec<u8>,
}

impl Writer {
    /// Make the table `name`, which must not exist.
    pub(super) fn create(folder: BorrowedFd<'_>, name: &[u8]) -> Outcome<Self> {
        let file = change::make_file(folder, name)?;
        change::write(file.as_fd(), HEADER)?;
        Ok(Self::at(file, HEADER.len() as u64, Vec::new()))
    }

    /// Continue a table at the block at `offset`, beginning with `states`.
    pub(super) fn at(file: OwnedFd, offset: u64, states: Vec<State>) -> Self {
        Self {
            file,
            offset,
            states,
            bytes: Vec::new(),
        }
    }

    /// Add a state; each full block is written.
    pub(super) fn add(&mut self, state: State) -> Outcome<()> {
        self.states.push(state);
        if self.states.len() == BLOCK {
            self.flush()?;
        }
        Ok(())
    }

    /// Write the pending states as the last block.  Unless it is full, none may follow.
    pub(super) fn flush(&mut self) -> Outcome<()> {
        if !self.states.is_empty() {
            encode_block(&self.states, &mut self.bytes);
            self.states.clear();
            change::write_at(self.file.as_fd(), self.offset, &self.bytes)?;
            self.offset += self.bytes.len() as u64;
        }
        Ok(())
    }
}
