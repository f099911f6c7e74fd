//! The directories of a walk, in tree order.
//!
//! A directory is added only when the one before it in its parent is claimed, so that a directory
//! with a million subdirectories costs one waiting entry and their names.

use std::collections::BTreeMap;

use huai_sys::error::Errno;

/// The bytes that may be ready before the caller needs them.
const AHEAD: usize = 8 << 20;
/// The bytes of a batch, unless one frame is larger.
pub(crate) const BATCH: usize = 256 << 10;

/// A path with its components separated by NUL, so that comparing bytes is tree order.
type Key = Vec<u8>;

/// The names of a directory's subdirectories that are not added yet.
#[derive(Debug, Default)]
struct Siblings {
    /// The names, each ended by NUL.
    names: Vec<u8>,
    next: usize,
    /// The length of the parent's key, with its NUL.
    above: usize,
}

/// The result for one directory.
pub(crate) trait Frame {
    /// Return the number of bytes that the frame holds in memory.
    fn size(&self) -> usize;
}

/// The result of reading a directory.
#[derive(Debug)]
pub(crate) struct Reading<F> {
    /// The frame; `None` if the directory vanished.
    pub(crate) frame: Option<F>,
    /// The subdirectories' names in order, each ended by NUL.
    pub(crate) children: Vec<u8>,
}

impl<F> Default for Reading<F> {
    fn default() -> Self {
        Self {
            frame: None,
            children: Vec::new(),
        }
    }
}

/// The waiting, claimed and finished directories.
#[derive(Debug)]
pub(crate) struct Queue<F> {
    waiting: BTreeMap<Key, Siblings>,
    running: usize,
    done: BTreeMap<Key, Option<F>>,
    /// The bytes of finished directories.
    ready: usize,
    /// The error that ended the walk.
    failure: Option<(Errno, Vec<u8>)>,
}

impl<F: Frame> Queue<F> {
    /// Begin with the directory `top`.
    pub(crate) fn new(top: &[u8]) -> Self {
        Self {
            waiting: BTreeMap::from([(key(top), Siblings::default())]),
            running: 0,
            done: BTreeMap::new(),
            ready: 0,
            failure: None,
        }
    }

    /// Return true if a thread can claim a directory now.  The one that the caller needs next is
    /// never held back, however much is ready.
    pub(crate) fn may_claim(&self) -> bool {
        self.failure.is_none()
            && !self.waiting.is_empty()
            && (!self.is_full() || (self.running == 0 && self.blocked()))
    }

    /// Return true if no more bytes may be ready.
    pub(crate) fn is_full(&self) -> bool {
        self.ready >= AHEAD
    }

    /// Return true if a claimed directory may add more to claim.
    pub(crate) fn is_busy(&self) -> bool {
        self.failure.is_none() && self.running > 0 && !self.is_full()
    }

    /// Claim the first waiting directory; returns the key to settle it with, `None` if none may be
    /// claimed now.
    pub(crate) fn claim(&mut self) -> Option<Key> {
        if !self.may_claim() {
            return None;
        }
        let (key, siblings) = self.waiting.pop_first()?;
        self.add_next(&key, siblings);
        self.running += 1;
        Some(key)
    }

    /// Set the result of a claimed directory, and add its first subdirectory; an error ends the walk.
    pub(crate) fn settle(&mut self, key: Key, reading: Result<Reading<F>, Errno>) {
        self.running -= 1;
        match reading {
            Ok(reading) => {
                let siblings = Siblings {
                    names: reading.children,
                    next: 0,
                    above: if key.is_empty() { 0 } else { key.len() + 1 },
                };
                self.add_next(&key, siblings);
                self.ready += size_of_done(&key, reading.frame.as_ref());
                self.done.insert(key, reading.frame);
            }
            Err(errno) => self.fail(errno, path(&key)),
        }
    }

    /// End the walk; the first error stays.
    pub(crate) fn fail(&mut self, errno: Errno, path: Vec<u8>) {
        self.failure.get_or_insert((errno, path));
    }

    /// Return the error that ended the walk early, if one did.
    pub(crate) fn failure(&self) -> Option<&(Errno, Vec<u8>)> {
        self.failure.as_ref()
    }

    /// Return true if all frames were returned.
    pub(crate) fn is_finished(&self) -> bool {
        self.waiting.is_empty() && self.done.is_empty()
    }

    /// Return the next frames in tree order that are ready, of about `BATCH` bytes; none while an earlier one is
    /// awaited.
    pub(crate) fn take_batch(&mut self) -> Vec<F> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while bytes < BATCH && !self.blocked() {
            let Some((key, frame)) = self.done.pop_first() else {
                break;
            };
            let size = size_of_done(&key, frame.as_ref());
            self.ready -= size;
            bytes += size;
            batch.extend(frame);
        }
        batch
    }

    /// Return true if a waiting directory precedes all finished ones.
    fn blocked(&self) -> bool {
        match (self.waiting.first_key_value(), self.done.first_key_value()) {
            (Some((waiting, _)), Some((done, _))) => waiting < done,
            (waiting, _) => waiting.is_some(),
        }
    }

    /// Add the next sibling; `of` is a directory of the same parent, or the parent itself.
    fn add_next(&mut self, of: &[u8], mut siblings: Siblings) {
        let rest = &siblings.names[siblings.next..];
        let Some(length) = rest.iter().position(|byte| is_end(*byte)) else {
            return;
        };
        let mut key = Key::with_capacity(siblings.above + length);
        key.extend(of.iter().take(siblings.above));
        if key.len() < siblings.above {
            key.push(0);
        }
        key.extend(rest.iter().take(length));
        siblings.next += length + 1;
        self.waiting.insert(key, siblings);
    }
}

/// Return true at the end of a name.
fn is_end(byte: u8) -> bool {
    #[cfg(test)]
    crate::steps::count();
    byte == 0
}

/// Return the path of a key.
pub(crate) fn path(key: &[u8]) -> Vec<u8> {
    key.iter()
        .map(|byte| if *byte == 0 { b'/' } else { *byte })
        .collect()
}

fn key(path: &[u8]) -> Key {
    path.iter()
        .map(|byte| if *byte == b'/' { 0 } else { *byte })
        .collect()
}

fn size_of_done<F: Frame>(key: &[u8], frame: Option<&F>) -> usize {
    key.len() + size_of::<F>() + frame.map_or(0, Frame::size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps;

    impl Frame for u32 {
        fn size(&self) -> usize {
            0
        }
    }

    /// Pass a directory with `count` subdirectories through a queue.
    fn pass(count: u32) {
        let mut queue: Queue<u32> = Queue::new(b"");
        let mut frames = 0;
        while !queue.is_finished() {
            let key = queue.claim().unwrap();
            let names = |number| format!("{number:08}\0").into_bytes();
            let reading = Reading {
                frame: Some(0),
                children: if key.is_empty() {
                    (0..count).flat_map(names).collect()
                } else {
                    Vec::new()
                },
            };
            queue.settle(key, Ok(reading));
            assert!(queue.waiting.len() <= 1);
            frames += queue.take_batch().len();
        }
        assert_eq!(frames, count as usize + 1);
    }

    #[test]
    fn twice_the_subdirectories_take_twice_the_steps() {
        let (one, two) = (steps::of(|| pass(1_000)), steps::of(|| pass(2_000)));
        assert!(two <= 2 * one + 10, "{one} {two}");
    }
}
