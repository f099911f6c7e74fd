//! Files of a snapshot without a digest: their number, and the newest ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use huai_git::error::Result;

use crate::entries::digests::is_zero;
use crate::entries::{Body, Entry, Leaves};
use crate::limits::DIGEST_BYTES;
use crate::path::RelPath;
use crate::snapshots::Listing;

/// A file without a digest; the newer of two is the greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UndigestedFile {
    /// The time in nanoseconds since the epoch.
    pub mtime: i64,
    /// The path from the root.
    pub path: RelPath,
    /// The size in bytes.
    pub size: u64,
}

/// A collector of the newest files without a digest.
#[derive(Debug)]
pub struct Undigested {
    most: usize,
    before: Option<(i64, RelPath)>,
    /// The newest files, as a heap with the oldest on top.
    newest: BinaryHeap<Reverse<UndigestedFile>>,
    /// The number of all files without a digest.
    pub files: u64,
    /// The bytes of all of them.
    pub bytes: u64,
}

impl Undigested {
    /// Keep the `most` newest files; with `before`, the newest of those that sort before this mtime and path.
    pub fn new(most: usize, before: Option<(i64, RelPath)>) -> Self {
        Self {
            most,
            before,
            newest: BinaryHeap::new(),
            files: 0,
            bytes: 0,
        }
    }

    /// Count the files of a directory without a digest, and keep the newest.
    pub fn gather(&mut self, listing: &Listing) -> Result<()> {
        if !lacks_digest(&listing.digests) {
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

    /// Return the kept files, newest first.
    pub fn newest(self) -> Vec<UndigestedFile> {
        let sorted = self.newest.into_sorted_vec();
        sorted.into_iter().map(|Reverse(file)| file).collect()
    }

    /// Keep a file if it is among the newest of those that sort before the mtime and path `before`.
    fn keep(&mut self, directory: &RelPath, leaf: &Entry<'_>, size: u64) {
        let is_full = self.newest.len() >= self.most;
        let oldest = self.newest.peek().filter(|_| is_full);
        if is_full && oldest.is_none_or(|Reverse(file)| leaf.mtime < file.mtime) {
            return;
        }
        let file = UndigestedFile {
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

/// Return true if a digest is missing in a column, or the column is empty, although it may belong to no file.
pub(crate) fn lacks_digest(column: &[u8]) -> bool {
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

    fn gathered(most: usize, before: Option<(i64, &[u8])>) -> Undigested {
        let before = before.map(|(mtime, path)| (mtime, RelPath::trusted(path.to_vec())));
        let mut undigested = Undigested::new(most, before);
        let digests = [[0; 32], [1; 32], [0; 32]].concat();
        let leaves = b"a\t1\t5\nb\t2\t9\nc\t>1\t9\nd\t4\t7\n";
        undigested.gather(&listing(b"", leaves, &digests)).unwrap();
        undigested
            .gather(&listing(b"x", b"e\t8\t5\n", b""))
            .unwrap();
        undigested
            .gather(&listing(b"y", b"f\t16\t6\n", &[1; 32]))
            .unwrap();
        undigested
    }

    fn paths(found: Undigested) -> Vec<Vec<u8>> {
        let files = found.newest().into_iter();
        files.map(|file| file.path.as_bytes().to_vec()).collect()
    }

    #[test]
    fn what_has_no_digest_is_counted_and_the_newest_come_first() {
        let all = gathered(9, None);
        assert_eq!((all.files, all.bytes), (3, 13));
        assert_eq!(paths(all), [&b"d"[..], b"x/e", b"a"]);
    }

    #[test]
    fn no_more_are_kept_than_are_wanted() {
        let two = gathered(2, None);
        assert_eq!((two.files, two.newest.len()), (3, 2));
        assert_eq!(paths(two), [&b"d"[..], b"x/e"]);
        assert!(paths(gathered(0, None)).is_empty());
    }

    #[test]
    fn the_next_ones_are_those_before_the_last() {
        assert_eq!(paths(gathered(9, Some((5_000_000_000, b"x/e")))), [b"a"]);
        assert!(paths(gathered(9, Some((5_000_000_000, b"a")))).is_empty());
    }

    #[test]
    fn a_line_that_is_none_is_refused() {
        let mut undigested = Undigested::new(1, None);
        assert!(undigested.gather(&listing(b"", b"?", b"")).is_err());
    }
}
