//! A part of a tree.

use std::collections::HashSet;

use huai_format::path::{basename, is_within, parent};

/// A path with everything below it, except some subdirectories.
#[derive(Debug, Default)]
pub struct Scope {
    /// The topmost path; empty for the whole tree.
    pub top: Vec<u8>,
    /// The directories that are left out, with everything below them.
    pub left_out: HashSet<Vec<u8>>,
    /// The place after which the scope begins; empty for all.
    pub after: Vec<u8>,
}

impl Scope {
    /// Return true if a path at or below the top is not left out itself and comes after the start of the scope; its
    /// ancestors are not looked at.
    pub(crate) fn holds(&self, path: &[u8], is_directory: bool) -> bool {
        !self.left_out.contains(path)
            && (self.after.is_empty() || tree_order(path, is_directory) > self.after)
    }

    /// Return true if a path below the directory `path` may be in the scope.
    pub(crate) fn enters(&self, path: &[u8]) -> bool {
        let key = || tree_order(path, true);
        let comes =
            || self.after.is_empty() || key() > self.after || self.after.starts_with(&key());
        !self.left_out.contains(path) && comes()
    }

    /// Return true if `path` is the top or below it.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        is_within(path, &self.top)
    }
}

/// Return the place of a path in tree order as a key: keys compare as paths do, and the key of a
/// directory is a prefix of all keys below it.  `huai_schema.paths.tree_order` makes the same keys.
pub(crate) fn tree_order(path: &[u8], is_directory: bool) -> Vec<u8> {
    let mut key = Vec::with_capacity(path.len() + 2);
    if path.is_empty() {
        return key;
    }
    let above = parent(path);
    if !above.is_empty() {
        for name in above.split(|byte| *byte == b'/') {
            append(&mut key, 1, name);
        }
    }
    let name = basename(path);
    append(&mut key, u8::from(is_directory), name);
    key
}

fn append(key: &mut Vec<u8>, mark: u8, name: &[u8]) {
    key.push(mark);
    key.extend_from_slice(name);
    key.push(0);
}
