//! The changed paths since the last call, each once; too many of them become the whole
//! tree.
//!
//! Rule to keep: each added path is returned exactly once, and a path that could not be used is
//! added again; a lost path is not examined before the next scan.

use std::collections::BTreeMap;

use huai_export::change_list::Touched;
use huai_format::limits::PATH_BYTES;
use huai_format::path::RelPath;

/// The paths to examine next.
#[derive(Debug)]
pub(crate) struct Pending {
    /// The paths, and true if everything below counts as well.
    paths: BTreeMap<Vec<u8>, bool>,
    most: usize,
    is_whole: bool,
}

impl Pending {
    /// Begin with the whole tree, and later hold at most `most` paths.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            paths: BTreeMap::new(),
            most,
            is_whole: true,
        }
    }

    /// Add a path, perhaps with everything below, unless it is below such a one; more than `most`, or a path that is
    /// too long, become the whole tree.
    pub(crate) fn add(&mut self, path: &[u8], all_below: bool) {
        if self.is_whole || self.is_below_another(path) {
            return;
        }
        if let Some(known) = self.paths.get_mut(path) {
            *known |= all_below;
        } else if self.paths.len() < self.most && path.len() <= PATH_BYTES {
            self.paths.insert(path.to_vec(), all_below);
        } else {
            self.add_all();
        }
    }

    /// Add the whole tree.
    pub(crate) fn add_all(&mut self) {
        self.is_whole = true;
        self.paths.clear();
    }

    /// Return the paths added since the last call; `None` is the whole tree.
    pub(crate) fn take_paths(&mut self) -> Option<Vec<Touched>> {
        let paths = std::mem::take(&mut self.paths);
        if std::mem::take(&mut self.is_whole) {
            return None;
        }
        // Many new entries are gone soon.
        let touched = paths.into_iter().map(|(path, all_below)| Touched {
            path: RelPath::trusted(path),
            all_below,
            perhaps: true,
        });
        Some(touched.collect())
    }

    fn is_below_another(&self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut above = slashes.filter_map(|(at, _)| path.get(..at));
        above.any(|above| self.paths.get(above) == Some(&true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(pending: &mut Pending) -> Vec<(Vec<u8>, bool)> {
        let touched = pending.take_paths().unwrap();
        let pair = |each: Touched| (each.path.as_bytes().to_vec(), each.all_below);
        touched.into_iter().map(pair).collect()
    }

    #[test]
    fn the_first_is_the_whole_tree() {
        let mut pending = Pending::new(10);
        pending.add(b"a", false);
        assert_eq!(pending.take_paths(), None);
        assert_eq!(pending.take_paths(), Some(Vec::new()));
    }

    #[test]
    fn each_path_comes_once_and_none_below_another() {
        let mut pending = Pending::new(2);
        pending.take_paths();
        for (path, all_below) in [("a", false), ("a", true), ("a", false), ("a/b", true)] {
            pending.add(path.as_bytes(), all_below);
        }
        pending.add(b"ab", false);
        let expected = [(b"a".to_vec(), true), (b"ab".to_vec(), false)];
        assert_eq!(drain(&mut pending), expected);
        pending.add(b"a/b", false);
        assert_eq!(drain(&mut pending), [(b"a/b".to_vec(), false)]);
    }

    #[test]
    fn too_many_or_too_long_are_the_whole_tree_once() {
        let mut pending = Pending::new(2);
        for paths in [
            vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()],
            vec![vec![b'x'; PATH_BYTES + 1]],
        ] {
            pending.take_paths();
            for path in paths {
                pending.add(&path, false);
            }
            assert_eq!(pending.take_paths(), None);
            pending.add(b"d", false);
            assert_eq!(drain(&mut pending), [(b"d".to_vec(), false)]);
        }
    }
}
