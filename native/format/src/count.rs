//! How many entries differ between two snapshots.

use std::collections::HashSet;

use crate::diff::Comparison;
use crate::entry::Entry;
use crate::entry_limit::EntryLimit;
use crate::error::Result;
use crate::git::oid::Oid;
use crate::level::Walk;
use crate::listing_diff::Sink;
use crate::objects::ObjectReader;
use crate::path::RelPath;
use crate::snapshot::Snapshot;

/// What a commit says of its change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Paths that are new.
    pub added: u64,
    /// Paths that are gone.
    pub removed: u64,
    /// Entries that are different.
    pub changed: u64,
    /// Entries that came along unchanged below a directory that moved, that directory included.
    pub moved: u64,
}

/// Counts what a comparison finds.
struct Tally<'a> {
    counts: Counts,
    /// Where directories stand that moved.
    moved: HashSet<RelPath>,
    /// Entries in them that are new or different.
    differing: u64,
    is_stopped: &'a dyn Fn() -> bool,
}

impl Sink for Tally<'_> {
    fn is_full(&self) -> bool {
        (self.is_stopped)()
    }

    fn change(&mut self, directory: &RelPath, old: Option<&Entry<'_>>, new: Option<&Entry<'_>>) {
        if new.is_some() && self.is_moved(directory) {
            self.differing = self.differing.saturating_add(1);
        }
        let count = match (old, new) {
            (None, _) => &mut self.counts.added,
            (_, None) => &mut self.counts.removed,
            _ => &mut self.counts.changed,
        };
        *count = count.saturating_add(1);
    }

    fn moved(&mut self, _: &RelPath, new: &RelPath) {
        self.moved.insert(new.clone());
    }
}

impl Tally<'_> {
    fn is_moved(&self, directory: &RelPath) -> bool {
        let is_one = |path: &[u8]| self.moved.contains(&RelPath::trusted(path.to_vec()));
        !self.moved.is_empty()
            && (is_one(directory.as_bytes()) || directory.ancestors().any(is_one))
    }
}

/// Counts everything that takes one snapshot to another, each with the number of entries that it
/// may have; none after a stop.
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

/// The tree that the directory at `path` has for itself, if it has one; reads no manifest.
fn own_tree<R: ObjectReader>(snapshot: &Snapshot<R>, path: &RelPath) -> Result<Option<Oid>> {
    let mut here = RelPath::root();
    let mut tree = snapshot.tree;
    for name in path.as_bytes().split(|&byte| byte == b'/') {
        let Some(child) = snapshot.own_directory(here.clone(), tree)?.child(name) else {
            return Ok(None);
        };
        here = here.join(name);
        tree = child;
    }
    Ok(Some(tree))
}
