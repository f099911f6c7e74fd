//! A part of a snapshot as a tree gets it: what filters let through, with what modes.
//!
//! An entry depends on the rules and on itself alone, so a hardlink whose leader is left out is a
//! file of its own.  Manifests of directories that are left out are not read.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::entry::{Body, Entry};
use crate::error::Result;
use crate::filter::{Filter, Reached};
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
    filters: Vec<(Arc<Filter>, Reached)>,
    path: Vec<u8>,
}

impl<R: ObjectReader> Selection<R> {
    /// What all of `filters` reach.
    pub fn new(snapshot: Snapshot<R>, source: Source, filters: Vec<Arc<Filter>>) -> Self {
        let filters = filters.into_iter().filter(|filter| !filter.is_empty());
        Self {
            snapshot,
            source,
            filters: filters.map(|each| (each, Reached::default())).collect(),
            path: Vec::new(),
        }
    }

    /// The next directory, with leaves that may not be selected.
    pub fn next_directory(&mut self) -> Result<Option<Listing>> {
        let filters = &mut self.filters;
        let mut reached = |path: &RelPath| {
            let mut filters = filters.iter_mut();
            filters.all(|(filter, reached)| reached.directory(filter, path.as_bytes()))
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

    /// Whether a leaf of the last directory is selected; if so, `entry` is as the tree gets it,
    /// but for its mode.
    pub fn admits(&mut self, directory: &RelPath, entry: &mut Entry<'_>) -> bool {
        if self.filters.is_empty() {
            return true;
        }
        let Self { filters, path, .. } = self;
        path.clear();
        path.extend_from_slice(directory.as_bytes());
        if !directory.is_root() {
            path.push(b'/');
        }
        path.extend_from_slice(&entry.name);
        let admitted = filters
            .iter()
            .all(|(filter, _)| filter.includes(path, false));
        if let (true, Body::File { link, .. }) = (admitted, &mut entry.body) {
            let is_here = |leader: &RelPath| {
                let mut filters = filters.iter_mut();
                filters.all(|(filter, reached)| reached.leaf(filter, leader.as_bytes()))
            };
            *link = link.take().filter(is_here);
        }
        admitted
    }
}
