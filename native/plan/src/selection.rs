//! The part of a snapshot that filters select, with the modes that the local tree gets.
//!
//! An entry depends on the rules and on itself alone, so a hardlink whose leader is left out is a
//! separate file.  Manifests of excluded directories are not read.

use std::collections::VecDeque;

use huai_format::entries::{Body, Entry};
use huai_format::path::RelPath;
use huai_format::snapshots::{Listing, ObjectReader, Snapshot, Walk};
use huai_git::error::Result;

use crate::filter::Selector;

/// A change of modes: the bits of `kept` stay, those of `set` are added.
#[derive(Debug, Clone, Copy)]
pub struct ModeRule {
    /// The bits that stay as stated.
    pub kept: u16,
    /// The bits that are always set.
    pub set: u16,
}

/// The changes of modes by type.
#[derive(Debug, Clone, Copy)]
pub struct Modes {
    /// The rule for files.
    pub file: ModeRule,
    /// The rule for directories.
    pub directory: ModeRule,
    /// True if existing entries keep their mode.
    pub local: bool,
}

impl Modes {
    /// Return the mode that `entry` must have; `None` if any is right, as for a symlink.
    pub fn of(&self, entry: &Entry<'_>) -> Option<u16> {
        let rule = match entry.body {
            Body::File { .. } => self.file,
            Body::Directory => self.directory,
            // Linux gives every symlink the same mode.
            Body::Symlink { .. } => return None,
        };
        (!self.local).then_some(entry.mode & rule.kept | rule.set)
    }
}

/// The source of the listings of a selection.
#[derive(Debug)]
pub enum ListingSource {
    /// A walk that reads them one by one.
    Walk(Walk),
    /// Listings that were read before.
    Read(VecDeque<Listing>),
}

/// The selected part of a snapshot.
#[derive(Debug)]
pub struct Selection<R> {
    snapshot: Snapshot<R>,
    source: ListingSource,
    selectors: Vec<Selector>,
}

impl<R: ObjectReader> Selection<R> {
    /// Select the entries that all `selectors` reach.
    pub fn new(snapshot: Snapshot<R>, source: ListingSource, selectors: Vec<Selector>) -> Self {
        Self {
            snapshot,
            source,
            selectors,
        }
    }

    /// Return the next selected directory, `None` at the end; `admit` selects its leaves.
    pub fn next_directory(&mut self) -> Result<Option<Listing>> {
        let selectors = &mut self.selectors;
        let mut reached = |path: &RelPath| {
            let mut selectors = selectors.iter_mut();
            selectors.all(|each| each.reaches(path.as_bytes(), true))
        };
        match &mut self.source {
            ListingSource::Walk(walk) => walk.next_of(&self.snapshot, reached),
            ListingSource::Read(listings) => {
                while let Some(listing) = listings.pop_front() {
                    if reached(&listing.path) {
                        return Ok(Some(listing));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Return a leaf of the last directory as the local tree gets it, apart from its mode; `None`
    /// if it is not selected.
    pub fn admit<'a>(&mut self, directory: &RelPath, entry: Entry<'a>) -> Option<Entry<'a>> {
        let mut selectors = self.selectors.iter_mut();
        selectors.try_fold(entry, |entry, each| each.admit(directory, entry))
    }
}
