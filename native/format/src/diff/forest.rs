//! The own directories that exist on one side of a comparison only, and everything below them.
//!
//! Reads their git trees and no manifest.

use huai_git::error::Result;
use huai_git::oid::Oid;

use crate::path::{RelPath, basename};
use crate::snapshots::{EntryLimit, ObjectReader, Snapshot};

/// A directory with a tree of its own on one side only.
#[derive(Debug, Clone)]
pub(super) struct OwnTree {
    /// The path.
    pub(super) path: RelPath,
    /// The git tree.
    pub(super) oid: Oid,
}

impl OwnTree {
    /// Return the subdirectory `name` of `directory`.
    pub(super) fn below(directory: &RelPath, name: &[u8], oid: Oid) -> Self {
        let path = directory.join(name);
        Self { path, oid }
    }
}

/// A directory of the forest.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) tree: OwnTree,
    /// The number of its parent.
    pub(crate) above: Option<usize>,
    /// The number after those of its descendants.
    pub(crate) end: usize,
    /// The ids of its pieces; empty if it was not read.
    pub(crate) pieces: Vec<Oid>,
}

/// All directories, each after its parent and before everything that is not below it.
#[derive(Debug)]
pub(crate) struct Forest {
    pub(crate) nodes: Vec<Node>,
}

impl Forest {
    /// Read everything at and below `roots`, at most `entries` entries; a directory whose id
    /// `is_known` becomes a node, but is not read.
    pub(crate) fn read<R: ObjectReader>(
        snapshot: &Snapshot<R>,
        roots: &[OwnTree],
        entries: u64,
        is_known: impl Fn(&Oid) -> bool,
    ) -> Result<Self> {
        let mut limit = EntryLimit::new(entries);
        let mut nodes: Vec<Node> = Vec::new();
        let roots = roots.iter().rev();
        let mut pending: Vec<_> = roots.map(|root| (None, root.clone())).collect();
        while let Some((above, tree)) = pending.pop() {
            limit.spend(1, &tree.path)?;
            let number = nodes.len();
            let mut pieces = Vec::new();
            if !is_known(&tree.oid) {
                let directory = snapshot.own_directory(tree.path.clone(), tree.oid)?;
                limit.spend_trees(directory.children.len(), &tree.path)?;
                pieces = snapshot.manifests(&directory)?;
                // Each piece after the first has at least one entry.
                limit.spend(pieces.len().saturating_sub(1), &tree.path)?;
                let below = directory.children.iter().rev();
                pending.extend(below.map(|(name, oid)| {
                    let tree = OwnTree::below(&tree.path, name, *oid);
                    (Some(number), tree)
                }));
            }
            nodes.push(Node {
                tree,
                above,
                end: number.saturating_add(1),
                pieces,
            });
        }
        for number in (0..nodes.len()).rev() {
            let position = nodes.get(number).map(|node| (node.above, node.end));
            if let Some((Some(above), end)) = position {
                if let Some(above) = nodes.get_mut(above) {
                    above.end = above.end.max(end);
                }
            }
        }
        Ok(Self { nodes })
    }

    /// Return all pieces, each with the number of its directory.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (Oid, usize)> {
        let numbered = self.nodes.iter().enumerate();
        numbered.flat_map(|(number, node)| node.pieces.iter().map(move |piece| (*piece, number)))
    }

    /// Return the number of the parent; `None` at a top.
    pub(crate) fn above(&self, number: usize) -> Option<usize> {
        self.nodes.get(number)?.above
    }

    /// Return the name of a directory; `None` for an unknown number.
    pub(crate) fn name(&self, number: usize) -> Option<&[u8]> {
        let node = self.nodes.get(number)?;
        Some(basename(node.tree.path.as_bytes()))
    }

    /// Return a directory and its ancestors, nearest first.
    pub(crate) fn lineage(&self, number: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(number), |&number| self.above(number))
    }

    /// Return the numbers of a directory and everything below it.
    pub(crate) fn branch(&self, number: usize) -> std::ops::Range<usize> {
        number..self.nodes.get(number).map_or(number, |node| node.end)
    }
}
