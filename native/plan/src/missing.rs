//! The objects that a downstream lacks of the directories that its filter includes.

use std::collections::{BTreeSet, HashSet};
use std::mem::take;

use huai_format::path::{RelPath, at};
use huai_format::snapshots::OwnDirectory;
use huai_git::error::{Error, Result};
use huai_git::object::Kind;
use huai_git::oid::Oid;
use huai_git::resolve::LocalObjects;
use huai_git::tree::decode_tree;

use crate::filter::Selector;

/// A search that goes on where objects were missing, once they have been fetched.
pub struct MissingObjects {
    filter: Selector,
    /// The own directories that were not entered yet.
    directories: Vec<Directory>,
    /// The manifests, columns and trees of pieces that may be missing; true for a tree.
    parts: Vec<(Oid, bool)>,
    /// The trees of pieces that were entered.
    entered: HashSet<Oid>,
    /// How many directories may still be entered.
    left: u64,
    /// The trees of the excluded directories that are not here, without what is below them.
    pub absent: Vec<Oid>,
}

struct Directory {
    path: RelPath,
    tree: Oid,
    /// False if the filter leaves it out; what its own tree names is needed if that is here.
    is_included: bool,
    /// The trees of this directory in commits of which all that is included is here.
    bases: Vec<Oid>,
}

impl MissingObjects {
    /// Search below `tree`, the tree of the root, for what `filter` includes; not below directories that are equal in
    /// one of the trees `bases`, of which all that it includes is here.  More than `most` directories are an error.
    pub fn new(tree: Oid, bases: Vec<Oid>, filter: Selector, most: u64) -> Self {
        let root = Directory {
            path: RelPath::root(),
            tree,
            is_included: true,
            bases,
        };
        Self {
            filter,
            directories: vec![root],
            parts: Vec::new(),
            entered: HashSet::new(),
            left: most,
            absent: Vec::new(),
        }
    }

    /// Return the missing objects that are known so far; empty if there are none.
    pub fn next(&mut self, objects: &mut dyn LocalObjects) -> Result<BTreeSet<Oid>> {
        let mut missing = BTreeSet::new();
        let mut waiting = Vec::new();
        while let Some(directory) = self.directories.pop() {
            if let Some(text) = tree_text(&directory.tree, objects)? {
                self.enter(directory, &text, objects)?;
            } else {
                missing.insert(directory.tree);
                waiting.push(directory);
            }
        }
        self.directories = waiting;
        let (mut parts, mut waiting) = (take(&mut self.parts), Vec::new());
        while let Some((oid, is_tree)) = parts.pop() {
            if self.entered.contains(&oid) {
                continue;
            }
            if !objects.has(&oid)? {
                if missing.insert(oid) {
                    waiting.push((oid, is_tree));
                }
            } else if let Some(text) = is_tree
                .then(|| tree_text(&oid, objects))
                .transpose()?
                .flatten()
            {
                self.entered.insert(oid);
                let items = decode_tree(&text).map_err(|error| error.within(oid))?;
                parts.extend(items.iter().map(|item| (item.oid, item.is_tree)));
            }
        }
        self.parts = waiting;
        Ok(missing)
    }

    /// Note the parts and subdirectories of a directory with this tree.
    fn enter(
        &mut self,
        directory: Directory,
        text: &[u8],
        objects: &mut dyn LocalObjects,
    ) -> Result<()> {
        let left = self.left.checked_sub(1);
        let too_many = || at(&directory.path, Error::new("more directories than entries"));
        self.left = left.ok_or_else(too_many)?;
        let own = OwnDirectory::decode(directory.path, text)?;
        let mut bases = Vec::new();
        for oid in &directory.bases {
            if let Some(text) = tree_text(oid, objects)? {
                bases.push(OwnDirectory::decode(own.path.clone(), &text)?);
            }
        }
        let blobs = [Some(own.manifest.manifest), own.manifest.column];
        let trees = [own.pieces, own.piece_digests];
        self.parts
            .extend(blobs.into_iter().flatten().map(|oid| (oid, false)));
        self.parts
            .extend(trees.into_iter().flatten().map(|oid| (oid, true)));
        for (name, tree) in own.children {
            let path = own.path.join(&name);
            let is_included = directory.is_included && self.filter.reaches(path.as_bytes(), true);
            let bases: Vec<_> = bases.iter().filter_map(|it| it.child(&name)).collect();
            if !is_included && !objects.has(&tree)? {
                self.absent.push(tree);
            } else if !bases.contains(&tree) {
                // A fetch by another filter may have been cut between an excluded directory and its parts.
                self.directories.push(Directory {
                    path,
                    tree,
                    is_included,
                    bases,
                });
            }
        }
        Ok(())
    }
}

/// Return the content of a tree; `None` if it is missing.
fn tree_text(oid: &Oid, objects: &mut dyn LocalObjects) -> Result<Option<Vec<u8>>> {
    match objects.find(oid)? {
        None => Ok(None),
        Some(object) if object.kind == Kind::Tree => Ok(Some(object.content)),
        Some(_) => Err(Error::new("not a tree").within(oid)),
    }
}
