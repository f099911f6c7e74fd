//! Checks that everything that a tree names, directly or not, is in a store.
//!
//! Looks only at differences from trees that are known to be complete, so the cost is that of the
//! the change.

use std::collections::{HashMap, HashSet};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::git::oid::Oid;
use crate::git::records::REPLY;
use crate::git::tree::{TreeItem, decode_tree};

/// The work of following a byte of a tree, in inflated bytes.
const NAMING_WORK: u64 = 16;

/// The objects in a store.
pub trait LocalObjects {
    /// Return the content of a tree, if the store has it and it is a tree.
    fn tree(&mut self, oid: &Oid) -> Result<Option<Vec<u8>>>;

    /// Return true if the store has an object, whatever its kind.
    fn has(&mut self, oid: &Oid) -> Result<bool>;
}

/// A missing object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A missing tree.
    Tree(Oid),
    /// A missing object that a tree names.
    Object(Oid),
}

/// Find the first object below the tree `wanted` that is missing.
///
/// `complete` are trees without missing objects.  Memory grows with the number of different trees
/// below `wanted`.
pub fn find_missing(
    wanted: Oid,
    complete: &[Oid],
    held: &mut dyn LocalObjects,
    budget: &mut Budget<'_>,
) -> Result<Option<Missing>> {
    // A tree that many others name is walked once, whatever it is compared with.
    let mut visited = HashSet::from([wanted]);
    let mut pending = vec![(wanted, complete.to_vec())];
    while let Some((tree, known)) = pending.pop() {
        if known.contains(&tree) {
            continue;
        }
        let mut texts = Vec::new();
        for oid in known.iter().chain([&tree]) {
            let Some(text) = held.tree(oid)? else {
                return Ok(Some(Missing::Tree(*oid)));
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
            if !held.has(&item.oid)? {
                return Ok(Some(Missing::Object(item.oid)));
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
    Ok(None)
}
