//! Whether all that a tree names, at however many removes, is here.
//!
//! Looks only at what differs from trees that are known to be complete, so that the cost is that of
//! the change.

use std::collections::{HashMap, HashSet};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::git::oid::Oid;
use crate::git::records::REPLY;
use crate::git::tree::{TreeItem, decode_tree};

/// Following a byte of a tree takes about as long as making so many by inflation.
const NAMING_WORK: u64 = 16;

/// What is here.
pub trait Held {
    /// The content of a tree; none if it is not here, or no tree.
    fn tree(&mut self, oid: &Oid) -> Result<Option<Vec<u8>>>;

    /// Whether an object is here, of whatever kind.
    fn has(&mut self, oid: &Oid) -> Result<bool>;
}

/// What is not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// This tree.
    Tree(Oid),
    /// This object, which a tree names.
    Object(Oid),
}

/// The first that is missing of what the tree `wanted` holds.
///
/// `complete` are trees of which everything is here.  Memory grows with the trees that are here,
/// however often they are named.
pub fn find_missing(
    wanted: Oid,
    complete: &[Oid],
    held: &mut dyn Held,
    budget: &mut Budget<'_>,
) -> Result<Option<Missing>> {
    // A tree that many others name is walked once, whatever it is compared with.
    let mut seen = HashSet::from([wanted]);
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
            if seen.contains(&item.oid) {
                continue;
            }
            let same = before.iter().filter_map(|items| items.get(item.name));
            if same.clone().any(|each| **each == item) {
                continue;
            }
            // Before it is noted: what is not here has no end.
            if !held.has(&item.oid)? {
                return Ok(Some(Missing::Object(item.oid)));
            }
            if item.is_tree {
                seen.insert(item.oid);
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
