//! Writing a table, block by block.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::state::State;
use super::table::{BLOCK, BLOCK_BYTES, HEADER, encode_block};
use crate::call::Outcome;
use crate::change;

/// A table that is being written.
#[derive(Debug)]
pub(super) struct Writer {
    file: OwnedFd,
    states: Vec<State>,
    bytes: Vec<u8>,
}

impl Writer {
    /// Makes the table `name`, which does not exist.
    pub(super) fn create(folder: BorrowedFd<'_>, name: &[u8]) -> Outcome<Self> {
        let file = change::make_file(folder, name)?;
        change::write(file.as_fd(), HEADER)?;
        Ok(Self {
            file,
            states: Vec::with_capacity(BLOCK),
            bytes: Vec::with_capacity(BLOCK_BYTES),
        })
    }

    pub(super) fn add(&mut self, state: State) -> Outcome<()> {
        self.states.push(state);
        if self.states.len() == BLOCK {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what is held, as the last block.
    pub(super) fn flush(&mut self) -> Outcome<()> {
        if !self.states.is_empty() {
            encode_block(&self.states, &mut self.bytes);
            self.states.clear();
            change::write(self.file.as_fd(), &self.bytes)?;
        }
        Ok(())
    }
}
