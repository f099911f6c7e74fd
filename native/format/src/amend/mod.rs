//! The tree of a snapshot with some of its directories amended (FORMAT.md, "Layout").
//!
//! Goes through the own directories in which something changes, one beside the other with what is
//! to be changed; whatever own directory lies beside is taken over by its id, and not read, and so
//! is each piece of a long manifest in which nothing changes (`sparse`).  The layout makes the new
//! trees as from a whole listing, so equal trees get equal ids, whatever way led to them.

mod leaves;
mod merged;
mod new_tree;
mod past;
mod sparse;

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::git::oid::Oid;
use crate::objects::{ObjectReader, ObjectWriter};
use crate::path::path_order;
use crate::snapshot::Snapshot;
use crate::totals::Totals;

use leaves::names;
use new_tree::NewTree;
use past::Past;

/// What is said of a directory that is there.
#[derive(Debug, Clone, Default)]
pub struct Amendment {
    /// From the root.
    pub path: Vec<u8>,
    /// Its own attributes, as in a listing.
    pub attributes: Vec<u8>,
    /// The lines of leaves that are there, sorted by raw name.
    pub leaves: Vec<u8>,
    /// 32 bytes for each file of these, zeros where absent, or none at all.
    pub digests: Vec<u8>,
    /// Names of directories.
    pub directories: BTreeSet<Vec<u8>>,
    /// Names at which nothing is.
    pub gone: BTreeSet<Vec<u8>>,
    /// Names of which nothing is known: what the snapshot has there stays.
    pub unsure: BTreeSet<Vec<u8>>,
    /// Nothing else is there.
    pub is_whole: bool,
}

impl Amendment {
    /// Everything in the directory of which something is said.
    fn names(&self) -> Result<BTreeSet<Vec<u8>>> {
        let mut names = names(&self.leaves)?;
        for more in [&self.directories, &self.gone, &self.unsure] {
            names.extend(more.iter().cloned());
        }
        Ok(names)
    }

    /// Whether a directory of the snapshot is none any more.
    fn ends(&self, name: &[u8], leaves: &BTreeSet<Vec<u8>>) -> bool {
        if self.directories.contains(name) || self.unsure.contains(name) {
            return false;
        }
        self.is_whole || self.gone.contains(name) || leaves.contains(name)
    }
}

/// What came out of it.
#[derive(Debug)]
pub struct Amended {
    /// The id of the root's tree.
    pub tree: Oid,
    /// What is there now and was not counted, or was counted otherwise.
    pub added: Totals,
    /// Directories of these.
    pub added_directories: u64,
    /// What is not there any more, or was counted otherwise.
    pub removed: Totals,
    /// Directories of these.
    pub removed_directories: u64,
    /// Paths at which nothing is, and nothing was.
    pub unknown: BTreeSet<Vec<u8>>,
    /// The directories that are none any more; what was below them is not named.
    pub ended: BTreeSet<Vec<u8>>,
}

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
