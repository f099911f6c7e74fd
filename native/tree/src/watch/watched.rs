//! The watched directories, by number and by path.

use std::collections::{BTreeMap, HashMap};

use huai_format::path::join;

/// The watched directories: the kernel's number and the path of each.
#[derive(Debug, Default)]
pub(super) struct Watched {
    paths: HashMap<i32, Vec<u8>>,
    numbers: BTreeMap<Vec<u8>, i32>,
}

impl Watched {
    /// Return the number of directories.
    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Return the path of the directory with this number, if it is watched.
    pub(super) fn path(&self, number: i32) -> Option<&[u8]> {
        self.paths.get(&number).map(Vec::as_slice)
    }

    /// Return true if the directory at `path` is watched.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.numbers.contains_key(path)
    }

    /// Add a directory.
    pub(super) fn insert(&mut self, number: i32, path: &[u8]) {
        // A renamed directory keeps its number.
        if let Some(old) = self.paths.insert(number, path.to_vec()) {
            if self.numbers.get(&old) == Some(&number) {
                self.numbers.remove(&old);
            }
        }
        self.numbers.insert(path.to_vec(), number);
    }

    /// Remove the directory with this number.
    pub(super) fn forget(&mut self, number: i32) {
        if let Some(path) = self.paths.remove(&number) {
            if self.numbers.get(&path) == Some(&number) {
                self.numbers.remove(&path);
            }
        }
    }

    /// Return the numbers of the directory at `path` and everything below it.
    pub(super) fn below(&self, path: &[u8]) -> Vec<i32> {
        let below = join(path, b"");
        let mut numbers: Vec<i32> = self.numbers.get(path).copied().into_iter().collect();
        let later = self.numbers.range(below.clone()..);
        numbers.extend(
            later
                .take_while(|(each, _)| each.starts_with(&below))
                .map(|(_, number)| *number),
        );
        numbers
    }
}
