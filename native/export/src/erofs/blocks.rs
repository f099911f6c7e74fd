//! Places records and blocks in an image, which is written once, from front to back.
//!
//! Records (inodes and the data after them) fill metadata blocks.  A block that is not full yet is
//! kept in memory, so that data blocks can be written after it in the meantime.  Block 0, with the
//! superblock and the root's inode, is written last.

use huai_git::error::Result;

use crate::erofs::ondisk::{BLOCK, ROOT, SLOT};

/// A destination for the bytes of an image.
pub trait ImageSink {
    /// Write all of `bytes` at the offset `at`.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()>;
}

/// The allocation of records and data blocks.
pub(crate) struct Blocks<P> {
    to: P,
    /// Block 0.
    pub(crate) first: Vec<u8>,
    /// The number of blocks so far.
    pub(crate) count: u64,
    records: Vec<u8>,
    /// The offset of the metadata block that is being filled, or 0.
    at: u64,
}

impl<P: ImageSink> Blocks<P> {
    /// Begin with an empty file.
    pub(crate) fn new(to: P) -> Self {
        Self {
            to,
            first: vec![0; BLOCK],
            count: 1,
            records: Vec::with_capacity(BLOCK),
            at: 0,
        }
    }

    /// Place a record at a multiple of `SLOT`; returns its offset in the image.
    ///
    /// A record crosses no block boundary, as the kernel requires for an inode with inline data; a
    /// record larger than a block begins at one.
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

    /// Place the root's record; returns its offset in the image.
    pub(crate) fn put_root(&mut self, record: &[u8]) -> u64 {
        overwrite(&mut self.first, ROOT, record);
        ROOT as u64
    }

    /// Place data in blocks of its own; returns the number of the first.
    pub(crate) fn put_blocks(&mut self, data: &[u8]) -> Result<u64> {
        let mut blocks = data.to_vec();
        blocks.resize(data.len().next_multiple_of(BLOCK), 0);
        let size = BLOCK as u64;
        let count = (blocks.len() as u64).div_ceil(size);
        let first = self.reserve(count);
        self.to.write_at(offset(first), &blocks)?;
        Ok(first)
    }

    /// Replace bytes at the offset `at`, which were placed before.
    pub(crate) fn patch(&mut self, at: u64, data: &[u8]) -> Result<()> {
        let within = |start: u64| usize::try_from(at.checked_sub(start)?).ok();
        if let Some(at) = within(0).filter(|at| *at < BLOCK) {
            overwrite(&mut self.first, at, data);
        } else if let Some(at) = within(self.at).filter(|at| *at < self.records.len()) {
            overwrite(&mut self.records, at, data);
        } else {
            self.to.write_at(at, data)?;
        }
        Ok(())
    }

    /// Write the current metadata block; the next record begins another.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.at != 0 {
            self.records.resize(BLOCK, 0);
            self.to.write_at(self.at, &self.records)?;
            self.records.clear();
            self.at = 0;
        }
        Ok(())
    }

    /// Write the current metadata block, then `first` as block 0.
    pub(crate) fn finish(&mut self, first: &[u8]) -> Result<()> {
        self.flush()?;
        self.to.write_at(0, first)
    }

    /// Take `count` blocks; returns the number of the first.
    fn reserve(&mut self, count: u64) -> u64 {
        let first = self.count;
        self.count = first.saturating_add(count);
        first
    }
}

/// Return the offset of a block.
pub(crate) fn offset(block: u64) -> u64 {
    block.saturating_mul(BLOCK as u64)
}

/// Copy `data` to `at`, as far as `to` has room.
fn overwrite(to: &mut [u8], at: usize, data: &[u8]) {
    let room = to.get_mut(at..).unwrap_or_default();
    for (to, from) in room.iter_mut().zip(data) {
        *to = *from;
    }
}
