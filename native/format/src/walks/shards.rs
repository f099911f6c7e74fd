//! The directories of a snapshot that are scanned one by one: the largest ones that are not too large.

use std::collections::BTreeMap;

use huai_git::error::Result;
use huai_git::oid::Oid;

use crate::path::{RelPath, is_within};
use crate::snapshots::{EntryLimit, Level, ObjectReader, Snapshot, Step};

/// A shard has at least this part of the limit: a smaller one costs more than it saves.
const SMALL: u64 = 64;

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
/// From the top down, a directory is cut into its subdirectories until it has at most `most`
/// entries.  A snapshot of at most so many has no shards.  Own directories with one of the `counts`
/// trees have so many entries, and are not read unless that is too many.
pub fn plan_shards<R: ObjectReader>(
    snapshot: &Snapshot<R>,
    mut limit: EntryLimit,
    most: u64,
    counts: &BTreeMap<Oid, u64>,
) -> Result<Vec<(RelPath, u64)>> {
    let count_of = |tree: &Oid| counts.get(tree).copied().filter(|entries| *entries <= most);
    let mut open: Vec<Open> = Vec::new();
    let mut levels = Vec::new();
    if count_of(&snapshot.tree).is_none() {
        let root = RelPath::root();
        levels.push(Level::open(snapshot, root, snapshot.tree, &mut limit)?);
    }
    while let Some(level) = levels.last_mut() {
        let (path, entries) = match level.next(snapshot, &mut limit)? {
            Some(Step::Own(path, tree)) => {
                let Some(entries) = count_of(&tree) else {
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
        close_until(&mut open, &path, most);
        open.push(Open {
            path,
            entries,
            shards: Vec::new(),
        });
    }
    while open.len() > 1 {
        close_last(&mut open, most);
    }
    let top = open.pop().unwrap_or_default();
    Ok(if top.entries > most {
        top.shards
    } else {
        Vec::new()
    })
}

/// Close the last directories until one contains `path`.
fn close_until(open: &mut Vec<Open>, path: &RelPath, most: u64) {
    while open
        .last()
        .is_some_and(|last| !is_within(path.as_bytes(), last.path.as_bytes()))
    {
        close_last(open, most);
    }
}

/// Take off the last directory: as a shard, as those below it, or as too small.
fn close_last(open: &mut Vec<Open>, most: u64) {
    let Some(closed) = open.pop() else { return };
    let Some(above) = open.last_mut() else { return };
    above.entries = above.entries.saturating_add(closed.entries);
    if closed.entries > most {
        above.shards.extend(closed.shards);
    } else if closed.entries.saturating_mul(SMALL) > most {
        above.shards.push((closed.path, closed.entries));
    }
}
