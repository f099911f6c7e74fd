//! The directories that are watched, by number and by path.

use std::collections::{BTreeMap, HashMap};

/// The kernel's number of each, and its path.
#[derive(Debug, Default)]
pub(super) struct Watched {
    paths: HashMap<i32, Vec<u8>>,
    numbers: BTreeMap<Vec<u8>, i32>,
}

impl Watched {
    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    /// The path of the one with this number.
    pub(super) fn path(&self, number: i32) -> Option<&[u8]> {
        self.paths.get(&number).map(Vec::as_slice)
    }

    /// True if the directory at `path` is one of them.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.numbers.contains_key(path)
    }

    /// Adds a directory.
    pub(super) fn insert(&mut self, number: i32, path: &[u8]) {
        // One that was renamed meanwhile keeps its number.
        if let Some(old) = self.paths.insert(number, path.to_vec()) {
            if self.numbers.get(&old) == Some(&number) {
                self.numbers.remove(&old);
            }
        }
        self.numbers.insert(path.to_vec(), number);
    }

    /// Removes the one with this number.
    pub(super) fn forget(&mut self, number: i32) {
        if let Some(path) = self.paths.remove(&number) {
            if self.numbers.get(&path) == Some(&number) {
                self.numbers.remove(&path);
            }
        }
    }

    /// The numbers of the directory at `path` and of all below it.
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

/// The path of `name` in the directory at `above`.
pub(super) fn join(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() {
        name.to_vec()
    } else {
        [above, b"/", name].concat()
    }
}
