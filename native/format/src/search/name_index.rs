//! The names of a module's snapshots, kept from one search to the next.
//!
//! They are kept by the ids of trees and pieces, so that a search in another commit reads only what
//! changed.  Rule: memory is bounded; with too many names, all are dropped first.

use std::collections::HashMap;
use std::sync::Arc;

use huai_git::error::{Error, Result};
use huai_git::find::split_before;
use huai_git::oid::Oid;

use crate::path::RelPath;
use crate::snapshots::{ObjectReader, Piece, PieceName, Snapshot, Start};

/// The bytes that an id, a name or an item costs besides its text.
const OVERHEAD: usize = 100;

/// An own directory: its pieces in order, and its subdirectories with own trees.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) pieces: Vec<(Start, PieceName, Piece)>,
    pub(super) children: Vec<(Vec<u8>, Oid)>,
}

/// The names of own directories and of pieces.
#[derive(Debug, Default)]
pub struct NameIndex {
    directories: HashMap<Oid, Arc<Directory>>,
    /// The lines of pieces without attributes.
    names: HashMap<Oid, Arc<Vec<u8>>>,
    bytes: usize,
    most: usize,
}

impl NameIndex {
    /// Make an index that keeps about `most` bytes.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Return the bytes that are kept, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Make room for a text and for so many items; returns false if there is too little.
    fn make_room(&mut self, text: usize, items: usize) -> bool {
        let size = items.saturating_mul(OVERHEAD).saturating_add(text);
        if self.bytes.saturating_add(size) > self.most {
            *self = Self::new(self.most);
        }
        let fits = size <= self.most;
        self.bytes = self.bytes.saturating_add(if fits { size } else { 0 });
        fits
    }
}

/// A reader of names in a snapshot, of those that are kept or of its objects.
pub(super) struct NameReader<'a, R> {
    pub(super) index: &'a mut NameIndex,
    pub(super) snapshot: &'a Snapshot<R>,
    /// Returns true to end with the error `Stopped`.
    pub(super) stopped: &'a dyn Fn() -> bool,
}

impl<R: ObjectReader> NameReader<'_, R> {
    /// Return the own directory at `path` with the git tree `tree`.
    pub(super) fn directory(&mut self, path: &RelPath, tree: Oid) -> Result<Arc<Directory>> {
        self.check()?;
        if let Some(directory) = self.index.directories.get(&tree) {
            return Ok(Arc::clone(directory));
        }
        let own = self.snapshot.own_directory(path.clone(), tree)?;
        let mut pieces = Vec::new();
        for (name, piece) in self.snapshot.piece_ids(&own)? {
            let names = self.names(path, name, &piece)?;
            let start = match name {
                None => Start::Own,
                Some(_) => Start::parse(split_before(&names, b'\n').0, path)?,
            };
            pieces.push((start, name, piece));
        }
        pieces.sort();
        let children = own.children;
        let text = children.iter().map(|(name, _)| name.len()).sum();
        let items = pieces.len().saturating_add(children.len());
        let directory = Arc::new(Directory { pieces, children });
        if self.index.make_room(text, items) {
            let shared = Arc::clone(&directory);
            self.index.directories.insert(tree, shared);
        }
        Ok(directory)
    }

    /// Return the names of a piece as it spells them, each with a newline; directories end with a
    /// slash.
    pub(super) fn names(
        &mut self,
        path: &RelPath,
        name: PieceName,
        piece: &Piece,
    ) -> Result<Arc<Vec<u8>>> {
        self.check()?;
        if let Some(names) = self.index.names.get(&piece.manifest) {
            return Ok(Arc::clone(names));
        }
        let text = self.snapshot.manifest_text(name, piece, path)?;
        let mut names = Vec::new();
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            names.extend_from_slice(split_before(line, b'\t').0);
            names.push(b'\n');
        }
        names.shrink_to_fit();
        let names = Arc::new(names);
        if self.index.make_room(names.len(), 1) {
            self.index.names.insert(piece.manifest, Arc::clone(&names));
        }
        Ok(names)
    }

    fn check(&self) -> Result<()> {
        if (self.stopped)() {
            return Err(Error::Stopped);
        }
        Ok(())
    }
}
