//! The input of `amend` and its result.

use std::collections::BTreeSet;

use huai_git::error::Result;
use huai_git::oid::Oid;

use super::leaves::names;
use crate::write::{Counts, Totals};

/// The new state of one directory, as far as known.
#[derive(Debug, Clone, Default)]
pub struct Amendment {
    /// The path from the root.
    pub path: Vec<u8>,
    /// Its own attributes, as in a listing.
    pub attributes: Vec<u8>,
    /// The lines of leaves that are there, sorted by raw name.
    pub leaves: Vec<u8>,
    /// 32 bytes for each file of these, zeros where absent, or none at all.
    pub digests: Vec<u8>,
    /// The names of subdirectories.
    pub directories: BTreeSet<Vec<u8>>,
    /// Names that no longer exist.
    pub gone: BTreeSet<Vec<u8>>,
    /// Names in an unknown state: their entries in the snapshot stay, without a link, and leaves
    /// with these names are ignored.
    pub unsure: BTreeSet<Vec<u8>>,
    /// True if the directory has no further entries.
    pub is_whole: bool,
}

impl Amendment {
    /// Return all names that are listed as leaves, directories, gone or unsure.
    pub(super) fn names(&self) -> Result<BTreeSet<Vec<u8>>> {
        let mut names = names(&self.leaves)?;
        for more in [&self.directories, &self.gone, &self.unsure] {
            names.extend(more.iter().cloned());
        }
        Ok(names)
    }

    /// True if the subdirectory `name` of the snapshot is no longer a directory; `leaves` are the names of all leaves here.
    pub(super) fn ends(&self, name: &[u8], leaves: &BTreeSet<Vec<u8>>) -> bool {
        if self.directories.contains(name) || self.unsure.contains(name) {
            return false;
        }
        self.is_whole || self.gone.contains(name) || leaves.contains(name)
    }
}

/// The result of `amend`.
#[derive(Debug)]
pub struct Amended {
    /// The id of the root's tree.
    pub tree: Oid,
    /// The entries that are new, or that count differently now.
    pub added: Totals,
    /// The number of new directories.
    pub added_directories: u64,
    /// The entries that are gone, or that counted differently before.
    pub removed: Totals,
    /// The number of removed directories.
    pub removed_directories: u64,
    /// The changed entries, as `diff::count` counts them; incomplete if a directory `ended`.
    pub counts: Counts,
    /// Paths in `gone` that the snapshot does not have either.
    pub unknown: BTreeSet<Vec<u8>>,
    /// Directories that no longer are ones; paths below them are not listed.
    pub ended: BTreeSet<Vec<u8>>,
}
