//! Directories that vanished here and came back there, found by their ids.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::git::oid::Oid;
use crate::path::RelPath;

/// Which vanished directories can be renamed whole; each serves once.
#[derive(Debug, Default)]
pub struct Moves {
    sources: HashMap<Oid, VecDeque<RelPath>>,
    broken: HashSet<Vec<u8>>,
    taken: HashSet<Vec<u8>>,
}

impl Moves {
    /// A directory that is not at `path` any more.
    pub fn offer(&mut self, path: RelPath, oid: Oid) {
        self.sources.entry(oid).or_default().push_back(path);
    }

    /// Where a directory with this id came from, if it is still there in one piece.
    pub fn take(&mut self, oid: &Oid) -> Option<RelPath> {
        let sources = self.sources.get_mut(oid)?;
        // What cannot be taken now never can be.
        let path = std::iter::from_fn(|| sources.pop_front()).find(|path| {
            let gone = |above| self.taken.contains(above);
            !self.broken.contains(path.as_bytes()) && !path.ancestors().any(gone)
        })?;
        self.taken.insert(path.as_bytes().to_vec());
        self.broken.extend(path.ancestors().map(<[u8]>::to_vec));
        Some(path)
    }

    /// Whether the directory at `path` went elsewhere.
    pub fn has_taken(&self, path: &RelPath) -> bool {
        self.taken.contains(path.as_bytes())
    }
}
