//! Paths before directories are moved.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use huai_format::path::RelPath;

/// A map of paths before a set of directory moves.
#[derive(Debug, Default)]
pub struct Renames {
    /// The old path by the new one.
    sources: HashMap<Vec<u8>, Vec<u8>>,
    /// The old paths, which will be free.
    vacated: HashSet<Vec<u8>>,
}

impl Renames {
    /// Make the map of moves, from old to new path.
    pub fn new(moves: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        let vacated = moves.iter().map(|(old, _)| old.clone()).collect();
        let sources = moves.into_iter().map(|(old, new)| (new, old)).collect();
        Self { sources, vacated }
    }

    /// Return the present path of the entry that will be at `path`; `None` if it will be free.
    pub fn before<'a>(&self, path: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if self.sources.is_empty() {
            return Some(path.into());
        }
        let own = RelPath::trusted(path.to_vec());
        for above in std::iter::once(path).chain(own.ancestors()) {
            if let Some(source) = self.sources.get(above) {
                let rest = path.get(above.len()..).unwrap_or_default();
                return Some([source, rest].concat().into());
            }
            if self.vacated.contains(above) {
                return None;
            }
        }
        Some(path.into())
    }

    /// Return true if `path` will be in a moved directory, which itself does not count.
    pub fn arrives(&self, path: &[u8]) -> bool {
        let own = RelPath::trusted(path.to_vec());
        !self.sources.is_empty()
            && own
                .ancestors()
                .any(|above| self.sources.contains_key(above))
    }
}
