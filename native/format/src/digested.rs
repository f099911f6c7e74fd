//! The files of a snapshot that have a digest, in tree order, a batch at a time.
//!
//! Of a hardlink group the first name stands for all.

use std::cmp::Ordering;

use crate::entry::{Body, Digest};
use crate::entry_limit::EntryLimit;
use crate::error::Result;
use crate::level::Walk;
use crate::line::{Bookmark, Leaves};
use crate::manifest::Listing;
use crate::objects::ObjectReader;
use crate::path::{RelPath, basename, parent, path_order};
use crate::snapshot::Snapshot;

/// A file and its content, as a commit has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// From the root.
    pub path: RelPath,
    /// Bytes.
    pub size: u64,
    /// Nanoseconds since the epoch.
    pub mtime: i64,
    /// Of the content.
    pub digest: Digest,
}

/// Goes through a snapshot.
#[derive(Debug)]
pub struct Digested {
    walk: Walk,
    after: After,
    /// The directory that was begun, and how far it has come there.
    begun: Option<(Listing, Bookmark)>,
}

impl Digested {
    /// All that come after the path `after`, which need not be there; or all.
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

    /// The next ones: at most so many files, and none after so many bytes; empty at the end.
    pub fn batch<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        files: usize,
        bytes: u64,
    ) -> Result<Vec<File>> {
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
                batch.push(File {
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

    fn next_listing<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
    ) -> Result<Option<(Listing, Bookmark)>> {
        if let Some(begun) = self.begun.take() {
            return Ok(Some(begun));
        }
        let wanted = |path: &RelPath| self.after.may_be_in(path);
        let listing = self.walk.next_of(snapshot, wanted)?;
        Ok(listing.map(|listing| {
            let from = Bookmark::start(&listing.leaves, &listing.digests);
            (listing, from)
        }))
    }
}

/// What comes after a path in tree order; None: all.
#[derive(Debug)]
struct After(Option<RelPath>);

impl After {
    /// Whether a file in or below this directory can be one.
    fn may_be_in(&self, directory: &RelPath) -> bool {
        let Some(path) = &self.0 else { return true };
        let (here, there) = (directory.as_bytes(), parent(path.as_bytes()));
        let is_above = |here: &[u8]| {
            there
                .strip_prefix(here)
                .is_some_and(|rest| rest.starts_with(b"/"))
        };
        here.is_empty() || path_order(here, there).is_ge() || is_above(here)
    }

    /// Whether this file is one.
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
            let found = after.allows(&path(directory), name.as_bytes());
            assert_eq!(found, comes, "{directory}/{name}");
            assert!(!comes || after.may_be_in(&path(directory)), "{directory}");
        }
        assert!(after.may_be_in(&path("")) && after.may_be_in(&path("b")));
        assert!(!after.may_be_in(&path("a")) && !after.may_be_in(&path("a/z")));
        let deep = After(Some(path("b/c/d/m")));
        assert!(deep.may_be_in(&path("b/c")) && !deep.may_be_in(&path("b/b")));
        assert!(After(None).allows(&path(""), b"a"));
    }
}
