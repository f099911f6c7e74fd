//! The places of records and blocks in an image, which is written once, from front to back.
//!
//! Records (inodes and what follows them) fill metadata blocks; a block that is not full yet is
//! kept in memory, so that data blocks can be written behind it in the meantime.  Block 0, with the
//! superblock and the root's inode, is written last.

use crate::erofs::ondisk::{BLOCK, ROOT, SLOT};
use crate::error::Result;

/// Takes the bytes of an image.
pub trait Put {
    /// Write all of `bytes` at an offset.
    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()>;
}

/// Gives every record and every data block its place.
pub(crate) struct Blocks<P> {
    to: P,
    /// Block 0.
    pub(crate) first: Vec<u8>,
    /// How many there are so far.
    pub(crate) count: u64,
    records: Vec<u8>,
    /// Where the metadata block that is being filled will stand; 0: there is none.
    at: u64,
}

impl<P: Put> Blocks<P> {
    /// Into an empty file.
    pub(crate) fn new(to: P) -> Self {
        Self {
            to,
            first: vec![0; BLOCK],
            count: 1,
            records: Vec::with_capacity(BLOCK),
            at: 0,
        }
    }

    /// Place a record at a multiple of `SLOT`; its offset in the image.
    ///
    /// It crosses no block, as the kernel wants it of an inode with what follows inline; a record
    /// larger than a block begins one.
    pub(crate) fn put_record(&mut self, record: &[u8]) -> Result<u64> {
        if record.len() > BLOCK {
            return Ok(offset(self.put_blocks(record)?));
        }
        if self.at == 0 || self.records.len().saturating_add(record.len()) > BLOCK {
            self.flush()?;
            self.at = offset(self.reserve(1));
        }
        let place = self.at.saturating_add(self.records.len() as u64);
        self.records.extend_from_slice(record);
        let padded = self.records.len().next_multiple_of(SLOT);
        self.records.resize(padded, 0);
        Ok(place)
    }

    /// Place the root's record; its offset in the image.
    pub(crate) fn put_root(&mut self, record: &[u8]) -> u64 {
        overwrite(&mut self.first, ROOT, record);
        ROOT as u64
    }

    /// Place data in blocks of its own; the number of the first.
    pub(crate) fn put_blocks(&mut self, data: &[u8]) -> Result<u64> {
        let mut blocks = data.to_vec();
        blocks.resize(data.len().next_multiple_of(BLOCK), 0);
        let size = BLOCK as u64;
        let count = (blocks.len() as u64).div_ceil(size);
        let first = self.reserve(count);
        self.to.put(offset(first), &blocks)?;
        Ok(first)
    }

    /// Replace bytes of what was placed.
    pub(crate) fn patch(&mut self, place: u64, data: &[u8]) -> Result<()> {
        let within = |start: u64| usize::try_from(place.checked_sub(start)?).ok();
        if let Some(at) = within(0).filter(|at| *at < BLOCK) {
            overwrite(&mut self.first, at, data);
        } else if let Some(at) = within(self.at).filter(|at| *at < self.records.len()) {
            overwrite(&mut self.records, at, data);
        } else {
            self.to.put(place, data)?;
        }
        Ok(())
    }

    /// Write the metadata block that is being filled; the next record begins another.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.at != 0 {
            self.records.resize(BLOCK, 0);
            self.to.put(self.at, &self.records)?;
            self.records.clear();
            self.at = 0;
        }
        Ok(())
    }

    /// Write block 0, as it is to be.
    pub(crate) fn finish(&mut self, first: &[u8]) -> Result<()> {
        self.flush()?;
        self.to.put(0, first)
    }

    fn reserve(&mut self, count: u64) -> u64 {
        let first = self.count;
        self.count = first.saturating_add(count);
        first
    }
}

/// Where a block begins.
pub(crate) fn offset(block: u64) -> u64 {
    block.saturating_mul(BLOCK as u64)
}

fn overwrite(to: &mut [u8], at: usize, data: &[u8]) {
    let room = to.get_mut(at..).unwrap_or_default();
    for (to, from) in room.iter_mut().zip(data) {
        *to = *from;
    }
}
