//! Lists the files of a snapshot that have a digest, in tree order and in batches.
//!
//! A hardlink group is listed once, by its leader.

use std::cmp::Ordering;

use huai_git::error::Result;

use crate::entries::{Body, Bookmark, Digest, Leaves};
use crate::path::{RelPath, basename, is_within, parent, path_order};
use crate::snapshots::{EntryLimit, Listing, ObjectReader, Snapshot, Walk};

/// A file and its digest, as committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestedFile {
    /// The path from the root.
    pub path: RelPath,
    /// The size in bytes.
    pub size: u64,
    /// Nanoseconds since the epoch.
    pub mtime: i64,
    /// The digest of the content.
    pub digest: Digest,
}

/// A walk through a snapshot.
#[derive(Debug)]
pub struct Digested {
    walk: Walk,
    after: After,
    /// The current directory, and the position in it.
    begun: Option<(Listing, Bookmark)>,
}

impl Digested {
    /// List the files that come after the path `after`, which need not exist, in tree order, or
    /// all.
    pub fn new<R: ObjectReader>(
        snapshot: &Snapshot<R>,
        limit: EntryLimit,
        after: Option<RelPath>,
    ) -> Self {
        Self {
            walk: Walk::new(snapshot, limit),
            after: After(after),
            begun: None,
        }
    }

    /// Return the next files with a digest in tree order, hardlinks left out: at most `files`, and
    /// no more once their sizes add up to `bytes`; empty at the end.
    pub fn batch<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        files: usize,
        bytes: u64,
    ) -> Result<Vec<DigestedFile>> {
        let mut batch = Vec::new();
        let mut left = bytes;
        while batch.len() < files && left > 0 {
            let Some((listing, from)) = self.next_listing(snapshot)? else {
                break;
            };
            let mut leaves =
                Leaves::resume(&listing.path, &listing.leaves, &listing.digests, &from);
            let mut is_over = true;
            while let Some(leaf) = leaves.next().transpose()? {
                let Body::File { size, link, digest } = &leaf.body else {
                    continue;
                };
                let Some(digest) = digest.filter(|_| link.is_none()) else {
                    continue;
                };
                if !self.after.allows(&listing.path, &leaf.name) {
                    continue;
                }
                batch.push(DigestedFile {
                    path: listing.path.join(&leaf.name),
                    size: *size,
                    mtime: leaf.mtime,
                    digest,
                });
                left = left.saturating_sub(*size);
                if batch.len() >= files || left == 0 {
                    is_over = false;
                    break;
                }
            }
            if !is_over {
                let reached = leaves.bookmark();
                self.begun = Some((listing, reached));
            }
        }
        Ok(batch)
    }

    /// Return the directory to continue with, and the position in it; `None` at the end.
    fn next_listing<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
    ) -> Result<Option<(Listing, Bookmark)>> {
        if let Some(begun) = self.begun.take() {
            return Ok(Some(begun));
        }
        let is_wanted = |path: &RelPath| self.after.may_be_in(path);
        let listing = self.walk.next_of(snapshot, is_wanted)?;
        Ok(listing.map(|listing| {
            let from = Bookmark::start(&listing.leaves, &listing.digests);
            (listing, from)
        }))
    }
}

/// A filter for paths behind another one in tree order; `None` allows all.
#[derive(Debug)]
struct After(Option<RelPath>);

impl After {
    /// Return true if a file in or below this directory may be allowed.
    fn may_be_in(&self, directory: &RelPath) -> bool {
        let Some(path) = &self.0 else { return true };
        let (here, there) = (directory.as_bytes(), parent(path.as_bytes()));
        path_order(here, there).is_ge() || is_within(there, here)
    }

    /// Return true if this file is allowed.
    fn allows(&self, directory: &RelPath, name: &[u8]) -> bool {
        let Some(path) = &self.0 else { return true };
        match path_order(directory.as_bytes(), parent(path.as_bytes())) {
            Ordering::Less => false,
            Ordering::Equal => name > basename(path.as_bytes()),
            Ordering::Greater => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::trusted(text.as_bytes().to_vec())
    }

    #[test]
    fn what_comes_after_a_path_is_told_by_tree_order() {
        let after = After(Some(path("b/m")));
        for (directory, name, comes) in [
            ("", "z", false),
            ("a", "z", false),
            ("a/z", "z", false),
            ("b", "a", false),
            ("b", "m", false),
            ("b", "n", true),
            ("b/a", "a", true),
            ("b!", "a", true),
            ("c", "a", true),
        ] {
            let allowed = after.allows(&path(directory), name.as_bytes());
            assert_eq!(allowed, comes, "{directory}/{name}");
            assert!(!comes || after.may_be_in(&path(directory)), "{directory}");
        }
        assert!(after.may_be_in(&path("")) && after.may_be_in(&path("b")));
        assert!(!after.may_be_in(&path("a")) && !after.may_be_in(&path("a/z")));
        let deep = After(Some(path("b/c/d/m")));
        assert!(deep.may_be_in(&path("b/c")) && !deep.may_be_in(&path("b/b")));
        assert!(After(None).allows(&path(""), b"a"));
    }
}
