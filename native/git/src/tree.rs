//! Git trees of blobs and subtrees, as the metadata use them (git-hash-object(1)).

use std::cmp::Ordering;

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::find::position;
use crate::limits::ITEM_BYTES;
use crate::oid::Oid;

const TREE: &[u8] = b"40000";
const BLOB: &[u8] = b"100644";

/// An item of a git tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeItem<'a> {
    /// The name; raw, one component.
    pub name: &'a [u8],
    /// The id of the subtree or blob.
    pub oid: Oid,
    /// True for a subtree, false for a blob.
    pub is_tree: bool,
}

/// Encode items, in any order, as a git tree; the caller has checked that the names are valid and
/// differ.
pub fn encode_tree(mut items: Vec<TreeItem<'_>>) -> Vec<u8> {
    items.sort_unstable_by(git_order);
    let items = items.iter();
    encode_items(items.map(|item| (item.name, &item.oid.as_bytes()[..], item.is_tree)))
}

/// Encode items that are in git's order: name, id, and true for a subtree.
pub fn encode_items<'a>(items: impl Iterator<Item = (&'a [u8], &'a [u8], bool)>) -> Vec<u8> {
    let mut data = Vec::new();
    for (name, id, is_tree) in items {
        data.extend_from_slice(if is_tree { TREE } else { BLOB });
        data.push(b' ');
        data.extend_from_slice(name);
        data.push(0);
        data.extend_from_slice(id);
    }
    data
}

/// Decode the items of a git tree, in git's order; an error unless they are well-formed and in
/// order, each name is there once, and all are plain blobs or trees.
pub fn decode_tree(data: &[u8]) -> Result<Vec<TreeItem<'_>>> {
    let mut rest = Cursor::new(data);
    let mut items: Vec<TreeItem<'_>> = Vec::new();
    let mut blobs: Vec<&[u8]> = Vec::new();
    while !rest.is_empty() {
        let item = take_item(&mut rest)?;
        let grows = items
            .last()
            .is_none_or(|last| git_order(last, &item).is_lt());
        // A blob and a subtree may not share a name, though git would sort them apart.
        if !grows || (item.is_tree && blobs.binary_search(&item.name).is_ok()) {
            return Err(Error::new(
                "a git tree out of order or with a repeated name",
            ));
        }
        if !item.is_tree {
            blobs.push(item.name);
        }
        items.push(item);
    }
    Ok(items)
}

/// Take the next item of a git tree from the cursor; an error if it is malformed.
fn take_item<'a>(from: &mut Cursor<'a>) -> Result<TreeItem<'a>> {
    let damaged = || Error::new("a damaged git tree");
    let end = position(from.rest(), 0).ok_or_else(damaged)?;
    let line = from.take_bytes(end).ok_or_else(damaged)?;
    from.byte();
    let oid = Oid::new(from.array().ok_or_else(damaged)?);
    let space = line
        .iter()
        .position(|&byte| byte == b' ')
        .ok_or_else(damaged)?;
    let (mode, name) = line.split_at(space);
    let name = name
        .get(1..)
        .filter(|name| !name.is_empty() && !name.contains(&b'/'));
    let name = name.ok_or_else(damaged)?;
    if name.len() > ITEM_BYTES {
        return Err(Error::new(format!(
            "a git tree with a name of {} bytes",
            name.len()
        )));
    }
    let is_tree = match mode {
        TREE => true,
        BLOB => false,
        _ => {
            let rule = "a git tree with an item that is not a plain blob or tree";
            return Err(Error::new(rule));
        }
    };
    Ok(TreeItem { name, oid, is_tree })
}

/// Compare as git does: a subtree sorts as if its name ended in a slash.
fn git_order(one: &TreeItem<'_>, other: &TreeItem<'_>) -> Ordering {
    let slash = |item: &TreeItem<'_>| item.is_tree.then_some(&b'/');
    let (ends, other_ends) = (slash(one), slash(other));
    one.name
        .iter()
        .chain(ends)
        .cmp(other.name.iter().chain(other_ends))
}
