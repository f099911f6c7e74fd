//! What one look at a snapshot may cost: what stops a snapshot that claims to be endless.
//!
//! A few git objects can describe an exponentially large tree by naming one subtree many times.
//! Whoever reads a snapshot counts what it meets (FORMAT.md, "Limits").  Text and the names of
//! directories are held in memory on the way, so these are counted as well.

use crate::error::{Error, Result};
use crate::limits::{ENTRY_BYTES, LISTING_BYTES};
use crate::path::{RelPath, at};

/// How many entries, directories and bytes may still come.
#[derive(Debug)]
pub struct EntryLimit {
    limit: u64,
    entries: u64,
    trees: u64,
    bytes: u64,
}

impl EntryLimit {
    /// `limit`: how many entries there may be.
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

    /// Some more entries were met at `place`.
    pub fn spend(&mut self, entries: usize, place: &RelPath) -> Result<()> {
        self.entries = take(self.entries, entries).ok_or_else(|| self.too_many(place))?;
        Ok(())
    }

    /// The directory at `place` names so many own directories, which nobody has met yet.
    pub fn spend_trees(&mut self, count: usize, place: &RelPath) -> Result<()> {
        self.trees = take(self.trees, count).ok_or_else(|| self.too_many(place))?;
        Ok(())
    }

    /// So many bytes of manifests and columns were read at `place`.
    pub fn spend_bytes(&mut self, size: usize, place: &RelPath) -> Result<()> {
        self.bytes = take(self.bytes, size).ok_or_else(|| {
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

fn take(left: u64, amount: usize) -> Option<u64> {
    left.checked_sub(u64::try_from(amount).ok()?)
}
