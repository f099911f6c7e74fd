//! Records which files are verified, and the run that brought each.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::hashing::hash::Blake3Digest;

/// A file, identified by path and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKey<'a> {
    /// The path.
    pub path: &'a [u8],
    /// The size in bytes.
    pub size: u64,
    /// The time in nanoseconds since the epoch.
    pub mtime: i64,
    /// The digest, if it is known.
    pub digest: Option<Blake3Digest>,
}

/// The state of a verified file.
#[derive(Debug, Clone, Copy)]
struct VerifiedFile {
    content: u64,
    run: u32,
    finished: bool,
}

/// The verified files, in few bytes each: there may be millions.
///
/// Paths and contents are kept as hashes under two keys that are random and secret, so that no
/// upstream can choose two that collide.
#[derive(Debug, Default)]
pub struct VerifiedFiles {
    files: HashMap<[u64; 2], VerifiedFile>,
    hashers: [RandomState; 2],
}

impl VerifiedFiles {
    /// Add a file that the run with this number brought, in place of another content at its path;
    /// its owner, mode and time are still to be set.
    pub fn add(&mut self, file: &FileKey<'_>, run: u32) {
        let added = VerifiedFile {
            content: self.content(file),
            run,
            finished: false,
        };
        self.files.insert(self.path(file.path), added);
    }

    /// Mark a file as complete; does nothing unless this content is verified at its path.
    pub fn finish(&mut self, file: &FileKey<'_>) {
        let content = self.content(file);
        if let Some(known) = self.files.get_mut(&self.path(file.path)) {
            known.finished |= known.content == content;
        }
    }

    /// Return the run that brought a file; `None` if no such content is verified.
    pub fn run(&self, file: &FileKey<'_>) -> Option<u32> {
        self.find(file).map(|known| known.run)
    }

    /// Return true if a run brought the file at a path.
    pub fn has(&self, path: &[u8], run: u32) -> bool {
        let entry = self.files.get(&self.path(path));
        entry.is_some_and(|entry| entry.run == run)
    }

    /// Return true if a file can be published without further changes.
    pub fn is_finished(&self, file: &FileKey<'_>) -> bool {
        self.find(file).is_some_and(|known| known.finished)
    }

    /// Return the verified file of this path, if it has this content.
    fn find(&self, file: &FileKey<'_>) -> Option<&VerifiedFile> {
        let entry = self.files.get(&self.path(file.path));
        entry.filter(|entry| entry.content == self.content(file))
    }

    fn path(&self, path: &[u8]) -> [u64; 2] {
        self.hashers.each_ref().map(|hasher| hasher.hash_one(path))
    }

    fn content(&self, file: &FileKey<'_>) -> u64 {
        let [hasher, _] = &self.hashers;
        hasher.hash_one((file.size, file.mtime, &file.digest))
    }

    /// Return the number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Return true if there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &[u8], size: u64, mtime: i64, digest: Option<Blake3Digest>) -> FileKey<'_> {
        FileKey {
            path,
            size,
            mtime,
            digest,
        }
    }

    #[test]
    fn each_part_of_a_file_counts() {
        let keys = [
            key(b"a", 1, 2, None),
            key(b"b", 1, 2, None),
            key(b"a", 2, 2, None),
            key(b"a", 1, 3, None),
            key(b"a", 1, 2, Some([7; 32])),
            key(b"a", 1, 2, Some([0; 32])),
        ];
        for (run, key) in (0..).zip(&keys) {
            let mut arrived = VerifiedFiles::default();
            arrived.add(key, run);
            let count = keys.iter().filter(|key| arrived.run(key) == Some(run));
            assert_eq!(count.collect::<Vec<_>>(), [key]);
            assert_eq!(arrived.has(b"a", run), run != 1);
            assert!(!arrived.has(b"a", run + 1));
        }
    }

    #[test]
    fn what_came_anew_is_not_finished() {
        let file = &key(b"a", 1, 2, None);
        let mut arrived = VerifiedFiles::default();
        arrived.finish(file);
        assert!(arrived.is_empty() && !arrived.is_finished(file));
        arrived.add(file, 1);
        arrived.finish(&key(b"a", 2, 2, None));
        assert!(!arrived.is_finished(file));
        arrived.finish(file);
        assert!(arrived.is_finished(file));
        arrived.add(file, 2);
        assert!(!arrived.is_finished(file));
        assert_eq!(arrived.len(), 1);
    }
}
