//! A part of a directory: subdirectories first, then files and symlinks, by name.

use std::ops::Range;

use huai_git::error::Result;

use crate::diff::{Columns, Role};
use crate::entries::{Leaves, decode_directory};
use crate::path::{RelPath, parent};
use crate::snapshots::{EntryLimit, Level, Listing, Lookup, ObjectReader, Step};

/// Add the `rows` of the directory at `path` to `entries`; returns the directory and the number of
/// all names in it, or `None` if it is missing.
pub fn read_part<R: ObjectReader>(
    lookup: &mut Lookup<R>,
    path: &RelPath,
    rows: &Range<usize>,
    entries: &mut Columns,
) -> Result<Option<(Listing, usize)>> {
    let snapshot = lookup.snapshot();
    let mut limit = EntryLimit::new(lookup.limit());
    let mut level = match lookup.own_tree(path)? {
        Some(tree) => Some(Level::open(&snapshot, path.clone(), tree, &mut limit)?),
        None => None,
    };
    let mut inline = lookup.subtree(path)?;
    let mut next = || match &mut level {
        Some(level) => level.next(&snapshot, &mut limit),
        None => Ok(inline.next_of(&snapshot, |_| true)?.map(Step::Listing)),
    };
    let Some(Step::Listing(own)) = next()? else {
        return Ok(None);
    };
    let mut total: usize = 0;
    while let Some(step) = next()? {
        let (below, attributes) = match step {
            Step::Listing(listing) => (listing.path, Some(listing.attributes)),
            Step::Own(below, _) => (below, None),
        };
        if parent(below.as_bytes()) != path.as_bytes() {
            continue;
        }
        if rows.contains(&total) {
            let attributes = match attributes {
                None => lookup.attributes(&below)?.unwrap_or_default(),
                Some(attributes) => attributes,
            };
            let directory = decode_directory(&below, &attributes)?;
            entries.push(Role::New, &below, &directory);
        }
        total = total.saturating_add(1);
    }
    let newline = |&byte: &u8| usize::from(byte == b'\n');
    let lines: usize = own.leaves.iter().map(newline).sum();
    let last = rows.end.saturating_sub(total);
    let leaves = Leaves::new(path, &own.leaves, &own.digests).take(last);
    for (leaf, number) in leaves.zip(total..) {
        let leaf = leaf?;
        if rows.contains(&number) {
            entries.push(Role::New, path, &leaf);
        }
    }
    total = total.saturating_add(lines);
    Ok(Some((own, total)))
}
