//! The tree of a snapshot with some of its directories amended (FORMAT.md, "Layout").
//!
//! Goes through the own directories in which something changes, one beside the other with what is
//! to be changed; whatever own directory lies beside is taken over by its id, and not read, and so
//! is each piece of a long manifest in which nothing changes (`sparse`).  The layout makes the new
//! trees as from a whole listing, so equal trees get equal ids, whatever way led to them.

mod amendment;
mod leaves;
mod merged;
mod new_tree;
mod past;
mod sparse;

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::objects::{ObjectReader, ObjectWriter};
use crate::path::path_order;
use crate::snapshot::Snapshot;

pub use amendment::{Amended, Amendment};
use new_tree::NewTree;
use past::Past;

/// The tree of `snapshot` with `amendments`, which are in tree order, each directory's after that
/// of the one above it; `limit`: how many entries the snapshot may have.
pub fn amend<R: ObjectReader>(
    snapshot: &Snapshot<R>,
    limit: u64,
    amendments: &[Amendment],
    writer: &mut impl ObjectWriter,
) -> Result<Amended> {
    match amend_by(snapshot, limit, amendments, true, writer) {
        // Names made for it can keep pieces from being told apart: then all of them are read.
        Err(Error::SameKey) => amend_by(snapshot, limit, amendments, false, writer),
        other => other,
    }
}

/// The same; `is_sparse`: without reading pieces in which nothing changes.
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
    let mut past = Past::new(snapshot, limit, is_sparse);
    loop {
        let next = amendments.get(new.next);
        match (past.peek()?, next) {
            (None, None) => break,
            (None, Some(amendment)) => new.make(amendment, writer)?,
            (Some(path), Some(amendment)) => match path_order(path.as_bytes(), &amendment.path) {
                Ordering::Less => new.pass(&mut past, writer)?,
                Ordering::Equal => new.change(&mut past, amendment, writer)?,
                Ordering::Greater => new.make(amendment, writer)?,
            },
            (Some(_), None) => new.pass(&mut past, writer)?,
        }
    }
    new.finish(writer)
}
