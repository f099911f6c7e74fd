//! Which files are verified, and where each of them lies.

use std::collections::HashMap;

use crate::hashing::hash::Digest;

/// A path, as a part of its digest: equal only if the path is.
type Path = [u64; 2];

/// A file, by path and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    path: Path,
    content: u64,
}

impl Key {
    /// Of what the metadata say of a file.
    pub fn of(path: &[u8], size: u64, mtime: i64, digest: Option<&Digest>) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&size.to_le_bytes());
        hasher.update(&mtime.to_le_bytes());
        hasher.update(digest.map_or(&[], |digest| &digest[..]));
        let [content, _] = part_of(&hasher);
        Self {
            path: key_of(path),
            content,
        }
    }
}

/// What is known of a verified file.
#[derive(Debug, Clone, Copy)]
struct Known {
    content: u64,
    run: u32,
    finished: bool,
}

/// Verified files, and the run that brought each.  Few bytes for each: there may be millions.
#[derive(Debug, Default)]
pub struct Arrived(HashMap<Path, Known>);

impl Arrived {
    /// One more; its owner, mode and time are still to be set.
    pub fn add(&mut self, file: Key, run: u32) {
        let Key { path, content } = file;
        let finished = false;
        self.0.insert(
            path,
            Known {
                content,
                run,
                finished,
            },
        );
    }

    /// It has them.
    pub fn finish(&mut self, file: &Key) {
        if let Some(known) = self.0.get_mut(&file.path) {
            known.finished |= known.content == file.content;
        }
    }

    /// Which run brought a file.
    pub fn run(&self, file: &Key) -> Option<u32> {
        self.known(file).map(|known| known.run)
    }

    /// Whether a run brought the file at a path.
    pub fn has(&self, path: &[u8], run: u32) -> bool {
        let known = self.0.get(&key_of(path));
        known.is_some_and(|known| known.run == run)
    }

    /// Whether it can be published as it is.
    pub fn is_finished(&self, file: &Key) -> bool {
        self.known(file).is_some_and(|known| known.finished)
    }

    fn known(&self, file: &Key) -> Option<&Known> {
        let known = self.0.get(&file.path);
        known.filter(|known| known.content == file.content)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn key_of(path: &[u8]) -> Path {
    part_of(blake3::Hasher::new().update(path))
}

fn part_of(hasher: &blake3::Hasher) -> Path {
    let mut output = hasher.finalize_xof();
    [(); 2].map(|()| {
        let mut bytes = [0; 8];
        output.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_file_counts() {
        let keys = [
            Key::of(b"a", 1, 2, None),
            Key::of(b"b", 1, 2, None),
            Key::of(b"a", 2, 2, None),
            Key::of(b"a", 1, 3, None),
            Key::of(b"a", 1, 2, Some(&[7; 32])),
            Key::of(b"a", 1, 2, Some(&[0; 32])),
        ];
        for (run, key) in (0..).zip(keys) {
            let mut arrived = Arrived::default();
            arrived.add(key, run);
            let known = keys.iter().filter(|key| arrived.run(key) == Some(run));
            assert_eq!(known.collect::<Vec<_>>(), [&key]);
            assert_eq!(arrived.has(b"a", run), run != 1);
            assert!(!arrived.has(b"a", run + 1));
        }
    }

    #[test]
    fn what_came_anew_is_not_finished() {
        let key = Key::of(b"a", 1, 2, None);
        let mut arrived = Arrived::default();
        arrived.finish(&key);
        assert!(arrived.is_empty() && !arrived.is_finished(&key));
        arrived.add(key, 1);
        arrived.finish(&Key::of(b"a", 2, 2, None));
        assert!(!arrived.is_finished(&key));
        arrived.finish(&key);
        assert!(arrived.is_finished(&key));
        arrived.add(key, 2);
        assert!(!arrived.is_finished(&key));
        assert_eq!(arrived.len(), 1);
    }
}
