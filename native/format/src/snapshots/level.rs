//! Reads own directories from front to end, and whole trees, as listings in tree order.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::iter::Peekable;
use std::vec::IntoIter;

use huai_git::error::{Error, Result};
use huai_git::oid::Oid;

use super::entry_limit::EntryLimit;
use super::manifest::{InlineDirectory, Listing, Manifest, ManifestBlock};
use super::objects::ObjectReader;
use super::snapshot::{Located, Snapshot};
use crate::entries::{digests, has_leaf};
use crate::path::{RelPath, at};
use crate::shared::Shared;

/// The next part of an own directory.
#[derive(Debug)]
pub enum Step {
    /// A directory in its manifest; the own directory comes first.
    Listing(Listing),
    /// A subdirectory with a tree of its own, and its id.
    Own(RelPath, Oid),
}

/// A reader of one own directory, from front to end.
#[derive(Debug)]
pub struct Level {
    path: RelPath,
    own: Option<Listing>,
    leaves: Shared,
    pieces: IntoIter<Located>,
    inline: VecDeque<InlineDirectory>,
    children: Peekable<IntoIter<(Vec<u8>, Oid)>>,
    blocks: IntoIter<ManifestBlock>,
    previous: Vec<u8>,
}

impl Level {
    /// Open the directory at `path` with the git tree `tree`; reads its pieces up to the first with an inlined
    /// subdirectory.
    pub fn open<R: ObjectReader>(
        snapshot: &Snapshot<R>,
        path: RelPath,
        tree: Oid,
        limit: &mut EntryLimit,
    ) -> Result<Self> {
        let directory = snapshot.own_directory(path, tree)?;
        limit.spend_trees(directory.children.len(), &directory.path)?;
        let mut level = Self {
            own: None,
            leaves: Shared::default(),
            pieces: snapshot.pieces(&directory)?.into_iter(),
            inline: VecDeque::new(),
            children: directory.children.into_iter().peekable(),
            blocks: Vec::new().into_iter(),
            previous: Vec::new(),
            path: directory.path,
        };
        let mut parts: Vec<ManifestBlock> = Vec::new();
        while level.inline.is_empty() {
            let Some(manifest) = level.next_manifest(snapshot, limit)? else {
                break;
            };
            parts.push(manifest.own);
            level.inline = manifest.inline.into();
        }
        let own = join_blocks(level.path.clone(), &parts);
        level.leaves = own.leaves.clone();
        level.own = Some(own);
        Ok(level)
    }

    /// Return the next part in tree order, if there is one.  Fails if subdirectories are not sorted, or have the name
    /// of a leaf.
    pub fn next<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        limit: &mut EntryLimit,
    ) -> Result<Option<Step>> {
        if let Some(own) = self.own.take() {
            return Ok(Some(Step::Listing(own)));
        }
        if let Some(below) = self.next_block()? {
            return Ok(Some(below));
        }
        self.refill(snapshot, limit)?;
        let order = match (self.inline.front(), self.children.peek()) {
            (None, None) => return Ok(None),
            (Some(inline), Some((child, _))) => inline.name.cmp(child),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        if order.is_le() {
            let Some(found) = self.inline.pop_front() else {
                return Ok(None);
            };
            self.check(&found.name)?;
            self.previous = found.name;
            self.blocks = found.blocks.into_iter();
            return self.next_block();
        }
        let Some((name, oid)) = self.children.next() else {
            return Ok(None);
        };
        self.check(&name)?;
        let path = self.path.join(&name);
        self.previous = name;
        Ok(Some(Step::Own(path, oid)))
    }

    fn next_block(&mut self) -> Result<Option<Step>> {
        let block = self.blocks.next();
        block
            .map(|block| block.listing(&self.path).map(Step::Listing))
            .transpose()
    }

    /// Read more pieces after the last subdirectory of those that were read; a leaf in these is an error.
    fn refill<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        limit: &mut EntryLimit,
    ) -> Result<()> {
        while self.inline.is_empty() {
            let Some(manifest) = self.next_manifest(snapshot, limit)? else {
                break;
            };
            if manifest.is_first || !manifest.own.leaves.is_empty() {
                let rule = "a file or symlink after a subdirectory";
                return Err(at(&self.path, Error::new(rule)));
            }
            self.inline = manifest.inline.into();
        }
        Ok(())
    }

    /// Read the next piece, and spend its entries of `limit`; `None` after the last.
    fn next_manifest<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        limit: &mut EntryLimit,
    ) -> Result<Option<Manifest>> {
        let Some(Located { name, piece, .. }) = self.pieces.next() else {
            return Ok(None);
        };
        let manifest = snapshot.manifest(name, &piece, &self.path)?;
        limit.spend(manifest.entries(), &self.path)?;
        limit.spend_bytes(manifest.size(), &self.path)?;
        Ok(Some(manifest))
    }

    /// Check that a subdirectory sorts after the last one, and that no leaf has its name.
    fn check(&self, name: &[u8]) -> Result<()> {
        let place = |error| at(&self.path.join(name), error);
        if *name <= *self.previous {
            let rule = "subdirectories out of order or repeated";
            return Err(place(Error::new(rule)));
        }
        if has_leaf(&self.leaves, name).map_err(place)? {
            return Err(place(Error::new(
                "a name is both a directory and a file or symlink",
            )));
        }
        Ok(())
    }
}

/// Join the parts of one directory from several pieces.
pub fn join_blocks(path: RelPath, parts: &[ManifestBlock]) -> Listing {
    let attributes = parts.iter().find(|part| !part.attributes.is_empty());
    let columns: Vec<_> = parts
        .iter()
        .map(|part| (part.files, part.digests.clone()))
        .collect();
    let leaves = if let [only] = parts {
        only.leaves.clone()
    } else {
        let texts: Vec<&[u8]> = parts.iter().map(|part| &*part.leaves).collect();
        Shared::from(texts.concat())
    };
    Listing {
        path,
        attributes: attributes
            .map(|part| part.attributes.clone())
            .unwrap_or_default(),
        leaves,
        digests: digests::join(&columns),
    }
}

/// A walk through a whole tree, as listings in tree order.
#[derive(Debug)]
pub struct Walk {
    root: Option<(RelPath, Oid)>,
    levels: Vec<Level>,
    limit: EntryLimit,
    is_shallow: bool,
}

impl Walk {
    /// Walk through all of `snapshot`.
    pub fn new<R: ObjectReader>(snapshot: &Snapshot<R>, limit: EntryLimit) -> Self {
        Self::below(RelPath::root(), snapshot.tree, limit)
    }

    /// Walk through the own directory `path`, beginning with itself.
    pub fn below(path: RelPath, tree: Oid, limit: EntryLimit) -> Self {
        Self {
            root: Some((path, tree)),
            levels: Vec::new(),
            limit,
            is_shallow: false,
        }
    }

    /// Leave out own directories below the first one.
    #[must_use]
    pub fn shallow(self) -> Self {
        Self {
            is_shallow: true,
            ..self
        }
    }

    /// Return the next directory; `None` at the end.
    pub fn next<R: ObjectReader>(&mut self, snapshot: &Snapshot<R>) -> Result<Option<Listing>> {
        self.next_of(snapshot, |_| true)
    }

    /// Return the next directory for which `wanted` is true, `None` at the end; own directories for
    /// which it is false are not read, nor is what is below them.
    pub fn next_of<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        mut wanted: impl FnMut(&RelPath) -> bool,
    ) -> Result<Option<Listing>> {
        let mut own = self.root.take();
        loop {
            if let Some((path, tree)) = own.take() {
                let level = Level::open(snapshot, path, tree, &mut self.limit)?;
                self.levels.push(level);
            }
            let Some(level) = self.levels.last_mut() else {
                return Ok(None);
            };
            match level.next(snapshot, &mut self.limit)? {
                Some(Step::Listing(listing)) if wanted(&listing.path) => return Ok(Some(listing)),
                Some(Step::Own(path, tree)) if !self.is_shallow && wanted(&path) => {
                    own = Some((path, tree));
                }
                Some(_) => {}
                None => {
                    self.levels.pop();
                }
            }
        }
    }
}
