//! The own directories that stand on one side of a comparison only, with all that are below them.
//!
//! Reads their git trees and no manifest.

use crate::entry_limit::EntryLimit;
use crate::error::Result;
use crate::git::oid::Oid;
use crate::objects::ObjectReader;
use crate::path::{RelPath, basename};
use crate::snapshot::Snapshot;

/// A directory with a tree of its own that stands on one side only.
#[derive(Debug, Clone)]
pub struct Tree {
    /// Where it is.
    pub path: RelPath,
    /// Its git tree.
    pub oid: Oid,
}

impl Tree {
    /// The subdirectory `name` of `directory`.
    pub fn below(directory: &RelPath, name: &[u8], oid: Oid) -> Self {
        let path = directory.join(name);
        Self { path, oid }
    }
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) tree: Tree,
    /// The number of the one above it.
    pub(crate) above: Option<usize>,
    /// The number after those of all that are below it.
    pub(crate) end: usize,
    /// The ids of its pieces; none if it was not looked into.
    pub(crate) pieces: Vec<Oid>,
}

/// All of them; each comes after the one above it, and before what is not below it.
#[derive(Debug)]
pub(crate) struct Forest {
    pub(crate) nodes: Vec<Node>,
}

impl Forest {
    /// What is at and below `roots`; no directory that `is_known` is looked into.
    pub(crate) fn read<R: ObjectReader>(
        snapshot: &Snapshot<R>,
        roots: &[Tree],
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
                // Each piece but the first has an entry at least.
                limit.spend(pieces.len().saturating_sub(1), &tree.path)?;
                let below = directory.children.iter().rev();
                pending.extend(below.map(|(name, oid)| {
                    let tree = Tree::below(&tree.path, name, *oid);
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
            let found = nodes.get(number).map(|node| (node.above, node.end));
            if let Some((Some(above), end)) = found {
                if let Some(above) = nodes.get_mut(above) {
                    above.end = above.end.max(end);
                }
            }
        }
        Ok(Self { nodes })
    }

    /// All pieces, each with the number of its directory.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (Oid, usize)> {
        let numbered = self.nodes.iter().enumerate();
        numbered.flat_map(|(number, node)| node.pieces.iter().map(move |piece| (*piece, number)))
    }

    /// The number of the one above another.
    pub(crate) fn above(&self, number: usize) -> Option<usize> {
        self.nodes.get(number)?.above
    }

    /// The name of a directory.
    pub(crate) fn name(&self, number: usize) -> Option<&[u8]> {
        let node = self.nodes.get(number)?;
        Some(basename(node.tree.path.as_bytes()))
    }

    /// A directory and those above it, nearest first.
    pub(crate) fn line(&self, number: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(number), |&number| self.above(number))
    }

    /// The numbers of a directory and of all below it.
    pub(crate) fn branch(&self, number: usize) -> std::ops::Range<usize> {
        number..self.nodes.get(number).map_or(number, |node| node.end)
    }
}
