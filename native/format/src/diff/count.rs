//! Counts the entries that differ between two snapshots.

use std::collections::HashSet;

use huai_git::error::Result;
use huai_git::oid::Oid;

use super::comparison::Comparison;
use super::listing_diff::Sink;
use crate::entries::{Body, Entry};
use crate::path::RelPath;
use crate::snapshots::{EntryLimit, ObjectReader, Snapshot, Walk};
use crate::write::Counts;

/// A sink that counts differences.
struct Tally<'a> {
    counts: Counts,
    /// The new paths of moved directories.
    moved: HashSet<RelPath>,
    /// Entries of moved directories that are new or different.
    differing: u64,
    is_stopped: &'a dyn Fn() -> bool,
}

impl Sink for Tally<'_> {
    fn is_full(&self) -> bool {
        (self.is_stopped)()
    }

    /// Count a change; in a moved directory also an entry that differs there.
    fn change(&mut self, directory: &RelPath, old: Option<&Entry<'_>>, new: Option<&Entry<'_>>) {
        if new.is_some() && self.is_moved(directory) {
            self.differing = self.differing.saturating_add(1);
        }
        self.counts.add(old.is_some(), new.is_some());
        let new_bytes = new.map_or(0, |new| new_bytes(old, new));
        self.counts.new_bytes = self.counts.new_bytes.saturating_add(new_bytes);
    }

    fn moved(&mut self, _: &RelPath, new: &RelPath) {
        self.moved.insert(new.clone());
    }
}

impl Tally<'_> {
    /// Return true if the directory, or one above it, moved.
    fn is_moved(&self, directory: &RelPath) -> bool {
        let is_one = |path: &[u8]| self.moved.contains(&RelPath::trusted(path.to_vec()));
        !self.moved.is_empty()
            && (is_one(directory.as_bytes()) || directory.ancestors().any(is_one))
    }
}

/// Return the size of a file that is new or has other content, 0 for other entries; without both
/// digests, a file with the same size and time has the same content.
fn new_bytes(old: Option<&Entry<'_>>, new: &Entry<'_>) -> u64 {
    let Body::File { size, digest, .. } = &new.body else {
        return 0;
    };
    let is_same = old.is_some_and(|old| match &old.body {
        Body::File {
            size: former_size,
            digest: former,
            ..
        } => {
            let are_equal = digest.zip(*former).map(|(one, other)| one == other);
            size == former_size && are_equal.unwrap_or(old.mtime == new.mtime)
        }
        _ => false,
    });
    if is_same { 0 } else { *size }
}

/// Count the changes from one snapshot to another, each given with the largest number of entries
/// that it may have; `None` after a stop.
pub fn count<R: ObjectReader>(
    old: (Snapshot<R>, u64),
    new: (Snapshot<R>, u64),
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Counts>> {
    let limit = new.1;
    let mut comparison = Comparison::new(old, new);
    let mut tally = Tally {
        counts: Counts::default(),
        moved: HashSet::new(),
        differing: 0,
        is_stopped,
    };
    if !comparison.advance(&mut tally)? {
        return Ok(None);
    }
    let mut counts = tally.counts;
    let snapshot = comparison.new_snapshot();
    for path in tally.moved {
        let Some(tree) = own_tree(snapshot, &path)? else {
            continue;
        };
        let mut walk = Walk::below(path, tree, EntryLimit::new(limit));
        while let Some(listing) = walk.next(snapshot)? {
            if is_stopped() {
                return Ok(None);
            }
            let line = |&byte: &u8| u64::from(byte == b'\n');
            let entries = listing
                .leaves
                .iter()
                .map(line)
                .sum::<u64>()
                .saturating_add(1);
            counts.moved = counts.moved.saturating_add(entries);
        }
    }
    counts.moved = counts.moved.saturating_sub(tally.differing);
    Ok(Some(counts))
}

/// Return the own tree of the directory at `path`, `None` if it is inlined or missing, without reading manifests.
fn own_tree<R: ObjectReader>(snapshot: &Snapshot<R>, path: &RelPath) -> Result<Option<Oid>> {
    let mut current = RelPath::root();
    let mut tree = snapshot.tree;
    for name in path.as_bytes().split(|&byte| byte == b'/') {
        let Some(child) = snapshot.own_directory(current.clone(), tree)?.child(name) else {
            return Ok(None);
        };
        current = current.join(name);
        tree = child;
    }
    Ok(Some(tree))
}
