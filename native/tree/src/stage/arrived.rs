//! Records which files are verified, and the run that brought each.

use std::collections::HashMap;

use crate::hashing::hash::Blake3Digest;

/// A part of the digest of a path: equal only for equal paths.
type Path = [u64; 2];

/// A file, identified by path and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKey {
    path: Path,
    content: u64,
}

impl FileKey {
    /// Make the key of a file from its metadata.
    pub fn of(path: &[u8], size: u64, mtime: i64, digest: Option<&Blake3Digest>) -> Self {
        let [size, mtime] = [size.to_le_bytes(), mtime.to_le_bytes()];
        let is_known = [u8::from(digest.is_some())];
        let digest = digest.copied().unwrap_or_default();
        // One block of the hash, in one call.
        let content = [&size[..], &mtime, &is_known, &digest].concat();
        let [content, _] = part_of(&content);
        Self {
            path: part_of(path),
            content,
        }
    }
}

/// The state of a verified file.
#[derive(Debug, Clone, Copy)]
struct VerifiedFile {
    content: u64,
    run: u32,
    finished: bool,
}

/// The verified files, in few bytes each: there may be millions.
#[derive(Debug, Default)]
pub struct VerifiedFiles(HashMap<Path, VerifiedFile>);

impl VerifiedFiles {
    /// Add a file that the run with this number brought; its owner, mode and time are still to be set.
    pub fn add(&mut self, file: FileKey, run: u32) {
        let FileKey { path, content } = file;
        let finished = false;
        self.0.insert(
            path,
            VerifiedFile {
                content,
                run,
                finished,
            },
        );
    }

    /// Mark a file as complete.
    pub fn finish(&mut self, file: &FileKey) {
        if let Some(known) = self.0.get_mut(&file.path) {
            known.finished |= known.content == file.content;
        }
    }

    /// Return the run that brought a file.
    pub fn run(&self, file: &FileKey) -> Option<u32> {
        self.find(file).map(|known| known.run)
    }

    /// Return true if a run brought the file at a path.
    pub fn has(&self, path: &[u8], run: u32) -> bool {
        let entry = self.0.get(&part_of(path));
        entry.is_some_and(|entry| entry.run == run)
    }

    /// Return true if a file can be published without further changes.
    pub fn is_finished(&self, file: &FileKey) -> bool {
        self.find(file).is_some_and(|known| known.finished)
    }

    fn find(&self, file: &FileKey) -> Option<&VerifiedFile> {
        let entry = self.0.get(&file.path);
        entry.filter(|entry| entry.content == file.content)
    }

    /// Return the number of files.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Return true if there are no files.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn part_of(bytes: &[u8]) -> Path {
    let hash = blake3::hash(bytes);
    let mut numbers = hash.as_bytes().chunks_exact(size_of::<u64>());
    [(); 2].map(|()| {
        let number = numbers.next().and_then(|bytes| bytes.try_into().ok());
        number.map_or(0, u64::from_le_bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_file_counts() {
        let keys = [
            FileKey::of(b"a", 1, 2, None),
            FileKey::of(b"b", 1, 2, None),
            FileKey::of(b"a", 2, 2, None),
            FileKey::of(b"a", 1, 3, None),
            FileKey::of(b"a", 1, 2, Some(&[7; 32])),
            FileKey::of(b"a", 1, 2, Some(&[0; 32])),
        ];
        for (run, key) in (0..).zip(keys) {
            let mut arrived = VerifiedFiles::default();
            arrived.add(key, run);
            let count = keys.iter().filter(|key| arrived.run(key) == Some(run));
            assert_eq!(count.collect::<Vec<_>>(), [&key]);
            assert_eq!(arrived.has(b"a", run), run != 1);
            assert!(!arrived.has(b"a", run + 1));
        }
    }

    #[test]
    fn what_came_anew_is_not_finished() {
        let key = FileKey::of(b"a", 1, 2, None);
        let mut arrived = VerifiedFiles::default();
        arrived.finish(&key);
        assert!(arrived.is_empty() && !arrived.is_finished(&key));
        arrived.add(key, 1);
        arrived.finish(&FileKey::of(b"a", 2, 2, None));
        assert!(!arrived.is_finished(&key));
        arrived.finish(&key);
        assert!(arrived.is_finished(&key));
        arrived.add(key, 2);
        assert!(!arrived.is_finished(&key));
        assert_eq!(arrived.len(), 1);
    }
}
