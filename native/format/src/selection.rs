//! A part of a snapshot as a tree gets it: what filters let through, with what modes.
//!
//! An entry depends on the rules and on itself alone, so a hardlink whose leader is left out is a
//! file of its own.  Manifests of directories that are left out are not read.

use std::collections::VecDeque;

use crate::entry::{Body, Entry};
use crate::error::Result;
use crate::filter::Selector;
use crate::level::Walk;
use crate::manifest::Listing;
use crate::objects::ObjectReader;
use crate::path::RelPath;
use crate::snapshot::Snapshot;

/// Which mode is made of a stated one: the bits of `kept` stay, those of `set` are added.
#[derive(Debug, Clone, Copy)]
pub struct ModeRule {
    /// Bits that stay as they are stated.
    pub kept: u16,
    /// Bits that are always there.
    pub set: u16,
}

/// What is done about modes.
#[derive(Debug, Clone, Copy)]
pub struct Modes {
    /// Of files.
    pub file: ModeRule,
    /// Of directories.
    pub directory: ModeRule,
    /// What is there keeps its own.
    pub local: bool,
}

impl Modes {
    /// The mode that `entry` has to have; none: any is right.
    pub fn of(&self, entry: &Entry<'_>) -> Option<u16> {
        let rule = match entry.body {
            Body::File { .. } => self.file,
            Body::Directory => self.directory,
            // Linux gives every symlink the same one.
            Body::Symlink { .. } => return None,
        };
        (!self.local).then_some(entry.mode & rule.kept | rule.set)
    }
}

/// Where the listings of a selection come from.
#[derive(Debug)]
pub enum Source {
    /// They are read one after the other.
    Walk(Walk),
    /// They were read before.
    Read(VecDeque<Listing>),
}

/// What is selected of a snapshot.
#[derive(Debug)]
pub struct Selection<R> {
    snapshot: Snapshot<R>,
    source: Source,
    selectors: Vec<Selector>,
}

impl<R: ObjectReader> Selection<R> {
    /// What all of `selectors` reach.
    pub fn new(snapshot: Snapshot<R>, source: Source, selectors: Vec<Selector>) -> Self {
        Self {
            snapshot,
            source,
            selectors,
        }
    }

    /// The next directory, with leaves that may not be selected.
    pub fn next_directory(&mut self) -> Result<Option<Listing>> {
        let selectors = &mut self.selectors;
        let mut reached = |path: &RelPath| {
            let mut selectors = selectors.iter_mut();
            selectors.all(|each| each.reaches(path.as_bytes(), true))
        };
        match &mut self.source {
            Source::Walk(walk) => walk.next_of(&self.snapshot, reached),
            Source::Read(listings) => {
                while let Some(listing) = listings.pop_front() {
                    if reached(&listing.path) {
                        return Ok(Some(listing));
                    }
                }
                Ok(None)
            }
        }
    }

    /// A leaf of the last directory as the tree gets it, but for its mode; none if it is not
    /// selected.
    pub fn admitted<'a>(&mut self, directory: &RelPath, entry: Entry<'a>) -> Option<Entry<'a>> {
        let mut selectors = self.selectors.iter_mut();
        selectors.try_fold(entry, |entry, each| each.admitted(directory, entry))
    }
}
