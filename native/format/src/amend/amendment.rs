//! What is to be amended, and what came out of it.

use std::collections::BTreeSet;

use super::leaves::names;
use crate::error::Result;
use crate::git::oid::Oid;
use crate::totals::Totals;

/// What is said of a directory that is there.
#[derive(Debug, Clone, Default)]
pub struct Amendment {
    /// From the root.
    pub path: Vec<u8>,
    /// Its own attributes, as in a listing.
    pub attributes: Vec<u8>,
    /// The lines of leaves that are there, sorted by raw name.
    pub leaves: Vec<u8>,
    /// 32 bytes for each file of these, zeros where absent, or none at all.
    pub digests: Vec<u8>,
    /// Names of directories.
    pub directories: BTreeSet<Vec<u8>>,
    /// Names at which nothing is.
    pub gone: BTreeSet<Vec<u8>>,
    /// Names of which nothing is known: what the snapshot has there stays.
    pub unsure: BTreeSet<Vec<u8>>,
    /// Nothing else is there.
    pub is_whole: bool,
}

impl Amendment {
    /// Everything in the directory of which something is said.
    pub(super) fn names(&self) -> Result<BTreeSet<Vec<u8>>> {
        let mut names = names(&self.leaves)?;
        for more in [&self.directories, &self.gone, &self.unsure] {
            names.extend(more.iter().cloned());
        }
        Ok(names)
    }

    /// Whether a directory of the snapshot is none any more.
    pub(super) fn ends(&self, name: &[u8], leaves: &BTreeSet<Vec<u8>>) -> bool {
        if self.directories.contains(name) || self.unsure.contains(name) {
            return false;
        }
        self.is_whole || self.gone.contains(name) || leaves.contains(name)
    }
}

/// What came out of it.
#[derive(Debug)]
pub struct Amended {
    /// The id of the root's tree.
    pub tree: Oid,
    /// What is there now and was not counted, or was counted otherwise.
    pub added: Totals,
    /// Directories of these.
    pub added_directories: u64,
    /// What is not there any more, or was counted otherwise.
    pub removed: Totals,
    /// Directories of these.
    pub removed_directories: u64,
    /// Paths at which nothing is, and nothing was.
    pub unknown: BTreeSet<Vec<u8>>,
    /// The directories that are none any more; what was below them is not named.
    pub ended: BTreeSet<Vec<u8>>,
}
