//! Checks that everything that a tree names, directly or not, is in a repository.
//!
//! Looks only at differences from trees that are known to be complete, so the cost is that of the
//! change.

use std::collections::{HashMap, HashSet};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::object::Kind;
use crate::oid::Oid;
use crate::records::REPLY;
use crate::resolve::LocalObjects;
use crate::tree::{TreeItem, decode_tree};

/// The work of following a byte of a tree, in inflated bytes.
const NAMING_WORK: u64 = 16;

/// Fail with `Missing` for the first missing object at or below the tree `target`; also fail if a
/// tree is malformed, or the work exceeds `budget`.
///
/// `complete` are trees without missing objects, which `objects` must have: nothing that they have
/// at the same place is looked up.  Of other objects only the presence is checked.  Memory grows
/// with the number of different trees below `target`.
pub fn check_connected(
    target: Oid,
    complete: &[Oid],
    objects: &mut dyn LocalObjects,
    budget: &mut Budget<'_>,
) -> Result<()> {
    // A tree that many others name is walked once, whatever it is compared with.
    let mut visited = HashSet::from([target]);
    let mut pending = vec![(target, complete.to_vec())];
    while let Some((tree, known)) = pending.pop() {
        if known.contains(&tree) {
            continue;
        }
        let mut texts = Vec::new();
        for oid in known.iter().chain([&tree]) {
            let tree = objects.find(oid)?.filter(|it| it.kind == Kind::Tree);
            let text = match tree {
                Some(tree) => tree.content,
                None => return Err(Error::missing("the upstream left out a tree", oid)),
            };
            let work = (text.len() as u64).saturating_mul(NAMING_WORK);
            budget.spend(work).map_err(|error| error.within(REPLY))?;
            texts.push((oid, text));
        }
        let mut read: Vec<Vec<TreeItem<'_>>> = Vec::new();
        for (oid, text) in &texts {
            read.push(decode_tree(text).map_err(|error| error.within(oid))?);
        }
        let items = read
            .pop()
            .ok_or_else(|| Error::bug("a tree that was not read"))?;
        let before: Vec<HashMap<&[u8], &TreeItem<'_>>> = read
            .iter()
            .map(|items| items.iter().map(|item| (item.name, item)).collect())
            .collect();
        for item in items {
            if visited.contains(&item.oid) {
                continue;
            }
            let same = before.iter().filter_map(|items| items.get(item.name));
            if same.clone().any(|each| **each == item) {
                continue;
            }
            // Checked before it is noted: the number of missing objects is not bounded.
            if !objects.has(&item.oid)? {
                let reason = "the upstream left out an object";
                return Err(Error::missing(reason, item.oid));
            }
            if item.is_tree {
                visited.insert(item.oid);
                let trees: HashSet<Oid> = same
                    .filter(|each| each.is_tree)
                    .map(|each| each.oid)
                    .collect();
                pending.push((item.oid, trees.into_iter().collect()));
            }
        }
    }
    Ok(())
}
