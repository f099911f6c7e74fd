//! A part of a tree.

use std::collections::HashSet;

use huai_format::path::{basename, parent};

/// A path with everything below it, without some subdirectories.
#[derive(Debug, Default)]
pub struct Scope {
    /// Where it begins; empty: the whole tree.
    pub top: Vec<u8>,
    /// Directories that are left out, with everything below them.
    pub apart: HashSet<Vec<u8>>,
    /// Only what comes after this place belongs to it; empty: all.
    pub after: Vec<u8>,
}

impl Scope {
    /// Whether a path that is the top or below it belongs to the scope.
    pub(crate) fn holds(&self, path: &[u8], directory: bool) -> bool {
        !self.apart.contains(path)
            && (self.after.is_empty() || tree_order(path, directory) > self.after)
    }

    /// Whether a path below the directory `path` may belong to it.
    pub(crate) fn enters(&self, path: &[u8]) -> bool {
        let key = || tree_order(path, true);
        let comes =
            || self.after.is_empty() || key() > self.after || self.after.starts_with(&key());
        !self.apart.contains(path) && comes()
    }

    /// Whether `path` is the top or below it.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        let rest = path.strip_prefix(&*self.top);
        self.top.is_empty() || rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
    }
}

/// The place of a path in tree order: keys compare as the paths do, and that of a directory is the
/// beginning of those below it.  `huai_schema.paths.tree_order` makes the same ones.
pub(crate) fn tree_order(path: &[u8], directory: bool) -> Vec<u8> {
    let mut key = Vec::with_capacity(path.len() + 2);
    if path.is_empty() {
        return key;
    }
    let above = parent(path);
    if !above.is_empty() {
        for name in above.split(|byte| *byte == b'/') {
            put(&mut key, 1, name);
        }
    }
    let name = basename(path);
    put(&mut key, u8::from(directory), name);
    key
}

fn put(key: &mut Vec<u8>, mark: u8, name: &[u8]) {
    key.push(mark);
    key.extend_from_slice(name);
    key.push(0);
}
