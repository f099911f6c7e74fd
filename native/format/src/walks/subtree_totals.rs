//! Counts what is below directories, and keeps the sums for other commits.
//!
//! They are kept by the ids of trees, which determine them.  Rule: memory is bounded; with too many
//! sums, all are dropped first.

use std::collections::HashMap;
use std::vec::IntoIter;

use huai_git::error::{Error, Result};
use huai_git::find::split_before;
use huai_git::object::Kind;
use huai_git::oid::Oid;

use crate::path::RelPath;
use crate::snapshots::{Lookup, ObjectReader, Snapshot};
use crate::write::Totals;

/// The sums of own directories, and of manifests of those that are not counted yet.
#[derive(Debug)]
pub struct SubtreeTotals {
    sums: HashMap<Oid, Totals>,
    most: usize,
}

/// An own directory that is being counted.
struct Counting {
    path: RelPath,
    tree: Oid,
    sum: Totals,
    manifests: Vec<Oid>,
    children: IntoIter<(Vec<u8>, Oid)>,
}

impl SubtreeTotals {
    /// Keep at most `most` sums.
    pub fn new(most: usize) -> Self {
        Self {
            sums: HashMap::new(),
            most,
        }
    }

    /// Count the leaves below the directory at `path`; `None` if it has to read more when `stopped`
    /// returns true.  A later call continues.
    pub fn count<R: ObjectReader>(
        &mut self,
        lookup: &mut Lookup<R>,
        path: &RelPath,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Totals>> {
        let snapshot = lookup.snapshot();
        if let Some(tree) = lookup.own_tree(path)? {
            return match self.count_tree(&snapshot, path.clone(), tree, stopped) {
                Err(Error::Stopped) => Ok(None),
                sum => sum.map(Some),
            };
        }
        let (mut subtree, mut sum) = (lookup.subtree(path)?, Totals::default());
        while let Some(listing) = subtree.next_of(&snapshot, |_| true)? {
            sum.add(Totals::of(&listing.leaves));
        }
        Ok(Some(sum))
    }

    /// Count the leaves in and below the own directory at `path`.
    fn count_tree<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        path: RelPath,
        tree: Oid,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Totals> {
        let mut open: Vec<Counting> = Vec::new();
        let mut next = Some((path, tree));
        loop {
            let mut sum = Totals::default();
            if let Some((path, tree)) = next.take() {
                match self.sums.get(&tree) {
                    Some(kept) => sum = *kept,
                    None => open.push(self.count_manifests(snapshot, path, tree, stopped)?),
                }
            }
            while let Some(top) = open.last_mut() {
                top.sum.add(std::mem::take(&mut sum));
                if let Some((name, tree)) = top.children.next() {
                    next = Some((top.path.try_join(&name)?, tree));
                    break;
                }
                sum = top.sum;
                for manifest in &top.manifests {
                    self.sums.remove(manifest);
                }
                self.keep(top.tree, sum);
                open.pop();
            }
            if open.is_empty() {
                return Ok(sum);
            }
        }
    }

    /// Count the leaves in the manifests of an own directory.
    fn count_manifests<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        path: RelPath,
        tree: Oid,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Counting> {
        let own = snapshot.own_directory(path, tree)?;
        let manifests = snapshot.manifests(&own)?;
        let mut sum = Totals::default();
        for manifest in &manifests {
            if let Some(kept) = self.sums.get(manifest) {
                sum.add(*kept);
                continue;
            }
            if stopped() {
                return Err(Error::Stopped);
            }
            let leaves = count_leaves(&snapshot.reader.read(manifest, Kind::Blob)?);
            self.keep(*manifest, leaves);
            sum.add(leaves);
        }
        Ok(Counting {
            path: own.path,
            tree,
            sum,
            manifests,
            children: own.children.into_iter(),
        })
    }

    fn keep(&mut self, id: Oid, sum: Totals) {
        if self.sums.len() >= self.most {
            self.sums.clear();
        }
        self.sums.insert(id, sum);
    }
}

/// Count the leaves in the lines of a manifest.
fn count_leaves(manifest: &[u8]) -> Totals {
    let mut sum = Totals::default();
    for line in manifest.split_inclusive(|&byte| byte == b'\n') {
        if !split_before(line, b'\t').0.ends_with(b"/") {
            sum.add(Totals::of(line));
        }
    }
    sum
}
