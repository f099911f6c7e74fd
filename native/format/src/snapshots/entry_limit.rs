//! Limits the cost of reading a snapshot, which may claim to be endless.
//!
//! A few git objects can describe an exponentially large tree by naming one subtree many times.
//! A reader of a snapshot counts what it meets (FORMAT.md, "Limits").  Text and the names of
//! directories are held in memory, so they are counted as well.

use huai_git::error::{Error, Result};

use crate::limits::{ENTRY_BYTES, LISTING_BYTES};
use crate::path::{RelPath, at};

/// The entries, directories and bytes that may still come.
#[derive(Debug)]
pub struct EntryLimit {
    limit: u64,
    entries: u64,
    trees: u64,
    bytes: u64,
}

impl EntryLimit {
    /// Allow `limit` entries, also as many own directories, and the bytes that manifests of so many entries may have.
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            entries: limit,
            trees: limit,
            bytes: limit
                .saturating_mul(ENTRY_BYTES)
                .saturating_add(LISTING_BYTES),
        }
    }

    /// Count entries that were met at `place`; an error beyond the limit.
    pub fn spend(&mut self, entries: usize, place: &RelPath) -> Result<()> {
        self.entries = subtract(self.entries, entries).ok_or_else(|| self.too_many(place))?;
        Ok(())
    }

    /// Count own directories that the directory at `place` names for the first time; an error beyond the limit.
    pub fn spend_trees(&mut self, count: usize, place: &RelPath) -> Result<()> {
        self.trees = subtract(self.trees, count).ok_or_else(|| self.too_many(place))?;
        Ok(())
    }

    /// Count bytes of manifests and columns that were read at `place`; an error beyond the limit.
    pub fn spend_bytes(&mut self, size: usize, place: &RelPath) -> Result<()> {
        self.bytes = subtract(self.bytes, size).ok_or_else(|| {
            let limit = self.limit;
            let rule = format!("the manifests of {limit} entries are longer than they can be");
            at(place, Error::new(rule))
        })?;
        Ok(())
    }

    fn too_many(&self, place: &RelPath) -> Error {
        let rule = format!("the snapshot has more than {} entries", self.limit);
        at(place, Error::new(rule))
    }
}

/// Subtract `amount`; `None` if less is left.
fn subtract(left: u64, amount: usize) -> Option<u64> {
    left.checked_sub(u64::try_from(amount).ok()?)
}
