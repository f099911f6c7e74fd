//! Looks up single directories and leaves of a snapshot by path.
//!
//! Own directories that were opened for one path are kept for its neighbours.

use std::collections::HashMap;
use std::sync::Arc;
use std::vec::IntoIter;

use huai_git::error::{Error, Result};
use huai_git::oid::Oid;

use super::entry_limit::EntryLimit;
use super::level::Walk;
use super::manifest::{Listing, Manifest, ManifestBlock};
use super::objects::ObjectReader;
use super::own_directory::{OwnDirectory, Piece};
use super::snapshot::{Located, PieceName, Snapshot, Start, holding};
use crate::escape::escape;
use crate::path::{RelPath, at, parent};
use crate::shared::Shared;

/// The most own directories that are kept, and the most of their subdirectories together.
const RECENT: usize = 64;
const RECENT_CHILDREN: usize = 1 << 16;

/// A lookup in a snapshot.
#[derive(Debug)]
pub struct Lookup<R> {
    snapshot: Arc<Snapshot<R>>,
    /// The largest number of entries that the snapshot may have.
    limit: u64,
    recent: HashMap<Vec<u8>, Opened>,
    children: usize,
    /// The last manifest, which mostly has the neighbours of a path too.
    last: Option<(PieceName, Piece, Arc<Manifest>)>,
}

#[derive(Debug)]
struct Opened {
    tree: Oid,
    directory: Arc<OwnDirectory>,
    /// `None` if not read yet.
    pieces: Option<Vec<Located>>,
}

/// A directory and everything below it, in tree order.
#[derive(Debug)]
pub enum Subtree {
    /// A directory with a tree of its own.
    Own(Walk),
    /// A directory that is inlined in a manifest; empty if the directory is missing.
    Inline(IntoIter<Listing>),
}

impl<R: ObjectReader> Lookup<R> {
    /// Look into a snapshot of at most `limit` entries.
    pub fn new(snapshot: Snapshot<R>, limit: u64) -> Self {
        Self {
            snapshot: Arc::new(snapshot),
            limit,
            recent: HashMap::new(),
            children: 0,
            last: None,
        }
    }

    /// Return the line of the file or symlink at `path`, and its digest, empty if absent; `None` if the leaf is missing.
    pub fn leaf(&mut self, path: &RelPath) -> Result<Option<(Shared, Shared)>> {
        let directory = RelPath::trusted(parent(path.as_bytes()).to_vec());
        let (here, tree) = self.own_above(&directory)?;
        let rest = below(path, &here);
        let start = if rest.contains(&b'/') {
            Start::Directory(first_name(rest).to_vec())
        } else {
            Start::Leaf(rest.to_vec())
        };
        let manifest = self.manifest(&here, tree, &start)?;
        let leaf = manifest.map_or(Ok(None), |manifest| manifest.leaf(rest));
        leaf.map_err(|error| at(&here, error))
    }

    /// Return the attribute fields of the directory at `path`; `None` if it is missing.
    pub fn attributes(&mut self, path: &RelPath) -> Result<Option<Shared>> {
        let (here, tree) = self.own_above(path)?;
        let rest = below(path, &here);
        if rest.is_empty() {
            let piece = self.open(&here, tree)?.directory.manifest;
            return Ok(Some(
                self.snapshot.manifest(None, &piece, &here)?.own.attributes,
            ));
        }
        let start = Start::Directory(first_name(rest).to_vec());
        let manifest = self.manifest(&here, tree, &start)?;
        let block = manifest.as_ref().and_then(|manifest| manifest.block(rest));
        Ok(block.map(|block| block.attributes.clone()))
    }

    /// Return the directory at `path`, without its subdirectories; `None` if it is missing.
    pub fn listing(&mut self, path: &RelPath) -> Result<Option<Listing>> {
        let snapshot = self.snapshot();
        self.subtree(path)?.next_of(&snapshot, |_| true)
    }

    /// Return true if there is a file, a symlink or a directory at `path`.
    pub fn has(&mut self, path: &RelPath) -> Result<bool> {
        let is_leaf = !path.is_root() && self.leaf(path)?.is_some();
        Ok(is_leaf || self.listing(path)?.is_some())
    }

    /// Return the directory at `path` and everything below it; empty if it is missing.
    pub fn subtree(&mut self, path: &RelPath) -> Result<Subtree> {
        let (here, tree) = self.own_above(path)?;
        if here == *path {
            return Ok(Subtree::Own(Walk::below(
                here,
                tree,
                EntryLimit::new(self.limit),
            )));
        }
        let rest = below(path, &here);
        let name = first_name(rest);
        let manifest = self.manifest(&here, tree, &Start::Directory(name.to_vec()))?;
        let inline = manifest.as_ref().and_then(|found| found.directory(name));
        let relative = escape(rest);
        let is_below = |block: &&ManifestBlock| match block.relative.strip_prefix(&*relative) {
            Some(below) => below.is_empty() || below.starts_with(b"/"),
            None => false,
        };
        let blocks = inline.iter().flat_map(|each| &each.blocks).filter(is_below);
        let listings = blocks.map(|block| block.listing(&here));
        Ok(Subtree::Inline(
            listings.collect::<Result<Vec<_>>>()?.into_iter(),
        ))
    }

    /// Return the largest number of entries that the snapshot may have.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Return the snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot<R>> {
        Arc::clone(&self.snapshot)
    }

    /// Return the innermost own directory at `path` or above it; `path` itself may be missing.
    pub fn directory_around(&mut self, path: &RelPath) -> Result<Arc<OwnDirectory>> {
        let (here, tree) = self.own_above(path)?;
        Ok(Arc::clone(&self.open(&here, tree)?.directory))
    }

    /// Return the id of the own tree of the directory at `path`, if it has one; `None` if it is inlined or missing.
    pub fn own_tree(&mut self, path: &RelPath) -> Result<Option<Oid>> {
        let (here, tree) = self.own_above(path)?;
        Ok((here == *path).then_some(tree))
    }

    /// Return path and id of the innermost own directory at `path` or above it.
    pub(crate) fn own_above(&mut self, path: &RelPath) -> Result<(RelPath, Oid)> {
        let (mut here, mut tree) = self.nearest(path);
        while here != *path {
            let name = first_name(below(path, &here));
            let Some(child) = self.open(&here, tree)?.directory.child(name) else {
                break;
            };
            (here, tree) = (here.join(name), child);
        }
        Ok((here, tree))
    }

    /// Return the innermost kept directory at `path` or above it, or the root.
    fn nearest(&self, path: &RelPath) -> (RelPath, Oid) {
        let mut above = std::iter::once(path.as_bytes()).chain(path.ancestors());
        let kept_tree = above.find_map(|path| Some((path, self.recent.get(path)?.tree)));
        let (path, tree) = kept_tree.unwrap_or((b"", self.snapshot.tree));
        (RelPath::trusted(path.to_vec()), tree)
    }

    /// Return the only piece of the own directory at `path`, with the git tree `tree`, that can
    /// contain `start`, and keep it as the last one; `None` if all pieces begin later.
    fn manifest(
        &mut self,
        path: &RelPath,
        tree: Oid,
        start: &Start,
    ) -> Result<Option<Arc<Manifest>>> {
        let Some(holder) = holding(self.pieces(path, tree)?, start) else {
            return Ok(None);
        };
        let (name, piece) = (holder.name, holder.piece);
        if let Some((last_name, last_piece, manifest)) = &self.last {
            if (*last_name, *last_piece) == (name, piece) {
                return Ok(Some(Arc::clone(manifest)));
            }
        }
        let manifest = Arc::new(self.snapshot.manifest(name, &piece, path)?);
        self.last = Some((name, piece, Arc::clone(&manifest)));
        Ok(Some(manifest))
    }

    /// Return the pieces of the own directory at `path`, and keep them.
    fn pieces(&mut self, path: &RelPath, tree: Oid) -> Result<&[Located]> {
        let snapshot = self.snapshot();
        let opened = self.open(path, tree)?;
        if opened.pieces.is_none() {
            opened.pieces = Some(snapshot.pieces(&opened.directory)?);
        }
        Ok(opened.pieces.as_deref().unwrap_or_default())
    }

    /// Return the own directory at `path`, and keep it; if too many are kept, all are dropped first.
    fn open(&mut self, path: &RelPath, tree: Oid) -> Result<&mut Opened> {
        if !self.recent.contains_key(path.as_bytes()) {
            if self.recent.len() >= RECENT || self.children > RECENT_CHILDREN {
                self.recent.clear();
                self.children = 0;
            }
            let directory = Arc::new(self.snapshot.own_directory(path.clone(), tree)?);
            self.children = self.children.saturating_add(directory.children.len());
            let key = path.as_bytes().to_vec();
            let pieces = None;
            let opened = Opened {
                tree,
                directory,
                pieces,
            };
            self.recent.insert(key, opened);
        }
        let opened = self.recent.get_mut(path.as_bytes());
        opened.ok_or_else(|| Error::bug("what was kept is there"))
    }
}

impl Subtree {
    /// Return an empty subtree.
    #[must_use]
    pub fn empty() -> Self {
        Self::Inline(Vec::new().into_iter())
    }

    /// Return the next directory for which `wanted` is true, `None` at the end; `snapshot` is that
    /// of the lookup.
    pub fn next_of<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        mut wanted: impl FnMut(&RelPath) -> bool,
    ) -> Result<Option<Listing>> {
        match self {
            Self::Own(walk) => walk.next_of(snapshot, wanted),
            Self::Inline(listings) => Ok(listings.find(|listing| wanted(&listing.path))),
        }
    }
}

/// Return `path` relative to `here`, which is above it.
fn below<'a>(path: &'a RelPath, here: &RelPath) -> &'a [u8] {
    let rest = path.as_bytes().strip_prefix(here.as_bytes());
    let rest = rest.unwrap_or_default();
    rest.strip_prefix(b"/").unwrap_or(rest)
}

fn first_name(rest: &[u8]) -> &[u8] {
    rest.split(|&byte| byte == b'/').next().unwrap_or_default()
}
