//! Amends directories of a snapshot (FORMAT.md, "Layout").
//!
//! Walks the own directories that change, together with their amendments.  All other own
//! directories are taken over by their ids and not read, and so is each unchanged piece of a long
//! manifest (`sparse`).  The layout makes the new trees as from a complete listing, so equal trees
//! get equal ids however they were made.

mod amendment;
mod leaves;
mod merged;
mod new_tree;
mod past;
mod sparse;

use std::cmp::Ordering;

use crate::path::path_order;
use crate::snapshots::{ObjectReader, ObjectWriter, Snapshot};
use huai_git::error::{Error, Result};

pub use amendment::{Amended, Amendment};
use new_tree::NewTree;
use past::SnapshotReader;

/// Amend `snapshot` with `amendments`, one a directory and in tree order; write the objects of the
/// new tree, and count what changed.  Without amendments nothing is read or written.
///
/// Fails if what is read of the snapshot is malformed, or has more than `limit` entries.
pub fn amend<R: ObjectReader>(
    snapshot: &Snapshot<R>,
    limit: u64,
    amendments: &[Amendment],
    writer: &mut impl ObjectWriter,
) -> Result<Amended> {
    match amend_by(snapshot, limit, amendments, true, writer) {
        // Crafted names can give two pieces the same key: then all pieces are read.
        Err(Error::SameKey) => amend_by(snapshot, limit, amendments, false, writer),
        other => other,
    }
}

/// Amend a snapshot; with `is_sparse`, unchanged pieces are not read, and it may fail with
/// `SameKey`.
fn amend_by<R: ObjectReader>(
    snapshot: &Snapshot<R>,
    limit: u64,
    amendments: &[Amendment],
    is_sparse: bool,
    writer: &mut impl ObjectWriter,
) -> Result<Amended> {
    let mut new = NewTree::new(snapshot.tree, amendments);
    if amendments.is_empty() {
        return Ok(new.result);
    }
    let mut past = SnapshotReader::new(snapshot, limit, is_sparse);
    loop {
        let next = amendments.get(new.next);
        match (past.peek()?, next) {
            (None, None) => break,
            (None, Some(amendment)) => new.make(amendment, writer)?,
            (Some(path), Some(amendment)) => match path_order(path.as_bytes(), &amendment.path) {
                Ordering::Less => new.take_over(&mut past, writer)?,
                Ordering::Equal => new.change(&mut past, amendment, writer)?,
                Ordering::Greater => new.make(amendment, writer)?,
            },
            (Some(_), None) => new.take_over(&mut past, writer)?,
        }
    }
    new.finish(writer)
}
