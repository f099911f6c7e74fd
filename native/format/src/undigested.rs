//! The files of a snapshot that have no digest: how many there are, and the newest of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::digests::is_zero;
use crate::entry::{Body, Entry};
use crate::error::Result;
use crate::limits::DIGEST_BYTES;
use crate::line::Leaves;
use crate::manifest::Listing;
use crate::path::RelPath;

/// A file without a digest; of two the newer one is the greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct File {
    /// Nanoseconds since the epoch.
    pub mtime: i64,
    /// From the root.
    pub path: RelPath,
    /// Bytes.
    pub size: u64,
}

/// Takes listings, and keeps as many files as it is told to.
#[derive(Debug)]
pub struct Undigested {
    most: usize,
    before: Option<(i64, RelPath)>,
    /// The oldest first.
    newest: BinaryHeap<Reverse<File>>,
    /// All that have none.
    pub files: u64,
    /// Of their content.
    pub bytes: u64,
}

impl Undigested {
    /// The `most` newest, or of those that come after the one with this time and path.
    pub fn new(most: usize, before: Option<(i64, RelPath)>) -> Self {
        Self {
            most,
            before,
            newest: BinaryHeap::new(),
            files: 0,
            bytes: 0,
        }
    }

    /// One directory more.
    pub fn gather(&mut self, listing: &Listing) -> Result<()> {
        if !lacks(&listing.digests) {
            return Ok(());
        }
        for leaf in Leaves::new(&listing.path, &listing.leaves, &listing.digests) {
            let leaf = leaf?;
            let Body::File { size, digest, .. } = &leaf.body else {
                continue;
            };
            if digest.is_none() {
                self.files = self.files.saturating_add(1);
                self.bytes = self.bytes.saturating_add(*size);
                self.keep(&listing.path, &leaf, *size);
            }
        }
        Ok(())
    }

    /// Those that were kept, the newest first.
    pub fn newest(self) -> Vec<File> {
        let sorted = self.newest.into_sorted_vec();
        sorted.into_iter().map(|Reverse(file)| file).collect()
    }

    fn keep(&mut self, directory: &RelPath, leaf: &Entry<'_>, size: u64) {
        let is_full = self.newest.len() >= self.most;
        let oldest = self.newest.peek().filter(|_| is_full);
        if is_full && oldest.is_none_or(|Reverse(file)| leaf.mtime < file.mtime) {
            return;
        }
        let file = File {
            mtime: leaf.mtime,
            path: directory.join(&leaf.name),
            size,
        };
        let comes = |(mtime, path): &(i64, RelPath)| (file.mtime, &file.path) < (*mtime, path);
        if !self.before.as_ref().is_none_or(comes) {
            return;
        }
        self.newest.push(Reverse(file));
        if self.newest.len() > self.most {
            self.newest.pop();
        }
    }
}

/// Whether a column leaves a digest out; one that is empty may belong to no file at all.
pub(crate) fn lacks(column: &[u8]) -> bool {
    column.is_empty() || column.chunks(DIGEST_BYTES).any(is_zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Shared;

    fn listing(path: &[u8], leaves: &[u8], digests: &[u8]) -> Listing {
        Listing {
            path: RelPath::trusted(path.to_vec()),
            attributes: Shared::default(),
            leaves: Shared::from(leaves.to_vec()),
            digests: Shared::from(digests.to_vec()),
        }
    }

    fn found(most: usize, before: Option<(i64, &[u8])>) -> Undigested {
        let before = before.map(|(mtime, path)| (mtime, RelPath::trusted(path.to_vec())));
        let mut found = Undigested::new(most, before);
        let digests = [[0; 32], [1; 32], [0; 32]].concat();
        let there = b"a\t1\t5\nb\t2\t9\nc\t>1\t9\nd\t4\t7\n";
        found.gather(&listing(b"", there, &digests)).unwrap();
        found.gather(&listing(b"x", b"e\t8\t5\n", b"")).unwrap();
        found
            .gather(&listing(b"y", b"f\t16\t6\n", &[1; 32]))
            .unwrap();
        found
    }

    fn paths(found: Undigested) -> Vec<Vec<u8>> {
        let files = found.newest().into_iter();
        files.map(|file| file.path.as_bytes().to_vec()).collect()
    }

    #[test]
    fn what_has_no_digest_is_counted_and_the_newest_come_first() {
        let all = found(9, None);
        assert_eq!((all.files, all.bytes), (3, 13));
        assert_eq!(paths(all), [&b"d"[..], b"x/e", b"a"]);
    }

    #[test]
    fn no_more_are_kept_than_are_wanted() {
        let two = found(2, None);
        assert_eq!((two.files, two.newest.len()), (3, 2));
        assert_eq!(paths(two), [&b"d"[..], b"x/e"]);
        assert!(paths(found(0, None)).is_empty());
    }

    #[test]
    fn the_next_ones_are_those_before_the_last() {
        assert_eq!(paths(found(9, Some((5_000_000_000, b"x/e")))), [b"a"]);
        assert!(paths(found(9, Some((5_000_000_000, b"a")))).is_empty());
    }

    #[test]
    fn a_line_that_is_none_is_refused() {
        let mut found = Undigested::new(1, None);
        assert!(found.gather(&listing(b"", b"?", b"")).is_err());
    }
}
