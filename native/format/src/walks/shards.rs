//! The directories of a snapshot that are scanned one by one: labelled ones, and the largest that are not too large.

use std::collections::{BTreeMap, BTreeSet};

use huai_git::error::Result;
use huai_git::oid::Oid;

use crate::path::{RelPath, is_within};
use crate::snapshots::{EntryLimit, Level, ObjectReader, Snapshot, Step};

/// A shard has at least this part of the limit: a smaller one costs more than it saves.
const SMALL: u64 = 64;

/// The rules by which directories are cut.
#[derive(Debug)]
pub struct Cut {
    most: u64,
    labelled: BTreeSet<RelPath>,
    /// The directories above labelled ones.
    above: BTreeSet<RelPath>,
}

impl Cut {
    /// Cut directories of more than `most` entries, and those above `labelled` ones, which are shards.
    ///
    /// A labelled directory must not be in another one.
    pub fn new(most: u64, labelled: BTreeSet<RelPath>) -> Self {
        let above = labelled.iter().flat_map(RelPath::ancestors);
        Self {
            most,
            above: above.map(|path| RelPath::trusted(path.to_vec())).collect(),
            labelled,
        }
    }

    fn cuts(&self, path: &RelPath, entries: u64) -> bool {
        !self.labelled.contains(path) && (entries > self.most || self.above.contains(path))
    }
}

/// A directory whose subdirectories are still to come.
#[derive(Default)]
struct Open {
    path: RelPath,
    entries: u64,
    /// The shards below it, if it is not one.
    shards: Vec<(RelPath, u64)>,
}

/// Return the paths of the shards with their entries.
///
/// From the top down, a directory is cut into its subdirectories as long as `cut` says so.  A snapshot that is not cut
/// has no shards.  Own directories with one of the `counts` trees have so many entries, and are not read unless they
/// are cut.
pub fn plan_shards<R: ObjectReader>(
    snapshot: &Snapshot<R>,
    mut limit: EntryLimit,
    cut: &Cut,
    counts: &BTreeMap<Oid, u64>,
) -> Result<Vec<(RelPath, u64)>> {
    let count_of = |path: &RelPath, tree: &Oid| {
        let entries = counts.get(tree).copied();
        entries.filter(|entries| !cut.cuts(path, *entries))
    };
    let mut open: Vec<Open> = Vec::new();
    let mut levels = Vec::new();
    let root = RelPath::root();
    if count_of(&root, &snapshot.tree).is_none() {
        levels.push(Level::open(snapshot, root, snapshot.tree, &mut limit)?);
    }
    while let Some(level) = levels.last_mut() {
        let (path, entries) = match level.next(snapshot, &mut limit)? {
            Some(Step::Own(path, tree)) => {
                let Some(entries) = count_of(&path, &tree) else {
                    levels.push(Level::open(snapshot, path, tree, &mut limit)?);
                    continue;
                };
                (path, entries)
            }
            Some(Step::Listing(listing)) => {
                let leaves = listing
                    .leaves
                    .split_inclusive(|&byte| byte == b'\n')
                    .count();
                (listing.path, 1_u64.saturating_add(leaves as u64))
            }
            None => {
                levels.pop();
                continue;
            }
        };
        close_until(&mut open, &path, cut);
        open.push(Open {
            path,
            entries,
            shards: Vec::new(),
        });
    }
    while open.len() > 1 {
        close_last(&mut open, cut);
    }
    let top = open.pop().unwrap_or_default();
    Ok(if cut.cuts(&top.path, top.entries) {
        top.shards
    } else {
        Vec::new()
    })
}

/// Close the last directories until one contains `path`.
fn close_until(open: &mut Vec<Open>, path: &RelPath, cut: &Cut) {
    while open
        .last()
        .is_some_and(|last| !is_within(path.as_bytes(), last.path.as_bytes()))
    {
        close_last(open, cut);
    }
}

/// Take off the last directory: as a shard, as those below it, or as too small.
fn close_last(open: &mut Vec<Open>, cut: &Cut) {
    let Some(closed) = open.pop() else { return };
    let Some(above) = open.last_mut() else { return };
    above.entries = above.entries.saturating_add(closed.entries);
    if cut.cuts(&closed.path, closed.entries) {
        above.shards.extend(closed.shards);
    } else if closed.entries.saturating_mul(SMALL) > cut.most || cut.labelled.contains(&closed.path)
    {
        above.shards.push((closed.path, closed.entries));
    }
}
